"""Solids for a robot's links: its shapes; without shapes, by joints and inertias. And colours.

A link is the hull of balls at its joints and at the ends of its loops; a hinge is a cylinder about
its axis; what only turns about its axis (a rotor, a wheel) is a disc of its inertia; what slides is
a box on a rail, or the rod of a cylinder in its barrel.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array
from robomodel.description import Inertial, Joint, Link, Shape
from robomodel.description.shapes import load_mesh
from robomodel.dynamics.kinematics.frames import link_poses
from robomodel.errors import DescriptionError, Issue, MissingPackageError, warn_of_all
from robomodel.model import Model
from robomodel.reports.palette import BODIES, PLAIN, PLAIN_SOLID, rgb
from robomodel.tolerances import PARALLEL
from robomodel.views.drawings import colours_of

DETAIL = 120  # directions in which the hull of a mesh is looked for
SHADES = (1.0, 0.75, 0.88, 0.62)  # of the bodies of a cluster
ROUND = 36  # of a rim
THICKEST, THINNEST = 0.03, 0.006  # radii of bars, of the robot's size
SLENDER = 0.1  # radius of a bar, of its length
SIDE = np.array([0.3, -1.0, 0.6])  # from where mechanisms that are not planar are seen
HINGES = ("revolute", "continuous", "screw")
BARREL = 0.9  # length of a cylinder's barrel, of the distance from its pin to the eye of its rod


@dataclass(frozen=True)
class Solid:
    """A convex solid on a link, in its axes: corners (n, 3), triangles (m, 3) seen from outside.

    ``hinge``: it stands about the link's joint, whatever else the link is.
    """

    link: str
    corners: Array
    faces: Array
    hinge: bool = False


def size_of(model: Model) -> float:
    """How large a robot is at its neutral configuration, by its links' origins [m]."""
    points = [pose[:3, 3] for pose in link_poses(model, model.neutral()).values()]
    return float(max(np.ptp(points, axis=0).max(), 0.05))


def link_solids(model: Model) -> Iterator[Solid]:
    """For each link: its body, and the hinge that moves it."""
    size = size_of(model)
    moved_by = {joint.child: joint for joint in model.description.joints}
    poses = link_poses(model, model.neutral())
    hinges: Counter[tuple[float, ...]] = Counter()  # in one place, about one axis
    cylinders = [each for each in moved_by.values() if _is_cylinder(model, each, moved_by)]
    barrels, rods = {x.parent: x for x in cylinders}, {x.child: x for x in cylinders}
    for link in model.description.links:
        joint = moved_by.get(link.name)
        ends = list(_ends(model, link))
        length = float(max(np.ptp([np.zeros(3), *ends], axis=0).max(), 0.0))
        if length < 1e-9 and link.inertial is None:
            continue  # a name for a place
        radius = float(np.clip(SLENDER * length, THINNEST * size, THICKEST * size))
        hinged = joint is not None and joint.type in HINGES
        if (cylinder := barrels.get(link.name) or rods.get(link.name)) is not None:
            reach, thick = _stroke(cylinder)[0], _thickness(cylinder, size)
            yield _barrel(cylinder, thick) if link.name in barrels else _rod(cylinder, thick)
            radius, length = thick, abs(reach)
        elif length > 1e-9:
            parts = [radius * ball() + end for end in (np.zeros(3), *ends)]
            yield Solid(link.name, *hull(np.concatenate(parts)))
        elif not hinged:
            yield Solid(link.name, *hull(radius * ball()))
        if joint is not None and hinged:
            wide = 1.4 * radius if length > 1e-9 else _disc_radius(link, joint, size)
            pose = poses[link.name]
            line = (*pose[:3, 3], *np.abs(pose[:3, :3] @ joint.axis))
            place = tuple(np.round(line, 6).tolist())
            wide *= 1.0 + 0.03 * hinges[place]  # they have no surface in common
            hinges[place] += 1
            deep = 2.0 * wide if length > 1e-9 else 0.5 * wide
            yield Solid(link.name, *hull(_cylinder(np.array(joint.axis), wide, deep)), True)
        if joint is not None and joint.type == "prismatic" and link.name not in rods:
            yield from _slide(joint, 1.5 * radius, size)


def _is_cylinder(model: Model, joint: Joint, moved_by: Mapping[str, Joint]) -> bool:
    """True if a slide is the rod of a cylinder: out of a barrel that turns on a pin, along a line.

    Its stroke is on one side of the pin, the barrel carries nothing else, and the rod's eye is on
    the line.
    """
    pin = moved_by.get(joint.parent)
    low, high = joint.limits.lower, joint.limits.upper
    if joint.type != "prismatic" or pin is None or pin.type not in HINGES or not low * high > 0.0:
        return False
    if (
        not math.isfinite(high - low)
        or sum(x.parent == joint.parent for x in moved_by.values()) > 1
    ):
        return False
    axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
    along = np.array(joint.origin.rotation) @ axis
    points = [(np.array(joint.origin.xyz), along)]
    points += [(np.array(x.origin.xyz), axis) for x in moved_by.values() if x.parent == joint.child]
    for loop in model.description.loops:
        ends = (loop.predecessor, loop.successor)
        points += [(np.array(x.origin.xyz), axis) for x in ends if x.link == joint.child]
        if joint.parent in [x.link for x in ends]:
            return False
    reach = abs(_stroke(joint)[0])
    square = abs(float(along @ np.array(pin.axis))) < PARALLEL * float(np.linalg.norm(pin.axis))
    return square and all(
        np.linalg.norm(point - line * (line @ point)) < PARALLEL * reach for point, line in points
    )


def _stroke(joint: Joint) -> tuple[float, float]:
    """The ends of a cylinder's stroke, the one nearer to its pin first."""
    near, far = sorted((joint.limits.lower, joint.limits.upper), key=abs)
    return near, far


def _thickness(joint: Joint, size: float) -> float:
    """The radius of a cylinder's barrel."""
    return float(np.clip(SLENDER * abs(_stroke(joint)[0]), THINNEST * size, THICKEST * size))


def _barrel(joint: Joint, radius: float) -> Solid:
    """The barrel of a cylinder, from its pin to where the rod is when it is in."""
    axis, reach = np.array(joint.axis), BARREL * _stroke(joint)[0]
    axis = np.array(joint.origin.rotation) @ axis / np.linalg.norm(axis)
    tube = _cylinder(axis, radius, abs(reach)) + 0.5 * reach * axis
    return Solid(joint.parent, *hull(tube + np.array(joint.origin.xyz)))


def _rod(joint: Joint, radius: float) -> Solid:
    """The rod of a cylinder, from its eye as far back as it stays in the barrel."""
    near, far = _stroke(joint)
    axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
    length = math.copysign(min(abs(far - BARREL * near), BARREL * abs(near)), near)
    return Solid(joint.child, *hull(_cylinder(axis, 0.5 * radius, abs(length)) - length / 2 * axis))


def _slide(joint: Joint, radius: float, size: float) -> Iterator[Solid]:
    """The box of what slides, and its rail, as far as it goes, at most the size of the robot."""
    axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
    yield Solid(joint.child, *hull(_cylinder(axis, 1.5 * radius, 4.0 * radius, 4)))
    low, high = (
        float(np.clip(end, -size, size)) for end in (joint.limits.lower, joint.limits.upper)
    )
    middle, length = (low + high) / 2, high - low + 6.0 * radius
    rail = _cylinder(axis, 0.4 * radius, length, 4) + middle * axis
    at, turn = np.array(joint.origin.xyz), np.array(joint.origin.rotation)
    yield Solid(joint.parent, *hull(rail @ turn.T + at))


def _ends(model: Model, link: Link) -> Iterator[Array]:
    """Where joints and loops hang on a link; without joints on it also as far as its mass goes."""
    leaf = True
    for joint in model.description.joints:
        if joint.parent == link.name:
            leaf = leaf and joint.type == "fixed"
            yield np.array(joint.origin.xyz)
    for loop in model.description.loops:
        for end in (loop.predecessor, loop.successor):
            if end.link == link.name:
                yield np.array(end.origin.xyz)
    if link.inertial is not None and link.inertial.mass > 0.0:
        centre = np.array(link.inertial.origin.xyz)
        if np.any(centre):
            yield centre
            if leaf:
                yield centre + _half_length(link.inertial)


def tips(model: Model, link: Link) -> Iterator[Solid]:
    """The end of a link that carries no other, as far as its mass goes."""
    parents = {joint.parent for joint in model.description.joints if joint.type != "fixed"}
    if link.inertial is None or link.name in parents or not any(link.inertial.origin.xyz):
        return
    size = size_of(model)
    end = np.array(link.inertial.origin.xyz) + _half_length(link.inertial)
    radius = float(np.clip(SLENDER * np.linalg.norm(end), THINNEST * size, THICKEST * size))
    yield Solid(link.name, *hull(np.concatenate([radius * ball(), radius * ball() + end])))


def _half_length(inertial: Inertial) -> Array:
    """Along the centre of mass: half of the uniform rod that has the mass's spread that way."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    turn = np.array(inertial.origin.rotation)
    moments = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    centre = np.array(inertial.origin.xyz)
    along: Array = centre / np.linalg.norm(centre)
    square = (0.5 * np.trace(moments) - along @ moments @ along) / inertial.mass
    return along * math.sqrt(max(3.0 * float(square), 0.0))


def _disc_radius(link: Link, joint: Joint, size: float) -> float:
    """The radius of a solid cylinder with the link's mass and moment about its joint's axis."""
    radius = 0.0
    if link.inertial is not None and link.inertial.mass > 0.0:
        xx, xy, xz, yy, yz, zz = link.inertial.inertia
        axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
        moment = axis @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ axis
        radius = math.sqrt(max(2.0 * float(moment) / link.inertial.mass, 0.0))
    return float(np.clip(radius, 0.02 * size, 0.08 * size))


def _cylinder(axis: Array, radius: float, length: float, corners: int = ROUND) -> Array:
    """Points on the rims of a cylinder about an axis through the origin."""
    axis = axis / np.linalg.norm(axis)
    across = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    across = across / np.linalg.norm(across)
    turn = 2.0 * math.pi * np.arange(corners)[:, None] / corners
    rim = radius * (np.cos(turn) * across + np.sin(turn) * np.cross(axis, across))
    return np.concatenate([rim + end * length / 2 * axis for end in (-1.0, 1.0)])


def shape_points(shape: Shape, detail: int = 12) -> Array | None:
    """Points whose hull a shape is, in its axes; None for planes and meshes.

    ``detail``: half as many points as a circle has.
    """
    match shape.kind:
        case "box":
            signs = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, -1).T
            return np.asarray(signs * shape.size)
        case "sphere" | "ellipsoid":
            return np.asarray(ball(8 * detail) * np.array(shape.size))
        case "capsule":
            r, length = shape.size
            ends = r * ball(8 * detail)
            return np.asarray(ends + np.sign(ends[:, 2:]) * [0.0, 0.0, length / 2])
        case "cylinder":
            r, length = shape.size
            return _cylinder(np.array([0.0, 0.0, 1.0]), r, length, 2 * detail)
        case _:
            return None


def ball(points: int = 120) -> Array:
    """Directions spread evenly (points, 3), by a spiral."""
    n = np.arange(points) + 0.5
    z, turn = 1.0 - 2.0 * n / points, math.pi * (1.0 + 5.0**0.5) * n
    r = np.sqrt(1.0 - z * z)
    return np.stack([r * np.cos(turn), r * np.sin(turn), z], axis=1)


def hull(points: Array) -> tuple[Array, Array]:
    """Corners and triangles, seen from outside. QhullError for what is flat."""
    from scipy.spatial import ConvexHull

    convex = ConvexHull(points)
    corners, faces = points[convex.vertices], convex.simplices
    place = np.zeros(len(points), dtype=int)
    place[convex.vertices] = np.arange(len(convex.vertices))
    faces = place[faces]
    a, b, c = (corners[faces[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), convex.equations[:, :3]) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    return corners, faces


# ---- shapes, and colours -------------------------------------------------------------------------


def coloured_solids(model: Model) -> list[tuple[str, Solid]]:
    """Each link's visual shapes, else those for collisions; else solids by joints and inertia."""
    from scipy.spatial import QhullError

    colours = {name: code_of(rgb) for name, rgb in link_colours(model).items()}
    solids: list[tuple[str, Solid]] = []
    missing: list[Issue] = []
    for link in model.description.links:
        shapes = [x for x in link.shapes if x.role == "visual"] or list(link.shapes)
        for shape in shapes:
            try:
                points = _corners(shape)
            except (DescriptionError, MissingPackageError) as error:
                text = str(error).removeprefix(f"{error.source}: ")
                missing.append(Issue(f"not drawn: {text}", error.source, "mesh"))
                continue
            if points is None:
                continue
            try:
                corners, faces = hull(points)
            except QhullError:  # flat
                continue
            turn, at = np.array(shape.origin.rotation), np.array(shape.origin.xyz)
            colour = colours[link.name] if shape.rgba is None else code_of(bytes_of(shape.rgba))
            solids.append((colour, Solid(link.name, corners @ turn.T + at, faces)))
    warn_of_all(missing, strict=False)
    shaped = {solid.link for _, solid in solids}
    bare = [each for each in link_solids(model) if each.link not in shaped]
    return solids + [(colours[each.link], each) for each in bare]


def code_of(rgb: tuple[int, int, int]) -> str:
    """A colour as pages write it."""
    return "#{:02x}{:02x}{:02x}".format(*rgb)


def _corners(shape: Shape) -> Array | None:
    """Points whose hull is drawn; None for planes."""
    if shape.kind != "mesh":
        return shape_points(shape)
    points = np.asarray(load_mesh(shape).vertices, dtype=float)
    if len(points) > DETAIL:
        points = points[np.unique(np.argmax(points @ ball(DETAIL).T, axis=0))]
    return points


def bytes_of(rgba: tuple[float, float, float, float]) -> tuple[int, int, int]:
    """A colour in numbers up to 255, transparency left out."""
    red, green, blue = (round(255 * min(max(x, 0.0), 1.0)) for x in rgba[:3])
    return red, green, blue


def link_colours(model: Model) -> dict[str, tuple[int, int, int]]:
    """Each link's colour: its cluster's, in shades by bodies; or a body's where clusters are few.

    So are those of a robot without constraints, and of one linkage.
    """
    several = [cluster for cluster in model.clusters if len(cluster.bodies) > 1]
    colours, by_body = colours_of(model), len(several) <= 1
    result = {}
    for frame in model.frames:
        code, shade = PLAIN, 1.0
        if frame.body >= 0:
            cluster = model.clusters[model.nodes[frame.body].cluster]
            code = BODIES[frame.body % len(BODIES)] if by_body else colours[cluster.index]
            shade = 1.0 if by_body else SHADES[cluster.bodies.index(frame.body) % len(SHADES)]
        red, green, blue = rgb(PLAIN_SOLID if code == PLAIN else code)
        result[frame.name] = (int(red * shade), int(green * shade), int(blue * shade))
    return result


def rods(model: Model, poses: Mapping[str, Array]) -> Iterator[Solid]:
    """Massless rods, in world axes, where the links stand so."""
    size = np.ptp([pose[:3, 3] for pose in poses.values()], axis=0).max()
    for loop in model.description.loops:
        if loop.type == "rod":
            ends = [
                poses[end.link][:3, :3] @ np.array(end.origin.xyz) + poses[end.link][:3, 3]
                for end in (loop.predecessor, loop.successor)
            ]
            along = ends[1] - ends[0]
            points = _cylinder(along, THINNEST * float(size), float(np.linalg.norm(along)))
            yield Solid("", *hull(points + (ends[0] + ends[1]) / 2))


def view_angles(model: Model, q: Array) -> tuple[float, float]:
    """Turn and tilt of the camera: planar mechanisms are seen from their side."""
    away, poses = SIDE, link_poses(model, q)
    axes = [
        poses[joint.child][:3, :3] @ np.array(joint.axis)
        for joint in model.description.joints
        if joint.type in HINGES
    ]
    if axes:
        normal = axes[0] / np.linalg.norm(axes[0])
        flat = all(np.linalg.norm(np.cross(normal, axis)) < PARALLEL for axis in axes)
        if flat and model.floating_base is None:
            away = normal if normal @ SIDE > 0.0 else -normal
    away = away / np.linalg.norm(away)
    tilt = math.asin(float(np.clip(away[2], -1.0, 1.0)))
    steep = abs(away[2]) > 1.0 - PARALLEL
    return (-math.pi / 2 if steep else math.atan2(away[1], away[0])), tilt
