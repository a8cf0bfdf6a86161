"""Exact rigid-body dynamics of robots as they are built, from their description files."""

import warnings
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from robomodel import dynamics, moved, showing
from robomodel.errors import check_positional, no_model
from robomodel.messages import instead, with_known_keywords
from robomodel.running import uncollected

if TYPE_CHECKING:
    from robomodel import robots
    from robomodel.control.inverse_kinematics import inverse_kinematics
    from robomodel.description import Rotor
    from robomodel.dynamics import *
    from robomodel.errors import DescriptionError, DescriptionWarning
    from robomodel.identification.base import base_parameters
    from robomodel.identification.calibration import calibrate
    from robomodel.identification.excitations import excitation
    from robomodel.identification.identification import identify
    from robomodel.identification.joint_states import joint_states
    from robomodel.identification.regressors import regressor
    from robomodel.interop.c import write_c
    from robomodel.interop.casadi import to_casadi
    from robomodel.interop.javascript import write_js
    from robomodel.interop.programs import compile
    from robomodel.lint.audit.study import audit
    from robomodel.loading import load
    from robomodel.model import Model
    from robomodel.model.parameters import parameters, with_parameters
    from robomodel.motion.ground import Ground, contact_points
    from robomodel.motion.rollout import rollout
    from robomodel.motion.simulate import simulate
    from robomodel.motion.simulation import Simulation
    from robomodel.opentree.tree import approximate_tree
    from robomodel.reach.limb import limb_joints
    from robomodel.reach.ranges import joint_range
    from robomodel.reports.actuation.study import actuation
    from robomodel.reports.approximation import approximation_errors
    from robomodel.reports.comparison.in_simulator import compare_in
    from robomodel.reports.comparison.study import compare
    from robomodel.reports.validation.study import validate
    from robomodel.writing import write_mjcf, write_sdf, write_urdf, write_usd

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

_HOMES = {
    **{name: "dynamics" for name in dynamics.__all__ if name not in {*MOVED, "motor_forces"}},
    "DescriptionError": "errors",
    "DescriptionWarning": "errors",
    "Ground": "motion.ground",
    "Model": "model",
    "Rotor": "description",
    "Simulation": "motion.simulation",
    "actuation": "reports.actuation.study",
    "approximate_tree": "opentree.tree",
    "approximation_errors": "reports.approximation",
    "audit": "lint.audit.study",
    "base_parameters": "identification.base",
    "calibrate": "identification.calibration",
    "compare": "reports.comparison.study",
    "compare_in": "reports.comparison.in_simulator",
    "compile": "interop.programs",
    "contact_points": "motion.ground",
    "excitation": "identification.excitations",
    "identify": "identification.identification",
    "inverse_kinematics": "control.inverse_kinematics",
    "joint_range": "reach.ranges",
    "joint_states": "identification.joint_states",
    "limb_joints": "reach.limb",
    "load": "loading",
    "parameters": "model.parameters",
    "regressor": "identification.regressors",
    "rollout": "motion.rollout",
    "simulate": "motion.simulate",
    "to_casadi": "interop.casadi",
    "validate": "reports.validation.study",
    "with_parameters": "model.parameters",
    "write_c": "interop.c",
    "write_js": "interop.javascript",
    **dict.fromkeys(("write_mjcf", "write_sdf", "write_urdf", "write_usd"), "writing"),
}
"""The modules of the names that are here, which are imported when one is first asked for."""

_ROOMS = """
    arrays cuda description errors estimation files identification instants interop kernels loading
    mechanism messages mobility model motion opentree parsers reach robots running scalars
    simulators spatial tolerances views vocabulary writing
"""
"""Subpackages and modules that need no further import to be used."""

__all__.extend(name for name in _HOMES if name not in __all__)


def _takes_model(function: Any) -> Any:
    """A public function; a TypeError says what to do if it gets a path, not a model.

    Those of the dynamics see to it themselves: :mod:`robomodel.dynamics.algorithm`.
    """
    annotations = getattr(function, "__annotations__", {})
    declared = "__signature__" in vars(function) if hasattr(function, "__code__") else True
    if annotations.get("model") != "Model" or declared:
        return function
    from robomodel.model import Model

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


showing.register("robomodel.interop.orders", "to_order", "from_order")
showing.register("robomodel.opentree.tree", "tendons_tree", "correction_tree")
showing.register("robomodel.parsers.usd.stages", "stage_mesh")
showing.register("robomodel.reach.drawing", "random_configuration", "is_reachable")
showing.register("robomodel.reach.reachable", "leads_to", "mode_notes")
showing.register("robomodel.views.animation", "motion_in_notebooks", "animate_motion")


def __getattr__(name: str) -> object:
    """Everything but the table of names, imported when it is first asked for."""
    if name in _HOMES:
        with uncollected():
            module = import_module(f"{__name__}.{_HOMES[name]}")
        found = _takes_model(getattr(module, name))
        return globals().setdefault(name, found)
    if name in _ROOMS.split() or name == "trajectory":  # an old name: robomodel.moved
        return import_module(f"{__name__}.{name}")
    if name in MOVED:
        home = f"{__name__}.{MOVED[name]}"
        warnings.warn(
            f"robomodel.{name} is {home}.{name} now; the old name goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(import_module(home), name)
    hint = instead(name, __all__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'{hint}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__doc__", "__version__"])
