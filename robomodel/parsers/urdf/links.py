"""Links: inertials, and shapes with their colours."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import cast

from robomodel.description import Inertial, Link, Shape, ShapeKind
from robomodel.errors import DescriptionError
from robomodel.masses import MOMENTS
from robomodel.parsers.shared.elements import NAME_TYPE, read_origin, read_value
from robomodel.parsers.xml import Document, Element, shown, spelled

_LINK_PARTS = frozenset(("inertial", "visual", "collision"))
_LINK_IRRELEVANT = frozenset(("material", "gazebo", "sensor", "contact", "self_collision_checking"))
_INERTIA = frozenset(MOMENTS)
_INERTIAL_PARTS = frozenset(("origin", "mass", "inertia"))


def read_link(document: Document, element: Element, colours: Colours) -> Link:
    """``<link>``; a shape that cannot be read is left out with a warning."""
    document.expect(element, NAME_TYPE)
    name = document.text(element, "name")
    source = document.source(element, f"link '{name}'")
    inertial = None
    shapes: list[Shape] = []
    for child in element:
        tag = child.tag
        if tag == "inertial":
            if inertial is None:
                inertial = _inertial(document, child, source.element)
            else:
                document.suspect(child, "<inertial> is given twice; the first is read")
        elif tag in {"visual", "collision"}:
            try:
                shapes.append(_shape(document, child, source.element, colours))
            except DescriptionError as error:  # it changes no dynamics
                document.suspect(child, f"this <{tag}> is left out: {error.message}", f"bad {tag}")
        elif tag not in _LINK_IRRELEVANT:
            document.unknown(child, _LINK_PARTS)
    return Link(name, inertial, source, tuple(shapes))


def changed_link(link: Link, change: Link) -> Link:
    """A link with what an extension gives it: an inertial in place of its own, further shapes."""
    return replace(
        link, inertial=change.inertial or link.inertial, shapes=(*link.shapes, *change.shapes)
    )


def _inertial(document: Document, element: Element, label: str) -> Inertial:
    parts = document.parts(element, _INERTIAL_PARTS)
    mass = parts.get("mass")
    if mass is None:
        raise document.error(element, '<inertial> has no <mass value="..."/>')
    kilograms = read_value(document, mass)
    if kilograms < 0.0:
        raise document.error(mass, f"the mass is negative: {spelled(mass.get('value', ''))} kg")
    inertia = parts.get("inertia")
    if inertia is None:
        raise document.error(
            element, '<inertial> has no <inertia>; a point mass has ixx="0", ixy="0", ... izz="0"'
        )
    return Inertial(
        kilograms,
        _inertia(document, inertia),
        read_origin(document, parts.get("origin")),
        document.source(element, label),
    )


def _inertia(
    document: Document, element: Element
) -> tuple[float, float, float, float, float, float]:
    found = document.numbers(element, _INERTIA)
    try:
        xx, xy, xz, yy, yz, zz = (found[entry] for entry in MOMENTS)
    except KeyError as error:
        raise document.error(element, f"<inertia>: the attribute {error} is missing") from None
    return xx, xy, xz, yy, yz, zz


Rgba = tuple[float, float, float, float]


class Colours(dict[str, Rgba]):
    """The colours of materials by name: of the robot, and of the links read so far."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        for material in document.root.iterfind("material"):
            if (color := material.find("color")) is not None:
                with suppress(DescriptionError):
                    self[material.get("name", "")] = document.quadruple(color, "rgba")

    def of(self, document: Document, material: Element | None) -> Rgba | None:
        """A shape's colour; one that is given with a name is remembered under it."""
        if material is None:
            return None
        name = material.get("name", "")
        if (color := material.find("color")) is None:
            return self.get(name)
        rgba = document.quadruple(color, "rgba")
        if name:
            self.setdefault(name, rgba)
        return rgba


def _shape(document: Document, element: Element, label: str, colours: Colours) -> Shape:
    geometry = element.find("geometry")
    if geometry is None:
        raise document.error(element, "it has no <geometry>")
    kind, size, file = _geometry(document, geometry)
    return Shape(
        "visual" if element.tag == "visual" else "collision",
        kind,
        size,
        read_origin(document, element.find("origin")),
        file,
        element.get("name", ""),
        colours.of(document, element.find("material")),
        document.source(element, label),
        "",
        *_surface(document, element),
    )


def _surface(document: Document, element: Element) -> tuple[float | None, float | None]:
    """Friction and restitution of a shape: ``<surface>``, a word of our own."""
    said = element.find("surface")
    if said is None or element.tag == "visual":
        return None, None
    found: list[float | None] = []
    for word, most in (("friction", math.inf), ("restitution", 1.0)):
        value = document.number(said, word) if said.get(word) is not None else None
        if value is not None and not 0.0 <= value <= most:
            upto = "0 on" if most > 1.0 else "0 to 1"
            raise document.error(said, f"{word} is from {upto}, not {value:g}")
        found.append(value)
    return found[0], found[1]


def _geometry(
    document: Document, element: Element
) -> tuple[ShapeKind, tuple[float, ...], str | None]:
    """Kind, size and file of the shape; Drake's capsule and ellipsoid have a prefix."""
    for shape in element:
        kind = cast(ShapeKind, shape.tag.rpartition("}")[2])
        if kind == "mesh":
            scale = document.vector(shape, "scale", (1.0, 1.0, 1.0))
            return kind, scale, document.text(shape, "filename")
        if kind == "box":
            size: tuple[float, ...] = document.vector(shape, "size")
        elif kind in SIZES:
            size = tuple(document.number(shape, name) for name in SIZES[kind])
        else:
            continue
        if min(size, default=0.0) < 0.0:
            raise document.error(shape, f"the size of the <{shown(shape)}> is negative")
        return kind, size, None
    raise document.error(element, f"its <geometry> holds none of box, {', '.join(SIZES)}, mesh")


SIZES = {
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("a", "b", "c"),
    "plane": (),
}
