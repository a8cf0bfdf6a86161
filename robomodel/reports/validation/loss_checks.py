"""Checks of lossy gears: drives that lock themselves, and drives that stop at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robomodel.reports.document import Finding, note, warning
from robomodel.reports.validation.bounds import BOUNDS
from robomodel.reports.validation.context import CheckContext


def check_losses(context: CheckContext) -> Iterator[Finding]:
    """Self-locking drives, and those whose motor cannot brake without stopping at once."""
    model = context.model
    lossy = [each for each in model.actuators if each.lossy]
    if not lossy:
        return
    from robomodel.dynamics.actuators.meshes import MeshRows  # which most robots need not
    from robomodel.dynamics.kinematics.state import Configuration

    state, mass = Configuration(model, model.neutral().tolist()), context.mass_matrix
    regular = np.isfinite(mass).all()
    inverse = np.linalg.pinv(mass, hermitian=True) if regular else mass  # links may be massless
    for each in lossy:
        joint = each.terms[0][0]
        ties = [c.name for c in model.couplings if each.turns_rotor and each.joint in dict(c.terms)]
        source = context.couplings.get("".join(ties[:1]), context.joint_source(joint))
        if each.backdrive <= 0.0:
            report = warning if model.floating_base is not None else note
            yield report(
                "self-locking",
                source,
                f"the drive '{each.name}' of '{joint}' locks itself (backdrive "
                f"{each.backdrive:.3g}): no load turns its motor, and none on the limb moves it",
                "if it is meant, nothing to do; a leg that lands needs springs behind such a drive",
            )
        if not regular:
            continue
        rows = MeshRows.of(model, state, each)
        rate, momentum = (np.array(x, dtype=float) for x in (rows.rate, rows.momentum))
        load = 1.0 - float(momentum @ inverse @ rate)  # the load's share of inertia
        if load <= 0.0:
            continue
        bound = 1.0 - 1.0 / load
        if each.backdrive <= bound + BOUNDS.backdrive_margin:
            stops = each.backdrive <= bound
            how = "stops" if stops else "nearly stops"
            report = warning if stops else note
            yield report(
                "mesh-jam",
                source,
                f"the drive '{each.name}' of '{joint}' {how} at once when its motor brakes: its "
                f"backdrive {each.backdrive:.3g} is {'below' if stops else 'near'} {bound:.3g}, "
                "minus the rotor's inertia by that of its load (at neutral)",
                "give the rotor more inertia, or the gear a lower friction, if it shall run down",
                each.backdrive,
            )
