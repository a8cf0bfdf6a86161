"""How far fine screws of linkages turn, beside how far they go."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robomodel.arrays import Array
from robomodel.mechanism.joints import Revolute
from robomodel.model.elements import Cluster
from robomodel.tolerances import MOVES


def windings(cluster: Cluster) -> Array:
    """How far screws turn as they go by a linkage's size, and joints that undo these turns.

    Factors (columns,) of units, not less than 1: the turns of a fine thread are no long way.
    """
    factors = np.ones(cluster.geometry.nv)
    for column, pitch, undoing in _screws(cluster):
        factors[[column, *undoing]] = max(1.0, cluster.geometry.scale / pitch)
    for each in cluster.geometry.threads if cluster.implicit else ():
        mine = [c for c, _ in each.undone]  # one hinge may undo the turns of several screws
        factors[mine] = np.maximum(factors[mine], each.long)
    return factors


def undone(cluster: Cluster) -> dict[int, dict[int, float]]:
    """The columns of hinges that undo the turns of screws, with their turns for one of each."""
    found = {c: {column: -1.0} for column, _, undoing in _screws(cluster) for c in undoing}
    threads = dict[int, dict[int, float]]()
    for each in cluster.geometry.threads if cluster.implicit else ():
        for c, sense in each.undone:
            threads.setdefault(c, {})[each.column] = sense
    return found | threads


def _screws(cluster: Cluster) -> Iterator[tuple[int, float, list[int]]]:
    """Columns of a linkage's screws, metres per radian, and columns of hinges that undo turns."""
    geometry = cluster.geometry
    if not cluster.implicit or not geometry.pitches:
        return
    k = geometry.evaluate(np.array(cluster.start))[1] * geometry.row_unit[:, None] * geometry.unit
    motions = np.linalg.svd(k)[2][geometry.nv - cluster.nv :]
    hinges = [link.v for link in geometry.links if isinstance(link.joint, Revolute)]
    for column, pitch in geometry.pitches.items():
        turns = motions[:, column]
        size = MOVES * float(np.linalg.norm(turns))
        left = {c: float(np.linalg.norm(motions[:, c] + turns)) for c in hinges}
        yield column, pitch, [c for c, missed in left.items() if size and missed <= size]
