"""Shapes of links as solids, for comparison with their inertias; meshes are kept on disk."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from robomodel.description import Inertial, Pose, Shape
from robomodel.description import inertias as masses
from robomodel.description.poses import vec
from robomodel.description.shapes import in_stage, solid, stamp
from robomodel.errors import DescriptionError, MissingPackageError
from robomodel.files import LFS_POINTER, Allowance
from robomodel.kernels import cache

MESHES = 2**23  # most bytes of meshes that are read: more take seconds
KEPT = "solids of meshes 3"  # names entries of the cache: another number for another way to measure
SETTLED = 10**9  # ns: a file that was changed later may change again within its clock's resolution


@dataclass(frozen=True)
class Solids:
    """Links' shapes as solids; each mesh is read once.

    Attributes:
        wholes: The shapes of each link together; None if they enclose no volume, or one cannot be
            read.
        unread: Meshes that are too large.
        pointers: Meshes that are pointers of Git LFS.
    """

    wholes: tuple[Inertial | None, ...]
    unread: int = 0
    pointers: int = 0

    @classmethod
    def of(cls, links: Sequence[Sequence[Shape]]) -> Solids:
        """The solids of links' shapes.

        Those of meshes are kept in the cache on disk while the files are the same: to read them
        takes longer than all other checks.
        """
        meshes = [shape for shapes in links for shape in shapes if shape.kind == "mesh"]
        if not meshes or any(map(in_stage, meshes)):
            return _Reading().solids(links)
        stamps = [stamp(mesh) for mesh in meshes]
        places = [[(shape.kind, shape.size, shape.origin) for shape in shapes] for shapes in links]
        name = cache.digest([KEPT, str(MESHES), repr(places), repr(stamps)])
        if (entry := cache.load(name)) is not None:
            unread, pointers, wholes = json.loads(entry)
            return cls(tuple(each and _inertial(*each) for each in wholes), unread, pointers)
        reading = _Reading()
        solids = reading.solids(links)
        changed = max((each[2] for each in stamps if each), default=0)
        if reading.able and time.time_ns() - changed > SETTLED:
            wholes = [x and (x.mass, x.inertia, x.origin.xyz) for x in solids.wholes]
            entry = json.dumps([solids.unread, solids.pointers, wholes]).encode()
            cache.store(name, entry)
        return solids


def _inertial(mass: float, inertia: Sequence[float], com: Sequence[float]) -> Inertial:
    """An inertial in the axes of its link."""
    xx, xy, xz, yy, yz, zz = inertia
    return Inertial(mass, (xx, xy, xz, yy, yz, zz), Pose(vec(com)))


class _Reading:
    """Shapes as solids, read within bounds; ``able``: with what all files need to be read."""

    def __init__(self) -> None:
        self.able = True
        self._allowance = Allowance(MESHES)
        self._unread = self._pointers = 0
        self._read: dict[tuple[object, ...], Inertial | None] = {}

    def solids(self, links: Sequence[Sequence[Shape]]) -> Solids:
        """The shapes of each link together."""
        wholes = tuple(map(self._whole, links))
        return Solids(wholes, self._unread, self._pointers)

    def _whole(self, shapes: Sequence[Shape]) -> Inertial | None:
        parts = []
        for shape in shapes:
            part = self._solid(shape)
            if part is None:
                return None
            parts.append(masses.placed(part, shape.origin))
        whole = masses.inertial_of(reduce(add, parts)) if parts else None
        if whole is None or not whole.mass > 0.0 or not all(map(math.isfinite, whole.inertia)):
            return None
        return whole

    def _solid(self, shape: Shape) -> Inertial | None:
        key = (shape.kind, shape.size, shape.file, shape.package)
        if key not in self._read:
            try:
                self._read[key] = solid(shape, [], self._allowance)
            except (DescriptionError, MissingPackageError) as error:  # not checked then
                self.able &= not isinstance(error, MissingPackageError)
                self._pointers += LFS_POINTER in str(error)
                self._unread += self._allowance.bytes < 0
                self._read[key] = None
        return self._read[key]
