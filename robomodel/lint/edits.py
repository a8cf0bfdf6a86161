"""Places of numbers in XML text, and edits of them that leave every other byte as it is."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

_START_TAG = re.compile(rb"<(?:[^\"'>]|\"[^\"]*\"|'[^']*')*>")


@dataclass(slots=True, eq=False)
class Element:
    """An element: its line, the bytes of its start tag, and those of its content.

    ``begin`` and ``opened`` bound the start tag, ``opened`` and ``closed`` the content.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    begin: int
    parent: Element | None = None
    opened: int = 0
    closed: int = 0
    children: list[Element] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """The element and all below it, in the order of the file."""
        stack = [self]
        while stack:
            each = stack.pop()
            yield each
            stack.extend(reversed(each.children))

    def first(self, *tags: str) -> Element | None:
        """The first child with the first tag, in that the first with the second, and so on."""
        here: Element | None = self
        for tag in tags:
            if here is None:
                return None
            here = next((child for child in here.children if child.tag == tag), None)
        return here

    @property
    def owner(self) -> Element:
        """The child of the root, or the innermost link, joint or body, that holds the element."""
        here = self
        while here.parent is not None and here.parent.parent is not None:
            if here.tag in ("link", "joint", "body"):
                break
            here = here.parent
        return here

    @property
    def label(self) -> str:
        """The element as findings name it: ``joint 'knee'``."""
        name = self.attributes.get("name")
        return f"{self.tag} '{name}'" if name else f"<{self.tag}>"


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Other bytes in the place of those from ``begin`` to ``end``."""

    begin: int
    end: int
    text: bytes


@dataclass(frozen=True, slots=True)
class Text:
    """The bytes of an XML file and its elements."""

    data: bytes
    root: Element

    @classmethod
    def of(cls, data: bytes) -> Text | None:
        """The elements of UTF-8 text; None for other encodings, and for what is not well formed."""
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return None
        parser = expat.ParserCreate("utf-8")
        parser.ordered_attributes = False
        stack: list[Element] = []
        roots: list[Element] = []

        def start(tag: str, attributes: dict[str, str]) -> None:
            above = stack[-1] if stack else None
            begin = parser.CurrentByteIndex
            element = Element(tag, attributes, parser.CurrentLineNumber, begin, above)
            if match := _START_TAG.match(data, begin):
                element.opened = element.closed = match.end()
            (roots if above is None else above.children).append(element)
            stack.append(element)

        def end(_tag: str) -> None:
            element = stack.pop()
            element.closed = max(element.opened, parser.CurrentByteIndex)

        parser.StartElementHandler, parser.EndElementHandler = start, end
        try:
            parser.Parse(data, True)
        except expat.ExpatError:
            return None
        return cls(data, roots[0])

    def attribute(self, element: Element, name: str, value: str) -> Edit | None:
        """An edit of an attribute that the element has; None if it has none."""
        tag = self.data[element.begin : element.opened]
        pattern = rb"\s" + re.escape(name.encode()) + rb"\s*=\s*(?:\"([^\"]*)\"|'([^']*)')"
        if (match := re.search(pattern, tag)) is None:
            return None
        begin, end = match.span(1) if match[1] is not None else match.span(2)
        return Edit(element.begin + begin, element.begin + end, value.encode())

    def content(self, element: Element, value: str) -> Edit | None:
        """An edit of the text of an element without children, its space kept."""
        text = self.data[element.opened : element.closed]
        if element.children or b"<" in text or not text.strip():
            return None
        begin = element.opened + len(text) - len(text.lstrip())
        return Edit(begin, begin + len(text.strip()), value.encode())

    def edited(self, edits: Iterable[Edit]) -> bytes:
        """The text with these edits, of which one that overlaps an earlier one is left out."""
        pieces, at = [], 0
        for edit in sorted(edits):
            if edit.begin >= at:
                pieces += [self.data[at : edit.begin], edit.text]
                at = edit.end
        return b"".join([*pieces, self.data[at:]])


def unified_diff(file: str, before: bytes, after: bytes) -> str:
    """The change of a file as patch and git apply read it."""
    if before == after:
        return ""
    lines = difflib.unified_diff(
        _lines(before), _lines(after), f"a/{file}", f"b/{file}", lineterm="\n"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(data: bytes) -> list[str]:
    """Lines that end at line feeds alone, as patch counts them."""
    parts = data.decode("utf-8").split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines
