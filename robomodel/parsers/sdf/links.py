"""Links of an SDF file, reading and writing: inertials, shapes, simulator settings."""

from __future__ import annotations

import math
from itertools import chain, islice
from typing import Literal, cast

from lxml import etree

from robomodel.description import (
    IDENTITY,
    Inertial,
    Link,
    Pose,
    Rows3,
    Shape,
    ShapeKind,
    Vec3,
)
from robomodel.description.inertias import inertial_of, placed, scaled
from robomodel.description.poses import compose, tidy
from robomodel.description.shapes import solid
from robomodel.parsers.sdf.document import RelativePose, SdfDocument, read_placed, set_custom
from robomodel.parsers.sdf.document import pose as add_pose
from robomodel.parsers.sdf.frames import SdfFrame, SdfFrames, source_of
from robomodel.spatial import NO_INERTIA, matmul
from robomodel.vocabulary.schema import (
    INERTIA,
    SIZES,
    SURFACE,
    Fields,
    Names,
    add_text,
    number,
    numbers,
)
from robomodel.vocabulary.xml import CUSTOM, Element, words

_LINK = frozenset(("pose", "inertial", "gravity", "kinematic", "velocity_decay"))
_LINK_IRRELEVANT = words(
    "collision visual sensor projector audio_sink audio_source battery light particle_emitter "
    "plugin material self_collide enable_wind must_be_base_link gripper contact"
)


def read_link(frames: SdfFrames, link: SdfFrame, grounded: bool) -> Link:
    """Read a link; links fixed to the world need no inertial."""
    document, element = link.document, link.element
    parts = document.parts(element, _LINK, _LINK_IRRELEVANT)
    if not grounded:
        _warn_of_forces(document, element, parts)
    inertial = None
    if "inertial" in parts or not grounded:
        where = RelativePose()
        if "inertial" in parts:
            where = read_placed(document, parts["inertial"])
        inertial = read_inertial(document, element, _stands(frames, link, where, element))
    shapes = []
    for child in element:
        if child.tag in ("visual", "collision"):
            pose = _stands(frames, link, read_placed(document, child), child)
            role = cast(Literal["visual", "collision"], child.tag)
            shapes.append(read_shape(document, child, role, pose))
    known_shapes = tuple(shape for shape in shapes if shape is not None)
    return Link(link.name, inertial, source_of(link), known_shapes)


def _stands(frames: SdfFrames, link: SdfFrame, placed: RelativePose, element: Element) -> Pose:
    """The pose in its link of an element whose pose may be relative to another frame."""
    if not placed.relative_to:
        return placed.pose
    assert link.scope is not None
    named = frames.named(placed.relative_to, link.scope, link.document, element)
    return tidy(compose(frames.pose(link, named), placed.pose))


def _warn_of_forces(document: SdfDocument, link: Element, parts: dict[str, Element]) -> None:
    """Warn of simulator settings of a link that have no effect here."""
    if not document.truth(link, "gravity", True):
        document.warn_at(
            parts["gravity"],
            "gravity is switched off for this link, which is not supported; it acts on it here",
            "gravity off",
        )
    if document.truth(link, "kinematic", False):
        message = "<kinematic> is ignored; the link moves by its dynamics"
        document.warn_at(parts["kinematic"], message, "kinematic")
    decay = parts.get("velocity_decay")
    if decay is not None and any(document.content(each) for each in decay):
        document.warn_at(decay, "<velocity_decay> is not applied", "velocity decay")


# --- inertials ------------------------------------------------------------------------------------

_INERTIAL = frozenset(("mass", "pose", "inertia", "density", "auto_inertia_params"))
_MASS_DEFAULT, _MOMENT_DEFAULT = 1.0, 1.0  # SDF's defaults [kg, kg m²]


def read_inertial(document: SdfDocument, link: Element, pose: Pose) -> Inertial:
    """Read the inertial of a link, whose ``<inertial>`` is at ``pose``.

    A link without ``<inertial>`` gets 1 kg and unit moments of inertia, as in SDF, with a warning.
    """
    element = link.find("inertial")
    if element is None:
        document.warn_at(
            link,
            "the link has no <inertial>, and SDF takes 1 kg and 1 kg m² then; write one (with "
            "<mass>0</mass> and zero moments if there is none)",
            "no inertial",
        )
        one = (_MOMENT_DEFAULT, 0.0, 0.0, _MOMENT_DEFAULT, 0.0, _MOMENT_DEFAULT)
        return Inertial(_MASS_DEFAULT, one, source=document.place(link))
    parts = document.parts(element, _INERTIAL | {"fluid_added_mass"})
    added = parts.get("fluid_added_mass")
    if added is not None and any(document.content(entry) for entry in added):
        document.warn_at(added, "<fluid_added_mass> is not applied", "fluid")
    mass = document.content(parts["mass"]) if "mass" in parts else None
    if mass is not None and mass < 0.0:
        raise document.error(parts["mass"], f"the mass is negative: {mass:g} kg")
    if document.truth_of(element, "auto", False):
        return _from_shapes(document, link, element, mass)
    if mass is None:
        document.warn_at(element, "<inertial> has no <mass>; SDF takes 1 kg then", "no mass")
        mass = _MASS_DEFAULT
    return Inertial(mass, _moments(document, element), pose, document.place(element))


def _moments(
    document: SdfDocument, inertial: Element
) -> tuple[float, float, float, float, float, float]:
    element = inertial.find("inertia")
    parts = {} if element is None else document.parts(element, INERTIA.names)
    missing = [name for name in ("ixx", "iyy", "izz") if name not in parts]
    if missing:
        document.warn_at(
            inertial if element is None else element,
            f"<inertia> has no <{'>, <'.join(missing)}>; SDF takes 1 kg m² then",
            "no moments",
        )
    xx, xy, xz, yy, yz, zz = (
        document.content(parts[name])
        if name in parts
        else (_MOMENT_DEFAULT if name in missing else 0.0)
        for name in (each.name for each in INERTIA.attributes)
    )
    return xx, xy, xz, yy, yz, zz


def _from_shapes(
    document: SdfDocument, link: Element, element: Element, mass: float | None
) -> Inertial:
    """The inertia with ``auto="true"``, from solid collision shapes with their densities.

    A mass in the file scales the whole.
    """
    density = document.value(element, "density", 1000.0)
    total, source = NO_INERTIA, document.place(element)
    for collision in link.iterfind("collision"):
        where = read_placed(document, collision)
        shape = read_shape(document, collision, "collision", where.pose)
        if shape is None or shape.kind in ("mesh", "plane") or where.relative_to:
            raise document.error(
                collision,
                'an inertial with auto="true" is computed from boxes, spheres, cylinders, '
                "capsules and ellipsoids that are placed in their link; write mass and inertia out",
            )
        part = scaled(solid(shape, []), document.value(collision, "density", density))
        total += placed(part, shape.origin)
    if not total.mass:
        raise document.error(
            element,
            'an inertial with auto="true" needs collision shapes; write mass and inertia out',
        )
    whole = inertial_of(total, source)
    return whole if mass is None else scaled(whole, mass / whole.mass)


# --- shapes ---------------------------------------------------------------------------------------


def read_shape(
    document: SdfDocument, element: Element, role: Literal["visual", "collision"], pose: Pose
) -> Shape | None:
    """Read ``<visual>`` or ``<collision>`` at ``pose``; None for kinds that have no record."""
    geometry = element.find("geometry")
    for child in () if geometry is None else geometry:
        file: str | None = None
        size: tuple[float, ...] = ()
        kind = child.tag
        if kind in SIZES:
            sizes = (document.size(child, tag, count) for tag, count in SIZES[kind].sdf.items())
            size = tuple(chain.from_iterable(sizes))
            if (normal := child.find("normal")) is not None:  # of a plane
                turn = _upright(document.three(normal))
                pose = Pose(pose.xyz, matmul(pose.rotation, turn))
        elif kind == "mesh":
            file = document.required(child, "uri")
            scale = child.find("scale")
            size = (1.0, 1.0, 1.0) if scale is None else document.contents(scale, 3)
        else:  # heightmaps, images, polylines
            if role == "collision" and kind != "empty":
                document.warn_at(element, f"<{kind}> is no shape that is kept: nothing touches it")
            continue
        return Shape(
            role,
            cast(ShapeKind, kind),
            size,
            pose,
            file,
            element.get("name", ""),
            _colour(document, element),
            document.place(element),
            **read_surface(document, element),
        )
    return None


_FRICTION = {"ode": ("mu", "mu2"), "bullet": ("friction", "friction2")}  # by engine


def read_surface(document: SdfDocument, element: Element) -> Fields:
    """Read friction and restitution of a ``<collision>``, from ODE's elements or else Bullet's."""
    surface: Fields = {}
    for engine, tags in _FRICTION.items():
        first, second = (element.find(f"surface/friction/{engine}/{tag}") for tag in tags)
        if first is not None:
            surface |= read_friction(document, first, second)
            break
    bounce = element.find("surface/bounce/restitution_coefficient")
    if bounce is not None:
        surface["restitution"] = document.content(bounce)
        if fault := SURFACE.by_name["restitution"].fault(surface["restitution"]):
            raise document.error(bounce, f"<{bounce.tag}> {fault}")
    return surface


def add_surface(element: Element, shape: Shape) -> None:
    """Append ``<surface>`` of a collision; each engine has its own elements for friction."""
    if shape.friction is None and shape.restitution is None:
        return
    surface = etree.SubElement(element, "surface")
    if shape.friction is not None:
        friction = etree.SubElement(surface, "friction")
        for engine, tags in _FRICTION.items():
            part = etree.SubElement(friction, engine)
            for tag in tags:
                add_text(part, tag, number(shape.friction))
    if shape.restitution is not None:
        bounce = etree.SubElement(surface, "bounce")
        add_text(bounce, "restitution_coefficient", number(shape.restitution))


def read_friction(
    document: SdfDocument, first: Element, second: Element | None
) -> dict[str, float]:
    """The friction in ``first``; warns if ``second``, across it, differs.

    An empty element, as old exporters write, and infinite friction count as none: of two surfaces,
    the smaller friction applies.
    """
    if not (first.text or "").strip():
        document.warn_at(first, f"<{first.tag}> is empty and is ignored")
        return {}
    friction = document.content(first, infinite=True)
    if friction == math.inf:
        return {}
    if fault := SURFACE.by_name["friction"].fault(friction):
        raise document.error(first, f"<{first.tag}> {fault}")
    if (
        second is not None
        and (second.text or "").strip()
        and document.content(second, infinite=True) != friction
    ):
        message = f"friction is the same in all directions here; <{first.tag}> counts"
        document.warn_at(second, message)
    return {"friction": friction}


def _upright(normal: Vec3) -> Rows3:
    """The smallest rotation that turns z to the normal of a plane."""
    size = math.hypot(*normal)
    if size == 0.0:
        return IDENTITY
    x, y, z = (n / size for n in normal)
    if x == y == 0.0:
        return IDENTITY if z > 0.0 else ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0))
    k = 1.0 / (1.0 + z)
    return (
        (1.0 - k * x * x, -k * x * y, x),
        (-k * x * y, 1.0 - k * y * y, y),
        (-x, -y, z),
    )


def _colour(document: SdfDocument, element: Element) -> tuple[float, float, float, float] | None:
    """A shape's colour; a collision's, which SDF does not have, is an attribute of this package."""
    attribute = f"{{{CUSTOM}}}rgba"
    if element.get(attribute) is not None:
        return document.quadruple(element, attribute)
    material = element.find("material")
    if material is None:
        return None
    for tag in ("diffuse", "ambient"):
        if (colour := material.find(tag)) is not None:
            count = min(max(len((colour.text or "").split()), 3), 4)
            red, green, blue, *alpha = document.contents(colour, count)
            return red, green, blue, alpha[0] if alpha else 1.0
    return None


def add_inertial(link: Element, inertial: Inertial) -> None:
    """``<inertial>``."""
    element = etree.SubElement(link, "inertial")
    add_pose(element, inertial.origin)
    add_text(element, "mass", number(inertial.mass))
    moments = etree.SubElement(element, "inertia")
    for each, value in zip(INERTIA.attributes, inertial.inertia, strict=True):
        add_text(moments, each.name, number(value))


def add_shape(link: Element, shape: Shape, names: Names) -> None:
    """Append ``<visual>`` or ``<collision>``; SDF has no colour for collisions."""
    element = etree.SubElement(link, shape.role, {"name": names.fresh(shape.name or shape.role)})
    add_pose(element, shape.origin)
    geometry = etree.SubElement(etree.SubElement(element, "geometry"), shape.kind)
    if shape.kind == "mesh":
        add_text(geometry, "uri", shape.file or "")
        if shape.size != (1.0, 1.0, 1.0):
            add_text(geometry, "scale", numbers(shape.size))
    elif shape.kind == "plane":
        add_text(geometry, "normal", "0 0 1")
        add_text(geometry, "size", "1 1")
    else:
        values = iter(shape.size)
        for tag, count in SIZES[shape.kind].sdf.items():
            add_text(geometry, tag, numbers(islice(values, count)))
    add_surface(element, shape)
    if shape.rgba is not None and shape.role == "collision":
        set_custom(element, "rgba", numbers(shape.rgba))
    elif shape.rgba is not None:
        material = etree.SubElement(element, "material")
        for tag in ("ambient", "diffuse"):
            add_text(material, tag, numbers(shape.rgba))
