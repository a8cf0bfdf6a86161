"""``robomodel convert``: from one robot format to another, exactly or as an open tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from robomodel.cli.frame import Answer, UserError
from robomodel.cli.output import print_list
from robomodel.cli.robot import Robot
from robomodel.studies.softness import Softness, softness
from robomodel.writers import write_mjcf, write_sdf, write_urdf

if TYPE_CHECKING:
    from rich.console import Console

Format = Literal["urdf", "sdf", "mjcf"]

WRITERS = {"urdf": write_urdf, "sdf": write_sdf, "mjcf": write_mjcf}
SUFFIXES: dict[str, Format] = {
    ".urdf": "urdf",
    ".sdf": "sdf",
    ".world": "sdf",
    ".xml": "mjcf",
    ".mjcf": "mjcf",
}


def command(
    robot: Robot,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The file to write; its ending says the format: .urdf, .sdf, .world, .xml, .mjcf.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Format | None,
        typer.Option(help="The format, where the ending does not say it.", show_default=False),
    ] = None,
    approximate: Annotated[
        bool,
        typer.Option(
            "--approximate",
            help="Write an open tree with armature, for simulators without loops and couplings.",
        ),
    ] = False,
    drop: Annotated[
        bool,
        typer.Option("--drop", help="Leave out what the format cannot say, and list it."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            help="Measure how far MuJoCo's soft constraints are from the mechanism (exact MJCF "
            "with loops or couplings, where MuJoCo is installed)."
        ),
    ] = True,
) -> Answer:
    """Write a robot in another format: exactly, or as an open tree for simulators.

    Keys of the JSON document: robot, file, output, format, approximate, lost (what the format
    cannot say, with --drop), softness (null, or samples, median and worst relative error of
    MuJoCo's accelerations), warnings.
    """
    form = to or SUFFIXES.get(output.suffix.lower())
    if form is None:
        raise UserError(
            f"{output}: '{output.suffix}' says no format; known are {', '.join(SUFFIXES)}, or give "
            "--to"
        )
    model = robot.load()
    try:
        lost = WRITERS[form](model, output, approximate=approximate, drop=drop)
    except ValueError as error:  # among them DescriptionError: what cannot be said or lumped
        raise UserError(str(error).replace("drop=True", "--drop")) from error
    tied = bool(model.loops or model.couplings) and not approximate
    measured: Softness | None = None
    if check and form == "mjcf" and tied:
        measured = softness(model, str(output))

    def show(said: Console) -> None:
        how = ", as an open tree" if approximate else ""
        said.print(f"{model.name}: {output} written ({form}{how})")
        print_list(said, "Left out, as the format cannot say it", lost)
        if measured is not None:
            said.print(
                "\nMuJoCo's equality constraints are soft: at closed states its accelerations miss "
                f"those of the mechanism by {measured.median:.2g} (median of {measured.samples} "
                f"random states; worst {measured.worst:.2g}), relative to their norm"
            )
        elif form == "mjcf" and tied:
            said.print(
                "\nMuJoCo's equality constraints are soft, so that its motion differs from the "
                "mechanism's; by how much was not measured"
            )

    return Answer(
        document={
            "robot": model.name,
            "file": robot.file,
            "output": str(output),
            "format": form,
            "approximate": approximate,
            "lost": lost,
            "softness": measured,
        },
        show=show,
    )
