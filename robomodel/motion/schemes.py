"""The steps of motions, each written once over scalars of any kind.

A step begins at a state in tangent coordinates, whose bases are the chart of the whole step
(``here``, the model in it), and ends in the same chart; :mod:`robomodel.motion.layout` renews the
bases. q are all positions, z the velocities, h the length.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from robomodel.dynamics.kinematics.state import State
from robomodel.model.configurations.closing import rates_of_joints
from robomodel.model.configurations.functions import rates
from robomodel.model.model import Model
from robomodel.motion.implicit import acceleration, is_sprung
from robomodel.motion.plant import Moving, Plant
from robomodel.motion.tangent import linkages
from robomodel.motion.time_stepping import (
    M,
    Outcome,
    StepTerms,
    corrected,
    in_sequence,
    mean_velocity,
    remembered,
    strikes,
    travelled,
)
from robomodel.scalars import Scalar, Vector, advanced, dot, maximum, select

# for each stage: its share of the step, its weight, whether it is the first, whether the last
RUNGE_KUTTA = (
    (0.0, 1 / 6, 1.0, 0.0),
    (0.5, 1 / 3, 0.0, 0.0),
    (0.5, 1 / 3, 0.0, 0.0),
    (1.0, 1 / 6, 0.0, 1.0),
)

# growth of ‖G‖² that a step is too long for: tangents turn by 0.6, of which rk4 misses 0.6⁵/120
TORN = 1.0 / math.cos(0.6) ** 2


class End(NamedTuple):
    """The end of a step: closed positions and velocities in the chart of the step."""

    here: Model
    q: list[Scalar]
    z: list[Scalar]


def stage_point(start: Moving, h: Scalar, carried: Vector, row: Vector) -> tuple[Vector, Vector]:
    """q and z at which a stage of Runge and Kutta's method evaluates rates."""
    n, part = len(start.q), row[0] * h
    return (
        advanced(start.q, part, carried[:n]),
        advanced(start.z, part, carried[n : n + len(start.z)]),
    )


def runge_kutta_stage(
    plant: Plant, start: Moving, h: Scalar, tau: Vector, wrenches: Vector, carried: Vector,
    row: Vector,
) -> tuple[End, list[Scalar]]:  # fmt: skip
    """One of four stages of the classical method; the last one moves the state.

    ``carried``: the slope of the stage before, and the weighted sum of all so far, which follow the
    end. ``row``: of :data:`RUNGE_KUTTA`.
    """
    _, weight, first, last = row
    n = len(start.q)
    here = plant.chart(start.bases)
    total = carried[n + len(start.z) :]
    q, z = stage_point(start, h, carried, row)
    if plant.careful:
        q = plant.closed(here, q)
    v = plant.velocities(here, q, z) if plant.saturate or plant.servo else []
    slope = [*rates(here, q, z), *plant.accelerations(here, q, v, z, tau, wrenches)]
    total = advanced([(1.0 - first) * x for x in total], weight, slope)
    end = last * h
    q = plant.closed(here, advanced(start.q, end, total[:n]))
    return End(here, q, advanced(start.z, end, total[n:])), [*slope, *total]


def semi_implicit_euler(
    plant: Plant, start: Moving, h: Scalar, v: Vector, tau: Vector, wrenches: Vector
) -> End:
    """z first, then q with the new z; implicit in springs and dampers."""
    here = plant.chart(start.bases)
    if plant.passive and is_sprung(plant.model):
        acting = plant.acting(here, start.q, v, tau)
        a = acceleration(here, start.q, start.z, acting, h, plant.wrenches(wrenches))
    else:
        a = plant.accelerations(here, start.q, v, start.z, tau, wrenches)
    z = advanced(start.z, h, a)
    along = rates(here, start.q, z)
    q, bias = advanced(start.q, h, along), State(here, start.q, (), start.z).bias
    for each in linkages(plant.model):  # along their curves: z stays, and gaps are of order h³
        cluster = here.clusters[each.index]
        bend = rates_of_joints(here, cluster, start.q[cluster.q], bias[cluster.spanning_v])
        way, half = along[cluster.q], 0.5 * h
        # followed along its curve from where its tangent turns by 0.6
        turned = half * half * dot(bend, bend) - 0.3**2 * dot(way, way)
        q[cluster.q] = advanced(q[cluster.q], select(turned, half * h, 0.0), bend)
    return End(here, plant.closed(here, q), z)


def time_step(step: StepTerms[M]) -> Outcome[M]:
    """A step with impulses of contact, stops and dry friction, on velocities.

    The equations are those of :mod:`robomodel.motion.time_stepping`, about the middle of the step,
    which the acceleration in the step before predicts. With linkages, whose G varies, a second pass
    has a better middle.
    """
    impulses, slips = list(step.memory.impulses), list(step.memory.slips)
    terms = step.assembled(None)
    solved = step.solved(terms, impulses, slips, step.passes == 1)
    for n in range(1, step.passes):
        terms = step.assembled(mean_velocity(terms, solved))
        solved = step.solved(terms, solved.impulses, solved.slips, n == step.passes - 1)
    impulses, slips, residual, _ = solved
    after, mean = terms.after(impulses), mean_velocity(terms, solved)
    closing = [impulses[n] for n in terms.normals]
    struck = strikes(closing, terms.collides)
    travel = travelled(terms.middle, after, mean, struck)
    there = step.moved(terms.middle, travel)
    correction, miss = corrected(terms, there, travel, impulses)
    miss = maximum(in_sequence(closing, terms.gaps, terms.collides), miss)
    end = there.ended(after, correction)
    memory = remembered(terms, impulses, slips, after, mean, struck)
    return Outcome(end, memory, terms, impulses, mean, miss, residual)
