"""The SDF reader: frames against Drake's reading of the same files, every joint, every refusal."""

import copy
import json
import math
import os
import random
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from cases import few
from lxml import etree
from scipy.spatial.transform import Rotation

import robomodel as rm
from robomodel.description import (
    IDENTITY,
    JointCoupling,
    Limits,
    LinkCoupling,
    Mimic,
    Pose,
)
from robomodel.errors import DescriptionError, DescriptionWarning
from robomodel.model import build
from robomodel.parsers import read
from robomodel.writers.sdf import to_sdf

DATA = Path(__file__).parent / "data" / "sdf"
UNIT = "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"


def sdf(*parts, version="1.11", model='name="m"'):
    """A file with one model: its parts stand in the lines from 3 on."""
    return "\n".join([f'<sdf version="{version}">', f"<model {model}>", *parts, "</model></sdf>"])


def link(name, pose="", more=UNIT):
    return f'<link name="{name}">{f"<pose>{pose}</pose>" if pose else ""}{more}</link>'


def joint(name, kind, parent, child, axis="0 0 1", more="", pose=""):
    placed = f"<pose>{pose}</pose>" if pose else ""
    about = f"<axis><xyz>{axis}</xyz></axis>" if axis else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>'
        f"{placed}{about}{more}</joint>"
    )


def named(things, name):
    (found,) = (each for each in things if each.name == name)
    return found


def refused(text, *words, line, element, **options):
    """Assert that a text (or path) is refused, there, in these words, under strict or not."""
    for strict in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DescriptionWarning)
            with pytest.raises(DescriptionError) as caught:
                read(text, strict=strict, **options)
        error = caught.value
        for word in words:
            assert word in error.message
        assert (error.line, error.element) == (line, element)
        assert "\n" not in str(error)


def suspected(text, *words, line, element):
    """Assert that a text is warned of once, and refused under strict; what it is read as."""
    with pytest.warns(DescriptionWarning) as caught:
        description = read(text)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert message.startswith(f"<text>:{line}: {element}: ")
    for word in words:
        assert word in message
    with pytest.raises(DescriptionError):
        read(text, strict=True)
    return description


# --- frames, against Drake ------------------------------------------------------------------------

DRAKE = json.loads((DATA / "drake.json").read_text())["files"]


def sources():
    old = (DATA / "frames" / "old.sdf").read_text()
    older = old.replace('version="1.6"', 'version="1.4"')
    older = older.replace("<use_parent_model_frame>1</use_parent_model_frame>", "")
    return {"model": DATA / "frames" / "model.sdf", "old": old, "older": older}


@pytest.mark.parametrize("which", few(["model", "old", "older"], "model"))
def test_frames_stand_where_drake_puts_them(which):
    """Poses, masses and joint inertias at one state: includes, scopes, placement, all frames."""
    said = DRAKE[which]
    model = rm.load(sources()[which], strict=True)
    nodes = {each.name: node for each, node in zip(model.joints, model.nodes, strict=True)}

    def full(name):
        return next(each for each in nodes if each == name or each.endswith(f"::{name}"))

    q = model.neutral()
    for name, values in said["state"].items():
        ends = ("", "::2") if len(values) == 2 else ("",)
        for end, value in zip(ends, values if len(ends) == 2 else [values], strict=True):
            start = nodes[full(name) + end].q
            q[start : start + np.size(value)] = value
    for name, pose in said["poses"].items():
        mine = rm.frame_pose(model, q, name)[:3]
        np.testing.assert_allclose(mine, pose, rtol=0, atol=1e-13, err_msg=name)
    assert model.mass == pytest.approx(said["mass"], rel=1e-14)
    np.testing.assert_allclose(rm.center_of_mass(model, q), said["com"], rtol=0, atol=1e-13)
    M = rm.crba(model, q)
    for name, block in said["inertia"].items():
        names = [full(name), full(name) + "::2"][: len(block)]
        rows = [model.dof_names.index(each) for each in names]
        np.testing.assert_allclose(M[np.ix_(rows, rows)], block, rtol=1e-11, err_msg=name)


# --- poses by hand --------------------------------------------------------------------------------


def test_poses_of_links_are_in_the_model():
    turn = math.pi / 2
    description = read(
        sdf(
            link("a", f"1 2 3 0 0 {turn}"),
            link("b", f"1 4 3 0 0 {turn}"),
            joint("j", "revolute", "a", "b"),
        )
    )
    found = named(description.joints, "j")
    assert (found.parent, found.child, found.axis) == ("a", "b", (0.0, 0.0, 1.0))
    assert found.origin == Pose((2.0, 0.0, 0.0), IDENTITY)  # 2 m along y of the model, x of a
    free = named(description.joints, "floating_base")
    assert (free.type, free.parent, free.child) == ("floating", "world", "a")
    assert free.origin.xyz == (1.0, 2.0, 3.0)
    assert free.origin.rotation == ((0, -1, 0), (1, 0, 0), (0, 0, 1))


def test_degrees_and_quaternions():
    text = sdf(
        '<link name="a"><pose degrees="true">0 0 0 30 -40 110</pose>' + UNIT + "</link>",
        '<link name="b"><pose relative_to="a" rotation_format="quat_xyzw">1 0 0 0.1 0.7 0.1 0.7'
        "</pose>" + UNIT + "</link>",
        joint("j", "fixed", "a", "b", axis=""),
    )
    description = read(text)
    expected = Rotation.from_euler("xyz", [30, -40, 110], degrees=True).as_matrix()
    found = named(description.joints, "floating_base").origin
    np.testing.assert_allclose(found.rotation, expected, rtol=0, atol=1e-15)
    found = named(description.joints, "j").origin
    expected = Rotation.from_quat([0.1, 0.7, 0.1, 0.7]).as_matrix()
    np.testing.assert_allclose(found.rotation, expected, rtol=0, atol=1e-15)
    assert found.xyz == (1.0, 0.0, 0.0)


def test_an_axis_off_the_childs_origin_gets_the_joints_own_frame():
    description = read(
        sdf(
            link("a"),
            link("b", "1 0 0 0 0 0"),
            joint("j", "revolute", "a", "b", pose="0 0.2 0 0 0 0"),
            joint("k", "revolute", "world", "a", pose="0 0 5 0 0 0"),  # off it along the axis only
        )
    )
    found = named(description.joints, "j")
    assert (found.parent, found.child, found.origin.xyz) == ("a", "j", (1.0, 0.2, 0.0))
    fixed = named(description.joints, "j::fixed")
    assert (fixed.type, fixed.parent, fixed.child) == ("fixed", "j", "b")
    assert fixed.origin.xyz == (0.0, -0.2, 0.0)
    assert named(description.joints, "k").child == "a"
    model = build(description)
    q = model.configuration({"j": math.pi / 2})
    np.testing.assert_allclose(rm.frame_pose(model, q, "b")[:3, 3], [1.2, 0.2, 0], atol=1e-15)
    np.testing.assert_allclose(rm.frame_pose(model, q, "j")[:3, 3], [1, 0.2, 0], atol=1e-15)


def test_explicit_frames_become_links_without_mass():
    description = read(
        sdf(
            link("a", "0 0 1 0 0 0"),
            '<frame name="tip" attached_to="a"><pose>0.1 0 0 0 0 0</pose></frame>',
            '<frame name="tip_of_tip" attached_to="tip"><pose>0 0.1 0 0 0 0</pose></frame>',
            '<frame name="own"/>',
        )
    )
    assert [each.name for each in description.links] == ["world", "a", "tip", "tip_of_tip", "own"]
    assert all(each.inertial is None for each in description.links[2:])
    for name, xyz in (("tip", (0.1, 0, 0)), ("tip_of_tip", (0.1, 0.1, 0)), ("own", (0, 0, -1))):
        found = named(description.joints, name)
        assert (found.type, found.parent, found.child) == ("fixed", "a", name)
        assert found.origin.xyz == xyz


def test_old_frame_attribute():
    text = sdf(
        link("a", "1 0 0 0 0 0"),
        '<link name="b"><pose frame="a">0 1 0 0 0 0</pose>' + UNIT + "</link>",
        joint("j", "revolute", "a", "b"),
        version="1.6",
    )
    assert named(read(text).joints, "j").origin.xyz == (0.0, 1.0, 0.0)
    newer = suspected(text.replace("1.6", "1.7"), "'frame'", line=4, element="link 'b'")
    assert named(newer.joints, "j").origin.xyz == (-1.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("version", "flag", "expected"),
    [
        ("1.4", None, (0, 0, 1)),  # in the model's frame
        ("1.5", None, (0, -1, 0)),  # in the child's
        ("1.6", "false", (0, -1, 0)),
        ("1.6", "1", (0, 0, 1)),
        ("1.5", "true", (0, 0, 1)),
        ("1.7", None, (0, -1, 0)),
    ],
)
def test_whose_frame_an_axis_is_in(version, flag, expected):
    """The child is turned by a quarter about x: its z is the model's -y, the model's z its y."""
    flag = "" if flag is None else f"<use_parent_model_frame>{flag}</use_parent_model_frame>"
    text = sdf(
        link("a"),
        link("b", f"0 0 0 {math.pi / 2} 0 0"),
        joint("j", "revolute", "a", "b", "", f"<axis><xyz>0 0 1</xyz>{flag}</axis>"),
        version=version,
    )
    found = named(read(text).joints, "j")
    in_model = np.array(found.origin.rotation) @ found.axis
    np.testing.assert_array_equal(in_model, expected)


# --- the tree -------------------------------------------------------------------------------------


def four_bar(*order, kinds=("revolute",) * 4, world="base"):
    """Ground 1.1, crank 0.5, upright; coupler to the rocker, upright too: a parallelogram."""
    joints = {
        "crank": joint("crank", kinds[0], world, "c"),
        "elbow": joint("elbow", kinds[1], "c", "k"),
        "rocker": joint("rocker", kinds[2], world, "r"),
        "close": joint("close", kinds[3], "k", "r", pose="0 0.5 0 0 0 0"),
    }
    return sdf(
        *(joints[name] for name in order),
        link("r", "1.1 0 0 0 0 0"),
        link("k", "0 0.5 0 0 0 0"),
        link("c"),
        link("base"),
        joint("ground", "fixed", "world", "base", axis=""),
    )


class TestTree:
    @pytest.mark.parametrize(
        ("order", "loop"),
        [
            (("crank", "elbow", "rocker", "close"), "close"),
            (("close", "rocker", "elbow", "crank"), "close"),
            (("elbow", "crank", "close", "rocker"), "rocker"),
        ],
    )
    def test_a_second_joint_of_a_child_closes_a_loop(self, order, loop):
        """Joints and links in any order; forward joints first, then the first in the file."""
        description = read(four_bar(*order))
        assert [each.name for each in description.loops] == [loop]
        model = build(description)
        assert (model.nv, model.loops[0].rank) == (1, 2)
        reference = build(read(four_bar("crank", "elbow", "rocker", "close")))
        q = model.configuration({name: 0.3 for name in ("crank",) if name in model.joint_names})
        w = reference.configuration({"crank": 0.3})
        np.testing.assert_allclose(
            rm.frame_pose(model, q, "k"), rm.frame_pose(reference, w, "k"), rtol=0, atol=1e-12
        )

    def test_the_anchors_of_a_loop(self):
        (loop,) = read(four_bar("crank", "elbow", "rocker", "close")).loops
        assert (loop.type, loop.axis) == ("revolute", (0.0, 0.0, 1.0))
        assert (loop.predecessor.link, loop.predecessor.origin.xyz) == ("k", (1.1, 0.0, 0.0))
        assert (loop.successor.link, loop.successor.origin.xyz) == ("r", (0.0, 0.5, 0.0))

    def test_balls_are_cut_before_hinges(self):
        order = ("crank", "elbow", "close", "rocker")
        description = read(four_bar(*order, kinds=("ball", *("revolute",) * 3)))
        assert [(each.name, each.type) for each in description.loops] == [("crank", "spherical")]

    def test_must_be_loop_joint(self):
        text = four_bar("crank", "elbow", "rocker", "close").replace(
            '<joint name="elbow" type="revolute">',
            '<joint name="elbow" type="revolute"><physics><simbody><must_be_loop_joint>true'
            "</must_be_loop_joint></simbody></physics>",
        )
        assert [each.name for each in read(text).loops] == ["elbow"]

    @pytest.mark.parametrize("kind", ["revolute", "prismatic", "screw", "universal"])
    def test_a_reversed_joint_keeps_its_position(self, kind):
        """The rod hangs on the base, though it is the parent: its pose is the joint's inverse."""
        second = "<axis2><xyz>0 1 0</xyz></axis2>" if kind == "universal" else ""
        pitch = "<screw_thread_pitch>0.3</screw_thread_pitch>" if kind == "screw" else ""
        parts = [
            link("a", "0.1 0.2 0.3 0.4 0.5 0.6"),
            link("b", "0.3 0.1 0.5 0.2 0.1 0.7"),
            joint("j", kind, "a", "b", "1 0 0", second + pitch, "0.1 0.2 0 0.3 0 0.2"),
        ]
        ahead = rm.load(sdf(*parts, joint("w", "fixed", "world", "a", "")))
        back = rm.load(sdf(*parts, joint("w", "fixed", "world", "b", "")))
        q = {"j": 0.7} | ({"j::2": -0.4} if kind == "universal" else {})
        A, B = (
            [rm.frame_pose(m, m.configuration(q), name) for name in "ab"] for m in (ahead, back)
        )
        relative = [np.linalg.solve(each[0], each[1]) for each in (A, B)]
        np.testing.assert_allclose(relative[0], relative[1], rtol=0, atol=1e-14)

    def test_free_bodies(self):
        description = read(sdf(link("a"), link("b", "1 0 0 0 0 0"), link("c")))
        free = [(each.name, each.type, each.parent, each.child) for each in description.joints]
        assert free == [
            (f"floating_base_{name}", "floating", "world", name) for name in ("a", "b", "c")
        ]
        assert build(description).nv == 18

    def test_the_root_is_no_rod(self):
        """Neither is a child: the rod, first in the file, hangs on a ball; the base carries."""
        text = sdf(
            link("rod"),
            link("base"),
            link("arm"),
            joint("b1", "ball", "rod", "arm", "", pose="1 0 0 0 0 0"),
            joint("hinge", "revolute", "base", "arm"),
        )
        free = named(read(text).joints, "floating_base")
        assert free.child == "base"

    def test_static_models(self):
        description = read(
            sdf("<static>true</static>", link("a"), link("b"), joint("j", "revolute", "a", "b"))
        )
        assert [(each.type, each.parent) for each in description.joints] == [("fixed", "world")] * 2
        assert build(description).nv == 0

    def test_joints_between_fixed_links_are_left_out(self):
        text = sdf(
            link("a"),
            link("b"),
            joint("f", "fixed", "a", "b", ""),
            joint("j", "revolute", "a", "b"),
        )
        found = suspected(text, "cannot move", "left out", line=6, element="joint 'j'")
        assert not found.loops
        again = text.replace('"j" type="revolute"', '"j" type="fixed"')
        assert not read(again, strict=True).loops

    def test_limits_of_a_loop_are_warned_of(self):
        text = four_bar("crank", "elbow", "rocker", "close").replace(
            "</xyz></axis></joint>\n<link",
            "</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis></joint>\n<link",
        )
        suspected(text, "closes a loop", "limits", line=6, element="joint 'close'")

    def test_what_cannot_be_a_loop_gets_a_link_between(self):
        """A screw as a loop, and a joint that is mimicked: a link without mass, then a weld."""
        text = sdf(
            link("a"),
            link("b"),
            link("c"),
            joint("w", "fixed", "world", "a", ""),
            joint("s", "prismatic", "a", "b"),
            joint("k", "revolute", "b", "c"),
            joint("t", "screw", "a", "c", more="<screw_thread_pitch>0.5</screw_thread_pitch>"),
        )
        description = read(text)
        (loop,) = description.loops
        assert (loop.type, loop.predecessor.link, loop.successor.link) == ("fixed", "t::cross", "c")
        model = build(description)
        assert model.nv == 1
        found = model.joint_positions(model.configuration({"s": 0.1}))
        turn = 0.1 * 2 * math.pi / 0.5
        assert float(found["t"]) == pytest.approx(turn, abs=1e-12)
        assert float(found["k"]) == pytest.approx(turn, abs=1e-12)


# --- joints ---------------------------------------------------------------------------------------


def one_joint(kind, inner="", axis="0 0 1", version="1.11"):
    text = sdf(link("a"), link("b"), joint("j", kind, "a", "b", axis, inner), version=version)
    return named(read(text).joints, "j")


class TestJoints:
    @pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic"])
    def test_one_freedom(self, kind):
        text = (
            "<axis><xyz>0 0 -1</xyz><limit><lower>-1</lower><upper>2</upper><effort>3</effort>"
            "<velocity>4</velocity></limit><dynamics><damping>5</damping><friction>6</friction>"
            "</dynamics></axis>"
        )
        found = one_joint(kind, text, axis="")
        bounds = (-math.inf, math.inf) if kind == "continuous" else (-1.0, 2.0)
        assert (found.type, found.axis) == (kind, (0.0, 0.0, -1.0))
        assert found.limits == Limits(*bounds, velocity=4.0, effort=3.0)
        assert (found.damping, found.friction) == (5.0, 6.0)

    def test_what_is_no_limit(self):
        inner = (
            "<axis><xyz>0 0 1</xyz><limit><lower>-1e16</lower><upper>1e+16</upper>"
            "<effort>-1</effort><velocity>-1.0</velocity></limit></axis>"
        )
        assert one_joint("revolute", inner, axis="").limits == Limits()
        inner = inner.replace("-1e16", "-inf").replace("1e+16", "inf")
        assert one_joint("revolute", inner, axis="").limits == Limits()

    @pytest.mark.parametrize(
        ("word", "pitch"),
        [
            ("<screw_thread_pitch>0.002</screw_thread_pitch>", 0.002 / (2 * math.pi)),
            ("<screw_thread_pitch>-0.002</screw_thread_pitch>", -0.002 / (2 * math.pi)),
            ("<thread_pitch>-500</thread_pitch>", 0.002),  # radians a metre, left-handed
            (
                "<thread_pitch>1</thread_pitch><screw_thread_pitch>1</screw_thread_pitch>",
                1 / math.tau,
            ),
        ],
    )
    def test_screws(self, word, pitch):
        found = one_joint("screw", word)
        assert found.type == "screw"
        assert found.pitch == pytest.approx(pitch, rel=1e-15)

    @pytest.mark.parametrize("kind", ["universal", "revolute2"])
    def test_two_axes(self, kind):
        text = sdf(
            link("a"),
            link("b", "1 0 0 0 0 0"),
            joint("j", kind, "a", "b", "1 0 0", "<axis2><xyz>0 0.6 0.8</xyz></axis2>"),
        )
        description = read(text)
        one, two = named(description.joints, "j"), named(description.joints, "j::2")
        assert (one.type, one.parent, one.child, one.axis) == (
            "revolute",
            "a",
            "j::cross",
            (1, 0, 0),
        )
        assert (two.type, two.parent, two.child, two.axis) == (
            *("revolute", "j::cross", "b"),
            (0.0, 0.6, 0.8),
        )
        assert one.origin.xyz == (1.0, 0.0, 0.0)
        assert two.origin == Pose()
        model = build(description)
        q = model.configuration({"j": 0.5, "j::2": 0.7})
        expected = Rotation.from_rotvec([0.5, 0, 0]) * Rotation.from_rotvec([0, 0.42, 0.56])
        pose = rm.frame_pose(model, q, "b")
        np.testing.assert_allclose(pose[:3, :3], expected.as_matrix(), rtol=0, atol=1e-14)

    def test_balls_need_no_axis(self):
        found = one_joint("ball", axis="")
        assert (found.type, found.child) == ("spherical", "b")
        assert one_joint("ball") == found

    def test_universal_loops(self):
        second = "<axis2><xyz>0 {} 1</xyz></axis2>"
        text = sdf(
            link("a"),
            link("b"),
            joint("w", "fixed", "world", "a", ""),
            joint("s", "revolute", "a", "b"),
            joint("u", "universal", "a", "b", "1 0 0", second.format(0)),
        )
        (loop,) = read(text).loops
        assert (loop.name, loop.type) == ("u", "universal")
        assert (loop.axis, loop.axis2) == ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
        skew = text.replace('"universal"', '"revolute2"').replace("1 0 0</xyz>", "0.6 0 0.8</xyz>")
        (loop,) = read(skew).loops
        assert (loop.type, loop.predecessor.link) == ("fixed", "u::cross::2")
        assert build(read(skew)).nv == 1

    def test_mimic(self):
        text = sdf(
            link("a"),
            link("b"),
            link("c"),
            joint("lead", "universal", "a", "b", "1 0 0", "<axis2><xyz>0 1 0</xyz></axis2>"),
            joint(
                "follow",
                "revolute",
                "b",
                "c",
                "",
                '<axis><xyz>0 0 1</xyz><mimic joint="lead" axis="axis2"><multiplier>-2</multiplier>'
                "<offset>0.5</offset><reference>0.25</reference></mimic></axis>",
            ),
        )
        found = named(read(text).joints, "follow")
        assert found.mimic == Mimic("lead::2", -2.0, 1.0)  # -2 (x - 0.25) + 0.5

    def test_drakes_rotors_are_armature(self):
        text = sdf(
            link("a"),
            link("b"),
            joint(
                *("j", "revolute", "a", "b"),
                more="<drake:rotor_inertia>1e-4</drake:rotor_inertia>"
                "<drake:gear_ratio>50</drake:gear_ratio>",
            ),
        )
        assert named(read(text).joints, "j").armature == pytest.approx(0.25, rel=1e-15)

    def test_words_of_others_are_passed_over(self):
        text = sdf(link("a", more=UNIT + '<gz:thing xmlns:gz="gz"/>'), '<plugin name="p"/>')
        assert len(read(text, strict=True).links) == 2


class TestGearboxes:
    """θ₂ = −ratio θ₁, angles of child and parent in the reference body, about axis2 and axis."""

    def gears(self, ratio=3.0, inner="0 0 1", outer="0 0 1", reference="base", parent="motor"):
        return sdf(
            link("base"),
            link("motor", "0 0 0 0 0 0"),
            link("out", "1 0 0 0 0 0"),
            joint("w", "fixed", "world", "base", ""),
            joint("m", "revolute", "base", "motor", "0 0 1"),
            joint("o", "revolute", "base", "out", "0 0 1"),
            joint(
                "g",
                "gearbox",
                parent,
                "out",
                inner,
                f"<axis2><xyz>{outer}</xyz></axis2><gearbox_ratio>{ratio}</gearbox_ratio>"
                f"<gearbox_reference_body>{reference}</gearbox_reference_body>",
            ),
        )

    @pytest.mark.parametrize(
        ("inner", "outer", "sign"),
        [
            ("0 0 1", "0 0 1", -1),
            ("0 0 -1", "0 0 1", 1),
            ("0 0 1", "0 0 -1", 1),
            ("0 0 -1", "0 0 -1", -1),
        ],
    )
    def test_sign(self, inner, outer, sign):
        description = read(self.gears(3.0, inner, outer))
        (found,) = description.couplings
        assert isinstance(found, LinkCoupling)
        assert (found.predecessor, found.successor, found.ratio) == ("motor", "out", sign * 3.0)
        model = build(description)
        q = model.joint_positions(model.configuration({"m": 0.2}))
        assert float(q["o"]) == pytest.approx(sign * 0.6, rel=1e-14)

    def test_seen_from_another_body(self):
        """In the motor, base and output turn: θ₁ = −m, θ₂ = o − m, so o = (1 + ratio) m."""
        text = self.gears(3.0, reference="motor", parent="base")
        (found,) = read(text).couplings
        assert isinstance(found, JointCoupling)
        q = {"m": 0.1, "o": 0.4}
        assert sum(q[name] * k for name, k in found.terms) == pytest.approx(found.offset, abs=1e-15)

    def turned(self, roll):
        """The gearbox's axes are y of a frame that is turned until y is nearly z."""
        axes = "<axis><xyz>0 1 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>"
        return self.gears().replace(
            "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>",
            f"<pose>0 0 0 {roll} 0 0</pose>{axes}",
        )

    def test_axes_that_are_turned_by_a_rounded_right_angle(self):
        (found,) = read(self.turned("1.5708"), strict=True).couplings
        assert found == read(self.gears()).couplings[0]
        with pytest.warns(DescriptionWarning) as caught:
            assert read(self.turned("1.57")).couplings == (found,)
        assert "<axis> misses the axis of the joint 'm' by 0.0008 rad" in str(caught[0].message)
        refused(self.turned("1.5"), "does not turn about <axis>", line=9, element="joint 'g'")

    def test_refusals(self):
        element = "joint 'g'"
        refused(self.gears(inner="1 0 0"), "does not turn about <axis>", line=9, element=element)
        refused(self.gears(reference="no"), "'no'", line=9, element=element)
        refused(self.gears(reference="out"), "nothing turns 'out'", line=9, element=element)


# --- masses, shapes, worlds -----------------------------------------------------------------------


class TestLinks:
    def test_inertial(self):
        text = sdf(
            '<link name="a"><inertial><pose>1 2 3 0 0 0</pose><mass>4</mass><inertia><ixx>5</ixx>'
            "<ixy>0.1</ixy><ixz>0.2</ixz><iyy>6</iyy><iyz>0.3</iyz><izz>7</izz></inertia>"
            "</inertial></link>"
        )
        found = read(text).links[1].inertial
        assert found.mass == 4.0
        assert found.inertia == (5.0, 0.1, 0.2, 6.0, 0.3, 7.0)
        assert found.origin.xyz == (1.0, 2.0, 3.0)

    def test_inertial_relative_to_a_frame(self):
        text = sdf(
            '<frame name="f"><pose>0 0 2 0 0 0</pose></frame>',
            '<link name="a"><pose>1 0 0 0 0 0</pose><inertial><pose relative_to="f">0 0 1 0 0 0'
            "</pose><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia>"
            "</inertial></link>",
        )
        assert read(text).links[1].inertial.origin.xyz == (-1.0, 0.0, 3.0)

    def test_defaults_of_sdf_are_taken_and_told(self):
        found = suspected(sdf(link("a", more="")), "no <inertial>", line=3, element="link 'a'")
        assert found.links[1].inertial.mass == 1.0
        text = sdf(link("a", more="<inertial><mass>2</mass></inertial>"))
        found = suspected(text, "<ixx>, <iyy>, <izz>", line=3, element="link 'a'")
        assert found.links[1].inertial.inertia == (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)

    def test_what_is_fixed_to_the_world_needs_no_inertial(self):
        text = sdf(link("a", more=""), joint("w", "fixed", "world", "a", ""))
        assert read(text, strict=True).links[1].inertial is None

    def test_inertia_from_shapes(self):
        """A box of 1 x 2 x 3 m and a ball beside it: by hand, with Steiner."""
        shapes = (
            '<collision name="c"><density>10</density><geometry><box><size>1 2 3</size></box>'
            "</geometry></collision>"
            '<collision name="d"><pose>2 0 0 0 0 0</pose><geometry><sphere><radius>0.5</radius>'
            "</sphere></geometry></collision>"
        )
        text = sdf(
            f'<link name="a"><inertial auto="true"><density>20</density></inertial>{shapes}</link>'
        )
        found = read(text).links[1].inertial
        box, ball = 60.0, 20 * 4 / 3 * math.pi / 8
        mass = box + ball
        x = ball * 2 / mass
        assert found.mass == pytest.approx(mass, rel=1e-14)
        assert found.origin.xyz == pytest.approx((x, 0, 0), rel=1e-14)
        yy = box * (1 + 9) / 12 + 0.1 * ball + box * x**2 + ball * (2 - x) ** 2
        assert found.inertia[0] == pytest.approx(box * 13 / 12 + 0.1 * ball, rel=1e-13)
        assert found.inertia[3] == pytest.approx(yy, rel=1e-13)
        scaled = read(text.replace("<density>20", "<mass>1</mass><density>20")).links[1].inertial
        assert scaled.mass == pytest.approx(1.0, rel=1e-14)
        assert scaled.inertia[3] == pytest.approx(yy / mass, rel=1e-13)
        refused(text.replace("sphere", "mesh"), "<uri>", line=3, element="link 'a'")

    def test_shapes(self):
        text = sdf(
            '<link name="a">'
            + UNIT
            + '<visual name="v"><pose>1 0 0 0 0 0</pose><geometry><cylinder><radius>0.1</radius>'
            "<length>2</length></cylinder></geometry><material><diffuse>1 0 0 0.5</diffuse>"
            '</material></visual><collision name="c"><geometry><mesh><uri>meshes/a.stl</uri>'
            "<scale>1 1 2</scale></mesh></geometry></collision>"
            '<collision name="p"><geometry><plane><normal>1 0 0</normal></plane></geometry>'
            '</collision><visual name="h"><geometry><heightmap/></geometry></visual></link>'
        )
        one, two, three = read(text).links[1].shapes
        assert (one.role, one.kind, one.size, one.name) == ("visual", "cylinder", (0.1, 2.0), "v")
        assert (one.origin.xyz, one.rgba) == ((1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.5))
        assert (two.kind, two.size, two.file) == ("mesh", (1.0, 1.0, 2.0), "meshes/a.stl")
        assert np.array(three.origin.rotation)[:, 2] == pytest.approx((1, 0, 0))

    @pytest.mark.parametrize(
        ("word", "said"),
        [
            ("<gravity>false</gravity>", "gravity is switched off"),
            ("<kinematic>1</kinematic>", "<kinematic>"),
            ("<velocity_decay><linear>0.1</linear></velocity_decay>", "<velocity_decay>"),
            ("<inertia/>", "<inertia> is not known"),
        ],
    )
    def test_what_a_simulator_would_do_is_warned_of(self, word, said):
        suspected(sdf(link("a", more=UNIT + word)), said, line=3, element="link 'a'")

    def test_fluids(self):
        fluid = "<fluid_added_mass><xx>1</xx></fluid_added_mass></inertial>"
        text = sdf(link("a", more=UNIT.replace("</inertial>", fluid)))
        suspected(text, "<fluid_added_mass>", line=3, element="link 'a'")


WORLD = "\n".join(
    [
        '<sdf version="1.10"><world name="w"><gravity>0 0 -1.62</gravity>',
        f'<model name="table"><static>1</static>{link("top", "0 0 1 0 0 0")}</model>',
        f'<model name="arm"><pose>0 0 0.5 0 0 0</pose>{link("base")}{link("tip", "0 0 1 0 0 0")}',
        joint("hinge", "revolute", "base", "tip", "0 1 0") + "</model>",
        joint("bolt", "fixed", "table::top", "arm::base", ""),
        "</world></sdf>",
    ]
)


class TestWorlds:
    def test_several_models_are_one_robot_unless_one_is_named(self):
        found = suspected(WORLD, "2 models: 'table', 'arm'", "name='arm'", line=1, element="<sdf>")
        assert found == read(WORLD, name="w")
        refused(WORLD, "no model 'am'", "did you mean 'arm'?", line=1, element="<sdf>", name="am")

    def test_several_models_without_a_world(self):
        models = "".join(f'<model name="{name}">{link("l")}</model>' for name in "ab")
        text = f'<sdf version="1.6">{models}</sdf>'
        found = suspected(text, "2 models: 'a', 'b'", line=1, element="<sdf>")
        assert [each.name for each in found.links] == ["world", "a::l", "b::l"]
        assert (found.name, read(text, name="b").name) == ("default", "b")

    def test_models_of_several_worlds_are_chosen(self):
        world = f'<world name="{{}}"><model name="m">{link("l")}</model></world>'
        text = f'<sdf version="1.6">{world.format("u")}\n{world.format("v")}</sdf>'
        with pytest.warns(DescriptionWarning, match=r"<text>:2: .*read as 'm_1'"):
            assert read(text, name="v").name == "v"
        with pytest.raises(DescriptionError) as caught:
            read(text)
        assert "'m', 'm_1', in 2 places" in str(caught.value)

    def test_models_of_one_name_are_told_apart(self):
        model = f'<model name="m"><pose>{{}} 0 0 0 0 0</pose>{link("l")}</model>'
        text = f'<sdf version="1.6">{model.format(1)}\n{model.format(2)}</sdf>'
        with pytest.warns(DescriptionWarning, match="called 'm'; this one is read as 'm_1'"):
            found = read(text, name="m_1")
        assert named(found.joints, "floating_base").origin.xyz == (2.0, 0.0, 0.0)
        with pytest.warns(DescriptionWarning):
            assert [each.name for each in read(text).links] == ["world", "m::l", "m_1::l"]

    def test_scenery_that_is_not_there_is_left_out(self, tmp_path):
        include = "<include><uri>model://{}</uri></include>"
        model = f'<model name="m">{link("l")}</model>'
        path = tmp_path / "worlds" / "w.sdf"
        path.parent.mkdir()
        scenery = include.format("sun") + include.format("ground_plane")
        path.write_text(f'<sdf version="1.6"><world name="w">{scenery}{model}</world></sdf>')
        with pytest.warns(DescriptionWarning, match=r"no model://\w+ beside the file") as caught:
            found = read(path)
        assert len(caught) == 2
        assert [each.name for each in found.links] == ["world", "l"]
        assert read(path, name="m", strict=True) == found
        for name in ("sun", "worlds/ground_plane"):
            (tmp_path / name).mkdir()
            light = '<sdf version="1.6"><light name="s"/></sdf>'
            (tmp_path / name / "model.sdf").write_text(light)
        with pytest.warns(DescriptionWarning, match="3 models: 'sun', 'ground_plane', 'm'"):
            assert [each.name for each in read(path).links] == ["world", "m::l"]
        path.write_text(path.read_text().replace("model://sun", "model://moon"))
        with pytest.raises(DescriptionError, match="there is no 'model://moon'"):
            read(path)

    def test_one_of_several(self):
        alone = WORLD.replace(joint("bolt", "fixed", "table::top", "arm::base", ""), "")
        description = read(alone, name="arm")
        assert (description.name, description.gravity) == ("arm", (0.0, 0.0, -1.62))
        assert [each.name for each in description.links] == ["world", "base", "tip"]
        assert named(description.joints, "floating_base").origin.xyz == (0.0, 0.0, 0.5)
        assert rm.load(alone, name="arm").nv == 7

    def test_a_joint_to_another_model_is_told(self):
        with pytest.warns(DescriptionWarning, match="ties 'arm' to another model.*name='w'"):
            read(WORLD, name="arm")

    def test_the_whole_world(self):
        description = read(WORLD, name="w", strict=True)
        assert [each.name for each in description.links] == [
            *("world", "table::top", "arm::base", "arm::tip")
        ]
        model = build(description)
        assert (model.nv, model.dof_names) == (1, ("arm::hinge",))
        np.testing.assert_allclose(
            rm.frame_pose(model, [math.pi / 2], "arm::tip")[:3, 3], [0, 0, 1.5], atol=1e-15
        )

    def test_the_only_model_needs_no_name(self):
        text = (
            '<sdf version="1.5"><world name="w"><physics><gravity>0 0 1</gravity></physics>'
            f'<model name="a">{link("l")}</model></world></sdf>'
        )
        description = read(text)
        assert (description.name, description.gravity) == ("a", (0.0, 0.0, 1.0))

    def test_a_name_for_other_formats(self):
        urdf = '<robot name="r"><link name="a"/></robot>'
        assert read(urdf, name="r").name == "r"
        with pytest.raises(DescriptionError, match="it holds 'r'"):
            read(urdf, name="s")


# --- includes -------------------------------------------------------------------------------------


def including(uri, more=""):
    return sdf(f"<include><uri>{uri}</uri>{more}</include>", link("own"))


@pytest.fixture
def folder(tmp_path):
    """robots/main is for what a test includes; robots/wheel is a model, secret.sdf out of reach."""
    main = tmp_path / "robots" / "main"
    wheel = tmp_path / "robots" / "wheel"
    for each in (main / "parts", wheel):
        each.mkdir(parents=True)
    part = sdf(link("l", "0 0 1 0 0 0"), model='name="part"')
    for path in (main / "parts" / "p.sdf", wheel / "model.sdf", tmp_path / "secret.sdf"):
        path.write_text(part)
    return main


def include(folder, uri, more=""):
    path = folder / "model.sdf"
    path.write_text(including(uri, more))
    return path


class TestIncludes:
    @pytest.mark.parametrize(
        "uri", ["parts/p.sdf", "file://parts/p.sdf", "model://wheel", "model://wheel/model.sdf"]
    )
    def test_what_is_read(self, folder, uri):
        path = include(folder, uri, "<name>w</name><pose>1 0 0 0 0 0</pose>")
        description = read(path, strict=True)
        assert [each.name for each in description.links] == ["world", "w::l", "own"]
        found = named(description.joints, "floating_base_w::l")
        assert found.origin.xyz == (1.0, 0.0, 1.0)

    def test_static_and_merged(self, folder):
        static = read(include(folder, "model://wheel", "<static>true</static>"))
        assert named(static.joints, "wheel::l").type == "fixed"
        path = include(folder, "model://wheel", "<pose>1 0 0 0 0 0</pose>")
        path.write_text(path.read_text().replace("<include>", '<include merge="true">'))
        merged = read(path)
        assert [each.name for each in merged.links] == ["world", "l", "own"]
        assert named(merged.joints, "floating_base_l").origin.xyz == (1.0, 0.0, 1.0)

    @pytest.mark.parametrize(
        ("uri", "said"),
        [
            ("../../secret.sdf", "no absolute path and no '..'"),
            ("parts/../../wheel/model.sdf", "no absolute path and no '..'"),
            ("/etc/passwd", "no absolute path"),
            ("file:///etc/passwd", "no absolute path"),
            ("model://../secret.sdf", "no '..'"),
            ("model:///etc/passwd", "no absolute path"),
            ("http://example.org/m.sdf", "is not read"),
            ("https://fuel.gazebosim.org/1.0/a/models/b", "is not read"),
            ("fuel://a/b", "is not read"),
            ("parts\\p.sdf", "is not read"),
            ("nothing.sdf", "there is no 'nothing.sdf'"),
            ("model://nothing", "there is no 'model://nothing'"),
            ("parts", "is no file"),
            ("model.sdf", "includes itself"),
        ],
    )
    def test_what_is_refused(self, folder, uri, said):
        refused(include(folder, uri), said, line=3, element="model 'm'")

    @pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links here")
    def test_links_out_are_refused(self, folder):
        (folder / "out.sdf").symlink_to(folder.parents[1] / "secret.sdf")
        refused(include(folder, "out.sdf"), "symbolic link", line=3, element="model 'm'")
        (folder / "up").symlink_to(folder.parents[1])
        refused(include(folder, "up/secret.sdf"), "symbolic link", line=3, element="model 'm'")
        (folder.parent / "fake").symlink_to(folder.parents[1])
        refused(include(folder, "model://fake/secret.sdf"), "symbolic", line=3, element="model 'm'")
        (folder.parent / "wheel" / "model.config").write_text(
            '<model><sdf version="1.6">../../secret.sdf</sdf></model>'
        )
        refused(include(folder, "model://wheel"), "names no SDF file", line=3, element="model 'm'")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
    def test_pipes_are_refused(self, folder):
        os.mkfifo(folder / "pipe.sdf")
        refused(include(folder, "pipe.sdf"), "is no file", line=3, element="model 'm'")

    def test_texts_have_no_folder(self):
        refused(including("model://wheel"), "save it as a file", line=3, element="model 'm'")

    def test_circles_and_masses_of_includes(self, folder):
        path = include(folder, "a.sdf")
        (folder / "a.sdf").write_text(including("model.sdf").replace('"m"', '"a"'))
        refused(path, "includes itself", line=3, element="model 'a'")
        for n in range(20):
            (folder / f"{n}.sdf").write_text(including(f"{n + 1}.sdf"))
        refused(include(folder, "0.sdf"), "16 deep", line=3, element="model 'm'")
        part = "<include><uri>{}.sdf</uri><name>{}</name></include>"
        for n in range(12):
            (folder / f"{n}.sdf").write_text(
                sdf(*(part.format(n + 1, i) for i in range(10)), link("l"))
            )
        (folder / "12.sdf").write_text(sdf(link("l")))
        refused(include(folder, "0.sdf"), "1000 includes", line=4, element="model 'm'")

    def test_the_newest_file_that_model_config_lists(self):
        description = read(DATA / "frames" / "model.sdf")
        assert "arm::upper" in {each.name for each in description.links}
        assert named(description.links, "arm::upper").source.file.endswith("arm/model.sdf")


# --- old files ------------------------------------------------------------------------------------


class TestALinkCalledWorld:
    """From SDF 1.7 on no link may be called so; before, it is what joints mean by the name."""

    def text(self, more, version="1.6"):
        return sdf(
            "<pose>0 0 1 0 0 0</pose>",
            link("world", more=more),
            link("a"),
            joint("j", "prismatic", "world", "a"),
            version=version,
        )

    def test_that_stands_for_the_world(self):
        text = self.text("<pose>0 0 2 0 0 0</pose>")
        found = suspected(text, "stands for it", "'m::world'", line=4, element="link 'world'")
        assert [each.name for each in found.links] == ["world", "m::world", "a"]
        fixed = named(found.joints, "m::world")
        assert (fixed.type, fixed.parent, fixed.origin.xyz) == ("fixed", "world", (0, 0, 3))
        assert named(found.joints, "j").parent == "m::world"
        assert build(found).nv == 1

    def test_that_is_one_of_its_own(self):
        found = suspected(self.text(UNIT), "one of its own", line=4, element="link 'world'")
        assert named(found.joints, "floating_base").child == "m::world"
        assert build(found).nv == 7

    def test_is_refused_in_new_files(self):
        text = self.text(UNIT, "1.7")
        refused(text, "cannot be called 'world'", line=4, element="link 'world'")


def test_a_comment_before_the_declaration():
    text = f'<!-- a\n licence -->\n<?xml version="1.0"?>\n{sdf(link("a"), link("b", "1"))}'
    refused(text, "six numbers, got 1", line=7, element="link 'b'")


# --- refusals -------------------------------------------------------------------------------------


class TestRefusals:
    @pytest.mark.parametrize(
        ("parts", "said", "line", "element"),
        [
            ([link("a"), joint("j", "revolute", "a", "c")], "'c'", 4, "joint 'j'"),
            ([link("a"), joint("j", "revolute", "a", "a")], "the same link", 4, "joint 'j'"),
            (
                [link("a"), joint("j", "revolute", "a", "world")],
                "cannot be the world",
                4,
                "joint 'j'",
            ),
            (
                [link("a"), joint("j", "revolut", "a", "a")],
                "did you mean 'revolute'",
                4,
                "joint 'j'",
            ),
            (
                [link("a"), joint("j", "piston", "a", "a")],
                "prismatic and a revolute",
                4,
                "joint 'j'",
            ),
            ([link("a"), joint("j", "fixed", "j", "a", "")], "its own parent", 4, "joint 'j'"),
            ([link("world")], "cannot be called 'world'", 3, "link 'world'"),
            ([link("a"), link("a")], "another link has this name", 4, "link 'a'"),
            ([link("a", "1 2 3")], "needs six numbers, got 3", 3, "link 'a'"),
            ([link("a", "1 2 3 0 0 x")], "'x' is not a number", 3, "link 'a'"),
            ([link("a", more="<inertial><mass>-1</mass></inertial>")], "negative", 3, "link 'a'"),
            (["<link>" + UNIT + "</link>"], "'name' is missing", 3, "model 'm'"),
            ([], "no link in it", 2, "model 'm'"),
        ],
    )
    def test_elements(self, parts, said, line, element):
        refused(sdf(*parts), said, line=line, element=element)

    @pytest.mark.parametrize(
        ("kind", "inner", "said"),
        [
            ("revolute", "", "needs <axis>"),
            ("universal", "<axis><xyz>1 0 0</xyz></axis>", "needs <axis2>"),
            ("screw", "<axis><xyz>1 0 0</xyz></axis>", "needs <screw_thread_pitch>"),
            (
                "screw",
                "<thread_pitch>0</thread_pitch><axis><xyz>1 0 0</xyz></axis>",
                "cannot be 0",
            ),
            ("revolute", "<axis><xyz>0 0 0</xyz></axis>", "the axis is zero"),
            (
                "revolute",
                "<axis><limit><lower>2</lower><upper>1</upper></limit></axis>",
                "lower limit 2 is above",
            ),
            (
                "revolute",
                '<axis><mimic joint="no"><multiplier>1</multiplier></mimic></axis>',
                "'no'",
            ),
            ("revolute", '<axis><mimic joint="b"/></axis>', "cannot be mimicked: it is a link"),
            ("revolute", '<axis><xyz expressed_in="no">0 0 1</xyz></axis>', "'no'"),
            ("revolute", "<axis><xyz>0 0</xyz></axis>", "needs three numbers"),
        ],
    )
    def test_joints(self, kind, inner, said):
        text = sdf(link("a"), link("b"), joint("j", kind, "a", "b", "", inner))
        refused(text, said, line=5, element="joint 'j'")

    def test_frames_in_circles(self):
        frame = '<frame name="{}" {}="{}"/>'
        text = sdf(
            link("a"), frame.format("f", "attached_to", "g"), frame.format("g", "attached_to", "f")
        )
        refused(text, "'f', 'g'", "round in a circle", line=4, element="frame 'f'")
        placed = '<link name="{}"><pose relative_to="{}"/>' + UNIT + "</link>"
        text = sdf(placed.format("a", "b"), placed.format("b", "a"))
        refused(text, "placed in each other", line=3, element="link 'a'")
        refused(sdf(placed.format("a", "a")), "placed in itself", line=3, element="link 'a'")

    @pytest.mark.parametrize(
        ("version", "said"),
        [("1.0", "before 1.2"), ("x", "write it as"), ("1", "write it as")],
    )
    def test_versions(self, version, said):
        refused(sdf(link("a"), version=version), said, line=1, element="<sdf>")

    def test_versions_to_come_and_none(self):
        suspected(sdf(link("a"), version="1.13"), "read as 1.12", line=1, element="<sdf>")
        text = sdf(link("a")).replace(' version="1.11"', "")
        suspected(text, "no version", line=1, element="<sdf>")

    def test_nothing_and_too_deep(self):
        refused('<sdf version="1.7"/>', "no <model>", line=1, element="<sdf>")
        deep = '<model name="n">' * 100 + link("l") + "</model>" * 100
        refused(sdf(deep), "64 deep", line=3, element="model 'n'")

    def test_unknown_words(self):
        suspected(sdf(link("a"), "<jont/>"), "<jont>", "'joint'", line=4, element="model 'm'")
        text = sdf(link("a"), "<drake:joint name='j'/>")
        suspected(text, "<drake:joint>", line=4, element="model 'm'")

    def test_a_thousand_links_in_any_order(self):
        """Each link stands in the next one, the last in the file first: no step is repeated."""
        parts = [
            f'<link name="l{n}"><pose relative_to="l{n - 1}">0 0 0.1 0 0 0</pose>{UNIT}</link>'
            for n in range(1, 1000)
        ]
        joints = [joint(f"j{n}", "revolute", f"l{n - 1}", f"l{n}", "0 1 0") for n in range(1, 1000)]
        text = sdf(*reversed(joints), *reversed(parts), link("l0"))
        description = read(text, strict=True)
        assert len(description.joints) == 1000
        assert all(
            each.origin.xyz == (0, 0, 0.1)
            for each in description.joints[:-1]
            if each.type == "revolute"
        )


# --- mutations ------------------------------------------------------------------------------------

VALUES = (
    "",
    "  ",
    "nan",
    "-inf",
    "1e999",
    "0",
    "-1",
    "true",
    "x",
    "0 0 0",
    "1 2 3 4 5 6",
    "9" * 400,
)
VALUES += ("world", "__model__", "::", "a::b", "1e300 0 0 0 0 1e300", "1,5", "٣")
KINDS = ("revolute", "prismatic", "screw", "fixed", "ball", "universal", "revolute2", "gearbox")


def sources_of_mutants():
    gears = TestGearboxes()
    kinds = ("ball", "universal", "revolute", "prismatic")
    second = "</axis><axis2><xyz>0 1 0</xyz></axis2></joint>"
    return [
        (DATA / "frames" / "old.sdf").read_text(),
        WORLD,
        four_bar("crank", "elbow", "rocker", "close"),
        four_bar("rocker", "crank", "elbow", "close", kinds=kinds).replace(
            "</axis></joint>", second
        ),
        gears.gears(),
        gears.gears(reference="motor", parent="base"),
        *(to_sdf(rm.robots.load(name).description)[0] for name in ("four_bar", "belt_leg")),
    ]


def mutate(root, rng):
    """Delete, repeat, move, rename or rewrite something."""
    elements = list(root.iter())
    one, other = rng.choice(elements), rng.choice(elements)
    names = [each.get("name") for each in elements if each.get("name")]
    texts = [each.text for each in elements if (each.text or "").strip()]
    match rng.randrange(8):
        case 0 if one is not root:
            one.getparent().remove(one)
        case 1 if one is not root:
            one.getparent().append(copy.deepcopy(one))
        case 2:
            other.append(copy.deepcopy(one))
        case 3:
            one.text = rng.choice([*VALUES, *names, *texts])
        case 4 if one.attrib:
            one.set(rng.choice(list(one.attrib)), rng.choice([*VALUES, *names, *KINDS]))
        case 5 if one.attrib:
            del one.attrib[rng.choice(list(one.attrib))]
        case 6:
            one.tag = other.tag
        case 7:
            joint = rng.choice([each for each in elements if each.tag == "joint"] or [one])
            joint.set("type", rng.choice(KINDS))


def check_mutants(seed, count):
    """What comes out is a description that can be written, or an error that says where."""
    rng = random.Random(seed)
    parsed = [etree.fromstring(text.encode()) for text in sources_of_mutants()]
    refusals = []
    for _ in range(count):
        root = copy.deepcopy(rng.choice(parsed))
        for _ in range(rng.choice([1, 1, 2, 4, 8])):
            mutate(root, rng)
        text = etree.tostring(root, encoding="unicode")
        try:
            description = read(text)
            build(description)
        except DescriptionError as error:
            refusals.append(error)
            continue
        again, lost = to_sdf(description)
        links = {each.name for each in read(again).links}
        assert lost or links >= {each.name for each in description.links}
    assert all(each.line is not None and "\n" not in str(each) for each in refusals)
    return len(refusals)


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_mutants_are_read_or_refused():
    assert 40 < check_mutants(0, 150) < 110


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("seed", [1, 2])
def test_more_mutants_are_read_or_refused(seed):
    assert check_mutants(seed, 1000)


class TestWhatMutantsFound:
    def test_two_links_of_one_name_under_a_gearbox(self):
        """The way up from a link, followed by name, went round for ever."""
        frame = '<frame name="motor" attached_to="out"/>'
        text = TestGearboxes().gears().replace("</model>", f"{frame}</model>")
        refused(text, "another link has this name", line=10, element="frame 'motor'")

    def test_many_links_of_one_name(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(DescriptionError, match="another link has this name"):
                read(sdf(*(link("a") for _ in range(5000))))

    def test_models_that_are_placed_by_each_other(self):
        """One after the other, more than there may be calls of functions in each other."""
        count = 1000
        model = '<model name="m{}" placement_frame="l"><pose relative_to="m{}">1 0 0 0 0 0</pose>{}'
        inner = link("l", "0 1 0 0 0 0") + "</model>"
        parts = [model.format(n, n + 1, inner) for n in range(count)]
        found = read(sdf(*parts, f'<model name="m{count}">{link("l")}</model>'))
        origin = named(found.joints, "floating_base_m0::l").origin.xyz
        assert origin == pytest.approx((count, 1 - count, 0), abs=1e-9)

    def test_placement_frames_must_stand_in_their_model(self, folder):
        path = include(folder, "parts/p.sdf", "<placement_frame>own</placement_frame>")
        path.write_text(path.read_text().replace("<include>", '<include merge="true">'))
        refused(path, "'own' does not stand in the model", line=3, element="model 'm'")
        text = sdf(
            '<model name="n" placement_frame="f"><frame name="f"><pose relative_to="g"/></frame>'
            f'<frame name="g"><pose relative_to="f"/></frame>{link("l")}</model>'
        )
        with pytest.raises(DescriptionError, match="'n::f', 'n::g' are placed in each other"):
            read(text)

    def test_too_many_joints_for_a_gearbox(self):
        count = 110
        gear = joint(
            *("g", "gearbox", "l0", f"l{count}"),
            more="<axis2><xyz>0 0 1</xyz></axis2>"
            "<gearbox_reference_body>l1</gearbox_reference_body>",
        )
        chain = (joint(f"j{n}", "revolute", f"l{n}", f"l{n + 1}") for n in range(count))
        text = sdf(*(link(f"l{n}") for n in range(count + 1)), *chain, gear)
        refused(text, "109 joints lie between", line=2 * count + 4, element="joint 'g'")

    def test_a_world_whose_name_is_blank(self):
        found = read(
            f'<sdf version="1.9"><world name="  "><model name="m">{link("l")}</model>'
            f'<frame name="f"/></world></sdf>',
            name="m",
        )
        assert found.name == "m"


# --- Cassie ---------------------------------------------------------------------------------------

CASSIE = (
    Path(next(iter(find_spec("cmeel").submodule_search_locations)) if find_spec("cmeel") else "")
    / ".."
    / "cmeel.prefix"
    / "share/example-robot-data/robots/cassie_description/robots"
)


@pytest.mark.skipif(not CASSIE.is_dir(), reason="example-robot-data is not installed")
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize(
    ("file", "nv", "loops", "couplings"),
    [
        ("cassie.sdf", 18, 6, 10),
        pytest.param("cassie_v2.sdf", 18, 4, 0, marks=pytest.mark.slow),
        pytest.param("cassie_wo_gearbox_spring.sdf", 13, 4, 0, marks=pytest.mark.slow),
        ("cassie_reduced.sdf", 11, 2, 0),  # its feet are rigid by a misalignment of 0.15 %
        pytest.param("cassie_simple.sdf", 11, 2, 0, marks=pytest.mark.slow),
    ],
)
def test_cassie(file, nv, loops, couplings):
    model = rm.load(CASSIE / file)
    assert (model.nv, len(model.loops), len(model.couplings)) == (nv, loops, couplings)
    rng = np.random.default_rng(0)
    q = model.neutral()
    assert np.max(np.abs(model.residual(q))) < 1e-10
    v, a = rng.normal(size=(2, nv))
    for backend in ("numpy", "compiled"):
        tau = rm.rnea(model, q, v, a, backend=backend)
        found = rm.aba(model, q, v, tau, backend=backend)
        np.testing.assert_allclose(found, a, rtol=0, atol=1e-10)
