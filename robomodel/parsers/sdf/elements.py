"""The elements of an SDF file, one small function each: numbers, poses, inertials, shapes, axes.

SDF writes values as the text of elements where URDF has attributes. Frames are not resolved here:
:mod:`robomodel.parsers.sdf.frames` knows where things stand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, cast

from robomodel import masses
from robomodel.description import (
    AT_ORIGIN,
    IDENTITY,
    Inertial,
    Limits,
    Pose,
    Rows3,
    Shape,
    ShapeKind,
    Vec3,
)
from robomodel.errors import Source
from robomodel.parsers.xml import Document, Element, shown, spelled
from robomodel.poses import rotation_of_quaternion
from robomodel.shapes import solid
from robomodel.spatial import NO_INERTIA, matmul

NEWEST = (1, 12)
BALL_CONSTRAINT = "drake:ball_constraint"
CUSTOM = "urn:robomodel"
"""The namespace of what this package says on SDF's elements and other readers pass over."""

_UNIT_TOLERANCE = 1e-3  # files round 0.57735; more than this is a slip
_UNBOUNDED = 1e16  # SDF before 1.10 writes infinity so
_OWNERS = frozenset(("link", "joint", "frame", "model", "include", "world"))


@dataclass(frozen=True, slots=True)
class SdfDocument(Document):
    """A parsed SDF file, and the version that it says it is of."""

    version: tuple[int, int] = NEWEST

    def place(self, element: Element) -> Source:
        """Where ``element`` stands, called after the link, joint, ... that it belongs to."""
        owner: Element | None = element
        while owner is not None and (owner.tag not in _OWNERS or not owner.get("name")):
            owner = owner.getparent()
        label = f"<{shown(element)}>" if owner is None else f"{shown(owner)} '{owner.get('name')}'"
        return self.source(element, label)

    def parts(
        self, element: Element, known: frozenset[str], irrelevant: frozenset[str] = frozenset()
    ) -> dict[str, Element]:
        """The children of ``element`` by tag; what has a prefix is somebody's own.

        Drake's own words have mechanics, so those that are not read are warned of.
        """
        own = {child.tag for child in element if child.tag.startswith("{") and _passed_over(child)}
        return Document.parts(self, element, known, irrelevant | own)

    # ---- values

    def word(self, parent: Element, tag: str) -> str | None:
        """The text of the child ``tag``; None where there is no such child."""
        child = parent.find(tag)
        return None if child is None else (child.text or "").strip()

    def required(self, parent: Element, tag: str) -> str:
        """The text of the child ``tag``, which must be there."""
        text = self.word(parent, tag)
        if not text:
            raise self.error(parent, f"<{shown(parent)}> needs a <{tag}>")
        return text

    def truth(self, parent: Element, tag: str, default: bool) -> bool:
        """True or false, as the child ``tag`` says."""
        child = parent.find(tag)
        return default if child is None else self.as_truth(child, child.text or "")

    def truth_of(self, element: Element, name: str, default: bool) -> bool:
        """True or false, as the attribute ``name`` says."""
        text = element.get(name)
        return default if text is None else self.as_truth(element, text)

    def as_truth(self, element: Element, text: str) -> bool:
        """What the text says, which is true or false."""
        if (word := text.strip().lower()) not in ("true", "false", "1", "0"):
            raise self.error(
                element, f"<{shown(element)}> must say true or false, not {spelled(text)}"
            )
        return word in ("true", "1")

    def value(self, parent: Element, tag: str, default: float = 0.0) -> float:
        """The number that the child ``tag`` holds."""
        child = parent.find(tag)
        return default if child is None else self.content(child)

    def size(self, parent: Element, tag: str, count: int) -> tuple[float, ...]:
        """So many numbers, not negative, that the child ``tag`` must hold."""
        child = parent.find(tag)
        if child is None:
            raise self.error(parent, f"<{shown(parent)}> needs a <{tag}>")
        sizes = self.contents(child, count)
        if min(sizes) < 0.0:
            raise self.error(child, f"the <{tag}> of the <{shown(parent)}> is negative")
        return sizes

    def three(self, element: Element) -> Vec3:
        """Three numbers."""
        x, y, z = self.contents(element, 3)
        return x, y, z


_DRAKE = ("drake:rotor_inertia", "drake:gear_ratio", "drake:mimic")  # are read by themselves


def _passed_over(element: Element) -> bool:
    tag = shown(element)
    return not tag.startswith("drake:") or tag in _DRAKE


# --- poses ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Placed:
    """A pose as written, and the name of the frame that it is relative to ("" for the default)."""

    pose: Pose = AT_ORIGIN
    relative_to: str = ""


_POSE = frozenset(("relative_to", "frame", "degrees", "rotation_format"))


def placed(document: SdfDocument, parent: Element) -> Placed:
    """The ``<pose>`` of an element."""
    element = parent.find("pose")
    if element is None:
        return Placed()
    document.expect(element, _POSE)
    name = element.get("relative_to") or ""
    if not name and (old := element.get("frame")):
        if document.version < (1, 7):
            name = old
        else:
            document.suspect(
                element, "'frame' of <pose> means nothing from SDF 1.7 on; write relative_to"
            )
    return Placed(_pose(document, element), name)


def _pose(document: SdfDocument, element: Element) -> Pose:
    if not (element.text or "").strip():
        return Pose()
    form = element.get("rotation_format", "euler_rpy")
    if form == "quat_xyzw":
        x, y, z, *quaternion = document.contents(element, 7)
        return Pose((x, y, z), _rotation(document, element, quaternion))
    if form != "euler_rpy":
        raise document.error(
            element, f"the rotation_format is {spelled(form)}; known are euler_rpy and quat_xyzw"
        )
    x, y, z, *angles = document.contents(element, 6)
    if document.truth_of(element, "degrees", False):
        angles = [math.radians(angle) for angle in angles]
    return Pose.from_rpy((x, y, z), (angles[0], angles[1], angles[2]))


def _rotation(document: SdfDocument, element: Element, quaternion: list[float]) -> Rows3:
    norm = math.hypot(*quaternion)
    if not 0.0 < norm < math.inf:
        raise document.error(element, "the quaternion is zero; no rotation is '0 0 0 1'")
    if abs(norm - 1.0) > _UNIT_TOLERANCE:
        document.suspect(
            element,
            f"the quaternion has the norm {norm:.6g}; it is normalised",
            "quaternion not of norm 1",
        )
    x, y, z, w = quaternion
    return rotation_of_quaternion(x, y, z, w)


# --- inertials ------------------------------------------------------------------------------------

_INERTIAL = frozenset(("mass", "pose", "inertia", "density", "auto_inertia_params"))
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_MASS_DEFAULT, _MOMENT_DEFAULT = 1.0, 1.0  # what SDF takes where nothing is written


def inertial(document: SdfDocument, link: Element, pose: Pose) -> Inertial:
    """The mass of a link, whose ``<inertial>`` stands at ``pose``.

    SDF gives a link without ``<inertial>`` 1 kg and unit moments of inertia; so does this, and
    warns of it.
    """
    element = link.find("inertial")
    if element is None:
        document.suspect(
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
        document.suspect(added, "<fluid_added_mass> is not applied", "fluid")
    mass = document.content(parts["mass"]) if "mass" in parts else None
    if mass is not None and mass < 0.0:
        raise document.error(parts["mass"], f"the mass is negative: {mass:g} kg")
    if document.truth_of(element, "auto", False):
        return _from_shapes(document, link, element, mass)
    if mass is None:
        document.suspect(element, "<inertial> has no <mass>; SDF takes 1 kg then", "no mass")
        mass = _MASS_DEFAULT
    return Inertial(mass, _moments(document, element), pose, document.place(element))


def _moments(
    document: SdfDocument, inertial: Element
) -> tuple[float, float, float, float, float, float]:
    element = inertial.find("inertia")
    parts = {} if element is None else document.parts(element, frozenset(_MOMENTS))
    missing = [name for name in ("ixx", "iyy", "izz") if name not in parts]
    if missing:
        document.suspect(
            inertial if element is None else element,
            f"<inertia> has no <{'>, <'.join(missing)}>; SDF takes 1 kg m² then",
            "no moments",
        )
    xx, xy, xz, yy, yz, zz = (
        document.content(parts[name])
        if name in parts
        else (_MOMENT_DEFAULT if name in missing else 0.0)
        for name in _MOMENTS
    )
    return xx, xy, xz, yy, yz, zz


def _from_shapes(
    document: SdfDocument, link: Element, element: Element, mass: float | None
) -> Inertial:
    """``auto="true"``: the inertia of the solid collision shapes, of the density given for each.

    A mass that is written scales the whole.
    """
    density = document.value(element, "density", 1000.0)
    total = NO_INERTIA
    for collision in link.iterfind("collision"):
        where = placed(document, collision)
        found = shape(document, collision, "collision", where.pose)
        if found is None or found.kind not in _SOLIDS or where.relative_to:
            raise document.error(
                collision,
                'an inertial with auto="true" is computed from boxes, spheres, cylinders, '
                "capsules and ellipsoids that are placed in their link; write mass and inertia out",
            )
        total += masses.placed(
            _scaled(solid(found, []), document.value(collision, "density", density)), found.origin
        )
    if not total.mass:
        raise document.error(
            element,
            'an inertial with auto="true" needs collision shapes; write mass and inertia out',
        )
    com, ((xx, xy, xz), (_, yy, yz), (_, _, zz)) = masses.centred(total)
    source = document.place(element)
    whole = Inertial(float(total.mass), (xx, xy, xz, yy, yz, zz), Pose(com), source)
    return whole if mass is None else _scaled(whole, mass / whole.mass)


_SOLIDS = frozenset(("box", "sphere", "cylinder", "capsule", "ellipsoid"))


def _scaled(inertial: Inertial, factor: float) -> Inertial:
    """The inertial of a body that is so many times as dense."""
    xx, xy, xz, yy, yz, zz = (factor * moment for moment in inertial.inertia)
    return replace(inertial, mass=factor * inertial.mass, inertia=(xx, xy, xz, yy, yz, zz))


# --- shapes ---------------------------------------------------------------------------------------


def shape(
    document: SdfDocument, element: Element, role: Literal["visual", "collision"], pose: Pose
) -> Shape | None:
    """A ``<visual>`` or ``<collision>`` that stands at ``pose``; None for kinds without a name."""
    geometry = element.find("geometry")
    for child in () if geometry is None else geometry:
        file: str | None = None
        size: tuple[float, ...] = ()
        kind = child.tag
        if kind == "box":
            size = document.size(child, "size", 3)
        elif kind == "sphere":
            size = document.size(child, "radius", 1)
        elif kind in ("cylinder", "capsule"):
            size = document.size(child, "radius", 1) + document.size(child, "length", 1)
        elif kind == "ellipsoid":
            size = document.size(child, "radii", 3)
        elif kind == "plane":
            normal = child.find("normal")
            if normal is not None:
                turn = _upright(document.three(normal))
                pose = Pose(pose.xyz, matmul(pose.rotation, turn))
        elif kind == "mesh":
            file = document.required(child, "uri")
            scale = child.find("scale")
            size = (1.0, 1.0, 1.0) if scale is None else document.contents(scale, 3)
        else:  # heightmaps, images, polylines
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
            "",
            *surface(document, element),
        )
    return None


def surface(document: SdfDocument, element: Element) -> tuple[float | None, float | None]:
    """Friction and restitution of a ``<collision>``, as ODE's words or else Bullet's say them."""
    friction = restitution = None
    for engine, tag, second in (("ode", "mu", "mu2"), ("bullet", "friction", "friction2")):
        words = element.find(f"surface/friction/{engine}")
        if words is None or (mu := words.find(tag)) is None:
            continue
        friction = document.content(mu)
        if friction < 0.0:
            raise document.error(mu, f"the friction {friction:g} is negative")
        other = words.find(second)
        if other is not None and document.content(other) != friction:
            document.suspect(other, f"friction is the same in all directions here; <{tag}> counts")
        break
    bounce = element.find("surface/bounce/restitution_coefficient")
    if bounce is not None:
        restitution = document.content(bounce)
        if not 0.0 <= restitution <= 1.0:
            raise document.error(bounce, f"restitution is from 0 to 1, not {restitution:g}")
    return friction, restitution


def _upright(normal: Vec3) -> Rows3:
    """The smallest rotation that takes z to the normal of a plane."""
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
    """A shape's colour; that of a collision, which has none in SDF, is an attribute of our own."""
    own = f"{{{CUSTOM}}}rgba"
    if element.get(own) is not None:
        return document.quadruple(element, own)
    material = element.find("material")
    if material is None:
        return None
    for tag in ("diffuse", "ambient"):
        if (colour := material.find(tag)) is not None:
            numbers = document.contents(colour, min(max(len((colour.text or "").split()), 3), 4))
            return (*numbers[:3], numbers[3] if len(numbers) > 3 else 1.0)  # type: ignore[return-value]
    return None


# --- axes of joints -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AxisMimic:
    """A ``<mimic>``: position = multiplier (leader − reference) + offset, with b of all constants.

    ``axis2`` says whether the leader is the second axis of its joint.
    """

    joint: str
    axis2: bool
    multiplier: float
    offset: float
    source: Source


@dataclass(frozen=True, slots=True)
class Axis:
    """An ``<axis>`` or ``<axis2>`` as written; ``expressed_in`` is None for the joint's frame."""

    xyz: Vec3
    expressed_in: str | None
    limits: Limits
    damping: float
    friction: float
    initial: float | None
    mimic: AxisMimic | None
    element: Element
    stiffness: float = 0.0
    reference: float = 0.0


_AXIS = frozenset(
    ("xyz", "dynamics", "limit", "mimic", "use_parent_model_frame", "initial_position")
)
_DYNAMICS = frozenset(("damping", "friction", "spring_reference", "spring_stiffness"))
_LIMIT = frozenset(("lower", "upper", "effort", "velocity", "stiffness", "dissipation"))
_MIMIC = frozenset(("multiplier", "offset", "reference"))


def axis(document: SdfDocument, element: Element, *, bounded: bool = True) -> Axis:
    """An ``<axis>``; of one that is not ``bounded`` the position limits mean nothing."""
    parts = document.parts(element, _AXIS)
    xyz, expressed_in = _direction(document, parts)
    damping = friction = stiffness = reference = 0.0
    if "dynamics" in parts:
        dynamics = document.parts(parts["dynamics"], _DYNAMICS)
        damping, friction, reference, stiffness = (
            document.content(dynamics[tag]) if tag in dynamics else 0.0
            for tag in ("damping", "friction", "spring_reference", "spring_stiffness")
        )
    initial = None
    if "initial_position" in parts:
        initial = document.content(parts["initial_position"])
    return Axis(
        xyz,
        expressed_in,
        _limits(document, parts.get("limit"), bounded),
        damping,
        friction,
        initial,
        _mimic(document, parts.get("mimic")),
        element,
        stiffness,
        reference if stiffness else 0.0,
    )


def _direction(document: SdfDocument, parts: dict[str, Element]) -> tuple[Vec3, str | None]:
    """The axis, and the frame that it is written in.

    Up to 1.4 that is the model's frame, from 1.5 the joint's (unless <use_parent_model_frame>
    says the model's), from 1.7 what ``expressed_in`` says.
    """
    element = parts.get("xyz")
    expressed_in: str | None = None
    if document.version < (1, 7):
        in_model = document.version < (1, 5)
        if "use_parent_model_frame" in parts:
            flag = parts["use_parent_model_frame"]
            in_model = document.as_truth(flag, flag.text or "")
        expressed_in = "__model__" if in_model else None
    elif "use_parent_model_frame" in parts:
        document.suspect(
            parts["use_parent_model_frame"],
            "<use_parent_model_frame> means nothing from SDF 1.7 on and is ignored; write "
            '<xyz expressed_in="__model__">',
        )
    if element is None:
        return (0.0, 0.0, 1.0), expressed_in
    if name := element.get("expressed_in"):
        expressed_in = name
    xyz = document.three(element)
    norm = math.hypot(*xyz)
    if not 0.0 < norm < math.inf:
        raise document.error(element, "the axis is zero; give it a direction, as in 0 0 1")
    if abs(norm - 1.0) > _UNIT_TOLERANCE:
        document.suspect(
            element,
            f"the axis has the length {norm:.6g}, not 1; only its direction is used",
            "axis not of length 1",
        )
    return xyz, expressed_in


def _limits(document: SdfDocument, element: Element | None, bounded: bool) -> Limits:
    if element is None:
        return Limits()
    parts = document.parts(element, _LIMIT)
    lower = _limit(document, parts.get("lower"), -math.inf)
    upper = _limit(document, parts.get("upper"), math.inf)
    if not bounded:
        lower, upper = -math.inf, math.inf
    elif lower > upper:
        raise document.error(
            element,
            f"the lower limit {lower:g} is above the upper limit {upper:g}, which is how some "
            "exporters write a joint without limits; leave lower and upper out for that",
        )
    elif lower == math.inf or upper == -math.inf:
        raise document.error(element, "these limits leave no finite position")
    velocity, effort = (
        limit if (limit := _limit(document, parts.get(tag), math.inf)) >= 0.0 else math.inf
        for tag in ("velocity", "effort")
    )
    return Limits(lower, upper, velocity, effort)


def _limit(document: SdfDocument, element: Element | None, default: float) -> float:
    if element is None:
        return default
    text = (element.text or "").strip()
    value = float(text) if text in ("inf", "+inf", "-inf") else document.content(element)
    return value if abs(value) < _UNBOUNDED else math.copysign(math.inf, value)


def _mimic(document: SdfDocument, element: Element | None) -> AxisMimic | None:
    if element is None:
        return None
    document.parts(element, _MIMIC)
    leader = element.get("axis", "axis")
    if leader not in ("axis", "axis2"):
        raise document.error(element, f"axis of <mimic> is axis or axis2, not {spelled(leader)}")
    multiplier = document.value(element, "multiplier", 1.0)
    offset = document.value(element, "offset") - multiplier * document.value(element, "reference")
    joint = document.text(element, "joint")
    return AxisMimic(joint, leader == "axis2", multiplier, offset, document.place(element))


def drake_mimic(document: SdfDocument, joint: Element) -> AxisMimic | None:
    """Drake's ``<drake:mimic joint multiplier offset>`` of a joint; None where there is none."""
    for element in joint:
        if shown(element) == "drake:mimic":
            return AxisMimic(
                document.text(element, "joint"),
                False,
                document.number(element, "multiplier", 1.0),
                document.number(element, "offset", 0.0),
                document.place(element),
            )
    return None


def pitch(document: SdfDocument, element: Element) -> float:
    """Metres per radian. ``thread_pitch`` is in radians per metre, of a left-handed thread."""
    if (new := element.find("screw_thread_pitch")) is not None:
        return document.content(new) / (2.0 * math.pi)
    if (old := element.find("thread_pitch")) is None:
        raise document.error(
            element, "a screw joint needs <screw_thread_pitch>, in metres per revolution"
        )
    if not (turns := document.content(old)):
        raise document.error(
            old,
            "<thread_pitch> is in radians per metre, so it cannot be 0; write "
            "<screw_thread_pitch>, in metres per revolution",
        )
    return -1.0 / turns
