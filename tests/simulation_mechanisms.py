"""Mechanisms whose motions are simulated."""

from __future__ import annotations

import numpy as np
from texts import coupling, joint, link, robot

import robomodel as rm

Array = np.ndarray

State = tuple[rm.Model, Array, Array]


def crank_rocker(branch: str = "open") -> State:
    """The paper's four-bar, at rest with its crank along x, in one of its two assemblies."""
    model = rm.robots.load("crank_rocker")
    q = model.neutral()
    if branch == "crossed":
        q = model.configuration({"crank_joint": 0.0}, guess=model.close([0.0, -1.57, -2.55]))
        assert q[1] < 0.0 < model.neutral()[1]
    return model, q, np.zeros(1)


def six_bar() -> State:
    """The six-bar standing in a vertical plane."""
    model = rm.load(rm.robots.path("six_bar"), gravity=(0.0, -9.81, 0.0))
    return model, model.neutral(), np.array([2.0, -1.0, 1.0])


def tumbling(gravity: float = -9.81) -> State:
    """A floating body with a ball joint, a planar joint and a geared joint on it."""
    text = robot(
        *(link(name) for name in ("torso", "arm", "plate", "wheel", "rotor")),
        joint("j_torso", "base", "torso", kind="floating"),
        joint("j_arm", "torso", "arm", "0.3 0.1 0", kind="spherical"),
        joint("j_plate", "torso", "plate", "0 0 0.4", kind="planar", rpy="0.3 0.2 0"),
        joint("j_wheel", "arm", "wheel", "0.2 0 0.1", axis="0.6 0.8 0"),
        joint("j_rotor", "arm", "rotor", "0.1 0 0.1", axis="0 1 0", mark=False),
        coupling("gear", {"j_rotor": 1.0, "j_wheel": -6.0}),
    )
    model = rm.load(text.encode(), gravity=(0.0, 0.0, gravity))
    return model, model.random_configuration(3), np.random.default_rng(4).standard_normal(model.nv)
