"""The SDF reader: frames against Drake's reading of the same files, every joint, every refusal."""

import itertools
import json
import math

import numpy as np
import pytest
from cases import few
from scipy.spatial.transform import Rotation
from sdf_texts import (
    CASSIE,
    DATA,
    UNIT,
    four_bar,
    joint,
    link,
    named,
    refused,
    sdf,
    warned,
)

import robomodel as rm
from robomodel.description import (
    IDENTITY,
    Limits,
    Mimic,
    Pose,
)
from robomodel.model import build
from robomodel.parsers import read

# ---- frames, against Drake -----------------------------------------------------------------------

DRAKE = json.loads((DATA / "drake.json").read_text())["files"]


def sources():
    old = (DATA / "frames" / "old.sdf").read_text()
    older = old.replace('version="1.6"', 'version="1.4"')
    older = older.replace("<use_parent_model_frame>1</use_parent_model_frame>", "")
    return {"model": DATA / "frames" / "model.sdf", "old": old, "older": older}


@pytest.mark.slow_cases("model")
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
    M = rm.crba(model, q, backend="numpy")
    for name, block in said["inertia"].items():
        names = [full(name), full(name) + "::2"][: len(block)]
        rows = [model.dof_names.index(each) for each in names]
        np.testing.assert_allclose(M[np.ix_(rows, rows)], block, rtol=1e-11, err_msg=name)


# ---- poses by hand -------------------------------------------------------------------------------


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
    newer = warned(text.replace("1.6", "1.7"), "'frame'", line=4, element="link 'b'")
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


# ---- the tree ------------------------------------------------------------------------------------


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
        found = warned(text, "cannot move", "left out", line=6, element="joint 'j'")
        assert not found.loops
        again = text.replace('"j" type="revolute"', '"j" type="fixed"')
        assert not read(again, strict=True).loops

    def test_limits_of_a_loop_are_warned_of(self):
        limits = "</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis>"
        text = four_bar("crank", "elbow", "rocker", "close").replace("</xyz></axis>", limits)
        warned(text, "closes a loop", "limits", line=6, element="joint 'close'")

    @pytest.mark.parametrize("limit", ["effort", "velocity"])
    def test_other_limits_of_a_loop_are_warned_of(self, limit):
        limits = f"</xyz><limit><{limit}>5</{limit}></limit></axis>"
        text = four_bar("crank", "elbow", "rocker", "close").replace("</xyz></axis>", limits)
        warned(text, "closes a loop", "limits", line=6, element="joint 'close'")
        placeholder = text.replace(f"<{limit}>5<", f"<{limit}>0<")
        assert read(placeholder, strict=True).loops

    @pytest.mark.parametrize("cut", [False, True])
    @pytest.mark.parametrize(
        ("inner", "more", "kept"),
        [
            ("", "<drake:rotor_inertia>1e-4</drake:rotor_inertia>"
             "<drake:gear_ratio>10</drake:gear_ratio>", "armature"),
            ("", '<robomodel:motor effort="3"/>', "motor"),
            ("<initial_position>0.2</initial_position>", "", "initial"),
        ],
    )  # fmt: skip
    def test_what_loops_do_not_keep_stays_with_the_joint(self, inner, more, kept, cut):
        """In the tree, or, of a joint that must close a loop, at a link that the loop fixes."""
        if cut:
            word = "must_be_loop_joint"
            more += f"<physics><simbody><{word}>1</{word}></simbody></physics>"
        plain = four_bar("crank", "elbow", "rocker", "close")
        last = plain[plain.index('<joint name="close"') :]
        last = last.replace("</xyz></axis>", f"</xyz>{inner}</axis>{more}", 1)
        text = plain[: plain.index('<joint name="close"')] + last
        spaces = 'xmlns:drake="drake.mit.edu" xmlns:robomodel="urn:robomodel" version='
        description = read(text.replace("version=", spaces, 1), strict=True)
        joint_ = named(description.joints, "close")
        assert getattr(joint_, kept)
        assert [loop.type for loop in description.loops] == ["fixed" if cut else "revolute"]
        if kept == "armature":  # the coupler of a parallelogram does not turn, its rocker does
            masses = []
            for model in (build(description), build(read(plain))):
                q = model.configuration({"crank": 0.4})
                rate = float(model.joint_velocities(q, np.ones(1))["crank"])
                masses.append(rm.crba(model, q, backend="numpy")[0, 0] / rate**2)
            assert masses[0] - masses[1] == pytest.approx(0.01)

    def test_joints_with_transmissions_are_in_the_tree(self):
        words = (
            '<robomodel:transmission name="t"><type>SimpleTransmission</type><joint name="close"/>'
            '<actuator name="m"><mechanicalReduction>9</mechanicalReduction></actuator>'
            "</robomodel:transmission></model>"
        )
        text = four_bar("crank", "elbow", "rocker", "close").replace("</model>", words)
        text = text.replace("version=", 'xmlns:robomodel="urn:robomodel" version=', 1)
        assert named(read(text, strict=True).joints, "close")

    @pytest.mark.parametrize("order", [*itertools.permutations(("turn", "thread", "guide"))])
    def test_joints_with_limits_are_in_the_tree(self, order):
        """A nut on a spindle, which a guide with limits keeps from turning."""
        joints = {
            "turn": joint("turn", "revolute", "base", "spindle"),
            "thread": joint("thread", "screw", "spindle", "nut",
                            more="<screw_thread_pitch>0.01</screw_thread_pitch>"),
            "guide": joint("guide", "prismatic", "base", "nut").replace(
                "</xyz></axis>", "</xyz><limit><lower>-0.1</lower><upper>0.2</upper></limit></axis>"
            ),
        }  # fmt: skip
        text = sdf(
            link("base"), link("spindle"), link("nut"), joint("w", "fixed", "world", "base", ""),
            *(joints[name] for name in order),
        )  # fmt: skip
        assert named(read(text, strict=True).joints, "guide").limits == Limits(-0.1, 0.2)

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


# ---- joints --------------------------------------------------------------------------------------


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

    def test_empty_numbers_are_left_at_their_defaults(self):
        limit = "<limit><upper>1</upper><velocity/><effort> </effort></limit>"
        text = sdf(
            link("a"),
            link("b"),
            joint("j", "revolute", "a", "b").replace("</xyz>", f"</xyz>{limit}"),
        )
        found = warned(text, "<velocity> is empty", "likewise", line=5, element="joint 'j'")
        assert named(found.joints, "j").limits == Limits(upper=1.0)

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


# ---- masses, shapes, worlds ----------------------------------------------------------------------


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
        found = warned(sdf(link("a", more="")), "no <inertial>", line=3, element="link 'a'")
        assert found.links[1].inertial.mass == 1.0
        text = sdf(link("a", more="<inertial><mass>2</mass></inertial>"))
        found = warned(text, "<ixx>, <iyy>, <izz>", line=3, element="link 'a'")
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
            ("<collision><geometry><heightmap/></geometry></collision>", "<heightmap> is no shape"),
        ],
    )
    def test_what_a_simulator_would_do_is_warned_of(self, word, said):
        warned(sdf(link("a", more=UNIT + word)), said, line=3, element="link 'a'")

    def test_fluids(self):
        fluid = "<fluid_added_mass><xx>1</xx></fluid_added_mass></inertial>"
        text = sdf(link("a", more=UNIT.replace("</inertial>", fluid)))
        warned(text, "<fluid_added_mass>", line=3, element="link 'a'")


# ---- old files -----------------------------------------------------------------------------------


def test_a_comment_before_the_declaration():
    text = f'<!-- a\n licence -->\n<?xml version="1.0"?>\n{sdf(link("a"), link("b", "1"))}'
    refused(text, "six numbers, got 1", line=7, element="link 'b'")


# ---- Cassie --------------------------------------------------------------------------------------


@pytest.mark.skipif(not CASSIE.is_dir(), reason="example-robot-data is not installed")
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize(
    ("file", "nv", "loops", "couplings"),
    [
        pytest.param("cassie.sdf", 18, 6, 10, marks=pytest.mark.slow),
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
