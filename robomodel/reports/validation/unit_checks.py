"""Checks of units: numbers that look like millimetres, grams or degrees."""

from __future__ import annotations

import math
from collections.abc import Iterator

from robomodel.description import Pose
from robomodel.errors import Source
from robomodel.parsers.schema import rpy_of
from robomodel.reports.document import Finding, warning
from robomodel.reports.validation.context import CheckContext

LONG = 20.0  # m: a robot's joints are nearer to each other
ENDLESS = 1e4  # m: limits beyond are those of no slide, but written for none
TURNS = (4 * math.pi, 3600.0)  # rad: limits beyond two turns; beyond ten turns of degrees: for none
BROKEN = 1440.0  # rad: four turns in degrees, for limits that are no whole numbers of them
USUAL = 0.8  # of the other hinges with limits: so many stay below two turns where one does not
HEAVY = 2000.0  # kg, of one link
STEEL = 7850.0  # kg/m³: no link is heavier than a cube of it as long as the robot's longest link
DEGREES = (10, 15, 20, 30, 36, 40, 45, 50, 60, 70, 72, 75, 80, 90, 100, 105, 110, 120, 135, 144,
           150, 160, 165, 180, 270, 360)  # fmt: skip
SAME = 1e-9


def check_units(context: CheckContext) -> Iterator[Finding]:
    """Numbers that look like millimetres, grams or degrees."""
    yield from _degrees(context)
    description = context.model.description
    inertials = [link.inertial for link in description.links if link.inertial is not None]
    for what, whence, things in (
        ("is", "its parent's frame", description.joints),
        ("its centre of mass is", "the link's frame", inertials),
    ):
        for each in things:
            length = math.hypot(*each.origin.xyz)
            if length > LONG:
                yield warning(
                    "millimetres",
                    each.source,
                    f"{what} {length:.4g} m from {whence}",
                    f"write metres ({length / 1000:.4g} if these are millimetres)",
                    length,
                    "m",
                )
    for joint in description.joints:
        ends = [end for end in (joint.limits.lower, joint.limits.upper) if math.isfinite(end)]
        if joint.type == "prismatic" and any(LONG < abs(end) < ENDLESS for end in ends):
            yield warning(
                "millimetres",
                joint.source,
                f"slides by up to {max(map(abs, ends)):.4g} m",
                "write limits in metres",
                max(map(abs, ends)),
                "m",
            )
    for inertial in inertials:
        if inertial.mass > max(HEAVY, STEEL * context.size**3):
            yield warning(
                "grams",
                inertial.source,
                f"weighs {inertial.mass:.4g} kg",
                f"write kilograms ({inertial.mass / 1000:.4g} if these are grams)",
                inertial.mass,
                "kg",
            )


def _degrees(context: CheckContext) -> Iterator[Finding]:
    rotors = {context.model.joints[rotor.body].name for rotor in context.rotors}
    limits = {
        joint.name: max(abs(joint.limits.lower), abs(joint.limits.upper))
        for joint in context.model.description.joints
        if joint.type == "revolute" and joint.name not in rotors
    }
    for joint in context.model.description.joints:
        if joint.type in ("revolute", "screw", "continuous") and joint.name not in rotors:
            other = [limit for name, limit in limits.items() if name != joint.name]
            usual = bool(other) and sum(x <= TURNS[0] for x in other) >= USUAL * len(other)
            values = [("limit", joint.limits.lower), ("limit", joint.limits.upper)]
            values += [("initial position", joint.initial)] if joint.initial is not None else []
            values += [("mimic offset", joint.mimic.offset)] if joint.mimic else []
            for what, value in values:
                most = TURNS[1] if value == float(f"{value:.0f}") else BROKEN * usual
                if TURNS[0] < abs(value) <= most:
                    yield warning(
                        "degrees",
                        joint.source,
                        f"its {what} is {value:.6g} rad, {abs(value) / (2 * math.pi):.3g} turns",
                        f"write radians ({math.radians(value):.6g} if these are degrees)",
                        value,
                        "rad",
                    )
                    break
        yield from _turned_in_degrees(joint.origin, joint.source, "its origin")
    for link in context.model.description.links:
        if link.inertial is not None:
            yield from _turned_in_degrees(
                link.inertial.origin, link.inertial.source, "its inertial's origin"
            )
    for loop in context.model.description.loops:
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
                yield warning(
                    "degrees",
                    source,
                    f"{what} is turned by {radians} rad ({name} {angle:.6g})",
                    f"write radians ({math.radians(radians):.6g} if these are degrees)",
                    radians,
                    "rad",
                )
                return
