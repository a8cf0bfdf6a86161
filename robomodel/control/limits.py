"""Limits of a controller: rows over velocities or accelerations, and their bounds.

Every joint with one freedom has limits, dependent joints and rotors too, by its row of G. Limits of
the same row, or of multiples of it as for a motor and the joint that it drives, share one row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.control.tasks import Instant, TaskRows, check_joints, placed, point_rows
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.kinematics.frames import FrameLike, frame_key
from robomodel.errors import as_names, as_real, did_you_mean
from robomodel.mechanism.constraints import LinearConstraint, LoopConstraint, Unconstrained
from robomodel.model.arguments import as_numbers
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.scalars import Scalar, dot, maximum, minimum

Kind: TypeAlias = Literal["position", "velocity", "acceleration", "half-space"]
Slot: TypeAlias = tuple[Literal["column", "row", "half-space"], int]


@dataclass(frozen=True)
class HalfSpace:
    """A point stays where normal · p <= offset, in world axes: behind a wall, above a floor.

    Attributes:
        frame: A link's name, for its origin, or (link, offset).
        normal: Direction (3,) out of the allowed half-space; of any length.
        offset: Distance of the plane from the world's origin along the normal [m].
    """

    frame: FrameLike
    normal: Sequence[float]
    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", frame_key(self.frame))
        normal = as_numbers(self.normal, "normal")
        size = float(np.linalg.norm(normal)) if normal.shape == (3,) else 0.0
        if not (math.isfinite(size) and size > 0.0):
            raise ValueError(f"normal is three finite numbers, not all zero, got {self.normal!r}")
        object.__setattr__(self, "normal", tuple((normal / size).tolist()))
        offset = as_real(self.offset, "offset")
        if not math.isfinite(offset):
            raise ValueError(f"offset of a half-space is finite [m], got {offset}")
        object.__setattr__(self, "offset", offset)


@dataclass(frozen=True)
class AccelerationLimit:
    """A bound on accelerations of joints with one freedom, dependent ones and rotors too.

    Attributes:
        most: Largest acceleration [rad/s², m/s²], one number or one for each joint.
        names: Joints' names.
    """

    most: float | Sequence[float]
    names: str | Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", as_names(self.names, "names"))
        most = as_numbers(self.most, "most")
        if most.shape not in ((), (len(self.names),)) or not np.all(most > 0.0):
            raise ValueError(
                f"most is a positive number, or one for each of {len(self.names)} joints, got "
                f"{self.most!r}"
            )
        numbers = tuple(most.ravel().tolist())
        object.__setattr__(self, "most", numbers if most.ndim else numbers[0])


LimitLike: TypeAlias = str | HalfSpace | AccelerationLimit


@dataclass(frozen=True, slots=True)
class Quantity:
    """A limited quantity: position, velocity or acceleration of a joint, or distance from a plane.

    ``slot``: the row that it bounds; its rate is ``factor`` times that row's.
    """

    label: str
    kind: Kind
    lower: float
    upper: float
    index: int  # of the joint, or of the half-space
    slot: Slot
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class ControlLimits:
    """All limits of a controller on a model."""

    quantities: tuple[Quantity, ...]
    half_spaces: tuple[HalfSpace, ...]

    @property
    def moving(self) -> bool:
        """True if some depend on the velocity."""
        return any(q.kind == "acceleration" for q in self.quantities)

    @property
    def columns(self) -> list[int]:
        """The independent velocities that have bounds themselves."""
        return sorted({q.slot[1] for q in self.quantities if q.slot[0] == "column"})

    @property
    def rows(self) -> list[Slot]:
        """Other rows that have bounds."""
        return list(dict.fromkeys(q.slot for q in self.quantities if q.slot[0] != "column"))

    @property
    def slots(self) -> list[Slot]:
        """All that have bounds: columns, then rows."""
        return list(dict.fromkeys(q.slot for q in self.quantities))

    def row(self, at: Instant, slot: Slot) -> tuple[list[Scalar], Scalar]:
        """J and J̇ v of a slot, whose rate is J v."""
        kind, index = slot
        if kind == "row":
            return at.jacobian[index], at.bias(index)
        if kind == "column":
            row = at.still
            row[index] = 1.0
            return row, 0.0
        plane = self.half_spaces[index]
        point = self._point(at, plane)
        columns = zip(*point.jacobian, strict=True)
        row = [dot(plane.normal, column) for column in columns]
        return row, dot(plane.normal, point.bias)

    def value(self, at: Instant, quantity: Quantity) -> Scalar:
        """A position, or minus the distance from a plane (at most 0)."""
        if quantity.kind == "half-space":
            plane = self.half_spaces[quantity.index]
            return -dot(plane.normal, self._point(at, plane).error)
        return at.configuration.positions[at.model.nodes[quantity.index].q]

    def _point(self, at: Instant, plane: HalfSpace) -> TaskRows:
        place = placed(at, plane.frame, "local_world_aligned")
        return point_rows(at, place, [plane.offset * x for x in plane.normal])

    def bounds(
        self, at: Instant, interval: Callable[[Quantity], tuple[Scalar, Scalar]]
    ) -> tuple[dict[Slot, tuple[Scalar, Scalar]], list[Scalar]]:
        """The bounds of each slot's row; and the bounds by each quantity alone.

        ``interval``: returns the bounds of a quantity's rate (or step, or acceleration).
        """
        result: dict[Slot, tuple[Scalar, Scalar]] = {}
        ends: list[Scalar] = []
        for quantity in self.quantities:
            low, high = (1.0 / quantity.factor * x for x in interval(quantity))
            if quantity.factor < 0.0:
                low, high = high, low
            ends += [low, high]
            if quantity.slot in result:
                before = result[quantity.slot]
                low, high = maximum(low, before[0]), minimum(high, before[1])
            result[quantity.slot] = low, high
        return result, ends

    def responsible(self, slot: Slot, ends: Array, bounds: tuple[float, float]) -> list[str]:
        """Labels of the quantities whose bounds are a slot's; ``ends``: all bounds."""
        result = []
        for quantity, (low, high) in zip(self.quantities, ends.reshape(-1, 2), strict=True):
            if quantity.slot == slot and (low >= bounds[0] or high <= bounds[1]):
                result.append(quantity.label)
        return result


def limits_of(
    model: Model,
    limits: LimitLike | Iterable[LimitLike],
    allowed: Sequence[str],
    *,
    tangent: bool = False,
) -> ControlLimits:
    """The limits that a controller names: kinds among ``allowed``, and objects.

    ``tangent``: rows of linkages are over tangent coordinates.
    """
    limits = as_limits(limits)
    kinds = [x for x in limits if not isinstance(x, HalfSpace | AccelerationLimit)]
    planes = tuple(each for each in limits if isinstance(each, HalfSpace))
    fastest: dict[str, float] = {}
    for each in limits:
        if isinstance(each, AccelerationLimit):
            fastest |= one_freedom(model, each)
    for kind in kinds:
        if kind not in allowed:
            names = ", ".join(f"'{each}'" for each in allowed)
            raise ValueError(
                f"limits {kind!r} are not known{did_you_mean(kind, allowed)}; {names} are, and "
                "HalfSpace and AccelerationLimit"
            )
    quantities: list[Quantity] = []
    for body, (joint, node) in enumerate(zip(model.joints, model.nodes, strict=True)):
        if joint.nv != 1:
            continue
        slot, factor = _slot(model.clusters[node.cluster], node.v, tangent=tangent)
        bounded = joint.type != "continuous" and np.isfinite([joint.lower, joint.upper]).any()
        if "position" in kinds and bounded:
            label = f"position of joint '{joint.name}'"
            quantities.append(
                Quantity(label, "position", joint.lower, joint.upper, body, slot, factor)
            )
        rates = joint.least_velocity, joint.velocity_limit
        if "velocity" in kinds and any(map(math.isfinite, rates)):
            label = f"velocity of joint '{joint.name}'"
            quantities.append(Quantity(label, "velocity", *rates, body, slot, factor))
        if joint.name in fastest:
            most = fastest[joint.name]
            label = f"acceleration of joint '{joint.name}'"
            quantities.append(Quantity(label, "acceleration", -most, most, body, slot, factor))
    for i, plane in enumerate(planes):
        frames.place(model, frame_key(plane.frame))
        label = f"half-space of {plane.frame!r}"
        quantities.append(Quantity(label, "half-space", -math.inf, 0.0, i, ("half-space", i)))
    return ControlLimits(tuple(quantities), planes)


def as_limits(limits: LimitLike | Iterable[LimitLike]) -> tuple[LimitLike, ...]:
    """Limits of a controller, one or several."""
    if isinstance(limits, str | HalfSpace | AccelerationLimit):
        return (limits,)
    return tuple(limits)


def one_freedom(model: Model, limit: AccelerationLimit) -> dict[str, float]:
    """The largest acceleration of each joint; raises an error unless joints have one freedom."""
    check_joints(model, limit.names)
    most = np.broadcast_to(limit.most, (len(limit.names),)).tolist()
    return dict(zip(limit.names, most, strict=True))


def _slot(cluster: Cluster, row: int, *, tangent: bool) -> tuple[Slot, float]:
    """The slot that a joint's row of G bounds: an independent velocity, if a multiple of one."""
    constraint = cluster.constraint
    i = row - cluster.spanning_v.start
    if isinstance(constraint, LoopConstraint):
        entries = list(constraint.expand[i])
        used = [c for c, x in enumerate(entries) if x]
        if tangent or len(used) != 1 or used[0] not in constraint.independent:
            return ("row", row), 1.0
        return (
            ("column", cluster.v.start + constraint.independent.index(used[0])),
            float(entries[used[0]]),
        )
    if isinstance(constraint, Unconstrained):
        return ("column", cluster.v.start + i), 1.0
    if isinstance(constraint, LinearConstraint):
        entries = list(constraint.matrix[i])
        used = [c for c, x in enumerate(entries) if x]
        if len(used) == 1:
            return ("column", cluster.v.start + used[0]), float(entries[used[0]])
    return ("row", row), 1.0
