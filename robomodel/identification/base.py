"""Base parameters: the combinations of a model's parameters that forces identify."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.actuators.maps import actuator_map
from robomodel.dynamics.algorithm import run
from robomodel.dynamics.kinematics.frames import FrameKey, FrameLike, frame_keys
from robomodel.dynamics.kinematics.state import Configuration
from robomodel.errors import UnknownNameError, as_names, did_you_mean
from robomodel.identification.regressors import regressor
from robomodel.model.arguments import as_array
from robomodel.model.configurations.moving import random_configuration
from robomodel.model.elements import Cluster
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.model.parameters import ENTRIES, count, of_joints, parameters
from robomodel.scalars import stack, unstack
from robomodel.spatial import UNIT, UNIT_WRENCHES

SEED = 20180524  # samples are the same at every call
FACTOR = 3  # rows of a stacked regressor for each column

Kind = Literal["structure", "numeric"]


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Identifiable combinations of parameters: ``matrix`` @ values are the base parameters.

    Attributes:
        names: The rows in words, "Ixx of shank + 0.04 m of rod".
        matrix: Reduced row echelon form (rank, p), each row a parameter (its pivot, with
            coefficient 1) and what else is seen with it.
        parameters: Names of the columns.
        gap: The rank was decided between singular values of these shares of the largest; close ones
            mean that the robot is nearly of another rank.
        method: How they were computed, "numeric" or "structure".
        pivots: The column of each row's first parameter.
    """

    names: tuple[str, ...]
    matrix: Array
    parameters: tuple[str, ...]
    gap: Gap
    method: Kind
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
    method: Kind | None = None,
    near: ArrayLike | None = None,
) -> BaseParameters:
    """The parameters that forces of closed motions on one branch of the loops identify.

    No motion comes to another branch but through a dead point, and another may identify other
    combinations (a parallelogram's fewer than its crossed form's). ``random_configuration`` draws
    from all branches unless it has the same ``near``; all together may identify more.

    Both methods give the same where ``gap`` is wide; where it is narrow the rank is a matter of
    tolerance for either. Springs, and what wrench sensors on links would see, are not considered.

    Args:
        model: The robot.
        measured: Coordinates in which tau is known, by name (joints, or single freedoms of
            ``model.dof_names``), or "actuators" for those that actuators drive. By default tau is
            known in all: actuators' forces, none where nothing drives, and on a floating base none,
            or measured contact wrenches.
        contacts: Where unknown wrenches act on the robot: links, or (link, offset) for unknown
            forces at points; what does not depend on them is still seen.
        method: "numeric" (the default), from the singular values of a stacked
            :func:`robomodel.regressor`, or "structure", cluster by cluster (see
            :func:`.base.structure`), whose cost is linear in the robot's size, for tau known in all
            coordinates.
        near: A configuration (nq,) on the branch, by default ``neutral()``.

    Returns:
        base: The base parameters.

    Raises:
        UnknownNameError: Unknown names.
        ValueError: A ``near`` that is no configuration.
    """
    keys = frame_keys(contacts)
    for frame in keys:
        model.frame(frame if isinstance(frame, str) else frame[0])
    start = model.neutral() if near is None else _start(model, near)
    rows = None if measured is None else _coordinates(model, measured, start)
    part = rows is not None or bool(keys)
    if method not in (None, "structure", "numeric"):
        raise ValueError(f"method '{method}' is not known; 'structure' and 'numeric' are")
    if part and method == "structure":
        raise ValueError("method 'structure' needs tau in all coordinates, without contacts")
    rng = np.random.default_rng(SEED)
    kind: Kind = method or "numeric"
    names = parameters(model).names
    if not model.nv or rows == []:
        return BaseParameters((), np.zeros((0, len(names))), names, Gap(), kind)
    if kind == "structure":
        rows_seen, gap = structure(model, rng, start)
        scale = _scales(model)
        space = _row_space(rows_seen / scale)
    else:
        space, scale, gap = _numeric(model, rng, start, rows, keys)
    echelon, pivots = reduced(space, _order(model))
    matrix = echelon * scale / scale[pivots, None]
    matrix[np.abs(echelon) < 1e-9] = 0.0
    matrix[range(len(pivots)), pivots] = 1.0
    words = tuple(_worded(names, row, pivot) for row, pivot in zip(matrix, pivots, strict=True))
    return BaseParameters(words, matrix, names, gap, kind, tuple(pivots))


def _start(model: Model, near: ArrayLike) -> Array:
    """One closed configuration."""
    q = as_array(near, model.nq, "near", "nq")
    if q.shape != (model.nq,):
        raise ValueError(f"near is one configuration (nq,), got shape {q.shape}")
    model.check(q)
    return q


def _coordinates(model: Model, measured: str | Iterable[str], start: Array) -> list[int]:
    """Indices into v of what is measured."""
    if measured == "actuators":
        q = on_branch(model, np.random.default_rng(SEED), 3, start)
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


def _scales(model: Model) -> Array:
    """Sizes by which parameters count alike: lengths to the power that makes all inertias."""
    offsets = [math.hypot(*map(float, node.offset)) for node in model.nodes]
    length = max(offsets, default=0.0) or 1.0
    body = np.array([length**2, *[length] * 3, *[1.0] * 6])
    return np.concatenate(
        [np.tile(body, len(model.nodes)), np.ones(sum(1 for _ in of_joints(model)))]
    )


def _row_space(rows: Array) -> Array:
    """Orthonormal rows with the row space of independent ones."""
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    result: Array = np.linalg.qr((rows / sizes).T)[0].T
    return result


def _numeric(
    model: Model,
    rng: np.random.Generator,
    start: Array,
    rows: list[int] | None,
    contacts: tuple[FrameKey, ...],
) -> tuple[Array, Array, Gap]:
    """Row space (of scaled parameters), their scales and the gap of a stacked regressor."""
    each = len(rows) if rows else model.nv
    times = -(-FACTOR * count(model) // (each * CONFIGURATIONS))
    q = np.repeat(on_branch(model, rng, CONFIGURATIONS, start), times, axis=0)
    states = len(q)
    v, a = rng.normal(size=(2, states, model.nv))
    y = regressor(model, q, v, a, backend="numpy")
    weights = np.eye(model.nv)[rows] if rows is not None else np.eye(model.nv)
    seen = [weights] * states
    if contacts:
        felt = [_felt(model, q, frame) for frame in contacts]
        seen = _beside(seen, np.concatenate(felt, axis=1))
    scale = _scales(model)
    stacked = np.concatenate([w @ each for w, each in zip(seen, y, strict=True)])
    space, _, sizes, gap = split(stacked)
    return _row_space(space * (sizes / scale)), scale, gap


def _felt(model: Model, q: Array, frame: FrameKey) -> Array:
    """Rows (n, 6 or 3, nv) of the Jacobian through which an unknown wrench, or force, acts."""
    j: Array = run(model, "jacobian", {"q": q}, "numpy", frames=(frame,))
    return j if isinstance(frame, str) else j[:, 3:]


def _beside(weights: list[Array], felt: Array) -> list[Array]:
    """Combinations of the weights' rows that unknown forces through ``felt`` do not reach."""
    result = []
    for w, j in zip(weights, felt, strict=True):
        reached = w @ j.T
        left, size, _ = np.linalg.svd(reached, full_matrices=True)
        rank = int(np.sum(size > 1e-9 * max(float(size.max(initial=0.0)), 1e-9)))
        result.append(left[:, rank:].T @ w)
    return result


# ---- words ---------------------------------------------------------------------------------------

_PREFERRED = (
    "damping", "friction", "mx", "my", "mz", "Izz", "Iyy", "Ixx", "Ixy", "Ixz", "Iyz", "armature",
    "mass",
)  # fmt: skip


def _order(model: Model) -> list[int]:
    """Columns as pivots: links before rotors, and of each what one would rather name."""
    names = parameters(model).names
    moved = {joint.child: joint for joint in model.joints}
    driven = {body.name: not moved[body.name].independent for body in model.bodies}
    driven |= {joint.name: not joint.independent for joint in model.joints}

    def key(column: int) -> tuple[bool, int, int]:
        owner, _, kind = names[column].rpartition(".")
        return driven[owner], _PREFERRED.index(kind), column

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


# ---- cluster by cluster --------------------------------------------------------------------------


CONFIGURATIONS = 40
FEWEST, ROWS = 12, 5  # configurations that are looked at, and rows for each unknown, at least
SPEEDS = 12  # at each configuration, to separate joints' dry friction


def skews(vectors: Array) -> Array:
    """[a]x of vectors (..., 3)."""
    return np.cross(np.eye(3), vectors[..., None, :])


def _spatial(values: Array) -> Array:
    """The 6 x 6 inertia of ten parameters."""
    mass, h = values[0], values[1:4]
    result = np.zeros((6, 6))
    for (i, j), x in zip(ENTRIES, values[4:], strict=True):
        result[i, j] = result[j, i] = x
    hx = skews(h)
    result[:3, 3:], result[3:, :3], result[3:, 3:] = hx, -hx, mass * np.eye(3)
    return result


BASIS = np.array([_spatial(e) for e in np.eye(10)])


def _ten(inertia: Array) -> Array:
    """The ten parameters (..., 10) of inertias (..., 6, 6)."""
    places = ((5, 5), (2, 4), (0, 5), (1, 3), *ENTRIES)
    return np.stack([inertia[..., i, j] for i, j in places], axis=-1)


@dataclass(frozen=True, slots=True)
class _Attained:
    """Spans of stacked bodies (m = 6 times their number): V (m, ·), W (·, m, m), g (m, ·)."""

    velocities: Array
    products: Array
    gravity: Array


@dataclass(frozen=True, slots=True)
class _Relative:
    """X (n, 6, m) and Ŝ (n, 6, nv) of a cluster's bodies at n configurations."""

    carried: dict[int, Array]
    motions: dict[int, Array]


def structure(model: Model, rng: np.random.Generator, start: Array) -> tuple[Array, Gap]:
    """Rows (rank, p) that span what forces on ``start``'s branch identify; the narrowest gap.

    The recursion of Wensing, Niemeyer and Slotine for trees (A geometric characterization of
    observability in inertial parameter identification, IJRR 2024) carried over to clusters.
    Outwards, for the bodies o on which a cluster hangs (stacked, if several), three spans of
    constants:

        V  velocities that they attain     W  products v vᵀ of those     g  directions of gravity

    Inwards, leaf clusters first: a change of the bodies' inertias δI_b and joints' armatures of
    cluster k is not seen if, in all its configurations on the branch,

        (a)  Σ_b Ŝ_bᵀ δI_b X_b v = 0 for v in V and g
        (b)  Σ_b Ŝ_bᵀ δI_b Ŝ_b + Σ_r δA_r G_rᵀ G_r = 0
        (c)  ⟨W, Σ_b X_bᵀ δI_b X_b⟩ does not vary

    with X_b from the motion of o to that of body b and Ŝ_b its motion beyond. To all else it is
    then the inertia Σ_b X_bᵀ δI_b X_b on o, and is added to o's. Damping and dry friction are seen
    by Σ d_r G_rᵀ G_r and Σ f_r |G_r v| alone. "In all configurations" is decided at random ones: G,
    X and Ŝ are analytic, so that finitely many suffice. The bases of V and W are not of length one:
    what linkages only just attain (of their products of velocities, some 1e-8 of the others) is
    weighed as that, or its rounding would count where nothing is attained at all.
    """
    samples = Samples.of(model, on_branch(model, rng, CONFIGURATIONS, start))
    relative = [_relative(model, samples, cluster) for cluster in model.clusters]
    attained = _attained(model, relative)
    total = count(model)
    effective = [_in_internal_axes(model, body, total) for body in range(len(model.nodes))]
    first = 10 * len(model.nodes)
    of_body: dict[int, list[tuple[int, str]]] = {}
    for column, (joint, kind) in enumerate(of_joints(model), first):
        of_body.setdefault(joint, []).append((column, kind))
    result, narrowest = [np.zeros((0, total))], Gap()
    for cluster in reversed(model.clusters):
        columns = {
            kind: [(c, b) for b in cluster.bodies for c, k in of_body.get(b, []) if k == kind]
            for kind in ("armature", "damping", "friction")
        }
        arms = columns["armature"]
        rows = _conditions(
            samples, cluster, relative[cluster.index], attained[cluster.index], [b for _, b in arms]
        )
        changes = np.vstack([*(effective[b] for b in cluster.bodies), *_units(arms, total)])
        seen, hidden, sizes, gap = split(rows)
        narrowest = narrowest.worse(gap)
        result.append(seen @ (sizes[:, None] * changes))
        moved = (hidden.T @ (hidden @ (sizes[:, None] * changes))) / sizes[:, None]
        _move(model, cluster, relative[cluster.index], effective, moved)
        for kind in ("damping", "friction"):
            if columns[kind]:
                rows = _losses(samples, cluster, kind, [b for _, b in columns[kind]], rng)
                seen, _, sizes, gap = split(rows)
                narrowest = narrowest.worse(gap)
                result.append(seen @ (sizes[:, None] * np.vstack(_units(columns[kind], total))))
    return np.vstack(result), narrowest


def _units(columns: list[tuple[int, int]], total: int) -> list[Array]:
    return [np.eye(1, total, column) for column, _ in columns]


def _in_internal_axes(model: Model, body: int, total: int) -> Array:
    """A body's ten parameters in internal axes (10, p), of all parameters."""
    link = model.frame(model.nodes[body].name).pose
    turn = np.array([link.to_parent(wrench).entries() for wrench in UNIT_WRENCHES]).T
    result = np.zeros((10, total))
    result[:, 10 * body : 10 * body + 10] = _ten(turn @ BASIS @ turn.T).T
    return result


def _relative(model: Model, samples: Samples, cluster: Cluster) -> _Relative:
    outputs = sorted(cluster.outputs)
    carried: dict[int, Array] = {}
    beyond: dict[int, Array] = {}
    for body in cluster.bodies:
        parent, step = model.nodes[body].parent, samples.steps[body]
        if parent in outputs:
            slot = 6 * outputs.index(parent)
            carried[body] = np.zeros((len(step), 6, 6 * len(outputs)))
            carried[body][:, :, slot : slot + 6] = step
            beyond[body] = samples.motions[body]
        else:
            carried[body] = step @ carried[parent]
            beyond[body] = step @ beyond[parent] + samples.motions[body]
    return _Relative(carried, beyond)


def _attained(model: Model, relative: list[_Relative]) -> list[_Attained]:
    """Spans of the bodies on which each cluster hangs."""
    gravity = np.zeros((6, 1))
    gravity[3:, 0] = model.gravity
    world = _Attained(np.zeros((6, 0)), np.zeros((0, 6, 6)), gravity)
    by_outputs: dict[tuple[int, ...], _Attained] = {(WORLD,): world}
    result: list[_Attained] = []
    for cluster in model.clusters:  # parents come before their children
        outputs = tuple(sorted(cluster.outputs))
        if outputs not in by_outputs:
            parent = model.clusters[cluster.parent]
            by_outputs[outputs] = _beyond(result[parent.index], relative[parent.index], outputs)
        result.append(by_outputs[outputs])
    return result


def _beyond(base: _Attained, relative: _Relative, bodies: tuple[int, ...]) -> _Attained:
    """Spans of these bodies of a cluster, stacked."""
    x = np.concatenate([relative.carried[b] for b in bodies], axis=1)  # (n, m', m)
    s = np.concatenate([relative.motions[b] for b in bodies], axis=1)  # (n, m', nv)
    size = x.shape[1]
    v = x @ base.velocities
    full = base.velocities.shape[1] == base.products.shape[1] == size
    if full and len(base.products) == size * (size + 1) // 2:
        gravity = span(np.concatenate([*(x @ base.gravity)], axis=1))
        return replace(base, gravity=gravity)  # x is regular
    velocities = span(np.concatenate([*v, *s], axis=1))
    turned = x[:, None] @ base.products @ np.swapaxes(x, 1, 2)[:, None]
    products = [turned.reshape(-1, size, size)]
    for columns in (v, s):
        both = np.einsum("nai,nbj->nijab", columns, s).reshape(-1, size, size)
        products.append(0.5 * (both + np.swapaxes(both, 1, 2)))
    flat = np.concatenate(products).reshape(-1, size * size)
    if len(flat) > size * size:
        flat = np.asarray(np.linalg.qr(flat, mode="r"))
    basis = span(flat.T)
    if basis.shape[1] == size * (size + 1) // 2:
        basis = _symmetric(size)
    gravity = span(np.concatenate([*(x @ base.gravity)], axis=1))
    return _Attained(velocities, basis.T.reshape(-1, size, size), gravity)


def _symmetric(size: int) -> Array:
    """All symmetric matrices: a basis, as columns."""
    unit = np.eye(size)
    pairs = [(unit[i], unit[j]) for i in range(size) for j in range(i, size)]
    return np.stack([(np.outer(a, b) + np.outer(b, a)).ravel() for a, b in pairs], axis=1)


def _conditions(
    samples: Samples, cluster: Cluster, at: _Relative, base: _Attained, arms: list[int]
) -> Array:
    """(a), (b), (c) as rows on the bodies' ten and the armatures, over all configurations."""
    directions = np.concatenate([base.velocities, base.gravity], axis=1)
    first: list[Array] = []
    second: list[Array] = []
    third: list[Array] = []
    size = base.products.shape[1] ** 2
    flat = base.products.reshape(len(base.products), size)
    for body in cluster.bodies:
        x, s = at.carried[body][:, None], at.motions[body][:, None]
        force = np.swapaxes(BASIS @ s, 2, 3)  # (n, 10, nv, 6)
        seen = (np.swapaxes(x, 2, 3) @ (BASIS @ x)).reshape(len(x), len(BASIS), size) @ flat.T
        for part, block in ((first, force @ (x @ directions)), (second, force @ s)):
            entries = block.reshape(*block.shape[:2], block.shape[2] * block.shape[3])
            part.append(np.swapaxes(entries, 1, 2))
        third.append(np.swapaxes(seen - seen[:1], 1, 2))
    for body in arms:
        rows = samples.rows[body]
        count = len(rows)
        mass = np.einsum("nri,nrk->nik", rows, rows).reshape(count, -1, 1)
        first.append(np.zeros((count, first[0].shape[1], 1)))
        second.append(mass)
        third.append(np.zeros((count, third[0].shape[1], 1)))
    blocks = np.concatenate(
        [np.concatenate(part, axis=2) for part in (first, second, third)], axis=1
    )
    _, rows, columns = blocks.shape
    enough = max(FEWEST, -(-ROWS * columns // rows))  # configurations
    result: Array = blocks[:enough].reshape(-1, columns)
    return result


def _move(
    model: Model, cluster: Cluster, at: _Relative, effective: list[Array], moved: Array
) -> None:
    """Give what is not seen to the bodies on which the cluster hangs."""
    outputs = sorted(cluster.outputs)
    if outputs == [WORLD]:
        return
    for i, body in enumerate(cluster.bodies):
        ancestor = body
        while ancestor in cluster.bodies:
            ancestor = model.nodes[ancestor].parent
        slot = 6 * outputs.index(ancestor)
        x = at.carried[body][0][:, slot : slot + 6]
        turned = _ten(x.T @ BASIS @ x).T  # (10, 10)
        effective[ancestor] = effective[ancestor] + turned @ moved[10 * i : 10 * i + 10]


def _losses(
    samples: Samples, cluster: Cluster, kind: str, bodies: list[int], rng: np.random.Generator
) -> Array:
    """Joints' columns over all configurations: G_rᵀ G_r of damping, |G_r v| of dry friction."""
    each = [samples.rows[b] for b in bodies]
    if kind == "damping":
        return np.column_stack([np.einsum("nri,nrk->nik", g, g).ravel() for g in each])
    v = rng.normal(size=(len(each[0]), SPEEDS, cluster.nv))
    return np.column_stack(
        [np.abs(np.einsum("nri,nsi->nsr", g, v)).sum(axis=2).ravel() for g in each]
    )


# ---- samples -------------------------------------------------------------------------------------


STEPS = 3  # of at most 0.3 radians, or cluster sizes


def on_branch(model: Model, rng: np.random.Generator, count: int, start: Array) -> Array:
    """Closed configurations (count, nq) on the branch of ``start`` (nq,), a closed one.

    Loops depart from it by some short steps, each away from dead points, so that they cannot come
    to another branch; all else is anywhere.
    """
    linkages = [cluster for cluster in model.clusters if cluster.implicit]
    others = [cluster for cluster in model.clusters if not cluster.implicit]
    q = np.empty((count, model.nq))
    for n, row in enumerate(q):
        row[:] = start
        for _ in range(1 + n % STEPS if linkages else 0):
            row[:] = random_configuration(model, rng, row, linkages)
        anywhere = random_configuration(model, rng, None, others)
        for cluster in others:
            row[cluster.q] = anywhere[cluster.q]
    return q


@dataclass(frozen=True)
class Samples:
    """Kinematics of all bodies at configurations, in internal axes, bodies that spin turned.

    ``steps[b]`` (n, 6, 6) takes the parent's motion to body b's, ``motions[b]`` (n, 6, nv of its
    cluster) are S G, ``rows[b]`` (n, joint's nv, nv of its cluster) its rows of G.
    """

    steps: list[Array]
    motions: list[Array]
    rows: list[Array]

    @classmethod
    def of(cls, model: Model, q: Array) -> Samples:
        """At configurations (n, nq)."""
        at = Configuration(model, unstack(q), range(len(model.nodes)))
        count, steps, motions, rows = len(q), [], [], []
        for body, node in enumerate(model.nodes):
            x = at.transforms[body]
            back = stack([e for unit in UNIT for e in x.unrotate(unit)], (count,))
            turn = np.swapaxes(back.reshape(count, 3, 3), 1, 2)  # columns: Rᵀ e
            step = np.zeros((count, 6, 6))
            step[:, :3, :3] = step[:, 3:, 3:] = turn
            step[:, 3:, :3] = -turn @ skews(stack(list(x.offset), (count,)))
            steps.append(step)
            width = model.clusters[node.cluster].nv
            columns = [e for motion in at.subspace(body) for e in motion.entries()]
            moved = stack(columns, (count,)).reshape(count, width, 6)
            motions.append(np.swapaxes(moved, 1, 2))
            entries = [e for r in node.freedoms for e in at.rows[r]]
            rows.append(stack(entries, (count,)).reshape(count, node.joint.nv, width))
        return cls(steps, motions, rows)


# ---- spans, kernels and row spaces ---------------------------------------------------------------


FAINT = 1e-14  # of the largest singular value: what surely does not count below
CLEAR = 1e-6  # and what surely does above
ROUNDING = 1e-16
NOTHING = 1e-11  # of the longest column: a column that is zero
PIVOTS = (0.05, 1e-3, 1e-7)  # of a column: what must remain of it beside the pivots before


@dataclass(frozen=True, slots=True)
class Gap:
    """The smallest singular value that counts, and the largest that does not; of the largest."""

    kept: float = 1.0
    dropped: float = 0.0

    @property
    def ratio(self) -> float:
        """Their ratio, up to 1e17."""
        return self.kept / max(self.dropped, 1e-17)

    def worse(self, other: Gap) -> Gap:
        """The narrower of two."""
        return self if self.ratio <= other.ratio else other


def span(columns: Array) -> Array:
    """Columns with the span of these, orthogonal, and as long as they are there to be seen.

    What is only just attained is as much less accurate: of length one, a direction that
    is 1e-8 of the others would carry 1e-8 of rounding into what nothing attains, where that counts.
    The whole space is exact.
    """
    if 0 in columns.shape:
        return columns[:, :0]
    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    if not size[0] > 0.0:
        return columns[:, :0]
    rank = _rank(size / size[0])[0]
    return np.eye(len(left)) if rank == len(left) else left[:, :rank] * (size[:rank] / size[0])


def _rank(share: Array) -> tuple[int, Gap]:
    """The rank of a matrix of these singular values, the largest 1: where the widest gap is.

    Loops near one configuration vary little, so that what counts may be small.
    """
    least, most = int(np.sum(share > CLEAR)), int(np.sum(share > FAINT))
    padded = np.maximum(np.append(share, 0.0), ROUNDING)
    ratios = padded[least - 1 : most] / padded[least : most + 1]
    rank = least + int(np.argmax(ratios))
    return rank, Gap(float(share[rank - 1]), float(share[rank]) if rank < len(share) else 0.0)


def split(rows: Array) -> tuple[Array, Array, Array, Gap]:
    """(row space, kernel, columns' sizes, gap) of a matrix.

    Both spaces are orthonormal rows, for unknowns that are multiplied by their columns' sizes.
    """
    count = rows.shape[1]
    sizes = np.linalg.norm(rows, axis=0)
    if not rows.any():
        return np.zeros((0, count)), np.eye(count), np.ones(count), Gap()
    some = sizes > NOTHING * max(float(sizes.max(initial=0.0)), 1e-300)
    sizes = np.where(some, sizes, 1.0)
    scaled = np.where(some, rows / sizes, 0.0)
    if len(scaled) > count:
        scaled = np.asarray(np.linalg.qr(scaled, mode="r"))
    _, singular, right = np.linalg.svd(scaled, full_matrices=True)
    singular = np.concatenate([singular, np.zeros(count - len(singular))])
    rank, gap = _rank(singular / singular[0])
    return right[:rank], right[rank:], sizes, gap


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
    result[np.abs(result) < 1e-9] = 0.0
    result[:, pivots] = np.eye(len(pivots))
    return result, pivots
