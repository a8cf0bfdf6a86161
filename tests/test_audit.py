"""`rm.audit`: configurations of simulators, read as text, against robots."""

from __future__ import annotations

import math
import os
import re

import lint_repository
import numpy as np
import pytest

import robomodel as rm
from robomodel.lint.audit.dialects import configurations
from robomodel.lint.audit.study import driven_joints
from robomodel.lint.audit.texts import Record, Text, Unknown


def urdf(joints: dict[str, str], base: str = "base") -> str:
    """A robot of links on joints at one base: name → attributes of the limit."""
    inertial = (
        '<inertial><origin xyz="0 0 -0.1"/><mass value="1.2"/>'
        '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.002"/></inertial>'
    )
    parts = [f'<link name="{base}">{inertial}</link>']
    for n, (name, limit) in enumerate(joints.items()):
        parts.append(
            f'<link name="{name}_link">{inertial}</link><joint name="{name}" type="revolute">'
            f'<parent link="{base}"/><child link="{name}_link"/><origin xyz="0 {0.1 * n:.1f} 0"/>'
            f'<axis xyz="0 1 0"/><limit lower="-2" upper="2" {limit}/></joint>'
        )
    return f'<robot name="r">{"".join(parts)}</robot>'


def isaaclab(groups: str, more: str = "") -> str:
    return f"ROBOT_CFG = ArticulationCfg(\n    actuators={{\n{groups}\n    }},\n{more})\n"


def found(audit, *severities: str) -> list[tuple[str, str]]:
    return [
        (each.check, each.message)
        for each in audit.findings
        if each.severity in (severities or ("error", "warning"))
    ]


# ---- public cases, from the numbers of their files -----------------------------------------------


def test_a_calf_behind_a_gear_of_its_own():
    """Go2: one motor's limits for all joints, where the calf has 45.43 N m and 15.7 rad/s."""
    names = [f"{leg}_{part}_joint" for leg in ("FL", "FR") for part in ("hip", "thigh", "calf")]
    robot = rm.load(urdf({
        name: 'effort="45.43" velocity="15.70"' if "calf" in name
        else 'effort="23.7" velocity="30.1"' for name in names
    }))  # fmt: skip
    text = isaaclab(
        """        "base_legs": DCMotorCfg(
            joint_names_expr=[".*_hip_joint", ".*_thigh_joint", ".*_calf_joint"],
            effort_limit=23.5, saturation_effort=23.5,
            velocity_limit=30.0,
            stiffness=25.0, damping=0.5)"""
    )
    audit = rm.audit(robot, text)
    assert [(x.check, round(x.value, 3), x.source.line) for x in audit.findings if x.value] == [
        ("config-effort", 0.517, 5), ("config-velocity", 1.911, 6),
    ]  # fmt: skip
    assert all("'FL_calf_joint', 'FR_calf_joint'" in x.message for x in audit.findings if x.value)
    assert not audit.ok


def test_limits_of_another_robot_times_three():
    """H2: efforts that are G1's by three; an ankle of 19 N m gets 150."""
    limits = {"hip_yaw": 360.0, "ankle_pitch": 66.88, "ankle_roll": 19.0, "head_yaw": 50.0}
    robot = rm.load(urdf({
        f"{side}_{name}_joint": f'effort="{effort}" velocity="20"'
        for side in ("left", "right") for name, effort in limits.items()
    }))  # fmt: skip
    text = "FACTOR = 3\n" + isaaclab(
        """        "legs": ImplicitActuatorCfg(
            joint_names_expr=[".*_hip_yaw_joint"], velocity_limit_sim=20.0,
            effort_limit_sim={".*_hip_yaw_joint": 88.0 * FACTOR}),
        "feet": ImplicitActuatorCfg(
            joint_names_expr=[".*_ankle_.*", ".*_head_yaw_joint"], effort_limit_sim=50 * FACTOR)"""
    )
    ratios = [round(x.value, 2) for x in rm.audit(robot, text).findings]
    assert sorted(ratios) == [0.73, 2.24, 3.0, 7.89]


def test_limits_of_the_other_file_of_a_robot():
    """G1: its URDF says 35 N m for the ankles and waist, its MJCF 50."""
    joint = "left_ankle_pitch_joint"
    by_file = {
        "urdf": rm.load(urdf({joint: 'effort="35" velocity="30"'})),
        "mjcf": rm.load(
            '<mujoco><compiler angle="radian"/><worldbody><body><joint'
            ' name="left_ankle_pitch_joint" range="-0.8 0.5" actuatorfrcrange="-50 50"/>'
            '<geom size="0.1"/></body></worldbody>'
            '<actuator><motor joint="left_ankle_pitch_joint"/></actuator></mujoco>'
        ),
    }
    text = isaaclab(
        """        "feet": DCMotorCfg(joint_names_expr=[".*_ankle_pitch_joint"],
            effort_limit={".*_ankle_pitch_joint": 50.0}, saturation_effort=80.0)"""
    )
    assert [x.value for x in rm.audit(by_file["urdf"], text).findings] == [50.0 / 35.0]
    assert not rm.audit(by_file["mjcf"], text).findings


def test_fingers_of_another_hand():
    """Patterns of an older hand match nothing; those of arms give fingers 300 N m."""
    fingers = ["left_hand_thumb_0_joint", "left_hand_index_0_joint"]
    robot = rm.load(urdf({
        "left_shoulder_roll_joint": 'effort="25" velocity="37"',
        **dict.fromkeys(fingers, 'effort="1.4" velocity="12"'),
    }))  # fmt: skip
    text = isaaclab(
        """        "arms": ImplicitActuatorCfg(
            joint_names_expr=[".*_shoulder_roll_joint", ".*_five_joint", ".*_thumb_0_joint"],
            effort_limit_sim=300,
            armature={".*_shoulder_.*": 0.01, ".*_five_joint": 0.001})"""
    )
    said = found(rm.audit(robot, text))
    assert [check for check, _ in said] == [
        "config-joints", "config-joints", "config-effort", "config-effort", "config-joints",
        "config-joints",
    ]  # fmt: skip
    messages = " ".join(message for _, message in said)
    assert "the pattern '.*_five_joint' matches no joint" in messages
    assert "the pattern '.*_five_joint' of armature matches no joint of the group" in messages
    assert "armature is given to no pattern that matches 'left_hand_thumb_0_joint'" in messages
    assert "1 joint in no group: 'left_hand_index_0_joint'" in messages
    assert "214 times" in messages


# ---- right configurations ------------------------------------------------------------------------


def right_configuration(model: rm.Model, dialect: str) -> str:
    """A configuration made of the robot's own names and numbers."""
    joints = {joint.name: joint for joint in model.description.joints}
    independent = {joint.name for joint in model.joints if joint.independent}
    names = [name for name in driven_joints(model) if name in independent]
    efforts = {n: joints[n].limits.effort for n in names if math.isfinite(joints[n].limits.effort)}
    speeds = {
        n: joints[n].limits.velocity for n in names if math.isfinite(joints[n].limits.velocity)
    }
    start = model.joint_positions(model.neutral())
    positions = {name: float(start[name]) for name in driven_joints(model)}
    gains = dict.fromkeys(names, 2.0)
    if dialect == "legged_gym":
        return (
            "class Cfg(LeggedRobotCfg):\n"
            f"    class init_state:\n        default_joint_angles = {positions!r}\n"
            f"    class control:\n        stiffness = {gains!r}\n        damping = {gains!r}\n"
            "        decimation = 4\n"
        ).replace("2.0", "0.01")
    limits = ""
    if len(efforts) == len(names):
        limits += f", effort_limit_sim={efforts!r}"
    if len(speeds) == len(names):
        limits += f", velocity_limit_sim={speeds!r}"
    start_at = f"init_state=State(joint_pos={positions!r})"
    if dialect == "mjlab":
        limits = limits.replace("_sim", "")
        group = f"ActuatorCfg(joint_names_expr={names!r}, stiffness={gains!r}{limits})"
        return f"A = Info(actuators=({group},))\nROBOT = EntityCfg({start_at}, articulation=A)\n"
    group = f"ImplicitActuatorCfg(joint_names_expr={names!r}, stiffness=5.0{limits})"
    return f"ROBOT = ArticulationCfg({start_at}, actuators={{'all': {group}}})\n"


@pytest.mark.parametrize("dialect", ["Isaac Lab", "mjlab", "legged_gym"])
@pytest.mark.parametrize("name", ["mini_cheetah", "four_bar", "belt_leg", "puma560"])
def test_right_configurations_are_silent(name, dialect):
    """Robots with rotors, a loop, a belt: what their files say is no finding."""
    model = rm.robots.load(name)
    audit = rm.audit(model, right_configuration(model, dialect))
    assert audit.dialect == dialect
    assert not found(audit)


# ---- patterns ------------------------------------------------------------------------------------

TWO = {"left_knee": 'effort="10" velocity="5"', "right_knee": 'effort="10" velocity="5"'}


@pytest.mark.parametrize(
    ("groups", "messages"),
    [
        ('"a": C(joint_names_expr=".*_knee")', []),
        ('"a": C(joint_names_expr=["left_knee"])', ["1 joint in no group: 'right_knee'"]),
        ('"a": C(joint_names_expr=["knee"])', ["the pattern 'knee' matches no joint"]),
        ('"a": C(joint_names_expr=["*_knee"])', ["is no regular expression"]),
        ('"a": C(joint_names_expr=[".*"]), "b": C(joint_names_expr=["left_knee"])',
         ["'left_knee' is in 2 groups"]),
        ('"a": C(joint_names_expr=[".*"], stiffness={".*": 1, "left.*": 2})',
         ["stiffness of 'left_knee' is given 2 times, by '.*', 'left.*'"]),
        ('"a": C(joint_names_expr=[".*"], damping={"left.*": 2})',
         ["damping is given to no pattern that matches 'right_knee'"]),
        ('"a": C(joint_names_expr=[".*"], effort_limit=10.4)', []),
        ('"a": C(joint_names_expr=[".*"], effort_limit=10.6)',
         ["10.6 N m for 'left_knee', 'right_knee'"]),
        ('"a": C(joint_names_expr=["left_knee_link", ".*"])', ["it matches the link"]),
    ],
)  # fmt: skip
def test_patterns_of_joints(groups, messages):
    said = [message for _, message in found(rm.audit(rm.load(urdf(TWO)), isaaclab(groups)))]
    assert len(said) == len(messages)
    assert all(message in text for message, text in zip(messages, said, strict=True))


def test_initial_positions():
    text = isaaclab(
        '"a": C(joint_names_expr=[".*"])',
        'init_state=S(joint_pos={"left_knee": 115.0, ".*_hip": 0.0, "right_knee": -1.9})',
    )
    said = found(rm.audit(rm.load(urdf(TWO)), text))
    assert [check for check, _ in said] == ["config-joints", "config-pose"]
    assert "'left_knee' begins at 115, beyond its limits -2 … 2" in said[1][1]


def test_legged_gym_looks_names_up():
    text = (
        "class Cfg:\n"
        "    class init_state:\n        default_joint_angles = {'left_knee': 0.1, 'tail': 0.0}\n"
        "    class control:\n        stiffness = {'knee': 1.0, 'left': 2.0}\n"
        "        damping = {'knee': 0.01, 'foot': 0.2}\n"
    )
    audit = rm.audit(rm.load(urdf(TWO)), text)
    assert found(audit, "error") == [
        ("config-joints", "no initial position of 'right_knee': the names are looked up, and a "
         "missing one stops the simulation"),
    ]  # fmt: skip
    assert "stiffness of 'left_knee' is given 2 times" in found(audit, "warning")[0][1]
    assert "initial positions of no joint: 'tail'" in [x for _, x in found(audit, "note")]


# ---- gains ---------------------------------------------------------------------------------------


def chain(links: int) -> str:
    """A pendulum of several links."""
    parts = (
        f'<link name="l{n + 1}"><inertial><origin xyz="0 0 -0.2"/><mass value="{1.0 + n}"/>'
        '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.014"/></inertial></link>'
        f'<joint name="j{n}" type="continuous"><parent link="l{n}"/><child link="l{n + 1}"/>'
        f'<origin xyz="0 0 {-0.3 if n else 0}"/><axis xyz="0 1 0"/></joint>'
        for n in range(links)
    )
    return f'<robot name="chain"><link name="l0"/>{"".join(parts)}</robot>'


def spectral_radius(mass, stiffness, damping, step, *, implicit):
    """The largest eigenvalue of a step of the linearised motion, by its definition."""
    n = len(mass)
    left = mass + step * damping if implicit else mass
    right = mass if implicit else mass - step * damping
    v = np.linalg.solve(left, np.hstack([-step * stiffness, right]))  # v' of (q, v)
    q = np.hstack([np.eye(n), np.zeros((n, n))]) + step * v
    return np.abs(np.linalg.eigvals(np.vstack([q, v]))).max()


@pytest.mark.parametrize("dialect", ["explicit", "implicit damping"])
def test_gains_explode_where_the_step_map_does(dialect):
    """A verdict at 0.98 and 1.02 of the bound: against the eigenvalues of a step (two links)."""
    model = rm.load(chain(2))
    mass = rm.crba(model, model.neutral())
    rng = np.random.default_rng(3)
    implicit = dialect != "explicit"
    for _ in range(4):
        k, d = rng.uniform(10.0, 300.0, 2), rng.uniform(0.0, 1.0, 2)
        for scale in (0.98, 1.02):
            low, high = 1e-5, 1.0
            for _ in range(50):
                step = math.sqrt(low * high)
                stable = (
                    spectral_radius(mass, np.diag(k), np.diag(d), step, implicit=implicit)
                    < 1.0 + 1e-9
                )
                low, high = (step, high) if stable else (low, step)
            step = scale * low
            gains = (
                f"stiffness={{'j0': {k[0]}, 'j1': {k[1]}}}, damping={{'j0': {d[0]}, 'j1': {d[1]}}}"
            )
            text = (
                f"class Env:\n    sim = SimulationCfg(dt={step!r})\n"
                "    robot = ArticulationCfg(actuators={'a': IdealPDActuatorCfg("
                f"joint_names_expr=['j.*'], {gains})}})\n"
                if not implicit else
                f"class Env:\n    sim = SimulationCfg(mujoco=MujocoCfg(timestep={step!r}))\n"
                "    robot = EntityCfg(articulation=Info(actuators=(ActuatorCfg("
                f"joint_names_expr=['j.*'], {gains}),)))\n"
            )  # fmt: skip
            said = [check for check, _ in found(rm.audit(model, text))]
            assert said == (["config-gains"] if scale > 1.0 else [])


def test_a_configuration_gives_the_joint_its_armature():
    """One link: 4 (I + armature) = 2 h d + h² k is the bound."""
    model = rm.load(chain(1))
    inertia = float(rm.crba(model, model.neutral())[0, 0])
    step, damping, armature = 0.005, 1.0, 0.02
    bound = (4.0 * (inertia + armature) - 2.0 * step * damping) / step**2
    for stiffness, said in ((0.999 * bound, 0), (1.001 * bound, 1)):
        text = (
            f"class Cfg(Base):\n    class sim:\n        dt = {step}\n"
            f"    class asset:\n        armature = {armature}\n        fix_base_link = True\n"
            "    class init_state:\n        default_joint_angles = {'j0': 0.0}\n"
            f"    class control:\n        stiffness = {{'j': {stiffness}}}\n"
            f"        damping = {{'j': {damping}}}\n"
        )
        assert len(found(rm.audit(model, text))) == said


def test_armatures_are_those_of_rotors():
    model = rm.load(
        urdf({"knee": ""}), rotors={"knee": rm.Rotor(inertia=2e-5, ratio=10.0, mass=0.05)}
    )
    assert driven_joints(model) == ["knee"]
    for armature, said in ((0.002, 0), (0.0023, 0), (2e-5, 1)):
        text = isaaclab(f'"a": C(joint_names_expr=[".*"], armature={armature})')
        assert [x for x, _ in found(rm.audit(model, text))] == ["config-armature"] * said


# ---- orders --------------------------------------------------------------------------------------


def test_orders_of_joints():
    """Two legs of two joints: level by level, and limb after limb."""
    legs = urdf({"left_hip": "", "right_hip": ""}).replace(
        "</robot>",
        "".join(
            f'<link name="{side}_shin"><inertial><mass value="1"/><inertia ixx="0.01" ixy="0"'
            ' ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>'
            f'<joint name="{side}_knee" type="continuous"><parent link="{side}_hip_link"/>'
            f'<child link="{side}_shin"/></joint>'
            for side in ("left", "right")
        )
        + "</robot>",
    )
    model = rm.load(legs)
    config = isaaclab('"a": C(joint_names_expr=[".*"])')
    right = (
        'ISAACLAB_JOINTS = ["base", "left_hip_link", "right_hip_link", "left_shin", "right_shin"]\n'
        'MUJOCO_JOINTS = ["left_hip", "left_knee", "right_hip", "right_knee"]\n'
        "ISAACLAB_TO_MUJOCO_DOF = [0, 2, 1, 3]\nMUJOCO_TO_ISAACLAB_DOF = [0, 2, 1, 3]\n"
    )
    assert not found(rm.audit(model, config + right))
    for before, after, said in (
        ('"left_shin", "right_shin"', '"right_shin", "left_shin"', "at place 2 stands"),
        ('"left_knee", "right_hip"', '"right_hip", "left_knee"', "MuJoCo's, limb after limb"),
        ('MUJOCO_JOINTS = ["left_hip"', 'MUJOCO_JOINTS = ["left_hop"', "did you mean 'left_hip'"),
        ('MUJOCO_JOINTS = ["left_hip"', 'MUJOCO_JOINTS = ["left_knee"', "stands twice"),
        ("MUJOCO_DOF = [0, 2, 1, 3]", "MUJOCO_DOF = [0, 2, 2, 3]", "no permutation"),
        ("MUJOCO_DOF = [0, 2, 1, 3]", "MUJOCO_DOF = [1, 2, 0, 3]", "is not its inverse"),
    ):
        text = right.replace(before, after, 1)
        if "left_hop" in after:
            text = text.replace(
                '"right_hip", "right_knee"]', '"right_hip", "right_knee", "left_hip"]'
            )
        messages = [message for _, message in found(rm.audit(model, config + text))]
        assert any(said in message for message in messages), (after, messages)


# ---- text that is not run ------------------------------------------------------------------------


def test_nothing_is_run(tmp_path):
    """A text that would delete, write and loop for ever leaves its values unknown."""
    mark = tmp_path / "mark"
    config = tmp_path / "cfg.py"
    config.write_text(
        f"import os\nos.mkdir({str(mark)!r})\nopen({str(mark)!r}, 'w').write('x')\n"
        f"__import__('os').mkdir({str(mark)!r})\nexec('import os')\n"
        "BIG = 9 ** 9 ** 9\nLONG = [0] * 10 ** 9\n"
        "def f(n):\n    return f(n) + 1\nDEEP = f(1)\n"
        "while True:\n    STEP = 1\n"
        "(lambda: [x for x in iter(int, 1)])()\n"
        'CFG = ArticulationCfg(actuators={"a": C(joint_names_expr=[".*"], effort_limit=BIG,\n'
        '    stiffness=DEEP, damping=os.environ["X"])})\n'
    )
    audit = rm.audit(rm.load(urdf(TWO)), config)
    assert not mark.exists()
    assert not found(audit)
    notes = dict(found(audit, "note"))
    assert set(notes) == {"config-unread"}
    assert len(found(audit, "note")) == 3


def test_values_of_a_text():
    text = Text(
        "import math\nfrom dataclasses import field, replace\n"
        "A = 2 * math.pi * 10\nB = -A ** 2 if A > 3 else None\nN = ['x'] * 2 + ['y']\n"
        "def planet(r, g=(1, 4.5)):\n    assert g\n    total = 0\n"
        "    for a, b in zip(r, g):\n        total += a * b ** 2\n    return total\n"
        "C = planet((0.5, 2.0))\nD = {f'{s}_knee': v for s, v in [('left', 1), ('right', 2)]}\n"
        "E = Cfg(a=1, b=Sub(c=[1, 2]))\nF = E.copy()\nF.b.c[0] = 7\nG = E.replace(a=3)\n"
        "H = replace(E, a=4)\nI = E.missing\nJ = dict(x=1, **D)\nK = ' '.join(sorted(D))\n"
        "for k in D:\n    L = k\nif UNKNOWN:\n    M = 1\nelse:\n    M = 2\nP, Q = (1, 2)\n"
        "class Base:\n    x = 1\n    class inner:\n        y = 2\n        z = 3\n"
        "class Env(Base):\n    z: list = field(default_factory=lambda: [A])\n"
        "    class inner(Base.inner):\n        y = 5\n"
        "    def __post_init__(self):\n        self.x = 8\n"
    ).names
    assert text["A"] == 20.0 * math.pi
    assert text["B"] == -(text["A"] ** 2)
    assert text["N"] == ["x", "x", "y"]
    assert text["C"] == 0.5 + 2.0 * 4.5**2
    assert text["D"] == {"left_knee": 1, "right_knee": 2}
    assert (text["E"].fields["b"].fields["c"], text["F"].fields["b"].fields["c"]) == (
        [1, 2],
        [7, 2],
    )
    assert (text["G"].fields["a"], text["H"].fields["a"], text["E"].fields["a"]) == (3, 4, 1)
    assert isinstance(text["I"], Unknown)
    assert text["J"] == {"x": 1, "left_knee": 1, "right_knee": 2}
    assert (text["K"], text["L"]) == ("left_knee right_knee", "right_knee")
    assert isinstance(text["M"], Unknown)
    assert (text["P"], text["Q"]) == (1, 2)
    env = text["Env"]
    assert isinstance(env, Record)
    assert (env.fields["x"], env.fields["z"], env.fields["inner"].fields) == (
        8, [text["A"]], {"y": 5, "z": 3},
    )  # fmt: skip


def test_modules_beside_a_text_are_read(tmp_path):
    """Their values, not their effects; a module that imports itself ends."""
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "base.py").write_text(
        "from pack.cfg import CFG\nARMATURE = 0.02\nraise SystemExit\n"
    )
    config = tmp_path / "pack" / "cfg.py"
    config.write_text(
        "from pack.base import ARMATURE\nfrom .base import ARMATURE as AGAIN\n"
        'CFG = ArticulationCfg(actuators={"a": C(joint_names_expr=["a"], armature=ARMATURE * 2)})\n'
    )
    (configuration,) = configurations(Text(config.read_text(), config))
    assert configuration.groups[0].values["armature"].number == 0.04
    assert not configuration.unread


# ---- arguments and the command -------------------------------------------------------------------


def test_one_of_several_configurations():
    text = isaaclab('"a": C(joint_names_expr=["left_knee"])')
    text += text.replace("ROBOT_CFG", "OTHER").replace("left_knee", ".*_hip", 1)
    text += "SAME = ROBOT_CFG.copy()\n"
    model = rm.load(urdf(TWO))
    assert rm.audit(model, text).configuration == "ROBOT_CFG"
    assert rm.audit(model, text, name="OTHER").configuration == "OTHER"
    with pytest.raises(ValueError, match="did you mean 'OTHER'"):
        rm.audit(model, text, name="OTHERS")
    both = text.replace(".*_hip", "left_knee")
    with pytest.raises(ValueError, match="several configurations fit: 'ROBOT_CFG', 'OTHER'"):
        rm.audit(model, both)


def test_the_command(tmp_path, monkeypatch, run):
    root = lint_repository.make(tmp_path / "robots")
    monkeypatch.chdir(root)
    (root / "arm_cfg.py").write_text(
        isaaclab('"a": C(joint_names_expr=["shoulder", "elbow"], stiffness=X)')
    )
    code, out, _ = run("lint", "arm", "--against", "arm_cfg.py")
    assert code == 0
    first, last = out.splitlines()
    assert first.startswith("arm_cfg.py:3: note [config-unread] ROBOT_CFG: ")
    assert last == "1 robot file: 1 note"
    code, out, _ = run("lint", "--against", "arm_cfg.py:ROBOT_CFG", "--format", "json")
    assert code == 1
    assert "(gripper.urdf)" in out
    for arguments in (("arm", "--against", "no.py"), ("arm", "--against", "arm_cfg.py:NO"),
                      ("arm", "--against", "arm_cfg.py", "--fix")):  # fmt: skip
        assert run("lint", *arguments)[0] == 2


def test_reports_of_audits():
    audit = rm.audit(rm.load(urdf(TWO)), isaaclab('"a": C(joint_names_expr=["knee"])'))
    assert audit.document.text().startswith("r as ROBOT_CFG (Isaac Lab): 1 error")
    assert re.search(r"matches no joint", audit.html())
    assert audit.as_dict()["findings"][0]["check"] == "config-joints"
    assert os.path.basename(audit.file) == "<configuration>"
