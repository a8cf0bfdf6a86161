"""A robot as a simulator has read it from a file: what every adapter gives, by joint name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.spatial import from_quaternion

STEP = 1e-5  # s: where a simulator tells accelerations only by a step
Kind: TypeAlias = Literal["joint", "ball", "base"]
By: TypeAlias = Mapping[str, Array]
"""Positions or velocities by joint name: (1,), of a ball its quaternion x, y, z, w or (3,)."""


@dataclass(frozen=True, slots=True)
class Place:
    """A joint of the simulator, and where its velocities begin.

    ``kind``: "joint" of one freedom, "ball" of three, "base" for what places the root link. A
    ball's velocity is in the axes of its child, or of its parent if ``outside``.
    """

    name: str
    kind: Kind
    v: int
    nv: int
    outside: bool = False


def kind_of(freedoms: int) -> Kind:
    """The kind of a joint with so many freedoms."""
    kinds: dict[int, Kind] = {1: "joint", 3: "ball"}
    return kinds.get(freedoms, "base")


@dataclass(frozen=True, slots=True)
class State:
    """A state of the joints, the base at rest where the file has it; ``forces``: (nv,), its own."""

    positions: By
    velocities: By
    forces: By


@dataclass(frozen=True, eq=False, slots=True)
class Numbers:
    """The numbers of a simulator at a state, in its own velocities (nv).

    ``gravity``: the joint forces that hold it. ``rows`` (m, nv): the Jacobian of its equality
    constraints, those that it holds when it moves.
    """

    mass: Array
    gravity: Array
    acceleration: Array
    rows: Array


class Loaded(Protocol):
    """A robot in a simulator."""

    version: str
    precision: float
    """Below this, relative differences are rounding or the length of a step."""

    @property
    def places(self) -> Sequence[Place]:
        """The simulator's joints that move."""

    @property
    def nv(self) -> int:
        """Number of its velocities."""

    @property
    def limits(self) -> Mapping[str, tuple[float, float]]:
        """Lower and upper limits by joint name."""

    def numbers(self, state: State) -> Numbers:
        """The simulator's numbers at a state."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file that a simulator loads; ``floating``: the root link moves freely.

    ``advised``: it is loaded as :attr:`Behaviour.advice` says.
    """

    path: str
    format: Literal["urdf", "sdf", "mjcf", "usd"]
    floating: bool
    gravity: tuple[float, float, float]
    advised: bool = False


def spread(places: Sequence[Place], nv: int, by: By) -> Array:
    """Velocities or forces by joint name in the simulator's order; zero where none is given."""
    values = np.zeros(nv)
    for each in places:
        if each.name in by and each.kind != "base":
            values[each.v : each.v + each.nv] = by[each.name]
    return values


def turned(place: Place, positions: By, rows: Array) -> Array:
    """Rows of a joint's velocities, ours in the child's axes, in those of the simulator."""
    if not place.outside:
        return rows
    rotation = from_quaternion(*positions[place.name]).rows
    return np.asarray(rotation, dtype=float) @ rows


def held_rows(mass: Array, response: Array) -> Array:
    """Rows J (m, nv) with J v̇ = 0 for any force, where accelerations are ``response`` times it.

    In axes in which the inertia is one, what is free responds by 1 and what is held by 0.
    """
    root = np.linalg.cholesky(mass)
    shares, axes = np.linalg.eigh(root.T @ (0.5 * (response + response.T)) @ root)
    return np.asarray((root @ axes[:, shares < 0.5]).T)
