"""Motors and the joints of limbs: rates of the ones for unit rates of the others, at rest else.

With N the motions of a cluster, N_u their rates at the motors and N_y at the joints of a limb,

    A = N_u N_y⁺,    u̇ = A ẏ,    τ_y = Aᵀ τ_u.

Neither goes through the independent coordinates, which may be singular where A is not. Where N_y
loses rank a limb's joint rests while motors move, and A is infinite; where A loses rank motors rest
while the limb moves, and can neither hold nor move it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from robomodel.arrays import Array
from robomodel.description.transmissions import actuator_terms
from robomodel.dynamics.actuators.efforts import own_motors, together
from robomodel.mechanism.roots import last_before
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, spanning_start
from robomodel.model.model import Model
from robomodel.reach.limb import limb_bodies
from robomodel.reach.motions import ClusterMotion
from robomodel.reach.paths import Path
from robomodel.scalars import stack, unstack
from robomodel.tolerances import MOVES, NOTHING, SINGULAR, TINY

RANKLESS = 1e-6  # of the greatest least singular value of more motors than joints: they rest


def motions(model: Model, cluster: Cluster, spanning: Array) -> Array:
    """A cluster's motions (n, columns, nv) at its spanning positions (n, nq), as columns.

    Of a linkage they are orthonormal in the joints of its loops, in comparable units; not-a-number
    at change points.
    """
    if not cluster.implicit:
        rows = cluster.constraint.jacobian(unstack(spanning))
        flat = stack([x for row in rows for x in row], (len(spanning),))
        return flat.reshape(len(spanning), -1, cluster.nv)
    motion = ClusterMotion.of(model, cluster)
    null, lost = motion.with_dependent(spanning, 1e-6)
    looped = [c for link in cluster.geometry.looped for c in link.freedoms]
    triangle = np.linalg.qr(null[:, looped], mode="r")
    regular = np.min(np.abs(np.diagonal(triangle, axis1=1, axis2=2)), axis=1) > MOVES
    if np.all(regular):
        null = null @ np.linalg.inv(triangle)
    result: Array = null * motion.unit[:, None]
    result[lost] = np.nan  # K loses a rank at change points
    return result


def unit_rates(model: Model, cluster: Cluster, spanning: Array, columns: Sequence[int]) -> Array:
    """Rates (n, spanning velocities, k) of a cluster's joints for unit rates of those of columns.

    The others of these are at rest. Not-a-number at dead points, where they do not tell the motion,
    and at change points. Of spins of rods, beside these, there is as little as can be.
    """
    basis = motions(model, cluster, spanning)
    unit = ClusterMotion.of(model, cluster).unit[list(columns)]
    finite = np.all(np.isfinite(basis), axis=(1, 2))
    rows = np.where(finite[:, None, None], basis[:, list(columns)] / unit[:, None], 0.0)
    singular = np.linalg.svd(rows, compute_uv=False)[:, -1]
    bound = MOVES if cluster.implicit else SINGULAR
    inverse = np.linalg.pinv(rows, rcond=SINGULAR) / unit
    result: Array = basis @ inverse
    result[~(finite & (singular > bound))] = np.nan
    result[:, list(columns)] = np.where(np.isnan(result[:, list(columns)]), np.nan,
                                        np.eye(len(columns)))  # fmt: skip
    return result


@cached_on_model
def motor_rows(model: Model) -> Array:
    """The rates of the actuators by all joints' velocities (nu, spanning velocities)."""
    rows = np.zeros((len(model.actuators), model.n_joint_velocities))
    for n, each in enumerate(model.actuators):
        for row, k in each.rows:
            rows[n, row] += k
    return rows


class TiedSpeeds(NamedTuple):
    """The sizes of a joint's greatest speeds by others that turn with it, and which limit them."""

    back: float = math.inf
    ahead: float = math.inf
    back_by: str = ""
    ahead_by: str = ""


@cached_on_model
def tied_speeds(model: Model, body: int) -> TiedSpeeds:
    """The speeds that limits of velocity leave a joint of those at a constant ratio to it.

    A limit of zero both ways is a placeholder, and counts as none.
    """
    joints = {joint.name: joint for joint in model.joints}
    pairs = [
        [(name, k) for name, k in each.terms if k]
        for each in model.couplings
        if not each.coefficients
    ]
    ratios, todo = {model.joints[body].name: 1.0}, [model.joints[body].name]
    while todo:
        at = todo.pop()
        for pair in pairs:
            if len(pair) == 2 and at in (names := dict(pair)):
                ((other, k),) = (each for each in pair if each[0] != at)
                if other not in ratios:
                    ratios[other] = -ratios[at] * names[at] / k
                    todo.append(other)
    found = TiedSpeeds()
    for name, ratio in tuple(ratios.items())[1:]:
        least, most = joints[name].least_velocity, joints[name].velocity_limit
        back, ahead = sorted((least / ratio, most / ratio))
        if -back < found.back:
            found = found._replace(back=-back, back_by=name)
        if ahead < found.ahead:
            found = found._replace(ahead=ahead, ahead_by=name)
    return found


def file_efforts(model: Model, body: int) -> tuple[float, float]:
    """The sizes of the least and the greatest effort that limits of the file leave a joint.

    Its own limit bounds what motors of its own give, or, without any, those of its rotors and of
    joints at a constant ratio to it; else these push beside, within their own limits. So do those
    of a linkage, at ratios that vary, beside motors of its own.
    """
    joint, known = model.joints[body], together(model, body)
    if known is None and joint.name in own_motors(model):
        return math.inf, math.inf  # the limit is that of these motors
    least, most = known or (joint.least_effort, joint.effort_limit)
    return 0.0 - least, most


@cached_on_model
def is_driven(model: Model, body: int) -> bool:
    """True if motors turn a joint of one freedom; of a linkage, if they turn any of its joints.

    Or if the file does not tell: it has no transmissions, or one of an unknown type on the joint,
    or one that moves no joints that are known; or of joints of several freedoms.
    """
    if model.joints[body].nv != 1:
        return True
    cluster, name = model.clusters[model.nodes[body].cluster], model.joints[body].name
    told = [each for each in model.description.transmissions if each.actuators]
    unknown = {end.name for each in told if not any(actuator_terms(each)) for end in each.joints}
    rows = motor_rows(model)[:, cluster.spanning_v]
    if not all(each.joints for each in told) or not told or name in unknown:
        return True
    if cluster.varies and np.any(rows):
        return True
    columns = columns_of(model, cluster, beside(model, body))
    rates = rows @ unit_rates(model, cluster, start_of(model, cluster), columns)[0]
    own = columns.index(*columns_of(model, cluster, [body]))
    return bool(np.any(np.abs(rates[:, own]) > NOTHING))


def columns_of(model: Model, cluster: Cluster, bodies: Sequence[int]) -> list[int]:
    """The spanning velocities of bodies' joints within their cluster."""
    return [v - cluster.spanning_v.start for body in bodies for v in model.nodes[body].freedoms]


@cached_on_model
def own_joints(model: Model, index: int) -> tuple[int, ...]:
    """Bodies of a cluster whose joints have motors of their own, if these determine the cluster.

    Else none. A motor is a joint's own whose rate is that joint's alone, directly or by a gear.
    """
    cluster = model.clusters[index]
    driven = {geared(cluster, each.terms[0][0]) for each in model.actuators
              if len(each.terms) == 1}  # fmt: skip
    bodies = tuple(
        b for b in cluster.bodies
        if model.joints[b].name in driven and model.nodes[b].joint.nv == 1
    )  # fmt: skip
    if len(bodies) != sum(model.nodes[b].joint.nv for b in limb_bodies(model)[index]):
        return ()
    rates = unit_rates(model, cluster, start_of(model, cluster), columns_of(model, cluster, bodies))
    return bodies if np.all(np.isfinite(rates)) else ()


def geared(cluster: Cluster, name: str) -> str:
    """The joint of loops that one coupling of two joints ties a joint beside them to; else it."""
    geometry, joints = cluster.geometry, cluster.joints
    looped = {joints[n] for n in geometry.looped_bodies}
    if name in looped:
        return name
    pairs = [{joints[n] for n, _ in each.terms} for each in geometry.linear]
    others = [(each - {name}) & looped for each in pairs if name in each and len(each) == 2]
    return next((other for each in others for other in each), name)


def start_of(model: Model, cluster: Cluster) -> Array:
    """A cluster's spanning positions at neutral (1, nq)."""
    return spanning_start(cluster, model.neutral()[cluster.q])[None]


@cached_on_model
def rowed(model: Model) -> tuple[int, ...]:
    """Bodies whose joints have rows in reports: of one freedom, and of limbs.

    If some of a limb's joints have motors of their own, all that have are among them.
    """
    result: list[int] = []
    for index, limb in enumerate(limb_bodies(model)):
        own = own_joints(model, index)
        result += sorted({*limb, *(own if set(own) & set(limb) else ())})
    return tuple(b for b in sorted(result) if model.nodes[b].joint.nv == 1)


@cached_on_model
def beside(model: Model, body: int) -> tuple[int, ...]:
    """Bodies, this one among them, whose joints tell how its cluster moves: the others rest.

    If its joint has a motor of its own, they are those that have; else those of the limb. A joint
    that is neither takes the place of the limb's that it moves with most, at neutral.
    """
    cluster = model.clusters[model.nodes[body].cluster]
    for bodies in (own_joints(model, cluster.index), limb_bodies(model)[cluster.index]):
        if body in bodies:
            return bodies
    limb = list(limb_bodies(model)[cluster.index])
    columns = columns_of(model, cluster, limb)
    rates = unit_rates(model, cluster, start_of(model, cluster), columns)[0]
    (own,) = columns_of(model, cluster, [body])
    share = np.abs(np.nan_to_num(rates[own])) / ClusterMotion.of(model, cluster).unit[columns]
    most = columns[int(np.argmax(share))]
    return tuple(b if most not in columns_of(model, cluster, [b]) else body for b in limb)


def connected(model: Model, index: int) -> list[int]:
    """Indices of the clusters whose joints share motors with one, that one first."""
    rows = motor_rows(model)
    touched = np.array([np.any(rows[:, c.spanning_v] != 0.0, axis=1) for c in model.clusters])
    result = [index]
    for each in result:
        for other in np.flatnonzero(np.any(touched & touched[each], axis=1)).tolist():
            if other not in result:
                result.append(other)
    return result


def torque_map(model: Model, rates: Array, cluster: Cluster) -> Array:
    """Torques (n, coordinates, nu) of limb joints for unit forces of motors.

    The first coordinates are those of ``rates`` (n, spanning velocities of the cluster, k); the
    others those of limbs of clusters that share motors with it, at neutral.
    """
    rows = motor_rows(model)
    parts = [np.swapaxes(rows[:, cluster.spanning_v] @ rates, 1, 2)]
    for index in connected(model, cluster.index)[1:]:
        other = model.clusters[index]
        columns = columns_of(model, other, limb_bodies(model)[index])
        still = unit_rates(model, other, start_of(model, other), columns)
        part = np.swapaxes(rows[:, other.spanning_v] @ still, 1, 2)
        parts.append(np.broadcast_to(part, (len(rates), *part.shape[1:])))
    return np.concatenate(parts, axis=1)


def condition(ratios: Array) -> Array:
    """The condition (n,) of A (n, motors, k), its columns of length 1: no joint's unit is in it.

    1 where limb joints ask right angles of the motors; infinite where motors rest while the limb
    moves, and where there are fewer motors than joints.
    """
    finite = np.all(np.isfinite(ratios), axis=(1, 2))
    if ratios.shape[1] < ratios.shape[2]:
        return np.where(finite, np.inf, np.nan)
    columns = np.where(finite[:, None, None], ratios, 1.0)
    sizes = np.linalg.norm(columns, axis=1, keepdims=True)
    singular = np.linalg.svd(columns / np.maximum(sizes, TINY), compute_uv=False)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(finite, singular[:, 0] / singular[:, -1], np.nan))


def loose(model: Model, body: int, q: Array) -> Array:
    """The motion of a joint's cluster in which it and those beside it rest, as far as they can.

    Of several, as where rods spin, that which turns motors most. Not-a-number at change points.
    """
    cluster = model.clusters[model.nodes[body].cluster]
    (basis,) = motions(model, cluster, q[None])
    if not np.isfinite(basis).all():
        return np.full(len(basis), np.nan)
    rows = columns_of(model, cluster, beside(model, body))
    at_rest = basis[rows] / ClusterMotion.of(model, cluster).unit[rows, None]
    still = basis @ np.linalg.svd(at_rest)[2][len(rows) - 1 :].T
    most = np.linalg.svd(motor_rows(model)[:, cluster.spanning_v] @ still)[2][0]
    return np.asarray(still @ most)


def singular_places(
    model: Model, cluster: Cluster, path: Path, rows: Array, limb: Array
) -> Iterator[float]:
    """Places of a path at which rates ``rows`` of motors lose rank, where joints of ``limb`` move.

    By changes of sign of their determinant on motions that are carried along, where there are as
    many motors as joints, and else by zeros of their least singular value.
    """
    count = len(limb)
    if len(rows) < count:
        return
    unit = path.part.unit

    def bases_at(q: Array) -> Array:
        """Orthonormal motions of the limb (n, columns, k)."""
        every = motions(model, cluster, q) / unit[:, None]
        finite = np.all(np.isfinite(every), axis=(1, 2))
        known = np.where(finite[:, None, None], every, 0.0)
        seen = np.linalg.svd(np.concatenate([limb, rows]) * unit @ known)[2][:, :count]
        mine = np.linalg.qr(known @ np.swapaxes(seen, 1, 2))[0]
        return np.where(finite[:, None, None], mine, np.nan)

    def turned(mine: Array, like: Array) -> Array:
        """Motions that are turned as those before them."""
        if not (np.isfinite(mine).all() and np.isfinite(like).all()):
            return mine
        left, _, right = np.linalg.svd(mine.T @ like)
        return np.asarray(mine @ (left @ right))

    def value(motion: Array) -> float:
        if not np.isfinite(motion).all():
            return math.nan
        scaled = rows * unit @ motion
        if len(rows) == count:
            return float(np.linalg.det(scaled))
        return float(np.linalg.svd(scaled, compute_uv=False)[-1])

    bases = bases_at(path.q)
    for n in range(1, len(bases)):
        bases[n] = turned(bases[n], bases[n - 1])
    values = np.array([value(x) for x in bases])
    if len(rows) == count:
        for n in np.flatnonzero(values[1:] * values[:-1] < 0.0).tolist():

            def there(place: float, like: Array = bases[n]) -> float:
                return value(turned(bases_at(path.at(place)[None])[0], like))

            # beyond where motors rest may be a change point, at which rates are not known
            yield last_before(there, (n, n + 1.0), (values[n], values[n + 1]), NOTHING)
        return
    lowest = np.flatnonzero(values <= RANKLESS * np.nanmax(values))
    yield from lowest.astype(float).tolist()
