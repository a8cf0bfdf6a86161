"""Limits of motions: of joints, of forces on coordinates, of actuators, and of transmissions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics import actuator_map
from robomodel.dynamics.actuators.efforts import alone
from robomodel.dynamics.actuators.envelopes import inverses
from robomodel.errors import UnknownNameError, as_real, did_you_mean
from robomodel.identification.best_joints import SameRobot
from robomodel.identification.coordinates import motor_rates
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.model.sizes import length_of
from robomodel.reach.ranges import joint_range
from robomodel.scalars import stack, unstack

Most: TypeAlias = float | Mapping[str, float] | None

AWAY = 4.0  # largest size of G relative to the middle, which keeps loops away from dead points
FREE_REACH = 1.0  # rad, or lengths of the longest link, of joints without limits
NO_ROOM = 1e-9  # half of a range below which nothing can move

Quantity = Literal["position", "velocity", "acceleration", "torque", "reach", "transmission"]


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A limit, and the part of it that a motion uses.

    Attributes:
        name: Name of the joint, coordinate, cluster or actuator.
        quantity: "position", "velocity", "acceleration" or "torque"; "reach", a position without
            a limit in the file; "transmission", the size of a cluster's G.
        lower: The lower limit.
        upper: The upper limit.
        share: The fraction used: 1 at the limit.
    """

    name: str
    quantity: Quantity
    lower: float
    upper: float
    share: float = math.nan

    def share_of(self, x: Array) -> Array:
        """The fraction used at x: 0 in the middle, 1 at a limit; 1 - distance from a single one."""
        half = 0.5 * (self.upper - self.lower)
        beyond = np.maximum(x - self.upper, self.lower - x)
        return np.asarray(1.0 + beyond / (max(half, NO_ROOM) if math.isfinite(half) else 1.0))

    def __str__(self) -> str:
        same = self.lower == -self.upper
        limits = f"±{self.upper:.4g}" if same else f"{self.lower:.4g} to {self.upper:.4g}"
        return f"{self.quantity} of '{self.name}': {100.0 * self.share:.0f} % of {limits}"


def _positions(
    model: Model, about: Array, moved: tuple[int, ...], reach: float | None
) -> Iterator[LimitUse]:
    """Limits of positions from the file; ``reach`` about the middle for moved joints without."""
    at = model.joint_positions(about)
    names = {model.dof_names[i] for i in moved}
    linked = {name for c in model.clusters if c.implicit for name in c.joints}
    length = length_of(model)
    for joint in model.joints:
        if joint.nv != 1:
            continue
        low, high = joint.lower, joint.upper
        if joint.type == "continuous":
            low, high = -math.inf, math.inf
        if joint.name not in names:
            if math.isfinite(low) or math.isfinite(high):
                yield LimitUse(joint.name, "position", low, high)
            continue
        far = (FREE_REACH if reach is None else reach) * (
            length if joint.type == "prismatic" else 1.0
        )
        if reach is None and joint.name in linked and joint_range(model, joint.name).turns_fully:
            far = math.pi
        place = float(at[joint.name])
        kind: Quantity = "position" if math.isfinite(low) or math.isfinite(high) else "reach"
        if not math.isfinite(low):
            low = (min(high, place + far) - far if math.isfinite(high) else place) - far
        if not math.isfinite(high):
            high = max(low, place - far) + 2.0 * far
        yield LimitUse(joint.name, kind, low, high)


def _requested(
    most: Most, what: str, all_of: Iterable[str], all_names: Iterable[str]
) -> dict[str, float]:
    """Limits by name, from a mapping or from one number for ``all_of``; checked."""
    if most is None:
        return {}
    result = dict(most) if isinstance(most, Mapping) else dict.fromkeys(all_of, most)
    names = list(all_names)
    for name, value in result.items():
        if name not in names:
            raise UnknownNameError(
                f"{what}: no '{name}' with one freedom{did_you_mean(name, names)}"
            )
        if not as_real(value, what) > 0.0:
            raise ValueError(f"{what} of '{name}' must be positive, got {value!r}")
    return result


def _rates(
    model: Model, named: Sequence[str], quantity: Quantity, most: Most
) -> Iterator[LimitUse]:
    """Limits of velocities, from the file or requested; or requested ones of accelerations."""
    joints = {joint.name: joint for joint in model.joints if joint.nv == 1}
    limits = _requested(most, quantity, named, joints)
    for name, joint in joints.items():
        asked = limits.get(name, math.inf)
        low, high = -asked, asked
        if quantity == "velocity":
            low, high = max(low, joint.least_velocity), min(high, joint.velocity_limit)
        if math.isfinite(low) or math.isfinite(high):
            yield LimitUse(name, quantity, low, high)


def _torques(model: Model, named: Sequence[str], driven: Array, most: Most) -> Iterator[LimitUse]:
    """Limits of forces: requested ones, and the file's for coordinates without an actuator."""
    names = model.dof_names
    limits = _requested(most, "torque", named, names)
    filed = zip(model.effort_lower.tolist(), model.effort_limit.tolist(), strict=True)
    for name, ends, is_driven in zip(names, filed, driven, strict=True):
        asked = limits.get(name, math.inf)
        low, high = (-math.inf, math.inf) if is_driven else ends
        low, high = max(low, -asked), min(high, asked)
        if math.isfinite(low) or math.isfinite(high):
            yield LimitUse(name, "torque", low, high)


@dataclass(frozen=True, eq=False)
class Transmission:
    """The size of the rates of a cluster's joints by unit rates, infinite at dead points.

    ``motors`` (nv, spanning velocities): of these rates, of motors; None: of the independent ones.
    """

    cluster: Cluster
    motors: Array | None

    def size(self, jacobian: Array) -> Array:
        """The size (...) at these G of the robot (..., spanning velocities, nv)."""
        g = jacobian[..., self.cluster.spanning_v, self.cluster.v]
        if self.motors is not None:
            g = g @ inverses(self.motors @ g)
        return np.asarray(np.linalg.norm(g, axis=(-2, -1)))


def _transmissions(model: Model, about: Array) -> Iterator[tuple[Transmission, LimitUse]]:
    """Limits that keep loops away from dead points: of independent joints, and of their motors."""
    jacobian = model.constraint_jacobian(about)
    for cluster in model.clusters:
        motors = motor_rates(model, cluster) if cluster.implicit else None
        rates = [None] if motors is None else [None, motors]
        for each in (Transmission(cluster, x) for x in rates if cluster.implicit):
            most = AWAY * float(each.size(jacobian))
            yield each, LimitUse(cluster.name, "transmission", -most, most)


def driven(model: Model, q: Array) -> Array:
    """The coordinates (nv,) that actuators drive at a configuration."""
    return np.asarray(np.any(actuator_map(model, q) != 0.0, axis=-1))


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Limits of joints and of coordinates' forces, and of actuators by their models.

    Motions are of ``robot.model``, whose coordinates that actuators drive are ``driven`` (nv,).
    Limits of forces on coordinates are of those of ``robot.other``.
    """

    robot: SameRobot
    bounds: tuple[LimitUse, ...]
    transmissions: tuple[tuple[Transmission, LimitUse], ...]
    driven: Array

    @classmethod
    def of(
        cls, robot: SameRobot, about: Array, moved: tuple[int, ...], named: Sequence[str],
        reach: float | None, velocity: Most, acceleration: Most, torque: Most,
    ) -> MotionLimits:  # fmt: skip
        """The limits of the file and the requested ones, where these name no joints of ``named``.

        ``about``: a configuration of ``robot.model``, whose coordinates ``moved`` are.
        """
        model = robot.model
        bounds = (
            *_positions(model, about, moved, reach),
            *_rates(model, named, "velocity", velocity),
            *_rates(model, named, "acceleration", acceleration),
            *_torques(robot.other, named, driven(robot.other, robot.configurations(about)), torque),
        )
        return cls(robot, bounds, tuple(_transmissions(model, about)), driven(model, about))

    @property
    def model(self) -> Model:
        """The robot, in the joints in which motions are planned."""
        return self.robot.model

    def used(self, shares: Array) -> list[LimitUse]:
        """All limits, with these used fractions."""
        pairs = zip(self.all, shares.tolist(), strict=True)
        return [replace(bound, share=share) for bound, share in pairs]

    @property
    def all(self) -> tuple[LimitUse, ...]:
        """All limits, in the order of :meth:`shares`."""
        motors = self.model.actuators
        ends = np.transpose(alone(self.model, None)).tolist()
        torques = [LimitUse(m.name, "torque", *x) for m, x in zip(motors, ends, strict=True)]
        rates = [LimitUse(m.name, "velocity", m.least_velocity, m.velocity_limit) for m in motors]
        return (*self.bounds, *(use for _, use in self.transmissions), *torques, *rates)

    def shares(self, q: Array, v: Array, a: Array, tau: Array, motors: Array) -> Array:
        """Used fraction of each limit (..., n) by states and forces: 1 at the limit."""
        model = self.model
        jacobian = model.constraint_jacobian(q)
        spanning = {
            "position": stack(model.spanning_positions(unstack(q)), q.shape[:-1]),
            "velocity": np.einsum("...ij,...j->...i", jacobian, v),
            "acceleration": np.einsum("...ij,...j->...i", jacobian, a)
            + model.constraint_bias(q, v),
        }
        nodes = dict(zip(model.joint_names, model.nodes, strict=True))
        names, result = self.robot.other.dof_names, []
        if any(bound.quantity == "torque" for bound in self.bounds):
            tau = self.robot.forces(q)(tau)
        for bound in self.bounds:
            if bound.quantity == "torque":
                x = tau[..., names.index(bound.name)]
            else:
                node = nodes[bound.name]
                kind = "position" if bound.quantity == "reach" else bound.quantity
                x = spanning[kind][..., node.q if kind == "position" else node.v]
            result.append(bound.share_of(x))
        result += [bound.share_of(each.size(jacobian)) for each, bound in self.transmissions]
        if model.actuators:
            result += list(np.moveaxis(self._motors(q, v, motors), -1, 0))
        return np.stack(result, axis=-1) if result else np.zeros((*q.shape[:-1], 1))

    def _motors(self, q: Array, v: Array, u: Array) -> Array:
        """Used fractions of actuators' forces u at their rates, then of their rates (..., 2 nu)."""
        rates = np.einsum("...ij,...i->...j", actuator_map(self.model, q), v)
        least, most = alone(self.model, rates)
        weakest, stall = alone(self.model, None)
        half = 0.5 * (stall - weakest)
        one = np.where(np.isfinite(stall), stall, -weakest)
        room = np.maximum(np.where(np.isfinite(half), half, one), NO_ROOM)
        motors = self.model.actuators
        slowest, fastest = (
            np.array(x) for x in zip(*((m.least_velocity, m.velocity_limit) for m in motors),
                                     strict=True)
        )  # fmt: skip
        beyond = np.maximum(u - most, least - u)
        limited = np.isfinite(most) | np.isfinite(least)
        with np.errstate(invalid="ignore", divide="ignore"):
            force = np.where(limited, 1.0 + beyond / room, np.where(u < np.inf, 0.0, u))
            speed = np.where(rates < 0.0, rates / slowest, rates / fastest)
        return np.concatenate([force, speed], axis=-1)
