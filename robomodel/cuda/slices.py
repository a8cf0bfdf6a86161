"""A program cut into slices of its results, for GPUs: each thread computes one slice of a state.

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

REGISTERS = 240  # of 32 bits, available for values in a thread, which has 255
MEMORY_STEPS = 32  # steps that take as long as one memory access of a number: A100 25, H100 40
SECTOR = 32  # smallest size of a write [bytes]
LONGEST_FUNCTION = 9000  # steps of the only function of a slice
SPILLS_TWICE = 7000  # steps of a function that spills twice as many values as necessary
GROWTH = 1.5  # ratio of successive bounds on the steps of a slice


@dataclass(frozen=True)
class Slice:
    """A program for some of the results, and the place of each output among all results."""

    program: Program
    places: tuple[int, ...]


def sliced(program: Program, dtype: Dtype, room: int) -> tuple[Slice, ...]:
    """The slices of a program that threads compute, with ordered steps; often only one.

    A program is one slice if its values fit into a thread's registers, and its distinct results
    into the ``room`` (a number of results) in which its block stages them. Others are cut into the
    slices with the least time by :func:`_cost`.
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
    """The slices of these groups of distinct results."""
    return tuple(_slice(program, places) for places in _places(program, groups))


def _places(program: Program, groups: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """The places of each group; constants and inputs follow the result before them."""
    owner = {x: n for n, values in enumerate(groups) for x in values}
    named = [owner.get(x) if type(x) is int else None for x in program.outputs]
    last = next((n for n in named if n is not None), 0)
    places: list[list[int]] = [[] for _ in groups]
    for place, n in enumerate(named):
        last = last if n is None else n
        places[last].append(place)
    return [tuple(each) for each in places]


def _cost(each: Slice, dtype: Dtype, room: int) -> float:
    """The time that a GPU takes for a slice of a state, in steps.

    It consists of steps, of values moved to memory and back (:func:`_moved`), and of writes.
    Results that a block stages are written together, others one by one, at least :data:`SECTOR`
    bytes each.
    """
    plan, numbers = _plan(each, dtype), SECTOR // PRECISIONS[dtype].bytes
    written = {
        (column < room, place // numbers if column < room else place)
        for place, column in zip(each.places, plan.index, strict=True)
    }
    return len(each.program.steps) + MEMORY_STEPS * (_moved(plan) + numbers * len(written))


def _moved(plan: KernelPlan) -> float:
    """The number of values stored and read again, which exceed the registers or cross cuts.

    Long functions spill more than necessary: by a factor fitted to what ptxas 13.0 spills for the
    derivatives of two robots with 18 and 24 degrees of freedom.
    """
    if len(plan.pieces) > 1:
        return plan.crossing
    registers = REGISTERS * 32 // plan.precision.bits
    return (1.0 + len(plan.program.steps) / SPILLS_TWICE) * spilled(plan.program, registers)


def _plan(each: Slice, dtype: Dtype) -> KernelPlan:
    sizes = (each.program.inputs, len(each.places))
    return KernelPlan(each.program, sizes, dtype, longest=LONGEST_FUNCTION)


def _slice(program: Program, places: Sequence[int]) -> Slice:
    """The slice for the results at these places, without unnecessary steps."""
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
    return Slice(ordered(part, 0), tuple(places))  # spills cost more than on CPUs


def alive(program: Program) -> int:
    """The largest number of values that are needed later, at any step."""
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
    """The number of values that are stored and loaded, given this number of registers.

    The value whose next use is furthest is spilled (Belady, A study of replacement algorithms,
    1966), which is the minimum for this order of steps.
    """
    first = program.inputs
    uses: dict[int, list[int]] = {}
    for i in reversed(range(len(program.steps))):
        for x in set(program.steps[i].operands):
            if type(x) is int and x >= first:
                uses.setdefault(x, []).append(i)
    held, stored = set[int](), set[int]()
    moved = 0
    furthest: list[tuple[int, int]] = []  # a heap of next uses, with outdated entries
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
"""For each slice, its number of steps and its distinct results."""


def _partitions(program: Program, room: int) -> Iterator[Groups]:
    """Partitions into fewer and fewer slices, which merge those with the most common steps.

    Under a bound on the steps of a slice, which grows from one partition to the next, the two
    slices are merged whose common steps are the largest fraction of their union.
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
        score = np.where(fits, both / either, -1.0)  # fraction of common steps
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
    """Distinct results; kinds of steps that each needs (0 or 1); number of steps of each kind.

    Steps are of one kind if the same results need them.
    """
    first = program.inputs
    values = [x for x in program.distinct if x >= first]
    users = [0] * len(program.steps)  # sets of results, as bit masks
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
