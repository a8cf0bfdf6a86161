"""Plausibility of logs, and of what a fit leaves: units, signs, limits, delays, friction's form."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from robomodel.arrays import Array, Indices
from robomodel.errors import argument, few
from robomodel.identification.logs import Log
from robomodel.model.elements import Joint
from robomodel.model.model import Model
from robomodel.tolerances import SINGULAR, TINY

if TYPE_CHECKING:
    from robomodel.identification.fit import Trial, Trials
    from robomodel.identification.identified import Identified

DEGREES = 180.0 / math.pi
SAME_SIGNAL = 0.9  # least correlation of two signals that differ by a scale only
SCALE_OFF = 0.2  # accepted relative error of such a scale
LIMIT_SLACK = 0.02  # accepted violation, relative to a limit's range or to a velocity limit
UNITS = 8.0  # ratio of forces, or its inverse, that suggests other units: N mm, N cm, kgf cm
BETTER = 0.5  # a correction must reduce the residual variance below this fraction
SLOW = (0.02, 0.05, 0.1, 0.2)  # widths of Stribeck's peak, relative to the largest speed
LEAST_SAMPLES = 16  # least number of samples, also at low speeds
CHANCE = 6.0  # number of deviations that a significant coefficient must exceed
BLOCKS_SURE = 1.0  # standard errors by which a form of friction must be worse than the best one
QUARTER = 0.25  # smallest delay that is noted, in samples
LONG_LOG = 100  # least number of samples to detect a delay


def state_warnings(model: Model, log: Log) -> list[str]:
    """Warnings on implausible positions and velocities of a log: units, signs, violated limits."""
    turned, slid, reversed_, scaled, beyond, fast = [], [], [], [], [], []
    rates = [(joint.name, x, w) for joint, x, w in _single(model, log)]
    mixed = {("positions", "velocities"): _mixed(rates, log.step)}
    if log.a is not None and log.encoders is None and log.v.ndim == 2:
        pulls = zip(model.dof_names, log.v.T, log.a.T, strict=True)
        mixed["velocities", "accelerations"] = _mixed(pulls, log.step)
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
        share = 1.0 + LIMIT_SLACK
        if np.max(w) > share * joint.velocity_limit or np.min(w) < share * joint.least_velocity:
            fast.append(f"{joint.name} ({np.max(np.abs(w)):.4g})")
    result = [
        f"columns of {first} or {second} seem to be swapped: {first} of each joint change as "
        f"{second} of the other say: {few(pairs)}"
        for (first, second), pairs in mixed.items() if pairs
    ]  # fmt: skip
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


def _mixed(columns: Iterable[tuple[str, Array, Array]], step: float | None) -> list[str]:
    """Pairs of joints (name, x, w) whose x change as each other's w say, not as their own."""
    each = list(columns)
    gains = {
        (a, b): _rate_gain(x, w, step) is not None for a, x, _ in each for b, _, w in each
    }  # fmt: skip
    return [
        f"{a} and {b}"
        for (a, _, _), (b, _, _) in combinations(each, 2)
        if gains[a, b] and gains[b, a] and not (gains[a, a] or gains[b, b])
    ]


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
    model: Model,
    fit: Identified,
    late: Callable[[float], Array],
    columns: Callable[[int], Array],
    step: float | None,
) -> tuple[list[str], dict[int, list[str]]]:
    """Warnings on implausible measured forces, compared with those of the file's parameters.

    Friction that differs from the file's looks like a delay but is identified, so a delay must
    explain the forces better than any parameters do without it.

    Args:
        model: The robot.
        fit: The fit.
        late: Measured forces (n, nv) that come so many seconds later; nan where there are none.
        columns: Columns (n, ·) of the parameters in a coordinate.
        step: Time between samples [s] of one motion, None if samples are not at even times.

    Returns:
        warnings: All of them.
        late: The coordinates whose forces come late, by the number of samples.
    """
    signs: list[str] = []
    zero: list[str] = []
    scaled: list[str] = []
    unexplained: list[str] = []
    delays: dict[int, list[str]] = {}
    lags = None if step is None else _Lags.of(late, step, len(fit.measured))
    for i, name in enumerate(model.dof_names):
        there = np.isfinite(fit.measured[:, i])
        if np.count_nonzero(there) < LEAST_SAMPLES:
            continue
        m, p, f = (x[there, i] for x in (fit.measured, fit.file, fit.predicted))
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
        elif lags is not None and there.all() and (lag := lags.best(i, columns(i))):
            delays.setdefault(lag, []).append(name)
        # a plausible model leaves less of the root mean square of the forces
        elif residual > 0.7 * size and np.linalg.norm(p) > SCALE_OFF * size:
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
    for lag, names in delays.items():
        when = "after" if lag > 0 else "before"
        more = " or more" if lags is not None and abs(lag) == lags.most else ""
        result.append(
            f"forces come {1e3 * abs(lag) * (step or 0.0):.3g} ms{more} {when} the motion that "
            f"they explain, which {argument('delays', True)} identifies and removes: {few(names)}"
        )
    return result, delays


@dataclass(frozen=True)
class _Lags:
    """Forces (2 most + 1, n, nv) at lags of whole samples."""

    most: int
    forces: Array

    @classmethod
    def of(cls, late: Callable[[float], Array], step: float, count: int) -> _Lags | None:
        if count < LONG_LOG:
            return None
        most = min(20, count // 10)  # samples: larger delays are not tried
        return cls(most, np.stack([late(lag * step) for lag in range(-most, most + 1)]))

    def best(self, i: int, columns: Array) -> int:
        """The lag of a coordinate's forces; 0 if none is clearly better."""
        forces = self.forces[:, :, i].T
        there = np.isfinite(forces).all(axis=1)
        shapes = columns[there]
        if len(shapes) < LEAST_SAMPLES + shapes.shape[1]:
            return 0
        left = forces[there] - shapes @ _solved(shapes, forces[there])
        unexplained = np.sum(left**2, axis=0)
        best = int(np.argmin(unexplained))
        most = min(
            BETTER * unexplained[self.most],
            (1.0 - SAME_SIGNAL**2) * float(np.var(forces[:, self.most])) * len(forces),
        )
        clear = unexplained[best] < most
        return best - self.most if clear else 0


def gap_notes(names: Sequence[str], measured: Array, filtered: bool) -> list[str]:
    """Notes on coordinates with missing forces (n, nv)."""
    missing = np.isnan(measured).sum(axis=0)
    some = [
        f"{name} ({n})" for name, n in zip(names, missing, strict=True) if 0 < n < len(measured)
    ]
    if not some:
        return []
    what = "windows, which lack a sample" if filtered else "samples"
    return [f"forces are missing in some of {len(measured)} {what}: {few(some)}"]


def _solved(columns: Array, right: Array) -> Array:
    """Least-squares coefficients of columns (n, p) in the right sides (n, m)."""
    scale = np.maximum(np.linalg.norm(columns, axis=0), TINY)
    return np.asarray(
        np.linalg.lstsq(columns / scale, right, rcond=SINGULAR)[0] / scale[:, None], dtype=float
    )


@dataclass(frozen=True)
class FrictionForm:
    """The friction of a joint beside Coulomb's and viscous friction, as far as it is certain.

    Attributes:
        name: The joint.
        speed: Mean speed [rad/s or m/s].
        resisting: Mean of Coulomb's and viscous friction in the fit [N m or N].
        bias: A force that is constant, positive where friction is stronger at positive velocity;
            nan if there is none.
        viscous: Half the difference of damping at positive and negative velocity; nan if none.
        peak: Static above Coulomb's friction; nan if none.
        width: Velocity of the peak [rad/s or m/s].
        up: 1 if positive velocities lift the joint's load in the log, -1 if they lower it, else 0.
    """

    name: str
    speed: float
    resisting: float
    bias: float
    viscous: float
    peak: float
    width: float
    up: int = 0

    @property
    def one_way(self) -> bool:
        """True if friction is not the same in both directions."""
        return not (math.isnan(self.bias) and math.isnan(self.viscous))


SHAPES = 2 + len(SLOW)  # of friction: a bias, damping's difference, and peaks of some widths


def friction_shapes(fastest: float) -> list[Callable[[Array], Array]]:
    """Functions of a joint's velocity that Coulomb's and viscous friction do not explain."""

    def peak(width: float) -> Callable[[Array], Array]:
        return lambda w: np.sign(w) * np.exp(-((w / width) ** 2))

    return [lambda w: np.abs(np.sign(w)), np.abs, *(peak(share * fastest) for share in SLOW)]


def friction_forms(
    names: Sequence[str], trials: Trials, fastest: Sequence[float], speeds: Sequence[float],
    resisting: Sequence[float],
) -> list[FrictionForm]:  # fmt: skip
    """The forms of friction that are certain beside all parameters.

    Args:
        names: The joints, all of which move.
        trials: Trials with the columns of :func:`friction_shapes` of each joint.
        fastest: Largest speed of each.
        speeds: Mean speed of each.
        resisting: Mean of Coulomb's and viscous friction of each in the fit.
    """
    if not names:
        return []
    best = widths_of_peaks(len(names), trials)
    trial = trials(_columns(best))
    certain = np.abs(trial.found) > CHANCE * trial.deviations
    found = np.where(certain, trial.found, np.nan).reshape(-1, 3).tolist()
    result = []
    for n, name in enumerate(names):
        bias, viscous, height = found[n]
        height = height if height > 0.0 else math.nan
        width = SLOW[best[n]] * fastest[n]
        form = FrictionForm(name, speeds[n], resisting[n], bias, viscous, height, width)
        if form.one_way or not math.isnan(height):
            result.append(form)
    return result


def loads_certain(
    names: Sequence[str], trials: Trials, loads: Mapping[str, Sequence[int]]
) -> dict[str, float]:
    """Shares of loads by which friction certainly grows, beside all other forms of friction.

    Args:
        names: The joints, all of which move.
        trials: Trials with the columns of :func:`friction_shapes` of each joint, and of loads.
        loads: Places of the columns of friction in units of loads, by name; the first of each is
            the one that is the same both ways.
    """
    if not loads:
        return {}
    friction = _columns(widths_of_peaks(len(names), trials))
    trial = trials([*friction, *(place for places in loads.values() for place in places)])
    result, at = dict[str, float](), len(friction)
    for name, places in loads.items():
        if trial.found[at] > CHANCE * trial.deviations[at]:
            result[name] = float(trial.found[at])
        at += len(places)
    return result


def _columns(widths: Sequence[int]) -> list[int]:
    """Places of the columns of a bias, damping's difference and a peak of this width, by joint."""
    return [SHAPES * i + n for i, width in enumerate(widths) for n in (0, 1, 2 + width)]


def widths_of_peaks(count: int, trials: Trials) -> list[int]:
    """The best of :data:`SLOW` for the peak of each joint, whose shapes the trials have."""

    def gain(widths: Sequence[int]) -> float:
        return trials.gain(_columns(widths))

    best = max(([width] * count for width in range(len(SLOW))), key=gain)
    for i in range(count):
        best = max(([*best[:i], width, *best[i + 1 :]] for width in range(len(SLOW))), key=gain)
    return best


@dataclass(frozen=True, slots=True)
class TriedForm:
    """A form of friction, compared with others by the prediction of blocks of time not seen.

    Attributes:
        form: In words.
        share: The share of the forces that it leaves in blocks that the others predict.
        joints: The joints that have static friction by it.
        gears: The actuators in whose gears friction grows with the load by it.
        offset: True if friction has a bias.
        one_way: True if damping differs by direction, too.
        chosen: True for the one that was chosen, see :func:`tried_forms`.
    """

    form: str
    share: float
    joints: tuple[str, ...]
    offset: bool
    one_way: bool
    gears: tuple[str, ...] = ()
    chosen: bool = False

    @property
    def count(self) -> int:
        """Number of unknowns of each joint."""
        return self.offset + self.one_way + 2 * bool(self.joints) + 2 * bool(self.gears)


def tried_forms(
    names: Sequence[str], trials: Trials, blocks: Sequence[Indices], forces: Array,
    certain: Sequence[FrictionForm], loads: Mapping[str, Sequence[int]],
) -> list[TriedForm]:  # fmt: skip
    """Forms of friction from the simplest one on, one of which is chosen.

    Those may be chosen whose parts are certain of some joint. One is as good as the best of them if
    it leaves no more, by a standard error of the difference between blocks (L. Breiman and others,
    *Classification and regression trees*, 1984). Joints without which static friction is as good
    have none.

    Args:
        names: The joints, all of which move.
        trials: Trials with the columns of :func:`friction_shapes` of each joint, and of loads.
        blocks: Indices of the samples in each.
        forces: Measured forces (n, nv); zero if not measured.
        certain: What is certain of some joints, by :func:`friction_forms`.
        loads: Places of the columns of gears, if friction certainly grows with the load in one.
    """
    widths, weight = widths_of_peaks(len(names), trials), trials.weight
    size = float(np.sum(weight * np.sum(forces**2, axis=0)))

    def left(tried: TriedForm) -> Array:
        places = [0] * tried.offset + [1] * tried.one_way
        columns = [SHAPES * i + n for i in range(len(names)) for n in places]
        columns += [
            SHAPES * i + 2 + widths[i] for i, name in enumerate(names) if name in tried.joints
        ]
        columns += [place for gear in tried.gears for place in loads[gear]]
        return np.asarray(trials.held_out(columns, blocks) @ weight)

    def as_good(error: Array, as_: Array) -> bool:
        worse = error - as_
        spread = float(np.std(worse, ddof=1)) / math.sqrt(len(worse))
        return float(np.mean(worse)) <= BLOCKS_SURE * spread

    every, gears = tuple(names), tuple(loads)
    forms = [
        TriedForm("the same both ways", 0.0, (), False, False),
        TriedForm("with an offset", 0.0, (), True, False),
        TriedForm("static (Stribeck)", 0.0, every, False, False),
        TriedForm("another one each way", 0.0, (), True, True),
        TriedForm("static (Stribeck), with an offset", 0.0, every, True, False),
        TriedForm("static (Stribeck), another one each way", 0.0, every, True, True),
    ]
    peaks = any(not math.isnan(each.peak) for each in certain)
    viscous = any(not math.isnan(each.viscous) for each in certain)
    offset = any(each.one_way for each in certain)
    possible = [
        form for form in forms
        if form.joints <= every * peaks and form.offset <= offset and form.one_way <= viscous
    ]  # fmt: skip
    if gears:
        grown = [replace(form, form=_grown(form), gears=gears) for form in possible]
        forms = sorted([*forms, *grown], key=lambda form: form.count)
        possible += grown
    errors = [left(form) for form in forms]
    open_to = [n for n, form in enumerate(forms) if form in possible]
    best = min(open_to, key=lambda n: float(np.sum(errors[n])))
    n = next(n for n in open_to if as_good(errors[n], errors[best]))
    for name in forms[n].joints:
        others = tuple(each for each in forms[n].joints if each != name)
        simpler = replace(forms[n], joints=others)
        if others and as_good(error := left(simpler), errors[n]):
            forms[n], errors[n] = simpler, error
    return [
        replace(form, share=math.sqrt(float(np.sum(error)) / max(size, TINY)), chosen=i == n)
        for i, (form, error) in enumerate(zip(forms, errors, strict=True))
    ]


def _grown(form: TriedForm) -> str:
    """The form in words, with friction that grows with the load."""
    grown = "growing with the load"
    return f"{form.form}, {grown}" if form.count else grown


def friction_notes(forms: Sequence[FrictionForm]) -> list[str]:
    """The forms in words."""
    result = []
    risen = [f"{x.name} (below {x.width:.2g})" for x in forms if not math.isnan(x.peak)]
    if risen:
        result.append(
            "friction rises towards standstill (Stribeck), which the parameters cannot say: "
            f"{argument('stribeck', True)} identifies its law, or leave slower samples unknown "
            f"(empty cells): {few(risen)}"
        )
    one_way = [
        f"{x.name} ({asymmetry(x.resisting, x.bias, x.viscous * x.speed, x.up)})" for x in forms
        if x.one_way
    ]  # fmt: skip
    if one_way:
        result.append(
            "friction is not the same in both directions, which the parameters cannot say: "
            f"{argument('asymmetric', True)} identifies both: {few(one_way)}"
        )
    return result


def load_notes(shares: Mapping[str, float]) -> list[str]:
    """A note on joints without a gear whose friction grows by these shares of the load."""
    said = [f"{name} ({100.0 * share:.2g} % of it)" for name, share in shares.items()]
    if not said:
        return []
    return [
        "friction grows with the load where the file has no gear that could lose power, so that "
        f"neither parameters nor file can say it: {few(said)}"
    ]


def asymmetry(resisting: float, bias: float, viscous: float, up: int = 0) -> str:
    """In words, which direction's friction is stronger, and by how much.

    ``resisting``: the mean of both directions. ``up``: 1 if positive velocities lift the load, -1
    if they lower it, 0 if neither does.
    """
    more = (0.0 if math.isnan(bias) else bias) + (0.0 if math.isnan(viscous) else viscous)
    way = f"at {'positive' if more > 0.0 else 'negative'} velocity"
    if up:
        way = f"{'upwards' if more * up > 0.0 else 'downwards'}, {way}"
    weak = resisting - abs(more)
    if weak > abs(more) / 10.0:  # beyond ten times as strong, a share says nothing
        return f"{200.0 * abs(more) / weak:.0f} % stronger {way}"
    return f"{abs(more):.3g} stronger {way}, than without"


def delay_notes(
    names: Sequence[str], trial: Trial, step: float, suspected: Collection[str]
) -> list[str]:
    """Notes on coordinates whose forces are late, from the coefficients of their slopes [s].

    But for those of which it is suspected already.
    """
    certain = np.abs(trial.found) > np.maximum(CHANCE * trial.deviations, QUARTER * step)
    result = [
        f"{name} ({-1e3 * change:.3g} ms)"
        for name, change, sure in zip(names, trial.found.tolist(), certain.tolist(), strict=True)
        if sure and name not in suspected
    ]
    if not result:
        return []
    by = argument("delays", True)
    return [f"forces come after the motion; {by} identifies by how much: {few(result)}"]
