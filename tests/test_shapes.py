"""Inertials from shapes: closed forms, meshes of the same solids, and where meshes may lie."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from texts import INERTIAL, joint, link, robot

import robomodel as rm
from robomodel.cli import main
from robomodel.description import Description, Inertial, Link, Pose, Shape, rotation_from_rpy
from robomodel.description.shapes import _closes, mesh_path, with_inertias
from robomodel.errors import DescriptionError, DescriptionWarning, MissingPackageError, Source

trimesh = pytest.importorskip("trimesh")

Array = NDArray[np.float64]
SOLIDS = {
    "box": (0.3, 0.2, 0.5),
    "sphere": (0.3,),
    "cylinder": (0.2, 0.5),
    "capsule": (0.2, 0.5),
    "ellipsoid": (0.2, 0.3, 0.1),
}


def computed(*shapes: Shape, density: float = 1000.0) -> Inertial:
    description = Description("r", (Link("a", shapes=shapes),))
    inertial = with_inertias(description, shapes[0].role, density=density).links[0].inertial
    assert inertial is not None
    return inertial


def tensor(inertial: Inertial) -> Array:
    """In the axes of the link, about the centre of mass."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    R = np.array(inertial.origin.rotation)
    return R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T


def integrated(kind: str, size: tuple[float, ...]) -> tuple[float, Array]:
    """Volume and inertia at density 1 of a solid of revolution or an ellipsoid, by quadrature.

    Discs across z: of area A(z), with second moments across.
    """
    nodes, weights = np.polynomial.legendre.leggauss(40)
    pieces = {
        "sphere": [(-size[0], size[0])],
        "ellipsoid": [(-size[-1], size[-1])],
        "cylinder": [(-size[-1] / 2, size[-1] / 2)],
        "box": [(-size[-1] / 2, size[-1] / 2)],
        "capsule": [
            (-size[-1] / 2 - size[0], -size[-1] / 2),
            (-size[-1] / 2, size[-1] / 2),
            (size[-1] / 2, size[-1] / 2 + size[0]),
        ],
    }[kind]
    volume, moments = 0.0, np.zeros(3)  # of x², y², z²
    for low, high in pieces:
        z = (low + high) / 2 + (high - low) / 2 * nodes
        dz = (high - low) / 2 * weights
        if kind == "box":
            a, b = np.full_like(z, size[0]), np.full_like(z, size[1])
            area, xx, yy = a * b, a**3 * b / 12, a * b**3 / 12
        else:
            if kind == "ellipsoid":
                a, b = (s * np.sqrt(1 - (z / size[2]) ** 2) for s in size[:2])
            elif kind == "cylinder":
                a = b = np.full_like(z, size[0])
            else:
                flat = size[1] / 2 if kind == "capsule" else 0.0
                over = np.maximum(np.abs(z) - flat, 0.0)
                a = b = np.sqrt(size[0] ** 2 - over**2)
            area, xx, yy = math.pi * a * b, math.pi * a**3 * b / 4, math.pi * a * b**3 / 4
        volume += area @ dz
        moments += (xx @ dz, yy @ dz, (area * z**2) @ dz)
    return volume, np.diag(moments.sum() - moments)


@pytest.mark.parametrize("kind", SOLIDS)
def test_primitives_against_quadrature(kind: str) -> None:
    found = computed(Shape("collision", kind, SOLIDS[kind]), density=7850.0)
    volume, inertia = integrated(kind, SOLIDS[kind])
    assert found.mass == pytest.approx(7850.0 * volume, rel=1e-12)
    np.testing.assert_allclose(tensor(found), 7850.0 * inertia, rtol=1e-12, atol=1e-12)
    assert found.origin == Pose()


def test_several_shapes_add_up() -> None:
    """Two halves of a box, each turned and moved to its place, are the box."""
    quarter = rotation_from_rpy(0.0, 0.0, math.pi / 2)
    halves = (
        Shape("visual", "box", (0.2, 0.15, 0.5), Pose((1.075, 2.0, 0.0), quarter)),
        Shape("visual", "box", (0.15, 0.2, 0.5), Pose((0.925, 2.0, 0.0))),
    )
    found, whole = computed(*halves), computed(Shape("visual", "box", (0.3, 0.2, 0.5)))
    assert found.mass == pytest.approx(whole.mass, rel=1e-14)
    assert found.origin.xyz == pytest.approx((1.0, 2.0, 0.0), abs=1e-14)
    np.testing.assert_allclose(tensor(found), tensor(whole), rtol=1e-12, atol=1e-13)


def test_only_links_without_an_inertial_and_shapes_of_the_role() -> None:
    seen, touched = Shape("visual", "sphere", (0.1,)), Shape("collision", "box", (1.0, 1.0, 1.0))
    given = Inertial(3.0, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    description = Description(
        "r",
        (Link("a", given, shapes=(seen, touched)), Link("b", shapes=(seen,)), Link("c")),
    )
    one, two, three = with_inertias(description, "visual").links
    assert one.inertial is given
    assert two.inertial is not None
    assert two.inertial.mass == pytest.approx(1000.0 * 4 / 3 * math.pi * 1e-3)
    assert three.inertial is None
    assert with_inertias(description, "collision").links[1].inertial is None


def test_what_encloses_nothing_is_told() -> None:
    flat = Description("r", (Link("a", shapes=(Shape("collision", "plane"),)),))
    with pytest.warns(DescriptionWarning, match="enclose nothing"):
        assert with_inertias(flat, "collision").links[0].inertial is None
    with pytest.raises(DescriptionError, match="enclose nothing"):
        with_inertias(flat, "collision", strict=True)


# ---- meshes --------------------------------------------------------------------------------------


def mesh_robot(path: Path, name: str, more: str = "") -> Path:
    """A robot file whose one moving link is a mesh."""
    geometry = f'<geometry><mesh filename="{name}"{more}/></geometry>'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(robot(link("a", f"<collision>{geometry}</collision>"), joint("j", "base", "a")))
    return path


def moved(path: Path, density: float = 1000.0) -> Inertial:
    model = rm.load(path, inertia_from="collision", density=density)
    inertial = model.description.links[1].inertial
    assert inertial is not None
    return inertial


@pytest.mark.parametrize("suffix", ["stl", "obj", "dae", "ply"])
def test_a_box_as_a_mesh_is_a_box(suffix: str, tmp_path: Path) -> None:
    box = trimesh.creation.box(extents=(30.0, 20.0, 50.0))
    box.apply_translation((100.0, 0.0, 7.0))
    box.export(tmp_path / f"box.{suffix}")
    found = moved(mesh_robot(tmp_path / "r.urdf", f"box.{suffix}", ' scale="0.01 0.01 0.01"'))
    expected = computed(Shape("visual", "box", (0.3, 0.2, 0.5)))
    assert found.mass == pytest.approx(expected.mass, rel=1e-6)  # STL is in single precision
    np.testing.assert_allclose(tensor(found), tensor(expected), rtol=1e-5, atol=1e-6)
    assert found.origin.xyz == pytest.approx((1.0, 0.0, 0.07), abs=1e-6)


@pytest.mark.parametrize("scale", ["1 1 1", "-0.5 2 1"])
def test_binary_stl_files_need_no_trimesh(
    scale: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solid = trimesh.creation.annulus(r_min=0.1, r_max=0.3, height=0.2, sections=50)
    solid.apply_translation((0.3, -0.1, 5.0))
    solid.export(tmp_path / "ring.stl")
    read = trimesh.load_mesh(tmp_path / "ring.stl")
    read.apply_scale([float(x) for x in scale.split()])
    monkeypatch.setitem(sys.modules, "trimesh", None)
    found = moved(mesh_robot(tmp_path / "r.urdf", "ring.stl", f' scale="{scale}"'), density=1.0)
    assert found.mass == pytest.approx(abs(read.volume), rel=1e-9)
    assert found.origin.xyz == pytest.approx(tuple(read.center_mass), abs=1e-9)
    np.testing.assert_allclose(tensor(found), read.moment_inertia, rtol=1e-7, atol=1e-10)
    data = (tmp_path / "ring.stl").read_bytes()
    count = int.from_bytes(data[80:84], "little") - 1
    (tmp_path / "open.stl").write_bytes(data[:80] + count.to_bytes(4, "little") + data[84:-50])
    with pytest.warns(DescriptionWarning, match="not watertight"):
        found = moved(mesh_robot(tmp_path / "s.urdf", "open.stl", f' scale="{scale}"'), density=1.0)
    monkeypatch.undo()
    hull = read.convex_hull
    assert found.mass == pytest.approx(hull.volume, rel=1e-9)
    assert found.origin.xyz == pytest.approx(tuple(hull.center_mass), abs=1e-9)
    np.testing.assert_allclose(tensor(found), hull.moment_inertia, rtol=1e-7, atol=1e-10)
    trimesh.exchange.export.export_mesh(solid, tmp_path / "text.stl", file_type="stl_ascii")
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(MissingPackageError, match="trimesh"):
        moved(mesh_robot(tmp_path / "t.urdf", "text.stl"))


def test_obj_files_need_no_trimesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points that a seam of textures writes twice are one; what is unusual is for trimesh."""
    solid = trimesh.creation.annulus(r_min=0.1, r_max=0.3, height=0.2, sections=50)
    solid.apply_translation((0.3, -0.1, 5.0))
    (tmp_path / "ring.obj").write_text(trimesh.exchange.obj.export_obj(solid, digits=17))
    corners = [(x, y, z) for x in (0.0, 0.3) for y in (0.0, 0.2) for z in (0.0, 0.5)]
    sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    rows = [f"v {x} {y} {z}" for side in sides for x, y, z in (corners[n] for n in side)]
    rows += [f"f {' '.join(f'{n}/{n}/{k + 1}' for n in range(4 * k + 1, 4 * k + 5))}"
             for k in range(6)]  # fmt: skip
    box = "# a box\no box\nvt 0 0\nvn 0 0 1\nusemtl grey\n" + "\n".join(rows) + "\n"
    (tmp_path / "box.obj").write_text(box)
    (tmp_path / "open.obj").write_text(box.rpartition("f ")[0])
    monkeypatch.setitem(sys.modules, "trimesh", None)
    found = moved(mesh_robot(tmp_path / "r.urdf", "ring.obj"), density=1.0)
    assert found.mass == pytest.approx(solid.volume, rel=1e-12)
    assert found.origin.xyz == pytest.approx(tuple(solid.center_mass), abs=1e-12)
    np.testing.assert_allclose(tensor(found), solid.moment_inertia, rtol=1e-9, atol=1e-12)
    whole = moved(mesh_robot(tmp_path / "b.urdf", "box.obj"), density=1.0)
    with pytest.warns(DescriptionWarning, match="not watertight"):
        part = moved(mesh_robot(tmp_path / "o.urdf", "open.obj"), density=1.0)
    for each in (whole, part):  # its hull has all corners, too
        assert each.mass == pytest.approx(0.03, rel=1e-12)
        assert each.origin.xyz == pytest.approx((0.15, 0.1, 0.25), abs=1e-12)
    for unusual in ("f -1 -2 -3\n", "f 1 2 99\n", "v 1 2 x\n", "curv 0 1 1 2\n"):
        (tmp_path / "odd.obj").write_text(box + unusual)
        with pytest.raises(MissingPackageError, match="trimesh"):
            moved(mesh_robot(tmp_path / "u.urdf", "odd.obj"), density=1.0)


TETRAHEDRON = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]
FACES = st.tuples(*[st.integers(0, 4)] * 3)


@given(st.lists(FACES, max_size=4), st.lists(st.sampled_from(TETRAHEDRON), max_size=2))
def test_triangles_close_where_each_edge_is_met_as_often_from_either_side(
    more: list[tuple[int, int, int]], left_out: list[tuple[int, int, int]]
) -> None:
    faces = [face for face in TETRAHEDRON if face not in left_out] + more
    edges = Counter((face[k], face[k - 2]) for face in faces for k in range(3))
    closed = all(a != b and edges[b, a] == n for (a, b), n in [*edges.items()])
    closed = closed and len({frozenset(face) for face in faces}) == len(faces)
    points = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 2, 5.0)])
    assert _closes(points[np.array(faces, dtype=int).reshape(-1, 3)]) == closed


@pytest.mark.parametrize("suffix", ["stl", "obj", "dae", "ply"])
def test_solids_that_touch_in_an_edge_are_solids(suffix: str, tmp_path: Path) -> None:
    one, other = (trimesh.creation.box(extents=(0.1, 0.1, 0.1)) for _ in range(2))
    both = trimesh.util.concatenate([one, other.apply_translation((0.1, 0.1, 0.0))])
    both.export(tmp_path / f"both.{suffix}")
    found = moved(mesh_robot(tmp_path / "r.urdf", f"both.{suffix}"))
    assert found.mass == pytest.approx(2.0, rel=1e-6)  # its hull has 3 kg
    assert found.origin.xyz == pytest.approx((0.05, 0.05, 0.0), abs=1e-7)
    # two cubes of 1 kg, each 0.05 m from the middle along x and along y
    about_x, about_z = 2 * (0.01 / 6 + 0.05**2), 2 * (0.01 / 6 + 2 * 0.05**2)
    expected = [[about_x, -0.005, 0], [-0.005, about_x, 0], [0, 0, about_z]]
    np.testing.assert_allclose(tensor(found), expected, rtol=1e-6, atol=1e-9)


def separate(solid: Any) -> Any:
    """The mesh with corners of each triangle's own, and the triangle's normal at each of them."""
    corners, normals = solid.triangles.reshape(-1, 3), np.repeat(solid.face_normals, 3, axis=0)
    faces = np.arange(len(corners)).reshape(-1, 3)
    return trimesh.Trimesh(corners, faces, vertex_normals=normals, process=False)


def numbered(source: str, names: str, rows: Array) -> str:
    """A source of a COLLADA file."""
    text = " ".join(f"{x:.17g}" for x in rows.ravel())
    width, params = len(names), "".join(f'<param name="{x}" type="float"/>' for x in names)
    return (
        f'<source id="{source}"><float_array id="{source}-a" count="{rows.size}">{text}'
        f'</float_array><technique_common><accessor source="#{source}-a" count="{len(rows)}" '
        f'stride="{width}">{params}</accessor></technique_common></source>'
    )


def faceted(kind: str, faces: list[list[int]], side: list[int]) -> str:
    """A list of faces of a COLLADA file, whose corners have the normals of their sides."""
    sizes = f"<vcount>{' '.join(str(len(x)) for x in faces)}</vcount>" if kind == "polylist" else ""
    numbers = " ".join(f"{n} {k}" for face, k in zip(faces, side, strict=True) for n in face)
    return (
        f'<{kind} count="{len(faces)}"><input semantic="VERTEX" source="#v" offset="0"/>'
        f'<input semantic="NORMAL" source="#n" offset="1"/>{sizes}<p>{numbers}</p></{kind}>'
    )


def geometry(name: str, points: Array, normals: Array, lists: str) -> str:
    mesh = numbered("p", "XYZ", points) + numbered("n", "XYZ", normals)
    mesh += '<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>' + lists
    return f'<geometry id="{name}"><mesh>{mesh}</mesh></geometry>'


def collada(geometries: str, nodes: str) -> str:
    """A COLLADA file in centimetres."""
    return (
        '<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset>'
        '<unit name="centimeter" meter="0.01"/><up_axis>Z_UP</up_axis></asset>'
        f"<library_geometries>{geometries}</library_geometries><library_visual_scenes>"
        f'<visual_scene id="s">{nodes}</visual_scene></library_visual_scenes>'
        '<scene><instance_visual_scene url="#s"/></scene></COLLADA>'
    )


RING = '<instance_geometry url="#ring"/>'
BOX = '<instance_geometry url="#box"/>'


def test_collada_files_need_no_trimesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring in two colours and a box of quadrangles, moved and mirrored by nodes.

    Corners that have several normals, and lists of faces for each colour, leave no holes.
    """
    ring = trimesh.creation.annulus(r_min=1.0, r_max=3.0, height=2.0, sections=50)
    half = len(ring.faces) // 2
    lists = "".join(
        faceted("triangles", ring.faces[part].tolist(), list(range(len(ring.faces)))[part])
        for part in (slice(half), slice(half, None))
    )
    corners = np.array([(x, y, z) for x in (-1.5, 1.5) for y in (-1.0, 1.0) for z in (-0.5, 0.5)])
    sides = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    normals = np.array([[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1.0]])
    quadrangles = faceted("polylist", sides, list(range(6)))
    geometries = geometry("ring", ring.vertices, ring.face_normals, lists)
    geometries += geometry("box", corners, normals, quadrangles)
    turn = trimesh.transformations.rotation_matrix(math.radians(40.0), (1.0, 2.0, -2.0))
    motion = trimesh.transformations.translation_matrix((7.0, -2.0, 1.0)) @ turn
    ring.apply_transform(motion)
    box = trimesh.creation.box(extents=(3.0, 2.0, 1.0)).apply_transform(np.diag((-1.0, 2, 3, 1)))
    box.apply_transform(turn).apply_translation((0.0, 0.0, 9.0)).apply_transform(motion)
    both = trimesh.util.concatenate([ring, box]).apply_scale(0.01)
    moved_box = "<translate>0 0 9</translate><rotate>1 2 -2 40</rotate><scale>-1 2 3</scale>"
    matrix = f"<matrix>{' '.join(map(str, motion.ravel()))}</matrix>"
    nodes = f"<node>{matrix}{RING}<node>{moved_box}{BOX}</node></node>"
    (tmp_path / "both.dae").write_text(collada(geometries, nodes))
    monkeypatch.setitem(sys.modules, "trimesh", None)
    found = moved(mesh_robot(tmp_path / "r.urdf", "both.dae"), density=1.0)
    # numbers are in single precision
    assert found.mass == pytest.approx(both.volume, rel=1e-6)
    assert found.origin.xyz == pytest.approx(tuple(both.center_mass), rel=1e-6)
    np.testing.assert_allclose(tensor(found), both.moment_inertia, rtol=1e-5, atol=1e-13)
    plain = geometry("box", corners, normals, quadrangles)
    usual = collada(plain, f"<node>{BOX}</node>")
    for old, new in (
        ("<node>", "<node><lookat>0 0 1 0 0 0 0 1 0</lookat>"),
        ("<node>", "<node><rotate>0 0 0 40</rotate>"),
        (f"<node>{BOX}", '<node><instance_node url="#box"/>'),
        (BOX, '<instance_geometry url="#other"/>'),
        ('instance_visual_scene url="#s"', 'instance_visual_scene url="#t"'),
        ("<p>0", "<p>8"),
        ("<p>0", "<p>-1"),
        ("<p>0", "<p>x"),
        ("<vcount>4", "<vcount>5"),
        ("-1.5", "nan"),
        ('stride="3"', 'stride="4"'),
        ("polylist", "tristrips"),
        ('meter="0.01"', 'meter="x"'),
        ("</COLLADA>", ""),
    ):
        (tmp_path / "odd.dae").write_text(usual.replace(old, new))
        assert old in usual
        with pytest.raises(MissingPackageError, match="trimesh"):
            moved(mesh_robot(tmp_path / "u.urdf", "odd.dae"), density=1.0)


@pytest.mark.parametrize("suffix", ["glb", "ply", "dae"])
def test_corners_with_several_normals_leave_no_holes(suffix: str, tmp_path: Path) -> None:
    ring = trimesh.creation.annulus(r_min=0.1, r_max=0.3, height=0.2, sections=50)
    options = {"include_normals": True} if suffix == "glb" else {}
    separate(ring).export(tmp_path / f"ring.{suffix}", **options)
    found = moved(mesh_robot(tmp_path / "r.urdf", f"ring.{suffix}"), density=1.0)
    assert found.mass == pytest.approx(ring.volume, rel=1e-6)
    np.testing.assert_allclose(tensor(found), ring.moment_inertia, rtol=1e-5, atol=1e-10)


def test_meshes_against_trimesh_and_the_solids_they_approach(tmp_path: Path) -> None:
    solid = trimesh.creation.capsule(height=0.5, radius=0.2, count=[64, 64])
    solid.apply_translation(-solid.center_mass)
    solid.export(tmp_path / "capsule.ply")
    found = moved(mesh_robot(tmp_path / "r.urdf", "capsule.ply"), density=2.0)
    read = trimesh.load_mesh(tmp_path / "capsule.ply")
    assert found.mass == pytest.approx(2.0 * read.volume, rel=1e-12)
    np.testing.assert_allclose(tensor(found), 2.0 * read.moment_inertia, rtol=1e-9, atol=1e-12)
    exact = computed(Shape("visual", "capsule", (0.2, 0.5)), density=2.0)
    np.testing.assert_allclose(tensor(found), tensor(exact), rtol=0.01, atol=1e-6)


def test_a_mirrored_mesh_and_one_inside_out_weigh_the_same(tmp_path: Path) -> None:
    box = trimesh.creation.box(extents=(0.3, 0.2, 0.5))
    box.apply_translation((0.4, 0.0, 0.0))
    box.export(tmp_path / "box.ply")
    box.invert()
    box.export(tmp_path / "inverted.ply")
    usual = moved(mesh_robot(tmp_path / "r.urdf", "box.ply"))
    assert moved(mesh_robot(tmp_path / "s.urdf", "inverted.ply")).mass == usual.mass
    mirrored = moved(mesh_robot(tmp_path / "t.urdf", "box.ply", ' scale="-1 1 1"'))
    assert mirrored.mass == pytest.approx(usual.mass, rel=1e-12)
    assert mirrored.origin.xyz == pytest.approx((-0.4, 0.0, 0.0), abs=1e-7)  # PLY is too


def test_the_unit_of_a_collada_file_counts(tmp_path: Path) -> None:
    trimesh.creation.box(extents=(30.0, 20.0, 50.0)).export(tmp_path / "box.dae")
    text = (tmp_path / "box.dae").read_text()
    assert "<unit" not in text
    end = text.index("</asset>")
    (tmp_path / "box.dae").write_text(
        f'{text[:end]}<unit name="centimeter" meter="0.01"/>{text[end:]}'
    )
    found = moved(mesh_robot(tmp_path / "r.urdf", "box.dae"))
    assert found.mass == pytest.approx(30.0, rel=1e-6)


def test_a_mesh_with_holes_counts_as_its_hull(tmp_path: Path) -> None:
    box = trimesh.creation.box(extents=(0.3, 0.2, 0.5))
    box.update_faces(np.arange(len(box.faces)) > 1)
    box.export(tmp_path / "open.stl")
    path = mesh_robot(tmp_path / "r.urdf", "open.stl")
    with pytest.warns(DescriptionWarning, match=r"'open.stl' is not watertight; its convex hull"):
        found = moved(path)
    assert found.mass == pytest.approx(30.0, rel=1e-6)
    with pytest.raises(DescriptionError, match="not watertight"):
        rm.load(path, inertia_from="collision", strict=True)


def test_a_flat_mesh_encloses_nothing(tmp_path: Path) -> None:
    trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]).export(tmp_path / "flat.stl")
    path = mesh_robot(tmp_path / "r.urdf", "flat.stl")
    with pytest.raises(DescriptionError, match=r"'flat.stl' encloses no volume"):
        rm.load(path, inertia_from="collision")


def test_meshes_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty.stl").write_bytes(b"")
    (tmp_path / "broken.dae").write_text("<COLLADA>")
    (tmp_path / "flat.obj").write_text("v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n")
    (tmp_path / "notes.txt").write_text("no mesh")
    for name, message in (
        ("missing.stl", "No such file"),
        ("empty.stl", "cannot be read|encloses no volume"),
        ("flat.obj", "cannot be read"),
        ("broken.dae", "cannot be read"),
        ("notes.txt", "of no kind that is read"),
    ):
        with pytest.raises(DescriptionError, match=message) as caught:
            rm.load(mesh_robot(tmp_path / "r.urdf", name), inertia_from="collision")
        assert caught.value.element == "link 'a'"
        assert name in caught.value.message


# ---- beyond numbers ------------------------------------------------------------------------------


def solid_of(kind: str, size: float) -> str:
    """A link's collision shape of this kind and size."""
    inner = {
        "box": f'<box size="{size} {size} {size}"/>',
        "sphere": f'<sphere radius="{size}"/>',
        "cylinder": f'<cylinder radius="{size}" length="{size}"/>',
        "mesh": f'<mesh filename="cube.stl" scale="{size} {size} {size}"/>',
    }[kind]
    return f"<collision><geometry>{inner}</geometry></collision>"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("size", [1e20, 1e100, 1e200])
@pytest.mark.parametrize("kind", ["box", "sphere", "cylinder", "mesh"])
def test_inertias_are_bounded_whatever_they_come_from(
    kind: str, size: float, strict: bool, tmp_path: Path
) -> None:
    trimesh.creation.box(extents=(1, 1, 1)).export(tmp_path / "cube.stl")
    path = tmp_path / "r.urdf"
    path.write_text(robot(link("a", solid_of(kind, size)), joint("j", "base", "a")))
    with pytest.raises(DescriptionError, match=r"more than any|farther than") as caught:
        rm.load(path, inertia_from="collision", strict=strict)
    assert (caught.value.element, caught.value.line) == ("link 'a'", 3)


@pytest.mark.parametrize("density", [1e60, 1e305])
def test_densities_are_bounded_by_what_they_make(density: float) -> None:
    text = robot(link("a", solid_of("box", 1.0)), joint("j", "base", "a"))
    with pytest.raises(DescriptionError, match="more than any robot has"):
        rm.load(text, inertia_from="collision", density=density)


@given(
    kind=st.sampled_from(["box", "sphere", "cylinder"]),
    exponent=st.floats(-320, 308),
    place=st.floats(-1e308, 1e308),
    density=st.floats(1e-300, 1e300),
)
def test_computed_inertias_are_finite_or_refused(
    kind: str, exponent: float, place: float, density: float
) -> None:
    shape = solid_of(kind, 10.0**exponent).replace(
        "<geometry>", f'<origin xyz="{place} 0 0"/><geometry>'
    )
    text = robot(link("a", shape), joint("j", "base", "a"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model = rm.load(text, inertia_from="collision", density=density)
        except DescriptionError as error:
            assert error.element == "link 'a'"  # noqa: PT017
            return
    assert np.isfinite(model.bodies[0].inertia).all()
    assert 0.0 <= model.mass <= 1e50


def test_vertices_that_are_not_finite(tmp_path: Path) -> None:
    path = mesh_robot(tmp_path / "r.urdf", "m.obj")
    tetrahedron = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 {}\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "m.obj").write_text(tetrahedron.format("1"))
    assert rm.load(path, inertia_from="collision").mass == pytest.approx(1000 / 6)
    for number in ("nan", "inf", "-inf", "1e100", "1e400"):
        (tmp_path / "m.obj").write_text(tetrahedron.format(number))
        with pytest.raises(DescriptionError, match=r"not finite"):
            rm.load(path, inertia_from="collision")


def test_the_inertia_of_an_sdf_robot_is_bounded_too() -> None:
    text = """<sdf version="1.11"><model name="m"><link name="a"><inertial auto="true"/>
    <collision name="c"><geometry><box><size>1e200 1 1</size></box></geometry></collision>
    </link></model></sdf>"""
    assert rm.load(text.replace("1e200", "1")).mass == pytest.approx(1000.0)
    with pytest.raises(DescriptionError, match="more than any robot has"):
        rm.load(text)


# ---- where meshes may lie ------------------------------------------------------------------------


def path_of(file: Path, name: str) -> Path:
    shape = Shape("visual", "mesh", (1.0,) * 3, file=name, source=Source(str(file)))
    return mesh_path(shape)


def test_where_meshes_are_looked_for(tmp_path: Path) -> None:
    file = mesh_robot(tmp_path / "arm_description" / "urdf" / "arm.urdf", "x.stl")
    package = tmp_path / "arm_description"
    assert path_of(file, "a.stl") == package / "urdf" / "a.stl"
    assert path_of(file, "parts/a.stl") == package / "urdf" / "parts" / "a.stl"
    assert path_of(file, "../meshes/a.stl") == package / "meshes" / "a.stl"
    assert path_of(file, "package://arm_description/m/a.stl") == package / "m" / "a.stl"
    assert path_of(file, "model://urdf/a.stl") == package / "urdf" / "a.stl"
    assert path_of(file, "package:///a.stl") == package / "urdf" / "a.stl"  # onshape-to-robot
    (package / "urdf" / "assets").mkdir()
    assert path_of(file, "package://assets/a.stl") == package / "urdf" / "assets" / "a.stl"
    assert path_of(file, f"file://{package}/meshes/a.stl") == package / "meshes" / "a.stl"


def test_where_meshes_are_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = mesh_robot(tmp_path / "arm_description" / "urdf" / "arm.urdf", "x.stl")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    for name in (
        "../../a.stl",
        "/etc/a.stl",
        "file:///etc/a.stl",
        "package://arm_description/../a.stl",
        "package://other/a.stl",
        "package://../a.stl",
        "package:///../a.stl",
        "package://",
    ):
        with pytest.raises(DescriptionError, match=r"outside of|none of this name"):
            path_of(file, name)


def test_a_robot_from_no_file_has_no_meshes() -> None:
    geometry = '<visual><geometry><mesh filename="a.stl"/></geometry></visual>'
    text = robot(link("a", geometry), joint("j", "base", "a"))
    with pytest.raises(DescriptionError, match="this robot is from none"):
        rm.load(text, inertia_from="visual")


# ---- without ------------------------------------------------------------------------------------


def test_shapes_without_mass_are_warned_of_once() -> None:
    ball = '<visual><geometry><sphere radius="0.1"/></geometry></visual>'
    text = robot(
        link("a", ball),
        link("b", ball),
        link("c", INERTIAL),
        joint("ja", "base", "a"),
        joint("jb", "a", "b"),
        joint("jc", "b", "c"),
    )
    with pytest.warns(DescriptionWarning) as caught:
        rm.load(text)
    assert len(caught) == 1
    assert "link 'a': has shapes and moves, but weighs nothing" in str(caught[0].message)
    assert "likewise link 'b'" in str(caught[0].message)
    assert rm.load(text, inertia_from="visual").bodies[0].mass > 0.0


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trimesh.creation.box(extents=(0.3, 0.2, 0.5)).export(tmp_path / "box.stl")
    path = mesh_robot(tmp_path / "r.urdf", "box.stl")
    options = ["--inertia-from", "collision", "--density", "500", "--json"]
    with pytest.raises(SystemExit) as stop:
        main(["info", str(path), *options])
    assert stop.value.code == 0
    assert json.loads(capsys.readouterr().out)["mass"] == pytest.approx(15.0, rel=1e-6)
    with pytest.raises(SystemExit) as stop:
        main(["info", str(path), "--inertia-from", "mesh"])
    assert stop.value.code == 2
