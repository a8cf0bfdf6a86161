"""The fit: weights of coordinates, parameters and sensor unknowns in turn; and its prior."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.physical import Cone, ParameterPrior, minimise, possible, solved
from robomodel.errors import UnknownNameError, as_names, did_you_mean, few, warn
from robomodel.identification.sensors import Sensors
from robomodel.mechanism.joints import Revolute
from robomodel.model.model import Model
from robomodel.model.parameters import INERTIAL, OF_JOINTS, parameters
from robomodel.scalars import value_of
from robomodel.spatial import UNIT
from robomodel.tolerances import TINY

PASSES = 20  # limit of iterations
BENT = 60  # the same with sensor unknowns that enter nonlinearly
WEIGHTS_SETTLED = 1e-3  # relative change of the weights at convergence
SENSORS_SETTLED = 1e-6  # change of the sensor unknowns at convergence
STRIDE = 1.0  # largest change of a sensor unknown in an iteration
FLOOR = 1e-5  # least deviation of forces, relative to the terms in a coordinate
HUBER = 1.345  # threshold in deviations; with normal noise, 5 % of the information is lost
MEDIAN = 1.4826  # ratio of deviation and median absolute value of normal noise


def rms(x: Array) -> Array:
    """Root mean squares (nv,) over samples (n, nv) without nan; nan if there are none."""
    count = np.sum(~np.isnan(x), axis=0)
    total = np.sqrt(np.nansum(x**2, axis=0) / np.maximum(count, 1))
    return np.where(count > 0, total, np.nan)


@dataclass(frozen=True)
class Data:
    """Rows (n, nv, p), measured forces (n, nv), effective fraction of samples, and loss.

    Rows and forces are at the initial sensor unknowns.
    """

    rows: Array
    forces: Array
    measured: Array
    share: float
    robust: bool

    @classmethod
    def of(cls, readings: Sensors, robust: bool) -> Data:
        """The data of a measured motion; raises a ValueError if there are no forces."""
        rows, forces, _ = readings.at(np.zeros(len(readings.unknowns)))
        measured = ~np.isnan(forces)
        if not measured.any():
            raise ValueError("no forces to learn from: tau holds no numbers")
        return cls(rows, np.where(measured, forces, 0.0), measured, readings.share, robust)

    def rms(self, x: Array) -> Array:
        """Root mean squares (nv,) over the measured samples; nan if there are none."""
        return rms(np.where(self.measured, x, np.nan))

    def levels(self, nominal: Array) -> Array:
        """Root mean square (nv,) of the single terms of each coordinate, which do not cancel."""
        parts = np.sqrt(np.einsum("tip,p->ti", self.rows**2, nominal**2))
        return np.fmax(np.fmax(self.rms(parts), self.rms(self.forces)), TINY)

    def spread(self, error: Array, lost: Array) -> Array:
        """Deviation (nv,) of each coordinate; ``lost``: fraction of its samples used by the fit."""
        level = self.rms(error)
        if self.robust:
            hidden = np.where(self.measured, np.abs(error), np.nan)
            level = np.where(np.isnan(level), np.nan, 0.0)
            some = ~np.isnan(level)
            level[some] = MEDIAN * np.nanmedian(hidden[:, some], axis=0)
        return np.asarray(level / np.sqrt(np.maximum(1.0 - lost, 0.05)))

    def weights(self, error: Array, spread: Array) -> Array:
        """Square roots of the weights (n, nv)."""
        result = np.where(self.measured, math.sqrt(self.share) / spread, 0.0)
        if self.robust:
            result *= np.sqrt(np.minimum(1.0, HUBER * spread / np.maximum(np.abs(error), TINY)))
        return result


@dataclass(frozen=True)
class Fit:
    """Values (p,) with their covariance, sensor unknowns (m,) with their deviations."""

    values: Array
    covariance: Array
    unknowns: Array
    spread: Array


def fitted(data: Data, readings: Sensors, prior: ParameterPrior) -> Fit:
    """Fit weights and values in turn until they converge; sensor unknowns by Gauss-Newton.

    Forces that depend on a torque constant are compared as currents: otherwise, smaller constants
    would reduce all forces and residuals without a better fit.
    """
    nominal, directions = prior.nominal, prior.directions
    free, more = directions.shape[1], len(readings.unknowns)
    level = data.levels(nominal)
    wide = np.hstack([directions, np.zeros((len(directions), more))])
    sure = np.array([u.deviation for u in readings.unknowns]) ** -2.0
    shares = readings.shares() if more else np.zeros((len(level), 0))
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
        if (
            n
            and np.all(np.abs(spread / before - 1.0) < WEIGHTS_SETTLED)
            and moved < SENSORS_SETTLED
        ):
            break
        weights = data.weights(error, spread)
        slopes = readings.slopes(x, nominal + directions @ z, error)
        bend = np.where(data.measured[..., None], slopes, 0.0)
        columns = np.concatenate([rows @ directions, bend - error[..., None] * shares], axis=-1)
        gap = forces - rows @ nominal + columns[..., free:] @ x
        a = (columns * weights[..., None]).reshape(-1, free + more)
        gram = a.T @ a
        gram[range(free, free + more), range(free, free + more)] += sure
        both = minimise(gram, a.T @ (gap * weights).ravel(), prior, wide, np.append(z, x))
        z, step = both[:free], np.clip(both[free:] - x, -STRIDE, STRIDE)
        x, moved = x + step, float(np.abs(step).max(initial=0.0))
        if more:
            rows, forces, _ = readings.at(x)
            forces = np.where(data.measured, forces, 0.0)
        error = rows @ (nominal + directions @ z) - forces
        second = gram + wide.T @ prior.slopes(nominal + directions @ z)[1] @ wide
        inverse = np.asarray(solved(second, np.eye(len(second))))
        leverage = np.einsum("ij,ij->i", a @ inverse, a).reshape(error.shape)
        lost = leverage.sum(0) / (count * data.share)
    else:
        warn(
            RuntimeWarning(
                f"the fit did not settle in {n + 1} passes (spreads changed by "
                f"{np.abs(spread / before - 1.0).max():.1e}, unknowns of sensors by {moved:.1e})"
            )
        )
    deviations = np.sqrt(np.diag(inverse)[free:])
    return Fit(
        nominal + directions @ z, directions @ inverse[:free, :free] @ directions.T, x, deviations
    )


# ---- prior of a model's parameters -------------------------------------------------------------

BODY = len(INERTIAL)
UNKNOWN = 0.05  # assumed size of a loss that the file lacks, relative to the forces
ASSUMED_LOSS = 3.0  # relative deviation of such a loss
POINT_EXTENT = 0.02  # extent assumed for a point mass, relative to the robot's longest link


def assumptions(
    model: Model, data: Data, changing: Array, named: Array, share: float, balanced: bool
) -> tuple[ParameterPrior, list[str]]:
    """The prior of :func:`robomodel.identify`, and notes on where it differs from the model.

    ``changing`` and ``named`` are the masks of :func:`chosen`; ``share`` is the relative deviation
    assumed of the model's values.
    """
    filed, notes = parameters(model), list[str]()
    nominal, changing = filed.values.copy(), changing.copy()
    cones = _bodies(model, nominal, changing, named, notes)
    scalars = _scalars(filed.names, nominal, changing, data, notes)
    directions = _directions(model, nominal, changing, named, balanced)
    spread = np.where(filed.values[scalars] > 0.0, share, ASSUMED_LOSS)
    return ParameterPrior(cones, scalars, nominal, directions, share**-2.0, spread**-2.0), notes


def chosen(model: Model, free: str | Iterable[str] | None) -> tuple[Array, Array]:
    """Masks (p,) of the parameters that may change, and of those that ``free`` lists by name."""
    names = parameters(model).names
    owners = [name.rpartition(".")[0] for name in names]
    kinds = [name.rpartition(".")[2] for name in names]
    named = np.zeros(len(names), dtype=bool)
    if free is None:
        geared = {joint for coupling in model.couplings for joint, _ in coupling.terms}
        held = [k == "armature" and o in geared for k, o in zip(kinds, owners, strict=True)]
        return ~np.array(held, dtype=bool), named
    result = np.zeros(len(names), dtype=bool)
    groups = {kind: (kind,) for kind in (*INERTIAL, *OF_JOINTS)} | {"inertial": INERTIAL}
    for word in as_names(free, "free"):
        if word in groups:
            result |= [kind in groups[word] for kind in kinds]
            continue
        exact = [word in (name, owner) for name, owner in zip(names, owners, strict=True)]
        here = exact if any(exact) else [fnmatchcase(name, word) for name in names]
        if not any(here):
            hint = did_you_mean(word, [*names, *owners, *groups])
            raise UnknownNameError(f"free: no parameter, kind, body or joint '{word}'{hint}")
        result |= here
        named |= [name == word for name in names]
    return result, named


def _bodies(
    model: Model, nominal: Array, changing: Array, named: Array, notes: list[str]
) -> list[Cone]:
    """The cones of bodies that may change, with ``nominal`` made physically consistent.

    Bodies without a mass or inertia keep none.
    """
    extents = [math.hypot(*map(value_of, node.offset)) for node in model.nodes]
    length = POINT_EXTENT * (max(extents, default=0.0) or 1.0)
    cones, raised, empty = [], [], []
    for i, body in enumerate(model.bodies):
        at = slice(BODY * i, BODY * (i + 1))
        if not changing[at].any():
            continue
        physical = possible(nominal[at], length)
        lacks = np.zeros(BODY, dtype=bool)
        if physical[0] == 0.0:
            lacks[: 4 if physical[4:].any() else BODY] = True
        if (named[at] & lacks).any():
            what = "mass" if physical[4:].any() else "mass and no inertia"
            raise ValueError(
                f"'{body.name}' has no {what} to begin with; give it some by rm.with_parameters"
            )
        changing[at] = changing[at] & ~lacks
        if lacks.all():
            empty.append(body.name)
            continue
        if not np.array_equal(physical, nominal[at]):
            raised.append(body.name)
            nominal[at] = physical
        if changing[at].any():
            cones.append(Cone.of(BODY * i, physical))
    if raised:
        notes.append(
            "have in the file an inertia that no body has (flat, or a point); the fit began with a "
            f"small one that is possible, and nothing is to be done: {few(raised)}"
        )
    if empty:
        notes.append(f"have neither mass nor inertia, and keep none: {few(empty)}")
    return cones


def _scalars(
    names: tuple[str, ...], nominal: Array, changing: Array, data: Data, notes: list[str]
) -> Array:
    """Indices of joint parameters that may change, with ``nominal`` made positive.

    Parameters that are zero and do not affect the motion are held.
    """
    level = data.levels(nominal)
    places, idle = [], []
    for i, name in enumerate(names):
        if not changing[i] or name.rpartition(".")[2] not in OF_JOINTS:
            continue
        column = np.where(data.measured, data.rows[..., i] / level, 0.0)
        felt = np.abs(column).max() > 0.0
        if nominal[i] <= 0.0:
            if not felt:
                changing[i] = False
                idle.append(name)
                continue
            size = np.where(column != 0.0, data.forces / level, 0.0)
            force = np.linalg.norm(size) or math.sqrt(np.count_nonzero(column))
            nominal[i] = UNKNOWN * force / np.linalg.norm(column)
        places.append(i)
    if idle:
        notes.append(f"do not affect the recorded motion, and stay zero: {few(idle)}")
    return np.array(places, dtype=int)


def _directions(
    model: Model, nominal: Array, changing: Array, named: Array, balanced: bool
) -> Array:
    """The directions (p, f) in which parameters may change."""
    columns: list[Array] = []
    unit = np.eye(len(nominal))
    tied: set[int] = set()
    for i, node in enumerate(model.nodes if balanced else ()):
        at = slice(BODY * i, BODY * (i + 1))
        places = np.flatnonzero(changing[at])
        if not (node.axisymmetric and isinstance(node.joint, Revolute)) or named[at].any():
            continue
        axis = np.array(model.frame(node.name).pose.unrotate(UNIT[node.joint.k]), dtype=float)
        along = np.outer(axis, axis)
        across = np.eye(3) - along
        upper = np.triu_indices(3)
        combinations = np.zeros((4, BODY))
        combinations[0, 0] = 1.0
        combinations[1, 1:4] = axis
        combinations[2, 4:], combinations[3, 4:] = along[upper], across[upper]
        combinations = combinations[
            [np.all(np.isin(np.flatnonzero(row), places)) for row in combinations]
        ]
        for row in combinations:
            column = np.zeros(len(nominal))
            column[at] = row
            columns.append(column)
        tied.update(range(at.start, at.stop))
    columns += [unit[i] for i in np.flatnonzero(changing) if i not in tied]
    return np.array(columns).reshape(-1, len(nominal)).T
