"""``robomodel validate``, ``armature``, ``actuation``, ``compare``: commands that print reports."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import robomodel as rm
from robomodel.cli.common import (
    HasPage,
    UserError,
    blaming,
    complete_joints,
    complete_robots,
    options_of,
)
from robomodel.cli.files import SUFFIXES
from robomodel.cli.robot import Robot
from robomodel.dynamics.kinematics.frames import FrameLike
from robomodel.errors import DescriptionError, DescriptionWarning, MissingPackageError, few
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
from robomodel.reports.validation.study import of_error, of_model
from robomodel.vocabulary import xml


def validate(
    robot: Robot,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER",
            help="A file of the same robot that is right: differences from it are findings, too. "
            "Options for loading are for both.",
            autocompletion=complete_robots,
        ),
    ] = None,
) -> HasPage:
    """Look for what is wrong or odd: structure, loops, singularities, gears, inertias, units.

    Exit status: 0 if there are at most notes, 1 for warnings and errors, 2 for a file that cannot
    be loaded, whose report is that one error. docs/validate.md explains the checks.

    Keys of the JSON document: robot, file, ok, counts (error, warning, note), findings (severity,
    check, element, file, line, message, remedy, value, unit), linkages (what was measured of each
    cluster with loops), warnings (what reading the file warned of, which
    are findings too), and error where it cannot be loaded. SI units; null is infinite or not
    specified.

    Examples:
        robomodel validate crank_rocker
        robomodel validate belt_leg --html leg.html
        robomodel validate crank_rocker --reference four_bar
    """
    broken: UserError | None = None
    right = None if reference is None else replace(robot, file=reference).load()
    try:
        with warnings.catch_warnings(record=True) as caught:  # the report has them as findings
            warnings.simplefilter("always", DescriptionWarning)
            model = robot.load()
    except DescriptionError as error:
        broken, report = UserError.of(error, robot.file), of_error(error, right)
    else:
        report = of_model(model, [each.message for each in caught], right)
    document = report.document
    if broken is not None:
        document = replace(document, data={**broken.as_dict(), **document.data})
    return HasPage(
        document=document,
        status=2 if broken else 0 if report.ok else 1,
        complaint=str(broken or ""),
    )


# ---- armature ------------------------------------------------------------------------------------


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


# ---- actuation -----------------------------------------------------------------------------------


def actuation(
    robot: Robot,
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="OTHER",
            help="Another design, a file or the name of a shipped robot: its numbers beside those "
            "of the first, its curves over them. All options are for both.",
            autocompletion=complete_robots,
        ),
    ] = None,
    foot: str | None = None,
    joints: Annotated[
        list[str] | None,
        typer.Option(
            "--joint",
            metavar="JOINT",
            autocompletion=complete_joints(),
            help="A joint that moves the foot, one or two of them. [default: the last two]",
        ),
    ] = None,
    rows: str | None = None,
    plots: Path | None = None,
    suffix: Annotated[
        Literal["png", "svg", "pdf", "csv"], typer.Option("--format", help="Of these files.")
    ] = "png",
) -> HasPage:
    """Print what motors do through gears and linkages: ratios, torque, speed, range, workspace.

    Keys of the JSON document: robot, file, actuators (name, joint, effort_limit, velocity_limit,
    effort_lower, velocity_lower, stall_torque, no_load_speed, slides, ratios: low and high over the
    range of a joint with at_rest at neutral, least and most anywhere), joints (joint, at_rest,
    tree, actuators, lower, upper, lower_by, upper_by, turns_fully, hidden, range_at_rest,
    dead_points, dead_point_kinds, passive; effort, velocity, effort_lower, velocity_lower: what the
    file of an open tree should have; torque, torque_back, torque_whatever_others_take, speed,
    speed_back, reflected_inertia, condition: least and most over the range; anywhere: the same
    where joints of the limb reach together; file: what this one has), limbs (joints, motors,
    ratios, condition, worst, share, limited, lost_corners), four_bars (joints, loop, lengths,
    frame, kind, margin, input, transmission_angle), transmissions (rod, joint, input,
    transmission_angle), cylinders (cylinder, joint, rest, lever, angle, dead_points, margin, push,
    pull), losses (behind lossy gears: joint, motors; drives, holds, turns: force at the joint),
    polygons (joints, unit, poses), workspaces (foot, joints, origin, axes, extent, singular),
    curves (of each plot name, title, x_label, y_label and lines of label, x, y), pictures (paths of
    --plots), other (of OTHER the keys robot to curves; null without it), warnings. SI units,
    radians; null is infinite or not specified.
    docs/actuation.md explains the numbers.

    Examples:
        robomodel actuation planar_leg_linkage
        robomodel actuation four_bar crank_rocker --html both.html
        robomodel actuation four_bar --plots curves --format csv

    Options:
        --rows JOINT,…: Rows for these joints, with commas between. [default: those of limbs]
        --foot LINK[:X,Y,Z]: Find the workspace of this link's origin, or of a point in its axes.
        --plots, --pictures FOLDER: Also write the plots into files of this folder; pictures need
            Matplotlib.
    """
    if joints and foot is None:
        raise UserError("--joint moves a foot: name it by --foot")
    robots = [robot] if other is None else [robot, replace(robot, file=other)]
    models = [each.load() for each in robots]
    studies = []
    for each, model in zip(robots, models, strict=True):
        with blaming(each.file):
            chosen = None if rows is None else [x for x in rows.split(",") if x]
            studies.append(
                rm.actuation(model, chosen, foot=_foot(foot), joints=tuple(joints or ()))
            )
    document = studies[0].document if other is None else studies[0].beside(studies[1])
    paths = [] if plots is None else [str(x) for x in document.write_plots(plots, suffix)]
    second = None if other is None else {**document.data["other"], "file": other}
    data = {**document.data, "file": robot.file, "pictures": paths, "other": second}
    return HasPage(document=replace(document, data=data))


def _foot(text: str | None) -> FrameLike | None:
    """A link, or a link and a point."""
    if text is None or ":" not in text:
        return text
    link, _, point = text.rpartition(":")
    try:
        x, y, z = (float(number) for number in point.split(","))
    except ValueError:
        return text
    return link, (x, y, z)


# ---- compare -------------------------------------------------------------------------------------


def compare(
    robot: Robot,
    other: Annotated[
        str,
        typer.Argument(
            metavar="OTHER",
            help="Another file of the robot, or the name of a shipped one; options for loading are "
            "for both. With --in, the file that the simulators read.",
            autocompletion=complete_robots,
        ),
    ] = "",
    simulators: Annotated[
        str,
        typer.Option(
            "--in",
            metavar="A,B,…",
            help="Compare with what these simulators compute: mujoco, "
            "pinocchio, drake, newton, pybullet, genesis.",
        ),
    ] = "",
    a: str = "",
    b: str = "",
    **options: Annotated[Any, options_of(rm.compare, "tolerance")],
) -> HasPage:
    """List what differs between two files of one robot, the largest effect on torques first.

    Exit status: 0 if nothing differs, 1 if something does. docs/compare.md explains the columns.

    Keys of the JSON document: a, b (the files), same, tolerance, joints (pairs of different names
    that are matched), differences (element, kind, quantity, a, b, torque, cause,
    explanation, source), warnings. SI units; null is infinite or not specified. With --in: robot,
    simulators (a list: simulator, version, file, same, precision, explained, differences: quantity,
    error, worst, detail; verdict, causes).

    Examples:
        robomodel compare four_bar crank_rocker
        robomodel compare puma560 puma560 --b "--rotor joint1:inertia=2e-4,ratio=60"
        robomodel compare puma560 --in mujoco,pinocchio

    Options:
        --a OPTIONS: Options for loading of FILE alone, in quotes.
        --b OPTIONS: Options for loading of OTHER alone, in quotes.
    """
    if simulators:
        return _in_simulators(robot.with_options("--a", a), other, simulators)
    if not other:
        raise UserError("another file, or --in and names of simulators")
    first = robot.with_options("--a", a).load()
    second = replace(robot, file=other).with_options("--b", b).load()
    with blaming(robot.file, status=1):
        comparison = rm.compare(first, second, **options)
    return HasPage(document=comparison.document, status=0 if comparison.same else 1)


def _in_simulators(robot: Robot, file: str, simulators: str) -> HasPage:
    """A robot in several simulators."""
    model = robot.load()
    try:
        found = [rm.compare_in(model, name.strip(), file or None) for name in simulators.split(",")]
    except (ValueError, MissingPackageError) as error:
        raise UserError(str(error)) from error
    document = Document(
        model.name,
        "; ".join(f"{each.simulator} {each.version}: {each.verdict}" for each in found),
        [
            replace(section, title=f"{each.simulator}: {section.title}".removesuffix(": "))
            for each in found
            for section in each.document.sections
        ],
        {"robot": model.name, "simulators": [each.document.data for each in found]},
        kind="comparison",
    )
    return HasPage(document=document, status=0 if all(each.same for each in found) else 1)
