"""A function whose result is found by iteration: programs, and a loop that runs one of them.

Straight-line programs repeat their text for every step of an iteration. Here the step is a program
of its own, and the loop around it, of which there is one in each language (:mod:`.c`,
:mod:`.javascript`), knows a state, a sum of squares and a damping only. It goes on until the sum is
as small as rounding leaves it or can no longer be reduced, and keeps the best state: so what has no
zero ends where the sum is least (Levenberg 1944, Marquardt 1963).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from robomodel.kernels.function import Shape, TracedFunction
from robomodel.kernels.program import Dtype, Operation, Program, Reference

STATE, DAMPING, FAULT = "x", "damping", "fault"
"""Names of arguments and results of parts, besides those of the whole function."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far a loop goes, in the units of what is squared.

    Attributes:
        goal: The root of the sum of squares at which the loop ends at once.
        short: Square of a step with which it ends, too, as steps are shrinking: conditions fail by
            that after it, as far as they bend by 1 for each unit of the state. If the result's
            fault shows that they fail by more than ``enough``, the loop goes on, and checks.
        enough: The root at which it ends as soon as a step does not help.
        fault: The greatest ``fault`` of a result that is what was asked for.
        damping: The damping beyond which steps are within rounding.
    """

    goal: float
    short: float
    enough: float
    fault: float
    damping: float


ACCURACIES: Mapping[Dtype, Accuracy] = {
    "float64": Accuracy(1e-14, 1e-12, 1e-12, 1e-10, 1e8),
    "float32": Accuracy(1e-7, 1e-7, 1e-5, 1e-5, 1e4),  # numbers near 1 have 6e-8
}


@dataclass(frozen=True, eq=False)
class Stage:
    """Some entries of the state, and the program of a step that moves them.

    ``step``: from the state "x", "damping" and further arguments of the whole function to the new
    values of the entries ``moved`` and the sum of squares at x. Zero damping is Gauss and Newton's
    step; the more there is, the shorter the step, and the more it goes downhill.
    """

    step: TracedFunction
    moved: tuple[int, ...]

    @cached_property
    def programs(self) -> tuple[Program, Program]:
        """All that does not change from step to step; a step on entries, damping and these."""
        first = self.step.arguments[STATE]
        return divided(self.step.program, (*self.moved, first))

    @property
    def before(self) -> dict[str, int]:
        """The arguments of what does not change, by name: all but the damping."""
        return {name: n for name, n in self.step.arguments.items() if name != DAMPING}

    @property
    def given(self) -> int:
        """The number of values that a step takes besides entries: the damping and constants."""
        return self.programs[1].inputs - len(self.moved)


def divided(program: Program, varying: Sequence[int]) -> tuple[Program, Program]:
    """A program as two, for many runs that differ in some inputs only.

    The first takes all inputs but the last of ``varying``, which nothing precedes in it, and gives
    what the second takes behind the varying ones.
    """
    depends = set(varying)
    for i, step in enumerate(program.steps, program.inputs):
        if any(type(x) is int and x in depends for x in step.operands):
            depends.add(i)
    inner = [i for i in range(len(program.steps)) if program.inputs + i in depends]
    used = [x for i in inner for x in program.steps[i].operands] + list(program.outputs)
    constants = [x for x in dict.fromkeys(used) if type(x) is int and x not in depends]
    last = varying[-1]

    def part(inputs: Sequence[int], steps: Sequence[int], outputs: Sequence[Reference]) -> Program:
        number = {x: n for n, x in enumerate(inputs)}
        number |= {program.inputs + i: len(inputs) + n for n, i in enumerate(steps)}

        def reference(x: Reference) -> Reference:
            return number[x] if type(x) is int else x

        return Program(
            len(inputs),
            tuple(
                Operation(program.steps[i].operation,
                          tuple(reference(x) for x in program.steps[i].operands))
                for i in steps
            ),
            tuple(reference(x) for x in outputs),
        )  # fmt: skip

    outer = [i for i in range(len(program.steps)) if program.inputs + i not in depends]
    others = [x for x in range(program.inputs) if x != last]
    return part(others, outer, constants), part([*varying, *constants], inner, program.outputs)


@dataclass(frozen=True, eq=False)
class IteratedFunction:
    """A function that begins at a state, lets each stage in turn settle, and reads the results.

    Attributes:
        name: Its name in code.
        arguments: Length of each argument, by name.
        results: Shape of each result, by name. A status follows them: 0 if the fault is small.
        start: From some of the arguments to the state "x".
        stages: The stages, one after the other.
        finish: From "x" and some of the arguments to the results, and "fault": how far they are
            from what was asked for.
        steps: Evaluations of a stage's step at most: Newton's method takes 4 or 5, and 20 to 200
            where a sum of squares has no zero.
    """

    name: str
    arguments: Mapping[str, int]
    results: Mapping[str, Shape]
    start: TracedFunction
    stages: tuple[Stage, ...]
    finish: TracedFunction
    steps: int = 200
    origin: None = None

    @property
    def states(self) -> int:
        """The number of entries of the state."""
        return math.prod(self.start.results[STATE])

    @property
    def again(self) -> tuple[str, ...]:
        """The arguments that are read after results may have taken their place."""
        read = [n for stage in self.stages for n in stage.before] + list(self.finish.arguments)
        return tuple(name for name in self.arguments if name in read and self.stages)

    @property
    def parts(self) -> dict[str, tuple[Program, dict[str, int], dict[str, int]]]:
        """Every program by its name, with sizes of its arguments and results.

        "before0" and "step0" are those of the first stage.
        """
        sizes = {name: math.prod(shape) for name, shape in self.results.items()}
        result = {"start": (self.start.program, dict(self.start.arguments), {STATE: self.states})}
        for n, stage in enumerate(self.stages):
            before, step = stage.programs
            count, constants = len(stage.moved), stage.given - 1
            if constants:
                result[f"before{n}"] = before, stage.before, {"constants": constants}
            arguments = {"y": count, "given": stage.given}
            result[f"step{n}"] = step, arguments, {"moved": count, "squares": 1}
        result["finish"] = self.finish.program, dict(self.finish.arguments), {**sizes, FAULT: 1}
        return result
