"""Robots in Crocoddyl; see :mod:`robomodel.interop.crocoddyl`."""

from robomodel.interop.crocoddyl import (
    DifferentialActionModel,
    IntegratedActionModelEuler,
    State,
    StateResidual,
)

__all__ = ["DifferentialActionModel", "IntegratedActionModelEuler", "State", "StateResidual"]
