"""The order of steps: the same program, fewer values alive at a time."""

from __future__ import annotations

import numpy as np
import pytest
from cases import few

import robomodel as rm
from robomodel.kernels import Program, Trace
from robomodel.kernels.plan import SHORT_PROGRAM, backwards, ordered, permuted
from robomodel.kernels.program import ADD, MUL, Operation


def most_alive(program: Program) -> int:
    """How many values that steps make are alive at once."""
    last = {x: i for i, step in enumerate(program.steps) for x in step.operands if type(x) is int}
    born = [program.inputs + i in last for i in range(len(program.steps))]
    dying = [0] * len(program.steps)
    for x, i in last.items():
        dying[i] += x >= program.inputs
    alive = np.cumsum(born) - np.cumsum([0, *dying[:-1]])
    return int(alive.max(initial=0))


def test_branches_are_finished_one_after_the_other() -> None:
    trace = Trace()
    xs = trace.inputs(20)
    products = [x * y for x, y in zip(xs, reversed(xs), strict=True)][:10]
    roots = [(p * p).sqrt() for p in products]
    total = 0.0
    for root in roots:
        total = total + root
    program = trace.program([total])
    better = permuted(program, backwards(program)[::-1])
    assert most_alive(program) == 11  # the products, and one that is being made of them
    assert most_alive(better) <= 3
    inputs = list(np.random.default_rng(0).normal(size=(20, 5)))
    np.testing.assert_array_equal(better(inputs), program(inputs))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robot", "algorithm"),
    few(
        [("mini_cheetah", "rnea_derivatives"), ("jvrc1", "aba")],
        ("mini_cheetah", "rnea_derivatives"),
    ),
)
def test_long_programs_keep_their_meaning_and_fewer_values_alive(
    robot: str, algorithm: str
) -> None:
    program = rm.compile(rm.robots.load(robot), algorithm).program
    assert len(program.steps) > SHORT_PROGRAM
    better = ordered(program)
    assert sorted(better.counts.items()) == sorted(program.counts.items())
    assert most_alive(better) < most_alive(program)
    made = {step: i for i, step in enumerate(better.steps)}
    assert len(made) == len(better.steps)
    for i, step in enumerate(better.steps):
        assert all(x < better.inputs + i for x in step.operands if type(x) is int)
    inputs = list(np.random.default_rng(1).uniform(0.1, 1.0, size=(program.inputs, 2)))
    for found, expected in zip(better(inputs), program(inputs), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_short_programs_stay_as_they_are() -> None:
    program = rm.compile(rm.robots.load("four_bar"), "aba").program
    assert ordered(program) is program
    assert ordered(program, len(program.steps)) is program
    assert ordered(program, len(program.steps) - 1) is not program


@pytest.mark.parametrize("seed", range(20))
def test_the_next_step_brings_fewest_values_alive_and_stood_last(seed: int) -> None:
    """As said of :func:`ordered`, by looking at all steps each time."""
    rng = np.random.default_rng(seed)
    first, count = 3, 60
    steps = []
    for i in range(count):
        low = max(0, first + i - 12)
        operands = tuple(int(x) for x in rng.integers(low, first + i, 2))
        steps.append(Operation(MUL if i % 2 else ADD, operands))
    program = Program(first, tuple(steps), (first + count - 1, first + count - 5))
    needed = [{x - first for x in step.operands if x >= first} for step in steps]
    left, alive, expected = set(range(count)), set(), []
    while left:
        ready = [i for i in left if not any(i in needed[user] for user in left)]
        taken = min(ready, key=lambda i: (len(needed[i] - alive) - (i in alive), -i))
        expected.append(taken)
        left.remove(taken)
        alive |= needed[taken]
    assert backwards(program) == expected
