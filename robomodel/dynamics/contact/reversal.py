"""Steps in which dry friction turns round: a part before the rate is zero, and a part after.

Friction has one direction in a step of time stepping, so that a rate that reverses within it would
be off by the time since times the jump of the acceleration: first order. The first part ends where
the first such rate is zero, with all rows sliding on as they began; the second one is the contact
problem of the rest of the step, from there, with the same G. Contacts and stops have one impulse
for the whole step. A rate that reverses later within the step keeps one direction in the second
part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from robomodel.dynamics.contact.problem import JAMMED, TINY_SINGLE, ContactProblem, magnitude
from robomodel.scalars import Scalar, Vector, div, dot, minimum, select

SLIDING_PASSES = 2  # over the meshes that slide on; they begin from the solution of the whole step
STILL = 1e-9  # share of the largest b up to which a rate is zero
P = TypeVar("P", bound=ContactProblem)


@dataclass(frozen=True)
class Reversal:
    """The part of a step before the first rate of dry friction turns round.

    ``share`` of the step, 0 if none does; ``slide``: impulses of dry friction and meshes with which
    all slide on over the whole step.
    """

    share: Scalar
    slide: list[Scalar]

    @staticmethod
    def first(
        problem: ContactProblem, before: Vector, x: Vector, size: Scalar, struck: Scalar = 0.0
    ) -> Reversal:
        """The first reversal.

        Args:
            problem: That of the whole step.
            before: Rates of dry friction and meshes at the beginning; zero where they stick.
            x: Impulses that solve the problem.
            size: The largest b.
            struck: Negative if something collides: the step then is no motion in parts.
        """
        rows = problem.rows
        at, first = rows.unmeshed, rows.size - len(before)
        rests = [magnitude(rate) - STILL * size for rate in before]  # negative where it does
        slide = list(x)
        for j, bound in enumerate(problem.bounds, first):
            rate = before[j - first]
            slide[j] = select(rests[j - first], x[j], select(rate, bound, -bound))
        for n in range(SLIDING_PASSES * rows.meshes):
            assert problem.meshes is not None
            j = at + n % rows.meshes
            low, high = problem.meshes.alone(j - at, j, slide)
            force = select(before[j - first], high, low)
            kept = select(JAMMED - magnitude(force), -1.0, rests[j - first])
            slide[j] = select(kept, x[j], force)
            if n >= (SLIDING_PASSES - 1) * rows.meshes:
                rests[j - first] = kept
        share: Scalar = 1.0
        ends = problem.y(slide, range(first, rows.size))
        for rate, kept, end in zip(before, rests, ends, strict=True):
            away, ahead = magnitude(rate), select(rate, -end, end)  # negative if it turns round
            part = div(away, away - minimum(ahead, 0.0) + TINY_SINGLE)
            share = select(kept, share, select(ahead, minimum(part, share), share))
        share = select(struck, 0.0, select(share - 1.0, share, 0.0))
        return Reversal(share, slide[first:])

    def rest(self, problem: P) -> P:
        """The problem after the first part; x of contacts and stops is that of the whole step."""
        rows, left = problem.rows, 1.0 - self.share
        first = rows.size - len(self.slide)
        early = [self.share * x for x in self.slide]
        b = [y + dot(row[first:], early) for y, row in zip(problem.b, problem.matrix, strict=True)]
        meshes = problem.meshes
        if meshes is not None:
            slopes = [[*(left * k for k in row[:first]), *row[first:]] for row in meshes.slopes]
            free, bearing = ([left * x for x in each] for each in (meshes.free, meshes.bearing))
            meshes = replace(meshes, slopes=slopes, free=free, bearing=bearing)
        bounds = [left * each for each in problem.bounds]
        return replace(problem, b=b, bounds=bounds, meshes=meshes)

    def start(self, x: Vector) -> list[Scalar]:
        """Impulses from which to solve :meth:`rest`, by those of the whole step."""
        first = len(x) - len(self.slide)
        return [*x[:first], *((1.0 - self.share) * each for each in x[first:])]

    def joined(self, rest: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """Impulses of the whole step by those of the rest; and early ones.

        Early ones are those whose effect is to be added to the mean of the velocities at both ends:
        ½ share (``slide`` - x), which act before.
        """
        first = len(rest) - len(self.slide)
        late = rest[first:]
        x = [b + self.share * a for a, b in zip(self.slide, late, strict=True)]
        half = 0.5 * self.share
        early = [half * (a - b) for a, b in zip(self.slide, x, strict=True)]
        return [*rest[:first], *x], [*([0.0] * first), *early]
