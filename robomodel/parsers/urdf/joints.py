"""Joints, loops and couplings: reading, writing, and changes by extensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, cast, get_args

from robomodel.description import (
    FREEDOMS,
    ONE_DOF,
    CouplingElement,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    JointType,
    Limits,
    Link,
    LinkCoupling,
    Loop,
    LoopType,
    Mimic,
    PolynomialCoupling,
    Pose,
    Spring,
    Transmission,
    Vec3,
)
from robomodel.errors import did_you_mean
from robomodel.tolerances import NOTHING
from robomodel.vocabulary.frames import (
    ENDS,
    X,
    add_ends,
    add_origin,
    add_terms,
    check_crossing,
    independent_text,
    limits_of,
    marks_of,
    read_axis,
    read_ends,
    read_linked,
    read_origin,
    read_parts,
    read_term,
    read_type,
)
from robomodel.vocabulary.motors import add_motor, add_rotor, read_motor, read_rotor
from robomodel.vocabulary.schema import (
    ARMATURE,
    COUPLING,
    DYNAMICS,
    INITIAL,
    JOINT_DYNAMICS,
    LARGEST,
    LIMIT,
    LOOP,
    LOWER_LIMITS,
    MIMIC,
    OFFSET,
    PITCH,
    RATIO,
    Fields,
    add,
    add_numbers,
    numbers,
    read,
    write,
)
from robomodel.vocabulary.springs import friction_law, has_dynamics, loop_dynamics
from robomodel.vocabulary.xml import Document, Element, shown, spelled, words

_AXES: dict[str, Vec3] = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}


@dataclass(slots=True)
class Elements:
    """The elements of a file in order; ``mimics`` are those given outside of their joint."""

    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    couplings: list[CouplingElement] = field(default_factory=list)
    transmissions: list[Transmission] = field(default_factory=list)
    springs: list[Spring | JointSpring] = field(default_factory=list)
    mimics: list[tuple[str, Mimic, Element]] = field(default_factory=list)

    def added_to(self, base: Description) -> Description:
        """The description ``base`` with these elements, except the mimics.

        Loops, couplings, springs and transmissions replace those of the same name.
        """
        return replace(
            base,
            links=(*base.links, *self.links),
            joints=(*base.joints, *self.joints),
            loops=_merged(base.loops, self.loops),
            couplings=_merged(base.couplings, self.couplings),
            transmissions=_merged(base.transmissions, self.transmissions),
            springs=_merged(base.springs, self.springs),
        )


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_Named)


def _merged(base: Sequence[_N], more: Sequence[_N]) -> tuple[_N, ...]:
    """The base's elements, each replaced by one of its name in ``more``, followed by the others."""
    names = {each.name for each in base} - {""}
    others = {each.name: each for each in more if each.name in names}
    added = [each for each in more if others.get(each.name) is not each]
    return (*(others.get(each.name, each) for each in base), *added)


def has_duplicates(description: Description) -> bool:
    """True if two links or two joints have the same name."""
    groups = (description.links, description.joints)
    return any(len(each) != len({record.name for record in each}) for each in groups)


def with_mimics(
    document: Document,
    description: Description,
    mimics: Sequence[tuple[str, Mimic, Element]],
) -> Description:
    """The description with mimics of joints by name; a ``<mimic>`` in the joint itself precedes.

    These mimics are meant for a simulator or a controller, so wrong ones are only warned of.
    """
    if not mimics:
        return description
    joints = {joint.name: joint for joint in description.joints}
    for name, mimic, element in mimics:
        if missing := [each for each in (name, mimic.joint) if each not in joints]:
            message = f"the joint '{missing[0]}' is not in the robot"
            message += did_you_mean(missing[0], joints)
        elif fixed := [each for each in (name, mimic.joint) if joints[each].type not in ONE_DOF]:
            message = f"the joint '{fixed[0]}' is {joints[fixed[0]].type}, and cannot be mimicked"
        elif joints[name].mimic not in (None, mimic):
            message = f"the joint '{name}' has another <mimic> itself, which is read"
        else:
            joints[name] = replace(joints[name], mimic=mimic)
            continue
        document.warn_at(element, f"this mimic is left out: {message}", message)
    return replace(description, joints=tuple(joints.values()))


def universal(joint: Joint, axes: str) -> tuple[Link, Joint, Joint]:
    """A universal joint as two about axes of its frame, such as "XY", and the link between."""
    first, second = (f"{joint.name}_{axis.lower()}" for axis in axes)
    bare = replace(joint, type="continuous", independent=None, initial=None, mimic=None)
    return (
        Link(first, source=joint.source),
        replace(bare, name=first, child=first, axis=_AXES[axes[0]]),
        replace(bare, name=second, parent=first, origin=Pose(), axis=_AXES[axes[1]]),
    )


JOINT_TYPES: tuple[str, ...] = get_args(JointType)
UNIVERSAL = "universal"  # read as two joints
BETWEEN = "::"  # separates the names of parts of one element
_JOINTS_WITH_AXIS = ONE_DOF | {"planar"}
_JOINT_PARTS = words(
    "parent child origin axis limit mimic joint_properties dynamics initial pitch armature rotor "
    "motor"
)
_JOINT_IRRELEVANT = frozenset(("calibration", "safety_controller", "gazebo", "sensor"))
_JOINT = frozenset(("name", "type", "independent", "dont_collapse"))  # the last is Isaac Gym's
_PLACE = ("parent", "child", "origin", "axis", "pitch")
_SPRUNG = ONE_DOF | {"spherical"}


def read_joint(
    document: Document, element: Element, irrelevant: frozenset[str] = _JOINT_IRRELEVANT
) -> Joint:
    """Read a ``<joint>`` of the tree."""
    document.expect(element, _JOINT)
    name = document.text(element, "name")
    kind = cast(JointType, read_type(document, element, (*JOINT_TYPES, UNIVERSAL)))
    for child in element:
        if shown(child) == "drake:mimic":
            child.tag = "mimic"
    parts = document.parts(element, _JOINT_PARTS, irrelevant)
    ends = [read_linked(document, element, parts, tag) for tag in ("parent", "child")]
    origin = read_origin(document, parts.get("origin"))
    axis = read_axis(document, parts.get("axis"), used=kind in _JOINTS_WITH_AXIS) or X
    if kind in {"revolute", "prismatic"} and "limit" not in parts:
        document.warn_at(
            element,
            f"has no <limit>, which URDF demands of a {kind} joint; it is taken as unlimited",
            "no limit",
        )
    if kind == "screw" and "pitch" not in parts:
        raise document.error(
            element, 'a screw joint needs <pitch value="..."/>, in metres per radian'
        )
    source = document.source(element, f"joint '{name}'")
    properties = _properties(document, element, parts, kind)
    return Joint(name, kind, ends[0], ends[1], origin, axis, source=source, **properties)


def _properties(
    document: Document, element: Element, parts: Mapping[str, Element], kind: str
) -> dict[str, Any]:
    """The fields of a joint of type ``kind``, except its place in the tree."""
    properties: dict[str, Any] = {}
    for tag, read_part in _PROPERTIES.items():
        if tag in parts:
            properties |= read_part(document, parts[tag], kind)
    if (independent := _independent(document, element, kind)) is not None:
        properties["independent"] = independent
    return properties


def read_universal(document: Document, element: Element) -> tuple[Link, Joint, Joint]:
    """Read ``<joint type="universal">`` as two joints with a massless link between, as in SDF.

    The second, ``NAME::2``, turns about ``<axis2>``, which like ``<axis>`` is in the child's frame;
    the contents of ``<axis2>`` are its properties.
    """
    name = document.text(element, "name")
    parts = document.parts(element, _JOINT_PARTS | {"axis2"}, _JOINT_IRRELEVANT)
    for tag in ("axis", "axis2", "child"):
        if tag not in parts:
            raise document.error(element, f"a universal joint needs <{tag}>")
    inner = parts["axis2"]
    for part in inner:
        if part.tag in _PLACE or part.tag == "axis2":
            raise document.error(part, f"<{shown(part)}> has no place in <axis2>")
    marks = element.get("independent", "").split()
    if len(marks) > 2:
        raise document.error(element, "independent of a universal joint is one word, or two")
    kinds: list[JointType] = [
        "continuous" if each.find("limit") is None else "revolute" for each in (element, inner)
    ]
    element.set("type", kinds[0])
    if marks:
        element.set("independent", marks[0])
    one = read_joint(document, element, _JOINT_IRRELEVANT | {"axis2"})
    between = Link(f"{name}{BETWEEN}cross", source=one.source)
    axis, second = read_axis(document, inner, used=True) or X, f"{name}{BETWEEN}2"
    source = document.source(element, f"joint '{second}'")
    check_crossing(document, element, one.axis, axis)
    if marks:
        inner.set("independent", marks[-1])
    parts = document.parts(inner, _JOINT_PARTS, _JOINT_IRRELEVANT)
    properties = _properties(document, inner, parts, kinds[1])
    ends = between.name, one.child
    other = Joint(second, "revolute", *ends, axis=axis, source=source, **properties)
    return between, replace(one, type="revolute", child=between.name), other


def changed_joint(document: Document, element: Element, joint: Joint) -> Joint:
    """A joint with an extension's changes; its links and its axis stay.

    A continuous joint becomes revolute if it gets position limits.
    """
    document.expect(element, _JOINT)
    parts = document.parts(element, _JOINT_PARTS, _JOINT_IRRELEVANT)
    place = [tag for tag in _PLACE if tag in parts and tag != "origin"]
    if element.get("type") is not None or place:
        raise document.error(
            element,
            f"the robot has a joint '{joint.name}' already, whose type, links, axis and pitch an "
            "extension cannot change; leave them out, or give the new joint a name of its own",
        )
    limited = "limit" in parts and not {"lower", "upper"}.isdisjoint(parts["limit"].attrib)
    kind: JointType = "revolute" if joint.type == "continuous" and limited else joint.type
    origin = read_origin(document, parts["origin"]) if "origin" in parts else joint.origin
    properties = _properties(document, element, parts, kind)
    return replace(joint, type=kind, origin=origin, **properties)


def _independent(document: Document, element: Element, kind: str) -> bool | tuple[bool, ...] | None:
    """The flag ``independent`` of a joint, or flags of each of its freedoms."""
    if (text := element.get("independent")) is None:
        return None
    if len(marks := text.lower().split()) < 2:
        return document.flag(element, text, "independent")
    freedoms = FREEDOMS.get(kind, 1)
    if (independent := marks_of(marks, freedoms)) is None:
        raise document.error(
            element,
            f"independent of a {kind} joint must be 'true' or 'false'"
            + (f", or {freedoms} of these words" if freedoms > 1 else "")
            + f", got {spelled(' '.join(marks))}",
        )
    return independent


def _limits(document: Document, element: Element, kind: str) -> Fields:
    """Read ``<limit>``; position limits of a continuous joint are ignored."""
    values = read(document, element, LIMIT)
    one_way = [each.name for each in LOWER_LIMITS if each.name in values]
    if one_way and kind not in ONE_DOF:
        raise document.error(
            element, f"a {kind} joint has no single velocity for {', '.join(one_way)}; leave it out"
        )
    bounded = kind != "continuous"
    if (
        not bounded
        and -LARGEST < values.get("lower", -math.inf) < values.get("upper", math.inf) < LARGEST
    ):
        message = "position limits mean nothing in a continuous joint; is it a revolute one?"
        document.warn_at(element, message)
    if min(values.get("velocity", 0.0), values.get("effort", 0.0)) < 0.0:
        message = "a negative effort or velocity limit is taken as none; leave it out"
        document.warn_at(element, message)
    return {"limits": limits_of(document, element, values, most=LARGEST, bounded=bounded)}


def _mimic(document: Document, element: Element, kind: str) -> Fields:
    if kind == "fixed":  # some files fix a gripper by changing its joints' types only
        return _meaningless(document, element, kind)
    return {"mimic": Mimic(document.text(element, "joint"), **read(document, element, MIMIC))}


def _dynamics(document: Document, element: Element, kind: str) -> Fields:
    """Read ``<dynamics>``; raises for a spring, except on one degree of freedom or a ball joint."""
    values = read(document, element, JOINT_DYNAMICS)
    if friction_law(values) and kind not in ONE_DOF:
        raise document.error(
            element,
            f"a {kind} joint has no single velocity for {friction_law(values)}; leave it out",
        )
    if values.get("stiffness") and kind not in (*_SPRUNG, "fixed"):
        raise document.error(
            element,
            f"a {kind} joint cannot have a spring of its own; give it a <spring> between two links",
        )
    if values.get("reference") and kind == "spherical":
        raise document.error(
            element, "a ball joint's spring pulls to no rotation; leave spring_reference out"
        )
    return values


def _armature(document: Document, element: Element, kind: str) -> Fields:
    values = read(document, element, ARMATURE)
    return _meaningless(document, element, kind) if kind == "fixed" else values


def _pitch(document: Document, element: Element, kind: str) -> Fields:
    if kind != "screw":
        return _meaningless(document, element, kind)
    return read(document, element, PITCH)


def _meaningless(document: Document, element: Element, kind: str) -> Fields:
    document.warn_at(element, f"<{element.tag}> means nothing in a {kind} joint; it is ignored")
    return {}


def _initial(document: Document, element: Element, kind: str) -> Fields:
    if kind not in ONE_DOF:
        raise document.error(
            element, f"<initial> is for joints of one degree of freedom, not for a {kind} joint"
        )
    return read(document, element, INITIAL)


_PROPERTIES: dict[str, Callable[[Document, Element, str], Fields]] = {
    "pitch": _pitch,
    "limit": _limits,
    "mimic": _mimic,
    "initial": _initial,
    "armature": _armature,
    "rotor": lambda document, element, _: {"rotor": read_rotor(document, element)},
    "motor": lambda document, element, _: {"motor": read_motor(document, element)},
    "joint_properties": _dynamics,  # as onshape-to-robot writes it
    "dynamics": _dynamics,
}
"""Readers of the parts of a joint; each takes the joint's type and returns fields."""


def add_joint(root: Element, joint: Joint) -> None:
    """Append ``<joint>``, with the attributes that readers of URDF require."""
    element = add(root, "joint", name=joint.name, type=joint.type)
    if joint.independent is not None:
        element.set("independent", independent_text(joint.independent))
    add(element, "parent", link=joint.parent)
    add(element, "child", link=joint.child)
    add_origin(element, joint.origin)
    if joint.type in _JOINTS_WITH_AXIS:
        add(element, "axis", xyz=numbers(joint.axis))
    if joint.limits != Limits() or joint.type in ("revolute", "prismatic"):
        limit = add(element, "limit")
        write(limit, LIMIT, joint.limits)
        if joint.type == "continuous":
            limit.attrib.pop("lower")
            limit.attrib.pop("upper")
    if has_dynamics(joint):
        write(add(element, "dynamics"), JOINT_DYNAMICS, joint)
    if joint.mimic is not None and joint.type in ONE_DOF:
        write(add(element, "mimic", joint=joint.mimic.joint), MIMIC, joint.mimic)
    if joint.type == "screw":
        write(add(element, PITCH.tag), PITCH, joint)
    if joint.type != "fixed":
        add_numbers(element, ARMATURE, joint)
    if joint.rotor is not None:
        add_rotor(element, joint.rotor)
    if joint.motor is not None:
        add_motor(element, joint.motor)
    if joint.type in ONE_DOF:
        add_numbers(element, INITIAL, joint)


# --- loops and couplings --------------------------------------------------------------------------

LOOP_TYPES: tuple[str, ...] = get_args(LoopType)
_LOOPS_WITH_AXIS = frozenset(("revolute", "continuous", "prismatic", "planar", "universal"))
_LOOP_PARTS = frozenset((*ENDS, "axis", "axis2", "dynamics"))
_COUPLING_PARTS = frozenset((*ENDS, "ratio", "offset", "polynomial"))
_POLYNOMIAL = ("joint", "of", "coefficients")


def read_loop(document: Document, element: Element) -> Loop:
    """Read ``<loop>``, a joint that closes a loop of the tree."""
    values = read(document, element, LOOP)
    name = document.text(element, "name")
    kind = cast(LoopType, read_type(document, element, LOOP_TYPES))
    parts = read_parts(document, element, _LOOP_PARTS)
    if "axis2" in parts and kind != "universal":
        document.warn_at(parts["axis2"], f"<axis2> means nothing in a {kind} loop; it is ignored")
    if "length" in values:
        _check_length(document, element, kind, values)
    one, other = read_ends(document, element, parts)
    return Loop(
        name,
        kind,
        one,
        other,
        read_axis(document, parts.get("axis"), used=kind in _LOOPS_WITH_AXIS) or X,
        read_axis(document, parts.get("axis2"), used=kind == "universal"),
        source=document.source(element, f"loop '{name}'"),
        **values,
        **loop_dynamics(document, parts.get("dynamics"), kind),
    )


def _check_length(document: Document, element: Element, kind: str, values: Fields) -> None:
    """Remove the length of a loop other than a rod; raises if a rod's is not positive."""
    if kind != "rod":
        document.warn_at(element, f"'length' means nothing in a {kind} loop; it is ignored")
        del values["length"]
    elif values["length"] <= NOTHING:  # as of the distance between ends
        raise document.error(
            element,
            f"the length {values['length']:g} of the rod is not positive"
            f"{' beyond rounding' if values['length'] > 0.0 else ''}; for two points that coincide "
            "write a loop of type spherical",
        )


def add_loop(root: Element, loop: Loop) -> None:
    """``<loop>``."""
    element = add(root, "loop", name=loop.name, type=loop.type)
    write(element, LOOP, loop)
    add_ends(element, loop)
    if loop.type in _LOOPS_WITH_AXIS:
        add(element, "axis", xyz=numbers(loop.axis))
    if loop.axis2 is not None:
        add(element, "axis2", xyz=numbers(loop.axis2))
    if has_dynamics(loop):
        write(add(element, "dynamics"), DYNAMICS, loop)


def read_coupling(document: Document, element: Element) -> CouplingElement:
    """A coupling of links (URDF+: a gear, a belt), a linear one of joints, or a polynomial."""
    losses = read(document, element, COUPLING)  # URDF+ files give a type, which changes nothing
    name = document.text(element, "name")
    terms = [child for child in element if child.tag == "joint"]
    parts = read_parts(document, element, _COUPLING_PARTS, frozenset(("joint",)))
    source = document.source(element, f"coupling '{name}'")
    values = read(document, parts.get("offset"), OFFSET)
    if (polynomial := parts.get("polynomial")) is not None:
        if terms or len(parts) > 1:
            raise document.error(
                polynomial, "a coupling by <polynomial> has nothing else; write two couplings"
            )
        if losses:
            raise document.error(element, "a coupling by <polynomial> is no gear: it has no losses")
        return PolynomialCoupling(name, *_polynomial(document, polynomial), source)
    values |= losses
    if not terms:
        if "predecessor" not in parts and "successor" not in parts:
            raise document.error(
                element,
                "couples nothing: it needs <predecessor link> and <successor link>, "
                "<joint name ratio> elements, or <polynomial joint of coefficients>",
            )
        one, other = (read_linked(document, element, parts, tag) for tag in ENDS)
        values |= read(document, parts.get("ratio"), RATIO)
        return LinkCoupling(name, one, other, source=source, **values)
    if wrong := [tag for tag in ("predecessor", "successor", "ratio") if tag in parts]:
        raise document.error(
            parts[wrong[0]],
            f"<{wrong[0]}> belongs to a coupling of links and <joint> to one of joints; write two "
            "couplings (the ratio of a joint is an attribute of <joint>)",
        )
    joints = tuple(read_term(document, term) for term in terms)
    return JointCoupling(name, joints, source=source, **values)


def _polynomial(document: Document, element: Element) -> tuple[str, str, tuple[float, ...]]:
    """Read ``<polynomial joint of coefficients>``."""
    document.expect(element, frozenset(_POLYNOMIAL))
    joint, of, text = (document.text(element, name) for name in _POLYNOMIAL)
    count = len(text.replace(",", " ").split())
    if count < 2:
        raise document.error(element, "needs two coefficients at least: a constant and a slope")
    coefficients = list(document.series(element, "coefficients", count))
    while len(coefficients) > 2 and not coefficients[-1]:  # drop zero leading coefficients
        coefficients.pop()
    return joint, of, tuple(coefficients)


def add_coupling(root: Element, coupling: CouplingElement) -> None:
    """``<coupling>``."""
    element = add(root, "coupling", name=coupling.name)
    write(element, COUPLING, coupling)
    if isinstance(coupling, LinkCoupling):
        add(element, "predecessor", link=coupling.predecessor)
        add(element, "successor", link=coupling.successor)
        write(add(element, RATIO.tag), RATIO, coupling)
    elif isinstance(coupling, PolynomialCoupling):
        add(
            element, "polynomial",
            joint=coupling.joint, of=coupling.of, coefficients=numbers(coupling.coefficients),
        )  # fmt: skip
        return
    else:
        add_terms(element, coupling.terms)
    add_numbers(element, OFFSET, coupling)
