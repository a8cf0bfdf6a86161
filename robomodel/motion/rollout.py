"""Rollouts: many motions at once under given forces, with the loop over time in the kernel."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.errors import as_flag, few, warn
from robomodel.kernels.threads import TILE, share
from robomodel.model.arguments import as_array
from robomodel.model.model import Model
from robomodel.model.parameters import of_geometry
from robomodel.motion import servo as servos
from robomodel.motion.change_points import Lead
from robomodel.motion.halves import StepShare, Wanted, halving
from robomodel.motion.inputs import Inputs
from robomodel.motion.limits import (
    LimitMargins,
    closed_start,
    in_single_precision,
    warn_of_starts_beyond,
)
from robomodel.motion.options import (
    BATCH_DEFAULTS,
    DEFAULTS,
    KERNELS,
    BatchOptions,
    BatchSetup,
    Method,
    MotionSetup,
    as_dynamics,
    check_step,
    completed,
)
from robomodel.motion.stepping import Grid, Steps
from robomodel.motion.steps import FixedStep
from robomodel.motion.tangent import UNDETERMINED_MOTION, StepError, linkages

# contact residual from which on there is a RuntimeWarning: single precision leaves more
UNSOLVED = {"float64": 1e-6, "float32": 1e-3}
LONGEST_CALL = 2048  # most steps that a call of the kernel takes: Python hears Ctrl-C between calls
CACHED = 1 << 20  # bytes of rows between checks, so that they stay in the processor's cache
TOO_FAST = 1.0 / 3.0  # growth of ‖G‖² within a step above which a linkage turns too fast for it


@dataclass(frozen=True, eq=False)
class Rollout:
    """Motions that :func:`robomodel.rollout` has computed.

    ``q, v = rollout(…)`` and ``rollout(…)[0]``, which were all that it returned, warn and go in
    0.5.

    Attributes:
        model: The robot.
        method: The integrator.
        times: Times (T+1,) of the states [s], from 0 on.
        q: Configurations (..., T+1, nq).
        v: Velocities (..., T+1, nv).
        contact_forces: Mean forces over each step (..., T, k, 3) [N], in world axes: on the points,
            then on the first links of pairs of spheres and capsules, as in
            :attr:`robomodel.motion.Trajectory.contact_pairs`. No rows (k = 0) where nothing
            touches.
        contact_residual: Residual (..., T) of each step's contact equations, relative to the
            velocities in them; zero without.
    """

    model: Model
    method: str
    times: Array
    q: Array
    v: Array
    contact_forces: Array
    contact_residual: Array
    _items: int = field(default=2, repr=False)

    def __repr__(self) -> str:
        return (
            f"<Rollout of '{self.model.name}' by {self.method}: {self.v[..., 0, 0].size} motions, "
            f"{len(self.times)} states, 0 to {self.times[-1]:.6g} s>"
        )

    def __iter__(self) -> Iterator[Array]:
        return iter(self._former)

    def __getitem__(self, index: Any) -> Any:
        return self._former[index]

    def __len__(self) -> int:
        return len(self._former)

    @property
    def _former(self) -> tuple[Array, ...]:
        """The tuple that a rollout was until 0.3."""
        warn(
            DeprecationWarning(
                "a rollout is one object: take its q, v, contact_forces and contact_residual by "
                "name; as a tuple it goes in 0.5"
            )
        )
        every = self.q, self.v, self.contact_forces, self.contact_residual
        return every[: self._items]


def rollout(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    step: float,
    *former: Method,
    details: bool | None = None,
    **options: Unpack[BatchOptions],
) -> Rollout:
    """Motions from (q, v) under ``tau``, with the whole loop over time in one compiled program.

    Row k of ``tau`` acts unchanged from time k · ``step`` to the next; row 0 of the results is the
    start. ``q``, ``v`` and ``tau`` broadcast. The steps are those of :func:`robomodel.simulate`:
    quaternions have unit length after each, and loops are closed.

    Linkages move in tangent coordinates, which pass dead points of their independent joints. Steps
    over a change point, where branches of a motion cross, end beyond it. A RuntimeWarning tells if
    linkages turn by so much within a step that it is too long for them. A motion whose loops do not
    close because ``step`` is too long, or that comes to a change point backwards in time, is
    not-a-number from there on, with a RuntimeWarning; other motions are not affected. One that
    starts from numbers that are not finite, or at a dead point where v does not determine the
    motion, is not-a-number from the start.

    Contact problems that sweeps have not solved to 1e-11 of the velocities in them are passed to
    Newton's method, then to an interior-point method ("float64" only). A RuntimeWarning tells of
    motions whose residuals still exceed 1e-6 (1e-3 in "float32").

    Args:
        model: The robot.
        q: Configurations (..., nq) at the start.
        v: Velocities (..., nv) at the start.
        tau: Forces (..., T, nv).
        step: Time between rows [s]. A negative one leads backwards in time.
        *former: The method without its name, which warns and goes in 0.5.
        details: Without effect, as the result always has them; it warns and goes in 0.5.
        **options: What all motions share, :class:`robomodel.motion.BatchOptions`: ``method``,
            ``passive``, ``friction``, ``ground``, ``contacts``, ``collisions``, ``stops``,
            ``stop_restitution``, ``saturate``, ``parameters``, ``closing``, ``sweeps``,
            ``threads``, ``backend``, ``dtype``.

    Returns:
        motions: The states over time, contact forces and the residuals of their equations.

    Raises:
        ValueError: The loops of ``q`` are open or its quaternions not of unit length (close them
            with :meth:`Model.close`); by more than 1e-4 where ``q`` or ``dtype`` is float32, of
            which rounding is taken out. Parameters that are not finite.
        UnknownNameError: A name that is no parameter's.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> motions = rm.rollout(model, q, [1.0], np.zeros((10, 1)), step=1e-3)
        >>> motions.q.shape, motions.v.shape
        ((11, 3), (11, 1))
    """
    given = completed("rollout", options, {**DEFAULTS, **BATCH_DEFAULTS}, ("step", "tau"))
    items = _warn_of_former(given, former, details)
    names, p = as_dynamics(model, given["parameters"])
    setup = MotionSetup.of(model, KERNELS, given, parameters=names)
    batched = BatchSetup.of(given)
    number, backend = batched.dtype, batched.backend
    step = check_step(step, setup.method)
    at, speed = as_array(q, model.nq, "q", "nq"), as_array(v, model.nv, "v", "nv")
    force = as_array(tau, model.nv, "tau", "nv")
    if force.ndim < 2:
        raise ValueError(f"tau needs an axis of time, (..., T, nv), got shape {force.shape}")
    single = number == "float32" or in_single_precision(q)
    at = closed_start(
        model,
        at,
        single,
        backend,
        {name: p[..., names.index(name)] for name in of_geometry(model, names)},
    )
    try:
        batch = np.broadcast_shapes(at.shape[:-1], speed.shape[:-1], force.shape[:-2], p.shape[:-1])
    except ValueError:
        raise ValueError(
            f"batch axes do not broadcast: q {at.shape}, v {speed.shape}, tau {force.shape}"
            + (f", parameters {few(names)} {p.shape[:-1]}" if names else "")
        ) from None
    nq, nv, times = model.nq, model.nv, force.shape[-2]
    one = setup.fixed_step(
        setup.compiled_method(at, step, p), saturate=setup.saturate, dtype=number, backend=backend
    )
    rows = np.empty((*batch, times + 1, one.layout.results), number)
    flat = rows.reshape(math.prod(batch), times + 1, one.layout.results)
    if setup.impulses:
        warn_of_starts_beyond(one.family.robots(p), setup.acting.stops, at)
    start, begin = one.start(at, speed, p)
    size = one.layout.size
    rows[..., 0, :size], rows[..., 0, size:] = start, 0.0
    unclear = np.broadcast_to(begin.determined <= UNDETERMINED_MOTION, batch).reshape(-1)
    lost = unclear & np.any(flat[:, 0, nq : nq + nv] != 0.0, axis=-1)
    flat[lost, 0, nq : nq + nv] = np.nan
    if model.nodes and times:
        force = np.broadcast_to(force.astype(number), (*batch, times, nv)).reshape(-1, times, nv)
        with np.errstate(all="ignore"):
            run_over_time(one, flat, force, float(step), batched.threads, {}, *one.values(p, batch))
        if linkages(model):
            _tell(one, flat)
    if one.setting is None:
        residual = np.zeros((*batch, times), number)
        forces = np.zeros((*batch, times, 0, 3), number)
    else:
        residual = rows[..., 1:, one.layout.residual]
        forces = one.places.forces(rows[..., 1:, one.layout.impulses], step)
        _tell_unsolved(model, residual, UNSOLVED[number])
    return Rollout(
        model, one.method, step * np.arange(times + 1), rows[..., :nq], rows[..., nq : nq + nv],
        forces, residual, items,
    )  # fmt: skip


def _warn_of_former(given: dict[str, Any], former: tuple[Method, ...], details: bool | None) -> int:
    """Warn of the ways of 0.3 to call a rollout; how many items it had as a tuple."""
    if len(former) > 1:
        raise TypeError(f"rollout() takes (model, q, v, tau, step) by position, got {former} more")
    if former:
        (given["method"],) = former
        warn(DeprecationWarning(f"write method={former[0]!r}: without its name it goes in 0.5"))
    if details is None:
        return 2
    as_flag(details, "details")
    warn(DeprecationWarning("a rollout always has its details: details= goes in 0.5"))
    return 4 if details else 2


def _tell_unsolved(model: Model, residual: Array, limit: float) -> None:
    """Warn (RuntimeWarning) if residuals (..., T) exceed a limit."""
    bad = int(np.count_nonzero(np.any(residual > limit, axis=-1)))
    if bad:
        warn(
            RuntimeWarning(
                f"the contacts of {bad} of {residual[..., 0].size} motions of '{model.name}' are "
                f"not solved to {limit:g} in every step (worst {np.nanmax(residual):.1g}): "
                "contact_residual says which"
            )
        )


def run_over_time(
    step: FixedStep, rows: Array, force: Array, h: float, threads: int,
    ahead: dict[int, Lead], *more: Array, done: Callable[[Any], object] | None = None,
) -> None:  # fmt: skip
    """All steps of motions (n, T+1, results) from their first rows, under forces (n, T, …).

    The compiled program takes as many steps as it can. Where it leaves one unfinished, or opens
    loops, the motion continues from there step by step. So one call of T steps equals T calls of
    one. ``ahead``: motions that a step has led beyond its end, by their indices. ``more``: values
    of the parameters (n, p), if the step has some. ``done`` is called for motions whose rows are
    computed, while these are in the cache, and again where they have changed.
    """
    times, layout = rows.shape[1] - 1, step.layout
    # every 64 steps, contact problems that the kernel has not solved are looked for
    size = 64 if step.rows.size else min(max(times, 1), LONGEST_CALL)
    stop = threading.Event()
    if step.setting is not None and step.setting.planes:
        size = 1  # the planes that points touch change from step to step
    length = np.array([h], rows.dtype)
    for first in range(0, times, size):
        last = min(first + size, times)
        arguments = [*step.planes(rows[:, first, : layout.size], h, *more), *more]
        left = np.zeros((len(rows), last - first), dtype=bool)

        def part(
            piece: slice, first: int = first, last: int = last, left: Any = left,
            more: Sequence[Array] = arguments,
        ) -> None:  # fmt: skip
            for at in _cached(piece, (last - first) * rows.strides[1]):
                if stop.is_set():
                    return
                results = rows[at, first + 1 : last + 1]
                step.over_time(
                    rows[at, first, : layout.size], force[at, first:last], length,
                    *(x[at] for x in more), out=results,
                )  # fmt: skip
                left[at] = step.checks.unfinished(results) | step.checks.lost(results)
                if done is not None and last == times:
                    done(at)

        share(part, len(rows), threads, stop)
        left[list(ahead), 0] = True
        motions = np.flatnonzero(np.any(left, axis=1))
        if len(motions):
            _go_on(step, rows, force, h, left, (first, last), ahead, more)
            if done is not None and last == times:
                done(motions)


def _cached(piece: slice, size: int) -> Iterator[slice]:
    """Slices of motions whose rows, ``size`` bytes each, fit into the cache."""
    count = max(TILE, CACHED // max(size, 1) // TILE * TILE)  # arrays of no rows have no size
    for first in range(piece.start, piece.stop, count):
        yield slice(first, min(piece.stop, first + count))


def _go_on(
    step: FixedStep, rows: Array, force: Array, h: float, left: Any, times: tuple[int, int],
    ahead: dict[int, Lead], more: Sequence[Array],
) -> None:  # fmt: skip
    """Step motions in Python from where the compiled program has left them unfinished.

    Each goes at its own pace, in steps or parts of them; all that are next are computed together.
    """
    (first, last), layout, checks = times, step.layout, step.checks
    motions = np.flatnonzero(np.any(left, axis=1))
    begins = first + np.argmax(left[motions], axis=1)

    def lead(n: int, t: int, after: Array) -> None:
        one = step
        if step.parameters:  # new values each time would compile a program each time
            robot = step.family.at(more[-1][n].tolist())
            one = replace(step.of(robot), backend="numpy")
        _lead(one, rows[n, t], force[n, t], h, after, ahead, n)

    def motion(n: int, begin: int) -> Generator[Wanted, StepShare, None]:
        for t in range(begin, last):
            if not np.all(np.isfinite(rows[n, t, : layout.size])):
                rows[n, t + 1 : last + 1] = np.nan
                return
            after = checks.joined((yield from halving(rows[n, t, : layout.size], t)))
            if n in ahead or checks.lost(after):
                lead(n, t, after)
            rows[n, t + 1] = after

    running = {
        n: motion(n, begin) for n, begin in zip(motions.tolist(), begins.tolist(), strict=True)
    }
    wanted = {n: each for n in running if (each := next(running[n], None)) is not None}
    while wanted:
        now, (begun, at, shares) = list(wanted), zip(*wanted.values(), strict=True)
        states, lengths, others = np.array(begun), h * np.array(shares), [x[now] for x in more]
        acting = force[now, np.array(at, int)]
        planes = step.planes(states, lengths, *others)
        results = step.whole(states, acting, lengths, *planes, *others)
        for n, part in zip(now, checks.parts(results, shares), strict=True):
            try:
                wanted[n] = running[n].send(part)
            except StopIteration:
                del wanted[n]


def _lead(
    step: FixedStep, before: Array, force: Array, h: float, after: Array, ahead: dict[int, Lead],
    n: int,
) -> None:  # fmt: skip
    """Replace the result of a step by one in parts, or past a change point; nan if neither works.

    In double precision. Checks of linkages stay those of the step as a whole.
    """
    model, plant, layout = step.model, step.plant, step.layout

    def served(_t: float, q: Array, v: Array) -> Array:
        assert plant.servo is not None
        numbers = (x.tolist() for x in (q, v, force))
        return np.array(servos.servo_forces(model, plant.servo, *numbers), dtype=float)

    led = ahead.pop(n, None)
    state = before[: layout.size].astype(float)  # a copy, which a lead keeps
    result = np.full(layout.results, np.nan, after.dtype)
    if h > 0.0 and np.isfinite([*state, *force]).all():
        tau = force if plant.servo is None else served
        inputs = Inputs.of(model, tau, None, hold=False)
        double = replace(step, plant=replace(plant, servo=None), dtype="float64")
        steps = Steps(inputs, LimitMargins(model), double, dtype=step.dtype, lead=led)
        q, v = state[layout.columns.q], state[layout.columns.v]
        try:
            with np.errstate(all="ignore"):
                signals = inputs.during(0, 0.0, q, v)
                moved = steps.advance(signals, 0, Grid(h, h, 1), state)
        except (StepError, ValueError):
            pass
        else:
            result[: layout.size] = moved
            checked = slice(layout.size, layout.residual)
            result[checked] = after[checked]
            if (record := steps.record) is not None:
                result[layout.residual] = record.residual
                result[layout.impulses] = step.places.impulses(record.forces[None], h)[0]
            if steps.lead is not None:
                ahead[n] = steps.lead
    after[:] = result


def _tell(step: FixedStep, rows: Array) -> None:
    """Warn (RuntimeWarning) of motions that are lost, and of linkages that turn too fast."""
    times = rows.shape[1] - 1
    finite: Any = np.isfinite(rows[..., : step.layout.size]).all(axis=-1)
    lost = finite[:, :1] & ~finite
    count = int(np.count_nonzero(lost[:, -1]))
    if count:
        first = int(np.argmax(np.any(lost, axis=0))) - 1
        warn(
            RuntimeWarning(
                f"the loops of {count} of {len(rows)} motions of '{step.model.name}' do not close, "
                f"the first at step {first} of {times}: these are not-a-number from there on; take "
                "shorter steps"
            )
        )
    turned = np.any(rows[:, 1:, step.layout.growth] > 1.0 + TOO_FAST, axis=1)
    if np.any(turned):
        warn(
            RuntimeWarning(
                f"linkages of {int(np.count_nonzero(turned))} of {len(rows)} motions of "
                f"'{step.model.name}' turn by much within a step: take shorter ones"
            )
        )
