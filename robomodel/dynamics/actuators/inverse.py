"""From motors to coordinates, as programs: states from encoders, motor forces from torques.

The number of steps is fixed, so that they run as compiled code, in C and in other libraries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.dynamics.actuators import maps
from robomodel.kernels.function import TracedFunction
from robomodel.model.configurations.blockwise import CONTRADICTS
from robomodel.model.configurations.closing import INDEPENDENT, Step, coupled, left_open, newton
from robomodel.model.derived import cached_on_model, nominal, traced
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.scalars import (
    Factorization,
    Scalar,
    Vector,
    added,
    div,
    dot,
    maximum,
    select,
    solve,
    sqrt,
    subtracted,
    transposed,
)
from robomodel.tolerances import HUGE, SINGULAR

NEWTON_INVERSE = 3  # of Newton's method: enough for linkages from 0.05 rad or m away
# [rad, m] longest step of a linkage (root of the sum of squares), as ratios vary
LONGEST_LINKAGE_STEP = 0.3
# [rad, m] longest last step: the error after it is of the order of its square
LONGEST_LAST_STEP = 1e-5

Matrix = Sequence[Sequence[Scalar]]


@dataclass(frozen=True)
class Group:
    """Coordinates and the actuators that move them; ``affine``: constant ratios, no loops."""

    coordinates: Sequence[int]
    actuators: Sequence[int]
    affine: bool

    def rows(self, matrix: Matrix) -> list[list[Scalar]]:
        """Bᵀ of the group: actuators by coordinates."""
        return [[matrix[i][n] for i in self.coordinates] for n in self.actuators]

    @property
    def redundant(self) -> bool:
        """True if there are more actuators than coordinates."""
        return len(self.actuators) > len(self.coordinates)


def groups(model: Model, matrix: Matrix) -> list[Group]:
    """The groups of coordinates that a map B (nv by nu) does not couple with each other."""
    in_loops = {i for c in model.clusters if c.implicit for i in range(c.v.start, c.v.stop)}
    pattern = [[not (type(x) is float and x == 0.0) for x in row] for row in matrix]
    result = []
    for coordinates, actuators in maps.blocks(pattern):
        entries = (matrix[i][n] for i in coordinates for n in actuators)
        affine = all(type(x) is float for x in entries) and in_loops.isdisjoint(coordinates)
        result.append(Group(coordinates, actuators, affine))
    return result


@cached_on_model
def undetermined(model: Model) -> list[str]:
    """Names of coordinates, the base's excepted, that actuators cannot determine at any q."""
    determined = set(range(6 if model.floating_base is not None else 0))
    with np.errstate(all="ignore"):
        matrix = maps.actuator_map(model, list(model.neutral()))
    for group in groups(model, matrix):
        numbers = [x for row in group.rows(matrix) for x in row]
        rank = float(len(group.actuators))
        if all(type(x) is float for x in numbers):
            rank = np.linalg.matrix_rank(np.array(group.rows(matrix)), rtol=SINGULAR)
        if rank >= len(group.coordinates):
            determined.update(group.coordinates)
    return [name for i, name in enumerate(model.dof_names) if i not in determined]


def _refuse_undetermined(model: Model) -> None:
    """Raises ValueError if actuators do not determine a coordinate; the base's may stay free."""
    if names := undetermined(nominal(model)):
        raise ValueError(
            f"the actuators of '{model.name}' leave '{names[0]}' open"
            + (f", and {len(names) - 1} more" if len(names) > 1 else "")
        )


@traced
def from_actuators(model: Model, steps: int = NEWTON_INVERSE) -> TracedFunction:
    """The state with these actuator positions and velocities, by a fixed number of Newton steps.

    They start at ``guess`` and close loops as well. Not-a-number where they do not converge.
    """
    _refuse_undetermined(model)
    nu = len(model.actuators)

    def build(positions: Vector, velocities: Vector, guess: Vector) -> list[Scalar]:
        q: list[Scalar] = list(guess)
        for cluster in model.clusters:
            q[cluster.q] = coupled(cluster, q[cluster.q])
        q, taken = newton(model, q, steps, Readings(positions))
        longest: Scalar = 0.0
        for index, step in taken[-1].items():
            if step.short:
                way = _of_linkage(model.clusters[index], step.joints)
                longest = maximum(longest, dot(way, way))
        matrix = maps.actuator_map(model, q)
        parts = groups(model, matrix)
        v = _velocities(model, parts, matrix, velocities, SINGULAR)
        # constant ratios leave rounding only, unless encoders are redundant
        checked = [n for g in parts if g.redundant or not g.affine for n in g.actuators]
        left = subtracted(positions, maps.positions(model, q))
        rates = [dot(column, v) for column in transposed(matrix)]
        slip = subtracted(velocities, rates)
        redundant = [n for g in parts if g.redundant for n in g.actuators]
        lost: Scalar = -1.0
        for values, sizes, rows in ((left, positions, checked), (slip, velocities, redundant)):
            off = [values[n] for n in rows]
            size = [sizes[n] for n in rows]
            bound = CONTRADICTS**2 * (1.0 + dot(size, size))
            lost = maximum(lost, dot(off, off) - bound) if rows else lost
        lost = maximum(lost, longest - LONGEST_LAST_STEP**2)
        lost = maximum(lost, left_open(model, q) - CONTRADICTS**2)
        for cluster in model.clusters:
            for x in cluster.geometry.alignments(q[cluster.q]) if cluster.implicit else ():
                lost = maximum(lost, -x)
        every = [*q, *v]
        lost = select(dot(every, every) - HUGE, lost, 1.0)
        return [select(lost, x, math.nan) for x in every]

    sizes = {"positions": nu, "velocities": nu, "guess": model.nq}
    results = {"q": (model.nq,), "v": (model.nv,)}
    return TracedFunction("from_actuators", sizes, results, build)


def _velocities(
    model: Model, parts: Sequence[Group], matrix: Matrix, rates: Vector, rank: float = 0.0
) -> list[Scalar]:
    """Velocities (nv) with Bᵀ v = rates by least squares; zero without an actuator."""
    v: list[Scalar] = [0.0] * model.nv
    for group in parts:
        solution = solve(group.rows(matrix), [[rates[n]] for n in group.actuators], floor=rank)
        for i, (x,) in zip(group.coordinates, solution, strict=True):
            v[i] = x
    return v


@dataclass(frozen=True)
class Readings:
    """Newton steps that close loops and bring actuators to the positions ``target``."""

    target: Vector

    def steps(self, model: Model, q: Vector, n: int) -> dict[int, Step]:
        """The n-th steps of the clusters that move; linkages move by a bounded step.

        Groups without loops and with constant ratios arrive with the first step.
        """
        matrix = maps.actuator_map(model, q)
        parts = [g for g in groups(model, matrix) if n == 0 or not g.affine]
        closing = INDEPENDENT.steps(model, q, n)
        along: list[Scalar] = [0.0] * model.n_joint_velocities
        for index, step in closing.items():
            along[model.clusters[index].spanning_v] = step.joints
        left = [
            x - dot([k for _, k in actuator.rows], [along[row] for row, _ in actuator.rows])
            for x, actuator in zip(
                subtracted(self.target, maps.positions(model, q)), model.actuators, strict=True
            )
        ]
        v = _velocities(model, parts, matrix, left)
        turning = {i for g in parts if not g.affine for i in g.coordinates}
        result: dict[int, Step] = {}
        for cluster in model.clusters:
            moved = v[cluster.v]
            if cluster.implicit:
                rows = cluster.constraint.jacobian(cluster.constraint.positions(q[cluster.q]))
                moved = added(closing[cluster.index].joints, [dot(row, moved) for row in rows])
            elif turning.isdisjoint(range(cluster.v.start, cluster.v.stop)):
                if not all(type(x) is float and x == 0.0 for x in moved):
                    result[cluster.index] = Step(moved, [])
                continue
            way = _of_linkage(cluster, moved)
            share = div(LONGEST_LINKAGE_STEP, sqrt(maximum(dot(way, way), LONGEST_LINKAGE_STEP**2)))
            result[cluster.index] = Step([share * x for x in moved], [], short=True)
        return result


def _of_linkage(cluster: Cluster, step: Vector) -> list[Scalar]:
    """The step of the joints that move in loops, without rotors beside them."""
    if not cluster.implicit:
        return list(step)
    return [x for link in cluster.geometry.looped for x in step[link.velocities]]


def forces(model: Model, q: Vector, tau: Vector) -> list[Scalar]:
    """The motors' forces (nu) of least norm with B u = tau; a floating base's tau is ignored."""
    _refuse_undetermined(model)
    matrix = maps.actuator_map(model, q)
    u: list[Scalar] = [0.0] * len(model.actuators)
    for group in groups(model, matrix):
        rows = group.rows(matrix)
        torque = [tau[i] for i in group.coordinates]
        if group.redundant:
            columns = transposed(rows)
            square = [[dot(a, b) for b in columns] for a in columns]
            weights = Factorization(square, floor=SINGULAR**2).solve(torque)
            result = [dot(row, weights) for row in rows]
        else:
            result = [x for (x,) in solve(transposed(rows), [[t] for t in torque], floor=SINGULAR)]
        for n, x in zip(group.actuators, result, strict=True):
            u[n] = x
    return u
