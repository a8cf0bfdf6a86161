"""Checks of states: open loops, quaternions not of unit length, joint limits, singular positions.

The dynamics do not check: they are exact for closed loops and unit quaternions, and return numbers
for other states too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.errors import ClosureError, argument, few, warn
from robomodel.mechanism.closure import Geometry
from robomodel.mechanism.constraints import Polynomial
from robomodel.mobility.exploration import tolerance_above
from robomodel.model.configurations import functions
from robomodel.model.configurations.following import allowed
from robomodel.model.configurations.singular import singularities
from robomodel.model.elements import Cluster, position_names, quaternions
from robomodel.model.registry import method
from robomodel.model.violations import NEAR_SINGULAR, LimitViolation, Singularity
from robomodel.tolerances import OPEN, WITHIN

if TYPE_CHECKING:
    from robomodel.model.model import Model

REMEDY = "model.close(q) or model.configuration(...) gives one"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why q is not a configuration; of an open loop also its name and gap."""

    message: str
    loop: str | None = None
    gap: float = 0.0


@method
def check(
    model: Model, q: Array, v: Array | None, tolerance: float
) -> tuple[LimitViolation | Singularity, ...]:
    """The limits that a state exceeds, and clusters at or near singular positions.

    ClosureError or ValueError for what is not a state.
    """
    worst = functions.check(model, moving=v is not None)(*((q,) if v is None else (q, v)))
    fault, beyond = (worst[..., n].max(initial=-np.inf) for n in range(2))
    if fault <= tolerance and beyond <= WITHIN and np.all(worst[..., 2] > NEAR_SINGULAR**2):
        return ()
    check_finite(q, "q", position_names(model))
    if v is not None:
        check_finite(v, "v", model.dof_names)
    refuse(model, [*unit_faults(model, q, tolerance), *loop_faults(model, q, tolerance)])
    warn_of_contradictions(model, contradicted(model), q)
    return (*_beyond(model, q, v), *singularities(model, q))


def refuse(model: Model, faults: Sequence[Fault]) -> None:
    """Raise an error of these faults, if there are any."""
    if not faults:
        return
    messages = "; ".join(fault.message for fault in faults)
    message = f"q is no configuration of '{model.name}': {messages}; {REMEDY}"
    loops = tuple(fault.loop for fault in faults if fault.loop is not None)
    if loops:
        raise ClosureError(message, max(fault.gap for fault in faults), loops)
    raise ValueError(message)


def check_finite(x: Array, what: str, labels: tuple[str, ...]) -> None:
    """Raise ValueError for numbers that are not finite."""
    bad = ~np.isfinite(x)
    if np.any(bad):
        at = int(np.argmax(np.any(bad, axis=tuple(range(x.ndim - 1)))))
        states = np.any(bad, axis=-1)
        value = x[..., at][bad[..., at]].flat[0]
        raise ValueError(f"{what} is not finite: '{labels[at]}' is {value}{_where(states)}")


def _where(states: Mask) -> str:
    """Which states of a batch, by the index of the first and their number; nothing for one."""
    if not states.ndim:
        return ""
    first = ", ".join(str(i) for i in np.unravel_index(int(np.argmax(states)), states.shape))
    count = int(np.count_nonzero(states))
    return f" at state {first}" + (f" and {count - 1} more" if count > 1 else "")


def unit_faults(model: Model, q: Array, tolerance: float) -> Iterator[Fault]:
    """Quaternions that are not of unit length; numbers that are not finite pass."""
    for name, part in quaternions(model):
        length = np.linalg.norm(q[..., part], axis=-1)
        bad = np.abs(length - 1.0) > tolerance
        if np.any(bad):
            worst = float(length[bad].flat[int(np.argmax(np.abs(length[bad] - 1.0)))])
            what = "is zero" if worst == 0.0 else f"has length {worst:.9g}, not 1"
            yield Fault(f"the quaternion of joint '{name}' {what}{_where(bad)}")


def loop_faults(model: Model, q: Array, tolerance: float) -> Iterator[Fault]:
    """Loops, and couplings beside them, that do not hold."""
    for cluster in model.clusters:
        if cluster.implicit:
            yield from _open(cluster, q[..., cluster.q], tolerance)


def _open(cluster: Cluster, q: Array, tolerance: float) -> Iterator[Fault]:
    geometry = cluster.geometry
    values = np.abs(geometry.evaluate(q)[0])
    values[..., np.setdiff1d(range(geometry.rows), cluster.closing_rows)] = (
        0.0  # left open by a file
    )
    most = allowed(cluster, q, tolerance)
    first = 0
    for loop in geometry.loops:
        gap = np.max(values[..., first : first + len(loop.rows)], axis=-1, initial=0.0)
        first += len(loop.rows)
        joints = few([cluster.joints[i] for branch in loop.branches for i in branch])
        bad = ~(gap <= most)
        if np.any(bad):
            worst = float(np.max(gap))
            kind, what = "loop", f"is open by {worst:.3g} (m, or sine of an angle)"
            if isinstance(loop, Polynomial):
                kind, what = "coupling", f"fails by {worst:.3g}"
            message = f"{kind} '{loop.name}' of joints {joints} {what}{_where(bad)}"
            yield Fault(message, loop.name, worst)
            continue
        wrong = Geometry(geometry.links, (loop,), ()).flipped(q)
        if np.any(wrong):
            what = f"is closed the wrong way round, axes opposite{_where(wrong)}"
            yield Fault(f"loop '{loop.name}' of joints {joints} {what}", loop.name)
    for n, coupling in enumerate(geometry.linear):
        gap = values[..., first + n]
        bad = ~(gap <= most)
        if np.any(bad):
            joints = few([cluster.joints[link] for link, _ in coupling.terms])
            worst = float(np.max(gap))
            what = f"fails by {worst:.3g}{_where(bad)}"
            message = f"coupling '{coupling.name}' of joints {joints} {what}"
            yield Fault(message, coupling.name, worst)


@method
def contradicted(model: Model) -> tuple[Cluster, ...]:
    """The clusters whose file's numbers contradict each other, without a tolerance that says so.

    Their redundant conditions stay open.
    """
    stated = {loop.name for loop in model.description.loops if loop.tolerance is not None}
    return tuple(
        cluster
        for cluster in model.clusters
        if cluster.implicit and cluster.slack and stated.isdisjoint(cluster.geometry.names)
    )


@method
def warn_of_contradictions(model: Model, clusters: Iterable[Cluster], q: Array) -> None:
    """Warn if configurations leave conditions of these clusters open, more than was said before."""
    key = warn_of_contradictions
    for cluster in clusters:
        geometry = cluster.geometry
        gaps = np.abs(geometry.evaluate(q[..., cluster.q])[0])
        gaps[..., list(cluster.closing_rows)] = 0.0
        gaps[~np.isfinite(gaps)] = 0.0
        worst = float(np.max(gaps, initial=0.0))
        # warned of again from three times the gap that was warned of before
        if worst > max(OPEN, 3.0 * model._derived.get(key, 0.0)):
            model._derived[key] = worst
            message = (
                f"loops {few(geometry.names)} stay open by {worst:.2g} (m, or sine of an angle) "
                f"here: numbers of '{model.name}' contradict each other, as was said when it was "
                "loaded, and what counts as redundant is left open; correct them, or accept it by "
                + argument("tolerance", tolerance_above(worst))
            )
            warn(RuntimeWarning(message))
            return


def _beyond(model: Model, q: Array, v: Array | None) -> Iterator[LimitViolation]:
    """Joints of one freedom beyond their limits, dependent ones included."""
    positions = model.joint_positions(q)
    with np.errstate(invalid="ignore"):  # singular positions are told beside limits
        velocities = {} if v is None else model.joint_velocities(q, v)
    for joint in model.joints:
        if joint.nv != 1:
            continue
        bounds: list[tuple[Literal["position", "velocity"], Array, float, float]] = []
        if joint.type != "continuous":
            at = np.asarray(positions[joint.name])
            bounds += [("position", at, joint.lower, -1.0), ("position", at, joint.upper, 1.0)]
        if v is not None:
            rate = np.asarray(velocities[joint.name])
            bounds.append(("velocity", rate, joint.least_velocity, -1.0))
            bounds.append(("velocity", rate, joint.velocity_limit, 1.0))
        for quantity, x, limit, sign in bounds:
            if not math.isfinite(limit):
                continue
            bad = sign * (x - limit) > WITHIN
            if np.any(bad):
                worst = sign * float(np.max(sign * x[bad]))
                count = int(np.count_nonzero(bad))
                yield LimitViolation(joint.name, quantity, worst, limit, count)
