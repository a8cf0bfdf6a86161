"""Motors: limits, torque-speed curves, the constants of DC motors."""

from __future__ import annotations

from robomodel.description import Motor
from robomodel.parsers.xml import Document, Element

_MOTOR = frozenset(
    (
        *("effort", "velocity", "stall_torque", "no_load_speed"),
        *("torque_constant", "resistance", "voltage", "current"),
    )
)


def read_motor(document: Document, element: Element | None) -> Motor | None:
    """``<motor>`` of a joint or an actuator: every number at the motor's own shaft."""
    if element is None:
        return None
    found = document.numbers(element, _MOTOR, infinite=frozenset(("effort", "velocity", "current")))
    for name, value in found.items():
        if value <= 0.0:
            raise document.error(element, f"{name} of the motor is {value:g}; it is positive")
    for one, other in (("stall_torque", "no_load_speed"), ("no_load_speed", "stall_torque")):
        if one in found and other not in found:
            raise document.error(
                element, f"the torque-speed curve has {one} but no {other}; it needs both"
            )
    if "voltage" in found:
        if missing := [n for n in ("torque_constant", "resistance") if n not in found]:
            raise document.error(
                element, f"voltage says a torque-speed curve only with {missing[0]}; give it"
            )
        if "stall_torque" in found:
            raise document.error(
                element, "voltage and stall_torque both say a torque-speed curve; keep one of them"
            )
    if "current" in found and "torque_constant" not in found:
        raise document.error(
            element, "current limits the torque only with torque_constant; give it"
        )
    return Motor(**found, source=document.place(element))
