"""Many robots at once: states in place, stepped by the compiled programs of rollouts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robomodel.arrays import Array
from robomodel.errors import few, no_model, warn
from robomodel.model.arguments import as_array
from robomodel.model.model import Model
from robomodel.motion import servo as servos
from robomodel.motion.change_points import Lead
from robomodel.motion.limits import closed_start, in_single_precision
from robomodel.motion.options import (
    BATCH_DEFAULTS,
    DEFAULTS,
    KERNELS,
    BatchOptions,
    BatchSetup,
    MotionSetup,
    as_dynamics,
    check_step,
    completed,
)
from robomodel.motion.rollout import UNSOLVED, run_over_time
from robomodel.motion.sensors import Sensors
from robomodel.motion.tangent import UNDETERMINED_MOTION

LINE = 64  # bytes


@dataclass(frozen=True, eq=False)
class SimulationState:
    """The complete state of a simulation, from :meth:`Simulation.save`; it can be pickled.

    Attributes:
        kind: Identifies the simulations that can restore it.
        rows: States, with the data for the next step (n, numbers).
        before: q and v (n, nq + nv) one substep ago.
        steps: Substeps since each robot's start (n,).
        forces: Contact forces (n, k, 3) [N].
        residual: Residual of the contact equations (n,).
        loops: kp, kd and targets (n, 3 k) of PD loops.
        parameters: Values (n, p) of parameters.
        ahead: Robots that a step has led beyond its end, over change points.
    """

    kind: tuple[Any, ...]
    rows: Array
    before: Array
    steps: NDArray[np.int64]
    forces: Array
    residual: Array
    loops: Array
    parameters: Array
    ahead: dict[int, Lead]


class Simulation(Sensors):
    """N robots of one model, moved in place: an environment for control and learning.

    A call of :meth:`step` takes ``substeps`` steps of :func:`robomodel.rollout` in one compiled
    program: T calls equal one rollout of all their steps, to the bit. All robots start at
    ``model.neutral()``, at rest. A robot whose motion cannot be continued (steps too long for its
    linkages, numbers that are not finite) is not-a-number from there on until it is reset, with one
    RuntimeWarning; other robots are not affected.

    Attributes:
        q: Configurations (n, nq). This and the following arrays are always the same objects, and
            read-only: :meth:`reset` writes states.
        v: Velocities (n, nv).
        time: Time since each robot's start (n,) [s].
        contact_forces: Mean forces over the last call (n, k, 3) [N], world axes, in the order of
            ``contacts``, then of spheres and capsules that touch.
        contact_residual: Largest residual of the contact equations in the last call (n,).
        kp: Gains (n, k) of the PD loops. Write to this and the following arrays to change them.
        kd: Gains (n, k) of velocities.
        targets: Target positions (n, k) of the PD loops.
        parameters: Values (n,) by the names of the parameters; after a change of geometry
            :meth:`reset` closes loops for it.
        model: The robot.
        n: Number of robots.
        method: The integrator.
    """

    def __init__(
        self,
        model: Model,
        n: int,
        *,
        step: float = 1e-3,
        substeps: int = 1,
        pd: Any = None,
        **options: Unpack[BatchOptions],
    ) -> None:
        """Make n robots.

        Args:
            model: The robot.
            n: Number of robots.
            step: Length of a substep [s].
            substeps: Steps of each call of :meth:`step`.
            pd: (kp, kd, targets): PD loops, evaluated in every substep (by "rk4" at its stages),
                beside ``tau``. Numbers, or arrays that broadcast to (n, nv) for loops at joints,
                kp (target - q) - kd v, or to (n, nu) for loops at motors, by their positions
                (:func:`robomodel.actuator_positions`). A fourth entry, "joints" or "motors", says
                which where nv = nu (default joints). Joints of several freedoms have no kp.
            **options: What all motions share, :class:`robomodel.motion.BatchOptions`:
                ``method``, ``passive``, ``friction``, ``ground``, ``contacts``, ``collisions``,
                ``stops``, ``stop_restitution``, ``saturate``, ``parameters`` (numbers, or arrays
                (n,), a number for each robot), ``closing``, ``sweeps``, ``threads``, ``backend``,
                ``dtype``.

        Raises:
            ValueError: Arguments that do not fit.
        """
        for name, value in (("n", n), ("substeps", substeps)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be a whole number from 1 on, got {value!r}")
        if not isinstance(model, Model):
            raise no_model(model)
        if not model.nodes:
            raise ValueError(f"'{model.name}' has no joints that move")
        own = ("step", "substeps", "pd")
        given = completed("Simulation", options, {**DEFAULTS, **BATCH_DEFAULTS}, own)
        names, p = as_dynamics(model, given["parameters"])
        if p.shape[:-1] not in ((), (n,)):
            raise ValueError(
                f"parameters are numbers, or arrays ({n},) of one for each robot, got shape "
                f"{p.shape[:-1]} of {few(names)}"
            )
        setup = MotionSetup.of(model, KERNELS, given, parameters=names)
        batched = BatchSetup.of(given)
        self.model, self.n, self.threads = model, int(n), batched.threads
        self._h, self._dtype = check_step(step, setup.method), batched.dtype
        if self._h <= 0.0:
            raise ValueError(f"step must be a positive number of seconds, got {step!r}")
        self.substeps = int(substeps)
        self._p = np.zeros((self.n, len(names)), self._dtype)
        self._p[:] = p
        self.parameters = {name: self._p[:, i] for i, name in enumerate(names)}
        neutral = self._neutral(np.arange(self.n))
        self.method = setup.compiled_method(np.atleast_2d(neutral), self._h, p)
        servo, *loops = servos.settings(model, self.n, pd)
        self._step = setup.fixed_step(
            self.method, saturate=setup.saturate, servo=servo, dtype=self._dtype,
            backend=batched.backend,
        )  # fmt: skip
        self._start = self._step.start(neutral, np.zeros(model.nv), self._p)[0]
        self._make(loops)
        self.reset()

    def _make(self, loops: Sequence[Array]) -> None:
        """Allocate the arrays."""
        n, model, one, number = self.n, self.model, self._step, self._dtype
        self._rows = np.zeros((n, self.substeps + 1, one.layout.results), number)
        self._states = np.zeros((n, one.layout.size), number)
        self._command = np.zeros((n, 1, one.plant.commands), number)
        self._loops = np.concatenate(loops, axis=1).astype(number)
        self.kp, self.kd, self.targets = np.split(self._loops, 3, axis=1)
        self._steps = np.zeros(n, np.int64)
        self._before = np.zeros((n, model.nq + model.nv), number)
        self._well, self._alive = np.ones((2, n), bool)  # finite now, and before the call
        self._ahead: dict[int, Lead] = {}
        self._q, self._v = _aligned((n, model.nq), number), _aligned((n, model.nv), number)
        self._time = _aligned((n,), "float64")
        k = 0 if one.setting is None else one.places.count
        self._forces, self._residual = _aligned((n, k, 3), number), _aligned((n,), number)
        self.q, self.v, self.time = _shown(self._q), _shown(self._v), _shown(self._time)
        self.contact_forces, self.contact_residual = _shown(self._forces), _shown(self._residual)

    def __repr__(self) -> str:
        return (
            f"<Simulation of {self.n} × '{self.model.name}' by {self.method}, "
            f"{self.substeps} × {self._h:g} s>"
        )

    # ---- in time

    def step(self, tau: ArrayLike | None = None) -> None:
        """Move all robots by ``substeps`` steps.

        Args:
            tau: Forces (nv,) or (n, nv) on the independent joints, held over the call, beside those
                of PD loops; default none.

        Raises:
            ValueError: A tau of another shape; nothing has moved then.
        """
        nv, one, rows = self.model.nv, self._step, self._rows
        force = np.zeros(nv) if tau is None else as_array(tau, nv, "tau", "nv")
        if force.shape not in ((nv,), (self.n, nv)):
            raise ValueError(f"tau must be (nv,) or (n, nv) = {(self.n, nv)}, got {force.shape}")
        self._command[:, 0, :nv], self._command[:, 0, nv:] = force, self._loops
        rows[:, 0, : one.layout.size] = self._states
        held = np.broadcast_to(self._command, (self.n, self.substeps, one.plant.commands))
        with np.errstate(all="ignore"):
            more = one.values(self._p, (self.n,))
            run_over_time(
                one, rows, held, self._h, self.threads, self._ahead, *more, done=self._collect
            )
        self._steps += self.substeps
        np.multiply(self._steps, self._h, out=self._time)
        self._tell()

    def _collect(self, piece: Any) -> None:
        """States of some robots after a call, and contact results."""
        one, rows, count = self._step, self._rows[piece], self._before.shape[1]
        self._before[piece] = rows[:, -2, :count]
        self._states[piece] = rows[:, -1, : one.layout.size]
        self._show(piece)
        if one.setting is not None:
            impulses = np.einsum("ntk->nk", rows[:, 1:, one.layout.impulses])
            self._forces[piece] = one.places.forces(impulses, self.substeps * self._h)
            self._residual[piece] = np.max(rows[:, 1:, one.layout.residual], axis=1)

    def _show(self, rows: Any) -> None:
        """Update q and v of some robots, and whether they are finite."""
        nq, nv = self.model.nq, self.model.nv
        states = self._states[rows, : nq + nv]
        self._q[rows], self._v[rows] = states[:, :nq], states[:, nq:]
        with np.errstate(invalid="ignore"):  # a sum, of which np.isfinite makes no large arrays
            self._well[rows] = np.isfinite(np.add.reduce(states, axis=1))

    def _tell(self) -> None:
        """Warn of robots that have failed in this step, and of unsolved contacts."""
        lost = np.flatnonzero(self._alive > self._well)
        self._alive[:] = self._well
        if len(lost):
            self._states[lost] = np.nan
            self._show(lost)
            some = ", ".join(map(str, lost[:8].tolist())) + (", …" if len(lost) > 8 else "")
            warn(
                RuntimeWarning(
                    f"{len(lost)} of {self.n} robots '{self.model.name}' cannot be moved on and "
                    f"are not-a-number until they are reset: rows {some}; shorter steps may help"
                )
            )
        limit = UNSOLVED[self._dtype]
        if np.any(self.contact_residual > limit):
            warn(
                RuntimeWarning(
                    f"contacts of '{self.model.name}' are not solved to {limit:g} in every step: "
                    "contact_residual says of which robots"
                )
            )

    def reset(
        self, rows: ArrayLike | slice | None = None, q: ArrayLike | None = None,
        v: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        """Start some robots anew; their time begins at zero.

        Args:
            rows: Rows of the robots: indices, a mask (n,) or a slice; default all.
            q: Configurations (nq,) or (rows, nq); default ``model.neutral()``.
            v: Velocities (nv,) or (rows, nv); default at rest.

        Raises:
            ValueError: States that have other shapes, are not finite, have open loops or
                quaternions not of unit length; at a dead point a v that does not determine the
                motion; rows that do not exist (also an IndexError). Nothing has changed then.
        """
        model = self.model
        numbers = row_numbers(self.n, rows)
        if q is None and v is None and not self.parameters:
            states = np.broadcast_to(self._start, (len(numbers), self._step.layout.size))
        else:
            at = self._neutral(numbers) if q is None else as_array(q, model.nq, "q", "nq")
            speed = np.zeros(model.nv) if v is None else as_array(v, model.nv, "v", "nv")
            for name, x in (("q", at), ("v", speed)):
                if x.ndim > 2 or (x.ndim == 2 and len(x) not in (1, len(numbers))):
                    raise ValueError(
                        f"{name} has one row for each of {len(numbers)} robots, or one for all, "
                        f"got shape {x.shape}"
                    )
                if not np.all(np.isfinite(x)):
                    raise ValueError(f"{name} must be finite")
            single = self._dtype == "float32" or in_single_precision(q if q is not None else at)
            at = closed_start(model, at, single, parameters=self._geometry(numbers))
            states, start = self._step.start(at, speed, self._p[numbers])
            unclear = (start.determined <= UNDETERMINED_MOTION) & np.any(speed != 0.0, axis=-1)
            if np.any(unclear):
                raise ValueError(
                    "v does not say how a linkage moves: at q its independent joints rest while "
                    "others move; start from rest, or a little later"
                )
            states = np.broadcast_to(states, (len(numbers), self._step.layout.size))
        self._states[numbers] = states
        self._before[numbers] = states[:, : self._before.shape[1]]
        self._steps[numbers], self._time[numbers] = 0, 0.0
        self._forces[numbers] = 0.0
        self._residual[numbers] = 0.0
        self._alive[numbers] = True
        for n in self._ahead.keys() & set(numbers.tolist()):
            del self._ahead[n]
        self._show(numbers)

    def _neutral(self, numbers: Any) -> Array:
        """Default starts: the model's neutral configuration, closed for their parameters."""
        neutral = self.model.neutral()
        if not self._geometry(numbers) or not any(c.implicit for c in self.model.clusters):
            return neutral
        return np.asarray(self.model.close(neutral, parameters=self._geometry(numbers)))

    # ---- saved

    def save(self) -> SimulationState:
        """A copy of everything that the simulation continues from.

        Returns:
            state: For :meth:`restore`, of this simulation or of another one with the same options.
        """
        return SimulationState(
            self._kind, self._states.copy(), self._before.copy(), self._steps.copy(),
            self._forces.copy(), self._residual.copy(), self._loops.copy(),
            self._p.copy(), dict(self._ahead),
        )  # fmt: skip

    def restore(self, state: SimulationState) -> None:
        """Continue from a saved state, to the bit.

        Args:
            state: From :meth:`save`.

        Raises:
            ValueError: It is of another robot, number of robots, method or other options.
        """
        if not isinstance(state, SimulationState) or state.kind != self._kind:
            raise ValueError(
                f"the state is not of such a simulation: {self!r}"
                + (f", but of {state.kind}" if isinstance(state, SimulationState) else "")
            )
        for here, saved in (
            (self._states, state.rows), (self._before, state.before), (self._steps, state.steps),
            (self._loops, state.loops), (self._p, state.parameters),
            (self._forces, state.forces), (self._residual, state.residual),
        ):  # fmt: skip
            here[:] = saved
        self._ahead = dict(state.ahead)
        np.multiply(self._steps, self._h, out=self._time)
        self._show(slice(None))
        self._alive[:] = self._well

    @property
    def _kind(self) -> tuple[Any, ...]:
        return self.model.name, self.n, self._step.name, self._h, self._dtype


class Shown(np.ndarray):
    """A read-only array that a simulation writes on; it says how to write on the simulation."""

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self.flags.writeable:
            raise ValueError("it is read-only; reset(rows, q=, v=) of the simulation writes states")
        super().__setitem__(key, value)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __dlpack__(self, **options: Any) -> Any:
        """The memory itself: what DLPack hands on is not marked as read-only."""
        memory = self.view(np.ndarray)
        memory.flags.writeable = True
        return memory.__dlpack__(**options)


def _shown(array: Array) -> Array:
    view = array.view(Shown)
    view.flags.writeable = False
    return view


def _aligned(shape: tuple[int, ...], dtype: str) -> Array:
    """Zeros that start at a cache line, which JAX takes without a copy."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(size + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    return memory[first : first + size].view(dtype).reshape(shape)


class RowError(IndexError, ValueError):
    """Rows that do not exist."""


def row_numbers(n: int, rows: ArrayLike | slice | None) -> Any:
    """Rows as indices."""
    if rows is None or isinstance(rows, slice):
        return np.arange(n)[rows if rows is not None else slice(None)]
    given = np.asarray(rows)
    if given.dtype == bool:
        if given.shape != (n,):
            raise ValueError(f"a mask of rows is ({n},), got shape {given.shape}")
        return np.flatnonzero(given)
    if given.size == 0:
        return np.zeros(0, np.intp)
    if given.ndim > 1 or not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"rows are numbers, a mask or a slice, got {rows!r}")
    given = np.atleast_1d(given)
    if np.any((given < -n) | (given >= n)):
        raise RowError(f"rows are from 0 to {n - 1}, got {given.tolist()}")
    return given % n
