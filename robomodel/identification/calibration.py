"""Geometric calibration from measured positions: lengths, origins, encoder offsets, ratios.

Each sample has its own independent positions, which are unknown like the parameters; the readings
of joints and frames at the closed configuration are compared with the measurements. Positions that
no reading of a sample determines, such as those of a leg without encoders, keep their guess. Of a
sample's readings, as many as the rank of their derivatives by the independent positions determine
these, and the others give information on the parameters. The least-squares problem is solved by
Gauss-Newton: independent positions are eliminated sample by sample by orthogonal projection, and
the remainder determines the parameters, as in bundle adjustment (Triggs et al., 2000). Derivatives
are exact, with loops closed (:func:`robomodel.sensitivity`).

The errors of the file's values are estimated, too, by maximising the evidence (D. J. C. MacKay,
*Bayesian interpolation*, Neural Computation 1992, eq. 4.8): τ² of each kind of parameter is the sum
of its squared changes over the effective number of parameters. With τ as prior deviation, values
stay at the file's in directions that no reading determines, and near them where noise dominates.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robomodel.arrays import Array, Mask
from robomodel.dynamics import frame_pose, jacobian
from robomodel.dynamics.functions.sensitivity import sensitivity
from robomodel.dynamics.kinematics.frames import FrameKey, FrameLike, frame_key
from robomodel.errors import ClosureError, UnknownNameError, as_names, check_names, few
from robomodel.identification.fit import HUBER
from robomodel.identification.noise import HIGHEST, Autoregression
from robomodel.mechanism import closure as newton
from robomodel.model.arguments import as_array, as_numbers
from robomodel.model.configurations import functions
from robomodel.model.configurations.states import check_finite
from robomodel.model.elements import Cluster, joint_slices, position_names
from robomodel.model.model import Model
from robomodel.model.parameters import as_parameters, parameters, with_parameters
from robomodel.model.parametric import parametric
from robomodel.tolerances import CLOSED, CONVERGED, NOTHING, RANK, ROUNDING, SAME, TINY

UNOBSERVED = 1e-7  # singular values, relative to the largest, below which directions are unobserved
GROUPED = 1e-3  # least component of a parameter in an unobserved direction to belong to its group
HIDDEN_BY_NOISE = 0.2  # the same in a direction that noise dominates
# bounds of τ, as a fraction of sizes, in radians, and of ratios
LEAST_WRONG, MOST_WRONG = 1e-3, 0.1


@dataclass(frozen=True, eq=False)
class Calibration:
    """The result of a calibration.

    Attributes:
        model: The robot with the estimated parameters.
        names: Names of the parameters (k).
        values: Their values (k,) [SI].
        covariance: (k, k), from the residuals, which may be alike in successive samples, and the
            prior of the file's values; infinite
            variances for parameters on which no reading depends.
        unknown: Groups of names of which, alone or in combination, the data give no better estimate
            than the file; these combinations keep the file's values.
        residual: Root mean square of each reading's residual (m,) [rad, m].
        q: The configurations (N, nq), closed with the values.
    """

    model: Model
    names: tuple[str, ...]
    values: Array
    covariance: Array
    unknown: tuple[tuple[str, ...], ...]
    residual: Array
    q: Array = field(repr=False)

    @property
    def sigmas(self) -> dict[str, float]:
        """Standard deviations by name."""
        return dict(zip(self.names, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    def __getitem__(self, name: str) -> float:
        check_names([name], self.names, "no parameter ", error=UnknownNameError)
        return float(self.values[self.names.index(name)])


def calibrate(
    model: Model,
    measured: ArrayLike,
    names: str | Iterable[str],
    *,
    sensors: str | Iterable[str] | None = None,
    frames: Mapping[FrameLike, ArrayLike] | None = None,
    noise: ArrayLike = 1.0,
    robust: bool = False,
    guess: ArrayLike | None = None,
) -> Calibration:
    """Estimate geometric parameters from redundant encoders and tracked frames.

    Positions of samples need not be known: each sample has its own. A floating base, and freedoms
    on which no reading depends, keep those of ``guess``, so that one leg of a robot can be
    calibrated with its own encoders. Encoder offsets are rotations of joints about their own axes
    (``knee.rz`` of a knee that turns about z).

    Args:
        model: The robot, accurate enough for its loops to close on the right branch.
        measured: Positions of joints (N, len(sensors)) [rad, m]; nan for missing ones.
        names: Parameters to estimate, as in :func:`parameters` with those of geometry.
        sensors: Joints with one freedom that are measured, dependent and rotors' included; all of
            them by default.
        frames: Frame → positions (N, 3) of its origin in the world [m], nan for missing ones.
        noise: Standard deviations of readings, one for all or one each (m,): the sensors', then
            three for each frame.
        robust: Reduce the weight of readings with large residuals (Huber), relative to the median.
        guess: Configuration (nq,), or one for each sample (N, nq), for positions that are not
            measured, and near which loops are closed; by default the neutral one.

    Returns:
        fit: Values, covariance, the calibrated model, and what the data do not determine.

    Raises:
        ValueError: Arrays do not fit, or there are no more readings than freedoms they depend on.
        UnknownNameError: A joint, link or parameter does not exist.
        ClosureError: No sample closes with the file's parameters.

    Examples:
        >>> model = rm.robots.load("crank_rocker")
        >>> robot = rm.with_parameters(model, {"rocker_joint.x": 4.02})
        >>> q = robot.configuration({"crank_joint": 0.2})
        >>> at = [robot.configuration({"crank_joint": x}, guess=q) for x in (0.2, 0.4, 0.6)]
        >>> angles = robot.joint_positions(np.array(at))
        >>> measured = np.stack([angles["crank_joint"], angles["rocker_joint"]], axis=1)
        >>> sensors = ["crank_joint", "rocker_joint"]
        >>> fit = rm.calibrate(model, measured, "rocker_joint.x", sensors=sensors)
        >>> fit.values.round(4)
        array([4.02])
    """
    chosen = as_parameters(model, names)
    if not chosen:
        raise ValueError("names has no parameter; give one or more of rm.parameters(model)")
    readings = _Readings.of(model, measured, sensors, frames, noise)
    around = model.neutral() if guess is None else as_array(guess, model.nq, "guess", "nq")
    if around.shape not in ((model.nq,), (len(readings.values), model.nq)):
        raise ValueError(
            f"guess needs the shape ({model.nq},) or ({len(readings.values)}, {model.nq}), "
            f"got {around.shape}"
        )
    check_finite(around, "guess", position_names(model))
    return _Problem(model, chosen, readings, around, robust).solved()


@dataclass(frozen=True, eq=False)
class _Readings:
    """The measurements, of joints (indices of positions and velocities) and of frames."""

    joints: tuple[str, ...]
    at: tuple[tuple[int, int], ...]
    frames: tuple[FrameKey, ...]
    values: Array  # (N, m)
    sigma: Array  # (m,)

    @staticmethod
    def of(
        model: Model,
        measured: ArrayLike,
        sensors: str | Iterable[str] | None,
        frames: Mapping[FrameLike, ArrayLike] | None,
        noise: ArrayLike,
    ) -> _Readings:
        single = {j.name: (n.q, n.v) for j, n in zip(model.joints, model.nodes, strict=True)
                  if j.nv == 1}  # fmt: skip
        joints = tuple(single) if sensors is None else as_names(sensors, "sensors")
        check_names(joints, single, "no joint with one freedom ", error=UnknownNameError)
        values = as_array(measured, len(joints), "measured", str(len(joints)))
        if values.ndim != 2:
            raise ValueError(f"measured needs the shape (N, {len(joints)}), got {values.shape}")
        parts, keys = [values], []
        for frame, positions in (frames or {}).items():
            keys.append(frame_key(frame))
            model.frame(keys[-1] if isinstance(keys[-1], str) else keys[-1][0])
            point = as_array(positions, 3, f"frames[{frame!r}]", "3")
            if point.shape != (len(values), 3):
                raise ValueError(
                    f"frames[{frame!r}] needs the shape ({len(values)}, 3), got {point.shape}"
                )
            parts.append(point)
        every = np.concatenate(parts, axis=1)
        if np.any(np.isinf(every)):
            raise ValueError("measured is infinite somewhere; give nan where nothing was measured")
        if not np.any(np.isfinite(every)):
            raise ValueError("measured has no number; give a row of readings for each sample")
        deviation = as_numbers(noise, "noise")
        if deviation.shape not in ((), (every.shape[1],)) or not np.all(deviation > 0.0):
            raise ValueError(f"noise is a positive number, or {every.shape[1]} of them, one each")
        sigma = np.broadcast_to(deviation, (every.shape[1],))
        at = tuple(single[name] for name in joints)
        return _Readings(joints, at, tuple(keys), every, sigma)


def _neighbours(values: Array) -> NDArray[np.intp]:
    """For each row the other one that is nearest; itself if it is alone."""
    from scipy.spatial import KDTree

    if len(values) < 2:
        return np.arange(len(values))
    rows = np.nan_to_num(values)
    return np.asarray(KDTree(rows).query(rows, k=2)[1][:, 1], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class _Reduced:
    """Residuals of all samples and derivatives by parameters (…, k), positions eliminated."""

    right: Array
    matrix: Array
    redundancy: int  # number of readings less the freedoms that they depend on

    def variance(self, estimated: float) -> float:
        """The variance of the residuals, given the number of ``estimated`` parameters."""
        return float(self.right @ self.right) / max(self.redundancy - estimated, 1.0)


@dataclass(eq=False)
class _Problem:
    """Least squares over parameters p (k,) and closed configurations q (N, nq)."""

    model: Model
    names: tuple[str, ...]
    readings: _Readings
    guess: Array  # (nq,) or (N, nq)
    robust: bool

    def solved(self) -> Calibration:
        listed = parameters(self.model, geometry=True)
        p = np.array([listed[name] for name in self.names])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            q = self._start(p)
            self._check_more_readings_than_freedoms(q, p)
            damping, cost = 1e-6, math.inf
            weights = np.ones_like(self.readings.values)
            file, wrong = p, MOST_WRONG * self._units
            for _ in range(50):
                left, by_q, by_p = self._linearized(q, p, weights)
                if self.robust:
                    weights = self._weights(left, weights)
                reduced = self._projected(left, by_q, by_p)
                prior, wrong = self._prior(reduced, p - file, wrong)
                step = self._step(reduced, prior, p - file, damping)
                moves = -np.einsum(
                    "nij,nj->ni", np.linalg.pinv(by_q, rcond=RANK), left + by_p @ step
                )
                ahead, p_ahead = self._moved(q, moves, p + step), p + step
                now, after = (
                    float(np.sum(x**2) + np.sum((prior * (at - file)) ** 2))
                    for x, at in ((left, p), (self._left(ahead, p_ahead, weights), p_ahead))
                )
                if not after <= now * (1.0 + SAME) + 1e-24:
                    damping *= 10.0
                    if damping > 1e6:
                        break
                    continue
                q, p, damping = ahead, p_ahead, max(damping / 10.0, 1e-12)
                size = max(float(np.max(np.abs(step / self._units))), float(np.max(np.abs(moves))))
                if size < CONVERGED or (abs(cost - after) <= ROUNDING * after and size < 1e-6):
                    break
                cost = after
            return self._result(q, p, weights, wrong)

    @property
    def _units(self) -> Array:
        """Units (k,) in which changes of parameters are comparable: lengths by the robot's size."""
        size = max((c.geometry.scale for c in self.model.clusters if c.implicit), default=1.0)
        listed = parameters(self.model, geometry=True)
        units = []
        for name in self.names:
            usual = {"length": size, "turn": 1.0}
            units.append(usual.get(_kind(name), abs(listed[name]) or 1.0))
        return np.array(units)

    @property
    def _free(self) -> NDArray[np.intp]:
        """Indices of the independent velocities that each sample determines: all but the base's."""
        return np.arange(6 if self.model.floating_base is not None else 0, self.model.nv)

    def _start(self, p: Array) -> Array:
        """Closed configurations at the readings, as near as the parameters allow."""
        model, values = self.model, self.readings.values
        q = np.array(np.broadcast_to(self.guess, (len(values), model.nq)))
        place = {name: n for n, name in enumerate(self.readings.joints)}
        for cluster in model.clusters:
            for body, part, _ in joint_slices(model, cluster):
                column = place.get(model.joints[body].name)
                if column is not None:
                    at, known = cluster.q.start + part.start, np.isfinite(values[:, column])
                    q[known, at] = values[known, column]
            if cluster.implicit:
                q[:, cluster.q] = self._beside_readings(cluster, q[:, cluster.q], place)
        closed = model.close(q) if len(q) else q
        good = np.isfinite(closed).all(axis=1)
        if not good.any():
            raise ClosureError("no sample closes by the file's numbers near its readings", math.inf)
        nearest = np.flatnonzero(good)
        for n in np.flatnonzero(~good):
            closed[n] = closed[nearest[np.argmin(np.abs(nearest - n))]]
        closed = self._settled(closed, p)
        read = [cluster for cluster in model.clusters if cluster.implicit
                and (self.readings.frames or {*cluster.joints} & place.keys())]  # fmt: skip
        if not read:
            return closed
        # linkages may have closed the other way round: those of the nearest readings may not
        again, nearest = closed.copy(), _neighbours(values)
        for cluster in read:
            again[:, cluster.q] = closed[nearest][:, cluster.q]
        again = self._settled(again, p)
        off, other = (
            np.sum(self._left(each, p, np.ones_like(values)) ** 2, axis=1)
            for each in (closed, again)
        )
        # by far: what is not read stays at the guess
        better = (other < 0.25 * off) & (off > CLOSED)
        return np.where(better[:, None], again, closed)

    def _settled(self, closed: Array, p: Array) -> Array:
        """Configurations (N, nq) moved to where their readings are met best nearby."""
        values = self.readings.values
        closed = closed.copy()
        every, shares = np.ones_like(values), np.ones(len(values))
        for _ in range(40):
            left, by_q, _ = self._linearized(closed, p, every)
            moves = -np.einsum("nij,nj->ni", np.linalg.pinv(by_q, rcond=RANK), left)
            longest = np.maximum(np.max(np.abs(moves), axis=1), TINY)
            moves *= (shares * np.minimum(1.0, 0.3 / longest))[:, None]
            if np.max(np.abs(moves), initial=0.0) < 1e-6:
                break
            ahead = self._moved(closed, moves, p)
            # near dead points of independent joints a step may be too long to be followed
            better = np.sum(self._left(ahead, p, every) ** 2, axis=1) < np.sum(left**2, axis=1)
            closed[better] = ahead[better]
            shares = np.where(better, np.minimum(1.0, 2.0 * shares), shares / 4.0)
        return closed

    def _beside_readings(self, cluster: Cluster, q: Array, place: Mapping[str, int]) -> Array:
        """A linkage's positions (N, nq) with loops as little open as the read joints let them be.

        Those that are not read then are where these are, also beyond dead points, before all move.
        """
        q = q.copy()
        links = [
            (link.v, place[self.model.joints[body].name])
            for body, link in zip(cluster.bodies, cluster.geometry.links, strict=True)
            if self.model.joints[body].name in place
        ]
        known = np.isfinite(self.readings.values[:, [column for _, column in links]])
        for pattern in np.unique(known, axis=0):
            rows = np.all(known == pattern, axis=1)
            held = [v for (v, _), is_one in zip(links, pattern, strict=True) if is_one]
            if held and len(held) < cluster.geometry.nv:
                q[rows], _ = newton.close(
                    cluster.geometry, q[rows], newton.Held(held), rows=cluster.closing_rows
                )
        return q

    def _moved(self, q: Array, moves: Array, p: Array) -> Array:
        """Configurations moved along independent velocities and closed; unchanged if that fails."""
        dv = np.zeros((len(q), self.model.nv))
        dv[:, self._free] = moves
        step = parametric(functions.integrate, self.model, self.names, functions.INTEGRATE_STEPS)
        ahead: Array = self.model.close(step(q, dv, p), parameters=self._values(p))
        bad = ~np.isfinite(ahead).all(axis=1)
        if bad.any():
            ahead[bad] = self.model.close(q[bad], parameters=self._values(p))
        return ahead

    def _values(self, p: Array) -> dict[str, float]:
        return dict(zip(self.names, p.tolist(), strict=True))

    def _left(self, q: Array, p: Array, weights: Array) -> Array:
        """Weighted residuals (N, m) in standard deviations; zero for missing readings."""
        at = [first for first, _ in self.readings.at]
        computed = [parametric(functions.joint_positions, self.model, self.names, 0)(q, p)[:, at]]
        for frame in self.readings.frames:
            pose = frame_pose(self.model, q, frame, parameters=self._values(p))
            computed.append(pose[..., :3, 3])
        left = (np.concatenate(computed, axis=1) - self.readings.values) / self.readings.sigma
        return self._known(left, q) * np.sqrt(weights)

    def _known(self, rows: Array, q: Array) -> Array:
        """Rows with zeros for missing readings and for samples that cannot be closed."""
        known = self._measured(q)
        return np.where(known.reshape(*known.shape, *[1] * (rows.ndim - 2)), rows, 0.0)

    def _measured(self, q: Array) -> Mask:
        """A mask of the readings (N, m) that are used."""
        closed: Mask = np.asarray(np.isfinite(q).all(axis=1))
        return np.isfinite(self.readings.values) & closed[:, None]

    def _linearized(self, q: Array, p: Array, weights: Array) -> tuple[Array, Array, Array]:
        """Residuals (N, m) and their derivatives by independent positions and by parameters.

        Zero where the linkage is singular with these parameters, as for samples that cannot close.
        """
        model, names, values = self.model, self.names, self._values(p)
        base = model.nodes[0].joint.nq if model.floating_base is not None else 0
        rates = parametric(functions.constraint_jacobian, model, names)(q, p)
        by_q = [rates[:, [v for _, v in self.readings.at]]]
        slopes = sensitivity(model, "joint_positions", (q,), names, parameters=values)
        by_p = [slopes[:, [first - base for first, _ in self.readings.at]]]
        for frame in self.readings.frames:
            of_frame = jacobian(model, q, frame, reference="local_world_aligned", parameters=values)
            by_q.append(of_frame[:, 3:])
            slopes = sensitivity(model, "frame_pose", (q,), names, frame=frame, parameters=values)
            by_p.append(slopes[:, :3, 3])
        scale = np.sqrt(weights)[..., None] / self.readings.sigma[:, None]
        first, second = (
            self._known(np.concatenate(each, axis=1), q) * scale for each in (by_q, by_p)
        )
        regular = np.isfinite(first).all(axis=(1, 2)) & np.isfinite(second).all(axis=(1, 2))
        left, first, second = (
            np.where(regular.reshape(-1, *[1] * (rows.ndim - 1)), rows, 0.0)
            for rows in (self._left(q, p, weights), first[..., self._free], second)
        )
        return left, first, second

    def _weights(self, left: Array, weights: Array) -> Array:
        """Huber's weights, relative to the median of each reading's residuals."""
        plain = np.abs(left) / np.sqrt(weights)
        with np.errstate(all="ignore"):
            spread = np.nanmedian(np.where(np.isfinite(plain), plain, np.nan), axis=0) * 1.4826
            ratio = HUBER * np.where(spread > 0.0, spread, np.inf) / plain
        return np.minimum(1.0, np.where(np.isfinite(ratio), ratio, 1.0))

    def _projected(self, left: Array, by_q: Array, by_p: Array) -> _Reduced:
        """Residuals and derivatives by parameters, projected orthogonally to the positions'."""
        u, s, _ = np.linalg.svd(by_q, full_matrices=False)
        moving = (s > RANK * s[:, :1]) & (s > 0.0)
        u = np.where(moving[:, None, :], u, 0.0)
        right = left - np.einsum("nij,nkj,nk->ni", u, u, left)
        matrix = by_p - np.einsum("nij,nkj,nkp->nip", u, u, by_p)
        known = int(np.isfinite(self.readings.values).sum())
        return _Reduced(
            right.ravel(), matrix.reshape(-1, by_p.shape[-1]), known - int(moving.sum())
        )

    def _check_more_readings_than_freedoms(self, q: Array, p: Array) -> None:
        """Raise ValueError if the samples' positions use up all readings."""
        left, by_q, by_p = self._linearized(q, p, np.ones_like(self.readings.values))
        if self._projected(left, by_q, by_p).redundancy <= 0:
            raise ValueError(
                f"a sample has {left.shape[1]} readings, no more than the freedoms they depend "
                f"on, so they determine no parameters; give readings of more joints, or frames "
                f"(parameters: {few(self.names)})"
            )

    def _step(self, reduced: _Reduced, prior: Array, moved: Array, damping: float) -> Array:
        """The step that minimises |right + matrix · step|² + |prior · (moved + step)|², damped."""
        units = self._units
        rows = np.concatenate([reduced.matrix, np.diag(prior)]) * units
        u, s, vt = np.linalg.svd(rows, full_matrices=False)
        observed = s > UNOBSERVED * max(s[0], TINY)
        share = np.where(observed, s / (s**2 + damping * s[0] ** 2), 0.0)
        step: Array = units * (
            vt.T @ (share * (u.T @ -np.concatenate([reduced.right, prior * moved])))
        )
        return step

    def _prior(self, reduced: _Reduced, moved: Array, wrong: Array) -> tuple[Array, Array]:
        """Prior weights (k,) of the file's values, and the deviation τ of each.

        Updates τ once from the given ones, by the evidence.
        """
        units = self._units
        spread = np.linalg.pinv(self._precision(reduced, wrong)) * np.outer(units, units)
        gained = np.clip(1.0 - np.diag(spread) / wrong**2, 0.0, 1.0)
        after = wrong.copy()
        kinds = np.array([_kind(name) for name in self.names])
        for kind in set(kinds.tolist()):
            of = kinds == kind
            square = np.sum((moved[of] / units[of]) ** 2) / max(float(gained[of].sum()), 1e-3)
            share = np.clip(np.sqrt(square), LEAST_WRONG, MOST_WRONG) if moved.any() else MOST_WRONG
            after[of] = share * units[of]
        return math.sqrt(reduced.variance(gained.sum())) / after, after

    def _precision(self, reduced: _Reduced, wrong: Array) -> Array:
        """The inverse covariance (k, k) of the parameters in their units."""
        units = self._units
        scaled = reduced.matrix * units
        variance = max(reduced.variance(0.0), TINY)
        result: Array = scaled.T @ scaled / variance + np.diag((units / wrong) ** 2)
        return result

    def _correlated(self, reduced: _Reduced, count: int) -> Array:
        """Sums (k, k) of the derivatives' products, with the readings' correlations over samples.

        They are alike for all readings, and estimated from what is left of all of them.
        """
        left = reduced.right.reshape(count, -1)
        width = left.shape[1]
        pieces = [slice(n * count, (n + 1) * count) for n in range(width)]
        # smaller deviations of readings are rounding, of which there is no model in time
        exact = math.sqrt(reduced.variance(0.0)) < 1e-9
        noise = Autoregression.of(left.T.ravel(), pieces, 0 if exact else HIGHEST)
        columns = reduced.matrix.reshape(count, width, -1)
        return sum((noise.covariance(columns[:, n]) for n in range(width)), np.zeros(()))

    def _result(self, q: Array, p: Array, weights: Array, wrong: Array) -> Calibration:
        left, by_q, by_p = self._linearized(q, p, weights)
        reduced = self._projected(left, by_q, by_p)
        matrix = reduced.matrix
        norms = np.linalg.norm(matrix, axis=0)
        norms = np.where(norms > NOTHING * max(norms.max(), TINY), norms, np.inf)
        _, s, vt = np.linalg.svd(matrix / norms, full_matrices=True)
        s = np.concatenate([s, np.zeros(len(p) - len(s))])
        null = vt[s <= UNOBSERVED * max(s[0], TINY)]
        groups = _groups(null, self.names, GROUPED)
        known = self._measured(q)
        deviation = math.sqrt(reduced.variance(len(p) - len(null)))
        rows = np.concatenate([matrix, np.diag(deviation / wrong)]) * self._units
        _, s, vt = np.linalg.svd(rows, full_matrices=False)
        inverse = vt.T / np.maximum(s, TINY) ** 2 @ vt
        spurious = self._correlated(reduced, len(q)) + np.diag((deviation / wrong) ** 2)
        sizes, ways = np.linalg.eigh(spurious * np.outer(self._units, self._units))
        root = self._units[:, None] * (inverse @ ways * np.sqrt(np.maximum(sizes, 0.0)))
        covariance = deviation**2 * (root @ root.T)  # of no negative variance by rounding
        _, s, vt = np.linalg.svd(matrix * wrong, full_matrices=True)
        s = np.concatenate([s, np.zeros(len(p) - len(s))])
        taken = {name for group in groups for name in group}
        hidden = _groups(vt[s <= deviation], self.names, HIDDEN_BY_NOISE)
        groups += tuple(group for group in hidden if not taken.intersection(group))
        for name in taken:
            n = self.names.index(name)
            covariance[n, :] = covariance[:, n] = 0.0
            covariance[n, n] = math.inf
        plain = left * self.readings.sigma / np.sqrt(weights)
        count = np.maximum(known.sum(axis=0), 1)
        return Calibration(
            model=with_parameters(self.model, self._values(p)),
            names=self.names,
            values=p,
            covariance=covariance,
            unknown=groups,
            residual=np.sqrt(np.sum(plain**2, axis=0) / count),
            q=q,
        )


def _kind(name: str) -> str:
    """The kind of a parameter; parameters of one kind share their τ."""
    last = name.rpartition(".")[2]
    if last in ("x", "y", "z", "length"):
        return "length"
    return "turn" if last in ("rx", "ry", "rz") else "other"


def _groups(null: Array, names: Sequence[str], least: float) -> tuple[tuple[str, ...], ...]:
    """Groups of names with components above ``least`` in common null directions."""
    share = np.abs(null.T @ null)
    member = np.diag(share) > least**2
    groups: list[set[int]] = []
    for i in np.flatnonzero(member):
        tied = {int(j) for j in np.flatnonzero(share[i] > least**2) if member[j]} | {int(i)}
        touching = [group for group in groups if group & tied]
        groups = [group for group in groups if not group & tied]
        groups.append(tied.union(*touching))
    return tuple(tuple(names[i] for i in sorted(group)) for group in groups)
