"""Simulation: one motion, on the configuration manifold, under controllers and external forces."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.errors import as_real
from robomodel.model.arguments import as_array
from robomodel.model.model import Model
from robomodel.model.parameters import with_parameters
from robomodel.motion import implicit
from robomodel.motion.adaptive import FINEST, Adaptive
from robomodel.motion.contact_data import GivenContacts
from robomodel.motion.inputs import Controller, Inputs, Pusher, Wrenches
from robomodel.motion.limits import (
    ADAPTIVE,
    LimitMargins,
    closed_start,
    in_single_precision,
    warn_of_starts_beyond,
)
from robomodel.motion.options import (
    DEFAULTS,
    METHODS,
    MotionOptions,
    MotionSetup,
    completed,
)
from robomodel.motion.phases import Rubbing
from robomodel.motion.plant import Plant
from robomodel.motion.stepping import Grid, Run, Steps, count_steps
from robomodel.motion.steps import FixedStep
from robomodel.motion.trajectory import Trajectory
from robomodel.running import Progress

OWN = (
    "tau", "duration", "step", "f_ext", "hold", "stop_at_limits", "rtol", "atol", "progress",
)  # fmt: skip


def simulate(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    tau: ArrayLike | Controller | None = None,
    duration: float | None = None,
    step: float | None = None,
    f_ext: Wrenches | Pusher | None = None,
    hold: bool = False,
    stop_at_limits: bool | Iterable[str] = False,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    progress: bool = True,
    **options: Unpack[MotionOptions],
) -> Trajectory:
    """The motion from q and v over ``duration``.

    By default the method is "dop853", with steps adapted to ``rtol`` and ``atol``; "radau" if
    dampers are very stiff; "time_stepping" with dry friction, losses in gears, contact or stops, of
    which adaptive methods take the first two. Fixed steps are those of :func:`robomodel.rollout`,
    and 1 ms by default. All methods leave loops closed to rounding.

    Linkages move in tangent coordinates, which pass dead points of independent joints; tau and v
    are always those of the model's independent joints. At a change point, where branches of a
    linkage's motion cross, the motion stays on its branch.

    Args:
        model: The robot.
        q: Configuration (nq,) at the start.
        v: Velocities (nv,) at the start; default at rest.
        tau: Forces (nv,), constant; a row for each step (T, nv), held over it, where ``duration``
            may be left out; or a controller, ``tau(t, q, v)``. Default none. Controllers cannot
            write on q and v. They are called several times a step, at the method's stages, where
            quaternions and loops are exact to the step's truncation only.
        duration: How long the motion lasts [s].
        step: Time between states [s]. Adaptive methods record states at their own steps without it;
            :meth:`Trajectory.at` returns any others.
        f_ext: Link name → wrench (6,) or (T, 6) on that link, moment first, in its own axes; or a
            function of t, q, v that returns such a mapping, in which links may be left out.
        hold: Call controllers once a step, at its beginning, as a digital one is.
        stop_at_limits: End where a joint (any of the tree, or those named) meets its position
            limit; :attr:`Trajectory.stop` names it.
        rtol: Relative tolerance of numbers in q and v, for adaptive methods; at least 2e-14, where
            rounding begins.
        atol: Absolute tolerance.
        progress: Show a bar, on a terminal, if it takes more than a second.
        **options: What all motions share, :class:`robomodel.motion.MotionOptions`: ``method``,
            ``passive``, ``friction``, ``ground``, ``contacts``, ``collisions``, ``stops``,
            ``stop_restitution``, ``saturate``, ``parameters``, ``closing``, ``sweeps``. The
            trajectory has the torques that saturated motors give, and the robot with other
            ``parameters`` (:func:`robomodel.with_parameters`), for which q is closed.

    Returns:
        trajectory: The states over time; after time stepping with contact forces and the residuals
            of their equations.

    Raises:
        UnknownNameError: A name that is no parameter's.
        ValueError: Arguments that do not fit; open loops at q, quaternions that are not of unit
            length; at a dead point, a v that does not determine the linkage's motion.
        SimulationError: The motion cannot be continued: a start at a change point, numbers that are
            not finite, a step that does not converge or leads to another way of closing the loops.
            It has the time, the loops and their condition, and the trajectory up to there.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> motion = rm.simulate(model, q, [1.0], duration=0.1)
        >>> bool(motion.residual.max() < 1e-12)
        True
    """
    every = completed("simulate", options, DEFAULTS, OWN)
    if every["parameters"] is not None:
        model = with_parameters(model, every["parameters"])
    setup = MotionSetup.of(model, METHODS, every, compiled=False)
    chosen, passive = setup.method, setup.acting.passive
    if chosen is None and not model.nv:
        chosen = "rk4"  # adaptive steps have no error to adapt to
    step = None if step is None else as_real(step, "step")
    if step is not None and not (math.isfinite(step) and step > 0.0):
        raise ValueError(f"step must be a positive number of seconds, got {step!r}")
    start = _start(model, q, v)
    warn_of_starts_beyond(model, setup.acting.stops, start[: model.nq])
    inputs = Inputs.of(model, tau, f_ext, hold, setup.saturate)
    tolerances = _tolerances(as_real(rtol, "rtol"), as_real(atol, "atol"))
    if step is None and (chosen not in (None, *ADAPTIVE) or inputs.stepwise):
        step = 1e-3
    duration = None if duration is None else as_real(duration, "duration")
    duration = _duration(duration, step, inputs.rows)
    if chosen is None:
        decay, _ = implicit.rates(model, start[: model.nq]) if passive else (0.0, 0.0)
        chosen = "radau" if duration * decay > implicit.STIFF else "dop853"
    if chosen == "rk4" and passive and step is not None:
        implicit.warn_of_instability(model, [implicit.rates(model, start[: model.nq])], step)
    limits = LimitMargins.of(model, stop_at_limits, start)
    run: Run
    if chosen in ADAPTIVE:
        one = FixedStep(Plant(model, passive=passive), chosen)
        rubbing = Rubbing.of(model, setup.acting)
        run = Adaptive(inputs, limits, one, every=step, tolerances=tolerances, rubbing=rubbing)
        grid = Grid.of((duration if step is None or not inputs.stepwise else step) or 1.0, duration)
    else:
        assert step is not None
        given = None if setup.touching is None else GivenContacts(model, setup.touching)
        run = Steps(inputs, limits, setup.fixed_step(chosen), given=given)
        grid = Grid.of(step, duration)
    with Progress("simulate", duration, progress) as bar, np.errstate(all="ignore"):
        run.bar = bar
        return run.run(start, grid)


def _start(model: Model, q: ArrayLike, v: ArrayLike | None) -> Array:
    at = as_array(q, model.nq, "q", "nq")
    speed = np.zeros(model.nv) if v is None else as_array(v, model.nv, "v", "nv")
    if at.ndim != 1 or speed.ndim != 1:
        raise ValueError(
            f"simulate takes one state, got q {at.shape} and v {speed.shape}; rollout takes batches"
        )
    if not (np.all(np.isfinite(at)) and np.all(np.isfinite(speed))):
        raise ValueError("q and v must be finite")
    at = closed_start(model, at, in_single_precision(q))
    return np.concatenate([at, speed])


def _tolerances(rtol: float, atol: float) -> tuple[float, float]:
    """Tolerances that the adaptive method can keep: no relative error below rounding."""
    if not (math.isfinite(atol) and atol > 0.0):
        raise ValueError(
            f"atol must be a positive number, got {atol!r}: numbers that are zero have no other "
            "tolerance"
        )
    if not (math.isfinite(rtol) and rtol >= 0.0):
        raise ValueError(f"rtol must be a number from 0 on, got {rtol!r}")
    return max(rtol, FINEST), atol


def _duration(duration: float | None, step: float | None, rows: int | None) -> float:
    """The duration; raises ValueError if it disagrees with the number of rows of inputs."""
    if rows is None:
        if duration is None or not (math.isfinite(duration) and duration >= 0.0):
            raise ValueError(f"duration must be a number of seconds, got {duration!r}")
        return float(duration)
    assert step is not None
    if duration is not None and count_steps(duration, step) != rows:
        raise ValueError(
            f"{rows} rows of tau or f_ext are not for the {count_steps(duration, step)} steps of "
            f"{step:g} s in {duration:g} s"
        )
    return rows * step if duration is None else float(duration)
