"""Armature of MuJoCo's actuators and tendons, and actuators as transmissions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from robomodel.description import (
    Actuator,
    Inertial,
    Joint,
    JointCoupling,
    JointSpring,
    Link,
    Transmission,
    TransmittedJoint,
)
from robomodel.errors import Doubt, Source
from robomodel.parsers.mjcf.elements import Elements, unused
from robomodel.parsers.mjcf.motors import Motors
from robomodel.parsers.mjcf.ties import Terms, Ties

WORLD = "world"
"""What MuJoCo calls the body that all others hang on."""

_DRIVES_JOINT, _DRIVES_TENDON = (0, 1), 3  # mjtTrn
_DRIVES_BODIES = {2: "sites by a crank", 4: "a site", 5: "what touches a body"}
_LEAST_SCALAR = 2  # mjtJoint: slides and hinges


@dataclass
class Actuators:
    """The actuators of a model, and what of them and of tendons turns as joints do."""

    elements: Elements
    ties: Ties

    @cached_property
    def motors(self) -> Motors:
        """What they can do."""
        return Motors(self.elements)

    @property
    def model(self) -> Any:
        """MuJoCo's model."""
        return self.elements.model

    def _drives(self, actuator: int) -> tuple[Terms | None, float]:
        """The joints that an actuator moves and their coefficients, and its gear."""
        model = self.model
        kind, driven = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
        gear = float(model.actuator_gear[actuator, 0])
        if kind in _DRIVES_JOINT:
            return ((driven, 1.0),), gear
        return self.ties.terms(driven) if kind == _DRIVES_TENDON else None, gear

    def _actuator_name(self, actuator: int) -> tuple[str, Source]:
        compiled = self.elements.name("actuator", actuator)
        node = self.elements.compiled.node("actuator", compiled)
        tag = node.tag if node else "actuator"
        name = self.elements.compiled.given(compiled) or f"{tag}_{actuator}"
        return name, self.elements.compiled.source("actuator", compiled, f"{tag} '{name}'")

    @cached_property
    def _spinning(self) -> list[tuple[str, Source, Terms, float]]:
        """Inertias that tendons and their actuators have: name, place, joints' terms, inertia."""
        found: list[tuple[str, Source, Terms | None, float]] = []
        model = self.model
        for tendon, armature in enumerate(getattr(model, "tendon_armature", ())):
            if armature:
                compiled = self.elements.name("tendon", tendon)
                name = self.elements.compiled.given(compiled) or f"tendon_{tendon}"
                source = self.elements.compiled.source("tendon", compiled, f"tendon '{name}'")
                found.append((name, source, self.ties.terms(tendon), float(armature)))
        for actuator, armature in enumerate(getattr(model, "actuator_armature", ())):
            if armature:
                name, source = self._actuator_name(actuator)
                terms, gear = self._drives(actuator)
                found.append((name, source, terms, float(armature) * gear**2))
        usable = []
        for name, source, terms, inertia in found:
            if terms and all(int(model.jnt_type[joint]) >= 2 for joint, _ in terms):
                usable.append((name, source, terms, inertia))
            else:
                self.elements.doubts.append(
                    Doubt(
                        "its armature is not applied: that is done for hinges, slides and fixed "
                        "tendons",
                        source,
                        "armature",
                    )
                )
        return usable

    @cached_property
    def armature(self) -> dict[int, float]:
        """What actuators of single joints add to the armature of each."""
        added: dict[int, float] = {}
        for _, _, terms, inertia in self._spinning:
            if len(terms) == 1:
                (joint, coefficient), *_ = terms
                added[joint] = added.get(joint, 0.0) + inertia * coefficient**2
        return added

    @cached_property
    def _damped(self) -> list[tuple[str, Source, Terms, float]]:
        """Actuators with damping, of which only some releases know: as of :attr:`_spinning`."""
        usable = []
        for actuator, damping in enumerate(getattr(self.model, "actuator_damping", ())):
            if not damping:
                continue
            name, source = self._actuator_name(actuator)
            terms, gear = self._drives(actuator)
            moved = tuple((joint, k) for joint, k in terms or () if joint not in self.ties.locked)
            if terms is None or any(int(self.model.jnt_type[joint]) < 2 for joint, _ in moved):
                self.elements.doubts.append(
                    Doubt(
                        "its damping is not applied: that is done for hinges, slides and fixed "
                        "tendons",
                        source,
                        "damping of an actuator",
                    )
                )
            elif moved:
                usable.append((name, source, moved, float(damping) * gear**2))
        return usable

    @cached_property
    def damping(self) -> dict[int, float]:
        """What actuators of single joints add to the damping of each."""
        added: dict[int, float] = {}
        for _, _, terms, damping in self._damped:
            if len(terms) == 1:
                ((joint, coefficient),) = terms
                added[joint] = added.get(joint, 0.0) + damping * coefficient**2
        return added

    def dampers(self) -> Iterator[JointSpring]:
        """The damping of actuators that move several joints by a tendon."""
        for actuator, source, terms, damping in self._damped:
            if len(terms) > 1:
                names = tuple((self.elements.joints[joint], k) for joint, k in terms)
                yield JointSpring(f"{actuator}_damping", names, damping=damping, source=source)

    def rotors(self) -> tuple[list[Link], list[Joint], list[JointCoupling]]:
        """The armature of a tendon of several joints: a rotor on the world turns as it moves."""
        links: list[Link] = []
        joints: list[Joint] = []
        couplings: list[JointCoupling] = []
        for tendon, source, terms, inertia in self._spinning:
            if len(terms) == 1:
                continue
            name = unused(f"{tendon}_rotor", self.elements.taken_links | self.elements.taken_joints)
            self.elements.taken_links.add(name)
            self.elements.taken_joints.add(name)
            links.append(
                Link(name, Inertial(0.0, (inertia, 0.0, 0.0, 0.0, 0.0, 0.0), source=source), source)
            )
            joints.append(Joint(name, "continuous", WORLD, name, independent=False, source=source))
            relation = ((name, 1.0), *((self.elements.joints[joint], -k) for joint, k in terms))
            couplings.append(JointCoupling(name, relation, 0.0, source))
        return links, joints, couplings

    def _why_none(self, actuator: int) -> str:
        """Why an actuator is not among the robot's; empty for one that is."""
        model = self.model
        kind = int(model.actuator_trntype[actuator])
        terms, gear = self._drives(actuator)
        if kind in _DRIVES_BODIES:
            return f"it acts on {_DRIVES_BODIES[kind]}"
        if terms is None:
            return "it pulls a spatial tendon"
        if any(int(model.jnt_type[joint]) < _LEAST_SCALAR for joint, _ in terms):
            return "it acts on a ball or free joint"
        if not gear or not terms:
            return "its gear is 0" if terms else "the coefficients of its tendon are 0"
        if all(joint in self.ties.locked for joint, _ in terms):
            return "a constraint holds all that it acts on in one position"
        return ""

    def transmissions(self) -> Iterator[Transmission]:
        """Every actuator, with the joints of one freedom that it moves, if it moves such."""
        for number in range(self.model.actuator_trnid.shape[0]):
            name, source = self._actuator_name(number)
            terms, gear = self._drives(number)
            node = self.elements.compiled.node("actuator", self.elements.name("actuator", number))
            if why := self._why_none(number):
                terms = None
                said = (
                    f"it is not among the robot's actuators: {why}; those act on hinges, slides "
                    "and fixed tendons that move"
                )
                self.elements.doubts.append(Doubt(said, source, f"actuator: {why}"))
            ends = [
                TransmittedJoint(self.elements.joints[joint], reduction=k)
                for joint, k in terms or ()
                if joint not in self.ties.locked
            ]
            motor = self.motors.of_actuator(number, name, terms, gear, source)
            yield Transmission(
                name,
                node.tag if node else "",
                tuple(ends),
                (Actuator(name, reduction=gear if terms else None, motor=motor),),
                source,
            )
