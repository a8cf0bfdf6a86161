"""``robomodel robots``: the robots shipped with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from robomodel import robots as shipped
from robomodel.cli.frame import Answer
from robomodel.cli.output import print_list, short, table

if TYPE_CHECKING:
    from rich.console import Console

EXAMPLES = (
    "robomodel robots",
    "robomodel robots --json",
)


def command() -> Answer:
    """List the robots shipped with the package.

    Keys of the JSON document: robots (a list: name, nv, bodies, clusters, mass, about, source,
    path), warnings.
    """
    rows = [_row(name) for name in shipped.names()]
    return Answer(document={"robots": rows}, show=lambda to: _show(rows, to))


def _show(rows: list[dict[str, Any]], to: Console) -> None:
    listing = table("robot", ">dof", ">bodies", ">clusters", ">kg", "about")
    for row in rows:
        numbers = (str(row[key]) for key in ("nv", "bodies", "clusters"))
        listing.add_row(row["name"], *numbers, short(row["mass"]), row["about"])
    sources: dict[str, list[str]] = {}
    for row in rows:
        if row["source"]:
            sources.setdefault(row["source"], []).append(row["name"])
    to.print(listing)
    print_list(to, "sources", [f"{', '.join(names)}: {text}" for text, names in sources.items()])


def _row(name: str) -> dict[str, Any]:
    model, path = shipped.load(name), shipped.path(name)
    about, source = _said(path)
    return {
        "name": name,
        "nv": model.nv,
        "bodies": len(model.bodies),
        "clusters": len(model.clusters),
        "mass": model.mass,
        "about": about,
        "source": source,
        "path": str(path),
    }


def _said(path: Path) -> tuple[str, str]:
    """Of a robot file's top comment: the first sentence, and the one after "Source:", if any."""
    _, _, comment = path.read_text(encoding="utf-8").partition("<!--")
    words = " ".join(comment.partition("-->")[0].split())
    sentences = words, words.partition("Source: ")[2]
    about, source = (text.partition(". ")[0].removesuffix(".") for text in sentences)
    return about, source
