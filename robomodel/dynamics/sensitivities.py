"""Derivatives of results by parameters, through the closure of loops, as programs.

At held independent positions, velocities and forces, dependent positions of loops follow the
parameters: K dq = -∂φ/∂p, in the same block form in which G is solved for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from robomodel.dynamics.algorithm import AlgorithmSpec
from robomodel.dynamics.kinematics.state import Direction, moving
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.trace import Traced
from robomodel.mechanism.constraints import LoopConstraint
from robomodel.mechanism.couplings import eliminated
from robomodel.model.configurations import functions
from robomodel.model.derived import traced
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.model.parameters import PARAMETERS, parameterized
from robomodel.scalars import Scalar, Vector, added, dot


def _of_joints(
    make: Callable[..., TracedFunction], model: Model, of: Literal["nq", "nv"]
) -> TracedFunction:
    """The function for all joints but a floating base."""
    first = getattr(model.nodes[0].joint, of) if model.floating_base is not None else 0
    result: TracedFunction = inspect.unwrap(make)(model, first)
    return result


OF_CONFIGURATIONS: dict[str, Callable[[Model], TracedFunction]] = {
    "constraint_bias": inspect.unwrap(functions.constraint_bias),
    "constraint_jacobian": inspect.unwrap(functions.constraint_jacobian),
    "joint_positions": lambda model: _of_joints(functions.joint_positions, model, "nq"),
    "joint_velocities": lambda model: _of_joints(functions.joint_velocities, model, "nv"),
}
"""Functions of the configuration that have sensitivities, besides "close"."""


@traced
def of_algorithm(model: Model, spec: AlgorithmSpec, wanted: tuple[int, ...]) -> TracedFunction:
    """Derivatives of an algorithm's results by its ``wanted`` parameters, on the last axis."""
    sizes, count = spec.sizes(model), len(wanted)

    def build(*arguments: Sequence[Traced]) -> list[Scalar]:
        named = dict(zip(sizes, arguments, strict=True))
        p = named.pop(PARAMETERS)
        outputs = spec.run(spec.tree(model, p), named)
        at = parameterized(model, dict(zip(spec.parameters, p, strict=True)))
        return _by_parameters(at, named["q"], outputs, [p[i] for i in wanted])

    results = {name: (*shape, count) for name, shape in spec.results(model).items()}
    return TracedFunction(f"{spec.name}_sensitivity", sizes, results, build, shared=(PARAMETERS,))


@traced
def of_configuration(
    model: Model, name: str, names: tuple[str, ...], wanted: tuple[int, ...]
) -> TracedFunction:
    """Derivatives of a function of the configuration; of q itself for "close"."""
    sizes: dict[str, int] = {"q": model.nq}
    results: Mapping[str, tuple[int, ...]] = {"closed": (model.nq,)}
    if name != "close":
        plain = OF_CONFIGURATIONS[name](model)
        sizes, results = dict(plain.arguments), plain.results

    def build(*arguments: Sequence[Traced]) -> list[Scalar]:
        *plain, p = arguments
        at = parameterized(model, dict(zip(names, p, strict=True)))
        outputs: Sequence[Scalar] = plain[0]
        if name != "close":
            outputs = OF_CONFIGURATIONS[name](at).build(*plain)
        return _by_parameters(at, plain[0], outputs, [p[i] for i in wanted])

    shapes = {result: (*shape, len(wanted)) for result, shape in results.items()}
    sizes = {**sizes, PARAMETERS: len(names)}
    return TracedFunction(f"{name}_sensitivity", sizes, shapes, build, shared=(PARAMETERS,))


def _by_parameters(
    model: Model, q: Sequence[Traced], outputs: Sequence[Scalar], p: Sequence[Traced]
) -> list[Scalar]:
    """Derivatives of each output by each parameter, at held independent positions."""
    directions: list[Direction] = [{x: 1.0} for x in p]
    for cluster in model.clusters:
        if isinstance(cluster.constraint, LoopConstraint):
            ways = _dependent_rates(cluster, cluster.constraint, q[cluster.q], p)
            for direction, way in zip(directions, ways, strict=True):
                rates: list[Scalar] = [0.0] * model.n_joint_velocities
                rates[cluster.spanning_v] = way
                direction.update(moving(model, cluster, q, rates))
    columns = differentiate(p[0].trace, outputs, directions)
    return [x for row in zip(*columns, strict=True) for x in row]


def _dependent_rates(
    cluster: Cluster, constraint: LoopConstraint, q: Vector, p: Sequence[Traced]
) -> list[list[Scalar]]:
    """How joints of a cluster with loops move with each parameter, independent ones held."""
    trace, alone = p[0].trace, [{x: 1.0} for x in p]
    values, jacobian = constraint.rows(q)
    opened = differentiate(trace, values, alone)
    position = {link.v: link.q for link in cluster.geometry.links}
    pivots = eliminated(cluster.geometry, cluster.pivots).pivots
    geared = [
        dot(row.values(), [q[position[c]] for c in row]) + offset for row, offset in pivots.values()
    ]
    shifts = differentiate(trace, geared, alone)
    result = []
    for left, shift in zip(opened, shifts, strict=True):
        geared_rates: list[Scalar] = [0.0] * cluster.geometry.nv
        for column, x in zip(pivots, shift, strict=True):
            geared_rates[column] = x
        right = [-(x + dot(row, geared_rates)) for x, row in zip(left, jacobian, strict=True)]
        result.append(added(constraint.held(jacobian, right), geared_rates))
    return result
