"""Elimination orders as code: forward dynamics in any order, counted, searched for and compiled.

What 001 left for later: "generated code for the best order". The block LDLᵀ of
:mod:`robomodel.estimation.symmetric` runs on traced scalars, so an order becomes a
straight-line program, and its operations can be counted: equal expressions merged, products with 0
and ±1 free, sines and cosines of joint angles apart. Search minimises that count.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import bias_force
from robomodel.estimation import symmetric
from robomodel.estimation.equations import Split, pieces
from robomodel.estimation.instant import Problem
from robomodel.estimation.orders import anneal
from robomodel.estimation.system import SingularError
from robomodel.kernels.program import Program
from robomodel.kernels.trace import Trace
from robomodel.model.derived import cached_on_model
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, stack, subtracted, unstack

STARTS = ("aba", "crba", "nested dissection")
SAFE = 1e-12  # backward error of an order that may be compiled
STATES = 64  # at which it is measured


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
        forces = {
            f"tau[{piece.name}]": [tau[i] for i in piece.dofs]
            for piece in pieces(model)
            if piece.dofs
        }  # symmetric bodies need not be turned
        system = _problem(model, self.split).system(q, v, forces, {}, turned=())
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


@cached_on_model
def _problem(model: Model, split: Split) -> Problem:
    """Forward dynamics of the cluster tree."""
    return Problem.forward(model, view="cluster", split=split)


def program(model: Model, order: Order) -> Program:
    """The order's program as traced; inputs are q, v and tau."""
    trace = Trace()
    q, v, tau = (trace.inputs(n) for n in (model.nq, model.nv, model.nv))
    return trace.program(order(model, q, v, tau))


# ---- orders, named and searched ------------------------------------------------------------------


def as_order(model: Model, order: OrderLike, *, seed: int = 0) -> Order:
    """An order by name (whichever way of writing it down is cheapest), or one's own.

    Names are those of :data:`robomodel.estimation.orders.NAMES`; "searched" is what
    :func:`search_order` finds. Raises ValueError for names and variables that are not known.
    """
    if isinstance(order, Order):
        _problem(model, order.split).graph.checked(order.variables)
        return order
    if order == "searched":
        return search_order(model, seed=seed)
    best: tuple[int, Order] | None = None
    wrong: Exception | None = None
    for split in ("none", "joint"):
        try:
            variables = _problem(model, split).order(order, seed=seed)
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
    so far is taken, whichever it is on this machine. ``progress`` is called with the
    step and the fewest operations so far.
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
    # at first one in three moves that cost a fortieth more is taken, in the end none
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
    """What moves together: accelerations with their wrenches, at the place of the later one."""
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


def backward_error(model: Model, q: Array, v: Array, tau: Array, a: Array) -> Array:
    """How far (…,) accelerations are from solving M a + bias = tau, beside the terms' own sizes.

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


def checked(model: Model, order: Order, run: Callable[[Array, Array, Array], Array]) -> float:
    """The largest backward error of an order's program at random states.

    Raises ValueError where it is no solution at all: pivots that are rounding, or zero.
    """
    rng = np.random.default_rng(1)
    q = np.array([model.random_configuration(rng) for _ in range(STATES)])
    v, tau = rng.normal(size=(2, STATES, model.nv))
    with np.errstate(all="ignore"):
        worst = float(np.max(backward_error(model, q, v, tau, run(q, v, tau)), initial=0.0))
    if not worst <= SAFE:
        raise ValueError(
            f"this order's pivots are not safe on '{model.name}': its accelerations have a "
            f"backward error of {worst:.1e} at one of {STATES} random states, where {SAFE:g} is "
            f"allowed; it begins with {', '.join(order.variables[:4])}"
        )
    return worst
