"""Parameters from measured motions: a fit whose every body can exist."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics import passive_force
from robomodel.errors import as_names, as_real, did_you_mean, few
from robomodel.identification.consistent import Cone, Prior, minimise, possible, solved
from robomodel.identification.regressors import filtered_regressor, regressor
from robomodel.model.joints import Array, Revolute
from robomodel.model.model import Model, as_array, common_batch
from robomodel.model.parameters import INERTIAL, OF_JOINTS, parameters, with_parameters
from robomodel.model.states import check_finite

BODY = len(INERTIAL)
TYPED = 1e-3  # of loops and quaternions: how far measured positions may leave them open
UNKNOWN = 0.05  # of the forces: what a loss is taken to be, where the file says nothing of it
WEAK = 3.0  # the relative deviation of such a loss
POINT = 0.02  # of the robot's longest link: a point mass's extent
PASSES = 20  # of weights
SETTLED = 1e-3  # relative change of weights
FLOOR = 1e-5  # of what moves a coordinate: forces are not known better
HUBER = 1.345  # deviations; of normal noise 5 % of the information is lost
MEDIAN = 1.4826  # deviations in a median's absolute value, of normal noise


@dataclass(frozen=True, eq=False)
class Identified:
    """What motions tell of a robot's parameters, in the order of :func:`robomodel.parameters`.

    ``model`` has the ``values`` (p,). ``covariance`` (p, p): of noise and of what was assumed; zero
    for what was held. ``told`` (p,) of each value: the share of its assumed variance that the
    motions took away; 0: they tell nothing of it, and 1: all is known from them. ``residual``,
    ``before`` and ``forces`` (nv,): root mean squares of each coordinate, in torque's units, of
    measured less predicted forces, of the same with the file's parameters, and of the forces; nan
    where none were measured. ``samples``: states that were used. ``notes``: what to know, in words.
    """

    model: Model
    names: tuple[str, ...]
    values: Array
    covariance: Array
    told: Array
    residual: Array
    before: Array
    forces: Array
    samples: int
    notes: tuple[str, ...]

    @property
    def deviation(self) -> Array:
        """Standard deviations of the values (p,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def __repr__(self) -> str:
        return f"<Identified: {self.model.name}, from {self.samples} samples>"


def identify(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike | None,
    tau: ArrayLike,
    *,
    free: str | Iterable[str] | None = None,
    step: float | None = None,
    cutoff: float = 5.0,
    prior: float = 1.0,
    robust: bool = False,
    balanced: bool = False,
) -> Identified:
    """The parameters that explain measured forces best, near the model's; all bodies can exist.

    Minimises the weighted squares of regressor · π - tau, with γ D(J‖J⁰) for each body, the
    entropic distance of its pseudo-inertia from the model's (Lee, Wensing, Park 2020), which keeps
    it among bodies that exist, and γ (u - 1 - log u), u = x/x⁰, for armature, damping and friction,
    which keeps them positive. γ = 1/``prior``²: what the model says is assumed to be right to about
    that share. What it says nothing of (damping, say) is assumed to take 5 % of the forces, weakly.
    Coordinates weigh by their own residuals, found in some passes.

    ``q`` (..., nq), ``v``, ``a`` and ``tau`` (..., nv): samples, loops closed to 1e-3; ``tau`` is
    nan where not known, and 0 where nothing acts, as on a floating base in the air. Springs are the
    model's. ``a=None``: without accelerations, by :func:`robomodel.filtered_regressor`, from
    motions (..., T, nq) sampled every ``step`` seconds, filtered at ``cutoff`` [Hz].

    ``free``: what may change, as kinds ("mass", "friction", or "inertial" for a body's ten), names
    of parameters, of bodies or joints, or patterns of names ("*_rotor.*"). By default all, but
    armatures of joints with gears or other couplings, whose rotors' inertias stand for them.
    ``robust``: Huber's loss, for outliers. ``balanced``: bodies that are round about their axes in
    the model, as rotors are, stay so, and the dynamics as quick.

    Raises ValueError for arrays that do not fit or are no states, KeyError for unknown names.
    """
    known = parameters(model)
    size = as_real(prior, "prior")
    if not (0.0 < size < math.inf):
        raise ValueError(f"prior must be positive and finite, got {prior!r}")
    changing, asked = _free(model, known.names, free)
    rows, target, share = _measured(model, q, v, a, tau, step, cutoff)
    measured = ~np.isnan(target)
    if not measured.any():
        raise ValueError("no forces to learn from: tau holds no numbers")
    target = np.where(measured, target, 0.0)
    data = _Data(rows, target, measured, share, robust)
    notes: list[str] = []
    nominal = known.values.copy()
    cones = _bodies(model, nominal, changing, asked, notes)
    scalars = _scalars(known.names, nominal, changing, data, notes)
    ways = _ways(model, nominal, changing, asked, balanced)
    if not ways.shape[1]:
        raise ValueError("nothing is free to change")
    spread = np.where(known.values[scalars] > 0.0, size, WEAK)
    assumed = Prior(cones, scalars, nominal, 1.0 / size**2, 1.0 / spread**2)
    values, covariance = _fitted(data, assumed, ways)
    alone = ways @ solved(ways.T @ assumed.slopes(values)[1] @ ways, ways.T)
    told = np.zeros(len(nominal))
    some = np.diag(alone) > 0.0
    told[some] = np.clip(1.0 - np.diag(covariance)[some] / np.diag(alone)[some], 0.0, 1.0)
    return Identified(
        with_parameters(model, values),
        known.names,
        values,
        covariance,
        told,
        data.rms(rows @ values - target),
        data.rms(rows @ known.values - target),
        data.rms(target),
        len(target),
        tuple(notes),
    )


# ---- what is measured ----------------------------------------------------------------------------


def _measured(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike | None,
    tau: ArrayLike,
    step: float | None,
    cutoff: float,
) -> tuple[Array, Array, float]:
    """Rows (n, nv, p), forces (n, nv), nan where not known, and what share of them counts."""
    place, rate = as_array(q, model.nq, "q", "nq"), as_array(v, model.nv, "v", "nv")
    force = as_array(tau, model.nv, "tau", "nv")
    check_finite(np.where(np.isnan(force), 0.0, force), "tau", model.dof_names)
    arrays = {"q": place, "v": rate, "tau": force}
    if a is not None:
        arrays["a"] = as_array(a, model.nv, "a", "nv")
        check_finite(arrays["a"], "a", model.dof_names)
    batch = common_batch(**arrays)
    if 0 in batch:
        raise ValueError("no samples: q, v and tau are empty")
    model.check(place, rate, tolerance=TYPED)
    force = np.broadcast_to(force, (*batch, model.nv))
    if model.springs or any(joint.stiffness for joint in model.joints):
        losses = [name for name in parameters(model).names if name.endswith(".damping")]
        force = force + passive_force(with_parameters(model, dict.fromkeys(losses, 0.0)), q, v)
    share = 1.0
    if a is not None:
        if step is not None:
            raise ValueError("step is for motions without accelerations (a=None)")
        rows = regressor(model, place, rate, arrays["a"])
    else:
        if step is None:
            raise ValueError("without accelerations (a=None) step is needed: seconds per sample")
        place = np.broadcast_to(place, (*batch, model.nq))
        rows, force = filtered_regressor(model, place, rate, force, step, cutoff=cutoff)
        # noise that was filtered repeats itself: a lag's samples count as so many fewer
        share = math.tanh(math.pi * cutoff * step)
    rows = np.broadcast_to(rows, (*batch, *rows.shape[-2:])).reshape(-1, *rows.shape[-2:])
    return rows, force.reshape(-1, model.nv), share


@dataclass(frozen=True)
class _Data:
    """Rows (n, nv, p) and forces (n, nv), where known; what share of samples counts; the loss."""

    rows: Array
    forces: Array
    measured: Array
    share: float
    robust: bool

    def rms(self, x: Array) -> Array:
        """Of each coordinate (nv,), over the samples that are known; nan without any."""
        count = self.measured.sum(0)
        total = np.sqrt(np.sum(np.where(self.measured, x, 0.0) ** 2, axis=0) / np.maximum(count, 1))
        return np.where(count > 0, total, np.nan)

    def levels(self, nominal: Array) -> Array:
        """What acts in each coordinate (nv,), by size: sums of forces may cancel, these do not."""
        parts = np.sqrt(np.einsum("tip,p->ti", self.rows**2, nominal**2))
        return np.fmax(np.fmax(self.rms(parts), self.rms(self.forces)), 1e-300)

    def spread(self, error: Array, lost: Array) -> Array:
        """Deviation (nv,) of each coordinate; ``lost``: share of its samples that the fit took."""
        own = self.rms(error)
        if self.robust:
            hidden = np.where(self.measured, np.abs(error), np.nan)
            own = np.where(np.isnan(own), np.nan, 0.0)
            some = ~np.isnan(own)
            own[some] = MEDIAN * np.nanmedian(hidden[:, some], axis=0)
        return np.asarray(own / np.sqrt(np.maximum(1.0 - lost, 0.05)))

    def weights(self, error: Array, spread: Array) -> Array:
        """Square roots of weights (n, nv)."""
        found = np.where(self.measured, math.sqrt(self.share) / spread, 0.0)
        if self.robust:
            found *= np.sqrt(np.minimum(1.0, HUBER * spread / np.maximum(np.abs(error), 1e-300)))
        return found


def _fitted(data: _Data, assumed: Prior, ways: Array) -> tuple[Array, Array]:
    """Values (p,) and their covariance (p, p): weights and values in turn, until they settle."""
    nominal = assumed.nominal
    level = data.levels(nominal)
    error = data.rows @ nominal - data.forces
    gap = -error
    columns = data.rows @ ways
    lost = np.zeros(len(level))
    z = np.zeros(ways.shape[1])
    count = np.maximum(data.measured.sum(0), 1)
    spread = np.ones(len(level))
    for n in range(PASSES):
        before, spread = spread, np.fmax(data.spread(error, lost), FLOOR * level)
        if n and np.all(np.abs(spread / before - 1.0) < SETTLED):
            break
        weights = data.weights(error, spread)
        a = (columns * weights[..., None]).reshape(-1, columns.shape[2])
        gram = a.T @ a
        z = minimise(gram, a.T @ (gap * weights).ravel(), assumed, ways, z)
        error = columns @ z - gap
        second = gram + ways.T @ assumed.slopes(nominal + ways @ z)[1] @ ways
        inverse = np.asarray(solved(second, np.eye(len(second))))
        leverage = np.einsum("ij,ij->i", a @ inverse, a).reshape(error.shape)
        lost = leverage.sum(0) / (count * data.share)
    return nominal + ways @ z, ways @ inverse @ ways.T


# ---- what may change -----------------------------------------------------------------------------


def _free(
    model: Model, names: tuple[str, ...], free: str | Iterable[str] | None
) -> tuple[Array, Array]:
    """Which parameters (p,) may change, and which of them were asked for by their own names."""
    owners = [name.rpartition(".")[0] for name in names]
    kinds = [name.rpartition(".")[2] for name in names]
    asked = np.zeros(len(names), dtype=bool)
    if free is None:
        geared = {joint for coupling in model.couplings for joint, _ in coupling.terms}
        held = [k == "armature" and o in geared for k, o in zip(kinds, owners, strict=True)]
        return ~np.array(held, dtype=bool), asked
    found = np.zeros(len(names), dtype=bool)
    for word in as_names(free, "free"):
        if word in INERTIAL or word in OF_JOINTS:
            found |= [kind == word for kind in kinds]
            continue
        if word == "inertial":
            found |= [kind in INERTIAL for kind in kinds]
            continue
        exact = [word in (name, owner) for name, owner in zip(names, owners, strict=True)]
        here = exact if any(exact) else [fnmatchcase(name, word) for name in names]
        if not any(here):
            hint = did_you_mean(word, [*names, *owners, *INERTIAL, *OF_JOINTS, "inertial"])
            raise KeyError(f"free: no parameter, kind, body or joint '{word}'{hint}")
        found |= here
        asked |= [name == word for name in names]
    return found, asked


def _bodies(
    model: Model, nominal: Array, changing: Array, asked: Array, notes: list[str]
) -> list[Cone]:
    """The cones of bodies that may change, which exist in ``nominal`` from here on.

    What bodies without mass lack is held.
    """
    extents = [math.hypot(*map(float, node.offset)) for node in model.nodes]
    length = POINT * (max(extents, default=0.0) or 1.0)
    cones, raised, empty = [], [], []
    for i, body in enumerate(model.bodies):
        at = slice(BODY * i, BODY * (i + 1))
        if not changing[at].any():
            continue
        own = possible(nominal[at], length)
        lacks = np.zeros(BODY, dtype=bool)
        if own[0] == 0.0:
            lacks[: 4 if own[4:].any() else BODY] = True
        if (asked[at] & lacks).any():
            what = "mass" if own[4:].any() else "mass and no inertia"
            raise ValueError(
                f"'{body.name}' has no {what} to begin with; give it some by rm.with_parameters"
            )
        changing[at] = changing[at] & ~lacks
        if lacks.all():
            empty.append(body.name)
            continue
        if not np.array_equal(own, nominal[at]):
            raised.append(body.name)
            nominal[at] = own
        if changing[at].any():
            cones.append(Cone.of(BODY * i, own))
    if raised:
        notes.append(
            f"could not exist as the model has them (flat, or without extent), and were given some "
            f"to begin with: {few(raised)}"
        )
    if empty:
        notes.append(f"have neither mass nor inertia, and keep none: {few(empty)}")
    return cones


def _scalars(
    names: tuple[str, ...], nominal: Array, changing: Array, data: _Data, notes: list[str]
) -> Array:
    """The places of joints' parameters that may change, all positive in ``nominal`` from here on.

    Held is what is zero and never felt.
    """
    level = data.levels(nominal)
    places, idle = [], []
    for i, name in enumerate(names):
        if not changing[i] or name.rpartition(".")[2] not in OF_JOINTS:
            continue
        column = np.where(data.measured, data.rows[..., i] / level, 0.0)
        felt = np.abs(column).max() > 0.0
        if nominal[i] <= 0.0:
            if not felt:
                changing[i] = False
                idle.append(name)
                continue
            size = np.where(column != 0.0, data.forces / level, 0.0)
            force = np.linalg.norm(size) or math.sqrt(np.count_nonzero(column))
            nominal[i] = UNKNOWN * force / np.linalg.norm(column)
        places.append(i)
    if idle:
        notes.append(f"were never felt, and stay zero: {few(idle)}")
    return np.array(places, dtype=int)


def _ways(model: Model, nominal: Array, changing: Array, asked: Array, balanced: bool) -> Array:
    """The directions (p, f) in which parameters may change."""
    columns: list[Array] = []
    unit = np.eye(len(nominal))
    tied: set[int] = set()
    for i, node in enumerate(model.nodes if balanced else ()):
        at = slice(BODY * i, BODY * (i + 1))
        places = np.flatnonzero(changing[at])
        if not (node.spins and isinstance(node.joint, Revolute)) or asked[at].any():
            continue
        axis = np.array([float(row[node.joint.k]) for row in node.axes])
        along = np.outer(axis, axis)
        across = np.eye(3) - along
        upper = np.triu_indices(3)
        own = np.zeros((4, BODY))
        own[0, 0] = 1.0
        own[1, 1:4] = axis
        own[2, 4:], own[3, 4:] = along[upper], across[upper]
        own = own[[np.all(np.isin(np.flatnonzero(row), places)) for row in own]]
        for row in own:
            column = np.zeros(len(nominal))
            column[at] = row
            columns.append(column)
        tied.update(range(at.start, at.stop))
    columns += [unit[i] for i in np.flatnonzero(changing) if i not in tied]
    return np.array(columns).reshape(-1, len(nominal)).T
