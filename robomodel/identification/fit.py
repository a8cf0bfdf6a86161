"""The fit: weights of coordinates, parameters and sensor unknowns in turn; and its prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np

from robomodel.arrays import Array, Indices, Mask
from robomodel.dynamics import physical
from robomodel.dynamics.physical import Cone, ParameterPrior, newton, possible, solved
from robomodel.errors import UnknownNameError, as_names, did_you_mean, few, warn
from robomodel.identification.noise import HIGHEST, SAMPLES_EACH, Autoregression, runs
from robomodel.identification.sensors import Sensors
from robomodel.mechanism.joints import Revolute
from robomodel.model.model import Model
from robomodel.model.parameters import INERTIAL, OF_JOINTS, parameters
from robomodel.model.sizes import length_of
from robomodel.spatial import UNIT
from robomodel.tolerances import SINGULAR, TINY

MOST_PASSES = 20  # limit of iterations
NONLINEAR_PASSES = 60  # the same with sensor unknowns that enter nonlinearly
WEIGHTS_SETTLED = 1e-3  # relative change of the weights at convergence
SENSORS_SETTLED = 1e-6  # change of the sensor unknowns at convergence
SENSOR_STRIDE = 1.0  # largest change of a sensor unknown in an iteration
WEIGHT_STRIDE, MOST_GAIN = 1.0, 10.0  # of logarithms of weights: most change, and gain
LEAST = 1e-100  # root mean square of forces that are none
DEVIATION_FLOOR = 1e-5  # least deviation of forces, relative to the terms in a coordinate
HUBER = 1.345  # threshold in deviations; with normal noise, 5 % of the information is lost
MEDIAN = 1.4826  # ratio of deviation and median absolute value of normal noise


def rms(x: Array) -> Array:
    """Root mean squares (nv,) over samples (n, nv) without nan; nan if there are none."""
    count = np.sum(~np.isnan(x), axis=0)
    total = np.sqrt(np.nansum(x**2, axis=0) / np.maximum(count, 1))
    return np.where(count > 0, total, np.nan)


@dataclass(frozen=True)
class Data:
    """Rows (n, nv, p) and measured forces (n, nv) of motions of ``length`` rows, and the loss.

    Rows and forces are at the initial sensor unknowns.
    """

    rows: Array
    forces: Array
    measured: Mask
    length: int
    robust: bool

    @classmethod
    def of(cls, readings: Sensors, robust: bool, compared: bool = False) -> Data:
        """The data of a measured motion; raises a ValueError if there are no forces.

        ``compared``: in the coordinates in which forces are compared (:class:`.Coordinates`).
        """
        rows, forces, _ = readings.at(np.zeros(len(readings.unknowns)), compared)
        measured = ~np.isnan(forces)
        if not measured.any():
            raise ValueError("no forces to learn from: tau holds no numbers")
        return cls(rows, np.where(measured, forces, 0.0), measured, readings.length, robust)

    def rms(self, x: Array) -> Array:
        """Root mean squares (nv,) over the measured samples; nan if there are none."""
        return rms(np.where(self.measured, x, np.nan))

    def levels(self, nominal: Array) -> Array:
        """Root mean square (nv,) of the single terms of each coordinate, which do not cancel."""
        terms = np.zeros(self.forces.shape[1])
        for i in range(len(terms)):
            parts = np.einsum("tp,p->t", self.rows[:, i] ** 2, nominal**2)
            terms[i] = np.sqrt(np.sum(parts * self.measured[:, i]) / max(self._count[i], 1))
        return np.fmax(np.fmax(terms, self.rms(self.forces)), TINY)

    @cached_property
    def _count(self) -> Array:
        return np.asarray(self.measured.sum(axis=0))

    @cached_property
    def effects(self) -> Array:
        """Root mean squares (p, nv) of the columns over the measured samples."""
        count = np.maximum(self._count, 1)
        squares = [
            np.einsum("tp,t->p", self.rows[:, i] ** 2, self.measured[:, i])
            for i in range(len(count))
        ]  # fmt: skip
        return np.asarray(np.sqrt(np.stack(squares, axis=1) / count))

    @cached_property
    def pieces(self) -> list[list[slice]]:
        """The runs of samples without a gap, of each coordinate."""
        return [runs(column, self.length) for column in self.measured.T]

    def spread(self, error: Array, lost: Array) -> Array:
        """Deviation (nv,) of each coordinate; ``lost``: fraction of its samples used by the fit."""
        level = self.rms(error)
        if self.robust:
            hidden = np.where(self.measured, np.abs(error), np.nan)
            level = np.where(np.isnan(level), np.nan, 0.0)
            some = ~np.isnan(level)
            level[some] = MEDIAN * np.nanmedian(hidden[:, some], axis=0)
        return np.asarray(level / np.sqrt(np.maximum(1.0 - lost, 0.05)))

    def loss(self, error: Array, spread: float, i: int) -> Array:
        """Square roots of the weights (n,) of a coordinate's samples; zero where not measured."""
        result = self.measured[:, i].astype(float)
        if self.robust:
            result *= np.sqrt(np.minimum(1.0, HUBER * spread / np.maximum(np.abs(error), TINY)))
        return result


@dataclass(frozen=True)
class Fit:
    """Values (p,) with their covariance, sensor unknowns (m,) with their deviations.

    ``together``: covariance (m, m) of the sensor unknowns. ``effective``: for each compared force
    (nv,) the number of samples with independent errors that tell as much of a mean as its own.
    """

    values: Array
    covariance: Array
    unknowns: Array
    spread: Array
    effective: Array
    together: Array


def fitted(
    data: Data, readings: Sensors, prior: ParameterPrior, passed: Callable[[int], None]
) -> Fit:
    """Fit noise and values in turn until they converge; sensor unknowns by Gauss-Newton.

    ``data`` are in the coordinates in which forces are compared, and noise and weights are theirs.
    Forces that depend on a torque constant are compared as currents: otherwise, smaller constants
    would reduce all forces and residuals without a better fit. Behind lossy gears rows are compared
    in units of the motors' forces, in which the errors of these are of one size
    (:meth:`.Sensors.before_gears`). Of a floating base's wrench, and of linkages without motors,
    errors are uncorrelated once the weights have settled (:class:`_Turn`). ``passed`` is called
    with the number of each pass.
    """
    nominal, directions = prior.nominal, prior.directions
    free, more = directions.shape[1], len(readings.unknowns)
    turn = _Turn.of(readings)
    level = data.levels(nominal)
    floor = DEVIATION_FLOOR * level
    wide = np.hstack([directions, np.zeros((len(directions), more))])
    sure = np.diag(np.append(np.zeros(free), [u.deviation**-2.0 for u in readings.unknowns]))
    portions = readings.shares() if more else np.zeros((len(level), 0))
    rows, forces, ahead = data.rows, data.forces, readings.before_gears(np.zeros(more))
    plain = rows @ nominal - forces
    error = _through(ahead, turn, plain)
    lost, share = np.zeros(len(level)), np.ones(len(level))
    z, x = np.zeros(free), np.zeros(more)
    spread, weight = np.ones(len(level)), np.zeros(len(level))
    inverse = covariance = np.eye(free + more)
    moved, alike = 0.0, False
    equations, stale = dict[int, _Equations](), [*range(len(level))]
    passes, orders = list[tuple[Array, Array]](), dict[int, int]()
    for n in range(NONLINEAR_PASSES if more else MOST_PASSES):
        passed(n)
        before, spread = spread, np.fmax(data.spread(error, lost), floor)
        turned = float(np.max(np.abs(spread / before - 1.0)))
        settled = turned < WEIGHTS_SETTLED and moved < SENSORS_SETTLED
        if n and settled:
            if alike:
                break
            passes, plainly = [], not turn.matrices
            if plainly:
                turn = turn.uncorrelated(data, error, spread, floor)
            alike = not (turn.matrices and plainly)
            if not alike:
                for at, matrix in turn.matrices:
                    level[at] = np.abs(matrix) @ level[at]
                error, floor = _through(ahead, turn, plain), DEVIATION_FLOOR * level
                spread, stale = np.fmax(data.spread(error, lost), floor), turn.places
        used, weight = weight, share / np.fmax(spread, LEAST) ** 2
        if n and not (settled or more or data.robust):
            passes = [*passes[-1:], (used, weight)]
            squares = np.where(spread > floor, np.sum(error**2, axis=0), 0.0)
            weight = _ahead(passes, equations.values(), z, inverse, squares)
            spread = np.where(spread > floor, np.fmax(np.sqrt(share / weight), floor), spread)
            weight = share / np.fmax(spread, LEAST) ** 2
        weight = np.where(level > LEAST, weight, 0.0)
        if more or data.robust or stale:
            slopes = readings.slopes(x, nominal + directions @ z, plain, compared=True)
            slopes = _through(ahead, turn, np.where(data.measured[..., None], slopes, 0.0))
            bend, lines = slopes - error[..., None] * portions, _through(ahead, turn, rows)
            gap = lines @ (directions @ z) - error + bend @ x
            for i in range(len(level)) if more or data.robust else stale:
                equations[i] = _Equations.of(
                    lines[:, i], directions, bend[:, i], gap[:, i],
                    data.loss(error[:, i], spread[i], i),
                )  # fmt: skip
            stale = []
        gram, right = sure.copy(), np.zeros(free + more)
        for each, w in zip(equations.values(), weight.tolist(), strict=True):
            gram[np.ix_(each.at, each.at)] += w * each.gram
            right[each.at] += w * each.right
        both, converged = newton(gram, right, prior, wide, np.append(z, x))
        z, step = both[:free], np.clip(both[free:] - x, -SENSOR_STRIDE, SENSOR_STRIDE)
        x, moved = x + step, float(np.abs(step).max(initial=0.0))
        if more:
            rows, forces, _ = readings.at(x, compared=True)
            forces, ahead = np.where(data.measured, forces, 0.0), readings.before_gears(x)
        plain = rows @ (nominal + directions @ z) - forces
        error = _through(ahead, turn, plain)
        assumed = wide.T @ prior.slopes(nominal + directions @ z)[1] @ wide + sure
        inverse = np.asarray(solved(gram - sure + assumed, np.eye(free + more)))
        if alike or more:
            meat, most = assumed, np.zeros(free + more)
            for each in equations.values():
                most[each.at] = np.fmax(most[each.at], np.diag(each.gram))
            for i, each in equations.items():
                exact = spread[i] <= floor[i]
                noise = _noise(error[:, i], exact, data.pieces[i], data.robust, orders.get(i))
                if alike:  # weights would jump to and fro with the order, and never settle
                    orders[i] = noise.order
                spurious = noise.covariance(each.columns)
                scale = np.sqrt(np.maximum(np.diag(each.gram), TINY))
                # what other coordinates feel may be rounding here
                felt = np.flatnonzero(np.diag(each.gram) > SINGULAR**2 * most[each.at])
                ratio = np.diag(spurious)[felt] / scale[felt] ** 2
                share[i] = min(1.0, 1.0 / float(np.mean(ratio))) if len(felt) else 1.0
                block = np.ix_(each.at, each.at)
                meat[block] += weight[i] ** 2 * spread[i] ** 2 * spurious
                lost[i] = weight[i] * float(np.sum(inverse[block] * spurious))
            lost /= np.maximum(data._count, 1)
            covariance = inverse @ meat @ inverse
        else:
            lost = np.array([
                w * float(np.sum(inverse[np.ix_(each.at, each.at)] * each.gram))
                for each, w in zip(equations.values(), weight.tolist(), strict=True)
            ]) / np.maximum(data._count, 1)  # fmt: skip
    else:
        warn(
            RuntimeWarning(
                f"the fit did not settle in {n + 1} passes (spreads changed by {turned:.1e}, "
                f"unknowns of sensors by {moved:.1e})"
            )
        )
    if not converged:
        warn(
            RuntimeWarning(
                f"the fit's parameters did not converge in {physical.MOST_NEWTON} steps of Newton"
            )
        )
    for at in turn.blocks:
        share[at] = np.min(share[at])
    deviations = np.sqrt(np.diag(covariance)[free:])
    return Fit(
        nominal + directions @ z, directions @ covariance[:free, :free] @ directions.T, x,
        deviations, data._count * share, covariance[free:, free:],
    )  # fmt: skip


def _ahead(
    passes: Sequence[tuple[Array, Array]], equations: Iterable[_Equations], z: Array,
    inverse: Array, squares: Array,
) -> Array:  # fmt: skip
    """The next weights (nv,), from those used in the last two passes and those found with them.

    A pass finds weights that change in logarithms by J = 2 gᵀ H⁻¹ g used/squares of those that it
    uses, with H⁻¹ the ``inverse`` and g the half gradients of the ``squares`` of errors by z (0 of
    weights that do not hang on them), but for what the noise's model adds. Where J is near 1, as
    parameters trade errors of one coordinate for those of another, each pass takes a small share
    off: Newton's steps (1 - J)⁻¹ do not. J is made symmetric, and what is missing in it is
    Broyden's correction, by the pass before.
    """
    used, found = passes[-1]
    some = np.flatnonzero((used > 0.0) & (squares > 0.0))
    gaps = [np.log(right[some] / left[some]) for left, right in passes]
    if np.max(np.abs(gaps[-1]), initial=0.0) > WEIGHT_STRIDE:  # far off
        return found
    slopes = np.zeros((len(inverse), len(used)))
    for n, each in enumerate(equations):
        slopes[each.at, n] = each.gram @ z[each.at] - each.right
    slopes *= np.sqrt(2.0 * used / np.where(squares > 0.0, squares, 1.0))
    scale = np.sqrt(used * squares)[some]
    rates, ways = np.linalg.eigh(slopes[:, some].T @ inverse @ slopes[:, some])
    matrix = (ways * np.maximum(1.0 - rates, 1.0 / MOST_GAIN)) @ ways.T
    gaps = [scale * each for each in gaps]
    step = np.linalg.solve(matrix, gaps[-1])
    if len(passes) > 1:
        moved = scale * np.log(used[some] / passes[0][0][some])
        missing = gaps[0] - gaps[1] - matrix @ moved
        size = max(float(moved @ moved), TINY)
        corrected = np.linalg.lstsq(matrix + np.outer(missing, moved) / size, gaps[-1])[0]
        step = corrected if corrected @ gaps[-1] > 0.0 else step  # never back, as at saddles
    more = (step - gaps[-1]) / scale
    result = found.copy()
    result[some] *= np.exp(np.clip(more, -WEIGHT_STRIDE, WEIGHT_STRIDE))
    return result


def _through(matrices: Array | None, turn: _Turn, x: Array) -> Array:
    """Matrices (n, nv, nv), if there are some, times x (n, nv, …); then the turn of that."""
    there = x if matrices is None else np.asarray(np.einsum("tij,tj...->ti...", matrices, x))
    if not turn.matrices:
        return there
    result = there.copy()
    for at, matrix in turn.matrices:
        result[:, at] = np.einsum("ij,tj...->ti...", matrix, there[:, at])
    return result


@dataclass(frozen=True)
class _Turn:
    """Other coordinates of forces whose errors may be correlated: those in which they are not.

    These are a floating base's wrench, as errors of moments about one point hang on those of forces
    if they do not about another, and forces on linkages and differentials along orthonormal rates,
    as errors may be those of joints. Results then depend neither on points and axes nor on rates.
    ``blocks`` are their places, ``matrices`` those of blocks whose covariance is known.
    """

    blocks: tuple[slice, ...]
    matrices: tuple[tuple[slice, Array], ...] = ()

    @classmethod
    def of(cls, readings: Sensors) -> _Turn:
        """None yet."""
        model = readings.model
        bases = [each.v for each in model.clusters if model.floating_base in each.joints]
        rates = [x.cluster.v for x in readings.coordinates.clusters if not x.exact]
        return cls((*bases, *(at for at in rates if at.stop - at.start > 1 and at not in bases)))

    @property
    def places(self) -> list[int]:
        """The coordinates of blocks that are turned."""
        return [i for at, _ in self.matrices for i in range(at.start, at.stop)]

    def uncorrelated(self, data: Data, error: Array, spread: Array, floor: Array) -> _Turn:
        """The turn to coordinates of uncorrelated errors, of the sizes of errors (n, nv).

        Of blocks some samples of which lack forces or which have too few, of which errors are
        rounding, or whose covariance is singular, there is none.
        """
        found = ((at, self._matrix(at, data, error, spread, floor)) for at in self.blocks)
        return replace(self, matrices=tuple((at, x) for at, x in found if x is not None))

    @staticmethod
    def _matrix(at: slice, data: Data, error: Array, spread: Array, floor: Array) -> Array | None:
        """The turn of one block; None if there is none."""
        told, places = data.measured[:, at], range(at.start, at.stop)
        count = SAMPLES_EACH * len(places) * (len(places) + 1) // 2
        exact = bool(np.any(spread[at] <= floor[at]))
        if exact or np.sum(told[:, 0]) < count or np.any(told != told[:, :1]):
            return None
        loss = [data.loss(error[:, i], float(spread[i]), i) * error[:, i] for i in places]
        sizes = np.linalg.norm(loss, axis=1)
        scaled = np.array(loss) / sizes[:, None]
        values, ways = np.linalg.eigh(scaled @ scaled.T)
        if values[0] <= SINGULAR:
            return None
        return np.asarray((ways / np.sqrt(values)) @ ways.T * (sizes[:, None] / sizes))


@dataclass(frozen=True)
class Trial:
    """Further columns beside a fit: coefficients (k,) and their deviations (k,)."""

    found: Array
    deviations: Array


@dataclass(frozen=True, eq=False)
class Trials:
    """Trials of further columns, beside all parameters and sensor unknowns of a fit.

    A step of Gauss and Newton from it. ``columns``: the further ones of each coordinate (n, k);
    after all of these come the ``shared`` ones (n, nv, k).
    """

    data: Data
    prior: ParameterPrior
    error: Array
    slopes: Array
    sure: Array
    values: Array
    columns: Sequence[Array]
    shared: Array

    @classmethod
    def of(cls, data: Data, readings: Sensors, prior: ParameterPrior, values: Array,
           x: Array, columns: Sequence[Array]) -> Trials:  # fmt: skip
        """After a fit with these values (p,) and sensor unknowns x."""
        rows, forces, _ = readings.at(x)
        error = np.where(data.measured, rows @ values - forces, 0.0)
        slopes = np.where(
            data.measured[..., None], readings.slopes(x, values, rows @ values - forces), 0.0
        )
        sure = np.array([u.deviation**-2.0 for u in readings.unknowns])
        none = np.zeros((*error.shape, 0))
        return cls(replace(data, rows=rows), prior, error, slopes, sure, values, columns, none)

    def beside(self, shared: Sequence[Array]) -> Trials:
        """The same with these shared columns (n, nv, k), too."""
        every = np.concatenate([self.shared, *shared], axis=-1)
        return replace(self, shared=np.where(self.data.measured[..., None], every, 0.0))

    @cached_property
    def _equations(self) -> list[_Equations]:
        """The normal equations of all columns, the further ones last."""
        none = [np.zeros((len(self.error), x.shape[1])) for x in self.columns]
        result = []
        for i, further in enumerate(self.columns):
            own = [*none[:i], np.nan_to_num(further), *none[i + 1 :], self.shared[:, i]]
            bend = np.concatenate([self.slopes[:, i], *own], axis=1)
            loss = self.data.loss(self.error[:, i], np.inf, i)
            result.append(
                _Equations.of(
                    self.data.rows[:, i], self.prior.directions, bend, -self.error[:, i], loss
                )
            )
        return result

    @cached_property
    def _level(self) -> Array:
        """The least deviation that counts, of each coordinate (nv,)."""
        return DEVIATION_FLOOR * self.data.levels(self.values)

    @property
    def _kept(self) -> int:
        """Number of parameters and sensor unknowns."""
        return int(self.prior.directions.shape[1]) + len(self.sure)

    @cached_property
    def _assumed(self) -> tuple[Array, Array]:
        """The prior's Hessian and gradient by all unknowns."""
        point, directions = self.prior.point(self.values), self.prior.directions
        count = self._kept + sum(x.shape[1] for x in self.columns) + self.shared.shape[2]
        inner, outer = slice(0, directions.shape[1]), range(directions.shape[1], self._kept)
        assumed, slope = np.zeros((count, count)), np.zeros(count)
        assumed[inner, inner] = directions.T @ point.hessian @ directions
        assumed[outer, outer] = self.sure
        slope[inner] = directions.T @ point.gradient
        return assumed, slope

    def _normal(self, error: Array) -> tuple[Array, Array, Array]:
        """Matrix, right side and weights of the coordinates, for errors (n, nv)."""
        assumed, slope = self._assumed
        gram, right = assumed.copy(), -slope
        spread = np.fmax(self.data.rms(error), self._level)
        weight = np.where(spread > LEAST, np.fmax(spread, LEAST) ** -2.0, 0.0)
        for each, w in zip(self._equations, weight.tolist(), strict=True):
            gram[np.ix_(each.at, each.at)] += w * each.gram
            right[each.at] += w * each.right
        return gram, right, weight

    @cached_property
    def _further(self) -> tuple[Array, Array]:
        """Matrix and right side of the further columns, all others eliminated."""
        gram, right, _ = self._normal(self.error)
        kept = self._kept
        if not kept:
            return gram, right
        both = solved(gram[:kept, :kept], np.column_stack([gram[:kept, kept:], right[:kept]]))
        return (
            gram[kept:, kept:] - gram[kept:, :kept] @ both[:, :-1],
            right[kept:] - gram[kept:, :kept] @ both[:, -1],
        )

    def gain(self, chosen: Sequence[int]) -> float:
        """The gain of the columns of these places, counted through all coordinates, together."""
        matrix, right = self._further
        some = matrix[np.ix_(chosen, chosen)]
        inverse = np.linalg.pinv(_scaled(some), hermitian=True) / _sizes(some)
        return 0.5 * float(right[chosen] @ inverse @ right[chosen])

    def held_out(self, chosen: Sequence[int], blocks: Sequence[Indices]) -> Array:
        """Squares (blocks, nv) of what is left of each block, by a step for all others.

        With the columns of these places alone.
        """
        used = self._used(chosen)
        gram, right, weight = self._normal(self.error)
        result = np.zeros((len(blocks), len(weight)))
        for n, block in enumerate(blocks):
            matrix, side = gram.copy(), right.copy()
            gaps = -self.error[block]
            for each, w, gap in zip(self._equations, weight.tolist(), gaps.T, strict=True):
                part = each.columns[block]
                matrix[np.ix_(each.at, each.at)] -= w * (part.T @ part)
                side[each.at] -= w * (part.T @ gap)
            matrix = matrix[np.ix_(used, used)]
            size = np.sqrt(np.maximum(np.diag(matrix), LEAST))
            regular = _scaled(matrix) + SINGULAR * np.eye(len(used))
            step = np.zeros(len(gram))
            step[used] = np.linalg.solve(regular, side[used] / size) / size
            for i, each in enumerate(self._equations):
                left = gaps[:, i] - each.columns[block] @ step[each.at]
                result[n, i] = left @ left
        return result

    @property
    def weight(self) -> Array:
        """Weights (nv,) of the squares of each coordinate."""
        return self._normal(self.error)[2]

    def _used(self, chosen: Sequence[int]) -> Indices:
        """All that is kept, and the columns of these places."""
        kept = self._kept
        return np.append(np.arange(kept), kept + np.array(chosen, dtype=int))

    def __call__(self, chosen: Sequence[int]) -> Trial:
        """The columns of these places alone."""
        kept, used = self._kept, self._used(chosen)
        error = self.error
        for _ in range(2):  # with the fit's errors, then with those of this one
            gram, right, weight = self._normal(error)
            matrix = gram[np.ix_(used, used)]
            inverse = np.linalg.pinv(_scaled(matrix), hermitian=True) / _sizes(matrix)
            step = np.zeros(len(gram))
            step[used] = inverse @ right[used]
            error = np.stack(
                [e + each.columns @ step[each.at]
                 for e, each in zip(self.error.T, self._equations, strict=True)], axis=1
            )  # fmt: skip
        meat, sizes = self._assumed[0].copy(), np.nan_to_num(self.data.rms(error))
        for i, each in enumerate(self._equations):
            noise = Autoregression.of(error[:, i], self.data.pieces[i])
            size = (weight[i] * float(sizes[i])) ** 2
            meat[np.ix_(each.at, each.at)] += size * noise.covariance(each.columns)
        covariance = inverse @ meat[np.ix_(used, used)] @ inverse
        return Trial(step[used][kept:], np.sqrt(np.diag(covariance)[kept:]))


def _sizes(matrix: Array) -> Array:
    """Products of the roots of a matrix's diagonal."""
    size = np.sqrt(np.maximum(np.diag(matrix), LEAST))
    return np.outer(size, size)


def _scaled(matrix: Array) -> Array:
    """The matrix with a diagonal of ones."""
    return np.asarray(matrix / _sizes(matrix))


@dataclass(frozen=True)
class _Equations:
    """A coordinate's columns (n, m) of unknowns ``at`` (m,), with their normal equations."""

    at: Indices
    columns: Array
    gram: Array
    right: Array

    @classmethod
    def of(cls, rows: Array, directions: Array, bend: Array, gap: Array, loss: Array) -> _Equations:
        """From rows (n, p), slopes by sensor unknowns (n, ·), what is left (n,), roots of weights.

        Columns that vanish are left out.
        """
        felt = np.flatnonzero(rows.any(axis=0))
        ways = directions[felt]
        moving = np.flatnonzero(ways.any(axis=0))
        bent = np.flatnonzero(bend.any(axis=0))
        columns = np.concatenate([rows[:, felt] @ ways[:, moving], bend[:, bent]], axis=1)
        columns *= loss[:, None]
        at = np.append(moving, directions.shape[1] + bent)
        return cls(at, columns, columns.T @ columns, columns.T @ (loss * gap))


def _noise(
    error: Array, exact: bool, pieces: list[slice], robust: bool, order: int | None
) -> Autoregression:
    """The model of an error (n,) in time; white where only rounding is left (``exact``)."""
    if robust:
        seen = np.concatenate([error[at] for at in pieces]) if pieces else error
        bound = 3.0 * MEDIAN * float(np.median(np.abs(seen)))
        error = np.clip(error, -bound, bound)
    return Autoregression.of(error, pieces, 0 if exact else HIGHEST, order)


# ---- prior of a model's parameters -------------------------------------------------------------

BODY = len(INERTIAL)
UNKNOWN = 0.05  # assumed size of a loss that the file lacks, relative to the forces
ASSUMED_LOSS = 3.0  # relative deviation of such a loss
POINT_EXTENT = 0.02  # extent assumed for a point mass, relative to the robot's longest link


def assumptions(
    model: Model, data: Data, changing: Array, named: Array, share: float,
    balanced: Collection[int],
) -> tuple[ParameterPrior, list[str]]:  # fmt: skip
    """The prior of :func:`robomodel.identify`, and notes on where it differs from the model.

    ``changing`` and ``named`` are the masks of :func:`chosen`; ``share`` is the relative deviation
    assumed of the model's values; ``balanced`` are bodies that stay symmetric if they are.
    """
    filed, notes = parameters(model), list[str]()
    nominal, changing = filed.values.copy(), changing.copy()
    cones = _bodies(model, nominal, changing, named, notes)
    scalars = _scalars(filed.names, nominal, changing, data, notes)
    directions = _directions(model, nominal, changing, named, balanced)
    spread = np.where(filed.values[scalars] > 0.0, share, ASSUMED_LOSS)
    return ParameterPrior(cones, scalars, nominal, directions, share**-2.0, spread**-2.0), notes


def rotors(model: Model) -> list[int]:
    """Bodies that motors of clusters turn alone: files know these as rotors by their symmetry."""
    at = (model.joint_names.index(each.joint) for each in model.actuators)
    alone = [i for i in at if i not in model.parents]
    return [i for i in alone if model.clusters[model.nodes[i].cluster].kind != "joint"]


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


def kept_none(model: Model) -> Mask:
    """Which inertial parameters (10 · bodies,) a fit leaves at zero, as bodies lack them."""
    nominal = parameters(model).values[: BODY * len(model.bodies)].reshape(-1, BODY)
    length = POINT_EXTENT * length_of(model)
    counts = np.array([_lacking(possible(each, length)) for each in nominal], dtype=np.intp)
    return (np.arange(BODY) < counts[:, None]).ravel()


def _lacking(physical: Array) -> int:
    """How many of its first parameters (10,) a body lacks: without mass four, or all."""
    return 0 if physical[0] else 4 if physical[4:].any() else BODY


def _bodies(
    model: Model, nominal: Array, changing: Array, named: Array, notes: list[str]
) -> list[Cone]:
    """The cones of bodies that may change, with ``nominal`` made physically consistent.

    Bodies without a mass or inertia keep none.
    """
    length = POINT_EXTENT * length_of(model)
    cones, raised, empty = [], [], []
    for i, body in enumerate(model.bodies):
        at = slice(BODY * i, BODY * (i + 1))
        if not changing[at].any():
            continue
        physical = possible(nominal[at], length)
        lacks = np.zeros(BODY, dtype=bool)
        lacks[: _lacking(physical)] = True
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
            there = np.abs(column) > SINGULAR * np.abs(column).max()  # a joint at rest has rounding
            size = np.where(there, data.forces / level, 0.0)
            force = np.linalg.norm(size) or math.sqrt(np.count_nonzero(there))
            nominal[i] = UNKNOWN * force / np.linalg.norm(column)
        places.append(i)
    if idle:
        notes.append(f"do not affect the recorded motion, and stay zero: {few(idle)}")
    return np.array(places, dtype=int)


def _directions(
    model: Model, nominal: Array, changing: Array, named: Array, balanced: Collection[int]
) -> Array:
    """The directions (p, f) in which parameters may change."""
    columns: list[Array] = []
    unit = np.eye(len(nominal))
    tied: set[int] = set()
    for i in sorted(balanced):
        node, at = model.nodes[i], slice(BODY * i, BODY * (i + 1))
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
