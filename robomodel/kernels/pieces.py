"""A piece of a program, written in whatever language: what all targets' emitters share.

The walk over the steps stands here once: which value is read from where, what is kept for later
pieces, which values are results. A target says how its language names a constant, reads, computes
and stores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, TypeAlias

from robomodel.kernels.llvm import Function
from robomodel.kernels.plan import Plan
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
    Reference,
    Step,
)

Memory: TypeAlias = Literal["input", "result", "work"]
"""Where numbers stand: the program's inputs, its distinct results, the workspace between pieces."""


class Target(ABC):
    """The words of a language for one piece; values are known by name."""

    @abstractmethod
    def constant(self, x: float) -> str:
        """A number."""

    @abstractmethod
    def load(self, memory: Memory, at: int) -> str:
        """The name of what stands there."""

    @abstractmethod
    def store(self, x: str, memory: Memory, at: int) -> None:
        """Put a value there."""

    @abstractmethod
    def compute(self, number: int, step: Step, names: list[str]) -> str:
        """The name of what a step makes of operands of these names; ``number``: which step."""


def write(
    plan: Plan, number: int, target: Target, between: Callable[[int], None] | None = None
) -> None:
    """One piece. Results that are inputs are the first piece's; constant ones are not here.

    ``between`` is told of each step before it is written, and of step 0 if there are none.
    """
    program, known = plan.program, dict[Reference, str]()

    def operand(x: Reference) -> str:
        if type(x) is float:
            return target.constant(x)
        if x not in known:
            assert isinstance(x, int)
            if x < program.inputs:
                known[x] = target.load("input", x)
            elif x in plan.columns:
                known[x] = target.load("result", plan.columns[x])
            else:
                known[x] = target.load("work", plan.slots[x])
        return known[x]

    for i in plan.pieces[number]:
        if between is not None:
            between(i)
        step, x = program.steps[i], program.inputs + i
        known[x] = target.compute(i, step, [operand(y) for y in step.operands])
        if x in plan.slots:
            target.store(known[x], "work", plan.slots[x])
        if x in plan.columns:
            target.store(known[x], "result", plan.columns[x])
    if not program.steps and between is not None:
        between(0)
    if number == 0:
        for x, column in plan.columns.items():
            if x < program.inputs:
                target.store(operand(x), "result", column)


SIMPLE = {ADD: "fadd", SUB: "fsub", MUL: "fmul", DIV: "fdiv"}


class Instructions(Target):
    """LLVM's words, on vectors or single numbers; sine and cosine of an angle are made together."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self._turns: dict[Reference, tuple[str, str]] = {}

    @abstractmethod
    def sincos(self, angle: Reference, x: str) -> tuple[str, str]:
        """Sine and cosine."""

    def constant(self, x: float) -> str:
        """A number, the same in all lanes."""
        return self.f.constant(x)

    def compute(self, number: int, step: Step, names: list[str]) -> str:
        """The value's name."""
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
