"""The SDF document that grows: its models, the names that are taken, and how elements are said."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice

from lxml import etree

from robomodel.description import Inertial, Joint, Loop, Pose, Shape
from robomodel.masses import MOMENTS
from robomodel.parsers.sdf.frames import BETWEEN, WORLD
from robomodel.parsers.sdf.links import SIZES
from robomodel.parsers.xml import CUSTOM, DRAKE
from robomodel.text import Names, number, numbers, rpy_of

VERSION = "1.11"


@dataclass
class Draft:
    """A document. ``links`` and ``joints`` are what links and joints are called in it."""

    lost: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    joints: dict[str, str] = field(default_factory=dict)
    taken: dict[tuple[str, ...], set[str]] = field(default_factory=lambda: defaultdict(set))
    models: dict[tuple[str, ...], etree._Element] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nsmap = {"robomodel": CUSTOM, "drake": DRAKE}
        self.root = etree.Element("sdf", {"version": VERSION}, nsmap=nsmap)

    def text(self) -> str:
        """The document."""
        etree.cleanup_namespaces(self.root)
        body = etree.tostring(self.root, pretty_print=True, encoding="unicode")
        return f'<?xml version="1.0"?>\n{body}'

    def model(self, scope: tuple[str, ...]) -> etree._Element:
        """The model of these names, one in the other; made where it is not there yet."""
        if scope not in self.models:
            self.taken[scope[:-1]].add(scope[-1])
            self.models[scope] = etree.SubElement(
                self.model(scope[:-1]), "model", {"name": scope[-1]}
            )
        return self.models[scope]

    def claim(self, name: str, *others: str, more: str = "") -> str:
        """The name that an element gets, in the models that its own name says.

        From there it must reach what it names. A name that SDF does not allow, or that another
        element has, is changed; ``more`` is then tried first as an ending.
        """
        *models, last = name.split(BETWEEN)
        scope = tuple(models)
        nested = all(
            scope[:n] in self.models or scope[n - 1] not in self.taken[scope[: n - 1]]
            for n in range(1, len(scope) + 1)
        )
        reached = all(other == WORLD or other.startswith(prefix(name)) for other in others)
        if not (nested and reached and all(models)):
            scope, last = (), name.replace(BETWEEN, "_")
        if last in ("", WORLD) or (last.startswith("__") and last.endswith("__")):
            last = f"{last.strip('_') or 'unnamed'}_"
        fresh, count = last, 0
        while fresh in self.taken[scope]:
            fresh = f"{last}_{count}" if count or not more else f"{last}_{more}"
            count += 1
        self.model(scope)
        self.taken[scope].add(fresh)
        return BETWEEN.join((*scope, fresh))

    def element(self, tag: str, name: str, said: str, **attributes: str) -> etree._Element:
        """A new element, called ``said`` in the file; a name that is another one is noted in it."""
        *models, last = said.split(BETWEEN)
        element = etree.SubElement(self.model(tuple(models)), tag, {"name": last} | attributes)
        if said != name:
            own(element, "name", name)
        return element

    def reached(self, name: str, other: str) -> str:
        """How the element of one link names another one; empty if it cannot."""
        if other not in self.links or self.links[other] == WORLD:
            return ""
        within, found = prefix(self.links[name]), self.links[other]
        return found[len(within) :] if found.startswith(within) else ""


# --- elements -------------------------------------------------------------------------------------


def prefix(said: str) -> str:
    """What the name of an element begins with: the models in which it stands."""
    return said[: len(said) - len(said.rpartition(BETWEEN)[2])]


def own(element: etree._Element, name: str, value: str) -> None:
    """An attribute of this package's own, which other readers pass over."""
    element.set(f"{{{CUSTOM}}}{name}", value)


def text(parent: etree._Element, tag: str, content: str) -> etree._Element:
    """A new element that holds a text."""
    element = etree.SubElement(parent, tag)
    element.text = content
    return element


def pose(parent: etree._Element, placement: Pose, relative_to: str = "") -> None:
    """``<pose>``, unless it says nothing."""
    angles = rpy_of(placement.rotation)
    if relative_to or any(placement.xyz) or any(angles):
        element = text(parent, "pose", numbers((*placement.xyz, *angles)))
        if relative_to:
            element.set("relative_to", relative_to)


def inertial(link: etree._Element, said: Inertial) -> None:
    """``<inertial>``."""
    element = etree.SubElement(link, "inertial")
    pose(element, said.origin)
    text(element, "mass", number(said.mass))
    moments = etree.SubElement(element, "inertia")
    for name, value in zip(MOMENTS, said.inertia, strict=True):
        text(moments, name, number(value))


def shape(link: etree._Element, said: Shape, names: Names) -> None:
    """``<visual>`` or ``<collision>``, which has no colour that any reader allows."""
    element = etree.SubElement(link, said.role, {"name": names.fresh(said.name or said.role)})
    pose(element, said.origin)
    geometry = etree.SubElement(etree.SubElement(element, "geometry"), said.kind)
    if said.kind == "mesh":
        text(geometry, "uri", said.file or "")
        if said.size != (1.0, 1.0, 1.0):
            text(geometry, "scale", numbers(said.size))
    elif said.kind == "plane":
        text(geometry, "normal", "0 0 1")
        text(geometry, "size", "1 1")
    else:
        values = iter(said.size)
        for tag, count in SIZES[said.kind].items():
            text(geometry, tag, numbers(islice(values, count)))
    _surface(element, said)
    if said.rgba is None:
        return
    if said.role == "collision":
        own(element, "rgba", numbers(said.rgba))
        return
    material = etree.SubElement(element, "material")
    for tag in ("ambient", "diffuse"):
        text(material, tag, numbers(said.rgba))


def _surface(element: etree._Element, said: Shape) -> None:
    """Friction and restitution of a collision; each engine has words of its own for friction."""
    if said.friction is None and said.restitution is None:
        return
    surface = etree.SubElement(element, "surface")
    if said.friction is not None:
        friction = etree.SubElement(surface, "friction")
        for engine, tags in (("ode", ("mu", "mu2")), ("bullet", ("friction", "friction2"))):
            words = etree.SubElement(friction, engine)
            for tag in tags:
                text(words, tag, number(said.friction))
    if said.restitution is not None:
        bounce = etree.SubElement(surface, "bounce")
        text(bounce, "restitution_coefficient", number(said.restitution))


def dynamics(axis: etree._Element, said: Joint | Loop, reference: float) -> None:
    """``<dynamics>`` of an axis, unless it says nothing."""
    if not (said.damping or said.friction or said.stiffness):
        return
    element = etree.SubElement(axis, "dynamics")
    text(element, "damping", number(said.damping))
    text(element, "friction", number(said.friction))
    if said.stiffness:
        text(element, "spring_reference", number(reference))
        text(element, "spring_stiffness", number(said.stiffness))
