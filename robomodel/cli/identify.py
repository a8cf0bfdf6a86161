"""``robomodel identify``: what forces can tell of a robot's parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from robomodel.cli.frame import Answer, UserError
from robomodel.cli.output import print_list
from robomodel.cli.robot import Robot
from robomodel.identification import BaseParameters, base_parameters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

NARROW = 1e4  # a gap between singular values that leaves a doubt


def command(
    robot: Robot,
    what: Annotated[
        bool,
        typer.Option(
            "--what",
            help="Print what forces can tell of masses, inertias and losses, and what never.",
        ),
    ] = False,
    measured: Annotated[
        list[str] | None,
        typer.Option(
            "--measured",
            metavar="JOINT",
            help="A coordinate whose force is known, or 'actuators'; may be given several times "
            "(default: all).",
            show_default=False,
        ),
    ] = None,
    contact: Annotated[
        list[str] | None,
        typer.Option(
            "--contact",
            metavar="LINK",
            help="A link on which an unknown wrench acts; may be given several times.",
            show_default=False,
        ),
    ] = None,
) -> Answer:
    """What measured forces can tell of a robot's parameters, and what they never can.

    Of motions with closed loops, near the neutral configuration's branch. docs/parameters.md
    explains it.

    Keys of the JSON document: robot, rank, parameters (their names), base (of each base parameter
    name and coefficients by parameter), alone (parameters told by themselves), together (told in
    combinations only), never (without any effect), gap (kept, dropped: singular values between
    which the rank was decided, of the largest) and method.
    """
    if not what:
        raise UserError("nothing to do: give --what")
    model = robot.load()
    known = None if not measured else measured[0] if measured == ["actuators"] else measured
    try:
        base = base_parameters(model, measured=known, contacts=contact or ())
    except KeyError as error:
        raise UserError(str(error.args[0])) from None
    rows = [
        {n: float(x) for n, x in zip(base.parameters, row, strict=True) if x} for row in base.matrix
    ]
    document = {
        "robot": model.name,
        "rank": base.rank,
        "parameters": base.parameters,
        "base": [
            {"name": name, "coefficients": row} for name, row in zip(base.names, rows, strict=True)
        ],
        "alone": base.alone,
        "together": base.together,
        "never": base.never,
        "gap": {"kept": base.gap.kept, "dropped": base.gap.dropped},
        "method": base.method,
    }
    return Answer(document=document, show=lambda to: _show(model.name, base, to))


def _show(name: str, base: BaseParameters, to: Console) -> None:
    to.print(
        f"{name}: forces tell {base.rank} combinations of {len(base.parameters)} parameters "
        f"(gap {base.gap.ratio:.0e})"
    )
    if base.gap.ratio < NARROW:
        to.print("The gap is narrow: the robot's geometry is nearly special.", style="bold yellow")
    print_list(to, "By themselves", _by_owner(base.alone))
    combined = [each for each in base.names if " of " in each.partition(" of ")[2]]
    print_list(to, "In combinations", combined)
    print_list(to, "Never", _by_owner(base.never))


def _by_owner(names: Iterable[str]) -> list[str]:
    """One line for each body or joint: "shank: m, mx, Ixx"."""
    found: dict[str, list[str]] = {}
    for name in names:
        owner, _, kind = name.rpartition(".")
        found.setdefault(owner, []).append("m" if kind == "mass" else kind)
    return [f"{owner}: {', '.join(kinds)}" for owner, kinds in found.items()]
