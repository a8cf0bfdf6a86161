"""The tree on which an algorithm takes the fewest operations; its results are those of the model.

Results here depend on the equations of motion alone, and several trees have the same ones. Which
costs least is not guessed but counted: the algorithms are traced on each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from robomodel.dynamics.recursions.aba import aba
from robomodel.dynamics.recursions.crba import crba
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.kernels.trace import Trace
from robomodel.model.derived import once
from robomodel.model.model import Model
from robomodel.model.variants.normals import on_common_normals
from robomodel.model.variants.parallel import unturned
from robomodel.model.variants.regroup import regrouped
from robomodel.scalars import Scalar

Count = Callable[[Model], int]


def _operations(model: Model, run: Callable[..., list[Scalar]]) -> int:
    trace = Trace()
    inputs = [trace.inputs(n) for n in (model.nq, model.nv, model.nv)]
    return trace.program(run(model, *inputs)).flops


COUNTED: Mapping[str, Count] = {
    "rnea": lambda m: _operations(m, rnea),
    "aba": lambda m: _operations(m, aba),
    "crba": lambda m: _operations(m, lambda m, q, *_: [x for row in crba(m, q) for x in row]),
}
LIKE: Mapping[str, tuple[str, bool]] = {
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


def lean(model: Model, algorithm: str) -> Model:
    """A model with the same equations of motion, kept with this one; others get their own model.

    Bodies, joints, frames and coordinates keep their numbers and meaning. Inertias are regrouped,
    and internal axes may be others, in which nodes, frames and springs are given then.
    """
    if algorithm not in LIKE or not model.nodes:
        return model
    return _lean(model, *LIKE[algorithm])


@once
def _lean(model: Model, counted: str, spread: bool) -> Model:
    axes = _axes(model, counted)
    return model if axes is None else regrouped(axes, spread=spread)


@once
def _axes(model: Model, counted: str) -> Model | None:
    """The model with the best internal axes; None where it is best as it is, its inertias too."""

    def cost(tree: Model) -> int:
        return COUNTED[counted](regrouped(tree, spread=LIKE[counted][1]))

    found, least = model, cost(model)
    for change in (on_common_normals, unturned):
        changed = change(found)
        if changed is not found and (operations := cost(changed)) < least:
            found, least = changed, operations
    return None if COUNTED[counted](model) <= least else found
