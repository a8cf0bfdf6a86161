"""Rollouts with contact: the same motions as simulate's, in one kernel, with what is left over."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from rollouts import q_and_v
from test_contact import BOTTOM, PENDULUM, SLED, at_rest, block

import robomodel as rm

FEET = [f"{leg}_foot_contact" for leg in ("FR", "FL", "HR", "HL")]


def standing(model: rm.Model, above: float) -> np.ndarray:
    bent = {"abad": 0.0, "hip": -0.8, "knee": 1.6}
    legs = {n: bent[n.split("_")[1]] for n in model.dof_names if n[:2] in ("FR", "FL", "HR", "HL")}
    q = model.configuration(legs)
    q[2] += above - min(rm.frame_pose(model, q, foot)[2, 3] for foot in FEET)
    return q


@pytest.mark.slow
def test_a_quadruped_lands_as_in_simulate() -> None:
    model = rm.robots.load("mini_cheetah")
    q = standing(model, 0.01)
    v = 0.2 * np.random.default_rng(0).standard_normal((5, model.nv))
    v[:, 5] -= 0.5
    ground = rm.Ground(friction=0.6)
    tau = np.zeros((40, model.nv))
    made = rm.rollout(model, q, v, tau, 1e-3, ground=ground, contacts=FEET, sweeps=12)
    assert made.contact_forces.shape == (5, 40, 4, 3)
    assert made.contact_residual.max() < 1e-6
    motion = rm.simulate(model, q, v[0], tau=np.zeros(model.nv), duration=0.04, ground=ground,
                         contacts=FEET)  # fmt: skip
    before = int(np.argmax(motion.contact_forces[:, 0, 2] > 0.0))
    np.testing.assert_allclose(made.q[0, :before], motion.q[:before], atol=1e-8)
    # at an impact simulate takes the bias of the velocity after it
    np.testing.assert_allclose(made.q[0], motion.q, atol=1e-5)
    np.testing.assert_allclose(made.v[0], motion.v, atol=1e-3)
    np.testing.assert_allclose(made.contact_forces[0], motion.contact_forces, atol=0.1)


@pytest.mark.slow
def test_single_precision_stands_too() -> None:
    model = rm.robots.load("mini_cheetah")
    q = standing(model, 0.0)
    made = {
        dtype: rm.rollout(model, q, np.zeros(model.nv), np.zeros((20, model.nv)), 1e-3, sweeps=12,
                          ground=rm.Ground(friction=0.6), contacts=FEET, dtype=dtype)
        for dtype in ("float64", "float32")
    }  # fmt: skip
    assert made["float32"].contact_forces.dtype == np.float32
    assert made["float32"].contact_residual.max() < 1e-3
    np.testing.assert_allclose(made["float32"].q, made["float64"].q, atol=1e-5)


@pytest.mark.slow
def test_blocks_slide_to_rest() -> None:
    model = block()
    v = np.zeros((3, 6))
    v[:, 3] = 0.3, 0.6, -0.5
    options = {"ground": rm.Ground(friction=0.5), "contacts": BOTTOM, "sweeps": 40}
    q, v = q_and_v(rm.rollout(model, at_rest(model, 0.1), v, np.zeros((150, 6)), 1e-3, **options))
    expected = v[:, 0, 3] ** 2 / (2 * 0.5 * 9.81)
    np.testing.assert_allclose(np.abs(q[:, -1, 0]), expected, atol=4e-4)
    np.testing.assert_allclose(v[:, -1], 0.0, atol=1e-9)


@pytest.mark.slow
def test_numpy_steps_alike() -> None:
    model = block()
    v = np.random.default_rng(0).standard_normal((3, 6))
    options = {"ground": rm.Ground(friction=0.5), "contacts": BOTTOM, "sweeps": 4}
    arguments = (model, at_rest(model, 0.1), v, np.zeros((6, 6)), 1e-3)
    one = rm.rollout(*arguments, **options)
    slow = rm.rollout(*arguments, **options, backend="numpy")
    for name in ("q", "v", "contact_forces", "contact_residual"):
        found, expected = getattr(slow, name), getattr(one, name)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_rebounds_and_rolling() -> None:
    ball = rm.load(
        '<robot name="ball"><link name="ball"><inertial><mass value="1"/><inertia ixx="0.004" '
        'iyy="0.004" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>',
        floating_base=True,
    )
    points = [("ball", (0, 0, 0), 0.1)]
    v = np.zeros((2, 6))
    v[0, [1, 3]] = 5.0, 0.5
    q = np.stack([at_rest(ball, 0.1), at_rest(ball, 0.3)])
    ground = rm.Ground(friction=0.8, restitution=0.6)
    made = rm.rollout(ball, q, v, np.zeros((500, 6)), 1e-3, ground=ground, contacts=points)
    np.testing.assert_allclose(made.q[0, :, 0], 0.5e-3 * np.arange(501), atol=1e-6)
    landed = int(np.argmax(made.v[1, :, 5] > 0.0))
    assert made.q[1, landed:, 2].max() == pytest.approx(0.1 + 0.36 * 0.2, abs=3e-3)
    one = rm.simulate(ball, q[1], duration=0.5, ground=ground, contacts=points)
    np.testing.assert_allclose(made.q[1], one.q, atol=1e-8)


def test_stops_and_dry_friction() -> None:
    model = rm.load(PENDULUM)
    q = rm.rollout(model, [[0.2], [0.4]], [0.0], np.zeros((1000, 1)), 1e-3, stops=True).q
    assert q.max() <= 0.9 + 1e-9
    np.testing.assert_allclose(q[:, -1], 0.9, atol=1e-9)
    sled = rm.load(SLED)
    tau = np.array([1.4999, -1.4999, 1.8])[:, None, None] * np.ones((100, 1))
    q, v = q_and_v(rm.rollout(sled, [0.0], [0.0], tau, 1e-3))
    np.testing.assert_allclose(q[:2], 0.0, atol=1e-18)
    assert v[2, -1, 0] > 0.0
    motion = rm.simulate(sled, [0.0], tau=tau[2])
    np.testing.assert_allclose(q[2], motion.q, atol=1e-12)
    free = rm.rollout(sled, [0.0], [1.0], tau[:1] * 0, 1e-3, friction=False, passive=False).q
    np.testing.assert_allclose(free[0, -1], 0.1, rtol=1e-12)


@pytest.mark.slow
def test_a_linkage_on_its_stops() -> None:
    """Loops stay closed, on the branch where they were, in every motion."""
    text = rm.robots.path("four_bar").read_text()
    at = text.index('<joint name="joint2"')
    limited = text[at:].replace("continuous", "revolute", 1)
    limited = limited.replace("<initial", '<limit lower="-9" upper="-0.3"/><initial', 1)
    model = rm.load(text[:at] + limited, gravity=(0.0, -9.81, 0.0))
    start = model.integrate(model.neutral(), np.array([[-0.1], [0.0], [0.1]]))
    q = rm.rollout(model, start, [0.0], np.zeros((600, 1)), 1e-3, stops=["joint2"]).q
    assert np.all(np.isfinite(q))
    assert np.abs(model.residual(q)).max() < 1e-12
    assert model.joint_positions(q)["joint2"].max() <= -0.3 + 1e-5


def test_springs_and_dampers_act_by_default() -> None:
    model = rm.load(
        SLED.replace('friction="1.5" damping="0.2"', 'damping="0.6" spring_stiffness="75"')
    )
    motion = rm.simulate(model, [0.1], duration=0.3)
    for method, off in (("rk4", 1e-8), ("semi_implicit_euler", 2e-3), ("time_stepping", 3e-3)):
        q = rm.rollout(model, [0.1], [0.0], np.zeros((300, 1)), 1e-3, method=method).q
        assert q[-1, 0] == pytest.approx(motion.q[-1, 0], abs=off)
        q = rm.rollout(
            model, [0.1], [0.0], np.zeros((300, 1)), 1e-3, method=method, passive=False
        ).q
        np.testing.assert_allclose(q, 0.1)


@pytest.mark.slow
def test_what_is_not_solved_is_told() -> None:
    model = block()
    v = np.array([0.3, 0.2, 0.1, 0.5, 0.1, -1.0])
    arguments = (model, at_rest(model, 0.1), v, np.zeros((20, 6)), 1e-3)
    options = {"ground": rm.Ground(), "contacts": BOTTOM, "sweeps": 1}
    with pytest.warns(RuntimeWarning, match="contacts of 1 of 1 motions"):
        rm.rollout(*arguments, **options, dtype="float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = rm.rollout(*arguments, **options)
    assert made.contact_residual.max() <= 1e-11  # in double precision they are solved to the end


@pytest.mark.slow
def test_heights_in_rollouts() -> None:
    """On a grid as on the level plane, and as simulate has it where the ground rises."""
    model = block()
    v = np.array([0.3, 0.2, 0.1, 0.5, 0.1, -1.0])
    arguments = (model, at_rest(model, 0.1), v, np.zeros((40, 6)), 1e-3)
    level = rm.rollout(*arguments, ground=rm.Ground(), contacts=BOTTOM)
    grid = rm.rollout(*arguments, ground=rm.Ground(height=np.zeros((3, 3))), contacts=BOTTOM)
    np.testing.assert_allclose(grid.q, level.q, rtol=0, atol=1e-8)
    slope = rm.Ground(height=[[0.0, 0.1], [0.1, 0.2]], origin=(-0.5, -0.5))
    high = at_rest(model, 0.3)
    found = rm.rollout(model, high, v, np.zeros((150, 6)), 1e-3, ground=slope, contacts=BOTTOM)
    one = rm.simulate(model, high, v, duration=0.15, ground=slope, contacts=BOTTOM)
    np.testing.assert_allclose(found.q, one.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.contact_forces, one.contact_forces, rtol=0, atol=1e-4)
    assert found.contact_forces[..., 2].max() > 0.0
