"""Writing SDF, the inverse of the reader, for a description from any format.

An SDF file shows a robot in one configuration: the poses of links with every joint at zero and all
loops closed. A robot whose loops are not closed at position zero is shown in its neutral
configuration, with the positions there in attributes of this package's namespace. Such attributes
also keep which joints are independent and where loop closing starts; other readers ignore them and
lose nothing mechanical. SDF has no massless links between joints: such a link becomes the frame of
a joint, the middle of a universal joint, or a frame attached to another link.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

from lxml import etree

from robomodel.description import (
    AT_ORIGIN,
    GRAVITY,
    ONE_DOF,
    Anchor,
    CouplingElement,
    Description,
    Inertial,
    Joint,
    JointSpring,
    Link,
    LinkCoupling,
    Loop,
    PolynomialCoupling,
    Pose,
    Spring,
    Vec3,
)
from robomodel.description.poses import (
    Positions,
    branches,
    compose,
    cosine,
    inverse,
    line,
    link_poses,
    off_axis,
    placed,
    relative,
    second_axis,
    sine,
    standing,
    tidy,
    turned,
    unit,
)
from robomodel.mechanism.tree_constraints import unmarked
from robomodel.parsers.sdf.document import (
    BETWEEN,
    SdfDraft,
    dynamics,
    pose,
    prefix,
    set_custom,
)
from robomodel.parsers.sdf.joints import AXIS_LIMIT, KINDS
from robomodel.parsers.sdf.links import add_inertial, add_shape
from robomodel.tolerances import NOTHING, SAME
from robomodel.vocabulary.frames import (
    WORLD,
    independent_text,
    is_on_joint,
    path_terms,
    unwritable,
)
from robomodel.vocabulary.inertias import physical_inertias
from robomodel.vocabulary.motors import add_drake_armature, add_motor, add_transmission
from robomodel.vocabulary.schema import (
    COUPLING,
    LOWER_LIMITS,
    Names,
    add_text,
    number,
    numbers,
    text_of,
    write_contents,
)
from robomodel.vocabulary.springs import (
    add_linear_spring,
    add_spring,
    evened,
    has_dynamics,
    lost_law,
    rest_length,
)
from robomodel.vocabulary.xml import CUSTOM, DRAKE

LOOPS = {kind.loop: name for name, kind in KINDS.items() if kind.loop}
"""SDF's type of joint for each type of loop that it has."""


class WritingPlan:
    """A description, the configuration that the file shows, and the SDF elements of its parts.

    ``held`` are the links fixed to the world, ``frames`` those written as frames, ``crosses`` the
    two joints of each link in the middle of a universal joint, ``carriers`` the link (and pose)
    that replaces each link that is its joint's frame. ``ground``: whether the root is the world.
    """

    def __init__(self, description: Description, positions: Positions) -> None:
        self.description = description
        self.links = {link.name: link for link in description.links}
        self.above = {joint.child: joint for joint in description.joints}
        self.below: dict[str, list[Joint]] = defaultdict(list)
        for joint in description.joints:
            self.below[joint.parent].append(joint)
        self.joints = {joint.name: joint for joint in description.joints}
        self.root = next(name for name in self.links if name not in self.above)
        self.positions = positions
        self.poses = link_poses(description, self.positions)
        self.held = {
            name for name in self.links if all(j.type == "fixed" for j in line(self.above, name))
        }
        self.crosses: dict[str, tuple[Joint, Joint]] = {}
        self.carriers: dict[str, tuple[str, Pose]] = {}
        self.frames: set[str] = set()
        floats = [joint.type for joint in self.below[self.root]] == ["floating"]
        self.ground = not self._has_substance(self.root) and (floats or self.root == WORLD)
        self._decide()

    def _decide(self) -> None:
        """Decide for each link whether it becomes a link or, if massless and fixed, a frame.

        A massless link that a joint moves, and to which another one is fixed, is that joint's
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

    def _has_substance(self, name: str) -> bool:
        link = self.links[name]
        return link.inertial is not None or bool(link.shapes)

    def _second(self, joint: Joint) -> Joint | None:
        """The second joint of the universal joint whose first is ``joint``; None if it is not one.

        A universal joint is read as two revolute joints whose axes meet, with a bare link between.
        """
        below = self.below[joint.child]
        if joint.type != "revolute" or len(below) != 1:
            return None
        (second,) = below
        names = f"{joint.name}{BETWEEN}cross", f"{joint.name}{BETWEEN}2"
        if (joint.child, second.name) != names or second.type != "revolute":
            return None
        axis = turned(second.origin.rotation, second.axis)
        loops, couplings = self.description.loops, self.description.couplings
        ends = [(loop.predecessor.link, loop.successor.link) for loop in loops]
        ends += [(c.predecessor, c.successor) for c in couplings if isinstance(c, LinkCoupling)]
        tied = any(joint.child in pair for pair in ends)
        plain = not tied and not joint.armature and not second.armature
        return second if plain and off_axis(second.origin.xyz, axis) <= NOTHING else None

    # ---- links

    def is_frame_of_joint(self, name: str) -> bool:
        """True if a link is its joint's frame, as the reader creates it, with a fixed child."""
        joint = self.above[name]
        first = self.first(joint).name
        if name != (f"{first}{BETWEEN}frame" if first in self.links and first != name else first):
            return False
        inner = self.carriers[name][1].xyz
        return not is_on_joint(joint.type, joint.axis, inner, NOTHING)

    def body(self, link: str) -> str:
        """The link in the file that carries a link."""
        while link in self.frames:
            link = self.above[link].parent
        return self.carriers[link][0] if link in self.carriers else link

    def standing(self, joint: Joint) -> Pose:
        """The pose of the child in the parent in the configuration shown."""
        return standing(joint, self.positions)

    def anchor(self, anchor: Anchor) -> Pose:
        """The pose of a loop's end on the link in the file that carries it."""
        body = self.body(anchor.link)
        if body == anchor.link:
            return anchor.origin
        back = relative(self.poses[body], self.poses[anchor.link])
        return compose(back, anchor.origin)

    # ---- joints

    def is_element(self, joint: Joint) -> bool:
        """True if a joint has an element: no frame, free link or second axis of a universal one."""
        return not (
            joint.type == "floating"
            or joint.child in self.frames
            or self.carriers.get(joint.parent, ("",))[0] == joint.child
            or joint.parent in self.crosses
        )

    def first(self, joint: Joint) -> Joint:
        """The joint whose name the element of a joint has."""
        return self.crosses[joint.parent][0] if joint.parent in self.crosses else joint

    def moved(self, joint: Joint) -> str:
        """The link in the file that a joint's element moves."""
        last = self.crosses[joint.child][1] if joint.child in self.crosses else joint
        return self.carriers.get(last.child, (last.child,))[0]

    def inner(self, joint: Joint) -> Pose:
        """The pose of the link that a joint's element moves, in the joint's frame."""
        return self.carriers[joint.child][1] if joint.child in self.carriers else AT_ORIGIN

    def at(self, joint: str) -> float:
        """The position of a joint of one freedom in the configuration shown."""
        return self.positions[joint][0] if joint in self.positions else 0.0

    def direction(self, joint: Joint) -> Vec3:
        """A joint's axis in the root link's frame."""
        return turned(self.poses[joint.child].rotation, joint.axis)


class SdfTies:
    """Writes loops, gearboxes and mimics between the links of a document.

    ``mimics`` maps followers to their leader, multiplier and offset.
    """

    def __init__(self, plan: WritingPlan, draft: SdfDraft) -> None:
        self.plan = plan
        self.draft = draft
        self.mimics = self._mimics()

    def write(self) -> None:
        """Write loops and gearboxes; mimics are written with their joints."""
        for loop in self.plan.description.loops:
            self._loop(loop)
        for coupling in self.plan.description.couplings:
            self._coupling(coupling)

    # ---- names

    def name_joints(self, joints: Sequence[Joint]) -> None:
        """Name the joints so that, within SDF's scopes, a mimic can refer to its leader."""
        called = self.draft.joints
        for joint in joints:
            ends = [self._end(end) for end in (joint.parent, self.plan.moved(joint))]
            called[joint.name] = self.draft.claim(joint.name, *ends, more="joint")
        changed = True
        while changed:
            changed = False
            for name, (leader, *_) in self.mimics.items():
                follower = self.plan.first(self.plan.joints[name]).name
                follower_name = called[follower]
                first = self.plan.first(self.plan.joints[leader]).name
                if not called[first].startswith(prefix(follower_name)):
                    called[follower] = self.draft.claim(follower_name.replace(BETWEEN, "_"))
                    changed = True

    def joint(
        self, kind: str, name: str, parent: str | None, child: str, full_name: str = ""
    ) -> etree._Element:
        """Append a joint between two links given by description names; None is the world.

        ``full_name`` is the name in the file, if it is claimed: of joints of the tree.
        """
        ends = [WORLD if end is None else self._end(end) for end in (parent, child)]
        full_name = full_name or self.draft.claim(name, *ends, more="joint")
        element = self.draft.element("joint", name, full_name, type=kind)
        within = len(prefix(full_name))
        for tag, end in zip(("parent", "child"), ends, strict=True):
            add_text(element, tag, end if end == WORLD else end[within:])
        return element

    def _within(self, element: etree._Element, link: str) -> str:
        """The name by which a joint's element refers to a link."""
        end, model = self._end(link), element.getparent()
        while end != WORLD and model is not None and model is not self.draft.models[()]:
            end, model = end.partition(BETWEEN)[2], model.getparent()
        return end

    def _end(self, link: str) -> str:
        """The name of the link in the file that carries a link."""
        return self.draft.links[self.plan.body(link)]

    # ---- loops

    def _loop(self, loop: Loop) -> None:
        if loop.type not in LOOPS:
            self.draft.lost.append(f"the {loop.type} loop '{loop.name}'")
            self.draft.untied.add(loop.name)
            return
        one, other = loop.predecessor, loop.successor
        first = second = loop.axis
        if loop.type == "universal":
            second = unit(second_axis(loop))
        rest, shown = loop.reference, self._shown(loop) if loop.stiffness else 0.0
        if self._end(other.link) == WORLD:
            one, other, first, second, rest, shown = other, one, second, first, -rest, -shown
        element = self.joint(LOOPS[loop.type], loop.name, one.link, other.link)
        pose(element, tidy(self.plan.anchor(other)))
        if loop.type == "universal":
            here, there = (placed(end, self.plan.poses) for end in (other, one))
            between = tidy(relative(here, there)).rotation
            add_text(etree.SubElement(element, "axis"), "xyz", numbers(turned(between, first)))
            add_text(etree.SubElement(element, "axis2"), "xyz", numbers(second))
        elif loop.type not in ("fixed", "spherical"):
            axis = etree.SubElement(element, "axis")
            add_text(axis, "xyz", numbers(loop.axis))
            dynamics(axis, loop, rest - shown)
            if shown:
                set_custom(element, "position", number(shown))
        engine = etree.SubElement(etree.SubElement(element, "physics"), "simbody")
        add_text(engine, "must_be_loop_joint", "true")

    def _shown(self, loop: Loop) -> float:
        """The coordinate of a revolute or prismatic loop in the configuration shown."""
        there, here = (placed(end, self.plan.poses) for end in (loop.predecessor, loop.successor))
        between, (x, y, z) = relative(there, here), unit(loop.axis)
        if loop.type == "prismatic":
            return x * between.xyz[0] + y * between.xyz[1] + z * between.xyz[2]
        r = between.rotation
        turn = x * (r[2][1] - r[1][2]) + y * (r[0][2] - r[2][0]) + z * (r[1][0] - r[0][1])
        return math.atan2(turn, r[0][0] + r[1][1] + r[2][2] - 1.0)

    # ---- couplings

    def _mimics(self) -> dict[str, tuple[str, float, float]]:
        """Mimics, and couplings that can be written as mimics."""
        description, joints = self.plan.description, self.plan.joints
        mimics = {
            joint.name: (joint.mimic.joint, joint.mimic.multiplier, joint.mimic.offset)
            for joint in description.joints
            if joint.mimic is not None and joint.type in ONE_DOF
        }
        for each in description.couplings:
            terms: list[tuple[str, float]] = []
            if isinstance(each, PolynomialCoupling) and any(each.coefficients[2:]):
                self.draft.lost.append(f"the coupling '{each.name}' by a polynomial")
                self.draft.untied.add(each.name)
                continue
            if not isinstance(each, LinkCoupling):
                terms = [(joint, k) for joint, k in each.terms if k]
            elif not self._gears(each):
                terms = [(joint.name, k) for joint, k in path_terms(each, self.plan.above)]
            else:
                continue
            free = [joint for joint, _ in terms if joint not in mimics]
            if not isinstance(each, PolynomialCoupling) and COUPLING.of(each):
                self.draft.lost.append(f"the losses of the coupling '{each.name}'")
            if len(terms) != 2 or not free:
                self.draft.lost.append(f"the coupling '{each.name}' of {len(terms)} joints")
                self.draft.untied.add(each.name)
                continue
            follower = next((j for j in free if joints[j].independent is False), free[-1])
            factors = dict(terms)
            (leader,) = factors.keys() - {follower}
            ratio = -factors[leader] / factors[follower]
            mimics[follower] = leader, ratio, each.offset / factors[follower]
        return mimics

    def mimic(self, axis: etree._Element, joint: Joint) -> None:
        """Append ``<mimic>`` to the axis of a joint, if it has one, and Drake's to the joint.

        Drake reads its own alone, between two joints of one freedom in one model.
        """
        if joint.name not in self.mimics:
            return
        leader, multiplier, offset = self.mimics[joint.name]
        plan, called = self.plan, self.draft.joints
        first = plan.first(plan.joints[leader]).name
        within = len(prefix(called[plan.first(joint).name]))
        element = etree.SubElement(axis, "mimic", {"joint": called[first][within:]})
        if first != leader:
            element.set("axis", "axis2")
        offset += multiplier * plan.at(leader) - plan.at(joint.name)
        add_text(element, "multiplier", number(multiplier))
        add_text(element, "offset", number(offset))
        add_text(element, "reference", "0")
        alone = {joint.name, leader}.isdisjoint(
            step.name for cross in plan.crosses.values() for step in cross
        )
        whole = axis.getparent()
        if whole is not None and alone and BETWEEN not in element.get("joint", ""):
            words = {"joint": element.get("joint", ""), "multiplier": number(multiplier)}
            part = etree.SubElement(whole, f"{{{DRAKE}}}mimic", words)
            part.set("offset", number(offset))

    def _paths(self, coupling: LinkCoupling) -> tuple[list[Joint], list[Joint]]:
        """The moving joints from the common ancestor down to predecessor and successor."""
        lines = branches(self.plan.above, coupling.predecessor, coupling.successor)
        one, other = ([joint for joint in line if joint.type != "fixed"] for line in lines)
        return one, other

    def _gears(self, coupling: LinkCoupling) -> bool:
        """True if a coupling relates angles about parallel axes, as a gearbox does."""
        paths = self._paths(coupling)
        for path in paths:
            if not path or any(j.type not in ("revolute", "continuous") for j in path):
                return False
            axes = [self.plan.direction(joint) for joint in path]
            if any(sine(axes[0], axis) > SAME or cosine(axes[0], axis) < 0 for axis in axes):
                return False
        if coupling.offset:  # a gearbox's offset follows from the configuration shown
            one, other = (sum(self.plan.at(joint.name) for joint in path) for path in paths)
            if abs(coupling.ratio * one + coupling.offset - other) > SAME:
                return False
        return paths[0][0].parent not in self.plan.crosses

    def _coupling(self, coupling: CouplingElement) -> None:
        if not isinstance(coupling, LinkCoupling) or not self._gears(coupling):
            return  # written as a mimic
        paths = self._paths(coupling)
        ends = [path[-1].child for path in paths]
        element = self.joint("gearbox", coupling.name, *ends)
        reference = self._within(element, paths[0][0].parent)
        add_text(element, "gearbox_reference_body", reference)
        add_text(element, "gearbox_ratio", number(0.0 - coupling.ratio))
        for each, value in COUPLING.of(coupling).items():
            set_custom(element, each.name, number(value))
        for tag, path, end in zip(("axis", "axis2"), paths, ends, strict=True):
            axis, body = path[-1].axis, self.plan.body(end)
            if body != end:
                back = relative(self.plan.poses[body], self.plan.poses[end])
                axis = turned(tidy(back).rotation, axis)
            xyz = add_text(etree.SubElement(element, tag), "xyz", numbers(axis))
            xyz.set("expressed_in", self._within(element, end))


_TYPES = {"spherical": "ball", "planar": "fixed", "floating": "fixed"}


def to_sdf(description: Description, positions: Positions) -> tuple[str, list[str]]:
    """The text of an SDF file of the description, and messages on what is left out.

    ``positions`` are nonzero positions of joints in the configuration that the file shows.
    """
    draft = _drafted(description, positions)
    if draft.untied:
        draft = _drafted(unmarked(description, draft.untied), positions)
    return text_of(draft.root), draft.lost


def _drafted(description: Description, positions: Positions) -> SdfDraft:
    plan, draft = (
        WritingPlan(physical_inertias(_beside_the_world(description)), positions),
        SdfDraft(),
    )
    _Writer(plan, draft, SdfTies(plan, draft)).write()
    return draft


def _beside_the_world(description: Description) -> Description:
    """Move the contents of a root named ``world`` to a link fixed to it: SDF's world has none."""
    moved = {joint.child for joint in description.joints}
    (root,) = (link for link in description.links if link.name not in moved)
    empty = root.inertial is None and not root.shapes
    if root.name != WORLD or (empty and len(description.links) > 1):
        return description
    used = {link.name for link in description.links} | {joint.name for joint in description.joints}
    name = "scenery"
    while name in used or f"{name}_fixed" in used:
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


def _as_custom(element: etree._Element) -> None:
    """Put an element into this package's namespace, as its ``name`` must not clash in SDF."""
    element.tag = f"{{{CUSTOM}}}{element.tag}"
    for part in element.iter():
        if (called := part.get("name")) is not None:
            del part.attrib["name"]
            set_custom(part, "name", called)


@dataclass
class _Writer:
    """Writes links, joints and constraints of a planned document."""

    plan: WritingPlan
    draft: SdfDraft
    ties: SdfTies

    def write(self) -> None:
        """Write all."""
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
            _as_custom(add_transmission(draft.models[()], transmission, draft.lost))

    def _spring(self, spring: Spring | JointSpring) -> None:
        """Write a spring as Drake's, if it can be one: between links of one model, never slack."""
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
        _as_custom(add_spring(model, spring))

    # ---- links

    def _links(self) -> None:
        """Write every link, or the frame in its place."""
        plan, names = self.plan, self.draft.links
        if plan.ground:
            names[plan.root] = WORLD
        implied = plan.crosses.keys() | ({plan.root} if plan.ground else set())
        links = [link for link in plan.description.links if link.name not in implied]
        for link in links:
            if link.name not in plan.carriers:
                joint = plan.above.get(link.name)
                on = link.name in plan.frames and joint and names.get(plan.body(joint.parent))
                names[link.name] = self.draft.claim(link.name, *((on,) if on else ()))
        for name, (child, _) in plan.carriers.items():
            if not plan.is_frame_of_joint(name):
                names[name] = self.draft.claim(name, names[child])
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
            else:  # relative to the model, whose frame is that of the root link
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
        """Write a free link; the name of its floating joint is kept."""
        if joint.parent not in self.plan.held:
            self.draft.lost.append(
                f"the floating joint '{joint.name}' on '{joint.parent}', which moves (the link "
                f"'{joint.child}' is free in the world)"
            )
            self.draft.untied.add(joint.name)
        if joint.damping or joint.friction:
            self.draft.lost.append(f"damping and friction of '{joint.name}', which floats")
        set_custom(element, "joint", joint.name)
        if joint.name in self.plan.positions:
            set_custom(element, "position", numbers(self.plan.positions[joint.name]))
        if joint.independent is not None:
            set_custom(element, "independent", independent_text(joint.independent))

    def _frame(self, name: str) -> None:
        """Write a massless link that is fixed to another one as a frame."""
        plan = self.plan
        base, placement = plan.above[name].parent, plan.above[name].origin
        if not self.draft.reached(name, base):
            base = plan.body(base)
            placement = tidy(relative(plan.poses[base], plan.poses[name]))
        element = self.draft.element("frame", name, self.draft.links[name])
        element.set("attached_to", self.draft.reached(name, base))
        pose(element, placement)

    def _carrier(self, name: str) -> None:
        """Write a massless link that a joint moves, and to which the actual link is fixed."""
        if name not in self.draft.links:
            return  # the frame of the joint, which SDF has implicitly
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
            self.draft.untied.add(joint.name)
        steps = cross or (joint,)
        kind = _TYPES.get(joint.type, joint.type)
        if kind not in KINDS:
            raise unwritable(joint, "SDF")
        if cross:
            axes = joint.axis, turned(last.origin.rotation, last.axis)
            kind = "universal" if abs(cosine(*axes)) <= SAME else "revolute2"
        full_name = self.draft.joints[joint.name]
        element = self.ties.joint(kind, joint.name, joint.parent, plan.moved(joint), full_name)
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
        self._custom(element, steps)

    def _custom(self, element: etree._Element, steps: Sequence[Joint]) -> None:
        """Write what SDF cannot express, and other readers do not need."""
        positions = self.plan.positions
        if any(step.name in positions for step in steps):
            shown = [q for step in steps for q in positions.get(step.name, (0.0,))]
            set_custom(element, "position", numbers(shown))
        if any(step.independent is not None for step in steps):
            words = [
                "-" if s.independent is None else independent_text(s.independent) for s in steps
            ]
            set_custom(element, "independent", " ".join(words))
        if any(step.initial is not None for step in steps):
            starts = ["-" if s.initial is None else number(s.initial) for s in steps]
            set_custom(element, "initial", " ".join(starts))
        (joint, *_) = steps
        axes = [element] if len(steps) == 1 else [*element.iter("axis", "axis2")]
        for step, part in zip(steps, axes, strict=True):
            if step.motor is not None and step.type in ONE_DOF:
                add_motor(part, step.motor, f"{{{CUSTOM}}}motor")
        if joint.armature and joint.type in ONE_DOF:
            add_drake_armature(element, joint.armature, as_text=True)
        elif joint.armature:
            self.draft.lost.append(f"the armature of the {joint.type} joint '{joint.name}'")

    def _axis(self, parent: etree._Element, tag: str, axis: Vec3, joint: Joint) -> None:
        element = etree.SubElement(parent, tag)
        add_text(element, "xyz", numbers(axis))
        shift = self.plan.at(joint.name)
        limits = replace(
            joint.limits, lower=joint.limits.lower - shift, upper=joint.limits.upper - shift
        )
        if any(x is not None and math.isfinite(x) for x in astuple(limits)):
            limit = etree.SubElement(element, "limit")
            write_contents(limit, AXIS_LIMIT, limits)
            for each in LOWER_LIMITS:
                if (value := getattr(limits, each.field)) is not None:
                    set_custom(limit, each.name, number(value))
        dynamics(element, evened(joint), joint.reference - shift)
        self.draft.lost += lost_law(joint)
        self.ties.mimic(element, joint)
