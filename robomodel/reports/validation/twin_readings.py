"""Numbers compared of two limbs that are twins: a reading for each number of their pairs.

Masses, centres and inertias of links; places and axes of joints, and their other numbers; ends of
loops. Joints are compared by the motion that they give: an axis may point either way, and the
limits go with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from robomodel.arrays import Array, median
from robomodel.description import ONE_DOF, Joint, Limits, Loop, Pose, Spring
from robomodel.description.poses import about, distance, link_poses, vec
from robomodel.errors import Source
from robomodel.reports.comparison.differences import (
    UNITS,
    Cause,
    MassProperties,
    com_cause,
    inertia_cause,
    mass_cause,
    shown,
)
from robomodel.reports.comparison.match import assigned
from robomodel.reports.document import Correction, Finding, note, warning
from robomodel.reports.validation.bounds import BOUNDS
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.twins import ROOT, Part, Segment, Skeleton, Twins
from robomodel.tolerances import SAME
from robomodel.vocabulary.springs import rest_length

Tell = Callable[[int], Finding]
Tie: TypeAlias = Loop | Spring


@dataclass(frozen=True, eq=False)
class Reading:
    """A quantity of two elements that correspond.

    Attributes:
        quantity: Readings of one quantity are judged together.
        elements: Names, unique among those of the quantity.
        amount: The difference.
        least: The amount from which it may be a fault.
        tell: The finding at the first element (0) or at the second (1).
        doubts: How odd each value is by itself, in units that tell them apart.
        exact: The values of a file scatter for no reason, so that none excuses another.
    """

    quantity: str
    elements: tuple[str, str]
    amount: float
    least: float
    tell: Tell
    doubts: Sequence[float] = (0.0, 0.0)
    exact: bool = False


def read_twins(twins: Twins, followers: Collection[str]) -> Iterator[Reading]:
    """The readings of two limbs, without couplings and actuators.

    A joint of ``followers``, those that mimic others, may have other limits than one that leads.
    The last body of a limb may be drawn at another angle of its hinge, as rods of loops are that
    are not closed at zero.
    """
    skeleton, slides = twins.skeleton, twins.slides
    whole = sum(sorted(segment.mass for segment in skeleton.segments)[:-1])
    bodies: dict[int, list[Reading]] = {number: [] for number in range(len(twins.pairs))}
    for number, (one, other) in enumerate(twins.pairs):
        a, b = skeleton.segments[one], _moved(skeleton.segments[other], slides[number])
        by, before = twins.maps[number], twins.before[number]
        if not (a.children or b.children or b.slides):
            by = _as_drawn(by, a, b)
        yield from _collisions(skeleton.size, by, (a.parts[0], b.parts[0]))
        for parts in _parts(a, b, by, skeleton.size):
            if max(part.mass for part in parts) >= BOUNDS.dummy_mass * whole:
                found = list(_masses(skeleton, by, (a, b), parts))
                if parts[0] is a.parts[0]:
                    bodies[number] += found
                else:
                    yield from found
        if number:
            carriers = (
                skeleton.segments[a.parent].place,
                skeleton.segments[b.parent].place + slides[before],
            )
            bodies[before].append(_place(skeleton.size, twins.maps[before], (a, b), carriers))
        if a.joint.type in ONE_DOF and not (a.composed or b.composed):
            bodies[before if number else 0].append(_axis(by, a, b))
        alike = (a.joint.name in followers) == (b.joint.name in followers)
        sign = 0.0 if twins.turned(number) else twins.sign(number)
        yield from _joints(twins.placed, a, b, sign, alike)
    for number, readings in bodies.items():
        if sum(each.amount > each.least for each in readings) < BOUNDS.other_part:
            yield from readings
        elif twins.placed:
            a, b = (skeleton.segments[n] for n in twins.pairs[number])
            names = a.parts[0].link.name, b.parts[0].link.name
            yield Reading("part", names, 1.0, 0.5, partial(_tell_part, (a, b)), exact=True)


def _moved(segment: Segment, by: Array) -> Segment:
    """A segment with another place of its joint."""
    if not by.any():
        return segment
    parts = tuple(replace(part, place=part.place - by, com=part.com - by) for part in segment.parts)
    return replace(segment, place=segment.place + by, com=segment.com - by, parts=parts)


def _as_drawn(by: Array, one: Segment, other: Segment) -> Array:
    """The map turned about the axis of a joint, if that makes two bodies the same; else the map."""
    axis, own = other.axis, other.com - other.axis * (other.axis @ other.com)
    image = by @ one.com
    image = image - axis * (axis @ image)
    if not axis.any() or not image.any() or not own.any():
        return by
    angle = math.atan2(float(axis @ np.cross(image, own)), float(image @ own))
    turned: Array = np.array(about(vec(axis), angle)) @ by
    apart = _norm(turned @ one.com - other.com)
    unlike = _norm(turned @ one.inertia @ turned.T - other.inertia)
    same = apart < BOUNDS.measured_equal * _norm(other.com)
    return turned if same and unlike < BOUNDS.measured_equal * _norm(other.inertia) else by


def _tell_part(segments: tuple[Segment, Segment], side: int) -> Finding:
    wrong, right = segments[side], segments[1 - side]
    return note(
        "asymmetry",
        _inertial_source(wrong.parts[0]),
        f"differs from '{right.parts[0].link.name}', its counterpart, in three or more of mass, "
        "centre of mass, inertia, and places and axes of joints",
        "nothing to do if it is another part",
    )


# ---- masses --------------------------------------------------------------------------------------


def _parts(a: Segment, b: Segment, by: Array, size: float) -> Iterator[tuple[Part, Part]]:
    """Links of two bodies that correspond: those of the joints, and others by place and mass."""
    yield a.parts[0], b.parts[0]
    here, there = (
        [part for part in each.parts[1:] if part.link.inertial is not None] for each in (a, b)
    )
    if len(here) < len(there):  # an inertial may be missing on one side
        here = list(a.parts[1:])
    elif len(there) < len(here):
        there = list(b.parts[1:])
    if not here or not there:
        return
    costs = np.array([[_cost(one, other, by, size) for other in there] for one in here])
    for i, j in assigned(costs):
        if costs[i, j] < BOUNDS.unpaired:
            yield here[i], there[j]


def _cost(one: Part, other: Part, by: Array, size: float) -> float:
    off = float(np.linalg.norm(by @ one.place - other.place)) / size
    heavy = max(one.mass, other.mass)
    return off + (0.25 * abs(one.mass - other.mass) / heavy if heavy else 0.0)


def _masses(
    skeleton: Skeleton, by: Array, segments: tuple[Segment, Segment], parts: tuple[Part, Part]
) -> Iterator[Reading]:
    names = parts[0].link.name, parts[1].link.name
    if not any(part.mass > 0.0 for part in parts):
        return
    within_link = _of_drawings(by, parts)
    if not all(part.mass > 0.0 for part in parts):
        missing = [BOUNDS.sure * (not part.mass) for part in parts]
        tell: Tell = partial(_tell_missing, parts)
        yield Reading("mass", names, 1.0, BOUNDS.different, tell, missing, exact=True)
        return
    images = _images(within_link, parts)
    ratio = parts[1].mass / parts[0].mass
    amount = abs(parts[0].mass - parts[1].mass) / max(part.mass for part in parts)
    traces = [float(np.trace(part.inertia)) for part in parts]
    largest = max(traces)
    gap = _norm(images[1][0].inertia - parts[1].inertia)
    scaled = _norm(images[1][0].inertia * ratio - parts[1].inertia)
    grown = amount > BOUNDS.different and scaled < BOUNDS.measured_equal * largest  # with the mass
    usual = _usual_mass(skeleton, segments)
    doubts = [abs(math.log(part.mass / usual)) / math.log(3.0) for part in parts]
    tell = partial(_tell_mass, parts, images, grown)
    yield Reading("mass", names, amount, BOUNDS.different, tell, doubts)
    radius = math.sqrt(max(largest, 0.0) / max(part.mass for part in parts))
    scale = max(*(_norm(part.com) for part in parts), radius)
    off = _norm(by @ parts[0].place + images[1][0].com - parts[1].com)
    amount = off / scale if off > BOUNDS.same_centre * skeleton.size else 0.0
    out = [_outside(skeleton, each, part) for each, part in zip(segments, parts, strict=True)]
    doubts = [x / (0.5 * off) if amount else 0.0 for x in out]
    aligned = _norm(by @ parts[0].place - parts[1].place) <= SAME * skeleton.size
    tell = partial(_tell_com, parts, images, aligned)
    if parts[0] is not segments[0].parts[0] and amount:  # its own place may be what differs
        moved = _norm(by @ parts[0].step - parts[1].step)
        within = _norm(images[1][0].com - parts[1].properties.com)
        if moved > within:
            tell = partial(_tell_place, (parts[0].joint, parts[1].joint), moved)
        amount = min(amount, max(moved, within) / scale)
    yield Reading("com", names, amount, BOUNDS.different, tell, doubts)
    if largest > SAME**2 * max(part.mass for part in parts) and not grown:
        explained = inertia_cause(*images[1], BOUNDS.twin_cause_leaves)
        mirrored = explained is not None and explained.id == "mirrored"
        extent = max(_extent(skeleton, each) for each in segments) or skeleton.size
        doubts = [
            abs(math.log10(max(trace / part.mass, 1e-30) / extent**2))
            for trace, part in zip(traces, parts, strict=True)
        ]
        as_heavy = abs(ratio - 1.0) <= BOUNDS.measured_equal
        tell = partial(_tell_inertia, parts, images, gap / largest, as_heavy)
        least = BOUNDS.mirrored_signs if mirrored else BOUNDS.different
        yield Reading("inertia", names, gap / largest, least, tell, doubts)


def _of_drawings(by: Array, parts: tuple[Part, Part]) -> Array:
    """The map of the mass properties of two links.

    Links with the same drawings in their own frames may be the same part on both sides, not its
    mirror image: then the map of these frames, if masses are distributed as it says.
    """
    if not _drawn_alike(parts):
        return by
    one, other = parts
    largest = max(_norm(each.inertia) for each in parts) or 1.0
    longest = max(_norm(each.com) for each in parts) or 1.0

    def unlike(way: Array) -> float:
        image = _turned(one.properties, way)
        apart = _norm(by @ one.place + image.com - other.com) / longest
        return apart + _norm(image.inertia - other.inertia) / largest

    return min(by, parts[1].turn @ parts[0].turn.T, key=unlike)


def _drawn_alike(parts: tuple[Part, Part]) -> bool:
    """True if two links have the same meshes and other shapes at the same places."""
    one, other = (
        [(s.role, s.kind, s.size, s.origin, s.file) for s in part.link.shapes] for part in parts
    )
    return one == other and any(shape.kind == "mesh" for shape in parts[0].link.shapes)


def _images(
    by: Array, parts: tuple[Part, Part]
) -> tuple[tuple[MassProperties, MassProperties], ...]:
    """For each side the image of the other's mass properties, and its own."""
    one, other = (part.properties for part in parts)
    return (_turned(other, by.T), one), (_turned(one, by), other)


def _turned(of: MassProperties, by: Array) -> MassProperties:
    written = None if of.written is None else by @ of.written
    return MassProperties(of.mass, by @ of.com, by @ of.inertia @ by.T, written=written)


def _usual_mass(skeleton: Skeleton, segments: tuple[Segment, Segment]) -> float:
    """The median mass of the robot's bodies but these."""
    masses = [each.mass for each in skeleton.segments if each not in segments and each.mass > 0.0]
    return median(masses) if masses else math.sqrt(segments[0].mass * segments[1].mass)


def _corners(skeleton: Skeleton, segment: Segment) -> Array:
    """The places of what a body carries, relative to its joint's, and its joint's."""
    children = [skeleton.segments[n].place - segment.place for n in segment.children]
    return np.array([np.zeros(3), *children])


def _extent(skeleton: Skeleton, segment: Segment) -> float:
    return _norm(np.ptp(_corners(skeleton, segment), axis=0))


def _outside(skeleton: Skeleton, segment: Segment, part: Part) -> float:
    """How far a centre of mass is outside of the box around a body's joints [m]."""
    points = _corners(skeleton, segment)
    inside = np.clip(part.com, points.min(axis=0), points.max(axis=0))
    return _norm(part.com - inside)


def _inertial_source(part: Part) -> Source:
    return part.link.inertial.source if part.link.inertial else part.link.source


def _tell_missing(parts: tuple[Part, Part], side: int) -> Finding:
    wrong, right = parts[side], parts[1 - side]
    if not wrong.mass > 0.0:
        what = "no inertial" if wrong.link.inertial is None else "no mass"
        message = (
            f"has {what}, and '{right.link.name}', its counterpart, weighs {right.mass:.4g} kg"
        )
    else:
        message = f"weighs {wrong.mass:.4g} kg, and '{right.link.name}', its counterpart, nothing"
    remedy = "write the mass and inertia of both"
    return warning("override", _inertial_source(wrong), message, remedy, wrong.mass, "kg")


def _tell_mass(
    parts: tuple[Part, Part],
    images: tuple[tuple[MassProperties, MassProperties], ...],
    grown: bool,
    side: int,
) -> Finding:
    wrong, right = parts[side], parts[1 - side]
    ratio = wrong.mass / right.mass
    same = "the same density" if grown else "the same inertia"
    cause = mass_cause(*images[side], BOUNDS.measured_equal) or Cause(
        "asymmetry" if not grown else "unit" if max(ratio, 1 / ratio) > 100.0 else "asymmetry",
        f"{ratio:.4g} times as much" + (f", with {same}" if grown else ""),
    )
    return warning(
        cause.id,
        _inertial_source(wrong),
        f"weighs {wrong.mass:.4g} kg and '{right.link.name}', its counterpart, {right.mass:.4g} "
        f"kg: {cause.explanation}",
        "check the masses of both; the inertia that belongs to a mass grows with it",
        ratio,
        "ratio",
        _mass_corrections(wrong, right, grown),
    )


def _mass_corrections(wrong: Part, right: Part, grown: bool) -> tuple[Correction, ...]:
    """The counterpart's mass, and the inertia that goes with it where both are in other units."""
    inertial = wrong.link.inertial
    if inertial is None:
        return ()
    label = inertial.source.element
    scaled = tuple(x * right.mass / wrong.mass for x in inertial.inertia)
    inertia = (Correction(label, "inertia", scaled),) if grown else ()
    return (Correction(label, "mass", (right.mass,)), *inertia)


def _tell_com(
    parts: tuple[Part, Part],
    images: tuple[tuple[MassProperties, MassProperties], ...],
    aligned: bool,
    side: int,
) -> Finding:
    wrong, right = parts[side], parts[1 - side]
    image, own = images[side]
    cause = com_cause(image.com, own.com)
    off = _norm(own.com - image.com)
    return warning(
        cause.id if cause else "asymmetry",
        _inertial_source(wrong),
        f"its centre of mass is {off:.4g} m from where that of '{right.link.name}', its "
        f"counterpart, has it{': ' + cause.explanation if cause else ''} "
        f"({_written_com(wrong)} here, {_written_com(right)} there, each in its link)",
        "check the centres of mass of both",
        off,
        "m",
        _corrections(wrong, "com", wrong.turn.T @ image.com) if aligned else (),
    )


def _corrections(wrong: Part, quantity: str, values: Array) -> tuple[Correction, ...]:
    """The image of the counterpart's numbers, without the last digits, which are rounding."""
    inertial = wrong.link.inertial
    if inertial is None:
        return ()
    least = 1e-12 * float(np.max(np.abs(values)))
    rounded = (float(f"{x:.12g}") if abs(x) > least else 0.0 for x in values.tolist())
    return (Correction(inertial.source.element, quantity, tuple(rounded)),)


def _written_com(part: Part) -> str:
    return shown(part.link.inertial.origin.xyz) if part.link.inertial else "none"


def _tell_inertia(
    parts: tuple[Part, Part],
    images: tuple[tuple[MassProperties, MassProperties], ...],
    amount: float,
    as_heavy: bool,
    side: int,
) -> Finding:
    wrong, right = parts[side], parts[1 - side]
    image, own = images[side]
    cause = inertia_cause(image, own, BOUNDS.twin_cause_leaves)
    axes = np.eye(3) if own.written is None else own.written
    moments = (axes.T @ image.inertia @ axes)[np.triu_indices(3)]
    return (note if amount < BOUNDS.measured_equal else warning)(
        cause.id if cause else "asymmetry",
        _inertial_source(wrong),
        f"its inertia differs by {100 * amount:.3g} % from that of '{right.link.name}', its "
        f"counterpart{': ' + cause.explanation if cause else ''}",
        "check the inertias of both",
        amount,
        "relative",
        _corrections(wrong, "inertia", moments) if as_heavy else (),
    )


def _norm(x: Array) -> float:
    return float(np.linalg.norm(x))


# ---- shapes --------------------------------------------------------------------------------------


def _collisions(size: float, by: Array, parts: tuple[Part, Part]) -> Iterator[Reading]:
    """Collision shapes: there on both sides or on neither, and at places that correspond."""
    names = parts[0].link.name, parts[1].link.name
    shapes = [[s for s in part.link.shapes if s.role == "collision"] for part in parts]
    seen = [any(s.role == "visual" for s in part.link.shapes) for part in parts]
    if bool(shapes[0]) != bool(shapes[1]):
        if all(seen):
            doubts = (BOUNDS.sure * (not shapes[0]), BOUNDS.sure * (not shapes[1]))
            tell: Tell = partial(_tell_no_collision, parts)
            yield Reading("collision", names, 1.0, 0.5, tell, doubts, exact=True)
        return
    # where a mesh's origin is in it is known only of the same mesh that is drawn the same way
    kinds = [
        sorted((x.kind, x.file or "", x.origin.rotation if x.kind == "mesh" else ()) for x in each)
        for each in shapes
    ]
    if not shapes[0] or kinds[0] != kinds[1] or _drawn_alike(parts):
        return
    centres = [
        np.array([part.turn @ np.array(shape.origin.xyz) for shape in each])
        for part, each in zip(parts, shapes, strict=True)
    ]
    far = np.linalg.norm((centres[0] @ by.T)[:, None] - centres[1][None], axis=-1)
    off = max(float(far[pair]) for pair in assigned(far))
    tell = partial(_tell_collision, parts, off)
    yield Reading("shapes", names, off / size, BOUNDS.other_shape, tell)


def _tell_no_collision(parts: tuple[Part, Part], side: int) -> Finding:
    link, other = parts[side].link, parts[1 - side].link
    there = any(shape.role == "collision" for shape in link.shapes)
    own, others = ("collision shapes", "none") if there else ("no collision shape", "has")
    return warning(
        "collision",
        link.source,
        f"has {own}, and '{other.name}', its counterpart, {'has ' if there else ''}{others}",
        "give both their shapes",
    )


def _tell_collision(parts: tuple[Part, Part], off: float, side: int) -> Finding:
    return warning(
        "collision",
        parts[side].link.source,
        f"a collision shape of it is {off:.4g} m from where '{parts[1 - side].link.name}', its "
        "counterpart, has it",
        "check the origins of the shapes of both",
        off,
        "m",
    )


# ---- joints --------------------------------------------------------------------------------------


def _place(
    size: float, by: Array, joints: tuple[Segment, Segment], carriers: tuple[Array, Array]
) -> Reading:
    """The joint's place on the body that carries it."""
    a, b = joints
    off = _norm(by @ (a.place - carriers[0]) - (b.place - carriers[1]))
    names, tell = (a.joint.name, b.joint.name), partial(_tell_place, (a.joint, b.joint), off)
    return Reading("place", names, off / size, BOUNDS.other_place, tell)


def _axis(by: Array, a: Segment, b: Segment) -> Reading:
    """The line of the joint's axis."""
    sine = _norm(np.cross(by @ a.axis, b.axis))
    names, tell = (a.joint.name, b.joint.name), partial(_tell_axis, (a.joint, b.joint), sine)
    return Reading("axis", names, sine, BOUNDS.other_axis, tell)


def _tell_place(joints: tuple[Joint, Joint], off: float, side: int) -> Finding:
    wrong, right = joints[side], joints[1 - side]
    return warning(
        "anchor",
        wrong.source,
        f"is {off:.4g} m from where '{right.name}', its counterpart, has its place "
        f"({shown(wrong.origin.xyz)} here, {shown(right.origin.xyz)} there, each in its parent)",
        "check the origins of both",
        off,
        "m",
    )


def read_heads(twins: list[Twins]) -> Iterator[Reading]:
    """Places of limbs on the body that carries them, which is symmetric if others say so."""
    for each in twins:
        skeleton = each.skeleton
        a, b = (skeleton.segments[head] for head in each.pairs[0])
        carrier = None if each.parent == ROOT else skeleton.segments[each.parent]
        axes = np.eye(3) if carrier is None else carrier.turn
        origin = np.zeros(3) if carrier is None else carrier.place
        if not _is_of(axes, each.map) or np.allclose(each.map, np.eye(3), atol=1e-6):
            continue
        off = each.map @ (a.place - origin) - (b.place - origin)
        near = _norm(off) < BOUNDS.beside * _norm(a.place - b.place)
        if not near:
            continue
        placed = any(
            other is not each and other.placed and other.parent == each.parent
            and np.allclose(other.map, each.map, atol=1e-6)
            for other in twins
        )  # fmt: skip
        if not placed:  # the body's origin may be off the plane or axis
            values, vectors = np.linalg.eigh(each.map + each.map.T)
            fixed = vectors[:, values > 2.0 - 1e-6]
            off = fixed @ (fixed.T @ off)
        yield Reading(
            "place",
            (a.joint.name, b.joint.name),
            _norm(off) / skeleton.size,
            BOUNDS.other_place,
            partial(_tell_place, (a.joint, b.joint), _norm(off)),
        )


def _is_of(axes: Array, by: Array) -> bool:
    """True if a map reflects in, or turns about, coordinate axes."""
    inner = np.abs(axes.T @ by @ axes)
    return bool(np.any(np.isclose(inner, 1.0, atol=1e-6)))


def _joints(placed: bool, a: Segment, b: Segment, sign: float, alike: bool) -> Iterator[Reading]:
    """Limits and other numbers of joints."""
    one, other = a.joint, b.joint
    names = (one.name, other.name)
    pair = (one, other)
    if one.type in ONE_DOF and sign and alike:
        yield from _limits(pair, sign, placed)
    for quantity, value in NUMBERS.items():
        if not alike and quantity in FREE:
            continue
        x, y = value(one), value(other)
        amount = _apart(x, y)
        tell = partial(_tell_number, pair, quantity, (x, y))
        yield Reading(quantity, names, amount, BOUNDS.different, tell)
    if one.type in ONE_DOF and sign and (one.stiffness or other.stiffness):
        tell = partial(_tell_number, pair, "reference", (one.reference, other.reference))
        off = abs(sign * one.reference - other.reference)
        amount = off / max(abs(one.reference), abs(other.reference), 0.1)
        yield Reading("reference", names, amount, BOUNDS.different, tell)


NUMBERS: dict[str, Callable[[Joint], float]] = {
    "effort_limit": lambda joint: max(joint.limits.effort, -joint.limits.least_effort),
    "velocity_limit": lambda joint: max(joint.limits.velocity, -joint.limits.least_velocity),
    "damping": lambda joint: joint.damping,
    "friction": lambda joint: joint.friction,
    "armature": lambda joint: joint.armature,
    "stiffness": lambda joint: joint.stiffness,
    "deadband": lambda joint: joint.deadband,
}
"""Numbers of joints that do not depend on the direction of the axis."""
FREE = ("effort_limit", "velocity_limit", "friction", "damping", "armature")
"""Numbers that a joint which leads has, and its followers may leave out."""


def _apart(x: float, y: float) -> float:
    if x == y:
        return 0.0
    if not math.isfinite(x + y):
        return 1.0
    return abs(x - y) / max(abs(x), abs(y))


def _tell_axis(joints: tuple[Joint, Joint], sine: float, side: int) -> Finding:
    wrong, right = joints[side], joints[1 - side]
    return warning(
        "axis",
        wrong.source,
        f"its axis is {math.degrees(math.asin(min(1.0, sine))):.3g}° off that of '{right.name}', "
        "its counterpart",
        "check the axes of both",
        sine,
        "sine of an angle",
    )


def _tell_number(
    joints: tuple[Joint, Joint], quantity: str, values: tuple[float, float], side: int
) -> Finding:
    wrong, right = joints[side], joints[1 - side]
    unit = UNITS.get(quantity, "")
    return warning(
        "armature" if quantity == "armature" else "asymmetry",
        wrong.source,
        f"its {quantity.replace('_', ' ')} is {shown(values[side])}{unit and ' ' + unit}, that of "
        f"'{right.name}', its counterpart, {shown(values[1 - side])}",
        f"check the {quantity.replace('_', ' ')} of both",
        values[side] if math.isfinite(values[side]) else None,
        unit,
    )


def _limits(joints: tuple[Joint, Joint], sign: float, placed: bool) -> Iterator[Reading]:
    names = joints[0].name, joints[1].name
    limits = joints[0].limits, joints[1].limits
    if any(x.type != "continuous" and math.isinf(x.limits.upper - x.limits.lower) for x in joints):
        return  # where limits are the wrong way round, which reading the file warns of
    amount = _limits_apart(limits, sign)
    if amount > BOUNDS.different:
        spans = [_span(each) for each in limits]
        ratio = max(spans) / min(spans) if min(spans) > 0.0 else math.inf
        if abs(ratio * math.radians(1.0) - 1.0) < BOUNDS.measured_equal:
            doubts = (BOUNDS.sure * (spans[0] > spans[1]), BOUNDS.sure * (spans[1] > spans[0]))
            tell: Tell = partial(_tell_degrees, joints, ratio)
            yield Reading("limits", names, amount, BOUNDS.different, tell, doubts, exact=True)
            return
        if _limits_apart(limits, -sign) < BOUNDS.measured_equal and not _is_even(limits[0]):
            if placed:  # the limits of copies may be those of mirror images
                tell = partial(_tell_sense, joints)
                yield Reading("limits", names, amount, BOUNDS.different, tell)
            return
    yield Reading("limits", names, amount, BOUNDS.different, partial(_tell_limits, joints))


def _limits_apart(limits: tuple[Limits, Limits], sign: float) -> float:
    """Largest difference of corresponding limits, of the larger range."""
    one, other = limits
    ends = (one.lower, one.upper) if sign > 0.0 else (-one.upper, -one.lower)
    there = (other.lower, other.upper)
    if ends == there:
        return 0.0
    pairs = list(zip(ends, there, strict=True))
    if any(math.isinf(x) != math.isinf(y) for x, y in pairs):
        return 1.0
    if not all(map(math.isfinite, (*ends, *there))):
        return max(0.0 if math.isinf(x) else _apart(x, y) for x, y in pairs)
    span = max(ends[1] - ends[0], there[1] - there[0]) or max(map(abs, (*ends, *there)))
    return max(abs(x - y) for x, y in pairs) / span


def _is_even(limits: Limits) -> bool:
    span = abs(limits.upper - limits.lower)
    return abs(limits.lower + limits.upper) < BOUNDS.measured_equal * span


def _span(limits: Limits) -> float:
    """The size of limits."""
    return max((abs(x) for x in (limits.lower, limits.upper) if math.isfinite(x)), default=0.0)


def _tell_degrees(joints: tuple[Joint, Joint], ratio: float, side: int) -> Finding:
    large, small = joints[side], joints[1 - side]
    return warning(
        "degrees",
        large.source,
        f"its limits are {ratio:.4g} times those of '{small.name}', its counterpart",
        "write radians",
        ratio,
        "ratio",
        tuple(
            Correction(large.source.element, name, (math.radians(limit),))
            for name, limit in (("lower", large.limits.lower), ("upper", large.limits.upper))
            if _span(large.limits) > _span(small.limits)
        ),
    )


def _tell_sense(joints: tuple[Joint, Joint], side: int) -> Finding:
    wrong, right = joints[side], joints[1 - side]
    return warning(
        "axis",
        wrong.source,
        f"its limits {span_text(wrong)} are those of '{right.name}', its counterpart, "
        f"{span_text(right)}, for the opposite sign of its axis",
        "check the axes and limits of both",
    )


def _tell_limits(joints: tuple[Joint, Joint], side: int) -> Finding:
    wrong, right = joints[side], joints[1 - side]
    return warning(
        "asymmetry",
        wrong.source,
        f"its limits are {span_text(wrong)}, those of '{right.name}', its counterpart, "
        f"{span_text(right)}",
        "check the limits of both",
    )


def limits_tell(one: Joint, other: Joint, sign: float) -> bool:
    """True if limits that are not even confirm how positions of two joints correspond."""
    limits = one.limits, other.limits
    bounded = all(math.isfinite(x.upper - x.lower) for x in limits)
    return bounded and not _is_even(limits[0]) and _limits_apart(limits, sign) < BOUNDS.different


def span_text(joint: Joint) -> str:
    """The limits of a joint as text."""
    return f"{joint.limits.lower:.4g} to {joint.limits.upper:.4g}"


# ---- loops ---------------------------------------------------------------------------------------


def read_loops(context: CheckContext, twins: Twins, images: dict[int, int]) -> Iterator[Reading]:
    """Ends of loops and springs between bodies that correspond; numbers of springs.

    ``images``: segments → their counterparts.
    """
    skeleton, description = twins.skeleton, context.model.description
    poses = link_poses(description)
    bodies = skeleton.bodies
    own = {one for one, _ in twins.pairs}
    taken: set[str] = set()

    def ends(loop: Tie) -> tuple[int, int]:
        return bodies[loop.predecessor.link], bodies[loop.successor.link]

    def point(loop: Tie, end: int) -> Array:
        anchor = (loop.predecessor, loop.successor)[end]
        pose = poses[anchor.link]
        at = np.array(pose.rotation) @ np.array(anchor.origin.xyz) + np.array(pose.xyz)
        body = bodies[anchor.link]
        return at if body == ROOT else np.asarray(at - skeleton.segments[body].place)

    springs = [each for each in description.springs if isinstance(each, Spring)]
    ties: list[Tie] = [*description.loops, *springs]
    for loop in ties:
        here = ends(loop)
        if not own & set(here):
            continue
        there = tuple(images.get(body, body) for body in here)
        others = [each for each in ties
                  if _kind(each) == _kind(loop) and each is not loop and each.name not in taken
                  and ends(each) in (there, there[::-1])]  # fmt: skip
        if not others:
            continue

        moved = [end for end in (0, 1) if here[end] != there[end] or here[end] in own]

        def far(
            other: Tie,
            loop: Tie = loop,
            there: tuple[int, ...] = there,
            moved: Sequence[int] = moved,
        ) -> float:
            order = (0, 1) if ends(other) == there else (1, 0)
            return max(
                _norm(twins.map @ point(loop, end) - point(other, order[end])) for end in moved
            )

        other = min(others, key=far)
        taken.add(other.name)
        gaps = [distance(each.predecessor, each.successor, poses) for each in (loop, other)]
        off = far(other)
        doubts = [min(gap / off, 1.0) * 2.0 if off else 0.0 for gap in gaps]
        if _kind(loop) in ("rod", "spring"):
            doubts = [0.0, 0.0]
        yield Reading(
            "place",
            (f"loop {loop.name}", f"loop {other.name}"),
            off / skeleton.size,
            BOUNDS.other_place,
            partial(_tell_end, (loop, other), off),
            doubts,
        )
        if isinstance(loop, Spring) and isinstance(other, Spring):
            yield from _springs((loop, other), poses)
            continue
        lengths = [each.length for each in (loop, other)]
        if lengths[0] and lengths[1] and twins.placed:
            amount = _apart(lengths[0], lengths[1])
            tell = partial(_tell_length, (loop, other))
            rods = f"rod {loop.name}", f"rod {other.name}"
            yield Reading("place", rods, amount, BOUNDS.other_place, tell)


def _kind(tie: Tie) -> str:
    return "spring" if isinstance(tie, Spring) else tie.type


def _springs(springs: tuple[Spring, Spring], poses: dict[str, Pose]) -> Iterator[Reading]:
    """Stiffness, damping and length of springs; ``poses`` of links at zero."""
    names = f"spring {springs[0].name}", f"spring {springs[1].name}"
    numbers = {
        "stiffness": [each.stiffness for each in springs],
        "damping": [each.damping for each in springs],
        "length": [rest_length(each, poses) for each in springs],
    }
    for quantity, (one, other) in numbers.items():
        amount = abs(one - other) / (max(abs(one), abs(other)) or 1.0)
        tell = partial(_tell_spring, springs, quantity, (one, other))
        yield Reading(quantity, names, amount, BOUNDS.different, tell)


def _tell_spring(
    springs: tuple[Spring, Spring], quantity: str, values: tuple[float, float], side: int
) -> Finding:
    wrong, right = springs[side], springs[1 - side]
    return warning(
        "asymmetry",
        wrong.source,
        f"its {quantity} is {values[side]:.6g}, that of '{right.name}', its counterpart, "
        f"{values[1 - side]:.6g}",
        f"check the {quantity} of both",
    )


def _tell_end(loops: tuple[Tie, Tie], off: float, side: int) -> Finding:
    wrong, right = loops[side], loops[1 - side]
    ends = " and ".join(
        f"{shown(each.origin.xyz)} in '{each.link}'"
        for each in (wrong.predecessor, wrong.successor)
    )
    there = " and ".join(
        f"{shown(each.origin.xyz)} in '{each.link}'"
        for each in (right.predecessor, right.successor)
    )
    return warning(
        "anchor",
        wrong.source,
        f"an end of it is {off:.4g} m from where '{right.name}', its counterpart, has it ({ends}; "
        f"{there})",
        "check the ends of both",
        off,
        "m",
    )


def _tell_length(loops: tuple[Tie, Tie], side: int) -> Finding:
    wrong, right = loops[side], loops[1 - side]
    return warning(
        "anchor",
        wrong.source,
        f"is {wrong.length:.6g} m long, '{right.name}', its counterpart, {right.length:.6g} m",
        "check the lengths of both",
        wrong.length,
        "m",
    )
