"""A program as JavaScript: a function of arrays of floats, by the writer of C with other words.

Engines optimise functions up to a size (V8 some 2 500 steps), and run longer ones a hundred times
as slowly. So long programs are cut into parts (:mod:`robomodel.kernels.plan`) that share arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from robomodel.kernels import c
from robomodel.kernels.plan import KernelPlan, ordered, write
from robomodel.kernels.program import Program

LONGEST, PIECE = 1000, 500  # steps of one function, and of a part where there are several
LOCALS = frozenset(
    ("xs", "rs", "ws", "i", "index", "out", "sized", "Math", "Float64Array", "Uint32Array")
)
"""Names that functions use themselves."""

PREAMBLE = """\
function sized(x, size, name) {
  if (x.length !== size) throw new RangeError(`${name} has ${size} numbers, not ${x.length}`);
}
"""


@dataclass(frozen=True)
class JavaScriptFunction:
    """A program with its name, and the lengths of its arguments and results by name.

    The program's inputs are those of the arguments one after the other, its outputs those of the
    results. Names must be valid in JavaScript, differ, and not be in ``LOCALS``.
    """

    name: str
    program: Program
    arguments: Mapping[str, int]
    results: Mapping[str, int]

    @cached_property
    def plan(self) -> KernelPlan:
        """How the program is cut into parts."""
        sizes = (*self.arguments.values(), sum(self.results.values()))
        return KernelPlan(ordered(self.program), sizes, longest=LONGEST, piece=PIECE)

    def definition(self) -> list[str]:
        """Lines that export the function, whose result is an array, or an object of several.

        A last argument, if given, takes the results and is returned.
        """
        made = {name: f"new Float64Array({size})" for name, size in self.results.items()}
        (first, array), *others = made.items()
        if others:
            fresh = ", ".join(f"{name}: {each}" for name, each in made.items())
            out, into, unpacked = "out", f"{{ {fresh} }}", [f"const {{ {', '.join(made)} }} = out;"]
        else:
            out, into, unpacked = first, array, list[str]()
        head = f"function {self.name}({', '.join(self.arguments)}, {out} = {into}) {{"
        checks = [f'sized({name}, {n}, "{name}");' for name, n in self.arguments.items()]
        checks += [
            *unpacked,
            *(f'sized({name}, {n}, "{name}");' for name, n in self.results.items()),
        ]
        straight = len(self.plan.pieces) == 1
        body = [*checks, *(self._straight() if straight else self._called()), f"return {out};"]
        if straight:
            return [f"export {head}", *_indented(body), "}"]
        return [
            f"export const {self.name} = (() => {{",
            *_indented([*self._arrays(), *self._parts(), f"return {head}", *_indented(body), "};"]),
            "})();",
        ]

    def _straight(self) -> list[str]:
        """Statements on names: arguments are read first, results stored last."""
        names: dict[int, str] = {}
        read: list[str] = []
        for argument, numbers in zip(self.arguments, self.plan.arguments(), strict=True):
            for i in numbers:
                if i in self.plan.used:
                    names[i] = f"{argument}_{i - numbers.start}"
                    read.append(f"const {names[i]} = {argument}[{i - numbers.start}];")
        body = c.WholeProgram(_Statements(), names)
        write(self.plan, 0, body)
        outputs = body.outputs(self.plan, self.results)
        stored = [f"{result}[{i}] = {x};" for result, i, x in outputs]
        return [*read, *body.of.lines, *stored]

    def _arrays(self) -> list[str]:
        """Arrays that parts share: arguments, distinct results and their indices, workspace."""
        plan, first = self.plan, len(self.plan.columns)
        sizes = (plan.program.inputs, first + len(plan.constants), plan.workspace)
        lines = [
            f"const {name} = new Float64Array({size});"
            for name, size in zip(c.ARRAYS.values(), sizes, strict=True)
        ]
        if plan.constants:
            constants = ", ".join(_Statements().constant(x) for x in plan.constants)
            lines.append(f"rs.set([{constants}], {first});")
        return [*lines, f"const index = Uint32Array.of({', '.join(map(str, plan.index))});"]

    def _parts(self) -> list[str]:
        lines: list[str] = []
        for n in range(len(self.plan.pieces)):
            body = _Statements()
            write(self.plan, n, body)
            lines += [f"function part{n}() {{", *_indented(body.lines), "}"]
        return lines

    def _called(self) -> list[str]:
        """The statements that run the parts."""
        lines = [
            f"xs.set({argument}, {numbers.start});"
            for argument, numbers in zip(self.arguments, self.plan.arguments(), strict=True)
        ]
        lines += [f"part{n}();" for n in range(len(self.plan.pieces))]
        first = 0
        for result, count in self.results.items():
            at = f"index[i + {first}]" if first else "index[i]"
            lines.append(f"for (let i = 0; i < {count}; ++i) {result}[i] = rs[{at}];")
            first += count
        return lines


class _Statements(c.Statements):
    """The statements of one piece, which works on arrays."""

    def __init__(self) -> None:
        super().__init__("float64", before="", kind="const")

    def constant(self, x: float) -> str:
        if math.isnan(x):
            return "NaN"
        text = "Infinity" if math.isinf(x) else repr(abs(x))
        return f"(-{text})" if math.copysign(1.0, x) < 0.0 else text

    def called(self, function: str, x: str) -> str:
        return f"Math.{function}({x})"

    def fused(self, a: str, b: str, c: str) -> str:
        return f"{a} * {b} + {c}"


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
