"""LLVM IR: a writer of one function, on vectors with a state in each lane."""

from __future__ import annotations

import ctypes
import platform
import struct
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from robomodel.kernels.plan import Target
from robomodel.kernels.program import (
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
    Operation,
    Precision,
    Reference,
)


@dataclass(frozen=True, slots=True)
class LaneVectors:
    """Vectors of ``lanes`` numbers, and their names in LLVM."""

    precision: Precision
    lanes: int

    @property
    def scalar(self) -> str:
        """The type of a number."""
        return "double" if self.precision.bits == 64 else "float"

    @property
    def type(self) -> str:
        """The type of a vector."""
        return f"<{self.lanes} x {self.scalar}>"

    @property
    def integers(self) -> str:
        """The type of vectors of integers of the numbers' size."""
        return f"<{self.lanes} x i{self.precision.bits}>"

    @property
    def truths(self) -> str:
        """The type of vectors of truth values."""
        return f"<{self.lanes} x i1>"

    @property
    def suffix(self) -> str:
        """The suffix of intrinsics' names."""
        return f"v{self.lanes}f{self.precision.bits}"

    @property
    def bytes(self) -> int:
        """The size of a vector in bytes."""
        return self.lanes * self.precision.bytes

    @property
    def turnable(self) -> bool:
        """True if lanes of two vectors can be picked at run time: AVX-512's full vectors."""
        return self.bytes == 64

    @property
    def halves(self) -> LaneVectors:
        """Vectors of half as many lanes."""
        return LaneVectors(self.precision, self.lanes // 2)

    def literal(self, x: float) -> str:
        """A number as LLVM reads it, rounded to the precision: by the bits of a double."""
        x = ctypes.c_float(x).value if self.precision.bits == 32 else x
        return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"

    def constant(self, x: float) -> str:
        """The same number in every lane."""
        return "<" + ", ".join([f"{self.scalar} {self.literal(x)}"] * self.lanes) + ">"

    def integer(self, x: int) -> str:
        """The same integer in every lane."""
        return "<" + ", ".join([f"i{self.precision.bits} {x}"] * self.lanes) + ">"

    def mask(self, set_: Sequence[bool]) -> str:
        """A mask with these lanes set."""
        return "<" + ", ".join(f"i1 {int(x)}" for x in set_) + ">"

    def declarations(self) -> list[str]:
        """Declarations of the intrinsics and C functions that the module calls."""
        v, name, m = self.type, self.suffix, self.truths
        lines = [
            f"declare {v} @llvm.fma.{name}({v}, {v}, {v})",
            f"declare {v} @llvm.sqrt.{name}({v})",
            f"declare {v} @llvm.fabs.{name}({v})",
            f"declare i1 @llvm.vector.reduce.or.v{self.lanes}i1({m})",
            f"declare {v} @llvm.masked.load.{name}.p0(ptr, i32 immarg, {m}, {v})",
            f"declare void @llvm.masked.store.{name}.p0({v}, ptr, i32 immarg, {m})",
            "declare double @sin(double)",
            "declare double @cos(double)",
            "declare double @atan2(double, double)",
            "declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)",
            "declare i64 @llvm.smin.i64(i64, i64)",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)",
            "declare ptr @malloc(i64)",
            "declare void @free(ptr)",
            "declare void @abort() noreturn",
            "declare ptr @llvm.ptrmask.p0.i64(ptr, i64)",
        ]
        if X86:
            lines += [f"declare void @llvm.x86.sse.{x}mxcsr(ptr)" for x in ("ld", "st")]
        if self.turnable:
            lines += [
                f"declare {v} {self.picking}({v}, {self.integers}, {v})",
                "declare void @llvm.x86.sse.sfence()",
                "!0 = !{i32 1}",  # what !nontemporal refers to
            ]
        return lines

    @property
    def picking(self) -> str:
        """The intrinsic that picks lanes of two vectors."""
        kind = "pd" if self.precision.bits == 64 else "ps"
        return f"@llvm.x86.avx512.vpermi2var.{kind}.512"


X86 = platform.machine() in ("x86_64", "AMD64")
FLUSH = 0x8040  # bits of the control word that flush subnormal numbers to zero, in and out


def flushing(vectors: LaneVectors) -> list[str]:
    """Functions that make x86 take subnormal numbers for zero, and that end it.

    In single precision an entry of a rotation that is zero but for rounding (6e-17) is subnormal
    when squared, and each such number costs x86 a hundred cycles. Other processors are not slowed
    down. The first function returns the caller's setting, which the second restores.
    """
    first, last, before = Function(vectors), Function(vectors), "0"
    if X86:
        for f in (first, last):
            place = f.value("alloca i32")
            f.lines.append(f"call void @llvm.x86.sse.stmxcsr(ptr {place})")
            word = f.value(f"load i32, ptr {place}")
            if f is first:
                before = f.value(f"and i32 {word}, {FLUSH}")
                word = f.value(f"or i32 {word}, {FLUSH}")
            else:
                word = f.value(f"or i32 {f.value(f'and i32 {word}, {~FLUSH}')}, %before")
            f.lines.append(f"store i32 {word}, ptr {place}")
            f.lines.append(f"call void @llvm.x86.sse.ldmxcsr(ptr {place})")
    return [
        *first.text("i32 @flush() noinline", f"ret i32 {before}"),
        *last.text("void @keep(i32 %before) noinline"),
    ]


@dataclass
class Function:
    """The lines of one function while it is written; values get fresh names."""

    vectors: LaneVectors
    lines: list[str] = field(default_factory=list)

    @property
    def type(self) -> str:
        """The type of a vector."""
        return self.vectors.type

    def value(self, text: str) -> str:
        """Write a line that computes a value; returns its name."""
        name = f"%t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def label(self, name: str) -> None:
        """End the block, if it has not ended, and begin this one."""
        if self.lines and not self.lines[-1].startswith("br "):
            self.lines.append(f"br label %{name}")
        self.lines.append(f"{name}:")

    def text(self, head: str, tail: str = "ret void") -> list[str]:
        """The whole function."""
        return [f"define internal {head} {{", *self.lines, tail, "}"]

    # ---- memory

    def bytes_on(self, base: str, offset: int | str) -> str:
        """The address at this offset in bytes."""
        return self.value(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, base: str, slot: int) -> str:
        """Load a vector from a tile."""
        size = self.vectors.bytes
        at = self.value(f"getelementptr inbounds i8, ptr {base}, i64 {slot * size}")
        return self.value(f"load {self.type}, ptr {at}, align {size}")

    def store(self, x: str, base: str, slot: int) -> None:
        """Store a vector into a tile."""
        size = self.vectors.bytes
        at = self.value(f"getelementptr inbounds i8, ptr {base}, i64 {slot * size}")
        self.lines.append(f"store {self.type} {x}, ptr {at}, align {size}")

    # ---- arithmetic

    def constant(self, x: float) -> str:
        """The same number in every lane."""
        return self.vectors.constant(x)

    def two(self, operation: str, a: str, b: str) -> str:
        """An operation on two vectors."""
        return self.value(f"{operation} {self.type} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        """a b + c, rounded once."""
        v = self.type
        return self.value(f"call {v} @llvm.fma.{self.vectors.suffix}({v} {a}, {v} {b}, {v} {c})")

    def minus(self, a: str) -> str:
        """-a."""
        return self.value(f"fneg {self.type} {a}")

    def root(self, a: str) -> str:
        """The square root."""
        return self.value(f"call {self.type} @llvm.sqrt.{self.vectors.suffix}({self.type} {a})")

    def select(self, truth: str, a: str, b: str) -> str:
        """Lanes of a where ``truth``, else of b."""
        return self.value(f"select {self.vectors.truths} {truth}, {self.type} {a}, {self.type} {b}")

    def polynomial(self, coefficients: Sequence[float], z: str) -> str:
        """Horner's rule, lowest coefficient first."""
        result = self.constant(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            result = self.fma(result, z, self.constant(c))
        return result

    # ---- sines and cosines

    def guarded_sincos(self, x: str) -> tuple[str, str]:
        """Sine and cosine; by the C library for all lanes if any lane's angle is huge."""
        kinds = self.type, self.type
        return self.unless(self.any_large([x]), self.sincos, x, "sincos_large", kinds)

    def unless(
        self,
        rare: str,
        usual: Callable[[str], tuple[str, str]],
        x: str,
        function: str,
        kinds: tuple[str, str],
    ) -> tuple[str, str]:
        """Two values made of x as usual, or by a call of ``function`` if ``rare`` is true."""
        n, pair = len(self.lines), f"{{{kinds[0]}, {kinds[1]}}}"
        self.lines += [f"br i1 {rare}, label %rare{n}, label %usual{n}", f"usual{n}:"]
        most = usual(x)
        self.lines += [f"br label %joined{n}", f"rare{n}:"]
        both = self.value(f"call {pair} @{function}({self.type} {x})")
        others = [self.value(f"extractvalue {pair} {both}, {i}") for i in (0, 1)]
        self.lines += [f"br label %joined{n}", f"joined{n}:"]
        first, second = (
            self.value(f"phi {kind} [{a}, %usual{n}], [{b}, %rare{n}]")
            for kind, a, b in zip(kinds, most, others, strict=True)
        )
        return first, second

    def any_large(self, angles: Sequence[str]) -> str:
        """Name of an i1: true if any lane of these angles is beyond the polynomials' range."""
        v, lanes, large_lanes = self.type, self.vectors.truths, "zeroinitializer"
        large = self.constant(self.vectors.precision.cody_waite_limit)
        for x in angles:
            size = self.value(f"call {v} @llvm.fabs.{self.vectors.suffix}({v} {x})")
            huge = self.value(f"fcmp ogt {v} {size}, {large}")
            large_lanes = self.value(f"or {lanes} {large_lanes}, {huge}")
        name = f"@llvm.vector.reduce.or.v{self.vectors.lanes}i1"
        return self.value(f"call i1 {name}({lanes} {large_lanes})")

    def sincos(self, x: str) -> tuple[str, str]:
        """Sine and cosine by :class:`~robomodel.kernels.program.Precision`, up to its limit."""
        return self.turned(*self.reduced(x))

    def reduced(self, x: str) -> tuple[str, str]:
        """The remainder of an angle by quarter turns, and integers whose low bits count these."""
        p = self.vectors.precision
        rounder = self.constant(p.rounder)
        rounded = self.fma(x, self.constant(0.6366197723675814), rounder)
        k = self.two("fsub", rounded, rounder)
        quadrant = self.value(f"bitcast {self.type} {rounded} to {self.vectors.integers}")
        r = x
        for part in p.half_pi:
            r = self.fma(k, self.constant(-part), r)
        return r, quadrant

    def turned(self, r: str, quadrant: str) -> tuple[str, str]:
        """Sine and cosine from a remainder and the quarter turns."""
        p, whole = self.vectors.precision, self.vectors.integers
        z = self.two("fmul", r, r)
        s = self.fma(self.two("fmul", r, z), self.polynomial(p.sine, z), r)
        flat = self.fma(z, self.constant(-0.5), self.constant(1.0))
        c = self.fma(self.two("fmul", z, z), self.polynomial(p.cosine, z), flat)
        one = self.vectors.integer(1)
        odd = self.value(f"and {whole} {quadrant}, {one}")
        swap = self.value(f"icmp ne {whole} {odd}, zeroinitializer")
        sine, cosine = self.select(swap, c, s), self.select(swap, s, c)
        after = self.value(f"add {whole} {quadrant}, {one}")
        return self._signed(sine, quadrant), self._signed(cosine, after)

    def _signed(self, x: str, quadrant: str) -> str:
        """The value with its sign flipped where bit 1 of the quadrant is set."""
        bits, whole = self.vectors.precision.bits, self.vectors.integers
        up, top = self.vectors.integer(bits - 2), self.vectors.integer(-(2 ** (bits - 1)))
        moved = self.value(f"shl {whole} {quadrant}, {up}")
        sign = self.value(f"and {whole} {moved}, {top}")
        number = self.value(f"bitcast {self.type} {x} to {whole}")
        turned = self.value(f"xor {whole} {number}, {sign}")
        return self.value(f"bitcast {whole} {turned} to {self.type}")

    # ---- lanes

    def shuffle(self, a: str, b: str, lanes: Sequence[int]) -> str:
        """Pick lanes of two vectors."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.value(
            f"shufflevector {self.type} {a}, {self.type} {b}, <{len(lanes)} x i32> <{mask}>"
        )

    def transpose(self, rows: Sequence[str]) -> list[str]:
        """Transpose vectors, a power of two of them, within parts of as many lanes."""
        rows, size, lanes = list(rows), 1, range(self.vectors.lanes)
        while size < len(rows):
            low = [x if not x & size else len(lanes) + (x ^ size) for x in lanes]
            high = [x | size if not x & size else len(lanes) + x for x in lanes]
            for i in range(len(rows)):
                if not i & size:
                    a, b = rows[i], rows[i | size]
                    rows[i], rows[i | size] = (self.shuffle(a, b, m) for m in (low, high))
            size *= 2
        return rows

    def half(self, address: str, alignment: int) -> str:
        """Load half a vector."""
        return self.value(f"load {self.vectors.halves.type}, ptr {address}, align {alignment}")

    def joined(self, low: str, high: str) -> str:
        """Join two halves to a vector; with a half from memory this needs no shuffle."""
        v, lanes = self.vectors.halves.type, range(self.vectors.lanes)
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.value(f"shufflevector {v} {low}, {v} {high}, <{len(lanes)} x i32> <{mask}>")


# ---- a program's steps ---------------------------------------------------------------------------

SIMPLE = {ADD: "fadd", SUB: "fsub", MUL: "fmul", DIV: "fdiv"}


class Instructions(Target):
    """A writer of LLVM's instructions; sine and cosine of an angle are computed together."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self._turns: dict[Reference, tuple[str, str]] = {}

    @abstractmethod
    def sincos(self, angle: Reference, x: str) -> tuple[str, str]:
        """Sine and cosine."""

    def constant(self, x: float) -> str:
        """A number, the same in all lanes."""
        return self.f.constant(x)

    def compute(self, number: int, step: Operation, names: list[str]) -> str:
        """Write a step; returns the name of its value."""
        f = self.f
        if step.operation in (SIN, COS):
            (angle,) = step.operands
            if angle not in self._turns:
                self._turns[angle] = self.sincos(angle, *names)
            return self._turns[angle][step.operation == COS]
        if step.operation in SIMPLE:
            return f.two(SIMPLE[step.operation], *names)
        if step.operation == NEG:
            return f.minus(*names)
        if step.operation == SQRT:
            return f.root(*names)
        a, b, c = names
        if step.operation == SELECT:
            return f.select(f.value(f"fcmp olt {f.type} {a}, {f.constant(0.0)}"), b, c)
        if step.operation == FMA:
            return f.fma(a, b, c)
        if step.operation == FMS:
            return f.fma(a, b, f.minus(c))
        assert step.operation == FNMA
        return f.fma(f.minus(a), b, c)
