"""XML as the parsers want it: safe, bounded, and with a place for every complaint.

Robot files come from anywhere, so nothing in one may cost more than its size: no entities, no
external DTD, no network, a bound on the size, and libxml2's own limits on depth and length. What
cannot be read is said in plain words with the file and the line, as a
:class:`~robomodel.errors.DescriptionError`.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from xml.parsers import expat

from lxml import etree

from robomodel.description import Vec3
from robomodel.errors import DescriptionError, Doubt, Source, did_you_mean, suspect_all
from robomodel.parsers.syntax import XACRO, Element, shown, tree_of

__all__ = [
    "CUSTOM",
    "DRAKE",
    "MAX_BYTES",
    "Document",
    "Element",
    "decode",
    "parse",
    "refuse_xacro",
    "shown",
    "spelled",
    "words",
]

CUSTOM = "urn:robomodel"
"""The namespace of what this package says on other formats' elements, which others pass over."""
DRAKE = "http://drake.mit.edu"
"""That of Drake's."""

MAX_BYTES = 64 * 2**20
"""The largest file that is read; the largest robots known are a few MB."""

_Value = TypeVar("_Value", float, Vec3)
_EXACT_LINES = 65_534  # libxml2 keeps a line in 16 bits and guesses beyond
_SPELLED_LIMIT = 60  # how much of a strange value a message quotes

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_USD = (
    "a USD file, which is not read; export the robot as URDF, SDF or MJCF where it was made (Isaac "
    "Sim and Newton can), and load that"
)
_OTHERS = {  # by how they begin
    b"PK\x03\x04": "a zip archive; unpack it, and load the robot's file in it",
    b"\x1f\x8b": "compressed by gzip; unpack it by 'gunzip', and load the file that it gives",
    b"PXR-USDC": _USD,
    b"#usda": _USD,
}
_DECLARED = re.compile(rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_CODECS = ("utf-8", "ascii", "iso8859", "cp12", "koi8", "gb", "big5", "euc", "shift_jis")


# --- from bytes to a tree ---------------------------------------------------------------------


def decode(data: bytes, file: str) -> str:
    """The text of a file: by its byte order mark, else its XML declaration, else UTF-8.

    Decoding happens here and not in libxml2, so that what is checked is what is parsed.
    """
    _refuse_size(len(data), file)
    for mark, what in _OTHERS.items():
        if data.startswith(mark):
            what = _USD if file.endswith(".usdz") else what  # noqa: PLW2901
            raise DescriptionError(f"this is {what}", Source(file))
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), None)
    if encoding is None:
        declared = _DECLARED.match(data)
        encoding = _codec(declared[1].decode("ascii"), file) if declared else "utf-8"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DescriptionError(
            f"this is not text in the encoding {error.encoding}; save the file as UTF-8",
            Source(file, line),
        ) from None


def _codec(declared: str, file: str) -> str:
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        name = ""
    if name.startswith(("utf-16", "utf-32")):
        return "utf-8"  # the declaration was readable byte by byte, so it is wrong
    if not name.startswith(_CODECS):
        raise DescriptionError(
            f"the encoding '{declared}' is not read; save the file as UTF-8", Source(file, 1)
        )
    return name


def _refuse_size(size: int, file: str) -> None:
    if size > MAX_BYTES:
        raise DescriptionError(
            f"the file is larger than {MAX_BYTES // 2**20} MiB, which no robot description is; "
            "meshes belong in files of their own",
            Source(file),
        )


def parse(
    text: str, file: str, *, strict: bool = False, doubts: list[Doubt] | None = None
) -> Document:
    """The document of a text; ``file`` is how messages call it.

    ``doubts``: those of the document that includes this one, which they then share.
    """
    _refuse_size(len(text), file)
    text = _without_declaration(text.removeprefix("\ufeff").rstrip(_PADDING))
    _refuse_non_xml(text, file)
    doctype = "<!DOCTYPE" in text
    if doctype and (definition := _DEFINITION.search(text)):
        raise DescriptionError(
            "the file defines XML entities or attribute defaults in its DOCTYPE, which is not "
            "read, for safety; write their values out and remove the DOCTYPE",
            Source(file, text.count("\n", 0, definition.start()) + 1),
        )
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise DescriptionError(
            "a character is half of a surrogate pair; save the file as UTF-8", Source(file, line)
        ) from None
    root, parser, data, mended = tree_of(data, file, strict=strict)
    if doctype:
        _refuse_undefined_entities(parser, file)
    _drop_default_namespace(root)
    lines = _exact_lines(root, data) if data.count(b"\n") >= _EXACT_LINES else None
    doubts = [] if doubts is None else doubts
    doubts += mended
    return Document(root, file, strict, lines, doubts)


_PADDING = "\0\x1a \t\r\n"  # at the end of files: null characters, and DOS's mark of it
_DEFINITION = re.compile("<!ENTITY|<!ATTLIST")
_DECLARATION = re.compile(r"((?>\s|<!--.*?-->)*+)<\?xml\s[^>]*\?>", re.DOTALL)


def _without_declaration(text: str) -> str:
    """``<?xml ...?>`` may follow nothing, but texts begin with a line break, files with a comment.

    It says nothing that is still needed: the text is decoded, and of versions there is but one,
    though files write "0.0" and "1.1".
    """
    found = _DECLARATION.match(text)
    if not found or not (rest := text[found.end() :]).strip():
        return text
    return found[1] + "\n" * found[0].count("\n", found.end(1)) + rest


def _refuse_non_xml(text: str, file: str) -> None:
    begin = text.lstrip()[:20]
    if not begin:
        raise DescriptionError("the file is empty", Source(file))
    if begin.startswith("#usda"):
        raise DescriptionError(f"this is {_USD}", Source(file, 1))
    if not begin.startswith("<"):
        raise DescriptionError(
            f"this is not XML: it begins with {begin.splitlines()[0]!r}, not with '<'",
            Source(file, 1),
        )


def _refuse_undefined_entities(parser: etree.XMLParser, file: str) -> None:
    # With a DOCTYPE that names an external DTD, libxml2 only notes a reference it cannot resolve.
    for entry in cast(Any, parser).error_log:
        if "ENTITY" in entry.type_name:
            raise DescriptionError(
                "a reference such as &name; is to an XML entity, and entities are not read; "
                "write its value out",
                Source(file, entry.line),
            )


def _drop_default_namespace(root: Element) -> None:
    """Old Drake files put every element into a default namespace; it says nothing."""
    default = root.nsmap.get(None)
    if default:
        prefix = f"{{{default}}}"
        for element in root.iter(prefix + "*"):
            element.tag = element.tag[len(prefix) :]


def _exact_lines(root: Element, data: bytes) -> dict[Element, int]:
    """The line of every element by a second pass; only for files too long for libxml2's count."""
    lines: list[int] = []
    counter = expat.ParserCreate("utf-8")
    counter.StartElementHandler = lambda *_: lines.append(counter.CurrentLineNumber)
    counter.Parse(data, True)
    return dict(zip(root.iter("*"), lines, strict=True))


# --- elements, attributes and numbers -------------------------------------------------------------


def refuse_xacro(document: Document) -> None:
    """Refuse macros: they are a program that writes a robot, and nothing here runs it."""
    for prefix, uri in document.root.nsmap.items():
        if "xacro" in (prefix or "") or "xacro" in uri:
            for element in document.root.iter(f"{{{uri}}}*"):
                raise DescriptionError(XACRO, document.source(element, f"<{shown(element)}>"))


def words(text: str) -> frozenset[str]:
    """The words of a text: tags or attributes that are known, say."""
    return frozenset(text.split())


def spelled(text: str) -> str:
    """A value of the file in quotes, cut where it is endless."""
    return repr(text if len(text) <= _SPELLED_LIMIT else text[:_SPELLED_LIMIT] + "…")


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file: its root, how to call it, and whether what is suspicious is refused.

    The methods read one element each and complain with its line and the thing it belongs to. What
    is suspicious is gathered, so that :meth:`report` can tell alike things in one warning.
    """

    root: Element
    file: str
    strict: bool = False
    lines: Mapping[Element, int] | None = None
    doubts: list[Doubt] = field(default_factory=list)
    vectors: dict[str, Vec3] = field(default_factory=dict)  # files repeat themselves

    def source(self, element: Element, label: str) -> Source:
        """Where ``element`` stands, called ``label``."""
        line: int | None = (
            element.sourceline if self.lines is None else self.lines.get(element)  # type: ignore[assignment]
        )
        return Source(self.file, line, label)

    def place(self, element: Element) -> Source:
        """Where ``element`` stands, called after the link, joint, ... that it belongs to."""
        owner = element
        while (above := owner.getparent()) is not None and above is not self.root:
            owner = above
        name = owner.get("name")
        tag = shown(owner)
        return self.source(element, f"{tag} '{name}'" if name else f"<{tag}>")

    def error(self, element: Element, message: str) -> DescriptionError:
        """The error to raise for what is wrong with ``element``."""
        return DescriptionError(message, self.place(element))

    def suspect(self, element: Element, message: str, kind: str = "") -> None:
        """Note what is suspicious about ``element``; refuse it if the document is strict.

        Doubts of one ``kind`` (by default, of one message) are told in one warning.
        """
        if self.strict:
            raise self.error(element, message)
        self.doubts.append(Doubt(message, self.place(element), kind))

    def report(self) -> None:
        """Warn of all that was suspicious."""
        suspect_all(self.doubts, strict=self.strict)
        self.doubts.clear()

    def expect(self, element: Element, known: frozenset[str]) -> None:
        """Warn of attributes that mean nothing here."""
        names: Sequence[str] = element.keys()  # type: ignore[assignment]
        if not known.issuperset(names):
            for name in names:
                if name not in known:
                    local = name.rpartition("}")[2]
                    self.suspect(
                        element,
                        f"the attribute '{local}' of <{shown(element)}> is not known and is "
                        f"ignored{did_you_mean(local, known)}",
                    )

    def parts(
        self, element: Element, known: frozenset[str], irrelevant: frozenset[str] = frozenset()
    ) -> dict[str, Element]:
        """The children of ``element`` by tag; warns of unknown ones and of a second of one kind."""
        found: dict[str, Element] = {}
        for child in element:
            tag = child.tag
            if tag in known:
                if tag in found:
                    self.suspect(
                        child, f"<{tag}> is given twice; the first is read, this one is ignored"
                    )
                else:
                    found[tag] = child
            elif tag not in irrelevant:
                self.unknown(child, known)
        return found

    def unknown(self, element: Element, known: Iterable[str]) -> None:
        """Warn of an element that means nothing here."""
        tag = shown(element)
        self.suspect(
            element, f"the element <{tag}> is not known and is ignored{did_you_mean(tag, known)}"
        )

    def text(self, element: Element, name: str) -> str:
        """The attribute ``name``, which must be there and not empty."""
        value = element.get(name)
        if not value or value.isspace():
            what = "is missing" if value is None else "is empty"
            raise self.error(element, f"<{shown(element)}>: the attribute '{name}' {what}")
        return value

    def number(
        self,
        element: Element,
        name: str,
        default: float | None = None,
        *,
        infinite: bool = False,
    ) -> float:
        """A number, finite unless it may be ``infinite``; without a default it must be there."""
        if (text := element.get(name)) is None:
            return self._default(element, name, default)
        if infinite and text.strip().lower() in _INFINITE:
            return float(text)
        (value,) = self._floats(element, name, text, 1)
        return value

    def numbers(
        self, element: Element, known: frozenset[str], infinite: frozenset[str] = frozenset()
    ) -> dict[str, float]:
        """All attributes of an element that has only numbers, by name; some may be infinite.

        The numbers of a file are most of the work of reading it, so the usual case is one pass;
        whatever is unusual is gone through again, attribute by attribute.
        """
        names: Sequence[str] = element.keys()  # type: ignore[assignment]
        texts: Sequence[str] = element.values()  # type: ignore[assignment]
        try:
            found = dict(zip(names, map(float, texts), strict=True))
        except ValueError:
            pass
        else:
            if known.issuperset(names) and _is_finite(found.values(), "".join(texts)):
                return found
        self.expect(element, known)
        return {
            name: self.number(element, name, infinite=name in infinite)
            for name in names
            if name in known
        }

    def content(self, element: Element, *, infinite: bool = False) -> float:
        """The number that an element holds as its text, finite unless it may be ``infinite``."""
        text = element.text or ""
        if infinite and text.strip().lower() in _INFINITE:
            return float(text)
        (value,) = self._floats(element, "", text, 1)
        return value

    def contents(self, element: Element, count: int) -> tuple[float, ...]:
        """So many finite numbers, which an element holds as its text."""
        return self._floats(element, "", element.text or "", count)

    def vector(self, element: Element, name: str, default: Vec3 | None = None) -> Vec3:
        """Three finite numbers; without a default the attribute must be there."""
        if (text := element.get(name)) is None:
            return self._default(element, name, default)
        if (known := self.vectors.get(text)) is None:
            x, y, z = self._floats(element, name, text, 3)
            known = self.vectors[text] = x, y, z
        return known

    def quadruple(self, element: Element, name: str) -> tuple[float, float, float, float]:
        """Four finite numbers, which must be there."""
        x, y, z, w = self._floats(element, name, self.text(element, name), 4)
        return x, y, z, w

    def flag(self, element: Element, name: str) -> bool | None:
        """True or false, in letters of either case; None where the attribute is not there."""
        text = element.get(name)
        if text is None:
            return None
        if (value := _FLAGS.get(text.strip().lower())) is None:
            raise self.error(element, f"{name} must be 'true' or 'false', got {spelled(text)}")
        return value

    def _default(self, element: Element, name: str, default: _Value | None) -> _Value:
        """What an attribute is that is not there; without a default it must be."""
        if default is None:
            raise self.error(element, f"<{shown(element)}>: the attribute '{name}' is missing")
        return default

    def _floats(self, element: Element, name: str, text: str, count: int) -> tuple[float, ...]:
        """So many finite numbers in an attribute's text, or in the element's own if no name."""
        try:
            found = tuple(map(float, text.split()))
        except ValueError:
            found = ()
        if len(found) == count and _is_finite(found, text):
            return found
        where = f"{name} of <{shown(element)}>" if name else f"<{shown(element)}>"
        if (spaced := _without_commas(text, count)) is not None:
            message = f'is {spelled(text)}: separate the numbers by spaces, as in "{spaced}"'
            self.suspect(element, f"{where} {message}", "commas between numbers")
            return self._floats(element, name, spaced, count)
        raise self.error(element, f"{where} {_numeric_fault(text, count)}")


_FLAGS = {"true": True, "1": True, "false": False, "0": False}  # Python and xacro write "True"
_INFINITE = ("inf", "+inf", "-inf")
_COUNTS = (
    "no",
    "one number",
    *(f"{count} numbers" for count in ("two", "three", "four", "five", "six", "seven")),
)


def _is_finite(values: Iterable[float], text: str) -> bool:
    """Whether numbers are finite, and written as every reader takes them; Python takes more."""
    return math.isfinite(sum(values)) and "_" not in text and text.isascii()


def _without_commas(text: str, count: int) -> str | None:
    """So many numbers with spaces in place of commas; None where commas do not separate them."""
    words, numbers = text.split(), text.replace(",", " ").split()
    astray = any(word.startswith(",") or word.endswith(",") for word in words)
    plain = "," in text and count == len(numbers) and (astray or len(words) != count)
    return " ".join(numbers) if plain else None


def _numeric_fault(text: str, count: int) -> str:
    """Why ``text`` is not ``count`` finite numbers, and what to write instead."""
    words = text.split()
    if "$" in text or "{" in text:
        return f"is {spelled(text)}: expand the file with xacro first"
    for word in words:
        if fault := _word_fault(word):
            return f"is {spelled(text)}: {fault}"
    if not words:
        return f"is empty and needs {_COUNTS[count]}"
    if len(words) != count:
        return f"needs {_COUNTS[count]}, got {len(words)} ({spelled(text)})"
    return f"is {spelled(text)}{', too large' if text.isascii() else ': write plain spaces'}"


def _word_fault(word: str) -> str:
    if "," in word and _is_number(word.replace(",", ".")):
        return f'write a decimal point, as in "{word.replace(",", ".")}"'
    if "_" in word and _is_number(word.replace("_", "")):
        return f'write digits without underscores, as in "{word.replace("_", "")}"'
    if not _is_number(word) or not word.isascii():
        return f"{spelled(word)} is not a number"
    return "" if math.isfinite(float(word)) else f"{spelled(word)} is not a finite number"


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
