"""Traced functions with parameters as a further argument, and closing by other parameters."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from robomodel.arrays import Array
from robomodel.errors import DescriptionError, warn
from robomodel.kernels.cache import canonical
from robomodel.kernels.function import TracedFunction
from robomodel.mechanism import closure as newton
from robomodel.model.arguments import by_name
from robomodel.model.configurations import functions
from robomodel.model.configurations.closing import normalized
from robomodel.model.configurations.following import is_closed
from robomodel.model.derived import LARGE_ROBOT, cache_key
from robomodel.model.parameters import (
    PARAMETERS,
    ParametersLike,
    as_values,
    batch_with,
    parameterized,
)
from robomodel.model.registry import method_named
from robomodel.scalars import Scalar, Vector, stack, unstack
from robomodel.tolerances import CLOSED

if TYPE_CHECKING:
    from robomodel.model.model import Model


def parametric(
    make: Callable[..., TracedFunction], model: Model, names: tuple[str, ...], *arguments: Any
) -> TracedFunction:
    """A traced function of a model with the parameters ``names`` as its last argument, "p".

    ``make`` is decorated by :func:`robomodel.model.derived.traced`. The function is created once
    for each model and names.
    """
    key = (parametric, make, names, *arguments)
    result: TracedFunction | None = model._derived.get(key)
    if result is not None:
        return result
    inner: Callable[..., TracedFunction] = inspect.unwrap(make)
    plain = inner(model, *arguments)
    count = len(plain.arguments)

    def build(*inputs: Vector) -> Sequence[Scalar]:
        at = parameterized(model, dict(zip(names, inputs[count], strict=True)))
        return inner(at, *arguments).build(*inputs[:count], *inputs[count + 1 :])

    what = canonical((make.__module__, make.__qualname__, arguments, names))
    result = model._derived[key] = TracedFunction(
        plain.name, {**plain.arguments, PARAMETERS: len(names)}, plain.results, build,
        plain.iteration, (PARAMETERS,),
        compiles=plain.compiles and 0 < len(model.nodes) <= LARGE_ROBOT, owner=model,
        label=plain.label,
        key=cache_key(model, what),
        origin=(parametric, (make, model, names, *arguments)),
    )  # fmt: skip
    return result


@method_named("close_for")
def close(model: Model, q: Array, parameters: ParametersLike) -> Array:
    """Configurations closed with other parameters; the independent positions stay.

    Newton's compiled steps from q close most of them; where they fail, the damped method tries.
    Configurations that cannot be closed are not-a-number, with a RuntimeWarning.
    """
    names, p = as_values(model, by_name(parameters, "parameters"))
    batch = batch_with(names, p, q=q)
    q, p = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, p))
    closed, gap = parametric(functions.held, model, names, functions.CLOSE_STEPS)(q, p)
    closed, gap = closed.reshape(-1, model.nq), np.reshape(gap, -1)
    q, p = q.reshape(-1, model.nq), p.reshape(-1, len(names))
    bad = ~(gap <= CLOSED)
    closed[bad] = math.nan
    left = np.flatnonzero(bad & np.isfinite(q).all(axis=-1) & np.isfinite(p).all(axis=-1))
    kinds, which = np.unique(p[left], axis=0, return_inverse=True)
    for n, values in enumerate(kinds.tolist()):  # all configurations of one robot together
        rows = left[np.reshape(which, -1) == n]
        with np.errstate(all="ignore"):
            closed[rows] = _damped(model, q[rows], dict(zip(names, values, strict=True)))
    count = int(np.isnan(closed[left]).any(axis=-1).sum())
    if count:
        warn(
            RuntimeWarning(
                f"{count} of {len(closed)} configurations cannot be closed by these parameters "
                "with the independent joints where they are, and are not-a-number"
            )
        )
    result: Array = closed.reshape(*batch, model.nq)
    return result


def _damped(model: Model, q: Array, values: Mapping[str, float]) -> Array:
    """Configurations (n, nq) closed by the damped method; not-a-number where it fails."""
    result = q.copy()
    try:
        at = parameterized(model, values)
    except DescriptionError:  # a rod that is not longer than zero
        return np.full_like(q, math.nan)
    for cluster in at.clusters:
        if cluster.implicit:
            start = stack(normalized(at, cluster, unstack(q[:, cluster.q])), q.shape[:-1])
            closed, gap = newton.close(
                cluster.geometry,
                start,
                newton.Held(cluster.columns),
                rows=cluster.closing_rows,
            )
            result[:, cluster.q] = closed
            result[~is_closed(cluster, closed, gap)] = math.nan
    return result
