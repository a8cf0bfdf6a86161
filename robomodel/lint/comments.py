"""Comments that switch checks off: ``<!-- robomodel: ignore=CHECK,CHECK reason -->``.

Such a comment acts on the element in which it stands and on all within; in the root element, on the
whole file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from xml.parsers import expat

from robomodel.errors import Source, did_you_mean
from robomodel.lint.checks import CHECKS
from robomodel.reports.document import Finding, note, warning

_COMMENT = re.compile(
    r"\s*robomodel\s*:\s*ignore\s*=\s*([\w-]+(?:\s*,\s*[\w-]+)*)\s*(.*?)\s*", re.S
)
_COMPUTED = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)")
_ALWAYS = frozenset(("ignore", "internal"))


@dataclass(frozen=True, slots=True)
class Ignore:
    """A comment at a line, its checks, and the lines of the element in which it stands.

    ``label`` matches labels of this element in findings, as names that xacro computes have no
    lines; None for the root element.
    """

    line: int
    checks: tuple[str, ...]
    first: int
    last: int
    label: re.Pattern[str] | None

    def covers(self, source: Source) -> bool:
        """True if a finding at this place is one of the element's."""
        if self.label is None:
            return True
        if source.line is not None and self.first <= source.line <= self.last:
            return True
        return source.line is None and self.label.fullmatch(source.element) is not None


def ignores(data: bytes) -> list[Ignore]:
    """The comments of an XML file; none of what is not well formed."""
    if b"robomodel" not in data:
        return []
    found: list[tuple[Ignore, int]] = []
    done: list[Ignore] = []
    stack: list[tuple[str, str, int]] = []
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        stack.append((tag, attributes.get("name", ""), parser.CurrentLineNumber))

    def comment(text: str) -> None:
        if (match := _COMMENT.fullmatch(text)) is None:
            return
        checks = tuple(dict.fromkeys(re.split(r"\s*,\s*", match[1])))
        line = parser.CurrentLineNumber
        if len(stack) < 2:
            done.append(Ignore(line, checks, 0, 0, None))
            return
        tag, name, first = stack[-1]
        parts = (re.escape(part) for part in _COMPUTED.split(f"{tag} '{name}'"))
        found.append((Ignore(line, checks, first, first, re.compile(".*".join(parts))), len(stack)))

    def end(_tag: str) -> None:
        while found and found[-1][1] == len(stack):
            done.append(replace(found.pop()[0], last=parser.CurrentLineNumber))
        stack.pop()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CommentHandler = comment
    try:
        parser.Parse(data, True)
    except expat.ExpatError:
        return []
    return sorted(done, key=lambda each: each.line)


def apply(
    findings: Iterable[Finding], comments: dict[str, Sequence[Ignore]]
) -> tuple[list[Finding], list[Finding]]:
    """Findings that no comment of their file switches off, and those that one does.

    Comments that name no check, or none that finds something, are findings, too.
    """
    kept: list[Finding] = []
    hidden: list[Finding] = []
    used: set[tuple[str, int, str]] = set()
    for each in findings:
        matching = [
            comment
            for comment in comments.get(each.source.file, ())
            if each.check in comment.checks
            and each.check not in _ALWAYS
            and comment.covers(each.source)
        ]
        used |= {(each.source.file, comment.line, each.check) for comment in matching}
        (hidden if matching else kept).append(each)
    kept += _idle(comments, used)
    return kept, hidden


def _idle(
    comments: dict[str, Sequence[Ignore]], used: set[tuple[str, int, str]]
) -> Iterator[Finding]:
    for file, several in comments.items():
        for comment in several:
            for check in comment.checks:
                place = Source(file, comment.line, "comment")
                if check not in CHECKS:
                    message = f"there is no check '{check}'{did_you_mean(check, CHECKS)}"
                    yield warning("ignore", place, message, CHECKS["ignore"].remedy)
                elif (file, comment.line, check) not in used:
                    message = f"'{check}' finds nothing here"
                    yield note("ignore", place, message, "remove the comment")
