"""``robomodel dynamics``: inverse and forward dynamics at a state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from robomodel import dynamics as compute
from robomodel.cli import complete as complete_names
from robomodel.cli.frame import Answer
from robomodel.cli.output import short, table
from robomodel.cli.robot import Robot
from robomodel.cli.state import State, asked, complete
from robomodel.model import Model
from robomodel.model.joints import Array

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

ROUND_TRIP = 1e-6  # relative; forward dynamics of a regular state returns a far better than this


def _numbers(what: str) -> Any:
    return typer.Option(metavar="NUMBERS", help=what)


EXAMPLES = (
    "robomodel dynamics four_bar",
    "robomodel dynamics four_bar --position joint1=0.4 --v 2",
    "robomodel dynamics puma560 --seed 1 --json",
)


def command(
    robot: Robot,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Read the state from a JSON object with any of the keys q, v, a, tau, positions "
            "(joint: position). What --json prints can be read again. Options overrule it.",
        ),
    ] = None,
    q: Annotated[str | None, _numbers("Positions, nq of them; closed if they are not.")] = None,
    v: Annotated[str | None, _numbers("Velocities, nv of them.")] = None,
    a: Annotated[str | None, _numbers("Accelerations, nv of them.")] = None,
    tau: Annotated[str | None, _numbers("Forces for forward dynamics, nv of them.")] = None,
    position: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOINT=VALUE",
            autocompletion=complete_names.joints("="),
            help="A joint's position, once for each joint; loops are solved for the rest.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Draw at random what is not given. [default: 0]"),
    ] = None,
) -> Answer:
    """Compute inverse and forward dynamics at a state.

    NUMBERS are separated by commas or spaces; 'robomodel info' gives their order. Inverse dynamics
    gives tau from q, v, a; forward dynamics gives a' from --tau, or from that tau as a check.
    Without q and positions the state is random and closed; with them, v and a are zero unless they
    or --seed are given.

    A q that is no state is closed. That, joints beyond their limits, and independent joints that
    positions of other joints move, are findings: exit status 1.

    Keys of the JSON document: robot, file, dof_names, q, v, a, tau (inverse dynamics), round_trip
    (largest difference of a from the forward dynamics of tau), forward (tau: as given, else the
    above; a: its forward dynamics), joint_positions, joint_velocities, joint_accelerations,
    base_pose (null, or x y z qx qy qz qw), kinetic_energy, potential_energy, residual (of loops and
    couplings), notes, finding (null, or why the exit status is 1), warnings. SI units, radians;
    null is not a number.
    """
    options = {"q": q, "v": v, "a": a, "tau": tau}
    printed = {"warnings", *(field.name for field in fields(Report))}
    words = asked(state, options, position or [], printed)
    model = robot.load()
    at = complete(model, words, seed)
    report = _report(model, robot.file, at)
    return Answer(
        document=vars(report),
        show=lambda to: _show(model, report, to, given=at.tau is not None),
        status=1 if report.finding else 0,
        complaint=f"{robot.file}: {report.finding}" if report.finding else "",
    )


# ---- what is said of a state ---------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """What is said of a state; its fields are keys of the JSON document."""

    robot: str
    file: str
    dof_names: Sequence[str]
    q: Array
    v: Array
    a: Array
    tau: Array
    round_trip: float
    forward: dict[str, Array]
    joint_positions: dict[str, Array]
    joint_velocities: dict[str, Array]
    joint_accelerations: dict[str, Array]
    base_pose: Array | None
    kinetic_energy: float
    potential_energy: float
    residual: float
    notes: list[str]
    finding: str | None


def _report(model: Model, file: str, state: State) -> Report:
    q, v, a = state.q, state.v, state.a
    # one state is not worth compiling for
    tau = compute.rnea(model, q, v, a, backend="numpy")
    back = compute.aba(model, q, v, tau, backend="numpy")
    forward = {"tau": tau, "a": back}
    if state.tau is not None:
        forward = {"tau": state.tau, "a": compute.aba(model, q, v, state.tau, backend="numpy")}
    with np.errstate(all="ignore"):
        round_trip = float(np.max(np.abs(back - a), initial=0.0))
    kinetic, potential = compute.energy(model, q, v, backend="numpy")
    unusable = _finding(model, state, tau, round_trip, forward["a"])
    return Report(
        robot=model.name,
        file=file,
        dof_names=model.dof_names,
        q=q,
        v=v,
        a=a,
        tau=tau,
        round_trip=round_trip,
        forward=forward,
        joint_positions=model.joint_positions(q),
        joint_velocities=model.joint_velocities(q, v),
        joint_accelerations=model.joint_accelerations(q, v, a),
        base_pose=None if model.floating_base is None else q[:7],
        kinetic_energy=float(kinetic),
        potential_energy=float(potential),
        residual=float(np.max(np.abs(model.residual(q)), initial=0.0)),
        notes=state.notes,
        finding="; ".join([*state.findings, *([unusable] if unusable else [])]) or None,
    )


def _finding(
    model: Model, state: State, tau: Array, round_trip: float, forward: Array
) -> str | None:
    """Why these results are of no use, if they are not."""
    if not np.all(np.isfinite(tau)):
        if np.all(np.isfinite(model.constraint_jacobian(state.q))):
            return "inverse dynamics is not a number: these velocities or accelerations overflow"
        return "singular state: a loop's independent joints do not say how its other joints move"
    if not (math.isfinite(round_trip) and np.all(np.isfinite(forward))):
        return "forward dynamics is not a number: the mass matrix is singular at this state"
    if round_trip > ROUND_TRIP * max(1.0, float(np.max(np.abs(state.a), initial=0.0))):
        return f"nearly singular state: forward dynamics misses a by {round_trip:.1g}"
    return None


# ---- as text -------------------------------------------------------------------------------------


def _show(model: Model, report: Report, to: Console, *, given: bool) -> None:
    to.print(f"{report.robot}, SI units and radians")
    for note in report.notes:
        to.print(note)
    if report.base_pose is not None:
        pose = [short(x) for x in report.base_pose]
        to.print(f"base: position {' '.join(pose[:3])}, quaternion {' '.join(pose[3:])}")
    to.print()
    to.print(_dof_table(report, given=given))
    to.print("\ntau: inverse dynamics of a")
    gap = f"{report.round_trip:.1e}"
    if given:
        to.print(f"a': forward dynamics of --tau (of tau it differs from a by {gap})")
    else:
        to.print(f"a': forward dynamics of tau; max |a' - a| = {gap}")
    dependent = [joint.name for joint in model.joints if not joint.independent and joint.nv == 1]
    if dependent:
        to.print("\nDependent joints")
        to.print(_dependent_table(report, dependent))
    to.print(
        f"\nkinetic energy {short(report.kinetic_energy)} J, "
        f"potential energy {short(report.potential_energy)} J"
    )
    if model.loops or model.couplings:
        to.print(f"residual of the constraints {report.residual:.1e}")


def _dof_table(report: Report, *, given: bool) -> Table:
    columns = {">v": report.v, ">a": report.a, ">tau": report.tau}
    if given:
        columns[">--tau"] = report.forward["tau"]
    columns[">a'"] = report.forward["a"]
    result = table("dof", ">q", *columns)
    for i, name in enumerate(report.dof_names):
        position = short(report.joint_positions[name]) if name in report.joint_positions else ""
        result.add_row(name, position, *(short(column[i]) for column in columns.values()))
    return result


def _dependent_table(report: Report, names: Sequence[str]) -> Table:
    motion = (report.joint_positions, report.joint_velocities, report.joint_accelerations)
    result = table("joint", ">q", ">v", ">a")
    for name in names:
        result.add_row(name, *(short(values[name]) for values in motion))
    return result
