"""``robomodel identify``: a robot's parameters from a log, and what forces can tell of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from robomodel.cli import complete
from robomodel.cli.convert import SUFFIXES, WRITERS
from robomodel.cli.frame import Answer, UserError
from robomodel.cli.output import print_list, short, table
from robomodel.cli.robot import Robot
from robomodel.identification import (
    BaseParameters,
    Identified,
    Log,
    base_parameters,
    identify,
    parameters,
    read_log,
)
from robomodel.model import Model
from robomodel.reports.identification import page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

NARROW = 1e4  # a gap between singular values that leaves a doubt

EXAMPLES = (
    "robomodel excite four_bar -o motion.csv",
    "robomodel identify four_bar motion.csv -o found.urdf",
    "robomodel identify four_bar --what",
)


def command(
    robot: Robot,
    log: Annotated[
        Path | None,
        typer.Argument(
            metavar="LOG",
            help="The motion: CSV, Parquet or a bag of ROS (.mcap, .bag, .db3, a folder). Columns: "
            "time [s]; q.JOINT and v.JOINT of every independent joint, or of as many others, as "
            "rotors'; a.JOINT, or none at all; tau.JOINT, or current.ACTUATOR [A]; "
            "wrench.LINK.mx .my .mz .fx .fy .fz. Joints with several freedoms: q.JOINT.x .y .z .qx "
            ".qy .qz .qw, and v, a, tau by JOINT.wx .wy .wz .vx .vy .vz. Forces without a column, "
            "and empty cells, are unknown; a floating base's are 0. Of bags JointState and "
            "WrenchStamped messages are read.",
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
        ),
    ] = None,
    free: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.joints(),
            help="What may change: a kind (mass, damping, inertial, …), a parameter, a body, a "
            "joint or a pattern of names; may be given several times (default: all but armatures "
            "of geared joints).",
        ),
    ] = None,
    prior: Annotated[
        float,
        typer.Option(help="The share to which the file's parameters are about right."),
    ] = 1.0,
    robust: Annotated[
        bool, typer.Option("--robust", help="Let outliers count little (Huber's loss).")
    ] = False,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Keep rotors balanced that the file has so.")
    ] = False,
    cutoff: Annotated[
        float,
        typer.Option(metavar="HZ", help="The filter's, where no a.JOINT is given."),
    ] = 5.0,
    velocities: Annotated[
        float | None,
        typer.Option(
            metavar="HZ", help="Take velocities from positions, up to here, where v.JOINT is not."
        ),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="A bag's topic of joints, if it has several.")
    ] = None,
    constant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ACTUATOR=NUMBER",
            help="A torque constant [N m/A]; 'unknown' for all, or as a number, to find it; may be "
            "given several times (default: the file's).",
        ),
    ] = None,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Find the zeros of encoders, too.")
    ] = False,
    ratios: Annotated[
        bool, typer.Option("--ratios", help="Find the ratios of gears and other couplings, too.")
    ] = False,
    folds: Annotated[int, typer.Option(help="Blocks of time for cross-validation (0: none).")] = 0,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="PAGE",
            help="A report as one page that needs nothing besides: forces measured and predicted, "
            "what changed, what could not be known.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="PICTURE",
            help="Forces and residuals as a picture (.svg, .png, .pdf); needs matplotlib.",
        ),
    ] = None,
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
            metavar="JOINT",
            autocompletion=complete.joints(),
            help="A coordinate whose force is known, or 'actuators'; may be given several times "
            "(default: all).",
        ),
    ] = None,
    contact: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LINK",
            autocompletion=complete.links(),
            help="A link on which an unknown wrench acts; may be given several times.",
        ),
    ] = None,
) -> Answer:
    """A robot's parameters from a log of its motion; what forces can tell of them, and what never.

    Every body found is one that can exist. docs/parameters.md explains it.

    Keys of the JSON document: robot, output, samples, coordinates (of each name, residual, before,
    forces and validation: root mean squares), parameters (of each name, before, value, deviation
    and told), sensors (of each kind, name, value and deviation), unknown (names of those of which
    the log told less than a tenth), unused (columns), notes.

    With --what, of motions with closed loops, near the neutral configuration's branch: robot, rank,
    parameters (their names), base (of each base parameter name and coefficients by parameter),
    alone (parameters told by themselves), together (told in combinations only), never (without any
    effect), gap (kept, dropped: singular values between which the rank was decided, of the largest)
    and method.
    """
    if what == (log is not None):
        raise UserError("give a log to learn from, or --what to be told what one can tell")
    if log is not None:
        options: dict[str, Any] = {
            "free": free or None, "prior": prior, "robust": robust, "balanced": balanced,
            "cutoff": cutoff, "constants": _constants(constant or []), "offsets": offsets,
            "ratios": ratios, "folds": folds,
        }  # fmt: skip
        reading = {"topic": topic, "velocities": velocities}
        return _identified(robot, log, reading, output, html, plot, options)
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
        "gap": base.gap,
        "method": base.method,
    }
    given = "" if not (measured or contact) else _given(measured or [], contact or [])
    floats = model.floating_base is not None
    told = given or ("Forces are known in all coordinates" + (
        "; those of the floating base are zero, or the contacts' as measured." if floats else "."
    ))  # fmt: skip
    return Answer(document=document, show=lambda to: _show(model, base, told, to), output=output)


def _constants(said: list[str]) -> str | dict[str, float] | None:
    """Torque constants by actuator; nan for those to be found."""
    if said == ["unknown"]:
        return "unknown"
    found: dict[str, float] = {}
    for each in said:
        name, _, number = each.rpartition("=")
        try:
            found[name] = math.nan if number == "unknown" else float(number)
        except ValueError:
            name = ""
        if not name:
            raise UserError(f"--constant {each}: give ACTUATOR=NUMBER, or 'unknown'")
    return found or None


def _identified(
    robot: Robot,
    path: Path,
    reading: dict[str, Any],
    output: Path | None,
    html: Path | None,
    plot: Path | None,
    options: dict[str, Any],
) -> Answer:
    """Read, fit, write and tell."""
    form = SUFFIXES.get(output.suffix.lower()) if output is not None else None
    if output is not None and form is None:
        raise UserError(
            f"{output}: '{output.suffix}' says no format; known are {', '.join(SUFFIXES)}"
        )
    model = robot.load()
    try:
        log = read_log(model, path, **reading)
        fit = identify(model, log, **options)
    except KeyError as error:
        raise UserError(str(error.args[0])) from None
    except ValueError as error:
        raise UserError(f"{path}: {error}") from error
    if html is not None:
        html.write_text(page(fit, model, path.name), encoding="utf-8")
    if plot is not None:
        from robomodel.views.residuals import draw_residuals

        draw_residuals(fit, plot)
    if output is not None and form is not None:
        try:
            WRITERS[form](fit.model, output)
        except ValueError as error:
            raise UserError(str(error)) from error
    before = parameters(model).values
    unknown = fit.unknown
    document = {
        "robot": model.name,
        "output": None if output is None else str(output),
        "samples": fit.samples,
        "coordinates": [
            {"name": n, "residual": r, "before": b, "forces": f, "validation": x}
            for n, r, b, f, x in zip(
                model.dof_names, fit.residual, fit.before, fit.forces, fit.validation, strict=True
            )
        ],
        "parameters": [
            {"name": n, "before": b, "value": x, "deviation": d, "told": t}
            for n, b, x, d, t in zip(
                fit.names, before, fit.values, fit.deviation, fit.told, strict=True
            )
        ],
        "sensors": fit.sensors,
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
    checked = not np.all(np.isnan(fit.validation))
    more = (">cross-validated",) if checked else ()
    residuals = table("joint", ">forces", ">residual", ">of the file", ">share", *more)
    for name, force, own, old, other in zip(
        model.dof_names, fit.forces, fit.residual, fit.before, fit.validation, strict=True
    ):
        share = f"{100 * own / force:.2g} %" if force > 0.0 else ""
        last = (short(other),) if checked else ()
        residuals.add_row(name, short(force), short(own), short(old), share, *last)
    to.print("\nRoot mean squares of forces, and of what is left of them")
    to.print(residuals)
    if moved := fit.changes(before):
        changes = table("parameter", ">before", ">now", ">deviation")
        for i in moved:
            changes.add_row(
                fit.names[i], short(before[i]), short(fit.values[i]), f"{fit.deviation[i]:.2g}"
            )
        to.print("\nWhat changed most, beside how well it is known")
        to.print(changes)
    if fit.sensors:
        found = table("sensor", ">value", ">deviation")
        for each in fit.sensors:
            found.add_row(each.told, short(each.value), f"{each.deviation:.2g}")
        to.print("\nWhat was found of sensors")
        to.print(found)
    print_list(to, "To know", fit.notes)
    print_list(to, "Columns that were not used", log.unused)


def _given(measured: list[str], contacts: list[str]) -> str:
    """Which forces are known, in words."""
    where = ", ".join(measured) if measured else "all coordinates"
    also = f"; unknown wrenches act on {', '.join(contacts)}" if contacts else ""
    return f"Forces are known in {where}{also}."


def _show(model: Model, base: BaseParameters, told: str, to: Console) -> None:
    to.print(
        f"{model.name}: forces tell {base.rank} combinations of {len(base.parameters)} parameters "
        f"(gap {base.gap.ratio:.0e})"
    )
    to.print(told)
    if any(cluster.implicit for cluster in model.clusters):
        to.print("Loops move on the neutral configuration's branch.")
    if base.gap.ratio < NARROW:
        to.print("The gap is narrow: the robot's geometry is nearly special.", style="bold yellow")
    print_list(to, "By themselves", _by_owner(base.alone))
    combined = [each for each in base.names if " of " in each.partition(" of ")[2]]
    print_list(to, "In combinations: each sum, and never its terms apart", combined)
    print_list(to, "Never: without effect on any force", _by_owner(base.never))


def _by_owner(names: Iterable[str]) -> list[str]:
    """One line for each body or joint: "shank: m, mx, Ixx"."""
    found: dict[str, list[str]] = {}
    for name in names:
        owner, _, kind = name.rpartition(".")
        found.setdefault(owner, []).append("m" if kind == "mass" else kind)
    return [f"{owner}: {', '.join(kinds)}" for owner, kinds in found.items()]
