"""What a cluster does over the range of one of its independent joints."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from robomodel.dynamics import armature, crba
from robomodel.dynamics.actuators.envelopes import INSIDE, JointEnvelope, joint_envelopes
from robomodel.model import Model, build
from robomodel.model.configurations.sweeps import STEPS, Sweep, sweep
from robomodel.reports import pictures
from robomodel.reports.actuation.document import STEEPEST
from robomodel.reports.plots import bounded
from robomodel.reports.validation.context import CheckContext


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
    found = sweep(model, joint, steps=steps)
    ends = [each for each in joint_envelopes(model) if each.joint == joint]
    if ends:
        found = _within(model, found, ends[0])
    index = model.dof_names.index(joint)
    cluster = next(c for c in model.clusters if joint in c.joints)
    at = model.joint_positions(found.q)
    with np.errstate(all="ignore"):
        ratios = model.constraint_jacobian(found.q)[:, :, index]
        inertia = crba(model, found.q)[:, index, index]
        reflected = armature(model, found.q)[:, index]
    drawn = pictures.figure(7.0, 8.0)
    above, middle, below = drawn.subplots(3, 1, sharex=True)
    kinds = set()
    for body in cluster.bodies:
        name, node = model.joints[body].name, model.nodes[body]
        if name == joint or node.joint.nv != 1:
            continue
        kinds.add("m" if model.joints[body].type == "prismatic" else "rad")
        above.plot(found.positions, at[name], label=name)
        middle.plot(found.positions, bounded(ratios[:, node.v], STEEPEST), label=name)
    below.plot(found.positions, bounded(inertia, STEEPEST), label="mass matrix, its entry")
    below.plot(
        found.positions, bounded(reflected, STEEPEST), "--", label="of it reflected (armature)"
    )
    sliding = model.joints[cluster.bodies[cluster.joints.index(joint)]].type == "prismatic"
    above.set_ylabel(f"position [{', '.join(sorted(kinds, reverse=True)) or 'rad'}]")
    middle.set_ylabel(f"velocity for {joint} at 1")
    below.set_ylabel("inertia [kg]" if sliding else "inertia [kg m²]")
    below.set_xlabel(f"{joint} [{'m' if sliding else 'rad'}]")
    above.set_title(model.name if found.closed else f"{model.name}: as far as its loops close")
    for axes in (above, middle, below):
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8)
        else:
            axes.text(0.5, 0.5, "no other joint moves with it", transform=axes.transAxes,
                      ha="center", va="center")  # fmt: skip
        for position, name, colour in _marks(model, joint, ends):
            axes.axvline(position, color=colour, linewidth=0.9, linestyle=":")
            if axes is above:
                axes.annotate(name, (position, 1.0), xycoords=("data", "axes fraction"), fontsize=7,
                              rotation=90, va="top", ha="right", color=colour)  # fmt: skip
    drawn.align_ylabels()
    drawn.tight_layout()
    pictures.save(drawn, path)
    return found


def _within(model: Model, found: Sweep, ends: JointEnvelope) -> Sweep:
    """The part of a sweep within the limits of all joints of the cluster, up to its very ends."""
    at = found.positions
    inside = (at >= ends.lower - INSIDE) & (at <= ends.upper + INSIDE)
    if not np.any(inside):
        return found
    low, high = at[inside][0] - INSIDE, at[inside][-1] + INSIDE
    beyond = (ends.positions < low) | (ends.positions > high)
    beyond &= (ends.positions >= ends.lower - INSIDE) & (ends.positions <= ends.upper + INSIDE)
    positions = np.concatenate([at[inside], ends.positions[beyond]])
    order = np.argsort(positions, kind="stable")
    q = np.concatenate([found.q[inside], model.close(ends.q[beyond])])
    return replace(found, positions=positions[order], q=q[order])


def _marks(
    model: Model, joint: str, ends: Sequence[JointEnvelope]
) -> Iterator[tuple[float, str, str]]:
    """Position, name and colour of what ends the range, and of singular positions within."""
    for each in ends:
        for position, by in ((each.lower, each.lower_by), (each.upper, each.upper_by)):
            if math.isfinite(position) and by:
                yield position, "linkage" if by == "loop" else f"limit of {by}", "#777777"
    for linkage in CheckContext(model).linkages.values():
        for curve in linkage.sweeps[: linkage.mobility]:
            if curve.joint == joint:
                for event in curve.singularities:
                    if event.reached:
                        yield event.position, event.kind, "#cc3311"


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
