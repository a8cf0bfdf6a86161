"""Solutions of contact problems that the sweeps of a step's program have not solved.

:func:`robomodel.dynamics.contact.complementarity.solve` solves them, and the step is finished with
its impulses by another program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.contact.complementarity import ArrayProblem, Parts, solve_each
from robomodel.dynamics.contact.problem import Meshes
from robomodel.dynamics.contact.reversal import STILL
from robomodel.kernels.function import TracedFunction
from robomodel.model.model import Model
from robomodel.motion.contact_programs import SOLVED, ContactProgram, SolvedStep
from robomodel.motion.family import Family
from robomodel.motion.planes import Length
from robomodel.motion.schemes import time_step
from robomodel.motion.tangent import linkages
from robomodel.motion.time_stepping import Solved, strikes
from robomodel.scalars import Scalar, Vector, array_of


@dataclass(frozen=True)
class ContactSolving:
    """The programs that finish steps of a robot, on numbers."""

    name: str
    family: Family
    contact: ContactProgram

    @property
    def _sizes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Sizes of the first three arguments, and of those that may follow."""
        contact = self.contact
        more = tuple(filter(None, (*contact.arguments, *self.family.sizes)))
        return (contact.layout.size, contact.plant.commands, 1), more

    @cached_property
    def problem(self) -> TracedFunction:
        """(state, tau, step, mean velocity, …) → matrix, b, friction, bounds, b without
        restitution, velocities of the rows before, scale of velocities; rates of dry friction at
        the beginning, meshes.
        """

        def build(
            model: Model, state: Vector, tau: Vector, step: Vector, mean: Vector, *more: Vector
        ) -> list[Scalar]:
            terms = self.contact.of(model).step(state, tau, step, more).assembled(mean)
            matrix = [x for row in terms.delassus for x in row]
            numbers = [*matrix, *terms.b, *terms.friction, *terms.bounds, *terms.plain, *terms.work,
                       terms.size]  # fmt: skip
            if terms.before:
                numbers += [*terms.before, *terms.collides]
            return numbers if terms.meshes is None else [*numbers, *terms.meshes.numbers()]

        (first, more) = self._sizes
        size = sum(self._parts)
        sizes = (*first, self.contact.plant.model.nv, *more, size)
        return self.family.program(f"contact problem of {self.name}", sizes, build)

    @property
    def _parts(self) -> list[int]:
        """How many numbers :attr:`problem` has of each kind."""
        rows = self.contact.rows
        n, k = rows.size, rows.contacts
        own = [rows.rubbing, k + rows.stops] if rows.rubbing else [0, 0]
        return [n * n, n, k, rows.boxes, n, n, 1, *own, Meshes.count(rows)]

    @cached_property
    def with_impulses(self) -> TracedFunction:
        """(state, tau, step, mean velocity, impulses, slips, residual, early impulses, …) → result
        and mean velocity.
        """
        n, k = self.contact.rows.size, self.contact.rows.contacts
        early = n if self.contact.rows.rubbing else 0

        def build(
            model: Model, state: Vector, tau: Vector, step: Vector, mean: Vector,
            impulses: Vector, *more: Vector,
        ) -> list[Scalar]:  # fmt: skip
            one = self.contact.of(model)
            known = Solved(
                list(impulses[:n]), list(impulses[n : n + k]), impulses[n + k],
                list(impulses[n + k + 1 :]),
            )  # fmt: skip
            outcome = time_step(SolvedStep(one.step(state, tau, step, more), mean, known))
            return [*one.result(outcome), *outcome.mean]

        (first, more), nv = self._sizes, self.contact.plant.model.nv
        sizes = (*first, nv, n + k + 1 + early, *more, self.contact.layout.results + nv)
        return self.family.program(f"with impulses {self.name}", sizes, build)

    def finish(
        self, states: Array, tau: Array, h: Length, more: Sequence[Array], result: Array
    ) -> None:
        """Replace results whose contact problems are not solved."""
        if result.ndim == 1:
            states, result = states[None], result[None]
        residual = result[..., self.contact.layout.residual]
        left = ~(residual <= SOLVED) & np.all(np.isfinite(states), axis=-1)
        at = np.nonzero(left)
        if not len(at[0]):
            return
        batch, length = residual.shape, np.asarray(h, float)[..., None]
        arguments = (np.broadcast_to(x, (*batch, x.shape[-1]))[at] for x in (tau, length, *more))
        better = self._solved(states[at].astype(float), *(x.astype(float) for x in arguments))
        now, before = better[:, self.contact.layout.residual], residual[at]
        taken = (now < before) | ~np.isfinite(before)
        result[at] = np.where(taken[:, None], better, result[at])

    def _solved(self, states: Array, tau: Array, length: Array, *more: Array) -> Array:
        """Results (n, results) of steps whose contact problems are solved by the full method."""
        layout, model, rows = self.contact.layout, self.contact.plant.model, self.contact.rows
        n, k = rows.size, rows.contacts
        memory = states[:, layout.columns.memory]
        x = memory[:, :n]
        z = states[:, layout.columns.z if layout.checks else layout.columns.v]
        mean = z + 0.5 * length * memory[:, -1 - model.nv : -1]
        result = np.full((len(states), layout.results), np.nan)
        passes, early = 2 if linkages(model) else 1, n if rows.rubbing else 0
        for count in range(passes):
            numbers = np.asarray(self.problem(states, tau, length, mean, *more))
            impulses = np.full((len(states), n + k + 1 + early), np.nan)
            impulses[:, n : n + k] = impulses[:, n + k + 1 :] = 0.0
            fine = np.all(np.isfinite(numbers), axis=1)
            parts = self._impulses(numbers[fine], x[fine], last=count == passes - 1)
            impulses[fine, :n], impulses[fine, n + k] = parts[:2]
            if early:
                impulses[fine, n + k + 1 :] = parts[2]
            row = np.asarray(self.with_impulses(states, tau, length, mean, impulses, *more))
            x, result, mean = impulses[:, :n], row[:, : layout.results], row[:, layout.results :]
        return result

    def _impulses(self, numbers: Array, starts: Array, *, last: bool) -> tuple[Array, Array, Array]:
        """Impulses (m, n) and residuals (m,) of contact problems from :attr:`problem`.

        Third, early impulses (m, n): ``last`` solutions of a step are in parts where rates of dry
        friction turn round.
        """
        rows = self.contact.rows
        n = rows.size
        parts = np.split(numbers, np.cumsum(self._parts)[:-1], axis=1)
        meshes = Meshes.side_by_side(rows, parts[9]) if rows.meshes else None
        problems = ArrayProblem(rows, parts[0].reshape(-1, n, n), *parts[1:4], meshes=meshes)
        x, residuals = solve_each(problems, starts, 0.1 * SOLVED)
        if self.contact.setting.rebounds:
            rest, _ = solve_each(replace(problems, b=parts[4]), starts, 0.1 * SOLVED)
            for i, (work, other) in enumerate(zip(parts[5], rest, strict=True)):
                x[i] = problems.nth(i).without_gain(work, x[i], other)
        if last and rows.rubbing:
            return in_parts(problems, parts[7], parts[8], x, residuals, parts[6][:, 0])
        return x, residuals, np.zeros_like(x)


def in_parts(
    problems: ArrayProblem, before: Array, collides: Array, x: Array, residuals: Array, sizes: Array
) -> tuple[Array, Array, Array]:
    """Impulses, residuals and early impulses of steps in parts where dry friction turns round.

    Of steps side by side (m, …): x are those of whole steps. ``before``: rates of dry friction and
    meshes at the beginning; ``collides``: negative if a row that keeps a distance does; ``sizes``
    of velocities.
    """
    x, residuals, early = x.copy(), residuals.copy(), np.zeros_like(x)
    moves = np.any(np.abs(before) > STILL * sizes[:, None], axis=1)
    if not np.any(moves):  # that could turn round
        return x, residuals, early
    struck = strikes(list(x[:, problems.rows.normals].T), list(collides.T))
    parts = Parts.of(problems, before, x, sizes, np.zeros(len(x)) + array_of(struck))
    at = moves & (parts.share > 0.0)
    if np.any(at):
        parts = parts.some(at)
        solved, residuals[at] = solve_each(parts.rest, parts.start, 0.1 * SOLVED)
        x[at], early[at] = parts.joined(solved)
    return x, residuals, early
