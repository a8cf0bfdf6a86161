"""The equations of motion as one sparse linear system over named variables (document 003).

D d + b = 0, with d every acceleration, wrench, torque and multiplier of the robot at a state. Body
by body, with λ(i) the body that i hangs on:

    acceleration   -a_i + X a_λ + S q̈ + c = 0
    wrench         I a_i + ν - f_i - fx_i + Σ Xᵀ f_child - Σ Wᵀ λ = 0
    torque         Sᵀ f + armature · q̈ - τ - Kᵀ λ = 0
    loop           -W a - k = 0  (couplings: -K q̈ + k = 0)

Rows and columns that belong together (wrench and a, acceleration and f, torque and q̈, loop and λ)
make a symmetric matrix. Scalars of any kind; a structural zero is not an entry.
"""

from __future__ import annotations

from collections.abc import Container

from robomodel.dynamics.equations.loops import LoopRowsKept, loop_conditions
from robomodel.dynamics.equations.segments import Piece, Split, View, pieces, segments
from robomodel.dynamics.equations.system import Factor, System, Variable
from robomodel.dynamics.kinematics.state import Matrix, State
from robomodel.model.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, add, is_zero, neg, transposed
from robomodel.spatial import NO_WRENCH, UNIT_MOTIONS, UNIT_WRENCHES, ZERO, Motion, minus


def equations(
    model: Model,
    q: Vector,
    v: Vector,
    *,
    view: View = "tree",
    split: Split = "none",
    loops: LoopRowsKept = "independent",
    net_forces: bool = False,
    turned: Container[int] | None = None,
) -> System:
    """D d + b = 0 of the robot at a state; scalars of any kind.

    Variables: ``a[link]`` (conventional acceleration of the body's origin, less gravity, angular
    first), ``f[link]`` (wrench through the body's joint on it), ``fx[link]`` (external wrench),
    ``tau[joint]``, ``qdd[joint]``, and ``lambda[loop]``; bodies' quantities in their internal axes.

    ``view`` "tree": every joint of the spanning tree, with multipliers for loops and couplings.
    "cluster": the joint accelerations are the independent ones and each body moves with its rows of
    G; there are no multipliers, and inside a cluster f is not what the joint carries, for the
    loops' wrenches are left out. ``net_forces`` adds ``net[link]``, the resultant on each body.
    ``turned``: bodies whose axes turn with them even where they spin symmetrically, as external
    wrenches on them require (default: all).
    """
    state = State(model, q, range(len(model.nodes)) if turned is None else turned, v)
    chain, own = segments(model, state, view, split)
    factors: list[Factor] = []
    wrench_blocks: list[dict[str, Matrix]] = []
    wrench_constants: list[list[Scalar]] = []
    variables: list[Variable] = []
    torque: dict[str, dict[str, Matrix]] = {}
    for part in chain:
        a, f = f"a[{part.name}]", f"f[{part.name}]"
        variables += [
            Variable(a, "acceleration", part.name, 6),
            Variable(f, "wrench", part.name, 6),
        ]
        blocks = {a: _diagonal(-1.0, 6)}
        drift = part.drift
        if part.above == WORLD:
            gravity = Motion(ZERO, minus(ZERO, model.gravity))
            drift = drift + part.transform.to_child(gravity)
        else:
            above = chain[part.above].name
            blocks[f"a[{above}]"] = transposed(
                [part.transform.to_child(m).entries() for m in UNIT_MOTIONS]
            )
            wrench_blocks[part.above][f] = transposed(
                [part.transform.to_parent(w).entries() for w in UNIT_WRENCHES]
            )
        for name, columns in part.motions:
            blocks[name] = transposed([motion.entries() for motion in columns])
            torque.setdefault(name, {})[f] = [list(motion.entries()) for motion in columns]
        carried = "" if part.above == WORLD else f"a[{chain[part.above].name}]"
        factors.append(
            Factor(f"acceleration[{part.name}]", "acceleration", blocks, drift.entries(), f,
                   carried=carried, carry=part.transform)
        )  # fmt: skip
        below: dict[str, Matrix] = {f: _diagonal(-1.0, 6)}
        constant: list[Scalar] = [0.0] * 6
        if part.inertia is not None:
            mass = transposed([(part.inertia * m).entries() for m in UNIT_MOTIONS])
            constant = list(part.gyroscopic.entries())
            net = f"net[{part.name}]"
            if net_forces:
                variables.append(Variable(net, "net force", part.name, 6))
                factors.append(Factor(net, "net force", {net: _diagonal(-1.0, 6), a: mass},
                                      constant))  # fmt: skip
                below[net], constant = _diagonal(1.0, 6), [0.0] * 6
            elif not all(is_zero(x) for row in mass for x in row):
                below[a] = mass
            external = f"fx[{part.name}]"
            variables.append(Variable(external, "external wrench", part.name, 6))
            below[external] = _diagonal(-1.0, 6)
        wrench_blocks.append(below)
        wrench_constants.append(constant)
    multipliers: dict[str, dict[str, Matrix]] = {}
    if view == "tree":
        for condition in loop_conditions(state, loops):
            name = f"lambda[{condition.name}]"
            size = len(condition.bias)
            variables.append(Variable(name, "multiplier", condition.name, size))
            bodies = sorted({b for row in condition.wrenches for b in row if b != WORLD})
            constants = [neg(x) for x in condition.bias]
            blocks = {}
            for body in bodies:
                rows = [list(row.get(body, NO_WRENCH).entries()) for row in condition.wrenches]
                blocks[f"a[{chain[own[body]].name}]"] = _negative(rows)
                wrench_blocks[own[body]][name] = _negative(transposed(rows))
            for r, row in enumerate(condition.wrenches):
                if WORLD in row:
                    lift = row[WORLD].dot(Motion(ZERO, minus(ZERO, model.gravity)))
                    constants[r] = add(constants[r], neg(lift))
            for piece in pieces(model):
                rows = [[row.get(i, 0.0) for i in piece.freedoms] for row in condition.joints]
                if any(not is_zero(x) for row in rows for x in row):
                    blocks[f"qdd[{piece.name}]"] = _negative(rows)
                    multipliers.setdefault(piece.name, {})[name] = _negative(transposed(rows))
            factors.append(Factor(f"loop[{condition.name}]", "loop", blocks, constants, name))
    for part, blocks, constant in zip(chain, wrench_blocks, wrench_constants, strict=True):
        factors.append(
            Factor(f"wrench[{part.name}]", "wrench", blocks, constant, f"a[{part.name}]")
        )
    for piece in pieces(model):
        if view == "cluster" and not piece.dofs:
            continue
        tau, qdd = f"tau[{piece.name}]", f"qdd[{piece.name}]"
        size = len(piece.freedoms)
        variables += [Variable(tau, "torque", piece.name, size),
                      Variable(qdd, "joint acceleration", piece.name, size)]  # fmt: skip
        blocks = {tau: _diagonal(-1.0, size), **torque.get(qdd, {})}
        constant = [0.0] * size
        if view == "tree":
            if model.nodes[piece.body].armature:
                blocks[qdd] = _diagonal(model.nodes[piece.body].armature, size)
            blocks |= multipliers.get(piece.name, {})
        else:
            constant = _reflected(state, piece, blocks)
        factors.append(Factor(f"torque[{piece.name}]", "torque", blocks, constant, qdd))
    return System(tuple(variables), tuple(factors))


def _reflected(state: State, piece: Piece, blocks: dict[str, Matrix]) -> list[Scalar]:
    """Gᵀ diag(armature) G's rows of a piece, into ``blocks``; Gᵀ diag(armature) g."""
    model = state.model
    cluster = model.clusters[model.nodes[piece.body].cluster]
    first = cluster.v.start
    mass = state.armature(cluster)
    bias = state.armature(cluster, [state.bias[cluster.spanning_v]])
    for other in pieces(model):
        if other.dofs and model.nodes[other.body].cluster == cluster.index:
            rows = [[mass[i - first][j - first] for j in other.dofs] for i in piece.dofs]
            if any(not is_zero(x) for row in rows for x in row):
                blocks[f"qdd[{other.name}]"] = rows
    return [bias[i - first][0] for i in piece.dofs]


def _diagonal(x: float, size: int) -> Matrix:
    return [[x if i == j else 0.0 for j in range(size)] for i in range(size)]


def _negative(rows: Matrix) -> Matrix:
    return [[neg(x) for x in row] for row in rows]
