"""Parameters of a model as unknowns of a graph, estimated with the motion, with covariances.

A variable "p" holds the chosen parameters of :func:`robomodel.parameters`, constant or slowly
drifting. Inverse dynamics is linear in them, so the equations of motion need only their columns of
the regressor Y: e = rnea(q, v, a) + Y (p - p₀) - tau.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.recursions.regressor import regressor
from robomodel.estimation.factors import Dynamics, Equal, Errors, FactorBase, Prior, TracedFactor
from robomodel.estimation.graph import Graph, NoiseLike
from robomodel.estimation.incremental import Incremental
from robomodel.estimation.solve import Solution
from robomodel.estimation.spaces import Configurations, Vectors
from robomodel.model.model import Model
from robomodel.model.parameters import parameters, with_parameters
from robomodel.scalars import Scalar, Vector, dot


@dataclass(frozen=True)
class ParametricDynamics(FactorBase):
    """The equations of motion of a model whose parameters ``names`` are the variable ``p``.

    As :class:`.factors.Dynamics` with the form "force": e = rnea - tau [N m, N], tau known
    (``data``), unknown, or both. Damping and dry friction (with the exact sign of the joint's
    velocity) act if they are among the names; with ``passive``, springs and the file's other
    dampers act, too.
    """

    model: Model
    names: tuple[str, ...]
    tau: str | None = None
    passive: bool = False
    q: str = "q"
    v: str = "v"
    a: str = "a"
    p: str = "p"

    def __post_init__(self) -> None:
        listed = parameters(self.model)
        for name in self.names:
            listed[name]  # raises UnknownNameError with a hint
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError("the names of one parameter or more are needed, each once")
        forces = () if self.tau is None else (self.tau,)
        states = (self.q, self.v, self.a, self.p)
        self._describe((*states, *forces), self.model.nv, (self.a, self.p, *forces))

    @cached_property
    def values(self) -> Array:
        """The file's values of the parameters."""
        return np.array([parameters(self.model)[name] for name in self.names])

    @cached_property
    def _counted(self) -> Array:
        """The values of the parameters that ``rnea`` uses."""
        left_out = ("friction",) if self.passive else ("damping", "friction")
        kinds = [name.rpartition(".")[2] for name in self.names]
        return np.where(np.isin(kinds, left_out), 0.0, self.values)

    @cached_property
    def _parts(self) -> tuple[Dynamics, TracedFactor]:
        """The file's dynamics, and Y(q, v, a) d over the parameters' columns."""
        model, listed = self.model, parameters(self.model).names
        chosen = [listed.index(name) for name in self.names]

        def build(q: Vector, v: Vector, a: Vector, change: Vector) -> list[Scalar]:
            rows = regressor(model, q, v, a)
            return [dot([row[c] for c in chosen], change) for row in rows]

        rates, label = Vectors(model.nv), f"regressor columns {chosen!r}"
        columns = TracedFactor(
            model, label,
            {"q": Configurations(model), "v": rates, "a": rates, "p": Vectors(len(chosen))},
            model.nv, build,
        )  # fmt: skip
        return Dynamics(model, self.tau, passive=self.passive), columns

    def evaluate(self, x: Sequence[Array], data: Array | None) -> Errors:
        """The error; data are added to the variable tau."""
        (q, v, a, p), forces = x[:4], x[4:]
        dynamics, columns = self._parts
        e, slopes = dynamics.evaluate((q, v, a, *forces), data)
        change, by_change = columns.evaluate((q, v, a, p - self._counted), None)
        by_state = [slope + more for slope, more in zip(slopes[:3], by_change[:3], strict=True)]
        return e + change, [*by_state, by_change[3], *slopes[3:]]


def with_unknown_parameters(
    graph: Graph,
    names: Sequence[str],
    noise: NoiseLike,
    *,
    drift: NoiseLike = 0.0,
    passive: bool = False,
) -> Graph:
    """The graph with unknown parameters "p".

    Replaces its :class:`Dynamics`, which must have the form "force". The prior of the parameters is
    the file's values with the standard deviations ``noise`` (one for all, or by parameter, in their
    units); parameters that no motion determines stay at it. ``drift``: standard deviation of their
    change from one time to the next.
    """
    chosen, space = tuple(names), Vectors(len(names))
    dynamics: ParametricDynamics | None = None
    terms = []
    for term in graph.terms:
        old, new = term.factor, term
        if isinstance(old, Dynamics):
            if old.form != "force":
                raise ValueError("the graph's dynamics must be of the form 'force'")
            dynamics = ParametricDynamics(
                old.model, chosen, old.tau, passive, q=old.q, v=old.v, a=old.a
            )
            new = replace(term, factor=dynamics)
        terms.append(new)
    if dynamics is None:
        raise ValueError("the graph has no equations of motion")
    graph = Graph({**graph.spaces, "p": space}, graph.count, tuple(terms))
    graph = graph.add(Prior("p", space), noise, times=[0], data=dynamics.values)
    return graph.add(Equal("p", space), drift)


@dataclass(frozen=True, eq=False)
class ParameterEstimate:
    """Estimated ``values`` (p,) of the parameters ``names``, with ``covariance`` Σ (p, p)."""

    model: Model
    names: tuple[str, ...]
    values: Array
    covariance: Array

    def __getitem__(self, name: str) -> float:
        return self.mapping[name]

    @property
    def mapping(self) -> Mapping[str, float]:
        """Values by name, for :func:`robomodel.with_parameters`."""
        return dict(zip(self.names, self.values.tolist(), strict=True))

    @property
    def sigmas(self) -> Mapping[str, float]:
        """Standard deviations by name."""
        return dict(zip(self.names, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    def applied(self) -> Model:
        """The model with these parameters; warns of bodies that are physically impossible."""
        return with_parameters(self.model, self.mapping)


def estimated(solution: Solution | Incremental) -> ParameterEstimate:
    """The estimated parameters of a solved graph at the last time; ValueError if it has none."""
    for term in solution.graph.terms:
        factor = term.factor
        if isinstance(factor, ParametricDynamics):
            covariance = solution.covariance(factor.p)[-1]
            return ParameterEstimate(factor.model, factor.names, solution[factor.p][-1], covariance)
    raise ValueError("the graph has no parameters among its unknowns")
