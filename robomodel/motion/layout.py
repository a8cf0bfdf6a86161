"""Where the numbers of a state and of a step's results are.

A state is one row of numbers: q, v, and the data for the next step: z and the bases of the linkages
(:mod:`robomodel.motion.tangent`), and the memory of time stepping. v is that of the model's
independent joints; linkages move by z.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from robomodel.arrays import Array
from robomodel.model.model import Model
from robomodel.motion import tangent
from robomodel.motion.integrator_functions import independent_columns, joint_rates
from robomodel.motion.plant import Moving
from robomodel.motion.tangent import linkages
from robomodel.scalars import Scalar, Vector, dot, orthonormal


class Columns(NamedTuple):
    """Slices of q, v, z (with linkages), their bases and the memory in a state."""

    q: slice
    v: slice
    z: slice
    bases: slice
    memory: slice


@dataclass(frozen=True)
class StateLayout:
    """The places of numbers in states, and in the results of steps.

    ``memory``: how many numbers time stepping keeps; ``contacts``: how many it has, None without.

    With linkages the state in a result is followed by Σ of the squared gaps of loops, the growth of
    ‖G‖² within the step (1: none), and the regularity of K (0 at change points). After time
    stepping follow the distance of contacts at the end from that of their rows, the residual of the
    contact equations, and the impulses of the contacts in world axes.
    """

    model: Model
    memory: int = 0
    contacts: int | None = None

    @cached_property
    def columns(self) -> Columns:
        """The parts of a state."""
        model = self.model
        z = model.nv if linkages(model) else 0
        sizes = (model.nq, model.nv, z, tangent.numbers(model), self.memory)
        ends = itertools.accumulate(sizes, initial=0)
        return Columns(*(slice(a, b) for a, b in itertools.pairwise(ends)))

    @cached_property
    def size(self) -> int:
        """Numbers of a state."""
        return int(self.columns.memory.stop)

    @cached_property
    def checks(self) -> int:
        """Number of checks of linkages: three if there are any."""
        return 3 if linkages(self.model) else 0

    @cached_property
    def results(self) -> int:
        """Numbers of a result."""
        touching = 0 if self.contacts is None else 2 + 3 * self.contacts
        return self.size + self.checks + touching

    @property
    def gap(self) -> int:
        """Index in a result of Σ of the squared gaps of loops."""
        return self.size

    @property
    def growth(self) -> int:
        """Index in a result of the growth of ‖G‖²."""
        return self.size + 1

    @property
    def regularity(self) -> int:
        """Index in a result of the regularity of K."""
        return self.size + 2

    @property
    def miss(self) -> int:
        """Index in a result of the distance of contacts from that of their rows."""
        return self.size + self.checks

    @property
    def residual(self) -> int:
        """Index in a result of the residual of the contact problem."""
        return self.miss + 1

    @property
    def impulses(self) -> slice:
        """The impulses of the contacts in a result."""
        return slice(self.residual + 1, self.results)

    # ---- on scalars of any kind

    def moving(self, state: Vector) -> Moving:
        """The tangent coordinates of a state."""
        q, v, z, bases = (list(state[part]) for part in self.columns[:4])
        return Moving(q, z or v, bases)

    def row(self, at: Moving, v: Vector, memory: Vector = ()) -> list[Scalar]:
        """A state from its parts."""
        return [*at.q, *v, *(at.z if self.checks else ()), *at.bases, *memory]

    def renewed(self, here: Model, q: Vector, z: Vector) -> list[Scalar]:
        """The state at closed positions q, with velocities z in the chart of ``here``; checks."""
        bases, after, checks = tangent.renewed(self.model, here, q, z)
        v = tangent.independent_velocities(self.model, q, after, bases)
        return [*self.row(Moving(q, after, bases), v), *checks]

    def from_independent(self, numbers: Vector) -> list[Scalar]:
        """A state from q and v, away from dead points."""
        model = self.model
        q, v = list(numbers[: model.nq]), list(numbers[model.nq :])
        z, bases = list(v), list[list[list[Scalar]]]()
        for each in linkages(model):
            cluster = model.clusters[each.index]
            columns = list(zip(*each.loop.jacobian(q[cluster.q]), strict=True))
            motions = [[dot(row, column) for row in each.reduce] for column in columns]
            basis = orthonormal(motions)
            y = [dot(row, v[cluster.v]) for row in zip(*motions, strict=True)]
            z[cluster.v] = [dot(column, y) for column in basis]
            bases.append(basis)
        return self.row(Moving(q, z, tangent.flat(bases)), v)

    # ---- on numbers

    def start(self, robots: Model, q: Array, v: Array, dtype: str) -> tuple[Array, tangent.Start]:
        """States (..., size) of robots at the start, and how regular they are."""
        at = tangent.start(robots, q, v)
        states = np.zeros((*at.z.shape[:-1], self.size), dtype)
        for part, numbers in zip(self.columns, (q, v, at.z, at.bases), strict=False):
            if part.stop > part.start:
                states[..., part] = numbers
        return states, at

    def tangent_row(self, state: Array) -> Array:
        """q, z and the bases (:mod:`robomodel.motion.integrator_functions`) of a state."""
        q, v, z, bases, _ = (state[part] for part in self.columns)
        return np.concatenate([q, z if self.checks else v, bases])

    def independent(self, x: Array) -> tuple[Array, Array]:
        """q and v from q, z and bases."""
        model = self.model
        q = x[: model.nq]
        if not self.checks:
            return q, x[model.nq : model.nq + model.nv]
        return q, np.asarray(joint_rates(model)(x))[independent_columns(model)]

    def joint_velocities(self, state: Array) -> Array:
        """Velocities (n_joint_velocities,) of all joints of a state, at dead points too."""
        return np.asarray(joint_rates(self.model)(self.tangent_row(state)))
