"""Errors that are correlated in time: autoregressive models of what a fit leaves.

The error of each channel is modelled as e(t) = Σ a(k) e(t - k) + innovation. Least squares stay as
they are, for where the model is not quite right, weights by frequency would prefer those at which
it is; their covariance is that of errors of this model. Coefficients
are Burg's, of all orders up to the one of the least corrected information criterion (C. M. Hurvich
and C.-L. Tsai, *Regression and time series model selection in small samples*, Biometrika 1989). The
first samples after a gap are predicted by the lower orders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.tolerances import TINY

HIGHEST = 12  # order of the models that are tried
DECAYED = 1e-4  # response that counts no more
LOGS_FOLLOWED = 2  # lengths of the log after which it is no longer followed
SAMPLES_EACH = 10  # samples for each coefficient, at least


def runs(measured: Mask, length: int) -> list[slice]:
    """The runs of samples (n,) without a gap, in motions of this length."""
    edges = np.zeros(len(measured) + 1, dtype=bool)
    edges[1:-1] = measured[1:] != measured[:-1]
    edges[::length] = True
    edges[-1] = True
    ends = np.flatnonzero(edges)
    return [slice(int(a), int(b)) for a, b in pairwise(ends) if measured[a]]


@dataclass(frozen=True)
class Autoregression:
    """Predictors of orders 0, 1, … (each (k,), the latest sample first), in units of the error's.

    ``shares``: variance of each order's innovation, relative to the error's.
    """

    predictors: tuple[Array, ...]
    shares: Array

    @classmethod
    def of(
        cls,
        error: Array,
        pieces: Sequence[slice],
        highest: int = HIGHEST,
        order: int | None = None,
    ) -> Autoregression:
        """The model of an error (n,) over its runs without a gap; of this ``order``, if given."""
        ahead = [error[at] for at in pieces if at.stop - at.start > 1]
        back, count = ahead, sum(len(x) for x in ahead)
        predictors, shares = [np.zeros(0)], [1.0]
        for _ in range(1, min(highest, count // SAMPLES_EACH) + 1):
            later = [x[1:] for x in ahead if len(x) > 1]
            earlier = [x[:-1] for x in back if len(x) > 1]
            both = sum(float(x @ y) for x, y in zip(later, earlier, strict=True))
            size = sum(float(x @ x + y @ y) for x, y in zip(later, earlier, strict=True))
            if size <= TINY:
                break
            k = 2.0 * both / size
            last = predictors[-1]
            predictors.append(np.append(last - k * last[::-1], k))
            shares.append(shares[-1] * max(1.0 - k * k, TINY))
            ahead = [x - k * y for x, y in zip(later, earlier, strict=True)]
            back = [y - k * x for x, y in zip(later, earlier, strict=True)]
        criteria = [
            count * math.log(share) + 2.0 * (n + 1) * count / max(count - n - 2, 1)
            for n, share in enumerate(shares)
        ]
        best = int(np.argmin(criteria)) if order is None else min(order, len(shares) - 1)
        return cls(tuple(predictors[: best + 1]), np.array(shares[: best + 1]))

    @property
    def order(self) -> int:
        """Number of coefficients."""
        return len(self.predictors) - 1

    def covariance(self, x: Array) -> Array:
        """xᵀ C x (m, m) of columns x (n, m), zero where nothing is measured.

        C (n, n) are the errors' correlations, of which the filtered columns' squares are the sums.
        """
        from scipy.signal import lfilter  # not needed until something is fitted

        if not self.order:
            return np.asarray(x.T @ x)
        denominator = np.append(1.0, -self.predictors[-1])
        tail = self._tail(len(x))
        padded = np.concatenate([x[::-1], np.zeros((tail, x.shape[1]))])
        filtered = lfilter([math.sqrt(self.shares[-1])], denominator, padded, axis=0)
        return np.asarray(filtered.T @ filtered)

    def _tail(self, count: int) -> int:
        """Samples after which the response to an innovation has decayed."""
        root = float(np.max(np.abs(np.roots(np.append(1.0, -self.predictors[-1])))))
        return min(
            math.ceil(math.log(DECAYED) / math.log(max(root, DECAYED))), LOGS_FOLLOWED * count
        )

    def white(self, x: Array, pieces: Sequence[slice]) -> Array:
        """Rows (n, …) less their predictions, as sure as one another; zero outside the runs."""
        result = np.zeros_like(x)
        scale, last = 1.0 / np.sqrt(self.shares), self.predictors[-1]
        for at in pieces:
            part, made = x[at], result[at]
            for n, predictor in enumerate(self.predictors[:-1]):
                if n < len(part):
                    made[n] = scale[n] * (part[n] - np.tensordot(predictor, part[:n][::-1], axes=1))
            if self.order < len(part):
                made[self.order :] = scale[-1] * part[self.order :]
                for k, a in enumerate(last.tolist(), 1):
                    made[self.order :] -= (scale[-1] * a) * part[self.order - k : len(part) - k]
        return result
