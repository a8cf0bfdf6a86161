"""Branches through a change point: a linkage that is drawn where its loops can go on in two ways.

At a change point the conditions φ lose rank: a parallelogram that is drawn flat may go on as one,
or crossed. Motions ẋ of first order are then more than the branches' own. These are where the
second order vanishes, too: uᵀ D²φ(ẋ, ẋ) = 0 for each u with uᵀ K = 0.

A rule takes one branch, the same wherever the file cuts the loop, as it asks how bodies turn and
not which joints are in the tree: that on which the most joints move, then that on which the most
bodies do not turn, then that on which bodies turn the least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robomodel.arrays import Array
from robomodel.mechanism.closure import close
from robomodel.mobility import ClusterProblem, decomposed, outside_limits
from robomodel.tolerances import CLOSED, MOVES, NOTHING, SAME, TINY

SMOOTH = 1e-6  # of the largest second derivative: less on all of a branch's motions is zero
AWAY = (0.1, 0.05, 0.025, 0.0125)  # rad or sizes: how far from the point the branch is taken up


@dataclass(frozen=True)
class Branch:
    """One of the ways on: ``motions`` (columns, mobility), orthonormal in comparable units.

    ``moving`` is the number of joints that move, loop joints too; ``still`` are the links that
    move without turning, and ``turning`` is Σ of the squares of angular velocities of bodies by
    that of joints. ``ahead`` (nq,) is a closed configuration on it within the limits; None if there
    is none.
    """

    motions: Array
    moving: int
    still: tuple[int, ...]
    turning: float
    ahead: Array | None

    def better(self, other: Branch) -> bool:
        """True if the rule takes this one."""
        one, two = ((x.moving, len(x.still)) for x in (self, other))
        # bodies that turn by a thousandth more turn as much
        return one > two or (one == two and self.turning < (1.0 - 1e-3) * other.turning)


def branches_at(problem: ClusterProblem, q: Array, rank: int) -> list[Branch]:
    """The branches through a closed configuration q (nq,), the one that is taken first.

    ``rank``: the generic one of the conditions; where they have it at q, there is one branch, and
    none is returned. Nor is one where branches are not told by second derivatives.
    """
    scaled = problem.conditions(q[None])[1][0]
    left, singular, right = np.linalg.svd(scaled)
    here = int(np.sum(singular > MOVES * max(float(singular[0]), TINY)))
    mobility = scaled.shape[1] - rank
    if here >= rank or not mobility:
        return []
    null = right[here:].T
    second = _second_derivatives(problem, q, left[:, here:], null)
    found: list[Array] = []
    for motions in _tangent_spaces(second, mobility):
        # spaces of motions whose projections differ by less are one
        if all(np.linalg.norm(motions @ motions.T - x @ x.T) > 1e-3 for x in found):
            found.append(motions)
    spaces = [null @ each for each in found]
    branches: list[Branch] = []
    for n, space in enumerate(spaces):
        others = spaces[:n] + spaces[n + 1 :]
        branch = Branch(space, *_turning(problem, q, space), _ahead(problem, q, space, others))
        place = sum(not branch.better(each) for each in branches)
        branches.insert(place, branch)
    return branches


def _second_derivatives(problem: ClusterProblem, q: Array, left: Array, null: Array) -> Array:
    """The forms uᵀ D²φ (forms, d, d) on the motions ``null`` (columns, d), largest entry 1."""
    d = null.shape[1]
    pairs = [(i, j) for i in range(d) for j in range(i + 1)]
    rates = np.array([null[:, i] + s * null[:, j] for i, j in pairs for s in (1.0, -1.0)])
    at = np.broadcast_to(q, (len(rates), len(q)))
    bias = -problem.geometry.evaluate(at, rates * problem.unit)[2] * problem.row_unit
    squares = (bias @ left).reshape(len(pairs), 2, -1)
    forms = np.zeros((left.shape[1], d, d))
    for (i, j), (plus, minus) in zip(pairs, squares, strict=True):
        forms[:, i, j] = forms[:, j, i] = (plus - minus) / 4.0
    size = np.max(np.abs(forms), axis=(1, 2), initial=0.0)
    counts = size > SMOOTH * max(1.0, float(np.max(size, initial=0.0)))
    result: Array = forms[counts] / size[counts, None, None]
    return result


def _tangent_spaces(forms: Array, mobility: int) -> list[Array]:
    """Spaces (d, mobility) on which all forms vanish, by Newton's method from many directions."""
    rng = np.random.default_rng(20240609)
    d = forms.shape[1]
    spaces = []
    # Newton's method looks for motions of second order from many directions
    for start in rng.standard_normal((64, d)):
        x = start / np.linalg.norm(start)
        for _ in range(30):  # steps of Newton's method, at most
            slopes = forms @ x
            step = np.linalg.pinv(slopes, rcond=SAME) @ (0.5 * slopes @ x)
            x = (x - step) / np.linalg.norm(x - step)
            if np.linalg.norm(step) < NOTHING:
                break
        slopes = forms @ x
        if np.max(np.abs(slopes @ x), initial=0.0) > SAME:
            continue
        _, singular, right = np.linalg.svd(slopes)
        space = right[int(np.sum(singular > SMOOTH)) :].T
        if space.shape[1] != mobility:
            continue
        if np.max(np.abs(space.T @ forms @ space), initial=0.0) <= SMOOTH:
            spaces.append(space)
    return spaces


def _turning(
    problem: ClusterProblem, q: Array, motions: Array
) -> tuple[int, tuple[int, ...], float]:
    """The numbers of :class:`Branch` for motions (columns, mobility) at q."""
    geometry = problem.geometry
    size = problem.unit[:, None] * motions
    rotations: list[Array] = []
    rates: list[Array] = []
    relative: list[Array] = []
    for link in geometry.links:
        step = np.array(link.transform(q.tolist()).matrix(), dtype=float)
        before = link.parent >= 0
        rotation = rotations[link.parent] @ step if before else step
        axes = np.array([each.angular for each in link.joint.subspace], dtype=float).T
        slides = np.array([each.linear for each in link.joint.subspace], dtype=float).T
        own = rotation @ axes @ size[link.velocities]
        along = rotation @ slides @ size[link.velocities] / problem.scale
        rotations.append(rotation)
        rates.append(rates[link.parent] + own if before else own)
        relative.append(np.concatenate([own, along]))
    zero = np.zeros((3, motions.shape[1]))
    for loop in geometry.loop_joints:
        ends = [rates[e.body] if e.body >= 0 else zero for e in (loop.predecessor, loop.successor)]
        relative.append(ends[1] - ends[0])
    still = tuple(i for i, each in enumerate(rates) if np.linalg.norm(each) <= MOVES)
    moving = sum(float(np.linalg.norm(each)) > MOVES for each in relative)
    joints = np.concatenate(relative)
    by_joints = np.concatenate(rates) @ np.linalg.pinv(joints)
    return moving, still, float(np.sum(by_joints**2))


def _ahead(problem: ClusterProblem, q: Array, motions: Array, others: list[Array]) -> Array | None:
    """A closed configuration (nq,) a little along a branch, within the limits.

    Where there is a choice, the first joint that moves goes up.
    """
    geometry = problem.geometry
    away = motions
    for other in others:  # off the other branches, near which the linkage is singular
        rest = away - other @ (other.T @ away)
        away = away @ np.linalg.svd(rest)[2].T
    ways = []
    for way in away.T:
        up = float(np.sign(way[int(np.argmax(np.abs(way) > MOVES))]))
        ways += [up * way, -up * way]
    for share in AWAY:
        for way in ways:
            step = share / float(np.max(np.abs(way))) * way
            guess = geometry.integrate(q[None], step[None] * problem.unit)
            there, gap = close(geometry, guess, rank=problem.tolerance.rank)
            if gap[0] > CLOSED * max(1.0, problem.scale) or outside_limits(problem, there, q)[0]:
                continue
            moved = geometry.difference(q[None], there)[0] / problem.unit
            sizes = float(np.linalg.norm(moved) * np.linalg.norm(step))
            mobility = len(moved) - decomposed(problem, problem.conditions(there)[1])[1][0]
            # the cosine between motions at the point and where the branch is taken up
            if moved @ step > 0.9 * sizes and mobility == motions.shape[1]:
                result: Array = there[0]
                return result
    return None
