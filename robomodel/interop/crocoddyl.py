"""Robots with loops in Crocoddyl: states and differential action models on compiled kernels.

Configurations move along their independent velocities with loops closed, so an optimal control
problem needs neither constraints nor multipliers for loops. Controls are the forces of the
actuators. Needs the package crocoddyl (extra ``crocoddyl``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robomodel.arrays import Array
from robomodel.control.tasks import Instant, Task, TaskPiece, TaskSet, product
from robomodel.dynamics import contact_aba, contact_aba_derivatives
from robomodel.dynamics.actuators.maps import actuator_map
from robomodel.dynamics.algorithm import AlgorithmSpec
from robomodel.dynamics.kinematics.frames import FrameKey, FrameLike, frame_keys, place
from robomodel.dynamics.kinematics.state import Matrix, position_directions
from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.passive import passive_force
from robomodel.dynamics.recursions.reduced import reduced
from robomodel.errors import MissingPackageError, as_real, no_model
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.trace import Traced
from robomodel.model.arguments import as_array, as_numbers
from robomodel.model.configurations import moving
from robomodel.model.configurations.following import FOLLOWED
from robomodel.model.configurations.functions import difference, moved
from robomodel.model.derived import traced
from robomodel.model.elements import independent_rates, joint_slices
from robomodel.model.model import Model
from robomodel.scalars import (
    Scalar,
    Vector,
    added,
    dot,
    gram,
    solve,
    subtracted,
    transposed,
)
from robomodel.tolerances import CLOSED

try:
    import crocoddyl
except ImportError:
    raise MissingPackageError("optimal control needs", "crocoddyl", "crocoddyl") from None


class State(crocoddyl.StateAbstract):
    """State x = [q | v] of a robot; tangent vectors are [δq | δv], with 2 nv numbers.

    Args:
        model: The robot.
    """

    def __init__(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise no_model(model)
        super().__init__(model.nq + model.nv, 2 * model.nv)
        self.model = model
        self._one = np.eye(2 * model.nv)
        every = zip(model.joints, model.nodes, strict=True)
        self._flat = all(node.joint.nv == 1 or not joint.independent for joint, node in every)
        self._coordinates = np.array([*_coordinates(model), *range(model.nq, self.nx)])
        self.pending: dict[object, dict[int, ActionData]] = {}

    def zero(self) -> Array:
        """The neutral configuration at rest."""
        return np.concatenate([self.model.neutral(), np.zeros(self.model.nv)])

    def rand(self) -> Array:
        """A random configuration, with velocities between -1 and 1."""
        rng = np.random.default_rng()
        v = rng.uniform(-1.0, 1.0, self.model.nv)
        return np.concatenate([self.model.random_configuration(rng, base_pose="random"), v])

    def diff(self, x0: Array, x1: Array) -> Array:
        """The tangent vector from x0 to x1."""
        if self._flat:
            way: Array = (x1 - x0)[self._coordinates]
            return way
        n = self.model.nq
        return np.concatenate([difference(self.model).call(x0[:n], x1[:n]), x1[n:] - x0[n:]])

    def integrate(self, x: Array, dx: Array) -> Array:
        """The state x moved along a tangent vector, with loops closed."""
        n, m = self.model.nq, self.model.nv
        q, gap = moved(self.model, FOLLOWED).call(x[:n], dx[:m])
        if not gap <= CLOSED:
            q = moving.integrate(self.model, x[:n], dx[:m])
        return np.concatenate([q, x[n:] + dx[m:]])

    def Jdiff(self, x0: Array, x1: Array, firstsecond: Any = None) -> Any:
        """The derivatives of ``diff`` with respect to x0 and x1."""
        if self._flat:
            return _chosen([-self._one, self._one], firstsecond)
        parts = [self._whole(x) for x in self._slopes(x0, x1)]
        parts[0][self.model.nv :] *= -1.0
        return _chosen(parts, firstsecond)

    def Jintegrate(self, x: Array, dx: Array, firstsecond: Any = None) -> Any:
        """The derivatives of ``integrate`` with respect to x and dx."""
        if self._flat:
            return _chosen([self._one, self._one], firstsecond)
        first, second = self._slopes(x, self.integrate(x, dx))
        inverse = np.linalg.inv(second)
        return _chosen([self._whole(-inverse @ first), self._whole(inverse)], firstsecond)

    def JintegrateTransport(self, x: Array, dx: Array, matrix: Array, firstsecond: Any) -> Array:
        """The rows of a matrix transported by ``Jintegrate``."""
        if self._flat:
            return matrix
        result: Array = self.Jintegrate(x, dx, firstsecond) @ matrix
        return result

    def _slopes(self, x0: Array, x1: Array) -> tuple[Array, Array]:
        """The derivatives of the difference of configurations."""
        n = self.model.nq
        slopes: tuple[Array, Array] = difference_slopes(self.model)(x0[:n], x1[:n])
        return slopes

    def _whole(self, block: NDArray[Any]) -> Array:
        result = np.eye(2 * self.model.nv)
        result[: self.model.nv, : self.model.nv] = block
        return result


def _coordinates(model: Model) -> list[int]:
    """Indices in q of the position of each velocity; for joints with one freedom only."""
    places = [0] * model.nv
    for cluster in model.clusters:
        for _, part, along in joint_slices(model, cluster):
            for k, i in enumerate(independent_rates(cluster, along)):
                if i is not None:
                    places[i] = cluster.q.start + part.start + k
    return places


def _put(into: Array, values: ArrayLike) -> None:
    """Write a matrix; those with one row or one column come from Crocoddyl as vectors."""
    into[...] = np.reshape(values, into.shape)


def _chosen(parts: list[Array], which: Any) -> Any:
    if which is None or which == crocoddyl.Jcomponent.both:
        return parts
    return parts[0 if which == crocoddyl.Jcomponent.first else 1]


class StateResidual(crocoddyl.ResidualModelAbstract):
    """The residual ``state.diff(reference, x)`` with its exact derivative.

    Crocoddyl's ResidualModelState takes the identity as derivative for states other than
    Pinocchio's.

    Args:
        state: The robot's :class:`State`.
        reference: [q | v] of the reference state.
        nu: Number of actuators.
    """

    def __init__(self, state: State, reference: ArrayLike, nu: int) -> None:
        super().__init__(state, state.ndx, nu, True, True, False)
        self.reference = as_array(reference, state.nx, "reference", "nq + nv")

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """The difference from the reference."""
        data.r[:] = self.state.diff(self.reference, x)

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Its derivative with respect to x."""
        which = crocoddyl.Jcomponent.second
        _put(data.Rx, self.state.Jdiff(self.reference, x, which))


# ---- traced functions ----------------------------------------------------------------------------


def _applied(model: Model, q: Vector, v: Vector, u: Vector) -> list[Scalar]:
    """tau from actuators, springs and dampers."""
    tau = [dot(row, u) for row in actuator_map(model, q)]
    return added(tau, passive_force(model, q, v))


@traced
def difference_slopes(model: Model) -> TracedFunction:
    """(q0, q1) → ∂ difference(q0, q1) with respect to q0 and q1 (nv by nv each)."""
    n = model.nv

    def build(q0: Vector, q1: Vector) -> list[Scalar]:
        parts = (_difference_slopes(model, q0, q1, q) for q in (q0, q1))
        return [x for rows in parts for row in rows for x in row]

    sizes = {"q0": model.nq, "q1": model.nq}
    return TracedFunction("difference_slopes", sizes, {"by_q0": (n, n), "by_q1": (n, n)}, build)


def _difference_slopes(model: Model, q0: Vector, q1: Vector, q: Vector) -> Matrix:
    """∂ difference(q0, q1) with respect to ``q``, which is one of them."""
    at, sign = Instant(model, q), -1.0 if q is q0 else 1.0
    rows: Matrix = [[0.0] * model.nv for _ in range(model.nv)]
    for cluster in model.clusters:
        for body, part, along in joint_slices(model, cluster):
            node = model.nodes[body]
            places = independent_rates(cluster, along)
            if all(i is None for i in places):
                continue
            way = node.joint.displacement(q0[cluster.q][part], q1[cluster.q][part])
            log = node.joint.jlog([sign * x for x in way])
            slopes = product(log, [at.jacobian[r] for r in node.freedoms])
            for i, row in zip(places, slopes, strict=True):
                if i is not None:
                    rows[i] = [sign * x for x in row]
    return rows


@traced
def accelerations(model: Model) -> TracedFunction:
    """(q, v, u) → a and tau."""

    def build(q: Vector, v: Vector, u: Vector = ()) -> list[Scalar]:
        tau = _applied(model, q, v, u)
        return [*aba(reduced(model, "aba"), q, v, tau), *tau]

    return TracedFunction(
        "accelerations", _sizes(model), {"a": (model.nv,), "tau": (model.nv,)}, build
    )


def _sizes(model: Model) -> dict[str, int]:
    return {"q": model.nq, "v": model.nv} | _controls(model)


def _controls(model: Model) -> dict[str, int]:
    return {"u": len(model.actuators)} if model.actuators else {}


@traced
def force_slopes(model: Model) -> TracedFunction:
    """(q, v, u) → ∂tau/∂(q, v) (nv by 2 nv) and B."""
    n, nu = model.nv, len(model.actuators)

    def build(q: Sequence[Traced], v: Sequence[Traced], u: Vector = ()) -> list[Scalar]:
        return [*_force_slopes(model, q, v, u), *(x for row in actuator_map(model, q) for x in row)]

    results = {"tau_x": (n, 2 * n), "B": (n, nu)}
    return TracedFunction("force_slopes", _sizes(model), results, build)


def _force_slopes(
    model: Model, q: Sequence[Traced], v: Sequence[Traced], u: Vector
) -> list[Scalar]:
    directions = position_directions(model, q)
    directions += [{x: 1.0} for x in v]
    columns = differentiate(q[0].trace, _applied(model, q, v, u), directions)
    return [x for row in transposed(columns) for x in row]


@traced
def acceleration_slopes(model: Model) -> TracedFunction:
    """(q, v, u) → ∂a/∂(q, v) (nv by 2 nv) and ∂a/∂u (nv by nu)."""
    n, nu = model.nv, len(model.actuators)
    spec = AlgorithmSpec("aba_derivatives")

    def build(q: Sequence[Traced], v: Sequence[Traced], u: Vector = ()) -> list[Scalar]:
        trace = q[0].trace
        tau = [trace.stop_gradient(x) for x in _applied(model, q, v, u)]
        flat = spec.run(spec.tree(model), {"q": q, "v": v, "tau": tau})
        by_q, by_v, inverse = (
            [flat[k * n * n + i * n : k * n * n + (i + 1) * n] for i in range(n)] for k in range(3)
        )
        numbers = _force_slopes(model, q, v, u)
        slopes = transposed([numbers[i * 2 * n : (i + 1) * 2 * n] for i in range(n)])
        b = transposed(actuator_map(model, q))
        result: list[Scalar] = []
        for row, one, other in zip(inverse, by_q, by_v, strict=True):
            result += added([*one, *other], [dot(row, column) for column in slopes])
        return result + [dot(row, column) for row in inverse for column in b]

    return TracedFunction(
        "acceleration_slopes", _sizes(model), {"Fx": (n, 2 * n), "Fu": (n, nu)}, build
    )


@dataclass(frozen=True, slots=True)
class CostLayout:
    """The parts of a cost: pieces of tasks, and whether a reference state counts.

    Its numbers are the length of a step and the cost's factor, targets, weights, costs of controls
    and, if a reference state counts, that state and its costs.
    """

    pieces: tuple[TaskPiece, ...]
    near: bool

    def sizes(self, model: Model) -> tuple[int, ...]:
        """The sizes of these numbers, by kind."""
        targets = max((p.first + p.size for p in self.pieces), default=0)
        weights = max((p.weights + 2 + len(p.kept) for p in self.pieces), default=0)
        states = (model.nq + model.nv, 2 * model.nv) if self.near else (0, 0)
        return 2, targets, weights, len(model.actuators), *states

    def residuals(
        self, model: Model, x: Vector, u: Vector, numbers: Vector
    ) -> tuple[list[Scalar], Matrix, list[Scalar]]:
        """Weighted residuals of x, their derivatives, and weighted controls."""
        n, nq = model.nv, model.nq
        parts: list[Vector] = []
        first = 0
        for size in self.sizes(model):
            parts.append(numbers[first : first + size])
            first += size
        _, targets, weights, pushes, reference, costs = parts
        at = Instant(model, x[:nq])
        errors: list[Scalar] = []
        rows: Matrix = []
        for piece in self.pieces:
            of, each = piece.rows(at, targets), piece.numbers(weights)[2]
            errors += [w * e for w, e in zip(each, of.error, strict=True)]
            rows += [
                [*(-w * y for y in row), *at.still] for w, row in zip(each, of.steps, strict=True)
            ]
        if self.near:
            away = difference(model).build(reference[:nq], x[:nq])
            away = [*away, *subtracted(x[nq:], reference[nq:])]
            slopes = _difference_slopes(model, reference[:nq], at.q, at.q)
            slopes = [[*row, *at.still] for row in slopes]
            slopes += [[1.0 if i == n + j else 0.0 for i in range(2 * n)] for j in range(n)]
            errors += [w * e for w, e in zip(costs, away, strict=True)]
            rows += [[w * y for y in row] for w, row in zip(costs, slopes, strict=True)]
        return errors, rows, [w * each for w, each in zip(pushes, u, strict=True)]


@traced
def cost(model: Model, layout: CostLayout) -> TracedFunction:
    """(x, u, numbers) → a cost ½ |r|², its gradients by x and u, and Gauss-Newton Hessians."""
    n, nu = model.nv, len(model.actuators)
    kinds = layout.sizes(model)

    def build(x: Vector, *further: Vector) -> list[Scalar]:
        u, numbers = further if nu else ((), *further)
        errors, rows, pushes = layout.residuals(model, x, u, numbers)
        weights = numbers[sum(kinds[:3]) :][:nu]
        columns = transposed(rows) if rows else [[] for _ in range(2 * n)]
        return [
            0.5 * (dot(errors, errors) + dot(pushes, pushes)),
            *(dot(column, errors) for column in columns),
            *(w * y for w, y in zip(weights, pushes, strict=True)),
            *(y for row in gram(columns, columns) for y in row),
            *(w * w if i == j else 0.0 for i, w in enumerate(weights) for j in range(nu)),
        ]

    sizes = {"x": model.nq + n} | _controls(model) | {"numbers": sum(kinds)}
    results = {"cost": (1,), "Lx": (2 * n,), "Lu": (nu,), "Lxx": (2 * n, 2 * n), "Luu": (nu, nu)}
    return TracedFunction("cost", sizes, results, build)


@traced
def euler_step(model: Model, layout: CostLayout, *, held: bool) -> TracedFunction:
    """(x, u, numbers[, a]) → x after an Euler step, the largest loop gap, and a cost.

    ``held``: accelerations are an argument, as with contacts.
    """
    nq = model.nq
    sizes = {"x": nq + model.nv} | _controls(model) | {"numbers": sum(layout.sizes(model))}
    sizes |= {"a": model.nv} if held else {}

    def build(*arguments: Vector) -> list[Scalar]:
        of: dict[str, Vector] = dict(zip(sizes, arguments, strict=True))
        x, u, numbers = of["x"], of.get("u", ()), of["numbers"]
        q, v, dt = x[:nq], x[nq:], numbers[0]
        a = of["a"] if held else aba(reduced(model, "aba"), q, v, _applied(model, q, v, u))
        after = [y + dt * z for y, z in zip(v, a, strict=True)]
        *reached, gap = moved(model, FOLLOWED).build(q, [dt * y for y in after])
        errors, _, pushes = layout.residuals(model, x, u, numbers)
        total = 0.5 * (dot(errors, errors) + dot(pushes, pushes))
        return [*reached, *after, gap, numbers[1] * total]

    results: dict[str, tuple[int, ...]] = {"x": (nq + model.nv,), "gap": (), "cost": ()}
    return TracedFunction("euler_step", sizes, results, build)


@traced
def euler_slopes(model: Model, layout: CostLayout) -> TracedFunction:
    """(x, x after a step, numbers, ∂a/∂x[, u, ∂a/∂u]) → derivatives of the step and its cost."""
    n, nu, nq = model.nv, len(model.actuators), model.nq
    kinds = layout.sizes(model)
    sizes = {"x": nq + n, "after": nq + n, "numbers": sum(kinds), "a_x": 2 * n * n}
    sizes |= {"u": nu, "a_u": n * nu} if nu else {}

    def build(
        x: Vector, after: Vector, numbers: Vector, a_x: Vector, u: Vector = (), a_u: Vector = ()
    ) -> list[Scalar]:
        dt, factor = numbers[:2]
        by_x = [[dt * y for y in a_x[i * 2 * n : (i + 1) * 2 * n]] for i in range(n)]
        by_u = [[dt * y for y in a_u[i * nu : (i + 1) * nu]] for i in range(n)]
        for i in range(n):
            by_x[i][n + i] = by_x[i][n + i] + 1.0  # of v after the step, with which q moves by dt v
        q, there = x[:nq], after[:nq]
        start, way = (_difference_slopes(model, q, there, end) for end in (q, there))
        right = [
            [*(dt * y for y in (*row, *other)), *(-y for y in back)]
            for row, other, back in zip(by_x, by_u, start, strict=True)
        ]
        solved = solve(way, right)
        fx = [[*added(row[:n], row[-n:]), *row[n : 2 * n]] for row in solved] + by_x
        fu = [row[2 * n : -n] for row in solved] + by_u
        slopes = cost(model, layout).build(*((x, u, numbers) if nu else (x, numbers)))[1:]
        return [y for row in (*fx, *fu) for y in row] + [factor * y for y in slopes]

    results = {
        "Fx": (2 * n, 2 * n), "Fu": (2 * n, nu),
        "Lx": (2 * n,), "Lu": (nu,), "Lxx": (2 * n, 2 * n), "Luu": (nu, nu),
    }  # fmt: skip
    return TracedFunction("euler_slopes", sizes, results, build)


# ---- action models -------------------------------------------------------------------------------


class DifferentialActionModel(crocoddyl.DifferentialActionModelAbstract):
    """ẋ = [v | a(q, v, u)] with a cost; u are the forces of the actuators.

    Springs and damping of the file act; dry friction does not. Contact points have no acceleration.
    The cost is that of ``costs`` plus ½ Σ |W e|² over tasks, ``state.diff(reference, x)`` and u.

    Args:
        state: The robot's :class:`State`.
        costs: A ``crocoddyl.CostModelSum`` over the state, or None.
        tasks: Task → target: adds ½ |W e|² with the task's costs W; gains and dampings are not
            used.
        contacts: Contact points, as links or (link, offset); their forces are not limited.
        state_cost: W of the state, one number or one for each of its 2 nv directions.
        control_cost: W of the controls, one number or one for each.
        reference: [q | v] of the reference state; by default the neutral configuration at rest.

    Raises:
        UnknownNameError: A link is not in the model.
    """

    def __init__(
        self,
        state: State,
        costs: Any = None,
        *,
        tasks: Mapping[Task, ArrayLike] | None = None,
        contacts: FrameLike | Sequence[FrameLike] = (),
        state_cost: ArrayLike = 0.0,
        control_cost: ArrayLike = 0.0,
        reference: ArrayLike | None = None,
    ) -> None:
        if not isinstance(state, State):
            raise TypeError(f"state is a robomodel.crocoddyl.State, not {type(state).__name__}")
        model = state.model
        if costs is None:
            costs = crocoddyl.CostModelSum(state, len(model.actuators))
        super().__init__(state, len(model.actuators), costs.nr)
        self.model, self.costs = model, costs
        self.contacts: tuple[FrameKey, ...] = frame_keys(contacts)
        for frame in self.contacts:
            place(model, frame)
        of_tasks = TaskSet(model, list(tasks or {}))
        targets = of_tasks.numbers(dict((tasks or {}).items()))
        of_tasks.refuse(targets)
        near = _weights(state_cost, state.ndx, "state_cost")
        pushes = _weights(control_cost, self.nu, "control_cost")
        self.layout = CostLayout(tuple(of_tasks.pieces), bool(near.any()))
        self.numbers = np.concatenate([[1.0, 1.0], targets, of_tasks.weights, pushes])
        if self.layout.near:
            to = state.zero() if reference is None else reference
            to = as_array(to, state.nx, "reference", "nq + nv")
            self.numbers = np.concatenate([self.numbers, to, near])
        self._cost = cost(model, self.layout)

    def createData(self) -> DifferentialActionData:
        """Create its data."""
        return DifferentialActionData(self)

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Compute accelerations and cost; without u, the cost only."""
        if u is None:
            self.costs.calc(data.costs, x)
        else:
            data.xout[:] = self.accelerations(data, x, u)
            self.costs.calc(data.costs, x, u)
        data.of = self.cost_of(x, u)
        data.cost = data.costs.cost + float(data.of[0][0])

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Compute the derivatives of both; call calc first."""
        if u is None:
            self.costs.calcDiff(data.costs, x)
        else:
            by_x, by_u = self.slopes(x, u, data.tau)
            _put(data.Fx, by_x)
            _put(data.Fu, by_u)
            self.costs.calcDiff(data.costs, x, u)
        for part, more in zip((data.Lx, data.Lu, data.Lxx, data.Luu), data.of[1:], strict=True):
            _put(part, part + np.reshape(more, part.shape))

    def accelerations(self, data: Any, x: Array, u: Array) -> Array:
        """The accelerations; stores tau and contact forces in ``data``."""
        n = self.model.nq
        a: Array
        a, data.tau = accelerations(self.model)(*self._given(x, u))
        if self.contacts:
            a, data.forces = contact_aba(
                self.model, x[:n], x[n:], data.tau, self.contacts, unilateral=False
            )
        return a

    def slopes(self, x: Array, u: Array, tau: Array) -> tuple[Array, Array]:
        """The derivatives (..., nv, 2 nv) and (..., nv, nu) of accelerations by x and u."""
        given = self._given(x, u)
        if not self.contacts:
            result: tuple[Array, Array] = acceleration_slopes(self.model)(*given)
            return result
        by_q, by_v, by_tau, *_ = contact_aba_derivatives(
            self.model, given[0], given[1], tau, self.contacts
        )
        slopes, b = force_slopes(self.model)(*given)
        return np.concatenate([by_q, by_v], axis=-1) + by_tau @ slopes, by_tau @ b

    def cost_of(self, x: Array, u: Array | None, numbers: Array | None = None) -> Any:
        """The cost and its derivatives; also for batches."""
        pushed = ((np.zeros(self.nu) if u is None else u),) if self.nu else ()
        return self._cost(x, *pushed, self.numbers if numbers is None else numbers)

    def _given(self, x: Array, u: Array) -> tuple[Array, ...]:
        n = self.model.nq
        return (x[..., :n], x[..., n:], u) if self.nu else (x[..., :n], x[..., n:])


def _weights(cost: ArrayLike, size: int, name: str) -> Array:
    """Costs as one number for each of ``size`` directions."""
    weights = as_numbers(cost, name)
    if weights.shape not in ((), (size,)) or not np.all(weights >= 0.0):
        raise ValueError(f"{name} is a number from 0 on, or {size} of them, got {cost!r}")
    return np.broadcast_to(weights, (size,))


class DifferentialActionData(crocoddyl.DifferentialActionDataAbstract):
    """Data of a :class:`DifferentialActionModel`."""

    def __init__(self, model: DifferentialActionModel) -> None:
        super().__init__(model)
        self.shared = crocoddyl.DataCollectorAbstract()
        self.costs = model.costs.createData(self.shared)
        self.costs.shareMemory(self)
        self.tau = np.zeros(model.model.nv)
        self.forces = np.zeros((len(model.contacts), 3))
        self.of: Any = None


class IntegratedActionModelEuler(crocoddyl.ActionModelAbstract):
    """Crocoddyl's action model of this name for a :class:`DifferentialActionModel`, in kernels.

    A step and its cost are one kernel. The first ``calcDiff`` after steps computes the derivatives
    of all knots of the state that have changed, as one batch.

    Args:
        differential: The differential action model.
        dt: Length of a step [s].
    """

    def __init__(self, differential: DifferentialActionModel, dt: float = 1e-3) -> None:
        if not isinstance(differential, DifferentialActionModel):
            raise TypeError(
                "differential is a robomodel.crocoddyl.DifferentialActionModel, not "
                f"{type(differential).__name__}"
            )
        super().__init__(differential.state, differential.nu, differential.nr)
        self.differential, self.dt = differential, as_real(dt, "dt")
        if not 0.0 <= self.dt < math.inf:
            raise ValueError(f"dt is a number from 0 on [s], got {dt!r}")
        self.numbers = differential.numbers.copy()
        self.numbers[:2] = self.dt
        model, layout, contacts = differential.model, differential.layout, differential.contacts
        self._step = euler_step(model, layout, held=bool(contacts))
        self._pending = self.state.pending.setdefault((layout, contacts), {})

    def createData(self) -> ActionData:
        """Create its data."""
        return ActionData(self)

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Compute x after a step and dt times the cost; without u, x and the cost at x."""
        action, costs = self.differential, self.differential.costs
        data.x[:] = x
        data.moves = u is not None
        data.u[:] = 0.0 if u is None else u
        self._pending[id(data)] = data
        if not data.moves:
            data.xnext[:] = x
            total = float(action.cost_of(x, u)[0][0])
        else:
            given = [x, u, self.numbers] if self.nu else [x, self.numbers]
            if action.contacts:
                given.append(action.accelerations(data, x, data.u))
            numbers = self._step.fill(*given, out=data.numbers)
            data.next[:] = numbers[:-2]
            gap, total = numbers[-2:].tolist()
            if not gap <= CLOSED:
                model, n = action.model, action.model.nq
                data.next[:n] = moving.integrate(model, x[:n], self.dt * data.next[n:])
        if costs.nr_total:
            costs.calc(data.costs, *((x,) if u is None else (x, u)))
            total += (self.dt if data.moves else 1.0) * data.costs.cost
        data.cost = total

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Compute the derivatives of both; call calc with the same x and u first."""
        if id(data) in self._pending:
            _differentiate(list(self._pending.values()))
            self._pending.clear()
        costs = self.differential.costs
        if costs.nr_total and not data.complete:
            data.complete = True
            costs.calcDiff(data.costs, *((x,) if u is None else (x, u)))
            share = self.dt if data.moves else 1.0
            of = data.costs
            for part, more in zip(data.parts[2:], (of.Lx, of.Lu, of.Lxx, of.Luu), strict=True):
                part[...] += share * np.reshape(more, part.shape)
            _put(data.Lxu, share * of.Lxu)


class ActionData(crocoddyl.ActionDataAbstract):
    """Data of an :class:`IntegratedActionModelEuler`."""

    def __init__(self, model: IntegratedActionModelEuler) -> None:
        super().__init__(model)
        action = model.differential
        self.model = model
        self.costs = action.costs.createData(crocoddyl.DataCollectorAbstract())
        self.x, self.u = np.zeros(model.state.nx), np.zeros(model.nu)
        self.tau, self.forces = np.zeros(action.model.nv), np.zeros((len(action.contacts), 3))
        self.moves = False
        self.complete = False  # whether derivatives of ``costs`` are included
        self.numbers = np.zeros(model.state.nx + 2)
        self.next = self.xnext
        self.parts = self.Fx, self.Fu, self.Lx, self.Lu, self.Lxx, self.Luu


def _differentiate(knots: list[ActionData]) -> None:
    """Compute the derivatives of these knots, whose models have the same layout."""
    action = knots[0].model.differential
    model, count = action.model, len(knots)
    x, u, after = (np.array([getattr(knot, name) for knot in knots]) for name in ("x", "u", "next"))
    numbers = np.array([knot.model.numbers for knot in knots])
    going = np.array([knot.moves for knot in knots])
    if going.all():
        by_x, by_u = action.slopes(x, u, np.array([knot.tau for knot in knots]))
    else:
        numbers[~going, :2] = 0.0, 1.0
        by_x = np.zeros((count, model.nv, 2 * model.nv))
        by_u = np.zeros((count, model.nv, action.nu))
        if going.any():
            tau = np.array([knot.tau for knot in knots])
            by_x[going], by_u[going] = action.slopes(x[going], u[going], tau[going])
    pushed = (u, by_u.reshape(count, -1)) if action.nu else ()
    parts = euler_slopes(model, action.layout)(x, after, numbers, by_x.reshape(count, -1), *pushed)
    for k, knot in enumerate(knots):
        for part, values in zip(knot.parts, parts, strict=True):
            _put(part, values[k])
        knot.complete = False
