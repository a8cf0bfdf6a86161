"""Solutions of problems by name, in link axes, and how far a problem determines its unknowns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from robomodel.dynamics.equations.segments import Piece, pieces
from robomodel.dynamics.equations.sensors import motion_at, wrench_at
from robomodel.dynamics.kinematics.state import State
from robomodel.errors import UnknownNameError, did_you_mean
from robomodel.model.joints import Array
from robomodel.spatial import Motion, Transform, Wrench

if TYPE_CHECKING:
    from robomodel.estimation.instant import Problem


@dataclass(frozen=True, slots=True)
class Determinacy:
    """Rank of the system against its unknowns, and the names of unknowns that stay open."""

    rank: int
    unknowns: int
    rows: int
    undetermined: tuple[str, ...]

    @property
    def well_posed(self) -> bool:
        """Whether every unknown is determined."""
        return self.rank == self.unknowns

    @property
    def nullity(self) -> int:
        """Dimension of what stays open."""
        return self.unknowns - self.rank

    @property
    def redundant(self) -> int:
        """Rows that repeat others: more measurements than needed, or loops that repeat."""
        return self.rows - self.rank


@dataclass(frozen=True)
class Solution(Mapping[str, Any]):
    """Values of all unknowns by name, (..., size), wrenches and accelerations in link axes.

    ``raw`` holds them in the bodies' internal axes. ``backward_error``: the largest of all states.
    """

    problem: Problem
    q: Array
    v: Array
    raw: Mapping[str, Array]
    known: Mapping[str, Array] = field(repr=False)
    backward_error: float = 0.0

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __getitem__(self, name: str) -> Array:
        if name not in self.raw:
            raise UnknownNameError(f"no unknown '{name}'{did_you_mean(name, self.raw)}")
        value = self.raw[name]
        kind, _, owner = name.partition("[")
        link = owner[:-1]
        if kind not in ("a", "f", "fx", "net") or ":" in link:
            return value
        pose = self.problem.model.frame(link).pose
        body = self.problem.model.frame(link).body
        result = np.empty_like(value)
        q = np.broadcast_to(self.q, (*value.shape[:-1], self.q.shape[-1]))
        v = np.broadcast_to(self.v, (*value.shape[:-1], self.v.shape[-1]))
        for index in np.ndindex(*value.shape[:-1]):
            numbers = value[index].tolist()
            if kind == "a":
                everything = range(len(self.problem.model.nodes))
                state = State(self.problem.model, q[index].tolist(), everything, v[index].tolist())
                around = state.centripetal[body] if _offset(pose) else None
                result[index] = motion_at(Motion.of(numbers), pose, around).entries()
            else:
                result[index] = wrench_at(Wrench.of(numbers), pose).entries()
        return result

    def _by_dof(self, kind: str) -> Array:
        parts: list[tuple[Piece, Array]] = []
        for piece in pieces(self.problem.model):
            if piece.dofs:
                name = f"{kind}[{piece.name}]"
                value = self.raw.get(name, self.known.get(name, np.zeros(len(piece.dofs))))
                parts.append((piece, value))
        batch = np.broadcast_shapes(*(value.shape[:-1] for _, value in parts))
        result = np.zeros((*batch, self.problem.model.nv))
        for piece, value in parts:
            result[..., list(piece.dofs)] = value
        return result

    @property
    def tau(self) -> Array:
        """Torques of the independent joints, (..., nv), known ones included."""
        return self._by_dof("tau")

    @property
    def acceleration(self) -> Array:
        """Accelerations of the independent joints, (..., nv), known ones included."""
        return self._by_dof("qdd")


def _offset(pose: Transform) -> bool:
    return any(not math.isclose(x, 0.0, abs_tol=0.0) for x in pose.offset)
