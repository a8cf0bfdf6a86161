"""Configurations with given joint positions, loops solved for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from robomodel.errors import UnknownNameError, did_you_mean
from robomodel.model import closure as newton
from robomodel.model.arguments import check_one_configuration
from robomodel.model.closure import CLOSED, Geometry
from robomodel.model.configurations.continuation import STEP, is_closed
from robomodel.model.configurations.failures import Failures, normalized, not_closed
from robomodel.model.elements import Cluster
from robomodel.model.joints import Array

if TYPE_CHECKING:
    from robomodel.model.model import Model


def solve(
    model: Model,
    positions: Mapping[str, float | Sequence[float]],
    guess: Array,
    base_pose: Sequence[float] | None,
) -> Array:
    """The configuration with these joint positions, near the guess."""
    check_one_configuration(guess, "guess")
    index = {joint.name: i for i, joint in enumerate(model.joints)}
    given: dict[int, Array] = {}
    for name, value in positions.items():
        if name not in index:
            raise UnknownNameError(
                f"no joint '{name}' in '{model.name}'{did_you_mean(name, index)}"
            )
        body = index[name]
        joint = model.nodes[body].joint
        entry = np.atleast_1d(np.asarray(value))
        real = entry.shape == (joint.nq,) and entry.dtype.kind in "fiub"
        if not (real and np.all(np.isfinite(entry))):
            raise ValueError(f"joint '{name}' needs {joint.nq} finite number(s), got {value!r}")
        given[body] = entry.astype(float)
    if base_pose is not None:
        if model.floating_base is None:
            raise ValueError(f"'{model.name}' has no floating base, so base_pose means nothing")
        pose = np.asarray(base_pose)
        real = pose.shape == (7,) and pose.dtype.kind in "fiub"
        if not (real and np.all(np.isfinite(pose))):
            raise ValueError("base_pose needs seven finite numbers: x y z qx qy qz qw")
        given[0] = pose.astype(float)
    q = guess.copy()
    for cluster in model.clusters:
        here = {body: given[body] for body in cluster.bodies if body in given}
        if cluster.implicit:
            q[cluster.q] = _solve_loops(model, cluster, here, q[cluster.q])
        elif here:
            q[cluster.q] = _solve_explicit(model, cluster, here, q[cluster.q])
    failures = Failures(np.zeros((), dtype=bool))
    return failures.result(normalized(model, q, failures), whole=True)


def _solve_explicit(model: Model, cluster: Cluster, given: Mapping[int, Array], q: Array) -> Array:
    """Positions linear in the independent ones: least change that gives the named joints theirs."""
    first = model.nodes[cluster.bodies[0]].q
    names = [model.joints[body].name for body in given]
    if cluster.kind == "joint":
        return next(iter(given.values()))
    offset = np.array(cluster.constraint.positions([0.0] * len(q)))
    matrix = np.array(
        [
            np.array(cluster.constraint.positions([float(i == j) for j in range(len(q))])) - offset
            for i in range(len(q))
        ]
    ).T
    rows: list[int] = []
    wanted: list[float] = []
    for body, value in given.items():
        at = model.nodes[body].q - first
        rows += range(at, at + len(value))
        wanted += list(value)
    a, b = matrix[rows], np.array(wanted) - offset[rows]
    step, _, _, _ = np.linalg.lstsq(a, b - a @ q, rcond=1e-12)
    solved: Array = q + step
    off = float(np.max(np.abs(a @ solved - b), initial=0.0))
    if off > 1e-9 * max(1.0, float(np.max(np.abs(wanted)))):
        raise ValueError(f"the positions of {names} contradict their couplings by {off:.3g}")
    return solved


def _solve_loops(model: Model, cluster: Cluster, given: Mapping[int, Array], start: Array) -> Array:
    """Close the loops with the named joints where they shall be.

    From a closed guess the named joints are moved there step by step, so that the branch is kept;
    where that way is barred, and from a guess that is not closed, Newton starts at the target, and
    at last from configurations around it.
    """
    geometry = cluster.closure
    nodes = [model.nodes[body] for body in cluster.bodies]
    first_q, first_v = nodes[0].q, nodes[0].v
    target = start.copy()
    held: list[int] = []
    for body, value in given.items():
        node = model.nodes[body]
        target[node.q - first_q : node.q - first_q + node.joint.nq] = value
        held += [v - first_v for v in node.freedoms]
    # the other independent joints stay, unless a dependent one is named in their place
    own = [c for c in cluster.columns if c not in held]
    room = geometry.nv - len(held) - len(own)
    rank = geometry.nv - cluster.nv
    stay = held + own if room >= rank else held
    rows = cluster.closing_rows

    def good(q: Array, gap: Array) -> bool:
        return bool(is_closed(geometry, q, gap))

    guess_gap = float(geometry.gap(start))
    best = np.inf
    if guess_gap <= 1e3 * CLOSED:
        way = geometry.difference(start, target)[held] if held else np.zeros(0)
        steps = max(1, int(np.ceil(np.max(np.abs(way), initial=0.0) / STEP)))
        at, gap, done = start, np.zeros(()), True
        for step in range(1, steps + 1):
            if steps > 2000:
                done = False
                break
            move = np.zeros(geometry.nv)
            move[held] = way / steps
            ahead = geometry.integrate(at, _tangent_motion(geometry, at, move, stay, rows))
            onwards = np.zeros(geometry.nv)
            onwards[held] = way * (step / steps)
            here = target if step == steps else geometry.integrate(start, onwards)
            for node in (model.nodes[body] for body in given):
                part = slice(node.q - first_q, node.q - first_q + node.joint.nq)
                ahead[part] = here[part]
            at, gap = newton.close(geometry, ahead, held=stay, rows=rows)
            if not good(at, gap):
                done = False
                break
        best = min(best, float(gap))
        if done:
            return at
    at, gap = newton.close(geometry, target, held=stay, rows=rows)
    if good(at, gap):
        return at
    best = min(best, float(gap))
    rng = np.random.default_rng(0)
    free = [c for c in range(geometry.nv) if c not in stay]
    for reach in (0.5, 1.5, 3.0):
        scatter = np.zeros((16, geometry.nv))
        scatter[:, free] = rng.uniform(-reach, reach, (16, len(free)))
        tries, gaps = newton.close(
            geometry,
            geometry.integrate(np.broadcast_to(target, (16, geometry.nq)), scatter),
            held=stay,
            rows=rows,
        )
        fine = is_closed(geometry, tries, gaps)
        if np.any(fine):
            away = np.linalg.norm(
                geometry.difference(np.broadcast_to(target, tries.shape), tries), axis=1
            )
            chosen: Array = tries[int(np.argmin(np.where(fine, away, np.inf)))]
            return chosen
        best = min(best, float(np.min(gaps)))
    named = ", ".join(
        f"{model.joints[body].name} = {value.item() if value.size == 1 else value.tolist()}"
        for body, value in given.items()
    )
    raise not_closed(cluster, best, f"with {named}" if named else "from the guess")


def _tangent_motion(
    geometry: Geometry, q: Array, move: Array, stay: Sequence[int], rows: Sequence[int]
) -> Array:
    """The first-order motion of the other joints that keeps the loops closed under ``move``."""
    jacobian = geometry.evaluate(q)[1][list(rows)]
    free = [c for c in range(geometry.nv) if c not in set(stay)]
    follow = move.copy()
    step = -np.linalg.pinv(jacobian[:, free], rcond=1e-6) @ (jacobian @ move)
    largest = float(np.max(np.abs(step), initial=0.0))
    follow[free] += step * min(1.0, 0.5 / largest if largest else 1.0)
    return follow
