"""Roots between ends of different signs, against closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from robomodel.mechanism.roots import root


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
