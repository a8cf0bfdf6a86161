"""The error of open trees: of accelerations, joint by joint, over the sheet of the limb's joints.

At random states of the robot (:func:`exact_states`) the tree gets the exact torques. Of joint j

    e = |â - a| / (s √(M⁻¹)ⱼⱼ),

where s is the size of gravity, so that s √(M⁻¹)ⱼⱼ is what joint j accelerates by (root mean square)
in a motion of this energy at this state: an error without unit, which no small number divides, and
which is as large for a finger as for the arm that carries it. Where the joint's effort gives less,
effort (M⁻¹)ⱼⱼ, by what motors give it at this state, it takes the place of s √(M⁻¹)ⱼⱼ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from robomodel.arrays import Array, median, quantile
from robomodel.dynamics.kinematics.state import (
    NO_FORCES,
    Configuration,
    State,
    as_array,
)
from robomodel.dynamics.recursions.aba import accelerations
from robomodel.dynamics.recursions.crba import inertia_at
from robomodel.dynamics.recursions.rnea import forces_at
from robomodel.dynamics.tree_map import TreeMap
from robomodel.model.elements import joint_slices
from robomodel.model.model import Model
from robomodel.opentree.tree_joints import TOLD, ClusterTree, closing, states_within
from robomodel.reach.limb import LIMB_SEED
from robomodel.reach.motions import ClusterMotion
from robomodel.scalars import Scalar, stack, unstack
from robomodel.spatial import RigidInertia
from robomodel.spatial.vectors import as_matrix
from robomodel.tolerances import NOTHING, TINY

FITTED = (200, 1600)  # states of a fit, each of which takes nv (11 bodies)² operations
FALL = 10.0  # rad/s², sizes/s²: accelerations of robots on which gravity has no effect
STATES_SEED = LIMB_SEED + 1
GOOD, FAIR = 0.03, 0.10  # of the worst joint's median: a tree will do, and with care
WEAK = 1 / 3  # of a joint's motion: efforts that give less are named, as they may be placeholders


class _Error(NamedTuple):
    median: float
    worst: float


class Error(_Error):
    """Median and worst over the states of a joint's relative error of acceleration.

    ``interval``: the median over the whole range is between these with a probability of 95 %,
    whatever the distribution of errors, by the number of states that are ``independent`` of each
    other, or of their ``positions``, if some are taken twice. ``each`` (n,): the errors.
    """

    interval: tuple[float, float]
    each: Array
    independent: int
    positions: int

    def __new__(
        cls,
        each: Array,
        worst: float | None = None,
        independent: int | None = None,
        positions: int | None = None,
    ) -> Error:
        """The error of these at n states, independent ones by default."""
        n, ordered = len(each), np.sort(each)
        made = super().__new__(cls, median(ordered), float(ordered[-1]) if worst is None else worst)
        made.each, made.independent = each, n if independent is None else min(n, independent)
        made.positions = n if positions is None else min(n, positions)
        count = min(made.independent, made.positions)
        rank = 1 + (median_rank(count) - 1) * n // count
        made.interval = float(ordered[rank - 1]), float(ordered[-rank])
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.each, self.worst, self.independent, self.positions

    @classmethod
    def of(cls, errors: Array, states: ExactStates | None = None) -> Error:
        """Errors (n, velocities) of a joint; its component with the largest median counts."""
        component = int(np.argmax(quantile(errors, 0.5)))
        counts = (states.independent, states.positions) if states else ()
        return cls(errors[:, component], float(np.max(errors)), *counts)

    def is_worse(self, other: Error) -> bool:
        """True if it is the larger one at more of the same states than chance leaves, with 95 %.

        Where neither is larger, states say nothing.
        """
        share = self.independent / len(self.each)
        n = math.ceil(share * np.count_nonzero(self.each != other.each))
        larger = share * np.count_nonzero(self.each > other.each)
        return bool(larger > max(n - median_rank(n), n // 2))


@cache
def median_rank(n: int) -> int:
    """The rank from either end of n values between which a median is, with 95 % at least.

    The number of values below it is binomial, with a probability of a half.
    """
    rank, below = 0, 1
    while 40 * below <= 2**n:
        rank += 1
        below += math.comb(n, rank)
    return max(rank, 1)


Errors = Mapping[str, Error]
"""The error of each joint, by name."""


# ---- exact states --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExactStates:
    """States (n) of a robot with its torques, in its independent velocities.

    ``size``: s, the accelerations' root mean square in the norm of the robot's inertia. ``mass``
    (n, nv, nv), ``gravity`` (n, nv): torques at rest. ``balanced``: gravity acts on no joint, or is
    balanced. ``independent``: how many are independent of each other, at least; ``positions``: how
    many positions of a cluster they have, at least, as few are left of narrowed ranges.
    """

    state: State
    q: Array
    v: Array
    a: Array
    tau: Array
    mass: Array
    gravity: Array
    size: float
    balanced: bool
    independent: int
    positions: int
    _on: dict[tuple[int, ...], TreeStates] = field(default_factory=dict, repr=False)

    def anew(self) -> ExactStates:
        """The same states for trees with other followers."""
        return replace(self, _on={})

    def on(self, tree: TreeMap) -> TreeStates:
        """These states in an open tree's coordinates, of trees that differ in inertias alone."""
        key = (*tree.positions, *tree.velocities)
        if key not in self._on:
            self._on[key] = self._in_coordinates(tree)
        return self._on[key]

    def _in_coordinates(self, tree: TreeMap) -> TreeStates:
        n, state = len(self.q), self.state
        g = jacobian_of(state, tree.velocities, n)
        bias = stack([state.bias[r] for r in tree.velocities], (n,))
        back = np.linalg.inv(g)
        return TreeStates(
            stack([state.positions[i] for i in tree.positions], (n,)),
            np.einsum("nij,nj->ni", g, self.v),
            np.einsum("nij,nj->ni", g, self.a) + bias,
            np.einsum("nji,nj->ni", back, self.tau),
            np.swapaxes(back, 1, 2) @ self.mass @ back,
            np.einsum("nji,nj->ni", back, self.gravity),
            self.size,
            self.balanced,
        )

    def accelerations(self, rows: Sequence[int]) -> Array:
        """Accelerations (n, rows) of these of the robot's spanning velocities."""
        bias = stack([self.state.bias[r] for r in rows], (len(self.q),))
        linear = np.einsum("nij,nj->ni", jacobian_of(self.state, rows, len(self.q)), self.a)
        return np.asarray(linear + bias)


@dataclass(frozen=True, eq=False)
class TreeStates:
    """Exact positions, velocities, accelerations and torques of a tree's joints (n, tree.nv).

    ``mass`` (n, nv, nv): the robot's inertia in these coordinates; ``gravity``: torques at rest.
    """

    t: Array
    dt: Array
    ddt: Array
    tau: Array
    mass: Array
    gravity: Array
    size: float
    balanced: bool
    _states: dict[tuple[bool, ...], State] = field(default_factory=dict, repr=False)

    def state(self, tree: Model) -> State:
        """The states of a tree: of all that differ in inertias alone, what moves is done once."""
        axes = tuple(node.axisymmetric for node in tree.nodes)  # which do not turn with a joint
        if axes not in self._states:
            self._states[axes] = State(tree, unstack(self.t), (), unstack(self.dt))
        return self._states[axes].of(tree)


def jacobian_of(state: Configuration, rows: Sequence[int], n: int) -> Array:
    """G's rows (n, rows, nv)."""
    model = state.model
    result = np.zeros((n, len(rows), model.nv))
    cluster_of = {r: c for c in model.clusters
                  for r in range(c.spanning_v.start, c.spanning_v.stop)}  # fmt: skip
    for i, r in enumerate(rows):
        result[:, i, cluster_of[r].v] = stack(state.rows[r], (n,))
    return result


def exact_states(
    model: Model,
    tree: TreeMap,
    trees: Sequence[ClusterTree],
    *,
    check: bool,
    seed: int = STATES_SEED,
) -> ExactStates:
    """Random states over a tree's range: equal energies in all directions, as large as gravity's.

    Accelerations are of the size :data:`FALL` if gravity has no effect on the robot, or is
    balanced. ``check``: draw other states than for a fit. ``seed``: of these.
    """
    rng = np.random.default_rng(seed + check)
    n = states_within(closing(model), TOLD)
    if not check:
        work = model.nv * (11.0 * len(model.bodies)) ** 2
        n = states_within(work, FITTED)
    q = _configurations(model, trees, rng, n, check=check)
    still = State(model, unstack(q), (), [0.0] * model.nv)
    mass, gravity = (as_array(x, n) for x in (inertia_at(still), forces_at(still, still.v)))
    back = np.linalg.inv(jacobian_of(still, tree.velocities, n))
    low = np.linalg.cholesky(np.swapaxes(back, 1, 2) @ mass @ back)
    lean = np.linalg.solve(low, np.einsum("nji,nj->ni", back, gravity)[..., None])
    size = math.sqrt(float(np.mean(lean**2)))
    units = np.concatenate([ClusterMotion.of(model, c).unit for c in model.clusters])
    sizes = units[list(tree.velocities), None] * low
    without = FALL * math.sqrt(float(np.mean(np.sum(sizes**2, axis=(1, 2)))) / model.nv)
    balanced = size < 1e-3 * without  # gravity hardly acts on a balanced robot
    if balanced:
        size = without
    up = back @ np.linalg.inv(np.swapaxes(low, 1, 2))
    draws = rng.standard_normal((2, n, model.nv)) * size
    # accelerations are 10 rad/s times velocities
    v = np.einsum("nij,nj->ni", up, draws[0] / 10.0)
    state = still.moving(unstack(v))
    along = stack([state.bias[r] for r in tree.velocities], (n,))
    a = np.einsum("nij,nj->ni", up, draws[1]) - np.einsum("nij,nj->ni", back, along)
    tau = as_array(forces_at(state, unstack(a)), n)
    independent = min((each.independent for each in trees), default=n)
    positions = min((len(each.others) for each in trees), default=n)
    return ExactStates(
        state, q, v, a, tau, mass, gravity, size, balanced, min(n, independent), min(n, positions)
    )


def _configurations(
    model: Model,
    trees: Sequence[ClusterTree],
    rng: np.random.Generator,
    n: int,
    *,
    check: bool,
) -> Array:
    """Configurations (n, nq), the clusters' drawn independently of each other, neutral first."""
    q = np.tile(model.neutral(), (n, 1))
    for each in trees:
        cluster, positions = each.cluster, each.others if check else each.positions
        rounds = math.ceil(n / len(positions))  # each is taken once before one is again
        order = np.concatenate([rng.permutation(len(positions)) for _ in range(rounds)])
        picks = np.concatenate([[0], order[: n - 1]])
        links = dict(zip(cluster.bodies, cluster.geometry.links, strict=True))
        for body, part, _ in joint_slices(model, cluster):
            first = cluster.q.start
            q[:, first + part.start : first + part.stop] = positions[picks][
                :, links[body].positions
            ]
    return q


# ---- the measure ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Measure:
    """The errors of a robot's open trees at states: all trees of the robot have the same.

    ``joints``: the names of joints, with the places of their velocities in ``rows``, of the robot's
    spanning velocities. ``exact`` (n, rows): their accelerations; ``scale`` (n, rows): what their
    errors are relative to; ``efforts`` (n,) of some, by name. ``weak``: what efforts give as shares
    (n,) of the joint's motion, of joints for which the median is less than :data:`WEAK`, by name.
    """

    states: ExactStates
    joints: tuple[tuple[str, slice], ...]
    rows: tuple[int, ...]
    exact: Array
    scale: Array
    efforts: Mapping[str, Array]
    weak: Mapping[str, Array]

    @classmethod
    def of(
        cls, states: ExactStates, joints: Sequence[int], efforts: Mapping[str, Array]
    ) -> Measure:
        """The measure of these bodies' joints; some have efforts (n,) [N m or N], by name."""
        model, n = states.state.model, len(states.q)
        rows, places = list[int](), list[tuple[str, slice]]()
        for body in joints:
            mine = list(model.nodes[body].freedoms)
            places.append((model.joints[body].name, slice(len(rows), len(rows) + len(mine))))
            rows += mine
        g = jacobian_of(states.state, rows, n)
        mobility = np.einsum("nri,nir->nr", g, np.linalg.solve(states.mass, np.swapaxes(g, 1, 2)))
        scale, weak = states.size * np.sqrt(mobility), {}
        for name, part in places:
            if name in efforts:
                effort = np.where(efforts[name] > 0.0, efforts[name], np.inf)[:, None]
                with np.errstate(over="ignore"):  # the greatest number is no limit
                    given = np.minimum(scale[:, part], effort * mobility[:, part])
                share = given[:, 0] / np.maximum(scale[:, part.start], TINY)
                if median(share) < WEAK:
                    weak[name] = share
                scale[:, part] = given
        exact = states.accelerations(rows)
        # where a joint rests, as at its dead points, nothing is relative to its motion
        rests = scale <= NOTHING * np.median(scale, axis=0)
        scale = np.where(rests, np.inf, np.maximum(scale, TINY))
        return cls(states, tuple(places), tuple(rows), exact, scale, efforts, weak)

    def scales(self, tree: TreeMap) -> Array:
        """Scales of errors of a tree's velocities (n, tree.nv)."""
        return self.scale[:, [self.rows.index(r) for r in tree.velocities]]

    def errors(self, tree: TreeMap) -> dict[str, Error]:
        """The errors of a tree, with its relation to the robot."""
        return self.errors_of(tree, [tree.model])[0]

    def errors_of(self, tree: TreeMap, models: Sequence[Model]) -> list[dict[str, Error]]:
        """The errors of trees that differ from ``tree`` in inertias alone."""
        states, alike = self.states.on(tree), dict[tuple[bool, ...], list[int]]()
        for i, model in enumerate(models):
            axes = tuple(node.axisymmetric for node in model.nodes)  # as such bodies are counted
            alike.setdefault(axes, []).append(i)
        result = [dict[str, Error]() for _ in models]
        for some in alike.values():
            state = states.state(_side_by_side([models[i] for i in some]))
            with np.errstate(all="ignore"):
                found = accelerations(state, unstack(states.tau), NO_FORCES)
            for k, i in enumerate(some):
                mine = [x[k] if np.ndim(x) == 2 else x for x in map(np.asarray, found)]
                ddt = as_array(mine, len(states.t))
                for name, off in self.relative(models[i], states, ddt).items():
                    result[i][name] = Error.of(off, self.states)
        return result

    def of_followers(self, tree: TreeMap) -> dict[str, Error]:
        """The errors that are left if all that moves by itself accelerates as in the robot.

        They are those of followers, which inertias make no less.
        """
        states = self.states.on(tree)
        off = self.relative(tree.model, states, states.ddt)
        return {name: Error.of(each, self.states) for name, each in off.items()}

    def relative(self, tree: Model, states: TreeStates, ddt: Array) -> dict[str, Array]:
        """Relative errors (n, velocities) of each joint, of a tree's accelerations (n, tree.nv)."""
        found = self._spanning(tree, states, ddt)
        result = {}
        for name, part in self.joints:
            off = np.abs(found[name] - self.exact[:, part]) / self.scale[:, part]
            result[name] = np.where(np.isfinite(off), off, np.inf)
        return result

    def _spanning(self, tree: Model, states: TreeStates, ddt: Array) -> dict[str, Array]:
        """Accelerations of all of the tree's joints (n, velocities), by name."""
        found = stack(states.state(tree).accelerations(unstack(ddt)), (len(ddt),))
        return {
            joint.name: found[:, list(node.freedoms)]
            for joint, node in zip(tree.joints, tree.nodes, strict=True)
        }


def _side_by_side(models: Sequence[Model]) -> Model:
    """Models (k) as one, whose inertias are arrays (k, 1) beside states (n,)."""

    def column(values: Sequence[Scalar]) -> Any:
        alike = all(x == values[0] for x in values)
        return values[0] if alike else np.array(values, dtype=float)[:, None]

    nodes = []
    for first, *others in zip(*(model.nodes for model in models), strict=True):
        every = [first.inertia, *(node.inertia for node in others)]
        rows = [[column([x.inertia[i][j] for x in every]) for j in range(3)] for i in range(3)]
        x, y, z = (column([each.h[i] for each in every]) for i in range(3))
        inertia = RigidInertia(column([each.mass for each in every]), (x, y, z), as_matrix(rows))
        armature = column([node.armature for node in (first, *others)])
        nodes.append(replace(first, inertia=inertia, armature=armature))
    return replace(models[0], nodes=tuple(nodes))


def worst_joint(errors: Errors) -> tuple[str, Error]:
    """The joint with the largest median."""
    return max(errors.items(), key=lambda each: (each[1].median, each[1].worst))


def percent(error: float) -> str:
    """A relative error in words."""
    return f"{float(f'{100.0 * error:.2g}'):g} %" if math.isfinite(error) else "all bounds"
