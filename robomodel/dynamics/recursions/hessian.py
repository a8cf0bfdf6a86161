"""Second derivatives of inverse dynamics, contracted with a vector: for exact Hessians.

φ = wᵀ rnea(q, v, a) is one number. Its first derivatives, by going backwards through the trace
once, take twice the operations of φ itself. They are then differentiated forward, of which two
things keep the work small: no joint meets one that is neither inwards nor outwards of it; and of
two that do meet, the outer one varies and the inner one's derivative is looked at, so that what
varies is the outer one's subtree, and what it does to the composite quantities further inwards.

Along q the second derivative is that of φ(integrate(q, δ)) at δ = 0. Joints whose motions do not
commute (balls, floating and planar ones) have the mean of both orders there.
"""

from __future__ import annotations

from collections.abc import Sequence

from robomodel.dynamics.kinematics.state import NO_FORCES, Forces, Matrix
from robomodel.dynamics.kinematics.tangents import Direction, position_directions
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.kernels.differentiate import differentiate, gradient
from robomodel.kernels.trace import Traced
from robomodel.model.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, add, dot, mul


def rnea_hessian_product(
    model: Model,
    q: Sequence[Traced],
    v: Sequence[Traced],
    a: Sequence[Traced],
    w: Vector,
    f_ext: Forces = NO_FORCES,
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """∂²φ/∂q∂q, ∂²φ/∂v∂v, ∂²φ/∂q∂v and ∂²φ/∂a∂q (nv by nv); φ is linear in a.

    ``f_ext``: body → wrench on it, in its internal axes, in which it stays the same.
    """
    nv = model.nv
    found: list[Matrix] = [[[0.0] * nv for _ in range(nv)] for _ in range(4)]
    qq, vv, qv, aq = found
    if not q:
        return qq, vv, qv, aq
    directions = position_directions(model, q)
    slopes = gradient(dot(w, rnea(model, q, v, a, f_ext)), [*q, *v, *a])
    by_v, by_a = slopes[model.nq : model.nq + nv], slopes[model.nq + nv :]
    by_q = [_along(direction, q, slopes[: model.nq]) for direction in directions]
    inwards: list[list[int]] = []  # of each cluster, its own freedoms and those that carry it
    for cluster in model.clusters:
        carriers = [] if cluster.parent == WORLD else inwards[cluster.parent]
        inwards.append(meet := [*carriers, *range(cluster.v.start, cluster.v.stop)])
        for k in range(cluster.v.start, cluster.v.stop):
            values = [column[j] for column in (by_q, by_v, by_a) for j in meet]
            first, second, third = (
                differentiate(q[0].trace, values[: n * len(meet)], [direction])[0]
                for n, direction in ((3, directions[k]), (2, {v[k]: 1.0}), (1, {a[k]: 1.0}))
            )
            for n, j in enumerate(meet):
                qq[j][k] = first[n]
                qv[k][j], qv[j][k] = first[n + len(meet)], second[n]
                aq[j][k], aq[k][j] = first[n + 2 * len(meet)], third[n]
                vv[j][k] = vv[k][j] = second[n + len(meet)]
        own = range(cluster.v.start, cluster.v.stop)
        for j in carriers:
            for k in own:
                qq[k][j] = qq[j][k]
        commute = all(model.nodes[body].joint.nv == 1 for body in cluster.bodies)
        for j in own:
            for k in range(j, cluster.v.stop):
                both = qq[j][k] if commute or j == k else mul(0.5, add(qq[j][k], qq[k][j]))
                qq[j][k] = qq[k][j] = both
    return qq, vv, qv, aq


def slopes_along(model: Model, q: Sequence[Traced], value: Scalar) -> Vector:
    """How fast a number made of q changes along each independent velocity."""
    slopes = gradient(value, q)
    return [_along(direction, q, slopes) for direction in position_directions(model, q)]


def _along(direction: Direction, q: Sequence[Traced], slopes: Vector) -> Scalar:
    """The derivative along a direction, of which positions alone count."""
    return dot([direction.get(x, 0.0) for x in q], slopes)
