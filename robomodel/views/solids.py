"""Solids that stand for bodies without shapes, made of their joints and inertias.

A link is the hull of balls at its joints and at the ends of its loops; a hinge is a cylinder about
its axis; what turns on its own axis alone (a rotor, a wheel) is a disc of its mass and inertia.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robomodel.description import Inertial, Joint, Link, Shape
from robomodel.dynamics.kinematics.frames import link_poses
from robomodel.model import Model
from robomodel.model.joints import Array

BALL = 120  # points of a ball
ROUND = 36  # of a rim
THICKEST, THINNEST = 0.03, 0.006  # radii of bars, of the robot's size
SLENDER = 0.1  # radius of a bar, of its length
HINGES = ("revolute", "continuous", "screw")


@dataclass(frozen=True)
class Solid:
    """A convex solid on a link, in its axes: corners (n, 3), triangles (m, 3) seen from outside."""

    link: str
    corners: Array
    faces: Array


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
    for link in model.description.links:
        joint = moved_by.get(link.name)
        ends = list(_ends(model, link))
        length = float(max(np.ptp([np.zeros(3), *ends], axis=0).max(), 0.0))
        if length < 1e-9 and link.inertial is None:
            continue  # a name for a place
        radius = float(np.clip(SLENDER * length, THINNEST * size, THICKEST * size))
        hinged = joint is not None and joint.type in HINGES
        if length > 1e-9:
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
            yield Solid(link.name, *hull(_cylinder(np.array(joint.axis), wide, deep)))


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
    """Of the solid cylinder that has the link's mass and moment about its joint's axis."""
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
    """Points whose hull a shape is, in its own axes; None for planes and meshes.

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


def ball(points: int = BALL) -> Array:
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
