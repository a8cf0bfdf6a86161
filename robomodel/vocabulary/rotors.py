"""Rotors: from elements of joints and actuators to bodies and couplings.

A rotor is given by a moment of inertia and a ratio, with neither pose nor axis. It is taken to turn
about the axis of the joint that it drives, in a bearing on that joint's parent. It becomes a link,
a joint and a coupling of the same name. The readers of all formats use this module.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from robomodel.description import (
    IDENTITY,
    ONE_DOF,
    Actuator,
    Description,
    Inertial,
    Joint,
    JointCoupling,
    Link,
    LinkCoupling,
    PolynomialCoupling,
    Rotor,
    Rows3,
    Transmission,
    TransmittedJoint,
)
from robomodel.description.poses import line, unit
from robomodel.description.transmissions import (
    KINDS,
    SIMPLE,
    actuator_rows,
    in_order,
    kind_of,
    reductions,
    rotor_name,
)
from robomodel.errors import DescriptionError, Source, did_you_mean, warn_at
from robomodel.spatial import apply, inner, matmul, transpose
from robomodel.tolerances import ROUNDING, SAME
from robomodel.vocabulary.checks import beside, look_up
from robomodel.vocabulary.motors import rotor_fault


def matching(pattern: str, names: Iterable[str]) -> dict[str, list[str]]:
    """The names that a pattern matches, each with the texts its wildcards match, in order.

    Wildcards match as little as possible.
    """
    first, *others = map(re.escape, pattern.split("*"))
    # atomic groups: the text of a wildcard is never tried again, as a later match would not help
    middle = "".join(f"(?>(.*?){piece})" for piece in others[:-1])
    last = "".join(f"(.*){piece}" for piece in others[-1:])
    matches = ((name, re.fullmatch(first + middle + last, name, re.DOTALL)) for name in names)
    return {name: list(match.groups()) for name, match in matches if match}


def filled(template: str, stands: Iterable[str]) -> str:
    """The template with its wildcards replaced in turn by these texts."""
    first, *others = template.split("*")
    texts = iter(stands)
    return first + "".join(next(texts, "*") + piece for piece in others)


# --- rotors of joints by name ---------------------------------------------------------------------


def rotors_on_joints(description: Description, rotors: Mapping[str, Rotor]) -> Description:
    """The description with rotors on joints, by names of joints that may have wildcards.

    Wildcards match joints of one degree of freedom; wildcards in a rotor's ``link`` are replaced by
    the texts that match in the joint's name. The last rotor given for a joint counts. Raises
    :class:`DescriptionError` for names that match no joint and for wrong numbers of a rotor.
    """
    joints = {joint.name: joint for joint in description.joints}
    for pattern, rotor in rotors.items():
        if not isinstance(rotor, Rotor):
            raise TypeError(f"rotors['{pattern}'] is a Rotor, got {type(rotor).__name__}")
        try:
            driven = driven_by(pattern, joints)
        except ValueError as error:
            raise DescriptionError(str(error), description.source) from None
        for name, stands in driven.items():
            source = replace(joints[name].source, element=f"rotor of joint '{name}'")
            if fault := rotor_fault(rotor):
                raise DescriptionError(fault, source)
            link = filled(rotor.link, stands)
            joints[name] = replace(joints[name], rotor=replace(rotor, link=link, source=source))
    return replace(description, joints=tuple(joints.values()))


def driven_by(pattern: str, joints: Mapping[str, Joint]) -> dict[str, list[str]]:
    """The joints that a name with or without wildcards matches, and the texts of the wildcards.

    Raises ValueError if there is none.
    """
    if pattern in joints:
        return {pattern: []}
    what, names = "joint", list(joints)
    if "*" in pattern:
        what = "joints of one degree of freedom"
        names = [name for name, joint in joints.items() if joint.type in ONE_DOF]
        if driven := matching(pattern, names):
            return driven
    raise ValueError(f"no such {what} in the robot: '{pattern}'{did_you_mean(pattern, names)}")


# --- rotors become bodies -------------------------------------------------------------------------


def with_rotors(description: Description, *, strict: bool = False) -> Description:
    """The description with its rotors replaced by links, joints and couplings.

    Names must be valid: :func:`robomodel.vocabulary.checks.check_structure` checks them.
    """
    if not any(joint.rotor for joint in description.joints) and not any(
        actuator.rotor for each in description.transmissions for actuator in each.actuators
    ):
        return description
    description = _with_losses(description)
    tree = _Tree(description)
    added = [_of_joint(joint, tree) for joint in description.joints if joint.rotor]
    for transmission in description.transmissions:
        turns = any(actuator.rotor for actuator in transmission.actuators)
        if turns and not _is_armature(transmission, tree.joints):
            added += _of_transmission(transmission, tree, strict)
    _check_names(added, description)
    _check_twice(added, tree.joints, strict)
    turning = {each.joint.name: each.joint for each in added}  # joints of links that are rotors
    return replace(
        description,
        links=(*description.links, *(each.link for each in added if each.link)),
        joints=(
            *(replace(turning.pop(name, joint), rotor=None) for name, joint in tree.joints.items()),
            *turning.values(),
        ),
        couplings=(*description.couplings, *(each.coupling for each in added)),
        transmissions=tuple(
            replace(each, actuators=tuple(replace(a, rotor=None) for a in each.actuators))
            for each in description.transmissions
            if not _is_undriven(each)
        ),
    )


def _is_undriven(transmission: Transmission) -> bool:
    """True if it only turns a rotor: its motor has an effort of 0.

    Raises DescriptionError if other actuators are beside it.
    """
    motors = [end.motor for end in transmission.actuators]
    undriven = [motor for motor in motors if motor is not None and motor.effort == 0.0
                and motor.effort_lower is None]  # fmt: skip
    if undriven and len(motors) > 1:
        raise DescriptionError(
            "a motor of effort 0, which drives nothing, is alone in its transmission",
            transmission.source,
        )
    return bool(undriven)


def _with_losses(description: Description) -> Description:
    """The description with losses of transmissions' reductions as those of their rotors."""
    joints = {joint.name: joint for joint in description.joints}

    def moved(rotor: Rotor, end: Actuator) -> tuple[Rotor, Actuator]:
        if rotor.efficiency != 1.0 or rotor.backdrive is not None:
            raise DescriptionError(
                f"has an efficiency of its own and one at the reduction of '{end.name}'; keep one",
                rotor.source,
            )
        rotor = replace(rotor, efficiency=end.efficiency, backdrive=end.backdrive)
        return rotor, replace(end, efficiency=1.0, backdrive=None)

    transmissions = []
    for each in description.transmissions:
        ends = []
        for actuator in each.actuators:
            end = actuator
            simple = kind_of(each) == SIMPLE and each.joints
            own = joints.get(each.joints[0].name) if simple else None
            if end.efficiency == 1.0 and end.backdrive is None:
                pass
            elif end.rotor is not None:
                rotor, end = moved(end.rotor, end)
                end = replace(end, rotor=rotor)
            elif own is not None and own.rotor is not None:
                rotor, end = moved(own.rotor, end)
                joints[own.name] = replace(own, rotor=rotor)
            ends.append(end)
        transmissions.append(replace(each, actuators=tuple(ends)))
    return replace(description, joints=tuple(joints.values()), transmissions=tuple(transmissions))


def with_rotor_words(description: Description) -> Description:
    """The inverse of :func:`with_rotors`: bodies that are rotors become ``<rotor>`` elements.

    Returns the description unchanged if :func:`with_rotors` would not restore it exactly, because
    a rotor was changed or has another name or place.
    """
    joints = {joint.name: joint for joint in description.joints}
    links = {link.name: link for link in description.links}
    words: dict[str, Rotor] = {}  # by the name of the rotor
    for coupling in description.couplings:
        joint, link = joints.get(coupling.name), links.get(coupling.name)
        if joint is not None and link is not None and link.inertial is not None:
            xx, xy, xz, yy, yz, zz = link.inertial.inertia
            axis = unit(joint.axis)
            rows = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
            inertia = _short(inner(axis, apply(rows, axis)))
            words[coupling.name] = Rotor(
                inertia, None, link.inertial.mass, _short((xx + yy + zz - inertia) / 2.0, inertia),
                coupling.source,
                joint.damping, joint.friction, "",
                *((1.0, None) if isinstance(coupling, PolynomialCoupling)
                  else (coupling.efficiency, coupling.backdrive)),
            )  # fmt: skip
    ratios = {x.name: x.ratio for x in description.couplings if isinstance(x, LinkCoupling)}
    driving = {
        (each.name, end.name): rotor_name(end.name or each.joints[0].name)
        for each in description.transmissions
        if each.joints
        for end in each.actuators
    }

    def on_joint(joint: Joint) -> Joint:
        name = rotor_name(joint.name)
        if name in driving.values() or not (name in words and name in ratios):
            return joint
        return replace(joint, rotor=replace(words[name], ratio=ratios[name]))

    def on_actuators(each: Transmission) -> Transmission:
        rotors = (words.get(driving.get((each.name, end.name), "")) for end in each.actuators)
        ends = (replace(end, rotor=x) for end, x in zip(each.actuators, rotors, strict=True))
        return replace(each, actuators=tuple(ends))

    plain = replace(
        description,
        links=tuple(link for link in description.links if link.name not in words),
        joints=tuple(on_joint(x) for x in description.joints if x.name not in words),
        couplings=tuple(each for each in description.couplings if each.name not in words),
        transmissions=tuple(on_actuators(each) for each in description.transmissions),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading the file has given these warnings
        try:
            again = with_rotors(plain)
        except DescriptionError:
            return description
    return plain if again == description else description


def _short(x: float, size: float = 0.0) -> float:
    """The number without rounding errors, relative to its own or another ``size``."""
    return float(f"{x:.14g}") if abs(x) > ROUNDING * size else 0.0


@dataclass(frozen=True, slots=True)
class _Body:
    """A rotor as a link, its joint, and the coupling to the joints it drives.

    ``link`` is None if it is an existing link; ``joint`` then replaces the fixed joint that held
    it.
    """

    link: Link | None
    joint: Joint
    coupling: LinkCoupling | JointCoupling
    drives: tuple[str, ...]


class _Tree:
    """Links and joints by name, and the joint above each link."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self.links = {link.name: link for link in description.links}
        self.joints = {joint.name: joint for joint in description.joints}
        self.above = {joint.child: joint for joint in description.joints}

    def body(self, link: str) -> tuple[str, Rows3]:
        """The link that carries this one by fixed joints, and the rotation of this one in it."""
        rotation = IDENTITY
        while link in self.above and self.above[link].type == "fixed":
            rotation = matmul(self.above[link].origin.rotation, rotation)
            link = self.above[link].parent
        return link, rotation


def _of_joint(joint: Joint, tree: _Tree) -> _Body:
    """The body of a joint's own rotor; a simple transmission may give the ratio."""
    rotor = joint.rotor
    assert rotor is not None
    _one_dof(joint, rotor.source)
    ratio, offset = rotor.ratio, 0.0
    for each in tree.description.transmissions:
        if kind_of(each) == SIMPLE and [end.name for end in each.joints] == [joint.name]:
            offset = each.joints[0].offset
            ratio = ratio or _whole(each.joints[0], each.actuators)
    if ratio is None:
        raise DescriptionError(
            'needs ratio="...", how far it turns for one turn of the joint (1 for a direct drive), '
            "as no transmission has a reduction",
            rotor.source,
        )
    return _coupled(rotor, joint.name, tree, joint, joint, ratio, offset)


def _whole(joint: TransmittedJoint, actuators: Iterable[Actuator]) -> float | None:
    """The product of the reductions that a simple transmission states; None if there is none."""
    reductions = [joint.reduction, *(actuator.reduction for actuator in actuators)]
    stated = [reduction for reduction in reductions if reduction is not None]
    return math.prod(stated) if stated else None


def _is_armature(transmission: Transmission, joints: Mapping[str, Joint]) -> bool:
    """True if the rotor only repeats the joint's armature, for readers that ignore armatures.

    Open trees are written so: ``<armature>`` for this package, and for Drake a rotor of this
    inertia, of which Drake adds ratio² times the inertia to the joint's own and nothing else.
    """
    if kind_of(transmission) != SIMPLE or not (
        len(transmission.actuators) == len(transmission.joints) == 1
    ):
        return False
    (end,), (actuator,) = transmission.joints, transmission.actuators
    joint, rotor = joints.get(end.name), actuator.rotor
    if joint is None or rotor is None or rotor.mass or rotor.transverse or rotor.link:
        return False
    ratio = rotor.ratio or _whole(end, (actuator,)) or 1.0
    reflected = ratio * ratio * rotor.inertia
    return math.isclose(reflected, joint.armature, rel_tol=SAME)


def _of_transmission(transmission: Transmission, tree: _Tree, strict: bool) -> list[_Body]:
    """The bodies of the rotors of a transmission's actuators."""
    joints = tree.joints
    kind, source = kind_of(transmission), transmission.source
    if kind not in KINDS:
        warn_at(
            f"the rotor inertias of a transmission of type '{transmission.type}' are ignored"
            f"{did_you_mean(kind, KINDS)}; known: {', '.join(KINDS)}",
            source,
            strict=strict,
        )
        return []
    ends = _in_order(transmission.joints, "joint", KINDS[kind], transmission)
    actuators = _in_order(transmission.actuators, "actuator", KINDS[kind], transmission)
    for end in ends:
        look_up(end.name, joints, "the joint", source)
        _one_dof(joints[end.name], source)
    driven = [joints[end.name] for end in ends]
    base = driven[0]
    if len(driven) == 2 and driven[1] in line(tree.above, driven[0].parent):
        base = driven[1]
    rows = actuator_rows(kind, reductions(ends))
    added = []
    for actuator, row in zip(actuators, rows, strict=True):
        if (rotor := actuator.rotor) is None:
            continue
        name = actuator.name or ends[0].name
        if kind == SIMPLE:
            ratio = rotor.ratio or _whole(ends[0], [actuator]) or 1.0
            added.append(_coupled(rotor, name, tree, base, driven[0], ratio, ends[0].offset))
        else:
            scale = rotor.ratio or reductions([actuator])[0]
            terms = {
                end.name: scale * factor for end, factor in zip(ends, row, strict=True) if factor
            }
            shift = sum(terms.get(end.name, 0.0) * end.offset for end in ends)
            added.append(_combined(rotor, name, tree, base, terms, shift))
    return added


def _in_order(ends: tuple[Any, ...], what: str, count: int, transmission: Transmission) -> Any:
    """The joints or actuators in the order of their roles, ``joint1`` and ``joint2``, if any.

    A simple transmission needs no roles.
    """
    if len(ends) != count:
        raise DescriptionError(
            f"a {kind_of(transmission)} with a rotor inertia needs {count} <{what}>, "
            f"got {len(ends)}",
            transmission.source,
        )
    if (ordered := in_order(ends, what)) is None:
        roles = " and ".join(f"{what}{i}" for i in range(1, count + 1))
        raise DescriptionError(
            f"the roles of its {what}s must be {roles}, "
            f"got {' and '.join(repr(end.role) for end in ends)}",
            transmission.source,
        )
    return ordered


def _one_dof(joint: Joint, source: Source) -> None:
    if joint.type not in ONE_DOF:
        raise DescriptionError(
            f"the joint '{joint.name}' is {joint.type}, and a rotor drives a joint of one degree "
            "of freedom; leave the rotor out",
            source,
        )


def _turning(rotor: Rotor, name: str, tree: _Tree, base: Joint) -> tuple[Link | None, Joint]:
    """A rotor's new link, if it needs one, and its joint: on the parent of ``base``, about its
    axis.

    ``name`` is the name of its actuator or joint.
    """
    if rotor.link:
        return None, _declared(rotor, tree, base)
    name, (x, y, z) = rotor_name(name), unit(base.axis)
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


def _declared(rotor: Rotor, tree: _Tree, base: Joint) -> Joint:
    """The joint of an existing link that is a rotor, in place of the fixed joint that held it."""

    def refused(message: str) -> DescriptionError:
        return DescriptionError(f"the link '{rotor.link}' {message}", rotor.source)

    if (link := tree.links.get(rotor.link)) is None:
        raise refused(f"is not in the robot{did_you_mean(rotor.link, tree.links)}")
    held = tree.above.get(rotor.link)
    if held is None or held.type != "fixed":
        raise refused(
            "moves already; only a link that a joint of type fixed holds can be declared a rotor "
            "(couple others by a <coupling>)"
        )
    carrier, stands = tree.body(held.parent)
    other, leans = tree.body(base.parent)
    if carrier != other:
        raise refused(
            f"is held by '{carrier}', and the rotor of the joint '{base.name}' turns in its parent "
            f"'{other}'; write a rotor elsewhere as a link, a joint and a <coupling>"
        )
    if any(joint.parent == rotor.link for joint in tree.description.joints):
        raise refused("carries other links, which a rotor does not")
    if link.inertial is None:
        raise refused("has no <inertial>; give the rotor's inertia instead of the link")
    here = matmul(stands, held.origin.rotation)
    there = matmul(leans, base.origin.rotation)
    axis = apply(transpose(here), apply(there, base.axis))
    size = max(map(abs, axis))
    x, y, z = (a if abs(a) > ROUNDING * size else 0.0 for a in axis)
    return replace(
        held,
        type="continuous",
        axis=(x, y, z),
        independent=False,
        damping=rotor.damping,
        friction=rotor.friction,
    )


def _coupled(
    rotor: Rotor, name: str, tree: _Tree, base: Joint, driven: Joint, ratio: float, offset: float
) -> _Body:
    """A rotor geared to one joint: rotor angle = ratio (q − offset)."""
    link, joint = _turning(rotor, name, tree, base)
    shift = -ratio * offset if offset else 0.0
    ends = rotor_name(name), driven.child, joint.child
    losses = rotor.efficiency, rotor.backdrive
    gear = LinkCoupling(*ends, ratio, shift, rotor.source, *losses)
    return _Body(link, joint, gear, (driven.name,))


def _combined(
    rotor: Rotor, name: str, tree: _Tree, base: Joint, terms: Mapping[str, float], shift: float
) -> _Body:
    """A rotor driven by several joints: rotor angle = Σ terms · q − shift."""
    link, joint = _turning(rotor, name, tree, base)
    relation = ((joint.name, 1.0), *((joint, -factor) for joint, factor in terms.items()))
    offset = -shift if shift else 0.0
    losses = rotor.efficiency, rotor.backdrive
    coupling = JointCoupling(rotor_name(name), relation, offset, rotor.source, *losses)
    return _Body(link, joint, coupling, tuple(terms))


# --- checks ---------------------------------------------------------------------------------------


def _check_names(added: Iterable[_Body], description: Description) -> None:
    """Raise for rotors whose names are in use."""
    sources: dict[tuple[str, str], Source] = {}
    sources |= {("link", each.name): each.source for each in description.links}
    sources |= {("joint", each.name): each.source for each in description.joints}
    sources |= {("coupling", each.name): each.source for each in description.couplings}
    for each in added:
        name, source = each.coupling.name, each.coupling.source
        if each.link is None:
            if (other := sources.get(("rotor", each.joint.child))) is not None:
                raise DescriptionError(
                    f"the link '{each.joint.child}' is the {other.element} already", source
                )
            sources["rotor", each.joint.child] = source
        for kind in ("link", "joint", "coupling") if each.link else ("coupling",):
            if (kind, name) in sources:
                other = sources[kind, name]
                raise DescriptionError(
                    f"the rotor would be called '{name}', as a {kind} is already{beside(other)}; "
                    f"rename that {kind}, or the actuator",
                    source,
                )
            sources[kind, name] = source


def _check_twice(added: Iterable[_Body], joints: Mapping[str, Joint], strict: bool) -> None:
    """Warn of joints whose motor inertia may be counted twice, as armature and as rotor."""
    seen: set[str] = set()
    for each in added:
        if len(each.drives) > 1:
            continue
        (name,) = each.drives
        if name in seen or joints[name].armature:
            has = "another rotor already" if name in seen else "an armature and a rotor"
            message = f"the joint '{name}' has {has}; both are counted"
            warn_at(message, each.coupling.source, strict=strict)
        seen.add(name)
