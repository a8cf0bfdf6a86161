"""Motors: limits, torque-speed curves, the constants of DC motors."""

from __future__ import annotations

from robomodel.description import Motor
from robomodel.motors import NAMES, fault
from robomodel.parsers.xml import Document, Element

_MOTOR = frozenset(NAMES)


def read_motor(document: Document, element: Element | None) -> Motor | None:
    """``<motor>`` of a joint or an actuator: every number at the motor's own shaft."""
    if element is None:
        return None
    found = document.numbers(element, _MOTOR, infinite=frozenset(("effort", "velocity", "current")))
    if wrong := fault(found):
        raise document.error(element, wrong)
    return Motor(**found, source=document.place(element))
