"""Checks of inertias, transmissions and units."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from robomodel.description import Inertial, Link, Pose, Vec3
from robomodel.errors import Source
from robomodel.parsers.transmissions import SIMPLE, kind_of
from robomodel.spatial import apply, plus
from robomodel.studies.report import Finding
from robomodel.studies.subject import Rotor, Subject
from robomodel.writers.text import rpy_of

TOLD = 4 / 3  # beyond this excess over the triangle inequality, files are warned of when read
ROUNDED = 1e-6  # relative excess that digits of a file make
SLIGHT = 0.01  # an excess that is noted, but does no harm
OUT = 0.5  # of a body's extent: a centre of mass so far outside of it
WIDE = 3.0  # times the robot's longest link: a radius of gyration
THIN = 1e-5  # of the robot's longest link: a radius of gyration
ROTOR = (5e-4, 0.25)  # m: radii of gyration between which rotors of robots are
LONG = 20.0  # m: a robot's joints are nearer to each other
TURNS = 4 * math.pi  # rad: limits beyond two turns
HEAVY = 2000.0  # kg, of one link
DEGREES = (10, 15, 20, 30, 36, 40, 45, 50, 60, 70, 72, 75, 80, 90, 100, 105, 110, 120, 135, 144,
           150, 160, 165, 180, 270, 360)  # fmt: skip
SAME = 1e-9


# ---- inertias ------------------------------------------------------------------------------------


def check_inertias(subject: Subject) -> Iterator[Finding]:
    """Moments that no body has, zeros, and radii of gyration that the robot's size does not fit."""
    for link in subject.model.description.links:
        inertial = link.inertial
        if inertial is None:
            continue
        a, b, c = principal(inertial)
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
        if inertial.mass <= 0.0:
            continue
        radius = math.sqrt(max(c, 0.0) / inertial.mass)
        place = subject.model.frame(link.name).body
        if radius > WIDE * max(subject.size, _reach(inertial.origin.xyz)):
            yield Finding(
                "warning",
                "inertia-size",
                inertial.source,
                f"its radius of gyration is {radius:.3g} m, in a robot whose links are up to "
                f"{subject.size:.3g} m long",
                "moments of inertia are in kg m² (1 kg mm² is 1e-6, 1 g mm² is 1e-9), masses in kg",
                radius,
                "m",
            )
        elif place >= 0 and 0.0 < radius < THIN * subject.size:
            yield Finding(
                "warning",
                "inertia-size",
                inertial.source,
                f"its radius of gyration is {radius:.3g} m, as that of a point",
                "moments of inertia are in kg m², masses in kg",
                radius,
                "m",
            )
        elif place >= 0 and c == 0.0 and _alone(subject, link):
            yield Finding(
                "note",
                "point-mass",
                inertial.source,
                f"is a point of {inertial.mass:.4g} kg, without moments of inertia",
                "give it its moments of inertia, unless it is a model's point mass",
                inertial.mass,
                "kg",
            )


def principal(inertial: Inertial) -> Vec3:
    """The principal moments, ascending."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    a, b, c = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).tolist()
    return a, b, c


def _reach(point: Vec3) -> float:
    return math.hypot(*point)


def _alone(subject: Subject, link: Link) -> bool:
    """Whether no other link with moments of inertia is fixed to it."""
    body = subject.model.bodies[subject.model.frame(link.name).body]
    return not any(any(row) for row in body.inertia)


def check_centres(subject: Subject) -> Iterator[Finding]:
    """Centres of mass far outside of what the file says of a link's extent."""
    points = _points(subject)
    for link in subject.model.description.links:
        if link.inertial is None or not link.inertial.mass:
            continue
        own = np.array(points.get(link.name, []) or [(0.0, 0.0, 0.0)])
        low, high = np.min(own, axis=0), np.max(own, axis=0)
        extent = float(np.linalg.norm(high - low))
        shaped = any(_corners(shape.kind, shape.size) for shape in link.shapes)
        room = OUT * extent if shaped else max(extent, subject.size)
        centre = np.array(link.inertial.origin.xyz)
        out = float(np.linalg.norm(centre - np.clip(centre, low, high)))
        if out > room + 1e-6:
            by = "its shapes and joints" if shaped else "its joints"
            yield Finding(
                "warning",
                "centre-of-mass",
                link.inertial.source,
                f"its centre of mass is {out:.3g} m outside of {by}, which extend over "
                f"{extent:.3g} m",
                "check the <origin> of its inertial: metres, in the link's frame",
                out,
                "m",
            )


def _points(subject: Subject) -> dict[str, list[Vec3]]:
    """Points known of each link: joints, loop anchors, corners of shapes."""
    points: dict[str, list[Vec3]] = {
        link.name: [(0.0, 0.0, 0.0)] for link in subject.model.description.links
    }
    for joint in subject.model.description.joints:
        points[joint.parent].append(joint.origin.xyz)
    for loop in subject.model.description.loops:
        for end in (loop.predecessor, loop.successor):
            points[end.link].append(end.origin.xyz)
    for link in subject.model.description.links:
        for shape in link.shapes:
            points[link.name] += [
                plus(apply(shape.origin.rotation, corner), shape.origin.xyz)
                for corner in _corners(shape.kind, shape.size)
            ]
    return points


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


# ---- transmissions -------------------------------------------------------------------------------


def check_rotors(subject: Subject) -> Iterator[Finding]:
    """Ratios against axes and reductions, rotors counted twice, rotors that are none."""
    model, rotors = subject.model, subject.rotors
    body_of = {joint.name: body for body, joint in enumerate(model.joints)}
    senses: list[tuple[Rotor, str, float]] = []
    for rotor in rotors:
        node = model.nodes[rotor.body]
        yield from _rotor_masses(subject, rotor)
        if len(rotor.ratios) != 1:
            continue
        ((joint, ratio),) = rotor.ratios.items()
        if abs(ratio) < 1.0 - SAME and not _slides(subject, body_of[joint]):
            yield Finding(
                "warning",
                "ratio",
                rotor.source,
                f"the rotor turns only {abs(ratio):.4g} times as far as its joint '{joint}'",
                f"write how far the rotor turns for one turn of the joint; {1 / abs(ratio):.4g} "
                "if the ratio is the other way round",
                ratio,
                "ratio",
            )
        if not _slides(subject, body_of[joint]):
            cosine = float(subject.axis(rotor.body) @ subject.axis(body_of[joint]))
            tilt = math.degrees(math.acos(min(1.0, abs(cosine))))
            if 0.01 < tilt < 30.0:
                yield Finding(
                    "warning",
                    "ratio",
                    rotor.source,
                    f"the rotor's axis is {tilt:.3g}° off that of its joint '{joint}'",
                    "write the axis and origin of the rotor's joint with all digits",
                    tilt,
                    "degrees",
                )
            elif tilt <= 0.01:
                senses.append((rotor, joint, math.copysign(1.0, ratio * cosine)))
        yield from _reduction(subject, rotor, joint, ratio)
        armature = model.joints[body_of[joint]].armature
        reflected = ratio * ratio * (rotor.inertia + node.armature)
        if armature and reflected:
            yield Finding(
                "warning",
                "rotor-twice",
                subject.joint_source(joint),
                f"has an armature of {armature:.4g} beside the rotor "
                f"'{model.bodies[rotor.body].name}', which reflects {reflected:.4g}: both count",
                "keep one of them",
                armature,
                "kg m²",
            )
    yield from _against_the_others(senses)
    yield from _twins(subject)


def _slides(subject: Subject, body: int) -> bool:
    return not any(subject.model.nodes[body].joint.subspace[0].angular)


def _rotor_masses(subject: Subject, rotor: Rotor) -> Iterator[Finding]:
    """A rotor as heavy as what carries it, and one whose moment its mass cannot have."""
    model = subject.model
    parent = model.nodes[rotor.body].parent
    if parent >= 0 and rotor.mass > 0.0 and rotor.mass >= model.bodies[parent].mass:
        yield Finding(
            "warning",
            "rotor-mass",
            rotor.source,
            f"the rotor weighs {rotor.mass:.4g} kg, '{model.bodies[parent].name}', which carries "
            f"it, {model.bodies[parent].mass:.4g} kg",
            "a rotor is what spins, not the whole motor; a mass that is in the link already is "
            "counted twice",
            rotor.mass,
            "kg",
        )
    if rotor.mass > 0.0 and rotor.inertia > 0.0:
        radius = math.sqrt(rotor.inertia / rotor.mass)
        if not ROTOR[0] <= radius <= ROTOR[1]:
            ratio = max((abs(x) for x in rotor.ratios.values()), default=1.0)
            hint = (
                f"; if it is reflected through the gear, write {rotor.inertia / ratio**2:.4g}"
                if radius > ROTOR[1] and ratio > 1.0
                else ""
            )
            yield Finding(
                "warning",
                "rotor-inertia",
                rotor.source,
                f"the rotor's inertia {rotor.inertia:.4g} kg m² and mass {rotor.mass:.4g} kg make "
                f"a radius of gyration of {1000 * radius:.3g} mm",
                f"check their units{hint}",
                radius,
                "m",
            )


def _reduction(subject: Subject, rotor: Rotor, joint: str, ratio: float) -> Iterator[Finding]:
    """A transmission of the same joint that says another ratio."""
    for each in subject.model.description.transmissions:
        if kind_of(each) != SIMPLE or [end.name for end in each.joints] != [joint]:
            continue
        reductions = [end.reduction for end in each.joints]
        reductions += [end.reduction for end in each.actuators]
        said = [reduction for reduction in reductions if reduction]
        if said and abs(abs(math.prod(said)) - abs(ratio)) > 1e-6 * abs(ratio):
            yield Finding(
                "warning",
                "ratio",
                each.source,
                f"says a reduction of {math.prod(said):.6g} for '{joint}', whose rotor "
                f"'{subject.model.bodies[rotor.body].name}' turns {ratio:.6g} times as far",
                "mend one of them",
                math.prod(said),
                "ratio",
            )


def _against_the_others(senses: list[tuple[Rotor, str, float]]) -> Iterator[Finding]:
    """Rotors that turn against their joints where nearly all others turn with theirs."""
    for sense in (1.0, -1.0):
        odd = [each for each in senses if each[2] == sense]
        if 0 < len(odd) <= 0.2 * len(senses):
            usual = "with" if sense < 0.0 else "against"
            for rotor, joint, _ in odd:
                yield Finding(
                    "note",
                    "ratio",
                    rotor.source,
                    f"turns {'with' if sense > 0.0 else 'against'} its joint '{joint}', where "
                    f"{len(senses) - len(odd)} other rotors turn {usual} theirs",
                    "nothing to do if its gear reverses; else mend the sign of ratio or axis",
                    sense,
                    "sense",
                )


def _twins(subject: Subject) -> Iterator[Finding]:
    """Two rotors that are the same in all numbers on one joint."""
    seen: dict[tuple[object, ...], Rotor] = {}
    for rotor in subject.rotors:
        if len(rotor.ratios) != 1:
            continue
        ((joint, ratio),) = rotor.ratios.items()
        key = (joint, round(abs(ratio), 9), rotor.inertia, rotor.mass)
        if key in seen:
            other = subject.model.bodies[seen[key].body].name
            yield Finding(
                "warning",
                "rotor-twice",
                rotor.source,
                f"is the same as the rotor '{other}' on the joint '{joint}': both count",
                "remove one of them, unless the joint has two motors",
                ratio * ratio * rotor.inertia,
                "kg m²",
            )
        seen[key] = rotor


# ---- units ---------------------------------------------------------------------------------------


def check_units(subject: Subject) -> Iterator[Finding]:
    """Numbers that look like millimetres, grams or degrees."""
    yield from _degrees(subject)
    for joint in subject.model.description.joints:
        length = math.hypot(*joint.origin.xyz)
        if length > LONG:
            yield Finding(
                "warning",
                "millimetres",
                joint.source,
                f"is {length:.4g} m from its parent's frame",
                f"write metres ({length / 1000:.4g} if these are millimetres)",
                length,
                "m",
            )
        angular = joint.type in ("revolute", "screw")
        ends = [end for end in (joint.limits.lower, joint.limits.upper) if math.isfinite(end)]
        if not angular and joint.type == "prismatic" and any(abs(end) > LONG for end in ends):
            yield Finding(
                "warning",
                "millimetres",
                joint.source,
                f"slides by up to {max(map(abs, ends)):.4g} m",
                "write limits in metres",
                max(map(abs, ends)),
                "m",
            )
    for link in subject.model.description.links:
        if link.inertial is None:
            continue
        away = _reach(link.inertial.origin.xyz)
        if away > LONG:
            yield Finding(
                "warning",
                "millimetres",
                link.inertial.source,
                f"its centre of mass is {away:.4g} m from the link's frame",
                f"write metres ({away / 1000:.4g} if these are millimetres)",
                away,
                "m",
            )
        if link.inertial.mass > HEAVY:
            yield Finding(
                "warning",
                "grams",
                link.inertial.source,
                f"weighs {link.inertial.mass:.4g} kg",
                f"write kilograms ({link.inertial.mass / 1000:.4g} if these are grams)",
                link.inertial.mass,
                "kg",
            )


def _degrees(subject: Subject) -> Iterator[Finding]:
    for joint in subject.model.description.joints:
        if joint.type in ("revolute", "screw", "continuous"):
            said = [("limit", joint.limits.lower), ("limit", joint.limits.upper)]
            said += [("initial position", joint.initial)] if joint.initial is not None else []
            said += [("mimic offset", joint.mimic.offset)] if joint.mimic else []
            for what, value in said:
                if math.isfinite(value) and abs(value) > TURNS and value == round(value):
                    yield Finding(
                        "warning",
                        "degrees",
                        joint.source,
                        f"its {what} is {value:.6g} rad, {abs(value) / (2 * math.pi):.3g} turns",
                        f"write radians ({math.radians(value):.6g} if these are degrees)",
                        value,
                        "rad",
                    )
                    break
        yield from _turned_in_degrees(joint.origin, joint.source, "its origin")
    for link in subject.model.description.links:
        if link.inertial is not None:
            yield from _turned_in_degrees(
                link.inertial.origin, link.inertial.source, "its inertial's origin"
            )
    for loop in subject.model.description.loops:
        for end in (loop.predecessor, loop.successor):
            yield from _turned_in_degrees(end.origin, loop.source, f"its end on '{end.link}'")


def _turned_in_degrees(pose: Pose, source: Source, what: str) -> Iterator[Finding]:
    """An angle of so many radians as right angles and their fractions have degrees.

    Turned by 90 rad looks like an arbitrary angle, but it is 90 less 28π to the last digit.
    """
    roll, pitch, yaw = rpy_of(pose.rotation)
    same = (roll + math.pi, math.pi - pitch, yaw + math.pi)  # the other angles of this rotation
    for name, angle in zip(("roll", "pitch", "yaw") * 2, (roll, pitch, yaw, *same), strict=True):
        for radians in (sign * degrees for degrees in DEGREES for sign in (1, -1)):
            if angle and abs(math.remainder(angle - radians, 2 * math.pi)) < SAME:
                yield Finding(
                    "warning",
                    "degrees",
                    source,
                    f"{what} is turned by {radians} rad ({name} {angle:.6g})",
                    f"write radians ({math.radians(radians):.6g} if these are degrees)",
                    radians,
                    "rad",
                )
                return
