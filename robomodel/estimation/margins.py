"""Factors of planned motions: forces at held points, and margins that shall stay above zero.

A margin is how far inside of a limit a motion is: of every joint's position and speed, dependent
joints' included, of torques, and of contact forces within their friction cones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from robomodel.dynamics import rnea, rnea_derivatives
from robomodel.dynamics.contact.points import points_jacobian, touching
from robomodel.dynamics.kinematics.frames import FrameKey, place, pose
from robomodel.dynamics.kinematics.state import State
from robomodel.dynamics.kinematics.tangents import position_directions
from robomodel.estimation.factors import Errors, FactorBase
from robomodel.kernels.differentiate import along
from robomodel.kernels.function import split
from robomodel.kernels.trace import Traced
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.motion.integrator_functions import function
from robomodel.scalars import Scalar, dot

Bounds: TypeAlias = Mapping[str, tuple[float, float]]
ROUND = 1e-3  # N: what rounds the tip of a friction cone, on the safe side


def _points(model: Model, frames: tuple[FrameKey, ...], q: Array, v: Array, a: Array,
            forces: Array) -> list[Array]:  # fmt: skip
    """Positions, velocities, accelerations (3k,) of points in the world, and Jᵀ f (nv,).

    Then J, and the derivatives by q of velocities, accelerations and Jᵀ f, and of accelerations by
    v.
    """
    k, nv = len(frames), model.nv

    def build(q: Sequence[Traced], v: Sequence[Traced], a: Sequence[Traced],
              f: Sequence[Traced]) -> list[Scalar]:  # fmt: skip
        places = [place(model, key) for key in frames]
        origins = [x for spot in places for x in pose(model, q, spot)[1]]
        rates, accelerations = touching(model, q, v, a, places)
        state = State(model, q, {spot.body for spot in places}, v)
        jacobian = points_jacobian(model, state, q, places)
        pull = [dot(column, f) for column in zip(*jacobian, strict=True)]
        outputs = [*rates, *accelerations, *pull]
        by_q = along(q[0].trace, outputs, position_directions(model, q))
        by_v = along(q[0].trace, accelerations, [{x: 1.0} for x in v])
        slopes = [x for columns in (by_q, by_v) for row in zip(*columns, strict=True) for x in row]
        return [*origins, *outputs, *(x for row in jacobian for x in row), *slopes]

    shapes = [(3 * k,), (3 * k,), (3 * k,), (nv,), *[(3 * k, nv)] * 3, (nv, nv), (3 * k, nv)]
    size = sum(math.prod(shape) for shape in shapes)
    of = function(model, f"points {frames!r}", (model.nq, nv, nv, 3 * k, size), build)
    return list(split(of(q, v, a, forces), shapes))


def _joints(model: Model, q: Array, v: Array) -> list[Array]:
    """Positions and speeds of all joints; G; and the derivative of speeds by q (n, nv).

    Positions of joints with several of them have no limits and are zero here.
    """
    n, nv = model.n_joint_velocities, model.nv

    def build(q: Sequence[Traced], v: Sequence[Traced]) -> list[Scalar]:
        spanning = model.spanning_positions(q)
        at: list[Scalar] = [0.0] * n
        for node in model.nodes:
            if node.joint.nv == 1:
                at[node.v] = spanning[node.q]
        g: list[list[Scalar]] = [[0.0] * nv for _ in range(n)]
        for cluster in model.clusters:
            rows = cluster.constraint.jacobian(cluster.constraint.positions(q[cluster.q]))
            for r, row in zip(range(*cluster.spanning_v.indices(n)), rows, strict=True):
                g[r][cluster.v] = row
        rates = [dot(row, v) for row in g]
        columns = along(q[0].trace, rates, position_directions(model, q))
        slopes = [x for row in zip(*columns, strict=True) for x in row]
        return [*at, *rates, *(x for row in g for x in row), *slopes]

    size = 2 * n + 2 * n * nv
    of = function(model, "joints and their speeds", (model.nq, nv, size), build)
    return list(split(of(q, v), [(n,), (n,), (n, nv), (n, nv)]))


# ---- conditions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeldDynamics(FactorBase):
    """The equations of motion with forces "f" (3k,) [N, world axes] at points of a model.

    e = rnea(q, v, a) - tau - Jᵀ f, the file's springs and damping among the forces. Variables q, v,
    a, tau and, where there are ``frames``, f.
    """

    model: Model
    frames: tuple[FrameKey, ...] = ()

    def __post_init__(self) -> None:
        names = ("q", "v", "a", "tau", "f") if self.frames else ("q", "v", "a", "tau")
        self._describe(names, self.model.nv)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Data are taken off."""
        model, (q, v, a, tau) = self.model, x[:4]
        e = rnea(model, q, v, a, passive=True) - tau
        slopes = [*rnea_derivatives(model, q, v, a, passive=True)]
        slopes.append(np.broadcast_to(-np.eye(model.nv), slopes[2].shape))
        if self.frames:
            found = _points(model, self.frames, q, v, a, x[4])
            e = e - found[3]
            slopes[0] = slopes[0] - found[7]
            slopes.append(-np.swapaxes(found[4], -1, -2))
        return e if data is None else e - data, slopes


@dataclass(frozen=True)
class Held(FactorBase):
    """Points stay where they are: c̈ + 2 ``rate`` ċ + ``rate``² (c - data) = 0 (Baumgarte).

    One condition a time, on accelerations, so that integrators are not overdetermined; what they
    let points drift dies out at ``rate`` [1/s]. ``chosen`` of the ``frames`` are held.
    """

    model: Model
    frames: tuple[FrameKey, ...]
    chosen: tuple[int, ...]
    rate: float

    def __post_init__(self) -> None:
        self._describe(("q", "v", "a"), 3 * len(self.chosen))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Data are where the points are held (3,) each."""
        q, v, a = x
        none = np.zeros((*q.shape[:-1], 3 * len(self.frames)))
        found = _points(self.model, self.frames, q, v, a, none)
        rows = [3 * i + j for i in self.chosen for j in range(3)]
        p, rates, moved = (y[..., rows] for y in found[:3])
        jacobian, rates_q, moved_q = (found[i][..., rows, :] for i in (4, 5, 6))
        moved_v = found[8][..., rows, :]
        r = self.rate
        wanted = p if data is None else data
        e = moved + 2 * r * rates + r * r * (p - wanted)
        by_q = moved_q + 2 * r * rates_q + (r * r * jacobian if data is not None else 0.0)
        return e, [by_q, moved_v + 2 * r * jacobian, jacobian]


@dataclass(frozen=True)
class PointVelocity(FactorBase):
    """Velocities of points in the world, less data [m/s]."""

    model: Model
    frames: tuple[FrameKey, ...]

    def __post_init__(self) -> None:
        self._describe(("q", "v"), 3 * len(self.frames))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Velocities minus data."""
        q, v = x
        none = np.zeros((*q.shape[:-1], self.rows))
        found = _points(self.model, self.frames, q, v, np.zeros_like(v), none)
        e = found[1] if data is None else found[1] - data
        return e, [found[5], found[4]]


# ---- margins -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JointMargins(FactorBase):
    """How far inside their limits positions and speeds of all joints are, dependent ones too.

    ``positions``, ``speeds``: (lower, upper) by joints' names; infinite ones are left out.
    """

    model: Model
    positions: Bounds
    speeds: Bounds
    _rows: tuple[tuple[tuple[int, float, float], ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        at = {joint.name: node.v for joint, node in zip(self.model.joints, self.model.nodes,
                                                        strict=True)}  # fmt: skip
        rows = tuple(
            tuple(
                (at[name], sign, bound)
                for name, (lower, upper) in bounds.items()
                for sign, bound in ((1.0, lower), (-1.0, upper))
                if math.isfinite(bound)
            )
            for bounds in (self.positions, self.speeds)
        )
        object.__setattr__(self, "_rows", rows)
        self._describe(("q", "v"), sum(map(len, rows)))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Margins, positive inside."""
        q, v = x
        at, rates, g, rates_q = _joints(self.model, q, v)
        parts, by_q, by_v = [], [], []
        for value, slope_q, slope_v, rows in (
            (at, g, np.zeros_like(g), self._rows[0]),
            (rates, rates_q, g, self._rows[1]),
        ):
            index = [i for i, _, _ in rows]
            sign = np.array([s for _, s, _ in rows])
            parts.append(sign * (value[..., index] - np.array([b for _, _, b in rows])))
            by_q.append(sign[:, None] * slope_q[..., index, :])
            by_v.append(sign[:, None] * slope_v[..., index, :])
        join = np.concatenate
        return join(parts, axis=-1), [join(by_q, axis=-2), join(by_v, axis=-2)]


@dataclass(frozen=True, eq=False)
class LinearMargins(FactorBase):
    """``matrix`` x - ``bound`` of one variable: torques within their limits."""

    name: str
    matrix: Array
    bound: Array

    def __post_init__(self) -> None:
        self._describe((self.name,), len(self.bound))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Margins, positive inside."""
        slope = np.broadcast_to(self.matrix, (len(x[0]), *self.matrix.shape))
        return x[0] @ self.matrix.T - self.bound, [slope]


@dataclass(frozen=True)
class ConeMargins(FactorBase):
    """Contact forces push, and stay within their friction cones: μ f_n - |f_t|, then f_n [N].

    ``chosen`` of the points whose forces make up "f" (3k,), all with ``friction`` and ``normal``
    (3,) in world axes.
    """

    count: int
    chosen: tuple[int, ...]
    friction: float
    normal: tuple[float, float, float]

    def __post_init__(self) -> None:
        self._describe(("f",), 2 * len(self.chosen))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Margins, positive inside; the tip of the cone is rounded inwards."""
        n = np.array(self.normal)
        across = np.eye(3) - np.outer(n, n)
        f = x[0].reshape(len(x[0]), self.count, 3)[:, list(self.chosen)]
        push, side = f @ n, f @ across
        size = np.sqrt(np.einsum("...i,...i->...", side, side) + ROUND**2)
        slope = np.zeros((len(f), self.rows, 3 * self.count))
        for row, i in enumerate(self.chosen):
            here = slice(3 * i, 3 * i + 3)
            slope[:, 2 * row, here] = self.friction * n - side[:, row] / size[:, row, None]
            slope[:, 2 * row + 1, here] = n
        e = np.stack([self.friction * push - size, push], axis=-1)
        return e.reshape(len(f), self.rows), [slope]
