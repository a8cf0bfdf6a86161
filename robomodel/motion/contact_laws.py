"""The laws of contacts and stops over a step: which velocities their rows shall have at its end.

Signorini's and Coulomb's laws with b of :mod:`robomodel.dynamics.contact.problem`: a contact may
close within the step, but no further; one that collides rebounds; a compliant one is a spring and a
damper; a sticking one has static friction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from robomodel.dynamics.contact.gauss_seidel import wedged, within_reach
from robomodel.dynamics.contact.problem import APART, magnitude
from robomodel.model.model import Model
from robomodel.motion.contact_rows import GapRows, Memory
from robomodel.motion.ground import ContactLaw
from robomodel.scalars import (
    Scalar,
    Vector,
    div,
    dot,
    maximum,
    minimum,
    select,
    sqrt,
    subtracted,
)

# A block of 3 kg that tumbles, slides to rest or breaks loose moves the same to 1e-10 m with a
# third and three times each of these; one that begins 4 mm deep to 1e-8 m if TAKES_PART is more
# than that.
TAKES_PART = 0.01  # m (rad at joints): contacts predicted to end farther apart are left out
COLLIDES_WITH = 1e-5  # m: contacts with smaller gaps collide together with others
# rad²: square of the angle by which a compliant contact swings in a step, up to which the step
# resolves it: it rebounds with 0.97 (undamped) and 0.16 (critically damped, 0.135 right) then
RESOLVED = 0.25
# with z the damping ratio, exp(-2 z arccos(z) / √(1 - z²)) of the velocity is left when the force
# of a spring and a damper is zero again: (1 + a z)/(1 + b z + c z² + d z³), off by at most 3.2e-5
REBOUND = (0.40550012, math.pi + 0.40550012, 4.2151172, 4.0 * 0.40550012)
IMMOVABLE = 1e-20  # 1/kg: trace of a contact's block of G up to which impulses cannot move it


class LawTerms(NamedTuple):
    """Terms of the laws in the rows that keep distances, in their order.

    ``slow``: velocities besides those by z; ``collides``: negative if a row collides; b, and
    ``plain`` b without restitution; friction of the contacts; ``size`` of the velocities in b.
    """

    slow: list[Scalar]
    collides: list[Scalar]
    b: list[Scalar]
    plain: list[Scalar]
    friction: list[Scalar]
    size: Scalar


def contact_laws(
    model: Model,
    h: Scalar,
    a: Vector,
    free: Vector,
    memory: Memory,
    gaps: Sequence[GapRows],
    delassus: list[list[Scalar]],
) -> LawTerms:
    """The laws of contacts and stops over a step; G (``delassus``) gets what they add to it.

    Args:
        model: The robot.
        h: The step's length.
        a: z of u at the middle.
        free: z⁺ without impulses.
        memory: Data of the step before.
        gaps: The rows.
        delassus: G of all rows.
    """
    weight = dot(model.gravity, model.gravity)
    slowest = 2.0 * select(-weight, sqrt(weight), 9.81) * h
    since = div(h, h + memory.length[0])  # share of the time between middles after the last step
    size: Scalar = 1e-12
    slow: list[Scalar] = []
    collides: list[Scalar] = []
    b: list[Scalar] = []
    plain: list[Scalar] = []
    friction: list[Scalar] = []
    for each in gaps:
        at, law = slice(len(b), len(b) + len(each.rows)), each.law
        last = at.stop - 1
        trace: Scalar = 0.0
        for i in range(at.start, at.stop):
            trace = trace + delassus[i][i]
        moves = IMMOVABLE - trace  # negative if impulses move it
        for i in range(at.start, at.stop):
            delassus[i][i] = delassus[i][i] + select(moves, 0.0, 1.0)
        block = [line[at] for line in delassus[at]]
        still = [-(w + v) for w, v in zip(each.leaving, each.surface, strict=True)]
        speeds = [
            dot(row, a) + w - v
            for row, w, v in zip(each.rows, each.leaving, each.surface, strict=True)
        ]
        change: list[Scalar] = [0.0] * len(speeds)
        if not each.jumps:  # the row turns as it did since the step before
            change = [since * x for x in subtracted(speeds, memory.rates[at])]
        if each.axes:
            change = within_reach(block, change)
        acted = -memory.impulses[last]
        turned = [select(acted, x, 0.0) for x in change]
        *across, closing = subtracted(speeds, turned)  # at the beginning of the step
        *tangents, ahead = [
            dot(row, free) + (x + y) for row, x, y in zip(each.rows, turned, still, strict=True)
        ]
        closes = each.gap + h * ahead
        rebound: Scalar = law.restitution
        bends: Scalar = 0.0
        if law.stiffness is None:
            keeps = div(maximum(each.gap, 0.0), h)
            collides.append(maximum(closes, closing + slowest))
        else:
            force = _compliance(law, h, block[-1][-1], each.gap, closing)
            bends = div(1.0, force.slope)
            keeps = bends * force.rest
            collides.append(maximum(maximum(closes, closing + slowest), force.resolved))
            rebound = force.rebound
        beta, mu = keeps, law.friction
        if law.static_friction is not mu:
            slip = dot(across, across) - 1e-4**2  # m/s: slower contacts have static friction
            mu = select(slip, law.static_friction, mu)
        if law.rebounds:
            rebounds = rebound * closing + slowest
            back = rebound * closing - minimum(ahead - closing, 0.0)
            bends = select(closes, select(rebounds, 0.0, bends), bends)
            beta = select(closes, select(rebounds, back, beta), beta)
            if each.axes:
                slick = select(wedged(block, mu), 0.0, mu)
                mu = select(closes, select(rebounds, slick, mu), mu)
        if law.stiffness is not None:
            delassus[last][last] = delassus[last][last] + bends
        if each.axes:
            friction.append(mu)
        far = minimum(TAKES_PART - closes, -moves)  # or without effect
        for x in (*tangents, ahead + beta):
            size = maximum(select(far, 0.0, magnitude(x)), size)
        slow += still
        b += [*tangents, select(far, APART, ahead + beta)]
        plain += [*tangents, select(far, APART, ahead + keeps)]
    return LawTerms(slow, collides, b, plain, friction, size)


@dataclass(frozen=True, slots=True)
class _Compliance:
    """The impulse - slope · v⁺ - rest of a compliant contact, v⁺ its velocity at the end.

    ``resolved``: negative if the step is too long for its oscillation; ``rebound``: the share of
    its velocity that it rebounds with then, unless it was in the ground before the step; else 0.
    """

    slope: Scalar
    rest: Scalar
    resolved: Scalar
    rebound: Scalar


def _compliance(
    law: ContactLaw, h: Scalar, inverse: Scalar, gap: Scalar, closing: Scalar
) -> _Compliance:
    """The compliance of a contact with this gap and velocity at the beginning of the step.

    ``inverse``: of the inertia that the contact moves, 1/m. In a step that resolves its oscillation
    the spring acts by its mean force, and the damper such that alone it leaves 1/(1 + r + r²/2) of
    the velocity, with r = h damping/m: to second order exp(-r), and positive for all r. In longer
    steps both act by the end. Of an open gap what is left of the way counts.
    """
    assert law.stiffness is not None
    push, stretch, open_ = h * law.stiffness, h * (h * law.stiffness), maximum(gap, 0.0)
    resolved = RESOLVED - stretch * inverse
    slope = 0.25 * stretch
    rest = 0.5 * push * (gap + minimum(gap, 0.0)) + slope * closing
    late, late_rest = stretch, push * gap
    rebound: Scalar = 1.0
    if law.damping:
        drag, away = h * law.damping, law.damping * open_
        r = drag * inverse
        end = drag * div(1.0 + r, 2.0 + r)
        slope, rest = slope + end, rest + (drag - end) * closing + away
        late, late_rest = late + drag, late_rest + away
        z = 0.5 * law.damping / math.sqrt(law.stiffness) * sqrt(inverse)
        a, b, c, d = REBOUND
        rebound = div(1.0 + a * z, 1.0 + z * (b + z * (c + d * z)))
    touches = select(gap + COLLIDES_WITH, 0.0, rebound)
    return _Compliance(
        select(resolved, late, slope), select(resolved, late_rest, rest), resolved,
        select(resolved, touches, 0.0),
    )  # fmt: skip
