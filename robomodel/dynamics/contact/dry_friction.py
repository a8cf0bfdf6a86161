"""Dry friction of a coordinate as a row of the contact problem, with bounds that follow its speed.

Forwards friction resists with at most f, backwards with at most r, both and e more at rest, of
which e exp(-(w/w_s)²) is left at the speed w. So the force on the coordinate is in [-f - e, r + e],
which is a constant force (r - f)/2, the :attr:`~DryFriction.shift`, and one of magnitude
at most (f + r)/2 + e. Scalars of any kind.
"""

from __future__ import annotations

from dataclasses import dataclass

from robomodel.dynamics.contact.problem import magnitude
from robomodel.model.elements import NO_LAW, FrictionLaw
from robomodel.scalars import Scalar, div, is_number, is_zero, maximum, minimum, select, value_of

# the exponential function: beyond the last exponent nothing is left (exp(-64) is 2e-28); halved so
# often exponents are at most 1/2, where so many terms of the series leave 2e-17
EXP_LAST, EXP_HALVINGS, EXP_TERMS = 64.0, 7, 14


@dataclass(frozen=True, slots=True)
class DryFriction:
    """Dry friction with its law: ``friction`` forwards, and what ``law`` says beside it."""

    friction: Scalar
    law: FrictionLaw = NO_LAW

    def __bool__(self) -> bool:
        return not is_zero(self.friction) or self.law.dry

    @property
    def shift(self) -> Scalar:
        """The constant force by which friction is stronger forwards, or less strong."""
        return 0.5 * self.law.friction

    def bound(self, begun: Scalar, ahead: Scalar) -> Scalar:
        """The greatest magnitude of the rest at a speed within a step.

        Args:
            begun: The rate at the beginning of the step; zero if the coordinate sticks.
            ahead: By how much it is expected to change until the middle of the step.
        """
        law = self.law
        mean = self.friction if is_zero(law.friction) else self.friction + self.shift
        if is_zero(law.excess):
            return mean
        if is_zero(law.velocity):  # at rest, or where the rate is zero within the step
            turns = begun * (begun + 2.0 * ahead)
            left: Scalar = select(-magnitude(begun), select(turns, 1.0, 0.0), 1.0)
        else:
            share = div(begun + select(-magnitude(begun), ahead, 0.0), law.velocity)
            left = decay(share * share)
        bound = mean + law.excess * left
        if is_number(law.excess) and value_of(law.excess) >= 0.0:
            return bound
        return maximum(bound, magnitude(self.shift))  # neither direction drives


def decay(x: Scalar) -> Scalar:
    """exp(-x) of x >= 0."""
    part = minimum(x, EXP_LAST) * 0.5**EXP_HALVINGS
    result: Scalar = 1.0
    for n in range(EXP_TERMS, 0, -1):
        result = 1.0 - (part * (1.0 / n)) * result
    for _ in range(EXP_HALVINGS):
        result = result * result
    return result
