"""SDF, versions 1.2 to 1.12: robots as Gazebo and Drake write them.

The reader goes over the file four times: it collects the links, joints and frames of a model with
those of nested and included ones (:class:`_Reader`), finds where each stands
(:mod:`robomodel.parsers.sdf.frames`), spans a tree over the joints
(:mod:`robomodel.parsers.sdf.joints`), and writes it all down as a description
(:mod:`robomodel.parsers.sdf.description`).

Every word is described in ``docs/sdf.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, cast

from robomodel.description import Description
from robomodel.description.resources import Resources
from robomodel.errors import DescriptionError, did_you_mean, few
from robomodel.parsers.sdf.description import Describer, Parts, stands_for_world
from robomodel.parsers.sdf.document import BETWEEN, WORLD, SdfDocument, read_placed
from robomodel.parsers.sdf.files import Library, opened
from robomodel.parsers.sdf.frames import Frame, Frames, Scope
from robomodel.parsers.shared.motors import read_transmission
from robomodel.parsers.shared.springs import BALL_CONSTRAINT, LINEAR_SPRING, TENDON, read_spring
from robomodel.parsers.text import Names
from robomodel.parsers.xml import CUSTOM, Document, Element, shown, words

_SDF = frozenset(("model", "world"))
_SDF_IRRELEVANT = frozenset(("light", "actor", "plugin"))
_MODEL = frozenset(("link", "joint", "frame", "model", "include"))
_MODEL_SETTINGS = words("static pose self_collide allow_auto_disable plugin gripper enable_wind")
_WORLD_SETTINGS = words(
    "gravity physics audio wind magnetic_field atmosphere gui scene light actor plugin road "
    "spherical_coordinates population"
)
_INCLUDE = frozenset(("uri", "name", "pose", "static", "placement_frame", "plugin", "namespace"))
_MAX_DEPTH = 64  # of models in models
_UNNAMED = "default"  # what Gazebo calls a world without a name
_SCENERY = ("model://sun", "model://ground_plane")  # a light, and a plane that never moves


def read_sdf(
    document: Document, *, name: str | None = None, resources: Resources | None = None
) -> Description:
    """The description of one model of the file, or of all in its world.

    ``name`` chooses among several models; without it (or by the world's name) all are one robot.
    Files that ``<include>`` names are read from the folder of the file, and model folders from
    beside it, or from ``resources``.
    """
    main = opened(document)
    for element in main.root:
        if element.tag not in _SDF | _SDF_IRRELEVANT:
            main.unknown(element, _SDF)
    return _Reader(main, resources or Resources()).description(name)


# --- what there is --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """How deep in models and in which files an element stands."""

    document: SdfDocument
    depth: int = 0
    files: tuple[str, ...] = ()


class _Reader:
    """Collects the models of a file, those that it includes, and all that they are made of."""

    def __init__(self, main: SdfDocument, resources: Resources) -> None:
        self.main = main
        self.library = Library(main, resources)
        self.scenery: list[Element] = []
        self.labels = self._labelled()

    def description(self, name: str | None) -> Description:
        """The description of the model (or world) of this name."""
        world_element, model = self._chosen(name)
        holder = self.main.root if world_element is None else world_element
        ground = Frame(WORLD, "world", None, self.main, holder)
        world = Scope("", ground)
        ground.scope = ground.inner = world
        everything, parts = Parts(), Parts()
        here = _Place(self.main, files=self.library.start)
        models = [each for each in holder if each in self.labels]
        for each in models:
            label = self.labels[each]
            inside = everything if model is None else parts if each is model else Parts()
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
        description = Describer(Frames(ground), wanted_parts).description(called, source, gravity)
        if model is None:
            return description
        transmissions = (read_transmission(self.main, x) for x in _custom(model, "transmission"))
        springs = (read_spring(self.main, x) for x in _custom(model, "spring"))
        return replace(
            description,
            transmissions=tuple(transmissions),
            springs=(*description.springs, *springs),
        )

    def _labelled(self) -> dict[Element, str]:
        """The models that can be chosen, and what each is called; includes only in worlds."""
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
        """Whether an include is of Gazebo's sun or ground, which few files have beside them."""
        uri = self.main.required(include, "uri").rstrip("/")
        return uri in _SCENERY and not self.library.has(self.main, uri)

    def _chosen(self, name: str | None) -> tuple[Element | None, Element | None]:
        """The world, if any, and the model in it; no model stands for all of them."""
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
                    f"{several}, in {len(holders)} places; say which, as in name={labels[-1]!r}",
                    place,
                )
            (holder,) = holders
            for each in self.scenery:
                uri = self.main.required(each, "uri")
                self.main.warn_at(each, f"there is no {uri} beside the file; it is left out")
            if len(models) > 1:
                self.main.warn_at(
                    root, f"{several}; all are read, as one robot; name={labels[-1]!r} takes one"
                )
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
        self, parts: Parts, here: _Place, element: Element, world: Scope, model: Element | None
    ) -> None:
        """The frames and joints of a world; of the joints those of the chosen model."""
        called = None if model is None else self.labels[model]
        for each in element:
            if each.tag == "frame":
                self._add(parts if model is None else Parts(), here, each, world)
            elif each.tag == "joint":
                ends = [self.main.required(each, tag) for tag in ("parent", "child")]
                first = {end.split(BETWEEN)[0] for end in ends} - {WORLD}
                if called is None or first == {called}:
                    self._add(parts, here, each, world)
                elif called in first:
                    self.main.warn_at(
                        each,
                        f"this joint of the world ties '{called}' to another model and is left "
                        f"out; name={element.get('name')!r} reads the whole world",
                    )
            elif each.tag == "state":
                self.main.warn_at(
                    each, "<state> is ignored: the models are read as they are written"
                )
            elif each.tag not in ("model", "include"):
                self._unknown(self.main, each, _MODEL - {"link"}, _WORLD_SETTINGS)

    def _model(
        self,
        parts: Parts,
        here: _Place,
        element: Element,
        outer: Scope,
        full: str,
        over: tuple[SdfDocument, Element] | None = None,
        merge: Scope | None = None,
    ) -> Frame:
        """A model; ``over``: the ``<include>`` that changes it; ``merge``: what it is merged into.

        ``full`` is its name in the robot, by which its links are called.
        """
        document = here.document
        if here.depth > _MAX_DEPTH:
            raise document.error(element, f"models are nested more than {_MAX_DEPTH} deep")
        placing, include = over or (document, element)
        static = outer.static or document.truth(element, "static", False)
        placed = read_placed(document, element)
        placement = element.get("placement_frame", "")
        if over is not None:
            static = outer.static or placing.truth(include, "static", static)
            placement = placing.word(include, "placement_frame") or placement
            if include.find("pose") is not None:
                placed = read_placed(placing, include)
        frame = Frame(full, "model", outer, placing, include, placed, placement=placement)
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
                constraints.append(Frame(name, "joint", inner, document, child))
            else:
                self._unknown(document, child, _MODEL, _MODEL_SETTINGS)
        return frame

    def _include(
        self,
        parts: Parts,
        here: _Place,
        element: Element,
        outer: Scope,
        full: str,
        merge: Scope | None = None,
    ) -> Frame:
        """The model of the file that an ``<include>`` names."""
        document = here.document
        document.parts(element, _INCLUDE)
        path = self.library.included(document, element, here.files)
        included = self.library.read(path, document, element)
        models = included.root.findall("model")
        if not models and any(each.tag in _SDF_IRRELEVANT for each in included.root):
            frame = Frame(full, "model", outer, document, element)  # of a light there is nothing
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
        """Warn of what is not known, unless it is somebody's own; Drake's own has mechanics."""
        tag = shown(element)
        if tag not in irrelevant and (":" not in tag or tag.startswith("drake:")):
            document.unknown(element, tags)

    # ---- frames

    def _add(self, parts: Parts, here: _Place, element: Element, scope: Scope) -> None:
        """A link, a joint or a frame."""
        document, kind = here.document, cast(Literal["link", "joint", "frame"], element.tag)
        name, placed = document.text(element, "name"), read_placed(document, element)
        if name == WORLD and document.version >= (1, 7):
            raise document.error(
                element, f"a {kind} cannot be called 'world'; give it another name"
            )
        frame = Frame(_full(element, name, scope), kind, scope, document, element, placed)
        if kind == "link":
            self._unlike_world(frame, name, scope)
        scope.add(name, frame)
        {"link": parts.links, "joint": parts.joints, "frame": parts.frames}[kind].append(frame)

    def _unlike_world(self, link: Frame, name: str, scope: Scope) -> None:
        """Rename a link that is called like the world; its joints' parent 'world' is then it."""
        if link.name == WORLD:
            link.name = f"{scope.frame.element.get('name')}{BETWEEN}{WORLD}"
        if name == WORLD:
            what = "stands for it" if stands_for_world(link) else "is one of its own"
            link.document.warn_at(
                link.element,
                "from SDF 1.7 on no link may be called 'world', which is the world itself; this "
                f"one {what}, and is called '{link.name}' here",
            )


def _custom(model: Element, tag: str) -> list[Element]:
    """Elements in words of our own, which SDF has none for; so are names in them, of URDF's."""
    elements = list(model.iterchildren(f"{{{CUSTOM}}}{tag}"))
    for each in elements:
        for part in each.iter():
            if (name := part.get(f"{{{CUSTOM}}}name")) is not None:
                del part.attrib[f"{{{CUSTOM}}}name"]
                part.set("name", name)
    return elements


def _full(element: Element, name: str, scope: Scope) -> str:
    """The name in the robot: as noted by this package's writer, else scoped by the models."""
    return element.get(f"{{{CUSTOM}}}name") or scope.full(name)


def _label(document: SdfDocument, element: Element) -> str:
    """The name of a model, or the one by which an include's model can be named."""
    if element.tag == "model":
        return document.text(element, "name")
    if name := document.word(element, "name"):
        return name
    uri = document.required(element, "uri").rstrip("/")
    return uri.rpartition("/")[2].removesuffix(".sdf")
