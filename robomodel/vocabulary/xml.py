"""Safe, bounded reading of XML, with the file and the line of every error and warning.

Robot files come from anywhere, so none may cost more than its size: no entities, no external DTD,
no network, a bound on the size, and libxml2's own limits on depth and length. What cannot be read
raises a :class:`~robomodel.errors.DescriptionError` with the file and the line. Common readers
accept more than XML allows (``--`` in comments, undeclared prefixes, elements after the root);
where the meaning is clear, it is read here too, with a warning.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast
from xml.parsers import expat

from lxml import etree

from robomodel.description import Vec3
from robomodel.errors import DescriptionError, Issue, Source, did_you_mean, warn_of_all
from robomodel.files import LFS, LFS_POINTER

Element: TypeAlias = etree._Element

_SAFELY: Any = {
    "encoding": "utf-8",
    "resolve_entities": False,
    "load_dtd": False,
    "dtd_validation": False,
    "attribute_defaults": False,
    "no_network": True,
    "huge_tree": False,
    "collect_ids": False,
    "remove_blank_text": True,
    "remove_comments": True,
    "remove_pis": True,
}


def shown(element: Element) -> str:
    """The tag as written in the file, with its prefix: ``drake:joint``."""
    local = element.tag.rpartition("}")[2]
    return f"{element.prefix}:{local}" if element.prefix and "}" in element.tag else local


def attribute_names(element: Element) -> Sequence[str]:
    """Names of an element's attributes."""
    return cast(Sequence[str], element.keys())


# --- from bytes to a tree ------------------------------------------------------------------------

_MENDINGS = 8
"""Limit of the number of corrections; each corrects all places of one kind."""


def tree_of(
    data: bytes, file: str, *, strict: bool
) -> tuple[Element, etree.XMLParser, bytes, list[Issue]]:
    """The root element, its parser, the corrected text, and warnings of what was corrected.

    Line numbers are preserved. Raises :class:`DescriptionError` if the meaning is not clear, and
    for all text that is not well-formed if ``strict``.
    """
    issues: list[Issue] = []
    data = _EXTERNAL.sub(_without_external, data)
    if b"drake:" in data and b"xmlns:drake" not in data:
        data = _declared(data, "drake")  # Drake's reader ignores namespaces: files omit it
    while True:
        parser = etree.XMLParser(**_SAFELY)
        try:
            return etree.fromstring(data, parser), parser, data, issues
        except etree.XMLSyntaxError as error:
            log = list(cast(Any, parser).error_log)  # the first stopped the parser
            mend = _MENDS.get(log[0].type_name) if log else None
            retried = mend is not None and not strict and len(issues) < _MENDINGS
            mended = mend(data, parser) if mend and retried else None
            if mended is None:
                raise _explained(error, parser, data, file) from None
            data, message = mended
            issues.append(Issue(message, Source(file, error.lineno)))


_EXTERNAL = re.compile(
    rb"""(<!DOCTYPE\s+[^\s>\[]+)(\s+(?:SYSTEM|PUBLIC\s*(?:"[^"]*"|'[^']*'))\s*(?:"[^"]*"|'[^']*'))"""
)


def _without_external(doctype: re.Match[bytes]) -> bytes:
    """A DOCTYPE without its external DTD, which libxml2 would open with ``collect_ids=False``."""
    return doctype[1] + b"\n" * doctype[2].count(b"\n")


_OPENING = re.compile(rb"<!--|<!\[CDATA\[")


def _without_comments(data: bytes, _: etree.XMLParser) -> tuple[bytes, str] | None:
    """Remove comments that contain ``--``; line breaks stay."""
    pieces, position = [], 0
    while opening := _OPENING.search(data, position):
        comment, start = opening[0] == b"<!--", opening.end()
        if (end := data.find(b"-->" if comment else b"]]>", start)) < 0:
            break
        content = data[start:end]
        pieces += [data[position:start], b"\n" * content.count(b"\n") if comment else content]
        position = end
    mended = b"".join((*pieces, data[position:]))
    if mended == data:
        return None
    return mended, "a comment holds '--', which XML does not allow; it is read as a comment"


def _with_prefixes(data: bytes, parser: etree.XMLParser) -> tuple[bytes, str] | None:
    """Declare undeclared prefixes, except that of xacro's macros."""
    messages = [entry.message for entry in cast(Any, parser).error_log]
    prefixes = sorted({prefixed[1] for each in messages if (prefixed := _PREFIX.match(each))})
    if not prefixes or any("xacro" in prefix for prefix in prefixes):
        return None
    mended = data
    for prefix in prefixes:
        mended = _declared(mended, prefix)
    if mended == data:
        return None
    several = len(prefixes) > 1
    names = ", ".join(f"'{prefix}:'" for prefix in prefixes)
    attributes = " ".join(f'xmlns:{prefix}="..."' for prefix in prefixes)
    return mended, (
        f"the {'prefixes' if several else 'prefix'} {names} {'are' if several else 'is'} not "
        f"declared; add {attributes} to the root element"
    )


_ROOT = re.compile(rb"(?>\s|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*>)*+<[A-Za-z]\w*", re.DOTALL)


def _declared(data: bytes, prefix: str) -> bytes:
    """The text with a declaration of this prefix on the root element."""
    if not (start := _ROOT.match(data)):
        return data
    uri = "http://drake.mit.edu" if prefix == "drake" else f"undeclared:{prefix}"
    return start[0] + f' xmlns:{prefix}="{uri}"'.encode() + data[start.end() :]


def _first_root(data: bytes, _: etree.XMLParser) -> tuple[bytes, str] | None:
    """Remove what follows the root element, unless it is a second robot."""
    parser = expat.ParserCreate("utf-8")
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        if error.code != expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]:
            return None
    end = parser.ErrorByteIndex
    rest = data[end:]
    if (root := _ROOT.match(data)) is None or rest.startswith(b"<robot"):
        return None
    tag = re.match(rb"<[^\s<>/]+", rest)
    what = f"{tag[0].decode()}>" if tag else "text"
    first = root[0].rpartition(b"<")[2].decode()
    return data[:end], f"{what} after the end of the root element <{first}> is ignored"


_MENDS: dict[str, Callable[[bytes, etree.XMLParser], tuple[bytes, str] | None]] = {
    "ERR_HYPHEN_IN_COMMENT": _without_comments,
    "NS_ERR_UNDEFINED_NAMESPACE": _with_prefixes,
    "ERR_DOCUMENT_END": _first_root,
}


# --- what a syntax error means ------------------------------------------------------------------

_MISMATCH = re.compile(r"tag mismatch: (\S+) line (\d+) and (\S+?),")
_PREFIX = re.compile(r"Namespace prefix (\S+)")


def _explained(
    error: etree.XMLSyntaxError, parser: etree.XMLParser, data: bytes, file: str
) -> DescriptionError:
    """Explain libxml2's error in terms of the robot file."""
    log = list(cast(Any, parser).error_log)  # the exception's own log is of the whole process
    line, kind = error.lineno, log[0].type_name if log else ""
    message = log[0].message if log else str(error.msg)
    if match := _PREFIX.match(message):
        advice = (
            f"the prefix '{match[1]}:' is not declared; add xmlns:{match[1]}=\"...\" to the root "
            "element, or remove what carries it"
        )
        if "xacro" in match[1]:
            advice = XACRO
        return DescriptionError(advice, Source(file, line))
    if "EntityRef" in message and b"&" not in data[-6:]:
        return DescriptionError("'&' must be written &amp;", Source(file, line))
    if kind != "ERR_LT_IN_ATTRIBUTE" and (ending := _truncated(data)) is not None:
        return DescriptionError(ending, Source(file, data.rstrip().count(b"\n") + 1))
    for entry in log:
        if match := _MISMATCH.search(entry.message + ","):
            advice = (
                f"<{match[1]}> opened in line {match[2]} is not closed: the next closing tag is "
                f"</{match[3]}>"
            )
            return DescriptionError(advice, Source(file, line))
    explanations = {
        "ERR_DOCUMENT_END": "something follows the end of the root element; a file holds one robot",
        "ERR_ATTRIBUTE_REDEFINED": f"{message}: an attribute is given twice in one element",
        "ERR_ATTRIBUTE_NOT_STARTED": 'the value of an attribute must stand in quotes, as in a="1"',
        "ERR_LT_IN_ATTRIBUTE": "'<' within the value of an attribute: is a closing quote missing? "
        "A '<' that is meant is written &lt;",
        "ERR_NAME_REQUIRED": f"{message}: is a '>' missing, or a name misspelt?",
        "ERR_UNDECLARED_ENTITY": f"{message}; XML entities are not read",
        "ERR_ATTRIBUTE_WITHOUT_VALUE": f'{message}: an attribute is written a="1"',
        "ERR_RESOURCE_LIMIT": "the elements are nested too deep, or a value is too long",
    }
    if "Excessive depth" in message:  # libxml2 to 2.12 calls it an internal error
        kind = "ERR_RESOURCE_LIMIT"
    return DescriptionError(
        explanations.get(kind, f"not well-formed XML: {message}"), Source(file, line)
    )


def _truncated(data: bytes) -> str | None:
    """The message for a text that ends too early; None if the error lies elsewhere.

    Fed the text as a stream, a parser reports no error before the end if all is well up to there.
    """
    parser = etree.XMLPullParser(("start", "end"), **_SAFELY)
    try:
        parser.feed(data)
    except etree.XMLSyntaxError:
        return None
    if len(cast(Any, parser).feed_error_log):
        return None
    stack: list[Element] = []
    for event, element in parser.read_events():
        if event == "start":
            stack.append(cast(Element, element))
        else:
            stack.pop()
    if not stack:
        return "the file ends in the middle of a tag or a comment; it is truncated"
    inner = stack[-1]
    name = f" name={inner.get('name')!r}" if inner.get("name") else ""
    return (
        f"the file ends inside <{shown(inner)}{name}>, opened in line {inner.sourceline}; it is "
        "truncated, or a closing tag is missing"
    )


XACRO = (
    "this is a xacro file, with macros that must be expanded first: run "
    "'xacro robot.urdf.xacro > robot.urdf' and read what it writes, or give its arguments, as in "
    "rm.load(..., xacro={})"
)


CUSTOM = "urn:robomodel"
"""Namespace of this package's own attributes and elements, which other readers ignore."""
DRAKE = "http://drake.mit.edu"
"""Namespace of Drake's elements."""

MAX_BYTES = 64 * 2**20
"""Limit of a file's size [bytes]; the largest known robot files have a few MB."""

_Value = TypeVar("_Value", float, Vec3)
_SPELLED_LIMIT = 60  # characters of a value that messages quote

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is a prefix of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_USD = "a USD file; give its path, with the ending .usd, .usda, .usdc or .usdz, or say format='usd'"
_OTHERS = {  # kinds of files by their first bytes
    b"PK\x03\x04": "a zip archive; unpack it, and load the robot's file in it",
    b"\x1f\x8b": "compressed by gzip; unpack it by 'gunzip', and load the file that it gives",
    LFS: LFS_POINTER,
    b"PXR-USDC": _USD,
    b"#usda": _USD,
}
_DECLARED = re.compile(rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_CODECS = ("utf-8", "ascii", "iso8859", "cp12", "koi8", "gb", "big5", "euc", "shift_jis")


# --- from bytes to a tree ---------------------------------------------------------------------


def decode(data: bytes, file: str) -> str:
    """Decode a file by its byte order mark, else its XML declaration, else as UTF-8.

    Decoded here and not by libxml2, so that the checks see the text that is parsed.
    """
    _refuse_size(len(data), file)
    for mark, what in _OTHERS.items():
        if data.startswith(mark):
            raise DescriptionError(
                f"this is {_USD if file.endswith('.usdz') else what}", Source(file)
            )
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
        return "utf-8"  # the declaration was readable as single bytes, so it is wrong
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
    text: str, file: str, *, strict: bool = False, issues: list[Issue] | None = None
) -> Document:
    """Parse a text; ``file`` is its name in messages.

    ``issues``: those of the document that includes this one; they are shared.
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
    # libxml2 stores lines in 16 bits and estimates larger ones
    lines = _exact_lines(root, data) if data.count(b"\n") >= 65_534 else None
    issues = [] if issues is None else issues
    issues += mended
    return Document(root, file, strict, lines, issues)


_PADDING = "\0\x1a \t\r\n"  # after the end: null characters, DOS's end-of-file mark, space
_DEFINITION = re.compile("<!ENTITY|<!ATTLIST")
_DECLARATION = re.compile(r"((?>\s|<!--.*?-->)*+)<\?xml\s[^>]*\?>", re.DOTALL)


def _without_declaration(text: str) -> str:
    """The text without ``<?xml ...?>``, which XML allows at the very beginning only.

    Texts begin with a line break and files with a comment. The declaration is not needed: the text
    is decoded, and only version 1.0 exists in practice (files also write "0.0" and "1.1").
    """
    declaration = _DECLARATION.match(text)
    if not declaration or not (rest := text[declaration.end() :]).strip():
        return text
    return declaration[1] + "\n" * declaration[0].count("\n", declaration.end(1)) + rest


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
    # With a DOCTYPE that names an external DTD, libxml2 only logs a reference it cannot resolve.
    for entry in cast(Any, parser).error_log:
        if "ENTITY" in entry.type_name:
            raise DescriptionError(
                "a reference such as &name; is to an XML entity, and entities are not read; "
                "write its value out",
                Source(file, entry.line),
            )


def _drop_default_namespace(root: Element) -> None:
    """Remove the default namespace of old Drake files, which has no meaning."""
    default = root.nsmap.get(None)
    if default:
        prefix = f"{{{default}}}"
        for element in root.iter(prefix + "*"):
            element.tag = element.tag[len(prefix) :]


def _exact_lines(root: Element, data: bytes) -> dict[Element, int]:
    """Lines of all elements by a second pass, for files with more lines than libxml2 counts."""
    lines: list[int] = []
    counter = expat.ParserCreate("utf-8")
    counter.StartElementHandler = lambda *_: lines.append(counter.CurrentLineNumber)
    counter.Parse(data, True)
    return dict(zip(root.iter("*"), lines, strict=True))


# --- elements, attributes and numbers -------------------------------------------------------------


def refuse_xacro(document: Document) -> None:
    """Raise for xacro macros in a document that was not expanded."""
    for prefix, uri in document.root.nsmap.items():
        if "xacro" in (prefix or "") or "xacro" in uri:
            for element in document.root.iter(f"{{{uri}}}*"):
                raise DescriptionError(XACRO, document.source(element, f"<{shown(element)}>"))


def words(text: str) -> frozenset[str]:
    """The set of words of a text, such as tags or attributes."""
    return frozenset(text.split())


def quoted(text: str) -> str:
    """A text as the value of an attribute, with its quotes.

    As ``xml.sax.saxutils.quoteattr``, whose import takes a tenth of a second for network clients.
    """
    return f'"{text.translate(_IN_ATTRIBUTES)}"'


_IN_ATTRIBUTES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
    | {space: f"&#{ord(space)};" for space in "\n\r\t"}
)


def spelled(text: str) -> str:
    """A value of the file in quotes, cut if it is long."""
    return repr(text if len(text) <= _SPELLED_LIMIT else text[:_SPELLED_LIMIT] + "…")


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file: its root, its name in messages, and whether suspicious content is refused.

    Methods read one element each and raise errors with its line and the link or joint it belongs
    to. Warnings are collected, so that :meth:`report` gives one of each kind.
    """

    root: Element
    file: str
    strict: bool = False
    lines: Mapping[Element, int] | None = None
    issues: list[Issue] = field(default_factory=list)
    vectors: dict[str, Vec3] = field(default_factory=dict)  # parsed texts: files repeat them

    def source(self, element: Element, label: str) -> Source:
        """The location of ``element``, under the name ``label``."""
        line = element.sourceline if self.lines is None else self.lines.get(element)
        return Source(self.file, cast(int | None, line), label)

    def place(self, element: Element) -> Source:
        """The location of ``element``, under the name of the link, joint, ... it belongs to."""
        owner = element
        while (above := owner.getparent()) is not None and above is not self.root:
            owner = above
        name = owner.get("name")
        tag = shown(owner)
        return self.source(element, f"{tag} '{name}'" if name else f"<{tag}>")

    def error(self, element: Element, message: str) -> DescriptionError:
        """The error to raise for a fault of ``element``."""
        return DescriptionError(message, self.place(element))

    def missing(self, element: Element, name: str) -> DescriptionError:
        """The error to raise for a missing attribute of ``element``."""
        return self.error(element, f"<{shown(element)}>: the attribute '{name}' is missing")

    def warn_at(self, element: Element, message: str, kind: str = "") -> None:
        """Record a warning about ``element``; raise it if the document is strict.

        Warnings of one ``kind`` (by default, with one message) are reported as one.
        """
        if self.strict:
            raise self.error(element, message)
        self.issues.append(Issue(message, self.place(element), kind))

    def report(self) -> None:
        """Give the collected warnings."""
        warn_of_all(self.issues, strict=self.strict)
        self.issues.clear()

    def expect(self, element: Element, names: frozenset[str]) -> None:
        """Warn of attributes other than ``names``."""
        for name in attribute_names(element):
            if name not in names:
                local = name.rpartition("}")[2]
                self.warn_at(
                    element,
                    f"the attribute '{local}' of <{shown(element)}> is not known and is "
                    f"ignored{did_you_mean(local, names)}",
                )

    def parts(
        self, element: Element, tags: frozenset[str], irrelevant: frozenset[str] = frozenset()
    ) -> dict[str, Element]:
        """The children of ``element`` by tag; warns of unknown and repeated ones."""
        parts: dict[str, Element] = {}
        for child in element:
            tag = child.tag
            if tag in tags:
                if tag in parts:
                    self.warn_at(
                        child, f"<{tag}> is given twice; the first is read, this one is ignored"
                    )
                else:
                    parts[tag] = child
            elif tag not in irrelevant:
                self.unknown(child, tags)
        return parts

    def unknown(self, element: Element, tags: Iterable[str]) -> None:
        """Warn of an unknown element; ``tags`` are the known ones, to suggest one."""
        tag = shown(element)
        self.warn_at(
            element, f"the element <{tag}> is not known and is ignored{did_you_mean(tag, tags)}"
        )

    def text(self, element: Element, name: str) -> str:
        """The attribute ``name``; raises if it is missing or empty."""
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
        """A number, finite unless ``infinite``; raises if it is missing and has no default."""
        if (text := element.get(name)) is None:
            return self._default(element, name, default)
        if infinite and text.strip().lower() in _INFINITE:
            return float(text)
        (value,) = self._floats(element, name, text, 1)
        return value

    def numbers(
        self, element: Element, expected: frozenset[str], infinite: frozenset[str] = frozenset()
    ) -> dict[str, float]:
        """All attributes of an element that has only numbers, by name; some may be infinite.

        Reading numbers takes most of the time for a file, so the usual case is one pass; anything
        unusual is read again, attribute by attribute.
        """
        names, texts = attribute_names(element), cast(Sequence[str], element.values())
        try:
            values = dict(zip(names, map(float, texts), strict=True))
        except ValueError:
            pass
        else:
            if expected.issuperset(names) and _is_finite(values.values(), "".join(texts)):
                return values
        self.expect(element, expected)
        return {
            name: self.number(element, name, infinite=name in infinite)
            for name in names
            if name in expected
        }

    def content(self, element: Element, *, infinite: bool = False) -> float:
        """The number in an element's text, finite unless ``infinite``."""
        text = element.text or ""
        if infinite and text.strip().lower() in _INFINITE:
            return float(text)
        (value,) = self._floats(element, "", text, 1)
        return value

    def contents(self, element: Element, count: int) -> tuple[float, ...]:
        """The ``count`` finite numbers in an element's text."""
        return self._floats(element, "", element.text or "", count)

    def vector(self, element: Element, name: str, default: Vec3 | None = None) -> Vec3:
        """Three finite numbers of an attribute; raises if it is missing and has no default."""
        if (text := element.get(name)) is None:
            return self._default(element, name, default)
        if (vector := self.vectors.get(text)) is None:
            x, y, z = self._floats(element, name, text, 3)
            vector = self.vectors[text] = x, y, z
        return vector

    def quadruple(self, element: Element, name: str) -> tuple[float, float, float, float]:
        """Four finite numbers of an attribute; raises if it is missing."""
        x, y, z, w = self._floats(element, name, self.text(element, name), 4)
        return x, y, z, w

    def series(self, element: Element, name: str, count: int) -> tuple[float, ...]:
        """The ``count`` finite numbers of an attribute; raises if it is missing."""
        return self._floats(element, name, self.text(element, name), count)

    def flag(self, element: Element, text: str, what: str) -> bool:
        """Parse "true" or "false" in either case; ``what`` names it in the error."""
        if (value := _FLAGS.get(text.strip().lower())) is None:
            raise self.error(element, f"{what} must be 'true' or 'false', got {spelled(text)}")
        return value

    def _default(self, element: Element, name: str, default: _Value | None) -> _Value:
        """The default of a missing attribute; raises if there is none."""
        if default is None:
            raise self.missing(element, name)
        return default

    def _floats(self, element: Element, name: str, text: str, count: int) -> tuple[float, ...]:
        """The ``count`` finite numbers in an attribute's text, or the element's without a name."""
        try:
            values = tuple(map(float, text.split()))
        except ValueError:
            values = ()
        if len(values) == count and _is_finite(values, text):
            return values
        where = f"{name} of <{shown(element)}>" if name else f"<{shown(element)}>"
        if (spaced := _without_commas(text, count)) is not None:
            message = f'is {spelled(text)}: separate the numbers by spaces, as in "{spaced}"'
            self.warn_at(element, f"{where} {message}", "commas between numbers")
            return self._floats(element, name, spaced, count)
        raise self.error(element, f"{where} {_numeric_fault(text, count)}")


_FLAGS = {"true": True, "1": True, "false": False, "0": False}  # Python and xacro write "True"
_INFINITE = frozenset(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity"))
_COUNTS = (
    "no",
    "one number",
    *(f"{count} numbers" for count in ("two", "three", "four", "five", "six", "seven")),
)


def _is_finite(values: Iterable[float], text: str) -> bool:
    """True if numbers are finite, and written so that every reader parses them, not only Python."""
    return math.isfinite(sum(values)) and "_" not in text and text.isascii()


def _without_commas(text: str, count: int) -> str | None:
    """A text with spaces for the commas that separate numbers; None if they do not."""
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
