"""COLLADA files: how many geometries a scene places, and the triangles of what most files hold.

Exporters write a scene of nodes, moved by matrices or by translations, rotations and scales, that
place meshes of triangles or polygons. Other elements of COLLADA are left to trimesh.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from robomodel.arrays import Array
from robomodel.description.poses import about, vec
from robomodel.description.poses import unit as unit_vector

_UNPLACED = frozenset(("asset", "extra", "instance_camera", "instance_light"))
_UNFILLED = frozenset(("source", "vertices", "extra", "lines", "linestrips"))
_LENGTHS = {"matrix": 16, "translate": 3, "scale": 3, "rotate": 4}


def copies(root: etree._Element) -> int:
    """How many geometries its scenes hold, those of nodes counted at each of their instances."""
    nodes = _by_id(root, "node")

    @cache
    def held(node: etree._Element) -> int:
        total = 0
        for child in node.iterchildren("{*}*"):
            match etree.QName(child).localname:
                case "node":
                    total += held(child)
                case "instance_node" if (url := child.get("url", "")) in nodes:
                    total += held(nodes[url])
                case "instance_geometry" | "instance_controller":
                    total += 1
        return total

    return sum(held(scene) for scene in root.iter("{*}visual_scene"))


def unit(root: etree._Element) -> float:
    """The file's unit of length [m]."""
    element = root.find("{*}asset/{*}unit")
    return 1.0 if element is None else float(element.get("meter", ""))


def parts(root: etree._Element) -> Iterator[Array]:
    """The corners (n, 3, 3) of each list of triangles that the scene places, in the file's unit.

    Raises ValueError for elements other than those above, and for what is wrong in these.
    """
    scene = root.find("{*}scene/{*}instance_visual_scene")
    scenes, geometries = _by_id(root, "visual_scene"), _by_id(root, "geometry")
    meshes: dict[str, list[Array]] = {}
    for url, motion in _placed(_named(scenes, scene), np.eye(4)):
        if url not in meshes:
            meshes[url] = list(_triangles(_named(geometries, url)))
        for corners in meshes[url]:
            moved = corners @ motion[:3, :3].T + motion[:3, 3]
            mirrored = np.linalg.det(motion[:3, :3]) < 0.0
            yield np.asarray(moved[:, ::-1] if mirrored else moved)


def _by_id(root: etree._Element, kind: str) -> dict[str, etree._Element]:
    """Elements of a kind by the addresses that name them."""
    return {f"#{each.get('id')}": each for each in root.iter(f"{{*}}{kind}")}


def _named(elements: dict[str, etree._Element], by: etree._Element | str | None) -> etree._Element:
    """The element that an address, or an instance of it, names."""
    url = by if isinstance(by, str) else "" if by is None else by.get("url", "")
    if url not in elements:
        raise ValueError(f"there is no '{url}'")
    return elements[url]


def _placed(node: etree._Element, motion: Array) -> Iterator[tuple[str, Array]]:
    """Addresses of the geometries that a node, or a scene, places, with their motions (4, 4)."""
    inside = []
    for child in node.iterchildren("{*}*"):
        kind = etree.QName(child).localname
        if kind in _LENGTHS:
            motion = motion @ _motion(kind, _numbers(child, _LENGTHS[kind]))
        elif kind in ("node", "instance_geometry"):
            inside.append(child)
        elif kind not in _UNPLACED:
            raise ValueError(f"<{kind}> is not read")
    for child in inside:
        if etree.QName(child).localname == "node":
            yield from _placed(child, motion)
        else:
            yield child.get("url", ""), motion


def _motion(kind: str, numbers: Array) -> Array:
    """The matrix (4, 4) of an element that moves a node."""
    motion = np.eye(4)
    if kind == "matrix":
        return numbers.reshape(4, 4)
    if kind == "translate":
        motion[:3, 3] = numbers
    elif kind == "scale":
        motion[:3, :3] = np.diag(numbers)
    else:
        axis = vec(numbers[:3].tolist())
        if not any(axis):
            raise ValueError("it turns about no axis")
        motion[:3, :3] = about(unit_vector(axis), math.radians(numbers[3]))
    return motion


def _triangles(geometry: etree._Element) -> Iterator[Array]:
    """The corners (n, 3, 3) of each list of triangles, or polygons, of a mesh."""
    mesh = geometry.find("{*}mesh")
    if mesh is None:
        raise ValueError("it is no mesh")
    sources = _by_id(mesh, "source")
    vertices = mesh.find("{*}vertices")
    position = None if vertices is None else vertices.find("{*}input[@semantic='POSITION']")
    if vertices is None or position is None:
        raise ValueError("its vertices have no positions")
    points = _points(_named(sources, position.get("source", "")))
    for each in mesh.iterchildren("{*}*"):
        kind = etree.QName(each).localname
        if kind in ("triangles", "polylist"):
            numbers = _indices(each, f"#{vertices.get('id')}")
            corners = numbers.reshape(-1, 3) if kind == "triangles" else _fans(each, numbers)
            if each.find("{*}vcount") is None and len(corners) != int(each.get("count", "")):
                raise ValueError("it has another number of triangles than it says")
            if numbers.size and not 0 <= np.min(numbers) <= np.max(numbers) < len(points):
                raise ValueError("a face names a vertex that is not there")
            if len(corners):
                yield np.asarray(points[corners])
        elif kind not in _UNFILLED:
            raise ValueError(f"<{kind}> is not read")


def _points(source: etree._Element) -> Array:
    """The points (n, 3) of a source, plain triples of numbers."""
    accessor = source.find("{*}technique_common/{*}accessor")
    array = source.find("{*}float_array")
    if accessor is None or array is None:
        raise ValueError("a source has no numbers")
    names = [each.get("name") for each in accessor.iterchildren("{*}param")]
    if names != ["X", "Y", "Z"] or (accessor.get("stride"), accessor.get("offset", "0")) != (
        "3", "0"
    ):  # fmt: skip
        raise ValueError("its numbers are not triples of x, y and z")
    count = 3 * int(accessor.get("count", ""))
    return _numbers(array, count).reshape(-1, 3)


def _indices(faces: etree._Element, vertices: str) -> NDArray[np.intp]:
    """The vertices' numbers at the corners of a list of faces."""
    inputs = faces.findall("{*}input")
    ours = [int(each.get("offset", "")) for each in inputs if each.get("semantic") == "VERTEX"
            and each.get("source") == vertices]  # fmt: skip
    lists = faces.findall("{*}p")
    if len(ours) != 1 or len(lists) != 1:
        raise ValueError("it is unusual in its faces")
    width = 1 + max(int(each.get("offset", "")) for each in inputs)
    return _integers(lists[0]).reshape(-1, width)[:, ours[0]]


def _fans(faces: etree._Element, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """The triangles (n, 3) of polygons: fans from the first corner of each."""
    sizes = faces.find("{*}vcount")
    counts = np.zeros(0, dtype=np.intp) if sizes is None else _integers(sizes)
    if np.any(counts < 3) or np.sum(counts) != len(numbers):
        raise ValueError("its polygons do not fit their corners")
    first = np.repeat(np.cumsum(counts) - counts, counts - 2)
    steps = np.concatenate([np.arange(1, n - 1) for n in counts]) if len(counts) else first
    return np.asarray(numbers[np.stack([first, first + steps, first + steps + 1], axis=-1)])


def _numbers(element: etree._Element, count: int) -> Array:
    """The ``count`` numbers of an element, in single precision, as COLLADA's readers hold them."""
    found = np.array((element.text or "").split(), dtype="S").astype(np.float32)
    if len(found) != count or not np.all(np.isfinite(found)):
        raise ValueError(f"it has not {count} numbers")
    return found.astype(float)


def _integers(element: etree._Element) -> NDArray[np.intp]:
    return np.array((element.text or "").split(), dtype="S").astype(np.intp)
