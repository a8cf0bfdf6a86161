"""Geometries whose conditions are evaluated by a compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from robomodel.arrays import Array, Indices
from robomodel.kernels.function import TracedFunction
from robomodel.mechanism.closure import Geometry
from robomodel.mechanism.constraints import BodyAnchor, Link, LoopCondition, LoopJoint
from robomodel.mechanism.joints import Revolute
from robomodel.scalars import Scalar, Vector
from robomodel.spatial import ZERO, MatrixRotation, Transform

POSE = 12  # numbers of a frame: its axes' coordinates by rows, and its origin
ANY = 0.5  # stands for a number that the program takes
LARGE = 5000  # entries of K from which on it pays to compile for a geometry alone


@dataclass(frozen=True)
class CompiledGeometry(Geometry):
    """A geometry that moves positions and evaluates its loops there by a compiled program.

    Linear couplings are beside it, so that locked joints, which are such, need no other program.
    ``numbers``: what the program takes beside positions and motions. ``kept``: the conditions of
    loops that it has, of those of the program, whose K has ``places``, rows and columns that may
    differ from zero; None for all.
    """

    program: TracedFunction
    numbers: tuple[Array, ...] = ()
    kept: Indices | None = None
    places: tuple[Indices, Indices] | None = None

    @cached_property
    def _filled(self) -> tuple[int, Indices | slice, Indices, Indices]:
        """The program's conditions, and of its entries of K those that are kept, with places."""
        rows, columns = self._places
        count = self.program.size - self.nq - len(rows)
        if self.kept is None:
            return count, slice(None), rows, columns
        number = np.full(count, -1)
        number[self.kept] = np.arange(len(self.kept))
        some = np.flatnonzero(number[rows] >= 0)
        return count, some, number[rows[some]], columns[some]

    @cached_property
    def _places(self) -> tuple[Indices, Indices]:
        return _loops_of(self).entries if self.places is None else self.places

    @cached_property
    def _sums(self) -> tuple[Indices, Array, Indices, Array, Array]:
        """Couplings one after the other: places of their joints in q, ratios, and where each
        begins; their offsets, and their rows of K.
        """
        terms = [term for coupling in self.linear for term in coupling.terms]
        places = np.array([self.links[body].q for body, _ in terms], dtype=np.intp)
        ratios = np.array([ratio for _, ratio in terms])
        begin = np.cumsum([0, *(len(coupling.terms) for coupling in self.linear[:-1])])
        k = np.zeros((len(self.linear), self.nv))
        for row, coupling in zip(k, self.linear, strict=True):
            for body, ratio in coupling.terms:
                row[self.links[body].v] += ratio
        return places, ratios, begin, np.array([each.offset for each in self.linear]), k

    def step(self, q: Array, dq: Array, units: Array | None = None) -> tuple[Array, Array, Array]:
        """q moved along dq, values φ and Jacobian K there, times ``units`` (rows, columns)."""
        first = self.rows - len(self.linear)
        if not self.loops:  # nothing that a program would be worth
            moved = Geometry.integrate(self, q, dq)
            values = np.zeros((*moved.shape[:-1], 0))
        else:
            y = self.program(q, dq, *self.numbers)
            count, some, rows, columns = self._filled
            moved, values = y[..., : self.nq], y[..., self.nq : self.nq + count]
            if self.kept is not None:
                values = values[..., self.kept]
            entries = y[..., self.nq + count :][..., some]
        jacobian = np.zeros((*moved.shape[:-1], self.rows, self.nv))
        if self.loops:
            jacobian[..., rows, columns] = (
                entries if units is None else entries * units[rows, columns]
            )
        if self.linear:
            places, ratios, begin, offsets, k = self._sums
            sums = np.add.reduceat(moved[..., places] * ratios, begin, axis=-1) - offsets
            values = np.concatenate([values, sums], axis=-1)
            jacobian[..., first:, :] = k if units is None else k * units[first:]
        return moved, values, jacobian

    def only(self, rows: Sequence[int]) -> CompiledGeometry:
        """As :meth:`Geometry.only`; the program evaluates all conditions as before."""
        if len(rows) == self.rows:
            return self
        some = Geometry(self.links, self.loops, self.linear).only(rows)
        first = self.rows - len(self.linear)
        order = np.array([n for n in sorted(rows) if n < first], dtype=np.intp)
        kept = order if self.kept is None else self.kept[order]
        return CompiledGeometry(
            some.links, some.loops, some.linear, self.program, self.numbers, kept, self._places
        )

    def oriented(self) -> CompiledGeometry:
        """As :meth:`Geometry.oriented`, with a program of its own."""
        return compiled(Geometry(self.links, self.loops, self.linear).oriented())

    def integrate(self, q: Array, dq: Array) -> Array:
        """As :meth:`Geometry.integrate`."""
        return self.step(q, dq)[0]

    def evaluate(self, q: Array, qd: Array | None = None) -> tuple[Array, Array, Array]:
        """Values φ, Jacobian K and bias, as :meth:`Geometry.evaluate`."""
        if qd is not None:
            return Geometry.evaluate(self, q, qd)
        _, values, jacobian = self.step(q, np.zeros(self.nv))
        return values, jacobian, np.zeros_like(values)


def _loops_of(geometry: Geometry) -> Geometry:
    """The geometry without its linear couplings."""
    return Geometry(geometry.links, geometry.loops, ())


def conditions_after(geometry: Geometry, q: Vector, dq: Vector) -> list[Scalar]:
    """Spanning positions after a motion, the conditions there, and K's :attr:`Geometry.entries`."""
    moved: list[Scalar] = []
    for link in geometry.links:
        moved += link.joint.moved(q[link.positions], [dq[c] for c in link.freedoms])
    values, jacobian, _ = geometry.conditions(moved)
    rows, columns = geometry.entries
    entries = [jacobian[r][c] for r, c in zip(rows.tolist(), columns.tolist(), strict=True)]
    return [*moved, *values, *entries]


def size_after(geometry: Geometry) -> int:
    """How many numbers :func:`conditions_after` gives."""
    return geometry.nq + geometry.rows + len(geometry.entries[0])


# ---- one program for geometries that differ in numbers -------------------------------------------


def compiled(geometry: Geometry) -> CompiledGeometry:
    """The geometry with a program that it shares with all that differ in frames and couplings only.

    The program is compiled at its first use: that is worth hundreds of evaluations. In a large
    geometry zeros and ones of frames are the program's, which has a fraction of the steps then.
    """
    shape, given, numbers = shape_of(geometry)
    program = _program(shape, given)
    return CompiledGeometry(geometry.links, geometry.loops, geometry.linear, program, (numbers,))


def shape_of(geometry: Geometry) -> tuple[Geometry, tuple[int, ...], Array]:
    """The geometry that others have, too, whose loops differ in numbers of frames only.

    Without names and couplings; which numbers of frames are not its own, and the geometry's.
    """
    numbers = np.array([x for frame in _frames(geometry) for x in frame], dtype=float)
    loops = _loops_of(geometry)
    own = np.isin(np.abs(numbers), (0.0, 1.0)) & (loops.rows * geometry.nv >= LARGE)
    own[:1] = False  # programs have no arguments without numbers
    rest = np.where(own, numbers, ANY).reshape(-1, POSE).tolist()
    shape = _nameless(_with_frames(loops, [tuple(frame) for frame in rest]))
    return shape, tuple(np.flatnonzero(~own).tolist()), numbers[~own]


def with_numbers(shape: Geometry, given: Sequence[int], numbers: Vector) -> Geometry:
    """A geometry of a shape with its ``given`` numbers."""
    fixed = [x for frame in _frames(shape) for x in frame]
    all_ = dict(enumerate(fixed)) | dict(zip(given, numbers, strict=True))
    frames = [tuple(all_[n + k] for k in range(POSE)) for n in range(0, len(fixed), POSE)]
    return _with_frames(shape, frames)


@lru_cache(maxsize=64)
def _program(shape: Geometry, given: tuple[int, ...]) -> TracedFunction:
    """The program of geometries of this shape; its last argument are the ``given`` numbers."""

    def build(q: Vector, dq: Vector, numbers: Vector) -> list[Scalar]:
        return conditions_after(with_numbers(shape, given, numbers), q, dq)

    arguments = {"q": shape.nq, "dq": shape.nv, "frames": len(given)}
    result = {"y": (size_after(shape),)}
    return TracedFunction("conditions", arguments, result, build, brief=True)


def _nameless(geometry: Geometry) -> Geometry:
    loops = tuple(replace(loop, name="") for loop in geometry.loops)
    return Geometry(geometry.links, loops, geometry.linear)


def _frames(geometry: Geometry) -> list[tuple[Scalar, ...]]:
    """The numbers of each joint's frame on its parent, then of both ends of each loop joint.

    Frames of hinges are turned by the hinges' offsets.
    """
    frames: list[tuple[Scalar, ...]] = []
    for link in geometry.links:
        turned = link.joint.placement((0.0,))[0] if isinstance(link.joint, Revolute) else ()
        rows = Transform((*turned, *link.rotations), ZERO).matrix()
        frames.append((*rows[0], *rows[1], *rows[2], *link.offset))
    for loop in geometry.loop_joints:
        ends = (loop.predecessor, loop.successor)
        frames += [(*end.axes[0], *end.axes[1], *end.axes[2], *end.point) for end in ends]
    return frames


def _with_frames(geometry: Geometry, frames: Sequence[tuple[Scalar, ...]]) -> Geometry:
    """The geometry with other frames, as of :func:`_frames`."""
    rest = iter(frames)
    links, loops = list[Link](), list[LoopCondition]()
    for link in geometry.links:
        a, b, c, d, e, f, g, h, i, *offset = next(rest)
        rotation = MatrixRotation(((a, b, c), (d, e, f), (g, h, i)))
        joint = Revolute(link.joint.k) if isinstance(link.joint, Revolute) else link.joint
        place = (offset[0], offset[1], offset[2])
        links.append(replace(link, joint=joint, rotations=(rotation,), offset=place))
    for loop in geometry.loops:
        if not isinstance(loop, LoopJoint):
            loops.append(loop)
            continue
        ends = []
        for end in (loop.predecessor, loop.successor):
            a, b, c, d, e, f, g, h, i, x, y, z = next(rest)
            ends.append(BodyAnchor(end.body, (x, y, z), ((a, b, c), (d, e, f), (g, h, i))))
        loops.append(replace(loop, predecessor=ends[0], successor=ends[1]))
    return replace(geometry, links=tuple(links), loops=tuple(loops))
