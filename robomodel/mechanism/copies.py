"""Copies of a linkage, moved and turned or mirrored: which joint positions of one are another's.

The fingers of a hand and both legs of a walker are one mechanism, but for a placement or a
reflection and for the digits that a file writes. An isometry T of what carries them takes each
joint's frame of one to the other's, Qₚ A = B Q, where Q and Qₚ are isometries of the bodies' axes
that leave the joint's motion what it is: a hinge turns as much or the other way, a ball by the
rotation in turned axes. So closed configurations of one nearly close the other. They are where
Newton's method starts there, and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from robomodel.arrays import Array
from robomodel.mechanism.closure import Geometry
from robomodel.mechanism.constraints import OUTSIDE, LoopJoint, Perpendicular
from robomodel.mechanism.joints import Prismatic, Revolute, Spherical
from robomodel.spatial import ZERO, Transform
from robomodel.tolerances import WRITTEN

# what chains of written numbers, and frames that follow from them, differ by
ALIKE = 10.0 * WRITTEN


@dataclass(frozen=True, eq=False)
class Image:
    """The map of positions and velocities to a copy.

    ``ways`` (nv, nv): velocities of the copy by those of the original. ``places`` and ``columns``:
    of joints of one freedom in q and v, with the signs of their motions. ``balls``: of each ball
    its place in q, and the orthogonal matrix of its rotations' vectors. ``bodies`` (links, 4, 4):
    isometries from the axes of the original's bodies to those of the copy's.
    """

    ways: Array
    places: tuple[tuple[int, float], ...]
    columns: tuple[tuple[int, float], ...]
    balls: tuple[tuple[int, Array], ...]
    bodies: Array

    def positions(self, q: Array) -> Array:
        """The copy's spanning positions (..., nq) from the original's."""
        result = q.copy()
        for place, sign in self.places:
            result[..., place] *= sign
        for place, turn in self.balls:
            result[..., place : place + 3] = q[..., place : place + 3] @ turn.T
        return result

    def keeps(self, limits: tuple[Array, Array], others: tuple[Array, Array]) -> bool:
        """True if the copy's limits of velocity columns are the original's; balls have none."""
        (low, high), ends = limits, np.stack(limits)
        for column, sign in self.columns:
            if sign < 0.0:
                ends[:, column] = -high[column], -low[column]
        return as_written(ends, np.stack(others))


def as_written(one: Array, other: Array, size: float = 1.0) -> bool:
    """True if numbers of this size are the same but for the digits that files write."""
    return bool(np.allclose(one, other, rtol=0.0, atol=WRITTEN * size))


def images(one: Geometry, other: Geometry) -> Iterator[Image]:
    """The maps from one geometry to another, in the order of their joints; none if it is no copy.

    A planar linkage is its own mirror image, and has several.
    """
    if not _alike(one, other):
        return
    old, new = _frames(one), _frames(other)
    for carried in _isometries(one, old, new):
        found = _mapped(one, carried, old, new)
        if found is not None and _opens_alike(one, other, found):
            yield found


def _alike(one: Geometry, other: Geometry) -> bool:
    """True if joints and conditions are of the same kinds, on the same links."""
    kinds = []
    for geometry in (one, other):
        links = [(type(link.joint), link.parent) for link in geometry.links]
        loops = [(type(loop), loop.branches, [type(row) for row in loop.rows])
                 for loop in geometry.loops]  # fmt: skip
        linear = [[body for body, _ in each.terms] for each in geometry.linear]
        kinds.append((links, loops, linear))
    joints = {type(link.joint) for link in one.links}
    return kinds[0] == kinds[1] and joints <= {Revolute, Prismatic, Spherical}


def _frames(geometry: Geometry) -> Array:
    """The frames (links, 4, 4) of joints at zero on what carries them."""
    frames = np.tile(np.eye(4), (len(geometry.links), 1, 1))
    for frame, link in zip(frames, geometry.links, strict=True):
        turned, shift = link.joint.placement(link.joint.neutral())
        x = Transform((*turned, *link.rotations), ZERO).matrix()
        frame[:3, :3], frame[:3, 3] = np.array(x, float), np.array(link.offset, float)
        frame[:3, 3] += frame[:3, :3] @ np.array(shift, float)
    return frames


def _isometries(one: Geometry, old: Array, new: Array) -> Iterator[Array]:
    """Isometries (4, 4) of what carries the cluster: the first joint's frame goes to its image.

    With its axes as they are, then with some of them turned round.
    """
    first = next(n for n, link in enumerate(one.links) if link.parent == OUTSIDE)
    back = np.linalg.inv(old[first])
    for signs in product((1.0, -1.0), repeat=3):
        yield new[first] @ np.diag([*signs, 1.0]) @ back


def _mapped(one: Geometry, carried: Array, old: Array, new: Array) -> Image | None:
    """The map of joints by which an isometry takes frames to frames; None if it does not."""
    ways, turned, balls = np.zeros((one.nv, one.nv)), list[Array](), list[tuple[int, Array]]()
    places, columns = list[tuple[int, float]](), list[tuple[int, float]]()
    for link, a, b in zip(one.links, old, new, strict=True):
        above = carried if link.parent == OUTSIDE else turned[link.parent]
        own = np.linalg.solve(b, above @ a)
        turned.append(own)
        turn, shift = own[:3, :3], own[:3, 3].copy()
        side = float(np.sign(np.linalg.det(turn)))
        if isinstance(link.joint, Spherical):
            balls.append((link.q, side * turn))
            ways[link.v : link.v + 3, link.v : link.v + 3] = side * turn
        elif isinstance(link.joint, (Revolute, Prismatic)):
            k = link.joint.k
            along = float(np.sign(turn[k, k]))
            if abs(turn[k, k] - along) > ALIKE:
                return None
            hinge = isinstance(link.joint, Revolute)
            sign = side * along if hinge else along
            places.append((link.q, sign))
            columns.append((link.v, sign))
            ways[link.v, link.v] = sign
            shift[k] = 0.0  # a frame may be anywhere along an axis
            shift *= hinge
        if np.max(np.abs(shift)) > ALIKE * one.scale:
            return None
    return Image(ways, tuple(places), tuple(columns), tuple(balls), np.array(turned))


def _opens_alike(one: Geometry, other: Geometry, found: Image) -> bool:
    """True if each condition, or those of one kind of a loop together, are as open at images."""
    away = np.random.default_rng(20261130).uniform(-1.0, 1.0, (4, one.nv))  # random positions
    q = one.integrate(np.tile(one.zero(), (len(away), 1)), away)
    gaps = [_gaps(geometry, geometry.evaluate(at)[0])
            for geometry, at in ((one, q), (other, found.positions(q)))]  # fmt: skip
    return bool(np.max(np.abs(gaps[0] - gaps[1]), initial=0.0) <= ALIKE * max(1.0, one.scale))


def _gaps(geometry: Geometry, values: Array) -> Array:
    """The sizes (n, ·) of each loop's gaps and sines, and those of couplings."""
    sizes, n = list[Array](), 0
    for loop in geometry.loops:
        mine = values[:, n : n + len(loop.rows)]
        sines = np.array([isinstance(row, Perpendicular) for row in loop.rows])
        several = isinstance(loop, LoopJoint)
        sizes += [np.linalg.norm(mine[:, some], axis=1) for some in (sines, ~sines)
                  if several or some.any()]  # fmt: skip
        n += len(loop.rows)
    return np.stack([*sizes, *np.abs(values[:, n:]).T], axis=1)
