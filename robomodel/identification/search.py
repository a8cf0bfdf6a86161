"""The search for a motion that tells much: random ones first, then local minima."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from robomodel.identification.motions import Family, FourierMotion, followed
from robomodel.identification.spaces import split
from robomodel.model.joints import Array, Mask

Criterion: TypeAlias = Literal["condition", "information"]
Cost: TypeAlias = Callable[[Array], Array]

DRAWN = 12  # motions
SHARES = (1.0, 0.6, 0.35, 0.2, 0.1, 0.05)  # of their sizes: the largest that limits allow
JUDGED = 12  # states of a period for each harmonic
PENALTIES = (1e2, 1e4)  # weights of squares beyond limits, one after the other
HALVINGS = 12
CHUNK = 2_000_000  # numbers in regressors at a time
SAME = 1e-7  # radians or metres: two ways to one configuration
STEP = 1e-6  # of differences
TRIED = 0.5 ** np.arange(-1.0, 9.0)  # of the whole step
FAR = 0.3  # of a joint's range: the longest step
SMALL = 1e-4  # a gain that is none
IDLE = 3  # such steps end it
LEAST = 1e-300


@dataclass(frozen=True)
class Scale:
    """How a regressor's rows and columns count: ``levels`` (nv,) of forces, ``basis`` (p, rank).

    Rows @ basis is the regressor of base parameters that are orthonormal combinations of all, in
    units in which each does as much.
    """

    levels: Array
    basis: Array

    @classmethod
    def of(cls, motion: FourierMotion) -> Scale:
        """By motions (m, T): forces' and columns' root mean squares."""
        nv, count = motion.rows.shape[-2:]
        levels = np.sqrt(np.mean(motion.tau**2, axis=(0, 1)))
        levels = np.maximum(levels, 1e-9 * max(float(levels.max(initial=0.0)), 1e-9))
        rows = (motion.rows / levels[:, None]).reshape(-1, count)
        space, _, sizes, _ = split(rows)
        return cls(levels, (space / sizes).T * np.sqrt(len(rows) / nv))

    def singular(self, rows: Array) -> Array:
        """Singular values (m, rank), ascending, of regressors (m, T, nv, p), by √T."""
        scaled = (rows / self.levels[:, None]) @ self.basis
        flat = scaled.reshape(len(rows), -1, self.basis.shape[1])
        gram = np.swapaxes(flat, 1, 2) @ flat / rows.shape[1]
        return np.sqrt(np.maximum(np.linalg.eigvalsh(gram), LEAST))


@dataclass(frozen=True)
class Search:
    """Among motions of a family; ``allowed`` (limits,): the share of each limit that may be used.

    ``middle`` (moved,): the middles of positions' ranges, from where the family is about.
    """

    family: Family
    allowed: Array
    middle: Array
    criterion: Criterion

    @property
    def time(self) -> Array:
        """When motions are judged: within a period."""
        family = self.family
        return np.linspace(0.0, family.period, JUDGED * family.harmonics, endpoint=False)

    def drawn(self, seed: int | np.random.Generator | None) -> Array:
        """Random motions (n, size) within limits, none where they leave none."""
        rng = np.random.default_rng(seed)
        family, count = self.family, len(self.middle)
        sizes = rng.normal(size=(DRAWN, count, family.modes))
        if family.fixed:  # some leave to one side only, as from limits
            side = np.where(self.middle < 0.0, -1.0, 1.0)
            sizes[: DRAWN // 3] = side[:, None] * family.hump
        x = np.einsum("...jk,tk->...jt", sizes, family.shapes(self.time, 0))
        sizes /= 0.5 * np.ptp(x, axis=-1)[..., None]
        sizes *= rng.uniform(0.3, 1.0, (DRAWN, count, 1))
        middle = rng.uniform(0.0, 1.0, (DRAWN, 1)) * self.middle
        middle = middle + rng.uniform(-0.3, 0.3, (DRAWN, count))
        found, worst = np.empty((DRAWN, family.size)), np.full(DRAWN, np.inf)
        for share in SHARES:
            rest = worst > 1.0
            if not rest.any():
                break
            found[rest] = family.centred(middle, share * sizes)[rest]
            worst[rest] = self.worst(family.along(self.time, found[rest]))
        return found[worst <= 1.0]

    def worst(self, motion: FourierMotion) -> Array:
        """Of what is allowed, the largest share (m,) used of any limit; infinite where open."""
        most: Array = np.max(motion.shares / self.allowed, axis=(-2, -1))
        return np.where(np.isnan(most), np.inf, most)

    def scores(self, scale: Scale, rows: Array) -> Array:
        """What is minimised (m,), of regressors (m, T, nv, p)."""
        singular = scale.singular(rows)
        if self.criterion == "condition":
            return np.asarray(np.log(singular[:, -1] / singular[:, 0]))
        return np.asarray(-np.mean(np.log(singular), axis=1))

    def cost(
        self, scale: Scale, numbers: Array, penalty: float, near: FourierMotion | None
    ) -> Array:
        """Scores and the penalty on what is beyond limits (m,); infinite where a loop opens."""
        result = np.full(len(numbers), np.inf)
        states = len(self.time) * len(scale.levels) * len(scale.basis)
        each = max(1, CHUNK // states)
        for first in range(0, len(numbers), each):
            at = slice(first, first + each)
            motion = self.family.along(self.time, numbers[at], near)
            fine: Mask = np.isfinite(self.worst(motion))
            if not fine.any():
                continue
            over = np.maximum(motion.shares[fine] / self.allowed - 1.0, 0.0)
            added = penalty * np.sum(np.mean(over**2, axis=1), axis=1)
            result[at][fine] = self.scores(scale, motion.rows[fine]) + added
        return result

    def descended(
        self, scale: Scale, numbers: Array, steps: int, tell: Callable[[float], None]
    ) -> Array:
        """A local minimum near a motion, which may be beyond limits by a little.

        ``tell`` hears the share of the work that is done.
        """
        near = self.family.along(self.time, numbers)
        done = 0

        def moved(x: Array) -> None:
            nonlocal near, done
            near, done = self.family.along(self.time, x, near), done + 1
            tell(done / (len(PENALTIES) * steps))

        def penalized(penalty: float) -> Cost:
            return lambda x: self.cost(scale, x, penalty, near)

        for penalty in PENALTIES:
            numbers = descend(penalized(penalty), numbers, steps, moved)
        return numbers

    def within(self, numbers: Array, time: Array) -> FourierMotion | None:
        """The motion at these times, made smaller until it is within limits; None if none is."""
        best, low, high = None, 0.0, 1.0
        for n in range(HALVINGS):
            share = high if n == 0 else 0.5 * (low + high)
            motion = self.family.along(time, self.family.shrunk(numbers, share))
            if self.worst(motion) <= 1.0 and self._joined(motion):
                best, low = motion, share
                if n == 0:
                    break
            else:
                high = share
        return best

    def _joined(self, motion: FourierMotion) -> bool:
        """Whether each state follows from the one before on the same branch."""
        model = self.family.model
        far = model.difference(motion.q[:-1], motion.q[1:])
        reached = followed(model, motion.q[:-1], far)
        return bool(np.all(np.abs(reached - motion.q[1:]) <= SAME))


def descend(cost: Cost, x: Array, steps: int, tell: Callable[[Array], None]) -> Array:
    """A local minimum from x (n,) by quasi-Newton steps (BFGS), with slopes by differences.

    ``cost`` of rows (m, n) is (m,): infinite where it is not defined, finite at x. All slopes, and
    all lengths of a step that are tried, are asked for at once. ``tell`` hears of each x.
    """
    n = len(x)
    unit = np.eye(n)
    inverse, fresh, idle = unit, True, 0

    def slope(x: Array) -> tuple[float, Array]:
        found = cost(x + np.concatenate([np.zeros((1, n)), STEP * unit]))
        change = (found[1:] - found[0]) / STEP
        return float(found[0]), np.where(np.isfinite(change), change, 0.0)

    value, gradient = slope(x)
    for _ in range(steps):
        way = -inverse @ gradient
        if not gradient @ way < 0.0:
            inverse, fresh, way = unit, True, -gradient
        longest = float(np.abs(way).max(initial=0.0))
        if longest == 0.0:
            break
        way *= min(1.0, FAR / longest)
        trials = x + TRIED[:, None] * way
        costs = cost(trials)
        best = int(np.argmin(costs))
        if not costs[best] < value:
            if fresh:
                break
            inverse, fresh = unit, True
            continue
        idle = idle + 1 if value - costs[best] < SMALL else 0
        step, before = trials[best] - x, gradient
        x = trials[best]
        tell(x)
        if idle >= IDLE:
            break
        value, gradient = slope(x)
        change = gradient - before
        along = float(step @ change)
        if along > 1e-10 * np.linalg.norm(step) * np.linalg.norm(change):
            if fresh:
                inverse, fresh = unit * (along / float(change @ change)), False
            left = unit - np.outer(step, change) / along
            inverse = left @ inverse @ left.T + np.outer(step, step) / along
    return x
