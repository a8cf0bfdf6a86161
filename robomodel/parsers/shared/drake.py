"""Drake's springs, as its URDF and SDF say them alike.

Sources: Drake's reference of its extensions, ``MultibodyPlant::AddTendonConstraint``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from robomodel.description import Anchor, JointCoupling, JointSpring, Spring
from robomodel.errors import DescriptionError
from robomodel.parsers.xml import Document, Element, shown

LINEAR_SPRING = "drake:linear_spring_damper"
TENDON = "drake:tendon_constraint"
_SPRING_NUMBERS = ("free_length", "stiffness", "damping")
_TENDON_NUMBERS = {  # and what each is where it is not given
    "offset": 0.0,
    "lower_limit": -math.inf,
    "upper_limit": math.inf,
    "stiffness": math.inf,
    "damping": 0.0,
}


def part_of(document: Document, element: Element, tag: str) -> Element:
    """The child of this tag, which must be there."""
    for child in element:
        if shown(child) == tag:
            return child
    raise document.error(element, f"<{shown(element)}> needs a <{tag}>")


class Number(Protocol):
    """What reads the number that an element holds: as an attribute in URDF, as a text in SDF."""

    def __call__(self, element: Element, /, *, infinite: bool = False) -> float:
        """The number, finite unless it may be ``infinite``."""


def linear_spring(
    document: Document, element: Element, name: str, ends: Sequence[Anchor], number: Number
) -> Spring:
    """``<drake:linear_spring_damper>`` between points of two bodies."""
    parts = (part_of(document, element, f"{LINEAR_SPRING}_{word}") for word in _SPRING_NUMBERS)
    length, stiffness, damping = map(number, parts)
    source = document.source(element, f"<{LINEAR_SPRING}>")
    if min(length, stiffness, damping) < 0.0:
        raise DescriptionError("its free length, stiffness or damping is negative", source)
    return Spring(name, ends[0], ends[1], stiffness, length, damping, source)


def tendon(
    document: Document,
    element: Element,
    name: str,
    joint: Callable[[Element], str],
    number: Number,
) -> JointSpring | JointCoupling | None:
    """``<drake:tendon_constraint>``: lower ≤ Σ a q + offset ≤ upper, held by a spring and damper.

    ``joint`` gives the joint that an element names. None where the bounds leave room between them,
    so that it acts like a stop, which no word says.
    """
    source = document.source(element, f"<{TENDON}>")
    terms, numbers = [], dict(_TENDON_NUMBERS)
    for child in element:
        word = shown(child).removeprefix(f"{TENDON}_")
        if word == "joint":
            terms.append((joint(child), document.number(child, "a")))
        elif word in numbers:
            numbers[word] = number(child, infinite=True)
        else:
            document.unknown(child, [f"{TENDON}_{each}" for each in ("joint", *numbers)])
    lower, upper, stiffness = (numbers[w] for w in ("lower_limit", "upper_limit", "stiffness"))
    if not terms:
        raise DescriptionError("names no joint; give it joints and coefficients", source)
    if math.isnan(sum(numbers.values())) or lower > upper:
        raise DescriptionError(
            f"its limits [{lower:g}, {upper:g}] leave nothing in between", source
        )
    if min(stiffness, numbers["damping"]) < 0.0:
        raise DescriptionError("its stiffness or damping is negative", source)
    if lower < upper:
        document.suspect(
            element,
            f"the tendon constraint is left out: between its limits {lower:g} and {upper:g} it "
            "lets joints move freely, which no word says",
        )
        return None
    rest = lower - numbers["offset"]
    if stiffness == math.inf:
        return JointCoupling(name, tuple(terms), rest, source)
    damping = numbers["damping"]
    return JointSpring(name, tuple(terms), stiffness, rest, damping, source=source)
