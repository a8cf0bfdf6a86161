"""A program as C99: functions without static memory.

A short program is one function of named values. A long one is cut into parts, as machine code is
(:mod:`robomodel.kernels.plan`), so that compile time grows linearly with its length; values that
cross a cut are in arrays on the stack. Only ``sin``, ``cos`` and ``sqrt`` are called.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from robomodel.kernels.iterated import ACCURACIES, FAULT, STATE, IteratedFunction
from robomodel.kernels.plan import KernelPlan, Memory, Target, ordered, write
from robomodel.kernels.program import (
    ADD,
    COS,
    DIV,
    FMA,
    FMS,
    FNMA,
    MUL,
    NEG,
    PRECISIONS,
    SELECT,
    SIN,
    SQRT,
    SUB,
    Dtype,
    Operation,
    Program,
)

TYPES: Mapping[Dtype, str] = {"float64": "double", "float32": "float"}
SIGNS = {ADD: "+", SUB: "-", MUL: "*", DIV: "/"}
CALLED = {SIN: "sin", COS: "cos", SQRT: "sqrt"}
LOCALS = frozenset(("xs", "rs", "ws", "i"))
"""Names that functions use themselves."""
ARRAYS: Mapping[Memory, str] = {"input": "xs", "result": "rs", "work": "ws"}
STORED_SINGLY = 64  # most results that are stored one by one; more by a loop over a table


@dataclass(frozen=True)
class CFunction:
    """A program with the names of its function in C, of its arguments and of its results.

    ``arguments`` and ``results``: name → how many numbers; the program's inputs are those of the
    arguments one after the other, its outputs those of the results. Names must be valid in C,
    differ, and not be in ``LOCALS``.
    """

    name: str
    program: Program
    arguments: Mapping[str, int]
    results: Mapping[str, int]
    dtype: Dtype = "float64"
    local: bool = False  # for functions of the same file only

    @property
    def type(self) -> str:
        """The C type of a number."""
        return TYPES[self.dtype]

    @cached_property
    def plan(self) -> KernelPlan:
        """How the program is cut into parts."""
        sizes = (*self.arguments.values(), sum(self.results.values()))
        return KernelPlan(ordered(self.program), sizes, self.dtype)

    @property
    def declaration(self) -> str:
        """The head of the function of one state, without a semicolon."""
        parameters = [f"const {self.type} {name}[{n}]" for name, n in self.arguments.items()]
        parameters += [f"{self.type} {name}[{n}]" for name, n in self.results.items()]
        return f"{'static ' * self.local}void {self.name}({', '.join(parameters)})"

    @property
    def in_parts(self) -> bool:
        """True if the function of one state works on arrays."""
        return len(self.plan.pieces) > 1

    @property
    def stack(self) -> int:
        """Bytes on the stack: arrays, or else the most values that are alive at a time.

        Compilers add what they save and spill.
        """
        numbers = sum(n for _, n in _arrays(self)) if self.in_parts else _alive(self.plan)
        return numbers * self.plan.precision.bytes

    @property
    def cost(self) -> str:
        """Operations and use of the stack, in words."""
        what = (
            f"{self.stack} bytes of arrays"
            if self.in_parts
            else f"at most {self.stack} bytes of values at a time, part of them in registers"
        )
        return f"{self.program.flops} floating-point operations; stack: {what}."

    def definition(self) -> list[str]:
        """The function of one state."""
        return _on_arrays(self) if self.in_parts else _straight(self)


LEAST = """\
/* Damped steps of Gauss and Newton's method (Levenberg and Marquardt) from y to where a sum of
   squares is least; given[0] is the damping. Returns 1 if it has trusted in a last short step,
   which it does unless it shall be careful. */
static int NAME(void (*step)(const TYPE *, const TYPE *, TYPE *, TYPE *), int count, int most,
                int careful, TYPE *y, TYPE *given, TYPE *moved, TYPE *best)
{
    TYPE least = (TYPE)INFINITY, before, damping = 0, squares, way;
    int again = 0, i, n; /* again: from the best y, with more damping */
    for (i = 0; i < count; ++i) best[i] = y[i];
    for (n = 0; n < most; ++n) {
        given[0] = damping;
        step(y, given, moved, &squares);
        if (again || squares < least) {
            before = least;
            if (!again) {
                least = squares;
                damping /= 2;
                for (i = 0; i < count; ++i) best[i] = y[i];
                if (least <= GOAL) return 0;
            }
            for (i = 0, way = 0; i < count; ++i) {
                way += (moved[i] - y[i]) * (moved[i] - y[i]);
                y[i] = moved[i];
            }
            if (!(again || careful) && way <= SHORT && least <= SHRUNK * before) return 1;
            again = 0;
        } else {
            for (i = 0; i < count; ++i) y[i] = best[i];
            if (!(least < (TYPE)INFINITY) || least <= ENOUGH || damping > MUCH) return 0;
            damping = damping > 0 ? 4 * damping : 1;
            again = 1;
        }
    }
    for (i = 0; i < count; ++i) y[i] = best[i];
    return 0;
}"""
"""The loop around a step's program."""


@dataclass(frozen=True)
class CIterated:
    """A function found by iteration, with its name in C and names of arguments and results.

    ``arguments`` and ``results``: as of :class:`CFunction`, in the order of those of ``function``.
    The function returns a status, 0 if its results are what was asked for. ``loop`` is the name of
    the file's loop (:func:`loop`).
    """

    name: str
    function: IteratedFunction
    arguments: Mapping[str, int]
    results: Mapping[str, int]
    loop: str
    dtype: Dtype = "float64"

    @property
    def type(self) -> str:
        """The C type of a number."""
        return TYPES[self.dtype]

    @property
    def declaration(self) -> str:
        """The head of the function, without a semicolon."""
        head = CFunction(self.name, Program(0, (), ()), self.arguments, self.results, self.dtype)
        return head.declaration.replace("void", "int", 1)

    @property
    def cost(self) -> str:
        """Operations and use of the stack, in words."""
        once = sum(f.program.flops for name, f in self._parts.items() if "step" not in name)
        steps = sum(f.program.flops for name, f in self._parts.items() if "step" in name)
        own = sum(n for _, n in self._arrays()) * PRECISIONS[self.dtype].bytes
        stack = own + max(f.stack for f in self._parts.values())
        return (
            f"{once} floating-point operations, and {steps} a step of all loops; stack: {stack} "
            "bytes of arrays and values."
        )

    @cached_property
    def _names(self) -> dict[str, str]:
        """The names in C of what the parts take and give."""
        f = self.function
        return dict(zip((*f.arguments, *f.results), (*self.arguments, *self.results), strict=True))

    @cached_property
    def _parts(self) -> dict[str, CFunction]:
        def named(sizes: Mapping[str, int]) -> dict[str, int]:
            return {self._names.get(name, name): size for name, size in sizes.items()}

        return {
            part: CFunction(
                f"{self.name}_{part}", program, named(given), named(results), self.dtype, local=True
            )
            for part, (program, given, results) in self.function.parts.items()
        }

    def _arrays(self) -> Iterator[tuple[str, int]]:
        stages = self.function.stages
        yield from ((STATE, self.function.states), (FAULT, 1))
        longest = max((len(stage.moved) for stage in stages), default=0)
        if longest:
            yield from ((name, longest) for name in ("y", "moved", "best"))
            yield "given", max(stage.given for stage in stages)

    def definition(self) -> list[str]:
        """Its parts, and the function that calls them."""
        f, parts, lines = self.function, self._parts, list[str]()
        for part in parts.values():
            lines += [*part.definition(), ""]
        lines += [self.declaration, "{"]
        for n, stage in enumerate(f.stages):
            table = ", ".join(map(str, stage.moved))
            count = len(stage.moved)
            lines.append(f"    static const unsigned short at{n}[{count}] = {{{table}}};")
        lines += [f"    {self.type} {name}[{count}];" for name, count in self._arrays()]
        start, finish = parts["start"], parts["finish"]
        copies = {self._names[name]: f"{self._names[name]}_given" for name in f.again}
        for name, copy in copies.items():
            size = self.arguments[name]
            lines.append(f"    {self.type} {copy}[{size}];")
            lines.append(f"    for (int i = 0; i < {size}; ++i) {copy}[i] = {name}[i];")
        lines.append(f"    {start.name}({', '.join(start.arguments)}, {STATE});")
        body: list[str] = []
        for n, stage in enumerate(f.stages):
            each, count = f"for (int i = 0; i < {len(stage.moved)}; ++i)", len(stage.moved)
            if before := parts.get(f"before{n}"):
                taken = ", ".join(copies.get(name, name) for name in before.arguments)
                body.append(f"{before.name}({taken}, given + 1);")
            settled = f"{parts[f'step{n}'].name}, {count}, {f.steps}, careful"
            body += [
                f"{each} y[i] = x[at{n}[i]];",
                f"trusted |= {self.loop}({settled}, y, given, moved, best);",
                f"{each} x[at{n}[i]] = y[i];",
            ]
        taken = ", ".join(copies.get(name, name) for name in finish.arguments)
        body.append(f"{finish.name}({taken}, {', '.join(finish.results)});")
        accuracy = ACCURACIES[self.dtype]
        if f.stages:
            enough = literal(accuracy.enough, self.dtype)
            lines += ["    int careful = 0, trusted;", "    do {", "        trusted = 0;"]
            lines += [f"        {line}" for line in body]
            lines.append(f"    }} while (trusted && !careful++ && !({FAULT}[0] <= {enough}));")
        else:
            lines += [f"    {line}" for line in body]
        fault = literal(accuracy.fault, self.dtype)
        return [*lines, f"    return !({FAULT}[0] < {fault});", "}"]


def loop(name: str, dtype: Dtype) -> list[str]:
    """The loop that functions of a file share."""
    accuracy, text = ACCURACIES[dtype], LEAST
    for word, value in (
        ("NAME", name),
        ("TYPE", TYPES[dtype]),
        ("GOAL", literal(accuracy.goal**2, dtype)),
        ("ENOUGH", literal(accuracy.enough**2, dtype)),
        ("SHORT", literal(accuracy.short, dtype)),
        ("SHRUNK", literal(1e-4, dtype)),
        ("MUCH", literal(accuracy.damping, dtype)),
    ):
        text = text.replace(word, value)
    return text.splitlines()


def preamble(dtype: Dtype) -> list[str]:
    """The head of a file of functions."""
    # never the library's function, which is slow on a processor without the instruction
    fused = (
        "defined(__FMA__) || defined(__aarch64__) || defined(FP_FAST_FMA)"
        if dtype == "float64"
        else "defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(FP_FAST_FMAF)"
    )
    called = "fma" if dtype == "float64" else "fmaf"
    return [
        "#include <math.h>",
        "",
        "/* a b + c, rounded once where the processor has an instruction for it */",
        f"#if {fused}",
        f"#define FMA(a, b, c) {called}(a, b, c)",
        "#else",
        "#define FMA(a, b, c) ((a) * (b) + (c))",
        "#endif",
        "",
        "#ifdef __cplusplus",
        "#define RESTRICT __restrict",
        "#else",
        "#define RESTRICT restrict",
        "#endif",
    ]


# ---- numbers and steps ---------------------------------------------------------------------------


def literal(x: float, dtype: Dtype) -> str:
    """A number as C reads it, rounded to its type; in brackets if it has a sign."""
    x = x if dtype == "float64" else ctypes.c_float(x).value
    if math.isnan(x):
        return f"({TYPES[dtype]})NAN"
    if math.isinf(x):
        text = f"({TYPES[dtype]})INFINITY"
    else:
        text = repr(abs(x)) if dtype == "float64" else f"{_short(abs(x))}f"
    return f"(-{text})" if math.copysign(1.0, x) < 0.0 else text


def _short(x: float) -> str:
    """The fewest digits that distinguish it in single precision."""
    texts = (f"{x:.{n}g}" for n in range(1, 10))
    text = next(text for text in texts if ctypes.c_float(float(text)).value == x)
    return text if {".", "e"} & {*text} else f"{text}.0"


class Statements(Target):
    """C statements of one piece, which works on arrays; base of JavaScript's.

    ``before`` precedes each line, ``kind`` (``const double``) each name.
    """

    def __init__(self, dtype: Dtype, before: str = "    ", kind: str = "") -> None:
        self.dtype, self.before = dtype, before
        self.kind = kind or f"const {TYPES[dtype]}"
        self.lines: list[str] = []

    def constant(self, x: float) -> str:
        """A number as a literal."""
        return literal(x, self.dtype)

    def load(self, memory: Memory, at: int) -> str:
        """Read an entry of an array; returns the name."""
        return self.named(f"{ARRAYS[memory][0]}{at}", f"{ARRAYS[memory]}[{at}]")

    def store(self, x: str, memory: Memory, at: int) -> None:
        """Write a value into an array."""
        self.lines.append(f"{self.before}{ARRAYS[memory]}[{at}] = {x};")

    def compute(self, number: int, step: Operation, names: list[str]) -> str:
        """Write the statement of a step; returns the name of its value."""
        return self.named(f"t{number}", self.expression(step, names))

    def named(self, name: str, expression: str) -> str:
        """Define a constant of this name."""
        self.lines.append(f"{self.before}{self.kind} {name} = {expression};")
        return name

    def called(self, function: str, x: str) -> str:
        """A call of the mathematical library."""
        return f"{function}{'' if self.dtype == 'float64' else 'f'}({x})"

    def fused(self, a: str, b: str, c: str) -> str:
        """The expression a b + c."""
        return f"FMA({a}, {b}, {c})"

    def expression(self, step: Operation, names: list[str]) -> str:
        """The expression of a step."""
        if step.operation in CALLED:
            return self.called(CALLED[step.operation], names[0])
        if step.operation in SIGNS:
            a, b = names
            return f"{a} {SIGNS[step.operation]} {b}"
        if step.operation == NEG:
            return f"-{names[0]}"
        a, b, c = names
        if step.operation == SELECT:
            return f"{a} < {self.constant(0.0)} ? {b} : {c}"
        if step.operation == FMA:
            return self.fused(a, b, c)
        if step.operation == FMS:
            return self.fused(a, b, f"-{c}")
        assert step.operation == FNMA
        return self.fused(f"-{a}", b, c)


class WholeProgram(Target):
    """A short program as one piece, written by ``of``; arguments and results are names."""

    def __init__(self, of: Statements, inputs: Mapping[int, str]) -> None:
        self.of, self._inputs = of, inputs
        self.results: dict[int, str] = {}

    def constant(self, x: float) -> str:
        """A number as a literal."""
        return self.of.constant(x)

    def load(self, memory: Memory, at: int) -> str:
        """The name of an argument."""
        return self._inputs[at]

    def store(self, x: str, memory: Memory, at: int) -> None:
        """Keep the name of a result's value."""
        self.results[at] = x

    def compute(self, number: int, step: Operation, names: list[str]) -> str:
        """Write the statement of a step; returns the name of its value."""
        return self.of.compute(number, step, names)

    def outputs(
        self, plan: KernelPlan, results: Mapping[str, int]
    ) -> Iterator[tuple[str, int, str]]:
        """Each number of the results: its result, its index there, and its expression."""
        constants = enumerate(plan.constants, len(plan.columns))
        self.results |= {at: self.constant(x) for at, x in constants}
        columns = iter(plan.index)
        for name, count in results.items():
            for i in range(count):
                yield name, i, self.results[next(columns)]


def _alive(plan: KernelPlan) -> int:
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
    names: dict[int, str] = {}
    lines = [f"{f.declaration}", "{"]
    for (argument, _), numbers in zip(f.arguments.items(), f.plan.arguments(), strict=True):
        used = [i for i in numbers if i in f.plan.used]
        if not used:
            lines.append(f"    (void){argument};")
        for i in used:
            names[i] = f"{argument}_{i - numbers.start}"
            lines.append(f"    const {f.type} {names[i]} = {argument}[{i - numbers.start}];")

    body = WholeProgram(Statements(f.dtype), names)
    write(f.plan, 0, body)
    stored = [f"    {name}[{i}] = {x};" for name, i, x in body.outputs(f.plan, f.results)]
    return [*lines, *body.of.lines, *stored, "}"]


def _on_arrays(f: CFunction) -> list[str]:
    """The parts, and the function that calls them on copies of arguments, results, a workspace."""
    lines = [*_parts(f), *_tables(f), f"{f.declaration}", "{"]
    lines += [f"    {f.type} {name}[{count}];" for name, count in _arrays(f)]
    for (argument, count), numbers in zip(f.arguments.items(), f.plan.arguments(), strict=True):
        at = f"xs[{numbers.start} + i]" if numbers.start else "xs[i]"
        lines.append(f"    for (int i = 0; i < {count}; ++i) {at} = {argument}[i];")
    for i, constant in enumerate(f.plan.constants, len(f.plan.columns)):
        lines.append(f"    rs[{i}] = {literal(constant, f.dtype)};")
    names = ", ".join(name for name, _ in _arrays(f))
    lines += [f"    {f.name}_part{n}({names});" for n in range(len(f.plan.pieces))]
    first = 0
    for result, count in f.results.items():
        columns = f.plan.index[first : first + count]
        first += count
        if count <= STORED_SINGLY:
            lines += [f"    {result}[{i}] = rs[{column}];" for i, column in enumerate(columns)]
        else:
            table = f"{f.name}_{result}_at"
            lines.append(f"    for (int i = 0; i < {count}; ++i) {result}[i] = rs[{table}[i]];")
    return [*lines, "}"]


def _arrays(f: CFunction) -> Iterator[tuple[str, int]]:
    """The arrays that parts share and their sizes, none of them zero, which C does not allow."""
    plan = f.plan
    yield "xs", plan.program.inputs
    yield "rs", len(plan.columns) + len(plan.constants)
    if plan.workspace:
        yield "ws", plan.workspace


def _parts(f: CFunction) -> list[str]:
    """The parts as functions of arrays."""
    lines: list[str] = []
    names = [name for name, _ in _arrays(f)]
    for n in range(len(f.plan.pieces)):
        body = Statements(f.dtype)
        write(f.plan, n, body)
        text = "\n".join(body.lines)
        unused = [f"    (void){name};" for name in names if f"{name}[" not in text]
        parameters = ", ".join(
            f"{'const ' if name == 'xs' else ''}{TYPES[f.dtype]} *RESTRICT {name}" for name in names
        )
        head = f"static void {f.name}_part{n}({parameters})"
        lines += [head, "{", *unused, *body.lines, "}", ""]
    return lines


def _tables(f: CFunction) -> list[str]:
    """Tables of the distinct result that each entry of a long result is."""
    lines, at = [], 0
    kind = "unsigned char" if max(f.plan.index, default=0) < 256 else "unsigned short"
    kind = "unsigned int" if max(f.plan.index, default=0) > 65535 else kind
    for result, count in f.results.items():
        if count > STORED_SINGLY:
            entries = ", ".join(map(str, f.plan.index[at : at + count]))
            lines.append(f"static const {kind} {f.name}_{result}_at[{count}] = {{{entries}}};")
        at += count
    return [*lines, ""] if lines else []
