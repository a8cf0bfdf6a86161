"""Rotors behind gears, whose effect other bodies of a tree have exactly (:func:`relumped`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robomodel.arrays import Array
from robomodel.description.transmissions import rotor_name
from robomodel.dynamics.lumped import joint_inertias
from robomodel.mechanism.graph import WORLD
from robomodel.mechanism.joints import Revolute
from robomodel.model.model import Model
from robomodel.model.parameters import ENTRIES, INERTIAL, parameters, pseudo_inertia
from robomodel.spatial import UNIT, Transform
from robomodel.tolerances import NOTHING, SINGULAR


@dataclass(frozen=True)
class Relumped:
    """Parameters (p,) of a tree, with the effect of the rotors of ``placed`` bodies in them."""

    values: Array
    placed: frozenset[int]


def relumped(model: Model, tree: Model, *, existing: bool) -> Relumped:
    """The tree's parameters with the spin of geared rotors in its bodies.

    A rotor of inertia I about its axis, geared N times to the joint that hangs on the same body,
    parallel to it, has besides its locked inertia the energy N I s q̇ + ½ N² I q̇², s the carrier's
    rate about the axis. The child turns by s + q̇ about it, which is fixed in both bodies, so that
    this is ½ N I (s + q̇)² - ½ N I s² + ½ (N² - N) I q̇²: a disc of N I more for the child, less
    for the carrier, and the armature (N² - N) I. Discs, N I about the axis and ½ N I across it,
    have no mass; what is equal about all axes normal to the joint's does not see it. A belt over
    parallel joints, N s with q̇ the sum of theirs, is the same with the last link for the child,
    and has (1 - 1/N) I for I as the inertia that these joints share. A rotor that the child
    carries, as a planet of the joint's gear, turns by s + q̇ + N q̇ and has N I (s + q̇) q̇ +
    ½ N² I q̇²: the same discs, and the armature (N² + N) I. ``existing``: only rotors with whose
    discs bodies can exist.
    """
    filed = parameters(tree)
    values, at = filed.values.copy(), {name: i for i, name in enumerate(filed.names)}
    body_of = {node.name: n for n, node in enumerate(model.nodes)}
    joint_of = {joint.name: n for n, joint in enumerate(model.joints)}
    bodies, placed = {body.name for body in tree.bodies}, set[int]()
    for each in joint_inertias(model):
        for rotor, about, ratios in each.rotors:
            driven = {joint_of[each.joints[i][0]]: float(ratios[i]) for i in np.flatnonzero(ratios)}
            ratio = _ratio(model, body_of[rotor], driven)
            if not ratio:
                continue
            spin = ratio * (about - model.nodes[body_of[rotor]].armature)
            child = model.nodes[max(driven)].name
            carrier = model.bodies[min(driven)].parent
            name = model.joints[max(driven)].name if len(driven) == 1 else rotor_name(rotor)
            less = spin if len(driven) == 1 else spin / ratio**2
            armature = at.get(f"{name}.armature", -1)
            if not {child, carrier} <= bodies or armature < 0 or values[armature] < less:
                continue
            axis = Transform(model.nodes[min(driven)].rotations, (0.0, 0.0, 0.0)).rotate(
                UNIT[_axis_number(model, min(driven))]
            )
            trial = values.copy()
            _add_disc(model, trial, at, carrier, axis, -spin)
            _add_disc(model, trial, at, child, UNIT[_axis_number(model, max(driven))], spin)
            trial[armature] -= less
            tens = (trial[at[f"{name}.mass"] :][: len(INERTIAL)] for name in (child, carrier))
            if not existing or all(map(_exists, tens)):
                values = trial
                placed.add(body_of[rotor])
    return Relumped(values, frozenset(placed))


def _ratio(model: Model, rotor: int, driven: Mapping[int, float]) -> float:
    """N of a rotor that turns N times the sum of the parallel joints of a chain on its carrier.

    In the joints' sense; of one joint also where its own link is the carrier. 0 for any other
    rotor.
    """
    one = model.nodes[rotor]
    chain = set(driven)
    own = chain == {one.parent}
    on_chain = own or all(model.nodes[body].parent in {*chain, one.parent} for body in chain)
    if not chain or one.parent == WORLD or not one.axisymmetric or not on_chain:
        return 0.0
    nodes = [one, *(model.nodes[body] for body in sorted(chain))]
    if len({node.parent for node in nodes[1:]}) < len(chain):  # two branches
        return 0.0
    if not all(isinstance(node.joint, Revolute) for node in nodes):
        return 0.0
    axis = np.array(Transform(one.rotations, (0.0, 0.0, 0.0)).rotate(
        UNIT[_axis_number(model, rotor)]), dtype=float)  # fmt: skip
    turn, ratios = np.eye(3), []
    for body, node in zip(sorted(chain), nodes[1:], strict=True):
        if not own:  # else the rotor's axis is in the axes of the joint
            turn = turn @ np.array(Transform(node.rotations, (0.0, 0.0, 0.0)).matrix(), dtype=float)
        cosine = float(turn[:, _axis_number(model, body)] @ axis)
        if abs(abs(cosine) - 1.0) > SINGULAR:
            return 0.0
        ratios.append(math.copysign(1.0, cosine) * driven[body])
    same = all(abs(ratio - ratios[0]) <= SINGULAR * abs(ratios[0]) for ratio in ratios)
    return ratios[0] if same else 0.0


def _axis_number(model: Model, body: int) -> int:
    joint = model.nodes[body].joint
    assert isinstance(joint, Revolute)
    return joint.k


def _add_disc(
    model: Model, values: Array, at: Mapping[str, int], body: str, axis: Sequence[Any], size: float
) -> None:
    """Add a disc about an axis, in the body's internal axes, to its parameters."""
    a = np.array(model.frame(body).pose.unrotate((axis[0], axis[1], axis[2])), dtype=float)
    disc = 0.5 * size * (np.eye(3) + np.outer(a, a))
    first = at[f"{body}.{INERTIAL[4]}"]
    values[first : first + 6] += [disc[i, j] for i, j in ENTRIES]


def _exists(ten: Array) -> bool:
    lowest, *_, highest = np.linalg.eigvalsh(pseudo_inertia(ten.tolist()))
    return bool(lowest >= -NOTHING * highest)
