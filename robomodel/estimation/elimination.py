"""Elimination by QR, exact rows before weighted ones, along time or in an order of variables.

:func:`eliminate` is the elementary step (Xie and Dellaert, section IV-C). The rows that contain
some unknowns x give x as a linear function of the other unknowns in them plus unit noise, and leave
rows on those. Exact rows are eliminated first, by rank-revealing QR and substitution into the rest,
then weighted rows, by QR. Normal equations are avoided, as they square the condition number.

Along time, x is the state at t and the others are the state at t + 1. The rows that remain after
time t are also the marginal of a fixed-lag smoother; back substitution gives solution and
covariances (the square-root form of the Rauch-Tung-Striebel smoother). At an instant, x is one
variable of a graph after the other (:func:`solve_in_order`);
:mod:`robomodel.instants.elimination` does it over scalars of any kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.estimation.graph import Graph, Linear, Values
from robomodel.tolerances import RANK, ROUNDING

WHOLE = 32  # up to this many columns, LAPACK is called once for all
PANEL, BLOCK = 16, 32  # columns factored per panel, and reflectors that LAPACK applies as a block
CONTRADICTION = 1e-7  # residual of exact rows, relative to their largest entry, that is refused
REFLECTED, SOLVED = 100_000, 1000  # sizes up to which OpenBLAS uses one thread (products, solves)


@cache
def _routines() -> tuple[Any, Any]:
    """SciPy's LAPACK and BLAS, imported at the first call."""
    from scipy.linalg import blas, lapack

    return lapack, blas


class SingularError(ArithmeticError):
    """A variable is not determined by the equations, or not in this order; its name is first."""

    def __init__(self, variable: str, message: str) -> None:
        super().__init__(f"'{variable}' {message}")
        self.variable = variable


class ContradictionError(ValueError):
    """Exact rows contradict each other; ``residual`` is the residual of one of them."""

    def __init__(self, residual: float) -> None:
        super().__init__(
            "equations and exact measurements contradict each other: a residual of "
            f"{residual:.1e} remains; give readings a covariance"
        )
        self.residual = residual

    def __reduce__(self) -> tuple[type[ContradictionError], tuple[float]]:
        return type(self), (self.residual,)


class UndeterminedError(ValueError):
    """The factors leave the unknown ``.label`` at ``.time`` free (None: at an unknown time)."""

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
    """Rows [C d] (…, m + 1) on the remaining unknowns: exact, and weighted with unit noise.

    ``contradiction``: the largest residual, relative to the row's scale, of exact rows without
    unknowns.
    """

    hard: Array
    soft: Array
    contradiction: float = 0.0


def eliminate(
    hard: Array, soft: Array, labels: Sequence[str], time: int | None = 0
) -> tuple[Conditional, RemainingRows]:
    """Eliminate x from rows [A B b] (…, n + m + 1) on x (n) and m other unknowns.

    Returns x given the others, and the rows that remain on these. Raises UndeterminedError with one
    of the ``labels`` (n) of x.
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
        # columns of the other unknowns, of free ones in x, and b, solved for the pivots
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
    # Householder's method needs the largest rows first if weights differ much
    work = work[np.argsort(-np.abs(work).max(axis=1, initial=0.0))]
    r = triangle_of(work)
    pivots = np.zeros(free)
    diagonal = np.abs(np.diagonal(r[:free, :free]))
    pivots[: len(diagonal)] = diagonal
    loose = ~(pivots > ROUNDING * sizes)
    if loose.any():
        raise UndeterminedError(time, labels[free_at[int(np.argmax(loose))]])
    # gain, offset and root side by side: of the free unknowns, then of the pivots
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


# LAPACK's own blocks are large enough for BLAS to share each among threads, which then wait for
# each other hundreds of times per call, and longer on a busy machine. The pieces here are small
# enough for one thread.


def triangle_of(rows: Array) -> Array:
    """R (min(m, n), n) of rows (m, n) = Q R, by Householder's method in panels, without Q."""
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
    """A mask of the upper triangle."""
    return ~np.tri(rows, columns, -1, dtype=bool)


def _reflected(reflectors: Array, tau: Array, columns: Array) -> Array:
    """Qᵀ columns, from the reflectors of Q."""
    lapack, _ = _routines()
    result = np.empty_like(columns, order="F")
    step = max(1, REFLECTED // (min(len(tau), BLOCK) * len(columns)))
    for at in range(0, columns.shape[1], step):
        part = columns[:, at : at + step]
        # few reflectors are applied one by one, since blocks of them would allocate memory
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
    """The conditionals of all times; ``damping`` (count, n) adds rows damping · x = 0."""
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
    """Eliminate one time of a chain together with the rows remaining from the previous time."""
    if left is not None:
        hard = np.concatenate([_widened(left.hard, len(labels)), hard])
        soft = np.concatenate([_widened(left.soft, len(labels)), soft])
    return eliminate(hard, soft, labels, time)


def _widened(rows: Array, n: int) -> Array:
    """Pad rows on x_t to rows on x_t and x_t+1."""
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
    """Σ (count, n, n) of x at each time; zero in exactly determined directions."""
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
class _RowBlock:
    """Rows [matrix | right] over some variables: exact, or weighted and whitened (``soft``)."""

    names: tuple[str, ...]
    matrix: Array
    soft: bool


def solve_in_order(graph: Graph, order: Sequence[str], *, refine: int = 0) -> dict[str, Array]:
    """The values (size,) of a graph of one time that minimise its cost under its exact factors.

    Factors must be affine. ``order``: all variables in elimination order. ``refine``: number of
    steps of iterative refinement. Redundant exact rows are allowed. Raises :class:`SingularError`
    if a variable is not determined, ValueError if exact rows contradict each other.
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
            _RowBlock(parents, rows, kind)
            for rows, kind in ((left.hard, False), (left.soft, True))
            if len(rows) and parents
        ]
    step: dict[str, Array] = {}
    for name, parents, c in reversed(conditionals):
        above = np.concatenate([step[p] for p in parents]) if parents else np.zeros(0)
        step[name] = c.gain @ above + c.offset
    return step


def _linear_rows(graph: Graph, values: Values) -> Iterator[_RowBlock]:
    """The rows of all factors, linearised at these values."""
    for term in graph.terms:
        e, jacobians = term.errors(values)
        matrix = term.noise.whiten(np.concatenate([*jacobians, -e[..., np.newaxis]], axis=-1))[0]
        names = tuple(name for name, _ in term.factor.variables)
        for part, soft in zip(term.noise.parts, (False, True), strict=True):
            if len(part):
                yield _RowBlock(names, matrix[part], soft)


def _stacked(parts: Sequence[_RowBlock], names: Sequence[str], sizes: Mapping[str, int]) -> Array:
    """All rows as one matrix over these variables and the right-hand side."""
    stops = np.cumsum([0, *(sizes[n] for n in names)]).tolist()
    columns = {n: range(a, b) for n, a, b in zip(names, stops, stops[1:], strict=False)}
    result = np.zeros((sum(len(rows.matrix) for rows in parts), stops[-1] + 1))
    first = 0
    for rows in parts:
        at = [c for n in rows.names for c in columns[n]]
        result[first : first + len(rows.matrix), [*at, -1]] = rows.matrix
        first += len(rows.matrix)
    return result
