"""PD loops at joints or motors, over scalars of any kind: part of compiled steps."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.actuators.maps import actuator_map
from robomodel.dynamics.actuators.maps import positions as actuator_positions
from robomodel.model.arguments import as_numbers
from robomodel.model.elements import joint_slices
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, added, dot

Servo: TypeAlias = Literal["joints", "motors"]
"""Place of the loops: the independent velocities (nv), or the actuators (nu)."""


def size(model: Model, servo: Servo | None) -> int:
    """The number of loops."""
    if servo is None:
        return 0
    return model.nv if servo == "joints" else len(model.actuators)


def measured(model: Model) -> list[int | None]:
    """The index in q of the position of each independent velocity; None: it has no single one."""
    result: list[int | None] = [None] * model.nv
    for cluster in model.clusters:
        columns = list(cluster.columns)
        for body, at, rates in joint_slices(model, cluster):
            if model.nodes[body].joint.nv == 1:
                speed = rates.start
                if cluster.implicit:
                    if speed not in columns:
                        continue
                    speed = columns.index(speed)
                result[cluster.v.start + speed] = cluster.q.start + at.start
    return result


def servo_forces(model: Model, servo: Servo, q: Vector, v: Vector, numbers: Vector) -> list[Scalar]:
    """Forces (nv) on the independent joints; ``numbers``: tau (nv), then kp, kd and targets.

    At joints kp (target - q) - kd v, at motors B (kp (target - position) - kd rate), added to tau.
    """
    n = size(model, servo)
    tau = list(numbers[: model.nv])
    kp, kd, targets = (numbers[model.nv + k * n :][:n] for k in range(3))
    if servo == "joints":
        at = [None if place is None else q[place] for place in measured(model)]
        pull = [
            0.0 if x is None else k * (to - x) for k, to, x in zip(kp, targets, at, strict=True)
        ]
        return [f + p - d * x for f, p, d, x in zip(tau, pull, kd, v, strict=True)]
    matrix = actuator_map(model, q)
    rates = [dot(column, v) for column in zip(*matrix, strict=True)]
    given = [
        k * (to - x) - d * rate
        for k, d, to, x, rate in zip(
            kp, kd, targets, actuator_positions(model, q), rates, strict=True
        )
    ]
    return added(tau, [dot(row, given) for row in matrix])


def settings(model: Model, n: int, pd: Any) -> tuple[Servo | None, Array, Array, Array]:
    """Place, kp, kd and targets (n, k) of the loops of ``pd``; raises ValueError if unfit."""
    if pd is None:
        return None, *np.zeros((3, n, 0))
    if not isinstance(pd, tuple | list) or len(pd) not in (3, 4):
        raise ValueError(
            "pd is (kp, kd, targets), or (kp, kd, targets, 'joints' or 'motors'), got "
            f"{type(pd).__name__}"
        )
    gains = [as_numbers(x, name) for x, name in zip(pd, ("kp", "kd", "targets"), strict=False)]
    sizes = {"motors": len(model.actuators), "joints": model.nv}
    servo: Servo | None = pd[3] if len(pd) == 4 else None
    if servo is None:
        given = gains[2].shape[-1:]
        kinds: tuple[Servo, ...] = ("joints", "motors")
        servo = next((kind for kind in kinds if given == (sizes[kind],)), None)
    if servo is None or not sizes.get(servo):
        raise ValueError(
            f"targets of pd are (..., nv = {model.nv}) positions of joints or (..., nu = "
            f"{sizes['motors']}) of motors, got shape {gains[2].shape}"
        )
    shape = n, sizes[servo]
    try:
        kp, kd, targets = (np.array(np.broadcast_to(x, shape), float) for x in gains)
    except ValueError:
        shapes = ", ".join(str(x.shape) for x in gains)
        raise ValueError(f"kp, kd and targets of pd broadcast to {shape}, got {shapes}") from None
    if servo == "joints":
        for i, place in enumerate(measured(model)):
            if place is None and np.any(kp[:, i]):
                if np.ndim(pd[0]) == 0:
                    kp[:, i] = 0.0  # a single number is for all velocities that have a position
                else:
                    raise ValueError(
                        f"'{model.dof_names[i]}' has no single position: its kp is 0, got "
                        f"{kp[0, i]:g}"
                    )
    if not all(np.all(np.isfinite(x)) for x in (kp, kd, targets)):
        raise ValueError("kp, kd and targets of pd must be finite")
    return servo, kp, kd, targets
