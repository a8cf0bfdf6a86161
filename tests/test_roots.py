"""Roots between ends of different signs, against closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from robomodel.mechanism.roots import last_before, root


@pytest.mark.parametrize(
    ("value", "ends", "exact"),
    [
        (lambda x: x * x - 2.0, (0.0, 2.0), math.sqrt(2.0)),
        (lambda x: 2.0 - x * x, (2.0, 0.0), math.sqrt(2.0)),
        (lambda x: math.cos(x) - x, (0.0, 1.0), 0.7390851332151607),
        (lambda x: math.copysign(1.0, x - 0.3), (0.0, 1.0), 0.3),
        (lambda x: (x - 0.25) ** 3, (0.0, 1.0), 0.25),
        (lambda x: math.expm1(40.0 * (x - 0.9)), (0.0, 1.0), 0.9),
    ],
)
def test_roots(value: Callable[[float], float], ends: tuple[float, float], exact: float) -> None:
    """Smooth ones in a few values, a jump and a threefold root too, from either side."""
    asked: list[float] = []

    def counted(x: float) -> float:
        asked.append(x)
        return value(x)

    found = root(counted, ends, (value(ends[0]), value(ends[1])), 1e-13)
    assert found == pytest.approx(exact, abs=2e-13)
    assert len(asked) <= 60
    if exact == math.sqrt(2.0):
        assert len(asked) <= 9


def test_without_a_change_of_sign_the_end_with_the_lesser_value_is_the_root() -> None:
    """As where rounding has the sign of an end."""
    assert root(abs, (-1e-17, 1.0), (1e-17, 1.0), 1e-13) == -1e-17


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (lambda x: 0.3 - x**3, 0.3 ** (1 / 3)),
        (lambda x: -1.0 if x < 0.3 else math.nan, 0.3),
        (lambda x: 0.7 - x if x <= 0.7 else math.nan, 0.7),
        (lambda x: x - 0.5, 0.5),
    ],
)
def test_the_last_place_before_a_change_of_sign(
    value: Callable[[float], float], exact: float
) -> None:
    """Never beyond it, where the value may be unknown."""
    at = value(0.0), value(1.0)
    found = last_before(value, (0.0, 1.0), (at[0], -at[0] if math.isnan(at[1]) else at[1]), 1e-12)
    assert exact - 2e-12 <= found <= exact
    assert value(found) * at[0] >= 0.0
