"""Columns of a log that seem to be those of other joints.

A multiple of what the file's inertias make, with friction and a constant, explains most of the
forces of a coordinate; little of them where the columns of two joints are swapped, of forces, of
motions or of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from robomodel.arrays import Array
from robomodel.errors import few
from robomodel.identification.checks import LEAST_SAMPLES
from robomodel.identification.sensors import Sensors
from robomodel.model.model import Model
from robomodel.model.parameters import parameters
from robomodel.tolerances import SINGULAR, TINY

# share of the squares of a joint's forces that right columns may leave; times of what right ones
# leave of all that wrong ones leave at least, each pair its half
LEFT_BY_RIGHT, LEFT_BY_WRONG = 0.02, 4.0
LOOKED_AT, LOOKED_AT_IN_WINDOWS = 1000, 10000  # samples with accelerations, and without
SWAPS = 3  # pairs that are looked for, one after the other
SWAPPED_WORDS = {"forces": "of forces", "motions": "of motions", "all": "of motions and forces"}


@dataclass(frozen=True)
class Swap:
    """Columns of two joints that change places: their "forces", "motions" or "all"."""

    kind: str
    names: tuple[str, str]


def swapped_columns(readings: Sensors) -> str:
    """In words, which columns seem to be swapped; empty if none do."""
    looked = _excerpt(readings)
    begin = now = _Shares.of(looked)
    found: list[Swap] = []
    for _ in range(SWAPS):
        if float(np.max(now.left, initial=0.0)) < LEFT_BY_RIGHT:
            break
        tried = [(float(np.sum(each.left)), swap, each) for swap, each in _tries(now)]
        if not tried:
            break
        total, swap, best = min(tried, key=lambda each: each[0])
        if total > 2.0 / LEFT_BY_WRONG * float(np.sum(now.left)):
            break
        found.append(swap)
        now = best
    if not found or float(np.max(now.left)) > LEFT_BY_RIGHT:
        return ""
    if LEFT_BY_WRONG * float(np.sum(now.left)) > float(np.sum(begin.left)):
        return ""
    pairs = [f"{a} and {b}" for a, b in (each.names for each in found)]
    kinds = " and ".join(dict.fromkeys(SWAPPED_WORDS[each.kind] for each in found))
    shares = (100.0 * float(np.sqrt(np.max(each.left))) for each in (begin, now))
    before, after = (f"{x:.2g} %" for x in shares)
    return (
        f"columns {kinds} seem to be swapped, those of {few(pairs)}: as they are, the file's "
        f"inertias leave up to {before} of a joint's forces, the other way {after}"
    )


@dataclass(frozen=True)
class _Shares:
    """Readings with the share of each coordinate's forces that the file does not explain."""

    readings: Sensors
    rows: Array
    force: Array

    @classmethod
    def of(cls, readings: Sensors) -> _Shares:
        rows, force, _ = readings.at(np.zeros(0))
        return cls(readings, rows, force)

    @cached_property
    def left(self) -> Array:
        """Shares (nv,) of the squares; zero without forces."""
        listed = parameters(self.readings.model)
        losses = [name.endswith((".damping", ".friction")) for name in listed.names]
        inertial = np.where(losses, 0.0, listed.values)
        result = np.zeros(self.force.shape[1])
        for i, force in enumerate(self.force.T):
            there = np.isfinite(force)
            size = float(np.sum(force[there] ** 2))
            if np.count_nonzero(there) < LEAST_SAMPLES or size <= TINY:
                continue
            rows, right = self.rows[there, i], force[there]
            resisting = [x for x in rows[:, losses].T if x.any()]
            columns = np.stack([rows @ inertial, np.ones(len(right)), *resisting], axis=-1)
            columns = columns / np.maximum(np.linalg.norm(columns, axis=0), TINY)
            x = np.linalg.lstsq(columns, right, rcond=SINGULAR)[0]
            if x[0] < 0.0:  # of the opposite sign, which no order of columns makes
                columns = columns[:, 1:]
                x = np.linalg.lstsq(columns, right, rcond=SINGULAR)[0]
            result[i] = np.sum((right - columns @ x) ** 2) / size
        return result


def _tries(now: _Shares) -> Iterator[tuple[Swap, _Shares]]:
    """Each pair of joints with swapped forces, motions, and both."""
    readings, model = now.readings, now.readings.model
    names = model.dof_names if readings.encoders is None else readings.encoders
    places = _places(model) if readings.encoders is None else list(range(len(names)))
    single = {joint.name for joint in model.joints if joint.nv == 1}
    moving = [n for n, name in enumerate(names) if name in single and places[n] is not None]
    forces = readings.constants is None and names == model.dof_names
    for i, j in combinations(moving, 2):
        pair = names[i], names[j]
        if forces:
            drive = _exchanged(readings.drive, i, j)
            force = _exchanged(now.force, i, j)
            yield Swap("forces", pair), _Shares(replace(readings, drive=drive), now.rows, force)
        p, r = places[i], places[j]
        assert p is not None
        assert r is not None
        moved = replace(
            readings,
            place=_exchanged(readings.place, p, r),
            rate=_exchanged(readings.rate, i, j),
            pull=None if readings.pull is None else _exchanged(readings.pull, i, j),
        )
        yield Swap("motions", pair), (other := _Shares.of(moved))
        if forces:
            both = replace(moved, drive=drive)
            yield Swap("all", pair), _Shares(both, other.rows, force)


def _places(model: Model) -> list[int | None]:
    """The position of each coordinate in q; None where a loop has to be closed for it."""
    result: list[int | None] = []
    for cluster in model.clusters:
        q, v = cluster.q, cluster.v
        plain = not cluster.implicit and q.stop - q.start == v.stop - v.start
        result += [*range(q.start, q.stop)] if plain else [None] * (v.stop - v.start)
    return result


def _exchanged(x: Array, i: int, j: int) -> Array:
    """An array (..., n) with two columns exchanged."""
    order: Sequence[int] = [j if n == i else i if n == j else n for n in range(x.shape[-1])]
    return x[..., order]


def _excerpt(readings: Sensors) -> Sensors:
    """Some of one motion's samples, without unknowns and measured wrenches."""
    place, rate, pull, drive = readings.place, readings.rate, readings.pull, readings.drive
    count = place.shape[0] if place.ndim == 2 else 0
    if readings.windows is None:
        at = slice(None, None, max(1, count // LOOKED_AT))
    else:
        at = slice(None, LOOKED_AT_IN_WINDOWS)
    if place.ndim == rate.ndim == drive.ndim == 2 and (pull is None or pull.ndim == 2):
        place, rate, drive = place[at], rate[at], drive[at]
        pull = None if pull is None else pull[at]
    interval = None if readings.windows is None else readings.interval
    return Sensors(
        readings.model, place, rate, pull, drive, readings.constants, {}, readings.encoders,
        readings.step, readings.cutoff, interval,
    )  # fmt: skip
