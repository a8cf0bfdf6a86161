"""Graphs over time in the coordinates of all joints of the spanning tree, loops as factors.

The counterpart of dependent coordinates in the plane for spatial mechanisms: "q" is a configuration
of the spanning tree, "v" and "a" are velocities and accelerations of all its joints (n); loops and
couplings are conditions Φ(q) = 0, K q̇ = 0 and K q̈ = k; the equations of motion are those of the
tree, projected onto the motions that keep loops closed, Gᵀ (tree's rnea) = tau.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics import rnea, rnea_derivatives
from robomodel.dynamics.baselines.projection import spanning_tree
from robomodel.dynamics.kinematics.tangents import Direction, moving, position_directions
from robomodel.estimation.factors import Errors, Prior, Trapezoid, Variables
from robomodel.estimation.graph import Graph
from robomodel.estimation.noise import NoiseLike
from robomodel.estimation.spaces import Configurations, Space, Vectors
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.function import Build
from robomodel.kernels.trace import Operand, Traced
from robomodel.model.arguments import as_array, as_numbers
from robomodel.model.configurations.functions import loop_gaps
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.motion.integrator_functions import Function, function
from robomodel.scalars import Scalar, Vector, dot, stack, sub, unstack


def gaps(model: Model, q: Vector) -> list[Scalar]:
    """Φ (m) at positions of all joints: loops' gaps, redundant ones too, and couplings'."""
    result: list[Scalar] = []
    for cluster in model.clusters:
        own = q[cluster.spanning_q]
        if cluster.implicit:
            result += loop_gaps(cluster, own)
        elif len(own) > cluster.nv:
            chosen = [own[i] for i in _independent(cluster)]
            wanted = cluster.constraint.positions(chosen)
            result += [
                sub(x, y)
                for i, (x, y) in enumerate(zip(own, wanted, strict=True))
                if i not in _independent(cluster)
            ]
    return result


def _independent(cluster: Cluster) -> list[int]:
    """Where a cluster's q stands among the positions of its joints, couplings being linear."""
    columns = range(cluster.q.stop - cluster.q.start)
    base = np.array(cluster.constraint.positions([0.0 for _ in columns]), dtype=float)
    moved = [
        np.array(cluster.constraint.positions([float(i == j) for i in columns]), dtype=float) - base
        for j in columns
    ]
    matrix = np.stack(moved, axis=-1)
    return [
        next(i for i, row in enumerate(matrix) if base[i] == 0.0 and np.array_equal(row, unit))
        for unit in np.eye(len(columns))
    ]


@dataclass(frozen=True)
class _Spanning:
    """A robot, and a factor on the positions of all its joints and their rates."""

    model: Model
    depends_on: ClassVar[tuple[str, ...]] = ("q", "v", "a")

    @property
    def variables(self) -> Variables:
        """Those that it depends on."""
        return tuple((name, 0) for name in self.depends_on)

    @property
    def affine(self) -> tuple[str, ...]:
        """The highest derivative."""
        return self.depends_on[1:][-1:]

    @property
    def n(self) -> int:
        """Number of velocities of all joints."""
        return self.model.n_joint_velocities

    @cached_property
    def count(self) -> int:
        """Number of conditions."""
        return len(gaps(self.model, joint_positions(self.model, self.model.neutral()).tolist()))

    @cached_property
    def tree(self) -> Model:
        """The robot without its loops and couplings."""
        return spanning_tree(self.model)

    @property
    def space(self) -> Configurations:
        """Where positions of all joints live."""
        return Configurations(self.tree)

    @property
    def independent(self) -> tuple[int, ...]:
        """Which velocities are the model's independent ones."""
        return tuple(c.spanning_v.start + k for c in self.model.clusters for k in c.columns)

    def _made(self, name: str, inputs: int, size: int, build: Build) -> Function:
        sizes = (self.tree.nq, *(self.n for _ in range(inputs - 1)), size)
        return function(self.model, f"spanning {name}", sizes, build)

    def _split(self, found: Array, count: int) -> Errors:
        """Values (K, m), and Jacobians (K, m, n) whose columns stand one after the other."""
        m, n = self.count, self.n
        blocks = [found[:, m + i * m * n : m + (i + 1) * m * n] for i in range(count)]
        return found[:, :m], [np.swapaxes(x.reshape(-1, n, m), 1, 2) for x in blocks]


def _with_slopes(
    tree: Model, values: Sequence[Scalar], q: Sequence[Traced], *rates: Sequence[Traced]
) -> list[Scalar]:
    """Values, and their derivatives by motions of q and by each number of its rates."""
    directions = position_directions(tree, q)
    directions += [{x: 1.0} for given in rates for x in given]
    operands: list[Operand] = list(values)
    slopes = differentiate(q[0].trace, operands, directions)
    return [*values, *(x for along in slopes for x in along)]


def _rates(
    tree: Model, values: Sequence[Scalar], q: Sequence[Traced], *along: Sequence[Traced]
) -> list[Scalar]:
    """Rates of values along velocities of q, which change by their own rates."""
    direction: Direction = {}
    for cluster in tree.clusters:
        direction |= moving(tree, cluster, q, along[0])
    for of, rate in pairwise(along):
        direction |= dict(zip(of, rate, strict=True))
    operands: list[Operand] = list(values)
    return list(differentiate(q[0].trace, operands, [direction])[0])


@dataclass(frozen=True)
class _LoopCondition(_Spanning):
    """Φ(q) = 0, differentiated by time once a rate that it depends on."""

    @property
    def rows(self) -> int:
        """Conditions."""
        return self.count

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The condition's values; ``data`` are not used."""
        m, n, inputs = self.count, self.n, len(self.depends_on)

        def build(q: Sequence[Traced], *rates: Sequence[Traced]) -> list[Scalar]:
            values = gaps(self.model, q)
            for k in range(1, inputs):
                values = _rates(self.tree, values, q, *rates[:k])
            return _with_slopes(self.tree, values, q, *rates)

        made = self._made(f"loops {inputs}", inputs, m + inputs * m * n, build)
        return self._split(made(*x), inputs)


@dataclass(frozen=True)
class LoopPositions(_LoopCondition):
    """Φ(q) = 0: loops are closed and couplings kept."""

    depends_on = ("q",)


@dataclass(frozen=True)
class LoopVelocities(_LoopCondition):
    """Φ_q q̇ = 0."""

    depends_on = ("q", "v")


@dataclass(frozen=True)
class LoopAccelerations(_LoopCondition):
    """Φ_q q̈ + Φ̇_q q̇ = 0."""


@dataclass(frozen=True)
class SpanningDynamics(_Spanning):
    """Gᵀ (inverse dynamics of the tree) - tau [N m, N]; ``data``: tau (nv)."""

    @property
    def rows(self) -> int:
        """nv."""
        return self.model.nv

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The tree's forces along the motions that keep loops closed."""
        model, n, nv = self.model, self.n, self.model.nv

        def build(q: Sequence[Traced], f: Vector) -> list[Scalar]:
            columns: list[list[Scalar]] = [[0.0] * n for _ in range(nv)]
            for cluster in model.clusters:
                rows = cluster.constraint.jacobian(q[cluster.spanning_q])
                for i, column in enumerate(zip(*rows, strict=True), cluster.v.start):
                    columns[i][cluster.spanning_v] = list(column)
            forces = [dot(column, f) for column in columns]
            return [*(g for column in columns for g in column), *_with_slopes(self.tree, forces, q)]

        f = rnea(self.tree, *x)
        found = self._made("forces", 2, nv * n + nv + nv * n, build)(x[0], f)
        across = found[:, : nv * n].reshape(-1, nv, n)
        e, turned = found[:, nv * n : nv * n + nv], found[:, nv * n + nv :].reshape(-1, n, nv)
        slopes = [across @ slope for slope in rnea_derivatives(self.tree, *x)]
        slopes[0] = slopes[0] + np.swapaxes(turned, 1, 2)
        return e if data is None else e - data, slopes


@dataclass(frozen=True)
class ChosenTrapezoid:
    """The trapezoidal rule for some directions of x: those of the independent velocities."""

    name: str
    rate: str
    step: float
    chosen: tuple[int, ...]
    space: Space

    @property
    def variables(self) -> Variables:
        """x and its rate at both times."""
        return ((self.name, 0), (self.name, 1), (self.rate, 0), (self.rate, 1))

    @property
    def affine(self) -> tuple[str, ...]:
        """As of the rule for all directions."""
        return self.rule.affine

    @property
    def rule(self) -> Trapezoid:
        """The rule for all directions."""
        return Trapezoid(self.name, self.rate, self.step, self.space)

    @property
    def rows(self) -> int:
        """Number of directions."""
        return len(self.chosen)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """x_t+1 ⊖ x_t - h (ẋ_t + ẋ_t+1) / 2."""
        e, slopes = self.rule.evaluate(x, None)
        rows = list(self.chosen)
        e = e[:, rows]
        return e if data is None else e - data, [slope[:, rows] for slope in slopes]


def joint_positions(model: Model, q: ArrayLike) -> Array:
    """Positions of all joints, the spanning tree's configuration, at a model's q (..., nq)."""
    at = as_array(q, model.nq, "q", "nq")
    return stack(model.spanning_positions(unstack(at)), at.shape[:-1])


def forward(
    model: Model,
    count: int,
    step: float,
    *,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike = 0.0,
    force_noise: NoiseLike = 0.0,
) -> Graph:
    """Forward dynamics in all joints' coordinates from q and v at the first time.

    ``q``: positions of all joints, as :func:`joint_positions`; ``v`` (n): their velocities.

    Conditions hold exactly for positions, rates and accelerations; independent joints are
    integrated by the trapezoidal rule. As many equations as unknowns: the solution is that of
    :func:`robomodel.estimation.problems.motion` in independent coordinates.
    """
    positions = LoopPositions(model)
    vectors = Vectors(positions.n)
    spaces: dict[str, Space] = {"q": positions.space, "v": vectors, "a": vectors}
    graph = Graph(spaces, count)
    for name, value in (("q", q), ("v", v)):
        graph = graph.add(Prior(name, spaces[name]), 0.0, times=[0], data=value)
    later = np.arange(1, count)  # the priors say it of the first
    graph = graph.add(positions, 0.0, times=later)
    graph = graph.add(LoopVelocities(model), 0.0, times=later)
    graph = graph.add(LoopAccelerations(model), 0.0)
    for name, rate in (("q", "v"), ("v", "a")):
        factor = ChosenTrapezoid(name, rate, step, positions.independent, spaces[name])
        graph = graph.add(factor, 0.0)
    forces = np.broadcast_to(as_numbers(tau, "tau"), (count, model.nv))
    return graph.add(SpanningDynamics(model), force_noise, data=forces)
