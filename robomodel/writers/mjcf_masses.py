"""Inertias as MuJoCo takes them: positive in every direction, and such as bodies have.

Robots are often stated with less, where it makes no difference. A rotor may have its moment about
its axis alone, its mass being counted in the link that carries it; as it carries its mass and its
transverse moments along like a part of that carrier, the carrier can lend it both. And of a link
that only ever turns about one direction, nothing else than the moment about that matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from robomodel.description import Description, Inertial, Joint, Link, Pose, Vec3

_Matrix: TypeAlias = NDArray[np.float64]

NEARLY_NOTHING = 1e-12
"""Mass [kg] and moments [kg m²] that a body is given where it has less than MuJoCo needs."""
_TOO_LITTLE = 1e-15  # mjMINVAL
_ROUND = 1e-12  # relative: what is rounding
_SLACK = 1e-9  # relative: how much larger than needed lent moments are, to be clear of rounding


def heavy(inertial: Inertial | None) -> bool:
    """Whether MuJoCo lets a body move that has this inertia."""
    if inertial is None or inertial.mass <= _TOO_LITTLE:
        return False
    return principal(inertial)[0][0] > _TOO_LITTLE


def principal(inertial: Inertial) -> tuple[Vec3, _Matrix]:
    """The principal moments, ascending, and their axes (columns of a rotation)."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    moments, axes = np.linalg.eigh(_symmetric(inertial))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    a, b, c = moments.tolist() if xy or xz or yz else sorted((xx, yy, zz))
    return (a, b, c), axes


def of_a_body(moments: Vec3, *, moves: bool) -> Vec3:
    """The moments nearby that MuJoCo takes: not negative, positive if the body moves.

    The largest is at most the others' sum; to that the two smaller ones are raised alike.
    """
    least = NEARLY_NOTHING if moves else 0.0
    a, b, c = (x if x > (_TOO_LITTLE if moves else 0.0) else least for x in moments)
    if c > a + b:
        if c > (a + b) * (1.0 + _ROUND):
            a, b = a + (c - a - b) / 2.0, b + (c - a - b) / 2.0
        c = min(c, a + b)
    return a, b, c


def suited(description: Description) -> dict[str, Inertial | None]:
    """The inertias of all links, suited to MuJoCo as far as that leaves the dynamics as it is.

    Links that turn about one direction get what moments about others they need. Rotors are lent
    what they need: links on which nothing hangs, that turn about an axis through their centre of
    mass and are round about it. Those to whose carrier too little would remain stay as they are.
    """
    inertials = {link.name: link.inertial for link in description.links}
    moved_by = {joint.child: joint for joint in description.joints}
    loaded = {joint.parent for joint in description.joints}
    loaded |= {end.link for each in description.loops for end in (each.predecessor, each.successor)}
    directions = _directions(description, moved_by)
    for link in description.links:
        joint = moved_by.get(link.name)
        if joint is None or link.inertial is None or _taken(link.inertial):
            continue
        if (axis := directions.get(link.name)) is not None:
            inertials[link.name] = _round_about(link.inertial, axis, directions, joint)
            continue
        if joint.type not in ("revolute", "continuous") or link.name in loaded:
            continue
        needed = _needed(link, joint)
        if needed is None:
            continue
        mass, moment, about, inertia = needed
        carrier, pose = _carrier(joint, moved_by, inertials)
        if carrier is not None:
            rest = _without(inertials[carrier], mass, moment, about, link, pose)
            if rest is None:
                continue
            inertials[carrier] = rest
        inertials[link.name] = inertia
    return inertials


def _taken(inertial: Inertial) -> bool:
    """Whether MuJoCo takes the inertia of a body that moves as it is."""
    moments = principal(inertial)[0]
    return inertial.mass > _TOO_LITTLE and of_a_body(moments, moves=True) == moments


def _directions(
    description: Description, moved_by: Mapping[str, Joint]
) -> dict[str, _Matrix | None]:
    """The one direction about which each link ever turns, in its axes; zero if it never does.

    None for links that turn about more than one.
    """
    directions: dict[str, _Matrix | None] = {
        link.name: np.zeros(3) for link in description.links if link.name not in moved_by
    }
    below: dict[str, list[Joint]] = {}
    for joint in description.joints:
        below.setdefault(joint.parent, []).append(joint)
    order = list(directions)
    for name in order:
        for joint in below.get(name, ()):
            directions[joint.child] = _direction(joint, directions[name])
            order.append(joint.child)
    return directions


def _direction(joint: Joint, above: _Matrix | None) -> _Matrix | None:
    if above is None or joint.type in ("spherical", "floating"):
        return None
    back: _Matrix = np.array(joint.origin.rotation).T @ above
    if joint.type in ("fixed", "prismatic"):
        return back
    axis: _Matrix = np.array(joint.axis) / math.hypot(*joint.axis)
    return axis if np.linalg.norm(np.cross(axis, back)) <= _ROUND else None


def _round_about(
    said: Inertial, axis: _Matrix, directions: Mapping[str, _Matrix | None], joint: Joint
) -> Inertial:
    """An inertia of the same moment about an axis, and of such about others as suit it.

    A mass of zero is made a little one where it rests, on an axis that stands still.
    """
    rotation, centre, mass = np.array(said.origin.rotation), np.array(said.origin.xyz), said.mass
    inertia = rotation @ _symmetric(said) @ rotation.T
    moment = float(axis @ inertia @ axis) if axis.any() else NEARLY_NOTHING
    turns = np.outer(axis, axis) if axis.any() else np.eye(3) / 3.0
    transverse = 0.5 * moment * (1.0 + _SLACK)
    suited_ = moment * turns + transverse * (np.eye(3) - turns)
    above = directions[joint.parent]
    rests = above is not None and not above.any() and joint.type in ("revolute", "continuous")
    if mass <= _TOO_LITTLE and rests:
        mass, centre = NEARLY_NOTHING, np.zeros(3)
    return _inertial(said, mass, centre, suited_)


def _needed(link: Link, joint: Joint) -> tuple[float, float, _Matrix, Inertial] | None:
    """Mass and transverse moment that a rotor lacks, its axis, and its inertia with both.

    None for a link that is no rotor, or lacks nothing.
    """
    said = link.inertial
    if said is None:
        return None
    axis = np.array(joint.axis) / math.hypot(*joint.axis)
    rotation = np.array(said.origin.rotation)
    inertia = rotation @ _symmetric(said) @ rotation.T
    about = float(axis @ inertia @ axis)
    round_ = np.eye(3) - np.outer(axis, axis)
    transverse = float(np.sum(inertia * round_)) / 2.0
    ideal = about * np.outer(axis, axis) + transverse * round_
    centre = np.array(said.origin.xyz)
    if (
        about <= _TOO_LITTLE
        or np.max(np.abs(inertia - ideal)) > _ROUND * about
        or np.linalg.norm(np.cross(centre, axis)) > _ROUND * max(1.0, float(np.linalg.norm(centre)))
    ):
        return None
    mass = NEARLY_NOTHING - said.mass if said.mass <= _TOO_LITTLE else 0.0
    moment = 0.0
    if about > 2.0 * transverse:
        moment = 0.5 * about * (1.0 + _SLACK) - transverse
    if not (mass or moment):
        return None
    more = inertia + moment * round_
    return mass, moment, axis, _inertial(said, said.mass + mass, centre, more)


def _carrier(
    joint: Joint, moved_by: Mapping[str, Joint], inertials: Mapping[str, Inertial | None]
) -> tuple[str | None, Pose]:
    """The link with a mass to which the joint's parent is fixed, and the joint's origin in it.

    None where the joint stands on the world, whose mass nothing feels.
    """
    name, rotation, origin = joint.parent, np.array(joint.origin.rotation), joint.origin.xyz
    point = np.array(origin)
    found: str | None = None
    at = Pose()
    while True:
        here = inertials[name]
        if found is None and here is not None and here.mass > 0.0:
            found, at = name, _pose(point, rotation)
        above = moved_by.get(name)
        if above is None:
            return None, at
        if above.type != "fixed":
            return found or name, at if found else _pose(point, rotation)
        turn = np.array(above.origin.rotation)
        point = turn @ point + np.array(above.origin.xyz)
        rotation = turn @ rotation
        name = above.parent


def _without(
    carrier: Inertial | None, mass: float, moment: float, axis: _Matrix, rotor: Link, pose: Pose
) -> Inertial | None:
    """The carrier's inertia without what it lends; None where MuJoCo would refuse the rest."""
    assert rotor.inertial is not None
    if carrier is None or carrier.mass <= mass:
        return None
    turn = np.array(pose.rotation)
    direction = turn @ axis
    point = turn @ np.array(rotor.inertial.origin.xyz) + np.array(pose.xyz)
    own = np.array(carrier.origin.rotation)
    centre = np.array(carrier.origin.xyz)
    inertia = own @ _symmetric(carrier) @ own.T
    inertia -= moment * (np.eye(3) - np.outer(direction, direction))
    left = carrier.mass - mass
    if mass:
        apart = point - centre
        reduced = mass * carrier.mass / left  # of the lent mass, about the centre of what is left
        inertia -= reduced * (apart @ apart * np.eye(3) - np.outer(apart, apart))
        centre = centre - mass / left * apart
    rest = _inertial(carrier, left, centre, inertia)
    was, moments = principal(carrier)[0], principal(rest)[0]
    takes = of_a_body(moments, moves=True) == moments
    return rest if takes or of_a_body(was, moves=True) != was else None


def _symmetric(inertial: Inertial) -> _Matrix:
    xx, xy, xz, yy, yz, zz = inertial.inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _inertial(like: Inertial, mass: float, centre: _Matrix, inertia: _Matrix) -> Inertial:
    """An inertia in the axes of its link."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia.tolist()
    x, y, z = centre.tolist()
    return replace(like, mass=mass, inertia=(xx, xy, xz, yy, yz, zz), origin=Pose((x, y, z)))


def _pose(point: _Matrix, rotation: _Matrix) -> Pose:
    x, y, z = point.tolist()
    a, b, c = rotation.tolist()
    return Pose((x, y, z), (tuple(a), tuple(b), tuple(c)))
