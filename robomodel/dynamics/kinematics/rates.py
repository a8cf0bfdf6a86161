"""The rate of G along a motion, on arrays."""

from __future__ import annotations

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.state import Configuration, moving
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.program import Program
from robomodel.kernels.trace import Trace
from robomodel.model.derived import cached_on_model
from robomodel.model.model import Model
from robomodel.scalars import Scalar, stack, unstack


def jacobian_rate(model: Model, q: Array, v: Array) -> list[Array]:
    """Ġ by clusters (..., spanning velocities, independent velocities) along the motion (q, v).

    Exact: G is differentiated as a straight-line program along q̇ = G v.
    """
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    with np.errstate(all="ignore"):
        entries = stack(_jacobian_rates(model)([*unstack(q), *unstack(v)]), batch)
    rates, first = [], 0
    for cluster in model.clusters:
        shape = cluster.spanning_v.stop - cluster.spanning_v.start, cluster.nv
        count = shape[0] * shape[1]
        rates.append(entries[..., first : first + count].reshape(*batch, *shape))
        first += count
    return rates


@cached_on_model
def _jacobian_rates(model: Model) -> Program:
    """(q, v) → Ġ of all clusters, entry by entry."""
    trace = Trace()
    q, v = trace.inputs(model.nq), trace.inputs(model.nv)
    state = Configuration(model, q)
    rates = [x for c in model.clusters for x in state.spanning(c, v[c.v])]
    outputs: list[Scalar] = []
    for cluster in model.clusters:
        rows = state.rows[cluster.spanning_v]
        direction = moving(model, cluster, q, rates)
        outputs += differentiate(trace, [x for row in rows for x in row], [direction])[0]
    return trace.program(outputs)
