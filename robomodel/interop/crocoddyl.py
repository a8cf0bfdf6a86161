"""Robots with loops in Crocoddyl: states and differential action models, by compiled kernels.

Configurations move along their independent velocities, loops closed, so that a problem of optimal
control has neither constraints nor multipliers for loops. Controls are the forces of the actuators.
Needs the package crocoddyl (extra ``crocoddyl``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robomodel.control.tasks import Instant, Piece, Task, TaskSet, product
from robomodel.dynamics import contact_aba, contact_aba_derivatives
from robomodel.dynamics.actuators.maps import actuator_map
from robomodel.dynamics.algorithm import AlgorithmSpec
from robomodel.dynamics.kinematics.frames import FrameKey, FrameLike, frame_keys, place
from robomodel.dynamics.kinematics.state import position_directions
from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.passive import passive_force
from robomodel.dynamics.recursions.reduced import reduced
from robomodel.errors import MissingPackageError, no_model
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.trace import Traced
from robomodel.model.arguments import as_array
from robomodel.model.closure import CLOSED
from robomodel.model.configurations import moving
from robomodel.model.configurations.following import FOLLOWED
from robomodel.model.configurations.functions import difference, moved
from robomodel.model.derived import traced
from robomodel.model.elements import independent_rates, joint_slices
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, added, dot, gram, transposed

try:
    import crocoddyl
except ImportError:
    raise MissingPackageError("optimal control needs", "crocoddyl", "crocoddyl") from None


class State(crocoddyl.StateAbstract):
    """Configurations and velocities of a robot, x = [q | v]; tangents are [δq | δv], 2 nv numbers.

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

    def zero(self) -> Array:
        """The neutral configuration at rest."""
        return np.concatenate([self.model.neutral(), np.zeros(self.model.nv)])

    def rand(self) -> Array:
        """A random configuration, and velocities from -1 to 1."""
        rng = np.random.default_rng()
        v = rng.uniform(-1.0, 1.0, self.model.nv)
        return np.concatenate([self.model.random_configuration(rng), v])

    def diff(self, x0: Array, x1: Array) -> Array:
        """The tangent that leads from x0 to x1."""
        n = self.model.nq
        return np.concatenate([difference(self.model).call(x0[:n], x1[:n]), x1[n:] - x0[n:]])

    def integrate(self, x: Array, dx: Array) -> Array:
        """x moved along a tangent, loops closed."""
        n, m = self.model.nq, self.model.nv
        q, gap = moved(self.model, FOLLOWED).call(x[:n], dx[:m])
        if not gap <= CLOSED:
            q = moving.integrate(self.model, x[:n], dx[:m])
        return np.concatenate([q, x[n:] + dx[m:]])

    def Jdiff(self, x0: Array, x1: Array, firstsecond: Any = None) -> Any:
        """The derivatives of ``diff`` by x0 and x1."""
        if self._flat:
            return _chosen([-self._one, self._one], firstsecond)
        parts = [self._whole(x) for x in self._slopes(x0, x1)]
        parts[0][self.model.nv :] *= -1.0
        return _chosen(parts, firstsecond)

    def Jintegrate(self, x: Array, dx: Array, firstsecond: Any = None) -> Any:
        """The derivatives of ``integrate`` by x and dx."""
        if self._flat:
            return _chosen([self._one, self._one], firstsecond)
        first, second = self._slopes(x, self.integrate(x, dx))
        inverse = np.linalg.inv(second)
        return _chosen([self._whole(-inverse @ first), self._whole(inverse)], firstsecond)

    def JintegrateTransport(self, x: Array, dx: Array, matrix: Array, firstsecond: Any) -> Array:
        """The rows of a matrix carried along by ``Jintegrate``."""
        if self._flat:
            return matrix
        result: Array = self.Jintegrate(x, dx, firstsecond) @ matrix
        return result

    def _slopes(self, x0: Array, x1: Array) -> tuple[Array, Array]:
        """Derivatives of the difference of configurations."""
        n = self.model.nq
        slopes: tuple[Array, Array] = difference_slopes(self.model)(x0[:n], x1[:n])
        return slopes

    def _whole(self, block: NDArray[Any]) -> Array:
        result = np.eye(2 * self.model.nv)
        result[: self.model.nv, : self.model.nv] = block
        return result


def _chosen(parts: list[Array], which: Any) -> Any:
    if which is None or which == crocoddyl.Jcomponent.both:
        return parts
    return parts[0 if which == crocoddyl.Jcomponent.first else 1]


class StateResidual(crocoddyl.ResidualModelAbstract):
    """``state.diff(reference, x)``, with its derivative as it is.

    Crocoddyl's own ResidualModelState takes 1 for it where states are not Pinocchio's.

    Args:
        state: The robot's :class:`State`.
        reference: [q | v] to be near to.
        nu: Number of actuators.
    """

    def __init__(self, state: State, reference: ArrayLike, nu: int) -> None:
        super().__init__(state, state.ndx, nu, True, True, False)
        self.reference = as_array(reference, state.nx, "reference", "nq + nv")

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """The way from the reference."""
        data.r[:] = self.state.diff(self.reference, x)

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Its derivative by x."""
        which = crocoddyl.Jcomponent.second
        data.Rx[:, :] = self.state.Jdiff(self.reference, x, which)


# ---- traced functions ----------------------------------------------------------------------------


def _applied(model: Model, q: Vector, v: Vector, u: Vector) -> list[Scalar]:
    """tau of the actuators, springs and dampers."""
    tau = [dot(row, u) for row in actuator_map(model, q)]
    return added(tau, passive_force(model, q, v))


@traced
def difference_slopes(model: Model) -> TracedFunction:
    """(q0, q1) → ∂ difference(q0, q1) by q0 and by q1 (nv by nv each)."""
    n = model.nv

    def build(q0: Vector, q1: Vector) -> list[Scalar]:
        result: list[Scalar] = []
        for q, sign in ((q0, -1.0), (q1, 1.0)):
            at = Instant(model, q)
            rows = [[sign if i == j else 0.0 for j in range(n)] for i in range(n)]
            for cluster in model.clusters:
                for body, part, along in joint_slices(model, cluster):
                    node = model.nodes[body]
                    places = independent_rates(cluster, along)
                    if node.joint.nv == 1 or all(i is None for i in places):
                        continue
                    way = node.joint.displacement(q0[cluster.q][part], q1[cluster.q][part])
                    log = node.joint.jlog([sign * x for x in way])
                    slopes = product(log, [at.jacobian[r] for r in node.freedoms])
                    for i, row in zip(places, slopes, strict=True):
                        if i is not None:
                            rows[i] = [sign * x for x in row]
            result += [x for row in rows for x in row]
        return result

    sizes = {"q0": model.nq, "q1": model.nq}
    return TracedFunction("difference_slopes", sizes, {"by_q0": (n, n), "by_q1": (n, n)}, build)


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
    sizes = {"q": model.nq, "v": model.nv}
    return sizes | ({"u": len(model.actuators)} if model.actuators else {})


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


@traced
def task_cost(model: Model, pieces: tuple[Piece, ...]) -> TracedFunction:
    """(q, targets, weights) → ½ Σ |W e|², its gradient, and Gauss and Newton's Hessian, by q."""
    n = model.nv

    def build(q: Vector, targets: Vector, weights: Vector) -> list[Scalar]:
        at = Instant(model, q)
        rows: list[list[Scalar]] = []
        errors: list[Scalar] = []
        for piece in pieces:
            of, costs = piece.rows(at, targets), piece.numbers(weights)[2]
            rows += [[w * x for x in row] for w, row in zip(costs, of.steps, strict=True)]
            errors += [w * e for w, e in zip(costs, of.error, strict=True)]
        columns = transposed(rows)
        hessian = gram(columns, columns)
        gradient = [-dot(column, errors) for column in columns]
        return [0.5 * dot(errors, errors), *gradient, *(x for row in hessian for x in row)]

    sizes = {
        "q": model.nq,
        "targets": max(p.first + p.size for p in pieces),
        "weights": max(p.weights + 2 + len(p.kept) for p in pieces),
    }
    return TracedFunction("task_cost", sizes, {"cost": (1,), "g": (n,), "H": (n, n)}, build)


# ---- action models -------------------------------------------------------------------------------


class DifferentialActionModel(crocoddyl.DifferentialActionModelAbstract):
    """ẋ = [v | a(q, v, u)] and a cost, of the forces u of the actuators.

    The file's springs and damping act; dry friction does not. Points in contact do not accelerate.

    Args:
        state: The robot's :class:`State`.
        costs: A ``crocoddyl.CostModelSum`` over it, or None.
        tasks: Task → target: adds ½ |W e|² with its costs W, of gains and dampings nothing.
        contacts: Links, or (link, offset), that stand: they hold whatever it takes.

    Raises:
        UnknownNameError: A link that the model does not have.
    """

    def __init__(
        self,
        state: State,
        costs: Any = None,
        *,
        tasks: Mapping[Task, ArrayLike] | None = None,
        contacts: FrameLike | Sequence[FrameLike] = (),
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
        self._tasks = TaskSet(model, list(tasks or {}))
        self._targets = self._tasks.numbers(dict((tasks or {}).items()))
        self._tasks.refuse(self._targets)

    def createData(self) -> DifferentialActionData:
        """Data of it."""
        return DifferentialActionData(self)

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Accelerations and the cost; without u the cost alone."""
        model, n = self.model, self.model.nq
        if u is None:
            self.costs.calc(data.costs, x)
        else:
            given = (x[:n], x[n:], u) if self.nu else (x[:n], x[n:])
            a, data.tau = accelerations(model)(*given)
            if self.contacts:
                a, data.forces = contact_aba(
                    model, x[:n], x[n:], data.tau, self.contacts, unilateral=False
                )
            data.xout[:] = a
            self.costs.calc(data.costs, x, u)
        data.cost = data.costs.cost
        if self._tasks.tasks:
            data.of_tasks = self._of_tasks(x)
            data.cost = data.cost + float(data.of_tasks[0][0])

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """The derivatives of both; calc comes first."""
        model, n, m = self.model, self.model.nq, self.model.nv
        if u is None:
            self.costs.calcDiff(data.costs, x)
        else:
            given = (x[:n], x[n:], u) if self.nu else (x[:n], x[n:])
            if self.contacts:
                by_q, by_v, by_tau, *_ = contact_aba_derivatives(
                    model, x[:n], x[n:], data.tau, self.contacts
                )
                slopes, b = force_slopes(model)(*given)
                data.Fx[:, :] = np.concatenate([by_q, by_v], axis=1) + by_tau @ slopes
                data.Fu[:, :] = by_tau @ b
            else:
                data.Fx[:, :], data.Fu[:, :] = acceleration_slopes(model)(*given)
            self.costs.calcDiff(data.costs, x, u)
        if self._tasks.tasks:
            data.Lx[:m] += data.of_tasks[1]
            data.Lxx[:m, :m] += data.of_tasks[2]

    def _of_tasks(self, x: Array) -> Any:
        function = task_cost(self.model, tuple(self._tasks.pieces))
        return function(x[: self.model.nq], self._targets, self._tasks.weights)


class DifferentialActionData(crocoddyl.DifferentialActionDataAbstract):
    """Data of a :class:`DifferentialActionModel`."""

    def __init__(self, model: DifferentialActionModel) -> None:
        super().__init__(model)
        self.shared = crocoddyl.DataCollectorAbstract()
        self.costs = model.costs.createData(self.shared)
        self.costs.shareMemory(self)
        self.tau = np.zeros(model.model.nv)
        self.forces = np.zeros((len(model.contacts), 3))
        self.of_tasks: Any = None
