"""Rotors of stock robots: what the shipped extensions make of files with the same joints."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from texts import joint, link, robot

import robomodel as rm

LEGS = ("FR", "FL", "RR", "RL")
GO = [f"{leg}_{name}_joint" for leg in LEGS for name in ("hip", "thigh", "calf")]
TALOS = [
    *(f"{limb}_{side}_{n}_joint" for side in ("left", "right")
      for limb, count in (("leg", 6), ("arm", 7)) for n in range(1, count + 1)),
    *(f"{name}_{n}_joint" for name in ("torso", "head") for n in (1, 2)),
]  # fmt: skip
CASSIE = ("hip_abduction", "hip_rotation", "hip_flexion", "knee_joint", "knee_to_shin", "toe_joint")
JOINTS = {
    "go1": GO,
    "go2": GO,
    "solo12": [f"{leg}_{n}" for leg in ("FL", "FR", "HL", "HR") for n in ("HAA", "HFE", "KFE")],
    "talos": TALOS,
    "cassie": [f"{name}_{side}" for side in ("left", "right") for name in CASSIE],
    "mini_cheetah": [],  # see cheetah
}
ROTOR = 1.11842e-4
REFLECTED = {  # name of joints: moment of inertia of the rotor, ratio
    "go1": {"*_hip_joint": (ROTOR, 6.33), "*_thigh_joint": (ROTOR, 6.33),
            "*_calf_joint": (ROTOR, 1.5 * 6.33)},
    "go2": {"*_hip_joint": (ROTOR, 6.33), "*_thigh_joint": (ROTOR, 6.33),
            "*_calf_joint": (ROTOR, 12.13)},
    "solo12": {"*_HAA": (4.5e-6, 9), "*_HFE": (4.5e-6, 9), "*_KFE": (4.5e-6, 9)},
    "cassie": {"hip_abduction_*": (0.038125, 1), "hip_rotation_*": (0.038125, 1),
               "hip_flexion_*": (0.09344, 1), "knee_joint_*": (0.09344, 1),
               "toe_joint_*": (0.01225, 1)},
    "talos": {"leg_*_1_joint": (8.6e-6, 150), "leg_*_2_joint": (34e-6, 101),
              "leg_*_3_joint": (34e-5, 100), "leg_*_4_joint": (61e-5, 144),
              "leg_*_5_joint": (34e-6, 100), "leg_*_6_joint": (21e-6, 101),
              "arm_*_1_joint": (34e-6, 100), "arm_*_2_joint": (34e-6, 100),
              "arm_*_3_joint": (21e-6, 100), "arm_*_4_joint": (21e-6, 100),
              "arm_*_5_joint": (5.8e-6, 100), "torso_*": (2 * 34e-6, 100)},
    "mini_cheetah": {"torso_to_*": (63e-6, 6), "abduct_*": (63e-6, 6), "thigh_*": (63e-6, 9.33)},
}  # fmt: skip
FILES = {  # in the cache of robot_descriptions
    "go1": "unitree_ros/robots/go1_description/urdf/go1.urdf",
    "go2": "unitree_ros/robots/go2_description/urdf/go2_description.urdf",
    "mini_cheetah": "mini_cheetah_urdf/urdf/mini_cheetah.urdf",
    "solo12": "example-robot-data/robots/solo_description/robots/solo12.urdf",
    "talos": "talos_data/urdf/talos_full_v2.urdf",
}
ARM = (
    '<inertial><origin xyz="0.1 0 0"/><mass value="1"/>'
    '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>'
)
SPINNING = (
    '<inertial><mass value="0.089"/><inertia ixx="5.9647e-5" ixy="0" ixz="0" iyy="1.11842e-4" '
    'iyz="0" izz="5.9647e-5"/></inertial>'
)
DRIVES = [
    '<transmission name="talos_torso_trans"><type>DifferentialTransmission</type>',
    *(f'<actuator name="torso_{n}_motor"><role>actuator{n}</role>'
      "<mechanicalReduction>1.0</mechanicalReduction></actuator>"
      f'<joint name="torso_{n}_joint"><role>joint{n}</role></joint>' for n in (1, 2)),
    "</transmission>",
    *(f'<transmission name="{each}_trans"><type>SimpleTransmission</type><joint name="{each}"/>'
      f'<actuator name="{each}_motor"><mechanicalReduction>1.0</mechanicalReduction></actuator>'
      "</transmission>" for each in TALOS if not each.startswith("torso")),
]  # fmt: skip


def stand_in(name: str) -> str:
    """A robot of arms on a base with the joints, and what else the extension speaks of."""
    if name == "mini_cheetah":
        return cheetah()
    parts = []
    for n, each in enumerate(JOINTS[name]):
        parts += [link(f"l{n}", ARM), joint(each, "base", f"l{n}", axis="0 1 0")]
        if name in ("go1", "go2"):
            rotor = each.removesuffix("_joint") + "_rotor"
            fixed = joint(f"{rotor}_joint", "base", rotor, kind="fixed")
            parts += [link(rotor, SPINNING), fixed]
    return robot(*parts, *(DRIVES if name == "talos" else ()))


def cheetah() -> str:
    parts = []
    for leg in ("fr", "fl", "hr", "hl"):
        above = "body"
        for part, named in (("abduct", "torso_to_abduct_{0}_j"),
                            ("thigh", "abduct_{0}_to_thigh_{0}_j"),
                            ("shank", "thigh_{0}_to_knee_{0}_j")):  # fmt: skip
            axis = "1 0 0" if part == "abduct" else "0 -1 0"
            child = f"{part}_{leg}"
            parts += [link(child, ARM), joint(named.format(leg), above, child, axis=axis)]
            above = child
    return robot(*parts).replace('"base"', '"body"')


def check(name: str, stock: rm.Model, model: rm.Model) -> None:
    """Reflected inertia of every coordinate: ratio² I; nothing at joints that are left out."""
    assert model.nv == stock.nv
    own, total = (
        rm.dynamics.reflected(each, each.neutral(), backend="numpy").inertia.sum(axis=1)
        for each in (stock, model)
    )
    seen = set()
    for dof, one, other in zip(model.dof_names, own, total, strict=True):
        pattern = next((p for p in REFLECTED[name] if fnmatch(dof, p)), None)
        inertia, ratio = REFLECTED[name].get(pattern or "", (0.0, 0.0))
        np.testing.assert_allclose(other - one, inertia * ratio**2, rtol=1e-9, err_msg=dof)
        seen.add(pattern)
    assert seen >= REFLECTED[name].keys()
    terms = [each.terms for each in model.actuators if each.joint not in dict(each.terms)]
    geared = {dof for dof, x in zip(model.dof_names, total - own, strict=True) if x}
    assert {driven for each in terms for driven, _ in each} == geared


@pytest.mark.parametrize("name", REFLECTED)
def test_rotors_of_stock_robots(name: str) -> None:
    text = stand_in(name)
    model = rm.load(text, extend=rm.robots.rotors(name))
    check(name, rm.load(text), model)
    if name == "mini_cheetah":  # the shipped one is of the same numbers
        mine = model.nodes[model.joint_names.index("abduct_fr_to_thigh_fr_j_rotor")]
        shipped = rm.robots.load("mini_cheetah")
        other = shipped.nodes[shipped.joint_names.index("FR_hip_rotor_joint")]
        assert mine.inertia.mass == other.inertia.mass
        moments = [sorted(each.inertia.inertia[i][i] for i in range(3)) for each in (mine, other)]
        np.testing.assert_allclose(*moments, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("name", FILES)
def test_rotors_with_the_stock_file(name: str) -> None:
    cache = os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")
    path = Path(cache).expanduser() / FILES[name]
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    stock = rm.load(path, floating_base=True)
    check(name, stock, rm.load(path, floating_base=True, extend=rm.robots.rotors(name)))


def test_names_and_sources() -> None:
    for name in REFLECTED:
        comment = etree.parse(rm.robots.rotors(name)).getroot().getprevious().text
        assert re.search("repository", comment), name
        assert re.search(r"Not (known|here):", comment), name
    page = Path(__file__).parents[1] / "docs" / "formats" / "rotors.md"
    assert set(re.findall(r"^\| `(\w+)`", page.read_text(encoding="utf-8"), re.M)) == {*REFLECTED}
    with pytest.raises(ValueError, match=r"no rotors of 'go3'; did you mean 'go[12]'.*talos"):
        rm.robots.rotors("go3")


def test_a_transmission_of_a_known_name_takes_its_place() -> None:
    text = stand_in("talos")
    model = rm.load(text, extend=rm.robots.rotors("talos"))
    torso = [each for each in model.actuators if each.name.startswith("torso")]
    assert [dict(each.terms) for each in torso] == [
        {"torso_1_joint": 100.0, "torso_2_joint": 100.0},
        {"torso_1_joint": 100.0, "torso_2_joint": -100.0},
    ]
