"""Joints of an SDF file: axes, types, connected links, spanning tree, gearboxes.

A link may be the child of several joints, or of none. :func:`span` chooses the joints of the tree;
the others close loops. A joint that the tree passes from child to parent is reversed: its links are
exchanged and its axis is negated, so that its position keeps its meaning.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from robomodel.description import (
    ONE_DOF,
    Joint,
    JointCoupling,
    JointType,
    Limits,
    LinkCoupling,
    LoopType,
    Pose,
    Vec3,
)
from robomodel.description.poses import branches, cosine, displacement, sine, turned
from robomodel.errors import Source
from robomodel.parsers.sdf.document import BETWEEN, MODEL, SdfDocument
from robomodel.parsers.sdf.frames import SdfFrame, SdfFrames, source_of
from robomodel.vocabulary.frames import (
    WORLD,
    check_crossing,
    check_direction,
    is_limited,
    limits_of,
    read_type,
)
from robomodel.vocabulary.motors import drake_armature, read_motor
from robomodel.vocabulary.schema import (
    COUPLING,
    DYNAMICS,
    LIMIT,
    LOWER_LIMITS,
    MIMIC,
    Fields,
    checked,
    read_by,
    read_contents,
)
from robomodel.vocabulary.xml import CUSTOM, Element, shown, spelled, words


@dataclass(frozen=True, slots=True)
class AxisMimic:
    """A ``<mimic>``: position = multiplier · leader + offset; ``offset`` includes ``<reference>``.

    ``axis2``: whether the leader is the second axis of its joint.
    """

    joint: str
    axis2: bool
    multiplier: float
    offset: float
    source: Source


@dataclass(frozen=True, slots=True)
class Axis:
    """An ``<axis>`` or ``<axis2>`` as written; ``expressed_in`` is None for the joint's frame."""

    xyz: Vec3
    expressed_in: str | None
    limits: Limits
    dynamics: Fields
    initial: float | None
    mimic: AxisMimic | None
    element: Element


_AXIS = words("xyz dynamics limit mimic use_parent_model_frame initial_position")
AXIS_LIMIT = replace(
    LIMIT,
    attributes=tuple(each for each in LIMIT.attributes if each not in LOWER_LIMITS),
    unused=("stiffness", "dissipation"),
)
_AXIS_MIMIC = MIMIC.names | {"reference"}


def read_axis(document: SdfDocument, element: Element, *, bounded: bool = True) -> Axis:
    """Read an ``<axis>``; position limits are ignored unless ``bounded``."""
    parts = document.parts(element, _AXIS)
    limits, initial, mimic = Limits(), None, None
    if (limit := parts.get("limit")) is not None:
        values = read_contents(document, limit, AXIS_LIMIT) | _lower_limits(document, limit)
        # written for infinity before SDF 1.10
        limits = limits_of(document, limit, values, most=1e16, bounded=bounded)
    dynamics = read_contents(document, parts.get("dynamics"), DYNAMICS)
    if not dynamics.get("stiffness"):
        dynamics["reference"] = 0.0
    if "initial_position" in parts:
        initial = document.content(parts["initial_position"])
    if "mimic" in parts:
        mimic = _mimic(document, parts["mimic"])
    return Axis(*_direction(document, parts), limits, dynamics, initial, mimic, element)


def _lower_limits(document: SdfDocument, limit: Element) -> Fields:
    """Limits that differ both ways, in attributes of this package."""
    numbers: dict[str, float] = {}
    for each in LOWER_LIMITS:
        name = f"{{{CUSTOM}}}{each.name}"
        if limit.get(name) is not None:
            numbers[each.name] = document.number(limit, name, infinite=True)
    return checked(document, limit, LIMIT, numbers)


def _direction(document: SdfDocument, parts: dict[str, Element]) -> tuple[Vec3, str | None]:
    """The axis, and the name of the frame in which it is given.

    Up to 1.4 this is the model's frame, from 1.5 the joint's (the model's with
    <use_parent_model_frame>), from 1.7 the frame in ``expressed_in``.
    """
    element = parts.get("xyz")
    expressed_in: str | None = None
    if document.version < (1, 7):
        in_model = document.version < (1, 5)
        if "use_parent_model_frame" in parts:
            flag = parts["use_parent_model_frame"]
            in_model = document.as_truth(flag, flag.text or "")
        expressed_in = "__model__" if in_model else None
    elif "use_parent_model_frame" in parts:
        document.warn_at(
            parts["use_parent_model_frame"],
            "<use_parent_model_frame> means nothing from SDF 1.7 on and is ignored; write "
            '<xyz expressed_in="__model__">',
        )
    if element is None:
        return (0.0, 0.0, 1.0), expressed_in
    if name := element.get("expressed_in"):
        expressed_in = name
    xyz = document.three(element)
    check_direction(document, element, xyz, "the axis", "0 0 1")
    return xyz, expressed_in


def _mimic(document: SdfDocument, element: Element) -> AxisMimic:
    document.parts(element, _AXIS_MIMIC)
    leader = element.get("axis", "axis")
    if leader not in ("axis", "axis2"):
        raise document.error(element, f"axis of <mimic> is axis or axis2, not {spelled(leader)}")
    numbers = read_by(MIMIC, partial(document.value, element))
    numbers["offset"] -= numbers["multiplier"] * document.value(element, "reference")
    joint = document.text(element, "joint")
    return AxisMimic(joint, leader == "axis2", **numbers, source=document.place(element))


def drake_mimic(document: SdfDocument, joint: Element) -> AxisMimic | None:
    """Read Drake's ``<drake:mimic joint multiplier offset>``; None if there is none."""
    for element in joint:
        if shown(element) == "drake:mimic":
            joint_name = document.text(element, "joint")
            numbers = read_by(MIMIC, partial(document.number, element))
            return AxisMimic(joint_name, False, **numbers, source=document.place(element))
    return None


def pitch(document: SdfDocument, element: Element) -> float:
    """The pitch of a screw [m/rad]. ``thread_pitch`` is in rad/m, of a left-handed thread."""
    if (new := element.find("screw_thread_pitch")) is not None:
        return document.content(new) / (2.0 * math.pi)
    if (old := element.find("thread_pitch")) is None:
        raise document.error(
            element, "a screw joint needs <screw_thread_pitch>, in metres per revolution"
        )
    if not (turns := document.content(old)):
        raise document.error(
            old,
            "<thread_pitch> is in radians per metre, so it cannot be 0; write "
            "<screw_thread_pitch>, in metres per revolution",
        )
    return -1.0 / turns


_WEIGHTLESS_RANK = 9  # of joints to a massless link that carries nothing


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of joint: its number of axes, and the type of loop if it closes one.

    Joints of lower ``rank`` are preferred for the tree.
    """

    axes: int
    rank: int = 1
    loop: LoopType | None = None


KINDS = {
    "revolute": Kind(1, loop="revolute"),
    "continuous": Kind(1, loop="continuous"),
    "prismatic": Kind(1, loop="prismatic"),
    "screw": Kind(1),
    "fixed": Kind(0, 0, "fixed"),
    "ball": Kind(0, 3, "spherical"),
    "universal": Kind(2, 2, "universal"),
    "revolute2": Kind(2, 2),
    "gearbox": Kind(2),
}
"""SDF's joints by ``type``."""


@dataclass(frozen=True, slots=True)
class SimpleJoint:
    """One of the simple joints that make up a joint of the file.

    ``joint`` has no links and no pose yet; its axis is in the frame of the file's joint.
    ``position`` is its position in the configuration that the file shows: zero by default, other
    values in files written from models whose loops are not closed at zero.
    """

    joint: Joint
    mimic: AxisMimic | None = None
    position: tuple[float, ...] | None = None

    def backward(self) -> SimpleJoint:
        """The step from the child to the parent."""
        x, y, z = self.joint.axis
        return replace(self, joint=replace(self.joint, axis=(0.0 - x, 0.0 - y, 0.0 - z)))

    @property
    def standing(self) -> float:
        """The position of a joint of one freedom in the configuration that the file shows."""
        return self.position[0] if self.position else 0.0

    def undone(self) -> Pose:
        """The displacement from the position in the file to position zero."""
        if self.position is None:
            return Pose()
        back = (*(-p for p in self.position[:3]), *self.position[3:])
        return displacement(self.joint.type, self.joint.axis, back, self.joint.pitch)


@dataclass(frozen=True, eq=False, slots=True)
class Connection:
    """A joint of the file: its links, its frame, and the simple joints that make it up."""

    name: str
    kind: str
    parent: SdfFrame
    child: SdfFrame
    frame: SdfFrame
    steps: tuple[SimpleJoint, ...]
    cut: bool
    driven: bool = False  # if it has a transmission

    @property
    def rank(self) -> int:
        """Joints of lower rank are preferred for the tree."""
        return KINDS[self.kind].rank

    @property
    def plain(self) -> tuple[bool, ...]:
        """If it says nothing that loops do not keep, of each kind; the least goes first."""
        limits = [step.joint.limits for step in self.steps]
        bounded = any(math.isfinite(x.lower) or math.isfinite(x.upper) for x in limits)
        return not bounded, not self.acts, not any(map(is_limited, limits))

    @property
    def acts(self) -> bool:
        """True if it says what joints alone keep: a motor, an armature, where or how it starts."""
        return self.driven or any(
            joint.motor is not None
            or joint.armature != 0.0
            or joint.independent is not None
            or joint.initial is not None
            for joint in (step.joint for step in self.steps)
        )


@dataclass(frozen=True, slots=True)
class Span:
    """A spanning tree: connections (with a flag if reversed), free links, and loops."""

    tree: tuple[tuple[Connection, bool], ...]
    free: tuple[SdfFrame, ...]
    loops: tuple[Connection, ...]


def span(
    world: SdfFrame,
    links: Sequence[SdfFrame],
    held: Collection[SdfFrame],
    connections: Sequence[Connection],
) -> Span:
    """A spanning tree that grows from the world and the ``held`` links, then from free links.

    The tree takes fixed joints first, then those of one, two and three freedoms; among equals, it
    prefers joints from parent to child, then those with limits of positions, with motors and the
    like, with other limits, and the first in the file. Joints that are ``cut`` always close loops,
    even if their link is then free.
    """
    touching: dict[SdfFrame, list[tuple[int, bool]]] = defaultdict(list)
    for index, each in enumerate(connections):
        if each.cut:
            continue
        touching[each.parent].append((index, False))
        touching[each.child].append((index, True))
    reached: set[SdfFrame] = set()
    tree: dict[int, bool] = {}
    ready: list[tuple[int, bool, tuple[bool, ...], int]] = []

    def reach(frame: SdfFrame) -> None:
        reached.add(frame)
        for index, reverse in touching[frame]:
            each = connections[index]
            heapq.heappush(ready, (each.rank, reverse, each.plain, index))

    def grow() -> None:
        while ready:
            _, reverse, _, index = heapq.heappop(ready)
            each = connections[index]
            new = each.parent if reverse else each.child
            if new not in reached:
                tree[index] = reverse
                reach(new)

    reach(world)
    for link in held:
        reach(link)
    grow()
    free = []
    for root in _roots(links, connections):
        if root not in reached:
            free.append(root)
            reach(root)
            grow()
    return Span(
        tuple((connections[index], tree[index]) for index in sorted(tree)),
        tuple(free),
        tuple(each for index, each in enumerate(connections) if index not in tree),
    )


def _roots(links: Sequence[SdfFrame], connections: Sequence[Connection]) -> list[SdfFrame]:
    """The links in the order in which they can be roots: first those that are no joint's child.

    Among these, links that carry others by fixed joints or joints of one freedom come before rods
    and the like, which hang between ball joints.
    """
    carries: dict[SdfFrame, int] = {}
    connections = [each for each in connections if not each.cut]
    for each in connections:
        carries[each.parent] = min(carries.get(each.parent, _WEIGHTLESS_RANK), max(each.rank, 1))
    children = {each.child for each in connections}
    return sorted(links, key=lambda link: (link in children, carries.get(link, _WEIGHTLESS_RANK)))


JOINT = words(
    "parent child pose axis axis2 physics thread_pitch screw_thread_pitch gearbox_ratio "
    "gearbox_reference_body"
)
JOINT_IRRELEVANT = frozenset(("sensor", "plugin"))
_MOTOR = f"{{{CUSTOM}}}motor"
"""Tag of this package's ``<motor>`` in a joint, or in an axis if the joint has two."""


def type_of(frame: SdfFrame) -> str:
    """The type of a joint; raises if it is unknown."""
    remedy = ""
    if frame.element.get("type") == "piston":
        remedy = "; write a prismatic and a revolute joint with a link without mass between"
    return read_type(frame.document, frame.element, KINDS, remedy=remedy)


def is_world(joint: SdfFrame, name: str) -> bool:
    """True if a joint's ``name`` is the world, and not a link with that name in an old file."""
    return name == WORLD and joint.scope is not None and WORLD not in joint.scope.tables["link"]


@dataclass(frozen=True, slots=True)
class Carriers:
    """The links that joints connect; ``links`` are those of the models that are read."""

    frames: SdfFrames
    links: Collection[SdfFrame]

    def end(self, joint: SdfFrame, tag: str) -> SdfFrame:
        """The link that is, or that carries, a joint's parent or child."""
        name = joint.document.required(joint.element, tag)
        if is_world(joint, name):
            if tag == "child":
                raise joint.document.error(
                    joint.element, "the child cannot be the world; make the world the parent"
                )
            return self.frames.world
        return self.carrier(joint, name, joint.element)

    def carrier(self, joint: SdfFrame, name: str, element: Element) -> SdfFrame:
        """The link that carries the frame ``name`` of a joint's element."""
        assert joint.scope is not None
        named = self.frames.named(name, joint.scope, joint.document, element)
        if named is joint:
            raise joint.document.error(element, "the joint is its own parent or child")
        carrier = self.frames.carrier(named)
        if carrier.kind == "link" and carrier not in self.links:
            raise joint.document.error(
                element, f"'{name}' is a link of a model that is not read; read the whole world"
            )
        return carrier


def direction(frames: SdfFrames, frame: SdfFrame, axis: Axis) -> Vec3:
    """The axis in the joint's frame."""
    if axis.expressed_in is None:
        return axis.xyz
    assert frame.scope is not None
    named = frame.scope.frame
    if axis.expressed_in != MODEL:
        named = frames.named(axis.expressed_in, frame.scope, frame.document, axis.element)
    return turned(frames.pose(frame, named).rotation, axis.xyz)


def read_steps(frames: SdfFrames, frame: SdfFrame, kind: str) -> tuple[SimpleJoint, ...]:
    """The simple joints that a joint of the file is made of."""
    document, element = frame.document, frame.element
    count = KINDS[kind].axes
    if count < 2 and (second := element.find("axis2")) is not None:
        document.warn_at(second, f"<axis2> means nothing in a {kind} joint; it is ignored")
    if kind == "fixed":
        return ()
    source = source_of(frame)
    if kind == "ball":
        part = element.find("axis")  # where Drake reads the damping
        dynamics = {} if part is None else read_axis(document, part).dynamics
        free = independent_marks(document, element, 3)
        position = custom_numbers(document, element, "position", 4)
        ball = Joint(frame.name, "spherical", "", "", independent=free, source=source, **dynamics)
        return (SimpleJoint(ball, position=position),)
    marks = _words(element, "independent", count)
    positions = custom_numbers(document, element, "position", count)
    initials = _words(element, "initial", count)
    drakes = {shown(child): child for child in element}
    steps = []
    for number, tag in enumerate(("axis", "axis2")[:count]):
        part = element.find(tag)
        if part is None:
            raise document.error(
                element, f"a {kind} joint needs <{tag}>, as in <{tag}><xyz>0 0 1</xyz></{tag}>"
            )
        axis = read_axis(document, part, bounded=kind != "continuous")
        if axis.mimic is None and number == 0:
            axis = replace(axis, mimic=drake_mimic(document, element))
        initial = axis.initial or None
        if initials is not None and initials[number] != "-":
            initial = _number(document, element, "initial", initials[number])
        joint = Joint(
            frame.name if number == 0 else f"{frame.name}{BETWEEN}2",
            cast(JointType, kind if count == 1 else "revolute"),
            "",
            "",
            axis=direction(frames, frame, axis),
            limits=axis.limits,
            pitch=pitch(document, element) if kind == "screw" else 0.0,
            initial=initial,
            independent=None if marks is None else _mark(document, element, marks[number]),
            armature=drake_armature(document, drakes, document.content) if count == 1 else 0.0,
            source=source,
            motor=read_motor(document, (element if count == 1 else part).find(_MOTOR)),
            **axis.dynamics,
        )
        position = None if positions is None else (positions[number],)
        steps.append(SimpleJoint(joint, axis.mimic, position))
    if count == 2:
        check_crossing(document, element, *(step.joint.axis for step in steps))
    return tuple(steps)


# --- attributes of this package -------------------------------------------------------------------


def _words(element: Element, name: str, count: int) -> list[str] | None:
    """The words of an attribute of this package; None unless there are ``count``."""
    words = element.get(f"{{{CUSTOM}}}{name}", "").split()
    return words if len(words) == count else None


def custom_numbers(
    document: SdfDocument, element: Element, name: str, count: int
) -> tuple[float, ...] | None:
    """The numbers of an attribute of this package; None unless there are ``count``."""
    words = _words(element, name, count)
    return None if words is None else tuple(_number(document, element, name, w) for w in words)


def _number(document: SdfDocument, element: Element, name: str, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise document.error(element, f"{name} is {spelled(word)}, which is not a finite number")
    return value


def independent_marks(
    document: SdfDocument, element: Element, count: int
) -> bool | tuple[bool, ...] | None:
    """The flags of independent freedoms: one word for all, or one each."""
    if (marks := _words(element, "independent", count)) is not None:
        return tuple(bool(_mark(document, element, word)) for word in marks)
    marks = _words(element, "independent", 1)
    return None if marks is None else _mark(document, element, marks[0])


def _mark(document: SdfDocument, element: Element, word: str) -> bool | None:
    return None if word == "-" else document.as_truth(element, word)


_ALONG = 1e-5  # accepted sine between the axes of a gearbox and its joint (files round to 1.5708)
_NEARLY_ALONG = 2e-3  # accepted with a warning (1.57, 3.14)
_MOST_GEARED = 100  # limit of joints between the links of a gearbox


@dataclass(frozen=True, slots=True)
class Gearboxes:
    """Reads gearboxes, after the tree is complete.

    ``above`` are joints by their children; ``axes`` and ``steps`` are by joint names, each axis
    with the frame in which it is given.
    """

    frames: SdfFrames
    carriers: Carriers
    above: Mapping[str, Joint]
    axes: Mapping[str, tuple[SdfFrame, Vec3]]
    steps: Mapping[str, SimpleJoint]

    def read(self, frame: SdfFrame) -> LinkCoupling | JointCoupling:
        """Read θ₂ = −gearbox_ratio θ₁, the angles of child and parent in the reference body."""
        document, element = frame.document, frame.element
        document.parts(element, JOINT, JOINT_IRRELEVANT)
        source = document.source(element, f"joint '{frame.name}'")
        parent, child = self.carriers.end(frame, "parent"), self.carriers.end(frame, "child")
        name = document.required(element, "gearbox_reference_body")
        reference = self.frames.world
        if not is_world(frame, name):
            reference = self.carriers.carrier(frame, name, element)
        ratio = document.value(element, "gearbox_ratio", 1.0)
        losses = {
            each.field: _number(document, element, each.name, words_[0])
            for each in COUPLING.attributes
            if (words_ := _words(element, each.name, 1)) is not None
        }
        if fault := COUPLING.fault(losses):
            raise document.error(element, fault)
        terms: list[dict[str, float]] = []
        for end, tag in ((parent, "axis"), (child, "axis2")):
            part = element.find(tag)
            if part is None:
                raise document.error(element, f"a gearbox joint needs <{tag}>")
            axis = direction(self.frames, frame, read_axis(document, part, bounded=False))
            terms.append(self._angle(reference, end, self._upright(frame, axis), frame, tag))
        first, second = terms
        offset = sum(k * self.steps[q].standing for q, k in second.items())
        offset += ratio * sum(k * self.steps[q].standing for q, k in first.items())
        offset += 0.0
        signs = [set(each.values()) for each in terms]
        if (
            all(len(sign) == 1 for sign in signs)
            and first.keys().isdisjoint(second)
            and all(map(self._turns_only, (reference, reference), (parent, child), terms))
        ):
            (s1,), (s2,) = signs
            return LinkCoupling(
                frame.name, parent.name, child.name, 0.0 - ratio * s1 * s2, s2 * offset, source,
                **losses,
            )  # fmt: skip
        total = dict(second)
        for joint, k in first.items():
            total[joint] = total.get(joint, 0.0) + ratio * k
        return JointCoupling(frame.name, tuple(total.items()), offset, source, **losses)

    def _angle(
        self, reference: SdfFrame, end: SdfFrame, direction: Vec3, gearbox: SdfFrame, tag: str
    ) -> dict[str, float]:
        """The joints that turn ``end`` in the reference about the direction, with their signs."""
        document = gearbox.document
        up, down = branches(self.above, reference.name, end.name)
        if len(up) + len(down) > _MOST_GEARED:
            raise document.error(
                gearbox.element,
                f"{len(up) + len(down)} joints lie between the reference body '{reference.name}' "
                f"and '{end.name}'; more than {_MOST_GEARED} are not read",
            )
        terms = {}
        for joint, way in (*((j, -1.0) for j in reversed(up)), *((j, 1.0) for j in down)):
            if joint.type in ("fixed", "prismatic"):
                continue
            sign = miss = 0.0
            if joint.type in ONE_DOF:
                sign, miss = _alignment(self._upright(*self.axes[joint.name]), direction)
            if not sign:
                raise document.error(
                    gearbox.element,
                    f"the joint '{joint.name}', between the reference body '{reference.name}' and "
                    f"'{end.name}', does not turn about <{tag}>, so there is no angle to gear",
                )
            if miss > _ALONG:
                document.warn_at(
                    gearbox.element,
                    f"<{tag}> misses the axis of the joint '{joint.name}' by {miss:.2g} rad; the "
                    "two are taken as one",
                )
            terms[joint.name] = way * sign
        if not terms:
            raise document.error(
                gearbox.element,
                f"nothing turns '{end.name}' in the reference body '{reference.name}'",
            )
        return terms

    def _upright(self, frame: SdfFrame, axis: Vec3) -> Vec3:
        """An axis of a frame, in the world's axes."""
        return turned(self.frames.in_world(frame).rotation, axis)

    def _turns_only(self, reference: SdfFrame, end: SdfFrame, terms: dict[str, float]) -> bool:
        """True if these joints alone move ``end``, on a branch that the reference body carries."""
        up, down = branches(self.above, reference.name, end.name)
        return all(joint.type == "fixed" for joint in up) and all(
            joint.type == "fixed" or joint.name in terms for joint in down
        )


def _alignment(one: Vec3, other: Vec3) -> tuple[float, float]:
    """1 if directions nearly agree, -1 if they are nearly opposite, else 0; and their sine."""
    apart = sine(one, other)
    return (math.copysign(1.0, cosine(one, other)) if apart <= _NEARLY_ALONG else 0.0), apart
