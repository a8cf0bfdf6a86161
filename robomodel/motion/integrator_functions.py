"""What integrators ask of a robot, as traced functions: rates, closing of loops, momenta.

Written over scalars of any kind, traced on the robot, and compiled; robots that are too large to be
compiled unasked, and machines without LLVM, run the same programs on NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.dynamics import rnea_derivatives
from robomodel.dynamics.algorithm import AlgorithmSpec
from robomodel.dynamics.kinematics.momentum import energy
from robomodel.dynamics.kinematics.state import Configuration
from robomodel.dynamics.kinematics.tangents import position_directions
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.passive import spring_energy
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.kernels import Iteration
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.function import Build, TracedFunction
from robomodel.kernels.precision import Dtype
from robomodel.kernels.trace import Traced
from robomodel.model.configurations.traced import (
    coupled,
    couplings,
    left_open,
    normalized,
    rates,
    settled,
)
from robomodel.model.constraints import LoopConstraint
from robomodel.model.derived import LARGE, cache_key, cached_on_model
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import (
    Scalar,
    Vector,
    dot,
    sub,
    subtracted,
)

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
    """The function that ``build`` writes on traced arguments, made once a model and kept with it.

    ``name`` says all that makes it what it is on this robot, but for the ``dtype`` of its numbers.
    """
    key = (function, name, backend, dtype)
    if key not in model.derived:
        model.derived[key] = TracedFunction(
            name.split(" ", 1)[0],
            {f"x{k}": size for k, size in enumerate(sizes[:-1])},
            {"y": (sizes[-1],)},
            build,
            iteration=iteration,
            dtype=dtype,
            compiles=backend == "compiled" and 0 < len(model.nodes) <= LARGE,
            owner=model,
            key=cache_key(model, name),
        )
    made: TracedFunction = model.derived[key]
    return made


# ---- the functions -------------------------------------------------------------------------------


@cached_on_model
def flow(model: Model, links: tuple[str, ...] = (), *, passive: bool = False) -> Function:
    """(q, v, tau, wrenches on the links, one after the other) → (q̇, v̇)."""
    task = AlgorithmSpec("aba", f_ext=links, passive=passive)

    def build(q: Vector, v: Vector, tau: Vector, wrenches: Vector = ()) -> list[Scalar]:
        arguments = {"q": q, "v": v, "tau": tau} | _on(links, wrenches)
        return [*rates(model, q, v), *task.run(task.tree(model), arguments)]

    sizes = (model.nq, model.nv, model.nv, *_six_each(links), model.nq + model.nv)
    return function(model, f"flow {links!r} {passive}", sizes, build)


def _on(links: Sequence[str], wrenches: Vector) -> dict[str, Vector]:
    """Wrenches that stand one after the other, as arguments of an algorithm."""
    return {f"f_ext['{link}']": wrenches[6 * n : 6 * n + 6] for n, link in enumerate(links)}


def _six_each(links: Sequence[str]) -> tuple[int, ...]:
    """One argument for all of them, since those of a ufunc are few; none for no links."""
    return (6 * len(links),) if links else ()


def position_rates(model: Model) -> Function:
    """(q, v) → q̇."""
    sizes = (model.nq, model.nv, model.nq)
    return function(model, "rates", sizes, lambda q, v: rates(model, q, v))


@dataclass(frozen=True, slots=True)
class Closing:
    """One step of Newton's towards closed loops, and what it says of q before it.

    ``gaps`` are loop rows' values. ``blocks``: for each system of dependent velocities its cluster,
    shape, and first number; behind each stands the squared norm of all the rows that it is part of.
    """

    function: Function
    gaps: slice
    blocks: tuple[tuple[int, tuple[int, int], int], ...]


@cached_on_model
def closing(model: Model) -> Closing:
    """q → settled q, gaps, systems of the dependent velocities."""
    shapes: list[tuple[int, tuple[int, int]]] = []
    count = 0
    for cluster in model.clusters:
        constraint = cluster.constraint
        if isinstance(constraint, LoopConstraint):
            count += len(constraint.keep)
            shapes += [(cluster.index, (len(b.rows), len(b.columns))) for b in constraint.blocks]
    first = model.nq + count
    blocks: list[tuple[int, tuple[int, int], int]] = []
    size = first
    for index, (m, n) in shapes:
        blocks.append((index, (m, n), size))
        size += m * n + 1

    def build(q: Vector) -> list[Scalar]:
        gaps: list[Scalar] = []
        systems: list[Scalar] = []
        for cluster in model.clusters:
            constraint = cluster.constraint
            if isinstance(constraint, LoopConstraint):
                own = normalized(model, cluster, q[cluster.q])
                at = coupled(couplings(cluster, constraint), own)
                found = constraint.closing(at)
                gaps += found.gaps
                for matrix, rows in found.systems:
                    entries = [x for row in rows for x in row]
                    systems += [*(x for row in matrix for x in row), dot(entries, entries)]
        return [*settled(model, q, 1)[0], *gaps, *systems]

    made = function(model, "closing", (model.nq, size), build)
    return Closing(made, slice(model.nq, first), tuple(blocks))


def openness(model: Model, backend: str = "compiled") -> Function:
    """Q → Σ of the squares of what loops and couplings fail by, redundant rows included.

    But without those that a file's rounding has left open.
    """
    sizes = (model.nq, 1)
    return function(model, "openness", sizes, lambda q: [left_open(model, q)], backend=backend)


def lagrangian(model: Model) -> Function:
    """(q, v) → M by rows (nv · nv), and the change of the Lagrangian along integrate(q, ε e_j).

    Springs are not in it: they are forces among others, which may be left out.
    """

    def build(q: Sequence[Traced], v: Vector) -> list[Scalar]:
        kinetic, potential = energy(model, q, v)
        potential = sub(potential, spring_energy(Configuration(model, q)))
        directions = position_directions(model, q)
        slopes = differentiate(q[0].trace, [sub(kinetic, potential)], directions)
        return [*(x for row in crba(model, q) for x in row), *(slope for (slope,) in slopes)]

    nv = model.nv
    return function(model, "lagrangian", (model.nq, nv, nv * nv + nv), build)


def momentum_slopes(model: Model, q: Array, v: Array) -> Array:
    """∂(M v)/∂q (..., nv, nv) along integrate(q, ε e_j): inverse dynamics' but for gravity's."""
    rest = np.zeros_like(v)
    moving, still = (rnea_derivatives(model, q, rest, a)[0] for a in (v, rest))
    return moving - still


def wrench_forces(model: Model, links: tuple[str, ...]) -> Function:
    """(q, wrenches on the links, one after the other) → the tau (nv) that would do the same."""
    task = AlgorithmSpec("bias_force", f_ext=links)

    def build(q: Vector, wrenches: Vector) -> list[Scalar]:
        rest: list[Scalar] = [0.0] * model.nv
        under = task.run(model, {"q": q, "v": rest} | _on(links, wrenches))
        return subtracted(bias_force(model, q, rest), under)

    sizes = (model.nq, *_six_each(links), model.nv)
    return function(model, f"wrench forces {links!r}", sizes, build)
