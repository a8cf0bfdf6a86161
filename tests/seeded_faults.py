"""Faults of exports, seeded into descriptions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

import robomodel as rm
from robomodel.arrays import Array
from robomodel.description import Description, Inertial, Link
from robomodel.model import build
from robomodel.reports.comparison.match import RobotAtZero
from robomodel.reports.comparison.study import open_tree
from robomodel.reports.document import Finding
from robomodel.reports.validation import mechanism_checks
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.number_checks import principal
from robomodel.reports.validation.study import CHECKS, differences, of_error
from robomodel.reports.validation.symmetry_checks import _matched, _pairs, limbs

Seeded = tuple[Description, tuple[str, ...]]
FACTORS = (1e3, 1e4, 1e6, 1e9)  # inertias in g m², kg cm², kg mm², g mm²
LEAST = 0.01  # of the robot's mass: lighter links are left alone
CHANGED = 0.05  # of the trace: products of inertia that are worth turning round
T = TypeVar("T")


def with_inertial(description: Description, name: str, **changes: Any) -> Description:
    return replace(description, links=tuple(
        replace(link, inertial=replace(link.inertial, **changes))
        if link.name == name and link.inertial else link
        for link in description.links
    ))  # fmt: skip


def with_joint(description: Description, name: str, **changes: Any) -> Description:
    joints = (replace(j, **changes) if j.name == name else j for j in description.joints)
    return replace(description, joints=tuple(joints))


def tensor(inertial: Inertial) -> Array:
    xx, xy, xz, yy, yz, zz = inertial.inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def six(tensor: Array) -> tuple[float, ...]:
    return tuple(tensor[np.triu_indices(3)].tolist())


class Seeds:
    """Faults of each kind in a robot; None where it has nothing that could have one.

    ``inside``: only links, joints and rotors of linkages.
    """

    def __init__(self, model: rm.Model, seed: int, *, inside: bool = False) -> None:
        self.description = model.description
        self.rng = np.random.default_rng(seed)
        context = CheckContext(model)
        loops = [cluster for cluster in model.clusters if cluster.kind == "loops"]
        bodies = {body for cluster in loops for body in cluster.bodies}
        rotors = {rotor.body: rotor for rotor in context.rotors}
        allowed = {b for b in range(len(model.bodies)) if b in bodies or not inside}
        self.links = [
            (link, link.inertial)
            for link in self.description.links
            if (body := model.frame(link.name).body) in allowed - rotors.keys()
            and link.inertial is not None
            and link.inertial.mass >= LEAST * context.mass
            and principal(link.inertial)[0] > 0.0
            and context.turning[body]
        ]
        names = {model.joints[body].name for body in allowed - rotors.keys()}
        self.hinges = [
            joint
            for joint in self.description.joints
            if joint.name in names and joint.type in ("revolute", "continuous") and not joint.mimic
        ]
        self.rotors = [
            (model.bodies[body].name, max(map(abs, rotor.ratios.values())))
            for body, rotor in rotors.items()
            if body in allowed and rotor.inertia and max(map(abs, rotor.ratios.values())) > 2.0
        ]

    def pick(self, things: Sequence[T]) -> T | None:
        return things[self.rng.integers(len(things))] if things else None

    def units(self) -> Seeded | None:
        """Inertia or mass in other units."""
        if (chosen := self.pick(self.links)) is None:
            return None
        link, inertial = chosen
        kind = self.rng.integers(len(FACTORS) + 1)
        if kind < len(FACTORS):
            return self._with(link, inertia=tuple(FACTORS[kind] * x for x in inertial.inertia))
        return self._with(link, mass=1e3 * inertial.mass)

    def lengths(self) -> Seeded | None:
        """A centre of mass in millimetres."""
        off = [each for each in self.links if math.hypot(*each[1].origin.xyz) > 1e-3]
        if (chosen := self.pick(off)) is None:
            return None
        link, inertial = chosen
        x, y, z = inertial.origin.xyz
        return self._with(link, origin=replace(inertial.origin, xyz=(1e3 * x, 1e3 * y, 1e3 * z)))

    def composite(self) -> Seeded | None:
        """Inertia about the link's origin, where that makes a third more; or of parts not moved."""
        moved = []
        for link, inertial in self.links:
            turn, c = np.array(inertial.origin.rotation), np.array(inertial.origin.xyz)
            lever = turn.T @ (c @ c * np.eye(3) - np.outer(c, c)) @ turn * inertial.mass
            if np.trace(lever) > 0.3 * np.trace(tensor(inertial)):
                moved.append((link, tensor(inertial) + lever))
        chosen = self.pick(moved)
        if chosen is not None and self.rng.random() < 0.7:
            return self._with(chosen[0], inertia=six(chosen[1]))
        if (other := self.pick(self.links)) is None:
            return None
        # two equal parts that lie along the body's longest axis, and nine tenths of its extent
        link, inertial = other
        moments, axes = np.linalg.eigh(tensor(inertial))
        apart = 0.9 * (float(np.sum(moments)) / 2.0 - moments[0])
        across = np.eye(3) - np.outer(axes[:, 0], axes[:, 0])
        return self._with(link, inertia=six(tensor(inertial) - apart * across))

    def override(self) -> Seeded | None:
        """A mass that is 2 to 5 times as large or as small; the inertia stays."""
        if (chosen := self.pick(self.links)) is None:
            return None
        factor = float(self.rng.uniform(2.0, 5.0) ** self.rng.choice([-1, 1]))
        return self._with(chosen[0], mass=factor * chosen[1].mass)

    def mirrored(self) -> Seeded | None:
        """Signs of two products of inertia turned round."""
        turned = []
        for link, inertial in self.links:
            inertia = tensor(inertial)
            for k in range(3):
                mirror = np.eye(3)
                mirror[k, k] = -1.0
                image = mirror @ inertia @ mirror
                if np.linalg.norm(image - inertia) > CHANGED * np.trace(inertia):
                    turned.append((link, image))
        chosen = self.pick(turned)
        return None if chosen is None else self._with(chosen[0], inertia=six(chosen[1]))

    def axis(self) -> Seeded | None:
        """The coordinate axis that is least along a hinge's axis."""
        if (joint := self.pick(self.hinges)) is None:
            return None
        axis = tuple(np.eye(3)[int(np.argmin(np.abs(joint.axis)))].tolist())
        return with_joint(self.description, joint.name, axis=axis), (joint.name, joint.child)

    def loop(self) -> Seeded | None:
        """A loop's end 0.1 mm off, in any direction."""
        if (loop := self.pick(self.description.loops)) is None:
            return None
        off = self.rng.normal(size=3)
        moved = np.array(loop.successor.origin.xyz) + off * (1e-4 / np.linalg.norm(off))
        origin = replace(loop.successor.origin, xyz=tuple(moved.tolist()))
        changed = replace(loop, successor=replace(loop.successor, origin=origin))
        loops = tuple(changed if each is loop else each for each in self.description.loops)
        tied = {each.name for each in self.description.loops}  # one finding for each cluster
        return replace(self.description, loops=loops), (loop.name, *sorted(tied - {loop.name}))

    def degrees(self) -> Seeded | None:
        """A hinge's limits in degrees."""
        limited = [
            joint
            for joint in self.hinges
            if joint.type == "revolute" and joint.limits.lower < joint.limits.upper < math.inf
        ]
        if (joint := self.pick(limited)) is None:
            return None
        lower, upper = math.degrees(joint.limits.lower), math.degrees(joint.limits.upper)
        limits = replace(joint.limits, lower=lower, upper=upper)
        return with_joint(self.description, joint.name, limits=limits), (joint.name,)

    def rotor(self) -> Seeded | None:
        """A rotor's inertia times, or by, the square of its ratio."""
        if (chosen := self.pick(self.rotors)) is None:
            return None
        name, ratio = chosen
        factor = ratio ** float(self.rng.choice([-2, 2]))
        (inertial,) = (x.inertial for x in self.description.links if x.name == name)
        assert inertial is not None
        inertia = tuple(factor * x for x in inertial.inertia)
        above = next(j.name for j in self.description.joints if j.child == name)
        return with_inertial(self.description, name, inertia=inertia), (name, above)

    def _with(self, link: Link, **changes: Any) -> Seeded:
        return with_inertial(self.description, link.name, **changes), (link.name,)


KINDS: dict[str, Callable[[Seeds], Seeded | None]] = {
    "units": Seeds.units,
    "lengths": Seeds.lengths,
    "composite": Seeds.composite,
    "override": Seeds.override,
    "mirrored": Seeds.mirrored,
    "axis": Seeds.axis,
    "loop": Seeds.loop,
    "degrees": Seeds.degrees,
    "rotor": Seeds.rotor,
}


NAMES = {
    "units": "unit grams inertia-size inertia-shape",
    "lengths": "unit centre-of-mass millimetres",
    "composite": "composite",
    "override": "override",
    "mirrored": "mirrored",
    "axis": "axis",
    "loop": "open-loop start load",
    "degrees": "degrees",
    "rotor": "rotor-inertia",
}
"""The ids of findings that name each kind."""

Named = set[tuple[str, str, str]]


def gravest(findings: Iterable[Finding]) -> Named:
    """Errors and warnings: check, element and message."""
    return {
        (each.check, each.source.element, each.message)
        for each in findings
        if each.severity != "note"
    }


def against(model: rm.Model, description: Description) -> Named:
    """What names a fault beside the robot without it; the description may be no mechanism."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            robot: RobotAtZero | None = RobotAtZero.of(build(description))
        except rm.DescriptionError:
            robot = open_tree(description)
    assert robot is not None
    return gravest(differences(RobotAtZero.of(model), robot))


def alone(kind: str, description: Description) -> Named:
    """What is found in one file; how linkages move counts for loops alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = build(description)
        except rm.DescriptionError as error:
            return gravest(of_error(error).findings)
        if kind == "loop":
            return gravest(rm.validate(model).findings)
        context = CheckContext(model)
        checks = (check for check in CHECKS if check.__module__ != mechanism_checks.__name__)
        return gravest(each for check in checks for each in check(context))


def is_named(kind: str, seeded: Seeded, findings: Named) -> bool:
    """Whether a finding of the right kind stands at the element that has the fault."""
    return any(
        check in NAMES[kind].split() and any(f"'{name}'" in element for name in seeded[1])
        for check, element, _ in findings
    )


def counterparts(model: rm.Model) -> set[str]:
    """Links that are the image or copy of another, and their joints."""
    context = CheckContext(model)
    names: set[str] = set()
    for group in limbs(context):
        names |= _matched([pair.best for pair in _pairs(group, context.size)])
    return names | {joint.name for joint in model.description.joints if joint.child in names}
