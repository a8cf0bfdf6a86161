"""Random mechanisms as models, each with a configuration at which its loops close."""

from __future__ import annotations

import warnings

import numpy as np
from mechanisms import Mechanism
from numpy.typing import NDArray
from oracle import BASE

import robomodel as rm

Array = NDArray[np.float64]


def load(mechanism: Mechanism) -> tuple[rm.Model, Array] | None:
    """Its model, and the configuration that it was built at.

    None where nothing, or one of its clusters, can move: a gear and a rod on the same two joints,
    say, which is refused, and rightly.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)  # axes of any length
        try:
            model = rm.load(mechanism.text, floating_base=mechanism.floating_base or None)
        except rm.DescriptionError as error:
            if "mobility 0" not in str(error):
                raise
            return None
    base = mechanism.closed.get(BASE)
    joints = {name: x for name, x in mechanism.closed.items() if name in model.joint_names}
    if model.floating_base in joints:
        base = joints.pop(model.floating_base)
    if not model.nv:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # positions of another assembly mode
        return model, model.configuration(joints, base_pose=base)
