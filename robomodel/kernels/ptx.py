"""A program as PTX, the assembly of NVIDIA's graphics cards, by LLVM: a state in each thread.

Rows of arguments and results lie one behind the other, as everywhere. A block is a warp, whose
results are gathered in shared memory as far as they have room there, and its arguments as far as
room is left: neighbours then read and write side by side.

A program whose values or results are too many for that is cut into slices of its results
(:mod:`robomodel.kernels.slices`): of each 32 states there is a block for each slice, so that the
threads of a warp never part. A slice of up to :data:`~robomodel.kernels.slices.LONGEST` steps is
one function, whose values are registers. Longer ones are cut into functions; what crosses a cut
stands in the thread's local memory. Over time (:mod:`robomodel.kernels.ptx_loop`) the loop is in
the kernel.

The same functions can be had for the processor, to try them where there is no card: where a block
waits for all its threads they return, and are called again for the next phase.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from robomodel.kernels import machine
from robomodel.kernels.llvm import Function
from robomodel.kernels.pieces import Instructions, Memory, write
from robomodel.kernels.plan import Plan
from robomodel.kernels.precision import PRECISIONS, Dtype
from robomodel.kernels.program import Program, Reference
from robomodel.kernels.ptx_numbers import Scalars, large_angles, sincos
from robomodel.kernels.slices import LONGEST, Slice, sliced

THREADS = 32  # of a block: a warp, so that its share of memory is small, and nobody waits for long
STAGED = 24576  # bytes of a block's shared memory: of such an H100 holds 9, an A100 6, an RTX 40 4
CARD = "sm_75"  # the oldest that newest drivers know; drivers compile for the card they find


@dataclass(frozen=True, slots=True)
class Place:
    """Where threads run, and what memory is called there."""

    rows: str  # pointers to arguments and results
    staged: str  # pointers to the block's
    own: str  # pointers to a thread's own memory
    card: bool


ON_CARD = Place("ptr addrspace(1)", "ptr addrspace(3)", "ptr addrspace(5)", True)
ON_HOST = Place("ptr", "ptr", "ptr", False)
LOAD, WORK, STORE = range(3)  # phases, between which a block's threads wait for each other


def ptx(program: Program, name: str, sizes: Sequence[int], dtype: Dtype = "float64") -> str:
    """PTX with an entry of this name.

    Its parameters: a pointer to each argument's rows and to the result's; of each argument how
    many numbers (int64) one row stands behind the one before, 0 where all states share it; and how
    many states there are (int64). ``sizes``: of arguments' rows, and of the result's. Blocks have
    :data:`THREADS` threads, and there are :func:`blocks` of them. Raises RuntimeError where LLVM
    does not know such cards.
    """
    slices = sliced(program, dtype, gathered(dtype))
    text = emit(program, name, sizes, dtype, ON_CARD, slices)
    code = machine.assembly(text, triple="nvptx64-nvidia-cuda", cpu=CARD, opt=2)
    return f"// blocks for each {THREADS} states: {len(slices)}\n{code}"


def blocks(text: str, count: int) -> int:
    """How many blocks PTX of :func:`ptx`, or of motions, takes for so many states.

    Block ``b`` computes slice ``b % n`` of the ``b // n``-th 32 states, so that slices of the same
    states run at the same time and what they write comes together in the card's cache.
    """
    found = re.match(rf"// blocks for each {THREADS} states: (\d+)\n", text)
    return -(-count // THREADS) * (int(found[1]) if found else 1)


def gathered(dtype: Dtype) -> int:
    """How many distinct results of each state a block gathers."""
    return (STAGED // (THREADS * PRECISIONS[dtype].bytes) - 1) | 1


def emit(
    program: Program, name: str, sizes: Sequence[int], dtype: Dtype = "float64",
    place: Place = ON_CARD, slices: Sequence[Slice] | None = None,
) -> str:  # fmt: skip
    """The same as LLVM's assembly; ``slices``: others than it would have.

    On the processor there come last: the block's memory, the thread's number, and the phase.
    """
    if slices is None:
        slices = sliced(program, dtype, gathered(dtype))
    numbers = Scalars(PRECISIONS[dtype], 1)
    return module(numbers, place, _entry(slices, numbers, name, sizes, dtype, place))


def module(numbers: Scalars, place: Place, entry: Sequence[str]) -> str:
    """An entry with what it calls."""
    return "\n".join([*_declarations(numbers, place), *large_angles(numbers), *entry]) + "\n"


def _declarations(numbers: Scalars, place: Place) -> list[str]:
    v, name = numbers.type, numbers.suffix
    lines = [
        f"declare {v} @llvm.fma.{name}({v}, {v}, {v})",
        f"declare {v} @llvm.sqrt.{name}({v})",
        f"declare {v} @llvm.fabs.{name}({v})",
        "declare i64 @llvm.smin.i64(i64, i64)",
    ]
    if numbers.suffix != "f64":
        lines.append("declare double @llvm.fma.f64(double, double, double)")
    if place.card:
        lines += [f"declare i32 @llvm.nvvm.read.ptx.sreg.{x}.x()" for x in ("ctaid", "tid")]
        lines.append("declare void @llvm.nvvm.barrier0()")
    return lines


# ---- the entry -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A thread's row: pointers of this kind to its first number."""

    kind: str
    name: str


def threads(f: Function, place: Place, slices: int = 1) -> tuple[str, str, str]:
    """The first state of this thread's block, which of the block it is, and the block's slice."""
    if place.card:
        block, lane = (
            f.value(f"zext i32 {f.value(f'call i32 @llvm.nvvm.read.ptx.sreg.{x}.x()')} to i64")
            for x in ("ctaid", "tid")
        )
    else:
        block, lane = (f.value(f"{x} i64 %thread, {THREADS}") for x in ("udiv", "urem"))
    number, block = (f.value(f"{x} i64 {block}, {slices}") for x in ("urem", "udiv"))
    return f.value(f"mul i64 {block}, {THREADS}"), lane, number


def head(name: str, place: Place, parameters: Sequence[str]) -> str:
    """The first line of an entry."""
    if not re.fullmatch(r"[A-Za-z]\w*", name):
        raise ValueError(f"'{name}' cannot be the name of an entry")
    kind, limits, given = "void", "", [*parameters]
    if place.card:
        kind, limits = "ptx_kernel void", f' "nvvm.maxntid"="{THREADS}"'
    else:
        given += ["ptr %staged", "i64 %thread", "i32 %phase"]
    return f"define {kind} @{name}({', '.join(given)}){limits} {{"


def _entry(
    slices: Sequence[Slice], numbers: Scalars, name: str, sizes: Sequence[int], dtype: Dtype,
    place: Place,
) -> list[str]:  # fmt: skip
    f, count = Function(numbers), len(sizes) - 1
    first, lane, number = threads(f, place, len(slices))
    thread = f.value(f"add i64 {first}, {lane}")
    rows_here = f.value(f"sub i64 %count, {first}")
    rows_here = f.value(f"call i64 @llvm.smin.i64(i64 {rows_here}, i64 {THREADS})")
    block = _Block(f, place, (*sizes,), first, lane, thread, rows_here)
    if len(slices) > 1:
        ways = " ".join(f"i64 {n}, label %slice{n}" for n in range(1, len(slices)))
        f.lines.append(f"switch i64 {number}, label %slice0 [{ways}]")
    text: list[str] = []
    most = 0
    for n, each in enumerate(slices):
        plan = Plan(each.program, (*sizes[:-1], len(each.places)), dtype, longest=LONGEST)
        gathering = _Gathering.of(plan, each.places, n)
        if len(slices) > 1:
            f.lines.append(f"slice{n}:")
        text += block.write(plan, gathering)
        f.lines.append("br label %end")
        most = max(most, gathering.size)
    f.lines.append("end:")
    reads = f"{place.rows} noalias readonly"
    parameters = [
        *(f"{reads} %given{k}" for k in range(count)),
        f"{place.rows} noalias %result",
        *(f"i64 %step{k}" for k in range(count)),
        "i64 %count",
    ]
    if most and place.card:
        kind = f"[{most} x {numbers.scalar}]"
        text.append(f"@staged = internal addrspace(3) global {kind} undef, align 16")
    return [*text, head(name, place, parameters), *f.lines, "ret void", "}"]


@dataclass(frozen=True)
class _Gathering:
    """What of a slice goes through the block's memory.

    Rows there are an odd number of numbers apart, so that all threads of a warp reach memory's
    banks at a time. The first distinct results are gathered, and written to the places (of the
    result's row) of the outputs that they are.
    """

    number: int  # of the slice
    rows: dict[int, tuple[int, int]]  # of each row that does: how long there, and where it begins
    outputs: tuple[tuple[int, int], ...]  # gathered ones: which place, and which distinct result
    alone: dict[int, list[int]]  # of each other distinct result the places
    size: int

    @classmethod
    def of(cls, plan: Plan, places: Sequence[int], number: int) -> _Gathering:
        room = gathered(plan.dtype)
        distinct = len(plan.columns) + len(plan.constants)
        together = list(zip(places, plan.index, strict=True))
        alone: dict[int, list[int]] = {}
        for where, column in together:
            if column >= room:
                alone.setdefault(column, []).append(where)
        last = len(plan.sizes) - 1
        rows = {last: (min(distinct, room) | 1, 0)}
        size = THREADS * rows[last][0]
        for k, given in enumerate(plan.arguments()):
            numbers = THREADS * (len(given) | 1)
            if plan.used & {*given} and (size + numbers) * plan.precision.bytes <= STAGED:
                rows[k] = len(given) | 1, size
                size += numbers
        outputs = tuple((where, column) for where, column in together if column < room)
        return cls(number, rows, outputs, alone, size)


@dataclass(frozen=True)
class _Block:
    """A warp on its rows: it loads arguments, computes a slice, and stores results."""

    f: Function
    place: Place
    sizes: tuple[int, ...]
    first: str
    lane: str
    thread: str
    rows_here: str

    def write(self, plan: Plan, gathering: _Gathering) -> list[str]:
        """A slice; the functions that it takes."""
        f, place, n, count = self.f, self.place, gathering.number, len(self.sizes) - 1
        given = [k for k in gathering.rows if k < count]
        self._wait(LOAD, n, bool(given))
        for k in given:
            self._move(k, [(i, i) for i in range(self.sizes[k])], gathering)
        self._end(LOAD, n)
        self._wait(WORK, n, bool(given))
        mine = f.value(f"icmp slt i64 {self.thread}, %count")
        f.lines += [f"br i1 {mine}, label %run{n}, label %done{n}", f"run{n}:"]
        own = own_memory(f, place, plan.workspace) if len(plan.pieces) > 1 else "null"
        rows = [self._row(k, gathering.rows.get(k)) for k in range(count)]
        rows += [self._row(count, gathering.rows[count]), self._row(count, None)]

        def target(g: Function, names: Sequence[Row]) -> Rows:
            return _Rows(g, plan, names, gathering.alone, place)

        text = body(f, plan, rows, own, place, target, f"s{n}_")
        f.label(f"done{n}")
        self._end(WORK, n)
        self._wait(STORE, n, True)
        if gathering.outputs:
            text += self._move(count, gathering.outputs, gathering)
        self._end(STORE, n)
        return text

    def _wait(self, phase: int, n: int, needed: bool) -> None:
        """Begin a phase, for which threads wait for each other."""
        f = self.f
        if not self.place.card:
            now = f.value(f"icmp eq i32 %phase, {phase}")
            f.lines += [f"br i1 {now}, label %phase{phase}_{n}, label %after{phase}_{n}",
                        f"phase{phase}_{n}:"]  # fmt: skip
        elif phase and needed:
            f.lines.append("call void @llvm.nvvm.barrier0()")

    def _end(self, phase: int, n: int) -> None:
        if not self.place.card:
            self.f.label(f"after{phase}_{n}")

    def _base(self, k: int) -> tuple[str, str]:
        """Where a row's numbers are outside, and how many behind those of the state before."""
        if k == len(self.sizes) - 1:
            return "%result", str(self.sizes[-1])
        return f"%given{k}", f"%step{k}"

    def _row(self, k: int, inside: tuple[int, int] | None) -> Row:
        """The thread's row, in the block's memory or outside."""
        f, place = self.f, self.place
        if inside is None:
            base, step = self._base(k)
            kind, at = place.rows, f.value(f"mul i64 {self.thread}, {step}")
        else:
            kind, base = place.staged, self._memory
            at = f.value(f"add i64 {f.value(f'mul i64 {self.lane}, {inside[0]}')}, {inside[1]}")
        return Row(kind, f.value(f"getelementptr {f.vectors.scalar}, {kind} {base}, i64 {at}"))

    @property
    def _memory(self) -> str:
        return "@staged" if self.place.card else "%staged"

    def _move(self, k: int, pairs: Sequence[tuple[int, int]], gathering: _Gathering) -> list[str]:
        """A row's numbers of the whole block, side by side; tables of where they are, if any.

        ``pairs``: where a number is outside, and where in the block's memory.
        """
        f, place, scalar, back = self.f, self.place, self.f.vectors.scalar, k == len(self.sizes) - 1
        at, (pitch, begins) = f"m{gathering.number}_{k}", gathering.rows[k]
        base, step = self._base(k)
        origin = f.value(f"mul i64 {self.first}, {step}")
        origin = f.value(f"getelementptr {scalar}, {place.rows} {base}, i64 {origin}")
        total = f.value(f"mul i32 {f.value(f'trunc i64 {self.rows_here} to i32')}, {len(pairs)}")
        begin = f.value(f"trunc i64 {self.lane} to i32")
        f.label(f"{at}_from")
        f.lines += [f"br label %{at}", f"{at}:"]
        f.lines.append(f"%{at}_e = phi i32 [{begin}, %{at}_from], [%{at}_next, %{at}_do]")
        more = f.value(f"icmp slt i32 %{at}_e, {total}")
        f.lines += [f"br i1 {more}, label %{at}_do, label %{at}_done", f"{at}_do:"]
        row, which = (f.value(f"{x} i32 %{at}_e, {len(pairs)}") for x in ("udiv", "urem"))
        row, which = (f.value(f"zext i32 {x} to i64") for x in (row, which))
        text: list[str] = []

        def entry(side: int) -> str:
            """Of the pair."""
            if all(pair[side] == i for i, pair in enumerate(pairs)):
                return which
            kind = "addrspace(1) " if place.card else ""
            numbers = ", ".join(f"i32 {pair[side]}" for pair in pairs)
            table, size = f"@{at}_{side}", f"[{len(pairs)} x i32]"
            text.append(f"{table} = internal {kind}constant {size} [{numbers}]")
            x = f.value(f"getelementptr i32, {place.rows} {table}, i64 {which}")
            return f.value(f"zext i32 {f.value(f'load i32, {place.rows} {x}')} to i64")

        outside = f.value(f"add i64 {f.value(f'mul i64 {row}, {step}')}, {entry(0)}")
        outside = f.value(f"getelementptr {scalar}, {place.rows} {origin}, i64 {outside}")
        inside = f.value(f"add i64 {f.value(f'mul i64 {row}, {pitch}')}, {entry(1)}")
        inside = f.value(f"add i64 {inside}, {begins}")
        inside = f.value(f"getelementptr {scalar}, {place.staged} {self._memory}, i64 {inside}")
        ends = ((place.rows, outside), (place.staged, inside))
        (kind, source), (other, goal) = ends[::-1] if back else ends
        x = f.value(f"load {scalar}, {kind} {source}, align {f.vectors.bytes}")
        f.lines.append(f"store {scalar} {x}, {other} {goal}, align {f.vectors.bytes}")
        f.lines.append(f"%{at}_next = add i32 %{at}_e, {THREADS}")
        f.lines += [f"br label %{at}", f"{at}_done:"]
        return text


def own_memory(f: Function, place: Place, count: int) -> str:
    """So many numbers of a thread's own."""
    own = f.value(f"alloca [{max(count, 1)} x {f.vectors.scalar}], align 16")
    return f.value(f"addrspacecast ptr {own} to {place.own}") if place.card else own


def body(
    f: Function, plan: Plan, rows: Sequence[Row], own: str, place: Place,
    target: Callable[[Function, Sequence[Row]], Rows], prefix: str = "",
) -> list[str]:  # fmt: skip
    """The program on these rows and this memory; the functions that it takes where it is cut."""
    if len(plan.pieces) == 1:
        made = target(f, rows)
        made.own = own
        made.write(0)
        return []
    text: list[str] = []
    given = ", ".join([*(f"{row.kind} {row.name}" for row in rows), f"{place.own} {own}"])
    named = [Row(row.kind, f"%row{k}") for k, row in enumerate(rows)]
    parameters = ", ".join([*(f"{row.kind} {row.name}" for row in named), f"{place.own} %own"])
    for n in range(len(plan.pieces)):
        piece = Function(f.vectors)
        target(piece, named).write(n)
        text += piece.text(f"void @{prefix}piece{n}({parameters}) noinline")
        f.lines.append(f"call void @{prefix}piece{n}({given})")
    return text


class Rows(Instructions):
    """Numbers of rows, and of a thread's own memory."""

    def __init__(self, f: Function, plan: Plan, place: Place) -> None:
        super().__init__(f)
        self.plan, self.place, self.own = plan, place, "%own"

    @abstractmethod
    def at(self, memory: Memory, at: int) -> list[tuple[str, str, int]]:
        """Where a number stands, maybe at several places: the pointers' kind, which, how far on."""

    def _places(self, memory: Memory, at: int) -> list[str]:
        f, scalar = self.f, self.f.vectors.scalar
        return [
            f"{kind} {f.value(f'getelementptr inbounds {scalar}, {kind} {base}, i64 {i}')}, "
            f"align {f.vectors.bytes}"
            for kind, base, i in self.at(memory, at)
        ]

    def load(self, memory: Memory, at: int) -> str:
        """Of the places the first."""
        return self.f.value(f"load {self.f.vectors.scalar}, {self._places(memory, at)[0]}")

    def store(self, x: str, memory: Memory, at: int) -> None:
        """To all places."""
        self.f.lines += [f"store {self.f.type} {x}, {p}" for p in self._places(memory, at)]

    def sincos(self, angle: Reference, x: str) -> tuple[str, str]:
        """Of any angle."""
        return sincos(self.f, x)

    def write(self, number: int) -> None:
        """A piece, with the first one constants among the results."""
        write(self.plan, number, self)
        if number == 0:
            for at, constant in enumerate(self.plan.constants, len(self.plan.columns)):
                self.store(self.f.constant(constant), "result", at)


class _Rows(Rows):
    """Of arguments; of results gathered in the block's memory, others wherever they are asked."""

    def __init__(
        self, f: Function, plan: Plan, rows: Sequence[Row], alone: dict[int, list[int]],
        place: Place,
    ) -> None:  # fmt: skip
        super().__init__(f, plan, place)
        *given, self._gathered, self._outside = rows
        self._alone = alone
        self._inputs = [
            (row.kind, row.name, i)
            for row, numbers in zip(given, plan.arguments(), strict=True)
            for i in range(len(numbers))
        ]

    def at(self, memory: Memory, at: int) -> list[tuple[str, str, int]]:
        """Results may stand at several places."""
        if memory == "work":
            return [(self.place.own, self.own, at)]
        if memory == "input":
            return [self._inputs[at]]
        if at in self._alone:
            return [(self._outside.kind, self._outside.name, i) for i in self._alone[at]]
        return [(self._gathered.kind, self._gathered.name, at)]
