"""Periodic motions as Fourier series from rest to rest, and how near to limits they come."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from robomodel.dynamics import actuator_map, passive_force
from robomodel.dynamics.actuators.maps import bounds, forces
from robomodel.identification.regressors import regressor
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.model.parameters import parameters
from robomodel.scalars import stack, unstack

TINY = 1e-9  # half of a range that leaves no room

Quantity = Literal["position", "velocity", "acceleration", "torque", "reach", "transmission"]


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit: what ``quantity`` of a joint, coordinate, cluster or actuator may be.

    "reach" is a position that nothing else limits; "transmission" the size of a cluster's G.
    """

    name: str
    quantity: Quantity
    lower: float
    upper: float

    def share(self, x: Array) -> Array:
        """How much of it x uses: 0 in the middle, 1 on it; of a single one, 1 less the way left."""
        half = 0.5 * (self.upper - self.lower)
        beyond = np.maximum(x - self.upper, self.lower - x)
        return np.asarray(1.0 + beyond / (max(half, TINY) if math.isfinite(half) else 1.0))


@dataclass(frozen=True)
class Limits:
    """Limits of joints and of coordinates' forces, and those of the actuators, by their models.

    ``driven`` (nv,): the coordinates that actuators drive.
    """

    model: Model
    bounds: tuple[Bound, ...]
    driven: Array

    @property
    def all(self) -> tuple[Bound, ...]:
        """All of them, in the order of :meth:`shares`."""
        motors = self.model.actuators
        most = bounds(self.model, None)[1].tolist()
        torques = [Bound(m.name, "torque", -u, u) for m, u in zip(motors, most, strict=True)]
        rates = [Bound(m.name, "velocity", -m.velocity_limit, m.velocity_limit) for m in motors]
        return (*self.bounds, *torques, *rates)

    def shares(self, q: Array, v: Array, a: Array, tau: Array) -> Array:
        """How much of each limit (..., n) states and forces use: 1 on it."""
        model = self.model
        jacobian = model.constraint_jacobian(q)
        spanning = {
            "position": stack(model.spanning_positions(unstack(q)), q.shape[:-1]),
            "velocity": np.einsum("...ij,...j->...i", jacobian, v),
            "acceleration": np.einsum("...ij,...j->...i", jacobian, a)
            + model.constraint_bias(q, v),
        }
        nodes = dict(zip(model.joint_names, model.nodes, strict=True))
        clusters = {cluster.name: cluster for cluster in model.clusters}
        found = []
        for bound in self.bounds:
            if bound.quantity == "transmission":
                rows = jacobian[..., clusters[bound.name].spanning_v, :]
                x = np.linalg.norm(rows, axis=(-2, -1))
            elif bound.quantity == "torque":
                x = tau[..., model.dof_names.index(bound.name)]
            else:
                node = nodes[bound.name]
                kind = "position" if bound.quantity == "reach" else bound.quantity
                x = spanning[kind][..., node.q if kind == "position" else node.v]
            found.append(bound.share(x))
        if model.actuators:
            found += list(np.moveaxis(self._motors(q, v, tau), -1, 0))
        return np.stack(found, axis=-1) if found else np.zeros((*q.shape[:-1], 1))

    def _motors(self, q: Array, v: Array, tau: Array) -> Array:
        """Of each actuator's force at its rate, then of its rates (..., 2 nu)."""
        matrix = actuator_map(self.model, q)
        u = forces(matrix, np.where(self.driven, tau, 0.0))
        u = np.where(np.isnan(u) & ~np.isnan(tau[..., :1]), np.inf, u)
        rates = np.einsum("...ij,...i->...j", matrix, v)
        least, most = bounds(self.model, rates)
        rest = np.maximum(bounds(self.model, None)[1], TINY)
        fastest = np.array([each.velocity_limit for each in self.model.actuators])
        beyond = np.maximum(u - most, least - u)
        with np.errstate(invalid="ignore"):
            force = np.where(np.isfinite(most), 1.0 + beyond / rest, np.where(u < np.inf, 0.0, u))
        return np.concatenate([force, np.abs(rates) / fastest], axis=-1)


class FourierMotion(NamedTuple):
    """States (..., T, n) along a motion, the forces it takes, their regressor, limits' shares.

    ``x``: how far the moved joints are from where motions are about.
    """

    x: Array
    q: Array
    v: Array
    a: Array
    rows: Array
    tau: Array
    shares: Array


@dataclass(frozen=True)
class Family:
    """Motions of some independent joints with one freedom, told by numbers (..., size).

    First how far from ``about`` each moved joint begins, then the sizes of its modes, in units of
    ``reach`` (moved,); with ``fixed``, all begin there, and the numbers are sizes alone.
    """

    limits: Limits
    about: Array
    moved: tuple[int, ...]
    reach: Array
    fixed: bool
    period: float
    harmonics: int

    @property
    def model(self) -> Model:
        """Of the robot."""
        return self.limits.model

    @property
    def modes(self) -> int:
        """How many shapes there are for each joint."""
        return 2 * self.harmonics - 2

    @property
    def size(self) -> int:
        """How many numbers tell a motion."""
        return (self.modes + (not self.fixed)) * len(self.moved)

    def split(self, numbers: Array) -> tuple[Array, Array]:
        """Beginnings (..., moved) and sizes of modes (..., moved, modes)."""
        count = len(self.moved)
        sizes = numbers[..., -count * self.modes :].reshape(*numbers.shape[:-1], count, self.modes)
        begins = np.zeros(sizes.shape[:-1]) if self.fixed else numbers[..., :count]
        return begins, sizes

    def centred(self, middle: Array, sizes: Array) -> Array:
        """The numbers of motions with these means; with a fixed beginning wherever it leads."""
        flat = sizes.reshape(*sizes.shape[:-2], -1)
        return flat if self.fixed else np.concatenate([middle - self._means(sizes), flat], axis=-1)

    def shrunk(self, numbers: Array, share: float) -> Array:
        """The motion about its own mean, or its fixed beginning, by this share as large."""
        begins, sizes = self.split(numbers)
        return self.centred(begins + self._means(sizes), share * sizes)

    def _means(self, sizes: Array) -> Array:
        time = np.linspace(0.0, self.period, 4 * self.harmonics, endpoint=False)
        return np.asarray(sizes @ self.shapes(time, 0).mean(0))

    def shapes(self, time: Array, order: int) -> Array:
        """Modes (T, 2 harmonics - 2), or their rates of first or second ``order``.

        Sines and cosines of multiples of the period, combined so that each is zero, and at rest
        without acceleration, where a period begins and ends.
        """
        k = np.arange(1.0, self.harmonics + 1.0)
        rate = 2.0 * math.pi / self.period * k
        phase = np.outer(time, rate) + 0.5 * math.pi * order
        sines, cosines = np.sin(phase) * rate**order, np.cos(phase) * rate**order
        if order == 0:
            cosines = cosines - 1.0
        held, level = self._bases
        return np.concatenate([sines @ held, cosines @ level], axis=1)

    @property
    def _bases(self) -> tuple[Array, Array]:
        """Orthonormal combinations of sines without velocity, of cosines without acceleration."""
        k = np.arange(1.0, self.harmonics + 1.0)
        held, level = (np.linalg.svd(row[None])[2][1:].T for row in (k, k**2))
        return held, level

    @property
    def hump(self) -> Array:
        """Sizes of modes (modes,) of (1 - cos)², which is on one side of the beginning."""
        _, level = self._bases
        cosines = np.zeros(self.harmonics)
        cosines[:2] = -1.0, 0.25
        return np.concatenate([np.zeros(self.harmonics - 1), cosines @ level])

    def along(
        self, time: Array, numbers: Array, near: FourierMotion | None = None
    ) -> FourierMotion:
        """The motions (..., T, …) at these times; not-a-number where a loop does not follow.

        ``near``: a motion at the same times, close to them; loops stay on its branch.
        """
        begins, sizes = self.split(numbers)
        x, rate, pull = (
            self.reach * np.einsum("...jk,tk->...tj", sizes, self.shapes(time, order))
            for order in range(3)
        )
        x = x + self.reach * begins[..., None, :]
        far = x if near is None else x - near.x
        q = followed(self.model, self.about if near is None else near.q, self._whole(far))
        v, a = self._whole(rate), self._whole(pull)
        with np.errstate(invalid="ignore"):
            rows = regressor(self.model, q, v, a)
            tau = rows @ parameters(self.model).values
            tau = tau - passive_force(self.model, q, np.zeros_like(v))
            return FourierMotion(x, q, v, a, rows, tau, self.limits.shares(q, v, a, tau))

    def _whole(self, x: Array) -> Array:
        found = np.zeros((*x.shape[:-1], self.model.nv))
        found[..., self.moved] = x
        return found


def followed(model: Model, q: Array, far: Array) -> Array:
    """Configurations reached; not-a-number where a loop cannot follow, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return model.integrate(q, far)
