"""Elimination by QR: exact rows first, then weighted ones; along time, or in an order of variables.

:func:`eliminate` is the one step (document 001, IV-C): the rows in which some unknowns x occur give
x as a linear function of the other unknowns in them plus unit noise, and leave rows on those: first
the conditions, by a rank-revealing QR with exact substitution into the rest, then the weighted rows
by QR. No normal equations are formed, so that no digits are lost to their squared condition number.

Along time, x is all of time t and the others are x_t+1. The rows that remain after time t are also
the marginal of a fixed-lag smoother; and the chain of conditionals, run backwards, gives solution
and covariances (the square-root form of the smoother of Rauch, Tung and Striebel). At an instant, x
is one variable of a sparse system after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from robomodel.estimation.equations import SingularError
from robomodel.estimation.graph import Graph, Linear, Values
from robomodel.model.joints import Array, Mask

RANK = 1e-10  # of a condition's row, scaled to length 1
DETERMINED = 1e-13  # of a column's norm before the others were eliminated from it
WHOLE = 32  # columns that LAPACK takes one by one, and in one call
PANEL, BLOCK = 16, 32  # columns factored together here, and reflectors that LAPACK takes together
CONTRADICTION = 1e-7  # of the largest entry: what exact rows may fail by
REFLECTED, SOLVED = 100_000, 1000  # sizes of products, and of solves, that OpenBLAS does not share


@cache
def _routines() -> tuple[Any, Any]:
    """SciPy's LAPACK and BLAS, imported at the first call."""
    from scipy.linalg import blas, lapack

    return lapack, blas


class ContradictionError(ValueError):
    """Exact rows contradict each other; a ``residual`` of one of them remains."""

    def __init__(self, residual: float) -> None:
        super().__init__(
            "equations and exact measurements contradict each other: a residual of "
            f"{residual:.1e} remains; give readings a covariance"
        )
        self.residual = residual

    def __reduce__(self) -> tuple[type[ContradictionError], tuple[float]]:
        return type(self), (self.residual,)


class UndeterminedError(ValueError):
    """The factors leave the unknown ``.label`` of time ``.time`` free (None: at some time)."""

    def __init__(self, time: int | None, label: str) -> None:
        when = "" if time is None else f" at time {time}"
        super().__init__(
            f"the factors leave '{label}'{when} undetermined: add a prior or a measurement"
        )
        self.time = time
        self.label = label


@dataclass(frozen=True, eq=False)
class Conditional:
    """x = gain · others + offset + root · ε with ε ~ N(0, 1): (n, m), (n,), (n, free)."""

    gain: Array
    offset: Array
    root: Array


@dataclass(frozen=True, eq=False)
class RemainingRows:
    """Rows [C d] (…, m + 1): conditions, and weighted rows of unit noise.

    ``contradiction``: the largest right-hand side of conditions, scaled to length 1, in which no
    unknown is left.
    """

    hard: Array
    soft: Array
    contradiction: float = 0.0


def eliminate(
    hard: Array, soft: Array, labels: Sequence[str], time: int | None = 0
) -> tuple[Conditional, RemainingRows]:
    """Eliminate x from rows [A B b] (…, n + m + 1), by x and m others; with rows on these.

    Raises UndeterminedError with one of the ``labels`` (n) of x.
    """
    lapack, _ = _routines()
    n = len(labels)
    m = hard.shape[1] - n - 1
    rank, order, contradiction = 0, np.arange(n), 0.0
    solved, reduced = np.zeros((0, hard.shape[1])), np.zeros((0, m + 1))
    if len(hard):
        norms = np.sqrt(np.einsum("ij,ij->i", hard[:, :-1], hard[:, :-1]))
        if not norms.all():
            contradiction = float(np.max(np.abs(hard[norms == 0.0, -1])))
            hard, norms = hard[norms > 0.0], norms[norms > 0.0]
        hard = hard / norms[:, np.newaxis]
        triangle, order, tau, _, _ = lapack.dgeqp3(hard[:, :n])
        order = order - 1
        rank = int(np.count_nonzero(np.abs(np.diagonal(triangle)) > RANK))
        reflectors = triangle[:, : len(tau)]
        turned = _reflected(reflectors, tau, hard[:, n:])
        # the columns of the other unknowns, of those that stay, and b, solved for the first
        mixed = np.concatenate([triangle[:rank, rank:], turned[:rank]], axis=1)
        solved = _solved(triangle[:rank, :rank], mixed) if rank else mixed
        reduced = turned[rank:]
        if len(reduced):
            determines = np.abs(reduced[:, :-1]).max(axis=1, initial=0.0) > RANK
            if not determines.all():
                contradiction = max(contradiction, float(np.max(np.abs(reduced[~determines, -1]))))
                reduced = reduced[determines]
    free, pivot_at, free_at = n - rank, order[:rank], order[rank:]
    work = np.concatenate([soft[:, free_at], soft[:, n:]], axis=1)
    sizes = np.einsum("ij,ij->j", work[:, :free], work[:, :free])
    if rank:
        through = soft[:, pivot_at] @ solved
        sizes += np.einsum("ij,ij->j", through[:, :free], through[:, :free])
        work -= through
    np.sqrt(sizes, out=sizes)
    # heavy rows first, as Householder's method wants them where weights differ much
    work = work[np.argsort(-np.abs(work).max(axis=1, initial=0.0))]
    r = triangle_of(work)
    pivots = np.zeros(free)
    diagonal = np.abs(np.diagonal(r[:free, :free]))
    pivots[: len(diagonal)] = diagonal
    loose = ~(pivots > DETERMINED * sizes)
    if loose.any():
        raise UndeterminedError(time, labels[free_at[int(np.argmax(loose))]])
    # gain, offset and root side by side: first of the free unknowns, then of the pivots by them
    parts = np.zeros((n, m + 1 + free))
    if free:
        right = np.concatenate([r[:free, free:], _unit(free)], axis=1)
        right[:, :m] *= -1.0
        parts[free_at] = _solved(r[:free, :free], right)
    if rank:
        parts[pivot_at, : m + 1] = solved[:, free:]
        parts[pivot_at, :m] *= -1.0
        parts[pivot_at] -= solved[:, :free] @ parts[free_at]
    conditional = Conditional(parts[:, :m], parts[:, m], parts[:, m + 1 :])
    return conditional, RemainingRows(reduced, r[free : free + m, free:], contradiction)


# LAPACK's own blocks become large enough for BLAS to share each among threads, which wait for one
# another hundreds of times in one call, and for their turn on a busy machine. The pieces here are
# small enough for one thread.


def triangle_of(rows: Array) -> Array:
    """R of rows = Q R, without Q, (as many rows as it takes, columns); Householder's, by panels."""
    lapack, _ = _routines()
    work = np.asfortranarray(rows)
    most = min(work.shape)
    if 0 < most <= WHOLE and work.size <= REFLECTED // WHOLE:
        work, *_ = lapack.dgeqrf(work, lwork=work.shape[1])
        return np.where(_upper(most, work.shape[1]), work[:most], 0.0)
    for first in range(0, most, PANEL):
        stop = min(first + PANEL, most)
        reflectors, tau, _, _ = lapack.dgeqrf(work[first:, first:stop])
        work[first:, first:stop] = reflectors
        if stop < work.shape[1]:
            work[first:, stop:] = _reflected(reflectors, tau, work[first:, stop:])
    return np.where(_upper(most, work.shape[1]), work[:most], 0.0)


@lru_cache(maxsize=256)
def _unit(size: int) -> Array:
    return np.eye(size)


@lru_cache(maxsize=256)
def _upper(rows: int, columns: int) -> Mask:
    """Where a triangle has entries."""
    return ~np.tri(rows, columns, -1, dtype=bool)


def _reflected(reflectors: Array, tau: Array, columns: Array) -> Array:
    """Qᵀ columns."""
    lapack, _ = _routines()
    result = np.empty_like(columns, order="F")
    step = max(1, REFLECTED // (min(len(tau), BLOCK) * len(columns)))
    for at in range(0, columns.shape[1], step):
        part = columns[:, at : at + step]
        # few reflectors are applied one by one: blocks of them would only allocate memory
        room = BLOCK * step if len(tau) >= BLOCK else part.shape[1]
        turned, _, _ = lapack.dormqr("L", "T", reflectors, tau, part, room)
        result[:, at : at + step] = turned
    return result


def _solved(triangle: Array, columns: Array) -> Array:
    """triangle⁻¹ columns."""
    _, blas = _routines()
    step = max(1, SOLVED // len(triangle))
    if step >= columns.shape[1]:
        whole: Array = blas.dtrsm(1.0, triangle, columns)
        return whole
    triangle, result = np.asfortranarray(triangle), np.empty_like(columns, order="F")
    for at in range(0, columns.shape[1], step):
        result[:, at : at + step] = blas.dtrsm(1.0, triangle, columns[:, at : at + step])
    return result


def chain(linear: Linear, damping: Array | None = None) -> list[Conditional]:
    """The conditionals of all times; ``damping`` (count, n) adds a row damping · x = 0 for each."""
    n, left, result = linear.n, None, []
    for t in range(linear.count):
        soft = linear.soft[t]
        if damping is not None:
            rows = np.concatenate([np.diag(damping[t]), np.zeros((n, n + 1))], axis=1)
            soft = np.concatenate([soft, rows])
        conditional, left = eliminate_next(left, linear.hard[t], soft, linear.labels, t)
        result.append(conditional)
    return result


def eliminate_next(
    left: RemainingRows | None, hard: Array, soft: Array, labels: Sequence[str], time: int
) -> tuple[Conditional, RemainingRows]:
    """Eliminate a time of a chain, with the rows left of the time before."""
    if left is not None:
        hard = np.concatenate([_widened(left.hard, len(labels)), hard])
        soft = np.concatenate([_widened(left.soft, len(labels)), soft])
    return eliminate(hard, soft, labels, time)


def _widened(rows: Array, n: int) -> Array:
    """Rows on x_t as rows on x_t and x_t+1."""
    return np.concatenate([rows[:, :n], np.zeros((len(rows), n)), rows[:, n:]], axis=1)


def back_substitute(conditionals: Sequence[Conditional]) -> Array:
    """The solution (count, n)."""
    n = len(conditionals[0].offset)
    result = np.zeros((len(conditionals), n))
    x = np.zeros(n)
    for t in range(len(conditionals) - 1, -1, -1):
        x = conditionals[t].gain @ x + conditionals[t].offset
        result[t] = x
    return result


def covariances(conditionals: Sequence[Conditional]) -> Array:
    """Σ (count, n, n) of x at each time, exactly determined directions with zeros."""
    n = len(conditionals[0].offset)
    result = np.zeros((len(conditionals), n, n))
    sigma = np.zeros((n, n))
    for t in range(len(conditionals) - 1, -1, -1):
        gain, root = conditionals[t].gain, conditionals[t].root
        sigma = gain @ sigma @ gain.T + root @ root.T
        result[t] = sigma
    return result


# ---- in an order of variables --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows [matrix | right] over some variables: conditions, or whitened ones (``soft``)."""

    names: tuple[str, ...]
    matrix: Array
    soft: bool


def solve_in_order(graph: Graph, order: Sequence[str], *, refine: int = 0) -> dict[str, Array]:
    """The values (size,) of a graph of one time that minimise its cost under its conditions.

    Its factors are affine. ``order``: all variables, eliminated one after the other. ``refine``:
    steps of iterative refinement. Redundant conditions vanish by themselves. Raises
    :class:`SingularError` where a variable is not determined, ValueError where conditions
    contradict each other.
    """
    values = {name: np.zeros((1, space.size)) for name, space in graph.spaces.items()}
    for _ in range(1 + refine):
        step = _step_in_order(graph, values, order)
        values = {name: graph.spaces[name].retract(x, step[name]) for name, x in values.items()}
    return {name: x[0] for name, x in values.items()}


def _step_in_order(graph: Graph, values: Values, order: Sequence[str]) -> dict[str, Array]:
    sizes = {name: space.dim for name, space in graph.spaces.items()}
    conditionals: list[tuple[str, tuple[str, ...], Conditional]] = []
    pool = list(_linear_rows(graph, values))
    for name in order:
        joined = [rows for rows in pool if name in rows.names]
        pool = [rows for rows in pool if name not in rows.names]
        parents = tuple(dict.fromkeys(n for rows in joined for n in rows.names if n != name))
        hard, soft = (
            _stacked([rows for rows in joined if rows.soft == kind], (name, *parents), sizes)
            for kind in (False, True)
        )
        try:
            conditional, left = eliminate(hard, soft, [name] * sizes[name], None)
        except UndeterminedError:
            raise SingularError(
                name, "is not determined by the equations and measurements"
            ) from None
        if left.contradiction > CONTRADICTION * max(
            1.0, float(np.max(np.abs(hard[:, -1]), initial=0.0))
        ):
            raise ContradictionError(left.contradiction)
        conditionals.append((name, parents, conditional))
        pool += [
            _Rows(parents, rows, kind)
            for rows, kind in ((left.hard, False), (left.soft, True))
            if len(rows) and parents
        ]
    step: dict[str, Array] = {}
    for name, parents, c in reversed(conditionals):
        above = np.concatenate([step[p] for p in parents]) if parents else np.zeros(0)
        step[name] = c.gain @ above + c.offset
    return step


def _linear_rows(graph: Graph, values: Values) -> Iterator[_Rows]:
    """The factors' rows, linearised at these values."""
    for term in graph.terms:
        e, jacobians = term.errors(values)
        matrix = term.noise.whiten(np.concatenate([*jacobians, -e[..., np.newaxis]], axis=-1))[0]
        names = tuple(name for name, _ in term.factor.variables)
        for part, soft in zip(term.noise.parts, (False, True), strict=True):
            if len(part):
                yield _Rows(names, matrix[part], soft)


def _stacked(parts: Sequence[_Rows], names: Sequence[str], sizes: Mapping[str, int]) -> Array:
    """All rows over these variables and the right-hand side."""
    stops = np.cumsum([0, *(sizes[n] for n in names)]).tolist()
    columns = {n: range(a, b) for n, a, b in zip(names, stops, stops[1:], strict=False)}
    result = np.zeros((sum(len(rows.matrix) for rows in parts), stops[-1] + 1))
    first = 0
    for rows in parts:
        at = [c for n in rows.names for c in columns[n]]
        result[first : first + len(rows.matrix), [*at, -1]] = rows.matrix
        first += len(rows.matrix)
    return result
