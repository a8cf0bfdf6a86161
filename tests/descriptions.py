"""Descriptions: random ones of every element, and comparing two but for where they stand."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any, get_args

from hypothesis import strategies as st

from robomodel.description import (
    FREEDOMS,
    ONE_DOF,
    Actuator,
    Anchor,
    Description,
    Inertial,
    Joint,
    JointCoupling,
    Limits,
    Link,
    LinkCoupling,
    Loop,
    LoopType,
    Mimic,
    Pose,
    Shape,
    Transmission,
    TransmittedJoint,
    rotation_from_rpy,
)
from robomodel.errors import NOWHERE, Source


def unplaced(said: Any) -> Any:
    """The same without any source."""
    if isinstance(said, Source):
        return NOWHERE
    if isinstance(said, tuple):
        return tuple(unplaced(each) for each in said)
    if dataclasses.is_dataclass(said) and not isinstance(said, type):
        return dataclasses.replace(
            said, **{f.name: unplaced(getattr(said, f.name)) for f in dataclasses.fields(said)}
        )
    return said


def differences(one: Any, other: Any, tolerance: float = 1e-15, at: str = "") -> list[str]:
    """Where two descriptions differ: rotation matrices by more than ``tolerance``, else at all."""
    if isinstance(one, Source):
        return []
    if isinstance(one, Pose) and isinstance(other, Pose):
        pairs = zip(itertools.chain(*one.rotation), itertools.chain(*other.rotation), strict=True)
        if one.xyz == other.xyz and all(abs(a - b) <= tolerance for a, b in pairs):
            return []
    elif type(one) is type(other) and isinstance(one, tuple) and len(one) == len(other):
        found = (
            differences(a, b, tolerance, f"{at}[{getattr(a, 'name', i)}]")
            for i, (a, b) in enumerate(zip(one, other, strict=True))
        )
        return list(itertools.chain(*found))
    elif dataclasses.is_dataclass(one) and type(one) is type(other):
        found = (
            differences(getattr(one, f.name), getattr(other, f.name), tolerance, f"{at}.{f.name}")
            for f in dataclasses.fields(one)
        )
        return list(itertools.chain(*found))
    return [] if one == other else [f"{at}: {one!r} is not {other!r}"]


# ---- random ones ---------------------------------------------------------------------------------

numbers = st.floats(-1e6, 1e6) | st.floats(-1.0, 1.0) | st.integers(-9, 9).map(float)
positive = st.floats(1e-9, 1e9)
amounts = st.just(0.0) | positive
bounds = st.just(math.inf) | st.floats(0.0, 1e9)
vectors = st.tuples(numbers, numbers, numbers)
angles = (
    st.sampled_from([0.0, math.pi / 2, -math.pi / 2, math.pi, 1.5708, -3.1416, math.pi / 3])
    | st.floats(-4.0, 4.0)
    | st.floats(-1e-3, 1e-3).map(lambda a: math.pi / 2 + a)
)
poses = st.just(Pose()) | st.builds(
    Pose, vectors, st.tuples(angles, angles, angles).map(lambda rpy: rotation_from_rpy(*rpy))
)
axes = st.sampled_from([(1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0)]) | (
    st.tuples(*[st.floats(-1.0, 1.0)] * 3)
    .filter(lambda axis: math.hypot(*axis) > 0.1)
    .map(lambda axis: tuple(x / math.hypot(*axis) for x in axis))
)
texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Co"))
    | st.sampled_from("<>&\"'"),
    min_size=1,
    max_size=8,
).filter(lambda text: not text.isspace())
SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3, "plane": 0, "mesh": 3}


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    kind = draw(st.sampled_from(sorted(SIZES)))
    size = draw(vectors) if kind == "mesh" else tuple(draw(positive) for _ in range(SIZES[kind]))
    return Shape(
        draw(st.sampled_from(["visual", "collision"])),
        kind,
        size,
        draw(poses),
        draw(texts) if kind == "mesh" else None,
        draw(st.just("") | texts),
        draw(st.none() | st.tuples(*[st.floats(0.0, 1.0)] * 4)),
    )


inertials = st.builds(Inertial, st.floats(0.0, 1e6), st.tuples(*[st.floats(-1e6, 1e6)] * 6), poses)


@st.composite
def joints(draw: st.DrawFn, name: str, parent: str, child: str, leaders: list[str]) -> Joint:
    kind = draw(st.sampled_from(sorted(FREEDOMS)))
    freedoms = FREEDOMS[kind]
    marks = st.booleans() | st.none()
    if freedoms > 1:
        marks = marks | st.tuples(*[st.booleans()] * freedoms)
    limits = Limits(-draw(bounds), draw(bounds), draw(bounds), draw(bounds))
    if kind == "continuous":
        limits = dataclasses.replace(limits, lower=-math.inf, upper=math.inf)
    scalar = kind in ONE_DOF
    return Joint(
        name,
        kind,
        parent,
        child,
        draw(poses),
        draw(axes) if scalar or kind == "planar" else (1.0, 0.0, 0.0),
        limits,
        draw(st.none() | st.builds(Mimic, st.sampled_from(leaders), numbers, numbers))
        if scalar and leaders
        else None,
        draw(marks),
        draw(amounts),
        draw(amounts),
        draw(numbers) if kind == "screw" else 0.0,
        draw(st.none() | numbers) if scalar else None,
        armature=draw(amounts) if freedoms else 0.0,
    )


@st.composite
def loops(draw: st.DrawFn, name: str, links: list[str]) -> Loop:
    kind = draw(st.sampled_from(sorted(get_args(LoopType))))
    ends = draw(st.permutations(links))[:2]
    return Loop(
        name,
        kind,
        Anchor(ends[0], draw(poses)),
        Anchor(ends[1], draw(poses)),
        (1.0, 0.0, 0.0) if kind in ("fixed", "spherical", "rod") else draw(axes),
        draw(st.none() | axes) if kind == "universal" else None,
        draw(st.none() | positive) if kind == "rod" else None,
    )


@st.composite
def transmissions(draw: st.DrawFn, names: list[str]) -> Transmission:
    words = st.just("") | st.sampled_from(["joint1", "actuator2", "a role"])
    reductions = st.none() | positive | positive.map(lambda x: -x)
    ends = st.builds(TransmittedJoint, st.sampled_from(names), words, reductions, numbers)
    actuators = st.builds(Actuator, texts, words, reductions)
    return Transmission(
        draw(texts),
        draw(st.sampled_from(["", "SimpleTransmission", "transmission_interface/Four"])),
        tuple(draw(st.lists(ends, max_size=2))),
        tuple(draw(st.lists(actuators, max_size=2))),
    )


@st.composite
def descriptions(draw: st.DrawFn) -> Description:
    """A tree of up to six links with some of everything that a description can hold.

    It makes no sense mechanically: loops do not close, couplings contradict each other.
    """
    links = draw(st.lists(texts, min_size=1, max_size=6, unique=True))
    names = draw(st.lists(texts, min_size=len(links), max_size=len(links), unique=True))
    tree: list[Joint] = []
    for i, child in enumerate(links[1:], 1):
        leaders = [joint.name for joint in tree if joint.type in ONE_DOF]
        parent = draw(st.sampled_from(links[:i]))
        tree.append(draw(joints(names[i], parent, child, leaders)))
    scalar = [joint.name for joint in tree if joint.type in ONE_DOF]
    ties = draw(st.lists(texts, max_size=4, unique=True))
    closed = [draw(loops(name, links)) for name in ties[:2] if len(links) > 1]
    couplings: list[Any] = []
    for name in ties[2:]:
        if draw(st.booleans()) and len(links) > 1:
            ends = draw(st.permutations(links))[:2]
            couplings.append(LinkCoupling(name, *ends, draw(numbers), draw(numbers)))
        elif scalar:
            terms = draw(st.lists(st.sampled_from(scalar), min_size=1, unique=True))
            couplings.append(
                JointCoupling(name, tuple((j, draw(positive)) for j in terms), draw(numbers))
            )
    moved = [joint.name for joint in tree]
    return Description(
        draw(texts),
        tuple(
            Link(
                name,
                draw(st.none() | inertials),
                shapes=tuple(draw(st.lists(shapes(), max_size=2))),
            )
            for name in links
        ),
        tuple(tree),
        tuple(closed),
        tuple(couplings),
        tuple(draw(st.lists(transmissions(moved), max_size=2))) if moved else (),
        gravity=draw(st.none() | vectors),
    )
