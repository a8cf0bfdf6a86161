"""Frames of an SDF file: names in a model, poses, and the links that carry them.

Each link, joint, frame or model is a frame, whose pose is relative to another one. A :class:`Scope`
is a model (or the world) with the frames that its elements can name. All poses are those in the
file, with all joints at the positions it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from robomodel.description import Pose
from robomodel.description.poses import compose, inverse, relative, tidy
from robomodel.errors import Source, did_you_mean, few
from robomodel.parsers.sdf.document import BETWEEN, MODEL, RelativePose, SdfDocument
from robomodel.vocabulary.frames import WORLD
from robomodel.vocabulary.xml import Element, spelled

_KINDS = ("link", "frame", "model", "joint")  # in the order in which names are looked up


@dataclass(eq=False, slots=True)
class SdfFrame:
    """A link, joint, frame or model: its full name, its pose as written, and its element."""

    name: str
    kind: Literal["link", "joint", "frame", "model", "world"]
    scope: Scope | None  # resolves its names
    document: SdfDocument
    element: Element
    placed: RelativePose = field(default_factory=RelativePose)
    inner: Scope | None = None  # contents of a model
    placement: str = ""  # the frame of a model to which the model's pose applies


def source_of(frame: SdfFrame) -> Source:
    """The location of a frame in its file."""
    return frame.document.source(frame.element, f"{frame.kind} '{frame.name}'")


@dataclass(eq=False, slots=True)
class Scope:
    """A model or the world: the names that its elements can use, and whether it is static.

    A merged model shares the tables of the model it is merged into, and keeps its own frame.
    """

    name: str
    frame: SdfFrame
    static: bool = False
    tables: dict[str, dict[str, SdfFrame]] = field(
        default_factory=lambda: {kind: {} for kind in _KINDS}
    )
    pending: dict[str, Callable[[], SdfFrame]] = field(default_factory=dict)
    canonical: str = ""
    first: SdfFrame | None = None  # the first link, else the first model

    def full(self, name: str) -> str:
        """The name with the names of the models that contain it as prefix."""
        return f"{self.name}{BETWEEN}{name}" if self.name else name

    def add(self, name: str, frame: SdfFrame) -> None:
        """Add a frame; of two with one name, the first is used, and checks refuse the other."""
        self.tables[frame.kind].setdefault(name, frame)
        if frame.kind in ("link", "model") and (
            self.first is None or (frame.kind == "link" and self.first.kind == "model")
        ):
            self.first = frame

    def find(self, name: str) -> SdfFrame | None:
        """The frame that elements of this scope refer to by ``name``; None if there is none."""
        if (whole := self._local(name, _KINDS)) is not None:  # old files have names with "::"
            return whole
        scope: Scope | None = self
        *models, last = name.split(BETWEEN)
        for model in models:
            model_frame = scope._local(model, ("model",)) if scope else None
            scope = model_frame.inner if model_frame else None
        if scope is None:
            return None
        if last == MODEL and scope.frame.kind != "world":
            return scope.frame
        return scope._local(last, _KINDS)

    def _local(self, name: str, kinds: tuple[str, ...]) -> SdfFrame | None:
        for kind in kinds:
            if name in self.tables[kind]:
                return self.tables[kind][name]
            if kind == "model" and name in self.pending:
                self.tables[kind][name] = self.pending.pop(name)()
                return self.tables[kind][name]
        return None

    def names(self) -> Iterator[str]:
        """All names that elements of this scope can use."""
        for table in self.tables.values():
            for name, frame in table.items():
                yield name
                if frame.inner is not None and frame.inner is not self:
                    yield from (f"{name}{BETWEEN}{inner}" for inner in frame.inner.names())


class SdfFrames:
    """Relative poses of frames, each computed once."""

    def __init__(self, world: SdfFrame) -> None:
        self.world = world
        self._bases: dict[SdfFrame, tuple[SdfFrame, Pose]] = {}
        self._depths: dict[SdfFrame, int] = {world: 0}
        self._in_world: dict[SdfFrame, Pose] = {world: Pose()}
        self._carriers: dict[SdfFrame, SdfFrame] = {world: world}

    def named(self, name: str, scope: Scope, document: SdfDocument, element: Element) -> SdfFrame:
        """The frame of this name; raises an error at ``element`` if there is none."""
        if name == WORLD and scope.frame.kind == "world":
            return self.world
        frame = scope.find(name)
        if frame is None:
            where = "the world" if scope.frame.kind == "world" else "the model"
            raise document.error(
                element,
                f"{where} has no link, joint, frame or model {spelled(name)}"
                f"{did_you_mean(name, scope.names())}",
            )
        return frame

    # ---- poses

    def pose(self, outer: SdfFrame, inner: SdfFrame) -> Pose:
        """The pose of ``inner`` in ``outer``, as written if the file states it."""
        up, down = Pose(), Pose()
        a, b = outer, inner
        depth_a, depth_b = self._depth(a), self._depth(b)
        steps = 0
        while a is not b:
            steps += 1
            # shorter chains of relative poses are composed exactly, not through the world
            if steps > 32:
                up, down = self.in_world(outer), self.in_world(inner)
                break
            if depth_a >= depth_b:
                a, step = self._base(a)
                up, depth_a = compose(step, up), depth_a - 1
            else:
                b, step = self._base(b)
                down, depth_b = compose(step, down), depth_b - 1
        if a is outer:
            return down
        return tidy(relative(up, down))

    def in_world(self, frame: SdfFrame) -> Pose:
        """The pose of a frame in the world."""
        self._depth(frame)  # raises for circular references
        path = []
        while frame not in self._in_world:
            path.append(frame)
            frame = self._base(frame)[0]
        pose = self._in_world[frame]
        for below in reversed(path):
            pose = self._in_world[below] = compose(pose, self._base(below)[1])
        return pose

    def _base(self, frame: SdfFrame) -> tuple[SdfFrame, Pose]:
        """The frame to which this one's pose is relative, and the pose."""
        if frame not in self._bases:
            self._bases[frame] = self._written_base(frame)
        return self._bases[frame]

    def _written_base(self, frame: SdfFrame) -> tuple[SdfFrame, Pose]:
        scope = frame.scope
        assert scope is not None
        name = frame.placed.relative_to
        if not name and frame.kind == "frame":
            name = frame.element.get("attached_to") or ""
        elif not name and frame.kind == "joint":
            name = frame.document.required(frame.element, "child")
        base = self._named(name, frame) if name else scope.frame
        if frame.inner is None or not frame.placement:
            return base, frame.placed.pose
        placement = self.named(frame.placement, frame.inner, frame.document, frame.element)
        within = self._within(frame, placement)
        return base, tidy(compose(frame.placed.pose, inverse(within)))

    def _within(self, model: SdfFrame, placement: SdfFrame) -> Pose:
        """The pose in its model of the frame that ``placement_frame`` names."""
        pose, at = Pose(), placement
        path: dict[SdfFrame, None] = {}
        while at is not model:
            _step(path, at, "placed in")
            if not _is_within(at, model):
                raise model.document.error(
                    model.element,
                    f"the placement_frame {spelled(model.placement)} does not stand in the model",
                )
            at, step = self._base(at)
            pose = compose(step, pose)
        return pose

    def _named(self, name: str, frame: SdfFrame) -> SdfFrame:
        """The frame that ``frame`` refers to; raises if it is the frame itself."""
        assert frame.scope is not None
        named = self.named(name, frame.scope, frame.document, frame.element)
        if named is frame:
            raise frame.document.error(frame.element, f"the {frame.kind} is placed in itself")
        return named

    def _depth(self, frame: SdfFrame) -> int:
        """The number of steps from the world to the frame; raises for circular references."""
        path: dict[SdfFrame, None] = {}
        while frame not in self._depths:
            _step(path, frame, "placed in")
            frame = self._base(frame)[0]
        depth = self._depths[frame]
        for below in reversed(path):
            depth += 1
            self._depths[below] = depth
        return depth

    # ---- attachments

    def carrier(self, frame: SdfFrame) -> SdfFrame:
        """The link that a frame is attached to, or the world."""
        path: dict[SdfFrame, None] = {}
        while frame not in self._carriers:
            _step(path, frame, "attached to")
            frame = frame if frame.kind == "link" else self._attached(frame)
            if frame.kind == "link":
                self._carriers[frame] = frame
        for each in path:
            self._carriers[each] = self._carriers[frame]
        return self._carriers[frame]

    def _attached(self, frame: SdfFrame) -> SdfFrame:
        """The frame to which a joint, a frame or a model is attached."""
        scope = frame.scope
        assert scope is not None
        if frame.kind == "joint":
            return self._named(frame.document.required(frame.element, "child"), frame)
        if frame.kind == "frame":
            name = frame.element.get("attached_to")
            return self._named(name, frame) if name else scope.frame
        inner = frame.inner
        assert inner is not None
        if inner.static:
            return self.world
        if inner.canonical:
            return self.named(inner.canonical, inner, frame.document, frame.element)
        if inner.first is not None:
            return inner.first
        raise frame.document.error(
            frame.element, "the model has no link; give it one, or <static>true</static>"
        )


def _is_within(frame: SdfFrame, model: SdfFrame) -> bool:
    """True if a frame belongs to a model or to its nested models."""
    scope = frame.scope
    while scope is not None and scope is not model.inner and scope.frame.kind != "world":
        scope = scope.frame.scope
    return scope is model.inner


def _step(path: dict[SdfFrame, None], frame: SdfFrame, how: str) -> None:
    """Add a frame to a path; raises if the path is circular."""
    if frame in path:
        circle = list(path)[list(path).index(frame) :]
        names = few([each.name or each.kind for each in circle], 6)
        message = f"the frames {names} are {how} each other, round in a circle"
        raise frame.document.error(frame.element, message)
    path[frame] = None
