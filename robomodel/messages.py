"""Names that other libraries have for our functions, and what to write instead of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

from robomodel.errors import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")

FUNCTIONS = {
    "rnea": "rnea inverse_dynamics id mj_inverse",
    "aba": "aba forward_dynamics fd mj_forward",
    "crba": "crba mass_matrix inertia_matrix joint_space_inertia mj_fullm calcmassmatrix",
    "mass_inverse": "mass_inverse compute_minverse computeminverse inverse_mass_matrix minv",
    "bias_force": "bias_force nonlinear_effects nonlineareffects nle bias_forces qfrc_bias",
    "gravity_force": "gravity_force compute_generalized_gravity computegeneralizedgravity "
    "gravity_vector gravity_torque gravity_forces",
    "coriolis": "coriolis coriolis_matrix compute_coriolis_matrix computecoriolismatrix",
    "frame_pose": "frame_pose forward_kinematics fk forwardkinematics frames_forward_kinematics "
    "framesforwardkinematics update_frame_placements mj_kinematics link_pose get_transform",
    "frame_velocity": "frame_velocity get_frame_velocity getframevelocity link_velocity",
    "jacobian": "jacobian frame_jacobian compute_frame_jacobian computeframejacobian mj_jac "
    "mj_jacbody geometric_jacobian",
    "center_of_mass": "center_of_mass com centerofmass centre_of_mass",
    "center_of_mass_jacobian": "center_of_mass_jacobian jacobian_center_of_mass com_jacobian "
    "jacobiancenterofmass",
    "centroidal_map": "centroidal_map ccrba centroidal_momentum_matrix",
    "energy": "energy kinetic_energy potential_energy mechanical_energy",
    "regressor": "regressor joint_torque_regressor computejointtorqueregressor",
    "inverse_kinematics": "ik inversekinematics differential_ik solve_ik computeik",
    "simulate": "simulate step mj_step stepsimulation step_simulation integrate_motion",
    "load": "load load_model from_urdf load_urdf from_xml_path buildmodelfromurdf "
    "build_model_from_urdf from_mjcf loadurdf",
}
"""Functions of :mod:`robomodel`, and their names in other libraries."""

METHODS = {
    "neutral": "neutral neutral_configuration home zero_configuration qpos0",
    "random_configuration": "random_configuration randomconfiguration random_q",
    "integrate": "integrate mj_integratepos",
    "difference": "difference mj_differentiatepos",
    "residual": "residual loop_residual constraint_residual",
    "constraint_jacobian": "constraint_jacobian",
    "joint_positions": "joint_positions",
    "configuration": "configuration",
    "close": "close close_loops assemble",
    "check": "check check_state is_closed",
    "joint_names": "joint_names joints_names",
    "dof_names": "dof_names dofs",
    "nq": "nq num_q n_q",
    "nv": "nv ndof n_dof num_dofs dof n_dofs num_v n_v",
}
"""Methods and attributes of a model, in the same form."""
METHODS |= {"bodies": "links link body nbody num_bodies", "joints": "joint", "loops": "constraints"}

KEYWORDS = {
    "resources": "package_dirs package_dir package_path package_paths packages mesh_dir meshes_dir "
    "search_paths filename_handler",
    "floating_base": "root_joint free_flyer freeflyer fixed_base use_fixed_base fixed usefixedbase",
    "inertia_from": "compute_inertia",
    "parameters": "params",
    "tau": "control controller ctrl torque torques",
    "duration": "t_final tf t_end",
    "step": "dt timestep time_step",
}
"""Keywords of functions, in the same form."""

_DATA = "data mjdata createdata create_data make_data"


def instead(name: str, valid: Iterable[str]) -> str:
    """The name to write for one that the package, or a model, does not have; else empty."""
    word = name.lower()
    if word.startswith("_"):
        return ""  # asked for by NumPy, pickle or copy
    if word in _DATA.split():
        return "; there is no data beside the model: functions take (model, q, …)"
    for table, form in ((FUNCTIONS, "rm.{}(path)"), (METHODS, "model.{}")):
        for ours, theirs in table.items():
            if word in theirs.split():
                call = form if ours == "load" or table is METHODS else "rm.{}(model, …)"
                return f"; write {call.format(ours)}"
    return did_you_mean(name, [each for each in valid if not each.startswith("_")])


def unknown_keyword(function: str, keyword: str, valid: Iterable[str]) -> TypeError:
    """The error to raise for a keyword that a function does not have, with the one to write."""
    names = list(valid)
    for ours, theirs in KEYWORDS.items():
        if ours in names and keyword.lower() in theirs.split():
            hint = f"; write {ours}="
            break
    else:
        hint = did_you_mean(keyword, names)
    return TypeError(f"{function}() got an unexpected keyword argument '{keyword}'{hint}")


def with_known_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose error for a keyword that it does not have names the one to write."""
    parameters = signature(function).parameters
    if any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values()):
        return function

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> R:
        for option in options.keys() - parameters.keys():
            raise unknown_keyword(function.__name__, option, parameters)
        return function(*arguments, **options)

    return call
