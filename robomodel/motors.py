"""Motors as they are felt behind a gear."""

from __future__ import annotations

from robomodel.description import Motor


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
