"""``robomodel dynamics``: inverse and forward dynamics at a state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from robomodel import dynamics as compute
from robomodel.cli.common import Result
from robomodel.cli.robot import Robot
from robomodel.cli.state import Request, State, complete
from robomodel.model import Model
from robomodel.model.elements import Joint
from robomodel.model.joints import Array
from robomodel.model.springs import Spring
from robomodel.reports.document import Cell, Document, Section, Table

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
    state: Path | None = None,
    q: str | None = None,
    v: str | None = None,
    a: str | None = None,
    tau: str | None = None,
    position: list[str] | None = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Draw at random what is not given. [default: 0]"),
    ] = None,
    passive: bool = False,
) -> Result:
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
    couplings), notes, passive (whether springs and damping are counted), finding (null, or why the
    exit status is 1), warnings. SI units, radians; null is not a number.

    Options:
        --state FILE.json: Read the state from a JSON object with any of the keys q, v, a, tau,
            positions (joint: position). What --json prints can be read again. Options overrule it.
        --q NUMBERS: Positions, nq of them; closed if they are not.
        --v NUMBERS: Velocities, nv of them.
        --a NUMBERS: Accelerations, nv of them.
        --tau NUMBERS: Forces for forward dynamics, nv of them.
        --position JOINT=VALUE: A joint's position, once for each joint; loops are solved for the
            rest.
        --passive: Include the springs and the viscous damping of the file.
    """
    options = {"q": q, "v": v, "a": a, "tau": tau}
    printed = {"warnings", *(field.name for field in fields(Findings))}
    request = Request.of(state, options, position or [], printed)
    model = robot.load()
    at = complete(model, request, seed)
    results = _findings(model, robot.file, at, passive=passive)
    sections = list(_sections(model, results, given=at.tau is not None))
    return Result(
        document=Document(model.name, "SI units and radians", sections, vars(results)),
        status=1 if results.finding else 0,
        complaint=f"{robot.file}: {results.finding}" if results.finding else "",
    )


# ---- data ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Findings:
    """What is computed at a state; its fields are keys of the JSON document."""

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
    passive: bool
    finding: str | None


def _findings(model: Model, file: str, state: State, *, passive: bool) -> Findings:
    q, v, a = state.q, state.v, state.a
    # one state is not worth compiling for
    tau = compute.rnea(model, q, v, a, passive=passive, backend="numpy")
    back = compute.aba(model, q, v, tau, passive=passive, backend="numpy")
    forward = {"tau": tau, "a": back}
    if state.tau is not None:
        pushed = compute.aba(model, q, v, state.tau, passive=passive, backend="numpy")
        forward = {"tau": state.tau, "a": pushed}
    with np.errstate(all="ignore"):
        round_trip = float(np.max(np.abs(back - a), initial=0.0))
    kinetic, potential = compute.energy(model, q, v, backend="numpy")
    unusable = _finding(model, state, tau, round_trip, forward["a"])
    return Findings(
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
        notes=[*state.notes, *_left_out(model, passive=passive)],
        passive=passive,
        finding="; ".join([*state.findings, *([unusable] if unusable else [])]) or None,
    )


def _left_out(model: Model, *, passive: bool) -> Iterator[str]:
    """Which passive forces of the file are not in tau."""
    sprung: list[Joint | Spring] = [*model.joints, *model.springs]
    if not passive and any(each.damping or each.stiffness for each in sprung):
        yield "springs and damping of the file are left out; --passive counts them"
    if any(each.friction for each in sprung):
        yield "dry friction of the file is left out"


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


# ---- text ----------------------------------------------------------------------------------------


def _sections(model: Model, results: Findings, *, given: bool) -> Iterator[Section]:
    notes = list(results.notes)
    if results.base_pose is not None:
        pose = [f"{x:.6g}" for x in results.base_pose]
        notes.append(f"base: position {' '.join(pose[:3])}, quaternion {' '.join(pose[3:])}")
    gap = f"{results.round_trip:.1e}"
    forward = (
        f"a': forward dynamics of --tau (of tau it differs from a by {gap})"
        if given
        else f"a': forward dynamics of tau; max |a' - a| = {gap}"
    )
    yield Section(
        "",
        [*notes, "", _dof_table(results, given=given), "", "tau: inverse dynamics of a", forward],
    )
    names = [joint.name for joint in model.joints if not joint.independent and joint.nv == 1]
    if names:
        motion = (results.joint_positions, results.joint_velocities, results.joint_accelerations)
        rows: list[list[Cell]] = [
            [name, *(float(values[name]) for values in motion)] for name in names
        ]
        yield Section("Dependent joints", [Table(["joint", "q", "v", "a"], rows)])
    energies = (
        f"kinetic energy {results.kinetic_energy:.6g} J, "
        f"potential energy {results.potential_energy:.6g} J"
    )
    tied = bool(model.loops or model.couplings)
    residual = [f"residual of the constraints {results.residual:.1e}"] if tied else []
    yield Section("", ["", energies, *residual])


def _dof_table(results: Findings, *, given: bool) -> Table:
    columns = {"v": results.v, "a": results.a, "tau": results.tau}
    if given:
        columns["--tau"] = results.forward["tau"]
    columns["a'"] = results.forward["a"]
    rows: list[list[Cell]] = [
        [name, float(results.joint_positions[name]) if name in results.joint_positions else None,
         *(float(column[i]) for column in columns.values())]
        for i, name in enumerate(results.dof_names)
    ]  # fmt: skip
    return Table(["dof", "q", *columns], rows)
