"""Newton-Euler equations as one triangular system: permutations, and the ABA as matrices (003).

After Nori, "Inverse, forward and other dynamic computations computationally optimized with sparse
matrix factorizations": D d + b = 0 over all accelerations a_i, wrenches f_i and f_i^x, torques τ_i
and joint accelerations q̈_i, (6). In RNEA's permutation, D of inverse dynamics is lower triangular
(property 1); D of forward dynamics is lower triangular between two matrices W_L and W_R, the
substitutions of the ABA (property 2). For other measurements, loops and clusters see
:mod:`robomodel.instants.problem`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.frames import body_wrenches, place
from robomodel.dynamics.kinematics.state import State
from robomodel.instants.elimination import Elimination, is_unit, single_operations
from robomodel.instants.equations import equations, pieces
from robomodel.instants.sensors import wrench_at
from robomodel.model.arguments import as_array
from robomodel.model.model import Model
from robomodel.scalars import value_of
from robomodel.spatial import ZERO, Motion, Wrench, cross

__all__ = ["DynamicSystem", "elementwise_operations", "forward_dynamics", "inverse_dynamics"]


@dataclass(frozen=True, eq=False)
class DynamicSystem:
    """The square system D d + b = 0 of a robot at a state, (6), with its measurements, (8), (15).

    Attributes:
        D: (20 N, 20 N) for joints with one degree of freedom, rows and columns permuted.
        b: the constants, permuted.
        q: the variables' names in the permutation of columns, (11).
        p: the equations' names in the permutation of rows, (12); a measurement has the name of the
            measured variable.
        W_L, W_R: matrices for which W_L D W_R is lower triangular (property 2); 1 for inverse
            dynamics.
        columns: the columns of each variable.
        state: the robot's state; D, b and d are in the internal frames of its bodies.
    """

    D: Array = field(repr=False)
    b: Array = field(repr=False)
    q: tuple[str, ...]
    p: tuple[str, ...]
    W_L: Array = field(repr=False)
    W_R: Array = field(repr=False)
    columns: Mapping[str, range] = field(repr=False)
    state: State = field(repr=False)

    @cached_property
    def triangular(self) -> Array:
        """W_L D W_R, lower triangular up to rounding."""
        product: Array = self.W_L @ self.D @ self.W_R
        return product

    def solve(self) -> dict[str, Array]:
        """All variables by name, by forward substitution (IV-C, V-C), as defined in the paper.

        Spatial accelerations a_i, minus gravity, and wrenches f_i and f_i^x (6,), angular part
        first, in the axes of their links about the links' origins.
        """
        lower, right = self.triangular, -self.W_L @ self.b
        d = np.zeros(len(right))
        for row in range(len(right)):
            d[row] = (right[row] - lower[row, :row] @ d[:row]) / lower[row, row]
        d = self.W_R @ d
        return {name: self._in_link(name, d[at]) for name, at in self.columns.items()}

    def _in_link(self, name: str, x: Array) -> Array:
        """A variable in its link's frame, from its body's internal one."""
        kind, _, owner = name.partition("[")
        if kind not in ("a", "f", "fx"):
            return x
        at = place(self.state.model, owner[:-1])
        if kind != "a":
            return np.array(wrench_at(Wrench.of(x.tolist()), at.pose).entries())
        twist = self.state.twists[at.body]  # a is the acceleration of the origin, which adds ω × v
        spatial = Motion.of(x.tolist()) + Motion(ZERO, cross(twist.linear, twist.angular))
        return np.array(at.pose.to_child(spatial).entries())


def inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: Mapping[str, ArrayLike] | None = None,
) -> DynamicSystem:
    """D d + b = 0 of inverse dynamics in RNEA's permutation, (10)-(12); property 1.

    Args:
        model: an open tree.
        q: (nq,) configuration.
        v: (nv,) velocities.
        a: (nv,) accelerations.
        f_ext: wrenches on links, as :func:`robomodel.rnea` takes them.

    Raises ValueError for robots with loops or couplings, and for arrays of other sizes.
    """
    system = _Equations.at(model, q, v, "qdd", as_array(a, model.nv, "a", "nv"), f_ext)
    order = [name for pair in zip(system.of("fx"), system.of("qdd"), strict=True) for name in pair]
    columns = [*order, *system.of("a"), *system.of("tau", "f")[::-1]]
    rows = [*order, *system.of("acceleration"), *system.of("torque", "wrench")[::-1]]
    count = len(system.b)
    return system.permuted(rows, columns, np.eye(count), np.eye(count))


def forward_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    f_ext: Mapping[str, ArrayLike] | None = None,
) -> DynamicSystem:
    """D d + b = 0 of forward dynamics, (16), with the ABA as W_L and W_R (property 2, appendix B).

    W_R replaces f_i by p_i^A = f_i - I_i^A a_i (step 1, (29)). W_L substitutes accelerations into
    the torques (step 2), divides by Sᵀ I^A S (step 3), substitutes joint accelerations into the
    accelerations (step 4) and those of the children into the wrenches (step 5).

    The permutation of rows that is printed in the paper is not triangular; this one is:
    measurements, wrenches from the tips, accelerations from the base, torques. Arguments and errors
    as in :func:`inverse_dynamics`, with ``tau`` (nv,).
    """
    system = _Equations.at(model, q, v, "tau", as_array(tau, model.nv, "tau", "nv"), f_ext)
    order = [name for pair in zip(system.of("fx"), system.of("tau"), strict=True) for name in pair]
    columns = [*order, *reversed(system.of("f")), *system.of("a"), *system.of("qdd")]
    rows = [*order, *reversed(system.of("wrench")), *system.of("acceleration")]
    rows += system.of("torque")
    return system.permuted(rows, columns, *_substitutions(system))


def _substitutions(system: _Equations) -> tuple[Array, Array]:
    """W_L and W_R, not yet permuted: (29), and the four matrices of steps 2 to 5."""
    parents = system.parents
    inertia = [system.block("wrench", i, "a", i) for i in range(len(parents))]
    subspace = [system.block("acceleration", i, "qdd", i) for i in range(len(parents))]
    joint: list[Array] = [np.zeros((0, 0))] * len(parents)
    for i in reversed(range(len(parents))):  # (13): I^A
        u = inertia[i] @ subspace[i]
        joint[i] = subspace[i].T @ u + system.block("torque", i, "qdd", i)
        if parents[i] >= 0:
            x = system.block("acceleration", i, "a", parents[i])
            left = inertia[i] - u @ np.linalg.solve(joint[i], u.T)
            inertia[parents[i]] = inertia[parents[i]] + x.T @ left @ x
    right, steps = np.eye(len(system.b)), [np.eye(len(system.b)) for _ in range(4)]
    for i in range(len(parents)):
        torque, motion = system.row("torque", i), system.row("acceleration", i)
        right[np.ix_(system.column("f", i), system.column("a", i))] = inertia[i]
        steps[0][np.ix_(torque, motion)] = subspace[i].T @ inertia[i]
        steps[1][np.ix_(torque, torque)] = np.linalg.inv(joint[i])
        steps[2][np.ix_(motion, torque)] = -subspace[i]
        if parents[i] >= 0:
            carried = system.block("wrench", parents[i], "f", i) @ inertia[i]
            steps[3][np.ix_(system.row("wrench", parents[i]), motion)] = carried
    return steps[3] @ steps[2] @ steps[1] @ steps[0], right


@dataclass(frozen=True, eq=False)
class _Equations:
    """D and b in the order of the written equations, measurements last."""

    D: Array
    b: Array
    rows: Mapping[str, range]
    columns: Mapping[str, range]
    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    parents: tuple[int, ...]
    state: State

    @classmethod
    def at(
        cls,
        model: Model,
        q: ArrayLike,
        v: ArrayLike,
        kind: str,
        values: Array,
        f_ext: Mapping[str, ArrayLike] | None,
    ) -> _Equations:
        tied = [cluster.name for cluster in model.clusters if cluster.kind != "joint"]
        if tied:
            raise ValueError(
                f"cluster '{tied[0]}' of '{model.name}' has loops or couplings, and the paper's "
                "equations are those of open trees; use robomodel.instants.problem"
            )
        at, speed = as_array(q, model.nq, "q", "nq"), as_array(v, model.nv, "v", "nv")
        for array, what in ((at, "q"), (speed, "v"), (values, "values")):
            if array.ndim > 1:
                raise ValueError(f"{what} is one state, not a batch of shape {array.shape[:-1]}")
        system = equations(model, at.tolist(), speed.tolist(), turned=range(len(model.nodes)))
        measured = {
            f"{kind}[{piece.name}]": values[list(piece.dofs)]
            for piece in pieces(model)
            if piece.dofs
        }
        links = {link: np.asarray(w, dtype=float).tolist() for link, w in (f_ext or {}).items()}
        wrenches = body_wrenches(model, links)
        for body, node in enumerate(model.nodes):
            entries = wrenches[body].entries() if body in wrenches else [0.0] * 6
            measured[f"fx[{node.name}]"] = np.array(entries, dtype=float)
        matrix, constant = system.matrix()
        rows, first = {}, 0
        for factor in system.factors:
            rows[factor.name] = range(first, first + factor.rows)
            first += factor.rows
        full, b = np.zeros((system.unknowns, system.unknowns)), np.zeros(system.unknowns)
        full[:first] = [[value_of(x) for x in row] for row in matrix]
        b[:first] = [value_of(x) for x in constant]
        for name, value in measured.items():  # (8), (15)
            rows[name] = range(first, first + len(value))
            full[np.ix_(rows[name], system.columns[name])] = np.eye(len(value))
            b[rows[name]] = -value
            first += len(value)
        bodies = tuple(node.name for node in model.nodes)
        joints = tuple(piece.name for piece in pieces(model))
        parents = tuple(node.parent for node in model.nodes)
        state = State(model, at.tolist(), range(len(bodies)), speed.tolist())
        return cls(full, b, rows, system.columns, bodies, joints, parents, state)

    def name(self, kind: str, i: int) -> str:
        owner = self.joints[i] if kind in ("tau", "torque", "qdd") else self.bodies[i]
        return f"{kind}[{owner}]"

    def of(self, *kinds: str) -> list[str]:
        return [self.name(kind, i) for i in range(len(self.bodies)) for kind in kinds]

    def row(self, kind: str, i: int) -> range:
        return self.rows[self.name(kind, i)]

    def column(self, kind: str, i: int) -> range:
        return self.columns[self.name(kind, i)]

    def block(self, row: str, i: int, column: str, j: int) -> Array:
        block: Array = self.D[np.ix_(self.row(row, i), self.column(column, j))]
        return block

    def permuted(
        self, p: Sequence[str], q: Sequence[str], left: Array, right: Array
    ) -> DynamicSystem:
        rows = [r for name in p for r in self.rows[name]]
        columns = [c for name in q for c in self.columns[name]]
        places, first = {}, 0
        for name in q:
            places[name] = range(first, first + len(self.columns[name]))
            first += len(self.columns[name])
        return DynamicSystem(
            D=self.D[np.ix_(rows, columns)],
            b=self.b[rows],
            q=tuple(q),
            p=tuple(p),
            W_L=left[np.ix_(rows, rows)],
            W_R=right[np.ix_(columns, columns)],
            columns=places,
            state=self.state,
        )


def elementwise_operations(done: Elimination) -> int:
    """Operations of an elimination as counted for figures 1 and 2 of the paper, which are too few.

    A pivot's update of the other rows is counted as an elementwise product of its row and column,
    although it is their outer product (:attr:`Elimination.operations`).
    """
    row_at = {r: k for k, (r, _) in enumerate(done.plan.pivots)}
    column_at = {c: k for k, (_, c) in enumerate(done.plan.pivots)}
    total = 0
    for (_, c), row, steps in zip(done.plan.pivots, done.rows, done.lost, strict=True):
        left = {row_at.get(target, -1 - target): is_unit(x) for target, x in steps}
        right = {column_at.get(o, -1 - o): is_unit(x) for o, x in row.items() if o != c}
        pairs = [(left[k], right[k]) for k in left.keys() & right.keys()]
        total += len(pairs) + sum(not (a or b) for a, b in pairs)
        total += single_operations(left.values(), right.values(), row[c])
    return total
