"""Derivatives by recursion beside those of the trace, to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from cases import few
from mechanisms import KINDS, random_mechanism
from numpy.typing import NDArray
from random_models import load
from shipped_robots import SMALL as LEGS
from test_derivatives import TEXTS
from test_regroup import TEXTS as GEARED
from texts import link

import robomodel as rm
from robomodel.dynamics.kinematics.state import position_directions
from robomodel.dynamics.recursions.derivatives import tau_derivatives
from robomodel.dynamics.recursions.reduced import regrouped
from robomodel.dynamics.recursions.rnea import rnea
from robomodel.kernels import Trace
from robomodel.kernels.differentiate import differentiate
from robomodel.spatial import Wrench

Array = NDArray[np.float64]


def compare(model: rm.Model, q: Array, *, pushed: bool = False) -> tuple[int, int]:
    """Both ways at some states; their numbers of operations."""
    rng = np.random.default_rng(1)
    v, a = rng.standard_normal((2, len(q), model.nv))
    f_ext = {
        body: Wrench(tuple(x[:3]), tuple(x[3:]))
        for body, x in enumerate(rng.standard_normal((len(model.nodes) * pushed, 6)).tolist())
    }
    counts, found = [], []
    for recursive in (True, False):
        trace = Trace()
        x, y, z = (trace.inputs(n) for n in (model.nq, model.nv, model.nv))
        if recursive:
            matrices = tau_derivatives(model, x, y, z, f_ext)
            values = [n for matrix in matrices for row in matrix for n in row]
        else:
            directions = [*position_directions(model, x), *({n: 1.0} for n in y)]
            columns = differentiate(trace, rnea(model, x, y, z, f_ext), directions)
            rows = [
                *zip(*columns[: model.nv], strict=True),
                *zip(*columns[model.nv :], strict=True),
            ]
            values = [n for row in rows for n in row]
        program = trace.program(values)
        counts.append(program.flops)
        results = program([*q.T, *v.T, *a.T])
        found.append(np.array([np.broadcast_to(n, len(q)) for n in results]).T)
    forces = rm.rnea(model, q, v, a, backend="numpy")  # what the derivatives are made of
    size = np.max(np.abs(np.concatenate([found[1], forces], axis=-1)), axis=-1, keepdims=True)
    assert np.max(np.abs(found[0] - found[1]) / size) < 1e-12
    return counts[0], counts[1]


def states(model: rm.Model) -> Array:
    rng = np.random.default_rng(3)
    return np.array([model.random_configuration(rng) for _ in range(4)])


@pytest.mark.parametrize("name", LEGS)
def test_shipped_robots(name: str) -> None:
    model = rm.robots.load(name)
    q = states(model)
    recursive, differentiated = compare(model, q)
    assert recursive < 1.05 * differentiated + 22
    compare(regrouped(model, spread=True), q, pushed=True)


@pytest.mark.slow_cases("rod over a ball-True", "rod over a ball-False")
@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize(
    "name",
    few(
        [*TEXTS, *(f"geared {kind}" for kind in GEARED)],
        "spherical",
        "four_bar",
        "rod over a ball",
        "geared continuous",
    ),
)
def test_joints_and_constraints(name: str, base: bool) -> None:
    text = GEARED[name.partition(" ")[2]] if name.startswith("geared") else TEXTS[name]
    if base:
        text = text.replace('<link name="base"/>', link("base"))
    model = rm.load(text, floating_base=base, gravity=(1.0, -2.0, 3.0))
    compare(model, states(model), pushed=True)


@pytest.mark.parametrize("kind", few([*KINDS, "tether"], "belt"))
def test_every_kind_of_mechanism(kind: str) -> None:
    checked = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 7])
        loaded = load(random_mechanism(rng, [kind], n_joints=2))
        if loaded is not None:
            compare(loaded[0], loaded[1][None], pushed=bool(seed % 2))
            checked += 1
        if checked == 2:
            return
    pytest.fail(f"only {checked} mechanisms of this kind move")
