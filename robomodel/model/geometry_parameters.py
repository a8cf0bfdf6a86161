"""Parameters of geometry by name, and descriptions by other values of them: scalars of any kind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from robomodel.description import (
    Anchor,
    CouplingElement,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    LinkCoupling,
    Loop,
    Mimic,
    PolynomialCoupling,
    Pose,
    Rows3,
    Spring,
)
from robomodel.description.poses import rows3
from robomodel.errors import DescriptionError, Source
from robomodel.model.constraints import Distance
from robomodel.model.elements import Coupling
from robomodel.model.graph import WORLD
from robomodel.model.springs import check_passive
from robomodel.scalars import Scalar, Vector, div, is_number, is_one, select
from robomodel.spatial import ZERO, Transform, about_axis, from_quaternion, matmul
from robomodel.spatial.logarithms import turned

if TYPE_CHECKING:
    from robomodel.model.model import Model

AXES = ("x", "y", "z")
TURNS = ("rx", "ry", "rz")
SPRINGS = ("stiffness", "reference", "damping", "friction")
"""Of a spring; the reference of one between points is its ``length``, and it has no friction."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a parameter of geometry stands: of the joint, loop or coupling ``owner``, which number.

    ``entry``: of an "origin" x, y, z, then the turn's; of an anchor 0, 1 or 2; of a "coupling" the
    term. Couplings are numbered as the model's are. Of the springs of a "joint" or "loop", and of a
    "spring" between points or over joints, it is the place in :data:`SPRINGS`.
    """

    kind: Literal[
        "origin", "predecessor", "successor", "length", "coupling", "gravity",
        "joint", "loop", "spring",
    ]  # fmt: skip
    owner: str | int
    entry: int = 0


def places(model: Model) -> Iterator[tuple[str, Place, float]]:
    """Names, what they stand for, and the model's values.

    A rod's length is that of the model, where a file gives none.
    """
    for joint in model.description.joints:
        for i, (axis, x) in enumerate(zip(AXES, joint.origin.xyz, strict=True)):
            yield f"{joint.name}.{axis}", Place("origin", joint.name, i), float(x)
        for i, axis in enumerate(TURNS, 3):
            yield f"{joint.name}.{axis}", Place("origin", joint.name, i), 0.0
    lengths = rods(model)
    for loop in model.description.loops:
        ends: tuple[tuple[Literal["predecessor", "successor"], Anchor], ...] = (
            ("predecessor", loop.predecessor),
            ("successor", loop.successor),
        )
        for end, anchor in ends:
            for i, (axis, x) in enumerate(zip(AXES, anchor.origin.xyz, strict=True)):
                yield f"{loop.name}.{end}.{axis}", Place(end, loop.name, i), float(x)
        if loop.name in lengths:
            yield f"{loop.name}.length", Place("length", loop.name), lengths[loop.name]
    for n, coupling in enumerate(model.couplings):
        if not coupling.coefficients:
            for i, (name, k) in enumerate(coupling.terms):
                yield f"{coupling.name}.{name}", Place("coupling", n, i), float(k)
    yield from _springs(model)
    for i, axis in enumerate(AXES):
        yield f"gravity.{axis}", Place("gravity", "", i), float(model.gravity[i])


def _springs(model: Model) -> Iterator[tuple[str, Place, float]]:
    """Of springs that the file gives; ``name.spring.stiffness`` where a joint has their name."""
    joints = {joint.name for joint in model.joints}
    for joint in model.joints:
        if joint.stiffness:
            for i, kind in enumerate(SPRINGS[: 2 if joint.nv == 1 else 1]):
                yield f"{joint.name}.{kind}", Place("joint", joint.name, i), getattr(joint, kind)
    for spring in model.springs:
        owner: Literal["loop", "spring"] = "loop" if spring.kind in ("turn", "slide") else "spring"
        name = f"{spring.name}.spring" if spring.name in joints else spring.name
        for i, kind in enumerate(SPRINGS):
            between = spring.kind == "points"
            if not (between and kind == "friction"):
                said = "length" if between and kind == "reference" else kind
                yield f"{name}.{said}", Place(owner, spring.name, i), float(getattr(spring, kind))


def rods(model: Model) -> dict[str, float]:
    """The lengths of rods."""
    return {
        loop.name: row.length
        for cluster in model.clusters
        for loop in cluster.geometry.loop_joints
        for row in loop.rows
        if isinstance(row, Distance)
    }


def described(
    model: Model, values: Mapping[Place, Scalar]
) -> tuple[Description, dict[str, Scalar]]:
    """The model's description by other values, and angles of revolute joints beside it.

    Such an angle is what turns a joint about its own axis, where it is no number. Lengths of rods
    and springs for which the file has none stay those of the model.
    """
    by_owner: dict[tuple[str, str | int], dict[int, Scalar]] = {}
    for place, value in values.items():
        by_owner.setdefault((place.kind, place.owner), {})[place.entry] = value
    description = model.description
    offsets: dict[str, Scalar] = {}
    joints = {joint.name: joint for joint in description.joints}
    for name, joint in joints.items():
        if (numbers := by_owner.get(("origin", name))) is not None:
            if (along := _own_axis(joint, numbers)) is not None:
                offsets[name] = along
                numbers = {i: x for i, x in numbers.items() if i < 3}
            joints[name] = replace(joint, origin=_moved(joint.origin, numbers))
        if (numbers := by_owner.get(("joint", name))) is not None:
            joints[name] = replace(joints[name], **_sprung(numbers, joint.source))
    lengths = rods(model)
    loops = []
    for loop in description.loops:
        length = by_owner.get(("length", loop.name), {}).get(0, lengths.get(loop.name, loop.length))
        if length is not None:
            length = _positive(length, loop)
        loops.append(
            replace(
                loop,
                predecessor=_anchor(loop.predecessor, by_owner.get(("predecessor", loop.name), {})),
                successor=_anchor(loop.successor, by_owner.get(("successor", loop.name), {})),
                length=length,
                **_sprung(by_owner.get(("loop", loop.name), {}), loop.source),
            )
        )
    resting = {spring.name: spring.reference for spring in model.springs}
    springs: list[Spring | JointSpring] = []
    for each in description.springs:
        numbers = by_owner.get(("spring", each.name), {})
        if isinstance(each, Spring):
            length = numbers.get(1, resting[each.name] if each.length is None else each.length)
            rest = {i: x for i, x in numbers.items() if i != 1}
            springs.append(replace(each, length=length, **_sprung(rest, each.source)))
        else:
            springs.append(replace(each, **_sprung(numbers, each.source)))
    gravity = list(model.gravity)
    for i, x in by_owner.get(("gravity", ""), {}).items():
        gravity[i] = x
    description = replace(
        description,
        joints=tuple(joints.values()),
        loops=tuple(loops),
        springs=tuple(springs),
        gravity=(gravity[0], gravity[1], gravity[2]),
    )
    for n, coupling in enumerate(model.couplings):
        if (changed := by_owner.get(("coupling", n))) is not None:
            description = _geared(description, model, n, coupling, changed)
    return description, offsets


def _sprung(numbers: Mapping[int, Scalar], source: Source) -> dict[str, Scalar]:
    """The fields of a spring, by their places; an error of impossible numbers."""
    fields = {SPRINGS[i]: x for i, x in numbers.items()}
    check_passive(source, **fields)
    return fields


def _positive(length: Scalar, rod: Loop) -> Scalar:
    """A rod's length; not-a-number where it is not positive, an error of numbers."""
    if not is_number(length):
        return select(-length, length, math.nan)
    if length > 0.0:
        return length
    raise DescriptionError(f"its length is {length:g}; give it a positive one", rod.source)


def _own_axis(joint: Joint, numbers: Mapping[int, Scalar]) -> Scalar | None:
    """The angle of a turn that is about a revolute joint's own axis, if that is all it is."""
    turns = {i - 3: x for i, x in numbers.items() if i >= 3 and not (is_number(x) and x == 0.0)}
    if joint.type not in ("revolute", "continuous") or len(turns) != 1:
        return None
    ((k, angle),) = turns.items()
    if is_number(angle) or any(x for i, x in enumerate(joint.axis) if i != k):
        return None
    return angle if joint.axis[k] > 0.0 else -angle


def _moved(origin: Pose, numbers: Mapping[int, Scalar]) -> Pose:
    """An origin with other numbers, turned further by R exp([r]×)."""
    x, y, z = (numbers.get(i, each) for i, each in enumerate(origin.xyz))
    turn = [numbers.get(i, 0.0) for i in range(3, 6)]
    if all(is_number(a) and a == 0.0 for a in turn):
        return Pose((x, y, z), origin.rotation)
    return Pose((x, y, z), rows3(matmul(origin.rotation, exponential(turn))))


def exponential(turn: Vector) -> Rows3:
    """exp([r]×), rows; about a coordinate axis where the others are zeros."""
    axes = [k for k in range(3) if not (is_number(turn[k]) and turn[k] == 0.0)]
    if len(axes) == 1:
        return Transform((about_axis(axes[0], turn[axes[0]]),), ZERO).matrix()
    x, y, z, w = turned((0.0, 0.0, 0.0, 1.0), turn)
    return from_quaternion(x, y, z, w).rows


def _anchor(anchor: Anchor, numbers: Mapping[int, Scalar]) -> Anchor:
    x, y, z = (numbers.get(i, each) for i, each in enumerate(anchor.origin.xyz))
    return replace(anchor, origin=Pose((x, y, z), anchor.origin.rotation)) if numbers else anchor


def _geared(
    description: Description,
    model: Model,
    n: int,
    coupling: Coupling,
    changed: Mapping[int, Scalar],
) -> Description:
    """The description with other coefficients of one coupling."""
    terms = tuple((name, changed.get(i, k)) for i, (name, k) in enumerate(coupling.terms))
    if coupling.kind == "mimic":
        (_, own), (_, leader) = terms

        def geared(joint: Joint) -> Joint:
            if joint.name != coupling.name or joint.mimic is None:
                return joint
            mimic = joint.mimic
            scaled = Mimic(mimic.joint, -div(leader, own), div(mimic.offset, own))
            return replace(joint, mimic=scaled)

        return replace(description, joints=tuple(map(geared, description.joints)))
    at = [i for i, each in enumerate(model.couplings) if each.kind != "mimic"].index(n)
    couplings = list(description.couplings)
    element = couplings[at]
    couplings[at] = _element(model, element, terms)
    return replace(description, couplings=tuple(couplings))


def _element(
    model: Model, element: CouplingElement, terms: tuple[tuple[str, Scalar], ...]
) -> CouplingElement:
    """The element with these coefficients: as it is written where it can be."""
    match element:
        case LinkCoupling():
            ahead = joints_above(model, element.successor)
            behind = [k for name, k in terms if name not in ahead]
            alike = all(k is behind[0] or (is_number(k) and k == behind[0]) for k in behind)
            if alike and all(is_one(k) for name, k in terms if name in ahead):
                return replace(element, ratio=-behind[0])
        case PolynomialCoupling() if is_one(terms[0][1]):
            return replace(element, coefficients=(element.offset, -terms[1][1]))
    return JointCoupling(element.name, terms, element.offset, element.source)


def joints_above(model: Model, link: str) -> list[str]:
    """The joints on the way from the root to a link."""
    body, result = model.frame(link).body, []
    while body != WORLD:
        result.append(model.joints[body].name)
        body = model.nodes[body].parent
    return result
