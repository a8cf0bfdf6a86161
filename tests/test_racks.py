"""Racks and pinions: the rack carries the limb, in all formats."""

from __future__ import annotations

import io

import numpy as np
import pytest
import texts
from texts import coupling, link, robot

import robomodel as rm

RADIUS = 0.0081
WHEEL = (
    '<inertial><mass value="0.04"/>'
    '<inertia ixx="8e-6" iyy="8e-6" izz="1.2e-5" ixy="0" ixz="0" iyz="0"/></inertial>'
)
JAW = (
    '<inertial><mass value="0.11"/>'
    '<inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def rack(tie: str, leader: str, wheel: str = WHEEL) -> str:
    """A pinion between the base and a rack; ``leader`` is independent, the other one follows."""

    def tied(name: str, limits: str) -> dict[str, object]:
        factor = RADIUS if name == "rack" else 1.0 / RADIUS
        mimic = f'<mimic joint="{leader}" multiplier="{factor}"/>'
        more = limits + (mimic if tie == "mimic" and name != leader else "")
        return {"more": more, "mark": None if tie == "mimic" else name == leader}

    return robot(
        link("wheel", wheel), link("jaw", JAW),
        texts.joint("pinion", "base", "wheel", kind="revolute",
                    **tied("pinion", '<limit lower="-9" upper="9" effort="1" velocity="50"/>')),
        texts.joint("rack", "base", "jaw", "0 0.01 0", kind="prismatic", axis="1 0 0",
                    **tied("rack", '<limit lower="-0.05" upper="0.05" effort="90" velocity="1"/>')),
        coupling("tie", {"rack": 1.0, "pinion": -RADIUS}) if tie == "coupling" else "",
    )  # fmt: skip


@pytest.mark.parametrize("tie", ["mimic", "coupling"])
@pytest.mark.parametrize("leader", ["pinion", "rack"])
@pytest.mark.parametrize("wheel", [WHEEL, texts.INERTIAL.replace('"1"', '"0.01"')])
def test_a_rack_carries_its_limb_in_all_formats(tie: str, leader: str, wheel: str) -> None:
    """SDF writes the coupling as a mimic, MJCF the mimic as a tendon: neither says what carries.

    At it the drive gives, and is felt, by the radius: closed forms.
    """
    model = rm.load(rack(tie, leader, wheel))
    moment = 1.2e-5 if wheel == WHEEL else 0.025 + 0.01 * (0.1**2 + 0.02**2)
    for write in (None, rm.write_urdf, rm.write_sdf, rm.write_mjcf, rm.write_usd):
        again = model
        if write:
            stream = io.StringIO()
            write(model, stream, drop=True)
            again = rm.load(stream.getvalue())
        assert rm.limb_joints(again) == ("rack",)
        (row,) = rm.actuation(again).joints
        assert row.joint == "rack"
        assert (row.limits.lower, row.limits.upper) == pytest.approx((-0.05, 0.05))
        tree = rm.approximate_tree(again)
        assert all(each.worst < 1e-9 for each in tree.errors.values())
        assert row.limits.effort == 90.0
        if write is not rm.write_mjcf:  # which has no words for speeds
            assert row.limits.velocity == pytest.approx(50.0 * RADIUS)
        q = tree.neutral()
        rate = tree.joint_velocities(q, np.ones(1))["rack"]
        mass = rm.crba(tree, q)[0, 0] / rate**2
        assert mass == pytest.approx(0.11 + moment / RADIUS**2)
