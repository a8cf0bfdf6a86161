"""Straight-line programs: operations, their counts, distinct results.

A program does not depend on where it runs: here NumPy arrays run it; emitters write it as code,
with the numbers, sines and cosines of :data:`PRECISIONS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

ADD, SUB, MUL, DIV, NEG, SQRT, SIN, COS, SELECT, FMA, FMS, FNMA = (
    "add", "sub", "mul", "div", "neg", "sqrt", "sin", "cos", "select", "fma", "fms", "fnma",
)  # fmt: skip
"""Operations. FMA a b c is a·b + c, FMS a·b - c, FNMA c - a·b.

SELECT x a b is a where x < 0, else b, also where x is not-a-number; both are computed.
"""

Reference: TypeAlias = int | float  # a value's number in a program, or a constant
FLOPS = {ADD: 1, SUB: 1, MUL: 1, DIV: 1, SQRT: 1, NEG: 0, FMA: 2, FMS: 2, FNMA: 2}


class Operation(NamedTuple):
    """One operation of a program; operands are values' indices (int) or constants (float)."""

    operation: str
    operands: tuple[Reference, ...]


@dataclass(frozen=True)
class Program:
    """A straight-line program: values 0 … inputs-1 are the inputs, each step adds one."""

    inputs: int
    steps: tuple[Operation, ...]
    outputs: tuple[Reference, ...]

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of times that each operation occurs."""
        return Counter(step.operation for step in self.steps)

    @cached_property
    def flops(self) -> int:
        """Floating-point operations: a fused one counts two; signs, sine and cosine count none."""
        return sum(FLOPS.get(operation, 0) * n for operation, n in self.counts.items())

    def fused(self) -> Program:
        """The program with each product that only one addition uses fused into the addition."""
        uses = Counter(x for step in self.steps for x in step.operands if type(x) is int)
        uses.update(x for x in self.outputs if type(x) is int)
        steps: list[Operation | None] = []
        for step in self.steps:
            replacement = step
            if step.operation in (ADD, SUB):
                for at, operand in enumerate(step.operands):
                    source = self._step(steps, operand)
                    if source is None or source.operation != MUL or uses[int(operand)] != 1:
                        continue
                    other = step.operands[1 - at]
                    operation = FMA if step.operation == ADD else (FMS, FNMA)[at]
                    replacement = Operation(operation, (*source.operands, other))
                    steps[int(operand) - self.inputs] = None
                    break
            steps.append(replacement)
        return self._renumbered(steps)

    def _step(self, steps: Sequence[Operation | None], operand: Reference) -> Operation | None:
        if type(operand) is not int or operand < self.inputs:
            return None
        return steps[operand - self.inputs]

    def _renumbered(self, steps: Sequence[Operation | None]) -> Program:
        number: dict[int, int] = {i: i for i in range(self.inputs)}
        remaining: list[Operation] = []

        def reference(x: Reference) -> Reference:
            return number[x] if type(x) is int else x

        for i, step in enumerate(steps):
            if step is not None:
                operands = tuple(reference(x) for x in step.operands)
                number[self.inputs + i] = self.inputs + len(remaining)
                remaining.append(Operation(step.operation, operands))
        return Program(self.inputs, tuple(remaining), tuple(reference(x) for x in self.outputs))

    @cached_property
    def distinct(self) -> tuple[int, ...]:
        """The values that are results, each once, in the order of the results."""
        return tuple(dict.fromkeys(x for x in self.outputs if type(x) is int))

    def __call__(
        self, inputs: Sequence[Any], meaning: Mapping[str, Callable[..., Any]] | None = None
    ) -> list[Any]:
        """Run on floats or NumPy arrays, or with the operations of ``meaning``."""
        values = list(inputs)
        meaning = meaning or MEANING

        def at(x: Reference) -> Any:
            return values[x] if type(x) is int else x

        for step, past in zip(self.steps, self._used_last, strict=True):
            operands = [at(x) for x in step.operands]
            values.append(meaning[step.operation](*operands))
            for k in past:
                values[k] = None  # frees memory, which large batches need
        return [at(x) for x in self.outputs]

    @cached_property
    def _used_last(self) -> list[list[int]]:
        """The values that each step is the last to use."""
        past: list[list[int]] = [[] for _ in self.steps]
        needed = set(self.distinct)
        for number, step in reversed(list(enumerate(self.steps))):
            for x in step.operands:
                if type(x) is int and x not in needed:
                    needed.add(x)
                    past[number].append(x)
        return past

    def __str__(self) -> str:
        """One line a step: ``v7 = v1 * v4``."""
        signs = {ADD: "{} + {}", SUB: "{} - {}", MUL: "{} * {}", DIV: "{} / {}", NEG: "-{}",
                 FMA: "{} * {} + {}", FMS: "{} * {} - {}", FNMA: "{2} - {0} * {1}"}  # fmt: skip

        def name(x: Reference) -> str:
            return repr(x) if type(x) is not int else f"x{x}" if x < self.inputs else f"v{x}"

        lines = []
        for i, step in enumerate(self.steps):
            names = [name(x) for x in step.operands]
            form = signs.get(step.operation, step.operation + "({})")
            lines.append(f"v{self.inputs + i} = {form.format(*names)}")
        return "\n".join([*lines, "return " + ", ".join(name(x) for x in self.outputs)])


MEANING: Mapping[str, Callable[..., Any]] = {
    ADD: lambda x, y: x + y,
    SUB: lambda x, y: x - y,
    MUL: lambda x, y: x * y,
    DIV: np.divide,
    NEG: lambda x: -x,
    SQRT: np.sqrt,
    SIN: np.sin,
    COS: np.cos,
    SELECT: lambda x, a, b: np.where(x < 0.0, a, b),
    FMA: lambda x, y, z: x * y + z,
    FMS: lambda x, y, z: x * y - z,
    FNMA: lambda x, y, z: z - x * y,
}
"""Operations on NumPy arrays."""


# ---- precisions ----------------------------------------------------------------------------------

Dtype: TypeAlias = Literal["float64", "float32"]


@dataclass(frozen=True, slots=True)
class Precision:
    """A floating-point type, and how sines and cosines are computed in it.

    An angle x is k quarter turns and a remainder r in [-π/4, π/4], by π/2 in three parts (Cody and
    Waite); with fused multiply-adds r keeps its relative accuracy up to ``cody_waite_limit``. Two
    polynomials in r², sine r + r³ P(r²) and cosine 1 - r²/2 + r⁴ Q(r²), are swapped and change
    signs with the quarter turns.

    ``rounder`` is 1.5 times the power of two above which all numbers are integers: adding it
    rounds, and leaves the integer in the low bits. Beyond ``cody_waite_limit`` radians the C
    library is
    called: the quarter turns do not fit there, or 2/π has too few digits to count them.
    """

    name: Dtype
    bits: int
    half_pi: tuple[float, float, float]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]
    rounder: float
    cody_waite_limit: float

    @property
    def bytes(self) -> int:
        """The size of a number in bytes."""
        return self.bits // 8


PRECISIONS: Mapping[str, Precision] = {
    "float64": Precision(  # minimax polynomials of fdlibm
        "float64",
        64,
        (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
        (
            -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
            2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
        ),
        (
            4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
            -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
        ),
        6755399441055744.0,  # 1.5 · 2⁵²
        1e9,
    ),
    "float32": Precision(  # minimax to 0.66 and 1.23 units in the last place, rounding included
        "float32",
        32,
        (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
        (-0.16666655242443085, 0.008332165889441967, -0.00019515209714882076),
        (0.04166664555668831, -0.0013887366512790322, 2.4438377295155078e-05),
        12582912.0,  # 1.5 · 2²³
        1e5,
    ),
}  # fmt: skip
