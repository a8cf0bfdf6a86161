"""The URDF and URDF+ reader: every element with its values, every bad input with its message."""

import io
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from documentation_pages import URDF_PAGES, robot_files
from scipy.spatial.transform import Rotation
from urdf_texts import AB, BC, SMALL, first, inertial, joint, loop, refused, robot, warned

from robomodel.description import (
    IDENTITY,
    Actuator,
    Anchor,
    JointCoupling,
    Limits,
    LinkCoupling,
    Mimic,
    PolynomialCoupling,
    Pose,
    Transmission,
    TransmittedJoint,
    rotation_from_rpy,
)
from robomodel.errors import (
    DescriptionError,
    DescriptionWarning,
    Source,
)
from robomodel.parsers import read
from robomodel.parsers.urdf import JOINT_TYPES, LOOP_TYPES

# ---- where a description comes from --------------------------------------------------------------

BAD = '<robot name="small">\n<link/>\n</robot>'


class TestSources:
    def test_text(self):
        description = read(SMALL)
        assert description.name == "small"
        assert description.source == Source("<text>", 1, "robot 'small'")
        assert description.links[0].source == Source("<text>", 2, "link 'a'")

    def test_text_after_spaces_and_a_mark(self):
        assert read("\ufeff \n" + SMALL).links[0].source.line == 3

    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_bytes(self, kind):
        assert read(kind(SMALL.encode())).name == "small"

    @pytest.mark.parametrize("kind", [str, Path])
    def test_path(self, tmp_path, kind):
        path = tmp_path / "small.urdf"
        path.write_text(SMALL)
        assert read(kind(path)).links[0].source == Source(str(path), 2, "link 'a'")

    def test_a_path_of_a_bad_file_is_in_the_message(self, tmp_path):
        path = tmp_path / "bad.urdf"
        path.write_text(BAD)
        with pytest.raises(DescriptionError) as caught:
            read(path)
        assert str(caught.value) == f"{path}:2: <link>: <link>: the attribute 'name' is missing"

    @pytest.mark.parametrize("mode", ["r", "rb"])
    def test_open_file(self, tmp_path, mode):
        path = tmp_path / "small.urdf"
        path.write_text(SMALL)
        with open(path, mode) as stream:
            assert read(stream).source.file == str(path)

    @pytest.mark.parametrize("stream", [io.StringIO(SMALL), io.BytesIO(SMALL.encode())])
    def test_stream_without_a_name(self, stream):
        assert read(stream).source.file == "<text>"

    def test_a_stream_that_gives_a_little_at_a_time(self):
        class Slow(io.BytesIO):
            def read(self, size=-1):
                return super().read(min(size, 7))

        assert read(Slow(SMALL.encode())).name == "small"

    @pytest.mark.parametrize("name", ["no/such.urdf", "", "a\0b", "x" * 100_000, "robot name='r'"])
    def test_neither_text_nor_a_file(self, name):
        with pytest.raises(FileNotFoundError, match="no such file, and not XML") as caught:
            read(name)
        assert len(str(caught.value)) < 400

    def test_other_errors_of_the_system_stay_what_they_are(self, tmp_path):
        with pytest.raises(IsADirectoryError):
            read(tmp_path)

    @pytest.mark.parametrize("source", [None, 3, ["<robot/>"]])
    def test_other_things(self, source):
        with pytest.raises(TypeError, match=f"not from {type(source).__name__}"):
            read(source)

    def test_a_stream_of_other_things(self):
        class Odd:
            def read(self, _size):
                return [1]

        with pytest.raises(TypeError, match="neither text nor bytes"):
            read(Odd())


class TestFormats:
    def test_given(self):
        assert read(SMALL, format="urdf").name == "small"

    def test_unknown(self):
        with pytest.raises(ValueError, match="unknown format 'obj'; known: urdf") as caught:
            read(SMALL, format="obj")
        assert not isinstance(caught.value, DescriptionError)

    @pytest.mark.parametrize(
        ("text", "what", "tag"),
        [
            ('<sdf version="1.9"/>', "an SDF file", "sdf"),
            ("<mujoco/>", "an MJCF (MuJoCo) file", "mujoco"),
            ("<html/>", "an XML file with the root element <html>", "html"),
        ],
    )
    @pytest.mark.parametrize("extends", [False, True])
    def test_other_roots_where_urdf_is_due(self, text, what, tag, extends):
        arguments = {"extend": text} if extends else {"format": "urdf"}
        with pytest.raises(DescriptionError) as caught:
            read(SMALL if extends else text, **arguments)
        assert caught.value.message.startswith(f"this is {what}; URDF, URDF+ and extensions have")
        assert (caught.value.line, caught.value.element) == (1, f"<{tag}>")

    @pytest.mark.parametrize(
        ("text", "what", "tag"),
        [
            ("<html/>", "an XML file with the root element <html>", "html"),
            ("<COLLADA/>", "a COLLADA mesh or scene", "COLLADA"),
        ],
    )
    def test_other_roots(self, text, what, tag):
        with pytest.raises(DescriptionError) as caught:
            read(text)
        assert caught.value.message.startswith(f"this is {what}; the formats read are urdf")
        assert (caught.value.line, caught.value.element) == (1, f"<{tag}>")

    def test_xacro(self):
        text = robot('<xacro:property name="x" value="1"/>')
        refused(
            text.replace("<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"'),
            "xacro robot.urdf.xacro > robot.urdf",
            line=3,
            element="<xacro:property>",
        )

    def test_a_mention_of_xacro_is_no_macro(self):
        text = SMALL.replace("<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"')
        assert read(text, strict=True).name == "small"


# ---- what a file says ----------------------------------------------------------------------------


class TestLinks:
    def test_without_mass(self):
        assert [link.inertial for link in read(SMALL).links] == [None]

    def test_inertial(self):
        text = inertial(
            '<mass value="1.5"/>',
            '<origin xyz="0.1 -2e-1 .3" rpy="0.1 0.2 0.3"/>',
            **{"ixx": "4", "ixy": ".1", "ixz": "-.2", "iyy": "5", "iyz": "3e-1", "izz": "6"},
        )
        found = read(text, strict=True).links[0].inertial
        assert found.mass == 1.5
        assert found.inertia == (4.0, 0.1, -0.2, 5.0, 0.3, 6.0)
        assert found.origin == Pose((0.1, -0.2, 0.3), rotation_from_rpy(0.1, 0.2, 0.3))
        assert found.source == Source("<text>", 2, "link 'a'")

    def test_the_entries_of_the_inertia_come_in_any_order(self):
        text = inertial().replace(
            '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>',
            '<inertia izz="6" iyz="0.3" iyy="5" ixz="0.2" ixy="0.1" ixx="4"/>',
        )
        assert read(text).links[0].inertial.inertia == (4.0, 0.1, 0.2, 5.0, 0.3, 6.0)

    def test_inertial_without_origin(self):
        assert read(inertial(), strict=True).links[0].inertial.origin == Pose()

    def test_what_is_not_mechanics_is_passed_over(self):
        text = (
            '<robot name="r" version="1.0"><material name="grey"/><gazebo reference="a"/>'
            '<link name="a" type="base"><sensor name="s"/></link><mujoco/></robot>'
        )
        assert len(read(text, strict=True).links) == 1


def shaped(*shapes, before=""):
    """A robot whose one link, in line 2, has shapes, each in a line of its own."""
    inner = "".join(f"\n{shape}" for shape in shapes)
    return f'<robot name="r">{before}\n<link name="a">{inner}\n</link></robot>'


def visual(geometry, *more):
    return f"<visual>{''.join(more)}<geometry>{geometry}</geometry></visual>"


class TestShapes:
    @pytest.mark.parametrize(
        ("geometry", "kind", "size", "file"),
        [
            ('<box size="1 2 3"/>', "box", (1.0, 2.0, 3.0), None),
            ('<sphere radius="0.5"/>', "sphere", (0.5,), None),
            ('<cylinder length="2" radius="0.5"/>', "cylinder", (0.5, 2.0), None),
            ('<capsule radius="0.5" length="2"/>', "capsule", (0.5, 2.0), None),
            ('<drake:capsule radius="0.5" length="2"/>', "capsule", (0.5, 2.0), None),
            ('<drake:ellipsoid a="1" b="2" c="3"/>', "ellipsoid", (1.0, 2.0, 3.0), None),
            ('<mesh filename="package://p/a.stl"/>', "mesh", (1, 1, 1), "package://p/a.stl"),
            ('<mesh filename="a.obj" scale="1 -1 0.001"/>', "mesh", (1, -1, 0.001), "a.obj"),
        ],
    )
    def test_kinds(self, geometry, kind, size, file):
        (found,) = read(shaped(visual(geometry)), strict=True).links[0].shapes
        assert (found.role, found.kind, found.size, found.file) == ("visual", kind, size, file)
        assert (found.origin, found.name, found.rgba) == (Pose(), "", None)
        assert found.source == Source("<text>", 3, "link 'a'")

    def test_both_roles_in_the_order_of_the_file(self):
        text = shaped(
            '<collision name="c"><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><geometry>'
            '<sphere radius="1"/></geometry></collision>',
            visual('<sphere radius="2"/>'),
            '<collision><geometry><sphere radius="3"/></geometry></collision>',
        )
        shapes = read(text, strict=True).links[0].shapes
        assert [(s.role, s.size, s.name) for s in shapes] == [
            ("collision", (1.0,), "c"),
            ("visual", (2.0,), ""),
            ("collision", (3.0,), ""),
        ]
        assert shapes[0].origin == Pose((1.0, 2.0, 3.0), rotation_from_rpy(0.1, 0.2, 0.3))

    def test_colours(self):
        blue = '<material name="blue"><color rgba="0 0 1 1"/></material>'
        text = shaped(
            *(
                visual('<sphere radius="1"/>', material)
                for material in (
                    '<material name="red"/>',
                    blue,
                    '<material name="blue"/>',
                    '<material><color rgba="0 1 0 0.5"/></material>',
                    '<material name="unheard of"/>',
                    '<material name="red"><color rgba="0.5 0 0 1"/></material>',
                    '<material name="red"/>',
                )
            ),
            before='<material name="red"><color rgba="1 0 0 1"/></material><material name="x"/>',
        )
        found = [shape.rgba for shape in read(text, strict=True).links[0].shapes]
        red, half = (1.0, 0.0, 0.0, 1.0), (0.5, 0.0, 0.0, 1.0)
        blues = (0.0, 0.0, 1.0, 1.0)
        assert found == [red, blues, blues, (0.0, 1.0, 0.0, 0.5), None, half, red]

    @pytest.mark.parametrize(
        ("shape", "words"),
        [
            ("<visual/>", "this <visual> is left out: it has no <geometry>"),
            ("<collision><geometry/></collision>", "this <collision> is left out: its <geometry>"),
            (visual('<cube size="1"/>'), "none of box, sphere, cylinder, capsule, ellipsoid"),
            (visual('<sphere radius="-1"/>'), "the size of the <sphere> is negative"),
            (visual("<cylinder/>"), "the attribute 'radius' is missing"),
            (visual("<mesh/>"), "the attribute 'filename' is missing"),
            (visual('<sphere radius="1"/>', '<origin xyz="0 0"/>'), "needs three numbers"),
            (
                visual('<sphere radius="1"/>', '<material><color rgba="1 1 1"/></material>'),
                "needs four numbers",
            ),
        ],
    )
    def test_what_cannot_be_is_only_warned_of(self, shape, words):
        good = visual('<sphere radius="1"/>')
        found = warned(shaped(good, shape, good), words, line=4, element="link 'a'")
        assert len(found.links[0].shapes) == 2

    def test_many_bad_ones_are_one_warning(self):
        with pytest.warns(DescriptionWarning) as caught:
            read(shaped("<visual/>", *["<visual><geometry/></visual>"] * 6))
        (message,) = (str(warning.message) for warning in caught)
        assert "it has no <geometry>; likewise link 'a' (line 4), link 'a' (line 5)" in message
        assert message.endswith(" and 2 more")


class TestJoints:
    @pytest.mark.parametrize("type_", [t for t in JOINT_TYPES if t != "screw"])
    def test_types(self, type_):
        found = first(robot(joint("j1", "a", "b", type=type_), BC))
        assert (found.name, found.type, found.parent, found.child) == ("j1", type_, "a", "b")
        assert found.origin == Pose()
        assert found.axis == (1.0, 0.0, 0.0)
        assert found.limits == Limits(-math.inf, math.inf, math.inf, math.inf)
        assert found.mimic is found.independent is found.initial is None
        assert found.damping == found.friction == found.pitch == 0.0
        assert found.source == Source("<text>", 3, "joint 'j1'")

    def test_screw(self):
        found = first(robot(joint("j1", "a", "b", '<pitch value="-0.002"/>', type="screw"), BC))
        assert (found.type, found.pitch) == ("screw", -0.002)

    def test_negative_limits_are_none(self):
        limit = '<limit lower="-1" upper="1" effort="-1" velocity="-2"/>'
        with pytest.warns(DescriptionWarning, match="negative effort or velocity limit") as caught:
            found = read(robot(joint("j1", "a", "b", limit), BC)).joints[0]
        assert len(caught) == 1
        assert found.limits == Limits(-1.0, 1.0, math.inf, math.inf)

    def test_everything(self):
        found = first(
            robot(
                joint(
                    "j1",
                    "a",
                    "b",
                    '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="0 -0.6 0.8"/>',
                    '<limit lower="-1" upper="2" effort="3" velocity="4" acceleration="9"/>',
                    '<dynamics damping="5" friction="6"/><initial position="0.7"/>',
                    '<mimic joint="j2" multiplier="-8" offset="9"/>',
                    "<calibration/><safety_controller/>",
                    more='independent="true"',
                ),
                BC,
            )
        )
        assert found.origin == Pose((1.0, 2.0, 3.0), rotation_from_rpy(0.1, 0.2, 0.3))
        assert found.axis == (0.0, -0.6, 0.8)
        assert found.limits == Limits(lower=-1.0, upper=2.0, velocity=4.0, effort=3.0)
        assert found.mimic == Mimic("j2", -8.0, 9.0)
        assert found.independent is True
        assert (found.damping, found.friction, found.initial) == (5.0, 6.0, 0.7)

    @pytest.mark.parametrize(
        ("written", "meant"), [("true", True), ("false", False), ("1", True), ("0", False)]
    )
    def test_independent(self, written, meant):
        text = robot(joint("j1", "a", "b", more=f'independent="{written}"'), BC)
        assert first(text).independent is meant

    def test_armature(self):
        text = robot(joint("j1", "a", "b", '<armature value="0.25"/>'), BC)
        assert [each.armature for each in read(text, strict=True).joints] == [0.25, 0.0]

    def test_mimic_defaults(self):
        assert first(robot(joint("j1", "a", "b", '<mimic joint="j2"/>'), BC)).mimic == Mimic(
            "j2", 1.0, 0.0
        )

    def test_dynamics_defaults(self):
        found = first(robot(joint("j1", "a", "b", '<dynamics friction="2"/>'), BC))
        assert (found.damping, found.friction) == (0.0, 2.0)

    def test_limits_may_be_infinite_or_left_out(self):
        text = robot(joint("j1", "a", "b", '<limit lower="-inf" upper=" inf " effort="1"/>'), BC)
        assert first(text).limits == Limits(effort=1.0)

    def test_a_continuous_joint_has_no_position_limits(self):
        limit = '<limit lower="0" upper="0" velocity="3"/>'
        found = first(robot(joint("j1", "a", "b", limit, type="continuous"), BC))
        assert found.limits == Limits(velocity=3.0)

    def test_position_limits_of_a_continuous_joint_are_warned_of(self):
        limit = '<limit lower="-1" upper="1" velocity="3"/>'
        text = robot(joint("j1", "a", "b", limit, type="continuous"), BC)
        found = warned(text, "mean nothing in a continuous joint", line=3, element="joint 'j1'")
        assert found.joints[0].limits == Limits(velocity=3.0)

    @pytest.mark.parametrize("type_", ["fixed", "floating", "spherical"])
    def test_an_axis_that_is_not_used_may_be_zero(self, type_):
        found = first(robot(joint("j1", "a", "b", '<axis xyz="0 0 0"/>', type=type_), BC))
        assert found.axis == (1.0, 0.0, 0.0)

    @pytest.mark.parametrize(
        ("origin", "xyz", "rpy"),
        [
            ("<origin/>", (0, 0, 0), (0, 0, 0)),
            ('<origin xyz="1 2 3"/>', (1, 2, 3), (0, 0, 0)),
            ('<origin rpy="0 0 1.5"/>', (0, 0, 0), (0, 0, 1.5)),
            ('<origin xyz="\t1\n  2 3 "/>', (1, 2, 3), (0, 0, 0)),
        ],
    )
    def test_origin(self, origin, xyz, rpy):
        found = first(robot(joint("j1", "a", "b", origin), BC)).origin
        assert found.xyz == xyz
        expected = Rotation.from_euler("xyz", rpy).as_matrix()
        np.testing.assert_allclose(found.rotation, expected, atol=1e-15)

    def test_rpy_is_about_fixed_axes(self):
        found = first(robot(joint("j1", "a", "b", '<origin rpy="0.3 -0.4 2.5"/>'), BC)).origin
        expected = Rotation.from_euler("xyz", [0.3, -0.4, 2.5]).as_matrix()
        np.testing.assert_allclose(found.rotation, expected, atol=1e-15)

    def test_quaternion(self):
        quaternion = np.array([0.1, -0.2, 0.3, 0.4]) / math.sqrt(0.3)
        text = " ".join(map(repr, quaternion.tolist()))
        found = first(robot(joint("j1", "a", "b", f'<origin quat_xyzw="{text}"/>'), BC)).origin
        expected = Rotation.from_quat(quaternion).as_matrix()
        np.testing.assert_allclose(found.rotation, expected, atol=1e-15)
        assert found.rotation != IDENTITY


class TestLoops:
    @pytest.mark.parametrize("type_", LOOP_TYPES)
    def test_types(self, type_):
        (found,) = read(robot(AB, BC, loop(type=type_, ends="ca")), strict=True).loops
        assert (found.name, found.type) == ("l", type_)
        assert (found.predecessor, found.successor) == (Anchor("c"), Anchor("a"))
        assert found.axis == (1.0, 0.0, 0.0)
        assert found.axis2 is found.length is None
        assert found.source == Source("<text>", 5, "loop 'l'")

    @pytest.mark.parametrize(
        "type_", ["revolute", "continuous", "prismatic", "planar", "universal"]
    )
    def test_axis_keeps_its_sign(self, type_):
        (found,) = read(robot(AB, BC, loop('<axis xyz="0 0 -1"/>', type=type_)), strict=True).loops
        assert found.axis == (0.0, 0.0, -1.0)

    def test_axis2(self):
        text = loop('<axis xyz="0 0 1"/><axis2 xyz="0 -1 0"/>', type="universal")
        (found,) = read(robot(AB, BC, text), strict=True).loops
        assert (found.axis, found.axis2) == ((0.0, 0.0, 1.0), (0.0, -1.0, 0.0))

    def test_anchors(self):
        text = (
            '<loop name="l" type="fixed">'
            '<predecessor link="b"><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/></predecessor>'
            '<successor link="c"><origin xyz="4 5 6"/></successor></loop>'
        )
        (found,) = read(robot(AB, BC, text), strict=True).loops
        assert found.predecessor == Anchor(
            "b", Pose((1.0, 2.0, 3.0), rotation_from_rpy(0.1, 0.2, 0.3))
        )
        assert found.successor == Anchor("c", Pose((4.0, 5.0, 6.0)))

    def test_rod(self):
        (found,) = read(robot(AB, BC, loop(type="rod", more='length="0.25"')), strict=True).loops
        assert found.length == 0.25


class TestCouplings:
    def test_of_links(self):
        text = (
            '<coupling name="gear"><predecessor link="b"/><successor link="c"/>'
            '<ratio value="-6"/><offset value="0.5"/></coupling>'
        )
        (found,) = read(robot(AB, joint("j2", "a", "c"), text), strict=True).couplings
        assert found == LinkCoupling(
            "gear", "b", "c", -6.0, 0.5, Source("<text>", 5, "coupling 'gear'")
        )

    def test_of_links_with_defaults(self):
        text = '<coupling name="g"><predecessor link="b"/><successor link="c"/></coupling>'
        (found,) = read(robot(AB, joint("j2", "a", "c"), text), strict=True).couplings
        assert (found.ratio, found.offset) == (1.0, 0.0)

    def test_of_joints(self):
        text = (
            '<coupling name="sum"><joint name="j1"/><joint name="j2" ratio="-2"/>'
            '<offset value="0.1"/></coupling>'
        )
        (found,) = read(robot(AB, BC, text), strict=True).couplings
        assert found == JointCoupling(
            "sum", (("j1", 1.0), ("j2", -2.0)), 0.1, Source("<text>", 5, "coupling 'sum'")
        )

    def test_of_joints_without_offset(self):
        text = '<coupling name="s"><joint name="j1" ratio="3"/></coupling>'
        (found,) = read(robot(AB, BC, text), strict=True).couplings
        assert (found.terms, found.offset) == ((("j1", 3.0),), 0.0)


class TestSpellings:
    """What xacro, exporters and other readers write and take."""

    @pytest.mark.parametrize(
        ("text", "value"), [("True", True), ("False", False), (" TRUE ", True)]
    )
    def test_flags_in_either_case(self, text, value):
        found = first(robot(joint("j", "a", "b", more=f'independent="{text}"'), links="ab"))
        assert found.independent is value

    def test_several_flags_in_either_case(self):
        text = joint("j", "a", "b", type="planar", more='independent="True false FALSE"')
        assert first(robot(text, links="ab")).independent == (True, False, False)

    def test_a_type_of_couplings_changes_nothing(self):
        text = '<coupling name="c" type="rolling"><joint name="j1"/><joint name="j2"/></coupling>'
        assert len(read(robot(AB, BC, text), strict=True).couplings) == 1

    @pytest.mark.parametrize("tag", ["loop", "coupling"])
    def test_ends_as_exporters_write_them(self, tag):
        kind = 'type="fixed"' if tag == "loop" else ""
        text = f'<{tag} name="x" {kind}>\n<predecessor name="b"/>\n<sucessor name="c"/></{tag}>'
        with pytest.warns(DescriptionWarning) as caught:
            found = read(robot(AB, BC, text))
        (each,) = found.loops or found.couplings
        ends = (each.predecessor, each.successor)
        assert [getattr(end, "link", end) for end in ends] == ["b", "c"]
        said = [str(warning.message) for warning in caught]
        assert any("<text>:7" in line and "read as <successor>" in line for line in said)
        assert any("<text>:6" in line and "<predecessor link=...>" in line for line in said)

    def test_the_world_that_nobody_declares(self):
        text = robot(joint("j", "world", "a"), joint("k", "world", "b"), links="ab")
        with pytest.warns(DescriptionWarning, match="'world' is not declared") as caught:
            found = read(text)
        assert [link.name for link in found.links] == ["a", "b", "world"]
        assert caught[0].message.source.line == 3
        with pytest.raises(DescriptionError, match="'world' is not declared"):
            read(text, strict=True)

    def test_the_world_of_an_extension(self):
        more = robot(joint("j", "world", "a"), links="")
        with pytest.warns(DescriptionWarning, match="'world' is not declared"):
            assert read(robot(links="a"), extend=more).joints[0].parent == "world"

    def test_a_ratio_of_zero(self):
        ends = '<predecessor link="b"/><successor link="c"/>'
        text = robot(AB, BC, f'<coupling name="x">{ends}<ratio value="0"/></coupling>')
        refused(text, "the ratio is zero", line=5, element="coupling 'x'")

    def test_limits_that_exporters_write_for_free_joints(self):
        text = robot(joint("j", "a", "b", '<limit lower="1" upper="-1" effort="5"/>'), links="ab")
        words = "some exporters write a joint without limits"
        found = warned(text, words, line=3, element="joint 'j'")
        assert found.joints[0].limits == Limits(effort=5.0)

    @pytest.mark.parametrize(
        ("written", "numbers"),
        [("0,0.1,0.2", (0.0, 0.1, 0.2)), ("0, 0.1, 0.2", (0.0, 0.1, 0.2)), ("1;2;3", None)],
    )
    def test_commas_between_numbers(self, written, numbers):
        text = robot(joint("j", "a", "b", f'<origin xyz="{written}"/>'), links="ab")
        if numbers is None:
            refused(text, "is not a number", line=3, element="joint 'j'")
        else:
            words = 'separate the numbers by spaces, as in "0 0.1 0.2"'
            found = warned(text, words, line=3, element="joint 'j'")
            assert found.joints[0].origin.xyz == numbers

    def test_gazebo_from_before_sdf(self):
        with pytest.raises(DescriptionError) as caught:
            read('<gazebo version="1.0"><model name="m"/></gazebo>')
        assert "from before it had SDF's root element" in caught.value.message


class TestTransmissions:
    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ('<transmission name="t"><type> Simple </type>{}</transmission>', "Simple"),
            ('<transmission name="t" type="Simple">{}</transmission>', "Simple"),
            (
                '<ros2_control name="s"><transmission name="t"><plugin>P</plugin>{}</transmission>'
                '<joint name="nowhere"/></ros2_control>',
                "P",
            ),
            ('<transmission name="t">{}</transmission>', ""),
        ],
    )
    def test_are_kept(self, text, kind):
        ends = (
            '<joint name="j1"><x/><role> joint1 </role><offset>0.5</offset>'
            "<mechanicalReduction>-2</mechanicalReduction></joint>"
            '<joint name="j2" role="joint2"/>'
            '<actuator name="m"><hardwareInterface>E</hardwareInterface>'
            "<mechanical_reduction> 50.0 </mechanical_reduction></actuator>"
        )
        (found,) = read(robot(AB, BC, text.format(ends)), strict=True).transmissions
        assert found == Transmission(
            "t",
            kind,
            (TransmittedJoint("j1", "joint1", -2.0, 0.5), TransmittedJoint("j2", "joint2")),
            (Actuator("m", "", 50.0),),
            Source("<text>", 5, "transmission 't'"),
        )

    def test_of_pr2_has_its_reduction_itself(self):
        text = (
            '<transmission name="t" type="pr2_mechanism_model/SimpleTransmission">'
            '<actuator name="m"/><joint name="j1"/>'
            "<mechanicalReduction>79.25</mechanicalReduction></transmission>"
        )
        (found,) = read(robot(AB, BC, text), strict=True).transmissions
        assert found.actuators == (Actuator("m", "", 79.25),)

    @pytest.mark.parametrize(
        ("inner", "words"),
        [
            ("<mechanicalReduction>1,5</mechanicalReduction>", "write a decimal point"),
            ("<mechanicalReduction/>", "is empty and needs one number"),
            ("<mechanical_reduction>0</mechanical_reduction>", "is zero; 1 is a direct drive"),
            ("<mechanicalReductions>3</mechanicalReductions>", "did you mean 'mechanicalReduction"),
        ],
    )
    def test_reductions_that_matter_to_nothing_are_only_warned_of(self, inner, words):
        text = f'<transmission name="t"><actuator name="m">{inner}</actuator></transmission>'
        found = warned(robot(AB, BC, text), words, line=5, element="transmission 't'")
        assert found.transmissions[0].actuators == (Actuator("m"),)

    def test_of_joints_that_are_not_there(self):
        text = '<transmission name="t"><type>S</type><joint name="j11"/></transmission>'
        warned(
            robot(AB, BC, text),
            "the joint 'j11' is not in the robot; did you mean 'j1'?",
            line=5,
            element="transmission 't'",
        )


def test_a_second_gravity_is_not_read():
    text = '<robot name="r"><link name="a"/><gravity xyz="0 0 1"/>\n<gravity xyz="0 0 2"/></robot>'
    with pytest.warns(DescriptionWarning, match="<text>:2: .* another <gravity>"):
        assert read(text).gravity == (0.0, 0.0, 1.0)
    low, moon = (
        '<robot name="r"><link name="a"/></robot>',
        '<robot><gravity xyz="0 0 -1.6"/></robot>',
    )
    assert read(low, extend=moon).gravity == (0.0, 0.0, -1.6)


def test_everything_keeps_the_order_of_the_file():
    text = robot(
        joint("z", "a", "b"),
        loop(name="z"),
        '<coupling name="z"><joint name="z"/></coupling>',
        joint("y", "b", "c"),
        loop(name="y"),
        '<coupling name="y"><joint name="y"/></coupling>',
        links="cba",
    )
    found = read(text, strict=True)
    assert [thing.name for thing in found.links] == ["c", "b", "a"]
    for things in (found.joints, found.loops, found.couplings):
        assert [thing.name for thing in things] == ["z", "y"]


EXAMPLES = robot_files(*URDF_PAGES)


class TestTheFormatReference:
    @pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.split('"')[1])
    def test_every_example_is_read_without_a_murmur(self, text):
        assert len(read(text, strict=True).links) > 1

    def test_every_word_has_an_example(self):
        found = [read(text) for text in EXAMPLES]
        assert {joint.type for robot in found for joint in robot.joints} == set(JOINT_TYPES)
        assert {loop.type for robot in found for loop in robot.loops} == set(LOOP_TYPES)
        assert {type(c) for robot in found for c in robot.couplings} == {
            LinkCoupling,
            JointCoupling,
            PolynomialCoupling,
        }
        joints = [joint for robot in found for joint in robot.joints]
        assert any(joint.mimic for joint in joints)
        assert any(joint.initial for joint in joints)
        assert any(joint.armature for joint in joints)
        links = [link for robot in found for link in robot.links]
        assert sum(link.name.endswith("_rotor") for link in links) == 3
        assert {shape.role for link in links for shape in link.shapes} == {"visual", "collision"}
        assert {joint.independent for joint in joints} == {None, True, False}
        assert any(loop.length for robot in found for loop in robot.loops)
        assert any(loop.axis2 for robot in found for loop in robot.loops)
        assert any(robot.transmissions for robot in found)


# ---- what is odd ---------------------------------------------------------------------------------


def test_errors_and_descriptions_pickle():
    with pytest.raises(DescriptionError) as caught:
        read(BAD)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.line) == (str(caught.value), 2)
    description = read(EXAMPLES[0])
    assert pickle.loads(pickle.dumps(description)) == description
