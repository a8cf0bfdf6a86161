"""The findings of :meth:`.Model.check` at a state: limits that it exceeds, singular positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from robomodel.errors import few
from robomodel.tolerances import NOTHING

# sine from which on results have ten digits: those lost are as many as its own zeros
NEAR_SINGULAR = 1e-6


@dataclass(frozen=True, slots=True)
class LimitViolation:
    """A joint beyond a limit of the file: its worst ``value`` there, in ``states`` of the batch."""

    joint: str
    quantity: Literal["position", "velocity"]
    value: float
    limit: float
    states: int = 1

    def __str__(self) -> str:
        side = "above" if self.value > self.limit else "below"
        more = f" ({self.states} states)" if self.states > 1 else ""
        return (
            f"the {self.quantity} of joint '{self.joint}', {self.value:.6g}, is {side} its limit "
            f"{self.limit:g}{more}"
        )


@dataclass(frozen=True, slots=True)
class Singularity:
    """A cluster at, or ``near``, a singular state, in ``states`` of the batch.

    Attributes:
        cluster: Its name.
        kind: "dead point" of its independent ``joints``, or "change point" of its loops.
        joints: Labels of its independent velocities.
        loops: Names of its loops.
        sine: The least sine between a column of K_d and those before it.
        states: In how many states of the batch.
    """

    cluster: str
    kind: Literal["dead point", "change point"]
    joints: tuple[str, ...]
    loops: tuple[str, ...]
    sine: float
    states: int = 1

    @property
    def near(self) -> bool:
        """True if results are numbers, though of fewer digits."""
        return self.sine > NOTHING

    @property
    def quantity(self) -> Literal["sine"]:
        """The quantity that is below a limit."""
        return "sine"

    @property
    def joint(self) -> str:
        """The first of ``joints``."""
        return self.joints[0]

    @property
    def value(self) -> float:
        """The sine."""
        return self.sine

    @property
    def limit(self) -> float:
        """The sine below which states are named."""
        return NEAR_SINGULAR

    def __str__(self) -> str:
        more = f" ({self.states} states)" if self.states > 1 else ""
        place = "near" if self.near else "at"
        if self.kind == "change point":
            what = f"{place} a change point, where branches of {few(self.loops)} meet"
        else:
            verb = "rests" if len(self.joints) == 1 else "rest"
            joints = f"{few(self.joints)} {verb}" if self.joints else "none moves"
            what = f"{place} a dead point, where {joints} while others of it move"
        effect = f"sine {self.sine:.1g}: digits are lost" if self.near else "singular to rounding"
        return f"cluster '{self.cluster}' is {what} ({effect}){more}"
