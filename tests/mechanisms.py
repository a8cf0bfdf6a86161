"""Random mechanisms as URDF+ texts, each with one configuration at which all its loops close.

Loops close by construction: links are placed at a random configuration, then the loops' anchors are
put where the loop holds. Every mechanism returned is regular there: its constraints have the rank
it was designed for, with dependent columns and mass matrix well conditioned.

    mechanism = random_mechanism(np.random.default_rng(3), ["four_bar", "gear"])

or, with hypothesis, ``@given(mechanisms())``. ``KINDS`` lists what a mechanism can be made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracle import VELOCITIES, Oracle, default_axis2, independent_rows
from scipy.sparse.csgraph import connected_components

Array = NDArray[np.float64]
Rng = np.random.Generator
ONE_DOF = ("revolute", "continuous", "prismatic")
ROWS = {
    "revolute": 5,
    "continuous": 5,
    "prismatic": 5,
    "planar": 3,
    "fixed": 6,
    "spherical": 3,
    "universal": 4,
    "rod": 1,
}


class MechanismError(RuntimeError):
    """No regular mechanism of the wanted kinds was found."""


@dataclass(frozen=True)
class Mechanism:
    """A URDF+ text and what is known about it.

    ``closed`` holds the position of every joint that moves, by name, at a configuration where all
    loops close: a float, [x y z qx qy qz qw] (floating) or [x, y, theta] (planar). ``mobility``
    counts the independent velocities of the whole robot, six of a floating base included.
    ``independent`` names the joints that the text makes independent, without the base; None where
    the text marks nothing. ``floating_base`` is what to load the text with.
    ``f_ext`` holds wrenches on some links, angular first, in link axes.
    """

    text: str
    closed: dict[str, float | Array]
    mobility: int
    independent: tuple[str, ...] | None
    floating_base: bool
    f_ext: dict[str, Array]
    kinds: tuple[str, ...]

    def oracle(self, names: Sequence[str] | None = None) -> Oracle:
        """The reference for this mechanism, velocities stacked in the order of ``names``."""
        return Oracle(self.text, self.floating_base, names=names)


# --- geometry -----------------------------------------------------------------------------------


def _axis_rotation(axis: Array, angle: float) -> Array:
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * (cross @ cross)


def _rpy_rotation(rpy: Array) -> Array:
    ex, ey, ez = np.eye(3)
    return (
        _axis_rotation(ez, rpy[2]) @ _axis_rotation(ey, rpy[1]) @ _axis_rotation(ex, rpy[0])
    )  # fixed axes: roll first


def _rpy_of(R: Array) -> Array:
    flat = math.hypot(R[0, 0], R[1, 0])
    if flat < 1e-9:
        return np.array([math.atan2(-R[1, 2], R[1, 1]), math.atan2(-R[2, 0], flat), 0.0])
    return np.array(
        [
            math.atan2(R[2, 1], R[2, 2]),
            math.atan2(-R[2, 0], flat),
            math.atan2(R[1, 0], R[0, 0]),
        ]
    )


def _unit(rng: Rng) -> Array:
    u = rng.normal(size=3)
    return u / np.linalg.norm(u)


def _perpendicular(axis: Array, rng: Rng) -> Array:
    u = np.cross(axis, _unit(rng))
    return u / np.linalg.norm(u)


def _frame_along(axis: Array, other: Array) -> Array:
    """Right-handed frame whose first column is ``axis``; ``other`` is perpendicular to it."""
    return np.column_stack((axis, other, np.cross(axis, other)))


def _turning(source: Array, target: Array, rng: Rng) -> Array:
    """A random rotation that takes one unit vector to another."""
    return (
        _frame_along(target, _perpendicular(target, rng))
        @ _frame_along(source, _perpendicular(source, rng)).T
    )


def _right_angled() -> list[Array]:
    """The 24 rotations that map coordinate axes to coordinate axes."""
    columns = [sign * axis for axis in np.eye(3) for sign in (1.0, -1.0)]
    return [_frame_along(x, y) for x in columns for y in columns if x @ y == 0.0]


_RIGHT_ANGLED = _right_angled()


@dataclass
class _Pose:
    R: Array
    p: Array

    def __mul__(self, other: _Pose) -> _Pose:
        return _Pose(self.R @ other.R, self.R @ other.p + self.p)

    def inverse(self) -> _Pose:
        return _Pose(self.R.T, -self.R.T @ self.p)

    def at(self, point: Array) -> Array:
        return self.R @ point + self.p


def _here() -> _Pose:
    return _Pose(np.eye(3), np.zeros(3))


# --- writing ------------------------------------------------------------------------------------


def _text(values: Sequence[float] | Array) -> str:
    return " ".join(repr(float(x)) for x in values)


@dataclass
class _Inertial:
    mass: float
    center: Array
    rpy: Array
    tensor: Array

    def xml(self) -> str:
        xx, xy, xz, yy, yz, zz = (self.tensor[i] for i in zip(*np.triu_indices(3), strict=True))
        return (
            f"    <inertial>\n      {_origin_xml(self.center, self.rpy)}\n"
            f'      <mass value="{self.mass!r}"/>\n'
            f'      <inertia ixx="{float(xx)!r}" ixy="{float(xy)!r}" ixz="{float(xz)!r}" '
            f'iyy="{float(yy)!r}" iyz="{float(yz)!r}" izz="{float(zz)!r}"/>\n    </inertial>\n'
        )


def _origin_xml(xyz: Array, rpy: Array) -> str:
    said = f'xyz="{_text(xyz)}"' if np.any(xyz) else ""
    said += f' rpy="{_text(rpy)}"' if np.any(rpy) else ""
    return f"<origin {said.strip()}/>" if said else ""


@dataclass
class _Joint:
    name: str
    type: str
    parent: str
    child: str
    xyz: Array
    rpy: Array
    axis: Array  # as written, of any length
    position: float | Array
    mimic: str = ""
    mark: bool | None = None

    def xml(self) -> str:
        mark = "" if self.mark is None else f' independent="{str(self.mark).lower()}"'
        lines = [f"  <joint name={quoteattr(self.name)} type={quoteattr(self.type)}{mark}>"]
        lines += [f"    {origin}" for origin in [_origin_xml(self.xyz, self.rpy)] if origin]
        lines.append(f"    <parent link={quoteattr(self.parent)}/>")
        lines.append(f"    <child link={quoteattr(self.child)}/>")
        if self.type in (*ONE_DOF, "planar") and not np.array_equal(self.axis, (1, 0, 0)):
            lines.append(f'    <axis xyz="{_text(self.axis)}"/>')
        if self.type in ("revolute", "prismatic"):
            reach = abs(float(np.asarray(self.position))) + (6.3 if self.type == "revolute" else 2)
            lines.append(
                f'    <limit lower="{-reach!r}" upper="{reach!r}" effort="100" velocity="20"/>'
            )
        lines += [f"    {self.mimic}"] if self.mimic else []
        return "\n".join([*lines, "  </joint>\n"])

    def motion(self, position: float | Array) -> _Pose:
        axis = self.axis / np.linalg.norm(self.axis)
        match self.type:
            case "fixed":
                return _here()
            case "revolute" | "continuous":
                return _Pose(_axis_rotation(axis, float(np.asarray(position))), np.zeros(3))
            case "prismatic":
                return _Pose(np.eye(3), axis * position)
            case "planar":
                x, y, angle = np.asarray(position)
                return _Pose(_axis_rotation(np.array([0.0, 0, 1]), angle), np.array([x, y, 0.0]))
            case "floating":
                at = np.asarray(position)
                x, y, z, w = at[3:]
                cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
                return _Pose(np.eye(3) + 2 * w * cross + 2 * cross @ cross, at[:3])
        raise ValueError(self.type)

    def rest(self) -> float | Array:
        return {"floating": np.array([0, 0, 0, 0, 0, 0, 1.0]), "planar": np.zeros(3)}.get(
            self.type, 0.0
        )


# --- building -----------------------------------------------------------------------------------


@dataclass
class _Builder:
    """A robot that grows: links with their poses at the closed and at the zero configuration."""

    rng: Rng
    aligned: bool  # axes along coordinate axes, rpy in right angles
    special: bool = False  # zeros everywhere: shared origins, axes, centres of mass
    hollow: bool = False  # some links are points, or weigh nothing
    floating_base: bool = False
    links: dict[str, _Inertial | None] = field(default_factory=dict)
    joints: dict[str, _Joint] = field(default_factory=dict)
    extras: list[str] = field(default_factory=list)
    pose: dict[str, _Pose] = field(default_factory=dict)
    rest: dict[str, _Pose] = field(default_factory=dict)
    constrained: set[str] = field(default_factory=set)  # joints under some loop or coupling
    mobility: int = 0
    root: str = ""

    # names, numbers

    def name(self, stem: str) -> str:
        stem = str(self.rng.choice([stem, stem.upper(), stem[0], "knee_" + stem, "left-" + stem]))
        letters = "".join(self.rng.choice(list("abcdefgh"), size=2))
        return f"{stem}_{letters}{len(self.links) + len(self.joints) + len(self.extras)}"

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def ratio(self, low: float = 0.5, high: float = 9.0) -> float:
        size = float(np.exp(self.rng.uniform(math.log(low), math.log(high))))
        size = max(1.0, round(size)) if self.chance(0.3) else size
        return -size if self.chance(0.4) else size

    def angle(self) -> float:
        if self.special and self.chance(0.3):
            return float(self.rng.integers(-1, 2)) * math.pi / 2
        return float(self.rng.uniform(-2.5, 2.5))

    def axis(self) -> Array:
        """A unit axis in a frame."""
        if self.aligned or self.chance(0.3):
            axis = np.zeros(3)
            axis[self.rng.integers(3)] = self.rng.choice([-1.0, 1.0])
            return axis
        return _unit(self.rng)

    def turn(self) -> Array:
        """The rpy of an origin."""
        if self.aligned or self.chance(0.5 if self.special else 0.2):
            if self.chance(0.4):
                return np.zeros(3)
            return self.rng.integers(-2, 3, size=3) * (math.pi / 2)
        return self.rng.uniform(-3, 3, size=3) * (1, 0.5, 1)

    def offset(self, low: float = 0.1, high: float = 0.5) -> Array:
        if self.aligned and self.chance(0.5):
            return self.axis() * round(self.rng.uniform(low, high), 2)
        return _unit(self.rng) * self.rng.uniform(low, high)

    def origin(self) -> Array:
        """Where a joint, or a linkage, stands on its link: at its origin, or a unit away."""
        if self.special and self.chance(0.6):
            return np.zeros(3) if self.chance(0.6) else self.axis()
        return self.offset()

    def turning(self, source: Array, target: Array) -> Array:
        if self.aligned:
            fits = [R for R in _RIGHT_ANGLED if np.allclose(R @ source, target, atol=1e-9)]
            if fits:
                return fits[self.rng.integers(len(fits))]
        return _turning(source, target, self.rng)

    # links and joints

    def inertial(self, *, rotor: bool = False) -> _Inertial:
        mass = round(float(self.rng.uniform(0.1, 0.5) if rotor else self.rng.uniform(0.3, 5)), 4)
        a, b, c = self.rng.uniform(0.03, 0.1, 3) if rotor else self.rng.uniform(0.08, 0.3, 3)
        principal = mass / 3 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
        R = np.eye(3) if self.aligned else _turning(self.axis(), _unit(self.rng), self.rng)
        tensor = (R * principal) @ R.T
        center = self.offset(0.0, 0.05 if rotor else 0.25)
        if self.special:
            center = self.rng.choice([0.0, 1.0], size=3) * center
            tensor = tensor * (not (self.hollow and self.chance(0.25)))
        rpy = np.zeros(3) if self.chance(0.3) else self.turn()
        return _Inertial(mass, center, rpy, (tensor + tensor.T) / 2)

    def add_root(self) -> None:
        self.root = self.name("base")
        self.links[self.root] = self.inertial()
        self.pose[self.root] = self.rest[self.root] = _here()
        self.mobility = 6 if self.floating_base else 0

    def joint(
        self,
        kind: str,
        parent: str,
        *,
        along: Array | None = None,
        at: Array | None = None,
        position: float | None = None,
        rotor: bool = False,
        massless: bool = False,
    ) -> _Joint:
        """A joint with its child link; ``along`` and ``at`` place its axis in the world."""
        place = self.pose[parent]
        axis = np.array([0.0, 0.0, 1.0]) if kind == "planar" else self.axis()
        if along is None:
            rpy = self.turn()
        else:
            sign = -1.0 if self.chance(0.4) else 1.0
            rpy = _rpy_of(self.turning(axis, sign * place.R.T @ along))
        xyz = self.origin() if at is None else place.R.T @ (at - place.p)
        if at is None and self.chance(0.1):
            xyz = np.zeros(3)
        if kind in ONE_DOF and self.chance(0.15):
            axis = axis * 2.0  # a file's axis need not be a unit vector
        closed: float | Array
        if position is not None:
            closed = position
        elif kind == "floating":
            turn = self.rng.normal(size=4)
            closed = np.concatenate((self.offset(), turn / np.linalg.norm(turn)))
        elif kind == "planar":
            closed = np.array([*self.rng.uniform(-0.5, 0.5, 2), self.angle()])
        else:
            closed = {"fixed": 0.0, "prismatic": float(self.rng.uniform(-0.4, 0.4))}.get(
                kind, self.angle()
            )
        child, name = self.name("link"), ""
        bare = massless or (kind == "fixed" and self.chance(0.5))
        bare = bare or (self.hollow and self.chance(0.1))
        self.links[child] = None if bare else self.inertial(rotor=rotor)
        name = self.name("rotor" if rotor else "joint")
        joint = _Joint(name, kind, parent, child, xyz, rpy, axis, closed)
        self.joints[name] = joint
        origin = _Pose(_rpy_rotation(rpy), xyz)
        self.pose[child] = self.pose[parent] * origin * joint.motion(closed)
        self.rest[child] = self.rest[parent] * origin * joint.motion(joint.rest())
        self.mobility += VELOCITIES[kind]
        return joint

    def turning_joint(self) -> str:
        return "continuous" if self.chance(0.3) else "revolute"

    def some_link(self, *, root: float = 0.25) -> str:
        return self.root if self.chance(root) else str(self.rng.choice(list(self.links)))

    def path(self, link: str) -> list[_Joint]:
        """Joints from the root to a link."""
        above = {j.child: j for j in self.joints.values()}
        out = []
        while link in above:
            out.append(above[link])
            link = above[link].parent
        return out[::-1]

    def between(self, first: str, second: str) -> list[_Joint]:
        """Joints on the way between two links."""
        one, two = self.path(first), self.path(second)
        shared = {j.name for j in one} & {j.name for j in two}
        return [j for j in (*one, *two) if j.name not in shared]

    def scalar_joints(self, *, free: bool) -> list[_Joint]:
        """One-degree joints; ``free``: under no constraint yet."""
        return [
            j
            for j in self.joints.values()
            if j.type in ONE_DOF and not (free and j.name in self.constrained)
        ]

    def scalar_joint(self, *, free: bool) -> _Joint:
        """Some one-degree joint, a new one if there is none."""
        found = self.scalar_joints(free=free)
        if not found or self.chance(0.2):
            return self.joint(str(self.rng.choice(ONE_DOF)), self.some_link())
        return found[self.rng.integers(len(found))]

    # constraints

    def loop(
        self,
        kind: str,
        first: str,
        second: str,
        *,
        at: Array,
        along: Array | None = None,
        to: Array | None = None,
        removes: int | None = None,
    ) -> None:
        """A loop that holds at the present poses, its first anchor at the world point ``at``.

        ``along`` is the axis in the world; ``to``, for rods, where the second anchor is (None: a
        point for which the rod's length at the zero configuration is right, and not written).
        ``removes`` is how many degrees of freedom it takes, its number of rows by default.
        """
        if self.chance(0.5) and to is None and kind != "rod":
            first, second = second, first
        rng = self.rng
        axis = self.axis()
        along = _unit(rng) if along is None else along
        place = self.pose[first]
        R1 = place.R @ self.turning(axis, place.R.T @ along)
        R2, point, extra, length = R1, at, "", ""
        axis = axis if rng.random() < 0.8 else axis * 3.0
        unit = axis / np.linalg.norm(axis)
        match kind:
            case "revolute" | "continuous":
                R2 = _axis_rotation(along, self.angle()) @ R1
            case "prismatic":
                point = at + along * rng.uniform(-0.4, 0.4)
            case "planar":
                R2 = _axis_rotation(along, self.angle()) @ R1
                point = at + _perpendicular(along, rng) * rng.uniform(0.0, 0.4)
            case "spherical":
                R2 = self.pose[second].R @ _rpy_rotation(self.turn())
            case "universal":
                other = default_axis2(unit)
                if self.chance(0.5):
                    other = self.axis()
                    extra = (
                        f'    <axis2 xyz="{_text(other * (2.0 if self.chance(0.2) else 1.0))}"/>\n'
                    )
                across = _perpendicular(along, rng)
                if removes is not None:  # planar: either axis may be the normal of the plane
                    across, along = (along, across) if self.chance(0.5) else (across, along)
                    R1 = place.R @ self.turning(unit, place.R.T @ along)
                R2 = _turning(other, across, rng)
            case "rod":
                R2 = self.pose[second].R
                if to is None:
                    to = self._bisecting(first, second, at)
                else:
                    length = f' length="{float(np.linalg.norm(to - at))!r}"'
                point = to
        self._write_loop(kind, first, _Pose(R1, at), second, _Pose(R2, point), axis, extra, length)
        self.constrained |= {j.name for j in self.between(first, second)}
        self.mobility -= ROWS[kind] if removes is None else removes

    def _bisecting(self, first: str, second: str, at: Array) -> Array:
        """A point of ``second`` as far from ``at`` (on ``first``) at the zero configuration."""
        local = self.pose[first].inverse().at(at)
        now = self.pose[second].inverse().at(at)
        zero = self.rest[second].inverse().at(self.rest[first].at(local))
        gap = zero - now
        middle = (now + zero) / 2
        across = _unit(self.rng)
        if np.linalg.norm(gap) > 1e-9:
            across = _perpendicular(gap / np.linalg.norm(gap), self.rng)
        return self.pose[second].at(middle + across * self.rng.uniform(0.2, 0.6))

    def _write_loop(
        self,
        kind: str,
        first: str,
        frame1: _Pose,
        second: str,
        frame2: _Pose,
        axis: Array,
        extra: str,
        length: str,
    ) -> None:
        name = self.name("loop")
        lines = [f'  <loop name="{name}" type="{kind}"{length}>\n']
        for tag, link, frame in (("predecessor", first, frame1), ("successor", second, frame2)):
            local = self.pose[link].inverse() * frame
            rpy = _rpy_of(local.R)
            if kind == "rod" or (kind == "spherical" and self.chance(0.5)):
                rpy = np.zeros(3)
            origin = _origin_xml(local.p, rpy)
            lines.append(f'    <{tag} link="{link}">{origin}</{tag}>\n')
        if kind not in ("rod", "spherical", "fixed") and not np.array_equal(axis, (1, 0, 0)):
            lines.append(f'    <axis xyz="{_text(axis)}"/>\n')
        self.extras.append("".join([*lines, extra, "  </loop>\n"]))

    def couple_links(self, first: str, second: str, ratio: float, offset: float = 0.0) -> None:
        """ratio · Σ q(→ first) + offset = Σ q(→ second)."""
        said = "" if ratio == 1.0 else f'<ratio value="{ratio!r}"/>'
        said += f'<offset value="{offset!r}"/>' if offset else ""
        self.extras.append(
            f'  <coupling name="{self.name("gear")}"><predecessor link="{first}"/>'
            f'<successor link="{second}"/>{said}</coupling>\n'
        )
        self.constrained |= {j.name for j in self.between(first, second)}
        self.mobility -= 1

    def couple_joints(self, terms: Sequence[tuple[_Joint, float]]) -> None:
        """Σ ratio · q = offset, with the offset that holds at the closed configuration."""
        offset = float(sum(r * j.position for j, r in terms))
        said = "".join(
            f"<joint name={quoteattr(j.name)}" + ("/>" if r == 1.0 else f' ratio="{r!r}"/>')
            for j, r in terms
        )
        said += f'<offset value="{offset!r}"/>' if abs(offset) > 1e-15 else ""
        self.extras.append(f'  <coupling name="{self.name("coupling")}">{said}</coupling>\n')
        self.constrained |= {j.name for j, _ in terms}
        self.mobility -= 1

    def mimic(self, follower: _Joint, leader: _Joint, multiplier: float) -> None:
        """Follower = multiplier · leader + what is missing at the closed configuration."""
        offset = float(follower.position - multiplier * leader.position)
        said = "" if multiplier == 1.0 else f' multiplier="{multiplier!r}"'
        said += f' offset="{offset!r}"' if abs(offset) > 1e-15 else ""
        follower.mimic = f"<mimic joint={quoteattr(leader.name)}{said}/>"
        self.constrained |= {follower.name, leader.name}
        self.mobility -= 1

    def text(self) -> str:
        """The URDF+ text, links and joints in any order."""
        links = [
            f"  <link name={quoteattr(n)}" + (f">\n{i.xml()}  </link>\n" if i else "/>\n")
            for n, i in self.links.items()
        ]
        joints = [j.xml() for j in self.joints.values()]
        if self.chance(0.4):
            self.rng.shuffle(links)
            self.rng.shuffle(joints)
        return "".join(['<robot name="mechanism">\n', *links, *joints, *self.extras, "</robot>\n"])


# --- what mechanisms are made of ----------------------------------------------------------------


def _tree(b: _Builder, n: int) -> None:
    """``n`` joints of every type, in chains and branches."""
    types = ["revolute", "continuous", "prismatic", "fixed", "floating", "planar"]
    weights = np.array([0.4, 0.15, 0.2, 0.1, 0.08, 0.07])
    chain = b.rng.uniform(0, 1)
    last = b.root
    for _ in range(n):
        parent = last if b.chance(chain) else b.some_link(root=0.1)
        kind = str(b.rng.choice(types, p=weights))
        if kind == "floating" and parent == b.root and b.floating_base:
            kind = "revolute"  # a floating base and a floating root joint: who is the base?
        last = b.joint(kind, parent).child


def _gear(b: _Builder, joint: _Joint | None = None) -> None:
    """A rotor on any ancestor, geared to the joints between that ancestor and a link."""
    joint = b.scalar_joint(free=b.chance(0.7)) if joint is None else joint
    carriers: list[tuple[str, float]] = []
    turned = 0.0
    for above in reversed(b.path(joint.child)):
        if above.type not in (*ONE_DOF, "fixed"):
            break
        turned += float(above.position)
        carriers.append((above.parent, turned))
    carrier, turned = carriers[0 if b.chance(0.5) else b.rng.integers(len(carriers))]
    ratio = b.ratio()
    kind = "prismatic" if joint.type == "prismatic" and b.chance(0.3) else b.turning_joint()
    offset = float(b.rng.uniform(-1, 1)) if b.chance(0.2) else 0.0
    rotor = b.joint(kind, carrier, position=ratio * turned + offset, rotor=True)
    if b.chance(0.8):
        b.couple_links(joint.child, rotor.child, ratio, offset)
    else:
        b.couple_links(rotor.child, joint.child, 1 / ratio, -offset / ratio)


def _belt(b: _Builder) -> None:
    """Two links in series and two rotors beside them; the second belt drives the sum."""
    carrier = b.some_link()
    kind = b.turning_joint()
    first = b.joint(kind, carrier)
    second = b.joint(kind, first.child)
    for links in ([first], [first, second]):
        ratio = b.ratio()
        turned = ratio * float(sum(j.position for j in links))
        rotor = b.joint(b.turning_joint(), carrier, position=turned, rotor=True)
        if b.chance(0.7):
            b.couple_links(links[-1].child, rotor.child, ratio)
        else:
            b.couple_joints([*((j, ratio) for j in links), (rotor, -1.0)])


def _mimic(b: _Builder) -> None:
    leader = b.scalar_joint(free=False)
    followers = [j for j in b.scalar_joints(free=True) if j.name != leader.name]
    multiplier = b.ratio(0.3, 3.0)
    if followers and b.chance(0.6):
        follower = followers[b.rng.integers(len(followers))]
    else:
        plain = float(multiplier * leader.position) if b.chance(0.5) else None
        follower = b.joint(str(b.rng.choice(ONE_DOF)), b.some_link(), position=plain)
    b.mimic(follower, leader, multiplier)


def _coupling(b: _Builder) -> None:
    """A linear coupling of three joints."""
    found = b.scalar_joints(free=True)
    chosen = [found[i] for i in b.rng.permutation(len(found))[:3]]
    while len(chosen) < 2:
        chosen.append(b.joint(str(b.rng.choice(ONE_DOF)), b.some_link()))
    ratios = [b.ratio(0.3, 3.0) for _ in range(3)]
    if len(chosen) < 3:
        rest = sum(r * j.position for j, r in zip(chosen, ratios, strict=False))
        plain = float(-rest / ratios[2]) if b.chance(0.5) else None
        chosen.append(b.joint(b.turning_joint(), b.some_link(), position=plain))
    b.couple_joints(list(zip(chosen, ratios, strict=True)))


@dataclass
class _Plane:
    """A plane of a linkage, fixed to a link at its present pose."""

    b: _Builder
    ground: str
    origin: Array
    normal: Array
    e1: Array
    e2: Array

    @staticmethod
    def on(b: _Builder, ground: str) -> _Plane:
        place = b.pose[ground]
        normal = place.R @ b.axis()
        e1 = _perpendicular(normal, b.rng)
        return _Plane(b, ground, place.at(b.origin()), normal, e1, np.cross(normal, e1))

    def at(self, x: float, y: float) -> Array:
        return self.origin + x * self.e1 + y * self.e2

    def near(self, point: Array, low: float = 0.2, high: float = 0.7) -> Array:
        angle, size = self.b.rng.uniform(-math.pi, math.pi), self.b.rng.uniform(low, high)
        return point + size * (math.cos(angle) * self.e1 + math.sin(angle) * self.e2)

    def apex(self, first: Array, second: Array) -> Array:
        """A point from which two points are seen at a good angle."""
        for _ in range(200):
            point = self.near((first + second) / 2)
            u, w = first - point, second - point
            sizes = np.linalg.norm(u), np.linalg.norm(w)
            if min(sizes) > 0.15 and max(sizes) < 1.0:
                sine = abs(np.cross(u, w) @ self.normal) / (sizes[0] * sizes[1])
                if sine > 0.45:
                    return point
        raise MechanismError("no good triangle")

    def height(self) -> Array:
        """Nothing in the plane notices where along the normal a thing is."""
        flat = self.b.chance(0.8 if self.b.special else 0.3)
        return self.normal * (0.0 if flat else self.b.rng.uniform(-0.2, 0.2))

    def pivot(self, parent: str, point: Array) -> str:
        at = point + self.height()
        return self.b.joint(self.b.turning_joint(), parent, along=self.normal, at=at).child

    def slider(self, parent: str, direction: Array) -> str:
        at = self.near(self.origin) + self.height()
        return self.b.joint("prismatic", parent, along=direction, at=at).child

    def hinge(self, first: str, second: str, point: Array) -> None:
        """A loop that pins two links, written in one of the ways that mean it in a plane."""
        kind = str(
            self.b.rng.choice(
                ["revolute", "continuous", "spherical", "universal"], p=[0.5, 0.1, 0.25, 0.15]
            )
        )
        at = point + self.height()
        self.b.loop(kind, first, second, at=at, along=self.normal, removes=2)

    def direction(self) -> Array:
        angle = self.b.rng.uniform(-math.pi, math.pi)
        return math.cos(angle) * self.e1 + math.sin(angle) * self.e2


def _four_bar_links(b: _Builder, ground: str | None = None) -> tuple[_Plane, str, str, str]:
    """A planar four-bar; its plane and its crank, coupler and rocker."""
    plane = _Plane.on(b, b.some_link() if ground is None else ground)
    A = plane.origin
    B, D = plane.near(A), plane.near(A, 0.3, 0.8)
    C = plane.apex(B, D)
    crank = plane.pivot(plane.ground, A)
    if b.chance(0.75):
        coupler = plane.pivot(crank, B)
        rocker = plane.pivot(plane.ground, D)
        plane.hinge(coupler, rocker, C)
    else:  # one chain that closes on the ground
        coupler = plane.pivot(crank, B)
        rocker = plane.pivot(coupler, C)
        if b.chance(0.7):
            plane.hinge(rocker, plane.ground, D)
        else:
            last = plane.pivot(rocker, D)
            b.loop("fixed", last, plane.ground, at=plane.near(D), removes=3)
    return plane, crank, coupler, rocker


def _four_bar(b: _Builder) -> None:
    _four_bar_links(b)


def _rod_four_bar(b: _Builder) -> None:
    """Crank and rocker in a plane with a rod between them."""
    plane = _Plane.on(b, b.some_link())
    A = plane.origin
    B, D = plane.near(A), plane.near(A, 0.3, 0.8)
    C = plane.apex(B, D)
    crank, rocker = plane.pivot(plane.ground, A), plane.pivot(plane.ground, D)
    b.loop("rod", crank, rocker, at=B + plane.height(), to=C + plane.height())


def _six_bar(b: _Builder) -> None:
    """A four-bar with a pair of links between two of its links: Watt and Stephenson chains."""
    plane, *links = _four_bar_links(b)
    for _ in range(2 if b.chance(0.2) else 1):
        ends = [plane.ground, *links]
        first, second = (ends[i] for i in b.rng.permutation(4)[:2])
        F, G = plane.near(plane.origin), plane.near(plane.origin)
        E = plane.apex(F, G)
        left, right = plane.pivot(first, F), plane.pivot(second, G)
        plane.hinge(left, right, E)


def _planar_chain(b: _Builder) -> None:
    """Three links in series against two: one loop, three degrees of freedom."""
    plane = _Plane.on(b, b.some_link())
    left = plane.ground
    point = plane.origin
    for _ in range(3):
        left = plane.pivot(left, point)
        point = plane.near(point, 0.15, 0.5)
    D = plane.near(plane.origin, 0.3, 0.8)
    right = plane.pivot(plane.pivot(plane.ground, D), plane.near(D, 0.15, 0.5))
    plane.hinge(left, right, point)


def _slider_crank(b: _Builder) -> None:
    plane = _Plane.on(b, b.some_link())
    B = plane.near(plane.origin)
    C = plane.near(B, 0.3, 0.8)
    coupler = plane.pivot(plane.pivot(plane.ground, plane.origin), B)
    way = plane.direction()
    match b.rng.integers(3):
        case 0:
            plane.hinge(coupler, plane.slider(plane.ground, way), C)
        case 1:  # the guide is the loop
            slider = plane.pivot(coupler, C)
            b.loop("prismatic", slider, plane.ground, at=plane.near(C), along=way, removes=2)
        case _:  # an oscillating guide: slider on the rocker
            D = plane.near(plane.origin, 0.3, 0.8)
            rocker = plane.pivot(plane.ground, D)
            slider = plane.pivot(plane.slider(rocker, way), C)
            b.loop("fixed", coupler, slider, at=plane.near(C), removes=3)


def _spatial_loop(b: _Builder) -> None:
    """Two branches of joints in any directions, closed by a loop of any type."""
    kind = str(b.rng.choice(list(ROWS)))
    n = ROWS[kind] + (2 if b.chance(0.3) else 1)
    ground = b.some_link()
    split = int(b.rng.integers(0, n // 2 + 1))
    sliding = int(b.rng.integers(n)) if b.chance(0.4) else -1
    ends = []
    for joints in (range(split), range(split, n)):
        link = ground
        for i in joints:
            link = b.joint("prismatic" if i == sliding else b.turning_joint(), link).child
            if b.chance(0.1):
                link = b.joint("fixed", link).child
        ends.append(link)
    at = b.pose[ends[1]].at(b.offset(0.1, 0.4))
    to = None
    if kind == "rod" and b.chance(0.5):
        to = at + b.offset(0.2, 0.7)
    b.loop(kind, ends[1], ends[0], at=at, to=to)


def _rssr(b: _Builder) -> None:
    """A spatial four-bar: crank and rocker about skew axes, a coupler with ball ends."""
    ground = b.some_link()
    place = b.pose[ground]
    cranks = [
        b.joint(b.turning_joint(), ground, along=place.R @ b.axis(), at=place.at(b.origin()))
        for _ in range(2)
    ]
    first, second = (j.child for j in cranks)
    B, C = (b.pose[link].at(b.offset(0.2, 0.5)) for link in (first, second))
    match b.rng.integers(3):
        case 0:
            b.loop("rod", first, second, at=B, to=None if b.chance(0.3) else C)
        case 1:  # the coupler as a link: universal joint of two revolutes, then a ball
            b.loop("spherical", _ball_end(b, first, B, 2), second, at=C)
        case _:  # a ball of three revolutes, then a universal joint
            b.loop("universal", _ball_end(b, first, B, 3), second, at=C)


def _ball_end(b: _Builder, parent: str, point: Array, axes: int) -> str:
    """Revolute joints about perpendicular axes through a point; links between may be massless."""
    along = _unit(b.rng)
    link = parent
    for i in range(axes):
        bare = i + 1 < axes and b.chance(0.5)
        link = b.joint("revolute", link, along=along, at=point, massless=bare).child
        along = _perpendicular(along, b.rng)
    return link


def _rod(b: _Builder) -> None:
    """A rod between two links of the tree, at least two joints apart."""
    _rod_between(b, (*ONE_DOF, "fixed"))


def _tether(b: _Builder) -> None:
    """A rod as :func:`_rod`, which may span floating and planar joints."""
    if not any(j.type in ("floating", "planar") for j in b.joints.values()):
        b.joint(str(b.rng.choice(["floating", "planar"])), b.some_link())
    _rod_between(b, tuple(VELOCITIES))


def _rod_between(b: _Builder, over: Sequence[str]) -> None:
    pairs = []
    for first in b.links:
        for second in b.links:
            between = b.between(first, second) if first < second else []
            moving = [j for j in between if j.type != "fixed"]
            if len(moving) >= 2 and all(j.type in over for j in between):
                pairs.append((first, second))
    if not pairs or (b.chance(0.2) and "floating" not in over):
        root = b.some_link()
        tip = b.joint(b.turning_joint(), b.joint(b.turning_joint(), root).child).child
        pairs = [(root, tip)]
    first, second = pairs[b.rng.integers(len(pairs))]
    if b.chance(0.5):
        first, second = second, first
    at = b.pose[first].at(b.offset())
    to = None if b.chance(0.4) else b.pose[second].at(b.offset())
    b.loop("rod", first, second, at=at, to=to)


def _ankle(b: _Builder) -> None:
    """A universal-like pair of joints, driven by two cranks through two rods."""
    shank = b.some_link()
    place = b.pose[shank]
    R = place.R @ _rpy_rotation(b.turn())
    ex, ey, ez = R.T
    center = place.at(b.origin())
    pitch = b.joint("revolute", shank, along=ey, at=center, massless=b.chance(0.4))
    roll_axis = ex if b.chance(0.5) else _unit(b.rng) * 0.2 + ex
    roll_axis = roll_axis - ey * (ey @ roll_axis)
    roll_axis /= np.linalg.norm(roll_axis)
    lift = ez * (b.rng.uniform(0.02, 0.1) if b.chance(0.5) else 0.0)
    foot = b.joint("revolute", pitch.child, along=roll_axis, at=center + lift)
    for side in (-1.0, 1.0):
        back = -ex * b.rng.uniform(0.15, 0.4) + side * ey * b.rng.uniform(0.15, 0.4)
        height = ez * b.rng.uniform(0.3, 0.7)
        pivot = center + side * ey * b.rng.uniform(0.15, 0.4) + height
        crank = b.joint(b.turning_joint(), shank, along=ey, at=pivot)
        tip = pivot - ex * b.rng.uniform(0.15, 0.4) + b.offset(0.0, 0.05)
        heel = center + back + b.offset(0.0, 0.05)
        if b.chance(0.7):
            b.loop("rod", crank.child, foot.child, at=tip, to=heel)
        else:
            b.loop("spherical", _ball_end(b, crank.child, tip, 2), foot.child, at=heel)
        if b.chance(0.4):
            _gear(b, crank)


def _two_outputs(b: _Builder) -> None:
    """Joints on two links of one four-bar, coupled to each other."""
    _, *links = _four_bar_links(b)
    first, second = (links[i] for i in b.rng.permutation(3)[:2])
    one, two = (b.joint(str(b.rng.choice(ONE_DOF)), link) for link in (first, second))
    ratio = b.ratio(0.5, 3.0)
    match b.rng.integers(3):
        case 0:
            b.mimic(one, two, ratio)
        case 1:
            b.couple_joints([(one, 1.0), (two, ratio)])
        case _:
            shared = {j.name for j in b.path(one.child)} & {j.name for j in b.path(two.child)}
            sums = [
                sum(float(j.position) for j in b.path(end.child) if j.name not in shared)
                for end in (one, two)
            ]
            b.couple_links(one.child, two.child, ratio, sums[1] - ratio * sums[0])


def _loop_on_loop(b: _Builder) -> None:
    """A four-bar carried by a moving link of another four-bar."""
    _, *links = _four_bar_links(b)
    carrier = str(b.rng.choice(links))
    if b.chance(0.4):
        carrier = b.joint(str(b.rng.choice(ONE_DOF)), carrier).child
    _four_bar_links(b, carrier)


_MAKERS: dict[str, Callable[[_Builder], None]] = {
    "gear": _gear,
    "belt": _belt,
    "mimic": _mimic,
    "coupling": _coupling,
    "four_bar": _four_bar,
    "rod_four_bar": _rod_four_bar,
    "six_bar": _six_bar,
    "planar_chain": _planar_chain,
    "slider_crank": _slider_crank,
    "spatial_loop": _spatial_loop,
    "rssr": _rssr,
    "rod": _rod,
    "ankle": _ankle,
    "two_outputs": _two_outputs,
    "loop_on_loop": _loop_on_loop,
    "tether": _tether,
}
EXPLICIT_KINDS = ("gear", "belt", "mimic", "coupling")
LOOP_KINDS = tuple(k for k in _MAKERS if k not in (*EXPLICIT_KINDS, "tether"))
KINDS = (*EXPLICIT_KINDS, *LOOP_KINDS)
"""What mechanisms are made of by default. ``"tether"`` (a rod that may span floating and planar
joints) exists too, and must be asked for."""


# --- choosing and checking ----------------------------------------------------------------------


def _components(K: Array) -> list[tuple[Array, Array]]:
    """Rows and columns of the blocks of K that do not touch each other."""
    rows, columns = K.shape
    pattern = np.zeros((rows + columns, rows + columns), dtype=bool)
    pattern[:rows, rows:] = np.abs(K) > 1e-12
    count, label = connected_components(pattern, directed=False)
    out = []
    for i in range(count):
        r, c = np.flatnonzero(label[:rows] == i), np.flatnonzero(label[rows:] == i)
        if len(r):
            out.append((r, c))
    return out


def _is_regular(K: Array, mobility: int) -> bool:
    """Whether the rank is the one designed for, with a clear gap in every block."""
    rank = 0
    for rows, columns in _components(K):
        block = K[np.ix_(rows, columns)]
        size = np.linalg.norm(block, axis=1, keepdims=True)
        block = (block / np.where(size > 1e-12, size, 1.0))[size[:, 0] > 1e-12]
        s = np.linalg.svd(block, compute_uv=False)
        s = s[s > 1e-11 * s.max(initial=1.0)]
        if len(s) and s[-1] < 0.03 * s[0]:
            return False
        rank += len(s)
    return K.shape[1] - rank == mobility


def _choose_dependent(K: Array, allowed: Array, rng: Rng) -> Array | None:
    """Dependent columns, well conditioned in every block, not always the best ones."""
    chosen: list[int] = []
    for rows, columns in _components(K):
        basis, _ = independent_rows(K[np.ix_(rows, columns)], np.zeros(len(rows)))
        if len(basis) == 0:
            continue
        usable = np.flatnonzero(allowed[columns])
        for attempt in range(12):
            taste = np.exp(rng.normal(scale=0.0 if attempt == 11 else 1.0, size=len(usable)))
            picked = usable[_pivots(basis[:, usable] * taste, len(basis))]
            s = np.linalg.svd(basis[:, picked], compute_uv=False)
            if len(s) == len(basis) and s[-1] >= 0.06 * s[0] and s[-1] >= 0.03:
                chosen += list(columns[picked])
                break
        else:
            return None
    return np.array(sorted(chosen), dtype=int)


def _pivots(A: Array, count: int) -> list[int]:
    """Columns in the order of a Gram–Schmidt elimination with pivoting."""
    A = A.copy()
    out: list[int] = []
    for _ in range(min(count, A.shape[1])):
        size = np.einsum("ij,ij->j", A, A)
        size[out] = -1.0
        best = int(np.argmax(size))
        if size[best] <= 1e-20:
            break
        out.append(best)
        u = A[:, best] / math.sqrt(size[best])
        A -= np.outer(u, u @ A)
    return out


def _attempt(
    rng: Rng,
    kinds: Sequence[str],
    n_joints: int,
    floating_base: bool,
    marked: bool,
    special: bool,
) -> Mechanism | None:
    taste = rng.uniform(0.2, 0.4) if special else rng.random()
    b = _Builder(
        rng,
        aligned=bool(taste < 0.3),
        special=special,
        hollow=special,
        floating_base=floating_base,
    )
    b.add_root()
    before = int(rng.integers(n_joints // 2, n_joints + 1)) if n_joints else 0
    _tree(b, before)
    for kind in kinds:
        _MAKERS[kind](b)
    _tree(b, n_joints - before)  # the rest of the tree may grow on loops

    text = b.text()
    oracle = Oracle(text, floating_base)
    closed = {j.name: j.position for j in b.joints.values() if j.type != "fixed"}
    q = oracle.state(closed)
    phi, K, _ = oracle.constraint(q, np.zeros(oracle.nv))
    if not oracle.closed(q, 1e-12):
        raise AssertionError(f"loops do not close, by {np.abs(phi).max()}")
    if not _is_regular(K, b.mobility):
        return None
    allowed = np.zeros(oracle.nv, dtype=bool)
    allowed[oracle.columns(*(j.name for j in b.joints.values() if j.type in ONE_DOF))] = True
    dependent = _choose_dependent(K, allowed, rng)
    if dependent is None:
        return None
    independent = np.setdiff1d(np.arange(oracle.nv), dependent)
    G, _ = oracle.spanning_map_and_bias(q, np.zeros(oracle.nv), independent)
    M = oracle.projected_mass(q, G)
    if np.any(np.diag(M) < 1e-6):  # nothing weighs on it
        return None
    scale = 1.0 / np.sqrt(np.diag(M))
    if len(M) and np.linalg.cond(M * np.outer(scale, scale)) > 3e3:
        return None

    names: tuple[str, ...] | None = None
    if marked:
        rest = {i for i in range(oracle.nv) if i not in set(dependent)}
        everywhere = rng.random() < 0.7  # or only where it is false: true is the default
        for joint in b.joints.values():
            free = rest.issuperset(oracle.columns(joint.name))
            if joint.type != "fixed" and (everywhere or not free):
                joint.mark = free
        names = tuple(
            j.name
            for j in b.joints.values()
            if j.type != "fixed" and rest.issuperset(oracle.columns(j.name))
        )
        text = b.text()
    pushed = [str(x) for x in rng.permutation(list(b.links))[: rng.integers(1, 4)]]
    return Mechanism(
        text=text,
        closed=closed,
        mobility=b.mobility,
        independent=names,
        floating_base=floating_base,
        f_ext={link: rng.normal(size=6) * 3 for link in pushed},
        kinds=tuple(kinds),
    )


def random_mechanism(
    rng: Rng,
    kinds: Sequence[str] | None = None,
    *,
    n_joints: int | None = None,
    floating_base: bool | None = None,
    marked: bool | None = None,
    special: bool = False,
    attempts: int = 100,
) -> Mechanism:
    """A random regular mechanism: a tree of ``n_joints`` joints with ``kinds`` of constraints.

    What is None is drawn: up to three of ``KINDS``, 1–15 joints of the tree, a floating base in one
    of three, ``independent`` marked on the joints in one of two. ``special``: joints stand at their
    links' origins, a unit away, at right angles or not turned, centres of mass in planes and on
    axes; some links are points or weigh nothing.
    """
    for _ in range(attempts):
        some = list(rng.choice(KINDS, size=rng.integers(0, 4))) if kinds is None else kinds
        try:
            found = _attempt(
                rng,
                [str(k) for k in some],
                int(rng.integers(1, 16 - 3 * len(some))) if n_joints is None else n_joints,
                bool(rng.random() < 1 / 3) if floating_base is None else floating_base,
                bool(rng.random() < 0.5) if marked is None else marked,
                special,
            )
        except MechanismError:
            continue
        if found is not None:
            return found
    raise MechanismError(f"nothing regular in {attempts} attempts at {kinds}")


@st.composite
def mechanisms(
    draw: st.DrawFn,
    kinds: Sequence[str] = KINDS,
    *,
    max_joints: int = 15,
    max_kinds: int = 3,
    floating_base: bool | None = None,
    marked: bool | None = None,
) -> Mechanism:
    """Hypothesis: mechanisms that shrink to fewer joints and fewer kinds of constraints."""
    some = draw(st.lists(st.sampled_from(list(kinds)), max_size=max_kinds), label="kinds")
    n_joints = draw(st.integers(0 if some else 1, max_joints), label="joints")
    floating = draw(st.booleans()) if floating_base is None else floating_base
    said = draw(st.booleans()) if marked is None else marked
    seed = draw(st.integers(0, 2**32 - 1), label="seed")
    try:
        return random_mechanism(
            np.random.default_rng(seed),
            some,
            n_joints=n_joints,
            floating_base=floating,
            marked=said,
            attempts=30,
        )
    except MechanismError:
        reject()


# --- mechanisms after robots ----------------------------------------------------------------------


def linear_hip() -> str:
    """A hip that turns about z, pushed by a linear actuator, as CAD programs write one down.

    Both ends of the actuator are ball joints of three hinges, one of them on a hinge more, and a
    loop welds its halves together. The rod lies across the hinges' axes, so that two hinges of each
    ball joint always stand at a right angle: which two, there are several ways, and in some of them
    other joints are locked. The file's zero position is open.
    """
    axes = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}
    inertial = _Inertial(0.3, np.array([0.0, 0.0, -0.02]), np.zeros(3), np.diag([4e-4, 4e-4, 2e-4]))
    links = ["base", "thigh", "holder", "cylinder", "rod", "piston"]
    parts = [f'<link name="{name}">{inertial.xml()}</link>' for name in links]

    def hinge(name: str, parent: str, child: str, axis: str, xyz: str = "0 0 0") -> None:
        kind = "prismatic" if name == "push" else "continuous"
        limit = (
            '<limit lower="-0.2" upper="0.2" effort="1" velocity="1"/>' if name == "push" else ""
        )
        parts.append(
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{xyz}"/><axis xyz="{axis}"/>{limit}</joint>'
        )

    def ball(name: str, parent: str, child: str, xyz: str) -> None:
        ends = [parent, f"{name}_1", f"{name}_2", child]
        parts.extend(f'<link name="{end}"/>' for end in ends[1:3])
        for (axis, vector), above, below in zip(axes.items(), ends[:-1], ends[1:], strict=True):
            hinge(f"{name}_{axis}", above, below, vector, xyz if axis == "x" else "0 0 0")

    hinge("yaw", "base", "thigh", "0 0 1", "0.02 0.2 -0.01")
    ball("upper", "thigh", "cylinder", "0 0.04 -0.05")
    hinge("swing", "base", "holder", "0 0 1", "-0.1 0.25 -0.01")
    ball("lower", "holder", "rod", "0 0 -0.05")
    hinge("push", "rod", "piston", "0 0 1", "0 0 -0.08")
    parts.append(
        '<loop name="weld" type="fixed"><predecessor link="piston"><origin xyz="0 0 -0.025"/>'
        '</predecessor><successor link="cylinder"><origin xyz="0 0 -0.025" '
        'rpy="3.141592653589793 0 -1.5707963267948966"/></successor></loop>'
    )
    return '<robot name="linear_hip">' + "".join(parts) + "</robot>"
