"""What the cluster algorithms are compared with: the paper's approximations (002, II), PV-OSIMr.

The approximate algorithms run on the independent tree, without the mass of rotors and of other
bodies whose joints depend on others, with H = H_y + H_c, where H_c is the diagonal of reflected
inertias N² I_rot. ``method="approximate"`` of :func:`robomodel.rnea` and its like leaves that mass
on the bodies that carry it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from robomodel.dynamics import baselines
from robomodel.dynamics.kinematics.frames import FrameLike, frame_keys, place
from robomodel.dynamics.recursions.efpa import mobility, touched
from robomodel.kernels.program import Program
from robomodel.kernels.trace import Trace
from robomodel.model.arguments import as_array
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.scalars import Scalar, Vector, stack, unstack

INDEPENDENT = "independent"  # the paper's tree, by the name that baselines have for it

Propagation = Literal["efpa", "pv-osim"]
FREEDOMS: dict[Propagation, float] = {"efpa": np.inf, "pv-osim": 0}


def approximate_rnea(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Generalized forces (..., nv) of the paper's approximate RNEA, τ = RNEA_y(q, v, a) + H_c a.

    Raises ValueError where a cluster has freedoms that no joints of it have as a whole.
    """
    return _evaluated(partial(baselines.rnea, INDEPENDENT, model), model, q, v, a)


def approximate_aba(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
    """Accelerations (..., nv) of the paper's approximate ABA, (H_y + H_c) a = tau - C_y.

    Raises as :func:`approximate_rnea`.
    """
    return _evaluated(partial(baselines.aba, INDEPENDENT, model), model, q, v, tau)


def _evaluated(
    function: Callable[..., list[Scalar]],
    model: Model,
    q: ArrayLike,
    *others: ArrayLike,
) -> Array:
    at = as_array(q, model.nq, "q", "nq")
    arrays = [at, *(as_array(x, model.nv, "an argument", "nv") for x in others)]
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    with np.errstate(all="ignore"):
        return stack(function(*map(unstack, arrays)), batch)


def approximate_efpa(model: Model, q: ArrayLike, frames: FrameLike | Sequence[FrameLike]) -> Array:
    """Λ⁻¹ (..., 6k, 6k) of the paper's approximate EFPA, J_y (H_y + H_c)⁻¹ J_yᵀ.

    Raises as :func:`approximate_rnea`, and for frames on bodies that the tree leaves out.
    """
    places = [place(model, key) for key in frame_keys(frames)]
    at = as_array(q, model.nq, "q", "nq")
    with np.errstate(all="ignore"):
        rows = baselines.efpa(INDEPENDENT, model, unstack(at), places)
        entries = stack([x for row in rows for x in row], at.shape[:-1])
    return entries.reshape(*at.shape[:-1], len(rows), len(rows))


# ---- inverse operational-space inertia -----------------------------------------------------------


def pv_osim(model: Model, q: ArrayLike, frames: FrameLike | Sequence[FrameLike]) -> Array:
    """Λ⁻¹ (..., 6k, 6k) of k frames by PV-OSIMr over clusters, [18] of the paper, its future work.

    Sathya, Bruyninckx and Decré propagate six unit forces from every body at which branches with
    end-effectors meet, and compose their propagators, so that k end-effectors cost O(n + k²) where
    the EFPA costs O(n + k depth + k²). :func:`robomodel.efpa` does so where it saves operations.
    """
    return _osim(model, "pv-osim", q, frames)


def propagation(
    model: Model, frames: FrameLike | Sequence[FrameLike], method: Propagation = "pv-osim"
) -> Program:
    """The straight-line program q → Λ⁻¹ of C-EFPA or PV-OSIMr, to count operations or compile.

    ``method``: "efpa", every end-effector's propagators of their own to the base, (62), or
    "pv-osim". Raises ValueError for others.
    """
    if method not in FREEDOMS:
        known = ", ".join(map(repr, get_args(Propagation)))
        raise ValueError(f"method {method!r} is not known; known are {known}")
    trace = Trace()
    return trace.program(_entries(model, method, trace.inputs(model.nq), frames))


def _osim(
    model: Model, method: Propagation, q: ArrayLike, frames: FrameLike | Sequence[FrameLike]
) -> Array:
    at = as_array(q, model.nq, "q", "nq")
    with np.errstate(all="ignore"):
        entries = stack(_entries(model, method, unstack(at), frames), at.shape[:-1])
    size = round(entries.shape[-1] ** 0.5)
    return entries.reshape(*at.shape[:-1], size, size)


def _entries(
    model: Model, method: Propagation, q: Vector, frames: FrameLike | Sequence[FrameLike]
) -> list[Scalar]:
    places = [place(model, key) for key in frame_keys(frames)]
    rows = mobility(*touched(model, q, places), freedoms=FREEDOMS[method])
    return [x for row in rows for x in row]
