"""Robots in Crocoddyl; see :mod:`robomodel.interop.crocoddyl`."""

from robomodel.interop.crocoddyl import DifferentialActionModel, State, StateResidual

__all__ = ["DifferentialActionModel", "State", "StateResidual"]
