"""Motions of a model over time: simulations, rollouts and plans."""

from robomodel.trajectory.ground import Contact, Ground, contact_points
from robomodel.trajectory.planning import Goal, Plan, Stance, plan
from robomodel.trajectory.record import SimulationError, Stop, Trajectory
from robomodel.trajectory.rollouts import Rollout, rollout
from robomodel.trajectory.simulation import simulate

__all__ = [
    "Contact",
    "Goal",
    "Ground",
    "Plan",
    "Rollout",
    "SimulationError",
    "Stance",
    "Stop",
    "Trajectory",
    "contact_points",
    "plan",
    "rollout",
    "simulate",
]
