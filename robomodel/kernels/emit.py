"""A program as LLVM IR: a NumPy inner loop with SIMD lanes across the batch.

The loop takes ``width`` states at a time. Their rows are transposed in registers into a tile (one
vector a number), the straight-line program runs on vectors, and the result is transposed back. Long
programs are cut into functions of a few hundred steps, so that compile time grows linearly; what
crosses a cut goes through a workspace whose slots are used again. Rows at the end of a batch are
repeated instead of masked: to store a result twice does no harm.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from robomodel.kernels.trace import (
    ADD,
    COS,
    DIV,
    FMA,
    FMS,
    FNMA,
    MUL,
    NEG,
    SIN,
    SQRT,
    SUB,
    Program,
    Reference,
    Step,
)

CHUNK = 4000  # steps in one function, if there is but one
PIECE = 400  # steps in a function, where there are several

# π/2 in three parts (Cody and Waite), and the minimax polynomials of fdlibm on [-π/4, π/4]
HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
SINE = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
COSINE = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip
ROUNDER = 6755399441055744.0  # 1.5 · 2⁵²: adding it rounds to an integer, kept in the low bits


@dataclass
class _Function:
    """The lines of a function under way; values get fresh names."""

    width: int
    lines: list[str] = field(default_factory=list)

    @property
    def vector(self) -> str:
        return f"<{self.width} x double>"

    @property
    def integers(self) -> str:
        return f"<{self.width} x i64>"

    def value(self, text: str) -> str:
        """A line that makes a value; its name."""
        name = f"%t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, x: float) -> str:
        """The same number in every lane."""
        bits = struct.unpack("<Q", struct.pack("<d", x))[0]
        return "<" + ", ".join([f"double 0x{bits:016X}"] * self.width) + ">"

    def integer(self, x: int) -> str:
        """The same integer in every lane."""
        return "<" + ", ".join([f"i64 {x}"] * self.width) + ">"

    def two(self, operation: str, a: str, b: str) -> str:
        return self.value(f"{operation} {self.vector} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        v = self.vector
        return self.value(f"call {v} @llvm.fma.v{self.width}f64({v} {a}, {v} {b}, {v} {c})")

    def minus(self, a: str) -> str:
        return self.value(f"fneg {self.vector} {a}")

    def address(self, base: str, slot: int) -> str:
        return self.value(f"getelementptr inbounds {self.vector}, ptr {base}, i64 {slot}")

    def load(self, base: str, slot: int) -> str:
        at = self.address(base, slot)
        return self.value(f"load {self.vector}, ptr {at}, align {8 * self.width}")

    def store(self, x: str, base: str, slot: int) -> None:
        at = self.address(base, slot)
        self.lines.append(f"store {self.vector} {x}, ptr {at}, align {8 * self.width}")

    def polynomial(self, coefficients: Sequence[float], z: str) -> str:
        """Horner's rule, lowest coefficient first."""
        result = self.constant(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            result = self.fma(result, z, self.constant(c))
        return result

    def sincos(self, x: str) -> tuple[str, str]:
        """Sine and cosine: reduce to [-π/4, π/4], two polynomials, swap and sign by quadrant."""
        rounded = self.fma(x, self.constant(0.6366197723675814), self.constant(ROUNDER))
        k = self.two("fsub", rounded, self.constant(ROUNDER))
        quadrant = self.value(f"bitcast {self.vector} {rounded} to {self.integers}")
        r = x
        for part in HALF_PI:
            r = self.fma(k, self.constant(-part), r)
        z = self.two("fmul", r, r)
        s = self.fma(self.two("fmul", r, z), self.polynomial(SINE, z), r)
        flat = self.fma(z, self.constant(-0.5), self.constant(1.0))
        c = self.fma(self.two("fmul", z, z), self.polynomial(COSINE, z), flat)
        odd = self.value(f"and {self.integers} {quadrant}, {self.integer(1)}")
        swap = self.value(f"icmp ne {self.integers} {odd}, {self.integer(0)}")
        choose = f"select <{self.width} x i1> {swap}, {self.vector}"
        sine = self.value(f"{choose} {c}, {self.vector} {s}")
        cosine = self.value(f"{choose} {s}, {self.vector} {c}")
        after = self.value(f"add {self.integers} {quadrant}, {self.integer(1)}")
        return self._signed(sine, quadrant), self._signed(cosine, after)

    def _signed(self, x: str, quadrant: str) -> str:
        """X with the sign turned where bit 1 of the quadrant is set."""
        moved = self.value(f"shl {self.integers} {quadrant}, {self.integer(62)}")
        sign = self.value(f"and {self.integers} {moved}, {self.integer(-(2**63))}")
        bits = self.value(f"bitcast {self.vector} {x} to {self.integers}")
        turned = self.value(f"xor {self.integers} {bits}, {sign}")
        return self.value(f"bitcast {self.integers} {turned} to {self.vector}")

    def transpose(self, rows: Sequence[str]) -> list[str]:
        """``width`` vectors of ``width``, transposed in log₂ stages of shuffles."""
        rows, size = list(rows), 1
        while size < self.width:
            for i in range(self.width):
                if i & size:
                    continue
                first, second = rows[i], rows[i | size]
                lanes = range(self.width)
                low = [x if not x & size else self.width + (x ^ size) for x in lanes]
                high = [x | size if not x & size else self.width + x for x in lanes]
                rows[i], rows[i | size] = (self._shuffle(first, second, m) for m in (low, high))
            size *= 2
        return rows

    def _shuffle(self, a: str, b: str, lanes: Sequence[int]) -> str:
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.value(
            f"shufflevector {self.vector} {a}, {self.vector} {b}, <{self.width} x i32> <{mask}>"
        )


# ---- the program ---------------------------------------------------------------------------------


def _pieces(program: Program) -> list[range]:
    """The steps, cut into pieces."""
    count = len(program.steps)
    size = max(count, 1) if count <= CHUNK else PIECE
    return [range(i, min(i + size, count)) for i in range(0, count, size)] or [range(0)]


def _slots(program: Program, pieces: Sequence[range]) -> tuple[dict[int, int], int]:
    """Workspace slots of the values that later pieces use; slots are free after their last use."""
    piece_of = [n for n, piece in enumerate(pieces) for _ in piece]
    last: dict[int, int] = {}
    for i, step in enumerate(program.steps):
        for x in step.operands:
            if (
                type(x) is int
                and x >= program.inputs
                and piece_of[x - program.inputs] < piece_of[i]
            ):
                last[x] = piece_of[i]
    slots: dict[int, int] = {}
    free: list[int] = []
    ending: dict[int, list[int]] = {}
    count = 0
    for n, piece in enumerate(pieces):
        free += ending.pop(n - 1, [])
        for i in piece:
            x = program.inputs + i
            if x in last:
                if not free:
                    free.append(count)
                    count += 1
                slots[x] = free.pop()
                ending.setdefault(last[x], []).append(slots[x])
    return slots, count


def _piece(
    program: Program, steps: range, slots: dict[int, int], width: int, number: int
) -> list[str]:
    """One piece as a function of the input tile, the output tile and the workspace."""
    f = _Function(width)
    known: dict[Reference, str] = {}
    trigonometry: dict[Reference, tuple[str, str]] = {}
    wanted: dict[int, list[int]] = {}
    for at, x in enumerate(program.outputs):
        if type(x) is int:
            wanted.setdefault(x, []).append(at)

    def operand(x: Reference) -> str:
        if type(x) is float:
            return f.constant(x)
        if x not in known:
            assert isinstance(x, int)
            known[x] = f.load("%in", x) if x < program.inputs else f.load("%work", slots[x])
        return known[x]

    for i in steps:
        step, x = program.steps[i], program.inputs + i
        known[x] = _step(f, step, operand, trigonometry)
        if x in slots:
            f.store(known[x], "%work", slots[x])
        for at in wanted.get(x, ()):
            f.store(known[x], "%out", at)
    if number == 0:  # outputs that no step makes
        for at, x in enumerate(program.outputs):
            if type(x) is float or x < program.inputs:
                f.store(operand(x), "%out", at)
    arguments = "ptr noalias readonly %in, ptr noalias %out, ptr noalias %work"
    return [
        # aligned: a vector spilled across two cache lines costs a quarter of the speed
        f"define internal void @piece{number}({arguments}) noinline alignstack(64) {{",
        *f.lines,
        "ret void",
        "}",
    ]


def _step(
    f: _Function,
    step: Step,
    operand: object,
    trigonometry: dict[Reference, tuple[str, str]],
) -> str:
    assert callable(operand)
    if step.operation in (SIN, COS):
        (x,) = step.operands
        if x not in trigonometry:
            trigonometry[x] = f.sincos(operand(x))
        return trigonometry[x][step.operation is COS]
    names = [operand(x) for x in step.operands]
    simple = {ADD: "fadd", SUB: "fsub", MUL: "fmul", DIV: "fdiv"}
    if step.operation in simple:
        return f.two(simple[step.operation], *names)
    if step.operation is NEG:
        return f.minus(*names)
    if step.operation is SQRT:
        return f.value(f"call {f.vector} @llvm.sqrt.v{f.width}f64({f.vector} {names[0]})")
    a, b, c = names
    if step.operation is FMA:
        return f.fma(a, b, c)
    if step.operation is FMS:
        return f.fma(a, b, f.minus(c))
    assert step.operation is FNMA
    return f.fma(f.minus(a), b, c)


# ---- rows and tiles ------------------------------------------------------------------------------


def _rows(width: int, count: int, *, pack: bool) -> list[str]:
    """A function between ``width`` row pointers and a tile of ``count`` vectors."""
    f = _Function(width)
    pointers = []
    for r in range(width):
        at = f.value(f"getelementptr ptr, ptr %rows, i64 {r}")
        pointers.append(f.value(f"load ptr, ptr {at}"))
    whole = list(range(0, count - width + 1, width))
    if count >= width and count % width:
        whole.append(count - width)  # the last block overlaps the one before
    for first in whole:
        places = [
            f.value(f"getelementptr double, ptr {pointer}, i64 {first}") for pointer in pointers
        ]
        if pack:
            rows = [f.value(f"load {f.vector}, ptr {place}, align 8") for place in places]
            for i, column in enumerate(f.transpose(rows)):
                f.store(column, "%tile", first + i)
        else:
            columns = [f.load("%tile", first + i) for i in range(width)]
            for row, place in zip(f.transpose(columns), places, strict=True):
                f.lines.append(f"store {f.vector} {row}, ptr {place}, align 8")
    for i in range(0 if whole else count):
        column = "poison" if pack else f.load("%tile", i)
        for r, pointer in enumerate(pointers):
            place = f.value(f"getelementptr double, ptr {pointer}, i64 {i}")
            if pack:
                x = f.value(f"load double, ptr {place}, align 8")
                column = f.value(f"insertelement {f.vector} {column}, double {x}, i64 {r}")
            else:
                x = f.value(f"extractelement {f.vector} {column}, i64 {r}")
                f.lines.append(f"store double {x}, ptr {place}, align 8")
        if pack:
            f.store(column, "%tile", i)
    kind = "pack" if pack else "unpack"
    return [
        f"define internal void @{kind}{count}(ptr %rows, ptr noalias %tile) noinline {{",
        *f.lines,
        "ret void",
        "}",
    ]


COPY = """
define internal void @copy(ptr %to, i64 %to_stride, ptr %from, i64 %from_stride, i64 %n) noinline {
entry:
br label %loop
loop:
%i = phi i64 [0, %entry], [%j, %loop]
%a = mul i64 %i, %to_stride
%b = mul i64 %i, %from_stride
%p = getelementptr i8, ptr %to, i64 %a
%q = getelementptr i8, ptr %from, i64 %b
%x = load double, ptr %q, align 8
store double %x, ptr %p, align 8
%j = add i64 %i, 1
%more = icmp slt i64 %j, %n
br i1 %more, label %loop, label %exit
exit:
ret void
}
"""
"""Numbers with one stride to another: for arrays whose last axis is not contiguous."""


def emit(program: Program, sizes: Sequence[int], width: int) -> str:
    """IR of ``loop(char **args, npy_intp *dims, npy_intp *steps, void *data)``.

    A generalized ufunc's inner loop: ``sizes`` are the lengths of the arguments' last axes, the
    output's last. Any strides, any number of states.
    """
    pieces = _pieces(program)
    slots, work = _slots(program, pieces)
    vector = f"<{width} x double>"
    text = [
        f"declare {vector} @llvm.fma.v{width}f64({vector}, {vector}, {vector})",
        f"declare {vector} @llvm.sqrt.v{width}f64({vector})",
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare ptr @aligned_alloc(i64, i64)",
        "declare void @free(ptr)",
        COPY,
    ]
    for n, piece in enumerate(pieces):
        text += _piece(program, piece, slots, width, n)
    for count in sorted(set(sizes[:-1])):
        text += _rows(width, count, pack=True)
    text += _rows(width, sizes[-1], pack=False)
    text += _loop(sizes, width, len(pieces), work)
    return "\n".join(text) + "\n"


def _loop(sizes: Sequence[int], width: int, pieces: int, work: int) -> list[str]:
    """The loop over tiles. One allocation holds the tiles, the workspace and rows to be copied."""
    bytes_ = 8 * width
    starts, total = [], 0
    for size in (*sizes, work):
        starts.append(total)
        total += size * bytes_
    scratch = total
    total += max(sizes) * bytes_
    lines = [
        "define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data) {",
        "entry:",
        "%n = load i64, ptr %dims",
        "%last = sub i64 %n, 1",
        f"%rows = alloca [{width} x ptr]",
    ]
    for k in range(len(sizes)):
        lines += [
            f"%arg.at{k} = getelementptr ptr, ptr %args, i64 {k}",
            f"%arg{k} = load ptr, ptr %arg.at{k}",
            f"%step.at{k} = getelementptr i64, ptr %steps, i64 {k}",
            f"%step{k} = load i64, ptr %step.at{k}",
            f"%inner.at{k} = getelementptr i64, ptr %steps, i64 {len(sizes) + k}",
            f"%inner{k} = load i64, ptr %inner.at{k}",
            f"%plain{k} = icmp eq i64 %inner{k}, 8",
        ]
    lines += [
        "%any = icmp sgt i64 %n, 0",
        "br i1 %any, label %start, label %exit",
        "start:",
        f"%memory = call ptr @aligned_alloc(i64 {bytes_}, i64 {total})",
        "%none = icmp eq ptr %memory, null",
        "br i1 %none, label %exit, label %begin",
        "begin:",
        *(
            f"%place{k} = getelementptr i8, ptr %memory, i64 {start}"
            for k, start in enumerate([*starts, scratch])
        ),
        "br label %tile",
        "tile:",
        "%i = phi i64 [0, %begin], [%next, %done]",
    ]
    result = len(sizes) - 1
    for k, size in enumerate(sizes):
        if k == result:
            tiles = f"ptr %place0, ptr %place{result}, ptr %place{len(sizes)}"
            lines += [f"call void @piece{n}({tiles})" for n in range(pieces)]
        for r in range(width):
            lines += [
                f"%row{k}.{r} = add i64 %i, {r}",
                f"%kept{k}.{r} = call i64 @llvm.smin.i64(i64 %row{k}.{r}, i64 %last)",
                f"%far{k}.{r} = mul i64 %kept{k}.{r}, %step{k}",
                f"%from{k}.{r} = getelementptr i8, ptr %arg{k}, i64 %far{k}.{r}",
                f"%copy{k}.{r} = getelementptr double, ptr %place{len(sizes) + 1}, i64 {r * size}",
                f"%to{k}.{r} = select i1 %plain{k}, ptr %from{k}.{r}, ptr %copy{k}.{r}",
                f"%slot{k}.{r} = getelementptr ptr, ptr %rows, i64 {r}",
                f"store ptr %to{k}.{r}, ptr %slot{k}.{r}",
            ]
        copies = []
        for r in range(width):
            row, outside = f"ptr %copy{k}.{r}, i64 8", f"ptr %from{k}.{r}, i64 %inner{k}"
            ends = f"{outside}, {row}" if k == result else f"{row}, {outside}"
            copies.append(f"call void @copy({ends}, i64 {size})")
        move = "pack" if k != result else "unpack"
        lines += [f"call void @unpack{size}(ptr %rows, ptr %place{k})"] if k == result else []
        lines += [
            f"br i1 %plain{k}, label %moved{k}, label %strided{k}",
            f"strided{k}:",
            *copies,
            f"br label %moved{k}",
            f"moved{k}:",
        ]
        lines += [f"call void @{move}{size}(ptr %rows, ptr %place{k})"] if k != result else []
    lines += [
        "br label %done",
        "done:",
        f"%next = add i64 %i, {width}",
        "%more = icmp slt i64 %next, %n",
        "br i1 %more, label %tile, label %free",
        "free:",
        "call void @free(ptr %memory)",
        "br label %exit",
        "exit:",
        "ret void",
        "}",
    ]
    return lines
