"""Identification of parameters from measured motions, with physically consistent bodies."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.physical import ParameterPrior
from robomodel.errors import argument, as_real, few, warn
from robomodel.identification.base import base_parameters
from robomodel.identification.fit import Data, assumptions, chosen, fitted, rms
from robomodel.identification.logs import Log, read_log
from robomodel.identification.sensors import Sensors, sensors
from robomodel.model.elements import Joint
from robomodel.model.model import Model
from robomodel.model.parameters import (
    OF_JOINTS,
    parameters,
    unit_of,
    with_parameters,
)
from robomodel.tolerances import SINGULAR, TINY

UNKNOWN_SHARE = 0.1  # information gain below which a parameter counts as unknown
MOST_LISTED = 12  # number of changed parameters that are listed


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibrated quantity of a sensor or joint.

    Attributes:
        kind: "offset", "ratio", "constant", "static friction", "Stribeck velocity" or "delay".
        name: Name of the joint, coupling, actuator or coordinate.
        value: An encoder's offset [rad or m], to be added to its reading; a coupling's ratio, of
            its dependent joint to the next; a motor's torque constant [N m/A]; the excess of
            static over Coulomb friction [N m or N], at a Stribeck velocity [rad/s or m/s]; or the
            delay [s] of the forces behind the motion.
        deviation: Standard deviation of the value.
    """

    kind: str
    name: str
    value: float
    deviation: float

    @property
    def title(self) -> str:
        """Its description in words."""
        what = {
            "offset": "zero of the encoder of",
            "constant": "torque constant of",
            "static friction": "static friction above Coulomb's of",
        }
        return f"{what.get(self.kind, f'{self.kind} of')} {self.name}"


@dataclass(frozen=True, slots=True)
class IdentifiedGroup:
    """An identifiable combination of parameters, and its estimate.

    Attributes:
        name: The combination in words, such as "damping of j1 + 81 damping of j1_rotor".
        value: Its value, in ``unit``.
        deviation: Standard deviation of the value.
        unit: Unit of its first parameter.
        information_gain: The fraction of its prior variance that the data removed.
        coefficients: Coefficients by parameter.
    """

    name: str
    value: float
    deviation: float
    unit: str
    information_gain: float
    coefficients: Mapping[str, float]

    @property
    def known(self) -> bool:
        """True if the information gain is a tenth or more."""
        return self.information_gain >= UNKNOWN_SHARE


@dataclass(frozen=True, eq=False)
class Identified:
    """Identified parameters of a robot, in the order of :func:`robomodel.parameters`.

    Attributes:
        model: The robot with the identified values and gear ratios.
        names: Names of the parameters.
        values: Their values (p,).
        covariance: Posterior covariance (p, p), from noise and prior; zero for held parameters.
        prior_covariance: Prior covariance (p, p).
        before: Root mean square of each coordinate's residual (nv,) [N m, N], measured less
            predicted force, with the file's parameters; nan without measurements.
        sensors: Calibrated offsets, ratios and torque constants.
        measured: Forces of all samples (n, nv), nan where not measured (filtered without
            accelerations).
        predicted: The forces predicted with the identified values.
        file: The forces predicted with the file's parameters.
        validation: As ``before``, for forces in blocks of time that the fit did not use; nan
            without ``folds``.
        notes: Remarks on the fit, as text.
        suspicions: Suspected errors of the measurements, as text: units, signs, limits, delays.
        times: Times of the samples (n,) [s], or None.
    """

    model: Model
    names: tuple[str, ...]
    values: Array
    covariance: Array
    prior_covariance: Array
    before: Array
    sensors: tuple[Calibrated, ...]
    measured: Array
    predicted: Array
    file: Array
    validation: Array
    notes: tuple[str, ...]
    suspicions: tuple[str, ...]
    times: Array | None

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.measured)

    @property
    def residual(self) -> Array:
        """As ``before``, with the identified values."""
        return rms(self.predicted - self.measured)

    @property
    def forces(self) -> Array:
        """Root mean squares of measured forces (nv,)."""
        return rms(self.measured)

    @property
    def information_gain(self) -> Array:
        """The fraction of each value's prior variance (p,) that the data removed.

        0: the data do not determine it; 1: they determine it fully.
        """
        before, after = np.diag(self.prior_covariance), np.diag(self.covariance)
        gain = np.clip(1.0 - after / np.where(before > 0.0, before, 1.0), 0.0, 1.0)
        return np.where(before > 0.0, gain, 0.0)

    @property
    def deviation(self) -> Array:
        """Standard deviations of the values (p,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Free parameters with an information gain below a tenth."""
        free = np.diag(self.covariance) > 0.0
        rows = zip(self.names, self.information_gain, free, strict=True)
        return tuple(name for name, share, is_one in rows if is_one and share < UNKNOWN_SHARE)

    @cached_property
    def groups(self) -> tuple[IdentifiedGroup, ...]:
        """The identifiable combinations of parameters, with their estimates.

        The rows of :func:`robomodel.base_parameters` that contain a free parameter. A combination
        may be determined although its terms are not: for example, only the sum of a geared joint's
        damping and its rotor's is.
        """
        base = base_parameters(self.model)
        values = base.matrix @ self.values
        variances = np.einsum("ip,pq,iq->i", base.matrix, self.covariance, base.matrix)
        assumed = np.einsum("ip,pq,iq->i", base.matrix, self.prior_covariance, base.matrix)
        result = []
        for name, pivot, row, value, variance, before in zip(
            base.names, base.pivots, base.matrix, values, variances, assumed, strict=True
        ):
            if before > 0.0:
                gain = min(max(1.0 - float(variance / before), 0.0), 1.0)
                result.append(
                    IdentifiedGroup(
                        name,
                        float(value),
                        math.sqrt(max(float(variance), 0.0)),
                        unit_of(self.model, self.names[pivot]),
                        gain,
                        {n: float(x) for n, x in zip(self.names, row, strict=True) if x},
                    )
                )
        return tuple(result)

    def changes(self, before: Array) -> list[int]:
        """Indices of parameters by their change over its deviation, if above 1, largest first.

        Args:
            before: The values (p,).

        Returns:
            places: Indices into ``names``.
        """
        spread = np.where(self.deviation > 0.0, self.deviation, np.inf)
        change = np.abs(self.values - before) / spread
        return [int(i) for i in np.argsort(-change)[:MOST_LISTED] if change[i] > 1.0]

    def interval(self, level: float = 0.95) -> Array:
        """Confidence intervals of the values, for normal errors.

        Lower ends of masses, losses and armatures are not negative.

        Args:
            level: The probability.

        Returns:
            ends: Lower and upper end of each (p, 2).
        """
        share = as_real(level, "level")
        if not 0.0 < share < 1.0:
            raise ValueError(f"level is a probability between 0 and 1, got {level!r}")
        reach = NormalDist().inv_cdf(0.5 + 0.5 * share) * self.deviation
        ends = np.stack([self.values - reach, self.values + reach], axis=-1)
        positive = [name.rpartition(".")[2] in ("mass", *OF_JOINTS) for name in self.names]
        ends[positive] = np.maximum(ends[positive], np.minimum(self.values[positive], 0.0)[:, None])
        return ends

    def __repr__(self) -> str:
        return f"<Identified: {self.model.name}, from {self.samples} samples>"


def identify(
    model: Model,
    q: ArrayLike | Log | Mapping[str, ArrayLike] | str | os.PathLike[str],
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    currents: ArrayLike | None = None,
    constants: float | str | Mapping[str, float] | ArrayLike | None = None,
    encoders: Iterable[str] | None = None,
    f_ext: Mapping[str, ArrayLike] | None = None,
    offsets: bool | str | Iterable[str] = False,
    ratios: bool | str | Iterable[str] = False,
    stribeck: bool | str | Iterable[str] = False,
    delays: bool | str | Iterable[str] = False,
    free: str | Iterable[str] | None = None,
    step: float | None = None,
    cutoff: float = 5.0,
    prior: float = 1.0,
    robust: bool = False,
    balanced: bool = False,
    folds: int = 0,
) -> Identified:
    """Estimate the parameters from measured forces, near the model's and physically consistent.

    Minimises the weighted squares of regressor · π - tau. Each body adds γ D(J‖J⁰), the entropic
    distance of its pseudo-inertia from the model's (Lee, Wensing, Park 2020), which keeps it
    physically consistent; armature, damping and friction add γ (u - 1 - log u), u = x/x⁰, which
    keeps them positive. γ = 1/``prior``², where ``prior`` is the assumed relative deviation of the
    model's values. Losses that the model lacks (damping, for example) have a weak prior of 5 % of
    the forces. Coordinates are weighted iteratively by their residuals. Springs are the model's.

    Args:
        model: The robot.
        q: Samples (..., nq), with loops closed to 1e-3. Or a log instead of the arrays: a path as
            in ``rm.identify(model, "run.csv")``, columns by name, a data frame, or the result of
            :func:`robomodel.identification.read_log`.
        v: Velocities (..., nv).
        a: Accelerations (..., nv). None: without them, from motions (..., T, nq) sampled every
            ``step`` seconds, filtered at ``cutoff``
            (:func:`robomodel.identification.filtered_regressor`).
        tau: Forces (..., nv); nan where not measured, and 0 where nothing acts, as on a floating
            base in the air.
        currents: Currents (..., nu) [A] of ``model.actuators``, instead of ``tau``.
        constants: Torque constants [N m/A] for these: the file's (None), numbers (1.0 if the
            currents are motor forces), by name; "unknown" or nan to identify them.
        encoders: The joints of the columns of ``q``, ``v`` and ``a``, if these are not the model's
            coordinates: rotors' joints for encoders at motors, or other joints of a linkage, one
            for each freedom of the robot; loops and couplings determine the other joints.
        f_ext: Measured wrenches on links, as in :func:`robomodel.rnea`; on a floating base with
            contacts ``tau`` is 0 there.
        offsets: Also identify offsets of encoders' zeros (True, or names of joints), near zero
            (0.1 rad or 0.01 m).
        ratios: Also identify ratios of couplings (True, or names of couplings), near the model's
            (5 %).
        stribeck: Also identify static friction (True for independent joints, or names of joints):
            F sign(w) exp(-(w/w_s)²), with the excess F of static over Coulomb friction and the
            Stribeck velocity w_s.
        delays: Also identify and remove delays [s] of forces behind the motion (True, or names of
            coordinates), up to 0.25 s, near zero (0.05 s). Requires one motion at even times;
            forces within 0.25 s of its ends are not used.
        free: The parameters that may change: kinds ("mass", "friction", or "inertial" for the ten
            of a body), names of parameters, bodies or joints, or patterns of names ("*_rotor.*").
            By default all, except armatures of joints with gears or other couplings, whose rotors'
            inertias represent them.
        step: Time between samples [s], for motions without accelerations.
        cutoff: Cut-off frequency of their filter [Hz].
        prior: Assumed relative deviation of the model's values.
        robust: Use Huber's loss, against outliers.
        balanced: Bodies that are rotationally symmetric in the model, such as rotors, stay so,
            which keeps the dynamics as fast.
        folds: Cross-validate over this number of blocks of time, each predicted by a fit to the
            others.

    Returns:
        identified: The model with these parameters, and their uncertainty.

    Raises:
        ValueError: Arrays do not fit, are no states, or are all zero.
        UnknownNameError: A name is unknown.

    Examples:
        >>> model = rm.robots.load("belt_leg")
        >>> motion = rm.excitation(model, period=2.0, tries=1, steps=1, progress=False)
        >>> fit = rm.identify(model, motion.q, motion.v, motion.a, 1.1 * motion.tau)
        >>> bool(np.all(fit.residual < 0.1 * fit.before))
        True
    """
    if not 0.0 < (share := as_real(prior, "prior")) < math.inf:
        raise ValueError(f"prior must be positive and finite, got {prior!r}")
    changing, named = chosen(model, free)
    log, recorded = _log(model, q, v, a, tau, currents, encoders, f_ext), v is None
    if recorded and log.a is None and step is None:
        step = log.even_step()
    readings = sensors(
        model, log, constants=constants, offsets=offsets, ratios=ratios, stribeck=stribeck,
        delays=delays, step=step, cutoff=cutoff,
    )  # fmt: skip
    data = Data.of(readings, robust)
    _refuse_zeros(log)
    blocks = _folds(folds, len(data.forces))
    assumed, notes = assumptions(model, data, changing, named, share, balanced)
    if not assumed.directions.shape[1] and not readings.unknowns:
        raise ValueError("nothing is free to change")
    fit = fitted(data, readings, assumed)
    filed = parameters(model)
    rows, force, changed = readings.at(fit.unknowns)
    calibrated = (
        Calibrated(u.kind, u.name, u.value(x), u.slope(x) * deviation)
        for u, x, deviation in zip(
            readings.unknowns, fit.unknowns.tolist(), fit.spread.tolist(), strict=True
        )
    )
    result = Identified(
        model=with_parameters(changed, fit.values),
        names=filed.names,
        values=fit.values,
        covariance=fit.covariance,
        prior_covariance=assumed.covariance(fit.values),
        before=data.rms(data.rows @ filed.values - data.forces),
        sensors=tuple(calibrated),
        measured=np.where(data.measured, force, np.nan),
        predicted=rows @ fit.values,
        file=data.rows @ filed.values,
        validation=_validated(data, readings, assumed, blocks),
        notes=tuple(notes),
        suspicions=(),
        times=None if step is None else step * np.arange(len(rows), dtype=float),
    )
    result = _checked(model, log, result, recorded=recorded, filtered=log.a is None)
    if readings.interval is None or result.suspicions or len(readings.place) != len(rows):
        return result
    late = delay_notes(model.dof_names, result.measured, result.predicted, rows, readings.interval)
    return replace(result, notes=(*result.notes, *late))


def predicted(model: Model, log: Log, *, cutoff: float = 5.0) -> Identified:
    """Predict the forces of a log with the model's parameters, for logs that no fit has used.

    Args:
        model: The robot, with identified parameters.
        log: The log from :func:`robomodel.identification.read_log`; with forces, or currents
            and the file's torque constants.
        cutoff: Cut-off frequency of the filter of logs without accelerations [Hz].

    Returns:
        prediction: As from :func:`robomodel.identify` with nothing free: ``residual`` is the
            model's, notes and suspicions are those of the log.

    Raises:
        ValueError: Arrays do not fit or are no states, or there are no forces.
    """
    step = log.even_step() if log.a is None else None
    readings = sensors(model, log, step=step, cutoff=cutoff)
    data = Data.of(readings, False)
    filed = parameters(model)
    forces = data.rows @ filed.values
    none = np.zeros((len(filed.values), len(filed.values)))
    error = data.rms(forces - data.forces)
    result = Identified(
        model=model,
        names=filed.names,
        values=filed.values,
        covariance=none,
        prior_covariance=none,
        before=error,
        sensors=(),
        measured=np.where(data.measured, data.forces, np.nan),
        predicted=forces,
        file=forces,
        validation=np.full(len(error), np.nan),
        notes=(),
        suspicions=(),
        times=None,
    )
    return _checked(model, log, result, recorded=True, filtered=log.a is None)


def _log(
    model: Model,
    q: ArrayLike | Log | Mapping[str, ArrayLike] | str | os.PathLike[str],
    v: ArrayLike | None,
    a: ArrayLike | None,
    tau: ArrayLike | None,
    currents: ArrayLike | None,
    encoders: Iterable[str] | None,
    f_ext: Mapping[str, ArrayLike] | None,
) -> Log:
    """The arguments of :func:`identify` as a log."""
    others = (a, tau, currents, encoders, f_ext)
    if v is not None:
        return Log(*cast(Any, (q, v, a, tau, currents, encoders, f_ext or {})))
    if any(x is not None for x in others):
        raise ValueError("v is missing; a log, in the place of q, comes alone")
    return q if isinstance(q, Log) else read_log(model, q)


def _refuse_zeros(log: Log) -> None:
    """Raise a ValueError for a log without motion and forces."""
    forces = (log.tau, log.currents, *log.f_ext.values())
    if not any(np.any(np.nan_to_num(np.asarray(x, dtype=float)))
               for x in (log.v, log.a, *forces) if x is not None):  # fmt: skip
        raise ValueError(
            "velocities, accelerations and forces are zero throughout: nothing was recorded"
        )


def _checked(
    model: Model, log: Log, fit: Identified, *, recorded: bool, filtered: bool
) -> Identified:
    """Add notes; for a log also times and suspicions, each of which gives a RuntimeWarning."""
    whole = np.ndim(log.v) == 2 and fit.samples == len(log.v)
    notes = [*fit.notes, *log.notes, *gap_notes(model.dof_names, fit.measured, filtered)]
    if log.encoders is None and whole:
        error = fit.measured - fit.predicted
        notes += friction_notes(model.dof_names, error, np.asarray(log.v, dtype=float))
    if not recorded:
        return replace(fit, notes=tuple(notes))
    even = whole and log.step is not None and math.isfinite(log.step)
    suspicions = state_warnings(model, log)
    suspicions += force_warnings(
        model.dof_names, fit.measured, fit.file, fit.predicted, log.step if even else None
    )
    for text in suspicions:
        warn(RuntimeWarning(text))
    times = log.times if log.times is not None and len(log.times) == fit.samples else None
    return replace(fit, notes=tuple(notes), suspicions=tuple(suspicions), times=times)


def _folds(folds: int, count: int) -> list[Array]:
    """The indices of the samples in each block of time."""
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 0 or folds == 1:
        raise ValueError(f"folds is 0 or at least 2, got {folds!r}")
    if folds > count:
        raise ValueError(f"folds: {count} samples make no {folds} blocks")
    return [np.asarray(each) for each in np.array_split(np.arange(count), folds)] if folds else []


def _validated(
    data: Data, readings: Sensors, assumed: ParameterPrior, blocks: list[Array]
) -> Array:
    """Root mean squares (nv,) of the residuals in each block, predicted by fits to the others."""
    error = np.zeros(data.forces.shape)
    for block in blocks:
        others = data.measured.copy()
        others[block] = False
        if not others.any():
            raise ValueError("folds: all forces that are known lie in one block of time")
        fit = fitted(replace(data, measured=others), readings, assumed)
        rows, force, _ = readings.at(fit.unknowns)
        error[block] = (rows @ fit.values - np.nan_to_num(force))[block]
    return data.rms(error) if blocks else np.full(data.forces.shape[1], np.nan)


# ---- plausibility of a log -----------------------------------------------------------------------


DEGREES = 180.0 / math.pi
SAME_SIGNAL = 0.9  # least correlation of two signals that differ by a scale only
SCALE_OFF = 0.2  # accepted relative error of such a scale
LIMIT_SLACK = 0.02  # accepted violation, relative to a limit's range or to a velocity limit
LATE = 20  # largest delay in samples that is tried
UNITS = 8.0  # ratio of forces, or its inverse, that suggests other units: N mm, N cm, kgf cm
UNEXPLAINED = 0.7  # largest plausible residual, relative to the root mean square of the forces
BETTER = 0.5  # a correction must reduce the residual variance below this fraction
SLOW = (0.02, 0.05, 0.1, 0.2)  # widths of Stribeck's peak, relative to the largest speed
LEAST_SAMPLES = 16  # least number of samples, also at low speeds
ALONE = 1e-6  # least remainder of a column's square beside the others
CHANCE = 6.0  # number of deviations that a significant coefficient must exceed
QUARTER = 0.25  # smallest delay that is noted, in samples
LONG_LOG = 100  # least number of samples to detect a delay


def state_warnings(model: Model, log: Log) -> list[str]:
    """Warnings on implausible positions and velocities of a log: units, signs, violated limits."""
    turned, slid, reversed_, scaled, beyond, fast = [], [], [], [], [], []
    for joint, x, w in _single(model, log):
        gain = _rate_gain(x, w, log.step) or 1.0
        if joint.type != "prismatic" and abs(gain / DEGREES - 1.0) < SCALE_OFF:
            turned.append(joint.name)
        elif joint.type != "prismatic" and abs(gain * DEGREES - 1.0) < SCALE_OFF:
            slid.append(joint.name)
        elif gain < 0.0:
            reversed_.append(joint.name)
        elif abs(gain - 1.0) > SCALE_OFF:
            scaled.append(f"{joint.name} ({gain:.3g})")
        range_ = joint.upper - joint.lower
        slack = LIMIT_SLACK * range_ if math.isfinite(range_) else LIMIT_SLACK
        if joint.type != "continuous" and (
            np.min(x) < joint.lower - slack or np.max(x) > joint.upper + slack
        ):
            beyond.append(f"{joint.name} ({np.min(x):.4g} to {np.max(x):.4g})")
        if np.max(np.abs(w)) > (1.0 + LIMIT_SLACK) * joint.velocity_limit:
            fast.append(f"{joint.name} ({np.max(np.abs(w)):.4g})")
    result = []
    if turned:
        result.append(f"positions seem to be in degrees, velocities in rad/s: {few(turned)}")
    if slid:
        result.append(f"velocities seem to be in degrees/s, positions in rad: {few(slid)}")
    if reversed_:
        result.append(
            f"velocities have the opposite sign of the positions' rates: {few(reversed_)}"
        )
    if scaled:
        result.append(
            "positions change so many times as fast as the velocities say (are times in seconds, "
            f"velocities in rad/s and m/s?): {few(scaled)}"
        )
    if beyond:
        result.append(
            f"positions go beyond the file's limits (are they in radians and metres?): "
            f"{few(beyond)}"
        )
    if fast:
        result.append(f"velocities go beyond the file's limits: {few(fast)}")
    return result


def _single(model: Model, log: Log) -> Iterator[tuple[Joint, Array, Array]]:
    """Joints of one freedom with their measured positions and velocities (T,)."""
    joints = {joint.name: joint for joint in model.joints if joint.nv == 1}
    if log.encoders is not None:
        if all(name in joints for name in log.encoders):
            for i, name in enumerate(log.encoders):
                yield joints[name], log.q[:, i], log.v[:, i]
        return
    rates = dict(zip(model.dof_names, np.asarray(log.v).T, strict=True))
    for name, x in model.joint_positions(log.q).items():
        if name in joints and name in rates:
            yield joints[name], np.asarray(x), rates[name]


def _rate_gain(x: Array, w: Array, step: float | None) -> float | None:
    """Slope of the positions' rate over the velocities w; None if they are not correlated."""
    if step is None or not math.isfinite(step) or len(x) < LEAST_SAMPLES:
        return None
    change, speed = (x[2:] - x[:-2]) / (2.0 * step), w[1:-1]
    sizes = float(np.linalg.norm(change)), float(np.linalg.norm(speed))
    both = float(change @ speed)
    if min(sizes) == 0.0 or abs(both) < SAME_SIGNAL * sizes[0] * sizes[1]:
        return None
    return both / sizes[1] ** 2


def force_warnings(
    names: Sequence[str], measured: Array, predicted: Array, fitted: Array, step: float | None
) -> list[str]:
    """Warnings on implausible measured forces (n, nv), compared with those of the file's
    parameters.

    ``fitted``: forces with the identified parameters. Friction that differs from the file's looks
    like a delay but is identified, so a delay must explain the forces better than these.
    ``step``: time between samples [s] of one motion, None if samples are not at even times.
    """
    signs: list[str] = []
    zero: list[str] = []
    scaled: list[str] = []
    unexplained: list[str] = []
    delays: dict[int, list[str]] = {}
    for i, name in enumerate(names):
        there = np.isfinite(measured[:, i])
        if np.count_nonzero(there) < LEAST_SAMPLES:
            continue
        m, p, f = measured[there, i], predicted[there, i], fitted[there, i]
        size, residual = float(np.linalg.norm(m)), float(np.linalg.norm(m - f))
        if size == 0.0:
            zero += [name] if np.any(p) else []
            continue
        if float(m @ p) > SAME_SIGNAL * size * np.linalg.norm(p):
            gain = float(m @ p) / float(p @ p)
            if not 1.0 / UNITS < gain < UNITS:
                scaled.append(f"{name} ({gain:.3g})")
                continue
        as_is, turned = float(np.sum((m - p) ** 2)), float(np.sum((m + p) ** 2))
        if turned < BETTER * min(as_is, float(np.sum(m**2))):
            signs.append(name)
        elif step is not None and there.all() and (lag := _lag(m, p, f)):
            delays.setdefault(lag, []).append(name)
        elif residual > UNEXPLAINED * size and np.linalg.norm(p) > SCALE_OFF * size:
            unexplained.append(f"{name} ({100.0 * residual / size:.0f} %)")
    result = []
    if signs:
        result.append(f"forces seem to have the opposite sign: {few(signs)}")
    if zero:
        result.append(
            "forces are zero throughout, where the file's parameters need some (were they "
            f"recorded? leave out columns that were not): {few(zero)}"
        )
    if scaled:
        result.append(
            "forces are so many times those of the file's parameters (are they in N m and N?): "
            f"{few(scaled)}"
        )
    if unexplained:
        result.append(
            "no parameters explain the forces, of which this share is left (are columns, units and "
            f"signs those of the robot?): {few(unexplained)}"
        )
    for lag, late in delays.items():
        when = "after" if lag > 0 else "before"
        more = " or more" if abs(lag) == _longest(len(measured)) else ""
        result.append(
            f"forces come {1e3 * abs(lag) * (step or 0.0):.3g} ms{more} {when} the motion that "
            f"they explain, which {argument('delays', True)} identifies and removes: {few(late)}"
        )
    return result


def _longest(count: int) -> int:
    """The largest delay, in samples, that is tried."""
    return min(LATE, count // 10)


def _lag(m: Array, p: Array, f: Array) -> int:
    """The delay of m after p in samples; 0 if none is clearly better, also than f."""
    if len(m) < LONG_LOG:
        return 0
    most = _longest(len(m))
    middle = p[most : len(p) - most]
    middle = middle - np.mean(middle)
    size = float(np.linalg.norm(middle))
    if size == 0.0:
        return 0
    unexplained = {}
    for lag in range(-most, most + 1):
        shifted = m[most + lag : len(m) - most + lag]
        shifted = shifted - np.mean(shifted)
        alike = float(shifted @ middle) / (size * float(np.linalg.norm(shifted)) or 1.0)
        unexplained[lag] = 1.0 - max(alike, 0.0) ** 2
    best = min(unexplained, key=lambda lag: unexplained[lag])
    fitted = float(np.var(m - f)) / (float(np.var(m)) or 1.0)
    limit = min(BETTER * unexplained[0], 1.0 - SAME_SIGNAL**2, fitted)
    return best if unexplained[best] < limit else 0


def gap_notes(names: Sequence[str], measured: Array, filtered: bool) -> list[str]:
    """Notes on coordinates with missing forces (n, nv)."""
    missing = np.isnan(measured).sum(axis=0)
    some = [
        f"{name} ({n})" for name, n in zip(names, missing, strict=True) if 0 < n < len(measured)
    ]
    if not some:
        return []
    restart = "; filters restart after each gap" if filtered else ""
    return [f"forces are missing in some of {len(measured)} samples{restart}: {few(some)}"]


def friction_notes(names: Sequence[str], error: Array, v: Array) -> list[str]:
    """Notes on coordinates whose residual forces (n, nv) rise towards standstill (Stribeck)."""
    result = []
    for i, name in enumerate(names):
        there = np.isfinite(error[:, i])
        e, w = error[there, i], v[there, i]
        fastest = float(np.max(np.abs(w), initial=0.0))
        if fastest == 0.0:
            continue
        for share in SLOW:
            peak = np.sign(w) * np.exp(-((w / (share * fastest)) ** 2))
            slow = np.count_nonzero(np.abs(w) < share * fastest)
            # fitted with Coulomb and viscous friction, which explain a part of the peak
            height = _coefficient(peak, np.stack([np.sign(w), w], axis=1), e)
            if slow >= LEAST_SAMPLES and height is not None and height > 0.0:
                result.append(f"{name} (below {share * fastest:.2g})")
                break
    if not result:
        return []
    return [
        "friction rises towards standstill (Stribeck), which the parameters cannot say: "
        f"{argument('stribeck', True)} identifies its law, or leave slower samples unknown (empty "
        f"cells): {few(result)}"
    ]


def delay_notes(
    names: Sequence[str], measured: Array, predicted: Array, rows: Array, step: float
) -> list[str]:
    """Notes on coordinates whose forces (n, nv) are late, from the rate of the predicted forces.

    Fitted with all parameters, which explain a part of a delay: ``rows`` (n, nv, p).
    """
    result = []
    for i, name in enumerate(names):
        there = np.isfinite(measured[:, i])
        if len(there) < LONG_LOG or not there.all():
            continue
        rate = np.gradient(predicted[:, i], step)
        others = rows[:, i, np.any(rows[:, i] != 0.0, axis=0)]
        change = _coefficient(rate, others, measured[:, i] - predicted[:, i])
        if change is not None and abs(change) > QUARTER * step:
            result.append(f"{name} ({-1e3 * change:.3g} ms)")
    if not result:
        return []
    by = argument("delays", True)
    return [f"forces come after the motion; {by} identifies by how much: {few(result)}"]


def _coefficient(column: Array, others: Array, error: Array) -> float | None:
    """The coefficient of a column in residuals (n,), beside others; None if not significant.

    Residuals are correlated in time, which reduces the effective number of samples.
    """
    scale = np.maximum(np.linalg.norm(others, axis=0), TINY)
    both = np.stack([column, error], axis=1)
    alone, left = (both - others @ (
        np.linalg.lstsq(others / scale, both, rcond=SINGULAR)[0] / scale[:, None]
    )).T  # fmt: skip
    size = float(alone @ alone)
    if size <= ALONE * float(column @ column):
        return None
    result = float(alone @ left) / size
    noise = left - result * alone
    total = float(noise @ noise)
    alike = max(float(noise[1:] @ noise[:-1]) / (total or 1.0), 0.0)
    count = len(error) * (1.0 - alike) / (1.0 + alike)
    return result if result**2 * size * count > CHANCE**2 * total else None
