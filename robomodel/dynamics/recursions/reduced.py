"""The model with regrouped inertias where that takes fewer operations; its results are the model's.

Whether it does is not guessed but counted: the algorithms are traced on both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.kernels.trace import Trace
from robomodel.model.derived import cached_on_model
from robomodel.model.model import Model
from robomodel.model.regroup import regrouped
from robomodel.scalars import Scalar

COUNTED: Mapping[str, Callable[..., list[Scalar]]] = {
    "rnea": rnea,
    "aba": aba,
    "crba": lambda model, q, *_: [x for row in crba(model, q) for x in row],
}
COST_CLASS: Mapping[str, tuple[str, bool]] = {
    "rnea": ("rnea", True),
    "bias_force": ("rnea", True),
    "gravity_force": ("rnea", True),
    "rnea_derivatives": ("aba", True),
    "rnea_hessian_product": ("aba", True),
    "aba_derivatives": ("aba", True),
    "aba": ("aba", False),
    "efpa": ("aba", False),
    "contact": ("aba", False),
    "efpa_factors": ("aba", False),
    "contact_factors": ("aba", False),
    "crba": ("crba", False),
    "mass_inverse": ("crba", False),
    "coriolis": ("aba", True),
}
"""What is counted for each algorithm: itself, or what its cost goes with (the derivatives' cost
goes with that of moving composite inertias about); and how inertias are regrouped for it: sums over
points like the masses along an axis to be gone, others a moment of inertia."""


def reduced(model: Model, algorithm: str) -> Model:
    """A model with the same equations of motion, kept with this one; others get their own model.

    Bodies, joints, frames and coordinates are those of the model.
    """
    if algorithm not in COST_CLASS or not model.nodes:
        return model
    return _reduced(model, *COST_CLASS[algorithm])


@cached_on_model
def _reduced(model: Model, counted: str, spread: bool) -> Model:
    other = regrouped(model, spread=spread)
    return other if _operations(other, counted) < _operations(model, counted) else model


@cached_on_model
def _operations(model: Model, counted: str) -> int:
    trace = Trace()
    inputs: list[Any] = [trace.inputs(n) for n in (model.nq, model.nv, model.nv)]
    return trace.program(COUNTED[counted](model, *inputs)).flops
