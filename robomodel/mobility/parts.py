"""Linkages that fall apart where one joint is held, as legs on one crank: closed part by part.

From a random start a linkage closes if all of its parts do, which is rare where they are many. Each
part by itself closes soon, from new starts of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array, Indices
from robomodel.mechanism.closure import Geometry, Held, close


@dataclass(frozen=True, slots=True)
class Part:
    """Conditions, by their rows, and the positions and velocities of the joints in them."""

    rows: tuple[int, ...]
    positions: Indices
    columns: frozenset[int]

    def closed(self, geometry: Geometry, q: Array, rank: float) -> tuple[Array, Array]:
        """Configurations (n, nq) whose part is closed where it can be, others held; its gaps."""
        held = Held([c for c in range(geometry.nv) if c not in self.columns])
        q, gap = close(geometry, q, held, rows=self.rows, iterations=30, rank=rank)
        return q, np.where(geometry.only(self.rows).flipped(q), np.inf, gap)


def parts_of(geometry: Geometry) -> list[Part]:
    """The parts, three or more, with that joint held which leaves the largest the smallest.

    None if the largest has more than half of the freedoms, or there are fewer.
    """
    members = [{body for branch in loop.branches for body in branch} for loop in geometry.loops]
    members += [{link for link, _ in coupling.terms} for coupling in geometry.linear]
    size = [link.joint.nv for link in geometry.links]
    least, best = geometry.nv // 2 + 1, list[set[int]]()
    for held in sorted(set[int]().union(*members)):
        groups = _connected(each - {held} for each in members)
        largest = max((sum(size[i] for i in group) for group in groups), default=0)
        if len(groups) > 2 and largest < least:
            least, best = largest, groups
    return [_part(geometry, members, group) for group in best]


def _connected(sets: Iterable[set[int]]) -> list[set[int]]:
    """Unions of the sets that share members."""
    groups: list[set[int]] = []
    for each in filter(None, sets):
        apart = [group for group in groups if group.isdisjoint(each)]
        groups = [*apart, each.union(*(group for group in groups if group not in apart))]
    return groups


def _part(geometry: Geometry, members: list[set[int]], group: set[int]) -> Part:
    sizes = [len(loop.rows) for loop in geometry.loops] + [1] * len(geometry.linear)
    firsts = np.cumsum([0, *sizes])
    rows = [
        row
        for first, size, each in zip(firsts, sizes, members, strict=False)
        if each & group
        for row in range(first, first + size)
    ]
    links = [geometry.links[i] for i in sorted(group)]
    positions = [p for link in links for p in range(link.q, link.q + link.joint.nq)]
    columns = frozenset(c for link in links for c in link.freedoms)
    return Part(tuple(rows), np.array(positions, dtype=np.intp), columns)
