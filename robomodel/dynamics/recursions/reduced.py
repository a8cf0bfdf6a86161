"""The model with regrouped inertias, where that takes fewer operations; results stay the same.

The part of a body's inertia that no motion of its joint changes or resists may move to its parent,
fixed there at any position of the joint. Joint forces and accelerations are then the same in all
motions (the base parameters of identification: Gautier and Khalil, 1990). That part is with

* a revolute joint about axis k: the mass, the first moment along k, and mass spread along the axis
  (equal moments of inertia about the two other axes);
* a ball joint: the mass; a prismatic joint: the moments of inertia, without the mass;
* a planar or screw joint: equal moments of inertia about the axes across it, without the mass.

What moves to the world is dropped. Regrouped inertias need not be physical (a moment may be
negative, the mass zero), so energies, momenta and internal forces need the original model. Both
models are traced to see which takes fewer operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.kernels.trace import Trace
from robomodel.mechanism.constraints import placement
from robomodel.mechanism.graph import WORLD
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Node
from robomodel.model.model import Model
from robomodel.scalars import Scalar, is_number, value_of
from robomodel.spatial import RigidInertia, Vec
from robomodel.spatial.vectors import as_matrix
from robomodel.tolerances import ROUNDING

COUNTED: Mapping[str, Callable[..., list[Scalar]]] = {
    "rnea": rnea,
    "aba": aba,
    "crba": lambda model, q, *_: [x for row in crba(model, q) for x in row],
}
COST_CLASS: Mapping[str, tuple[str, bool]] = {
    "rnea": ("rnea", True),
    "bias_force": ("rnea", True),
    "gravity_force": ("rnea", True),
    "rnea_derivatives": ("aba", True),
    "rnea_hessian_product": ("aba", True),
    "aba_derivatives": ("aba", True),
    "aba": ("aba", False),
    "efpa": ("aba", False),
    "contact": ("aba", False),
    "efpa_factors": ("aba", False),
    "contact_factors": ("aba", False),
    "contact_free": ("aba", False),
    "contact_response": ("aba", False),
    "crba": ("crba", False),
    "mass_inverse": ("crba", False),
    "coriolis": ("aba", True),
}
"""For each algorithm the one whose operations are counted: itself, or one whose cost goes with its
own (derivatives: composite inertias that are moved about). And how inertias are regrouped for it:
True makes the mass spread along an axis zero, which sums over points save; False a moment of
inertia."""


def reduced(model: Model, algorithm: str) -> Model:
    """An equivalent model on which an algorithm takes fewer operations, or the model itself.

    Bodies, joints, frames and coordinates are those of the model. Operations are counted with the
    file's numbers.
    """
    if algorithm not in COST_CLASS or not model.nodes:
        return model
    counted, spread = COST_CLASS[algorithm]
    if model._nominal is None:
        return _reduced(model, counted, spread)
    fewer = _reduced(model._nominal, counted, spread) is not model._nominal
    return regrouped(model, spread=spread) if fewer else model


@cached_on_model
def _reduced(model: Model, counted: str, spread: bool) -> Model:
    other = regrouped(model, spread=spread)
    return other if _operations(other, counted) < _operations(model, counted) else model


@cached_on_model
def _operations(model: Model, counted: str) -> int:
    trace = Trace()
    inputs: list[Any] = [trace.inputs(n) for n in (model.nq, model.nv, model.nv)]
    return trace.program(COUNTED[counted](model, *inputs)).flops


# ---- regrouped inertias -------------------------------------------------------------------------


def regrouped(model: Model, *, spread: bool) -> Model:
    """The equivalent model with regrouped inertias of its nodes; only constants are regrouped.

    For a body that turns about an axis one number is free. With ``spread`` the second moment along
    the axis becomes zero, which saves in sums over points; otherwise one of the two moments of
    inertia across it, which saves in products with motions.
    """
    nodes = list(model.nodes)
    for body in reversed(range(len(nodes))):
        node = nodes[body]
        if node.joint.nv == 6 or not _constant(node):
            continue
        passed = _passed(node, spread=spread)
        nodes[body] = replace(node, inertia=_remaining(node.inertia, passed))
        if node.parent != WORLD:
            place = placement(node.joint, node.rotations, node.offset, node.joint.neutral())
            parent = nodes[node.parent]
            nodes[node.parent] = replace(parent, inertia=parent.inertia + passed.in_parent(place))
    return replace(model, nodes=tuple(nodes))


def _constant(node: Node) -> bool:
    """True if all numbers of a body are constants; others are not regrouped."""
    place = placement(node.joint, node.rotations, node.offset, node.joint.neutral())
    rows = (node.inertia.h, *node.inertia.inertia, *place.matrix(), place.offset)
    return is_number(node.inertia.mass) and all(is_number(x) for row in rows for x in row)


def _passed(node: Node, *, spread: bool) -> RigidInertia:
    """The part of a body's inertia that its parent may carry, constant in the body's axes."""
    inertia, motions = node.inertia, [motion.entries() for motion in node.joint.subspace]
    axes = [k for k in range(3) if any(motion[k] for motion in motions)]
    slides = any(x for motion in motions for x in motion[3:])
    mass: Scalar = 0.0 if slides else inertia.mass
    h: list[Scalar] = [0.0] * 3
    moments: list[list[Scalar]] = [[0.0] * 3 for _ in range(3)]
    if not axes:
        return RigidInertia(mass, _vec(h), inertia.inertia)
    if len(axes) == 1:
        (k,) = axes
        i, j = (k + 1) % 3, (k + 2) % 3
        if not slides:
            h[k] = inertia.h[k]
        across = inertia.second_moments[k][k] if spread else inertia.inertia[j][j]
        moments[i][i] = moments[j][j] = across
    return RigidInertia(mass, _vec(h), as_matrix(moments))


def _remaining(inertia: RigidInertia, passed: RigidInertia) -> RigidInertia:
    """An inertia less the part that is passed on; differences that are rounding are zero."""

    def less(x: Scalar, y: Scalar) -> Scalar:
        size = max(abs(value_of(x)), abs(value_of(y)))
        return 0.0 if abs(value_of(x - y)) <= ROUNDING * size else x - y

    rows = [
        [less(x, y) for x, y in zip(row, passed_row, strict=True)]
        for row, passed_row in zip(inertia.inertia, passed.inertia, strict=True)
    ]
    h = [less(x, y) for x, y in zip(inertia.h, passed.h, strict=True)]
    return RigidInertia(less(inertia.mass, passed.mass), _vec(h), as_matrix(rows))


def _vec(x: Sequence[Scalar]) -> Vec:
    return x[0], x[1], x[2]
