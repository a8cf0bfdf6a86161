"""A cluster over the range of one of its joints; forces as measured and as a fit predicts them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from robomodel.dynamics import armature, crba
from robomodel.dynamics.actuators.envelopes import JointEnvelope, joint_envelopes
from robomodel.identification import Identified
from robomodel.model import Model, build
from robomodel.model.configurations.curves import STEPS, Sweep, curve, sweep
from robomodel.reports import pictures
from robomodel.reports.actuation.document import STEEPEST
from robomodel.reports.identification import force_plots
from robomodel.reports.plots import Line, Plot, bounded


def draw_cluster(
    model: Model, joint: str, path: str | os.PathLike[str], *, steps: int = STEPS
) -> Sweep:
    """Draw positions, transmission ratios (G) and inertias over the range of a joint.

    Three plots: where the other joints of its cluster go; their velocities for unit velocity of
    this joint (its column of G); and its entry of the mass matrix beside the reflected inertia
    (armature) in it. They go as far as limits of the cluster's joints and the linkage itself allow,
    as ``robomodel actuation`` does; lines mark these ends, dead points and change points. A
    dependent joint is made independent for it, in the place of the one of its cluster that moves it
    most at the neutral configuration; q of the result is then that of the model so made. Errors as
    of :func:`sweep`.

    Args:
        model: The robot.
        joint: The joint's name.
        path: The picture; its format is the suffix: .svg, .png or .pdf.
        steps: Into about how many steps the range is divided.

    Returns:
        sweep: What is drawn.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    model = _led_by(model, joint)
    ends = [each for each in joint_envelopes(model) if each.joint == joint]
    within = (ends[0].lower, ends[0].upper) if ends else (-math.inf, math.inf)
    swept = sweep(model, joint, steps=steps, within=within)
    if any("loop" in (each.lower_by, each.upper_by) for each in ends):
        swept = replace(swept, closed=False)
    index = model.dof_names.index(joint)
    cluster = next(c for c in model.clusters if joint in c.joints)
    at = model.joint_positions(swept.q)
    with np.errstate(all="ignore"):
        ratios = model.constraint_jacobian(swept.q)[:, :, index]
        inertia = crba(model, swept.q)[:, index, index]
        reflected = armature(model, swept.q)[:, index]
    others = [
        (model.joints[body], model.nodes[body].v)
        for body in cluster.bodies
        if model.joints[body].name != joint and model.joints[body].nv == 1
    ]
    kinds = {other.units.position for other, _ in others} or {"rad"}
    units = model.joints[cluster.bodies[cluster.joints.index(joint)]].units
    x, along = swept.positions, f"{joint} [{units.position}]"
    positions = [Line(other.name, x, at[other.name]) for other, _ in others]
    velocities = [Line(other.name, x, bounded(ratios[:, v], STEEPEST)) for other, v in others]
    inertias = [
        Line("mass matrix, its entry", x, bounded(inertia, STEEPEST)),
        Line("of it reflected (armature)", x, bounded(reflected, STEEPEST), dashed=True),
    ]
    names: dict[float, list[str]] = {}
    for position, name in _marks(model, joint, ends):
        names.setdefault(round(position, 4), []).append(name)
    marks = [(position, ", ".join(each)) for position, each in names.items()]
    lines = [(position, "") for position in names]
    title = model.name if swept.closed else f"{model.name}: as far as its loops close"
    alone = "no other joint moves with it"
    pictures.draw_plots(
        [
            Plot(title, along, f"position [{', '.join(sorted(kinds, reverse=True))}]", positions,
                 marks=marks, empty=alone),
            Plot("", along, f"velocity for {joint} at 1", velocities, marks=lines, empty=alone),
            Plot("", along, f"inertia [{units.inertia}]", inertias, marks=lines),
        ],
        path,
    )  # fmt: skip
    return swept


def draw_residuals(fit: Identified, path: str | os.PathLike[str]) -> None:
    """Draw measured and predicted forces of each coordinate, and what is left, over time.

    Coordinates without measured forces are left out.

    Args:
        fit: The result of :func:`robomodel.identify`.
        path: The picture; its format is the suffix: .svg, .png or .pdf.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    plots = force_plots(fit, fit.model.dof_names)
    pictures.draw_plots([plot for pair in plots for plot in pair], path, columns=2)


def _marks(model: Model, joint: str, ends: Sequence[JointEnvelope]) -> Iterator[tuple[float, str]]:
    """Position and name of what ends the range, and of singular positions within."""
    for each in ends:
        for position, by in ((each.lower, each.lower_by), (each.upper, each.upper_by)):
            if math.isfinite(position) and by:
                yield position, "linkage" if by == "loop" else f"limit of {by}"
    cluster = next(each for each in model.clusters if joint in each.joints)
    if cluster.implicit:
        singular = curve(model, cluster, joint).singularities
        yield from ((each.position, each.kind) for each in singular if each.reached)


def _led_by(model: Model, name: str) -> Model:
    """The model with this joint among its independent ones."""
    joint = next((each for each in model.joints if each.name == name), None)
    if joint is None or joint.nv != 1 or name in model.dof_names:
        return model
    cluster = next(c for c in model.clusters if name in c.joints)
    body = cluster.bodies[cluster.joints.index(name)]
    row = model.constraint_jacobian(model.neutral())[model.nodes[body].v]
    if not np.any(row[cluster.v]):
        return model
    given_up = model.dof_names[cluster.v.start + int(np.argmax(np.abs(row[cluster.v])))]
    chosen = {name, *cluster.independent} - {given_up}
    joints = tuple(
        replace(each, independent=each.name in chosen) if each.name in cluster.joints else each
        for each in model.description.joints
    )
    return build(replace(model.description, joints=joints))
