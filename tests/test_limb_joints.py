"""The joints that carry the limbs, which reports and open trees share."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import few

import robomodel as rm

LIMBS = [
    ("parallel_ankle", ("pitch", "roll")),
    ("crank_rocker", ("rocker_joint",)),
    ("planar_leg_linkage", ("thigh_joint", "shank_support_joint")),
    ("belt_leg", ("hip_ry_link_joint", "knee_link_joint", "ankle_link_joint")),
    ("six_bar", ("joint1", "joint2", "joint4")),
]


@pytest.mark.parametrize(("name", "joints"), few(LIMBS, LIMBS[0], LIMBS[3]))
def test_a_knee_and_not_its_crank(name: str, joints: tuple[str, ...]) -> None:
    model = rm.robots.load(name)
    assert rm.limb_joints(model) == joints
    assert rm.limb_joints(rm.load(rm.robots.path(name), floating_base=True)) == joints


@pytest.mark.slow
def test_it_is_not_what_the_file_marks() -> None:
    """Cranks, or motors' joints, are independent in these files."""
    data = Path(__file__).parent / "data" / "limbs"
    limbs = {
        "five_bar_leg.urdf": ("front", "front_knee", "wheel"),
        "ankle_belts_two_rods.urdf": ("pitch", "roll"),
        "digger_cylinder.urdf": ("boom", "stick"),
    }
    for name, joints in limbs.items():
        assert rm.limb_joints(rm.load(data / name)) == joints


@pytest.mark.slow
@pytest.mark.parametrize("name", ["parallel_ankle", "planar_leg_linkage"])
def test_the_open_tree_has_them(name: str) -> None:
    """Beside them it has only joints of its own, which stand for rotors."""
    model = rm.robots.load(name)
    tree = rm.approximate_tree(model).joint_names
    assert sorted(set(tree) & set(model.joint_names)) == sorted(rm.limb_joints(model))
