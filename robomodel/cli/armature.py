"""``robomodel armature``: reflected inertia of joints, and what it costs to make do with it."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from robomodel import dynamics
from robomodel.cli.frame import Answer, UserError
from robomodel.cli.output import print_list, short, table
from robomodel.cli.robot import Robot
from robomodel.files import named
from robomodel.model import Model
from robomodel.parsers import xml
from robomodel.reports.approximation.errors import (
    ApproximationErrors,
    Armature,
    Error,
    approximation_errors,
)
from robomodel.reports.approximation.files import Annotated as AnnotatedFile
from robomodel.reports.approximation.files import annotate_drake, annotate_mjcf, motors

if TYPE_CHECKING:
    from rich.console import Console


ROBOTS = (".urdf", ".xml", ".mjcf", ".sdf", ".xacro")

EXAMPLES = (
    "robomodel armature belt_leg",
    "robomodel armature belt_leg --value best --csv",
)


def command(
    robot: Robot,
    mjcf: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.xml",
            help="Write armature= on the joints of this MJCF file (of the same names) to --output.",
        ),
    ] = None,
    drake: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.urdf",
            help="Write Drake's rotor_inertia and gear_ratio into this URDF file to --output.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Where that file is written (it may be the same), else what is printed.",
        ),
    ] = None,
    value: Annotated[
        Literal["neutral", "best"],
        typer.Option(
            help="The constant that is written: as at the neutral configuration, or of least mean "
            "square error over the joint limits."
        ),
    ] = "neutral",
    samples: Annotated[int, typer.Option(min=1, help="Random states to compare at.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Draws them.")] = 0,
    tolerance: Annotated[
        float,
        typer.Option(min=0.0, help="Median relative error above which a joint is to stay exact."),
    ] = 0.1,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the armatures as CSV.")] = False,
) -> Answer:
    """Tabulate reflected inertia, its range, and the errors of a model that makes do with it.

    Keys of the JSON document: robot, file, armature (a list: joint, value, low, high, best,
    constant, unit; of the joints that move in the approximating open tree), dof_names, dense (in
    the robot's independent velocities, at neutral), approximation_errors (samples, seed, tolerance,
    torque, acceleration, joints, keep_exact, verdict), output (null, or path, format, joints,
    missing), warnings. SI units. docs/armature.md explains the numbers.
    """
    if mjcf is not None and drake is not None:
        raise UserError("--mjcf and --drake: one file at a time")
    given = mjcf or drake
    if given is not None and output is None:
        raise UserError("--mjcf and --drake need --output: where that file is written")
    if given is None and output is not None and output.suffix.lower() in ROBOTS:
        raise UserError(
            f"{output}: what is printed makes no robot file; --mjcf FILE or --drake FILE says "
            "which one to write armatures into"
        )
    model = robot.load()
    try:
        errors = approximation_errors(model, samples=samples, seed=seed, tolerance=tolerance)
    except ValueError as error:
        raise UserError(f"{robot.file}: {error}", status=1) from error
    written = None
    if given is not None and output is not None:
        written = _write(model, errors, given, output, value, into_mjcf=mjcf is not None)

    def show(to: Console) -> None:
        if as_csv:
            to.out(_csv(model, errors.armatures), end="")
        else:
            _show(model, errors, to)
            _show_written(written, output, to)

    return Answer(
        document=_report(model, robot.file, errors, written, output),
        show=show,
        output=output if given is None else None,
    )


def _write(
    model: Model,
    errors: ApproximationErrors,
    given: Path,
    output: Path,
    value: str,
    *,
    into_mjcf: bool,
) -> AnnotatedFile:
    constants = {each.joint: each.value if value == "neutral" else each.best
                 for each in errors.armatures}  # fmt: skip
    text = xml.decode(named(str(given), xml.MAX_BYTES), str(given))
    if into_mjcf:
        result = annotate_mjcf(text, str(given), constants)
    else:
        result = annotate_drake(text, str(given), motors(model, constants))
    if not result.written:
        raise UserError(
            f"{given}: none of its joints has a name of '{model.name}': "
            f"{', '.join(result.missing[:8])}"
        )
    output.write_text(result.text, encoding="utf-8", newline="")
    return result


def _report(
    model: Model,
    file: str,
    errors: ApproximationErrors,
    written: AnnotatedFile | None,
    output: Path | None,
) -> dict[str, Any]:
    units = _units(model)
    return {
        "robot": model.name,
        "file": file,
        "armature": [{**asdict(each), "unit": units[each.joint]} for each in errors.armatures],
        "dof_names": model.dof_names,
        "dense": dynamics.armature(model, kind="dense", backend="numpy"),
        "approximation_errors": errors.as_dict(),
        "output": None
        if written is None
        else {
            "path": str(output),
            "joints": list(written.written),
            "missing": list(written.missing),
        },
    }


def _units(model: Model) -> dict[str, str]:
    return {joint.name: "kg" if joint.type == "prismatic" else "kg m²" for joint in model.joints}


def _csv(model: Model, armatures: tuple[Armature, ...]) -> str:
    units = _units(model)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["joint", "armature", "low", "high", "best", "unit"])
    for each in armatures:
        numbers = (repr(x) for x in (each.value, each.low, each.high, each.best))
        writer.writerow([each.joint, *numbers, units[each.joint]])
    return stream.getvalue()


# ---- as text -------------------------------------------------------------------------------------


def _show(model: Model, errors: ApproximationErrors, to: Console) -> None:
    to.print(f"{model.name}: reflected inertia of the joints that move in the open tree\n")
    units = _units(model)
    listing = table("joint", ">armature", ">least", ">most", ">best constant", "unit")
    for each in errors.armatures:
        spread = (
            ("", "", "") if each.constant else tuple(map(short, (each.low, each.high, each.best)))
        )
        listing.add_row(each.joint, short(each.value), *spread, units[each.joint])
    to.print(listing)
    to.print(
        f"\nApproximation errors of the open tree: relative over {errors.samples} random states, "
        "median / worst\n"
    )
    listing = table("dof", ">mass matrix", ">torque", ">acceleration", "")
    for row in errors.rows:
        pairs = (_pair(each) for each in (row.mass_matrix, row.torque, row.acceleration))
        listing.add_row(row.dof, *pairs, "keep exact" if row.keep_exact else "")
    listing.add_row("all", "", _pair(errors.torque), _pair(errors.acceleration), "")
    to.print(listing)
    _off_diagonal(model, to)
    if errors.keep_exact:
        print_list(
            to,
            f"Should not be approximated (median error above {errors.tolerance:g}, or ten times "
            "that at worst)",
            errors.keep_exact,
        )
    to.print(f"\n{errors.verdict}")


def _show_written(written: AnnotatedFile | None, output: Path | None, to: Console) -> None:
    if written is not None:
        to.print(f"\n{output}: armature of {len(written.written)} joints written")
        if written.missing:
            print_list(to, "Not in that file", written.missing)


def _off_diagonal(model: Model, to: Console) -> None:
    dense = np.array(dynamics.armature(model, kind="dense", backend="numpy"))
    pairs = np.argwhere(np.triu(np.abs(dense) > 1e-12 * np.max(np.abs(dense), initial=1e-300), 1))
    names = model.dof_names
    print_list(
        to,
        "Between joints, where no armature says it (dense matrix, kg m²)",
        [f"{names[i]}, {names[j]}: {short(dense[i, j])}" for i, j in pairs.tolist()],
    )


def _pair(error: Error) -> str:
    return f"{error.median:.2g} / {error.worst:.2g}"
