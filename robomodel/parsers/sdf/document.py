"""SDF documents: values and poses as they are written, and the document that a writer makes.

SDF writes values as the text of elements where URDF has attributes. Frames are not resolved here:
:mod:`robomodel.parsers.sdf.frames` knows where things stand.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, fields, replace

from lxml import etree

from robomodel.description import AT_ORIGIN, Joint, Loop, Pose, Vec3
from robomodel.errors import Source
from robomodel.parsers.schema import DYNAMICS, add_text, write_contents
from robomodel.parsers.shared.frames import read_rotation
from robomodel.parsers.shared.motors import GEAR_RATIO, ROTOR_INERTIA
from robomodel.parsers.shared.springs import has_dynamics
from robomodel.parsers.text import numbers, rpy_of
from robomodel.parsers.xml import CUSTOM, DRAKE, Document, Element, shown, spelled

NEWEST = (1, 12)
WORLD = "world"
MODEL = "__model__"
BETWEEN = "::"
"""What stands between the names of models in one another."""

_OWNERS = frozenset(("link", "joint", "frame", "model", "include", "world"))


@dataclass(frozen=True, slots=True)
class SdfDocument(Document):
    """A parsed SDF file, and its version."""

    version: tuple[int, int] = NEWEST

    @staticmethod
    def of(document: Document, version: tuple[int, int] = NEWEST) -> SdfDocument:
        """A document as one of SDF."""
        values = {each.name: getattr(document, each.name) for each in fields(Document)}
        return SdfDocument(**values, version=version)

    def place(self, element: Element) -> Source:
        """Where ``element`` stands, called after the link, joint, ... that it belongs to."""
        owner: Element | None = element
        while owner is not None and (owner.tag not in _OWNERS or not owner.get("name")):
            owner = owner.getparent()
        label = f"<{shown(element)}>" if owner is None else f"{shown(owner)} '{owner.get('name')}'"
        return self.source(element, label)

    def parts(
        self, element: Element, tags: frozenset[str], irrelevant: frozenset[str] = frozenset()
    ) -> dict[str, Element]:
        """The children of ``element`` by tag; what has a prefix is somebody's own.

        Drake's own words have mechanics, so those that are not read are warned of.
        """
        prefixed = [(child.tag, shown(child)) for child in element if child.tag.startswith("{")]
        foreign = {tag for tag, name in prefixed if not name.startswith("drake:") or name in _DRAKE}
        return Document.parts(self, element, tags, irrelevant | foreign)

    # ---- values

    def word(self, parent: Element, tag: str) -> str | None:
        """The text of the child ``tag``; None where there is no such child."""
        child = parent.find(tag)
        return None if child is None else (child.text or "").strip()

    def required(self, parent: Element, tag: str) -> str:
        """The text of the child ``tag``, which must be there."""
        text = self.word(parent, tag)
        if not text:
            raise self.error(parent, f"<{shown(parent)}> needs a <{tag}>")
        return text

    def truth(self, parent: Element, tag: str, default: bool) -> bool:
        """True or false, by the child ``tag``."""
        child = parent.find(tag)
        return default if child is None else self.as_truth(child, child.text or "")

    def truth_of(self, element: Element, name: str, default: bool) -> bool:
        """True or false, by the attribute ``name``."""
        text = element.get(name)
        return default if text is None else self.flag(element, text, name)

    def as_truth(self, element: Element, text: str) -> bool:
        """The truth of an element's text."""
        return self.flag(element, text, f"<{shown(element)}>")

    def value(self, parent: Element, tag: str, default: float = 0.0) -> float:
        """The number that the child ``tag`` holds."""
        child = parent.find(tag)
        return default if child is None else self.content(child)

    def size(self, parent: Element, tag: str, count: int) -> tuple[float, ...]:
        """So many numbers, not negative, of the child ``tag``; by default 1 each, as in SDF."""
        child = parent.find(tag)
        if child is None:
            message = f"<{shown(parent)}> has no <{tag}>; SDF takes {' '.join('1' * count)} m then"
            self.warn_at(parent, message, "no size")
            return (1.0,) * count
        sizes = self.contents(child, count)
        if min(sizes) < 0.0:
            raise self.error(child, f"the <{tag}> of the <{shown(parent)}> is negative")
        return sizes

    def three(self, element: Element) -> Vec3:
        """Three numbers."""
        x, y, z = self.contents(element, 3)
        return x, y, z


_DRAKE = (ROTOR_INERTIA, GEAR_RATIO, "drake:mimic")  # are read by themselves


# --- poses ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Placed:
    """A pose as written, and the name of the frame that it is relative to ("" for the default)."""

    pose: Pose = AT_ORIGIN
    relative_to: str = ""


_POSE = frozenset(("relative_to", "frame", "degrees", "rotation_format"))


def read_placed(document: SdfDocument, parent: Element) -> Placed:
    """The ``<pose>`` of an element."""
    element = parent.find("pose")
    if element is None:
        return Placed()
    document.expect(element, _POSE)
    name = element.get("relative_to") or ""
    if not name and (old := element.get("frame")):
        if document.version < (1, 7):
            name = old
        else:
            document.warn_at(
                element, "'frame' of <pose> means nothing from SDF 1.7 on; write relative_to"
            )
    return Placed(_pose(document, element), name)


def _pose(document: SdfDocument, element: Element) -> Pose:
    if not (element.text or "").strip():
        return Pose()
    form = element.get("rotation_format", "euler_rpy")
    if form == "quat_xyzw":
        x, y, z, *quaternion = document.contents(element, 7)
        return Pose((x, y, z), read_rotation(document, element, quaternion, "the quaternion"))
    if form != "euler_rpy":
        raise document.error(
            element, f"the rotation_format is {spelled(form)}; known are euler_rpy and quat_xyzw"
        )
    x, y, z, *angles = document.contents(element, 6)
    if document.truth_of(element, "degrees", False):
        angles = [math.radians(angle) for angle in angles]
    return Pose.from_rpy((x, y, z), (angles[0], angles[1], angles[2]))


VERSION = "1.11"


@dataclass
class Draft:
    """A document. ``links`` and ``joints`` are what links and joints are called in it."""

    lost: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    joints: dict[str, str] = field(default_factory=dict)
    taken: dict[tuple[str, ...], set[str]] = field(default_factory=lambda: defaultdict(set))
    models: dict[tuple[str, ...], etree._Element] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nsmap = {"robomodel": CUSTOM, "drake": DRAKE}
        self.root = etree.Element("sdf", {"version": VERSION}, nsmap=nsmap)

    def model(self, scope: tuple[str, ...]) -> etree._Element:
        """The model of these names, one in the other; made where it is not there yet."""
        if scope not in self.models:
            self.taken[scope[:-1]].add(scope[-1])
            self.models[scope] = etree.SubElement(
                self.model(scope[:-1]), "model", {"name": scope[-1]}
            )
        return self.models[scope]

    def claim(self, name: str, *others: str, more: str = "") -> str:
        """The name that an element gets, in the models of its full name.

        From there it must reach what it names. A name that SDF does not allow, or that another
        element has, is changed; ``more`` is then tried first as an ending.
        """
        *models, last = name.split(BETWEEN)
        scope = tuple(models)
        nested = all(
            scope[:n] in self.models or scope[n - 1] not in self.taken[scope[: n - 1]]
            for n in range(1, len(scope) + 1)
        )
        reached = all(other == WORLD or other.startswith(prefix(name)) for other in others)
        if not (nested and reached and all(models)):
            scope, last = (), name.replace(BETWEEN, "_")
        if last in ("", WORLD) or (last.startswith("__") and last.endswith("__")):
            last = f"{last.strip('_') or 'unnamed'}_"
        fresh, count = last, 0
        while fresh in self.taken[scope]:
            fresh = f"{last}_{count}" if count or not more else f"{last}_{more}"
            count += 1
        self.model(scope)
        self.taken[scope].add(fresh)
        return BETWEEN.join((*scope, fresh))

    def element(self, tag: str, name: str, full_name: str, **attributes: str) -> etree._Element:
        """A new element, called ``full_name`` in the file; notes the ``name`` where it differs."""
        *models, last = full_name.split(BETWEEN)
        element = etree.SubElement(self.model(tuple(models)), tag, {"name": last} | attributes)
        if full_name != name:
            set_custom(element, "name", name)
        return element

    def reached(self, name: str, other: str) -> str:
        """How the element of one link names another one; empty if it cannot."""
        if other not in self.links or self.links[other] == WORLD:
            return ""
        within, target = prefix(self.links[name]), self.links[other]
        return target[len(within) :] if target.startswith(within) else ""


# --- elements -------------------------------------------------------------------------------------


def prefix(full_name: str) -> str:
    """What the name of an element begins with: the models in which it stands."""
    return full_name[: len(full_name) - len(full_name.rpartition(BETWEEN)[2])]


def set_custom(element: etree._Element, name: str, value: str) -> None:
    """An attribute of this package's own, which other readers pass over."""
    element.set(f"{{{CUSTOM}}}{name}", value)


def pose(parent: etree._Element, placement: Pose, relative_to: str = "") -> None:
    """``<pose>``, unless it is the identity."""
    angles = rpy_of(placement.rotation)
    if relative_to or any(placement.xyz) or any(angles):
        element = add_text(parent, "pose", numbers((*placement.xyz, *angles)))
        if relative_to:
            element.set("relative_to", relative_to)


def dynamics(axis: etree._Element, record: Joint | Loop, reference: float) -> None:
    """``<dynamics>`` of an axis, unless nothing acts on it; the spring rests at ``reference``."""
    if has_dynamics(record):
        element = etree.SubElement(axis, "dynamics")
        write_contents(element, DYNAMICS, replace(record, reference=reference))
