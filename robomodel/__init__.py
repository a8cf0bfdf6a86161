"""Exact rigid-body dynamics of robots as they are built, from their description files."""

from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

from robomodel import robots
from robomodel.aliases import keep_names
from robomodel.description import Rotor
from robomodel.dynamics import (
    aba,
    aba_derivatives,
    actuator_forces,
    actuator_map,
    armature,
    bias_force,
    center_of_mass,
    center_of_mass_acceleration,
    center_of_mass_jacobian,
    center_of_mass_velocity,
    centroidal_map,
    centroidal_momentum,
    contact_aba,
    contact_aba_derivatives,
    copper_loss,
    coriolis,
    crba,
    efpa,
    energy,
    frame_acceleration,
    frame_bias,
    frame_pose,
    frame_velocity,
    gravity_force,
    hybrid,
    impulse,
    jacobian,
    mass_inverse,
    passive_force,
    reflected,
    rnea,
    rnea_derivatives,
    rnea_hessian_product,
    saturate,
    torque_limits,
    torque_polytope,
)
from robomodel.dynamics.baselines.spanning import Accelerations, accelerations
from robomodel.errors import (
    ClosureError,
    DescriptionError,
    DescriptionWarning,
    UnknownNameError,
    no_model,
)
from robomodel.identification import (
    base_parameters,
    energy_regressor,
    excitation,
    filtered_regressor,
    identify,
    momentum_regressor,
    parameters,
    read_log,
    regressor,
    with_parameters,
)
from robomodel.interop.compile import compile
from robomodel.kernels.function import Kernel
from robomodel.loading import load
from robomodel.model import Model
from robomodel.writing import write_mjcf, write_sdf, write_urdf

if TYPE_CHECKING:
    from robomodel.c import write_c
    from robomodel.interop.casadi import to_casadi
    from robomodel.motion.cuda import rollout_kernel
    from robomodel.reports.actuation.study import actuation
    from robomodel.reports.approximation.errors import approximation_errors
    from robomodel.reports.validation.study import validate
    from robomodel.trajectory import (
        Contact,
        Ground,
        SimulationError,
        Trajectory,
        contact_points,
        rollout,
        simulate,
    )

__version__ = "0.2.0"

__all__ = [
    "Accelerations",
    "ClosureError",
    "Contact",
    "DescriptionError",
    "DescriptionWarning",
    "Ground",
    "Kernel",
    "Model",
    "Rotor",
    "SimulationError",
    "Trajectory",
    "UnknownNameError",
    "aba",
    "aba_derivatives",
    "accelerations",
    "actuation",
    "actuator_forces",
    "actuator_map",
    "approximation_errors",
    "armature",
    "base_parameters",
    "bias_force",
    "center_of_mass",
    "center_of_mass_acceleration",
    "center_of_mass_jacobian",
    "center_of_mass_velocity",
    "centroidal_map",
    "centroidal_momentum",
    "compile",
    "contact_aba",
    "contact_aba_derivatives",
    "contact_points",
    "copper_loss",
    "coriolis",
    "crba",
    "efpa",
    "energy",
    "energy_regressor",
    "excitation",
    "filtered_regressor",
    "frame_acceleration",
    "frame_bias",
    "frame_pose",
    "frame_velocity",
    "gravity_force",
    "hybrid",
    "identify",
    "impulse",
    "jacobian",
    "load",
    "mass_inverse",
    "momentum_regressor",
    "parameters",
    "passive_force",
    "read_log",
    "reflected",
    "regressor",
    "rnea",
    "rnea_derivatives",
    "rnea_hessian_product",
    "robots",
    "rollout",
    "rollout_kernel",
    "saturate",
    "simulate",
    "to_casadi",
    "torque_limits",
    "torque_polytope",
    "validate",
    "with_parameters",
    "write_c",
    "write_mjcf",
    "write_sdf",
    "write_urdf",
]

_LATE = {
    **dict.fromkeys(
        (
            "Contact",
            "Ground",
            "SimulationError",
            "Trajectory",
            "contact_points",
            "rollout",
            "simulate",
        ),
        "trajectory",
    ),
    "actuation": "reports.actuation.study",
    "approximation_errors": "reports.approximation.errors",
    "validate": "reports.validation.study",
    "rollout_kernel": "motion.cuda",
    "to_casadi": "interop.casadi",
    "write_c": "c",
}


_INSTANT = "robomodel.estimation.instant"
keep_names("robomodel.dynamics", {"problem": _INSTANT, "problem.problem": _INSTANT})


_PREPARING = frozenset(
    ("accelerations", "actuator_forces", "actuator_map", "armature", "contact_aba_derivatives",
     "filtered_regressor", "hybrid", "impulse", "reflected", "rollout", "torque_limits",
     "torque_polytope")
)  # fmt: skip
"""Functions with a ``backend`` that ask the model things before they call its kernel."""


def _of_models(name: str, found: Any) -> Any:
    """A public function; a TypeError says what to do if it gets a path, not a model.

    Those that go straight to a kernel look there, where it costs nothing: :func:`calling.run`.
    """
    said = getattr(found, "__annotations__", {})
    quick = ("backend" in said and name not in _PREPARING) or "__signature__" in vars(found)
    if said.get("model") != "Model" or quick or not hasattr(found, "__code__"):
        return found

    @wraps(found)
    def called(*args: Any, **options: Any) -> Any:
        model = args[0] if args else options.get("model")
        if not isinstance(model, Model) and (args or "model" in options):
            raise no_model(model)
        return found(*args, **options)

    called.__module__ = __name__  # where pickle finds it
    return called


for _name in __all__:
    if _name in globals():
        globals()[_name] = _of_models(_name, globals()[_name])
del _name


def __getattr__(name: str) -> object:
    """Motion over time, reports, symbols and C, imported when they are first asked for."""
    if name not in _LATE:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = _of_models(name, getattr(import_module(f"{__name__}.{_LATE[name]}"), name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__doc__", "__version__"])
