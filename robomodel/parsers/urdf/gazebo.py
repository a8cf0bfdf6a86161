"""Mechanics in ``<gazebo>`` elements: joints in SDF, mimic plugins, springs, friction.

Joints have the meaning of Gazebo 11 and later, which converts URDF to SDF 1.5 or newer: poses
relative to the child link and axes in the joint's frame, unless the file states others. (In earlier
versions axes are in the model's frame, which differs only if the child is rotated at zero.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from robomodel.description import (
    AT_ORIGIN,
    LOOP_COORDINATES,
    ONE_DOF,
    Anchor,
    Description,
    Joint,
    Link,
    Loop,
    Mimic,
    Pose,
)
from robomodel.description.poses import compose, inverse, link_poses
from robomodel.errors import did_you_mean
from robomodel.parsers.sdf.document import RelativePose, SdfDocument, read_placed
from robomodel.parsers.sdf.frames import Scope, SdfFrame, SdfFrames
from robomodel.parsers.sdf.joints import JOINT, JOINT_IRRELEVANT, KINDS, SimpleJoint, read_steps
from robomodel.parsers.sdf.links import read_friction, read_surface
from robomodel.parsers.urdf.joints import with_mimics
from robomodel.vocabulary.frames import WORLD, warn_of_limits
from robomodel.vocabulary.schema import DYNAMICS, MIMIC, read_by
from robomodel.vocabulary.xml import Document, Element

_UNREAD = frozenset(("link", "model", "frame", "include"))
_SURFACE = ("mu1", "mu2", "collision")
_SPRING = ("springStiffness", "springReference")


def with_gazebo(
    document: Document, elements: Sequence[Element], description: Description
) -> Description:
    """The description with the joints, springs and surfaces of these ``<gazebo>`` elements."""
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
    """Read a mimic plugin, in which ``mimicJoint`` follows ``joint``."""
    leader = document.required(plugin, "joint")
    mimic = Mimic(leader, **read_by(MIMIC, partial(document.value, plugin)))
    return document.required(plugin, "mimicJoint"), mimic, plugin


class _Reader:
    """Adds the joints of ``<gazebo>`` to a description."""

    def __init__(self, document: Document, description: Description) -> None:
        self.document = SdfDocument.of(document)
        self.description = description
        self.links = {link.name: link for link in description.links}
        self.joints = {joint.name: joint for joint in description.joints}
        self.above = {joint.child: joint for joint in description.joints}
        self.loops: list[Loop] = []
        root = document.root
        world = SdfFrame(WORLD, "world", None, self.document, root)
        world.scope = world.inner = Scope("", world)
        robot = SdfFrame("", "model", world.scope, self.document, root)
        self.model = robot.inner = Scope("", robot)
        for name, pose in link_poses(description).items():
            link = SdfFrame(name, "link", self.model, self.document, root, RelativePose(pose))
            self.model.add(name, link)
        self.frames = SdfFrames(world)

    def result(self) -> Description:
        """The description with all that was added."""
        return replace(
            self.description,
            links=tuple(self.links.values()),
            joints=tuple(self.joints.values()),
            loops=(*self.description.loops, *self.loops),
        )

    # ---- elements that reference a link or joint

    def refer(self, name: str, child: Element, within: Element) -> None:
        """Read a child of ``<gazebo reference>``: a joint's spring, a link's friction, gravity."""
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
        """Set friction and restitution of all collision shapes of a link."""
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
        """Read a joint that closes a loop, or that fixes the root to the world."""
        document = self.document
        name, kind = document.text(element, "name"), document.text(element, "type")
        source = document.source(element, f"joint '{name}'")
        if kind not in KINDS or kind == "gearbox":
            document.warn_at(element, f"a {kind} joint within <gazebo> is not read")
            return
        if name in self.joints:
            raise document.error(element, "another joint of the robot has this name")
        document.parts(element, JOINT, JOINT_IRRELEVANT)
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
        frame = SdfFrame(
            name, "joint", self.model, document, element, read_placed(document, element)
        )
        steps = read_steps(self.frames, frame, kind)
        if any(step.mimic for step in steps):
            document.warn_at(element, "<mimic> within <gazebo> is not read")
        here = Anchor(child, self.frames.pose(self._link(child), frame))
        if grounded:  # at position zero, the root of the robot coincides with the joint's child
            self.links[WORLD] = Link(WORLD, source=source)
            link, origin = self._chain(element, steps, Anchor(WORLD, here.origin))
            fixed = name if kind == "fixed" else f"{name}_held"
            back = compose(origin, inverse(here.origin))
            self.joints[fixed] = Joint(fixed, "fixed", link, child, back, source=source)
            self.above[child] = self.joints[fixed]
            return
        there = Anchor(parent, self.frames.pose(self._link(parent), frame))
        loop_type = KINDS[kind].loop
        if loop_type is None or kind == "universal":  # joints to a link fixed to the child
            there, loop_type = Anchor(self._chain(element, steps, there)[0]), "fixed"
        loop = Loop(name, loop_type, there, here, source=source)
        if loop.type in LOOP_COORDINATES:
            joint = steps[0].joint
            warn_of_limits(document, element, joint.limits)
            acting = {each.field: getattr(joint, each.field) for each in DYNAMICS.attributes}
            loop = replace(loop, axis=joint.axis, **acting)
        self.loops.append(loop)

    def _link(self, name: str) -> SdfFrame:
        return self.model.tables["link"][name]

    def _chain(
        self, element: Element, steps: Sequence[SimpleJoint], at: Anchor
    ) -> tuple[str, Pose]:
        """Add joints in series with massless links between; returns the last link and pose."""
        link, origin = at.link, at.origin
        for number, step in enumerate(steps, 1):
            joint = step.joint
            name = str(element.get("name")) + (f"_{number}" if len(steps) > 1 else "")
            if name in self.links or name in self.joints:
                raise self.document.error(element, f"the robot has a '{name}' already; rename one")
            self.links[name] = Link(name, source=joint.source)
            self.joints[name] = replace(joint, name=name, parent=link, child=name, origin=origin)
            link, origin = name, AT_ORIGIN
        return link, origin
