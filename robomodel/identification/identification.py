"""Parameters from measured motions: a fit whose every body can exist."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from statistics import NormalDist
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from robomodel.errors import UnknownNameError, as_names, as_real, did_you_mean, few, warn
from robomodel.identification.base import base_parameters
from robomodel.identification.checks import force_warnings, friction_notes, state_warnings
from robomodel.identification.fit import Cone, Data, Prior, fitted, possible, solved
from robomodel.identification.logs import Log, read_log
from robomodel.identification.sensors import Sensors, guessed, sensors
from robomodel.model.joints import Array, Revolute
from robomodel.model.model import Model
from robomodel.model.parameters import INERTIAL, OF_JOINTS, parameters, with_parameters

BODY = len(INERTIAL)
FAINT = 0.1  # of a parameter's assumed variance: where less of it went, motions told nothing of it
MOST = 12  # of what changed
UNKNOWN = 0.05  # of the forces: what a loss is taken to be, where the file says nothing of it
WEAK = 3.0  # the relative deviation of such a loss
POINT = 0.02  # of the robot's longest link: a point mass's extent


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A sensor's number as it was found.

    Attributes:
        kind: "offset", "ratio" or "constant".
        name: The joint's, the coupling's or the actuator's.
        value: An encoder's offset [rad or m] is to be added to what it says; a coupling's ratio is
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
    """A combination of parameters that forces can tell, and what a log told of it.

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
        """Whether the motions told more than next to nothing of it."""
        return self.information_gain >= FAINT


@dataclass(frozen=True, eq=False)
class Identified:
    """What motions tell of a robot's parameters, in the order of :func:`robomodel.parameters`.

    Attributes:
        model: The robot with the values, and the gear ratios found.
        names: Names of the parameters.
        values: Their values (p,).
        covariance: Of noise and of what was assumed (p, p); zero for what was held.
        information_gain: Of each value (p,), the share of its assumed variance that the motions
            took away; 0: they tell nothing of it, and 1: all is known from them.
        residual: Root mean square of each coordinate (nv,), in torque's units, of measured less
            predicted forces; nan where none were measured.
        before: The same with the file's parameters.
        forces: The same of the forces.
        validation: The same of forces in blocks of time that the fit had not seen, nan without
            ``folds``.
        sensors: What else was found.
        measured: All samples' forces (n, nv), nan where not known (filtered where accelerations
            were not given).
        predicted: The same with the values found.
        file: The same with the file's parameters.
        samples: States that were used.
        notes: What to know, in words.
        suspicions: What of the measurements cannot be, in words: units, signs, limits, delays.
        prior_covariance: Of what was assumed before any motion (p, p).
        times: When the samples were taken (n,) [s]; None where that is not known.
    """

    model: Model
    names: tuple[str, ...]
    values: Array
    covariance: Array
    information_gain: Array
    residual: Array
    before: Array
    forces: Array
    validation: Array
    sensors: tuple[Calibrated, ...]
    measured: Array
    predicted: Array
    file: Array
    samples: int
    notes: tuple[str, ...]
    suspicions: tuple[str, ...]
    prior_covariance: Array
    times: Array | None

    @property
    def deviation(self) -> Array:
        """Standard deviations of the values (p,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Parameters that were free and of which the motions told next to nothing."""
        free = np.diag(self.covariance) > 0.0
        rows = zip(self.names, self.information_gain, free, strict=True)
        return tuple(name for name, share, is_one in rows if is_one and share < FAINT)

    @cached_property
    def groups(self) -> tuple[IdentifiedGroup, ...]:
        """The combinations of parameters that forces can tell, with what is known of each.

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
    which keeps them positive. γ = 1/``prior``²: what the model says is assumed to be right to about
    that share. What it says nothing of (damping, say) is assumed to take 5 % of the forces, weakly.
    Coordinates weigh by their own residuals, found in some passes. Springs are the model's.

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
            the motors), by name, or "unknown" and nan for those to be found.
        encoders: The joints to which the columns of ``q``, ``v`` and ``a`` belong, if these are not
            the model's coordinates: rotors' joints for encoders at motors, other joints of a
            linkage, one for each of the robot's freedoms; loops and couplings give the rest.
        f_ext: Measured wrenches on links, as in :func:`robomodel.rnea`; on a floating base with
            contacts ``tau`` is 0 there.
        offsets: Offsets of encoders' zeros (True, or names of joints) are found, too, near zero
            (0.1 rad or 0.01 m).
        ratios: Ratios of couplings (True, or names of couplings) are found, too, near the model's
            (5 %).
        free: What may change, as kinds ("mass", "friction", or "inertial" for a body's ten), names
            of parameters, of bodies or joints, or patterns of names ("*_rotor.*"). By default all,
            but armatures of joints with gears or other couplings, whose rotors' inertias stand for
            them.
        step: Time between samples [s], for motions without accelerations.
        cutoff: Of their filter [Hz].
        prior: What the model says is assumed to be right to about this share.
        robust: Huber's loss, for outliers.
        balanced: Bodies that are round about their axes in the model, as rotors are, stay so, and
            the dynamics as quick.
        folds: Cross-validation over so many blocks of time, each predicted by a fit to the others.

    Returns:
        identified: The model with these parameters, and how well they are known.

    Raises:
        ValueError: Arrays that do not fit or are no states.
        UnknownNameError: Unknown names.
    """
    filed = parameters(model)
    size = as_real(prior, "prior")
    if not (0.0 < size < math.inf):
        raise ValueError(f"prior must be positive and finite, got {prior!r}")
    changing, asked = _free(model, filed.names, free)
    log: Log | None = None
    if v is None:
        if any(x is not None for x in (a, tau, currents, encoders, f_ext)):
            raise ValueError("v is missing; a log, in the place of q, comes alone")
        log = q if isinstance(q, Log) else read_log(model, q)
        q, v, a, tau, currents = log.q, log.v, log.a, log.tau, log.currents
        encoders, f_ext = log.encoders, log.f_ext
        if a is None and step is None:
            step = log.even_step()
    readings = sensors(
        model, cast(ArrayLike, q), v, a, tau, currents=currents, constants=constants,
        encoders=encoders, f_ext=f_ext, offsets=offsets, ratios=ratios, step=step, cutoff=cutoff,
    )  # fmt: skip
    readings = guessed(readings, filed.values)
    rows, target, _ = readings.at(np.zeros(len(readings.unknowns)))
    there = ~np.isnan(target)
    if not there.any():
        raise ValueError("no forces to learn from: tau holds no numbers")
    blocks = _folds(folds, len(target))
    data = Data(rows, np.where(there, target, 0.0), there, readings.share, robust)
    notes: list[str] = []
    nominal = filed.values.copy()
    cones = _bodies(model, nominal, changing, asked, notes)
    scalars = _scalars(filed.names, nominal, changing, data, notes)
    ways = _ways(model, nominal, changing, asked, balanced)
    if not ways.shape[1] and not readings.unknowns:
        raise ValueError("nothing is free to change")
    spread = np.where(filed.values[scalars] > 0.0, size, WEAK)
    assumed = Prior(cones, scalars, nominal, 1.0 / size**2, 1.0 / spread**2)
    fit = fitted(data, readings, assumed, ways)
    final, force, result = readings.at(fit.unknowns)
    force = np.where(there, force, np.nan)
    prior_covariance = np.zeros((len(nominal), len(nominal)))
    if ways.shape[1]:
        prior_covariance = ways @ solved(ways.T @ assumed.slopes(fit.values)[1] @ ways, ways.T)
    alone = np.diag(prior_covariance)
    gain = np.clip(1.0 - np.diag(fit.covariance) / np.where(alone > 0.0, alone, 1.0), 0.0, 1.0)
    by_file, by_fit = rows @ filed.values, final @ fit.values
    suspicions = () if log is None else tuple(_suspicions(model, log, force, by_file))
    if log is not None:
        notes += log.notes
        if log.encoders is None and len(log.v) == len(force) and np.ndim(log.v) == 2:
            notes += friction_notes(model.dof_names, force - by_fit, log.v)
    scale = [u.slope(x) for u, x in zip(readings.unknowns, fit.unknowns, strict=True)]
    return Identified(
        with_parameters(result, fit.values),
        filed.names,
        fit.values,
        fit.covariance,
        np.where(alone > 0.0, gain, 0.0),
        data.rms(final @ fit.values - np.nan_to_num(force)),
        data.rms(rows @ filed.values - data.forces),
        data.rms(np.nan_to_num(force)),
        _validated(data, readings, assumed, ways, blocks),
        tuple(
            Calibrated(u.kind, u.name, u.value(float(x)), float(s * d))
            for u, x, s, d in zip(readings.unknowns, fit.unknowns, scale, fit.spread, strict=True)
        ),
        force,
        by_fit,
        by_file,
        len(target),
        tuple(notes),
        suspicions,
        prior_covariance,
        _times(len(target), log, step),
    )


def _suspicions(model: Model, log: Log, force: Array, by_file: Array) -> list[str]:
    """What of a log cannot be; each is a RuntimeWarning, too."""
    even = log.step is not None and math.isfinite(log.step) and len(force) == len(log.v)
    result = state_warnings(model, log)
    result += force_warnings(model.dof_names, force, by_file, log.step if even else None)
    for text in result:
        warn(RuntimeWarning(text))
    return result


def _times(count: int, log: Log | None, step: float | None) -> Array | None:
    """When samples were taken; filters shorten none of them."""
    if log is not None:
        return log.times if log.times is not None and len(log.times) == count else None
    return None if step is None else step * np.arange(count, dtype=float)


def _folds(folds: int, count: int) -> list[Array]:
    """The samples of each block of time."""
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 0 or folds == 1:
        raise ValueError(f"folds is 0 or at least 2, got {folds!r}")
    if folds > count:
        raise ValueError(f"folds: {count} samples make no {folds} blocks")
    return [np.asarray(each) for each in np.array_split(np.arange(count), folds)] if folds else []


def _validated(
    data: Data, readings: Sensors, assumed: Prior, ways: Array, blocks: list[Array]
) -> Array:
    """Root mean squares (nv,) of what fits to all other blocks leave in each."""
    error = np.zeros(data.forces.shape)
    for block in blocks:
        others = data.measured.copy()
        others[block] = False
        if not others.any():
            raise ValueError("folds: all forces that are known lie in one block of time")
        fit = fitted(replace(data, measured=others), readings, assumed, ways)
        rows, force, _ = readings.at(fit.unknowns)
        error[block] = (rows @ fit.values - np.nan_to_num(force))[block]
    return data.rms(error) if blocks else np.full(data.forces.shape[1], np.nan)


def unit_of(model: Model, name: str) -> str:
    """The unit of a parameter, "N m s/rad" of a revolute joint's damping."""
    owner, _, kind = name.rpartition(".")
    if kind in INERTIAL:
        return "kg" if kind == "mass" else "kg m" if kind.startswith("m") else "kg m²"
    slides = any(joint.name == owner and joint.type == "prismatic" for joint in model.joints)
    turning = {"armature": "kg m²", "damping": "N m s/rad", "friction": "N m"}
    sliding = {"armature": "kg", "damping": "N s/m", "friction": "N"}
    return (sliding if slides else turning)[kind]


# ---- what may change -----------------------------------------------------------------------------


def _free(
    model: Model, names: tuple[str, ...], free: str | Iterable[str] | None
) -> tuple[Array, Array]:
    """Which parameters (p,) may change, and which of them were asked for by their own names."""
    owners = [name.rpartition(".")[0] for name in names]
    kinds = [name.rpartition(".")[2] for name in names]
    asked = np.zeros(len(names), dtype=bool)
    if free is None:
        geared = {joint for coupling in model.couplings for joint, _ in coupling.terms}
        held = [k == "armature" and o in geared for k, o in zip(kinds, owners, strict=True)]
        return ~np.array(held, dtype=bool), asked
    result = np.zeros(len(names), dtype=bool)
    for word in as_names(free, "free"):
        if word in INERTIAL or word in OF_JOINTS:
            result |= [kind == word for kind in kinds]
            continue
        if word == "inertial":
            result |= [kind in INERTIAL for kind in kinds]
            continue
        exact = [word in (name, owner) for name, owner in zip(names, owners, strict=True)]
        here = exact if any(exact) else [fnmatchcase(name, word) for name in names]
        if not any(here):
            hint = did_you_mean(word, [*names, *owners, *INERTIAL, *OF_JOINTS, "inertial"])
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


def _ways(model: Model, nominal: Array, changing: Array, asked: Array, balanced: bool) -> Array:
    """The directions (p, f) in which parameters may change."""
    columns: list[Array] = []
    unit = np.eye(len(nominal))
    tied: set[int] = set()
    for i, node in enumerate(model.nodes if balanced else ()):
        at = slice(BODY * i, BODY * (i + 1))
        places = np.flatnonzero(changing[at])
        if not (node.axisymmetric and isinstance(node.joint, Revolute)) or asked[at].any():
            continue
        axis = np.array([float(row[node.joint.k]) for row in node.axes])
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
