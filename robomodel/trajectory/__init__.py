"""Motions of a model over time: simulations and rollouts."""

from robomodel.trajectory.record import SimulationError, Stop, Trajectory
from robomodel.trajectory.rollouts import rollout
from robomodel.trajectory.simulation import simulate

__all__ = ["SimulationError", "Stop", "Trajectory", "rollout", "simulate"]
