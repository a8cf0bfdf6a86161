"""Inverse kinematics: velocities and configurations that follow tasks, loops closed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array, Indices
from robomodel.control import quadratic
from robomodel.control.controller import MISFIT, UNDETERMINED_GROWTH, Controller
from robomodel.control.limits import AccelerationLimit, LimitLike, as_limits, limits_of
from robomodel.control.programme import (
    ProgrammeLayout,
    ProgrammeResults,
    bounded_minimum,
    ik_program,
)
from robomodel.control.quadratic import IncompatibleBoundsError, InfeasibleError
from robomodel.control.search import Search, bases_of, closed, retracted, retraction
from robomodel.control.tasks import (
    CenterOfMassTask,
    FrameTask,
    JointTask,
    PointTask,
    RelativeFrameTask,
    Task,
    TaskPiece,
)
from robomodel.dynamics.kinematics.frames import FrameLike
from robomodel.errors import as_real, few, warn
from robomodel.kernels.function import TracedFunction
from robomodel.model.arguments import as_array, as_numbers, check_one_configuration, common_batch
from robomodel.model.configurations.states import check_finite
from robomodel.model.derived import cached_on_model
from robomodel.model.model import Model
from robomodel.model.sizes import length_of
from robomodel.motion import tangent
from robomodel.reach.drawing import elsewhere, in_other_modes
from robomodel.reach.reachable import Branches, Reachable, from_configuration, reachable
from robomodel.tolerances import EXACTLY_CLOSED, NOTHING

KINDS = ("position", "velocity")
LIMIT_SHARE = 0.5  # of the way to a position limit that a step may go, as in pink
DRAWN = 48  # reachable configurations, of which searches begin again at the nearest by their tasks


class InverseKinematics(Controller):
    """Velocities that follow tasks within limits, in coordinates in which loops stay closed.

    The step d = v dt minimises Σ ½ |W (J d - gain e)|² + ½ (damping + Σ lm |gain W e|²) |d|² over
    the tasks' errors e, costs W and Jacobians J, as pink's ``solve_ik``. Hard tasks hold exactly,
    J d = gain e. Limits hold for dependent joints and rotors too: ½ (lower - x) <= Δx <= ½ (upper -
    x) and |Δx| <= dt · velocity limit, with Δx their first-order change.

    Where independent coordinates do not determine a linkage's motion, as at dead points, steps are
    in tangent coordinates.

    Args:
        limits: Kinds of limits, "position" and "velocity", and :class:`HalfSpace` and
            :class:`AccelerationLimit`; the latter needs v in calls.
        damping: Damping of all steps, in addition to that of the tasks.
    """

    def __init__(
        self,
        model: Model,
        tasks: Task | Iterable[Task],
        *,
        limits: LimitLike | Iterable[LimitLike] = KINDS,
        damping: float = 1e-12,
        solver: str = "daqp",
    ) -> None:
        limits = as_limits(limits)
        super().__init__(model, tasks, damping, solver, limits=limits)
        pieces = tuple(self._tasks.pieces)
        self._layout = ProgrammeLayout(pieces, limits_of(model, limits, KINDS))
        self._outcome = ProgrammeResults(self._layout, model)
        self._function = ik_program(model, self._layout)
        kept = [x for x in limits if x != "velocity" and not isinstance(x, AccelerationLimit)]
        linkages = tangent.numbers(model) > 0
        within = limits_of(model, kept, KINDS, tangent=linkages)
        self._positions = ProgrammeLayout(pieces, within, linkages)
        self._in_tangents = ProgrammeLayout(
            pieces, limits_of(model, limits, KINDS, tangent=True), True
        )

    def _functions(self) -> list[TracedFunction]:
        every = [self._function, bounded_minimum(self.model)]
        if tangent.numbers(self.model):
            every += [ik_program(self.model, self._in_tangents), retraction(self.model)]
        return every

    def __call__(
        self,
        q: ArrayLike,
        dt: float,
        targets: Mapping[Task | str, ArrayLike],
        *,
        v: ArrayLike | None = None,
    ) -> Array:
        """Velocities (..., nv) whose step of dt [s] goes towards the targets.

        Args:
            q: Configuration (..., nq), closed.
            dt: Length of the step [s].
            targets: Task, or its name, → its target, see the task's class; batch axes broadcast
                with q's.
            v: Velocities (..., nv) before the step, with an :class:`AccelerationLimit`.

        Raises:
            InfeasibleError: Limits and hard tasks contradict each other; its message names them.
                In a batch that row is not-a-number, with a RuntimeWarning.
            ValueError: Arrays that do not fit, or are not finite; targets that are missing, or are
                no poses.
        """
        at = as_array(q, self.model.nq, "q", "nq")
        dt = dt if type(dt) is float else as_real(dt, "dt")
        if not 0.0 < dt < math.inf:
            raise ValueError(f"dt is a positive number [s], got {dt!r}")
        numbers = self._tasks.numbers(targets)
        further = self._before(v)
        settings = np.array([dt, self.damping, LIMIT_SHARE])
        velocities: Array = self._solved(at, numbers, settings, further) / dt
        return velocities

    def _before(self, v: ArrayLike | None) -> tuple[Array, ...]:
        """The velocity before a step, if limits depend on it."""
        if not self._layout.limits.moving:
            return ()
        if v is None:
            raise ValueError("limits of accelerations need v=, the velocity before the step")
        before = as_array(v, self.model.nv, "v", "nv")
        check_finite(before, "v", self.model.dof_names)
        return (before,)

    def step(
        self,
        q: ArrayLike,
        dt: float,
        targets: Mapping[Task | str, ArrayLike],
        *,
        v: ArrayLike | None = None,
    ) -> Array:
        """The configuration (nq,) after a step of dt [s], loops closed to 1e-12.

        It is ``model.integrate(q, ik(q, dt, targets) * dt)``, but also passes dead points, where
        velocities of independent joints do not determine how a linkage moves on.

        Args:
            q: One configuration (nq,), closed.
            dt: Length of the step [s].
            targets: As in a call.
            v: As in a call.

        Raises:
            ClosureError: Loops cannot follow the step.
            InfeasibleError: As in a call.
            ValueError: As in a call.
        """
        at = as_array(q, self.model.nq, "q", "nq")
        check_one_configuration(at, "q")
        v_dt = self(at, dt, targets, v=v) * dt
        model = self.model
        if not tangent.numbers(model):
            return model.integrate(at, v_dt)
        start = tangent.start(model, at, v_dt)
        z, bases = start.z, start.bases
        if not start.determined**2 * UNDETERMINED_GROWTH > 1.0:
            settings = np.array([dt, self.damping, LIMIT_SHARE])
            numbers = self._tasks.numbers(targets)
            z = self._tangent_step(at, numbers, settings, self._before(v), bases)
        for halvings in range(6):  # each halves a step that loops cannot follow
            there, more, gap = at[None], bases[None], np.zeros(1)
            for _ in range(2**halvings):
                there, opened, more = retracted(model, there, z[None] / 2**halvings, more)
                gap = np.maximum(gap, opened)
            if gap[0] <= EXACTLY_CLOSED**2:
                reached: Array = there[0]
                return reached
        return model.integrate(at, v_dt)

    def solve(
        self,
        q: ArrayLike,
        targets: Mapping[Task | str, ArrayLike],
        tolerance: float = 1e-10,
        iterations: int = 100,
        *,
        restarts: int = 6,
    ) -> Array:
        """Configurations that reach the targets, within position limits, loops closed to 1e-12.

        Gains and the tasks' damping have no effect. A :class:`PostureTask` beside other tasks
        chooses among configurations that reach the others' targets. If a search from q fails,
        others start from reachable configurations with q's floating base, the nearest by the
        tasks first. Linkages stay on the assembly mode of q: what is returned is reachable from it.
        Turns of joints without limits count: a crank's target 50 rad is seven turns from 6.02.

        Args:
            q: Start of the search (..., nq).
            targets: As in a call.
            tolerance: Largest component of errors [m, rad] of a target that counts as reached.
            iterations: Most iterations of a search.
            restarts: Most searches from other reachable configurations. With any, other assembly
                modes are searched, too.

        Returns:
            q: Configurations (..., nq). Where targets are not reached the nearest by the tasks'
                costs, with a RuntimeWarning that tells the errors, the limits that are met there,
                and whether another assembly mode would reach them.

        Raises:
            ClosureError: The loops of q cannot be closed.
            ValueError: Arrays that do not fit or are not finite, targets that are no poses.
        """
        model = self.model
        at = as_array(q, model.nq, "q", "nq")
        numbers = self._tasks.numbers(targets)
        batch = common_batch(q=at, targets=numbers)
        self._refuse(at, numbers)
        at = np.broadcast_to(at, (*batch, model.nq)).reshape(math.prod(batch), model.nq)
        numbers = np.broadcast_to(numbers, (*batch, self._tasks.size))
        numbers = numbers.reshape(-1, self._tasks.size)
        start = _wound(model, self._tasks.pieces, numbers, closed(model, at))
        search = self._search(numbers, start)
        search.finish(iterations, tolerance)
        self._balance(search, start, iterations, tolerance)
        elsewhere: dict[int, list[str]] = {}
        if restarts and not search.reached.all():
            for rows, reach in _components(model, start, np.flatnonzero(~search.reached)):
                self._restart(search, rows, reach, iterations, tolerance, restarts)
                elsewhere |= self._in_other_modes(
                    search, rows, reach, iterations, tolerance, restarts
                )
        if not search.reached.all():
            self._warn_of(search, tolerance, elsewhere)
        return search.q.reshape(*batch, model.nq)

    def _balance(self, search: Search, start: Array, iterations: int, tolerance: float) -> None:
        """Searches again of rows that have not reached their targets, lengths in the robot's size.

        In metres and radians poses of robots of millimetres are narrow valleys.
        """
        rows = np.flatnonzero(~search.reached)
        if not len(rows) or np.array_equal(self._balanced, self._tasks.weights):
            return
        again = self._search(search.targets[rows], start[rows], weights=self._balanced)
        again.finish(iterations, tolerance)
        for n in np.flatnonzero(again.reached).tolist():
            search.replace(rows[[n]], again.only(n))

    def _restart(
        self,
        search: Search,
        rows: Indices,
        reach: Reachable,
        iterations: int,
        tolerance: float,
        restarts: int,
    ) -> None:
        """Searches of rows from reachable configurations, the nearest by their tasks first."""
        drawn = reach.draw(np.random.default_rng(0), DRAWN)
        for row in rows:
            for start in self._nearest(search, row, drawn)[:restarts]:
                again = self._search(search.targets[[row]], start[None])
                again.finish(iterations, tolerance)
                self._balance(again, start[None], iterations, tolerance)
                search.replace(np.array([row]), again)
                if search.reached[row]:
                    break

    def _in_other_modes(
        self,
        search: Search,
        rows: Indices,
        reach: Reachable,
        iterations: int,
        tolerance: float,
        restarts: int,
    ) -> dict[int, list[str]]:
        """For rows the linkages of which another assembly mode reaches the targets.

        Where a path leads there after all, the row is taken there.
        """
        result: dict[int, list[str]] = {}
        rows = rows[~search.reached[rows]]
        if not len(rows) or not any(cluster.implicit for cluster in self.model.clusters):
            return result
        neutral = reach is reachable(self.model)
        drawn = in_other_modes(self.model) if neutral else elsewhere(reach)
        for row in rows if len(drawn) else ():
            starts = self._nearest(search, row, drawn)
            # the nearest may all be of one mode
            parts = starts[:restarts], starts[restarts:]
            for some in (part for part in parts if len(part)):
                again = self._search(
                    np.tile(search.targets[row], (len(some), 1)),
                    some,
                    free=True,
                    weights=self._balanced,
                )
                again.finish(iterations, tolerance)
                found = np.flatnonzero(again.reached)
                if len(found):
                    break
            if not len(found):
                continue
            near = found[reach.connected(again.q[found])]
            names = [] if len(near) else reach.elsewhere(again.q[found[0]])
            if names:
                result[int(row)] = names
            else:
                search.replace(np.array([row]), again.only(int((*near, *found)[0])))
        return result

    @cached_property
    def _balanced(self) -> Array:
        """The weights with lengths of frames and points in the robot's size."""
        weights = self._tasks.weights.copy()
        for piece in self._tasks.pieces:
            poses = isinstance(piece.task, FrameTask | RelativeFrameTask)
            if poses or isinstance(piece.task, PointTask | CenterOfMassTask):
                lengths = [n for n, row in enumerate(piece.kept) if not poses or row >= 3]
                weights[piece.weights + 2 + np.array(lengths, dtype=np.intp)] /= length_of(
                    self.model
                )
        return weights

    def _nearest(self, search: Search, row: int, q: Array) -> Array:
        """Configurations (n, nq) with a row's floating base, the nearest by its tasks first."""
        q = q.copy()
        if self.model.floating_base:
            q[:, :7] = search.q[row, :7]
        there = self._search(np.tile(search.targets[row], (len(q), 1)), q, free=True)
        return np.asarray(q[np.argsort(there.here(), kind="stable")])

    def _search(
        self, targets: Array, q: Array, *, free: bool = False, weights: Array | None = None
    ) -> Search:
        """A search from closed q (n, nq), on their assembly modes unless it is ``free``."""
        branches = None if free or not tangent.numbers(self.model) else Branches(self.model, q)
        weights = self._tasks.weights if weights is None else weights
        return Search(self.model, self._positions, self._solver, weights, targets, q, branches)

    def _warn_of(
        self, search: Search, tolerance: float, elsewhere: Mapping[int, Sequence[str]]
    ) -> None:
        row = int(np.flatnonzero(~search.reached)[0])
        errors = search.errors_of(row)
        first, off = 0, []
        for task, piece in zip(self.tasks, self._layout.pieces, strict=True):
            part = np.abs(errors[first : first + len(piece.kept)])
            first += len(piece.kept)
            if part.max(initial=0.0) > tolerance:
                off.append(f"'{task.name}' by {part.max():.3g}")
        met = search.limits_met(row)
        count, of = int(np.sum(~search.reached)), len(search.q)
        which = f"{count} of {of} states do not reach their targets; the first" if of > 1 else "it"
        missed = f"misses {', '.join(off)} (m, rad)" if off else "is beyond limits"
        where = f"; there, the {', the '.join(met)}" if met else ""
        if names := elsewhere.get(row):
            where += (
                f"; another assembly mode of {few(names)} reaches it, to which no path was found"
            )
        warn(
            RuntimeWarning(
                f"inverse kinematics of '{self.model.name}' returns the nearest: {which} "
                f"{missed}{where}"
            )
        )

    def _solved(
        self, q: Array, targets: Array, settings: Array, further: tuple[Array, ...]
    ) -> Array:
        """Steps (..., nv)."""
        n = self.model.nv
        results = self._evaluate(q, targets, settings, further)
        step: Array = results[..., -3 - n : -3]
        if results.ndim == 1:
            beyond, size, skew = results[-3:].tolist()
            if beyond <= NOTHING and size < UNDETERMINED_GROWTH and skew < MISFIT:
                return step
            return self._one(q, targets, settings, further, results)
        excess, growth, unfit = results[..., -3], results[..., -2], results[..., -1]
        fine = (excess <= NOTHING) & (growth < UNDETERMINED_GROWTH) & (unfit < MISFIT)
        if fine.all():
            return step
        step, failures = step.copy(), []
        rows = ~fine & (excess < math.inf) & (growth < UNDETERMINED_GROWTH) & (unfit < MISFIT)
        if rows.any():
            x, met = self._outcome.within_bounds(self.model, results[rows])
            step[rows] = np.where(met[:, None], x, step[rows])
            fine[rows] = met
        q = np.broadcast_to(q, (*fine.shape, q.shape[-1]))
        targets = np.broadcast_to(targets, (*fine.shape, targets.shape[-1]))
        further = tuple(np.broadcast_to(x, (*fine.shape, x.shape[-1])) for x in further)
        for row in zip(*np.nonzero(~fine), strict=True):
            try:
                before = tuple(x[row] for x in further)
                step[row] = self._one(q[row], targets[row], settings, before, results[row])
            except InfeasibleError as error:
                step[row] = np.nan
                failures.append(error)
        if failures:
            warn(RuntimeWarning(f"{len(failures)} of {fine.size} states: {failures[0]}"))
        return step

    def _evaluate(
        self, q: Array, targets: Array, settings: Array, further: tuple[Array, ...]
    ) -> Array:
        batch = q.shape[:-1]
        if targets.shape[:-1] != batch or further:
            batch = common_batch(q=q, targets=targets, **dict(zip("v", further, strict=False)))
        weights = self._tasks.weights
        results = np.empty((*batch, self._function.size))
        self._function(q, targets, weights, settings, *further, out=results)
        return results

    def _one(
        self,
        q: Array,
        targets: Array,
        settings: Array,
        further: tuple[Array, ...],
        results: Array,
    ) -> Array:
        """The step of one state whose minimum without limits exceeds some, or is undefined."""
        excess, growth, unfit = results[-3:].tolist()
        if not (excess < math.inf and growth < UNDETERMINED_GROWTH and unfit < MISFIT):
            self._refuse(q, targets)
        if not growth < UNDETERMINED_GROWTH:
            return self._singular(q, targets, settings, further)
        return self._quadratic(self._outcome, results, float(settings[0]))

    def _quadratic(self, outcome: ProgrammeResults, results: Array, dt: float) -> Array:
        try:
            return quadratic.solve(outcome.programme(results), self._solver)
        except IncompatibleBoundsError as error:
            labels = self._named(outcome.labels(error.rows, results))
            raise InfeasibleError(
                f"no step of {dt:g} s of '{self.model.name}' meets all limits and hard tasks: "
                f"{', '.join(labels) or 'they'} contradict each other",
                labels,
            ) from None

    def _named(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Labels with the names of tasks in place of their indices."""
        names = {f"hard task '{i}'": f"hard task '{t.name}'" for i, t in enumerate(self.tasks)}
        return tuple(names.get(label, label) for label in labels)

    def _singular(
        self, q: Array, targets: Array, settings: Array, further: tuple[Array, ...]
    ) -> Array:
        """The step in tangent coordinates, where independent ones do not determine the motion."""
        bases = bases_of(self.model, q)
        z = self._tangent_step(q, targets, settings, further, bases)
        model = self.model
        return np.array(
            tangent.independent_velocities(model, q.tolist(), z.tolist(), bases.tolist())
        )

    def _tangent_step(
        self,
        q: Array,
        targets: Array,
        settings: Array,
        further: tuple[Array, ...],
        bases: Array,
    ) -> Array:
        model, function = self.model, ik_program(self.model, self._in_tangents)
        further = tuple(tangent.start(model, q, v).z for v in further)
        results = np.empty(function.size)
        function(q, targets, self._tasks.weights, settings, *further, bases, out=results)
        if not np.isfinite(results).all():
            return np.zeros(model.nv)
        return self._quadratic(
            ProgrammeResults(self._in_tangents, model), results, float(settings[0])
        )


def inverse_kinematics(
    model: Model,
    targets: Mapping[FrameLike, ArrayLike],
    guess: ArrayLike | None = None,
) -> Array:
    """A configuration with these poses of frames, points and joints, within joint limits.

    :class:`robomodel.control.InverseKinematics` has costs, hard tasks, and steps in time.

    Args:
        model: The robot.
        targets: A link's name, or (link, offset), → its pose (..., 4, 4) or the position (..., 3)
            of its origin in the world; a joint's name → its position, a number.
        guess: Start of the search (..., nq), :meth:`Model.neutral` by default. Its loops are closed
            first; the result is on its assembly mode.

    Returns:
        q: Configuration (..., nq), loops closed, reachable from the guess. Where targets are out of
            reach the nearest, with a RuntimeWarning that tells the errors, the limits that are met
            there, and whether another assembly mode would reach them.

    Raises:
        UnknownNameError: A link or a joint that is not known.
        ValueError: Targets that are neither poses nor points, or not finite.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> q = model.configuration({"joint1": 0.8})
        >>> pose = rm.frame_pose(model, q, "link2")
        >>> found = rm.inverse_kinematics(model, {"link2": pose}, guess=q)
        >>> bool(np.allclose(found, q, atol=1e-6))
        True
    """
    if not isinstance(targets, Mapping):
        raise TypeError(f"targets maps frames to poses or points, not {type(targets).__name__}")
    if not targets:
        raise ValueError("targets is empty: name a link and its pose, or a joint and its position")
    tasks: list[Task] = []
    numbers: dict[Task | str, Array] = {}
    for frame, value in targets.items():
        target, name = as_numbers(value, f"the target of {frame!r}"), str(frame)
        if target.shape[-2:] == (4, 4):
            tasks.append(FrameTask(frame, name=name))
        elif target.ndim and target.shape[-1] == 3:
            tasks.append(PointTask(frame, name=name))
        elif target.ndim == 0 and isinstance(frame, str):
            tasks.append(JointTask(frame, name=name))
        else:
            raise ValueError(
                f"the target of {frame!r} is a pose (..., 4, 4), a point (..., 3) or a joint's "
                f"position, got shape {target.shape}"
            )
        numbers[name] = target
    start = model.neutral() if guess is None else as_array(guess, model.nq, "guess", "nq")
    if not np.isfinite(start).all():
        raise ValueError("guess is not finite")
    return _controller(model, tuple(tasks)).solve(start, numbers)


def _components(model: Model, q: Array, rows: Indices) -> Iterator[tuple[Indices, Reachable]]:
    """Rows of closed q (n, nq) that are on one component, and what is reachable there."""
    reach, left = reachable(model), rows
    while len(left):
        mine = reach.connected(q[left])
        if reach is not reachable(model):
            mine[0] = True
        if mine.any():
            yield left[mine], reach
        left = left[~mine]
        if len(left):
            reach = from_configuration(model, q[left[0]])


def _wound(model: Model, pieces: Sequence[TaskPiece], targets: Array, q: Array) -> Array:
    """Closed q (n, nq) with hinges of linkages that turn fully by whole turns nearer to targets."""
    if not any(isinstance(piece.task, JointTask) for piece in pieces):
        return q
    whole = dict[int, int]()  # spanning positions → places in q
    for linkage in reachable(model).linkages:
        places = np.concatenate([group.whole for group in linkage.groups])
        first, at = linkage.cluster.spanning_q.start, linkage.cluster.q.start
        whole |= {first + n: at + n for n in places.tolist() if linkage.cluster.implicit}
    result = q.copy()
    for piece in pieces:
        for n, name in enumerate(piece.task.names if isinstance(piece.task, JointTask) else ()):
            place = whole.get(model.nodes[model.joint_names.index(name)].q)
            if place is not None:
                away = targets[:, piece.first + n] - result[:, place]
                result[:, place] += math.tau * np.round(away / math.tau)
    return result


@cached_on_model
def _controller(model: Model, tasks: tuple[Task, ...]) -> InverseKinematics:
    return InverseKinematics(model, tasks, limits="position")
