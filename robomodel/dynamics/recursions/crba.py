"""Joint-space inertia: composite inertias over clusters (the CRBA of 002's cluster tree)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from robomodel.dynamics.kinematics.state import Configuration
from robomodel.mechanism.graph import WORLD
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector
from robomodel.spatial import NO_WRENCH, Wrench

_T = TypeVar("_T")


def crba(model: Model, q: Vector) -> list[list[Scalar]]:
    """M (nv by nv), symmetric; scalars of any kind.

    A cluster's unit acceleration j needs, in the subtree that its body i carries, the wrench F_ij =
    I_i S_ij + Σ Xᵀ F (bodies of the cluster on i), with I_i the composite inertia. The cluster's
    block of M is Σ_i Sᵀ F + (Σ Xᵀ F)ᵀ S, and Gᵀ diag(armature) G; the wrenches, carried on to the
    base, give the blocks with the clusters they pass.
    """
    return inertia_at(Configuration(model, q))


def inertia_at(at: Configuration) -> list[list[Scalar]]:
    """M at a configuration."""
    model, inertia = at.model, list(at.inertia)
    subspace = [at.subspace(body) for body in range(len(model.nodes))]
    mass: list[list[Scalar]] = [[0.0] * model.nv for _ in range(model.nv)]
    for cluster in reversed(model.clusters):
        first, count = cluster.v.start, cluster.nv
        block = at.armature(cluster)
        carried: dict[int, list[Wrench]] = {}
        for body in reversed(cluster.bodies):
            s = subspace[body]
            below = carried.pop(body, None)
            body_wrenches = [inertia[body] * motion for motion in s]
            total = (
                body_wrenches
                if below is None
                else [f + g for f, g in zip(body_wrenches, below, strict=True)]
            )
            for i in range(count):
                for j in range(i, count):
                    entry = total[j].dot(s[i])
                    if below is not None:
                        entry = entry + below[i].dot(s[j])
                    block[i][j] = block[i][j] + entry
            parent, x = model.nodes[body].parent, at.transforms[body]
            if parent != WORLD:
                inertia[parent] += inertia[body].in_parent(x)
            _carry(carried, parent, [x.to_parent(f) for f in total])
        for i in range(count):
            mass[first + i][first + i : first + count] = block[i][i:]
        for start, body, wrenches in towards_base(model, cluster, carried):
            for i, motion in enumerate(subspace[body], start):
                for j, wrench in enumerate(wrenches, first):
                    mass[i][j] = mass[i][j] + wrench.dot(motion)
            parent, x = model.nodes[body].parent, at.transforms[body]
            _carry(carried, parent, [x.to_parent(f) for f in wrenches])
    for i in range(model.nv):
        for j in range(i):
            mass[i][j] = mass[j][i]
    return mass


def towards_base(
    model: Model, cluster: Cluster, carried: dict[int, list[_T]]
) -> Iterator[tuple[int, int, list[_T]]]:
    """Take what bodies of the clusters above carry, and the first velocity of their cluster.

    Whoever takes it has to carry it on to the body's parent.
    """
    above = cluster.parent
    while above != WORLD:
        other = model.clusters[above]
        for body in reversed(other.bodies):
            if body in carried:
                yield other.v.start, body, carried.pop(body)
        above = other.parent


def _carry(carried: dict[int, list[Wrench]], body: int, wrenches: list[Wrench]) -> None:
    """Add wrenches to those that a body already carries."""
    before = carried.get(body, [NO_WRENCH] * len(wrenches))
    carried[body] = [f + g for f, g in zip(before, wrenches, strict=True)]
