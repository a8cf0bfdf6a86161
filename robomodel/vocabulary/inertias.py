"""Inertias that simulators accept: positive definite, with the triangle inequality.

MuJoCo and Gazebo refuse other inertias, and Drake changes them. Many files give less where it makes
no difference. A rotor may have a moment about its axis only, its mass being counted in the link
that carries it. A mass on the axis of a hinge moves equally as a part of either link, so that it
can be shifted from one to the other. A link that only ever turns about one direction needs its
moment about that direction only. And a link fixed to another may be merged into it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from robomodel.description import AT_ORIGIN, Description, Inertial, Joint, Pose, Vec3
from robomodel.description.inertias import inertial_of, placed
from robomodel.description.poses import compose
from robomodel.spatial import symmetric
from robomodel.tolerances import NOTHING

_Matrix: TypeAlias = NDArray[np.float64]
_Part: TypeAlias = tuple[str, Inertial, Pose]  # link, inertia, pose in its carrier

NEARLY_NOTHING = 1e-12
"""Mass [kg] and moments [kg m²] given to a body that has less than MuJoCo requires."""
_TOO_LITTLE = 1e-15  # mjMINVAL
_SLACK = 1e-9  # relative margin of lent moments over the needed ones, against rounding


def heavy(inertial: Inertial | None) -> bool:
    """True if MuJoCo accepts the inertia for a moving body."""
    if inertial is None or inertial.mass <= _TOO_LITTLE:
        return False
    return principal(inertial)[0][0] > _TOO_LITTLE


def carriers(description: Description) -> set[str]:
    """Links that are :func:`heavy`, or to which such links are fixed."""
    above = {joint.child: joint.parent for joint in description.joints if joint.type == "fixed"}
    carrying: set[str] = set()
    for link in description.links:
        at = link.name
        while heavy(link.inertial) and (up := above.get(at)) is not None and up not in carrying:
            carrying.add(at := up)
    return carrying


def principal(inertial: Inertial) -> tuple[Vec3, _Matrix]:
    """The principal moments [kg m²], ascending, and their axes (columns of a rotation)."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    moments, axes = np.linalg.eigh(symmetric(*inertial.inertia))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    a, b, c = moments.tolist() if xy or xz or yz else sorted((xx, yy, zz))
    return (a, b, c), axes


def of_a_body(moments: Vec3, *, moves: bool) -> Vec3:
    """The nearest moments that MuJoCo accepts: not negative, and positive if the body moves.

    If the largest exceeds the sum of the others, both others are raised by the same amount.
    """
    least = NEARLY_NOTHING if moves else 0.0
    a, b, c = (x if x > (_TOO_LITTLE if moves else 0.0) else least for x in moments)
    if c > a + b:
        if c > (a + b) * (1.0 + NOTHING):
            a, b = a + (c - a - b) / 2.0, b + (c - a - b) / 2.0
        c = min(c, a + b)
    return a, b, c


def physical_inertias(description: Description) -> Description:
    """The description with inertias that simulators accept, as far as the dynamics stay the same.

    Fixed links that MuJoCo would refuse are merged into their carriers. Links that turn about one
    direction get suitable moments about the others. Links on hinges are lent what they lack by
    their carriers, the outermost links first, unless too little would remain to the carrier, which
    may borrow in turn.
    """
    moved_by = {joint.child: joint for joint in description.joints}
    inertials = _joined(description, moved_by)
    directions = _directions(description, moved_by)
    for name, axis in reversed(directions.items()):
        joint, inertial = moved_by.get(name), inertials[name]
        if joint is None or inertial is None or _is_accepted(inertial):
            continue
        if axis is not None:
            inertials[name] = inertial = _round_about(inertial, axis, directions, joint)
            if _is_accepted(inertial):
                continue
        loan = _needed(inertial, joint) if joint.type in ("revolute", "continuous") else None
        if loan is None:
            continue
        lenders = _lenders(joint, loan, moved_by, inertials, directions)
        if lenders is not None:
            inertials |= lenders
            inertials[name] = _with(inertial, loan)
    links = tuple(replace(link, inertial=inertials[link.name]) for link in description.links)
    return replace(description, links=links)


def _is_accepted(inertial: Inertial, *, moves: bool = True) -> bool:
    """True if MuJoCo accepts the inertia of a body that ``moves``, or of a fixed one, unchanged."""
    moments = principal(inertial)[0]
    weighs = inertial.mass > _TOO_LITTLE if moves else inertial.mass >= NEARLY_NOTHING
    return weighs and of_a_body(moments, moves=moves) == moments


def _joined(description: Description, moved_by: Mapping[str, Joint]) -> dict[str, Inertial | None]:
    """The inertias of all links, with those of fixed links merged where needed."""
    inertials = {
        link.name: each if (each := link.inertial) and (each.mass or any(each.inertia)) else None
        for link in description.links
    }
    fixed: dict[str, list[tuple[str, Pose]]] = {}  # moving link → links fixed to it
    for link in description.links:
        name, pose = link.name, Pose()
        while (joint := moved_by.get(name)) is not None and joint.type == "fixed":
            name, pose = joint.parent, compose(joint.origin, pose)
        inertial = inertials[link.name]
        if inertial is None or (name == link.name and name in moved_by):
            continue
        if name in moved_by:
            fixed.setdefault(name, []).append((link.name, pose))
        elif not _is_accepted(inertial, moves=False):
            inertials[link.name] = None  # it is at rest, so its inertia has no effect
    for head, parts in fixed.items():
        odd: list[_Part] = []
        rest: list[_Part] = []
        for name, pose in parts:
            inertial = inertials[name]
            assert inertial is not None
            (rest if _is_accepted(inertial, moves=False) else odd).append((name, inertial, pose))
        joined_inertial = _sum(inertials[head], odd)
        joined = odd
        if joined_inertial is not None and not _is_accepted(joined_inertial):
            whole = _sum(joined_inertial, rest)
            if whole is not None and _is_accepted(whole):
                joined_inertial, joined = whole, [*odd, *rest]
        inertials[head] = joined_inertial
        inertials.update((name, None) for name, _, _ in joined)
    return inertials


def _sum(carrier: Inertial | None, parts: Iterable[_Part]) -> Inertial | None:
    """The inertia of a link with the inertias of links fixed to it, each at its pose."""
    for _, part, pose in parts:
        whole = placed(part, pose)
        whole = whole if carrier is None else whole + placed(carrier, AT_ORIGIN)
        carrier = inertial_of(whole, part.source)
    return carrier


def _directions(
    description: Description, moved_by: Mapping[str, Joint]
) -> dict[str, _Matrix | None]:
    """The only direction about which each link turns, in its axes; zero if it never turns.

    None for links that turn about more than one direction.
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
    return axis if np.linalg.norm(np.cross(axis, back)) <= NOTHING else None


def _round_about(
    inertial: Inertial, axis: _Matrix, directions: Mapping[str, _Matrix | None], joint: Joint
) -> Inertial:
    """An inertia with the same moment about an axis, and suitable moments about other directions.

    A zero mass becomes :data:`NEARLY_NOTHING` if it lies at rest on a fixed axis.
    """
    centre, mass, inertia = np.array(inertial.origin.xyz), inertial.mass, _in_link(inertial)
    moment = float(axis @ inertia @ axis) if axis.any() else NEARLY_NOTHING
    turns = np.outer(axis, axis) if axis.any() else np.eye(3) / 3.0
    transverse = 0.5 * moment * (1.0 + _SLACK)
    adjusted = moment * turns + transverse * (np.eye(3) - turns)
    above = directions[joint.parent]
    rests = above is not None and not above.any() and joint.type in ("revolute", "continuous")
    if mass <= _TOO_LITTLE and rests:
        mass, centre = NEARLY_NOTHING, np.zeros(3)
    return _inertial(inertial, mass, centre, adjusted)


@dataclass(frozen=True, slots=True)
class _Loan:
    """A thin rod along a hinge's axis, which moves equally as a part of the link or of its carrier.

    ``mass`` [kg] is at ``point`` on the axis; ``moment`` [kg m²] is about any direction across the
    ``axis``, about the link's centre of mass.
    """

    mass: float
    point: _Matrix
    moment: float
    axis: _Matrix


def _needed(inertial: Inertial, joint: Joint) -> _Loan | None:
    """The rod that a link on a hinge lacks; None if it lacks nothing, or no rod helps.

    A body's inertia I has second moments of mass ½ tr(I) 1 - I that are positive semidefinite. The
    rod adds to the entry along the axis. With the blocks [s bᵀ; b B] along and across it, B must
    be positive definite, and s at least bᵀ B⁻¹ b.
    """
    axis = np.array(joint.axis) / math.hypot(*joint.axis)
    inertia = _in_link(inertial)
    size = float(np.trace(inertia))
    seconds = size / 2.0 * np.eye(3) - inertia
    across = np.linalg.svd(axis[np.newaxis])[2][1:].T
    b, (values, vectors) = across.T @ seconds @ axis, np.linalg.eigh(across.T @ seconds @ across)
    b = vectors.T @ b
    if size <= _TOO_LITTLE or values[0] < -NOTHING * size:
        return None
    flat = values <= NOTHING * size
    if np.max(np.abs(b[flat]), initial=0.0) > NOTHING * size:
        return None
    least = float(np.sum(b[~flat] ** 2 / values[~flat])) + _SLACK * size
    moment = max(0.0, least - float(axis @ seconds @ axis))
    mass = NEARLY_NOTHING - inertial.mass if inertial.mass <= _TOO_LITTLE else 0.0
    if not (mass or moment):
        return None
    return _Loan(mass, float(axis @ np.array(inertial.origin.xyz)) * axis, moment, axis)


def _with(inertial: Inertial, loan: _Loan) -> Inertial:
    """A link's inertia with the rod added; its mass is added only to a massless link."""
    inertia = _in_link(inertial) + loan.moment * _across(loan.axis)
    centre = loan.point if loan.mass else np.array(inertial.origin.xyz)
    return _inertial(inertial, inertial.mass + loan.mass, centre, inertia)


def _carrier(
    joint: Joint, moved_by: Mapping[str, Joint], inertials: Mapping[str, Inertial | None]
) -> tuple[str | None, Pose]:
    """The link with a mass to which the joint's parent is fixed, and the joint's pose in it.

    None if that is the world, whose mass has no effect.
    """
    name, pose = joint.parent, joint.origin
    massive: tuple[str, Pose] | None = None
    while True:
        here = inertials[name]
        if massive is None and here is not None and here.mass > 0.0:
            massive = name, pose
        if (above := moved_by.get(name)) is None:
            return None, pose
        if above.type != "fixed":
            return massive or (name, pose)
        name, pose = above.parent, compose(above.origin, pose)


def _lenders(
    joint: Joint,
    loan: _Loan,
    moved_by: Mapping[str, Joint],
    inertials: Mapping[str, Inertial | None],
    directions: Mapping[str, _Matrix | None],
) -> dict[str, Inertial] | None:
    """The inertias of the links that lend the rod to a joint's child; None if these are too light.

    A carrier that is left with too little gets suitable moments if it turns about one direction;
    else it borrows in turn along its own hinge, if that is parallel.
    """
    carrier, pose = _carrier(joint, moved_by, inertials)
    if carrier is None:
        return {}
    whole = inertials[carrier]
    if whole is None or whole.mass <= loan.mass:
        return None
    rest = _without(whole, loan, pose)
    if _is_accepted(rest) or not _is_accepted(whole):
        return {carrier: rest}
    above, axis = moved_by.get(carrier), directions[carrier]
    if above is not None and axis is not None:
        rest = _round_about(rest, axis, directions, above)
        if _is_accepted(rest):
            return {carrier: rest}
    more = _needed(rest, above) if above and above.type in ("revolute", "continuous") else None
    if above is None or more is None:
        return None
    others = _lenders(above, more, moved_by, inertials, directions)
    return None if others is None else {carrier: _with(rest, more), **others}


def _without(carrier: Inertial, loan: _Loan, pose: Pose) -> Inertial:
    """The carrier's inertia less the rod."""
    turn = np.array(pose.rotation)
    direction = turn @ loan.axis
    point = turn @ loan.point + np.array(pose.xyz)
    centre = np.array(carrier.origin.xyz)
    inertia = _in_link(carrier) - loan.moment * _across(direction)
    remaining_mass = carrier.mass - loan.mass
    if loan.mass:
        apart = point - centre
        reduced = loan.mass * carrier.mass / remaining_mass  # about the new centre
        inertia -= reduced * (apart @ apart * np.eye(3) - np.outer(apart, apart))
        centre = centre - loan.mass / remaining_mass * apart
    return _inertial(carrier, remaining_mass, centre, inertia)


def _in_link(inertial: Inertial) -> _Matrix:
    """The inertia matrix about the centre of mass, in the link's axes."""
    rotation = np.array(inertial.origin.rotation)
    return np.asarray(rotation @ symmetric(*inertial.inertia) @ rotation.T)


def _across(axis: _Matrix) -> _Matrix:
    """The projection onto the plane across an axis of length 1."""
    return np.eye(3) - np.outer(axis, axis)


def _inertial(like: Inertial, mass: float, centre: _Matrix, inertia: _Matrix) -> Inertial:
    """An inertia from its matrix, in the axes of its link."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia.tolist()
    x, y, z = centre.tolist()
    return replace(like, mass=mass, inertia=(xx, xy, xz, yy, yz, zz), origin=Pose((x, y, z)))
