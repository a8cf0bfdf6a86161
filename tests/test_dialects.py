"""Loops and ties as other programs write them in and beside a URDF."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from dialect_texts import chain, frame, gap, plugin, said
from scipy.spatial.transform import Rotation
from texts import CLOSING, INERTIAL, four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.parsers import read

# ---- <loop_joint> --------------------------------------------------------------------------------


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


# ---- <constraint> --------------------------------------------------------------------------------


def constraint(kind="revolute", axes=("0 0 1", "0 0 1"), turns=("0 0 0", "0 0 0"), child="rocker"):
    parent_axis, child_axis = (f'<{end}_axis xyz="{xyz}"/>' if xyz else "" for end, xyz in
                               zip(("parent", "child"), axes, strict=True))  # fmt: skip
    return (
        f'\n<constraint name="closing" type="{kind}">'
        f'<parent link="coupler"/><parent_origin xyz="1 0 0" rpy="{turns[0]}"/>{parent_axis}'
        f'<child link="{child}"/><child_origin xyz="0.7 0 0" rpy="{turns[1]}"/>{child_axis}'
        "</constraint>"
    )


class TestConstraints:
    """The loop of the proposal for URDF: two origins, two axes."""

    @pytest.mark.parametrize("kind", ["revolute", "continuous", "spherical", "ball"])
    def test_they_are_loops(self, kind):
        axis = '<axis xyz="0 0 1"/>' if kind[0] in "rc" else ""
        ours = {"ball": "spherical"}.get(kind, kind)
        expected = loop("closing", ours, "coupler", "rocker", "1 0 0", "0.7 0 0", axis)
        model = rm.load(four_bar(closing=constraint(kind)))
        wanted = rm.load(four_bar(closing=expected))
        assert model.description.loops[0].type == ours
        assert model.nv == wanted.nv == 1
        assert gap(model, wanted) == 0.0

    def test_axes_in_frames_that_are_turned(self):
        """The hinge is about the same line, whatever frame its axis is written in."""
        wanted = rm.load(four_bar(closing=constraint()))
        for axes, turns in (
            (("1 0 0", "0 0 1"), ("0 -1.5707963267948966 0", "0 0 0")),
            (("0 0 1", "0.6 0 0.8"), ("0 0 0", "0 -0.6435011087932844 0")),
            (("0 0 -1", "0 0 -1"), ("0 0 1", "0 0 2")),
        ):
            assert (
                gap(rm.load(four_bar(closing=constraint("revolute", axes, turns))), wanted) < 1e-12
            )
        (one,) = read(four_bar(closing=constraint(axes=("0 0 1", "")))).loops
        assert one.axis == (0.0, 0.0, 1.0)
        (one,) = read(four_bar(closing=constraint(axes=("", "")))).loops
        assert one.axis == (1.0, 0.0, 0.0)

    def test_universal_ones_have_two_axes(self):
        (found,) = read(four_bar(closing=constraint("universal", ("0 0 1", "0 1 0")))).loops
        assert (found.axis, found.axis2) == ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0))

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (constraint("screw"), "the type 'screw' is not known"),
            (constraint("universal", ("0 0 1", "")), "needs both of its axes"),
            (constraint("prismatic", ("0 0 1", "0 1 0")), "does not say how its frames are turned"),
            (constraint(child="rokcer"), "did you mean 'rocker'"),
            (constraint(axes=("0 0 0", "0 0 1")), "<parent_axis> is zero"),
        ],
    )
    @pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
    def test_refusals(self, text, words):
        with pytest.raises(rm.DescriptionError) as caught:
            read(four_bar(closing=text))
        assert words in str(caught.value)
        assert caught.value.line == four_bar(closing="@").split("@")[0].count("\n") + 2


# ---- frames that coincide ------------------------------------------------------------------------


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

    @pytest.mark.filterwarnings("ignore::RuntimeWarning")
    def test_open_trees_stay_open(self):
        """Written to URDF and read: no loop, and the accelerations of the tree that is written."""
        model = rm.load(four_bar(closing=closing("_1", "_2", "_1_z", "_2_z")))
        stream = io.StringIO()
        rm.write_urdf(model, stream, approximate=True)
        again, tree = rm.load(stream.getvalue()), rm.approximate_tree(model)
        assert (again.loops, again.dof_names) == ((), tree.dof_names)
        for q in ([0.0], [0.7]):
            found = [rm.aba(x, q, [0.3], [0.2]) for x in (again, tree)]
            np.testing.assert_allclose(*found, rtol=1e-6)  # without frames of 1e-9 kg

    def test_loops_that_name_the_frames_stand_instead(self):
        own = loop("mine", "revolute", "closing_pin_1", "closing_pin_2")
        text = four_bar(closing=closing("_1", "_2"))
        assert [each.name for each in read(text, extend=f"<robot>{own}</robot>").loops] == ["mine"]
        assert [each.name for each in read(four_bar(own, closing=closing("_1", "_2"))).loops] == [
            "mine"
        ]

    def test_loops_between_their_places_stand_instead(self):
        """As of MJCF's sites that are written to URDF beside the loop that connects them."""
        own = loop("mine", "spherical", "rocker", "coupler", "0.7 0 0", "1 0.0001 0", "")
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


# ---- YAML beside a URDF --------------------------------------------------------------------------

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

    def test_motors_are_those_that_it_names(self, beside):
        motors = "".join(
            f'<transmission name="t_{n}"><type>transmission_interface/SimpleTransmission</type>'
            f'<joint name="j_{n}"/><actuator name="m_{n}"/></transmission>'
            for n in ("crank", "rocker")
        )
        text = four_bar(motors)
        with pytest.warns(rm.DescriptionWarning, match="'t_rocker' are left out"):
            found = read(text, extend=beside("name_mot: [j_crank, j_coupler]"))
        assert [each.name for each in found.transmissions] == ["t_crank", "j_coupler"]

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
            ("type: " + "[" * 600, None, "nested too deep"),
        ],
    )
    def test_refusals(self, beside, text, line, words):
        path = beside(text)
        with pytest.raises(rm.DescriptionError) as caught:
            read(four_bar(closing=ENDS), extend=path)
        assert words in str(caught.value)
        assert caught.value.file == str(path)
        assert line is None or caught.value.line == line


UPRIGHT = robot(
    *(link(name, INERTIAL) for name in ("crank", "coupler", "rocker")),
    joint("j_crank", "base", "crank"),
    joint("j_coupler", "crank", "coupler", "0 0.4 0"),
    joint("j_rocker", "base", "rocker", "1 0 0").replace(
        "</joint>", '<mimic joint="j_crank" multiplier="1.3"/></joint>'
    ),
)

FUSION = """metadata: {exporter_version: '3.0.0'}
closing_joints:
  - name: pin
    source: user_tag
    type: revolute
    parent: coupler
    child: rocker
    origin_xyz_m: [1.0, -0.1, 0]
    origin_rpy_rad: [0.3, 0, 0]
    axis: [0, 0.29552020666133955, 0.955336489125606]
"""

SOLIDWORKS = """closures:
- {link_a: coupler, link_b: rocker, point: [1, 0.3, 0], axis: [0, 0, 1]}
dependent: [j_coupler, j_rocker]
independent: [j_crank]
"""


class TestLoopsOfExporters:
    """Joints that an exporter leaves out of the tree, placed as the design stands at zero."""

    @pytest.mark.parametrize("text", [FUSION, SOLIDWORKS], ids=["fusion2URDF", "SolidWorks"])
    def test_as_a_loop_says_it(self, beside, text):
        tree = (
            UPRIGHT
            if text is SOLIDWORKS
            else UPRIGHT.replace("<mimic", "<!-- ").replace('multiplier="1.3"/>', "-->")
        )
        pin = loop(
            "pin", "revolute", "coupler", "rocker", "1 -0.1 0", "0 0.3 0", '<axis xyz="0 0 1"/>'
        )
        plain = UPRIGHT.replace('<mimic joint="j_crank" multiplier="1.3"/>', "")
        model = rm.load(tree, extend=beside(text), strict=True)
        expected = rm.load(plain.replace("</robot>", pin + "</robot>"))
        assert model.nv == expected.nv == 1
        assert gap(model, expected) < 1e-12

    @pytest.mark.parametrize(
        ("text", "line", "words"),
        [
            (FUSION.replace("rocker", "rokcer"), 3, "did you mean 'rocker'"),
            (FUSION.replace("revolute", "screw"), 3, "'screw' of a closing joint is not known"),
            (FUSION.replace("-0.1, 0]", "-0.1]"), 3, "three numbers 'origin_xyz_m'"),
            (FUSION.replace("    name: pin\n", "").replace("- name: pin", "- a: b"), 3, "'name'"),
            ("closing_joints: pin", 1, "a list is due"),
            ("closing_joints: [pin]", 1, "names with values are due"),
            (SOLIDWORKS.replace(", axis: [0, 0, 1]", ""), 2, "three numbers 'axis'"),
            (SOLIDWORKS.replace("[j_crank]", "[j_carnk]"), 4, "did you mean 'j_crank'"),
        ],
    )
    def test_refusals(self, beside, text, line, words):
        with pytest.raises(rm.DescriptionError) as caught:
            read(UPRIGHT, extend=beside(text))
        assert words in str(caught.value)
        assert caught.value.line == line

    def test_limits_of_what_closes_a_loop(self, beside):
        text = FUSION + "    limits: {lower: -1, upper: 1}\n"
        with pytest.warns(rm.DescriptionWarning, match="limits of closing joints \\('pin'\\) are"):
            read(UPRIGHT, extend=beside(text))


# ---- Gazebo --------------------------------------------------------------------------------------


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


def test_joint_properties_are_damping_and_friction() -> None:
    """As onshape-to-robot writes them; what stands in ``<dynamics>`` goes first."""
    text = (
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/>{}</joint></robot>'
    )
    plain = rm.load(text.format('<joint_properties damping="0.5" friction="0.2"/>')).joints[0]
    assert (plain.damping, plain.friction) == (0.5, 0.2)
    both = '<joint_properties friction="0.0"/><dynamics damping="2" friction="1"/>'
    joint = rm.load(text.format(both)).joints[0]
    assert (joint.damping, joint.friction) == (2.0, 1.0)
