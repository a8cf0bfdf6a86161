"""Limits of a group of joints, and how far joints without limits are followed."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from robomodel.arrays import Array, Indices
from robomodel.mechanism.constraints import Distance
from robomodel.mechanism.continuation import FINE, Continuation, Limits
from robomodel.mechanism.joints import Revolute
from robomodel.mechanism.walks import Positions, lead
from robomodel.mobility import SpanningColumn
from robomodel.model.elements import Cluster
from robomodel.scalars import value_of

FAR_STRIDES = 1000  # at most to where nothing slides that loops bound


class Barriers:
    """Limits of a group from a start, by its columns ``mine``, which ``basis`` moves.

    What slides without limits goes by more than loops let it that bound it, and by the cluster's
    size if it is ``near``, in columns that none bounds. Screws go as far, but a turn at least, and
    hinges that wind up, which couplings turn with others, by a turn.
    """

    def __init__(
        self,
        cluster: Cluster,
        columns: Sequence[SpanningColumn],
        mine: Sequence[int],
        basis: Array,
        near: Collection[int],
        freedoms: int,
    ) -> None:
        geometry = cluster.geometry
        joints = {link.v: link for link in geometry.links if link.joint.nv == 1}
        rows, places, reach = list[Array](), list[int](), list[float]()
        self.low, self.high = list[float](), list[float]()
        self.far: list[tuple[int, int]] = []  # columns, and the numbers of their limits
        for n, c in enumerate(mine):
            if c not in joints:
                continue
            (low, high), slides, most = columns[c].limits, columns[c].length, math.inf
            if math.isinf(low) and math.isinf(high):
                winds = (freedoms > 1 and c in near) or not cluster.implicit
                if isinstance(joints[c].joint, Revolute) and not winds:
                    continue
                size = geometry.scale
                if c not in near:
                    size = 2.0 * (
                        len(mine) * size if freedoms == 1 else _around(cluster, columns, c)
                    )
                most = size if slides else 2.0 * math.pi
                if c in geometry.pitches:
                    most = max(most, size / geometry.pitches[c])
                self.far += [(c, len(rows))] if slides and c not in near else []
            rows.append(basis[n])
            places.append(joints[c].q)
            reach.append(most)
            self.low.append(low)
            self.high.append(high)
        self.rows = np.array(rows).reshape(-1, basis.shape[1])
        self.places: Indices = np.array(places, dtype=np.intp)
        self.reach = np.array(reach)

    def __call__(self, start: Array) -> Limits:
        """The limits; joints that are beyond them at the start go no further."""
        x, reach = start[self.places], self.reach
        low = np.where(np.isinf(reach), np.minimum(np.array(self.low), x), x - reach)
        high = np.where(np.isinf(reach), np.maximum(np.array(self.high), x), x + reach)
        return Limits(self.rows, self.places, low, high)

    def endless(self, along: Continuation, start: Array) -> set[int]:
        """The columns of what slides straight from a start to where no loop lets it.

        A loop lets it as far as half of its reach from zero.
        """
        found, origin = set[int](), along.at(start[None])
        for way in (0.51, -0.51):  # rods become longer, as a rule
            some = np.array([n for c, n in self.far if c not in found], dtype=np.intp)
            if not len(some):
                break
            joints = Positions(self.rows[some, None], self.places[some, None])
            goal = (way * self.reach[some])[:, None]
            p = origin[np.zeros(len(some), dtype=np.intp)]
            ends = lead(replace(along, crossed=[]), p, joints, goal, strides=FAR_STRIDES)[1]
            arrived = set(some[ends == FINE].tolist())
            found |= {c for c, n in self.far if n in arrived}
        return found


def _around(cluster: Cluster, columns: Sequence[SpanningColumn], column: int) -> float:
    """The length of the shortest loop that a joint is in, what slides in it out as limits let it.

    What slides without limits stretches no loop that bounds it.
    """
    geometry, lengths = cluster.geometry, list[float]()
    for loop in geometry.loop_joints:
        links = [geometry.links[body] for branch in loop.branches for body in branch]
        if column not in {link.v for link in links}:
            continue
        offsets = [link.offset for link in links]
        offsets += [end.point for end in (loop.predecessor, loop.successor)]
        length = sum(math.hypot(*map(value_of, offset)) for offset in offsets)
        length += sum(row.length for row in loop.rows if isinstance(row, Distance))
        for each in (columns[c] for link in links for c in link.freedoms):
            farthest = max(map(abs, each.limits))
            length += farthest if each.length and math.isfinite(farthest) else 0.0
        lengths.append(length)
    return max(min(lengths, default=0.0), geometry.scale)
