"""Motions of a model over time: simulations, rollouts and plans."""

from robomodel.trajectory.planning import Goal, Plan, Stance, plan
from robomodel.trajectory.rollouts.rollout import Rollout, rollout
from robomodel.trajectory.simulation.ground import Contact, Ground, contact_points
from robomodel.trajectory.simulation.simulate import simulate
from robomodel.trajectory.simulation.trajectory import SimulationError, Stop, Trajectory

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
