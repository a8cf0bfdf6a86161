"""SDF: the inverse of :mod:`robomodel.parsers.sdf`, for a description from any format.

An SDF file shows a robot in one configuration: poses of links, in which every joint is at zero and
every loop is closed. A robot whose loops are not closed at position zero is shown in its neutral
configuration, and the positions there are noted in attributes of this package's own. Such
attributes also keep which joints are independent and where loop closing starts; other readers pass
them over, and miss nothing mechanical.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

from lxml import etree

from robomodel.description import (
    GRAVITY,
    ONE_DOF,
    Anchor,
    Description,
    Inertial,
    Joint,
    JointSpring,
    Link,
    Spring,
    Vec3,
)
from robomodel.parsers.schema import LIMIT, add_text, write_contents
from robomodel.parsers.sdf.draft import Draft, dynamics, own, pose
from robomodel.parsers.sdf.frames import BETWEEN, WORLD
from robomodel.parsers.sdf.links import add_inertial, add_shape
from robomodel.parsers.sdf.plan import Plan
from robomodel.parsers.sdf.written_ties import Ties
from robomodel.parsers.shared.drake import add_linear_spring
from robomodel.parsers.shared.inertias import physical_inertias
from robomodel.parsers.shared.motors import add_motor, add_transmission
from robomodel.parsers.shared.springs import add_spring, has_dynamics, rest_length
from robomodel.parsers.urdf.joints import independent_text
from robomodel.parsers.xml import CUSTOM, DRAKE
from robomodel.poses import Positions, compose, cosine, inverse, link_poses, relative, tidy, turned
from robomodel.text import Names, number, numbers

_TYPES = {"spherical": "ball", "planar": "fixed", "floating": "fixed"}
_RIGHT = 1e-9  # cosine of an angle


def to_sdf(description: Description, positions: Positions) -> tuple[str, list[str]]:
    """The text of an SDF file that says the description, and what it cannot say of it.

    ``positions`` are those of the joints at which the file shows the robot, where not zero.
    """
    plan, draft = Plan(physical_inertias(_beside_the_world(description)), positions), Draft()
    _Writer(plan, draft, Ties(plan, draft)).write()
    return draft.text(), draft.lost


def _beside_the_world(description: Description) -> Description:
    """What a root called ``world`` holds on a link fixed to it: SDF's world has no parts."""
    moved = {joint.child for joint in description.joints}
    (root,) = (link for link in description.links if link.name not in moved)
    empty = root.inertial is None and not root.shapes
    if root.name != WORLD or (empty and len(description.links) > 1):
        return description
    name = "scenery"
    taken = {each.name for each in description.links}
    taken |= {each.name for each in description.joints}
    while name in taken or f"{name}_fixed" in taken:
        name += "_"
    links = (Link(WORLD, source=root.source), replace(root, name=name))
    return replace(
        description,
        links=(*links, *(link for link in description.links if link is not root)),
        joints=(
            Joint(f"{name}_fixed", "fixed", WORLD, name, source=root.source),
            *description.joints,
        ),
    )


def _in_own_words(said: etree._Element) -> None:
    """Say an element of ours in SDF, where names within a model must differ from each other."""
    said.tag = f"{{{CUSTOM}}}{said.tag}"
    for part in said.iter():
        if (called := part.get("name")) is not None:
            del part.attrib["name"]
            own(part, "name", called)


@dataclass
class _Writer:
    """Links and joints of a planned document, and all that ties them."""

    plan: Plan
    draft: Draft
    ties: Ties

    def write(self) -> None:
        """All of it."""
        plan, draft = self.plan, self.draft
        description = plan.description
        holder = draft.root
        gravity = description.gravity or GRAVITY
        if gravity != GRAVITY:  # a model by itself is what Gazebo spawns
            holder = etree.SubElement(holder, "world", {"name": "default"})
            add_text(holder, "gravity", numbers(gravity))
        name = description.name.strip() or "robot"
        if BETWEEN in name or name == WORLD:
            draft.lost.append(f"a robot called '{name}'")
            name = name.replace(BETWEEN, "_") if name != WORLD else "robot"
        draft.models[()] = etree.SubElement(holder, "model", {"name": name})
        self._links()
        if not plan.ground:
            joint = f"{plan.root}_to_world"
            while joint in plan.joints:
                joint += "_"
            self.ties.joint("fixed", joint, None, plan.root)
        elements = [joint for joint in description.joints if plan.is_element(joint)]
        self.ties.name_joints(elements)
        for each in elements:
            self._joint(each)
        self.ties.write()
        for spring in description.springs:
            self._spring(spring)
        for transmission in description.transmissions:
            _in_own_words(add_transmission(draft.models[()], transmission, draft.lost))

    def _spring(self, spring: Spring | JointSpring) -> None:
        """A spring in Drake's words where it has them: between links of one model, not slack."""
        model = self.draft.models[()]
        if isinstance(spring, Spring):
            length = rest_length(spring, link_poses(self.plan.description))
            ends = [
                Anchor(self.plan.body(end.link), self.plan.anchor(end))
                for end in (spring.predecessor, spring.successor)
            ]
            bodies = [self.draft.links[end.link] for end in ends]
            if length > 0.0 and not any(name == WORLD or BETWEEN in name for name in bodies):
                points = [end.origin.xyz for end in ends]
                placed = replace(spring, length=length)
                add_linear_spring(model, placed, bodies, points, as_text=True)
                return
            ends = [
                Anchor(WORLD if name == WORLD else end.link, end.origin)
                for name, end in zip(bodies, ends, strict=True)
            ]
            spring = replace(spring, predecessor=ends[0], successor=ends[1], length=length)
        _in_own_words(add_spring(model, spring))

    # ---- links

    def _links(self) -> None:
        """Every link, or the frame that stands for it."""
        plan, said = self.plan, self.draft.links
        if plan.ground:
            said[plan.root] = WORLD
        links = [link for link in plan.description.links if not plan.is_implied(link.name)]
        for link in links:
            if link.name not in plan.carriers:
                joint = plan.above.get(link.name)
                on = link.name in plan.frames and joint and said.get(plan.body(joint.parent))
                said[link.name] = self.draft.claim(link.name, *((on,) if on else ()))
        for name, (child, _) in plan.carriers.items():
            if not plan.is_joints_own(name):
                said[name] = self.draft.claim(name, said[child])
        for link in links:
            if link.name in plan.carriers:
                self._carrier(link.name)
            elif link.name in plan.frames:
                self._frame(link.name)
            else:
                self._link(link)

    def _link(self, link: Link) -> None:
        plan = self.plan
        element = self.draft.element("link", link.name, self.draft.links[link.name])
        joint = plan.above.get(link.name)
        if joint is not None:
            start, placement = joint.parent, plan.standing(joint)
            if plan.carriers.get(start, ("",))[0] == link.name:
                above = plan.above[start]
                start, placement = above.parent, compose(plan.standing(above), placement)
            if base := self.draft.reached(link.name, start):
                pose(element, placement, base)
            else:  # in the model, whose frame is that of the root link
                pose(element, tidy(plan.poses[link.name]))
            if joint.type == "floating":
                self._float(element, joint)
        if link.inertial is not None:
            add_inertial(element, link.inertial)
        elif link.name not in plan.held:
            add_inertial(element, Inertial(0.0, (0.0,) * 6))
        names = Names()
        for shape in link.shapes:
            add_shape(element, shape, names)

    def _float(self, element: etree._Element, joint: Joint) -> None:
        """A link that no joint holds; the name of its floating joint is kept."""
        if joint.parent not in self.plan.held:
            self.draft.lost.append(
                f"the floating joint '{joint.name}' on '{joint.parent}', which moves (the link "
                f"'{joint.child}' is free in the world)"
            )
        if joint.damping or joint.friction:
            self.draft.lost.append(f"damping and friction of '{joint.name}', which floats")
        own(element, "joint", joint.name)
        if joint.name in self.plan.positions:
            own(element, "position", numbers(self.plan.positions[joint.name]))
        if joint.independent is not None:
            own(element, "independent", independent_text(joint.independent))

    def _frame(self, name: str) -> None:
        """A link without mass, fixed to another one."""
        plan = self.plan
        base, placement = plan.above[name].parent, plan.above[name].origin
        if not self.draft.reached(name, base):
            base = plan.body(base)
            placement = tidy(relative(plan.poses[base], plan.poses[name]))
        element = self.draft.element("frame", name, self.draft.links[name])
        element.set("attached_to", self.draft.reached(name, base))
        pose(element, placement)

    def _carrier(self, name: str) -> None:
        """A link without mass that a joint moves, and to which the real one is fixed."""
        if name not in self.draft.links:
            return  # the frame of the joint, which SDF has anyway
        child, offset = self.plan.carriers[name]
        element = self.draft.element("frame", name, self.draft.links[name])
        element.set("attached_to", self.draft.reached(name, child))
        pose(element, tidy(inverse(offset)))

    # ---- joints of the tree

    def _joint(self, joint: Joint) -> None:
        plan = self.plan
        cross = plan.crosses.get(joint.child)
        last = cross[1] if cross else joint
        inner = plan.inner(last)
        if cross:
            inner = compose(plan.standing(last), inner)
        if joint.type == "planar":
            self.draft.lost.append(f"the planar joint '{joint.name}' (it is fixed)")
        steps = cross or (joint,)
        kind = _TYPES.get(joint.type, joint.type)
        if cross:
            axes = joint.axis, turned(last.origin.rotation, last.axis)
            kind = "universal" if abs(cosine(*axes)) <= _RIGHT else "revolute2"
        element = self.ties.joint(kind, joint.name, joint.parent, plan.moved(joint))
        pose(element, tidy(inverse(inner)))
        if joint.type in ONE_DOF:
            for number_, step in enumerate(steps):
                axis = turned(step.origin.rotation, step.axis) if number_ else step.axis
                self._axis(element, "axis2" if number_ else "axis", axis, step)
        elif joint.type == "spherical" and has_dynamics(joint):
            part = etree.SubElement(element, "axis")  # where Drake reads the damping of ball joints
            add_text(part, "xyz", "0 0 1")
            dynamics(part, joint, 0.0)
        elif joint.damping or joint.friction:
            self.draft.lost.append(f"damping and friction of the {joint.type} joint '{joint.name}'")
        if joint.type == "screw":
            add_text(element, "screw_thread_pitch", number(2.0 * math.pi * joint.pitch))
        self._own(element, steps)

    def _own(self, element: etree._Element, steps: Sequence[Joint]) -> None:
        """What SDF has no words for, and no other reader needs."""
        positions = self.plan.positions
        if any(step.name in positions for step in steps):
            shown = [q for step in steps for q in positions.get(step.name, (0.0,))]
            own(element, "position", numbers(shown))
        if any(step.independent is not None for step in steps):
            words = [
                "-" if s.independent is None else independent_text(s.independent) for s in steps
            ]
            own(element, "independent", " ".join(words))
        if any(step.initial is not None for step in steps):
            starts = ["-" if s.initial is None else number(s.initial) for s in steps]
            own(element, "initial", " ".join(starts))
        (joint, *_) = steps
        axes = [element] if len(steps) == 1 else [*element.iter("axis", "axis2")]
        for step, part in zip(steps, axes, strict=True):
            if step.motor is not None and step.type in ONE_DOF:
                add_motor(part, step.motor, f"{{{CUSTOM}}}motor")
        if joint.armature and joint.type in ONE_DOF:
            add_text(element, f"{{{DRAKE}}}rotor_inertia", number(joint.armature))
            add_text(element, f"{{{DRAKE}}}gear_ratio", "1")
        elif joint.armature:
            self.draft.lost.append(f"the armature of the {joint.type} joint '{joint.name}'")

    def _axis(self, parent: etree._Element, tag: str, axis: Vec3, joint: Joint) -> None:
        element = etree.SubElement(parent, tag)
        add_text(element, "xyz", numbers(axis))
        shift = self.plan.at(joint.name)
        limits = replace(
            joint.limits, lower=joint.limits.lower - shift, upper=joint.limits.upper - shift
        )
        if any(map(math.isfinite, astuple(limits))):
            write_contents(etree.SubElement(element, "limit"), LIMIT, limits)
        dynamics(element, joint, joint.reference - shift)
        self.ties.mimic(element, joint)
