"""The table of behaviours in Markdown, as docs/simulators.md has it."""

from __future__ import annotations

from collections.abc import Iterator

from robomodel.simulators.behaviours import BEHAVIOURS, PROGRAMS, Behaviour

BEGIN, END = "<!-- table: python -m robomodel.simulators.page -->", "<!-- end of table -->"
PAGE = "docs/simulators.md"


def table() -> str:
    """A section for each simulator of which something was seen, with a table."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    for name, program in PROGRAMS.items():
        rows = [each for each in BEHAVIOURS if each.simulator == name]
        if not rows:
            continue
        yield f"### {program.title}"
        yield ""
        yield f"Seen with {program.package} {program.versions}."
        yield ""
        yield "| formats | about | what it does | the writer | seen by |"
        yield "|---|---|---|---|---|"
        yield from map(_row, rows)
        yield ""


def _row(each: Behaviour) -> str:
    forms = ", ".join(form.upper() for form in each.formats)
    about = each.concerns.replace("<inertial>", "`<inertial>`")
    about = about.replace("signs than _", "signs than `_`")
    then = each.writer or ("warns" if each.concerns != "every robot" else "")
    then += f"; {each.advice}" if then and each.advice else each.advice
    seen = f"`{each.seen}`" if "/" in each.seen else each.seen
    return f"| {forms} | {about} | {each.does} | {then} | {seen} |"


def with_table(text: str) -> str:
    """A page with the table between its marks."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


if __name__ == "__main__":
    from pathlib import Path

    page = Path(PAGE)
    page.write_text(with_table(page.read_text("utf-8")), "utf-8")
