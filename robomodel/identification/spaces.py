"""Spans, kernels and row spaces by singular values, with the gap that decided their ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.model.joints import Array

FAINT = 1e-14  # of the largest singular value: what surely does not count below
CLEAR = 1e-6  # and what surely does above
ROUNDING = 1e-16
NOTHING = 1e-11  # of the longest column: a column that is zero
PIVOTS = (0.05, 1e-3, 1e-7)  # of a column: what must be left of it beside the pivots before


@dataclass(frozen=True, slots=True)
class Gap:
    """The smallest singular value that counts, and the largest that does not; of the largest."""

    kept: float = 1.0
    dropped: float = 0.0

    @property
    def ratio(self) -> float:
        """How much they differ: up to 1e17."""
        return self.kept / max(self.dropped, 1e-17)

    def worse(self, other: Gap) -> Gap:
        """The narrower of two."""
        return self if self.ratio <= other.ratio else other


def span(columns: Array) -> Array:
    """Columns with the span of these, orthogonal, and as long as they are there to be seen.

    What is only just attained is known with as much less accuracy: of length one, a direction that
    is 1e-8 of the others would carry 1e-8 of rounding into what nothing attains, where that counts.
    The whole space is exact.
    """
    if 0 in columns.shape:
        return columns[:, :0]
    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    if not size[0] > 0.0:
        return columns[:, :0]
    rank = _rank(size / size[0])[0]
    return np.eye(len(left)) if rank == len(left) else left[:, :rank] * (size[:rank] / size[0])


def _rank(share: Array) -> tuple[int, Gap]:
    """The rank of a matrix of these singular values, the largest 1: where the widest gap is.

    Loops near one configuration vary little, so that what counts may be small.
    """
    least, most = int(np.sum(share > CLEAR)), int(np.sum(share > FAINT))
    padded = np.maximum(np.append(share, 0.0), ROUNDING)
    ratios = padded[least - 1 : most] / padded[least : most + 1]
    rank = least + int(np.argmax(ratios))
    return rank, Gap(float(share[rank - 1]), float(share[rank]) if rank < len(share) else 0.0)


def split(rows: Array) -> tuple[Array, Array, Array, Gap]:
    """(row space, kernel, columns' sizes, gap) of a matrix.

    Both spaces are orthonormal rows, for unknowns that are multiplied by their columns' sizes.
    """
    count = rows.shape[1]
    sizes = np.linalg.norm(rows, axis=0)
    if not rows.any():
        return np.zeros((0, count)), np.eye(count), np.ones(count), Gap()
    some = sizes > NOTHING * max(float(sizes.max(initial=0.0)), 1e-300)
    sizes = np.where(some, sizes, 1.0)
    scaled = np.where(some, rows / sizes, 0.0)
    if len(scaled) > count:
        scaled = np.asarray(np.linalg.qr(scaled, mode="r"))
    _, singular, right = np.linalg.svd(scaled, full_matrices=True)
    singular = np.concatenate([singular, np.zeros(count - len(singular))])
    rank, gap = _rank(singular / singular[0])
    return right[:rank], right[rank:], sizes, gap


def reduced(rows: Array, order: Sequence[int]) -> tuple[Array, list[int]]:
    """Reduced row echelon form of orthonormal rows, and its pivots.

    Pivots are the first columns of ``order`` that stand apart from those before them.
    """
    left = rows.copy()
    pivots: list[int] = []
    lengths = np.linalg.norm(rows, axis=0)
    for least in PIVOTS:
        for column in order:
            if len(pivots) == len(rows):
                break
            rest = float(np.linalg.norm(left[:, column]))
            if column in pivots or rest <= least * max(lengths[column], 1e-6):
                continue
            pivots.append(column)
            along = left[:, column] / rest
            left -= np.outer(along, along @ left)
    pivots.sort(key=list(order).index)
    result: Array = np.asarray(np.linalg.solve(rows[:, pivots], rows), dtype=float)
    result[np.abs(result) < 1e-9] = 0.0
    result[:, pivots] = np.eye(len(pivots))
    return result, pivots
