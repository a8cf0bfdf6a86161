"""Graphs over time in the coordinates of all joints of the spanning tree, loops as factors.

The counterpart of dependent planar coordinates for spatial mechanisms: "q" is a configuration of
the spanning tree, "v" and "a" are velocities and accelerations of all its joints (n). Loops and
couplings are conditions Φ(q) = 0, K q̇ = 0 and K q̈ = k; the equations of motion are those of the
tree, projected onto the motions with closed loops: Gᵀ (tree's rnea) = tau.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics import rnea, rnea_derivatives
from robomodel.dynamics.baselines import spanning_tree
from robomodel.dynamics.kinematics.state import Direction, moving
from robomodel.estimation.factors import (
    Combination,
    Errors,
    FactorBase,
    Prior,
    States,
    TracedFactor,
    Trapezoid,
)
from robomodel.estimation.graph import Graph, NoiseLike
from robomodel.estimation.spaces import Configurations, Space, Vectors
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.trace import Traced
from robomodel.model.arguments import as_array, as_numbers
from robomodel.model.configurations.closing import loop_gaps
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, dot, stack, unstack


def gaps(model: Model, q: Vector) -> list[Scalar]:
    """Φ (m) at positions of all joints: gaps of loops, with redundant rows, and of couplings."""
    result: list[Scalar] = []
    for cluster in model.clusters:
        positions = q[cluster.spanning_q]
        if cluster.implicit:
            result += loop_gaps(cluster, positions)
        elif len(positions) > cluster.nv:
            independent = [
                link.q + i
                for link in cluster.geometry.links
                if link.v in cluster.columns
                for i in range(link.joint.nq)
            ]
            closed = cluster.constraint.positions([positions[i] for i in independent])
            result += [
                x - y
                for i, (x, y) in enumerate(zip(positions, closed, strict=True))
                if i not in independent
            ]
    return result


def _rates(
    tree: Model, values: Sequence[Scalar], q: Sequence[Traced], *along: Sequence[Traced]
) -> list[Scalar]:
    """Time derivatives of values; ``along``: velocities of q, then accelerations, and so on."""
    direction: Direction = {}
    for cluster in tree.clusters:
        direction |= moving(tree, cluster, q, along[0])
    for of, rate in pairwise(along):
        direction |= dict(zip(of, rate, strict=True))
    return list(differentiate(q[0].trace, values, [direction])[0])


@dataclass(frozen=True)
class _Spanning(FactorBase):
    """Base of factors on the positions of all joints of a robot and their rates."""

    model: Model

    @property
    def n(self) -> int:
        """Number of velocities of all joints."""
        return self.model.n_joint_velocities

    @cached_property
    def tree(self) -> Model:
        """The robot without loops and couplings."""
        return spanning_tree(self.model)

    @property
    def space(self) -> Configurations:
        """The space of the positions of all joints."""
        return Configurations(self.tree)


@dataclass(frozen=True)
class _LoopCondition(_Spanning):
    """Φ(q) = 0, differentiated once for each rate on which it depends."""

    depends_on: ClassVar[tuple[str, ...]] = ("q", "v", "a")

    def __post_init__(self) -> None:
        closed = joint_positions(self.model, self.model.neutral()).tolist()
        self._describe(self.depends_on, len(gaps(self.model, closed)), self.depends_on[1:][-1:])

    @cached_property
    def _condition(self) -> TracedFactor:
        def build(q: Sequence[Traced], *rates: Sequence[Traced]) -> list[Scalar]:
            values = gaps(self.model, q)
            for k in range(1, len(self.depends_on)):
                values = _rates(self.tree, values, q, *rates[:k])
            return values

        rates: States = dict.fromkeys(self.depends_on[1:], Vectors(self.n))
        label = f"spanning loops {len(self.depends_on)}"
        return TracedFactor(self.model, label, {"q": self.space, **rates}, self.rows, build)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The condition's values, less data."""
        return self._condition.evaluate(x, data)


@dataclass(frozen=True)
class LoopPositions(_LoopCondition):
    """Φ(q) = 0: closed loops and couplings."""

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

    def __post_init__(self) -> None:
        self._describe(("q", "v", "a"), self.model.nv, ("a",))

    @cached_property
    def _projection(self) -> TracedFactor:
        """Gᵀ f."""

        def build(q: Vector, f: Vector) -> list[Scalar]:
            forces: list[Scalar] = []
            for cluster in self.model.clusters:
                rows = cluster.constraint.jacobian(q[cluster.spanning_q])
                forces += [dot(g, f[cluster.spanning_v]) for g in zip(*rows, strict=True)]
            return forces

        states: States = {"q": self.space, "f": Vectors(self.n)}
        return TracedFactor(self.model, "spanning forces", states, self.rows, build)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The tree's forces projected onto the motions with closed loops, less data."""
        forces = rnea(self.tree, *x)
        e, (turned, across) = self._projection.evaluate((x[0], forces), data)
        by_q, by_v, by_a = (across @ slope for slope in rnea_derivatives(self.tree, *x))
        return e, [by_q + turned, by_v, by_a]


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

    ``q``: positions of all joints from :func:`joint_positions`; ``v`` (n): their velocities.

    Conditions on positions, rates and accelerations are exact; independent joints are integrated by
    the trapezoidal rule. There are as many equations as unknowns: the solution equals that of
    :func:`robomodel.estimation.problems.motion` in independent coordinates.
    """
    positions = LoopPositions(model)
    vectors = Vectors(positions.n)
    spaces: dict[str, Space] = {"q": positions.space, "v": vectors, "a": vectors}
    graph = Graph(spaces, count)
    for name, value in (("q", q), ("v", v)):
        graph = graph.add(Prior(name, spaces[name]), 0.0, times=[0], data=value)
    later = np.arange(1, count)  # the priors fix the first
    graph = graph.add(positions, 0.0, times=later)
    graph = graph.add(LoopVelocities(model), 0.0, times=later)
    graph = graph.add(LoopAccelerations(model), 0.0)
    independent = [c.spanning_v.start + k for c in model.clusters for k in c.columns]
    for name, rate in (("q", "v"), ("v", "a")):
        rule = Trapezoid(name, rate, step, spaces[name])
        graph = graph.add(Combination(rule, np.eye(positions.n)[independent]), 0.0)
    forces = np.broadcast_to(as_numbers(tau, "tau"), (count, model.nv))
    return graph.add(SpanningDynamics(model), force_noise, data=forces)
