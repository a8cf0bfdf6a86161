"""What motors are said by: the numbers that make one, and one as it is felt behind a gear."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields

from robomodel.description import Motor

NAMES = tuple(each.name for each in fields(Motor) if each.name != "source")
"""The numbers of a motor."""


def numbers_of(motor: Motor) -> dict[str, float]:
    """The numbers that say a motor, by name; infinite limits say nothing."""
    said = {name: getattr(motor, name) for name in NAMES}
    return {name: x for name, x in said.items() if x is not None and x < math.inf}


def fault(found: Mapping[str, float]) -> str:
    """What is wrong with the numbers of a motor, by name; nothing if they are those of one."""
    for name, value in found.items():
        if not value > 0.0:
            return f"{name} of the motor is {value:g}; it is positive"
    for one, other in (("stall_torque", "no_load_speed"), ("no_load_speed", "stall_torque")):
        if one in found and other not in found:
            return f"the torque-speed curve has {one} but no {other}; it needs both"
    if "voltage" in found:
        if missing := [n for n in ("torque_constant", "resistance") if n not in found]:
            return f"voltage says a torque-speed curve only with {missing[0]}; give it"
        if "stall_torque" in found:
            return "voltage and stall_torque both say a torque-speed curve; keep one of them"
    if "current" in found and "torque_constant" not in found:
        return "current limits the torque only with torque_constant; give it"
    return ""


def carried(motor: Motor, ratio: float) -> Motor:
    """A motor as it is felt behind a gear of this ratio: by the driven side's units."""
    return Motor(
        motor.effort * ratio,
        motor.velocity / ratio,
        None if motor.stall_torque is None else motor.stall_torque * ratio,
        None if motor.no_load_speed is None else motor.no_load_speed / ratio,
        None if motor.torque_constant is None else motor.torque_constant * ratio,
        motor.resistance,
        motor.voltage,
        motor.current,
        motor.source,
    )
