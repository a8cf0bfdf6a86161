"""SDF: the inverse of :mod:`robomodel.parsers.sdf`, for a description from any format.

An SDF file shows a robot in one configuration: poses of links, in which every joint is at zero and
every loop is closed. A robot whose loops are not closed at position zero is shown in its neutral
configuration, and the positions there are noted in attributes of this package's own. Such
attributes also keep which joints are independent and where loop closing starts; other readers pass
them over, and miss nothing mechanical.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from lxml import etree

from robomodel.description import (
    AT_ORIGIN,
    IDENTITY,
    ONE_DOF,
    Anchor,
    Description,
    Inertial,
    Joint,
    JointCoupling,
    Link,
    LinkCoupling,
    Loop,
    Pose,
    Shape,
    Vec3,
)
from robomodel.errors import DescriptionWarning
from robomodel.model import build, graph, masses
from robomodel.model.demands import universal_frame
from robomodel.parsers.sdf_elements import CUSTOM, off_axis, pose_in, turned
from robomodel.parsers.sdf_frames import BETWEEN, WORLD, tidy
from robomodel.parsers.sdf_tree import Step
from robomodel.spatial import apply, minus, transpose
from robomodel.writers.text import number, numbers, rpy_of

VERSION = "1.11"
_DRAKE = "http://drake.mit.edu"
_LOOPS = {
    **{"revolute": "revolute", "continuous": "continuous", "prismatic": "prismatic"},
    **{"fixed": "fixed", "spherical": "ball", "universal": "universal"},
}
_TYPES = {"spherical": "ball", "planar": "fixed", "floating": "fixed"}
_PARALLEL = 1e-9  # sine of an angle
_ON_AXIS = 1e-12  # m
_CLOSED = 1e-9  # m, or the sine of an angle


def to_sdf(description: Description) -> tuple[str, list[str]]:
    """The text of an SDF file that says the description, and what it cannot say of it."""
    writer = _Writer(_of_bodies(description))
    root = writer.written()
    body = etree.tostring(root, pretty_print=True, encoding="unicode")
    return f'<?xml version="1.0"?>\n{body}', writer.lost


def _of_bodies(description: Description) -> Description:
    """The robot with inertias that no body has counted with the links that they are fixed to.

    Such are moments without mass, or of one axis only, as rotors have that are held still. It is
    the same mechanism; Gazebo and Drake refuse a file with a link of such an inertia.
    """
    links = {link.name: link for link in description.links}
    above = {joint.child: joint for joint in description.joints if joint.type == "fixed"}
    for link in description.links:
        if link.inertial is None or _is_of_a_body(link.inertial):
            continue
        pose, at = AT_ORIGIN, link.name
        while at in above:
            pose, at = pose_in(above[at].origin, pose), above[at].parent
            carrier = links[at].inertial
            if carrier is not None and carrier.mass > 0.0:
                both = masses.placed(carrier, AT_ORIGIN) + masses.placed(link.inertial, pose)
                com, ((xx, xy, xz), (_, yy, yz), (_, _, zz)) = masses.centred(both)
                moments = xx, xy, xz, yy, yz, zz
                whole = Inertial(float(both.mass), moments, Pose(com), carrier.source)
                if _is_of_a_body(whole):
                    links[at] = replace(links[at], inertial=whole)
                    links[link.name] = replace(links[link.name], inertial=None)
                break
    return replace(description, links=tuple(links.values()))


def _is_of_a_body(inertial: Inertial) -> bool:
    """Whether there is a body with these moments, or nothing."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    a, b, c = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return bool((inertial.mass > 0.0 or c == 0.0) and a >= 0.0 and c <= (a + b) * (1 + 1e-9))


class _Writer:
    """A description, the configuration in which the file shows it, and what the file has so far."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self.lost: list[str] = []
        self.links = {link.name: link for link in description.links}
        self.above = {joint.child: joint for joint in description.joints}
        self.below: dict[str, list[Joint]] = defaultdict(list)
        for joint in description.joints:
            self.below[joint.parent].append(joint)
        self.joints = {joint.name: joint for joint in description.joints}
        self.root = next(name for name in self.links if name not in self.above)
        self.positions = _positions(description)
        self.poses = _poses(description, self.positions)
        self.held = self._held()
        self.crosses: dict[str, tuple[Joint, Joint]] = {}  # by the link between the two joints
        self.carriers: dict[str, tuple[str, Pose]] = {}  # moved link → child link and its pose
        self.frames: set[str] = set()
        self.ground = self._is_ground()
        self._plan()
        self.mimics = self._mimics()
        self.taken: dict[tuple[str, ...], set[str]] = defaultdict(set)
        self.models: dict[tuple[str, ...], etree._Element] = {}
        self.said: dict[str, str] = {self.root: WORLD} if self.ground else {}  # of links
        self.called: dict[str, str] = {}  # of joints

    # ---- the configuration that is shown

    def _standing(self, joint: Joint) -> Pose:
        """The pose of the child in the parent, as the file shows it."""
        return _standing(joint, self.positions)

    def _at(self, joint: str) -> float:
        """Where a joint of one freedom stands."""
        return self.positions[joint][0] if joint in self.positions else 0.0

    def _held(self) -> set[str]:
        """The links that are fixed to the world."""
        held, stack = {self.root}, [self.root]
        while stack:
            for joint in self.below[stack.pop()]:
                if joint.type == "fixed":
                    held.add(joint.child)
                    stack.append(joint.child)
        return held

    # ---- which link is said how

    def _plan(self) -> None:
        """Decide how each link is said: by a link, or by a frame if it has no mass and is fixed.

        A link without mass that a joint moves, and to which another one is fixed, is that joint's
        frame; the joint then moves the other one.
        """
        for link in self.description.links:
            if self._has_substance(link.name) or link.name not in self.above:
                continue
            joint = self.above[link.name]
            fixed = next((j for j in self.below[link.name] if j.type == "fixed"), None)
            if joint.type == "fixed":
                if not (self.ground and joint.parent == self.root):
                    self.frames.add(link.name)
            elif second := self._second(joint):
                self.crosses[link.name] = joint, second
            elif (
                fixed is not None
                and self._has_substance(fixed.child)
                and joint.type not in ("floating", "planar")
            ):
                self.carriers[link.name] = fixed.child, fixed.origin

    def _is_ground(self) -> bool:
        """Whether the root link is the world itself, and no link of its own."""
        floats = [joint.type for joint in self.below[self.root]] == ["floating"]
        return not self._has_substance(self.root) and (floats or self.root == WORLD)

    def _has_substance(self, name: str) -> bool:
        link = self.links[name]
        return link.inertial is not None or bool(link.shapes)

    def _second(self, joint: Joint) -> Joint | None:
        """The second joint, where ``joint`` is the first one of a universal joint.

        So they are read: two revolute joints whose axes meet, with nothing on the link between.
        """
        below = self.below[joint.child]
        if joint.type != "revolute" or len(below) != 1:
            return None
        (second,) = below
        names = f"{joint.name}{BETWEEN}cross", f"{joint.name}{BETWEEN}2"
        if (joint.child, second.name) != names or second.type != "revolute":
            return None
        axis = turned(second.origin.rotation, second.axis)
        ends = {
            end
            for loop in self.description.loops
            for end in (loop.predecessor.link, loop.successor.link)
        }
        ends |= {
            end
            for each in self.description.couplings
            if isinstance(each, LinkCoupling)
            for end in (each.predecessor, each.successor)
        }
        plain = joint.child not in ends and not joint.armature and not second.armature
        return second if plain and off_axis(second.origin.xyz, axis) <= _ON_AXIS else None

    # ---- names

    def _claim(self, name: str, *others: str, more: str = "") -> str:
        """The name that an element gets, in the models that its own name says.

        From there it must reach what it names. A name that SDF does not allow, or that another
        element has, is changed; ``more`` is then tried first as an ending.
        """
        *models, last = name.split(BETWEEN)
        scope = tuple(models)
        prefix = "".join(model + BETWEEN for model in models)
        nested = all(
            scope[:n] in self.models or scope[n - 1] not in self.taken[scope[: n - 1]]
            for n in range(1, len(scope) + 1)
        )
        reached = all(other == WORLD or other.startswith(prefix) for other in others)
        if not (nested and reached and all(models)):
            scope, last = (), name.replace(BETWEEN, "_")
        if last in ("", WORLD) or (last.startswith("__") and last.endswith("__")):
            last = f"{last.strip('_') or 'unnamed'}_"
        fresh, count = last, 0
        while fresh in self.taken[scope]:
            fresh = f"{last}_{count}" if count or not more else f"{last}_{more}"
            count += 1
        self._model(scope)
        self.taken[scope].add(fresh)
        return BETWEEN.join((*scope, fresh))

    def _model(self, scope: tuple[str, ...]) -> etree._Element:
        """The model of these names, one in the other; made where it is not there yet."""
        if scope not in self.models:
            self.taken[scope[:-1]].add(scope[-1])
            self.models[scope] = etree.SubElement(
                self._model(scope[:-1]), "model", {"name": scope[-1]}
            )
        return self.models[scope]

    def _element(self, tag: str, name: str, said: str, **attributes: str) -> etree._Element:
        """A new element, called ``said`` in the file; a name that is another one is noted in it."""
        *models, last = said.split(BETWEEN)
        element = etree.SubElement(self._model(tuple(models)), tag, {"name": last} | attributes)
        if said != name:
            element.set(f"{{{CUSTOM}}}name", name)
        return element

    # ---- all of it

    def written(self) -> etree._Element:
        """The root element of the file."""
        description = self.description
        nsmap = {"robomodel": CUSTOM, "drake": _DRAKE}
        file = holder = etree.Element("sdf", {"version": VERSION}, nsmap=nsmap)
        if description.gravity is not None:
            holder = etree.SubElement(file, "world", {"name": "default"})
            _text(holder, "gravity", numbers(description.gravity))
        name = description.name.strip() or "robot"
        if BETWEEN in name or name == WORLD:
            self.lost.append(f"a robot called '{name}'")
            name = name.replace(BETWEEN, "_") if name != WORLD else "robot"
        self.models[()] = etree.SubElement(holder, "model", {"name": name})
        links = [link for link in description.links if not self._is_implied(link.name)]
        for link in links:
            if link.name not in self.carriers:
                joint = self.above.get(link.name)
                on = link.name in self.frames and joint and self.said.get(self._body(joint.parent))
                self.said[link.name] = self._claim(link.name, *((on,) if on else ()))
        for name, (child, _) in self.carriers.items():
            if not self._is_joints_own(name):
                self.said[name] = self._claim(name, self.said[child])
        for link in links:
            if link.name in self.carriers:
                self._carrier(link.name)
            elif link.name in self.frames:
                self._frame(link.name)
            else:
                self._link(link)
        if not self.ground:
            self._joint_element("fixed", self._unused(f"{self.root}_to_world"), WORLD, self.root)
        elements = [joint for joint in description.joints if self._is_element(joint)]
        self._name_joints(elements)
        for joint in elements:
            self._joint(joint)
        for loop in description.loops:
            self._loop(loop)
        for coupling in description.couplings:
            self._coupling(coupling)
        if description.transmissions:
            names = ", ".join(f"'{each.name}'" for each in description.transmissions)
            self.lost.append(f"the transmissions {names}")
        etree.cleanup_namespaces(file)
        return file

    def _is_implied(self, name: str) -> bool:
        """Whether no element stands for a link: the world, and that between a joint's two axes."""
        return name in self.crosses or (self.ground and name == self.root)

    def _is_joints_own(self, name: str) -> bool:
        """Whether a link that is fixed to the one it moves is what reading makes of the joint."""
        joint = self.above[name]
        first = self._first(joint).name
        if name != (f"{first}{BETWEEN}frame" if first in self.links and first != name else first):
            return False
        inner = self.carriers[name][1].xyz
        if joint.type == "spherical":
            return math.hypot(*inner) > _ON_AXIS
        return joint.type != "prismatic" and off_axis(inner, joint.axis) > _ON_AXIS

    def _first(self, joint: Joint) -> Joint:
        """The joint that the element of a joint is called after."""
        return self.crosses[joint.parent][0] if joint.parent in self.crosses else joint

    def _unused(self, name: str) -> str:
        while name in self.joints:
            name += "_"
        return name

    # ---- links

    def _link(self, link: Link) -> None:
        element = self._element("link", link.name, self.said[link.name])
        joint = self.above.get(link.name)
        if joint is not None:
            start, pose = joint.parent, self._standing(joint)
            if self.carriers.get(start, ("",))[0] == link.name:
                above = self.above[start]
                start, pose = above.parent, pose_in(self._standing(above), pose)
            if base := self._reached(link.name, start):
                _pose(element, pose, base)
            else:  # in the model, whose frame is that of the root link
                _pose(element, tidy(self.poses[link.name]), "")
            if joint.type == "floating":
                self._float(element, joint)
        if link.inertial is not None:
            _inertial(element, link.inertial)
        elif link.name not in self.held:
            _inertial(element, Inertial(0.0, (0.0,) * 6))
        taken: set[str] = set()
        for shape in link.shapes:
            _shape(element, shape, taken)

    def _reached(self, name: str, other: str) -> str:
        """How the element of one link names another one; empty if it cannot."""
        if other not in self.said or self.said[other] == WORLD:
            return ""
        *models, _ = self.said[name].split(BETWEEN)
        prefix = "".join(model + BETWEEN for model in models)
        found = self.said[other]
        return found[len(prefix) :] if found.startswith(prefix) else ""

    def _float(self, element: etree._Element, joint: Joint) -> None:
        """A link that no joint holds; the name of its floating joint is kept."""
        if joint.parent not in self.held:
            self.lost.append(
                f"the floating joint '{joint.name}' on '{joint.parent}', which moves (the link "
                f"'{joint.child}' is free in the world)"
            )
        element.set(f"{{{CUSTOM}}}joint", joint.name)
        if joint.independent is not None:
            element.set(f"{{{CUSTOM}}}independent", _marks(joint.independent))

    def _frame(self, name: str) -> None:
        """A link without mass, fixed to another one."""
        base, pose = self.above[name].parent, self.above[name].origin
        if not self._reached(name, base):
            base = self._body(base)
            pose = tidy(pose_in(graph.inverse(self.poses[base]), self.poses[name]))
        element = self._element("frame", name, self.said[name])
        element.set("attached_to", self._reached(name, base))
        _pose(element, pose, "")

    def _carrier(self, name: str) -> None:
        """A link without mass that a joint moves, and to which the real one is fixed."""
        if name not in self.said:
            return  # the frame of the joint, which SDF has anyway
        child, offset = self.carriers[name]
        element = self._element("frame", name, self.said[name])
        element.set("attached_to", self._reached(name, child))
        _pose(element, tidy(graph.inverse(offset)), "")

    def _body(self, link: str) -> str:
        """The link of the file that carries a link."""
        while link in self.frames:
            link = self.above[link].parent
        return self.carriers[link][0] if link in self.carriers else link

    # ---- joints of the tree

    def _is_element(self, joint: Joint) -> bool:
        """Whether a joint is not said by a frame, a free link, or with the joint above."""
        return not (
            joint.type == "floating"
            or joint.child in self.frames
            or self.carriers.get(joint.parent, ("",))[0] == joint.child
            or joint.parent in self.crosses
        )

    def _name_joints(self, joints: Sequence[Joint]) -> None:
        """Give joints their names, in models from which those that mimic reach their leaders."""
        for joint in joints:
            ends = [self._end(end) for end in (joint.parent, self._moved(joint))]
            self.called[joint.name] = self._claim(joint.name, *ends, more="joint")
        changed = True
        while changed:
            changed = False
            for name, (leader, *_) in self.mimics.items():
                follower = self._first(self.joints[name]).name
                said = self.called[follower]
                within = said[: len(said) - len(said.split(BETWEEN)[-1])]
                if not self.called[self._first(self.joints[leader]).name].startswith(within):
                    self.called[follower] = self._claim(said.replace(BETWEEN, "_"))
                    changed = True

    def _moved(self, joint: Joint) -> str:
        """The link of the file that the element of a joint moves."""
        last = self.crosses[joint.child][1] if joint.child in self.crosses else joint
        return self.carriers.get(last.child, (last.child,))[0]

    def _joint_element(self, kind: str, name: str, parent: str, child: str) -> etree._Element:
        """A joint between two links, called as in the description (or the world)."""
        ends = [WORLD if end == WORLD else self._end(end) for end in (parent, child)]
        said = self.called.get(name) or self._claim(name, *ends, more="joint")
        element = self._element("joint", name, said, type=kind)
        within = len(said) - len(said.split(BETWEEN)[-1])
        for tag, end in zip(("parent", "child"), ends, strict=True):
            _text(element, tag, end if end == WORLD else end[within:])
        return element

    def _within(self, element: etree._Element, link: str) -> str:
        """How a joint's element names a link."""
        said, model = self._end(link), element.getparent()
        while said != WORLD and model is not None and model is not self.models[()]:
            said, model = said.partition(BETWEEN)[2], model.getparent()
        return said

    def _end(self, link: str) -> str:
        """The name of the link of the file that carries a link."""
        return self.said[self._body(link)]

    def _joint(self, joint: Joint) -> None:
        cross = self.crosses.get(joint.child)
        last = cross[1] if cross else joint
        inner = self.carriers[last.child][1] if last.child in self.carriers else AT_ORIGIN
        if cross:
            inner = pose_in(self._standing(last), inner)
        if joint.type == "planar":
            self.lost.append(f"the planar joint '{joint.name}' (it is fixed)")
        steps = cross or (joint,)
        kind = _TYPES.get(joint.type, joint.type)
        if cross:
            axes = joint.axis, turned(last.origin.rotation, last.axis)
            kind = "universal" if abs(_cosine(*axes)) <= _PARALLEL else "revolute2"
        element = self._joint_element(kind, joint.name, joint.parent, self._moved(joint))
        if inner != AT_ORIGIN:
            _pose(element, tidy(graph.inverse(inner)), "")
        if joint.type in ONE_DOF:
            for number_, step in enumerate(steps):
                axis = turned(step.origin.rotation, step.axis) if number_ else step.axis
                self._axis(element, "axis2" if number_ else "axis", axis, step)
        if joint.type == "screw":
            _text(element, "screw_thread_pitch", number(2.0 * math.pi * joint.pitch))
        self._own(element, steps)

    def _own(self, element: etree._Element, steps: Sequence[Joint]) -> None:
        """What SDF has no words for, and no other reader needs."""
        if any(step.name in self.positions for step in steps):
            shown = [q for step in steps for q in self.positions.get(step.name, (0.0,))]
            element.set(f"{{{CUSTOM}}}position", numbers(shown))
        if any(step.independent is not None for step in steps):
            marks = ["-" if s.independent is None else _marks(s.independent) for s in steps]
            element.set(f"{{{CUSTOM}}}independent", " ".join(marks))
        if any(step.initial is not None for step in steps):
            starts = ["-" if s.initial is None else number(s.initial) for s in steps]
            element.set(f"{{{CUSTOM}}}initial", " ".join(starts))
        (joint, *_) = steps
        if joint.armature and joint.type in ONE_DOF:
            _text(element, f"{{{_DRAKE}}}rotor_inertia", number(joint.armature))
            _text(element, f"{{{_DRAKE}}}gear_ratio", "1")
        elif joint.armature:
            self.lost.append(f"the armature of the {joint.type} joint '{joint.name}'")

    def _axis(self, parent: etree._Element, tag: str, axis: Vec3, joint: Joint) -> None:
        element = etree.SubElement(parent, tag)
        _text(element, "xyz", numbers(axis))
        limits, shift = joint.limits, self._at(joint.name)
        values = {
            "lower": limits.lower - shift,
            "upper": limits.upper - shift,
            "effort": limits.effort,
            "velocity": limits.velocity,
        }
        if said := {tag: value for tag, value in values.items() if math.isfinite(value)}:
            limit = etree.SubElement(element, "limit")
            for name, value in said.items():
                _text(limit, name, number(value))
        if joint.damping or joint.friction:
            dynamics = etree.SubElement(element, "dynamics")
            _text(dynamics, "damping", number(joint.damping))
            _text(dynamics, "friction", number(joint.friction))
        if joint.name in self.mimics:
            self._mimic(element, joint)

    # ---- loops

    def _loop(self, loop: Loop) -> None:
        if loop.type not in _LOOPS:
            self.lost.append(f"the {loop.type} loop '{loop.name}'")
            return
        one, other = loop.predecessor, loop.successor
        first = second = loop.axis
        if loop.type == "universal":
            second = transpose(universal_frame(loop))[1]
        if self._end(other.link) == WORLD:
            one, other, first, second = other, one, second, first
        element = self._joint_element(_LOOPS[loop.type], loop.name, one.link, other.link)
        _pose(element, tidy(self._anchor(other)), "")
        if loop.type == "universal":
            here, there = (pose_in(self.poses[end.link], end.origin) for end in (other, one))
            between = tidy(pose_in(graph.inverse(here), there)).rotation
            _text(etree.SubElement(element, "axis"), "xyz", numbers(turned(between, first)))
            _text(etree.SubElement(element, "axis2"), "xyz", numbers(second))
        elif loop.type not in ("fixed", "spherical"):
            _text(etree.SubElement(element, "axis"), "xyz", numbers(loop.axis))
        engine = etree.SubElement(etree.SubElement(element, "physics"), "simbody")
        _text(engine, "must_be_loop_joint", "true")

    def _anchor(self, anchor: Anchor) -> Pose:
        """Where a loop ends, on the link of the file that is there."""
        body = self._body(anchor.link)
        if body == anchor.link:
            return anchor.origin
        back = pose_in(graph.inverse(self.poses[body]), self.poses[anchor.link])
        return pose_in(back, anchor.origin)

    # ---- couplings

    def _mimics(self) -> dict[str, tuple[str, float, float]]:
        """Follower → leader, multiplier and offset: mimics, and what can be said as such."""
        mimics = {
            joint.name: (joint.mimic.joint, joint.mimic.multiplier, joint.mimic.offset)
            for joint in self.description.joints
            if joint.mimic is not None and joint.type in ONE_DOF
        }
        for each in self.description.couplings:
            terms: list[tuple[str, float]] = []
            if isinstance(each, JointCoupling):
                terms = [(joint, k) for joint, k in each.terms if k]
            elif not self._gears(each):
                paths = self._paths(each)
                terms = [(joint.name, -each.ratio) for joint in paths[0]]
                terms += [(joint.name, 1.0) for joint in paths[1]]
            else:
                continue
            free = [joint for joint, _ in terms if joint not in mimics]
            if len(terms) != 2 or not free:
                self.lost.append(f"the coupling '{each.name}' of {len(terms)} joints")
                continue
            follower = next((j for j in free if self.joints[j].independent is False), free[-1])
            factors = dict(terms)
            (leader,) = factors.keys() - {follower}
            ratio = -factors[leader] / factors[follower]
            mimics[follower] = leader, ratio, each.offset / factors[follower]
        return mimics

    def _mimic(self, axis: etree._Element, joint: Joint) -> None:
        leader, multiplier, offset = self.mimics[joint.name]
        first = self._first(self.joints[leader]).name
        said = self.called[self._first(joint).name]
        within = len(said) - len(said.split(BETWEEN)[-1])
        element = etree.SubElement(axis, "mimic", {"joint": self.called[first][within:]})
        if first != leader:
            element.set("axis", "axis2")
        offset += multiplier * self._at(leader) - self._at(joint.name)
        _text(element, "multiplier", number(multiplier))
        _text(element, "offset", number(offset))
        _text(element, "reference", "0")

    def _paths(self, coupling: LinkCoupling) -> tuple[list[Joint], list[Joint]]:
        """The moving joints from the common ancestor down to predecessor and successor."""
        lines = []
        for link in (coupling.predecessor, coupling.successor):
            line, at = [], link
            while at in self.above:
                line.append(self.above[at])
                at = line[-1].parent
            lines.append(line[::-1])
        one, other = lines
        shared = 0
        while shared < min(len(one), len(other)) and one[shared] is other[shared]:
            shared += 1
        one, other = ([j for j in line[shared:] if j.type != "fixed"] for line in lines)
        return one, other

    def _gears(self, coupling: LinkCoupling) -> bool:
        """Whether a coupling is one of angles about parallel axes, as a gearbox is."""
        for path in self._paths(coupling):
            if not path or any(j.type not in ("revolute", "continuous") for j in path):
                return False
            axes = [self._direction(joint) for joint in path]
            if any(_sine(axes[0], axis) > _PARALLEL or _cosine(axes[0], axis) < 0 for axis in axes):
                return False
        if coupling.offset:  # a gearbox has none but that of the configuration that is shown
            one, other = (
                sum(self._at(joint.name) for joint in path) for path in self._paths(coupling)
            )
            if abs(coupling.ratio * one + coupling.offset - other) > _PARALLEL:
                return False
        return self._paths(coupling)[0][0].parent not in self.crosses

    def _direction(self, joint: Joint) -> Vec3:
        return turned(self.poses[joint.child].rotation, joint.axis)

    def _coupling(self, coupling: LinkCoupling | JointCoupling) -> None:
        if isinstance(coupling, JointCoupling) or not self._gears(coupling):
            return  # said as a mimic
        paths = self._paths(coupling)
        ends = [path[-1].child for path in paths]
        element = self._joint_element("gearbox", coupling.name, *ends)
        reference = self._within(element, paths[0][0].parent)
        _text(element, "gearbox_reference_body", reference)
        _text(element, "gearbox_ratio", number(0.0 - coupling.ratio))
        for tag, path, end in zip(("axis", "axis2"), paths, ends, strict=True):
            axis, body = path[-1].axis, self._body(end)
            if body != end:
                back = pose_in(graph.inverse(self.poses[body]), self.poses[end])
                axis = turned(tidy(back).rotation, axis)
            xyz = _text(etree.SubElement(element, tag), "xyz", numbers(axis))
            xyz.set("expressed_in", self._within(element, end))


# --- where the file shows the robot ---------------------------------------------------------------


def _positions(description: Description) -> dict[str, tuple[float, ...]]:
    """The neutral positions of the joints of clusters that are not closed at position zero."""
    gears = {each.name for each in description.couplings if isinstance(each, LinkCoupling)}
    if not description.loops and not any(
        each.offset for each in description.couplings if each.name in gears
    ):
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        model = build(description)
    at_zero = _poses(description, {})
    loops = {loop.name: loop for loop in description.loops}
    open_clusters = {
        each.cluster for each in model.loops if not _is_closed(loops[each.name], at_zero)
    }
    open_clusters |= {
        each.cluster for each in model.couplings if each.name in gears and each.offset
    }
    joints = {joint.name: joint for joint in description.joints}
    q = model.joint_positions(model.neutral())
    return {
        name: tuple(float(x) for x in q[name].reshape(-1))
        for cluster in model.clusters
        if cluster.name in open_clusters
        for name in cluster.joints
        if joints[name].type == "spherical" or joints[name].type in ONE_DOF
    }


def _poses(description: Description, positions: Mapping[str, tuple[float, ...]]) -> dict[str, Pose]:
    """The pose of every link in the root link."""
    below: dict[str, list[Joint]] = defaultdict(list)
    for joint in description.joints:
        below[joint.parent].append(joint)
    moved = {joint.child for joint in description.joints}
    stack = [link.name for link in description.links if link.name not in moved]
    poses = dict.fromkeys(stack, AT_ORIGIN)
    while stack:
        for joint in below[name := stack.pop()]:
            poses[joint.child] = pose_in(poses[name], _standing(joint, positions))
            stack.append(joint.child)
    return poses


def _standing(joint: Joint, positions: Mapping[str, tuple[float, ...]]) -> Pose:
    """The pose of the child in the parent, at these positions and otherwise at zero."""
    if joint.name not in positions:
        return joint.origin
    step = Step(
        joint.name, joint.type, joint.axis, pitch=joint.pitch, position=positions[joint.name]
    )
    return pose_in(joint.origin, graph.inverse(step.undone()))


def _is_closed(loop: Loop, poses: Mapping[str, Pose]) -> bool:
    """Whether a loop that SDF can say is closed where its links stand."""
    first, second = (
        pose_in(poses[end.link], end.origin) for end in (loop.predecessor, loop.successor)
    )
    between = pose_in(graph.inverse(first), second)
    if loop.type == "prismatic":
        return off_axis(between.xyz, loop.axis) <= _CLOSED and _turn(between) <= _CLOSED
    if math.hypot(*between.xyz) > _CLOSED:
        return loop.type not in _LOOPS
    if loop.type == "fixed":
        return _turn(between) <= _CLOSED
    if loop.type == "universal":
        second_axis = apply(between.rotation, transpose(universal_frame(loop))[1])
        return abs(_cosine(loop.axis, second_axis)) <= _CLOSED
    if loop.type in ("revolute", "continuous"):
        x, y, z = minus(apply(between.rotation, loop.axis), loop.axis)
        return math.hypot(x, y, z) <= _CLOSED * math.hypot(*loop.axis)
    return True


def _turn(pose: Pose) -> float:
    return max(
        abs(a - b)
        for u, v in zip(pose.rotation, IDENTITY, strict=True)
        for a, b in zip(u, v, strict=True)
    )


# --- elements -------------------------------------------------------------------------------------


def _text(parent: etree._Element, tag: str, text: str) -> etree._Element:
    element = etree.SubElement(parent, tag)
    element.text = text
    return element


def _pose(parent: etree._Element, pose: Pose, relative_to: str) -> None:
    """``<pose>``, unless it says nothing."""
    angles = rpy_of(pose.rotation)
    if relative_to or any(pose.xyz) or any(angles):
        element = _text(parent, "pose", numbers((*pose.xyz, *angles)))
        if relative_to:
            element.set("relative_to", relative_to)


def _inertial(link: etree._Element, inertial: Inertial) -> None:
    element = etree.SubElement(link, "inertial")
    _pose(element, inertial.origin, "")
    _text(element, "mass", number(inertial.mass))
    moments = etree.SubElement(element, "inertia")
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    for name, value in zip(names, inertial.inertia, strict=True):
        _text(moments, name, number(value))


def _shape(link: etree._Element, shape: Shape, taken: set[str]) -> None:
    name, count = shape.name or shape.role, 1
    while name in taken:
        count += 1
        name = f"{shape.name or shape.role}_{count}"
    taken.add(name)
    element = etree.SubElement(link, shape.role, {"name": name})
    _pose(element, shape.origin, "")
    geometry = etree.SubElement(etree.SubElement(element, "geometry"), shape.kind)
    if shape.kind == "mesh":
        _text(geometry, "uri", shape.file or "")
        if shape.size != (1.0, 1.0, 1.0):
            _text(geometry, "scale", numbers(shape.size))
    elif shape.kind == "plane":
        _text(geometry, "normal", "0 0 1")
        _text(geometry, "size", "1 1")
    elif shape.kind in ("box", "ellipsoid"):
        _text(geometry, "size" if shape.kind == "box" else "radii", numbers(shape.size))
    else:
        for tag, value in zip(("radius", "length"), shape.size, strict=False):
            _text(geometry, tag, number(value))
    if shape.rgba is not None:
        material = etree.SubElement(element, "material")
        for tag in ("ambient", "diffuse"):
            _text(material, tag, numbers(shape.rgba))


def _marks(independent: bool | Iterable[bool]) -> str:
    marks = (independent,) if isinstance(independent, bool) else independent
    return " ".join("true" if mark else "false" for mark in marks)


def _cosine(one: Vec3, other: Vec3) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / (math.hypot(*one) * math.hypot(*other))


def _sine(one: Vec3, other: Vec3) -> float:
    return off_axis(one, other) / math.hypot(*one)
