"""SDF, versions 1.2 to 1.12: robots as Gazebo and Drake write them.

The reader makes four passes: it collects the links, joints and frames of a model and of its nested
and included models (:class:`_Reader`), resolves their poses (:mod:`robomodel.parsers.sdf.frames`),
spans a tree over the joints (:mod:`robomodel.parsers.sdf.joints`), and creates the description
(:class:`_Describer`) with its tree, loops and couplings.

``docs/sdf.md`` describes every element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, cast

from robomodel.description import (
    LOOP_COORDINATES,
    ONE_DOF,
    Anchor,
    Description,
    Joint,
    JointCoupling,
    JointSpring,
    Link,
    Loop,
    Mimic,
    Pose,
    Spring,
    Vec3,
)
from robomodel.description.poses import (
    compose,
    cosine,
    displacement,
    inverse,
    tidy,
    turned,
)
from robomodel.errors import DescriptionError, Source, argument, did_you_mean, few
from robomodel.files import Resources
from robomodel.parsers.sdf.document import BETWEEN, Library, SdfDocument, opened, read_placed
from robomodel.parsers.sdf.frames import Scope, SdfFrame, SdfFrames, source_of
from robomodel.parsers.sdf.joints import (
    JOINT,
    JOINT_IRRELEVANT,
    KINDS,
    Carriers,
    Connection,
    Gearboxes,
    SimpleJoint,
    Span,
    custom_numbers,
    independent_marks,
    read_steps,
    span,
    type_of,
)
from robomodel.parsers.sdf.links import read_link
from robomodel.spatial import transpose
from robomodel.tolerances import NOTHING, PARALLEL
from robomodel.vocabulary.checks import by_name
from robomodel.vocabulary.frames import WORLD, is_on_joint, named_sensors, warn_of_limits
from robomodel.vocabulary.motors import read_transmission
from robomodel.vocabulary.schema import Names
from robomodel.vocabulary.springs import (
    BALL_CONSTRAINT,
    LINEAR_SPRING,
    TENDON,
    Notation,
    ball_constraint,
    linear_spring,
    read_spring,
    tendon,
)
from robomodel.vocabulary.xml import CUSTOM, Document, Element, shown, words

_SDF = frozenset(("model", "world"))
_SDF_IRRELEVANT = frozenset(("light", "actor", "plugin"))
_MODEL = frozenset(("link", "joint", "frame", "model", "include"))
_MODEL_SETTINGS = words("static pose self_collide allow_auto_disable plugin gripper enable_wind")
_WORLD_SETTINGS = words(
    "gravity physics audio wind magnetic_field atmosphere gui scene light actor plugin road "
    "spherical_coordinates population"
)
_INCLUDE = frozenset(("uri", "name", "pose", "static", "placement_frame", "plugin", "namespace"))
_MAX_MODEL_DEPTH = 64  # limit of the nesting of models
_UNNAMED = "default"  # Gazebo's name for a world without one
_SCENERY = ("model://sun", "model://ground_plane")  # a light, and a plane that never moves


def read_sdf(
    document: Document, *, name: str | None = None, resources: Resources | None = None
) -> Description:
    """Read one model of the file, or all of its world.

    ``name`` selects one of several models; without it (or with the world's name) all are read as
    one robot. Included files are read from the folder of the file, model folders from beside it,
    or from ``resources``.
    """
    main = opened(document)
    for element in main.root:
        if element.tag not in _SDF | _SDF_IRRELEVANT:
            main.unknown(element, _SDF)
    return _Reader(main, resources or Resources()).description(name)


# --- collecting -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """The file, the depth of models, and the open files at an element."""

    document: SdfDocument
    depth: int = 0
    files: tuple[str, ...] = ()


class _Reader:
    """Collects the models of a file and its includes, and their parts."""

    def __init__(self, main: SdfDocument, resources: Resources) -> None:
        self.main = main
        self.library = Library(main, resources)
        self.scenery: list[Element] = []
        self.labels = self._labelled()

    def description(self, name: str | None) -> Description:
        """The description of the model (or world) with this name."""
        world_element, model = self._chosen(name)
        holder = self.main.root if world_element is None else world_element
        ground = SdfFrame(WORLD, "world", None, self.main, holder)
        world = Scope("", ground)
        ground.scope = ground.inner = world
        everything, parts = _Parts(), _Parts()
        here = _Place(self.main, files=self.library.start)
        models = [each for each in holder if each in self.labels]
        for each in models:
            label = self.labels[each]
            inside = everything if model is None else parts if each is model else _Parts()
            full = "" if each is model else label
            build = partial(self._model if each.tag == "model" else self._include, inside)
            world.pending.setdefault(label, partial(build, here, each, world, full))
        if world_element is not None:
            wanted = everything if model is None else parts
            self._world(wanted, here, world_element, world, model)
        for each in models:
            if model is None or each is model:
                world.find(self.labels[each])
        chosen = holder if model is None else model
        called = self.labels.get(chosen) or chosen.get("name", "").strip() or _UNNAMED
        source = self.main.source(chosen, f"{shown(chosen)} '{called}'")
        wanted_parts = everything if model is None else parts
        if not wanted_parts.links:
            raise DescriptionError("there is no link in it; a robot needs at least one", source)
        gravity = None
        if world_element is not None:
            up_to_1_5 = world_element.find("physics/gravity")
            element = world_element.find("gravity")
            element = up_to_1_5 if element is None else element
            gravity = None if element is None else self.main.three(element)
        custom = () if model is None else _custom(model, "transmission")
        transmissions = tuple(read_transmission(self.main, x) for x in custom)
        moved = frozenset(joint.name for each in transmissions for joint in each.joints)
        description = _Describer(SdfFrames(ground), wanted_parts, moved).description(
            called, source, gravity
        )
        if model is None:
            return description
        springs = (read_spring(self.main, x) for x in _custom(model, "spring"))
        return replace(
            description,
            transmissions=transmissions,
            springs=(*description.springs, *springs),
        )

    def _labelled(self) -> dict[Element, str]:
        """The models that can be selected and their names; includes only in worlds."""
        root = self.main.root
        labels: dict[Element, str] = {}
        names = Names(first=1)
        for holder in (root, *root.findall("world")):
            for each in holder:
                if each.tag != "model" and (each.tag != "include" or holder is root):
                    continue
                if each.tag == "include" and self._is_scenery(each):
                    self.scenery.append(each)
                    continue
                label = _label(self.main, each)
                labels[each] = names.fresh(label)
                if labels[each] != label:
                    message = f"another model is called '{label}'; this one is read as "
                    self.main.warn_at(each, f"{message}'{labels[each]}'", "models of one name")
        return labels

    def _is_scenery(self, include: Element) -> bool:
        """True if an include is Gazebo's sun or ground, which are rarely beside the file."""
        uri = self.main.required(include, "uri").rstrip("/")
        return uri in _SCENERY and not self.library.has(self.main, uri)

    def _chosen(self, name: str | None) -> tuple[Element | None, Element | None]:
        """The world, if any, and the selected model in it; None stands for all models."""
        root = self.main.root
        worlds = root.findall("world")
        models, labels = list(self.labels), list(self.labels.values())
        place = self.main.source(root, "<sdf>")
        if name is None:
            if not models:
                raise DescriptionError("the file holds no <model>", place)
            holders = {each.getparent() for each in models}
            several = f"the file holds {len(models)} models: {few(labels, 6)}"
            if len(holders) > 1:
                raise DescriptionError(
                    f"{several}, in {len(holders)} places; say which, as in "
                    + argument("name", labels[-1]),
                    place,
                )
            (holder,) = holders
            for each in self.scenery:
                uri = self.main.required(each, "uri")
                self.main.warn_at(each, f"there is no {uri} beside the file; it is left out")
            if len(models) > 1:
                one = argument("name", labels[-1])
                self.main.warn_at(root, f"{several}; all are read, as one robot; {one} takes one")
            return None if holder is root else holder, models[0] if len(models) == 1 else None
        for model, label in self.labels.items():
            if label == name:
                holder = model.getparent()
                return None if holder is root else holder, model
        for world in worlds:
            if world.get("name") == name:
                return world, None
        choices = [*labels, *(world.get("name", "") for world in worlds)]
        hint = did_you_mean(name, choices)
        raise DescriptionError(
            f"the file holds no model '{name}'{hint}; it holds {few(choices, 6)}", place
        )

    # ---- models and worlds

    def _world(
        self, parts: _Parts, here: _Place, element: Element, world: Scope, model: Element | None
    ) -> None:
        """Collect the frames and joints of a world; only joints of the selected model."""
        called = None if model is None else self.labels[model]
        for each in element:
            if each.tag == "frame":
                self._add(parts if model is None else _Parts(), here, each, world)
            elif each.tag == "joint":
                ends = [self.main.required(each, tag) for tag in ("parent", "child")]
                first = {end.split(BETWEEN)[0] for end in ends} - {WORLD}
                if called is None or first == {called}:
                    self._add(parts, here, each, world)
                elif called in first:
                    self.main.warn_at(
                        each,
                        f"this joint of the world ties '{called}' to another model and is left "
                        f"out; {argument('name', element.get('name'))} reads the whole world",
                    )
            elif each.tag == "state":
                self.main.warn_at(
                    each, "<state> is ignored: the models are read as they are written"
                )
            elif each.tag not in ("model", "include"):
                self._unknown(self.main, each, _MODEL - {"link"}, _WORLD_SETTINGS)

    def _model(
        self,
        parts: _Parts,
        here: _Place,
        element: Element,
        outer: Scope,
        full: str,
        over: tuple[SdfDocument, Element] | None = None,
        merge: Scope | None = None,
    ) -> SdfFrame:
        """Collect a model; ``over``: the ``<include>`` that changes it; ``merge``: a merge's
        target.

        ``full`` is its name in the robot, the prefix of its links' names.
        """
        document = here.document
        if here.depth > _MAX_MODEL_DEPTH:
            raise document.error(element, f"models are nested more than {_MAX_MODEL_DEPTH} deep")
        placing, include = over or (document, element)
        static = outer.static or document.truth(element, "static", False)
        placed = read_placed(document, element)
        placement = element.get("placement_frame", "")
        if over is not None:
            static = outer.static or placing.truth(include, "static", static)
            placement = placing.word(include, "placement_frame") or placement
            if include.find("pose") is not None:
                placed = read_placed(placing, include)
        frame = SdfFrame(full, "model", outer, placing, include, placed, placement=placement)
        inner = Scope(full, frame, static, canonical=element.get("canonical_link", ""))
        if merge is not None:
            inner.name, inner.tables, inner.pending = merge.name, merge.tables, merge.pending
        frame.inner = inner
        within = _Place(document, here.depth + 1, here.files)
        for child in element:
            if child.tag in ("link", "joint", "frame"):
                self._add(parts, within, child, inner)
            elif child.tag == "model":
                name = document.text(child, "name")
                inner.add(name, self._model(parts, within, child, inner, inner.full(name)))
            elif child.tag == "include":
                if document.truth_of(child, "merge", False):
                    self._include(parts, within, child, inner, inner.name, merge=inner)
                else:
                    name = _label(document, child)
                    inner.add(name, self._include(parts, within, child, inner, inner.full(name)))
            elif (tag := shown(child)) in (BALL_CONSTRAINT, LINEAR_SPRING, TENDON):
                constraints = parts.balls if tag == BALL_CONSTRAINT else parts.springs
                number = sum(shown(each.element) == tag for each in constraints) + 1
                name = _full(child, f"{tag.removeprefix('drake:')}_{number}", inner)
                constraints.append(SdfFrame(name, "joint", inner, document, child))
            else:
                self._unknown(document, child, _MODEL, _MODEL_SETTINGS)
        return frame

    def _include(
        self,
        parts: _Parts,
        here: _Place,
        element: Element,
        outer: Scope,
        full: str,
        merge: Scope | None = None,
    ) -> SdfFrame:
        """Collect the model in the file that an ``<include>`` names."""
        document = here.document
        document.parts(element, _INCLUDE)
        path = self.library.included(document, element, here.files)
        included = self.library.read(path, document, element)
        models = included.root.findall("model")
        if not models and any(each.tag in _SDF_IRRELEVANT for each in included.root):
            frame = SdfFrame(full, "model", outer, document, element)  # a light has no parts
            frame.inner = Scope(full, frame, static=True)
            return frame
        if len(models) != 1:
            raise document.error(
                element, f"{included.file} holds {len(models)} models; an include takes one"
            )
        inside = _Place(included, here.depth + 1, (*here.files, path))
        over = (document, element)
        return self._model(parts, inside, models[0], outer, full, over, merge)

    def _unknown(
        self,
        document: SdfDocument,
        element: Element,
        tags: Iterable[str],
        irrelevant: frozenset[str],
    ) -> None:
        """Warn of an unknown element, unless it has a foreign prefix; Drake's are mechanical."""
        tag = shown(element)
        if tag not in irrelevant and (":" not in tag or tag.startswith("drake:")):
            document.unknown(element, tags)

    # ---- frames

    def _add(self, parts: _Parts, here: _Place, element: Element, scope: Scope) -> None:
        """Add a link, a joint or a frame."""
        document, kind = here.document, cast(Literal["link", "joint", "frame"], element.tag)
        name, placed = document.text(element, "name"), read_placed(document, element)
        if name == WORLD and document.version >= (1, 7):
            raise document.error(
                element, f"a {kind} cannot be called 'world'; give it another name"
            )
        frame = SdfFrame(_full(element, name, scope), kind, scope, document, element, placed)
        if kind == "link":
            self._unlike_world(frame, name, scope)
        scope.add(name, frame)
        {"link": parts.links, "joint": parts.joints, "frame": parts.frames}[kind].append(frame)

    def _unlike_world(self, link: SdfFrame, name: str, scope: Scope) -> None:
        """Rename a link named "world"; joints with the parent 'world' then refer to it."""
        if link.name == WORLD:
            link.name = f"{scope.frame.element.get('name')}{BETWEEN}{WORLD}"
        if name == WORLD:
            what = "stands for it" if _stands_for_world(link) else "is one of its own"
            link.document.warn_at(
                link.element,
                "from SDF 1.7 on no link may be called 'world', which is the world itself; this "
                f"one {what}, and is called '{link.name}' here",
            )


def _custom(model: Element, tag: str) -> list[Element]:
    """Elements of this package's namespace, with the names in them as URDF writes them."""
    elements = list(model.iterchildren(f"{{{CUSTOM}}}{tag}"))
    for each in elements:
        for part in each.iter():
            if (name := part.get(f"{{{CUSTOM}}}name")) is not None:
                del part.attrib[f"{{{CUSTOM}}}name"]
                part.set("name", name)
    return elements


def _full(element: Element, name: str, scope: Scope) -> str:
    """The name in the robot: as this package's writer noted it, else with the models' names."""
    return element.get(f"{{{CUSTOM}}}name") or scope.full(name)


def _label(document: SdfDocument, element: Element) -> str:
    """The name of a model, or by which the model of an include can be selected."""
    if element.tag == "model":
        return document.text(element, "name")
    if name := document.word(element, "name"):
        return name
    uri = document.required(element, "uri").rstrip("/")
    return uri.rpartition("/")[2].removesuffix(".sdf")


# --- the description ------------------------------------------------------------------------------


@dataclass(slots=True)
class _Parts:
    """The links, frames and joints that are read, in the order of the file."""

    links: list[SdfFrame] = field(default_factory=list)
    frames: list[SdfFrame] = field(default_factory=list)
    joints: list[SdfFrame] = field(default_factory=list)
    balls: list[SdfFrame] = field(default_factory=list)  # Drake's ball constraints
    springs: list[SdfFrame] = field(default_factory=list)  # Drake's springs


class _Describer:
    """Creates the description from the parts: a tree, its loops and its couplings."""

    def __init__(self, frames: SdfFrames, parts: _Parts, moved: frozenset[str]) -> None:
        self.frames = frames
        self.parts = parts
        self.moved = moved  # names of joints with transmissions
        self.connections: dict[SdfFrame, Connection] = {}
        self.gearboxes: list[SdfFrame] = []
        self.links: list[Link] = []
        self.joints: list[Joint] = []
        self.loops: list[Loop] = []
        self.carriers = Carriers(frames, frozenset(parts.links))
        # by the names of the joints of the description
        self.steps: dict[str, SimpleJoint] = {}
        self.makers: dict[str, Connection] = {}
        self.axes: dict[str, tuple[SdfFrame, Vec3]] = {}  # with the frame in which each is given
        self.above: dict[str, Joint] = {}  # by the name of the child
        self.link_names = Names((WORLD, *(each.name for each in (*parts.links, *parts.frames))))
        self.joint_names = Names((each.name for each in parts.joints), first=1)

    def description(self, name: str, source: Source, gravity: Vec3 | None) -> Description:
        """The description with this name."""
        for frame in self.parts.joints:
            kind = type_of(frame)
            if kind == "gearbox":
                self.gearboxes.append(frame)
            else:
                self.connections[frame] = self._connection(frame, kind)
        held = [link for link in self.parts.links if _is_held(link)]
        spanned = span(self.frames.world, self.parts.links, held, tuple(self.connections.values()))
        together = _welded(spanned, self.frames.world, held)
        self._ground(spanned, held, source)
        leaders = self._leaders()
        for each, reverse in spanned.tree:
            self._tree_joint(each, reverse)
        for each in spanned.loops:
            if together(each.parent) is together(each.child):
                self._idle(each)
            else:
                self._loop(each, leaders)
        for frame in self.parts.balls:
            notation = self._notation(frame)
            self.loops.append(ball_constraint(frame.document, frame.element, frame.name, notation))
        for frame in self.parts.frames:  # become massless links
            self.links.append(Link(frame.name, None, source_of(frame)))
            carrier = self.frames.carrier(frame)
            self._fix(self.joint_names.fresh(frame.name), carrier, frame, frame)
        ground = together(self.frames.world)
        links = [
            read_link(self.frames, link, together(link) is ground) for link in self.parts.links
        ]
        links = [self.links[0], *links, *self.links[1:]]
        by_name(links, "link")  # refuses repeated names, with which paths might not end
        self.joints = [self._with_mimic(joint) for joint in self.joints]
        self.above = {joint.child: joint for joint in self.joints}
        gearboxes = Gearboxes(self.frames, self.carriers, self.above, self.axes, self.steps)
        springs, tendons = self._springs()
        return Description(
            name,
            tuple(links),
            tuple(self.joints),
            tuple(self.loops),
            (*map(gearboxes.read, self.gearboxes), *tendons),
            source=source,
            gravity=gravity,
            format="sdf",
            sensors=tuple(
                sensor
                for frame in (*self.parts.links, *self.parts.joints)
                for sensor in named_sensors(frame.document, frame.element)
            ),
            springs=springs,
        )

    def _leaders(self) -> set[Connection]:
        """The connections that mimic others or that others mimic."""
        tied = set()
        for each in self.connections.values():
            for step in each.steps:
                if step.mimic is not None:
                    tied |= {each, self._leader(each, step)[0]}
        return tied

    # ---- joints of the file

    def _connection(self, frame: SdfFrame, kind: str) -> Connection:
        document, element = frame.document, frame.element
        document.parts(element, JOINT, JOINT_IRRELEVANT)
        parent, child = self.carriers.end(frame, "parent"), self.carriers.end(frame, "child")
        if parent is child:
            raise document.error(
                element, f"its parent and its child are the same link '{child.name}'"
            )
        physics = element.find("physics/simbody")
        cut = physics is not None and document.truth(physics, "must_be_loop_joint", False)
        steps = read_steps(self.frames, frame, kind)
        driven = any(step.joint.name in self.moved for step in steps)
        return Connection(frame.name, kind, parent, child, frame, steps, cut, driven)

    # ---- the tree

    def _ground(self, spanned: Span, held: Sequence[SdfFrame], source: Source) -> None:
        """Create the world as root link, the links held there, and the free links."""
        world = self.frames.world
        self.links.append(Link(WORLD, None, source))
        for link in held:
            self._fix(self.joint_names.fresh(link.name), world, link, link)
        base = "floating_base" if len(spanned.free) == 1 else "floating_base_{}"
        for link in spanned.free:
            name = link.element.get(f"{{{CUSTOM}}}joint") or base.format(link.name)
            self._fix(self.joint_names.fresh(name), world, link, link)
            marks = independent_marks(link.document, link.element, 6)
            joint = replace(self.joints[-1], type="floating", independent=marks)
            if (shown := custom_numbers(link.document, link.element, "position", 7)) is not None:
                back = inverse(displacement("floating", joint.axis, shown))
                joint = replace(joint, origin=tidy(compose(joint.origin, back)))
            self.joints[-1] = joint

    def _fix(self, name: str, parent: SdfFrame, child: SdfFrame, at: SdfFrame) -> None:
        """Add a fixed joint, with the source and pose of the frame ``at``."""
        origin, source = self.frames.pose(parent, child), source_of(at)
        self.joints.append(Joint(name, "fixed", parent.name, child.name, origin, source=source))

    def _tree_joint(self, each: Connection, reverse: bool) -> None:
        """Add a connection as joints of the tree in series."""
        start, end = (each.child, each.parent) if reverse else (each.parent, each.child)
        if each.kind == "fixed":
            self._fix(each.name, start, end, each.frame)
            return
        steps = [s.backward() for s in reversed(each.steps)] if reverse else list(each.steps)
        at, standing = self._chain(each, start, steps[:-1])
        step = steps[-1]
        standing = compose(standing, step.undone())
        inner = self.frames.pose(each.frame, end)
        if is_on_joint(step.joint.type, step.joint.axis, inner.xyz, NOTHING):
            axis = turned(transpose(inner.rotation), step.joint.axis)
            self._add(each, step, at, end.name, tidy(compose(standing, inner)), axis)
            return
        # the frame named like the joint moves with the child, so the link is fixed to that frame
        moving = self._between(each, each.name, f"{each.name}{BETWEEN}frame")
        self._add(each, step, at, moving, tidy(standing), step.joint.axis)
        name = self.joint_names.fresh(f"{each.name}{BETWEEN}fixed")
        self.joints.append(
            Joint(name, "fixed", moving, end.name, inner, source=source_of(each.frame))
        )

    def _chain(
        self, each: Connection, start: SdfFrame, steps: Sequence[SimpleJoint]
    ) -> tuple[str, Pose]:
        """Add simple joints with massless links between; returns the last link and pose."""
        link, pose = start.name, self.frames.pose(start, each.frame)
        for step in steps:
            between = self._between(each, f"{each.name}{BETWEEN}cross")
            origin = tidy(compose(pose, step.undone()))
            self._add(each, step, link, between, origin, step.joint.axis)
            link, pose = between, Pose()
        return link, pose

    def _between(self, each: Connection, *names: str) -> str:
        """Add a massless link with the first of these names that is free, or one like the last."""
        free = (name for name in names if name not in self.link_names.used)
        fresh = self.link_names.fresh(next(free, names[-1]), BETWEEN)
        self.links.append(Link(fresh, None, source_of(each.frame)))
        return fresh

    def _add(
        self, each: Connection, step: SimpleJoint, parent: str, child: str, origin: Pose, axis: Vec3
    ) -> None:
        joint, q = step.joint, step.standing if step.joint.type in ONE_DOF else 0.0
        self.steps[joint.name] = step
        self.makers[joint.name] = each
        self.axes[joint.name] = each.frame, joint.axis
        self.joints.append(
            replace(
                joint,
                parent=parent,
                child=child,
                origin=origin,
                axis=axis,
                limits=replace(
                    joint.limits, lower=joint.limits.lower + q, upper=joint.limits.upper + q
                ),
                reference=joint.reference + q if joint.stiffness else 0.0,
            )
        )

    # ---- loops

    def _loop(self, each: Connection, tied: set[Connection]) -> None:
        """Add a connection that is not in the tree as a loop."""
        kind, joints = KINDS[each.kind].loop, [step.joint for step in each.steps]
        if kind == "universal" and abs(cosine(joints[0].axis, joints[1].axis)) > PARALLEL:
            kind = None
        document, element, source = each.frame.document, each.frame.element, source_of(each.frame)
        here = self.frames.pose(each.child, each.frame)
        if kind is None or each in tied or (each.acts and joints[0].type in ONE_DOF):
            # types without a loop, joints whose position is tied, and those that say what loops do
            # not keep: add joints to a massless link, which is fixed to the child by the loop
            link, _ = self._chain(each, each.parent, each.steps)
            name = f"{each.name}{BETWEEN}fixed" if each.steps else each.name
            ends = Anchor(link), Anchor(each.child.name, here)
            self.loops.append(Loop(name, "fixed", *ends, source=source))
            return
        for joint in joints:
            warn_of_limits(document, element, joint.limits)
        acting = [joint for joint in joints if joint.damping or joint.friction or joint.stiffness]
        if acting and kind not in LOOP_COORDINATES:
            document.warn_at(
                element,
                "the joint closes a loop that leaves several coordinates, where damping, friction "
                "and springs are not kept; they are left out",
                "dynamics of a loop",
            )
            acting = []
        axes = [joint.axis for joint in joints]
        there = Anchor(each.parent.name, self.frames.pose(each.parent, each.frame))
        shown = each.steps[0].standing if acting else 0.0
        if shown:
            there = replace(there, origin=compose(there.origin, each.steps[0].undone()))
        loop = Loop(
            each.name,
            kind,
            there,
            Anchor(each.child.name, here),
            axes[0] if axes else (1.0, 0.0, 0.0),
            axes[1] if kind == "universal" else None,
            source=source,
        )
        for joint in acting:
            loop = replace(
                loop,
                damping=joint.damping,
                friction=joint.friction,
                stiffness=joint.stiffness,
                reference=joint.reference + shown if joint.stiffness else 0.0,
            )
        self.loops.append(loop)

    def _springs(self) -> tuple[tuple[Spring | JointSpring, ...], list[JointCoupling]]:
        """Read Drake's springs and tendons; rigid tendons become couplings."""
        springs: list[Spring | JointSpring] = []
        couplings = []
        for frame in self.parts.springs:
            reader = linear_spring if shown(frame.element) == LINEAR_SPRING else tendon
            read = reader(frame.document, frame.element, frame.name, self._notation(frame))
            if isinstance(read, JointCoupling):
                couplings.append(read)
            elif read is not None:
                springs.append(read)
        return tuple(springs), couplings

    def _notation(self, frame: SdfFrame) -> Notation:
        """How SDF writes the values of Drake's elements."""
        document = frame.document

        def body(element: Element) -> str:
            return self.carriers.carrier(frame, (element.text or "").strip(), element).name

        def joint(element: Element) -> str:
            assert frame.scope is not None
            name = document.text(element, "name")
            return self.frames.named(name, frame.scope, document, element).name

        return Notation(document.content, document.three, body, joint)

    def _idle(self, each: Connection) -> None:
        """Warn of a joint between links that are fixed to each other."""
        ends = (each.parent, each.child)
        if each.kind == "fixed" or all(_is_held(end) for end in ends):
            return
        each.frame.document.warn_at(
            each.frame.element,
            f"the joint cannot move, since '{each.parent.name}' and '{each.child.name}' are fixed "
            "to each other; it is left out",
        )

    # ---- mimic

    def _leader(self, each: Connection, step: SimpleJoint) -> tuple[Connection, int]:
        """The connection that a simple joint mimics, and the index of its simple joint."""
        mimic, document, element = step.mimic, each.frame.document, each.frame.element
        assert mimic is not None
        assert each.frame.scope is not None
        named = self.frames.named(mimic.joint, each.frame.scope, document, element)
        leader = self.connections.get(named)
        if leader is None or not leader.steps or leader.steps[0].joint.type not in ONE_DOF:
            what = named.kind if leader is None else f"{leader.kind} joint"
            raise document.error(element, f"'{mimic.joint}' cannot be mimicked: it is a {what}")
        if mimic.axis2 and len(leader.steps) < 2:
            raise document.error(element, f"'{mimic.joint}' has no axis2 to mimic")
        return leader, int(mimic.axis2)

    def _with_mimic(self, joint: Joint) -> Joint:
        step = self.steps.get(joint.name)
        if step is None or step.mimic is None:
            return joint
        leader, number = self._leader(self.makers[joint.name], step)
        lead = leader.steps[number]
        offset = step.mimic.offset + step.standing - step.mimic.multiplier * lead.standing
        return replace(joint, mimic=Mimic(lead.joint.name, step.mimic.multiplier, offset))


def _stands_for_world(link: SdfFrame) -> bool:
    """True if a link is the world of old files: named "world", with nothing in it."""
    tags = ("inertial", "visual", "collision")
    return link.element.get("name") == WORLD and all(link.element.find(t) is None for t in tags)


def _is_held(frame: SdfFrame) -> bool:
    """True if a frame is the world, a link of a static model, or a link that is the world."""
    if frame.kind == "world" or (frame.scope is not None and frame.scope.static):
        return True
    return frame.kind == "link" and _stands_for_world(frame)


def _welded(
    spanned: Span, world: SdfFrame, held: Sequence[SdfFrame]
) -> Callable[[SdfFrame], SdfFrame]:
    """A function that maps a link to one representative of all links fixed to it."""
    leader: dict[SdfFrame, SdfFrame] = dict.fromkeys(held, world)

    def together(frame: SdfFrame) -> SdfFrame:
        while (above := leader.get(frame, frame)) is not frame:
            leader[frame] = leader.get(above, above)
            frame = above
        return frame

    for each, _ in spanned.tree:
        if each.kind == "fixed":
            one, other = together(each.parent), together(each.child)
            leader[other if one is world else one] = one if one is world else other
    return together
