"""URDF files as a whole: trees, unknown words, suspicious values."""

from pathlib import Path

import pytest
from urdf_texts import AB, BC, SMALL, inertial, joint, loop, refused, robot, warned

from robomodel.errors import (
    DescriptionError,
    DescriptionWarning,
    Issue,
    Source,
    warn_at,
    warn_of_all,
)
from robomodel.parsers import read

# ---- the whole -----------------------------------------------------------------------------------


class TestStructure:
    def test_no_links(self):
        refused('<robot name="r"/>', "the robot has no links", line=1, element="robot 'r'")

    @pytest.mark.parametrize(
        ("again", "kind"),
        [
            ('<link name="a"/>', "link"),
            (joint("j1", "b", "c"), "joint"),
            (loop(), "loop"),
            ('<coupling name="l"><joint name="j2"/></coupling>', "coupling"),
        ],
    )
    def test_duplicate_names(self, again, kind):
        coupling = '<coupling name="l"><joint name="j1"/></coupling>'
        text = robot(AB, BC, loop(), coupling, again)
        name, line = {"link": ("a", 2), "joint": ("j1", 3), "loop": ("l", 5), "coupling": ("l", 6)}[
            kind
        ]
        refused(
            text,
            f"another {kind} has this name already (<text>:{line}); rename",
            line=7,
            element=f"{kind} '{name}'",
        )

    def test_a_link_and_a_joint_may_share_a_name(self):
        assert read(robot(joint("a", "a", "b"), BC), strict=True).joints[0].name == "a"

    @pytest.mark.parametrize("which", ["parent", "child"])
    def test_links_that_are_not_there(self, which):
        ends = {"parent": ("shankk", "foot"), "child": ("shank", "foott")}[which]
        wrong = ends[0] if which == "parent" else ends[1]
        refused(
            robot(joint("j", *ends), links=["shank", "foot"]),
            f"the {which} link '{wrong}' is not in the robot; did you mean '{wrong[:-1]}'?",
            line=3,
            element="joint 'j'",
        )

    def test_the_child_of_two_joints(self):
        refused(
            robot(AB, BC, joint("j3", "a", "c")),
            "the link 'c' is already the child of joint 'j2' (<text>:4)",
            "as a <loop>",
            line=5,
            element="joint 'j3'",
        )

    def test_a_joint_from_a_link_to_itself(self):
        refused(robot(AB, joint("j2", "c", "c")), "the same link 'c'", line=4, element="joint 'j2'")

    def test_a_circle_without_a_root(self):
        refused(
            robot(AB, BC, joint("j3", "c", "a")),
            "the joints 'j1', 'j2', 'j3' lead round in a circle",
            "<loop>",
            line=3,
            element="joint 'j1'",
        )

    def test_a_circle_beside_a_root(self):
        refused(
            robot(AB, joint("j3", "c", "d"), joint("j4", "d", "c"), links="abcd"),
            "the joints 'j3', 'j4' lead round in a circle",
            line=4,
            element="joint 'j3'",
        )

    def test_a_circle_with_a_tail(self):
        text = robot(
            joint("tail", "c", "a"), joint("j3", "b", "c"), joint("j4", "c", "b"), links="abc"
        )
        with pytest.raises(DescriptionError) as caught:
            read(text)
        assert "circle" in caught.value.message
        assert "'tail'" not in caught.value.message

    def test_two_roots(self):
        refused(
            robot(AB),
            "the robot has 2 roots",
            "'a', 'c'",
            "connect the others by joints",
            line=2,
            element="link 'c'",
        )

    def test_many_roots_are_not_all_named(self):
        links = [f"l{i}" for i in range(100)]
        with pytest.raises(DescriptionError, match=r"the robot has 100 roots.*'l5' and 94 more"):
            read(robot(links=links))

    def test_a_long_chain(self):
        count = 5000
        links = "".join(f'<link name="l{i}"/>\n' for i in range(count + 1))
        joints = "".join(joint(f"j{i}", f"l{i}", f"l{i + 1}") + "\n" for i in range(count))
        # from the tip to the base: the longest walk up comes first
        found = read(f'<robot name="r">{"".join(reversed(links.splitlines(True)))}{joints}</robot>')
        assert (len(found.links), len(found.joints)) == (count + 1, count)


# ---- what is odd ---------------------------------------------------------------------------------


class TestUnknownWords:
    @pytest.mark.parametrize(
        ("inner", "words", "element"),
        [
            ("<loopp/>", "<loopp> is not known and is ignored; did you mean 'loop'?", "<loopp>"),
            ("<Link/>", "<Link> is not known and is ignored; did you mean 'link'?", "<Link>"),
            ('<frame name="f"/>', "<frame> is not known", "frame 'f'"),
        ],
    )
    def test_elements_of_a_robot(self, inner, words, element):
        warned(robot(AB, BC, inner), words, line=5, element=element)

    def test_elements_with_a_namespace(self):
        text = robot(AB, BC, '<drake:joint name="j9" type="ball"/>')
        warned(
            text.replace("<robot", '<robot xmlns:drake="http://drake.mit.edu"'),
            "<drake:joint> is not known and is ignored",
            line=5,
            element="drake:joint 'j9'",
        )

    @pytest.mark.parametrize(
        ("body", "words", "element"),
        [
            ('<link name="d"><inertia/></link>', "<inertia> is not known", "link 'd'"),
            (
                joint("j3", "c", "d", '<limits lower="1"/>'),
                "<limits> is not known and is ignored; did you mean 'limit'?",
                "joint 'j3'",
            ),
            (loop('<limit lower="1"/>'), "<limit> is not known", "loop 'l'"),
            (
                '<coupling name="g"><joint name="j1"/><ofset value="1"/></coupling>',
                "<ofset> is not known and is ignored; did you mean 'offset'?",
                "coupling 'g'",
            ),
        ],
    )
    def test_elements_within(self, body, words, element):
        links = "abc" if 'name="d"' in body else "abcd"
        tie = () if "j3" in body else (joint("j0", "c", "d"),)
        warned(robot(AB, BC, body, *tie, links=links), words, line=5, element=element)

    @pytest.mark.parametrize(
        ("body", "words", "element"),
        [
            ('<link name="d" mass="1"/>', "'mass' of <link>", "link 'd'"),
            (joint("j3", "c", "d", more='actuated="1"'), "'actuated' of <joint>", "joint 'j3'"),
            (
                joint("j3", "c", "d", '<axis xyz="0 0 1" frame="x"/>'),
                "'frame' of <axis>",
                "joint 'j3'",
            ),
            (
                joint("j3", "c", "d", '<limit Lower="1"/>'),
                "'Lower' of <limit> is not known and is ignored; did you mean 'lower'?",
                "joint 'j3'",
            ),
            (
                joint("j3", "c", "d", '<dynamics stiffness="1"/>'),
                "'stiffness' of <dynamics>",
                "joint 'j3'",
            ),
            (
                joint("j3", "c", "d", '<mimic joint="j1" ratio="1"/>'),
                "'ratio' of <mimic>",
                "joint 'j3'",
            ),
            (loop(more='lenght="1"'), "'lenght' of <loop>", "loop 'l'"),
            (
                '<coupling name="g" ratio="1"><joint name="j1"/></coupling>',
                "'ratio' of <coupling>",
                "coupling 'g'",
            ),
            (
                '<coupling name="g"><joint name="j1" value="2"/></coupling>',
                "'value' of <joint>",
                "coupling 'g'",
            ),
        ],
    )
    def test_attributes(self, body, words, element):
        links = "abc" if 'link name="d"' in body else "abcd"
        tie = () if "j3" in body else (joint("j0", "c", "d"),)
        warned(
            robot(AB, BC, body, *tie, links=links),
            f"the attribute {words}",
            "is ignored",
            line=5,
            element=element,
        )

    def test_attributes_of_the_robot(self):
        warned(
            SMALL.replace("<robot", '<robot author="me"'),
            "'author' of <robot>",
            line=1,
            element="robot 'small'",
        )

    def test_no_name(self):
        found = warned(
            '<robot><link name="a"/></robot>', "the robot has no name", line=1, element="<robot>"
        )
        assert found.name == "robot"

    def test_twice(self):
        found = warned(
            robot(AB, joint("j2", "b", "c", '<axis xyz="0 0 1"/>\n<axis xyz="0 1 0"/>')),
            "<axis> is given twice; the first is read",
            line=5,
            element="joint 'j2'",
        )
        assert found.joints[1].axis == (0.0, 0.0, 1.0)

    def test_inertial_twice(self):
        text = inertial().replace("</link>", "\n<inertial/></link>")
        found = warned(text, "<inertial> is given twice", line=5, element="link 'a'")
        assert found.links[0].inertial.mass == 1.0


class TestSuspicions:
    def test_point_at_the_line_that_called(self):
        with pytest.warns(DescriptionWarning) as caught:
            read('<robot><link name="a"/></robot>')
        assert Path(caught[0].filename) == Path(__file__)

    def test_of_anyone(self):
        source = Source("file", 3, "link 'a'")
        with pytest.warns(DescriptionWarning, match=r"^file:3: link 'a': odd$"):
            warn_at("odd", source, strict=False)
        with pytest.raises(DescriptionError, match=r"^file:3: link 'a': odd$"):
            warn_at("odd", source, strict=True)

    def test_of_one_kind_are_told_together(self):
        issues = [
            Issue("odd", Source("file", 3, "link 'a'")),
            Issue("odd", Source("file", 5, "link 'b'")),
            Issue("odder", Source("file", 6, "link 'c'"), "odd"),
            Issue("odd", Source("other", 7, "link 'd'")),
            Issue("odd", Source("file", None, "link 'e'")),
            Issue("strange", Source("file", 3, "link 'a'")),
        ]
        with pytest.warns(DescriptionWarning) as caught:
            warn_of_all(issues, strict=False)
        assert [str(warning.message) for warning in caught] == [
            "file:3: link 'a': odd; likewise link 'b' (line 5), link 'c' (line 6), "
            "link 'd' (other:7), link 'e'",
            "file:3: link 'a': strange",
        ]
        with pytest.raises(DescriptionError, match=r"^file:3: link 'a': odd; likewise"):
            warn_of_all(issues, strict=True)
