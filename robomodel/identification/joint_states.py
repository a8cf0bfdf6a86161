"""From joints that have encoders to all joints: positions, velocities, efforts through loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.errors import check_names, few, no_model, warn
from robomodel.model import Model
from robomodel.model.configurations.moving import solve
from robomodel.model.derived import cached_on_model
from robomodel.model.elements import Joint
from robomodel.model.spins import find_spins
from robomodel.tolerances import SINGULAR

AGREE = 0.02  # [rad, m] more than encoders of one linkage are apart by play and zeros
BRANCH_STRIDE = 0.3  # [rad, m] of joints, after which a linkage is known to be on the same branch
COMPLETE, LACKING, OFF = 0, 1, 2


def joint_states(
    model: Model,
    positions: Mapping[str, ArrayLike],
    velocities: Mapping[str, ArrayLike] | None = None,
    efforts: Mapping[str, ArrayLike] | None = None,
    *,
    guess: ArrayLike | None = None,
) -> dict[str, Any]:
    """The states of all joints, from those of some: motors', or whichever have encoders.

    States follow each other along the last batch axis, so that loops stay on their branch. Of more
    joints than there are freedoms, independent ones come first, and the others are compared. Spins
    of rods between two balls, which no motor turns, may be left open: rods go along by the least
    rates of joints. What
    lacks joints (their readings are not-a-number), contradicts itself by more than 0.02 rad or m,
    or cannot be closed is not-a-number, with a RuntimeWarning that counts it.

    Args:
        model: The robot. A floating base stays where ``guess`` has it, and at rest.
        positions: Joint → position (...) [rad, m], of joints with one freedom.
        velocities: Joint → velocity (...) [rad/s, m/s].
        efforts: Joint → force (...) [N m, N] at that joint.
        guess: The configuration (nq,) before the first state (default :meth:`Model.neutral`).

    Returns:
        states: ``q`` (..., nq); ``v`` (..., nv), if there are velocities; ``positions``,
            ``velocities`` and ``efforts``, of each joint with one freedom an array (...); and
            ``status`` (...): 0 for a complete state, 1 where readings lack, 2 where they do not
            fit together. Efforts of independent joints are Gᵀ times all that are given, those of
            others not-a-number.

    Raises:
        TypeError: A mapping is none, or ``model`` is no model.
        ValueError: Unknown joints; joints that do not determine the others; no positions.

    Examples:
        >>> model = rm.robots.load("four_bar")
        >>> states = rm.joint_states(model, {"joint1": [0.8, 0.9]}, {"joint1": 1.0})
        >>> states["positions"]["joint2"].round(3), states["velocities"]["joint3"].round(3)
        (array([-0.8, -0.9]), array([1., 1.]))
    """
    if not isinstance(model, Model):
        raise no_model(model)
    singles = {joint.name: joint for joint in model.joints if joint.nv == 1}
    given: dict[str, dict[str, Array]] = {}
    for what, mapping in (
        ("positions", positions), ("velocities", velocities or {}), ("efforts", efforts or {}),
    ):  # fmt: skip
        if not isinstance(mapping, Mapping):
            raise TypeError(f"{what} maps joints to numbers, not {type(mapping).__name__}")
        check_names(mapping, singles, f"{what}: no joint with one freedom is called ")
        given[what] = {name: np.asarray(x, dtype=float) for name, x in mapping.items()}
    for what in ("velocities", "efforts"):  # of which a log has empty columns
        given[what] = {n: x for n, x in given[what].items() if np.any(np.isfinite(x)) or not x.size}
    if not given["positions"]:
        raise ValueError("positions of no joint are given")
    for what in ("positions", "velocities"):
        if given[what] and determining(model, singles, given[what]) is None:
            names = few(_open(model, given[what]))
            raise ValueError(f"{what} of {few(list(given[what]))} leave {names} open")
    batch = np.broadcast_shapes(*(x.shape for each in given.values() for x in each.values()))
    rows = {
        what: {name: np.broadcast_to(x, batch).reshape(-1) for name, x in each.items()}
        for what, each in given.items()
    }
    begin = model.neutral() if guess is None else np.asarray(guess, dtype=float)
    q, status = _followed(model, singles, rows["positions"], begin)
    with np.errstate(invalid="ignore"):
        g = model.constraint_jacobian(q)
    at = {name: node.freedoms[0] for name, node in _nodes(model) if name in singles}
    found: dict[str, Any] = {"q": q.reshape(*batch, model.nq), "status": status.reshape(batch)}
    everywhere = model.joint_positions(q)
    found["positions"] = {name: everywhere[name].reshape(batch) for name in singles}
    if rows["velocities"]:
        v = _velocities(model, g, at, rows["velocities"])
        rates = np.einsum("nij,nj->ni", g, v)
        found["v"] = v.reshape(*batch, model.nv)
        found["velocities"] = {name: rates[:, at[name]].reshape(batch) for name in singles}
    if rows["efforts"]:
        tau = _carried(g, at, rows["efforts"])
        places = {name: n for n, name in enumerate(model.dof_names)}
        unknown = np.full(len(q), np.nan)
        found["efforts"] = {
            name: (tau[:, places[name]] if name in places else unknown).reshape(batch)
            for name in singles
        }
    if np.any(status):
        lacking, off = (int(np.sum(status == each)) for each in (LACKING, OFF))
        lost = f"{lacking + off} of {status.size} states ({incomplete(lacking, off)})"
        warn(RuntimeWarning(f"{lost} are not-a-number"))
    return found


def incomplete(lacking: int, off: int) -> str:
    """How many states lack readings, and how many do not fit together; empty if there are none."""
    parts = [f"{lacking} lack joints"] if lacking else []
    parts += [f"{off} contradict themselves or do not close"] if off else []
    return ", ".join(parts)


def determining(
    model: Model, singles: Mapping[str, Joint], names: Mapping[str, object] | Sequence[str]
) -> tuple[str, ...] | None:
    """The joints among these that determine all others, independent ones first; None if none do.

    All others but for spins of rods.
    """
    g = _driven(model)
    at = {name: node.freedoms[0] for name, node in _nodes(model)}
    chosen: list[str] = []
    for name in sorted(names, key=lambda name: not singles[name].independent):
        size = np.linalg.svd(g[[at[each] for each in (*chosen, name)]], compute_uv=False)
        if len(chosen) < g.shape[1] and size[-1] > SINGULAR * size[0]:
            chosen.append(name)
    known = np.concatenate([g[[at[each] for each in chosen]], _spinning(model)])
    return tuple(chosen) if np.linalg.matrix_rank(known, SINGULAR) == g.shape[1] else None


@cached_on_model
def _spinning(model: Model) -> Array:
    """The directions (spins, freedoms) of velocities by which rods turn and nothing else moves."""
    g, found = _driven(model), list[Array]()
    for spin in find_spins(model):
        others = [r for name, node in _nodes(model) if name not in spin.joints
                  for r in node.freedoms]  # fmt: skip
        _, size, right = np.linalg.svd(g[others])
        found.append(right[int(np.sum(size > SINGULAR * size[0])) :])
    return np.concatenate([np.zeros((0, g.shape[1])), *found])


def _open(model: Model, names: Mapping[str, object]) -> list[str]:
    """The coordinates that joints leave open."""
    at = {name: node.freedoms[0] for name, node in _nodes(model)}
    g = _driven(model)[[at[each] for each in names]]
    _, size, right = np.linalg.svd(g)
    rank = int(np.sum(size > SINGULAR * size[0]))
    spins = _spinning(model)
    rest = right[rank:] - right[rank:] @ np.linalg.pinv(spins) @ spins
    free = np.max(np.abs(rest), axis=0) > SINGULAR
    labels = model.dof_names[model.nv - g.shape[1] :]
    return [name for name, loose in zip(labels, free, strict=True) if loose]


def _driven(model: Model) -> Array:
    """G at neutral, without the floating base's columns."""
    return model.constraint_jacobian(model.neutral())[:, _base(model) :]


def _base(model: Model) -> int:
    return 0 if model.floating_base is None else 6


def _nodes(model: Model) -> list[tuple[str, Any]]:
    return [(joint.name, node) for joint, node in zip(model.joints, model.nodes, strict=True)]


def _followed(
    model: Model, singles: Mapping[str, Joint], rows: Mapping[str, Array], q: Array
) -> tuple[Array, Array]:
    """Configurations (n, nq), each from the one before, and the status of each."""
    names = list(rows)
    read = np.stack([rows[name] for name in names], axis=1)
    result = np.full((len(read), model.nq), np.nan)
    status = np.full(len(read), LACKING)
    chosen: dict[bytes, tuple[str, ...] | None] = {}
    for n, row in enumerate(read):
        there = np.isfinite(row)
        if (key := there.tobytes()) not in chosen:
            left = [name for name, is_there in zip(names, there, strict=True) if is_there]
            chosen[key] = determining(model, singles, left)
        if (by := chosen[key]) is None:
            continue
        try:
            q = _moved(model, q, {name: float(row[names.index(name)]) for name in by})
        except ValueError:  # loops that do not close, too
            status[n] = OFF
            continue
        result[n], status[n] = q, COMPLETE
    place = model.joint_positions(result)
    with np.errstate(invalid="ignore"):
        apart = np.stack([np.abs(place[name] - rows[name]) for name in names], axis=1) > AGREE
    off = np.any(apart, axis=1)
    result[off], status[off] = np.nan, OFF
    return result, status


def _moved(model: Model, q: Array, wanted: Mapping[str, float]) -> Array:
    """q moved to where joints are wanted, on its branch: what is far is reached in short strides.

    Raises ClosureError where loops do not close, or where only another assembly mode does.
    """
    place = model.joint_positions(q)
    begin = {name: float(place[name]) for name in wanted}
    far = max((abs(x - begin[name]) for name, x in wanted.items()), default=0.0)
    count, at = max(1, math.ceil(far / BRANCH_STRIDE)), q
    try:
        for n in range(1, count + 1):
            part = {name: begin[name] + n / count * (x - begin[name]) for name, x in wanted.items()}
            at = model.configuration(part, guess=_ahead(model, at, part))
    except ValueError:
        # the straight way need not be the only one
        at = solve(model, wanted, q, None, other_modes=False)
    return at


def _ahead(model: Model, q: Array, wanted: Mapping[str, float]) -> Array:
    """Where the least rates of joints lead that move joints to where they are wanted.

    q itself where these determine all others.
    """
    g = model.constraint_jacobian(q)
    if len(wanted) == g.shape[1] - _base(model):
        return q
    at, place = {name: node.freedoms[0] for name, node in _nodes(model)}, model.joint_positions(q)
    away = {name: np.array([x - float(place[name])]) for name, x in wanted.items()}
    return model.integrate(q, _velocities(model, g[None], at, away)[0])


def _velocities(model: Model, g: Array, at: Mapping[str, int], rows: Mapping[str, Array]) -> Array:
    """Velocities (n, nv) with these rates of joints, by least squares; the base is at rest.

    Where they leave spins of rods open, the rates of all joints are the least.
    """
    base = _base(model)
    v = np.zeros((len(g), model.nv))
    by = g[:, [at[name] for name in rows], base:]
    rates = np.stack(list(rows.values()), axis=1)
    fine = np.isfinite(by).all(axis=(1, 2)) & np.isfinite(rates).all(axis=1)
    every = np.linalg.cholesky(np.einsum("nij,nik->njk", g[fine, :, base:], g[fine, :, base:]))
    back = np.linalg.inv(np.swapaxes(every, 1, 2))  # of unit sum of squares of all rates
    inverse = back @ np.linalg.pinv(by[fine] @ back, rcond=SINGULAR)
    v[fine, base:] = np.einsum("nij,nj->ni", inverse, rates[fine])
    v[~fine] = np.nan
    return v


def _carried(g: Array, at: Mapping[str, int], rows: Mapping[str, Array]) -> Array:
    """Forces (n, nv) on the coordinates: Gᵀ times those at joints, not-a-number where none acts."""
    tau, reached = np.zeros(g[:, 0].shape), np.zeros(g[:, 0].shape, dtype=bool)
    for name, force in rows.items():
        row = g[:, at[name]]
        moves = row != 0.0
        tau += np.where(moves, row * force[:, None], 0.0)
        reached |= moves
    tau[~reached] = np.nan
    return tau
