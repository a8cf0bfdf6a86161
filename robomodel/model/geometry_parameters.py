"""Parameters of geometry by name, and descriptions with other values, scalars of any kind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

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
from robomodel.description.inertias import rows_of
from robomodel.description.poses import rows3
from robomodel.errors import DescriptionError, Source
from robomodel.mechanism.constraints import Distance
from robomodel.mechanism.graph import path
from robomodel.mechanism.springs import check_passive
from robomodel.model.efficiencies import EFFICIENCIES
from robomodel.model.elements import Coupling
from robomodel.scalars import Scalar, Vector, div, held, is_number, is_one, select, value_of
from robomodel.spatial import ZERO, Transform, about_axis, from_quaternion, logarithms, matmul

if TYPE_CHECKING:
    from robomodel.model.model import Model

AXES = ("x", "y", "z")
TURNS = ("rx", "ry", "rz")
SPRINGS = ("stiffness", "reference", "damping", "friction")
"""A spring's numbers; one between points has its ``length`` as reference, and no friction."""


@dataclass(frozen=True, slots=True)
class Number:
    """The number of a description for which a parameter of geometry stands.

    ``owner`` is the name of a joint, loop or spring, or the index of a coupling in
    ``Model.couplings``. ``entry`` counts within it:

    - "origin": x, y, z, rx, ry, rz; "predecessor", "successor": x, y, z of the anchor;
    - "coupling": its terms, or its powers; "length" of a rod: 0; "gravity": x, y, z;
    - "joint", "loop": the numbers of its spring in :data:`SPRINGS`; "spring": those of a spring
      between points or over joints; "gear": the efficiencies of an actuator's gear.
    """

    kind: Literal[
        "origin", "predecessor", "successor", "length", "coupling", "gravity",
        "joint", "loop", "spring", "gear",
    ]  # fmt: skip
    owner: str | int
    entry: int = 0


def numbers_by_name(model: Model) -> Iterator[tuple[str, Number, float]]:
    """The parameters of geometry: name, number of the description, value.

    The length of a rod for which the file gives none is the model's.
    """
    for joint in model.description.joints:
        for i, (axis, x) in enumerate(zip(AXES, joint.origin.xyz, strict=True)):
            yield f"{joint.name}.{axis}", Number("origin", joint.name, i), float(x)
        for i, axis in enumerate(TURNS, 3):
            yield f"{joint.name}.{axis}", Number("origin", joint.name, i), 0.0
    lengths = rods(model)
    for loop in model.description.loops:
        ends: tuple[tuple[Literal["predecessor", "successor"], Anchor], ...] = (
            ("predecessor", loop.predecessor),
            ("successor", loop.successor),
        )
        for end, anchor in ends:
            for i, (axis, x) in enumerate(zip(AXES, anchor.origin.xyz, strict=True)):
                yield f"{loop.name}.{end}.{axis}", Number(end, loop.name, i), float(x)
        if loop.name in lengths:
            yield f"{loop.name}.length", Number("length", loop.name), lengths[loop.name]
    for n, coupling in enumerate(model.couplings):
        for i, (name, k) in enumerate(coefficients_of(coupling)):
            yield f"{coupling.name}.{name}", Number("coupling", n, i), value_of(k)
    yield from _springs(model)
    for each in model.actuators:
        for i, kind in enumerate(EFFICIENCIES if each.lossy else ()):
            yield f"{each.name}.{kind}", Number("gear", each.name, i), value_of(getattr(each, kind))
    for i, axis in enumerate(AXES):
        yield f"gravity.{axis}", Number("gravity", "", i), float(model.gravity[i])


def coefficients_of(coupling: Coupling) -> tuple[tuple[str, Scalar], ...]:
    """Named coefficients: each joint's of a linear coupling, ``c0``, ``c1``, … of a polynomial."""
    if coupling.coefficients:
        return tuple((f"c{power}", c) for power, c in enumerate(coupling.coefficients))
    return coupling.terms


def _springs(model: Model) -> Iterator[tuple[str, Number, float]]:
    """The parameters of springs; ``name.spring.stiffness`` where a joint has the spring's name."""
    joints = {joint.name for joint in model.joints}
    for joint in model.joints:
        if joint.stiffness:
            for i, kind in enumerate(SPRINGS[: 2 if joint.nv == 1 else 1]):
                yield f"{joint.name}.{kind}", Number("joint", joint.name, i), getattr(joint, kind)
    for spring in model.springs:
        owner: Literal["loop", "spring"] = "loop" if spring.kind in ("turn", "slide") else "spring"
        name = f"{spring.name}.spring" if spring.name in joints else spring.name
        for i, kind in enumerate(SPRINGS):
            between = spring.kind == "points"
            if not (between and kind == "friction"):
                word = "length" if between and kind == "reference" else kind
                yield f"{name}.{word}", Number(owner, spring.name, i), float(getattr(spring, kind))


def rods(model: Model) -> dict[str, float]:
    """The lengths of the model's rods, by loop."""
    return {
        loop.name: row.length
        for cluster in model.clusters
        for loop in cluster.geometry.loop_joints
        for row in loop.rows
        if isinstance(row, Distance)
    }


def described(
    model: Model, values: Mapping[Number, Scalar]
) -> tuple[Description, dict[str, Scalar]]:
    """The model's description with other values, and offsets of revolute joints' angles.

    An offset is a rotation of a joint about its own axis that is a traced scalar: as an offset it
    leaves the joint's frame constant. Lengths of rods and springs for which the file has none stay
    the model's.
    """
    by_owner: dict[tuple[str, str | int], dict[int, Scalar]] = {}
    for number, value in values.items():
        by_owner.setdefault((number.kind, number.owner), {})[number.entry] = value
    description = model.description
    offsets: dict[str, Scalar] = {}
    joints = {joint.name: joint for joint in description.joints}
    for name, joint in joints.items():
        if (numbers := by_owner.get(("origin", name))) is not None:
            if (along := _offset(joint, numbers)) is not None:
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
            springs.append(replace(each, length=held(length), **_sprung(rest, each.source)))
        else:
            springs.append(replace(each, **_sprung(numbers, each.source)))
    gravity = list(model.gravity)
    for i, x in by_owner.get(("gravity", ""), {}).items():
        gravity[i] = held(x)
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


def _sprung(numbers: Mapping[int, Scalar], source: Source) -> dict[str, Any]:
    """The fields of a spring from their indices in :data:`SPRINGS`, checked."""
    fields = {SPRINGS[i]: x for i, x in numbers.items()}
    check_passive(source, **fields)
    return fields


def _positive(length: Scalar, rod: Loop) -> float:
    """A rod's length. One that is not positive raises an error, or is not-a-number if traced."""
    if not is_number(length):
        return held(select(-length, length, math.nan))
    if length > 0.0:
        return length
    raise DescriptionError(f"its length is {length:g}; give it a positive one", rod.source)


def _offset(joint: Joint, numbers: Mapping[int, Scalar]) -> Scalar | None:
    """The angle of a traced rotation about a revolute joint's own axis alone; else None."""
    turns = {i - 3: x for i, x in numbers.items() if i >= 3 and not (is_number(x) and x == 0.0)}
    if joint.type not in ("revolute", "continuous") or len(turns) != 1:
        return None
    ((k, angle),) = turns.items()
    if is_number(angle) or any(x for i, x in enumerate(joint.axis) if i != k):
        return None
    return angle if joint.axis[k] > 0.0 else -angle


def _moved(origin: Pose, numbers: Mapping[int, Scalar]) -> Pose:
    """An origin with other coordinates, and its rotation R exp([r]×)."""
    x, y, z = (numbers.get(i, each) for i, each in enumerate(origin.xyz))
    turn = [numbers.get(i, 0.0) for i in range(3, 6)]
    if all(is_number(a) and a == 0.0 for a in turn):
        return Pose((held(x), held(y), held(z)), origin.rotation)
    return Pose((held(x), held(y), held(z)), rows3(matmul(origin.rotation, exponential(turn))))


def exponential(turn: Vector) -> Rows3:
    """The rows of exp([r]×), an elementary rotation where two of r are constant zeros."""
    axes = [k for k in range(3) if not (is_number(turn[k]) and turn[k] == 0.0)]
    if len(axes) == 1:
        return rows_of(Transform((about_axis(axes[0], turn[axes[0]]),), ZERO).matrix())
    vector, w = logarithms.exponential(turn)
    return rows_of(from_quaternion(*vector, w).rows)


def _anchor(anchor: Anchor, numbers: Mapping[int, Scalar]) -> Anchor:
    """An anchor with other coordinates."""
    x, y, z = (numbers.get(i, each) for i, each in enumerate(anchor.origin.xyz))
    return (
        replace(anchor, origin=Pose((held(x), held(y), held(z)), anchor.origin.rotation))
        if numbers
        else anchor
    )


def _geared(
    description: Description,
    model: Model,
    n: int,
    coupling: Coupling,
    changed: Mapping[int, Scalar],
) -> Description:
    """The description with other coefficients of one coupling."""
    before = coefficients_of(coupling)
    terms = tuple((name, changed.get(i, k)) for i, (name, k) in enumerate(before))
    if coupling.kind == "mimic":
        (_, own), (_, leader) = terms

        def geared(joint: Joint) -> Joint:
            if joint.name != coupling.name or joint.mimic is None:
                return joint
            mimic = joint.mimic
            scaled = Mimic(mimic.joint, held(-div(leader, own)), held(div(mimic.offset, own)))
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
    """The element with these coefficients, of the same kind if they allow it."""
    match element:
        case LinkCoupling():
            ahead = joints_above(model, element.successor)
            behind = [k for name, k in terms if name not in ahead]
            alike = all(k is behind[0] or (is_number(k) and k == behind[0]) for k in behind)
            if alike and all(is_one(k) for name, k in terms if name in ahead):
                return replace(element, ratio=held(-behind[0]))
        case PolynomialCoupling() if element.curved:
            return replace(element, coefficients=tuple(held(c) for _, c in terms))
        case PolynomialCoupling() if is_one(terms[0][1]):
            return replace(element, coefficients=(element.offset, held(-terms[1][1])))
    losses = (
        () if isinstance(element, PolynomialCoupling) else (element.efficiency, element.backdrive)
    )
    turned = tuple((n, held(c)) for n, c in terms)
    return JointCoupling(element.name, turned, element.offset, element.source, *losses)


def joints_above(model: Model, link: str) -> list[str]:
    """The joints on the way from a link to the root."""
    return [model.joints[body].name for body in path(model.parents, model.frame(link).body)]
