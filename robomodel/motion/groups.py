"""Groups of rotations and motions: adjoints, and the derivatives of exponentials by series."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial

import numpy as np

from robomodel.model.joints import Array, Floating, JointModel, Planar


def adjoint(joint: JointModel, x: Array) -> Array:
    """ad of a joint's velocity x (..., nv): the Lie bracket with it, as a matrix."""
    if isinstance(joint, Planar):
        result = np.zeros((*x.shape[:-1], 3, 3), x.dtype)
        result[..., 0, 1], result[..., 1, 0] = -x[..., 2], x[..., 2]
        result[..., 0, 2], result[..., 1, 2] = x[..., 1], -x[..., 0]
        return result
    turn = _skew(x[..., :3])
    if not isinstance(joint, Floating):
        return turn
    result = np.zeros((*x.shape[:-1], 6, 6), x.dtype)
    result[..., :3, :3] = result[..., 3:, 3:] = turn
    result[..., 3:, :3] = _skew(x[..., 3:])
    return result


def _skew(w: Array) -> Array:
    """[w]x (..., 3, 3)."""
    result = np.zeros((*w.shape[:-1], 3, 3), w.dtype)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        result[..., i, j], result[..., j, i] = -w[..., k], w[..., k]
    return result


@cache
def _even_coefficients(count: int) -> tuple[float, ...]:
    """Those of (z/2) coth(z/2) in z²: Bernoulli numbers over factorials."""
    cosh = [Fraction(1, 4**k * factorial(2 * k)) for k in range(count)]
    sinhc = [Fraction(1, 4**k * factorial(2 * k + 1)) for k in range(count)]
    found: list[Fraction] = []
    for k in range(count):
        found.append(cosh[k] - sum(found[j] * sinhc[k - j] for j in range(k)))
    return tuple(float(c) for c in found)


def inverse_jacobian(ad: Array) -> Array:
    """Jr⁻¹ = ad/2 + (ad/2) coth(ad/2) of a Lie group from ad (..., n, n) of its logarithm.

    Log(Exp(x) Exp(δ)) = x + Jr⁻¹ δ; Jl⁻¹ is the same of -ad. A power series in ad, good to rounding
    for turns up to π, which is as far as logarithms go.
    """
    one, square = np.eye(ad.shape[-1]), ad @ ad
    turn = float(np.max(np.abs(ad), initial=0.0))
    coefficients = _even_coefficients(28 if turn > 0.3 else 10)
    result: Array = np.broadcast_to(coefficients[-1] * one, ad.shape)
    for c in reversed(coefficients[:-1]):
        result = c * one + square @ result
    return result + ad / 2
