"""``robomodel compare``: what differs between two files of one robot."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

import robomodel as rm
from robomodel.cli.common import (
    HasPage,
    UserError,
    blaming,
    complete_robots,
    options_of,
)
from robomodel.cli.robot import Robot
from robomodel.errors import MissingPackageError
from robomodel.reports.document import Document


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
