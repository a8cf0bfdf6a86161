"""A motion in changing independent joints, as the model's own coordinates see it.

Where the independent joints of a linkage come to rest while it moves on, others are independent
there (:mod:`robomodel.model.variants.charts`): the same motion in another chart. Nothing is lost or
gained by a change, as q holds all positions and v follows from v: the new joints' rows of G. With
T = ∂v/∂v' of the model's own v by the chart's v' (own joints' rows of the chart's G):

    v = T v',  τ' = Tᵀ τ,

so that forces on the model's own joints do the same work in every chart, and both hold at dead
points too, where T is singular.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robomodel.model.constraints import evaluate_loops
from robomodel.model.derived import cached_on_model
from robomodel.model.joints import Array
from robomodel.model.model import Model
from robomodel.model.variants.charts import Choice, best, goodness, in_chart, linkages, own_chart
from robomodel.motion.integrator_functions import Function, function
from robomodel.scalars import Scalar, Vector, dot, maximum, mul

GOOD = 0.1  # 1/‖G‖ of a linkage from which on its joints are left as they are
BETTER = 2.0  # by this factor others must be better to be taken
UNSAID = 1e-9  # least singular value of T from which on v says how a linkage moves


@dataclass(frozen=True)
class View:
    """A model in one chart, seen from the coordinates of the model that it is a chart of."""

    own: Model
    choices: tuple[Choice, ...]

    @staticmethod
    def of(model: Model) -> View:
        """The model itself."""
        return View(model, own_chart(model))

    @property
    def model(self) -> Model:
        """The model in the chart's independent joints."""
        return in_chart(self.own, self.choices)

    @property
    def is_own(self) -> bool:
        """Whether its coordinates are the model's own."""
        return self.choices == own_chart(self.own)

    def matrix(self, q: Array) -> Array:
        """T (..., nv, nv)."""
        nv = self.own.nv
        made = turning_out(self.own, self.choices)(q)
        result: Array = made.reshape(*made.shape[:-1], nv, nv)
        return result

    def velocities(self, q: Array, v: Array) -> Array:
        """The model's own velocities, from the chart's."""
        if self.is_own:
            return v
        result: Array = np.einsum("...ij,...j->...i", self.matrix(q), v)
        return result

    def forces(self, q: Array, tau: Array) -> Array:
        """Forces on the chart's joints that do what ``tau`` does on the model's own."""
        if self.is_own:
            return tau
        result: Array = self.matrix(q).T @ tau
        return result

    def state(self, x: Array) -> Array:
        """(q, v) in the model's own coordinates, from (q, v) in the chart's."""
        nq = self.own.nq
        return np.concatenate([x[:nq], self.velocities(x[:nq], x[nq:])])

    def changed(
        self, looks: Sequence[Look], x: Array, *, whole: bool, good: float = GOOD
    ) -> tuple[View, Array]:
        """The chart to go on in, and x = (q, v) there; ``whole``: of whole joints only.

        Linkages whose joints are ``good`` keep them.
        """
        choices = list(self.choices)
        x = x.copy()
        for n, (linkage, look) in enumerate(zip(linkages(self.own), looks, strict=True)):
            if look.goodness >= good:
                continue
            found = best(look.motions, linkage.whole if whole else lambda _: True)
            factor = BETTER if good <= GOOD else 1.0
            if found is None or goodness(look.motions, found) <= factor * look.goodness:
                continue
            part = self.own.clusters[linkage.index].v
            at = slice(self.own.nq + part.start, self.own.nq + part.stop)
            unit = linkage.unit
            rates = np.linalg.solve(look.motions[list(choices[n])], x[at] / unit[list(choices[n])])
            x[at] = unit[list(found)] * (look.motions[list(found)] @ rates)
            choices[n] = found
        return View(self.own, tuple(choices)), x


@dataclass(frozen=True, slots=True)
class Look:
    """One linkage at a configuration: its motions (z, mobility), in comparable units.

    ``goodness``: 1/‖G‖ of the independent joints there. ``kept``: how far K is from losing rank, as
    a share of its norm.
    """

    motions: Array
    goodness: float
    kept: float


def look(view: View, q: Array) -> list[Look]:
    """Every linkage of a model at q (nq,)."""
    found = linkages(view.own)
    if not found:
        return []
    flat = loop_matrices(view.own)(q)
    result, at = [], 0
    for linkage, choice in zip(found, view.choices, strict=True):
        shape = len(linkage.constraint.keep), len(linkage.columns)
        size = shape[0] * shape[1]
        motions, kept = linkage.motions(flat[at : at + size].reshape(shape))
        at += size
        result.append(Look(motions, goodness(motions, choice), kept))
    return result


def are_surpassed(view: View, looks: Sequence[Look]) -> bool:
    """Whether others, of whole joints, are so much better somewhere that they are to be taken."""
    for linkage, look in zip(linkages(view.own), looks, strict=True):
        found = best(look.motions, linkage.whole)
        if found is not None and goodness(look.motions, found) > BETTER * look.goodness:
            return True
    return False


def loop_matrices(model: Model) -> Function:
    """q → K of each linkage by rows, over z: what couplings leave of its velocities."""
    found = linkages(model)

    def build(q: Vector) -> list[Scalar]:
        entries: list[Scalar] = []
        for linkage in found:
            c = linkage.constraint
            own = q[model.clusters[linkage.index].q]
            columns = list(zip(*c.expand, strict=True))
            rows = evaluate_loops(c.links, c.loops, own, keep=c.keep).jacobian
            entries += [dot(row, column) for row in rows for column in columns]
        return entries

    size = sum(len(each.constraint.keep) * len(each.columns) for each in found)
    return function(model, "loop matrices", (model.nq, size), build)


def squared_norm(model: Model, q: Vector) -> Scalar:
    """‖G‖² by Frobenius, in comparable units, of the linkage where it is greatest.

    From 1/σ² to mobility/σ², σ the goodness of its joints; scalars of any kind.
    """
    greatest: Scalar = 0.0
    for linkage in linkages(model):
        cluster = model.clusters[linkage.index]
        rows = linkage.constraint.jacobian(linkage.constraint.positions(q[cluster.q]))
        own = linkage.unit[list(linkage.constraint.independent)]
        entries = [
            mul(float(unit / by), x)
            for column, by in zip(linkage.columns, linkage.unit, strict=True)
            for unit, x in zip(own, rows[column], strict=True)
        ]
        greatest = maximum(greatest, dot(entries, entries))
    return greatest


def turned_out(own: Model, chart: Model, q: Vector) -> list[list[Scalar]]:
    """T (nv by nv) at q; scalars of any kind."""
    result: list[list[Scalar]] = []
    for cluster, other in zip(own.clusters, chart.clusters, strict=True):
        before, after = cluster.v.start, own.nv - cluster.v.stop
        if cluster.columns == other.columns or not cluster.implicit:
            rows: list[list[Scalar]] = [
                [1.0 if i == j else 0.0 for j in range(cluster.nv)] for i in range(cluster.nv)
            ]
        else:
            g = other.constraint.jacobian(other.constraint.positions(q[other.q]))
            rows = [list(g[c]) for c in cluster.columns]
        result += [[0.0] * before + row + [0.0] * after for row in rows]
    return result


@cached_on_model
def turning_out(own: Model, choices: tuple[Choice, ...]) -> Function:
    """q → T by rows."""
    chart = in_chart(own, choices)

    def build(q: Vector) -> list[Scalar]:
        return [x for row in turned_out(own, chart, q) for x in row]

    name = f"turning out {own_chart(own)!r}"
    return function(chart, name, (own.nq, own.nv * own.nv), build)
