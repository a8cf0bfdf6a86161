"""Charts of a part's motions: where velocities of some joints tell them, and where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robomodel.arrays import Array
from robomodel.mechanism.continuation import Points, joined
from robomodel.reach.parts import Part
from robomodel.tolerances import MOVES


@dataclass(frozen=True, eq=False)
class Chart:
    """A part's motions along a path, and the orientation of some joints' velocities among them.

    It is the determinant of their ``rows`` (n, columns) on an orthonormal ``basis`` (columns, n) of
    the motions, turned along with them, positive where it begins; where it vanishes the part moves
    while they rest. Without rows it is 1. ``points`` has q in a ``row``. Also of several
    configurations q (..., nq), which then are all points.
    """

    part: Part
    q: Array
    rows: Array
    basis: Array
    values: Array
    points: Points
    row: int = 0

    @staticmethod
    def at(part: Part, q: Array, rows: Array) -> Chart | None:
        """The motion at q; None where velocities with these rows do not tell it there."""
        motions = part.null(q)
        interest = part.interest
        if not interest or not motions.shape[1]:
            return None
        rows = rows * part.unit
        idle = _idle(motions, interest)
        rows = rows[np.max(np.abs(rows @ idle), axis=1, initial=0.0) < MOVES]  # not those of spins
        basis = without_idle(motions, interest)
        chosen: list[Array] = []
        for row in rows:
            if np.linalg.matrix_rank(np.array([*chosen, row]) @ basis, tol=MOVES) > len(chosen):
                chosen.append(row)
        if len(chosen) != basis.shape[1]:
            return None
        basis[:, 0] *= np.sign(np.linalg.det(np.array(chosen) @ basis))
        signed = np.array(chosen)
        return Chart(part, q, signed, basis, np.linalg.det(signed @ basis), part.at(q))

    @staticmethod
    def without_rows(part: Part, q: Array) -> Chart:
        """The motion at q, with nothing that tells it."""
        basis = without_idle(part.null(q), part.interest)
        return Chart(part, q, np.zeros((0, len(part.unit))), basis, np.array(1.0), part.at(q))

    @property
    def value(self) -> float:
        """The value at one configuration."""
        return float(self.values)

    @property
    def placed(self) -> Points:
        """One configuration as a point."""
        return self.points[[self.row]]

    def turned(self, q: Array) -> Chart:
        """The chart at a neighbour (..., nq)."""
        return _turned(self.part, q, self.rows, self.basis)

    def carried(self, there: Points) -> Chart | None:
        """The chart at the end of a stride, whose motions are turned already.

        None where some of the motions are idle, which turn apart.
        """
        n = self.points.n[self.row]
        if self.basis.shape[1] != n.shape[1]:
            return None
        ways = n.T @ self.part.among(self.basis.T).T
        basis = self.part.whole((there.n[0] @ ways).T).T
        values = np.linalg.det(self.rows @ basis) if len(self.rows) else self.values
        return Chart(self.part, there.q[0], self.rows, basis, np.asarray(values), there)

    @cached_property
    def slope(self) -> Array:
        """The derivatives (..., n) of the determinant by the motions of the basis.

        The basis changes by -K⁺ dK basis, and a determinant by the trace of its adjugate times what
        its matrix changes by.
        """
        part = self.part
        left, singular, right = np.linalg.svd(self.rows @ self.basis)
        own = np.eye(singular.shape[-1], dtype=bool)
        others = np.prod(np.where(own, 1.0, singular[..., None, :]), axis=-1)
        orientation = (np.linalg.det(left) * np.linalg.det(right))[..., None, None]
        scaled = np.swapaxes(right, -1, -2) * others[..., None, :]
        adjugate = orientation * scaled @ np.swapaxes(left, -1, -2)
        rows = np.broadcast_to(self.rows, (*self.q.shape[:-1], *self.rows.shape[-2:]))
        inverse = part.strides().through(
            self.points, part.among(rows.reshape(-1, *rows.shape[-2:]))
        )
        weights = self.basis @ adjugate @ inverse.reshape(*rows.shape[:-1], -1)
        change = part.variation(self.q, self.basis)
        flat = np.swapaxes(weights, -1, -2).reshape(*self.q.shape[:-1], -1, 1)
        return np.asarray(-(change.reshape(*change.shape[:-2], -1) @ flat)[..., 0])

    @property
    def dead(self) -> bool:
        """True if the velocities with these rows rest while others move."""
        sizes = np.linalg.svd(self.rows @ self.basis, compute_uv=False)
        return bool(np.min(sizes, initial=1.0) <= MOVES)

    @property
    def loose(self) -> Array:
        """The motion (columns) at which the velocities with these rows rest, where they can."""
        right = np.linalg.svd(self.rows @ self.basis)[2]
        motion: Array = self.basis @ right[-1]
        return motion

    @property
    def loop(self) -> str:
        """The loop, or the coupling, that lets others move there, of these joints' if any."""
        columns = np.flatnonzero(np.any(self.rows != 0.0, axis=0)).tolist()
        return self.part.loop_of(self.loose, self.q, columns)


def turned_charts(charts: Sequence[Chart | None], q: Array) -> dict[int, Chart]:
    """Charts at neighbours q (n, nq), one of each; of what has none nothing."""
    result: dict[int, Chart] = {}
    for places in _alike(charts):
        at = q[places]
        some = [each for n in places if (each := charts[n])]
        rows, basis = (np.array([getattr(each, x) for each in some]) for x in ("rows", "basis"))
        turned = _turned(some[0].part, at, rows, basis)
        for k, n in enumerate(places):
            result[n] = Chart(turned.part, at[k], rows[k], turned.basis[k], turned.values[k],
                              turned.points, k)  # fmt: skip
    return result


def _turned(part: Part, q: Array, rows: Array, basis: Array) -> Chart:
    """The chart of rows at q (..., nq), by the one at a neighbour that has this basis."""
    points, count = part.strides().at(q.reshape(-1, q.shape[-1])), basis.shape[-1]
    motions = np.swapaxes(part.whole(np.swapaxes(points.n, 1, 2)), 1, 2)
    motions = without_idle(motions, part.interest, count).reshape(*q.shape[:-1], -1, count)
    along = np.swapaxes(motions, -1, -2) @ basis
    if count == 1:
        motions = motions * np.where(along < 0.0, -1.0, 1.0)
    else:
        left, _, right = np.linalg.svd(along)
        motions = motions @ (left @ right)
    told = rows @ motions
    values = np.linalg.det(told) if rows.shape[-2] else np.ones(told.shape[:-2])
    return Chart(part, q, rows, motions, np.asarray(values), points)


def slopes(charts: Sequence[Chart]) -> list[Array]:
    """The slopes of charts, each at one configuration."""
    found: dict[int, Array] = {}
    for places in _alike(charts):
        found |= zip(places, _stacked([charts[n] for n in places]).slope, strict=True)
    return [found[n] for n in range(len(charts))]


def _alike(charts: Sequence[Chart | None]) -> list[list[int]]:
    """Which charts are of one part, and have as many rows."""
    alike: dict[tuple[Part, int], list[int]] = {}
    for n, each in enumerate(charts):
        if each is not None:
            alike.setdefault((each.part, len(each.rows)), []).append(n)
    return [*alike.values()]


def _stacked(charts: Sequence[Chart]) -> Chart:
    """Charts with as many rows as one of several configurations."""
    q, rows, basis, values = (np.array([getattr(each, x) for each in charts])
                              for x in ("q", "rows", "basis", "values"))  # fmt: skip
    points = joined([each.placed for each in charts])
    return Chart(charts[0].part, q, rows, basis, values, points)


def _idle(motions: Array, interest: Sequence[int]) -> Array:
    """The orthonormal motions (columns, n) in which the columns of interest rest."""
    _, singular, right = np.linalg.svd(motions[list(interest)], full_matrices=True)
    moving = int(np.sum(singular > MOVES))
    idle: Array = motions @ right[moving:].T
    return idle


def without_idle(motions: Array, interest: Sequence[int], count: int | None = None) -> Array:
    """The orthonormal motions (..., columns, n) in which the columns of interest move.

    ``count``: how many these are; a batch needs it.
    """
    if not motions.shape[-1] or motions.shape[-1] == count:
        return motions
    _, singular, right = np.linalg.svd(motions[..., list(interest), :], full_matrices=True)
    moving = int(np.sum(singular > MOVES)) if count is None else count
    result: Array = motions @ np.swapaxes(right[..., :moving, :], -1, -2)
    return result
