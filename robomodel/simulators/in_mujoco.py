"""MuJoCo: MJCF and URDF, as ``mujoco.MjModel.from_xml_path`` reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from robomodel.simulators.loaded import Numbers, Place, Source, State, kind_of, spread

_FREEDOMS = (6, 3, 1, 1)  # of mjJNT_FREE, mjJNT_BALL, mjJNT_SLIDE and mjJNT_HINGE
_OFF = ("CONTACT", "LIMIT", "FRICTIONLOSS", "ACTUATION")
"""Parts of MuJoCo beside the mechanism, which the exact model does not have."""


class MujocoModel:
    """A model of MuJoCo's, with its numbers by joint name."""

    precision = 1e-9

    def __init__(self, model: Any, names: dict[str, str] | None = None, gravity: Any = None):
        import mujoco

        self.mujoco, self.model, self.version = mujoco, model, mujoco.__version__
        for flag in _OFF:
            model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
        if gravity is not None:
            model.opt.gravity[:] = gravity
        self.data, self.nv = mujoco.MjData(model), int(model.nv)
        self.places, self.limits = [], {}
        for i in range(model.njnt):
            nv = _FREEDOMS[int(model.jnt_type[i])]
            kind = kind_of(nv)
            name = model.joint(i).name
            name = (names or {}).get(name, name)
            self.places.append(Place(name, kind, int(model.jnt_dofadr[i]), nv))
            if kind == "joint":
                lower, upper = model.jnt_range[i] if model.jnt_limited[i] else (-np.inf, np.inf)
                self.limits[name] = float(lower), float(upper)

    def numbers(self, state: State) -> Numbers:
        """At a state, by :meth:`forward`: qacc holds the equality constraints softly."""
        mujoco, model, data = self.mujoco, self.model, self.data
        mujoco.mj_resetData(model, data)
        for i, place in enumerate(self.places):
            if place.name in state.positions:
                at, q = int(model.jnt_qposadr[i]), state.positions[place.name]
                data.qpos[at : at + len(q)] = q if len(q) == 1 else np.roll(q, 1)
        self.forward()
        gravity = data.qfrc_bias.copy()
        data.qvel[:] = spread(self.places, self.nv, state.velocities)
        data.qfrc_applied[:] = spread(self.places, self.nv, state.forces)
        self.forward()
        return Numbers(self.mass(), gravity, data.qacc.copy(), self.rows())

    def forward(self) -> None:
        """Fill ``data`` from its positions, velocities and applied forces."""
        self.mujoco.mj_forward(self.model, self.data)

    def mass(self) -> Any:
        """The mass matrix."""
        mass = np.zeros((self.nv, self.nv))
        self.mujoco.mj_fullM(self.model, self.data, mass)
        return mass

    def rows(self) -> Any:
        """The Jacobian of active equality constraints."""
        mujoco, data = self.mujoco, self.data
        jacobian = np.zeros((data.nefc, self.nv))
        for i in range(data.nefc):
            unit = np.zeros(data.nefc)
            unit[i] = 1.0
            mujoco.mj_mulJacTVec(self.model, data, jacobian[i], unit)
        held = np.array(data.efc_type[: data.nefc]) == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        return jacobian[held]


def load(source: Source) -> MujocoModel:
    """The robot of an MJCF or URDF file, with the file's gravity where MJCF gives one."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(source.path)
    return MujocoModel(model, gravity=None if source.format == "mjcf" else source.gravity)
