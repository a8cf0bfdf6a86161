"""Numeric attributes of robot files: each declared once, for reading, writing and documentation.

An :class:`Attribute` is a field of a record of :mod:`robomodel.description` with its unit, default
and bounds, and what files call it. A :class:`Notation` is where a format keeps such numbers:
``<e word="1"/>`` in URDF, ``<e><word>1</word></e>`` in SDF, ``<e><word value="1"/></e>`` of Drake
in URDF, arrays of the compiled model in MJCF. The tables of elements in the documentation are made
from the declarations. Below are also the names, numbers and rotations of writers: as short as reads
back exactly.

To add an attribute, add the field to the record and a line to the declaration; it is then read and
written wherever the element is, with its bounds, and stands in the documentation's table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from lxml import etree

from robomodel.description import IDENTITY, MAX_TOLERANCE, Rows3, Vec3, rotation_from_rpy
from robomodel.vocabulary.xml import Document, Element

LARGEST = 1e308
"""Written in place of infinity, for readers of URDF that require a finite number."""

_BOUNDS: dict[str, tuple[Callable[[float], bool], str]] = {
    "": (lambda value: True, ""),
    "≥ 0": (lambda value: value >= 0.0, "it is not negative"),
    "> 0": (lambda value: value > 0.0, "it is positive"),
    "not 0": (lambda value: value != 0.0, "1 is a direct drive"),
    "> 0, ≤ 1": (lambda value: 0.0 < value <= 1.0, "it is above 0 and at most 1"),
    "≤ 1": (lambda value: -math.inf < value <= 1.0, "it is at most 1"),
    "≤ 0": (lambda value: value <= 0.0, "it is zero or negative"),
    "from 0 to 1": (lambda value: 0.0 <= value <= 1.0, "it is from 0 to 1"),
    "from 0 to 0.1": (lambda value: 0.0 <= value <= MAX_TOLERANCE, "it is from 0 to 0.1 m (rad)"),
}


@dataclass(frozen=True, slots=True)
class Attribute:
    """A numeric attribute of an element.

    Attributes:
        field: Name of the field in the record.
        unit: SI unit, for the documentation.
        meaning: Meaning for the documentation, in Markdown.
        word: Name in files, if it differs from ``field``.
        mjcf: Name in MJCF and in the arrays of MuJoCo's model; empty if MJCF has none.
        bound: One of the keys of ``_BOUNDS``.
        why: Consequence of a value out of bounds, for the message.
        default: Value if the attribute is missing; values equal to it are not written.
        default_text: Default for the documentation, if it is not a number.
        infinite: Whether files may give ``inf``.
        always: Whether to write the value even if it is the default.
        needed: Whether a missing attribute is refused.
    """

    field: str
    unit: str
    meaning: str
    word: str = ""
    mjcf: str = ""
    bound: str = ""
    why: str = ""
    default: float | None = 0.0
    default_text: str | None = None
    infinite: bool = False
    always: bool = False
    needed: bool = False

    @property
    def name(self) -> str:
        """The name in files."""
        return self.word or self.field

    def fault(self, value: float) -> str:
        """The fault of a value, for a message; empty if it is within the bound."""
        accepts, remedy = _BOUNDS[self.bound]
        if accepts(value):
            return ""
        return f"is {value:g}{f', {self.why}' if self.why else ''}; {remedy}"

    def row(self, tag: str = "") -> str:
        """The row of the documentation's table; ``tag``: the element, if it has no other number."""
        kind = f"number{', ' if self.bound == 'not 0' else ' '}{self.bound}".strip()
        shown = self.default_text
        if shown is None:
            shown = "none" if self.default is None else f"{self.default:g}"
            shown = "infinite" if self.default == math.inf else shown
        unit = f", {self.unit}" if self.unit else ""
        name = f"<{tag} {self.name}>" if tag else self.name
        return f"| `{name}` | {kind}{unit} | {shown} | {self.meaning} |"


@dataclass(frozen=True)
class Declaration:
    """An element and its numbers; ``texts``: other attributes; ``unused``: ignored ones."""

    tag: str
    attributes: tuple[Attribute, ...]
    texts: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    by_name: Mapping[str, Attribute] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {each.name: each for each in self.attributes})

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of its numeric attributes in files."""
        return frozenset((*self.by_name, *self.unused))

    @cached_property
    def words(self) -> frozenset[str]:
        """Names of all its attributes in files."""
        return self.names | frozenset(self.texts)

    @cached_property
    def infinite(self) -> frozenset[str]:
        """Names in files of the numbers that may be infinite."""
        return frozenset(each.name for each in self.attributes if each.infinite) | {*self.unused}

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """Names in files of the numbers that are required."""
        return tuple(each.name for each in self.attributes if each.needed)

    @cached_property
    def bounded(self) -> tuple[Attribute, ...]:
        """The numbers that have bounds."""
        return tuple(each for each in self.attributes if each.bound)

    def fault(self, values: Mapping[str, float]) -> str:
        """The first fault of numbers given by fields, for a message; empty if there is none."""
        for each in self.bounded:
            if each.field in values and (fault := each.fault(values[each.field])):
                return f"{each.name} of <{self.tag}> {fault}"
        return ""

    def of(self, record: Any, *, always: bool = True) -> dict[Attribute, float]:
        """The numbers of a record that are written: not at the default, or ``always``."""
        values = {each: getattr(record, each.field, None) for each in self.attributes}
        return {
            each: value
            for each, value in values.items()
            if value is not None and (value != each.default or (always and each.always))
        }

    def rows(self) -> str:
        """The rows of the documentation's table, in Markdown."""
        tag = self.tag if len(self.attributes) == 1 and not self.texts else ""
        return "\n".join(each.row(tag) for each in self.attributes)


# --- notations ------------------------------------------------------------------------------------


Fields: TypeAlias = dict[str, Any]
"""Numbers by the names of a record's fields, to construct it."""


def read(document: Document, element: Element | None, declared: Declaration) -> Fields:
    """The numbers in attributes of an element, by fields of the record; empty if it is None.

    Warns of unknown attributes; raises :class:`robomodel.DescriptionError` for a number out of
    bounds and for a missing one that is required.
    """
    if element is None:
        return {}
    if declared.texts:
        document.expect(element, declared.words)
        numbers = {
            name: document.number(element, name, infinite=name in declared.infinite)
            for name in declared.by_name
            if element.get(name) is not None
        }
    else:
        numbers = document.numbers(element, declared.names, declared.infinite)
    for name in declared.needed:
        if name not in numbers:
            raise document.missing(element, name)
    return checked(document, element, declared, numbers)


def read_contents(document: Document, element: Element | None, declared: Declaration) -> Fields:
    """The numbers in the texts of an element's children, as in SDF, by fields of the record.

    Empty children count as missing, as in SDFormat's own reader.
    """
    if element is None:
        return {}
    parts = document.parts(element, declared.names)
    for name, part in list(parts.items()):
        if name in declared.by_name and not len(part) and not (part.text or "").strip():
            message = f"<{name}> is empty; it is read as if it were not there"
            document.warn_at(part, message, "an empty number")
            del parts[name]
    numbers = {
        name: document.content(part, infinite=name in declared.infinite)
        for name, part in parts.items()
        if name in declared.by_name
    }
    return checked(document, element, declared, numbers)


def read_by(declared: Declaration, number: Callable[[str, float], float]) -> Fields:
    """The numbers of an element by fields; ``number(name, default)`` reads one."""
    return {
        each.field: number(each.name, each.default)
        for each in declared.attributes
        if each.default is not None
    }


def checked(
    document: Document, element: Element, declared: Declaration, numbers: Mapping[str, float]
) -> Fields:
    """Numbers by names in files converted to numbers by fields; raises if one is out of bounds."""
    values = {
        declared.by_name[name].field: value
        for name, value in numbers.items()
        if name in declared.by_name
    }
    if fault := declared.fault(values):
        raise document.error(element, fault)
    return values


def add(parent: Element, tag: str, **attributes: str) -> Element:
    """Append a new element with these attributes."""
    return etree.SubElement(parent, tag, attributes)


def add_text(parent: Element, tag: str, text: str) -> Element:
    """Append a new element with this text."""
    element = etree.SubElement(parent, tag)
    element.text = text
    return element


def text_of(root: Element) -> str:
    """A document as XML text, with declaration and indentation."""
    etree.cleanup_namespaces(root)
    body = etree.tostring(root, pretty_print=True, encoding="unicode")
    return f'<?xml version="1.0"?>\n{body}'


def write(element: Element, declared: Declaration, record: Any) -> None:
    """Write the numbers of a record as attributes of an element."""
    for each, value in declared.of(record).items():
        element.set(each.name, number(min(max(value, -LARGEST), LARGEST)))


def add_numbers(parent: Element, declared: Declaration, record: Any) -> None:
    """Append an element with the numbers of a record, unless all have their defaults."""
    if declared.of(record, always=False):
        write(add(parent, declared.tag), declared, record)


def write_contents(element: Element, declared: Declaration, record: Any) -> None:
    """Write the finite numbers of a record as children of an element, in their texts."""
    for each, value in declared.of(record).items():
        if math.isfinite(value):
            add_text(element, each.name, number(value))


def read_arrays(model: Any, kind: str, row: int, declared: Declaration) -> Fields:
    """The numbers of row ``row`` in the arrays ``kind_*`` of MuJoCo's model, by fields."""
    names = {each.field: f"{kind}_{each.mjcf}" for each in declared.attributes if each.mjcf}
    arrays = {name: getattr(model, array, None) for name, array in names.items()}
    return {name: float(array[row]) for name, array in arrays.items() if array is not None}


def write_mjcf(
    element: Element, declared: Declaration, record: Any, fields: Sequence[str] = ()
) -> None:
    """Write the numbers of a record as attributes by their MJCF names; all, or these fields."""
    for each, value in declared.of(record, always=False).items():
        if each.mjcf and (not fields or each.field in fields):
            element.set(each.mjcf, number(value))


# --- names, numbers and rotations of writers ------------------------------------------------------

_WHOLE = 2**53  # integers below are written without a decimal point


class Names:
    """Names in use; makes unique ones by appending a number, counted from ``first``."""

    def __init__(self, used: Iterable[str] = (), first: int = 2) -> None:
        self.used = set(used)
        self.first = first
        self._counts: dict[str, int] = {}

    def fresh(self, name: str, between: str = "_") -> str:
        """A unique name: ``name``, with a number appended if it is in use. Marks it as used."""
        fresh, count = name, self._counts.get(name, self.first)
        while fresh in self.used:
            fresh = f"{name}{between}{count}"
            count += 1
        self._counts[name] = count
        self.used.add(fresh)
        return fresh


def number(value: float) -> str:
    """The shortest decimal that parses to exactly this value."""
    return str(int(value)) if abs(value) < _WHOLE and value == int(value) else repr(float(value))


def numbers(values: Iterable[float]) -> str:
    """Numbers separated by spaces."""
    return " ".join(map(number, values))


def rpy_of(rotation: Rows3) -> Vec3:
    """The roll, pitch and yaw [rad] of a rotation matrix (rows), as URDF defines them.

    Returns the angles with the fewest digits that give exactly this matrix. If no angles do,
    because the matrix was not computed from angles, the error is its own rounding, about 1e-16.
    """
    if rotation == IDENTITY:
        return (0.0, 0.0, 0.0)
    nearest, least = (0.0, 0.0, 0.0), math.inf
    for angles in _candidates(rotation):
        if (off := difference(rotation_from_rpy(*angles), rotation)) < least:
            nearest, least = angles, off
        if off == 0.0:
            break
    return nearest


def _candidates(rotation: Rows3) -> Iterator[Vec3]:
    """Triples of angles for the matrix, rounded to an increasing number of digits."""
    triples = rpy_triples(rotation)
    for digits in range(1, 18):
        for triple in triples:
            roll, pitch, yaw = (_rounded(angle, digits) for angle in triple)
            yield roll, pitch, yaw


def rpy_triples(rotation: Rows3) -> list[Vec3]:
    """All triples of roll, pitch and yaw [rad] of a rotation matrix (rows), to rounding."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rotation
    yaw, pitch = math.atan2(yx, xx), math.atan2(-zx, math.hypot(xx, yx))
    s, c = math.sin(yaw), math.cos(yaw)
    triples = []
    # Near pitch = ±π/2, zy and zz are rounding errors; the matrix without its yaw gives the roll.
    for roll in (math.atan2(zy, zz), math.atan2(s * xz - c * yz, c * yy - s * xy)):
        triples.append((roll, pitch, yaw))
        triples.append((_turned(roll), _turned(-pitch), _turned(yaw)))
    return triples


def _rounded(angle: float, digits: int) -> float:
    """The angle rounded to ``digits`` digits; multiples of π/2 stay exact doubles."""
    angle = float(f"{angle:.{digits}g}")
    right = round(angle / (math.pi / 2)) * (math.pi / 2)
    return right if abs(angle - right) <= 4e-16 * max(1.0, abs(angle)) else angle


def _turned(angle: float) -> float:
    """The angle plus half a turn, within [-π, π]."""
    return angle - math.pi if angle > 0.0 else angle + math.pi


def difference(one: Rows3, other: Rows3) -> float:
    """The largest absolute difference of the entries of two rotation matrices."""
    return max(
        abs(a - b) for u, v in zip(one, other, strict=True) for a, b in zip(u, v, strict=True)
    )


# --- declarations ---------------------------------------------------------------------------------

_FORCE = "N m or N"
_DAMPING = "N m s/rad or N s/m"
_DRIVES = "which would drive the motion"


def _of_one(
    field: str, unit: str, meaning: str, word: str = "value", **options: Any
) -> Declaration:
    """Declare an element with one number, named after the record's field."""
    return Declaration(field, (Attribute(field, unit, meaning, word, needed=True, **options),))


MASS = _of_one("mass", "kg", "mass", bound="≥ 0", default_text="", always=True)

INERTIA = Declaration(
    "inertia",
    tuple(
        Attribute(name, "kg m²", "", default=None, needed=True)
        for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    ),
)

LOWER_LIMITS = (
    Attribute("effort_lower", _FORCE, "the least torque or force, as of a "
              "[cylinder](motors.md#cylinders), which pulls less than it pushes", bound="≤ 0",
              default=None, default_text="−`effort`", infinite=True),
    Attribute("velocity_lower", "rad/s or m/s", "the least velocity", bound="≤ 0", default=None,
              default_text="−`velocity`", infinite=True),
)  # fmt: skip

LIMIT = Declaration(
    "limit",
    (
        Attribute("lower", "rad or m", "lower position limit", default=-math.inf,
                  default_text="infinite", infinite=True, always=True),
        Attribute("upper", "rad or m", "upper position limit", default=math.inf, infinite=True,
                  always=True),
        Attribute("effort", _FORCE, "limit of the joint's torque or force", default=math.inf,
                  infinite=True, always=True),
        Attribute("velocity", "rad/s or m/s", "velocity limit", default=math.inf, infinite=True,
                  always=True),
        *LOWER_LIMITS,
    ),
    unused=("acceleration", "deceleration", "jerk"),
)  # fmt: skip

DYNAMICS = Declaration(
    "dynamics",
    (
        Attribute("damping", _DAMPING, "viscous damping, on each velocity of the joint",
                  mjcf="damping", bound="≥ 0", why=_DRIVES, always=True),
        Attribute("friction", _FORCE, "dry friction", mjcf="frictionloss", bound="≥ 0",
                  why=_DRIVES, always=True),
        Attribute("stiffness", "N m/rad or N/m", "stiffness of a spring at the joint",
                  word="spring_stiffness", mjcf="stiffness", bound="≥ 0", why=_DRIVES),
        Attribute("reference", "rad or m", "position where the spring is at rest",
                  word="spring_reference", mjcf="springref"),
        Attribute("deadband", "rad or m", "width of the spring's [play](#play), within which it "
                  "has no force", word="spring_deadband", bound="≥ 0"),
    ),
)  # fmt: skip
"""``<dynamics>`` of a loop that leaves one coordinate; its words are those of joints, too."""

FRICTION_LAW = (
    Attribute("damping_reverse", _DAMPING, "damping at negative velocity", bound="≥ 0",
              default=None, default_text="the same"),
    Attribute("friction_reverse", _FORCE, "dry friction at negative velocity", bound="≥ 0",
              default=None, default_text="the same"),
    Attribute("static_friction", _FORCE, "friction at rest, from which it falls to `friction` as "
              "exp(−(v/`stribeck_velocity`)²)", bound="≥ 0", default=None,
              default_text="`friction`"),
    Attribute("stribeck_velocity", "rad/s or m/s", "width of this fall", bound="≥ 0"),
    Attribute("bias", _FORCE, "constant force, which resists as friction at positive velocity "
              "does"),
    Attribute("delay", "s", "delay of measured forces behind the motion"),
)  # fmt: skip
JOINT_DYNAMICS = Declaration("dynamics", (*DYNAMICS.attributes, *FRICTION_LAW))
"""``<dynamics>`` of a joint; `identify` finds the words that only joints have, and uses them."""

PITCH = _of_one(
    "pitch", "m/rad", "lead of a [screw joint](#joint-types)", default_text="", always=True
)
INITIAL = _of_one(
    "initial", "rad or m", "[where loop closing starts](#initial-position)", "position",
    default=None, default_text="0",
)  # fmt: skip
ARMATURE = _of_one(
    "armature", "kg m² (kg of a prismatic joint)", "inertia on the joint side of the gear",
    mjcf="armature", bound="≥ 0",
)  # fmt: skip

LOOP = Declaration(
    "loop",
    (
        Attribute("length", "m", "length of a [rod](#rod)", default=None,
                  default_text="distance at position zero"),
        Attribute("tolerance", "m and rad", "how far the loop may stay open", default=None,
                  bound="from 0 to 0.1", default_text="see [below](#tolerance-of-rounded-files)"),
    ),
    texts=("name", "type"),
)  # fmt: skip

SPRING = Declaration(
    "spring",
    (
        Attribute("stiffness", "N/m or N m/rad", "stiffness k", mjcf="stiffness", bound="≥ 0",
                  always=True),
        Attribute("damping", "N s/m or N m s/rad", "damping d", mjcf="damping", bound="≥ 0"),
        Attribute("length", "m", "rest length l of a spring between points", bound="≥ 0",
                  default=None, default_text="distance at position zero"),
        Attribute("reference", "", "rest position r of a spring over joints"),
        Attribute("friction", _FORCE, "dry friction of a spring over joints", mjcf="frictionloss",
                  bound="≥ 0"),
    ),
    texts=("name",),
)  # fmt: skip

_LOSSES = (
    Attribute("efficiency", "", "share of the power through the mesh that arrives while the motor "
              "drives the joint; see [losses](../losses.md)", bound="> 0, ≤ 1", default=1.0),
    Attribute("backdrive", "", "the same while the joint drives the motor; 0 or less is "
              "self-locking", bound="≤ 1", default=None, default_text="2 − 1/`efficiency`"),
)  # fmt: skip

ROTOR = Declaration(
    "rotor",
    (
        Attribute("inertia", "kg m²", "moment of inertia about the rotor's axis, before the gear",
                  default_text=""),
        Attribute("ratio", "", "rotations of the rotor for one rotation of the joint; negative for "
                  "the opposite sense; for a prismatic joint in rad/m", bound="not 0",
                  default=None, default_text="reduction of the joint's "
                  "[simple transmission](#transmissions)"),
        Attribute("mass", "kg", "mass, at the joint's origin", bound="≥ 0"),
        Attribute("transverse", "kg m²", "moment of inertia about the two other axes", bound="≥ 0"),
        Attribute("damping", "N m s/rad", "viscous damping of the rotor's bearing, at the rotor's "
                  "speed", bound="≥ 0"),
        Attribute("friction", "N m", "dry friction of the rotor's bearing", bound="≥ 0"),
        *_LOSSES,
    ),
    texts=("link",),
)  # fmt: skip

MOTOR = Declaration(
    "motor",
    (
        Attribute("effort", _FORCE, "limit of the torque or force; zero of a motor that only "
                  "pulls, with `effort_lower`", bound="≥ 0", default=math.inf, infinite=True),
        Attribute("velocity", "rad/s or m/s", "limit of the velocity", bound="> 0",
                  default=math.inf, infinite=True),
        Attribute("stall_torque", "N m", "torque at rest of the torque-speed curve: the driving "
                  "torque falls linearly to zero at the no-load speed; braking torque does not "
                  "fall", bound="> 0", default=None),
        Attribute("no_load_speed", "rad/s", "where the torque-speed curve is zero", bound="> 0",
                  default=None),
        Attribute("torque_constant", "N m/A", "k of a DC motor", bound="> 0", default=None),
        Attribute("resistance", "Ω", "R of a DC motor", bound="> 0", default=None),
        Attribute("voltage", "V", "gives the torque-speed curve with stall torque k V/R and "
                  "no-load speed V/k", bound="> 0", default=None),
        Attribute("current", "A", "limits the torque to k · `current`", bound="> 0",
                  default=math.inf, infinite=True),
        *LOWER_LIMITS,
    ),
)  # fmt: skip

MIMIC = Declaration(
    "mimic",
    (
        Attribute("multiplier", "", "ratio of the two positions", default=1.0, always=True),
        Attribute("offset", "rad or m", "position where the other joint is at zero", always=True),
    ),
    texts=("joint",),
)  # fmt: skip

COUPLING = Declaration("coupling", _LOSSES, texts=("name", "type"))
REDUCTION = Declaration("mechanicalReduction", _LOSSES)
"""Losses of a transmission's gear, in attributes of its ``<mechanicalReduction>``."""

RATIO = _of_one("ratio", "", "ratio of the two sums, not 0", default=1.0, always=True)
OFFSET = _of_one("offset", "rad or m", "the successor's sum where the predecessor's is zero")
"""``<offset>`` of a coupling."""

SURFACE = Declaration(
    "surface",
    (
        Attribute("friction", "", "coefficient of Coulomb friction", bound="≥ 0", default=None),
        Attribute("restitution", "", "Newton's coefficient of restitution", bound="from 0 to 1",
                  default=None),
    ),
)  # fmt: skip

DECLARATIONS = {
    each.tag: each
    for each in (
        MASS, LIMIT, JOINT_DYNAMICS, PITCH, INITIAL, ARMATURE, LOOP, SPRING, ROTOR, MOTOR, MIMIC,
        RATIO, COUPLING, OFFSET, SURFACE,
    )
}  # fmt: skip
"""The declarations by tag, from which the tables of the documentation are made."""


@dataclass(frozen=True, slots=True)
class ShapeSize:
    """The numbers of a shape's size, in a fixed order.

    ``urdf`` and ``sdf`` map the names of its attributes and elements to how many numbers each
    holds; ``mjcf`` are the factors to MJCF's sizes, where lengths are halves.
    """

    urdf: Mapping[str, int]
    sdf: Mapping[str, int]
    mjcf: tuple[float, ...]


SIZES = {
    "box": ShapeSize({"size": 3}, {"size": 3}, (0.5, 0.5, 0.5)),
    "sphere": ShapeSize({"radius": 1}, {"radius": 1}, (1.0,)),
    "cylinder": ShapeSize({"radius": 1, "length": 1}, {"radius": 1, "length": 1}, (1.0, 0.5)),
    "capsule": ShapeSize({"radius": 1, "length": 1}, {"radius": 1, "length": 1}, (1.0, 0.5)),
    "ellipsoid": ShapeSize({"a": 1, "b": 1, "c": 1}, {"radii": 3}, (1.0, 1.0, 1.0)),
    "plane": ShapeSize({}, {}, ()),
}
"""By the kinds of :class:`robomodel.description.Shape`, except meshes, which have a scale."""
