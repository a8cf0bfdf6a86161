"""Links: inertials and shapes with colours and surfaces, reading and writing."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import cast

from robomodel.description import Inertial, Link, Shape, ShapeKind
from robomodel.errors import DescriptionError
from robomodel.vocabulary.frames import NAME_TYPE, add_origin, read_origin
from robomodel.vocabulary.schema import (
    INERTIA,
    MASS,
    SIZES,
    SURFACE,
    add,
    add_numbers,
    add_text,
    number,
    numbers,
    read,
    write,
)
from robomodel.vocabulary.xml import Document, Element, shown

_LINK_PARTS = frozenset(("inertial", "visual", "collision"))
_LINK_IRRELEVANT = frozenset(("material", "gazebo", "sensor", "contact", "self_collision_checking"))
_INERTIAL_PARTS = frozenset(("origin", "mass", "inertia"))

Rgba = tuple[float, float, float, float]


def read_link(document: Document, element: Element, colours: Colours) -> Link:
    """Read ``<link>``; shapes that cannot be read are left out with a warning."""
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
                document.warn_at(child, "<inertial> is given twice; the first is read")
        elif tag in {"visual", "collision"}:
            try:
                shapes.append(_shape(document, child, source.element, colours))
            except DescriptionError as error:  # shapes do not change the dynamics
                document.warn_at(child, f"this <{tag}> is left out: {error.message}", f"bad {tag}")
        elif tag not in _LINK_IRRELEVANT:
            document.unknown(child, _LINK_PARTS)
    return Link(name, inertial, source, tuple(shapes))


def changed_link(link: Link, change: Link) -> Link:
    """A link with an extension's changes: its inertial is replaced, its shapes are added."""
    return replace(
        link, inertial=change.inertial or link.inertial, shapes=(*link.shapes, *change.shapes)
    )


def _inertial(document: Document, element: Element, label: str) -> Inertial:
    parts = document.parts(element, _INERTIAL_PARTS)
    mass = parts.get("mass")
    if mass is None:
        raise document.error(element, '<inertial> has no <mass value="..."/>')
    weight = read(document, mass, MASS)
    inertia = parts.get("inertia")
    if inertia is None:
        raise document.error(
            element, '<inertial> has no <inertia>; a point mass has ixx="0", ixy="0", ... izz="0"'
        )
    values = read(document, inertia, INERTIA)
    xx, xy, xz, yy, yz, zz = (values[each.field] for each in INERTIA.attributes)
    origin, source = read_origin(document, parts.get("origin")), document.source(element, label)
    return Inertial(weight["mass"], (xx, xy, xz, yy, yz, zz), origin, source)


def add_link(root: Element, link: Link, colours: dict[Rgba, str]) -> None:
    """Append ``<link>``; ``colours`` maps the colours written before to their names."""
    element = add(root, "link", name=link.name)
    if (inertial := link.inertial) is not None:
        part = add(element, "inertial")
        add_origin(part, inertial.origin)
        write(add(part, MASS.tag), MASS, inertial)
        moments = zip(INERTIA.attributes, inertial.inertia, strict=True)
        add(part, "inertia", **{each.name: number(value) for each, value in moments})
    common = _common_friction(link)
    for shape in link.shapes:
        _add_shape(element, shape, colours, friction=common is None)


def add_link_friction(root: Element, link: Link) -> None:
    """Append ``<gazebo reference>`` with the friction that all shapes of a link share."""
    if (friction := _common_friction(link)) is not None:
        element = add(root, "gazebo", reference=link.name)
        for tag in ("mu1", "mu2"):
            add_text(element, tag, number(friction))


def _common_friction(link: Link) -> float | None:
    """The friction of all of a link's collision shapes; None if they differ."""
    values = {shape.friction for shape in link.shapes if shape.role == "collision"}
    return values.pop() if len(values) == 1 else None


# --- shapes ---------------------------------------------------------------------------------------


class Colours(dict[str, Rgba]):
    """The colours of materials by name: of the robot, and of the links read so far."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        for material in document.root.iterfind("material"):
            if (color := material.find("color")) is not None:
                with suppress(DescriptionError):
                    self[material.get("name", "")] = document.quadruple(color, "rgba")

    def of(self, document: Document, material: Element | None) -> Rgba | None:
        """A shape's colour; a colour with a name is stored under it."""
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
    visual = element.tag == "visual"
    return Shape(
        "visual" if visual else "collision",
        kind,
        size,
        read_origin(document, element.find("origin")),
        file,
        element.get("name", ""),
        colours.of(document, element.find("material")),
        document.source(element, label),
        **({} if visual else read(document, element.find("surface"), SURFACE)),
    )


def _geometry(
    document: Document, element: Element
) -> tuple[ShapeKind, tuple[float, ...], str | None]:
    """Kind, size and file of a shape; Drake's capsule and ellipsoid have a prefix."""
    for shape in element:
        kind = cast(ShapeKind, shape.tag.rpartition("}")[2])
        if kind == "mesh":
            scale = document.vector(shape, "scale", (1.0, 1.0, 1.0))
            return kind, scale, document.text(shape, "filename")
        if kind not in SIZES:
            continue
        size: list[float] = []
        for name, count in SIZES[kind].urdf.items():
            size += document.vector(shape, name) if count > 1 else (document.number(shape, name),)
        if min(size, default=0.0) < 0.0:
            raise document.error(shape, f"the size of the <{shown(shape)}> is negative")
        return kind, tuple(size), None
    raise document.error(element, f"its <geometry> holds none of {', '.join(SIZES)}, mesh")


def _add_shape(link: Element, shape: Shape, colours: dict[Rgba, str], *, friction: bool) -> None:
    """Append ``<visual>`` or ``<collision>``, with ``friction`` unless the link states it."""
    element = add(link, shape.role, **({"name": shape.name} if shape.name else {}))
    add_origin(element, shape.origin)
    geometry = add(add(element, "geometry"), shape.kind)
    if shape.kind == "mesh":
        geometry.set("filename", shape.file or "")
        if shape.size != (1.0, 1.0, 1.0):
            geometry.set("scale", numbers(shape.size))
    else:
        size = iter(shape.size)
        for name, count in SIZES[shape.kind].urdf.items():
            geometry.set(name, numbers(next(size) for _ in range(count)))
    if shape.rgba is not None:
        name = colours.setdefault(shape.rgba, f"colour_{len(colours) + 1}")
        add(add(element, "material", name=name), "color", rgba=numbers(shape.rgba))
    surface = shape if friction else replace(shape, friction=None)
    add_numbers(element, SURFACE, surface)
