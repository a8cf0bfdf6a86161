"""Exact rigid-body dynamics of robots as they are built, from their description files."""

import warnings
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from robomodel import dynamics, moved, robots, showing
from robomodel.description import Rotor
from robomodel.dynamics import *
from robomodel.errors import (
    DescriptionError,
    DescriptionWarning,
    check_positional,
    no_model,
)
from robomodel.identification import (
    base_parameters,
    calibrate,
    excitation,
    identify,
    joint_states,
    parameters,
    regressor,
    with_parameters,
)
from robomodel.interop.programs import compile
from robomodel.loading import load
from robomodel.messages import instead, with_known_keywords
from robomodel.model import Model
from robomodel.opentree.tree import approximate_tree
from robomodel.reach.limb import limb_joints
from robomodel.reach.ranges import joint_range
from robomodel.writing import write_mjcf, write_sdf, write_urdf, write_usd

if TYPE_CHECKING:
    from robomodel.control.inverse_kinematics import inverse_kinematics
    from robomodel.interop.c import write_c
    from robomodel.interop.casadi import to_casadi
    from robomodel.interop.javascript import write_js
    from robomodel.lint.audit.study import audit
    from robomodel.motion.ground import Ground, contact_points
    from robomodel.motion.rollout import rollout
    from robomodel.motion.simulate import simulate
    from robomodel.motion.simulation import Simulation
    from robomodel.reports.actuation.study import actuation
    from robomodel.reports.approximation import approximation_errors
    from robomodel.reports.comparison.in_simulator import compare_in
    from robomodel.reports.comparison.study import compare
    from robomodel.reports.validation.study import validate

moved.install()

__version__ = "0.3.0"

__all__ = [
    "DescriptionError",
    "DescriptionWarning",
    "Ground",
    "Model",
    "Rotor",
    "Simulation",
    "actuation",
    "approximate_tree",
    "approximation_errors",
    "audit",
    "base_parameters",
    "calibrate",
    "compare",
    "compare_in",
    "compile",
    "contact_points",
    "excitation",
    "identify",
    "inverse_kinematics",
    "joint_range",
    "joint_states",
    "limb_joints",
    "load",
    "parameters",
    "regressor",
    "robots",
    "rollout",
    "simulate",
    "to_casadi",
    "validate",
    "with_parameters",
    "write_c",
    "write_js",
    "write_mjcf",
    "write_sdf",
    "write_urdf",
    "write_usd",
]

MOVED = {
    **dict.fromkeys(
        (
            "Accelerations",
            "actuator_gains",
            "center_of_mass_acceleration",
            "center_of_mass_velocity",
            "centroidal_momentum",
            "contact_aba_derivatives",
            "copper_loss",
            "frame_bias",
            "reflected",
            "rnea_hessian_product",
            "saturate",
        ),
        "dynamics",
    ),
    **dict.fromkeys(("filtered_regressor", "momentum_regressor", "read_log"), "identification"),
    "ClosureError": "errors",
    "Contact": "motion",
    "Kernel": "kernels",
    "SimulationError": "motion",
    "Trajectory": "motion",
    "UnknownNameError": "errors",
    "rollout_kernel": "cuda",
}
"""Names that were here until 0.3 and are one level down; here they warn for one release."""

_NOT_HERE = {*MOVED, "motor_forces"}
"""Functions of :mod:`robomodel.dynamics` that are there alone."""

__all__.extend(name for name in dynamics.__all__ if name not in _NOT_HERE)

_LATE = {
    **dict.fromkeys(
        (
            "Ground",
            "Simulation",
            "contact_points",
            "rollout",
            "simulate",
        ),
        "motion",
    ),
    "actuation": "reports.actuation.study",
    "approximation_errors": "reports.approximation",
    "audit": "lint.audit.study",
    "compare": "reports.comparison.study",
    "compare_in": "reports.comparison.in_simulator",
    "validate": "reports.validation.study",
    "inverse_kinematics": "control",
    "to_casadi": "interop.casadi",
    "write_c": "interop.c",
    "write_js": "interop.javascript",
}


def _takes_model(function: Any) -> Any:
    """A public function; a TypeError says what to do if it gets a path, not a model.

    Those of the dynamics see to it themselves: :mod:`robomodel.dynamics.algorithm`.
    """
    annotations = getattr(function, "__annotations__", {})
    declared = "__signature__" in vars(function) if hasattr(function, "__code__") else True
    if annotations.get("model") != "Model" or declared:
        return function

    name, shape, checked = function.__name__, signature(function), with_known_keywords(function)

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        model = args[0] if args else options.get("model")
        if not isinstance(model, Model) and (args or "model" in options):
            raise no_model(model)
        check_positional(name, shape, args)
        return checked(*args, **options)

    call.__module__ = __name__  # where pickle finds it
    return call


showing.register("robomodel.views.animation", "motion_in_notebooks", "animate_motion")

for _name in _NOT_HERE & {*dynamics.__all__}:
    del globals()[_name]
for _name in __all__:
    if _name in globals():
        globals()[_name] = _takes_model(globals()[_name])
del _name


def __getattr__(name: str) -> object:
    """Motions, reports, symbols, C and JavaScript, imported when they are first asked for."""
    if name in ("views", "motion", "estimation", "instants", "cuda"):
        return import_module(f"{__name__}.{name}")
    if name in MOVED:
        home = f"{__name__}.{MOVED[name]}"
        warnings.warn(
            f"robomodel.{name} is {home}.{name} now; the old name goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(import_module(home), name)
    if name == "trajectory":
        return import_module(f"{__name__}.trajectory")  # an old name: robomodel.moved
    if name not in _LATE:
        hint = instead(name, __all__)
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'{hint}")
    globals()[name] = _takes_model(getattr(import_module(f"{__name__}.{_LATE[name]}"), name))
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*__all__, "__doc__", "__version__"])
