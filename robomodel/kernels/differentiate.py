"""Sparse differentiation of a trace: forward along many directions, and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from robomodel.kernels.program import ADD, COS, DIV, MUL, NEG, SELECT, SIN, SQRT, SUB
from robomodel.kernels.trace import Operand, Trace, Traced, operand_of
from robomodel.scalars import Scalar, is_zero


def differentiate(
    trace: Trace, outputs: Sequence[Scalar], directions: Iterable[Mapping[Traced, Scalar]]
) -> list[list[Operand]]:
    """Derivatives of the outputs along each direction: [direction][output].

    A direction maps values to their rates: inputs, and any other value for whose rate there is a
    cheaper expression, which is then not differentiated. A value that depends on none of these has
    structural zeros for derivatives, and so has the result of :meth:`Trace.stop_gradient`. Only
    values that outputs need are visited, each once for a direction.

    One direction is finished before the next, so that its values are used while they are in
    registers. (All directions of one value after the other took 1.4 times as long to run.)
    """
    values = [x for x in trace.needed(outputs, into_stopped=False) if x.operation in SLOPES]
    slopes: dict[int, tuple[Operand, ...]] = {}
    result: list[list[Operand]] = []
    for direction in directions:
        changes = {x.index: operand_of(change) for x, change in direction.items()}
        for value in values:
            if value.index in changes:
                continue
            parts = [
                changes.get(x.index) if isinstance(x, Traced) else None for x in value.operands
            ]
            if parts.count(None) == len(parts):
                continue
            if value.index not in slopes:
                slopes[value.index] = SLOPES[value.operation](value)
            change = _sum(trace, slopes[value.index], parts)
            if not is_zero(change):
                changes[value.index] = change
        result.append(
            [changes.get(x.index, 0.0) if isinstance(x, Traced) else 0.0 for x in outputs]
        )
    return result


def gradient(output: Scalar, inputs: Sequence[Traced]) -> list[Operand]:
    """Derivatives of one output with respect to these values, by one backward pass over its trace.

    All together take about twice the operations of the output. A value counts as an input, even if
    it depends on others of them. Results of :meth:`Trace.stop_gradient` are constant; values on
    which the output does not depend have structural zeros.
    """
    if not isinstance(output, Traced):
        return [0.0] * len(inputs)
    trace = output.trace
    ends = {x.index for x in inputs}
    slopes: dict[int, Operand] = {output.index: 1.0}
    for value in reversed(trace.needed([output], into_stopped=False)):
        if value.operation not in SLOPES or value.index not in slopes or value.index in ends:
            continue
        change = slopes[value.index]
        for x, partial in zip(value.operands, SLOPES[value.operation](value), strict=True):
            if isinstance(x, Traced):
                slopes[x.index] = _sum(trace, (1.0, partial), (slopes.get(x.index), change))
    return [slopes.get(x.index, 0.0) for x in inputs]


def _sum(trace: Trace, slopes: Sequence[Operand], parts: Sequence[Operand | None]) -> Operand:
    """Σ slope · part."""
    total: Operand = 0.0
    for slope, part in zip(slopes, parts, strict=True):
        if part is None:
            continue
        if type(slope) is float and slope == -1.0:
            total = trace.sub(total, part)
        else:
            total = trace.add(total, trace.mul(slope, part))
    return total


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
    SELECT: lambda z: (0.0, z.operands[0].select(1.0, 0.0), z.operands[0].select(0.0, 1.0)),
}
"""Partial derivatives of every operation by its operands."""
