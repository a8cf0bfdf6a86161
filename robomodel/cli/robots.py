"""``robomodel robots``: the robots shipped with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robomodel import robots as shipped
from robomodel.cli.output import AsJson, console, print_json, short, table


def command(as_json: AsJson = False) -> None:
    """List the robots shipped with the package.

    Keys of the JSON document: robots, a list of objects with name, nv, bodies, clusters, mass,
    about, path.
    """
    rows = [_row(name) for name in shipped.names()]
    if as_json:
        print_json({"robots": rows})
        return
    listing = table("robot", ">dof", ">bodies", ">clusters", ">kg", "about")
    for row in rows:
        numbers = (str(row[key]) for key in ("nv", "bodies", "clusters"))
        listing.add_row(row["name"], *numbers, short(row["mass"]), row["about"])
    console().print(listing)


def _row(name: str) -> dict[str, Any]:
    model, path = shipped.load(name), shipped.path(name)
    return {
        "name": name,
        "nv": model.nv,
        "bodies": len(model.bodies),
        "clusters": len(model.clusters),
        "mass": model.mass,
        "about": _about(path),
        "path": str(path),
    }


def _about(path: Path) -> str:
    """The first sentence of a robot file's top comment."""
    _, _, comment = path.read_text(encoding="utf-8").partition("<!--")
    words = " ".join(comment.partition("-->")[0].split())
    return words.partition(". ")[0].removesuffix(".")
