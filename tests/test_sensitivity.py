"""Derivatives of operators along a direction: against differences of dense results."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import close
from cases import few

import robomodel as rm
from robomodel.papers.spatial_operators import SKO, Sensitivity, robot_sensitivity

STEP = 0.03
STENCIL = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # central differences of eighth order

FRAMES = {
    "puma560": ["link6"],
    "five_bar": ["link4"],
    "mini_cheetah": ["FR_foot_contact", "FL_foot_contact"],
}


def difference(f, model: rm.Model, q, along):
    """Central differences of eighth order, of dense results of the recursions."""
    return sum(
        factor / STEP * (f(model.integrate(q, n * STEP * along))
                         - f(model.integrate(q, -n * STEP * along)))
        for n, factor in enumerate(STENCIL, 1)
    )  # fmt: skip


@pytest.mark.parametrize("name", FRAMES)
def test_robots(name: str) -> None:
    model, frames = rm.robots.load(name), FRAMES[name]
    rng = np.random.default_rng(4)
    q = model.random_configuration(rng, base_pose="random")
    along = rng.normal(size=model.nv) / (2 if name != "five_bar" else 6)
    found = robot_sensitivity(model, q, along)
    mass = difference(lambda x: rm.crba(model, x, backend="numpy"), model, q, along)
    close(found.mass_operator.dense(), mass, 1e-11, least=1.0)
    expected = np.trace(np.linalg.solve(rm.crba(model, q, backend="numpy"), mass))
    close(found.log_det, expected, 1e-11, least=1.0)
    picked = found.model.pick_off(frames)
    inertia = difference(lambda x: rm.efpa(model, x, frames, backend="numpy"), model, q, along)
    close(found.inverse_operational_inertia(picked), inertia, 1e-10, least=1.0)


def test_batches() -> None:
    model = rm.robots.load("puma560")
    q = np.array([model.random_configuration(n) for n in range(3)])
    along = np.eye(6)[1]
    found = robot_sensitivity(model, q, along)
    inertia = found.inverse_operational_inertia(found.model.pick_off("link6"))
    for n in range(3):
        one = robot_sensitivity(model, q[n], along)
        close(found.log_det[n], one.log_det, 1e-11, least=1.0)
        close(found.mass_operator.dense()[n], one.mass_operator.dense(), 1e-11, least=1.0)
        close(
            inertia[n],
            one.inverse_operational_inertia(one.model.pick_off("link6")),
            1e-11,
            least=1.0,
        )


def test_a_parameter_of_ones_own_model() -> None:
    """Blocks that depend on a parameter t in closed form: the mass of a hand, the arm's length."""

    def model(t: float) -> SKO:
        return SKO.from_blocks(
            weights={("arm", "hand"): np.array([[1.0], [t]])},
            H={"arm": np.array([[1.0, t**2]]), "hand": np.array([[1.0]])},
            M={"arm": np.diag([2.0, 1.0]), "hand": np.array([[3.0 + t]])},
        )

    t = 0.5
    rate = SKO.from_blocks(
        weights={("arm", "hand"): np.array([[0.0], [1.0]])},
        H={"arm": np.array([[0.0, 2 * t]]), "hand": np.array([[0.0]])},
        M={"arm": np.zeros((2, 2)), "hand": np.array([[1.0]])},
    )
    own = model(t)
    found = Sensitivity(own, rate.weights, rate.H, rate.M)
    # by hand: ℳ = [[2 + t⁴ + (3 + t) s², (3 + t) s], [., 3 + t]] with s = 1 + t³
    s, ds, m = 1 + t**3, 3 * t**2, 3 + t
    expected = np.array([[4 * t**3 + s**2 + 2 * m * s * ds, s + m * ds], [s + m * ds, 1.0]])
    close(own.mass_matrix(), [[2 + t**4 + m * s**2, m * s], [m * s, m]], 1e-14, least=1.0)
    close(found.mass_operator.dense(), expected, 1e-14, least=1.0)
    close(found.log_det, np.trace(np.linalg.solve(own.mass_matrix(), expected)), 1e-14, least=1.0)


def test_what_does_not_belong_together_is_refused() -> None:
    one = robot_sensitivity(rm.robots.load("puma560"), np.zeros(6), np.eye(6)[0])
    other = robot_sensitivity(rm.robots.load("five_bar"), rm.robots.load("five_bar").neutral(),
                              [1.0, 0.0])  # fmt: skip
    with pytest.raises(ValueError, match="weights and its derivative"):
        Sensitivity(one.model, other.weights, one.H, one.M)
    with pytest.raises(ValueError, match="direction needs nv = 6 numbers"):
        robot_sensitivity(one.model.robot, np.zeros(6), [1.0])


@pytest.mark.slow_cases("mini_cheetah")
@pytest.mark.parametrize(
    "name", few(["puma560", "mini_cheetah", "four_bar", "tello"], "mini_cheetah", "four_bar")
)
def test_the_mass_matrixs_rate_is_that_of_coriolis(name: str) -> None:
    """Exact: along v, the rate of M is C + Cᵀ with the Coriolis matrix of :func:`rm.coriolis`."""
    model = rm.robots.load(name)
    rng = np.random.default_rng(2)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    c = rm.coriolis(model, q, v)
    close(robot_sensitivity(model, q, v).mass_operator.dense(), c + c.T, 1e-12, least=1.0)
