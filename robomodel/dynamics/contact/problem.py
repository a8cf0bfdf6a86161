"""Contact, joint stops and dry friction as one complementarity problem, at an instant or of a step.

With y = G x + b, where G is the inverse inertia at the rows (in a step x are impulses and y the
velocities at its end; at an instant x are forces and y accelerations),

* a contact's three rows (two tangents, normal) obey Signorini's and Coulomb's laws: x is in the
  cone K = {|x_t| <= μ x_n}, and -(y + Γ(y)) in its normal cone at x, with De Saxcé's shift
  Γ(y) = (0, 0, μ |y_t|), which turns Coulomb's law into that of a convex cone;
* a stop's row 0 <= x ⟂ y >= 0;
* a dry-friction row |x| <= bound, x opposing y at its bound where y is not zero;
* the row of a gear's mesh is one of dry friction whose bounds follow the force that it transmits
  (:class:`Meshes`).

The residual of x, free of units and mass ratios, is max |x - P(x - d (y + Γ))| / d with P the
projection on each block's set and d = 1 / trace of its block of G (Acary and Brogliato; Le Lidec
and others, *Contact models in robotics*, 2024). Newton's method is on Alart and Curnier's equations
x = P(x - d y), P being the projection on discs of radius μ a_n.

The laws are functions of scalars of any kind; on arrays they are those of all contacts at once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from robomodel.scalars import Scalar, Vector, div, dot, maximum, minimum, select, sqrt

TINY_SINGLE = 1e-30  # positive in single precision, too
APART = 1e9  # m/s: b of a contact or a stop that does not take part
SLIDING = 1e-7  # share of the largest b above which a contact counts as sliding

Slope: TypeAlias = list[dict[int, Scalar]]
"""Derivatives of a contact's three components, by rows, each by the index of the variable."""


@dataclass(frozen=True, slots=True)
class RowKinds:
    """The kinds of rows, in this order: contacts (three each), stops, dry friction, meshes."""

    contacts: int
    stops: int = 0
    boxes: int = 0
    meshes: int = 0

    @property
    def unmeshed(self) -> int:
        """Number of rows before those of meshes."""
        return 3 * self.contacts + self.stops + self.boxes

    @property
    def rubbing(self) -> int:
        """Number of rows of dry friction and meshes."""
        return self.boxes + self.meshes

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.unmeshed + self.meshes

    @property
    def normals(self) -> list[int]:
        """The rows that keep distances along normals: of contacts, then of stops."""
        first = 3 * self.contacts
        return [*range(2, first, 3), *range(first, first + self.stops)]

    @property
    def blocks(self) -> list[slice]:
        """The rows of each block."""
        first = 3 * self.contacts
        return [
            *(slice(3 * i, 3 * i + 3) for i in range(self.contacts)),
            *(slice(i, i + 1) for i in range(first, self.size)),
        ]


# ---- laws ----------------------------------------------------------------------------------------


def length(x: Scalar, y: Scalar) -> Scalar:
    """√(x² + y²)."""
    return sqrt(x * x + y * y)


def magnitude(x: Scalar) -> Scalar:
    """|x|."""
    return select(x, -x, x)


def cone(x: Vector, friction: Scalar) -> list[Scalar]:
    """The projection of a contact's x on its cone |x_t| <= μ x_n."""
    r, n = length(x[0], x[1]), x[2]
    height = div(friction * r + n, 1.0 + friction * friction)
    height = maximum(height, 0.0)
    outside = minimum(friction * n - r, n)  # negative out of the cone; with μ = 0 it is a ray
    share = div(friction * height, maximum(r, TINY_SINGLE))
    return [
        select(outside, share * x[0], x[0]),
        select(outside, share * x[1], x[1]),
        select(outside, height, n),
    ]


def disc(a: Vector, friction: Scalar) -> tuple[list[Scalar], Slope]:
    """The projection of a contact's a on the disc of radius μ a_n, and its slope."""
    t0, t1, n = a[0], a[1], maximum(a[2], 0.0)
    size = maximum(length(t0, t1), TINY_SINGLE)
    radius = friction * n
    slips = radius - size  # negative where the contact slips
    share = select(slips, div(radius, size), 1.0)
    u0, u1 = div(t0, size), div(t1, size)
    presses = select(-a[2], 1.0, 0.0)
    slides = select(slips, presses, 0.0)
    whole, along, rubs = presses * share, slides * share, slides * friction
    across = -(along * (u0 * u1))
    slope: Slope = [
        {0: whole - along * (u0 * u0), 1: across, 2: rubs * u0},
        {0: across, 1: whole - along * (u1 * u1), 2: rubs * u1},
        {2: presses},
    ]
    return [share * t0, share * t1, n], slope


def half_line(a: Scalar) -> tuple[Scalar, Scalar]:
    """The projection of a stop's a on a >= 0, and its slope."""
    return maximum(a, 0.0), select(-a, 1.0, 0.0)


def interval(a: Scalar, bound: Scalar) -> tuple[Scalar, Scalar]:
    """The projection of a dry friction's a on |a| <= bound, and its slope."""
    return minimum(maximum(a, -bound), bound), select(magnitude(a) - bound, 1.0, 0.0)


def without_gain(matrix: Sequence[Vector], work: Vector, x: Vector, x0: Vector) -> list[Scalar]:
    """Impulses between x, with restitution, and x0, without, that gain no energy.

    Newton's restitution may gain some if several contacts have friction: W(x) = workᵀ x + ½ xᵀ G x
    > 0, with ``work`` the velocities of the rows before. The sets of impulses are convex, so
    x0 + t (x - x0) with the root t in [0, 1] of W = 0 is allowed. Those of meshes are not, which
    :meth:`.Sweeps.without_gain` mends.
    """
    d = [a - b for a, b in zip(x, x0, strict=True)]
    gd = [dot(row, d) for row in matrix]
    g0 = [dot(row, x0) for row in matrix]
    square = 0.5 * dot(d, gd)
    linear = dot(d, work) + dot(d, g0)
    first = dot(x0, work) + 0.5 * dot(x0, g0)
    last = square + linear + first
    inside = linear * linear - 4.0 * (square * first)
    root = div(sqrt(maximum(inside, 0.0)) - linear, 2.0 * maximum(square, TINY_SINGLE))
    share = select(-last, minimum(maximum(root, 0.0), 1.0), 1.0)
    return [a + share * b for a, b in zip(x0, d, strict=True)]


# ---- meshes of gears -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Meshes:
    """Friction in the meshes of gears, with dry friction of the rotors' bearings in the same rows.

    Λ = ``free`` + ``slopes`` x is what the meshes hand to the joints' side, an impulse.
    A rotor that turns forwards loses ``forward`` · Λ where it drives (Λ > 0) and ``back`` · -Λ
    where it is driven: with the efficiencies η these are 1/η_f - 1 and 1 - η_b. So the row's x is
    at least -``bearing`` - U(Λ) and at most ``bearing`` + U(-Λ), with U(Λ) = max(forward Λ,
    -back Λ). These are reached where the rotor turns.

    On arrays: slopes (m, n), the others (m,); or lists of scalars of any kind. Meshes are given by
    their number ``i``; on arrays ``slice(None)`` stands for all of them.
    """

    slopes: Any
    free: Any
    forward: Any
    back: Any
    bearing: Any

    @staticmethod
    def count(rows: RowKinds) -> int:
        """How many numbers it has."""
        return rows.meshes * (rows.size + 4)

    @staticmethod
    def of(rows: RowKinds, numbers: Any) -> Meshes:
        """From these :meth:`numbers`."""
        m, n = rows.meshes, rows.size
        slopes, rest = numbers[: m * n], numbers[m * n :]
        return Meshes(
            [slopes[i * n : (i + 1) * n] for i in range(m)],
            *(rest[i * m : (i + 1) * m] for i in range(4)),
        )

    @staticmethod
    def side_by_side(rows: RowKinds, numbers: Any) -> Meshes:
        """From an array (..., count) of :meth:`numbers`."""
        m, n = rows.meshes, rows.size
        slopes = numbers[..., : m * n].reshape(*numbers.shape[:-1], m, n)
        rest = numbers[..., m * n :].reshape(*numbers.shape[:-1], 4, m)
        return Meshes(slopes, *(rest[..., i, :] for i in range(4)))

    def numbers(self) -> list[Scalar]:
        """All numbers, one after the other."""
        return [x for row in (*self.slopes, *self.rest) for x in row]

    @property
    def rest(self) -> tuple[Any, Any, Any, Any]:
        """All but the slopes."""
        return self.free, self.forward, self.back, self.bearing

    def as_arrays(self) -> Meshes:
        """The same on arrays."""
        return Meshes(*(np.array(each, dtype=float) for each in (self.slopes, *self.rest)))

    def as_lists(self) -> Meshes:
        """The same on lists."""
        return Meshes(*(each.tolist() for each in (self.slopes, *self.rest)))

    def nth(self, i: Any) -> Meshes:
        """One or some of several side by side, on arrays."""
        return Meshes(*(each[i] for each in (self.slopes, *self.rest)))

    def transmitted(self, i: int, x: Vector) -> Scalar:
        """Λ of a mesh."""
        load: Scalar = self.free[i] + dot(self.slopes[i], x)
        return load

    def bounds(self, i: Any, transmitted: Scalar) -> tuple[Scalar, Scalar]:
        """The least and the greatest x of a mesh that transmits Λ."""
        ahead = self.forward[i] * transmitted, -(self.back[i] * transmitted)
        behind = -ahead[0], -ahead[1]
        return -(self.bearing[i] + maximum(*ahead)), self.bearing[i] + maximum(*behind)

    def turning(self, i: Any, transmitted: Scalar) -> tuple[Scalar, Scalar]:
        """The derivatives of both bounds by Λ."""
        mu, nu = self.forward[i], self.back[i]
        return select(transmitted, nu, -mu), select(transmitted, -mu, nu)

    def projected(self, i: Any, a: Scalar, transmitted: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """P of a mesh's a, which is within its bounds at Λ, and the slopes of P by a and by Λ."""
        low, high = self.bounds(i, transmitted)
        down, up = self.turning(i, transmitted)
        below, above = a - low, high - a  # negative where it is beyond
        point = minimum(maximum(a, low), high)
        inside = select(below, 0.0, select(above, 0.0, 1.0))
        return point, inside, select(below, down, select(above, up, 0.0))

    def alone(self, i: int, own: int, x: Vector) -> tuple[Scalar, Scalar]:
        """The bounds of a mesh's x, which stands at ``own``, while all other x stay."""
        slope = self.slopes[i][own]
        return self.eliminated(i, slope, self.transmitted(i, x) - slope * x[own])

    def eliminated(self, i: Any, slope: Scalar, rest: Scalar) -> tuple[Scalar, Scalar]:
        """The bounds of a mesh's x that adds ``slope`` x to the rest of Λ.

        Its own effect on Λ is eliminated: beyond a bound of these the rotor turns with the force
        that its law gives. :data:`JAMS` where no force can turn it (Painlevé's case: 1 <= ``back``
        · slope). Of several solutions the clip to these bounds selects that of the least x.
        """
        mu, nu = self.forward[i], self.back[i]
        pushed, left = div(mu, 1.0 + mu * slope), 1.0 - nu * slope
        held = div(nu, select(left - TINY_SINGLE, 1.0, left))

        def lost(load: Scalar) -> Scalar:
            driven = select(left - TINY_SINGLE, JAMS, -(held * load))
            loss: Scalar = select(load, driven, pushed * load)
            return loss

        shift = slope * self.bearing[i]
        return -(self.bearing[i] + lost(rest - shift)), self.bearing[i] + lost(-(rest + shift))


JAMS = 1e30  # N s: bound of a mesh that nothing turns
JAMMED = 1e20  # N s: larger bounds are those of such a mesh


# ---- problems ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ContactProblem:
    """y = G x + b: G (n, n), b (n,), ``friction`` of the contacts, ``bounds`` of the dry friction.

    ``meshes`` of gears, if there are some: their rows are the last. Over scalars of any kind;
    :class:`.complementarity.ArrayProblem` is the one on arrays.
    """

    rows: RowKinds
    matrix: Any
    b: Any
    friction: Any
    bounds: Any
    meshes: Meshes | None = field(default=None, kw_only=True)

    def y(self, x: Any, rows: range | None = None) -> Any:
        """G x + b, all rows or some."""
        return [dot(self.matrix[i], x) + self.b[i] for i in rows or range(self.rows.size)]

    @functools.cached_property
    def traces(self) -> Any:
        """The trace of each row's own block."""
        result: list[Scalar] = []
        for at in self.rows.blocks:
            trace: Scalar = 0.0
            for i in range(at.start, at.stop):
                trace = trace + self.matrix[i][i]
            result += [trace] * (at.stop - at.start)
        return result

    @functools.cached_property
    def scales(self) -> Any:
        """d = 1 / trace of each row's block."""
        traces = self.traces
        result: list[Scalar] = []
        for at in self.rows.blocks:
            result += [div(1.0, traces[at.start])] * (at.stop - at.start)
        return result

    def parts(self, x: Any) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """x by contacts (three components each), of stops, and of dry friction."""
        first, free = 3 * self.rows.contacts, 3 * self.rows.contacts + self.rows.stops
        boxes = x[free : self.rows.unmeshed]
        return [x[i : i + 3] for i in range(0, first, 3)], x[first:free], boxes

    @property
    def frictions(self) -> Sequence[Any]:
        """Friction of the contacts, in the order of :meth:`parts`."""
        result: Sequence[Any] = self.friction
        return result

    @property
    def limits(self) -> Sequence[Any]:
        """Bounds of dry friction, in the order of :meth:`parts`."""
        result: Sequence[Any] = self.bounds
        return result

    def law(self, i: int, a: Vector) -> tuple[list[Scalar], Slope]:
        """P of a contact's a in Alart and Curnier's equations, and its slope."""
        return disc(a, self.frictions[i])

    def projections(
        self, a: Any
    ) -> tuple[list[tuple[list[Scalar], Slope]], list[tuple[Scalar, Scalar]]]:
        """P of a = x - d y with its slope, for contacts, and for single rows."""
        contacts, stops, boxes = self.parts(a)
        single = [half_line(s) for s in stops]
        single += [interval(s, m) for s, m in zip(boxes, self.limits, strict=True)]
        return [self.law(i, each) for i, each in enumerate(contacts)], single

    def meshed(self, a: Any, x: Any) -> list[tuple[Scalar, Scalar, Scalar]]:
        """For each mesh P of its a, and its slopes by a and by Λ; the bounds are those at x."""
        result: list[tuple[Scalar, Scalar, Scalar]] = []
        if self.meshes is None:
            return result
        for i, each in enumerate(a[self.rows.unmeshed :]):
            result.append(self.meshes.projected(i, each, self.meshes.transmitted(i, x)))
        return result

    def shifted(self, y: Any) -> Any:
        """y + Γ(y)."""
        result = list(y)
        for i, mu in enumerate(self.friction):
            result[3 * i + 2] = y[3 * i + 2] + mu * length(y[3 * i], y[3 * i + 1])
        return result

    def projected(self, x: Any, at: Any = None) -> Any:
        """The projection of x on the blocks' sets; those of meshes are the sets ``at`` (or x)."""
        contacts, stops, boxes = self.parts(x)
        result = [p for a, mu in zip(contacts, self.frictions, strict=True) for p in cone(a, mu)]
        result += [half_line(a)[0] for a in stops]
        result += [interval(a, m)[0] for a, m in zip(boxes, self.limits, strict=True)]
        return result + [point for point, _, _ in self.meshed(x, x if at is None else at)]

    def residual(self, x: Any) -> Any:
        """The largest residual of a block: a velocity, at an instant an acceleration."""
        y = self.shifted(self.y(x))
        moved = [u - d * w for u, d, w in zip(x, self.scales, y, strict=True)]
        worst: Scalar = 0.0
        for u, p, trace in zip(x, self.projected(moved, x), self.traces, strict=True):
            worst = maximum(magnitude(trace * (u - p)), worst)
        return worst
