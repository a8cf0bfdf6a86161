"""``robomodel graph``: pictures of a robot's graphs, or of a cluster over a joint's range."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robomodel.cli.output import AsJson, print_json
from robomodel.cli.robot import (
    Extend,
    File,
    FloatingBase,
    Name,
    Strict,
    UserError,
    load,
    reporting,
)


def command(
    file: File,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The picture: .svg, .png or .pdf.", metavar="FILE")
    ] = Path("graph.svg"),
    over: Annotated[
        str | None,
        typer.Option(
            "--over",
            metavar="JOINT",
            help="Plot positions, ratios (G) and inertias over this independent joint's range.",
            show_default=False,
        ),
    ] = None,
    extend: Extend = None,
    floating_base: FloatingBase = None,
    strict: Strict = False,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Draw connectivity graph, spanning tree and cluster tree side by side.

    Keys of the JSON document: robot, file, picture, and over, lower, upper, closed where a joint's
    range is plotted (closed is false where loops do not close over all of it).
    """
    from robomodel.views import draw_cluster, draw_graph

    with reporting(file):
        model = load(file, extend, floating_base, strict, name=name)
        said: dict[str, object] = {"robot": model.name, "file": file, "picture": str(out)}
        try:
            if over is None:
                draw_graph(model, out)
            else:
                found = draw_cluster(model, over, out)
                lower, upper = found.positions[[0, -1]]
                said |= {"over": over, "lower": lower, "upper": upper, "closed": found.closed}
        except (ImportError, KeyError, ValueError) as error:
            raise UserError(f"{file}: {error.args[0]}") from error
    if as_json:
        print_json(said)
    else:
        typer.echo(f"wrote {out}")
