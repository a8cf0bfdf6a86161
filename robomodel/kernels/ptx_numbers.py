"""Single numbers in LLVM's words, as cards' threads have them, with sines of any angle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from robomodel.kernels.llvm import Function, Vectors
from robomodel.kernels.precision import PRECISIONS

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


def sincos(f: Function, x: str) -> tuple[str, str]:
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


def large_angles(numbers: Scalars) -> list[str]:
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
