"""Mini Cheetah with its rotors and Tello with its differentials learn to walk, on two cores.

    python examples/learning/walking.py mini_cheetah [--iterations 200] [--robots 1024] [--seed 0]
    python examples/learning/walking.py mini_cheetah --policy mini_cheetah.npz --html walk.html

A network, 64 by 64, sets the targets of PD loops fifty times a second: of Mini Cheetah's at its
joints, of Tello's at its ten motors, behind whose gears and linkages the loops act exactly. Contact
is rigid. A clock asks pairs of legs, or legs, to stand in turn; the rest of the reward is speed
forwards, a level base, and small efforts and changes. :mod:`ppo` learns, in single precision.

Then the policy walks without noise, pushed, with other masses and friction than those that it has
learned with, and on the open tree with armatures that stands for the robot in simulators without
loops and rotors (:func:`robomodel.approximate_tree`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import ppo
from numpy.typing import NDArray

import robomodel as rm
from robomodel import views
from robomodel.gymnasium import VectorEnv

Array = NDArray[np.float64]
STEP, SUBSTEPS = 2e-3, 10
CALL = STEP * SUBSTEPS  # [s]
EPISODE = 250  # calls
FRICTION = 0.7


@dataclass(frozen=True)
class Robot:
    """What is learned with: a robot, its pose, its feet, loops and gait.

    ``feet``: contact points, one or two a foot; ``group``: 0 or 1, which stand in turn.
    """

    file: str
    bent: dict[str, float]
    feet: tuple[tuple[str, tuple[float, float, float], float], ...]
    group: tuple[int, ...]
    where: str
    kp: float
    kd: float
    reach: float  # of an action of one [rad]
    speed: float  # that is asked for [m/s]
    beat: float  # Hz
    effort: float  # of a loop, that counts as one [N m]


def _both(names: dict[str, float], sides: tuple[str, ...]) -> dict[str, float]:
    return {name.format(side): angle for side in sides for name, angle in names.items()}


LEGS = ("FR", "FL", "HR", "HL")
ROBOTS = {
    "mini_cheetah": Robot(
        "mini_cheetah",
        _both({"{}_hip_link_joint": -0.8, "{}_knee_link_joint": 1.6}, LEGS),
        tuple((f"{leg}_foot_contact", (0.0, 0.0, 0.0), 0.02) for leg in LEGS),
        (0, 1, 1, 0), "joints", 30.0, 0.7, 0.3, 1.0, 2.5, 10.0,
    ),
    "tello": Robot(
        "tello",
        _both({"{}-gimbal-to-thigh": -0.4, "{}-thigh-to-shin": 0.8, "{}-shin-to-foot": -0.4,
               "{}-hip-clamp-to-gimbal": 0.0, "torso-to-{}-hip-clamp": 0.0}, ("left", "right")),
        tuple((f"{side}-{end}_contact", (0.0, 0.0, 0.0), 0.0)
              for side in ("left", "right") for end in ("heel", "toe")),
        (0, 0, 1, 1), "motors", 1.5, 0.04, 1.5, 0.4, 1.5, 1.5,
    ),
}  # fmt: skip


class Walking:
    """A robot, exact or as the tree that stands for it, n times: what is seen and rewarded."""

    def __init__(self, name: str, *, approximate: bool = False, motors: Any = None) -> None:
        """``motors``: an extension of the robot's file with limits of its motors, which act."""
        self.robot, self.limited = ROBOTS[name], motors is not None
        exact = rm.robots.load(self.robot.file, extend=motors)
        self.model = rm.approximate_tree(exact) if approximate else exact
        model, robot = self.model, self.robot
        named = {joint.name for joint in model.joints}
        q = model.configuration({k: x for k, x in robot.bent.items() if k in named})
        low = min(rm.frame_pose(model, q, link)[2, 3] - radius for link, _, radius in robot.feet)
        q[2] -= low
        self.q = q
        joints = robot.where == "joints"
        self.rest = np.concatenate([np.zeros(6), q[7:]]) if joints else self._motors(q)
        self.loops = np.arange(6 if joints else 0, len(self.rest))
        self.last = np.zeros((0, len(self.loops)))

    def _motors(self, q: Array) -> Array:
        return np.asarray(rm.actuator_positions(self.model, q))

    def environment(self, n: int, **options: Any) -> VectorEnv:
        """The vector environment."""
        gains = np.zeros((2, len(self.rest)))
        gains[:, self.loops] = [[self.robot.kp], [self.robot.kd]]
        self.last = np.zeros((n, len(self.loops)))
        given: dict[str, Any] = {
            "max_episode_steps": EPISODE, "dtype": "float32", "ground": rm.Ground(FRICTION),
            "saturate": self.limited,
        } | options  # fmt: skip
        return VectorEnv(
            self.model, n, step=STEP, substeps=SUBSTEPS, contacts=self.robot.feet,
            pd=(*gains, self.rest, self.robot.where),
            reward=self.reward, observation=self.observation, termination=self.fallen,
            start=self.start, autoreset="SameStep", **given,
        )  # fmt: skip

    # ---- functions of all robots

    def start(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """Standing, turned and moved a little."""
        v = 0.2 * rng.standard_normal((n, self.model.nv))
        v[:, 6:] = 0.0
        return np.tile(self.q, (n, 1)), v

    def _positions(self, sim: rm.Simulation) -> tuple[Array, Array]:
        """Of the loops, from rest, and rates."""
        if self.robot.where == "joints":
            return sim.q[:, 7:] - self.rest[6:], sim.v[:, 6:]
        positions, rates = sim.motors()
        return positions - self.rest, rates

    @staticmethod
    def down(sim: rm.Simulation) -> Array:
        """Where down is (n, 3), in the base's axes."""
        x, y, z, w = sim.q[:, 3:7].T
        return -np.stack([2.0 * (x * z - w * y), 2.0 * (y * z + w * x),
                          1.0 - 2.0 * (x * x + y * y)], axis=1)  # fmt: skip

    def clock(self, sim: rm.Simulation) -> Array:
        """The phase of the gait (n,)."""
        return np.asarray(2.0 * np.pi * self.robot.beat * sim.time)

    def observation(self, sim: rm.Simulation) -> Array:
        """The base's velocity and where down is, loops' positions, rates and targets, the clock."""
        positions, rates = self._positions(sim)
        asked, phase = sim.targets[:, self.loops] - self.rest[self.loops], self.clock(sim)
        return np.concatenate(
            [sim.v[:, :6], self.down(sim), positions, 0.1 * rates, asked,
             np.sin(phase)[:, None], np.cos(phase)[:, None]], axis=1,
        ).astype(np.float32)  # fmt: skip

    def fallen(self, sim: rm.Simulation) -> Any:
        """Which have fallen: leaning by more than 50 degrees, or low."""
        return (self.down(sim)[:, 2] > -0.65) | (sim.q[:, 2] < 0.6 * self.q[2])

    def reward(self, sim: rm.Simulation, actions: Array) -> Array:
        """Speed, gait, a level base, smooth and weak actions."""
        robot = self.robot
        w, v = sim.v[:, :3], sim.v[:, 3:6]
        positions, rates = self._positions(sim)
        asked = actions - self.rest[self.loops]
        effort = (robot.kp * (asked - positions) - robot.kd * rates) / robot.effort
        self.last[sim.time < 1.5 * CALL] = 0.0  # episodes begin at rest
        change = (asked - self.last) / robot.reach
        self.last = asked.copy()
        bears = sim.contact_forces[:, :, 2] > 1.0
        first = np.sin(self.clock(sim)) > 0.0
        stands = np.stack([first if g == 0 else ~first for g in robot.group], axis=1)
        off = (v[:, 0] - robot.speed) ** 2 + v[:, 1] ** 2
        reward = np.exp(-4.0 * off) + 0.5 * np.exp(-4.0 * w[:, 2] ** 2)
        reward += 0.6 * (bears == stands).mean(axis=1) + 0.2
        reward -= v[:, 2] ** 2 + 0.05 * (w[:, :2] ** 2).sum(axis=1)
        reward -= 2.0 * (self.down(sim)[:, :2] ** 2).sum(axis=1)
        reward -= 20.0 * (sim.q[:, 2] - self.q[2]) ** 2
        reward -= 0.02 * (effort**2).mean(axis=1) + 0.05 * (change**2).mean(axis=1)
        reward -= 0.1 * (positions**2).mean(axis=1) / robot.reach**2
        return np.asarray(0.03 * reward)


class Scaled:
    """An environment whose actions are of size one, about rest."""

    def __init__(self, walking: Walking, n: int, **options: Any) -> None:
        self.env = walking.environment(n, **options)
        self.rest = walking.rest[walking.loops]
        self.reach = walking.robot.reach
        self.single_action_space = self.env.single_action_space

    def reset(self, seed: int) -> Any:
        """Start anew."""
        return self.env.reset(seed=seed)

    def targets(self, actions: Array) -> Array:
        """Of the loops."""
        return np.asarray(self.rest + self.reach * np.clip(actions, -4.0, 4.0))

    def step(self, actions: Array) -> Any:
        """One call of the simulation."""
        return self.env.step(self.targets(actions))


@dataclass(frozen=True)
class Walk:
    """What robots do under a policy: q (T+1, n, nq), v, and which have fallen (n,)."""

    model: rm.Model
    q: Array
    v: Array
    fallen: Any

    @property
    def speed(self) -> Array:
        """Way forwards over time [m/s], of those that have not fallen."""
        way = self.q[-1, :, 0] - self.q[0, :, 0]
        return np.asarray(way[~self.fallen] / (CALL * (len(self.q) - 1)))

    def motion(self, n: int = 0) -> rm.motion.Trajectory:
        """That of one robot, to be looked at."""
        times = CALL * np.arange(len(self.q), dtype=np.float64)
        q, v = self.q[:, n].astype(np.float64), self.v[:, n].astype(np.float64)
        return rm.motion.Trajectory(self.model, "policy", times, q, v, np.zeros_like(v))

    def __str__(self) -> str:
        speed = self.speed
        return (
            f"{np.mean(speed):.3f} ± {np.std(speed):.3f} m/s, {self.fallen.sum()} of "
            f"{len(self.fallen)} fall" if len(speed) else "all fall"
        )  # fmt: skip


def walk(
    policy: Callable[[Array], Array], walking: Walking, n: int, seconds: float, **options: Any
) -> Walk:
    """N robots under a policy's mean actions; ``options``: of the simulation."""
    scaled = Scaled(walking, n, **options)
    scaled.reset(seed=1)
    sim = scaled.env.sim
    q, v, fallen = [sim.q.copy()], [sim.v.copy()], np.zeros(n, bool)
    for _ in range(round(seconds / CALL)):
        sim.targets[:, walking.loops] = scaled.targets(policy(walking.observation(sim)))
        sim.step()
        fallen |= walking.fallen(sim) | ~np.isfinite(sim.q).all(axis=1)
        q.append(sim.q.copy())
        v.append(sim.v.copy())
    return Walk(walking.model, np.array(q), np.array(v), fallen)


def others(walking: Walking, n: int) -> dict[str, dict[str, Any]]:
    """Simulations that differ from that of learning, by name; the base's mass by row."""
    name = f"{walking.model.bodies[0].name}.mass"
    shares = np.random.default_rng(0).uniform(0.8, 1.3, n)
    return {
        "as it has learned": {},
        "friction 0.4": {"ground": rm.Ground(0.4)},
        "bases 0.8 to 1.3 times as heavy": {
            "parameters": {name: shares * rm.parameters(walking.model)[name]}
        },
        "in double precision": {"dtype": "float64"},
    }


def main() -> None:
    """Learn, or take what was learned, and say what is reached."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("robot", choices=ROBOTS)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--robots", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--policy", type=Path, help="one that was learned")
    parser.add_argument("--output", type=Path, help="for the policy and its curve, without suffix")
    parser.add_argument("--html", type=Path, help="for a page that plays it")
    parser.add_argument("--motors", type=Path, help="an extension with limits of motors: <motor>")
    options = parser.parse_args()
    walking = Walking(options.robot, motors=options.motors)
    if options.policy:
        policy = ppo.Policy.load(options.policy)
    else:
        robots = ppo.Robots(Scaled(walking, options.robots), options.seed)
        policy, curve = ppo.learn(
            robots.collect, robots.sizes, options.iterations, options.seed, tell=True
        )
        if options.output:
            policy.save(options.output.with_suffix(".npz"))
            rounded = {name: np.round(x, 5).tolist() for name, x in asdict(curve).items()}
            options.output.with_suffix(".json").write_text(json.dumps(rounded))
    for name, more in others(walking, 256).items():
        print(f"{name}: {walk(policy, walking, 256, 10.0, **more)}", flush=True)
    tree = walk(policy, Walking(options.robot, approximate=True, motors=options.motors), 256, 10.0)
    print(f"with armature instead: {tree}")
    if options.html:
        views.write_html(walk(policy, walking, 1, 10.0).motion(), options.html)


if __name__ == "__main__":
    main()
