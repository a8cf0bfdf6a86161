"""Algorithms with springs and damping.

Their forces p on the independent velocities come beside tau, so that every way of running an
algorithm serves: inverse dynamics gives tau - p, forward dynamics is asked with tau + p.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from robomodel.dynamics.recursions.passive import passive_derivatives, passive_force
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, added, dot, sub, subtracted

Arguments = Mapping[str, Vector]


Inner = Callable[[Arguments], Sequence[Scalar]]


def gravity_less_passive(m: Model, x: Arguments, _: object, run: Inner) -> list[Scalar]:
    """Gravity forces less those of springs."""
    return subtracted(run(x), passive_force(m, x["q"], [0.0] * m.nv))


def less_passive(m: Model, x: Arguments, _: object, run: Inner) -> list[Scalar]:
    """Inverse dynamics less passive forces."""
    return subtracted(run(x), passive_force(m, x["q"], x["v"]))


def aba_passive(m: Model, x: Arguments, _: object, run: Inner) -> Sequence[Scalar]:
    """Forward dynamics with passive forces beside tau."""
    return run({**x, "tau": added(x["tau"], passive_force(m, x["q"], x["v"]))})


def hybrid_passive(m: Model, x: Arguments, known: Sequence[str], run: Inner) -> Sequence[Scalar]:
    """Passive forces beside the given forces; off those that are asked for."""
    from robomodel.dynamics.recursions.hybrid_dynamics import prescribed

    passive = passive_force(m, x["q"], x["v"])
    names = prescribed(m, known)
    free = [0.0 if name in names else p for name, p in zip(m.dof_names, passive, strict=True)]
    out = run({**x, "given": added(x["given"], free)})
    tau = [
        sub(t, p) if name in names else g
        for name, t, p, g in zip(m.dof_names, out[: m.nv], passive, x["given"], strict=True)
    ]
    return [*tau, *out[m.nv :]]


def rnea_derivatives_passive(m: Model, x: Arguments, _: object, run: Inner) -> Sequence[Scalar]:
    """∂tau less the derivatives of passive forces."""
    out = run(x)
    matrices = passive_derivatives(m, x["q"], x["v"])
    changes = [x for matrix in matrices for row in matrix for x in row]
    count = len(changes)
    return [*subtracted(out[:count], changes), *out[count:]]


def aba_derivatives_passive(m: Model, x: Arguments, _: object, run: Inner) -> Sequence[Scalar]:
    """∂a = M⁻¹ (∂passive - ∂ID), at the a of tau + p."""
    out, n = aba_passive(m, x, _, run), m.nv
    blocks = [out[i * n * n : (i + 1) * n * n] for i in range(3)]
    inverse = [blocks[2][i * n : (i + 1) * n] for i in range(n)]
    dq, dv = (
        added(block, [dot(row, c) for row in inverse for c in zip(*changes, strict=True)])
        for block, changes in zip(blocks[:2], passive_derivatives(m, x["q"], x["v"]), strict=True)
    )
    return [*dq, *dv, *blocks[2]]
