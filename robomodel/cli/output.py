"""What commands print: tables and lists, one JSON document, one-line complaints."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsFloat, TextIO

import typer

from robomodel.documents import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

READABLE = 100  # columns of a message, however wide the terminal is
WIDE = 100_000  # columns, where no terminal sets them


def complain(text: str) -> None:
    """One line on standard error; in a terminal, lines that fit it, broken between words."""
    line = " ".join(text.split())
    if sys.stderr.isatty():
        width = min(shutil.get_terminal_size().columns, READABLE)
        line = textwrap.fill(
            line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    typer.echo(line, err=True)


def print_json(report: object, to: TextIO | None = None) -> None:
    """The report as one JSON document, on standard output if not elsewhere."""
    typer.echo(json.dumps(plain(report), indent=2, allow_nan=False), file=to)


def console(to: TextIO) -> Console:
    """For plain text; as wide as it takes where this is no terminal."""
    from rich.console import Console

    terminal = to.isatty()
    return Console(
        file=to,
        width=None if terminal else WIDE,
        force_terminal=terminal,
        markup=False,
        emoji=False,
        highlight=False,
    )


def table(*columns: str) -> Table:
    """An empty table; ``>`` before a header marks a column of numbers."""
    from rich.table import Table

    result = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        number = column.startswith(">")
        result.add_column(
            column.removeprefix(">"),
            justify="right" if number else "left",
            no_wrap=number,
            overflow="fold",
        )
    return result


def print_list(to: Console, title: str, lines: Sequence[str]) -> None:
    """A titled list, if it holds anything."""
    if lines:
        to.print(f"\n{title}")
        for line in lines:
            to.print(f"  {line}")


def short(value: SupportsFloat) -> str:
    """A number, to six digits."""
    return f"{float(value):.6g}"
