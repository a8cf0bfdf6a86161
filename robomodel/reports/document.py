"""A report: title, summary and sections of paragraphs, lists, tables, plots and drawings.

Every report of the package is one :class:`Document`: :meth:`Document.text` is for terminals,
:meth:`Document.as_dict` for JSON, a self-contained :meth:`Document.html` page, and
:meth:`Document.write_plots` writes the plots as pictures or as CSV.
"""

from __future__ import annotations

import csv
import io
import math
import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cached_property, partial
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

import numpy as np

from robomodel.errors import Source
from robomodel.reports import drawings, plots
from robomodel.reports.drawings import Drawings
from robomodel.reports.palette import REPORT, coloured
from robomodel.reports.plots import Plot, draw_plots

Cell: TypeAlias = str | float | None

WRAPPED = 36  # most characters of a line in a cell on a page
LONG = ' class="long"'


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below column headings, which end in their unit; numbers are aligned to the right.

    ``digits``: significant digits. None and not-a-number are empty, infinity is "unlimited".
    Columns with empty cells only are left out. ``faint``: rows that are grey.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    digits: int = 6
    faint: Collection[int] = ()

    def cell(self, value: Cell) -> str:
        """The text of a cell."""
        if value is None or isinstance(value, str):
            return value or ""
        if not math.isfinite(value):
            return "" if math.isnan(value) else "unlimited"
        return f"{value + 0.0:.{self.digits}g}"

    @property
    def filled(self) -> Table:
        """The table without its empty columns."""
        kept = [i for i in range(len(self.columns)) if any(self.cell(row[i]) for row in self.rows)]
        rows = [[row[i] for i in kept] for row in self.rows]
        return Table([self.columns[i] for i in kept], rows, self.digits, self.faint)

    @property
    def numeric(self) -> list[bool]:
        """True for each column that holds numbers."""
        return [
            any(isinstance(x, int | float) for x in column)
            and all(x is None or x == "" or isinstance(x, int | float) for x in column)
            for column in zip(*self.rows, strict=True)
        ] or [False] * len(self.columns)

    def lines(self, *, coloured: bool = False) -> Iterator[str]:
        """The table in columns of text."""
        cells = [[self.cell(x) for x in row] for row in self.rows]
        if headed := any(self.columns):
            cells.insert(0, list(self.columns))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for n, row in enumerate(cells, -headed):
            line = "  ".join(
                text.rjust(width) if number else text.ljust(width)
                for text, width, number in zip(row, widths, self.numeric, strict=True)
            ).rstrip()
            yield f"{FAINT}{line}{PLAIN}" if coloured and n in self.faint else line

    def html(self) -> Iterator[str]:
        """The table's element."""
        marks = [' class="number"' if number else "" for number in self.numeric]
        yield '<div class="wide"><table class="numbers">'
        if any(self.columns):
            titles = zip(marks, self.columns, strict=True)
            heads = "".join(f"<th{mark}>{escape(title)}</th>" for mark, title in titles)
            yield f"<thead><tr>{heads}</tr></thead>"
        for n, row in enumerate(self.rows):
            cells = [
                f"<td{mark or (LONG if len(text) > WRAPPED else '')}>{_breaking(text)}</td>"
                for mark, text in zip(marks, map(self.cell, row), strict=True)
            ]
            faint = ' class="faint"' if n in self.faint else ""
            yield f"<tr{faint}>{''.join(cells)}</tr>"
        yield "</table></div>"


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of lines."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Lines whose blanks are kept."""

    lines: Sequence[str]


Severity = Literal["error", "warning", "note"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The gravest first."""

NAMED = 8  # places of further findings that are named


@dataclass(frozen=True, slots=True)
class Correction:
    """Numbers that an element certainly should have, which ``robomodel lint --fix`` writes.

    ``element`` is a label as in findings, ``link 'shank'``; ``quantity`` is mass, com, inertia
    (xx, xy, xz, yy, yz, zz), lower, upper, effort, velocity, axis or origin. ``values`` are in SI
    units and in the axes in which the file has this quantity of this element.
    """

    element: str
    quantity: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault or oddity: its place, message, amount (``value`` in ``unit``) and remedy.

    ``check`` is the id of the check in docs/checks.md. A note needs no action. ``corrections``: the
    numbers that mend it, where these are certain.
    """

    severity: Severity
    check: str
    source: Source
    message: str
    remedy: str = ""
    value: float | None = None
    unit: str = ""
    corrections: tuple[Correction, ...] = ()

    def __str__(self) -> str:
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.source}: {self.severity}: {self.message}{remedy} [{self.check}]"

    @property
    def amount(self) -> str:
        """The value and its unit."""
        if self.value is None:
            return ""
        if self.unit == "relative":
            return f"{100 * self.value:.3g} %"
        return f"{self.value:.3g} {self.unit}"


warning = partial(Finding, "warning")
note = partial(Finding, "note")


@dataclass(frozen=True, slots=True)
class Findings:
    """A finding, and ``others`` of the same kind at other places or with other amounts."""

    first: Finding
    others: Sequence[Finding] = ()

    @property
    def likewise(self) -> str:
        """Places of the others, with their amounts if they differ."""
        shown = []
        for each in self.others[:NAMED]:
            line = "" if each.source.line is None else f" (line {each.source.line})"
            amount = f": {each.amount}" if each.amount != self.first.amount else ""
            shown.append(f"{each.source.element}{line}{amount}")
        more = f" and {len(self.others) - NAMED} more" if len(self.others) > NAMED else ""
        return f"likewise {', '.join(shown)}{more}" if shown else ""

    def text(self, width: int | None, *, coloured: bool) -> Iterator[str]:
        """Lines of text, the first one empty."""
        first = self.first
        colour, plain = (COLOURS[first.severity], PLAIN) if coloured else ("", "")
        yield ""
        yield f"{colour}{first.severity} [{first.check}]{plain} {first.source}"
        for line in ("; ".join(filter(None, (first.message, first.remedy))), self.likewise):
            yield from _wrapped(line, width, "  ") if line else ()

    def html(self) -> str:
        """A row of a table: kind, place, message."""
        first, source = self.first, self.first.source
        file = source.file.replace("\\", "/").rpartition("/")[2]
        place = file if source.line is None else f"{file}:{source.line}"
        remedy = f'<br><span class="remedy">→ {escape(first.remedy)}</span>' if first.remedy else ""
        also = f'<br><span class="place">{escape(self.likewise)}</span>' if self.likewise else ""
        return (
            f'<tr><td class="{first.severity}">{first.severity}<br>'
            f"<code>{escape(first.check)}</code></td>"
            f'<td>{_breaking(source.element)}<br><span class="place">{_breaking(place)}</span></td>'
            f"<td>{escape(first.message)}{remedy}{also}</td></tr>"
        )


Part: TypeAlias = str | Table | Bullets | Verbatim | Findings | Plot | Drawings


def is_empty(part: Part) -> bool:
    """True if a table has no rows, or a list or plot no lines."""
    return not getattr(part, "rows", getattr(part, "lines", True))


class Later(Sequence[Part]):
    """Parts that are made when they are first looked at, as pictures are that a page alone has."""

    def __init__(self, make: Callable[[], Sequence[Part]]) -> None:
        self._make = make

    @cached_property
    def _parts(self) -> Sequence[Part]:
        return self._make()

    @overload
    def __getitem__(self, at: int) -> Part: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Part]: ...
    def __getitem__(self, at: int | slice) -> Part | Sequence[Part]:
        return self._parts[at]

    def __len__(self) -> int:
        return len(self._parts)


COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "note": ""}
PLAIN, FAINT = "\x1b[0m", "\x1b[2m"


@dataclass(frozen=True, slots=True)
class Section:
    """Parts below a title; without a title they continue the section before.

    ``on_page``: shown on the page only, as plots and drawings are. ``folded``: opened by a click.
    """

    title: str
    parts: Sequence[Part]
    on_page: bool = False
    folded: bool = False

    def lines(self, width: int | None, *, coloured: bool) -> Iterator[str]:
        """The section as text, without plots and drawings."""
        parts = [] if self.on_page else [part for part in self.parts if not is_empty(part)]
        shown = [part for part in parts if not isinstance(part, Plot | Drawings)]
        if not shown:
            return
        if self.title:
            yield ""
            yield self.title
        indent = "  " if self.title else ""
        for part in shown:
            match part:
                case Findings():
                    yield from part.text(width, coloured=coloured)
                case Table():
                    yield from (indent + line for line in part.filled.lines(coloured=coloured))
                case Verbatim():
                    yield from part.lines
                case Bullets() | str():
                    for line in [part] if isinstance(part, str) else part.lines:
                        yield from _wrapped(line, width, indent)

    def html(self) -> Iterator[str]:
        """Elements; plots are side by side, those of a group in one place."""
        shown = [part for part in self.parts if not is_empty(part)]
        if self.title and shown:
            heading = f'<h2 id="{self.anchor}">{escape(self.title)}</h2>'
            yield f"<details><summary>{escape(self.title)}</summary>" if self.folded else heading
        for kind, parts in groupby(shown, type):
            if kind is Findings:
                yield '<table class="findings"><thead><tr>'
                yield "<th></th><th>where</th><th>what</th></tr></thead>"
                yield from (each.html() for each in parts if isinstance(each, Findings))
                yield "</table>"
            elif kind is Plot:
                drawn = [each for each in parts if isinstance(each, Plot)]
                groups = groupby(enumerate(drawn), lambda at: at[1].group or at[0])
                yield figures(_figure([plot for _, plot in each]) for _, each in groups)
            else:
                for each in parts:
                    yield from _html(each)
        if self.title and shown and self.folded:
            yield "</details>"

    @property
    def anchor(self) -> str:
        """The target of links to it on the page."""
        return re.sub(r"\W+", "-", self.title).strip("-").lower()


def _html(part: Part) -> Iterator[str]:
    match part:
        case str() if part:
            yield f"<p>{escape(part)}</p>"
        case Bullets():
            yield f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in part.lines)}</ul>"
        case Verbatim():
            yield f"<pre>{escape(chr(10).join(part.lines))}</pre>"
        case Table():
            yield from part.filled.html()
        case Drawings():
            yield figures(drawings.svg(part))
            yield from drawings.key(part.sketches[:1])
            if part.caption:
                yield f'<p class="place">{escape(part.caption)}</p>'


def _wrapped(text: str, width: int | None, indent: str) -> list[str]:
    if width is None or len(indent) + len(text) <= width:
        return [indent + text]
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent + "  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
        title: The robot's name.
        summary: One line.
        sections: The sections in order.
        data: The report as plain dicts, lists, numbers and strings, or dataclasses of these.
        file: The robot's file, shown on the page.
        kind: The kind of report, as "validation"; part of the page's title.
    """

    title: str
    summary: str
    sections: Sequence[Section] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    file: str = ""
    kind: str = ""

    def text(self, width: int | None = None, *, coloured: bool = False) -> str:
        """Lines of at most ``width`` columns; tables and long names may be wider."""
        first = f"{self.title}: {self.summary}" if self.summary else self.title
        lines = _wrapped(first, width, "") if first else []
        for section in self.sections:
            lines += section.lines(width, coloured=coloured)
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """``data`` in JSON's types; None stands for not finite."""
        result: dict[str, Any] = plain(self.data)
        return result

    def html(self) -> str:
        """One self-contained HTML page with plots and drawings."""
        return page(self.title, self.kind, self._body())

    def _repr_html_(self) -> str:
        """The page, in a notebook."""
        return framed(self.html())

    def _body(self) -> Iterator[str]:
        if self.file:
            yield f'<p class="place">{_breaking(self.file)}</p>'
        if self.summary:
            yield f'<p class="summary">{escape(self.summary)}</p>'
        shown = [each for each in self.sections if not all(map(is_empty, each.parts))]
        titled = [each for each in shown if each.title and not each.folded]
        if len(titled) > 3:
            links = (f'<a href="#{each.anchor}">{escape(re.split(r"[:(,]", each.title)[0])}</a>'
                     for each in titled)  # fmt: skip
            yield f"<nav>{' '.join(links)}</nav>"
        for section in shown:
            yield from section.html()

    @property
    def plots(self) -> list[Plot]:
        """The plots of all sections."""
        return [part for section in self.sections for part in section.parts
                if isinstance(part, Plot)]  # fmt: skip

    def write_plots(self, folder: Path, suffix: str) -> list[Path]:
        """Write each plot to a file in the folder, creating it if missing; return the paths.

        Args:
            folder: The folder.
            suffix: png, svg or pdf, which need Matplotlib, or csv.

        Returns:
            paths: In the order of the plots.

        Raises:
            ImportError: Matplotlib is not installed.
        """
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for each in self.plots:
            path = folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', each.name or each.title)}.{suffix}"
            if suffix == "csv":
                path.write_text(csv_of(each), encoding="utf-8")
            else:
                draw_plots([each], path)
            paths.append(path)
        return paths


class HasDocument(ABC):
    """A result whose text, JSON and page are those of its document."""

    @property
    @abstractmethod
    def document(self) -> Document:
        """The report as text, JSON and a page."""

    def __str__(self) -> str:
        return self.document.text()

    def as_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and strings; None stands for not finite or missing."""
        return self.document.as_dict()

    def html(self) -> str:
        """One self-contained HTML page with pictures."""
        return self.document.html()

    def _repr_html_(self) -> str:
        """The page, in a notebook."""
        return self.document._repr_html_()


def curves(plots: Sequence[Plot]) -> list[dict[str, Any]]:
    """The points of plots, for JSON: name, title, labels of the axes, and x and y of each line."""
    return [
        picked(each, "name", "title", "x_label", "y_label")
        | {"lines": [picked(line, "label", "x", "y") for line in each.lines]}
        for each in plots
    ]


def csv_of(plot: Plot) -> str:
    """A column for each line if all have the same x; else rows of line, x and y."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    first = plot.lines[0].x
    if all(np.array_equal(line.x, first, equal_nan=True) for line in plot.lines):
        unit = re.search(r"\[[^]]*\]", plot.y_label)
        heads = [f"{x.label} {unit[0]}" if unit and "[" not in x.label else x.label
                 for x in plot.lines]  # fmt: skip
        writer.writerow([plot.x_label, *heads])
        writer.writerows(np.column_stack([first, *(line.y for line in plot.lines)]).tolist())
    else:
        writer.writerow(["line", plot.x_label, plot.y_label])
        for line in plot.lines:
            writer.writerows([line.label, x, y] for x, y in zip(line.x, line.y, strict=True))
    return stream.getvalue()


def picked(item: object, *names: str, **renamed: str) -> dict[str, Any]:
    """Attributes of an object by name, for JSON; ``key="attribute"`` renames one."""
    same = {name: name for name in names}
    return {key: getattr(item, name) for key, name in (same | renamed).items()}


def plain(value: Any) -> Any:
    """Arrays, dataclasses and tuples in JSON's types; None stands for not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return plain(value.tolist()) if hasattr(value, "tolist") else value


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun, as ``1 joint`` or ``2 joints``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


# ---- the page ------------------------------------------------------------------------------------


def page(title: str, kind: str, body: Iterable[str]) -> str:
    """The whole page; ``body`` is HTML, other arguments are text."""
    from importlib.resources import files

    folder = files("robomodel.reports")
    style, script = (
        folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
    )
    of = f": {escape(kind)}" if kind else ""
    after = f" <small>{escape(kind)}</small>" if kind else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}{of}</title>"
        f"<style>\n{coloured(style, REPORT)}</style></head>\n<body>"
        f"<h1>{escape(title)}{after}</h1>\n" + "\n".join(body)
        + f"<script>\n{script}</script></body></html>\n"
    )  # fmt: skip


def framed(html: str, height: int = 560) -> str:
    """A page as an element of another one, as notebooks show it; ``height`` in pixels."""
    style = f"width: 100%; height: {height}px; border: 1px solid #8888; border-radius: 6px"
    return f'<iframe srcdoc="{escape(html, quote=True)}" style="{style}" loading="lazy"></iframe>'


def figures(drawn: Iterable[str]) -> str:
    """Elements side by side, as many as fit."""
    shown = "".join(f"<figure>{each}</figure>\n" for each in drawn)
    return f'<div class="plots">\n{shown}</div>'


def _breaking(text: str) -> str:
    """Text of a page whose long names may go on in the next line after _, / or a dot."""
    return re.sub(r"(?<=\w{3})([_/.])(?=[^\W\d]\w\w)", r"\1<wbr/>", escape(text))


def _figure(parts: Sequence[Plot]) -> str:
    """A plot below its title, or plots of one group as tabs below its name."""
    group = parts[0].group
    if not group or len(parts) == 1:
        title = f"<figcaption>{_breaking(parts[0].title)}</figcaption>"
        return title + plots.svg(parts[0], titled=False)
    key = re.sub(r"\W+", "-", f"{group} {parts[0].name or parts[0].title}")
    tabs = []
    for n, each in enumerate(parts):
        tab, named = escape(each.title.rpartition(": ")[2]), each.title.startswith(f"{group}: ")
        name = f'id="{escape(key)}-{n}"{" checked" if n == 0 else ""}'
        tabs.append(
            f'<input type="radio" name="{escape(key)}" {name}>'
            f'<label for="{escape(key)}-{n}">{tab}</label><div>'
            f"{plots.svg(each, titled=not named)}</div>"
        )
    return f'<figcaption>{_breaking(group)}</figcaption><div class="tabs">{"".join(tabs)}</div>'
