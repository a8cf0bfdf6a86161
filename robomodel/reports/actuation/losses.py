"""The torques of motors behind lossy gears at the limb: those that they drive, hold, and that turn
them.

At rest, with the motor's force U and the dry friction f of its bearing, its ratio g at a joint and
the efficiencies of its mesh: it moves a load of |g| η (U - f) forwards, holds |g| (U + f)/η_b, and
when it is off |g| f/η_b turns it. Of several motors that turn with the joint these are sums; dry
friction of the joints that move joins them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array, Indices
from robomodel.dynamics.actuators import efforts, maps
from robomodel.dynamics.actuators.envelopes import JointEnvelope
from robomodel.dynamics.actuators.limbs import beside, columns_of, unit_rates
from robomodel.model import Model
from robomodel.model.elements import spanning_start
from robomodel.tolerances import NOTHING


@dataclass(frozen=True, slots=True, eq=False)
class LossyJoint:
    """A joint with motors behind lossy gears, others of its limb at rest, held there.

    Attributes:
        joint: Its name.
        slides: Units are metres and newtons, not radians.
        motors: Those that turn with it.
        positions: Of the joint (n,) on its range.
        drives: The largest load (n,) that its motors are sure to move.
        holds: The largest load that they hold; infinite through self-locking gears.
        turns: The least load that turns its motors when they are off; infinite there, too.
    """

    joint: str
    slides: bool
    motors: tuple[str, ...]
    positions: Array
    drives: Array
    holds: Array
    turns: Array


def lossy_joints(model: Model, envelopes: Sequence[JointEnvelope]) -> Iterator[LossyJoint]:
    """The joints that have motors with lossy gears."""
    least, most = efforts.bounds(model, None)
    greatest, let = (np.minimum(high, -low)  # in both directions
                     for low, high in ((least, most), efforts.let_by_joints(model)))  # fmt: skip
    for each in envelopes:
        driving = [n for n, x in enumerate(model.actuators) if x.name in each.actuators]
        if not any(model.actuators[n].lossy for n in driving):
            continue
        order = each.line[np.argsort(each.positions[each.line], kind="stable")]
        ratios = np.abs(each.ratios[order])
        ratios = np.where(ratios > NOTHING, ratios, 0.0)
        bearings, others = np.zeros(len(driving)), _frictions(model, each, driving, order)
        ahead, back = (maps.shares(model, way)[driving] for way in ("forward", "back"))
        for i, n in enumerate(driving):
            actuator = model.actuators[n]
            if _has_rotor(model, n):
                ((_, factor),) = actuator.rows
                rotor = model.joints[model.joint_names.index(actuator.joint)]
                bearings[i] = rotor.friction / abs(factor)
        motors = greatest[driving]
        with np.errstate(invalid="ignore"):
            forces = np.minimum(ahead * np.maximum(motors - bearings, 0.0), let[driving])
            drives = np.sum(_of(ratios, forces), axis=1)
            holds = np.sum(_of(ratios, back * (motors + bearings)), axis=1) + others
            turns = np.sum(_of(ratios, np.where(np.isinf(back), back, back * bearings)), axis=1)
        yield LossyJoint(
            each.joint, each.slides, each.actuators, each.positions[order],
            np.maximum(drives - others, 0.0), holds, turns + others,
        )  # fmt: skip


def _of(ratios: Array, forces: Array) -> Array:
    """|g| times forces, which may be infinite."""
    return np.where(ratios == 0.0, 0.0, ratios * forces)


def _has_rotor(model: Model, n: int) -> bool:
    actuator = model.actuators[n]
    return actuator.joint not in dict(actuator.terms)


def _frictions(model: Model, each: JointEnvelope, driving: Sequence[int], order: Indices) -> Array:
    """Dry friction (n,) at a joint of all joints that move with it, but its motors' rotors."""
    body = model.joint_names.index(each.joint)
    cluster, bodies = model.clusters[model.nodes[body].cluster], beside(model, body)
    spanning = np.array([spanning_start(cluster, q[cluster.q]) for q in each.q[order]])
    rates = unit_rates(model, cluster, spanning, columns_of(model, cluster, bodies))
    (own,) = columns_of(model, cluster, [body])
    along = rates[..., columns_of(model, cluster, bodies).index(own)]
    rotors = {model.actuators[n].joint for n in driving if _has_rotor(model, n)}
    joints = [model.joints[b] for b in cluster.bodies]
    friction = [0.0 if j.name in rotors else j.friction for j in joints for _ in range(j.nv)]
    return np.asarray(np.abs(np.nan_to_num(along)) @ np.array(friction))
