"""Second derivatives of inverse and forward dynamics by plain numbers, contracted with a vector.

Along motions of the joints they are :func:`.recursions.hessian.rnea_hessian_product`'s.
Those of a = aba(q, v, τ) follow, as rnea(q, v, a) = τ stays what it is: with λ = M⁻¹ w and Z = ∂(q,
v, a)/∂(q, v, τ), w · ∂²a = -Zᵀ (λ · ∂²rnea) Z. By q's numbers they are Pᵀ H P, where P are the
velocities that changes of q's numbers are, and what comes of P's own changes: the logarithm of a
motion of several freedoms, ball joints' and others', is not linear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from robomodel.dynamics.recursions.hessian import rnea_hessian_product, slopes_along
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.interop.programs import routine
from robomodel.kernels.trace import Traced
from robomodel.model.configurations.coordinates import independent_rates, joint_slices
from robomodel.model.joints import Floating, Planar, Spherical
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, add, div, dot, mul, sub

Matrix: TypeAlias = list[list[Scalar]]
Inputs: TypeAlias = Mapping[str, Sequence[Traced]]


def curvature(model: Model, name: str, at: Inputs, w: Vector, given: Vector, p: Matrix) -> Matrix:
    """∂²(w · f) by all arguments' numbers, f "rnea" or "aba"; by rows.

    ``at`` are the arguments with q where configurations are; ``given`` is q as it was given, and
    ``p`` (nv, nq) the velocities that its changes are.
    """
    n, q, v = model.nv, at["q"], at["v"]
    if name == "rnea":
        z: list[Matrix] | None = None
        a, weights, sign = list[Any](at["a"]), list[Any](w), 1.0
        known = list(slopes_along(model, q, dot(w, rnea(model, q, v, a))))
    else:
        flat = routine(model, "aba_derivatives").build(*at.values())
        blocks = [[list(flat[k + i * n : k + i * n + n]) for i in range(n)]
                  for k in (0, n * n, 2 * n * n)]  # fmt: skip
        # to derivatives they are constant, though they depend on q
        a = _held(q, routine(model, "aba").build(*at.values()))
        weights = _held(q, [dot(column, w) for column in zip(*blocks[2], strict=True)])
        z, sign = blocks, -1.0
        known = [dot(column, w) for column in zip(*blocks[0], strict=True)]
    qq, vv, qv, aq = rnea_hessian_product(model, q, v, a, weights)
    zero = [[0.0] * n for _ in range(n)]
    whole = _blocks([[qq, qv, _turned(aq)], [_turned(qv), vv, zero], [aq, zero, zero]])
    if z is not None:
        unit = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
        change = _blocks([[unit, zero, zero], [zero, unit, zero], z])
        whole = [[mul(sign, x) for x in row] for row in _product(_turned(change), whole, change)]
    _bend(model, whole, known)
    rest = range(2 * n)
    wide = [[*row, *[0.0] * (2 * n)] for row in p]
    wide += [[0.0] * model.nq + [1.0 if i == j else 0.0 for j in rest] for i in rest]
    found = _product(_turned(wide), whole, wide)
    _lengths(model, found, [dot(column, known) for column in zip(*p, strict=True)], given)
    return found


def _held(q: Sequence[Traced], x: Sequence[Scalar]) -> list[Any]:
    return [q[0].trace.stop_gradient(y) for y in x]


def _turned(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]


def _blocks(rows: Sequence[Sequence[Matrix]]) -> Matrix:
    return [[x for block in row for x in block[i]] for row in rows for i in range(len(row[0]))]


def _product(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """A b c; zeros are structural."""
    columns = _turned(c)
    half = [[dot(row, column) for column in columns] for row in b]
    across = _turned(half)
    return [[dot(row, column) for column in across] for row in a]


def _bend(model: Model, whole: Matrix, known: Vector) -> None:
    """What the logarithm of a motion that turns and slides adds: - (ω × v' + ω' × v) / 2."""
    for cluster in model.clusters:
        for body, _, along in joint_slices(model, cluster):
            at, *others = independent_rates(cluster, along)
            if at is None or None in others:
                continue
            match model.nodes[body].joint:
                case Floating():
                    terms = [(at + i, at + 3 + j, at + 3 + k, x) for i, j, k, x in CROSS]
                case Planar():
                    terms = [(at + 2, at, at + 1, 1.0), (at + 2, at + 1, at, -1.0)]
                case _:
                    continue
            for turn, slide, k, sign in terms:
                x = mul(-0.5 * sign, known[k])
                whole[turn][slide] = add(whole[turn][slide], x)
                whole[slide][turn] = add(whole[slide][turn], x)


CROSS = [(i, (i + 1) % 3, (i + 2) % 3, 1.0) for i in range(3)]
CROSS += [(i, (i + 2) % 3, (i + 1) % 3, -1.0) for i in range(3)]
"""(a × b)ₖ is the sum of sign aᵢ bⱼ over these (i, j, k, sign)."""


def _lengths(model: Model, found: Matrix, slopes: Vector, given: Vector) -> None:
    """What quaternions' lengths add, by which they are divided: - (g xᵀ + x gᵀ) / |x|²."""
    for cluster in model.clusters:
        for body, part, _ in joint_slices(model, cluster):
            if not isinstance(model.nodes[body].joint, Floating | Spherical):
                continue
            at = range(cluster.q.start + part.stop - 4, cluster.q.start + part.stop)
            square = dot([given[i] for i in at], [given[i] for i in at])
            for i in at:
                for j in at:
                    both = add(mul(slopes[i], given[j]), mul(given[i], slopes[j]))
                    found[i][j] = sub(found[i][j], div(both, square))
