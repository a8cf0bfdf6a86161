"""Motions in windows: equations of motion without accelerations, at as many times as they tell.

With P π the momentum and d(P π)/dt + R π = tau (:func:`momentum_regressor`), any weight φ(t) that
vanishes at both ends of a window gives ∫ φ tau = ∫ (φ R - φ̇ P) π, without a transient. Weights are
cubic B-splines over four intervals of ``width`` samples, one window begins with each interval, so
that no window needs samples beyond a gap, and frequencies above ``cutoff`` are left out alike from
motions and forces, and not only attenuated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.errors import as_real

HALF = 0.3175  # cut-off frequency times an interval: there (sin πx / πx)⁴ = 1/2
INTERVALS = 4  # of a cubic B-spline
NUMBERS = 2**22  # of a piece of a motion whose regressors are made at once: 32 MiB each


@dataclass(frozen=True)
class Windows:
    """Windows over ``count`` samples, ``step`` [s] apart, at intervals of ``width`` samples."""

    count: int
    step: float
    width: int

    @classmethod
    def of(cls, count: int, step: float, cutoff: float) -> Windows:
        """The windows whose weights are halved at ``cutoff`` [Hz]; raises if there are none."""
        if not 0.0 < as_real(cutoff, "cutoff") < math.inf:
            raise ValueError(f"cutoff must be positive and finite, got {cutoff!r}")
        width = max(1, round(HALF / (cutoff * step)))
        result = cls(count, step, width)
        if len(result) < 1:
            raise ValueError(
                f"a motion of {count} samples is shorter than a window of "
                f"{INTERVALS * width - 1} (cutoff {cutoff:g} Hz at a step of {step:g} s)"
            )
        return result

    def __len__(self) -> int:
        return max((self.count + 1) // self.width - INTERVALS + 1, 0)

    @property
    def times(self) -> Array:
        """The middles of the windows [s] after the first sample."""
        middles = self.width * (np.arange(len(self), dtype=float) + 0.5 * INTERVALS) - 1.0
        return np.asarray(self.step * middles, dtype=float)

    def weights(self, late: float = 0.0) -> tuple[Array, Array, int]:
        """φ and -φ̇ times the step, at samples from ``first`` after a window's begin on.

        ``late``: the weights are so many seconds later.
        """
        shift = late / (self.step * self.width)
        first = math.floor(late / self.step)
        place = (np.arange(INTERVALS * self.width + 1) + first) / self.width - shift
        knots = np.maximum(place[:, None] - np.arange(INTERVALS + 1), 0.0)
        signs = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
        value, slope = knots**3 @ signs / 6.0, knots**2 @ signs / 2.0
        value[place >= INTERVALS] = slope[place >= INTERVALS] = 0.0
        return value / self.width, -slope / (self.width**2 * self.step), first

    def mean(self, x: Array, late: float = 0.0) -> Array:
        """∫ φ x (K, …) of samples x (T, …); nan of windows that need samples that are not there."""
        return self._sum(x, self.weights(late)[0], self.weights(late)[2])

    def complete(self, there: Mask, margin: float) -> Mask:
        """The windows (K,) with all samples (T,) there, within ``margin`` [s] of them, too."""
        most = math.ceil(margin / self.step)
        missing = np.pad(np.cumsum(~np.pad(there, most)), (1, 0))
        begin = self.width * np.arange(len(self))
        whole: Mask = missing[begin + INTERVALS * self.width - 1 + 2 * most] == missing[begin]
        return whole

    def _sum(self, x: Array, weights: Array, first: int) -> Array:
        used = np.flatnonzero(weights)
        low, high = int(used[0]), int(used[-1]) + 1
        begin = self.width * np.arange(len(self)) - 1 + first + low
        inside = np.flatnonzero((begin >= 0) & (begin + high - low <= len(x)))
        result = np.full((len(self), *x.shape[1:]), np.nan)
        if len(inside):
            views = np.lib.stride_tricks.sliding_window_view(x, high - low, axis=0)
            result[inside] = (
                views[begin[inside[0]] :: self.width][: len(inside)] @ (weights[low:high])
            )
        return result

    def pieces(self, numbers: int) -> list[slice]:
        """Ranges of windows whose samples, of so many numbers each, are made at once."""
        each = max(NUMBERS // max(numbers * self.width, 1) - INTERVALS, 1)
        return [slice(k, min(k + each, len(self))) for k in range(0, len(self), each)]

    def samples(self, windows: slice) -> slice:
        """The samples of a range of windows."""
        return slice(windows.start * self.width, (windows.stop - 1 + INTERVALS) * self.width - 1)


def summed(windows: Windows, numbers: int, made: Callable[[slice], tuple[Array, Array]]) -> Array:
    """∫ φ (ẋ + y) (K, …) of samples x, y (…, of so many numbers) that ``made`` gives for ranges."""
    value, rate, _ = windows.weights()
    both = np.stack([rate[1:], value[1:]]).reshape(2, INTERVALS, windows.width)
    parts = []
    for piece in windows.pieces(numbers):
        at, total = windows.samples(piece), 0.0
        count = piece.stop - piece.start
        for weights, x in zip(both, made(at), strict=True):
            shape = x.shape[1:]
            padded = np.concatenate([x.reshape(len(x), -1), np.zeros((1, numbers))])
            blocks = weights @ padded.reshape(-1, windows.width, numbers)  # of each interval
            total = total + sum(blocks[n : n + count, n] for n in range(INTERVALS))
        parts.append(np.reshape(total, (count, *shape)))
    return np.concatenate(parts)
