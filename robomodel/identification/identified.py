"""Results of identifications: parameters, combinations, calibrated quantities of sensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from robomodel.arrays import Array
from robomodel.errors import as_real
from robomodel.identification.base import base_parameters
from robomodel.identification.checks import TriedForm
from robomodel.identification.fit import rms
from robomodel.model.model import Model
from robomodel.model.parameters import OF_JOINTS, unit_of

UNKNOWN_SHARE = 0.1  # information gain below which a parameter counts as unknown
POORLY_LEFT = 0.1  # share of forces that fits to a right log seldom leave
SURE = 2.0  # deviations above which a change is sure
# the least share of a coordinate's forces of a change that is listed, sure or not
NOTED, NOTED_UNSURE = 1e-3, 1e-2


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibrated quantity of a sensor or joint.

    Attributes:
        kind: "offset", "ratio", "constant", "efficiency", "backdrive", "static friction",
            "Stribeck velocity", "bias", "damping difference" or "delay".
        name: Name of the joint, coupling, actuator or coordinate.
        value: An encoder's offset [rad or m], to be added to its reading; a coupling's ratio, of
            its dependent joint to the next; a motor's torque constant [N m/A]; the excess of
            static over Coulomb friction [N m or N], at a Stribeck velocity [rad/s or m/s]; a
            constant force of friction [N m or N], positive where it is stronger at positive
            velocity; half the difference of damping at positive and negative velocity; or the
            delay [s] of the forces behind the motion.
        deviation: Standard deviation of the value.
    """

    kind: str
    name: str
    value: float
    deviation: float

    @property
    def title(self) -> str:
        """Its description in words."""
        what = {
            "offset": "zero of the encoder of",
            "constant": "torque constant of",
            "efficiency": "efficiency while it drives of",
            "backdrive": "efficiency while it is driven of",
            "static friction": "static friction above Coulomb's of",
            "damping difference": "half the difference of damping both ways of",
        }
        return f"{what.get(self.kind, f'{self.kind} of')} {self.name}"


@dataclass(frozen=True, slots=True)
class IdentifiedGroup:
    """An identifiable combination of parameters, and its estimate.

    Attributes:
        name: The combination in words, such as "damping of j1 + 81 damping of j1_rotor".
        value: Its value, in ``unit``.
        deviation: Standard deviation of the value.
        unit: Unit of its first parameter.
        information_gain: The fraction of its prior variance that the data removed.
        coefficients: Coefficients by parameter.
        pivot: Its first parameter, of coefficient 1: the forces of the combination are those of it.
    """

    name: str
    value: float
    deviation: float
    unit: str
    information_gain: float
    coefficients: Mapping[str, float]
    pivot: str

    @property
    def known(self) -> bool:
        """True if the information gain is a tenth or more."""
        return self.information_gain >= UNKNOWN_SHARE


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A combination that a fit has changed, by the forces that this makes.

    Attributes:
        group: The combination.
        before: Its value in the file.
        coordinate: The coordinate whose forces changed most, by their root mean square.
        force: Root mean square of the change of its force [N m or N].
        share: The same, relative to the force.
    """

    group: IdentifiedGroup
    before: float
    coordinate: str
    force: float
    share: float


@dataclass(frozen=True, eq=False)
class Identified:
    """Identified parameters of a robot, in the order of :func:`robomodel.parameters`.

    Attributes:
        model: The robot with the identified values and gear ratios.
        names: Names of the parameters.
        values: Their values (p,).
        covariance: Posterior covariance (p, p), from noise and prior; zero for held parameters.
        prior_covariance: Prior covariance (p, p).
        before: Root mean square of each coordinate's residual (nv,) [N m, N], measured less
            predicted force, with the file's parameters; nan without measurements.
        sensors: Calibrated offsets, ratios and torque constants.
        measured: Forces of all samples (n, nv), nan where not measured (filtered without
            accelerations).
        predicted: The forces predicted with the identified values.
        file: The forces predicted with the file's parameters.
        validation: As ``before``, for forces in blocks of time that the fit did not use; nan
            without ``folds``.
        notes: Remarks on the fit, as text.
        suspicions: Suspected errors of the measurements, as text: units, signs, limits, delays.
        times: Times of the samples (n,) [s], or None.
        effective: For each coordinate (nv,) the number of samples with independent errors that
            tell as much of a mean force as the log's, whose errors are alike for some time; of a
            linkage the least of its forces; nan without a fit.
        effects: Root mean square (p, nv) of the forces of each parameter by its unit.
        positions: Positions (n, nv) of coordinates that are joints' own; nan of others.
        velocities: Their velocities.
        forms: With ``friction="auto"``, the forms of friction that were compared.
    """

    model: Model
    names: tuple[str, ...]
    values: Array
    covariance: Array
    prior_covariance: Array
    before: Array
    sensors: tuple[Calibrated, ...]
    measured: Array
    predicted: Array
    file: Array
    validation: Array
    notes: tuple[str, ...]
    suspicions: tuple[str, ...]
    times: Array | None
    effective: Array
    effects: Array
    positions: Array
    velocities: Array
    forms: tuple[TriedForm, ...] = ()

    @property
    def fitted(self) -> bool:
        """False for a prediction, in which nothing was free."""
        return bool(np.any(self.covariance)) or bool(self.sensors)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.measured)

    @property
    def residual(self) -> Array:
        """As ``before``, with the identified values."""
        return rms(self.predicted - self.measured)

    @property
    def forces(self) -> Array:
        """Root mean squares of measured forces (nv,)."""
        return rms(self.measured)

    @property
    def information_gain(self) -> Array:
        """The fraction of each value's prior variance (p,) that the data removed.

        0: the data do not determine it; 1: they determine it fully.
        """
        before, after = np.diag(self.prior_covariance), np.diag(self.covariance)
        gain = np.clip(1.0 - after / np.where(before > 0.0, before, 1.0), 0.0, 1.0)
        return np.where(before > 0.0, gain, 0.0)

    @property
    def deviation(self) -> Array:
        """Standard deviations of the values (p,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Free parameters with an information gain below a tenth."""
        free = np.diag(self.covariance) > 0.0
        rows = zip(self.names, self.information_gain, free, strict=True)
        return tuple(name for name, share, is_one in rows if is_one and share < UNKNOWN_SHARE)

    @cached_property
    def groups(self) -> tuple[IdentifiedGroup, ...]:
        """The identifiable combinations of parameters, with their estimates.

        The rows of :func:`robomodel.base_parameters` that contain a free parameter. A combination
        may be determined although its terms are not: for example, only the sum of a geared joint's
        damping and its rotor's is.
        """
        base = base_parameters(self.model)
        values = base.matrix @ self.values
        variances = np.einsum("ip,pq,iq->i", base.matrix, self.covariance, base.matrix)
        assumed = np.einsum("ip,pq,iq->i", base.matrix, self.prior_covariance, base.matrix)
        result = []
        for name, pivot, row, value, variance, before in zip(
            base.names, base.pivots, base.matrix, values, variances, assumed, strict=True
        ):
            if before > 0.0:
                gain = min(max(1.0 - float(variance / before), 0.0), 1.0)
                result.append(
                    IdentifiedGroup(
                        name,
                        float(value),
                        math.sqrt(max(float(variance), 0.0)),
                        unit_of(self.model, self.names[pivot]),
                        gain,
                        {n: float(x) for n, x in zip(self.names, row, strict=True) if x},
                        self.names[pivot],
                    )
                )
        return tuple(result)

    def changes(self, before: Array) -> list[GroupChange]:
        """Identifiable combinations by the forces that their change makes, the largest first.

        Of those that changed by more than two deviations, or by a hundredth of the forces.

        Args:
            before: The values (p,).

        Returns:
            changes: At most twelve.
        """
        forces = np.where(self.forces > 0.0, self.forces, np.inf)
        at = {name: i for i, name in enumerate(self.names)}
        found = []
        for group in self.groups:
            old = sum(k * float(before[at[n]]) for n, k in group.coefficients.items())
            made = abs(group.value - old) * self.effects[at[group.pivot]]
            share = np.nan_to_num(made / forces)
            where = int(np.argmax(share))
            sure = abs(group.value - old) > SURE * group.deviation
            if share[where] > (NOTED if sure else NOTED_UNSURE):
                change = GroupChange(group, old, self.model.dof_names[where], float(made[where]),
                                     float(share[where]))  # fmt: skip
                found.append(change)
        return sorted(found, key=lambda each: -each.share)[:12]

    def interval(self, level: float = 0.95) -> Array:
        """Confidence intervals of the values, for normal errors.

        Lower ends of masses, losses and armatures are not negative.

        Args:
            level: The probability.

        Returns:
            ends: Lower and upper end of each (p, 2).
        """
        share = as_real(level, "level")
        if not 0.0 < share < 1.0:
            raise ValueError(f"level is a probability between 0 and 1, got {level!r}")
        reach = NormalDist().inv_cdf(0.5 + 0.5 * share) * self.deviation
        ends = np.stack([self.values - reach, self.values + reach], axis=-1)
        positive = [name.rpartition(".")[2] in ("mass", *OF_JOINTS) for name in self.names]
        ends[positive] = np.maximum(ends[positive], np.minimum(self.values[positive], 0.0)[:, None])
        return ends

    @property
    def poor(self) -> bool:
        """True if a tenth of a coordinate's forces or more is left."""
        return bool(np.any(self.residual > POORLY_LEFT * self.forces))

    def __repr__(self) -> str:
        return f"<Identified: {self.model.name}, from {self.samples} samples>"
