"""Armature written into files of others: MJCF's attribute, and Drake's tags in URDF.

Text in, text out: only armatures change; all else stays to the last blank (:class:`Markup`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from robomodel.errors import DescriptionError, Source
from robomodel.model import Model
from robomodel.parsers import xml
from robomodel.parsers.schema import number
from robomodel.parsers.shared.motors import SIMPLE_TYPE
from robomodel.parsers.xml import DRAKE
from robomodel.reports.validation.context import CheckContext

_AGREES = 1e-9  # relative: an armature that is that of one rotor through one gear


@dataclass(frozen=True, slots=True)
class Motor:
    """A rotor's inertia about its axis, and how far it turns for its joint."""

    inertia: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Annotated:
    """A file's new text, the joints that it has, and those that it lacks."""

    text: str
    written: tuple[str, ...]
    missing: tuple[str, ...]


def annotate_mjcf(text: str, file: str, armature: Mapping[str, float]) -> Annotated:
    """An MJCF file with ``armature=`` on its joints of these names."""
    markup = Markup(text, file, "mujoco")
    written = []
    for tag in markup.root.walk():
        name = tag.attributes.get("name", "")
        if tag.name == "joint" and name in armature and _in_a_body(tag):
            markup.set(tag, "armature", number(armature[name]))
            written.append(name)
    return _annotated(markup, written, armature)


def _in_a_body(tag: Tag) -> bool:
    """Joints of defaults, equalities and sensors are references or templates."""
    return tag.parent is not None and tag.parent.name in ("body", "frame", "replicate")


def annotate_drake(text: str, file: str, motors: Mapping[str, Motor]) -> Annotated:
    """A URDF file with Drake's rotor_inertia and gear_ratio in the actuators of these joints.

    Joints without a simple transmission get one.
    """
    markup = Markup(text, file, "robot")
    root = markup.root
    joints = {joint.attributes.get("name") for joint in root.all("joint")}
    taken = {each.attributes.get("name") for each in root.all("transmission")}
    written = [joint for joint in motors if joint in joints]
    if written and "xmlns:drake" not in root.attributes:
        markup.set(root, "xmlns:drake", DRAKE)
    for joint in written:
        motor = motors[joint]
        words = {"rotor_inertia": number(motor.inertia), "gear_ratio": number(abs(motor.ratio))}
        actuator = _actuator(root, joint)
        if actuator is None:
            markup.append(root, _transmission(joint, words, taken))
            continue
        missing = []
        for tag, value in words.items():
            tags = actuator.all(f"drake:{tag}")
            if tags:
                markup.set(tags[0], "value", value)
            else:
                missing.append(f'<drake:{tag} value="{value}"/>')
        if missing:
            markup.append(actuator, *missing)
    return _annotated(markup, written, motors)


def _actuator(root: Tag, joint: str) -> Tag | None:
    """The actuator of the joint's simple transmission, if there is one."""
    for transmission in root.all("transmission"):
        ends, actuators = transmission.all("joint"), transmission.all("actuator")
        kinds = [each.text for each in transmission.all("type")]
        kind = (kinds[0] if kinds else transmission.attributes.get("type", SIMPLE_TYPE)).strip()
        simple = kind.endswith("SimpleTransmission") and len(actuators) == 1
        if simple and [end.attributes.get("name") for end in ends] == [joint]:
            return actuators[0]
    return None


def _transmission(joint: str, words: Mapping[str, str], taken: set[str | None]) -> str:
    """A simple transmission that a joint is given."""
    name = f"{joint}_transmission"
    while name in taken:
        name += "_"
    taken.add(name)
    parts = "".join(f'\n    <drake:{tag} value="{value}"/>' for tag, value in words.items())
    return (
        f"<transmission name={quoteattr(name)}>\n"
        f"  <type>{SIMPLE_TYPE}</type>\n"
        f"  <joint name={quoteattr(joint)}>\n"
        "    <hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface>\n"
        "  </joint>\n"
        f"  <actuator name={quoteattr(f'{joint}_actuator')}>{parts}\n"
        "  </actuator>\n"
        "</transmission>"
    )


def motors(model: Model, armature: Mapping[str, float]) -> dict[str, Motor]:
    """The rotor and gear that make these armatures; one of ratio 1 where there is no such one."""
    of_joint: dict[str, list[Motor]] = {}
    for rotor in CheckContext(model).rotors:
        for joint, ratio in rotor.ratios.items():
            of_joint.setdefault(joint, []).append(Motor(rotor.inertia, ratio))
    result = {}
    for joint, value in armature.items():
        rotors = of_joint.get(joint, [])
        geared = len(rotors) == 1 and math.isclose(
            rotors[0].ratio ** 2 * rotors[0].inertia, value, rel_tol=_AGREES
        )
        result[joint] = rotors[0] if geared else Motor(value, 1.0)
    return result


def _annotated(markup: Markup, written: list[str], names: Mapping[str, object]) -> Annotated:
    missing = tuple(name for name in names if name not in written)
    return Annotated(markup.text(), tuple(written), missing)


# --- text that is changed in place ---------------------------------------------------------------

_NAME = re.compile(rb"<[^\s/>]+")
_ATTRIBUTE = re.compile(rb"\s+([^\s=/>]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_TAIL = re.compile(rb"\s*(/?)>")
_ENCODING = re.compile(r"(<\?xml[^>]*?encoding\s*=\s*[\"'])(?!utf-8[\"'])[^\"']*", re.IGNORECASE)


@dataclass(eq=False)
class Tag:
    """An element and where it stands: its start tag ``begin:inner``, its end tag from ``end``.

    An element without content has no end tag; its ``end`` is ``inner``. ``attributes`` have their
    values' places, quotes included.
    """

    name: str
    begin: int
    inner: int
    empty: bool
    places: dict[str, tuple[int, int]]
    attributes: dict[str, str]
    parent: Tag | None
    children: list[Tag] = field(default_factory=list)
    text: str = ""
    end: int = 0

    def walk(self) -> Iterator[Tag]:
        """The element and all below it, in the file's order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def all(self, name: str) -> list[Tag]:
        """The children of this name, prefix included."""
        return [child for child in self.children if child.name == name]


class Markup:
    """A document and the changes to it; :meth:`text` is what becomes of it."""

    def __init__(self, text: str, file: str, root: str) -> None:
        """Raises :class:`DescriptionError` for what no robot file may be, or another root."""
        tag = xml.parse(text, file, strict=True).root.tag
        if tag != root:
            raise DescriptionError(
                f"armature goes into a file with the root element <{root}>, this one has <{tag}>",
                Source(file),
            )
        self.data = _ENCODING.sub(r"\1utf-8", text, count=1).encode()
        self.newline = "\r\n" if b"\r\n" in self.data else "\n"
        self.root = self._read(file)
        self._changes: list[tuple[int, int, str]] = []

    def _read(self, file: str) -> Tag:
        parser = expat.ParserCreate("utf-8")
        stack: list[Tag] = []
        roots: list[Tag] = []

        def start(name: str, attributes: dict[str, str]) -> None:
            tag = self._tag(name, attributes, parser.CurrentByteIndex, stack[-1] if stack else None)
            (stack[-1].children if stack else roots).append(tag)
            stack.append(tag)

        def end(_: str) -> None:
            tag = stack.pop()
            tag.end = tag.inner if tag.empty else parser.CurrentByteIndex

        def characters(content: str) -> None:
            stack[-1].text += content

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = characters
        try:
            parser.Parse(self.data, True)
        except expat.ExpatError as error:
            raise DescriptionError(
                f"this is no well-formed XML: {expat.ErrorString(error.code)}",
                Source(file, error.lineno),
            ) from None
        return roots[0]

    def _tag(self, name: str, attributes: dict[str, str], begin: int, parent: Tag | None) -> Tag:
        opening = _NAME.match(self.data, begin)
        assert opening is not None
        at, places = opening.end(), dict[str, tuple[int, int]]()
        while attribute := _ATTRIBUTE.match(self.data, at):
            places[attribute[1].decode()] = attribute.span(2)
            at = attribute.end()
        closing = _TAIL.match(self.data, at)
        assert closing is not None
        return Tag(name, begin, closing.end(), bool(closing[1]), places, attributes, parent)

    # ---- changes

    def set(self, tag: Tag, name: str, value: str) -> None:
        """Give an element an attribute, in its place or after the last one."""
        if tag.attributes.get(name) == value:
            return
        if name in tag.places:
            begin, end = tag.places[name]
            quote = chr(self.data[begin])
            self._changes.append((begin, end, f"{quote}{value}{quote}"))
        else:
            at = max((end for _, end in tag.places.values()), default=0)
            at = at or tag.begin + len(tag.name) + 1
            self._changes.append((at, at, f" {name}={quoteattr(value)}"))

    def append(self, tag: Tag, *elements: str) -> None:
        """Add elements at the end of an element's content, indented as its other content is."""
        outer = self._indent(tag)
        inner = self._indent(tag.children[0]) if tag.children else None
        if inner is None and outer is not None:
            inner = outer + self._step()
        before = "" if inner is None else self.newline + inner
        lines = "".join(
            before + (each if inner is None else each.replace("\n", before)) for each in elements
        )
        if tag.empty:
            after = "" if outer is None else self.newline + outer
            slash = self.data.rindex(b"/", tag.begin, tag.inner)
            while self.data[slash - 1 : slash].isspace():
                slash -= 1
            self._changes.append((slash, tag.inner, f">{lines}{after}</{tag.name}>"))
            return
        at = tag.end
        while self.data[at - 1 : at].isspace():
            at -= 1
        after = "" if at < tag.end or outer is None else self.newline + outer
        self._changes.append((at, at, lines + after))

    def _indent(self, tag: Tag) -> str | None:
        """The blanks before an element that begins its line; None for others."""
        line = self.data.rfind(b"\n", 0, tag.begin) + 1
        before = self.data[line : tag.begin]
        return before.decode() if not before.strip() and (line or not tag.begin) else None

    def _step(self) -> str:
        """What a level of this file is indented by."""
        first = self._indent(self.root.children[0]) if self.root.children else None
        return first or "  "

    def text(self) -> str:
        """The document with all changes."""
        data, changes = self.data, sorted(enumerate(self._changes), key=lambda x: (x[1][:2], x[0]))
        parts, at = [], 0
        for _, (begin, end, words) in changes:
            parts += [data[at:begin], words.encode()]
            at = end
        return b"".join([*parts, data[at:]]).decode()
