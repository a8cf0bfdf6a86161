"""``robomodel armature``: reflected inertia of joints, and what it costs to make do with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from robomodel.cli.common import Report, UserError, blaming
from robomodel.cli.convert import SUFFIXES
from robomodel.cli.robot import Robot
from robomodel.files import named
from robomodel.model import Model
from robomodel.parsers import xml
from robomodel.reports.approximation.errors import (
    ApproximationErrors,
    approximation_errors,
    csv_of,
)
from robomodel.reports.approximation.files import Annotated as AnnotatedFile
from robomodel.reports.approximation.files import annotate_drake, annotate_mjcf, motors
from robomodel.reports.document import Bullets, Section

EXAMPLES = (
    "robomodel armature belt_leg",
    "robomodel armature belt_leg --value best --csv",
)


OPTIONS = {approximation_errors: ("samples", "seed", "tolerance")}


def command(
    robot: Robot,
    mjcf: Path | None = None,
    drake: Path | None = None,
    output: Path | None = None,
    value: Literal["neutral", "best"] = "neutral",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the armatures as CSV.")] = False,
    **options: Any,
) -> Report:
    """Tabulate reflected inertia, its range, and the errors of a model that makes do with it.

    Keys of the JSON document: robot, file, armature (a list: joint, value, low, high, best,
    constant, unit; of the joints that move in the approximating open tree), dof_names, dense (in
    the robot's independent velocities, at neutral), spins (a list: rotor, carrier, joint, inertia,
    ratio, coupling; of rotors on carriers that move), approximation_errors (samples, seed,
    tolerance, torque, acceleration, tendons, joints, keep_exact, verdict), output (null, or path,
    format, joints, missing), warnings. SI units. docs/armature.md explains the numbers.

    Options:
        --mjcf FILE.xml: Write armature= on the joints of this MJCF file (of the same names) to
            --output.
        --drake FILE.urdf: Write Drake's rotor_inertia and gear_ratio into this URDF file to
            --output.
        -o, --output OUT: Where that file is written (it may be the same), else what is printed.
        --value: The constant that is written: as at the neutral configuration, or of least mean
            square error over the joint limits.
    """
    if mjcf is not None and drake is not None:
        raise UserError("--mjcf and --drake: one file at a time")
    file = mjcf or drake
    if file is not None and output is None:
        raise UserError("--mjcf and --drake need --output: where that file is written")
    if file is None and output is not None and output.suffix.lower() in SUFFIXES:
        raise UserError(
            f"{output}: what is printed makes no robot file; --mjcf FILE or --drake FILE says "
            "which one to write armatures into"
        )
    model = robot.load()
    with blaming(robot.file, status=1):
        errors = approximation_errors(model, **options)
    written: list[Section] = []
    data = {**errors.document.data, "file": robot.file, "output": None}
    if file is not None and output is not None:
        result = _write(model, errors, file, output, value, into_mjcf=mjcf is not None)
        written.append(Section("", [f"{output}: armature of {len(result.written)} joints written"]))
        written.append(Section("Not in that file", [Bullets(result.missing)]))
        data["output"] = {
            "path": str(output),
            "joints": list(result.written),
            "missing": list(result.missing),
        }
    document = replace(errors.document, data=data, sections=[*errors.document.sections, *written])
    return Report(
        document=document,
        text=csv_of(errors) if as_csv else None,
        output=output if file is None else None,
    )


def _write(
    model: Model,
    errors: ApproximationErrors,
    file: Path,
    output: Path,
    value: str,
    *,
    into_mjcf: bool,
) -> AnnotatedFile:
    constants = {each.joint: each.value if value == "neutral" else each.best
                 for each in errors.armatures}  # fmt: skip
    text = xml.decode(named(str(file), xml.MAX_BYTES), str(file))
    if into_mjcf:
        result = annotate_mjcf(text, str(file), constants)
    else:
        result = annotate_drake(text, str(file), motors(model, constants))
    if not result.written:
        raise UserError(
            f"{file}: none of its joints has a name of '{model.name}': "
            f"{', '.join(result.missing[:8])}"
        )
    output.write_text(result.text, encoding="utf-8", newline="")
    return result
