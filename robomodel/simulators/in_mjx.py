"""MJX: MuJoCo's model of an MJCF file, moved by JAX on the CPU in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from robomodel.simulators.in_mujoco import MujocoModel
from robomodel.simulators.loaded import Source


class MjxModel(MujocoModel):
    """A model of MuJoCo's that MJX computes."""

    def __init__(self, model: Any):
        super().__init__(model)
        import jax
        from mujoco import mjx

        self.jax, self.mjx = jax, mjx
        with jax.enable_x64(True):
            self.put, self.run = mjx.put_model(model), jax.jit(mjx.forward)

    def forward(self) -> None:
        """Fill ``data`` by ``mjx.forward``."""
        with self.jax.enable_x64(True):
            self.found = self.run(self.put, self.mjx.put_data(self.model, self.data))
        self.data.qacc[:], self.data.qfrc_bias[:] = self.found.qacc, self.found.qfrc_bias

    def mass(self) -> Any:
        """The mass matrix."""
        with self.jax.enable_x64(True):
            return np.asarray(self.mjx.full_m(self.put, self.found))

    def rows(self) -> Any:
        """The Jacobian of equality constraints, which come first."""
        inner = self.found._impl
        return np.asarray(inner.efc_J)[: inner.ne]


def load(source: Source) -> MjxModel:
    """The robot of an MJCF file."""
    from importlib.metadata import version

    import mujoco

    loaded = MjxModel(mujoco.MjModel.from_xml_path(source.path))
    loaded.version = version("mujoco-mjx")
    return loaded
