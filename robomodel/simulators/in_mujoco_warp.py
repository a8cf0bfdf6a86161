"""mujoco-warp: MuJoCo's model of an MJCF file, moved by Warp on the CPU in single precision."""

from __future__ import annotations

from typing import Any

from robomodel.simulators.in_mujoco import MujocoModel
from robomodel.simulators.loaded import Source


class WarpModel(MujocoModel):
    """A model of MuJoCo's that mujoco-warp computes."""

    precision = 1e-4  # of single precision

    def __init__(self, model: Any):
        super().__init__(model)
        import mujoco_warp
        import warp

        warp.config.quiet = True
        self.warp, self.engine, self.version = warp, mujoco_warp, mujoco_warp.__version__

    def forward(self) -> None:
        """Fill ``data`` by ``mujoco_warp.forward`` of one world.

        Twice, since the rate of the constraints' Jacobian is that at the last call's velocities.
        """
        with self.warp.ScopedDevice("cpu"):
            put = self.engine.put_model(self.model)
            found = self.engine.put_data(self.model, self.data)
            self.engine.forward(put, found)
            self.engine.forward(put, found)
            self.engine.get_data_into(self.data, self.model, found)


def load(source: Source) -> WarpModel:
    """The robot of an MJCF file."""
    import mujoco

    return WarpModel(mujoco.MjModel.from_xml_path(source.path))
