"""Small factor graphs over time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from robomodel.estimation.graph import Factor
from robomodel.estimation.spaces import Space, Vectors
from robomodel.papers.natural_coordinates import Angle, Body, Mechanism, planar

Array = NDArray[np.float64]


def four_bar(*, angle: bool) -> Mechanism:
    rocker = math.sqrt(13.0)
    return Mechanism(
        {"A": (0.0, 0.0), "D": (4.0, 0.0), "P1": None, "P2": None},
        (
            Body("crank", "A", "P1", 1.0, 1.0, (0.5, 0.0), 1.0 / 12.0),
            Body("coupler", "P1", "P2", 2.0, 2.0, (1.0, 0.0), 8.0 / 12.0),
            Body("rocker", "D", "P2", rocker, 4.0, (rocker / 2.0, 0.0), 52.0 / 12.0),
        ),
        (Angle("theta", ("A", "P1"), 1.0),) if angle else (),
    )


PLANAR = four_bar(angle=True)

BARE = four_bar(angle=False)

THETA = ("theta",)


def planar_spaces(mechanism: Mechanism) -> dict[str, Space]:
    full = dict.fromkeys(("q", "v", "a", "Q"), Vectors(mechanism.n))
    return {**full, **dict.fromkeys(("z", "zd", "zdd"), Vectors(1))}


PLANAR_FACTORS: list[tuple[Factor, dict[str, Space]]] = [
    (factor, planar_spaces(mechanism))
    for mechanism, chosen in ((BARE, ()), (PLANAR, ()), (PLANAR, THETA))
    for factor in (
        planar.PositionConstraints(mechanism, chosen),
        planar.VelocityConstraints(mechanism, chosen),
        planar.AccelerationConstraints(mechanism, chosen),
        planar.PlanarDynamics(mechanism, chosen),
        planar.PlanarDynamics(mechanism, chosen, forces="Q"),
    )
]
