"""The content of a robot file: links, joints, loops, couplings, each with its line.

A description is independent of formats: parsers create it, writers write it, :mod:`robomodel.model`
makes a model of it. Poses are the file's: ``xyz`` in metres and ``rpy`` as URDF defines them
(fixed-axis roll, pitch, yaw: R = Rz(yaw) Ry(pitch) Rx(roll)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from robomodel.errors import NOWHERE, Source, as_real
from robomodel.spatial import UNIT

Vec3 = tuple[float, float, float]
Rows3 = tuple[Vec3, Vec3, Vec3]

JointType = Literal[
    "revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical", "screw"
]
LoopType = Literal[
    "revolute", "continuous", "prismatic", "planar", "fixed", "spherical", "universal", "rod"
]

ShapeKind = Literal["box", "sphere", "cylinder", "capsule", "ellipsoid", "plane", "mesh"]

ONE_DOF = frozenset(("revolute", "continuous", "prismatic", "screw"))
"""The joint types with exactly one degree of freedom, which couplings and mimics can relate."""

LOOP_COORDINATES = frozenset(("revolute", "continuous", "prismatic"))
"""The loop types that leave one coordinate, on which damping, friction and a spring may act."""

MAX_TOLERANCE = 0.1
"""The largest tolerance of a loop [m, rad]: a larger gap is not due to rounding."""

FREEDOMS = {"fixed": 0, "floating": 6, "planar": 3, "spherical": 3} | dict.fromkeys(ONE_DOF, 1)
"""The number of degrees of freedom of each joint type."""

IDENTITY: Rows3 = UNIT

GRAVITY: Vec3 = (0.0, 0.0, -9.81)
"""The gravity of files without one [m/s²]."""


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Rows3:
    """Rotation matrix (rows) of URDF's roll, pitch, yaw; exact at multiples of a right angle.

    Files write right angles as 1.5708 or 1.5707963; only a double nearest to the right angle is
    snapped, so no angle of a file is altered.
    """
    sr, cr = _sincos(roll)
    sp, cp = _sincos(pitch)
    sy, cy = _sincos(yaw)
    return (
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    )


def _sincos(angle: float) -> tuple[float, float]:
    # math.cos(pi/2) is 6e-17, the rounding error of the angle; exact zeros give sparser programs.
    if angle == 0.0:
        return 0.0, 1.0
    quarter = round(angle / (math.pi / 2))
    if abs(angle - quarter * (math.pi / 2)) <= 4e-16 * max(1.0, abs(angle)):
        return ((0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0))[quarter % 4]
    return math.sin(angle), math.cos(angle)


@dataclass(frozen=True, slots=True)
class Pose:
    """A placement: rotation matrix (rows) and translation of a frame in another one."""

    xyz: Vec3 = (0.0, 0.0, 0.0)
    rotation: Rows3 = IDENTITY

    @staticmethod
    def from_rpy(xyz: Vec3, rpy: Vec3) -> Pose:
        """The pose of an ``<origin xyz rpy>``."""
        return Pose(xyz, IDENTITY if rpy == (0.0, 0.0, 0.0) else rotation_from_rpy(*rpy))


AT_ORIGIN = Pose()


@dataclass(frozen=True, slots=True)
class Inertial:
    """Mass [kg] and the inertia [kg m²] about the centre of mass, in the axes of ``origin``.

    ``inertia`` is (ixx, ixy, ixz, iyy, iyz, izz); ``origin`` places the centre in the link.
    """

    mass: float
    inertia: tuple[float, float, float, float, float, float]
    origin: Pose = AT_ORIGIN
    source: Source = field(default=NOWHERE, repr=False)


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape on a link, for display (``visual``) or contact (``collision``).

    ``size`` [m]: box: whole lengths along x, y, z; sphere: radius; cylinder and capsule: radius and
    length along z (a capsule's without its caps); ellipsoid: three radii; plane: nothing, its
    normal is z; mesh: the scale along x, y, z of what ``file`` holds. ``file`` is as written;
    ``package`` is the folder of the package that it names, where that was looked up. ``friction``,
    Coulomb's coefficient, and ``restitution``, Newton's, are None where a file gives none.
    """

    role: Literal["visual", "collision"]
    kind: ShapeKind
    size: tuple[float, ...] = ()
    origin: Pose = AT_ORIGIN
    file: str | None = None
    name: str = ""
    rgba: tuple[float, float, float, float] | None = None
    source: Source = field(default=NOWHERE, repr=False)
    package: str = ""
    friction: float | None = None
    restitution: float | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A rigid link; massless without ``inertial``. Shapes have no effect on dynamics."""

    name: str
    inertial: Inertial | None = None
    source: Source = field(default=NOWHERE, repr=False)
    shapes: tuple[Shape, ...] = ()


def least(most: float, lower: float | None) -> float:
    """The least value of what is limited to -``most`` to ``most``, unless ``lower`` is given."""
    return -most if lower is None else lower


def pushes(most: float, lower: float | None) -> bool:
    """True if a limit of effort tells of a motor: it is given, and not zero both ways."""
    return least(most, lower) < most < math.inf


@dataclass(frozen=True, slots=True)
class Limits:
    """Joint limits; infinite where a file gives none.

    ``velocity_lower`` and ``effort_lower`` are the least velocity and effort, zero or negative, of
    drives that are not the same both ways, as cylinders are (None: -``velocity``, -``effort``).
    """

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf
    velocity_lower: float | None = None
    effort_lower: float | None = None

    @property
    def least_velocity(self) -> float:
        """The least velocity: ``velocity_lower``, or -``velocity``."""
        return least(self.velocity, self.velocity_lower)

    @property
    def least_effort(self) -> float:
        """The least effort: ``effort_lower``, or -``effort``."""
        return least(self.effort, self.effort_lower)

    @property
    def pushes(self) -> bool:
        """True if the limit of effort tells of a motor."""
        return pushes(self.effort, self.effort_lower)

    @property
    def speeds(self) -> tuple[float, float | None]:
        """``velocity`` and ``velocity_lower``; those of no limit if both ways are zero.

        Zero is a placeholder, as exporters of CAD programs write it.
        """
        idle = self.velocity == self.least_velocity == 0.0
        return (math.inf, None) if idle else (self.velocity, self.velocity_lower)


@dataclass(frozen=True, slots=True)
class Mimic:
    """The mimicking joint's position = multiplier · position of ``joint`` + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Rotor:
    """The rotating part of the motor that drives a joint.

    Attributes:
        inertia: Moment of inertia about its axis [kg m²].
        ratio: Its angle per unit of the joint's motion; None if the transmission gives it.
        mass: Mass at the joint's origin [kg].
        transverse: Moment of inertia about either other axis [kg m²].
        source: Its location in a file.
        damping: Of its bearing, at the rotor's speed [N m s/rad].
        friction: Of its bearing [N m].
        link: The link that is the rotor, fixed to the joint's parent; its inertial is then the
            rotor's, and ``inertia``, ``mass`` and ``transverse`` are left out.
        efficiency: Share of the power through the gear's mesh that arrives while the motor drives
            the joint.
        backdrive: The same while the joint drives the motor; None: 2 - 1/``efficiency``. Zero or
            less is self-locking.
    """

    inertia: float = 0.0
    ratio: float | None = None
    mass: float = 0.0
    transverse: float = 0.0
    source: Source = field(default=NOWHERE, repr=False)
    damping: float = 0.0
    friction: float = 0.0
    link: str = ""
    efficiency: float = 1.0
    backdrive: float | None = None

    def __post_init__(self) -> None:
        for name in (
            "inertia", "ratio", "mass", "transverse", "damping", "friction", "efficiency",
            "backdrive",
        ):  # fmt: skip
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_real(value, f"a rotor's {name}"))


@dataclass(frozen=True, slots=True)
class Motor:
    """The capabilities of a motor at its shaft: limits, torque-speed curve, DC motor constants.

    ``effort`` [N m or N] and ``velocity`` [rad/s or m/s] are infinite by default; ``effort_lower``
    and ``velocity_lower`` are those the other way, zero or negative (None: the same).
    The curve falls linearly from ``stall_torque`` at rest to zero at ``no_load_speed``; a DC motor
    has the same by ``torque_constant`` [N m/A], ``resistance`` [Ω] and ``voltage`` [V], and its
    ``current`` [A] limits the torque.
    """

    effort: float = math.inf
    velocity: float = math.inf
    stall_torque: float | None = None
    no_load_speed: float | None = None
    torque_constant: float | None = None
    resistance: float | None = None
    voltage: float | None = None
    current: float = math.inf
    source: Source = field(default=NOWHERE, repr=False)
    effort_lower: float | None = None
    velocity_lower: float | None = None

    @property
    def least_effort(self) -> float:
        """The least effort: ``effort_lower``, or -``effort``."""
        return least(self.effort, self.effort_lower)

    @property
    def least_velocity(self) -> float:
        """The least velocity: ``velocity_lower``, or -``velocity``."""
        return least(self.velocity, self.velocity_lower)

    @property
    def at_rest(self) -> tuple[float, float]:
        """The least and the greatest force at rest, by the limits, the curve and the current."""
        by_current = self.torque_constant * self.current if self.torque_constant else math.inf
        most = min(by_current, math.inf if self.stall is None else self.stall)
        return max(self.least_effort, -most), min(self.effort, most)

    @property
    def stall(self) -> float | None:
        """Stall torque: the attribute, or k V / R."""
        if self.stall_torque is not None or self.voltage is None:
            return self.stall_torque
        assert self.torque_constant
        assert self.resistance
        return self.torque_constant * self.voltage / self.resistance

    @property
    def free_speed(self) -> float | None:
        """No-load speed: the attribute, or V / k."""
        if self.no_load_speed is not None or self.voltage is None:
            return self.no_load_speed
        assert self.torque_constant
        return self.voltage / self.torque_constant


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint of the tree. ``origin`` places the child's frame in the parent's at position zero.

    ``axis`` is in the child's frame and need not be a unit vector here. ``independent`` is None
    where the file has none, one value for the joint or one for each of its freedoms. ``pitch``
    (screw only) is metres per radian. ``initial`` is where loop closing starts from, and
    ``initial_pose`` that of floating joints. ``damping`` and dry ``friction`` resist each of its
    velocities; a spring of ``stiffness`` pulls it to ``reference`` (joints of one degree of
    freedom, and spherical ones, whose reference is zero);
    within half its ``deadband``, the width of its play, it does nothing.
    ``motor`` drives the joint, at the shaft of its rotor where it has one.
    ``damping_reverse`` and ``friction_reverse`` are those at negative velocity (None: the same);
    ``static_friction`` is the friction at rest (None: ``friction``), from which it falls with
    velocity v as exp(-(v/``stribeck_velocity``)²); ``bias`` a constant force that resists as
    friction at positive velocity does; ``delay`` [s] that of measured forces behind the motion.
    ``armature`` [kg m² or kg] is an inertia about (along) each of its freedoms that resists the
    joint's own motion only, as in simulators; it approximates a geared rotor. ``rotor`` is used by
    readers only: :func:`robomodel.parsers.read` replaces it by a link and a coupling.
    """

    name: str
    type: JointType
    parent: str
    child: str
    origin: Pose = AT_ORIGIN
    axis: Vec3 = (1.0, 0.0, 0.0)
    limits: Limits = Limits()
    mimic: Mimic | None = None
    independent: bool | tuple[bool, ...] | None = None
    damping: float = 0.0
    friction: float = 0.0
    pitch: float = 0.0
    initial: float | None = None
    source: Source = field(default=NOWHERE, repr=False)
    armature: float = 0.0
    rotor: Rotor | None = None
    stiffness: float = 0.0
    reference: float = 0.0
    motor: Motor | None = None
    deadband: float = 0.0
    damping_reverse: float | None = None
    friction_reverse: float | None = None
    static_friction: float | None = None
    stribeck_velocity: float = 0.0
    bias: float = 0.0
    delay: float = 0.0
    initial_pose: Pose = AT_ORIGIN


@dataclass(frozen=True, slots=True)
class Anchor:
    """One end of a loop: a constraint frame placed in a link."""

    link: str
    origin: Pose = AT_ORIGIN


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop joint, which allows the motion of its type between the frames of its two anchors.

    ``axis`` is in the constraint frame (of both anchors); ``axis2`` (universal only) is the second
    axis, in the successor's constraint frame. ``length`` (rod only) is None for "the distance at
    the zero configuration". Where its type leaves one coordinate (revolute, continuous, prismatic:
    the successor's motion in the predecessor, zero where their frames meet), ``damping``,
    ``friction``, ``stiffness``, ``reference`` and ``deadband`` act on it as on a joint.
    ``tolerance`` [m, rad]:
    how far it may stay open where it closes best; None for what rounding in a file explains.
    ``added``: not the file's, but a lock of a rod's spin.
    """

    name: str
    type: LoopType
    predecessor: Anchor
    successor: Anchor
    axis: Vec3 = (1.0, 0.0, 0.0)
    axis2: Vec3 | None = None
    length: float | None = None
    source: Source = field(default=NOWHERE, repr=False)
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    reference: float = 0.0
    tolerance: float | None = None
    deadband: float = 0.0
    added: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Spring:
    """A linear spring and damper between two points of two links.

    It pulls them together with stiffness · (distance - length) + damping · (its rate) [N].
    ``length`` [m] is None for "the distance at the zero configuration"; zero is a spring that is
    slack only where its ends meet.
    """

    name: str
    predecessor: Anchor
    successor: Anchor
    stiffness: float = 0.0
    length: float | None = None
    damping: float = 0.0
    source: Source = field(default=NOWHERE, repr=False)


@dataclass(frozen=True, slots=True)
class JointSpring:
    """A spring, damper and dry friction on Σ ratio · q(joint), over joints of one freedom.

    Its force on the joints is ratio times -stiffness · (Σ - reference) - damping · (rate of Σ),
    and of dry friction at most ``friction``: a cable over pulleys, MJCF's fixed tendon.
    """

    name: str
    terms: tuple[tuple[str, float], ...]
    stiffness: float = 0.0
    reference: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    source: Source = field(default=NOWHERE, repr=False)


@dataclass(frozen=True, slots=True)
class LinkCoupling:
    """ratio · Σ q(common ancestor → predecessor) + offset = Σ q(common ancestor → successor).

    ``efficiency`` and ``backdrive`` as of :class:`Rotor`, if one side is a motor's rotor.
    """

    name: str
    predecessor: str
    successor: str
    ratio: float = 1.0
    offset: float = 0.0
    source: Source = field(default=NOWHERE, repr=False)
    efficiency: float = 1.0
    backdrive: float | None = None


@dataclass(frozen=True, slots=True)
class JointCoupling:
    """Σ ratio · q(joint) = offset, over any joints of one degree of freedom.

    ``efficiency`` and ``backdrive`` as of :class:`Rotor`, if one joint is a motor's rotor.
    """

    name: str
    terms: tuple[tuple[str, float], ...]
    offset: float = 0.0
    source: Source = field(default=NOWHERE, repr=False)
    efficiency: float = 1.0
    backdrive: float | None = None


@dataclass(frozen=True, slots=True)
class PolynomialCoupling:
    """q(joint) = Σ coefficients[i] · q(of)ⁱ, of two joints of one degree of freedom.

    Of two coefficients it is a linear coupling, of more a curve, whatever their values.
    """

    name: str
    joint: str
    of: str
    coefficients: tuple[float, ...]
    source: Source = field(default=NOWHERE, repr=False)

    @property
    def curved(self) -> bool:
        """True if it has powers beyond the first."""
        return len(self.coefficients) > 2

    @property
    def terms(self) -> tuple[tuple[str, float], ...]:
        """Its linear part: Σ factor · q(name) = ``offset``, but for the powers from the second."""
        return (self.joint, 1.0), (self.of, -sum(self.coefficients[1:2]))

    @property
    def offset(self) -> float:
        """The constant coefficient."""
        return self.coefficients[0]


CouplingElement: TypeAlias = LinkCoupling | JointCoupling | PolynomialCoupling


@dataclass(frozen=True, slots=True)
class TransmittedJoint:
    """A joint of a transmission; its reduction (None where the file gives none) and its offset."""

    name: str
    role: str = ""
    reduction: float | None = None
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Actuator:
    """An actuator of a transmission; its reduction (None where the file gives none), its rotor.

    ``gains`` are those of the servo that a simulator's file makes of it: force per position and per
    velocity at its shaft, zeros without one. They have no effect on dynamics. ``efficiency`` and
    ``backdrive`` of its reduction are as those of :class:`Rotor`.
    """

    name: str
    role: str = ""
    reduction: float | None = None
    rotor: Rotor | None = None
    motor: Motor | None = None
    gains: tuple[float, float] = (0.0, 0.0)
    efficiency: float = 1.0
    backdrive: float | None = None


@dataclass(frozen=True, slots=True)
class Transmission:
    """The relation of actuators and joints, which has no effect on dynamics by itself.

    ``type`` is as written, with or without its namespace; for the types, see
    :mod:`robomodel.vocabulary.rotors`.
    """

    name: str
    type: str
    joints: tuple[TransmittedJoint, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    source: Source = field(default=NOWHERE, repr=False)


@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor that a file names; no dynamics uses it, and no writer writes it."""

    name: str
    type: str = ""
    source: Source = field(default=NOWHERE, repr=False)


@dataclass(frozen=True, slots=True)
class Stepping:
    """The time step [s] that a simulator's file asks for.

    ``implicit``: its integrator treats velocity gains of servos implicitly.
    """

    step: float
    implicit: bool = False


@dataclass(frozen=True, slots=True)
class Description:
    """A whole robot in the order of its file; ``gravity`` if the file states it.

    ``format`` is the file's format; URDF+ counts as URDF. ``stepping``: the step of a simulator's
    file, which no motion here uses.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...] = ()
    loops: tuple[Loop, ...] = ()
    couplings: tuple[CouplingElement, ...] = ()
    transmissions: tuple[Transmission, ...] = ()
    source: Source = field(default=NOWHERE, repr=False)
    gravity: Vec3 | None = None
    format: Literal["urdf", "sdf", "mjcf", "usd"] = "urdf"
    springs: tuple[Spring | JointSpring, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    stepping: Stepping | None = None

    @property
    def simulated(self) -> bool:
        """True if the format is a simulator's: there, loops that leave no motion are welds.

        In other formats they are errors.
        """
        return self.format != "urdf"
