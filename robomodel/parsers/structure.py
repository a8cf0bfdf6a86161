"""Checks of a description's names and tree, whatever format it came from. No mechanics here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from robomodel.description import (
    ONE_DOF,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    Link,
    LinkCoupling,
    Loop,
    Mimic,
    Spring,
)
from robomodel.errors import (
    DescriptionError,
    Doubt,
    Source,
    did_you_mean,
    few,
    suspect,
    suspect_all,
)
from robomodel.transmissions import KINDS, kind_of

_Named = TypeVar("_Named", Link, Joint, Loop, LinkCoupling | JointCoupling, Spring | JointSpring)


def check_structure(description: Description, *, strict: bool = False) -> None:
    """Refuse a description whose names or tree make no sense, whatever format it came from."""
    links = by_name(description.links, "link")
    if not links:
        raise DescriptionError(
            'the robot has no links; it needs at least one <link name="..."/>', description.source
        )
    joints = by_name(description.joints, "joint")
    by_name(description.loops, "loop")
    by_name(description.couplings, "coupling")
    by_name(description.springs, "spring")
    _check_tree(description, links)
    for joint in description.joints:
        if joint.mimic is not None:
            _check_mimic(joint, joint.mimic, joints)
        if joint.initial is not None:
            _check_initial(joint, joint.initial, strict)
    for loop in description.loops:
        ends = loop.predecessor.link, loop.successor.link
        _check_ends(*ends, links, "a loop joins two links", loop.source)
    for coupling in description.couplings:
        if isinstance(coupling, LinkCoupling):
            ends = coupling.predecessor, coupling.successor
            _check_ends(*ends, links, "a coupling is between two links", coupling.source)
            _check_ratio(coupling)
        else:
            _check_terms(coupling, joints, "coupled")
    for spring in description.springs:
        if isinstance(spring, Spring):
            ends = spring.predecessor.link, spring.successor.link
            _check_ends(*ends, links, "a spring joins two links", spring.source)
        else:
            _check_terms(spring, joints, "sprung")
    doubts = [
        Doubt(
            f"the joint '{end.name}' is not in the robot{did_you_mean(end.name, joints)}",
            transmission.source,
            "transmission of no joint",
        )
        for transmission in description.transmissions
        for end in transmission.joints
        if end.name not in joints
    ]
    doubts += [
        Doubt(
            f"a {kind} has {count} of <joint> and <actuator> each, not {len(each.joints)} and "
            f"{len(each.actuators)}",
            each.source,
        )
        for each in description.transmissions
        if (count := KINDS.get(kind := kind_of(each))) is not None
        and each.actuators
        and not any(actuator.rotor for actuator in each.actuators)  # refused where it becomes one
        and not len(each.joints) == len(each.actuators) == count
    ]
    suspect_all(doubts, strict=strict)


def by_name(things: Iterable[_Named], kind: str) -> dict[str, _Named]:
    """Links, joints or the like by name; refuses a name that is given twice."""
    found: dict[str, _Named] = {}
    for thing in things:
        first = found.setdefault(thing.name, thing)
        if first is not thing:
            raise DescriptionError(
                f"another {kind} has this name already{beside(first.source)}; rename one of them",
                thing.source,
            )
    return found


def beside(source: Source) -> str:
    """Where another element stands, within a message."""
    return "" if source.line is None else f" ({source.file}:{source.line})"


def look_up(name: str, known: Mapping[str, Any], what: str, source: Source) -> None:
    """Refuse a name that is not known, of ``what`` as in "the parent link"."""
    if name not in known:
        raise DescriptionError(
            f"{what} '{name}' is not in the robot{did_you_mean(name, known)}", source
        )


def _check_tree(description: Description, links: dict[str, Link]) -> None:
    """Every link but one hangs on exactly one joint, and all hang together."""
    above: dict[str, Joint] = {}
    for joint in description.joints:
        look_up(joint.parent, links, "the parent link", joint.source)
        look_up(joint.child, links, "the child link", joint.source)
        if joint.parent == joint.child:
            raise DescriptionError(
                f"its parent and its child are the same link '{joint.child}'", joint.source
            )
        other = above.setdefault(joint.child, joint)
        if other is not joint:
            raise DescriptionError(
                f"the link '{joint.child}' is already the child of joint '{other.name}'"
                f"{beside(other.source)}; a link hangs on one joint, so write this one as a <loop>",
                joint.source,
            )
    _check_cycles(description.links, above)
    roots = [link for link in description.links if link.name not in above]
    if len(roots) > 1:
        carriers = {joint.parent for joint in description.joints}
        alone = [link.name for link in roots[1:] if link.name not in carriers]
        hint = did_you_mean(alone[0], above) if alone else ""
        raise DescriptionError(
            f"the robot has {len(roots)} roots, links that are no joint's child: "
            f"{few([link.name for link in roots], 6)}; a robot has one, so connect the others by "
            f"joints (of type fixed or floating, say){hint}",
            roots[1].source,
        )


def _check_cycles(links: Iterable[Link], above: dict[str, Joint]) -> None:
    """Refuse joints that lead round in a circle; walks up from each link, over nothing twice."""
    settled: set[str] = set()
    for link in links:
        path: dict[str, Joint] = {}
        name = link.name
        while name not in settled and name not in path and name in above:
            path[name] = above[name]
            name = above[name].parent
        if name in path:
            circle = list(path.values())[list(path).index(name) :][::-1]
            raise DescriptionError(
                f"the joints {few([joint.name for joint in circle], 6)} lead round in a circle; "
                "turn one of them into a <loop>",
                circle[0].source,
            )
        settled.update(path)


def _check_mimic(joint: Joint, mimic: Mimic, joints: dict[str, Joint]) -> None:
    look_up(mimic.joint, joints, "the mimicked joint", joint.source)
    leader = joints[mimic.joint]
    if leader is joint:
        raise DescriptionError("the joint mimics itself", joint.source)
    if joint.type not in ONE_DOF:
        raise DescriptionError(
            f"a {joint.type} joint cannot mimic another; only joints of one degree of freedom can",
            joint.source,
        )
    if leader.type not in ONE_DOF:
        raise DescriptionError(
            f"the mimicked joint '{leader.name}' is {leader.type}; only joints of one degree of "
            "freedom can be mimicked",
            joint.source,
        )


def _check_initial(joint: Joint, initial: float, strict: bool) -> None:
    if not joint.limits.lower <= initial <= joint.limits.upper:
        suspect(
            f"the initial position {initial:g} lies outside the limits "
            f"[{joint.limits.lower:g}, {joint.limits.upper:g}]",
            joint.source,
            strict=strict,
        )


def _check_ends(
    predecessor: str, successor: str, links: dict[str, Link], rule: str, source: Source
) -> None:
    look_up(predecessor, links, "the predecessor link", source)
    look_up(successor, links, "the successor link", source)
    if predecessor == successor:
        raise DescriptionError(
            f"the predecessor and the successor are the same link '{successor}'; {rule}", source
        )


def _check_ratio(coupling: LinkCoupling) -> None:
    if coupling.ratio == 0.0:
        raise DescriptionError(
            f"the ratio is zero, so that the link '{coupling.successor}' would not turn at all; "
            "1 is a direct drive, and a joint of type fixed holds a link",
            coupling.source,
        )


def _check_terms(tie: JointCoupling | JointSpring, joints: dict[str, Joint], done: str) -> None:
    named: set[str] = set()
    for name, _ in tie.terms:
        look_up(name, joints, "the joint", tie.source)
        if joints[name].type not in ONE_DOF:
            raise DescriptionError(
                f"the joint '{name}' is {joints[name].type}; only joints of one degree of freedom "
                f"can be {done}",
                tie.source,
            )
        if name in named:
            raise DescriptionError(
                f"the joint '{name}' is named twice; add its ratios up", tie.source
            )
        named.add(name)
    if not any(ratio for _, ratio in tie.terms):
        raise DescriptionError(f"every ratio is zero, so nothing is {done}", tie.source)
