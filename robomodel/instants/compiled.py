"""Problems as compiled programs: solvers with pivots chosen in advance (Nori, section V-D).

The elimination order and the pivots are chosen once, at random states at which they must all be
numerically safe, and checked at others. The solver is then traced and compiled without branches,
like the programs of the recursions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.frames import place
from robomodel.dynamics.kinematics.state import State
from robomodel.errors import UnknownNameError, check_names, did_you_mean
from robomodel.estimation.elimination import CONTRADICTION, ContradictionError, SingularError
from robomodel.instants import elimination
from robomodel.instants.elimination import WeightedElimination
from robomodel.instants.equations import Group, LinearFactor, System, backward_error, residual
from robomodel.instants.orders import tips
from robomodel.instants.sensors import Sensor, in_internal_axes, in_link_axes
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.program import Program
from robomodel.model.arguments import as_array, by_name
from robomodel.reach.drawing import drawn
from robomodel.scalars import Scalar, array_of, dot
from robomodel.tolerances import TINY

if TYPE_CHECKING:
    from robomodel.instants.problem import Problem

# numbers of random states to choose pivots at, and to check them at; what is safe at 16 loses three
# digits more at one of 1000
PLANNED, CHECKED = 128, 256
SAFE = 1e-11  # largest accepted backward error at the latter
Named: TypeAlias = Mapping[str, Sequence[Scalar]]


@dataclass(frozen=True)
class SolverEstimate(Mapping[str, Array]):
    """Values (..., size) of the requested variables, by name; wrenches in link axes.

    ``covariances``: (..., size, size) of the requested ones.
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
    """The elimination order of a system, and its pivots."""

    order: tuple[Group, ...]
    pivots: elimination.PivotSequence


class Solver:
    """A problem's program: ``solver(q, v, values, readings) -> SolverEstimate``.

    Arguments as in :meth:`Problem.solve`, with leading batch axes that broadcast. Created by
    :meth:`Problem.compile`, which documents its arguments. ``plan``: the order and the pivots.
    ``backward_error``: the largest one at random states, relative to the sizes of the terms, of
    exact rows and of the optimality conditions of least squares.
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
        names = problem.sizes
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
        """The kernel for the required known variables and these optional ones.

        Its ``ufunc`` takes flat arrays: q, v, the values of the variables ``known`` concatenated,
        the readings of all ``sensors``, and one number for each of ``masked``; empty ones are left
        out.
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
        """Solve for the unknowns at a state, or a batch of states.

        ``values`` (..., size) of known variables and ``readings`` (..., size) of sensors, by name.
        ``mask`` (...) of a solver compiled with ``masked``: true where a sensor's measurement is
        present; sensors without a reading are missing, too. Unknowns that the present measurements
        do not determine are nan. ``threads``: number of threads for a batch (0: one per processor).

        Raises ValueError if exact rows contradict each other, as :meth:`Problem.solve` does.
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
        # with missing measurements, a division by zero marks an undetermined unknown
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
    """The compiled program for one set of known variables."""

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
        """The bodies whose axes must turn with them; None: all."""
        problem, model = self.solver.problem, self.solver.problem.model
        if problem.view == "tree" or problem.split == "steps":
            return None
        body_of = {node.name: body for body, node in enumerate(model.nodes)}
        result = {place(model, s.at).body for s in problem.sensors if s.kind in _FRAMED}
        unknown = [name for name in problem.sizes if name.startswith("fx[")]
        for name in (*self.known, *unknown, *self.solver.variables, *self.solver.covariances):
            kind, _, owner = name.partition("[")
            if kind in ("a", "f", "fx", "net") and owner[:-1] in body_of:
                result.add(body_of[owner[:-1]])
        return frozenset(result)

    # ---- the problem at states, scalars of any kind

    def _written(
        self, q: Sequence[Scalar], v: Sequence[Scalar], values: Named, readings: Named
    ) -> tuple[System, dict[str, LinearFactor]]:
        """The system with rows for covariances, and the rows that give variables in link axes."""
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
    ) -> tuple[dict[str, list[Scalar]], WeightedElimination]:
        weights = {name: x[0] for name, x in present.items()}
        result = WeightedElimination(system, plan.order, plan.pivots, weights)
        return result.solution(refine=refine), result

    def _written_out(self, plan: EliminationPlan) -> TracedFunction:
        """The function of q, v, known variables, readings and mask, without empty ones."""
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
            for name in solver.covariances:
                outputs += [x for row in estimation.covariance(shown[name].name) for x in row]
            return outputs + estimation.failing()

        model, sizes_of = problem.model, problem.sizes
        numbers = sum(sizes_of[name] for name in solver.variables)
        numbers += sum(sizes_of[name] ** 2 for name in solver.covariances)
        exact = sum(f.rows for f in problem.structure.factors if f.deviation is None)
        numbers += exact - len(plan.pivots.pivots)
        return TracedFunction(
            "solve", arguments, {"d": (numbers,)}, build, owner=model, label="a solver"
        )

    def estimate(self, flat: Array) -> SolverEstimate:
        """The program's outputs by name."""
        batch, at = flat.shape[:-1], 0
        sizes = self.solver.problem.sizes
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
        """The system at a batch of random states with random values."""
        problem, rng = self.solver.problem, np.random.default_rng(seed)
        q = drawn(problem.model, rng, count, problem.model.neutral())
        v = rng.normal(size=(count, problem.model.nv))
        values = {name: [*rng.normal(size=(n, count))] for name, n in self.sizes.items()}
        readings = {s.name: [*rng.normal(size=(s.size, count))] for s in self.sensors}
        return self._written([*q.T], [*v.T], values, readings)[0]

    def _chosen(self) -> tuple[EliminationPlan, TracedFunction, float]:
        """The safe plan with the fewest operations, its function, and its backward error."""
        system = self._states(PLANNED, 2)
        plans: list[tuple[EliminationPlan, TracedFunction]] = []
        refused: Exception | None = None
        for order in self._orders():
            try:
                plan = EliminationPlan(order, elimination.plan_pivots(system, order))
                function = self._written_out(plan)
                _ = function.program  # trace now, so that errors are raised here
                plans.append((plan, function))
            except (ValueError, SingularError) as problem:
                refused = problem
        if not plans:
            assert refused is not None
            raise refused
        worst = math.inf
        other = self._states(CHECKED, 3)
        plans.sort(key=lambda one: one[1].program.flops)
        if self.solver.covariances:  # refinement does not change these
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

    def _orders(self) -> Iterator[tuple[Group, ...]]:
        """Elimination orders to compare."""
        problem, requested = self.solver.problem, self.solver.requested_order
        if requested is not None:
            yield problem.groups(requested)
            return
        yield from (problem.order("rnea"), problem.order("aba"), tips(problem.sizes, problem.model))

    def _error(self, plan: EliminationPlan, system: System, *, refine: int) -> float:
        """The largest backward error, of exact rows and of the conditions of least squares.

        Those are: weighted residuals are orthogonal to the null space of the exact rows.
        """
        with np.errstate(all="ignore"):
            present = {name: [1.0] for name in self.solver.masked}
            solution, estimation = self._solved(plan, system, present, refine=refine)
            left = estimation.done.left
            worst = np.max(backward_error(system, solution, but=left), initial=0.0)
            if not estimation.weighted:
                return _number(worst)
            none = [0.0] * system.rows
            free = len(estimation.done.plan.free)
            measured = System(system.variables, tuple(
                f for f in system.factors if f.deviation and not math.isinf(f.deviation[0])
            ))  # fmt: skip
            weights = [s**-2 for f in measured.factors for s in f.deviation or ()]
            wrong = residual(measured, solution)
            size = [
                _size(c) + sum(_size(x) * _size(y) for name, block in f.blocks.items()
                                 for x, y in zip(block[i], solution[name], strict=True))
                for f in measured.factors for i, c in enumerate(f.constant)
            ]  # fmt: skip
            still = System(measured.variables, tuple(
                replace(f, constant=[0.0] * f.rows) for f in measured.factors
            ))  # fmt: skip
            for k in range(free):
                unit = [float(i == k) for i in range(free)]
                along = residual(still, estimation.done.restore(none, unit))
                pull = dot([w * x for w, x in zip(weights, along, strict=True)], wrong)
                terms = sum(w * _size(x) * s for w, x, s in zip(weights, along, size, strict=True))
                worst = max(
                    worst, np.max(np.abs(array_of(pull)) / np.maximum(terms, TINY), initial=0.0)
                )
            return _number(worst)


_FRAMED = ("acceleration", "wrench", "external")


def _joined(parts: Sequence[Array]) -> Array:
    if len(parts) == 1:
        return parts[0]
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
    return np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])) for x in parts], axis=-1)


def _named(numbers: Sequence[Scalar], sizes: Mapping[str, int]) -> dict[str, list[Scalar]]:
    """Split concatenated numbers by name."""
    result, at = {}, 0
    for name, size in sizes.items():
        result[name] = list(numbers[at : at + size])
        at += size
    return result


def _size(x: Scalar) -> Array:
    return np.asarray(np.abs(array_of(x)))


def _number(x: Any) -> float:
    """Convert to float; nan becomes infinite."""
    result = float(x)
    return math.inf if math.isnan(result) else result
