"""A repository of three robots: a xacro package, an MJCF arm and its scene, a faulty gripper."""

from __future__ import annotations

from pathlib import Path

PACKAGE = """<package format="3"><name>leg_description</name><version>1.0.0</version></package>
"""

LEG = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="legs">
  <xacro:include filename="$(find leg_description)/urdf/parts/leg_macro.xacro"/>
  <link name="trunk">
    <inertial>
      <mass value="4.1"/>
      <inertia ixx="0.021" ixy="0" ixz="0" iyy="0.032" iyz="0" izz="0.038"/>
    </inertial>
  </link>
  <xacro:leg side="left" y="0.09"/>
  <xacro:leg side="right" y="-0.09"/>
</robot>
"""

LEG_MACRO = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:macro name="leg" params="side y">
    <link name="${side}_thigh">
      <inertial>
        <origin xyz="0.01 ${y / 9} -0.09"/>
        <mass value="0.92"/>
        <inertia ixx="0.0031" ixy="0" ixz="0" iyy="0.0033" iyz="0" izz="0.00052"/>
      </inertial>
    </link>
    <joint name="${side}_hip" type="revolute">
      <parent link="trunk"/>
      <child link="${side}_thigh"/>
      <origin xyz="0.02 ${y} -0.03"/>
      <axis xyz="0 1 0"/>
      <limit lower="-1.1" upper="0.9" effort="23" velocity="20"/>
    </joint>
  </xacro:macro>
</robot>
"""

ARM = """<mujoco model="arm">
  <compiler angle="radian"/>
  <default>
    <default class="link">
      <joint axis="0 1 0" range="-1.9 1.9"/>
    </default>
  </default>
  <worldbody>
    <body name="upper" pos="0 0 0.3" childclass="link">
      <joint name="shoulder"/>
      <inertial pos="0 0 0.12" mass="2.1" diaginertia="0.014 0.0139 0.0021"/>
      <body name="fore" pos="0 0 0.25">
        <joint name="elbow"/>
        <inertial pos="0 0 0.1" mass="1.3" diaginertia="0.0061 0.006 0.0009"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="shoulder_motor" joint="shoulder"/>
    <motor name="elbow_motor" joint="elbow"/>
  </actuator>
</mujoco>
"""

SCENE = """<mujoco model="arm scene">
  <include file="arm.xml"/>
  <worldbody>
    <light pos="0 0 3"/>
    <geom name="floor" type="plane" size="2 2 0.1"/>
  </worldbody>
</mujoco>
"""

GRIPPER = """<robot name="gripper">
  <link name="palm">
    <inertial>
      <mass value="0.6"/>
      <inertia ixx="0.0008" ixy="0" ixz="0" iyy="0.0009" iyz="0" izz="0.0007"/>
    </inertial>
  </link>
  <link name="left_finger">
    <inertial>
      <origin xyz="0.01 0.004 0.03"/>
      <mass value="0.11"/>
      <inertia ixx="4.1e-5" ixy="0" ixz="0" iyy="4.6e-5" iyz="0" izz="1.2e-5"/>
    </inertial>
  </link>
  <link name="right_finger">
    <inertial>
      <origin xyz="0.01 -0.004 0.03"/>
      <mass value="0.11"/>
      <inertia ixx="4.1e-5" ixy="0" ixz="0" iyy="4.6e-5" iyz="0" izz="1.2e-5"/>
    </inertial>
  </link>
  <link name="camera">
    <inertial>
      <mass value="0.09"/>
      <inertia ixx="2e-5" ixy="0" ixz="0" iyy="2e-5" iyz="0" izz="2e-5"/>
    </inertial>
  </link>
  <joint name="left_knuckle" type="revolute">
    <parent link="palm"/>
    <child link="left_finger"/>
    <origin xyz="0 0.04 0.05"/>
    <axis xyz="2 0 0"/>
    <limit lower="-0.8" upper="0.5" effort="6" velocity="3"/>
  </joint>
  <joint name="right_knuckle" type="revolute">
    <parent link="palm"/>
    <child link="right_finger"/>
    <origin xyz="0 -0.04 0.05"/>
    <axis xyz="1 0 0"/>
    <limit lower="0.8" upper="-0.5" effort="6" velocity="3"/>
  </joint>
  <joint name="mount" type="fixed">
    <parent link="palm"/>
    <child link="camera"/>
    <origin xyz="0.05 0 0.02" rpy="0 1.57 0"/>
  </joint>
</robot>
"""

SRDF = """<robot name="gripper">
  <group name="fingers"><link name="left_finger"/><link name="right_finger"/></group>
  <disable_collisions link1="palm" link2="camera" reason="Adjacent"/>
</robot>
"""

LAUNCH = """<launch><node pkg="x" exec="y"/></launch>
"""

SETTINGS = """[project]
name = "robots"

[tool.robomodel]
exclude = ["attic"]
"""


def make(root: Path) -> Path:
    """The repository, in a folder of this name."""
    files = {
        "pyproject.toml": SETTINGS,
        "leg_description/package.xml": PACKAGE,
        "leg_description/urdf/legs.urdf.xacro": LEG,
        "leg_description/urdf/parts/leg_macro.xacro": LEG_MACRO,
        "leg_description/launch/show.launch.xml": LAUNCH,
        "arm/arm.xml": ARM,
        "arm/scene.xml": SCENE,
        "gripper/gripper.urdf": GRIPPER,
        "gripper/gripper.srdf": SRDF,
        "attic/old.urdf": "<robot",
        "build/gripper.urdf": GRIPPER,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / ".git").mkdir()
    return root
