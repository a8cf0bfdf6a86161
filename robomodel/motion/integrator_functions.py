"""Traced functions for integrators: rates, closing of loops, velocities of all joints.

Robots that are too large to be compiled unless asked, and machines without LLVM, run the programs
on NumPy arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.state import Configuration, State
from robomodel.kernels import Iteration
from robomodel.kernels.function import Build, TracedFunction
from robomodel.kernels.program import Dtype
from robomodel.model.configurations.closing import left_open, settled
from robomodel.model.derived import LARGE_ROBOT, cache_key, cached_on_model
from robomodel.model.model import Model
from robomodel.motion.tangent import (
    StepError,
    in_tangents,
    linkages,
    numbers,
    regularity,
    renewed,
)
from robomodel.scalars import Scalar, Vector
from robomodel.tolerances import CLOSED, ROUNDING

Function = TracedFunction


def function(
    model: Model,
    name: str,
    sizes: Sequence[int],
    build: Build,
    *,
    iteration: Iteration | None = None,
    backend: str = "compiled",
    dtype: Dtype = "float64",
) -> TracedFunction:
    """The function that ``build`` writes on traced arguments, made once and kept with the model.

    ``name`` identifies it on this robot, together with ``dtype``.
    """
    key = (function, name, backend, dtype)
    if key not in model._derived:
        model._derived[key] = TracedFunction(
            name.split(" ", 1)[0],
            {f"x{k}": size for k, size in enumerate(sizes[:-1])},
            {"y": (sizes[-1],)},
            build,
            iteration=iteration,
            dtype=dtype,
            compiles=backend == "compiled" and 0 < len(model.nodes) <= LARGE_ROBOT,
            owner=model,
            key=cache_key(model, name),
        )
    traced: TracedFunction = model._derived[key]
    return traced


# ---- the functions -------------------------------------------------------------------------------


def openness(model: Model, backend: str = "compiled") -> Function:
    """q → Σ of the squared residuals of loops and couplings, redundant rows included.

    Rows that a file's rounding leaves open are left out.
    """
    sizes = (model.nq, 1)
    return function(model, "openness", sizes, lambda q: [left_open(model, q)], backend=backend)


# ---- in tangent coordinates ----------------------------------------------------------------------
# x: q, z and the bases of the linkages (:mod:`robomodel.motion.tangent`), one after the other


def in_tangent(
    model: Model, name: str, size: int, build: Callable[..., list[Scalar]], *more: int
) -> Function:
    """A function of x, and of arguments of these sizes: ``build`` has the model there, q and z."""

    def of_numbers(x: Vector, *arguments: Vector) -> list[Scalar]:
        nq, nv = model.nq, model.nv
        here = in_tangents(model, x[nq + nv :], refined=True)
        return build(here, x[:nq], x[nq : nq + nv], *arguments)

    sizes = (model.nq + model.nv + numbers(model), *more, size)
    return function(model, name, sizes, of_numbers)


@cached_on_model
def independent_columns(model: Model) -> list[int]:
    """Indices of the independent velocities v among those of all joints."""
    return [c.spanning_v.start + i for c in model.clusters for i in c.columns]


@cached_on_model
def joint_rates(model: Model) -> Function:
    """x → velocities of all joints."""
    return in_tangent(model, "joint rates", model.n_joint_velocities, joint_velocities)


def joint_velocities(here: Model, q: Vector, z: Vector) -> list[Scalar]:
    """Velocities of all joints of a model in tangent coordinates."""
    state = Configuration(here, q)
    return [x for c in here.clusters for x in state.spanning(c, z[c.v])]


@cached_on_model
def joint_accelerations(model: Model) -> Function:
    """(x, ż) → accelerations of all joints."""

    def build(here: Model, q: Vector, z: Vector, a: Vector) -> list[Scalar]:
        return list(State(here, q, (), z).accelerations(a))

    return in_tangent(model, "joint accelerations", model.n_joint_velocities, build, model.nv)


@cached_on_model
def settling(model: Model) -> Function:
    """x → q after a Newton step that closes loops, Σ of the squared gaps before it, and
    :func:`robomodel.motion.tangent.regularity`.
    """

    def build(here: Model, q: Vector, z: Vector) -> list[Scalar]:
        after, gaps = settled(here, q, 1)
        return [*after, gaps, regularity(model, here, q)]

    return in_tangent(model, "settling", model.nq + 2, build)


@cached_on_model
def renewal(model: Model) -> Function:
    """x at closed q → the results of :func:`robomodel.motion.tangent.renewed`."""

    def build(here: Model, q: Vector, z: Vector) -> list[Scalar]:
        bases, after, checks = renewed(model, here, q, z)
        return [*bases, *after, *checks]

    return in_tangent(model, "renewal", numbers(model) + model.nv + 3, build)


@dataclass(frozen=True)
class Coordinates:
    """Tangent coordinates x = (q, z) in these bases, on numbers."""

    model: Model
    bases: Array

    def row(self, x: Array) -> Array:
        """q, z and the bases in one array."""
        return np.concatenate([x, self.bases])

    def closed(self, x: Array) -> tuple[Array, float]:
        """x with unit quaternions and closed loops, and its distance σ from change points.

        σ is the least singular value of K, as a share of the greatest. Positions along z stay.
        Raises :class:`StepError`.
        """
        before, row, nq = math.inf, self.row(x), self.model.nq
        for _ in range(20):
            numbers = np.asarray(settling(self.model)(row))
            row[:nq], gap, regularity = numbers[:-2], math.sqrt(numbers[-2]), numbers[-1]
            if gap <= ROUNDING or (gap <= CLOSED and gap >= before):
                return row[: len(x)], math.sqrt(max(regularity, 0.0))
            if not math.isfinite(gap):
                break
            before = gap
        raise StepError(
            f"loops stay open by {gap:.3g}: it is too long, or leads out of what they reach"
        )

    def distance(self, x: Array) -> float:
        """The distance σ of x from change points, with loops nearly closed."""
        square = float(settling(self.model)(self.row(x))[-1])
        return math.sqrt(square) if square > 0.0 else 0.0

    def joint_rates(self, x: Array) -> Array:
        """Velocities of all joints."""
        return np.asarray(joint_rates(self.model)(self.row(x)))

    def renewed(self, x: Array) -> tuple[Coordinates, Array, Array]:
        """Coordinates in bases at x, x in these, and the checks of linkages; x has closed loops."""
        if not linkages(self.model):
            return self, x, np.zeros(0)
        nq, count = self.model.nq, len(self.bases)
        numbers = np.asarray(renewal(self.model)(self.row(x)))
        bases, z, checks = np.split(numbers, [count, count + len(x) - nq])
        return Coordinates(self.model, bases), np.append(x[:nq], z), checks
