"""Problems as programs: solvers with planned pivots, and forward dynamics in any order (003, V-D).

The order, and which row eliminates what, are chosen once: at random states, whose values they must
serve together, and checked at others. Traced and compiled, a solver is a program like those of the
recursions: it branches on nothing.

Forward dynamics by the block LDLᵀ of :mod:`robomodel.estimation.symmetric` is a program for each
:class:`Order`. Its operations are counted with equal expressions merged, products with 0 and ±1
free, sines and cosines of joint angles apart; :func:`search_order` minimises their number.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.kinematics.frames import place
from robomodel.dynamics.kinematics.state import State
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.errors import UnknownNameError, check_names, did_you_mean
from robomodel.estimation import elimination, symmetric
from robomodel.estimation.elimination import CONTRADICTION, ContradictionError, WeightedElimination
from robomodel.estimation.equations import (
    Group,
    LinearFactor,
    SingularError,
    Split,
    System,
    backward_error,
    equations,
    general_position,
    pieces,
    residual,
)
from robomodel.estimation.orders import FactorGraph, anneal
from robomodel.estimation.orders import order as order_of_graph
from robomodel.estimation.sensors import Sensor, in_internal_axes, in_link_axes
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.program import Program
from robomodel.kernels.trace import Trace
from robomodel.model.arguments import as_array, by_name
from robomodel.model.derived import cached_on_model
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, dot, stack, subtracted, unstack

if TYPE_CHECKING:
    from robomodel.estimation.instant import Problem

PLANNED, CHECKED = 16, 64  # random states: at which pivots are chosen, and tried
SAFE = 1e-11  # backward error of a solver that is allowed at the latter
SAFE_ORDER = 1e-12  # and of forward dynamics in an order
Named: TypeAlias = Mapping[str, Sequence[Scalar]]


@dataclass(frozen=True)
class SolverEstimate(Mapping[str, Array]):
    """Values of the requested variables, by name, (..., size), wrenches in link axes.

    ``covariances``: (..., size, size) of those requested.
    """

    numbers: Mapping[str, Array]
    covariances: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __getitem__(self, name: str) -> Array:
        if name not in self.numbers:
            raise UnknownNameError(f"'{name}' was not asked for{did_you_mean(name, self.numbers)}")
        return self.numbers[name]


@dataclass(frozen=True, slots=True)
class EliminationPlan:
    """How a system is solved: by symmetric blocks, or with the pivots of a plan."""

    order: tuple[Group, ...]
    pivots: elimination.PivotSequence | None = None
    bias_first: bool = False


class Solver:
    """A problem's program: ``solver(q, v, values, readings) -> SolverEstimate``.

    Arguments as of :meth:`Problem.solve`, with leading batch axes that broadcast. Made by
    :meth:`Problem.compile`, which documents its arguments. ``plan`` is the order and, but for
    symmetric systems, the pivots; ``backward_error`` the largest at random states, as fractions of
    the terms: of exact rows, and of the conditions of least squares.
    """

    def __init__(
        self,
        problem: Problem,
        variables: tuple[str, ...],
        covariances: tuple[str, ...],
        order: str | tuple[Group, ...] | None,
        masked: bool,
        refine: int | None,
    ) -> None:
        names = problem.graph.sizes
        check_names((*variables, *covariances), names, "no unknown ")
        self.problem = problem
        self.variables = tuple(dict.fromkeys(variables))
        self.covariances = tuple(dict.fromkeys(covariances))
        uncertain = [s for s in problem.sensors if s.covariance is not None]
        if (masked or covariances) and not uncertain:
            what = "missing measurements" if masked else "covariances"
            raise ValueError(f"{what} need sensors with covariances; this problem has none")
        self.masked = tuple(s.name for s in uncertain) if masked else ()
        self.refine = bool(uncertain) if refine is None else refine
        self.estimates = bool(uncertain)
        self.requested_order = order
        self._kernels: dict[tuple[str, ...], SolverKernel] = {}
        required = tuple(sorted(n for n in problem.known if not problem.optional(n)))
        self._required = required
        first = self.kernel(())
        self.plan, self.backward_error = first.plan, first.backward_error

    def __reduce__(self) -> tuple[type[Solver], tuple[object, ...]]:
        arguments = (
            self.problem,
            self.variables,
            self.covariances,
            self.requested_order,
            bool(self.masked),
        )
        return Solver, (*arguments, self.refine)

    def __repr__(self) -> str:
        return f"<Solver of {len(self.variables)} variables: {self.program.flops} flops>"

    @property
    def program(self) -> Program:
        """The traced program; inputs are q, v, the known variables, readings, and the mask."""
        return self.kernel(()).function.program

    def kernel(self, optional: Sequence[str] = ()) -> SolverKernel:
        """The kernel with these known variables besides the required ones.

        Its ``ufunc`` takes flat arrays: q, v, the variables ``known`` one after the other, the
        readings of all ``sensors``, and one number for each of ``masked``; those that have no
        numbers are left out.
        """
        key = tuple(sorted(set(optional)))
        result = self._kernels.get(key)
        if result is None:
            result = self._kernels[key] = SolverKernel(self, (*self._required, *key))
        return result

    def __call__(
        self,
        q: ArrayLike,
        v: ArrayLike,
        values: Mapping[str, ArrayLike] | None = None,
        readings: Mapping[str, ArrayLike] | None = None,
        *,
        mask: Mapping[str, ArrayLike] | None = None,
        threads: int = 1,
    ) -> SolverEstimate:
        """The unknowns at a state, or a batch of states.

        ``values`` (..., size) of known variables, ``readings`` (..., size) of sensors, by name.
        ``mask`` (...): of a solver that is ``masked``, which measurements there are; sensors
        without a reading are missing too. What the others do not determine is not a number.
        ``threads``: spread a batch over so many (0: one a processor).

        Raises ValueError where exact rows contradict each other, as :meth:`Problem.solve`.
        """
        problem, model = self.problem, self.problem.model
        values, readings = by_name(values, "values"), by_name(readings, "readings")
        mask = by_name(mask, "mask")
        check_names(values, problem.known, after=" is not a known variable of this problem")
        for name in self._required:
            if name not in values:
                raise ValueError(f"the value of the known '{name}' is missing")
        labels = {s.name: s for s in problem.sensors}
        check_names((*readings, *mask), labels, "no sensor ")
        for name in mask:
            if name not in self.masked:
                raise ValueError(
                    f"'{name}' cannot be missing: "
                    + ("it is exact" if self.masked else "compile(masked=True) makes that possible")
                )
        kernel = self.kernel([name for name in values if name not in self._required])
        parts = [[as_array(q, model.nq, "q", "nq")], [as_array(v, model.nv, "v", "nv")]]
        parts.append([as_array(values[n], kernel.sizes[n], n, "its size") for n in kernel.known])
        parts.append([self._reading(s, readings, mask) for s in kernel.sensors])
        parts.append([self._presence(labels[n], readings, mask) for n in self.masked])
        arrays = [_joined(part) for part in parts if part]
        # where measurements may be missing, nothing left to divide by is no error
        quiet: Literal["ignore"] | None = "ignore" if self.masked else None
        with np.errstate(divide=quiet, invalid=quiet):
            flat = kernel.function.kernel()(*arrays, threads=threads)
        return kernel.estimate(flat)

    def _reading(
        self, sensor: Sensor, readings: Mapping[str, ArrayLike], mask: Mapping[str, ArrayLike]
    ) -> Array:
        if sensor.name not in readings:
            if sensor.reads and sensor.name not in self.masked:
                raise ValueError(f"the reading of '{sensor.name}' is missing")
            return np.zeros(sensor.size)
        numbers = as_array(readings[sensor.name], sensor.size, sensor.name, "its size")
        if sensor.name in mask:
            there = np.asarray(mask[sensor.name], dtype=float)[..., None]
            numbers = np.where(there == 0.0, 0.0, numbers)
        return numbers

    def _presence(
        self, sensor: Sensor, readings: Mapping[str, ArrayLike], mask: Mapping[str, ArrayLike]
    ) -> Array:
        if sensor.name not in readings and sensor.reads:
            return np.zeros(1)
        there = np.asarray(mask.get(sensor.name, 1.0), dtype=float)[..., None]
        if np.any(~(there >= 0.0)):
            raise ValueError(f"the mask of '{sensor.name}' is true or false, or a weight")
        return there


class SolverKernel:
    """The compiled program for one choice of known variables."""

    def __init__(self, solver: Solver, known: tuple[str, ...]) -> None:
        problem = solver.problem
        self.solver = solver
        self.known = known
        self.sensors = tuple(s for s in problem.sensors if s.reads)
        written = problem.written.by_name
        self.sizes = {name: written[name].size for name in known}
        self.turned = self._turned()
        self.plan, self.function, self.backward_error = self._chosen()
        self.ufunc = self.function.kernel().ufunc

    def _turned(self) -> frozenset[int] | None:
        """The bodies whose axes matter; None: all."""
        problem, model = self.solver.problem, self.solver.problem.model
        if problem.view == "tree" or problem.split == "steps":
            return None
        body_of = {node.name: body for body, node in enumerate(model.nodes)}
        result = {place(model, s.at).body for s in problem.sensors if s.kind in _FRAMED}
        unknown = [name for name in problem.graph.sizes if name.startswith("fx[")]
        for name in (*self.known, *unknown, *self.solver.variables, *self.solver.covariances):
            kind, _, owner = name.partition("[")
            if kind in ("a", "f", "fx", "net") and owner[:-1] in body_of:
                result.add(body_of[owner[:-1]])
        return frozenset(result)

    # ---- the problem at states, scalars of any kind

    def _written(
        self, q: Sequence[Scalar], v: Sequence[Scalar], values: Named, readings: Named
    ) -> tuple[System, dict[str, LinearFactor]]:
        """The system with rows for covariances, and the rows that take variables to link axes."""
        problem, model = self.solver.problem, self.solver.problem.model
        inside = in_internal_axes(model, values)
        system = problem.system(q, v, inside, readings, turned=self.turned)
        every = range(len(model.nodes)) if self.turned is None else self.turned
        state = State(model, q, every, v)
        names = (*self.solver.variables, *self.solver.covariances)
        shown = {name: in_link_axes(name, system.by_name[name].size, state) for name in names}
        uncertain = [
            replace(shown[n], deviation=(math.inf,) * shown[n].rows)
            for n in self.solver.covariances
        ]
        return system.with_factors(uncertain), shown

    def _solved(
        self, plan: EliminationPlan, system: System, present: Named, *, refine: int
    ) -> tuple[dict[str, list[Scalar]], WeightedElimination | None]:
        if plan.pivots is None:
            names = [str(name) for name in plan.order]
            return symmetric.solve(system, names, refine=refine, bias_first=plan.bias_first), None
        weights = {name: x[0] for name, x in present.items()}
        result = WeightedElimination(system, plan.order, plan.pivots, weights)
        return result.solution(refine=refine), result

    def _written_out(self, plan: EliminationPlan) -> TracedFunction:
        """The function of q, v, known variables, readings and mask, those that have numbers."""
        problem, solver = self.solver.problem, self.solver
        readings = {s.name: s.size for s in self.sensors}
        masked = dict.fromkeys(solver.masked, 1)
        arguments = {"q": problem.model.nq, "v": problem.model.nv} | {
            name: sum(sizes.values())
            for name, sizes in (("values", self.sizes), ("readings", readings), ("mask", masked))
            if sizes
        }
        arguments = {name: size for name, size in arguments.items() if size}

        def build(*inputs: Sequence[Scalar]) -> list[Scalar]:
            numbers = dict(zip(arguments, inputs, strict=True))
            values, reads, present = (
                _named(numbers.get(name, ()), sizes)
                for name, sizes in (("values", self.sizes), ("readings", readings),
                                    ("mask", masked))
            )  # fmt: skip
            q, v = numbers["q"], numbers.get("v", ())
            system, shown = self._written(q, v, values, reads)
            solution, estimation = self._solved(plan, system, present, refine=solver.refine)
            outputs: list[Scalar] = []
            for name in solver.variables:
                factor = shown[name]
                total = list(factor.constant)
                for other, rows in factor.blocks.items():
                    total = [t + dot(r, solution[other]) for t, r in zip(total, rows, strict=True)]
                outputs += total
            if estimation is not None:
                for name in solver.covariances:
                    outputs += [x for row in estimation.covariance(shown[name].name) for x in row]
                outputs += estimation.failing()
            return outputs

        model, sizes_of = problem.model, problem.graph.sizes
        numbers = sum(sizes_of[name] for name in solver.variables)
        numbers += sum(sizes_of[name] ** 2 for name in solver.covariances)
        if plan.pivots is not None:
            exact = sum(f.rows for f in problem.structure.factors if f.deviation is None)
            numbers += exact - len(plan.pivots.pivots)
        return TracedFunction(
            "solve", arguments, {"d": (numbers,)}, build, owner=model, label="a solver"
        )

    def estimate(self, flat: Array) -> SolverEstimate:
        """The program's numbers by name."""
        batch, at = flat.shape[:-1], 0
        sizes = self.solver.problem.graph.sizes
        values, covariances = {}, {}
        for name in self.solver.variables:
            values[name] = flat[..., at : at + sizes[name]]
            at += sizes[name]
        for name in self.solver.covariances:
            n = sizes[name]
            covariances[name] = flat[..., at : at + n * n].reshape(*batch, n, n)
            at += n * n
        worst = float(np.max(np.abs(flat[..., at:]), initial=0.0))
        if worst > CONTRADICTION * max(1.0, float(np.nanmax(np.abs(flat), initial=0.0))):
            raise ContradictionError(worst)
        return SolverEstimate(values, covariances)

    # ---- the choice

    def _states(self, count: int, seed: int) -> System:
        """The system at random states with random values, as batches."""
        problem, rng = self.solver.problem, np.random.default_rng(seed)
        q = np.array([problem.model.random_configuration(rng) for _ in range(count)])
        v = rng.normal(size=(count, problem.model.nv))
        values = {name: [*rng.normal(size=(n, count))] for name, n in self.sizes.items()}
        readings = {s.name: [*rng.normal(size=(s.size, count))] for s in self.sensors}
        return self._written([*q.T], [*v.T], values, readings)[0]

    def _chosen(self) -> tuple[EliminationPlan, TracedFunction, float]:
        """The plan of the fewest operations that is safe at random states."""
        system = self._states(PLANNED, 2)
        plans: list[tuple[EliminationPlan, TracedFunction]] = []
        refused: Exception | None = None
        for order, candidate in self._candidates():
            try:
                plan = (
                    candidate
                    if candidate is not None
                    else EliminationPlan(order, elimination.plan_pivots(system, order))
                )
                function = self._written_out(plan)
                _ = function.program  # traced here, so that what cannot be is refused here
                plans.append((plan, function))
            except (ValueError, SingularError) as problem:
                refused = problem
        if not plans:
            assert refused is not None
            raise refused
        worst = math.inf
        other = self._states(CHECKED, 3)
        plans.sort(key=lambda one: one[1].program.flops)
        if self.solver.covariances:  # refinement does nothing for these
            plans.sort(key=lambda one: max(SAFE, self._error(one[0], other, refine=0)))
        for plan, function in plans:
            error = self._error(plan, other, refine=self.solver.refine)
            if error <= SAFE:
                return plan, function, error
            worst = min(worst, error)
        open_ = self.solver.problem.determinacy().undetermined
        if open_:
            raise SingularError(open_[0], "is not determined by the equations and measurements")
        raise ValueError(
            f"no fixed sequence of pivots is safe on '{self.solver.problem.model.name}': solutions "
            f"have a backward error of {worst:.1e} at one of {CHECKED} random states, where "
            f"{SAFE:g} is allowed; Problem.solve chooses pivots at each state"
        )

    def _candidates(self) -> Iterator[tuple[tuple[Group, ...], EliminationPlan | None]]:
        """Orders to try; with a plan where no pivots are to be chosen."""
        problem, requested = self.solver.problem, self.solver.requested_order
        names = ("aba", "crba") if requested is None else (requested,)
        for order in () if self.solver.estimates else map(problem.groups, names):
            variables = tuple(name for name in order if isinstance(name, str))
            if len(variables) == len(order):
                yield order, EliminationPlan(variables)
                yield order, EliminationPlan(variables, bias_first=True)
        for name in ("rnea", "aba", "tips") if requested is None else (requested,):
            yield tips(problem) if name == "tips" else problem.groups(name), None

    def _error(self, plan: EliminationPlan, system: System, *, refine: int) -> float:
        """The largest backward error: of the exact rows, and of the conditions of least squares.

        By these, weighted residuals are orthogonal to the null space of the exact rows.
        """
        with np.errstate(all="ignore"):
            present = {name: [1.0] for name in self.solver.masked}
            solution, estimation = self._solved(plan, system, present, refine=refine)
            left = () if estimation is None else estimation.done.left
            worst = np.max(backward_error(system, solution, but=left), initial=0.0)
            if estimation is None or not estimation.weighted:
                return _number(worst)
            none = [0.0] * system.rows
            free = len(estimation.done.plan.free)
            measured = System(system.variables, tuple(
                f for f in system.factors if f.deviation and not math.isinf(f.deviation[0])
            ))  # fmt: skip
            weights = [s**-2 for f in measured.factors for s in f.deviation or ()]
            wrong = residual(measured, solution)
            size = [
                abs(c) + sum(abs(x) * abs(y) for name, block in f.blocks.items()
                             for x, y in zip(block[i], solution[name], strict=True))
                for f in measured.factors for i, c in enumerate(f.constant)
            ]  # fmt: skip
            still = System(measured.variables, tuple(
                replace(f, constant=[0.0] * f.rows) for f in measured.factors
            ))  # fmt: skip
            for k in range(free):
                unit = [float(i == k) for i in range(free)]
                along = residual(still, estimation.done.restore(none, unit))
                pull = sum(w * x * r for w, x, r in zip(weights, along, wrong, strict=True))
                terms = sum(w * abs(x) * s for w, x, s in zip(weights, along, size, strict=True))
                worst = max(worst, np.max(np.abs(pull) / np.maximum(terms, 1e-300), initial=0.0))
            return _number(worst)


_FRAMED = ("acceleration", "wrench", "external")


def tips(problem: Problem) -> tuple[str, ...]:
    """An order for estimation: torques, bodies from the tips, then what measurements determine.

    Multipliers and dependent joints go before the independent ones, a floating base before those,
    external wrenches last.
    """
    kinds: dict[str, list[str]] = {}
    bodies: list[str] = []
    passive = [p.name for p in pieces(problem.model) if not p.dofs]
    for name in problem.order("aba"):
        kind, _, owner = name.partition("[")
        if kind in ("a", "f"):
            bodies.append(name)
            continue
        if kind == "qdd":
            joint = owner[:-1]
            kind = "base" if joint == problem.model.floating_base else kind
            kind = "dependent" if joint in passive else kind
        kinds.setdefault(kind, []).append(name)
    late = ("dependent", "lambda", "base", "qdd", "fx")
    first = [n for kind in kinds if kind not in late for n in kinds[kind]]
    return (*first, *bodies, *(n for kind in late for n in kinds.get(kind, [])))


def _joined(parts: Sequence[Array]) -> Array:
    if len(parts) == 1:
        return parts[0]
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])) for x in parts], axis=-1)


def _named(numbers: Sequence[Scalar], sizes: Mapping[str, int]) -> dict[str, list[Scalar]]:
    """Numbers that stand one after the other, by name."""
    result, at = {}, 0
    for name, size in sizes.items():
        result[name] = list(numbers[at : at + size])
        at += size
    return result


def _number(x: Any) -> float:
    """A float, infinite where it is not a number."""
    result = float(x)
    return math.inf if math.isnan(result) else result


# ---- forward dynamics in any order ---------------------------------------------------------------


STARTS = ("aba", "crba", "nested dissection")


@dataclass(frozen=True, slots=True)
class Order:
    """An order in which forward dynamics eliminates ``a[link]``, ``f[link]`` and ``qdd[joint]``.

    ``split`` as in :func:`robomodel.estimation.equations.equations`. ``bias_first``: velocities and
    gravity go through the bodies once at zero joint acceleration, before the elimination.
    """

    variables: tuple[str, ...]
    split: Split = "none"
    bias_first: bool = False

    def __call__(self, model: Model, q: Vector, v: Vector, tau: Vector) -> list[Scalar]:
        """Independent accelerations (nv) under forces tau; scalars of any kind."""
        system = _forward_system(model, q, v, tau, self.split, turned=())
        if self.bias_first:
            push = subtracted(tau, bias_force(model, q, v))
            right: dict[str, list[Scalar]] = {f.twin: [0.0] * f.rows for f in system.factors}
            for piece in pieces(model):
                if piece.dofs:
                    right[f"qdd[{piece.name}]"] = [push[i] for i in piece.dofs]
            solution = symmetric.eliminate(system, self.variables).solve(right)
        else:
            solution = symmetric.solve(system, self.variables)
        a: list[Scalar] = [0.0] * model.nv
        for piece in pieces(model):
            for i, x in zip(piece.dofs, solution.get(f"qdd[{piece.name}]", ()), strict=False):
                a[i] = x
        return a


OrderLike: TypeAlias = Order | str | Sequence[str]


def _forward_system(
    model: Model,
    q: Vector,
    v: Vector,
    tau: Vector,
    split: Split,
    turned: Container[int] | None = None,
) -> System:
    """Forward dynamics of the cluster tree; in general, symmetric bodies need not be ``turned``."""
    known_variables: dict[str, Vector] = {f"fx[{node.name}]": [0.0] * 6 for node in model.nodes}
    for piece in pieces(model):
        known_variables[f"tau[{piece.name}]"] = [tau[i] for i in piece.dofs]
    system = equations(model, q, v, view="cluster", split=split, turned=turned)
    return system.substituted(known_variables)


@cached_on_model
def _forward_graph(model: Model, split: Split) -> FactorGraph:
    state = general_position(model)
    return FactorGraph.of(_forward_system(model, *state, [0.0] * model.nv, split))


def program(model: Model, order: Order) -> Program:
    """The order's program as traced; inputs are q, v and tau."""
    trace = Trace()
    q, v, tau = (trace.inputs(n) for n in (model.nq, model.nv, model.nv))
    return trace.program(order(model, q, v, tau))


# ---- orders, named and searched ------------------------------------------------------------------


def as_order(model: Model, order: OrderLike, *, seed: int = 0) -> Order:
    """An order by name, in the cheapest of its forms, or an :class:`Order`, checked.

    Names are those of :data:`robomodel.estimation.orders.NAMES`; "searched" is what
    :func:`search_order` finds. Raises ValueError for other names and variables.
    """
    if isinstance(order, Order):
        _forward_graph(model, order.split).checked(order.variables)
        return order
    if order == "searched":
        return search_order(model, seed=seed)
    best: tuple[int, Order] | None = None
    wrong: Exception | None = None
    for split in ("none", "joint"):
        try:
            variables = order_of_graph(_forward_graph(model, split), model, order, seed=seed)
        except ValueError as error:  # a user's list has the names of one way of writing only
            wrong = wrong or error
            continue
        for bias_first in (False, True):
            candidate = Order(variables, split, bias_first)
            count = program(model, candidate).flops
            if best is None or count < best[0]:
                best = count, candidate
    if best is None:
        assert wrong is not None
        raise wrong
    return best[1]


def search_order(
    model: Model,
    *,
    steps: int = 1500,
    seed: int = 0,
    start: OrderLike | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Order:
    """The order of the cheapest program that annealing finds; seeded.

    A step moves a body's pair (a, f), or a joint acceleration, to another place, and traces the
    program anew, which is what takes the time: 10 to 20 ms for an arm, more for more bodies.
    ``start``: where to begin (default: the cheapest named order). ``seconds``: after which the best
    so far is returned, which depends on the machine. ``progress`` is called with the step and the
    fewest operations so far.
    """
    starts = [as_order(model, name, seed=seed) for name in (STARTS if start is None else [start])]
    at = min(starts, key=lambda order: program(model, order).flops)
    rng = random.Random(seed)
    counted: dict[tuple[str, ...], float] = {}

    def cost(units: Sequence[tuple[str, ...]]) -> float:
        variables = tuple(name for unit in units for name in unit)
        if variables not in counted:
            try:
                count = float(program(model, replace(at, variables=variables)).flops)
            except SingularError:
                count = math.inf
            counted[variables] = count
        return counted[variables]

    until = math.inf if seconds is None else time.monotonic() + seconds
    # at first one in three moves that cost a fortieth more is accepted, in the end none
    schedule = (0.025 * (1.0 - step / steps) ** 2 for step in range(steps))
    units = tuple(_units(at.variables))
    for step, (best, fewest) in enumerate(anneal(units, cost, schedule, rng)):
        units = best
        if step and progress is not None:
            progress(step, int(fewest))
        if time.monotonic() > until:
            break
    return replace(at, variables=tuple(name for unit in units for name in unit))


def _units(variables: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Accelerations paired with their wrenches, at the place of the later one; others alone."""
    waiting: dict[str, str] = {}
    for name in variables:
        kind, _, owner = name.partition("[")
        if kind not in ("a", "f"):
            yield (name,)
        elif owner in waiting:
            yield waiting[owner], name
        else:
            waiting[owner] = name


# ---- safety --------------------------------------------------------------------------------------


def order_backward_error(model: Model, q: Array, v: Array, tau: Array, a: Array) -> Array:
    """Backward errors (…,) of accelerations a as solutions of M a + bias = tau.

    The largest row of |M a + bias - tau| over that of |M| |a| + |bias| + |tau|: the least relative
    change of M, bias and tau that would make them exact (Oettli and Prager, by rows).
    """
    batch, at = q.shape[:-1], unstack(q)
    mass = stack([x for row in crba(model, at) for x in row], batch)
    mass = mass.reshape(*batch, model.nv, model.nv)
    bias = stack(bias_force(model, at, unstack(v)), batch)
    wrong = np.abs(np.einsum("...ij,...j->...i", mass, a) + bias - tau)
    size = np.einsum("...ij,...j->...i", np.abs(mass), np.abs(a)) + np.abs(bias) + np.abs(tau)
    result: Array = (wrong / np.maximum(size, np.finfo(float).tiny)).max(axis=-1, initial=0.0)
    return result


def order_error(model: Model, order: Order, run: Callable[[Array, Array, Array], Array]) -> float:
    """The largest backward error of an order's program at random states.

    Raises ValueError where it is no solution at all: pivots that are rounding, or zero.
    """
    rng = np.random.default_rng(1)
    q = np.array([model.random_configuration(rng) for _ in range(CHECKED)])
    v, tau = rng.normal(size=(2, CHECKED, model.nv))
    with np.errstate(all="ignore"):
        worst = float(np.max(order_backward_error(model, q, v, tau, run(q, v, tau)), initial=0.0))
    if not worst <= SAFE_ORDER:
        raise ValueError(
            f"this order's pivots are not safe on '{model.name}': its accelerations have a "
            f"backward error of {worst:.1e} at one of {CHECKED} random states, where "
            f"{SAFE_ORDER:g} is allowed; it begins with {', '.join(order.variables[:4])}"
        )
    return worst
