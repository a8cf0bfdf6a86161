"""The types of transmissions: how actuators turn with joints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from robomodel.description import Actuator, Motor, Transmission, TransmittedJoint
from robomodel.tolerances import SAME

SIMPLE = "SimpleTransmission"
DIFFERENTIAL = "DifferentialTransmission"
HALF_DIFFERENTIAL = "HalfDifferentialTransmission"
FOUR_BAR_LINKAGE = "FourBarLinkageTransmission"
KINDS = {SIMPLE: 1, DIFFERENTIAL: 2, HALF_DIFFERENTIAL: 2, FOUR_BAR_LINKAGE: 2}
"""The types, with the number of their joints and actuators."""


def kind_of(transmission: Transmission) -> str:
    """The type without its namespace; one joint and one actuator without a type are simple."""
    kind = transmission.type.replace("::", "/").rpartition("/")[2]
    alone = len(transmission.joints) == len(transmission.actuators) == 1
    return SIMPLE if not kind and alone else kind


def actuator_rows(kind: str, n: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """The motion of actuators, before their reductions, per motion of the joints: a row for each.

    With joint positions q, offsets o, reductions n of the joints and N of the actuators, each
    actuator's position is x = N · Σ row · (q − o), where

    - simple: x = N n (q − o);
    - differential: x₁ = N₁ (n₁ (q₁ − o₁) + n₂ (q₂ − o₂)), x₂ = N₂ (n₁ (q₁ − o₁) − n₂ (q₂ − o₂));
    - half differential: x₁ = N₁ n₁ (q₁ − o₁), x₂ = N₂ (n₁ (q₁ − o₁) + n₂ (q₂ − o₂));
    - four-bar linkage: x₁ = N₁ n₁ (q₁ − o₁), x₂ = N₂ ((q₁ − o₁) + n₂ (q₂ − o₂)).

    Sources: ``simple_``, ``differential_`` and ``four_bar_linkage_transmission.h`` of ros_control's
    ``transmission_interface`` (ros2_control's are the same), whose simple loader reads the
    reduction of the actuator, ros2_control's that of the joint, so that the product serves both;
    ``half_differential_transmission.hpp`` of PAL Robotics' ``pal_transmissions``, its velocities
    (the positions there leave the offset of the first joint out of one direction).
    """
    if kind == DIFFERENTIAL:
        return (n[0], n[1]), (n[0], -n[1])
    if kind == HALF_DIFFERENTIAL:
        return (n[0], 0.0), (n[0], n[1])
    if kind == FOUR_BAR_LINKAGE:
        return (n[0], 0.0), (1.0, n[1])
    return ((n[0],),)


_End = TypeVar("_End", TransmittedJoint, Actuator)


def in_order(ends: tuple[_End, ...], what: str) -> tuple[_End, ...] | None:
    """The joints or actuators by their roles, ``joint1`` and ``joint2``; without roles as they are.

    A single one needs none. None where the roles are others.
    """
    roles = {end.role: end for end in ends}
    numbered = [f"{what}{i}" for i in range(1, len(ends) + 1)]
    if len(ends) == 1 or roles.keys() == {""}:
        return ends
    return tuple(roles[role] for role in numbered) if roles.keys() == set(numbered) else None


def actuator_terms(
    transmission: Transmission,
) -> Iterator[tuple[Actuator, tuple[tuple[str, float], ...]]]:
    """Each actuator with the angle of its shaft per unit of each joint.

    A single actuator on joints of another type moves by the sum of theirs, each times its
    reduction, as in MJCF. Transmissions of other types, or with roles that make no sense, move
    nothing.
    """
    kind, joints, actuators = kind_of(transmission), transmission.joints, transmission.actuators
    rows: tuple[tuple[float, ...], ...] = (reductions(joints),)
    if kind in KINDS and len(joints) == len(actuators) == KINDS[kind]:
        ordered, motors = in_order(joints, "joint"), in_order(actuators, "actuator")
        if ordered is None or motors is None:
            return
        joints, actuators = ordered, motors
        rows = actuator_rows(kind, reductions(joints))
    elif len(actuators) != 1:
        return
    for actuator, row, reduction in zip(actuators, rows, reductions(actuators), strict=True):
        yield actuator, tuple((end.name, reduction * k) for end, k in zip(joints, row, strict=True))


def reductions(ends: Iterable[TransmittedJoint | Actuator]) -> tuple[float, ...]:
    """The reductions of ends; 1 where a file gives none."""
    return tuple(1.0 if end.reduction is None else end.reduction for end in ends)


def backdrive_of(efficiency: float, backdrive: float | None) -> float:
    """The efficiency of a mesh while the joint drives the motor.

    By default that of equal coefficients of friction on both flanks, 2 - 1/``efficiency``.
    """
    return 2.0 - 1.0 / efficiency if backdrive is None else backdrive


def loss_fault(efficiency: float, backdrive: float | None) -> str:
    """The fault of a mesh's efficiencies, for a message; empty if nothing is."""
    if not 0.0 < efficiency <= 1.0:
        return f"its efficiency is {efficiency:g}; it is above 0 and at most 1"
    if backdrive is None and efficiency < 0.5:
        return (
            f"its efficiency is {efficiency:g}; below 0.5 equal friction of the teeth is "
            'self-locking, so say so: give backdrive="…", the efficiency while the joint drives '
            "the motor"
        )
    if backdrive is not None and not -math.inf < backdrive <= 1.0:
        return f"its backdrive is {backdrive:g}; it is at most 1"
    return ""


def both_ways(low: float, high: float) -> tuple[float | None, float]:
    """A range of force as a lower limit, None for the same both ways, and an upper one.

    A range that does not hold zero is taken as its larger end both ways.
    """
    if low <= 0.0 <= high and abs(low + high) > SAME * max(-low, high):
        return low, high
    return None, max(abs(low), abs(high))


def rotor_name(name: str) -> str:
    """The name of the link, joint and coupling of an actuator's or a joint's rotor."""
    return f"{name}_rotor"


def carried(motor: Motor, ratio: float) -> Motor:
    """A motor in the units of the driven side of a gear with this ratio.

    A negative ratio turns its limits about: what it gives at most one way, it gives the other way.
    """
    effort, weakest = motor.effort, motor.effort_lower
    velocity, slowest = motor.velocity, motor.velocity_lower
    if ratio < 0.0 and weakest is not None:
        effort, weakest = 0.0 - weakest, -effort
    if ratio < 0.0 and slowest is not None:
        velocity, slowest = 0.0 - slowest, -velocity
    size = abs(ratio)
    return replace(
        motor,
        effort=effort * size,
        velocity=velocity / size,
        effort_lower=None if weakest is None else weakest * size,
        velocity_lower=None if slowest is None else slowest / size,
        stall_torque=None if motor.stall_torque is None else motor.stall_torque * size,
        no_load_speed=None if motor.no_load_speed is None else motor.no_load_speed / size,
        torque_constant=None if motor.torque_constant is None else motor.torque_constant * size,
    )


def without_zeros(motor: Motor) -> Motor:
    """The motor without limits that leave it nothing, as no ``<motor>`` has them."""
    if motor.effort <= motor.least_effort:
        motor = replace(motor, effort=math.inf, effort_lower=None)
    if motor.velocity <= 0.0:
        motor = replace(motor, velocity=math.inf, velocity_lower=None)
    return motor
