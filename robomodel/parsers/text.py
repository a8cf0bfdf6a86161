"""How writers spell numbers and rotations, as short as reads back exactly; names that are free."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from robomodel.description import IDENTITY, Rows3, Vec3, rotation_from_rpy

_EXACT = 2**53  # whole numbers below are written without a point


class Names:
    """Names that are taken, and fresh ones like them, numbered from ``first`` on."""

    def __init__(self, taken: Iterable[str] = (), first: int = 2) -> None:
        self.taken = set(taken)
        self.first = first
        self._counts: dict[str, int] = {}

    def fresh(self, name: str, between: str = "_") -> str:
        """The name, with a number after it if it is taken already; it is taken from now on."""
        fresh, count = name, self._counts.get(name, self.first)
        while fresh in self.taken:
            fresh = f"{name}{between}{count}"
            count += 1
        self._counts[name] = count
        self.taken.add(fresh)
        return fresh


def number(value: float) -> str:
    """The shortest decimal that reads back as this very number."""
    return str(int(value)) if abs(value) < _EXACT and value == int(value) else repr(float(value))


def numbers(values: Iterable[float]) -> str:
    """Numbers with spaces between."""
    return " ".join(map(number, values))


def rpy_of(rotation: Rows3) -> Vec3:
    """The roll, pitch and yaw of a rotation matrix (rows), as URDF defines them.

    Of the angles that read back as this very matrix, the shortest in writing; a matrix that no
    angles give, because it was computed otherwise, is met to its own rounding, about 1e-16.
    """
    if rotation == IDENTITY:
        return (0.0, 0.0, 0.0)
    nearest, least = (0.0, 0.0, 0.0), math.inf
    for angles in _candidates(rotation):
        if (off := difference(rotation_from_rpy(*angles), rotation)) < least:
            nearest, least = angles, off
        if off == 0.0:
            break
    return nearest


def _candidates(rotation: Rows3) -> Iterator[Vec3]:
    """The triples of angles that give the matrix, rounded to more and more digits."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rotation
    yaw, pitch = math.atan2(yx, xx), math.atan2(-zx, math.hypot(xx, yx))
    s, c = math.sin(yaw), math.cos(yaw)
    triples = []
    # near pitch = π/2, zy and zz are rounding; what is left without the yaw always says the roll
    for roll in (math.atan2(zy, zz), math.atan2(s * xz - c * yz, c * yy - s * xy)):
        triples.append((roll, pitch, yaw))
        triples.append((_turned(roll), _turned(-pitch), _turned(yaw)))
    for digits in range(1, 18):
        for triple in triples:
            roll, pitch, yaw = (_rounded(angle, digits) for angle in triple)
            yield roll, pitch, yaw


def _rounded(angle: float, digits: int) -> float:
    """To so many digits; what is a right angle to its last digit is the double nearest to it."""
    angle = float(f"{angle:.{digits}g}")
    right = round(angle / (math.pi / 2)) * (math.pi / 2)
    return right if abs(angle - right) <= 4e-16 * max(1.0, abs(angle)) else angle


def _turned(angle: float) -> float:
    """The angle half a turn on, within [-π, π]."""
    return angle - math.pi if angle > 0.0 else angle + math.pi


def difference(one: Rows3, other: Rows3) -> float:
    """How much two rotations differ, in the entry that differs most."""
    return max(
        abs(a - b) for u, v in zip(one, other, strict=True) for a, b in zip(u, v, strict=True)
    )
