"""A robot in its best conditioned independent joints, whichever its file marks.

They are those that files get that mark none: the best conditioned whole joints around where the
robot stands, of equals those nearest to the base (:func:`robomodel.mobility.exploration.
choose_independent`). Rotors are not among them, as they turn faster than what they drive.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from robomodel.arrays import Array
from robomodel.description import Joint as JointElement
from robomodel.dynamics.actuators.envelopes import inverses
from robomodel.errors import DescriptionWarning
from robomodel.identification.coordinates import Change
from robomodel.model.build import build
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster, joint_slices
from robomodel.model.model import Model
from robomodel.model.options import labels
from robomodel.reach.rotors import rotors
from robomodel.scalars import stack, unstack


@cached_on_model
def in_best_joints(model: Model, held: tuple[str, ...] = ()) -> Model:
    """The robot in its best conditioned joints of one freedom; its actuators are the same.

    Of the independent velocities that the file marks those that are ``held`` remain, and all of a
    cluster that is one joint or that has no others. It is the model itself if all others remain.
    """
    free, turning = set[str](), set[str]()
    for cluster in model.clusters:
        if cluster.kind != "joint" and not {*cluster.independent} <= {*held}:
            free |= {*cluster.joints}
            turning |= {model.joints[body].name for body in rotors(model, cluster)}
    if not free:
        return model

    def marked(joint: JointElement) -> JointElement:
        if joint.name not in free:
            return joint
        kept = tuple(label in held for label in labels(joint))
        alone = kept[0] or (False if joint.name in turning else None)
        return replace(joint, independent=kept if len(kept) > 1 else alone)

    described = replace(model.description, joints=tuple(map(marked, model.description.joints)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)  # given when the robot was built
        result = build(described)
    if result.dof_names == model.dof_names:
        return model
    return replace(result, actuators=model.actuators)


@dataclass(frozen=True, eq=False)
class SameRobot:
    """Motions of a robot in some independent joints, ``model``, for the same in others, ``other``.

    Nothing is changed if these are the same model.
    """

    model: Model
    other: Model

    def configurations(self, q: Array) -> Array:
        """Configurations (..., nq) of the other model."""
        if self.model is self.other:
            return q
        spanning = stack(self.model.spanning_positions(unstack(q)), q.shape[:-1])
        result = np.empty((*q.shape[:-1], self.other.nq))
        for cluster in self.other.clusters:
            for body, places, _ in joint_slices(self.other, cluster):
                at = slice(cluster.q.start + places.start, cluster.q.start + places.stop)
                result[..., at] = spanning[..., self.other.nodes[body].positions]
        return result

    def motion(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Configurations, velocities and accelerations (..., ·) of the other model."""
        if self.model is self.other:
            return q, v, a
        rows = [row for cluster in self.other.clusters for row in _rows(cluster)]
        g = self.model.constraint_jacobian(q)[..., rows, :]
        bias = self.model.constraint_bias(q, v)[..., rows]
        rates = np.einsum("...ij,...j->...i", g, v)
        return self.configurations(q), rates, np.einsum("...ij,...j->...i", g, a) + bias

    def forces(self, q: Array) -> Change:
        """The change to generalised forces of the other model, at q of this one.

        It is not finite where the other's independent joints rest though the robot moves.
        """
        parts = self._parts(q)
        matrices = (np.swapaxes(inverses(rates), -1, -2) for _, rates in parts)
        return Change(tuple(cluster.v for cluster, _ in parts), tuple(matrices))

    def crossed(self, q: Array) -> list[Cluster]:
        """Clusters whose independent joints in the other model pass dead points in a motion q."""
        signs = ((cluster, np.sign(np.linalg.det(rates))) for cluster, rates in self._parts(q))
        return [cluster for cluster, sign in signs if np.any(sign != sign[0])]

    def _parts(self, q: Array) -> list[tuple[Cluster, Array]]:
        """The other model's clusters whose rates are others, and these by the rates of this one."""
        pairs = list[tuple[Cluster, Array]]()
        if self.model is not self.other:
            g = self.model.constraint_jacobian(q)
            for mine, its in zip(self.model.clusters, self.other.clusters, strict=True):
                if mine.independent != its.independent:
                    pairs.append((its, g[..., _rows(its), its.v]))
        return pairs


def _rows(cluster: Cluster) -> list[int]:
    """The spanning velocities that are independent."""
    return [cluster.spanning_v.start + column for column in cluster.columns]
