"""``robomodel identify``: a robot's parameters from a log, and what forces can tell of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from robomodel.cli.convert import SUFFIXES, WRITERS
from robomodel.cli.frame import Answer, UserError
from robomodel.cli.log import Log, read_log
from robomodel.cli.output import print_list, short, table
from robomodel.cli.robot import Robot
from robomodel.identification import (
    BaseParameters,
    Identified,
    base_parameters,
    identify,
    parameters,
)
from robomodel.model import Model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

NARROW = 1e4  # a gap between singular values that leaves a doubt
FEW = 12  # of what changed most
FAINT = 0.1  # of a parameter's variance: where less of it goes, the log tells nothing of it


def command(
    robot: Robot,
    log: Annotated[
        Path | None,
        typer.Argument(
            metavar="LOG.csv",
            help="The motion: a header, then a sample a line. Columns: time [s]; q.JOINT of every "
            "independent joint; v.JOINT; a.JOINT, or none at all; tau.JOINT. Joints with several "
            "freedoms: q.JOINT.x .y .z .qx .qy .qz .qw, and v, a, tau by JOINT.wx .wy .wz .vx .vy "
            ".vz. Forces without a column, and empty cells, are unknown; a floating base's are 0.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The robot with the parameters found; its ending says the format: .urdf, .sdf, "
            ".world, .xml, .mjcf. With --what: the file for what is printed else.",
            show_default=False,
        ),
    ] = None,
    free: Annotated[
        list[str] | None,
        typer.Option(
            "--free",
            metavar="NAME",
            help="What may change: a kind (mass, damping, inertial, …), a parameter, a body, a "
            "joint or a pattern of names; may be given several times (default: all but armatures "
            "of geared joints).",
            show_default=False,
        ),
    ] = None,
    prior: Annotated[
        float,
        typer.Option("--prior", help="The share to which the file's parameters are about right."),
    ] = 1.0,
    robust: Annotated[
        bool, typer.Option("--robust", help="Let outliers count little (Huber's loss).")
    ] = False,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Keep rotors balanced that the file has so.")
    ] = False,
    cutoff: Annotated[
        float,
        typer.Option("--cutoff", metavar="HZ", help="The filter's, where no a.JOINT is given."),
    ] = 5.0,
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
    """A robot's parameters from a log of its motion; what forces can tell of them, and what never.

    Every body found is one that can exist. docs/parameters.md explains it.

    Keys of the JSON document: robot, output, samples, coordinates (of each name, residual, before
    and forces: root mean squares), parameters (of each name, before, value, deviation and told),
    unknown (names of those of which the log told less than a tenth), unused (columns), notes.

    With --what, of motions with closed loops, near the neutral configuration's branch: robot, rank,
    parameters (their names), base (of each base parameter name and coefficients by parameter),
    alone (parameters told by themselves), together (told in combinations only), never (without any
    effect), gap (kept, dropped: singular values between which the rank was decided, of the largest)
    and method.
    """
    if what == (log is not None):
        raise UserError("give a log to learn from, or --what to be told what one can tell")
    if log is not None:
        return _identified(robot, log, output, free, prior, robust, balanced, cutoff)
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
    return Answer(document=document, show=lambda to: _show(model.name, base, to), output=output)


def _identified(
    robot: Robot,
    path: Path,
    output: Path | None,
    free: list[str] | None,
    prior: float,
    robust: bool,
    balanced: bool,
    cutoff: float,
) -> Answer:
    """Read, fit, write and tell."""
    form = SUFFIXES.get(output.suffix.lower()) if output is not None else None
    if output is not None and form is None:
        raise UserError(
            f"{output}: '{output.suffix}' says no format; known are {', '.join(SUFFIXES)}"
        )
    model = robot.load()
    log = read_log(path, model)
    if log.a is None and (log.step is None or math.isnan(log.step)):
        why = "a column 'time'" if log.step is None else "samples at even times"
        raise UserError(f"{path}: without accelerations {why} is needed")
    try:
        fit = identify(
            model, log.q, log.v, log.a, log.tau, free=free or None,
            step=None if log.a is not None else log.step, cutoff=cutoff, prior=prior,
            robust=robust, balanced=balanced,
        )  # fmt: skip
    except KeyError as error:
        raise UserError(str(error.args[0])) from None
    except ValueError as error:
        raise UserError(f"{path}: {error}") from error
    if output is not None and form is not None:
        try:
            WRITERS[form](fit.model, output)
        except ValueError as error:
            raise UserError(str(error)) from error
    before = parameters(model).values
    names = np.array(fit.names)
    held = np.diag(fit.covariance) == 0.0
    unknown = names[(fit.told < FAINT) & ~held].tolist()
    document = {
        "robot": model.name,
        "output": None if output is None else str(output),
        "samples": fit.samples,
        "coordinates": [
            {"name": n, "residual": r, "before": b, "forces": f}
            for n, r, b, f in zip(
                model.dof_names, fit.residual, fit.before, fit.forces, strict=True
            )
        ],
        "parameters": [
            {"name": n, "before": b, "value": x, "deviation": d, "told": t}
            for n, b, x, d, t in zip(
                fit.names, before, fit.values, fit.deviation, fit.told, strict=True
            )
        ],
        "unknown": unknown,
        "unused": log.unused,
        "notes": fit.notes,
    }

    def show(to: Console) -> None:
        to.print(f"{model.name}: {fit.samples} samples of {path}")
        if output is not None:
            to.print(f"{output} written")
        _show_fit(model, fit, log, before, to)
        print_list(to, "Of these the log tells nothing", _by_owner(unknown))

    return Answer(document=document, show=show)


def _show_fit(model: Model, fit: Identified, log: Log, before: np.ndarray, to: Console) -> None:
    """Residuals by joint, what changed most, what to know."""
    residuals = table("joint", ">forces", ">residual", ">of the file", ">share")
    for name, force, own, old in zip(
        model.dof_names, fit.forces, fit.residual, fit.before, strict=True
    ):
        share = f"{100 * own / force:.2g} %" if force > 0.0 else ""
        residuals.add_row(name, short(force), short(own), short(old), share)
    to.print("\nRoot mean squares of forces, and of what is left of them")
    to.print(residuals)
    spread = np.where(fit.deviation > 0.0, fit.deviation, np.inf)
    change = np.abs(fit.values - before) / spread
    moved = [i for i in np.argsort(-change)[:FEW] if change[i] > 1.0]
    if moved:
        changes = table("parameter", ">before", ">now", ">deviation")
        for i in moved:
            changes.add_row(
                fit.names[i], short(before[i]), short(fit.values[i]), f"{fit.deviation[i]:.2g}"
            )
        to.print("\nWhat changed most, beside how well it is known")
        to.print(changes)
    print_list(to, "To know", fit.notes)
    print_list(to, "Columns that were not used", log.unused)


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
