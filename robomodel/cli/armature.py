"""``robomodel armature``: reflected inertia, and open trees that make do with it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from robomodel.cli.common import (
    HasPage,
    UserError,
    blaming,
    options_of,
)
from robomodel.cli.files import SUFFIXES
from robomodel.cli.robot import Robot
from robomodel.errors import few
from robomodel.files import named
from robomodel.model import Model
from robomodel.reports.approximation import Annotated as AnnotatedFile
from robomodel.reports.approximation import (
    ApproximationErrors,
    annotate_drake,
    annotate_mjcf,
    approximation_errors,
    csv_of,
    drake_rotors,
)
from robomodel.reports.document import Bullets, Document, Section
from robomodel.reports.simulators import Simulator, for_simulator, parse_gains
from robomodel.vocabulary import xml


def armature(
    robot: Robot,
    mjcf: Path | None = None,
    drake: Path | None = None,
    output: Path | None = None,
    value: Literal["neutral", "best"] = "neutral",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the armatures as CSV.")] = False,
    simulator: Annotated[
        Simulator | None,
        typer.Option(
            "--for",
            help="Print what a user of this simulator enters.",
            rich_help_panel="For a simulator",
        ),
    ] = None,
    joints: str = "",
    gains: str | None = None,
    kp: str | None = None,
    kd: str | None = None,
    **options: Annotated[Any, options_of(approximation_errors, "samples seed tolerance")],
) -> HasPage:
    """Tabulate reflected inertia, its range, and the errors of open trees that make do with it.

    Four jobs: without options, the table, with the errors and the verdict of the tree with links as
    they are and of the one that `convert --approximate` writes; with --for, what a simulator's user
    enters; with --mjcf or --drake, armatures written into a file that you have; with --for and
    gains, a second of motion of the tree beside the robot's.

    Keys of the JSON document: robot, file, armature (a list: joint, value, low, high, best,
    constant, unit; of the joints that move in the approximating open tree), dof_names, dense (in
    the robot's independent velocities, at neutral), spins (a list: rotor, carrier, joint, inertia,
    ratio, coupling; of rotors on carriers that move), approximation_errors (tolerance, joints with
    their errors, median and worst, of both trees, keep_exact, verdict), tree (what `convert
    --approximate` writes: kind, verdict, errors, armature, range, notes, lumped: verdict, errors
    and armature of the tree with links as they are), output (null, or path,
    format, joints, missing), warnings. SI units. docs/armature.md explains the numbers.

    Examples:
        robomodel armature belt_leg
        robomodel armature belt_leg --value best --csv
        robomodel armature planar_leg_linkage --for isaaclab --gains 12,0.7

    Options:
    For a simulator:
        --joints A,B,…: With --for, joints that move in the open tree; the others are those that
            carry the limb.
    A second of motion, with --for:
        --gains RATE,RATIO: Gains for this natural frequency [rad/s] and damping ratio, and how far
            the tree gets from the robot in a second of such motion.
        --kp KP: The same for your gains: a number, or one by joint, as hip=60,knee=40.
        --kd KD: The gain of the rates; with --kp.
    Into a file that you have:
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
            f"{output}: the printed result is no robot file; --mjcf FILE or --drake FILE says "
            "which one to write armatures into"
        )
    model = robot.load()
    if simulator is not None:
        names = [each.strip() for each in joints.split(",") if each.strip()]
        if (kp is None) != (kd is None) or (kp is not None and gains is not None):
            raise UserError("--kp and --kd go together, and without --gains")
        pd = None if kp is None or kd is None else (kp, kd)
        with blaming(robot.file, status=1):
            sections, fields = for_simulator(
                model, simulator, joints=names, gains=parse_gains(gains), pd=pd
            )
        fields["file"] = robot.file
        return HasPage(document=Document(model.name, f"for {simulator}", sections, fields),
                      output=output)  # fmt: skip
    if joints or gains or kp or kd:
        raise UserError("--joints, --gains, --kp and --kd go with --for")
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
    return HasPage(
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
    if value == "best" and (none := [x.joint for x in errors.armatures if math.isnan(x.best)]):
        raise UserError(
            f"no constant is the best for {few(none)}: next to a dead point the reflected inertia "
            "grows without end; write that at the neutral configuration (--value neutral)"
        )
    constants = {each.joint: each.value if value == "neutral" else each.best
                 for each in errors.armatures}  # fmt: skip
    text = xml.decode(named(str(file), xml.MAX_BYTES), str(file))
    if into_mjcf:
        result = annotate_mjcf(text, str(file), constants)
    else:
        result = annotate_drake(text, str(file), drake_rotors(model, constants))
    if not result.written:
        raise UserError(
            f"{file}: none of its joints has a name of '{model.name}': "
            f"{', '.join(result.missing[:8])}"
        )
    output.write_text(result.text, encoding="utf-8", newline="")
    return result
