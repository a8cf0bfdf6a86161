"""Configurations with their conditions decomposed, and steps of a known rank onto these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.mobility import ClusterProblem
from robomodel.tolerances import TINY


@dataclass(frozen=True, slots=True)
class Points:
    """Configurations (n, nq) with their conditions: values, U, s and Vᵀ."""

    q: Array
    values: Array
    left: Array
    singular: Array
    right: Array

    @staticmethod
    def at(problem: ClusterProblem, q: Array) -> Points:
        """The conditions there; zeros fill up the singular values to one a column."""
        values, jacobian = problem.conditions(q)
        left, s, right = np.linalg.svd(jacobian, full_matrices=True)
        singular = np.zeros((len(q), jacobian.shape[2]))
        singular[:, : s.shape[1]] = s
        return Points(q, values, left, singular, right)

    def __getitem__(self, rows: Mask | Sequence[int]) -> Points:
        return Points(
            self.q[rows], self.values[rows], self.left[rows], self.singular[rows], self.right[rows]
        )

    @property
    def open(self) -> Array:
        """The largest gap of each configuration."""
        largest: Array = np.max(np.abs(self.values), axis=1, initial=0.0)
        return largest

    def null(self, rank: int) -> Array:
        """V₂ (n, columns, mobility), the motions for this rank."""
        return np.swapaxes(self.right[:, rank:], 1, 2)


def moved(problem: ClusterProblem, q: Array, step: Array) -> Array:
    """Configurations after steps in comparable units."""
    there: Array = problem.geometry.integrate(q, step * problem.unit)
    return there


def away(problem: ClusterProblem, q0: Array, q1: Array) -> Array:
    """The steps from one to the other, in comparable units."""
    steps: Array = problem.geometry.difference(q0, q1) / problem.unit
    return steps


def onto_conditions(
    problem: ClusterProblem, q: Array, rank: int, steps: int = 25
) -> tuple[Points, Array]:
    """Gauss–Newton steps of this rank onto {U₁ᵀφ = 0}, and the size of the last steps."""
    for n in range(steps + 1):
        at = Points.at(problem, q)
        c = np.einsum("nij,ni->nj", at.left[:, :, :rank], at.values)
        s = at.singular[:, :rank]
        damping = (1e-3 * np.linalg.norm(c, axis=1, keepdims=True)) ** 2 + 1e-28
        step = -np.einsum("nij,ni->nj", at.right[:, :rank], c * s / (s**2 + damping))
        size = np.linalg.norm(step, axis=1)
        if n == steps or np.all(size < 1e-14) or (n > 4 and np.all(size < 1e-9)):
            break
        q = moved(problem, q, step * np.minimum(1.0, 0.25 / np.maximum(size, TINY))[:, None])
    return at, size
