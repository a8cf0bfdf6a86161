"""``robomodel robots``: the robots shipped with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robomodel import robots as shipped
from robomodel.reports.document import Bullets, Document, Section, Table

EXAMPLES = (
    "robomodel robots",
    "robomodel robots --json",
)


def command() -> Document:
    """List the robots shipped with the package.

    Keys of the JSON document: robots (a list: name, nv, bodies, clusters, mass, about, source,
    path), warnings.
    """
    rows = [_row(name) for name in shipped.names()]
    keys = ("name", "nv", "bodies", "clusters", "mass", "about")
    listing = Table(
        ["robot", "dof", "bodies", "clusters", "kg", "about"],
        [[row[k] for k in keys] for row in rows],
    )
    sources: dict[str, list[str]] = {}
    for row in rows:
        if row["source"]:
            sources.setdefault(row["source"], []).append(row["name"])
    lines = [f"{', '.join(names)}: {text}" for text, names in sources.items()]
    sections = [Section("", [listing]), Section("sources", [Bullets(lines)])]
    return Document("", "", sections, {"robots": rows})


def _row(name: str) -> dict[str, Any]:
    model, path = shipped.load(name), shipped.path(name)
    about, source = _comment(path)
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


def _comment(path: Path) -> tuple[str, str]:
    """Of a robot file's top comment: the first sentence, and the one after "Source:", if any."""
    _, _, comment = path.read_text(encoding="utf-8").partition("<!--")
    words = " ".join(comment.partition("-->")[0].split())
    sentences = words, words.partition("Source: ")[2]
    about, source = (text.partition(". ")[0].removesuffix(".") for text in sentences)
    return about, source
