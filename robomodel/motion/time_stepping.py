"""Time stepping: velocities and impulses of one step, with contact, joint stops and dry friction.

With u the velocities of all joints, H their inertia, and everything evaluated at the middle q_m of
the step, a step of length h is

    u⁺ = G z⁺ - w,   M̂ z⁺ = Gᵀ (H u + h (τ - c(q_m, ū))) - h Σ Jᵀ k (x̄ - x₀) + Rᵀ λ,
    ū = (u + u⁺)/2,  q⁺ = q + h ū, loops closed,

in the tangent coordinates z of linkages (:mod:`robomodel.motion.tangent`). w is the part of u that
is no motion of the linkages at q_m, H-orthogonal to their motions. u and u⁺ contain it with
opposite signs, so K(q_m) ū = 0: the forces of the loops do no work, and ½ zᵀ M z changes by the
work of forces and impulses on ū. Bias forces c are those of the mean velocity. Springs (rows J)
act by their mean force between both ends (the trapezoidal rule, if they have no play), dampers by
u⁺. So free motions keep their energy to second order, springs to rounding, and no stiffness is too
large for h. At the end u⁺ is projected, H-orthogonally, to motions of the linkages at q⁺, which
loses terms of fourth order in h.

R has the rows of contacts, stops, dry friction and the meshes of lossy gears, λ their impulses
(Acary and Brogliato; Moreau). Where a rate with dry friction turns round within a step, it is taken
in two parts (:mod:`robomodel.dynamics.contact.reversal`), unless something collides in it.
Their velocities are those at the end of the step, to second order: the row of a contact that
persists is assumed to turn as in the step before. If contacts close so fast that they collide, q⁺
is q + h u⁺, such that they end at the surface. A contact is included if its gap would close within
the step; it may close, but no further. Remaining penetration is removed from q⁺ by the least
motion, which adds no momentum.

Compliant contacts are springs that act by their mean force, which adds no energy if they begin to
touch or part within the step, and dampers by the velocity at its end. Where a step is
too long for a contact's oscillation, both act by the end of the step; if the contact touches within
it, it rebounds at once, with the share of the velocity that its damping leaves. Sticking contacts
have static friction until they slide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from robomodel.dynamics.contact.dry_friction import DryFriction
from robomodel.dynamics.contact.problem import Meshes, RowKinds, magnitude
from robomodel.dynamics.contact.reversal import STILL
from robomodel.model.model import Model
from robomodel.motion.contact_laws import COLLIDES_WITH, TAKES_PART, contact_laws
from robomodel.motion.contact_rows import GapRows, Memory
from robomodel.motion.plant import Moving
from robomodel.motion.tangent import in_turned_axes
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    added,
    advanced,
    div,
    dot,
    maximum,
    minimum,
    select,
    subtracted,
)

# A block of 3 kg that tumbles, slides to rest or breaks loose moves the same to 1e-10 m with a
# third and three times each of these (CORRECTIONS: half and twice); one that begins 4 mm deep to
# 1e-8 m if TAKES_PART is more than that.
SLOP = 1e-4  # m: contacts with larger gaps are not corrected
LATER = 1.0  # m: the miss that stands for collisions one after the other within a step
CORRECTIONS = 6  # sweeps of the correction of positions

M = TypeVar("M", bound="Middle")


@dataclass(frozen=True, slots=True)
class StepInputs:
    """Inputs of a step: forces on the independent joints, its length h, and arguments.

    ``planes``: normal and offset of the plane at each point, if points have their own.
    ``wrenches``: on links.
    """

    tau: Vector
    h: Scalar
    planes: Vector = ()
    wrenches: Vector = ()


# ---- the terms of a step -------------------------------------------------------------------------


class Effects(Protocol):
    """Rows R and M̂⁻¹ Rᵀ: the velocities that impulses on the rows make."""

    @property
    def delassus(self) -> list[list[Scalar]]:
        """G = R M̂⁻¹ Rᵀ, a new copy."""

    def of(self, impulses: Vector, among: Sequence[int] | None = None) -> list[Scalar]:
        """The change of z by impulses on all rows, or on those ``among`` them."""

    def felt(self, row: Vector) -> list[Scalar]:
        """Another row's velocity by a unit impulse on each row."""


class Inverse(Protocol):
    """M̂⁻¹."""

    def solve(self, right: Vector) -> list[Scalar]:
        """M̂⁻¹ right."""

    def effects(self, rows: Sequence[Vector]) -> Effects:
        """The effects of impulses on rows."""


@dataclass(frozen=True)
class FactorsEffects:
    """:class:`Effects` by factors of M̂: rows reduced by L⁻ᵀ, and these weighted by Λ⁻¹."""

    factors: Factorization
    reduced: list[list[Scalar]]
    weighted: list[list[Scalar]]

    @property
    def delassus(self) -> list[list[Scalar]]:
        """G = R M̂⁻¹ Rᵀ."""
        n = len(self.reduced)
        result: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1):
                result[i][j] = result[j][i] = dot(self.reduced[i], self.weighted[j])
        return result

    def of(self, impulses: Vector, among: Sequence[int] | None = None) -> list[Scalar]:
        """The change of z by impulses."""
        rows = self.weighted if among is None else [self.weighted[n] for n in among]
        return self.factors.back(combined(rows, impulses))

    def felt(self, row: Vector) -> list[Scalar]:
        """Another row's velocity by a unit impulse on each row."""
        reduced = self.factors.reduce(row)
        return [dot(reduced, each) for each in self.weighted]


@dataclass(frozen=True)
class FactorsInverse:
    """:class:`Inverse` by factors of M̂, within a program."""

    factors: Factorization

    def solve(self, right: Vector) -> list[Scalar]:
        """M̂⁻¹ right."""
        return self.factors.solve(right)

    def effects(self, rows: Sequence[Vector]) -> FactorsEffects:
        """The effects of impulses on rows."""
        reduced = [self.factors.reduce(row) for row in rows]
        return FactorsEffects(self.factors, reduced, [self.factors.weighted(r) for r in reduced])


@dataclass(frozen=True, slots=True)
class MeshTerms:
    """A lossy mesh in a step: what it transmits is ``free`` - ``momentum`` z⁺ + its own impulse.

    ``row``: of the rotor's rate. ``momentum``: row of its momentum about its axis, and of what its
    bearing's damper takes. ``forward``, ``back``: as of :class:`.Meshes`. ``bearing``: its dry
    friction. ``stops``: those that stop the rotor's joint, each with its side.
    """

    row: list[Scalar]
    momentum: list[Scalar]
    free: Scalar
    forward: Scalar
    back: Scalar
    bearing: DryFriction
    stops: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Middle:
    """A step at its middle, before contact: M̂ z⁺ = ``right`` + Rᵀ λ, see the module's formulas.

    ``start``: z at the beginning, in the axes there; ``displacement`` of these until the middle.
    ``expected``: the mean velocity, ``a``: z of u, in the axes of the middle. ``inverse`` of M̂;
    ``rubbing``: rows of dry friction; ``meshes``: those of lossy gears.
    """

    model: Model
    h: Scalar
    start: Vector
    displacement: list[Scalar]
    expected: list[Scalar]
    a: list[Scalar]
    right: list[Scalar]
    inverse: Inverse
    rubbing: list[list[Scalar]]
    meshes: tuple[MeshTerms, ...] = field(default=(), kw_only=True)

    def axes_of_middle(self, v: Vector) -> list[Scalar]:
        """Velocities in the axes of the middle, from those of the beginning."""
        return in_turned_axes(self.model, v, self.displacement)

    def axes_of_beginning(self, v: Vector) -> list[Scalar]:
        """Velocities in the axes of the beginning, from those of the middle."""
        return in_turned_axes(self.model, v, self.displacement, back=True)


@dataclass(frozen=True)
class Assembly(Generic[M]):
    """The contact problem of a step: all rows, G, b and what their laws say.

    ``free``: z⁺ without impulses. ``slow``: velocities of the rows that keep distances, besides
    those by z; ``collides``: negative if such a row collides. ``plain``: b without restitution;
    ``work``: velocities of the rows before the step, over which a collision does its work;
    ``size`` of the velocities in b. ``before``: rates of dry friction and meshes at the beginning,
    zero where they stick; ``turned``: what the turning of their rows adds to them by the end.
    """

    middle: M
    gaps: list[GapRows]
    rows: list[list[Scalar]]
    effects: Effects
    delassus: list[list[Scalar]]
    free: list[Scalar]
    slow: list[Scalar]
    collides: list[Scalar]
    b: list[Scalar]
    plain: list[Scalar]
    friction: list[Scalar]
    bounds: list[Scalar]
    work: list[Scalar]
    size: Scalar
    before: list[Scalar]
    turned: list[Scalar]
    meshes: Meshes | None = None

    @property
    def kinds(self) -> RowKinds:
        """The kinds of rows."""
        contacts, boxes, meshes = len(self.friction), len(self.bounds), len(self.middle.meshes)
        return RowKinds(contacts, len(self.gaps) - contacts, boxes, meshes)

    @property
    def normals(self) -> list[int]:
        """The rows that keep distances along normals: of contacts, then of stops."""
        return self.kinds.normals

    def after(self, impulses: Vector) -> list[Scalar]:
        """z⁺."""
        return added(self.free, self.effects.of(impulses)) if impulses else list(self.free)

    def in_world(self, impulses: Vector) -> list[Scalar]:
        """Impulses of the contacts in world axes."""
        contacts = [gap.axes for gap in self.gaps if gap.axes]
        each = [combined(axes, impulses[3 * n :][:3]) for n, axes in enumerate(contacts)]
        return [x for impulse in each for x in impulse]


def assemble(
    middle: M, gaps: list[GapRows], memory: Memory, rubbing: Sequence[DryFriction]
) -> Assembly[M]:
    """The contact problem at the middle of a step."""
    rows = [row for each in gaps for row in each.rows] + middle.rubbing
    rows += [each.row for each in middle.meshes]
    effects = middle.inverse.effects(rows)
    delassus = effects.delassus
    free = middle.inverse.solve(middle.right)
    laws = contact_laws(middle.model, middle.h, middle.a, free, memory, gaps, delassus)
    b, plain, size = list(laws.b), list(laws.plain), laws.size
    work = [dot(row, middle.a) for row in rows]
    before, turned = _rates(middle, memory, work[len(b) :], len(b))
    for line, turn in zip(rows[len(b) :], turned, strict=True):
        b.append(dot(line, free) + turn)
        plain.append(b[-1])
        size = maximum(magnitude(b[-1]), size)
    before = [select(magnitude(x) - STILL * size, 0.0, x) for x in before]
    laws_of_friction = [*rubbing, *(each.bearing for each in middle.meshes)]
    change = subtracted(middle.expected, middle.a)
    forces = [
        each.bound(rate, dot(row, change) if each.law.dry else 0.0)
        for each, rate, row in zip(laws_of_friction, before, rows[len(laws.b) :], strict=True)
    ]
    bounds = [middle.h * force for force in forces[: len(rubbing)]]
    meshes = _meshes(
        middle, effects, free, len(rows), 3 * len(laws.friction), forces[len(rubbing) :]
    )
    return Assembly(
        middle, gaps, rows, effects, delassus, free, laws.slow, laws.collides, b, plain,
        laws.friction, bounds, work, size, before, turned, meshes,
    )  # fmt: skip


def _rates(
    middle: Middle, memory: Memory, now: Vector, first: int
) -> tuple[list[Scalar], list[Scalar]]:
    """Rates of dry friction at the beginning of the step, and by how much rows turn them on.

    ``now``: the rates by the rows at the middle, which turn as they did since the step before. A
    row that has stuck then is at rest.
    """
    begun = -memory.length[0]  # negative if there was a step before
    since = div(middle.h, middle.h + memory.length[0])
    before, turned = list[Scalar](), list[Scalar]()
    for rate, last, end in zip(now, memory.rates[first:], memory.ends, strict=True):
        turn = select(begun, since * (rate - last), 0.0)
        stuck = select(begun, magnitude(end) - STILL * magnitude(rate), 1.0)
        before.append(select(stuck, 0.0, rate - turn))
        turned.append(turn)
    return before, turned


def _meshes(
    middle: Middle, effects: Effects, free: Vector, rows: int, stops: int, bearings: Vector
) -> Meshes | None:
    """The transmission of meshes, by impulses on all rows; those of stops begin at ``stops``.

    ``bearings``: forces of their dry friction.
    """
    if not middle.meshes:
        return None
    h, slopes = middle.h, []
    for each, own in zip(middle.meshes, range(rows - len(middle.meshes), rows), strict=True):
        slope = [-x for x in effects.felt(each.momentum)]
        slope[own] = slope[own] + 1.0
        for stop, side in each.stops:
            slope[stops + stop] = slope[stops + stop] + side
        slopes.append(slope)
    return Meshes(
        slopes,
        [each.free - dot(each.momentum, free) for each in middle.meshes],
        [each.forward for each in middle.meshes],
        [each.back for each in middle.meshes],
        [h * force for force in bearings],
    )


# ---- a step --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Landing:
    """The end of a step: the state, v of the independent joints, and checks of linkages."""

    state: Moving
    v: Vector
    checks: Vector


class There(Protocol):
    """The end of a step's displacement, before the correction of positions."""

    def gaps(self) -> Iterator[Scalar | None]:
        """The gap of each contact there, in their order; None: what its row says."""

    def stops(self) -> list[Scalar]:
        """The distances of stopped joints from their limits there."""

    def ended(self, after: Vector, correction: Vector) -> Landing:
        """The end of a step with velocities ``after``, moved by a correction if there is one."""


class Solved(NamedTuple):
    """Impulses, slips and the residual of a contact problem, and the impulses that act early.

    The last ones are of a step in two parts (:meth:`.Reversal.joined`); empty: none.
    """

    impulses: list[Scalar]
    slips: list[Scalar]
    residual: Scalar
    early: list[Scalar]


class StepTerms(Protocol[M]):
    """How the terms of a step are computed: within a program, or by programs on numbers."""

    @property
    def memory(self) -> Memory:
        """The data of the step before."""

    @property
    def passes(self) -> int:
        """Computations of a step: if G varies, a second one about a better middle."""

    def assembled(self, mean: Vector | None) -> Assembly[M]:
        """The contact problem at the middle that a mean velocity predicts.

        In the axes of the beginning; by default from the acceleration in the step before.
        """

    def solved(
        self, terms: Assembly[M], impulses: list[Scalar], slips: list[Scalar], last: bool
    ) -> Solved:
        """The solution of the problem, from that of an earlier one; ``last``: of the step."""

    def moved(self, middle: M, travel: Vector) -> There:
        """The end of a displacement, which is in the axes of the beginning."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[M]):
    """Results of a step: its end, memory, and the contact problem with its impulses.

    ``mean``: the mean velocity, in the axes of the beginning. ``miss``: distance of the contacts
    that act from where their rows end, see :func:`corrected`; ``residual`` of the contact problem.
    """

    end: Landing
    memory: Memory
    terms: Assembly[M]
    impulses: list[Scalar]
    mean: list[Scalar]
    miss: Scalar
    residual: Scalar


def mean_velocity(terms: Assembly[M], solved: Solved) -> list[Scalar]:
    """The mean velocity of a step with these impulses, in the axes of its beginning."""
    middle = terms.middle
    mean = [0.5 * (x + y) for x, y in zip(middle.a, terms.after(solved.impulses), strict=True)]
    if solved.early:
        mean = added(mean, terms.effects.of(solved.early))
    return middle.axes_of_beginning(mean)


def strikes(impulses: Vector, collides: Vector) -> Scalar:
    """Negative if a row that keeps a distance collides."""
    struck: Scalar = 0.0
    for impulse, each in zip(impulses, collides, strict=True):
        struck = minimum(struck, select(-impulse, minimum(each, 0.0), 0.0))
    return struck


def in_sequence(impulses: Vector, gaps: Sequence[GapRows], collides: Vector) -> Scalar:
    """:data:`LATER` if collisions of others close an open contact that rebounds, else 0.

    Its own collision comes after these, not at once.
    """
    result: Scalar = 0.0
    for impulse, gap, own in zip(impulses, gaps, collides, strict=True):
        if gap.law.restitution:
            later = minimum(impulse, minimum(gap.gap - COLLIDES_WITH, own))  # positive where it is
            result = maximum(select(-later, LATER, 0.0), result)
    return result


def travelled(middle: Middle, after: Vector, mean: Vector, struck: Scalar) -> list[Scalar]:
    """The displacement of a step, in the axes of its beginning."""
    beyond = middle.axes_of_beginning(after)
    return [middle.h * select(struck, x, y) for x, y in zip(beyond, mean, strict=True)]


def corrected(
    terms: Assembly[M], there: There, travel: Vector, impulses: Vector
) -> tuple[list[Scalar], Scalar]:
    """The least motion in M̂'s norm that removes penetration, by the step's own rows.

    Contacts are corrected by at most :data:`TAKES_PART` at once, so that their rows keep their
    directions. Second, the distance of contacts that act or end in the ground from where their rows
    end: the rows turn.
    """
    normals, gaps, k = list[int](), list[Scalar](), len(terms.friction)
    miss: Scalar = 0.0
    moved = terms.middle.axes_of_middle(travel)
    for n, (gap, now) in enumerate(zip(terms.gaps[:k], there.gaps(), strict=True)):
        ends = gap.gap + dot(gap.rows[2], moved)
        at = ends if now is None else now
        off = ends - at
        acts = minimum(at, -impulses[3 * n + 2])  # negative if it does
        miss = maximum(select(acts, magnitude(off), 0.0), miss)
        if gap.law.stiffness is None:
            gaps.append(maximum(at, -TAKES_PART))
            normals.append(3 * n + 2)
    gaps += there.stops()
    normals += terms.normals[k:]
    if not gaps:
        return [], miss
    matrix = [[terms.delassus[n][m] for m in normals] for n in normals]
    change = terms.effects.of(corrections(matrix, gaps), normals)
    return terms.middle.axes_of_beginning(change), miss


def corrections(matrix: Sequence[Vector], gaps: Vector) -> list[Scalar]:
    """Impulses of rows, with ``matrix`` their block of G, that remove penetrations."""
    y: list[Scalar] = [0.0] * len(gaps)
    for _ in range(CORRECTIONS):
        for i, (row, gap) in enumerate(zip(matrix, gaps, strict=True)):
            y[i] = maximum(y[i] - div(gap + dot(row, y), row[i]), 0.0)
            y[i] = select(SLOP - gap, 0.0, y[i])
    return y


def remembered(
    terms: Assembly[M], impulses: Vector, slips: Vector, after: Vector, mean: Vector, struck: Scalar
) -> Memory:
    """The data of a step for the next one."""
    middle = terms.middle
    first = len(terms.slow)
    rates = [dot(row, after) for row in terms.rows]
    ends = added(rates[first:], terms.turned)
    rates[:first] = added(rates[:first], terms.slow)
    per = div(2.0, middle.h)
    change = [select(struck, 0.0, per * (x - y)) for x, y in zip(mean, middle.start, strict=True)]
    return Memory(list(impulses), list(slips), rates, ends, change, [middle.h])


def combined(rows: Sequence[Vector], x: Vector) -> list[Scalar]:
    """Σ x · row."""
    total: list[Scalar] = [0.0] * len(rows[0])
    for weight, row in zip(x, rows, strict=True):
        total = advanced(total, weight, row)
    return total
