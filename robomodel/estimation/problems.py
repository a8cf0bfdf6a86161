"""Graphs of the usual problems: forward and inverse dynamics, and estimation from sensors.

For any model in its independent coordinates: variables "q", "v", "a" and, if forces are unknown,
"tau". Further factors and variables can be added to the graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics import aba
from robomodel.estimation.factors import Dynamics, Equal, Prior, Trapezoid
from robomodel.estimation.graph import Factor, Graph, NoiseLike, Values
from robomodel.estimation.solve import Solution, fixed_lag, solve
from robomodel.estimation.spaces import Configurations, Space, Vectors
from robomodel.model.arguments import as_array, as_numbers
from robomodel.model.model import Model


@dataclass(frozen=True, eq=False)
class Measurement:
    """Measurements of a sensor: factor, standard deviations, data (K, m), times (K,) or all."""

    factor: Factor
    noise: NoiseLike
    data: ArrayLike
    times: ArrayLike | None = None


def spaces(model: Model, *, forces: bool = False) -> dict[str, Space]:
    """The spaces of "q", "v", "a" and, with unknown ``forces``, "tau"."""
    vectors = Vectors(model.nv)
    result: dict[str, Space] = {"q": Configurations(model), "v": vectors, "a": vectors}
    return result | {"tau": vectors} if forces else result


def motion(
    model: Model,
    count: int,
    step: float,
    *,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    tau: ArrayLike = 0.0,
    q_noise: NoiseLike = 0.0,
    v_noise: NoiseLike = 0.0,
    integrator_noise: NoiseLike = 0.0,
    force_noise: NoiseLike = 0.0,
    form: str = "force",
) -> Graph:
    """The graph of a model's motion at ``count`` times ``step`` [s] apart, under tau (nv,) or
    (count, nv).

    Trapezoidal integrators from a to v and from v to q, the equations of motion at each time, and
    priors on the first q and v if given. Noises are standard deviations, zero for exact factors: if
    all are zero, the solution is forward dynamics by the trapezoidal rule. ``force_noise`` is the
    disturbance of the forces [N m, N] or, with ``form="acceleration"``, of the accelerations.
    """
    variables = spaces(model)
    forces = np.broadcast_to(as_numbers(tau, "tau"), (count, model.nv))
    graph = Graph(variables, count)
    for name, value, noise in (("q", q, q_noise), ("v", v, v_noise)):
        if value is not None:
            graph = graph.add(Prior(name, variables[name]), noise, times=[0], data=value)
    graph = _integrated(graph, step, integrator_noise)
    return graph.add(Dynamics(model, form=form), force_noise, data=forces)


def _integrated(graph: Graph, step: float, noise: NoiseLike) -> Graph:
    for name, rate in (("q", "v"), ("v", "a")):
        graph = graph.add(Trapezoid(name, rate, step, graph.spaces[name]), noise)
    return graph


def rolled_out(step: float, space: Space) -> Callable[[dict[str, Array]], dict[str, Array]]:
    """A prediction for :func:`fixed_lag`: constant accelerations, with v and q integrated."""

    def predict(last: dict[str, Array]) -> dict[str, Array]:
        v = last["v"] + step * last["a"]
        q = space.retract(last["q"], step / 2 * (last["v"] + v))
        return last | {"q": q, "v": v}

    return predict


def estimate(
    model: Model,
    measurements: Sequence[Measurement],
    count: int,
    step: float,
    *,
    q: ArrayLike,
    v: ArrayLike,
    q_noise: NoiseLike,
    v_noise: NoiseLike,
    force_noise: NoiseLike,
    tau: ArrayLike = 0.0,
    start: Values | None = None,
) -> Solution:
    """The most likely motion given noisy sensors, for all times at once.

    The model starts near q and v (standard deviations ``q_noise``, ``v_noise`` in the tangent
    space) and moves under forces tau with white disturbances ``force_noise``. ``start``: initial
    guess (default: the motion without disturbances). ``Solution.covariance`` gives the uncertainty
    of each variable. For a fixed lag, or with further unknowns such as biases, build the graph by
    :func:`motion` and :meth:`Graph.add`, and use :func:`fixed_lag`.
    """
    graph = motion(
        model,
        count,
        step,
        q=q,
        v=v,
        tau=tau,
        q_noise=q_noise,
        v_noise=v_noise,
        force_noise=force_noise,
    )
    for measurement in measurements:
        graph = graph.add(
            measurement.factor, measurement.noise, times=measurement.times, data=measurement.data
        )
    if start is None:
        start = undisturbed(model, count, step, q, v, tau)
    return solve(graph, start)


def undisturbed(
    model: Model, count: int, step: float, q: ArrayLike, v: ArrayLike, tau: ArrayLike = 0.0
) -> dict[str, Array]:
    """Forward dynamics by the trapezoidal rule: q (count, nq), v and a (count, nv)."""
    graph = motion(model, count, step, q=q, v=v, tau=tau)
    forces = np.broadcast_to(as_numbers(tau, "tau"), (count, model.nv))
    q, v = as_array(q, model.nq, "q", "nq"), as_array(v, model.nv, "v", "nv")
    start = {"q": q, "v": v, "a": aba(model, q, v, forces[0])}
    return fixed_lag(graph, start, 2, predict=rolled_out(step, graph.spaces["q"])).newest


def staged(graphs: Sequence[Graph], start: Values) -> Solution:
    """Solve graphs in turn, each starting from the previous solution; new variables are zero."""
    values = dict(start)
    for graph in graphs:
        zeros = {
            name: np.zeros((graph.count, space.size))
            for name, space in graph.spaces.items()
            if name not in values
        }
        result = solve(graph, {**values, **zeros})
        values = dict(result.values)
    return result


def inverse_dynamics(model: Model, q: ArrayLike, step: float) -> Solution:
    """The forces "tau" (count, nv) that move a model through configurations q (count, nq).

    Solved in stages: positions; velocities and accelerations, by trapezoidal integrators; forces.
    Loops are closed by the configurations themselves. The integrators do not determine motions that
    change sign at every time; a soft equality of successive accelerations suppresses them, so that
    neither the first velocity nor the first acceleration must be known.
    """
    path = as_array(q, model.nq, "q", "nq")
    every = spaces(model, forces=True)
    graphs = []
    for names in (("q",), ("q", "v", "a"), ("q", "v", "a", "tau")):
        graph = Graph({name: every[name] for name in names}, len(path))
        graph = graph.add(Prior("q", every["q"]), 0.0, data=path)
        if "a" in names:
            graph = _integrated(graph, step, 0.0).add(Equal("a", every["a"]), 1.0)
        if "tau" in names:
            graph = graph.add(Dynamics(model, tau="tau"), 0.0)
        graphs.append(graph)
    return staged(graphs, {"q": path})
