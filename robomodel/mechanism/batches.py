"""Conditions of loop joints on batches of configurations, many links and rows at once.

:func:`robomodel.mechanism.constraints.evaluate_loops` goes from link to link and from row to row,
over scalars of any kind, which is what is traced. On numbers it is NumPy's calls that take the
time: here all joints of one formula are placed together, then all bodies of one depth, the ends of
all loops, and each row of all loops of one type. The formulas are those of the joints and rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from robomodel.arrays import Array, Indices
from robomodel.mechanism.constraints import OUTSIDE, Link, LoopEnd, LoopJoint, LoopRow
from robomodel.mechanism.joints import JointModel, Revolute
from robomodel.scalars import Scalar
from robomodel.spatial import ZERO, Mat, Transform, cross, inner, plus

ANCESTOR = 0  # the number of the place from which branches start


class _Alike(NamedTuple):
    """Joints of one formula: their links, and their places in q (nq, links), less ``offset``."""

    joint: JointModel
    links: Indices
    places: Indices
    offset: Array


class _Level(NamedTuple):
    """Places of one depth, one after the other, those before them, and their bodies."""

    places: slice
    before: Indices
    bodies: Indices


class _Ends(NamedTuple):
    """Ends of loops: their places, points (ends, 3) and axes (ends, 3, 3) by rows."""

    places: Indices
    points: Array
    axes: Array


class _Type(NamedTuple):
    """The loops with these rows, and the first row of each among all."""

    rows: tuple[LoopRow, ...]
    loops: Indices
    first: Indices


class _Entries(NamedTuple):
    """Entries of K: rows, columns, ends of loops, rows at these ends, places, and axes' numbers."""

    rows: Indices
    columns: Indices
    ends: Indices
    rows_at: Indices
    places: Indices
    axes: Indices


@dataclass(frozen=True, eq=False)
class LoopArrays:
    """Values and Jacobians of loop joints at spanning positions (n, nq) of a cluster's links.

    A *place* is a body as a loop's branch comes to it: its pose is relative to where that starts.
    """

    links: tuple[Link, ...]
    loops: tuple[LoopJoint, ...]

    @cached_property
    def size(self) -> tuple[int, int]:
        """Numbers of rows and of columns of K."""
        return sum(len(x.rows) for x in self.loops), sum(x.joint.nv for x in self.links)

    # ---- what does not change

    @cached_property
    def _alike(self) -> list[_Alike]:
        groups: dict[JointModel, list[int]] = {}
        for number in sorted({body for _, body in self._places[1:]}):
            joint = self.links[number].joint
            formula = Revolute(joint.k) if isinstance(joint, Revolute) else joint
            groups.setdefault(formula, []).append(number)
        result = []
        for joint, numbers in groups.items():
            links = [self.links[number] for number in numbers]
            places = np.array([range(x.q, x.q + joint.nq) for x in links], dtype=np.intp).T
            offset = [x.joint.offset if isinstance(x.joint, Revolute) else 0.0 for x in links]
            result.append(_Alike(joint, np.array(numbers), places, np.array(offset)[:, None]))
        return result

    @cached_property
    def _frames(self) -> tuple[Array, Array]:
        """Rotations (links, 1, 3, 3) and offsets (links, 1, 3) of the joints' frames."""
        turns = [Transform(link.rotations, ZERO).matrix() for link in self.links]
        offsets = [link.offset for link in self.links]
        return _numbers(turns, 3, 3)[:, None], _numbers(offsets, 3)[:, None]

    def _branches(self) -> Iterator[list[tuple[int, int]]]:
        """The places of each branch: where it starts, and the body."""
        for loop in self.loops:
            for branch in loop.branches:
                start = self.links[branch[0]].parent if branch else OUTSIDE
                yield [(start, body) for body in branch]

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """All places, the nearer to the start the sooner; the first is the start's."""
        depth: dict[tuple[int, int], int] = {}
        for branch in self._branches():
            depth.update((place, n) for n, place in enumerate(branch))
        return [(OUTSIDE, OUTSIDE), *sorted(depth, key=lambda place: depth[place])]

    @cached_property
    def _number(self) -> dict[tuple[int, int], int]:
        return {place: n for n, place in enumerate(self._places)}

    @cached_property
    def _levels(self) -> list[_Level]:
        before, depth = [ANCESTOR] * len(self._places), [-1] * len(self._places)
        for branch in self._branches():
            last = ANCESTOR
            for n, place in enumerate(branch):
                at = self._number[place]
                before[at], depth[at], last = last, n, at
        levels = []
        for n in range(max(depth, default=-1) + 1):
            first, count = depth.index(n), depth.count(n)
            places = slice(first, first + count)
            bodies = [body for _, body in self._places[places]]
            levels.append(_Level(places, np.array(before[places]), np.array(bodies)))
        return levels

    @cached_property
    def _ends(self) -> _Ends:
        """The predecessors' ends, then the successors'."""
        last = [self._number[branch[-1]] if branch else ANCESTOR for branch in self._branches()]
        anchors = [loop.predecessor for loop in self.loops]
        anchors += [loop.successor for loop in self.loops]
        return _Ends(
            np.array(last[::2] + last[1::2], dtype=np.intp),
            _numbers([anchor.point for anchor in anchors], 3),
            _numbers([anchor.axes for anchor in anchors], 3, 3),
        )

    @cached_property
    def _types(self) -> list[_Type]:
        groups: dict[tuple[LoopRow, ...], list[tuple[int, int]]] = {}
        first = 0
        for n, loop in enumerate(self.loops):
            groups.setdefault(loop.rows, []).append((n, first))
            first += len(loop.rows)
        return [_Type(rows, *np.array(pairs, dtype=np.intp).T) for rows, pairs in groups.items()]

    @cached_property
    def _axes(self) -> tuple[Indices, Array, Array]:
        """The joints' motions at all places: the places, angular and linear parts (axes, 3)."""
        motions = [(n, motion) for n, (_, body) in enumerate(self._places) if n != ANCESTOR
                   for motion in self.links[body].joint.subspace]  # fmt: skip
        angular = _numbers([motion.angular for _, motion in motions], 3)
        linear = _numbers([motion.linear for _, motion in motions], 3)
        return np.array([n for n, _ in motions], dtype=np.intp), angular, linear

    @cached_property
    def _entries(self) -> _Entries:
        axes_at, n = dict[tuple[int, int], int](), 0
        for place in self._places[1:]:
            axes_at[place] = n
            n += self.links[place[1]].joint.nv
        entries, row, count = list[tuple[int, ...]](), 0, len(self.loops)
        branches = list(self._branches())
        for number, loop in enumerate(self.loops):
            entries += [
                (r, column, number + k * count, r + k * self.size[0], self._number[place],
                 axes_at[place] + i)
                for r in range(row, row + len(loop.rows))
                for k in (0, 1)
                for place in branches[2 * number + k]
                for i, column in enumerate(self.links[place[1]].freedoms)
            ]  # fmt: skip
            row += len(loop.rows)
        return _Entries(*np.array(entries, dtype=np.intp).reshape(-1, 6).T)

    # ---- at configurations

    def _poses(self, q: Array) -> tuple[Array, Array]:
        """Rotations (places, n, 3, 3) and origins (places, n, 3)."""
        n, fixed, offsets = len(q), *self._frames
        turns, shifts = np.empty((len(self.links), n, 3, 3)), np.empty((len(self.links), n, 3))
        for alike in self._alike:
            positions: list[Scalar] = [q[:, each].T + alike.offset for each in alike.places]
            rotations, slide = alike.joint.placement(positions)
            frames, batch = fixed[alike.links], (len(alike.links), n)
            turn = _filled(Transform(rotations, ZERO).matrix(), batch)
            turns[alike.links] = _product(frames, turn)
            shifts[alike.links] = offsets[alike.links]
            if slide is not ZERO:
                shifts[alike.links] += _turned(frames, _filled((slide,), batch)[..., 0, :])
        count = len(self._places)
        rotation, origin = np.empty((count, n, 3, 3)), np.zeros((count, n, 3))
        rotation[ANCESTOR] = np.eye(3)
        for level in self._levels:
            before, turn, shift = rotation[level.before], turns[level.bodies], shifts[level.bodies]
            rotation[level.places] = _product(before, turn)
            origin[level.places] = origin[level.before] + _turned(before, shift)
        return rotation, origin

    def evaluate(self, q: Array, *, matrix: bool = True) -> tuple[Array, Array]:
        """Values (n, rows) and Jacobians (n, rows, columns) at positions (n, nq).

        Without ``matrix`` Jacobians are empty.
        """
        n, (rows, columns), count = len(q), self.size, len(self.loops)
        rotation, origin = self._poses(q)
        ends = self._ends
        turn = rotation[ends.places]
        points = (origin[ends.places] + _turned(turn, ends.points[:, None])).transpose(2, 0, 1)
        axes = _product(ends.axes[:, None], turn.swapaxes(2, 3)).transpose(2, 3, 0, 1)
        values = np.empty((rows, n))
        force, moment = np.zeros((3, 2 * rows, n)), np.zeros((3, 2 * rows, n))
        for types, loops, first in self._types:
            p, s = (_end(points[:, at], axes[:, :, at]) for at in (loops, loops + count))
            for k, row in enumerate(types):
                at: Any = row.evaluate(p, s)
                values[first + k] = at.value
                if matrix:
                    _put(force, first + (k + rows), at.force)
                    _put(moment, first + k, at.moment_predecessor)
                    _put(moment, first + (k + rows), at.moment_successor)
        if not matrix:
            return values.T, np.empty((n, rows, 0))
        force[:, :rows] = -force[:, rows:]
        places, angular, linear = self._axes
        entries, turn = self._entries, rotation[places]
        f, m = force[:, entries.rows_at], moment[:, entries.rows_at]
        arm = points[:, entries.ends] - origin[entries.places].transpose(2, 0, 1)
        about: tuple[Array, Array, Array] = plus(cross((*arm,), (*f,)), (*m,))
        sums = inner(about, (*_turned(turn, angular[:, None])[entries.axes].transpose(2, 0, 1),))
        if linear.any():
            along = _turned(turn, linear[:, None])[entries.axes].transpose(2, 0, 1)
            sums = sums + inner((*f,), (*along,))
        jacobian = np.zeros((n, rows, columns))
        jacobian[:, entries.rows, entries.columns] = sums.T
        return values.T, jacobian


def _numbers(values: Sequence[object], *shape: int) -> Array:
    """Vectors or matrices of numbers as one array, also if there are none."""
    return np.array(values, dtype=float).reshape(len(values), *shape)


def _filled(rows: Sequence[Any], batch: tuple[int, ...]) -> Array:
    """Rows of three, of arrays and structural constants, as one array (*batch, rows, 3)."""
    result = np.empty((*batch, len(rows), 3))
    for i, row in enumerate(rows):
        for j, x in enumerate(row):
            result[..., i, j] = x
    return result


def _turned(turn: Array, vector: Array) -> Array:
    """R v of batches, whose sums NumPy's products of small matrices take longer for."""
    x, y, z = (vector[..., None, k] for k in range(3))
    return np.asarray(turn[..., 0] * x + turn[..., 1] * y + turn[..., 2] * z)


def _product(first: Array, second: Array) -> Array:
    """The matrix product of batches, as :func:`_turned`."""
    a, b, c = (first[..., k, None] * second[..., None, k, :] for k in range(3))
    return np.asarray(a + b + c)


def _end(x: Array, axes: Array) -> LoopEnd:
    """Ends of loops at rest: points (3, loops, n) and axes (3, 3, loops, n)."""
    frame: Mat = ((*axes[0],), (*axes[1],), (*axes[2],))
    return LoopEnd((*x,), frame, ZERO, ZERO, ZERO, (ZERO, ZERO, ZERO))


def _put(result: Array, rows: Indices, vector: tuple[Any, Any, Any]) -> None:
    """Fill in rows of a vector's components (3, rows, n), which are zero so far."""
    for k, x in enumerate(vector):
        if not (type(x) is float and x == 0.0):
            result[k, rows] = x
