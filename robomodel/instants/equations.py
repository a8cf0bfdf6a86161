"""The equations of motion as one sparse linear system over named variables (after Nori).

D d + b = 0, where d contains every acceleration, wrench, torque and multiplier of the robot at a
state. For body i with parent λ(i):

    acceleration   -a_i + X a_λ + S q̈ + c = 0
    wrench         I a_i + ν - f_i - fx_i + Σ Xᵀ f_child - Σ Wᵀ λ = 0
    torque         Sᵀ f + armature · q̈ - τ - Kᵀ λ = 0
    loop           -W a - k = 0  (couplings: -K q̈ + k = 0)

With each equation in the row of its dual variable (wrench and a, acceleration and f, torque and q̈,
loop and λ) the matrix is symmetric. Scalars of any kind; structural zeros are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.baselines import spanning_tree
from robomodel.dynamics.kinematics.state import Matrix, State
from robomodel.estimation.graph import Graph, Term, diagonal, exact
from robomodel.estimation.spaces import Vectors
from robomodel.mechanism.constraints import (
    BodyAnchor,
    LoopConstraint,
    LoopEnd,
    LoopJoint,
    Polynomial,
    Unconstrained,
    evaluate_loops,
)
from robomodel.mechanism.graph import WORLD
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Cluster
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, added, array_of, dot, is_zero, transposed
from robomodel.spatial import (
    NO_MOTION,
    NO_WRENCH,
    UNIT,
    UNIT_MOTIONS,
    UNIT_WRENCHES,
    ZERO,
    Mat,
    Motion,
    RigidInertia,
    Transform,
    Vec,
    Wrench,
    apply,
    cross,
    minus,
    plus,
    scale,
    transpose,
)

Group: TypeAlias = str | tuple[int, ...]
"""An element of an elimination order: a variable by name, or columns by index."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A named quantity: ``kind`` describes it, ``owner`` is its link, joint or loop."""

    name: str
    kind: str
    owner: str
    size: int


@dataclass(frozen=True, slots=True)
class LinearFactor:
    """Rows of D d + b = 0: ``blocks`` (rows, size of the variable) by variable name.

    ``deviation``: standard deviations of rows that are measurements; None: exact rows.
    ``twin``: the variable whose columns mirror these rows in a symmetric system. ``carried``: the
    variable whose block is the transform ``carry``, with which products are cheaper.
    """

    name: str
    kind: str
    blocks: Mapping[str, Matrix]
    constant: Sequence[Scalar]
    twin: str = ""
    deviation: tuple[float, ...] | None = None
    carried: str = ""
    carry: Transform | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.constant)

    @property
    def variables(self) -> tuple[tuple[str, int], ...]:
        """Its variables as (name, 0): all at its own time."""
        return tuple((name, 0) for name in self.blocks)

    def evaluate(self, x: Sequence[Array], data: Array | None) -> tuple[Array, Sequence[Array]]:
        """D d + b (1, rows) less data, and the blocks; entries must be numbers."""
        e = np.array(self.constant, dtype=float) - (0.0 if data is None else data)
        jacobians = [
            np.array(block, dtype=float).reshape(self.rows, -1) for block in self.blocks.values()
        ]
        for values, jacobian in zip(x, jacobians, strict=True):
            e = e + values @ jacobian.T
        return e.reshape(1, -1), [jacobian[np.newaxis] for jacobian in jacobians]


@dataclass(frozen=True)
class System:
    """Variables and factors, in a fixed order."""

    variables: tuple[Variable, ...]
    factors: tuple[LinearFactor, ...]

    @cached_property
    def by_name(self) -> dict[str, Variable]:
        """The variables by name."""
        return {variable.name: variable for variable in self.variables}

    @cached_property
    def columns(self) -> dict[str, range]:
        """The range of columns of each variable."""
        result, at = {}, 0
        for variable in self.variables:
            result[variable.name] = range(at, at + variable.size)
            at += variable.size
        return result

    @property
    def unknowns(self) -> int:
        """Number of columns of D."""
        return sum(variable.size for variable in self.variables)

    @property
    def rows(self) -> int:
        """Number of rows of D."""
        return sum(factor.rows for factor in self.factors)

    def matrix(self) -> tuple[Matrix, list[Scalar]]:
        """D by rows, and b, in the order of factors and variables."""
        rows: Matrix = []
        for factor in self.factors:
            first = len(rows)
            rows += [[0.0] * self.unknowns for _ in range(factor.rows)]
            for name, block in factor.blocks.items():
                at = self.columns[name]
                for i, row in enumerate(block):
                    rows[first + i][at.start : at.stop] = row
        return rows, [x for factor in self.factors for x in factor.constant]

    def pattern(self) -> set[tuple[int, int]]:
        """(row, column) of every structural entry of D: the worst case over all states."""
        result, first = set(), 0
        for factor in self.factors:
            for name, block in factor.blocks.items():
                start = self.columns[name].start
                result |= {
                    (first + i, start + j)
                    for i, row in enumerate(block)
                    for j, x in enumerate(row)
                    if not is_zero(x)
                }
            first += factor.rows
        return result

    def graph(self) -> Graph:
        """The factor graph of one time with these factors; entries must be numbers."""
        terms = [
            Term(
                factor,
                exact(factor.rows) if factor.deviation is None else diagonal(factor.deviation),
                np.zeros(1, dtype=np.intp),
                None,
            )
            for factor in self.factors
        ]
        return Graph({v.name: Vectors(v.size) for v in self.variables}, 1, tuple(terms))

    def checked(self, groups: Sequence[Group]) -> tuple[Group, ...]:
        """An order of variables and groups of columns; raises unless every column occurs once."""
        columns = [
            c for group in groups
            for c in (self.columns.get(group, ()) if isinstance(group, str) else group)
        ]  # fmt: skip
        if sorted(columns) != list(range(self.unknowns)):
            raise ValueError(
                f"the order has {len(set(columns))} of {self.unknowns} columns, {len(columns)} in "
                "all; each must be there once"
            )
        return tuple(groups)

    def with_factors(self, more: Iterable[LinearFactor]) -> System:
        """The system with further factors."""
        return System(self.variables, (*self.factors, *more))

    def substituted(self, values: Mapping[str, Vector]) -> System:
        """The system with these variables' values moved into b; empty rows are removed."""
        factors = []
        for factor in self.factors:
            constant, blocks = list(factor.constant), {}
            for name, block in factor.blocks.items():
                if name not in values:
                    blocks[name] = block
                    continue
                constant = [
                    c + dot(row, values[name]) for c, row in zip(constant, block, strict=True)
                ]
            if blocks:
                factors.append(replace(factor, blocks=blocks, constant=constant))
        unknown = tuple(v for v in self.variables if v.name not in values)
        return System(unknown, tuple(factors))


def refined(
    system: System,
    solve: Callable[[list[Scalar]], dict[str, list[Scalar]]],
    steps: int,
    result: dict[str, list[Scalar]] | None = None,
) -> dict[str, list[Scalar]]:
    """Solve D d + b = 0 with ``steps`` of iterative refinement; ``solve`` solves D d = right.

    ``result``: an initial solution, if there is one.
    """
    if result is None:
        result = solve([-x for f in system.factors for x in f.constant])
    for _ in range(steps):
        correction = solve([-x for x in residual(system, result)])
        result = {name: added(values, correction[name]) for name, values in result.items()}
    return result


def residual(system: System, solution: Mapping[str, Sequence[Scalar]]) -> list[Scalar]:
    """D d + b, row by row."""
    result: list[Scalar] = []
    for factor in system.factors:
        for i in range(factor.rows):
            total = factor.constant[i]
            for name, block in factor.blocks.items():
                for x, y in zip(block[i], solution[name], strict=True):
                    total = total + x * y
            result.append(total)
    return result


def backward_error(
    system: System, solution: Mapping[str, Sequence[Scalar]], *, but: Container[int] = ()
) -> Any:
    """The componentwise backward error of d as a solution of D d + b = 0 (batched).

    max |D d + b| / (|D| |d| + |b|) over exact rows other than ``but``. Where the denominator is a
    rounding error, |D| |d|max is added to it (Arioli, Demmel and Duff 1989).
    """
    largest: Any = 0.0
    for values in solution.values():
        for y in values:
            largest = np.maximum(largest, np.abs(array_of(y)))
    worst: Any = 0.0
    rows = enumerate(residual(system, solution))
    for factor in system.factors:
        for i in range(factor.rows):
            norm, size = 0.0 * largest, np.abs(array_of(factor.constant[i]))
            for name, block in factor.blocks.items():
                for x, y in zip(block[i], solution[name], strict=True):
                    norm = norm + np.abs(array_of(x))
                    size = size + np.abs(array_of(x)) * np.abs(array_of(y))
            rounding = 1e3 * np.finfo(float).eps * (norm * largest)
            size = np.where(size > rounding, size, size + norm * largest)
            at, wrong = next(rows)
            error = np.abs(array_of(wrong)) / np.where(size > 0.0, size, 1.0)
            if factor.deviation is None and at not in but:
                worst = np.maximum(worst, error)
    return worst


# ---- the equations of motion ---------------------------------------------------------------------


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
    """The equations of motion D d + b = 0 at a state; scalars of any kind.

    Variables: ``a[link]`` (conventional acceleration of the body's origin less gravity, angular
    first), ``f[link]`` (wrench on the body through its joint), ``fx[link]`` (external wrench),
    ``tau[joint]``, ``qdd[joint]``, and ``lambda[loop]``; quantities of bodies in their internal
    axes.

    ``view`` "tree": all joints of the spanning tree, with multipliers for loops and couplings.
    "cluster": joint accelerations are the independent ones, and each body moves with its rows of
    G. There are no multipliers, and f of a body in a cluster lacks the loop wrenches, so it is not
    the joint's load. ``net_forces`` adds ``net[link]``, the resultant on each body. ``turned``:
    bodies whose axes must turn with them even if they are rotationally symmetric rotors, as
    external wrenches on them require (default: all).
    """
    state = State(model, q, range(len(model.nodes)) if turned is None else turned, v)
    chain, segment_of = segments(model, state, view, split)
    factors: list[LinearFactor] = []
    wrench_blocks: list[dict[str, Matrix]] = []
    wrench_constants: list[list[Scalar]] = []
    variables: list[Variable] = []
    torque: dict[str, dict[str, Matrix]] = {}
    for part in chain:
        f = f"f[{part.name}]"
        variables += [
            Variable(f"a[{part.name}]", "acceleration", part.name, 6),
            Variable(f, "wrench", part.name, 6),
        ]
        factors.append(_acceleration_factor(model, part, chain))
        if part.above != WORLD:
            wrench_blocks[part.above][f] = transposed(
                [part.transform.to_parent(w).entries() for w in UNIT_WRENCHES]
            )
        for name, columns in part.motions:
            torque.setdefault(name, {})[f] = [list(motion.entries()) for motion in columns]
        wrench_blocks.append({f: diagonal_block(-1.0, 6)})
        wrench_constants.append([0.0] * 6)
        if part.inertia is not None:
            mass = transposed([(part.inertia * m).entries() for m in UNIT_MOTIONS])
            push, gyroscopic = wrench_blocks[-1], list(part.gyroscopic.entries())
            if net_forces:
                net = f"net[{part.name}]"
                variables.append(Variable(net, "net force", part.name, 6))
                blocks = {net: diagonal_block(-1.0, 6), f"a[{part.name}]": mass}
                factors.append(LinearFactor(net, "net force", blocks, gyroscopic))
                push[net] = diagonal_block(1.0, 6)
            else:
                wrench_constants[-1] = gyroscopic
                if not all(is_zero(x) for row in mass for x in row):
                    push[f"a[{part.name}]"] = mass
            external = f"fx[{part.name}]"
            variables.append(Variable(external, "external wrench", part.name, 6))
            push[external] = diagonal_block(-1.0, 6)
    pushed: dict[str, dict[str, Matrix]] = {}
    for condition in loop_conditions(state, loops) if view == "tree" else ():
        multiplier = f"lambda[{condition.name}]"
        variables.append(Variable(multiplier, "multiplier", condition.name, len(condition.bias)))
        factors.append(_loop_factor(model, condition, [chain[n].name for n in segment_of]))
        for name, block in factors[-1].blocks.items():  # multipliers act by the transpose
            pushed.setdefault(name, {})[multiplier] = transposed(block)
    for part, blocks, constant in zip(chain, wrench_blocks, wrench_constants, strict=True):
        a = f"a[{part.name}]"
        wrenches = blocks | pushed.get(a, {})
        factors.append(LinearFactor(f"wrench[{part.name}]", "wrench", wrenches, constant, a))
    for piece in pieces(model):
        if view == "cluster" and not piece.dofs:
            continue
        size, qdd = len(piece.freedoms), f"qdd[{piece.name}]"
        variables += [Variable(f"tau[{piece.name}]", "torque", piece.name, size),
                      Variable(qdd, "joint acceleration", piece.name, size)]  # fmt: skip
        wrenches, multipliers = torque.get(qdd, {}), pushed.get(qdd, {})
        factors.append(_torque_factor(state, piece, view, wrenches, multipliers))
    return System(tuple(variables), tuple(factors))


@cached_on_model
def general_position(model: Model) -> tuple[list[float], list[float]]:
    """A fixed, reproducible configuration and velocity without special symmetries."""
    rng = np.random.default_rng(0)
    return model.random_configuration(rng, base_pose="random").tolist(), rng.normal(
        size=model.nv
    ).tolist()


def _acceleration_factor(model: Model, part: Segment, chain: Sequence[Segment]) -> LinearFactor:
    """The acceleration of a segment: its predecessor's, plus the joint's terms."""
    blocks = {f"a[{part.name}]": diagonal_block(-1.0, 6)}
    bias, carried = part.bias, ""
    if part.above == WORLD:
        gravity = Motion(ZERO, minus(ZERO, model.gravity))
        bias = bias + part.transform.to_child(gravity)
    else:
        carried = f"a[{chain[part.above].name}]"
        blocks[carried] = transposed([part.transform.to_child(m).entries() for m in UNIT_MOTIONS])
    for name, columns in part.motions:
        blocks[name] = transposed([motion.entries() for motion in columns])
    return LinearFactor(
        f"acceleration[{part.name}]", "acceleration", blocks, bias.entries(), f"f[{part.name}]",
        carried=carried, carry=part.transform,
    )  # fmt: skip


def _loop_factor(model: Model, condition: LoopConditions, names: Sequence[str]) -> LinearFactor:
    """The rows of a loop or coupling on the accelerations of bodies called ``names``."""
    constants = [-x for x in condition.bias]
    blocks = {}
    for body in sorted({b for row in condition.wrenches for b in row if b != WORLD}):
        rows = [list(row.get(body, NO_WRENCH).entries()) for row in condition.wrenches]
        blocks[f"a[{names[body]}]"] = _negative(rows)
    for r, row in enumerate(condition.wrenches):
        if WORLD in row:
            lift = row[WORLD].dot(Motion(ZERO, minus(ZERO, model.gravity)))
            constants[r] = constants[r] + (-lift)
    for piece in pieces(model):
        rows = [[row.get(i, 0.0) for i in piece.freedoms] for row in condition.joints]
        if any(not is_zero(x) for row in rows for x in row):
            blocks[f"qdd[{piece.name}]"] = _negative(rows)
    name = condition.name
    return LinearFactor(f"loop[{name}]", "loop", blocks, constants, f"lambda[{name}]")


def _torque_factor(
    state: State,
    piece: Piece,
    view: View,
    wrenches: Mapping[str, Matrix],
    multipliers: Mapping[str, Matrix],
) -> LinearFactor:
    """The balance of torques at joints: wrenches, multipliers and armature."""
    size, qdd = len(piece.freedoms), f"qdd[{piece.name}]"
    blocks = {f"tau[{piece.name}]": diagonal_block(-1.0, size), **wrenches}
    constant: list[Scalar] = [0.0] * size
    if view == "cluster":
        constant = _reflected(state, piece, blocks)
    elif armature := state.model.nodes[piece.body].armature:
        blocks[qdd] = diagonal_block(armature, size)
    blocks |= multipliers
    return LinearFactor(f"torque[{piece.name}]", "torque", blocks, constant, qdd)


def _reflected(state: State, piece: Piece, blocks: dict[str, Matrix]) -> list[Scalar]:
    """Add a piece's rows of Gᵀ diag(armature) G to ``blocks``; returns its Gᵀ diag(armature) g."""
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


def diagonal_block(x: float, size: int) -> Matrix:
    """x times the identity matrix."""
    return [[x if i == j else 0.0 for j in range(size)] for i in range(size)]


def _negative(rows: Matrix) -> Matrix:
    return [[-x for x in row] for row in rows]


# ---- segments ------------------------------------------------------------------------------------


View: TypeAlias = Literal["tree", "cluster"]


Split: TypeAlias = Literal["none", "joint", "steps"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A frame with acceleration a = X a_above + Σ motion · q̈ + bias, with or without mass.

    ``motions``: the columns of each joint acceleration. ``above``: index of a segment, or WORLD.
    ``gyroscopic``: the wrench due to velocities. ``body``: the body that the frame is, or leads to.
    """

    name: str
    above: int
    transform: Transform
    motions: tuple[tuple[str, tuple[Motion, ...]], ...]
    bias: Motion
    inertia: RigidInertia | None
    gyroscopic: Wrench
    body: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Velocities of a joint that are all independent or all dependent; one acceleration variable.

    ``freedoms``: indices of spanning velocities; ``dofs``: of independent ones (dependent joints
    have none).
    """

    name: str
    body: int
    freedoms: tuple[int, ...]
    dofs: tuple[int, ...]


@cached_on_model
def pieces(model: Model) -> tuple[Piece, ...]:
    """The joints as variables: one each, or one per component if only some are independent."""
    result = []
    for cluster in model.clusters:
        first = cluster.spanning_v.start
        dof = {first + c: cluster.v.start + i for i, c in enumerate(cluster.columns)}
        for body, joint in zip(cluster.bodies, cluster.joints, strict=True):
            freedoms = tuple(model.nodes[body].freedoms)
            dofs = tuple(dof[r] for r in freedoms if r in dof)
            if len(dofs) in (0, len(freedoms)):
                if freedoms:
                    result.append(Piece(joint, body, freedoms, dofs))
                continue
            for n, r in enumerate(freedoms):
                independent = (dof[r],) if r in dof else ()
                result.append(Piece(f"{joint}.{n}", body, (r,), independent))
    return tuple(result)


def segments(
    model: Model, state: State, view: View, split: Split = "none"
) -> tuple[list[Segment], list[int]]:
    """The frames from the base outwards, and the index of each body's segment.

    ``split``: "joint" adds a frame before the joint's acceleration to every body not on the base,
    so that this acceleration can be eliminated in the body's axes; "steps" adds one to all bodies
    after every elementary rotation and translation.
    """
    moving = state if view == "cluster" else tree_state(state)
    parts: dict[int, list[tuple[str, tuple[Motion, ...]]]] = {}
    for piece in pieces(model):
        cluster = model.clusters[model.nodes[piece.body].cluster]
        if view == "cluster":
            for body in cluster.bodies if piece.dofs else ():
                subspace = state.subspace(body)
                columns = tuple(subspace[i - cluster.v.start] for i in piece.dofs)
                if not all(is_zero(x) for motion in columns for x in motion.entries()):
                    parts.setdefault(body, []).append((f"qdd[{piece.name}]", columns))
            continue
        node = model.nodes[piece.body]
        columns = tuple(node.joint.subspace[r - node.v] for r in piece.freedoms)
        parts.setdefault(piece.body, []).append((f"qdd[{piece.name}]", columns))
    result: list[Segment] = []
    segment_of: list[int] = []
    for body, node in enumerate(model.nodes):
        x = state.transforms[body]
        above = WORLD if node.parent == WORLD else segment_of[node.parent]
        chain = [x]
        if split == "joint" and node.parent != WORLD:
            chain = [x, Transform((), ZERO)]
        elif split == "steps":
            turns = [Transform((r,), ZERO) for r in reversed(x.rotations)]
            chain = [Transform((), x.offset), *turns, Transform((), ZERO)]
        for n, step in enumerate(chain):
            last = n == len(chain) - 1
            result.append(
                Segment(
                    name=node.name if last else f"{node.name}:{n}",
                    above=above,
                    transform=step,
                    motions=tuple(parts.get(body, ())) if last else (),
                    bias=moving.bias_acceleration(body) if last else NO_MOTION,
                    inertia=state.inertia[body] if last else None,
                    gyroscopic=state.inertia[body].gyroscopic(state.centripetal[body])
                    if last
                    else NO_WRENCH,
                    body=body,
                )
            )
            above = len(result) - 1
        segment_of.append(above)
    return result, segment_of


def tree_state(state: State) -> State:
    """The state of the spanning tree, without loops and couplings: all joints are independent."""
    tree = spanning_tree(state.model)
    return State(tree, state.positions, state.turned, state.velocities)


# ---- loops ---------------------------------------------------------------------------------------


LoopRowsKept: TypeAlias = Literal["independent", "all"]


@dataclass(frozen=True, slots=True)
class LoopConditions:
    """Conditions Σ W a + k = 0 of a cluster on bodies, or on joints, with multipliers.

    ``wrenches[r]``: those of row r on each body; ``joints[r]``: coefficients of spanning
    velocities.
    """

    name: str
    wrenches: list[dict[int, Wrench]]
    joints: list[dict[int, Scalar]]
    bias: list[Scalar]


def loop_conditions(state: State, selection: LoopRowsKept) -> list[LoopConditions]:
    """Conditions of loops as wrenches on bodies, of couplings as torques at joints.

    ``selection`` "independent": without redundant rows. "all": all rows of each loop; multipliers
    of redundant rows are not determined.
    """
    result: list[LoopConditions] = []
    for cluster in state.model.clusters:
        constraint = cluster.constraint
        if isinstance(constraint, Unconstrained):
            continue
        at, rates = state.positions[cluster.spanning_q], state.velocities[cluster.spanning_v]
        if isinstance(constraint, LoopConstraint):
            result += _loops(state, cluster, constraint, selection)
            couplings = len(constraint.expand) - len(constraint.expand[0])
        else:
            couplings = cluster.spanning_v.stop - cluster.spanning_v.start - cluster.nv
        if couplings:
            rows, right = constraint.conditions(at, rates)
            first = cluster.spanning_v.start
            joints = [
                {first + i: x for i, x in enumerate(row) if not is_zero(x)}
                for row in rows[-couplings:]
            ]
            bias = [-k for k in right[-couplings:]]
            result.append(LoopConditions(cluster.name, [{} for _ in joints], joints, bias))
    return result


def _loops(
    state: State, cluster: Cluster, constraint: LoopConstraint, selection: LoopRowsKept
) -> list[LoopConditions]:
    result = []
    for n, loop in enumerate(constraint.loops):
        rows = [r for r in range(len(loop.rows)) if selection == "all" or (n, r) in constraint.keep]
        if rows and isinstance(loop, Polynomial):
            at = state.positions[cluster.spanning_q]
            _, slopes, k = loop.evaluate(constraint.links, at, state.velocities[cluster.spanning_v])
            first = cluster.spanning_v.start
            joints = {first + i: x for i, x in slopes.items()}
            result.append(LoopConditions(polynomial_name(loop.name), [{}], [joints], [k]))
        elif rows and isinstance(loop, LoopJoint):
            wrenches, bias = loop_wrenches(state, cluster, loop, rows)
            result.append(LoopConditions(loop.name, wrenches, [{} for _ in rows], bias))
    dependent = [c for c in range(len(constraint.expand[0])) if c not in constraint.independent]
    if selection == "all" or len(constraint.keep) == len(dependent):
        return result
    # redundant in general position: the combinations K_dᵀ of all rows, as constraint.conditions
    jacobian = evaluate_loops(
        constraint.links, constraint.loops, state.positions[cluster.spanning_q],
        keep=constraint.keep,
    ).jacobian  # fmt: skip
    columns = list(zip(*constraint.expand, strict=True))
    single = [(w, j) for c in result for w, j in zip(c.wrenches, c.joints, strict=True)]
    bias = [b for c in result for b in c.bias]
    combined: list[dict[int, Wrench]] = []
    sums: list[dict[int, Scalar]] = []
    biases: list[Scalar] = []
    for c in dependent:
        weights = [dot(row, columns[c]) for row in jacobian]
        total: dict[int, Wrench] = {}
        on_joints: dict[int, Scalar] = {}
        for weight, (row, entries) in zip(weights, single, strict=True):
            for body, wrench in row.items():
                total[body] = total.get(body, NO_WRENCH) + wrench.scaled(weight)
            for joint, x in entries.items():
                on_joints[joint] = on_joints.get(joint, 0.0) + weight * x
        combined.append(total)
        sums.append(on_joints)
        biases.append(dot(weights, bias))
    return [LoopConditions(f"{cluster.name} loops", combined, sums, biases)]


def polynomial_name(name: str) -> str:
    """The name of the condition of a polynomial coupling."""
    return f"{name} polynomial"


def loop_wrenches(
    state: State, cluster: Cluster, loop: LoopJoint, rows: Sequence[int]
) -> tuple[list[dict[int, Wrench]], list[Scalar]]:
    """For each row φ, the W and k of φ̈ = Σ W a + k on the ends' bodies, in their axes.

    The loop joint exerts these wrenches times the multipliers. The loop must be closed: then the
    derivatives of the rows are those of absolute motions.
    """
    top = next(branch[0] for branch in loop.branches if branch)
    ancestor = state.model.nodes[cluster.bodies[top]].parent
    ends = [
        _end(state, ancestor, anchor, [cluster.bodies[i] for i in branch])
        for anchor, branch in zip((loop.predecessor, loop.successor), loop.branches, strict=True)
    ]
    result: list[dict[int, Wrench]] = []
    biases: list[Scalar] = []
    for r in rows:
        p, s = ends[0][0], ends[1][0]
        row = loop.rows[r].evaluate(p, s)
        total: dict[int, Wrench] = {}
        for (end, body, rotation, origin), force, moment in (
            (ends[0], scale(-1.0, row.force), row.moment_predecessor),
            (ends[1], row.force, row.moment_successor),
        ):
            about = plus(cross(minus(end.x, origin), force), moment)
            back = transpose(rotation)
            wrench = Wrench(apply(back, about), apply(back, force))
            total[body] = total.get(body, NO_WRENCH) + wrench
        result.append(total)
        biases.append(loop.rows[r].bias(p, s))
    return result, biases


def _end(
    state: State, ancestor: int, anchor: BodyAnchor, bodies: Sequence[int]
) -> tuple[LoopEnd, int, Mat, Vec]:
    """The motion of a loop's end in the common ancestor's axes; its body, with rotation and origin.

    Velocities are absolute; accelerations only those due to the body's angular velocity.
    """
    body = bodies[-1] if bodies else ancestor

    def turn(v: Vec) -> Vec:
        for b in reversed(bodies):
            v = state.transforms[b].rotate(v)
        return v

    origin: Vec = ZERO
    for b in reversed(bodies):
        origin = state.transforms[b].point(origin)
    rotation = transpose((turn(UNIT[0]), turn(UNIT[1]), turn(UNIT[2])))
    arm = apply(rotation, anchor.point)
    axes = (turn(anchor.axes[0]), turn(anchor.axes[1]), turn(anchor.axes[2]))
    x = plus(origin, arm)
    if body == WORLD:
        still = (ZERO, ZERO, ZERO)
        return LoopEnd(x, axes, ZERO, ZERO, ZERO, still), body, rotation, origin
    twist, around = state.twists[body], state.centripetal[body]
    velocity = apply(rotation, plus(twist.linear, cross(twist.angular, anchor.point)))
    centripetal = apply(rotation, apply(around, anchor.point))
    half = tuple(apply(rotation, column) for column in transpose(around))
    turning = tuple(apply(rotation, row) for row in transpose((half[0], half[1], half[2])))
    omega = apply(rotation, state.omega[body])
    turned = (turning[0], turning[1], turning[2])
    return LoopEnd(x, axes, velocity, omega, centripetal, turned), body, rotation, origin
