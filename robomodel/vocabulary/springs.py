"""Springs, damping and friction: of joints, of loops, between links, over several joints; Drake's.

Drake's elements, which are alike in its URDF and SDF, follow its reference of extensions,
``detail_urdf_parser.cc``, ``detail_common.cc``, ``MultibodyPlant::AddTendonConstraint``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lxml import etree

from robomodel.description import (
    LOOP_COORDINATES,
    ONE_DOF,
    Anchor,
    CouplingElement,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    LinkCoupling,
    Loop,
    PolynomialCoupling,
    Pose,
    Spring,
    Vec3,
)
from robomodel.description.poses import distance, unit
from robomodel.errors import DescriptionError
from robomodel.spatial import apply, plus
from robomodel.tolerances import HUGE, SAME
from robomodel.vocabulary.frames import (
    ENDS,
    add_ends,
    add_terms,
    path_terms,
    read_ends,
    read_parts,
    read_term,
)
from robomodel.vocabulary.schema import (
    DYNAMICS,
    FRICTION_LAW,
    SPRING,
    Attribute,
    Declaration,
    Fields,
    add,
    number,
    numbers,
    read,
    write,
)
from robomodel.vocabulary.xml import CUSTOM, DRAKE, Document, Element, shown

_SPRING_PARTS = frozenset(ENDS)


def loop_dynamics(document: Document, element: Element | None, kind: str) -> Fields:
    """Read ``<dynamics>`` of a loop; raises unless the loop leaves one coordinate."""
    if element is not None and kind not in LOOP_COORDINATES:
        raise document.error(
            element,
            f"a {kind} loop leaves no single coordinate on which damping, friction or a spring "
            "could act; use a <spring> between two points, or leave <dynamics> out",
        )
    return read(document, element, DYNAMICS)


def has_dynamics(record: Joint | Loop) -> bool:
    """True if damping, friction or a spring acts on a joint or a loop."""
    law = friction_law(record) if isinstance(record, Joint) else ""
    return bool(record.damping or record.friction or record.stiffness or law)


def friction_law(record: Joint | Fields) -> str:
    """The words that a joint's ``<dynamics>`` has beside damping, friction and its spring."""
    named = {each.field: each for each in FRICTION_LAW}
    values = record if isinstance(record, dict) else {n: getattr(record, n) for n in named}
    return ", ".join(n for n, each in named.items() if values.get(n, each.default) != each.default)


def lost_law(joint: Joint) -> list[str]:
    """The parts of a joint's friction that a format has no words for."""
    words = friction_law(joint)
    means = "" if evened(joint) is joint else ", whose means of both directions it has"
    return [f"{words} of the joint '{joint.name}'{means}"] if words else []


def evened(joint: Joint) -> Joint:
    """The joint with damping and dry friction that are the means of both directions."""
    back = joint.damping_reverse, joint.friction_reverse
    if back == (None, None):
        return joint
    damping, friction = (
        usual if other is None else 0.5 * (usual + other)
        for usual, other in zip((joint.damping, joint.friction), back, strict=True)
    )
    return replace(
        joint, damping=damping, friction=friction, damping_reverse=None, friction_reverse=None
    )


def read_spring(document: Document, element: Element) -> Spring | JointSpring:
    """Read ``<spring>`` between points of two links, or over a sum of joints."""
    values = read(document, element, SPRING)
    name = document.text(element, "name")
    source = document.source(element, f"spring '{name}'")
    terms = [child for child in element if child.tag == "joint"]
    parts = read_parts(document, element, _SPRING_PARTS, frozenset(("joint",)))
    if "stiffness" not in values and "damping" not in values and "friction" not in values:
        raise document.error(element, 'a spring needs stiffness="…" [N/m or N m/rad], or damping')
    for word in ("length",) if terms else ("reference", "friction"):
        if word in values:
            raise document.error(
                element,
                f"'{word}' belongs to a spring "
                f"{'between two links' if terms else 'over joints'}; "
                f"{'its rest position is reference' if terms else 'its rest length is length'}",
            )
    if terms and parts:
        raise document.error(
            element, "a spring is between two links or over joints, not both; write two springs"
        )
    if terms:
        joints = tuple(read_term(document, term) for term in terms)
        return JointSpring(name, joints, source=source, **values)
    return Spring(name, *read_ends(document, element, parts), source=source, **values)


def add_spring(root: Element, spring: Spring | JointSpring) -> Element:
    """Append a spring between two points or over joints."""
    element = add(root, "spring", name=spring.name)
    write(element, SPRING, spring)
    if isinstance(spring, Spring):
        add_ends(element, spring)
    else:
        add_terms(element, spring.terms)
    return element


def rest_length(element: Spring | Loop, at_zero: dict[str, Pose]) -> float:
    """The length [m] of a rod or a spring between points, by default their distance at zero."""
    if element.length is not None:
        return element.length
    return distance(element.predecessor, element.successor, at_zero)


LINEAR_SPRING = "drake:linear_spring_damper"
TENDON = "drake:tendon_constraint"
BALL_CONSTRAINT = "drake:ball_constraint"
_LINEAR = Declaration(
    LINEAR_SPRING,
    (
        Attribute("length", "m", "rest length", word="free_length", bound="≥ 0", always=True),
        Attribute("stiffness", "N/m", "stiffness", bound="≥ 0", always=True),
        Attribute("damping", "N s/m", "damping", bound="≥ 0", always=True),
    ),
)
_TENDON_NUMBERS = {  # with their defaults
    "offset": 0.0,
    "lower_limit": -math.inf,
    "upper_limit": math.inf,
    "stiffness": math.inf,
    "damping": 0.0,
}


@dataclass(frozen=True, slots=True)
class Notation:
    """Where a format holds values, in attributes (URDF) or texts (SDF), and names.

    Each field is a function of the element that holds the value.
    """

    number: Callable[..., float]  # with infinite=True, infinite numbers are allowed
    point: Callable[[Element], Vec3]
    body: Callable[[Element], str]
    joint: Callable[[Element], str]


def part_of(document: Document, element: Element, tag: str) -> Element:
    """The child with this tag; raises if it is missing."""
    for child in element:
        if shown(child) == tag:
            return child
    raise document.error(element, f"<{shown(element)}> needs a <{tag}>")


def _ends(document: Document, element: Element, notation: Notation) -> tuple[Anchor, Anchor]:
    """The ends: a point P of a body A and a point Q of a body B."""
    prefix, ends = shown(element), []
    for body, point in (("body_A", "p_AP"), ("body_B", "p_BQ")):
        link, at = (part_of(document, element, f"{prefix}_{word}") for word in (body, point))
        ends.append(Anchor(notation.body(link), Pose(notation.point(at))))
    return ends[0], ends[1]


def ball_constraint(document: Document, element: Element, name: str, notation: Notation) -> Loop:
    """``<drake:ball_constraint>``: a point of body A coincides with a point of body B."""
    source = document.source(element, f"<{BALL_CONSTRAINT}>")
    return Loop(name, "spherical", *_ends(document, element, notation), source=source)


def linear_spring(document: Document, element: Element, name: str, notation: Notation) -> Spring:
    """``<drake:linear_spring_damper>`` between points of two bodies."""
    ends = _ends(document, element, notation)
    parts = {word: part_of(document, element, f"{LINEAR_SPRING}_{word}") for word in _LINEAR.names}
    values: Fields = {
        _LINEAR.by_name[word].field: notation.number(part) for word, part in parts.items()
    }
    source = document.source(element, f"<{LINEAR_SPRING}>")
    if fault := _LINEAR.fault(values):
        raise DescriptionError(fault, source)
    return Spring(name, *ends, source=source, **values)


def add_linear_spring(
    root: Element, spring: Spring, bodies: Sequence[str], points: Sequence[Vec3], *, as_text: bool
) -> None:
    """Append ``<drake:linear_spring_damper>``; values are attributes in URDF, texts in SDF.

    ``bodies`` and ``points`` are the ends in the terms of the file. In SDF, the name is an
    attribute of this package's own namespace.
    """
    element = etree.SubElement(root, f"{{{DRAKE}}}linear_spring_damper")
    element.set(f"{{{CUSTOM}}}name" if as_text else "name", spring.name)
    values = {
        "body_A": bodies[0],
        "p_AP": numbers(points[0]),
        "body_B": bodies[1],
        "p_BQ": numbers(points[1]),
        **{each.name: number(value) for each, value in _LINEAR.of(spring).items()},
    }
    for word, value in values.items():
        part = etree.SubElement(element, f"{{{DRAKE}}}linear_spring_damper_{word}")
        if as_text:
            part.text = value
        else:
            part.set("name" if word.startswith("body") else "value", value)


def sum_of(coupling: CouplingElement, description: Description) -> JointCoupling | None:
    """A coupling as a sum of joints of one freedom; None if it is none, or is curved."""
    match coupling:
        case LinkCoupling():
            above = {joint.child: joint for joint in description.joints}
            terms = path_terms(coupling, above)
            if any(joint.type not in ONE_DOF for joint, _ in terms):
                return None
            named = tuple((joint.name, k) for joint, k in terms)
            return JointCoupling(coupling.name, named, coupling.offset, coupling.source)
        case PolynomialCoupling():
            if coupling.curved:
                return None
            return JointCoupling(coupling.name, coupling.terms, coupling.offset, coupling.source)
    return coupling


def held_points(loop: Loop) -> tuple[Vec3, ...]:
    """Points of a loop's frame that meet those of the other end; none if these do not say it."""
    match loop.type:
        case "spherical":
            return ((0.0, 0.0, 0.0),)
        case "revolute" | "continuous":
            return (0.0, 0.0, 0.0), unit(loop.axis)
        case "fixed":
            return (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    return ()


def add_drake_ties(root: Element, description: Description) -> None:
    """Append couplings and loops of URDF in Drake's words, under the names that they have.

    Drake holds a tendon between limits only from the step on that begins outside, so that equal
    ones would let go in the first step: two tendons push against each other. Its parser takes no
    infinite numbers.
    """
    for coupling in description.couplings:
        if (each := sum_of(coupling, description)) is None:
            continue
        for lower, upper in ((SAME, HUGE), (-HUGE, -SAME)):
            tie = _named(root, TENDON, coupling.name)
            for joint, k in each.terms:
                _part(tie, "joint", name=joint, a=number(k))
            values = {"offset": -each.offset, "lower_limit": lower, "upper_limit": upper,
                      "stiffness": HUGE, "damping": 0.0}  # fmt: skip
            for word, value in values.items():
                _part(tie, word, value=number(value))
    for loop in description.loops:
        for point in held_points(loop):
            tie = _named(root, BALL_CONSTRAINT, loop.name)
            ends = {"A": loop.predecessor, "B": loop.successor}
            for letter, end in ends.items():
                _part(tie, f"body_{letter}", name=end.link)
            for letter, end in zip(("AP", "BQ"), ends.values(), strict=True):
                at = plus(end.origin.xyz, apply(end.origin.rotation, point))
                _part(tie, f"p_{letter}", value=numbers(at))


def _named(root: Element, tag: str, name: str) -> Element:
    """An element of Drake's appended to the robot, with a name, which Drake passes over."""
    return etree.SubElement(root, f"{{{DRAKE}}}{tag.removeprefix('drake:')}", name=name)


def _part(parent: Element, word: str, **values: str) -> None:
    """A part of an element of Drake's, whose tag begins with the element's."""
    etree.SubElement(parent, f"{parent.tag}_{word}", values)


def tendon(
    document: Document, element: Element, name: str, notation: Notation
) -> JointSpring | JointCoupling | None:
    """``<drake:tendon_constraint>``: lower ≤ Σ a q + offset ≤ upper, kept by a spring and damper.

    Returns None if lower < upper: it then acts like a stop, for which there is no record.
    """
    source = document.source(element, f"<{TENDON}>")
    terms, values = [], dict(_TENDON_NUMBERS)
    for child in element:
        word = shown(child).removeprefix(f"{TENDON}_")
        if word == "joint":
            terms.append((notation.joint(child), document.number(child, "a")))
        elif word in values:
            values[word] = notation.number(child, infinite=True)
        else:
            document.unknown(child, [f"{TENDON}_{each}" for each in ("joint", *values)])
    lower, upper, stiffness = (values[w] for w in ("lower_limit", "upper_limit", "stiffness"))
    if not terms:
        raise DescriptionError("names no joint; give it joints and coefficients", source)
    if math.isnan(sum(values.values())) or lower > upper:
        raise DescriptionError(
            f"its limits [{lower:g}, {upper:g}] leave nothing in between", source
        )
    if min(stiffness, values["damping"]) < 0.0:
        raise DescriptionError("its stiffness or damping is negative", source)
    if lower < upper:
        document.warn_at(
            element,
            f"the tendon constraint is left out: between its limits {lower:g} and {upper:g} it "
            "lets joints move freely, for which there is no element",
        )
        return None
    rest = lower - values["offset"]
    if stiffness == math.inf:
        return JointCoupling(name, tuple(terms), rest, source)
    return JointSpring(name, tuple(terms), stiffness, rest, values["damping"], source=source)
