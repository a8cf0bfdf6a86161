"""Motions of a model over time: simulations, rollouts and plans."""

from robomodel.aliases import keep_names
from robomodel.motion.ground import Contact, Ground, contact_points
from robomodel.trajectory.graphs.planning import Goal, Plan, Stance, plan
from robomodel.trajectory.rollouts.rollout import Rollout, rollout
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

_GRAPHS = (
    "barrier", "elimination", "factors", "graph", "incremental", "margins",
    "noise", "parameters", "planning", "problems", "solve", "spaces",
    "spanning",
)  # fmt: skip
keep_names(__name__, {name: f"graphs.{name}" for name in _GRAPHS})  # modules that stood here
