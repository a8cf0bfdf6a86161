"""Kinodynamic planning: motions within limits that reach goals with the least torque.

A motion over equal time steps is one factor graph (Xie and Dellaert, section III-B): positions,
velocities, accelerations, torques and contact forces; trapezoidal integrators, the equations of
motion and goals as exact factors; limits of all joints, including dependent ones, as barriers
(:mod:`robomodel.estimation.solve`). The times at which points stand on the ground are arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics import actuator_map, crba, frame_pose, rnea
from robomodel.dynamics.actuators.efforts import shared
from robomodel.dynamics.contact.points import points_jacobian
from robomodel.dynamics.kinematics.frames import FrameKey, FrameLike, frame_key, place, pose
from robomodel.dynamics.kinematics.state import Configuration, State
from robomodel.dynamics.recursions.efpa import touching
from robomodel.errors import did_you_mean, no_model, warn
from robomodel.estimation.factors import (
    Combination,
    ConstantVelocity,
    Dynamics,
    Errors,
    FactorBase,
    Marker,
    Prior,
    Reading,
    States,
    TracedFactor,
    Trapezoid,
)
from robomodel.estimation.graph import Graph, Values
from robomodel.estimation.problems import spaces
from robomodel.estimation.solve import InteriorPointResult, LinearSolver, minimize_inside
from robomodel.estimation.spaces import Configurations, Space, Vectors
from robomodel.model.arguments import as_array, as_numbers
from robomodel.model.configurations.following import integrate_open
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, dot
from robomodel.tolerances import NOTHING

BAUMGARTE = 20.0  # 1/s: rate at which drift of stance points decays
# weight of contact forces relative to torques, so that redundant ones are unique
FORCE_WEIGHT = 1e-3
LIGHT = 1e-2  # inertia of a coordinate that moves others, in parts of the largest per weight


@dataclass(frozen=True, eq=False)
class Goal:
    """Exact conditions at a time; all but the time are optional.

    Attributes:
        time: An index, negative from the end.
        q: Configuration (nq,).
        v: Velocities (nv,).
        points: Positions (3,) [m] in the world, by links or (link, offset) as keys.
    """

    time: int
    q: ArrayLike | None = None
    v: ArrayLike | None = None
    points: Mapping[FrameLike, ArrayLike] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Stance:
    """Points that stand on the ground for some time; at other times no force acts on them.

    Attributes:
        frames: The points: links, or (link, offset).
        first: The first time at which they stand.
        stop: The time after the last one.
        friction: Coefficient of friction of the contacts.
        normal: Direction of the contacts' normal forces on the robot (world axes).
        at: Where they stand (k, 3) [m, world axes]; None: where they are at the start.
    """

    frames: Sequence[FrameLike]
    first: int
    stop: int
    friction: float = 0.8
    normal: Sequence[float] = (0.0, 0.0, 1.0)
    at: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class Obstacle:
    """A sphere that points of the robot must avoid at all times of the plan.

    Attributes:
        center: Its centre (3,) [m, world axes].
        radius: Least distance of the points from the centre [m].
        frames: The points: links, or (link, offset).
    """

    center: ArrayLike
    radius: float
    frames: Sequence[FrameLike]


@dataclass(frozen=True, eq=False)
class Plan:
    """A planned motion, one row per time.

    Attributes:
        model: The robot.
        times: Times (T,) [s].
        q: Configurations (T, nq).
        v: Velocities (T, nv).
        a: Accelerations (T, nv).
        tau: Torques (T, nv).
        points: The points on which contact forces act.
        forces: Forces on these (T, k, 3) [N, world axes].
        cost: ½ ∫ Σ (tau / weight)² dt, by the trapezoidal rule.
        residual: The largest error of the equations of motion [N m, N].
        margin: The smallest margin of all limits, in their units.
        violation: Norm of the errors of all exact factors.
        iterations: Number of iterations.
        converged: Whether the solver converged.
    """

    model: Model
    times: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    points: tuple[FrameKey, ...]
    forces: Array
    cost: float
    residual: float
    margin: float
    violation: float
    iterations: int
    converged: bool

    def controller(
        self, stiffness: float = 0.0, damping: float = 0.0
    ) -> Callable[[float, Array, Array], Array]:
        """Feed-forward torques with feedback, tau(t, q, v), for :func:`robomodel.simulate`.

        Torques are interpolated linearly between the plan's times.

        Args:
            stiffness: Feedback on the driven coordinates' deviation from the plan [N m/rad, N/m];
                needed if the motion is unstable.
            damping: Feedback on their velocities' deviation [N m s/rad, N s/m].

        Returns:
            controller: The function of time, q and v.
        """
        model, times = self.model, self.times
        h = float(times[1] - times[0])
        driven = np.any(self.tau != 0.0, axis=0)

        def torques(t: float, q: Array, v: Array) -> Array:
            i = min(max(int(t / h), 0), len(times) - 2)
            s = min(max(t / h - i, 0.0), 1.0)
            tau: Array = (1.0 - s) * self.tau[i] + s * self.tau[i + 1]
            if stiffness or damping:
                speed = (1.0 - s) * self.v[i] + s * self.v[i + 1]
                way = h * (s * self.v[i] + 0.5 * s * s * (self.v[i + 1] - self.v[i]))
                target = integrate_open(model, self.q[i], way)
                back = stiffness * model.difference(q, target) + damping * (speed - v)
                tau = tau + np.where(driven, back, 0.0)
            return tau

        return torques


def plan(
    model: Model,
    count: int,
    step: float,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    goals: Sequence[Goal] = (),
    stances: Sequence[Stance] = (),
    obstacles: Sequence[Obstacle] = (),
    prior: ArrayLike | None = None,
    positions: Bounds | None = None,
    velocities: Mapping[str, float] | None = None,
    torques: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | Literal["inertia"] | None = None,
    start: Values | None = None,
    tolerance: float = 1e-5,
    parameter: float | None = None,
    least: float = 1e-6,
    max_iterations: int = 300,
    linear_solver: LinearSolver = "augmented",
    progress: Callable[[int, float, float, float], None] | None = None,
) -> Plan:
    """Plan the motion with the least torque over ``count`` times, from q and v.

    Limits are the file's, of all joints, including dependent ones; infinite limits do not act. The
    floating base gets no torque. Torques of actuators that drive through gears and belts are
    limited at the actuator; if the transmission ratio depends on the configuration, limit the
    coordinates' torques instead. Springs and damping of the file act. Warns (RuntimeWarning) if
    the plan did not converge.

    Args:
        model: The robot.
        count: Number of times.
        step: Time between them [s].
        q: Configuration (nq,) at the start.
        v: Velocities (nv,) at the start; default at rest.
        goals: Exact conditions at given times.
        stances: Points that stand on the ground, and when.
        obstacles: Spheres that points avoid.
        prior: Densities of a Gaussian process prior over the motion, one or (nv,), as of
            :meth:`.factors.ConstantVelocity.noise`: accelerations cost, too, and the more, the
            smaller the density. Without one, only torques cost.
        positions: (lower, upper) by joint, replacing the file's.
        velocities: Limits by joint, replacing the file's.
        torques: Limits by joint or by actuator, replacing the file's.
        weights: Torques [N m, N] that cost the same, by coordinate (default 1); "inertia": in
            proportion to each coordinate's inertia at the start, 1 for the largest. A light wrist
            whose torques cost no more than those of the shoulder is spun to move the arm, at any
            speed that no limit excludes: the least torque is then one that no robot can have.
        start: Initial guess ("q", "v", "a", "tau" and, with stances, "f"; default: interpolated
            from q to the last goal with a q).
        tolerance: When a step with the last barrier predicts a gain below ``tolerance`` (1 + cost),
            the solver only closes the exact factors and ends.
        parameter: Initial μ of the barrier as in :func:`minimize_inside`, relative to the initial
            cost (at least 1) per margin.
        least: Final μ, in the same unit.
        max_iterations: Largest number of iterations.
        linear_solver: As of :func:`minimize_inside`.
        progress: A function that is called with the iteration, μ, cost and violation.

    Returns:
        plan: The motion.

    Raises:
        ValueError: Goals, stances or limits do not fit the model.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> goal = rm.estimation.Goal(4, q=model.configuration({"joint1": 0.9}))
        >>> plan = rm.estimation.plan(model, 5, 0.05, q, goals=[goal])
        >>> plan.q.shape
        (5, 3)
    """
    if not isinstance(model, Model):
        raise no_model(model)
    at = as_array(q, model.nq, "q", "nq")
    speed = np.zeros(model.nv) if v is None else as_array(v, model.nv, "v", "nv")
    model.check(at, speed)
    problem = _PlanningProblem(
        model, count, step, tuple(goals), tuple(stances), _weights(model, at, weights),
        tuple(obstacles), prior,
    )  # fmt: skip
    graph = problem.graph(at, speed)
    margins = problem.margins(positions or {}, velocities or {}, torques or {})
    begin = problem.start(at, speed) | dict(start or {})
    scale = max(1.0, graph.linearize(graph.checked(begin)).residuals()[0]) / max(1, _rows(margins))
    result = minimize_inside(
        graph, margins, begin, parameter=scale if parameter is None else parameter * scale,
        least=least * scale, tolerance=tolerance, max_iterations=max_iterations,
        linear_solver=linear_solver, progress=progress,
    )  # fmt: skip
    found = problem.plan(result)
    if not found.converged:
        problem.say_what_spins(found)
    return found


def _weights(
    model: Model, q: Array, given: Mapping[str, float] | Literal["inertia"] | None
) -> dict[str, float]:
    """Torques that cost the same, by coordinate, from the argument of :func:`plan`."""
    if not isinstance(given, str):
        return dict(given or {})
    if given != "inertia":
        raise ValueError(f"weights are numbers by coordinate, or 'inertia', got '{given}'")
    inertia = np.diagonal(crba(model, q))
    driven = [i for i in range(model.nv) if i not in _base(model)]
    return {model.dof_names[i]: float(inertia[i] / np.max(inertia[driven])) for i in driven}


def _base(model: Model) -> tuple[int, ...]:
    """The coordinates of a floating base."""
    if not model.floating_base:
        return ()
    names = [joint.name for joint in model.joints]
    node = model.nodes[names.index(model.floating_base)]
    return tuple(range(model.nv)[model.clusters[node.cluster].v])


def _unit(normal: Sequence[float]) -> Array:
    return np.asarray(np.array(normal, dtype=float) / np.linalg.norm(normal))


def _rows(graph: Graph) -> int:
    return sum(term.factor.rows * len(term.times) for term in graph.terms)


@dataclass(frozen=True, eq=False)
class _PlanningProblem:
    """A planning problem as two graphs: exact factors and costs, and margins."""

    model: Model
    count: int
    step: float
    goals: tuple[Goal, ...]
    stances: tuple[Stance, ...]
    weights: dict[str, float]
    obstacles: tuple[Obstacle, ...]
    prior: ArrayLike | None

    def __post_init__(self) -> None:
        if self.count < 2 or not self.step > 0.0:
            raise ValueError("a plan has two times or more, a positive step apart")
        for goal in self.goals:
            if not -self.count <= goal.time < self.count:
                raise ValueError(f"a goal's time {goal.time} is outside of 0 … {self.count - 1}")
            if goal.time % self.count == 0:
                raise ValueError("a goal at time 0: the state there is given, by q and v")
            self._reachable(goal)
        for stance in self.stances:
            if not 0 <= stance.first < stance.stop <= self.count:
                raise ValueError(
                    f"a stance from {stance.first} to {stance.stop} is outside of 0 … {self.count}"
                )
            if not stance.friction > 0.0 or not math.isfinite(stance.friction):
                raise ValueError("a stance's friction is a positive number")
            if not stance.frames:
                raise ValueError("a stance needs one point or more")
            normal = as_array(stance.normal, 3, "a stance's normal", "3")
            if normal.ndim != 1 or not 0.0 < float(np.linalg.norm(normal)) < math.inf:
                raise ValueError(f"a stance's normal is a direction (3,), got {stance.normal!r}")
            points = (len(stance.frames), 3)
            if stance.at is not None and as_numbers(stance.at, "at").shape not in (
                points,
                (1, 3),
                (3,),
            ):
                raise ValueError(
                    f"where a stance's points come to rest has shape {points}, got "
                    f"{np.shape(stance.at)}"
                )
        for obstacle in self.obstacles:
            if not 0.0 < obstacle.radius < math.inf:
                raise ValueError(f"an obstacle's radius must be positive, got {obstacle.radius}")
        for name, weight in self.weights.items():
            self._check_name(name, self.model.dof_names, "coordinate")
            if not 0.0 < weight < math.inf:
                raise ValueError(f"the weight of '{name}' must be positive, got {weight}")

    def _reachable(self, goal: Goal) -> None:
        """Raise for goals that no motion can reach: not finite, or with open loops."""
        if goal.q is not None or goal.v is not None:
            self.model.check(self.model.neutral() if goal.q is None else goal.q, goal.v)
        for frame, position in goal.points.items():
            if not np.all(np.isfinite(as_array(position, 3, "a goal", "3"))):
                raise ValueError(f"a goal of {frame!r} must be finite, got {position!r}")

    def _check_name(self, name: str, names: Sequence[str], what: str) -> None:
        if name not in names:
            raise ValueError(
                f"no {what} '{name}' in '{self.model.name}'{did_you_mean(name, names)}"
            )

    @cached_property
    def points(self) -> tuple[FrameKey, ...]:
        """All points that stand at some time."""
        keys = (frame_key(frame) for stance in self.stances for frame in stance.frames)
        return tuple(dict.fromkeys(keys))

    def chosen(self, stance: Stance) -> tuple[int, ...]:
        """Indices of a stance's points in ``points``."""
        return tuple(self.points.index(frame_key(frame)) for frame in stance.frames)

    @cached_property
    def weight(self) -> Array:
        """Torques (nv,) that cost the same."""
        return np.array([self.weights.get(name, 1.0) for name in self.model.dof_names], dtype=float)

    @cached_property
    def spaces(self) -> dict[str, Space]:
        result = spaces(self.model, forces=True)
        return result | {"f": Vectors(3 * len(self.points))} if self.points else result

    @cached_property
    def base(self) -> tuple[int, ...]:
        """The coordinates of a floating base."""
        return _base(self.model)

    def graph(self, q: Array, v: Array) -> Graph:
        """The graph of exact factors and costs."""
        model, count, space = self.model, self.count, self.spaces
        graph = Graph(space, count)
        graph = graph.add(Prior("q", space["q"]), 0.0, times=[0], data=q)
        graph = graph.add(Prior("v", space["v"]), 0.0, times=[0], data=v)
        for name, rate in (("q", "v"), ("v", "a")):
            graph = graph.add(Trapezoid(name, rate, self.step, space[name]), 0.0)
        if self.prior is not None:
            process = ConstantVelocity("q", "v", self.step, space["q"])
            graph = graph.add(process, process.noise(self.prior))
        graph = graph.add(ContactDynamics(model, self.points), 0.0)
        driven = tuple(i for i in range(model.nv) if i not in self.base)
        if self.base:
            graph = graph.add(Reading("tau", self.base, model.nv), 0.0)
        for times, h in ((range(1, count - 1), self.step), ((0, count - 1), self.step / 2)):
            sigmas = self.weight[list(driven)] / math.sqrt(h)
            if len(times) and driven:
                graph = graph.add(Reading("tau", driven, model.nv), sigmas, times=list(times))
        for goal in self.goals:
            at = [goal.time % count]
            for name, size, target in (("q", model.nq, goal.q), ("v", model.nv, goal.v)):
                if target is not None:
                    data = as_array(target, size, name, f"n{name}")
                    graph = graph.add(Prior(name, space[name]), 0.0, times=at, data=data)
            for frame, position in goal.points.items():
                graph = graph.add(Marker(model, frame), 0.0, times=at,
                                  data=as_array(position, 3, "a goal", "3"))  # fmt: skip
        return self._held(graph, q) if self.points else graph

    def _held(self, graph: Graph, q: Array) -> Graph:
        """Add conditions on stance points, and on forces that must be zero."""
        free = np.ones((self.count, len(self.points)), dtype=bool)
        for stance in self.stances:
            chosen = self.chosen(stance)
            free[stance.first : stance.stop, list(chosen)] = False
            where = self.where(stance, q)
            times = np.arange(stance.first, stance.stop)
            held = fixed_points(self.model, self.points, chosen, BAUMGARTE)
            graph = graph.add(held, 0.0, times=times, data=BAUMGARTE**2 * where.ravel())
            if stance.first > 0:  # its points reach their places with zero velocity
                keys = tuple(self.points[i] for i in chosen)
                for key, here in zip(keys, where, strict=True):
                    graph = graph.add(Marker(self.model, key), 0.0, times=times[:1], data=here)
                graph = graph.add(point_velocity(self.model, keys), 0.0, times=times[:1])
        for i in range(len(self.points)):
            rows = (3 * i, 3 * i + 1, 3 * i + 2)
            for flags, noise in ((free[:, i], 0.0), (~free[:, i], 1.0 / FORCE_WEIGHT)):
                if np.any(flags):
                    reading = Reading("f", rows, 3 * len(self.points))
                    graph = graph.add(reading, noise, times=np.flatnonzero(flags))
        return graph

    def where(self, stance: Stance, q: Array) -> Array:
        """Positions of a stance's points (k, 3)."""
        if stance.at is not None:
            return np.broadcast_to(as_numbers(stance.at, "at"), (len(stance.frames), 3))
        if stance.first > 0:
            raise ValueError("a stance that begins later says where its points stand: at=")
        return np.array([frame_pose(self.model, q, frame)[:3, 3] for frame in stance.frames])

    # ---- limits

    def margins(
        self, positions: Bounds, velocities: Mapping[str, float], torques: Mapping[str, float]
    ) -> Graph:
        """The graph of the margins of all limits."""
        model = self.model
        single = {joint.name: joint for joint in model.joints if joint.nv == 1}
        for name in (*positions, *velocities):
            self._check_name(name, list(single), "joint of one freedom")
        for name, (low, high) in positions.items():
            if not float(low) < float(high):
                raise ValueError(f"positions of '{name}' must be (lower, upper), got {low}, {high}")
        for what, sizes in (("velocity", velocities), ("torque", torques)):
            for name, size in sizes.items():
                if not float(size) > 0.0:
                    raise ValueError(f"the {what} limit of '{name}' must be positive, got {size}")
        at = {n: (j.lower, j.upper) for n, j in single.items() if j.type != "continuous"}
        at |= {n: (float(low), float(high)) for n, (low, high) in positions.items()}
        speed = {n: (j.least_velocity, j.velocity_limit) for n, j in single.items()}
        speed |= {n: (-float(x), float(x)) for n, x in velocities.items()}
        graph = Graph(self.spaces, self.count)
        joints = joint_margins(model, at, speed)
        if joints.rows:  # not at the first time, whose state is given
            graph = graph.add(joints, 1.0, times=np.arange(1, self.count))
        matrix, least, most = self._torques(torques)
        if len(matrix):
            every = Reading("tau", tuple(range(model.nv)), model.nv)
            below, above = np.isfinite(least), np.isfinite(most)
            both = (
                np.concatenate([matrix[below], -matrix[above]]),
                np.concatenate([least[below], -most[above]]),
            )
            graph = graph.add(Combination(every, *both), 1.0)
        for obstacle in self.obstacles:
            center = as_array(obstacle.center, 3, "an obstacle's centre", "3")
            for frame in obstacle.frames:
                clearance = Clearance(Marker(model, frame), obstacle.radius)
                graph = graph.add(clearance, 1.0, times=np.arange(1, self.count), data=center)
        for stance in self.stances:
            x, y, z = _unit(stance.normal).tolist()
            chosen = self.chosen(stance)
            cone = ConeMargins(len(self.points), chosen, stance.friction, (x, y, z))
            graph = graph.add(cone, 1.0, times=np.arange(stance.first, stance.stop))
        return graph

    def _torques(self, limits_by_name: Mapping[str, float]) -> tuple[Array, Array, Array]:
        """Rows on tau (m, nv), and the least and the greatest values (m,) of each."""
        model = self.model
        efforts = {x.name: (x.least_effort, x.effort_limit) for x in model.joints
                   if x.nv == 1 and x.name in model.dof_names}  # fmt: skip
        motors = {x.name: (x.least_effort, x.effort_limit) for x in model.actuators}
        limits = motors or efforts
        for name in limits_by_name:
            self._check_name(name, [*limits, *efforts], "coordinate or actuator")
        asked = {n: (-float(x), float(x)) for n, x in limits_by_name.items()}
        limits = {n: x for n, x in {**limits, **asked}.items() if any(map(math.isfinite, x))}
        rows: list[Array] = []
        for name in limits:
            if name in motors:
                rows.append(self._motors[list(motors).index(name)])
            else:
                rows.append(np.eye(model.nv)[model.dof_names.index(name)])
        together = shared(model) if motors else {}
        rows += [np.eye(model.nv)[i] for i in together]
        ends = np.array([*limits.values(), *together.values()]).reshape(len(rows), 2)
        return np.array(rows).reshape(len(rows), model.nv), ends[:, 0], ends[:, 1]

    @cached_property
    def _motors(self) -> Array:
        """The matrix from tau to actuator forces of least norm (nu, nv)."""
        q = np.array(
            [self.model.random_configuration(seed, base_pose="random") for seed in range(3)]
        )
        maps = actuator_map(self.model, q)
        if np.max(np.abs(maps - maps[0])) > NOTHING * np.max(np.abs(maps)):
            raise ValueError(
                f"the actuators of '{self.model.name}' drive it through linkages, so that their "
                "limits change with q: give torques= of its coordinates, infinite ones for motors"
            )
        result: Array = np.linalg.pinv(maps[0])
        return result

    def say_what_spins(self, found: Plan) -> None:
        """Warn of the fastest coordinate if moving it costs next to nothing beside others."""
        inertia = np.diagonal(crba(self.model, found.q[0])) / self.weight
        driven = [i for i in range(self.model.nv) if i not in self.base]
        fastest = max(driven, key=lambda i: float(np.max(np.abs(found.v[:, i]))))
        if inertia[fastest] < LIGHT * np.max(inertia[driven]):
            warn(
                RuntimeWarning(
                    f"the plan moves '{self.model.dof_names[fastest]}' at "
                    f"{np.max(np.abs(found.v[:, fastest])):.0f} rad/s or m/s: its inertia is small "
                    "beside that of others, whose torques cost the same. Give weights='inertia', "
                    "or velocities="
                )
            )

    # ---- values

    def start(self, q: Array, v: Array) -> dict[str, Array]:
        """Interpolate from q to the last goal with a configuration, at constant speed."""
        model, count = self.model, self.count
        ends = [goal for goal in self.goals if goal.q is not None]
        goal = ends[-1].q if ends else q
        stop = q if goal is None else as_array(goal, model.nq, "q", "nq")
        last = ends[-1].time % count if ends else count - 1
        share = np.minimum(np.arange(count) / max(last, 1), 1.0)
        way = model.difference(q, stop)
        at = model.integrate(np.broadcast_to(q, (count, model.nq)), share[:, None] * way)
        speed = np.zeros((count, model.nv))
        none = np.zeros((count, model.nv))
        result = {"q": at, "v": speed, "a": none, "tau": rnea(model, at, speed, none, passive=True)}
        result["tau"][:, list(self.base)] = 0.0
        if self.points:
            forces = np.zeros((count, len(self.points), 3))
            weight = model.mass * float(np.linalg.norm(model.gravity))
            for stance in self.stances:
                chosen = list(self.chosen(stance))
                push = weight / len(chosen) * _unit(stance.normal)
                forces[stance.first : stance.stop, chosen] = push
            result["f"] = forces.reshape(count, -1)
        return result

    def plan(self, optimum: InteriorPointResult) -> Plan:
        """The plan, with its cost and the residual of the equations of motion."""
        model, count, values = self.model, self.count, optimum.values
        q, v, a, tau = (values[name] for name in ("q", "v", "a", "tau"))
        forces = values["f"].reshape(count, -1, 3) if self.points else np.zeros((count, 0, 3))
        x = [values[name] for name in self.spaces]
        wrong, _ = ContactDynamics(model, self.points).evaluate(x, None)
        power = np.sum((tau / self.weight) ** 2, axis=1)
        cost = 0.5 * float(np.trapezoid(power, dx=self.step))
        times = self.step * np.arange(count, dtype=float)
        return Plan(model, times, q, v, a, tau, self.points, forces, cost,
                    float(np.max(np.abs(wrong), initial=0.0)), optimum.margin, optimum.violation,
                    optimum.iterations, optimum.converged)  # fmt: skip


# ---- factors and margins -------------------------------------------------------------------------


Bounds: TypeAlias = Mapping[str, tuple[float, float]]
TIP = 1e-3  # N: radius by which the tip of a friction cone is rounded, towards the inside


def _point_motion(model: Model, frames: tuple[FrameKey, ...]) -> TracedFactor:
    """Positions, velocities and accelerations (3k,) each of points in the world, concatenated."""

    def build(q: Vector, v: Vector, a: Vector) -> list[Scalar]:
        places = [place(model, key) for key in frames]
        origins = [number for spot in places for number in pose(model, q, spot)[1]]
        rates, accelerations = touching(model, q, v, a, places)
        return [*origins, *rates, *accelerations]

    rates, label = Vectors(model.nv), f"motion of points {frames!r}"
    states: States = {"q": Configurations(model), "v": rates, "a": rates}
    return TracedFactor(model, label, states, 9 * len(frames), build)


def _point_forces(model: Model, frames: tuple[FrameKey, ...]) -> TracedFactor:
    """Jᵀ f (nv,) of forces f (3k,) [N, world axes] at points."""

    def build(q: Vector, forces: Vector) -> list[Scalar]:
        places = [place(model, key) for key in frames]
        state = State(model, q, {spot.body for spot in places})
        jacobian = points_jacobian(model, state, q, places)
        return [dot(column, forces) for column in zip(*jacobian, strict=True)]

    states: States = {"q": Configurations(model), "f": Vectors(3 * len(frames))}
    return TracedFactor(model, f"forces at points {frames!r}", states, model.nv, build)


def _joint_motion(model: Model) -> TracedFactor:
    """Positions, then velocities, of all joints.

    Positions of joints with several freedoms have no limits and are set to zero.
    """
    n = model.n_joint_velocities

    def build(q: Vector, v: Vector) -> list[Scalar]:
        state = Configuration(model, q)
        at: list[Scalar] = [0.0] * n
        for node in model.nodes:
            if node.joint.nv == 1:
                at[node.v] = state.positions[node.q]
        return [*at, *(x for c in model.clusters for x in state.spanning(c, v[c.v]))]

    states: States = {"q": Configurations(model), "v": Vectors(model.nv)}
    return TracedFactor(model, "motion of joints", states, 2 * n, build)


# ---- conditions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ContactDynamics(FactorBase):
    """The equations of motion with forces "f" (3k,) [N, world axes] at points of a model.

    e = rnea(q, v, a) - tau - Jᵀ f, with the file's springs and damping. Variables q, v, a, tau and,
    with ``frames``, f.
    """

    model: Model
    frames: tuple[FrameKey, ...] = ()

    def __post_init__(self) -> None:
        names = ("q", "v", "a", "tau", "f") if self.frames else ("q", "v", "a", "tau")
        self._describe(names, self.model.nv)

    @cached_property
    def _parts(self) -> tuple[Dynamics, TracedFactor]:
        return Dynamics(self.model, "tau", passive=True), _point_forces(self.model, self.frames)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The error; data are additional forces."""
        dynamics, pull = self._parts
        e, slopes = dynamics.evaluate(x[:4], data)
        if not self.frames:
            return e, slopes
        force, (by_q, by_f) = pull.evaluate((x[0], x[4]), None)
        return e - force, [slopes[0] - by_q, *slopes[1:], -by_f]


def fixed_points(
    model: Model, frames: tuple[FrameKey, ...], chosen: Sequence[int], rate: float
) -> Combination:
    """Stance points: c̈ + 2 ``rate`` ċ + ``rate``² c - data = 0 (Baumgarte).

    One condition per time, on accelerations, since more would overdetermine the integrators; their
    drift decays with ``rate`` [1/s]. ``chosen`` are the indices of the ``frames`` that stand, at
    data (3k,) over ``rate``².
    """
    rows = [3 * i + j for i in chosen for j in range(3)]
    weights = np.array([rate**2, 2.0 * rate, 1.0])
    return Combination(
        _point_motion(model, frames), np.kron(weights, np.eye(3 * len(frames))[rows])
    )


def point_velocity(model: Model, frames: tuple[FrameKey, ...]) -> Combination:
    """Velocities of points in the world, less data [m/s]."""
    size = 3 * len(frames)
    return Combination(_point_motion(model, frames), np.eye(3 * size)[size : 2 * size])


# ---- margins -------------------------------------------------------------------------------------


def joint_margins(model: Model, positions: Bounds, speeds: Bounds) -> Combination:
    """Margins of positions and speeds of all joints, including dependent ones, to their limits.

    ``positions``, ``speeds``: (lower, upper) by joint names; infinite limits are left out.
    """
    n = model.n_joint_velocities
    at = {joint.name: node.v for joint, node in zip(model.joints, model.nodes, strict=True)}
    rows = [
        (first + at[name], sign, bound)
        for first, bounds in ((0, positions), (n, speeds))
        for name, (lower, upper) in bounds.items()
        for sign, bound in ((1.0, lower), (-1.0, upper))
        if math.isfinite(bound)
    ]
    matrix = np.zeros((len(rows), 2 * n))
    for row, (column, sign, _) in zip(matrix, rows, strict=True):
        row[column] = sign
    return Combination(_joint_motion(model), matrix, np.array([s * bound for _, s, bound in rows]))


@dataclass(frozen=True)
class Clearance(FactorBase):
    """Distance of a point from a sphere, to first order [m]: (|p - data|² - r²) / 2r.

    ``data``: the centre (3,).
    """

    point: Marker
    radius: float

    def __post_init__(self) -> None:
        self._describe(("q",), 1)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The margin, positive outside the sphere."""
        away, (slope,) = self.point.evaluate(x, data)
        squares = np.sum(away * away, axis=1, keepdims=True)
        e = (squares - self.radius**2) / (2.0 * self.radius)
        return e, [away[:, None] @ slope / self.radius]


@dataclass(frozen=True)
class ConeMargins(FactorBase):
    """Contact forces push and lie in their friction cones: margins μ f_n - |f_t| and f_n [N].

    ``chosen``: indices of the points in "f" (3k,) with this ``friction`` and ``normal`` (3,) [world
    axes].
    """

    count: int
    chosen: tuple[int, ...]
    friction: float
    normal: tuple[float, float, float]

    def __post_init__(self) -> None:
        self._describe(("f",), 2 * len(self.chosen))

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The margins, positive inside; the tip of the cone is rounded towards the inside."""
        n = np.array(self.normal)
        across = np.eye(3) - np.outer(n, n)
        f = x[0].reshape(len(x[0]), self.count, 3)[:, list(self.chosen)]
        push, side = f @ n, f @ across
        size = np.sqrt(np.einsum("...i,...i->...", side, side) + TIP**2)
        slope = np.zeros((len(f), self.rows, 3 * self.count))
        for row, i in enumerate(self.chosen):
            here = slice(3 * i, 3 * i + 3)
            slope[:, 2 * row, here] = self.friction * n - side[:, row] / size[:, row, None]
            slope[:, 2 * row + 1, here] = n
        e = np.stack([self.friction * push - size, push], axis=-1)
        return e.reshape(len(f), self.rows), [slope]
