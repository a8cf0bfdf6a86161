"""Sparse forward differentiation of a trace, many directions at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from robomodel.kernels.trace import (
    ADD,
    COS,
    DIV,
    MUL,
    NEG,
    SIN,
    SQRT,
    SUB,
    Operand,
    Trace,
    Traced,
)
from robomodel.scalars import is_zero


def differentiate(
    trace: Trace, outputs: Sequence[Operand], directions: Sequence[Mapping[Traced, Operand]]
) -> list[list[Operand]]:
    """Derivatives of the outputs along each direction, written into the trace: [direction][output].

    A direction says how fast values change: all inputs along it, and, where a cheaper expression of
    its change is known, any other value, which is then not differentiated along this direction. A
    value with which nothing is said to change has structural zeros for derivatives, and so has what
    :meth:`Trace.hold` holds. Only values that outputs need are visited, each once.
    """
    known: dict[int, dict[int, Operand]] = {}  # by value's index, then by direction
    for n, direction in enumerate(directions):
        for seed, change in direction.items():
            known.setdefault(seed.index, {})[n] = change
    for value in trace.needed(outputs, into_held=False):
        changes: dict[int, Operand] = {}
        if value.operation in SLOPES:
            moving = [known.get(x.index) if isinstance(x, Traced) else None for x in value.operands]
            if any(moving):
                for slope, parts in zip(SLOPES[value.operation](value), moving, strict=True):
                    _accumulate(trace, changes, slope, parts or {})
        changes.update(known.get(value.index, {}))
        known[value.index] = {n: change for n, change in changes.items() if not is_zero(change)}
    return [
        [known[x.index].get(n, 0.0) if isinstance(x, Traced) else 0.0 for x in outputs]
        for n in range(len(directions))
    ]


def _accumulate(
    trace: Trace, changes: dict[int, Operand], slope: Operand, parts: Mapping[int, Operand]
) -> None:
    """Add slope · parts to the changes, direction by direction."""
    for n, part in parts.items():
        before = changes.get(n, 0.0)
        if type(slope) is float and slope == -1.0:
            changes[n] = trace.sub(before, part)
        else:
            changes[n] = trace.add(before, trace.mul(slope, part))


def _quotient(z: Any) -> tuple[Operand, Operand]:
    inverse = 1.0 / z.operands[1]
    return inverse, -(z * inverse)


def _product(z: Traced) -> tuple[Operand, Operand]:
    x, y = z.operands
    return (2.0 * x, 0.0) if x is y else (y, x)


SLOPES: Mapping[str, Callable[[Any], tuple[Operand, ...]]] = {
    ADD: lambda z: (1.0, 1.0),
    SUB: lambda z: (1.0, -1.0),
    MUL: _product,
    DIV: _quotient,
    NEG: lambda z: (-1.0,),
    SQRT: lambda z: (0.5 / z,),
    SIN: lambda z: (z.operands[0].cos(),),
    COS: lambda z: (-z.operands[0].sin(),),
}
"""Partial derivatives of every operation by its operands."""
