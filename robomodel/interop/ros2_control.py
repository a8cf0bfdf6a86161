"""A header for ros2_control: a robot's actuators and joints as its ``Transmission``.

The template is ``ros2_control.hpp.in``. Its maps are the robot's C functions
(:mod:`robomodel.interop.c`). With B of `actuator_map`, joint efforts are B u and actuator rates
Bᵀ v; the inverse maps use the inverse of the same B, so that both directions conserve power.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from robomodel.model import Model
from robomodel.model.elements import position_names

FUNCTIONS = (
    "from_actuators",
    "actuator_positions",
    "actuator_velocities",
    "actuator_forces",
    "actuator_map",
    "close",
)
"""The functions that the header calls."""


def transmission_header(model: Model, stem: str) -> str:
    """C++ text of the class ``stem::Transmission``, whose joints are the independent ones.

    Raises ValueError without actuators, or if an independent joint other than a floating base has
    several freedoms.
    """
    joints = _joints(model)
    if not model.actuators:
        raise ValueError(f"'{model.name}' has no actuators for a transmission of ros2_control")
    upper = stem.upper()
    first = 6 if model.floating_base is not None else 0
    where = [position_names(model).index(name) for name in joints]
    looped = [
        cluster.q.start + at
        for cluster in model.clusters
        if cluster.implicit
        for link in cluster.geometry.looped
        for at in range(link.positions.start, link.positions.stop)
    ]
    text = files(__package__).joinpath("ros2_control.hpp.in").read_text(encoding="utf-8")
    for mark, value in {
        "@ROBOT@": model.name.replace("*/", "* /"),
        "@STEM@": stem,
        "@UPPER@": upper,
        "@JOINTS@": _texts(joints),
        "@ACTUATORS@": _texts([each.name for each in model.actuators]),
        "@JOINT_COUNT@": str(len(joints)),
        "@WHERE@": ", ".join(map(str, where)),
        "@FIRST@": str(first),
        # C++ has no empty arrays; a place behind the last is passed over
        "@LOOPED@": ", ".join(map(str, looped or [model.nq])),
    }.items():
        text = text.replace(mark, value)
    return text


def _joints(model: Model) -> Sequence[str]:
    first = 6 if model.floating_base is not None else 0
    names = model.dof_names[first:]
    several = [name for name in names if name not in model.joint_names]
    if several:
        raise ValueError(
            f"joints of ros2_control have one freedom, '{several[0]}' of '{model.name}' is one of "
            "several"
        )
    return names


def _texts(names: Sequence[str]) -> str:
    quoted = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return ", ".join(f'"{name}"' for name in quoted)
