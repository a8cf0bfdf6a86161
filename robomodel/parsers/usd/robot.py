"""USD with UsdPhysics: a stage's bodies and joints as a tree, its loops and its couplings.

The reader visits the stage once for bodies and once for joints, shapes and actuators; then it spans
a tree. A prim that :func:`robomodel.parsers.usd.to_usd` wrote is read from its attached URDF+
element, unless its USD attributes were changed later: then these count.
"""

from __future__ import annotations

import errno
import math
import os
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from robomodel.description import (
    AT_ORIGIN,
    GRAVITY,
    ONE_DOF,
    Actuator,
    CouplingElement,
    Description,
    Joint,
    Link,
    Loop,
    Mimic,
    Motor,
    PolynomialCoupling,
    Transmission,
    TransmittedJoint,
    Vec3,
)
from robomodel.description.poses import relative, vec
from robomodel.description.transmissions import SIMPLE
from robomodel.errors import DescriptionError, Issue, Source, warn_of_all
from robomodel.files import MAX_MESH_BYTES
from robomodel.mechanism.graph import spanning_tree
from robomodel.parsers.sources import TEXT
from robomodel.parsers.urdf.joints import read_coupling, read_joint, read_loop
from robomodel.parsers.urdf.links import Colours, read_link
from robomodel.parsers.usd.bodies import LinkPrim, Masses, Placements, add_shapes
from robomodel.parsers.usd.joints import Edge, Edges, chain, loop
from robomodel.parsers.usd.schema import (
    DEGREE,
    DIGEST,
    ELEMENT,
    FREEDOMS,
    GROUND,
    JOINT,
    JOINTS,
    LINKS,
    StageReader,
    StageUnits,
    applies,
    digest,
)
from robomodel.parsers.usd.stages import MAX_PRIMS, MISSING_LAYER, explained, open_stage
from robomodel.vocabulary import xml
from robomodel.vocabulary.checks import by_name
from robomodel.vocabulary.frames import WORLD
from robomodel.vocabulary.motors import read_transmission
from robomodel.vocabulary.schema import Names
from robomodel.vocabulary.springs import read_spring

_UNREAD = ("Physx", "Mjc", "Newton", "PointInstancer")  # of types that are warned of: prefixes
_IRRELEVANT = ("MjcKeyframe", "MjcSite")
_FOLLOWS = ("NewtonMimicAPI", "MjcEqualityJointAPI")
_INTEGRATES = ("integrator", "muscle", "user")  # dynamics whose activation is the control


def read_usd(source: object, *, strict: bool = False) -> Description:
    """Read the robot in a USD file or text; warns of suspicious content."""
    content, file = _opened(source)
    reader = StageReader(file, StageUnits())
    try:
        stage = open_stage(content, file, reader.issues, text=file == TEXT)
        description = _read(stage, reader)
    except DescriptionError as error:
        missing = [each.message for each in reader.issues if each.kind == MISSING_LAYER]
        if not missing:
            raise
        raise DescriptionError(f"{error.message} ({missing[0]})", error.source) from error
    finally:
        warn_of_all(reader.issues, strict=strict)
    return description


def _read(stage: Any, reader: StageReader) -> Description:
    """Read the robot on a stage."""
    from pxr import Tf

    try:
        return _Robot(stage, reader).description()
    except Tf.ErrorException as error:  # for example, an attribute in place of a relationship
        raise explained(error, Source(reader.file)) from error


def _opened(source: object) -> tuple[str, str]:
    """The path of a file or the text, and its name in messages."""
    if hasattr(source, "read"):
        name = getattr(source, "name", None)
        source = name if isinstance(name, str) and os.path.isfile(name) else source.read()
    if isinstance(source, bytes | bytearray | memoryview):
        try:
            source = bytes(source).decode()
        except UnicodeDecodeError:
            message = "this is binary USD, which is read from a file; give its path"
            raise DescriptionError(message, Source(TEXT)) from None
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("#usda"):
        if len(source) > MAX_MESH_BYTES:
            raise DescriptionError(f"the text is longer than {MAX_MESH_BYTES}", Source(TEXT))
        return source, TEXT
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"USD is read from a path or a text, not from {type(source).__name__}")
    path = os.fsdecode(source)
    if not os.path.isfile(path):
        raise FileNotFoundError(errno.ENOENT, "no such file", path[:200])
    return path, path


@dataclass
class _Robot:
    """A stage, and its parts collected so far."""

    stage: Any
    reader: StageReader
    bodies: dict[Any, LinkPrim] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    elements: list[tuple[Any, Any]] = field(default_factory=list)
    actuators: list[Any] = field(default_factory=list)
    frames: list[Any] = field(default_factory=list)
    gravity: Vec3 | None = None
    grounded: Any = None

    def __post_init__(self) -> None:
        from pxr import UsdGeom, UsdPhysics

        length = UsdGeom.GetStageMetersPerUnit(self.stage)
        mass = UsdPhysics.GetStageKilogramsPerUnit(self.stage)
        for name, value in (("metersPerUnit", length), ("kilogramsPerUnit", mass)):
            if not 0.0 < value < math.inf:
                raise DescriptionError(f"{name} is {value:g}; it is positive", self.source)
        if (up := str(UsdGeom.GetStageUpAxis(self.stage))) not in ("Y", "Z"):
            raise DescriptionError(f"upAxis is {up}; it is Y or Z", self.source)
        self.reader.units = StageUnits(length, mass)
        self.placements = Placements(self.reader)
        self.masses = Masses(self.reader)
        self.ground = LinkPrim(None, WORLD, AT_ORIGIN, (1.0, 1.0, 1.0))
        self.link_names, self.joint_names = Names(), Names()

    @property
    def source(self) -> Source:
        """The location of the file."""
        return Source(self.reader.file)

    def description(self) -> Description:
        """The description of the whole robot."""
        prims = list(self._prims())
        for prim in prims:
            self._body(prim)
        self.ground.name = self.link_names.fresh(WORLD)
        if not self.bodies:
            raise DescriptionError(
                "the stage has no rigid body: no prim has PhysicsRigidBodyAPI; export the robot "
                "with physics",
                self.source,
            )
        for prim in prims:
            self._compiler(prim)
        edges = Edges(self.reader, self.placements, self.body_of)
        for prim in prims:
            self._other(prim, edges)
        root = self.stage.GetDefaultPrim()
        robot = self.element(root, "robot") if root else None
        name = robot.root.get("name", "") if robot else ""
        name = name or _label(root or prims[0])
        tree = _JointTree(self)
        orders = (
            [[str(x) for x in self.reader.array(root, each)] for each in (LINKS, JOINTS)]
            if root
            else []
        )
        return tree.description(name, orders)

    def _compiler(self, prim: Any) -> None:
        """Apply settings of MuJoCo's compiler, and warn of those that would change inertias."""
        reader = self.reader
        if reader.written(prim, "mjc:compiler:angle") == "radian":
            reader.units = replace(reader.units, mujoco_angle=1.0)
        if reader.written(prim, "mjc:compiler:autoLimits") is False:
            reader.auto_limits = False
        names = [f"mjc:compiler:{name}" for name in ("setTotalMass", "boundMass", "boundInertia")]
        changes = [f"{each} = {x:g}" for each in names if (x := reader.number(prim, each) or 0) > 0]
        for each, value in (("balanceInertia", True), ("inertiaFromGeom", "true")):
            if reader.written(prim, f"mjc:compiler:{each}") == value:
                changes.append(f"mjc:compiler:{each} = true")
        if changes:
            message = (
                f"{', '.join(changes)}: MuJoCo's compiler changes masses or inertias by this; they "
                "are read as the stage has them. Convert the file that MuJoCo saves, without these"
            )
            reader.warn(prim, message, "compiler")

    def _prims(self) -> Iterator[Any]:
        """The prims of the stage; prims of instances once for each instance.

        Without prototypes below a PointInstancer, which are no parts where they stand.
        """
        from pxr import Usd, UsdGeom

        predicate = Usd.PrimIsActive & Usd.PrimIsDefined & ~Usd.PrimIsAbstract
        prims = iter(
            Usd.PrimRange(self.stage.GetPseudoRoot(), Usd.TraverseInstanceProxies(predicate))
        )
        for count, prim in enumerate(prims):
            if prim.IsA(UsdGeom.PointInstancer):
                prims.PruneChildren()
            if count > MAX_PRIMS:
                raise DescriptionError(
                    f"the stage has more than {MAX_PRIMS} prims; load the robot's own file",
                    self.source,
                )
            if not prim.IsPseudoRoot():
                yield prim

    # ---- elements of URDF+ on prims

    def element(self, prim: Any, tag: str, name: str = ELEMENT) -> xml.Document | None:
        """The URDF+ element attached to a prim; None if the prim was changed later."""
        text = self.reader.written(prim, name)
        if not isinstance(text, str):
            return None
        place = f"{self.reader.file}: prim <{prim.GetPath()}>: {name}"
        document = xml.parse(f"<robot>{text}</robot>", place, issues=self.reader.issues)
        if len(document.root) != 1 or (tag and document.root[0].tag != tag):
            raise self.reader.error(prim, f"{name} holds no <{tag}>; leave the attribute out")
        if name == ELEMENT and (
            replace(self.reader.units, mujoco_angle=DEGREE) != StageUnits()
            or self.reader.written(prim, DIGEST) != digest(prim)
        ):
            self.reader.warn(
                prim,
                "was changed since robomodel wrote it, and is read by USD's own words",
                "changed",
            )
            return None
        document = replace(document, root=document.root[0])
        return document

    # ---- bodies

    def _body(self, prim: Any) -> None:
        """Collect the body of a prim, if it is one."""
        from pxr import UsdPhysics

        urdf = self.element(prim, "link") if _begins(self.reader, prim, "<link") else None
        rigid = prim.HasAPI(UsdPhysics.RigidBodyAPI)
        if rigid:
            body = UsdPhysics.RigidBodyAPI(prim)
            if body.GetRigidBodyEnabledAttr().Get() is False:
                rigid = False
            elif body.GetKinematicEnabledAttr().Get() is True:
                message = "the body is moved by hand (kinematic); it is read as fixed"
                self.reader.warn(prim, message, "kinematic")
                rigid = False
        if urdf is None and not rigid:
            return
        pose, scale = self.placements.of(prim)
        name = urdf.root.get("name", "") if urdf else _label(prim)
        fresh = self.link_names.fresh(name)
        if urdf and fresh != name:
            raise self.reader.error(
                prim, f"another prim is the link '{name}', too; load the file of one robot"
            )
        self.bodies[prim.GetPath()] = LinkPrim(prim, fresh, pose, scale, urdf)

    def body_of(self, prim: Any) -> LinkPrim:
        """The body that contains a prim, or the ground."""
        while prim and not prim.IsPseudoRoot():
            if (body := self.bodies.get(prim.GetPath())) is not None:
                return body
            prim = prim.GetParent()
        return self.ground

    # ---- other prims

    def _other(self, prim: Any, edges: Edges) -> None:
        """Collect what a prim is other than a body."""
        from pxr import UsdGeom, UsdPhysics

        kind = str(prim.GetTypeName())
        if prim.IsA(UsdPhysics.Joint):
            if self.reader.written(prim, GROUND):
                self.grounded = prim
                return
            urdf = self.element(prim, "") if _begins(self.reader, prim, "<") else None
            name = urdf.root.get("name", "") if urdf else _label(prim)
            edge = edges.read(prim, self.joint_names.fresh(name))
            if edge is not None:
                edge.urdf = urdf
                edge.name = name if urdf else edge.name
                self.edges.append(edge)
        elif prim.IsA(UsdGeom.Camera) or (kind == "Xform" and not prim.GetAllChildren()):
            if prim.GetPath() not in self.bodies and self.body_of(prim) is not self.ground:
                self.frames.append(prim)
        elif prim.IsA(UsdGeom.Gprim):
            add_shapes(self.reader, self.placements, prim, self.body_of(prim))
        elif prim.IsA(UsdPhysics.Scene):
            if self.gravity is not None:
                self.reader.warn(prim, "another scene; the gravity of the first is read")
            else:
                self.gravity = self._gravity(prim)
        elif kind in ("NewtonActuator", "MjcActuator"):
            self.actuators.append(prim)
        elif (kind.startswith(_UNREAD) and kind not in _IRRELEVANT) or kind.endswith("Joint"):
            self.reader.warn(prim, f"a {kind} is not read; the robot is without it", kind)
        elif not kind and _begins(self.reader, prim, "<"):
            document = self.element(prim, "")
            if document is not None:
                self.elements.append((prim, document))

    def _gravity(self, prim: Any) -> Vec3:
        """The gravity [m/s²] of a scene; by default the earth's, opposite to the up axis."""
        if (urdf := self.element(prim, "gravity")) is not None:
            return urdf.vector(urdf.root, "xyz")
        direction = self.reader.numbers(prim, "physics:gravityDirection", 3) or (0.0, 0.0, 0.0)
        size = self.reader.number(prim, "physics:gravityMagnitude", infinite=True)
        if self.reader.written(prim, "newton:gravityEnabled") is False:
            return (0.0, 0.0, 0.0)
        norm = math.hypot(*direction)
        strength = -GRAVITY[2] if size is None or size < 0.0 else size * self.reader.units.length
        if not math.isfinite(strength):
            raise self.reader.error(prim, "physics:gravityMagnitude is infinite")
        if norm == 0.0:
            direction, norm = self.up, -1.0
        return vec(strength * x / norm for x in direction)

    @property
    def up(self) -> Vec3:
        """The stage's up axis."""
        from pxr import UsdGeom

        upright = str(UsdGeom.GetStageUpAxis(self.stage)) == "Z"
        return (0.0, 0.0, 1.0) if upright else (0.0, 1.0, 0.0)


def _begins(reader: StageReader, prim: Any, text: str) -> bool:
    """True if a prim has an attached URDF+ element that begins with ``text``."""
    element = reader.written(prim, ELEMENT)
    return isinstance(element, str) and element.startswith(text)


def _label(prim: Any) -> str:
    """The display name of a prim, else its path."""
    return str(prim.GetMetadata("displayName") or prim.GetName() or "robot")


# --- the tree -------------------------------------------------------------------------------------

_Step = tuple[Edge, LinkPrim, LinkPrim, bool]


class _JointTree:
    """A spanning tree over the joints of a robot; the other joints close loops."""

    def __init__(self, robot: _Robot) -> None:
        self.robot, self.reader, self.ground = robot, robot.reader, robot.ground
        self.bodies = list(robot.bodies.values())
        self.edges = [*_in_series(robot.edges), *self._written_on_links()]
        parts = (part for each in self.edges for part in each.series or (each,))
        self.of_path: dict[Any, Edge] = {each.prim.GetPath(): each for each in parts}
        self.at: dict[int, list[Edge]] = defaultdict(list)
        for edge in self.edges:
            if edge.length is None and not _is(edge, "loop"):
                for body, _ in edge.ends:
                    self.at[id(body)].append(edge)
        self.reached = {id(self.ground)}
        self.steps: dict[int, _Step] = {}
        self.free: list[LinkPrim] = []
        self._span()

    def _written_on_links(self) -> Iterator[Edge]:
        """The joints of written links that have no prim of their own."""
        names = {body.name: body for body in self.bodies}
        for body in self.bodies:
            urdf = self.robot.element(body.prim, "joint", JOINT) if body.urdf else None
            if urdf is not None:
                joint = read_joint(urdf, urdf.root)
                if joint.parent not in names:
                    raise self.reader.error(
                        body.prim, f"{JOINT}: the parent link '{joint.parent}' is not there"
                    )
                ends = (names[joint.parent], joint.origin), (body, AT_ORIGIN)
                yield Edge(body.prim, joint.name, self.reader.source(body.prim), ends, urdf=urdf)

    def _span(self) -> None:
        """Span the tree from the world, then from the root of each part not connected to it.

        Joints that are excluded from articulations close loops, unless nothing else holds a part
        that has no articulation root.
        """
        for body in (self.ground, *filter(self._is_root_link, self.bodies)):
            self.reached.add(id(body))
            self._grow(body, excluded=False)
        for body in self.bodies:
            if id(body) not in self.reached and _has_root(body.prim):
                self._float(self._root(body))
        for edge in [each for each in self.edges if each.excluded]:
            for start, _ in edge.ends:
                if id(start) in self.reached:
                    self._grow(start, excluded=True)
        for body in self.bodies:
            if id(body) not in self.reached:
                self._float(self._root(body))

    def _is_root_link(self, body: LinkPrim) -> bool:
        """True if a body is the root link of a written robot, moved by no joint of its own."""
        if self.robot.grounded is not None:
            targets = self.robot.grounded.GetRelationship("physics:body1").GetTargets()
            return bool(targets) and bool(targets[0] == body.prim.GetPath())
        return body.urdf is not None and not any(
            edge.ends[1][0] is body and not edge.excluded for edge in self.at[id(body)]
        )

    def _part(self, body: LinkPrim) -> list[LinkPrim]:
        """The bodies connected to one by joints that are not excluded."""
        part, seen = [body], {id(body), id(self.ground)}
        for each in part:
            for edge in self.at[id(each)]:
                for end, _ in edge.ends:
                    if not edge.excluded and id(end) not in seen:
                        seen.add(id(end))
                        part.append(end)
        return part

    def _root(self, body: LinkPrim) -> LinkPrim:
        """The root of a body's part: the articulation's root, else a body that no joint moves."""
        from pxr import UsdPhysics

        among = {id(each) for each in self._part(body)}
        part = [each for each in self.bodies if id(each) in among]
        marked = [each for each in part if each.prim.HasAPI(UsdPhysics.ArticulationRootAPI)]
        moved = {id(edge.ends[1][0]) for edge in self.edges if not edge.excluded}
        return next((each for each in marked or part if id(each) not in moved), (marked or part)[0])

    def _float(self, body: LinkPrim) -> None:
        """Add a part that nothing holds in the world as floating."""
        self.free.append(body)
        self.reached.add(id(body))
        self._grow(body, excluded=False)

    def _grow(self, start: LinkPrim, *, excluded: bool) -> None:
        """Add the joints from a body to bodies that are not in the tree yet."""
        queue = deque([start])
        while queue:
            body = queue.popleft()
            for edge in self.at[id(body)]:
                if edge.excluded and not excluded:
                    continue
                (one, _), (other, _) = edge.ends
                backward = other is body
                beyond = one if backward else other
                if id(beyond) not in self.reached and not (backward and edge.urdf):
                    self.reached.add(id(beyond))
                    self.steps[id(edge)] = edge, body, beyond, backward
                    queue.append(beyond)

    # ---- the description

    def description(self, name: str, orders: list[list[str]]) -> Description:
        """The links and joints of the tree, the loops, and couplings.

        ``orders``: names of links and of joints in the order to be kept.
        """
        robot = self.robot
        links = [self._link(body) for body in self.bodies]
        joints = [self._floating(body) for body in self.free]
        loops: list[Loop] = []
        of_prim: dict[Any, str] = {}
        for edge in self.edges:
            if id(edge) in self.steps:
                _, parent, child, backward = self.steps[id(edge)]
                between, chained = self._chained(edge, parent.name, child.name, backward=backward)
                for part in edge.series or (edge,):
                    of_prim[part.prim.GetPath()] = part.name
            else:
                between, chained, closing = self._loop(edge)
                loops.append(closing)
                if any(joint.name == edge.name for joint in chained):
                    of_prim[edge.prim.GetPath()] = edge.name
            links += between
            joints += chained
        for prim in robot.frames:
            frame, held = self._frame(prim)
            links.append(frame)
            joints.append(held)
        if len(self.free) > 1:
            self.reader.warn(
                self.free[1].prim,
                f"is one of {len(self.free)} parts that no joint holds in the world; all are read, "
                "as one robot",
            )
        ends = {each.parent for each in joints}
        ends |= {end.link for each in loops for end in (each.predecessor, each.successor)}
        if self.ground.name in ends:
            links.insert(0, Link(self.ground.name, None, robot.source, tuple(self.ground.shapes)))
        elif self.ground.shapes:
            message = "shapes on no body touch nothing here; they are left out"
            self.reader.issues.append(Issue(message, self.ground.shapes[0].source))
        places = [{each: n for n, each in enumerate(order)} for order in orders]
        if places:
            links.sort(key=lambda each: places[0].get(each.name, len(places[0])))
            joints.sort(key=lambda each: places[1].get(each.name, len(places[1])))
        description = Description(
            name, tuple(links), source=robot.source, gravity=self._gravity(), format="usd"
        )
        whole = replace(description, joints=tuple(joints), loops=tuple(loops))
        return self._tied(self._without_idle(whole), of_prim)

    def _without_idle(self, description: Description) -> Description:
        """The description without loops between links that no joint moves on each other."""
        if not description.loops:
            return description
        places = spanning_tree(description).places
        loops = []
        for each in description.loops:
            ends = (places.get(end.link) for end in (each.predecessor, each.successor))
            if len({end and end.body for end in ends}) > 1:
                loops.append(each)
            elif each.type != "fixed":
                message = (
                    f"the joint cannot move, since '{each.predecessor.link}' and "
                    f"'{each.successor.link}' are fixed to each other; it is left out"
                )
                self.reader.issues.append(Issue(message, each.source))
        return replace(description, loops=tuple(loops))

    def _gravity(self) -> Vec3 | None:
        """The scene's gravity; without a scene None, or the earth's for an up axis other than z."""
        if self.robot.gravity is not None or self.robot.up[2]:
            return self.robot.gravity
        return vec(GRAVITY[2] * x for x in self.robot.up)

    def _link(self, body: LinkPrim) -> Link:
        source = self.reader.source(body.prim)
        if body.urdf is not None:
            inertial = read_link(body.urdf, body.urdf.root, Colours(body.urdf)).inertial
            inertial = inertial and replace(inertial, source=source)
        else:
            inertial = self.robot.masses.of(body)
        return Link(body.name, inertial, source, tuple(body.shapes))

    def _floating(self, body: LinkPrim) -> Joint:
        """The joint of a floating part; its origin is the pose shown if loops tie the part."""
        part = {id(each) for each in self._part(body)}
        tied = any(len({id(end) in part for end, _ in each.ends}) > 1 for each in self.edges)
        name = "floating_base" if len(self.free) == 1 else f"{body.name}_floating"
        return Joint(
            self.robot.joint_names.fresh(name),
            "floating",
            self.ground.name,
            body.name,
            body.pose if tied else AT_ORIGIN,
            source=self.reader.source(body.prim),
        )

    def _frame(self, prim: Any) -> tuple[Link, Joint]:
        """A camera or an empty transform, as a massless link on its body."""
        robot, source = self.robot, self.reader.source(prim)
        body, (pose, _) = robot.body_of(prim), robot.placements.of(prim)
        name = robot.link_names.fresh(_label(prim))
        at = relative(body.pose, pose)
        held = robot.joint_names.fresh(f"{name}_fixed")
        return Link(name, source=source), Joint(held, "fixed", body.name, name, at, source=source)

    def _chained(
        self, edge: Edge, parent: str, child: str, *, backward: bool
    ) -> tuple[list[Link], list[Joint]]:
        """The joints of an edge: its attached element, or from the USD attributes."""
        if edge.urdf is None:
            return chain(edge, parent, child, backward=backward)
        return [], [replace(read_joint(edge.urdf, edge.urdf.root), source=edge.source)]

    @cached_property
    def _named(self) -> set[Any]:
        """Paths of joints that follow others, that others follow, and on which actuators act."""
        paths = set[Any]()
        for edge in self.edges:
            followed = [x for word in _leading() for x in _targets(edge.prim, word)]
            paths |= {edge.prim.GetPath(), *followed} if followed else set()
        for prim in self.robot.actuators:
            paths |= {*_targets(prim, _acting_on(prim))}
        return paths

    def _loop(self, edge: Edge) -> tuple[list[Link], list[Joint], Loop]:
        """The loop that an edge closes."""
        if not _is(edge, "loop"):
            return loop(self.reader, edge, named=edge.prim.GetPath() in self._named)
        return [], [], replace(read_loop(edge.urdf, edge.urdf.root), source=edge.source)

    # ---- couplings, springs and transmissions

    def _tied(self, description: Description, of_prim: Mapping[Any, str]) -> Description:
        """The description with couplings, springs and transmissions."""
        couplings: list[CouplingElement] = []
        springs, transmissions = [], []
        for prim, urdf in self.robot.elements:
            source = self.reader.source(prim)
            match urdf.root.tag:
                case "coupling":
                    couplings.append(replace(read_coupling(urdf, urdf.root), source=source))
                case "spring":
                    springs.append(replace(read_spring(urdf, urdf.root), source=source))
                case "transmission":
                    transmissions.append(replace(read_transmission(urdf, urdf.root), source=source))
                case tag:
                    raise self.reader.error(prim, f"<{tag}> has no place in {ELEMENT}")
        joints = by_name(description.joints, "joint")
        for edge in self.of_path.values():
            if edge.urdf is None and (tie := self._follows(edge, of_prim)) is not None:
                if edge.name not in joints or joints[edge.name].type not in ONE_DOF:
                    raise self.reader.error(
                        edge.prim, "only a joint of the tree of one freedom mimics"
                    )
                if isinstance(tie, Mimic):
                    joints[edge.name] = replace(joints[edge.name], mimic=tie)
                else:
                    couplings.append(tie)
        if not any(body.urdf for body in self.bodies):
            transmissions += self._actuators(joints, of_prim)
        return replace(
            description,
            joints=tuple(joints.values()),
            couplings=tuple(couplings),
            springs=tuple(springs),
            transmissions=tuple(transmissions),
        )

    def _follows(self, edge: Edge, of_prim: Mapping[Any, str]) -> Mimic | PolynomialCoupling | None:
        """The law of a joint that follows: q = c0 + c1 q', or by PhysX's words q + g q' + o = 0.

        PhysX's offsets are in degrees, as are its factors between an angle and a length. MuJoCo
        also has higher powers, in its own units.
        """
        reader, prim = self.reader, edge.prim
        for each in ("newton", *FREEDOMS, "angular", "linear"):
            newton, word = each == "newton", f"physxMimicJoint:{each}:"
            leaders = _targets(prim, "newton:mimicJoint" if newton else f"{word}referenceJoint")
            if newton and not leaders:
                leaders = _targets(prim, "mjc:target")
            if newton and reader.written(prim, "newton:mimicEnabled") is False:
                continue
            if not leaders:
                if newton and any(applies(prim, each) for each in _FOLLOWS):
                    message = "it names no joint that it follows, and is read as free; name one by "
                    reader.warn(prim, message + "newton:mimicJoint", "follows nothing")
                continue
            if leaders[0] not in of_prim or of_prim[leaders[0]] == edge.name:
                raise reader.error(
                    prim, f"the joint <{leaders[0]}> that it mimics is no joint of the tree"
                )
            length, turns = reader.units.length, _turns(edge)
            leader_turns = _turns(self.of_path[leaders[0]])
            if newton:
                factor, offset = self._newton_coefficients(prim, turns=turns)
                units = [1.0 if turning else length for turning in (turns, leader_turns)]
            else:
                gearing = reader.number(prim, f"{word}gearing")
                factor = -1.0 if gearing is None else -gearing
                units = [DEGREE if turning else length for turning in (turns, leader_turns)]
                offset = -units[0] * (reader.number(prim, f"{word}offset") or 0.0)
            factor *= units[0] / units[1]
            more = [reader.number(prim, f"mjc:coef{n}") or 0.0 for n in (2, 3, 4)]
            if newton and any(more):
                powers = (units[0] / units[1] ** n * k for n, k in enumerate(more, 2))
                coefficients = (offset, factor, *powers)
                return PolynomialCoupling(
                    edge.name, edge.name, of_prim[leaders[0]], coefficients, edge.source
                )
            return Mimic(of_prim[leaders[0]], factor, offset)
        return None

    def _newton_coefficients(self, prim: Any, *, turns: bool) -> tuple[float, float]:
        """The factor and the offset [rad, m] of Newton's words, and of MuJoCo's that these replace.

        MuJoCo's count where they are written: they are in radians, as the converters' files with
        both have Newton's offset, too, which is in degrees.
        """
        reader, length = self.reader, self.reader.units.length
        factor = reader.number(prim, "mjc:coef1")
        if factor is None:
            factor = reader.number(prim, "newton:mimicCoef1")
        offset, angle = reader.number(prim, "mjc:coef0"), 1.0
        if offset is None:
            offset, angle = reader.number(prim, "newton:mimicCoef0"), DEGREE
            if offset and turns and (maker := reader.in_radians(prim, "newton:mimicCoef0")):
                angle = 1.0
                reader.warn(
                    prim,
                    f"newton:mimicCoef0 is in radians, as {maker} wrote it; convert the robot by a "
                    "later version",
                    "offset in radians",
                )
        return 1.0 if factor is None else factor, (offset or 0.0) * (angle if turns else length)

    def _actuators(
        self, joints: Mapping[str, Joint], of_prim: Mapping[Any, str]
    ) -> Iterator[Transmission]:
        """Actuators of Newton and MuJoCo, else one for each joint with a drive."""
        reader = self.reader
        for prim in self.robot.actuators:
            word = prim.GetTypeName().removesuffix("Actuator").lower()
            targets = _targets(prim, _acting_on(prim))
            name = of_prim.get(targets[0], "") if targets else ""
            if name not in joints or joints[name].type not in ONE_DOF:
                reader.warn(prim, "acts on no joint of one freedom and is left out", "actuator")
                continue
            gears = reader.array(prim, "mjc:gear")
            gear = float(gears[0]) if gears and hasattr(gears[0], "__float__") else None
            limits = self._limited(prim) if word == "mjc" else self._clamped(prim)
            motor = replace(limits, source=reader.source(prim)) if limits != Motor() else None
            label, ends = _label(prim), (TransmittedJoint(name, reduction=1.0),)
            actuator = Actuator(label, reduction=gear, motor=motor)
            yield Transmission(label, "motor", ends, (actuator,), reader.source(prim))
        if self.robot.actuators:
            return
        for edge in self.of_path.values():
            joint = joints.get(edge.name)
            if edge.drives and joint is not None and joint.type in ONE_DOF:
                end, drive = TransmittedJoint(edge.name), Actuator(edge.name)
                yield Transmission(edge.name, SIMPLE, (end,), (drive,), edge.source)

    def _limited(self, prim: Any) -> Motor:
        """The motor of a MuJoCo actuator: its limits of force, or of control times gain."""
        reader = self.reader
        low, high = reader.span(prim, "mjc:forceRange", "mjc:forceLimited")
        kinds = {"gain": "fixed", "bias": "none"}
        if all((reader.written(prim, f"mjc:{x}Type") or kind) == kind for x, kind in kinds.items()):
            gains = reader.array(prim, "mjc:gainPrm")
            gain = float(gains[0]) if gains and hasattr(gains[0], "__float__") else 1.0
            dynamics = reader.written(prim, "mjc:dynType") or "none"
            acting = ["act"] if dynamics != "none" else []
            acting += ["ctrl"] if dynamics not in _INTEGRATES else []
            for kind in acting:  # what a filter gives lies within both
                control = reader.span(prim, f"mjc:{kind}Range", f"mjc:{kind}Limited")
                ends = sorted(gain * x for x in control) if gain else (-math.inf, math.inf)
                low, high = max(low, ends[0]), min(high, ends[1])
        limits: dict[str, Any] = dict(reader.efforts(prim, low, high))
        return Motor(**limits)

    def _clamped(self, prim: Any) -> Motor:
        """The motor of Newton's clamps on an actuator, which are in SI units and radians."""
        reader = self.reader

        def most(word: str) -> float:
            value = reader.number(prim, f"newton:{word}", infinite=True)
            if value is not None and not value >= 0.0:
                raise reader.error(prim, f"newton:{word} is {value:g}; it is not negative")
            return value or math.inf

        effort = min(most("maxEffort"), most("maxMotorEffort"))
        stall, speed = most("saturationEffort"), most("velocityLimit")
        if efforts := [abs(float(each)) for each in reader.array(prim, "newton:lookupEfforts")]:
            effort = min(effort, max(efforts))
            message = "its effort depends on the position; the largest is its limit everywhere"
            reader.warn(prim, message, "lookup of efforts")
        if math.isinf(stall):
            return Motor(effort, velocity=speed)
        if math.isinf(speed):
            return Motor(min(effort, stall))
        return Motor(effort, stall_torque=stall, no_load_speed=speed)


def _targets(prim: Any, relation: str) -> list[Any]:
    """The paths that a relationship of a prim names."""
    return list(prim.GetRelationship(relation).GetTargets())


def _leading() -> list[str]:
    """The relationships by which a joint names the one that it follows."""
    axes = (*FREEDOMS, "angular", "linear")
    physx = [f"physxMimicJoint:{each}:referenceJoint" for each in axes]
    return ["newton:mimicJoint", "mjc:target", *physx]


def _acting_on(prim: Any) -> str:
    """The relationship by which an actuator names its joint."""
    return "newton:targets" if prim.GetTypeName() == "NewtonActuator" else "mjc:target"


def _turns(edge: Edge) -> bool:
    """True if an edge's freedom is a rotation."""
    return bool(edge.free) and edge.free[0].startswith("rot")


def _is(edge: Edge, tag: str) -> bool:
    """True if an edge has an attached element with this tag."""
    return edge.urdf is not None and edge.urdf.root.tag == tag


def _has_root(prim: Any) -> bool:
    """True if a prim or an ancestor of it is an articulation root."""
    from pxr import UsdPhysics

    while prim and not prim.IsPseudoRoot():
        if prim.HasAPI(UsdPhysics.ArticulationRootAPI):
            return True
        prim = prim.GetParent()
    return False


def _in_series(edges: list[Edge]) -> list[Edge]:
    """The edges, with MuJoCo's joints between the same two bodies merged, which act in series."""
    whole: dict[tuple[int, int], Edge] = {}
    result = []
    for edge in edges:
        key = id(edge.ends[0][0]), id(edge.ends[1][0])
        bare = edge.excluded or edge.urdf or edge.length is not None
        if bare or not applies(edge.prim, "MjcJointAPI"):
            result.append(edge)
        elif key not in whole:
            whole[key] = edge
            result.append(edge)
        else:
            first = whole[key]
            first.series = (*(first.series or (replace(first),)), edge)
    return result
