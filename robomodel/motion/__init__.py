"""Motion over time: simulation, rollouts, contact with the ground and between links."""

from robomodel.motion.ground import Contact, Ground, contact_points
from robomodel.motion.options import BatchOptions, MotionOptions
from robomodel.motion.rollout import Rollout, rollout
from robomodel.motion.simulate import simulate
from robomodel.motion.simulation import Simulation, SimulationState
from robomodel.motion.trajectory import SimulationError, Stop, Trajectory

__all__ = [
    "BatchOptions",
    "Contact",
    "Ground",
    "MotionOptions",
    "Rollout",
    "Simulation",
    "SimulationError",
    "SimulationState",
    "Stop",
    "Trajectory",
    "contact_points",
    "rollout",
    "simulate",
]
