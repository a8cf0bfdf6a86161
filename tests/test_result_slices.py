"""Programs in slices of their results: what each has, how they are chosen, and their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_targets import on_card

from robomodel.cuda import ptx, slices
from robomodel.cuda.ptx import gathered
from robomodel.cuda.slices import Slice, alive, divided, sliced, spilled
from robomodel.kernels import Program, Trace
from robomodel.kernels.plan import KernelPlan
from robomodel.kernels.program import ADD, MUL, SQRT, Operation

each_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])


def branches(count: int, width: int, shared: int = 0) -> Program:
    """Results in turn from so many branches, of which each keeps ``width`` values to its end.

    They begin with a chain of ``shared`` steps, which all of them need. A constant, an input and
    results that stand there again come last.
    """
    trace = Trace()
    x, y = trace.inputs(2)
    for _ in range(shared):
        x = x * y + 0.5
    results = []
    for n in range(count):
        kept = [x + (n + 1.0) * y]
        for k in range(width):
            kept.append((kept[-1] * kept[-1] + (0.001 * k + 0.1)).sqrt() * 0.9)
        total = kept[-1]
        for value in kept:  # the first again at last
            total = total * value + 0.1
        results.append([total, total * y, total + 1.0])
    every = [results[n][k] for k in range(3) for n in range(count)]
    return trace.program([*every, 2.5, trace.inputs(1)[0], *every[:2], -0.0, 2.5]).fused()


def told(made: tuple[Slice, ...]) -> list[int]:
    return sorted(place for each in made for place in each.places)


def slices_agree(program: Program, dtype: str, made: tuple[Slice, ...] | None = None) -> None:
    """The numbers of all slices, in several blocks of states, are the program's to the last bit."""
    states = np.random.default_rng(3).uniform(0.5, 1.5, (70, program.inputs)).astype(dtype)
    run = on_card(program, [program.inputs, len(program.outputs)], dtype, slices=made)
    alone = on_card(program, [program.inputs, len(program.outputs)], dtype,
                    slices=divided(program, [program.distinct]))  # fmt: skip
    found = run([states])
    np.testing.assert_array_equal(found, alone([states]))
    if dtype == "float64":
        expected = program([*states.T])
        for k, x in enumerate(expected):
            np.testing.assert_allclose(found[:, k], x, rtol=1e-13, atol=0)
        assert np.signbit(found[:, -2]).all()


@pytest.mark.slow_cases("float64")
@each_dtype
def test_any_slices_give_the_same_numbers(dtype: str) -> None:
    program = branches(3, 5, 4)
    values = program.distinct
    for groups in ([values], [[x] for x in values], [values[::2], values[1::2]]):
        made = divided(program, groups)
        assert told(made) == list(range(len(program.outputs)))
        slices_agree(program, dtype, made)


@pytest.mark.slow
@each_dtype
def test_more_results_than_a_block_gathers_and_more_steps_than_a_function(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (ptx, slices):
        monkeypatch.setattr(module, "LONGEST_FUNCTION", 300)
    program = branches(90, 3)
    whole = divided(program, [program.distinct])
    plan = KernelPlan(whole[0].program, (program.inputs, len(program.outputs)), longest=300)
    assert len(plan.pieces) > 3
    assert plan.workspace
    assert len(plan.columns) > gathered(dtype)
    slices_agree(program, dtype, whole)
    slices_agree(program, dtype, divided(program, [program.distinct[:-3], program.distinct[-3:]]))


@each_dtype
def test_a_program_that_fits_is_one_slice(dtype: str) -> None:
    program = branches(3, 20)
    (whole,) = sliced(program, dtype, gathered(dtype))
    assert whole.places == tuple(range(len(program.outputs)))
    assert len(whole.program.steps) == len(program.steps)
    constant = Program(1, (), (1.0,) * 500 + (0,))
    assert len(sliced(constant, dtype, gathered(dtype))) == 1
    slices_agree(Program(3, (), (1.0, 0, 2, -0.0, 2)), dtype)


@pytest.mark.slow
@each_dtype
def test_what_shares_no_steps_becomes_slices(dtype: str) -> None:
    """Six branches with 300 values each that live long: each is a slice, or some together."""
    program = branches(6, 250)
    made = sliced(program, dtype, gathered(dtype))
    assert 2 <= len(made) <= 6
    assert sum(len(each.program.steps) for each in made) == len(program.steps)
    assert told(made) == list(range(len(program.outputs)))
    branch = [{place % 6 for place in each.places if place < 18} for each in made]
    assert sum(map(len, branch)) == 6
    slices_agree(program, dtype)


@pytest.mark.slow
def test_what_shares_nearly_all_steps_stays_together() -> None:
    """Each slice would have to compute the long beginning again."""
    assert len(sliced(branches(4, 70, shared=20000), "float64", 95)) == 1
    assert len(sliced(branches(40, 3), "float64", 63)) > 1  # more results than a block gathers


def test_values_alive_and_spilled() -> None:
    """Of a + b with a = √x, b = √y, c = a b: three at a time, and with two registers a returns."""
    steps = (Operation(SQRT, (0,)), Operation(SQRT, (1,)), Operation(MUL, (2, 3)),
             Operation(SQRT, (4,)), Operation(ADD, (5, 3)), Operation(ADD, (6, 2)))  # fmt: skip
    program = Program(2, steps, (7,))
    assert alive(program) == 3
    assert spilled(program, 3) == 0
    assert spilled(program, 2) == 2  # stored once, loaded once
    assert alive(Program(1, (), (0,))) == 0


def test_what_crosses_cuts() -> None:
    steps = tuple(Operation(ADD, (max(0, i), 1.0)) for i in range(6))
    far = Program(1, (*steps, Operation(MUL, (1, 2)), Operation(MUL, (1, 7))), (8,))
    plan = KernelPlan(far, (1, 1), longest=2)
    assert plan.crossing == 0  # pieces have 200 steps
    chain = [Operation(ADD, (i, 1.0)) for i in range(450)]
    long = Program(1, (*chain, Operation(MUL, (1, 2))), (451,))
    # the chain crosses two cuts, values 1 and 2 both
    assert KernelPlan(long, (1, 1), longest=2).crossing == 2 + 2 + 2 + 2
