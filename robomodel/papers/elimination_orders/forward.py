"""Forward dynamics in any order, as compiled programs (001, VIII: code for the best order).

With the block LDLᵀ of :mod:`robomodel.papers.elimination_orders.symmetric`, each :class:`Order` of
forward dynamics is a program. Operations are counted after merging equal expressions, with products
by 0 and ±1 free and without sines and cosines of joint angles; :func:`search_order` minimises their
number. Pivots stay in the order's sequence; :func:`order_error` measures the loss of accuracy.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.estimation.elimination import SingularError
from robomodel.instants.equations import Split, System, equations, general_position, pieces
from robomodel.instants.orders import checked_order
from robomodel.kernels.function import Kernel, TracedFunction
from robomodel.kernels.program import Dtype, Program
from robomodel.kernels.trace import Trace
from robomodel.model.derived import cached_on_model, traced
from robomodel.model.model import Model
from robomodel.papers.elimination_orders import symmetric
from robomodel.papers.elimination_orders.graphs import FactorGraph
from robomodel.papers.elimination_orders.orders import anneal, order_of_variables
from robomodel.scalars import Scalar, Vector, stack, subtracted, unstack

CHECKED = 64  # number of random states at which an order is checked
SAFE_ORDER = 1e-12  # largest accepted backward error there
STARTS = ("aba", "crba", "nested dissection")


@dataclass(frozen=True, slots=True)
class Order:
    """An order in which forward dynamics eliminates ``a[link]``, ``f[link]`` and ``qdd[joint]``.

    ``split``: see :func:`robomodel.instants.equations.equations`. ``bias_first``: bias forces of
    velocities and gravity are computed at zero joint acceleration, before the elimination.
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
    """Forward dynamics of the cluster tree; by default, symmetric rotors are not ``turned``."""
    known_variables: dict[str, Vector] = {f"fx[{node.name}]": [0.0] * 6 for node in model.nodes}
    for piece in pieces(model):
        known_variables[f"tau[{piece.name}]"] = [tau[i] for i in piece.dofs]
    system = equations(model, q, v, view="cluster", split=split, turned=turned)
    return system.substituted(known_variables)


@cached_on_model
def _forward_graph(model: Model, split: Split) -> FactorGraph:
    state = general_position(model)
    return FactorGraph.of(_forward_system(model, *state, [0.0] * model.nv, split))


@traced
def forward_dynamics(model: Model, order: Order) -> TracedFunction:
    """Forward dynamics in this order: q, v, tau → a."""
    nv = model.nv
    return TracedFunction(
        "aba", {"q": model.nq, "v": nv, "tau": nv}, {"a": (nv,)},
        lambda q, v, tau: order(model, q, v, tau), label="an order",
    )  # fmt: skip


def forward_kernel(model: Model, order: OrderLike, *, dtype: Dtype = "float64") -> Kernel:
    """Forward dynamics in an order as a kernel: ``kernel(q, v, tau) -> a``.

    ``order``: a name ("crba", "nested dissection", "searched" …), a list of all variables, or an
    :class:`Order`. Raises ValueError for unknown names, and if the order's error exceeds 1e-12
    (:func:`order_error`).
    """
    chosen = as_order(model, order)
    order_error(model, chosen)
    return forward_dynamics(model, chosen).kernel(dtype)


def program(model: Model, order: Order) -> Program:
    """The order's program as traced; inputs are q, v and tau."""
    trace = Trace()
    q, v, tau = (trace.inputs(n) for n in (model.nq, model.nv, model.nv))
    return trace.program(order(model, q, v, tau))


# ---- orders, named and searched ------------------------------------------------------------------


def as_order(model: Model, order: OrderLike, *, seed: int = 0) -> Order:
    """An order by name, in its cheapest form, or an :class:`Order`, checked.

    Names are those of :data:`.orders.NAMES`; "searched" is the result of :func:`search_order`.
    Raises ValueError for other names and variables.
    """
    if isinstance(order, Order):
        checked_order(_forward_graph(model, order.split).sizes, order.variables)
        return order
    if order == "searched":
        return search_order(model, seed=seed)
    best: tuple[int, Order] | None = None
    wrong: Exception | None = None
    for split in ("none", "joint"):
        try:
            variables = order_of_variables(_forward_graph(model, split), model, order, seed=seed)
        except ValueError as error:  # a list of variables fits one ``split`` only
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
    """Search the order with the cheapest program by simulated annealing; seeded.

    A step moves a body's pair (a, f) or a joint acceleration to another place and traces the
    program again, which takes most of the time: 10 to 20 ms for an arm, more for more bodies.
    ``start``: the first order (default: the cheapest named order). ``seconds``: time limit, after
    which the result depends on the machine. ``progress`` is called with the step and the fewest
    operations so far.
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
    # initially, a third of the moves that cost 1/40 more are accepted, finally none
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
    """Accelerations paired with their wrenches, at the position of the later one; others alone."""
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

    The largest row of |M a + bias - tau| over the largest of |M| |a| + |bias| + |tau|: the least
    relative change of M, bias and tau for which they are exact (Oettli and Prager, by rows).
    """
    batch, at = q.shape[:-1], unstack(q)
    mass = stack([x for row in crba(model, at) for x in row], batch)
    mass = mass.reshape(*batch, model.nv, model.nv)
    bias = stack(bias_force(model, at, unstack(v)), batch)
    wrong = np.abs(np.einsum("...ij,...j->...i", mass, a) + bias - tau)
    size = np.einsum("...ij,...j->...i", np.abs(mass), np.abs(a)) + np.abs(bias) + np.abs(tau)
    result: Array = (wrong / np.maximum(size, np.finfo(float).tiny)).max(axis=-1, initial=0.0)
    return result


def order_error(
    model: Model, order: Order, run: Callable[[Array, Array, Array], Array] | None = None
) -> float:
    """The largest backward error of an order's program at random states.

    ``run``: a function that is checked instead. Raises ValueError if the error exceeds 1e-12, since
    pivots are zero or rounding errors.
    """
    run = run or forward_dynamics(model, order).kernel()
    rng = np.random.default_rng(1)
    q = np.array([model.random_configuration(rng, base_pose="random") for _ in range(CHECKED)])
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
