"""``robomodel dynamics``: inverse and forward dynamics at a state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
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
    request = Request.of(state, options, position or [])
    model = robot.load()
    at = complete(model, request, seed)
    data = _computed(model, at, passive=passive)
    return Result(
        document=Document(
            model.name, "SI units and radians", list(_sections(model, at, data)), data
        ),
        status=1 if data["finding"] else 0,
        complaint=f"{robot.file}: {data['finding']}" if data["finding"] else "",
    )


# ---- data ----------------------------------------------------------------------------------------


def _computed(model: Model, state: State, *, passive: bool) -> dict[str, Any]:
    """What is computed at a state, by the keys of the JSON document."""
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
    return {
        "robot": model.name,
        "dof_names": model.dof_names,
        "q": q,
        "v": v,
        "a": a,
        "tau": tau,
        "round_trip": round_trip,
        "forward": forward,
        "joint_positions": model.joint_positions(q),
        "joint_velocities": model.joint_velocities(q, v),
        "joint_accelerations": model.joint_accelerations(q, v, a),
        "base_pose": None if model.floating_base is None else q[:7],
        "kinetic_energy": float(kinetic),
        "potential_energy": float(potential),
        "residual": float(np.max(np.abs(model.residual(q)), initial=0.0)),
        "notes": [*state.notes, *_left_out(model, passive=passive)],
        "passive": passive,
        "finding": "; ".join([*state.findings, *([unusable] if unusable else [])]) or None,
    }


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


def _sections(model: Model, state: State, data: Mapping[str, Any]) -> Iterator[Section]:
    notes = list(data["notes"])
    if data["base_pose"] is not None:
        pose = [f"{x:.6g}" for x in data["base_pose"]]
        notes.append(f"base: position {' '.join(pose[:3])}, quaternion {' '.join(pose[3:])}")
    gap = f"{data['round_trip']:.1e}"
    forward = (
        f"a': forward dynamics of tau; max |a' - a| = {gap}"
        if state.tau is None
        else f"a': forward dynamics of --tau (of tau it differs from a by {gap})"
    )
    columns = {"v": state.v, "a": state.a, "tau": data["tau"]}
    if state.tau is not None:
        columns["--tau"] = state.tau
    columns["a'"] = data["forward"]["a"]
    at = data["joint_positions"]
    rows: list[list[Cell]] = [
        [name, float(at[name]) if name in at else None, *map(float, row)]
        for name, row in zip(model.dof_names, zip(*columns.values(), strict=True), strict=True)
    ]
    table = Table(["dof", "q", *columns], rows)
    yield Section("", [*notes, "", table, "", "tau: inverse dynamics of a", forward])
    motion = [data[f"joint_{what}"] for what in ("positions", "velocities", "accelerations")]
    dependent: list[list[Cell]] = [
        [joint.name, *(float(values[joint.name]) for values in motion)]
        for joint in model.joints
        if not joint.independent and joint.nv == 1
    ]
    yield Section("Dependent joints", [Table(["joint", "q", "v", "a"], dependent)])
    energies = (
        f"kinetic energy {data['kinetic_energy']:.6g} J, "
        f"potential energy {data['potential_energy']:.6g} J"
    )
    tied = bool(model.loops or model.couplings)
    residual = [f"residual of the constraints {data['residual']:.1e}"] if tied else []
    yield Section("", ["", energies, *residual])
