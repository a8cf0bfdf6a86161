"""Change points along paths of one freedom, at which K loses a rank, and several ways go on.

The least singular value of K vanishes there, in proportion to the way: its slope along the path, by
central differences, changes its sign. The sign of a determinant does not tell where an even number
of loops flatten together, as of two parallelograms one behind the other.
"""

from __future__ import annotations

import math

import numpy as np

from robomodel.arrays import Array, Indices
from robomodel.mechanism.roots import root
from robomodel.reach.groups import Group
from robomodel.reach.parts import VARIED
from robomodel.reach.paths import WEAK
from robomodel.tolerances import NOTHING, TINY, WRITTEN


def vanishing(values: Array, slopes: Array, lengths: Array) -> Indices:
    """The points (n,) of a path after which a size vanishes before the next, so far on."""
    vanish = (values[:-1] + lengths * slopes[:-1] <= WEAK) & (slopes[:-1] < 0.0)
    vanish &= (values[1:] - lengths * slopes[1:] <= WEAK) & (slopes[1:] > 0.0)
    return np.flatnonzero(vanish)


def unwound(q: Array, start: Array, whole: Indices) -> Array:
    """Configurations (..., nq), hinges of places ``whole`` within half a turn of their start."""
    result = q.copy()
    result[..., whole] -= math.tau * np.round((q - start)[..., whole] / math.tau)
    return result


def crossings(group: Group) -> list[Array]:
    """The configurations at which K loses a rank on the path of a group of one freedom."""
    step, rank, path = group.along.mechanism.step, group.along.rank, group.path
    if not rank:
        return []

    def size(q: Array, d: Array) -> Array:
        sizes = np.linalg.svd(step(q, d)[2], compute_uv=False)
        return np.asarray(sizes[:, rank - 1] / np.maximum(sizes[:, 0], TINY))

    def slope(q: Array, t: Array) -> Array:
        return (size(q, VARIED * t) - size(q, -VARIED * t)) / (2.0 * VARIED)

    q, t = path.points.q, path.points.n[:, :, 0]
    values, slopes = size(q, 0.0 * t), slope(q, t)
    # those that strides pass, where a determinant changes its sign; where it was drawn; others
    found = [*group.along.crossed, *q[1:-1][values[1:-1] <= WRITTEN]]
    for a in vanishing(values, slopes, np.diff(path.lengths)).tolist():
        chord = group.along.mechanism.away(q[[a]], q[[a + 1]])
        length = float(np.linalg.norm(chord))

        def at(x: float, a: int = a, chord: Array = chord, length: float = length) -> Array:
            """Between both points, on Hermite's cubic."""
            rest = 1.0 - x
            way = x * rest * length * (rest * t[[a]] - x * t[[a + 1]])
            return step(q[[a]], way + x * x * (3.0 - 2.0 * x) * chord)[0]

        def here(x: float, a: int = a) -> float:
            return float(slope(at(x), (1.0 - x) * t[[a]] + x * t[[a + 1]])[0])

        there = at(root(here, (0.0, 1.0), (here(0.0), here(1.0)), NOTHING))
        if size(there, 0.0 * t[:1])[0] <= WEAK:
            found.append(there[0])
    return [unwound(each, group.start, group.whole) for each in found]
