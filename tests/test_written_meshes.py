"""Meshes of robots that are written: copied, converted, left where they are, or left out."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
from texts import INERTIAL, joint, link, robot

import robomodel as rm
from robomodel.errors import DescriptionError, MissingPackageError

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("collada")

WRITE = {"urdf": rm.write_urdf, "sdf": rm.write_sdf, "xml": rm.write_mjcf}


def cube(path: Path, size: float = 0.1, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    trimesh.creation.box(extents=(size, size, size)).export(path, **options)
    return path


def package(folder: Path, *names: str, role: str = "visual", scale: str = "1 1 1") -> Path:
    """A robot with a mesh of each of these names, in a package with a folder of meshes."""
    shapes = "".join(
        f'<{role}><geometry><mesh filename="{name}" scale="{scale}"/></geometry></{role}>'
        for name in names
    )
    path = folder / "pack" / "urdf" / "r.urdf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(robot(link("a", INERTIAL + shapes), joint("j", "base", "a")))
    (path.parent.parent / "meshes").mkdir(exist_ok=True)
    return path


def meshes_of(path: Path) -> list[str]:
    return [s.file for each in rm.load(path).description.links for s in each.shapes]


def geometry(path: Path) -> list[float]:
    """How far the vertices of MuJoCo's meshes lie apart along x, in its geoms' own frames."""
    model = mujoco.MjModel.from_xml_path(str(path))
    found = []
    for geom in range(model.ngeom):
        mesh = model.geom_dataid[geom]
        first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, model.geom_quat[geom])
        vertices = model.mesh_vert[first : first + count] @ turn.reshape(3, 3).T
        found.append(float(np.ptp(vertices[:, 0])))
    return found


@pytest.mark.parametrize("ending", WRITE)
def test_meshes_are_copied_beside_the_file(tmp_path: Path, ending: str) -> None:
    source = package(tmp_path, "package://pack/meshes/a.stl", "../meshes/a.stl", "b.stl")
    cube(tmp_path / "pack" / "meshes" / "a.stl")
    cube(tmp_path / "pack" / "urdf" / "b.stl", 0.2)
    out = tmp_path / "out" / f"robot.{ending}"
    out.parent.mkdir()
    assert WRITE[ending](rm.load(source), out, meshes="copy") == ()
    assert meshes_of(out) == [f"robot_meshes/{name}" for name in ("a.stl", "a.stl", "b.stl")]
    copies = out.parent / "robot_meshes"
    assert {path.name for path in copies.iterdir()} == {"a.stl", "b.stl"}
    assert (copies / "a.stl").read_bytes() == (tmp_path / "pack/meshes/a.stl").read_bytes()
    assert {path.name for path in out.parent.iterdir()} == {out.name, "robot_meshes"}


def test_mujoco_loads_what_is_converted_for_it(tmp_path: Path) -> None:
    """COLLADA, text STL and an OBJ of mixed faces; at the size and scale that they have."""
    meshes = tmp_path / "pack" / "meshes"
    names = ["a.dae", "b.stl", "c.obj", "d.ply", "e.obj"]
    source = package(tmp_path, *(f"../meshes/{name}" for name in names), scale="2 1 1")
    text = cube(meshes / "a.dae").read_text()
    unit = '<unit name="half" meter="0.5"/><up_axis>'
    (meshes / "a.dae").write_text(text.replace("<up_axis>", unit, 1))
    cube(meshes / "b.stl", file_type="stl_ascii")
    cube(meshes / "d.ply")
    cube(meshes / "e.obj")
    (meshes / "c.obj").write_text(
        "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\nvn 0 0 -1\nvt 0 0\n"
        "f 1/1/1 3/1/1 2/1/1\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
    )
    out = tmp_path / "robot.xml"
    assert rm.write_mjcf(rm.load(source), out) == ()
    copies = {path.name for path in (tmp_path / "robot_meshes").iterdir()}
    assert copies == {"a.stl", "b.stl", "c.stl", "d.stl", "e.obj"}
    np.testing.assert_allclose(geometry(out), [0.1, 0.2, 0.2, 0.2, 0.2], rtol=1e-6)


def test_meshes_of_one_name_and_of_one_file(tmp_path: Path) -> None:
    names = ["../meshes/a.stl", "../meshes/left/a.stl", "../meshes/right/A.STL"]
    source = package(tmp_path, *names, names[0])
    for size, name in enumerate(names, start=1):
        cube(tmp_path / "pack" / "urdf" / name, 0.1 * size, file_type="stl")
    out = tmp_path / "robot.xml"
    rm.write_mjcf(rm.load(source), out)
    found = [Path(file).name for file in meshes_of(out)]
    assert found == ["a.stl", "a_2.stl", "A_3.STL", "a.stl"]
    np.testing.assert_allclose(geometry(out), [0.1, 0.2, 0.3, 0.1], rtol=1e-6)
    rm.write_mjcf(rm.load(source), out)  # again, over the copies
    assert len(list((tmp_path / "robot_meshes").iterdir())) == 3


def test_a_mesh_that_is_seen_and_touches_is_one_geom(tmp_path: Path) -> None:
    source = package(tmp_path, "../meshes/a.dae")
    text = source.read_text()
    seen = text[text.index("<visual>") : text.index("</visual>") + len("</visual>")]
    source.write_text(text.replace(seen, seen + seen.replace("visual", "collision")))
    cube(tmp_path / "pack" / "meshes" / "a.dae")
    rm.write_mjcf(rm.load(source), tmp_path / "robot.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    assert (model.ngeom, model.nmesh) == (1, 1)
    assert model.body_mass[-1] == rm.load(source).mass  # shapes weigh nothing


def test_a_flat_mesh_is_shown(tmp_path: Path) -> None:
    """It has no volume, from which MuJoCo would infer a mass."""
    source = package(tmp_path, "../meshes/a.obj")
    (tmp_path / "pack/meshes/a.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n"
    )
    rm.write_mjcf(rm.load(source), tmp_path / "robot.xml")
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml")).ngeom == 1


@pytest.mark.parametrize("ending", WRITE)
def test_meshes_that_are_not_there(tmp_path: Path, ending: str) -> None:
    source = package(tmp_path, "../meshes/a.stl", "../meshes/gone.stl", "package://other/b.stl")
    cube(tmp_path / "pack" / "meshes" / "a.stl")
    out = tmp_path / "out" / f"robot.{ending}"
    out.parent.mkdir()
    model = rm.load(source)
    with pytest.raises(DescriptionError, match=r"gone\.stl.*link 'a'.*meshes='drop'") as caught:
        WRITE[ending](model, out, meshes="copy")
    assert "package://other/b.stl" in str(caught.value)
    assert list(out.parent.iterdir()) == []
    lost = WRITE[ending](model, out, meshes="copy", drop=True)
    assert len(lost) == 2
    assert [Path(file).name for file in meshes_of(out)] == ["a.stl"]


@pytest.mark.parametrize("ending", WRITE)
def test_meshes_are_left_out(tmp_path: Path, ending: str) -> None:
    source = package(tmp_path, "../meshes/gone.stl")
    source.write_text(
        source.read_text().replace(
            "<visual>",
            '<visual><geometry><sphere radius="0.1"/></geometry></visual><visual>',
            1,
        )
    )
    out = tmp_path / f"robot.{ending}"
    assert WRITE[ending](rm.load(source), out, meshes="drop") == ()
    kinds = [s.kind for each in rm.load(out).description.links for s in each.shapes]
    assert kinds == ["sphere"]
    assert not (tmp_path / "robot_meshes").exists()


@pytest.mark.parametrize("ending", WRITE)
def test_meshes_are_kept_where_they_are(tmp_path: Path, ending: str) -> None:
    """Paths lead there from the written file; names of packages stay what ROS knows them by."""
    ros = "package://pack/meshes/a.stl"
    source = package(tmp_path, "../meshes/a.stl", ros)
    cube(tmp_path / "pack" / "meshes" / "a.stl")
    beside, away = source.with_name(f"out.{ending}"), tmp_path / "away" / f"out.{ending}"
    away.parent.mkdir()
    for out, path in ((beside, "../meshes/a.stl"), (away, "../pack/meshes/a.stl")):
        assert WRITE[ending](rm.load(source), out, meshes="keep") == ()
        assert meshes_of(out) == [path, path if ending == "xml" else ros]
        if ending == "xml":
            np.testing.assert_allclose(geometry(out), [0.1, 0.1], rtol=1e-6)


def test_what_is_kept_by_default(tmp_path: Path) -> None:
    """URDF and SDF keep meshes, MJCF copies them; in a stream nothing is beside."""
    source = package(tmp_path, "../meshes/a.stl")
    cube(tmp_path / "pack" / "meshes" / "a.stl")
    model = rm.load(source)
    for ending, write in WRITE.items():
        write(model, tmp_path / f"robot.{ending}")
        assert (tmp_path / "robot_meshes").exists() == (ending == "xml")
        stream = io.StringIO()
        write(model, stream)
        assert "../meshes/a.stl" in stream.getvalue()
        with pytest.raises(ValueError, match="write to a path"):
            write(model, stream, meshes="copy")
        with pytest.raises(ValueError, match="'copy', 'keep' or 'drop'"):
            write(model, stream, meshes="move")
    text = rm.load(source.read_text())  # which is from no file
    rm.write_mjcf(text, tmp_path / "text.xml")
    assert "../meshes/a.stl" in (tmp_path / "text.xml").read_text()


def test_meshes_of_an_included_file_are_found(tmp_path: Path) -> None:
    """They count from the file that they are named in."""
    source = tmp_path / "model" / "main.xml"
    body = '<body name="{}"><joint/><geom size="1"/><geom type="mesh" mesh="{}" mass="0"/></body>'
    for path in ("a.stl", "parts/b.stl"):
        cube(source.parent / path)
    (source.parent / "parts" / "i.xml").write_text(
        f'<mujoco><asset><mesh name="b" file="b.stl"/></asset><worldbody>{body.format("b", "b")}'
        "</worldbody></mujoco>"
    )
    source.write_text(
        '<mujoco><include file="parts/i.xml"/><asset><mesh name="a" file="a.stl"/></asset>'
        f"<worldbody>{body.format('a', 'a')}</worldbody></mujoco>"
    )
    out = tmp_path / "robot.xml"
    assert rm.write_mjcf(rm.load(source), out) == ()
    names = {Path(file).name for file in meshes_of(out) if file}
    assert names == {"a.stl", "b.stl"}
    assert rm.write_mjcf(rm.load(source), out, meshes="keep") == ()
    assert {file for file in meshes_of(out) if file} == {"model/a.stl", "model/parts/b.stl"}


def test_without_trimesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is needed only for what MuJoCo cannot read."""
    source = package(tmp_path, "../meshes/a.dae", "../meshes/b.stl")
    cube(tmp_path / "pack" / "meshes" / "a.dae")
    cube(tmp_path / "pack" / "meshes" / "b.stl")
    model = rm.load(source)
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(MissingPackageError, match="trimesh"):
        rm.write_mjcf(model, tmp_path / "robot.xml")
    assert {path.name for path in tmp_path.iterdir()} == {"pack"}
    rm.write_urdf(model, tmp_path / "robot.urdf", meshes="copy")
    assert os.listdir(tmp_path / "robot_meshes")


def test_a_mesh_without_faces_cannot_be_said(tmp_path: Path) -> None:
    source = package(tmp_path, "../meshes/a.ply")
    trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]).export(
        tmp_path / "pack/meshes/a.ply"
    )
    with pytest.raises(DescriptionError, match="has 1 triangles"):
        rm.write_mjcf(rm.load(source), tmp_path / "robot.xml")
