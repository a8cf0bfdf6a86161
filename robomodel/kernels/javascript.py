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
from robomodel.kernels.iterated import ACCURACIES, FAULT, STATE, IteratedFunction
from robomodel.kernels.plan import KernelPlan, ordered, write
from robomodel.kernels.program import Program

LONGEST, PIECE = 1000, 500  # steps of one function, and of a part where there are several
_ARRAYS = ("xs", "rs", "ws", "i", "index", "out", "sized", "Math", "Float64Array", "Uint32Array")
_LOOP = ("x", "start", "finish", "least", "given", "moved", "best", "squares", "fault", "status")
LOCALS = frozenset((*_ARRAYS, *_LOOP))
"""Names that functions use themselves."""

PREAMBLE = """\
function sized(x, size, name) {
  if (x.length !== size) throw new RangeError(`${name} has ${size} numbers, not ${x.length}`);
}
"""

LEAST = """\
// Damped steps of Gauss and Newton's method (Levenberg and Marquardt) from y to where a sum of
// squares is least; given[0] is the damping. Returns true if it has trusted in a last short step,
// which it does unless it shall be careful.
function least(step, most, careful, y, given, out, best) {
  const { moved, squares } = out, count = y.length;
  let least = Infinity, before, damping = 0, again = false;  // again: from the best y, more damped
  best.set(y);
  for (let n = 0; n < most; ++n) {
    given[0] = damping;
    step(y, given, out);
    if (again || squares[0] < least) {
      before = least;
      if (!again) {
        least = squares[0];
        damping /= 2;
        for (let i = 0; i < count; ++i) best[i] = y[i];
        if (least <= GOAL) return false;
      }
      let way = 0;
      for (let i = 0; i < count; ++i) {
        way += (moved[i] - y[i]) * (moved[i] - y[i]);
        y[i] = moved[i];
      }
      if (!(again || careful) && way <= SHORT && least <= 1e-4 * before) return true;
      again = false;
    } else {
      y.set(best);
      if (!(least < Infinity) || least <= ENOUGH || damping > MUCH) return false;
      damping = damping > 0 ? 4 * damping : 1;
      again = true;
    }
  }
  y.set(best);
  return false;
}
"""
for _word, _value in (
    ("GOAL", ACCURACIES["float64"].goal ** 2),
    ("ENOUGH", ACCURACIES["float64"].enough ** 2),
    ("SHORT", ACCURACIES["float64"].short),
    ("MUCH", ACCURACIES["float64"].damping),
):
    LEAST = LEAST.replace(_word, repr(_value))
"""The loop around a step's program."""


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
    local: bool = False  # for functions of the same scope, which give arrays of the right lengths

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
        before = [] if self.local else _checks(self.arguments)
        before += [*unpacked, *([] if self.local else _checks(self.results))]
        straight = len(self.plan.pieces) == 1
        body = [*before, *(self._straight() if straight else self._called()), f"return {out};"]
        export = "" if self.local else "export "
        if straight:
            return [f"{export}{head}", *_indented(body), "}"]
        return [
            f"{export}const {self.name} = (() => {{",
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


@dataclass(frozen=True)
class JavaScriptIterated:
    """A function found by iteration, with its name and names of its arguments and results.

    ``arguments`` and ``results``: as of :class:`JavaScriptFunction`, in the order of those of
    ``function``. Its result is an object of them and of ``status``, 0 if they are what was asked
    for.
    """

    name: str
    function: IteratedFunction
    arguments: Mapping[str, int]
    results: Mapping[str, int]

    def definition(self) -> list[str]:
        """Lines that export the function."""
        f = self.function
        own = dict(zip((*f.arguments, *f.results), (*self.arguments, *self.results), strict=True))

        def named(sizes: Mapping[str, int]) -> dict[str, int]:
            return {own.get(name, name): size for name, size in sizes.items()}

        lines = [f"const {n} = new Float64Array({m});" for n, m in ((STATE, f.states), (FAULT, 1))]
        parts: dict[str, JavaScriptFunction] = {}
        for part, (program, given, results) in f.parts.items():
            parts[part] = JavaScriptFunction(
                part, program, named(given), named(results), local=True
            )
            lines += parts[part].definition()
        body = [
            *_checks(self.arguments),
            f"const {{ {', '.join(self.results)} }} = out;",
            *_checks(self.results),
            f"start({', '.join(parts['start'].arguments)}, {STATE});",
        ]
        copies = {own[name]: f"{own[name]}_given" for name in f.again}
        lines += [f"const {copy} = new Float64Array({self.arguments[name]});"
                  for name, copy in copies.items()]  # fmt: skip
        body += [f"{copy}.set({name});" for name, copy in copies.items()]
        settling: list[str] = []
        for n, stage in enumerate(f.stages):
            count = len(stage.moved)
            lines += [
                f"const at{n} = Uint16Array.of({', '.join(map(str, stage.moved))});",
                *(f"const {name}{n} = new Float64Array({count});" for name in ("y", "best")),
                f"const given{n} = new Float64Array({stage.given});",
                f"const constants{n} = given{n}.subarray(1);",
                f"const out{n} = {{ moved: new Float64Array({count}), "
                "squares: new Float64Array(1) };",
            ]
            if before := parts.get(f"before{n}"):
                taken = ", ".join(copies.get(name, name) for name in before.arguments)
                settling.append(f"before{n}({taken}, constants{n});")
            each = f"for (let i = 0; i < {count}; ++i)"
            settled = f"step{n}, {f.steps}, careful, y{n}, given{n}, out{n}, best{n}"
            settling += [
                f"{each} y{n}[i] = x[at{n}[i]];",
                f"trusted = least({settled}) || trusted;",
                f"{each} x[at{n}[i]] = y{n}[i];",
            ]
        fresh = ", ".join(f"{name}: new Float64Array({n})" for name, n in self.results.items())
        finish, accuracy = parts["finish"], ACCURACIES["float64"]
        taken = ", ".join(copies.get(name, name) for name in finish.arguments)
        settling.append(f"finish({taken}, {{ {', '.join(finish.results)} }});")
        if f.stages:
            body += ["let careful = false, trusted;", "for (;;) {", "  trusted = false;"]
            body += _indented(settling)
            enough = f"{FAULT}[0] <= {accuracy.enough!r}"
            body += [f"  if (!trusted || careful || {enough}) break;", "  careful = true;", "}"]
        else:
            body += settling
        body += [
            f"out.status = {FAULT}[0] < {accuracy.fault!r} ? 0 : 1;",
            "return out;",
        ]
        head = f"{self.name}({', '.join(self.arguments)}, out = {{ {fresh}, status: 0 }})"
        lines += [f"return function {head} {{", *_indented(body), "};"]
        return [f"export const {self.name} = (() => {{", *_indented(lines), "})();"]


def _checks(sizes: Mapping[str, int]) -> list[str]:
    """Statements that refuse arrays of other lengths."""
    return [f'sized({name}, {n}, "{name}");' for name, n in sizes.items()]


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
