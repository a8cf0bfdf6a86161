"""A description as MJCF, in the words that MuJoCo has for it.

Positions of joints stay what they are: a joint's ``ref`` is its initial position, and its body is
placed as it is there. Those of a free joint count from the world, as MuJoCo has no others. What
MuJoCo has no joint for becomes several joints of one body, and what it has no constraint for
several of those that it has, between sites. :func:`robomodel.parsers.mjcf.read_mjcf` reads all of
it back.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from lxml import etree

from robomodel.description import (
    AT_ORIGIN,
    FREEDOMS,
    GRAVITY,
    IDENTITY,
    ONE_DOF,
    Description,
    Joint,
    Link,
    LinkCoupling,
    Pose,
    Rows3,
    Vec3,
)
from robomodel.parsers.mjcf.actuators import WORLD
from robomodel.parsers.mjcf.bodies import EFFORT_LIMIT, INDEPENDENT, NO_LIMIT, VELOCITY_LIMIT
from robomodel.parsers.mjcf.draft import Draft
from robomodel.parsers.mjcf.motors import JOINT_MOTOR
from robomodel.parsers.mjcf.poses import pose_words, turn_words
from robomodel.parsers.mjcf.shapes import Shapes
from robomodel.parsers.mjcf.sliders import with_sliders
from robomodel.parsers.mjcf.written_ties import Ties, couple, note_motor
from robomodel.parsers.schema import DYNAMICS, MOTOR, add, write_mjcf
from robomodel.parsers.shared.inertias import (
    NEARLY_NOTHING,
    carriers,
    of_a_body,
    physical_inertias,
    principal,
)
from robomodel.parsers.urdf.joints import independent_text
from robomodel.poses import align, compose, initial_positions, standing, unit
from robomodel.spatial import apply, matmul, transpose
from robomodel.text import number, numbers
from robomodel.transmissions import rotor_name

_MOST_FREEDOMS = 6  # of a body: MuJoCo's own limit
_FLAT = 1e-12  # relative: a largest moment that is the sum of the others but for rounding


def to_mjcf(description: Description) -> tuple[str, list[str]]:
    """The text of an MJCF file that MuJoCo loads, and what it does not say of the robot.

    Lengths are in metres and angles in radians. docs/mjcf.md tells how each thing is said, and
    which names MJCF has no place for.
    """
    description = with_sliders(physical_inertias(description))
    tree = _Tree(description)
    tree.write()
    Ties(description, tree.draft).write()
    return tree.draft.text(), tree.draft.lost


@dataclass(frozen=True, slots=True)
class _Piece:
    """One of MuJoCo's joints, in the frame of the joint's child.

    ``ref`` is its position where the child is placed. It ``leads`` if it has the joint's own name,
    position and limits.
    """

    name: str
    kind: str
    joint: Joint
    axis: Vec3 | None = None
    ref: float = 0.0
    leads: bool = True


@dataclass
class _Tree:
    """The bodies and joints of a description, and the document that they are written in."""

    description: Description

    def __post_init__(self) -> None:
        said = self.description
        self.draft = Draft(said.name)
        self.draft.option.set("gravity", numbers(said.gravity or GRAVITY))
        self.draft.names["body"].taken.add(WORLD)
        self.draft.names["joint"].taken.update(joint.name for joint in said.joints)
        self.shapes = Shapes(self.draft)
        self.links = {link.name: link for link in said.links}
        self.moved_by = {joint.child: joint for joint in said.joints}
        self.initial = initial_positions(said.joints)
        self.children: dict[str, list[Joint]] = defaultdict(list)
        for joint in said.joints:
            self.children[joint.parent].append(joint)

    def write(self) -> None:
        """A body for every link, but for the world and for massless links in a row of joints."""
        world = self.draft.sections["worldbody"]
        root = next(link for link in self.description.links if link.name not in self.moved_by)
        if root.name == WORLD:
            self.draft.bodies[WORLD] = world
            self.shapes.write(root, world, moves=False)
            if root.inertial is not None:
                self.draft.lost.append("the inertia of the link 'world': MuJoCo's world has none")
        else:
            self.draft.bodies[root.name] = self._body(world, root, AT_ORIGIN, [], moves=False)
        fixed = {root.name: AT_ORIGIN}  # links that do not move, and where they stand
        moving: set[str] = set()
        stack = list(reversed(self.children[root.name]))
        while stack:
            row = self._row(stack.pop())
            first, last = row[0], self.links[row[-1].child]
            parent, pose = self.draft.bodies[first.parent], self._placed(row)
            stands = fixed.get(first.parent)
            if first.type == "floating" and len(row) == 1 and stands is not None:
                pieces, parent = [_Piece(first.name, "free", first)], world
                pose = compose(stands, pose)
            else:
                pieces = [piece for joint in row for piece in self._pieces(joint)]
            if pieces or first.parent in moving:
                moving.add(last.name)
            elif stands is not None:
                fixed[last.name] = compose(stands, pose)
            below = self._body(parent, last, pose, pieces, moves=last.name in moving)
            self._write_pieces(below, row, pieces)
            self.draft.bodies[last.name] = below
            stack.extend(reversed(self.children[last.name]))

    def _placed(self, row: Sequence[Joint]) -> Pose:
        """The last child's frame in the first parent's; joints at their initial positions."""
        return reduce(compose, (standing(joint, self.initial) for joint in row), AT_ORIGIN)

    def _row(self, joint: Joint) -> list[Joint]:
        """The joint, and those that follow it over links that need no body of their own."""
        row = [joint]
        while self._passes(row[-1]):
            following = self.children[row[-1].child][0]
            balls = any(joint.type in ("spherical", "floating") for joint in row)
            if sum(map(_freedoms, (*row, following))) > _MOST_FREEDOMS or (
                balls and following.type != "prismatic"
            ):
                break  # MuJoCo has no more in one body, and no rotation after a ball
            row.append(following)
        for n, each in enumerate(row):
            if (
                each.type in ("spherical", "floating")
                and self._placed(row[n + 1 :]).rotation != IDENTITY
            ):
                return row[: n + 1]  # its quaternion is not that of the body at the row's end
        return row

    def _passes(self, joint: Joint) -> bool:
        """Whether a joint leads to a link that is nothing but the place of the next joint."""
        link, below = self.links[joint.child], self.children[joint.child]
        return (
            joint.type != "fixed"
            and link.inertial is None
            and not link.shapes
            and link.name not in self._tied
            and len(below) == 1
            and below[0].type not in ("fixed", "floating")
        )

    @cached_property
    def _carriers(self) -> set[str]:
        """The links to which something heavy enough for MuJoCo is fixed."""
        return carriers(self.description)

    @cached_property
    def _tied(self) -> set[str]:
        """The links at which loops end."""
        loops = self.description.loops
        return {end.link for loop in loops for end in (loop.predecessor, loop.successor)}

    def _pieces(self, joint: Joint) -> list[_Piece]:
        """MuJoCo's joints for one joint: those that add up to it, the first to act first."""
        initial = joint.initial or 0.0

        def slide(suffix: str, axis: Vec3, ref: float = 0.0) -> _Piece:
            name = self.draft.unused("joint", f"{joint.name}.{suffix}")
            return _Piece(name, "slide", joint, axis, ref, leads=False)

        match joint.type:
            case "revolute" | "continuous":
                return [_Piece(joint.name, "hinge", joint, joint.axis, initial)]
            case "prismatic":
                return [_Piece(joint.name, "slide", joint, joint.axis, initial)]
            case "spherical":
                return [_Piece(joint.name, "ball", joint)]
            case "screw":
                hinge = _Piece(joint.name, "hinge", joint, joint.axis, initial)
                return [slide("advance", joint.axis, joint.pitch * initial), hinge]
            case "planar":
                k, images = align(unit(joint.axis))
                axes = transpose(images)
                x, y = axes[(k + 1) % 3], axes[(k + 2) % 3]
                hinge = _Piece(joint.name, "hinge", joint, axes[k])
                return [slide("x", x), slide("y", y), hinge]
            case "floating":
                slides = [slide(each, axis) for each, axis in zip("xyz", IDENTITY, strict=True)]
                return [*slides, _Piece(joint.name, "ball", joint)]
        return []

    def _write_pieces(
        self, body: etree._Element, row: Sequence[Joint], pieces: Sequence[_Piece]
    ) -> None:
        """The joints of a body, in its frame where it is placed: that of the row's last child."""
        after = {joint.name: self._placed(row[n + 1 :]) for n, joint in enumerate(row)}
        for piece in pieces:
            joint, back = piece.joint, transpose(after[piece.joint.name].rotation)
            self.draft.refs[piece.name] = piece.ref
            if piece.kind == "free" and not (joint.damping or joint.friction):
                add(body, "freejoint", name=piece.name)
            else:
                element = add(body, "joint", name=piece.name, type=piece.kind)
                if piece.kind in ("hinge", "ball"):
                    x, y, z = apply(back, after[joint.name].xyz)
                    if (x, y, z) != (0.0, 0.0, 0.0):
                        element.set("pos", numbers((-x, -y, -z)))
                if piece.axis is not None:
                    element.set("axis", numbers(apply(back, piece.axis)))
                if piece.ref:
                    element.set("ref", number(piece.ref))
                if piece.leads:
                    write_mjcf(element, DYNAMICS, joint)
                    if joint.armature:
                        element.set("armature", number(joint.armature))
                    self._limits(element, joint, piece.kind)
                elif joint.type in ("planar", "floating"):
                    write_mjcf(element, DYNAMICS, joint, ("damping", "friction"))
            self._independent(piece)
            if piece.leads and math.isfinite(joint.limits.velocity):
                limit = number(joint.limits.velocity)
                self._custom("numeric", VELOCITY_LIMIT + joint.name, limit)
            if piece.leads and joint.motor is not None and MOTOR.of(joint.motor):
                note_motor(self.draft, JOINT_MOTOR + self._driven_at(joint), joint.motor)
        for joint in row:
            if joint.type == "screw":
                slide, hinge = (piece for piece in pieces if piece.joint is joint)
                couple(self.draft, joint.name, ((slide.name, 1.0), (hinge.name, -joint.pitch)), 0.0)

    def _driven_at(self, joint: Joint) -> str:
        """The joint at which its motor acts: that of a rotor that is a link, which has its name."""
        own = rotor_name(joint.name)
        if all(each.name != own for each in self.description.joints):
            for coupling in self.description.couplings:
                if isinstance(coupling, LinkCoupling) and coupling.name == own:
                    return self.moved_by[coupling.successor].name
        return joint.name

    def _limits(self, element: etree._Element, joint: Joint, kind: str) -> None:
        lower, upper, effort = joint.limits.lower, joint.limits.upper, joint.limits.effort
        if kind == "ball":
            lower = 0.0
        bounded = math.isfinite(upper) or (math.isfinite(lower) and kind != "ball")
        if bounded and joint.type not in ("continuous", "planar", "floating"):
            if lower < upper:
                ends = (max(lower, -NO_LIMIT), min(upper, NO_LIMIT))
                element.set("range", numbers(ends))
            else:
                self.draft.lost.append(
                    f"the limits of the joint '{joint.name}', which leave no room between them"
                )
        if 0.0 < effort < NO_LIMIT and joint.type in ONE_DOF:
            element.set("actuatorfrcrange", numbers((-effort, effort)))
        elif math.isfinite(effort):
            self._custom("numeric", EFFORT_LIMIT + joint.name, number(effort))

    def _independent(self, piece: _Piece) -> None:
        """Which freedoms are independent; of those that several joints stand for, all or none."""
        joint, marks = piece.joint, piece.joint.independent
        several = joint.type in ("planar", "floating") and piece.kind != "free"
        if marks is None or not (piece.leads or several):
            return
        if isinstance(marks, tuple) and several:
            if len(set(marks)) > 1:
                if piece.leads:
                    self.draft.lost.append(
                        f"which freedoms of the {joint.type} joint '{joint.name}' are independent"
                    )
                return
            marks = marks[0]
        self._custom("text", INDEPENDENT + piece.name, independent_text(marks))

    def _custom(self, tag: str, name: str, data: str) -> None:
        self.draft.add("custom", tag, name=name, data=data)

    # ---- bodies

    def _body(
        self,
        parent: etree._Element,
        link: Link,
        pose: Pose,
        pieces: Sequence[_Piece],
        *,
        moves: bool,
    ) -> etree._Element:
        name = self.draft.unused("body", link.name)
        if name != link.name:
            self.draft.lost.append(
                f"the name '{link.name}' of a link, which is MuJoCo's own; it is '{name}'"
            )
        body = add(parent, "body", name=name, **pose_words(pose))
        self._inertial(body, link, needed=bool(pieces) and link.name not in self._carriers)
        self.shapes.write(link, body, moves=moves)
        return body

    def _inertial(self, body: etree._Element, link: Link, *, needed: bool) -> None:
        """The inertia of a link; where ``needed``, MuJoCo lets it be zero in no direction."""
        said = link.inertial
        if said is None or not (said.mass or any(said.inertia)):
            if needed:
                least = number(NEARLY_NOTHING)
                self.draft.lost.append(
                    f"that the link '{link.name}' moves without a mass; it is given {least} kg, "
                    "and constraints of what is so light hardly hold in MuJoCo: give it some grams"
                )
                thrice = " ".join([least] * 3)
                add(body, "inertial", pos="0 0 0", mass=least, diaginertia=thrice)
            return
        mass = said.mass
        if mass < NEARLY_NOTHING:
            mass = NEARLY_NOTHING
            self.draft.lost.append(
                f"that the link '{link.name}' has no mass but moments of inertia; it is given "
                f"{number(mass)} kg"
            )
        element = add(body, "inertial", pos=numbers(said.origin.xyz), mass=number(mass))
        moments, axes = principal(said)
        real = of_a_body(moments, moves=needed)
        if any(abs(a - b) > _FLAT * moments[2] for a, b in zip(real, moments, strict=True)):
            self.draft.lost.append(
                f"the principal moments of inertia {', '.join(f'{m:.3g}' for m in moments)} of the "
                f"link '{link.name}', which MuJoCo takes only where all are positive and none is "
                f"larger than the others' sum; they are written as "
                f"{', '.join(f'{m:.3g}' for m in real)}"
            )
        xx, xy, xz, yy, yz, zz = said.inertia
        if real == moments and not (xy or xz or yz):
            _turn(element, said.origin.rotation)
            element.set("diaginertia", numbers((xx, yy, zz)))
        else:  # rather than fullinertia, of which older versions lose digits
            rows = axes.tolist()
            columns: Rows3 = (tuple(rows[0]), tuple(rows[1]), tuple(rows[2]))
            _turn(element, matmul(said.origin.rotation, columns))
            element.set("diaginertia", numbers(real))


def _freedoms(joint: Joint) -> int:
    """How many MuJoCo's joints for it have."""
    return 2 if joint.type == "screw" else FREEDOMS[joint.type]


def _turn(element: etree._Element, rotation: Rows3) -> None:
    for name, value in turn_words(rotation).items():
        element.set(name, value)
