"""Packages in folders that the user names, xacro files, and files of other kinds."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest
from texts import four_bar, joint, link, robot

import robomodel as rm
from robomodel.files import Resources, package_path
from robomodel.parsers import read

trimesh = pytest.importorskip("trimesh")


@pytest.fixture
def workspace(tmp_path):
    """Packages as ROS has them: in sources, installed, and as Gazebo's models."""
    box = trimesh.creation.box((0.1, 0.2, 0.3)).export(file_type="stl")
    for folder in ("src/stack/arm", "install/share/leg", "models/cup"):
        (tmp_path / folder / "meshes").mkdir(parents=True)
        (tmp_path / folder / "meshes" / "box.stl").write_bytes(box)
    (tmp_path / "src/stack/arm/package.xml").write_text("<package/>")
    (tmp_path / "elsewhere").mkdir()
    return tmp_path


def shaped(uri, role="collision"):
    shape = f'<{role}><geometry><mesh filename="{uri}"/></geometry></{role}>'
    return robot(link("box", shape), joint("hinge", "base", "box"))


MASS = 1000.0 * 0.1 * 0.2 * 0.3


class TestWhereTheyAre:
    def given(self, workspace, monkeypatch, how):
        monkeypatch.setenv("ROS_PACKAGE_PATH", f"{workspace / 'nowhere'}:{workspace / 'src'}")
        monkeypatch.setenv("AMENT_PREFIX_PATH", str(workspace / "install"))
        monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(workspace / "models"))
        return {
            "a package": ("package://arm/", workspace / "src/stack/arm"),
            "a folder of packages": ("package://arm/", str(workspace / "src/stack")),
            "a workspace": ("package://arm/", [workspace / "src"]),
            "a prefix": ("package://leg/", [workspace / "install"]),
            "by name": ("package://other/", {"other": workspace / "src/stack/arm"}),
            "several": ("model://cup/", [workspace / "src", {"cup": workspace / "models/cup"}]),
            "ROS 1": ("package://arm/", "ROS_PACKAGE_PATH"),
            "ROS 2": ("package://leg/", ["ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"]),
            "Gazebo": ("model://cup/", "GZ_SIM_RESOURCE_PATH"),
        }[how]

    @pytest.mark.parametrize(
        "how",
        [
            *("a package", "a folder of packages", "a workspace", "a prefix", "by name"),
            *("several", "ROS 1", "ROS 2", "Gazebo"),
        ],
    )
    @pytest.mark.parametrize("kept", ["text", "file"])
    def test_meshes(self, workspace, monkeypatch, how, kept):
        uri, resources = self.given(workspace, monkeypatch, how)
        source = shaped(f"{uri}meshes/box.stl")
        if kept == "file":
            path = workspace / "elsewhere" / "robot.urdf"
            path.write_text(source)
            source = path
        model = rm.load(source, resources=resources, inertia_from="collision")
        assert model.mass == pytest.approx(MASS, rel=1e-6)  # STL has float32

    def test_nothing_is_looked_for_unless_asked(self, workspace, monkeypatch):
        uri, _ = self.given(workspace, monkeypatch, "ROS 1")
        path = workspace / "robot.urdf"
        path.write_text(shaped(f"{uri}meshes/box.stl"))
        with pytest.raises(rm.DescriptionError, match="say where it is by resources="):
            rm.load(path, inertia_from="collision")

    def test_what_is_not_there(self, workspace, monkeypatch):
        with pytest.raises(FileNotFoundError, match="resources: no such folder"):
            rm.load(four_bar(), resources=workspace / "nowhere")
        with pytest.raises(FileNotFoundError):
            rm.load(four_bar(), resources={"arm": workspace / "nowhere"})
        monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
        with pytest.raises(ValueError, match="the environment has no ROS_PACKAGE_PATH"):
            rm.load(four_bar(), resources="ROS_PACKAGE_PATH")

    @pytest.mark.parametrize("rest", ["../../secret.stl", "meshes/link.stl"])
    def test_no_way_out_of_a_package(self, workspace, rest):
        secret = workspace / "src" / "secret.stl"
        secret.write_bytes((workspace / "models/cup/meshes/box.stl").read_bytes())
        (workspace / "src/stack/arm/meshes/link.stl").symlink_to(secret)
        text = shaped(f"package://arm/{rest}")
        with pytest.raises(rm.DescriptionError, match=r"outside of its package|leads out of"):
            rm.load(text, resources=workspace / "src", inertia_from="collision")

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "no"])
    def test_names_that_are_none(self, workspace, name):
        assert Resources.of(workspace).find(name) is None

    def test_the_first_folder_counts_and_names_count_more(self, workspace):
        for folder in ("one", "two"):
            (workspace / folder / "arm").mkdir(parents=True)
        both = [workspace / "two", workspace / "one"]
        assert Resources.of(both).find("arm") == workspace / "two" / "arm"
        own = Resources.of([*both, {"arm": workspace / "src"}])
        assert own.find("arm") == workspace / "src"

    def test_uris(self):
        assert package_path("package://a/b/c.stl") == ("a", "b/c.stl")
        assert package_path("model://a") == ("a", "")
        assert package_path("file://a/b") is None
        assert package_path("a/b.stl") is None


class TestSdf:
    MODEL = (
        '<sdf version="1.9"><model name="cup"><link name="cup"><inertial><mass>0.3</mass><inertia>'
        "<ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial></link></model></sdf>"
    )

    def world(self, uri):
        return (
            f'<sdf version="1.9"><model name="m"><include><uri>{uri}</uri></include></model></sdf>'
        )

    @pytest.mark.parametrize(
        "uri", ["model://cup", "package://cup/model.sdf", "model://cup/model.sdf"]
    )
    def test_models(self, workspace, uri):
        (workspace / "models/cup/model.sdf").write_text(self.MODEL)
        path = workspace / "elsewhere" / "robot.sdf"
        path.write_text(self.world(uri))
        for source in (path, self.world(uri)):
            description = read(source, resources=workspace / "models", strict=True)
            assert description.links[1].name.endswith("::cup")
            assert description.links[1].inertial.mass == 0.3
        assert Path(description.links[1].source.file).name == "model.sdf"

    def test_what_is_not_there(self, workspace):
        with pytest.raises(rm.DescriptionError, match="'model://pot'"):
            read(self.world("model://pot"), resources=workspace / "models")
        with pytest.raises(rm.DescriptionError, match="name its folder by resources="):
            read(self.world("package://cup"))
        with pytest.raises(
            rm.DescriptionError, match=r"there is no 'model://cup/no\.sdf' in the folder"
        ):
            read(self.world("model://cup/no.sdf"), resources=workspace / "models")


# --- xacro ----------------------------------------------------------------------------------------

HEAD = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="legs">\n'
MACROS = (
    '<xacro:macro name="leg" params="side length">\n<link name="${side}_leg"><inertial><mass '
    'value="${2*length}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    '</link>\n<joint name="${side}_hip" type="continuous"><parent link="base"/><child '
    'link="${side}_leg"/></joint>\n</xacro:macro>\n'
)
LEGS = (
    f'{HEAD}<xacro:arg name="length" default="0.5"/>\n{MACROS}<link name="base"/>\n'
    '<xacro:leg side="left" length="$(arg length)"/><xacro:leg side="right" length="1"/>\n</robot>'
)


class TestXacro:
    @pytest.fixture(autouse=True)
    def _needs_xacro(self):
        pytest.importorskip("xacro")

    @pytest.fixture
    def legs(self, tmp_path):
        path = tmp_path / "legs.urdf.xacro"
        path.write_text(LEGS)
        return path

    def test_files_are_expanded_by_their_name(self, legs):
        model = rm.load(legs)
        assert model.dof_names == ("left_hip", "right_hip")
        assert model.mass == 3.0
        assert rm.load(legs, xacro={"length": 2}).mass == 6.0

    def test_texts_and_other_names_where_arguments_are_given(self, legs):
        other = legs.with_name("legs.urdf")
        other.write_text(LEGS)
        assert rm.load(other, xacro={}).mass == rm.load(LEGS, xacro={}).mass == 3.0
        for source in (other, LEGS):
            with pytest.raises(rm.DescriptionError, match=r"give its arguments.*xacro=\{\}"):
                rm.load(source)

    def test_what_is_no_xacro_file_is_itself(self):
        assert read(four_bar(), xacro={}).joints[0].name == "j_crank"

    def test_lines_that_nobody_knows_are_not_told(self, legs):
        legs.write_text(LEGS.replace('link="base"/><child', 'link="bsae"/><child'))
        with pytest.raises(rm.DescriptionError, match="did you mean 'base'") as caught:
            rm.load(legs)
        error = caught.value
        assert (error.file, error.line, error.element) == (str(legs), None, "joint 'left_hip'")

    def test_packages(self, tmp_path):
        parts = tmp_path / "share" / "parts" / "macros.xacro"
        parts.parent.mkdir(parents=True)
        parts.write_text(f"{HEAD}{MACROS}</robot>")
        text = LEGS.replace(MACROS, '<xacro:include filename="$(find parts)/macros.xacro"/>')
        path = tmp_path / "legs.xacro"
        path.write_text(text)
        for resources in ({"parts": parts.parent}, tmp_path, [tmp_path / "share"]):
            assert rm.load(path, resources=resources).mass == 3.0
        with pytest.raises(
            rm.DescriptionError, match="say where it is, as in resources="
        ) as caught:
            rm.load(path)
        assert "the package 'parts' is not known" in str(caught.value)
        beside = tmp_path / "share" / "parts" / "legs.xacro"  # in the package that it names
        beside.write_text(text)
        assert rm.load(beside).mass == 3.0
        value = '<xacro:property name="here" value="${xacro.find(\'parts\')}"/>'
        path.write_text(text.replace("<link", f"{value}<link", 1))
        with pytest.raises(rm.DescriptionError):  # functions of other versions of the package
            rm.load(path, resources={"no": parts.parent})

    def test_arguments_that_it_does_not_have(self, legs):
        with pytest.warns(
            rm.DescriptionWarning, match="no argument 'lenght'; did you mean 'length'"
        ):
            rm.load(legs, xacro={"lenght": 2})
        with pytest.raises(rm.DescriptionError, match="no argument 'lenght'"):
            rm.load(legs, xacro={"lenght": 2}, strict=True)

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("${2*length}", "${2*lenght}", "lenght"),
            ("${2*length}", "${2/0}", "division by zero"),
            ('default="0.5"', "", "missing attribute 'default'"),
            ("<xacro:leg", "<xacro:lgge", "unknown macro name: xacro:lgge"),
            ("</xacro:macro>", "", "opened in line"),
        ],
    )
    def test_programs_that_fail(self, legs, old, new, words):
        legs.write_text(LEGS.replace(old, new))
        with pytest.raises(rm.DescriptionError) as caught:
            rm.load(legs)
        assert words in str(caught.value)
        assert caught.value.file == str(legs)

    def test_entities_are_refused_here_too(self, legs):
        legs.write_text(f'<!DOCTYPE r [<!ENTITY a "b">]>{LEGS}')
        with pytest.raises(rm.DescriptionError, match="entities"):
            rm.load(legs)

    def test_what_xacro_warns_of(self, legs):
        legs.write_text(LEGS.replace("<link", '<xacro:property name="pi" value="3"/><link', 1))
        with pytest.warns(rm.DescriptionWarning, match="xacro says: redefining global symbol: pi"):
            rm.load(legs)

    def test_meshes_beside_the_file(self, legs):
        (legs.parent / "box.stl").write_bytes(trimesh.creation.box().export(file_type="stl"))
        legs.write_text(f"{HEAD}{shaped('box.stl').partition(chr(10))[2]}")
        assert rm.load(legs, inertia_from="collision").mass == pytest.approx(1000.0)

    def test_other_formats_and_extensions(self, tmp_path, legs):
        path = tmp_path / "more.xacro"
        path.write_text(f'{HEAD}<joint name="left_hip"><limit effort="${{2*3}}"/></joint></robot>')
        model = rm.load(legs, extend=path)
        assert model.joints[model.joint_names.index("left_hip")].effort_limit == 6.0
        sdf = tmp_path / "cup.sdf.xacro"
        sdf.write_text(TestSdf.MODEL.replace("0.3", "${0.1+0.2}"))
        assert rm.load(sdf).mass == 0.1 + 0.2


# --- files of other kinds -------------------------------------------------------------------------


def zipped():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("robot.urdf", four_bar())
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("robot.zip", zipped(), "this is a zip archive; unpack it"),
        ("robot.urdf", zipped(), "this is a zip archive"),
        ("robot.urdf.gz", gzip.compress(four_bar().encode()), "compressed by gzip"),
        ("robot.urdf", b"PXR-USDC\0\0\0\0", "this is a USD file; give its path, with the ending"),
        ("robot.usd", b"PXR-USDC\0\0\0\0", "USD cannot read this: "),
        ("robot.usda", b'#usda 1.0\n(\n)\ndef Xform "robot" {}', "the stage has no rigid body"),
        ("robot.usdz", zipped(), "USD cannot read this: "),
    ],
)
def test_files_of_other_kinds(tmp_path, name, data, words):
    path = tmp_path / name
    path.write_bytes(data)
    for source in (path, str(path), path.open("rb")):
        with pytest.raises(rm.DescriptionError) as caught:
            rm.load(source)
        assert words in str(caught.value)
        assert caught.value.file == str(path)


def test_shapes_know_their_package(workspace):
    found = read(shaped("package://arm/meshes/box.stl"), resources=workspace / "src")
    (shape,) = found.links[1].shapes
    assert shape.file == "package://arm/meshes/box.stl"
    assert shape.package == str(workspace / "src/stack/arm")
