"""Elimination orders measured: operations, times, fill; beside recursions and sparse solvers.

Orders are those of :mod:`robomodel.papers.elimination_orders`, as programs of forward dynamics.
Counts are of programs as traced, before multiplications are fused into additions: equal expressions
count once, products with 0 and ±1 nothing, divisions and roots one, sines and cosines apart.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import robomodel as rm
from benchmarks.shared.chains import chain as serial_chain
from benchmarks.shared.counts import counts, traced
from benchmarks.shared.race import Array, Race
from robomodel.dynamics.algorithm import AlgorithmSpec
from robomodel.estimation.elimination import SingularError
from robomodel.instants import elimination
from robomodel.instants.equations import System, pieces
from robomodel.instants.problem import Problem
from robomodel.instants.sensors import contact
from robomodel.kernels import Program, Trace
from robomodel.kernels.compile import compile_program
from robomodel.papers.elimination_orders import (
    NAMES,
    SCALAR_ORDERS,
    Order,
    as_order,
    forward_kernel,
    named_order,
    order_backward_error,
    program,
    scalar_order,
    search_order,
)
from robomodel.papers.equations import elementwise_operations
from robomodel.scalars import unstack

try:
    import gtsam
except ImportError:
    gtsam = None
try:
    import pybullet_data
except ImportError:
    pybullet_data = None

SEED = 1  # of the chains' parameters and of all states
ORDERS = tuple(name for name in NAMES if name not in ("rnea", "searched"))
"""Named orders of forward dynamics; "rnea" is the same order as "crba" there."""
CHAIN_ORDERS = ("crba", "aba", "colamd", "nested dissection")
"""Those of chains, where all greedy orders are much the same."""
SCALAR = "scalar LU of D"


@dataclass(frozen=True)
class Row:
    """One program or solver on one robot: operations, and the least nanoseconds a state.

    ``error``: the largest backward error of its accelerations at any state.
    """

    system: str
    links: int
    name: str
    mul: int | None = None
    add: int | None = None
    div: int | None = None
    trig: int | None = None
    ns: float | None = None
    median: float | None = None
    error: float | None = None

    @property
    def operations(self) -> int | None:
        """All but sines and cosines."""
        if self.mul is None or self.add is None or self.div is None:
            return None
        return self.mul + self.add + self.div

    @classmethod
    def of(cls, system: str, links: int, name: str, found: Program) -> Row:
        """Counted, not timed."""
        n = counts(found)
        return cls(system, links, name, n["mul"], n["add"], n["div"], n["trig"])


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    states: int = 1024  # in a batch
    singles: int = 16  # states of solvers that take matrices
    rounds: int = 15
    links: tuple[int, ...] = (2, 3, 4, 6, 8, 12, 16, 24, 32)
    compiled: int = 60_000  # operations up to which a chain's program is timed
    dense: int = 12  # links up to which the dense system of a chain is timed
    serial: tuple[int, ...] = (2, 4, 6, 8, 12, 16, 20, 25, 30)  # links of document 003's chain
    zero_fill: tuple[int, ...] = (2, 5, 10, 20, 30, 50, 100)
    searched: tuple[tuple[str, int], ...] = (
        ("PUMA 560", 1500), ("7-axis arm", 1500), ("Mini Cheetah", 1000)
    )  # fmt: skip


QUICK = Effort(
    states=64, singles=4, rounds=2, links=(2, 4, 8), compiled=4000, dense=4, serial=(2, 6),
    zero_fill=(2, 10, 30), searched=(("PUMA 560", 40), ("7-axis arm", 10), ("Mini Cheetah", 4)),
)  # fmt: skip


# ---- robots --------------------------------------------------------------------------------------


def arm() -> tuple[rm.Model, str]:
    """A 7-axis arm and what it is: KUKA's as PyBullet ships it where that is installed."""
    if pybullet_data is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rm.DescriptionWarning)
            path = f"{pybullet_data.getDataPath()}/kuka_iiwa/model.urdf"
            return rm.load(path), "KUKA LBR iiwa, as PyBullet ships it"
    return chain(7), "a random chain of seven links (pybullet_data is not installed)"


def robots() -> dict[str, rm.Model]:
    """The robots in particular, by name."""
    return {
        "PUMA 560": rm.robots.load("puma560"),
        "7-axis arm": arm()[0],
        "Mini Cheetah": rm.robots.load("mini_cheetah"),
    }


def chain(links: int) -> rm.Model:
    """A serial chain in general position: nothing vanishes but by the joints' axes."""
    return serial_chain("plain", links, rng=np.random.default_rng(SEED))


def tapered(links: int) -> rm.Model:
    """Document 003's chain, on the ground."""
    return rm.load(tapered_text(links), gravity=(0.0, -9.81, 0.0))


def tapered_text(links: int, *, free: bool = False) -> str:
    """Document 003's chain: each link 0.9 times as long as the last, axes 1.5 rad askew.

    Slender links along x of density and thickness in proportion, with revolute joints about z.
    """
    lines = ['<robot name="tapered">' + ("" if free else '<link name="link0"/>')]
    before = 0.0
    for n in range(links):
        length = 0.9**n
        mass = length**3
        across, along = mass * length**2 * 1.015 / 12.0, mass * length**2 * 0.0025
        skew = 1.5 if n else 0.0
        lines.append(
            f'<link name="link{n + 1}"><inertial><origin xyz="{length / 2} 0 0"/>'
            f'<mass value="{mass}"/><inertia ixx="{along}" iyy="{across}" izz="{across}"'
            ' ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )
        if n or not free:
            lines.append(
                f'<joint name="joint{n + 1}" type="continuous"><parent link="link{n}"/>'
                f'<child link="link{n + 1}"/><origin xyz="{before} 0 0" rpy="{skew} 0 0"/>'
                '<axis xyz="0 0 1"/></joint>'
            )
        before = length
    return "".join([*lines, "</robot>"])


def states(model: rm.Model, count: int) -> tuple[Array, Array, Array]:
    """Positions, velocities and forces; a few dozen configurations take turns."""
    rng = np.random.default_rng(SEED)
    some = np.array([model.random_configuration(rng) for _ in range(min(count, 64))])
    v, tau = rng.normal(size=(2, count, model.nv))
    return np.resize(some, (count, model.nq)), v, tau


# ---- programs ------------------------------------------------------------------------------------


CORE: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "RNEA (inverse dynamics)": ("rnea", {}),
    "ABA": ("aba", {}),
    "CRBA + LDLᵀ": ("aba", {"method": "projection"}),
}
"""The recursions: what they are called here, and what they are to ``rm.compile``."""


def scalar_lu(forward: Forward, plan: elimination.PivotSequence) -> Program:
    """Forward dynamics by Gaussian elimination of scalars with these pivots."""
    model, trace = forward.problem.model, Trace()
    q, v, tau = (trace.inputs(n) for n in (model.nq, model.nv, model.nv))
    solution = elimination.eliminate_scalars(forward(q, v, tau), (), plan).solution()
    joints = [piece for piece in pieces(model) if piece.dofs]
    values = {i: x for p in joints for i, x in zip(p.dofs, solution[f"qdd[{p.name}]"], strict=True)}
    return trace.program([values[i] for i in range(model.nv)])


@dataclass(frozen=True)
class Forward:
    """The equations of forward dynamics at states, scalars of any kind."""

    problem: Problem

    @classmethod
    def of(cls, model: rm.Model, **how: object) -> Forward:
        """``how`` they are written, as of :class:`Problem`."""
        return cls(Problem.forward(model, **how))

    def __call__(self, q: Sequence, v: Sequence, tau: Sequence) -> System:
        """The system at these states."""
        joints = [piece for piece in pieces(self.problem.model) if piece.dofs]
        values = {f"tau[{p.name}]": [tau[i] for i in p.dofs] for p in joints}
        return self.problem.system(q, v, values, {})

    def permutation(self, count: int = 8, *, scalar: bool = True) -> elimination.PivotSequence:
        """Pivots that are safe at so many states, of the fewest operations of a few ways.

        Variable by variable in the orders of COLAMD and ABA, and scalar by scalar (``scalar``; slow
        where there are many), always by Markowitz's count. Where no way has pivots that are safe at
        all these states, half as many are asked for.
        """
        system = self(*(unstack(x) for x in states(self.problem.model, count)))
        ways: list[Callable[[], elimination.PivotSequence]] = [
            lambda order=order: elimination.plan_pivots(system, named_order(self.problem, order))
            for order in ("colamd", "aba")
        ]
        if scalar:
            ways.append(lambda: elimination.plan_pivots(system, scalar_order(system, "markowitz")))
        plans = []
        for way in ways:
            with contextlib.suppress(SingularError):
                plans.append(way())
        if not plans:
            return self.permutation(count // 2, scalar=scalar)
        return min(
            plans, key=lambda plan: elimination.eliminate_scalars(system, (), plan).operations
        )


def speed(
    name: str, links: int, model: rm.Model, orders: Mapping[str, Order], effort: Effort
) -> list[Row]:
    """Recursions, orders and solvers on one robot, in turns."""
    q, v, tau = states(model, effort.states)
    rows: dict[str, Row] = {}
    race = Race(effort.rounds)

    def add(what: str, lowered: Program, run: Callable[..., Array], forward: bool = True) -> None:
        row = Row.of(name, links, what, lowered)
        out = run(q, v, tau)
        if forward:
            row = replace(row, error=float(order_backward_error(model, q, v, tau, out).max()))
        rows[what] = row
        race.add(what, lambda: run(q, v, tau, out=out), len(q))

    for what, (algorithm, how) in CORE.items():
        lowered = traced(model, AlgorithmSpec(algorithm, **how))
        add(what, lowered, rm.compile(model, algorithm, **how).ufunc, algorithm == "aba")
    for what, order in orders.items():
        lowered = program(model, order)
        label = what if what == "searched" else f"order {what}"
        if lowered.flops > effort.compiled and links:
            rows[label] = Row.of(name, links, label, lowered)
            continue
        add(label, lowered, forward_kernel(model, order).ufunc)
    system = Forward.of(model, view="cluster")
    plan = system.permutation(scalar=not links)
    lowered = scalar_lu(system, plan)
    if lowered.flops <= effort.compiled or not links:
        content = hashlib.sha256(repr((lowered.steps, lowered.outputs)).encode()).hexdigest()
        kernel = compile_program(lowered.fused, [model.nq, model.nv, model.nv, model.nv],
                                 name=f"scalar LU {content}")  # fmt: skip
        add(SCALAR, lowered, kernel.ufunc)
    solvers = matrix_solvers(system, plan, effort, dense=links <= effort.dense)
    for what, (run, solved) in solvers.items():
        few = [x[: len(solved)] for x in (q, v, tau)]
        error = float(order_backward_error(model, *few, solved).max())
        rows[what] = Row(name, links, what, error=error)
        race.add(what, run, len(solved))
    times = race.run()
    return [
        replace(row, ns=times[what].minimum, median=times[what].median) if what in times else row
        for what, row in rows.items()
    ]


Solver = tuple[Callable[[], object], Array]


def matrix_solvers(
    forward: Forward, plan: elimination.PivotSequence, effort: Effort, dense: bool
) -> dict[str, Solver]:
    """Solvers of M or D: what is timed, and the accelerations that come out.

    Of D only the solution is timed, its entries being there; M and the bias are computed anew.
    """
    model = forward.problem.model
    every = states(model, effort.states)
    crba, bias = rm.compile(model, "crba"), rm.compile(model, "bias_force")

    def lapack() -> Array:
        q, v, tau = every
        return np.linalg.solve(crba(q), (tau - bias(q, v))[..., None])[..., 0]

    solvers: dict[str, Solver] = {"LAPACK on M": (lapack, lapack())}
    q, v, tau = (x[: effort.singles] for x in every)
    matrix, right, place = as_arrays(forward(*(unstack(x) for x in (q, v, tau))), len(q))
    joints = {
        i: place[f"qdd[{p.name}]"][n] for p in pieces(model) for n, i in enumerate(p.dofs)
    }  # fmt: skip
    at = [joints[i] for i in range(model.nv)]
    if dense:

        def whole() -> Array:
            return np.linalg.solve(matrix, right[..., None])[..., 0]

        solvers["LAPACK on D"] = whole, whole()[:, at]
    rows, columns = (list(x) for x in zip(*plan.pivots, strict=True))
    pattern = sp.csc_array((matrix != 0.0).any(axis=0)[np.ix_(rows, columns)])
    i = np.array(rows)[pattern.indices]
    j = np.repeat(columns, np.diff(pattern.indptr))
    permuted = [
        sp.csc_matrix((m[i, j], pattern.indices, pattern.indptr), shape=pattern.shape)
        for m in matrix
    ]
    plain = [sp.csc_matrix(m) for m in matrix]
    options = {"Equil": False}

    def fixed() -> list[Array]:
        return [
            splu(m, permc_spec="NATURAL", diag_pivot_thresh=0.0, options=options).solve(b[rows])
            for m, b in zip(permuted, right, strict=True)
        ]

    def colamd() -> list[Array]:
        return [splu(m).solve(b) for m, b in zip(plain, right, strict=True)]

    back = np.argsort(columns)
    solvers["SuperLU on D, fixed permutation"] = fixed, np.array(fixed())[:, back][:, at]
    solvers["SuperLU on D, COLAMD"] = colamd, np.array(colamd())[:, at]
    return solvers


def as_arrays(system: System, count: int) -> tuple[Array, Array, dict[str, range]]:
    """D (count, n, n) and -b (count, n) of a system whose values are batches."""
    rows, constant = system.matrix()
    matrix = np.zeros((count, len(rows), system.unknowns))
    for i, row in enumerate(rows):
        for j, x in enumerate(row):
            matrix[:, i, j] = x
    right = np.zeros((count, len(rows)))
    for i, x in enumerate(constant):
        right[:, i] = -np.asarray(x)
    return matrix, right, system.columns


# ---- scalar permutations (document 003) ----------------------------------------------------------


def closed_form(links: int) -> int:
    """ABA on a chain of Denavit-Hartenberg joints (Brandl, Johanni and Otter 1986): 429 n - 507.

    224 n - 259 multiplications and 205 n - 248 additions, as Featherstone (2008, table 10.1) and
    document 003 give them.
    """
    return 429 * links - 507


def serial(links: int) -> dict[str, float]:
    """Document 003, figure 1: forward dynamics of its chain by permuted sparse LU.

    Its equations have the net force on each body too; "without" is without these.
    """
    model = tapered(links)
    at = [x[0].tolist() for x in states(model, 1)]
    counts_of: dict[str, float] = {"links": links, "closed form": closed_form(links)}
    for net in (True, False):
        forward = Forward.of(model, net_forces=net)
        plan = forward.permutation(1)
        done = elimination.eliminate_scalars(forward(*at), (), plan)
        if net:
            counts_of["elementwise"] = elementwise_operations(done)
            counts_of["counted"] = done.operations
        else:
            counts_of["without"] = done.operations
            counts_of["traced"] = scalar_lu(forward, plan).flops
    for name, (algorithm, how) in CORE.items():
        counts_of[name] = traced(model, AlgorithmSpec(algorithm, **how)).flops
    return counts_of


def load_cells(links: int) -> dict[str, int]:
    """Document 003, figure 2: joint torques of a free chain whose first and last link are touched.

    Its load cells measure five components of each wrench, as the paper's second set; the base is
    not driven. Operations of the permuted LU by orders of variables and of scalars, counted right.
    """
    free = rm.load(tapered_text(links, free=True), gravity=(0.0, -9.81, 0.0), floating_base=True)
    ends = [free.nodes[0].name, free.nodes[-1].name]
    problem = Problem.inverse(free).knowing(f"tau[{free.floating_base}]")
    problem = problem.unknown(*(f"fx[{link}]" for link in ends))
    problem = problem.having(*(contact(link, components=(0, 1, 3, 4, 5)) for link in ends))
    cells = {"links": links, "unknowns": problem.structure.unknowns}
    for name in ("rnea", "aba", "colamd", *(f"scalar {name}" for name in SCALAR_ORDERS)):
        done = problem.factorize(named_order(problem, name))
        cells |= {f"{name}, operations": done.operations, f"{name}, fill": done.fill}
    return cells


def zero_fill(links: int) -> dict[str, float]:
    """Document 003, section IV-D: Markowitz's permutation of inverse dynamics; entries and fill."""
    model = tapered(links)
    problem = Problem.inverse(model)
    start = time.perf_counter()
    plan = elimination.plan_pivots(problem.structure, scalar_order(problem.structure, "markowitz"))
    seconds = time.perf_counter() - start
    done = elimination.eliminate_scalars(problem.structure, (), plan)
    entries = len(problem.structure.pattern())
    return {
        "links": links,
        "unknowns": problem.structure.unknowns,
        "entries": entries,
        "fill": done.fill,
        "counted": done.operations,
        "RNEA": traced(model, AlgorithmSpec("rnea")).flops,
        "seconds": seconds,
    }


# ---- factor graphs (document 001) ----------------------------------------------------------------

PUBLISHED: Mapping[tuple[str, str], float] = {  # µs, tables I and II
    ("inverse", "rnea"): 26.6,
    ("inverse", "COLAMD"): 11.0,
    ("inverse", "nested dissection"): 11.7,
    ("forward", "crba"): 51.8,
    ("forward", "aba"): 25.5,
    ("forward", "COLAMD"): 11.2,
    ("forward", "nested dissection"): 12.1,
}


def factor_graphs(model: rm.Model, effort: Effort) -> Iterator[dict[str, object]]:
    """Elimination and back-substitution by GTSAM, in its own orders and in the classical ones.

    Factors as constraints, which it eliminates by QR, and of unit variance, where it prefers
    Cholesky's factorisation of the normal equations. Error: of joint accelerations or torques,
    relative to the largest. Orders are searched beforehand; all of a problem's take turns.
    """
    q, v, tau = states(model, effort.singles)
    a = rm.aba(model, q, v, tau)
    joints = model.dof_names
    for kind, given, unknown, answer in (
        ("inverse", ("qdd", a), "tau", tau), ("forward", ("tau", tau), "qdd", a)
    ):  # fmt: skip
        problem = getattr(Problem, kind)(model)
        keys = {name: i for i, name in enumerate(problem.sizes)}
        systems = [
            problem.system(q[n].tolist(), v[n].tolist(),
                           {f"{given[0]}[{j}]": [float(x)] for j, x in zip(joints, given[1][n],
                                                                           strict=True)}, {})
            for n in range(len(q))
        ]  # fmt: skip
        race, errors = Race(effort.rounds), {}
        for noise in ("constraints, QR", "unit variance, Cholesky"):
            exact = noise.startswith("constraints")
            graphs = [as_graph(system, keys, exact) for system in systems]
            for order in (o for k, o in PUBLISHED if k == kind):
                if order == "COLAMD":
                    ordering = gtsam.Ordering.ColamdGaussianFactorGraph(graphs[0])
                elif order == "nested dissection":
                    ordering = gtsam.Ordering.MetisGaussianFactorGraph(graphs[0])
                else:
                    ordering = gtsam.Ordering()
                    for name in named_order(problem, order):
                        ordering.push_back(keys[name])

                def run(graphs: list = graphs, ordering: object = ordering) -> list:
                    return [g.eliminateSequential(ordering).optimize() for g in graphs]

                solutions = [[x.at(keys[f"{unknown}[{j}]"])[0] for j in joints] for x in run()]
                errors[order, noise] = float(
                    np.abs(solutions - answer).max() / np.abs(answer).max()
                )
                race.add(f"{order}/{noise}", run, len(graphs))
        times = race.run()
        for (order, noise), error in errors.items():
            yield {
                "problem": kind, "order": order, "noise": noise, "error": error,
                "ns": times[f"{order}/{noise}"].minimum, "paper": PUBLISHED[kind, order],
            }  # fmt: skip


def as_graph(system: System, keys: Mapping[str, int], exact: bool) -> object:
    """The system as GTSAM's factor graph."""
    graph = gtsam.GaussianFactorGraph()
    for factor in system.factors:
        terms = [
            x
            for name, rows in factor.blocks.items()
            for x in (keys[name], np.array(rows, dtype=float))
        ]
        kind = gtsam.noiseModel.Constrained.All if exact else gtsam.noiseModel.Unit.Create
        right = -np.array(factor.constant, dtype=float)
        graph.add(gtsam.JacobianFactor(*terms, right, kind(factor.rows)))
    return graph


# ---- search --------------------------------------------------------------------------------------


def search(
    model: rm.Model, steps: int, progress: Callable[[int, int], None]
) -> tuple[Order, dict[str, object]]:
    """The cheapest order that annealing finds, and how it went."""
    seen: list[int] = []

    def note(step: int, fewest: int) -> None:
        seen.append(fewest)
        progress(step, fewest)

    start = time.perf_counter()
    found = search_order(model, steps=steps, progress=note)
    seconds = time.perf_counter() - start
    named = {name: program(model, as_order(model, name)).flops for name in ORDERS}
    best = min(named, key=lambda name: named[name])
    return found, {
        "steps": steps,
        "seconds": seconds,
        "best named": best,
        "named": named[best],
        "core": {
            name: traced(model, AlgorithmSpec(algorithm, **how)).flops
            for name, (algorithm, how) in CORE.items()
        },
        "found": seen[-1],
        "at": seen.index(seen[-1]) + 1,
        "variables": list(found.variables),
        "split": found.split,
        "bias_first": found.bias_first,
    }
