"""Mesh files that come from anyone: where links lead, and files that are more than their size."""

from __future__ import annotations

import base64
import json
import os
import struct
import sys
import zipfile
from pathlib import Path

import pytest
from texts import joint, link, robot

import robomodel as rm
from robomodel.description import Shape, shapes
from robomodel.description.shapes import load_mesh
from robomodel.errors import DescriptionError, MissingPackageError, Source
from robomodel.files import Allowance

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("collada")


def robot_file(path: Path, *names: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    shapes = "".join(
        f'<collision><geometry><mesh filename="{name}"/></geometry></collision>' for name in names
    )
    path.write_text(robot(link("a", shapes), joint("j", "base", "a")))
    return path


def mass(path: Path) -> float:
    return rm.load(path, inertia_from="collision").mass


def refused(path: Path, message: str) -> None:
    with pytest.raises(DescriptionError, match=message) as caught:
        mass(path)
    assert caught.value.element == "link 'a'"
    assert caught.value.file == str(path)


def cube(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    trimesh.creation.box(extents=(0.1, 0.1, 0.1)).export(path)
    return path


# ---- which files ---------------------------------------------------------------------------------

posix = pytest.mark.skipif(os.name != "posix", reason="pipes and links as POSIX has them")


@posix
def test_links_do_not_leave_the_folder(tmp_path: Path) -> None:
    outside = cube(tmp_path / "cube.stl")
    path = robot_file(tmp_path / "pack" / "urdf" / "r.urdf", "../meshes/cube.stl")
    folder = tmp_path / "pack" / "meshes"
    cube(folder / "cube.stl")
    assert mass(path) == pytest.approx(1.0, rel=1e-6)
    (folder / "near.stl").symlink_to(folder / "cube.stl")
    (folder / "far.stl").symlink_to(outside)
    (folder / "up").symlink_to(tmp_path)
    assert mass(robot_file(path, "../meshes/near.stl")) == pytest.approx(1.0, rel=1e-6)
    for name in ("../meshes/far.stl", "../meshes/up/cube.stl", "package://pack/meshes/far.stl"):
        refused(robot_file(path, name), "leads out of the folder .* by a symbolic link")


@posix
def test_a_package_of_links_to_another_is_that_other(tmp_path: Path) -> None:
    """As colcon builds with --symlink-install."""
    source = robot_file(tmp_path / "src" / "pack" / "urdf" / "r.urdf",
                        "package://pack/meshes/cube.stl", "../meshes/cube.stl")  # fmt: skip
    cube(tmp_path / "src" / "pack" / "meshes" / "cube.stl")
    share = tmp_path / "install" / "share" / "pack"
    for name in ("urdf/r.urdf", "meshes/cube.stl"):
        (share / name).parent.mkdir(parents=True)
        (share / name).symlink_to(tmp_path / "src" / "pack" / name)
    assert mass(share / "urdf" / "r.urdf") == mass(source) == pytest.approx(2.0, rel=1e-6)


@posix
def test_what_is_no_plain_file(tmp_path: Path) -> None:
    path = robot_file(tmp_path / "r.urdf", "m.stl")
    os.mkfifo(tmp_path / "m.stl")
    refused(path, "the mesh 'm.stl' is not a plain file")
    (tmp_path / "m.stl").unlink()
    (tmp_path / "m.stl").symlink_to("/dev/zero")
    refused(path, "leads out of the folder")
    (tmp_path / "m.stl").unlink()
    (tmp_path / "m.stl").mkdir()
    refused(path, "is not a plain file")


@pytest.mark.slow
def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = robot_file(tmp_path / "r.urdf", "m.stl")
    with open(tmp_path / "m.stl", "wb") as stream:
        stream.truncate(2**40)
    refused(path, "the mesh 'm.stl' is larger than 128 MiB")
    cube(tmp_path / "m.stl")
    path = robot_file(tmp_path / "r.urdf", *["m.stl"] * 4)
    assert mass(path) == pytest.approx(4.0, rel=1e-6)
    monkeypatch.setattr("robomodel.description.shapes.Allowance", lambda: Allowance(files=3))
    refused(path, "one too many")
    size = (tmp_path / "m.stl").stat().st_size
    monkeypatch.setattr(
        "robomodel.description.shapes.Allowance", lambda: Allowance(bytes=4 * size - 1)
    )
    refused(path, "one too many")


def test_meshes_of_mjcf_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco")
    cube(tmp_path / "m.stl")
    path = tmp_path / "r.xml"
    path.write_text(
        '<mujoco><asset><mesh name="m" file="m.stl"/><mesh name="n" file="m.stl"/></asset>'
        '<worldbody><body><joint/><geom type="mesh" mesh="m"/><geom type="mesh" mesh="n"/></body>'
        "</worldbody></mujoco>"
    )
    assert rm.load(path).mass == pytest.approx(2.0, rel=1e-6)
    monkeypatch.setattr("robomodel.parsers.mjcf.source.Allowance", lambda: Allowance(files=1))
    with pytest.raises(DescriptionError, match=r"'m.stl' is one too many"):
        rm.load(path)
    monkeypatch.setattr("robomodel.parsers.mjcf.source.MAX_MESH_BYTES", 100)
    with pytest.raises(DescriptionError, match=r"'m.stl' is larger than"):
        rm.load(path)


# ---- files that are more than their size ---------------------------------------------------------


def loaded(path: Path) -> trimesh.Trimesh:
    path.with_name("r.urdf").touch()
    source = Source(str(path.with_name("r.urdf")), 1, "link 'a'")
    return load_mesh(Shape("visual", "mesh", (1.0,) * 3, file=path.name, source=source))


def too_much(path: Path, message: str) -> None:
    with pytest.raises(DescriptionError, match=f"'{path.name}' is not read: .*{message}"):
        loaded(path)


VERTICES = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
FACES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))


def threemf(path: Path, objects: str, items: str, spaces: int = 0, members: int = 0) -> Path:
    name = "http://schemas.microsoft.com/3dmanufacturing/core/2015/02"
    vertices = "".join(f'<vertex x="{x}" y="{y}" z="{z}"/>' for x, y, z in VERTICES)
    faces = "".join(f'<triangle v1="{a}" v2="{b}" v3="{c}"/>' for a, b, c in FACES)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "3D/3dmodel.model",
            f'<model unit="meter" xmlns="{name}"><resources><object id="1" type="model"><mesh>'
            f"<vertices>{vertices}</vertices><triangles>{faces}</triangles></mesh></object>"
            f"{objects}</resources><build>{items}</build></model>",
        )
        archive.writestr("spaces", " " * spaces)
        for i in range(members):
            archive.writestr(str(i), "")
    return path


def twice(i: int) -> str:
    part = f'<component objectid="{i - 1}"/>'
    return f'<object id="{i}" type="model"><components>{part}{part}</components></object>'


def test_3mf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("networkx")
    path = tmp_path / "m.3mf"
    assert len(loaded(threemf(path, "", '<item objectid="1"/>')).faces) == 4
    monkeypatch.setattr(shapes, "MAX_INFLATED", 2**20)
    too_much(threemf(path, "", '<item objectid="1"/>', spaces=3 * 2**20), "inflates to 3 MiB")
    too_much(threemf(path, "", '<item objectid="1"/>', members=1001), "in 1003 files")
    too_much(threemf(path, "", '<item objectid="1"/>' * 10_001), "10000 copies")
    laughs = "".join(map(twice, range(2, 60)))
    too_much(threemf(path, laughs, '<item objectid="59"/>'), "10000 copies")
    path.write_text("no archive")
    with pytest.raises(DescriptionError, match="cannot be read"):
        loaded(path)


def collada(path: Path, nodes: str, scene: str) -> Path:
    numbers = " ".join(str(x) for vertex in VERTICES for x in vertex)
    path.write_text(
        '<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset>'
        '<unit meter="1" name="meter"/><up_axis>Z_UP</up_axis></asset><library_geometries>'
        f'<geometry id="g"><mesh><source id="p"><float_array id="x" count="12">{numbers}'
        '</float_array><technique_common><accessor source="#x" count="4" stride="3">'
        + "".join(f'<param name="{x}" type="float"/>' for x in "XYZ")
        + '</accessor></technique_common></source><vertices id="v"><input semantic="POSITION" '
        'source="#p"/></vertices><triangles count="4"><input semantic="VERTEX" source="#v" '
        f'offset="0"/><p>{" ".join(str(i) for face in FACES for i in face)}</p></triangles></mesh>'
        f"</geometry></library_geometries><library_nodes>{nodes}</library_nodes>"
        f'<library_visual_scenes><visual_scene id="s"><node id="top">{scene}</node></visual_scene>'
        '</library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>'
    )
    return path


def test_collada(tmp_path: Path) -> None:
    path, one = tmp_path / "m.dae", '<instance_geometry url="#g"/>'
    assert len(loaded(collada(path, "", one * 3)).faces) == 12
    assert len(loaded(collada(path, f'<node id="n">{one}</node>',
                              '<instance_node url="#n"/>' * 2)).faces) == 8  # fmt: skip
    too_much(collada(path, "", one * 10_001), "10000 copies")
    laughs = f'<node id="n0">{one}</node>' + "".join(
        f'<node id="n{i}">{f"""<instance_node url="#n{i - 1}"/>""" * 2}</node>'
        for i in range(1, 60)
    )
    too_much(collada(path, laughs, '<instance_node url="#n59"/>'), "10000 copies")
    text = path.read_bytes()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m.dae", text)
    too_much(path, "archive; unpack it")


GLTF = {
    "asset": {"version": "2.0"},
    "scene": 0,
    "scenes": [{"nodes": [0]}],
    "nodes": [{"mesh": 0}],
    "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
    "buffers": [{"byteLength": 72, "uri": "data:application/octet-stream;base64,"
                 + base64.b64encode(
                     struct.pack("<12f", *(x for vertex in VERTICES for x in vertex))
                     + struct.pack("<12H", *(i for face in FACES for i in face))).decode()}],
    "bufferViews": [{"buffer": 0, "byteOffset": 0, "byteLength": 48},
                    {"buffer": 0, "byteOffset": 48, "byteLength": 24}],
    "accessors": [{"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"},
                  {"bufferView": 1, "componentType": 5123, "count": 12, "type": "SCALAR"}],
}  # fmt: skip


def gltf(path: Path, **changes: object) -> Path:
    path.write_text(json.dumps(GLTF | changes))
    return path


def test_gltf(tmp_path: Path) -> None:
    path = tmp_path / "m.gltf"
    assert len(loaded(gltf(path)).faces) == 4
    scenes = [{"nodes": list(range(10_001))}]
    too_much(gltf(path, nodes=[{"mesh": 0}] * 10_001, scenes=scenes), "10000 copies")
    zeros = {"componentType": 5126, "count": 10**10, "type": "VEC3"}
    too_much(gltf(path, accessors=[zeros, *GLTF["accessors"][1:]]), "more numbers than it has")
    elsewhere = [{"uri": "m.bin", "byteLength": 72}]
    too_much(gltf(path, buffers=elsewhere), "in another file, 'm.bin'; convert it to one .glb")
    gltf(path, nodes=[{"mesh": 0}] * 9, scenes=[{"nodes": list(range(9))}])
    assert len(loaded(path).faces) == 36
    binary = path.with_suffix(".glb")
    loaded(path).export(binary)
    assert len(loaded(binary).faces) == 36


def test_copies_are_counted_by_their_triangles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapes, "MAX_FACES", 11)
    one = '<instance_geometry url="#g"/>'
    assert len(loaded(collada(tmp_path / "m.dae", "", one * 2)).faces) == 8
    too_much(collada(tmp_path / "m.dae", "", one * 3), "more than 11 triangles")


def test_a_format_that_needs_another_package_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "collada", None)
    with pytest.raises(MissingPackageError, match=r"link 'a': \.dae meshes need collada: pip"):
        loaded(collada(tmp_path / "m.dae", "", '<instance_geometry url="#g"/>'))
