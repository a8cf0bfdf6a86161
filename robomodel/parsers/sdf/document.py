"""An SDF document: the values of its elements, and poses as they are written.

SDF writes values as the text of elements where URDF has attributes. Frames are not resolved here:
:mod:`robomodel.parsers.sdf.frames` knows where things stand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from robomodel.description import AT_ORIGIN, Pose, Vec3
from robomodel.errors import Source
from robomodel.parsers.shared.frames import read_rotation
from robomodel.parsers.xml import Document, Element, shown, spelled

NEWEST = (1, 12)

_OWNERS = frozenset(("link", "joint", "frame", "model", "include", "world"))


@dataclass(frozen=True, slots=True)
class SdfDocument(Document):
    """A parsed SDF file, and the version that it says it is of."""

    version: tuple[int, int] = NEWEST

    @staticmethod
    def of(document: Document, version: tuple[int, int] = NEWEST) -> SdfDocument:
        """A document as one of SDF."""
        said = {each.name: getattr(document, each.name) for each in fields(Document)}
        return SdfDocument(**said, version=version)

    def place(self, element: Element) -> Source:
        """Where ``element`` stands, called after the link, joint, ... that it belongs to."""
        owner: Element | None = element
        while owner is not None and (owner.tag not in _OWNERS or not owner.get("name")):
            owner = owner.getparent()
        label = f"<{shown(element)}>" if owner is None else f"{shown(owner)} '{owner.get('name')}'"
        return self.source(element, label)

    def parts(
        self, element: Element, known: frozenset[str], irrelevant: frozenset[str] = frozenset()
    ) -> dict[str, Element]:
        """The children of ``element`` by tag; what has a prefix is somebody's own.

        Drake's own words have mechanics, so those that are not read are warned of.
        """
        own = {child.tag for child in element if child.tag.startswith("{") and _passed_over(child)}
        return Document.parts(self, element, known, irrelevant | own)

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
        """True or false, as the child ``tag`` says."""
        child = parent.find(tag)
        return default if child is None else self.as_truth(child, child.text or "")

    def truth_of(self, element: Element, name: str, default: bool) -> bool:
        """True or false, as the attribute ``name`` says."""
        text = element.get(name)
        return default if text is None else self.as_truth(element, text)

    def as_truth(self, element: Element, text: str) -> bool:
        """What the text says, which is true or false."""
        if (word := text.strip().lower()) not in ("true", "false", "1", "0"):
            raise self.error(
                element, f"<{shown(element)}> must say true or false, not {spelled(text)}"
            )
        return word in ("true", "1")

    def value(self, parent: Element, tag: str, default: float = 0.0) -> float:
        """The number that the child ``tag`` holds."""
        child = parent.find(tag)
        return default if child is None else self.content(child)

    def size(self, parent: Element, tag: str, count: int) -> tuple[float, ...]:
        """So many numbers, not negative, that the child ``tag`` must hold."""
        child = parent.find(tag)
        if child is None:
            raise self.error(parent, f"<{shown(parent)}> needs a <{tag}>")
        sizes = self.contents(child, count)
        if min(sizes) < 0.0:
            raise self.error(child, f"the <{tag}> of the <{shown(parent)}> is negative")
        return sizes

    def three(self, element: Element) -> Vec3:
        """Three numbers."""
        x, y, z = self.contents(element, 3)
        return x, y, z


_DRAKE = ("drake:rotor_inertia", "drake:gear_ratio", "drake:mimic")  # are read by themselves


def _passed_over(element: Element) -> bool:
    tag = shown(element)
    return not tag.startswith("drake:") or tag in _DRAKE


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
            document.suspect(
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
