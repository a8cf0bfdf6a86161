"""Exact dynamics of a model: the functions users call, on NumPy arrays with batch axes.

Each algorithm stands once, on scalars of any kind, in a module of its own; here its arguments are
checked and spread over scalars, and its results collected. Conventions: q (..., nq), v, a and tau
(..., nv); SI units; spatial vectors angular first; leading axes broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics import frames, momentum
from robomodel.dynamics.aba import aba as _aba
from robomodel.dynamics.crba import crba as _crba
from robomodel.dynamics.rnea import bias_force as _bias_force
from robomodel.dynamics.rnea import rnea as _rnea
from robomodel.model.closure import stack, unstack
from robomodel.model.joints import Array
from robomodel.model.model import WORLD, Model, as_array
from robomodel.scalars import Scalar
from robomodel.spatial import Wrench

FrameLike: TypeAlias = str | tuple[str, Sequence[float]]
Wrenches: TypeAlias = Mapping[str, ArrayLike]
Method: TypeAlias = Literal["cluster"]
Backend: TypeAlias = Literal["numpy"]


def rnea(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    method: Method = "cluster",
    backend: Backend = "numpy",
) -> Array:
    """Inverse dynamics: the forces tau (..., nv) that produce the accelerations a.

    ``f_ext``: link name → wrench (..., 6) on that link, moment about its origin first, in its own
    axes. C-RNEA (Chignoli et al., section V-A).
    """
    _check(method, backend)
    return _run(
        model, {"q": (q, model.nq), "v": (v, model.nv), "a": (a, model.nv)}, f_ext,
        lambda x, f: _rnea(model, x["q"], x["v"], x["a"], f), (model.nv,),
    )  # fmt: skip


def aba(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    method: Method = "cluster",
    backend: Backend = "numpy",
) -> Array:
    """Forward dynamics: the accelerations a (..., nv) under the forces tau.

    ``f_ext`` as in :func:`rnea`. States at which a loop is singular give not-a-number for
    themselves alone. C-ABA (Chignoli et al., section V-B).
    """
    _check(method, backend)
    return _run(
        model, {"q": (q, model.nq), "v": (v, model.nv), "tau": (tau, model.nv)}, f_ext,
        lambda x, f: _aba(model, x["q"], x["v"], x["tau"], f), (model.nv,),
    )  # fmt: skip


def crba(model: Model, q: ArrayLike, *, backend: Backend = "numpy") -> Array:
    """Joint-space inertia matrix M (..., nv, nv), gears' and loops' reflected inertias included."""
    _check("cluster", backend)
    return _run(
        model, {"q": (q, model.nq)}, None,
        lambda x, _: [m for row in _crba(model, x["q"]) for m in row], (model.nv, model.nv),
    )  # fmt: skip


def bias_force(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    backend: Backend = "numpy",
) -> Array:
    """The tau (..., nv) of zero acceleration: Coriolis, centrifugal, gravity, external forces."""
    _check("cluster", backend)
    return _run(
        model, {"q": (q, model.nq), "v": (v, model.nv)}, f_ext,
        lambda x, f: _bias_force(model, x["q"], x["v"], f), (model.nv,),
    )  # fmt: skip


def jacobian(model: Model, q: ArrayLike, frame: FrameLike, *, backend: Backend = "numpy") -> Array:
    """J (..., 6, nv): the frame's velocity J v, angular first, at its origin and in its own axes.

    ``frame``: a link's name, or (link, offset) for a point of it with the link's axes.
    """
    _check("cluster", backend)
    at = _place(model, frame)
    return _run(
        model, {"q": (q, model.nq)}, None,
        lambda x, _: [j for row in frames.jacobian(model, x["q"], at) for j in row], (6, model.nv),
    )  # fmt: skip


def frame_pose(
    model: Model, q: ArrayLike, frame: FrameLike, *, backend: Backend = "numpy"
) -> Array:
    """The frame's pose in the world (..., 4, 4), homogeneous."""
    _check("cluster", backend)
    at = _place(model, frame)

    def rows(x: Mapping[str, list[Scalar]], _: object) -> list[Scalar]:
        rotation, origin = frames.pose(model, x["q"], at)
        top = [entry for row, o in zip(rotation, origin, strict=True) for entry in (*row, o)]
        return [*top, 0.0, 0.0, 0.0, 1.0]

    return _run(model, {"q": (q, model.nq)}, None, rows, (4, 4))


def frame_velocity(
    model: Model, q: ArrayLike, v: ArrayLike, frame: FrameLike, *, backend: Backend = "numpy"
) -> Array:
    """The frame's velocity (..., 6), angular first, at its origin and in its own axes."""
    _check("cluster", backend)
    at = _place(model, frame)
    return _run(
        model, {"q": (q, model.nq), "v": (v, model.nv)}, None,
        lambda x, _: frames.velocity(model, x["q"], x["v"], at), (6,),
    )  # fmt: skip


def energy(
    model: Model, q: ArrayLike, v: ArrayLike, *, backend: Backend = "numpy"
) -> tuple[Array, Array]:
    """(kinetic, potential) energy [J], each (...); zero potential at the world's origin."""
    _check("cluster", backend)
    both = _run(
        model, {"q": (q, model.nq), "v": (v, model.nv)}, None,
        lambda x, _: momentum.energy(model, x["q"], x["v"]), (2,),
    )  # fmt: skip
    return both[..., 0], both[..., 1]


def center_of_mass(model: Model, q: ArrayLike, *, backend: Backend = "numpy") -> Array:
    """Centre of mass (..., 3) of all that moves, in the world."""
    _check("cluster", backend)
    return _run(
        model, {"q": (q, model.nq)}, None, lambda x, _: momentum.center_of_mass(model, x["q"]), (3,)
    )


def centroidal_momentum(
    model: Model, q: ArrayLike, v: ArrayLike, *, backend: Backend = "numpy"
) -> Array:
    """Momentum (..., 6): angular about the centre of mass, then linear, in world axes."""
    _check("cluster", backend)
    return _run(
        model, {"q": (q, model.nq), "v": (v, model.nv)}, None,
        lambda x, _: momentum.centroidal_momentum(model, x["q"], x["v"]), (6,),
    )  # fmt: skip


# ---- arrays to scalars and back ------------------------------------------------------------------


def _check(method: str, backend: str) -> None:
    if method != "cluster":
        raise ValueError(f"method '{method}' is not known; 'cluster' is")
    if backend != "numpy":
        raise ValueError(f"backend '{backend}' is not known; 'numpy' is")


def _place(model: Model, frame: FrameLike) -> frames.Place:
    if isinstance(frame, str):
        return frames.place(model, frame)
    name, offset = frame
    x, y, z = (float(t) for t in offset)
    return frames.place(model, (name, (x, y, z)))


def _run(
    model: Model,
    arguments: Mapping[str, tuple[ArrayLike, int]],
    f_ext: Wrenches | None,
    algorithm: Callable[[Mapping[str, list[Scalar]], dict[int, Wrench]], Sequence[Scalar]],
    shape: tuple[int, ...],
) -> Array:
    """Check and spread the arguments, run the algorithm once over the whole batch, collect."""
    arrays = {
        name: as_array(value, size, name, "nq" if name == "q" else "nv")
        for name, (value, size) in arguments.items()
    }
    forces = {
        name: as_array(value, 6, f"f_ext['{name}']", "a wrench's size")
        for name, value in (f_ext or {}).items()
    }
    try:
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in (*arrays.values(), *forces.values())))
    except ValueError:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in (arrays | forces).items())
        raise ValueError(f"batch axes do not broadcast: {shapes}") from None
    with np.errstate(all="ignore"):
        scalars = {name: unstack(x) for name, x in arrays.items()}
        result = algorithm(scalars, _wrenches(model, forces))
        return stack(result, batch).reshape(*batch, *shape)


def _wrenches(model: Model, forces: Mapping[str, Array]) -> dict[int, Wrench]:
    """Wrenches on links as wrenches on bodies, in internal axes."""
    result: dict[int, Wrench] = {}
    for name, force in forces.items():
        frame = model.frame(name)
        if frame.body == WORLD:
            continue  # on the fixed base: the world takes it
        x = unstack(force)
        wrench = frame.pose.to_parent(Wrench((x[0], x[1], x[2]), (x[3], x[4], x[5])))
        result[frame.body] = result[frame.body] + wrench if frame.body in result else wrench
    return result


__all__ = [
    "aba",
    "bias_force",
    "center_of_mass",
    "centroidal_momentum",
    "crba",
    "energy",
    "frame_pose",
    "frame_velocity",
    "jacobian",
    "rnea",
]
