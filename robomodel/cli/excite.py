"""``robomodel excite``: a motion from which a robot's parameters can be identified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robomodel.cli.common import blaming, in_options, named_number
from robomodel.cli.robot import Robot
from robomodel.identification import excitation
from robomodel.reports.document import Bullets, Document, Section

SHOWN = 12  # limits

EXAMPLES = (
    "robomodel excite four_bar -o motion.csv",
    "robomodel excite puma560 -o motion.csv --harmonics 3 --tries 1",
)


OPTIONS = {
    excitation: (
        "period", "harmonics", "step", "reach", "margin", "criterion", "tries", "seed",
    ),
}  # fmt: skip


def command(
    robot: Robot,
    output: Path,
    joint: list[str] | None = None,
    velocity: list[str] | None = None,
    acceleration: list[str] | None = None,
    torque: list[str] | None = None,
    **options: Any,
) -> Document:
    """Plan a motion that identifies a robot's parameters well, within all limits.

    It is periodic, begins and ends at rest, and its loops are closed at each sample.
    docs/parameters.md explains it.

    Keys of the JSON document: robot, file, output, samples, period, rank, condition, information,
    limits (of each name, quantity, lower, upper, share), notes.

    Options:
        -o, --output MOTION.csv: Where to write the motion, as robomodel identify reads it: time,
            q., v., a. and tau. of each coordinate, the forces as the file's parameters predict
            them.
        --joint JOINT: An independent joint that moves; may be given several times (default: all).
        --velocity [JOINT=]MOST: A limit besides the file's, of one joint or of all that move; may
            be given several times, as --acceleration and --torque may.
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
    notes = tuple(map(in_options, motion.notes))
    data = {
        "robot": model.name,
        "output": str(output),
        "samples": len(motion.t),
        "period": options["period"],
        "rank": motion.rank,
        "condition": motion.condition,
        "information": motion.information,
        "limits": motion.limits,
        "notes": notes,
    }
    summary = (
        f"{len(motion.t)} samples of {options['period']:g} s, condition "
        f"{motion.condition:.3g} of {motion.rank} base parameters"
    )
    sections = [
        Section("", [f"{output} written"]),
        Section("Limits reached", [Bullets([str(each) for each in motion.reached[:SHOWN]])]),
        Section("Notes", [Bullets(notes)]),
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
