"""Checks of inertias against shapes: what a link would have as a solid of one density.

No link is that solid, but the radii of gyration of a robot's links are nearly the same multiple of
those of their shapes. A link that is far from the others has another inertia, mass or unit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from robomodel.description import Inertial, Shape
from robomodel.description import inertias as masses
from robomodel.description.shapes import solid
from robomodel.errors import DescriptionError, MissingPackageError
from robomodel.files import Allowance
from robomodel.model.joints import Array
from robomodel.reports.document import Finding, count, note, warning
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.inertia_checks import is_dummy, is_felt, principal

FEWEST = 4  # links with shapes, of which one can stand out
LEAST = math.log(1.7)  # more than the ratio of radii of gyration of a thin shell and its solid
CORE = math.log(4.0)  # that of a solid and a heavy core in it, a motor in its cover
BEYOND = 5.0  # standard deviations
SMALLEST = 0.03  # the least standard deviation of the logarithms of these ratios
TURNED = 0.05  # of the trace of an inertia: the least difference by the signs of its products
EXPLAINED = 0.4  # of a difference: what its cause leaves at most
MESHES = 2**23  # bytes of meshes that are read: more take seconds


@dataclass(frozen=True, eq=False)
class ShapedLink:
    """A link, its inertia per mass and that of its shapes as a solid [m²], about their centres."""

    body: int
    inertial: Inertial
    gyration: Array
    solid: Array

    @property
    def ratio(self) -> float:
        """The logarithm of the ratio of radii of gyration."""
        return _ratio(self.gyration, self.solid)


def check_shapes(context: CheckContext) -> Iterator[Finding]:
    """Links whose radii of gyration do not fit their shapes as those of the others do."""
    solids = _Solids()
    links = list(_shaped(context, solids))
    if solids.unread:
        yield note(
            "inertia-shape",
            context.model.description.source,
            f"{count(solids.unread, 'mesh', 'meshes')} not compared with inertias: only "
            f"{MESHES // 2**20} MiB are read",
            "simplify its meshes",
            solids.unread,
            "meshes",
        )
    if len(links) < FEWEST:
        return
    ratios = np.array([each.ratio for each in links])
    weights = np.array([each.inertial.mass for each in links])
    weights = np.minimum(weights, np.mean(weights))  # placeholders count for little, bases for one
    usual = _median(ratios, weights)
    spread = max(1.4826 * _median(np.abs(ratios - usual), weights), SMALLEST)
    for each in links:
        off = each.ratio - usual
        if abs(off) > max(BEYOND * spread, LEAST) and not -CORE < each.ratio < LEAST:
            moment = principal(each.inertial)[2]
            if off > 0.0 and not is_felt(context, each.body, moment):
                continue
            yield warning(
                "inertia-shape",
                each.inertial.source,
                f"its radius of gyration is {math.exp(each.ratio):.3g} times that of its shapes as "
                f"a solid, where most of the robot's {len(links)} links with shapes have "
                f"{math.exp(usual - spread):.3g} to {math.exp(usual + spread):.3g} times"
                f"{_cause(each, usual, max(2.0 * spread, 0.25 * abs(off)))}",
                "check its mass, its inertia and their units",
                math.exp(each.ratio),
                "ratio",
            )
        elif off := _mirrored(each):
            yield warning(
                "inertia-shape",
                each.inertial.source,
                "the signs of its products of inertia are not those of its shapes: "
                f"{100 * off:.3g} % of its inertia",
                "it may be mirrored, in other axes, or of the other sign convention: ixy is "
                "-∫ x y dm",
                off,
                "relative",
            )


def _median(values: Array, weights: Array) -> float:
    """The middle one by weight."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, below[-1] / 2.0)])


def _shaped(context: CheckContext, solids: _Solids) -> Iterator[ShapedLink]:
    """Links with inertia and with shapes that enclose something, visual ones if there are any."""
    shapes = [shape for link in context.model.description.links for shape in link.shapes]
    role = "visual" if any(shape.role == "visual" for shape in shapes) else "collision"
    rotors = {rotor.body for rotor in context.rotors}
    for link in context.model.description.links:
        inertial, body = link.inertial, context.model.frame(link.name).body
        if inertial is None or not inertial.mass > 0.0 or body < 0 or body in rotors:
            continue
        moments = principal(inertial)
        if not sum(moments) > 0.0 or is_dummy(context, inertial.mass, moments[2]):
            continue
        whole = solids.of([shape for shape in link.shapes if shape.role == role])
        if whole is not None:
            yield ShapedLink(body, inertial, _gyration(inertial), _gyration(whole))


class _Solids:
    """Shapes as solids; each mesh is read once."""

    def __init__(self) -> None:
        self._allowance = Allowance(MESHES)
        self.unread = 0  # for their size
        self._read: dict[tuple[object, ...], Inertial | None] = {}

    def of(self, shapes: list[Shape]) -> Inertial | None:
        """All shapes together; None where they enclose nothing, or one cannot be read."""
        parts = []
        for shape in shapes:
            part = self._solid(shape)
            if part is None:
                return None
            parts.append(masses.placed(part, shape.origin))
        whole = masses.inertial_of(reduce(add, parts)) if parts else None
        if whole is None or not whole.mass > 0.0 or not np.all(np.isfinite(whole.inertia)):
            return None
        if not min(principal(whole)) > 0.0:
            return None
        return whole

    def _solid(self, shape: Shape) -> Inertial | None:
        key = (shape.kind, shape.size, shape.file, shape.package)
        if key not in self._read:
            try:
                self._read[key] = solid(shape, [], self._allowance)
            except (DescriptionError, MissingPackageError):  # what is not here says nothing
                self.unread += self._allowance.bytes < 0
                self._read[key] = None
        return self._read[key]


def _gyration(inertial: Inertial) -> Array:
    """The inertia per mass about the centre of mass, in the axes of the link [m²]."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    turn = np.array(inertial.origin.rotation)
    moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return np.asarray(turn @ moments @ turn.T / inertial.mass)


def _ratio(one: Array, other: Array) -> float:
    return 0.5 * math.log(float(np.trace(one) / np.trace(other)))


def _cause(each: ShapedLink, usual: float, near: float) -> str:
    """What would make the inertia usual."""
    c = np.array(each.inertial.origin.xyz)
    lever = c @ c * np.eye(3) - np.outer(c, c)
    about_com = each.gyration - lever
    if np.linalg.eigvalsh(about_com)[0] > 0.0 and abs(_ratio(about_com, each.solid) - usual) < near:
        return "; it would be usual if it were about the link's origin: move it to the centre"
    if abs(_ratio(each.gyration + lever, each.solid) - usual) < near:
        return "; it would be usual with mass · (distance of the centre of mass)² added"
    factor = math.exp(2.0 * (each.ratio - usual))
    return f"; its inertia is {factor:.3g} times what would be usual, or its mass {1 / factor:.3g}"


def _mirrored(each: ShapedLink) -> float:
    """By how much, of its trace, signs of products are off, where other signs fit the shapes."""
    trace = float(np.trace(each.gyration))
    usual = each.solid * (trace / float(np.trace(each.solid)))
    off = float(np.linalg.norm(each.gyration - usual))
    for signs in itertools.product((1.0, -1.0), repeat=2):
        by = np.diag((1.0, *signs))
        turned = by @ each.gyration @ by
        if (
            float(np.linalg.norm(turned - each.gyration)) > TURNED * trace
            and float(np.linalg.norm(turned - usual)) < EXPLAINED * off
        ):
            return off / trace
    return 0.0
