"""Transmissions: from what readers found on joints and actuators to rotor bodies and couplings.

A rotor is given by a moment of inertia and a ratio, with neither pose nor axis. It is taken to turn
about the axis of the joint that it drives, in a bearing on that joint's parent, and becomes a link,
a joint and a coupling of one name. Description in, description out: any format's reader may use it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from robomodel.description import (
    ONE_DOF,
    Actuator,
    Description,
    Inertial,
    Joint,
    JointCoupling,
    Link,
    LinkCoupling,
    Rotor,
    Transmission,
    TransmittedJoint,
)
from robomodel.errors import DescriptionError, Source, did_you_mean, suspect

SIMPLE = "SimpleTransmission"
DIFFERENTIAL = "DifferentialTransmission"
HALF_DIFFERENTIAL = "HalfDifferentialTransmission"
FOUR_BAR_LINKAGE = "FourBarLinkageTransmission"
KINDS = {SIMPLE: 1, DIFFERENTIAL: 2, HALF_DIFFERENTIAL: 2, FOUR_BAR_LINKAGE: 2}
"""The types known, and how many joints and actuators each has."""


def kind_of(transmission: Transmission) -> str:
    """The type without its namespace; one joint and one actuator without a type are simple."""
    kind = transmission.type.replace("::", "/").rpartition("/")[2]
    alone = len(transmission.joints) == len(transmission.actuators) == 1
    return SIMPLE if not kind and alone else kind


def actuator_rows(kind: str, n: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """How far the actuators turn, before their own reductions, as the joints do: a row for each.

    With joint positions q, offsets o, reductions n of the joints and N of the actuators, each
    actuator's position is x = N · Σ row · (q − o), where

    - simple: x = N n (q − o);
    - differential: x₁ = N₁ (n₁ (q₁ − o₁) + n₂ (q₂ − o₂)), x₂ = N₂ (n₁ (q₁ − o₁) − n₂ (q₂ − o₂));
    - half differential: x₁ = N₁ n₁ (q₁ − o₁), x₂ = N₂ (n₁ (q₁ − o₁) + n₂ (q₂ − o₂));
    - four-bar linkage: x₁ = N₁ n₁ (q₁ − o₁), x₂ = N₂ ((q₁ − o₁) + n₂ (q₂ − o₂)).

    Sources: ``simple_``, ``differential_`` and ``four_bar_linkage_transmission.h`` of ros_control's
    ``transmission_interface`` (ros2_control's are the same), whose simple loader reads the
    reduction of the actuator, ros2_control's that of the joint, so that the product serves both;
    ``half_differential_transmission.hpp`` of PAL Robotics' ``pal_transmissions``, its velocities
    (the positions there leave the offset of the first joint out of one direction).
    """
    if kind == DIFFERENTIAL:
        return (n[0], n[1]), (n[0], -n[1])
    if kind == HALF_DIFFERENTIAL:
        return (n[0], 0.0), (n[0], n[1])
    if kind == FOUR_BAR_LINKAGE:
        return (n[0], 0.0), (1.0, n[1])
    return ((n[0],),)


# --- rotors become bodies -------------------------------------------------------------------------


def with_rotors(description: Description, *, strict: bool = False) -> Description:
    """The description with its rotors as links, joints and couplings, and no longer as rotors.

    Every name must mean something, as :func:`robomodel.parsers.structure.check_structure` sees to.
    """
    if not any(joint.rotor for joint in description.joints) and not any(
        actuator.rotor for each in description.transmissions for actuator in each.actuators
    ):
        return description
    joints = {joint.name: joint for joint in description.joints}
    added = [_of_joint(joint, description) for joint in description.joints if joint.rotor]
    for transmission in description.transmissions:
        if any(actuator.rotor for actuator in transmission.actuators):
            added += _of_transmission(transmission, joints, strict)
    _check_names(added, description)
    _check_twice(added, joints, strict)
    return replace(
        description,
        links=(*description.links, *(each.link for each in added)),
        joints=(
            *(replace(joint, rotor=None) for joint in description.joints),
            *(each.joint for each in added),
        ),
        couplings=(*description.couplings, *(each.coupling for each in added)),
        transmissions=tuple(
            replace(each, actuators=tuple(replace(a, rotor=None) for a in each.actuators))
            for each in description.transmissions
        ),
    )


@dataclass(frozen=True, slots=True)
class _Body:
    """A rotor as a link, the joint on which it turns, and what ties it to the joints it drives."""

    link: Link
    joint: Joint
    coupling: LinkCoupling | JointCoupling
    drives: tuple[str, ...]


def _of_joint(joint: Joint, description: Description) -> _Body:
    """The rotor that a joint has itself; a simple transmission of the joint may give its ratio."""
    rotor = joint.rotor
    assert rotor is not None
    _one_dof(joint, rotor.source)
    ratio, offset = rotor.ratio, 0.0
    for each in description.transmissions:
        if kind_of(each) == SIMPLE and [end.name for end in each.joints] == [joint.name]:
            offset = each.joints[0].offset
            ratio = ratio or _whole(each.joints[0], each.actuators)
    if ratio is None:
        raise DescriptionError(
            'needs ratio="...", how far it turns for one turn of the joint (1 for a direct drive), '
            "as no transmission says a reduction",
            rotor.source,
        )
    return _coupled(rotor, joint.name, joint, joint, ratio, offset)


def _whole(joint: TransmittedJoint, actuators: Iterable[Actuator]) -> float | None:
    """The reduction of a simple transmission, if either end says one."""
    reductions = [joint.reduction, *(actuator.reduction for actuator in actuators)]
    said = [reduction for reduction in reductions if reduction is not None]
    return math.prod(said) if said else None


def _of_transmission(
    transmission: Transmission, joints: Mapping[str, Joint], strict: bool
) -> list[_Body]:
    """The rotors of a transmission's actuators."""
    kind, source = kind_of(transmission), transmission.source
    if kind not in KINDS:
        known = ", ".join(KINDS)
        suspect(
            f"the rotor inertias of a transmission of type '{transmission.type}' are ignored"
            f"{did_you_mean(kind, KINDS)}; known: {known}",
            source,
            strict=strict,
        )
        return []
    ends = _in_order(transmission.joints, "joint", KINDS[kind], transmission)
    actuators = _in_order(transmission.actuators, "actuator", KINDS[kind], transmission)
    for end in ends:
        if end.name not in joints:
            raise DescriptionError(
                f"the joint '{end.name}' is not in the robot{did_you_mean(end.name, joints)}",
                source,
            )
        _one_dof(joints[end.name], source)
    driven = [joints[end.name] for end in ends]
    base = driven[1] if len(driven) == 2 and _above(driven[1], driven[0], joints) else driven[0]
    rows = actuator_rows(kind, tuple(_said(end.reduction) for end in ends))
    added = []
    for actuator, row in zip(actuators, rows, strict=True):
        if (rotor := actuator.rotor) is None:
            continue
        name = actuator.name or ends[0].name
        if kind == SIMPLE:
            ratio = rotor.ratio or _said(_whole(ends[0], [actuator]))
            added.append(_coupled(rotor, name, base, driven[0], ratio, ends[0].offset))
        else:
            scale = rotor.ratio or _said(actuator.reduction)
            terms = {
                end.name: scale * factor for end, factor in zip(ends, row, strict=True) if factor
            }
            shift = sum(terms.get(end.name, 0.0) * end.offset for end in ends)
            added.append(_combined(rotor, name, base, terms, shift))
    return added


def _said(reduction: float | None) -> float:
    return 1.0 if reduction is None else reduction


def _in_order(ends: tuple[Any, ...], what: str, count: int, transmission: Transmission) -> Any:
    """The joints or actuators by their roles, ``joint1`` and ``joint2``; without roles as they are.

    A simple transmission needs none.
    """
    if len(ends) != count:
        raise DescriptionError(
            f"a {kind_of(transmission)} with a rotor inertia needs {count} <{what}>, "
            f"got {len(ends)}",
            transmission.source,
        )
    roles = {end.role: end for end in ends}
    wanted = [f"{what}{i}" for i in range(1, count + 1)]
    if count == 1 or roles.keys() == {""}:
        return ends
    if roles.keys() != set(wanted):
        raise DescriptionError(
            f"the roles of its {what}s must be {' and '.join(wanted)}, "
            f"got {' and '.join(repr(end.role) for end in ends)}",
            transmission.source,
        )
    return tuple(roles[role] for role in wanted)


def _above(upper: Joint, lower: Joint, joints: Mapping[str, Joint]) -> bool:
    """Whether the first joint lies between the second one and the root."""
    moved_by = {joint.child: joint for joint in joints.values()}
    link = lower.parent
    while link in moved_by:
        if moved_by[link] is upper:
            return True
        link = moved_by[link].parent
    return False


def _one_dof(joint: Joint, source: Source) -> None:
    if joint.type not in ONE_DOF:
        raise DescriptionError(
            f"the joint '{joint.name}' is {joint.type}, and a rotor drives a joint of one degree "
            "of freedom; leave the rotor out",
            source,
        )


def _body(rotor: Rotor, name: str, base: Joint) -> tuple[Link, Joint]:
    """A rotor's link and joint: on the parent of ``base``, about its axis."""
    size = math.hypot(*base.axis)
    x, y, z = (a / size for a in base.axis)
    t, d = rotor.transverse, rotor.inertia - rotor.transverse
    inertia = (t + d * x * x, d * x * y, d * x * z, t + d * y * y, d * y * z, t + d * z * z)
    link = Link(name, Inertial(rotor.mass, inertia, source=rotor.source), rotor.source)
    joint = Joint(
        name,
        "continuous",
        base.parent,
        name,
        base.origin,
        base.axis,
        independent=False,
        damping=rotor.damping,
        friction=rotor.friction,
        source=rotor.source,
    )
    return link, joint


def _coupled(
    rotor: Rotor, name: str, base: Joint, driven: Joint, ratio: float, offset: float
) -> _Body:
    """A rotor geared to one joint: x = ratio (q − offset)."""
    name = f"{name}_rotor"
    link, joint = _body(rotor, name, base)
    shift = -ratio * offset if offset else 0.0
    gear = LinkCoupling(name, driven.child, name, ratio, shift, rotor.source)
    return _Body(link, joint, gear, (driven.name,))


def _combined(
    rotor: Rotor, name: str, base: Joint, terms: Mapping[str, float], shift: float
) -> _Body:
    """A rotor that several joints turn: x = Σ terms · q − shift."""
    name = f"{name}_rotor"
    link, joint = _body(rotor, name, base)
    coupling = JointCoupling(
        name,
        ((name, 1.0), *((joint, -factor) for joint, factor in terms.items())),
        -shift if shift else 0.0,
        rotor.source,
    )
    return _Body(link, joint, coupling, tuple(terms))


# --- checks ---------------------------------------------------------------------------------------


def _check_names(added: Iterable[_Body], description: Description) -> None:
    """Refuse rotors whose names are taken."""
    taken: dict[tuple[str, str], Source] = {}
    for kind, things in (
        ("link", description.links),
        ("joint", description.joints),
        ("coupling", description.couplings),
    ):
        for thing in things:
            taken[kind, thing.name] = thing.source
    for each in added:
        for kind in ("link", "joint", "coupling"):
            if (kind, each.link.name) in taken:
                other = taken[kind, each.link.name]
                at = "" if other.line is None else f" ({other.file}:{other.line})"
                raise DescriptionError(
                    f"the rotor would be called '{each.link.name}', as a {kind} is already{at}; "
                    f"rename that {kind}, or the actuator",
                    each.link.source,
                )
            taken[kind, each.link.name] = each.link.source


def _check_twice(added: Iterable[_Body], joints: Mapping[str, Joint], strict: bool) -> None:
    """Warn of joints whose motor may be counted twice, once as armature or in other words."""
    seen: dict[str, Source] = {}
    for each in added:
        if len(each.drives) > 1:
            continue
        (name,) = each.drives
        if name in seen:
            suspect(
                f"the joint '{name}' has another rotor already; both are counted",
                each.link.source,
                strict=strict,
            )
        elif joints[name].armature:
            suspect(
                f"the joint '{name}' has an armature and a rotor; both are counted",
                each.link.source,
                strict=strict,
            )
        seen[name] = each.link.source
