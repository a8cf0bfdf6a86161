"""A root of a function of one number between ends of different signs."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator

from robomodel.tolerances import ROUNDING


def root(
    value: Callable[[float], float], ends: tuple[float, float], at: tuple[float, float],
    tolerance: float,
) -> float:  # fmt: skip
    """Where a function changes its sign between ``ends``, at which it has the values ``at``.

    As :func:`bracketing`.
    """
    search = bracketing(ends, at, tolerance)
    try:
        x = next(search)
        while True:
            x = search.send(value(x))
    except StopIteration as end:
        return float(end.value)


def last_before(
    value: Callable[[float], float], ends: tuple[float, float], at: tuple[float, float],
    tolerance: float,
) -> float:  # fmt: skip
    """The last place, to ``tolerance``, before a function changes its sign on the way up.

    As :func:`bracketing`; beyond the value may be unknown (nan). With the value 0 the place itself.
    """
    search, low = bracketing(ends, at, tolerance), ends[0]
    try:
        x = next(search)
        while True:
            here = value(x)
            if here == 0.0:
                return x
            if here * at[0] > 0.0:
                low = max(low, x)
            x = search.send(-at[0] if math.isnan(here) else here)
    except StopIteration:
        return low


def bracketing(
    ends: tuple[float, float], at: tuple[float, float], tolerance: float
) -> Generator[float, float, float]:
    """Asks for values of a function, and returns where it changes its sign between ``ends``.

    To ``tolerance``, and to rounding of the place. Halving, and inverse quadratic interpolation
    where it is safe (Chandrupatla, A new hybrid quadratic/bisection algorithm for finding the zero
    of a nonlinear function without using derivatives, 1997). Where the values ``at`` the ends do
    not differ in sign, the end that has the lesser one.
    """
    (a, b), (fa, fb) = ends, at
    share = 0.5
    if fa * fb >= 0.0:
        return a if abs(fa) <= abs(fb) else b
    for _ in range(100):  # halving alone takes 50
        x = a + share * (b - a)
        fx = yield x
        if math.copysign(1.0, fx) == math.copysign(1.0, fa):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, fx
        best, least = (a, fa) if abs(fa) < abs(fb) else (b, fb)
        margin = (0.5 * tolerance + 0.01 * ROUNDING * abs(best)) / abs(b - a)
        if margin > 0.5 or least == 0.0:
            return best
        place, height = (a - b) / (c - b), (fa - fb) / (fc - fb)
        share = 0.5
        if height**2 < place and (1.0 - height) ** 2 < 1.0 - place:
            share = fa / (fb - fa) * fc / (fb - fc)
            share += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        share = min(1.0 - margin, max(margin, share))
    return best
