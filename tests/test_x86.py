"""Code that needs no compiler: every number is that of LLVM's code, to the bit."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import robomodel as rm
from robomodel.kernels import compile as compiling
from robomodel.kernels.compile import CompiledUfunc, compile_program
from robomodel.kernels.llvm import emit, linker, machine
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
    Dtype,
    Operation,
    Program,
    Reference,
)

pytestmark = pytest.mark.skipif(
    not machine.LINKED or machine.lanes() != 8, reason="for processors with AVX-512, on Linux"
)

OPERANDS = {ADD: 2, SUB: 2, MUL: 2, DIV: 2, NEG: 1, SQRT: 1, FMA: 3, FMS: 3, FNMA: 3, SELECT: 3,
            SIN: 1, COS: 1}  # fmt: skip
CONSTANTS = [0.0, -0.0, 1.0, -2.5, 1e-3, math.inf, math.nan, 3.7e9]


def random_program(seed: int, steps: int, inputs: int = 6, recent: int = 60) -> Program:
    """Steps on inputs, constants, the latest values or any, at times the same one twice."""
    rng = np.random.default_rng(seed)
    made: list[Operation] = []

    def reference(choice: float) -> Reference:
        count = inputs + len(made)
        if choice < 0.15:
            return CONSTANTS[rng.integers(len(CONSTANTS))]
        first = max(0, count - recent) if choice < 0.9 else 0
        return int(rng.integers(first, count))

    names = list(OPERANDS)
    for _ in range(steps):
        name = names[rng.integers(len(names))]
        operands = [reference(rng.uniform()) for _ in range(OPERANDS[name])]
        if name in (SIN, COS, SELECT, NEG, SQRT):
            operands[0] = reference(rng.uniform(0.2, 1.0))
        if len(operands) > 1 and rng.uniform() < 0.1:
            operands[-1] = operands[0]
        if not any(type(x) is int for x in operands):
            operands[0] = 0
        made.append(Operation(name, tuple(operands)))
    outputs: list[Reference] = [0, *range(inputs, inputs + steps, 7), inputs + steps - 1, 0.5]
    return Program(inputs, tuple(made), tuple(outputs))


def both(
    program: Program, sizes: list[int], monkeypatch: pytest.MonkeyPatch, dtype: Dtype = "float64"
) -> list[CompiledUfunc]:
    """The program as this module's code, and as LLVM's."""
    monkeypatch.setenv("ROBOMODEL_CACHE", "off")
    found = []
    for ours in (True, False):
        monkeypatch.setattr(machine, "LINKED", ours)
        found.append(compile_program(program, sizes, dtype=dtype))
    return found


def assert_same_bits(x: np.ndarray, y: np.ndarray) -> None:
    np.testing.assert_array_equal(x, y)
    known = ~np.isnan(x)
    np.testing.assert_array_equal(np.signbit(x[known]), np.signbit(y[known]))


@pytest.mark.parametrize(
    ("seed", "steps", "dtype"),
    [
        (0, 250, "float64"),
        pytest.param(1, 60, "float32", marks=pytest.mark.slow),
        pytest.param(2, 2600, "float64", marks=pytest.mark.slow),
        pytest.param(3, 2600, "float32", marks=pytest.mark.slow),
    ],
)
def test_random_programs(
    seed: int, steps: int, dtype: Dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one piece and of several; more values are alive than there are registers."""
    program = random_program(seed, steps)
    ours, theirs = both(program, [2, 4, len(program.outputs)], monkeypatch, dtype)
    rng = np.random.default_rng(seed)
    for count in (1, 37):
        given = [rng.normal(size=(count, n)) * [1.0, 30.0, 1e11, 1e-3][:n] for n in (2, 4)]
        x, y = (given[0].astype(dtype), given[1].astype(dtype))
        with np.errstate(all="ignore"):
            assert_same_bits(ours.ufunc(x, y), theirs.ufunc(x, y))


def test_each_operation_on_each_kind_of_operand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of tiles, constants, values, one of them twice; special numbers."""
    first = 4
    kinds: list[Reference] = [0, first, -1.5, 1, first + 1]
    steps = [Operation(ADD, (2, 3)), Operation(MUL, (2, 3))]
    for operation, count in OPERANDS.items():
        operands = itertools.product(kinds[:2], *[kinds] * (count - 1))
        steps += [Operation(operation, each) for each in operands]
    outputs = tuple(range(first, first + len(steps)))
    program = Program(first, tuple(steps), outputs)
    ours, theirs = both(program, [4, len(outputs)], monkeypatch)
    special = [0.0, -0.0, 1.0, -3.0, math.inf, -math.inf, math.nan, 1e-310, 2e9]
    x = np.array([(a, b, c, d) for a in special for b in special for c, d in ((1.0, 2.0), (a, b))])
    with np.errstate(all="ignore"):
        numbers = ours.ufunc(x)
        assert_same_bits(numbers, theirs.ufunc(x))
        expected = np.stack(np.broadcast_arrays(*program([x[:, k] for k in range(first)])), axis=-1)
    rounded_once = (SIN, COS, FMA, FMS, FNMA)
    exact = [k for k, step in enumerate(steps) if step.operation not in rounded_once]
    np.testing.assert_array_equal(numbers[:, exact], expected[:, exact])


@pytest.mark.parametrize(
    ("robot", "name"),
    [
        ("four_bar", "rnea"),
        pytest.param("tello", "aba", marks=pytest.mark.slow),
        pytest.param("mit_humanoid", "aba_derivatives", marks=pytest.mark.slow),
        pytest.param("mini_cheetah", "crba", marks=pytest.mark.slow),
    ],
)
def test_robots(robot: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that write rows meanwhile, on two tiles in turn."""
    model, results = rm.robots.load(robot), []
    rng = np.random.default_rng(3)
    q = np.stack([model.random_configuration(rng) for _ in range(20)])
    given = [q] if name == "crba" else [q, *rng.normal(size=(2, 20, model.nv))]
    monkeypatch.setenv("ROBOMODEL_CACHE", "off")
    for ours in (True, False):
        monkeypatch.setattr(machine, "LINKED", ours)
        found = rm.compile(rm.robots.load(robot), name)(*given)
        results.append(found if isinstance(found, tuple) else (found,))
    for x, y in zip(*results, strict=True):
        assert_same_bits(x, y)


def test_other_linkers_read_the_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's, which takes an object file for what it says it is."""
    program = random_program(5, 50)
    sizes = [6, len(program.outputs)]
    monkeypatch.setenv("ROBOMODEL_CACHE", "off")
    ours = compile_program(program, sizes)
    monkeypatch.setattr(linker, "link", lambda *_: None)
    theirs = compile_program(program, sizes)
    x = np.random.default_rng(0).normal(size=(11, 6))
    with np.errstate(all="ignore"):
        assert_same_bits(ours.ufunc(x), theirs.ufunc(x))


def test_llvm_sees_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text for LLVM does not grow with the program."""
    monkeypatch.setenv("ROBOMODEL_CACHE", "off")
    lengths = []
    written = emit.written

    def counted(*arguments: object, **options: object) -> str:
        text = written(*arguments, **options)  # type: ignore[arg-type]
        lengths.append(len(text))
        return text

    monkeypatch.setattr(compiling, "written", counted)
    for steps in (60, 900):
        program = random_program(7, steps)
        compile_program(Program(6, program.steps, tuple(range(6, 26))), [6, 20])
    assert abs(lengths[0] - lengths[1]) < 200
