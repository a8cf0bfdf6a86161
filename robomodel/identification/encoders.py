"""Configurations and velocities of a robot from what encoders of its joints read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robomodel.arrays import Array
from robomodel.errors import UnknownNameError, did_you_mean
from robomodel.model.model import Model


@dataclass(frozen=True)
class Encoders:
    """Newton's target: positions of joints of one freedom are read; the other encoders' stay.

    ``rows``: indices of all encoders' joint velocities; ``single``: names and positions (n,) of
    joints of one freedom, by their index in ``rows``.
    """

    model: Model
    rows: tuple[int, ...]
    single: Mapping[int, tuple[str, Array]]

    def lack(self, q: Array, rows: NDArray[np.intp]) -> Array:
        """The differences from the targets (m, rows)."""
        now, result = self.model.joint_positions(q), np.zeros((len(q), len(self.rows)))
        for column, (name, target) in self.single.items():
            result[:, column] = target.ravel()[rows] - now[name]
        return result

    def way(self, q: Array, lack: Array) -> Array:
        """The velocities (m, nv) of the step."""
        return divided(self.model.constraint_jacobian(q)[..., list(self.rows), :], lack)


def followed(model: Model, encoders: Sequence[str], place: Array) -> Array:
    """Configurations (..., nq) with these joint positions, each continuing the previous one."""
    rows = list(following(model, encoders, place.reshape(-1, place.shape[-1])))
    return np.array(rows).reshape(*place.shape[:-1], model.nq)


def following(model: Model, encoders: Sequence[str], rows: Array) -> Iterator[Array]:
    """The configurations of :func:`followed`, one after the other."""
    ends = np.cumsum([joint_at(model, name)[1] for name in encoders])
    q = model.neutral()
    for row in rows:
        parts = [x.tolist() for x in np.split(row, ends[:-1])]
        positions = dict(zip(encoders, parts, strict=True))
        pose = positions.pop(model.floating_base or "", None)
        q = model.configuration(positions, guess=q, base_pose=pose)
        yield q


def divided(matrix: Array, right: Array) -> Array:
    """Solutions (..., n) of (..., n, n) x = right."""
    return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0], dtype=float)


def joint_at(model: Model, name: str) -> tuple[int, int, range]:
    """(index, positions, spanning velocities) of a joint."""
    if name not in model.joint_names:
        raise UnknownNameError(
            f"encoders: no joint '{name}'{did_you_mean(name, model.joint_names)}"
        )
    index = model.joint_names.index(name)
    return index, model.joints[index].nq, model.nodes[index].freedoms
