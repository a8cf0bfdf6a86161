"""Tracing: an algorithm run on :class:`Traced` scalars leaves a straight-line program.

Equal expressions are one value (they are merged as they are born), zeros and ones vanish, signs
move to where they cost nothing, and constants gather: c + (d + x) is (c + d) + x, c (d x) is
(c d) x. :class:`Program` then drops what no output needs, fuses multiplications into additions, and
counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

INPUT, HOLD, ADD, SUB, MUL, DIV, NEG, SQRT, SIN, COS, SELECT, FMA, FMS, FNMA = (
    "input", "hold", "add", "sub", "mul", "div", "neg", "sqrt", "sin", "cos", "select",
    "fma", "fms", "fnma",
)  # fmt: skip
"""Operations. FMA a b c is a·b + c, FMS a·b - c, FNMA c - a·b; programs hold no INPUT, no HOLD.

SELECT x a b is a where x < 0, else b, where x is not a number too; both are computed.
"""

Operand: TypeAlias = "Traced | float"
Reference: TypeAlias = int | float  # a value's number in a program, or a constant
FLOPS = {ADD: 1, SUB: 1, MUL: 1, DIV: 1, SQRT: 1, NEG: 0, FMA: 2, FMS: 2, FNMA: 2}


class Trace:
    """Collects the values of one program."""

    __slots__ = ("_known", "values")

    def __init__(self) -> None:
        self.values: list[Traced] = []
        self._known: dict[tuple[object, ...], Traced] = {}

    def inputs(self, count: int) -> list[Traced]:
        """The next ``count`` inputs of the program."""
        first = sum(value.operation is INPUT for value in self.values)
        return [self._value(INPUT, (float(first + i),)) for i in range(count)]

    def hold(self, x: Operand) -> Operand:
        """The same value, opaque: no arithmetic looks into it, and to derivatives it is constant.

        A program computes the value itself; only in the trace does it stand for itself.
        """
        return self._value(HOLD, (x,)) if isinstance(x, Traced) else x

    def needed(self, outputs: Sequence[Operand], *, into_held: bool = True) -> list[Traced]:
        """The values that these outputs are made of, in the order in which they were born."""
        found: dict[int, Traced] = {}
        stack = [output for output in outputs if isinstance(output, Traced)]
        while stack:
            value = stack.pop()
            if value.index not in found:
                found[value.index] = value
                if into_held or value.operation is not HOLD:
                    stack.extend(x for x in value.operands if isinstance(x, Traced))
        return [found[index] for index in sorted(found)]

    def operations(self, outputs: Sequence[Operand]) -> int:
        """How many floating-point operations these outputs take, as :attr:`Program.flops`."""
        return sum(FLOPS.get(value.operation, 0) for value in self.needed(outputs))

    def program(self, outputs: Sequence[Operand]) -> Program:
        """The program that computes these outputs, in the order in which values were born."""
        inputs = sum(value.operation is INPUT for value in self.values)
        number: dict[int, Reference] = {}
        steps: list[Step] = []

        def reference(x: Operand) -> Reference:
            return number[x.index] if isinstance(x, Traced) else x

        for value in self.needed(outputs):
            if value.operation is INPUT:
                (position,) = value.operands
                assert isinstance(position, float)
                number[value.index] = int(position)
                continue
            if value.operation is HOLD:
                number[value.index] = reference(value.operands[0])
                continue
            number[value.index] = inputs + len(steps)
            steps.append(Step(value.operation, tuple(reference(x) for x in value.operands)))
        return Program(inputs, tuple(steps), tuple(reference(x) for x in outputs))

    # ---- births

    def _value(self, operation: str, operands: tuple[Operand, ...]) -> Traced:
        key = (operation, *(x.index if isinstance(x, Traced) else (x,) for x in operands))
        value = self._known.get(key)
        if value is None:
            value = Traced(self, len(self.values), operation, operands)
            self.values.append(value)
            self._known[key] = value
        return value

    def add(self, x: Operand, y: Operand) -> Operand:
        """x + y."""
        if not isinstance(x, Traced):
            x, y = y, x
        if not isinstance(x, Traced):
            return x + y
        if not isinstance(y, Traced):
            if y == 0.0:
                return x
            if x.operation is ADD and not isinstance(x.operands[0], Traced):
                return self.add(x.operands[1], x.operands[0] + y)
            if x.operation is NEG:
                return self.sub(y, x.operands[0])
            if x.operation is SUB and not isinstance(x.operands[0], Traced):
                return self.sub(x.operands[0] + y, x.operands[1])
            return self._value(ADD, (y, x))
        if x.operation is NEG:
            return self.sub(y, x.operands[0])
        if y.operation is NEG:
            return self.sub(x, y.operands[0])
        return self._value(ADD, (x, y) if x.index <= y.index else (y, x))

    def sub(self, x: Operand, y: Operand) -> Operand:
        """x - y."""
        if not isinstance(y, Traced):
            return self.add(x, -y)
        if not isinstance(x, Traced):
            if x == 0.0:
                return self.neg(y)
            if y.operation is NEG:
                return self.add(x, y.operands[0])
            return self._value(SUB, (x, y))
        if x is y:
            return 0.0
        if y.operation is NEG:
            return self.add(x, y.operands[0])
        if x.operation is NEG:
            return self.neg(self.add(x.operands[0], y))
        return self._value(SUB, (x, y))

    def neg(self, x: Operand) -> Operand:
        """-x."""
        if not isinstance(x, Traced):
            return -x
        if x.operation is NEG:
            return x.operands[0]
        if x.operation is SUB:
            turned = self._known.get((SUB, *(_key(o) for o in reversed(x.operands))))
            if turned is not None:
                return turned
        if x.operation is MUL and not isinstance(x.operands[0], Traced):
            return self.mul(-x.operands[0], x.operands[1])
        return self._value(NEG, (x,))

    def mul(self, x: Operand, y: Operand) -> Operand:
        """x · y."""
        if not isinstance(x, Traced):
            x, y = y, x
        if not isinstance(x, Traced):
            return x * y
        if not isinstance(y, Traced):
            if y == 0.0:
                return 0.0
            if y == 1.0:
                return x
            if y == -1.0:
                return self.neg(x)
            if x.operation is NEG:
                return self.mul(x.operands[0], -y)
            if x.operation is MUL and not isinstance(x.operands[0], Traced):
                return self.mul(x.operands[1], x.operands[0] * y)
            opposite = self._known.get((MUL, (-y,), x.index))
            return self._value(MUL, (y, x)) if opposite is None else self._value(NEG, (opposite,))
        if x.operation is NEG:
            return self.neg(self.mul(x.operands[0], y))
        if y.operation is NEG:
            return self.neg(self.mul(x, y.operands[0]))
        return self._value(MUL, (x, y) if x.index <= y.index else (y, x))

    def div(self, x: Operand, y: Operand) -> Operand:
        """x / y."""
        if not isinstance(y, Traced):
            return self.mul(x, 1.0 / y if y else math.nan)
        if not isinstance(x, Traced) and x == 0.0:
            return 0.0
        return self._value(DIV, (x, y))

    def select(self, x: Traced, a: Operand, b: Operand) -> Operand:
        """``a`` where x < 0, else ``b``."""
        same = a is b if isinstance(a, Traced) or isinstance(b, Traced) else a == b
        return a if same else self._value(SELECT, (x, a, b))

    def function(self, operation: str, x: Traced) -> Traced:
        """Sine, cosine or square root of a value; signs are brought out of the sine and cosine."""
        if x.operation is NEG and operation in (SIN, COS):
            inner = x.operands[0]
            assert isinstance(inner, Traced)
            value = self._value(operation, (inner,))
            return value if operation is COS else self._value(NEG, (value,))
        return self._value(operation, (x,))


def _key(x: Operand) -> object:
    return x.index if isinstance(x, Traced) else (x,)


class Traced:
    """A scalar that stands for a value of a program; arithmetic on it writes the program."""

    __slots__ = ("index", "operands", "operation", "trace")

    def __init__(
        self, trace: Trace, index: int, operation: str, operands: tuple[Operand, ...]
    ) -> None:
        self.trace = trace
        self.index = index
        self.operation = operation
        self.operands = operands

    def __repr__(self) -> str:
        return f"<traced {self.operation} #{self.index}>"

    def __bool__(self) -> bool:
        raise TypeError("a traced value has no truth: programs cannot branch on values")

    def __add__(self, other: Operand) -> Any:
        return self.trace.add(self, other)

    def __radd__(self, other: float) -> Any:
        return self.trace.add(other, self)

    def __sub__(self, other: Operand) -> Any:
        return self.trace.sub(self, other)

    def __rsub__(self, other: float) -> Any:
        return self.trace.sub(other, self)

    def __mul__(self, other: Operand) -> Any:
        return self.trace.mul(self, other)

    def __rmul__(self, other: float) -> Any:
        return self.trace.mul(other, self)

    def __truediv__(self, other: Operand) -> Any:
        return self.trace.div(self, other)

    def __rtruediv__(self, other: float) -> Any:
        return self.trace.div(other, self)

    def __neg__(self) -> Any:
        return self.trace.neg(self)

    def sin(self) -> Traced:
        """Its sine."""
        return self.trace.function(SIN, self)

    def cos(self) -> Traced:
        """Its cosine."""
        return self.trace.function(COS, self)

    def sqrt(self) -> Traced:
        """Its square root."""
        return self.trace.function(SQRT, self)

    def select(self, a: Operand, b: Operand) -> Operand:
        """``a`` where it is negative, else ``b``."""
        return self.trace.select(self, a, b)


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a program; operands are values' numbers (int) or constants (float)."""

    operation: str
    operands: tuple[Reference, ...]


@dataclass(frozen=True)
class Program:
    """A straight-line program: values 0 … inputs-1 are the inputs, then each step makes one."""

    inputs: int
    steps: tuple[Step, ...]
    outputs: tuple[Reference, ...]

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each operation occurs."""
        return Counter(step.operation for step in self.steps)

    @cached_property
    def flops(self) -> int:
        """Floating-point operations: a fused one counts two, signs and trigonometry none."""
        return sum(FLOPS.get(operation, 0) * n for operation, n in self.counts.items())

    def fused(self) -> Program:
        """The same program with products that only one addition uses fused into it."""
        uses = Counter(x for step in self.steps for x in step.operands if type(x) is int)
        uses.update(x for x in self.outputs if type(x) is int)
        steps: list[Step | None] = []
        for step in self.steps:
            replacement = step
            if step.operation in (ADD, SUB):
                for at, operand in enumerate(step.operands):
                    source = self._step(steps, operand)
                    if source is None or source.operation is not MUL or uses[int(operand)] != 1:
                        continue
                    other = step.operands[1 - at]
                    operation = FMA if step.operation is ADD else (FMS, FNMA)[at]
                    replacement = Step(operation, (*source.operands, other))
                    steps[int(operand) - self.inputs] = None
                    break
            steps.append(replacement)
        return self._renumbered(steps)

    def _step(self, steps: Sequence[Step | None], operand: Reference) -> Step | None:
        if type(operand) is not int or operand < self.inputs:
            return None
        return steps[operand - self.inputs]

    def _renumbered(self, steps: Sequence[Step | None]) -> Program:
        number: dict[int, int] = {i: i for i in range(self.inputs)}
        kept: list[Step] = []

        def reference(x: Reference) -> Reference:
            return number[x] if type(x) is int else x

        for i, step in enumerate(steps):
            if step is not None:
                operands = tuple(reference(x) for x in step.operands)
                number[self.inputs + i] = self.inputs + len(kept)
                kept.append(Step(step.operation, operands))
        return Program(self.inputs, tuple(kept), tuple(reference(x) for x in self.outputs))

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on floats or NumPy arrays: the meaning of the program, for tests and debugging."""
        values = list(inputs)

        def at(x: Reference) -> Any:
            return values[x] if type(x) is int else x

        for step in self.steps:
            operands = [at(x) for x in step.operands]
            values.append(MEANING[step.operation](*operands))
        return [at(x) for x in self.outputs]

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


MEANING: dict[str, Callable[..., Any]] = {
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
"""What each operation does to NumPy arrays."""
