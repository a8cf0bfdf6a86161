"""Many robots as one vector environment of gymnasium (extra ``gymnasium``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robomodel.arrays import Array
from robomodel.dynamics.functions.actuators import torques
from robomodel.errors import MissingPackageError
from robomodel.model.arguments import as_numbers
from robomodel.model.model import Model
from robomodel.motion.simulation import Simulation

try:
    from gymnasium import spaces, vector
except ImportError as error:
    raise MissingPackageError("robomodel.gymnasium needs", "gymnasium", "gymnasium") from error

Observation: TypeAlias = Callable[[Simulation], Array]
Reward: TypeAlias = Callable[[Simulation, Array], Array]
Termination: TypeAlias = Callable[[Simulation], NDArray[np.bool_]]
Start: TypeAlias = Callable[[np.random.Generator, int], tuple[Array, Array]]


def state(sim: Simulation) -> Array:
    """q and v of each robot (n, nq + nv)."""
    return np.concatenate([sim.q, sim.v], axis=1)


class VectorEnv(vector.VectorEnv[Array, Array, Any]):
    """N robots as a vector environment over :class:`robomodel.Simulation`.

    With PD loops, actions are their targets (of loops with a ``kp``), in the order of the model's
    velocities or actuators. Without, actions are the forces of the actuators, or of the independent
    joints if the model has no actuators. Where several actuators drive a joint, its own limit of
    effort, which no box of forces says, clips what they give together.

    Attributes:
        sim: The simulation.
        num_envs: Number of robots.
        single_action_space: Action space of one robot.
        single_observation_space: Observation space of one robot.
        action_space: Action space of all robots.
        observation_space: Observation space of all robots.
    """

    def __init__(
        self,
        model: Model,
        n: int,
        *,
        max_episode_steps: int = 1000,
        reward: Reward | None = None,
        observation: Observation = state,
        termination: Termination | None = None,
        start: Start | None = None,
        autoreset: str = "NextStep",
        **options: Any,
    ) -> None:
        """Create the environment.

        Args:
            model: The robot.
            n: Number of robots.
            max_episode_steps: Number of steps after which an episode is truncated.
            reward: A function of the simulation after the step and the actions (n, …) that returns
                the rewards (n,); default 0.
            observation: A function of the simulation that returns (n, k) numbers; default q and v.
            termination: A function of the simulation that returns which episodes end (n,).
                Episodes of robots that cannot be simulated further end with reward 0.
            start: A function of a random generator and a number m of robots that returns their q
                (m, nq) and v (m, nv); default ``model.neutral()`` at rest.
            autoreset: gymnasium's mode, "NextStep", "SameStep" or "Disabled".
            options: Options of :class:`robomodel.Simulation`.

        Raises:
            ValueError: Arguments do not fit.
        """
        counts = isinstance(max_episode_steps, int | np.integer)
        if isinstance(max_episode_steps, bool) or not counts or max_episode_steps < 1:
            raise ValueError(f"max_episode_steps is a number from 1 on, got {max_episode_steps!r}")
        self.sim = Simulation(model, n, **options)
        self.num_envs = self.sim.n
        self._mode = vector.AutoresetMode(autoreset)
        self.metadata = {"autoreset_mode": self._mode}
        self._reward, self._observation, self._termination = reward, observation, termination
        self._start, self._limit = start, int(max_episode_steps)
        self._loops = np.flatnonzero(np.any(self.sim.kp != 0.0, axis=0))
        self._rest = self.sim.targets[:, self._loops].copy()
        self._length = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, bool)
        number = np.dtype(self.sim.q.dtype)
        seen = self._observe()
        if seen.ndim != 2 or len(seen) != self.num_envs:
            raise ValueError(f"observation gives (n = {n}, k) numbers, gave shape {seen.shape}")
        low, high = (ends.astype(number) for ends in self._bounds())
        self.single_action_space = spaces.Box(low, high, dtype=number.type)
        self.single_observation_space = spaces.Box(
            -np.inf, np.inf, seen.shape[1:], dtype=seen.dtype.type
        )
        self.action_space = vector.utils.batch_space(self.single_action_space, self.num_envs)
        self.observation_space = vector.utils.batch_space(
            self.single_observation_space, self.num_envs
        )

    def _bounds(self) -> tuple[Array, Array]:
        """Bounds of actions: one turn for targets, effort limits for forces."""
        model = self.sim.model
        if len(self._loops):
            most = np.full(len(self._loops), np.pi)
            return -most, most
        if model.actuators:
            ends = np.array([(each.least_effort, each.effort_limit) for each in model.actuators])
            return ends[:, 0], ends[:, 1]
        most = np.full(model.nv, np.inf)
        return -most, most

    def _observe(self) -> Array:
        """The observations; zeros for robots that cannot be simulated further."""
        seen = np.array(self._observation(self.sim))
        seen[~np.isfinite(seen).all(axis=-1)] = 0.0
        return seen

    # ---- episodes

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Restart all robots, or those of ``options["reset_mask"]`` (n,).

        Args:
            seed: Seed of the random generator for ``start``.
            options: gymnasium's options.

        Returns:
            observations: (n, k).
            infos: Empty.

        Raises:
            ValueError: The mask does not say of each robot whether it restarts.
        """
        mask = (options or {}).get("reset_mask")
        mask = np.ones(self.num_envs, bool) if mask is None else np.asarray(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != bool:
            raise ValueError(
                f"reset_mask says True or False for each of {self.num_envs} robots, got an array "
                f"of {mask.dtype} of shape {mask.shape}"
            )
        super().reset(seed=seed)
        self._begin(np.flatnonzero(mask))
        return self._observe(), {}

    def _begin(self, rows: NDArray[np.intp]) -> None:
        """Restart some robots."""
        if len(rows):
            q, v = (None, None)
            if self._start is not None:
                q, v = self._start(self.np_random, len(rows))
            self.sim.reset(rows, q, v)
            self.sim.targets[np.ix_(rows, self._loops)] = self._rest[rows]
        self._length[rows], self._ended[rows] = 0, False

    def step(self, actions: Array) -> tuple[Array, Array, Any, Any, dict[str, Any]]:
        """Step all robots with one action each.

        Args:
            actions: (n, m), in ``action_space``.

        Returns:
            observations: (n, k).
            rewards: (n,).
            terminations: Whether each episode has ended (n,).
            truncations: Whether each episode was truncated at ``max_episode_steps`` (n,).
            infos: In mode "SameStep", the last observations of ended episodes as "final_obs".

        Raises:
            ValueError: Actions, rewards or terminations do not fit.
        """
        as_numbers(actions, "actions")  # rewards see them as they are
        wanted = np.asarray(actions)
        if wanted.shape != self.action_space.shape:
            raise ValueError(f"actions are {self.action_space.shape}, got shape {wanted.shape}")
        anew = self._ended.copy()
        self._act(wanted)
        if np.any(anew):
            self._begin(np.flatnonzero(anew))
        self._length += ~anew
        sim = self.sim
        lost = ~(np.isfinite(sim.q).all(axis=1) & np.isfinite(sim.v).all(axis=1))
        rewards = np.zeros(self.num_envs)
        if self._reward is not None:
            rewards[:] = self._of_each("reward", self._reward(sim, wanted))
        rewards[lost | anew] = 0.0
        ended = np.zeros(self.num_envs, bool)
        if self._termination is not None:
            ended[:] = self._of_each("termination", self._termination(sim))
        ended = (ended | lost) & ~anew
        cut = (self._length >= self._limit) & ~ended
        seen, infos = self._observe(), dict[str, Any]()
        over = ended | cut
        if self._mode is vector.AutoresetMode.SAME_STEP and np.any(over):
            infos = {"final_obs": seen, "_final_obs": over}
            self._begin(np.flatnonzero(over))
            seen = self._observe()
        elif self._mode is vector.AutoresetMode.NEXT_STEP:
            self._ended = over
        return seen, rewards, ended, cut, infos

    def _of_each(self, name: str, given: Any) -> Array:
        """The numbers that a function gives: one for all robots, or one for each (n,)."""
        numbers = as_numbers(given, f"results of {name}")
        if numbers.shape not in ((), (self.num_envs,)):
            raise ValueError(
                f"{name} gives a number for each of {self.num_envs} robots, gave shape "
                f"{numbers.shape}"
            )
        return numbers

    def _act(self, actions: Array) -> None:
        """Apply actions and step the robots."""
        sim = self.sim
        if len(self._loops):
            sim.targets[:, self._loops] = actions
            sim.step()
        elif sim.model.actuators:
            sim.step(torques(sim.model, sim.q, actions, parameters=sim.parameters))
        else:
            sim.step(actions)
