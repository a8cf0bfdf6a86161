"""Checks of inertias: moments that no body has, and centres of mass far from their links."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from robomodel.description import Inertial, Link, Vec3
from robomodel.model.joints import Array
from robomodel.reports.document import Finding, note, warning
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.unit_checks import HEAVY
from robomodel.spatial import apply, plus

TOLD = 4 / 3  # beyond this excess over the triangle inequality, files are warned of when read
ROUNDED = 1e-6  # relative excess that digits of a file make
SLIGHT = 0.01  # an excess that is noted, but does no harm
OUT = 0.5  # of a body's extent: a centre of mass so far outside of it
MARKER = 0.1  # of the robot's longest link: shapes so small may be there to mark a place
WIDE = 3.0  # times the robot's longest link: a radius of gyration, or a lonely centre of mass
POINT = 1e-8  # m: a radius of gyration that is written for none
DENSEST = 22600.0  # kg/m³, osmium
FELT = 0.1  # of what hangs on a body: a link's share of inertia that matters
DUMMY = (1e-4, 1e-5)  # of the robot's mass, and of mass times size²: links that only hold a name


# ---- inertias ------------------------------------------------------------------------------------


def check_inertias(context: CheckContext) -> Iterator[Finding]:
    """Moments that no body has, zeros, and radii of gyration that the robot's size does not fit.

    What does not turn has no say in the motion, and is left alone, as are dummies; rotors have
    checks of their own.
    """
    rotors = {rotor.body for rotor in context.rotors}
    for link in context.model.description.links:
        if (inertial := link.inertial) is None:
            continue
        moments = principal(inertial)
        yield from _triangle(inertial, moments)
        body = context.model.frame(link.name).body
        if body < 0 or body in rotors or inertial.mass <= 0.0 or not context.turning[body]:
            continue
        if is_dummy(context, inertial.mass, moments[2]):
            continue
        radius = math.sqrt(max(moments[2], 0.0) / inertial.mass)
        reach = math.hypot(*inertial.origin.xyz)
        extent = max(context.size, reach, _extent(_points(context, link)))
        if radius > WIDE * extent and is_felt(context, body, moments[2]):
            yield warning(
                "inertia-size",
                inertial.source,
                f"its radius of gyration is {radius:.3g} m, in a robot whose links are up to "
                f"{context.size:.3g} m long",
                "moments of inertia are in kg m² (1 kg mm² is 1e-6, 1 g mm² is 1e-9), masses in kg",
                radius,
                "m",
            )
    yield from _points_of_mass(context)


def _triangle(inertial: Inertial, moments: Vec3) -> Iterator[Finding]:
    a, b, c = moments
    if a >= 0.0 and b > 0.0 and c <= TOLD * (a + b):
        excess = c / (a + b) - 1.0
        if excess > ROUNDED:
            yield Finding(
                "warning" if excess > SLIGHT else "note",
                "triangle",
                inertial.source,
                f"its largest principal moment of inertia exceeds the sum of the others by "
                f"{100 * excess:.3g} % ({a:.4g}, {b:.4g}, {c:.4g} kg m²), which no body's does",
                "check the numbers; MuJoCo and others refuse such a body",
                excess,
                "relative",
            )


def _points_of_mass(context: CheckContext) -> Iterator[Finding]:
    """Bodies, with what is fixed to them, that are smaller than any matter of their mass."""
    rotors = {rotor.body for rotor in context.rotors}
    for body, name in enumerate(each.name for each in context.model.bodies):
        mass, inertia = context.places.together([body])
        largest = float(np.linalg.eigvalsh(inertia)[-1])
        if not 0.0 < mass <= HEAVY or body in rotors or not context.turning[body]:
            continue
        if is_dummy(context, mass, largest):
            continue
        radius = math.sqrt(max(largest, 0.0) / mass)
        ball = 0.4 * (3.0 * mass / (4.0 * math.pi * DENSEST)) ** (2 / 3)  # its r² · 2/5
        links = [context.links[each] for each in context.model.bodies[body].links]
        source = max(links, key=lambda link: link.inertial.mass if link.inertial else 0.0)
        where = source.inertial.source if source.inertial else context.links[name].source
        if radius < POINT:
            yield note(
                "point-mass",
                where,
                f"is a point of {mass:.4g} kg, without moments of inertia",
                "give it its moments of inertia, unless it is a model's point mass",
                mass,
                "kg",
            )
        elif radius**2 < 0.5 * ball:
            yield warning(
                "inertia-size",
                where,
                f"its radius of gyration is {radius:.3g} m; {mass:.4g} kg of the densest metal, "
                f"as a ball, have {math.sqrt(ball):.3g} m",
                "moments of inertia are in kg m², masses in kg",
                radius,
                "m",
            )


def principal(inertial: Inertial) -> Vec3:
    """The principal moments, ascending."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    a, b, c = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).tolist()
    return a, b, c


def is_dummy(context: CheckContext, mass: float, moment: float) -> bool:
    """Whether so little is there only because some program wants every link to have a mass."""
    whole = context.mass
    return mass < DUMMY[0] * whole and moment < DUMMY[1] * whole * context.size**2


def is_felt(context: CheckContext, body: int, moment: float) -> bool:
    """Whether a moment is a good share of that of its body and what hangs on it."""
    _, inertia = context.places.together(context.beyond[body] or [body])
    return moment > FELT * (float(np.linalg.eigvalsh(inertia)[-1]) - moment)


# ---- centres of mass -----------------------------------------------------------------------------


def check_centres(context: CheckContext) -> Iterator[Finding]:
    """Centres of mass far outside of the extent that the file gives a body."""
    model = context.model
    points: list[list[Array]] = [[] for _ in model.bodies]
    for link in model.description.links:
        frame = model.frame(link.name)
        if frame.body >= 0:
            points[frame.body] += [_in_body(context, link, at) for at in _points(context, link)]
    for link in model.description.links:
        inertial, body = link.inertial, model.frame(link.name).body
        if inertial is None or body < 0:
            continue
        if not inertial.mass or is_dummy(context, inertial.mass, 0.0):
            continue
        around = np.array(points[body])
        low, high = np.min(around, axis=0), np.max(around, axis=0)
        extent = float(np.linalg.norm(high - low))
        shaped = any(_corners(shape.kind, shape.size) for shape in link.shapes)
        if shaped and all(shape.kind != "mesh" for shape in link.shapes):
            room = max(OUT * extent, MARKER * context.size)
        else:  # all that is known of a foot or a hand may be where it hangs
            room = max(extent, context.size) if extent > 0.0 else WIDE * context.size
        centre = _in_body(context, link, inertial.origin.xyz)
        out = float(np.linalg.norm(centre - np.clip(centre, low, high)))
        if out > room + 1e-6:
            by = "its shapes and joints" if shaped else "its joints"
            yield warning(
                "centre-of-mass",
                inertial.source,
                f"its centre of mass is {out:.3g} m outside of {by}, which extend over "
                f"{extent:.3g} m",
                "check the <origin> of its inertial: metres, in the link's frame",
                out,
                "m",
            )


def _in_body(context: CheckContext, link: Link, point: Vec3) -> Array:
    """A point of a link in the axes of its body."""
    pose = context.model.frame(link.name).pose
    turned = np.array(pose.matrix(), dtype=float) @ np.array(point)
    result: Array = turned + np.array(pose.offset, dtype=float)
    return result


def _points(context: CheckContext, link: Link) -> list[Vec3]:
    """Points known of a link: its frame, joints, loop anchors, corners of shapes."""
    points: list[Vec3] = [(0.0, 0.0, 0.0), *context.anchors[link.name]]
    for shape in link.shapes:
        points += [
            plus(apply(shape.origin.rotation, corner), shape.origin.xyz)
            for corner in _corners(shape.kind, shape.size)
        ]
    return points


def _extent(points: Sequence[Vec3]) -> float:
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    return float(np.linalg.norm(high - low))


def _corners(kind: str, size: tuple[float, ...]) -> list[Vec3]:
    """The corners of a box around a shape; none for meshes, which are not opened, and planes."""
    match kind:
        case "box":
            x, y, z = (s / 2 for s in size)
        case "sphere":
            x = y = z = size[0]
        case "ellipsoid":
            x, y, z = size
        case "cylinder":
            x, y, z = size[0], size[0], size[1] / 2
        case "capsule":
            x, y, z = size[0], size[0], size[1] / 2 + size[0]
        case _:
            return []
    return [(i * x, j * y, k * z) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
