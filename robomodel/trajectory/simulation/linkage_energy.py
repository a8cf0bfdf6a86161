"""What a step's turning of linkages does to their kinetic energy, and taking it back.

A step finds its velocity v⁺ with G of the position q that it starts from; at q⁺ the same v⁺ moves
the joints of a linkage by another G, and near dead points by one that differs much. Spanning
velocities go from ṡ₀ = G(q) v⁺ to ṡ₁ = G(q⁺) v⁺, where the bias force has worked against the rate
g = Ġ w of that turn only. With H the spanning tree's inertia what is won is

    D = ½ ṡ₁ᵀ H ṡ₁ - ½ ṡ₀ᵀ H ṡ₀ - h ṡᵀ H g,    ṡ = G(q) w̄,  w̄ the mean velocity of the step,

and the motion of the linkages is slowed (or sped) by the factor that takes D back, the momenta of
all other coordinates kept: along u = (-M_oo⁻¹ M_ol v_l, v_l) kinetic energy is ½ a σ² and a rest,
a = (M u)·v_l, so that σ² = 1 - 2 D / a. D is of third order in the linkages' own velocities, so
that those at rest stay so, whatever else moves.
"""

from __future__ import annotations

from dataclasses import replace

from robomodel.dynamics.baselines.projection import spanning_tree
from robomodel.dynamics.kinematics.state import Configuration, State
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.model.constraints import LoopConstraint
from robomodel.model.model import Model
from robomodel.motion.integrator_functions import Function, function
from robomodel.scalars import Factorization, Scalar, Vector, add, div, dot, maximum, mul, sqrt, sub

LEAST = 1e-30  # J: linkages with less than this are at rest


def linkage_columns(model: Model) -> list[int]:
    """The independent velocities of all linkages: clusters whose loops are solved for."""
    return [
        i
        for cluster in model.clusters
        if isinstance(cluster.constraint, LoopConstraint)
        for i in range(cluster.v.start, cluster.v.stop)
    ]


def kept(
    model: Model,
    before: tuple[Vector, Vector],
    after: tuple[Vector, Vector],
    mean: Vector,
    h: Scalar,
) -> list[Scalar]:
    """v at the end of a step of length h, over scalars of any kind.

    ``before``: q, and the velocity that the bias was taken at; ``after``: q⁺ and v⁺; ``mean``: w̄;
    all in the axes of free and planar joints after the step.
    """
    linked = linkage_columns(model)
    ahead, v = after
    start = State(model, before[0], (), before[1])
    end = Configuration(model, ahead)
    rows, turned = start.rows, end.rows
    first, last, middle, rates = [], [], [], []
    for cluster in model.clusters:
        for r in range(cluster.spanning_v.start, cluster.spanning_v.stop):
            bends = isinstance(cluster.constraint, LoopConstraint)
            row = rows[r] if bends else turned[r]
            first.append(dot(row, v[cluster.v]))
            last.append(dot(turned[r], v[cluster.v]))
            middle.append(dot(row, mean[cluster.v]))
            rates.append(mul(h, start.bias[r]) if bends else 0.0)
    halves = [mul(0.5, add(a, b)) for a, b in zip(first, last, strict=True)]
    turn = [sub(b, a) for a, b in zip(first, last, strict=True)]
    won = sub(
        dot(turn, _momenta(model, end.positions, halves)),
        dot(rates, _momenta(model, end.positions, middle)),
    )
    mass = crba(model, ahead)
    others = [i for i in range(model.nv) if i not in linked]
    pulls = [dot([mass[i][j] for j in linked], [v[j] for j in linked]) for i in others]
    free = Factorization([[mass[i][j] for j in others] for i in others]).solve(pulls)
    energy: Scalar = 0.0
    for i in linked:
        own = dot([mass[i][j] for j in linked], [v[j] for j in linked])
        energy = add(energy, mul(v[i], sub(own, dot([mass[i][j] for j in others], free))))
    share = div(mul(2.0, won), maximum(energy, LEAST))
    change = sub(sqrt(maximum(sub(1.0, share), 0.0)), 1.0)
    result = list(v)
    for i in linked:
        result[i] = add(v[i], mul(change, v[i]))
    for i, x in zip(others, free, strict=True):
        result[i] = sub(v[i], mul(change, x))
    return result


def _momenta(model: Model, positions: Vector, speeds: Vector) -> list[Scalar]:
    """H times spanning velocities."""
    tree = replace(spanning_tree(model), gravity=(0.0, 0.0, 0.0))
    return rnea(tree, positions, [0.0] * len(speeds), speeds)


def keeping(model: Model) -> Function:
    """(q, w, q⁺, v⁺, w̄, h) → v, compiled; see :func:`kept`."""
    sizes = (model.nq, model.nv, model.nq, model.nv, model.nv, 1, model.nv)

    def build(
        q: Vector, w: Vector, ahead: Vector, v: Vector, mean: Vector, step: Vector
    ) -> list[Scalar]:
        return kept(model, (q, w), (ahead, v), mean, step[0])

    return function(model, "linkages' energy", sizes, build)
