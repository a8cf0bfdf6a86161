"""Faults of exports, seeded into descriptions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

import robomodel as rm
from robomodel.arrays import Array
from robomodel.description import ONE_DOF, Description, Inertial, Link, Vec3
from robomodel.description.poses import vec
from robomodel.model import build
from robomodel.reports.comparison.match import RobotAtZero
from robomodel.reports.comparison.study import open_tree
from robomodel.reports.document import Finding
from robomodel.reports.validation import mechanism_checks
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.number_checks import principal
from robomodel.reports.validation.reference import differences
from robomodel.reports.validation.study import CHECKS, of_error
from robomodel.reports.validation.twin_checks import find_symmetries

Seeded = tuple[Description, tuple[str, ...]]
FACTORS = (1e3, 1e4, 1e6, 1e9)  # inertias in g m², kg cm², kg mm², g mm²
LEAST = 0.01  # of the robot's mass: lighter links are left alone
CHANGED = 0.05  # of the trace: products of inertia that are worth turning round
T = TypeVar("T")


def with_inertial(description: Description, name: str, **changes: Any) -> Description:
    """The description with changes of a link's inertial."""
    return replace(description, links=tuple(
        replace(link, inertial=replace(link.inertial, **changes))
        if link.name == name and link.inertial else link
        for link in description.links
    ))  # fmt: skip


def with_joint(description: Description, name: str, **changes: Any) -> Description:
    """The description with changes of a joint."""
    joints = (replace(j, **changes) if j.name == name else j for j in description.joints)
    return replace(description, joints=tuple(joints))


def tensor(inertial: Inertial) -> Array:
    """The inertia (3, 3)."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def six(tensor: Array) -> tuple[float, ...]:
    """The upper triangle of a tensor."""
    return tuple(tensor[np.triu_indices(3)].tolist())


class Seeds:
    """Faults of each kind in a robot; None where it has nothing that could have one.

    ``inside``: only links, joints and rotors of linkages; ``among``: only links and joints of these
    names.
    """

    def __init__(
        self,
        model: rm.Model,
        seed: int,
        *,
        inside: bool = False,
        among: Collection[str] | None = None,
    ) -> None:
        self.description = model.description
        self.size = CheckContext(model).size
        self.actuators = {x.name: dict(x.terms) for x in model.actuators}
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
        if among is not None:
            self.links = [each for each in self.links if each[0].name in among]
            self.hinges = [joint for joint in self.hinges if joint.name in among]
        self.joints = [
            joint for joint in self.description.joints
            if joint.type in ONE_DOF and (among is None or joint.name in among)
        ]  # fmt: skip
        self.rotors = [
            (model.bodies[body].name, max(map(abs, rotor.ratios.values())))
            for body, rotor in rotors.items()
            if body in allowed and rotor.inertia and max(map(abs, rotor.ratios.values())) > 2.0
        ]

    def pick(self, things: Sequence[T]) -> T | None:
        """One of several at random; None of none."""
        return things[int(self.rng.integers(len(things)))] if things else None

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

    def density(self) -> Seeded | None:
        """Mass and inertia 1000 times."""
        if (chosen := self.pick(self.links)) is None:
            return None
        link, inertial = chosen
        inertia = tuple(1e3 * x for x in inertial.inertia)
        return self._with(link, mass=1e3 * inertial.mass, inertia=inertia)

    def inertial(self) -> Seeded | None:
        """An inertial that is missing."""
        if (chosen := self.pick(self.links)) is None:
            return None
        name = chosen[0].name
        links = (replace(x, inertial=None) if x.name == name else x
                 for x in self.description.links)  # fmt: skip
        return replace(self.description, links=tuple(links)), (name,)

    def com(self) -> Seeded | None:
        """A centre of mass 15 to 60 % of the robot's size off, in any direction."""
        if (chosen := self.pick(self.links)) is None:
            return None
        link, inertial = chosen
        xyz = self.off(inertial.origin.xyz, 0.15, 0.6)
        return self._with(link, origin=replace(inertial.origin, xyz=xyz))

    def origin(self) -> Seeded | None:
        """A joint's origin 5 to 30 % of the robot's size off, across its axis."""
        if (joint := self.pick(self.hinges)) is None:
            return None
        off = self.rng.normal(size=3)
        axis = np.array(joint.origin.rotation) @ np.array(joint.axis)
        off -= axis * (axis @ off) / (axis @ axis)
        off *= self.rng.uniform(0.05, 0.3) * self.size / np.linalg.norm(off)
        origin = replace(joint.origin, xyz=vec((np.array(joint.origin.xyz) + off).tolist()))
        return with_joint(self.description, joint.name, origin=origin), (joint.name,)

    def sense(self) -> Seeded | None:
        """The sign of a hinge's axis, where its limits tell it."""
        uneven = [
            x
            for x in self.hinges
            if math.isfinite(x.limits.upper - x.limits.lower)
            and abs(x.limits.upper + x.limits.lower) > 0.2 * (x.limits.upper - x.limits.lower)
        ]
        if (joint := self.pick(uneven)) is None:
            return None
        axis = tuple(-x for x in joint.axis)
        return with_joint(self.description, joint.name, axis=axis), (joint.name,)

    def effort(self) -> Seeded | None:
        """A limit of effort or velocity a half, or ten times."""
        limited = [x for x in self.joints if 0.0 < x.limits.effort < math.inf and not x.mimic]
        if (joint := self.pick(limited)) is None:
            return None
        factor = float(self.rng.choice([0.5, 10.0]))
        limits = replace(joint.limits, effort=factor * joint.limits.effort)
        return with_joint(self.description, joint.name, limits=limits), (joint.name,)

    def mimic(self) -> Seeded | None:
        """A mimic's multiplier ten times, or of the other sign."""
        mimics = [x for x in self.joints if x.mimic]
        if (joint := self.pick(mimics)) is None or joint.mimic is None:
            return None
        factor = float(self.rng.choice([-1.0, 10.0]))
        mimic = replace(joint.mimic, multiplier=factor * joint.mimic.multiplier)
        return with_joint(self.description, joint.name, mimic=mimic), (joint.name,)

    def gear(self) -> Seeded | None:
        """An actuator's reduction ten times, or of the other sign."""
        names = {joint.name for joint in self.joints}
        geared = [
            (each, actuator)
            for each in self.description.transmissions
            for actuator in each.actuators
            if actuator.reduction and self.actuators.get(actuator.name, {}).keys() & names
        ]
        if (chosen := self.pick(geared)) is None:
            return None
        each, actuator = chosen
        assert actuator.reduction is not None
        wrong = replace(
            actuator, reduction=float(self.rng.choice([-1.0, 10.0])) * actuator.reduction
        )
        changed = replace(
            each, actuators=tuple(wrong if x is actuator else x for x in each.actuators)
        )
        transmissions = tuple(changed if x is each else x for x in self.description.transmissions)
        joints = tuple(end.name for end in each.joints)
        description = replace(self.description, transmissions=transmissions)
        return description, (each.name, actuator.name, *joints)

    def anchor(self) -> Seeded | None:
        """A loop's end 3 % of the robot's size off."""
        if (loop := self.pick(self.description.loops)) is None:
            return None
        xyz = self.off(loop.successor.origin.xyz, 0.03, 0.03)
        moved = replace(loop.successor, origin=replace(loop.successor.origin, xyz=xyz))
        changed = replace(loop, successor=moved)
        loops = tuple(changed if each is loop else each for each in self.description.loops)
        return replace(self.description, loops=loops), (loop.name,)

    def off(self, xyz: Sequence[float], least: float, most: float) -> Vec3:
        """A point as far off as these shares of the robot's size, in any direction."""
        off = self.rng.normal(size=3)
        off *= self.rng.uniform(least, most) * self.size / np.linalg.norm(off)
        return vec((np.array(xyz) + off).tolist())

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


AMONG_TWINS: dict[str, Callable[[Seeds], Seeded | None]] = {
    "inertia or mass in other units": Seeds.units,
    "mass and inertia 1000 times": Seeds.density,
    "inertial missing": Seeds.inertial,
    "centre of mass off": Seeds.com,
    "composite inertia about the wrong point": Seeds.composite,
    "mass by a factor of 2 to 5": Seeds.override,
    "signs of products of inertia": Seeds.mirrored,
    "a hinge's axis": Seeds.axis,
    "the sign of an axis": Seeds.sense,
    "a joint's origin off": Seeds.origin,
    "limits in degrees": Seeds.degrees,
    "a limit of effort": Seeds.effort,
    "a mimic's ratio": Seeds.mimic,
    "an actuator's gear": Seeds.gear,
    "a loop's end off": Seeds.anchor,
}
"""Faults of links and joints that a counterpart shows."""


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
    _, symmetries = find_symmetries(CheckContext(model))
    joints = {x for each in symmetries for x in (*each.images, *each.images.values())}
    return joints | {joint.child for joint in model.description.joints if joint.name in joints}
