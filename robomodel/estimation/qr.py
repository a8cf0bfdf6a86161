"""Block elimination by QR: exact rows first, measurements by weighted least squares (001, IV-C).

For each variable in turn, the rows that touch it are joined. The exact ones determine as much of it
as their rank says; what remains is determined by the measurements, in the least-squares sense; rows
that are used up no more go on as a factor on the other variables. Redundant exact rows vanish by
themselves. Floats only: ranks are decisions on values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.dynamics.equations.system import SingularError, System, residual
from robomodel.model.joints import Array

RANK = 1e-10  # of the largest entry of the rows that are joined
CONTRADICTION = 1e-7  # of the largest entry: what exact rows may fail by


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows over some variables, [matrix | right]; soft ones are weighted to unit deviation."""

    names: tuple[str, ...]
    matrix: Array
    soft: bool


@dataclass(frozen=True, slots=True)
class _Conditional:
    """A variable given its parents: x = offset - gain · parents."""

    name: str
    parents: tuple[str, ...]
    gain: Array
    offset: Array


def solve(system: System, order: Sequence[str], *, refine: int = 0) -> dict[str, list[float]]:
    """The d that meets the exact rows and, of those, fits the measurements best.

    ``refine``: steps that solve again for what is missing. Raises :class:`SingularError` where a
    variable is not determined, ValueError where exact rows contradict each other.
    """
    found = _solve(system, order)
    for _ in range(refine):
        rest = iter(residual(system, found))
        again = tuple(replace(f, constant=[next(rest) for _ in range(f.rows)])
                      for f in system.factors)  # fmt: skip
        correction = _solve(System(system.variables, again), order)
        found = {n: [x + y for x, y in zip(found[n], correction[n], strict=True)] for n in found}
    return found


def _solve(system: System, order: Sequence[str]) -> dict[str, list[float]]:
    sizes = {v.name: v.size for v in system.variables}
    pool: list[_Rows] = []
    for factor in system.factors:
        names = tuple(factor.blocks)
        parts = [np.array(factor.blocks[n], dtype=float).reshape(factor.rows, -1) for n in names]
        right = -np.array(factor.constant, dtype=float)[:, None]
        matrix = np.hstack([*parts, right])
        if factor.deviation is not None:
            matrix = matrix / np.array(factor.deviation)[:, None]
        pool.append(_Rows(names, matrix, factor.deviation is not None))
    conditionals: list[_Conditional] = []
    for name in order:
        joined = [rows for rows in pool if name in rows.names]
        pool = [rows for rows in pool if name not in rows.names]
        parents = tuple(dict.fromkeys(n for rows in joined for n in rows.names if n != name))
        exact = _stack([r for r in joined if not r.soft], name, parents, sizes)
        soft = _stack([r for r in joined if r.soft], name, parents, sizes)
        conditional, exact, soft = _eliminate(name, parents, sizes[name], exact, soft)
        conditionals.append(conditional)
        for matrix, is_soft in ((exact, False), (soft, True)):
            if len(matrix) and parents:
                pool.append(_Rows(parents, matrix, is_soft))
    found: dict[str, Array] = {}
    for c in reversed(conditionals):
        above = np.concatenate([found[p] for p in c.parents]) if c.parents else np.zeros(0)
        found[c.name] = c.offset - c.gain @ above
    return {name: [float(x) for x in found[name]] for name in sizes}


def _stack(
    joined: Sequence[_Rows], name: str, parents: Sequence[str], sizes: dict[str, int]
) -> Array:
    """Rows over (name, parents, right)."""
    at, width = {}, 0
    for n in (name, *parents):
        at[n] = width
        width += sizes[n]
    result = np.zeros((sum(len(r.matrix) for r in joined), width + 1))
    first = 0
    for rows in joined:
        last, column = first + len(rows.matrix), 0
        for n in rows.names:
            result[first:last, at[n] : at[n] + sizes[n]] = rows.matrix[
                :, column : column + sizes[n]
            ]
            column += sizes[n]
        result[first:last, -1] = rows.matrix[:, -1]
        first = last
    return result


def _eliminate(
    name: str, parents: tuple[str, ...], size: int, exact: Array, soft: Array
) -> tuple[_Conditional, Array, Array]:
    """Rows that determine the variable, and what is left of the exact and the soft ones."""
    from scipy.linalg import qr, solve_triangular

    scale = float(np.max(np.abs(exact[:, :size]), initial=1e-300))
    rank, pivots = 0, np.arange(size)
    if len(exact):
        turn, upper, pivots = qr(exact[:, :size], pivoting=True)
        rank = int(np.sum(np.abs(np.diag(upper)) > RANK * scale))
        exact = turn.T @ exact
    left = _independent(exact[rank:, size:], float(np.max(np.abs(exact[:, :-1]), initial=scale)))
    # x[pivots[:rank]] = offset - gain · (x[pivots[rank:]], parents)
    held, free = pivots[:rank], pivots[rank:]
    upper = exact[:rank][:, held]
    others = np.hstack([exact[:rank][:, free], exact[:rank, size:]])
    known = solve_triangular(upper, others) if rank else np.zeros((0, others.shape[1]))
    reduced = np.hstack([soft[:, free], soft[:, size:]]) - soft[:, held] @ known
    loose = size - rank
    gain = np.zeros((size, reduced.shape[1]))  # x = gain[:, -1] - gain[:, :-1] parents
    if loose:
        (r,) = qr(reduced, mode="r")
        corner = np.abs(np.diag(r[:loose, :loose]))
        worth = max(np.max(np.abs(reduced[:, :loose]), initial=0.0), 1e-300)
        if len(corner) < loose or np.min(corner) <= RANK * worth:
            raise SingularError(name, "is not determined by the equations and measurements")
        rest = solve_triangular(r[:loose, :loose], r[:loose, loose:])
        reduced = r[loose:]
        gain[free, loose:] = rest
        gain[held, loose:] = known[:, loose:] - known[:, :loose] @ rest
    else:
        gain[held] = known
    gain = gain[:, loose:]
    remaining = reduced[:, loose:]
    if len(remaining) > remaining.shape[1]:
        remaining = qr(remaining, mode="r")[0][: remaining.shape[1]]
    return _Conditional(name, parents, gain[:, :-1], gain[:, -1]), left, remaining


def _independent(rows: Array, scale: float) -> Array:
    """As many exact rows as say something, by QR; the others vanish, or contradict."""
    from scipy.linalg import qr

    if not len(rows):
        return rows
    q, r, pivots = qr(rows[:, :-1], pivoting=True)
    right = q.T @ rows[:, -1]
    size = np.max(np.abs(r), axis=1, initial=0.0)
    rank = int(np.sum(size > RANK * scale))
    if np.any(np.abs(right[rank:]) > CONTRADICTION * max(scale, float(np.max(np.abs(right))))):
        raise ValueError(
            "equations and exact measurements contradict each other: a residual of "
            f"{np.max(np.abs(right[rank:])):.1e} remains; give readings a covariance"
        )
    result = np.zeros((rank, rows.shape[1]))
    result[:, pivots] = r[:rank]
    result[:, -1] = right[:rank]
    return result
