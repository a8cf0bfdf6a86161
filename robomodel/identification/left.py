"""The rest that a fit leaves of the forces, and columns that could explain it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robomodel.arrays import Array, Indices
from robomodel.dynamics import gravity_force
from robomodel.dynamics.physical import ParameterPrior
from robomodel.identification.checks import (
    CHANCE,
    LEAST_SAMPLES,
    SHAPES,
    FrictionForm,
    TriedForm,
    asymmetry,
    friction_forms,
    friction_shapes,
    loads_certain,
    tried_forms,
)
from robomodel.identification.fit import Data, Trial, Trials
from robomodel.identification.sensors import Motion, Sensors
from robomodel.model.model import Model
from robomodel.model.parameters import parameters
from robomodel.tolerances import TINY

if TYPE_CHECKING:
    from robomodel.identification.identified import Identified

FORM_BLOCKS = 8  # of time, in which forms of friction are compared
# net share of samples in which a joint's velocity lifts its load, and how many are looked at
LIFTS, LIFTS_LOOKED_AT = 0.9, 200


@dataclass(frozen=True, eq=False)
class Left:
    """A fit's data, and columns that could explain the rest; ``x``: its unknowns of sensors.

    ``model``: the robot as it was identified.
    """

    model: Model
    readings: Sensors
    data: Data
    prior: ParameterPrior
    values: Array
    x: Array

    @cached_property
    def motion(self) -> Motion:
        """The motion."""
        return self.readings.motion(self.x)

    def late(self, delay: float) -> Array:
        """Measured forces (n, nv) that come so much later [s]."""
        return self.readings.late(self.motion, self.x, delay)

    def felt(self, i: int) -> Array:
        """The columns (n, ·) of the parameters that a coordinate feels."""
        rows = self.motion.rows[:, i]
        return rows[:, rows.any(axis=0)]

    def trials(self, columns: Sequence[Array]) -> Trials:
        """Trials of further columns of each coordinate (n, k)."""
        return Trials.of(self.data, self.readings, self.prior, self.values, self.x, columns)

    def delays(self, step: float) -> Trial:
        """A delay of each coordinate's forces, as far as they are complete."""
        late = (self.late(0.5 * step) - self.late(-0.5 * step)) / step
        whole = self.data.measured.all(axis=0)
        slopes = np.where(whole & np.isfinite(late) & self.data.measured, late, 0.0)
        return self.trials(list(slopes.T[..., None]))(range(self.model.nv))

    @cached_property
    def moving(self) -> list[str]:
        """Coordinates of joints with one freedom that move and whose forces are measured."""
        single = {joint.name for joint in self.model.joints if joint.nv == 1}
        return [
            name for i, name in enumerate(self.model.dof_names)
            if name in single
            and np.count_nonzero(self.data.measured[:, i]) >= LEAST_SAMPLES
            and np.any(self.motion.rate(name)[0])
        ]  # fmt: skip

    def directions(self, fit: Identified) -> dict[str, str]:
        """The stronger way, in words, of joints whose friction certainly differs by direction."""
        found = {(each.name, each.kind): each.value for each in fit.sensors}
        sure = {
            x.name
            for x in fit.sensors
            if x.kind in ("bias", "damping difference") and abs(x.value) > CHANCE * x.deviation
        }
        result = {}
        for name in self.moving:
            if name in sure and (bias := found.get((name, "bias"))) is not None:
                half = found.get((name, "damping difference"), 0.0) * self.speed(name)
                words = asymmetry(self.resisting(name), bias, half, self.up.get(name, 0))
                result[name] = f" ({words})"
        return result

    def resisting(self, name: str) -> float:
        """Mean of Coulomb's and viscous friction of a coordinate in the fit [N m or N]."""
        i = self.model.dof_names.index(name)
        losses = [each.endswith((".friction", ".damping")) for each in parameters(self.model).names]
        force = self.motion.rows[:, i, losses] @ self.values[losses]
        sign = np.nan_to_num(self.readings.shaped(self.motion, name, [np.sign])[:, 0])
        return float(sign @ force) / max(float(sign @ sign), TINY)

    def speed(self, name: str) -> float:
        """Mean speed of a joint [rad/s or m/s]."""
        return float(np.mean(np.abs(self.motion.rate(name)[0])))

    @cached_property
    def up(self) -> dict[str, int]:
        """1 for coordinates whose positive velocities lift a load throughout, -1 if they lower it.

        By the model's gravity at some of the samples.
        """
        q = self.motion.q.reshape(-1, self.model.nq)
        pull = gravity_force(self.motion.model, q[:: max(1, len(q) // LIFTS_LOOKED_AT)])
        sure = np.abs(np.sum(np.sign(pull), axis=0)) > LIFTS * len(pull)
        return {
            name: int(np.sign(np.sum(pull[:, i])))
            for i, name in enumerate(self.model.dof_names)
            if sure[i] and np.any(np.abs(pull[:, i]) > TINY)
        }

    @cached_property
    def fastest(self) -> list[float]:
        """The largest speeds of the joints that move."""
        return [float(np.max(np.abs(self.motion.rate(name)[0]))) for name in self.moving]

    @cached_property
    def shapes(self) -> Trials:
        """Trials of friction that the parameters cannot say, of the joints that move."""
        columns = [np.zeros((len(self.data.forces), 0)) for _ in self.model.dof_names]
        for name, fastest in zip(self.moving, self.fastest, strict=True):
            i = self.model.dof_names.index(name)
            there = self.data.measured[:, i]
            shapes = self.readings.shaped(self.motion, name, friction_shapes(fastest))
            columns[i] = np.where(there[:, None], shapes, 0.0)
        return self.trials(columns)

    @cached_property
    def growing(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """Friction that grows with the load: of gears, and of joints without one that may."""
        gears, joints = self.readings.growing(self.model)
        return gears, {name: x for name, x in joints.items() if name in self.moving}

    @cached_property
    def loaded(self) -> Trials:
        """Trials of shapes, and of friction that grows with the load."""
        every = [x for loads in self.growing for x in loads.values()]
        return self.shapes.beside(every) if every else self.shapes

    @cached_property
    def loads(self) -> tuple[dict[str, tuple[int, ...]], dict[str, float]]:
        """Places of the columns of loads, and by which shares of them friction certainly grows."""
        places, first = dict[str, tuple[int, ...]](), SHAPES * len(self.moving)
        for name, x in [pair for loads in self.growing for pair in loads.items()]:
            places[name] = tuple(range(first, first + x.shape[-1]))
            first += x.shape[-1]
        return places, loads_certain(self.moving, self.loaded, places)

    @cached_property
    def forms(self) -> list[FrictionForm]:
        """Friction that the parameters cannot say, as far as it is certain."""
        names = self.moving
        speeds, resisting = ([f(name) for name in names] for f in (self.speed, self.resisting))
        forms = friction_forms(names, self.shapes, self.fastest, speeds, resisting) if names else []
        return [replace(form, up=self.up.get(form.name, 0)) for form in forms]

    def tried(self) -> list[TriedForm]:
        """Forms of friction, compared by the prediction of blocks of time not seen."""
        count = len(self.data.forces)
        if not self.moving or count < FORM_BLOCKS * LEAST_SAMPLES:
            return []
        (places, certain), gears = self.loads, self.growing[0]
        return tried_forms(
            self.moving,
            self.loaded,
            blocks_of(FORM_BLOCKS, count),
            np.where(self.data.measured, self.data.forces, 0.0),
            self.forms,
            {name: places[name] for name in gears if not certain.keys().isdisjoint(gears)},
        )


def blocks_of(folds: int, count: int) -> list[Indices]:
    """The indices of the samples in each block of time."""
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 0 or folds == 1:
        raise ValueError(f"folds is 0 or at least 2, got {folds!r}")
    if folds > count:
        raise ValueError(f"folds: {count} samples make no {folds} blocks")
    return [np.asarray(each) for each in np.array_split(np.arange(count), folds)] if folds else []
