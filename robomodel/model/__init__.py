"""The model: a robot's connectivity, its clusters and their constraints, its configurations."""

from robomodel.model.build import build
from robomodel.model.model import Body, Cluster, Coupling, Frame, Joint, Loop, Model, Node

__all__ = ["Body", "Cluster", "Coupling", "Frame", "Joint", "Loop", "Model", "Node", "build"]
