"""The same graph solved by GTSAM, where it is installed: a check, and a way into its estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from robomodel.model.joints import Array
from robomodel.trajectory.graph import Graph, Term, Values


def solve_with_gtsam(
    graph: Graph, start: Values, *, tolerance: float = 1e-14, max_iterations: int = 100
) -> dict[str, Array]:
    """The values at the minimum that GTSAM's Levenberg-Marquardt finds from a start.

    Variables are vectors: motions from the start in each variable's tangent space, to which the
    factors' Jacobians are carried. Exact factors become GTSAM's constrained noise. Raises
    ImportError where gtsam is not installed.
    """
    import gtsam

    begin = graph.checked(start)
    keys = {
        (name, t): i * graph.count + t
        for i, name in enumerate(graph.spaces)
        for t in range(graph.count)
    }
    factors, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    for (name, _), key in keys.items():
        values.insert(key, np.zeros(graph.spaces[name].dim))
    for term in graph.terms:
        noise = _noise(gtsam, term)
        for k, t in enumerate(term.times.tolist()):
            at = [(name, t + offset) for name, offset in term.factor.variables]
            function = _error(graph, term, k, at, [keys[x] for x in at], begin)
            factors.add(gtsam.CustomFactor(noise, [keys[x] for x in at], function))
    parameters = gtsam.LevenbergMarquardtParams()
    parameters.setMaxIterations(max_iterations)
    parameters.setRelativeErrorTol(tolerance)
    parameters.setAbsoluteErrorTol(tolerance)
    parameters.setLinearSolverType("MULTIFRONTAL_QR")
    found = gtsam.LevenbergMarquardtOptimizer(factors, values, parameters).optimize()
    return {
        name: space.retract(
            begin[name],
            np.array([found.atVector(keys[name, t]) for t in range(graph.count)]),
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
