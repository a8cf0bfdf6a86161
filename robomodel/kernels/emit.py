"""A program as LLVM IR: a NumPy inner loop with SIMD lanes across the batch.

The loop takes ``width`` states at a time. Their rows are transposed in registers into a tile (one
vector a number), the straight-line program runs on vectors, and the result is transposed back. Long
programs are cut into functions of a few hundred steps, so that compile time grows linearly; what
crosses a cut goes through a workspace whose slots are used again. Rows that do not fill a
tile are copied to a place of their own first, the last one in place of those that are missing.
A program may also be iterated over time, on inputs of each instant, before the tile is left.
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
    SELECT,
    SIN,
    SQRT,
    SUB,
    Program,
    Reference,
    Step,
)

CHUNK = 6000  # steps in one function, if there is but one
PIECE = 400  # steps in a function, where there are several
STACK = 1 << 16  # bytes of a kernel's own memory on the stack, which some threads have little of

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
FAR = 1e9  # radians: far beyond, the number of quarter turns has no room in the low bits


@dataclass(frozen=True, slots=True)
class Iteration:
    """A program run over and over: its first outputs take the place of argument 0.

    ``timed`` are the arguments that have one row for each instant, before the axis of their
    numbers, as the result then has. An instant may have several stages: the program's last inputs
    are then a row of ``table``, one for each stage, and before them stand ``carried`` numbers that
    its last outputs give to the next stage or instant (zero at the start). Only what the last stage
    of an instant gives is kept.
    """

    timed: tuple[int, ...]
    table: tuple[tuple[float, ...], ...] = ()
    carried: int = 0

    @property
    def columns(self) -> int:
        """Constants of a stage."""
        return len(self.table[0]) if self.table else 0


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

    def guarded_sincos(self, x: str) -> tuple[str, str]:
        """Sine and cosine; where any lane's angle is huge, all are the C library's."""
        v, n = self.vector, len(self.lines)
        far_from = f"br i1 {self.any_far([x])}, label %far{n}, label %near{n}"
        self.lines += [far_from, f"near{n}:"]
        near = self.sincos(x)
        self.lines += [f"br label %joined{n}", f"far{n}:"]
        both = self.value(f"call {{{v}, {v}}} @far({v} {x})")
        far = [self.value(f"extractvalue {{{v}, {v}}} {both}, {i}") for i in (0, 1)]
        self.lines += [f"br label %joined{n}", f"joined{n}:"]
        sine, cosine = (
            self.value(f"phi {v} [{a}, %near{n}], [{b}, %far{n}]")
            for a, b in zip(near, far, strict=True)
        )
        return sine, cosine

    def any_far(self, angles: Sequence[str]) -> str:
        """Whether any lane of any of these is beyond FAR."""
        lanes, found = f"<{self.width} x i1>", "zeroinitializer"
        for x in angles:
            size = self.value(f"call {self.vector} @llvm.fabs.v{self.width}f64({self.vector} {x})")
            huge = self.value(f"fcmp ogt {self.vector} {size}, {self.constant(FAR)}")
            found = self.value(f"or {lanes} {found}, {huge}")
        return self.value(f"call i1 @llvm.vector.reduce.or.v{self.width}i1({lanes} {found})")

    def sincos(self, x: str) -> tuple[str, str]:
        """Reduce to [-π/4, π/4], two polynomials, swap and sign by quadrant; up to FAR radians."""
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
    program: Program,
    steps: range,
    slots: dict[int, int],
    tamed: frozenset[Reference],
    width: int,
    number: int,
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
        known[x] = _step(f, step, operand, trigonometry, tamed)
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
    tamed: frozenset[Reference],
) -> str:
    assert callable(operand)
    if step.operation in (SIN, COS):
        (x,) = step.operands
        if x not in trigonometry:
            angle = operand(x)
            trigonometry[x] = f.sincos(angle) if x in tamed else f.guarded_sincos(angle)
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
    if step.operation is SELECT:
        negative = f.value(f"fcmp olt {f.vector} {a}, {f.constant(0.0)}")
        return f.value(f"select <{f.width} x i1> {negative}, {f.vector} {b}, {f.vector} {c}")
    if step.operation is FMA:
        return f.fma(a, b, c)
    if step.operation is FMS:
        return f.fma(a, b, f.minus(c))
    assert step.operation is FNMA
    return f.fma(f.minus(a), b, c)


def _angles(program: Program) -> frozenset[Reference]:
    """The inputs that are used as angles only."""
    angles: set[Reference] = set()
    others: set[Reference] = set(program.outputs)
    for step in program.steps:
        kind = angles if step.operation in (SIN, COS) else others
        kind.update(x for x in step.operands if type(x) is int)
    return frozenset(x for x in angles - others if x < program.inputs)


def _tame(angles: Sequence[int], width: int) -> list[str]:
    """Two functions for huge angles, which are left to the C library.

    Nobody asks for 1e20 radians; but if they come, their sine shall be what NumPy says. Angles that
    are inputs are tested all at once, and brought to the first turn in the tile; others in place.
    """
    f = _Function(width)
    some = f.any_far([f.load("%in", i) for i in angles])
    f.lines += [f"br i1 {some}, label %far, label %near", "near:", "ret void", "far:"]
    for i in angles:
        for r in range(width):
            place = f.value(f"getelementptr double, ptr %in, i64 {i * width + r}")
            x = f.value(f"load double, ptr {place}")
            s, c = (f.value(f"call double @{name}(double {x})") for name in ("sin", "cos"))
            turned = f.value(f"call double @atan2(double {s}, double {c})")
            f.lines.append(f"store double {turned}, ptr {place}")
    g = _Function(width)
    pair, result = f"{{{g.vector}, {g.vector}}}", "poison"
    for at, name in enumerate(("sin", "cos")):
        column = "poison"
        for r in range(width):
            x = g.value(f"extractelement {g.vector} %x, i64 {r}")
            y = g.value(f"call double @{name}(double {x})")
            column = g.value(f"insertelement {g.vector} {column}, double {y}, i64 {r}")
        result = g.value(f"insertvalue {pair} {result}, {g.vector} {column}, {at}")
    return [
        "define internal void @tame(ptr %in) noinline {",
        *f.lines,
        "ret void",
        "}",
        f"define internal {pair} @far({g.vector} %x) noinline cold {{",
        *g.lines,
        f"ret {pair} {result}",
        "}",
    ]


# ---- rows and tiles ------------------------------------------------------------------------------


def _blocks(width: int, count: int) -> list[int]:
    """Where the blocks of ``width`` numbers begin that cover a row; the last two may overlap."""
    first = list(range(0, count - width + 1, width))
    return [*first, count - width] if count >= width and count % width else first


def _prefetch(f: _Function, width: int, count: int, *, write: bool) -> None:
    """Fetch the rows of the tile after the next: arrays may be larger than caches.

    Measured on Zen 4: two tiles ahead, into the second-level cache, where one tile ahead or the
    first level gained less.
    """
    step = f.value(f"mul i64 %stride, {2 * width}")
    following = f.value(f"getelementptr i8, ptr %rows, i64 {step}")
    for line in range(0, 8 * width * count, 64):  # exact where rows follow without a gap
        place = f.value(f"getelementptr i8, ptr {following}, i64 {line}")
        f.lines.append(f"call void @llvm.prefetch.p0(ptr {place}, i32 {int(write)}, i32 2, i32 1)")


def _concatenated(f: _Function, columns: Sequence[str]) -> str:
    """Vectors one after the other in a wide one."""
    size = f.width * len(columns)
    wide, result = f"<{size} x double>", "poison"
    for n, column in enumerate(columns):
        lanes = [i - n * f.width for i in range(size)]
        mask = ", ".join(f"i32 {i}" if 0 <= i < f.width else "i32 poison" for i in lanes)
        spread = f.value(
            f"shufflevector {f.vector} {column}, {f.vector} poison, <{size} x i32> <{mask}>"
        )
        mask = ", ".join(f"i32 {size + i if 0 <= j < f.width else i}" for i, j in enumerate(lanes))
        result = f.value(f"shufflevector {wide} {result}, {wide} {spread}, <{size} x i32> <{mask}>")
    return result


def _dense(f: _Function, count: int, *, pack: bool) -> None:
    """Short rows without gaps are whole vectors, dealt out to columns by shuffles."""
    size = f.width * count
    wide = f"<{size} x double>"
    if pack:
        numbers = f.value(f"load {wide}, ptr %rows, align 8")
        for i in range(count):
            mask = ", ".join(f"i32 {i + r * count}" for r in range(f.width))
            column = f"shufflevector {wide} {numbers}, {wide} poison, <{f.width} x i32> <{mask}>"
            f.store(f.value(column), "%tile", i)
    else:
        columns = _concatenated(f, [f.load("%tile", i) for i in range(count)])
        mask = ", ".join(f"i32 {i % count * f.width + i // count}" for i in range(size))
        rows = f.value(f"shufflevector {wide} {columns}, {wide} poison, <{size} x i32> <{mask}>")
        f.lines.append(f"store {wide} {rows}, ptr %rows, align 8")


def _by_rows(f: _Function, count: int, *, pack: bool) -> None:
    """Rows anywhere, in blocks that are transposed in registers; short ones masked, or singly."""
    width, pointers = f.width, ["%rows"]
    for _ in range(width - 1):
        pointers.append(f.value(f"getelementptr i8, ptr {pointers[-1]}, i64 %stride"))
    masked = width // 2 < count < width
    mask = ", ".join(f"i1 {int(i < count)}" for i in range(width))
    mask = f"<{width} x i1> <{mask}>"
    for first in [0] if masked else _blocks(width, count):
        places = [f.value(f"getelementptr double, ptr {p}, i64 {first}") for p in pointers]
        used = range(min(count, width))
        if pack:
            name = f"@llvm.masked.load.v{width}f64.p0"
            rows = [
                f.value(
                    f"call {f.vector} {name}(ptr {place}, i32 8, {mask}, {f.vector} poison)"
                    if masked
                    else f"load {f.vector}, ptr {place}, align 8"
                )
                for place in places
            ]
            columns = f.transpose(rows)
            for i in used:
                f.store(columns[i], "%tile", first + i)
        else:
            columns = [f.load("%tile", first + i) if i in used else "poison" for i in range(width)]
            name = f"@llvm.masked.store.v{width}f64.p0"
            for row, place in zip(f.transpose(columns), places, strict=True):
                f.lines.append(
                    f"call void {name}({f.vector} {row}, ptr {place}, i32 8, {mask})"
                    if masked
                    else f"store {f.vector} {row}, ptr {place}, align 8"
                )
    for i in range(0 if masked or count >= width else count):
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


def _rows(width: int, count: int, *, pack: bool, fetch: bool) -> list[str]:
    """A function between ``width`` rows, ``stride`` bytes apart, and ``count`` vectors."""
    f = _Function(width)
    if fetch:
        _prefetch(f, width, count, write=not pack)
    if count <= width // 2:
        dense = f.value(f"icmp eq i64 %stride, {8 * count}")
        f.lines += [f"br i1 {dense}, label %dense, label %apart", "dense:"]
        _dense(f, count, pack=pack)
        f.lines += ["ret void", "apart:"]
    _by_rows(f, count, pack=pack)
    kind = "pack" if pack else "unpack"
    return [
        f"define internal void @{kind}{count}(ptr %rows, i64 %stride, ptr noalias %tile) "
        "noinline {",
        *f.lines,
        "ret void",
        "}",
    ]


def _stage(width: int) -> str:
    """Functions that copy a tile's rows, however they lie, to a dense place of their own, and back.

    Where there are fewer than ``width`` rows the last one stands for those that are missing.
    """
    text = ""
    for name, rows, ends in (
        ("gather", str(width), ("%near", "%far")),
        ("scatter", "%count", ("%far", "%near")),
    ):
        text += f"""
define internal void @{name}(ptr %outside, i64 %stride, i64 %step, i64 %size, i64 %count,
                             ptr %dense) noinline {{
entry:
%last = sub i64 %count, 1
br label %row
row:
%r = phi i64 [0, %entry], [%r.next, %row.done]
%kept = call i64 @llvm.smin.i64(i64 %r, i64 %last)
%offset = mul i64 %kept, %stride
%start = getelementptr i8, ptr %outside, i64 %offset
%position = mul i64 %r, %size
%place = getelementptr double, ptr %dense, i64 %position
br label %number
number:
%i = phi i64 [0, %row], [%i.next, %number]
%along = mul i64 %i, %step
%far = getelementptr i8, ptr %start, i64 %along
%near = getelementptr double, ptr %place, i64 %i
%x = load double, ptr {ends[1]}, align 8
store double %x, ptr {ends[0]}, align 8
%i.next = add i64 %i, 1
%i.more = icmp slt i64 %i.next, %size
br i1 %i.more, label %number, label %row.done
row.done:
%r.next = add i64 %r, 1
%r.more = icmp slt i64 %r.next, {rows}
br i1 %r.more, label %row, label %exit
exit:
ret void
}}
"""
    return text


def emit(
    program: Program, sizes: Sequence[int], width: int, iteration: Iteration | None = None
) -> str:
    """IR of ``loop(char **args, npy_intp *dims, npy_intp *steps, void *data)``.

    A generalized ufunc's inner loop: ``sizes`` are the lengths of the arguments' last axes, the
    output's last. Any strides, any number of states.
    """
    pieces = _pieces(program)
    slots, work = _slots(program, pieces)
    tamed = _angles(program)
    vector = f"<{width} x double>"
    mask = f"<{width} x i1>"
    text = [
        f"declare {vector} @llvm.fma.v{width}f64({vector}, {vector}, {vector})",
        f"declare {vector} @llvm.sqrt.v{width}f64({vector})",
        f"declare {vector} @llvm.fabs.v{width}f64({vector})",
        f"declare i1 @llvm.vector.reduce.or.v{width}i1({mask})",
        "declare double @sin(double)",
        "declare double @cos(double)",
        "declare double @atan2(double, double)",
        f"declare {vector} @llvm.masked.load.v{width}f64.p0(ptr, i32 immarg, {mask}, {vector})",
        f"declare void @llvm.masked.store.v{width}f64.p0({vector}, ptr, i32 immarg, {mask})",
        "declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)",
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)",
        "declare ptr @malloc(i64)",
        "declare void @free(ptr)",
        "declare void @abort() noreturn",
        "declare ptr @llvm.ptrmask.p0.i64(ptr, i64)",
        _stage(width),
        *_tame(sorted(int(x) for x in tamed), width),
    ]
    for n, piece in enumerate(pieces):
        text += _piece(program, piece, slots, tamed, width, n)
    for count in sorted(set(sizes[:-1])):
        text += _rows(width, count, pack=True, fetch=iteration is None)
    text += _rows(width, sizes[-1], pack=False, fetch=iteration is None)
    if iteration is not None and iteration.table:
        text += _stage_constants(iteration, width)
    text += _loop(sizes, width, len(pieces), work, iteration)
    return "\n".join(text) + "\n"


def _stage_constants(iteration: Iteration, width: int) -> list[str]:
    """A function that puts the constants of a stage into their places in the tile."""
    f = _Function(width)
    numbers = [x for row in iteration.table for x in row]
    bits = (struct.unpack("<Q", struct.pack("<d", x))[0] for x in numbers)
    entries = ", ".join(f"double 0x{x:016X}" for x in bits)
    first = f.value(f"mul i64 %stage, {iteration.columns}")
    for c in range(iteration.columns):
        at = f.value(f"add i64 {first}, {c}")
        place = f.value(f"getelementptr double, ptr @table, i64 {at}")
        x = f.value(f"load double, ptr {place}")
        one = f.value(f"insertelement {f.vector} poison, double {x}, i64 0")
        everywhere = f"shufflevector {f.vector} {one}, {f.vector} poison"
        f.store(f.value(f"{everywhere}, <{width} x i32> zeroinitializer"), "%tile", c)
    return [
        f"@table = internal constant [{len(numbers)} x double] [{entries}]",
        "define internal void @constants(i64 %stage, ptr %tile) noinline {",
        *f.lines,
        "ret void",
        "}",
    ]


def _memory(size: int, alignment: int) -> tuple[list[str], list[str]]:
    """Lines that take memory by what every C library has, and that give it back."""
    if size <= STACK:
        return [f"%memory = alloca [{size} x i8], align {alignment}", "br label %begin"], []
    return [
        f"%taken = call ptr @malloc(i64 {size + alignment - 1})",
        "%none = icmp eq ptr %taken, null",
        "br i1 %none, label %nowhere, label %somewhere",
        "nowhere:",  # a loop cannot raise, and silence would pass for a result
        "call void @abort()",
        "unreachable",
        "somewhere:",
        f"%beyond = getelementptr i8, ptr %taken, i64 {alignment - 1}",
        f"%memory = call ptr @llvm.ptrmask.p0.i64(ptr %beyond, i64 {-alignment})",
        "br label %begin",
    ], ["call void @free(ptr %taken)"]


def _loop(
    sizes: Sequence[int], width: int, pieces: int, work: int, iteration: Iteration | None
) -> list[str]:
    """The loop over tiles. One place holds the tiles, the workspace and staged rows.

    A single state stands in all lanes, by rows no bytes apart; fewer states than lanes, and numbers
    that are not contiguous, are staged. A tile is read before it is written, so that the result may
    take the place of an argument. Over time, each tile has all its instants before the next one.
    """
    bytes_ = 8 * width
    result = len(sizes) - 1
    timed = frozenset((*iteration.timed, result)) if iteration else frozenset[int]()
    carried, columns = (iteration.carried, iteration.columns) if iteration else (0, 0)
    starts, total = {}, 0
    for name, size in (
        *((str(k), size) for k, size in enumerate(sizes[:-1])),
        (".carried", carried),
        (".constants", columns),
        (str(result), sizes[-1]),
        (".given", carried),
        (".work", work),
        (".stage", max(sizes)),
    ):
        starts[name] = total
        total += size * bytes_
    stage = "ptr %place.stage"
    taken, given_back = _memory(total, bytes_)
    lines = [
        "define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data) {",
        "entry:",
        "%n = load i64, ptr %dims",
        # the axis of time is the second name in the signature: argument 0 has none
        "%dim.time = getelementptr i64, ptr %dims, i64 2",
        "%instants = load i64, ptr %dim.time" if timed else "%instants = add i64 1, 0",
    ]
    inner = len(sizes)
    for k in range(len(sizes)):
        lines += [
            f"%arg.at{k} = getelementptr ptr, ptr %args, i64 {k}",
            f"%arg{k} = load ptr, ptr %arg.at{k}",
            f"%step.at{k} = getelementptr i64, ptr %steps, i64 {k}",
            f"%step{k} = load i64, ptr %step.at{k}",
        ]
        if k in timed:
            lines += [
                f"%later.at{k} = getelementptr i64, ptr %steps, i64 {inner}",
                f"%later{k} = load i64, ptr %later.at{k}",
            ]
            inner += 1
        lines += [
            f"%inner.at{k} = getelementptr i64, ptr %steps, i64 {inner}",
            f"%inner{k} = load i64, ptr %inner.at{k}",
            f"%gaps{k} = icmp ne i64 %inner{k}, 8",
        ]
        inner += 1
    lines += [
        "%states = icmp sgt i64 %n, 0",
        "%times = icmp sgt i64 %instants, 0",
        "%any = and i1 %states, %times",
        "br i1 %any, label %start, label %exit",
        "start:",
        *taken,
        "begin:",
        *(
            f"%place{name} = getelementptr i8, ptr %memory, i64 {start}"
            for name, start in starts.items()
        ),
        "br label %tile",
        "tile:",
        "%i = phi i64 [0, %begin], [%next, %done]",
        "%left = sub i64 %n, %i",
        f"%count = call i64 @llvm.smin.i64(i64 %left, i64 {width})",
        "%single = icmp eq i64 %count, 1",
        f"%few = icmp slt i64 %count, {width}",
        "%some = xor i1 %single, true",
        "%short = and i1 %few, %some",
        *(
            line
            for k, size in enumerate(sizes)
            for line in (
                f"%staged{k} = or i1 %gaps{k}, %short",
                f"%apart{k} = select i1 %single, i64 0, i64 %step{k}",
                f"%stride{k} = select i1 %staged{k}, i64 {8 * size}, i64 %apart{k}",
                f"%offset{k} = mul i64 %i, %step{k}",
                f"%first{k} = getelementptr i8, ptr %arg{k}, i64 %offset{k}",
            )
        ),
    ]
    moves = {k: _move(k, size, stage, result, timed) for k, size in enumerate(sizes)}
    for k in range(result):
        lines += moves[k] if k not in timed else []
    tiles = f"ptr %place0, ptr %place{result}, ptr %place.work"
    run = ["call void @tame(ptr %place0)"]
    run += [f"call void @piece{n}({tiles})" for n in range(pieces)]
    if iteration is None:
        lines += [*run, *moves[result], "br label %done"]
    else:
        copy = "call void @llvm.memcpy.p0.p0.i64"
        lines += [
            f"call void @llvm.memset.p0.i64(ptr %place.carried, i8 0, i64 {carried * bytes_}, "
            "i1 false)",
            "br label %instant.before",
            "instant.before:",
            "br label %instant",
            "instant:",
            "%t = phi i64 [0, %instant.before], [%t.next, %instant.done]",
        ]
        for k in iteration.timed:
            lines += moves[k]
        lines += [
            "br label %stage.before",
            "stage.before:",
            "br label %stage",
            "stage:",
            "%s = phi i64 [0, %stage.before], [%s.next, %stage]",
            *(["call void @constants(i64 %s, ptr %place.constants)"] if columns else []),
            *run,
            f"{copy}(ptr %place0, ptr %place{result}, i64 {sizes[0] * bytes_}, i1 false)",
            f"{copy}(ptr %place.carried, ptr %place.given, i64 {carried * bytes_}, i1 false)",
            "%s.next = add i64 %s, 1",
            f"%s.more = icmp slt i64 %s.next, {max(1, len(iteration.table))}",
            "br i1 %s.more, label %stage, label %staged",
            "staged:",
            *moves[result],
            "%t.next = add i64 %t, 1",
            "%t.more = icmp slt i64 %t.next, %instants",
            "br label %instant.done",
            "instant.done:",
            "br i1 %t.more, label %instant, label %done",
        ]
    lines += [
        "done:",
        f"%next = add i64 %i, {width}",
        "%more = icmp slt i64 %next, %n",
        "br i1 %more, label %tile, label %free",
        "free:",
        *given_back,
        "br label %exit",
        "exit:",
        "ret void",
        "}",
    ]
    return lines


def _move(k: int, size: int, stage: str, result: int, timed: frozenset[int]) -> list[str]:
    """An argument's rows into its tile, or the result's tile into its rows."""
    lines = [f"%from{k} = getelementptr i8, ptr %first{k}, i64 0"]
    if k in timed:
        lines = [
            f"%elapsed{k} = mul i64 %t, %later{k}",
            f"%from{k} = getelementptr i8, ptr %first{k}, i64 %elapsed{k}",
        ]
    lines.append(f"%rows{k} = select i1 %staged{k}, {stage}, ptr %from{k}")
    outside = f"ptr %from{k}, i64 %step{k}, i64 %inner{k}, i64 {size}, i64 %count, {stage}"
    rows = f"ptr %rows{k}, i64 %stride{k}, ptr %place{k}"
    staging = [
        f"br i1 %staged{k}, label %stage{k}, label %moved{k}",
        f"stage{k}:",
        f"call void @{'scatter' if k == result else 'gather'}({outside})",
        f"br label %moved{k}",
        f"moved{k}:",
    ]
    if k == result:
        return [*lines, f"call void @unpack{size}({rows})", *staging]
    return [*lines, *staging, f"call void @pack{size}({rows})"]
