"""Serial chains of any length: links in a row, with gears, belts or four-bars at their joints.

Papers measure on them how the cost of algorithms grows with a robot's size: GT and PBT of Chignoli,
Adrian, Kim and Wensing (generalized_rbda's RevoluteChainWithRotor and RevolutePairChainWithRotor),
the open chain, and a chain of closed linkages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from robomodel.description import (
    AT_ORIGIN,
    Anchor,
    Description,
    Inertial,
    Joint,
    JointCoupling,
    Link,
    LinkCoupling,
    Loop,
    Pose,
    Vec3,
)
from robomodel.errors import did_you_mean
from robomodel.model import Model, build

Kind: TypeAlias = Literal["geared", "belt", "plain", "four_bar"]
KINDS: tuple[str, ...] = get_args(Kind)

GEAR = 6.0  # rotor over link, and over belt
BELTS = (3.0, 1.0)  # of the joint next to the motors, and from there to the other joint

_X: Vec3 = (1.0, 0.0, 0.0)
_Y: Vec3 = (0.0, 1.0, 0.0)
_Z: Vec3 = (0.0, 0.0, 1.0)
_LENGTH = 1.0
_GROUND = 0.25  # between the pivots of a four-bar; the other sides are of length 1
_LIGHT = 1e-4  # a random rotor's share of a random link's mass and moments


def chain(kind: Kind, n: int, *, rng: np.random.Generator | None = None, **options: Any) -> Model:
    """A serial chain with n degrees of freedom.

    - "plain": n links, n revolute joints.
    - "geared": the same, every joint with its rotor, which stands on the link before (GT).
    - "belt": links in pairs, both rotors of a pair on the link before, with belts to both joints:
      rotor 1 = g b q1, rotor 2 = g' b1 (q1 + b2 q2) (PBT). The last link of an odd number has
      one rotor and one belt.
    - "four_bar": n planar four-bars, the next one on the coupler of the one before.

    Without ``rng`` the chain is planar, with axes z: links of 1 m and 1 kg, centre of mass in the
    middle, izz = 1, rotors without mass, izz = 1e-4; gears 6, belts 3 and 1; gravity is 9.81 along
    x, where the chain hangs at position zero. With it, links, rotors (lighter by 1e4), placements,
    axes (x, y or z) and ratios (1 to 5) are random; four-bars keep their geometry; gravity is along
    -z. The first joints turn on the link ``base``; ``tip`` is the end of the last link. The links
    are link1, link2, … (crank1, coupler1, rocker1, …) on joint1, … (crank_joint1, …), rotors rotor1
    … on motor1 ….

    ``options``: floating_base, independent, gravity and strict, as of :func:`robomodel.load`.
    Raises a ValueError for an unknown kind, and for n < 1.
    """
    return build(describe(kind, n, rng=rng), **options)


def describe(kind: str, n: int, *, rng: np.random.Generator | None = None) -> Description:
    """The description of a chain; see :func:`chain`."""
    if kind not in KINDS:
        raise ValueError(
            f"no chain is of the kind '{kind}'{did_you_mean(kind, KINDS)}; kinds: "
            f"{', '.join(KINDS)}"
        )
    if n < 1:
        raise ValueError(f"a chain has at least one joint, not {n}")
    chain = _Chain(rng)
    if kind == "belt":
        for i in range(1, n, 2):
            chain.belted_pair(i)
        if n % 2:
            chain.geared(n, "belt", math.prod(chain.ratios(2)))
    for i in range(1, n + 1):
        if kind == "plain":
            chain.link(i)
        elif kind == "geared":
            chain.geared(i, "gear", math.prod(chain.ratios(1)))
        elif kind == "four_bar":
            chain.four_bar(i)
    chain.end()
    return Description(
        f"{kind}_chain_{n}",
        tuple(chain.links),
        tuple(chain.joints),
        tuple(chain.loops),
        tuple(chain.couplings),
        gravity=(9.81, 0.0, 0.0) if rng is None else None,
    )


@dataclass
class _Chain:
    """Elements of the chain so far; the next link stands at ``place`` on ``last``."""

    rng: np.random.Generator | None
    links: list[Link] = field(default_factory=lambda: [Link("base")])
    joints: list[Joint] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    couplings: list[LinkCoupling | JointCoupling] = field(default_factory=list)
    last: str = "base"
    place: Pose = AT_ORIGIN
    axis: Vec3 = _Z

    def link(self, i: int) -> None:
        """Link i, turning on the last one; what comes next stands at its end."""
        self._turn()
        self._body(f"link{i}", f"joint{i}", self.place, independent=True)
        self.last, self.place = f"link{i}", self._end()

    def geared(self, i: int, name: str, ratio: float) -> None:
        """Link i and its rotor, which stands beside it on the last link."""
        parent, place = self.last, self.place
        self.link(i)
        self._rotor(i, parent, place)
        self.couplings.append(LinkCoupling(f"{name}{i}", f"link{i}", f"rotor{i}", ratio))

    def belted_pair(self, i: int) -> None:
        """Links i and i + 1; both rotors stand on the last link, belts lead to both joints."""
        j, parent, place = i + 1, self.last, self.place
        gear, first = self.ratios(2)
        self.link(i)
        self._rotor(i, parent, place)
        self.couplings.append(LinkCoupling(f"belt{i}", f"link{i}", f"rotor{i}", gear * first))
        self.link(j)
        self._rotor(j, parent, place)
        gear, first, second = self.ratios(3)
        terms = (
            (f"motor{j}", 1.0),
            (f"joint{i}", -gear * first),
            (f"joint{j}", -gear * first * second),
        )
        self.couplings.append(JointCoupling(f"belt{j}", terms))

    def four_bar(self, i: int) -> None:
        """A crank and a rocker on the last link, which carry a coupler; the next stands on it.

        Ground is the shortest side, so that crank and rocker go round and never come to a dead
        point (Grashof's drag link). It starts as a symmetric trapezium.
        """
        lean = math.acos((_LENGTH - _GROUND) / 2.0)
        parent, (x, y, z) = self.last, self.place.xyz
        self._body(f"crank{i}", f"crank_joint{i}", self.place, True, math.pi - lean)
        self.last = f"crank{i}"
        self._body(f"coupler{i}", f"coupler_joint{i}", _at(_LENGTH), False, lean - math.pi)
        self.last = parent
        other = Pose((x + _GROUND, y, z), self.place.rotation)
        self._body(f"rocker{i}", f"rocker_joint{i}", other, False, lean)
        tips = Anchor(f"coupler{i}", _at(_LENGTH)), Anchor(f"rocker{i}", _at(_LENGTH))
        self.loops.append(Loop(f"loop{i}", "revolute", *tips, _Z))
        self.last, self.place = f"coupler{i}", _at(_LENGTH)

    def end(self) -> None:
        """The end of the last link, as a link without mass."""
        self.links.append(Link("tip"))
        self.joints.append(Joint("tip_joint", "fixed", self.last, "tip", self.place))

    def ratios(self, count: int) -> Sequence[float]:
        """A gear's ratio, and those of the belts behind it."""
        if self.rng is None:
            return (GEAR, *BELTS)[:count]
        return tuple(float(x) for x in self.rng.integers(1, 6, count))

    def _rotor(self, i: int, parent: str, place: Pose) -> None:
        last, self.last = self.last, parent
        self._body(f"rotor{i}", f"motor{i}", place, independent=False, rotor=True)
        self.last = last

    def _body(
        self,
        name: str,
        joint: str,
        place: Pose,
        independent: bool,
        initial: float | None = None,
        *,
        rotor: bool = False,
    ) -> None:
        self.links.append(Link(name, self._inertial(rotor)))
        self.joints.append(
            Joint(
                joint,
                "continuous",
                self.last,
                name,
                place,
                self.axis,
                independent=independent,
                initial=initial,
            )
        )

    def _inertial(self, rotor: bool) -> Inertial:
        if self.rng is None:
            if rotor:
                return Inertial(0.0, (0.0, 0.0, 0.0, 0.0, 0.0, 1e-4))
            return Inertial(1.0, (0.0, 0.0, 0.0, 0.0, 0.0, 1.0), _at(_LENGTH / 2.0))
        share = _LIGHT if rotor else 1.0
        a = self.rng.uniform(-1.0, 1.0, (3, 3))
        s = share * (a @ a.T)  # second moments of mass, so that a body can have the inertia
        t = float(s[0, 0] + s[1, 1] + s[2, 2])
        moments = (
            t - float(s[0, 0]),
            -float(s[0, 1]),
            -float(s[0, 2]),
            t - float(s[1, 1]),
            -float(s[1, 2]),
            t - float(s[2, 2]),
        )
        x, y, z = (share * self.rng.uniform(-1.0, 1.0, 3)).tolist()
        return Inertial(share * float(self.rng.uniform(0.0, 1.0)), moments, Pose((x, y, z)))

    def _turn(self) -> None:
        """Choose the next joint's axis."""
        if self.rng is not None:
            self.axis = (_X, _Y, _Z)[self.rng.integers(3)]

    def _end(self) -> Pose:
        """Where the next link stands."""
        if self.rng is None:
            return _at(_LENGTH)
        x, y, z, roll, pitch, yaw = self.rng.uniform(-1.0, 1.0, 6).tolist()
        return Pose.from_rpy((x, y, z), (math.pi * roll, math.pi * pitch, math.pi * yaw))


def _at(x: float) -> Pose:
    return Pose((x, 0.0, 0.0))
