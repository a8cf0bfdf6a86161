"""Checks of a description, independent of its format: names and tree, masses and limits.

Wrong names and trees are refused. Masses and limits that no real body or joint has are warned of,
each kind once, since the dynamics can still be computed. No mechanics here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

import numpy as np

from robomodel.description import (
    ONE_DOF,
    CouplingElement,
    Description,
    Inertial,
    Joint,
    JointCoupling,
    JointSpring,
    Link,
    LinkCoupling,
    Loop,
    Mimic,
    PolynomialCoupling,
    Spring,
    Vec3,
)
from robomodel.description.poses import line, off_axis
from robomodel.description.transmissions import KINDS, kind_of
from robomodel.errors import (
    DescriptionError,
    Issue,
    Source,
    did_you_mean,
    few,
    warn_at,
    warn_of_all,
)
from robomodel.spatial import symmetric
from robomodel.tolerances import SAME, WRITTEN

_Named = TypeVar("_Named", Link, Joint, Loop, CouplingElement, Spring | JointSpring)


def check_structure(description: Description, *, strict: bool = False) -> None:
    """Raise :class:`DescriptionError` for names or trees that make no sense."""
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
        lower, upper = joint.limits.lower, joint.limits.upper
        if joint.initial is not None and not lower <= joint.initial <= upper:
            warn_at(
                f"the initial position {joint.initial:g} lies outside the limits "
                f"[{lower:g}, {upper:g}]",
                joint.source,
                strict=strict,
            )
    for loop in description.loops:
        ends = loop.predecessor.link, loop.successor.link
        _check_ends(*ends, links, "a loop joins two links", loop.source)
    for coupling in description.couplings:
        if isinstance(coupling, LinkCoupling):
            ends = coupling.predecessor, coupling.successor
            _check_ends(*ends, links, "a coupling is between two links", coupling.source)
            if coupling.ratio == 0.0:
                raise DescriptionError(
                    f"the ratio is zero, so that the link '{coupling.successor}' would not turn at "
                    "all; 1 is a direct drive, and a joint of type fixed holds a link",
                    coupling.source,
                )
        else:
            _check_terms(coupling, joints, "coupled")
            if isinstance(coupling, PolynomialCoupling):
                _check_polynomial(coupling)
    for spring in description.springs:
        if isinstance(spring, Spring):
            ends = spring.predecessor.link, spring.successor.link
            _check_ends(*ends, links, "a spring joins two links", spring.source)
        else:
            _check_terms(spring, joints, "sprung")
    issues = [
        Issue(
            f"the joint '{end.name}' is not in the robot{did_you_mean(end.name, joints)}",
            transmission.source,
            "transmission of no joint",
        )
        for transmission in description.transmissions
        for end in transmission.joints
        if end.name not in joints
    ]
    issues += [
        Issue(
            f"a {kind} has {count} of <joint> and <actuator> each, not {len(each.joints)} and "
            f"{len(each.actuators)}",
            each.source,
        )
        for each in description.transmissions
        if (count := KINDS.get(kind := kind_of(each))) is not None
        and each.actuators
        and not any(actuator.rotor for actuator in each.actuators)  # with_rotors refuses these
        and not len(each.joints) == len(each.actuators) == count
    ]
    warn_of_all(issues, strict=strict)


def by_name(elements: Iterable[_Named], kind: str) -> dict[str, _Named]:
    """Links, joints or other elements by name; raises for a name that is given twice."""
    first_by_name: dict[str, _Named] = {}
    for element in elements:
        first = first_by_name.setdefault(element.name, element)
        if first is not element:
            raise DescriptionError(
                f"another {kind} has this name already{beside(first.source)}; rename one of them",
                element.source,
            )
    return first_by_name


def beside(source: Source) -> str:
    """File and line of another element in brackets, for a message; empty without a line."""
    return "" if source.line is None else f" ({source.file}:{source.line})"


def look_up(name: str, names: Collection[str], what: str, source: Source) -> None:
    """Raise if ``name`` is not in ``names``; ``what`` is, for example, "the parent link"."""
    if name not in names:
        raise DescriptionError(
            f"{what} '{name}' is not in the robot{did_you_mean(name, names)}", source
        )


def _check_tree(description: Description, links: dict[str, Link]) -> None:
    """Raise unless one link is the root and every other one the child of exactly one joint."""
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
    """Raise for joints that form a circle; visits every link once, from child to parent."""
    seen: set[str] = set()
    for link in links:
        path: dict[str, Joint] = {}
        name = link.name
        while name not in seen and name not in path and name in above:
            path[name] = above[name]
            name = above[name].parent
        if name in path:
            circle = list(path.values())[list(path).index(name) :][::-1]
            raise DescriptionError(
                f"the joints {few([joint.name for joint in circle], 6)} lead round in a circle; "
                "turn one of them into a <loop>",
                circle[0].source,
            )
        seen.update(path)


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


def _check_ends(
    predecessor: str, successor: str, links: dict[str, Link], rule: str, source: Source
) -> None:
    look_up(predecessor, links, "the predecessor link", source)
    look_up(successor, links, "the successor link", source)
    if predecessor == successor:
        raise DescriptionError(
            f"the predecessor and the successor are the same link '{successor}'; {rule}", source
        )


def _check_polynomial(coupling: PolynomialCoupling) -> None:
    if not any(coupling.coefficients[1:]):
        raise DescriptionError(
            f"the joint '{coupling.joint}' does not depend on '{coupling.of}': its coefficients "
            "beyond the first are zero; a joint of type fixed holds a link",
            coupling.source,
        )


def _check_terms(
    tie: JointCoupling | PolynomialCoupling | JointSpring, joints: dict[str, Joint], done: str
) -> None:
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


_EXCESS = 4 / 3  # inertias of published robots break the triangle inequality by up to a quarter
_MOST_SQUARED = 1e50


def check_plausible(description: Description, *, strict: bool = False) -> None:
    """Warn of inertias that no body has, of masses at odds with them, and of locked joints.

    Raises for numbers that are not finite or whose squares overflow.
    """
    for source, numbers in _sizes(description):
        wrong = [
            x for x in numbers if not -_MOST_SQUARED <= x <= _MOST_SQUARED
        ]  # or no number at all
        if wrong:
            raise DescriptionError(
                f"comes to a size, mass, inertia or ratio of {wrong[0]:g}, more than any robot "
                f"has; write numbers below {_MOST_SQUARED:g}",
                source,
            )
    moments = (_moment_issue(link.inertial) for link in description.links if link.inertial)
    issues = [issue for issue in moments if issue]
    issues += _mass_issues(description)
    for joint in description.joints:
        if joint.limits.lower == joint.limits.upper == 0.0 and joint.type != "fixed":
            issues.append(
                Issue(
                    "both limits are 0, but limits lock nothing here; make the joint fixed if it "
                    "shall not move, and leave the limits out (or write inf) if it may",
                    joint.source,
                )
            )
    warn_of_all(issues, strict=strict)


def _sizes(description: Description) -> Iterator[tuple[Source, tuple[float, ...]]]:
    """The numbers of every element that enter products in the dynamics; limits do not."""
    for link in description.links:
        if (inertial := link.inertial) is not None:
            yield inertial.source, (inertial.mass, *inertial.inertia, *inertial.origin.xyz)
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
            factors = [k for _, k in coupling.terms]
            if isinstance(coupling, PolynomialCoupling):
                factors = list(coupling.coefficients)
            yield coupling.source, (coupling.offset, *factors)


def _moment_issue(inertial: Inertial) -> Issue | None:
    """The implausible property of an inertia; None if there is none.

    The second moments of mass, S = ½ tr(I) 1 − I, are a positive semidefinite matrix. It follows
    that the principal moments a ≤ b ≤ c keep the triangle inequality c ≤ a + b, and that none is
    negative. A tensor with a single nonzero moment is accepted: files state so the inertia of a
    body that turns about one axis only, such as a rotor or a link of a planar mechanism.
    """
    xx, xy, xz, yy, yz, zz = inertial.inertia
    half = 0.5 * (xx + yy + zz)
    x, y, z = half - xx, half - yy, half - zz
    minor = x * y - xy * xy
    rest = x * yz * yz + y * xz * xz + 2.0 * xy * yz * xz
    if x > 0.0 and minor > 0.0 and z * minor > rest:  # Sylvester's criterion: S > 0, the usual case
        return None
    if not any(inertial.inertia):
        return None
    a, b, c = np.linalg.eigvalsh(symmetric(*inertial.inertia)).tolist()
    shown = f"the principal moments of inertia, {a:.3g}, {b:.3g} and {c:.3g} kg m²,"
    # radii of gyration of a micrometre, 1e-12 m²: such moments are rounding errors
    nothing = max(WRITTEN * max(abs(a), c), 1e-12 * inertial.mass)
    if a < -nothing:
        message = f"{shown} are not all positive, as those of a body are"
        return Issue(message, inertial.source, "negative")
    if b > nothing and c > _EXCESS * (a + b):
        message = f"{shown} are those of no body: each is at most the others' sum"
        return Issue(message, inertial.source, "triangle")
    return None


def _mass_issues(description: Description) -> list[Issue]:
    """Moments of inertia without a mass, and missing masses that leave the mass matrix singular.

    Links that a coupling or mimic drives and that carry no other link are not reported as massless:
    they may be rotors, whose mass is often counted in the carrying link. Point masses on the axis
    of their joint are reported unless a constraint ties them to what has inertia.
    """
    issues = []
    parents = {joint.parent for joint in description.joints}
    moved_by = {joint.child: joint for joint in description.joints}
    tied = _tied(description)
    closing = {end.link for loop in description.loops for end in (loop.predecessor, loop.successor)}
    for link in description.links:
        inertial, joint = link.inertial, moved_by.get(link.name)
        if inertial is None:
            continue
        geared = link.name in tied or bool(joint and joint.name in tied)
        if all(each.type == "fixed" for each in line(moved_by, link.name)):
            continue  # the root, and what is fixed to it, does not move: any inertia will do
        if not inertial.mass:
            rotor = (
                joint is not None
                and geared
                and link.name not in parents | closing
                and _rests(joint, inertial.origin.xyz)
            )
            if sum(map(bool, inertial.inertia)) > 1 and not rotor:
                issues.append(
                    Issue("has moments of inertia but no mass; give it its mass", inertial.source)
                )
        elif (
            joint
            and not geared
            and link.name not in parents
            and not any(inertial.inertia)
            and _rests(joint, inertial.origin.xyz)
        ):
            issues.append(
                Issue(
                    "is a point mass on the axis of its joint, which nothing then resists: the "
                    "mass matrix is singular; give it its moments of inertia",
                    link.source,
                )
            )
    return issues


def _tied(description: Description) -> set[str]:
    """Names of the links and joints that couplings, loops or mimic tie to others."""
    tied = {joint.name for joint in description.joints if joint.mimic or joint.armature}
    for coupling in description.couplings:
        if isinstance(coupling, LinkCoupling):
            tied |= {coupling.predecessor, coupling.successor}
        else:
            tied.update(name for name, _ in coupling.terms)
    for loop in description.loops:
        tied |= {loop.predecessor.link, loop.successor.link}
    return tied


def _rests(joint: Joint, point: Vec3) -> bool:
    """True if a point of the child stays at rest when the joint moves."""
    turns = joint.type in ("revolute", "continuous") and off_axis(point, joint.axis) <= SAME
    return turns or joint.type in ("spherical", "floating")
