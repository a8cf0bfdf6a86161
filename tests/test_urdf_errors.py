"""What the URDF reader refuses, with line, element and remedy."""

import re

import pytest
from urdf_texts import AB, BC, inertial, joint, loop, refused, robot, warned

from robomodel.description import (
    Limits,
)
from robomodel.errors import (
    DescriptionError,
    DescriptionWarning,
)
from robomodel.parsers import read

# ---- bad numbers ---------------------------------------------------------------------------------


class TestNumbers:
    @pytest.mark.parametrize(
        ("written", "words"),
        [
            ("1,5", 'write a decimal point, as in "1.5"'),
            ("1_000", 'write digits without underscores, as in "1000"'),
            ("nan", "'nan' is not a finite number"),
            ("inf", "'inf' is not a finite number"),
            ("-Infinity", "'-Infinity' is not a finite number"),
            ("1e999", "'1e999' is not a finite number"),
            ("", "is empty and needs one number"),
            ("  ", "is empty and needs one number"),
            ("1 2", "needs one number, got 2 ('1 2')"),
            ("one", "'one' is not a number"),
            ("0x10", "'0x10' is not a number"),
            ("٣", "'٣' is not a number"),
            ("${pi/2}", "expand the file with xacro first"),
            ("1\u00a0", "write plain spaces"),
        ],
    )
    def test_one(self, written, words):
        words = (f"value of <mass> {'' if 'needs one' in words else 'is '}", words)
        refused(
            inertial(f'<mass value="{written}"/>'),
            words[0].strip(),
            words[1],
            line=3,
            element="link 'a'",
        )

    @pytest.mark.parametrize("entry", ["ixx", "ixy", "ixz", "iyy", "iyz", "izz"])
    @pytest.mark.parametrize("written", ["nan", "inf", "1,5", "1_0", "٣", ""])
    def test_each_entry_of_the_inertia(self, entry, written):
        refused(inertial(**{entry: written}), f"{entry} of <inertia>", line=4, element="link 'a'")

    @pytest.mark.parametrize(
        ("written", "words"),
        [
            ("0 1", "needs three numbers, got 2 ('0 1')"),
            ("0 0 1 0", "needs three numbers, got 4"),
            ("", "is empty and needs three numbers"),
            ("0 0,5 1", 'write a decimal point, as in "0.5"'),
            ("0 0 nan", "'nan' is not a finite number"),
            ("0 inf 0", "'inf' is not a finite number"),
            ("0 1_0 0", "without underscores"),
            ("0 0 z", "'z' is not a number"),
            ("0 0 ١", "'١' is not a number"),
            ("0\u00a00\u20031", "write plain spaces"),
        ],
    )
    def test_three(self, written, words):
        refused(
            robot(AB, joint("j2", "b", "c", f'\n<origin xyz="{written}"/>')),
            "xyz of <origin>",
            words,
            line=5,
            element="joint 'j2'",
        )

    @pytest.mark.parametrize("inner", ['<origin rpy="{}"/>', '<axis xyz="{}"/>'])
    def test_three_elsewhere(self, inner):
        text = robot(AB, joint("j2", "b", "c", inner.format("0 0 1,5")))
        refused(text, "decimal point", line=4, element="joint 'j2'")

    def test_four(self):
        text = robot(AB, joint("j2", "b", "c", '<origin quat_xyzw="0 0 1"/>'))
        refused(text, "needs four numbers, got 3", line=4, element="joint 'j2'")

    @pytest.mark.parametrize(
        ("inner", "where"),
        [
            ('<limit lower="{}"/>', "lower of <limit>"),
            ('<limit upper="{}"/>', "upper of <limit>"),
            ('<limit effort="{}"/>', "effort of <limit>"),
            ('<limit velocity="{}"/>', "velocity of <limit>"),
            ('<dynamics damping="{}"/>', "damping of <dynamics>"),
            ('<dynamics friction="{}"/>', "friction of <dynamics>"),
            ('<mimic joint="j1" multiplier="{}"/>', "multiplier of <mimic>"),
            ('<mimic joint="j1" offset="{}"/>', "offset of <mimic>"),
            ('<initial position="{}"/>', "position of <initial>"),
        ],
    )
    @pytest.mark.parametrize("written", ["1,5", "NaN", "1_5"])
    def test_in_a_joint(self, inner, where, written):
        text = robot(AB, joint("j2", "b", "c", inner.format(written)))
        refused(text, where, line=4, element="joint 'j2'")

    def test_in_loops_and_couplings(self):
        bad = '<coupling name="g"><predecessor link="b"/><successor link="c"/><{}/></coupling>'
        for inner in ('ratio value="1,5"', 'offset value="1,5"'):
            refused(robot(AB, BC, bad.format(inner)), "1.5", line=5, element="coupling 'g'")
        refused(
            robot(AB, BC, '<coupling name="g"><joint name="j1" ratio="1,5"/></coupling>'),
            "ratio of <joint>",
            "1.5",
            line=5,
            element="coupling 'g'",
        )
        refused(
            robot(AB, BC, loop(type="rod", more='length="1,5"')),
            "length of <loop>",
            "1.5",
            line=5,
            element="loop 'l'",
        )

    def test_an_endless_value_is_not_quoted_whole(self):
        with pytest.raises(DescriptionError) as caught:
            read(inertial(f'<mass value="{"x" * 10_000}"/>'))
        assert len(str(caught.value)) < 300


# ---- bad elements --------------------------------------------------------------------------------


class TestBadLinks:
    @pytest.mark.parametrize(
        ("attribute", "words"),
        [("", "is missing"), ('name=""', "is empty"), ('name=" "', "is empty")],
    )
    def test_name(self, attribute, words):
        refused(
            f'<robot name="r">\n<link {attribute}/></robot>',
            f"<link>: the attribute 'name' {words}",
            line=2,
            element="link ' '" if '" "' in attribute else "<link>",
        )

    def test_negative_mass(self):
        refused(
            inertial('<mass value="-2.5"/>'),
            "value of <mass> is -2.5; it is not negative",
            line=3,
            element="link 'a'",
        )

    def test_no_mass(self):
        refused(inertial(""), '<inertial> has no <mass value="..."/>', line=2, element="link 'a'")

    def test_mass_without_value(self):
        refused(
            inertial("<mass/>"),
            "<mass>: the attribute 'value' is missing",
            line=3,
            element="link 'a'",
        )

    def test_no_inertia(self):
        text = (
            '<robot name="r"><link name="a">\n<inertial><mass value="1"/></inertial></link></robot>'
        )
        refused(text, "<inertial> has no <inertia>", "point mass", line=2, element="link 'a'")

    @pytest.mark.parametrize("entry", ["ixx", "ixy", "ixz", "iyy", "iyz", "izz"])
    def test_inertia_without_an_entry(self, entry):
        refused(
            inertial(**{entry: None}),
            f"<inertia>: the attribute '{entry}' is missing",
            line=4,
            element="link 'a'",
        )


class TestBadJoints:
    def bad(self, *inner, words, type="revolute", more="", line=5):  # noqa: A002
        text = robot(AB, joint("j2", "b", "c", *("\n" + i for i in inner), type=type, more=more))
        refused(text, words, line=line, element="joint 'j2'")

    def test_name(self):
        refused(
            robot('<joint type="fixed"/>'),
            "<joint>: the attribute 'name' is missing",
            line=3,
            element="<joint>",
        )

    def test_no_type(self):
        refused(
            robot('<joint name="j"/>'),
            "<joint>: the attribute 'type' is missing",
            line=3,
            element="joint 'j'",
        )

    def test_unknown_type(self):
        refused(
            robot(joint("j", "a", "b", type="Revolute")),
            "the type 'Revolute' is not known; did you mean 'revolute'?; known: revolute, "
            "continuous, prismatic, fixed, floating, planar, spherical, screw",
            line=3,
            element="joint 'j'",
        )

    @pytest.mark.parametrize("which", ["parent", "child"])
    def test_an_end_is_missing(self, which):
        text = re.sub(f"<{which} [^>]*>", "", joint("j", "a", "b"))
        refused(
            robot(text), f'needs a {which} link: <{which} link="..."/>', line=3, element="joint 'j'"
        )

    @pytest.mark.parametrize("type_", ["revolute", "continuous", "prismatic", "planar", "screw"])
    def test_zero_axis(self, type_):
        pitch = ('<pitch value="1"/>',) if type_ == "screw" else ()
        self.bad(
            '<axis xyz="0 0 -0.0"/>',
            *pitch,
            words='<axis> is zero; give it a direction, as in <axis xyz="0 0 1"/>',
            type=type_,
        )

    def test_axis_without_xyz(self):
        self.bad("<axis/>", words="<axis>: the attribute 'xyz' is missing")

    @pytest.mark.parametrize(
        ("axis", "length"), [("1 1 0", "1.41421"), ("0 0 0.99", "0.99"), ("0 0 1e-200", "1e-200")]
    )
    def test_axis_that_is_not_unit(self, axis, length):
        found = warned(
            robot(AB, joint("j2", "b", "c", f'<axis xyz="{axis}"/>')),
            f"has the length {length}, not 1",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].axis == tuple(map(float, axis.split()))

    def test_axis_that_is_unit_but_for_rounding(self):
        text = robot(AB, joint("j2", "b", "c", '<axis xyz="0.577 0.577 0.577"/>'))
        assert read(text, strict=True).joints[1].axis == (0.577, 0.577, 0.577)

    @pytest.mark.parametrize("limit", ['lower="inf"', 'upper="-inf"'])
    def test_limits_that_leave_nothing(self, limit):
        self.bad(f"<limit {limit}/>", words="these limits leave no finite position")

    def test_negative_armature(self):
        self.bad('<armature value="-1"/>', words="value of <armature> is -1; it is not negative")

    def test_armature_of_a_fixed_joint(self):
        found = warned(
            robot(AB, joint("j2", "b", "c", '<armature value="1"/>', type="fixed")),
            "<armature> means nothing in a fixed joint",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].armature == 0.0

    @pytest.mark.parametrize(
        ("rotor", "words"),
        [
            ('ratio="9"', '<rotor> needs inertia="..."'),
            ('inertia="0" ratio="9"', "the rotor's inertia 0 is not positive"),
            ('inertia="-1" ratio="9"', "the rotor's inertia -1 is not positive"),
            ('inertia="1,5" ratio="9"', "decimal point"),
            ('inertia="1" ratio="0"', "ratio of <rotor> is 0; 1 is a direct drive"),
            ('inertia="1" ratio="9" mass="-1"', "mass of <rotor> is -1; it is not negative"),
            (
                'inertia="1" ratio="9" transverse="-1"',
                "transverse of <rotor> is -1; it is not negative",
            ),
        ],
    )
    def test_rotor(self, rotor, words):
        self.bad(f"<rotor {rotor}/>", words=words)

    @pytest.mark.parametrize("type_", ["revolute", "prismatic"])
    def test_no_limit(self, type_):
        text = robot(AB, joint("j2", "b", "c", type=type_).replace("<limit/>", ""))
        found = warned(
            text,
            f"has no <limit>, which URDF demands of a {type_} joint; it is taken as unlimited",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].limits == Limits()

    def test_no_limits_anywhere_are_one_warning(self):
        joints = [joint(f"j{i}", f"l{i}", f"l{i + 1}").replace("<limit/>", "") for i in range(9)]
        with pytest.warns(DescriptionWarning) as caught:
            read(robot(*joints, links=[f"l{i}" for i in range(10)]))
        (message,) = (str(warning.message) for warning in caught)
        assert message.startswith("<text>:3: joint 'j0': has no <limit>")
        assert message.endswith("joint 'j3' (line 6), joint 'j4' (line 7) and 4 more")

    def test_screw_without_pitch(self):
        self.bad(words='a screw joint needs <pitch value="..."/>', type="screw", line=4)

    def test_pitch_of_another(self):
        found = warned(
            robot(AB, joint("j2", "b", "c", '<pitch value="1"/>')),
            "<pitch> means nothing in a revolute joint",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].pitch == 0.0

    def test_independent(self):
        self.bad(
            words="independent must be 'true' or 'false', got 'yes'",
            more='independent="yes"',
            line=4,
        )

    @pytest.mark.parametrize("type_", ["fixed", "floating", "planar", "spherical"])
    def test_initial_position(self, type_):
        self.bad(
            '<initial position="1"/>',
            words=f"one degree of freedom, not for a {type_} joint",
            type=type_,
        )

    def test_initial_position_without_a_value(self):
        self.bad("<initial/>", words="<initial>: the attribute 'position' is missing")

    def test_initial_position_outside_the_limits(self):
        inner = '<limit lower="-1" upper="1"/><initial position="1.5"/>'
        found = warned(
            robot(AB, joint("j2", "b", "c", inner)),
            "the initial position 1.5 lies outside the limits [-1, 1]",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].initial == 1.5

    def test_rpy_and_quaternion(self):
        self.bad('<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>', words="both rpy and quat_xyzw")

    def test_zero_quaternion(self):
        self.bad('<origin quat_xyzw="0 0 0 0"/>', words="quat_xyzw is zero")

    def test_quaternion_that_is_not_unit(self):
        found = warned(
            robot(AB, joint("j2", "b", "c", '<origin quat_xyzw="0 0 2 0"/>')),
            "has the norm 2; it is normalised",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].origin.rotation == ((-1, 0, 0), (0, -1, 0), (0, 0, 1))


class TestBadMimic:
    def test_without_a_joint(self):
        refused(
            robot(AB, joint("j2", "b", "c", "<mimic/>")),
            "<mimic>: the attribute 'joint' is missing",
            line=4,
            element="joint 'j2'",
        )

    @pytest.mark.parametrize(
        ("leader", "words"),
        [
            ("j1x", "the mimicked joint 'j1x' is not in the robot; did you mean 'j1'?"),
            ("elbow", "the mimicked joint 'elbow' is not in the robot"),
            ("j2", "the joint mimics itself"),
        ],
    )
    def test_of_what_cannot_be(self, leader, words):
        text = robot(AB, joint("j2", "b", "c", f'<mimic joint="{leader}"/>'))
        refused(text, words, line=4, element="joint 'j2'")

    @pytest.mark.parametrize("type_", ["fixed", "floating", "planar", "spherical"])
    def test_of_a_joint_without_one_dof(self, type_):
        text = robot(
            joint("j1", "a", "b", type=type_), joint("j2", "b", "c", '<mimic joint="j1"/>')
        )
        refused(text, f"the mimicked joint 'j1' is {type_}", line=4, element="joint 'j2'")

    @pytest.mark.parametrize("type_", ["floating", "planar", "spherical"])
    def test_by_a_joint_with_several_dofs(self, type_):
        text = robot(AB, joint("j2", "b", "c", '<mimic joint="j1"/>', type=type_))
        refused(text, f"a {type_} joint cannot mimic another", line=4, element="joint 'j2'")

    def test_by_a_fixed_joint(self):
        # real files have it, where a gripper was made rigid by changing its joints' types
        found = warned(
            robot(AB, joint("j2", "b", "c", '<mimic joint="j1"/>', type="fixed")),
            "<mimic> means nothing in a fixed joint",
            line=4,
            element="joint 'j2'",
        )
        assert found.joints[1].mimic is None


class TestBadLoops:
    def bad(self, text, *words):
        refused(robot(AB, BC, text), *words, line=5, element="loop 'l'")

    def test_name(self):
        refused(
            robot('<loop type="fixed"/>'),
            "<loop>: the attribute 'name' is missing",
            line=3,
            element="<loop>",
        )

    def test_unknown_type(self):
        self.bad(
            loop(type="sperical"),
            "the type 'sperical' is not known; did you mean 'spherical'?; known: revolute, "
            "continuous, prismatic, planar, fixed, spherical, universal, rod",
        )

    @pytest.mark.parametrize("which", ["predecessor", "successor"])
    def test_an_end_is_missing(self, which):
        self.bad(re.sub(f"<{which} [^>]*>", "", loop()), f"needs a {which} link")

    @pytest.mark.parametrize("which", ["predecessor", "successor"])
    def test_an_end_without_link(self, which):
        self.bad(
            re.sub(f"<{which} [^>]*>", f"<{which}/>", loop()),
            f"<{which}>: the attribute 'link' is missing",
        )

    @pytest.mark.parametrize(
        ("ends", "words"),
        [(("x", "b"), "the predecessor link 'x'"), (("b", "x"), "the successor link 'x'")],
    )
    def test_an_end_that_is_not_there(self, ends, words):
        self.bad(loop(ends=ends), f"{words} is not in the robot")

    def test_one_link_at_both_ends(self):
        self.bad(loop(ends="bb"), "the same link 'b'")

    @pytest.mark.parametrize("type_", ["revolute", "prismatic", "planar", "universal"])
    def test_zero_axis(self, type_):
        self.bad(loop('<axis xyz="0 0 0"/>', type=type_), "<axis> is zero")

    def test_zero_axis2(self):
        self.bad(loop('<axis2 xyz="0 0 0"/>', type="universal"), "<axis2> is zero")

    @pytest.mark.parametrize("length", ["0", "-0.1"])
    def test_length_of_a_rod(self, length):
        self.bad(loop(type="rod", more=f'length="{length}"'), "is not positive", "spherical")

    def test_length_of_another(self):
        found = warned(
            robot(AB, BC, loop(more='length="1"')),
            "'length' means nothing in a revolute loop",
            line=5,
            element="loop 'l'",
        )
        assert found.loops[0].length is None

    def test_axis2_of_another(self):
        found = warned(
            robot(AB, BC, loop('<axis2 xyz="0 0 1"/>')),
            "<axis2> means nothing in a revolute loop",
            line=5,
            element="loop 'l'",
        )
        assert found.loops[0].axis2 is None


class TestBadCouplings:
    def bad(self, inner, *words, joints=(AB, BC)):
        text = robot(*joints, f'<coupling name="g">{inner}</coupling>')
        refused(text, *words, line=5, element="coupling 'g'")

    def test_name(self):
        refused(
            robot("<coupling/>"),
            "<coupling>: the attribute 'name' is missing",
            line=3,
            element="<coupling>",
        )

    def test_of_nothing(self):
        self.bad(
            '<ratio value="2"/>', "couples nothing", "<predecessor link>", "<joint name ratio>"
        )

    def test_half(self):
        self.bad('<predecessor link="b"/>', "needs a successor link")

    @pytest.mark.parametrize("inner", ['<predecessor link="b"/>', '<ratio value="2"/>'])
    def test_of_links_and_joints(self, inner):
        self.bad(f'<joint name="j1"/>{inner}', "write two couplings")

    @pytest.mark.parametrize(
        ("ends", "words"),
        [
            (("x", "c"), "the predecessor link 'x' is not in the robot"),
            (("b", "x"), "the successor link 'x' is not in the robot"),
            (("b", "b"), "the same link 'b'"),
        ],
    )
    def test_of_links(self, ends, words):
        p, s = ends
        self.bad(f'<predecessor link="{p}"/><successor link="{s}"/>', words)

    def test_of_a_joint_that_is_not_there(self):
        self.bad(
            '<joint name="j1"/><joint name="j22"/>',
            "the joint 'j22' is not in the robot; did you mean 'j2'?",
        )

    def test_of_a_joint_twice(self):
        self.bad('<joint name="j1"/><joint name="j1"/>', "the joint 'j1' is named twice")

    @pytest.mark.parametrize("type_", ["fixed", "floating", "planar", "spherical"])
    def test_of_a_joint_without_one_dof(self, type_):
        self.bad(
            '<joint name="j1"/><joint name="j2"/>',
            f"the joint 'j2' is {type_}; only joints of one degree of freedom",
            joints=(AB, joint("j2", "b", "c", type=type_)),
        )

    def test_with_zero_ratios(self):
        self.bad('<joint name="j1" ratio="0"/>', "every ratio is zero")

    def test_value_missing(self):
        self.bad('<joint name="j1"/><offset/>', "<offset>: the attribute 'value' is missing")
