"""Proximal policy optimization in JAX, over a vector environment of gymnasium.

Schulman et al. (2017), "Proximal Policy Optimization Algorithms", arXiv:1707.06347, with
generalized advantages (Schulman et al. 2016, arXiv:1506.02438) and steps whose length follows how
far the policy moves, as in Rudin et al. (2022), "Learning to walk in minutes", arXiv:2109.11978.

A policy is two small networks, of the mean action and of the value, and the deviations of the
actions. Observations are scaled by their mean and deviation so far. Episodes that are cut go on, so
to say: the value of their last observation counts; those that end do not.
Networks are of single precision, whether or not JAX computes in double elsewhere.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Tree = Any  # of arrays
jit: Callable[[Any], Any] = jax.jit

GAMMA, LAMBDA = 0.99, 0.95
CLIP, EPOCHS, PIECES = 0.2, 4, 4
HORIZON = 24  # steps of each environment between updates
ENTROPY, WANTED_KL = 1e-3, 0.01
HIDDEN = (64, 64)


# ---- networks ------------------------------------------------------------------------------------


def network(key: Any, sizes: tuple[int, ...], last: float) -> list[tuple[Any, Any]]:
    """Weights and offsets of layers, orthogonal; ``last``: size of the last layer's."""
    layers = []
    for n, (before, after) in enumerate(itertools.pairwise(sizes)):
        key, now = jax.random.split(key)
        gain = last if n == len(sizes) - 2 else 1.4
        weights = jax.nn.initializers.orthogonal(gain)(now, (before, after), jnp.float32)
        layers.append((weights, jnp.zeros(after, jnp.float32)))
    return layers


def applied(layers: list[tuple[Any, Any]], x: Any) -> Any:
    """The network at x (n, inputs)."""
    for weights, offset in layers[:-1]:
        x = jax.nn.elu(x @ weights + offset)
    weights, offset = layers[-1]
    return x @ weights + offset


def likelihood(tree: Tree, mean: Any, actions: Any) -> Any:
    """Logarithms of the density of actions (n, m) about their means."""
    scaled = (actions - mean) * jnp.exp(-tree["deviation"])
    return -0.5 * jnp.sum(scaled**2 + jnp.log(2.0 * jnp.pi), axis=1) - jnp.sum(tree["deviation"])


@jit
def acted(tree: Tree, seen: Any, key: Any) -> tuple[Any, Any, Any, Any]:
    """Actions that are tried at scaled observations, their likelihoods, means and values."""
    mean = applied(tree["actor"], seen)
    actions = mean + jnp.exp(tree["deviation"]) * jax.random.normal(key, mean.shape, mean.dtype)
    return actions, likelihood(tree, mean, actions), mean, applied(tree["critic"], seen)[:, 0]


@dataclass
class Policy:
    """What is learned: networks, and how observations are scaled."""

    tree: Tree
    center: Array
    scale: Array
    count: float = 1e-4

    @staticmethod
    def new(inputs: int, outputs: int, seed: int) -> Policy:
        """One that has learned nothing."""
        actor, critic = jax.random.split(jax.random.key(seed))
        tree = {
            "actor": network(actor, (inputs, *HIDDEN, outputs), 0.01),
            "critic": network(critic, (inputs, *HIDDEN, 1), 1.0),
            "deviation": jnp.full(outputs, np.log(0.8), jnp.float32),
        }
        return Policy(tree, np.zeros(inputs), np.ones(inputs))

    def scaled(self, seen: Array) -> Array:
        """Observations (n, inputs) as the networks take them."""
        return np.clip((seen - self.center) / self.scale, -8.0, 8.0).astype(np.float32)

    def __call__(self, seen: Array) -> Array:
        """The mean actions (n, outputs)."""
        x = self.scaled(seen)
        for weights, offset in self.tree["actor"][:-1]:
            x = x @ np.asarray(weights) + np.asarray(offset)
            x = np.where(x < 0.0, np.expm1(np.minimum(x, 0.0)), x)
        weights, offset = self.tree["actor"][-1]
        return np.asarray(x @ np.asarray(weights) + np.asarray(offset))

    def watch(self, seen: Array) -> None:
        """Let the scale follow these observations (n, inputs)."""
        n, before = len(seen), self.count
        mean, spread = seen.mean(axis=0), seen.var(axis=0)
        away, self.count = mean - self.center, before + n
        share = n / self.count
        spread = (1 - share) * self.scale**2 + share * spread + share * (1 - share) * away**2
        self.center, self.scale = self.center + share * away, np.sqrt(np.maximum(spread, 1e-4))

    def save(self, path: Path) -> None:
        """Write the mean action's network."""
        layers = [np.asarray(x, np.float32) for layer in self.tree["actor"] for x in layer]
        np.savez_compressed(path, self.center.astype(np.float32),
                            self.scale.astype(np.float32), *layers)  # fmt: skip

    @staticmethod
    def load(path: Path) -> Policy:
        """What :meth:`save` has written: it acts, and does not learn on."""
        with np.load(path) as file:
            center, scale, *layers = (file[name] for name in file.files)
        actor = list(zip(layers[::2], layers[1::2], strict=True))
        return Policy({"actor": actor}, center, scale)


# ---- learning ------------------------------------------------------------------------------------


def advantages(rewards: Array, values: Array, last: Array, over: Array) -> tuple[Array, Array]:
    """Generalized advantages and returns (T, n) of rewards, values and ends of episodes."""
    result, ahead, following = np.zeros_like(rewards), np.zeros_like(last), last
    for t in range(len(rewards) - 1, -1, -1):
        going = 1.0 - over[t]
        error = rewards[t] + GAMMA * going * following - values[t]
        ahead = error + GAMMA * LAMBDA * going * ahead
        result[t], following = ahead, values[t]
    return result, result + values


def loss(tree: Tree, piece: Tree) -> tuple[Any, Any]:
    """What a step reduces on a piece of what was tried, and how far the policy has moved."""
    mean = applied(tree["actor"], piece["seen"])
    ratio = jnp.exp(likelihood(tree, mean, piece["actions"]) - piece["likelihood"])
    gain = piece["advantage"]
    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    won = jnp.minimum(ratio * gain, jnp.clip(ratio, 1.0 - CLIP, 1.0 + CLIP) * gain).mean()
    value = applied(tree["critic"], piece["seen"])[:, 0]
    missed = jnp.mean((value - piece["returns"]) ** 2)
    old = piece["deviation"]
    moved = jnp.exp(2.0 * (old - tree["deviation"]))
    moved += ((piece["mean"] - mean) * jnp.exp(-tree["deviation"])) ** 2
    kl = jnp.sum(tree["deviation"] - old + 0.5 * (moved - 1.0), axis=-1).mean()
    return missed - won - ENTROPY * jnp.sum(tree["deviation"]), kl


@partial(jax.jit, donate_argnums=0)
def improved(state: Tree, batch: Tree, key: Any) -> tuple[Tree, Any]:
    """Networks, moments and lengths of steps after all epochs on a batch, and the last KL."""
    count = len(batch["returns"]) // PIECES

    def step(state: Tree, rows: Any) -> tuple[Tree, Any]:
        piece = {name: x[rows] for name, x in batch.items()}
        (_, kl), slope = jax.value_and_grad(loss, has_aux=True)(state["tree"], piece)
        rate = jnp.where(kl > 2.0 * WANTED_KL, state["rate"] / 1.5, state["rate"])
        rate = jnp.where((kl < 0.5 * WANTED_KL) & (kl > 0.0), rate * 1.5, rate)
        rate = jnp.clip(rate, 1e-5, 3e-3)
        size = jnp.sqrt(sum(jnp.sum(x**2) for x in jax.tree.leaves(slope)))
        slope = jax.tree.map(lambda x: x * jnp.minimum(1.0, 1.0 / size), slope)
        n = state["n"] + 1.0  # Adam: Kingma and Ba (2015), arXiv:1412.6980
        first = jax.tree.map(lambda m, x: 0.9 * m + 0.1 * x, state["first"], slope)
        second = jax.tree.map(lambda m, x: 0.999 * m + 0.001 * x**2, state["second"], slope)
        length = rate * jnp.sqrt(1.0 - 0.999**n) / (1.0 - 0.9**n)
        tree = jax.tree.map(
            lambda x, m, s: x - length * m / (jnp.sqrt(s) + 1e-8), state["tree"], first, second
        )
        return {"tree": tree, "first": first, "second": second, "n": n, "rate": rate}, kl

    for each in jax.random.split(key, EPOCHS):
        order = jax.random.permutation(each, len(batch["returns"]))
        state, kl = jax.lax.scan(step, state, order[: count * PIECES].reshape(PIECES, count))
    return state, kl[-1]


Table = dict[str, Array]


class Robots:
    """Environments in which a policy is tried, from where they stand."""

    def __init__(self, env: Any, seed: int) -> None:
        """``env.step`` takes actions (n, m) of size one or so, and begins ended episodes anew."""
        self.env, self._key = env, jax.random.key(seed)
        self._seen, _ = env.reset(seed=seed)

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of an observation and of an action."""
        return self._seen.shape[1], self.env.single_action_space.shape[0]

    def collect(self, policy: Policy) -> Table:
        """What was seen, tried and rewarded (T, n, …) in HORIZON steps; of values T + 1."""
        rows: dict[str, list[Array]] = {}
        tree = policy.tree

        def value(seen: Array) -> Array:
            return np.asarray(applied(tree["critic"], policy.scaled(seen)))[:, 0]

        for _ in range(HORIZON):
            self._key, now = jax.random.split(self._key)
            raw, x = self._seen, policy.scaled(self._seen)
            tried = dict(zip(("actions", "likelihood", "mean", "value"),
                             acted(tree, x, now), strict=True))  # fmt: skip
            self._seen, reward, ended, cut, infos = self.env.step(np.asarray(tried["actions"]))
            ahead = np.zeros(len(reward))
            if np.any(cut):  # the episode would have gone on
                ahead[cut] = GAMMA * value(infos["final_obs"][cut])
            tried |= {"raw": raw, "seen": x, "reward": reward, "ahead": ahead, "over": ended | cut}
            for name, each in tried.items():
                rows.setdefault(name, []).append(np.asarray(each, np.float32))
        rows["value"].append(value(self._seen))
        return {name: np.stack(each) for name, each in rows.items()}


@dataclass
class Curve:
    """By iteration: mean reward of a step, steps of an episode, seconds of processor time."""

    rewards: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def learn(
    gather: Callable[[Policy], Table], sizes: tuple[int, int], iterations: int, seed: int = 0,
    *, tell: bool = False,
) -> tuple[Policy, Curve]:  # fmt: skip
    """A policy; ``gather``: :meth:`Robots.collect`, or what puts several of its tables together.

    ``sizes``: :attr:`Robots.sizes`. Rewards are of size one or less.
    """
    key, policy = jax.random.key(seed), Policy.new(*sizes, seed)
    still = jax.tree.map(jnp.zeros_like, policy.tree)
    state = {"tree": policy.tree, "first": still, "second": jax.tree.map(jnp.copy, still),
             "n": jnp.zeros((), jnp.float32), "rate": jnp.full((), 1e-3, jnp.float32)}  # fmt: skip
    policy.tree = jax.tree.map(np.asarray, policy.tree)
    curve, begin = Curve(), time.process_time()
    for iteration in range(iterations):
        table = gather(policy)
        values, rewards = table["value"], table["reward"] + table["ahead"]
        gain, returns = advantages(rewards, values[:-1], values[-1], table["over"])
        deviation = np.broadcast_to(policy.tree["deviation"], table["actions"].shape)
        batch = {name: table[name] for name in ("seen", "actions", "likelihood", "mean")}
        batch |= {"advantage": gain, "returns": returns, "deviation": deviation}
        key, now = jax.random.split(key)
        flat = {name: x.reshape(-1, *x.shape[2:]) for name, x in batch.items()}
        state, kl = improved(state, flat, now)
        policy.tree = jax.tree.map(np.asarray, state["tree"])
        policy.watch(table["raw"].reshape(-1, sizes[0]))
        curve.rewards.append(float(table["reward"].mean()))
        curve.lengths.append(table["over"].size / max(float(table["over"].sum()), 1.0))
        curve.seconds.append(time.process_time() - begin)
        if tell and (iteration % 10 == 9 or iteration == 0):
            print(f"{iteration + 1:5} reward {curve.rewards[-1]:.4f}, steps of an episode "
                  f"{curve.lengths[-1]:.0f}, KL {float(kl):.4f}, {curve.seconds[-1]:.0f} s",
                  flush=True)  # fmt: skip
    return policy, curve
