"""XML syntax: from bytes to a tree, and what to say of what is not well-formed.

Readers in use take more than XML allows: MuJoCo, Gazebo and Drake read files with ``--`` in
comments, with prefixes that nobody declares, and with elements after the end of the root element.
Where the meaning is plain, such a file is read here too, and each such place is a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias, cast
from xml.parsers import expat

from lxml import etree

from robomodel.errors import DescriptionError, Doubt, Source

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
    """The tag as the file writes it: ``drake:joint``."""
    local = element.tag.rpartition("}")[2]
    return f"{element.prefix}:{local}" if element.prefix and "}" in element.tag else local


# --- from bytes to a tree ------------------------------------------------------------------------

_MENDINGS = 8
"""How often a text may be mended; one pass mends all places of one kind."""


def tree_of(
    data: bytes, file: str, *, strict: bool
) -> tuple[Element, etree.XMLParser, bytes, list[Doubt]]:
    """The root element, its parser, the text that it was made of, and what was mended there.

    Lines stay what they are. Raises :class:`DescriptionError` for what has no plain meaning, and
    for all that is not well-formed if ``strict``.
    """
    doubts: list[Doubt] = []
    data = _EXTERNAL.sub(_without_external, data)
    if b"drake:" in data and b"xmlns:drake" not in data:
        data = _declared(data, "drake")  # Drake's own reader knows no namespaces, so files for it
    while True:
        parser = etree.XMLParser(**_SAFELY)
        try:
            return etree.fromstring(data, parser), parser, data, doubts
        except etree.XMLSyntaxError as error:
            mend = None if strict or len(doubts) >= _MENDINGS else _mend_of(parser)
            mended = mend(data, parser) if mend else None
            if mended is None:
                raise _explained(error, parser, data, file) from None
            data, message = mended
            doubts.append(Doubt(message, Source(file, error.lineno)))


_EXTERNAL = re.compile(
    rb"""(<!DOCTYPE\s+[^\s>\[]+)(\s+(?:SYSTEM|PUBLIC\s*(?:"[^"]*"|'[^']*'))\s*(?:"[^"]*"|'[^']*'))"""
)


def _without_external(found: re.Match[bytes]) -> bytes:
    """A DOCTYPE without the DTD that it names: ``collect_ids=False`` has libxml2 open it."""
    return found[1] + b"\n" * found[2].count(b"\n")


_Mend: TypeAlias = Callable[[bytes, etree.XMLParser], tuple[bytes, str] | None]


def _mend_of(parser: etree.XMLParser) -> _Mend | None:
    """What mends the first thing that the parser complained of, if anything can."""
    log = list(cast(Any, parser).error_log)
    return _MENDS.get(log[0].type_name) if log else None


_OPENING = re.compile(rb"<!--|<!\[CDATA\[")


def _without_comments(data: bytes, _: etree.XMLParser) -> tuple[bytes, str] | None:
    """``--`` within comments goes with all that they say; their lines stay."""
    pieces, position = [], 0
    while found := _OPENING.search(data, position):
        comment, start = found[0] == b"<!--", found.end()
        if (end := data.find(b"-->" if comment else b"]]>", start)) < 0:
            break
        said = data[start:end]
        pieces += [data[position:start], b"\n" * said.count(b"\n") if comment else said]
        position = end
    mended = b"".join((*pieces, data[position:]))
    if mended == data:
        return None
    return mended, "a comment holds '--', which XML does not allow; it is read as a comment"


def _with_prefixes(data: bytes, parser: etree.XMLParser) -> tuple[bytes, str] | None:
    """Prefixes that nobody declares are declared; macros of xacro are another matter."""
    messages = [entry.message for entry in cast(Any, parser).error_log]
    prefixes = sorted({found[1] for each in messages if (found := _PREFIX.match(each))})
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
    """The text with a declaration of this prefix on its root element."""
    if not (start := _ROOT.match(data)):
        return data
    uri = "http://drake.mit.edu" if prefix == "drake" else f"undeclared:{prefix}"
    return start[0] + f' xmlns:{prefix}="{uri}"'.encode() + data[start.end() :]


def _first_root(data: bytes, _: etree.XMLParser) -> tuple[bytes, str] | None:
    """What follows the root element is left out, but for a second robot."""
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


_MENDS: dict[str, _Mend] = {
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
    """libxml2's complaint in words for someone who wrote a robot file."""
    log = list(cast(Any, parser).error_log)  # the error's own log is that of the whole process
    line, kind = error.lineno, log[0].type_name if log else ""
    message = log[0].message if log else str(error.msg)
    if found := _PREFIX.match(message):
        said = (
            f"the prefix '{found[1]}:' is not declared; add xmlns:{found[1]}=\"...\" to the root "
            "element, or remove what carries it"
        )
        if "xacro" in found[1]:
            said = XACRO
        return DescriptionError(said, Source(file, line))
    if "EntityRef" in message and b"&" not in data[-6:]:
        return DescriptionError("'&' must be written &amp;", Source(file, line))
    if kind != "ERR_LT_IN_ATTRIBUTE" and (ending := _truncated(data)) is not None:
        return DescriptionError(ending, Source(file, data.rstrip().count(b"\n") + 1))
    for entry in log:
        if found := _MISMATCH.search(entry.message + ","):
            said = (
                f"<{found[1]}> opened in line {found[2]} is not closed: the next closing tag is "
                f"</{found[3]}>"
            )
            return DescriptionError(said, Source(file, line))
    known = {
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
    return DescriptionError(known.get(kind, f"not well-formed XML: {message}"), Source(file, line))


def _truncated(data: bytes) -> str | None:
    """What a text that merely ends too early says; None if something in it is wrong.

    A parser that is fed the text as a stream has nothing to object to until the stream ends.
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
