"""What was measured of a cluster with loops: ways to close, singularities, coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from robomodel.model.joints import Array, Mask
from robomodel.reports.document import picked, plain
from robomodel.reports.drawings import Sketch

Kind = Literal["dead point", "change point"]


@dataclass(frozen=True, slots=True)
class Singularity:
    """Where a curve is singular: position of the swept joint, and whether limits let it get there.

    ``away`` is how far the joint goes to get there, ``joints`` are all positions of the cluster.

    At a dead point the cluster moves while its independent velocities are zero; at a change point
    its conditions lose rank, and it may leave in several ways.
    """

    kind: Kind
    position: float
    away: float
    reached: bool
    joints: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)  # it holds arrays, which are not equal or not
class Sweep:
    """A curve of closed configurations, along which one independent velocity alone does not rest.

    ``joints`` (n, nq) are the cluster's part of q, ``position`` (n,) is of the swept joint,
    ``positions`` (n, spanning velocities) of all, ``rates`` (n, spanning velocities) their
    velocities at unit velocity of it (a column of G), ``condition`` (n,) 1/σ of the independent
    coordinates, ``reached`` (n,) where limits let it get from the start, in the order of travel;
    ``range``: how far that is, to where the first limit is met.
    """

    joint: str
    start: float
    held: dict[str, float]
    joints: Array
    position: Array
    positions: Array
    rates: Array
    condition: Array
    reached: Mask
    range: tuple[float, float]
    gap: float
    singularities: tuple[Singularity, ...]

    @property
    def ahead(self) -> Mask:
        """Where the curve is on the way to close that it starts on: dead points turn it round."""
        travel = np.gradient(self.position)
        start = int(np.argmin(np.abs(self.position - self.start) + ~self.reached * 1e3))
        way: Mask = travel * (travel[start] or 1.0) >= 0.0
        return way

    @property
    def others(self) -> str:
        """Where the independent joints are that are held, in words."""
        return ", ".join(f"{name} = {value:.3g}" for name, value in self.held.items())


@dataclass(frozen=True, slots=True)
class Choice:
    """Independent coordinates, and their worst and median condition 1/σ over the samples."""

    joints: tuple[str, ...]
    worst: float
    median: float


@dataclass(frozen=True, slots=True, eq=False)
class Linkage:
    """A cluster with loops, as measured.

    ``labels`` name its spanning velocities, ``lengths`` says which are in metres.
    ``start_gap``: what its conditions fail by where the file puts its joints; ``start_condition``:
    1/σ there, infinite where it is singular, nan where it is open. ``outside``: by how much the
    neutral configuration is out of the limits. ``branches``: in how many ways it closes
    where its independent joints are neutral, limits aside. ``chosen`` and ``best``: independent
    coordinates, the latter the best that there are (None where there are too many to compare).
    ``other_sweeps``: the same on the nearest other way to close. ``sketches``: drawings at neutral,
    on that other way, and at singularities; ``ghosts``: at the ends of the first sweep.
    """

    cluster: str
    joints: tuple[str, ...]
    labels: tuple[str, ...]
    independent: tuple[str, ...]
    rows: int
    rank: int
    start_gap: float
    start_condition: float
    gap: float
    outside: float
    branches: int
    samples: int
    chosen: Choice
    best: Choice | None
    sweeps: tuple[Sweep, ...]
    groups: tuple[tuple[str, ...], ...]
    lengths: tuple[bool, ...] = ()
    other_sweeps: tuple[Sweep, ...] = ()
    sketches: tuple[Sketch, ...] = ()
    ghosts: tuple[Sketch, ...] = ()

    @property
    def velocities(self) -> int:
        """The number of velocities of its joints."""
        return len(self.labels)

    @property
    def mobility(self) -> int:
        """The number of freedoms."""
        return self.velocities - self.rank

    @property
    def units(self) -> dict[str, str]:
        """Those of its joints' positions."""
        lengths = zip(self.labels, self.lengths, strict=True)
        return {label: "m" if length else "rad" for label, length in lengths}

    def as_dict(self) -> dict[str, Any]:
        """Without the curves' points."""
        singularity = {"distance": "away", "within_limits": "reached", "positions": "joints"}
        sweeps = [
            picked(sweep, "joint", "held", "range", "gap")
            | {
                "singularities": [
                    picked(each, "kind", "position", **singularity) for each in sweep.singularities
                ]
            }
            for sweep in self.sweeps
        ]
        names = ("cluster", "joints", "independent", "mobility", "velocities", "rows", "rank",
                 "start_gap", "start_condition", "gap", "branches", "samples", "best")  # fmt: skip
        data: dict[str, Any] = plain(picked(self, *names, condition="chosen") | {"sweeps": sweeps})
        return data
