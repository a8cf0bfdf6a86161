"""The Coriolis matrix of a model by Christoffel symbols: derivatives of M, not a recursion."""

from __future__ import annotations

from collections.abc import Sequence

from robomodel.dynamics.kinematics.state import Configuration, Matrix, position_directions
from robomodel.dynamics.recursions.crba import crba
from robomodel.kernels.differentiate import differentiate
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.trace import Traced
from robomodel.model.model import Model
from robomodel.scalars import Scalar, dot
from robomodel.spatial import Motion, cross, plus


def coriolis(model: Model) -> TracedFunction:
    """C (..., nv, nv) as a function of q and v."""

    def build(q: Sequence[Traced], v: Sequence[Traced]) -> list[Scalar]:
        return [x for row in christoffel(model, q, v) for x in row]

    sizes = {"q": model.nq, "v": model.nv}
    return TracedFunction("christoffel", sizes, {"C": (model.nv, model.nv)}, build, compiles=False)


def christoffel(model: Model, q: Sequence[Traced], v: Sequence[Traced]) -> Matrix:
    """The same C by Koszul's formula, from M's derivatives and the brackets of velocities.

    2 C_ij = v(M_ij) + e_j(M_i v) - e_i(M_j v) + [v, e_j] M e_i - [e_j, e_i] M v + [e_i, v] M e_j,
    the Christoffel symbols of the first kind times v where brackets are zero.
    """
    if not q:
        return []
    n, mass = model.nv, crba(model, q)
    flat = [x for row in mass for x in row]
    directions = position_directions(model, q)
    slopes = [
        [change[i * n : (i + 1) * n] for i in range(n)]
        for change in differentiate(q[0].trace, flat, directions)
    ]
    lowered = [[dot(row, v) for row in slope] for slope in slopes]  # e_k(M_i · v)
    along = [[dot([s[i][j] for s in slopes], v) for j in range(n)] for i in range(n)]
    brackets = _brackets(Configuration(model, q))
    towards = [  # [v, e_j]
        [dot([brackets[k][j][c] for k in range(n)], v) for c in range(n)] for j in range(n)
    ]
    momentum = [dot(row, v) for row in mass]
    matrix: Matrix = []
    for i in range(n):
        row: list[Scalar] = []
        for j in range(n):
            entry = along[i][j] + (lowered[j][i] - lowered[i][j])
            entry = entry + (dot(towards[j], mass[i]) - dot(towards[i], mass[j]))
            row.append(0.5 * (entry - dot(brackets[j][i], momentum)))
        matrix.append(row)
    return matrix


def _brackets(state: Configuration) -> list[Matrix]:
    """[e_i, e_j], as independent velocities, of the fields of unit velocities.

    Those of a joint's own motions, in its axes, are their cross products; of fields that keep loops
    closed they are seen on the joints whose velocities are the independent ones.
    """
    model = state.model
    brackets: list[Matrix] = [[[0.0] * model.nv for _ in range(model.nv)] for _ in range(model.nv)]
    for cluster in model.clusters:
        first = cluster.v.start
        for body in cluster.bodies:
            node = model.nodes[body]
            if node.joint.nv == 1:
                continue
            motions = state.subspace(body)
            for c, column in enumerate(cluster.columns, first):
                r = cluster.spanning_v.start + column
                if r not in node.freedoms:
                    continue
                axis = node.joint.subspace[r - node.v].entries()
                for i, a in enumerate(motions, first):
                    for j, b in enumerate(motions, first):
                        turned = Motion(
                            cross(a.angular, b.angular),
                            plus(cross(a.angular, b.linear), cross(a.linear, b.angular)),
                        )
                        brackets[i][j][c] = dot(turned.entries(), axis)
    return brackets
