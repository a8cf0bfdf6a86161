"""One robot in several sets of independent joints: charts of the same configurations.

q holds all positions of clusters with loops, so that it is the same in every chart; v is that of
the chart's independent joints. Which are good depends on where the mechanism is: with N an
orthonormal basis of the motions K(q) N = 0, joints I are as good as the smallest singular value of
N's rows I, which is 1/‖G‖ (:func:`best`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robomodel.model import closure as newton
from robomodel.model.closure import CLOSED
from robomodel.model.configurations.coordinates import columns_of
from robomodel.model.constraints.implicit import LoopConstraint
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array, Mask
from robomodel.model.mobility.exploration import best_columns
from robomodel.model.mobility.loops import blocks
from robomodel.model.model import Model
from robomodel.model.options import LABELS

Choice = tuple[int, ...]  # columns of z, the velocities that couplings leave of a cluster's
ALL = 500  # choices up to which each is tried


@dataclass(frozen=True, slots=True)
class Linkage:
    """A cluster with loops as charts see it.

    ``columns`` are the spanning velocities of the cluster that its z consists of; ``unit`` makes
    metres and radians comparable. ``parts`` are the columns of joints with several velocities.
    """

    index: int
    constraint: LoopConstraint
    columns: tuple[int, ...]
    unit: Array
    parts: tuple[frozenset[int], ...]

    @property
    def mobility(self) -> int:
        """How many velocities are independent."""
        return len(self.constraint.independent)

    def motions(self, matrix: Array) -> tuple[Array, float]:
        """An orthonormal basis N (..., z, mobility) of ``matrix`` (rows, z) N = 0 in comparable
        units, and by how much the matrix keeps its rank, as a share of its norm.
        """
        _, singular, right = np.linalg.svd(matrix * self.unit)
        rank = len(self.columns) - self.mobility
        kept = float(singular[rank - 1] / singular[0]) if rank else 1.0
        return right[rank:].T, kept

    def whole(self, choice: Choice) -> bool:
        """Whether a choice takes joints with several velocities as a whole, or not at all."""
        return all(part <= set(choice) or part.isdisjoint(choice) for part in self.parts)


@cached_on_model
def linkages(model: Model) -> tuple[Linkage, ...]:
    """The clusters with loops that move; found once a model."""
    return tuple(_linkage(model, c) for c in model.clusters if c.implicit and c.nv)


def _linkage(model: Model, cluster: Cluster) -> Linkage:
    constraint, geometry = cluster.constraint, cluster.geometry
    assert isinstance(constraint, LoopConstraint)
    own = dict(zip(constraint.independent, cluster.columns, strict=True))
    expand = np.array(constraint.expand)
    columns = []
    for c in range(expand.shape[1]):
        alone = [i for i, row in enumerate(expand) if row[c] == 1.0 and np.count_nonzero(row) == 1]
        columns.append(own.get(c, alone[0]))
    lengths = [column.length for column in columns_of(model, cluster)]
    unit = np.array([geometry.scale if lengths[c] else 1.0 for c in columns])
    parts = []
    for link in cluster.geometry.links:
        if link.joint.nv > 1:
            own_columns = range(link.v, link.v + link.joint.nv)
            parts.append(frozenset(z for z, c in enumerate(columns) if c in own_columns))
    return Linkage(cluster.index, constraint, tuple(columns), unit, tuple(parts))


def goodness(motions: Array, choice: Choice) -> float:
    """1/‖G‖ of a choice where a linkage has these motions (z, mobility), in comparable units."""
    return float(np.linalg.svd(motions[list(choice)], compute_uv=False)[-1])


def best(motions: Array, allowed: Callable[[Choice], bool] = lambda _: True) -> Choice | None:
    """The best choice at motions (z, mobility); where there are very many, one nearly as good."""
    z, mobility = motions.shape
    if math.comb(z, mobility) > ALL:
        found = best_columns(motions)
        return found if allowed(found) else None
    choices = [c for c in itertools.combinations(range(z), mobility) if allowed(c)]
    if not choices:
        return None
    measure = np.linalg.svd(motions[np.array(choices)], compute_uv=False)[:, -1]
    return choices[int(np.argmax(measure))]


def in_chart(model: Model, choices: Sequence[Choice]) -> Model:
    """The model with these independent velocities of its linkages; kept with the model.

    The same bodies, joints, numbers and configurations; v and all that goes with it differ.
    """
    choices = tuple(choices)
    if choices == own_chart(model):
        return model
    return _made(model, choices)


def own_chart(model: Model) -> tuple[Choice, ...]:
    """What the model itself has chosen."""
    return tuple(each.constraint.independent for each in linkages(model))


@cached_on_model
def _made(model: Model, choices: tuple[Choice, ...]) -> Model:
    clusters = list(model.clusters)
    independent = {label for cluster in clusters for label in cluster.independent}
    for linkage, choice in zip(linkages(model), choices, strict=True):
        cluster = clusters[linkage.index]
        if choice == linkage.constraint.independent:
            continue
        labels = [f"{model.joints[body].name}{suffix}" for body in cluster.bodies
                  for suffix in LABELS[model.joints[body].nv]]  # fmt: skip
        columns = tuple(linkage.columns[z] for z in choice)
        dependent = [z for z in range(len(linkage.columns)) if z not in choice]
        constraint = replace(
            linkage.constraint,
            independent=choice,
            blocks=blocks(_pattern(cluster, linkage), dependent),
        )
        chosen = tuple(labels[c] for c in columns)
        clusters[linkage.index] = replace(
            cluster, constraint=constraint, columns=columns, independent=chosen
        )
        independent = (independent - set(cluster.independent)) | set(chosen)
    joints = tuple(
        replace(joint, independent=all(joint.name + s in independent for s in LABELS[joint.nv]))
        if model.clusters[node.cluster].implicit
        else joint
        for joint, node in zip(model.joints, model.nodes, strict=True)
    )
    return replace(model, clusters=tuple(clusters), joints=joints)


def _pattern(cluster: Cluster, linkage: Linkage) -> Mask:
    """Which entries of the kept rows over z differ from zero, somewhere near the start."""
    geometry = cluster.geometry
    start = np.array(cluster.start)
    moves = np.random.default_rng(20240609).uniform(-0.5, 0.5, (16, geometry.nv))
    guesses = np.concatenate([start[None], geometry.integrate(np.tile(start, (16, 1)), moves)])
    q, gap = newton.close(geometry, guesses, rows=cluster.closing_rows)
    q = q[gap <= CLOSED] if np.any(gap <= CLOSED) else start[None]
    pairs = [(a, b) for a, loop in enumerate(geometry.loops) for b in range(len(loop.rows))]
    kept = [row for row, pair in enumerate(pairs) if pair in linkage.constraint.keep]
    jacobian = geometry.evaluate(q)[1][:, kept] @ np.array(linkage.constraint.expand)
    result: Mask = np.max(np.abs(jacobian), axis=0) > 1e-11
    return result
