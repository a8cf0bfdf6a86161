"""Rollouts: many motions at once under given forces, the loop over time inside the kernel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from robomodel.dynamics.actuators.saturation import saturated
from robomodel.dynamics.recursions import orthonormal
from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.passive import passive_force
from robomodel.dynamics.recursions.reduced import reduced
from robomodel.errors import as_real, warn
from robomodel.kernels import Iteration
from robomodel.kernels.function import Build, as_dtype
from robomodel.kernels.precision import Dtype
from robomodel.kernels.threads import share
from robomodel.model.arguments import as_array
from robomodel.model.closure import CLOSED
from robomodel.model.configurations.traced import rates, settled
from robomodel.model.constraints import LoopConstraint, Rows
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.model.variants.charts import own_chart
from robomodel.motion.ground import Ground, Point, touching_points
from robomodel.motion.integrator_functions import Function, function, openness
from robomodel.scalars import Scalar, Vector, add, added, div, dot, moved, mul, neg, select, sub
from robomodel.trajectory.rollouts.charts import TURN, Motions, Told, drop_open, tell_of_turns
from robomodel.trajectory.rollouts.contact import Contacts
from robomodel.trajectory.rollouts.contact import step as time_step
from robomodel.trajectory.simulation import implicit
from robomodel.trajectory.simulation.charts import GOOD, View, squared_norm, turned_out
from robomodel.trajectory.simulation.limits import warn_of_starts_beyond
from robomodel.trajectory.simulation.runs import stepped
from robomodel.trajectory.simulation.starts import ROUNDED, closed_start, in_single_precision
from robomodel.trajectory.simulation.step_terms import Forces, named, steps_by_impulses
from robomodel.trajectory.simulation.stepping import TimeStepping
from robomodel.trajectory.simulation.trajectory import Trajectory

Method: TypeAlias = Literal["rk4", "semi_implicit_euler", "time_stepping"]
METHODS = ("rk4", "semi_implicit_euler", "time_stepping")
UNSOLVED = {"float64": 1e-6, "float32": 1e-3}  # contact residual from which on a motion is told of
OPEN = {"float64": CLOSED, "float32": ROUNDED}  # gap of loops from which on a motion is lost


class Rollout(NamedTuple):
    """Motions with what was between them and the ground.

    Attributes:
        q: Configurations (..., T+1, nq).
        v: Velocities (..., T+1, nv).
        contact_forces: Mean forces over each step (..., T, k, 3) [N], in world axes.
        contact_residual: What each step's contact equations fail by (..., T), relative to the
            velocities in them.
    """

    q: Array
    v: Array
    contact_forces: Array
    contact_residual: Array


def rollout(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    step: float,
    method: Method | None = None,
    *,
    passive: bool = True,
    friction: bool = True,
    ground: Ground | None = None,
    contacts: Sequence[Point] | None = None,
    stops: bool | Iterable[str] = False,
    saturate: bool = False,
    sweeps: int = 8,
    details: bool = False,
    closing: int = 2,
    threads: int = 1,
    backend: Literal["numpy", "compiled"] = "compiled",
    dtype: DTypeLike = "float64",
) -> tuple[Array, ...]:
    """Motions from (q, v) under ``tau``: the whole loop over time is one compiled program.

    Row k of ``tau`` acts, without change, from time k · ``step`` to the next; row 0 of the results
    is the start. ``q``, ``v`` and ``tau`` broadcast. Each step ends with quaternions of unit length
    and loops closed. Without ``details`` motions in which residuals of contact exceed 1e-6 (1e-3 in
    "float32") are told of by a RuntimeWarning.

    Motions in which independent joints come to rest, or nearly so, while a linkage moves on go on
    in others, as in :func:`robomodel.simulate`, in the kernel of their chart (but not with
    ``saturate``); those past which a linkage rushes so fast that its G still changes by more than
    half in a step are told of by a RuntimeWarning. Over change points they are led by
    :func:`robomodel.simulate`'s steps. One whose loops do not close because ``step`` is too long,
    or that comes to a singular position with ``saturate``, or to a change point in "float32" or
    backwards in time, is not-a-number from there on, for itself alone, with a RuntimeWarning; one
    that starts from numbers that are not finite is so from the start.

    Args:
        model: The robot.
        q: Configurations (..., nq) at the start.
        v: Velocities (..., nv) at the start.
        tau: Forces (..., T, nv).
        step: Time between rows [s].
        method: "rk4" (fourth order), "semi_implicit_euler" (first order; v, then q with the new v,
            and implicit in springs and dampers, which holds however stiff they are), or
            "time_stepping", as of :func:`robomodel.simulate`, the default where a ground, stops or
            dry friction take part. Elsewhere it is "rk4", or, where springs or dampers at the start
            are too stiff for that with this ``step``, "semi_implicit_euler".
        passive: The file's springs and damping act.
        friction: The file's dry friction acts.
        ground: A level plane that the points of ``contacts`` stand on.
        contacts: As of :func:`robomodel.simulate`, but no function.
        stops: Joints (True: all) that do not leave their position limits.
        saturate: Motors give of ``tau`` what they can at each instant (:func:`robomodel.saturate`).
        sweeps: How many sweeps of its contact equations every step of "time_stepping" does, from
            the last step's impulses on.
        details: The result is a :class:`Rollout`, with contact forces and the residuals of their
            equations.
        closing: Steps of Newton's that close the loops after each step.
        threads: They spread the batch (0: one for each processor); results do not depend on them.
        backend: "compiled", a kernel made at the first call, or "numpy".
        dtype: Of the results, and of all arithmetic; in "float32" vectors hold twice as many
            motions, and loops close to 1e-6 or so.

    Returns:
        motion: q (..., T+1, nq) and v (..., T+1, nv); with ``details`` a :class:`Rollout`.

    Raises:
        ValueError: The loops of ``q`` are open or its quaternions not of unit length (close them
            with :meth:`Model.close`); by more than 1e-4 where ``q`` or ``dtype`` is float32, of
            which rounding is taken out.
    """
    if method not in (None, *METHODS):
        known = ", ".join(f"'{name}'" for name in METHODS)
        raise ValueError(f"method '{method}' is not known; known are {known}")
    touching = _contacts(model, ground, contacts, Forces(passive, friction, named(model, stops)),
                         sweeps, method)  # fmt: skip
    if backend not in ("numpy", "compiled"):
        raise ValueError(f"backend '{backend}' is not known; 'numpy' and 'compiled' are")
    number = as_dtype(dtype)
    step = as_real(step, "step")
    if not math.isfinite(step):
        raise ValueError(f"step must be a number of seconds, got {step!r}")
    if touching is not None and step <= 0.0:
        raise ValueError(f"time stepping goes forward: step must be positive, got {step!r}")
    if not isinstance(closing, int | np.integer) or closing < 1:
        raise ValueError(f"closing must be at least one step of Newton's, got {closing!r}")
    at, speed = as_array(q, model.nq, "q", "nq"), as_array(v, model.nv, "v", "nv")
    force = as_array(tau, model.nv, "tau", "nv")
    if force.ndim < 2:
        raise ValueError(f"tau needs an axis of time, (..., T, nv), got shape {force.shape}")
    at = closed_start(model, at, number == "float32" or in_single_precision(q), backend)
    if touching is not None:
        warn_of_starts_beyond(model, touching.forces.stops, at)
    try:
        batch = np.broadcast_shapes(at.shape[:-1], speed.shape[:-1], force.shape[:-2])
    except ValueError:
        raise ValueError(
            f"batch axes do not broadcast: q {at.shape}, v {speed.shape}, tau {force.shape}"
        ) from None
    nq, nv, times = model.nq, model.nv, force.shape[-2]
    if touching is not None:
        method = "time_stepping"
    elif method is None:
        stiff = passive and implicit.too_stiff(model, at, step)
        method = "semi_implicit_euler" if stiff else "rk4"
    how: Method = method

    def program(view: View) -> Function:
        made = steps(view, how, closing, touching, passive, bool(saturate), number)
        return function(made.model, made.name, made.sizes, made.build, iteration=made.iteration,
                        backend=backend, dtype=number)  # fmt: skip

    run = program(View.of(model))
    states = np.empty((*batch, times + 1, run.sizes[-1]), number)
    states[..., 0, :nq], states[..., 0, nq : nq + nv] = at, speed
    states[..., 0, nq + nv : run.sizes[0]] = 0.0
    if model.nodes and times:
        force = np.broadcast_to(force.astype(number), (*batch, times, nv))
        _spread(run, states, force, float(step), threads)
    positions, velocities = states[..., :nq], states[..., nq : nq + nv]
    if any(isinstance(c.constraint, LoopConstraint) for c in model.clusters) and times:
        told = _told(model, states, run.sizes[0], backend)
        if (np.any(told.opened) or np.any(told.long)) and not saturate:

            def led(q: Array, v: Array, tau: Array) -> Trajectory:
                forces = Forces(passive, friction, named(model, stops))
                points = [] if touching is None else touching.points
                by = None
                if touching is not None:
                    by = TimeStepping(View.of(model), ground, points, None, forces)
                return stepped(model, q, v, tau, step, how, passive=passive, stepping=by)

            motions = Motions(
                model,
                float(step),
                program,
                lambda run, states, force: _spread(run, states, force, float(step), threads),
                lambda model, states, first: _told(model, states, first, backend),
                led if step > 0.0 and number == "float64" else None,
                0 if touching is None else touching.memory(model) - nv,
                0 if touching is None else 1 + 3 * len(touching.points),
            )
            rows, whole = states.reshape(-1, *states.shape[-2:]), force.reshape(-1, times, nv)
            told = motions.go_on(rows, whole, told.of_motions(len(rows))).of_motions(*batch)
        if np.any(told.turned):
            tell_of_turns(model, times, told)
        if np.any(told.opened):
            drop_open(model, states, times, told.opened)
    if touching is None:
        if details:
            return Rollout(positions, velocities, np.zeros((*batch, times, 0, 3), number),
                           np.zeros((*batch, times), number))  # fmt: skip
        return positions, velocities
    k = len(touching.points)
    last = states.shape[-1] - 3 * k
    residual = states[..., 1:, last - 1]
    if details:
        forces = states[..., 1:, last:].reshape(*batch, times, k, 3) / step
        return Rollout(positions, velocities, forces, residual)
    unsolved = UNSOLVED[number]
    bad = int(np.count_nonzero(np.any(residual > unsolved, axis=-1)))
    if bad:
        warn(
            RuntimeWarning(
                f"the contacts of {bad} of {residual[..., 0].size} motions of '{model.name}' are "
                f"not solved to {unsolved:g} in every step (worst {np.nanmax(residual):.1g}); take "
                "more sweeps, or details=True to see which"
            )
        )
    return positions, velocities


def _contacts(
    model: Model,
    ground: Ground | None,
    points: Sequence[Point] | None,
    forces: Forces,
    sweeps: int,
    method: Method | None,
) -> Contacts | None:
    """What makes a rollout step in impulses, if anything does; ValueError where it cannot be."""
    if not steps_by_impulses(model, ground, points, forces, method):
        return None
    if not isinstance(sweeps, int | np.integer) or sweeps < 1:
        raise ValueError(f"sweeps must be one or more, a whole number, got {sweeps!r}")
    if callable(points):
        raise ValueError("rollouts touch the ground only; simulate takes a function for contacts")
    at = touching_points(model, ground, points)
    if ground is not None and np.ndim(ground.height):
        raise ValueError("rollouts stand on a level plane; simulate takes heights on a grid")
    plane = ground or Ground()
    height = float(np.asarray(plane.height)) if ground is not None else 0.0
    against = [plane.against(point) for point in at]
    friction, restitution = (tuple(each[n] for each in against) for n in (0, 1))
    return Contacts(tuple(at), friction, restitution, height, forces, int(sweeps))


# stage by stage: the share of a step at which it stands, its weight, whether it is the first, the
# last, of a step
RUNGE_KUTTA = (
    (0.0, 1 / 6, 1.0, 0.0),
    (0.5, 1 / 3, 0.0, 0.0),
    (0.5, 1 / 3, 0.0, 0.0),
    (1.0, 1 / 6, 0.0, 1.0),
)


@dataclass(frozen=True)
class Steps:
    """What a rollout repeats, on whatever machine: a function as of :func:`function`."""

    model: Model
    name: str
    sizes: tuple[int, ...]
    build: Build
    iteration: Iteration


def steps(
    view: View,
    method: str,
    closing: int,
    touching: Contacts | None,
    passive: bool,
    saturate: bool,
    dtype: Dtype,
) -> Steps:
    """(state, tau at each instant, step) → the state after it, and what tells of its loops.

    That is, where there are any, the sum of the squares of the gaps *before* the step, and the size
    of G before it, which is negative where the determinant of a system of dependent velocities
    changed its sign in the step.
    """
    own, model = view.own, view.model
    nq, nv = model.nq, model.nv
    shapes = [
        (len(block.columns), len(block.rows))
        for cluster in model.clusters
        if isinstance(cluster.constraint, LoopConstraint)
        for block in cluster.constraint.blocks
    ]
    entries = sum(m * n for m, n in shapes)
    loops = bool(shapes)

    def told(known: Vector, systems: Sequence[Rows]) -> list[Scalar]:
        """What tells of the loops, with what is known from before the step: gap, G and systems."""
        if not loops:
            return []
        gap, norm, at = known[0], known[1], 2
        size = norm
        for (n, m), after in zip(shapes, systems, strict=True):
            before = [known[at + i * n : at + (i + 1) * n] for i in range(m)]
            size = select(neg(_alike(before, after)), size, neg(norm))
            at += m * n
        return [gap, size]

    def given(q: Vector, v: Vector, tau: Vector) -> Vector:
        if saturate:
            return saturated(model, q, v, tau)[0]
        if view.is_own:
            return tau
        return [dot(column, tau) for column in zip(*turned_out(own, model, q), strict=True)]

    def accelerations(q: Vector, v: Vector, tau: Vector) -> list[Scalar]:
        tau = given(q, v, tau)
        if passive:
            tau = added(tau, passive_force(model, q, v))
        forward = aba if dtype == "float64" else orthonormal.aba
        return forward(reduced(model, "aba"), q, v, tau)

    def euler(state: Vector, tau: Vector, step: Vector) -> list[Scalar]:
        q, v = list(state[:nq]), list(state[nq:])
        if passive and implicit.is_sprung(model):
            a = implicit.acceleration(model, q, v, given(q, v, tau), step[0])
        else:
            a = accelerations(q, v, tau)
        v1 = moved(v, step[0], a)
        q1, _, systems = settled(model, moved(q, step[0], rates(model, q, v1)), closing)
        return [*q1, *v1, *told(_loops(model, q), systems)]

    def impulsive(state: Vector, tau: Vector, step: Vector) -> list[Scalar]:
        assert touching is not None
        q, v, memory = list(state[:nq]), list(state[nq : nq + nv]), list(state[nq + nv :])
        made = time_step(model, (q, v, given(q, v, tau)), step[0], memory, touching, closing)
        checks = told(_loops(model, q), made.systems)
        return [*made.q, *made.v, *made.memory, *checks, made.residual, *made.impulses]

    def stage(
        state: Vector, tau: Vector, step: Vector, carried: Vector, row: Vector
    ) -> list[Scalar]:
        """One of four; the state moves at the last one, and is settled, again and again, at all."""
        share, weight, first, last = row
        q, v = list(state[:nq]), list(state[nq:])
        slope, total = carried[: nq + nv], carried[nq + nv : 2 * (nq + nv)]
        h = share * step[0]
        at, speed = moved(q, h, slope[:nq]), moved(v, h, slope[nq:])
        slope = [*rates(model, at, speed), *accelerations(at, speed, tau)]
        total = moved([mul(1.0 - first, x) for x in total], weight, slope)
        end = last * step[0]
        q1, gap, systems = settled(model, moved(q, end, total[:nq]), closing)
        v1 = moved(v, end, total[nq:])
        here: list[Scalar] = []
        if loops:
            entries_ = (x for matrix in systems for r in matrix for x in r)
            here = [gap, squared_norm(model, at), *entries_]
        known = [
            add(x, mul(first, sub(y, x)))
            for x, y in zip(carried[2 * (nq + nv) :], here, strict=True)
        ]
        return [*q1, *v1, *told(known, systems), *slope, *total, *known]

    sizes: tuple[int, ...] = (nq + nv, nv, 1, nq + nv + 2 * loops)
    if method == "rk4":
        carried = 2 * (nq + nv) + (2 + entries if loops else 0)
        build: Build = stage
        iteration = Iteration((1,), RUNGE_KUTTA, carried)
    elif touching is None:
        build, iteration = euler, Iteration((1,))
    else:
        memory = touching.memory(model)
        size = sizes[-1] + memory + 1 + 3 * len(touching.points)
        sizes = (nq + nv + memory, nv, 1, size)
        build, iteration = impulsive, Iteration((1,))
    name = f"rollout {method} {closing} {passive} {saturate} {touching!r}"
    if not view.is_own:
        name += f" seen from {own_chart(own)!r}"
    return Steps(model, name, sizes, build, iteration)


def _loops(model: Model, q: Vector) -> list[Scalar]:
    """Σ of the squares of the gaps, the size of G, the systems of dependent velocities, flat."""
    found = [
        cluster.constraint.closing(q[cluster.q])
        for cluster in model.clusters
        if isinstance(cluster.constraint, LoopConstraint)
    ]
    gaps = [x for closing in found for x in closing.gaps]
    systems = [m for closing in found for m, _ in closing.systems]
    entries = [x for matrix in systems for row in matrix for x in row]
    return [dot(gaps, gaps), squared_norm(model, q), *entries]


def _alike(a: Rows, b: Rows) -> Scalar:
    """det(aᵀ b): positive where a and b differ by little, not where a singularity is in between.

    Of matrices that are alike aᵀ b is nearly symmetric and positive: no pivots need be sought.
    """
    columns = list(zip(*b, strict=True))
    work = [[dot(x, y) for y in columns] for x in zip(*a, strict=True)]
    result: Scalar = 1.0
    for k, row in enumerate(work):
        result = mul(result, row[k])
        for other in work[k + 1 :]:
            factor = div(other[k], row[k])
            other[k + 1 :] = [
                sub(x, mul(factor, y)) for x, y in zip(other[k + 1 :], row[k + 1 :], strict=True)
            ]
    return result


def _spread(run: Function, states: Array, force: Array, step: float, threads: int) -> None:
    """Iterate over all motions, some on each thread."""
    size = run.sizes[0]
    rows = states.reshape(-1, *states.shape[-2:])  # a view: states are new, without gaps
    forces = force.reshape(-1, *force.shape[-2:]) if force.ndim > 2 else force[None]
    length = np.array([step], states.dtype)

    def part(piece: slice) -> None:
        run(rows[piece, 0, :size], forces[piece], length, out=rows[piece, 1:])

    share(part, len(rows), threads)


def _told(model: Model, states: Array, first: int, backend: str) -> Told:
    """What the kernel tells of the loops in its states (..., T+1, size)."""
    limit = OPEN[states.dtype.name] ** 2
    gaps, norm = np.moveaxis(states[..., 1:, first : first + 2], -1, 0).copy()  # of rows before
    opened, long, turned = (np.zeros(states.shape[:-1], bool) for _ in range(3))
    with np.errstate(invalid="ignore", over="ignore"):  # nearly always all is well with all
        last = openness(model, backend)(states[..., -1, : model.nq].astype(float))
        opened[..., -1:] = ~(last <= limit)
        if not gaps.max(initial=0.0) <= limit:
            opened[..., :-1] |= ~(gaps <= limit)
        if not norm.min(initial=1.0) > 0.0:
            opened[..., 1:] |= ~(norm > 0.0)
            norm = np.abs(norm)
        least, greatest = norm.min(initial=np.inf), norm.max(initial=0.0)
        if not greatest <= 1.0 / GOOD**2:
            long[..., :-1] = norm > 1.0 / GOOD**2
        if not greatest <= TURN**2 * least:
            less, more = norm[..., :-1], norm[..., 1:]
            turned[..., :-2] = (more > TURN**2 * less) | (less > TURN**2 * more)
    return Told(opened, long, turned)
