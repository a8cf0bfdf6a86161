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

R has the rows of contacts, stops and dry friction, λ their impulses (Acary and Brogliato; Moreau).
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

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from robomodel.dynamics.baselines import projected, spanning_tree
from robomodel.dynamics.contact.gauss_seidel import Sweeps, basis, wedged, within_reach
from robomodel.dynamics.contact.problem import APART, RowKinds
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.frames import joint_forces
from robomodel.dynamics.kinematics.state import Configuration, State
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.passive import Element, elements, is_absent
from robomodel.dynamics.recursions.rnea import bias_force, rnea
from robomodel.mechanism.graph import WORLD
from robomodel.model.model import Model
from robomodel.motion import tangent
from robomodel.motion.collision import Proximity, RoundPair, round_contacts
from robomodel.motion.ground import ContactLaw, GroundPoint
from robomodel.motion.implicit import Way, press, press_springs
from robomodel.motion.limits import Acting
from robomodel.motion.tangent import (
    axes_rates,
    constraint_of,
    displaced,
    in_tangents,
    in_turned_axes,
    linkages,
)
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
    sqrt,
    subtracted,
)
from robomodel.spatial import ZERO, Vec, Wrench, apply, inner, minus, scale, transpose

# A block of 3 kg that tumbles, slides to rest or breaks loose moves the same to 1e-10 m with a
# third and three times each of these (CORRECTIONS: half and twice); one that begins 4 mm deep to
# 1e-8 m if TAKES_PART is more than that.
TAKES_PART = 0.01  # m (rad at joints): contacts predicted to end farther apart are left out
SLOP = 1e-4  # m: contacts with larger gaps are not corrected
COLLIDES_WITH = 1e-5  # m: contacts with smaller gaps collide together with others
LATER = 1.0  # m: the miss that stands for collisions one after the other within a step
CORRECTIONS = 6  # sweeps of the correction of positions
STICKING = 1e-4  # m/s: slower contacts have static friction
CLOSING = 2  # steps that close loops at the middle; one more at the end
CAREFUL = 8  # Newton steps instead, near change points
# rad²: square of the angle by which a compliant contact swings in a step, up to which the step
# resolves it: it rebounds with 0.97 (undamped) and 0.16 (critically damped, 0.135 right) then
RESOLVED = 0.25
# with z the damping ratio, exp(-2 z arccos(z) / √(1 - z²)) of the velocity is left when the force
# of a spring and a damper is zero again: (1 + a z)/(1 + b z + c z² + d z³), off by at most 3.2e-5
REBOUND = (0.40550012, math.pi + 0.40550012, 4.2151172, 4.0 * 0.40550012)
IMMOVABLE = 1e-20  # 1/kg: trace of a contact's block of G up to which impulses cannot move it
PLANE = 4  # numbers of a plane: normal, offset


@dataclass(frozen=True)
class Setting:
    """All that a step depends on besides its state and its arguments.

    ``points`` touch a horizontal plane at ``height`` (None: each has its own plane, an argument),
    by ``laws``. ``rounds`` are spheres and capsules of links that touch each other. Wrenches act on
    ``links``. ``bodies``: bodies whose contacts, those of points included, are not in the step's
    program, but data (:mod:`robomodel.motion.contact_steps`); None: the program has all contacts.
    """

    acting: Acting
    points: tuple[GroundPoint, ...] = ()
    laws: tuple[ContactLaw, ...] = ()
    height: float | None = 0.0
    rounds: tuple[RoundPair, ...] = ()
    links: tuple[str, ...] = ()
    bodies: tuple[int, ...] | None = None
    stop_restitution: float = 0.0
    careful: bool = False

    @property
    def contacts(self) -> int:
        """Number of contacts in the step's program."""
        if self.bodies is not None:
            return 0
        return len(self.points) + sum(pair.count for pair in self.rounds)

    @property
    def rebounds(self) -> bool:
        """Whether contacts or stops may rebound at once."""
        rebounds = any(law.rebounds for law in self.laws)
        return rebounds or any(x.restitution for x in self.rounds) or self.stop_restitution > 0.0

    @property
    def arguments(self) -> tuple[int, int]:
        """Sizes of the arguments of a step: planes, wrenches."""
        planes = PLANE * len(self.points) if self.height is None and self.contacts else 0
        return planes, 6 * len(self.links)

    def closed(self, here: Model, q: Vector, more: int = 0) -> list[Scalar]:
        """q with loops closed, by ``more`` steps than at the middle."""
        times = CAREFUL if self.careful else CLOSING
        return tangent.closed(here, q, times + more, careful=self.careful)

    def rows(self, model: Model) -> RowKinds:
        """The rows of a step: each stopped joint has one for each limit."""
        acting = self.acting
        return RowKinds(self.contacts, len(acting.bounds(model)), len(acting.rubbing(model)))

    def memory(self, model: Model) -> int:
        """Numbers for the next step: impulses, slips, row velocities, ż, the step's length."""
        rows = self.rows(model)
        return rows.size + rows.contacts + 3 * rows.contacts + rows.stops + model.nv + 1


@dataclass(frozen=True, slots=True)
class Memory:
    """Data of a step for the next one, besides its state.

    ``rates``: velocities of the rows that keep distances; ``acceleration``: the mean ż; ``length``:
    the step's.
    """

    impulses: list[Scalar]
    slips: list[Scalar]
    rates: list[Scalar]
    acceleration: list[Scalar]
    length: list[Scalar]

    @staticmethod
    def of(setting: Setting, model: Model, numbers: Vector) -> Memory:
        """The memory with these :meth:`numbers`."""
        rows = setting.rows(model)
        kept = 3 * rows.contacts + rows.stops
        ends = [0]
        for size in (rows.size, rows.contacts, kept, model.nv, 1):
            ends.append(ends[-1] + size)
        return Memory(*(list(numbers[a:b]) for a, b in itertools.pairwise(ends)))

    def numbers(self) -> list[Scalar]:
        """All numbers, one after the other."""
        return [*self.impulses, *self.slips, *self.rates, *self.acceleration, *self.length]


@dataclass(frozen=True, slots=True)
class Moving:
    """A state in tangent coordinates: q, z, the bases of the linkages."""

    q: Vector
    z: Vector
    bases: Vector


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


@dataclass(frozen=True, slots=True)
class GapRows:
    """Rows that keep a distance: two tangents and the normal of a contact, one row of a stop.

    ``leaving``: their velocities by w; ``surface``: those of the touched surface. ``gap`` is that
    at the beginning of the step. ``axes``: tangents and normal of a contact; stops have none, and
    no friction. ``jumps``: the contact may jump from one place to another, so that its row in the
    step before is not used.
    """

    rows: list[list[Scalar]]
    leaving: list[Scalar]
    surface: list[Scalar]
    gap: Scalar
    law: ContactLaw
    axes: tuple[Vec, Vec, Vec] | tuple[()] = ()
    jumps: bool = False


@dataclass(frozen=True)
class Assembly:
    """The terms of a step, before impulses: see the module's formulas.

    ``plain``: b without restitution; ``work``: velocities of the rows before the step, over which a
    collision does its work. ``middle``: displacement of the axes until the middle; ``expected``:
    the mean velocity there; ``z``: that at the beginning; ``a``: z of u, both at the middle;
    ``mass``, ``right``: M̂ z⁺ = right; ``rest``: w over independent joints outside of linkages;
    ``slow``: velocities of the rows that keep distances, besides those by z; ``collides``:
    negative if such a row collides.
    """

    start: Moving
    state: State
    h: Scalar
    middle: list[Scalar]
    expected: list[Scalar]
    mass: list[list[Scalar]]
    right: list[Scalar]
    z: list[Scalar]
    a: list[Scalar]
    leaving: list[Scalar]
    rest: list[Scalar]
    free: list[Scalar]
    factors: Factorization
    weighted: list[list[Scalar]]
    delassus: list[list[Scalar]]
    rows: list[list[Scalar]]
    gaps: list[GapRows]
    slow: list[Scalar]
    collides: list[Scalar]
    b: list[Scalar]
    friction: list[Scalar]
    bounds: list[Scalar]
    size: Scalar
    plain: list[Scalar]
    work: list[Scalar]

    def problem(self, rows: RowKinds) -> Sweeps:
        """The contact problem."""
        return Sweeps(rows, self.delassus, self.b, self.friction, self.bounds)

    def without_restitution(self, rows: RowKinds) -> Sweeps:
        """The contact problem without restitution."""
        return Sweeps(rows, self.delassus, self.plain, self.friction, self.bounds)

    def in_world(self, impulses: Vector) -> list[Scalar]:
        """Impulses of the contacts in world axes."""
        contacts = [gap.axes for gap in self.gaps if gap.axes]
        return [x for n, axes in enumerate(contacts) for x in _sum(axes, impulses[3 * n :][:3])]

    def after(self, impulses: Vector) -> list[Scalar]:
        """z⁺."""
        if not impulses:
            return list(self.free)
        return added(self.free, self.factors.back(_sum(self.weighted, impulses)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a step: the state, v of the independent joints, memory, checks.

    ``checks``: see :func:`robomodel.motion.tangent.renewed`; ``miss``: distance of the contacts
    that act from where their rows end, see :func:`_correction`; ``residual`` of the contact
    problem.
    """

    state: Moving
    v: list[Scalar]
    memory: Memory
    checks: list[Scalar]
    miss: Scalar
    residual: Scalar


# ---- before impulses -----------------------------------------------------------------------------


def assemble(
    model: Model,
    start: Moving,
    inputs: StepInputs,
    memory: Memory,
    setting: Setting,
    mean: Vector | None = None,
) -> Assembly:
    """The terms of a step.

    ``mean``: the mean velocity that predicts the middle, in the axes of the beginning; by default
    from the acceleration in the step before.
    """
    h, nv = inputs.h, model.nv
    here = in_tangents(model, start.bases)
    expected = list(mean) if mean is not None else advanced(start.z, 0.5 * h, memory.acceleration)
    middle = [0.5 * h * x for x in expected]
    q = setting.closed(here, displaced(here, start.q, middle))
    z, expected = (in_turned_axes(model, x, middle) for x in (start.z, expected))
    bodies = {model.frame(p.link).body for p in setting.points} | {*(setting.bodies or ())}
    bodies |= {model.frame(link).body for pair in setting.rounds for link in pair.links}
    state = State(here, q, bodies, expected)
    mass = [list(row) for row in crba(here, q)]
    acting = tangent.tangent_forces(model, state, inputs.tau)
    acting = subtracted(acting, _bias(model, state, expected, inputs.wrenches, setting))
    momentum, a, rest = [dot(row, z) for row in mass], list(z), [0.0] * nv
    leaving: list[Scalar] = []
    factors = None
    linked = linkages(model)
    if linked:
        speeds = _joint_velocities(model, state, z)
        momentum = projected(state, _momenta(model, state, speeds))
        factors = Factorization(mass)
        a = factors.solve(momentum)
        leaving = subtracted(speeds, _spanning(state, a))
        inside = {i for x in linked for i in range(*model.clusters[x.index].v.indices(nv))}
        rest = [0.0 if i in inside else z[i] - a[i] for i in range(nv)]
    turning = axes_rates(model, expected)
    right = [
        p + h * (f + dot(row, turning)) for p, f, row in zip(momentum, acting, mass, strict=True)
    ]
    passives = list(elements(state))
    if setting.acting.passive:
        factors = _with_passive(passives, h, a, expected, mass, right) or factors
    factors = factors or Factorization(mass)
    rubbing = [
        [each.row.get(i, 0.0) for i in range(nv)]
        for each in passives
        if setting.acting.friction and not is_absent(each.friction)
    ]
    gaps = [
        *(_contacts(model, state, inputs, setting, leaving, expected) if setting.contacts else ()),
        *_stops(model, state, h, setting, leaving, expected),
    ]
    matrix = [row for each in gaps for row in each.rows] + rubbing
    reduced = [factors.reduce(row) for row in matrix]
    weighted = [factors.weighted(row) for row in reduced]
    delassus = _symmetric(reduced, weighted)
    free = factors.solve(right)
    slow, collides, b, plain, friction, size = laws(model, h, a, free, memory, gaps, delassus)
    for line in rubbing:
        b.append(dot(line, free))
        plain.append(b[-1])
        size = maximum(_magnitude(b[-1]), size)
    work = [dot(row, a) for row in matrix]
    bounds = [h * f for f in setting.acting.rubbing(model)]
    return Assembly(
        start, state, h, middle, expected, mass, right, z, a, leaving, rest, free, factors,
        weighted, delassus, matrix, gaps, slow, collides, b, friction, bounds, size, plain, work,
    )  # fmt: skip


def _with_passive(
    acting: Sequence[Element], h: Scalar, a: Vector, expected: Vector, mass: list[list[Scalar]],
    right: list[Scalar],
) -> Factorization | None:  # fmt: skip
    """The factors of M̂ with springs and dampers, whose forces are added to the right-hand side."""
    half, ways = 0.5 * h, list[Way]()
    dampers = [each for each in acting if not is_absent(each.damping)]
    for each in dampers:
        press(mass, right, each.row, h * each.damping, 0.0)
    for each in acting:
        if not is_absent(each.stiffness):
            first = each.stretch - half * each.rate(expected)
            way = half * each.rate(a)
            middle = first + way
            ways.append(Way(each, first, middle, half, middle + way, h))
    if ways:
        return press_springs(mass, right, ways)
    return Factorization(mass) if dampers else None


def _spanning(state: Configuration, z: Vector) -> list[Scalar]:
    """G z."""
    return [x for cluster in state.model.clusters for x in state.spanning(cluster, z[cluster.v])]


def _joint_velocities(model: Model, state: State, z: Vector) -> list[Scalar]:
    """u at the beginning; linkages move along their bases."""
    result = _spanning(state, z)
    for each in linkages(model):
        cluster = model.clusters[each.index]
        basis = constraint_of(state.model, each).basis
        y = [dot(row, z[cluster.v]) for row in zip(*basis, strict=True)]
        result[cluster.spanning_v] = each.spanning(y)
    return result


def _bias(
    model: Model, state: State, v: Vector, wrenches: Vector, setting: Setting
) -> list[Scalar]:
    """Gᵀ c: bias forces of all joints at G v, without the terms of the turning of linkages' G."""
    f_ext = frames.body_wrenches(
        model, {link: wrenches[6 * n : 6 * n + 6] for n, link in enumerate(setting.links)}
    )
    if not linkages(model):
        return bias_force(state.model, state.q, v, f_ext)
    rest: list[Scalar] = [0.0] * len(state.velocities)
    for cluster in model.clusters:
        if cluster.varies and not cluster.implicit:
            part, at = cluster.spanning_v, state.positions[cluster.spanning_q]
            rest[part] = cluster.constraint.bias(at, state.velocities[part])
    tree = spanning_tree(model)
    return projected(state, rnea(tree, state.positions, state.velocities, rest, f_ext))


def _momenta(model: Model, state: Configuration, speeds: Vector) -> list[Scalar]:
    """H times joint velocities."""
    tree = replace(spanning_tree(model), gravity=(0.0, 0.0, 0.0))
    return rnea(tree, state.positions, [0.0] * len(speeds), speeds)


# ---- rows ----------------------------------------------------------------------------------------


def between(model: Model, state: Configuration, pair: RoundPair) -> list[Proximity]:
    """Gaps, normals and points of contact of two spheres or capsules."""
    poses = (frames.pose_of(state, frames.place(model, link)) for link in pair.links)
    return round_contacts(pair.first, pair.second, *poses)


def _contacts(
    model: Model,
    state: State,
    inputs: StepInputs,
    setting: Setting,
    leaving: Vector,
    expected: Vector,
) -> list[GapRows]:
    """Contacts of points with their planes, and of links' spheres and capsules."""
    result: list[GapRows] = []
    moving = None  # motion of all joints by w, if there is any
    if leaving:
        moving = State(spanning_tree(model), state.positions, state.turned, leaving)

    def contact(
        sides: Sequence[tuple[str, Vec]], normal: Vec, gap: Scalar, law: ContactLaw,
        jumps: bool = False,
    ) -> None:  # fmt: skip
        """Add a contact of links at offsets in their axes, with its ``gap`` at the middle."""
        axes = basis(normal)
        rows, slow = _velocity_rows(model, state, moving, sides, axes)
        gap = gap - 0.5 * inputs.h * dot(rows[2], expected)
        result.append(GapRows(rows, slow, along_surface(axes, law), gap, law, axes, jumps))

    def offset(link: str, point: Vec) -> tuple[str, Vec]:
        rotation, origin = frames.pose_of(state, frames.place(model, link))
        return link, apply(transpose(rotation), minus(point, origin))

    for n, (at, law) in enumerate(zip(setting.points, setting.laws, strict=True)):
        rotation, origin = frames.pose_of(state, frames.place(model, (at.link, at.offset)))
        normal, height = _plane(inputs, setting, n, origin)
        lowest = minus(at.offset, scale(at.radius, apply(transpose(rotation), normal)))
        contact([(at.link, lowest)], normal, height - at.radius, law)
    for pair in setting.rounds:
        law = ContactLaw(pair.friction, pair.friction, pair.restitution)
        for n, (gap, normal, point) in enumerate(between(model, state, pair)):
            sides = [offset(link, point) for link in pair.links]
            # the nearest points of two capsules may jump
            contact(sides, normal, gap, law, pair.count > 1 and n == 0)
    return result


def along_surface(axes: Sequence[Vec], law: ContactLaw) -> list[Scalar]:
    """Velocities of the touched surface, along a contact's axes."""
    return [*(inner(axis, law.velocity) for axis in axes[:2]), 0.0]


def _velocity_rows(
    model: Model,
    state: State,
    moving: State | None,
    sides: Sequence[tuple[str, Vec]],
    axes: Sequence[Vec],
) -> tuple[list[list[Scalar]], list[Scalar]]:
    """Velocity rows of a link's point along axes, relative to another's: by z, and by w."""
    rows: list[list[Scalar]] = [[0.0] * model.nv for _ in axes]
    slow: list[Scalar] = [0.0] * len(axes)
    for side, sign in zip(sides, (1.0, -1.0), strict=False):
        place = frames.place(model, side)
        turn = transpose(frames.pose_of(state, place)[0])
        for n, axis in enumerate(axes):
            along = apply(turn, axis)
            wrench = place.pose.to_parent(Wrench(ZERO, along))
            rows[n] = advanced(rows[n], sign, joint_forces(model, state, place.body, wrench))
            if moving is not None and place.body != WORLD:
                linear = place.pose.to_child(moving.twists[place.body]).linear
                slow[n] = slow[n] + sign * inner(along, linear)
    return rows, slow


def _stops(
    model: Model, state: State, h: Scalar, setting: Setting, leaving: Vector, expected: Vector
) -> list[GapRows]:
    """Rows of joint limits that stop joints."""
    result = []
    stopped = setting.acting.stopped(model)
    for n, side, bound in setting.acting.bounds(model):
        node = model.nodes[stopped[n]]
        row: list[Scalar] = [0.0] * model.nv
        for i, x in enumerate(state.rows[node.v], model.clusters[node.cluster].v.start):
            row[i] = side * x
        gap = side * (state.positions[node.q] - bound)
        gap = gap - 0.5 * h * dot(row, expected)
        slow = side * leaving[node.v] if leaving else 0.0
        law = ContactLaw(0.0, 0.0, setting.stop_restitution)
        result.append(GapRows([row], [slow], [0.0], gap, law))
    return result


def _vec(x: Sequence[Scalar]) -> Vec:
    return x[0], x[1], x[2]


def _plane(inputs: StepInputs, setting: Setting, n: int, origin: Vec) -> tuple[Vec, Scalar]:
    """The normal of the plane that a point touches, and the height of a place above it."""
    plane: Vector = (0.0, 0.0, 1.0, setting.height)
    if setting.height is None:
        plane = inputs.planes[PLANE * n : PLANE * n + PLANE]
    return _vec(plane), inner(_vec(plane), origin) - plane[3]


# ---- laws ----------------------------------------------------------------------------------------


def laws(
    model: Model,
    h: Scalar,
    a: Vector,
    free: Vector,
    memory: Memory,
    gaps: Sequence[GapRows],
    delassus: list[list[Scalar]],
) -> tuple[list[Scalar], list[Scalar], list[Scalar], list[Scalar], list[Scalar], Scalar]:
    """Velocities besides those by z, collisions, b, b without restitution, friction, scale.

    All for the rows that keep distances, in their order.
    """
    weight = dot(model.gravity, model.gravity)
    slowest = 2.0 * select(-weight, sqrt(weight), 9.81) * h
    since = div(h, h + memory.length[0])  # share of the time between middles after the last step
    size: Scalar = 1e-12
    slow: list[Scalar] = []
    collides: list[Scalar] = []
    b: list[Scalar] = []
    plain: list[Scalar] = []
    friction: list[Scalar] = []
    for each in gaps:
        at, law = slice(len(b), len(b) + len(each.rows)), each.law
        last = at.stop - 1
        trace: Scalar = 0.0
        for i in range(at.start, at.stop):
            trace = trace + delassus[i][i]
        moves = IMMOVABLE - trace  # negative if impulses move it
        for i in range(at.start, at.stop):
            delassus[i][i] = delassus[i][i] + select(moves, 0.0, 1.0)
        block = [line[at] for line in delassus[at]]
        still = [-(w + v) for w, v in zip(each.leaving, each.surface, strict=True)]
        speeds = [
            dot(row, a) + w - v
            for row, w, v in zip(each.rows, each.leaving, each.surface, strict=True)
        ]
        change: list[Scalar] = [0.0] * len(speeds)
        if not each.jumps:  # the row turns as it did since the step before
            change = [since * x for x in subtracted(speeds, memory.rates[at])]
        if each.axes:
            change = within_reach(block, change)
        acted = -memory.impulses[last]
        turned = [select(acted, x, 0.0) for x in change]
        *across, closing = subtracted(speeds, turned)  # at the beginning of the step
        *tangents, ahead = [
            dot(row, free) + (x + y) for row, x, y in zip(each.rows, turned, still, strict=True)
        ]
        closes = each.gap + h * ahead
        rebound: Scalar = law.restitution
        bends: Scalar = 0.0
        if law.stiffness is None:
            keeps = div(maximum(each.gap, 0.0), h)
            collides.append(maximum(closes, closing + slowest))
        else:
            force = _compliance(law, h, block[-1][-1], each.gap, closing)
            bends = div(1.0, force.slope)
            keeps = bends * force.rest
            collides.append(maximum(maximum(closes, closing + slowest), force.resolved))
            rebound = force.rebound
        beta, mu = keeps, law.friction
        if law.static_friction is not mu:
            slip = dot(across, across) - STICKING**2
            mu = select(slip, law.static_friction, mu)
        if law.rebounds:
            rebounds = rebound * closing + slowest
            back = rebound * closing - minimum(ahead - closing, 0.0)
            bends = select(closes, select(rebounds, 0.0, bends), bends)
            beta = select(closes, select(rebounds, back, beta), beta)
            if each.axes:
                slick = select(wedged(block, mu), 0.0, mu)
                mu = select(closes, select(rebounds, slick, mu), mu)
        if law.stiffness is not None:
            delassus[last][last] = delassus[last][last] + bends
        if each.axes:
            friction.append(mu)
        far = minimum(TAKES_PART - closes, -moves)  # or without effect
        for x in (*tangents, ahead + beta):
            size = maximum(select(far, 0.0, _magnitude(x)), size)
        slow += still
        b += [*tangents, select(far, APART, ahead + beta)]
        plain += [*tangents, select(far, APART, ahead + keeps)]
    return slow, collides, b, plain, friction, size


@dataclass(frozen=True, slots=True)
class _Compliance:
    """The impulse - slope · v⁺ - rest of a compliant contact, v⁺ its velocity at the end.

    ``resolved``: negative if the step is too long for its oscillation; ``rebound``: the share of
    its velocity that it rebounds with then, unless it was in the ground before the step; else 0.
    """

    slope: Scalar
    rest: Scalar
    resolved: Scalar
    rebound: Scalar


def _compliance(
    law: ContactLaw, h: Scalar, inverse: Scalar, gap: Scalar, closing: Scalar
) -> _Compliance:
    """The compliance of a contact with this gap and velocity at the beginning of the step.

    ``inverse``: of the inertia that the contact moves, 1/m. In a step that resolves its oscillation
    the spring acts by its mean force, and the damper such that alone it leaves 1/(1 + r + r²/2) of
    the velocity, with r = h damping/m: to second order exp(-r), and positive for all r. In longer
    steps both act by the end. Of an open gap what is left of the way counts.
    """
    assert law.stiffness is not None
    push, stretch, open_ = h * law.stiffness, h * (h * law.stiffness), maximum(gap, 0.0)
    resolved = RESOLVED - stretch * inverse
    slope = 0.25 * stretch
    rest = 0.5 * push * (gap + minimum(gap, 0.0)) + slope * closing
    late, late_rest, rebound = stretch, push * gap, 1.0
    if law.damping:
        drag, away = h * law.damping, law.damping * open_
        r = drag * inverse
        end = drag * div(1.0 + r, 2.0 + r)
        slope, rest = slope + end, rest + (drag - end) * closing + away
        late, late_rest = late + drag, late_rest + away
        z = 0.5 * law.damping / math.sqrt(law.stiffness) * sqrt(inverse)
        a, b, c, d = REBOUND
        rebound = div(1.0 + a * z, 1.0 + z * (b + z * (c + d * z)))
    touches = select(gap + COLLIDES_WITH, 0.0, rebound)
    return _Compliance(
        select(resolved, late, slope), select(resolved, late_rest, rest), resolved,
        select(resolved, touches, 0.0),
    )  # fmt: skip


# ---- after impulses ------------------------------------------------------------------------------


def mean_velocity(model: Model, terms: Assembly, impulses: Vector) -> list[Scalar]:
    """The mean velocity of a step with these impulses, in the axes of its beginning."""
    mean = [0.5 * (x + y) for x, y in zip(terms.a, terms.after(impulses), strict=True)]
    return in_turned_axes(model, mean, terms.middle, back=True)


def finish(
    model: Model,
    terms: Assembly,
    impulses: Vector,
    slips: Vector,
    residual: Scalar,
    inputs: StepInputs,
    setting: Setting,
) -> Outcome:
    """The state after a step with these impulses; ``residual`` of what they solve."""
    start, h, rows = terms.start, terms.h, setting.rows(model)
    after, mean = terms.after(impulses), mean_velocity(model, terms, impulses)
    closing = [
        impulses[3 * n + 2 if n < rows.contacts else 2 * rows.contacts + n]
        for n in range(len(terms.collides))
    ]
    struck = strikes(closing, terms.collides)
    travel = travelled(model, h, terms.middle, after, mean, struck)
    q = moved_on(terms, travel, setting)
    correction, miss = _correction(model, terms, q, travel, impulses, inputs, setting)
    miss = maximum(in_sequence(closing, terms.gaps, terms.collides), miss)
    state, v, checks = ended(model, terms, q, after, travel, correction, setting)
    rates = [dot(row, after) + slow for row, slow in zip(terms.rows, terms.slow, strict=False)]
    per = div(2.0, h)
    change = [select(struck, 0.0, per * (x - y)) for x, y in zip(mean, start.z, strict=True)]
    memory = Memory(list(impulses), list(slips), rates, change, [h])
    return Outcome(state, v, memory, checks, miss, residual)


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


def travelled(
    model: Model, h: Scalar, middle: Vector, after: Vector, mean: Vector, struck: Scalar
) -> list[Scalar]:
    """The displacement of a step, in the axes of its beginning."""
    beyond = in_turned_axes(model, after, middle, back=True)
    return [h * select(struck, x, y) for x, y in zip(beyond, mean, strict=True)]


def moved_on(terms: Assembly, travel: Vector, setting: Setting) -> list[Scalar]:
    """q after a displacement."""
    here = terms.state.model
    return setting.closed(here, displaced(here, terms.start.q, travel), 1)


def ended(
    model: Model, terms: Assembly, q: list[Scalar], after: Vector, travel: Vector,
    correction: Vector, setting: Setting,
) -> tuple[Moving, list[Scalar], list[Scalar]]:  # fmt: skip
    """The state after a step, v of the independent joints, and checks.

    ``q``: the end of ``travel``; ``correction``: the displacement that removes penetration.
    """
    here = terms.state.model
    end = in_turned_axes(model, subtracted(after, terms.rest), terms.middle, back=True)
    end = in_turned_axes(model, end, travel)
    if correction:
        q = setting.closed(here, displaced(here, q, correction), 1)
        end = in_turned_axes(model, end, correction)
    state, checks = _at_end(model, terms, q, end)
    return state, tangent.independent_velocities(model, q, state.z, state.bases), checks


def _at_end(
    model: Model, terms: Assembly, q: list[Scalar], z: list[Scalar]
) -> tuple[Moving, list[Scalar]]:
    """Bases of the linkages at q, and u⁺ = G z - w brought to motions there, H-orthogonally.

    z: outside of linkages u⁺ itself, in the axes at the end.
    """
    linked = linkages(model)
    if not linked:
        return Moving(q, z, []), []
    bases, _, checks = tangent.renewed(model, terms.state.model, q, z)
    middle = tangent.regularity(model, terms.state.model, terms.state.q)
    checks[-1] = minimum(checks[-1], middle)
    there = in_tangents(model, bases)
    state = Configuration(there, q)
    speeds, before = _spanning(state, z), _spanning(terms.state, z)
    for each in linked:
        at = model.clusters[each.index].spanning_v
        speeds[at] = subtracted(before[at], terms.leaving[at])
    momenta = projected(state, _momenta(model, state, speeds))
    return Moving(q, Factorization(crba(there, q)).solve(momenta), bases), checks


def _correction(
    model: Model,
    terms: Assembly,
    q: list[Scalar],
    travel: Vector,
    impulses: Vector,
    inputs: StepInputs,
    setting: Setting,
) -> tuple[list[Scalar], Scalar]:
    """The least motion in M̂'s norm that removes penetration, by the step's own rows.

    Contacts are corrected by at most :data:`TAKES_PART` at once, so that their rows keep their
    directions. Second, the distance of contacts that act or end in the ground from where their rows
    end: the rows turn.
    """
    here = terms.state.model
    state = Configuration(here, q, terms.state.turned)
    normal, gaps = list[int](), list[Scalar]()
    miss: Scalar = 0.0
    moved_ = in_turned_axes(model, travel, terms.middle)
    now = [each[0] for pair in setting.rounds for each in between(model, state, pair)]
    for n, gap in enumerate(terms.gaps[: setting.contacts]):
        later = n - len(setting.points)
        if later < 0:
            at = setting.points[n]
            _, origin = frames.pose_of(state, frames.place(model, (at.link, at.offset)))
            end = _plane(inputs, setting, n, origin)[1] - at.radius
        elif later < len(now):
            end = now[later]
        else:
            end = gap.gap + dot(gap.rows[2], moved_)
        off = gap.gap + dot(gap.rows[2], moved_) - end
        acts = minimum(end, -impulses[3 * n + 2])  # negative if it does
        miss = maximum(select(acts, _magnitude(off), 0.0), miss)
        if gap.law.stiffness is None:
            gaps.append(maximum(end, -TAKES_PART))
            normal.append(3 * n + 2)
    stopped = setting.acting.stopped(model)
    for k, (n, side, bound) in enumerate(setting.acting.bounds(model)):
        gaps.append(side * (state.positions[model.nodes[stopped[n]].q] - bound))
        normal.append(3 * setting.contacts + k)
    if not gaps:
        return [], miss
    y = corrections([[terms.delassus[n][m] for m in normal] for n in normal], gaps)
    change = terms.factors.back(_sum([terms.weighted[n] for n in normal], y))
    return in_turned_axes(model, change, terms.middle, back=True), miss


def corrections(matrix: Sequence[Vector], gaps: Vector) -> list[Scalar]:
    """Impulses of rows, with ``matrix`` their block of G, that remove penetrations."""
    y: list[Scalar] = [0.0] * len(gaps)
    for _ in range(CORRECTIONS):
        for i, (row, gap) in enumerate(zip(matrix, gaps, strict=True)):
            y[i] = maximum(y[i] - div(gap + dot(row, y), row[i]), 0.0)
            y[i] = select(SLOP - gap, 0.0, y[i])
    return y


def _symmetric(reduced: list[list[Scalar]], weighted: list[list[Scalar]]) -> list[list[Scalar]]:
    """R M̂⁻¹ Rᵀ."""
    n = len(reduced)
    result: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            result[i][j] = result[j][i] = dot(reduced[i], weighted[j])
    return result


def _sum(rows: Sequence[Vector], x: Vector) -> list[Scalar]:
    """Σ x · row."""
    total: list[Scalar] = [0.0] * len(rows[0])
    for weight, row in zip(x, rows, strict=True):
        total = advanced(total, weight, row)
    return total


def _magnitude(x: Scalar) -> Scalar:
    return select(x, -x, x)
