"""Coordinates in which a cluster's forces are compared, whichever joints are independent.

Errors of measured forces are those of motors, so that forces of a cluster with as many motors as
freedoms are compared motor by motor: with the rates w = R v of these, they are R⁻ᵀ tau. Where a
cluster has other motors, or passes dead points of these, its coordinates' rates are orthonormal, as
no state is singular in such: with G = Q T in comparable units, of orthonormal columns Q, they are
O T v with the orthogonal O that is nearest to R T⁻¹, R of the motors or else of the limb's joints.
The sign of O's determinant stays where R passes dead points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array, Mask
from robomodel.dynamics.kinematics.rates import jacobian_rate
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.reach.limb import DETERMINED, limb_bodies
from robomodel.tolerances import DIFFERENCE, NOTHING, SINGULAR


@dataclass(frozen=True, eq=False)
class ClusterCoordinates:
    """The coordinates of one cluster: rates ``rows`` (nv, spanning velocities) in joints' units.

    ``unit``: the joints' units. ``exact``: these are the coordinates' rates, regular in all states;
    otherwise the nearest orthonormal ones are, with a determinant of this ``sign``.
    """

    cluster: Cluster
    rows: Array
    unit: Array
    exact: bool = False
    sign: float = 1.0

    def forces(self, g: Array) -> Array:
        """Matrices (..., nv, nv) from independent joints' forces to those in these coordinates."""
        if self.exact:
            return np.swapaxes(np.linalg.inv(self.rows @ g), -1, -2)
        rates, nearest = self.orthonormal(g)
        left, _, right = np.linalg.svd(nearest)
        left[..., -1] *= (self.sign * np.linalg.det(left) * np.linalg.det(right))[..., None]
        return np.asarray(left @ right @ np.swapaxes(np.linalg.inv(rates), -1, -2))

    def orthonormal(self, g: Array) -> tuple[Array, Array]:
        """Orthonormal rates by v, and these coordinates' rates by those (..., nv, nv)."""
        basis, rates = np.linalg.qr(g / self.unit[:, None])
        signs = np.sign(np.diagonal(rates, axis1=-2, axis2=-1))
        return signs[..., :, None] * rates, (self.rows * self.unit) @ (basis * signs[..., None, :])


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The clusters of a robot whose forces are compared in other coordinates."""

    model: Model
    clusters: tuple[ClusterCoordinates, ...]

    @classmethod
    def of(cls, model: Model, q: Array, kept: Mask | None = None) -> Coordinates:
        """The coordinates in these configurations (..., nq).

        Those of clusters that are single joints, or one freedom of constant ratios, are theirs; so
        are those of the coordinates ``kept`` (nv,).
        """
        g: Array | None = None
        result = []
        for cluster in model.clusters:
            if cluster.kind == "joint" or (cluster.nv == 1 and not cluster.varies):
                continue
            if kept is not None and kept[cluster.v].any():
                continue
            if g is None:
                g = model.constraint_jacobian(q).reshape(-1, _spanning(model), model.nv)
            each = _of_cluster(model, cluster, g[:, cluster.spanning_v, cluster.v])
            result += [each] if each is not None else []
        return cls(model, tuple(result))

    def at(self, q: Array) -> Change:
        """The change to these coordinates at configurations (..., nq)."""
        return self._change(self.model.constraint_jacobian(q) if self.clusters else q)

    def moving(self, q: Array, v: Array) -> tuple[Change, Change]:
        """The change (T, ·), and its rate along a motion."""
        if not self.clusters:
            return self.at(q), self.at(q)
        g = self.model.constraint_jacobian(q)
        rate = np.zeros_like(g)
        for cluster, part in zip(self.model.clusters, jacobian_rate(self.model, q, v), strict=True):
            rate[..., cluster.spanning_v, cluster.v] = part
        ahead, behind = (self._change(g + step * rate) for step in (DIFFERENCE, -DIFFERENCE))
        slopes = [
            (one - other) / (2.0 * DIFFERENCE)
            for one, other in zip(ahead.matrices, behind.matrices, strict=True)
        ]
        return self._change(g), Change(ahead.places, tuple(slopes), SINGULAR)

    def _change(self, g: Array) -> Change:
        places = tuple(each.cluster.v for each in self.clusters)
        matrices = (
            each.forces(g[..., each.cluster.spanning_v, each.cluster.v]) for each in self.clusters
        )
        return Change(places, tuple(matrices))

    def least(self, x: Array) -> Array:
        """x (nv,) of these coordinates; all of a cluster have its least."""
        result = x.copy()
        for each in self.clusters:
            result[each.cluster.v] = np.min(x[each.cluster.v])
        return result


@dataclass(frozen=True, eq=False)
class Change:
    """From forces on independent joints to those in other coordinates, cluster by cluster.

    ``matrices`` (..., n, n) of the coordinates at ``places``; ``rounding``: as of :func:`rounded`.
    """

    places: tuple[slice, ...]
    matrices: tuple[Array, ...]
    rounding: float = NOTHING

    def __call__(self, x: Array, axis: int = -1) -> Array:
        """Forces x in these coordinates, which are along ``axis``, -1 or -2."""
        if not self.places:
            return x
        result = x.copy()
        for at, part in self.parts(x, axis):
            result[(..., at) if axis == -1 else (..., at, slice(None))] = part
        return result

    def parts(self, x: Array, axis: int = -2) -> Sequence[tuple[slice, Array]]:
        """The places that differ, with what is there."""
        wide, result = x[..., None] if axis == -1 else x, []
        for at, matrix in zip(self.places, self.matrices, strict=True):
            part = matrix @ wide[..., at, :]
            if matrix.shape[-1] > 1:
                sizes = np.sum(np.abs(matrix), axis=-1, keepdims=True)
                terms = sizes * np.max(np.abs(wide[..., at, :]), axis=-2, keepdims=True)
                part = rounded(part, terms, self.rounding)
            result.append((at, part[..., 0] if axis == -1 else part))
        return result

    def squared(self, x: Array) -> Array:
        """Matrices x (..., nv, nv) between forces, in these coordinates."""
        if not self.places:
            return x
        result = self(x, -2)
        for at, matrix in zip(self.places, self.matrices, strict=True):
            result[..., at] = result[..., at] @ np.linalg.inv(matrix)
        return result


def rounded(x: Array, terms: Array, share: float) -> Array:
    """x (..., n, m), with zeros for entries that are at most a share of their terms in all states.

    What some choices of independent joints have as zeros, is rounding for others.
    """
    states = tuple(range(x.ndim - 2))
    small = np.max(np.abs(x), states) <= share * np.max(terms, states)
    return np.where(small, 0.0, x)


def _spanning(model: Model) -> int:
    return max((cluster.spanning_v.stop for cluster in model.clusters), default=0)


def _of_cluster(model: Model, cluster: Cluster, g: Array) -> ClusterCoordinates | None:
    """The coordinates of a cluster in states with these G (n, ·, nv); None if they are its own.

    They are its own where neither motors nor limb joints are as many as its freedoms.
    """
    unit = cluster.geometry.unit
    rows = motor_rates(model, cluster)
    motors = rows is not None
    if rows is None:  # of one freedom any joint tells the sign, which is all that is left of it
        rows = np.eye(1, len(unit)) if cluster.nv == 1 else _limb(model, cluster)
    if len(rows) != cluster.nv:
        return None
    rows = rows / np.linalg.norm(rows * unit, axis=1, keepdims=True)
    result = ClusterCoordinates(cluster, rows, unit)
    _, matrices = result.orthonormal(g)
    least = np.linalg.svd(matrices, compute_uv=False)[..., -1]
    if motors and np.min(least) > DETERMINED * np.median(least):
        return ClusterCoordinates(cluster, rows, unit, exact=True)
    sign = float(np.sign(np.median(np.sign(np.linalg.det(matrices))))) or 1.0
    return ClusterCoordinates(cluster, rows, unit, sign=sign)


def motor_rates(model: Model, cluster: Cluster) -> Array | None:
    """Rates of a cluster's motors (nv, ·); None unless they are as many and move it alone."""
    first, end = cluster.spanning_v.start, cluster.spanning_v.stop
    result = []
    for actuator in model.actuators:
        inside = [first <= row < end for row, _ in actuator.rows]
        if any(inside):
            if not all(inside):
                return None
            rates = np.zeros(end - first)
            for row, k in actuator.rows:
                rates[row - first] += k
            result.append(rates)
    return np.array(result) if len(result) == cluster.nv else None


def _limb(model: Model, cluster: Cluster) -> Array:
    """Rates of a cluster's limb joints (n, ·)."""
    freedoms = [
        row - cluster.spanning_v.start
        for body in limb_bodies(model)[cluster.index] for row in model.nodes[body].freedoms
    ]  # fmt: skip
    return np.eye(cluster.spanning_v.stop - cluster.spanning_v.start)[freedoms]
