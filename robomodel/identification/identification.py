"""Parameters from measured motions: a fit whose every body can exist."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from statistics import NormalDist
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from robomodel.errors import UnknownNameError, as_names, as_real, did_you_mean, few, warn
from robomodel.identification.base import base_parameters
from robomodel.identification.checks import force_warnings, friction_notes, state_warnings
from robomodel.identification.fit import Cone, Data, Prior, fitted, possible, rms
from robomodel.identification.logs import Log, read_log
from robomodel.identification.sensors import Sensors, sensors
from robomodel.model.joints import Array, Revolute
from robomodel.model.model import Model
from robomodel.model.parameters import INERTIAL, OF_JOINTS, parameters, with_parameters
from robomodel.spatial import UNIT

BODY = len(INERTIAL)
UNKNOWN = 0.05  # of the forces: what a loss is taken to be, where the file says nothing of it
WEAK = 3.0  # the relative deviation of such a loss
POINT = 0.02  # of the robot's longest link: a point mass's extent


def assumptions(
    model: Model, data: Data, changing: Array, asked: Array, share: float, balanced: bool
) -> tuple[Prior, list[str]]:
    """The prior of :func:`robomodel.identify`, and notes on where its values are not the model's.

    ``changing`` and ``asked`` are those of :func:`chosen`; the model's values are taken to be right
    to about this share.
    """
    filed, notes = parameters(model), list[str]()
    nominal, changing = filed.values.copy(), changing.copy()
    cones = _bodies(model, nominal, changing, asked, notes)
    scalars = _scalars(filed.names, nominal, changing, data, notes)
    directions = _directions(model, nominal, changing, asked, balanced)
    spread = np.where(filed.values[scalars] > 0.0, share, WEAK)
    return Prior(cones, scalars, nominal, directions, share**-2.0, spread**-2.0), notes


def chosen(model: Model, free: str | Iterable[str] | None) -> tuple[Array, Array]:
    """Which parameters (p,) may change, and which of them were asked for by their own names."""
    names = parameters(model).names
    owners = [name.rpartition(".")[0] for name in names]
    kinds = [name.rpartition(".")[2] for name in names]
    asked = np.zeros(len(names), dtype=bool)
    if free is None:
        geared = {joint for coupling in model.couplings for joint, _ in coupling.terms}
        held = [k == "armature" and o in geared for k, o in zip(kinds, owners, strict=True)]
        return ~np.array(held, dtype=bool), asked
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
        asked |= [name == word for name in names]
    return result, asked


def _bodies(
    model: Model, nominal: Array, changing: Array, asked: Array, notes: list[str]
) -> list[Cone]:
    """The cones of bodies that may change, which exist in ``nominal`` from here on.

    What bodies without mass lack is held.
    """
    extents = [math.hypot(*map(float, node.offset)) for node in model.nodes]
    length = POINT * (max(extents, default=0.0) or 1.0)
    cones, raised, empty = [], [], []
    for i, body in enumerate(model.bodies):
        at = slice(BODY * i, BODY * (i + 1))
        if not changing[at].any():
            continue
        physical = possible(nominal[at], length)
        lacks = np.zeros(BODY, dtype=bool)
        if physical[0] == 0.0:
            lacks[: 4 if physical[4:].any() else BODY] = True
        if (asked[at] & lacks).any():
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
            f"could not exist as the model has them (flat, or without extent), and were given some "
            f"to begin with: {few(raised)}"
        )
    if empty:
        notes.append(f"have neither mass nor inertia, and keep none: {few(empty)}")
    return cones


def _scalars(
    names: tuple[str, ...], nominal: Array, changing: Array, data: Data, notes: list[str]
) -> Array:
    """The places of joints' parameters that may change, all positive in ``nominal`` from here on.

    Held is what is zero and never felt.
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
        notes.append(f"were never felt, and stay zero: {few(idle)}")
    return np.array(places, dtype=int)


def _directions(
    model: Model, nominal: Array, changing: Array, asked: Array, balanced: bool
) -> Array:
    """The directions (p, f) in which parameters may change."""
    columns: list[Array] = []
    unit = np.eye(len(nominal))
    tied: set[int] = set()
    for i, node in enumerate(model.nodes if balanced else ()):
        at = slice(BODY * i, BODY * (i + 1))
        places = np.flatnonzero(changing[at])
        if not (node.axisymmetric and isinstance(node.joint, Revolute)) or asked[at].any():
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


FAINT = 0.1  # of a parameter's assumed variance: where less of it went, it is unknown
MOST = 12  # of what changed


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibrated number of a sensor.

    Attributes:
        kind: "offset", "ratio" or "constant".
        name: The joint's, the coupling's or the actuator's.
        value: An encoder's offset [rad or m] is to be added to its reading; a coupling's ratio is
            how far its dependent joint goes with the next; a motor's torque constant is in N m/A.
        deviation: Standard deviation of the value.
    """

    kind: str
    name: str
    value: float
    deviation: float

    @property
    def title(self) -> str:
        """What it is, in words."""
        what = {"offset": "zero of the encoder of", "ratio": "ratio of"}
        return f"{what.get(self.kind, 'torque constant of')} {self.name}"


@dataclass(frozen=True, slots=True)
class IdentifiedGroup:
    """An identifiable combination of parameters, and its estimate.

    Attributes:
        name: It in words, "damping of j1 + 81 damping of j1_rotor".
        value: Its value, in ``unit``.
        deviation: Standard deviation of the value.
        unit: That of its first parameter.
        information_gain: The share of its assumed variance that the motions took away.
        coefficients: By parameter.
    """

    name: str
    value: float
    deviation: float
    unit: str
    information_gain: float
    coefficients: Mapping[str, float]

    @property
    def known(self) -> bool:
        """Whether the information gain is a tenth or more."""
        return self.information_gain >= FAINT


@dataclass(frozen=True, eq=False)
class Identified:
    """Identified parameters of a robot, in the order of :func:`robomodel.parameters`.

    Attributes:
        model: The robot with the identified values and gear ratios.
        names: Names of the parameters.
        values: Their values (p,).
        covariance: Of noise and of what was assumed (p, p); zero for what was held.
        prior_covariance: Of what was assumed before any motion (p, p).
        before: Root mean square of each coordinate (nv,), in torque's units, of measured less
            predicted forces with the file's parameters; nan where none were measured.
        sensors: Calibrated offsets, ratios and torque constants.
        measured: All samples' forces (n, nv), nan where not known (filtered where accelerations
            were not given).
        predicted: The same, predicted with the identified values.
        file: The same, predicted with the file's parameters.
        validation: As ``before``, of forces in blocks of time that the fit had not seen, nan
            without ``folds``.
        notes: What to know, in words.
        suspicions: What of the measurements cannot be, in words: units, signs, limits, delays.
        times: When the samples were taken (n,) [s]; None where that is not known.
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
        """How many states were used."""
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
        """Of each value (p,), the share of its assumed variance that the motions took away.

        0: nothing is known from them, and 1: all is.
        """
        alone, left = np.diag(self.prior_covariance), np.diag(self.covariance)
        gain = np.clip(1.0 - left / np.where(alone > 0.0, alone, 1.0), 0.0, 1.0)
        return np.where(alone > 0.0, gain, 0.0)

    @property
    def deviation(self) -> Array:
        """Standard deviations of the values (p,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Free parameters with an information gain below a tenth."""
        free = np.diag(self.covariance) > 0.0
        rows = zip(self.names, self.information_gain, free, strict=True)
        return tuple(name for name, share, is_one in rows if is_one and share < FAINT)

    @cached_property
    def groups(self) -> tuple[IdentifiedGroup, ...]:
        """The identifiable combinations of parameters, with their estimates.

        The rows of :func:`robomodel.base_parameters` in which something was free to change. A
        combination may be known well where its terms are not: of a geared joint's damping and its
        rotor's only the sum is.
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
        """The parameters that went further from these values than they are sure, most first.

        Args:
            before: The values (p,).

        Returns:
            places: Their places in ``names``.
        """
        spread = np.where(self.deviation > 0.0, self.deviation, np.inf)
        change = np.abs(self.values - before) / spread
        return [int(i) for i in np.argsort(-change)[:MOST] if change[i] > 1.0]

    def interval(self, level: float = 0.95) -> Array:
        """Where each value lies with this probability, of normal errors.

        Masses, losses and armatures are not below zero, whatever their deviation.

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
    free: str | Iterable[str] | None = None,
    step: float | None = None,
    cutoff: float = 5.0,
    prior: float = 1.0,
    robust: bool = False,
    balanced: bool = False,
    folds: int = 0,
) -> Identified:
    """The parameters that explain measured forces best, near the model's; all bodies can exist.

    Minimises the weighted squares of regressor · π - tau, with γ D(J‖J⁰) for each body, the
    entropic distance of its pseudo-inertia from the model's (Lee, Wensing, Park 2020), which keeps
    it among bodies that exist, and γ (u - 1 - log u), u = x/x⁰, for armature, damping and friction,
    which keeps them positive. γ = 1/``prior``²: the model's values are assumed to be right to about
    that share. Losses that it lacks (damping, say) are assumed to take 5 % of the forces, weakly.
    Coordinates weigh by their own residuals, in some passes. Springs are the model's.

    Args:
        model: The robot.
        q: Samples (..., nq), loops closed to 1e-3. Or a log instead of the arrays:
            ``rm.identify(model, "run.csv")``, columns by name, a data frame, or what
            :func:`robomodel.read_log` made of them.
        v: Velocities (..., nv).
        a: Accelerations (..., nv). None: without them, by :func:`robomodel.filtered_regressor`,
            from motions (..., T, nq) sampled every ``step`` seconds, filtered at ``cutoff``.
        tau: Forces (..., nv); nan where not known, and 0 where nothing acts, as on a floating base
            in the air.
        currents: Currents (..., nu) [A] of ``model.actuators``, in the place of ``tau``.
        constants: Torque constants [N m/A] for these: the file's (None), numbers (1.0: forces at
            the motors), by name, or "unknown" and nan for those to be identified.
        encoders: The joints to which the columns of ``q``, ``v`` and ``a`` belong, if these are not
            the model's coordinates: rotors' joints for encoders at motors, other joints of a
            linkage, one for each of the robot's freedoms; loops and couplings give the rest.
        f_ext: Measured wrenches on links, as in :func:`robomodel.rnea`; on a floating base with
            contacts ``tau`` is 0 there.
        offsets: Offsets of encoders' zeros (True, or names of joints) are identified, too, near
            zero (0.1 rad or 0.01 m).
        ratios: Ratios of couplings (True, or names of couplings) are identified, too, near the
            model's (5 %).
        free: What may change, as kinds ("mass", "friction", or "inertial" for a body's ten), names
            of parameters, of bodies or joints, or patterns of names ("*_rotor.*"). By default all,
            but armatures of joints with gears or other couplings, whose rotors' inertias stand for
            them.
        step: Time between samples [s], for motions without accelerations.
        cutoff: Of their filter [Hz].
        prior: The model's values are assumed to be right to about this share.
        robust: Huber's loss, for outliers.
        balanced: Bodies that are round about their axes in the model, as rotors are, stay so, and
            the dynamics as quick.
        folds: Cross-validation over so many blocks of time, each predicted by a fit to the others.

    Returns:
        identified: The model with these parameters, and how well they are known.

    Raises:
        ValueError: Arrays that do not fit or are no states, or in which all is zero.
        UnknownNameError: Unknown names.
    """
    if not 0.0 < (share := as_real(prior, "prior")) < math.inf:
        raise ValueError(f"prior must be positive and finite, got {prior!r}")
    changing, asked = chosen(model, free)
    log, recorded = _log(model, q, v, a, tau, currents, encoders, f_ext), v is None
    if recorded and log.a is None and step is None:
        step = log.even_step()
    readings = sensors(
        model, log, constants=constants, offsets=offsets, ratios=ratios, step=step, cutoff=cutoff
    )
    data = Data.of(readings, robust)
    _refuse_zeros(log)
    blocks = _folds(folds, len(data.forces))
    assumed, notes = assumptions(model, data, changing, asked, share, balanced)
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
    return _checked(model, log, result) if recorded else result


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
    """A log, or arrays as one."""
    others = (a, tau, currents, encoders, f_ext)
    if v is not None:
        return Log(*cast(Any, (q, v, a, tau, currents, encoders, f_ext or {})))
    if any(x is not None for x in others):
        raise ValueError("v is missing; a log, in the place of q, comes alone")
    return q if isinstance(q, Log) else read_log(model, q)


def _refuse_zeros(log: Log) -> None:
    """Raise a ValueError for a log in which nothing moves and no force is measured."""
    forces = (log.tau, log.currents, *log.f_ext.values())
    if not any(np.any(np.nan_to_num(np.asarray(x, dtype=float)))
               for x in (log.v, log.a, *forces) if x is not None):  # fmt: skip
        raise ValueError(
            "velocities, accelerations and forces are zero throughout: nothing was recorded"
        )


def _checked(model: Model, log: Log, fit: Identified) -> Identified:
    """With the log's times and notes, and what of it cannot be, each a RuntimeWarning, too."""
    whole = fit.samples == len(log.v)
    even = whole and log.step is not None and math.isfinite(log.step)
    suspicions = state_warnings(model, log)
    suspicions += force_warnings(
        model.dof_names, fit.measured, fit.file, fit.predicted, log.step if even else None
    )
    for text in suspicions:
        warn(RuntimeWarning(text))
    notes = [*fit.notes, *log.notes]
    if log.encoders is None and whole and np.ndim(log.v) == 2:
        notes += friction_notes(model.dof_names, fit.measured - fit.predicted, log.v)
    times = log.times if log.times is not None and len(log.times) == fit.samples else None
    return replace(fit, notes=tuple(notes), suspicions=tuple(suspicions), times=times)


def _folds(folds: int, count: int) -> list[Array]:
    """The samples of each block of time."""
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 0 or folds == 1:
        raise ValueError(f"folds is 0 or at least 2, got {folds!r}")
    if folds > count:
        raise ValueError(f"folds: {count} samples make no {folds} blocks")
    return [np.asarray(each) for each in np.array_split(np.arange(count), folds)] if folds else []


def _validated(data: Data, readings: Sensors, assumed: Prior, blocks: list[Array]) -> Array:
    """Root mean squares (nv,) of what fits to all other blocks leave in each."""
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


def unit_of(model: Model, name: str) -> str:
    """The unit of a parameter, "N m s/rad" of a revolute joint's damping."""
    owner, _, kind = name.rpartition(".")
    if kind in INERTIAL:
        return "kg" if kind == "mass" else "kg m" if kind.startswith("m") else "kg m²"
    units = next(joint.units for joint in model.joints if joint.name == owner)
    damping = f"{units.force} s/{units.position}"
    return {"armature": units.inertia, "damping": damping, "friction": units.force}[kind]
