"""Exact dynamics of a model: the functions users call, on NumPy arrays with batch axes.

Each algorithm is written once, on scalars of any kind, in a module of its own. The functions here
check arguments and call a compiled kernel, or the same source on NumPy arrays. Conventions: q
(..., nq), v, a and tau (..., nv); SI units; spatial vectors angular first; leading axes broadcast.
``backend``: "compiled" (kernels are made at the first call on a model and kept on disk; NumPy
serves robots of more than 200 bodies and machines without LLVM), or "numpy". ``check``: raise an
error for invalid states, as :meth:`robomodel.Model.check` does (open loops, quaternions that are
not of unit length, numbers that are not finite), instead of computing with them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robomodel.dynamics.functions.actuators import *
    from robomodel.dynamics.functions.contact import *
    from robomodel.dynamics.functions.motion import *
    from robomodel.dynamics.functions.quantities import *
    from robomodel.dynamics.functions.sensitivity import *

__all__ = [
    "Accelerations", "aba", "aba_derivatives", "accelerations", "actuator_forces",
    "actuator_gains", "actuator_map", "actuator_positions", "actuator_velocities",
    "armature", "bias_force", "center_of_mass", "center_of_mass_acceleration",
    "center_of_mass_jacobian", "center_of_mass_velocity", "centroidal_map",
    "centroidal_momentum", "contact_aba", "contact_aba_derivatives", "copper_loss",
    "coriolis", "correction_force", "crba", "efpa", "energy", "frame_acceleration",
    "frame_bias", "frame_pose", "frame_velocity", "from_actuators", "gravity_force",
    "hybrid", "impulse", "jacobian", "mass_inverse", "motor_forces", "passive_force",
    "reflected", "rnea", "rnea_derivatives", "rnea_hessian_product", "saturate",
    "sensitivity", "torque_limits", "torque_polytope",
]  # fmt: skip

_PARTS = {
    "actuators": """actuator_forces actuator_gains actuator_map actuator_positions
        actuator_velocities copper_loss from_actuators motor_forces reflected saturate torque_limits
        torque_polytope""",
    "contact": "contact_aba contact_aba_derivatives efpa impulse",
    "motion": """Accelerations aba aba_derivatives accelerations armature bias_force
        correction_force crba hybrid passive_force rnea rnea_derivatives rnea_hessian_product""",
    "quantities": """center_of_mass center_of_mass_acceleration center_of_mass_jacobian
        center_of_mass_velocity centroidal_map centroidal_momentum coriolis energy
        frame_acceleration frame_bias frame_pose frame_velocity gravity_force jacobian
        mass_inverse""",
    "sensitivity": "sensitivity",
}
_HOMES = {name: f"functions.{part}" for part, names in _PARTS.items() for name in names.split()}
"""The modules of the names that are here, imported when one is first asked for."""

_ROOMS = """
    actuators algorithm baselines contact functions kinematics lumped physical recursions tree_map
"""
"""Subpackages and modules that need no further import to be used."""


def __getattr__(name: str) -> object:
    if name in _HOMES:
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return globals().setdefault(name, found)
    if name in _ROOMS.split():
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS.split(), "__doc__"])
