"""Motions of a model over time: simulations and rollouts."""

from robomodel.trajectory.ground import Contact, Ground, contact_points
from robomodel.trajectory.record import SimulationError, Stop, Trajectory
from robomodel.trajectory.rollouts import Rollout, rollout
from robomodel.trajectory.simulation import simulate

__all__ = [
    "Contact",
    "Ground",
    "Rollout",
    "SimulationError",
    "Stop",
    "Trajectory",
    "contact_points",
    "rollout",
    "simulate",
]
