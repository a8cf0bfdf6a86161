"""Simulation: one motion, on the configuration manifold, under controllers and external forces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.errors import as_real
from robomodel.model.arguments import as_array
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.motion import implicit
from robomodel.motion.adaptive import METHODS as ADAPTIVE
from robomodel.motion.adaptive import Adaptive
from robomodel.motion.collision import Collisions, between_links
from robomodel.motion.forces import Acting, method_of, named
from robomodel.motion.ground import Contacts, Ground, Point, as_grounds, touching_points
from robomodel.motion.inputs import Controller, Inputs, Pusher, Wrenches
from robomodel.motion.limits import Limits, closed_start, in_single_precision, warn_of_starts_beyond
from robomodel.motion.run import Grid, Run, count_steps
from robomodel.motion.stepping import Steps
from robomodel.motion.steps import FixedStep, on_ground
from robomodel.motion.trajectory import Trajectory
from robomodel.running import Progress

Method: TypeAlias = Literal[
    "rk4", "dop853", "radau", "semi_implicit_euler", "variational", "time_stepping"
]

METHODS = (*ADAPTIVE, "rk4", "semi_implicit_euler", "variational", "time_stepping")
STEP = 1e-3
CLOSING = 2  # steps of Newton's method that close loops after a step
FINEST = 100.0 * float(np.finfo(float).eps)  # relative tolerance, as SciPy has it


def simulate(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    tau: ArrayLike | Controller | None = None,
    duration: float | None = None,
    step: float | None = None,
    method: Method | None = None,
    f_ext: Wrenches | Pusher | None = None,
    hold: bool = False,
    passive: bool = True,
    friction: bool = True,
    ground: Ground | Sequence[Ground] | None = None,
    contacts: Sequence[Point] | Contacts | None = None,
    collisions: Collisions = False,
    stops: bool | Iterable[str] = False,
    stop_restitution: float = 0.0,
    saturate: bool = False,
    stop_at_limits: bool | Iterable[str] = False,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    progress: bool = True,
) -> Trajectory:
    """The motion from q and v over ``duration``.

    The methods:

    * "time_stepping": velocities and impulses (:mod:`robomodel.motion.time_stepping`), so that
      contacts, stops and dry friction stick and slip exactly; of second order between collisions,
      of first in these. Springs act by the trapezoidal rule, which keeps their energy, dampers are
      implicit, so that none is too stiff for ``step`` (default 1 ms). Contact forces and the
      residuals of their equations are in the trajectory. It is the default where dry friction,
      contact or stops take part, which need it;
    * "dop853": Dormand and Prince's eighth order with steps adapted to ``rtol`` and ``atol``.
      States are kept every ``step``, without it at the method's own steps, and
      :meth:`Trajectory.at` gives any others;
    * "radau": fifth order, implicit, with steps adapted as those of "dop853": however stiff dampers
      are, steps are as long as the motion is smooth. It is the default where the file's dampers
      would make "dop853" take more than ten thousand or so;
    * "rk4": fourth order, steps of ``step`` (default 1 ms);
    * "variational": second order, implicit, symplectic: the error of energy stays bounded however
      long the motion is;
    * "semi_implicit_euler": first order; implicit in the file's springs and dampers.

    All of them leave loops closed to rounding. Steps of "rk4", "semi_implicit_euler" and
    "time_stepping" are those of :func:`robomodel.rollout`. Linkages are moved in tangent
    coordinates, which pass dead points of independent joints; tau and v are those of the model's
    independent joints everywhere. Through change points, where branches of a linkage's motion
    cross, a motion keeps to its branch.

    Args:
        model: The robot.
        q: Configuration (nq,) at the start.
        v: Velocities (nv,) at the start; default at rest.
        tau: Forces (nv,), constant; a row for each step (T, nv), held over it, where ``duration``
            may be left out; or a controller, ``tau(t, q, v)``. Default none. Controllers see q and
            v and cannot write on them. They are asked several times a step, at the method's stages,
            where quaternions and loops are exact to the step's truncation only.
        duration: How long the motion lasts [s].
        step: Time between states [s].
        method: One of those above.
        f_ext: Link name → wrench (6,) or (T, 6) on that link, moment first, in its own axes, or a
            function of t, q, v that gives such a mapping; links that it does not name feel nothing.
        hold: Ask controllers once a step, at its beginning, as a digital one is.
        passive: The file's springs and damping act.
        friction: The dry friction of the file's joints acts.
        ground: What ``contacts`` stand on and push against; several are a list.
        contacts: Points of the robot: links, (link, offset), or (link, offset, radius) for spheres;
            default :func:`robomodel.contact_points`. Or a function of q and v that gives
            :class:`robomodel.Contact` pairs.
        collisions: Links whose convex collision shapes touch each other: True, or pairs of links.
            Links that a joint ties do not collide unless they are named. Shapes other than spheres
            and capsules need the extra ``collision``. Friction and restitution are the ground's,
            0.8 and 0 without one.
        stops: Joints (True: all) that do not leave their position limits, dependent ones too.
        stop_restitution: How they rebound from these.
        saturate: Motors give of tau what their effort limits, torque-speed curves and velocity
            limits leave them, through gears and linkages, see :func:`robomodel.saturate`; the
            trajectory has the torques that act, and which actuators are saturated. Without it
            limits act only if ``tau`` keeps them.
        stop_at_limits: End where a joint (any of the tree, or those named) meets its position
            limit; :attr:`Trajectory.stop` says which.
        rtol: Of numbers in q and v, for adaptive methods; one below 2e-14 is taken as that, where
            rounding begins.
        atol: The same, absolute.
        progress: Show a bar, on a terminal, where it takes more than a second.

    Returns:
        trajectory: The states over time.

    Raises:
        ValueError: Arguments that do not fit, loops open at q and quaternions that are not of unit
            length included; a v that does not say how a linkage moves that stands at a dead point.
        SimulationError: The motion cannot be continued: a start at a change point, numbers that are
            not finite, a step that does not converge or leads over to another way to close the
            loops. It names the time, the loops and their condition, and holds the trajectory up to
            there.
    """
    acting = Acting(passive, friction, named(model, stops))
    chosen = method_of(model, acting, ground, contacts, collisions, method, METHODS)
    impulses = chosen == "time_stepping"
    if impulses:
        one, touching = _with_contacts(
            model, as_grounds(ground), contacts, collisions, acting, stop_restitution
        )
    if chosen is None and not model.nv:
        chosen = "rk4"  # adapted steps have nothing to go by
    step = None if step is None else as_real(step, "step")
    if step is not None and not (math.isfinite(step) and step > 0.0):
        raise ValueError(f"step must be a positive number of seconds, got {step!r}")
    start = _start(model, q, v)
    warn_of_starts_beyond(model, acting.stops, start[: model.nq])
    inputs = Inputs.of(model, tau, f_ext, hold, saturate)
    tolerances = _tolerances(as_real(rtol, "rtol"), as_real(atol, "atol"))
    if step is None and (chosen not in (None, *ADAPTIVE) or inputs.stepwise):
        step = STEP
    duration = None if duration is None else as_real(duration, "duration")
    duration = _duration(duration, step, inputs.rows)
    if chosen is None:
        decay, _ = implicit.rates(model, start[: model.nq]) if passive else (0.0, 0.0)
        chosen = "radau" if duration * decay > implicit.MANY else "dop853"
    if chosen == "rk4" and passive and step is not None:
        implicit.warn_of_instability(model, start[: model.nq], step)
    limits = Limits.of(model, stop_at_limits, start)
    run: Run
    if chosen in ADAPTIVE:
        one = FixedStep(model, chosen, passive=passive)
        run = Adaptive(inputs, limits, one, step, tolerances)
        grid = Grid.of((duration if step is None or not inputs.stepwise else step) or 1.0, duration)
    else:
        assert step is not None
        if not impulses:
            one, touching = FixedStep(model, chosen, CLOSING, passive=passive), None
        run = Steps(inputs, limits, one, touching)
        grid = Grid.of(step, duration)
    with Progress("simulate", duration, progress) as bar, np.errstate(all="ignore"):
        return run.run(start, grid, bar)


def _with_contacts(
    model: Model,
    grounds: Sequence[Ground],
    contacts: Sequence[Point] | Contacts | None,
    collisions: Collisions,
    acting: Acting,
    restitution: float,
) -> tuple[FixedStep, Contacts | None]:
    """Time steps with contacts, and the function that gives further ones."""
    if not 0.0 <= as_real(restitution, "stop_restitution") <= 1.0:
        raise ValueError(f"stop_restitution is from 0 to 1, got {restitution!r}")
    given = contacts if callable(contacts) else None
    plane = grounds[0] if grounds else Ground()
    rounds, collider = between_links(model, collisions, plane.friction, plane.restitution)
    points = []
    if not callable(contacts) and (grounds or contacts is not None):
        points = touching_points(model, grounds, contacts)
    setting = on_ground(acting, grounds, points, rounds=rounds, stop_restitution=float(restitution))
    touching = _both(collider, given) if collider and given else collider or given
    return FixedStep(model, "time_stepping", setting=setting, grounds=tuple(grounds)), touching


def _both(first: Contacts, second: Contacts) -> Contacts:
    return lambda q, v: [*first(q, v), *second(q, v)]


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
    """What the adaptive method can keep to: no relative error below rounding."""
    if not (math.isfinite(atol) and atol > 0.0):
        raise ValueError(
            f"atol must be a positive number, got {atol!r}: numbers that are zero have no other "
            "tolerance"
        )
    if not (math.isfinite(rtol) and rtol >= 0.0):
        raise ValueError(f"rtol must be a number from 0 on, got {rtol!r}")
    return max(rtol, FINEST), atol


def _duration(duration: float | None, step: float | None, rows: int | None) -> float:
    """How long, agreeing with the number of steps that held inputs are given for."""
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
