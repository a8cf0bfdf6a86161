"""Inertia that a joint feels of what turns with it: rotors, rods and other joints' links."""

from __future__ import annotations

import numpy as np

from robomodel.arrays import Array
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, unstack
from robomodel.spatial import ZERO, Motion, scale

INFINITE = 1e6  # rates of a joint that is at a dead point


def reflected_inertia(model: Model, q: Array, body: int, v: Array) -> Array:
    """Reflected inertia (n,) [kg m² or kg] of a joint at q (n, nq), moved at unit rate by v (n,
    nv).

    Not-a-number where v is.
    """
    with np.errstate(invalid="ignore"):  # at dead points
        speeds = np.einsum("nij,nj->ni", model.constraint_jacobian(q), v)
    return inertia_along(model, q, body, speeds)


def inertia_along(model: Model, q: Array, body: int, speeds: Array) -> Array:
    """The same by the rates of all joints (n, spanning velocities)."""
    positions = model.spanning_positions(unstack(q))
    rests = np.all(speeds == 0.0, axis=0)
    rates = [0.0 if rest else rate for rest, rate in zip(rests, unstack(speeds), strict=True)]
    with np.errstate(all="ignore"):  # at dead points
        total = reflected(model, positions, rates, body)
    result: Array = np.broadcast_to(np.asarray(total, dtype=float), (len(q),)).copy()
    result[~(np.max(np.abs(speeds), axis=-1, initial=0.0) < INFINITE)] = np.nan
    return result


def reflected(model: Model, positions: Vector, rates: Vector, body: int) -> Scalar:
    """Reflected inertia of a joint that moves at unit rate; scalars of any kind.

    It is the sum of twistᵀ · inertia · twist over all moving bodies except those that the joint
    carries, plus armatures; of carried rotors only the spin counts. No term is negative. ``rates``
    are of all joints; a rate that is the float 0 marks a joint at rest.
    """
    total: Scalar = 0.0
    twists: dict[int, Motion] = {}
    carried: set[int] = set()
    for k, node in enumerate(model.nodes):
        if k == body or node.parent in carried:
            carried.add(k)
        moves = any(not isinstance(rates[r], float) or rates[r] != 0.0 for r in node.freedoms)
        if node.parent not in twists and not moves:
            continue
        turning = Motion(ZERO, ZERO)
        for r, motion in zip(node.freedoms, node.joint.subspace, strict=True):
            turning = turning + Motion(
                scale(rates[r], motion.angular), scale(rates[r], motion.linear)
            )
            total = total + node.armature * rates[r] * rates[r]
        twists[k] = turning
        if node.parent in twists:
            twists[k] = node.transform(positions).to_child(twists[node.parent]) + turning
        if k not in carried:
            total = total + (node.inertia * twists[k]).dot(twists[k])
        elif node.axisymmetric and k != body:
            total = total + (node.inertia * turning).dot(turning)
    return total
