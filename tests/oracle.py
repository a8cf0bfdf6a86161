"""An independent reference for robots with loops and couplings, on top of Pinocchio.

Pinocchio knows open trees only. :class:`Oracle` gives it the tree of a URDF+ text, takes back the
spanning-tree mass matrix, bias forces, Jacobians and accelerations, and adds the constraints from
the placements and accelerations of the loops' anchors. It imports nothing of the package under
test, and says everything in that package's conventions:

- spatial vectors are angular first; wrenches and body Jacobians are in link axes;
- joint velocities are stacked in the order of ``Oracle.names``; a floating base or joint moves with
  [angular | linear] in its own axes, a planar joint with [vx, vy, omega] in its child's axes;
- joint positions are a scalar, [x y z qx qy qz qw] (floating) or [x, y, theta] (planar).

``q`` always means Pinocchio's configuration vector, made by :meth:`Oracle.state`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Frame = str | tuple[str, ArrayLike]
Position = float | ArrayLike

BASE = "root_joint"  # Pinocchio's name
ONE_DOF = ("revolute", "continuous", "prismatic")
VELOCITIES = {"fixed": 0, "planar": 3, "floating": 6} | dict.fromkeys(ONE_DOF, 1)
WORLD_ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


# --- small algebra ------------------------------------------------------------------------------


def parent_joint(frame: pin.Frame) -> int:
    """Where a frame is fixed: Pinocchio 3 calls it otherwise than 2.7."""
    return int(frame.parentJoint if hasattr(frame, "parentJoint") else frame.parent)


def rank_of(K: Array, rtol: float = 1e-8) -> int:
    """Rank of a constraint Jacobian, each row scaled to length one."""
    return len(independent_rows(K, np.zeros(len(K)), rtol)[0])


def independent_rows(K: Array, k: Array, rtol: float = 1e-8) -> tuple[Array, Array]:
    """Orthonormal rows with the row space of K, and the right-hand side that goes with them."""
    size = np.linalg.norm(K, axis=1)
    kept = size > rtol * max(1.0, size.max(initial=0.0))
    if not kept.any():
        return np.zeros((0, K.shape[1])), np.zeros(0)
    U, s, Vt = np.linalg.svd(K[kept] / size[kept, None], full_matrices=False)
    r = int(np.sum(s > rtol * s[0]))
    return Vt[:r], (U[:, :r].T @ (k[kept] / size[kept])) / s[:r]


def spanning_map(K: Array, independent: Sequence[int]) -> Array:
    """G with q̇ = G q̇[independent], from K q̇ = 0."""
    rows, _ = independent_rows(K, np.zeros(len(K)))
    n = K.shape[1]
    dependent = np.setdiff1d(np.arange(n), independent)
    if len(rows) != len(dependent):
        raise ValueError(f"{len(dependent)} dependent velocities, but K has rank {len(rows)}")
    G = np.zeros((n, len(independent)))
    G[list(independent), np.arange(len(independent))] = 1.0
    G[dependent] = -_refined_solve(rows[:, dependent], rows[:, list(independent)])
    return G


def g_of(K: Array, k: Array, independent: Sequence[int]) -> Array:
    """The g with q̈ = G q̈[independent] + g, from K q̈ = k."""
    rows, right = independent_rows(K, k)
    dependent = np.setdiff1d(np.arange(K.shape[1]), independent)
    g = np.zeros(K.shape[1])
    g[dependent] = _refined_solve(rows[:, dependent], right)
    return g


def _refined_solve(A: Array, b: Array) -> Array:
    if A.shape[0] == 0:
        return np.zeros(b.shape)
    x = np.linalg.solve(A, b)
    return x + np.linalg.solve(A, b - A @ x)


def cross_matrix(u: Array) -> Array:
    """[u]× with [u]× w = u × w."""
    return np.array([[0.0, -u[2], u[1]], [u[2], 0.0, -u[0]], [-u[1], u[0], 0.0]])


def default_axis2(axis: Array) -> Array:
    """Second axis of a universal loop that names none, perpendicular to ``axis``."""
    axis = axis / np.linalg.norm(axis)
    other = np.zeros(3)
    other[(int(np.argmax(np.abs(axis))) + 1) % 3] = 1.0
    other -= axis * (axis @ other)
    return other / np.linalg.norm(other)


def perpendiculars(axis: Array) -> tuple[Array, Array]:
    """Two unit vectors that complete ``axis`` to a right-handed frame."""
    first = np.zeros(3)
    first[int(np.argmin(np.abs(axis)))] = 1.0
    first -= axis * (axis @ first)
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


class _Moving(NamedTuple):
    """A vector that moves with the robot: value, Jacobian, rate, and second rate at q̈ = 0."""

    value: Array
    jacobian: Array
    rate: Array
    bias: Array

    def minus(self, other: _Moving) -> _Moving:
        return _Moving(*(a - b for a, b in zip(self, other, strict=True)))

    def dot(self, other: _Moving) -> tuple[float, Array, float]:
        """Value, Jacobian row and k = −(second rate at q̈ = 0) of the inner product."""
        second = self.bias @ other.value + 2 * self.rate @ other.rate + self.value @ other.bias
        row = self.value @ other.jacobian + other.value @ self.jacobian
        return float(self.value @ other.value), row, -float(second)


# --- what the text says -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Joint:
    name: str
    type: str
    parent: str
    child: str


@dataclass(frozen=True)
class _Loop:
    name: str
    type: str
    predecessor: int  # Pinocchio frame of the anchor
    successor: int
    axis: Array
    axis2: Array
    length: float | None


@dataclass(frozen=True)
class _Linear:
    """Σ ratio q(joint) = offset."""

    name: str
    terms: tuple[tuple[str, float], ...]
    offset: float


def _numbers(element: ET.Element | None, key: str, default: Sequence[float]) -> Array:
    text = None if element is None else element.get(key)
    return np.array(default if text is None else [float(x) for x in text.split()], dtype=float)


def _placement(origin: ET.Element | None) -> pin.SE3:
    roll, pitch, yaw = _numbers(origin, "rpy", (0, 0, 0))
    return pin.SE3(pin.rpy.rpyToMatrix(roll, pitch, yaw), _numbers(origin, "xyz", (0, 0, 0)))


def _unit_axis(element: ET.Element | None) -> Array:
    axis = _numbers(element, "xyz", (1, 0, 0))
    return axis / np.linalg.norm(axis)


def _value(element: ET.Element, tag: str, default: float) -> float:
    child = element.find(tag)
    return default if child is None else float(child.get("value", default))


def _reference(element: ET.Element, tag: str) -> str:
    child = element.find(tag)
    if child is None:
        raise ValueError(f"<{element.tag} name={element.get('name')!r}> has no <{tag}>")
    return child.attrib["link"]


def _tree_text(robot: ET.Element) -> str:
    """The plain URDF of the tree: links with their inertials, joints without mimic.

    Continuous joints become revolute ones, so that every one-degree joint has a plain angle.
    """
    plain = ET.Element("robot", name=robot.get("name", "robot"))
    for link in robot.findall("link"):
        copy = ET.SubElement(plain, "link", name=link.attrib["name"])
        copy.extend(link.findall("inertial"))
    for joint in robot.findall("joint"):
        kind = joint.attrib["type"]
        copy = ET.SubElement(plain, "joint", name=joint.attrib["name"])
        copy.set("type", "revolute" if kind == "continuous" else kind)
        copy.extend(child for child in joint if child.tag in ("origin", "parent", "child"))
        axis = _unit_axis(joint.find("axis"))
        if kind == "planar" and not np.array_equal(axis, (0, 0, 1)):
            raise ValueError(f"planar joint {joint.get('name')!r}: only axis 0 0 1 is compared")
        ET.SubElement(copy, "axis", xyz=" ".join(repr(float(x)) for x in axis))
        ET.SubElement(copy, "limit", lower="-1e9", upper="1e9", effort="1e9", velocity="1e9")
    return ET.tostring(plain, encoding="unicode")


# --- the oracle ---------------------------------------------------------------------------------


class Oracle:
    """Spanning-tree dynamics and constraints of a URDF+ text, by Pinocchio.

    ``names`` is the order of joints in which velocities are stacked, to be set to that of the model
    under test (at construction or later). Fixed joints may be in it. With ``floating_base`` one
    name, any that is not a joint of the text, stands for the base. It defaults to the file's order,
    the base first.
    ``armature`` may be set: joints' inertias by name, on each of their velocities.
    """

    def __init__(
        self,
        urdf_text: str | bytes,
        floating_base: bool = False,
        *,
        gravity: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        robot = ET.fromstring(urdf_text)
        self.floating_base = floating_base
        self.joints = {
            j.attrib["name"]: _Joint(
                j.attrib["name"], j.attrib["type"], _reference(j, "parent"), _reference(j, "child")
            )
            for j in robot.findall("joint")
        }
        self._joint_above = {j.child: j for j in self.joints.values()}
        self.links = [link.attrib["name"] for link in robot.findall("link")]
        self.root = next(name for name in self.links if name not in self._joint_above)

        text = _tree_text(robot)
        base = (pin.JointModelFreeFlyer(),) if floating_base else ()
        self.model = pin.buildModelFromXML(text, *base)
        said = _numbers(robot.find("gravity"), "xyz", (0.0, 0.0, -9.81))
        self.model.gravity.linear = said if gravity is None else np.asarray(gravity, dtype=float)
        self._masses = self._read_masses(robot)
        self._loops = [self._read_loop(e) for e in robot.findall("loop")]
        self._linear = [self._read_coupling(e) for e in robot.findall("coupling")]
        self._linear += [
            self._read_mimic(j.attrib["name"], m)
            for j in robot.findall("joint")
            if (m := j.find("mimic")) is not None
        ]
        self._data = self.model.createData()
        self.armature: Mapping[str, float] = {}
        self._lengths = self._rod_lengths()
        self.names = [BASE, *self.joints] if floating_base else list(self.joints)
        if names is not None:
            self.names = list(names)

    # --- reading ---

    def _read_masses(self, robot: ET.Element) -> dict[str, tuple[float, Array]]:
        masses = {}
        for link in robot.findall("link"):
            inertial = link.find("inertial")
            if inertial is not None:
                center = _numbers(inertial.find("origin"), "xyz", (0, 0, 0))
                masses[link.attrib["name"]] = (_value(inertial, "mass", 0.0), center)
        return masses

    def _read_loop(self, element: ET.Element) -> _Loop:
        name, kind = element.attrib["name"], element.attrib["type"]
        anchors = []
        for end in ("predecessor", "successor"):
            anchor = element.find(end)
            link = self._link_frame(_reference(element, end))
            placement = self.model.frames[link].placement * _placement(
                None if anchor is None else anchor.find("origin")
            )
            joint = parent_joint(self.model.frames[link])
            frame = pin.Frame(f"<{name}> {end}", joint, link, placement, pin.FrameType.OP_FRAME)
            anchors.append(self.model.addFrame(frame, False))
        axis = _unit_axis(element.find("axis"))
        second = element.find("axis2")
        axis2 = default_axis2(axis) if second is None else _unit_axis(second)
        length = element.get("length")
        return _Loop(name, kind, *anchors, axis, axis2, None if length is None else float(length))

    def _read_coupling(self, element: ET.Element) -> _Linear:
        name, offset = element.attrib["name"], _value(element, "offset", 0.0)
        terms = [(t.attrib["name"], float(t.get("ratio", 1.0))) for t in element.findall("joint")]
        if not terms:
            ratio = _value(element, "ratio", 1.0)
            ends = [self._path_to(_reference(element, e)) for e in ("predecessor", "successor")]
            shared = set(ends[0]) & set(ends[1])
            terms = [(j, ratio) for j in ends[0] if j not in shared]
            terms += [(j, -1.0) for j in ends[1] if j not in shared]
            offset = -offset  # the file's offset stands on the predecessor's side
        return self._linear_of(name, terms, offset)

    def _read_mimic(self, joint: str, element: ET.Element) -> _Linear:
        multiplier = float(element.get("multiplier", 1.0))
        terms = [(joint, 1.0), (element.attrib["joint"], -multiplier)]
        return self._linear_of(f"mimic {joint}", terms, float(element.get("offset", 0.0)))

    def _linear_of(self, name: str, terms: Sequence[tuple[str, float]], offset: float) -> _Linear:
        moving = tuple(t for t in terms if self.joints[t[0]].type != "fixed")
        for joint, _ in moving:
            if self.joints[joint].type not in ONE_DOF:
                raise ValueError(f"{name}: {joint} is {self.joints[joint].type}")
        return _Linear(name, moving, offset)

    def _path_to(self, link: str) -> list[str]:
        """Joints from the root to a link."""
        path = []
        while (joint := self._joint_above.get(link)) is not None:
            path.append(joint.name)
            link = joint.parent
        return path[::-1]

    def _rod_lengths(self) -> dict[str, float]:
        pin.framesForwardKinematics(self.model, self._data, self.state({}))
        at = [frame.translation for frame in self._data.oMf]
        lengths = {}
        for loop in (loop for loop in self._loops if loop.type == "rod"):
            zero = float(np.linalg.norm(at[loop.successor] - at[loop.predecessor]))
            lengths[loop.name] = zero if loop.length is None else loop.length
            if lengths[loop.name] == 0.0:
                raise ValueError(f"rod {loop.name!r} has no length; a spherical loop is meant")
        return lengths

    # --- order of joints ---

    @property
    def names(self) -> list[str]:
        """Joints in the order in which velocities are stacked."""
        return self._names

    @names.setter
    def names(self, names: Sequence[str]) -> None:
        unknown = [n for n in names if n not in self.joints]
        missing = [
            n for n, j in self.joints.items() if VELOCITIES[j.type] > 0 and n not in set(names)
        ]
        if missing or len(unknown) != int(self.floating_base):
            raise ValueError(f"joints missing: {missing}; not in the text: {unknown}")
        self._names = list(names)
        self._columns: dict[str, slice] = {}
        order: list[int] = []  # Pinocchio's velocity index of each of ours
        for name in names:
            joint_id = self._joint_id(name)
            start = len(order)
            if joint_id is not None:
                first, size = self.model.joints[joint_id].idx_v, self.model.joints[joint_id].nv
                swap = (3, 4, 5, 0, 1, 2)
                order += [first + i for i in (swap if size == 6 else range(size))]
            self._columns[name] = slice(start, len(order))
        self._order = np.array(order, dtype=int)

    def _joint_id(self, name: str) -> int | None:
        if name not in self.joints:
            return self.model.getJointId(BASE)
        return None if self.joints[name].type == "fixed" else self.model.getJointId(name)

    @property
    def nv(self) -> int:
        """Number of joint velocities of the spanning tree."""
        return len(self._order)

    def columns(self, *names: str) -> list[int]:
        """Indices of these joints' velocities."""
        return [i for n in names for i in range(*self._columns[n].indices(self.nv))]

    def stack(self, values: Mapping[str, Position]) -> Array:
        """Velocities or accelerations by joint name as one vector; joints not named are zero."""
        v = np.zeros(self.nv)
        for name, value in values.items():
            v[self._columns[name]] = np.asarray(value, dtype=float)
        return v

    def unstack(self, v: ArrayLike) -> dict[str, Array]:
        """The inverse of :meth:`stack`; a scalar array for one-degree joints."""
        v = np.asarray(v, dtype=float)
        parts = {n: v[c] for n, c in self._columns.items() if c.stop > c.start}
        return {n: x[0] if len(x) == 1 else x for n, x in parts.items()}

    def _theirs(self, v: ArrayLike) -> Array:
        out = np.zeros(self.model.nv)
        out[self._order] = np.asarray(v, dtype=float)
        return out

    # --- configurations ---

    def state(self, positions: Mapping[str, Position]) -> Array:
        """Pinocchio's configuration of these joint positions; joints not named are at zero.

        With a floating base a name that is not a joint of the text is the base.
        """
        q = pin.neutral(self.model)
        for name, position in positions.items():
            joint_id = self._joint_id(name)
            if joint_id is None:
                continue
            at, size = self.model.joints[joint_id].idx_q, self.model.joints[joint_id].nq
            value = np.atleast_1d(np.asarray(position, dtype=float))
            if size == 7:
                value = np.concatenate((value[:3], value[3:] / np.linalg.norm(value[3:])))
            elif size == 4:
                value = np.array([value[0], value[1], np.cos(value[2]), np.sin(value[2])])
            if value.shape != (size,):
                raise ValueError(f"{name}: position of shape {value.shape}")
            q[at : at + size] = value
        return q

    def positions(self, q: Array) -> dict[str, Any]:
        """Joint positions by name: the inverse of :meth:`state`."""
        out: dict[str, Any] = {}
        for name in self.names:
            joint_id = self._joint_id(name)
            if joint_id is None:
                continue
            at, size = self.model.joints[joint_id].idx_q, self.model.joints[joint_id].nq
            value = q[at : at + size].copy()
            if size == 4:
                value = np.array([value[0], value[1], np.arctan2(value[3], value[2])])
            out[name] = float(value[0]) if size == 1 else value
        return out

    def integrate(self, q: Array, dv: ArrayLike) -> Array:
        """The configuration reached by moving with constant joint velocities ``dv`` for 1 s."""
        return pin.integrate(self.model, q, self._theirs(dv))

    def close(self, q: Array, independent: Sequence[int] = (), *, steps: int = 50) -> Array:
        """Newton steps onto the loops, with the independent velocities held where named."""
        free = np.setdiff1d(np.arange(self.nv), independent)
        for _ in range(steps):
            phi, K, _ = self.constraint(q, np.zeros(self.nv))
            step = np.zeros(self.nv)
            step[free] = -np.linalg.lstsq(K[:, free], phi, rcond=1e-8)[0]
            q = self.integrate(q, step)
            if np.abs(step).max(initial=0.0) < 1e-14:
                break
        return q

    # --- spanning-tree dynamics ---

    def mass_matrix(self, q: Array) -> Array:
        """Spanning-tree mass matrix H."""
        H = pin.crba(self.model, self._data, q)
        H = np.triu(H) + np.triu(H, 1).T
        return H[np.ix_(self._order, self._order)] + np.diag(self._armatures())

    def _armatures(self) -> Array:
        weights = np.zeros(self.nv)
        for name, inertia in self.armature.items():
            weights[self._columns[name]] = inertia
        return weights

    def bias(self, q: Array, v: ArrayLike, f_ext: Mapping[str, ArrayLike] | None = None) -> Array:
        """C + g − Jᵀ f_ext; ``f_ext`` holds wrenches on links, angular first, in link axes."""
        return self.inverse(q, v, np.zeros(self.nv), f_ext)

    def inverse(
        self,
        q: Array,
        v: ArrayLike,
        a: ArrayLike,
        f_ext: Mapping[str, ArrayLike] | None = None,
    ) -> Array:
        """Spanning-tree inverse dynamics: joint forces of the accelerations ``a``."""
        forces = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for link, wrench in (f_ext or {}).items():
            frame = self.model.frames[self._link_frame(link)]
            w = np.asarray(wrench, dtype=float)
            forces[parent_joint(frame)] += frame.placement.act(pin.Force(w[3:], w[:3]))
        tau = pin.rnea(self.model, self._data, q, self._theirs(v), self._theirs(a), forces)
        return tau[self._order] + self._armatures() * np.asarray(a, dtype=float)

    # --- constraints ---

    def constraint(self, q: Array, v: ArrayLike) -> tuple[Array, Array, Array]:
        """Constraint values φ, their Jacobian K, and k with K q̈ = k at a closed state.

        Rows of every loop and coupling, redundant ones included. K is ∂φ/∂q and k = −K̇ q̇
        whether the loops are closed or not.
        """
        v = np.asarray(v, dtype=float)
        zero = np.zeros(self.model.nv)
        pin.forwardKinematics(self.model, self._data, q, self._theirs(v), zero)
        pin.computeJointJacobians(self.model, self._data)
        pin.updateFramePlacements(self.model, self._data)
        rows: list[tuple[float, Array, float]] = []
        for loop in self._loops:
            rows += self._loop_rows(loop, v)
        for linear in self._linear:
            row = np.zeros(self.nv)
            value = -linear.offset
            for joint, ratio in linear.terms:
                row[self._columns[joint]] += ratio
                value += ratio * q[self.model.joints[self.model.getJointId(joint)].idx_q]
            rows.append((value, row, 0.0))
        if not rows:
            return np.zeros(0), np.zeros((0, self.nv)), np.zeros(0)
        phi, K, k = zip(*rows, strict=True)
        return np.array(phi), np.array(K), np.array(k)

    def closed(self, q: Array, tolerance: float = 1e-9) -> bool:
        """Whether every loop closes, on the branch where parallel axes also point the same way."""
        phi, _, _ = self.constraint(q, np.zeros(self.nv))
        if np.abs(phi).max(initial=0.0) > tolerance:
            return False
        for loop in self._loops:
            turn = self._data.oMf[loop.predecessor].rotation.T
            turn = turn @ self._data.oMf[loop.successor].rotation
            if loop.type in ("revolute", "continuous", "planar"):
                if loop.axis @ turn @ loop.axis < 0:
                    return False
            elif loop.type in ("prismatic", "fixed") and np.trace(turn) < 0:
                return False
        return True

    def _anchor(self, frame: int, v: Array) -> tuple[_Moving, Array, Array, Array, Array]:
        """The anchor's origin as a moving vector; its rotation, angular Jacobian, ω, α."""
        placement = self._data.oMf[frame]
        J = pin.getFrameJacobian(self.model, self._data, frame, WORLD_ALIGNED)[:, self._order]
        a = pin.getFrameClassicalAcceleration(self.model, self._data, frame, WORLD_ALIGNED)
        point = _Moving(placement.translation.copy(), J[:3], J[:3] @ v, a.linear.copy())
        return point, placement.rotation.copy(), J[3:], J[3:] @ v, a.angular.copy()

    def _loop_rows(self, loop: _Loop, v: Array) -> list[tuple[float, Array, float]]:
        first, second = (self._anchor(f, v) for f in (loop.predecessor, loop.successor))

        def direction(anchor: tuple[_Moving, Array, Array, Array, Array], axis: Array) -> _Moving:
            _, R, J, w, alpha = anchor
            u = R @ axis
            rate = np.cross(w, u)
            return _Moving(u, -cross_matrix(u) @ J, rate, np.cross(alpha, u) + np.cross(w, rate))

        gap = second[0].minus(first[0])
        coincide = [(gap.value[i], gap.jacobian[i], -gap.bias[i]) for i in range(3)]
        across = perpendiculars(loop.axis)
        across1 = [direction(first, u) for u in across]
        axis2 = direction(second, loop.axis)
        parallel = [u.dot(axis2) for u in across1]
        untwisted = [*parallel, across1[0].dot(direction(second, across[1]))]
        match loop.type:
            case "spherical":
                return coincide
            case "revolute" | "continuous":
                return coincide + parallel
            case "fixed":
                return coincide + untwisted
            case "prismatic":
                return [u.dot(gap) for u in across1] + untwisted
            case "planar":
                return [direction(first, loop.axis).dot(gap), *parallel]
            case "universal":
                other = direction(second, loop.axis2)
                return [*coincide, direction(first, loop.axis).dot(other)]
            case "rod":
                length = self._lengths[loop.name]
                value, row, k = gap.dot(gap)
                scale = 1.0 / (2.0 * length)
                return [((value - length**2) * scale, row * scale, k * scale)]
        raise ValueError(f"loop {loop.name!r} of type {loop.type!r}")

    # --- constrained dynamics ---

    def forward(
        self,
        q: Array,
        v: ArrayLike,
        tau: ArrayLike,
        f_ext: Mapping[str, ArrayLike] | None = None,
    ) -> Array:
        """Joint accelerations of the constrained robot, by multipliers; ``tau`` per tree velocity.

        Solves [H Kᵀ; K 0] [q̈; −λ] = [τ − bias; k] on the independent rows of K.
        """
        v = np.asarray(v, dtype=float)
        H = self.mass_matrix(q)
        right = np.asarray(tau, dtype=float) - self.bias(q, v, f_ext)
        _, K, k = self.constraint(q, v)
        # accelerations in units in which H has diagonal one, where what moves has mass
        heavy = np.diag(H) > 0.0
        scale = 1.0 / np.sqrt(np.where(heavy, np.diag(H), np.max(np.diag(H), initial=1.0)))
        rows, k = independent_rows(K * scale, k)
        r = len(rows)
        A = np.block([[H * np.outer(scale, scale), rows.T], [rows, np.zeros((r, r))]])
        x = _refined_solve(A, np.concatenate((right * scale, k)))
        return scale * x[: self.nv]

    def projected_mass(self, q: Array, G: Array) -> Array:
        """M = Gᵀ H G."""
        return G.T @ self.mass_matrix(q) @ G

    def project_inverse(
        self,
        q: Array,
        v: ArrayLike,
        G: Array,
        g: Array,
        a: ArrayLike,
        f_ext: Mapping[str, ArrayLike] | None = None,
    ) -> Array:
        """tau = Gᵀ (H (G a + g) + bias); ``v`` is per tree velocity, ``a`` per column of G."""
        return G.T @ self.inverse(q, v, G @ np.asarray(a, dtype=float) + g, f_ext)

    def project_forward(
        self,
        q: Array,
        v: ArrayLike,
        G: Array,
        g: Array,
        tau: ArrayLike,
        f_ext: Mapping[str, ArrayLike] | None = None,
    ) -> Array:
        """The a with (Gᵀ H G) a = tau − Gᵀ (H g + bias)."""
        right = np.asarray(tau, dtype=float) - G.T @ self.inverse(q, v, g, f_ext)
        M = self.projected_mass(q, G)
        scale = 1.0 / np.sqrt(np.diag(M))
        return scale * _refined_solve(M * np.outer(scale, scale), right * scale)

    def spanning_map_and_bias(
        self, q: Array, v: ArrayLike, independent: Sequence[int]
    ) -> tuple[Array, Array]:
        """G and g of the independent velocities, from K and k of this state."""
        _, K, k = self.constraint(q, v)
        return spanning_map(K, independent), g_of(K, k, independent)

    # --- frames and totals ---

    def _link_frame(self, link: str) -> int:
        frame = self.model.getFrameId(link, pin.FrameType.BODY)
        if frame >= self.model.nframes:
            raise KeyError(link)
        return frame

    def _offset_frame(self, frame: Frame) -> tuple[int, Array]:
        link, offset = (frame, (0, 0, 0)) if isinstance(frame, str) else frame
        return self._link_frame(link), np.asarray(offset, dtype=float)

    def frame_pose(self, q: Array, frame: Frame) -> Array:
        """4×4 pose of a link, or of (link, offset), in the world."""
        link, offset = self._offset_frame(frame)
        pin.framesForwardKinematics(self.model, self._data, q)
        pose = self._data.oMf[link].homogeneous.copy()
        pose[:3, 3] += pose[:3, :3] @ offset
        return pose

    def frame_jacobian(self, q: Array, frame: Frame) -> Array:
        """6 × n Jacobian, angular first, in link axes at the frame's origin."""
        link, offset = self._offset_frame(frame)
        pin.computeJointJacobians(self.model, self._data, q)
        pin.updateFramePlacements(self.model, self._data)
        J = pin.getFrameJacobian(self.model, self._data, link, pin.ReferenceFrame.LOCAL)
        J = J[:, self._order]
        return np.vstack((J[3:], J[:3] - cross_matrix(offset) @ J[3:]))

    def frame_velocity(self, q: Array, v: ArrayLike, frame: Frame) -> Array:
        """Spatial velocity of a frame, angular first, in link axes."""
        return self.frame_jacobian(q, frame) @ np.asarray(v, dtype=float)

    def inverse_osim(self, q: Array, G: Array, frames: Sequence[Frame]) -> Array:
        """J G (Gᵀ H G)⁻¹ Gᵀ Jᵀ, the frames' rows stacked."""
        J = np.vstack([self.frame_jacobian(q, f) for f in frames]) @ G
        return J @ np.linalg.solve(self.projected_mass(q, G), J.T)

    def mass(self, *, with_root: bool = True) -> float:
        """Total mass; ``with_root=False`` leaves out the root link."""
        return sum(m for n, (m, _) in self._masses.items() if with_root or n != self.root)

    def center_of_mass(self, q: Array, *, with_root: bool = True) -> Array:
        """Centre of mass in the world, the (possibly fixed) root link included by default."""
        pin.framesForwardKinematics(self.model, self._data, q)
        total = np.zeros(3)
        for name, (mass, center) in self._masses.items():
            if with_root or name != self.root:
                total += mass * self._data.oMf[self._link_frame(name)].act(center)
        return total / self.mass(with_root=with_root)

    def energy(self, q: Array, v: ArrayLike, *, with_root: bool = True) -> tuple[float, float]:
        """Kinetic and potential energy; the latter is zero with the centre of mass at the origin.

        The root link's constant share counts by default, also on a fixed base.
        """
        v = np.asarray(v, dtype=float)
        kinetic = 0.5 * v @ self.mass_matrix(q) @ v
        weight = self.mass(with_root=with_root) * self.model.gravity.linear
        return float(kinetic), -float(weight @ self.center_of_mass(q, with_root=with_root))

    def centroidal_momentum(self, q: Array, v: ArrayLike, *, with_root: bool = True) -> Array:
        """Momentum about the centre of mass, angular first, in world axes."""
        pin.forwardKinematics(self.model, self._data, q, self._theirs(v))
        total = pin.Force.Zero()
        for i in range(1, self.model.njoints):
            total += self._data.oMi[i].act(self.model.inertias[i] * self._data.v[i])
        linear, angular = total.linear.copy(), total.angular.copy()
        angular -= np.cross(self.center_of_mass(q, with_root=with_root), linear)
        return np.concatenate((angular, linear))
