"""The model of a robot: its bodies, joints and clusters, their constraints, its configurations.

Read in this order:

1. ``elements``: what a model consists of; ``model``: the :class:`Model` with its methods.
2. ``build``: from a description to a model, step by step. It calls

   - ``options``: the options of :func:`build` as changes of the description;
   - ``graph``: spanning tree and clusters; ``tree_constraints``: which joints the loops, couplings
     and mimics relate;
   - ``internal_frames``: frames in which joints move along coordinate axes;
   - ``mobility``: each cluster's rank, redundant rows and independent coordinates;
   - ``numbers``: the model's numbers, from a description and what has been decided;
   - ``springs``, ``actuators``, ``spins``: the rest of a file.
3. The mathematics of a cluster: ``joints`` (S and q̇ of a joint), ``constraints`` (K, G and g over
   scalars of any kind), ``couplings`` (linear ones eliminated), ``closure`` (the same on arrays,
   and Newton's method that closes loops).
4. On models: ``configurations`` (closing, integrating, drawing, ranges), ``parameters`` with
   ``geometry_parameters`` and ``parametric`` (the robot with other numbers), ``orders`` (states of
   other libraries), ``approximate`` and ``tree_joints`` (open trees for simulators without loops),
   ``physical`` (inertial parameters of bodies that can exist).

``derived`` keeps what is computed once for a model; ``arguments`` checks users' arrays.
"""

from robomodel.model.build import build
from robomodel.model.elements import Body, Cluster, Coupling, Frame, Joint, Loop, Node
from robomodel.model.model import Model

__all__ = ["Body", "Cluster", "Coupling", "Frame", "Joint", "Loop", "Model", "Node", "build"]
