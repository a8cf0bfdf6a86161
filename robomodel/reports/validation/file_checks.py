"""Checks of what other programs stumble over: meshes that are missing, limits of zero, gains that
no time step holds, links without collision shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from robomodel.description import ONE_DOF, Link
from robomodel.description.shapes import in_stage, mesh_path
from robomodel.errors import DescriptionError
from robomodel.reports.document import Finding, note, warning
from robomodel.reports.validation.bounds import BOUNDS
from robomodel.reports.validation.context import CheckContext


def check_meshes(context: CheckContext) -> Iterator[Finding]:
    """Mesh files that are not there; MJCF's reader warns of them itself."""
    description = context.model.description
    if description.format == "mjcf" or not Path(description.source.file).is_file():
        return  # of a text, meshes are looked for nowhere
    for link in context.model.description.links:
        for file, why in dict(_missing(link)).items():
            yield warning(
                "mesh-missing",
                link.source,
                f"its mesh '{file}' is not found: {why}",
                "put it there, or mend the path; most simulators refuse the file",
            )


def _missing(link: Link) -> Iterator[tuple[str, str]]:
    for shape in link.shapes:
        if shape.kind != "mesh" or not shape.file or in_stage(shape):
            continue
        try:
            path = mesh_path(shape)
        except DescriptionError as error:
            way = error.message.partition("; say where it is ")[2]
            out = "it leads out of the robot's folder"
            yield shape.file, f"say where its package is {way}" if way else out
            continue
        if not path.is_file():
            yield shape.file, "no such file"


def check_zero_limits(context: CheckContext) -> Iterator[Finding]:
    """Limits of velocity or effort that are zero, as exporters of CAD programs write them."""
    for joint in context.model.description.joints:
        if joint.type not in ONE_DOF:
            continue
        both = {"effort": joint.limits.least_effort, "velocity": joint.limits.least_velocity}
        zero = [name for name, low in both.items() if low == getattr(joint.limits, name) == 0.0]
        if not zero:
            continue
        grave = "velocity" in zero and not joint.mimic
        here = ", as robomodel takes velocities" if "velocity" in zero else ""
        yield (warning if grave else note)(
            "zero-limit",
            joint.source,
            f"its limit{'s' if len(zero) > 1 else ''} of {' and '.join(zero)} "
            f"{'are' if len(zero) > 1 else 'is'} 0: some programs take that for none{here}, others "
            "for a joint that cannot move or has no motor",
            "write the limits that it has, or leave them out",
            0.0,
        )


def check_gains(context: CheckContext) -> Iterator[Finding]:
    """Gains of servos that are too large for the file's time step."""
    model = context.model
    stepping = model.description.stepping
    servos = {
        actuator.name: (actuator.gains, each)
        for each in model.description.transmissions
        for actuator in each.actuators
        if any(actuator.gains)
    }
    if stepping is None or not stepping.step > 0.0 or not servos or not model.nv:
        return
    inertia = context.mass_matrix
    if not np.all(np.isfinite(inertia)) or np.linalg.matrix_rank(inertia) < model.nv:
        return
    moved = 1.0 / np.diag(np.linalg.inv(inertia))  # what a force on one coordinate moves
    for actuator in model.actuators:
        if actuator.name not in servos or len(actuator.terms) != 1:
            continue
        ((joint, ratio),) = actuator.terms
        if joint not in model.dof_names:
            continue
        (kp, kv), transmission = servos[actuator.name]
        kp, kv = kp * ratio * ratio, kv * ratio * ratio
        least = float(moved[model.dof_names.index(joint)])
        step = stepping.step
        overshoot = kv * step / least
        place = model.joints[model.joint_names.index(joint)]
        damping = place.damping + (kv if stepping.implicit else 0.0)
        held = kp * step * step / (least + 0.5 * damping * step)
        unit = place.units.inertia
        if overshoot > BOUNDS.velocity_gain:
            yield (note if stepping.implicit else warning)(
                "gain",
                transmission.source,
                f"its velocity gain {kv:.4g} times the step {step:g} s is {overshoot:.3g} times "
                f"the inertia {least:.3g} {unit} that '{joint}' moves: "
                + (
                    "only implicit integrators, as the file's, hold that"
                    if stepping.implicit
                    else "more than once, and the velocity turns round at every step"
                ),
                "lower the gain or the step, give the joint its motor's armature, or use an "
                "implicit integrator",
                overshoot,
                "ratio",
            )
        if held > BOUNDS.position_gain:
            yield warning(
                "gain",
                transmission.source,
                f"its position gain {kp:.4g} times the step {step:g} s squared is {held:.3g} "
                f"times the inertia {least:.3g} {unit} that '{joint}' moves; above "
                f"{BOUNDS.position_gain:g} times motions grow without bound",
                "lower the gain or the step, or give the joint its motor's armature",
                held,
                "ratio",
            )


def check_collisions(context: CheckContext) -> Iterator[Finding]:
    """Links that are seen but have no collision shapes, where nearly all others have."""
    moving = [
        link
        for link in context.model.description.links
        if context.model.frame(link.name).body >= 0
        and any(shape.role == "visual" for shape in link.shapes)
    ]
    bare = [link for link in moving if all(shape.role == "visual" for shape in link.shapes)]
    if bare and len(moving) - len(bare) >= BOUNDS.shaped_links * len(moving):
        for link in bare:
            yield note(
                "collision",
                link.source,
                f"has visual shapes and no collision shape, where {len(moving) - len(bare)} of "
                f"{len(moving)} links have both",
                "nothing to do if it shall pass through others",
                len(moving) - len(bare),
                "links",
            )
