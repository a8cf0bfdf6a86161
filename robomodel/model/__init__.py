"""The model: a robot's connectivity, its clusters and their constraints, its configurations.

From the bottom: ``graph`` (spanning tree, clusters), ``joints``, ``constraints`` (G and g over any
scalars), ``closure`` (Newton's method), ``mobility`` (of clusters), ``elements`` (what a model
consists of), ``model``, ``build``; on models, ``configurations`` (closed, moved, solved for, drawn
at random), ``orders`` (of other libraries) and ``parameters`` (the same robot with others).
"""

from robomodel.model.build import build
from robomodel.model.elements import Body, Cluster, Coupling, Frame, Joint, Loop, Node
from robomodel.model.model import Model

__all__ = ["Body", "Cluster", "Coupling", "Frame", "Joint", "Loop", "Model", "Node", "build"]
