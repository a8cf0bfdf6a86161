"""The tree on which an algorithm takes the fewest operations; its results are those of the model.

Results here depend on the equations of motion alone, and several trees have the same ones. Which
costs least is not guessed but counted: the algorithms are traced on each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from robomodel.dynamics.aba import aba
from robomodel.dynamics.crba import crba
from robomodel.dynamics.rnea import rnea
from robomodel.kernels.trace import Trace
from robomodel.model.model import Model
from robomodel.model.normals import on_common_normals
from robomodel.model.regroup import regrouped
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
LIKE: Mapping[str, str] = {
    "rnea": "rnea",
    "bias_force": "rnea",
    "rnea_derivatives": "rnea",
    "rnea_hessian_product": "rnea",
    "aba_derivatives": "rnea",
    "aba": "aba",
    "efpa": "aba",
    "contact": "aba",
    "efpa_factors": "aba",
    "contact_factors": "aba",
    "crba": "crba",
}
"""What is counted for each algorithm: itself, or what its cost goes with."""


def lean(model: Model, algorithm: str) -> Model:
    """A model with the same equations of motion, kept with this one; others get their own model.

    Bodies, joints, frames and coordinates keep their numbers and meaning. Inertias are regrouped,
    and internal axes may be others, in which nodes, frames and springs are given then.
    """
    counted = LIKE.get(algorithm)
    if counted is None or not model.nodes:
        return model
    known = model.derived.get(("lean", counted))
    if isinstance(known, Model):
        return known
    spread = counted == "rnea"  # which a sum over points likes; others like the moments
    trees = [model, regrouped(model, spread=spread)]
    if (turned := on_common_normals(model)) is not model:
        trees.append(regrouped(turned, spread=spread))
    found = min(trees, key=COUNTED[counted])
    model.derived["lean", counted] = found
    return found
