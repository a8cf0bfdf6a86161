"""Motions of a model over time: simulations, rollouts and plans."""

from robomodel.estimation.leg_odometry import LegNoise, LegOdometry, leg_odometry
from robomodel.estimation.planning import Goal, Obstacle, Plan, Stance, plan
from robomodel.motion.ground import Contact, Ground, contact_points
from robomodel.motion.rollout import Rollout, rollout
from robomodel.motion.simulate import simulate
from robomodel.motion.simulation import Simulation, SimulationState
from robomodel.motion.trajectory import SimulationError, Stop, Trajectory

__all__ = [
    "Contact",
    "Goal",
    "Ground",
    "LegNoise",
    "LegOdometry",
    "Obstacle",
    "Plan",
    "Rollout",
    "Simulation",
    "SimulationError",
    "SimulationState",
    "Stance",
    "Stop",
    "Trajectory",
    "contact_points",
    "leg_odometry",
    "plan",
    "rollout",
    "simulate",
]
