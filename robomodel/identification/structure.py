"""What forces can tell of parameters, cluster by cluster.

The recursion of Wensing, Niemeyer and Slotine for trees (A geometric characterization of
observability in inertial parameter identification, IJRR 2024) carried over to clusters. Outwards,
for the bodies o on which a cluster hangs (stacked, if several), three spans of constants:

    V  velocities that they attain        W  products v vᵀ of those      g  directions of gravity

Inwards, leaf clusters first: a change of the bodies' inertias δI_b and joints' armatures of cluster
k is not seen if, in all its configurations on the branch,

    (a)  Σ_b Ŝ_bᵀ δI_b X_b v = 0 for v in V and g    (b)  Σ_b Ŝ_bᵀ δI_b Ŝ_b + Σ_r δA_r G_rᵀ G_r = 0
    (c)  ⟨W, Σ_b X_bᵀ δI_b X_b⟩ does not vary

with X_b from the motion of o to that of body b and Ŝ_b its motion beyond. To all else it is then
the inertia Σ_b X_bᵀ δI_b X_b on o, and is added to o's. Damping and dry friction are seen by
Σ d_r G_rᵀ G_r and Σ f_r |G_r v| alone. "In all configurations" is decided at random ones: G, X and
Ŝ are analytic, so that finitely many suffice. The bases of V and W are not of length one: what
linkages only just attain (of their products of velocities, some 1e-8 of the others) is weighed as
that, or its rounding would count where nothing is attained at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from robomodel.identification.sampling import Samples, on_branch, skews
from robomodel.identification.spaces import Gap, span, split
from robomodel.model.elements import Cluster
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.model.parameters import ENTRIES, count, of_joints

CONFIGURATIONS = 40
FEWEST, ROWS = 12, 5  # configurations that are looked at, and rows for each unknown, at least
SPEEDS = 12  # at each configuration, to tell joints' dry friction apart


def _spatial(values: Array) -> Array:
    """The 6 x 6 inertia of ten parameters."""
    mass, h = values[0], values[1:4]
    found = np.zeros((6, 6))
    for (i, j), x in zip(ENTRIES, values[4:], strict=True):
        found[i, j] = found[j, i] = x
    hx = skews(h)
    found[:3, 3:], found[3:, :3], found[3:, 3:] = hx, -hx, mass * np.eye(3)
    return found


BASIS = np.array([_spatial(e) for e in np.eye(10)])


def _ten(inertia: Array) -> Array:
    """The ten parameters (..., 10) of inertias (..., 6, 6)."""
    places = ((5, 5), (2, 4), (0, 5), (1, 3), *ENTRIES)
    return np.stack([inertia[..., i, j] for i, j in places], axis=-1)


@dataclass(frozen=True, slots=True)
class _Attained:
    """What stacked bodies attain (m = 6 times their number): V (m, ·), W (·, m, m), g (m, ·)."""

    velocities: Array
    products: Array
    gravity: Array


@dataclass(frozen=True, slots=True)
class _Relative:
    """X (n, 6, m) and Ŝ (n, 6, nv) of a cluster's bodies at n configurations."""

    carried: dict[int, Array]
    own: dict[int, Array]


def structure(model: Model, rng: np.random.Generator, start: Array) -> tuple[Array, Gap]:
    """Rows (rank, p) that span what forces on ``start``'s branch tell, and the narrowest gap."""
    samples = Samples.of(model, on_branch(model, rng, CONFIGURATIONS, start))
    relative = [_relative(model, samples, cluster) for cluster in model.clusters]
    attained = _attained(model, relative)
    total = count(model)
    effective = [_in_internal_axes(model, body, total) for body in range(len(model.nodes))]
    first = 10 * len(model.nodes)
    of_body: dict[int, list[tuple[int, str]]] = {}
    for column, (joint, kind) in enumerate(of_joints(model), first):
        of_body.setdefault(joint, []).append((column, kind))
    found, narrowest = [np.zeros((0, total))], Gap()
    for cluster in reversed(model.clusters):
        columns = {
            kind: [(c, b) for b in cluster.bodies for c, k in of_body.get(b, []) if k == kind]
            for kind in ("armature", "damping", "friction")
        }
        arms = columns["armature"]
        rows = _conditions(
            samples, cluster, relative[cluster.index], attained[cluster.index], [b for _, b in arms]
        )
        own = np.vstack([*(effective[b] for b in cluster.bodies), *_units(arms, total)])
        seen, hidden, sizes, gap = split(rows)
        narrowest = narrowest.worse(gap)
        found.append(seen @ (sizes[:, None] * own))
        moved = (hidden.T @ (hidden @ (sizes[:, None] * own))) / sizes[:, None]
        _move(model, cluster, relative[cluster.index], effective, moved)
        for kind in ("damping", "friction"):
            if columns[kind]:
                make = _resistances if kind == "damping" else _frictions
                rows = make(samples, cluster, [b for _, b in columns[kind]], rng)
                seen, _, sizes, gap = split(rows)
                narrowest = narrowest.worse(gap)
                found.append(seen @ (sizes[:, None] * np.vstack(_units(columns[kind], total))))
    return np.vstack(found), narrowest


def _units(columns: list[tuple[int, int]], total: int) -> list[Array]:
    return [np.eye(1, total, column) for column, _ in columns]


def _in_internal_axes(model: Model, body: int, total: int) -> Array:
    """A body's ten parameters in internal axes (10, p), of all parameters."""
    axes = np.array(model.nodes[body].axes, dtype=float)
    turn = np.zeros((6, 6))
    turn[:3, :3] = turn[3:, 3:] = axes.T
    found = np.zeros((10, total))
    found[:, 10 * body : 10 * body + 10] = _ten(turn @ BASIS @ turn.T).T
    return found


def _relative(model: Model, samples: Samples, cluster: Cluster) -> _Relative:
    outputs = sorted(cluster.outputs)
    carried: dict[int, Array] = {}
    own: dict[int, Array] = {}
    for body in cluster.bodies:
        parent, step = model.nodes[body].parent, samples.steps[body]
        if parent in outputs:
            slot = 6 * outputs.index(parent)
            carried[body] = np.zeros((len(step), 6, 6 * len(outputs)))
            carried[body][:, :, slot : slot + 6] = step
            own[body] = samples.motions[body]
        else:
            carried[body] = step @ carried[parent]
            own[body] = step @ own[parent] + samples.motions[body]
    return _Relative(carried, own)


def _attained(model: Model, relative: list[_Relative]) -> list[_Attained]:
    """What the bodies attain on which each cluster hangs."""
    gravity = np.zeros((6, 1))
    gravity[3:, 0] = model.gravity
    world = _Attained(np.zeros((6, 0)), np.zeros((0, 6, 6)), gravity)
    known: dict[tuple[int, ...], _Attained] = {(WORLD,): world}
    found: list[_Attained] = []
    for cluster in model.clusters:  # parents come before their children
        outputs = tuple(sorted(cluster.outputs))
        if outputs not in known:
            parent = model.clusters[cluster.parent]
            known[outputs] = _beyond(found[parent.index], relative[parent.index], outputs)
        found.append(known[outputs])
    return found


def _beyond(base: _Attained, relative: _Relative, bodies: tuple[int, ...]) -> _Attained:
    """What these bodies of a cluster attain, stacked."""
    x = np.concatenate([relative.carried[b] for b in bodies], axis=1)  # (n, m', m)
    s = np.concatenate([relative.own[b] for b in bodies], axis=1)  # (n, m', nv)
    size = x.shape[1]
    v = x @ base.velocities
    full = base.velocities.shape[1] == base.products.shape[1] == size
    if full and len(base.products) == size * (size + 1) // 2:
        gravity = span(np.concatenate([*(x @ base.gravity)], axis=1))
        return replace(base, gravity=gravity)  # x is regular
    velocities = span(np.concatenate([*v, *s], axis=1))
    turned = x[:, None] @ base.products @ np.swapaxes(x, 1, 2)[:, None]
    products = [turned.reshape(-1, size, size)]
    for left in (v, s):
        both = np.einsum("nai,nbj->nijab", left, s).reshape(-1, size, size)
        products.append(0.5 * (both + np.swapaxes(both, 1, 2)))
    flat = np.concatenate(products).reshape(-1, size * size)
    if len(flat) > size * size:
        flat = np.asarray(np.linalg.qr(flat, mode="r"))
    kept = span(flat.T)
    if kept.shape[1] == size * (size + 1) // 2:
        kept = _symmetric(size)
    gravity = span(np.concatenate([*(x @ base.gravity)], axis=1))
    return _Attained(velocities, kept.T.reshape(-1, size, size), gravity)


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
        x, s = at.carried[body][:, None], at.own[body][:, None]
        force = np.swapaxes(BASIS @ s, 2, 3)  # (n, 10, nv, 6)
        seen = (np.swapaxes(x, 2, 3) @ (BASIS @ x)).reshape(len(x), len(BASIS), size) @ flat.T
        for part, block in ((first, force @ (x @ directions)), (second, force @ s)):
            entries = block.reshape(*block.shape[:2], block.shape[2] * block.shape[3])
            part.append(np.swapaxes(entries, 1, 2))
        third.append(np.swapaxes(seen - seen[:1], 1, 2))
    for body in arms:
        rows = samples.rows[body]
        count = len(rows)
        own = np.einsum("nri,nrk->nik", rows, rows).reshape(count, -1, 1)
        first.append(np.zeros((count, first[0].shape[1], 1)))
        second.append(own)
        third.append(np.zeros((count, third[0].shape[1], 1)))
    blocks = np.concatenate(
        [np.concatenate(part, axis=2) for part in (first, second, third)], axis=1
    )
    _, rows, columns = blocks.shape
    enough = max(FEWEST, -(-ROWS * columns // rows))  # configurations
    found: Array = blocks[:enough].reshape(-1, columns)
    return found


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


def _resistances(
    samples: Samples, cluster: Cluster, bodies: list[int], _: np.random.Generator
) -> Array:
    """G_rᵀ G_r of each joint over all configurations, as columns."""
    return np.column_stack(
        [np.einsum("nri,nrk->nik", samples.rows[b], samples.rows[b]).ravel() for b in bodies]
    )


def _frictions(
    samples: Samples, cluster: Cluster, bodies: list[int], rng: np.random.Generator
) -> Array:
    """|G_r v| of each joint over all configurations and some velocities, as columns."""
    v = rng.normal(size=(len(samples.rows[0]), SPEEDS, cluster.nv))
    return np.column_stack(
        [np.abs(np.einsum("nri,nsi->nsr", samples.rows[b], v)).sum(axis=2).ravel() for b in bodies]
    )
