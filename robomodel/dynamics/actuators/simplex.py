"""The greatest torque of one coordinate while others get none, for many states at once."""

from __future__ import annotations

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.tolerances import NOTHING, RANK, SAME


def greatest_alone(b: Array, place: Indices, lower: Array, upper: Array) -> Array:
    """The greatest t (n,) with B u = t e within limits (n, nu) of u; 0 where no t is possible.

    ``b``: B (n, rows, nu); ``place``: the row (n,) where e is 1, else it is 0. Infinite where t has
    no limit, not-a-number where a limit is.
    """
    ends = np.stack([lower, upper])
    lost = np.any(np.isnan(ends), axis=(0, 2))
    unit = np.max(np.abs(np.where(np.isfinite(ends), ends, 0.0)), axis=0)
    unit = np.where(unit > 0.0, unit, 1.0)
    b = np.where(np.abs(b) > NOTHING * np.max(np.abs(b), axis=(1, 2), keepdims=True), b, 0.0)
    b = b * unit[:, None]
    size = np.max(np.abs(b), axis=2)
    size = np.where(size > 0.0, size, 1.0)
    low, high = np.where(lost[:, None], 0.0, ends / unit)
    t = _simplex(b / size[..., None], place, low, high)
    return np.where(lost, np.nan, t * size[np.arange(len(b)), place])


def _simplex(b: Array, place: Indices, lower: Array, upper: Array) -> Array:
    """The same of numbers near 1, by the dual simplex method with Bland's rule.

    Variables are u and s = B u; s is t, without limits, at ``place``, else 0. At first all s are
    basic: they follow from the others, each of which is at a limit. t stays so.
    """
    n, rows, nu = b.shape
    wide = np.concatenate([b, np.broadcast_to(-np.eye(rows), (n, rows, rows))], axis=2)
    low, high = (_with_slacks(x, rows) for x in (lower, upper))
    basis = np.tile(np.arange(nu, nu + rows), (n, 1))
    above = np.zeros((n, nu + rows), dtype=bool)  # at the upper limit
    result, left = np.zeros(n), np.arange(n)
    while left.size:
        at, row = np.arange(left.size), place[left]
        inverse = np.linalg.inv(np.take_along_axis(wide[left], basis[:, None], 2))
        table = inverse @ wide[left]  # basic variables are -table @ the others
        np.put_along_axis(table, basis[:, None], 0.0, 2)
        cost = _without_noise(table[at, row])
        above = np.where(cost == 0.0, above, cost < 0.0)
        value = -table @ np.where(above[..., None], high[left], low[left])
        ends = [np.take_along_axis(x[left], basis[..., None], 1) for x in (low, high)]
        under, over = _positive(ends[0] - value), _positive(value - ends[1])
        result[left] = np.where(value[at, row, 1] > SAME, np.inf, value[at, row, 0])
        violated = under | over
        violated[at, row] = False
        out = np.argmin(np.where(violated, basis, nu + rows), axis=1)
        along = _without_noise(table[at, out]) * np.where(above, -1.0, 1.0)
        along *= np.where(over[at, out], 1.0, -1.0)[:, None]
        able = along > 0.0
        able[:, nu:] = False
        ratio = np.where(able, np.abs(cost) / np.where(able, along, 1.0), np.inf)
        above[at, basis[at, out]] = over[at, out]
        basis[at, out] = np.argmin(ratio, axis=1)
        violates, stuck = np.any(violated, axis=1), ~np.any(able, axis=1)
        result[left[violates & stuck]] = 0.0
        goes = violates & ~stuck
        left, basis, above = left[goes], basis[goes], above[goes]
    return result


def _with_slacks(limit: Array, rows: int) -> Array:
    """A limit of u and of s (n, nu + rows, 2), each a finite part and a multiple of infinity."""
    infinite = np.isinf(limit)
    parts = [np.where(infinite, 0.0, limit), np.where(infinite, np.sign(limit), 0.0)]
    return np.pad(np.stack(parts, axis=-1), ((0, 0), (0, rows), (0, 0)))


def _without_noise(row: Array) -> Array:
    """Rows (n, k) with zeros in place of rounding errors."""
    return np.where(np.abs(row) > RANK * np.max(np.abs(row), axis=1, keepdims=True), row, 0.0)


def _positive(x: Array) -> Mask:
    """Where finite parts and multiples of infinity (..., 2) are greater than zero."""
    return np.asarray(np.where(np.abs(x[..., 1]) > SAME, x[..., 1], x[..., 0]) > SAME)
