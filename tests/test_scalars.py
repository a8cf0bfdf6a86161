"""Arithmetic over scalars: what folds, what never branches, and how accurate the systems are."""

import itertools
import math
from fractions import Fraction

import casadi
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from robomodel.kernels import Trace
from robomodel.scalars import (
    Factorization,
    array_of,
    div,
    dot,
    held,
    is_zero,
    maximum,
    minimum,
    select,
    sincos,
    solve,
    sqrt,
    value_of,
)

EPS = np.finfo(float).eps
SEEDS = st.integers(0, 2**32 - 1)


def test_only_numbers_have_a_value() -> None:
    """What holds a scalar in the place of a number leaves it as it is."""
    x, y = Trace().inputs(2)
    assert value_of(np.float32(0.5)) == 0.5
    assert type(value_of(np.float64(2.0))) is float
    assert held(x) is x
    assert array_of(x) is x
    with pytest.raises(TypeError):
        value_of(x * y)


class Opaque:
    """A scalar that says nothing of its value: to compare or to convert it is an error."""

    __hash__ = None

    def __init__(self, value: float) -> None:
        self.hidden = float(value)

    def _with(self, other, operation):
        return Opaque(operation(self.hidden, getattr(other, "hidden", other)))

    def __add__(self, other):
        return self._with(other, lambda a, b: a + b)

    def __radd__(self, other):
        return self._with(other, lambda a, b: b + a)

    def __sub__(self, other):
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other):
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other):
        return self._with(other, lambda a, b: a * b)

    def __rmul__(self, other):
        return self._with(other, lambda a, b: b * a)

    def __truediv__(self, other):
        return self._with(other, lambda a, b: a / b)

    def __rtruediv__(self, other):
        return self._with(other, lambda a, b: b / a)

    def __neg__(self):
        return Opaque(-self.hidden)

    def sin(self):
        return Opaque(math.sin(self.hidden))

    def cos(self):
        return Opaque(math.cos(self.hidden))

    def sqrt(self):
        return Opaque(math.sqrt(self.hidden))

    def _refuse(self, *_):
        raise AssertionError("asked for the value of a scalar")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __float__ = __int__ = _refuse


OPAQUE = {
    "array": lambda: np.array([np.nan, 0.0, 3.0]),
    "numpy scalar": lambda: np.float64(0.0),
    "symbol": lambda: casadi.SX.sym("x"),
    "opaque": lambda: Opaque(3.0),
}
opaque_scalars = pytest.mark.parametrize("make", OPAQUE.values(), ids=OPAQUE)


def is_float(x: object, value: float) -> bool:
    """Whether x is a structural constant (a Python float, nothing else) of this value."""
    return type(x) is float and (x == value or (math.isnan(x) and math.isnan(value)))


# ---- folding -------------------------------------------------------------------------------------


@opaque_scalars
def test_structural_constants_fold_in_quotients(make) -> None:
    """Those of sums and products fold in a trace: tests/test_trace.py."""
    x = make()
    assert div(x, 1.0) is x
    assert is_float(div(0.0, x), 0.0)
    assert is_float(div(x, 0.0), math.nan)
    assert not is_zero(x)


def test_only_python_floats_are_structural() -> None:
    assert is_zero(0.0)
    assert is_zero(-0.0)
    assert not is_zero(1.0)
    assert not is_zero(np.float64(0.0))
    assert not is_zero(np.zeros(2))


def test_division_by_structural_zero_is_nan() -> None:
    for x in (1.0, -1.0, 0.0, math.inf, math.nan):
        assert is_float(div(x, 0.0), math.nan)
        assert is_float(div(x, -0.0), math.nan)


@given(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100))
@settings(max_examples=100, derandomize=True)
def test_floats_are_numbers(x: float, y: float) -> None:
    assert is_float(div(x, y), x / y if y else math.nan)
    assert is_float(sqrt(x), math.sqrt(x) if x >= 0 else math.nan)
    assert sincos(x) == (math.sin(x), math.cos(x))


def test_elementary_functions() -> None:
    batch = np.linspace(0.0, 3.0, 7)
    s, c = sincos(batch)
    np.testing.assert_allclose(s, np.sin(batch), rtol=1e-15)
    np.testing.assert_allclose(c, np.cos(batch), rtol=1e-15)
    np.testing.assert_allclose(sqrt(batch), np.sqrt(batch), rtol=1e-15)
    assert sqrt(np.float64(4.0)) == 2.0
    assert sincos(np.float64(0.5)) == (np.sin(0.5), np.cos(0.5))
    x = casadi.SX.sym("x")
    numbers = casadi.Function("f", [x], [*sincos(x), sqrt(x)])(0.7)
    assert [float(n) for n in numbers] == pytest.approx(
        [math.sin(0.7), math.cos(0.7), math.sqrt(0.7)], rel=1e-15
    )
    s, c = sincos(Opaque(0.7))
    assert (s.hidden, c.hidden) == (math.sin(0.7), math.cos(0.7))
    assert sqrt(Opaque(0.7)).hidden == math.sqrt(0.7)


def test_selections() -> None:
    x = np.array([-1.0, 0.0, 2.0, np.nan])
    np.testing.assert_array_equal(select(x, 5.0, 7.0), [5.0, 7.0, 7.0, 7.0])
    np.testing.assert_array_equal(maximum(x, 1.0), [1.0, 1.0, 2.0, 1.0])
    np.testing.assert_array_equal(minimum(x, 1.0), [-1.0, 0.0, 1.0, 1.0])
    assert is_float(select(-1.0, 5.0, 7.0), 5.0)
    assert is_float(maximum(2.0, 3.0), 3.0)
    assert is_float(minimum(0.0, 3.0), 0.0)


def test_dot() -> None:
    assert is_float(dot([], []), 0.0)
    assert is_float(dot([2.0, 3.0], [5.0, 7.0]), 31.0)
    batch = np.array([1.0, 2.0])
    np.testing.assert_array_equal(dot([batch, 2.0], [batch, batch]), [3.0, 8.0])
    with pytest.raises(ValueError, match="shorter"):
        dot([1.0, 2.0], [1.0])


# ---- solve ---------------------------------------------------------------------------------------


def rows_of(matrix: np.ndarray) -> list[list[float]]:
    """Nested lists of Python floats: zeros and ones are structural."""
    return [[float(x) for x in row] for row in matrix]


def scalars_of(matrices: np.ndarray) -> list[list[np.ndarray]]:
    """Nested lists of arrays along the leading axis of (batch, rows, columns)."""
    return [[matrices[:, i, j] for j in range(matrices.shape[2])] for i in range(matrices.shape[1])]


def solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.array(solve(rows_of(matrix), rows_of(right)), dtype=float)


def check_accuracy(matrix: np.ndarray, x: np.ndarray, answer: np.ndarray) -> None:
    """Forward error within a modest multiple of cond · eps, column by column."""
    bound = 20 * len(matrix) * EPS * np.linalg.cond(matrix)
    errors = np.linalg.norm(answer - x, axis=0)
    assert (errors <= bound * np.linalg.norm(x, axis=0)).all()


def with_condition(
    rng: np.random.Generator, rows: int, columns: int, condition: float
) -> np.ndarray:
    """A random matrix whose singular values spread evenly from 1 down to 1/condition."""
    left = np.linalg.qr(rng.normal(size=(rows, columns)))[0]
    right = np.linalg.qr(rng.normal(size=(columns, columns)))[0]
    return left * np.geomspace(1.0, 1.0 / condition, columns) @ right


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("n", range(1, 7))
def test_square_systems(n: int, condition: float) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        matrix = with_condition(rng, n, n, condition)
        x = rng.normal(size=(n, 3))
        check_accuracy(matrix, x, solved(matrix, matrix @ x))


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize(("rows", "columns"), [(2, 1), (3, 1), (3, 2), (4, 3), (6, 3), (6, 5)])
def test_tall_consistent_systems(rows: int, columns: int, condition: float) -> None:
    rng = np.random.default_rng(rows)
    for _ in range(20):
        matrix = with_condition(rng, rows, columns, condition)
        x = rng.normal(size=(columns, 2))
        check_accuracy(matrix, x, solved(matrix, matrix @ x))


def test_redundant_rows_change_nothing() -> None:
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(3, 3))
    right = rng.normal(size=(3, 2))
    mix = rng.normal(size=(5, 3))
    np.testing.assert_allclose(
        solved(mix @ matrix, mix @ right), np.linalg.solve(matrix, right), rtol=1e-12
    )


def test_a_tall_system_that_is_not_consistent_gives_least_squares() -> None:
    rng = np.random.default_rng(6)
    matrix, right = rng.normal(size=(6, 4)), rng.normal(size=(6, 2))
    np.testing.assert_allclose(
        solved(matrix, right), np.linalg.lstsq(matrix, right, rcond=None)[0], rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("n", range(1, 6))
def test_permutation_matrices(n: int) -> None:
    """Every leading pivot may vanish; the answer is exact, and signs do not matter."""
    rng = np.random.default_rng(n)
    for order in itertools.permutations(range(n)):
        matrix = np.eye(n)[list(order)] * rng.choice([-1.0, 1.0], size=n)
        x = rng.normal(size=(n, 2))
        right = matrix @ x
        np.testing.assert_array_equal(solved(matrix, right), x)
        answer = solve(scalars_of(matrix[None]), scalars_of(right[None]))
        np.testing.assert_array_equal(np.array(answer)[..., 0], x)
        # almost a permutation: pivots of elimination without exchange would be about 1e-17
        tiny = matrix + 1e-17 * rng.normal(size=(n, n))
        np.testing.assert_allclose(solved(tiny, right), x, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    "matrix",
    [
        [[1e-17, 1], [1, 0]],
        [[1e-17, 1], [1, 1]],
        [[0, 1], [1, 1e-17]],
        [[1e-300, 1], [1, 2]],
        [[1e-17, 1, 0], [1, 0, 0], [0, 0, 1]],
        [[1e-17, 1, 2], [1, 1e-17, 3], [2, 3, 1e-17]],
        [[1, 2, 3], [1, 2 + 1e-12, 4], [1, 3, 3]],
        [[0, 0, 0, 1], [0, 1e-17, 1, 0], [1e-17, 1, 1e-17, 0], [1, 0, 0, 1e-17]],
    ],
)
def test_vanishing_leading_pivots(matrix: list[list[float]]) -> None:
    given_rows = np.array(matrix, dtype=float)
    n = len(given_rows)
    x = np.arange(1.0, n + 1)[:, None]
    check_accuracy(given_rows, x, solved(given_rows, given_rows @ x))
    batch = solve(scalars_of(given_rows[None]), scalars_of((given_rows @ x)[None]))
    check_accuracy(given_rows, x, np.array(batch)[..., 0])


@pytest.mark.parametrize("n", range(3, 7))
def test_residuals_are_small_whatever_the_condition(n: int) -> None:
    """Beyond 2x2 the method is backward stable: the answer solves a system next to the given."""
    rng = np.random.default_rng(n)
    for condition in (1e3, 1e8, 1e12):
        matrix = with_condition(rng, n, n, condition)
        right = rng.normal(size=(n, 1))
        answer = solved(matrix, right)
        gap = np.linalg.norm(matrix @ answer - right)
        size = np.linalg.norm(matrix) * np.linalg.norm(answer) + np.linalg.norm(right)
        assert gap <= 20 * n * EPS * size


@given(SEEDS, st.integers(1, 6))
@settings(max_examples=100, derandomize=True)
def test_badly_scaled_rows(seed: int, n: int) -> None:
    """Rows in millimetres and in kilometres."""
    rng = np.random.default_rng(seed)
    matrix = with_condition(rng, n, n, 10.0) * 10.0 ** rng.integers(-4, 5, size=(n, 1))
    x = rng.normal(size=(n, 2))
    check_accuracy(matrix, x, solved(matrix, matrix @ x))


@pytest.mark.slow
@given(SEEDS, st.integers(1, 5))
@settings(max_examples=200, derandomize=True)
def test_small_integers(seed: int, n: int) -> None:
    """Many zeros and ones, so that all ways to fold occur; the reference is exact."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-2, 3, size=(n, n)).tolist()
    right = rng.integers(-2, 3, size=n).tolist()
    exact = eliminate(matrix, right)
    assume(exact is not None)
    answer = solved(np.array(matrix), np.array(right)[:, None])[:, 0]
    expected = np.array([float(x) for x in exact])
    bound = 20 * n * EPS * np.linalg.cond(np.array(matrix, dtype=float))
    assert np.linalg.norm(answer - expected) <= bound * np.linalg.norm(expected)


def eliminate(matrix: list[list[int]], right: list[int]) -> list[Fraction] | None:
    """Gauss–Jordan in rational numbers; None where the matrix is singular."""
    work = [[*map(Fraction, row), Fraction(b)] for row, b in zip(matrix, right, strict=True)]
    n = len(work)
    for k in range(n):
        pivot = next((i for i in range(k, n) if work[i][k]), None)
        if pivot is None:
            return None
        work[k], work[pivot] = work[pivot], work[k]
        work[k] = [x / work[k][k] for x in work[k]]
        for i in range(n):
            if i != k:
                work[i] = [x - work[i][k] * y for x, y in zip(work[i], work[k], strict=True)]
    return [row[-1] for row in work]


@pytest.mark.parametrize("n", range(1, 5))
def test_a_singular_constant_matrix_is_no_error(n: int) -> None:
    """Beyond the contract, but never a ZeroDivisionError."""
    for matrix in (np.zeros((n, n)), np.outer(np.arange(float(n)), np.ones(n))):
        answer = solved(matrix, np.arange(1.0, n + 1)[:, None])
        assert answer.shape == (n, 1)
        if n == 1:
            assert np.isnan(answer).all()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 2), (3, 3), (4, 2)])
def test_no_right_hand_side(rows: int, columns: int) -> None:
    assert solve(rows_of(np.eye(rows, columns)), [[]] * rows) == [[]] * columns


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 2), (3, 3), (4, 4), (6, 6), (5, 3)])
def test_batches(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    matrices = np.array([with_condition(rng, rows, columns, 100.0) for _ in range(50)])
    x = rng.normal(size=(50, columns, 2))
    rights = matrices @ x
    answer = solve(scalars_of(matrices), scalars_of(rights))
    for k in range(50):
        check_accuracy(matrices[k], x[k], np.array(answer)[:, :, k])


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 2), (3, 3), (5, 5), (5, 3)])
def test_batched_right_sides_of_a_constant_matrix(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    matrix = with_condition(rng, rows, columns, 100.0)
    x = rng.normal(size=(10, columns, 1))
    answer = solve(rows_of(matrix), scalars_of(matrix @ x))
    for k in range(10):
        check_accuracy(matrix, x[k], np.array(answer)[:, :, k])


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 3)])
def test_casadi(rows: int, columns: int) -> None:
    """One expression graph for every matrix: also for those with vanishing leading pivots."""
    rng = np.random.default_rng(rows)
    A, b = casadi.SX.sym("A", rows, columns), casadi.SX.sym("b", rows, 2)
    answer = solve(
        [[A[i, j] for j in range(columns)] for i in range(rows)],
        [[b[i, j] for j in range(2)] for i in range(rows)],
    )
    function = casadi.Function(
        "solve", [A, b], [casadi.vertcat(*(casadi.horzcat(*row) for row in answer))]
    )
    matrices = [with_condition(rng, rows, columns, 100.0) for _ in range(10)]
    matrices.append(np.eye(rows, columns)[rng.permutation(rows)])
    for matrix in matrices:
        x = rng.normal(size=(columns, 2))
        check_accuracy(matrix, x, np.array(function(matrix, matrix @ x)))


def test_structural_zeros_vanish_from_expressions() -> None:
    """Unknowns that a matrix's structure separates do not meet in the expressions."""
    a, b = casadi.SX.sym("a", 4), casadi.SX.sym("b", 4)
    matrix = [[0.0] * 4 for _ in range(4)]
    for row, column in enumerate((2, 0, 3, 1)):
        matrix[row][column] = a[row]
    answer = solve(matrix, [[b[row]] for row in range(4)])
    for row, column in enumerate((2, 0, 3, 1)):
        symbols = {symbol.name() for symbol in casadi.symvar(answer[column][0])}
        assert symbols == {f"a_{row}", f"b_{row}"}


@given(SEEDS, st.integers(1, 5), st.booleans())
@settings(max_examples=50, derandomize=True)
def test_values_are_never_asked_for(seed: int, n: int, tall: bool) -> None:
    """The sequence of operations is fixed: an opaque scalar goes through as a number does."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n + tall, n)) * (rng.random((n + tall, n)) < 0.9)
    right = matrix @ rng.normal(size=(n, 1))
    assume(np.linalg.matrix_rank(matrix) == n)
    batch = np.array(solve(scalars_of(matrix[None]), scalars_of(right[None])))[..., 0]
    hidden = solve(
        [[Opaque(x) for x in row] for row in matrix], [[Opaque(x) for x in row] for row in right]
    )
    np.testing.assert_allclose([[x.hidden for x in row] for row in hidden], batch, rtol=1e-15)


# ---- factorization -------------------------------------------------------------------------------


def positive_definite(rng: np.random.Generator, n: int, condition: float = 1e3) -> np.ndarray:
    turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
    matrix = turn * np.geomspace(1.0, 1.0 / condition, n) @ turn.T
    return (matrix + matrix.T) / 2


def parts(factorization: Factorization) -> tuple[np.ndarray, np.ndarray]:
    """L and Λ of a factorization over floats."""
    lower = np.array(factorization.lower, dtype=float)
    return np.eye(len(lower)) + lower, np.diag(1.0 / np.array(factorization.inverse_pivots))


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e8])
@pytest.mark.parametrize("n", range(1, 9))
def test_factorization(n: int, condition: float) -> None:
    rng = np.random.default_rng(n)
    for _ in range(10):
        matrix = positive_definite(rng, n, condition)
        factorization = Factorization(rows_of(matrix))
        L, pivots = parts(factorization)
        assert (np.triu(L, 1) == 0).all()
        assert (np.diag(L) == 1).all()
        assert (np.diag(pivots) > 0).all()
        np.testing.assert_allclose(L.T @ pivots @ L, matrix, rtol=0, atol=8 * n * EPS)

        right = rng.normal(size=n)
        reduced = factorization.reduce(right.tolist())
        np.testing.assert_allclose(L.T @ reduced, right, rtol=0, atol=1e-12 * np.abs(reduced).max())
        unlower = np.array(factorization.unlower(), dtype=float)
        assert (np.triu(unlower, 1) == 0).all()
        sizes = np.abs(L) @ np.abs(unlower)
        assert (np.abs(L @ unlower - np.eye(n)) <= 4 * n * EPS * sizes).all()
        expected = np.linalg.solve(matrix, right)
        error = np.linalg.norm(factorization.solve(right.tolist()) - expected)
        assert error <= 16 * n * EPS * condition * np.linalg.norm(expected)


def test_the_last_variable_is_eliminated_first() -> None:
    """So the last pivot is the matrix's own entry, and the first that of the Schur complement."""
    matrix = positive_definite(np.random.default_rng(3), 4)
    _, pivots = parts(Factorization(rows_of(matrix)))
    assert pivots[3, 3] == pytest.approx(matrix[3, 3], rel=1e-15)
    assert pivots[0, 0] == pytest.approx(1.0 / np.linalg.inv(matrix)[0, 0], rel=1e-12)


def test_arguments_are_left_alone() -> None:
    rng = np.random.default_rng(4)
    matrix, right = rows_of(positive_definite(rng, 4)), rng.normal(size=4).tolist()
    before = [row.copy() for row in matrix], right.copy()
    factorization = Factorization(matrix)
    first = factorization.solve(right)
    assert factorization.solve(right) == first
    factorization.reduce(right)
    solve(matrix, [[x] for x in right])
    assert (matrix, right) == before


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_factorization_of_batches(n: int) -> None:
    rng = np.random.default_rng(n)
    matrices = np.array([positive_definite(rng, n) for _ in range(20)])
    right = rng.normal(size=(20, n))
    factorization = Factorization(scalars_of(matrices))
    answer = np.array(factorization.solve(list(right.T))).T
    expected = np.linalg.solve(matrices, right[..., None])[..., 0]
    np.testing.assert_allclose(answer, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    constant = Factorization(rows_of(matrices[0])).solve(list(right.T))
    expected = np.linalg.solve(matrices[0], right.T)
    np.testing.assert_allclose(constant, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_factorization_in_casadi() -> None:
    n = 5
    M, r = casadi.SX.sym("M", n, n), casadi.SX.sym("r", n)
    factorization = Factorization([[M[i, j] for j in range(n)] for i in range(n)])
    right = [r[i] for i in range(n)]
    function = casadi.Function(
        "f",
        [M, r],
        [casadi.vertcat(*factorization.solve(right)), casadi.vertcat(*factorization.reduce(right))],
    )
    rng = np.random.default_rng(1)
    matrix, numbers = positive_definite(rng, n), rng.normal(size=n)
    solution, reduced = (np.array(x)[:, 0] for x in function(matrix, numbers))
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, numbers), rtol=1e-10)
    L, _ = parts(Factorization(rows_of(matrix)))
    np.testing.assert_allclose(reduced, np.linalg.solve(L.T, numbers), rtol=1e-10)


@given(SEEDS, st.integers(1, 8))
@settings(max_examples=100, derandomize=True)
def test_structural_zeros_of_trees_stay(seed: int, n: int) -> None:
    """Variables of a tree, parents first, meet only their ancestors: no zero fills in."""
    rng = np.random.default_rng(seed)
    parents = [int(rng.integers(-1, i)) for i in range(n)]
    related = np.eye(n, dtype=bool)
    for i, parent in enumerate(parents):
        above = parent
        while above >= 0:
            related[i, above] = related[above, i] = True
            above = parents[above]
    lower = np.tril(rng.normal(size=(n, n)) * related, -1) + np.eye(n)
    dense = lower.T @ np.diag(rng.uniform(0.5, 2.0, n)) @ lower
    trace = Trace()
    entries, right = trace.inputs(n * n), trace.inputs(n)
    matrix = [[entries[i * n + j] if related[i, j] else 0.0 for j in range(n)] for i in range(n)]
    factorization = Factorization(matrix)
    for i, j in itertools.product(range(n), repeat=2):
        assert is_zero(factorization.lower[i][j]) == (j >= i or not related[i, j])
        assert is_zero(factorization.unlower()[i][j]) == (j > i or not related[i, j])
    numbers = rng.normal(size=n)
    answer = np.array(trace.program(factorization.solve(right))([*dense.ravel(), *numbers]))
    expected = np.linalg.solve(dense, numbers)
    bound = 100 * n * EPS * np.linalg.cond(dense)
    assert np.linalg.norm(answer - expected) <= bound * np.linalg.norm(expected)
    # a load on one variable reaches its ancestors only
    for k in range(n):
        unit = factorization.reduce([1.0 if i == k else 0.0 for i in range(n)])
        assert [is_zero(x) for x in unit] == [not (related[k, i] and i <= k) for i in range(n)]


@given(SEEDS, st.integers(1, 7))
@settings(max_examples=100, derandomize=True)
def test_any_pattern_of_structural_zeros(seed: int, n: int) -> None:
    """Zeros that do fill in, and ones on the diagonal that fold."""
    rng = np.random.default_rng(seed)
    pattern = np.tril(rng.random((n, n)) < 0.4, -1)
    small = rng.uniform(-0.9, 0.9, (n, n)) / n * pattern
    dense = np.eye(n) + small + small.T
    expected = np.linalg.inv(dense)
    factorization = Factorization(rows_of(dense))
    columns = [factorization.solve([float(i == k) for i in range(n)]) for k in range(n)]
    np.testing.assert_allclose(np.transpose(columns), expected, rtol=0, atol=1e-13)


def test_factorization_never_asks_for_values() -> None:
    rng = np.random.default_rng(2)
    matrix, right = positive_definite(rng, 5), rng.normal(size=5)
    hidden = Factorization([[Opaque(x) for x in row] for row in matrix])
    answer = [x.hidden for x in hidden.solve([Opaque(x) for x in right])]
    np.testing.assert_allclose(answer, np.linalg.solve(matrix, right), rtol=1e-10)
