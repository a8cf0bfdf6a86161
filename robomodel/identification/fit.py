"""The fit itself: weights of coordinates, parameters and sensors' unknowns in turn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robomodel.identification.consistent import Prior, minimise, solved
from robomodel.identification.sensors import Sensors
from robomodel.model.joints import Array

PASSES = 20  # of weights
BENT = 60  # of them, where sensors' unknowns enter otherwise than in proportion
SETTLED = 1e-3  # relative change of weights
STILL = 1e-6  # change of the sensors' unknowns
STRIDE = 1.0  # the most that one of them may change in a pass
FLOOR = 1e-5  # of what moves a coordinate: forces are not known better
HUBER = 1.345  # deviations; of normal noise 5 % of the information is lost
MEDIAN = 1.4826  # deviations in a median's absolute value, of normal noise


@dataclass(frozen=True)
class Data:
    """Rows (n, nv, p) and forces (n, nv), where known; what share of samples counts; the loss.

    Rows and forces are those at which the sensors' unknowns begin.
    """

    rows: Array
    forces: Array
    measured: Array
    share: float
    robust: bool

    def rms(self, x: Array) -> Array:
        """Of each coordinate (nv,), over the samples that are known; nan without any."""
        count = self.measured.sum(0)
        total = np.sqrt(np.sum(np.where(self.measured, x, 0.0) ** 2, axis=0) / np.maximum(count, 1))
        return np.where(count > 0, total, np.nan)

    def levels(self, nominal: Array) -> Array:
        """What acts in each coordinate (nv,), by size: sums of forces may cancel, these do not."""
        parts = np.sqrt(np.einsum("tip,p->ti", self.rows**2, nominal**2))
        return np.fmax(np.fmax(self.rms(parts), self.rms(self.forces)), 1e-300)

    def spread(self, error: Array, lost: Array) -> Array:
        """Deviation (nv,) of each coordinate; ``lost``: share of its samples that the fit took."""
        own = self.rms(error)
        if self.robust:
            hidden = np.where(self.measured, np.abs(error), np.nan)
            own = np.where(np.isnan(own), np.nan, 0.0)
            some = ~np.isnan(own)
            own[some] = MEDIAN * np.nanmedian(hidden[:, some], axis=0)
        return np.asarray(own / np.sqrt(np.maximum(1.0 - lost, 0.05)))

    def weights(self, error: Array, spread: Array) -> Array:
        """Square roots of weights (n, nv)."""
        found = np.where(self.measured, math.sqrt(self.share) / spread, 0.0)
        if self.robust:
            found *= np.sqrt(np.minimum(1.0, HUBER * spread / np.maximum(np.abs(error), 1e-300)))
        return found


@dataclass(frozen=True)
class Fit:
    """Values (p,) with their covariance, sensors' unknowns (m,) with their deviations."""

    values: Array
    covariance: Array
    unknowns: Array
    spread: Array


def fitted(data: Data, made: Sensors, assumed: Prior, ways: Array) -> Fit:
    """Weights and values in turn, until they settle; sensors' unknowns by Gauss-Newton with them.

    Forces that hang on a torque constant are compared as the current that would make them: with
    smaller constants all forces, and what is left of them, would be smaller, and fit no better.
    """
    nominal, free, more = assumed.nominal, ways.shape[1], len(made.unknowns)
    level = data.levels(nominal)
    wide = np.hstack([ways, np.zeros((len(ways), more))])
    sure = np.array([u.deviation for u in made.unknowns]) ** -2.0
    shares = made.shares() if more else np.zeros((len(level), 0))
    count = np.maximum(data.measured.sum(0), 1)
    rows, forces = data.rows, data.forces
    error = rows @ nominal - forces
    lost = np.zeros(len(level))
    z, x = np.zeros(free), np.zeros(more)
    spread = np.ones(len(level))
    inverse = np.eye(free + more)
    moved = 0.0
    for n in range(BENT if more else PASSES):
        before, spread = spread, np.fmax(data.spread(error, lost), FLOOR * level)
        if n and np.all(np.abs(spread / before - 1.0) < SETTLED) and moved < STILL:
            break
        weights = data.weights(error, spread)
        bend = np.where(data.measured[..., None], made.slopes(x, nominal + ways @ z, error), 0.0)
        columns = np.concatenate([rows @ ways, bend - error[..., None] * shares], axis=-1)
        gap = forces - rows @ nominal + columns[..., free:] @ x
        a = (columns * weights[..., None]).reshape(-1, free + more)
        gram = a.T @ a
        gram[range(free, free + more), range(free, free + more)] += sure
        both = minimise(gram, a.T @ (gap * weights).ravel(), assumed, wide, np.append(z, x))
        z, step = both[:free], np.clip(both[free:] - x, -STRIDE, STRIDE)
        x, moved = x + step, float(np.abs(step).max(initial=0.0))
        if more:
            rows, forces, _ = made.at(x)
            forces = np.where(data.measured, forces, 0.0)
        error = rows @ (nominal + ways @ z) - forces
        second = gram + wide.T @ assumed.slopes(nominal + ways @ z)[1] @ wide
        inverse = np.asarray(solved(second, np.eye(len(second))))
        leverage = np.einsum("ij,ij->i", a @ inverse, a).reshape(error.shape)
        lost = leverage.sum(0) / (count * data.share)
    deviations = np.sqrt(np.diag(inverse)[free:])
    return Fit(nominal + ways @ z, ways @ inverse[:free, :free] @ ways.T, x, deviations)
