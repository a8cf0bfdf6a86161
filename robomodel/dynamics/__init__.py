"""Exact dynamics of a model: the functions users call, on NumPy arrays with batch axes.

Each algorithm stands once, on scalars of any kind, in a module of its own; here its arguments are
checked and handed to a compiled kernel, or to the NumPy path, which runs the same source on arrays.
Conventions: q (..., nq), v, a and tau (..., nv); SI units; spatial vectors angular first; leading
axes broadcast. ``backend``: "compiled" (kernels are made at the first call on a model and kept on
disk; robots of more than 200 bodies, and machines without LLVM, are served by NumPy), or
"numpy".
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics.algorithms import Task
from robomodel.dynamics.compiled import Kernel, kernel, trace
from robomodel.kernels import obstacle
from robomodel.model.closure import stack, unstack
from robomodel.model.joints import Array
from robomodel.model.model import Model, as_array

FrameLike: TypeAlias = str | tuple[str, Sequence[float]]
Wrenches: TypeAlias = Mapping[str, ArrayLike]
Method: TypeAlias = Literal["cluster"]
Backend: TypeAlias = Literal["numpy", "compiled"]

LARGE = 200  # bodies; beyond, compiling takes many seconds, so that users shall ask for it


def rnea(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    method: Method = "cluster",
    backend: Backend = "compiled",
) -> Array:
    """Inverse dynamics: the forces tau (..., nv) that produce the accelerations a.

    ``f_ext``: link name → wrench (..., 6) on that link, moment about its origin first, in its own
    axes. C-RNEA (Chignoli et al., section V-A).
    """
    _known_method(method)
    result: Array = _run(model, "rnea", {"q": q, "v": v, "a": a}, backend, f_ext=f_ext)
    return result


def aba(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    method: Method = "cluster",
    backend: Backend = "compiled",
) -> Array:
    """Forward dynamics: the accelerations a (..., nv) under the forces tau.

    ``f_ext`` as in :func:`rnea`. States at which a loop is singular give not-a-number for
    themselves alone. C-ABA (Chignoli et al., section V-B).
    """
    _known_method(method)
    result: Array = _run(model, "aba", {"q": q, "v": v, "tau": tau}, backend, f_ext=f_ext)
    return result


def crba(model: Model, q: ArrayLike, *, backend: Backend = "compiled") -> Array:
    """Joint-space inertia matrix M (..., nv, nv), gears' and loops' reflected inertias included."""
    result: Array = _run(model, "crba", {"q": q}, backend)
    return result


def bias_force(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    backend: Backend = "compiled",
) -> Array:
    """The tau (..., nv) of zero acceleration: Coriolis, centrifugal, gravity, external forces."""
    result: Array = _run(model, "bias_force", {"q": q, "v": v}, backend, f_ext=f_ext)
    return result


def jacobian(
    model: Model, q: ArrayLike, frame: FrameLike, *, backend: Backend = "compiled"
) -> Array:
    """J (..., 6, nv): the frame's velocity J v, angular first, at its origin and in its own axes.

    ``frame``: a link's name, or (link, offset) for a point of it with the link's axes.
    """
    result: Array = _run(model, "jacobian", {"q": q}, backend, frame=frame)
    return result


def frame_pose(
    model: Model, q: ArrayLike, frame: FrameLike, *, backend: Backend = "compiled"
) -> Array:
    """The frame's pose in the world (..., 4, 4), homogeneous."""
    result: Array = _run(model, "frame_pose", {"q": q}, backend, frame=frame)
    return result


def frame_velocity(
    model: Model, q: ArrayLike, v: ArrayLike, frame: FrameLike, *, backend: Backend = "compiled"
) -> Array:
    """The frame's velocity (..., 6), angular first, at its origin and in its own axes."""
    result: Array = _run(model, "frame_velocity", {"q": q, "v": v}, backend, frame=frame)
    return result


def energy(
    model: Model, q: ArrayLike, v: ArrayLike, *, backend: Backend = "compiled"
) -> tuple[Array, Array]:
    """(kinetic, potential) energy [J], each (...); zero potential at the world's origin."""
    kinetic, potential = _run(model, "energy", {"q": q, "v": v}, backend)
    return kinetic, potential


def center_of_mass(model: Model, q: ArrayLike, *, backend: Backend = "compiled") -> Array:
    """Centre of mass (..., 3) of all that moves, in the world."""
    result: Array = _run(model, "center_of_mass", {"q": q}, backend)
    return result


def centroidal_momentum(
    model: Model, q: ArrayLike, v: ArrayLike, *, backend: Backend = "compiled"
) -> Array:
    """Momentum (..., 6): angular about the centre of mass, then linear, in world axes."""
    result: Array = _run(model, "centroidal_momentum", {"q": q, "v": v}, backend)
    return result


def rnea_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    backend: Backend = "compiled",
) -> tuple[Array, Array, Array]:
    """(∂tau/∂q, ∂tau/∂v, M) of inverse dynamics, each (..., nv, nv).

    Positions vary in the tangent space: column j is the change along ``integrate(q, ε e_j)``, with
    loops closed. Wrenches stay as they are in their links' axes.
    """
    dq, dv, mass = _run(model, "rnea_derivatives", {"q": q, "v": v, "a": a}, backend, f_ext=f_ext)
    return dq, dv, mass


def aba_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    f_ext: Wrenches | None = None,
    backend: Backend = "compiled",
) -> tuple[Array, Array, Array]:
    """(∂a/∂q, ∂a/∂v, M⁻¹) of forward dynamics, each (..., nv, nv); q as in rnea_derivatives.

    M⁻¹ is also ∂a/∂tau (Carpentier and Mansard, RSS 2018: ∂FD = -M⁻¹ ∂ID).
    """
    arguments = {"q": q, "v": v, "tau": tau}
    dq, dv, inverse = _run(model, "aba_derivatives", arguments, backend, f_ext=f_ext)
    return dq, dv, inverse


# ---- checks, and the two paths -------------------------------------------------------------------


def _can_compile() -> bool:
    """Whether kernels can be had; a warning (shown once, as warnings are) where they cannot."""
    why = obstacle()
    if why is not None:
        warnings.warn(
            f"kernels cannot be compiled here ({why}); NumPy serves instead, more slowly",
            RuntimeWarning,
            stacklevel=4,
        )
    return why is None


def _known_method(method: str) -> None:
    if method != "cluster":
        raise ValueError(f"method '{method}' is not known; 'cluster' is")


def _run(
    model: Model,
    algorithm: str,
    arguments: Mapping[str, ArrayLike],
    backend: str,
    *,
    frame: FrameLike | None = None,
    f_ext: Wrenches | None = None,
) -> Any:
    """Check the arguments, run the algorithm once over the whole batch.

    A kernel that is there already goes first: what it refuses is looked at closely afterwards.
    """
    if frame is not None and not isinstance(frame, str):
        link, offset = frame
        x, y, z = (float(t) for t in offset)
        frame = (link, (x, y, z))
    ready: Kernel | None = None
    if backend == "compiled" and not f_ext:
        ready = model.derived.get((algorithm, frame))
    if ready is not None:
        try:
            return ready(*arguments.values())
        except (TypeError, ValueError):
            pass
    forces = f_ext or {}
    task = Task(algorithm, frame, tuple(forces))
    for link in task.f_ext:
        model.frame(link)  # a KeyError with a hint for unknown ones
    arrays = {
        name: as_array(value, size, name, "nq" if name == "q" else "nv" if size != 6 else "6")
        for (name, size), value in zip(
            task.sizes(model).items(), (*arguments.values(), *forces.values()), strict=True
        )
    }
    try:
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ValueError(f"batch axes do not broadcast: {shapes}") from None
    if backend not in ("numpy", "compiled"):
        raise ValueError(f"backend '{backend}' is not known; 'numpy' and 'compiled' are")
    if backend == "compiled" and 0 < len(model.nodes) <= LARGE and _can_compile():
        made = kernel(model, task)
        if not forces:
            model.derived[algorithm, frame] = made
        return made(*arrays.values())
    with np.errstate(all="ignore"):
        scalars = {name: unstack(x) for name, x in arrays.items()}
        if task.by_trace:
            program = trace(model, task)
            return task.split(
                model, stack(program([x for xs in scalars.values() for x in xs]), batch)
            )
        return task.split(model, stack(task.run(model, scalars), batch))


__all__ = [
    "aba",
    "aba_derivatives",
    "bias_force",
    "center_of_mass",
    "centroidal_momentum",
    "crba",
    "energy",
    "frame_pose",
    "frame_velocity",
    "jacobian",
    "rnea",
    "rnea_derivatives",
]
