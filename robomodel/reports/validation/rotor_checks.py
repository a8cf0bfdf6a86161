"""Checks of rotors and their gears."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from robomodel.description.transmissions import SIMPLE, kind_of
from robomodel.reports.document import Finding, note, warning
from robomodel.reports.validation.context import CheckContext, Rotor

RADIUS = (5e-4, 0.25)  # m: radii of gyration between which rotors of robots are
STEEL = 7850.0  # kg/m³
LENGTH = (1e-3, 20.0)  # radii: lengths between which a rotor's are, were it a solid of steel
WEIGHTLESS = 1e-9  # kg: masses up to this are written for simulators that ask for one
SAME = 1e-9

# What a rotor's reflected inertia may be of what its joint carries, and the rotor's own of the
# robot's mass times size². Of the robots tried, an iiwa's last joint reflects most, 1200 times what
# it carries, and JVRC-1's hips least, 1e-4; the belt leg's rotors are the largest part, 2e-3, and
# those of two iiwas on a table the smallest, 4e-7.
LARGE_SHARE, LARGEST_SHARE, LARGE_PART = 10.0, 1e4, 0.01
SMALL_SHARE, SMALL_PART = 1e-3, 1e-7
_NOTHING = 1e-300

# The same of armatures, which files often choose for the solver's sake: of 866 in 47 MJCF files of
# public packages the shares are from 1e-3 up, and beyond 1e4 only for what carries next to nothing.
LEAST_SHARE, ARMATURE_PART = 1e-6, 1e-5
UNLIKE = 4.0  # standard deviations of the logarithms of the rotors' inertias
ALIKE = 0.5  # the least standard deviation of these: rotors of one robot are of few sizes
FEWEST = 4  # rotors, of which one can stand out
PLACEHOLDER = 1.0  # the reduction of transmissions that are there for their names only


def check_rotors(context: CheckContext) -> Iterator[Finding]:
    """Ratios against axes and reductions, rotors counted twice, rotors that are none."""
    model, rotors = context.model, context.rotors
    body_of = {joint.name: body for body, joint in enumerate(model.joints)}
    senses: list[tuple[Rotor, str, float]] = []
    for rotor in rotors:
        node = model.nodes[rotor.body]
        masses = list(_rotor_masses(context, rotor))
        yield from masses or _reflected(context, rotor, body_of)
        if len(rotor.ratios) != 1:
            continue
        ((joint, ratio),) = rotor.ratios.items()
        if abs(ratio) < 1.0 - SAME and not context.slides(body_of[joint]):
            yield warning(
                "ratio",
                rotor.source,
                f"the rotor turns only {abs(ratio):.4g} times as far as its joint '{joint}'",
                f"write how far the rotor turns for one turn of the joint; {1 / abs(ratio):.4g} "
                "if the ratio is the other way round",
                ratio,
                "ratio",
            )
        if not context.slides(body_of[joint]):
            cosine = float(context.axis(rotor.body) @ context.axis(body_of[joint]))
            tilt = math.degrees(math.acos(min(1.0, abs(cosine))))
            if 0.01 < tilt < 30.0:
                yield warning(
                    "ratio",
                    rotor.source,
                    f"the rotor's axis is {tilt:.3g}° off that of its joint '{joint}'",
                    "write the axis and origin of the rotor's joint with all digits",
                    tilt,
                    "degrees",
                )
            elif tilt <= 0.01:
                senses.append((rotor, joint, math.copysign(1.0, ratio * cosine)))
        yield from _reduction(context, rotor, joint, ratio)
        armature = model.joints[body_of[joint]].armature
        reflected = ratio * ratio * (rotor.inertia + node.armature)
        if armature and reflected:
            yield warning(
                "rotor-twice",
                context.joint_source(joint),
                f"has an armature of {armature:.4g} beside the rotor "
                f"'{model.bodies[rotor.body].name}', which reflects {reflected:.4g}: both count",
                "keep one of them",
                armature,
                "kg m²",
            )
    yield from _against_the_others(senses)
    yield from _unlike_the_others(context)
    yield from _twins(context)
    yield from _armatures(context)


def _rotor_masses(context: CheckContext, rotor: Rotor) -> Iterator[Finding]:
    """A rotor as heavy as what carries it, and one whose moment its mass cannot have."""
    model = context.model
    parent = model.nodes[rotor.body].parent
    if parent >= 0 and rotor.mass > 0.0 and rotor.mass >= model.bodies[parent].mass:
        yield warning(
            "rotor-mass",
            rotor.source,
            f"the rotor weighs {rotor.mass:.4g} kg, '{model.bodies[parent].name}', which carries "
            f"it, {model.bodies[parent].mass:.4g} kg",
            "a rotor is what spins, not the whole motor; a mass that is in the link already is "
            "counted twice",
            rotor.mass,
            "kg",
        )
    if rotor.mass > WEIGHTLESS and rotor.inertia > 0.0:
        radius = math.sqrt(rotor.inertia / rotor.mass)
        length = rotor.mass / (STEEL * math.pi * (math.sqrt(2.0) * radius) ** 3)  # in radii
        if not (RADIUS[0] <= radius <= RADIUS[1] and LENGTH[0] <= length <= LENGTH[1]):
            ratio = max((abs(x) for x in rotor.ratios.values()), default=1.0)
            hint = (
                f"; if it is reflected through the gear, write {rotor.inertia / ratio**2:.4g}"
                if ratio > 1.0 and (radius > RADIUS[1] or length < LENGTH[0])
                else ""
            )
            yield warning(
                "rotor-inertia",
                rotor.source,
                f"the rotor's inertia {rotor.inertia:.4g} kg m² and mass {rotor.mass:.4g} kg make "
                f"a radius of gyration of {1000 * radius:.3g} mm; a solid cylinder of steel would "
                f"be {length:.3g} radii long",
                f"check their units (1 kg cm² is 1e-4 kg m², 1 g cm² is 1e-7){hint}",
                radius,
                "m",
            )


def _reduction(context: CheckContext, rotor: Rotor, joint: str, ratio: float) -> Iterator[Finding]:
    """A transmission of the same joint with another ratio."""
    for each in context.model.description.transmissions:
        if kind_of(each) != SIMPLE or [end.name for end in each.joints] != [joint]:
            continue
        reductions = [end.reduction for end in each.joints]
        reductions += [end.reduction for end in each.actuators]
        stated = [reduction for reduction in reductions if reduction]
        if abs(math.prod(stated)) == PLACEHOLDER:
            continue
        if abs(abs(math.prod(stated)) - abs(ratio)) > 1e-6 * abs(ratio):
            yield warning(
                "ratio",
                each.source,
                f"says a reduction of {math.prod(stated):.6g} for '{joint}', whose rotor "
                f"'{context.model.bodies[rotor.body].name}' turns {ratio:.6g} times as far",
                "mend one of them",
                math.prod(stated),
                "ratio",
            )


def _against_the_others(senses: list[tuple[Rotor, str, float]]) -> Iterator[Finding]:
    """Rotors that turn against their joints where nearly all others turn with theirs."""
    for sense in (1.0, -1.0):
        odd = [each for each in senses if each[2] == sense]
        if 0 < len(odd) <= 0.2 * len(senses):
            usual = "with" if sense < 0.0 else "against"
            for rotor, joint, _ in odd:
                yield note(
                    "ratio",
                    rotor.source,
                    f"turns {'with' if sense > 0.0 else 'against'} its joint '{joint}', where "
                    f"{len(senses) - len(odd)} other rotors turn {usual} theirs",
                    "nothing to do if its gear reverses; else mend the sign of ratio or axis",
                    sense,
                    "sense",
                )


def _unlike_the_others(context: CheckContext) -> Iterator[Finding]:
    """Rotors whose inertia is like the others' only without, or with, the square of their ratio."""
    rotors = [rotor for rotor in context.rotors if rotor.inertia > 0.0 and rotor.ratios]
    if len(rotors) < FEWEST:
        return
    logarithms = np.log([rotor.inertia for rotor in rotors])
    for n, rotor in enumerate(rotors):
        others = np.delete(logarithms, n)
        usual = float(np.median(others))
        spread = max(1.4826 * float(np.median(np.abs(others - usual))), ALIKE)
        ratio = max(map(abs, rotor.ratios.values()))
        off = float(logarithms[n]) - usual
        if ratio <= 1.0 or abs(off) <= UNLIKE * spread:
            continue
        if abs(abs(off) - 2.0 * math.log(ratio)) < min(UNLIKE * spread, abs(off)) / 2.0:
            factor = ratio ** math.copysign(2.0, off)
            yield warning(
                "rotor-inertia",
                rotor.source,
                f"the rotor's inertia is {rotor.inertia:.4g} kg m², that of most others near "
                f"{math.exp(usual):.4g}, from which it differs by about the square of its ratio "
                f"{ratio:.4g}",
                f"write {rotor.inertia / factor:.4g}: the inertia at the rotor's own shaft",
                rotor.inertia,
                "kg m²",
            )


def _twins(context: CheckContext) -> Iterator[Finding]:
    """Two rotors that are the same in all numbers on one joint."""
    seen: dict[tuple[object, ...], Rotor] = {}
    for rotor in context.rotors:
        if len(rotor.ratios) != 1:
            continue
        ((joint, ratio),) = rotor.ratios.items()
        key = (joint, round(abs(ratio), 9), rotor.inertia, rotor.mass)
        if key in seen:
            other = context.model.bodies[seen[key].body].name
            yield warning(
                "rotor-twice",
                rotor.source,
                f"is the same as the rotor '{other}' on the joint '{joint}': both count",
                "remove one of them, unless the joint has two motors",
                ratio * ratio * rotor.inertia,
                "kg m²",
            )
        seen[key] = rotor


def _reflected(
    context: CheckContext, rotor: Rotor, body_of: Mapping[str, int]
) -> Iterator[Finding]:
    """A rotor that its joints feel far more or far less than what they carry.

    Robots have both: strong gears at light wrists, weak ones at heavy hips. So a rotor is also
    measured by the whole robot, mass times size², of which a wrong unit makes it too large a part.
    """
    whole = context.mass * context.size**2
    if not (rotor.inertia > 0.0 and whole > 0.0) or max(map(abs, rotor.ratios.values())) < 1.0:
        return
    carried = {joint: context.carried(body_of[joint]) for joint in rotor.ratios}
    # per unit of its inertia: the least that it makes of what a joint carries, and the most
    least = min(k * k / max(carried[joint][1], _NOTHING) for joint, k in rotor.ratios.items())
    most = max(k * k / max(carried[joint][0], _NOTHING) for joint, k in rotor.ratios.items())

    def large(inertia: float) -> bool:
        part = inertia / whole > LARGE_PART
        return inertia * least > (LARGE_SHARE if part else LARGEST_SHARE)

    def small(inertia: float) -> bool:
        return inertia * most < SMALL_SHARE and inertia / whole < SMALL_PART

    if not (large(rotor.inertia) or small(rotor.inertia)):
        return
    joint, ratio = max(rotor.ratios.items(), key=lambda each: abs(each[1]))
    low, high = carried[joint]
    unit = context.model.joints[body_of[joint]].units.inertia
    reflected = ratio * ratio * rotor.inertia
    carries = f"at most {high:.3g}" if large(rotor.inertia) else f"at least {low:.3g}"
    hints = [
        f"write {rotor.inertia * factor:.4g} if it is {what}"
        for what, factor in (
            ("in kg cm²", 1e-4),
            ("in g cm²", 1e-7),
            ("reflected through the gear already", 1.0 / ratio**2),
        )
        if large(rotor.inertia)
        and not large(rotor.inertia * factor)
        and rotor.inertia * factor * most > SMALL_SHARE
    ]
    yield warning(
        "rotor-inertia",
        rotor.source,
        f"the rotor's {rotor.inertia:.4g} kg m² makes {reflected:.3g} {unit} through the ratio "
        f"{abs(ratio):.4g}, where the joint '{joint}' carries {carries} {unit}",
        "; ".join(["inertias are in kg m²: 1 kg cm² is 1e-4, 1 g cm² is 1e-7", *hints]),
        reflected,
        unit,
    )


def _armatures(context: CheckContext) -> Iterator[Finding]:
    """An armature that is far more, or far less, than what its joint carries."""
    whole = context.mass * context.size**2
    for body, joint in enumerate(context.model.joints):
        value = context.model.nodes[body].armature
        if joint.nv != 1 or not (value > 0.0 and whole > 0.0):
            continue
        low, high = context.carried(body)
        part = value / whole
        if high <= SMALL_PART * ARMATURE_PART * whole:  # a frame for tools, say
            continue
        large = value > LARGE_SHARE * high and part > 1.0
        small = value < SMALL_SHARE * low and part < ARMATURE_PART
        if not (large or small):
            continue
        beyond = value > LARGEST_SHARE * high if large else value < LEAST_SHARE * low
        unit = joint.units.inertia
        carries = f"at most {high:.3g}" if large else f"at least {low:.3g}"
        yield Finding(
            "warning" if beyond else "note",
            "armature",
            context.joint_source(joint.name),
            f"has an armature of {value:.4g} {unit}, and carries {carries} {unit}",
            "armature is the rotor's inertia times the ratio squared, in kg m²: 1 kg cm² is 1e-4, "
            "1 g cm² is 1e-7",
            value,
            unit,
        )
