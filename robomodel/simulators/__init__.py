"""Simulators: what they do with robot files, and adapters in which they load one.

:mod:`robomodel.simulators.behaviours` is the table; an ``in_NAME`` module imports its
simulator when it loads a file.
"""

from robomodel.simulators.behaviours import (
    BEHAVIOURS,
    PROGRAMS,
    Behaviour,
    Format,
    Quantity,
    Simulator,
    behaviours,
    tried,
)

__all__ = [
    "BEHAVIOURS",
    "PROGRAMS",
    "Behaviour",
    "Format",
    "Quantity",
    "Simulator",
    "behaviours",
    "tried",
]
