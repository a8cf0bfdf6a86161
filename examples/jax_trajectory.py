"""Torques that swing a leg on a four-bar to a given place, by gradients through the whole motion.

The motion is a scan over steps of the compiled kernels; JAX differentiates it backwards, loops
closed all along, and SciPy's L-BFGS takes the gradients. Needs ``robomodel[jax]``.

    python examples/jax_trajectory.py
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import robomodel as rm
import robomodel.jax

jax.config.update("jax_enable_x64", True)

STEP, STEPS = 5e-3, 100  # half a second
MOVE = np.array([0.5, -0.6])  # [rad] of thigh and shank
EFFORT = 1e-5  # price of a torque's square beside that of a miss [1/(N m)²]


class Swing(NamedTuple):
    """Torques (STEPS, nv), the motion's end, how far it misses, and evaluations."""

    tau: np.ndarray
    q: np.ndarray
    v: np.ndarray
    miss: float
    evaluations: int


def swing(model: rm.Model) -> Swing:
    """Least effort from rest to rest."""
    aba = robomodel.jax.function(model, "aba")
    integrate = robomodel.jax.function(model, "integrate")
    positions = robomodel.jax.function(model, "joint_positions")
    start = jnp.asarray(model.neutral())
    names = [joint.name for joint in model.joints]
    places = np.array([names.index(name) for name in model.dof_names])
    target = positions(start)[places] + MOVE

    def motion(tau: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(state: tuple[jax.Array, jax.Array], force: jax.Array) -> tuple[object, None]:
            q, v = state
            v = v + STEP * aba(q, v, force)
            return (integrate(q, STEP * v), v), None

        return jax.lax.scan(step, (start, jnp.zeros(model.nv)), tau)[0]

    def miss(q: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.sum((positions(q)[places] - target) ** 2) + 1e-2 * jnp.sum(v**2)

    def cost(tau: jax.Array) -> jax.Array:
        return miss(*motion(tau)) + EFFORT * STEP * jnp.sum(tau**2)

    slope = jax.jit(jax.value_and_grad(lambda flat: cost(flat.reshape(STEPS, model.nv))))
    hold = np.tile(rm.bias_force(model, np.asarray(start), np.zeros(model.nv)), STEPS)
    optimum = minimize(slope, hold, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    tau = optimum.x.reshape(STEPS, model.nv)
    q, v = jax.jit(motion)(tau)
    return Swing(tau, np.asarray(q), np.asarray(v), float(miss(q, v)) ** 0.5, int(optimum.nfev))


def main() -> None:
    """Print the result."""
    model = rm.robots.load("planar_leg_linkage")
    result = swing(model)
    print(
        f"missed by {result.miss:.2g} after {result.evaluations} motions with gradients; "
        f"largest torque {np.abs(result.tau).max():.3g} N m"
    )


if __name__ == "__main__":
    main()
