"""Robots as a vector environment: gymnasium's checks, resets, wrappers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import texts

import robomodel as rm

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402

from robomodel.gymnasium import VectorEnv  # noqa: E402

Array = np.ndarray


def start(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """The four-bar a little off its middle position, at rest."""
    model = rm.robots.load("four_bar")
    q = np.array([model.configuration({"joint1": 0.8 + 0.1 * x}) for x in rng.standard_normal(n)])
    return q, np.zeros((n, model.nv))


def height(sim: rm.Simulation, actions: Array) -> Array:
    """A reward for large angles, less what actions cost."""
    return sim.q[:, 0] - 0.01 * np.sum(actions**2, axis=1)


def environment(n: int = 4, **options: Any) -> VectorEnv:
    """Four-bars under forces."""
    model = rm.robots.load("four_bar")
    given = {"max_episode_steps": 5, "reward": height, "start": start, "substeps": 3} | options
    return VectorEnv(model, n, **given)


class One(gymnasium.Env[Array, Array]):
    """One robot of a vector environment, for gymnasium's checker."""

    def __init__(self) -> None:
        self.many = environment(1, autoreset="Disabled")
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, self.many.single_action_space.shape)
        self.observation_space = self.many.single_observation_space

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        seen, info = self.many.reset(seed=seed, options=options)
        return seen[0], info

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        seen, reward, ended, cut, info = self.many.step(action[None])
        return seen[0], float(reward[0]), bool(ended[0]), bool(cut[0]), info


def test_gymnasiums_checks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # unbounded observations, no render mode
        check_env(One(), skip_render_check=True)


def test_spaces_seeds_and_wrappers() -> None:
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(environment())
    runs = []
    for _ in range(2):
        env.action_space.seed(1)
        seen, _ = env.reset(seed=3)
        assert seen in env.observation_space
        total = []
        for _ in range(7):
            seen, reward, ended, cut, infos = env.step(np.clip(env.action_space.sample(), -1, 1))
            assert seen in env.observation_space
            assert reward.shape == ended.shape == cut.shape == (4,)
            total.append(reward)
            if "episode" in infos:
                assert np.all(infos["episode"]["l"] == 5)
        runs.append(np.array(total))
    np.testing.assert_array_equal(*runs)
    assert len(set(runs[0][0])) == 4  # each starts somewhere else


def test_next_step_resets() -> None:
    env = environment()
    assert env.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
    env.reset(seed=0)
    still = np.zeros(env.action_space.shape)
    cuts = []
    for k in range(7):
        seen, reward, _, cut, _ = env.step(still)
        cuts.append(cut.all())
        if k == 5:  # the action of this step counts for nothing
            np.testing.assert_array_equal(reward, 0.0)
            np.testing.assert_array_equal(env.sim.time, 0.0)
            np.testing.assert_array_equal(seen[:, env.sim.model.nq :], 0.0)
    assert cuts == [False, False, False, False, True, False, False]


def test_same_step_resets_and_ends() -> None:
    def beyond(sim: rm.Simulation) -> Any:
        return np.arange(sim.n) == 2

    env = environment(autoreset="SameStep", termination=beyond)
    env.reset(seed=0)
    seen, _, ended, cut, infos = env.step(np.ones(env.action_space.shape))
    np.testing.assert_array_equal(ended, [False, False, True, False])
    assert not cut.any()
    np.testing.assert_array_equal(infos["_final_obs"], ended)
    assert np.any(infos["final_obs"][2] != seen[2])
    np.testing.assert_array_equal(infos["final_obs"][1], seen[1])
    np.testing.assert_allclose(env.sim.time, [3e-3, 3e-3, 0.0, 3e-3])


def test_robots_that_fail_end_their_episodes() -> None:
    env = environment()
    env.reset(seed=0)
    force = np.zeros(env.action_space.shape)
    force[1] = np.nan
    with pytest.warns(RuntimeWarning, match="rows 1;"):
        seen, reward, ended, _, _ = env.step(force)
    np.testing.assert_array_equal(ended, [False, True, False, False])
    assert reward[1] == 0.0
    np.testing.assert_array_equal(seen[1], 0.0)
    seen, *_ = env.step(np.zeros_like(force))
    assert np.all(np.isfinite(env.sim.q))


@pytest.mark.slow
def test_targets_are_actions_with_loops() -> None:
    model = rm.robots.load("mini_cheetah")
    kp = np.where(np.arange(model.nv) < 6, 0.0, 40.0)
    env = VectorEnv(model, 3, pd=(kp, 0.02 * kp, np.zeros(model.nv)), dtype="float32")
    assert env.single_action_space.shape == (12,)
    env.reset()
    seen, *_ = env.step(np.full((3, 12), 0.1, np.float32))
    np.testing.assert_array_equal(env.sim.targets[:, 6:], np.float32(0.1))
    np.testing.assert_array_equal(env.sim.targets[:, :6], 0.0)
    assert seen.dtype == np.float32
    assert np.all(seen[:, model.nq + 6 :] > 0.0)
    env.reset(options={"reset_mask": np.array([True, False, True])})  # targets are those of pd
    np.testing.assert_array_equal(env.sim.targets[[0, 2]], 0.0)
    np.testing.assert_array_equal(env.sim.targets[1, 6:], np.float32(0.1))


def test_a_joint_limits_what_its_motors_give_together() -> None:
    """Two motors of 5 N m on a joint of 6 N m, which an unlimited one of 6 N m moves as well."""
    body = (
        '<worldbody><body><joint name="j" axis="0 1 0" {}/><geom size="0.1" pos="0.2 0 0"/></body>'
        "</worldbody>"
    )
    two = "".join(f'<motor name="{x}" joint="j" ctrlrange="-5 5"/>' for x in "mn")
    one = '<motor name="m" joint="j" ctrlrange="-6 6"/>'
    seen = []
    for ends, motors in (('actuatorfrcrange="-6 6"', two), ("", one)):
        text = f"<mujoco>{body.format(ends)}<actuator>{motors}</actuator></mujoco>"
        env = VectorEnv(rm.load(text), 2)
        env.reset()
        space = env.action_space
        seen.append(env.step(np.stack([space.high[0], space.low[1]]))[0])
    np.testing.assert_array_equal(*seen)


def test_forces_act_through_the_gears_of_each_robot() -> None:
    """Ratios that are parameters, and limits of 10 N m: of a motor's joint, and of one that leads.

    The motor of the second one is at a joint that follows it.
    """
    limit = '<limit lower="-9" upper="9" effort="{}" velocity="9"/>'
    motor = '<motor effort="4" velocity="99"/>'
    rotor = '<rotor inertia="1e-4" ratio="2"/>'
    text = texts.robot(
        *map(texts.link, "abc"),
        texts.joint("j", "base", "a", kind="revolute", more=limit.format(10) + rotor + motor),
        texts.joint("k", "a", "b", kind="revolute", mark=True, more=limit.format(10)),
        texts.joint("f", "b", "c", kind="revolute", mark=False, more=limit.format(0) + motor),
        texts.coupling("gear", {"f": 1.0, "k": -2.0}),
    )
    model, ratios = rm.load(text), np.array([2.0, 3.0, 5.0])
    given: dict[str, Any] = {"step": 1e-3, "parameters": {"j_rotor.j": -ratios, "gear.k": -ratios}}
    env, plain = VectorEnv(model, 3, **given), rm.Simulation(model, 3, **given)
    env.reset()
    seen, *_ = env.step(np.full((3, 2), 3.0))
    plain.step(np.repeat(np.minimum(3.0 * ratios, 10.0), 2).reshape(3, 2))
    np.testing.assert_allclose(seen, np.hstack([plain.q, plain.v]), rtol=1e-12)


def test_what_does_not_fit_is_said() -> None:
    env = environment(2)
    env.reset(seed=1)
    before = env.sim.q.copy()
    for mask in (np.ones(3, bool), np.array([0, 1]), [True]):
        with pytest.raises(ValueError, match="reset_mask says True or False for each of 2 robots"):
            env.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal(env.sim.q, before)
    force = np.zeros(env.action_space.shape)
    with pytest.raises(ValueError, match="actions must be real numbers, got an array of <U1"):
        env.step(force.astype("U1"))
    for name in ("reward", "termination"):
        given = {name: lambda *_: np.zeros(3)}
        with pytest.raises(ValueError, match=f"{name} gives a number for each of 2 robots, gave"):
            environment(2, **given).step(force)
        for wrong in (None, "good", [1j, 0.0], [[1.0], [1.0, 2.0]]):
            given = {name: lambda *_, wrong=wrong: wrong}
            with pytest.raises(ValueError, match=f"results of {name} must be real numbers, got"):
                environment(2, **given).step(force)
        for right, seen in ((1, [1, 1]), ([True, False], [1, 0]), (np.array([0, 1]), [0, 1])):
            given = {name: lambda *_, right=right: right}
            results = environment(2, **given).step(force)
            np.testing.assert_array_equal(results[1 if name == "reward" else 2], seen)
    with pytest.raises(ValueError, match="max_episode_steps is a number from 1 on, got True"):
        environment(2, max_episode_steps=True)
