"""Joints of SDF that tie links: how they name them, loops, gearboxes, and mimics."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lxml import etree

from robomodel.description import ONE_DOF, Joint, JointCoupling, LinkCoupling, Loop
from robomodel.parsers.schema import add_text
from robomodel.parsers.sdf.draft import Draft, dynamics, own, pose, prefix
from robomodel.parsers.sdf.frames import BETWEEN, WORLD
from robomodel.parsers.sdf.plan import LOOPS, Plan
from robomodel.poses import (
    branches,
    cosine,
    placed,
    relative,
    second_axis,
    sine,
    tidy,
    turned,
    unit,
)
from robomodel.text import number, numbers

_PARALLEL = 1e-9  # sine of an angle


class Ties:
    """What ties the links of a document once they have their names.

    ``mimics`` are followers with their leader, multiplier and offset.
    """

    def __init__(self, plan: Plan, draft: Draft) -> None:
        self.plan = plan
        self.draft = draft
        self.mimics = self._mimics()

    def write(self) -> None:
        """Loops and gearboxes; mimics are said by their joints."""
        for loop in self.plan.description.loops:
            self._loop(loop)
        for coupling in self.plan.description.couplings:
            self._coupling(coupling)

    # ---- names

    def name_joints(self, joints: Sequence[Joint]) -> None:
        """Give joints their names, in models from which those that mimic reach their leaders."""
        called = self.draft.joints
        for joint in joints:
            ends = [self._end(end) for end in (joint.parent, self.plan.moved(joint))]
            called[joint.name] = self.draft.claim(joint.name, *ends, more="joint")
        changed = True
        while changed:
            changed = False
            for name, (leader, *_) in self.mimics.items():
                follower = self.plan.first(self.plan.joints[name]).name
                said = called[follower]
                first = self.plan.first(self.plan.joints[leader]).name
                if not called[first].startswith(prefix(said)):
                    called[follower] = self.draft.claim(said.replace(BETWEEN, "_"))
                    changed = True

    def joint(self, kind: str, name: str, parent: str | None, child: str) -> etree._Element:
        """A joint between two links, called as in the description; None is the world."""
        ends = [WORLD if end is None else self._end(end) for end in (parent, child)]
        said = self.draft.joints.get(name) or self.draft.claim(name, *ends, more="joint")
        element = self.draft.element("joint", name, said, type=kind)
        within = len(prefix(said))
        for tag, end in zip(("parent", "child"), ends, strict=True):
            add_text(element, tag, end if end == WORLD else end[within:])
        return element

    def _within(self, element: etree._Element, link: str) -> str:
        """How a joint's element names a link."""
        said, model = self._end(link), element.getparent()
        while said != WORLD and model is not None and model is not self.draft.models[()]:
            said, model = said.partition(BETWEEN)[2], model.getparent()
        return said

    def _end(self, link: str) -> str:
        """The name of the link of the file that carries a link."""
        return self.draft.links[self.plan.body(link)]

    # ---- loops

    def _loop(self, loop: Loop) -> None:
        if loop.type not in LOOPS:
            self.draft.lost.append(f"the {loop.type} loop '{loop.name}'")
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
                own(element, "position", number(shown))
        engine = etree.SubElement(etree.SubElement(element, "physics"), "simbody")
        add_text(engine, "must_be_loop_joint", "true")

    def _shown(self, loop: Loop) -> float:
        """The coordinate of a revolute or prismatic loop as the file shows it."""
        there, here = (placed(end, self.plan.poses) for end in (loop.predecessor, loop.successor))
        found, (x, y, z) = relative(there, here), unit(loop.axis)
        if loop.type == "prismatic":
            return x * found.xyz[0] + y * found.xyz[1] + z * found.xyz[2]
        r = found.rotation
        turn = x * (r[2][1] - r[1][2]) + y * (r[0][2] - r[2][0]) + z * (r[1][0] - r[0][1])
        return math.atan2(turn, r[0][0] + r[1][1] + r[2][2] - 1.0)

    # ---- couplings

    def _mimics(self) -> dict[str, tuple[str, float, float]]:
        """Mimics, and couplings that can be said as such."""
        description, joints = self.plan.description, self.plan.joints
        mimics = {
            joint.name: (joint.mimic.joint, joint.mimic.multiplier, joint.mimic.offset)
            for joint in description.joints
            if joint.mimic is not None and joint.type in ONE_DOF
        }
        for each in description.couplings:
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
                self.draft.lost.append(f"the coupling '{each.name}' of {len(terms)} joints")
                continue
            follower = next((j for j in free if joints[j].independent is False), free[-1])
            factors = dict(terms)
            (leader,) = factors.keys() - {follower}
            ratio = -factors[leader] / factors[follower]
            mimics[follower] = leader, ratio, each.offset / factors[follower]
        return mimics

    def mimic(self, axis: etree._Element, joint: Joint) -> None:
        """``<mimic>`` in the axis of a joint, if it is tied to another one so."""
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

    def _paths(self, coupling: LinkCoupling) -> tuple[list[Joint], list[Joint]]:
        """The moving joints from the common ancestor down to predecessor and successor."""
        lines = branches(self.plan.above, coupling.predecessor, coupling.successor)
        one, other = ([joint for joint in line if joint.type != "fixed"] for line in lines)
        return one, other

    def _gears(self, coupling: LinkCoupling) -> bool:
        """Whether a coupling is one of angles about parallel axes, as a gearbox is."""
        paths = self._paths(coupling)
        for path in paths:
            if not path or any(j.type not in ("revolute", "continuous") for j in path):
                return False
            axes = [self.plan.direction(joint) for joint in path]
            if any(sine(axes[0], axis) > _PARALLEL or cosine(axes[0], axis) < 0 for axis in axes):
                return False
        if coupling.offset:  # a gearbox has none but that of the configuration that is shown
            one, other = (sum(self.plan.at(joint.name) for joint in path) for path in paths)
            if abs(coupling.ratio * one + coupling.offset - other) > _PARALLEL:
                return False
        return paths[0][0].parent not in self.plan.crosses

    def _coupling(self, coupling: LinkCoupling | JointCoupling) -> None:
        if isinstance(coupling, JointCoupling) or not self._gears(coupling):
            return  # said as a mimic
        paths = self._paths(coupling)
        ends = [path[-1].child for path in paths]
        element = self.joint("gearbox", coupling.name, *ends)
        reference = self._within(element, paths[0][0].parent)
        add_text(element, "gearbox_reference_body", reference)
        add_text(element, "gearbox_ratio", number(0.0 - coupling.ratio))
        for tag, path, end in zip(("axis", "axis2"), paths, ends, strict=True):
            axis, body = path[-1].axis, self.plan.body(end)
            if body != end:
                back = relative(self.plan.poses[body], self.plan.poses[end])
                axis = turned(tidy(back).rotation, axis)
            xyz = add_text(etree.SubElement(element, tag), "xyz", numbers(axis))
            xyz.set("expressed_in", self._within(element, end))
