"""What is decided once of a robot's bodies, at a file's numbers, and holds for others."""

from __future__ import annotations

from dataclasses import dataclass

from robomodel.description import Pose


@dataclass(frozen=True, slots=True)
class Structure:
    """Choices for a model's bodies; its clusters hold what is chosen of their constraints.

    Attributes:
        frames: Each body's internal frame in its link's.
        rounding: An offset that is rounding [m].
        loaded: Bodies on which other bodies, loops or springs hang.
    """

    frames: tuple[Pose, ...]
    rounding: float
    loaded: frozenset[int]
