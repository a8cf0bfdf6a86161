"""Which element of an SDF file says which link and joint of a description.

SDF has no links without mass between joints. What is such a link here is the frame of a joint, the
middle of a universal joint, or a frame that is attached to another link.
"""

from __future__ import annotations

import math
from collections import defaultdict

from robomodel.description import (
    AT_ORIGIN,
    Anchor,
    Description,
    Joint,
    LinkCoupling,
    Pose,
    Vec3,
)
from robomodel.parsers.sdf.frames import BETWEEN, WORLD
from robomodel.poses import (
    Positions,
    compose,
    line,
    link_poses,
    off_axis,
    relative,
    standing,
    turned,
)

LOOPS = {
    **{"revolute": "revolute", "continuous": "continuous", "prismatic": "prismatic"},
    **{"fixed": "fixed", "spherical": "ball", "universal": "universal"},
}
"""The loops that SDF can say, and by which joint."""
_ON_AXIS = 1e-12  # m


class Plan:
    """A description, the configuration in which the file shows it, and what says its parts.

    ``held`` are the links fixed to the world, ``frames`` those that are frames, ``crosses`` the two
    joints of each link in the middle of a universal joint, ``carriers`` the link and its pose that
    stands for each one that is its joint's frame. ``ground`` tells that the root is the world.
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
        self.ground = self._is_ground()
        self._decide()

    def _decide(self) -> None:
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
        loops, couplings = self.description.loops, self.description.couplings
        ends = [(loop.predecessor.link, loop.successor.link) for loop in loops]
        ends += [(c.predecessor, c.successor) for c in couplings if isinstance(c, LinkCoupling)]
        tied = any(joint.child in pair for pair in ends)
        plain = not tied and not joint.armature and not second.armature
        return second if plain and off_axis(second.origin.xyz, axis) <= _ON_AXIS else None

    # ---- links

    def is_implied(self, name: str) -> bool:
        """Whether no element stands for a link: the world, and that between a joint's two axes."""
        return name in self.crosses or (self.ground and name == self.root)

    def is_joints_own(self, name: str) -> bool:
        """Whether a link that is fixed to the one it moves is what reading makes of the joint."""
        joint = self.above[name]
        first = self.first(joint).name
        if name != (f"{first}{BETWEEN}frame" if first in self.links and first != name else first):
            return False
        inner = self.carriers[name][1].xyz
        if joint.type == "spherical":
            return math.hypot(*inner) > _ON_AXIS
        return joint.type != "prismatic" and off_axis(inner, joint.axis) > _ON_AXIS

    def body(self, link: str) -> str:
        """The link of the file that carries a link."""
        while link in self.frames:
            link = self.above[link].parent
        return self.carriers[link][0] if link in self.carriers else link

    def standing(self, joint: Joint) -> Pose:
        """The pose of the child in the parent, as the file shows it."""
        return standing(joint, self.positions)

    def anchor(self, anchor: Anchor) -> Pose:
        """Where a loop ends, on the link of the file that is there."""
        body = self.body(anchor.link)
        if body == anchor.link:
            return anchor.origin
        back = relative(self.poses[body], self.poses[anchor.link])
        return compose(back, anchor.origin)

    # ---- joints

    def is_element(self, joint: Joint) -> bool:
        """Whether a joint is not said by a frame, a free link, or with the joint above."""
        return not (
            joint.type == "floating"
            or joint.child in self.frames
            or self.carriers.get(joint.parent, ("",))[0] == joint.child
            or joint.parent in self.crosses
        )

    def first(self, joint: Joint) -> Joint:
        """The joint that the element of a joint is called after."""
        return self.crosses[joint.parent][0] if joint.parent in self.crosses else joint

    def moved(self, joint: Joint) -> str:
        """The link of the file that the element of a joint moves."""
        last = self.crosses[joint.child][1] if joint.child in self.crosses else joint
        return self.carriers.get(last.child, (last.child,))[0]

    def inner(self, joint: Joint) -> Pose:
        """The pose of the link that a joint's element moves, in the frame of the joint."""
        return self.carriers[joint.child][1] if joint.child in self.carriers else AT_ORIGIN

    def at(self, joint: str) -> float:
        """Where a joint of one freedom stands."""
        return self.positions[joint][0] if joint in self.positions else 0.0

    def direction(self, joint: Joint) -> Vec3:
        """A joint's axis in the root link."""
        return turned(self.poses[joint.child].rotation, joint.axis)
