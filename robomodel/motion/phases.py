"""Phases of dry friction and losses, between which adaptive methods locate events.

A row of dry friction, or of the mesh of a lossy gear, sticks, or slides one way; the force that a
mesh transmits has a sign. While none of this changes accelerations are smooth: the forces of
friction f solve linear equations, ẏ = G f + b = 0 in rows that stick, f at its bound in those that
slide, where the bound of a mesh is a multiple of its λ = K f + l. A phase ends where a rate or a
transmitted force has come to zero, or where a row needs more to stick than its bound. The next
phase is then the solution of the complementarity problem on accelerations of the rows that rest
(:func:`robomodel.dynamics.contact.complementarity.solve`). Where a mesh that turns has no finite
force (Painlevé's case) it stops at once, by the impulses of the same law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.dynamics.actuators.maps import blocks, required
from robomodel.dynamics.actuators.meshes import MeshRows
from robomodel.dynamics.baselines import spanning_tree
from robomodel.dynamics.contact.complementarity import ArrayProblem, solve
from robomodel.dynamics.contact.dry_friction import DryFriction
from robomodel.dynamics.contact.problem import Meshes, RowKinds
from robomodel.dynamics.kinematics.state import State
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.passive import Element, elements, is_absent
from robomodel.dynamics.recursions.rnea import bias_force, rnea
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.trace import handles
from robomodel.model.configurations.functions import rates
from robomodel.model.model import Model
from robomodel.motion.integrator_functions import function
from robomodel.motion.limits import Acting, rotors_of_meshes
from robomodel.motion.plant import Plant
from robomodel.motion.tangent import StepError, in_tangents, numbers, tangent_forces
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    array_of,
    dot,
    is_zero,
    maximum,
    subtracted,
)
from robomodel.tolerances import NOTHING, SAME, SINGULAR


@dataclass(frozen=True)
class Phase:
    """The ``way`` (n,) in which each row slides, 0 if it sticks; signs of λ, ``flank`` (m,)."""

    way: Array
    flank: Array

    @property
    def sticks(self) -> Mask:
        """The rows that stick."""
        return np.asarray(self.way == 0.0)


@dataclass(frozen=True)
class PhaseEnd:
    """The end of a phase: its causes among ``rows`` (n,) and signs of λ, ``flanks`` (m,).

    ``way`` (n,): the way in which rows that have stuck begin to slide.
    """

    rows: Mask
    flanks: Mask
    way: Array


@dataclass(frozen=True)
class Instant:
    """The rows of dry friction (first) and meshes at a state.

    ``free`` (nq + nv,): ẋ without friction; ``rows`` R (n, nv) and ``effects`` M⁻¹ Rᵀ (nv, n); b
    (n,); ``speeds`` y (n,); the greatest forces of dry friction ``sliding`` and at rest
    (``resting``, n), bearings of meshes included; ``slopes`` K (m, n) and ``load`` l (m,);
    ``forward`` and ``back`` (m,) as of :class:`.Meshes`.
    """

    free: Array
    rows: Array
    effects: Array
    b: Array
    speeds: Array
    sliding: Array
    resting: Array
    slopes: Array
    load: Array
    forward: Array
    back: Array

    @cached_property
    def delassus(self) -> Array:
        """G."""
        return np.asarray(self.rows @ self.effects)

    @property
    def boxes(self) -> int:
        """Number of rows of dry friction alone."""
        return len(self.b) - len(self.load)

    @cached_property
    def force(self) -> float:
        """The size of its forces."""
        needed = np.abs(self.b) / np.diagonal(self.delassus)
        return float(max(np.max(x, initial=0.0) for x in (needed, self.resting, np.abs(self.load))))

    def moved(self, phase: Phase) -> Array:
        """ẋ (nq + nv,) in a phase."""
        result, nv = self.free.copy(), self.rows.shape[1]
        result[len(result) - nv :] += self.effects @ self.forces(phase)
        return result

    def slides(self, way: Array, flank: Array) -> tuple[Array, Array]:
        """c (m,) and f₀ (n,) of f = f₀ - c λ in rows that slide; zero in those that stick."""
        turning = way[self.boxes :]
        drives = turning * flank > 0.0
        share = turning * flank * np.where(drives, self.forward, self.back)
        return share, -way * self.sliding

    def forces(self, phase: Phase) -> Array:
        """f (n,); of rows that stick and cannot be told apart the least."""
        sticks, boxes = phase.sticks, self.boxes
        share, right = self.slides(phase.way, phase.flank)
        matrix = np.eye(len(right))
        matrix[boxes:] += share[:, None] * self.slopes
        right[boxes:] -= share * self.load
        size = np.diagonal(self.delassus)
        matrix[sticks] = self.delassus[sticks] / size[sticks, None]
        right[sticks] = -self.b[sticks] / size[sticks]
        if self.alike(phase).shape[1]:
            return np.asarray(np.linalg.lstsq(matrix, right, rcond=SINGULAR)[0])
        try:
            return np.asarray(np.linalg.solve(matrix, right))
        except np.linalg.LinAlgError:
            return np.full(len(right), np.nan)

    def alike(self, phase: Phase) -> Array:
        """Combinations (n, k) of forces of rows that stick without an effect."""
        at = np.flatnonzero(phase.sticks)
        result = np.zeros((len(self.b), 0))
        if len(at) < 2:
            return result
        size = 1.0 / np.sqrt(np.diagonal(self.delassus)[at])
        values, vectors = np.linalg.eigh(self.delassus[np.ix_(at, at)] * size * size[:, None])
        none = vectors[:, values <= SINGULAR * values[-1]]
        result = np.zeros((len(self.b), none.shape[1]))
        result[at] = size[:, None] * none
        return result

    # ---- events

    def margins(self, phase: Phase) -> tuple[Array, Array]:
        """How far rows (n,) and then signs of λ (m,) are from the end of the phase, and sizes.

        Those of rows that slide are rates, those of others forces; negative beyond the end.
        Infinite for signs that do not matter.
        """
        sticks, boxes = phase.sticks, self.boxes
        forces = self._needed(phase)
        transmitted = self.load + self.slopes @ forces
        low, high = self._ends(transmitted)
        size = np.full(len(self.b) + len(self.load), self.force)
        result = np.full(len(size), np.inf)
        rows = np.where(sticks, np.minimum(forces - low, high - forces), phase.way * self.speeds)
        result[: len(rows)] = rows
        size[: len(rows)][~sticks] = np.max(np.abs(self.speeds), initial=0.0)
        turning = ~sticks[boxes:]
        result[len(rows) :][turning] = (phase.flank * transmitted)[turning]
        return result, size

    def _ends(self, transmitted: Array) -> tuple[Array, Array]:
        """Bounds (n,) of rows at rest."""
        low, high = -self.resting, self.resting.copy()
        if len(transmitted):
            mesh = Meshes(None, None, self.forward, self.back, self.resting[self.boxes :])
            ends = mesh.bounds(slice(None), array_of(transmitted))
            low[self.boxes :], high[self.boxes :] = map(array_of, ends)
        return low, high

    def _needed(self, phase: Phase) -> Array:
        """f (n,), of rows that stick and cannot be told apart those farthest from their bounds.

        Such forces have one effect in different shares. A share changes λ of its own mesh alone.
        """
        forces = self.forces(phase)
        alike = self.alike(phase)
        if not alike.shape[1]:
            return forces
        boxes, low, high = self.boxes, -self.resting, self.resting.copy()
        mesh = Meshes(None, None, self.forward, self.back, self.resting[boxes:])
        rest = self.load + self.slopes @ forces - forces[boxes:]
        ends = mesh.eliminated(slice(None), np.ones(len(rest)), array_of(rest))
        low[boxes:], high[boxes:] = map(array_of, ends)
        same = np.abs(alike @ alike.T) > SINGULAR * np.max(np.abs(alike)) ** 2
        for _, at in blocks(same):
            ways = np.linalg.svd((alike @ alike.T)[np.ix_(at, at)])
            count = int(np.count_nonzero(ways.S / ways.S[0] > SINGULAR))
            pull = self.delassus[at, at[0]]
            all_of = 2.0 * np.sum(np.abs(pull * forces[at])) / np.abs(pull)
            bottom, top = np.maximum(low[at], -all_of), np.minimum(high[at], all_of)
            if count == len(at) - 1:
                forces[at] = _shared(pull, forces[at], bottom, top)
            else:
                forces[at] = _between(ways.U[:, :count], forces[at], bottom, top)
        return forces

    # ---- the next phase

    def rested(self, z: Array, still: Mask) -> Array:
        """z with the rates of the rows that are ``still`` exactly zero."""
        if not np.any(self.speeds[still]):
            return z
        among = self.delassus[np.ix_(still, still)]
        lost = np.linalg.lstsq(among, self.speeds[still], rcond=SINGULAR)[0]
        return np.asarray(z - self.effects[:, still] @ lost)

    def next(self, way: Array, flank: Array, still: Mask, kept: Mask) -> tuple[Phase, Mask]:
        """The phase from here on, and the meshes (m,) that jam, which have to stop first.

        Args:
            way: The ways of the rows that are not ``still``.
            flank: Signs of λ to begin with; those that are ``kept`` (m,) are given.
            still: The rows whose rates are zero.
        """
        boxes, n, m = self.boxes, len(self.b), len(self.load)
        way, flank, forces = np.where(still, 0.0, way), flank.copy(), np.zeros(n)
        own = self.slopes[np.arange(m), boxes + np.arange(m)]
        turning, jams = ~still[boxes:], np.asarray(self.back * own >= 1.0)
        for _ in range(2 * m + 2):
            forces = self._solved(way, flank, still)
            transmitted = self.load + self.slopes @ forces
            # without the part that its own friction has in λ
            beside = way[boxes:] * (transmitted - own * forces[boxes:])
            beside -= own * self.sliding[boxes:]
            driven = np.where(kept, way[boxes:] * flank < 0.0, beside < 0.0)
            jammed = turning & driven & jams
            if np.any(jammed):
                return Phase(way, flank), jammed
            signs = np.where(turning, np.where(driven, -way[boxes:], way[boxes:]), flank)
            if np.array_equal(signs, flank):
                break
            changed, flank = turning & (signs != flank), signs
        else:
            return Phase(way, flank), changed
        pull = self.delassus @ forces + self.b
        moves = still & (np.abs(pull) > SAME * np.max(np.abs(self.b), initial=0.0))
        flank = np.where(turning, flank, np.where(transmitted < 0.0, -1.0, 1.0))
        return Phase(np.where(moves, np.sign(pull), way), flank), np.zeros(m, dtype=bool)

    def _solved(self, way: Array, flank: Array, still: Mask) -> Array:
        """f (n,) with the ways of rows that slide, and the law at rest in those that are still."""
        boxes, n = self.boxes, len(self.b)
        share, right = self.slides(way, flank)
        matrix = np.eye(n)
        matrix[boxes:] += share[:, None] * self.slopes
        right[boxes:] -= share * self.load
        slide = np.flatnonzero(~still)
        forces, by = np.zeros(n), np.zeros((n, n))
        by[still, still] = 1.0
        if len(slide):
            among = matrix[np.ix_(slide, slide)]
            forces[slide] = np.linalg.solve(among, right[slide])
            by[np.ix_(slide, still)] = -np.linalg.solve(among, matrix[np.ix_(slide, still)])
        if not np.any(still):
            return forces
        found = self._at_rest(self.b, self.resting, self.load, forces, by, still)
        return np.asarray(forces + by[:, still] @ found)

    def _at_rest(
        self, b: Array, resting: Array, load: Array, forces: Array, by: Array, still: Mask
    ) -> Array:
        """Forces of rows that are still, beside ``forces`` + ``by`` f of all others."""
        boxes = self.boxes
        meshed = still[boxes:]
        matrix = (self.delassus @ by)[np.ix_(still, still)]
        kinds = RowKinds(0, 0, int(np.sum(still[:boxes])), int(np.sum(meshed)))
        meshes = None
        if kinds.meshes:
            slopes = (self.slopes @ by)[np.ix_(meshed, still)]
            own = (load + self.slopes @ forces)[meshed]
            meshes = Meshes(
                slopes, own, self.forward[meshed], self.back[meshed],
                resting[boxes:][meshed],
            )  # fmt: skip
        problem = ArrayProblem(
            kinds, matrix, (b + self.delassus @ forces)[still], np.empty(0),
            resting[:boxes][still[:boxes]], meshes=meshes,
        )  # fmt: skip
        found, residual = solve(problem, np.zeros(kinds.size), NOTHING)
        if not residual < SAME:
            raise StepError("has no solution of dry friction and losses in gears")
        return found

    def stopped(self, jammed: Mask) -> Array:
        """The change of z by the impulses that stop meshes which jam.

        Dry friction has no impulses; other meshes have those of their laws.
        """
        boxes, n = self.boxes, len(self.b)
        stop = np.flatnonzero(np.concatenate([np.zeros(boxes, dtype=bool), jammed]))
        others = np.concatenate([np.zeros(boxes, dtype=bool), ~jammed])
        among = np.linalg.pinv(self.delassus[np.ix_(stop, stop)], rcond=SINGULAR)
        impulses, by = np.zeros(n), np.zeros((n, n))
        by[others, others] = 1.0
        impulses[stop] = -among @ self.speeds[stop]
        by[np.ix_(stop, others)] = -among @ self.delassus[np.ix_(stop, others)]
        if np.any(others):
            none = np.zeros(n)
            found = self._at_rest(self.speeds, none, np.zeros(len(self.load)), impulses, by, others)
            impulses = impulses + by[:, others] @ found
        return np.asarray(self.effects @ impulses)

    def is_still(self) -> Mask:
        """The rows whose rates are zero, to rounding of the largest."""
        return np.asarray(np.abs(self.speeds) <= SAME * np.max(np.abs(self.speeds), initial=0.0))

    def leaving(self, phase: Phase) -> Array:
        """The way (n,) in which rows that stick begin to slide, by the nearer bound."""
        forces = self._needed(phase)
        low, high = self._ends(self.load + self.slopes @ forces)
        return np.where(forces - low < high - forces, 1.0, -1.0)


def _shared(pull: Array, forces: Array, low: Array, high: Array) -> Array:
    """Forces with the same sum of ``pull`` times them, all at one share of their ranges."""
    ends = np.where(pull > 0.0, [low, high], [high, low])
    width = float(pull @ (ends[1] - ends[0]))
    if not width > 0.0:
        return forces
    share = float(pull @ (forces - ends[0])) / width
    return np.asarray(ends[0] + share * (ends[1] - ends[0]))


def _between(ways: Array, forces: Array, low: Array, high: Array) -> Array:
    """Forces that differ by ``ways``, as deep within their ranges as all can be."""
    from scipy.optimize import linprog

    size = float(np.max(np.abs([forces, low, high])))
    if not size > 0.0:
        return forces
    wide = (0.5 * (high - low) / size)[:, None]
    matrix = np.block([[-ways, wide], [ways, wide]])
    room = np.concatenate([forces - low, high - forces]) / size
    cost = np.append(np.zeros(ways.shape[1]), -1.0)
    found = linprog(cost, A_ub=matrix, b_ub=room, bounds=(None, None), method="highs")
    return forces if found.x is None else np.asarray(forces + size * (ways @ found.x[:-1]))


@dataclass(frozen=True)
class Rubbing:
    """Dry friction and lossy gears of a robot as functions of its state in tangent coordinates."""

    model: Model
    acting: Acting

    @staticmethod
    def of(model: Model, acting: Acting) -> Rubbing | None:
        """All that rubs; None if nothing does."""
        rubbing = Rubbing(model, acting)
        return rubbing if rubbing.size else None

    @cached_property
    def meshes(self) -> int:
        """Number of lossy gears."""
        return len(self.acting.lossy(self.model))

    @cached_property
    def size(self) -> int:
        """Number of rows."""
        return len(self.acting.rubbing(self.model)) + self.meshes

    def at(self, row: Array, tau: Array, pushes: Mapping[str, Array]) -> Instant:
        """The instant at q, z and bases, under forces on the independent joints and wrenches."""
        model, n, m = self.model, self.size, self.meshes
        program = self._program(tuple(pushes))
        wrenches = [np.concatenate(list(pushes.values()))] if pushes else []
        y = np.asarray(program(row, tau, *wrenches))
        nv = model.nv
        sizes = [model.nq + nv, n * nv, n * nv, n, n, n, m * n, m, m]
        parts = np.split(y, np.cumsum(sizes))
        free, rows, effects, b, sliding, resting, slopes, load, forward, back = parts
        rows = rows.reshape(n, nv)
        speeds = rows @ row[model.nq : model.nq + nv]
        return Instant(
            free, rows, effects.reshape(n, nv).T, b, speeds, sliding, resting,
            slopes.reshape(m, n), load, forward, back,
        )  # fmt: skip

    def _program(self, links: tuple[str, ...]) -> TracedFunction:
        """(q, z and bases; tau; wrenches on links) → the numbers of an :class:`Instant`."""
        model, acting, nq, nv = self.model, self.acting, self.model.nq, self.model.nv

        def build(x: Vector, tau: Vector, wrenches: Vector = ()) -> list[Scalar]:
            here, q, z = in_tangents(model, x[nq + nv :], refined=True), x[:nq], x[nq : nq + nv]
            return _numbers(model, here, links, acting, q, z, tau, wrenches)

        n, m = self.size, self.meshes
        more = (6 * len(links),) if links else ()
        count = nq + nv + 2 * n * nv + 3 * n + m * n + 3 * m
        sizes = (nq + nv + numbers(model), nv, *more, count)
        return function(model, f"rubbing {links!r} {acting.passive}", sizes, build)


def _numbers(
    model: Model, here: Model, links: Sequence[str], acting: Acting, q: Vector, z: Vector,
    tau: Vector, wrenches: Vector,
) -> list[Scalar]:  # fmt: skip
    """The numbers of an :class:`Instant`, rows over z."""
    nv, f_ext = model.nv, Plant(model, tuple(links)).wrenches(wrenches)
    state = State(here, q, f_ext, z)
    acts = tangent_forces(model, state, tau)
    right = subtracted(acts, bias_force(here, q, z, f_ext))
    passives = list(elements(state))
    meshed, bearings = rotors_of_meshes(model), dict[str, Element]()
    rubbing: list[tuple[list[Scalar], Scalar, DryFriction]] = []
    along, seen = rates(here, q, z), dict[str, int]()
    for each in passives:
        force = each.force(z) if acting.passive else 0.0
        if not is_absent(each.law.friction):
            force = force + each.dry.shift
        for i, x in each.row.items():
            right[i] = right[i] + x * force
        if each.of_joint and each.name in meshed:
            bearings[each.name] = each
            continue
        place = seen.get(each.name, 0)
        seen[each.name] = place + 1
        if each.dry:
            row = [each.row.get(i, 0.0) for i in range(nv)]
            if each.of_joint:
                node = here.nodes[model.joint_names.index(each.name)]
                turn = state.bias[node.freedoms[place]]
            else:  # z stays, the row turns
                moving = dict(zip(handles(q), along, strict=True))
                turn = differentiate(handles(q)[0].trace, [dot(row, z)], [moving])[0][0]
            rubbing.append((row, turn, each.dry))
    factors = Factorization([list(row) for row in crba(here, q)])
    free = factors.solve(right)
    pulls = state.accelerations(free)
    torques = rnea(spanning_tree(model), state.positions, state.velocities, pulls, f_ext)
    motors = required(model, state, acts)
    momenta, loads = list[Vector](), list[Scalar]()
    lossy = [model.actuators[n] for n in acting.lossy(model)]
    for n, actuator in zip(acting.lossy(model), lossy, strict=True):
        rows = MeshRows.of(model, state, actuator)
        load = rows.factor * motors[n]
        bearing, dry = None, DryFriction(0.0)
        if rows.body is not None:
            joint = model.joints[rows.body]
            dry, bearing = DryFriction(joint.friction, joint.law), bearings.get(joint.name)
            load = load - torques[rows.at[0][0]]
            if bearing is not None:
                load = load + (bearing.force(z) if acting.passive else 0.0)
                if not is_absent(bearing.law.friction):
                    load = load + bearing.dry.shift
        else:
            pull = dot([k for _, k in rows.at], [pulls[at] for at, _ in rows.at])
            load = load - rows.armature * pull
        momenta.append(rows.momentum)
        loads.append(load)
        turn = dot([k for _, k in rows.at], [state.bias[at] for at, _ in rows.at])
        rubbing.append((list(rows.rate), turn, dry))
    lines = [row for row, _, _ in rubbing]
    effects = [factors.solve(row) for row in lines]
    slopes = [[-dot(momentum, effect) for effect in effects] for momentum in momenta]
    for i, line in enumerate(slopes):
        own = len(lines) - len(slopes) + i
        line[own] = line[own] + 1.0
    sliding = [_while_sliding(dry, dot(row, z)) for row, _, dry in rubbing]
    return [
        *along, *free, *(x for row in lines for x in row), *(x for row in effects for x in row),
        *(dot(row, free) + turn for row, turn, _ in rubbing),
        *sliding,
        *(maximum(dry.bound(0.0, 0.0), x) for (_, _, dry), x in zip(rubbing, sliding, strict=True)),
        *(x for row in slopes for x in row), *loads,
        *(1.0 / x.efficiency - 1.0 for x in lossy), *(1.0 - x.backdrive for x in lossy),
    ]  # fmt: skip


def _while_sliding(dry: DryFriction, rate: Scalar) -> Scalar:
    """The greatest force of dry friction of a row that slides at a rate."""
    return dry.bound(1.0 if is_zero(dry.law.velocity) else rate, 0.0)
