"""Whether a log can be of this robot: units, limits, signs, delays, friction at low speeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from robomodel.errors import few
from robomodel.identification.logs import Log
from robomodel.model.elements import Joint
from robomodel.model.joints import Array
from robomodel.model.model import Model

DEGREES = 180.0 / math.pi
CLEAR = 0.9  # correlation from which two signals are one, but for their scale
NEAR = 0.2  # of a scale: how far it may be off
SLACK = 0.02  # of a limit's range, or of a velocity limit: what is measured may be beyond it
LATE = 20  # samples of delay that are tried
UNITS = 8.0  # times, or less than its inverse: forces in N mm, N cm, kgf cm
MOST = 0.7  # of the forces' root mean square: more that is left says that something is wrong
BETTER = 0.5  # of the variance that is left: less must be left where something is set right
SLOW = (0.02, 0.05, 0.1, 0.2)  # of the largest speed: widths of Stribeck's peak that are tried
LEAST = 16  # samples, and of them at low speeds
LONG = 100  # samples, from which a delay can be told from chance


def state_warnings(model: Model, log: Log) -> list[str]:
    """What in a log's positions and velocities cannot be: units, signs, broken limits."""
    turned, slid, reversed_, scaled, beyond, fast = [], [], [], [], [], []
    for joint, x, w in _single(model, log):
        gain = _rate_gain(x, w, log.step) or 1.0
        if joint.type != "prismatic" and abs(gain / DEGREES - 1.0) < NEAR:
            turned.append(joint.name)
        elif joint.type != "prismatic" and abs(gain * DEGREES - 1.0) < NEAR:
            slid.append(joint.name)
        elif gain < 0.0:
            reversed_.append(joint.name)
        elif abs(gain - 1.0) > NEAR:
            scaled.append(f"{joint.name} ({gain:.3g})")
        range_ = joint.upper - joint.lower
        slack = SLACK * range_ if math.isfinite(range_) else SLACK
        if joint.type != "continuous" and (
            np.min(x) < joint.lower - slack or np.max(x) > joint.upper + slack
        ):
            beyond.append(f"{joint.name} ({np.min(x):.4g} to {np.max(x):.4g})")
        if np.max(np.abs(w)) > (1.0 + SLACK) * joint.velocity_limit:
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
    """How many times the velocities w positions change, where they change alike at all."""
    if step is None or not math.isfinite(step) or len(x) < LEAST:
        return None
    change, speed = (x[2:] - x[:-2]) / (2.0 * step), w[1:-1]
    sizes = float(np.linalg.norm(change)), float(np.linalg.norm(speed))
    both = float(change @ speed)
    if min(sizes) == 0.0 or abs(both) < CLEAR * sizes[0] * sizes[1]:
        return None
    return both / sizes[1] ** 2


def force_warnings(
    names: Sequence[str], measured: Array, predicted: Array, fitted: Array, step: float | None
) -> list[str]:
    """What in measured forces (n, nv) cannot be, beside those that the file's parameters predict.

    ``fitted``: the forces of the parameters found. Other friction than the file's looks like a
    delay, but is found, so that only what explains the forces better than these is one.
    ``step``: between samples of one motion [s], None where they are not at even times.
    """
    signs: list[str] = []
    zero: list[str] = []
    scaled: list[str] = []
    unexplained: list[str] = []
    delays: dict[int, list[str]] = {}
    for i, name in enumerate(names):
        there = np.isfinite(measured[:, i])
        if np.count_nonzero(there) < LEAST:
            continue
        m, p, f = measured[there, i], predicted[there, i], fitted[there, i]
        size, left = float(np.linalg.norm(m)), float(np.linalg.norm(m - f))
        if size == 0.0:
            zero += [name] if np.any(p) else []
            continue
        if float(m @ p) > CLEAR * size * np.linalg.norm(p):
            gain = float(m @ p) / float(p @ p)
            if not 1.0 / UNITS < gain < UNITS:
                scaled.append(f"{name} ({gain:.3g})")
                continue
        as_is, turned = float(np.sum((m - p) ** 2)), float(np.sum((m + p) ** 2))
        if turned < BETTER * min(as_is, float(np.sum(m**2))):
            signs.append(name)
        elif step is not None and there.all() and (lag := _lag(m, p, f)):
            delays.setdefault(lag, []).append(name)
        elif left > MOST * size and np.linalg.norm(p) > NEAR * size:
            unexplained.append(f"{name} ({100.0 * left / size:.0f} %)")
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
        result.append(
            f"forces come {1e3 * abs(lag) * (step or 0.0):.3g} ms {when} the motion that they "
            f"explain: {few(late)}"
        )
    return result


def _lag(m: Array, p: Array, f: Array) -> int:
    """By how many samples m comes after p; 0 where none explains it clearly better, also than f."""
    if len(m) < LONG:
        return 0
    most = min(LATE, len(m) // 10)
    middle = p[most : len(p) - most]
    middle = middle - np.mean(middle)
    size = float(np.linalg.norm(middle))
    if size == 0.0:
        return 0
    left = {}
    for lag in range(-most, most + 1):
        shifted = m[most + lag : len(m) - most + lag]
        shifted = shifted - np.mean(shifted)
        alike = float(shifted @ middle) / (size * float(np.linalg.norm(shifted)) or 1.0)
        left[lag] = 1.0 - max(alike, 0.0) ** 2
    best = min(left, key=lambda lag: left[lag])
    found = float(np.var(m - f)) / (float(np.var(m)) or 1.0)
    return best if left[best] < min(BETTER * left[0], 1.0 - CLEAR**2, found) else 0


def friction_notes(names: Sequence[str], error: Array, v: Array) -> list[str]:
    """Coordinates whose forces left over (n, nv) rise towards standstill, as Stribeck's do."""
    result = []
    for i, name in enumerate(names):
        there = np.isfinite(error[:, i])
        e, w = error[there, i], v[there, i]
        fastest = float(np.max(np.abs(w), initial=0.0))
        total = float(np.sum(e**2))
        if fastest == 0.0 or total == 0.0:
            continue
        for share in SLOW:
            peak = np.sign(w) * np.exp(-((w / (share * fastest)) ** 2))
            slow = np.count_nonzero(np.abs(w) < share * fastest)
            # what Coulomb's and viscous friction took of the peak is given back
            basis = np.stack([peak, np.sign(w), w], axis=1)
            coefficients, *_ = np.linalg.lstsq(basis, e, rcond=None)
            left = float(np.sum((e - basis @ coefficients) ** 2))
            if slow >= LEAST and coefficients[0] > 0.0 and left < BETTER * total:
                result.append(f"{name} (below {share * fastest:.2g})")
                break
    if not result:
        return []
    return [
        "friction rises towards standstill (Stribeck), which the parameters cannot say: leave out "
        f"slower samples, or make them unknown (empty cells): {few(result)}"
    ]
