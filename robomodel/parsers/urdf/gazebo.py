"""Mechanics in ``<gazebo>`` elements: joints in SDF, mimic plugins, springs, friction.

Joints are read as Gazebo reads them since version 11, whose URDF becomes SDF 1.5 or newer: poses
relative to the child link and axes in the joint's frame, unless the file states others. (Before,
axes stood in the model's frame, which is the same where the child is not turned at position zero.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from robomodel.description import (
    AT_ORIGIN,
    LOOP_COORDINATES,
    ONE_DOF,
    Anchor,
    Description,
    Joint,
    JointType,
    Link,
    Loop,
    LoopType,
    Mimic,
    Pose,
    Vec3,
)
from robomodel.description.poses import compose, inverse, link_poses, relative, tidy, turned
from robomodel.errors import Source, did_you_mean
from robomodel.parsers.sdf.document import MODEL, WORLD, SdfDocument, read_placed
from robomodel.parsers.sdf.joints import Axis, pitch, read_axis
from robomodel.parsers.sdf.links import read_friction, read_surface
from robomodel.parsers.shared.frames import warn_of_limits
from robomodel.parsers.urdf.joints import with_mimics
from robomodel.parsers.xml import Document, Element, words
from robomodel.spatial import matmul, transpose

_LOOPS: dict[str, LoopType] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "ball": "spherical",
}
_STEPS: dict[str, tuple[JointType, ...]] = {
    "revolute": ("revolute",),
    "continuous": ("continuous",),
    "prismatic": ("prismatic",),
    "fixed": (),
    "ball": ("spherical",),
    "screw": ("screw",),
    "universal": ("revolute", "revolute"),
    "revolute2": ("revolute", "revolute"),
}
_JOINT = words("parent child pose axis axis2 thread_pitch screw_thread_pitch")
_JOINT_IRRELEVANT = frozenset(("physics", "sensor", "plugin", "gearbox_ratio"))
_UNREAD = frozenset(("link", "model", "frame", "include"))
_SURFACE = ("mu1", "mu2", "collision")
_SPRING = ("springStiffness", "springReference")


def with_gazebo(
    document: Document, elements: Sequence[Element], description: Description
) -> Description:
    """The description with the mechanics in these ``<gazebo>`` elements."""
    reader = _Reader(document, description)
    mimics = []
    for element in elements:
        reference = element.get("reference")
        for child in element:
            if child.tag == "plugin" and child.find("mimicJoint") is not None:
                mimics.append(_mimic(reader.document, child))
            elif reference is not None:
                reader.refer(reference, child, element)
            elif child.tag == "joint":
                reader.joint(child)
            elif child.tag in _UNREAD:
                document.warn_at(child, f"a <{child.tag}> within <gazebo> is not read")
    return with_mimics(document, reader.result(), mimics)


def _mimic(document: SdfDocument, plugin: Element) -> tuple[str, Mimic, Element]:
    """A mimic plugin: ``mimicJoint`` follows ``joint``."""
    mimic = Mimic(
        document.required(plugin, "joint"),
        document.value(plugin, "multiplier", 1.0),
        document.value(plugin, "offset", 0.0),
    )
    return document.required(plugin, "mimicJoint"), mimic, plugin


class _Reader:
    """Adds the joints of ``<gazebo>`` to a description."""

    def __init__(self, document: Document, description: Description) -> None:
        self.document = SdfDocument.of(document)
        self.description = description
        self.links = {link.name: link for link in description.links}
        self.joints = {joint.name: joint for joint in description.joints}
        self.above = {joint.child: joint for joint in description.joints}
        self.places = link_poses(description)
        self.loops: list[Loop] = []

    def result(self) -> Description:
        """The description with what was read."""
        return replace(
            self.description,
            links=tuple(self.links.values()),
            joints=tuple(self.joints.values()),
            loops=(*self.description.loops, *self.loops),
        )

    # ---- what refers to a link or joint

    def refer(self, name: str, child: Element, within: Element) -> None:
        """A child of ``<gazebo reference>``: springs of joints; of links friction, gravity."""
        document = self.document
        text = (child.text or "").strip().lower()
        if child.tag in _SPRING and (joint := self.joints.get(name)) is not None:
            if joint.type not in ONE_DOF:
                document.warn_at(child, f"a {joint.type} joint has no spring; it is left out")
                return
            value = document.content(child)
            if child.tag == "springReference":
                self.joints[name] = replace(joint, reference=value)
            elif value >= 0.0:
                self.joints[name] = replace(joint, stiffness=value)
            else:
                raise document.error(child, f"the stiffness {value:g} is negative")
        elif (child.tag, text) in (
            ("gravity", "0"),
            ("gravity", "false"),
            ("turnGravityOff", "true"),
            ("turnGravityOff", "1"),
        ):
            document.warn_at(child, f"gravity acts on '{name}' too", "gravity of a link")
        elif child.tag in _SURFACE:
            self._surface(name, child, within)

    def _surface(self, name: str, child: Element, within: Element) -> None:
        """Friction and restitution of all of a link's collision shapes."""
        document, link = self.document, self.links.get(name)
        if child.tag == "collision":
            surface = read_surface(document, child)
        else:
            surface = read_friction(document, child, None)
            if child.tag == "mu2":
                first = within.find("mu1")
                if surface and (first is None or read_friction(document, first, None) != surface):
                    what = "friction is the same in all directions here; <mu1> counts"
                    document.warn_at(child, what)
                return
        if not surface:
            return
        if link is None or all(shape.role != "collision" for shape in link.shapes):
            document.warn_at(child, f"there is no link '{name}' with a collision shape to rub")
            return
        shapes = (
            replace(shape, **surface) if shape.role == "collision" else shape
            for shape in link.shapes
        )
        self.links[name] = replace(link, shapes=tuple(shapes))

    # ---- joints

    def joint(self, element: Element) -> None:
        """A joint that closes a loop, or that holds the root in the world."""
        document = self.document
        (name, source), kind = self._called(element), document.text(element, "type")
        if kind not in _STEPS:
            document.warn_at(element, f"a {kind} joint within <gazebo> is not read")
            return
        if name in self.joints:
            raise document.error(element, "another joint of the robot has this name")
        document.parts(element, _JOINT, _JOINT_IRRELEVANT)
        parent, child = (document.required(element, tag) for tag in ("parent", "child"))
        grounded = parent == WORLD and parent not in self.links
        for link in (child, parent):
            if link not in self.links and not (grounded and link == parent):
                document.warn_at(
                    element,
                    f"the joint is left out: the link '{link}' is not in the robot"
                    f"{did_you_mean(link, self.links)}",
                )
                return
        if grounded and child in self.above:
            document.warn_at(
                element,
                f"the joint holds '{child}' in the world, but is not read: the root of the robot "
                "is another link; connect that one to a link 'world'",
            )
            return
        here = self._pose(element, child)
        if grounded:
            self.links[WORLD] = Link(WORLD, source=source)
            self._hold(element, kind, parent, child, here)
            return
        there = compose(self._standing(child), here)
        there = tidy(relative(self._standing(parent), there))
        self._close(element, kind, Anchor(parent, there), Anchor(child, here))

    def _standing(self, link: str) -> Pose:
        """Where a link stands at position zero, in the root."""
        return self.places.get(link, AT_ORIGIN)

    def _pose(self, element: Element, child: str) -> Pose:
        """The joint's frame in its child."""
        placed = read_placed(self.document, element)
        frame = placed.relative_to or child
        if frame == child:
            return placed.pose
        within = relative(self._standing(child), self._frame(element, frame))
        return compose(within, placed.pose)

    def _frame(self, element: Element, name: str) -> Pose:
        if name == MODEL:
            return Pose()
        if name not in self.links:
            raise self.document.error(
                element,
                f"the frame '{name}' is no link of the robot{did_you_mean(name, self.links)}",
            )
        return self._standing(name)

    def _axis(self, element: Element, tag: str, here: Anchor) -> tuple[Axis, Vec3]:
        """An ``<axis>``, and its direction in the joint's frame, which stands in the child."""
        part = element.find(tag)
        if part is None:
            raise self.document.error(element, f"the joint needs an <{tag}>")
        bounded = element.get("type") != "continuous"
        axis = read_axis(self.document, part, bounded=bounded)
        if axis.mimic is not None:
            self.document.warn_at(part, "<mimic> within <gazebo> is not read")
        if not axis.expressed_in:
            return axis, axis.xyz
        joint = compose(self._standing(here.link), here.origin)
        seen = matmul(transpose(joint.rotation), self._frame(element, axis.expressed_in).rotation)
        return axis, turned(seen, axis.xyz)

    def _hold(self, element: Element, kind: str, parent: str, child: str, here: Pose) -> None:
        """A joint of the tree, above what was the root; it stands ``here`` in both at zero."""
        link, origin = self._steps(element, kind, Anchor(parent, here), Anchor(child, here))
        name, source = self._called(element)
        origin = compose(origin, inverse(here))
        held = f"{name}_held" if kind != "fixed" else name
        joint = Joint(held, "fixed", link, child, origin, source=source)
        self.joints[held] = self.above[child] = joint

    def _close(self, element: Element, kind: str, there: Anchor, here: Anchor) -> None:
        """A joint that closes a loop; types without a loop become joints to a link fixed to it."""
        name, source = self._called(element)
        if kind not in _LOOPS:
            link, _ = self._steps(element, kind, there, here)
            self.loops.append(Loop(name, "fixed", Anchor(link), here, source=source))
            return
        loop = Loop(name, _LOOPS[kind], there, here, source=source)
        if loop.type in LOOP_COORDINATES:
            axis, xyz = self._axis(element, "axis", here)
            warn_of_limits(self.document, element, axis.limits)
            loop = replace(loop, axis=xyz, **axis.dynamics)
        self.loops.append(loop)

    def _steps(self, element: Element, kind: str, there: Anchor, here: Anchor) -> tuple[str, Pose]:
        """Joints from the parent, each to a link without mass; where the last one leads to."""
        name, source = self._called(element)
        link, origin = there.link, there.origin
        steps = _STEPS[kind]
        for number, step in enumerate(steps, 1):
            each = name if len(steps) == 1 else f"{name}_{number}"
            if each in self.links or each in self.joints:
                raise self.document.error(element, f"the robot has a '{each}' already; rename one")
            joint = Joint(each, step, link, each, origin, source=source)
            if step != "spherical":
                axis, xyz = self._axis(element, "axis" if number == 1 else "axis2", here)
                joint = replace(
                    joint,
                    axis=xyz,
                    limits=axis.limits,
                    initial=axis.initial or None,
                    **axis.dynamics,
                    pitch=pitch(self.document, element) if step == "screw" else 0.0,
                )
            self.links[each], self.joints[each] = Link(each, source=source), joint
            link, origin = each, Pose()
        return link, origin

    def _called(self, element: Element) -> tuple[str, Source]:
        name = self.document.text(element, "name")
        return name, self.document.source(element, f"joint '{name}'")
