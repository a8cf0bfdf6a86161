"""Drake's springs, as its URDF and SDF say them alike: numbers in, words of a description out.

Sources: Drake's reference of its extensions, ``MultibodyPlant::AddTendonConstraint``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from robomodel.description import Anchor, JointCoupling, JointSpring, Spring
from robomodel.errors import DescriptionError, Source
from robomodel.parsers.xml import Document, Element, shown

LINEAR_SPRING = "drake:linear_spring_damper"
TENDON = "drake:tendon_constraint"
SPRING_NUMBERS = ("free_length", "stiffness", "damping")
TENDON_NUMBERS = {
    "offset": 0.0,
    "lower_limit": -math.inf,
    "upper_limit": math.inf,
    "stiffness": math.inf,
    "damping": 0.0,
}
"""The numbers of a tendon constraint and what each is where it is not given."""


def part_of(document: Document, element: Element, tag: str) -> Element:
    """The child of this tag, which must be there."""
    for child in element:
        if shown(child) == tag:
            return child
    raise document.error(element, f"<{shown(element)}> needs a <{tag}>")


def linear_spring(
    name: str, ends: Sequence[Anchor], numbers: Sequence[float], source: Source
) -> Spring:
    """``<drake:linear_spring_damper>`` between points of two bodies."""
    length, stiffness, damping = numbers
    if min(numbers) < 0.0:
        raise DescriptionError("its free length, stiffness or damping is negative", source)
    return Spring(name, ends[0], ends[1], stiffness, length, damping, source)


def tendon(
    name: str,
    terms: Sequence[tuple[str, float]],
    numbers: Mapping[str, float],
    source: Source,
) -> JointSpring | JointCoupling | None:
    """``<drake:tendon_constraint>``: lower ≤ Σ a q + offset ≤ upper, held by a spring and damper.

    None where the bounds leave room between them, so that it acts like a stop, which no word says.
    """
    lower, upper = numbers["lower_limit"], numbers["upper_limit"]
    if not terms:
        raise DescriptionError("names no joint; give it joints and coefficients", source)
    if math.isnan(sum(numbers.values())) or lower > upper:
        raise DescriptionError(
            f"its limits [{lower:g}, {upper:g}] leave nothing in between", source
        )
    if min(numbers["stiffness"], numbers["damping"]) < 0.0:
        raise DescriptionError("its stiffness or damping is negative", source)
    if lower < upper:
        return None
    rest = lower - numbers["offset"]
    if numbers["stiffness"] == math.inf:
        return JointCoupling(name, tuple(terms), rest, source)
    return JointSpring(name, tuple(terms), numbers["stiffness"], rest, numbers["damping"],
                       source=source)  # fmt: skip


def room(bounds: Mapping[str, float]) -> str:
    """What is said of a tendon constraint that is left out."""
    lower, upper = bounds["lower_limit"], bounds["upper_limit"]
    return (
        f"the tendon constraint is left out: between its limits {lower:g} and {upper:g} it lets "
        "joints move freely, which no word says"
    )
