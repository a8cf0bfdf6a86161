"""Tracing: an algorithm run on :class:`Traced` scalars leaves a straight-line program.

Equal expressions become one value, zeros and ones vanish, signs move to where they cost nothing,
and constants are collected: c + (d + x) becomes (c + d) + x, c (d x) becomes (c d) x. A
:class:`~robomodel.kernels.program.Program` has only the steps that its outputs need.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from robomodel.kernels.program import (
    ADD,
    COS,
    DIV,
    MUL,
    NEG,
    SELECT,
    SIN,
    SQRT,
    SUB,
    Operation,
    Program,
    Reference,
)
from robomodel.scalars import Scalar

INPUT, STOP_GRADIENT = "input", "stop gradient"
"""Operations of traces only: inputs, and values that are constant to derivatives."""

SERIES = 7  # terms of cosine, one fewer of sine: 0.3¹⁴/14! is 5e-19, 0.3¹³/13! is 3e-17

Operand: TypeAlias = "Traced | float"


class Trace:
    """Records the values of one program."""

    __slots__ = ("_by_key", "_turned", "values")

    def __init__(self) -> None:
        self.values: list[Traced] = []
        self._by_key: dict[tuple[str | Operand, ...], Traced] = {}
        self._turned: dict[int, tuple[Traced, Operand]] = {}

    def inputs(self, count: int) -> list[Traced]:
        """The next ``count`` inputs of the program."""
        first = sum(value.operation is INPUT for value in self.values)
        return [self._value(INPUT, (float(first + i),)) for i in range(count)]

    def stop_gradient(self, x: Scalar) -> Operand:
        """The value as an opaque one, which arithmetic does not simplify and derivatives hold
        constant.

        In a program it is the value itself.
        """
        return self._value(STOP_GRADIENT, (x,)) if isinstance(x, Traced) else operand_of(x)

    def needed(self, outputs: Sequence[Scalar], *, into_stopped: bool = True) -> list[Traced]:
        """The values on which these outputs depend, in the order in which they were recorded."""
        values: dict[int, Traced] = {}
        stack = [output for output in outputs if isinstance(output, Traced)]
        while stack:
            value = stack.pop()
            if value.index not in values:
                values[value.index] = value
                if into_stopped or value.operation is not STOP_GRADIENT:
                    stack.extend(x for x in value.operands if isinstance(x, Traced))
        return [values[index] for index in sorted(values)]

    def program(self, outputs: Sequence[Scalar]) -> Program:
        """The program that computes these outputs, in the order in which values were recorded."""
        inputs = sum(value.operation is INPUT for value in self.values)
        number: dict[int, Reference] = {}
        steps: list[Operation] = []

        def reference(x: Operand) -> Reference:
            return number[x.index] if isinstance(x, Traced) else x

        results = [operand_of(x) for x in outputs]
        for value in self.needed(results):
            if value.operation is INPUT:
                (position,) = value.operands
                assert isinstance(position, float)
                number[value.index] = int(position)
                continue
            if value.operation is STOP_GRADIENT:
                number[value.index] = reference(value.operands[0])
                continue
            number[value.index] = inputs + len(steps)
            steps.append(Operation(value.operation, tuple(reference(x) for x in value.operands)))
        return Program(inputs, tuple(steps), tuple(reference(x) for x in results))

    # ---- new values

    def _value(self, operation: str, operands: tuple[Operand, ...]) -> Traced:
        value = self._by_key.get((operation, *operands))  # traced operands are equal by identity
        if value is None:
            operands = tuple(map(operand_of, operands))
            value = Traced(self, len(self.values), operation, operands)
            self.values.append(value)
            self._by_key[operation, *operands] = value
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
            opposite = self._by_key.get((SUB, *reversed(x.operands)))
            if opposite is not None:
                return opposite
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
            opposite = self._by_key.get((MUL, -y, x))
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
        """Sine, cosine or square root of a value; a sign of the angle is moved out."""
        if operation in (SIN, COS) and (operation, x) not in self._by_key:
            self._by_turn(x)
        if x.operation is NEG and operation in (SIN, COS):
            inner = x.operands[0]
            assert isinstance(inner, Traced)
            value = self.function(operation, inner)
            return value if operation is COS else self._value(NEG, (value,))
        return self._value(operation, (x,))

    def turn(self, x: Traced, start: Traced, by: Scalar) -> None:
        """Compute sine and cosine of x from those of ``start``, which x exceeds by ``by``, from
        now on.

        By addition theorems and series, exact to rounding for |by| < 0.3, in a fraction of the
        time of other sines. Sine and cosine of x plus a constant, too.
        """
        self._turned.setdefault(x.index, (start, operand_of(by)))

    def _by_turn(self, x: Traced) -> None:
        """Set the sine and cosine of x if they follow from those of another angle."""
        offset: Operand = 0.0
        angle: Operand = x
        if x.operation is ADD and not isinstance(x.operands[0], Traced):
            offset, angle = x.operands
        if not isinstance(angle, Traced) or angle.index not in self._turned:
            return
        start, by = self._turned[angle.index]
        start = start + offset
        square = by * by
        sine: Any = 0.0
        cosine: Any = 0.0
        for n in reversed(range(SERIES)):
            if n < SERIES - 1:
                sine = (-1.0) ** n / math.factorial(2 * n + 1) + square * sine
            cosine = (-1.0) ** n / math.factorial(2 * n) + square * cosine
        sine, s, c = by * sine, start.sin(), start.cos()
        self._by_key[SIN, x] = s * cosine + c * sine
        self._by_key[COS, x] = c * cosine - s * sine


def handles(values: Sequence[Scalar]) -> Sequence[Traced]:
    """The arguments of a program that is being written: all of them are traced."""
    return cast(Sequence[Traced], values)


def operand_of(x: object) -> Operand:
    """A traced value or a float; TypeError for integers, which a program takes for indices."""
    if type(x) is float or isinstance(x, Traced):
        return x
    if isinstance(x, float):  # NumPy's
        return float(x)
    raise TypeError(f"a trace takes floats, got {x!r} ({type(x).__name__}); convert it by float()")


class Traced:
    """A scalar that stands for a value of a program; arithmetic on it records operations."""

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
