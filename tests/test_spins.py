"""Rods that spin about themselves, however their balls are written."""

from __future__ import annotations

import math

import numpy as np
from texts import joint, link, loop, robot

import robomodel as rm
from robomodel.model.spins import find_spins

MOTOR = '<motor effort="5" velocity="3"/>'


def numbers(*values: float) -> str:
    return " ".join(repr(float(x)) for x in values)


def delta() -> str:
    """Three arms on the base carry a plate by two rods with balls each; the plate floats."""
    parts = [link("plate"), joint("free", "base", "plate", numbers(0, 0, -0.4), kind="floating")]
    for n in range(3):
        x, y = math.cos(math.tau * n / 3), math.sin(math.tau * n / 3)
        parts += [
            link(f"arm{n}"),
            joint(f"arm{n}", "base", f"arm{n}", numbers(0.15 * x, 0.15 * y, 0),
                  axis=numbers(-y, x, 0), more=MOTOR),
        ]  # fmt: skip
        for side in (-0.05, 0.05):
            name, beside = f"rod{n}{'a' if side > 0 else 'b'}", (-side * y, side * x)
            tip = (0.2 * x + beside[0], 0.2 * y + beside[1], -0.02)
            eye = (0.05 * x + beside[0], 0.05 * y + beside[1], 0.0)
            parts += [
                link(name),
                joint(name, f"arm{n}", name, numbers(*tip), kind="spherical"),
                loop(f"{name} eye", "spherical", name, "plate",
                     numbers(-0.3 * x, -0.3 * y, -0.38), numbers(*eye), more=""),
            ]  # fmt: skip
    return robot(*parts)


def test_a_delta_whose_spins_are_locked_moves_as_its_loops_say() -> None:
    """Its plate at rest, no arm closes with both of its rods: each is closed with all others."""
    model = rm.load(delta(), spins="locked")
    assert model.nv == 3
    assert len(find_spins(rm.load(delta()))) == 6
    (index,) = (n for n, cluster in enumerate(model.clusters) if cluster.implicit)
    cluster = model.clusters[index]
    for seed in range(3):
        q = model.random_configuration(seed, near=model.neutral())
        conditions = cluster.geometry.evaluate(q[cluster.q])[1]
        rates = np.stack([
            np.concatenate([np.atleast_1d(x) for x in model.joint_velocities(q, v).values()])
            for v in np.eye(3)
        ])  # fmt: skip
        assert np.max(np.abs(conditions @ rates.T)) < 1e-12
        v, tau = np.array([0.5, -1.0, 0.7]), np.array([1.0, -2.0, 0.5])
        np.testing.assert_allclose(
            rm.aba(model, q, v, tau), rm.aba(model, q, v, tau, method="lagrange"), rtol=1e-9
        )
