"""Pinocchio: URDF and MJCF as ``buildModelFromUrdf`` and ``buildModelFromMJCF`` read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from robomodel.simulators.loaded import Numbers, Place, Source, State, kind_of, spread


class PinocchioModel:
    """A model of Pinocchio's; constraints are not part of it."""

    precision = 1e-9

    def __init__(self, model: Any):
        import pinocchio

        self.pin, self.model, self.version = pinocchio, model, pinocchio.__version__
        self.data, self.nv = model.createData(), int(model.nv)
        self.places, self.limits = [], {}
        for i in range(1, model.njoints):
            nv, at = int(model.nvs[i]), int(model.idx_qs[i])
            kind = kind_of(nv)
            self.places.append(Place(model.names[i], kind, int(model.idx_vs[i]), nv))
            if kind == "joint":
                ends = model.lowerPositionLimit[at], model.upperPositionLimit[at]
                free = int(model.nqs[i]) == 2 or max(map(abs, ends)) > 1e300
                self.limits[model.names[i]] = (-np.inf, np.inf) if free else tuple(map(float, ends))

    def numbers(self, state: State) -> Numbers:
        """At a state, by crba, computeGeneralizedGravity and aba."""
        pin, model, data = self.pin, self.model, self.data
        q = pin.neutral(model)
        for i, place in enumerate(self.places, 1):
            if place.name in state.positions:
                at, x = int(model.idx_qs[i]), state.positions[place.name]
                if place.kind == "joint" and int(model.nqs[i]) == 2:
                    x = np.array([np.cos(x[0]), np.sin(x[0])])
                q[at : at + len(x)] = x
        v = spread(self.places, self.nv, state.velocities)
        forces = spread(self.places, self.nv, state.forces)
        upper = np.triu(pin.crba(model, data, q))
        mass = upper + np.triu(upper, 1).T
        gravity = np.array(pin.computeGeneralizedGravity(model, data, q))
        moved = np.array(pin.aba(model, data, q, v, forces))
        return Numbers(mass, gravity, moved, np.zeros((0, self.nv)))


def load(source: Source) -> PinocchioModel:
    """The robot of a URDF or MJCF file."""
    import pinocchio as pin

    if source.format == "mjcf":
        model = pin.buildModelFromMJCF(source.path)
    elif source.floating:
        model = pin.buildModelFromUrdf(source.path, pin.JointModelFreeFlyer())
    else:
        model = pin.buildModelFromUrdf(source.path)
    if source.format == "urdf":
        model.gravity.linear = np.array(source.gravity)
    return PinocchioModel(model)
