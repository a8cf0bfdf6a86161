"""SDF beyond one model's tree: worlds, includes, gearboxes, and a link called world."""

import math
import os

import numpy as np
import pytest
from sdf_texts import (
    DATA,
    UNIT,
    WORLD,
    gears,
    include,
    including,
    joint,
    link,
    named,
    refused,
    sdf,
    warned,
)

import robomodel as rm
from robomodel.description import (
    JointCoupling,
    LinkCoupling,
)
from robomodel.errors import DescriptionError, DescriptionWarning
from robomodel.model import build
from robomodel.parsers import read

# ---- joints --------------------------------------------------------------------------------------


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


class TestGearboxes:
    """θ₂ = −ratio θ₁, angles of child and parent in the reference body, about axis2 and axis."""

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
        description = read(gears(3.0, inner, outer))
        (found,) = description.couplings
        assert isinstance(found, LinkCoupling)
        assert (found.predecessor, found.successor, found.ratio) == ("motor", "out", sign * 3.0)
        model = build(description)
        q = model.joint_positions(model.configuration({"m": 0.2}))
        assert float(q["o"]) == pytest.approx(sign * 0.6, rel=1e-14)

    def test_seen_from_another_body(self):
        """In the motor, base and output turn: θ₁ = −m, θ₂ = o − m, so o = (1 + ratio) m."""
        text = gears(3.0, reference="motor", parent="base")
        (found,) = read(text).couplings
        assert isinstance(found, JointCoupling)
        q = {"m": 0.1, "o": 0.4}
        assert sum(q[name] * k for name, k in found.terms) == pytest.approx(found.offset, abs=1e-15)

    def turned(self, roll):
        """The gearbox's axes are y of a frame that is turned until y is nearly z."""
        axes = "<axis><xyz>0 1 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>"
        return gears().replace(
            "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>",
            f"<pose>0 0 0 {roll} 0 0</pose>{axes}",
        )

    def test_axes_that_are_turned_by_a_rounded_right_angle(self):
        (found,) = read(self.turned("1.5708"), strict=True).couplings
        assert found == read(gears()).couplings[0]
        with pytest.warns(DescriptionWarning) as caught:
            assert read(self.turned("1.57")).couplings == (found,)
        assert "<axis> misses the axis of the joint 'm' by 0.0008 rad" in str(caught[0].message)
        refused(self.turned("1.5"), "does not turn about <axis>", line=9, element="joint 'g'")

    def test_refusals(self):
        element = "joint 'g'"
        refused(gears(inner="1 0 0"), "does not turn about <axis>", line=9, element=element)
        refused(gears(reference="no"), "'no'", line=9, element=element)
        refused(gears(reference="out"), "nothing turns 'out'", line=9, element=element)


# ---- masses, shapes, worlds ----------------------------------------------------------------------


class TestWorlds:
    def test_several_models_are_one_robot_unless_one_is_named(self):
        found = warned(WORLD, "2 models: 'table', 'arm'", "name='arm'", line=1, element="<sdf>")
        assert found == read(WORLD, name="w")
        refused(WORLD, "no model 'am'", "did you mean 'arm'?", line=1, element="<sdf>", name="am")

    def test_several_models_without_a_world(self):
        models = "".join(f'<model name="{name}">{link("l")}</model>' for name in "ab")
        text = f'<sdf version="1.6">{models}</sdf>'
        found = warned(text, "2 models: 'a', 'b'", line=1, element="<sdf>")
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

    def test_a_joint_between_the_model_and_the_world_is_the_models(self):
        bolt = joint("bolt", "fixed", "table::top", "arm::base", "")
        bolted = WORLD.replace(bolt, joint("bolt", "fixed", "world", "arm::base", ""))
        assert rm.load(bolted, name="arm").nv == 1

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


# ---- includes ------------------------------------------------------------------------------------


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
        found = warned(text, "stands for it", "'m::world'", line=4, element="link 'world'")
        assert [each.name for each in found.links] == ["world", "m::world", "a"]
        fixed = named(found.joints, "m::world")
        assert (fixed.type, fixed.parent, fixed.origin.xyz) == ("fixed", "world", (0, 0, 3))
        assert named(found.joints, "j").parent == "m::world"
        assert build(found).nv == 1

    def test_that_is_one_of_its_own(self):
        found = warned(self.text(UNIT), "one of its own", line=4, element="link 'world'")
        assert named(found.joints, "floating_base").child == "m::world"
        assert build(found).nv == 7

    def test_is_refused_in_new_files(self):
        text = self.text(UNIT, "1.7")
        refused(text, "cannot be called 'world'", line=4, element="link 'world'")
