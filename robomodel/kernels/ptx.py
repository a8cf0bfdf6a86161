"""A program as PTX, the assembly of NVIDIA's graphics cards, by LLVM: a state in each thread.

Rows of arguments and results lie one behind the other, as everywhere; each thread reads its own,
number by number, and it is left to the caches that neighbours do not read side by side. A program
of up to :data:`~robomodel.kernels.plan.CHUNK` steps is one function, whose values are registers.
Longer ones are cut into functions; what crosses a cut stands in the thread's local memory.

The same functions can be had for the processor, to try them where there is no card: a thread's
number is then an argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from robomodel.kernels import machine
from robomodel.kernels.llvm import Function, Vectors
from robomodel.kernels.pieces import Instructions, Memory, write
from robomodel.kernels.plan import Plan
from robomodel.kernels.precision import PRECISIONS, Dtype
from robomodel.kernels.program import Program, Reference
from robomodel.kernels.schedule import ordered

THREADS = 128  # of a block, so that each can have as many registers as there are
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

    shared: str  # pointers to arguments and results
    own: str  # pointers to a thread's own memory
    card: bool


ON_CARD = Place("ptr addrspace(1)", "ptr addrspace(5)", True)
ON_HOST = Place("ptr", "ptr", False)


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
    """The same as LLVM's assembly; on the processor the thread's number (int64) comes last."""
    if not re.fullmatch(r"[A-Za-z]\w*", name):
        raise ValueError(f"'{name}' cannot be the name of an entry")
    plan = Plan(ordered(program, 0), tuple(sizes), dtype)  # what spills costs more than on CPUs
    numbers = Scalars(plan.precision, 1)
    return "\n".join([*_declarations(numbers, place), *_far(numbers), *_entry(
        plan, numbers, name, place)]) + "\n"  # fmt: skip


def _declarations(numbers: Scalars, place: Place) -> list[str]:
    v, name = numbers.type, numbers.suffix
    lines = [
        f"declare {v} @llvm.fma.{name}({v}, {v}, {v})",
        f"declare {v} @llvm.sqrt.{name}({v})",
        f"declare {v} @llvm.fabs.{name}({v})",
    ]
    if numbers.suffix != "f64":
        lines.append("declare double @llvm.fma.f64(double, double, double)")
    if place.card:
        lines += [f"declare i32 @llvm.nvvm.read.ptx.sreg.{x}.x()" for x in ("ctaid", "ntid", "tid")]
    return lines


# ---- the program ---------------------------------------------------------------------------------


def _entry(plan: Plan, numbers: Scalars, name: str, place: Place) -> list[str]:
    f, several = Function(numbers), len(plan.pieces) > 1
    count = len(plan.sizes) - 1
    thread = "%thread"
    if place.card:
        block, size, at = (
            f.value(f"zext i32 {f.value(f'call i32 @llvm.nvvm.read.ptx.sreg.{x}.x()')} to i64")
            for x in ("ctaid", "ntid", "tid")
        )
        thread = f.value(f"add i64 {f.value(f'mul i64 {block}, {size}')}, {at}")
    own = "null"
    if several:
        own = f.value(f"alloca [{max(plan.workspace, 1)} x {numbers.scalar}], align 16")
        if place.card:
            own = f.value(f"addrspacecast ptr {own} to {place.own}")
    f.lines.append(f"br i1 {f.value(f'icmp slt i64 {thread}, %count')}, label %run, label %done")
    f.label("run")
    rows = []
    for k, step in enumerate([*(f"%step{k}" for k in range(count)), str(plan.sizes[-1])]):
        first = f.value(f"mul i64 {thread}, {step}")
        base = f"%given{k}" if k < count else "%result"
        row = f"getelementptr {numbers.scalar}, {place.shared} {base}, i64 {first}"
        rows.append(f.value(row))
    text: list[str] = []
    if several:
        given = ", ".join([*(f"{place.shared} {row}" for row in rows), f"{place.own} {own}"])
        names = [*(f"%row{k}" for k in range(len(rows)))]
        head = ", ".join([*(f"{place.shared} {x}" for x in names), f"{place.own} %own"])
        for n in range(len(plan.pieces)):
            piece = Function(numbers)
            _piece(piece, plan, n, names, place)
            text += piece.text(f"void @piece{n}({head}) noinline")
            f.lines.append(f"call void @piece{n}({given})")
    else:
        _piece(f, plan, 0, rows, place)
    f.label("done")
    reads = f"{place.shared} noalias readonly"
    parameters = [
        *(f"{reads} %given{k}" for k in range(count)),
        f"{place.shared} noalias %result",
        *(f"i64 %step{k}" for k in range(count)),
        "i64 %count",
    ]
    if place.card:
        kind, limits = "ptx_kernel void", f' "nvvm.maxntid"="{THREADS}"'
    else:
        kind, limits = "void", ""
        parameters.append("i64 %thread")
    head = f"define {kind} @{name}({', '.join(parameters)}){limits} {{"
    return [*text, head, *f.lines, "ret void", "}"]


def _piece(f: Function, plan: Plan, number: int, rows: Sequence[str], place: Place) -> None:
    """The lines of a piece, on rows of the arguments and of the result."""
    target = _Rows(f, plan, rows, place)
    write(plan, number, target)
    if number == 0:
        for at, constant in enumerate(plan.constants, len(plan.columns)):
            target.store(f.constant(constant), "result", at)


class _Rows(Instructions):
    """Numbers of rows, and of a thread's own memory; each result stands wherever it is asked."""

    def __init__(self, f: Function, plan: Plan, rows: Sequence[str], place: Place) -> None:
        super().__init__(f)
        self._place, self._result = place, rows[-1]
        self._inputs = [
            (row, i)
            for row, numbers in zip(rows, plan.arguments(), strict=False)
            for i in range(len(numbers))
        ]
        self._outputs: dict[int, list[int]] = {}
        for i, column in enumerate(plan.index):
            self._outputs.setdefault(column, []).append(i)

    def _at(self, memory: Memory, at: int) -> list[str]:
        """Where it stands; results may do so at several places."""
        f, shared = self.f, self._place.shared
        places = {"work": [(self._place.own, "%own", at)]}
        if memory == "input":
            row, i = self._inputs[at]
            places[memory] = [(shared, row, i)]
        elif memory == "result":
            places[memory] = [(shared, self._result, i) for i in self._outputs[at]]
        scalar, size = f.vectors.scalar, f.vectors.bytes
        return [
            f"{kind} {f.value(f'getelementptr inbounds {scalar}, {kind} {base}, i64 {i}')}, "
            f"align {size}"
            for kind, base, i in places[memory]
        ]

    def load(self, memory: Memory, at: int) -> str:
        return self.f.value(f"load {self.f.vectors.scalar}, {self._at(memory, at)[0]}")

    def store(self, x: str, memory: Memory, at: int) -> None:
        self.f.lines += [f"store {self.f.vectors.scalar} {x}, {p}" for p in self._at(memory, at)]

    def sincos(self, angle: Reference, x: str) -> tuple[str, str]:
        return _sincos(self.f, x)


# ---- angles --------------------------------------------------------------------------------------


def _sincos(f: Function, x: str) -> tuple[str, str]:
    """Sine and cosine; rests of far angles are left to a function of their own."""
    v, whole, n = f.type, f.vectors.integers, len(f.lines)
    size = f.value(f"call {v} @llvm.fabs.{f.vectors.suffix}({v} {x})")
    huge = f.value(f"fcmp ogt {v} {size}, {f.constant(f.vectors.precision.far)}")
    f.lines += [f"br i1 {huge}, label %far{n}, label %near{n}", f"near{n}:"]
    near = f.reduced(x)
    f.lines += [f"br label %joined{n}", f"far{n}:"]
    both = f.value(f"call {{{v}, {whole}}} @far({v} {x})")
    far = [f.value(f"extractvalue {{{v}, {whole}}} {both}, {i}") for i in (0, 1)]
    f.lines += [f"br label %joined{n}", f"joined{n}:"]
    rest, quadrant = (
        f.value(f"phi {kind} [{a}, %near{n}], [{b}, %far{n}]")
        for kind, a, b in zip((v, whole), near, far, strict=True)
    )
    return f.turned(rest, quadrant)


def _far(numbers: Scalars) -> list[str]:
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
        *f.text(f"{pair} @far({scalar} %x) noinline cold", f"ret {pair} {result}"),
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
