"""Measurements of a motion: encoders at joints or motors, currents, wrenches; their calibration.

Unknown zeros of encoders, gear ratios and torque constants do not enter forces and regressors
linearly as the parameters do. They are few, and good guesses exist, so their effect is computed by
differences about their current values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics import passive_force, rnea
from robomodel.dynamics.actuators.maps import actuator_map
from robomodel.dynamics.algorithm import Backend
from robomodel.errors import (
    UnknownNameError,
    argument,
    as_names,
    did_you_mean,
    few,
    warn,
)
from robomodel.identification.coordinates import Change, Coordinates
from robomodel.identification.encoders import Encoders, divided, followed, joint_at
from robomodel.identification.gears import BEFORE, Gears, carried, with_ratios
from robomodel.identification.regressors import regressor, windowed
from robomodel.identification.windows import Windows
from robomodel.model.arguments import as_array, as_numbers, common_batch
from robomodel.model.configurations.following import read
from robomodel.model.configurations.states import check_finite
from robomodel.model.efficiencies import EFFICIENCIES, can_lose, with_efficiencies
from robomodel.model.model import Model
from robomodel.model.parameters import parameters
from robomodel.scalars import stack, unstack
from robomodel.tolerances import DIFFERENCE, OPEN, SINGULAR, TINY

if TYPE_CHECKING:
    from robomodel.identification.logs import Log

TYPED = 1e-3  # accepted error of loops and of quaternions' norms in measured positions
ZERO = (0.1, 0.01)  # assumed deviation of an encoder's zero [rad, m], times the gear ratio
RATIO = 0.05  # assumed relative deviation of a gear ratio
CONSTANT = 0.3  # assumed relative deviation of a torque constant in the file
ASSUMED_CONSTANT = 3.0  # the same of a torque constant that is not in the file
STRIBECK = 0.1  # assumed Stribeck velocity, relative to the largest speed
SPREAD = 1.0  # deviation of its logarithm, and of static friction in units of the forces
ASSUMED_DELAY = 0.05  # assumed deviation of a delay [s]
DELAY_UNIT = 0.01  # unit of delays [s]
LATEST = 0.25  # longest delay [s]; forces within this time of both ends of a log are not used
EFFICIENCY_DEVIATION = 0.5  # assumed deviation of the logarithm of an efficiency
FRICTION = ("bias", "damping difference", "static friction", "Stribeck velocity")
LINEAR = ("offset", "delay", *FRICTION[:3])
REGRESSOR_PIECE = 16384  # samples whose regressors a call computes: 0.1 to 1 s

MOVING = ("offset", "ratio")  # unknowns with which the motion itself is another

Wrenches = Mapping[str, ArrayLike]
Shape = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class CalibrationParameter:
    """An unknown quantity of a sensor, as a deviation from its nominal value.

    ``kind``: "offset" of an encoder (to be added to its reading), "delay" of a coordinate's force,
    or "static friction", "bias" or "damping difference" of a joint, in units of ``nominal``;
    "ratio" of a coupling, "constant", "efficiency" and "backdrive" of a motor or "Stribeck
    velocity" of a joint, as the logarithm of a factor of ``nominal``. All start at 0.
    ``deviation``: the assumed standard deviation.
    """

    kind: str
    name: str
    deviation: float
    nominal: float = 1.0

    def value(self, x: float) -> float:
        """The value in its unit, at the deviation x."""
        return self.nominal * (x if self.kind in LINEAR else math.exp(x))

    def slope(self, x: float) -> float:
        """The derivative of the value by x."""
        return self.nominal if self.kind in LINEAR else abs(self.value(x))


@dataclass(frozen=True, eq=False)
class Motion:
    """A measured motion: the model, q (..., nq), v (..., nv), rows (n, nv, p) of the parameters.

    ``a``: accelerations (..., nv), if they were measured; ``known``: forces (..., nv) of springs
    and measured wrenches. ``coordinates``: those in which forces are compared; ``filtered``: the
    rows in these, of windows.
    """

    model: Model
    q: Array
    v: Array
    a: Array | None
    rows: Array
    known: Array
    coordinates: Coordinates
    filtered: Array | None = None

    @cached_property
    def change(self) -> Change:
        """To the coordinates in which forces are compared."""
        return self.coordinates.at(self.q)

    @cached_property
    def compared(self) -> Array:
        """Rows (n, nv, p) in these coordinates."""
        if self.filtered is not None:
            return self.filtered
        rows = self.rows.reshape(*self.q.shape[:-1], *self.rows.shape[-2:])
        return self.change(rows, -2).reshape(self.rows.shape)

    @cached_property
    def _rates(self) -> tuple[Mapping[str, Array], Array]:
        return (
            self.model.joint_velocities(self.q, self.v), self.model.constraint_jacobian(self.q)
        )  # fmt: skip

    def rate(self, name: str) -> tuple[Array, Array]:
        """Velocity (...) of a joint with one freedom, and its derivatives by v (..., nv)."""
        rates, g = self._rates
        return rates[name], g[..., joint_at(self.model, name)[2][0], :]


@dataclass(frozen=True, eq=False)
class Sensors:
    """A measured motion: arrays (..., ·) of one batch; see :func:`robomodel.identify`.

    ``place``, ``rate`` and ``pull``: positions, velocities and accelerations of the joints
    ``encoders``, or of all coordinates if these are None. ``drive``: forces (..., nv), or currents
    (..., nu) with ``constants`` (nu,). ``step``: time between samples that are filtered;
    ``interval``: time between samples in any case. ``rotors``: the model with the numbers of
    rotors behind lossy gears.
    """

    model: Model
    place: Array
    rate: Array
    pull: Array | None
    drive: Array
    constants: Array | None
    wrenches: Wrenches
    encoders: tuple[str, ...] | None
    step: float | None
    cutoff: float
    interval: float | None = None
    rotors: Model | None = None
    unknowns: tuple[CalibrationParameter, ...] = ()

    @cached_property
    def windows(self) -> Windows | None:
        """The windows of a motion without accelerations."""
        if self.pull is not None or self.step is None:
            return None
        if self.place.ndim < 2:
            raise ValueError("without accelerations q, v and tau need an axis of time")
        return Windows.of(self.place.shape[-2], self.step, self.cutoff)

    def behind(self, rotors: Model) -> Sensors:
        """The same motion, with the numbers of these rotors behind lossy gears."""
        result = replace(self, rotors=rotors)
        vars(result)["_nominal"] = self._nominal  # its regressor is the same
        return result

    @property
    def length(self) -> int:
        """Number of rows in time of one motion."""
        if self.windows is not None:
            return len(self.windows)
        return self.place.shape[-2] if self.place.ndim > 1 else 1

    @property
    def times(self) -> Array | None:
        """Times [s] of the rows of one motion; None if they are not known."""
        if self.windows is not None:
            return self.windows.times
        if self.interval is None or not math.isfinite(self.interval):
            return None
        return self.interval * np.arange(self.length, dtype=float)

    @cached_property
    def closed(self) -> Array:
        """Configurations (..., nq) from the encoders, with loops closed."""
        if self.encoders is None:
            return self.place
        return followed(self.model, self.encoders, self.place)

    @cached_property
    def coordinates(self) -> Coordinates:
        """The coordinates in which forces are compared; kept where some are late or unknown."""
        model = self.model
        drive = self._forces(model, self.closed, {}).reshape(-1, model.nv)
        late = self._late(np.zeros(len(self.unknowns)))
        kept = np.array([name in late for name in model.dof_names], dtype=bool)
        for cluster in model.clusters:
            missing = np.isnan(drive[:, cluster.v])
            kept[cluster.v] |= bool(np.any(missing != missing[:, :1]))
        return Coordinates.of(model, self.closed, kept)

    def at(self, x: Array, compared: bool = False) -> tuple[Array, Array, Model]:
        """Rows (n, nv, p), forces (n, nv), nan if not measured, and the model at unknowns x.

        ``compared``: in the coordinates in which forces are.
        """
        motion = self.motion(x)
        rows, forces = self._rows(motion, x, compared), self.forces(motion, x, compared)
        return rows, forces, motion.model

    def _rows(self, motion: Motion, x: Array, compared: bool) -> Array:
        """Rows (n, nv, p); friction of rotors and armatures in their place pass no lossy gear."""
        rows = motion.compared if compared else motion.rows
        if not self.lossy:
            return rows
        names = parameters(motion.model).names
        lost = self._gears.lost_of_bearings(self._drive(motion, x), self._efficiencies(x))
        result = rows.copy()
        for i, n in enumerate(self.lossy):
            for k, kind in enumerate(BEFORE):
                if np.any(lost[..., i, k]):
                    at = names.index(f"{self.model.actuators[n].joint}.{kind}")
                    part = lost[..., i, k]
                    result[..., at] -= self._at_rows(motion.change(part) if compared else part)
        return result

    def before_gears(self, x: Array) -> Array | None:
        """:meth:`.Gears.before` (n, nv, nv) of compared forces; None if lossless, or of means."""
        if not self.lossy or self.windows is not None:
            return None
        motion = self.motion(x)
        drive = self._drive(motion, x)
        before = motion.change.squared(self._gears.before(drive, self._efficiencies(x)))
        return before.reshape(-1, *2 * drive.shape[-1:])

    def _drive(self, motion: Motion, x: Array) -> Array:
        """The motors' generalised forces (..., nv)."""
        factors = {u.name: math.exp(e) for u, e in self.of("constant", x)}
        drive = self._forces(motion.model, motion.q, factors)
        return np.broadcast_to(drive, (*self.batch, motion.model.nv))

    def motion(self, x: Array) -> Motion:
        """The motion at unknowns x, of which zeros of encoders and ratios change it."""
        return self._moved(x) if any(e for kind in MOVING for _, e in self.of(kind, x)) else (
            self._nominal
        )  # fmt: skip

    @cached_property
    def _nominal(self) -> Motion:
        return self._moved(np.zeros(len(self.unknowns)))

    def _moved(self, x: Array) -> Motion:
        factors = {u.name: math.exp(e) for u, e in self.of("ratio", x)}
        model = with_ratios(self.model, factors) if any(v != 1.0 for v in factors.values()) else (
            self.model
        )  # fmt: skip
        backend: Backend = "compiled" if model is self.model else "numpy"
        q, v, a = self._state(model, {u.name: e for u, e in self.of("offset", x)})
        batch = self.batch
        q, v = np.broadcast_to(q, (*batch, model.nq)), np.broadcast_to(v, (*batch, model.nv))
        known: Array = np.zeros((*batch, model.nv))
        still = np.zeros(model.nv)
        sprung = bool(model.springs) or any(joint.stiffness for joint in model.joints)
        if sprung:  # with the biases of joints, which are taken out again
            known = known + passive_force(model, q, still, backend=backend)
        for joint in (joint for joint in model.joints if joint.law):
            force = np.array(-joint.law.bias if sprung else 0.0)
            if joint.name in self._filed:
                force = force + joint.law.force(model.joint_velocities(q, v)[joint.name])
            rows = model.constraint_jacobian(q)[..., joint_at(model, joint.name)[2][0], :]
            known = known - force[..., None] * rows
        if self.wrenches:
            known = known + rnea(model, q, still, still, backend=backend)
            known = known - rnea(model, q, still, still, f_ext=self.wrenches, backend=backend)
        coordinates, compared = replace(self.coordinates, model=model), None
        if a is not None:
            rows = _in_pieces(model, q, v, a, backend)
        else:
            assert self.windows is not None
            rows, compared = windowed(model, q, v, self.windows, backend, coordinates)
            compared = self._flat(compared)
        return Motion(model, q, v, a, self._flat(rows), known, coordinates, compared)

    def _flat(self, rows: Array) -> Array:
        """Rows (..., nv, p) of all motions (n, nv, p)."""
        batch, shape = self.batch, rows.shape[-2:]
        rows = np.broadcast_to(rows, (*batch[:-1], self.length, *shape)) if batch else rows
        return rows.reshape(-1, *shape)

    @cached_property
    def _filed(self) -> list[str]:
        """Joints whose laws of friction are the file's, and are not identified anew."""
        anew = {unknown.name for unknown in self.unknowns if unknown.kind in FRICTION}
        return [joint.name for joint in self.model.joints if joint.law and joint.name not in anew]

    def _late(self, x: Array) -> dict[str, float]:
        """The delay of each coordinate that has one: the file's, or the one identified anew."""
        names = set(self.model.dof_names)
        result = {j.name: j.delay for j in self.model.joints if j.delay and j.name in names}
        return result | {u.name: u.value(e) for u, e in self.of("delay", x)}

    @cached_property
    def lossy(self) -> list[int]:
        """The actuators whose gears lose power, by the file or as far as the forces tell."""
        anew = self.laws("efficiency")
        return [n for n, x in enumerate(self.model.actuators) if x.lossy or x.name in anew]

    @cached_property
    def _gears(self) -> Gears:
        """Lossy gears in the motion as it was measured."""
        return self._geared(self.rotors or self.model, self.lossy, self.rotors is not None)

    def _geared(self, model: Model, at: Sequence[int], predicted: bool) -> Gears:
        """Gears of these actuators, with the numbers of ``model``; see :meth:`Gears.of`."""
        motion = self._nominal
        return Gears.of(
            model, at, motion.q, motion.v, self._pull, self.wrenches, predicted=predicted
        )

    def _efficiencies(self, x: Array) -> Array:
        """Efficiencies (m, 2) of the lossy gears forward and back, at unknowns x."""
        actuators = [self.model.actuators[n] for n in self.lossy]
        result = np.array([[each.efficiency, each.backdrive] for each in actuators])
        names = [each.name for each in actuators]
        for column, kind in enumerate(EFFICIENCIES):
            for unknown, e in self.of(kind, x):
                result[names.index(unknown.name), column] = unknown.value(e)
        return result

    def phases(self) -> dict[str, tuple[float, float]]:
        """Shares of the squares of each lossy gear's force while it drives, and is driven."""
        drive = self._drive(self._nominal, np.zeros(len(self.unknowns)))
        names = [self.model.actuators[n].name for n in self.lossy]
        shares = self._gears.phases(drive).tolist()
        return {name: (ahead, back) for name, (ahead, back) in zip(names, shares, strict=True)}

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """The shape of all samples."""
        wrenches = (np.shape(each)[:-1] for each in self.wrenches.values())
        return np.broadcast_shapes(self.place.shape[:-1], self.drive.shape[:-1], *wrenches)

    def forces(self, motion: Motion, x: Array, compared: bool = False) -> Array:
        """Forces (n, nv) that the parameters explain, nan if not measured, at unknowns x."""
        drive = self._drive(motion, x)
        if self.lossy:
            drive = drive - self._gears.lost(drive, self._efficiencies(x))
        known = motion.known - self._friction(motion, x)
        if self.windows is None:
            whole = self._in_time(drive, x) + known
            return (motion.change(whole) if compared else whole).reshape(-1, motion.model.nv)
        late = self._late(x)
        if compared:
            drive, known = motion.change(drive), motion.change(known)
        motions = (y.reshape(-1, *y.shape[-2:]) for y in (drive, known))
        return np.concatenate([
            self._windowed(self.windows, each, other, late)
            for each, other in zip(*motions, strict=True)
        ])  # fmt: skip

    def late(self, motion: Motion, x: Array, delay: float) -> Array:
        """As :meth:`forces`, of drives that come ``delay`` [s] later; nan where there are none."""
        forces = self.forces(motion, x)
        drive = np.broadcast_to(
            self._forces(motion.model, motion.q, {u.name: math.exp(e)
                                                  for u, e in self.of("constant", x)}),
            (*self.batch, motion.model.nv),
        ).reshape(-1, self.batch[-1], motion.model.nv)  # fmt: skip
        if self.windows is not None:
            change = [self.windows.mean(y, delay) - self.windows.mean(y) for y in drive]
        else:
            assert self.interval is not None
            times = self.interval * np.arange(drive.shape[1])
            change = [
                np.stack([np.interp(times + delay, times, x, np.nan, np.nan) for x in y.T], axis=-1)
                - y for y in drive
            ]  # fmt: skip
        return forces + np.concatenate(change)

    def states(self, motion: Motion) -> tuple[Array, Array]:
        """Positions and velocities (n, nv) of the coordinates at the rows; nan of others' joints.

        A coordinate is that of a joint with one freedom; in windows these are means.
        """
        places = motion.model.joint_positions(motion.q)
        single = {joint.name for joint in motion.model.joints if joint.nv == 1}
        none = np.full(self.batch, np.nan)
        names = motion.model.dof_names
        place = np.stack([places[n] if n in single else none for n in names], axis=-1)
        rate = np.where(np.isnan(place), np.nan, motion.v)
        return self._at_rows(place), self._at_rows(rate)

    def shaped(self, motion: Motion, name: str, functions: Sequence[Shape]) -> Array:
        """Functions of a joint's velocity, as columns (n, m)."""
        w, _ = motion.rate(name)
        return self._at_rows(np.stack([function(w) for function in functions], axis=-1))

    def _at_rows(self, x: Array) -> Array:
        """Samples (..., m) at the rows (n, m): themselves, or their means in windows."""
        wide = np.broadcast_to(x, (*self.batch, x.shape[-1]))
        if self.windows is None:
            return wide.reshape(-1, x.shape[-1])
        pieces = wide.reshape(-1, *wide.shape[-2:])
        return np.concatenate([self.windows.mean(each) for each in pieces])

    def _windowed(
        self, windows: Windows, drive: Array, known: Array, late: Mapping[str, float]
    ) -> Array:
        """Forces of a motion (K, nv) in windows, those of the drives with their delays removed."""
        result = windows.mean(drive)
        for name, delay in late.items():
            i = self.model.dof_names.index(name)
            whole = windows.complete(~np.isnan(drive[:, i]), LATEST)
            moved = windows.mean(drive[:, i], min(max(delay, -LATEST), LATEST))
            result[:, i] = np.where(whole, moved, np.nan)
        return result + windows.mean(known)

    def _in_time(self, force: Array, x: Array) -> Array:
        """Forces (T, nv) at the times of the motion, with their delays removed."""
        delays = self._late(x)
        if not delays or self.interval is None or force.ndim != 2:
            return force
        times = self.interval * np.arange(len(force))
        outside = (times < LATEST) | (times > times[-1] - LATEST)
        result = force.copy()
        for name, delay in delays.items():
            i = self.model.dof_names.index(name)
            there = ~np.isnan(force[:, i])
            late = min(max(delay, -LATEST), LATEST)
            moved = np.interp(times + late, times[there], force[there, i])
            result[:, i] = np.where(there & ~outside, moved, np.nan)
        return result

    def _friction(self, motion: Motion, x: Array) -> Array | float:
        """Forces (..., nv) of friction beside Coulomb's and viscous friction, at rates w.

        b + e |w| + F sign(w) exp(-(w/w_s)²), with a bias b, half the difference e of damping at
        positive and negative velocity, and the excess F of static over Coulomb friction (B.
        Armstrong-Hélouvry, P. Dupont and C. Canudas de Wit, *A survey of models, analysis tools
        and compensation methods for the control of machines with friction*, Automatica 30, 1994).
        """
        laws: dict[str, dict[str, float]] = {}
        for kind in FRICTION:
            for unknown, e in self.of(kind, x):
                laws.setdefault(unknown.name, {})[kind] = unknown.value(e)
        result: Array | float = 0.0
        for name, law in laws.items():
            w, g = motion.rate(name)
            size = law.get("bias", 0.0) * np.abs(np.sign(w))
            size = size + law.get("damping difference", 0.0) * np.abs(w)
            if (width := law.get("Stribeck velocity")) is not None:
                size = size + law["static friction"] * np.sign(w) * np.exp(-((w / width) ** 2))
            result = result + size[..., None] * g
        return result

    def slopes(self, x: Array, values: Array, error: Array, compared: bool = False) -> Array:
        """Derivatives of rows · values - forces (at x: ``error``) by each unknown (n, nv, ·)."""
        columns = []
        motion = self.motion(x)
        level = self._rows(motion, x, compared) @ values
        change = motion.change if compared else None
        reaching = self._reaching(self._gears, change) if self.rotors and self.lossy else {}
        for i, unknown in enumerate(self.unknowns):
            moved = x.copy()
            moved[i] += DIFFERENCE
            if (part := reaching.get((unknown.kind, unknown.name))) is not None:
                columns.append(part if unknown.kind == "backdrive" else -part)
            elif unknown.kind in (*MOVING, *EFFICIENCIES):
                rows, force, _ = self.at(moved, compared)
                columns.append((rows @ values - force - error) / DIFFERENCE)
            else:
                forces = self.forces(motion, moved, compared)
                columns.append((level - forces - error) / DIFFERENCE)
        return np.stack(columns, axis=-1) if columns else np.zeros((*error.shape, 0))

    def shares(self) -> Array:
        """The fraction of each compared force that depends on each torque constant (nv, ·)."""
        result = np.zeros((self.model.nv, len(self.unknowns)))
        if self.constants is None:
            return result
        names = [each.name for each in self.model.actuators]
        parts = self._parts(self.model, self.closed)
        change = self.coordinates.at(self.closed.reshape(-1, self.model.nq))
        size = np.sqrt(np.nanmean(change(parts, -2) ** 2, axis=0))
        share = size**2 / np.maximum(np.sum(size**2, axis=1, keepdims=True), TINY)
        for i, unknown in enumerate(self.unknowns):
            if unknown.kind == "constant":
                result[:, i] = share[:, names.index(unknown.name)]
        return result

    def _reaching(self, gears: Gears, change: Change | None = None) -> dict[tuple[str, str], Array]:
        """Forces (n, nv) that reach the joints while motors drive and are driven, by a model.

        As the slopes by efficiencies they are without the errors of the measured forces, which
        would make these dependent on each other.
        """
        names = [self.model.actuators[n].name for n in gears.at]
        return {
            (kind, name): self._at_rows(change(parts[..., k]) if change else parts[..., k])
            for kind, parts in zip(EFFICIENCIES, gears.predicted, strict=True)
            for k, name in enumerate(names)
        }

    def growing(self, model: Model) -> tuple[dict[str, Array], dict[str, Array]]:
        """Friction that grows with the load, in units of the load that ``model`` needs.

        By actuators whose gears are without loss and could have one (n, nv, 2): the same while they
        drive and are driven, and of opposite sign; by joints that no such gear moves (n, nv, 1).
        """
        lossy, single = set(self.lossy), {joint.name for joint in model.joints if joint.nv == 1}
        able = [n for n, x in enumerate(model.actuators) if n not in lossy and can_lose(model, x)]
        named = {model.actuators[n].name: (1.0, 1.0) for n in able}
        all_of = [self._geared(with_efficiencies(model, named), able, True)] if able else []
        gears, joints, moved = (
            dict[str, Array](),
            dict[str, Array](),
            np.zeros(model.nv, dtype=bool),
        )
        for each in all_of:
            parts = self._reaching(each)
            for name in named:
                ahead, back = (parts[kind, name] for kind in EFFICIENCIES)
                gears[name] = np.stack([ahead - back, ahead + back], axis=-1)
        for each in [*all_of, *([self._gears] if lossy else [])]:
            moved |= each.moved
        motion = self._nominal
        load = carried(model, motion.q, motion.v, self._pull, self.wrenches)
        against = self._at_rows(np.sign(motion.v) * np.abs(load))
        for i, name in enumerate(model.dof_names):
            if name in single and not moved[i]:
                joints[name] = against[:, :, None] * (np.arange(model.nv) == i)[:, None]
        return gears, joints

    @property
    def _pull(self) -> Array:
        """Accelerations (..., nv), by differences where they were not measured."""
        motion = self._nominal
        return np.gradient(motion.v, self.step or 1.0, axis=-2) if motion.a is None else motion.a

    def laws(self, kind: str) -> list[str]:
        """Names of the unknowns of a kind."""
        return [unknown.name for unknown in self.unknowns if unknown.kind == kind]

    def of(self, kind: str, x: Array) -> list[tuple[CalibrationParameter, float]]:
        """The unknowns of a kind, with their deviations at x."""
        pairs = zip(self.unknowns, x.tolist(), strict=True)
        return [(unknown, e) for unknown, e in pairs if unknown.kind == kind]

    def _parts(self, model: Model, q: Array) -> Array:
        """Forces of each motor's current on each coordinate (n, nv, nu)."""
        assert self.constants is not None
        entries = [x for row in actuator_map(model, unstack(q)) for x in row]
        shape = (model.nv, len(model.actuators))
        matrix = stack(entries, q.shape[:-1]).reshape(*q.shape[:-1], *shape)
        pushed = (self.constants * self.drive)[..., None, :]  # nan where not measured
        parts = np.where(matrix != 0.0, matrix * pushed, 0.0)
        return parts.reshape(-1, *shape)

    def _forces(self, model: Model, q: Array, factors: Mapping[str, float]) -> Array:
        if self.constants is None:
            return self.drive
        scale = np.array([factors.get(each.name, 1.0) for each in model.actuators])
        batch = np.broadcast_shapes(q.shape[:-1], self.drive.shape[:-1])
        wide = replace(self, drive=np.broadcast_to(self.drive, (*batch, len(scale))))
        q = np.broadcast_to(q, (*batch, model.nq))
        return np.asarray(wide._parts(model, q) @ scale).reshape(*batch, model.nv)

    def _state(
        self, model: Model, offsets: Mapping[str, float]
    ) -> tuple[Array, Array, Array | None]:
        """(q, v, a) with encoders' zeros moved; a is None if it is not measured."""
        if self.encoders is None:
            q = self.closed
            if model is not self.model and any(c.implicit for c in model.clusters):
                q = model.close(q)
            if any(offsets.values()):
                moved = np.array([offsets.get(name, 0.0) for name in model.dof_names])
                q = model.integrate(q, np.broadcast_to(moved, (*q.shape[:-1], model.nv)))
            return q, self.rate, self.pull
        rows = [r for name in self.encoders for r in joint_at(model, name)[2]]
        q = self.closed
        if model is not self.model or any(offsets.values()):
            q = self._at_readings(model, offsets, rows)
        g = model.constraint_jacobian(q)[..., rows, :]
        v = divided(g, self.rate)
        if self.pull is None:
            return q, v, None
        return q, v, divided(g, self.pull - model.constraint_bias(q, v)[..., rows])

    def _at_readings(self, model: Model, offsets: Mapping[str, float], rows: list[int]) -> Array:
        """Configurations of ``model`` at the encoders' readings."""
        assert self.encoders is not None
        start = self.model.joint_positions(self.closed)
        single = {
            rows.index(joint_at(model, name)[2][0]): (name, start[name] + offsets.get(name, 0.0))
            for name in self.encoders
            if joint_at(model, name)[1] == 1
        }
        q = self.closed.reshape(-1, model.nq)
        reached, off = read(model, q, Encoders(model, tuple(rows), single))
        if not (worst := float(np.max(off, initial=0.0))) < OPEN:
            warn(RuntimeWarning(
                f"configurations of '{model.name}' at the encoders' readings are {worst:.1e} off"
            ))  # fmt: skip
        return reached.reshape(self.closed.shape)


def sensors(
    model: Model,
    log: Log,
    *,
    constants: float | str | Mapping[str, float] | ArrayLike | None = None,
    offsets: bool | str | Iterable[str] = False,
    ratios: bool | str | Iterable[str] = False,
    stribeck: bool | str | Iterable[str] = False,
    asymmetric: bool | str | Iterable[str] = False,
    losses: bool | str | Iterable[str] = False,
    delays: bool | str | Iterable[str] = False,
    step: float | None = None,
    cutoff: float = 5.0,
) -> Sensors:
    """A measured motion, checked; arguments and errors as in :func:`robomodel.identify`."""
    if (log.a is None) == (step is None):
        raise ValueError(
            "without accelerations (a=None) step is needed: seconds per sample"
            if step is None
            else "step is for motions without accelerations (a=None)"
        )
    if (log.tau is None) == (log.currents is None):
        raise ValueError("forces are needed, either as tau or as currents")
    names = None if log.encoders is None else as_names(log.encoders, "encoders")
    nq, nv = (model.nq, model.nv) if names is None else _sizes(model, names)
    place, rate = as_array(log.q, nq, "q", "nq"), as_array(log.v, nv, "v", "nv")
    labels = model.dof_names if names is None else tuple(str(n) for n in range(nv))
    arrays = {"q": place, "v": rate}
    pull = None
    if log.a is not None:
        pull = arrays["a"] = as_array(log.a, nv, "a", "nv")
        check_finite(pull, "a", labels)
    driven = tuple(each.name for each in model.actuators)
    unknowns = _offsets(model, names, offsets)
    unknowns += [
        CalibrationParameter("ratio", name, RATIO, k) for name, k in _ratios(model, ratios).items()
    ]
    torque_constants = None
    if log.tau is not None:
        drive = arrays["tau"] = as_array(log.tau, model.nv, "tau", "nv")
        check_finite(np.where(np.isnan(drive), 0.0, drive), "tau", model.dof_names)
        if constants is not None:
            raise ValueError("constants are for currents; tau is in forces' units already")
    else:
        currents = cast(Array, log.currents)
        drive = arrays["currents"] = as_array(currents, len(model.actuators), "currents", "nu")
        check_finite(np.where(np.isnan(drive), 0.0, drive), "currents", driven)
        torque_constants, more = _constants(model, constants)
        unknowns += more
    batch = common_batch(**arrays)
    if 0 in batch:
        raise ValueError("no samples: q, v and tau are empty")
    for link in log.f_ext:
        model.frame(link)
    interval = step if step is not None else log.step
    late = _chosen(delays, model.dof_names, "delays", "coordinate")
    if late:
        if interval is None or not math.isfinite(interval) or len(batch) != 1:
            raise ValueError("delays need one motion at even times: a step, or a column 'time'")
        if batch[0] * interval < 4.0 * LATEST:
            raise ValueError(f"delays need a motion of {4.0 * LATEST:g} s or more")
        if log.tau is None:
            raise ValueError("delays are of tau, not of currents")
        unknowns += [
            CalibrationParameter("delay", n, ASSUMED_DELAY / DELAY_UNIT, DELAY_UNIT) for n in late
        ]
    readings = Sensors(
        model, np.broadcast_to(place, (*batch, nq)), rate, pull, drive, torque_constants,
        log.f_ext, None if names is None else tuple(names), step, cutoff, interval,
        unknowns=tuple(unknowns),
    )  # fmt: skip
    if names is None:
        model.check(place, rate, tolerance=TYPED)
    else:
        check_finite(place, "q", tuple(str(n) for n in range(nq)))
        check_finite(rate, "v", labels)
        rows = [r for name in names for r in joint_at(model, name)[2]]
        g = model.constraint_jacobian(readings.closed)[..., rows, :]
        if np.linalg.matrix_rank(g.reshape(-1, nv, nv), tol=SINGULAR).min() < nv:
            raise ValueError("encoders: there they do not determine how all coordinates move")
    return with_losses(with_friction(_guessed(readings), stribeck, asymmetric), losses)


def _sizes(model: Model, names: Sequence[str]) -> tuple[int, int]:
    """Numbers of positions and velocities of these joints; raises unless the latter is nv."""
    joints = [joint_at(model, name) for name in names]
    nq, nv = sum(each[1] for each in joints), sum(len(each[2]) for each in joints)
    if len(set(names)) < len(names):
        raise ValueError(f"encoders: a joint is given twice in {names}")
    if nv != model.nv:
        raise ValueError(
            f"encoders have {nv} velocities, and the robot moves with nv = {model.nv}; each of its "
            "freedoms needs one"
        )
    return nq, nv


def _in_pieces(model: Model, q: Array, v: Array, a: Array, backend: Backend) -> Array:
    """Regressors of a long log, by calls between which Python hears Ctrl-C."""
    if not q.ndim == v.ndim == a.ndim == 2 or not REGRESSOR_PIECE < len(q) == len(v) == len(a):
        return regressor(model, q, v, a, backend=backend)
    rows: Array | None = None
    for first in range(0, len(q), REGRESSOR_PIECE):
        at = slice(first, first + REGRESSOR_PIECE)
        part = regressor(model, q[at], v[at], a[at], backend=backend)
        if rows is None:
            rows = np.empty((len(q), *part.shape[1:]))
        rows[at] = part
    assert rows is not None
    return rows


def _chosen(
    choice: bool | str | Iterable[str], all_names: Iterable[str], what: str, kind: str
) -> list[str]:
    """All names, none, or the chosen ones; raises for unknown ones."""
    names = list(all_names)
    if isinstance(choice, bool):
        return names if choice else []
    chosen = as_names(choice, what)
    for name in chosen:
        if name not in names:
            raise UnknownNameError(f"{what}: no {kind} '{name}'{did_you_mean(name, names)}")
    return list(dict.fromkeys(chosen))


def _offsets(
    model: Model, encoders: Sequence[str] | None, choice: bool | str | Iterable[str]
) -> list[CalibrationParameter]:
    joints = {joint.name: joint for joint in model.joints if joint.nv == 1}
    names = [n for n in (model.dof_names if encoders is None else encoders) if n in joints]
    chosen = _chosen(choice, names, "offsets", "encoder")
    slides = {n for n, joint in joints.items() if joint.type == "prismatic"}
    geared = np.abs(model.constraint_jacobian(model.neutral())).max(axis=1, initial=0.0)
    return [
        CalibrationParameter(
            "offset",
            name,
            ZERO[name in slides] * max(1.0, float(geared[joint_at(model, name)[2]][0])),
        )
        for name in chosen
    ]


def _ratios(model: Model, choice: bool | str | Iterable[str]) -> dict[str, float]:
    """Ratio of each chosen coupling: of its dependent joint to the next of its joints."""
    independent = {joint.name for joint in model.joints if joint.independent}
    ratios = {}
    for coupling in model.couplings:
        dependent = [k for name, k in coupling.terms if name not in independent]
        others = [k for name, k in coupling.terms if name in independent] or dependent[1:]
        if dependent and others and not (coupling.redundant or coupling.coefficients):
            ratios[coupling.name] = -others[0] / dependent[0]
    return {name: ratios[name] for name in _chosen(choice, ratios, "ratios", "coupling")}


def _constants(
    model: Model, choice: float | str | Mapping[str, float] | ArrayLike | None
) -> tuple[Array, list[CalibrationParameter]]:
    """Torque constants [N m/A or N/A] by actuator, and those to be identified."""
    names = [each.name for each in model.actuators]
    filed = np.array([each.torque_constant or math.nan for each in model.actuators])
    if isinstance(choice, str):
        if choice != "unknown":
            raise ValueError(
                f"constants are numbers, None (the file's) or 'unknown', not {choice!r}"
            )
        result = np.full(len(names), math.nan)
    elif choice is None:
        result = filed
        if lacking := [n for n, k in zip(names, result, strict=True) if math.isnan(k)]:
            raise ValueError(
                f"the file gives no torque constant of {few(lacking)} [N m/A]: "
                f"{argument('constants', {lacking[0]: 0.1})} sets one (1 where the log has motor "
                f"torques), {argument('constants', 'unknown')} identifies all of them"
            )
    elif isinstance(choice, Mapping):
        for name in choice:
            if name not in names:
                raise UnknownNameError(
                    f"constants: no actuator '{name}'{did_you_mean(name, names)}"
                )
        result = np.array(
            [choice.get(n, k) for n, k in zip(names, filed, strict=True)], dtype=float
        )
    else:
        result = np.broadcast_to(as_numbers(choice, "constants"), (len(names),)).copy()
    if not np.all(np.isnan(result) | (np.isfinite(result) & (result != 0.0))):
        raise ValueError(f"constants must be finite and not zero, got {choice!r}")
    lost = np.isnan(result)
    result = np.where(lost, np.where(np.isnan(filed), math.nan, filed), result)
    unknowns = [
        CalibrationParameter(
            "constant", name, ASSUMED_CONSTANT if math.isnan(k) else CONSTANT, float(k)
        )
        for name, k, is_one in zip(names, filed, lost, strict=True)
        if is_one
    ]
    return result, unknowns


def with_friction(
    readings: Sensors, stribeck: bool | str | Iterable[str],
    asymmetric: bool | str | Iterable[str], offset: Iterable[str] = (),
) -> Sensors:  # fmt: skip
    """The readings with friction's laws of chosen joints as unknowns; ``offset``: biases alone."""
    model = readings.model
    single = [joint.name for joint in model.joints if joint.nv == 1]
    chosen = {}
    choices = ("stribeck", stribeck), ("asymmetric", asymmetric), ("offset", offset)
    for what, choice in choices:
        default = [n for n in single if n in model.dof_names] if choice is True else choice
        chosen[what] = _chosen(default, single, what, "joint with one freedom")
    if not any(chosen.values()):
        return readings
    none = np.zeros(len(readings.unknowns))
    size = float(np.sqrt(np.nanmean(readings.forces(readings.motion(none), none) ** 2))) or 1.0
    unknowns: list[CalibrationParameter] = []
    for what, names in chosen.items():
        for name in names:
            fastest = float(np.max(np.abs(readings.motion(none).rate(name)[0])))
            if fastest == 0.0:
                raise ValueError(f"{what}: joint '{name}' does not move in this log")
            static, width = STRIBECK * fastest, size / fastest
            kinds = {
                "stribeck": (("static friction", size), ("Stribeck velocity", static)),
                "asymmetric": (("bias", size), ("damping difference", width)),
                "offset": (("bias", size),),
            }
            unknowns += [CalibrationParameter(kind, name, SPREAD, x) for kind, x in kinds[what]]
    return replace(readings, unknowns=(*readings.unknowns, *unknowns))


def with_losses(readings: Sensors, losses: bool | str | Iterable[str]) -> Sensors:
    """The readings with efficiencies of chosen actuators' gears as unknowns."""
    model = readings.model
    chosen = _chosen(losses, [each.name for each in model.actuators], "losses", "actuator")
    if not chosen:
        return readings
    filed = {each.name: (each.efficiency, each.backdrive) for each in model.actuators}
    same = {n: filed[n] if min(filed[n]) > 0.0 else (1.0, 1.0) for n in chosen}
    model = with_efficiencies(model, same)
    unknowns = [
        CalibrationParameter(kind, each.name, EFFICIENCY_DEVIATION, getattr(each, kind))
        for each in model.actuators if each.name in same for kind in EFFICIENCIES
    ]  # fmt: skip
    return replace(readings, model=model, unknowns=(*readings.unknowns, *unknowns))


def _guessed(readings: Sensors) -> Sensors:
    """Initialise torque constants without a nominal value at the best fit of the model's forces."""
    if readings.constants is None or not np.isnan(readings.constants).any():
        return readings
    lost = np.isnan(readings.constants)
    trial = replace(readings, constants=np.where(lost, 1.0, readings.constants), unknowns=())
    rows, _, _ = trial.at(np.zeros(0))
    parts = trial._parts(readings.model, np.broadcast_to(trial.closed, (
        *np.broadcast_shapes(trial.closed.shape[:-1], trial.drive.shape[:-1]), readings.model.nq
    )))  # fmt: skip
    needed = rows @ parameters(readings.model).values - parts[..., ~lost].sum(axis=-1)
    inside = np.any(parts[..., lost] != 0.0, axis=(0, 2))
    columns = parts[:, inside][..., lost].reshape(-1, int(lost.sum()))
    right = needed[:, inside].reshape(-1)
    good = np.all(np.isfinite(columns), axis=1)
    size = np.abs(np.linalg.lstsq(columns[good], right[good], rcond=None)[0])
    constants = readings.constants.copy()
    constants[lost] = np.where(size > 0.0, size, 1.0)
    named = dict(zip((each.name for each in readings.model.actuators), constants, strict=True))
    unknowns = [
        replace(u, nominal=float(named[u.name])) if u.kind == "constant" else u
        for u in readings.unknowns
    ]
    return replace(readings, constants=constants, unknowns=tuple(unknowns))
