"""Extension files for other values of a robot's parameters, as templates that a page fills in.

``rm.load(file, extend=text)`` reads the text; the model is that of
:func:`robomodel.with_parameters`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from lxml import etree

from robomodel.description import Joint, JointSpring, LinkCoupling, Loop, Spring
from robomodel.description.transmissions import rotor_name
from robomodel.dynamics import crba, gravity_force
from robomodel.kernels.function import TracedFunction
from robomodel.model import Model
from robomodel.model.elements import Coupling
from robomodel.model.geometry_parameters import (
    AXES,
    SPRINGS,
    TURNS,
    coefficients_of,
    joints_above,
    rods,
)
from robomodel.model.parameters import (
    ENTRIES,
    INERTIAL,
    OF_JOINTS,
    PARAMETERS,
    closed_anew,
    of_geometry,
    parameterized,
    parameters,
)
from robomodel.parsers.urdf.joints import add_coupling, add_loop
from robomodel.scalars import Scalar, Vector, div, select, value_of
from robomodel.spatial import matmul, transpose
from robomodel.spatial.logarithms import log3, quaternion, turned
from robomodel.vocabulary.motors import add_rotor
from robomodel.vocabulary.rotors import with_rotor_words
from robomodel.vocabulary.schema import ARMATURE, DYNAMICS, add, number, write
from robomodel.vocabulary.springs import add_spring
from robomodel.vocabulary.xml import Element

SLOT = "\ue000"  # encloses the index of a number in a text; private use, so in no name


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension with slots for numbers.

    Attributes:
        pieces: Texts, and between them indices of the numbers.
        numbers: The numbers, from values of the parameters.
        unsaid: Parameters that no element of an extension has, with the reason.
    """

    pieces: tuple[str | int, ...]
    numbers: TracedFunction
    unsaid: Mapping[str, str]


def extension(model: Model, names: Sequence[str], given: Sequence[str]) -> Extension:
    """The extension for values of ``names``; its numbers are a function of the values ``given``."""
    writing = _Writing(model, frozenset(names))
    places = {name: i for i, name in enumerate(given)}

    def build(values: Vector) -> list[Scalar]:
        now = _Numbers(model, {name: values[places[name]] for name in names})
        numbers: list[Scalar] = []
        for what, owner in writing.wanted:
            numbers += now.of(what, owner)
        return numbers

    body = etree.tostring(writing.root, pretty_print=True, encoding="unicode")
    texts = f'<?xml version="1.0"?>\n{body}'.split(SLOT)
    pieces = tuple(int(text) if n % 2 else text for n, text in enumerate(texts))
    count = 1 + max((x for x in pieces if isinstance(x, int)), default=-1)
    numbers = TracedFunction("written", {PARAMETERS: len(given)}, {"numbers": (count,)}, build)
    return Extension(pieces, numbers, writing.unsaid)


class _Numbers:
    """Numbers of elements from values of some parameters."""

    def __init__(self, model: Model, values: Mapping[str, Scalar]) -> None:
        self.model, self.values = model, values
        self.listed = parameters(model, geometry=True)

    def of(self, what: str, owner: str) -> list[Scalar]:
        """The numbers of one kind of a joint, loop, coupling or link."""
        match what:
            case "inertial":
                return self._inertial(owner)
            case "origin":
                (joint,) = (x for x in self.model.description.joints if x.name == owner)
                turn = [self[f"{owner}.{axis}"] for axis in TURNS]
                held = quaternion(joint.origin.rotation)
                size = sum(value_of(x) ** 2 for x in held) ** 0.5
                return [*self._vector(owner), *turned([x / size for x in held], turn)]
            case "vector":
                return self._vector(owner)
            case "ratio":  # of a coupling of links: minus the coefficient of the leading joint
                return [-self[owner]]
            case "mimic":
                (coupling,) = (x for x in self.model.couplings if _is_mimic(x, owner))
                (own, _), (leader, _) = coupling.terms
                scale = self[f"{owner}.{own}"]
                return [-div(self[f"{owner}.{leader}"], scale), div(coupling.offset, scale)]
        return [self[owner]]

    def __getitem__(self, name: str) -> Scalar:
        return self.values[name] if name in self.values else self.listed[name]

    def _vector(self, owner: str) -> list[Scalar]:
        return [self[f"{owner}.{axis}"] for axis in AXES]

    def _inertial(self, link: str) -> list[Scalar]:
        """Mass, centre of mass, and the inertia about it; without mass the centre is the origin."""
        mass, *rest = (self[f"{link}.{each}"] for each in INERTIAL)
        h, about = rest[:3], rest[3:]
        centre = [select(-mass, div(x, mass), 0.0) for x in h]
        square = h[0] * centre[0] + h[1] * centre[1] + h[2] * centre[2]
        moved = [
            each - ((square if i == j else 0.0) - h[i] * centre[j])
            for each, (i, j) in zip(about, ENTRIES, strict=True)
        ]
        return [mass, *centre, *moved]


@dataclass
class _Writing:
    """The elements that parameters change, with slots, and the numbers in them."""

    model: Model
    names: frozenset[str]
    root: Element = field(init=False)
    wanted: list[tuple[str, str]] = field(default_factory=list)
    unsaid: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def __post_init__(self) -> None:
        description = with_rotor_words(self.model.description)
        self.root = etree.Element("robot", {"name": f"{description.name}_design"})
        written = {
            *self._links({link.name for link in description.links}),
            *self._joints(description.joints),
            *self._loops(description.loops),
            *self._couplings({each.name for each in description.couplings}),
            *self._springs(description.springs),
        }
        if gravity := self._varied("gravity", AXES):
            add(self.root, "gravity", xyz=self._slots("vector", "gravity", 3))
            written |= gravity
        why = "the file has this rotor as <rotor>, of which an extension changes the ratio only"
        self.unsaid = dict.fromkeys(sorted(self.names - written), why)

    def _varied(self, owner: str, kinds: Sequence[str]) -> set[str]:
        return {f"{owner}.{kind}" for kind in kinds} & self.names

    def _slots(self, what: str, owner: str, size: int = 1) -> str:
        self.wanted.append((what, owner))
        self.count += size
        return " ".join(f"{SLOT}{i}{SLOT}" for i in range(self.count - size, self.count))

    def _links(self, written: set[str]) -> Iterator[str]:
        links = {link.name: link for link in self.model.description.links}
        for body in self.model.bodies:
            varied = self._varied(body.name, INERTIAL)
            if not varied or body.name not in written:
                continue
            mass, *rest = self._slots("inertial", body.name, 10).split(" ")
            inertial = add(add(self.root, "link", name=body.name), "inertial")
            add(inertial, "origin", xyz=" ".join(rest[:3]))
            add(inertial, "mass", value=mass)
            keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
            add(inertial, "inertia", **dict(zip(keys, rest[3:], strict=True)))
            for name in body.links:  # links fixed to it belong to its inertia
                if name != body.name and links[name].inertial is not None:
                    inertial = add(add(self.root, "link", name=name), "inertial")
                    add(inertial, "mass", value="0")
                    add(inertial, "inertia", **dict.fromkeys(keys, "0"))
            yield from varied

    def _joints(self, joints: Sequence[Joint]) -> Iterator[str]:
        for joint in joints:
            origin = self._varied(joint.name, (*AXES, *TURNS))
            kinds = self._varied(joint.name, (*OF_JOINTS, *_WORDS))
            ratio, mimic = self._rotor(joint), self._mimic(joint)
            if not (origin or kinds or ratio or mimic):
                continue
            element = add(self.root, "joint", name=joint.name)
            if origin:
                slots = self._slots("origin", joint.name, 7).split(" ")
                add(element, "origin", xyz=" ".join(slots[:3]), quat_xyzw=" ".join(slots[3:]))
            if mimic and joint.mimic is not None:
                scale, offset = self._slots("mimic", joint.name, 2).split(" ")
                add(element, "mimic", joint=joint.mimic.joint, multiplier=scale, offset=offset)
            if kinds - {f"{joint.name}.armature"}:
                dynamics = add(element, DYNAMICS.tag)
                write(dynamics, DYNAMICS, joint)
                for name in sorted(kinds - {f"{joint.name}.armature"}):
                    kind = name.rpartition(".")[2]
                    dynamics.set(_WORDS.get(kind, kind), self._slots("number", name))
            if f"{joint.name}.armature" in kinds:
                slot = self._slots("number", f"{joint.name}.armature")
                add(element, ARMATURE.tag, value=slot)
            if ratio and joint.rotor is not None:
                add_rotor(element, joint.rotor)
                element[-1].set("ratio", self._slots("ratio", ratio))
            yield from {*origin, *kinds, *mimic, *([ratio] if ratio else [])}

    def _rotor(self, joint: Joint) -> str:
        """The parameter of the ratio of a joint's <rotor>, if it varies."""
        name = f"{rotor_name(joint.name)}.{joint.name}"
        return name if joint.rotor is not None and name in self.names else ""

    def _mimic(self, joint: Joint) -> set[str]:
        mimics = (x for x in self.model.couplings if _is_mimic(x, joint.name))
        return {f"{x.name}.{name}" for x in mimics for name, _ in x.terms} & self.names

    def _loops(self, loops: Sequence[Loop]) -> Iterator[str]:
        lengths = rods(self.model)
        open_ended = bool(of_geometry(self.model, self.names))
        for loop in loops:
            ends = {end: self._varied(f"{loop.name}.{end}", AXES) for end in _ENDS}
            length = self._varied(loop.name, ("length",))
            sprung = self._sprung(loop.name, SPRINGS)
            varying = {*length, *sprung.values(), *(x for each in ends.values() for x in each)}
            kept = open_ended and loop.type == "rod" and loop.length is None
            if not (varying or kept):
                continue
            add_loop(self.root, loop)
            element = self.root[-1]
            if length:
                element.set("length", self._slots("number", f"{loop.name}.length"))
            elif kept:  # else it is the distance at the zero configuration
                element.set("length", number(lengths[loop.name]))
            for kind, name in sprung.items():
                dynamics = element.find(DYNAMICS.tag)
                assert dynamics is not None  # it has a spring
                dynamics.set(_WORDS.get(kind, kind), self._slots("number", name))
            for end, varied in ends.items():
                if varied:
                    anchor = element.find(end)
                    assert anchor is not None
                    origin = anchor.find("origin")
                    origin = add(anchor, "origin") if origin is None else origin
                    origin.set("xyz", self._slots("vector", f"{loop.name}.{end}", 3))
            yield from varying

    def _couplings(self, written: set[str]) -> Iterator[str]:
        elements = {each.name: each for each in self.model.description.couplings}
        for coupling in self.model.couplings:
            coefficients = coefficients_of(coupling)
            varying = self._varied(coupling.name, [name for name, _ in coefficients])
            if not varying or coupling.kind == "mimic" or coupling.name not in written:
                continue
            element = elements[coupling.name]
            if isinstance(element, LinkCoupling):
                ahead = joints_above(self.model, element.successor)
                behind = {f"{coupling.name}.{name}" for name, _ in coupling.terms} - {
                    f"{coupling.name}.{name}" for name in ahead
                }
                if varying == behind and len(behind) == 1:
                    add_coupling(self.root, element)
                    ratio = self.root[-1].find("ratio")
                    assert ratio is not None
                    ratio.set("value", self._slots("ratio", next(iter(behind))))
                    yield from varying
                    continue
            slots = {}
            for name, k in coefficients:
                full = f"{coupling.name}.{name}"
                slots[name] = (
                    self._slots("number", full) if full in varying else number(value_of(k))
                )
            if coupling.coefficients:
                add_coupling(self.root, element)
                self.root[-1][0].set("coefficients", " ".join(slots.values()))
                yield from varying
                continue
            terms = add(self.root, "coupling", name=coupling.name)
            for name, slot in slots.items():
                add(terms, "joint", name=name, ratio=slot)
            if coupling.offset:
                add(terms, "offset", value=number(float(coupling.offset)))
            yield from varying

    def _springs(self, springs: Sequence[Spring | JointSpring]) -> Iterator[str]:
        """Springs without a length keep theirs, which is a distance at the zero configuration."""
        resting = {spring.name: spring.reference for spring in self.model.springs}
        moved = bool(of_geometry(self.model, self.names))
        for spring in springs:
            between = isinstance(spring, Spring)
            varying = self._sprung(spring.name, _BETWEEN if between else SPRINGS)
            kept = moved and isinstance(spring, Spring) and spring.length is None
            if not (varying or kept):
                continue
            element = add_spring(self.root, spring)
            if kept:
                element.set("length", number(float(resting[spring.name])))
            for kind, name in varying.items():
                element.set(kind, self._slots("number", name))
            yield from varying.values()

    def _sprung(self, owner: str, kinds: Sequence[str]) -> dict[str, str]:
        """The kinds of a spring's numbers that vary, with the names of their parameters."""
        taken = owner in {joint.name for joint in self.model.joints}
        names = {kind: f"{owner}{'.spring' * taken}.{kind}" for kind in kinds}
        return {kind: name for kind, name in names.items() if name in self.names}


_BETWEEN = ("stiffness", "length", "damping")
_WORDS = {"stiffness": "spring_stiffness", "reference": "spring_reference"}  # in <dynamics>


def differences(model: Model, other: Model) -> dict[str, float]:
    """The parameters in which another model of the same links and joints differs, with its values.

    Raises ValueError if it differs in more: with these values both must agree at random states.
    """
    mine, its = (parameters(each, geometry=True) for each in (model, other))
    alike = mine.names == its.names and model.dof_names == other.dof_names
    if not alike or (model.nq, model.nv) != (other.nq, other.nv):
        raise ValueError(
            f"'{other.name}' has other links, joints, loops or couplings than '{model.name}': "
            "compare= takes a design of the same elements (robomodel actuation A B compares others)"
        )
    sizes = np.maximum(np.abs(mine.values), np.abs(its.values))
    result = {
        name: float(y)
        for name, x, y, size in zip(mine.names, mine.values, its.values, sizes, strict=True)
        if abs(x - y) > 1e-12 * size
    }
    for one, two in zip(model.description.joints, other.description.joints, strict=True):
        turn = log3(matmul(transpose(one.origin.rotation), two.origin.rotation))
        if max(abs(value_of(x)) for x in turn) > 1e-12:
            names = (f"{one.name}.{axis}" for axis in TURNS)
            result |= {name: value_of(x) for name, x in zip(names, turn, strict=True) if x}
    again = closed_anew(parameterized(model, result), model)
    q = [again.random_configuration(seed, base_pose="random") for seed in range(2)]
    for compute in (crba, gravity_force):
        right, repeated = (compute(each, q) for each in (other, again))
        if np.abs(repeated - right).max() > 1e-8 * np.abs(right).max():
            raise ValueError(
                f"'{other.name}' differs from '{model.name}' by more than parameters "
                "(rm.parameters(model, geometry=True)), as by axes or types of joints"
            )
    return result


_ENDS = ("predecessor", "successor")


def _is_mimic(coupling: Coupling, joint: str) -> bool:
    return coupling.kind == "mimic" and coupling.name == joint
