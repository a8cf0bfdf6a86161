"""A program as PTX, the assembly of NVIDIA's graphics cards, by LLVM: a state in each thread.

Rows of arguments and results lie one behind the other, as everywhere. A block is a warp, whose rows
go through shared memory as far as they are short: neighbours then read and write side by side. A
program of up to :data:`~robomodel.kernels.plan.CHUNK` steps is one function, whose values are
registers. Longer ones are cut into functions; what crosses a cut stands in the thread's local
memory. Over time (:mod:`robomodel.kernels.ptx_loop`) the loop is in the kernel.

The same functions can be had for the processor, to try them where there is no card: where a block
waits for all its threads they return, and are called again for the next phase.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from robomodel.kernels import machine
from robomodel.kernels.llvm import Function, Vectors
from robomodel.kernels.pieces import Instructions, Memory, write
from robomodel.kernels.plan import Plan
from robomodel.kernels.precision import PRECISIONS, Dtype
from robomodel.kernels.program import Program, Reference
from robomodel.kernels.schedule import ordered

THREADS = 32  # of a block: a warp, so that its share of memory is small, and nobody waits for long
STAGED = 24576  # bytes of a block's shared memory at most: eight such fit on all cards since 2020
CARD = "sm_75"  # the oldest that newest drivers know; drivers compile for the card they find
DIGITS = 1168  # of 2/π after the point: as many as the largest double has before it, and 190


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
    :data:`THREADS` threads. Raises RuntimeError where LLVM does not know such cards.
    """
    text = emit(program, name, sizes, dtype, ON_CARD)
    return machine.assembly(text, triple="nvptx64-nvidia-cuda", cpu=CARD, opt=2)


def emit(
    program: Program, name: str, sizes: Sequence[int], dtype: Dtype = "float64",
    place: Place = ON_CARD,
) -> str:  # fmt: skip
    """The same as LLVM's assembly.

    On the processor there come last: the block's memory, the thread's number, and the phase.
    """
    plan = Plan(ordered(program, 0), tuple(sizes), dtype)  # what spills costs more than on CPUs
    numbers = Scalars(plan.precision, 1)
    return module(numbers, place, _entry(plan, numbers, name, place))


def module(numbers: Scalars, place: Place, entry: Sequence[str]) -> str:
    """An entry with what it calls."""
    return "\n".join([*_declarations(numbers, place), *_large_angles(numbers), *entry]) + "\n"


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


def threads(f: Function, place: Place) -> tuple[str, str]:
    """The first thread of this one's block, and which of the block it is."""
    if place.card:
        block, lane = (
            f.value(f"zext i32 {f.value(f'call i32 @llvm.nvvm.read.ptx.sreg.{x}.x()')} to i64")
            for x in ("ctaid", "tid")
        )
        return f.value(f"mul i64 {block}, {THREADS}"), lane
    lane = f.value(f"urem i64 %thread, {THREADS}")
    return f.value(f"sub i64 %thread, {lane}"), lane


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


def _entry(plan: Plan, numbers: Scalars, name: str, place: Place) -> list[str]:
    f, several, count = Function(numbers), len(plan.pieces) > 1, len(plan.sizes) - 1
    staged = _staged(plan)
    first, lane = threads(f, place)
    thread = f.value(f"add i64 {first}, {lane}")
    rows_here = f.value(f"sub i64 %count, {first}")
    rows_here = f.value(f"call i64 @llvm.smin.i64(i64 {rows_here}, i64 {THREADS})")
    steps = [*(f"%step{k}" for k in range(count)), str(plan.sizes[-1])]
    bases = [*(f"%given{k}" for k in range(count)), "%result"]
    block = "@staged" if place.card else "%staged"

    def wait(phase: int) -> None:
        """Begin a phase, for which threads wait for each other."""
        if not place.card:
            f.lines += [f"br i1 {f.value(f'icmp eq i32 %phase, {phase}')}, label %phase{phase}, "
                        f"label %after{phase}", f"phase{phase}:"]  # fmt: skip
        elif phase and staged:
            f.lines.append("call void @llvm.nvvm.barrier0()")

    def end(phase: int) -> None:
        if not place.card:
            f.label(f"after{phase}")

    def move(k: int, back: bool) -> None:
        """A row's numbers of the whole block, side by side."""
        size, at = plan.sizes[k], f"{'s' if back else 'l'}{k}"
        origin = f.value(f"mul i64 {first}, {steps[k]}")
        origin = f.value(f"getelementptr {numbers.scalar}, {place.rows} {bases[k]}, i64 {origin}")
        total = f.value(f"mul i32 {f.value(f'trunc i64 {rows_here} to i32')}, {size}")
        begin = f.value(f"trunc i64 {lane} to i32")
        f.label(f"{at}_from")
        f.lines += [f"br label %{at}", f"{at}:"]
        f.lines.append(f"%{at}_e = phi i32 [{begin}, %{at}_from], [%{at}_next, %{at}_do]")
        more = f.value(f"icmp slt i32 %{at}_e, {total}")
        f.lines += [f"br i1 {more}, label %{at}_do, label %{at}_done", f"{at}_do:"]
        row, column = (f.value(f"{x} i32 %{at}_e, {size}") for x in ("udiv", "urem"))
        row, column = (f.value(f"zext i32 {x} to i64") for x in (row, column))
        outside = f.value(f"add i64 {f.value(f'mul i64 {row}, {steps[k]}')}, {column}")
        outside = f.value(f"getelementptr {numbers.scalar}, {place.rows} {origin}, i64 {outside}")
        inside = f.value(f"add i64 {f.value(f'mul i64 {row}, {size | 1}')}, {column}")
        inside = f.value(f"add i64 {inside}, {staged[k]}")
        inside = f.value(f"getelementptr {numbers.scalar}, {place.staged} {block}, i64 {inside}")
        ends = ((place.rows, outside), (place.staged, inside))
        (kind, source), (other, goal) = ends[::-1] if back else ends
        x = f.value(f"load {numbers.scalar}, {kind} {source}, align {numbers.bytes}")
        f.lines.append(f"store {numbers.scalar} {x}, {other} {goal}, align {numbers.bytes}")
        f.lines.append(f"%{at}_next = add i32 %{at}_e, {THREADS}")
        f.lines += [f"br label %{at}", f"{at}_done:"]

    wait(LOAD)
    for k in staged:
        if k < count:
            move(k, back=False)
    end(LOAD)
    wait(WORK)
    f.lines.append(f"br i1 {f.value(f'icmp slt i64 {thread}, %count')}, label %run, label %done")
    f.label("run")
    own = own_memory(f, place, plan.workspace) if several else "null"
    rows = []
    for k, outside in enumerate(bases):
        if k in staged:
            at = f.value(f"add i64 {f.value(f'mul i64 {lane}, {plan.sizes[k] | 1}')}, {staged[k]}")
            kind, base = place.staged, block
        else:
            at, kind, base = f.value(f"mul i64 {thread}, {steps[k]}"), place.rows, outside
        rows.append(Row(kind, f.value(f"getelementptr {numbers.scalar}, {kind} {base}, i64 {at}")))
    text = body(f, plan, rows, own, place, lambda g, given: _Rows(g, plan, given, place))
    f.label("done")
    end(WORK)
    wait(STORE)
    if count in staged:
        move(count, back=True)
    end(STORE)
    reads = f"{place.rows} noalias readonly"
    parameters = [
        *(f"{reads} %given{k}" for k in range(count)),
        f"{place.rows} noalias %result",
        *(f"i64 %step{k}" for k in range(count)),
        "i64 %count",
    ]
    if staged and place.card:
        numbers_of = max(at + THREADS * (plan.sizes[k] | 1) for k, at in staged.items())
        kind = f"[{numbers_of} x {numbers.scalar}]"
        text.append(f"@staged = internal addrspace(3) global {kind} undef, align 16")
    return [*text, head(name, place, parameters), *f.lines, "ret void", "}"]


def _staged(plan: Plan) -> dict[int, int]:
    """Which rows go through shared memory, and where they begin there.

    An odd number of numbers apart, so that all threads of a warp reach memory's banks at a time.
    """
    found: dict[int, int] = {}
    at = 0
    for k, size in enumerate(plan.sizes):
        numbers = THREADS * (size | 1)
        if (at + numbers) * plan.precision.bytes <= STAGED:
            found[k] = at
            at += numbers
    return found


def own_memory(f: Function, place: Place, count: int) -> str:
    """So many numbers of a thread's own."""
    own = f.value(f"alloca [{max(count, 1)} x {f.vectors.scalar}], align 16")
    return f.value(f"addrspacecast ptr {own} to {place.own}") if place.card else own


def body(
    f: Function, plan: Plan, rows: Sequence[Row], own: str, place: Place,
    target: Callable[[Function, Sequence[Row]], Rows],
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
        text += piece.text(f"void @piece{n}({parameters}) noinline")
        f.lines.append(f"call void @piece{n}({given})")
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
        return _sincos(self.f, x)

    def write(self, number: int) -> None:
        """A piece, with the first one constants among the results."""
        write(self.plan, number, self)
        if number == 0:
            for at, constant in enumerate(self.plan.constants, len(self.plan.columns)):
                self.store(self.f.constant(constant), "result", at)


class _Rows(Rows):
    """Of arguments and of the result, in which distinct results stand wherever they are asked."""

    def __init__(self, f: Function, plan: Plan, rows: Sequence[Row], place: Place) -> None:
        super().__init__(f, plan, place)
        self._inputs = [
            (row.kind, row.name, i)
            for row, numbers in zip(rows, plan.arguments(), strict=False)
            for i in range(len(numbers))
        ]
        self._outputs: dict[int, list[tuple[str, str, int]]] = {}
        for i, column in enumerate(plan.index):
            self._outputs.setdefault(column, []).append((rows[-1].kind, rows[-1].name, i))

    def at(self, memory: Memory, at: int) -> list[tuple[str, str, int]]:
        """Results may stand at several places."""
        if memory == "work":
            return [(self.place.own, self.own, at)]
        return [self._inputs[at]] if memory == "input" else self._outputs[at]


# ---- angles --------------------------------------------------------------------------------------


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


def _large_angles(numbers: Scalars) -> list[str]:
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
