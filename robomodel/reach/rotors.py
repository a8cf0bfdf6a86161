"""Rotors of clusters: bodies that motors turn, and that carry nothing else."""

from __future__ import annotations

import math

import numpy as np

from robomodel.arrays import Array
from robomodel.description.transmissions import rotor_name
from robomodel.mechanism.joints import Revolute
from robomodel.model.actuators import LEVER
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.model.parameters import inertial_parameters, pseudo_inertia

BALANCED = 0.02  # of its inertia: what a rotor may lack of symmetry about its axis


def rotors(model: Model, cluster: Cluster) -> dict[int, float]:
    """The rotors of a cluster, each with the turns that it makes for one of a joint, or 1 if fewer.

    They are symmetric bodies, and those that couplings alone turn: that carry nothing, are in no
    loop, and are nearly symmetric or turn more than :data:`LEVER` times for one of a hinge of their
    coupling. Files describe rotors with bearings and housings, so that their inertia alone does not
    tell; but with a centre of mass beside its axis, as a finger's, it must turn that much faster
    again. What a ``mimic`` turns no faster is a finger or a wheel, and what it ties to a slide a
    pinion. Couplings give the positions of all rotors by those of the other joints, so that of a
    differential's gears and its symmetric hand not all are rotors: those with motors are, or those
    without if the file has motors at joints that carry links; then the lighter ones, and of like
    masses those that turn faster.
    """
    geometry, seen = cluster.geometry, _mimics(model)
    result = {
        body: 1.0
        for body in cluster.bodies
        if model.nodes[body].axisymmetric and model.joints[body].name not in seen
    }
    carrying, driven = set(model.parents), _motors(model)
    rows = np.zeros((len(geometry.linear), len(cluster.bodies)))
    for row, coupling in zip(rows, geometry.linear, strict=True):
        for n, factor in coupling.terms:
            body, row[n] = cluster.bodies[n], factor
            turns = max((abs(k / factor) for i, k in coupling.terms if i != n), default=0.0)
            skew, beside = _off_balance(model, body)
            least = LEVER if beside <= BALANCED else LEVER**2
            fast = math.isfinite(skew) and any(
                abs(k) > least * abs(factor)
                for i, k in coupling.terms
                if i != n and isinstance(geometry.links[i].joint, Revolute)
            )
            alone = body not in carrying and n not in geometry.looped_bodies
            geared = alone and (fast or max(skew, beside) <= BALANCED)
            if (geared and model.joints[body].name not in seen) or body in result:
                result[body] = max(result.get(body, 1.0), turns)
            if turns < 1.0:  # no motor turns slower than what it drives
                driven.discard(body)
    shafts = driven.intersection(cluster.bodies) <= result.keys()
    columns = list[int]()

    def order(body: int) -> tuple[bool, float, float, int]:
        share = round(model.bodies[body].mass / (model.mass or 1.0), 9)
        return (body in driven) != shafts, share, -result[body], body

    for body in sorted(result, key=order):
        more = [*columns, cluster.bodies.index(body)]
        if not np.any(rows[:, more[-1]]):
            continue
        if np.linalg.matrix_rank(rows[:, more]) == len(more):
            columns = more
        else:
            del result[body]
    return result


def _motors(model: Model) -> set[int]:
    """The bodies at whose joints, or their rotors', the file has motors; effort limits are none."""
    told = any(each.actuators for each in model.description.transmissions)
    names = {each.joint for each in model.actuators} if told else set[str]()
    names |= {joint.name for joint in model.description.joints if joint.motor}
    at = {joint.name: body for body, joint in enumerate(model.joints)}
    shafts = {rotor_name(name) if rotor_name(name) in at else name for name in names}
    return {at[name] for name in shafts & at.keys()}


def _off_balance(model: Model, body: int) -> tuple[float, float]:
    """The shares of its inertia about its hinge that a body lacks of symmetry about it.

    Differences and products of moments; and what the centre of mass makes by its distance. Infinite
    for other joints.
    """
    joint, p = model.nodes[body].joint, body_pseudo_inertia(model, body)
    if not isinstance(joint, Revolute):
        return math.inf, math.inf
    k, i, j = (joint.k, (joint.k + 1) % 3, (joint.k + 2) % 3)
    off = [p[i, i] - p[j, j], 2.0 * p[i, j], 2.0 * p[i, k], 2.0 * p[j, k]]
    about, mass = float(p[i, i] + p[j, j]), float(p[3, 3])
    away = float(np.hypot(p[i, 3], p[j, 3])) ** 2 / (mass or 1.0)
    return float(np.max(np.abs(off))) / (about or 1.0), away / (about or 1.0)


def _mimics(model: Model) -> set[str]:
    """The joints that mimics tie to others, without those that these turn as fast as rotors."""
    kinds = {joint.name: joint.type == "prismatic" for joint in model.description.joints}
    names = set()
    for joint in model.description.joints:
        if joint.mimic and joint.mimic.multiplier:
            turns, of = abs(joint.mimic.multiplier), joint.mimic.joint
            alike = kinds[joint.name] == kinds.get(of)
            if turns <= LEVER or not alike:
                names.add(joint.name)
            if 1.0 / turns <= LEVER or not alike:
                names.add(of)
    return names


def body_pseudo_inertia(model: Model, body: int) -> Array:
    """A body's pseudo-inertia (4, 4) in its internal axes."""
    return pseudo_inertia(inertial_parameters(model.nodes[body].inertia))
