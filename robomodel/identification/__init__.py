"""Parameters: the regressors in which dynamics is linear, and their identification."""

from robomodel.identification.base import BaseParameters, base_parameters
from robomodel.identification.calibration import Calibration, calibrate
from robomodel.identification.excitations import Excitation, excitation
from robomodel.identification.identification import identify, predicted
from robomodel.identification.identified import Calibrated, Identified, IdentifiedGroup
from robomodel.identification.joint_logs import CompletedLog, complete_log
from robomodel.identification.joint_states import joint_states
from robomodel.identification.logs import Log, read_log
from robomodel.identification.regressors import (
    filtered_regressor,
    momentum_regressor,
    regressor,
)
from robomodel.model.parameters import Parameters, parameters, with_parameters

__all__ = [
    "BaseParameters",
    "Calibrated",
    "Calibration",
    "CompletedLog",
    "Excitation",
    "Identified",
    "IdentifiedGroup",
    "Log",
    "Parameters",
    "base_parameters",
    "calibrate",
    "complete_log",
    "excitation",
    "filtered_regressor",
    "identify",
    "joint_states",
    "momentum_regressor",
    "parameters",
    "predicted",
    "read_log",
    "regressor",
    "with_parameters",
]
