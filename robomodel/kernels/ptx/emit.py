"""A program as PTX, the assembly of NVIDIA's graphics cards, by LLVM: a state in each thread.

Rows of arguments and results lie one behind the other, as everywhere. A block is a warp, whose
results are gathered in shared memory as far as they have room there, and its arguments as far as
room is left: neighbours then read and write side by side.

A program whose values or results are too many for that is cut into slices of its results: of each
32 states there is a block for each slice, so that the threads of a warp never part. A slice of up
to :data:`LONGEST` steps is one function, whose values are registers. Longer ones are cut into
functions; what crosses a cut stands in the thread's local memory. Over time
(:mod:`~robomodel.kernels.ptx.over_time`) the loop is in the kernel.

Steps that several slices need are computed in each of them: nothing is handed from one to another.
What that costs, and what it saves, is weighed by :func:`sliced`. A derivative by one direction
takes few steps that others do not share, so that slices of derivatives are directions, or those of
a limb; nothing here knows of that, it follows from which results share which steps.
"""

from __future__ import annotations

import heapq
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robomodel.kernels.llvm import machine
from robomodel.kernels.llvm.assembly import Function, Instructions, Vectors
from robomodel.kernels.plan import Memory, Plan, ordered, permuted, write
from robomodel.kernels.precision import PRECISIONS, Dtype
from robomodel.kernels.program import Program, Reference

THREADS = 32  # of a block: a warp, so that its share of memory is small, and nobody waits for long
STAGED = 24576  # bytes of a block's shared memory: of such an H100 holds 9, an A100 6, an RTX 40 4
ARCHITECTURE = (
    "sm_75"  # the oldest that newest drivers know; drivers compile for the card they find
)

GLOBAL, SHARED, LOCAL = (f"ptr addrspace({n})" for n in (1, 3, 5))
"""Pointers to arguments and results, to a block's memory, and to a thread's own."""
DIGITS = 1168  # of 2/π after the point: as many as the largest double has before it, and 190


def ptx(program: Program, name: str, sizes: Sequence[int], dtype: Dtype = "float64") -> str:
    """PTX with an entry of this name.

    Its parameters: a pointer to each argument's rows and to the result's; of each argument how
    many numbers (int64) one row stands behind the one before, 0 where all states share it; and how
    many states there are (int64). ``sizes``: of arguments' rows, and of the result's. Blocks have
    :data:`THREADS` threads, and there are :func:`blocks` of them. Raises RuntimeError where LLVM
    does not know such cards.
    """
    slices = sliced(program, dtype, gathered(dtype))
    return in_slices(name, sizes, dtype, slices)


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


def in_slices(name: str, sizes: Sequence[int], dtype: Dtype, slices: Sequence[Slice]) -> str:
    """PTX of a program in these slices."""
    numbers = Scalars(PRECISIONS[dtype], 1)
    code = assembled(numbers, _entry(slices, numbers, name, sizes, dtype))
    return f"// blocks for each {THREADS} states: {len(slices)}\n{code}"


def assembled(numbers: Scalars, entry: Sequence[str]) -> str:
    """An entry with what it calls, as PTX."""
    text = "\n".join([*_declarations(numbers), *_reduction(numbers), *entry]) + "\n"
    return machine.assembly(text, triple="nvptx64-nvidia-cuda", cpu=ARCHITECTURE, opt=2)


def _declarations(numbers: Scalars) -> list[str]:
    v, name = numbers.type, numbers.suffix
    lines = [
        f"declare {v} @llvm.fma.{name}({v}, {v}, {v})",
        f"declare {v} @llvm.sqrt.{name}({v})",
        f"declare {v} @llvm.fabs.{name}({v})",
        "declare i64 @llvm.smin.i64(i64, i64)",
    ]
    if numbers.suffix != "f64":
        lines.append("declare double @llvm.fma.f64(double, double, double)")
    lines += [f"declare i32 @llvm.nvvm.read.ptx.sreg.{x}.x()" for x in ("ctaid", "tid")]
    return [*lines, "declare void @llvm.nvvm.barrier0()"]


# ---- the entry -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A thread's row: pointers of this kind to its first number."""

    kind: str
    name: str


def threads(f: Function, slices: int = 1) -> tuple[str, str, str]:
    """The first state of this thread's block, which of the block it is, and the block's slice."""
    block, lane = (
        f.value(f"zext i32 {f.value(f'call i32 @llvm.nvvm.read.ptx.sreg.{x}.x()')} to i64")
        for x in ("ctaid", "tid")
    )
    number, block = (f.value(f"{x} i64 {block}, {slices}") for x in ("urem", "udiv"))
    return f.value(f"mul i64 {block}, {THREADS}"), lane, number


def head(name: str, parameters: Sequence[str]) -> str:
    """How an entry begins, and how many threads its blocks have at most."""
    if not re.fullmatch(r"[A-Za-z]\w*", name):
        raise ValueError(f"'{name}' cannot be the name of an entry")
    return "\n".join(
        [
            "!nvvm.annotations = !{!0}",  # an attribute of the entry is known from LLVM 21 on only
            f'!0 = !{{ptr @{name}, !"maxntidx", i32 {THREADS}}}',
            f"define ptx_kernel void @{name}({', '.join(parameters)}) {{",
        ]
    )


def _entry(
    slices: Sequence[Slice], numbers: Scalars, name: str, sizes: Sequence[int], dtype: Dtype
) -> list[str]:
    f, count = Function(numbers), len(sizes) - 1
    first, lane, number = threads(f, len(slices))
    thread = f.value(f"add i64 {first}, {lane}")
    rows_here = f.value(f"sub i64 %count, {first}")
    rows_here = f.value(f"call i64 @llvm.smin.i64(i64 {rows_here}, i64 {THREADS})")
    block = _Block(f, (*sizes,), first, lane, thread, rows_here)
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
    reads = f"{GLOBAL} noalias readonly"
    parameters = [
        *(f"{reads} %given{k}" for k in range(count)),
        f"{GLOBAL} noalias %result",
        *(f"i64 %step{k}" for k in range(count)),
        "i64 %count",
    ]
    if most:
        kind = f"[{most} x {numbers.scalar}]"
        text.append(f"@staged = internal addrspace(3) global {kind} undef, align 16")
    return [*text, head(name, parameters), *f.lines, "ret void", "}"]


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
    sizes: tuple[int, ...]
    first: str
    lane: str
    thread: str
    rows_here: str

    def write(self, plan: Plan, gathering: _Gathering) -> list[str]:
        """A slice; the functions that it takes."""
        f, n, count = self.f, gathering.number, len(self.sizes) - 1
        loaded = [k for k in gathering.rows if k < count]
        for k in loaded:
            self._move(k, [(i, i) for i in range(self.sizes[k])], gathering)
        if loaded:
            f.lines.append("call void @llvm.nvvm.barrier0()")
        mine = f.value(f"icmp slt i64 {self.thread}, %count")
        f.lines += [f"br i1 {mine}, label %run{n}, label %done{n}", f"run{n}:"]
        own = own_memory(f, plan.workspace) if len(plan.pieces) > 1 else "null"
        rows = [self._row(k, gathering.rows.get(k)) for k in range(count)]
        rows += [self._row(count, gathering.rows[count]), self._row(count, None)]

        def target(g: Function, names: Sequence[Row]) -> Rows:
            return _Rows(g, plan, names, gathering.alone)

        text = body(f, plan, rows, own, target, f"s{n}_")
        f.label(f"done{n}")
        f.lines.append("call void @llvm.nvvm.barrier0()")
        if gathering.outputs:
            text += self._move(count, gathering.outputs, gathering)
        return text

    def _base(self, k: int) -> tuple[str, str]:
        """Where a row's numbers are outside, and how many behind those of the state before."""
        if k == len(self.sizes) - 1:
            return "%result", str(self.sizes[-1])
        return f"%given{k}", f"%step{k}"

    def _row(self, k: int, inside: tuple[int, int] | None) -> Row:
        """The thread's row, in the block's memory or outside."""
        f = self.f
        if inside is None:
            base, step = self._base(k)
            kind, at = GLOBAL, f.value(f"mul i64 {self.thread}, {step}")
        else:
            kind, base = SHARED, "@staged"
            at = f.value(f"add i64 {f.value(f'mul i64 {self.lane}, {inside[0]}')}, {inside[1]}")
        return Row(kind, f.value(f"getelementptr {f.vectors.scalar}, {kind} {base}, i64 {at}"))

    def _move(self, k: int, pairs: Sequence[tuple[int, int]], gathering: _Gathering) -> list[str]:
        """A row's numbers of the whole block, side by side; tables of where they are, if any.

        ``pairs``: where a number is outside, and where in the block's memory.
        """
        f, scalar, back = self.f, self.f.vectors.scalar, k == len(self.sizes) - 1
        at, (pitch, begins) = f"m{gathering.number}_{k}", gathering.rows[k]
        base, step = self._base(k)
        origin = f.value(f"mul i64 {self.first}, {step}")
        origin = f.value(f"getelementptr {scalar}, {GLOBAL} {base}, i64 {origin}")
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
            numbers = ", ".join(f"i32 {pair[side]}" for pair in pairs)
            table, size = f"@{at}_{side}", f"[{len(pairs)} x i32]"
            text.append(f"{table} = internal addrspace(1) constant {size} [{numbers}]")
            x = f.value(f"getelementptr i32, {GLOBAL} {table}, i64 {which}")
            return f.value(f"zext i32 {f.value(f'load i32, {GLOBAL} {x}')} to i64")

        outside = f.value(f"add i64 {f.value(f'mul i64 {row}, {step}')}, {entry(0)}")
        outside = f.value(f"getelementptr {scalar}, {GLOBAL} {origin}, i64 {outside}")
        inside = f.value(f"add i64 {f.value(f'mul i64 {row}, {pitch}')}, {entry(1)}")
        inside = f.value(f"add i64 {inside}, {begins}")
        inside = f.value(f"getelementptr {scalar}, {SHARED} @staged, i64 {inside}")
        ends = ((GLOBAL, outside), (SHARED, inside))
        (kind, source), (other, goal) = ends[::-1] if back else ends
        x = f.value(f"load {scalar}, {kind} {source}, align {f.vectors.bytes}")
        f.lines.append(f"store {scalar} {x}, {other} {goal}, align {f.vectors.bytes}")
        f.lines.append(f"%{at}_next = add i32 %{at}_e, {THREADS}")
        f.lines += [f"br label %{at}", f"{at}_done:"]
        return text


def own_memory(f: Function, count: int) -> str:
    """So many numbers of a thread's own."""
    own = f.value(f"alloca [{max(count, 1)} x {f.vectors.scalar}], align 16")
    return f.value(f"addrspacecast ptr {own} to {LOCAL}")


def body(
    f: Function, plan: Plan, rows: Sequence[Row], own: str,
    target: Callable[[Function, Sequence[Row]], Rows], prefix: str = "",
) -> list[str]:  # fmt: skip
    """The program on these rows and this memory; the functions that it takes where it is cut."""
    if len(plan.pieces) == 1:
        made = target(f, rows)
        made.own = own
        made.write(0)
        return []
    text: list[str] = []
    given = ", ".join([*(f"{row.kind} {row.name}" for row in rows), f"{LOCAL} {own}"])
    named = [Row(row.kind, f"%row{k}") for k, row in enumerate(rows)]
    parameters = ", ".join([*(f"{row.kind} {row.name}" for row in named), f"{LOCAL} %own"])
    for n in range(len(plan.pieces)):
        piece = Function(f.vectors)
        target(piece, named).write(n)
        text += piece.text(f"void @{prefix}piece{n}({parameters}) noinline")
        f.lines.append(f"call void @{prefix}piece{n}({given})")
    return text


class Rows(Instructions):
    """Numbers of rows, and of a thread's own memory."""

    def __init__(self, f: Function, plan: Plan) -> None:
        super().__init__(f)
        self.plan, self.own = plan, "%own"

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
        return _sincos(self.f, x)

    def write(self, number: int) -> None:
        """A piece, with the first one constants among the results."""
        write(self.plan, number, self)
        if number == 0:
            for at, constant in enumerate(self.plan.constants, len(self.plan.columns)):
                self.store(self.f.constant(constant), "result", at)


class _Rows(Rows):
    """Of arguments; of results gathered in the block's memory, others wherever they are asked."""

    def __init__(
        self, f: Function, plan: Plan, rows: Sequence[Row], alone: dict[int, list[int]]
    ) -> None:
        super().__init__(f, plan)
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
            return [(LOCAL, self.own, at)]
        if memory == "input":
            return [self._inputs[at]]
        if at in self._alone:
            return [(self._outside.kind, self._outside.name, i) for i in self._alone[at]]
        return [(self._gathered.kind, self._gathered.name, at)]


# ---- numbers and angles --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scalars(Vectors):
    """Single numbers, not vectors of one."""

    @property
    def type(self) -> str:
        """A number."""
        return self.scalar

    @property
    def integers(self) -> str:
        """An integer of the number's size."""
        return f"i{self.precision.bits}"

    @property
    def truths(self) -> str:
        """A truth."""
        return "i1"

    @property
    def suffix(self) -> str:
        """Of intrinsics' names."""
        return f"f{self.precision.bits}"

    def constant(self, x: float) -> str:
        """A number."""
        return self.literal(x)

    def integer(self, x: int) -> str:
        """An integer."""
        return str(x)


def _sincos(f: Function, x: str) -> tuple[str, str]:
    """Sine and cosine; rests of large angles are left to a function of their own."""
    v, whole, n = f.type, f.vectors.integers, len(f.lines)
    size = f.value(f"call {v} @llvm.fabs.{f.vectors.suffix}({v} {x})")
    huge = f.value(f"fcmp ogt {v} {size}, {f.constant(f.vectors.precision.cody_waite_limit)}")
    f.lines += [f"br i1 {huge}, label %large{n}, label %small{n}", f"small{n}:"]
    small = f.reduced(x)
    f.lines += [f"br label %joined{n}", f"large{n}:"]
    both = f.value(f"call {{{v}, {whole}}} @reduce_large({v} {x})")
    large = [f.value(f"extractvalue {{{v}, {whole}}} {both}, {i}") for i in (0, 1)]
    f.lines += [f"br label %joined{n}", f"joined{n}:"]
    rest, quadrant = (
        f.value(f"phi {kind} [{a}, %small{n}], [{b}, %large{n}]")
        for kind, a, b in zip((v, whole), small, large, strict=True)
    )
    return f.turned(rest, quadrant)


def _reduction(numbers: Scalars) -> list[str]:
    """A function of any angle beyond 1e5: its rest and quarter turns, by 2/π's digits it needs.

    Payne and Hanek's way: an angle is m 2ᵉ with an integer m of 53 bits; of 2ᵉ 2/π the digits
    before the last two whole ones give multiples of four quarter turns, and those behind 190 are
    too small, as no double comes closer to a multiple of π/2 than 2⁻⁶².
    """
    f, scalar, whole = Function(numbers), numbers.scalar, numbers.integers
    x = f.value(f"fpext {scalar} %x to double") if scalar == "float" else "%x"
    bits = f.value(f"bitcast double {x} to i64")
    exponent = f.value(f"and i64 {f.value(f'lshr i64 {bits}, 52')}, 2047")
    fraction = f.value(f"and i64 {bits}, {2**52 - 1}")
    m = f.value(f"zext i64 {f.value(f'or i64 {fraction}, {2**52}')} to i192")
    behind = f.value(f"sub i64 {DIGITS - 190 + 1075}, {exponent}")  # digits behind those needed
    digits = f.value(f"getelementptr i8, ptr @digits, i64 {f.value(f'lshr i64 {behind}, 3')}")
    window = f.value(f"load i256, ptr {digits}, align 1")
    shift = f.value(f"zext i64 {f.value(f'and i64 {behind}, 7')} to i256")
    window = f.value(f"trunc i256 {f.value(f'lshr i256 {window}, {shift}')} to i192")
    turns = f.value(f"mul i192 {m}, {window}")
    nearest = f.value(f"lshr i192 {f.value(f'add i192 {turns}, {2**189}')}, 190")
    rest = f.value(f"sub i192 {turns}, {f.value(f'shl i192 {nearest}, 190')}")
    high = f.value(f"trunc i192 {f.value(f'lshr i192 {rest}, 128')} to i64")
    low = f.value(f"trunc i192 {f.value(f'lshr i192 {rest}, 64')} to i64")
    high = f.value(f"sitofp i64 {high} to double")
    low = f.value(f"uitofp i64 {low} to double")
    wide = Scalars(PRECISIONS["float64"], 1)
    small, half_pi = wide.literal(2.0**-64), wide.literal(1.5707963267948966 * 2.0**-62)
    both = f.value(f"call double @llvm.fma.f64(double {low}, double {small}, double {high})")
    r = f.value(f"fmul double {both}, {half_pi}")
    quadrant = f.value(f"trunc i192 {nearest} to {whole}")
    below = f.value(f"fcmp olt double {x}, 0.0")
    r = f.value(f"select i1 {below}, double {f.value(f'fneg double {r}')}, double {r}")
    turned = f.value(f"sub {whole} 0, {quadrant}")
    quadrant = f.value(f"select i1 {below}, {whole} {turned}, {whole} {quadrant}")
    r = f.value(f"fadd double {r}, {f.value(f'fsub double {x}, {x}')}")  # no number of infinity
    r = f.value(f"fptrunc double {r} to float") if scalar == "float" else r
    pair = f"{{{scalar}, {whole}}}"
    result = f.value(f"insertvalue {pair} poison, {scalar} {r}, 0")
    result = f.value(f"insertvalue {pair} {result}, {whole} {quadrant}, 1")
    table = _two_over_pi(DIGITS).to_bytes(DIGITS // 8 + 16, "little")
    entries = ", ".join(f"i8 {byte}" for byte in table)
    return [
        f"@digits = internal constant [{len(table)} x i8] [{entries}]",
        *f.text(f"{pair} @reduce_large({scalar} %x) noinline cold", f"ret {pair} {result}"),
    ]


def _two_over_pi(digits: int) -> int:
    """So many binary digits of 2/π, by Machin's formula."""
    one = 1 << (digits + 64)

    def arctangents() -> Iterator[int]:
        for weight, x in ((16, 5), (-4, 239)):
            power, n = weight * one // x, 1
            while power not in (0, -1):
                yield power // n if n % 4 == 1 else -(power // n)
                power, n = power // (x * x), n + 2

    return (one << (digits + 1)) // sum(arctangents())


REGISTERS = 240  # of 32 bits, that a thread of a card has for values; it has 255
MOVED = 32  # steps take as long as moving a number from or to memory: A100 25, H100 40
SECTOR = 32  # bytes that a card writes at least
LONGEST = 9000  # steps in one function, if there is but one
LONG = 7000  # steps of a function in which twice as many values are spilled as need be
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
    known: dict[tuple[int, ...], tuple[float, Slice]] = {}

    def made(places: tuple[int, ...]) -> tuple[float, Slice]:
        if places not in known:
            each = _slice(program, places)
            known[places] = _cost(each, dtype, room), each
        return known[places]

    best: tuple[Slice, ...] = (whole,)
    least = _cost(whole, dtype, room)
    for groups in reversed(list(_partitions(program, room))):
        if sum(steps for steps, _ in groups) < least:
            parts = [made(places) for places in _places(program, [x for _, x in groups])]
            cost = sum(x for x, _ in parts)
            if cost < least:
                best, least = tuple(each for _, each in parts), cost
    return best


def divided(program: Program, groups: Sequence[Sequence[int]]) -> tuple[Slice, ...]:
    """Slices of these distinct results."""
    return tuple(_slice(program, places) for places in _places(program, groups))


def _places(program: Program, groups: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Of each group, where it stands; constants and inputs go where the result before them is."""
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
    alone, and a card writes :data:`SECTOR` bytes at least.
    """
    plan, numbers = _plan(each, dtype), SECTOR // PRECISIONS[dtype].bytes
    written = {
        (column < room, place // numbers if column < room else place)
        for place, column in zip(each.places, plan.index, strict=True)
    }
    return len(each.program.steps) + MOVED * (_moved(plan) + numbers * len(written))


def _moved(plan: Plan) -> float:
    """Values stored and read again: what registers do not hold, or what crosses the cuts.

    Long functions spill more than they must: by a factor that is fitted to what ptxas 13.0 spills
    of the derivatives of two robots with 18 and 24 degrees of freedom.
    """
    if len(plan.pieces) > 1:
        return plan.crossing
    registers = REGISTERS * 32 // plan.precision.bits
    return (1.0 + len(plan.program.steps) / LONG) * spilled(plan.program, registers)


def _plan(each: Slice, dtype: Dtype) -> Plan:
    sizes = (each.program.inputs, len(each.places))
    return Plan(each.program, sizes, dtype, longest=LONGEST)


def _slice(program: Program, places: Sequence[int]) -> Slice:
    """Of the results at these places; steps that they do not take are left out."""
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
    kept = permuted(replace(program, outputs=outputs), [i for i, x in enumerate(needed) if x])
    return Slice(ordered(kept, 0), tuple(places))  # what spills costs more than on CPUs


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
        made = first + i
        for x in {x for x in step.operands if type(x) is int and x >= first}:
            moved += x not in held
            uses[x].pop()
            if uses[x]:
                held.add(x)
                heapq.heappush(furthest, (-uses[x][-1], x))
            else:
                held.discard(x)
        if made in uses:
            held.add(made)
            heapq.heappush(furthest, (-uses[made][-1], made))
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
        rest = np.flatnonzero(np.isfinite(counts))
        members = [members[k] for k in rest]
        needs, size, counts, both = needs[rest], size[rest], counts[rest], both[np.ix_(rest, rest)]
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
