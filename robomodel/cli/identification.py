"""``robomodel identify``, ``calibrate``, ``excite``: parameters from logs, and motions for logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import ArrayLike

import robomodel as rm
from robomodel.cli.common import HasPage, UserError, blaming, named_number, options_of
from robomodel.cli.files import WRITERS, form_of
from robomodel.cli.robot import Robot
from robomodel.dynamics.kinematics.frames import FrameLike
from robomodel.errors import DescriptionWarning, Interrupted, check_names, did_you_mean, few, warn
from robomodel.identification import (
    BaseParameters,
    Identified,
    base_parameters,
    excitation,
    predicted,
    read_log,
)
from robomodel.identification.logs import Log, read_readings
from robomodel.model import Model
from robomodel.reports.document import Bullets, Document, Section, Table
from robomodel.reports.identification import by_owner, document

READING = "topic velocities"


def identify(
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
    output: Path | None = None,
    free: list[str] | None = None,
    constant: list[str] | None = None,
    plot: Path | None = None,
    what: bool = False,
    measured: list[str] | None = None,
    contact: list[str] | None = None,
    rename: list[str] | None = None,
    predict: bool = False,
    **options: Annotated[
        Any,
        options_of(
            rm.identify,
            "prior robust balanced cutoff offsets ratios stribeck asymmetric friction losses "
            "delays folds",
        ),
        options_of(read_log, READING),
    ],
) -> HasPage:
    """Identify a robot's parameters from a log of its motion, or list what is identifiable.

    Bodies stay physically consistent. docs/identification.md explains it.

    Keys of the JSON document: robot, file, output, lost (with -o: what the format cannot say),
    samples, coordinates (of each name, residual, before, forces and validation: root mean squares;
    effective: independent samples that tell as
    much), groups (combinations that forces can tell: of each name, value, deviation, unit,
    information_gain, coefficients by parameter, and pivot, its first parameter), parameters (of
    each name, before, value, deviation and information_gain), changes (combinations by the forces
    that their change makes: of each group, before, coordinate, force and share), sensors (of each
    kind, name, value and deviation), forms (of friction, with --friction auto: of each form, share,
    joints, offset, one_way, gears and chosen), unknown (names of those of which the log told less
    than a tenth), unused (columns), notes, suspicions (units, signs, limits and delays that cannot
    be: the exit status is then 1).

    With --what, of motions with closed loops, near the neutral configuration's branch: robot, file,
    rank, parameters (their names), base (of each base parameter name and coefficients by
    parameter), alone (parameters told by themselves), together (told in combinations only),
    never (without any effect), gap (kept, dropped: singular values between which the rank was
    decided, of the largest) and method.

    Examples:
        robomodel excite four_bar -o motion.csv
        robomodel identify four_bar motion.csv -o identified.urdf
        robomodel identify four_bar --what

    Options:
        -o, --output OUT: The robot with the identified parameters; its ending says the format:
            .urdf, .sdf, .world, .xml, .mjcf. With --what: the file to write instead of printing.
        --free NAME: What may change: a kind (mass, damping, inertial, …), a parameter, a body, a
            joint or a pattern of names; may be repeated (default: all but armatures of
            geared joints).
        --constant ACTUATOR=NUMBER: A torque constant [N m/A]; 'unknown' for all, or as a number, to
            find it; may be repeated (default: the file's).
        --plot PICTURE: Forces and residuals as a picture (.svg, .png, .pdf); needs matplotlib.
        --what: Print what forces can tell of masses, inertias and losses, and what never.
        --measured JOINT: A coordinate whose force is known, or 'actuators'; may be repeated
            (default: all).
        --contact LINK: A link on which an unknown wrench acts; may be repeated.
        --rename OLD=NEW: A column of another name, as position_pan=q.pan; may be repeated.
        --predict: Predict the log's forces with the file's parameters, and fit nothing: of a log
            that a fit has not used.
    """
    if what == (log is not None):
        raise UserError("give a log, or --what to list what forces can identify")
    reading = {name: options.pop(name) for name in READING.split()}
    reading["rename"] = dict(map(_renaming, rename or ()))
    if predict:
        if log is None:
            raise UserError("--predict needs a log")
        return _identified(
            robot, log, reading, output, plot, {"cutoff": options["cutoff"]}, predicted
        )
    if log is not None:
        options |= {"free": free or None, "constants": _constants(constant or [])}
        return _identified(robot, log, reading, output, plot, options)
    model = robot.load()
    forces = None if not measured else measured[0] if measured == ["actuators"] else measured
    with blaming(robot.file):
        base = base_parameters(model, measured=forces, contacts=contact or ())
    return HasPage(
        document=_base_document(model, base, _forces(model, measured, contact)), output=output
    )


def _renaming(text: str) -> tuple[str, str]:
    """The two names in a value of ``--rename``."""
    old, _, new = text.rpartition("=")
    if not old or not new:
        raise UserError(f"--rename {text}: write it as OLD=NEW")
    return old, new


def _constants(texts: list[str]) -> str | dict[str, float] | None:
    """Torque constants by actuator; nan for those to be identified."""
    if texts == ["unknown"]:
        return "unknown"
    numbers = (text.removesuffix("unknown") + "nan" if text.endswith("=unknown") else text
               for text in texts)  # fmt: skip
    form = "ACTUATOR=NUMBER, or 'unknown'"
    return dict(named_number("--constant", text, form) for text in numbers) or None


def _identified(
    robot: Robot,
    path: Path,
    reading: dict[str, Any],
    output: Path | None,
    plot: Path | None,
    options: dict[str, Any],
    fitted: Callable[..., Identified] = rm.identify,
) -> HasPage:
    """Read, fit or predict, write and report."""
    form = None if output is None else form_of(output)
    model = robot.load()
    with blaming(str(path)):
        log = read_log(model, path, **reading)
        try:
            fit = fitted(model, log, **options)
        except KeyboardInterrupt as pressed:
            raise Interrupted("the fit", _what_was_read(model, log, path)) from pressed
    if plot is not None:
        from robomodel.views import draw_residuals

        draw_residuals(fit, plot)
    report = document(fit, model, path.name, log.unused)
    if output is not None and form is not None:
        with blaming(str(output)):
            lost = WRITERS[form](fit.model, output, drop=True)
        if lost:
            warn(DescriptionWarning(f"{output} is without {few(lost)}: URDF has words for all"))
        report = replace(
            report,
            data={**report.data, "output": str(output), "lost": lost},
            sections=[Section("", [f"{output} written"]), *report.sections],
        )
    return HasPage(document=report, status=1 if fit.suspicions else 0)


def _what_was_read(model: Model, log: Log, path: Path) -> HasPage:
    """The log's samples, before any fit."""
    forces, kind = (log.currents, "currents") if log.tau is None else (log.tau, "forces")
    known = int(np.sum(np.isfinite(forces))) if forces is not None else 0
    said = f"{len(log.v)} samples of {path.name}, {known} {kind}; nothing is fitted"
    sections = [
        Section("Notes", [Bullets(log.notes)]),
        Section("Columns that were not used", [Bullets(log.unused)]),
    ]
    data = {"samples": len(log.v), "unused": log.unused}
    return HasPage(document=Document(model.name, said, sections, data=data))


def _forces(model: Model, measured: list[str] | None, contacts: list[str] | None) -> str:
    """A sentence on which forces are measured."""
    if measured or contacts:
        where = ", ".join(measured) if measured else "all coordinates"
        also = f"; unknown wrenches act on {', '.join(contacts)}" if contacts else ""
        return f"Forces are known in {where}{also}."
    if model.floating_base is None:
        return "Forces are known in all coordinates."
    return (
        "Forces are known in all coordinates; those of the floating base are zero, or the "
        "contacts' as measured."
    )


def _base_document(model: Model, base: BaseParameters, forces: str) -> Document:
    rows = [
        {n: float(x) for n, x in zip(base.parameters, row, strict=True) if x} for row in base.matrix
    ]
    data = {
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
    }
    notes = [forces]
    if any(cluster.implicit for cluster in model.clusters):
        notes.append("Loops move on the neutral configuration's branch.")
    # between singular values closer to each other than this the rank is in doubt
    if base.gap.ratio < 1e4:
        notes.append("The gap is narrow: the robot's geometry is nearly special.")
    combined = [each for each in base.names if " of " in each.partition(" of ")[2]]
    sections = [
        Section("", notes),
        Section("By themselves", [Bullets(by_owner(base.alone))]),
        Section("In combinations: each sum, and never its terms apart", [Bullets(combined)]),
        Section("Never: without effect on any force", [Bullets(by_owner(base.never))]),
    ]
    summary = (
        f"forces identify {base.rank} combinations of {len(base.parameters)} parameters "
        f"(gap {base.gap.ratio:.0e})"
    )
    return Document(model.name, summary, sections, data)


# ---- calibrate -----------------------------------------------------------------------------------


def calibrate(
    robot: Robot,
    readings: Annotated[
        Path | None,
        typer.Argument(
            metavar="READINGS",
            help="Positions, a row for each configuration: CSV or Parquet. Columns: q.JOINT of "
            "more joints than the robot has freedoms, as at both ends of a gear [rad, m]; "
            "p.LINK.x .y .z, where a tracker sees a link's origin in the world [m]. Empty cells "
            "are unknown.",
        ),
    ] = None,
    output: Path | None = None,
    free: list[str] | None = None,
    sensor: list[str] | None = None,
    tracker: float = 1.0,
    rename: list[str] | None = None,
    what: bool = False,
    **options: Annotated[Any, options_of(rm.calibrate, "robust")],
) -> HasPage:
    """Calibrate lengths, anchors, offsets and ratios from measured positions.

    Loops have more joints than freedoms, so that encoders tell geometry.
    docs/calibration.md explains it.

    Keys of the JSON document: robot, file, output, samples, parameters (of each name, before,
    value, deviation, null where nothing tells it), unknown (groups of names that the readings
    cannot tell better than the file), residual (root mean squares by sensor), unused (columns).

    Examples:
        robomodel calibrate four_bar --what --free joint2.x --free joint3.rz
        robomodel calibrate parallel_ankle --what --free '*rod.length'

    Options:
        -o, --output OUT: The robot with the calibrated geometry; its ending says the format: .urdf,
            .sdf, .world, .xml, .mjcf.
        --free NAME: What to find, by name or pattern of names, as '*.length', hip.x or knee.rz (the
            offset of an encoder at a hinge about z); may be repeated. rm.parameters(model,
            geometry=True) lists all.
        --sensor JOINT: With --what, a joint that has an encoder; may be repeated (default: all).
        --tracker SHARE: Standard deviation of tracked positions [m] by that of encoders [rad].
        --rename OLD=NEW: A column of another name, as knee_pos=q.knee; may be repeated.
        --what: Print what could be told by encoders, without readings.
    """
    if what == (readings is not None):
        raise UserError("give readings, or --what to list what they could determine")
    form = None if output is None else form_of(output)
    model = robot.load()
    names = _free(model, free or [])
    unused: tuple[str, ...] = ()
    frames: dict[FrameLike, ArrayLike] = {}
    with blaming(robot.file if readings is None else str(readings)):
        if readings is None:
            rng = np.random.default_rng(0)
            q = [model.random_configuration(rng) for _ in range(60)]  # readings for --what
            at = model.joint_positions(np.array(q))
            single = [j.name for j in model.joints if j.nv == 1]
            sensors = tuple(sensor or single)
            check_names(sensors, single, "--sensor: no joint with one freedom ")
            measured = np.stack([at[name] for name in sensors], axis=-1)
        else:
            given = read_readings(model, readings, rename=dict(map(_renaming, rename or ())))
            sensors, measured, unused = given.sensors, given.measured, given.unused
            frames.update(given.frames)
        noise = np.array([1.0] * len(sensors) + [tracker] * 3 * len(frames))
        fit = rm.calibrate(
            model, measured, names, sensors=sensors, frames=frames, noise=noise, **options
        )
    labels = [*sensors, *(f"{link}.{axis}" for link in frames for axis in "xyz")]
    report = _calibrated(model, fit, labels, unused, what=what)
    if output is not None and form is not None:
        with blaming(str(output)):
            WRITERS[form](fit.model, output)
        report = replace(
            report,
            data={**report.data, "output": str(output)},
            sections=[Section("", [f"{output} written"]), *report.sections],
        )
    return HasPage(document=report)


def _free(model: Model, patterns: Sequence[str]) -> list[str]:
    """The parameters of geometry that patterns name."""
    inertial = set(rm.parameters(model).names)
    every = [n for n in rm.parameters(model, geometry=True).names if n not in inertial]
    if not patterns:
        raise UserError(f"--free says what to find, as {', '.join(every[:3])} or '*.length'")
    chosen: list[str] = []
    for pattern in patterns:
        matches = [name for name in every if fnmatchcase(name, pattern)]
        if not matches:
            raise UserError(f"--free: no parameter '{pattern}'{did_you_mean(pattern, every)}")
        chosen += [name for name in matches if name not in chosen]
    return chosen


def _calibrated(
    model: Model,
    fit: rm.identification.Calibration,
    labels: Sequence[str],
    unused: Sequence[str],
    *,
    what: bool,
) -> Document:
    """The report of a calibration; with ``what``, of what could be told."""
    before = rm.parameters(model, geometry=True)
    lost = {name for group in fit.unknown for name in group}
    together = [", ".join(group) for group in fit.unknown]
    sums = [f"{each}: only together" if ", " in each else each for each in together]
    told = [name for name in fit.names if name not in lost]
    unknown = Section("What the readings do not determine better than the file", [Bullets(sums)])
    data: dict[str, Any] = {"robot": model.name, "unknown": fit.unknown, "unused": unused}
    if what:
        data["parameters"] = [{"name": name, "told": name not in lost} for name in fit.names]
        summary = (
            f"encoders at {len(labels)} joints determine {len(told)} of {len(fit.names)} by itself"
        )
        sections = [Section("By themselves", [Bullets(told)]), unknown]
        return Document(model.name, summary, sections, data)
    rows, entries = [], []
    for name, value in zip(fit.names, fit.values.tolist(), strict=True):
        deviation = fit.sigmas[name]
        sure = deviation if np.isfinite(deviation) else None
        rows.append([name, before[name], value, value - before[name], sure])
        entries.append({"name": name, "before": before[name], "value": value, "deviation": sure})
    residual = dict(zip(labels, fit.residual.tolist(), strict=True))
    data |= {"samples": len(fit.q), "parameters": entries, "residual": residual}
    columns = ["parameter", "file", "value", "change", "deviation [SI]"]
    grey = [n for n, name in enumerate(fit.names) if name in lost]
    sections = [
        Section("Parameters", [Table(columns, rows, 6, grey)]),
        unknown,
        Section(
            "Residuals (root mean square)",
            [Table(["sensor", "[rad, m]"], [[n, x] for n, x in residual.items()], 3)],
        ),
        Section("Columns that were not used", [Bullets(list(unused))]),
    ]
    summary = f"{len(fit.q)} configurations determine {len(told)} of {len(fit.names)} parameters"
    return Document(model.name, summary, sections, data)


# ---- excite --------------------------------------------------------------------------------------


def excite(
    robot: Robot,
    output: Path,
    joint: list[str] | None = None,
    velocity: list[str] | None = None,
    acceleration: list[str] | None = None,
    torque: list[str] | None = None,
    **options: Annotated[
        Any,
        options_of(excitation, "period harmonics step reach margin losses criterion tries seed"),
    ],
) -> Document:
    """Plan a motion that identifies a robot's parameters well, within all limits.

    It is periodic, begins and ends at rest, and its loops are closed at each sample.
    docs/identification.md explains it.

    Keys of the JSON document: robot, file, output, samples, period, rank, condition, information,
    limits (of each name, quantity, lower, upper, share), notes.

    Examples:
        robomodel excite four_bar -o motion.csv
        robomodel excite puma560 -o motion.csv --harmonics 3 --tries 1

    Options:
        -o, --output MOTION.csv: Where to write the motion, as robomodel identify reads it: time,
            q., v., a. and tau. of each coordinate, the forces as the file's parameters predict
            them.
        --joint JOINT: An independent joint that moves; may be repeated (default: all).
        --velocity [JOINT=]MOST: A limit besides the file's, of one joint or of all that move; may
            be repeated, as --acceleration and --torque may.
        --acceleration [JOINT=]MOST: In the same way.
        --torque [JOINT=]MOST: In the same way, of forces on coordinates.
    """
    model = robot.load()
    names = model.dof_names
    with blaming(robot.file):
        motion = excitation(
            model, joints=joint or None, velocity=_most(names, velocity, "--velocity"),
            acceleration=_most(names, acceleration, "--acceleration"),
            torque=_most(names, torque, "--torque"), **options,
        )  # fmt: skip
    motion.save(output)
    data = {
        "robot": model.name,
        "output": str(output),
        "samples": len(motion.t),
        "period": options["period"],
        "rank": motion.rank,
        "condition": motion.condition,
        "information": motion.information,
        "limits": motion.limits,
        "notes": motion.notes,
    }
    summary = (
        f"{len(motion.t)} samples of {options['period']:g} s, condition "
        f"{motion.condition:.3g} of {motion.rank} base parameters"
    )
    sections = [
        Section("", [f"{output} written"]),
        Section("Limits reached", [Bullets([str(each) for each in motion.reached[:12]])]),
        Section("Notes", [Bullets(motion.notes)]),
    ]
    return Document(model.name, summary, sections, data)


def _most(
    names: tuple[str, ...], texts: list[str] | None, option: str
) -> float | dict[str, float] | None:
    """Limits by name; a single number is for all."""
    if not texts:
        return None
    limits = dict(named_number(option, text, "[JOINT=]NUMBER") for text in texts)
    if "" not in limits:
        return limits
    alone = limits.pop("")
    return dict.fromkeys(names, alone) | limits if limits else alone
