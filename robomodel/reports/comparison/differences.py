"""Differences between two robots, and the export faults that explain them.

A mass, an inertia or a limit that was written wrongly differs from the right one in a recognisable
way: by the factor of a unit, by a parallel-axis term, by signs. These are tried for two files of
    one
robot, and for two links that are mirror images.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from robomodel.arrays import Array
from robomodel.description import Description, Inertial, rotation_from_rpy
from robomodel.errors import NOWHERE, Source
from robomodel.mechanism.graph import WORLD
from robomodel.reports.comparison.match import Match, matrix_of
from robomodel.reports.document import (
    Bullets,
    Cell,
    Document,
    HasDocument,
    Section,
    Table,
    count,
    picked,
)
from robomodel.reports.validation.context import CheckContext, steiner
from robomodel.tolerances import SAME, WRITTEN
from robomodel.vocabulary.schema import rpy_of

UNITS = {
    "mass": "kg", "com": "m", "inertia": "kg m²", "origin": "m", "orientation": "rad",
    "zero": "rad or m", "lower": "rad or m", "upper": "rad or m", "velocity_limit": "rad/s or m/s",
    "effort_limit": "N m or N", "velocity_lower": "rad/s or m/s", "effort_lower": "N m or N",
    "damping": "N m s/rad or N s/m", "friction": "N m or N",
    "armature": "kg m² or kg", "stiffness": "N m/rad or N/m", "reference": "rad or m",
    "deadband": "rad or m", "axis_point": "m", "predecessor": "m",
    "successor": "m", "stall_torque": "N m or N", "no_load_speed": "rad/s or m/s",
    "pitch": "m/rad", "length": "m", "gravity": "m/s²",
}  # fmt: skip
"""Units of quantities; others have none, or their value includes it."""
KINDS = ("robot", "link", "joint", "loop", "coupling", "actuator")
SUMMARISED = 4  # kinds of differences in a summary

Value = float | str | tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class Difference:
    """One quantity of one element, in both files.

    Attributes:
        element: The name of a link, joint, loop or actuator, as in ``a`` if that has it; "robot"
            for differences of the whole.
        kind: "link", "joint", "loop", "actuator" or "robot".
        quantity: An attribute of :mod:`robomodel.model.elements`; "missing" if one file lacks the
            element.
        a: Its value in the first file, in SI units and in the axes of ``a``'s link; None if it has
            none.
        b: Its value in the second file, in the same axes.
        torque: The change of the joint torques of ``a`` if only this is as in ``b``: root mean
            square of the change at random states, over that of the torques, at the coordinate where
            it is largest. Infinite if ``a`` cannot be changed so (missing elements, another
            mobility); zero for limits.
        cause: The fault of an export that would turn ``a`` into ``b``: an id of docs/compare.md,
            empty if the numbers show none.
        explanation: The cause as a phrase.
        source: The element's place in ``b``, or in ``a`` if ``b`` lacks it.
    """

    element: str
    kind: str
    quantity: str
    a: Value
    b: Value
    torque: float
    cause: str = ""
    explanation: str = ""
    source: Source = NOWHERE

    def __str__(self) -> str:
        unit = UNITS.get(self.quantity, "")
        return (
            f"{self.kind} '{self.element}': {self.quantity} {shown(self.a)} and {shown(self.b)}"
            f"{unit and ' ' + unit}{self.explanation and ': ' + self.explanation}"
        )


@dataclass(frozen=True)
class Comparison(HasDocument):
    """The differences between two robots, those that change joint torques most first.

    ``str(comparison)`` is text, :meth:`as_dict` is for JSON, :meth:`html` a page.

    Attributes:
        a: The first robot's file, or its name.
        b: The second one's.
        differences: The differences.
        joints: Pairs of joints (and loops) of different names that are matched.
        tolerance: The relative difference up to which quantities count as equal.
        links: Pairs of links of different names that are matched.
    """

    a: str
    b: str
    differences: tuple[Difference, ...]
    joints: tuple[tuple[str, str], ...]
    tolerance: float
    links: tuple[tuple[str, str], ...] = ()

    @property
    def same(self) -> bool:
        """True if there are no differences."""
        return not self.differences

    @property
    def summary(self) -> str:
        """The number of differences, their kinds, and the largest change of torques."""
        if self.same:
            return "no differences"
        kinds = Counter(
            f"missing {each.kind}s" if each.quantity == "missing" else each.quantity
            for each in self.differences
        )
        parts = [f"{kind} {n}" if n > 1 else kind for kind, n in kinds.most_common(SUMMARISED)]
        more = ", …" if len(kinds) > SUMMARISED else ""
        return f"{count(len(self.differences), 'difference')} ({', '.join(parts)}{more})"

    @cached_property
    def document(self) -> Document:
        """The comparison as text, JSON and a page."""
        a, b = (file.replace("\\", "/").rpartition("/")[2] for file in (self.a, self.b))
        rows: list[list[Cell]] = [
            [each.kind, each.element, each.quantity, shown(each.a), shown(each.b),
             UNITS.get(each.quantity, ""), _share(each.torque), each.explanation]
            for each in self.differences
            if each.quantity != "missing"
        ]  # fmt: skip
        heads = ("a", "b") if a == b else (a, b)
        columns = ["", "element", "quantity", *heads, "unit", "torque", "cause"]
        alone = [
            f"{count(len(names), kind)} only in {file}: {', '.join(names)}"
            for file, side in zip(heads, ("b", "a"), strict=True)
            for kind in KINDS
            if (names := [each.element for each in self.differences if each.kind == kind
                          and each.quantity == "missing" and getattr(each, side) is None])
        ]  # fmt: skip
        renamed = [
            [kind, f"{a} = {b}"]
            for kind, pairs in (("link", self.links), ("joint", self.joints))
            for a, b in pairs
        ]
        return Document(
            f"{self.a} and {self.b}" if a == b else f"{a} and {b}",
            self.summary,
            [
                Section("", [Bullets(alone), Table(columns, rows)]),
                Section("Of different names, and taken for the same", [Table(["", ""], renamed)]),
            ],
            picked(self, "a", "b", "same", "tolerance", "links", "joints", "differences"),
            kind="comparison",
        )


def shown(value: Value) -> str:
    """A value as text."""
    if value is None or isinstance(value, str):
        return value or "-"
    if isinstance(value, tuple):
        return " ".join(f"{each:.6g}" for each in value)
    return "unlimited" if math.isinf(value) else f"{value:.8g}"


def _share(torque: float) -> str:
    if math.isinf(torque):
        return "other robot"
    if torque >= 10.0:
        return f"{torque:.0f} times"
    return f"{100.0 * torque:.{3 if torque >= 1.0 else 2}g} %" if torque else ""


# ---- causes --------------------------------------------------------------------------------------


DIGITS_LEFT = 1e-3  # of a factor or a difference: what a file's digits may leave unexplained
MASSES = {"kg": 1.0, "g": 1e3, "lb": 1.0 / 0.45359237}
LENGTHS = {"m": 1.0, "cm": 1e2, "mm": 1e3, "in": 1.0 / 0.0254, "ft": 1.0 / 0.3048}
INERTIAS = {
    f"{mass} {length}²": kg * m**2
    for (mass, kg), (length, m) in itertools.product(MASSES.items(), LENGTHS.items())
}
FORCES = {"N": 1.0, "kgf": 1.0 / 9.80665, "lbf": 1.0 / 4.4482216152605}
TORQUES = {
    f"{force} {length}": n * m
    for (force, n), (length, m) in itertools.product(FORCES.items(), LENGTHS.items())
}
DEGREE = math.degrees(1.0)
ANGLES = {"rad": 1.0, "degrees": DEGREE}
RATES = {"rad/s": 1.0, "degrees/s": DEGREE, "rpm": 30.0 / math.pi}
PATTERNS = tuple(
    np.array([[1.0, xy, xz], [xy, 1.0, yz], [xz, yz, 1.0]])
    for xy, xz, yz in itertools.product((1.0, -1.0), repeat=3)
)
"""Signs of an inertia tensor's products."""


class Cause(NamedTuple):
    """The fault that explains a difference: an id of docs/compare.md, and a phrase."""

    id: str
    explanation: str


def other_unit(ratio: float, units: Mapping[str, float]) -> Cause | None:
    """The unit taken for the base unit, which is the first, or the reverse, by this ratio."""
    base = next(iter(units))
    for unit, factor in units.items():
        if factor != 1.0:
            if _near(ratio, factor):
                return Cause("unit", f"{ratio:.6g} times as large: {unit}, not {base}")
            if _near(ratio * factor, 1.0):
                return Cause(
                    "unit", f"{ratio:.6g} times as large: {base} converted as if it were {unit}"
                )
    return None


def _near(x: float, y: float) -> bool:
    return abs(x - y) <= DIGITS_LEFT * abs(y)


# ---- masses --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MassProperties:
    """Mass, centre of mass (3,) from the link's origin, and inertia (3, 3) about that centre.

    ``parts``: those of links that are fixed to each other, if there are several. ``ratios``: those
    of a rotor to its joints, and ``axis`` (3,) its axis. ``written`` (3, 3): the axes in which the
    file has the inertia.
    """

    mass: float
    com: Array
    inertia: Array
    parts: Sequence[MassProperties] = ()
    ratios: Sequence[float] = ()
    axis: Array | None = None
    written: Array | None = None

    @classmethod
    def of(cls, inertial: Inertial, turn: Array | None = None) -> MassProperties:
        """Mass properties of an inertial in the axes of its link, turned by ``turn`` if given."""
        turn = np.eye(3) if turn is None else turn
        inner = turn @ np.array(inertial.origin.rotation)
        xx, xy, xz, yy, yz, zz = inertial.inertia
        moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        com = turn @ np.array(inertial.origin.xyz)
        return cls(inertial.mass, com, np.asarray(inner @ moments @ inner.T), written=inner)


def mass_cause(
    right: MassProperties, wrong: MassProperties, within: float = DIGITS_LEFT
) -> Cause | None:
    """The cause of a different mass: its unit, or a mass overwritten without its inertia."""
    if not (right.mass > 0.0 and wrong.mass > 0.0) or abs(wrong.mass / right.mass - 1.0) < SAME:
        return None
    ratio = wrong.mass / right.mass
    unit = other_unit(ratio, MASSES)
    apart = float(np.linalg.norm(wrong.inertia - right.inertia))
    if unit or apart > within * float(np.trace(right.inertia)) or not np.any(right.inertia):
        return unit
    return Cause(
        "override", f"{ratio:.4g} times as large with the same inertia: one was overwritten alone"
    )


def com_cause(right: Array, wrong: Array, within: float = DIGITS_LEFT) -> Cause | None:
    """The cause of a different point: its unit, or the sign of a coordinate."""
    size = float(np.linalg.norm(wrong - right))
    if not right.any() or not size:
        return None
    ratio = float(right @ wrong / (right @ right))
    if ratio > 0.0 and np.linalg.norm(wrong - ratio * right) < DIGITS_LEFT * np.linalg.norm(wrong):
        return other_unit(ratio, LENGTHS)
    for signs in itertools.product((1.0, -1.0), repeat=3):
        if np.linalg.norm(wrong - right * signs) < within * size:
            names = " and ".join(
                name
                for name, sign, x in zip("xyz", signs, right.tolist(), strict=True)
                if sign < 0.0 and abs(x) > within * size
            )
            return Cause("mirrored", f"the sign of {names} is turned round")
    return None


def inertia_cause(
    right: MassProperties, wrong: MassProperties, within: float = DIGITS_LEFT
) -> Cause | None:
    """The cause of a different inertia: the one that explains all but ``within`` of it best."""
    size = float(np.linalg.norm(wrong.inertia - right.inertia))
    if not size:
        return None
    best, least = None, within
    for cause, inertia in _inertias(right, wrong):
        residual = round(float(np.linalg.norm(wrong.inertia - inertia)) / size, 6)
        if residual < least:
            best, least = cause, residual
    return best if best and best.id else None


def _inertias(right: MassProperties, wrong: MassProperties) -> Iterator[tuple[Cause, Array]]:
    """Inertias that faults make from the right one; a cause without id is no fault."""
    inertia = right.inertia
    ratio = float(np.trace(wrong.inertia) / (np.trace(inertia) or 1.0))
    for axes, sign in itertools.product((np.eye(3), right.written, wrong.written), PATTERNS[1:]):
        if axes is not None:
            image = axes @ (sign * (axes.T @ inertia @ axes)) @ axes.T
            yield Cause("mirrored", "signs of products of inertia are turned round"), image
    if unit := other_unit(ratio, INERTIAS):
        yield unit, ratio * inertia
    for n, power in itertools.product(map(abs, right.ratios), (2, -2, 1, -1)):
        explanation = (
            f"{n**power:.4g} times as large: the rotor turns {n:.4g} times as far as its joint"
        )
        yield Cause("rotor-inertia", explanation), n**power * inertia
        if right.axis is not None:
            about = float(right.axis @ inertia @ right.axis)
            spin = (n**power - 1.0) * about * np.outer(right.axis, right.axis)
            yield Cause("rotor-inertia", explanation), inertia + spin
    if right.mass > 0.0:
        denser = wrong.mass / right.mass
        yield Cause("", "denser"), denser * inertia
    for mass in dict.fromkeys((wrong.mass, right.mass)):
        lever = steiner(mass, wrong.com)
        explanation = "about the link's origin, not about the centre of mass"
        yield Cause("composite", explanation), inertia + lever
        explanation = "moved from the link's origin to the centre of mass twice"
        yield Cause("composite", explanation), inertia - lever
    if right.parts:
        parts = np.sum([part.inertia for part in right.parts], axis=0)
        explanation = "the sum of its parts' inertias, not moved to the common centre of mass"
        yield Cause("composite", explanation), parts
    yield _turned(right, wrong)
    yield _with_term(right, wrong)
    explanation = f"{ratio:.4g} times as large, with the same mass: one was overwritten alone"
    yield Cause("override" if _near(wrong.mass, right.mass) else "", explanation), ratio * inertia


def _turned(right: MassProperties, wrong: MassProperties) -> tuple[Cause, Array]:
    """The principal moments of the right inertia, about the axes of the wrong one."""
    moments, (_, axes) = np.linalg.eigvalsh(right.inertia), np.linalg.eigh(wrong.inertia)
    explanation = "the principal moments are the same, but about other axes"
    return Cause("axes", explanation), np.asarray(axes @ np.diag(moments) @ axes.T)


def _with_term(right: MassProperties, wrong: MassProperties) -> tuple[Cause, Array]:
    """The inertia with a parallel-axis term about any axis: principal moments x, x and 0."""
    moments, axes = np.linalg.eigh(wrong.inertia - right.inertia)
    along = int(np.argmin(np.abs(moments)))
    term = float(np.sum(moments) - moments[along]) / 2.0
    arm = math.sqrt(abs(term) / right.mass) if right.mass > 0.0 else math.inf
    explanation = (
        f"about a point {arm:.4g} m beside the centre of mass"
        if term > 0.0
        else f"without a parallel-axis term of {-term:.4g} kg m², its mass at {arm:.4g} m: parts "
        "not moved to the common centre of mass"
    )
    across = np.eye(3) - np.outer(axes[:, along], axes[:, along])
    return Cause("composite", explanation), right.inertia + term * across


# ---- differences ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Causes:
    """The causes of differences between matched robots, ``a`` being right.

    ``physical``: the same robots, by whose inertias causes of these are found.
    """

    match: Match
    physical: Match

    def of(self, difference: Difference) -> Difference:
        """The difference with its cause and its place in the file of ``b``."""
        match difference.kind:
            case "link":
                return self._link(difference)
            case "joint":
                cause = self._joint(difference)
            case "loop":
                cause = self._loop(difference)
            case _:
                cause = self._actuator(difference)
        return self._with(difference, cause, self._source(difference))

    def _with(self, difference: Difference, cause: Cause | None, source: Source) -> Difference:
        fault, explanation = cause or ("", "")
        return replace(difference, cause=fault, explanation=explanation, source=source)

    @cached_property
    def _names(self) -> dict[str, str]:
        """Names of joints and loops in ``b``."""
        pairs = (*self.match.joints, *self.match.loops)
        return {one.name: other.name for one, other in pairs}

    def _source(self, difference: Difference) -> Source:
        name = self._names.get(difference.element, difference.element)
        for robot, element in ((self.match.b, name), (self.match.a, difference.element)):
            d = robot.description
            for each in (*d.joints, *d.loops, *d.transmissions, *d.couplings):
                if each.name == element:
                    return each.source
        return self.match.b.description.source

    # ---- links

    def _link(self, difference: Difference) -> Difference:
        a, b = self.match.a, self.match.b
        bodies = {a.label(body): body for body in self.match.bodies if body != WORLD}
        if difference.quantity == "missing" or difference.element not in bodies:
            return replace(difference, source=_link_source(b.description, difference.element)
                           or _link_source(a.description, difference.element))  # fmt: skip
        body = bodies[difference.element]
        label = b.label(self.match.bodies[body])
        place = _link_source(b.description, label)
        for link, right, wrong in self._lumped(body):
            for quantity in (difference.quantity, "mass", "inertia", "com"):
                if cause := _cause(quantity, right, wrong):
                    explanation = f"{quantity} of its link '{link}' {cause.explanation}"
                    source = _link_source(b.description, link)
                    return self._with(difference, Cause(cause.id, explanation), source)
        for match in (self.physical, self.match):
            if cause := _cause(difference.quantity, *self._whole(match, body)):
                return self._with(difference, cause, place)
        return self._with(difference, None, place)

    def _lumped(self, body: int) -> Iterator[tuple[str, MassProperties, MassProperties]]:
        """Links of the same name that are fixed to one body with others, and that differ."""
        sides = []
        for robot, number in ((self.match.a, body), (self.match.b, self.match.bodies[body])):
            places = robot.tree.places
            sides.append({
                link.name: MassProperties.of(link.inertial)
                for link in robot.description.links
                if link.inertial is not None and places[link.name].body == number
            })  # fmt: skip
        if len(sides[0]) > 1 and len(sides[1]) > 1:
            for name, right in sides[0].items():
                if name in sides[1]:
                    yield name, right, sides[1][name]

    def _whole(self, match: Match, body: int) -> tuple[MassProperties, MassProperties]:
        """Mass properties of a body in both files, in the axes of the link of ``a``."""
        a = match.a
        one = a.model.bodies[body]
        xx, xy, xz, yy, yz, zz = (np.array(one.inertia)[np.triu_indices(3)]).tolist()
        parts = []
        for link in a.description.links:
            place = a.tree.places[link.name]
            if place.body == body and link.inertial is not None:
                pose = matrix_of(place.pose)
                part = MassProperties.of(link.inertial, pose[:3, :3])
                parts.append(replace(part, com=part.com + pose[:3, 3]))
        rotor = self._rotors.get(body)
        right = MassProperties(
            one.mass,
            np.array(one.com),
            np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]),
            parts if len(parts) > 1 else (),
            rotor or (),
            np.array(a.tree.joints[body].axis) if rotor else None,
        )
        return right, MassProperties(*match.in_axes_of_a(body))

    @cached_property
    def _rotors(self) -> dict[int, tuple[float, ...]]:
        """The ratios of each rotor of ``a`` to its joints."""
        rotors = CheckContext(self.match.a.model).rotors
        return {rotor.body: tuple(rotor.ratios.values()) for rotor in rotors}

    # ---- joints, loops and actuators

    def _joint(self, difference: Difference) -> Cause | None:
        a, b, quantity = difference.a, difference.b, difference.quantity
        (kind,) = {x.type for x, _ in self.match.joints if x.name == difference.element} or {""}
        slides = kind == "prismatic"
        if isinstance(a, tuple) and isinstance(b, tuple):
            return self._vectors(difference, np.array(a), np.array(b))
        if not (isinstance(a, float) and isinstance(b, float)) or not math.isfinite(a * b) or not a:
            return None
        units: Mapping[str, float] = {}
        if quantity in ("lower", "upper", "zero", "reference", "deadband"):
            units = LENGTHS if slides else ANGLES
        elif quantity in ("velocity_limit", "velocity_lower"):
            units = LENGTHS if slides else RATES
        elif quantity in ("effort_limit", "effort_lower"):
            units = FORCES if slides else TORQUES
        elif quantity == "armature":
            for n, power in itertools.product(self._gears(difference.element), (2, -2, 1, -1)):
                if _near(b / a, n**power):
                    explanation = f"{b / a:.4g} times as large: its gear has the ratio {n:.4g}"
                    return Cause("rotor-inertia", explanation)
            units = MASSES if slides else INERTIAS
        elif quantity.startswith("ratio"):
            return _ratio_cause(a, b)
        cause = other_unit(b / a, units) if units else None
        return Cause("degrees", cause.explanation) if cause and units is ANGLES else cause

    def _gears(self, joint: str) -> set[float]:
        """Ratios of the actuators that move a joint, in either file."""
        return {
            abs(k)
            for side in (self.match.a, self.match.b)
            for each in side.model.actuators
            for name, k in each.terms
            if name == joint and not _near(abs(k), 1.0)
        }

    def _vectors(self, difference: Difference, a: Array, b: Array) -> Cause | None:
        """The cause for an origin, orientation or axis."""
        if difference.quantity == "axis":
            angle = math.degrees(math.atan2(float(np.linalg.norm(np.cross(a, b))), float(a @ b)))
            if abs(angle - 180.0) < 1e-3:
                return Cause("axis", "it points the other way")
            explanation = f"{angle:.4g}° off: {_named(b)} in place of {_named(a)}"
            return Cause("axis", explanation) if angle > 1.0 else None
        if difference.quantity == "orientation":
            pair = [
                next((x.origin.rotation for x in side.description.joints if x.name == name), None)
                for side, name in (
                    (self.match.a, difference.element),
                    (self.match.b, self._names.get(difference.element, "")),
                )
            ]
            if pair[0] and pair[1]:
                r, p, y = (DEGREE * angle for angle in rpy_of(pair[0]))
                if np.abs(np.subtract(rotation_from_rpy(r, p, y), pair[1])).max() < WRITTEN:
                    return Cause("degrees", "degrees, not rad")
            return None
        return com_cause(a, b)

    def _loop(self, difference: Difference) -> Cause | None:
        a, b = difference.a, difference.b
        if isinstance(a, float) and isinstance(b, float) and a:
            return other_unit(b / a, LENGTHS)
        if not (isinstance(a, tuple) and isinstance(b, tuple)):
            return None
        if difference.quantity == "axis":
            return self._vectors(difference, np.array(a), np.array(b))
        unit = com_cause(np.array(a), np.array(b))
        gap = math.dist(a, b)
        return unit or Cause(
            "open-loop", f"open by {1e3 * gap:.4g} mm at the configuration that closes the first"
        )

    def _actuator(self, difference: Difference) -> Cause | None:
        a, b = difference.a, difference.b
        if isinstance(a, float) and isinstance(b, float) and math.isfinite(a * b) and a and b:
            if difference.quantity.startswith("ratio"):
                return _ratio_cause(a, b)
            if difference.quantity in ("effort_limit", "effort_lower", "stall_torque"):
                return other_unit(b / a, TORQUES)
            if difference.quantity in ("velocity_limit", "velocity_lower", "no_load_speed"):
                return other_unit(b / a, RATES)
        return None


def _ratio_cause(a: float, b: float) -> Cause | None:
    if _near(-b, a):
        return Cause("ratio", "its sign is turned round")
    return Cause("ratio", "it is the reciprocal") if _near(b * a, 1.0) else None


def _named(axis: Array) -> str:
    """A coordinate axis by its letter."""
    k = int(np.argmax(np.abs(axis)))
    if abs(axis[k]) < 1.0 - SAME:
        return f"({' '.join(f'{x:.4g}' for x in axis)})"
    return "-" * bool(axis[k] < 0.0) + "xyz"[k]


def _cause(quantity: str, right: MassProperties, wrong: MassProperties) -> Cause | None:
    match quantity:
        case "mass":
            return mass_cause(right, wrong)
        case "com":
            return com_cause(right.com, wrong.com)
        case _:
            return inertia_cause(right, wrong)


def _link_source(d: Description, name: str) -> Source:
    for link in d.links:
        if link.name == name:
            return link.inertial.source if link.inertial else link.source
    return d.source
