"""Joints of an SDF file by themselves: types, what they connect, what they are made of."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import cast

from robomodel.description import Joint, JointType, Motor, Vec3
from robomodel.errors import did_you_mean
from robomodel.parsers.sdf.axes import Axis, drake_mimic, pitch, read_axis
from robomodel.parsers.sdf.document import SdfDocument
from robomodel.parsers.sdf.frames import BETWEEN, MODEL, WORLD, Frame, Frames, source_of
from robomodel.parsers.sdf.tree import Step
from robomodel.parsers.shared.motors import read_motor
from robomodel.parsers.xml import CUSTOM, Element, shown, spelled, words
from robomodel.poses import turned

_AXES = {  # how many each type has
    **{"revolute": 1, "continuous": 1, "prismatic": 1, "screw": 1, "fixed": 0, "ball": 0},
    **{"universal": 2, "revolute2": 2, "gearbox": 2},
}
JOINT = words(
    "parent child pose axis axis2 physics thread_pitch screw_thread_pitch gearbox_ratio "
    "gearbox_reference_body"
)
JOINT_IRRELEVANT = frozenset(("sensor", "plugin"))


def type_of(frame: Frame) -> str:
    """The type of a joint, which must be one of those known."""
    kind = frame.document.text(frame.element, "type")
    if kind not in _AXES:
        remedy = (
            "; write a prismatic and a revolute joint with a link without mass between"
            if kind == "piston"
            else f"{did_you_mean(kind, _AXES)}; known: {', '.join(_AXES)}"
        )
        raise frame.document.error(frame.element, f"the type '{kind}' is not known{remedy}")
    return kind


def is_world(joint: Frame, name: str) -> bool:
    """Whether a joint means the world by a name, and no link that old files may call so."""
    return name == WORLD and joint.scope is not None and WORLD not in joint.scope.tables["link"]


@dataclass(frozen=True, slots=True)
class Carriers:
    """The links that joints connect; ``known`` are those of the models that are read."""

    frames: Frames
    known: Collection[Frame]

    def end(self, joint: Frame, tag: str) -> Frame:
        """The link that a joint's parent or child is, or is attached to."""
        name = joint.document.required(joint.element, tag)
        if is_world(joint, name):
            if tag == "child":
                raise joint.document.error(
                    joint.element, "the child cannot be the world; make the world the parent"
                )
            return self.frames.world
        return self.carrier(joint, name, joint.element)

    def carrier(self, joint: Frame, name: str, element: Element) -> Frame:
        """The link that carries what an element of a joint names."""
        assert joint.scope is not None
        named = self.frames.named(name, joint.scope, joint.document, element)
        if named is joint:
            raise joint.document.error(element, "the joint is its own parent or child")
        carrier = self.frames.carrier(named)
        if carrier.kind == "link" and carrier not in self.known:
            raise joint.document.error(
                element, f"'{name}' is a link of a model that is not read; read the whole world"
            )
        return carrier


def direction(frames: Frames, frame: Frame, axis: Axis) -> Vec3:
    """The axis in the joint's frame."""
    if axis.expressed_in is None:
        return axis.xyz
    assert frame.scope is not None
    named = frame.scope.frame
    if axis.expressed_in != MODEL:
        named = frames.named(axis.expressed_in, frame.scope, frame.document, axis.element)
    return turned(frames.pose(frame, named).rotation, axis.xyz)


def read_steps(frames: Frames, frame: Frame, kind: str) -> tuple[Step, ...]:
    """The simple joints that a joint of the file is made of."""
    document, element = frame.document, frame.element
    count = _AXES[kind]
    if count < 2 and (second := element.find("axis2")) is not None:
        document.suspect(second, f"<axis2> means nothing in a {kind} joint; it is ignored")
    if kind == "fixed":
        return ()
    source = source_of(frame)
    if kind == "ball":
        part = element.find("axis")  # Drake reads its damping here
        dynamics = {} if part is None else read_axis(document, part).dynamics
        free = truths(document, element, 3)
        position = own_numbers(document, element, "position", 4)
        ball = Joint(frame.name, "spherical", "", "", independent=free, source=source, **dynamics)
        return (Step(ball, position=position),)
    marks = _words(element, "independent", count)
    positions = own_numbers(document, element, "position", count)
    initials = _words(element, "initial", count)
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
            armature=_armature(document, element) if count == 1 else 0.0,
            source=source,
            motor=_motor(document, element if count == 1 else part),
            **axis.dynamics,
        )
        position = None if positions is None else (positions[number],)
        steps.append(Step(joint, axis.mimic, position))
    return tuple(steps)


# --- single words ---------------------------------------------------------------------------------


def _armature(document: SdfDocument, element: Element) -> float:
    """What Drake's ``rotor_inertia`` and ``gear_ratio`` add to the joint's own inertia."""
    found = {shown(child): child for child in element if shown(child).startswith("drake:")}
    if "drake:rotor_inertia" not in found:
        return 0.0
    inertia = document.content(found["drake:rotor_inertia"])
    ratio = document.content(found["drake:gear_ratio"]) if "drake:gear_ratio" in found else 1.0
    if inertia < 0.0:
        raise document.error(found["drake:rotor_inertia"], "the rotor inertia is negative")
    return ratio * ratio * inertia


def _motor(document: SdfDocument, element: Element) -> Motor | None:
    """``<motor>`` of a joint or, where it has two, of an axis: a word of our own."""
    return read_motor(document, element.find(f"{{{CUSTOM}}}motor"))


def _words(element: Element, name: str, count: int) -> list[str] | None:
    """The words of one of this package's own attributes, if it has so many."""
    found = element.get(f"{{{CUSTOM}}}{name}", "").split()
    return found if len(found) == count else None


def own_numbers(
    document: SdfDocument, element: Element, name: str, count: int
) -> tuple[float, ...] | None:
    """The numbers of one of this package's own attributes, if it has so many."""
    found = _words(element, name, count)
    return None if found is None else tuple(_number(document, element, name, w) for w in found)


def _number(document: SdfDocument, element: Element, name: str, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise document.error(element, f"{name} is {spelled(word)}, which is not a finite number")
    return value


def truths(document: SdfDocument, element: Element, count: int) -> bool | tuple[bool, ...] | None:
    """Which freedoms are independent: one word for all, or one for each."""
    if (marks := _words(element, "independent", count)) is not None:
        return tuple(bool(_mark(document, element, word)) for word in marks)
    marks = _words(element, "independent", 1)
    return None if marks is None else _mark(document, element, marks[0])


def _mark(document: SdfDocument, element: Element, word: str) -> bool | None:
    return None if word == "-" else document.as_truth(element, word)
