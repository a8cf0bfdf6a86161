"""MuJoCo's equality constraints as exact loops, couplings and mimics; tendons and springs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from robomodel.description import (
    MAX_TOLERANCE,
    Anchor,
    JointCoupling,
    JointSpring,
    Loop,
    LoopType,
    Mimic,
    PolynomialCoupling,
    Pose,
    Spring,
)
from robomodel.description.poses import snapped, vec
from robomodel.errors import DescriptionError, Source
from robomodel.parsers.mjcf.compiled import CompiledSection, pose
from robomodel.spatial import apply, minus, transpose
from robomodel.tolerances import SAME
from robomodel.vocabulary.frames import turned_to
from robomodel.vocabulary.schema import SPRING, Names, read_arrays

Terms: TypeAlias = tuple[tuple[int, float], ...]
"""Joints and coefficients."""
_Ends: TypeAlias = Sequence[tuple[int, Pose]]  # two bodies, and the tied frame in each

TOLERANCE = "robomodel_tolerance:"
"""Prefix of a ``<custom>`` number with the tolerance of the loop named after it."""

_EQUALITY_KINDS = ("connect", "weld", "joint", "tendon")  # by mjtEq
_WRAP_JOINT, _WRAP_SITE = 1, 3  # mjtWrap
_OBJECT_SITE = 6  # mjtObj


@dataclass(frozen=True, slots=True)
class _Tie:
    """An active equality constraint: its number, kind, name and location."""

    number: int
    kind: str
    name: str
    source: Source


@dataclass(frozen=True, slots=True)
class TendonCurve:
    """L(first) = Σ coefficients[i] · L(second)ⁱ of the lengths of two fixed tendons."""

    name: str
    tendons: tuple[int, int]
    coefficients: tuple[float, ...]
    source: Source


@dataclass
class EqualityConstraints(CompiledSection):
    """The equality constraints of a model.

    ``mimics`` are by the name of the following joint. They, ``loops``, ``couplings`` and ``curves``
    are filled by :meth:`read`.
    """

    loops: list[Loop] = field(default_factory=list)
    couplings: list[JointCoupling | PolynomialCoupling] = field(default_factory=list)
    mimics: dict[str, Mimic] = field(default_factory=dict)
    curves: list[TendonCurve] = field(default_factory=list)

    @cached_property
    def ties(self) -> list[_Tie]:
        """The active equality constraints."""
        if self.elements.disabled("EQUALITY", "CONSTRAINT"):
            return []
        ties, names = [], Names()
        for number in range(self.model.neq):
            if not self.model.eq_active0[number]:
                continue
            kind = int(self.model.eq_type[number])
            tag = _EQUALITY_KINDS[kind] if kind < len(_EQUALITY_KINDS) else "equality"
            name, source = self.elements.called("equality", number, tag)
            if kind >= len(_EQUALITY_KINDS):
                raise DescriptionError("equality constraints of this kind are not read", source)
            ties.append(_Tie(number, tag, names.fresh(name), source))
        return ties

    @cached_property
    def locked(self) -> dict[int, float]:
        """Joints that a constraint on them alone holds, and their positions; read as fixed."""
        held: dict[int, float] = {}
        used: list[int] = []
        for tie in self.ties:
            first, second = self._ends(tie)
            constant, *powers = self._polynomial(tie)
            if tie.kind == "joint":
                if not any(powers):
                    held[first] = self.elements.reference(first) + constant
                    used.append(first)
                else:
                    used += [first, second]
            elif tie.kind == "tendon":
                terms = self.terms(first) or ()
                if len(terms) == 1 and not any(powers):
                    ((joint, coefficient),) = terms
                    length = float(self.model.tendon_length0[first]) + constant
                    held[joint] = length / coefficient
                used += [joint for joint, _ in terms]
                if second >= 0:
                    used += [joint for joint, _ in self.terms(second) or ()]
        return {joint: position for joint, position in held.items() if used.count(joint) == 1}

    @cached_property
    def carriers(self) -> list[int]:
        """For each body the one that it is fixed to, itself if a joint moves it on its parent."""
        model = self.model
        carriers = list(range(model.nbody))
        for body in range(1, model.nbody):
            first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
            if all(joint in self.locked for joint in range(first, first + count)):
                carriers[body] = carriers[int(model.body_parentid[body])]
        return carriers

    def apart(self, ends: _Ends) -> bool:
        """True if a joint moves one of two bodies on the other."""
        return len({self.carriers[body] for body, _ in ends}) > 1

    def _ends(self, tie: _Tie) -> tuple[int, int]:
        return int(self.model.eq_obj1id[tie.number]), int(self.model.eq_obj2id[tie.number])

    def _polynomial(self, tie: _Tie) -> list[float]:
        """The coefficients of ``polycoef``; only the constant if there is no second joint."""
        constant, *powers = (float(x) for x in self.model.eq_data[tie.number, :5])
        return [constant, *powers] if self._ends(tie)[1] >= 0 else [constant, 0.0]

    def read(self) -> None:
        """Read each constraint."""
        read = {"connect": self._loop, "weld": self._loop, "tendon": self._tendons}
        for tie in self.ties:
            read.get(tie.kind, self._couple)(tie)
        self.loops = [self._tolerant(loop) for loop in _hinged(self.loops)]

    def _tolerant(self, loop: Loop) -> Loop:
        """The loop with the tolerance that a ``<custom>`` number gives it."""
        tolerance = self.elements.custom_number(TOLERANCE + loop.name)
        return replace(loop, tolerance=tolerance) if 0.0 <= tolerance <= MAX_TOLERANCE else loop

    def _couple(self, tie: _Tie) -> None:
        """Read y - y0 = Σ aᵢ (x - x0)ⁱ of two joints.

        If it is linear, y becomes a mimic of x, unless it already follows another joint.
        """
        first, second = self._ends(tie)
        constant, slope, *higher = self._polynomial(tie)
        y = self.elements.joints[first]
        offset = self.elements.reference(first) + constant
        if first in self.locked:
            return
        if any(higher):
            x = self.elements.joints[second]
            coefficients = _from_zero([offset, slope, *higher], self.elements.reference(second))
            self.couplings.append(PolynomialCoupling(tie.name, y, x, coefficients, tie.source))
            return
        if not slope:
            self.couplings.append(JointCoupling(tie.name, ((y, 1.0),), offset, tie.source))
            return
        x = self.elements.joints[second]
        offset -= slope * self.elements.reference(second)
        leader = x
        while leader in self.mimics:
            leader = self.mimics[leader].joint
        if y in self.mimics or leader == y:
            terms = (y, 1.0), (x, -slope)
            self.couplings.append(JointCoupling(tie.name, terms, offset, tie.source))
        else:
            self.mimics[y] = Mimic(x, slope, offset)

    def _loop(self, tie: _Tie) -> None:
        """Read ``connect`` and ``weld``, between bodies or sites."""
        model, data = self.model, self.model.eq_data[tie.number]
        ends = self._ends(tie)
        kind: LoopType = "spherical" if tie.kind == "connect" else "fixed"
        if tie.kind == "weld" and not data[10]:
            kind = "spherical"  # with a torquescale of zero the rotation is free
        if int(model.eq_objtype[tie.number]) == _OBJECT_SITE:
            poses = [pose(model.site_pos[site], model.site_quat[site]) for site in ends]
            ends = int(model.site_bodyid[ends[0]]), int(model.site_bodyid[ends[1]])
        elif tie.kind == "connect":
            poses = [Pose(vec(data[:3])), Pose(vec(data[3:6]))]
        else:
            poses = [pose(data[3:6], data[6:10]), Pose(vec(data[:3]))]
        self._between(tie, kind, tuple(zip(ends, poses, strict=True)))

    def _between(self, tie: _Tie, kind: LoopType, ends: _Ends, length: float | None = None) -> None:
        """Add a loop between two bodies, unless no joint separates them or one is a mocap body."""
        if any(self.model.body_mocapid[body] >= 0 for body, _ in ends):
            message = "ties to a body that is moved by hand (mocap); it is left out"
            self.elements.warn_at(message, tie.source, "tie to mocap")
        elif not self.apart(ends):
            message = "no joint separates its ends, so it ties nothing"
            self.elements.warn_at(message, tie.source, "no tie")
        else:
            one, other = (Anchor(self.elements.bodies[body], pose) for body, pose in ends)
            loop = Loop(tie.name, kind, one, other, length=length, source=tie.source)
            self.loops.append(loop)

    # ---- tendons

    def _wraps(self, tendon: int) -> range:
        first, count = int(self.model.tendon_adr[tendon]), int(self.model.tendon_num[tendon])
        return range(first, first + count)

    def terms(self, tendon: int) -> Terms | None:
        """The joints and nonzero coefficients of a fixed tendon; None for a spatial one."""
        terms: dict[int, float] = {}
        for wrap in self._wraps(tendon):
            if int(self.model.wrap_type[wrap]) != _WRAP_JOINT:
                return None
            joint = int(self.model.wrap_objid[wrap])
            terms[joint] = terms.get(joint, 0.0) + float(self.model.wrap_prm[wrap])
        return tuple((joint, coefficient) for joint, coefficient in terms.items() if coefficient)

    def straight(self, tendon: int) -> _Ends | None:
        """The two sites between which a tendon is straight; None for others."""
        wraps, model = self._wraps(tendon), self.model
        if [int(model.wrap_type[wrap]) for wrap in wraps] != [_WRAP_SITE, _WRAP_SITE]:
            return None
        sites = [int(model.wrap_objid[wrap]) for wrap in wraps]
        return [(int(model.site_bodyid[site]), Pose(vec(model.site_pos[site]))) for site in sites]

    def _tendons(self, tie: _Tie) -> None:
        """Read L1 - L1(0) = Σ aᵢ (L2 - L2(0))ⁱ of fixed tendons, or a constant distance."""
        model = self.model
        first, second = self._ends(tie)
        constant, slope, *higher = self._polynomial(tie)
        offset = float(model.tendon_length0[first]) + constant
        first_terms = self.terms(first)
        terms = dict(first_terms or ())
        if second >= 0 and any((slope, *higher)):
            others = self.terms(second)
            if others is None or first_terms is None:
                raise DescriptionError(
                    "relates a spatial tendon to another one, which is not read; a spatial tendon "
                    "can keep its length (one tendon, straight between two sites), and fixed ones "
                    "can be related",
                    tie.source,
                )
            if any(higher) and first_terms and others:
                length = float(model.tendon_length0[second])
                coefficients = _from_zero([offset, slope, *higher], length)
                ends = first, second
                self.curves.append(TendonCurve(tie.name, ends, coefficients, tie.source))
                return
            offset -= slope * float(model.tendon_length0[second])
            for joint, coefficient in others:
                terms[joint] = terms.get(joint, 0.0) - slope * coefficient
        relation = tuple((self.elements.joints[joint], k) for joint, k in terms.items() if k)
        if first_terms is None:
            self._rod(tie, first, offset)
        elif len(terms) == 1 and not terms.keys().isdisjoint(self.locked):
            return
        elif relation:
            self.couplings.append(JointCoupling(tie.name, relation, offset, tie.source))
        else:
            message = "the coefficients of its joints are 0, so it ties nothing"
            self.elements.warn_at(message, tie.source)

    def _rod(self, tie: _Tie, tendon: int, length: float) -> None:
        if (ends := self.straight(tendon)) is None:
            raise DescriptionError(
                "holds the length of a tendon that is not straight between two sites; only those "
                "are read, as rods",
                tie.source,
            )
        if length <= 0.0:
            raise DescriptionError(
                f"holds the length of its tendon at {length:g}; that of a rod is positive; two "
                "points that coincide are tied by <connect>",
                tie.source,
            )
        self._between(tie, "rod", ends, length)


def _from_zero(coefficients: Sequence[float], at: float) -> tuple[float, ...]:
    """The coefficients of Σ aᵢ (x - at)ⁱ as a polynomial of x."""
    from numpy.polynomial import Polynomial

    moved = Polynomial(coefficients).trim()(Polynomial([-at, 1.0]))
    return tuple(moved.coef.tolist())


def _hinged(loops: Sequence[Loop]) -> list[Loop]:
    """The loops, with those merged that together form one mechanical joint.

    Two common points of the same two links form a hinge; a point and a rod may form a universal
    joint.
    """
    joined_loops: list[Loop] = []
    for loop in loops:
        links = loop.predecessor.link, loop.successor.link
        join = {"spherical": _hinge, "rod": _universal}.get(loop.type)
        for n, other in enumerate(joined_loops):
            met = other.type == "spherical" and links == (
                other.predecessor.link,
                other.successor.link,
            )
            if join and met and (joined := join(other, loop)):
                joined_loops[n] = joined
                break
        else:
            joined_loops.append(loop)
    return joined_loops


def _universal(point: Loop, rod: Loop) -> Loop | None:
    """The universal joint of a point and a rod that keeps two directions perpendicular, or None."""
    axes = []
    squares = 0.0
    for end, other in (
        (point.predecessor.origin, rod.predecessor.origin),
        (point.successor.origin, rod.successor.origin),
    ):
        arm = apply(transpose(end.rotation), minus(other.xyz, end.xyz))
        size = math.hypot(*arm)
        if size < SAME:
            return None
        squares += size**2
        axes.append(vec(snapped(x / size) for x in arm))
    if rod.length is None or abs(rod.length**2 - squares) > SAME * squares:
        return None
    return replace(point, type="universal", axis=axes[0], axis2=axes[1])


def _hinge(first: Loop, second: Loop) -> Loop | None:
    """The hinge about the line through the points of two loops; None if these do not match."""
    ends = (first.predecessor.origin, first.successor.origin)
    others = (second.predecessor.origin, second.successor.origin)
    arms = [minus(b.xyz, a.xyz) for a, b in zip(ends, others, strict=True)]
    length = math.hypot(*arms[0])
    if length < SAME or abs(length - math.hypot(*arms[1])) > SAME * length:
        return None
    axes = [
        apply(transpose(end.rotation), (x / length, y / length, z / length))
        for end, (x, y, z) in zip(ends, arms, strict=True)
    ]
    if math.dist(*axes) <= SAME:  # both ends give the same axis
        axis = vec(snapped(a) for a in axes[0])
        return replace(first, type="revolute", axis=axis)
    one, other = map(turned_to, (first.predecessor, first.successor), axes)
    return replace(first, type="revolute", predecessor=one, successor=other)


_BALL = 1  # mjtJoint
_KIND = "spring"  # of the warnings
_BEYOND = "the terms beyond the linear one are"


@dataclass
class Springs(CompiledSection):
    """Springs of a model; warns of forces that no record holds."""

    ties: EqualityConstraints

    def of_joint(self, number: int) -> tuple[float, float]:
        """Stiffness and reference of the spring at a slide, hinge or ball joint."""
        model, elements = self.model, self.elements
        stiffness, source = float(model.jnt_stiffness[number]), elements.joint_source(number)
        if elements.has("jnt_stiffnesspoly", number):
            elements.unapplied(f"of its spring {_BEYOND}", source, _KIND)
        self._warn_of_yield("jnt", number, source)
        if not stiffness:
            return 0.0, 0.0
        if int(model.jnt_type[number]) < _BALL:
            elements.unapplied("the spring of a free joint is", source, _KIND)
            return 0.0, 0.0
        at = int(model.jnt_qposadr[number])
        return stiffness, float(model.qpos_spring[at]) if elements.is_scalar(number) else 0.0

    def _warn_of_yield(self, kind: str, number: int, source: Source) -> None:
        """Warn of a spring whose rest moves along beyond a displacement, as MuJoCo 4 has them."""
        if self.elements.has(f"{kind}_springyield", number):
            at = float(getattr(self.model, f"{kind}_springyield")[number])
            what = f"the yielding of its spring beyond {at:.6g} (springyield) is"
            self.elements.unapplied(what, source, _KIND)

    def of_tendons(self) -> Iterator[Spring | JointSpring]:
        """Tendons with stiffness, damping or friction."""
        model, elements, locked = self.model, self.elements, self.ties.locked
        for tendon in range(model.ntendon):
            numbers = read_arrays(model, "tendon", tendon, SPRING)
            name, source = elements.called("tendon", tendon)
            for poly in ("tendon_stiffnesspoly", "tendon_dampingpoly"):
                if elements.has(poly, tendon):
                    elements.unapplied(f"of its forces {_BEYOND}", source, _KIND)
            self._warn_of_yield("tendon", tendon, source)
            if not any(numbers.values()):
                continue
            low, high = (float(x) for x in model.tendon_lengthspring[tendon])
            if numbers["stiffness"] and low != high:
                what = f"its spring, which is slack from {low:g} to {high:g}, is"
                elements.unapplied(what, source, _KIND)
                numbers["stiffness"] = 0.0
            if (terms := self.ties.terms(tendon)) is not None:
                names = tuple((elements.joints[q], k) for q, k in terms if q not in locked)
                rest = low - sum(k * locked[q] for q, k in terms if q in locked)
                if names:
                    yield JointSpring(name, names, reference=rest, source=source, **numbers)
                continue
            if (ends := self.ties.straight(tendon)) is None:
                what = "a tendon's force that is not straight between two sites is"
                elements.unapplied(what, source, _KIND)
                continue
            if numbers.pop("friction"):
                elements.unapplied("the dry friction of a spatial tendon is", source, _KIND)
            if not any(numbers.values()):
                continue
            if not self.ties.apart(ends):
                message = "no joint separates its ends, so its force moves nothing; it is left out"
                elements.warn_at(message, source, _KIND)
                continue
            one, other = (Anchor(elements.bodies[body], pose) for body, pose in ends)
            length = low if math.isfinite(low) else None
            yield Spring(name, one, other, length=length, source=source, **numbers)
