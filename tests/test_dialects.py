"""Loops and ties as other programs write them in and beside a URDF."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from texts import CLOSING, INERTIAL, four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.parsers import read

NUMPY = {"backend": "numpy"}


def gap(one, other, seeds=3, **options):
    """How much two models differ in mass matrix and bias at closed configurations of the first."""
    worst = 0.0
    for seed in range(seeds):
        q = one.random_configuration(seed)
        v = np.random.default_rng(seed).normal(size=one.nv)
        for function, arguments in ((rm.crba, (q,)), (rm.bias_force, (q, v))):
            ours, theirs = (function(m, *arguments, **NUMPY, **options) for m in (one, other))
            worst = max(worst, np.abs(ours - theirs).max() / (1 + np.abs(theirs).max()))
    return worst


def said(caught):
    return "\n".join(str(each.message) for each in caught)


# --- <loop_joint> ---------------------------------------------------------------------------------


def loop_joint(*inner, kind="continuous", first="link1", second="link2"):
    return (
        f'\n<loop_joint name="closing" type="{kind}">'
        f'<{first} link="coupler" xyz="1 0 0" rpy="0 0 0"/>'
        f'<{second} link="rocker" xyz="0.7 0 0"/>{"".join(inner)}</loop_joint>'
    )


class TestLoopJoints:
    @pytest.mark.parametrize("kind", ["continuous", "revolute", "spherical", "ball"])
    def test_they_are_loops(self, kind):
        axis = '<axis xyz="0 0 1"/>' if kind[0] in "cr" else ""
        ours = {"ball": "spherical"}.get(kind, kind)
        expected = loop("closing", ours, "coupler", "rocker", "1 0 0", "0.7 0 0", axis)
        (found,) = read(four_bar(closing=loop_joint(axis, kind=kind)), strict=True).loops
        (wanted,) = read(four_bar(closing=expected), strict=True).loops
        assert (found.type, found.axis) == (wanted.type, wanted.axis)
        assert (found.predecessor, found.successor) == (wanted.predecessor, wanted.successor)
        model = rm.load(four_bar(closing=loop_joint(axis, kind=kind)))
        assert gap(model, rm.load(four_bar(closing=expected))) == 0.0

    def test_frames_are_turned(self):
        text = loop_joint(kind="fixed").replace('rpy="0 0 0"', 'rpy="0 0 1.5707963267948966"')
        (found,) = read(four_bar(closing=text), strict=True).loops
        assert found.type == "fixed"
        np.testing.assert_allclose(
            found.predecessor.origin.rotation,
            Rotation.from_euler("z", 90, degrees=True).as_matrix(),
            atol=1e-15,
        )

    def test_a_hinge_without_an_axis_is_suspicious(self):
        with pytest.warns(rm.DescriptionWarning, match="has no <axis>; x of its frames"):
            (found,) = read(four_bar(closing=loop_joint())).loops
        assert found.axis == (1.0, 0.0, 0.0)

    def test_a_second_link1_as_in_the_documentation_of_isaac_sim(self):
        text = loop_joint(kind="spherical", second="link1")
        with pytest.warns(rm.DescriptionWarning, match="a second <link1> is read as <link2>"):
            (found,) = read(four_bar(closing=text)).loops
        assert (found.predecessor.link, found.successor.link) == ("coupler", "rocker")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (loop_joint(kind="screw"), "the type 'screw' is not known"),
            (loop_joint(kind="spherical", second="link3"), "needs <link2 link="),
            (loop_joint(kind="spherical").replace("rocker", "rokcer"), "did you mean 'rocker'"),
            (loop_joint(kind="spherical").replace("0.7 0 0", "0.7 0"), "needs three numbers"),
        ],
    )
    @pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
    def test_refusals(self, text, words):
        with pytest.raises(rm.DescriptionError) as caught:
            read(four_bar(closing=text))
        assert words in str(caught.value)
        assert caught.value.line == four_bar(closing="@").split("@")[0].count("\n") + 2


# --- frames that coincide -------------------------------------------------------------------------


def frame(name, parent, xyz, mass="1e-9"):
    weight = (
        f'<inertial><mass value="{mass}"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" '
        'izz="0"/></inertial>'
    )
    return link(name, weight) + joint(f"{name}_frame", parent, name, xyz, kind="fixed")


def closing(*suffixes, name="closing_pin", z="0"):
    ends = []
    for suffix in suffixes:
        height = "0.1" if suffix.endswith("_z") else "0"
        at = ("coupler", f"1 0 {height}") if suffix[1] in "1A" else ("rocker", f"0.7 0 {height}")
        ends.append(frame(name + suffix, *at))
    return "".join(ends)


class TestClosingFrames:
    def test_points(self):
        description = read(four_bar(closing=closing("_1", "_2")), strict=True)
        (found,) = description.loops
        assert (found.name, found.type) == ("closing_pin", "spherical")
        assert found.source.line == description.links[4].source.line
        expected = loop("closing_pin", "spherical", "coupler", "rocker", "1 0 0", "0.7 0 0", "")
        model = rm.load(four_bar(closing=closing("_1", "_2")))
        assert model.nv == 1
        assert gap(model, rm.load(four_bar(closing=expected))) < 1e-8  # frames of 1e-9 kg

    def test_hinges(self):
        text = four_bar(closing=closing("_1", "_2", "_1_z", "_2_z"))
        (found,) = read(text, strict=True).loops
        assert (found.type, found.axis) == ("revolute", (0.0, 0.0, 1.0))

    def test_mobility_is_mujocos(self):
        """The same program writes connect constraints into MJCF: a spatial linkage of balls."""
        mujoco = pytest.importorskip("mujoco")
        bodies = (
            link("crank"),
            link("rod"),
            link("arm"),
            joint("drive", "base", "crank", axis="0 0 1"),
            joint("ball", "crank", "rod", "0.3 0 0", kind="spherical"),
            joint("hinge", "base", "arm", "0.9 0 0.2", axis="0 1 0"),
            frame("closing_end_1", "rod", "0.8 0 0"),
            frame("closing_end_2", "arm", "0 0 0.4"),
        )
        weight = '<inertial pos="0.1 0.02 0" mass="1" diaginertia="0.01 0.02 0.025"/>'
        mjcf = f"""<mujoco><worldbody>
          <body name="crank">{weight}<joint name="drive" axis="0 0 1"/>
            <body name="rod" pos="0.3 0 0">{weight}<joint name="ball" type="ball"/>
              <site name="a" pos="0.8 0 0"/></body></body>
          <body name="arm" pos="0.9 0 0.2">{weight}<joint name="hinge" axis="0 1 0"/>
            <site name="b" pos="0 0 0.4"/></body></worldbody>
          <equality><connect site1="a" site2="b"/></equality></mujoco>"""
        simulated = mujoco.MjModel.from_xml_string(mjcf)
        data = mujoco.MjData(simulated)
        data.qpos[:] = [0.3, 0.7, 0.5, 0.1, 0.5, -0.4]
        mujoco.mj_forward(simulated, data)
        rank = np.linalg.matrix_rank(data.efc_J.reshape(data.nefc, simulated.nv))
        model = rm.load(robot(*bodies))
        assert model.nv == simulated.nv - rank == rm.load(mjcf).nv == 2

    def test_loops_that_name_the_frames_stand_instead(self):
        own = loop("mine", "revolute", "closing_pin_1", "closing_pin_2")
        text = four_bar(closing=closing("_1", "_2"))
        assert [each.name for each in read(text, extend=f"<robot>{own}</robot>").loops] == ["mine"]
        assert [each.name for each in read(four_bar(own, closing=closing("_1", "_2"))).loops] == [
            "mine"
        ]

    def test_half_a_pair(self):
        with pytest.warns(rm.DescriptionWarning, match="there is no frame 'closing_pin_2'"):
            assert not read(four_bar(closing=closing("_1"))).loops

    def test_links_that_weigh_something_are_no_frames(self):
        ends = frame("closing_pin_1", "coupler", "1 0 0", "0.2")
        assert not read(four_bar(closing=ends + closing("_2").replace("_pin_2", "_pin_3"))).loops

    def test_frames_of_which_another_file_speaks(self):
        text = four_bar(closing=closing("_A", "_B", name="closedloop1"))
        with pytest.warns(rm.DescriptionWarning, match="give it: extend='robot.yaml'") as caught:
            assert not read(text).loops
        assert len(caught) == 1


# --- YAML beside a URDF ---------------------------------------------------------------------------

ENDS = closing("_A", "_B", name="closedloop1")
EXTENDED = """closed_loop: [['closedloop1_A', 'closedloop1_B']]
type: ['{kind}']
name_mot: ['j_crank']
"""


@pytest.fixture
def beside(tmp_path):
    def write(text, name="robot.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


class TestExtendedUrdf:
    @pytest.mark.parametrize(("kind", "ours"), [("6d", "fixed"), ("3D", "spherical")])
    def test_loops(self, beside, kind, ours):
        found = read(four_bar(closing=ENDS), extend=beside(EXTENDED.format(kind=kind)), strict=True)
        (each,) = found.loops
        assert (each.name, each.type) == ("closedloop1_A_closedloop1_B", ours)
        assert (each.source.line, each.source.element) == (1, f"loop '{each.name}'")
        (motor,) = found.transmissions
        assert [end.name for end in (*motor.joints, *motor.actuators)] == ["j_crank", "j_crank"]

    def test_a_model_of_it(self, beside):
        with beside(EXTENDED.format(kind="3d"), "robot.yml").open() as stream:
            model = rm.load(four_bar(closing=ENDS), extend=[stream])
        expected = loop("l", "spherical", "coupler", "rocker", "1 0 0", "0.7 0 0", "")
        assert gap(model, rm.load(four_bar(closing=expected))) < 1e-8

    def test_without_types_all_six_coordinates_coincide(self, beside):
        text = "closed_loop:\n  - [closedloop1_A, closedloop1_B]\n"
        (each,) = read(four_bar(closing=ENDS), extend=beside(text)).loops
        assert (each.type, each.source.line) == ("fixed", 2)

    def test_frames_may_be_joints(self, beside):
        text = "closed_loop: [[j_coupler, closedloop1_B_frame]]\ntype: [3d]\n"
        (each,) = read(
            four_bar(closing=closing("_B", name="closedloop1")), extend=beside(text)
        ).loops
        assert (each.predecessor.link, each.successor.link) == ("coupler", "closedloop1_B")

    def test_types_of_joints(self, beside):
        text = (
            "joint_name: [j_crank, j_coupler, j_rocker]\n"
            "joint_type: [SPHERICAL, UJOINT_ZX, fixed]\n"
        )
        found = read(four_bar(closing=""), extend=beside(text), strict=True)
        joints = {each.name: each for each in found.joints}
        assert {name: each.type for name, each in joints.items()} == {
            "j_crank": "spherical",
            "j_coupler_z": "continuous",
            "j_coupler_x": "continuous",
            "j_rocker": "fixed",
        }
        first, second = joints["j_coupler_z"], joints["j_coupler_x"]
        assert (first.parent, first.child, first.axis) == ("crank", "j_coupler_z", (0, 0, 1))
        assert (second.parent, second.child, second.axis) == ("j_coupler_z", "coupler", (1, 0, 0))
        assert first.origin.xyz == (0.5, 0.0, 0.0)
        assert second.origin.xyz == (0.0, 0.0, 0.0)
        assert rm.load(four_bar(closing=""), extend=beside(text)).nv == 5

    def test_joints_that_are_not_there_are_passed_over(self, beside):
        text = "joint_name: [j_crnak]\njoint_type: [SPHERICAL]\nname_mot: [j_rokcer]\nspeed: 3\n"
        with pytest.warns(rm.DescriptionWarning) as caught:
            read(four_bar(), extend=beside(text))
        for words in (
            ":1: joint 'j_crnak': no such joint",
            "'j_rocker'",
            ":4: speed: the key is not",
        ):
            assert words in said(caught)

    @pytest.mark.parametrize(
        ("text", "line", "words"),
        [
            ("closed_loop: [[closedloop1_A, closedlop1_B]]", 1, "did you mean 'closedloop1_B'"),
            ("type: [3d]\nclosed_loop: [[a]]", 2, "two names of frames"),
            ("closed_loop: [a, b]", 1, "two names of frames"),
            (
                "closed_loop: [[closedloop1_A, closedloop1_B]]\ntype: [6d, 6d]",
                2,
                "1 entries and type 2",
            ),
            ("closed_loop: [[closedloop1_A, closedloop1_B]]\ntype: [4d]", 2, "known: 3d, 6d"),
            ("joint_name: [j_crank]\njoint_type: [BALL]", 2, "'BALL' is not known"),
            ("joint_name: [j_crank]\njoint_type: [UJOINT_XYZ]", 2, "is not known"),
            ("joint_name: [j_crank]", 1, "joint_name has 1 entries and joint_type 0"),
            ("name_mot: [[a]]", 1, "a list of names is due"),
            ("name_mot: a", 1, "a list is due"),
            ("type: []\n\ntype: []", 3, "given twice"),
            ("type: [", 1, "not well-formed YAML"),
            ("just words", 1, "this YAML has no keys"),
            ("type: " + "[" * 5000, None, "nested too deep"),
        ],
    )
    def test_refusals(self, beside, text, line, words):
        path = beside(text)
        with pytest.raises(rm.DescriptionError) as caught:
            read(four_bar(closing=ENDS), extend=path)
        assert words in str(caught.value)
        assert caught.value.file == str(path)
        assert line is None or caught.value.line == line


# --- Drake ----------------------------------------------------------------------------------------


def drake(*elements):
    return four_bar(*elements, closing="").replace("<robot", '<robot xmlns:drake="urn:drake"', 1)


def points(tag, first="coupler", second="rocker", more=""):
    return (
        f'\n<drake:{tag}><drake:{tag}_body_A name="{first}"/><drake:{tag}_p_AP value="1 0 0"/>'
        f'<drake:{tag}_body_B name="{second}"/><drake:{tag}_p_BQ value="0.7 0 0"/>{more}'
        f"</drake:{tag}>"
    )


SPRUNG = "".join(
    f'<drake:linear_spring_damper_{word} value="{value}"/>'
    for word, value in (("free_length", 0.4), ("stiffness", 30), ("damping", 2))
)


class TestDrake:
    def test_ball_constraints(self):
        found = read(drake(points("ball_constraint"), points("ball_constraint")), strict=True)
        assert [each.name for each in found.loops] == ["ball_constraint_1", "ball_constraint_2"]
        expected = loop("l", "spherical", "coupler", "rocker", "1 0 0", "0.7 0 0", "")
        model = rm.load(drake(points("ball_constraint")))
        assert gap(model, rm.load(four_bar(closing=expected))) == 0.0

    def test_springs(self):
        text = drake(points("linear_spring_damper", more=SPRUNG))
        (spring,) = read(text, strict=True).springs
        assert (spring.stiffness, spring.length, spring.damping) == (30.0, 0.4, 2.0)
        assert spring.predecessor.origin.xyz == (1.0, 0.0, 0.0)

    def test_mimic(self):
        ties = '<drake:mimic joint="j_crank" multiplier="-2" offset="0.5"/>'
        text = drake().replace('child link="rocker"/>', f'child link="rocker"/>{ties}')
        found = read(text, strict=True).joints[2].mimic
        assert (found.joint, found.multiplier, found.offset) == ("j_crank", -2.0, 0.5)

    @pytest.mark.parametrize(
        ("element", "words"),
        [
            (points("ball_constraint", "cuopler"), "did you mean 'coupler'"),
            (
                points("ball_constraint").replace("_p_AP", "_p_A"),
                "needs a <drake:ball_constraint_p_AP>",
            ),
            (points("linear_spring_damper", more=SPRUNG.replace("30", "-30")), "is negative"),
            (
                '\n<drake:joint name="j" type="bal"><parent link="base"/></drake:joint>',
                "mean 'ball'",
            ),
        ],
    )
    def test_refusals(self, element, words):
        with pytest.raises(rm.DescriptionError) as caught:
            read(drake(element))
        assert words in str(caught.value)
        assert caught.value.line == drake("@").split("@")[0].count("\n") + 2

    @pytest.mark.parametrize("kind", ["ball", "planar", "screw", "universal"])
    def test_joints(self, kind):
        """Against Drake's own mass matrix, where the two have the same coordinates."""
        text = robot(
            link("first"),
            link("last"),
            joint("hinge", "base", "first", axis="0 1 0"),
            joint("own", "first", "last", "0.1 0.2 0.3", kind=kind, rpy="0.3 0.4 0.5").replace(
                "joint", "drake:joint"
            ),
        ).replace("<robot", '<robot xmlns:drake="http://drake.mit.edu"')
        if kind == "screw":
            text = text.replace(
                "</drake:joint>", '<drake:screw_thread_pitch value="0.7"/></drake:joint>'
            )
        model = rm.load(text, strict=True)
        expected = {
            "ball": ["own.0", "own.1", "own.2"],
            "planar": ["own.0", "own.1", "own.2"],
            "screw": ["own"],
            "universal": ["own_x", "own_y"],
        }
        assert list(model.dof_names) == ["hinge", *expected[kind]]
        pytest.importorskip("pydrake")
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import MultibodyPlant

        plant = MultibodyPlant(0.0)
        Parser(plant).AddModelsFromString(text, "urdf")
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
        plant.Finalize()
        assert plant.num_velocities() == model.nv
        if kind in ("screw", "universal"):
            context = plant.CreateDefaultContext()
            for seed in range(3):
                q = np.random.default_rng(seed).normal(size=model.nq)
                plant.SetPositions(context, q)
                theirs = plant.CalcMassMatrixViaInverseDynamics(context)
                np.testing.assert_allclose(
                    rm.crba(model, q, **NUMPY), theirs, rtol=1e-12, atol=1e-14
                )


SDF_LINK = (
    '<link name="{}"><pose>{} 0 0 0 0 0</pose><inertial><mass>1</mass><inertia><ixx>0.1</ixx><iyy>'
    "0.1</iyy><izz>0.1</izz></inertia></inertial></link>"
)
SDF_JOINT = (
    '<joint name="j_{1}" type="revolute"><parent>{0}</parent><child>{1}</child><axis><xyz>0 0 1'
    "</xyz></axis>{2}</joint>"
)


class TestDrakeInSdf:
    def model(self, *more, tie=""):
        links = (SDF_LINK.format(name, x) for name, x in (("a", 0), ("b", 1), ("c", 2.5)))
        joints = (
            SDF_JOINT.format(*ends)
            for ends in (("world", "a", ""), ("a", "b", ""), ("world", "c", tie))
        )
        return "\n".join(
            [
                '<sdf version="1.9" xmlns:drake="http://drake.mit.edu"><model name="m">',
                *(*links, *joints, *more),
                "</model></sdf>",
            ]
        )

    def test_ball_constraints(self):
        part = "<drake:ball_constraint_{}>{}</drake:ball_constraint_{}>"
        said = {"body_A": "b", "p_AP": "1 0 0", "body_B": "c", "p_BQ": "-1.2 0 0"}
        inner = "".join(part.format(tag, text, tag) for tag, text in said.items())
        element = f"<drake:ball_constraint>{inner}</drake:ball_constraint>"
        (found,) = read(self.model(element), strict=True).loops
        assert (found.type, found.name, found.source.line) == ("spherical", "ball_constraint_1", 8)
        assert (found.predecessor.link, found.predecessor.origin.xyz) == ("b", (1.0, 0.0, 0.0))
        assert (found.successor.link, found.successor.origin.xyz) == ("c", (-1.2, 0.0, 0.0))
        assert rm.load(self.model(element), independent="j_a").nv == 1
        with pytest.raises(rm.DescriptionError, match="needs a <drake:ball_constraint_p_BQ>"):
            read(self.model(element.replace("p_BQ", "p_B")))
        with pytest.raises(rm.DescriptionError, match="has no link, joint, frame or model 'z'"):
            read(self.model(element.replace(">c<", ">z<")))

    def test_mimic(self):
        tie = '<drake:mimic joint="j_a" multiplier="-2" offset="0.5"/>'
        found = {each.name: each.mimic for each in read(self.model(tie=tie), strict=True).joints}
        assert (found["j_c"].joint, found["j_c"].multiplier, found["j_c"].offset) == (
            "j_a",
            -2,
            0.5,
        )
        assert rm.load(self.model(tie=tie)).nv == 2


# --- Gazebo ---------------------------------------------------------------------------------------


def placed(rotation):
    return " ".join(map(repr, map(float, rotation.as_euler("xyz"))))


def chain(*more):
    """Two arms on a base whose tips meet at position zero, with links turned anyhow."""
    turns = Rotation.random(3, random_state=1)
    # the links' frames: turned by A, B, C in the base; the hinges' axes are z of the base
    a, b, c = turns
    axes = [" ".join(map(repr, map(float, each.inv().apply([0, 0, 1])))) for each in turns]
    elbow = a.inv().apply([0.5, 0.3, 0.0])
    return robot(
        link("one"),
        link("two"),
        link("three"),
        joint("j_one", "base", "one", rpy=placed(a), axis=axes[0]),
        joint(
            "j_two",
            "one",
            "two",
            " ".join(map(repr, map(float, elbow))),
            rpy=placed(a.inv() * b),
            axis=axes[1],
        ),
        joint("j_three", "base", "three", "1 0 0", rpy=placed(c), axis=axes[2]),
        *more,
    ), turns


def closed(
    kind="revolute", inner="", pose="", axis="0 0 1", parent="two", child="three", name="tip"
):
    return (
        f'\n<gazebo><joint name="{name}" type="{kind}"><parent>{parent}</parent>'
        f"<child>{child}</child>{pose}<axis><xyz>{axis}</xyz>{inner}</axis></joint></gazebo>"
    )


def tip(turns):
    """The tip, 0.2 0.4 above the third joint, in both links, and the base's z in them."""
    _, b, c = turns
    there = b.inv().apply([1.0 + 0.2 - 0.5, 0.4 - 0.3, 0.0])
    here = c.inv().apply([0.2, 0.4, 0.0])
    return there, here, b.inv(), c.inv()


def text_of(values):
    return " ".join(repr(float(x)) for x in values)


class TestGazebo:
    @pytest.mark.parametrize("way", ["joint frame", "expressed in", "relative to"])
    def test_joints_close_loops_where_they_stand_at_zero(self, way):
        _, turns = chain()
        there, here, to_b, to_c = tip(turns)
        if way == "relative to":
            pose = '<pose relative_to="base">1.2 0.4 0 0 0 0</pose>'
            element = closed(pose=pose)
        else:
            pose = f"<pose>{text_of(here)} 0 0 0</pose>"
            axis = text_of(to_c.apply([0, 0, 1]))
            element = closed(pose=pose, axis=axis)
            if way == "expressed in":
                element = closed(pose=pose).replace("<xyz>", '<xyz expressed_in="__model__">')
        text, _ = chain(element)
        model = rm.load(text)
        assert model.nv == 1
        # the same in our own words: frames parallel to the base's at position zero
        own = (
            '<loop name="tip" type="revolute"><predecessor link="two">'
            f'<origin xyz="{text_of(there)}" rpy="{placed(to_b)}"/></predecessor><successor '
            f'link="three"><origin xyz="{text_of(here)}" rpy="{placed(to_c)}"/></successor>'
            '<axis xyz="0 0 1"/></loop>'
        )
        expected, _ = chain(own)
        reference = rm.load(expected)
        assert reference.nv == 1
        assert gap(model, reference) < 1e-9
        np.testing.assert_allclose(model.neutral(), np.zeros(3), atol=1e-9)

    def test_damping_counts_and_limits_are_told(self):
        inner = "<dynamics><damping>0.3</damping><friction>0.1</friction></dynamics>"
        limits = "<limit><lower>-1</lower><upper>1</upper></limit>"
        text, turns = chain()
        axis = text_of(turns[2].inv().apply([0, 0, 1]))
        pose = f"<pose>{text_of(tip(turns)[1])} 0 0 0</pose>"
        text, _ = chain(closed(inner=inner + limits, pose=pose, axis=axis))
        with pytest.warns(rm.DescriptionWarning, match="limits are not kept") as caught:
            (found,) = read(text).loops
        assert (found.damping, found.friction) == (0.3, 0.1)
        assert caught[0].message.source.line == text[: text.index("<gazebo")].count("\n") + 1

    def screwed(self, text):
        return robot(
            link("nut"),
            link("screw"),
            joint("slide", "base", "nut", kind="prismatic", axis="0 0 1"),
            joint("spin", "base", "screw", "0 0 0.5", axis="0 0 1"),
            text,
        )

    @pytest.mark.parametrize(
        "pitch",
        ["<thread_pitch>300</thread_pitch>", "<screw_thread_pitch>0.02</screw_thread_pitch>"],
    )
    def test_screws_between_links(self, pitch):
        """As the same mechanism in SDF; a slide and a spindle, the lift of a PR2."""
        element = closed("screw", parent="nut", child="screw").replace(
            "</joint>", f"{pitch}</joint>"
        )
        weight = (
            "<inertial><pose>0.1 0.02 0 0 0 0</pose><mass>1</mass><inertia><ixx>0.01</ixx><iyy>0.02"
            "</iyy><izz>0.025</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>"
        )
        axis = "<axis><xyz>0 0 1</xyz></axis>"
        sdf = (
            '<sdf version="1.11"><model name="m"><link name="base"/>'
            f'<link name="nut">{weight}</link><link name="screw"><pose>0 0 0.5 0 0 0</pose>'
            f"{weight}</link>"
            '<joint name="w" type="fixed"><parent>world</parent><child>base</child></joint>'
            '<joint name="slide" type="prismatic"><parent>base</parent><child>nut</child>'
            f'{axis}</joint><joint name="spin" type="revolute"><parent>base</parent>'
            f"<child>screw</child>{axis}</joint>"
            f'<joint name="tip" type="screw"><parent>nut</parent><child>screw</child>{axis}{pitch}'
            "</joint></model></sdf>"
        )
        reference = rm.load(sdf, independent="slide")
        model = rm.load(self.screwed(element), independent="slide")
        assert model.nv == reference.nv == 1
        ours, theirs = (
            each.joint_positions(each.configuration({"slide": 0.01})) for each in (model, reference)
        )
        assert ours["spin"] == pytest.approx(float(theirs["spin"]), rel=1e-12)
        assert abs(ours["spin"]) > 1.0
        q, p = (each.configuration({"slide": 0.01}) for each in (model, reference))
        np.testing.assert_allclose(rm.crba(model, q), rm.crba(reference, p), rtol=1e-11)

    @pytest.mark.parametrize(
        ("kind", "nv", "loops"),
        [("ball", 1, ["spherical"]), ("fixed", 0, ["fixed"]), ("universal", 0, ["fixed"])],
    )
    def test_other_kinds(self, kind, nv, loops):
        text, turns = chain()
        pose = f"<pose>{text_of(tip(turns)[1])} 0 0 0</pose>"
        more = "<axis2><xyz>0 1 0</xyz></axis2></joint>" if kind == "universal" else "</joint>"
        text, _ = chain(closed(kind, pose=pose, axis="1 0 0").replace("</joint>", more))
        found = read(text)
        assert [each.type for each in found.loops] == loops
        if nv:
            assert rm.load(text).nv == nv
        extra = {each.name for each in found.joints} - {"j_one", "j_two", "j_three"}
        assert extra == ({"tip_1", "tip_2"} if kind == "universal" else set())

    def test_a_joint_to_the_world_holds_the_root(self):
        pose = "<pose>0.1 0.2 0.3 0 0 1.5707963267948966</pose>"
        element = closed("prismatic", pose=pose, axis="1 0 0", parent="world", child="base")
        model = rm.load(four_bar(element))
        assert model.nv == 2
        q = model.configuration({"tip": 0.25})
        moved = rm.frame_pose(model, q, "base")[:3, 3]
        np.testing.assert_allclose(moved, [0.0, 0.25, 0.0], atol=1e-15)
        fixed = closed("fixed", parent="world", child="base").replace(
            "<axis><xyz>0 0 1</xyz></axis>", ""
        )
        assert rm.load(four_bar(fixed)).nv == 1

    @pytest.mark.parametrize(
        ("element", "words"),
        [
            (closed(parent="tow"), "the link 'tow' is not in the robot; did you mean 'two'"),
            (closed("gearbox"), "a gearbox joint within <gazebo> is not read"),
            (closed(parent="world"), "is not read: the root of the robot is another link"),
            ("\n<gazebo><link name='x'/></gazebo>", "a <link> within <gazebo> is not read"),
            (
                "\n<gazebo reference='one'><gravity>0</gravity></gazebo>",
                "gravity acts on 'one' too",
            ),
        ],
    )
    def test_what_is_not_read_is_named(self, element, words):
        text, _ = chain(element)
        with pytest.warns(rm.DescriptionWarning) as caught:
            found = read(text)
        assert words in said(caught)
        assert caught[0].message.source.line == text[: text.index("<gazebo")].count("\n") + 1
        assert not found.loops

    @pytest.mark.parametrize(
        ("element", "words"),
        [
            (closed(name="j_one"), "another joint of the robot has this name"),
            (closed().replace("<axis>", "<axos>").replace("</axis>", "</axos>"), "needs an <axis>"),
            (closed(pose='<pose relative_to="no">0 0 0 0 0 0</pose>'), "the frame 'no' is no link"),
            (closed("screw", name="two"), "the robot has a 'two' already"),
        ],
    )
    @pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
    def test_refusals(self, element, words):
        with pytest.raises(rm.DescriptionError) as caught:
            read(chain(element)[0])
        assert words in str(caught.value)

    def test_springs_of_joints(self):
        more = (
            "\n<gazebo reference='j_one'><springStiffness>4</springStiffness><springReference>0.2"
        )
        found = read(chain(f"{more}</springReference></gazebo>")[0], strict=True).joints[0]
        assert (found.stiffness, found.reference) == (4.0, 0.2)

    def test_decoration_says_nothing(self):
        text = "<gazebo reference='one'><material>Gazebo/Red</material></gazebo><gazebo/>"
        plugin = "<gazebo><plugin name='p' filename='x.so'><joint>no</joint></plugin></gazebo>"
        assert read(chain(text, plugin)[0], strict=True).joints == read(chain()[0]).joints


def plugin(
    leader="j_one", follower="j_three", more="<multiplier>-2</multiplier><offset>0.3</offset>"
):
    return (
        '\n<gazebo><plugin name="m" filename="libroboticsgroup_gazebo_mimic_joint_plugin.so">'
        f"<joint>{leader}</joint><mimicJoint>{follower}</mimicJoint>{more}</plugin></gazebo>"
    )


class TestMimicsElsewhere:
    def test_plugins(self):
        text, _ = chain(plugin())
        model = rm.load(text, strict=True)
        assert model.dof_names == ("j_one", "j_two")
        positions = model.joint_positions(model.configuration({"j_one": 0.4}))
        assert positions["j_three"] == pytest.approx(-2 * 0.4 + 0.3, rel=1e-15)

    def test_numbers_default_to_one_and_zero(self):
        (found,) = (each.mimic for each in read(chain(plugin(more=""))[0]).joints if each.mimic)
        assert (found.multiplier, found.offset) == (1.0, 0.0)

    def test_controllers_parameters(self):
        text, _ = chain(
            '<ros2_control name="c" type="system"><joint name="j_three"><param name="mimic">j_one'
            '</param><param name="multiplier">-1</param></joint></ros2_control>'
        )
        (found,) = (each.mimic for each in read(text, strict=True).joints if each.mimic)
        assert (found.joint, found.multiplier, found.offset) == ("j_one", -1.0, 0.0)

    def test_the_joints_own_word_stands(self):
        own = '<mimic joint="j_one" multiplier="-2" offset="0.3"/></joint>'
        text, _ = chain(plugin())
        end = text.index("</joint>", text.index('name="j_three"'))
        same = text[:end] + own + text[end + len("</joint>") :]
        assert rm.load(same, strict=True).nv == 2
        with pytest.warns(rm.DescriptionWarning, match="another <mimic> itself, which is read"):
            found = read(same.replace('multiplier="-2"', 'multiplier="3"')).joints[2]
        assert found.mimic.multiplier == 3.0

    @pytest.mark.parametrize(
        ("element", "words"),
        [
            (plugin("j_noe"), "the joint 'j_noe' is not in the robot; did you mean 'j_one'"),
            (plugin(follower="held"), "the joint 'held' is fixed, and cannot be mimicked"),
        ],
    )
    def test_what_cannot_be_is_left_out(self, element, words):
        text, _ = chain(joint("held", "one", "pad", kind="fixed"), link("pad", INERTIAL), element)
        with pytest.warns(rm.DescriptionWarning) as caught:
            assert rm.load(text).nv == 3
        assert words in said(caught)
        assert math.isfinite(caught[0].message.source.line)


def test_one_file_may_say_it_in_several_ways():
    """A loop of ours and one of another's in one cluster: a parallelogram with a middle bar."""
    text = four_bar(closing=CLOSING)
    more = (
        '<robot><loop_joint name="again" type="spherical"><link1 link="coupler" xyz="1 0 0"/>'
        '<link2 link="rocker" xyz="0.7 0 0"/></loop_joint></robot>'
    )
    with pytest.warns(rm.DescriptionWarning, match="already"):
        model = rm.load(text, extend=more)
    assert model.nv == 1
