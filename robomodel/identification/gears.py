"""Gears in a measured motion: what reaches the joints of the motors' forces, and other ratios.

Of a motor's force P, less what its rotor and bearing take, η P reaches the joints while it drives,
and P/η_b while they drive it (both as of :class:`robomodel.dynamics.contact.problem.Meshes`). So
the rest is known at each time from the measured force, and linear parameters stay linear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array, Mask
from robomodel.dynamics import actuator_map as map_of_motors
from robomodel.dynamics import motor_forces, passive_force
from robomodel.dynamics import rnea as forces
from robomodel.dynamics.actuators.maps import actuator_map
from robomodel.dynamics.actuators.maps import forces as required
from robomodel.dynamics.baselines import spanning_tree
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.errors import UnknownNameError, as_names, check_names, few
from robomodel.model.efficiencies import with_efficiencies
from robomodel.model.model import Model
from robomodel.model.parameters import closed_anew, parameterized
from robomodel.scalars import stack, unstack
from robomodel.tolerances import TINY

BEFORE = "damping", "friction", "armature"
"""Parameters of joints whose forces motors give before their gears."""

LEAST_PHASE = 0.01  # share of the squares of a gear's force that tells an efficiency


@dataclass(frozen=True, eq=False)
class Gears:
    """The motors with lossy gears ``at`` these places, in a motion (...).

    ``rates`` and ``own`` (..., m): their rates, and the forces that rotors take; ``bearings`` (...,
    m, 3): those of bearings at unit damping and unit friction, and without a rotor those of a unit
    armature, and ``resisting`` (..., m) those of the model's; ``matrix`` (..., nv, nu): B.
    ``needed`` (..., nv): forces that a model needs without losses, whose signs tell where motors
    drive. The measured ones do where it is None; their errors then take some samples for the other
    way.
    """

    at: tuple[int, ...]
    rates: Array
    own: Array
    bearings: Array
    resisting: Array
    matrix: Array
    needed: Array | None = None

    @staticmethod
    def of(
        model: Model, at: Sequence[int], q: Array, v: Array, a: Array,
        wrenches: Mapping[str, ArrayLike] | None = None, *, predicted: bool = False,
    ) -> Gears:  # fmt: skip
        """Gears in motions (..., ·) with accelerations a; rotors have the numbers of ``model``.

        ``predicted``: the model tells where motors drive, under ``wrenches``.
        """
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], a.shape[:-1])
        q, v, a = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, v, a))
        entries = [x for row in actuator_map(model, unstack(q)) for x in row]
        matrix = stack(entries, batch).reshape(*batch, model.nv, len(model.actuators))
        g = model.constraint_jacobian(q)
        speeds = np.einsum("...ij,...j->...i", g, v)
        pulls = np.einsum("...ij,...j->...i", g, a) + model.constraint_bias(q, v)
        places = model.spanning_positions(unstack(q))
        torques = rnea(spanning_tree(model), places, unstack(speeds), unstack(pulls))
        rates, own, bearings, resisting = (list[Array]() for _ in range(4))
        for actuator in (model.actuators[n] for n in at):
            rates.append(np.sum([k * speeds[..., row] for row, k in actuator.rows], axis=0))
            row, k = actuator.rows[0]
            joint, w = model.joints[model.joint_names.index(actuator.joint)], speeds[..., row]
            unit, force = np.zeros((*batch, len(BEFORE))), np.zeros(batch)
            if actuator.turns_rotor:
                unit[..., :2] = np.stack([w, np.sign(w)], axis=-1) / k
                force = (np.asarray(torques[row]) + joint.law.force(w)) / k
            elif len(actuator.rows) == 1:
                unit[..., 2] = pulls[..., row] / k
            own.append(force)
            bearings.append(unit)
            resisting.append(unit @ np.array([getattr(joint, kind) for kind in BEFORE]))
        needed = None
        if predicted:
            resist = [
                joint.damping * w + joint.friction * np.sign(w) + joint.law.force(w)
                if joint.nv == 1 else 0.0 * w
                for joint, node in zip(model.joints, model.nodes, strict=True)
                for w in (speeds[..., row] for row in node.freedoms)
            ]  # fmt: skip
            needed = carried(model, q, v, a, wrenches)
            needed = needed + np.einsum("...ij,...i->...j", g, np.stack(resist, axis=-1))
        return Gears(
            tuple(at), np.stack(rates, axis=-1), np.stack(own, axis=-1),
            np.stack(bearings, axis=-2), np.stack(resisting, axis=-1), matrix, needed,
        )  # fmt: skip

    def through(self, drive: Array) -> Array:
        """Forces (..., m) behind the rotors, of the motors' generalised forces (..., nv)."""
        return np.asarray(np.einsum("...ij,...j->...i", self._inverse, drive) - self.own)

    def driving(self, drive: Array) -> Mask:
        """Where motors drive their joints (..., m)."""
        return self._drives(drive) if self.needed is None else self._expected

    def _drives(self, drive: Array) -> Mask:
        return np.asarray((self.through(drive) - self.resisting) * self.rates > 0.0)

    @cached_property
    def _expected(self) -> Mask:
        assert self.needed is not None
        return self._drives(self.needed)

    @cached_property
    def _inverse(self) -> Array:
        """Forces of these motors (..., m, nv) by generalised forces."""
        return np.asarray(np.linalg.pinv(self.matrix)[..., list(self.at), :])

    def gains(self, drive: Array, efficiencies: Array) -> Array:
        """Shares (..., m) of the forces that reach the joints, by efficiencies (m, 2)."""
        forward, back = efficiencies.T
        return np.asarray(np.where(self.driving(drive), forward, 1.0 / back))

    def before(self, drive: Array, efficiencies: Array) -> Array:
        """Matrices (..., nv, nv) from errors of forces behind the gears to those of the motors'.

        Errors of these pass gears: behind one they are η_f as large while its motor drives, and
        1/η_b while it is driven.
        """
        less = (1.0 / self.gains(drive, efficiencies) - 1.0)[..., None] * self._inverse
        return np.asarray(np.eye(less.shape[-1]) + self._columns @ less)

    def lost(self, drive: Array, efficiencies: Array) -> Array:
        """Generalised forces (..., nv) that gears lose of the motors', without their bearings."""
        share = (1.0 - self.gains(drive, efficiencies)) * self.through(drive)
        return np.asarray(np.einsum("...im,...m->...i", self._columns, share))

    def lost_of_bearings(self, drive: Array, efficiencies: Array) -> Array:
        """The same (..., nv, m, 3) of the ``bearings``."""
        share = (1.0 - self.gains(drive, efficiencies))[..., None] * self.bearings
        return np.asarray(np.einsum("...im,...mk->...imk", self._columns, share))

    @property
    def moved(self) -> Mask:
        """The coordinates (nv,) that these motors move."""
        felt: Mask = np.any(self._columns != 0.0, axis=-1)
        return np.asarray(felt.reshape(-1, felt.shape[-1]).any(axis=0))

    def phases(self, drive: Array) -> Array:
        """Shares (m, 2) of the squares of the forces behind the rotors, driving and driven."""
        squares, ahead = self.through(drive) ** 2, self.driving(drive)
        axes = tuple(range(squares.ndim - 1))
        driven = np.nansum(np.where(ahead, 0.0, squares), axis=axes)
        back = driven / np.maximum(np.nansum(squares, axis=axes), TINY)
        return np.stack([1.0 - back, back], axis=-1)

    @property
    def predicted(self) -> tuple[Array, Array]:
        """Generalised forces (..., nv, m) that reach the joints, while motors drive and if not.

        As the model needs them.
        """
        assert self.needed is not None
        parts = self._columns * (self.through(self.needed) - self.resisting)[..., None, :]
        ahead = self.driving(self.needed)[..., None, :]
        return np.where(ahead, parts, 0.0), np.where(ahead, 0.0, parts)

    @cached_property
    def _columns(self) -> Array:
        return np.asarray(self.matrix[..., list(self.at)])


@dataclass(frozen=True)
class Losses:
    """The gears of these actuators, whose efficiencies are to be told; ``model`` has them."""

    model: Model
    names: tuple[str, ...]

    @staticmethod
    def of(model: Model, wanted: bool | str | Iterable[str]) -> Losses:
        """All gears, none, or those of the named actuators; UnknownNameError for other names."""
        every = tuple(each.name for each in model.actuators)
        names = (
            (every if wanted else ()) if isinstance(wanted, bool) else as_names(wanted, "losses")
        )
        check_names(names, every, "losses: no actuator ", error=UnknownNameError)
        filed = {each.name: (each.efficiency, each.backdrive) for each in model.actuators}
        return Losses(with_efficiencies(model, {name: filed[name] for name in names}), names)

    def gears(self, q: Array, v: Array, a: Array) -> Gears:
        """The gears in motions (..., ·); the model tells where motors drive."""
        at = [n for n, each in enumerate(self.model.actuators) if each.name in self.names]
        return Gears.of(self.model, at, q, v, a, predicted=True)

    def beside(self, rows: Array, q: Array, v: Array, a: Array) -> Array:
        """Regressors (..., nv, p), and columns of the forces through each gear, for both ways."""
        return np.concatenate([rows, *self.gears(q, v, a).predicted], -1) if self.names else rows

    def notes(self, q: Array, v: Array, a: Array) -> list[str]:
        """Which gears never drive, or are never driven, in a motion."""
        if not self.names:
            return []
        gears = self.gears(q, v, a)
        assert gears.needed is not None
        shares = gears.phases(gears.needed)
        names = [each.name for each in self.model.actuators if each.name in self.names]
        result = []
        for way, column in zip(("drives", "is driven"), shares.T, strict=True):
            if weak := [n for n, x in zip(names, column, strict=True) if not x >= LEAST_PHASE]:
                result.append(
                    f"in this motion these motors' gear hardly ever {way}, so that its efficiency "
                    f"there is not told: {few(weak)}; other gravity, friction or a load change it"
                )
        return result


def carried(
    model: Model, q: Array, v: Array, a: Array, wrenches: Mapping[str, ArrayLike] | None
) -> Array:
    """Generalised forces (..., nv) that motions need, with springs and without any friction."""
    needed = forces(model, q, v, a, f_ext=wrenches or None)
    needed = needed - passive_force(model, q, np.zeros(model.nv))
    for joint, node in zip(model.joints, model.nodes, strict=True):
        if joint.law.bias:  # counted among springs
            (row,) = node.freedoms
            needed = needed - joint.law.bias * model.constraint_jacobian(q)[..., row, :]
    return needed


def given_by_motors(
    model: Model, driven: ArrayLike, q: Array, v: Array, a: Array, tau: Array
) -> tuple[Array, Array]:
    """Forces on coordinates (..., nv), and of motors (..., nu), by those of inverse dynamics.

    With losses in gears the ``driven`` (nv,) coordinates have what motors give, times the ratios.
    """
    if not model.actuators:
        return tau, np.zeros((*tau.shape[:-1], 0))
    matrix, driven = map_of_motors(model, q), np.asarray(driven, dtype=bool)
    u = required(matrix, np.where(driven, tau, 0.0))
    u = np.where(np.isnan(u) & ~np.isnan(tau[..., :1]), np.inf, u)
    if not any(each.lossy for each in model.actuators):
        return tau, u
    u = np.where(np.isfinite(u), motor_forces(model, q, v, a), u)
    given = np.einsum("...ij,...j->...i", matrix, u)
    return np.where(driven & np.isfinite(given), given, tau), u


def with_ratios(model: Model, factors: Mapping[str, float]) -> Model:
    """The model with its couplings' ratios multiplied by ``factors``.

    ``factors``: by the couplings' names; a mimic has its joint's name.
    """
    values: dict[str, float] = {}
    for each in model.couplings:
        if each.name in factors:
            dependent = next(n for n, _ in each.terms if not _independent(model, n))
            others = {f"{each.name}.{n}": k for n, k in each.terms if n != dependent}
            values |= {name: factors[each.name] * k for name, k in others.items()}
    return closed_anew(parameterized(model, values), model)


def _independent(model: Model, name: str) -> bool:
    return model.joints[model.joint_names.index(name)].independent
