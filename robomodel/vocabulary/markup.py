"""XML text that is changed in place: what is not changed stays as it is written, to the byte."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from robomodel.errors import DescriptionError, Source
from robomodel.vocabulary import xml

_NAME = re.compile(rb"<[^\s/>]+")
_ATTRIBUTE = re.compile(rb"\s+([^\s=/>]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_TAIL = re.compile(rb"\s*(/?)>")
_ENCODING = re.compile(r"(<\?xml[^>]*?encoding\s*=\s*[\"'])(?!utf-8[\"'])[^\"']*", re.IGNORECASE)


@dataclass(eq=False)
class Tag:
    """An element and its place: its start tag ``begin:inner``, its end tag from ``end``.

    An element without content has no end tag; its ``end`` is ``inner``. ``places`` are those of the
    attributes' values, quotes included.
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
    """A document and changes to it; :meth:`text` applies them."""

    def __init__(self, text: str, file: str, root: str) -> None:
        """Raises :class:`DescriptionError` for text that is no well-formed XML, or another root."""
        tag = xml.parse(text, file, strict=True).root.tag
        if tag != root:
            raise DescriptionError(
                f"a file with the root element <{root}> is needed, this one has <{tag}>",
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
        """Set an attribute of an element, in its place or after the last one."""
        if tag.attributes.get(name) == value:
            return
        if name in tag.places:
            begin, end = tag.places[name]
            quote = chr(self.data[begin])
            self._changes.append((begin, end, f"{quote}{value}{quote}"))
        else:
            at = max((end for _, end in tag.places.values()), default=0)
            at = at or tag.begin + len(tag.name) + 1
            self._changes.append((at, at, f" {name}={xml.quoted(value)}"))

    def append(self, tag: Tag, *elements: str) -> None:
        """Add elements at the end of an element's content, with its indentation."""
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
        """The indentation of an element that begins its line; None for others."""
        line = self.data.rfind(b"\n", 0, tag.begin) + 1
        before = self.data[line : tag.begin]
        return before.decode() if not before.strip() and (line or not tag.begin) else None

    def _step(self) -> str:
        """The indentation of one level in this file."""
        first = self._indent(self.root.children[0]) if self.root.children else None
        return first or "  "

    def text(self) -> str:
        """The document with all changes applied."""
        data, changes = self.data, sorted(enumerate(self._changes), key=lambda x: (x[1][:2], x[0]))
        parts, at = [], 0
        for _, (begin, end, replacement) in changes:
            parts += [data[at:begin], replacement.encode()]
            at = end
        return b"".join([*parts, data[at:]]).decode()
