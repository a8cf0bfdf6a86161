"""Checks of single numbers: units, inertias, centres of mass, shapes, rotors and gears."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array, median
from robomodel.description import IDENTITY, Inertial, Limits, Link, Pose, Shape, Vec3
from robomodel.description.transmissions import SIMPLE, kind_of
from robomodel.errors import Source
from robomodel.reports.comparison.differences import MassProperties
from robomodel.reports.document import Finding, count, note, warning
from robomodel.reports.validation.bounds import BOUNDS
from robomodel.reports.validation.context import CheckContext, GearedRotor
from robomodel.reports.validation.solids import MESHES, Solids
from robomodel.scalars import value_of
from robomodel.spatial import apply, plus
from robomodel.tolerances import SAME, TINY, WRITTEN
from robomodel.vocabulary.schema import rpy_triples

DEGREES = (10, 15, 20, 30, 36, 40, 45, 50, 60, 70, 72, 75, 80, 90, 100, 105, 110, 120, 135, 144,
           150, 160, 165, 180, 270, 360)  # fmt: skip


# ---- units ---------------------------------------------------------------------------------------


def check_units(context: CheckContext) -> Iterator[Finding]:
    """Numbers that look like millimetres, grams or degrees."""
    yield from _degrees(context)
    description = context.model.description
    inertials = [link.inertial for link in description.links if link.inertial is not None]
    for what, reference, elements in (
        ("is", "its parent's frame", description.joints),
        ("its centre of mass is", "the link's frame", inertials),
    ):
        for each in elements:
            length = math.hypot(*each.origin.xyz)
            if length > BOUNDS.joints_apart:
                yield warning(
                    "millimetres",
                    each.source,
                    f"{what} {length:.4g} m from {reference}",
                    f"write metres ({length / 1000:.4g} if these are millimetres)",
                    length,
                    "m",
                )
    for joint in description.joints:
        ends = [end for end in (joint.limits.lower, joint.limits.upper) if math.isfinite(end)]
        if joint.type == "prismatic" and any(
            BOUNDS.joints_apart < abs(end) < BOUNDS.endless_slide for end in ends
        ):
            yield warning(
                "millimetres",
                joint.source,
                f"slides by up to {max(map(abs, ends)):.4g} m",
                "write limits in metres",
                max(map(abs, ends)),
                "m",
            )
    for inertial in inertials:
        if inertial.mass > max(BOUNDS.heaviest_link, BOUNDS.steel * context.size**3):
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
    hinges = [joint for joint in context.model.description.joints
              if joint.type == "revolute" and joint.name not in rotors]  # fmt: skip
    limits = {each.name: max(abs(each.limits.lower), abs(each.limits.upper)) for each in hinges}
    far = [each for each in hinges if BOUNDS.turns[0] < limits[each.name] <= BOUNDS.turns[1]]
    endless = all(_is_round(each.limits) for each in far)
    for joint in context.model.description.joints:
        if joint.type in ("revolute", "screw", "continuous") and joint.name not in rotors:
            other = [limit for name, limit in limits.items() if name != joint.name]
            below = sum(x <= BOUNDS.turns[0] for x in other)
            usual = bool(other) and below >= BOUNDS.hinges_below_turns * len(other)
            values = [("limit", joint.limits.lower), ("limit", joint.limits.upper)]
            values += [("initial position", joint.initial)] if joint.initial is not None else []
            values += [("mimic offset", joint.mimic.offset)] if joint.mimic else []
            for what, value in values:
                whole = value == float(f"{value:.0f}")
                most = BOUNDS.turns[1] if whole else BOUNDS.turns_in_degrees * usual
                if BOUNDS.turns[0] < abs(value) <= most:
                    none = what == "limit" and endless and _is_round(joint.limits)
                    yield (note if none or joint.type == "screw" else warning)(
                        "degrees",
                        joint.source,
                        f"its {what} is {value:.6g} rad, {abs(value) / (2 * math.pi):.3g} turns",
                        f"write radians ({math.radians(value):.6g} if these are degrees)"
                        + (", a continuous joint if it is written for none" if none else ""),
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


def _is_round(limits: Limits) -> bool:
    """True if limits are ±10, 20, 50, 100, …, which stand for none."""
    first = f"{limits.upper:.0e}"
    return limits.lower == -limits.upper == -float(first) and first[0] in "125"


def _turned_in_degrees(pose: Pose, source: Source, what: str) -> Iterator[Finding]:
    """Findings on angles in radians whose numbers are those of right angles in degrees.

    A turn by 90 rad looks like an arbitrary angle, but it is 90 less 28π to the last digit.
    """
    if pose.rotation == IDENTITY:
        return
    angles = itertools.chain.from_iterable(rpy_triples(pose.rotation))
    for name, angle in zip(itertools.cycle(("roll", "pitch", "yaw")), angles, strict=False):
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


# ---- inertias ------------------------------------------------------------------------------------


def check_inertias(context: CheckContext) -> Iterator[Finding]:
    """Impossible moments, zeros, and radii of gyration that do not fit the robot's size.

    Bodies that cannot turn and dummies are not checked; rotors have separate checks.
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
        offset = math.hypot(*inertial.origin.xyz)
        extent = max(context.size, offset, _extent(_points(context, link)))
        if radius > BOUNDS.gyration_size * extent and is_felt(context, body, moments[2]):
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
    if a >= 0.0 and b > 0.0 and c <= BOUNDS.triangle_warned * (a + b):
        excess = c / (a + b) - 1.0
        if excess > WRITTEN:
            yield Finding(
                "warning" if excess > BOUNDS.triangle_noted else "note",
                "triangle",
                inertial.source,
                f"its largest principal moment of inertia exceeds the sum of the others by "
                f"{100 * excess:.3g} % ({a:.4g}, {b:.4g}, {c:.4g} kg m²), which no body's does",
                "check the numbers; MuJoCo and others refuse such a body",
                excess,
                "relative",
            )


def _points_of_mass(context: CheckContext) -> Iterator[Finding]:
    """Bodies, with links fixed to them, that are denser than any material."""
    rotors = {rotor.body for rotor in context.rotors}
    for body, name in enumerate(each.name for each in context.model.bodies):
        mass, inertia = context.placements.together([body])
        largest = float(np.linalg.eigvalsh(inertia)[-1])
        if not 0.0 < mass <= BOUNDS.heaviest_link or body in rotors or not context.turning[body]:
            continue
        if is_dummy(context, mass, largest):
            continue
        radius = math.sqrt(max(largest, 0.0) / mass)
        ball = 0.4 * (3.0 * mass / (4.0 * math.pi * BOUNDS.densest)) ** (2 / 3)  # its r² · 2/5
        links = [context.links[each] for each in context.model.bodies[body].links]
        source = max(links, key=lambda link: link.inertial.mass if link.inertial else 0.0)
        where = source.inertial.source if source.inertial else context.links[name].source
        if radius < BOUNDS.point_radius:
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
    """True if mass and moment are so small that they only satisfy some program."""
    light = mass < BOUNDS.dummy_mass * context.mass
    return light and moment < BOUNDS.dummy_inertia * context.mass * context.size**2


def is_felt(context: CheckContext, body: int, moment: float) -> bool:
    """True if a moment is a considerable share of that of its body and the bodies it carries."""
    _, inertia = context.placements.together(context.beyond[body] or [body])
    return moment > BOUNDS.felt_inertia * (float(np.linalg.eigvalsh(inertia)[-1]) - moment)


# ---- centres of mass -----------------------------------------------------------------------------


def check_centres(context: CheckContext) -> Iterator[Finding]:
    """Centres of mass far outside of the extent that the file gives a body."""
    model = context.model
    points: list[list[Array]] = [[] for _ in model.bodies]
    for link in model.description.links:
        frame = model.frame(link.name)
        if frame.body >= 0:
            points[frame.body] += [_in_body(context, link, at) for at in _points(context, link)]
    offsets = (math.hypot(*(value_of(x) for x in node.offset)) for node in model.nodes)
    longest = max(offsets, default=0.0)
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
            room = max(BOUNDS.centre_outside * extent, BOUNDS.marker_size * context.size)
        else:  # the file may have few points of it besides its joint, as of a foot or a shank
            sizes = 1.0 if extent > 0.0 else BOUNDS.gyration_size
            room = max(longest, extent, sizes * context.size)
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
    """Points of a link in the file: its frame, joints, loop anchors, corners of shapes."""
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
    """The corners of a box around a shape; none for meshes, which are not read, and planes."""
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


# ---- inertias against shapes ---------------------------------------------------------------------
#
# Inertia of a link as a solid of one density: no link is that solid, but the radii of gyration of a
# robot's links are nearly the same multiple of those of their shapes. A link far from the others
# has another inertia, mass or unit.


@dataclass(frozen=True, eq=False)
class ShapedLink:
    """A link, its inertia per mass and that of its shapes as a solid [m²], about their centres."""

    body: int
    inertial: Inertial
    gyration: Array
    solid: Array

    @property
    def ratio(self) -> float:
        """The logarithm of the ratio of radii of gyration."""
        return _ratio(self.gyration, self.solid)


def check_shapes(context: CheckContext) -> Iterator[Finding]:
    """Links whose radii of gyration do not fit their shapes as those of the other links do."""
    candidates = list(_with_shapes(context))
    solids = Solids.of([shapes for _, _, shapes in candidates])
    links = [
        ShapedLink(body, inertial, _gyration(inertial), _gyration(whole))
        for (body, inertial, _), whole in zip(candidates, solids.wholes, strict=True)
        if whole is not None and min(principal(whole)) > 0.0
    ]
    if solids.unread:
        yield note(
            "inertia-shape",
            context.model.description.source,
            f"{count(solids.unread, 'mesh', 'meshes')} not compared with inertias: only "
            f"{MESHES // 2**20} MiB are read",
            "simplify its meshes",
            solids.unread,
            "meshes",
        )
    if solids.pointers:
        yield note(
            "inertia-shape",
            context.model.description.source,
            f"{count(solids.pointers, 'mesh', 'meshes')} not compared with inertias: pointers of "
            "Git LFS instead of the files",
            "fetch them by 'git lfs pull'",
            solids.pointers,
            "meshes",
        )
    if len(links) < BOUNDS.shapes_compared:
        return
    ratios = np.array([each.ratio for each in links])
    weights = np.array([each.inertial.mass for each in links])
    weights = np.minimum(weights, np.mean(weights))  # placeholders count little, bases once
    usual = _median(ratios, weights)
    spread = max(1.4826 * _median(np.abs(ratios - usual), weights), BOUNDS.shape_spread)
    misfit = _median(np.array([min(_by_signs(each).values()) for each in links]), weights)
    for each in links:
        off = each.ratio - usual
        least = max(BOUNDS.shape_deviations * spread, BOUNDS.shell_ratio)
        if abs(off) > least and not -BOUNDS.core_ratio < each.ratio < BOUNDS.shell_ratio:
            moment = principal(each.inertial)[2]
            if off > 0.0 and not is_felt(context, each.body, moment):
                continue
            possible = BOUNDS.matter_ratios[0] <= each.ratio <= BOUNDS.matter_ratios[1]
            yield (note if possible else warning)(
                "inertia-shape",
                each.inertial.source,
                f"its radius of gyration is {math.exp(each.ratio):.3g} times that of its shapes as "
                f"a solid, where most of the robot's {len(links)} links with shapes have "
                f"{math.exp(usual - spread):.3g} to {math.exp(usual + spread):.3g} times"
                f"{_cause(each, usual, max(2.0 * spread, 0.25 * abs(off)))}",
                "check its mass, its inertia and their units",
                math.exp(each.ratio),
                "ratio",
            )
        elif (off := _mirrored(each)) > BOUNDS.signs_telling * misfit:
            yield note(
                "inertia-shape",
                each.inertial.source,
                "the signs of its products of inertia are not those of its shapes: "
                f"{100 * off:.3g} % of its inertia",
                "it may be mirrored, in other axes, or of the other sign convention: ixy is "
                "-∫ x y dm",
                off,
                "relative",
            )


def _median(values: Array, weights: Array) -> float:
    """The weighted median."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, below[-1] / 2.0)])


def _with_shapes(context: CheckContext) -> Iterator[tuple[int, Inertial, list[Shape]]]:
    """Bodies with their inertials and shapes, visual ones if there are any."""
    shapes = [shape for link in context.model.description.links for shape in link.shapes]
    role = "visual" if any(shape.role == "visual" for shape in shapes) else "collision"
    rotors = {rotor.body for rotor in context.rotors}
    for link in context.model.description.links:
        inertial, body = link.inertial, context.model.frame(link.name).body
        if inertial is None or not inertial.mass > 0.0 or body < 0 or body in rotors:
            continue
        moments = principal(inertial)
        if sum(moments) > 0.0 and not is_dummy(context, inertial.mass, moments[2]):
            yield body, inertial, [shape for shape in link.shapes if shape.role == role]


def _gyration(inertial: Inertial) -> Array:
    """The inertia per mass about the centre of mass, in the axes of the link [m²]."""
    return MassProperties.of(inertial).inertia / inertial.mass


def _ratio(one: Array, other: Array) -> float:
    return 0.5 * math.log(float(np.trace(one) / np.trace(other)))


def _cause(each: ShapedLink, usual: float, near: float) -> str:
    """The change that would make the inertia usual, as a phrase."""
    c = np.array(each.inertial.origin.xyz)
    lever = c @ c * np.eye(3) - np.outer(c, c)
    about_com = each.gyration - lever
    if np.linalg.eigvalsh(about_com)[0] > 0.0 and abs(_ratio(about_com, each.solid) - usual) < near:
        return "; it would be usual if it were about the link's origin: move it to the centre"
    if abs(_ratio(each.gyration + lever, each.solid) - usual) < near:
        return "; it would be usual with mass · (distance of the centre of mass)² added"
    factor = math.exp(2.0 * (each.ratio - usual))
    return f"; its inertia is {factor:.3g} times what would be usual, or its mass {1 / factor:.3g}"


def _by_signs(each: ShapedLink) -> dict[tuple[float, float], float]:
    """Signs of the second and third axis → the error of a link's inertia with them, by its trace.

    Relative to the inertia of its shapes, scaled to the same trace.
    """
    trace = float(np.trace(each.gyration))
    usual = each.solid * (trace / float(np.trace(each.solid)))
    return {
        signs: float(np.linalg.norm(_turned(each.gyration, signs) - usual)) / trace
        for signs in ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))
    }


def _turned(inertia: Array, signs: tuple[float, float]) -> Array:
    by = np.diag((1.0, *signs))
    return np.asarray(by @ inertia @ by)


def _mirrored(each: ShapedLink) -> float:
    """The error by signs of products, of the trace, if other signs fit the shapes; else 0."""
    least = BOUNDS.signs_differ * float(np.trace(each.gyration))
    by_signs = _by_signs(each)
    off = by_signs.pop((1.0, 1.0))
    for signs, left in by_signs.items():
        change = float(np.linalg.norm(_turned(each.gyration, signs) - each.gyration))
        if change > least and left < BOUNDS.signs_leave * off:
            return off
    return 0.0


# ---- rotors and gears ----------------------------------------------------------------------------


def check_rotors(context: CheckContext) -> Iterator[Finding]:
    """Ratios against axes and reductions, rotors counted twice, rotors that cannot be rotors."""
    model, rotors = context.model, context.rotors
    body_of = {joint.name: body for body, joint in enumerate(model.joints)}
    senses: list[tuple[GearedRotor, str, float]] = []
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


def _rotor_masses(context: CheckContext, rotor: GearedRotor) -> Iterator[Finding]:
    """A rotor as heavy as its carrier, or with a moment of inertia that its mass cannot have."""
    model = context.model
    parent = model.nodes[rotor.body].parent
    if parent >= 0 and rotor.mass > 0.0 and rotor.mass >= model.bodies[parent].mass:
        yield warning(
            "rotor-mass",
            rotor.source,
            f"the rotor weighs {rotor.mass:.4g} kg, '{model.bodies[parent].name}', which carries "
            f"it, {model.bodies[parent].mass:.4g} kg",
            "the rotor is the spinning part, not the whole motor; mass already in the link is "
            "counted twice",
            rotor.mass,
            "kg",
        )
    if rotor.mass > BOUNDS.weightless_rotor and rotor.inertia > 0.0:
        radius = math.sqrt(rotor.inertia / rotor.mass)
        length = rotor.mass / (BOUNDS.steel * math.pi * (math.sqrt(2.0) * radius) ** 3)  # in radii
        (thinnest, widest), (shortest, longest) = BOUNDS.rotor_radius, BOUNDS.rotor_length
        if not (thinnest <= radius <= widest and shortest <= length <= longest):
            ratio = max((abs(x) for x in rotor.ratios.values()), default=1.0)
            hint = (
                f"; if it is reflected through the gear, write {rotor.inertia / ratio**2:.4g}"
                if ratio > 1.0 and (radius > widest or length < shortest)
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


def _reduction(
    context: CheckContext, rotor: GearedRotor, joint: str, ratio: float
) -> Iterator[Finding]:
    """A transmission of the same joint with another ratio."""
    for each in context.model.description.transmissions:
        if kind_of(each) != SIMPLE or [end.name for end in each.joints] != [joint]:
            continue
        reductions = [end.reduction for end in each.joints]
        reductions += [end.reduction for end in each.actuators]
        stated = [reduction for reduction in reductions if reduction]
        if abs(math.prod(stated)) == BOUNDS.placeholder_ratio:
            continue
        if abs(abs(math.prod(stated)) - abs(ratio)) > WRITTEN * abs(ratio):
            yield warning(
                "ratio",
                each.source,
                f"says a reduction of {math.prod(stated):.6g} for '{joint}', whose rotor "
                f"'{context.model.bodies[rotor.body].name}' turns {ratio:.6g} times as far",
                "mend one of them",
                math.prod(stated),
                "ratio",
            )


def _against_the_others(senses: list[tuple[GearedRotor, str, float]]) -> Iterator[Finding]:
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
    if len(rotors) < BOUNDS.shapes_compared:
        return
    logarithms = np.log([rotor.inertia for rotor in rotors])
    for n, rotor in enumerate(rotors):
        others = np.delete(logarithms, n)
        usual = median(others)
        spread = max(1.4826 * median(np.abs(others - usual)), BOUNDS.rotor_spread)
        ratio = max(map(abs, rotor.ratios.values()))
        off = float(logarithms[n]) - usual
        least = BOUNDS.rotor_deviations * spread
        if ratio <= 1.0 or abs(off) <= least:
            continue
        if abs(abs(off) - 2.0 * math.log(ratio)) < min(least, abs(off)) / 2.0:
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
    """Two rotors on one joint with the same numbers.

    Rotors on what the joint carries may be planets: these have other places there.
    """
    seen: dict[tuple[object, ...], GearedRotor] = {}
    for rotor in context.rotors:
        if len(rotor.ratios) != 1:
            continue
        ((joint, ratio),) = rotor.ratios.items()
        key: tuple[object, ...] = (joint, round(abs(ratio), 9), rotor.inertia, rotor.mass)
        carrier = context.model.nodes[rotor.body].parent
        if carrier >= 0 and context.model.joints[carrier].name == joint:
            key += tuple(np.round(context.placements.com[rotor.body] / context.size, 6))
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
    context: CheckContext, rotor: GearedRotor, body_of: Mapping[str, int]
) -> Iterator[Finding]:
    """A rotor whose reflected inertia is far more or far less than what its joints carry.

    Robots have both: strong gears at light wrists, weak ones at heavy hips. So a rotor is also
    compared with the robot's mass times size², of which a wrong unit makes it too large a part.
    """
    whole = context.mass * context.size**2
    if not (rotor.inertia > 0.0 and whole > 0.0) or max(map(abs, rotor.ratios.values())) < 1.0:
        return
    carried = {joint: context.carried(body_of[joint]) for joint in rotor.ratios}
    # per unit of its inertia: the least that it makes of what a joint carries, and the most
    least = min(k * k / max(carried[joint][1], TINY) for joint, k in rotor.ratios.items())
    most = max(k * k / max(carried[joint][0], TINY) for joint, k in rotor.ratios.items())

    def large(inertia: float) -> bool:
        part = inertia / whole > BOUNDS.rotor_part_large
        return inertia * least > (BOUNDS.rotor_share_large if part else BOUNDS.rotor_share_largest)

    def small(inertia: float) -> bool:
        share, part = inertia * most, inertia / whole
        return share < BOUNDS.rotor_share_small and part < BOUNDS.rotor_part_small

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
        and rotor.inertia * factor * most > BOUNDS.rotor_share_small
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
    """An armature far above, or far below, the inertia that its joint carries."""
    whole = context.mass * context.size**2
    for body, joint in enumerate(context.model.joints):
        value = context.model.nodes[body].armature
        if joint.nv != 1 or not (value > 0.0 and whole > 0.0):
            continue
        low, high = context.carried(body)
        part = value / whole
        if high <= BOUNDS.rotor_part_small * BOUNDS.armature_part_least * whole:
            continue  # a frame for tools, say
        large = value > BOUNDS.rotor_share_large * high and part > 1.0
        small = value < BOUNDS.rotor_share_small * low and part < BOUNDS.armature_part_least
        if not (large or small):
            continue
        most, least = BOUNDS.rotor_share_largest * high, BOUNDS.armature_share_least * low
        beyond = value > most if large else value < least
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
