"""Limits of effort: of motors at their rates, and of the joints that they drive."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.description import pushes
from robomodel.dynamics.kinematics.state import neutral_jacobian
from robomodel.model.actuators import Actuator
from robomodel.model.derived import cached_on_model, nominal
from robomodel.model.model import Model
from robomodel.scalars import (
    Scalar,
    Vector,
    div,
    is_number,
    maximum,
    minimum,
    select,
    stack,
    transposed,
    unstack,
    value_of,
)
from robomodel.tolerances import NOTHING, SAME

LARGE_FORCE = 1e30  # stands for no limit where it is multiplied, in single precision, too
BAND = 0.01  # share of a velocity limit over which driving force falls to zero, without a curve
UNLIMITED = 1e20  # a larger force is no limit


# --- motors ---


def bounds(model: Model, rates: Array | None) -> tuple[Array, Array]:
    """Least and greatest force of each actuator (..., nu) at these rates, or at rest.

    With a torque-speed curve driving force falls linearly from stall to zero at no-load speed and
    is zero beyond. Without one it is zero beyond the velocity limit. Braking force is not reduced.
    """
    if rates is None:
        return _at_rest(model)
    shape = (*rates.shape[:-1], len(model.actuators))
    lower, upper = np.empty(shape), np.empty(shape)
    with np.errstate(all="ignore"):
        for n, each in enumerate(model.actuators):
            lower[..., n] = -driving(each.backwards, -rates[..., n])
            upper[..., n] = driving(each, rates[..., n])
    lower[np.isnan(rates)] = upper[np.isnan(rates)] = np.nan
    return lower, upper


def _at_rest(model: Model) -> tuple[Array, Array]:
    least = [-value_of(driving(each.backwards, 0.0)) for each in model.actuators]
    return np.array(least), np.array([value_of(driving(each, 0.0)) for each in model.actuators])


def effort(actuator: Actuator) -> tuple[float, float]:
    """Least and greatest force of an actuator at rates at which speed takes none of it.

    They are those at rest, but of motors that turn one way only, which brake both ways.
    """
    return -value_of(driving(actuator.backwards, -1.0)), value_of(driving(actuator, -1.0))


def efforts(model: Model) -> tuple[Array, Array]:
    """The same of each actuator (nu)."""
    ends = np.array([effort(each) for each in model.actuators]).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


def driving(actuator: Actuator, rate: Scalar, band: float = 0.0) -> Scalar:
    """The greatest force along a rate, by effort limit, curve, velocity limit; any scalars.

    ``band``: share of the velocity limit over which force falls to zero, instead of at once.
    """
    force: Scalar = actuator.effort_limit
    if actuator.stall_torque is not None and actuator.no_load_speed is not None:
        share = 1.0 - div(maximum(rate, 0.0), actuator.no_load_speed)
        force = minimum(actuator.stall_torque * maximum(share, 0.0), force)
    limit = actuator.velocity_limit
    if is_number(limit) and not math.isfinite(limit):
        return force
    if not band or (is_number(limit) and not limit):
        return select(rate - limit, force, 0.0)
    share = div(limit - rate, band * limit)
    force = LARGE_FORCE if unlimited(force) else force
    return force * maximum(minimum(share, 1.0), 0.0)


def unlimited(force: Scalar) -> bool:
    """True if a force is infinite at every state."""
    return type(force) is float and math.isinf(force)


def within(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """``x`` within ``low`` and ``high``; not-a-number stays."""
    if not unlimited(low):
        x = select(x - low, low, x)
    return x if unlimited(high) else select(high - x, high, x)


# --- joints ---


@dataclass(frozen=True, slots=True)
class Pooled:
    """Bounds of what motors give a joint together, or one alone, by its limit of effort.

    ``motors``: their places in ``model.actuators``. They are the joint's own, which drive it and no
    other; or, with ``coordinate``, it has none, and they are all that turn with it, at constant
    ratios. Those of different joints' own have no motors in common.
    """

    joint: str
    motors: tuple[int, ...]
    least: float
    most: float
    coordinate: int | None = None


@cached_on_model
def pooled(model: Model) -> tuple[Pooled, ...]:
    """Limits of joints' efforts that bind what motors give together, or one alone.

    Where numbers of the model are arguments, at other ratios of gears all may.
    """
    varied, model, result = model._nominal is not None, nominal(model), list[Pooled]()
    for joint in model.joints:
        its, filed = own_motors(model).get(joint.name, ()), (joint.least_effort, joint.effort_limit)
        if its and _binds(filed, _given(model, its), varied=varied):
            result.append(Pooled(joint.name, its, *filed))
    for body, joint in enumerate(model.joints):
        driven = _driven(model, body) if joint.name in model.dof_names else None
        filed = joint.least_effort, joint.effort_limit
        if driven and joint.name not in driven and _binds(filed, _left(driven), varied=varied):
            motors = tuple(n for its, *_ in driven.values() for n in its)
            at = model.dof_names.index(joint.name)
            result.append(Pooled(joint.name, motors, *filed, coordinate=at))
    return tuple(result)


def whole(model: Model) -> dict[int, Pooled]:
    """Limits of :func:`pooled` that bound coordinates, by these."""
    return {each.coordinate: each for each in pooled(model) if each.coordinate is not None}


def bounded(model: Model, i: int, force: Scalar) -> Scalar:
    """A coordinate's force from its motors, within its limit of :func:`whole`."""
    each = whole(model).get(i)
    return force if each is None else within(force, each.least, each.most)


@cached_on_model
def own_motors(model: Model) -> dict[str, tuple[int, ...]]:
    """Joints with motors that drive them alone, with these; none of those that others drive, too.

    (MuJoCo clamps all that actuators give a joint, here differentials are not in a joint's limit.)
    """
    several = {x for each in model.actuators if len(each.terms) > 1 for x, _ in each.terms}
    driven: dict[str, list[int]] = {}
    for n, each in enumerate(model.actuators):
        if len(each.terms) == 1 and each.terms[0][0] not in several:
            driven.setdefault(each.terms[0][0], []).append(n)
    return {name: tuple(its) for name, its in driven.items()}


@cached_on_model
def let_by_joints(model: Model) -> tuple[Array, Array]:
    """The least and the greatest force (nu) of each motor that its own joint's limit lets through.

    Infinite of motors that no limit binds.
    """
    low, high = np.full((2, len(model.actuators)), [[-np.inf], [np.inf]])
    for each in pooled(model):
        for n in each.motors if each.coordinate is None else ():
            gear = model.actuators[n].terms[0][1]
            low[n], high[n] = sorted((each.least / gear, each.most / gear))
    return low, high


def alone(model: Model, rates: Array | None) -> tuple[Array, Array]:
    """:func:`bounds` within :func:`let_by_joints`: of each motor while others give nothing."""
    (lower, upper), (low, high) = bounds(model, rates), let_by_joints(model)
    return np.maximum(lower, low), np.minimum(upper, high)


@cached_on_model
def shared(model: Model) -> dict[int, tuple[float, float]]:
    """Coordinates whose motors :func:`pooled` bound, with what these give them at rest."""
    bound, found = {each.joint for each in pooled(model)}, dict[int, tuple[float, float]]()
    for body, joint in enumerate(model.joints):
        driven = _driven(model, body) if joint.name in model.dof_names else None
        ends = together(model, body) if driven and bound & {joint.name, *driven} else None
        if ends is not None:
            found[model.dof_names.index(joint.name)] = ends
    return found


class Column(NamedTuple):
    """A column of B with the least and the greatest force along it, of some motors."""

    motors: tuple[int, ...]
    column: list[Scalar]
    low: Scalar
    high: Scalar


def by_joints(
    model: Model, matrix: Sequence[Vector], gears: Vector, low: Vector, high: Vector
) -> list[Column]:
    """Motors, and joints in place of those of their own motors that their limits bind.

    ``low``, ``high``: bounds of motors' forces, or both these forces, any scalars. ``gears``: each
    motor's turns for one of its joint.
    """
    bound = {each.motors[0]: each for each in pooled(model) if each.coordinate is None}
    others = {n for each in bound.values() for n in each.motors[1:]}
    result = []
    for n, column in enumerate(transposed(matrix)):
        if n not in bound:
            result += [Column((n,), column, low[n], high[n])] * (n not in others)
            continue
        each = bound[n]
        ends = [(gears[m] * low[m], gears[m] * high[m]) for m in each.motors]
        sums = (functools.reduce(operator.add, [pick(*x) for x in ends])
                for pick in (minimum, maximum))  # fmt: skip
        least, most = (within(x, each.least, each.most) for x in sums)
        result.append(Column(each.motors, [div(x, gears[n]) for x in column], least, most))
    return result


def joined(
    model: Model, matrix: Array, lower: Array, upper: Array, gears: Array | None = None
) -> tuple[Array, Array, Array]:
    """The same of B (..., rows, nu), over any rows, and bounds (..., nu), for batches."""
    if all(each.coordinate is not None for each in pooled(model)):
        return matrix, lower, upper
    gears = np.array([each.terms[0][1] for each in model.actuators]) if gears is None else gears
    shape, wide, low, high = broadcast(matrix, lower, upper)
    rows = [unstack(wide[..., i, :]) for i in range(wide.shape[-2])]
    columns = by_joints(model, rows, *map(unstack, (gears, low, high)))
    return (
        np.stack([stack(each.column, shape) for each in columns], axis=-1),
        stack([each.low for each in columns], shape),
        stack([each.high for each in columns], shape),
    )


def together(model: Model, body: int) -> tuple[float, float] | None:
    """The least and the greatest force that limits of effort let motors give a joint together.

    A joint's limit bounds what its own motors give it, and, where it has none, what all do.
    Infinite where no limit is tighter than motors. None where the motors that turn with the joint
    drive others as well, or at ratios that vary, or where there are none.
    """
    driven, name = _driven(model, body), model.joints[body].name
    if driven is None:
        return None
    bound = any(_binds(filed, given) for _, _, given, filed in driven.values())
    least, most = _left(driven) if bound else (-math.inf, math.inf)
    filed = model.joints[body].least_effort, model.joints[body].effort_limit
    if (name not in driven or driven.keys() == {name}) and pushes(*filed[::-1]):
        return max(least, filed[0]), min(most, filed[1])
    return least, most


def _left(driven: Mapping[str, _Driven]) -> tuple[float, float]:
    """The least and the greatest force that motors give a joint through others, by their limits."""
    least, most = 0.0, 0.0
    for _, ratio, given, filed in driven.values():
        let = np.clip(given, *filed) if pushes(*filed[::-1]) else given
        low, high = np.sort(np.multiply(ratio, let))
        least, most = least + float(low), most + float(high)
    return least, most


def _given(model: Model, its: Sequence[int]) -> tuple[float, float]:
    """The least and the greatest force that motors give their joint."""
    motors = [model.actuators[n] for n in its]
    ends = [np.sort(np.multiply(x.terms[0][1], effort(x))) for x in motors]
    low, high = np.sum(ends, axis=0).tolist()
    return low, high


def _binds(filed: tuple[float, float], given: tuple[float, float], *, varied: bool = False) -> bool:
    """True if a limit of effort, which is no placeholder, is tighter than what motors give.

    ``varied``: or if it may be, for what motors give may be anything.
    """
    tighter = given[0] < filed[0] * (1.0 + SAME) or filed[1] * (1.0 + SAME) < given[1]
    return pushes(filed[1], filed[0]) and (tighter or varied)


_Driven: TypeAlias = tuple[tuple[int, ...], float, tuple[float, float], tuple[float, float]]


def _driven(model: Model, body: int) -> dict[str, _Driven] | None:
    """The joints with motors of their own that turn with a joint, at constant ratios to it.

    With their motors, the ratio, the least and the greatest force that these give, and the joint's
    own limits. None as :func:`together` is.
    """
    model = nominal(model)
    cluster, name = model.clusters[model.nodes[body].cluster], model.joints[body].name
    if cluster.varies:
        return None
    rows = {x: neutral_jacobian(model)[model.nodes[b].v]
            for x, b in zip(cluster.joints, cluster.bodies, strict=True)}  # fmt: skip
    moving = {x: set(np.flatnonzero(np.abs(row) > NOTHING).tolist()) for x, row in rows.items()}
    driven: dict[str, list[int]] = {}
    for n, each in enumerate(model.actuators):
        turning = [x for x, _ in each.terms if moving.get(x, set()) & moving[name]]
        if turning and (len(each.terms) > 1 or len(moving[turning[0]]) > 1):
            return None
        if turning:
            driven.setdefault(turning[0], []).append(n)
    if not driven or len(moving[name]) != 1:
        return None
    joints, (column,) = {each.name: each for each in model.joints}, moving[name]
    result: dict[str, _Driven] = {}
    for other, its in driven.items():
        filed = joints[other].least_effort, joints[other].effort_limit
        ratio = float(rows[other][column] / rows[name][column])
        result[other] = tuple(its), ratio, _given(model, its), filed
    return result


def broadcast(
    matrix: Array, lower: Array, upper: Array
) -> tuple[tuple[int, ...], Array, Array, Array]:
    """The batch's shape; B and the limits broadcast to it."""
    shape = np.broadcast_shapes(matrix.shape[:-2], lower.shape[:-1])
    low, high = (np.broadcast_to(x, (*shape, matrix.shape[-1])) for x in (lower, upper))
    return shape, np.broadcast_to(matrix, (*shape, *matrix.shape[-2:])), low, high
