"""Shapes: their meshes, read from files, and the inertials of their solids.

Mesh files are untrusted, as robot files are: each is a plain file beside the robot's, of bounded
size, and may not cost much more than that by inflation or repetition. Missing inertials of a file
are computed from shapes as solids of one density; overlapping shapes of a link both count.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, reduce
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from lxml import etree

from robomodel import showing
from robomodel.arrays import Array
from robomodel.description import Description, Inertial, Link, Pose, Shape, collada
from robomodel.description import inertias as masses
from robomodel.description.poses import vec
from robomodel.errors import DescriptionError, Issue, MissingPackageError, argument, warn_of_all
from robomodel.files import (
    BETWEEN,
    LFS,
    LFS_POINTER,
    MAX_CLIMB,
    MAX_MESH_BYTES,
    STAGES,
    Allowance,
    contents,
    package_path,
    top_folder,
)
from robomodel.scalars import Scalar, held

if TYPE_CHECKING:
    import trimesh


SUFFIXES = (".stl", ".obj", ".dae", ".ply", ".off", ".glb", ".gltf", ".3mf")
"""Suffixes of the files that are read as meshes."""

MAX_INFLATED = 2 * MAX_MESH_BYTES
"""Limit of the total size of an archive's members [bytes]."""
MAX_MEMBERS = 1000
"""Limit of the number of members of an archive."""
MAX_COPIES = 10_000
"""Limit of the copies of elements that a file makes, and of its uses of geometries."""
MAX_FACES = 20_000_000
"""Limit of the total number of triangles of these copies."""
MAX_NUMBER = 1e30
"""Limit of a vertex coordinate in the file's unit."""
MAX_LENGTH = 1e9
"""Limit of a vertex coordinate [m]."""

_PACKAGES = ("package://", "model://")
_MJCF = (".xml", ".mjcf")


def load_mesh(shape: Shape, allowance: Allowance | None = None) -> trimesh.Trimesh:
    """The mesh, scaled to metres; ``allowance``: what may still be read for this robot.

    Raises :class:`DescriptionError` for what is not there, not read or not finite, and
    :class:`MissingPackageError` without trimesh.
    """
    what, source = f"the mesh '{shape.file}'", shape.source
    try:
        import trimesh
    except ImportError as error:
        raise MissingPackageError("meshes need", "trimesh", "meshes", source) from error
    if in_stage(shape):
        file, _, prim = (shape.file or "").partition(BETWEEN)
        path = str(mesh_path(replace(shape, file=file)))
        return _scaled(showing.call("stage_mesh", path, prim, source), shape, 1.0)
    kind, data = _read(shape, SUFFIXES, allowance)
    try:
        if excess := _excess(data, kind):
            raise DescriptionError(f"{what} is not read: {excess}", source)
        # from memory, so that materials, textures and the like are not looked for
        scene = trimesh.load_scene(
            io.BytesIO(data), file_type=kind[1:], skip_materials=True, process=False
        )
        for part in scene.geometry.values():
            if not np.all(np.abs(part.vertices) <= MAX_NUMBER):
                raise DescriptionError(f"{what} has a vertex that is not finite", source)
            if isinstance(part, trimesh.Trimesh):
                part.process()  # merges vertices; it would leave out what is not finite
        if _faces(scene) > MAX_FACES:
            raise DescriptionError(
                f"{what} is not read: its copies make more than {MAX_FACES} triangles", source
            )
        mesh = scene.to_mesh()
        unit = str(mesh.units or "")
        if mesh.vertices.shape[1:] != (3,) or np.any(mesh.faces >= len(mesh.vertices)):
            raise ValueError("its vertices are not points that its faces can name")
    except DescriptionError:
        raise
    except ImportError as error:  # some formats need a package more
        raise MissingPackageError(
            f"{kind} meshes need", error.name or str(error), "meshes", source
        ) from error
    except Exception as error:  # each format's reader raises others
        raise DescriptionError(
            f"{what} cannot be read: {type(error).__name__}: {error}", source
        ) from error
    metres, times, _ = unit.partition(" * meters")  # COLLADA's unit, as trimesh notes it
    return _scaled(mesh, shape, float(metres) if times else 1.0)


def _scaled(mesh: trimesh.Trimesh, shape: Shape, unit: float) -> trimesh.Trimesh:
    """The mesh, whose unit is so many metres, at the scale of the shape."""
    factors = unit * _factors(shape)
    with np.errstate(over="ignore"):
        if not np.all(np.abs(mesh.vertices * factors) <= MAX_LENGTH):
            raise DescriptionError(
                f"the mesh '{shape.file}' reaches farther than {MAX_LENGTH:g} m", shape.source
            )
    mesh.apply_scale(factors)
    return mesh


def _factors(shape: Shape) -> Array:
    """The scale (3,) of a mesh."""
    return np.array(shape.size if len(shape.size) == 3 else (1.0, 1.0, 1.0))


def in_stage(shape: Shape) -> bool:
    """True if a mesh is a prim of a USD file."""
    file, between, _ = (shape.file or "").partition(BETWEEN)
    return bool(between) and file.lower().endswith(STAGES)


def mesh_bytes(
    shape: Shape, suffixes: tuple[str, ...] = SUFFIXES, allowance: Allowance | None = None
) -> bytes:
    """The content of a mesh's file, which must have one of these suffixes.

    Raises :class:`DescriptionError` for what is not there or not read.
    """
    return _read(shape, suffixes, allowance)[1]


def _read(
    shape: Shape, suffixes: tuple[str, ...], allowance: Allowance | None
) -> tuple[str, bytes]:
    """The suffix of a mesh's file, in small letters, and its content."""
    path, folders = _place(shape)
    what, source = f"the mesh '{shape.file}'", shape.source
    kind = path.suffix.lower()
    if kind not in suffixes:
        raise DescriptionError(
            f"{what} is of no kind that is read; these are {' '.join(suffixes)}", source
        )
    try:
        data = contents(str(path), what, source, most=MAX_MESH_BYTES, within=folders)
    except FileNotFoundError as error:
        raise DescriptionError(
            f"{what} cannot be read: {path}: No such file or directory", source
        ) from error
    if data.startswith(LFS):
        raise DescriptionError(f"{what} ({path}) is {LFS_POINTER}", source)
    if allowance is not None:
        allowance.spend(len(data), what, source)
    return kind, data


def mesh_path(shape: Shape) -> Path:
    """The path of a mesh's file: beside the robot's file, or in its package.

    A path leads to the robot's folder, or to another one in the folder above (``../meshes/...``);
    in MJCF, whose models are of several files, up to MAX_CLIMB folders up.
    """
    return _place(shape)[0]


def _place(shape: Shape) -> tuple[Path, list[str]]:
    """The path of a mesh, and the folders of which one must contain it.

    These are one folder, from the robot's file as it is called and as it is, should that be a
    symbolic link: then the mesh may be one to its real neighbour.
    """
    if shape.package and (named := package_path(shape.file or "")):
        inside = Path(os.path.normpath(Path(shape.package, named[1])))
        if not inside.is_relative_to(shape.package):
            raise DescriptionError(
                f"the mesh '{shape.file}' is outside of its package {shape.package}", shape.source
            )
        return inside, [shape.package]
    name = (shape.file or "").removeprefix("file://")
    file = Path(os.path.abspath(shape.source.file))
    if not file.is_file():
        raise DescriptionError(
            f"the mesh '{shape.file}' is looked for beside the robot's file, and this robot is "
            "from none; load it from a file",
            shape.source,
        )
    prefix = next((prefix for prefix in _PACKAGES if name.startswith(prefix)), None)
    files = (file, Path(os.path.realpath(file)))
    if prefix is None:
        most = MAX_CLIMB if file.suffix.lower() in _MJCF else 1
        tops = [Path(top_folder(str(each.parent), name, most, least=1)) for each in files]
        path = file.parent / name
    else:
        package, _, rest = name.removeprefix(prefix).partition("/")
        if rest and not package:  # package:///mesh.stl, as onshape-to-robot writes it
            holders = [[each.parent] for each in files]
        else:
            holders = [[p for p in each.parents if package == p.name != ""] for each in files]
            beside = file.parent / package  # package://assets/mesh.stl, as onshape-to-robot, too
            if package not in ("", ".", "..") and not holders[0] and beside.is_dir():
                holders = [[beside], [files[1].parent / package]]
        if not holders[0]:
            raise DescriptionError(
                f"the mesh '{shape.file}' is in a folder '{package}', and none of this name holds "
                f"the robot's file {file}; say where it is by "
                + argument("resources", {package: "path"}),
                shape.source,
            )
        tops = [folders[0] for folders in holders if folders]
        path = tops[0] / rest
    path = Path(os.path.normpath(path))
    if not path.is_relative_to(tops[0]):
        raise DescriptionError(
            f"the mesh '{shape.file}' is outside of {tops[0]}; meshes are only read from beside "
            "the robot's file",
            shape.source,
        )
    return path, [str(top) for top in tops]


# ---- files that expand ---------------------------------------------------------------------------


def _excess(data: bytes, kind: str) -> str:
    """Why a file would expand beyond the limits; empty if it would not."""
    copies = 0
    match kind:
        case ".3mf":
            with zipfile.ZipFile(io.BytesIO(data)) as members:
                sizes = [member.file_size for member in members.infolist()]
                if sum(sizes) > MAX_INFLATED or len(sizes) > MAX_MEMBERS:
                    return (
                        f"it inflates to {sum(sizes) / 2**20:.0f} MiB in {len(sizes)} files, and "
                        f"at most {MAX_INFLATED // 2**20} MiB in {MAX_MEMBERS} are read"
                    )
                models = [x for x in members.namelist() if "3d/3dmodel.model" in x.lower()]
                copies = sum(_copies_in_3mf(_xml(members.read(model))) for model in models)
        case ".dae":
            if zipfile.is_zipfile(io.BytesIO(data)):
                return "it is an archive; unpack it"
            copies = collada.copies(_xml(data))
        case ".gltf" | ".glb":
            document = _gltf(data)
            copies = len(document.get("nodes", ()))
            uris = [each.get("uri", "data:") for each in document.get("buffers", ())]
            if others := [uri for uri in uris if not uri.startswith("data:")]:
                return f"its numbers are in another file, '{others[0]}'; convert it to one .glb"
            if any(each.get("count", 0) > len(data) for each in document.get("accessors", ())):
                return "it claims to hold more numbers than it has bytes"
    return f"it makes more than {MAX_COPIES} copies of its parts" if copies > MAX_COPIES else ""


def _xml(data: bytes) -> etree._Element:
    parser = etree.XMLParser(
        resolve_entities=False, load_dtd=False, no_network=True, huge_tree=True, remove_pis=True
    )
    return etree.fromstring(data, parser)


def _copies_in_3mf(root: etree._Element) -> int:
    """How many meshes its items hold, those of objects counted at each of their components."""
    objects = {each.get("id"): each for each in root.iter("{*}object")}

    @cache
    def copies(name: str | None) -> int:
        parts = [part.get("objectid") for part in objects[name].iter("{*}component")]
        return sum(copies(part) for part in parts if part in objects) or 1

    items = [item.get("objectid") for item in root.iter("{*}item")]
    return sum(copies(item) for item in items if item in objects)


def _gltf(data: bytes) -> dict[str, Any]:
    """The JSON of a glTF file, or of the first chunk of a binary one."""
    if data.startswith(b"glTF"):
        data = data[20 : 20 + int.from_bytes(data[12:16], "little")]
    document: dict[str, Any] = json.loads(data)
    return document


def _faces(scene: Any) -> int:
    """The triangles of a scene, at each of the places where it has them."""
    return sum(
        len(getattr(scene.geometry[scene.graph[node][1]], "faces", ()))
        for node in scene.graph.nodes_geometry
    )


# ---- inertials of shapes -------------------------------------------------------------------------


Role = Literal["collision", "visual"]


def with_inertias(
    description: Description, role: Role, *, density: float = 1000.0, strict: bool = False
) -> Description:
    """The description with an inertial on each link that has shapes of this role and none itself.

    ``density`` [kg/m³] is that of all shapes. A mesh that is not watertight counts as its convex
    hull, which is warned of, as is a link whose shapes enclose nothing. Meshes are looked for at
    their path beside the file that names them, and those of ``package://NAME/...`` in a folder NAME
    that holds that file.

    Raises :class:`robomodel.DescriptionError` for meshes that are not there or cannot be read,
    ValueError for another role and a density that is not positive.
    """
    if role not in get_args(Role):
        raise ValueError(f"inertia_from is 'collision' or 'visual', got {role!r}")
    if not 0.0 < density < math.inf:
        raise ValueError(f"density needs a positive number [kg/m³], got {density!r}")
    issues: list[Issue] = []
    allowance = Allowance()

    def with_inertial(link: Link) -> Link:
        shapes = [shape for shape in link.shapes if shape.role == role]
        if link.inertial is not None or not shapes:
            return link
        return replace(link, inertial=_inertial(link, shapes, density, issues, allowance))

    links = tuple(map(with_inertial, description.links))
    warn_of_all(issues, strict=strict)
    return replace(description, links=links)


def _inertial(
    link: Link, shapes: list[Shape], density: float, issues: list[Issue], allowance: Allowance
) -> Inertial | None:
    """The inertial of a link that consists of these shapes."""
    parts = [solid(shape, issues, allowance) for shape in shapes]
    whole = reduce(
        add, (masses.placed(part, shape.origin) for part, shape in zip(parts, shapes, strict=True))
    )
    if not whole.mass:
        issues.append(
            Issue("its shapes enclose nothing, so it stays without mass", link.source, "hollow")
        )
        return None
    return masses.scaled(masses.inertial_of(whole, link.source), density)


# ---- solids and shells of density 1 --------------------------------------------------------------


def solid(shape: Shape, issues: list[Issue], allowance: Allowance | None = None) -> Inertial:
    """A shape's mass and its inertia about its centre of mass, at a density of 1 kg/m³.

    ``allowance``: what is left to read of the robot's meshes.
    """
    if shape.kind == "mesh":
        return _mesh(shape, issues, allowance)
    mass, xx, yy, zz = map(held, _moments(shape, shape.size))
    return Inertial(mass, (xx, 0.0, 0.0, yy, 0.0, zz))


def shell(shape: Shape, thickness: float = 0.0, allowance: Allowance | None = None) -> Inertial:
    """A wall of 1 kg/m³ inside a shape's surface; of a ``thickness`` of zero, 1 kg/m².

    The wall is the solid less the one whose every radius and half edge is smaller by the thickness
    [m]. A mesh's is taken as thin: the area of its triangles times the thickness.
    Raises ValueError for a wall that fills the shape.
    """
    if shape.kind == "mesh":
        return masses.scaled(_surface(shape, allowance), thickness or 1.0)
    both = {"box": (2.0, 2.0, 2.0), "cylinder": (1.0, 2.0), "capsule": (1.0, 0.0)}
    step = both.get(shape.kind, (1.0,) * len(shape.size))
    if (
        thickness
        and not min(
            (size - k * thickness for size, k in zip(shape.size, step, strict=True) if k),
            default=0.0,
        )
        > 0.0
    ):
        raise ValueError(f"a wall of {thickness:g} m fills the {shape.kind}")
    h = thickness or 1e-30j  # polynomials: their derivatives are exact by an imaginary step
    inner: Sequence[Any] = _moments(
        shape, [size - k * h for size, k in zip(shape.size, step, strict=True)]
    )
    outer: Sequence[Any] = _moments(shape, shape.size)
    mass, xx, yy, zz = (
        (a - b) if thickness else -b.imag / h.imag for a, b in zip(outer, inner, strict=True)
    )
    return Inertial(mass, (xx, 0.0, 0.0, yy, 0.0, zz))


def _moments(shape: Shape, size: Sequence[Scalar]) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Mass and moments of inertia about its axes of a solid of this kind and ``size``."""
    match shape.kind:
        case "box":
            x, y, z = size
            m = x * y * z
            return _about_centre(
                m, (y * y + z * z) / 12, (x * x + z * z) / 12, (x * x + y * y) / 12
            )
        case "sphere":
            (r,) = size
            return _ellipsoid(r, r, r)
        case "ellipsoid":
            a, b, c = size
            return _ellipsoid(a, b, c)
        case "cylinder":
            r, length = size
            return _cylinder(r, length)
        case "capsule":
            r, length = size
            tube, ball = _cylinder(r, length), _ellipsoid(r, r, r)
            # each half of the ball is a hemisphere, whose centre of mass is at 3/8 r from its face
            away = ball[0] * (length * length / 4 + 3 * length * r / 8)
            across = tube[1] + ball[1] + away
            return tube[0] + ball[0], across, across, tube[3] + ball[3]
        case _:
            return 0.0, 0.0, 0.0, 0.0  # a plane encloses nothing


def _about_centre(
    mass: Scalar, xx: Scalar, yy: Scalar, zz: Scalar
) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """From the squared radii of gyration."""
    return mass, mass * xx, mass * yy, mass * zz


def _ellipsoid(a: Scalar, b: Scalar, c: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    mass = 4 / 3 * math.pi * a * b * c
    return _about_centre(mass, (b * b + c * c) / 5, (a * a + c * c) / 5, (a * a + b * b) / 5)


def _cylinder(r: Scalar, length: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    across = (3 * r * r + length * length) / 12
    return _about_centre(math.pi * r * r * length, across, across, r * r / 2)


def _surface(shape: Shape, allowance: Allowance | None) -> Inertial:
    """The triangles of a mesh, of 1 kg/m²."""
    triangles = np.asarray(load_mesh(shape, allowance).triangles, dtype=float).reshape(-1, 3, 3)
    edges = triangles[:, 1:] - triangles[:, :1]
    areas = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1) / 2
    if not (mass := float(areas.sum())) > 0.0:
        raise DescriptionError(f"the mesh '{shape.file}' has no area", shape.source)
    centre = areas @ triangles.mean(axis=1) / mass
    # over a triangle, ∫ x xᵀ = area / 12 (Σ corner cornerᵀ + sum sumᵀ)
    return _about(mass, centre, areas / 12, triangles - centre)


def _about(mass: float, centre: Array, weights: Array, corners: Array) -> Inertial:
    """An inertial from its second moments, Σ weight (Σ corner cornerᵀ + sum sumᵀ).

    ``weights`` (n,) are of triangles with corners (n, 3, 3) from the centre, by rows.
    """
    points, sums = corners.reshape(-1, 3), _sums(corners)
    second = (np.repeat(weights, 3) * points.T) @ points + (weights * sums.T) @ sums
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = (np.trace(second) * np.eye(3) - second).tolist()
    return Inertial(mass, (xx, xy, xz, yy, yz, zz), Pose(vec(centre)))


_STL = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_STL_HEADER = np.dtype([("text", "S80"), ("triangles", "<u4")])
_PLAIN_OBJ = frozenset((b"vt", b"vn", b"o", b"g", b"s", b"usemtl", b"mtllib"))
_SAME_VERTEX = 1e-8  # in the file's unit; as trimesh has it
_MIXED = np.array([0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 0x14D049BB133111EB])  # odd numbers
_PAIRED = np.int64(0x2545F4914F6CDD1D)


def _corners(shape: Shape) -> tuple[Array, float] | None:
    """The triangles' corners (n, 3, 3) of a binary STL, OBJ or COLLADA file, and its unit [m].

    None for other meshes, and what is unusual in these.
    """
    readers = {".stl": _of_binary_stl, ".obj": _of_obj, ".dae": _of_collada}
    if in_stage(shape) or (reader := readers.get(mesh_path(shape).suffix.lower())) is None:
        return None
    data = mesh_bytes(shape)
    try:
        read = reader(data)
    except ValueError:  # of words that are no numbers
        return None
    if read is None:
        return None
    corners, unit = read
    metres = corners * (unit * _factors(shape))
    fits = np.all(np.abs(metres) <= MAX_LENGTH) and np.all(np.abs(corners) <= MAX_LENGTH)
    return read if fits else None


def _of_binary_stl(data: bytes) -> tuple[Array, float] | None:
    start = _STL_HEADER.itemsize
    if len(data) <= start:
        return None
    (count,) = np.frombuffer(data, _STL_HEADER, 1)["triangles"].tolist()
    if len(data) != start + count * _STL.itemsize:
        return None
    return np.frombuffer(data, _STL, offset=start)["corners"].astype(float), 1.0


def _of_obj(data: bytes) -> tuple[Array, float] | None:
    """The corners of an OBJ file, whose faces are fans of triangles; None where it has more."""
    points, triangles = list[list[bytes]](), list[tuple[int, int, int]]()
    for line in data.splitlines():
        kind, *words = line.split() or [b"#"]
        if kind == b"v" and len(words) > 2:
            points.append(words[:3])
        elif kind == b"f":
            first, *others = [int(word.partition(b"/")[0]) - 1 for word in words]
            triangles += [(first, *two) for two in pairwise(others)]
        elif not (kind in _PLAIN_OBJ or kind.startswith(b"#")) or line.endswith(b"\\"):
            return None
    corners = np.array(triangles, dtype=np.intp)
    if not triangles or np.min(corners) < 0 or np.max(corners) >= len(points):
        return None
    return np.array(points, dtype="S").astype(float)[corners], 1.0


def _of_collada(data: bytes) -> tuple[Array, float] | None:
    try:
        root = _xml(data)
        if collada.copies(root) > MAX_COPIES:
            return None
        parts, faces = list[Array](), 0
        for part in collada.parts(root):
            parts.append(part)
            faces += len(part)
            if faces > MAX_FACES:
                return None
        return (np.concatenate(parts), collada.unit(root)) if parts else None
    except (etree.XMLSyntaxError, RecursionError):
        return None


def _closes(corners: Array) -> bool:
    """True if triangles (n, 3, 3) have no boundary: each edge occurs as often as turned round.

    Where solids touch in an edge, four triangles meet in it. Triangles on the same three corners
    are none of a closed surface: they may be its two sides, which enclose nothing.
    """
    grid = np.rint(corners.reshape(-1, 3) / _SAME_VERTEX).astype(np.int64)
    # a number for each point, edge and triangle; were those of two the same, the triangles would
    # only seem to be open
    starts = (grid @ _MIXED).reshape(-1, 3)
    ends = starts[:, (1, 2, 0)]
    if np.any(starts == ends):
        return False
    edges, forth = np.minimum(starts, ends) * _PAIRED + np.maximum(starts, ends), starts < ends
    if not np.array_equal(np.sort(edges[forth]), np.sort(edges[~forth])):
        return False
    low, middle, high = np.sort(starts, axis=1).T
    triangles = np.sort((low * _PAIRED + middle) * _PAIRED + high)
    return bool(np.all(triangles[1:] > triangles[:-1]))


def _hull(points: Array) -> Array:
    """The triangles (n, 3, 3) of the convex hull of points (m, 3), all turned outwards."""
    from scipy.spatial import ConvexHull  # importing it takes 0.2 s

    hull = ConvexHull(points, qhull_options="QbB Pp Qt")
    triangles = np.asarray(points[hull.simplices])
    inwards = _sixfold(triangles - points[hull.vertices].mean(axis=0)) < 0.0
    triangles[inwards] = triangles[inwards, ::-1]
    return triangles


def _enclosed(triangles: Array) -> Inertial:
    """The solid inside closed triangles (n, 3, 3)."""
    volumes = _sixfold(triangles) / 6.0  # of tetrahedra from the origin
    if not (size := float(volumes.sum())):
        return Inertial(0.0, (0.0,) * 6)
    centre = volumes @ _sums(triangles) / (4.0 * size)
    moved = triangles - centre
    # over a tetrahedron from the centre, ∫ x xᵀ = volume / 20 (Σ corner cornerᵀ + sum sumᵀ)
    return _about(abs(size), centre, _sixfold(moved) * math.copysign(1 / 120, size), moved)


def _sixfold(triangles: Array) -> Array:
    """Six times the volumes of the tetrahedra between triangles (n, 3, 3) and the origin."""
    a, b, c = triangles.transpose(1, 2, 0)  # by columns, a third of the time of np.cross
    return np.asarray(
        a[0] * (b[1] * c[2] - b[2] * c[1])
        + a[1] * (b[2] * c[0] - b[0] * c[2])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
    )


def _sums(triangles: Array) -> Array:
    """The sums (n, 3) of the corners of triangles (n, 3, 3)."""
    return np.asarray(triangles[:, 0] + triangles[:, 1] + triangles[:, 2])


def _mesh(shape: Shape, issues: list[Issue], allowance: Allowance | None) -> Inertial:
    """The solid that a mesh encloses; its convex hull if the mesh has holes."""
    at = stamp(shape)
    if at is not None and allowance is not None and at[1] <= MAX_MESH_BYTES:
        allowance.spend(at[1], f"the mesh '{shape.file}'", shape.source)
    solid = _solid_of(_Held(shape, (object(),) if at is None else at))
    if solid.holes:
        issues.append(
            Issue(
                f"the mesh '{shape.file}' is not watertight; its convex hull stands for it",
                shape.source,
                "not watertight",
            )
        )
    return solid.inertial


@dataclass(frozen=True, slots=True)
class _Held:
    """A mesh by what makes its solid: the file as it is, and the scale."""

    shape: Shape = field(compare=False)
    stamp: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Solid:
    """A mesh as a solid; ``holes``: of its convex hull."""

    inertial: Inertial
    holes: bool


def stamp(shape: Shape) -> tuple[str, int, int, int, tuple[float, ...]] | None:
    """A key that is the same while a mesh's file and its scale are; None for what is no file.

    The path, the size [bytes], the time of the last change [ns], the number of the file on its
    disk, and the scale.
    """
    if in_stage(shape):
        return None
    try:
        path = os.path.realpath(mesh_path(shape))
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return path, status.st_size, status.st_mtime_ns, status.st_ino, shape.size


@lru_cache(maxsize=2048)  # variants of a robot share their meshes
def _solid_of(held: _Held) -> _Solid:
    """The solid of a mesh's file, computed once while the file is the same."""
    shape = held.shape
    if (read := _corners(shape)) is None:
        triangles = np.asarray(load_mesh(shape).triangles, dtype=float)
        holes = not (len(triangles) > 0 and _closes(triangles))
    else:
        corners, unit = read
        triangles, holes = corners * (unit * _factors(shape)), not _closes(corners)
    if holes:
        try:
            triangles = _hull(triangles.reshape(-1, 3))
        except Exception as error:  # whatever Qhull says of flat and empty meshes
            raise DescriptionError(
                f"the mesh '{shape.file}' encloses no volume", shape.source
            ) from error
    return _Solid(_enclosed(triangles), holes)
