"""Problems: known variables and measurements; well-posedness and solutions.

Inverse, forward and hybrid dynamics are three choices of known variables. Any other choice, with
any sensors, is a problem of the same form (Nori; Xie and Dellaert).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.state import State
from robomodel.errors import UnknownNameError, as_names, check_names, did_you_mean
from robomodel.estimation.elimination import CONTRADICTION, ContradictionError, solve_in_order
from robomodel.instants import elimination
from robomodel.instants.equations import (
    Group,
    LoopRowsKept,
    Piece,
    Split,
    System,
    View,
    backward_error,
    equations,
    general_position,
    pieces,
)
from robomodel.instants.orders import checked_order, classical
from robomodel.instants.sensors import Sensor, in_internal_axes, in_link_axes
from robomodel.model.arguments import as_array
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, stack, unstack, value_of
from robomodel.tolerances import MOVES, RANK

if TYPE_CHECKING:
    from robomodel.instants.compiled import Solver


Method = Literal["gauss", "qr"]


@dataclass(frozen=True)
class Problem:
    """Known variables, measurements, and the form of the equations.

    ``known``: names of known variables (``tau[joint]``, ``qdd[joint]``, ``fx[link]``); their values
    are given with the state. External wrenches, torques of dependent joints and of a floating base
    may be left out and are then zero. All other variables are unknown. ``view``, ``split``,
    ``loops`` and ``net_forces``: see :func:`robomodel.instants.equations.equations`.
    """

    model: Model
    known: frozenset[str]
    sensors: tuple[Sensor, ...] = ()
    view: View = "tree"
    split: Split = "none"
    loops: LoopRowsKept = "independent"
    net_forces: bool = False

    def __post_init__(self) -> None:
        for option, value, kind in (
            ("view", self.view, View), ("split", self.split, Split),
            ("loops", self.loops, LoopRowsKept),
        ):  # fmt: skip
            if value not in get_args(kind):
                choices = ", ".join(map(repr, get_args(kind)))
                raise ValueError(f"{option} {value!r} is not known; known are {choices}")
        names = {variable.name for variable in self.written.variables}
        check_names(self.known, names, "no variable ")
        for name in self.known:
            if name.partition("[")[0] not in ("tau", "qdd", "fx"):
                raise ValueError(
                    f"'{name}' cannot be known outright; measure it with an exact sensor"
                )
        for sensor in self.sensors:
            if sensor.kind == "planar" and self.loops != "all":
                raise ValueError(
                    f"{sensor.name}: conditions in the place of the loop's redundant rows, which "
                    "the problem leaves out; write it with loops='all'"
                )
        labels = [sensor.name for sensor in self.sensors]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"two sensors are named '{label}'; give them names of their own")

    # ---- the usual problems

    @classmethod
    def inverse(cls, model: Model, **how: Any) -> Problem:
        """Inverse dynamics: joint accelerations known; torques of dependent joints are zero."""
        return cls.hybrid(model, a=[p.name for p in pieces(model) if p.dofs], **how)

    @classmethod
    def forward(cls, model: Model, **how: Any) -> Problem:
        """Forward dynamics: torques known; torques of dependent joints are zero."""
        return cls.hybrid(model, **how)

    @classmethod
    def hybrid(cls, model: Model, a: Iterable[str] = (), **how: Any) -> Problem:
        """Hybrid dynamics: accelerations of these independent joints known, else torques."""
        accelerated = set(a)
        view = how.get("view", "tree")
        free = {piece.name for piece in pieces(model) if piece.dofs}
        check_names(accelerated, free, "no independent joint ")
        known = {f"fx[{node.name}]" for node in model.nodes}
        for piece in pieces(model):
            if piece.dofs:
                known.add(f"{'qdd' if piece.name in accelerated else 'tau'}[{piece.name}]")
            elif view == "tree":
                known.add(f"tau[{piece.name}]")
        return cls(model, frozenset(known), **how)

    def having(self, *sensors: Sensor) -> Problem:
        """The problem with further measurements."""
        return replace(self, sensors=(*self.sensors, *sensors))

    def knowing(self, *names: str) -> Problem:
        """The problem with these variables known, too, such as a floating base's zero force."""
        return replace(self, known=self.known | set(names))

    def unknown(self, *names: str) -> Problem:
        """The problem with these variables unknown."""
        check_names(names, self.known, after=" is not known anyway")
        return replace(self, known=self.known - set(names))

    # ---- structure

    def _written(
        self, q: Sequence[Scalar], v: Sequence[Scalar], turned: Container[int] | None = None
    ) -> System:
        return equations(
            self.model, q, v, view=self.view, split=self.split, loops=self.loops,
            net_forces=self.net_forces, turned=turned,
        )  # fmt: skip

    @cached_property
    def _sample(self) -> tuple[list[float], list[float]]:
        """A fixed, reproducible configuration and velocity without special symmetries."""
        return general_position(self.model)

    @cached_property
    def written(self) -> System:
        """The equations at a state without special symmetries, with all variables unknown."""
        return self._written(*self._sample)

    @cached_property
    def structure(self) -> System:
        """The worst-case pattern: the system at a state without symmetries, with zero values."""
        return self.system(*self._sample, {}, {}, zero=True)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Size of each unknown variable, by name."""
        return {variable.name: variable.size for variable in self.structure.variables}

    def order(self, name: str | Sequence[str] = "aba") -> tuple[str, ...]:
        """An elimination order of the unknowns: "rnea", "crba", "aba", or a list (checked)."""
        if isinstance(name, str):
            return classical(self.sizes, self.model, name)
        return checked_order(self.sizes, name)

    def groups(self, order: str | Sequence[Group] = "aba") -> tuple[Group, ...]:
        """An order for Gaussian elimination, of variables or of scalars.

        A name as for :meth:`order`, or a list of all variables, or of all columns in groups, as
        :func:`robomodel.papers.elimination_orders.named_order` returns them for further names.
        """
        if isinstance(order, str) or all(isinstance(group, str) for group in order):
            return self.order(order if isinstance(order, str) else [str(name) for name in order])
        return self.structure.checked(order)

    def factorize(self, order: str | Sequence[Group] = "aba") -> elimination.Elimination:
        """Eliminate at a generic state, to read ``fill``, ``entries`` and ``operations``."""
        return elimination.eliminate_scalars(self.structure, self.groups(order))

    def system(
        self,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        values: Mapping[str, Sequence[Scalar]],
        readings: Mapping[str, Sequence[Scalar]],
        *,
        zero: bool = False,
        turned: Container[int] | None = None,
    ) -> System:
        """The equations at a state with the known variables in b; scalars of any kind.

        ``values`` are in the bodies' internal axes, ``readings`` by the sensors' names. ``zero``:
        missing ones are zero, for the structure alone. ``turned``: see
        :func:`robomodel.instants.equations.equations`.
        """
        model = self.model
        written = self._written(q, v, turned)
        state = State(model, q, range(len(model.nodes)) if turned is None else turned, v)
        names = [node.name for node in model.nodes]
        check_names(values, self.known, after=" is not a known variable of this problem")
        known: dict[str, Sequence[Scalar]] = {}
        for name in self.known:
            size = written.by_name[name].size
            if name not in values and not (zero or self.optional(name)):
                raise ValueError(f"the value of the known '{name}' is missing")
            known[name] = values.get(name, [0.0] * size)
        check_names(readings, [sensor.name for sensor in self.sensors], "no sensor ")
        factors = []
        for sensor in self.sensors:
            if sensor.name not in readings and sensor.reads and not zero:
                raise ValueError(f"the reading of '{sensor.name}' is missing")
            reading = readings.get(sensor.name, [0.0] * sensor.size)
            if len(reading) != sensor.size:
                raise ValueError(f"'{sensor.name}' reads {sensor.size} numbers, not {len(reading)}")
            factor = sensor.factor(state, names, reading)
            if factor.blocks.keys() <= self.known:
                raise ValueError(f"'{sensor.name}' measures only what is known; make it unknown")
            factors.append(factor)
        return written.with_factors(factors).substituted(known)

    def blocks(
        self,
        q: ArrayLike,
        v: ArrayLike,
        values: Mapping[str, ArrayLike] | None = None,
        readings: Mapping[str, ArrayLike] | None = None,
    ) -> tuple[dict[tuple[str, str], Array], dict[str, Array]]:
        """(D, b) at a state as arrays: D[equation, variable] and b[equation].

        ``values`` and ``readings`` as in :meth:`solve`, of one state. Blocks that are zero only at
        this state are included.
        """
        at, speed, arrays, reads = self._arrays(q, v, values, readings)
        system = self.system(*self._at(at, speed, arrays, reads, (), ()))
        matrix, constant = {}, {}
        for factor, worst in zip(system.factors, self.structure.factors, strict=True):
            constant[factor.name] = np.array(factor.constant, dtype=float)
            for name in worst.blocks:
                shape = factor.rows, self.structure.by_name[name].size
                block = factor.blocks.get(name)
                matrix[factor.name, name] = np.zeros(shape) if block is None else np.array(block)
        return matrix, constant

    def optional(self, name: str) -> bool:
        """True if a known variable may be left out, and is then zero."""
        kind, _, owner = name.partition("[")
        undriven = {piece.name for piece in pieces(self.model) if not piece.dofs}
        return kind == "fx" or (
            kind == "tau" and owner[:-1] in {*undriven, self.model.floating_base}
        )

    # ---- well-posedness

    def determinacy(self, q: ArrayLike | None = None) -> Determinacy:
        """Which unknowns are determined at q (default: at a generic state)."""
        at = self._sample[0] if q is None else [float(x) for x in np.asarray(q)]
        system = self.system(at, self._sample[1], {}, {}, zero=True)
        rows, _ = system.matrix()
        matrix = np.array(rows, dtype=float).reshape(system.rows, system.unknowns)
        for _ in range(3):  # equilibrate, as units are mixed
            matrix = matrix / _sizes(matrix, 1)[:, None]
            scale = _sizes(matrix, 0)
            matrix = matrix / scale[None, :]
        _, singular, vt = np.linalg.svd(matrix)
        rank = int(np.sum(singular > RANK * singular[0])) if len(singular) else 0
        null = vt[rank:]
        free = tuple(
            name
            for name, columns in system.columns.items()
            if np.max(np.abs(null[:, list(columns)]), initial=0.0) > MOVES
        )
        return Determinacy(rank, system.unknowns, system.rows, free)

    # ---- solutions

    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike,
        values: Mapping[str, ArrayLike] | None = None,
        readings: Mapping[str, ArrayLike] | None = None,
        *,
        order: str | Sequence[str] = "aba",
        method: Method | None = None,
        refine: int = 1,
    ) -> Solution:
        """Solve for all unknowns at a state, or a batch of states.

        ``values``: known variables (..., size), wrenches about the link's origin in its axes.
        ``readings``: (..., size) by the sensors' names. ``order``: a name, or a list of all
        unknowns. ``method``: "gauss" (any square or consistent system; pivots chosen on the
        values, ``refine`` steps of iterative refinement) or "qr" (measurements with covariances,
        redundant rows); by default "qr" for those, else "gauss".

        Raises SingularError with the name of a variable that is not determined, ValueError if exact
        rows contradict each other.
        """
        chosen = self.order(order)
        way = method or ("qr" if any(s.covariance is not None for s in self.sensors) else "gauss")
        return self.solve_by(
            lambda system: self._solved(system, chosen, way, refine), q, v, values, readings
        )

    def solve_by(
        self,
        solved: Callable[[System], Mapping[str, Sequence[Scalar]]],
        q: ArrayLike,
        v: ArrayLike,
        values: Mapping[str, ArrayLike] | None = None,
        readings: Mapping[str, ArrayLike] | None = None,
    ) -> Solution:
        """Solve for all unknowns as :meth:`solve`, but by ``solved`` of each state's system."""
        at, speed, arrays, reads = self._arrays(q, v, values, readings)
        everything = [at, speed, *arrays.values(), *reads.values()]
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in everything))
        states = [self._at(at, speed, arrays, reads, batch, index) for index in np.ndindex(*batch)]
        systems = [self.system(*state) for state in states]
        solutions = [solved(system) for system in systems]
        raw = {
            v.name: np.array([one[v.name] for one in solutions], dtype=float).reshape(
                *batch, v.size
            )
            for v in self.structure.variables
        }
        error = max((float(backward_error(s, x)) for s, x in
                     zip(systems, solutions, strict=True)), default=0.0)  # fmt: skip
        return Solution(self, at, speed, raw, arrays, error)

    def compile(
        self,
        variables: Iterable[str] | None = None,
        *,
        covariances: Iterable[str] = (),
        order: str | Sequence[Group] | None = None,
        masked: bool = False,
        refine: int | None = None,
    ) -> Solver:
        """Compile a solver: ``solver(q, v, values, readings) -> {name: (..., size)}``.

        ``variables``: its outputs (default: all unknowns). ``covariances``: the unknowns whose
        covariances it returns, too. ``order``: as for :meth:`groups`; by default, the one with the
        fewest operations among several. ``masked``: single measurements may be missing. ``refine``:
        number of steps of iterative refinement (default: one with measurements that have
        covariances). See :class:`.compiled.Solver`; raises the errors of :meth:`solve` now.
        """
        from robomodel.instants.compiled import Solver

        names = self.sizes if variables is None else variables
        return Solver(
            self, as_names(names, "variables"), as_names(covariances, "covariances"),
            order if order is None or isinstance(order, str) else tuple(order), masked, refine,
        )  # fmt: skip

    def _solved(
        self, system: System, order: tuple[str, ...], method: str, refine: int
    ) -> Mapping[str, Sequence[float]]:
        if method == "qr":
            best = solve_in_order(system.graph(), order, refine=refine)
            return {name: x.tolist() for name, x in best.items()}
        if method != "gauss":
            raise ValueError(f"method '{method}' is not known; 'gauss' and 'qr' are")
        if any(factor.deviation is not None for factor in system.factors):
            raise ValueError("measurements with covariances need method='qr'")
        done = elimination.eliminate_scalars(system, order)
        right = [-x for factor in system.factors for x in factor.constant]
        _, left = done.solve(right)
        scale = max((abs(value_of(x)) for x in right), default=0.0)
        worst = max((abs(value_of(x)) for x in left), default=0.0)
        if worst > CONTRADICTION * max(scale, 1.0):
            raise ContradictionError(worst)
        solution = done.solution(refine=refine)
        return {name: [value_of(x) for x in values] for name, values in solution.items()}

    def _arrays(
        self,
        q: ArrayLike,
        v: ArrayLike,
        values: Mapping[str, ArrayLike] | None,
        readings: Mapping[str, ArrayLike] | None,
    ) -> tuple[Array, Array, dict[str, Array], dict[str, Array]]:
        size = self.written.by_name
        arrays = {name: as_array(x, size[name].size if name in size else np.shape(x)[-1], name,
                                 "its size") for name, x in (values or {}).items()}  # fmt: skip
        reads = {name: np.asarray(x, dtype=float) for name, x in (readings or {}).items()}
        at, speed = as_array(q, self.model.nq, "q", "nq"), as_array(v, self.model.nv, "v", "nv")
        return at, speed, arrays, reads

    def _at(
        self,
        q: Array,
        v: Array,
        values: Mapping[str, Array],
        readings: Mapping[str, Array],
        batch: tuple[int, ...],
        index: tuple[int, ...],
    ) -> tuple[list[float], list[float], Mapping[str, Vector], dict[str, list[float]]]:
        """One state of a batch as floats, wrenches in the bodies' internal axes."""

        def one(x: Array) -> list[float]:
            result: list[float] = np.broadcast_to(x, (*batch, x.shape[-1]))[index].tolist()
            return result

        inside = in_internal_axes(self.model, {name: one(x) for name, x in values.items()})
        return one(q), one(v), inside, {name: one(x) for name, x in readings.items()}


@dataclass(frozen=True, slots=True)
class Determinacy:
    """Rank of the system, and the names of unknowns that it does not determine."""

    rank: int
    unknowns: int
    rows: int
    undetermined: tuple[str, ...]

    @property
    def well_posed(self) -> bool:
        """True if every unknown is determined."""
        return self.rank == self.unknowns

    @property
    def nullity(self) -> int:
        """Dimension of the set of solutions."""
        return self.unknowns - self.rank

    @property
    def redundant(self) -> int:
        """Number of redundant rows, from extra measurements or from redundant loop conditions."""
        return self.rows - self.rank


@dataclass(frozen=True)
class Solution(Mapping[str, Any]):
    """Values (..., size) of all unknowns by name; wrenches and accelerations in link axes.

    ``raw``: the values in the bodies' internal axes. ``backward_error``: the largest of all states.
    """

    problem: Problem
    q: Array
    v: Array
    raw: Mapping[str, Array]
    known: Mapping[str, Array] = field(repr=False)
    backward_error: float = 0.0

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __getitem__(self, name: str) -> Array:
        if name not in self.raw:
            raise UnknownNameError(f"no unknown '{name}'{did_you_mean(name, self.raw)}")
        value, model = self.raw[name], self.problem.model
        state = State(model, unstack(self.q), range(len(model.nodes)), unstack(self.v))
        shown = in_link_axes(name, value.shape[-1], state)
        constant: Array = stack(shown.constant, value.shape[:-1])
        block = np.array(shown.blocks[name], dtype=float)
        result: Array = constant + value @ block.T
        return result

    def _by_dof(self, kind: str) -> Array:
        parts: list[tuple[Piece, Array]] = []
        for piece in pieces(self.problem.model):
            if piece.dofs:
                name = f"{kind}[{piece.name}]"
                value = self.raw.get(name, self.known.get(name, np.zeros(len(piece.dofs))))
                parts.append((piece, value))
        batch = np.broadcast_shapes(*(value.shape[:-1] for _, value in parts))
        result = np.zeros((*batch, self.problem.model.nv))
        for piece, value in parts:
            result[..., list(piece.dofs)] = value
        return result

    @property
    def tau(self) -> Array:
        """Torques (..., nv) of the independent joints, including known ones."""
        return self._by_dof("tau")

    @property
    def acceleration(self) -> Array:
        """Accelerations (..., nv) of the independent joints, including known ones."""
        return self._by_dof("qdd")


def _sizes(matrix: Array, axis: int) -> Array:
    size: Array = np.max(np.abs(matrix), axis=axis, initial=0.0)
    return np.where(size > 0.0, size, 1.0)
