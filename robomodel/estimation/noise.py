"""Noise of factors: zero-mean Gaussians, with components that must hold exactly.

A factor's error e counts ½ eᵀ Σ⁻¹ e. A component of zero variance is no weight but a condition: the
solvers keep it as such, so that no large number stands in for infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robomodel.model.arguments import as_numbers
from robomodel.model.joints import Array, Mask

NoiseLike: TypeAlias = "Noise | ArrayLike"


@dataclass(frozen=True, eq=False)
class Noise:
    """Standard deviations (rows,), zero for exact components; or ``root``, L of Σ = L Lᵀ."""

    sigmas: Array
    root: Array | None = None

    @cached_property
    def hard(self) -> Mask:
        """Which components (rows,) are exact."""
        result: Mask = self.sigmas == 0.0
        return result

    @cached_property
    def parts(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The numbers of the exact rows, and of the weighted ones."""
        return np.flatnonzero(self.hard), np.flatnonzero(~self.hard)

    @cached_property
    def _weights(self) -> Array:
        """1/σ (rows, 1), 1 for exact rows."""
        weights: Array = 1.0 / np.where(self.hard, 1.0, self.sigmas)[:, np.newaxis]
        return weights

    def whiten(self, x: Array) -> Array:
        """L⁻¹ x for x (..., rows, m); exact rows stay as they are."""
        if self.root is not None:
            solved: Array = np.linalg.solve(self.root, x).astype(float, copy=False)
            return solved
        return x * self._weights

    @property
    def covariance(self) -> Array:
        """Σ (rows, rows)."""
        return np.diag(self.sigmas**2) if self.root is None else self.root @ self.root.T

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Random errors (count, rows)."""
        white = rng.standard_normal((count, len(self.sigmas)))
        return white * self.sigmas if self.root is None else white @ self.root.T


def exact(rows: int) -> Noise:
    """Every component holds exactly."""
    return Noise(np.zeros(rows))


def diagonal(sigmas: ArrayLike) -> Noise:
    """Independent components of these standard deviations; zero is exact."""
    sigmas = as_numbers(sigmas, "sigmas")
    if sigmas.ndim != 1 or not np.all(np.isfinite(sigmas)) or np.any(sigmas < 0.0):
        raise ValueError("standard deviations are a vector of finite numbers from zero up")
    return Noise(sigmas)


def gaussian(covariance: ArrayLike) -> Noise:
    """A full covariance (rows, rows), symmetric and positive definite."""
    sigma = as_numbers(covariance, "covariance")
    if sigma.ndim != 2 or sigma.shape[0] != sigma.shape[1]:
        raise ValueError(f"a covariance is a square matrix, not of shape {sigma.shape}")
    if not np.allclose(sigma, sigma.T, rtol=1e-12, atol=0.0):
        raise ValueError("a covariance is symmetric")
    try:
        root = np.asarray(np.linalg.cholesky(sigma), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise ValueError(
            "a covariance is positive definite; exact components are zeros of diagonal()"
        ) from None
    return Noise(np.sqrt(np.diag(sigma)), root)


def as_noise(noise: NoiseLike, rows: int) -> Noise:
    """A noise of so many rows from one, or from a standard deviation for all or for each."""
    if not isinstance(noise, Noise):
        noise = diagonal(np.broadcast_to(np.asarray(noise, dtype=float), (rows,)))
    if len(noise.sigmas) != rows:
        raise ValueError(f"the factor has {rows} rows, its noise {len(noise.sigmas)}")
    return noise
