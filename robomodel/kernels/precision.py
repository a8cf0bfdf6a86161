"""The kinds of numbers that kernels compute with, and their sines and cosines.

An angle x is k quarter turns and a rest r in [-π/4, π/4], by π/2 in three parts (Cody and Waite);
with fused multiply-adds r keeps its relative accuracy up to ``cody_waite_limit``. Then two
polynomials in r², sine r + r³ P(r²) and cosine 1 - r²/2 + r⁴ Q(r²), change places and signs by the
quarter turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Dtype: TypeAlias = Literal["float64", "float32"]


@dataclass(frozen=True, slots=True)
class Precision:
    """A kind of floating-point numbers.

    ``rounder`` is 1.5 times the power of two from which on all numbers are integers: adding it
    rounds, and leaves the integer in the low bits. Beyond ``cody_waite_limit`` radians the C
    library serves: further on quarter turns have no room there, or 2/π too few digits to count
    them.
    """

    name: Dtype
    bits: int
    half_pi: tuple[float, float, float]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]
    rounder: float
    cody_waite_limit: float

    @property
    def bytes(self) -> int:
        """Of a number."""
        return self.bits // 8


PRECISIONS: Mapping[str, Precision] = {
    "float64": Precision(  # minimax polynomials of fdlibm
        "float64",
        64,
        (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
        (
            -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
            2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
        ),
        (
            4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
            -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
        ),
        6755399441055744.0,  # 1.5 · 2⁵²
        1e9,
    ),
    "float32": Precision(  # minimax to 0.66 and 1.23 units in the last place, rounding included
        "float32",
        32,
        (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
        (-0.16666655242443085, 0.008332165889441967, -0.00019515209714882076),
        (0.04166664555668831, -0.0013887366512790322, 2.4438377295155078e-05),
        12582912.0,  # 1.5 · 2²³
        1e5,
    ),
}  # fmt: skip
