"""A program as C99: functions without memory of their own, and, for batches, with lanes.

A short program is one function of named values. A long one is cut into parts, as machine code is
(:mod:`robomodel.kernels.plan`), so that compilers take time in proportion to its length; what
crosses a cut stands in arrays on the stack. With ``lanes`` the same parts run on vectors of GCC's
and Clang's, a state in each lane. Nothing is called but ``sin``, ``cos`` and ``sqrt``.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from robomodel.kernels.plan import Plan
from robomodel.kernels.precision import Dtype
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
    Program,
    Reference,
    Step,
)
from robomodel.kernels.schedule import ordered

TYPES: Mapping[Dtype, str] = {"float64": "double", "float32": "float"}
SIGNS = {ADD: "+", SUB: "-", MUL: "*", DIV: "/"}
CALLED = {SIN: "sin", COS: "cos", SQRT: "sqrt"}
LOCALS = frozenset(("xs", "rs", "ws", "states", "state", "from", "i", "k", "n"))
"""What functions call their own."""
LISTED = 64  # results that are stored one by one; more of them in a loop over a table


@dataclass(frozen=True)
class CFunction:
    """A program with what its function in C is called, and its arguments and results.

    ``arguments`` and ``results``: name → how many numbers; the program's inputs are the arguments'
    one after the other, and its outputs the results'. Names are valid in C, differ, and are none of
    ``LOCALS``.
    """

    name: str
    program: Program
    arguments: Mapping[str, int]
    results: Mapping[str, int]
    dtype: Dtype = "float64"

    @property
    def type(self) -> str:
        """Of a number."""
        return TYPES[self.dtype]

    @cached_property
    def plan(self) -> Plan:
        """How it is cut."""
        sizes = (*self.arguments.values(), sum(self.results.values()))
        return Plan(ordered(self.program), sizes, self.dtype)

    @property
    def declaration(self) -> str:
        """The function of one state, without its semicolon."""
        given = [f"const {self.type} {name}[{n}]" for name, n in self.arguments.items()]
        given += [f"{self.type} {name}[{n}]" for name, n in self.results.items()]
        return f"void {self.name}({', '.join(given)})"

    @property
    def batch_declaration(self) -> str:
        """The function of many states, one behind the other, without its semicolon."""
        given = [f"const {self.type} *{name}" for name in self.arguments]
        given += [f"{self.type} *{name}" for name in self.results]
        return f"void {self.name}_batch({', '.join(['size_t states', *given])})"

    @property
    def in_parts(self) -> bool:
        """Whether the function of one state works on arrays."""
        return len(self.plan.pieces) > 1

    def stack(self, lanes: int = 1) -> int:
        """Bytes on the stack: arrays, or else the most values that are alive at a time.

        Besides come what a compiler saves, and what it holds in registers and spills within parts.
        """
        if lanes == 1 and not self.in_parts:
            return _alive(self.plan) * self.plan.precision.bytes
        return self.numbers * lanes * self.plan.precision.bytes

    @property
    def numbers(self) -> int:
        """Of the arrays on which parts work."""
        plan = self.plan
        return plan.program.inputs + len(plan.columns) + len(plan.constants) + plan.workspace

    def definition(self) -> list[str]:
        """The function of one state."""
        return _on_arrays(self) if self.in_parts else _straight(self)

    def batch_definition(self, lanes: int) -> list[str]:
        """The function of many states, so many at a time."""
        return _batch(self, lanes)


def preamble(functions: Sequence[CFunction], lanes: int = 1) -> list[str]:
    """What a file of these functions begins with."""
    dtype = functions[0].dtype
    used = frozenset(step.operation for f in functions for step in f.program.steps)
    lines = ["#include <math.h>"]
    if lanes > 1:
        return [*lines, "#include <stdint.h>", "", *_lanes(dtype, lanes, used)]
    # never the library's function, which is slow without an instruction
    fused = (
        "defined(__FMA__) || defined(__aarch64__) || defined(FP_FAST_FMA)"
        if dtype == "float64"
        else "defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(FP_FAST_FMAF)"
    )
    called = "fma" if dtype == "float64" else "fmaf"
    return [
        *lines,
        "",
        "/* a b + c, rounded once where the processor has an instruction for it */",
        f"#if {fused}",
        f"#define FMA(a, b, c) {called}(a, b, c)",
        "#else",
        PRODUCT,
        "#endif",
    ]


PRODUCT = "#define FMA(a, b, c) ((a) * (b) + (c))"


# ---- numbers and steps ---------------------------------------------------------------------------


def literal(x: float, dtype: Dtype) -> str:
    """A number as C reads it, rounded to its type; in brackets where it has a sign."""
    x = x if dtype == "float64" else ctypes.c_float(x).value
    if math.isnan(x):
        return f"({TYPES[dtype]})NAN"
    if math.isinf(x):
        text = f"({TYPES[dtype]})INFINITY"
    else:
        text = repr(abs(x)) if dtype == "float64" else f"{_short(abs(x))}f"
    return f"(-{text})" if math.copysign(1.0, x) < 0.0 else text


def _short(x: float) -> str:
    """The fewest digits that single precision tells apart."""
    texts = (f"{x:.{n}g}" for n in range(1, 10))
    text = next(text for text in texts if ctypes.c_float(float(text)).value == x)
    return text if {".", "e"} & {*text} else f"{text}.0"


Operand = Callable[[Reference], str]


def _expression(step: Step, operand: Operand) -> str:
    """What a step computes, but sines, cosines, roots and choices."""
    names = [operand(x) for x in step.operands]
    if step.operation in SIGNS:
        a, b = names
        return f"{a} {SIGNS[step.operation]} {b}"
    if step.operation == NEG:
        return f"-{names[0]}"
    a, b, c = names
    if step.operation == FMA:
        return f"FMA({a}, {b}, {c})"
    if step.operation == FMS:
        return f"FMA({a}, {b}, -{c})"
    assert step.operation == FNMA
    return f"FMA(-{a}, {b}, {c})"


def _scalar(f: CFunction, name: str, step: Step, operand: Operand) -> str:
    """A statement that makes a value."""
    if step.operation in CALLED:
        suffix = "" if f.dtype == "float64" else "f"
        right = f"{CALLED[step.operation]}{suffix}({operand(step.operands[0])})"
    elif step.operation == SELECT:
        x, a, b = (operand(y) for y in step.operands)
        right = f"{x} < {literal(0.0, f.dtype)} ? {a} : {b}"
    else:
        right = _expression(step, operand)
    return f"    const {f.type} {name} = {right};"


def _vector(f: CFunction, name: str, step: Step, operand: Operand) -> str:
    """The same of lanes; vectors go by address: to whom by value, processors do not agree."""
    if step.operation in CALLED:
        angle = step.operands[0]
        given = operand(angle) if type(angle) is not float else f"(ZERO + {operand(angle)})"
        function = f"lanes_{CALLED[step.operation]}"
        return f"    lanes {name} = {given};\n    {function}(&{name});"
    if step.operation == SELECT:
        x, a, b = (operand(y) for y in step.operands)
        mask = f"(bits)({x} < {literal(0.0, f.dtype)})"
        return (
            f"    const lanes {name} = "
            f"(lanes)(({mask} & (bits)(ZERO + {a})) | (~{mask} & (bits)(ZERO + {b})));"
        )
    return f"    const lanes {name} = {_expression(step, operand)};"


def _alive(plan: Plan) -> int:
    """The most values that are alive at a time: inputs from the start, results to the end."""
    program = plan.program
    last = {int(x): len(program.steps) for x in program.outputs if type(x) is int}
    for i, step in reversed([*enumerate(program.steps)]):
        for y in step.operands:
            if type(y) is int:
                last.setdefault(y, i)
    ending: dict[int, int] = {}
    for at in last.values():
        ending[at] = ending.get(at, 0) + 1
    alive = most = len(plan.used)
    for i in range(len(program.steps)):
        alive += 1
        most = max(most, alive)
        alive -= ending.get(i, 0)
    return most


# ---- one state -----------------------------------------------------------------------------------


def _straight(f: CFunction) -> list[str]:
    """One function of named values: arguments are read first, and results stored last."""
    program, dtype = f.plan.program, f.dtype
    names: dict[Reference, str] = {}
    lines = [f"{f.declaration}", "{"]
    for (argument, _), numbers in zip(f.arguments.items(), f.plan.arguments(), strict=True):
        used = [i for i in numbers if i in f.plan.used]
        if not used:
            lines.append(f"    (void){argument};")
        for i in used:
            names[i] = f"{argument}_{i - numbers.start}"
            lines.append(f"    const {f.type} {names[i]} = {argument}[{i - numbers.start}];")

    def operand(x: Reference) -> str:
        return literal(x, dtype) if type(x) is float else names[x]

    for i, step in enumerate(program.steps):
        names[program.inputs + i] = f"t{i}"
        lines.append(_scalar(f, f"t{i}", step, operand))
    outputs = iter(program.outputs)
    for result, count in f.results.items():
        lines += [f"    {result}[{i}] = {operand(next(outputs))};" for i in range(count)]
    return [*lines, "}"]


def _on_arrays(f: CFunction) -> list[str]:
    """Parts, and the function that calls them: a copy of the arguments, results, a workspace."""
    lines = _parts(f, f.name, f.type, _scalar)
    lines += [*_tables(f, f.name), f"{f.declaration}", "{"]
    lines += [f"    {f.type} {name}[{count}];" for name, count in _arrays(f)]
    for (argument, count), numbers in zip(f.arguments.items(), f.plan.arguments(), strict=True):
        at = f"xs[{numbers.start} + i]" if numbers.start else "xs[i]"
        lines.append(f"    for (int i = 0; i < {count}; ++i) {at} = {argument}[i];")
    for i, constant in enumerate(f.plan.constants, len(f.plan.columns)):
        lines.append(f"    rs[{i}] = {literal(constant, f.dtype)};")
    lines += [f"    {call}" for call in _calls(f, f.name)]
    first = 0
    for result, count in f.results.items():
        own = f.plan.index[first : first + count]
        first += count
        if count <= LISTED:
            lines += [f"    {result}[{i}] = rs[{column}];" for i, column in enumerate(own)]
        else:
            table = f"{f.name}_{result}_at"
            lines.append(f"    for (int i = 0; i < {count}; ++i) {result}[i] = rs[{table}[i]];")
    return [*lines, "}"]


def _arrays(f: CFunction) -> Iterator[tuple[str, int]]:
    """The arrays of parts: arguments, distinct results, workspace; C has none without entries."""
    plan = f.plan
    yield "xs", plan.program.inputs
    yield "rs", len(plan.columns) + len(plan.constants)
    if plan.workspace:
        yield "ws", plan.workspace


def _calls(f: CFunction, prefix: str) -> list[str]:
    given = ", ".join(name for name, _ in _arrays(f))
    return [f"{prefix}_part{n}({given});" for n in range(len(f.plan.pieces))]


def _parts(
    f: CFunction,
    prefix: str,
    kind: str,
    statement: Callable[[CFunction, str, Step, Operand], str],
) -> list[str]:
    """The parts as functions of arrays; ``kind``: the type of their entries."""
    plan, program, lines = f.plan, f.plan.program, []
    names = [name for name, _ in _arrays(f)]
    for n, piece in enumerate(plan.pieces):
        known: dict[Reference, str] = {}
        body: list[str] = []

        def operand(x: Reference, known: dict[Reference, str] = known,
                    body: list[str] = body) -> str:  # fmt: skip
            if type(x) is float:
                return literal(x, f.dtype)
            if x not in known:
                assert isinstance(x, int)
                if x < program.inputs:
                    known[x], place = f"x{x}", f"xs[{x}]"
                else:
                    known[x] = f"t{x - program.inputs}"
                    column = plan.columns.get(x)
                    place = f"ws[{plan.slots[x]}]" if column is None else f"rs[{column}]"
                body.append(f"    const {kind} {known[x]} = {place};")
            return known[x]

        for i in piece:
            x = program.inputs + i
            made = statement(f, f"t{i}", program.steps[i], operand)
            body.append(made)
            known[x] = f"t{i}"
            if x in plan.slots:
                body.append(f"    ws[{plan.slots[x]}] = t{i};")
            if x in plan.columns:
                body.append(f"    rs[{plan.columns[x]}] = t{i};")
        if n == 0:
            for x, column in plan.columns.items():
                if x < program.inputs:
                    given = operand(x)
                    body.append(f"    rs[{column}] = {given};")
        text = "\n".join(body)
        unused = [f"    (void){name};" for name in names if f" {name}[" not in text]
        given = ", ".join(
            f"{'const ' if name == 'xs' else ''}{kind} *restrict {name}" for name in names
        )
        lines += [f"static void {prefix}_part{n}({given})", "{", *unused, *body, "}", ""]
    return lines


def _tables(f: CFunction, prefix: str, most: int = LISTED) -> list[str]:
    """Which distinct result each entry of the long results is."""
    lines, at = [], 0
    kind = "unsigned char" if max(f.plan.index, default=0) < 256 else "unsigned short"
    kind = "unsigned int" if max(f.plan.index, default=0) > 65535 else kind
    for result, count in f.results.items():
        if count > most:
            entries = ", ".join(map(str, f.plan.index[at : at + count]))
            lines.append(f"static const {kind} {prefix}_{result}_at[{count}] = {{{entries}}};")
        at += count
    return [*lines, ""] if lines else []


# ---- batches -------------------------------------------------------------------------------------


def _batch(f: CFunction, lanes: int) -> list[str]:
    """So many states at a time: rows into lanes, the parts, and lanes into rows."""
    prefix = f"{f.name}_lanes"
    lines = [*_parts(f, prefix, "lanes", _vector), *_tables(f, prefix, 0)]
    lines += [f.batch_declaration, "{"]
    lines += [f"    lanes {name}[{count}];" for name, count in _arrays(f)]
    lines += [
        f"    rs[{i}] = ZERO + {literal(constant, f.dtype)};"
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
    lines += ["        }", *(f"        {call}" for call in _calls(f, prefix))]
    lines.append("        for (size_t k = 0; k < n; ++k) {")
    for result, count in f.results.items():
        lines.append(
            f"            for (size_t i = 0; i < {count}; ++i) "
            f"{result}[{count} * (from + k) + i] = rs[{prefix}_{result}_at[i]][k];"
        )
    return [*lines, "        }", "    }", "}"]


QUARTERS: Mapping[Dtype, tuple[tuple[float, float, float], float]] = {
    # π/2 in parts of which the first two have so few digits that multiples of them are exact
    "float64": ((1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21), 1e5),
    "float32": ((1.5703125, 4.837512969970703e-4, 7.549789954891882e-08), 1e3),
}


def _lanes(dtype: Dtype, lanes: int, used: frozenset[str]) -> list[str]:
    """Vectors, and their sines, cosines and roots.

    As :mod:`robomodel.kernels.precision` says, but that π/2 is split so that no fused operations
    are needed; beyond what that serves the library is called.
    """
    from robomodel.kernels.precision import PRECISIONS

    precision, kind = PRECISIONS[dtype], TYPES[dtype]
    (first, second, third), far = QUARTERS[dtype]
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
        "static void lanes_turn(lanes *x, const int quarter)",
        "{",
        "    const lanes angle = *x;",
        f"    for (int k = 0; k < {lanes}; ++k)",
        f"        if (!(angle[k] < {number(far)} && angle[k] > {number(-far)})) {{",
        f"            for (k = 0; k < {lanes}; ++k)",
        f"                (*x)[k] = quarter ? cos{suffix}(angle[k]) : sin{suffix}(angle[k]);",
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
        "    const bits at = (bits)rounded + quarter;",
        "    const bits odd = -(at & 1);",
        "    const bits value = ((bits)c & odd) | ((bits)s & ~odd);",
        f"    *x = (lanes)(value ^ (((at >> 1) & 1) << {precision.bits - 1}));",
        "}",
    ]
    return [
        "#ifndef __GNUC__",
        '#error "functions of batches need the vectors of GCC or Clang"',
        "#endif",
        "#ifdef __clang__",
        "#pragma STDC FP_CONTRACT ON",
        "#else",
        '#pragma GCC optimize("fp-contract=fast")',
        "#endif",
        PRODUCT,
        "",
        f"typedef {kind} lanes __attribute__((vector_size({lanes * precision.bytes})));",
        f"typedef {whole} bits __attribute__((vector_size({lanes * precision.bytes})));",
        "",
        "#define ZERO ((lanes){0})",
        *(["", *turning] if used & {SIN, COS} else []),
        *(
            ["", "static inline void lanes_sin(lanes *x) { lanes_turn(x, 0); }"]
            if SIN in used
            else []
        ),
        *(
            ["", "static inline void lanes_cos(lanes *x) { lanes_turn(x, 1); }"]
            if COS in used
            else []
        ),
        *(["", *root] if SQRT in used else []),
    ]
