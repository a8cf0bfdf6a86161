"""Bodies of open trees that move as the robot does where no bodies move exactly so.

An open tree's torques are linear in its parameters π: those of bodies, armatures and tendons, which
need not be the links' own. They are fitted to the exact torques in the measure by which trees are
judged (:mod:`.errors`): over states on the sheet,

    min Σⱼ wⱼ Σₙ ρ(|Mₜ⁻¹ (Y π - τ)|ⱼ / scaleⱼ) + κ² (the same of gravity alone)
        + γ [Σ D(J ‖ J⁰) + Σ (α/α⁰ - log α)],

of absolute values (ρ, by reweighted squares), since states near dead points would decide otherwise,
and medians are judged. D is the distance and barrier of :mod:`robomodel.dynamics.physical` to the
bodies at the start. Newton's method follows the solutions while γ decreases (:func:`fits`), and the
largest γ that will do is taken (:func:`best`), as the motion does not tell everything of bodies.
docs/approximate.md has the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TypeAlias

import numpy as np

from robomodel.arrays import Array, Mask, median, quantile
from robomodel.dynamics.kinematics.state import on_arrays
from robomodel.dynamics.physical import CannotExistError, Cone, ParameterPrior, newton
from robomodel.dynamics.recursions.regressor import regressor
from robomodel.dynamics.tree_map import TreeMap
from robomodel.model.elements import independent_rates, joint_slices
from robomodel.model.model import Model
from robomodel.model.parameters import (
    ENTRIES,
    INERTIAL,
    of_joints,
    parameters,
    pseudo_inertia,
    with_parameters,
)
from robomodel.opentree.errors import Errors, Measure
from robomodel.opentree.mirror_images import MirrorImages
from robomodel.tolerances import NOTHING, TINY

GRAVITY = 10.0  # times as exact as other torques, because it always acts
FIRST, LAST, STEP = 1.0, 1e-10, 0.25  # γ, and its steps: Newton's method follows in a few steps
REWEIGHTED = (1e-4, 1e-6, 1e-8, LAST)  # γ at which absolute values are taken for squares anew
CENTRED, SETTLED = 0.1, 1e-4  # of γ, and of the squares: the accuracy on the way
ERROR_FLOOR = 1e-3  # of errors: what is below is as good
MIXTURES = (0.75, 0.5, 0.25)  # shares of a fit, the rest being lumped
# trees judged at once; fits anew, with so much more weight for joints that are worse than lumped
TOGETHER, REFITS, HEAVIER = 5, 6, 3.0
ARMATURE, TENDON = 0.05, 0.02  # of the joint's inertia: armatures at the start


def best(
    tree: TreeMap,
    lumped: Errors,
    fit: Problem,
    judge: Callable[[Sequence[Model]], Sequence[Errors]],
) -> tuple[Model, Errors] | None:
    """The fitted tree of least worst error in which no joint is worse than lumped.

    ``judge`` gives trees' errors at states that the fit has not seen, and ``lumped`` are those of
    the tree with ``tree``'s parameters, at the same states: a joint is worse where it is so at more
    of them than chance leaves. None if only this tree remains, as where no joint of the fit is
    better in this sense.
    """
    tried, found = list[_Judged](), fits(fit, np.ones(tree.model.nv))
    while some := list(islice(found, TOGETHER)):
        errors_of_each = judge([model for _, model in some])
        judged = [(*x, errors) for x, errors in zip(some, errors_of_each, strict=True)]
        will_do = [n for n, each in enumerate(judged) if _worst(each) <= ERROR_FLOOR]
        tried += judged[: will_do[0] + 1] if will_do else judged
        if will_do:
            break
    if not tried:
        return None
    least = min(map(_worst, tried))
    # a larger γ is worth two per cent of error
    taken = next(x for x in tried if _worst(x) <= max(1.02 * least, ERROR_FLOOR))
    good = [] if _worse(taken[2], lumped) else [taken]
    weights = np.ones(tree.model.nv)
    for _ in range(REFITS if not good else 0):
        if not (worse := _worse(taken[2], lumped)):
            break
        weights = weights * np.where([name in worse for name in fit.owners], HEAVIER, 1.0)
        if (again := next(fits(fit, weights, taken[0]), None)) is None:
            break
        taken = (*again, judge([again[1]])[0])
        tried.append(taken)
    values = parameters(tree.model).values
    for _, each, _ in () if good else (min(tried, key=_worst), taken):
        own = parameters(each).values
        mixed = [with_parameters(tree.model, x * own + (1.0 - x) * values) for x in MIXTURES]
        tried += [(0.0, *both) for both in zip(mixed, judge(mixed), strict=True)]
    good = good or [each for each in tried if not _worse(each[2], lumped)]
    _, model, errors = min(good, key=_worst, default=(0.0, tree.model, lumped))
    return (model, errors) if _worse(lumped, errors) else None


_Judged: TypeAlias = tuple[float, Model, Errors]  # γ, a tree, its errors


def _worst(tree: _Judged) -> float:
    return max(error.median for error in tree[2].values())


def _worse(errors: Errors, others: Errors) -> set[str]:
    """The joints that are worse than in the other tree, and not as good as any."""
    return {name for name, error in errors.items()
            if error.median > ERROR_FLOOR and error.is_worse(others[name])}  # fmt: skip


@dataclass(eq=False)
class Problem:
    """The errors of a tree's velocities (n, nv) at states, linear in its parameters.

    They are ``rows`` (n, nv, f) · z - ``off``; ``still`` and ``hanging`` are those at rest, of
    gravity alone. ``owners``: the joint of each velocity. ``free``: of the tree's parameters
    (p,), those that z changes from ``nominal``. ``size`` (n,): the squares of torques in the same
    measure. ``last``: the z of the last fit.
    """

    tree: Model
    owners: tuple[str, ...]
    free: Mask
    nominal: Array
    cones: list[Cone]
    scalars: Array
    rows: Array
    off: Array
    still: Array
    hanging: Array
    size: Array
    last: Array

    @classmethod
    def of(
        cls, tree: TreeMap, measure: Measure, start: Array, bodies: set[str], joints: set[str]
    ) -> Problem:
        """The problem of these bodies and joints' armatures, which start from ``start`` (p,)."""
        states, model = measure.states.on(tree), tree.model
        nominal, cones, scalars = _assumed(model, states.mass, start, bodies, joints)
        free = np.zeros(len(nominal), dtype=bool)
        free[scalars] = True
        for cone in cones:
            free[cone.at] = True
        nominal[~free] = parameters(model).values[~free]
        first = len(INERTIAL) * len(model.bodies)
        for place, (_, kind) in enumerate(of_joints(model), first):
            if kind != "armature":
                nominal[place] = 0.0  # damping and friction take no part
        weight = np.linalg.inv(states.mass) / measure.scales(tree)[..., None]
        zero = np.zeros_like(states.dt)
        parts = list[Array]()
        for dt, ddt, tau in ((states.dt, states.ddt, states.tau), (zero, zero, states.gravity)):
            y = weight @ on_arrays(regressor, model, states.t, dt, ddt)
            parts += [y[..., free], (weight @ tau[..., None])[..., 0] - y @ nominal]
        size = np.sum((weight @ states.tau[..., None])[..., 0] ** 2, axis=1)
        last = np.zeros(int(np.sum(free)))
        rows, off, still, hanging = parts
        return cls(model, _owners(model), free, nominal, cones, scalars, rows, off, still, hanging,
                   size, last)  # fmt: skip

    @cached_property
    def _images(self) -> MirrorImages:
        return MirrorImages.of(self.tree, self.nominal)

    def normal_equations(self, weights: Array) -> tuple[Array, Array, float]:
        """A (f, f), b (f,) and c of the squares ½ zᵀ A z - b z + ½ c, weighted by (n, nv)."""
        f = self.rows.shape[2]
        a, b, c = np.zeros((f, f)), np.zeros(f), 0.0
        for rows, off, share in ((self.rows, self.off, 1.0), (self.still, self.hanging, GRAVITY)):
            root = share * np.sqrt(weights / len(rows))
            flat, right = (rows * root[..., None]).reshape(-1, f), (off * root).ravel()
            a += flat.T @ flat
            b += flat.T @ right
            c += float(right @ right)
        return a, b, c

    def weights(self, z: Array, importance: Array) -> Array:
        """Weights (n, nv) by which squares are as absolute values, near z."""
        error = np.abs(self.rows @ z - self.off)
        usual = quantile(error, 0.5) + NOTHING
        # errors below 0.3 of the median count as squares
        shares = usual / np.maximum(error, 0.3 * usual)
        return np.asarray(importance * shares / (2.0 * len(usual)))

    def at(self, z: Array) -> Model | None:
        """The tree with these parameters, to the digits that are written.

        None where these digits are not those of a body with mass in all three directions, which
        formats and simulators take however they round.
        """
        values = self.nominal.copy()
        values[self.free] += z
        values = self._images.mean(values)
        filed = parameters(self.tree).values
        rounded = np.array([float(f"{each:.9g}") for each in values])
        bodies = [pseudo_inertia(rounded[cone.at].tolist()) for cone in self.cones]
        if bodies and np.min(np.linalg.eigvalsh(bodies)) <= 0.0:
            return None
        return with_parameters(self.tree, np.where(self.free, rounded, filed))


def fits(
    fit: Problem, importance: Array, only: float | None = None
) -> Iterator[tuple[float, Model]]:
    """γ and trees for decreasing γ, with these weights (nv,) of velocities.

    ``only``: for one γ, from the fit before. What squares are relative to at first is the size of
    the torques. A fit that ends early is a tree like others: its errors are what it is judged by.
    """
    ways = np.eye(len(fit.nominal))[:, fit.free]
    z, gamma, left = (np.zeros(ways.shape[1]), FIRST, list(REWEIGHTED))
    weights = importance / (fit.size + median(fit.size) + TINY)[:, None]
    if only is not None:
        z, gamma, left = fit.last, only, []
        weights = fit.weights(z, importance)
    a, b, c = fit.normal_equations(weights)
    while gamma >= LAST:
        prior = ParameterPrior(fit.cones, fit.scalars, fit.nominal, ways, gamma,
                               np.full(len(fit.scalars), gamma))  # fmt: skip
        squares = max(0.5 * float(z @ a @ z) - float(b @ z) + 0.5 * c, 0.0)
        try:
            z, _ = newton(a, b, prior, ways, z, max(CENTRED * gamma, SETTLED * squares))
        except CannotExistError:
            return  # bodies are next to what cannot exist, as near as numbers go
        if gamma <= 1e-4:  # from which on they are candidates
            if (tree := fit.at(z)) is None:
                return  # the same, as near as digits go
            fit.last = z
            yield gamma, tree
        if left and gamma <= left[0]:
            left = [each for each in left if each < gamma]
            a, b, c = fit.normal_equations(fit.weights(z, importance))
        gamma *= STEP


def _owners(tree: Model) -> tuple[str, ...]:
    """The joint of each of a tree's velocities."""
    found: dict[int, str] = {}
    for cluster in tree.clusters:
        for body, _, along in joint_slices(tree, cluster):
            for i in independent_rates(cluster, along):
                if i is not None:
                    found[i] = tree.joints[body].name
    return tuple(found[i] for i in range(tree.nv))


def _assumed(
    tree: Model, mass: Array, start: Array, bodies: set[str], joints: set[str]
) -> tuple[Array, list[Cone], Array]:
    """Parameters to start from, the cones of bodies, and the indices of armatures."""
    nominal, size = start.copy(), len(INERTIAL)
    tens = {n: nominal[size * n : size * (n + 1)] for n, body in enumerate(tree.bodies)
            if body.name in bodies}  # fmt: skip
    total = sum(float(ten[0]) for ten in tens.values()) or 1.0
    extents = [
        math.sqrt(max(float(np.trace(pseudo_inertia(ten.tolist())[:3, :3])), 0.0) / ten[0])
        for ten in tens.values()
        if ten[0] > 0.0
    ]
    length = 0.1 * median(extents) if extents else 0.01
    cones = []
    for n, ten in tens.items():
        # a body starts with at least 1e-4 of the tree's mass
        nominal[size * n : size * (n + 1)] = _raised(ten, 1e-4 * total, length)
        cones.append(Cone.of(size * n, nominal[size * n : size * (n + 1)]))
    inertia = quantile(np.diagonal(mass, axis1=1, axis2=2), 0.5)
    usual = dict(zip(tree.dof_names, inertia.tolist(), strict=True))
    least = min(usual.values())
    ratios = {name: k for each in tree.couplings for name, k in _largest(each.terms)}
    scalars = []
    for place, (n, kind) in enumerate(of_joints(tree), size * len(tree.bodies)):
        joint = tree.joints[n]
        if kind == "armature" and joint.nv == 1 and joint.name in joints:
            scalars.append(place)
            nominal[place] = ARMATURE * usual.get(
                joint.name, TENDON / ARMATURE * least / ratios.get(joint.name, 1.0) ** 2
            )
    return nominal, cones, np.array(scalars, dtype=int)


def _largest(terms: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """A coupling's first joint, with the largest ratio of its turn to that of another joint."""
    (name, ratio), *others = terms
    return [(name, max((abs(k / ratio) for _, k in others), default=1.0) or 1.0)]


def _raised(ten: Array, least: float, length: float) -> Array:
    """Ten parameters near these, of a body with positive definite pseudo-inertia."""
    j = pseudo_inertia(ten.tolist())
    mass = max(float(ten[0]), least)
    center = j[:3, 3] / mass
    sizes, axes = np.linalg.eigh(j[:3, :3] - mass * np.outer(center, center))
    # smaller eigenvalues start from a thousandth of the largest
    sizes = np.maximum(sizes, 1e-3 * max(float(sizes[-1]), mass * length**2))
    sigma = axes * sizes @ axes.T + mass * np.outer(center, center)
    inertia = np.trace(sigma) * np.eye(3) - sigma
    return np.array([mass, *j[:3, 3], *(inertia[i, k] for i, k in ENTRIES)])
