"""Identification of parameters from measured motions, with physically consistent bodies."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array, Indices
from robomodel.description import Joint as JointElement
from robomodel.dynamics.physical import ParameterPrior
from robomodel.errors import as_real, few, warn
from robomodel.identification.checks import (
    LONG_LOG,
    delay_notes,
    force_warnings,
    friction_notes,
    gap_notes,
    load_notes,
    state_warnings,
)
from robomodel.identification.columns import swapped_columns
from robomodel.identification.fit import (
    MOST_PASSES,
    WEIGHTS_SETTLED,
    Data,
    Fit,
    assumptions,
    chosen,
    fitted,
    rotors,
)
from robomodel.identification.gears import LEAST_PHASE
from robomodel.identification.identified import Calibrated, Identified
from robomodel.identification.left import Left, blocks_of
from robomodel.identification.logs import Log, read_log
from robomodel.identification.sensors import (
    FRICTION,
    Sensors,
    sensors,
    with_friction,
    with_losses,
)
from robomodel.model.efficiencies import EFFICIENCIES, with_efficiencies
from robomodel.model.model import Model
from robomodel.model.numbers import law_of
from robomodel.model.parameters import (
    parameters,
    with_parameters,
)
from robomodel.running import Progress

ROTOR_PASSES = 10  # most fits after one without losses, with rotors behind gears as of the last
# relative deviations of an efficiency above which the log tells nothing of it, and above which the
# product of both is told
UNTOLD, UNSURE = 0.2, 0.03


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
    asymmetric: bool | str | Iterable[str] = False,
    friction: str | None = None,
    losses: bool | str | Iterable[str] = False,
    delays: bool | str | Iterable[str] = False,
    free: str | Iterable[str] | None = None,
    step: float | None = None,
    cutoff: float = 5.0,
    prior: float = 1.0,
    robust: bool = False,
    balanced: bool = False,
    folds: int = 0,
    progress: bool = True,
) -> Identified:
    """Estimate the parameters from measured forces, near the model's and physically consistent.

    Minimises the weighted squares of regressor · π - tau. Each body adds γ D(J‖J⁰), the entropic
    distance of its pseudo-inertia from the model's (Lee, Wensing, Park 2020), which keeps it
    physically consistent; armature, damping and friction add γ (u - 1 - log u), u = x/x⁰, which
    keeps them positive. γ = 1/``prior``², where ``prior`` is the assumed relative deviation of the
    model's values. Losses that the model lacks (damping, for example) have a weak prior of 5 % of
    the forces. Forces are weighted iteratively by their residuals: motor by motor in linkages and
    differentials with as many motors as freedoms, else along orthonormal rates, so that the result
    does not depend on which joints are independent. Springs are the model's.

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
        asymmetric: Also identify friction that differs by direction (True for independent joints,
            or names of joints): a bias, which is half the difference of Coulomb's friction, and
            half the difference of damping. Friction is then d w + F sign(w) + b + e |w|.
        friction: "auto" compares forms of friction (the same both ways, with an offset, another
            one each way, static, and these together) by how well fits to others predict each of
            eight blocks of time. Of those whose parts are certain of some joint (by six deviations,
            beside all parameters) it takes the simplest one that is as good as the best; notes and
            ``forms`` say which. Where friction of one joint depends on the direction, that of all
            joints may; static friction have the joints that predict better with it. If friction
            certainly grows with the load in one gear, losses of all are compared, too, and
            efficiencies identified as with ``losses``; of joints without a gear a note says it.
        losses: Also identify efficiencies of gears (True, or names of actuators), while motors
            drive and while they are driven, from forces or currents of the motors. If no mass, load
            or torque constant is known, only the product of both is; notes say so, and which gears
            are never driven in the log.
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
        balanced: Bodies that are rotationally symmetric in the model stay so, which keeps the
            dynamics as fast. Rotors of motors always do, unless ``free`` names parameters of them:
            files know motors by that.
        folds: Cross-validate over this number of blocks of time, each predicted by a fit to the
            others.
        progress: Show a bar, on a terminal, if it takes more than a second.

    Returns:
        identified: The model with these parameters, and their uncertainty.

    Raises:
        ValueError: Arrays do not fit, are no states, or are all zero; ``prior`` is so large that
            what the forces leave open has no values.
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
    if friction not in (None, "auto"):
        raise ValueError(f"friction is None or 'auto', got {friction!r}")
    readings = sensors(
        model, log, constants=constants, offsets=offsets, ratios=ratios, stribeck=stribeck,
        asymmetric=asymmetric, losses=losses, delays=delays, step=step, cutoff=cutoff,
    )  # fmt: skip
    _refuse_zeros(log)
    blocks = blocks_of(folds, math.prod(readings.batch[:-1]) * readings.length)
    stages = 1 + ROTOR_PASSES * bool(readings.lossy) + bool(friction)
    with Progress(f"identify '{model.name}'", stages + folds, progress) as bar:
        options = _Options(changing, named, share, robust, balanced, _Fits(bar))
        result, left = _in_stages(model, readings, options, friction)
        seen = _validated(left.data, left.readings, left.prior, blocks, options.fits)
    return _checked(log, replace(result, validation=seen), left, recorded=recorded)


def _in_stages(
    model: Model, readings: Sensors, options: _Options, friction: str | None
) -> tuple[Identified, Left]:
    """The fit, again behind rotors as they were identified, and again with friction's form."""
    known = [each for each in readings.unknowns if each.kind not in EFFICIENCIES]
    result, left = _identified(model, replace(readings, unknowns=tuple(known)), options)
    if readings.lossy:
        result, left = _identified_behind_gears(model, readings, options, result.model)
    tried = left.tried() if friction else []
    grown, joints = (left.loads[1], left.growing[1]) if tried else ({}, {})
    for form in tried:
        if not form.chosen:
            continue
        laws = left.readings.laws
        stribeck_of = [x for x in form.joints if x not in laws("static friction")]
        # others' may differ, too, and take gravity's place where it is left out
        biased = [x for x in left.moving if form.offset and x not in laws("bias")]
        if stribeck_of or biased:
            ways = (biased, ()) if form.one_way else ((), biased)
            readings = with_friction(left.readings, stribeck_of, *ways)
            result, left = _identified(model, readings, options)
        if form.gears:  # others may lose, too, and take masses' place where losses are left out
            readings = with_losses(left.readings, form.gears)
            result, left = _identified_behind_gears(model, readings, options, result.model)
        said = left.directions(result)
        parts = [form.form]
        parts += [f"static of {few(form.joints)}"] if form.joints else []
        parts += [f"stronger one way: {few([f'{n}{x}' for n, x in said.items()])}"] if said else []
        lossy = [name for name in form.gears if name in grown]
        parts += [_losses_in_words(result, lossy)] if lossy else []
        shares = ", ".join(f"{each.form} {100.0 * each.share:.2g} %" for each in tried)
        notes = [
            *load_notes({n: x for n, x in grown.items() if n in joints}),
            f"friction's form was chosen: {'; '.join(parts)}",
            f"of forces in blocks that others predict, these forms of friction leave: {shares}",
        ]
        result = replace(result, notes=(*result.notes, *notes), forms=tuple(tried))
    return result, left


def _identified_behind_gears(
    model: Model, readings: Sensors, options: _Options, rotors: Model
) -> tuple[Identified, Left]:
    """The fit with lossy gears, behind rotors as they were identified."""
    before = np.full(len(readings.unknowns), np.inf)
    for _ in range(ROTOR_PASSES):
        readings = readings.behind(rotors)
        result, left = _identified(model, readings, options)
        if np.all(np.abs(left.x - before) < WEIGHTS_SETTLED):
            break
        rotors, before = result.model, left.x
    return result, left


def _losses_in_words(fit: Identified, gears: Sequence[str]) -> str:
    """Efficiencies of these gears, as a note has them."""
    found = {(x.name, x.kind): f"{x.value:.2g} ± {x.deviation:.1g}" for x in fit.sensors}
    said = [
        f"{name} ({found[name, 'efficiency']} while it drives, {found[name, 'backdrive']} while it "
        "is driven)"
        for name in gears
    ]
    return f"efficiencies {few(said)}"


@dataclass(frozen=True)
class _Options:
    """Arguments of :func:`identify`, with the masks of ``free``."""

    changing: Array
    named: Array
    prior: float
    robust: bool
    balanced: bool
    fits: _Fits


@dataclass
class _Fits:
    """A bar on which each fit is one, and ``done`` of them are."""

    bar: Progress
    done: int = 0

    def passed(self, n: int) -> None:
        """Show the n-th pass of a fit."""
        self.bar.at(self.done + min(n / MOST_PASSES, 1.0))

    def of(self, data: Data, readings: Sensors, prior: ParameterPrior) -> Fit:
        """One more fit."""
        fit = fitted(data, readings, prior, self.passed)
        self.done += 1
        return fit


def _identified(model: Model, readings: Sensors, options: _Options) -> tuple[Identified, Left]:
    """The fit, without what is to be said about the log."""
    data, compared = (Data.of(readings, options.robust, each) for each in (False, True))
    every = range(len(model.bodies))
    assumed, notes = assumptions(
        model, compared, options.changing, options.named, options.prior,
        every if options.balanced else rotors(model),
    )  # fmt: skip
    if not assumed.directions.shape[1] and not readings.unknowns:
        raise ValueError("nothing is free to change")
    try:
        fit = options.fits.of(compared, readings, assumed)
    except np.linalg.LinAlgError:
        if options.prior <= 1.0:
            raise
        raise ValueError(
            f"prior={options.prior:g} weighs nothing beside the forces, and what they leave open "
            "has no values that rounding errors do not decide: give a smaller one (1 is usual)"
        ) from None
    filed = parameters(model)
    rows, force, changed = readings.at(fit.unknowns)
    calibrated = (
        Calibrated(u.kind, u.name, u.value(x), u.slope(x) * deviation)
        for u, x, deviation in zip(
            readings.unknowns, fit.unknowns.tolist(), fit.spread.tolist(), strict=True
        )
    )
    notes += loss_notes_of(readings, fit)
    places, rates = readings.states(readings.motion(fit.unknowns))
    result = Identified(
        model=with_laws(with_parameters(changed, fit.values), readings, fit.unknowns),
        names=filed.names,
        values=fit.values,
        covariance=fit.covariance,
        prior_covariance=assumed.covariance(fit.values),
        before=data.rms(data.rows @ filed.values - data.forces),
        sensors=tuple(calibrated),
        measured=np.where(data.measured, force, np.nan),
        predicted=rows @ fit.values,
        file=data.rows @ filed.values,
        validation=np.full(len(data.forces[0]), np.nan),
        notes=tuple(notes),
        suspicions=(),
        times=readings.times if readings.length == len(rows) else None,
        effective=readings.coordinates.least(fit.effective),
        effects=data.effects,
        positions=places,
        velocities=rates,
    )
    return result, Left(result.model, readings, data, assumed, fit.values, fit.unknowns)


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
    places, rates = readings.states(readings.motion(np.zeros(0)))
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
        times=readings.times if readings.length == len(forces) else None,
        effective=np.full(len(error), np.nan),
        effects=data.effects,
        positions=places,
        velocities=rates,
    )
    assumed, _ = assumptions(model, data, *chosen(model, None), 1.0, ())
    left = Left(model, readings, data, assumed, assumed.nominal, np.zeros(0))
    return _checked(log, result, left, recorded=True)


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
    others = {"a": a, "tau": tau, "currents": currents, "encoders": encoders, "f_ext": f_ext}
    if v is not None:
        return Log(*cast(Any, (q, v, a, tau, currents, encoders, f_ext or {})))
    if given := [name for name, x in others.items() if x is not None]:
        raise ValueError(
            f"v is missing; or q is a log, which comes alone: its columns give {few(given)}, too"
        )
    return q if isinstance(q, Log) else read_log(model, q)


def _refuse_zeros(log: Log) -> None:
    """Raise a ValueError for a log without motion and forces."""
    forces = (log.tau, log.currents, *log.f_ext.values())
    if not any(np.any(np.nan_to_num(np.asarray(x, dtype=float)))
               for x in (log.v, log.a, *forces) if x is not None):  # fmt: skip
        raise ValueError(
            "velocities, accelerations and forces are zero throughout: nothing was recorded"
        )


def _checked(log: Log, fit: Identified, left: Left, *, recorded: bool) -> Identified:
    """Add notes; for a log also suspicions, each of which gives a RuntimeWarning."""
    model, readings = left.model, left.readings
    filtered = readings.windows is not None
    notes = [*fit.notes, *log.notes, *gap_notes(model.dof_names, fit.measured, filtered)]
    notes += friction_notes(left.forms)
    even = fit.times is not None and readings.interval is not None
    step = readings.interval if even else None
    suspicions: list[str] = []
    swapped: str | bool | None = None
    late: dict[int, list[str]] = {}
    if recorded:
        suspicions = state_warnings(model, log)
        forces, late = force_warnings(
            model, fit, left.late, left.felt, None if suspicions else step
        )  # fmt: skip
        swapped = not suspicions and (forces or fit.poor) and swapped_columns(readings)
        suspicions = [swapped] if swapped else [*suspicions, *forces]  # due to it, if it is
        for text in suspicions:
            warn(RuntimeWarning(text))
    only_late = len(suspicions) == len(late) and not swapped
    if step is not None and len(fit.measured) >= LONG_LOG and only_late:
        known = [name for names in late.values() for name in names]
        notes += delay_notes(model.dof_names, left.delays(step), step, known)
    return replace(fit, notes=tuple(notes), suspicions=tuple(suspicions))


def with_laws(model: Model, readings: Sensors, x: Array) -> Model:
    """The model with the laws of friction and the delays that were found, at unknowns x.

    Damping and friction are the means of both directions, so the difference of damping is added to
    the one and taken from the other. Where a joint has less itself, as its rotor has the rest, the
    file cannot say it, and a warning does.
    """
    model = with_efficiencies(model, _written_efficiencies(readings, x))
    kinds = (*FRICTION, "delay")
    found: dict[str, dict[str, float]] = {}
    for kind in kinds:
        for unknown, e in readings.of(kind, x):
            found.setdefault(unknown.name, {})[kind] = unknown.value(e)
    if not found:
        return model
    lost = list[str]()
    joints = tuple(
        _with_law(joint, found[joint.name], lost) if joint.name in found else joint
        for joint in model.description.joints
    )
    if lost:
        warn(RuntimeWarning(
            "damping differs by direction by more than the joint's own, as the rest is of rotors; "
            f"a file has only what the joint has: {few(lost)}"
        ))  # fmt: skip
    described = {joint.name: joint for joint in joints}
    records = tuple(
        replace(each, damping=described[each.name].damping, delay=described[each.name].delay,
                law=law_of(described[each.name])) if each.name in found else each
        for each in model.joints
    )  # fmt: skip
    description = replace(model.description, joints=joints)
    return replace(model, description=description, joints=records)


def _written_efficiencies(readings: Sensors, x: Array) -> dict[str, tuple[float, float]]:
    """Efficiencies that were found, as files can have them: at most 1."""
    both = [
        {unknown.name: min(unknown.value(e), 1.0) for unknown, e in readings.of(kind, x)}
        for kind in EFFICIENCIES
    ]
    return {name: (forward, both[1][name]) for name, forward in both[0].items()}


def loss_notes_of(readings: Sensors, fit: Fit) -> list[str]:
    """Notes on efficiencies that the log does not tell."""
    found = {
        (unknown.kind, unknown.name): n
        for n, unknown in enumerate(readings.unknowns) if unknown.kind in EFFICIENCIES
    }  # fmt: skip
    if not found:
        return []
    missing: dict[str, list[str]] = {"drives": [], "is driven": []}
    products = list[str]()
    for name, shares in readings.phases().items():
        for way, share in zip(missing, shares, strict=True):
            if share < LEAST_PHASE and ("efficiency", name) in found:
                kind = EFFICIENCIES[list(missing).index(way)]
                if fit.spread[found[kind, name]] > UNTOLD:
                    missing[way].append(name)
        if ("efficiency", name) not in found or name in (*missing["drives"], *missing["is driven"]):
            continue
        at = [found[kind, name] for kind in EFFICIENCIES]
        both = float(np.sqrt(max(float(fit.together[np.ix_(at, at)].sum()), 0.0)))
        if np.max(fit.spread[at]) > UNSURE and both < min(np.max(fit.spread[at]) / 3.0, UNTOLD):
            product = float(np.prod([readings.unknowns[n].value(fit.unknowns[n]) for n in at]))
            products.append(f"{name} ({product:.2g} ± {product * both:.1g})")
    result = [
        f"the log has no phase in which these motors' gear {way}, so that its efficiency there is "
        f"not told: {few(names)}"
        for way, names in missing.items() if names
    ]  # fmt: skip
    if products:
        result.append(
            "only the product of both efficiencies is told, as long as no mass, load or torque "
            f"constant is known: {few(products)}"
        )
    return result


def _with_law(joint: JointElement, found: Mapping[str, float], lost: list[str]) -> JointElement:
    """A joint of a file with its delay and law of friction; ``lost``: joints that lack damping."""
    if "delay" in found:
        joint = replace(joint, delay=found["delay"])
    if not any(kind in found for kind in FRICTION):
        return joint
    half, static = found.get("damping difference", 0.0), found.get("static friction")
    if abs(half) > joint.damping:
        lost.append(joint.name)
        half = math.copysign(joint.damping, half)
    return replace(
        joint,
        bias=found.get("bias", 0.0),
        damping_reverse=joint.damping - half if half else None,
        damping=joint.damping + half,
        friction_reverse=None,
        static_friction=None if static is None else max(joint.friction + static, 0.0),
        stribeck_velocity=found.get("Stribeck velocity", 0.0),
    )


def _validated(
    data: Data, readings: Sensors, assumed: ParameterPrior, blocks: list[Indices], fits: _Fits
) -> Array:
    """Root mean squares (nv,) of the residuals in each block, predicted by fits to the others."""
    error = np.zeros(data.forces.shape)
    compared = Data.of(readings, data.robust, compared=True) if blocks else data
    for block in blocks:
        others = compared.measured.copy()
        others[block] = False
        if not others.any():
            raise ValueError("folds: all forces that are known lie in one block of time")
        fit = fits.of(replace(compared, measured=others), readings, assumed)
        rows, force, _ = readings.at(fit.unknowns)
        error[block] = (rows @ fit.values - np.nan_to_num(force))[block]
    return data.rms(error) if blocks else np.full(data.forces.shape[1], np.nan)
