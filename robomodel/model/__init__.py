"""The model: a robot's connectivity, its clusters and their constraints, its configurations."""

from robomodel.model.build import build
from robomodel.model.elements import Body, Cluster, Coupling, Frame, Joint, Loop, Node
from robomodel.model.model import Model

__all__ = ["Body", "Cluster", "Coupling", "Frame", "Joint", "Loop", "Model", "Node", "build"]
