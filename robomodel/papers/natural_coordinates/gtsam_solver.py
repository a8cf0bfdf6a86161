"""Graphs over time solved by GTSAM, if installed: as a check, and to use its estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from robomodel.arrays import Array
from robomodel.errors import warn
from robomodel.estimation.graph import Graph, Term, Values


def solve_with_gtsam(
    graph: Graph, start: Values, *, tolerance: float = 1e-14, max_iterations: int = 100
) -> dict[str, Array]:
    """Minimise with GTSAM's Levenberg-Marquardt from initial values.

    Variables are displacements from the start in each variable's tangent space, to which the
    factors' Jacobians are transformed. Exact factors become GTSAM's constrained noise. Warns
    (RuntimeWarning) if it does not converge; raises ImportError if gtsam is not installed.
    """
    import gtsam

    begin = graph.checked(start)
    keys = _keys(graph)
    factors, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    for (name, _), key in keys.items():
        values.insert(key, np.zeros(graph.spaces[name].dim))
    for t in range(graph.count):
        _add(gtsam, factors, graph, t, keys, begin)
    parameters = gtsam.LevenbergMarquardtParams()
    parameters.setMaxIterations(max_iterations)
    parameters.setRelativeErrorTol(tolerance)
    parameters.setAbsoluteErrorTol(tolerance)
    parameters.setLinearSolverType("MULTIFRONTAL_QR")
    optimizer = gtsam.LevenbergMarquardtOptimizer(factors, values, parameters)
    optimum = optimizer.optimize()
    if optimizer.iterations() >= max_iterations:
        warn(RuntimeWarning(f"GTSAM did not converge in {max_iterations} iterations"))
    return _read(graph, optimum, keys, begin)


def smooth_with_isam2(
    graph: Graph, start: Values, *, threshold: float = 1e-2, settle: int = 0
) -> dict[str, Array]:
    """Process the graph with GTSAM's iSAM2, one update per time; returns the final values.

    ``threshold``: change that requires a new linearisation; ``settle``: number of updates after the
    last time. Each time is initialised at ``start``.
    """
    import gtsam

    begin = graph.checked(start)
    keys = _keys(graph)
    parameters = gtsam.ISAM2Params()
    parameters.setRelinearizeThreshold(threshold)
    parameters.relinearizeSkip = 1
    parameters.setFactorization("QR")
    parameters.setOptimizationParams(gtsam.ISAM2GaussNewtonParams(0.0))
    smoother = gtsam.ISAM2(parameters)
    for t in range(graph.count):
        factors, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
        for name, space in graph.spaces.items():
            values.insert(keys[name, t], np.zeros(space.dim))
        _add(gtsam, factors, graph, t, keys, begin)
        smoother.update(factors, values)
    for _ in range(settle):
        smoother.update()
    return _read(graph, smoother.calculateEstimate(), keys, begin)


def _keys(graph: Graph) -> dict[tuple[str, int], int]:
    return {
        (name, t): i * graph.count + t
        for i, name in enumerate(graph.spaces)
        for t in range(graph.count)
    }


def _add(
    gtsam: Any,
    factors: Any,
    graph: Graph,
    time: int,
    keys: dict[tuple[str, int], int],
    begin: Values,
) -> None:
    """Add the factors whose last variable is at this time."""
    for term in graph.terms:
        reach = term.reach
        k = int(np.searchsorted(term.times, time - reach))
        if k < len(term.times) and term.times[k] == time - reach:
            at = [(name, time - reach + offset) for name, offset in term.factor.variables]
            function = _error(graph, term, k, at, [keys[x] for x in at], begin)
            noise = _noise(gtsam, term)
            factors.add(gtsam.CustomFactor(noise, [keys[x] for x in at], function))


def _read(
    graph: Graph, estimate: Any, keys: dict[tuple[str, int], int], begin: Values
) -> dict[str, Array]:
    times = range(graph.count)
    return {
        name: space.retract(
            begin[name], np.array([estimate.atVector(keys[name, t]) for t in times])
        )
        for name, space in graph.spaces.items()
    }


def _noise(gtsam: Any, term: Term) -> Any:
    model = gtsam.noiseModel
    if term.noise.root is not None:
        return model.Gaussian.Covariance(term.noise.covariance)
    if np.any(term.noise.hard):
        return model.Constrained.MixedSigmas(1e3, term.noise.sigmas)
    return model.Diagonal.Sigmas(term.noise.sigmas)


def _error(
    graph: Graph, term: Term, k: int, at: list[tuple[str, int]], keys: list[int], begin: Values
) -> Callable[[Any, Any, Any], Array]:
    data = None if term.data is None else term.data[k : k + 1]

    def error(_: Any, values: Any, jacobians: Any) -> Array:
        x, origins = [], []
        for (name, t), key in zip(at, keys, strict=True):
            origin = begin[name][t : t + 1]
            origins.append(origin)
            x.append(graph.spaces[name].retract(origin, values.atVector(key)[np.newaxis]))
        e, slopes = term.factor.evaluate(x, data)
        if jacobians is not None:
            for i, (name, _t) in enumerate(at):
                moved = graph.spaces[name].local_jacobians(origins[i], x[i])[1]
                jacobians[i] = np.asfortranarray((slopes[i] @ np.linalg.inv(moved))[0])
        result: Array = e[0]
        return result

    return error
