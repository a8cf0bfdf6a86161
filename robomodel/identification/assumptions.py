"""What identification assumes: which parameters may change, from which values, and how far."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fnmatch import fnmatchcase

import numpy as np

from robomodel.errors import UnknownNameError, as_names, did_you_mean, few
from robomodel.identification.fit import Cone, Data, Prior, possible
from robomodel.model.joints import Array, Revolute
from robomodel.model.model import Model
from robomodel.model.parameters import INERTIAL, OF_JOINTS, parameters
from robomodel.spatial import UNIT

BODY = len(INERTIAL)
UNKNOWN = 0.05  # of the forces: what a loss is taken to be, where the file says nothing of it
WEAK = 3.0  # the relative deviation of such a loss
POINT = 0.02  # of the robot's longest link: a point mass's extent


def assumptions(
    model: Model, data: Data, changing: Array, asked: Array, share: float, balanced: bool
) -> tuple[Prior, list[str]]:
    """The prior of :func:`robomodel.identify`, and notes on where its values are not the model's.

    ``changing`` and ``asked`` are those of :func:`chosen`; the model's values are taken to be right
    to about this share.
    """
    filed, notes = parameters(model), list[str]()
    nominal, changing = filed.values.copy(), changing.copy()
    cones = _bodies(model, nominal, changing, asked, notes)
    scalars = _scalars(filed.names, nominal, changing, data, notes)
    directions = _directions(model, nominal, changing, asked, balanced)
    spread = np.where(filed.values[scalars] > 0.0, share, WEAK)
    return Prior(cones, scalars, nominal, directions, share**-2.0, spread**-2.0), notes


def chosen(model: Model, free: str | Iterable[str] | None) -> tuple[Array, Array]:
    """Which parameters (p,) may change, and which of them were asked for by their own names."""
    names = parameters(model).names
    owners = [name.rpartition(".")[0] for name in names]
    kinds = [name.rpartition(".")[2] for name in names]
    asked = np.zeros(len(names), dtype=bool)
    if free is None:
        geared = {joint for coupling in model.couplings for joint, _ in coupling.terms}
        held = [k == "armature" and o in geared for k, o in zip(kinds, owners, strict=True)]
        return ~np.array(held, dtype=bool), asked
    result = np.zeros(len(names), dtype=bool)
    groups = {kind: (kind,) for kind in (*INERTIAL, *OF_JOINTS)} | {"inertial": INERTIAL}
    for word in as_names(free, "free"):
        if word in groups:
            result |= [kind in groups[word] for kind in kinds]
            continue
        exact = [word in (name, owner) for name, owner in zip(names, owners, strict=True)]
        here = exact if any(exact) else [fnmatchcase(name, word) for name in names]
        if not any(here):
            hint = did_you_mean(word, [*names, *owners, *groups])
            raise UnknownNameError(f"free: no parameter, kind, body or joint '{word}'{hint}")
        result |= here
        asked |= [name == word for name in names]
    return result, asked


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
        physical = possible(nominal[at], length)
        lacks = np.zeros(BODY, dtype=bool)
        if physical[0] == 0.0:
            lacks[: 4 if physical[4:].any() else BODY] = True
        if (asked[at] & lacks).any():
            what = "mass" if physical[4:].any() else "mass and no inertia"
            raise ValueError(
                f"'{body.name}' has no {what} to begin with; give it some by rm.with_parameters"
            )
        changing[at] = changing[at] & ~lacks
        if lacks.all():
            empty.append(body.name)
            continue
        if not np.array_equal(physical, nominal[at]):
            raised.append(body.name)
            nominal[at] = physical
        if changing[at].any():
            cones.append(Cone.of(BODY * i, physical))
    if raised:
        notes.append(
            f"could not exist as the model has them (flat, or without extent), and were given some "
            f"to begin with: {few(raised)}"
        )
    if empty:
        notes.append(f"have neither mass nor inertia, and keep none: {few(empty)}")
    return cones


def _scalars(
    names: tuple[str, ...], nominal: Array, changing: Array, data: Data, notes: list[str]
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


def _directions(
    model: Model, nominal: Array, changing: Array, asked: Array, balanced: bool
) -> Array:
    """The directions (p, f) in which parameters may change."""
    columns: list[Array] = []
    unit = np.eye(len(nominal))
    tied: set[int] = set()
    for i, node in enumerate(model.nodes if balanced else ()):
        at = slice(BODY * i, BODY * (i + 1))
        places = np.flatnonzero(changing[at])
        if not (node.axisymmetric and isinstance(node.joint, Revolute)) or asked[at].any():
            continue
        axis = np.array(model.frame(node.name).pose.unrotate(UNIT[node.joint.k]), dtype=float)
        along = np.outer(axis, axis)
        across = np.eye(3) - along
        upper = np.triu_indices(3)
        combinations = np.zeros((4, BODY))
        combinations[0, 0] = 1.0
        combinations[1, 1:4] = axis
        combinations[2, 4:], combinations[3, 4:] = along[upper], across[upper]
        combinations = combinations[
            [np.all(np.isin(np.flatnonzero(row), places)) for row in combinations]
        ]
        for row in combinations:
            column = np.zeros(len(nominal))
            column[at] = row
            columns.append(column)
        tied.update(range(at.start, at.stop))
    columns += [unit[i] for i in np.flatnonzero(changing) if i not in tied]
    return np.array(columns).reshape(-1, len(nominal)).T
