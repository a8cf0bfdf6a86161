"""Tasks of controllers: errors and their Jacobians, over scalars of any kind.

A task is a part of a traced function: from a state and a target it computes its error e, the rows
J of the velocity ẋ = J v by which e is reduced, and J̇ v. All tasks of a controller are traced
together. Names, weights and errors are those of pink (Caron et al.,
https://github.com/stephane-caron/pink).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.actuators import maps
from robomodel.dynamics.kinematics import frames, momentum
from robomodel.dynamics.kinematics.frames import FrameLike, Reference, frame_key
from robomodel.dynamics.kinematics.state import Configuration, Matrix, State, moving
from robomodel.errors import UnknownNameError, as_names, as_real, check_names
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.trace import Traced, handles
from robomodel.model.arguments import as_numbers, common_batch
from robomodel.model.elements import independent_rates, joint_slices
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, added, dot, maximum, subtracted, transposed
from robomodel.spatial import (
    Mat,
    MatrixRotation,
    Motion,
    Transform,
    Vec,
    apply,
    cross,
    matmul,
    minus,
)
from robomodel.spatial import transpose as transposed3
from robomodel.spatial.logarithms import jlog6, log6
from robomodel.tolerances import WRITTEN

Cost: TypeAlias = float | Sequence[float]
POSE = (4, 4)  # shape of a target that is a homogeneous matrix


@dataclass(frozen=True)
class Instant:
    """A state at which tasks and limits are evaluated; without v it is at rest.

    The model may be in tangent coordinates: rows are then over these.
    """

    model: Model
    q: Vector
    v: Vector = ()

    @cached_property
    def configuration(self) -> Configuration:
        """The positions and G."""
        return Configuration(self.model, self.q)

    @cached_property
    def state(self) -> State:
        """The positions and velocities."""
        return State(self.model, self.q, (), self.v)

    @property
    def still(self) -> list[Scalar]:
        """Zero acceleration."""
        return [0.0] * self.model.nv

    @cached_property
    def jacobian(self) -> Matrix:
        """G, row by row, over all independent velocities."""
        result: Matrix = []
        for cluster in self.model.clusters:
            for row in self.configuration.rows[cluster.spanning_v]:
                result.append(self.still)
                result[-1][cluster.v] = row
        return result

    @property
    def growth(self) -> Scalar:
        """Σ G² of linkages."""
        total: Scalar = 0.0
        for cluster in self.model.clusters:
            if cluster.implicit:
                for row in self.configuration.rows[cluster.spanning_v]:
                    total = total + dot(row, row)
        return total

    def bias(self, row: int) -> Scalar:
        """An entry of g."""
        return self.state.bias[row] if self.v else 0.0


@dataclass(frozen=True, slots=True)
class TaskRows:
    """A task at a state: error e, J with ẋ = J v, J̇ v, and -∂e/∂q, which is J if None."""

    error: Sequence[Scalar]
    jacobian: Matrix
    bias: Sequence[Scalar]
    slope: Matrix | None = None

    @property
    def steps(self) -> Matrix:
        """-∂e/∂q."""
        return self.jacobian if self.slope is None else self.slope


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """Base of tasks.

    Attributes:
        gain: In inverse kinematics the share of the error that a step removes; in inverse dynamics
            the gain [1/s²] in ẍ = gain e - 2 √gain ẋ.
        lm_damping: Levenberg and Marquardt's damping, a factor of the weighted error's square.
        hard: Holds exactly, with priority over tasks that are not hard. Directions with zero cost
            are left out; costs have no other effect.
        name: Its key among the targets; default the name of its frame or joints.
    """

    gain: float = 1.0
    lm_damping: float = 0.0
    hard: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        for each in ("frame", "root"):
            if hasattr(self, each):
                object.__setattr__(self, each, frame_key(getattr(self, each)))
        if hasattr(self, "names"):
            object.__setattr__(self, "names", as_names(self.names, "names"))
        if not isinstance(self.name, str):
            raise TypeError(f"a task's name is text, not {self.name!r}")
        object.__setattr__(self, "name", self.name or self._default_name())
        for each in ("gain", "lm_damping"):
            value = as_real(getattr(self, each), each)
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f"{each} of task '{self.name}' is a number from 0 on, got {value}")
            object.__setattr__(self, each, value)
        object.__setattr__(self, "hard", bool(self.hard))
        for each in self._cost_names():
            value = getattr(self, each)
            cost = as_numbers(value, each)
            if cost.ndim > 1 or not np.all(np.isfinite(cost)) or np.any(cost < 0.0):
                raise ValueError(
                    f"{each} of task '{self.name}' is a number from 0 on, or one for each "
                    f"direction, got {value!r}"
                )
            numbers = tuple(cost.ravel().tolist())
            object.__setattr__(self, each, numbers if cost.ndim else numbers[0])

    def _cost_names(self) -> list[str]:
        return [each.name for each in fields(self) if each.name.endswith("cost")]

    def _spread(self, which: str, size: int) -> list[float]:
        """A cost for each of ``size`` directions."""
        cost: Cost = getattr(self, which)
        if isinstance(cost, Sequence):
            if len(cost) != size:
                raise ValueError(
                    f"{which} of task '{self.name}' is one number or {size}, got {len(cost)}"
                )
            return list(cost)
        return [cost] * size

    def structure(self) -> Self:
        """The task without numbers, on which its program depends."""
        costs: dict[str, Any] = dict.fromkeys(self._cost_names(), 1.0)
        return replace(self, gain=1.0, lm_damping=0.0, name="task", **costs)

    def check(self, model: Model) -> None:
        """Raises UnknownNameError or ValueError if it does not fit the model."""
        for each in ("frame", "root"):
            if hasattr(self, each):
                frames.place(model, getattr(self, each))

    def _default_name(self) -> str:
        frame: FrameLike = getattr(self, "frame", "")
        return frame if isinstance(frame, str) else frame[0]

    @abstractmethod
    def costs(self, model: Model) -> list[float]:
        """The cost of each row."""

    @abstractmethod
    def target(self, model: Model) -> tuple[int, ...]:
        """The shape of the target."""

    @abstractmethod
    def rows(self, at: Instant, target: Vector) -> TaskRows:
        """The error and rows at a state; scalars of any kind."""


# ---- frames and points ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _PoseTask(Task):
    """A task whose target is a pose, with costs of its positions and orientations."""

    def costs(self, model: Model) -> list[float]:
        """Costs of three rotations, then of three translations."""
        turn = self._spread("orientation_cost", 3)
        return turn + self._spread("position_cost", 3)

    def target(self, model: Model) -> tuple[int, ...]:
        """The shape of a pose."""
        return POSE


@dataclass(frozen=True)
class FrameTask(_PoseTask):
    """A frame's pose: e = log6(X⁻¹ X*) in the frame's axes, angular first (pink's FrameTask).

    In inverse kinematics J is Jlog6(X*⁻¹ X) times the frame's Jacobian in its own axes. In inverse
    dynamics ẋ is the frame's velocity and ẍ its acceleration in its own axes, that of its origin as
    a point. Target: homogeneous matrix (..., 4, 4).

    Attributes:
        frame: A link's name, or (link, offset).
        position_cost: [1/m], one for all directions or one for each of the frame's axes.
        orientation_cost: [1/rad], likewise.
    """

    frame: FrameLike
    position_cost: Cost = 1.0
    orientation_cost: Cost = 1.0

    def rows(self, at: Instant, target: Vector) -> TaskRows:
        """The logarithm of the motion to the target."""
        place = placed(at, self.frame)
        error, log = _way(frames.pose(at.model, at.q, place), target)
        bias: Sequence[Scalar] = [0.0] * 6
        if at.v:
            bias = frames.acceleration(at.model, at.q, at.v, at.still, place)
        jacobian = frames.jacobian(at.model, at.q, place)
        return TaskRows(error, jacobian, bias, product(log, jacobian))


@dataclass(frozen=True)
class RelativeFrameTask(_PoseTask):
    """A frame's pose relative to another frame; otherwise a :class:`FrameTask`.

    Target: the pose (..., 4, 4) of ``frame`` in ``root``. ẋ and ẍ are the velocity and the
    acceleration of the frame relative to the other one.

    Attributes:
        frame: A link's name, or (link, offset).
        root: The frame in which the pose is expressed.
        position_cost: [1/m], one for all directions or one for each of the frame's axes.
        orientation_cost: [1/rad], likewise.
    """

    frame: FrameLike
    root: FrameLike
    position_cost: Cost = 1.0
    orientation_cost: Cost = 1.0

    def rows(self, at: Instant, target: Vector) -> TaskRows:
        """The logarithm of the motion to the target."""
        place, base = (placed(at, x) for x in (self.frame, self.root))
        (turn, origin), (base_turn, base_origin) = (
            frames.pose(at.model, at.q, each) for each in (place, base)
        )
        back = transposed3(base_turn)
        relative = matmul(back, turn), apply(back, minus(origin, base_origin))
        error, log = _way(relative, target)
        x = Transform((MatrixRotation(relative[0]),), relative[1])
        carried = [
            x.to_child(Motion.of(column)).entries()
            for column in transposed(frames.jacobian(at.model, at.q, base))
        ]
        jacobian = [
            subtracted(row, other)
            for row, other in zip(
                frames.jacobian(at.model, at.q, place), transposed(carried), strict=True
            )
        ]
        bias = _relative_bias(at, jacobian)
        return TaskRows(error, jacobian, bias, product(log, jacobian))


def _relative_bias(at: Instant, jacobian: Matrix) -> list[Scalar]:
    """J̇ v of a relative motion in the moving frame's axes, its linear part that of a point."""
    if not at.v:
        return [0.0] * 6
    rates: dict[Traced, Scalar] = {}
    for cluster in at.model.clusters:
        rates |= moving(at.model, cluster, handles(at.q), at.state.velocities)
    motion = [dot(row, at.v) for row in jacobian]
    change = differentiate(handles(at.q)[0].trace, motion, [rates])[0]
    turned = cross((motion[0], motion[1], motion[2]), (motion[3], motion[4], motion[5]))
    return added(change, [0.0, 0.0, 0.0, *turned])


@dataclass(frozen=True)
class PointTask(Task):
    """A point of a link: e = p* - p in world axes. Target: the point (..., 3) in the world [m].

    Attributes:
        frame: A link's name, for its origin, or (link, offset).
        cost: [1/m], one for all directions or one for each of the world's axes.
    """

    frame: FrameLike
    cost: Cost = 1.0

    def costs(self, model: Model) -> list[float]:
        """The costs of three directions."""
        return self._spread("cost", 3)

    def target(self, model: Model) -> tuple[int, ...]:
        """The shape of a point."""
        return (3,)

    def rows(self, at: Instant, target: Vector) -> TaskRows:
        """The vector to the target."""
        place = placed(at, self.frame, "local_world_aligned")
        return point_rows(at, place, target)


def point_rows(at: Instant, place: frames.FramePlacement, target: Vector) -> TaskRows:
    """The vector from a frame's origin to a point, and the origin's J and J̇ v, in world axes."""
    origin = frames.pose(at.model, at.q, place)[1]
    bias: Sequence[Scalar] = [0.0] * 3
    if at.v:
        bias = frames.acceleration(at.model, at.q, at.v, at.still, place)[3:]
    jacobian = frames.jacobian(at.model, at.q, place)[3:]
    return TaskRows(subtracted(target, origin), jacobian, bias)


def product(a: Sequence[Vector], b: Sequence[Vector]) -> Matrix:
    """The matrix product A B."""
    columns = transposed(b)
    return [[dot(row, column) for column in columns] for row in a]


def placed(at: Instant, frame: FrameLike, reference: Reference = "local") -> frames.FramePlacement:
    """The placement of a frame on its body."""
    return frames.place(at.model, frame_key(frame), reference)


def _way(pose: tuple[Mat, Vec], target: Vector) -> tuple[list[Scalar], Sequence[Vector]]:
    """log6(X⁻¹ X*), and its derivative by motions of X in its own axes, with opposite sign."""
    rotation, origin = pose
    wanted: Mat = (
        (target[0], target[1], target[2]),
        (target[4], target[5], target[6]),
        (target[8], target[9], target[10]),
    )
    back = transposed3(rotation)
    away = minus((target[3], target[7], target[11]), origin)
    error = log6(matmul(back, wanted), apply(back, away))
    return error, jlog6([-x for x in error])


# ---- the whole robot -----------------------------------------------------------------------------


@dataclass(frozen=True)
class CenterOfMassTask(Task):
    """The centre of mass: e = c* - c in world axes. Target: (..., 3) [m].

    Attributes:
        cost: [1/m], one for all directions or one for each of the world's axes.
    """

    cost: Cost = 1.0

    def _default_name(self) -> str:
        return "center_of_mass"

    def check(self, model: Model) -> None:
        """Raises ValueError if the robot has no mass."""
        if not model.mass:
            raise ValueError(f"'{model.name}' has no mass, and so no centre of mass")

    def costs(self, model: Model) -> list[float]:
        """The costs of three directions."""
        return self._spread("cost", 3)

    def target(self, model: Model) -> tuple[int, ...]:
        """The shape of a point."""
        return (3,)

    def rows(self, at: Instant, target: Vector) -> TaskRows:
        """The vector to the target."""
        center = momentum.center_of_mass(at.model, at.q)
        bias: Sequence[Scalar] = [0.0] * 3
        if at.v:
            bias = momentum.center_of_mass_acceleration(at.model, at.q, at.v, at.still)
        jacobian = momentum.center_of_mass_jacobian(at.model, at.q)
        return TaskRows(subtracted(target, center), jacobian, bias)


@dataclass(frozen=True)
class PostureTask(Task):
    """All independent joints but a floating base: e = difference(q, q*). Target: q* (..., nq).

    Attributes:
        cost: [1/rad, 1/m], one for all or one for each of the velocities that are not the base's.
    """

    cost: Cost = 1.0

    def _default_name(self) -> str:
        return "posture"

    def costs(self, model: Model) -> list[float]:
        """A cost for each velocity except a floating base's."""
        return self._spread("cost", model.nv - _base(model))

    def target(self, model: Model) -> tuple[int, ...]:
        """The shape of a configuration."""
        return (model.nq,)

    def rows(self, at: Instant, target: Vector) -> TaskRows:
        """The differences of the independent joints."""
        model, base = at.model, _base(at.model)
        error, jacobian, bias = at.still, [at.still for _ in range(model.nv)], at.still
        for cluster in model.clusters:
            for body, part, along in joint_slices(model, cluster):
                node = model.nodes[body]
                here, there = at.q[cluster.q][part], target[cluster.q][part]
                displacement = node.joint.displacement(here, there)
                for i, x, row in zip(
                    independent_rates(cluster, along), displacement, node.freedoms, strict=True
                ):
                    if i is not None:
                        error[i], jacobian[i], bias[i] = x, at.jacobian[row], at.bias(row)
        return TaskRows(error[base:], jacobian[base:], bias[base:])


def _base(model: Model) -> int:
    """Number of velocities of a floating base."""
    return 6 if model.floating_base else 0


@dataclass(frozen=True)
class JointTask(Task):
    """Joints with one freedom, dependent ones and rotors too: e = x* - x.

    Target: positions (..., number of names), or for one joint a number (...).

    Attributes:
        names: Joints' names.
        cost: [1/rad, 1/m], one for all or one for each.
    """

    names: str | Sequence[str]
    cost: Cost = 1.0

    def _default_name(self) -> str:
        return self.names[0] if len(self.names) == 1 else "joints"

    def check(self, model: Model) -> None:
        """Raises an error for unknown joints, and for joints with several freedoms."""
        check_joints(model, self.names)

    def costs(self, model: Model) -> list[float]:
        """A cost for each joint."""
        return self._spread("cost", len(self.names))

    def target(self, model: Model) -> tuple[int, ...]:
        """The shape of the joints' positions."""
        return (len(self.names),)

    def rows(self, at: Instant, target: Vector) -> TaskRows:
        """The differences of positions."""
        nodes = [at.model.nodes[at.model.joint_names.index(name)] for name in self.names]
        return TaskRows(
            [x - at.configuration.positions[node.q] for x, node in zip(target, nodes, strict=True)],
            [at.jacobian[node.v] for node in nodes],
            [at.bias(node.v) for node in nodes],
        )


def check_joints(model: Model, names: Sequence[str]) -> None:
    """Raises UnknownNameError, or ValueError for joints with several freedoms."""
    what = f" of '{model.name}' is not known"
    check_names(names, model.joint_names, "joint ", what, error=UnknownNameError)
    for name in names:
        joint = model.joints[model.joint_names.index(name)]
        if joint.nv != 1:
            raise ValueError(
                f"joint '{name}' has {joint.nv} freedoms: follow its link by a FrameTask"
            )


@dataclass(frozen=True)
class ActuatorTask(Task):
    """Motors' positions, see :func:`robomodel.actuator_positions`. Target: (..., number).

    Attributes:
        names: Actuators' names; none for all of them.
        cost: In units of 1/position, one for all or one for each.
    """

    names: str | Sequence[str] = ()
    cost: Cost = 1.0

    def _default_name(self) -> str:
        return self.names[0] if len(self.names) == 1 else "actuators"

    def _indices(self, model: Model) -> list[int]:
        names = [each.name for each in model.actuators]
        return [names.index(name) for name in self.names] if self.names else [*range(len(names))]

    def check(self, model: Model) -> None:
        """Raises UnknownNameError for unknown actuators."""
        names = [each.name for each in model.actuators]
        what = f" of '{model.name}' is not known"
        check_names(self.names, names, "actuator ", what, error=UnknownNameError)
        if not names:
            raise ValueError(f"'{model.name}' has no actuators")

    def costs(self, model: Model) -> list[float]:
        """A cost for each actuator."""
        return self._spread("cost", len(self._indices(model)))

    def target(self, model: Model) -> tuple[int, ...]:
        """The shape of the actuators' positions."""
        return (len(self._indices(model)),)

    def rows(self, at: Instant, target: Vector) -> TaskRows:
        """The differences of positions, and rows of Bᵀ."""
        indices = self._indices(at.model)
        positions = maps.positions(at.model, at.q)
        columns = transposed(maps.actuator_map(at.model, at.q))
        actuators = [at.model.actuators[i] for i in indices]
        bias = [dot([k for _, k in x.rows], [at.bias(r) for r, _ in x.rows]) for x in actuators]
        error = [x - positions[i] for x, i in zip(target, indices, strict=True)]
        return TaskRows(error, [columns[i] for i in indices], bias)


# ---- tasks of a controller -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskPiece:
    """A task without its numbers, in a program.

    ``kept``: its rows that have a cost. ``first``, ``size``: slice of its target in the numbers of
    all targets. ``weights``: index of its gain, damping and costs among all weights.
    """

    task: Task
    kept: tuple[int, ...]
    first: int
    size: int
    weights: int

    def rows(self, at: Instant, targets: Vector) -> TaskRows:
        """The rows that have a cost, and J of steps for them."""
        every = self.task.rows(at, targets[self.first : self.first + self.size])
        return TaskRows(
            [every.error[i] for i in self.kept],
            [every.jacobian[i] for i in self.kept],
            [every.bias[i] for i in self.kept],
            [every.steps[i] for i in self.kept],
        )

    def numbers(self, weights: Vector) -> tuple[Scalar, Scalar, list[Scalar]]:
        """Its gain, damping, and the costs of its rows."""
        at = self.weights
        return weights[at], weights[at + 1], list(weights[at + 2 : at + 2 + len(self.kept)])


class TaskSet:
    """The tasks of a controller on a model: their pieces, weights and targets."""

    def __init__(self, model: Model, tasks: Task | Iterable[Task]) -> None:
        self.tasks = (tasks,) if isinstance(tasks, Task) else tuple(tasks)
        self.pieces: list[TaskPiece] = []
        self.shapes: list[tuple[int, ...]] = []
        weights: list[float] = []
        targets = 0
        names: set[str] = set()
        for task in self.tasks:
            if not isinstance(task, Task):
                raise TypeError(f"tasks are FrameTask, PointTask and others, not {task!r}")
            if task.name in names:
                raise ValueError(f"two tasks are called '{task.name}': give one a name=")
            names.add(task.name)
            task.check(model)
            costs, shape = task.costs(model), task.target(model)
            kept = tuple(i for i, cost in enumerate(costs) if cost)
            size = math.prod(shape)
            self.pieces.append(TaskPiece(task.structure(), kept, targets, size, len(weights)))
            self.shapes.append(shape)
            targets += size
            weights += [task.gain, task.lm_damping, *(costs[i] for i in kept)]
        self.weights = np.array(weights)
        self.size = targets

    def numbers(self, targets: Mapping[Task | str, ArrayLike]) -> Array:
        """All targets (..., size) one after the other; errors name the task."""
        parts: list[Array] = []
        batched = False
        for task, shape in zip(self.tasks, self.shapes, strict=True):
            try:
                value = targets[task.name]
            except (KeyError, TypeError, IndexError):
                value = self._by_task(task, targets)
            array = value if type(value) is np.ndarray else as_numbers(value, task.name)
            if array.dtype != np.float64:
                array = as_numbers(array, f"the target of '{task.name}'")
            if array.shape == shape:
                parts.append(array.ravel())
                continue
            array = self._shaped(task, array, shape)
            batch = array.shape[: array.ndim - len(shape)]
            batched = batched or bool(batch)
            parts.append(array.reshape(*batch, math.prod(shape)))
        if len(targets) > len(self.tasks):
            self._check_keys(targets)
        if len(parts) == 1:
            return parts[0]
        if not batched:
            return np.concatenate(parts) if parts else np.zeros(0)
        every = {f"'{t.name}'": x for t, x in zip(self.tasks, parts, strict=True)}
        batch = common_batch(**every)
        return np.concatenate(
            [np.broadcast_to(part, (*batch, part.shape[-1])) for part in parts], axis=-1
        )

    def _by_task(self, task: Task, targets: Mapping[Task | str, ArrayLike]) -> ArrayLike:
        if not isinstance(targets, Mapping):
            what = type(targets).__name__
            raise TypeError(f"targets maps tasks, or their names, to targets, not {what}")
        if task in targets:
            return targets[task]
        self._check_keys(targets)
        raise ValueError(f"no target of task '{task.name}' among the targets")

    def _check_keys(self, targets: Mapping[Task | str, ArrayLike]) -> None:
        names = [each.name for each in self.tasks]
        for key in targets:
            if key not in self.tasks:
                name = key.name if isinstance(key, Task) else str(key)
                check_names([name], names, "no task ", error=UnknownNameError)

    def _shaped(self, task: Task, array: Array, shape: tuple[int, ...]) -> Array:
        if shape == (1,) and (array.ndim == 0 or array.shape[-1] != 1):
            array = array[..., None]
        if array.shape[max(array.ndim - len(shape), 0) :] != shape:
            expected = ", ".join(["...", *map(str, shape)])
            raise ValueError(
                f"the target of '{task.name}' has the shape ({expected}), got {array.shape}"
            )
        return array

    def refuse(self, targets: Array) -> None:
        """Raises ValueError for targets that are not finite, or are no poses."""
        for task, shape, piece in zip(self.tasks, self.shapes, self.pieces, strict=True):
            x = targets[..., piece.first : piece.first + piece.size]
            if not np.isfinite(x).all():
                raise ValueError(f"the target of '{task.name}' is not finite")
            if shape == POSE:
                pose = x.reshape(*x.shape[:-1], *POSE)
                rotation = pose[..., :3, :3]
                unit = rotation @ np.swapaxes(rotation, -1, -2) - np.eye(3)
                if np.abs(unit).max(initial=0.0) > WRITTEN or np.any(np.linalg.det(rotation) < 0.0):
                    raise ValueError(
                        f"the target of '{task.name}' is no pose: its axes are not orthonormal and "
                        "right-handed"
                    )


def unfit(pieces: Iterable[TaskPiece], targets: Vector) -> Scalar:
    """The squared error by which axes of target poses are not orthonormal and right-handed."""
    worst: Scalar = 0.0
    for piece in pieces:
        if isinstance(piece.task, _PoseTask):
            at = targets[piece.first : piece.first + piece.size]
            x, y, z = ((at[i], at[i + 1], at[i + 2]) for i in (0, 4, 8))
            off = minus(cross(x, y), z)
            numbers = [*off, dot(x, x) - 1.0, dot(y, y) - 1.0, dot(x, y)]
            worst = maximum(worst, dot(numbers, numbers))
    return worst
