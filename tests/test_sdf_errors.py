"""What the SDF reader refuses and warns of, with line and element."""

import warnings

import pytest
from sdf_texts import UNIT, gears, joint, link, named, refused, sdf, warned

from robomodel.errors import DescriptionError
from robomodel.parsers import read

# ---- refusals ------------------------------------------------------------------------------------


class TestRefusals:
    def test_another_root_element(self):
        with pytest.raises(DescriptionError, match=r"root element <sdf>, not <robot>"):
            read('<robot name="a"><link name="b"/></robot>', format="sdf")

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
            (
                "universal",
                "<axis><xyz>0 0.6 0.8</xyz></axis><axis2><xyz>0 -0.6 -0.8</xyz></axis2>",
                "<axis2> is parallel to <axis>",
            ),
            ("screw", "<axis><xyz>1 0 0</xyz></axis>", "needs <screw_thread_pitch>"),
            (
                "screw",
                "<thread_pitch>0</thread_pitch><axis><xyz>1 0 0</xyz></axis>",
                "cannot be 0",
            ),
            ("revolute", "<axis><xyz>0 0 0</xyz></axis>", "the axis is zero"),
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
        warned(sdf(link("a"), version="1.13"), "read as 1.12", line=1, element="<sdf>")
        text = sdf(link("a")).replace(' version="1.11"', "")
        warned(text, "no version", line=1, element="<sdf>")

    def test_nothing_and_too_deep(self):
        refused('<sdf version="1.7"/>', "no <model>", line=1, element="<sdf>")
        deep = '<model name="n">' * 100 + link("l") + "</model>" * 100
        refused(sdf(deep), "64 deep", line=3, element="model 'n'")

    def test_unknown_words(self):
        warned(sdf(link("a"), "<jont/>"), "<jont>", "'joint'", line=4, element="model 'm'")
        text = sdf(link("a"), "<drake:joint name='j'/>")
        warned(text, "<drake:joint>", line=4, element="model 'm'")

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


# ---- mutations -----------------------------------------------------------------------------------


class TestWhatMutantsFound:
    def test_two_links_of_one_name_under_a_gearbox(self):
        """The way up from a link, followed by name, went round for ever."""
        frame = '<frame name="motor" attached_to="out"/>'
        text = gears().replace("</model>", f"{frame}</model>")
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
