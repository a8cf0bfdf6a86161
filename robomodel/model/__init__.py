"""The model of a robot: its bodies, joints and clusters, their constraints, its configurations.

Read in this order:

1. ``elements``: what a model consists of; ``model``: the :class:`Model` with its methods.
2. ``build``: from a description to a model, step by step. It calls

   - ``options``: the options of :func:`build` as changes of the description;
   - :mod:`robomodel.mechanism`: spanning tree, clusters, internal frames, constraints;
   - :mod:`robomodel.mobility`: each cluster's rank, redundant rows and independent coordinates;
   - ``numbers``: the model's numbers, from a description and what has been decided;
   - ``actuators``, ``spins``: the rest of a file.
3. On models: ``configurations`` (closing, moving, checking), ``parameters`` with
   ``geometry_parameters`` and ``parametric`` (the robot with other numbers).

``derived`` keeps what is computed once for a model; ``arguments`` checks users' arrays;
``registry`` has the methods whose functions are in rooms above.
"""

from robomodel.model.build import build
from robomodel.model.elements import Body, Cluster, Coupling, Frame, Joint, Loop, Node
from robomodel.model.model import Model

__all__ = [
    "Body",
    "Cluster",
    "Coupling",
    "Frame",
    "Joint",
    "Loop",
    "Model",
    "Node",
    "build",
]
