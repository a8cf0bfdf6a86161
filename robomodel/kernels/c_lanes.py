"""Batches in C: the parts of a program on vectors of GCC's and Clang's, a state in each lane."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from robomodel.kernels.c import (
    PRODUCT,
    TYPES,
    CFunction,
    Statements,
    arrays,
    calls,
    literal,
    parts,
    tables,
)
from robomodel.kernels.precision import PRECISIONS, Dtype
from robomodel.kernels.program import COS, SELECT, SIN, SQRT, Reference, Step


def definition(f: CFunction, lanes: int) -> list[str]:
    """The function of many states, so many at a time: rows into lanes, the parts, lanes to rows."""
    prefix = f"{f.name}_lanes"
    lines = [*parts(f, prefix, lambda: _Vectors(f.dtype, "lanes")), *tables(f, prefix, 0)]
    lines += [f"WIDE {f.batch_declaration}", "{"]
    lines += [f"    lanes {name}[{count}];" for name, count in arrays(f)]
    lines += [
        f"    rs[{i}] = {literal(constant, f.dtype)} - ZERO;"
        for i, constant in enumerate(f.plan.constants, len(f.plan.columns))
    ]
    lines += [
        f"    for (size_t from = 0; from < states; from += {lanes}) {{",
        f"        const size_t n = states - from < {lanes} ? states - from : {lanes};",
        f"        for (size_t k = 0; k < {lanes}; ++k) {{",
        "            const size_t state = from + (k < n ? k : n - 1);",
    ]
    for (argument, count), numbers in zip(f.arguments.items(), f.plan.arguments(), strict=True):
        at = f"xs[{numbers.start} + i]" if numbers.start else "xs[i]"
        lines.append(
            f"            for (size_t i = 0; i < {count}; ++i) "
            f"{at}[k] = {argument}[{count} * state + i];"
        )
    lines += ["        }", *(f"        {call}" for call in calls(f, prefix))]
    lines.append("        for (size_t k = 0; k < n; ++k) {")
    for result, count in f.results.items():
        lines.append(
            f"            for (size_t i = 0; i < {count}; ++i) "
            f"{result}[{count} * (from + k) + i] = rs[{prefix}_{result}_at[i]][k];"
        )
    return [*lines, "        }", "    }", "}"]


class _Vectors(Statements):
    """On lanes; where vectors are given or returned by value, processors do not agree."""

    def __init__(self, dtype: Dtype, kind: str) -> None:
        super().__init__(dtype, kind)
        self.static = "WIDE static"
        self._turns: dict[Reference, int] = {}

    def compute(self, number: int, step: Step, names: list[str]) -> str:
        if step.operation in (SIN, COS):
            (angle,) = step.operands
            if angle not in self._turns:
                self._turns[angle] = number
                x = names[0] if type(angle) is not float else f"{names[0]} - ZERO"
                self.lines += [f"    lanes s{number} = {x}, c{number};",
                               f"    lanes_sincos(&s{number}, &c{number});"]  # fmt: skip
            return f"{'s' if step.operation == SIN else 'c'}{self._turns[angle]}"
        if step.operation == SQRT:
            self.lines += [f"    lanes t{number} = {names[0]};", f"    lanes_sqrt(&t{number});"]
            return f"t{number}"
        return super().compute(number, step, names)

    def made(self, step: Step, names: list[str]) -> str:
        if step.operation != SELECT:
            return super().made(step, names)
        x, a, b = names
        mask = f"(bits)({x} < {literal(0.0, self.dtype)})"
        return f"(lanes)(({mask} & (bits)({a} - ZERO)) | (~{mask} & (bits)({b} - ZERO)))"


QUARTERS: Mapping[Dtype, tuple[tuple[float, float, float], float]] = {
    # π/2 in parts of which the first two have so few digits that multiples of them are exact
    "float64": ((1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21), 1e5),
    "float32": ((1.5703125, 4.837512969970703e-4, 7.549789954891882e-08), 1e3),
}


def preamble(functions: Sequence[CFunction], lanes: int) -> list[str]:
    """What a file of these functions begins with: vectors, and their sines, cosines and roots.

    As :mod:`robomodel.kernels.precision` says, but that π/2 is split so that no fused operations
    are needed; beyond what that serves the library is called.
    """
    dtype = functions[0].dtype
    used = frozenset(step.operation for f in functions for step in f.program.steps)
    precision, kind = PRECISIONS[dtype], TYPES[dtype]
    (first, second, third), limit = QUARTERS[dtype]
    suffix, whole = ("", "int64_t") if dtype == "float64" else ("f", "int32_t")

    def number(x: float) -> str:
        return literal(x, dtype)

    def polynomial(coefficients: Sequence[float]) -> str:
        text = number(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            text = f"({text} * z + {number(c)})"
        return text

    root = [
        "static inline void lanes_sqrt(lanes *x)",
        "{",
        f"    for (int k = 0; k < {lanes}; ++k) (*x)[k] = sqrt{suffix}((*x)[k]);",
        "}",
    ]
    turning = [
        "/* x becomes its sine */",
        "WIDE static void lanes_sincos(lanes *x, lanes *cosine)",
        "{",
        "    const lanes angle = *x;",
        f"    for (int k = 0; k < {lanes}; ++k)",
        f"        if (!(angle[k] < {number(limit)} && angle[k] > {number(-limit)})) {{",
        f"            for (k = 0; k < {lanes}; ++k) {{",
        f"                (*cosine)[k] = cos{suffix}(angle[k]);",
        f"                (*x)[k] = sin{suffix}(angle[k]);",
        "            }",
        "            return;",
        "        }",
        f"    const lanes rounded = angle * {number(2 / math.pi)} + {number(precision.rounder)};",
        f"    const lanes turns = rounded - {number(precision.rounder)};",
        f"    const lanes y = ((angle - turns * {number(first)}) - turns * {number(second)})"
        f" - turns * {number(third)};",
        "    const lanes z = y * y;",
        f"    const lanes s = y * z * {polynomial(precision.sine)} + y;",
        f"    const lanes c = z * z * {polynomial(precision.cosine)}"
        f" + ({number(1.0)} - {number(0.5)} * z);",
        "    const bits at = (bits)rounded, after = at + 1;",
        "    const bits odd = -(at & 1);",
        "    const bits sine = ((bits)c & odd) | ((bits)s & ~odd);",
        "    const bits other = ((bits)s & odd) | ((bits)c & ~odd);",
        f"    *x = (lanes)(sine ^ (((at >> 1) & 1) << {precision.bits - 1}));",
        f"    *cosine = (lanes)(other ^ (((after >> 1) & 1) << {precision.bits - 1}));",
        "}",
    ]
    return [
        "#include <math.h>",
        "#include <stdint.h>",
        "",
        "#ifndef __GNUC__",
        '#error "functions of batches need the vectors of GCC or Clang"',
        "#endif",
        "#ifdef __clang__",
        "/* else it halves the widest vectors: twice the instructions, and what they spill */",
        "#if __has_attribute(min_vector_width)",
        f"#define WIDE __attribute__((min_vector_width({lanes * precision.bits})))",
        "#endif",
        "#pragma STDC FP_CONTRACT ON",
        "#else",
        '#pragma GCC optimize("fp-contract=fast")',
        "#endif",
        "#ifndef WIDE",
        "#define WIDE",
        "#endif",
        PRODUCT,
        "",
        f"typedef {kind} lanes __attribute__((vector_size({lanes * precision.bytes})));",
        f"typedef {whole} bits __attribute__((vector_size({lanes * precision.bytes})));",
        "",
        "/* numbers less ZERO are those in all lanes, -0 too */",
        "#define ZERO ((lanes){0})",
        *(["", *turning] if used & {SIN, COS} else []),
        *(["", *root] if SQRT in used else []),
    ]
