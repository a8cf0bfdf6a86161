"""``robomodel excite``: a motion from which a robot's parameters can be told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robomodel.cli import complete
from robomodel.cli.frame import Answer, UserError
from robomodel.cli.output import print_list
from robomodel.cli.robot import Robot
from robomodel.identification import excitation
from robomodel.identification.search import Criterion

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 12  # limits

EXAMPLES = (
    "robomodel excite four_bar -o motion.csv",
    "robomodel excite puma560 -o motion.csv --harmonics 3 --tries 1",
)


def command(
    robot: Robot,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="MOTION.csv",
            help="Where to write the motion, as robomodel identify reads it: time, q., v., a. and "
            "tau. of each coordinate, the forces as the file's parameters predict them.",
        ),
    ],
    period: Annotated[float, typer.Option(metavar="S", help="How long it takes [s].")] = 5.0,
    harmonics: Annotated[int, typer.Option(help="Multiples of 1/period it is made of.")] = 5,
    step: Annotated[float, typer.Option(metavar="S", help="Between samples [s].")] = 0.01,
    joint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOINT",
            autocompletion=complete.joints(),
            help="An independent joint that moves; may be given several times (default: all).",
        ),
    ] = None,
    reach: Annotated[
        float,
        typer.Option(help="How far joints without position limits go [rad, or longest links]."),
    ] = 1.0,
    velocity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[JOINT=]MOST",
            help="A limit besides the file's, of one joint or of all that move; may be given "
            "several times, as --acceleration and --torque may.",
        ),
    ] = None,
    acceleration: Annotated[list[str] | None, typer.Option(metavar="[JOINT=]MOST")] = None,
    torque: Annotated[list[str] | None, typer.Option(metavar="[JOINT=]MOST")] = None,
    margin: Annotated[float, typer.Option(help="The share of each limit that may be used.")] = 0.95,
    criterion: Annotated[
        Criterion, typer.Option(help="The least condition number, or the most information.")
    ] = "condition",
    tries: Annotated[int, typer.Option(help="Random motions that are made better.")] = 2,
    seed: Annotated[int, typer.Option(help="The same motion for the same seed.")] = 0,
) -> Answer:
    """A motion that tells a robot's parameters well, within all limits, for identify to use.

    It is periodic, begins and ends at rest, and its loops are closed at each sample.
    docs/parameters.md explains it.

    Keys of the JSON document: robot, output, samples, period, rank, condition, information, limits
    (of each name, quantity, lower, upper, share), notes.
    """
    model = robot.load()
    try:
        found = excitation(
            model, period=period, harmonics=harmonics, step=step, joints=joint or None,
            reach=reach, velocity=_most(model.dof_names, velocity, "--velocity"),
            acceleration=_most(model.dof_names, acceleration, "--acceleration"),
            torque=_most(model.dof_names, torque, "--torque"), margin=margin, criterion=criterion,
            tries=tries, seed=seed,
        )  # fmt: skip
    except (KeyError, ValueError) as error:
        raise UserError(f"{robot.file}: {error.args[0]}") from error
    found.save(output)
    document = {
        "robot": model.name,
        "output": str(output),
        "samples": len(found.t),
        "period": period,
        "rank": found.rank,
        "condition": found.condition,
        "information": found.information,
        "limits": found.limits,
        "notes": found.notes,
    }

    def show(to: Console) -> None:
        to.print(
            f"{model.name}: {len(found.t)} samples of {period:g} s, condition "
            f"{found.condition:.3g} of {found.rank} base parameters"
        )
        to.print(f"{output} written")
        print_list(to, "Limits reached", [str(each) for each in found.reached[:SHOWN]])
        print_list(to, "To know", found.notes)

    return Answer(document=document, show=show)


def _most(
    names: tuple[str, ...], given: list[str] | None, option: str
) -> float | dict[str, float] | None:
    """Limits by name; a single number is for all."""
    if not given:
        return None
    found: dict[str, float] = {}
    alone: float | None = None
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            raise UserError(f"{option}: '{text}' is neither a number nor JOINT=NUMBER") from None
        if equals:
            found[name] = value
        else:
            alone = value
    if alone is None:
        return found
    return dict.fromkeys(names, alone) | found if found else alone
