"""The parts of a robot that a simulator's behaviour is about, and the robot that it reads instead.

A concern names the elements of a description that a behaviour touches; a reading is the description
with what the simulator makes of them, from which the loss is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from robomodel.description import (
    ONE_DOF,
    CouplingElement,
    Description,
    Inertial,
    Joint,
    LinkCoupling,
    Mimic,
    PolynomialCoupling,
)
from robomodel.mechanism.graph import root_link
from robomodel.tolerances import SAME
from robomodel.vocabulary.inertias import carriers, heavy, principal
from robomodel.vocabulary.springs import held_points, sum_of

Concern: TypeAlias = Callable[[Description], tuple[str, ...]]
Reading: TypeAlias = Callable[[Description], Description]


def mimics(description: Description) -> tuple[str, ...]:
    """Joints that follow another joint by ``<mimic>``."""
    return tuple(each.name for each in description.joints if each.mimic)


def mixed(description: Description) -> tuple[str, ...]:
    """Joints that follow one of another kind: a slide a hinge, or a hinge a slide."""
    slides = {each.name: each.type == "prismatic" for each in description.joints}
    return tuple(
        each.name
        for each in description.joints
        if each.mimic and slides[each.name] != slides.get(each.mimic.joint, slides[each.name])
    )


def couplings(description: Description) -> tuple[str, ...]:
    """Couplings, among them gears of rotors."""
    return tuple(each.name for each in description.couplings)


def held(description: Description) -> tuple[str, ...]:
    """Couplings, mimics and loops."""
    return mimics(description) + couplings(description) + loops(description)


def sums(description: Description) -> tuple[str, ...]:
    """Couplings that are no constant ratio of two joints."""
    return tuple(each.name for each in description.couplings if pair_of(each, description) is None)


def pair_of(coupling: CouplingElement, description: Description) -> tuple[str, Mimic] | None:
    """The joint that follows, and how, where a coupling is a constant ratio of two joints."""
    if isinstance(coupling, LinkCoupling):
        ends = [_way(name, description) for name in (coupling.predecessor, coupling.successor)]
        shared = {joint.name for joint in ends[0]} & {joint.name for joint in ends[1]}
        sides = [[joint for joint in end if joint.name not in shared] for end in ends]
        moving = [[joint for joint in side if joint.type != "fixed"] for side in sides]
        if any(len(side) != 1 or side[0].type not in ONE_DOF for side in moving):
            return None
        leader, follower = moving[0][0].name, moving[1][0].name
        return follower, Mimic(leader, coupling.ratio, coupling.offset)
    if isinstance(coupling, PolynomialCoupling) and coupling.curved:
        return None
    if len(coupling.terms) != 2:
        return None
    (first, a), (second, b) = coupling.terms
    joints = {joint.name: joint for joint in description.joints}
    marks = joints[first].independent, joints[second].independent
    if marks[0] or (marks[0] == marks[1] and abs(b) < abs(a)):  # what turns faster follows
        (first, a), (second, b) = (second, b), (first, a)
    if not a or not b:
        return None
    return first, Mimic(second, -b / a, coupling.offset / a)


def _way(link: str, description: Description) -> list[Joint]:
    """The joints from the root to a link."""
    by_child = {joint.child: joint for joint in description.joints}
    way = list[Joint]()
    while link in by_child:
        way.append(by_child[link])
        link = by_child[link].parent
    return way


def curves(description: Description) -> tuple[str, ...]:
    """Couplings that are no sum of joints."""
    return tuple(each.name for each in description.couplings if sum_of(each, description) is None)


def loops(description: Description) -> tuple[str, ...]:
    """Loops."""
    return tuple(each.name for each in description.loops)


def unpinned(description: Description) -> tuple[str, ...]:
    """Loops that points that meet do not close."""
    return tuple(each.name for each in description.loops if not held_points(each))


def armatures(description: Description) -> tuple[str, ...]:
    """Joints with armature."""
    return tuple(each.name for each in description.joints if each.armature)


def bare(description: Description) -> tuple[str, ...]:
    """Joints of one freedom without armature."""
    return tuple(
        each.name for each in description.joints if each.type in ONE_DOF and not each.armature
    )


def damped(description: Description) -> tuple[str, ...]:
    """Joints with damping."""
    return tuple(each.name for each in description.joints if each.damping)


def rubbing(description: Description) -> tuple[str, ...]:
    """Joints with dry friction."""
    return tuple(each.name for each in description.joints if each.friction)


def sprung(description: Description) -> tuple[str, ...]:
    """Joints with a spring."""
    return tuple(each.name for each in description.joints if each.stiffness)


def signs(description: Description) -> tuple[str, ...]:
    """Joints whose names are no words."""
    return tuple(each.name for each in description.joints if plain_name(each.name) != each.name)


def plain_name(name: str) -> str:
    """A name of letters, digits and underscores, as USD and Newton have it."""
    return "".join(c if c.isalnum() else "_" for c in name)


def references(description: Description) -> tuple[str, ...]:
    """Joints with a spring about another position than zero."""
    return tuple(each.name for each in description.joints if each.stiffness and each.reference)


def springs(description: Description) -> tuple[str, ...]:
    """Springs between points, and over joints."""
    return tuple(each.name for each in description.springs)


def unheld(description: Description) -> tuple[str, ...]:
    """Links without a mass that a joint moves and that carry nothing heavy."""
    held = carriers(description)
    moved = {joint.child for joint in description.joints if joint.type != "fixed"}
    return tuple(
        each.name for each in description.links
        if each.name in moved and each.name not in held and not heavy(each.inertial)
    )  # fmt: skip


def weightless(description: Description) -> tuple[str, ...]:
    """Links without ``<inertial>``, but for a root that is fixed."""
    root = root_link(description).name
    return tuple(
        each.name for each in description.links if each.inertial is None and each.name != root
    )


def jammed(description: Description) -> tuple[str, ...]:
    """Joints whose limits are equal."""
    return tuple(each.name for each in description.joints if each.limits.lower == each.limits.upper)


def balls(description: Description) -> tuple[str, ...]:
    """Joints of three freedoms of rotation."""
    return tuple(each.name for each in description.joints if each.type == "spherical")


def unphysical(description: Description) -> tuple[str, ...]:
    """Links with moments of inertia that no body has: one above the sum of the others."""
    return tuple(
        link.name for link in description.links
        if link.inertial and (moments := principal(link.inertial)[0])[2] > 0.0
        and moments[0] + moments[1] < moments[2] * (1.0 - SAME)
    )  # fmt: skip


def raised(inertial: Inertial) -> bool:
    """True if Newton raises its moments: the least below a millionth of the largest, or 1e-10."""
    least, _, largest = principal(inertial)[0]
    return inertial.mass > 0.0 and least < max(1e-6 * largest, 1e-10)


def flat(description: Description) -> tuple[str, ...]:
    """Links with a mass and a moment of inertia that is nearly zero."""
    return tuple(link.name for link in description.links if link.inertial and raised(link.inertial))


def idle(description: Description) -> tuple[str, ...]:
    """Joints with armature and an effort limit of zero."""
    return tuple(
        each.name for each in description.joints if each.armature and each.limits.effort == 0.0
    )


def rotors(description: Description) -> tuple[str, ...]:
    """Joints with fast rotors: followers with a ratio above one."""
    return tuple(
        each.name for each in description.joints if each.mimic and abs(each.mimic.multiplier) > 1.0
    )


def anything(description: Description) -> tuple[str, ...]:
    """The robot."""
    return (description.name,)


# --- readings ------------------------------------------------------------------------------------


def without_mimics(description: Description) -> Description:
    """All followers free."""
    return replace(
        description, joints=tuple(replace(each, mimic=None) for each in description.joints)
    )


def without_mixed(description: Description) -> Description:
    """Followers of another kind of joint free."""
    names = set(mixed(description))
    return replace(
        description,
        joints=tuple(
            replace(each, mimic=None) if each.name in names else each for each in description.joints
        ),
    )


def without_couplings(description: Description) -> Description:
    """All couplings but mimics left out."""
    return replace(description, couplings=())


def without_sums_of_joints(description: Description) -> Description:
    """Couplings that are no constant ratio of two joints left out."""
    names = set(sums(description))
    kept = tuple(each for each in description.couplings if each.name not in names)
    return replace(description, couplings=kept)


def without_curves(description: Description) -> Description:
    """Couplings that are no sum of joints left out."""
    names = set(curves(description))
    kept = tuple(each for each in description.couplings if each.name not in names)
    return replace(description, couplings=kept)


def without_unpinned(description: Description) -> Description:
    """Loops that points that meet do not close, open."""
    kept = tuple(each for each in description.loops if held_points(each))
    return replace(description, loops=kept)


def without_loops(description: Description) -> Description:
    """All loops open."""
    return replace(description, loops=())


def without_ties_and_loops(description: Description) -> Description:
    """Nothing holds joints to each other."""
    return without_loops(without_mimics(without_couplings(description)))


def without_armature(description: Description) -> Description:
    """All joints without armature."""
    return replace(
        description, joints=tuple(replace(each, armature=0.0) for each in description.joints)
    )


def with_armature(value: float) -> Reading:
    """A reading in which each joint of one freedom without armature has this one."""

    def read(description: Description) -> Description:
        names = set(bare(description))
        return replace(
            description,
            joints=tuple(
                replace(each, armature=value) if each.name in names else each
                for each in description.joints
            ),
        )

    return read


def without_damping(description: Description) -> Description:
    """All joints without damping."""
    return replace(
        description,
        joints=tuple(
            replace(each, damping=0.0, damping_reverse=None) for each in description.joints
        ),
    )


def without_joint_springs(description: Description) -> Description:
    """All joints without springs of their own."""
    return replace(
        description,
        joints=tuple(replace(each, stiffness=0.0, deadband=0.0) for each in description.joints),
    )


def without_springs(description: Description) -> Description:
    """Springs between points and over joints left out."""
    return replace(description, springs=())


def without_idle_armature(description: Description) -> Description:
    """Joints with an effort limit of zero without armature."""
    names = set(idle(description))
    return replace(
        description,
        joints=tuple(
            replace(each, armature=0.0) if each.name in names else each
            for each in description.joints
        ),
    )


def without_references(description: Description) -> Description:
    """Springs of joints about position zero."""
    return replace(
        description, joints=tuple(replace(each, reference=0.0) for each in description.joints)
    )


def with_raised_moments(description: Description) -> Description:
    """Nearly zero moments of links raised by 1e-6 kg m², and the others by as much."""

    def lifted(inertial: Inertial) -> Inertial:
        least, _, largest = principal(inertial)[0]
        more = max(1e-6 * largest, 1e-10) - least + 1e-6
        xx, xy, xz, yy, yz, zz = inertial.inertia
        return replace(inertial, inertia=(xx + more, xy, xz, yy + more, yz, zz + more))

    return replace(
        description,
        links=tuple(
            replace(link, inertial=lifted(link.inertial))
            if link.inertial and raised(link.inertial)
            else link
            for link in description.links
        ),
    )


def with_heavy_frames(description: Description) -> Description:
    """A mass of 1 kg and moments of 1 kg m² for each link that has no ``<inertial>``."""
    names = set(weightless(description))
    unit = Inertial(1.0, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    return replace(
        description,
        links=tuple(
            replace(each, inertial=unit) if each.name in names else each
            for each in description.links
        ),
    )


CONCERNS: Mapping[str, Concern] = {
    "mimics": mimics,
    "mimics of a hinge and a slide": mixed,
    "couplings": couplings,
    "couplings that are no ratio of two joints": sums,
    "couplings that are curves": curves,
    "couplings, mimics and loops": held,
    "loops": loops,
    "loops of rods and slides": unpinned,
    "armature": armatures,
    "joints without armature": bare,
    "damping": damped,
    "dry friction": rubbing,
    "springs of joints": sprung,
    "springs between points, over joints": springs,
    "moving links without mass": unheld,
    "links without <inertial>": weightless,
    "moments of nearly zero": flat,
    "equal limits": jammed,
    "balls": balls,
    "names with other signs than _": signs,
    "inertias that no body has": unphysical,
    "armature without effort": idle,
    "reference of springs": references,
    "fast rotors": rotors,
    "every robot": anything,
}
"""Subjects of behaviours: the name, and the elements of a description that it touches."""
