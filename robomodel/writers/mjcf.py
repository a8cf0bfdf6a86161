"""A description as MJCF, in the words that MuJoCo has for it.

Positions of joints stay what they are: a joint's ``ref`` is its initial position, and its body is
placed as it is there. What MuJoCo has no joint for becomes several joints of one body, and what it
has no constraint for several of those that it has, between sites.
:func:`robomodel.parsers.mjcf.read_mjcf` reads all of it back.
"""

from __future__ import annotations

import math
import posixpath
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from lxml import etree

from robomodel.description import (
    AT_ORIGIN,
    FREEDOMS,
    IDENTITY,
    ONE_DOF,
    Description,
    Joint,
    Link,
    LinkCoupling,
    Loop,
    Pose,
    Rows3,
    Shape,
    Transmission,
    Vec3,
)
from robomodel.model.joints import align
from robomodel.parsers.mjcf import EFFORT_LIMIT, INDEPENDENT, NO_LIMIT, VELOCITY_LIMIT, WORLD
from robomodel.spatial import apply, matmul, plus, transpose
from robomodel.writers.mjcf_masses import NEARLY_NOTHING, heavy, of_a_body, principal, suited
from robomodel.writers.text import number, numbers

_GRAVITY: Vec3 = (0.0, 0.0, -9.81)
_MOST_FREEDOMS = 6  # of a body: MuJoCo's own limit
_ARM = 0.1  # m: how far along an axis the point is that stands for it
_FLAT = 1e-12  # relative: a largest moment that is the sum of the others but for rounding
_MESHES = (".stl", ".obj", ".msh")

_Relation = Sequence[tuple[str, float]]  # joints and coefficients


def to_mjcf(description: Description) -> tuple[str, list[str]]:
    """The text of an MJCF file that MuJoCo loads, and what it does not say of the robot.

    Lengths are in metres and angles in radians. docs/mjcf.md tells how each thing is said, and
    which names MJCF has no place for.
    """
    writing = _Writing(description)
    writing.write()
    text: str = etree.tostring(writing.root, pretty_print=True, encoding="unicode")
    return text, writing.lost


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
class _Writing:
    """A description, and the document that grows from it."""

    description: Description
    lost: list[str] = field(default_factory=list)
    bodies: dict[str, etree._Element] = field(default_factory=dict)
    refs: dict[str, float] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    meshes: dict[tuple[str, tuple[float, ...]], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        said = self.description
        self.root = etree.Element("mujoco", model=said.name)
        _add(self.root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        _add(self.root, "option", gravity=numbers(said.gravity or _GRAVITY))
        sections = ("asset", "worldbody", "tendon", "equality", "actuator", "custom")
        self.sections = {name: _add(self.root, name) for name in sections}
        self.links = {link.name: link for link in said.links}
        self.moved_by = {joint.child: joint for joint in said.joints}
        self.children: dict[str, list[Joint]] = defaultdict(list)
        for joint in said.joints:
            self.children[joint.parent].append(joint)
        self.inertials = suited(said)
        self.names["body"].add(WORLD)
        self.names["joint"].update(joint.name for joint in said.joints)

    def write(self) -> None:
        """Write all of it."""
        self._tree()
        for loop in self.description.loops:
            self._loop(loop)
        self._couplings()
        for transmission in self.description.transmissions:
            self._transmission(transmission)
        for section in self.sections.values():
            if not len(section) and section.tag != "worldbody":
                self.root.remove(section)

    def _unused(self, kind: str, name: str) -> str:
        """The name, with a number if an element of this kind has it already."""
        unused, n = name, 2
        while unused in self.names[kind]:
            unused, n = f"{name}_{n}", n + 1
        self.names[kind].add(unused)
        return unused

    # ---- the tree

    def _tree(self) -> None:
        """A body for every link, but for the world and for massless links in a row of joints."""
        world = self.sections["worldbody"]
        root = next(link for link in self.description.links if link.name not in self.moved_by)
        if root.name == WORLD:
            self.bodies[WORLD] = world
            self._shapes(root, world, moves=False)
            if root.inertial is not None:
                self.lost.append("the inertia of the link 'world': MuJoCo's world has none")
        else:
            self.bodies[root.name] = self._body(world, root, AT_ORIGIN, [], moves=False)
        fixed = {root.name: AT_ORIGIN}  # links that do not move, and where they stand
        moving: set[str] = set()
        stack = list(reversed(self.children[root.name]))
        while stack:
            row = self._row(stack.pop())
            first, last = row[0], self.links[row[-1].child]
            parent, pose = self.bodies[first.parent], _placement(row)
            stands = fixed.get(first.parent)
            if (
                first.type == "floating"
                and len(row) == 1
                and stands is not None
                and _compose(stands, first.origin) == AT_ORIGIN
            ):
                pieces, parent = [_Piece(first.name, "free", first)], world
            else:
                pieces = [piece for joint in row for piece in self._pieces(joint)]
            if pieces or first.parent in moving:
                moving.add(last.name)
            elif stands is not None:
                fixed[last.name] = _compose(stands, pose)
            below = self._body(parent, last, pose, pieces, moves=last.name in moving)
            self._write_pieces(below, row, pieces)
            self.bodies[last.name] = below
            stack.extend(reversed(self.children[last.name]))

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
                and _placement(row[n + 1 :]).rotation != IDENTITY
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
    def _tied(self) -> set[str]:
        """The links at which loops end."""
        loops = self.description.loops
        return {end.link for loop in loops for end in (loop.predecessor, loop.successor)}

    def _pieces(self, joint: Joint) -> list[_Piece]:
        """MuJoCo's joints for one joint: those that add up to it, the first to act first."""
        initial = joint.initial or 0.0

        def slide(suffix: str, axis: Vec3, ref: float = 0.0) -> _Piece:
            name = self._unused("joint", f"{joint.name}.{suffix}")
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
        after = {joint.name: _placement(row[n + 1 :]) for n, joint in enumerate(row)}
        for piece in pieces:
            joint, back = piece.joint, transpose(after[piece.joint.name].rotation)
            self.refs[piece.name] = piece.ref
            if piece.kind == "free" and not (joint.damping or joint.friction):
                _add(body, "freejoint", name=piece.name)
            else:
                element = _add(body, "joint", name=piece.name, type=piece.kind)
                if piece.kind in ("hinge", "ball"):
                    x, y, z = apply(back, after[joint.name].xyz)
                    if (x, y, z) != (0.0, 0.0, 0.0):
                        element.set("pos", numbers((-x, -y, -z)))
                if piece.axis is not None:
                    element.set("axis", numbers(apply(back, piece.axis)))
                if piece.ref:
                    element.set("ref", number(piece.ref))
                if piece.leads or joint.type in ("planar", "floating"):
                    _set(element, damping=joint.damping, frictionloss=joint.friction)
                if piece.leads:
                    _set(element, armature=joint.armature)
                    self._limits(element, joint, piece.kind)
            if piece.leads:
                self._words(joint)
        for joint in row:
            if joint.type == "screw":
                slide, hinge = (piece for piece in pieces if piece.joint is joint)
                self._couple(joint.name, ((slide.name, 1.0), (hinge.name, -joint.pitch)), 0.0)

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
                self.lost.append(
                    f"the limits of the joint '{joint.name}', which leave no room between them"
                )
        if 0.0 < effort < NO_LIMIT and joint.type in ONE_DOF:
            element.set("actuatorfrcrange", numbers((-effort, effort)))
        elif math.isfinite(effort):
            self._custom("numeric", EFFORT_LIMIT + joint.name, number(effort))

    def _words(self, joint: Joint) -> None:
        """What MJCF has no word for, as custom words."""
        if joint.independent is not None:
            marks = (
                joint.independent if isinstance(joint.independent, tuple) else (joint.independent,)
            )
            words = " ".join("true" if mark else "false" for mark in marks)
            self._custom("text", INDEPENDENT + joint.name, words)
        if math.isfinite(joint.limits.velocity):
            self._custom("numeric", VELOCITY_LIMIT + joint.name, number(joint.limits.velocity))

    def _custom(self, tag: str, name: str, data: str) -> None:
        _add(self.sections["custom"], tag, name=name, data=data)

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
        name = self._unused("body", link.name)
        if name != link.name:
            self.lost.append(
                f"the name '{link.name}' of a link, which is MuJoCo's own; it is '{name}'"
            )
        body = _add(parent, "body", name=name, **_pose(pose))
        self._inertial(body, link, needed=bool(pieces) and not self._carried[link.name])
        self._shapes(link, body, moves=moves)
        return body

    @cached_property
    def _carried(self) -> dict[str, bool]:
        """Whether something heavy enough for MuJoCo is fixed to the link, further out."""
        carried: dict[str, bool] = {}
        order = [link.name for link in self.description.links if link.name not in self.moved_by]
        for name in order:
            order.extend(joint.child for joint in self.children[name])
        for name in reversed(order):
            carried[name] = any(
                carried[joint.child] or heavy(self.inertials[joint.child])
                for joint in self.children[name]
                if joint.type == "fixed"
            )
        return carried

    def _inertial(self, body: etree._Element, link: Link, *, needed: bool) -> None:
        """The inertia of a link; where ``needed``, MuJoCo lets it be zero in no direction."""
        said = self.inertials[link.name]
        if said is None or not (said.mass or any(said.inertia)):
            if needed:
                least = number(NEARLY_NOTHING)
                self.lost.append(
                    f"that the link '{link.name}' moves without a mass; it is given {least} kg"
                )
                thrice = " ".join([least] * 3)
                _add(body, "inertial", pos="0 0 0", mass=least, diaginertia=thrice)
            return
        mass = said.mass
        if mass < NEARLY_NOTHING:
            mass = NEARLY_NOTHING
            self.lost.append(
                f"that the link '{link.name}' has no mass but moments of inertia; it is given "
                f"{number(mass)} kg"
            )
        element = _add(body, "inertial", pos=numbers(said.origin.xyz), mass=number(mass))
        moments, axes = principal(said)
        real = of_a_body(moments, moves=needed)
        if any(abs(a - b) > _FLAT * moments[2] for a, b in zip(real, moments, strict=True)):
            self.lost.append(
                f"the principal moments of inertia {', '.join(f'{m:.3g}' for m in moments)} of the "
                f"link '{link.name}', which MuJoCo takes only where all are positive and none is "
                f"larger than the others' sum; they are written as "
                f"{', '.join(f'{m:.3g}' for m in real)}"
            )
        xx, xy, xz, yy, yz, zz = said.inertia
        if real == moments and not (xy or xz or yz):
            _set_quat(element, said.origin.rotation)
            element.set("diaginertia", numbers((xx, yy, zz)))
        elif real == moments and said.origin.rotation == IDENTITY:
            element.set("fullinertia", numbers((xx, yy, zz, xy, xz, yz)))
        else:
            rows = axes.tolist()
            columns: Rows3 = (tuple(rows[0]), tuple(rows[1]), tuple(rows[2]))
            _set_quat(element, matmul(said.origin.rotation, columns))
            element.set("diaginertia", numbers(real))

    # ---- shapes

    def _shapes(self, link: Link, body: etree._Element, *, moves: bool) -> None:
        """The link's shapes; one that is seen and touches is a single geom."""
        left = list(link.shapes)
        while left:
            shape = left.pop(0)
            twin = next((other for other in left if _alike(shape, other)), None)
            if twin is not None:
                left.remove(twin)
            size = self._size(shape, link, moves)
            if size is None:
                continue
            geom = _add(body, "geom", type=shape.kind, **size, **_pose(shape.origin))
            if shape.name:
                geom.set("name", self._unused("geom", shape.name))
            if shape.rgba is not None:
                geom.set("rgba", numbers(shape.rgba))
            if twin is None and shape.role == "visual":
                geom.set("contype", "0")
                geom.set("conaffinity", "0")
                geom.set("group", "2")
            elif twin is None:
                geom.set("group", "3")

    def _size(self, shape: Shape, link: Link, moves: bool) -> dict[str, str] | None:
        """The attributes that tell a shape's size; None for what MuJoCo does not have."""
        if shape.kind == "mesh":
            file = (shape.file or "").replace("\\", "/")
            if not file.lower().endswith(_MESHES) or ":" in file:
                self.lost.append(
                    f"the mesh '{shape.file}' of the link '{link.name}': MuJoCo reads STL, OBJ and "
                    "MSH from plain paths"
                )
                return None
            return {"mesh": self._mesh(file, shape.size or (1.0, 1.0, 1.0))}
        if shape.kind == "plane":
            if moves:
                self.lost.append(f"the plane of the link '{link.name}': one that moves")
                return None
            return {"size": "0 0 1"}
        half = {"box": (0.5, 0.5, 0.5), "cylinder": (1.0, 0.5), "capsule": (1.0, 0.5)}
        size = tuple(
            a * b for a, b in zip(shape.size, half.get(shape.kind, (1.0,) * 3), strict=False)
        )
        if not size or min(size) <= 0.0:
            self.lost.append(f"a {shape.kind} of the link '{link.name}' without extent")
            return None
        return {"size": numbers(size)}

    def _mesh(self, file: str, scale: tuple[float, ...]) -> str:
        """The asset of a mesh file at a scale."""
        if (file, scale) not in self.meshes:
            name = self._unused("mesh", posixpath.splitext(posixpath.basename(file))[0])
            mesh = _add(self.sections["asset"], "mesh", name=name, file=file)
            if scale != (1.0, 1.0, 1.0):
                mesh.set("scale", numbers(scale))
            self.meshes[file, scale] = name
        return self.meshes[file, scale]

    # ---- loops

    def _loop(self, loop: Loop) -> None:
        """A loop by the constraints between points that say the same of its two links."""
        one, other = loop.predecessor.origin, loop.successor.origin
        if loop.type in ("prismatic", "planar"):
            self.lost.append(f"the {loop.type} loop '{loop.name}'")
        elif loop.type == "fixed":
            self._tie("weld", loop, "", one, other)
        elif loop.type == "rod":
            length = loop.length
            if length is None:
                length = self._distance(loop, one, other, initial=False)
            self._rod(loop, "", one, other, length)
        else:
            self._tie("connect", loop, "", one, other)
            axis = unit(loop.axis)
            if loop.type in ("revolute", "continuous"):
                self._tie("connect", loop, ".axis", _along(one, axis), _along(other, axis))
            elif loop.type == "universal":
                # axes of one length from one point are at right angles where their ends are so far
                ends = _along(one, axis), _along(other, _second_axis(loop, axis))
                self._rod(loop, ".axes", *ends, math.sqrt(2.0) * _ARM)

    def _sites(self, loop: Loop, suffix: str, one: Pose, other: Pose) -> tuple[str, str]:
        names = []
        ends = (
            (loop.predecessor.link, "predecessor", one),
            (loop.successor.link, "successor", other),
        )
        for link, role, pose in ends:
            name = self._unused("site", f"{loop.name}{suffix}.{role}")
            _add(self.bodies[link], "site", name=name, **_pose(pose))
            names.append(name)
        return names[0], names[1]

    def _tie(self, tag: str, loop: Loop, suffix: str, one: Pose, other: Pose) -> None:
        name = self._unused("equality", loop.name + suffix)
        site1, site2 = self._sites(loop, suffix, one, other)
        _add(self.sections["equality"], tag, name=name, site1=site1, site2=site2)

    def _rod(self, loop: Loop, suffix: str, one: Pose, other: Pose, length: float) -> None:
        """A tendon between two sites keeps its length; MuJoCo counts from that at ``ref``."""
        name = self._unused("tendon", loop.name + suffix)
        spatial = _add(self.sections["tendon"], "spatial", name=name)
        for site in self._sites(loop, suffix, one, other):
            _add(spatial, "site", site=site)
        begin = self._distance(loop, one, other)
        equality = self._unused("equality", loop.name + suffix)
        line = numbers((length - begin, 0, 0, 0, 0))
        _add(self.sections["equality"], "tendon", name=equality, tendon1=name, polycoef=line)

    def _distance(self, loop: Loop, one: Pose, other: Pose, *, initial: bool = True) -> float:
        """The distance of two points of the loop's links, joints as of :func:`_placement`."""
        points = []
        for link, pose in ((loop.predecessor.link, one), (loop.successor.link, other)):
            point, at = pose.xyz, link
            while (joint := self.moved_by.get(at)) is not None:
                step = _placement([joint], initial=initial)
                point, at = plus(apply(step.rotation, point), step.xyz), joint.parent
            points.append(point)
        return math.dist(*points)

    # ---- couplings

    def _couplings(self) -> None:
        for coupling in self.description.couplings:
            if isinstance(coupling, LinkCoupling):
                self._couple(coupling.name, self._paths(coupling), coupling.offset)
            else:
                relation = [(name, ratio) for name, ratio in coupling.terms if ratio]
                self._couple(coupling.name, self._led(relation), coupling.offset)
        for joint in self.description.joints:
            if joint.mimic is not None:
                relation = [(joint.name, 1.0), (joint.mimic.joint, -joint.mimic.multiplier)]
                self._couple(joint.name, relation, joint.mimic.offset)

    def _paths(self, coupling: LinkCoupling) -> _Relation:
        """The joints from the common ancestor to either link, the successor's last one first."""
        paths = []
        for link in (coupling.predecessor, coupling.successor):
            path: list[Joint] = []
            while (joint := self.moved_by.get(link)) is not None:
                path.append(joint)
                link = joint.parent  # noqa: PLW2901
            paths.append([each.name for each in path if each.type != "fixed"])
        shared = set(paths[0]) & set(paths[1])
        relation = [(name, 1.0) for name in paths[1] if name not in shared]
        return relation + [(name, -coupling.ratio) for name in paths[0] if name not in shared]

    def _led(self, relation: _Relation) -> _Relation:
        """The relation with that joint first that depends on the others: the reader takes it so."""
        marks = {joint.name: joint.independent for joint in self.description.joints}

        def order(term: tuple[str, float]) -> tuple[int, float]:
            mark = marks[term[0]]
            return 1 if mark is None else 2 if mark else 0, -abs(term[1])

        return sorted(relation, key=order)

    def _couple(self, name: str, relation: _Relation, offset: float) -> None:
        """Σ coefficient · q = offset; MuJoCo counts positions from ``ref``."""
        equality, section = self._unused("equality", name), self.sections["equality"]
        (first, k), *others = relation
        if len(others) > 1:
            tendon = self._unused("tendon", name)
            fixed = _add(self.sections["tendon"], "fixed", name=tendon)
            for joint, coefficient in relation:
                _add(fixed, "joint", joint=joint, coef=number(coefficient))
            constant = offset - math.fsum(c * self.refs[joint] for joint, c in relation)
            line = numbers((constant, 0, 0, 0, 0))
            _add(section, "tendon", name=equality, tendon1=tendon, polycoef=line)
            return
        constant, slope = offset / k - self.refs[first], 0.0
        element = _add(section, "joint", name=equality, joint1=first)
        for second, coefficient in others:
            slope = -coefficient / k
            constant += slope * self.refs[second]
            element.set("joint2", second)
        element.set("polycoef", numbers((constant, slope, 0, 0, 0)))

    # ---- actuators

    def _transmission(self, transmission: Transmission) -> None:
        """A motor on the joint, or on a tendon of the joints, of a transmission of one motor."""
        joints = [joint for joint in transmission.joints if joint.name in self.refs]
        simple = (
            len(transmission.actuators) == 1 and joints and len(joints) == len(transmission.joints)
        )
        if not simple or any(joint.offset for joint in joints):
            self.lost.append(f"the transmission '{transmission.name}'")
            return
        name = self._unused("actuator", transmission.name)
        motor = _add(self.sections["actuator"], "motor", name=name)
        reduction = transmission.actuators[0].reduction
        if len(joints) == 1:
            motor.set("joint", joints[0].name)
            gears = [x for x in (joints[0].reduction, reduction) if x is not None]
            if gears:
                motor.set("gear", number(math.prod(gears)))
            return
        tendon = self._unused("tendon", transmission.name)
        fixed = _add(self.sections["tendon"], "fixed", name=tendon)
        for joint in joints:
            coefficient = 1.0 if joint.reduction is None else joint.reduction
            _add(fixed, "joint", joint=joint.name, coef=number(coefficient))
        motor.set("tendon", tendon)
        if reduction is not None:
            motor.set("gear", number(reduction))


# ---- elements ------------------------------------------------------------------------------------


def _add(parent: etree._Element, tag: str, **attributes: str) -> etree._Element:
    return etree.SubElement(parent, tag, attributes)


def _set(element: etree._Element, **values: float) -> None:
    """Numbers that are not zero."""
    for name, value in values.items():
        if value:
            element.set(name, number(value))


def _pose(pose: Pose) -> dict[str, str]:
    attributes = {}
    if pose.xyz != (0.0, 0.0, 0.0):
        attributes["pos"] = numbers(pose.xyz)
    if pose.rotation != IDENTITY:
        attributes["quat"] = numbers(_quaternion(pose.rotation))
    return attributes


def _set_quat(element: etree._Element, rotation: Rows3) -> None:
    if rotation != IDENTITY:
        element.set("quat", numbers(_quaternion(rotation)))


def _alike(shape: Shape, other: Shape) -> bool:
    """Whether two shapes are one geom, seen and touching."""
    return (
        shape.role != other.role and replace(shape, role=other.role, source=other.source) == other
    )


# ---- poses ---------------------------------------------------------------------------------------


def _freedoms(joint: Joint) -> int:
    """How many MuJoCo's joints for it have."""
    return 2 if joint.type == "screw" else FREEDOMS[joint.type]


def unit(axis: Vec3) -> Vec3:
    """The axis with length 1."""
    size = math.hypot(*axis)
    x, y, z = (a / size for a in axis)
    return x, y, z


def _along(pose: Pose, axis: Vec3) -> Pose:
    """The point a little way along an axis of the frame."""
    x, y, z = axis
    return Pose(plus(pose.xyz, apply(pose.rotation, (_ARM * x, _ARM * y, _ARM * z))))


def _second_axis(loop: Loop, first: Vec3) -> Vec3:
    """The second axis of a universal loop: given, or the coordinate axis that follows, upright."""
    if loop.axis2 is not None:
        return unit(loop.axis2)
    k = max(range(3), key=lambda n: (abs(first[n]), -n))
    x, y, z = ((1.0 if n == (k + 1) % 3 else 0.0) - first[(k + 1) % 3] * first[n] for n in range(3))
    return unit((x, y, z))


def _placement(row: Sequence[Joint], *, initial: bool = True) -> Pose:
    """The last child's frame in the first parent's; joints at their initial positions, or at 0."""
    pose = AT_ORIGIN
    for joint in row:
        pose = _compose(pose, joint.origin)
        if initial and joint.initial and joint.type in ONE_DOF:
            pose = _compose(pose, _displacement(joint, joint.initial))
    return pose


def _displacement(joint: Joint, by: float) -> Pose:
    x, y, z = unit(joint.axis)
    along = {"prismatic": by, "screw": joint.pitch * by}.get(joint.type, 0.0)
    shift = (along * x, along * y, along * z)
    if joint.type == "prismatic":
        return Pose(shift)
    s, c = math.sin(by), math.cos(by)
    v = 2.0 * math.sin(by / 2.0) ** 2
    cosines: Rows3 = (
        (c + v * x * x, v * x * y - s * z, v * x * z + s * y),
        (v * x * y + s * z, c + v * y * y, v * y * z - s * x),
        (v * x * z - s * y, v * y * z + s * x, c + v * z * z),
    )
    return Pose(shift, cosines)


def _compose(outer: Pose, inner: Pose) -> Pose:
    if inner == AT_ORIGIN:
        return outer
    if outer == AT_ORIGIN:
        return inner
    return Pose(
        plus(apply(outer.rotation, inner.xyz), outer.xyz), matmul(outer.rotation, inner.rotation)
    )


def _quaternion(rotation: Rows3) -> tuple[float, float, float, float]:
    """The quaternion w, x, y, z of a rotation (rows), from its largest component."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rotation
    w2, x2, y2, z2 = 1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz
    largest = max(w2, x2, y2, z2)
    if largest == w2:
        found = (w2, zy - yz, xz - zx, yx - xy)
    elif largest == x2:
        found = (zy - yz, x2, xy + yx, xz + zx)
    elif largest == y2:
        found = (xz - zx, xy + yx, y2, yz + zy)
    else:
        found = (yx - xy, xz + zx, yz + zy, z2)
    size = math.hypot(*found)
    w, x, y, z = (component / size + 0.0 for component in found)
    return w, x, y, z
