"""Springs and dampers between bodies, over joints, and at the joints that close loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from robomodel.description import (
    LOOP_COORDINATES,
    ONE_DOF,
    Description,
    JointSpring,
)
from robomodel.description import Loop as LoopElement
from robomodel.description import Spring as SpringElement
from robomodel.errors import DescriptionError, Source, did_you_mean
from robomodel.mechanism.constraints import BodyAnchor
from robomodel.mechanism.graph import SpanningTree
from robomodel.mechanism.tree_constraints import anchored, distance_at_zero, loop_frame
from robomodel.scalars import Scalar, held, is_number, value_of
from robomodel.spatial import UNIT
from robomodel.tolerances import NOTHING

SpringKind = Literal["points", "joints", "turn", "slide"]


@dataclass(frozen=True, slots=True)
class Spring:
    """A spring with a damper and dry friction on one length or angle x of the mechanism.

    Its force on x is -stiffness · (x - reference) - damping · ẋ, and that of dry friction at most
    ``friction``. Of x - reference only the part beyond half the ``deadband`` counts. ``kind`` says
    what x is:

    - "points": the distance of two points, one on each link;
    - "joints": Σ coefficient · q(joint) over ``terms``;
    - "turn" [rad], "slide" [m]: the motion of a loop's successor in its predecessor, about or along
      the loop's axis.

    Links are "" and ``terms`` is empty where they do not apply. ``ends`` and ``bodies`` (those of
    the terms) are what the recursions need.
    """

    name: str
    kind: SpringKind
    predecessor: str
    successor: str
    terms: tuple[tuple[str, float], ...]
    stiffness: float
    reference: float
    damping: float
    friction: float
    ends: tuple[BodyAnchor, BodyAnchor] | None = None
    bodies: tuple[int, ...] = ()
    deadband: float = 0.0


def find_springs(description: Description, tree: SpanningTree) -> tuple[Spring, ...]:
    """The springs that a description names, then those at its loops' joints."""
    moved_by = {joint.name: body for body, joint in enumerate(tree.joints)}
    springs = [
        _between(each, tree) if isinstance(each, SpringElement) else _over(each, tree, moved_by)
        for each in description.springs
    ]
    for loop in description.loops:
        numbers = (loop.stiffness, loop.reference, loop.damping, loop.friction)
        check_passive(loop.source, stiffness=loop.stiffness, damping=loop.damping,
                      friction=loop.friction, reference=loop.reference,
                      deadband=loop.deadband)  # fmt: skip
        if all(is_number(x) and not x for x in (loop.stiffness, loop.damping, loop.friction)):
            continue
        if loop.type not in LOOP_COORDINATES:
            raise DescriptionError(
                f"a {loop.type} loop leaves no single coordinate on which damping, friction or a "
                "spring could act; use a <spring> between two points, or leave them out",
                loop.source,
            )
        ends = (
            anchored(loop.predecessor, loop_frame(loop.axis, loop.source), tree),
            anchored(loop.successor, loop_frame(loop.axis, loop.source), tree),
        )
        kind: SpringKind = "slide" if loop.type == "prismatic" else "turn"
        names = (loop.predecessor.link, loop.successor.link)
        springs.append(Spring(loop.name, kind, *names, (), *numbers, ends, deadband=loop.deadband))
    return tuple(springs)


def tied_links(description: Description) -> set[str]:
    """The links at the ends of loops, and of springs between points."""
    springs = [each for each in description.springs if isinstance(each, SpringElement)]
    ties: list[LoopElement | SpringElement] = [*description.loops, *springs]
    return {end.link for tie in ties for end in (tie.predecessor, tie.successor)}


def check_passive(source: Source, **numbers: Scalar) -> None:
    """Raises DescriptionError for a number that is not finite, or negative where it may not be."""
    for name, value in numbers.items():
        if not is_number(value):
            continue
        if not math.isfinite(value_of(value)) or (
            value < 0.0 and name not in ("reference", "length")
        ):
            raise DescriptionError(
                f"its {name} is {value:g}; give it a finite number"
                + ("" if name in ("reference", "length") else ", not negative"),
                source,
            )


def _between(spring: SpringElement, tree: SpanningTree) -> Spring:
    """A spring between two points."""
    source = spring.source
    check_passive(source, stiffness=spring.stiffness, damping=spring.damping)
    ends = (
        anchored(spring.predecessor, UNIT, tree),
        anchored(spring.successor, UNIT, tree),
    )
    first, second = spring.predecessor.link, spring.successor.link
    if ends[0].body == ends[1].body:
        raise DescriptionError(
            f"joins '{first}' to itself"
            if first == second
            else f"joins '{first}' and '{second}', which no moving joint separates"
            "; give it two links that move against each other",
            source,
        )
    apart = distance_at_zero(spring.predecessor, spring.successor, tree)
    length = apart if spring.length is None else spring.length
    check_passive(source, length=length)
    if is_number(length) and length < 0.0:
        raise DescriptionError(f"its length {length:g} is negative", source)
    if is_number(length) and length == 0.0 and is_number(apart) and apart <= NOTHING:
        raise DescriptionError(
            "its ends coincide at the zero configuration and its rest length is zero, so it has "
            'no direction there; give length="…", or move an end',
            source,
        )
    return Spring(
        spring.name,
        "points",
        first,
        second,
        (),
        spring.stiffness,
        held(length),
        spring.damping,
        0.0,
        ends,
    )


def _over(spring: JointSpring, tree: SpanningTree, moved_by: Mapping[str, int]) -> Spring:
    """A spring over joints; ``moved_by``: the body that each joint moves."""
    source = spring.source
    check_passive(source, stiffness=spring.stiffness, damping=spring.damping,
                  friction=spring.friction, reference=spring.reference)  # fmt: skip
    terms: dict[str, float] = {}
    for name, ratio in spring.terms:
        if name not in moved_by:
            raise DescriptionError(
                f"there is no moving joint '{name}'{did_you_mean(name, moved_by)}", source
            )
        kind = tree.joints[moved_by[name]].type
        if kind not in ONE_DOF:
            raise DescriptionError(
                f"acts on joint '{name}', which is {kind}; it can act on revolute, continuous, "
                "prismatic and screw joints",
                source,
            )
        terms[name] = terms.get(name, 0.0) + ratio
    terms = {name: ratio for name, ratio in terms.items() if ratio}
    if not terms:
        raise DescriptionError("acts on no joint; give it joints and ratios", source)
    return Spring(
        spring.name, "joints", "", "", tuple(terms.items()), spring.stiffness, spring.reference,
        spring.damping, spring.friction, bodies=tuple(moved_by[name] for name in terms),
    )  # fmt: skip
