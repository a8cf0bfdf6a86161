"""Inertials that a file leaves out, computed from the links' shapes. Description in, out.

Shapes are solid and of one density; where two of a link overlap, both count.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Literal, get_args

from robomodel.description import Description, Inertial, Link, Pose, Shape
from robomodel.description import inertias as masses
from robomodel.description.meshes import load_mesh, mesh_path
from robomodel.description.poses import vec
from robomodel.errors import DescriptionError, Issue, warn_of_all
from robomodel.files import Allowance

__all__ = ["Role", "load_mesh", "mesh_path", "solid", "with_inertias"]

Role = Literal["collision", "visual"]


def with_inertias(
    description: Description, role: Role, *, density: float = 1000.0, strict: bool = False
) -> Description:
    """The description with an inertial on each link that has shapes of this role and none itself.

    ``density`` [kg/m³] is that of all shapes. A mesh that is not watertight counts as its convex
    hull, which is warned of, as is a link whose shapes enclose nothing. Meshes are looked for at
    their path beside the file that names them, and those of ``package://NAME/...`` in a folder NAME
    that holds that file.

    Raises :class:`robomodel.DescriptionError` for meshes that are not there or cannot be read,
    ValueError for another role and a density that is not positive.
    """
    if role not in get_args(Role):
        raise ValueError(f"inertia_from is 'collision' or 'visual', got {role!r}")
    if not 0.0 < density < math.inf:
        raise ValueError(f"density needs a positive number [kg/m³], got {density!r}")
    issues: list[Issue] = []
    allowance = Allowance()

    def with_inertial(link: Link) -> Link:
        shapes = [shape for shape in link.shapes if shape.role == role]
        if link.inertial is not None or not shapes:
            return link
        return replace(link, inertial=_inertial(link, shapes, density, issues, allowance))

    links = tuple(map(with_inertial, description.links))
    warn_of_all(issues, strict=strict)
    return replace(description, links=links)


def _inertial(
    link: Link, shapes: list[Shape], density: float, issues: list[Issue], allowance: Allowance
) -> Inertial | None:
    """The inertial of a link that consists of these shapes."""
    parts = [solid(shape, issues, allowance) for shape in shapes]
    whole = reduce(
        add, (masses.placed(part, shape.origin) for part, shape in zip(parts, shapes, strict=True))
    )
    if not whole.mass:
        issues.append(
            Issue("its shapes enclose nothing, so it stays without mass", link.source, "hollow")
        )
        return None
    return masses.scaled(masses.inertial_of(whole, link.source), density)


# ---- solids of density 1 -------------------------------------------------------------------------


def solid(shape: Shape, issues: list[Issue], allowance: Allowance | None = None) -> Inertial:
    """A shape's mass and its inertia about its centre of mass, at a density of 1 kg/m³.

    ``allowance``: what is left to read of the robot's meshes.
    """
    match shape.kind:
        case "box":
            x, y, z = shape.size
            m = x * y * z
            return _about_centre(
                m, (y * y + z * z) / 12, (x * x + z * z) / 12, (x * x + y * y) / 12
            )
        case "sphere":
            (r,) = shape.size
            return _ellipsoid(r, r, r)
        case "ellipsoid":
            a, b, c = shape.size
            return _ellipsoid(a, b, c)
        case "cylinder":
            r, length = shape.size
            return _cylinder(r, length)
        case "capsule":
            r, length = shape.size
            tube, ball = _cylinder(r, length), _ellipsoid(r, r, r)
            # each half of the ball is a hemisphere, whose centre of mass is at 3/8 r from its face
            away = ball.mass * (length * length / 4 + 3 * length * r / 8)
            across = tube.inertia[0] + ball.inertia[0] + away
            along = tube.inertia[5] + ball.inertia[5]
            return Inertial(tube.mass + ball.mass, (across, 0.0, 0.0, across, 0.0, along))
        case "mesh":
            return _mesh(shape, issues, allowance)
        case _:
            return Inertial(0.0, (0.0,) * 6)  # a plane encloses nothing


def _about_centre(mass: float, xx: float, yy: float, zz: float) -> Inertial:
    """From the squared radii of gyration."""
    return Inertial(mass, (mass * xx, 0.0, 0.0, mass * yy, 0.0, mass * zz))


def _ellipsoid(a: float, b: float, c: float) -> Inertial:
    mass = 4 / 3 * math.pi * a * b * c
    return _about_centre(mass, (b * b + c * c) / 5, (a * a + c * c) / 5, (a * a + b * b) / 5)


def _cylinder(r: float, length: float) -> Inertial:
    across = (3 * r * r + length * length) / 12
    return _about_centre(math.pi * r * r * length, across, across, r * r / 2)


def _mesh(shape: Shape, issues: list[Issue], allowance: Allowance | None) -> Inertial:
    """The solid that a mesh encloses; its convex hull if the mesh has holes."""
    mesh = load_mesh(shape, allowance)
    if not (mesh.is_watertight and mesh.is_winding_consistent):
        issues.append(
            Issue(
                f"the mesh '{shape.file}' is not watertight; its convex hull stands for it",
                shape.source,
                "not watertight",
            )
        )
        try:
            mesh = mesh.convex_hull
        except Exception as error:  # whatever Qhull says of flat and empty meshes
            raise DescriptionError(
                f"the mesh '{shape.file}' encloses no volume", shape.source
            ) from error
    if mesh.volume < 0.0:
        mesh.invert()
    properties = mesh.mass_properties
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = properties.inertia.tolist()
    centre = Pose(vec(properties.center_mass))
    return Inertial(float(properties.mass), (xx, xy, xz, yy, yz, zz), centre)
