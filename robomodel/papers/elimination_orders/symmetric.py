"""Symmetric block elimination, LDLᵀ with block pivots: the recursions, in any order.

The equations of motion are symmetric: a body's wrench row mirrors its acceleration's column, its
acceleration row the column of its joint's wrench, torque rows joint accelerations, loop rows their
multipliers. An acceleration and its wrench are eliminated together with the pivot [I -1; -1 0]:
a = X a_λ + S q̈ + c is substituted into the parent's equations. Joint accelerations and multipliers
are eliminated with their definite blocks. ABA's order gives the articulated-body algorithm, CRBA's
the composite-rigid-body algorithm with its factorisation.

Only one half of the matrix is computed; products with a body's transform are those of
:mod:`robomodel.spatial` (elementary rotations, translations). Scalars of any kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from robomodel.dynamics.kinematics.state import Matrix
from robomodel.estimation.elimination import SingularError
from robomodel.instants.equations import LinearFactor, System, refined
from robomodel.instants.problem import Problem, Solution
from robomodel.scalars import (
    Factorization,
    Scalar,
    added,
    dot,
    is_zero,
    subtracted,
    transposed,
)
from robomodel.spatial import (
    UNIT_MOTIONS,
    ArticulatedInertia,
    Mat,
    Motion,
    RigidInertia,
    Transform,
    Wrench,
)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A pivot of an acceleration and its wrench, [I -1; -1 0], with its couplings."""

    acceleration: str
    wrench: str
    inertia: Matrix
    of_wrench: Mapping[str, Matrix]  # blocks of other variables in the wrench row
    of_motion: Mapping[str, Matrix]  # in the acceleration row
    carried: str
    carry: Transform | None


@dataclass(frozen=True, slots=True)
class _Single:
    """A pivot of a joint acceleration or a multiplier, with its factors and couplings."""

    name: str
    factors: Factorization
    couplings: Mapping[str, Matrix]
    reduced: Mapping[str, tuple[Matrix, Matrix]]  # L⁻ᵀ coupling, and Λ⁻¹ times that


@dataclass(frozen=True)
class SymmetricElimination:
    """The pivots in the order of their use."""

    pivots: tuple[_Pair | _Single, ...]

    @property
    def sequence(self) -> tuple[str, ...]:
        """The variables in the order of elimination, postponed ones at their actual place."""
        return tuple(
            name
            for p in self.pivots
            for name in ((p.wrench, p.acceleration) if isinstance(p, _Pair) else (p.name,))
        )

    def solve(self, right: Mapping[str, Sequence[Scalar]]) -> dict[str, list[Scalar]]:
        """All variables, from right-hand sides named by the columns that mirror their rows."""
        forward = {name: list(values) for name, values in right.items()}
        held: dict[str, tuple[list[Scalar], list[Scalar]] | list[Scalar]] = {}
        for p in self.pivots:
            if isinstance(p, _Pair):
                motion = [-x for x in forward[p.wrench]]
                force = subtracted(_rows_dot(p.inertia, motion), forward[p.acceleration])
                held[p.acceleration] = motion, force
                for name, block in p.of_wrench.items():
                    _subtract(forward[name], _columns_dot(block, motion))
                for name, block in p.of_motion.items():
                    if name == p.carried and p.carry is not None:
                        _subtract(forward[name], _carry_back(p.carry, [force])[0])
                    else:
                        _subtract(forward[name], _columns_dot(block, force))
                continue
            reduced = p.factors.reduce(forward[p.name])
            held[p.name] = reduced
            for name, (_, scaled) in p.reduced.items():
                _subtract(forward[name], _columns_dot(scaled, reduced))
        result: dict[str, list[Scalar]] = {}
        for p in reversed(self.pivots):
            if isinstance(p, _Single):
                values = held[p.name]
                assert isinstance(values, list)
                x = list(values)
                for name, (reduced_block, _) in p.reduced.items():
                    _subtract(x, _rows_dot(reduced_block, result[name]))
                result[p.name] = p.factors.restore(x)
                continue
            pair = held[p.acceleration]
            assert isinstance(pair, tuple)
            a = list(pair[0])
            for name, block in p.of_motion.items():
                if name == p.carried and p.carry is not None:
                    part: Sequence[Scalar] = p.carry.to_child(Motion.of(result[name])).entries()
                else:
                    part = _rows_dot(block, result[name])
                a = added(a, part)
            f = subtracted(_rows_dot(p.inertia, a), forward[p.acceleration])
            for name, block in p.of_wrench.items():
                f = added(f, _rows_dot(block, result[name]))
            result[p.acceleration], result[p.wrench] = a, f
        return result


def eliminate(system: System, order: Sequence[str]) -> SymmetricElimination:
    """Eliminate a symmetric system in this order; ``order`` names its variables.

    An acceleration and its wrench are eliminated when the second of them is named. A joint
    acceleration or a multiplier is postponed while it has no pivot (named before the bodies that it
    moves, or before the joints of its loop), as in other symmetric indefinite factorisations.
    """
    blocks: dict[str, dict[str, Matrix]] = {v.name: {} for v in system.variables}
    wrench_of: dict[str, str] = {}
    carries: dict[str, tuple[str, Transform]] = {}
    for factor in system.factors:
        if factor.twin not in blocks or factor.deviation is not None:
            raise ValueError(f"'{factor.name}' has no twin among the unknowns; LDLᵀ is for "
                             "symmetric systems, use Problem.solve")  # fmt: skip
        blocks[factor.twin] = dict(factor.blocks)
        if factor.kind == "acceleration":
            a = f"a{factor.twin[1:]}"
            wrench_of[a] = factor.twin
            if factor.carry is not None and factor.carried:
                carries[factor.twin] = factor.carried, factor.carry
    mirrored = {factor.twin for factor in system.factors}
    for variable in system.variables:
        if variable.name not in mirrored:
            raise ValueError(f"'{variable.name}' has no row that mirrors its column; LDLᵀ is for "
                             "symmetric systems, use Problem.solve")  # fmt: skip
    acceleration_of = {f: a for a, f in wrench_of.items()}
    pivots: list[_Pair | _Single] = []
    waiting: list[str] = []
    named: set[str] = set()
    related = _related_joints(system)

    def massless(joint: str) -> bool:
        """True if a joint moves no mass; its bodies must be eliminated."""
        return joint not in blocks[joint] and blocks[joint].keys().isdisjoint(acceleration_of)

    def ready(name: str) -> bool:
        """True if a variable has a pivot: a definite diagonal block, and no wrench coupled to it.

        A multiplier's block is definite once all joints of its loop are eliminated, except those
        that move no mass, which follow it.
        """
        if not all(massless(joint) for joint in related.get(name, ()) if joint in blocks):
            return False
        block = blocks[name].get(name)
        return (
            block is not None
            and all(not is_zero(block[i][i]) for i in range(len(block)))
            and blocks[name].keys().isdisjoint(acceleration_of)
        )

    for name in order:
        if name in acceleration_of or name in wrench_of:
            a = acceleration_of.get(name, name)
            if a in named:  # the second of the pair
                pivots.append(_pair(blocks, a, wrench_of[a], carries))
            named.add(a)
        else:
            waiting.append(name)
        while (free := next((w for w in waiting if ready(w)), None)) is not None:
            waiting.remove(free)
            pivots.append(_single(blocks, free))
    if waiting:
        raise SingularError(waiting[0], "is not determined by the equations that are left")
    return SymmetricElimination(tuple(pivots))


def _related_joints(system: System) -> dict[str, set[str]]:
    """For each multiplier, the unknown joint accelerations that its conditions relate."""
    above: dict[str, str] = {}
    moved_by: dict[str, set[str]] = {}
    joints = {v.name for v in system.variables if v.kind == "joint acceleration"}
    for factor in system.factors:
        if factor.kind == "acceleration":
            a = f"a{factor.twin[1:]}"
            above[a], moved_by[a] = factor.carried, joints & factor.blocks.keys()

    def path(a: str) -> set[str]:
        result: set[str] = set()
        while a:
            result |= moved_by[a]
            a = above[a]
        return result

    related: dict[str, set[str]] = {}
    for factor in system.factors:
        if factor.kind == "loop":
            paths = [path(name) for name in factor.blocks if name in above]
            common = set.intersection(*paths) if len(paths) > 1 else set()
            related[factor.twin] = set().union(*paths) - common | joints & factor.blocks.keys()
    return related


def _pair(
    blocks: dict[str, dict[str, Matrix]],
    a: str,
    f: str,
    carries: dict[str, tuple[str, Transform]],
) -> _Pair:
    """Eliminate an acceleration and its wrench: Schur complement on all coupled variables."""
    of_wrench, of_motion = blocks.pop(a), blocks.pop(f)
    inertia = of_wrench.pop(a, [[0.0] * 6 for _ in range(6)])
    of_wrench.pop(f), of_motion.pop(a)
    if f in of_motion:
        raise SingularError(f, "is coupled to itself: eliminate the bodies before their joints")
    for name in {*of_wrench, *of_motion}:
        blocks[name].pop(a, None)
        blocks[name].pop(f, None)
    carried, carry = carries.pop(f, ("", None))
    pair = _Pair(a, f, inertia, of_wrench, of_motion, carried, carry)
    names = [*dict.fromkeys((*of_motion, *of_wrench))]

    def back(name: str, matrix: Matrix) -> Matrix:
        """Transposed acceleration block of a variable, times a matrix of six rows."""
        if name == carried and carry is not None:
            return transposed(_carry_back(carry, transposed(matrix)))
        return _product(transposed(of_motion[name]), matrix)

    moved = {name: _product(inertia, of_motion[name]) for name in of_motion if name != carried}
    for i, x in enumerate(names):
        for y in names[i:]:
            parts: list[Matrix] = []
            if x in of_motion and y in of_motion:
                if x == y == carried and carry is not None:
                    parts.append(_in_parent(inertia, carry))
                elif x == carried:
                    parts.append(back(x, moved[y]))
                elif y == carried:
                    parts.append(transposed(back(y, moved[x])))
                else:
                    parts.append(_product(transposed(of_motion[x]), moved[y]))
            if x in of_motion and y in of_wrench:
                parts.append(back(x, of_wrench[y]))
            if y in of_motion and x in of_wrench:
                parts.append(transposed(back(y, of_wrench[x])))
            for part in parts:
                _accumulate(blocks, x, y, part)
    for g, (source, _) in list(carries.items()):
        if source == a:
            del carries[g]  # its block is now a product
    return pair


def _same(x: Scalar, y: Scalar) -> bool:
    """True if two scalars are one traced value, or equal constants."""
    return x is y or (type(x) is type(y) is float and x == y)


def _single(blocks: dict[str, dict[str, Matrix]], name: str) -> _Single:
    """Eliminate a joint acceleration or a multiplier by its diagonal block."""
    couplings = blocks.pop(name)
    pivot = couplings.pop(name)
    factors = Factorization(pivot)
    reduced: dict[str, tuple[Matrix, Matrix]] = {}
    for other, block in couplings.items():
        blocks[other].pop(name)
        half = transposed([factors.reduce(column) for column in transposed(block)])
        scaled = [
            [1.0 if len(pivot) == 1 and _same(x, pivot[0][0]) else p * x for x in row]
            for p, row in zip(factors.inverse_pivots, half, strict=True)
        ]
        reduced[other] = half, scaled
    names = list(couplings)
    for i, x in enumerate(names):
        for y in names[i:]:
            before = blocks[x].get(y)
            halves, scales = transposed(reduced[x][1]), transposed(reduced[y][0])
            result = before or [[0.0] * len(scales) for _ in halves]
            rows = [list(row) for row in result]
            for r, left in enumerate(halves):
                for c, right in enumerate(scales):
                    if x == y and c < r:
                        rows[r][c] = rows[c][r]
                        continue
                    for p, s in zip(left, right, strict=True):
                        rows[r][c] = _less(rows[r][c], p, s)
            _store(blocks, x, y, rows)
    return _Single(name, factors, couplings, reduced)


def _less(x: Scalar, p: Scalar, s: Scalar) -> Scalar:
    """x - p s; zero if p is 1 and s is x, as in the pivot's row."""
    if type(p) is float and p == 1.0 and x is s:
        return 0.0
    if type(s) is float and is_zero(s):
        return x
    return x - p * s


# ---- blocks --------------------------------------------------------------------------------------


def _accumulate(blocks: dict[str, dict[str, Matrix]], x: str, y: str, part: Matrix) -> None:
    """Add to the block (x, y) and its mirror; to the upper half of a diagonal block."""
    before = blocks[x].get(y)
    if before is None:
        rows = [list(row) for row in part]
    else:
        rows = [
            added(row, more)
            if x != y
            else [row[c] + more[c] if c >= r else 0.0 for c in range(len(row))]
            for r, (row, more) in enumerate(zip(before, part, strict=True))
        ]
    if x == y:
        for r in range(len(rows)):
            for c in range(r):
                rows[r][c] = rows[c][r]
    _store(blocks, x, y, rows)


def _store(blocks: dict[str, dict[str, Matrix]], x: str, y: str, rows: Matrix) -> None:
    if all(is_zero(z) for row in rows for z in row):
        blocks[x].pop(y, None)
        blocks[y].pop(x, None)
        return
    blocks[x][y] = rows
    if x != y:
        blocks[y][x] = transposed(rows)


def _product(left: Matrix, right: Matrix) -> Matrix:
    columns = transposed(right)
    return [[dot(row, column) for column in columns] for row in left]


def _rows_dot(block: Matrix, x: Sequence[Scalar]) -> list[Scalar]:
    return [dot(row, x) for row in block]


def _columns_dot(block: Matrix, x: Sequence[Scalar]) -> list[Scalar]:
    return [dot(column, x) for column in zip(*block, strict=True)]


def _subtract(x: list[Scalar], y: Sequence[Scalar]) -> None:
    x[:] = subtracted(x, y)


def _carry_back(carry: Transform, columns: Sequence[Sequence[Scalar]]) -> Matrix:
    """Xᵀ times columns, as wrenches."""
    return [list(carry.to_parent(Wrench.of(w)).entries()) for w in columns]


def _in_parent(m: Matrix, carry: Transform) -> Matrix:
    """Xᵀ I X; by ten parameters while the inertia is a rigid body's, with no joint eliminated.

    That is seen from its structure: one mass, and [h]x in the coupling block.
    """
    inertia = _articulated(m)
    b, c = inertia.b, inertia.c
    skew = all(is_zero(b[i][j] + b[j][i]) for i in range(3) for j in range(i, 3))
    scalar = all(is_zero(c[i][j]) for i in range(3) for j in range(3) if i != j) and all(
        is_zero(c[0][0] - c[i][i]) for i in (1, 2)
    )
    if not (skew and scalar):
        return _rows_of(inertia.in_parent(carry))
    rigid = RigidInertia(c[0][0], (b[2][1], b[0][2], b[1][0]), inertia.a).in_parent(carry)
    columns = [rigid * unit for unit in UNIT_MOTIONS]
    return transposed([column.entries() for column in columns])


def _articulated(m: Matrix) -> ArticulatedInertia:
    def part(r: int, c: int) -> Mat:
        rows = [(m[r + i][c], m[r + i][c + 1], m[r + i][c + 2]) for i in range(3)]
        return rows[0], rows[1], rows[2]

    return ArticulatedInertia(part(0, 0), part(0, 3), part(3, 3))


def _rows_of(inertia: ArticulatedInertia) -> Matrix:
    a, b, c = inertia.a, inertia.b, inertia.c
    top = [[*a[i], *b[i]] for i in range(3)]
    return [*top, *([b[0][i], b[1][i], b[2][i], *c[i]] for i in range(3))]


# ---- whole problems ------------------------------------------------------------------------------


def ldlt(
    problem: Problem,
    q: ArrayLike,
    v: ArrayLike,
    values: Mapping[str, ArrayLike] | None = None,
    *,
    order: str | Sequence[str] = "aba",
    refine: int = 1,
) -> Solution:
    """All unknowns of a symmetric problem (without sensors), at states, in any order of variables.

    Arguments as in :meth:`Problem.solve <robomodel.instants.problem.Problem.solve>`; ``order``: a
    classical name or a list. Raises ValueError if the problem is not symmetric.
    """
    chosen = problem.order(order)
    return problem.solve_by(lambda system: solve(system, chosen, refine=refine), q, v, values)


def solve(
    system: System, order: Sequence[str], *, refine: int = 0, bias_first: bool = False
) -> dict[str, list[Scalar]]:
    """All unknowns of a system that is symmetric except for rows that only define torques.

    ``bias_first``: velocities, gravity and external wrenches first give bias forces at zero joint
    acceleration, and the elimination is for the remainder. The composite-rigid-body algorithm is
    used so; ABA's order is cheaper without.
    """
    torque_rows = {f.twin: f for f in system.factors if f.kind == "torque"}
    defined = {v.name: v for v in system.variables if v.kind == "torque"}
    aside = [f"torque[{name[4:-1]}]" for name in defined]
    remaining = System(
        tuple(v for v in system.variables if v.name not in defined),
        tuple(f for f in system.factors if f.name not in aside),
    )
    done = eliminate(remaining, [name for name in order if name not in defined])

    def by_rows(right: list[Scalar]) -> dict[str, list[Scalar]]:
        numbers = iter(right)
        return done.solve(
            {f.twin: [next(numbers) for _ in range(f.rows)] for f in remaining.factors}
        )

    result: dict[str, list[Scalar]] | None = None
    if bias_first:
        start = _bias(remaining)
        solved = done.solve({f.twin: _remaining(f, start) for f in remaining.factors})
        result = {name: added(start.get(name, [0.0] * len(v)), v) for name, v in solved.items()}
    result = refined(remaining, by_rows, refine, result)
    for name in defined:
        factor = torque_rows[f"qdd{name[3:]}"]
        total = list(factor.constant)
        for other, block in factor.blocks.items():
            if other != name:
                total = added(total, _rows_dot(block, result[other]))
        result[name] = total
    return result


def _bias(system: System) -> dict[str, list[Scalar]]:
    """Accelerations and wrenches at zero joint accelerations and multipliers, as in RNEA."""
    result: dict[str, list[Scalar]] = {}
    carries = {f.twin: f.carry for f in system.factors if f.kind == "acceleration"}
    for factor in system.factors:  # from the base outwards, as they were written
        if factor.kind != "acceleration":
            continue
        values = list(factor.constant)
        if factor.carried and factor.carry is not None:
            moved = factor.carry.to_child(Motion.of(result[factor.carried])).entries()
            values = added(moved, values)
        result[f"a{factor.twin[1:]}"] = values
    for factor in reversed(system.factors):
        if factor.kind != "wrench":
            continue
        wrench = f"f{factor.twin[1:]}"
        values = list(factor.constant)
        for name, block in factor.blocks.items():
            if name == wrench or name not in result:
                continue
            carry = carries.get(name)
            part = (
                _rows_dot(block, result[name])
                if carry is None
                else _carry_back(carry, [result[name]])[0]
            )
            values = added(values, part)
        result[wrench] = values
    return result


def _remaining(factor: LinearFactor, values: Mapping[str, Sequence[Scalar]]) -> list[Scalar]:
    """The remaining right-hand side of a factor's rows."""
    if factor.kind in ("acceleration", "wrench"):
        return [0.0] * factor.rows
    total = [-x for x in factor.constant]
    for name, block in factor.blocks.items():
        if name in values:
            _subtract(total, _rows_dot(block, values[name]))
    return total
