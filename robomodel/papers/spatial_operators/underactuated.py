"""Operators of under-actuated and prescribed motion: some accelerations given, other forces (004).

The future work of the paper, after Jain and Rodriguez, "An analysis of the kinematics and dynamics
of underactuated manipulators" (1993). With H split by rows into those of the active coordinates,
whose accelerations are prescribed, and the passive ones, whose forces are,

    T_a = S_aa θ̈_a - S_paᵀ T_p + …,    θ̈_p = S_pa θ̈_a + S_pp T_p + …

with S_pp = ℳ_pp⁻¹, S_pa = -ℳ_pp⁻¹ ℳ_pa and S_aa = ℳ_aa - ℳ_ap ℳ_pp⁻¹ ℳ_pa; ℳ_pp⁻¹ is that of the
model whose joints have their passive rows alone, at linear cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robomodel.model.arguments import as_array
from robomodel.model.joints import Array
from robomodel.papers.spatial_operators.algebra import BlockDiagonal, blockwise
from robomodel.papers.spatial_operators.operator import Operator, Space
from robomodel.papers.spatial_operators.sko import SKO


@dataclass(frozen=True, eq=False)
class Underactuated:
    """A model whose ``active`` coordinates, ascending indices of θ̇, move as prescribed."""

    model: SKO
    active: tuple[int, ...]

    def __post_init__(self) -> None:
        size = self.model.rates.size
        if list(self.active) != sorted({*self.active} & {*range(size)}):
            raise ValueError(
                f"active coordinates are ascending indices below {size}, not {self.active}"
            )

    @cached_property
    def passive(self) -> tuple[int, ...]:
        """The other coordinates, whose forces are given."""
        return tuple(i for i in range(self.model.rates.size) if i not in self.active)

    @cached_property
    def H_active(self) -> BlockDiagonal:
        """Rows of H that belong to active coordinates."""
        return self._rows(self.active)

    @cached_property
    def free(self) -> SKO:
        """The model of the passive joints alone: ℳ_pp, with the same weights and inertias."""
        return SKO(
            weights=self.model.weights,
            H=self._rows(self.passive),
            M=self.model.M,
            a=self.model.a,
            b=self.model.b,
        )

    def _rows(self, chosen: Sequence[int]) -> BlockDiagonal:
        model, wanted = self.model, {*chosen}
        own = [
            [i - part.start for i in range(part.start, part.stop) if i in wanted]
            for part in model.rates.slices
        ]
        rates = Space(model.tree, tuple(map(len, own)))
        return blockwise(model.nodes, rates, lambda k: model.H.blocks[k][..., own[k], :], "H")

    @property
    def S_pp(self) -> Operator:
        """ℳ_pp⁻¹: passive accelerations by passive forces."""
        return self.free.articulated.mass_inverse

    @property
    def S_pa(self) -> Operator:
        """-ℳ_pp⁻¹ ℳ_pa: passive accelerations by active ones."""
        inner = self.model.A @ self.model.M @ self.model.A.T
        active = self.H_active
        minus = blockwise(active.cols, active.rows, lambda k: -active.blocks[k])
        return self.S_pp @ self.free.H @ inner @ minus.T

    @property
    def S_aa(self) -> Operator:
        """ℳ_aa - ℳ_ap ℳ_pp⁻¹ ℳ_pa: active forces by active accelerations."""
        inner = self.model.A @ self.model.M @ self.model.A.T
        return self.H_active @ inner @ (self.H_active.T + self.free.H.T @ self.S_pa)

    def hybrid(self, accelerations: ArrayLike, forces: ArrayLike) -> tuple[Array, Array]:
        """(T, θ̈) (..., n) of prescribed active accelerations and passive forces.

        Args:
            accelerations: (..., number of active coordinates).
            forces: (..., number of passive coordinates).

        Raises ValueError for other numbers.
        """
        given = as_array(accelerations, len(self.active), "accelerations", "active coordinates")
        push = as_array(forces, len(self.passive), "forces", "passive coordinates")
        carried = replace(self.free, a=self.model.a + self.H_active.T @ given)
        found = carried.forward_dynamics(push)
        rates = np.zeros((*np.broadcast_shapes(given.shape[:-1], found.shape[:-1]),
                          self.model.rates.size))  # fmt: skip
        rates[..., list(self.active)] = given
        rates[..., list(self.passive)] = found
        return self.model.inverse_dynamics(rates), rates
