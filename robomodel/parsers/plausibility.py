"""Masses and limits that no real body and no real joint has, whatever format they came from.

All of it can be computed with, so it is only warned of, each kind once for a whole description.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from robomodel.description import Description, Inertial, Joint, LinkCoupling, Vec3
from robomodel.errors import DescriptionError, Doubt, Source, suspect_all
from robomodel.spatial import cross, symmetric

_EXCESS = 4 / 3  # published robots break the triangle inequality by up to a quarter
_NOTHING = 1e-6  # of the largest moment: what is written for zero
_LARGEST = 1e50
_POINT = 1e-12  # m²: a body within a micrometre, whose moments are what rounding left of zero


def check_plausible(description: Description, *, strict: bool = False) -> None:
    """Warn of inertias that no body has, of masses at odds with them, and of locked joints.

    Refused are numbers that arithmetic cannot be done with: their squares are infinite.
    """
    for source, numbers in _sizes(description):
        wrong = [x for x in numbers if not -_LARGEST <= x <= _LARGEST]  # or no number at all
        if wrong:
            raise DescriptionError(
                f"comes to a size, mass, inertia or ratio of {wrong[0]:g}, more than any robot "
                f"has; write numbers below {_LARGEST:g}",
                source,
            )
    found = (_doubt_moments(link.inertial) for link in description.links if link.inertial)
    doubts = [doubt for doubt in found if doubt]
    doubts += _doubt_masses(description)
    for joint in description.joints:
        if joint.limits.lower == joint.limits.upper == 0.0 and joint.type != "fixed":
            doubts.append(
                Doubt(
                    "both limits are 0, but limits lock nothing here; make the joint fixed if it "
                    "shall not move, and leave the limits out (or write inf) if it may",
                    joint.source,
                )
            )
    suspect_all(doubts, strict=strict)


def _sizes(description: Description) -> Iterator[tuple[Source, tuple[float, ...]]]:
    """The numbers of every element that are multiplied with each other; limits are not."""
    for link in description.links:
        if (own := link.inertial) is not None:
            yield own.source, (own.mass, *own.inertia, *own.origin.xyz)
    for joint in description.joints:
        at = joint.initial or 0.0
        yield joint.source, (*joint.origin.xyz, *joint.axis, joint.pitch, joint.armature, at)
        if joint.mimic is not None:
            yield joint.source, (joint.mimic.multiplier, joint.mimic.offset)
    for loop in description.loops:
        ends = (*loop.predecessor.origin.xyz, *loop.successor.origin.xyz)
        yield loop.source, (*ends, *loop.axis, *(loop.axis2 or ()), loop.length or 0.0)
    for coupling in description.couplings:
        if isinstance(coupling, LinkCoupling):
            yield coupling.source, (coupling.ratio, coupling.offset)
        else:
            yield coupling.source, (coupling.offset, *(k for _, k in coupling.terms))


def _doubt_moments(inertial: Inertial) -> Doubt | None:
    """What is odd about an inertia.

    The second moments of mass, S = ½ tr(I) 1 − I, are a positive semidefinite matrix. That says
    that the principal moments a ≤ b ≤ c keep the triangle inequality c ≤ a + b, and that none is
    negative. A tensor with a single moment is taken as meant: it is how files state the inertia of
    what turns about one axis only, a rotor or a link of a planar mechanism.
    """
    xx, xy, xz, yy, yz, zz = inertial.inertia
    half = 0.5 * (xx + yy + zz)
    x, y, z = half - xx, half - yy, half - zz
    minor = x * y - xy * xy
    rest = x * yz * yz + y * xz * xz + 2.0 * xy * yz * xz
    if x > 0.0 and minor > 0.0 and z * minor > rest:  # Sylvester: the usual case is settled
        return None
    if not any(inertial.inertia):
        return None
    a, b, c = np.linalg.eigvalsh(symmetric(*inertial.inertia)).tolist()
    shown = f"the principal moments of inertia, {a:.3g}, {b:.3g} and {c:.3g} kg m²,"
    nothing = max(_NOTHING * max(abs(a), c), _POINT * inertial.mass)
    if a < -nothing:
        message = f"{shown} are not all positive, as those of a body are"
        return Doubt(message, inertial.source, "negative")
    if b > nothing and c > _EXCESS * (a + b):
        message = f"{shown} are those of no body: each is at most the others' sum"
        return Doubt(message, inertial.source, "triangle")
    return None


def _doubt_masses(description: Description) -> list[Doubt]:
    """Moments of inertia without a mass, and masses without them where the motion needs them.

    What gears, loops and mimic tie to others is left to the model: a rotor's mass is often counted
    in the link that carries it, and a point on its axis may move what does resist.
    """
    doubts = []
    parents = {joint.parent for joint in description.joints}
    moved_by = {joint.child: joint for joint in description.joints}
    tied = _tied(description)
    for link in description.links:
        inertial, joint = link.inertial, moved_by.get(link.name)
        if inertial is None or link.name in tied or (joint and joint.name in tied):
            continue
        if not _moves(link.name, moved_by):
            continue
        if not inertial.mass:
            if sum(map(bool, inertial.inertia)) > 1:
                doubts.append(
                    Doubt("has moments of inertia but no mass; give it its mass", inertial.source)
                )
        elif (
            joint
            and link.name not in parents
            and not any(inertial.inertia)
            and _on_axis(joint, inertial.origin.xyz)
        ):
            doubts.append(
                Doubt(
                    "is a point mass on the axis of its joint, which nothing then resists: the "
                    "mass matrix is singular; give it its moments of inertia",
                    link.source,
                )
            )
    return doubts


def _moves(link: str, moved_by: Mapping[str, Joint]) -> bool:
    """Whether a joint moves a link; the root and what is fixed to it may say what they like."""
    while joint := moved_by.get(link):
        if joint.type != "fixed":
            return True
        link = joint.parent
    return False


def _tied(description: Description) -> set[str]:
    """Links and joints (names of either) to which more is tied than the tree says."""
    tied = {joint.name for joint in description.joints if joint.mimic or joint.armature}
    for coupling in description.couplings:
        if isinstance(coupling, LinkCoupling):
            tied |= {coupling.predecessor, coupling.successor}
        else:
            tied.update(name for name, _ in coupling.terms)
    for loop in description.loops:
        tied |= {loop.predecessor.link, loop.successor.link}
    return tied


def _on_axis(joint: Joint, point: Vec3) -> bool:
    """Whether a point of the child rests however the joint turns."""
    if joint.type not in ("revolute", "continuous"):
        return joint.type in ("spherical", "floating")
    return math.hypot(*cross(joint.axis, point)) <= 1e-9 * math.hypot(*joint.axis)
