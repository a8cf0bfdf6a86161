"""From the parts of an SDF robot to its description: a tree, its loops and its couplings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from robomodel.description import (
    LOOP_COORDINATES,
    ONE_DOF,
    Anchor,
    Description,
    Joint,
    JointCoupling,
    JointType,
    Limits,
    Link,
    LinkCoupling,
    Loop,
    LoopType,
    Mimic,
    Motor,
    Pose,
    Shape,
    Vec3,
)
from robomodel.errors import Source, did_you_mean
from robomodel.parsers.sdf import elements
from robomodel.parsers.sdf.drake import read_springs, two_points
from robomodel.parsers.sdf.elements import BALL_CONSTRAINT, CUSTOM, Axis, Placed, SdfDocument
from robomodel.parsers.sdf.frames import BETWEEN, WORLD, Frame, Frames, Names, tidy
from robomodel.parsers.sdf.tree import Connection, Span, Step, span
from robomodel.parsers.sensors import named_sensors
from robomodel.parsers.structure import by_name
from robomodel.parsers.urdf.motors import read_motor
from robomodel.parsers.xml import Element, shown, spelled
from robomodel.poses import compose, cosine, off_axis, sine, turned
from robomodel.spatial import transpose

JOINT_TYPES = (
    *("revolute", "continuous", "prismatic", "screw", "fixed", "ball"),
    *("universal", "revolute2", "gearbox"),
)
_AXES = {"fixed": 0, "ball": 0, "universal": 2, "revolute2": 2, "gearbox": 2}  # others have 1
_LOOPS: dict[str, LoopType] = {
    **{"revolute": "revolute", "continuous": "continuous", "prismatic": "prismatic"},
    **{"fixed": "fixed", "ball": "spherical", "universal": "universal"},
}

_LINK = frozenset(("pose", "inertial", "gravity", "kinematic", "velocity_decay"))
_LINK_IRRELEVANT = frozenset(
    (
        *("collision", "visual", "sensor", "projector", "audio_sink", "audio_source", "battery"),
        *("light", "particle_emitter", "plugin", "material", "self_collide", "enable_wind"),
        *("must_be_base_link", "gripper", "contact"),
    )
)
_JOINT = frozenset(
    (
        *("parent", "child", "pose", "axis", "axis2", "physics", "thread_pitch"),
        *("screw_thread_pitch", "gearbox_ratio", "gearbox_reference_body"),
    )
)
_JOINT_IRRELEVANT = frozenset(("sensor", "plugin"))
_ACROSS = 1e-6  # cosine of the angle between axes that are perpendicular
_ALONG = 1e-5  # sine of the angle by which a gearbox's axis may miss those of its joints: 1.5708
_NEARLY_ALONG = 2e-3  # and of one that is warned of: 1.57, 3.14
_ON_AXIS = 1e-12  # m
_MOST_GEARED = 100  # joints that one gearbox may add up


@dataclass(slots=True)
class Parts:
    """The links, frames and joints of what is read, each in the file's order."""

    links: list[Frame] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    joints: list[Frame] = field(default_factory=list)
    balls: list[Frame] = field(default_factory=list)  # Drake's ball constraints, as if joints
    springs: list[Frame] = field(default_factory=list)  # and its springs


class Describer:
    """Writes the parts of a robot down as a description: a tree, its loops and its couplings."""

    def __init__(self, frames: Frames, parts: Parts) -> None:
        self.frames = frames
        self.parts = parts
        self.connections: dict[Frame, Connection] = {}
        self.gearboxes: list[Frame] = []
        self.links: list[Link] = []
        self.joints: list[Joint] = []
        self.loops: list[Loop] = []
        self.known = set(parts.links)
        # by the names of the joints that are written down
        self.steps: dict[str, Step] = {}
        self.makers: dict[str, Connection] = {}
        self.axes: dict[str, tuple[Frame, Vec3]] = {}  # and the frame that each is in
        self.above: dict[str, Joint] = {}  # by the name of the child
        self.link_names = Names((WORLD, *(each.name for each in (*parts.links, *parts.frames))))
        self.joint_names = Names(each.name for each in parts.joints)

    def description(self, name: str, source: Source, gravity: Vec3 | None) -> Description:
        """All of it."""
        for frame in self.parts.joints:
            kind = _type(frame)
            if kind == "gearbox":
                self.gearboxes.append(frame)
            else:
                self.connections[frame] = self._connection(frame, kind)
        held = [link for link in self.parts.links if _is_held(link)]
        found = span(self.frames.world, self.parts.links, held, tuple(self.connections.values()))
        together = _welded(found, self.frames.world, held)
        self._ground(found, held, source)
        leaders = self._leaders()
        for each, reverse in found.tree:
            self._tree_joint(each, reverse)
        for each in found.loops:
            if together(each.parent) is together(each.child):
                self._idle(each)
            else:
                self._loop(each, leaders)
        for frame in self.parts.balls:
            self._ball(frame)
        for frame in self.parts.frames:
            self._fixed_frame(frame)
        ground = together(self.frames.world)
        links = [_link(self.frames, link, together(link) is ground) for link in self.parts.links]
        links = [self.links[0], *links, *self.links[1:]]
        by_name(links, "link")  # or what follows a name up the tree might go round for ever
        self.joints = [self._with_mimic(joint) for joint in self.joints]
        self.above = {joint.child: joint for joint in self.joints}
        springs, tendons = read_springs(self.parts.springs, self.frames, self._carrier)
        return Description(
            name,
            tuple(links),
            tuple(self.joints),
            tuple(self.loops),
            (*(self._gearbox(frame) for frame in self.gearboxes), *tendons),
            source=source,
            gravity=gravity,
            simulated=True,
            sensors=tuple(
                sensor
                for frame in (*self.parts.links, *self.parts.joints)
                for sensor in named_sensors(frame.document, frame.element)
            ),
            springs=springs,
        )

    def _leaders(self) -> set[Connection]:
        """The connections whose positions others are tied to, or that are tied to others."""
        tied = set()
        for each in self.connections.values():
            for step in each.steps:
                if step.mimic is not None:
                    tied |= {each, self._leader(each, step)[0]}
        return tied

    # ---- joints as they are written

    def _connection(self, frame: Frame, kind: str) -> Connection:
        document, element = frame.document, frame.element
        document.parts(element, _JOINT, _JOINT_IRRELEVANT)
        parent, child = self._end(frame, "parent"), self._end(frame, "child")
        if parent is child:
            raise document.error(
                element, f"its parent and its child are the same link '{child.name}'"
            )
        physics = element.find("physics/simbody")
        cut = physics is not None and document.truth(physics, "must_be_loop_joint", False)
        assert frame.scope is not None
        source = document.source(element, f"joint '{frame.name}'")
        steps = self._steps(frame, kind, source)
        return Connection(
            frame.name, kind, parent, child, frame, steps, cut, frame.scope, element, source
        )

    def _end(self, joint: Frame, tag: str) -> Frame:
        """The link that a joint's parent or child is, or is attached to."""
        name = joint.document.required(joint.element, tag)
        if _is_world(joint, name):
            if tag == "child":
                raise joint.document.error(
                    joint.element, "the child cannot be the world; make the world the parent"
                )
            return self.frames.world
        return self._carrier(joint, name, joint.element)

    def _carrier(self, joint: Frame, name: str, element: Element) -> Frame:
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

    def _steps(self, frame: Frame, kind: str, source: Source) -> tuple[Step, ...]:
        document, element = frame.document, frame.element
        count = _AXES.get(kind, 1)
        if count < 2 and (second := element.find("axis2")) is not None:
            document.suspect(second, f"<axis2> means nothing in a {kind} joint; it is ignored")
        label = f"{kind} joint"
        if kind == "fixed":
            return ()
        if kind == "ball":
            independent = _truths(document, element, 3)
            position = _numbers(document, element, "position", 4)
            ball = Step(frame.name, "spherical", independent=independent, position=position)
            if (part := element.find("axis")) is not None:  # Drake reads its damping here
                axis = elements.axis(document, part)
                ball = replace(
                    ball,
                    damping=axis.damping,
                    friction=axis.friction,
                    stiffness=axis.stiffness,
                    reference=axis.reference,
                )
            return (ball,)
        marks = _words(element, "independent", count)
        positions = _numbers(document, element, "position", count)
        initials = _words(element, "initial", count)
        steps = []
        for number, tag in enumerate(("axis", "axis2")[:count]):
            part = element.find(tag)
            if part is None:
                raise document.error(
                    element, f"a {label} needs <{tag}>, as in <{tag}><xyz>0 0 1</xyz></{tag}>"
                )
            axis = elements.axis(document, part, bounded=kind != "continuous")
            if axis.mimic is None and number == 0:
                axis = replace(axis, mimic=elements.drake_mimic(document, element))
            initial = axis.initial or None
            if initials is not None and initials[number] != "-":
                initial = _number(document, element, "initial", initials[number])
            steps.append(
                Step(
                    frame.name if number == 0 else f"{frame.name}{BETWEEN}2",
                    cast(JointType, kind if count == 1 else "revolute"),
                    self._direction(frame, axis),
                    axis.limits,
                    axis.damping,
                    axis.friction,
                    elements.pitch(document, element) if kind == "screw" else 0.0,
                    initial,
                    None if marks is None else _mark(document, element, marks[number]),
                    _armature(document, element) if count == 1 else 0.0,
                    axis.mimic,
                    None if positions is None else (positions[number],),
                    axis.stiffness,
                    axis.reference,
                    _motor(document, element) if count == 1 else None,
                )
            )
        return tuple(steps)

    def _direction(self, frame: Frame, axis: Axis) -> Vec3:
        """The axis in the joint's frame."""
        if axis.expressed_in is None:
            return axis.xyz
        assert frame.scope is not None
        if axis.expressed_in == "__model__":
            named = frame.scope.frame
        else:
            named = self.frames.named(axis.expressed_in, frame.scope, frame.document, axis.element)
        return turned(self.frames.pose(frame, named).rotation, axis.xyz)

    # ---- the tree

    def _ground(self, found: Span, held: Sequence[Frame], source: Source) -> None:
        """The world as the root link, what is held there, and what is free."""
        world = self.frames.world
        self.links.append(Link(WORLD, None, source))
        for link in held:
            self._fix(self.joint_names.fresh(link.name), world, link, link)
        for link in found.free:
            name = link.element.get(f"{{{CUSTOM}}}joint")
            if not name:
                name = "floating_base"
                if len(found.free) > 1:
                    name = f"{name}_{link.name}"
            self.joints.append(
                Joint(
                    self.joint_names.fresh(name),
                    "floating",
                    WORLD,
                    link.name,
                    self.frames.pose(world, link),
                    independent=_truths(link.document, link.element, 6),
                    source=_source(link),
                )
            )

    def _fix(self, name: str, parent: Frame, child: Frame, at: Frame) -> None:
        origin = self.frames.pose(parent, child)
        self.joints.append(
            Joint(name, "fixed", parent.name, child.name, origin, source=_source(at))
        )

    def _fixed_frame(self, frame: Frame) -> None:
        """A ``<frame>`` as a link without mass, fixed to the link that carries it."""
        carrier = self.frames.carrier(frame)
        self.links.append(Link(frame.name, None, _source(frame)))
        self._fix(self.joint_names.fresh(frame.name), carrier, frame, frame)

    def _tree_joint(self, each: Connection, reverse: bool) -> None:
        """A connection as joints of the tree, one after the other."""
        start, end = (each.child, each.parent) if reverse else (each.parent, each.child)
        if each.kind == "fixed":
            origin = self.frames.pose(start, end)
            self.joints.append(
                Joint(each.name, "fixed", start.name, end.name, origin, source=each.source)
            )
            return
        steps = [s.backward() for s in reversed(each.steps)] if reverse else list(each.steps)
        at, standing = self._chain(each, start, steps[:-1])
        step = steps[-1]
        standing = compose(standing, step.undone())
        inner = self.frames.pose(each.frame, end)
        if _fits(step, inner):
            axis = turned(transpose(inner.rotation), step.axis)
            self._add(each, step, at, end.name, tidy(compose(standing, inner)), axis)
            return
        # the joint's own frame, which SDF calls like the joint, moves; the link is fixed to it
        own = self._between(each, each.name, f"{each.name}{BETWEEN}frame")
        self._add(each, step, at, own, tidy(standing), step.axis)
        self.joints.append(
            Joint(
                self.joint_names.fresh(f"{each.name}{BETWEEN}fixed"),
                "fixed",
                own,
                end.name,
                inner,
                source=each.source,
            )
        )

    def _chain(self, each: Connection, start: Frame, steps: Sequence[Step]) -> tuple[str, Pose]:
        """Steps that each end in a link without mass; the link and the pose of what follows."""
        link, pose = start.name, self.frames.pose(start, each.frame)
        for step in steps:
            between = self._between(each, f"{each.name}{BETWEEN}cross")
            self._add(each, step, link, between, tidy(compose(pose, step.undone())), step.axis)
            link, pose = between, Pose()
        return link, pose

    def _between(self, each: Connection, *names: str) -> str:
        """A link without mass, of the first of these names that is free, or one like the last."""
        free = (name for name in names if name not in self.link_names.taken)
        fresh = self.link_names.fresh(next(free, names[-1]), BETWEEN, 2)
        self.links.append(Link(fresh, None, each.source))
        return fresh

    def _add(
        self, each: Connection, step: Step, parent: str, child: str, origin: Pose, axis: Vec3
    ) -> None:
        q = step.position[0] if step.position and step.type in ONE_DOF else 0.0
        limits = step.limits
        if q:
            limits = Limits(limits.lower + q, limits.upper + q, limits.velocity, limits.effort)
        self.steps[step.name] = step
        self.makers[step.name] = each
        self.axes[step.name] = each.frame, step.axis
        self.joints.append(
            Joint(
                step.name,
                step.type,
                parent,
                child,
                origin,
                axis,
                limits,
                independent=step.independent,
                damping=step.damping,
                friction=step.friction,
                pitch=step.pitch,
                initial=step.initial,
                source=each.source,
                armature=step.armature,
                stiffness=step.stiffness,
                reference=step.reference + q if step.stiffness else 0.0,
                motor=step.motor,
            )
        )

    # ---- loops

    def _loop(self, each: Connection, tied: set[Connection]) -> None:
        """A connection that the tree does not hold."""
        kind = _LOOPS.get(each.kind)
        if kind == "universal" and not _perpendicular(each.steps[0].axis, each.steps[1].axis):
            kind = None
        here = self.frames.pose(each.child, each.frame)
        if kind is None or each in tied:
            # what a loop cannot say, or what has a position that matters: joints to a link
            # without mass, which is fixed to the child
            link, _ = self._chain(each, each.parent, each.steps)
            self.loops.append(
                Loop(
                    f"{each.name}{BETWEEN}fixed" if each.steps else each.name,
                    "fixed",
                    Anchor(link, Pose()),
                    Anchor(each.child.name, here),
                    source=each.source,
                )
            )
            return
        for step in each.steps:
            if math.isfinite(step.limits.lower) or math.isfinite(step.limits.upper):
                each.frame.document.suspect(
                    each.element,
                    "the joint closes a loop, where limits are not kept; they are left out",
                    "limits of a loop",
                )
        acting = [s for s in each.steps if s.damping or s.friction or s.stiffness]
        if acting and kind not in LOOP_COORDINATES:
            each.frame.document.suspect(
                each.element,
                "the joint closes a loop that leaves several coordinates, where damping, friction "
                "and springs are not kept; they are left out",
                "dynamics of a loop",
            )
            acting = []
        axes = [step.axis for step in each.steps if step.type != "spherical"]
        there = self.frames.pose(each.parent, each.frame)
        self.loops.append(
            Loop(
                each.name,
                kind,
                Anchor(each.parent.name, there),
                Anchor(each.child.name, here),
                axes[0] if axes else (1.0, 0.0, 0.0),
                axes[1] if kind == "universal" else None,
                source=each.source,
                damping=acting[0].damping if acting else 0.0,
                friction=acting[0].friction if acting else 0.0,
                stiffness=acting[0].stiffness if acting else 0.0,
                reference=acting[0].reference if acting else 0.0,
            )
        )

    def _ball(self, frame: Frame) -> None:
        """Drake's ball constraint: a point of body A stays at a point of body B."""
        document, element = frame.document, frame.element
        ends = two_points(frame, BALL_CONSTRAINT, self._carrier)
        source = document.source(element, f"<{BALL_CONSTRAINT}>")
        self.loops.append(Loop(frame.name, "spherical", ends[0], ends[1], source=source))

    def _idle(self, each: Connection) -> None:
        """A joint between links that are fixed to each other already."""
        ends = (each.parent, each.child)
        if each.kind == "fixed" or all(_is_held(end) for end in ends):
            return
        each.frame.document.suspect(
            each.element,
            f"the joint cannot move, since '{each.parent.name}' and '{each.child.name}' are fixed "
            "to each other; it is left out",
        )

    # ---- what ties joints together

    def _leader(self, each: Connection, step: Step) -> tuple[Connection, int]:
        """The connection that a step mimics, and which of its steps."""
        mimic, document = step.mimic, each.frame.document
        assert mimic is not None
        named = self.frames.named(mimic.joint, each.scope, document, each.element)
        leader = self.connections.get(named)
        if leader is None or not leader.steps or leader.steps[0].type not in ONE_DOF:
            what = named.kind if leader is None else f"{leader.kind} joint"
            raise document.error(
                each.element, f"'{mimic.joint}' cannot be mimicked: it is a {what}"
            )
        if mimic.axis2 and len(leader.steps) < 2:
            raise document.error(each.element, f"'{mimic.joint}' has no axis2 to mimic")
        return leader, int(mimic.axis2)

    def _with_mimic(self, joint: Joint) -> Joint:
        step = self.steps.get(joint.name)
        if step is None or step.mimic is None:
            return joint
        leader, number = self._leader(self.makers[step.name], step)
        lead = leader.steps[number]
        offset = step.mimic.offset + _position(step) - step.mimic.multiplier * _position(lead)
        mimic = Mimic(lead.name, step.mimic.multiplier, offset)
        return replace(joint, mimic=mimic)

    def _gearbox(self, frame: Frame) -> LinkCoupling | JointCoupling:
        """θ₂ = −gearbox_ratio θ₁, of the angles of child and parent in the reference body."""
        document, element = frame.document, frame.element
        document.parts(element, _JOINT, _JOINT_IRRELEVANT)
        source = document.source(element, f"joint '{frame.name}'")
        parent, child = self._end(frame, "parent"), self._end(frame, "child")
        name = document.required(element, "gearbox_reference_body")
        reference = self.frames.world
        if not _is_world(frame, name):
            reference = self._carrier(frame, name, element)
        ratio = document.value(element, "gearbox_ratio", 1.0)
        terms: list[dict[str, float]] = []
        for end, tag in ((parent, "axis"), (child, "axis2")):
            part = element.find(tag)
            if part is None:
                raise document.error(element, f"a gearbox joint needs <{tag}>")
            direction = self._direction(frame, elements.axis(document, part, bounded=False))
            terms.append(self._angle(reference, end, self._upright(frame, direction), frame, tag))
        first, second = terms
        offset = sum(k * self._standing(q) for q, k in second.items())
        offset += ratio * sum(k * self._standing(q) for q, k in first.items())
        offset += 0.0
        signs = [set(each.values()) for each in terms]
        if (
            all(len(sign) == 1 for sign in signs)
            and first.keys().isdisjoint(second)
            and all(map(self._turns_only, (reference, reference), (parent, child), terms))
        ):
            (s1,), (s2,) = signs
            return LinkCoupling(
                frame.name, parent.name, child.name, 0.0 - ratio * s1 * s2, s2 * offset, source
            )
        total = dict(second)
        for joint, k in first.items():
            total[joint] = total.get(joint, 0.0) + ratio * k
        return JointCoupling(frame.name, tuple(total.items()), offset, source)

    def _angle(
        self, reference: Frame, end: Frame, direction: Vec3, gearbox: Frame, tag: str
    ) -> dict[str, float]:
        """By how much each joint turns ``end`` about the direction, as seen from the reference."""
        document = gearbox.document
        up, down = self._path(reference.name, end.name)
        if len(up) + len(down) > _MOST_GEARED:
            raise document.error(
                gearbox.element,
                f"{len(up) + len(down)} joints lie between the reference body '{reference.name}' "
                f"and '{end.name}'; more than {_MOST_GEARED} are not read",
            )
        terms = {}
        for joint, way in (*((j, -1.0) for j in up), *((j, 1.0) for j in down)):
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
                document.suspect(
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

    def _upright(self, frame: Frame, axis: Vec3) -> Vec3:
        """An axis of a frame in the world."""
        return turned(self.frames.in_world(frame).rotation, axis)

    def _path(self, start: str, end: str) -> tuple[list[Joint], list[Joint]]:
        """The joints up from one link to the common ancestor, and down to the other."""
        lines = []
        for link in (start, end):
            line, at = [], link
            while at in self.above:
                line.append(self.above[at])
                at = line[-1].parent
            lines.append(line)
        up, down = lines
        while up and down and up[-1] is down[-1]:
            up.pop()
            down.pop()
        return up, down[::-1]

    def _turns_only(self, reference: Frame, end: Frame, terms: dict[str, float]) -> bool:
        """Whether these joints are all that moves ``end``, which hangs on the reference body."""
        up, down = self._path(reference.name, end.name)
        return all(joint.type == "fixed" for joint in up) and all(
            joint.type == "fixed" or joint.name in terms for joint in down
        )

    def _standing(self, joint: str) -> float:
        return _position(self.steps[joint])


def _source(frame: Frame) -> Source:
    return frame.document.source(frame.element, f"{frame.kind} '{frame.name}'")


def _type(frame: Frame) -> str:
    kind = frame.document.text(frame.element, "type")
    if kind not in JOINT_TYPES:
        remedy = (
            "; write a prismatic and a revolute joint with a link without mass between"
            if kind == "piston"
            else f"{did_you_mean(kind, JOINT_TYPES)}; known: {', '.join(JOINT_TYPES)}"
        )
        raise frame.document.error(frame.element, f"the type '{kind}' is not known{remedy}")
    return kind


def _is_world(joint: Frame, name: str) -> bool:
    """Whether a joint means the world by a name, and no link that old files may call so."""
    return name == WORLD and joint.scope is not None and WORLD not in joint.scope.tables["link"]


def stands_for_world(link: Frame) -> bool:
    """Whether a link is the world as old files write it: called so, with nothing to it."""
    things = ("inertial", "visual", "collision")
    return link.element.get("name") == WORLD and all(link.element.find(t) is None for t in things)


def _is_held(frame: Frame) -> bool:
    """Whether a frame is the world, or a link of a static model, or one that stands for it."""
    if frame.kind == "world" or (frame.scope is not None and frame.scope.static):
        return True
    return frame.kind == "link" and stands_for_world(frame)


def _welded(found: Span, world: Frame, held: Sequence[Frame]) -> Callable[[Frame], Frame]:
    """Of each link, one that stands for all that are fixed to each other."""
    leader: dict[Frame, Frame] = dict.fromkeys(held, world)

    def together(frame: Frame) -> Frame:
        while (above := leader.get(frame, frame)) is not frame:
            leader[frame] = leader.get(above, above)
            frame = above
        return frame

    for each, _ in found.tree:
        if each.kind == "fixed":
            one, other = together(each.parent), together(each.child)
            leader[other if one is world else one] = one if one is world else other
    return together


def _link(frames: Frames, link: Frame, grounded: bool) -> Link:
    """A link with its mass and its shapes; what is fixed to the world needs no inertial."""
    document, element = link.document, link.element
    parts = document.parts(element, _LINK, _LINK_IRRELEVANT)
    if not grounded:
        _doubt_forces(document, parts)
    inertial = None
    if "inertial" in parts or not grounded:
        where = Placed()
        if "inertial" in parts:
            where = elements.placed(document, parts["inertial"])
        inertial = elements.inertial(document, element, _stands(frames, link, where, element))
    shapes = []
    for child in element:
        if child.tag in ("visual", "collision"):
            pose = _stands(frames, link, elements.placed(document, child), child)
            role = cast(Literal["visual", "collision"], child.tag)
            shapes.append(elements.shape(document, child, role, pose))
    kept: tuple[Shape, ...] = tuple(shape for shape in shapes if shape is not None)
    return Link(link.name, inertial, _source(link), kept)


def _stands(frames: Frames, link: Frame, placed: Placed, element: Element) -> Pose:
    """The pose in a link of something whose pose may be written in another frame."""
    if not placed.relative_to:
        return placed.pose
    assert link.scope is not None
    named = frames.named(placed.relative_to, link.scope, link.document, element)
    return tidy(compose(frames.pose(link, named), placed.pose))


def _doubt_forces(document: SdfDocument, parts: dict[str, Element]) -> None:
    """Warn of what a simulator would do to a link, and this package does not."""
    if "gravity" in parts and not document.as_truth(parts["gravity"], parts["gravity"].text or ""):
        document.suspect(
            parts["gravity"],
            "gravity is switched off for this link, which is not supported; it acts on it here",
            "gravity off",
        )
    kinematic = parts.get("kinematic")
    if kinematic is not None and document.as_truth(kinematic, kinematic.text or ""):
        document.suspect(
            kinematic, "<kinematic> is ignored; the link moves by its dynamics", "kinematic"
        )
    decay = parts.get("velocity_decay")
    if decay is not None and any(document.content(each) for each in decay):
        document.suspect(decay, "<velocity_decay> is not applied", "velocity decay")


# --- joints: single words -------------------------------------------------------------------------


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
    """``<motor>``, a word of our own."""
    return read_motor(document, element.find(f"{{{CUSTOM}}}motor"))


def _words(element: Element, name: str, count: int) -> list[str] | None:
    """The words of one of this package's own attributes, if it has so many."""
    words = element.get(f"{{{CUSTOM}}}{name}", "").split()
    return words if len(words) == count else None


def _numbers(
    document: SdfDocument, element: Element, name: str, count: int
) -> tuple[float, ...] | None:
    words = _words(element, name, count)
    if words is None:
        return None
    return tuple(_number(document, element, name, word) for word in words)


def _number(document: SdfDocument, element: Element, name: str, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise document.error(element, f"{name} is {spelled(word)}, which is not a finite number")
    return value


def _truths(document: SdfDocument, element: Element, count: int) -> bool | tuple[bool, ...] | None:
    """Which freedoms are independent: one word for all, or one for each."""
    words = _words(element, "independent", count)
    if words is not None:
        return tuple(bool(_mark(document, element, word)) for word in words)
    words = _words(element, "independent", 1)
    return None if words is None else _mark(document, element, words[0])


def _mark(document: SdfDocument, element: Element, word: str) -> bool | None:
    return None if word == "-" else document.as_truth(element, word)


# --- joints: where they are -----------------------------------------------------------------------


def _position(step: Step) -> float:
    """Where the joint of one freedom stands in the file's poses."""
    return step.position[0] if step.position else 0.0


def _fits(step: Step, inner: Pose) -> bool:
    """Whether a link at ``inner`` in the joint's frame moves as if the joint were at its origin."""
    if step.type == "prismatic":
        return True
    if step.type == "spherical":
        return math.hypot(*inner.xyz) <= _ON_AXIS
    return off_axis(inner.xyz, step.axis) <= _ON_AXIS


def _perpendicular(one: Vec3, other: Vec3) -> bool:
    return abs(cosine(one, other)) <= _ACROSS


def _alignment(one: Vec3, other: Vec3) -> tuple[float, float]:
    """1 for nearly the same direction, -1 for nearly the opposite one, and the sine between them.

    0 for none of the two.
    """
    apart = sine(one, other)
    return (math.copysign(1.0, cosine(one, other)) if apart <= _NEARLY_ALONG else 0.0), apart
