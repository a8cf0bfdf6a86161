"""Base parameters: the combinations of a model's parameters that forces identify."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics.actuators.maps import actuator_map
from robomodel.dynamics.algorithm import run
from robomodel.dynamics.kinematics.frames import FrameKey, FrameLike, frame_keys
from robomodel.errors import UnknownNameError, as_names, did_you_mean
from robomodel.identification.regressors import regressor
from robomodel.identification.units import Units
from robomodel.model.arguments import as_array
from robomodel.model.elements import columns_of
from robomodel.model.model import Model
from robomodel.model.parameters import count, parameters
from robomodel.reach.drawing import drawn, reachable_from
from robomodel.reach.limb import limb_bodies
from robomodel.reach.reachable import REGULAR_DRAW, reachable
from robomodel.reach.rotors import rotors
from robomodel.scalars import stack, unstack
from robomodel.tolerances import NOTHING, SINGULAR, TINY

BASE_SEED = 20180524  # makes the samples the same at every call
CONFIGURATIONS = 40
KNOWN = 1000  # configurations of a linkage, among which those with rare signs of rates are found


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Identifiable combinations of parameters: ``matrix`` @ values are the base parameters.

    Attributes:
        names: The rows in words, such as "Ixx of shank + 0.04 m of rod".
        matrix: Reduced row echelon form (rank, p); each row has its pivot parameter with
            coefficient 1, and the parameters that are identifiable only together with it.
        parameters: Names of the columns.
        gap: The smallest singular value above the rank decision and the largest below, relative to
            the largest; a narrow gap means that the rank is uncertain.
        pivots: The column of each row's pivot.
    """

    names: tuple[str, ...]
    matrix: Array
    parameters: tuple[str, ...]
    gap: SingularValueGap
    pivots: tuple[int, ...] = ()

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.matrix)

    @cached_property
    def alone(self) -> tuple[str, ...]:
        """Parameters that are identifiable by themselves."""
        single = np.count_nonzero(self.matrix, axis=1) == 1
        return self._named(np.any(self.matrix[single] != 0.0, axis=0))

    @cached_property
    def never(self) -> tuple[str, ...]:
        """Parameters that have no effect at all."""
        return self._named(~np.any(self.matrix != 0.0, axis=0))

    @cached_property
    def together(self) -> tuple[str, ...]:
        """Parameters that are identifiable in combinations only."""
        others = {*self.alone, *self.never}
        return tuple(name for name in self.parameters if name not in others)

    def _named(self, which: Array) -> tuple[str, ...]:
        return tuple(name for name, is_one in zip(self.parameters, which, strict=True) if is_one)

    def __repr__(self) -> str:
        return f"<BaseParameters: {self.rank} of {len(self.parameters)} parameters>"


def base_parameters(
    model: Model,
    *,
    measured: str | Iterable[str] | None = None,
    contacts: FrameLike | Sequence[FrameLike] = (),
    near: ArrayLike | None = None,
) -> BaseParameters:
    """The base parameters, from all motions that the robot can make.

    They are identified over all that is reachable (:meth:`Model.is_reachable
    <robomodel.Model.is_reachable>`), both sides of dead points of the coordinates included, where
    dry friction has its kinks. Another assembly mode may identify other combinations (a
    parallelogram fewer than its crossed form).

    The rank follows from the singular values of a stacked :func:`robomodel.regressor`; it is
    uncertain if ``gap`` is narrow. Springs and wrench sensors on links are not considered.

    Args:
        model: The robot.
        measured: Coordinates in which tau is measured, by name (joints, or single freedoms of
            ``model.dof_names``), or "actuators" for those that actuators drive. By default, tau is
            known in all coordinates: from actuators, zero where nothing drives, and on a floating
            base zero or from measured contact wrenches.
        contacts: Where unknown wrenches act on the robot: links, or (link, offset) for unknown
            forces at points. Only combinations of forces that do not depend on them are used.
        near: A closed configuration (nq,) from which motions start, by default ``neutral()``: it
            says which assembly mode the robot is in.

    Returns:
        base: The base parameters.

    Raises:
        UnknownNameError: Unknown names.
        ValueError: ``near`` is no configuration.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> base = rm.base_parameters(model)
        >>> len(base.names) < len(rm.parameters(model).names)
        True
    """
    keys = frame_keys(contacts)
    for frame in keys:
        model.frame(frame if isinstance(frame, str) else frame[0])
    start = model.neutral() if near is None else _start(model, near)
    rows = None if measured is None else _coordinates(model, measured, start)
    names = parameters(model).names
    if not model.nv or rows == []:
        return BaseParameters((), np.zeros((0, len(names))), names, SingularValueGap())
    space, scale, gap = _row_space(model, start, rows, keys)
    echelon, pivots = reduced(space, _order(model))
    matrix = echelon * scale / scale[pivots, None]
    # smaller scaled coefficients are rounding of closed loops: no force would tell them
    matrix[np.abs(echelon) < 1e-7] = 0.0
    matrix[range(len(pivots)), pivots] = 1.0
    words = tuple(_worded(names, row, pivot) for row, pivot in zip(matrix, pivots, strict=True))
    return BaseParameters(words, matrix, names, gap, tuple(pivots))


def _start(model: Model, near: ArrayLike) -> Array:
    """One closed configuration near ``near``."""
    q = as_array(near, model.nq, "near", "nq")
    if q.shape != (model.nq,):
        raise ValueError(f"near is one configuration (nq,), got shape {q.shape}")
    model.check(q)
    return q


def _coordinates(model: Model, measured: str | Iterable[str], start: Array) -> list[int]:
    """Indices into v of the measured coordinates."""
    if measured == "actuators":
        q = drawn(model, np.random.default_rng(BASE_SEED), 3, start)
        entries = actuator_map(model, unstack(q)) if model.actuators else []
        driven = [np.abs(stack(list(row), (3,))).max() > 0.0 for row in entries]
        return [i for i, is_one in enumerate(driven) if is_one]
    result = []
    joints = {joint.name: joint for joint in model.joints if joint.independent}
    for name in as_names(measured, "measured"):
        labels = [name, *(f"{name}{x}" for x in _SUFFIXES if name in joints)]
        here = [i for i, label in enumerate(model.dof_names) if label in labels]
        if not here:
            hint = did_you_mean(name, [*model.dof_names, *joints])
            raise UnknownNameError(f"no independent coordinate '{name}'{hint}")
        result += here
    return sorted(set(result))


_SUFFIXES = (".0", ".1", ".2", ".wx", ".wy", ".wz", ".vx", ".vy", ".vz")


def _row_space(
    model: Model, start: Array, rows: list[int] | None, contacts: tuple[FrameKey, ...]
) -> tuple[Array, Array, SingularValueGap]:
    """Row space in scaled parameters, the scales, and the gap of a stacked regressor."""
    rng = np.random.default_rng(BASE_SEED)
    each = len(rows) if rows else model.nv
    q = _off_change_points(model, drawn(model, rng, CONFIGURATIONS, start))
    q = np.concatenate([q, *_turning_both_ways(model, q, start)])
    # three rows of the stacked regressor per column
    times = -(-3 * count(model) // (each * len(q)))
    q = np.repeat(q, times, axis=0)
    states = len(q)
    units = Units.of(model)
    drawn_v, drawn_a = rng.normal(size=(2, states, model.nv))
    rates, across = _comparable(model, q, units)
    v = units.rate * np.einsum("nij,nj->ni", rates, drawn_v)
    along = np.einsum("nij,nj->ni", across, model.constraint_bias(q, v))
    a = np.einsum("nij,nj->ni", rates, units.rate**2 * drawn_a - along)
    y = regressor(model, q, v, a, backend="numpy")
    weights = np.diag(units.velocities)
    seen = [weights[rows]] * states if rows else [*np.swapaxes(rates, 1, 2)]
    if contacts:
        felt = [_felt(model, q, frame, units.length) for frame in contacts]
        seen = _beside(seen, np.concatenate(felt, axis=1))
    scale = units.parameters
    stacked = np.concatenate([w @ each for w, each in zip(seen, y, strict=True)])
    space, _, sizes, gap = split(stacked / scale)
    scaled = space * sizes
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    orthonormal: Array = np.linalg.qr((scaled / lengths).T)[0].T
    return orthonormal, scale, gap


def _off_change_points(model: Model, q: Array) -> Array:
    """Configurations (n, nq) but those next to change points.

    There closed loops' rounding, divided by the cube of the least singular value of their
    conditions, would count as an effect of parameters.
    """
    good = np.ones(len(q), dtype=bool)
    for linkage in reachable(model).linkages:
        at = linkage.positions(q[:, linkage.cluster.q])
        for group in linkage.groups:
            if group.along.rank:
                sizes = group.conditioning(at)
                good &= sizes >= REGULAR_DRAW * np.median(sizes)
    return q[good] if good.any() else q


def _turning_both_ways(model: Model, q: Array, start: Array) -> list[Array]:
    """Further configurations (·, nq), in which joints of linkages turn all ways beside each other.

    Dry friction alone is no analytic function of the state: beyond a dead point of a joint, however
    little is reachable there, it tells what it does not tell before. Sizes of rates along a motion,
    as rows over a linkage's joints, span at these configurations what they span at all of
    :data:`KNOWN`. The rest of the robot is as in rows of q.
    """
    from scipy.linalg import qr

    reach, units, found = reachable_from(model, start), Units.of(model), list[Array]()
    for linkage in reach.linkages:
        cluster, rng = linkage.cluster, np.random.default_rng(BASE_SEED)
        if not cluster.nv:
            continue
        known = q[np.arange(KNOWN) % len(q)]
        known[:, cluster.q] = reach.known(rng, KNOWN, cluster)
        known = _off_change_points(model, known)
        rates = _comparable(model, known, units)[0][:, cluster.v, cluster.v]
        regular = np.abs(np.linalg.det(rates))
        good = regular >= REGULAR_DRAW * np.median(regular)
        known, rates = known[good], rates[good]
        turned = model.constraint_jacobian(known)[:, cluster.spanning_v, cluster.v] @ rates
        sizes = np.abs(turned @ rng.standard_normal(cluster.nv))
        sizes /= np.maximum(np.max(sizes, axis=0), TINY)
        _, triangle, order = qr(sizes.T, mode="economic", pivoting=True)
        pivots = np.abs(np.diag(triangle))
        found.append(known[order[: int(np.sum(pivots > SINGULAR * pivots[0]))]])
    return found


def _comparable(model: Model, q: Array, units: Units) -> tuple[Array, Array]:
    """Independent velocities (n, nv, nv) by comparable rates, and these (n, nv, ·) by all joints'.

    The rates are orthonormal, without those of rotors, whichever joints are independent: next to
    dead points of these others would turn so fast that no other parameters count.
    """
    rates = np.zeros((len(q), model.nv, model.nv))
    across = np.zeros((len(q), model.nv, model.n_joint_velocities))
    g = model.constraint_jacobian(q)
    for cluster in model.clusters:
        columns, turned = columns_of(model, cluster), rotors(model, cluster)
        unit = np.array([units.length if column.length else 1.0 for column in columns])
        kept = [n for n, each in enumerate(columns) if cluster.bodies[each.link] not in turned]
        mine = g[:, cluster.spanning_v, cluster.v] / unit[:, None]
        if np.linalg.matrix_rank(mine[0, kept]) < cluster.nv:
            kept = [*range(len(columns))]
        basis, triangle = np.linalg.qr(mine[:, kept])
        rates[:, cluster.v, cluster.v] = np.linalg.inv(triangle)
        rows = cluster.spanning_v.start + np.array(kept, dtype=np.intp)
        across[:, cluster.v, rows] = np.swapaxes(basis / unit[kept, None], 1, 2)
    return rates, across


def _felt(model: Model, q: Array, frame: FrameKey, length: float) -> Array:
    """Rows (n, 6 or 3, nv) of the Jacobian of a frame with an unknown wrench, or force.

    Forces are in moments by ``length``.
    """
    j: Array = run(model, "jacobian", {"q": q}, "numpy", frames=(frame,))
    j[:, 3:] /= length
    return j if isinstance(frame, str) else j[:, 3:]


def _beside(weights: list[Array], felt: Array) -> list[Array]:
    """Combinations of the weights' rows that are orthogonal to the rows of ``felt``."""
    result = []
    for w, j in zip(weights, felt, strict=True):
        reached = w @ j.T
        left, size, _ = np.linalg.svd(reached, full_matrices=True)
        rank = int(np.sum(size > 1e-9 * max(float(size.max(initial=0.0)), 1e-9)))
        result.append(left[:, rank:].T @ w)
    return result


# ---- names ---------------------------------------------------------------------------------------

_PREFERRED = (
    "damping", "friction", "mx", "my", "mz", "Izz", "Iyy", "Ixx", "Ixy", "Ixz", "Iyz", "armature",
    "mass",
)  # fmt: skip


def _order(model: Model) -> list[int]:
    """Columns in the order of preference as pivots: links that limbs' joints move, then by kind."""
    names = parameters(model).names
    limbs = {body for bodies in limb_bodies(model) for body in bodies}
    first = {each.name for body in limbs for each in (model.bodies[body], model.joints[body])}

    def key(column: int) -> tuple[bool, int, int]:
        owner, _, kind = names[column].rpartition(".")
        return owner not in first, _PREFERRED.index(kind), column

    return sorted(range(len(names)), key=key)


def _worded(names: Sequence[str], row: Array, pivot: int) -> str:
    """A combination of parameters in words, the pivot first."""
    columns = sorted(np.flatnonzero(row).tolist(), key=lambda c: (c != pivot, c))
    text = ""
    for column in columns:
        owner, _, kind = names[column].rpartition(".")
        what = f"{'m' if kind == 'mass' else kind} of {owner}"
        size = f"{abs(row[column]):.4g}"
        sign = "-" if row[column] < 0.0 else "+"
        term = what if size == "1" else f"{size} {what}"
        text += f" {sign} {term}" if text else term if sign == "+" else f"-{term}"
    return text


# ---- ranks and row spaces ---------------------------------------------------------------


SURELY_DROPPED = 1e-14  # singular values below, relative to the largest, count as zero
SURELY_COUNTS = 1e-6  # singular values above count as nonzero; the widest gap decides in between
PIVOTS = (0.05, 1e-3, 1e-7)  # least relative remainder of a pivot column, relaxed in turn


@dataclass(frozen=True, slots=True)
class SingularValueGap:
    """The smallest singular value that counts and the largest that does not, relative."""

    kept: float = 1.0
    dropped: float = 0.0

    @property
    def ratio(self) -> float:
        """Their ratio, up to 1e17."""
        return self.kept / max(self.dropped, 1e-17)

    def worse(self, other: SingularValueGap) -> SingularValueGap:
        """The narrower of two."""
        return self if self.ratio <= other.ratio else other


def _rank(share: Array) -> tuple[int, SingularValueGap]:
    """The rank of a matrix of these singular values, the largest 1: where the widest gap is.

    Loops near one configuration vary little, so that what counts may be small.
    """
    least, most = int(np.sum(share > SURELY_COUNTS)), int(np.sum(share > SURELY_DROPPED))
    padded = np.maximum(np.append(share, 0.0), 1e-16)  # replaces zero singular values in ratios
    ratios = padded[least - 1 : most] / padded[least : most + 1]
    rank = least + int(np.argmax(ratios))
    return rank, SingularValueGap(
        float(share[rank - 1]), float(share[rank]) if rank < len(share) else 0.0
    )


def split(rows: Array) -> tuple[Array, Array, Array, SingularValueGap]:
    """(row space, kernel, columns' sizes, gap) of a matrix.

    Both spaces are orthonormal rows, for unknowns that are multiplied by their columns' sizes.
    """
    count = rows.shape[1]
    sizes = np.linalg.norm(rows, axis=0)
    if not rows.any():
        return np.zeros((0, count)), np.eye(count), np.ones(count), SingularValueGap()
    some = sizes > NOTHING * max(float(sizes.max(initial=0.0)), TINY)
    sizes = np.where(some, sizes, 1.0)
    scaled = np.where(some, rows / sizes, 0.0)
    if len(scaled) > count:
        scaled = np.asarray(np.linalg.qr(scaled, mode="r"))
    singular, right = _right_vectors(scaled)
    singular = np.concatenate([singular, np.zeros(count - len(singular))])
    rank, gap = _rank(singular / singular[0])
    return right[:rank], right[rank:], sizes, gap


def _right_vectors(rows: Array) -> tuple[Array, Array]:
    """Singular values and all right singular vectors, by rows."""
    try:
        _, singular, right = np.linalg.svd(rows, full_matrices=True)
    except np.linalg.LinAlgError:  # LAPACK's divide and conquer fails on rare finite matrices
        from scipy.linalg import svd

        _, singular, right = svd(rows, full_matrices=True, lapack_driver="gesvd")
    return singular, right


def reduced(rows: Array, order: Sequence[int]) -> tuple[Array, list[int]]:
    """Reduced row echelon form of orthonormal rows, and its pivots.

    Pivots are the first columns of ``order`` that stand apart from those before them.
    """
    remaining = rows.copy()
    pivots: list[int] = []
    lengths = np.linalg.norm(rows, axis=0)
    for least in PIVOTS:
        for column in order:
            if len(pivots) == len(rows):
                break
            length = float(np.linalg.norm(remaining[:, column]))
            if column in pivots or length <= least * max(lengths[column], 1e-6):
                continue
            pivots.append(column)
            along = remaining[:, column] / length
            remaining -= np.outer(along, along @ remaining)
    pivots.sort(key=list(order).index)
    result: Array = np.asarray(np.linalg.solve(rows[:, pivots], rows), dtype=float)
    result[np.abs(result) < SINGULAR] = 0.0
    result[:, pivots] = np.eye(len(pivots))
    return result, pivots
