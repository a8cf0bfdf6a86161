"""States in the order of Pinocchio, MuJoCo and Drake, against those libraries themselves."""

from __future__ import annotations

import logging
import math
import pickle
from functools import partial

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from agreement import close
from mujoco_oracle import full_mass_matrix as full

import robomodel as rm

INERTIA = '<inertia ixx="{}" iyy=".05" izz=".06" ixy=".003" ixz="-.002" iyz=".001"/>'


def link(name, mass=1.0):
    return (
        f'<link name="{name}"><inertial><origin xyz=".03 -.02 .05" rpy=".1 .2 .3"/>'
        f'<mass value="{mass}"/>{INERTIA.format(0.04 + 0.01 * mass)}</inertial></link>'
    )


def joint(name, parent, child, kind="revolute", axis="0 1 0", more=""):
    bounds = "" if kind == "continuous" else 'lower="-2" upper="2" '
    return (
        f'{link(child, 0.5 + 0.1 * len(name))}<joint name="{name}" type="{kind}">'
        f'<parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz=".1 -.2 .3" rpy=".4 -.2 .1"/><axis xyz="{axis}"/>{more}'
        f'<limit {bounds}effort="9" velocity="9"/></joint>'
    )


# Names are against the alphabet, and against those of the links.
BRANCHES = (
    joint("zeta", "base", "a1")
    + joint("alpha", "base", "z1", "continuous", "0.6 0 0.8")
    + joint("mid", "base", "held", "fixed")
    + joint("late", "held", "m1", "prismatic", "1 0 0")
    + joint("b2", "z1", "b2l", axis="-1 0 0")
    + joint("a2", "z1", "z2l")
    + joint("tip", "a1", "a3", "continuous")
)
OPEN = f'<robot name="open">{link("base", 3)}{BRANCHES}</robot>'
PLANAR = OPEN.replace("</robot>", joint("cart", "base", "y1", "planar", "0 0 1") + "</robot>")
PLACED = (
    f'<robot name="placed"><link name="world"/>{joint("free", "world", "base", "floating")}'
    f"{BRANCHES}</robot>"
)
ROTOR = '<robot name="more"><joint name="zeta"><rotor inertia="1e-4" ratio="6"/></joint></robot>'

BALLS = """<mujoco><worldbody><body name="trunk" pos=".3 0 1" quat=".8 .6 0 0"><freejoint/>
  <inertial pos=".01 .02 .03" mass="3" fullinertia=".1 .2 .25 .01 .02 .03"/>
  <body name="upper" pos=".1 0 0" quat=".6 .8 0 0"><joint name="zball" type="ball"/>
    <inertial pos=".01 .02 .03" mass="1" fullinertia=".1 .1 .15 .01 .02 .03"/>
    <body name="lower" pos="0 .1 0"><joint type="hinge" axis="0 .6 .8" ref=".2"/>
      <joint type="slide" axis="1 0 0"/>
      <inertial pos=".05 .02 .03" mass="1" fullinertia=".1 .1 .15 .01 .02 .03"/></body></body>
  <body name="arm" pos="0 0 .2"><joint name="aball" type="ball"/>
    <inertial pos=".01 .02 .3" mass="1" fullinertia=".1 .1 .15 .01 .02 .03"/></body>
</body></worldbody></mujoco>"""


def state(model, batch=(), seed=0):
    rng = np.random.default_rng(seed)
    count = int(np.prod(batch))
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    v, a, tau = rng.normal(size=(3, *batch, model.nv))
    return q.reshape(*batch, model.nq), v, a, tau


def assert_undone(model, word, joints=None, batch=(2, 3)):
    """There and back is where it was, quaternions' signs and whole turns aside."""
    q, v, a, tau = state(model, batch)
    to, back = partial(model.to_order, word), partial(model.from_order, word)
    there = to(q, v, a=a, tau=tau, joints=joints)
    again = back(there[0], there[1], a=there[2], tau=there[3], joints=joints)
    off = model.difference(q, again[0])
    close(off, math.tau * np.round(off / math.tau), 1e-11, least=1.0)
    for mine, its in zip(again[1:], (v, a, tau), strict=True):
        close(mine, its, 1e-11, least=1.0)
    one = to(q[0, 1], v[0, 1], joints=joints)
    assert np.array_equal(one[0], there[0][0, 1])
    assert np.array_equal(one[1], there[1][0, 1])
    assert np.array_equal(to(q, joints=joints), there[0])
    power = np.sum(v * tau, axis=-1)
    close(np.sum(there[1] * there[3], axis=-1), power, 1e-11, least=1.0)


# ---- Pinocchio -----------------------------------------------------------------------------------


def of_pinocchio(text, floating=False):
    return pin.buildModelFromXML(text, *([pin.JointModelFreeFlyer()] if floating else []))


@pytest.mark.slow_cases("text1-True", "text3-False", "text2-True")
@pytest.mark.parametrize(
    ("text", "floating"), [(OPEN, False), (OPEN, True), (PLANAR, True), (PLACED, False)]
)
def test_inverse_dynamics_is_pinocchios(text, floating):
    model, its = rm.load(text, floating_base=floating or None), of_pinocchio(text, floating)
    data = its.createData()
    for seed in range(3):
        q, v, a, tau = state(model, seed=seed)
        there = model.to_order("pinocchio", q, v, a=a, tau=rm.rnea(model, q, v, a, backend="numpy"))
        forces = pin.rnea(its, data, *there[:3])
        close(there[3], forces, 1e-11, least=1.0)
        close(
            model.from_order("pinocchio", *there[:2], tau=forces)[2],
            rm.rnea(model, q, v, a, backend="numpy"),
            1e-11,
            least=1.0,
        )
        forward = pin.aba(its, data, there[0], there[1], model.to_order("pinocchio", q, tau=tau)[1])
        mine = rm.aba(model, q, v, tau, backend="numpy")
        close(model.from_order("pinocchio", *there[:2], a=forward)[2], mine, 1e-9, least=1.0)
        for joints in (its, its.names, list(its.names)[1:]):
            assert np.array_equal(model.to_order("pinocchio", q, joints=joints), there[0])
    assert_undone(model, "pinocchio")


def test_pinocchios_order_is_by_the_joints_names():
    model, its = rm.load(PLANAR, floating_base=True), of_pinocchio(PLANAR, True)
    q, v, *_ = state(model)
    there = model.to_order("pinocchio", q, v)
    assert there[0].shape == (its.nq,)
    assert there[1].shape == (its.nv,)
    for name in ("alpha", "cart", "late", "zeta"):
        index = its.getJointId(name)
        at, dof = its.idx_qs[index], its.idx_vs[index]
        mine = model.joint_positions(q)[name]
        if name == "alpha":
            close(there[0][at : at + 2], [np.cos(mine), np.sin(mine)], 1e-11, least=1.0)
        elif name == "cart":
            close(
                there[0][at : at + 4],
                [*mine[:2], np.cos(mine[2]), np.sin(mine[2])],
                1e-11,
                least=1.0,
            )
        else:
            assert there[0][at] == mine
            assert there[1][dof] == model.joint_velocities(q, v)[name]


def test_ball_joints_of_pinocchio():
    model = rm.load(BALLS)
    its = pin.Model()
    index = its.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "trunk_free")
    for name in ("aball", "zball"):
        last = its.addJoint(index, pin.JointModelSpherical(), pin.SE3.Identity(), name)
    for name, kind in (("lower_hinge", pin.JointModelRX()), ("lower_slide", pin.JointModelPX())):
        last = its.addJoint(last, kind, pin.SE3.Identity(), name)
    q, v, *_ = state(model)
    there = model.to_order("pinocchio", q, v, joints=its)
    assert np.array_equal(there[0][7:11], model.joint_positions(q)["aball"])
    assert np.array_equal(there[1][:3], v[3:6])
    moved = model.integrate(q, 0.1 * v)
    close(
        pin.integrate(its, there[0], 0.1 * there[1]),
        model.to_order("pinocchio", moved, joints=its),
        1e-11,
        least=1.0,
    )
    assert_undone(model, "pinocchio", its)


def test_rotors_that_pinocchio_does_not_know():
    model, its = rm.load(OPEN, extend=ROTOR, floating_base=True), of_pinocchio(OPEN, True)
    plain = rm.load(OPEN, floating_base=True)
    q, v, *_ = state(plain)
    there = plain.to_order("pinocchio", q, v)
    mine = model.from_order("pinocchio", *there)
    for joints in (None, its):
        again = model.to_order("pinocchio", *mine, joints=joints)
        close(again[0], there[0], 1e-11, least=1.0)
        close(again[1], there[1], 1e-11, least=1.0)
    assert len(model.joint_names) == len(plain.joint_names) + 1
    assert_undone(model, "pinocchio")


def test_rotors_of_linkages_that_others_do_not_know():
    """q has the positions of all joints of a linkage; a rotor's follow from the joint it drives."""
    more = '<robot name="more"><joint name="{}"><rotor inertia="1e-4" ratio="6"/></joint></robot>'
    model = rm.load(rm.robots.path("four_bar"), extend=more.format("joint1"))
    assert "joint1_rotor" in model.joint_names
    assert_undone(model, "pinocchio")
    its = pin.buildModelFromUrdf(str(rm.robots.path("four_bar")))
    assert_undone(model, "pinocchio", its)
    assert_undone(model, "mujoco", ["joint1", "joint2", "joint3"])


def test_curves_between_tendons_that_mujoco_has_no_joints_for():
    """Such a constraint is a polynomial between two massless joints, which follow the tendons."""
    inner = '<inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/>'
    text = f"""<mujoco><worldbody>
      <body name="a"><joint name="a" axis="0 1 0" ref="30"/>{inner}
        <body name="b"><joint name="b" type="slide" ref="0.2"/>{inner}</body></body>
      <body name="c"><joint name="c" axis="1 0 0" ref="-20"/>{inner}</body></worldbody>
    <tendon>
      <fixed name="t"><joint joint="a" coef="2"/><joint joint="b" coef="-3"/></fixed>
      <fixed name="u"><joint joint="b" coef="1"/><joint joint="c" coef="1.5"/></fixed>
    </tendon>
    <equality><tendon tendon1="t" tendon2="u" polycoef="0.05 0.7 0.3 0 0"/></equality></mujoco>"""
    model = rm.load(text)
    assert {"t_rotor", "u_rotor"} < set(model.joint_names)
    assert_undone(model, "mujoco", mujoco.MjModel.from_xml_string(text))


@pytest.mark.slow_cases("tello", "mit_humanoid")
@pytest.mark.parametrize("name", ["mini_cheetah", "four_bar", "tello", "mit_humanoid"])
def test_joints_that_follow_others(name):
    """Pinocchio's open tree has every joint: positions and velocities are all joints' own."""
    model, its = rm.robots.load(name), pin.buildModelFromUrdf(str(rm.robots.path(name)))
    q, v, _, _ = state(model)
    there = model.to_order("pinocchio", q, v)
    assert there[0].shape == (its.nq,)
    assert np.array_equal(there[0], model.to_order("pinocchio", q, joints=its))
    rates = model.joint_velocities(q, v)
    for dof, joint in zip(its.idx_vs, its.names, strict=True):
        if joint in rates:
            assert there[1][dof] == rates[joint]
    again = model.from_order("pinocchio", *there)
    off = model.difference(q, again[0])
    close(off, math.tau * np.round(off / math.tau), 1e-11, least=1.0)
    close(again[1], v, 1e-11, least=1.0)
    assert_undone(model, "pinocchio", its)


def test_forces_of_all_joints_push_the_independent_ones():
    model = rm.robots.load("four_bar")
    q, v, _, _ = state(model)
    its = pin.buildModelFromUrdf(str(rm.robots.path("four_bar")))
    there = model.to_order("pinocchio", q, v)
    forces = np.random.default_rng(1).normal(size=its.nv)
    tau = model.from_order("pinocchio", *there, tau=forces)[2]
    close(tau @ v, forces @ there[1], 1e-11, least=1.0)


def test_frames_of_pinocchio_are_linear_first():
    model, its = rm.load(OPEN, floating_base=True), of_pinocchio(OPEN, True)
    data = its.createData()
    q, v, a, _ = state(model)
    q_pin, v_pin, a_pin = model.to_order("pinocchio", q, v, a=a)
    T = model.to_order("pinocchio", q, np.eye(model.nv))[1].T
    close(T @ v, v_pin, 1e-11, least=1.0)
    close(T @ a, a_pin, 1e-11, least=1.0)
    frame, swapped = its.getFrameId("a3"), [3, 4, 5, 0, 1, 2]
    pin.forwardKinematics(its, data, q_pin, v_pin, a_pin)
    for reference in ("LOCAL", "WORLD", "LOCAL_WORLD_ALIGNED"):
        axes = getattr(pin.ReferenceFrame, reference)
        J = pin.computeFrameJacobian(its, data, q_pin, frame, axes)[swapped] @ T
        close(
            rm.jacobian(model, q, "a3", reference=reference.lower(), backend="numpy"),
            J,
            1e-11,
            least=1.0,
        )
    wrench = np.arange(1.0, 7.0)  # on the link; it stands at its joint
    forces = pin.StdVec_Force([pin.Force.Zero() for _ in its.names])
    forces[its.getJointId("tip")] = pin.Force(wrench[3:], wrench[:3])
    tau = pin.rnea(its, data, q_pin, v_pin, a_pin, forces)
    mine = rm.rnea(model, q, v, a, f_ext={"a3": wrench}, backend="numpy")
    close(model.from_order("pinocchio", q_pin, tau=tau)[1], mine, 1e-11, least=1.0)


# ---- MuJoCo --------------------------------------------------------------------------------------


def assert_mujocos(model, its, joints=None):
    data = mujoco.MjData(its)
    its.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    for seed in range(3):
        q, v, a, _ = state(model, seed=seed)
        tau = rm.rnea(model, q, v, a, backend="numpy")
        data.qpos, data.qvel, data.qacc, its_tau = model.to_order(
            "mujoco", q, v, a=a, tau=tau, joints=joints
        )
        acceleration = data.qacc.copy()
        mujoco.mj_forward(its, data)
        forces = full(its, data) @ acceleration + data.qfrc_bias
        close(its_tau, forces, 1e-10, least=1.0)
        again = model.from_order(
            "mujoco", data.qpos, data.qvel, a=acceleration, tau=forces, joints=joints
        )
        close(again[3], tau, 1e-10, least=1.0)
        still = model.to_order("mujoco", q, v, a=0.0 * a, joints=joints)[2]
        bias = model.from_order(
            "mujoco",
            data.qpos,
            tau=full(its, data) @ still + data.qfrc_bias,
            joints=joints,
        )[1]
        close(bias, rm.bias_force(model, q, v, backend="numpy"), 1e-10, least=1.0)
        units = [model.to_order("mujoco", q, unit, joints=joints)[1] for unit in np.eye(model.nv)]
        T = np.array(units).T
        close(T.T @ full(its, data) @ T, rm.crba(model, q, backend="numpy"), 1e-10, least=1.0)
        q2 = model.integrate(q, 1e-7 * v)
        moved = data.qpos.copy()
        mujoco.mj_integratePos(its, moved, data.qvel, 1e-7)
        close(model.to_order("mujoco", q2, joints=joints), moved, 1e-12, least=1.0)
    assert_undone(model, "mujoco", joints)


@pytest.mark.slow_cases("text2")
@pytest.mark.parametrize("text", [OPEN, PLANAR, PLACED])
def test_a_written_model_is_mujocos(text, tmp_path):
    model = rm.load(text, floating_base=None if text is PLACED else True)
    rm.write_mjcf(model, tmp_path / "robot.xml")
    its = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    assert_mujocos(model, its)
    assert_mujocos(model, its, its)
    names = [its.joint(i).name for i in range(its.njnt)]
    q, *_ = state(model)
    assert np.array_equal(model.to_order("mujoco", q), model.to_order("mujoco", q, joints=names))
    assert np.array_equal(
        model.to_order("mujoco", q), model.to_order("mujoco", q, joints=names[1:])
    )


def test_an_mjcf_with_balls_and_joints_without_names():
    model, its = rm.load(BALLS), mujoco.MjModel.from_xml_string(BALLS)
    assert_mujocos(model, its)
    assert_mujocos(model, its, its)


@pytest.mark.skipif(
    tuple(map(int, mujoco.__version__.split(".")[:2])) < (3, 16),
    reason="older MuJoCo (3.13) ignores the rpy of a URDF's inertials",
)
def test_a_urdf_on_the_ground_in_mujoco():
    model, its = rm.load(OPEN), mujoco.MjModel.from_xml_string(OPEN)
    assert_mujocos(model, its, its)
    assert_mujocos(model, its)


@pytest.mark.slow
def test_floating_joints_elsewhere_are_slides_and_a_ball(tmp_path):
    text = OPEN.replace("</robot>", joint("loose", "base", "y1", "floating") + "</robot>")
    model = rm.load(text, floating_base=True)
    rm.write_mjcf(model, tmp_path / "robot.xml")
    assert_mujocos(model, mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml")))


def test_a_screw_is_a_hinge_and_a_slide(tmp_path):
    text = OPEN.replace(
        "</robot>", joint("thread", "base", "y1", "screw", more='<pitch value=".1"/>') + "</robot>"
    )
    model = rm.load(text)
    rm.write_mjcf(model, tmp_path / "robot.xml")
    its = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    q, v, a, _ = state(model)
    qpos, qvel, qacc = model.to_order("mujoco", q, v, a=a)
    data = mujoco.MjData(its)
    data.qpos, data.qvel = qpos, qvel
    its.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    mujoco.mj_forward(its, data)
    forces = full(its, data) @ qacc + data.qfrc_bias
    mine = model.from_order("mujoco", qpos, qvel, tau=forces, joints=its)[2]
    close(mine, rm.rnea(model, q, v, a, backend="numpy"), 1e-11, least=1.0)
    assert_undone(model, "mujoco")


# ---- Drake ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "floating"), [(OPEN, False), (OPEN, True), (PLANAR, True), (PLACED, False)]
)
def test_inverse_dynamics_is_drakes(text, floating, tmp_path):
    parsing = pytest.importorskip("pydrake.multibody.parsing", reason="Drake is not installed")
    plants = pytest.importorskip("pydrake.multibody.plant")
    trees = pytest.importorskip("pydrake.multibody.tree")
    logging.getLogger("drake").setLevel(logging.CRITICAL)
    (tmp_path / "robot.urdf").write_text(text)
    plant = plants.MultibodyPlant(0.0)
    parsing.Parser(plant).AddModels(str(tmp_path / "robot.urdf"))
    if not floating and text is not PLACED:
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
    model = rm.load(text, floating_base=floating or None)
    q, *_ = state(model)
    with pytest.raises(ValueError, match="finalized"):
        model.to_order("drake", q, joints=plant)
    plant.Finalize()
    assert_drakes(model, plant, trees)


@pytest.mark.slow
def test_balls_of_drake(tmp_path):
    parsing = pytest.importorskip("pydrake.multibody.parsing", reason="Drake is not installed")
    plants = pytest.importorskip("pydrake.multibody.plant")
    trees = pytest.importorskip("pydrake.multibody.tree")
    logging.getLogger("drake").setLevel(logging.CRITICAL)
    model = rm.load(BALLS)
    rm.write_sdf(model, tmp_path / "robot.sdf")
    plant = plants.MultibodyPlant(0.0)
    parsing.Parser(plant).AddModels(str(tmp_path / "robot.sdf"))
    plant.Finalize()
    assert_drakes(model, plant, trees)


def assert_drakes(model, plant, trees):
    context = plant.CreateDefaultContext()
    for seed in range(3):
        q, v, a, _ = state(model, seed=seed)
        tau = rm.rnea(model, q, v, a, backend="numpy")
        there = model.to_order("drake", q, v, a=a, tau=tau, joints=plant)
        plant.SetPositions(context, there[0])
        plant.SetVelocities(context, there[1])
        forces = trees.MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        its = plant.CalcInverseDynamics(context, there[2], forces)
        close(there[3], its, 1e-11, least=1.0)
        close(
            model.from_order("drake", there[0], there[1], tau=its, joints=plant)[2],
            tau,
            1e-11,
            least=1.0,
        )
        gravity = model.to_order("drake", q, tau=rm.gravity_force(model, q, backend="numpy"))[1]
        bias = model.to_order("drake", q, tau=rm.bias_force(model, q, v, backend="numpy"))[1]
        close(gravity, -plant.CalcGravityGeneralizedForces(context), 1e-11, least=1.0)
        at_rest = model.to_order("drake", q, v, a=np.zeros(model.nv))[
            2
        ]  # of our rates, not Drake's
        push = plant.CalcMassMatrix(context) @ at_rest
        close(bias - gravity - push, plant.CalcBiasTerm(context), 1e-11, least=1.0)
        own = model.to_order("drake", q, v)
        assert np.array_equal(own[0], there[0])
        assert np.array_equal(own[1], there[1])
    assert_undone(model, "drake", plant)
    assert_undone(model, "drake")


def test_drakes_numbers_of_a_free_base():
    model = rm.load(PLACED)
    q, v, *_ = state(model)
    there = model.to_order("drake", q, v)
    pose = rm.frame_pose(model, q, "base")
    twist = rm.frame_velocity(model, q, v, "base", reference="local_world_aligned")
    close(there[0][4:7], pose[:3, 3], 1e-11, least=1.0)
    w, x, y, z = there[0][:4]
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, np.array([w, x, y, z]))
    close(turn.reshape(3, 3), pose[:3, :3], 1e-11, least=1.0)
    close(there[1][:6], twist, 1e-11, least=1.0)
    assert_undone(model, "drake")


# ---- what is refused -----------------------------------------------------------------------------


def test_joints_that_one_of_the_two_lacks():
    model = rm.load(OPEN, floating_base=True)
    q = model.neutral()
    names = ["zeta", "tip", "alpha", "b2", "a2", "late"]
    assert model.to_order("mujoco", q, joints=names).shape == (13,)
    with pytest.raises(ValueError, match=r"MuJoCo's joint 'zetta'.*did you mean 'zeta'"):
        model.to_order("mujoco", q, joints=["zetta", *names[1:]])
    with pytest.raises(ValueError, match=r"no joint 'late', which q or v of 'open' needs"):
        model.to_order("mujoco", q, joints=names[:-1])
    with pytest.raises(ValueError, match="'zeta' twice"):
        model.to_order("drake", q, joints=[*names, "zeta"])
    larger = of_pinocchio(PLANAR, True)
    with pytest.raises(ValueError, match="Pinocchio's joint 'cart' is no joint of 'open'"):
        model.to_order("pinocchio", q, joints=larger)
    with pytest.raises(ValueError, match="no joint 'cart'"):
        rm.load(PLANAR, floating_base=True).from_order(
            "pinocchio", np.zeros(15), joints=of_pinocchio(OPEN, True)
        )
    with pytest.raises(ValueError, match="no joint 'floating_base'"):
        model.to_order("pinocchio", q, joints=of_pinocchio(OPEN))
    fewer = rm.robots.load("four_bar")
    with pytest.raises(ValueError, match="no joint"):
        fewer.from_order("mujoco", [0.0], joints=fewer.dof_names)


def test_joints_that_are_fixed_here():
    """The message says so, and names no other joint; without it the others' state is MuJoCo's."""
    text = """<mujoco><compiler angle="radian"/><worldbody>
      <body name="arm"><joint name="held_1" axis="0 1 0" ref="0.1"/><geom size=".1" pos=".2 0 0"/>
      <body name="hand" pos=".3 0 0"><joint name="held_2" axis="0 1 0"/>
      <geom size=".1" pos=".1 0 .1"/></body></body></worldbody>
      <equality><joint joint1="held_1" polycoef="0.3 0 0 0 0"/></equality></mujoco>"""
    model, its = rm.load(text), mujoco.MjModel.from_xml_string(text)
    for call in (model.to_order, model.from_order):
        with pytest.raises(ValueError, match="'held_1' is fixed in 'MuJoCo Model'") as raised:
            call("mujoco", np.zeros(2 if call == model.from_order else 1), joints=its)
        assert "held_2" not in str(raised.value)
    (q,) = model.to_order("mujoco", [0.7], joints=["held_2"])
    data = mujoco.MjData(its)
    data.qpos[:] = 0.4, q  # held at ref + 0.3
    mujoco.mj_kinematics(its, data)
    np.testing.assert_allclose(
        rm.frame_pose(model, [0.7], "hand")[:3, 3], data.xpos[2], rtol=0, atol=1e-12
    )


def test_joints_of_another_kind():
    other = OPEN.replace('name="late" type="prismatic"', 'name="late" type="revolute"')
    model = rm.load(OPEN)
    with pytest.raises(ValueError, match=r"'late'.*hinge.*prismatic"):
        model.to_order("mujoco", model.neutral(), joints=mujoco.MjModel.from_xml_string(other))
    with pytest.raises(ValueError, match=r"'late'.*prismatic"):
        model.to_order("pinocchio", model.neutral(), joints=of_pinocchio(other))
    tilted = rm.load(PLANAR.replace('"planar"', '"planar" ').replace("0 0 1", "0 1 0"))
    with pytest.raises(ValueError, match="'cart' moves normal to 0 1 0"):
        tilted.to_order("pinocchio", tilted.neutral())
    text = OPEN.replace("</robot>", joint("l", "base", "y", "floating") + "</robot>")
    loose = rm.load(text, floating_base=True)
    with pytest.raises(ValueError, match="'l' stands on 'base', and Drake"):
        loose.to_order("drake", loose.neutral())


def test_a_pickled_model_converts():
    model = rm.load(OPEN, floating_base=True)
    q, v, *_ = state(model, (4,))
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.to_order("mujoco", q, v)[1], model.to_order("mujoco", q, v)[1])


def test_other_libraries_are_refused() -> None:
    model = rm.robots.load("four_bar")
    with pytest.raises(ValueError, match="'pinocchio', 'mujoco' and 'drake' are"):
        model.to_order("bullet", model.neutral())
