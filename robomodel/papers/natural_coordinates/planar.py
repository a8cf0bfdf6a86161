"""Factors, graphs and sensors of planar mechanisms in natural coordinates (000, sections 4 to 6).

Dependent coordinates "q", rates "v" and accelerations "a" are vectors (n,) that factors keep on the
constraints; optionally, independent ones "z", "zd", "zdd" are some of the coordinates by name.
Bayesian networks (figure 1) become factor graphs when the known variables are chosen; branches of
assembly are a discrete variable C.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.errors import ClosureError, check_names, did_you_mean
from robomodel.estimation.factors import (
    Equal,
    Errors,
    FactorBase,
    Prior,
    Reading,
    Trapezoid,
    subtracted_data,
)
from robomodel.estimation.graph import Graph, NoiseLike, Values
from robomodel.estimation.problems import staged
from robomodel.estimation.solve import Solution, fixed_lag, solve
from robomodel.estimation.spaces import Vectors
from robomodel.model.arguments import as_numbers
from robomodel.papers.elimination_orders.graphs import Dag, FactorGraph, Relation
from robomodel.papers.natural_coordinates.constraints import TURN
from robomodel.papers.natural_coordinates.mechanism import Body, Mechanism, Point
from robomodel.tolerances import WRITTEN

TRAPEZOID, DYNAMICS, EQUAL = 0.1, 0.01, 10.0
"""Standard deviations of the paper's noise models (its table 2); the others are exact."""
LOOSE = 1e6
"""Standard deviation of equal accelerations; it matters only where nothing else determines them."""


@dataclass(frozen=True)
class _Independent(FactorBase):
    """Conditions of a mechanism, and of a variable that equals some of its coordinates, if any.

    ``data``: the times (K, 1) [s] of the conditions, for driven coordinates; 0 if None.
    """

    mechanism: Mechanism
    independent: tuple[str, ...] = ()
    _states: ClassVar[tuple[str, ...]]  # the last one equals coordinates of the one before
    _linear: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        names = self._states if self.independent else self._states[:-1]
        rows = len(self.mechanism.conditions.rows) + len(self.independent)
        self._describe(names, rows, self._linear)

    def _joined(self, values: Array, slopes: list[Array], x: Sequence[Array]) -> Errors:
        """The conditions' rows, and those of the variable that equals some coordinates.

        ``x[-2]`` contains those coordinates, ``x[-1]`` is the further variable; ``slopes`` are with
        respect to all variables but the last.
        """
        if not self.independent:
            return values, slopes
        select, count = self.mechanism.selection(self.independent), len(values)
        f, n = select.shape
        below = [np.zeros((count, f, n)) for _ in slopes]
        below[-1] = np.broadcast_to(select, (count, f, n))
        slopes = [np.concatenate(pair, axis=1) for pair in zip(slopes, below, strict=True)]
        last = np.zeros((count, self.rows, f))
        last[:, -f:] = -np.eye(f)
        e = np.concatenate([values, x[-2] @ select.T - x[-1]], axis=1)
        return e, [*slopes, last]


def _times(data: Array | None, count: int) -> Array:
    """A factor's times (K,) from its data (K, 1); 0 without data."""
    return np.zeros(count) if data is None or not data.shape[1] else data[:, 0]


class PositionConstraints(_Independent):
    """Φ(q, t) = 0, and q[independent] = z."""

    _states = ("q", "z")
    _linear = ("z",)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """[Φ; q[independent] - z]."""
        values = self.mechanism.residual(x[0], _times(data, len(x[0])))
        return self._joined(values, [self.mechanism.jacobian(x[0])], x)


class VelocityConstraints(_Independent):
    """Φ_q q̇ = b, and q̇[independent] = ż."""

    _states = ("q", "v", "zd")
    _linear = ("v", "zd")

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """[Φ_q q̇ - b; q̇[independent] - ż]."""
        q, v = x[:2]
        phi, driven = self.mechanism.jacobian(q), self.mechanism.driven_rates(_times(data, len(q)))
        values = np.einsum("kij,kj->ki", phi, v) - driven
        return self._joined(values, [self.mechanism.jacobian_rate(q, v), phi], x)


class AccelerationConstraints(_Independent):
    """Φ_q q̈ = c, and q̈[independent] = z̈."""

    _states = ("q", "v", "a", "zdd")
    _linear = ("a", "zdd")

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """[Φ_q q̈ - c; q̈[independent] - z̈]."""
        m, (q, v, a) = self.mechanism, x[:3]
        phi, rate = m.jacobian(q), m.jacobian_rate(q, v)
        values = np.einsum("kij,kj->ki", phi, a) - m.bias(q, v, _times(data, len(q)))
        by_q = np.einsum("kmij,kj->kmi", m.hessian_rate(q, v), v) + m.jacobian_rate(q, a)
        return self._joined(values, [by_q, 2.0 * rate, phi], x)


@dataclass(frozen=True)
class PlanarDynamics(FactorBase):
    """Accelerations of the KKT system under gravity and forces Q: e = q̈(q, q̇, Q) - a.

    ``forces``: the variable Q (n), or None; ``data``: applied forces (n) and the time [s], which
    may be omitted if nothing is driven. With ``independent`` coordinates, e = z̈(q, q̇, Q) - zdd:
    the null-space form gives the same accelerations. Jacobians are exact derivatives of the
    solution. Jacobians are exact: those of the KKT system's solution.
    """

    mechanism: Mechanism
    independent: tuple[str, ...] = ()
    forces: str | None = None

    def __post_init__(self) -> None:
        forces = () if self.forces is None else (self.forces,)
        names = ("q", "v", "zdd" if self.independent else "a", *forces)
        rows = len(self.independent) or self.mechanism.n
        self._describe(names, rows, ("a", "zdd", *forces))

    @cached_property
    def _selection(self) -> Array:
        return self.mechanism.selection(self.independent or self.mechanism.coordinates)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The KKT system K [q̈; λ] = [Q; c] and its change, K ∂[q̈; λ] = ∂[Q; c] - ∂K [q̈; λ]."""
        m, (q, v) = self.mechanism, x[:2]
        count, n = len(q), m.n
        applied, t = (None, None) if data is None else (data[:, :n], data[:, n:])
        load = np.zeros((count, n)) + m.weight + (0.0 if applied is None else applied)
        if self.forces is not None:
            load = load + x[3]
        rate, inverse = m.jacobian_rate(q, v), np.linalg.inv(m.kkt_matrix(q))
        right = np.concatenate([load, m.bias(q, v, _times(t, count))], axis=1)
        solution = np.einsum("kij,kj->ki", inverse, right)
        a, multipliers = solution[:, :n], solution[:, n:]
        by_q = np.zeros((count, solution.shape[1], n))
        by_q[:, :n] = -np.einsum("kmij,km->kij", m.hessian(q), multipliers)
        by_q[:, n:] = -np.einsum("kmij,kj->kmi", m.hessian_rate(q, v), v) - m.jacobian_rate(q, a)
        top = self._selection @ inverse[:, :n]
        slopes = [top @ by_q, -2.0 * top[:, :, n:] @ rate]
        slopes.append(np.broadcast_to(-np.eye(self.rows), (count, self.rows, self.rows)))
        if self.forces is not None:
            slopes.append(top[:, :, :n])
        return a @ self._selection.T - x[2], slopes


# ---- graphs --------------------------------------------------------------------------------------


def forward(
    mechanism: Mechanism,
    count: int,
    step: float,
    *,
    q: ArrayLike,
    v: ArrayLike,
    forces: ArrayLike = 0.0,
    integrator_noise: NoiseLike = TRAPEZOID,
    dynamics_noise: NoiseLike = DYNAMICS,
) -> Graph:
    """Forward dynamics in dependent coordinates, from q and v (n) at the first time (5.1).

    Constraints are exact, integrators and dynamics have the paper's weights. The graph has more
    equations than unknowns: integrated coordinates do not satisfy the constraints exactly, and the
    weights distribute the difference.
    """
    vectors = Vectors(mechanism.n)
    graph = Graph(dict.fromkeys(("q", "v", "a"), vectors), count)
    graph = graph.add(Prior("q", vectors), 0.0, times=[0], data=q)
    graph = graph.add(Prior("v", vectors), 0.0, times=[0], data=v)
    later, t = np.arange(1, count), step * np.arange(count)[:, np.newaxis]  # priors fix the first
    graph = graph.add(PositionConstraints(mechanism), 0.0, times=later, data=t[1:])
    graph = graph.add(VelocityConstraints(mechanism), 0.0, times=later, data=t[1:])
    graph = graph.add(Trapezoid("q", "v", step, vectors), integrator_noise)
    graph = graph.add(Trapezoid("v", "a", step, vectors), integrator_noise)
    applied = np.broadcast_to(as_numbers(forces, "forces"), (count, mechanism.n))
    return graph.add(PlanarDynamics(mechanism), dynamics_noise, data=np.hstack([applied, t]))


def forward_independent(
    mechanism: Mechanism,
    independent: Sequence[str],
    count: int,
    step: float,
    *,
    q: ArrayLike,
    v: ArrayLike,
    forces: ArrayLike = 0.0,
    integrator_noise: NoiseLike = TRAPEZOID,
    dynamics_noise: NoiseLike = DYNAMICS,
    equal_noise: NoiseLike | None = None,
) -> Graph:
    """Forward dynamics in independent coordinates, coupled to the dependent ones (5.2).

    There are as many equations as unknowns. ``equal_noise`` adds the paper's soft equality of
    successive q, which keeps the branch but delays the motion.
    """
    chosen = tuple(independent)
    vectors, few = Vectors(mechanism.n), Vectors(len(chosen))
    variables = dict.fromkeys(("q", "v", "a"), vectors) | dict.fromkeys(("z", "zd", "zdd"), few)
    select = mechanism.selection(chosen)
    graph = Graph(variables, count)
    for name, value in (("z", q), ("zd", v)):
        data = select @ np.asarray(value, dtype=float)
        graph = graph.add(Prior(name, few), 0.0, times=[0], data=data)
    t = step * np.arange(count)[:, np.newaxis]
    for kind in (PositionConstraints, VelocityConstraints, AccelerationConstraints):
        graph = graph.add(kind(mechanism, chosen), 0.0, data=t)
    graph = graph.add(Trapezoid("z", "zd", step, few), integrator_noise)
    graph = graph.add(Trapezoid("zd", "zdd", step, few), integrator_noise)
    applied = np.broadcast_to(as_numbers(forces, "forces"), (count, mechanism.n))
    dynamics = PlanarDynamics(mechanism, chosen)
    graph = graph.add(dynamics, dynamics_noise, data=np.hstack([applied, t]))
    return graph if equal_noise is None else graph.add(Equal("q", vectors), equal_noise)


def inverse(
    mechanism: Mechanism,
    actuated: Sequence[str],
    trajectory: ArrayLike,
    step: float,
    *,
    q: ArrayLike,
    v: ArrayLike,
) -> Solution:
    """Forces "Q" at the ``actuated`` coordinates that move them along a trajectory (count, f); 5.3.

    ``q``, ``v``: all coordinates and their rates at the first time. Solved in four stages, each
    from the previous solution: positions; rates and accelerations by integrators; velocity
    constraints; forces, zero in coordinates that are not actuated. Positions are initialised time
    by time, which keeps their branch. In addition to the paper's factors, there is a loose
    equality of successive
    accelerations: integrators alone leave, for each freedom, a motion undetermined that changes
        sign
    at every time.
    """
    names = mechanism.coordinates
    positions = as_numbers(trajectory, "trajectory")
    count, at = len(positions), tuple(names.index(name) for name in actuated)
    vectors = Vectors(mechanism.n)
    idle = tuple(i for i in range(mechanism.n) if i not in at)
    t = step * np.arange(count)[:, np.newaxis]

    def closed(*variables: str) -> Graph:
        graph = Graph(dict.fromkeys(variables, vectors), count)
        graph = graph.add(Reading("q", at, mechanism.n), 0.0, data=positions)
        graph = graph.add(PositionConstraints(mechanism), 0.0, data=t)
        return graph.add(Equal("q", vectors), EQUAL)

    def integrated(graph: Graph) -> Graph:
        graph = graph.add(Prior("v", vectors), 0.0, times=[0], data=v)
        graph = graph.add(Trapezoid("q", "v", step, vectors), TRAPEZOID)
        graph = graph.add(Trapezoid("v", "a", step, vectors), TRAPEZOID)
        return graph.add(Equal("a", vectors), LOOSE)

    at_rest = closed("q")
    motion = integrated(closed("q", "v", "a"))
    later = np.arange(1, count)
    constrained = motion.add(VelocityConstraints(mechanism), 0.0, times=later, data=t[1:])
    forced = integrated(closed("q", "v", "a", "Q"))
    forced = forced.add(VelocityConstraints(mechanism), 0.0, times=later, data=t[1:])
    forced = forced.add(Reading("Q", idle, mechanism.n), 0.0)
    unloaded = np.hstack([np.zeros((count, mechanism.n)), t])
    forced = forced.add(PlanarDynamics(mechanism, forces="Q"), DYNAMICS, data=unloaded)
    start = fixed_lag(at_rest, {"q": np.asarray(q, dtype=float)}, 2).newest
    return staged([at_rest, motion, constrained, forced], start)


# ---- sensors -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlanarMarker(FactorBase):
    """Measured position of a point (2,) in the plane [m]."""

    mechanism: Mechanism
    point: str

    def __post_init__(self) -> None:
        self._describe(("q",), 2, ("q",))

    @cached_property
    def _jacobian(self) -> Array:
        points = self.mechanism.layout.points
        if self.point not in points:
            hint = did_you_mean(self.point, points)
            raise ValueError(f"there is no point '{self.point}'{hint}")
        return self.mechanism.point_jacobian(self.point)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Position minus data."""
        slope = np.broadcast_to(self._jacobian, (len(x[0]), 2, self.mechanism.n))
        return subtracted_data(self.mechanism.point(self.point, x[0]), data), [slope]


@dataclass(frozen=True)
class _OnBody(FactorBase):
    """Base of instruments on a body, with an optional bias variable."""

    mechanism: Mechanism
    body: str
    bias: str | None = None
    _states: ClassVar[tuple[str, ...]]
    _linear: ClassVar[tuple[str, ...]]
    _size: ClassVar[int]

    def __post_init__(self) -> None:
        bias = () if self.bias is None else (self.bias,)
        self._describe((*self._states, *bias), self._size, (*self._linear, *bias))

    @cached_property
    def _of(self) -> Body:
        bodies = {body.name: body for body in self.mechanism.bodies}
        if self.body not in bodies:
            raise ValueError(f"there is no body '{self.body}'{did_you_mean(self.body, bodies)}")
        return bodies[self.body]

    @cached_property
    def _arm(self) -> tuple[Array, Array]:
        """The vector from the first to the second point, d = D q + d₀: D (2, n) and d₀ (2,)."""
        points = self.mechanism.layout.points
        both = points[self._of.second] - points[self._of.first]
        return both[:, :-1], both[:, -1]

    def _biased(
        self, e: Array, slopes: list[Array], x: Sequence[Array], data: Array | None
    ) -> Errors:
        if self.bias is not None:
            e = e + x[-1]
            slopes = [*slopes, np.broadcast_to(np.eye(self.rows), (len(e), *[self.rows] * 2))]
        return subtracted_data(e, data), slopes


@dataclass(frozen=True)
class PlanarGyroscope(_OnBody):
    """Measured angular velocity (1,) of a body [rad/s]; ``bias``: a variable of one number.

    ω = d × ḋ / L², exact for bodies of constant length.
    """

    _states = ("q", "v")
    _linear = ("v",)
    _size = 1

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """Angular velocity + bias - data."""
        (along, offset), scale = self._arm, self._of.length**-2
        d, rate = x[0] @ along.T + offset, x[1] @ along.T
        across = scale * d @ TURN.T  # J d
        e = np.sum(across * rate, axis=1, keepdims=True)
        by_q = (scale * rate @ TURN) @ along  # (J d)ᵀ ḋ = dᵀ Jᵀ ḋ
        slopes = [by_q[:, np.newaxis], (across @ along)[:, np.newaxis]]
        return self._biased(e, slopes, x, data)


@dataclass(frozen=True)
class PlanarAccelerometer(_OnBody):
    """Measured acceleration of a body's point minus gravity (2,), in the body's axes [m/s²].

    ``at``: position in the body's axes [m]. ``bias``: a variable of two numbers.
    """

    at: Point = (0.0, 0.0)

    _states = ("q", "a")
    _linear = ("q", "a")
    _size = 2

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """[d · f, J d · f] / L + bias - data, with f = r̈ - g."""
        mechanism, length = self.mechanism, self._of.length
        along, offset = self._arm
        x_at, y_at = (np.array(self.at) / length).tolist()
        moved = mechanism.point_jacobian(self._of.first) + (x_at * np.eye(2) + y_at * TURN) @ along
        d = (x[0] @ along.T + offset) / length
        f = x[1] @ moved.T - np.asarray(mechanism.gravity)
        axes = np.stack([d, d @ TURN.T], axis=1)  # by rows
        e = np.einsum("kij,kj->ki", axes, f)
        turned = np.stack([f, f @ TURN], axis=1)  # f · D and f · J D
        slopes = [turned @ along / length, axes @ moved]
        return self._biased(e, slopes, x, data)


# ---- graphs of names, for pictures and Bayes trees -----------------------------------------------


def factor_graph(graph: Graph, first: int = 0, stop: int | None = None) -> FactorGraph:
    """The variables and factors of the times ``first`` to ``stop`` - 1 (default: all), by name.

    Factors that reach outside are omitted. Names are made of kind, first variable and time.
    """
    stop = graph.count if stop is None else stop
    if not 0 <= first < stop <= graph.count:
        raise ValueError(f"times {first} … {stop - 1} are not within 0 … {graph.count - 1}")
    sizes = {f"{name}[{t}]": s.dim for t in range(first, stop) for name, s in graph.spaces.items()}
    relations: list[Relation] = []
    names: dict[str, int] = {}
    for term in graph.terms:
        kind = type(term.factor).__name__
        reach = term.reach
        for t in term.times.tolist():
            if first <= t and t + reach < stop:
                name = f"{kind} {term.factor.variables[0][0]}[{t}]"
                names[name] = names.get(name, 0) + 1
                if names[name] > 1:
                    name += f" ({names[name]})"
                of = frozenset(f"{x}[{t + offset}]" for x, offset in term.factor.variables)
                soft = not bool(term.noise.hard.any())
                relations.append(Relation(name, of, term.factor.rows, soft))
    return FactorGraph(sizes, tuple(relations))


def bayes_tree(
    graph: Graph, order: Sequence[str] | None = None, first: int = 0, stop: int | None = None
) -> Dag:
    """The elimination of the times from ``first`` to ``stop`` - 1; see its ``cliques``.

    ``order``: of names such as "q[3]"; by default time after time, as in the solvers, so that the
    newest is at the root.
    """
    named = factor_graph(graph, first, stop)
    return named.eliminate(tuple(named.sizes) if order is None else order)


# ---- branches of assembly: the discrete variable C (figure 1(b)) ---------------------------------


@dataclass(frozen=True, eq=False)
class BranchEstimate:
    """Posterior probabilities of branches, p(C | o) (k,), and the solution on each branch."""

    probabilities: Array
    solutions: tuple[Solution, ...]

    @property
    def best(self) -> Solution:
        """The solution on the most likely branch."""
        return self.solutions[int(np.argmax(self.probabilities))]


def branches(
    mechanism: Mechanism, q: ArrayLike, held: Sequence[str], *, tries: int = 100, seed: int = 0
) -> Array:
    """Closed configurations (k, n) with the coordinates ``held`` as in q (n,), nearest to q first.

    Newton's method from q and from random points around it; branches that no try reaches are
    missing. Raises ClosureError if none closes, ValueError if the held coordinates leave a freedom.
    """
    at, rng = as_numbers(q, "q"), np.random.default_rng(seed)
    size = max(body.length for body in mechanism.bodies)
    free = np.array([name not in held for name in mechanism.coordinates])
    shapes: list[Array] = []
    result: list[Array] = []
    gaps: list[float] = []
    for n in range(tries):
        try:
            closed = mechanism.close(at + (n > 0) * size * free * rng.normal(size=len(at)), held)
        except ClosureError as error:
            gaps.append(error.residual)
            continue
        if not mechanism.conditions.angles_hold(closed):
            continue
        points = np.concatenate([mechanism.point(name, closed) for name in mechanism.points])
        if all(np.max(np.abs(points - other)) > WRITTEN * size for other in shapes):
            shapes.append(points)
            result.append(closed)
    if not result:
        raise ClosureError(f"it does not close with {list(held)} held", min(gaps, default=np.inf))
    if np.linalg.matrix_rank(mechanism.jacobian(result[0])[:, free]) < np.count_nonzero(free):
        raise ValueError(f"with {list(held)} held the mechanism still moves: hold every freedom")
    return np.array(sorted(result, key=lambda x: float(np.linalg.norm(x - at))))


def compare_branches(
    graph: Graph, starts: Sequence[Values], *, prior: ArrayLike = 1.0
) -> BranchEstimate:
    """p(C | o) of branches, one for each of ``starts``, from the evidence of the data.

    Every branch is solved from its start; its evidence is
    :attr:`~robomodel.estimation.solve.Solution.log_evidence`. ``prior``: p(C) (k,), up to a factor.
    """
    solutions = tuple(solve(graph, start) for start in starts)
    logs = np.array([solution.log_evidence for solution in solutions])
    weights = np.exp(logs - np.max(logs)) * as_numbers(prior, "prior")
    return BranchEstimate(weights / np.sum(weights), solutions)


# ---- dynamic Bayesian networks (figure 1) --------------------------------------------------------
# The probability of all variables is the product of each one's given its parents (16), and each
# becomes a factor (17).


@dataclass(frozen=True)
class BayesNetwork:
    """A directed acyclic graph of variables, each with its parents.

    ``sizes``: variable → number of components; ``parents``: variable → variables on which it
    depends (default: none). Raises ValueError for parents that are not variables, and for cycles.
    """

    sizes: Mapping[str, int]
    parents: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        for names in (self.parents, *self.parents.values()):
            check_names(names, self.sizes, "no variable ")
        _ = self.order  # checks that there is no cycle

    @property
    def order(self) -> tuple[str, ...]:
        """All variables, parents first."""
        try:
            return tuple(
                TopologicalSorter({x: self.parents.get(x, ()) for x in self.sizes}).static_order()
            )
        except CycleError as error:
            cycle = " → ".join(f"'{x}'" for x in error.args[1])
            raise ValueError(f"variables depend on themselves: {cycle}") from None

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(parent, child)."""
        return tuple((p, child) for child, ps in self.parents.items() for p in ps)

    def factor_graph(self, known: Collection[str] = ()) -> FactorGraph:
        """The factor graph of the variables that are not ``known`` (section 5).

        Each variable becomes a factor "p(x | parents)" on itself and its parents. Known variables
        are parameters of the factors; factors without unknowns are constant and omitted.
        """
        check_names(known, self.sizes, "no variable ")
        relations = []
        for child in self.sizes:
            parents = self.parents.get(child, ())
            unknown = frozenset((child, *parents)).difference(known)
            if unknown:
                name = f"p({child} | {', '.join(parents)})" if parents else f"p({child})"
                relations.append(Relation(name, unknown, self.sizes[child], soft=True))
        sizes = {x: size for x, size in self.sizes.items() if x not in known}
        return FactorGraph(sizes, tuple(relations))

    def dot(self) -> str:
        """The network as Graphviz text: ``dot -Tsvg``."""
        lines = [f'  "{x}";' for x in self.sizes]
        lines += [f'  "{parent}" -> "{child}";' for parent, child in self.edges]
        return "\n".join(["digraph network {", *lines, "}\n"])


def dependent_network(count: int, n: int, observations: int = 0) -> BayesNetwork:
    """Figure 1(a): q, v, a (n) and forces Q (n) at ``count`` times, and ``observations`` o, if any.

    q and v follow from those of the previous time by Euler's rule, as in (16). The trapezoidal rule
    has no such network: through q̈ at its end, each variable of a time would depend on itself.
    """
    sizes: dict[str, int] = {}
    parents: dict[str, tuple[str, ...]] = {}
    for t in range(count):
        sizes |= {f"{x}[{t}]": n for x in ("q", "v", "a", "Q")}
        if t:
            parents[f"q[{t}]"] = (f"q[{t - 1}]", f"v[{t - 1}]")
            parents[f"v[{t}]"] = (f"v[{t - 1}]", f"a[{t - 1}]")
        parents[f"a[{t}]"] = (f"q[{t}]", f"v[{t}]", f"Q[{t}]")
        if observations:
            sizes[f"o[{t}]"] = observations
            parents[f"o[{t}]"] = (f"q[{t}]", f"v[{t}]", f"a[{t}]")
    return BayesNetwork(sizes, parents)


def independent_network(count: int, n: int, f: int, observations: int = 0) -> BayesNetwork:
    """Figure 1(b): independent z, zd, zdd (f) as a chain, on which dependent q, v, a (n) depend.

    C is the branch, constant in time, on which q depends as well as on z. Forces Q (n) act on zdd.
    """
    sizes = {"C": 1}
    parents: dict[str, tuple[str, ...]] = {}
    for t in range(count):
        sizes |= {f"{x}[{t}]": f for x in ("z", "zd", "zdd")}
        sizes |= {f"{x}[{t}]": n for x in ("Q", "q", "v", "a")}
        if t:
            parents[f"z[{t}]"] = (f"z[{t - 1}]", f"zd[{t - 1}]")
            parents[f"zd[{t}]"] = (f"zd[{t - 1}]", f"zdd[{t - 1}]")
        parents[f"zdd[{t}]"] = (f"z[{t}]", f"zd[{t}]", f"Q[{t}]")
        parents[f"q[{t}]"] = (f"z[{t}]", "C")
        parents[f"v[{t}]"] = (f"zd[{t}]", f"q[{t}]")
        parents[f"a[{t}]"] = (f"zdd[{t}]", f"q[{t}]", f"v[{t}]")
        if observations:
            sizes[f"o[{t}]"] = observations
            parents[f"o[{t}]"] = (f"q[{t}]", f"v[{t}]", f"a[{t}]")
    return BayesNetwork(sizes, parents)
