"""Elimination along time: a linearised graph solved by QR, one time after the other.

The rows in which time t occurs give x_t as a linear function of x_t+1 plus unit noise, and leave
rows on x_t+1: first the conditions, by a rank-revealing QR with exact substitution into the rest,
then the weighted rows by QR. No normal equations are formed, so that no digits are lost to their
squared condition number. What is left after time t is also what a fixed-lag smoother keeps of the
past; and the chain of conditionals, run backwards, gives solution and covariances (the square-root
form of the smoother of Rauch, Tung and Striebel).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from robomodel.estimation.graph import Linear
from robomodel.model.joints import Array, Mask

RANK = 1e-10  # of a condition's row, scaled to length 1
DETERMINED = 1e-13  # of what a column was before the others were taken out of it
WHOLE = 32  # columns that LAPACK takes one by one, and in one call
PANEL, BLOCK = 16, 32  # columns factored together here, and reflectors that LAPACK takes together
REFLECTED, SOLVED = 100_000, 1000  # sizes of products, and of solves, that OpenBLAS does not share


@cache
def _routines() -> tuple[Any, Any]:
    """SciPy's LAPACK and BLAS, imported when first asked for."""
    from scipy.linalg import blas, lapack

    return lapack, blas


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
    """x_t = gain · x_t+1 + offset + root · ε with ε ~ N(0, 1): (n, n), (n,), (n, free)."""

    gain: Array
    offset: Array
    root: Array


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows on one time's x (…, n + 1): conditions, and weighted rows of unit noise."""

    hard: Array
    soft: Array


def eliminate(
    hard: Array, soft: Array, labels: Sequence[str], time: int = 0
) -> tuple[Conditional, Rows]:
    """Eliminate x_t from rows [A B b] (…, 2n + 1); what is left are rows on x_t+1."""
    lapack, _ = _routines()
    n = len(labels)
    rank, order = 0, np.arange(n)
    solved, kept = np.zeros((0, 2 * n + 1)), np.zeros((0, n + 1))
    if len(hard):
        norms = np.sqrt(np.einsum("ij,ij->i", hard[:, :-1], hard[:, :-1]))
        if not norms.all():
            hard, norms = hard[norms > 0.0], norms[norms > 0.0]
        hard = hard / norms[:, np.newaxis]
        triangle, order, tau, _, _ = lapack.dgeqp3(hard[:, :n])
        order = order - 1
        rank = int(np.count_nonzero(np.abs(np.diagonal(triangle)) > RANK))
        reflectors = triangle[:, : len(tau)]
        turned = _reflected(reflectors, tau, hard[:, n:])
        # the columns of the other unknowns, of x_t+1, and b, solved for the first ``rank``
        mixed = np.concatenate([triangle[:rank, rank:], turned[:rank]], axis=1)
        solved = _solved(triangle[:rank, :rank], mixed) if rank else mixed
        kept = turned[rank:]
        if len(kept):
            kept = kept[np.abs(kept[:, :-1]).max(axis=1, initial=0.0) > RANK]
    free, pivot_at, rest_at = n - rank, order[:rank], order[rank:]
    work = np.concatenate([soft[:, rest_at], soft[:, n:]], axis=1)
    if rank:
        work -= soft[:, pivot_at] @ solved
    sizes = np.sqrt(np.einsum("ij,ij->j", work[:, :free], work[:, :free]))
    # heavy rows first, as Householder's method wants them where weights differ much
    work = work[np.argsort(-np.abs(work).max(axis=1, initial=0.0))]
    r = triangle_of(work)
    pivots = np.zeros(free)
    diagonal = np.abs(np.diagonal(r[:free, :free]))
    pivots[: len(diagonal)] = diagonal
    loose = ~(pivots > DETERMINED * sizes)
    if loose.any():
        raise UndeterminedError(time, labels[rest_at[int(np.argmax(loose))]])
    # gain, offset and root side by side: first of the rest, then of the pivots through it
    found = np.zeros((n, n + 1 + free))
    if free:
        right = np.concatenate([r[:free, free:], _unit(free)], axis=1)
        right[:, :n] *= -1.0
        found[rest_at] = _solved(r[:free, :free], right)
    if rank:
        found[pivot_at, : n + 1] = solved[:, free:]
        found[pivot_at, :n] *= -1.0
        found[pivot_at] -= solved[:, :free] @ found[rest_at]
    conditional = Conditional(found[:, :n], found[:, n], found[:, n + 1 :])
    return conditional, Rows(kept, r[free : free + n, free:])


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
        # few reflectors go one by one: memory for blocks of them would only be taken and given back
        room = BLOCK * step if len(tau) >= BLOCK else part.shape[1]
        turned, _, _ = lapack.dormqr("L", "T", reflectors, tau, part, room)
        result[:, at : at + step] = turned
    return result


def _solved(triangle: Array, columns: Array) -> Array:
    """triangle⁻¹ columns."""
    _, blas = _routines()
    step = max(1, SOLVED // len(triangle))
    if step >= columns.shape[1]:
        found: Array = blas.dtrsm(1.0, triangle, columns)
        return found
    triangle, result = np.asfortranarray(triangle), np.empty_like(columns, order="F")
    for at in range(0, columns.shape[1], step):
        result[:, at : at + step] = blas.dtrsm(1.0, triangle, columns[:, at : at + step])
    return result


def chain(linear: Linear, damping: Array | None = None) -> list[Conditional]:
    """The conditionals of all times; ``damping`` (count, n) adds a row damping · x = 0 for each."""
    n = linear.n
    left = Rows(np.zeros((0, n + 1)), np.zeros((0, n + 1)))
    result = []
    for t in range(linear.count):
        hard = np.concatenate([widened(left.hard, n), linear.hard[t]])
        soft = [widened(left.soft, n), linear.soft[t]]
        if damping is not None:
            soft.append(np.concatenate([np.diag(damping[t]), np.zeros((n, n + 1))], axis=1))
        conditional, left = eliminate(hard, np.concatenate(soft), linear.labels, t)
        result.append(conditional)
    return result


def widened(rows: Array, n: int) -> Array:
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
