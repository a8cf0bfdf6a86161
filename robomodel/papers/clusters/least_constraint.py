"""Gauss's principle of least constraint over clusters, and its cost to go (002, VII-B).

A body without inertia in some direction has no unconstrained acceleration there. Its cost keeps
what depends on accelerations, and leaves out the constant, which is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robomodel.model.arguments import as_array
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.papers.clusters.cluster_operators import ClusterOperators, operators
from robomodel.papers.clusters.recursions import base_acceleration, cluster_accelerations
from robomodel.papers.matrices import pseudoinverse, solved, times, transposed

WITHOUT_INERTIA = 1e-14  # of a body's largest inertia: rounding


@dataclass(frozen=True, eq=False)
class CostToGo:
    """A quadratic Gauss cost of a cluster's acceleration a (..., 6n).

    ½ (a - ã)ᵀ I (a - ã) + constant, with ã the ``unconstrained`` acceleration: of the bodies
    without joints, (40), or, as the optimal cost to go of a subtree, without the cluster's own
    joint alone, all others in place, (41), (43), (44). ``loose``: forces in directions without
    inertia, zero where there are none.
    """

    inertia: Array = field(repr=False)
    unconstrained: Array = field(repr=False)
    loose: Array = field(repr=False)
    constant: Array

    @classmethod
    def of(cls, inertia: Array, force: Array, constant: Array) -> CostToGo:
        """The cost whose slope at zero acceleration is -``force``."""
        free = times(pseudoinverse(inertia, WITHOUT_INERTIA), force)
        return cls(inertia, free, force - times(inertia, free), constant)

    def __call__(self, acceleration: ArrayLike) -> Array:
        """The cost at a spatial acceleration (..., 6n) of the cluster, against gravity.

        Raises ValueError for another number of rows.
        """
        size = self.inertia.shape[-1]
        a = as_array(acceleration, size, "acceleration", "six times the cluster's bodies")
        square = half_square(self.inertia, a - self.unconstrained)
        cost: Array = square - np.sum(self.loose * a, axis=-1) + self.constant
        return cost


@dataclass(frozen=True, eq=False)
class GaussPrinciple:
    """Gauss's principle of least constraint of a robot at a state, (39).

    Attributes:
        costs: of each cluster alone, without joints: a term of (39), with (40).
        cost_to_go: of each cluster's subtree, (43).
    """

    model: Model
    objects: tuple[ClusterOperators, ...] = field(repr=False)
    costs: tuple[CostToGo, ...] = field(repr=False)
    cost_to_go: tuple[CostToGo, ...] = field(repr=False)

    def accelerations(self, a: ArrayLike) -> tuple[Array, ...]:
        """The clusters' spatial accelerations at independent accelerations (..., nv), (33).

        They are what ``cost_to_go`` takes. The fixed base accelerates against gravity.
        """
        wanted = as_array(a, self.model.nv, "a", "nv")
        return tuple(cluster_accelerations(self.model, self.objects, wanted))

    def cost(self, a: ArrayLike) -> Array:
        """The Gauss cost (...) at independent accelerations (..., nv), (39).

        Where joints have armature it has their part too, ½ Σ armature q̈².
        """
        total = np.zeros(())
        each = zip(self.objects, self.accelerations(a), self.costs, strict=True)
        for o, acceleration, cost in each:
            total = total + cost(acceleration)
            joints = times(o.G, np.asarray(a, dtype=float)[..., list(o.dofs)]) + o.g
            total = total + 0.5 * np.sum(o.armature * joints * joints, axis=-1)
        return total

    @cached_property
    def minimum(self) -> Array:
        """The least cost (...): that of the robot's motion under tau, (42) at the fixed base."""
        total = np.zeros(())
        for o, cost in zip(self.objects, self.cost_to_go, strict=True):
            if o.parent < 0:
                total = total + best_child(o, cost, times(o.X, base_acceleration(self.model)))
        return total


def gauss(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> GaussPrinciple:
    """Gauss's principle at q (..., nq), v (..., nv) and forces tau (..., nv), (39)-(54).

    Raises ValueError for arrays of other sizes.
    """
    objects = operators(model, q, v, tau)
    forces: list[Array] = []
    for o in objects:
        _, _, own = o.articulated()
        forces.append(times(o.T_active, own) - o.bias)
    for o in objects:
        if o.parent >= 0:  # reactions of the children's forces, (40)
            reaction = times(transposed(o.X), times(o.T_active, o.articulated()[2]))
            forces[o.parent] = forces[o.parent] - reaction
    zero = np.zeros(())
    costs = tuple(CostToGo.of(o.inertia, f, zero) for o, f in zip(objects, forces, strict=True))
    return GaussPrinciple(model, objects, costs, _costs_to_go(objects, costs))


def _costs_to_go(
    objects: Sequence[ClusterOperators], costs: Sequence[CostToGo]
) -> tuple[CostToGo, ...]:
    """From the tips inwards: a cluster's own cost and its children's best, (42)."""
    at_rest = [cost(np.zeros(cost.inertia.shape[-1])) for cost in costs]
    found: list[CostToGo] = []
    for k in reversed(range(len(objects))):
        o = objects[k]
        inertia, bias, tau = o.articulated()
        cost = CostToGo.of(inertia, times(o.T_active, tau) - bias, np.zeros(()))  # (44)
        still = np.zeros(inertia.shape[-1])
        cost = replace(cost, constant=at_rest[k] - cost(still))
        found.append(cost)
        if o.parent >= 0:
            best = best_child(o, cost, np.zeros(o.X.shape[-2]))
            at_rest[o.parent] = at_rest[o.parent] + best
    return tuple(found[::-1])


def best_child(o: ClusterOperators, cost: CostToGo, carried: Array) -> Array:
    """The least cost of a cluster's subtree where its output bodies' acceleration is given, (45).

    ``carried``: X times that acceleration. The best joint acceleration is that of (51), (52).
    """
    given = carried + o.c
    a = solved(o.D, (o.u - times(transposed(o.U), given))[..., None])[..., 0]
    joints = times(o.G, a) + o.g
    rotors: Array = 0.5 * np.sum(o.armature * joints * joints, axis=-1)
    return cost(given + times(o.S, a)) + rotors


def half_square(matrix: Array, x: Array) -> Array:
    """½ xᵀ matrix x."""
    result: Array = 0.5 * np.einsum("...i,...ij,...j->...", x, matrix, x)
    return result
