"""A program cut into slices of its results, for cards: each thread computes one slice of a state.

A program whose values or results are too many for a thread's registers, or for the memory where a
block gathers results, is cut into slices: of each 32 states there is a block for each slice, so
that the threads of a warp never part. Steps that several slices need are computed in each of them:
nothing is handed from one to another. What that costs, and what it saves, is weighed by
:func:`sliced`. A derivative by one direction takes few steps that others do not share, so that
slices of derivatives are directions, or those of a limb; nothing here knows of that, it follows
from which results share which steps.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robomodel.kernels.plan import KernelPlan, ordered, permuted
from robomodel.kernels.program import PRECISIONS, Dtype, Program

REGISTERS = 240  # of 32 bits, that a thread of a card has for values; it has 255
MEMORY_STEPS = 32  # steps take as long as moving a number from or to memory: A100 25, H100 40
SECTOR = 32  # bytes that a card writes at least
LONGEST = 9000  # steps in one function, if there is but one
SPILLS_TWICE = 7000  # steps of a function in which twice as many values are spilled as need be
GROWTH = 1.5  # from one bound on the steps of a slice to the next


@dataclass(frozen=True)
class Slice:
    """A program of some of the results, and which of all results each of its outputs is."""

    program: Program
    places: tuple[int, ...]


def sliced(program: Program, dtype: Dtype, room: int) -> tuple[Slice, ...]:
    """The slices in which threads compute a program, their steps ordered; often one.

    A program whose values fit into a thread's registers, and whose distinct results into the
    ``room`` (for so many) of the memory where its block gathers them, is one slice. Others are cut
    into as many as take least time by :func:`_cost`.
    """
    whole = _slice(program, range(len(program.outputs)))
    plan = _plan(whole, dtype)
    registers = REGISTERS * 32 // plan.precision.bits
    fits = alive(whole.program) <= registers and len(plan.columns) + len(plan.constants) <= room
    if fits or not whole.program.steps:
        return (whole,)
    costs: dict[tuple[int, ...], tuple[float, Slice]] = {}

    def with_cost(places: tuple[int, ...]) -> tuple[float, Slice]:
        if places not in costs:
            each = _slice(program, places)
            costs[places] = _cost(each, dtype, room), each
        return costs[places]

    best: tuple[Slice, ...] = (whole,)
    least = _cost(whole, dtype, room)
    for groups in reversed(list(_partitions(program, room))):
        if sum(steps for steps, _ in groups) < least:
            parts = [with_cost(places) for places in _places(program, [x for _, x in groups])]
            cost = sum(x for x, _ in parts)
            if cost < least:
                best, least = tuple(each for _, each in parts), cost
    return best


def divided(program: Program, groups: Sequence[Sequence[int]]) -> tuple[Slice, ...]:
    """Slices of these distinct results."""
    return tuple(_slice(program, places) for places in _places(program, groups))


def _places(program: Program, groups: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Where each group stands; constants and inputs go with the result before them."""
    owner = {x: n for n, values in enumerate(groups) for x in values}
    named = [owner.get(x) if type(x) is int else None for x in program.outputs]
    last = next((n for n in named if n is not None), 0)
    places: list[list[int]] = [[] for _ in groups]
    for place, n in enumerate(named):
        last = last if n is None else n
        places[last].append(place)
    return [tuple(each) for each in places]


def _cost(each: Slice, dtype: Dtype, room: int) -> float:
    """How long a card takes for a slice of a state, in the time of a step.

    Three things count: steps; values that go through memory and come back (:func:`_moved`); and
    how much is written. Of results that a block gathers neighbours are written together, others
    one by one, and a card writes :data:`SECTOR` bytes at least.
    """
    plan, numbers = _plan(each, dtype), SECTOR // PRECISIONS[dtype].bytes
    written = {
        (column < room, place // numbers if column < room else place)
        for place, column in zip(each.places, plan.index, strict=True)
    }
    return len(each.program.steps) + MEMORY_STEPS * (_moved(plan) + numbers * len(written))


def _moved(plan: KernelPlan) -> float:
    """Values stored and read again: what registers do not hold, or what crosses the cuts.

    Long functions spill more than they must: by a factor that is fitted to what ptxas 13.0 spills
    of the derivatives of two robots with 18 and 24 degrees of freedom.
    """
    if len(plan.pieces) > 1:
        return plan.crossing
    registers = REGISTERS * 32 // plan.precision.bits
    return (1.0 + len(plan.program.steps) / SPILLS_TWICE) * spilled(plan.program, registers)


def _plan(each: Slice, dtype: Dtype) -> KernelPlan:
    sizes = (each.program.inputs, len(each.places))
    return KernelPlan(each.program, sizes, dtype, longest=LONGEST)


def _slice(program: Program, places: Sequence[int]) -> Slice:
    """The slice for the results at these places, without steps that they do not need."""
    outputs = tuple(program.outputs[place] for place in places)
    first = program.inputs
    needed = [False] * len(program.steps)
    for x in outputs:
        if type(x) is int and x >= first:
            needed[x - first] = True
    for i in reversed(range(len(needed))):
        if needed[i]:
            for x in program.steps[i].operands:
                if type(x) is int and x >= first:
                    needed[x - first] = True
    part = permuted(replace(program, outputs=outputs), [i for i, x in enumerate(needed) if x])
    return Slice(ordered(part, 0), tuple(places))  # what spills costs more than on CPUs


def alive(program: Program) -> int:
    """How many values of steps that later ones need there are at a time, at most."""
    last: dict[int, int] = {}
    for i, step in enumerate(program.steps):
        last.update((x, i) for x in step.operands if type(x) is int and x >= program.inputs)
    ending = Counter(last.values())
    count, most = 0, 0
    for i in range(len(program.steps)):
        count += (program.inputs + i in last) - ending[i]
        most = max(most, count)
    return most


def spilled(program: Program, registers: int) -> int:
    """How often a step's value is stored and loaded where there are so many registers.

    The one whose next use is furthest makes room (Belady, A study of replacement algorithms,
    1966), which is the least that steps in this order take.
    """
    first = program.inputs
    uses: dict[int, list[int]] = {}
    for i in reversed(range(len(program.steps))):
        for x in set(program.steps[i].operands):
            if type(x) is int and x >= first:
                uses.setdefault(x, []).append(i)
    held, stored = set[int](), set[int]()
    moved = 0
    furthest: list[tuple[int, int]] = []  # a heap of next uses, with what is out of date
    for i, step in enumerate(program.steps):
        new = first + i
        for x in {x for x in step.operands if type(x) is int and x >= first}:
            moved += x not in held
            uses[x].pop()
            if uses[x]:
                held.add(x)
                heapq.heappush(furthest, (-uses[x][-1], x))
            else:
                held.discard(x)
        if new in uses:
            held.add(new)
            heapq.heappush(furthest, (-uses[new][-1], new))
        while len(held) > registers:
            use, x = heapq.heappop(furthest)
            if x in held and uses[x][-1] == -use:
                held.remove(x)
                moved += x not in stored
                stored.add(x)
    return moved


Groups = list[tuple[int, list[int]]]
"""How many steps each slice has, and which of the distinct results."""


def _partitions(program: Program, room: int) -> Iterator[Groups]:
    """Fewer and fewer slices: those that share most of their steps become one.

    Under a bound on the steps of a slice, which grows from one partition to the next, those two are
    joined of which the steps of both are the largest part of the steps of either.
    """
    values, needs, weights = _needs(program)
    members = [[x] for x in values]
    counts = np.ones(len(values))
    size = needs @ weights
    both = (needs * weights) @ needs.T
    bound = float(size.max(initial=1.0))
    while True:
        either = size[:, None] + size - both
        fits = (either <= bound) & (counts[:, None] + counts <= room)
        score = np.where(fits, both / either, -1.0)  # the part of the steps that is common
        np.fill_diagonal(score, -1.0)
        top = score.max(axis=1)
        while top.max() >= 0.0:
            i = int(np.argmax(top))
            j = int(np.argmax(score[i]))
            members[i] += members[j]
            counts[i] += counts[j]
            counts[j] = np.inf  # which fits with none
            needs[i] = np.maximum(needs[i], needs[j])
            size[i] = needs[i] @ weights
            both[i] = both[:, i] = common = needs @ (needs[i] * weights)
            together = size[i] + size - common
            fitting = (together <= bound) & (counts[i] + counts <= room)
            fitting[i] = False
            stale = (score[:, i] == top) | (score[:, j] == top)
            score[j] = score[:, j] = -1.0
            score[i] = score[:, i] = np.where(fitting, common / together, -1.0)
            top = np.maximum(top, score[:, i])
            stale[[i, j]] = True
            top[stale] = score[stale].max(axis=1)
        active = np.flatnonzero(np.isfinite(counts))
        members = [members[k] for k in active]
        needs, size, counts = needs[active], size[active], counts[active]
        both = both[np.ix_(active, active)]
        yield [(int(n), list(x)) for n, x in zip(size, members, strict=True)]
        if bound >= len(program.steps):
            return
        bound *= GROWTH


def _needs(program: Program) -> tuple[list[int], NDArray[np.float32], NDArray[np.float32]]:
    """Distinct results; which sorts of steps each needs (0 or 1); how many each sort has.

    Steps are of one sort that the same results need.
    """
    first = program.inputs
    values = [x for x in program.distinct if x >= first]
    users = [0] * len(program.steps)  # sets of results, as bits
    for k, value in enumerate(values):
        users[value - first] |= 1 << k
    for i in reversed(range(len(users))):
        for x in program.steps[i].operands:
            if type(x) is int and x >= first:
                users[x - first] |= users[i]
    sorts = Counter(x for x in users if x)
    length = (len(values) + 7) // 8
    packed = b"".join(x.to_bytes(length, "little") for x in sorts)
    rows = np.frombuffer(packed, np.uint8).reshape(len(sorts), length)
    bits = np.unpackbits(rows, axis=1, count=len(values), bitorder="little")
    return values, bits.T.astype(np.float32), np.array([*sorts.values()], np.float32)
