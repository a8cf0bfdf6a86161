"""What motors can do, in the simulators' formats: as it acts there, written and read back."""

from __future__ import annotations

import io
import math
from itertools import combinations, product
from pathlib import Path

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from test_actuation import CURVE, MOTOR, ROTOR, differential, limited
from texts import joint, link, robot

import robomodel as rm
from robomodel.control import InverseDynamics, JointTask

MJCF = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="a"><joint name="j" {joint}/><inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/>
    <body name="b"><joint name="k" axis="0 1 0"/>
      <inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/></body></body></worldbody>
  <tendon><fixed name="t"><joint joint="j" coef="2"/><joint joint="k" coef="-3"/></fixed></tendon>
  <actuator>{actuators}</actuator></mujoco>
"""
NUMPY = {"backend": "numpy"}  # no kernels are made
DC = '<motor torque_constant="0.1" resistance="0.5" voltage="24" current="20"/>'


def mjcf(*actuators: str, joint: str = "") -> str:
    return MJCF.format(actuators="".join(actuators), joint=joint)


def most(text: str, velocity: tuple[float, float] = (0.0, 0.0)) -> NDArray[np.float64]:
    """What MuJoCo's actuators give at the greatest control, each alone: a row for each."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qvel[:] = velocity
    rows = []
    for n in range(model.nu):
        data.ctrl[:] = 0.0
        data.ctrl[n] = 1e6
        mujoco.mj_forward(model, data)
        rows.append(data.qfrc_actuator.copy())
    return np.array(rows)


def moment(text: str) -> NDArray[np.float64]:
    """MuJoCo's ``actuator_moment``: a row for each actuator."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    dense = np.zeros((model.nu, model.nv))
    mujoco.mju_sparse2dense(
        dense, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind
    )
    return dense


@pytest.mark.parametrize(
    ("actuator", "joint", "effort"),
    [
        ('<motor name="m" joint="j" ctrlrange="-4 4" gear="3"/>', "", 12.0),
        ('<motor name="m" joint="j" ctrlrange="-4 4" forcerange="-2 2" gear="3"/>', "", 6.0),
        ('<motor name="m" joint="j" forcerange="-2 2" gear="-5"/>', "", 10.0),
        ('<position name="m" joint="j" kp="40" ctrlrange="-1 1" forcerange="-7 7"/>', "", 7.0),
        ('<velocity name="m" joint="j" kv="3" forcerange="-7 7" gear="2"/>', "", 14.0),
        ('<general name="m" joint="j" gainprm="5" ctrlrange="-2 2"/>', "", 10.0),
        ('<general name="m" joint="j" gainprm="5" dyntype="filter" dynprm="1" ctrlrange="-2 2"/>',
         "", 10.0),
        ('<motor name="m" joint="j" ctrlrange="-9 9" gear="3"/>', 'actuatorfrcrange="-8 8"', 8.0),
        ('<position name="m" joint="j" kp="40"/>', 'actuatorfrcrange="-8 8"', 8.0),
        ('<position name="m" joint="j" kp="40"/>', "", math.inf),
        ('<general name="m" joint="j" gainprm="5" dyntype="filter" dynprm="1" actlimited="true" '
         'actrange="-1 1"/>', "", 5.0),
        ('<general name="m" joint="j" gainprm="5" biastype="affine" ctrlrange="-2 2"/>', "", 10.0),
    ],
)  # fmt: skip
def test_efforts_are_mujocos(actuator: str, joint: str, effort: float) -> None:
    """``effort`` is felt by the joint; the actuator's own is before its gear."""
    text = mjcf(actuator, joint=joint)
    model = rm.load(text)
    (motor,) = model.actuators
    assert (motor.name, motor.joint) == ("m", "j")
    gear = moment(text)[0, 0]
    np.testing.assert_array_equal(rm.actuator_map(model, model.neutral(), **NUMPY), [[gear], [0]])
    assert motor.effort_limit == pytest.approx(effort / abs(gear))
    _, upper = rm.torque_limits(model, model.neutral(), **NUMPY)
    assert upper[0] == pytest.approx(effort)
    if math.isfinite(effort) and "dyntype" not in actuator and "velocity" not in actuator:
        assert abs(most(text)[0, 0]) == pytest.approx(effort)


GEARED = """
<mujoco><worldbody><body name="a"><joint name="j"/>
  <inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/></body>
  <body name="r"><joint name="j_rotor" armature="3" damping="2" frictionloss="5"/>
  <inertial pos="0 0 0" mass="0.1" diaginertia="1e-4 1e-4 2e-4"/></body></worldbody>
  <equality><joint joint1="j_rotor" joint2="j" polycoef="0 -6 0 0 0"/></equality>
  <actuator>{actuators}</actuator></mujoco>
"""


@pytest.mark.parametrize(
    "text",
    [
        mjcf('<motor tendon="t" gear="5"/>', '<motor joint="k" gear="-2"/>'),
        GEARED.format(actuators='<motor joint="j"/>'),
        GEARED.format(actuators='<motor joint="j" gear="-6"/><motor joint="j" gear="4"/>'),
        GEARED.format(actuators='<motor name="j" joint="j_rotor" gear="3"/>'),
        (Path(mujoco.__file__).parent / "testdata" / "model.xml").read_text(),
    ],
)
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_the_actuator_map_is_mujocos_moment(text: str) -> None:
    """Also where a rotor turns otherwise than the actuator's gear says."""
    model, its, rows = rm.load(text), mujoco.MjModel.from_xml_string(text), moment(text)
    joints = {its.joint(i).name for i in range(its.njnt)}  # those without a name have no actuator
    q = model.neutral()
    jacobian = model.constraint_jacobian(q)
    expected = np.zeros((model.nv, len(model.actuators)))
    for n, name in enumerate(each.name for each in model.actuators):
        unnamed = name not in [its.actuator(i).name for i in range(its.nu)]
        actuator = int(name.rpartition("_")[2]) if unnamed else its.actuator(name).id
        for each, node in zip(model.joints, model.nodes, strict=True):
            if each.nv == 1 and each.name in joints:
                (dof,) = its.joint(each.name).dofadr
                expected[:, n] += rows[actuator, dof] * jacobian[node.v]
    assert expected.any(axis=0).all()
    np.testing.assert_allclose(rm.actuator_map(model, q, **NUMPY), expected, rtol=1e-12)


def test_shafts_before_their_gears() -> None:
    """What a shaft has times the gear, squared or not, is what its joint or rotor has."""
    text = GEARED.format(actuators='<motor joint="j" gear="2" ctrlrange="-4 4"/>')
    model = rm.load(text)
    (motor,) = model.actuators
    assert (motor.joint, motor.effort_limit) == ("j_rotor", 4.0)
    assert rm.torque_limits(model, model.neutral(), **NUMPY)[1] == pytest.approx(8.0)
    felt = rm.dynamics.reflected(model, model.neutral(), **NUMPY)
    wanted = [36 * 3.0002, 36 * 2.0, 6 * 5.0]
    np.testing.assert_allclose([each[0, 0] for each in felt], wanted, rtol=1e-12)


def test_actuators_on_tendons() -> None:
    text = mjcf('<motor name="m" tendon="t" ctrlrange="-4 4" gear="5"/>')
    model = rm.load(text)
    b = rm.actuator_map(model, model.neutral())
    (actuator,) = model.actuators
    assert actuator.effort_limit == 4.0
    np.testing.assert_allclose(np.abs(b[:, 0]) * actuator.effort_limit, np.abs(most(text)[0]))


@pytest.mark.parametrize("gear", [4, -0.5])
def test_limits_of_tendons_are_mujocos(gear: float) -> None:
    """MuJoCo clamps the force of a tendon's actuator before the gear."""
    text = mjcf(f'<motor name="m" tendon="t" ctrlrange="-9 9" gear="{gear}"/>')
    text = text.replace('name="t"', 'name="t" actuatorfrcrange="-3 3"')
    model = rm.load(text)
    (actuator,) = model.actuators
    assert actuator.effort_limit == 3.0
    (column,) = rm.actuator_map(model, model.neutral()).T
    np.testing.assert_allclose(np.abs(column) * 3.0, np.abs(most(text)[0]))


@pytest.mark.parametrize("gear", [4, -0.5])
@pytest.mark.parametrize("beside", ["", '<motor joint="j" ctrlrange="-1 2"/>'])
@pytest.mark.parametrize("ends", ["-4 1", "-90 90"])
def test_limits_of_a_joint_that_a_tendon_pulls_alone_are_mujocos(
    gear: float, beside: str, ends: str
) -> None:
    """A tendon of one joint is clamped as that joint, beside other motors of it, too."""
    text = mjcf(
        f'<motor name="m" tendon="t" ctrlrange="-9 7" gear="{gear}"/>',
        beside,
        joint=f'actuatorfrcrange="{ends}"',
    ).replace('<joint joint="k" coef="-3"/>', "")
    simulated = given(text)
    model = rm.load(text)
    limits = rm.torque_limits(model, model.neutral())
    np.testing.assert_allclose(limits, (simulated.min(axis=0), simulated.max(axis=0)))


@pytest.mark.parametrize("gear", [4, -0.5])
def test_limits_of_joints_on_a_tendon_bound_its_motor(gear: float) -> None:
    """As far as MuJoCo clamps neither joint, so that its force is the tendon's; and that is said.

    A limit of the tendon holds without one of the motor's own.
    """
    text = mjcf(f'<motor name="m" tendon="t" gear="{gear}"/>')
    tendon = text.replace('name="t"', 'name="t" actuatorfrcrange="-3 2"')
    (actuator,) = rm.load(tendon).actuators
    assert (actuator.least_effort, actuator.effort_limit) == (-3.0, 2.0)
    joints = tendon.replace('name="j"', 'name="j" actuatorfrcrange="-4 1"')
    joints = joints.replace('name="k"', 'name="k" actuatorfrcrange="-5 0.75"')
    with pytest.warns(rm.DescriptionWarning, match="motor 'm': in MuJoCo .* of 'j', 'k' cuts"):
        model = rm.load(joints)
    (actuator,) = model.actuators
    its = mujoco.MjModel.from_xml_string(joints)
    data = mujoco.MjData(its)
    column = rm.actuator_map(model, model.neutral())[:, 0]
    for force, share in product((actuator.effort_limit, actuator.least_effort), (1.0, 1.01)):
        data.ctrl[:] = share * force
        mujoco.mj_forward(its, data)
        assert np.allclose(data.qfrc_actuator, column * share * force) == (share == 1.0)


def test_uneven_ranges_are_read_and_written() -> None:
    """Forces both ways, before a gear that turns them round, as MuJoCo clamps them."""
    text = mjcf('<motor name="m" joint="j" ctrlrange="-1 4" gear="-3"/>')
    model = rm.load(text)
    (actuator,) = model.actuators
    assert (actuator.least_effort, actuator.effort_limit) == (-1.0, 4.0)
    least, greatest = rm.torque_limits(model, model.neutral())
    np.testing.assert_allclose((least[0], greatest[0]), (-12.0, 3.0))
    stream = io.StringIO()
    rm.write_mjcf(model, stream)
    assert rm.load(stream.getvalue()).actuators[0] == actuator
    with pytest.warns(rm.DescriptionWarning, match="does not hold zero"):
        model = rm.load(mjcf('<motor name="m" joint="j" ctrlrange="-4 -1"/>'))
    assert (model.actuators[0].least_effort, model.actuators[0].effort_limit) == (-4.0, 4.0)


def test_dc_motors_are_mujocos() -> None:
    text = mjcf(
        '<dcmotor name="m" joint="j" motorconst="0.1" resistance="2" ctrlrange="-24 24" gear="5"/>'
    )
    if not hasattr(mujoco.mjtGain, "mjGAIN_DCMOTOR"):
        pytest.skip("this MuJoCo has no DC motors")
    model = rm.load(text)
    for speed in (0.0, 3.0, 20.0):
        _, upper = rm.torque_limits(model, model.neutral(), [speed, 0.0], **NUMPY)
        assert upper[0] == pytest.approx(most(text, (speed, 0.0))[0, 0])
    heat = rm.dynamics.copper_loss(model, [0.4])  # N m at the shaft: 4 A
    assert heat[0] == pytest.approx(2.0 * 4.0**2)


def test_damping_of_actuators_is_mujocos() -> None:
    text = mjcf(
        '<motor name="m" joint="j" gear="3" damping="0.7"/>',
        '<motor name="n" tendon="t" gear="2" damping="0.4"/>',
    )
    try:
        compiled = mujoco.MjModel.from_xml_string(text)
    except ValueError:
        pytest.skip("actuators of this MuJoCo have no damping")
    data = mujoco.MjData(compiled)
    data.qvel[:] = (1.0, 0.5)
    mujoco.mj_forward(compiled, data)
    model = rm.load(text)
    np.testing.assert_allclose(
        rm.passive_force(model, model.neutral(), [1.0, 0.5], **NUMPY), data.qfrc_passive, rtol=1e-12
    )


JOINTS = robot(
    link("a"), link("b"),
    joint("geared", "base", "a", kind="revolute", more=limited(30) + ROTOR + CURVE),
    joint("direct", "a", "b", kind="revolute", more=limited(7) + MOTOR),
)  # fmt: skip
SIMPLE = (
    '<transmission name="t"><type>transmission_interface/SimpleTransmission</type>'
    '<joint name="{joint}"/><actuator name="t"><mechanicalReduction>-9</mechanicalReduction>'
    "{motor}</actuator></transmission>"
)
TEXTS = {
    "of joints": JOINTS,
    "a differential": differential(CURVE.replace("/>", ' effort="2.5" velocity="15"/>')),
    "without rotors": differential(DC, rotors=False),
    "of a transmission": robot(
        link("a"), joint("j", "base", "a", kind="revolute", more=limited(3)),
        SIMPLE.format(joint="j", motor=DC.replace("/>", ' velocity="100"/>')),
    ),
    "a transmission and a joint": robot(
        link("a"), joint("j", "base", "a", kind="revolute", more=limited(300) + CURVE),
        SIMPLE.format(joint="j", motor=""),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "form"),
    [
        (name, form)
        for name in TEXTS
        for form in ("urdf", "sdf", "xml")
        if (name, form) != ("a differential", "sdf")  # SDF has no couplings of three joints
    ],
)
def test_written_and_read_back(name: str, form: str, tmp_path) -> None:
    model = rm.load(TEXTS[name])
    write = {"urdf": rm.write_urdf, "sdf": rm.write_sdf, "xml": rm.write_mjcf}[form]
    path = tmp_path / f"out.{form}"
    write(model, path)
    again = rm.load(path, independent=model.dof_names)
    q = again.neutral()
    for v in (0.0, 0.3, -0.7, 40.0):
        rates = v * np.ones(model.nv)
        for one, other in zip(
            rm.torque_limits(again, q, rates, **NUMPY),
            rm.torque_limits(model, q, rates, **NUMPY),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    for one, other in zip(again.actuators, model.actuators, strict=True):
        assert one.joint == other.joint
        for what in ("effort_limit", "velocity_limit", "torque_constant", "resistance"):
            assert getattr(one, what) == pytest.approx(getattr(other, what)), what


@pytest.mark.parametrize("reduction", ["", "<mechanicalReduction>1</mechanicalReduction>"])
def test_ratios_of_rotors_stand_for_reductions_in_mujoco(reduction: str) -> None:
    """The rotor's ratio is what its actuator has, whatever reduction the transmission says."""
    more = "" if reduction else "<mechanicalReduction>3</mechanicalReduction>"
    ends = '<joint name="j">{}</joint><actuator name="m">{}<rotor inertia="1e-5" ratio="6"/>{}'
    text = robot(
        link("a"), joint("j", "base", "a", kind="revolute", more=limited(300)),
        '<transmission name="t"><type>transmission_interface/SimpleTransmission</type>'
        + ends.format(more, reduction, '<motor effort="2" velocity="100"/></actuator>')
        + "</transmission>",
    )  # fmt: skip
    model, stream = rm.load(text), io.StringIO()
    assert rm.torque_limits(model, model.neutral(), **NUMPY)[1] == pytest.approx(12.0)
    rm.write_mjcf(model, stream)
    np.testing.assert_allclose(moment(stream.getvalue())[0, 0], 6.0)
    np.testing.assert_allclose(most(stream.getvalue())[0, 0], 12.0)
    (again,), (motor,) = rm.load(stream.getvalue(), format="mjcf").actuators, model.actuators
    assert (again.joint, again.terms) == (motor.joint, motor.terms)


def test_joints_of_an_open_tree_have_one_motor_each() -> None:
    """Simulators know no differentials in URDF; who does shall not count its motors twice."""
    model, stream = rm.load(TEXTS["without rotors"]), io.StringIO()
    with pytest.warns(rm.DescriptionWarning, match="'transmission_interface/Diff.*is not written"):
        rm.write_urdf(model, stream, approximate=True)
    tree = rm.load(stream.getvalue())
    assert [each.terms for each in tree.actuators] == [(("pitch", 1.0),), (("roll", 1.0),)]
    for one, other in zip(
        rm.torque_limits(tree, [0.0, 0.0], **NUMPY),
        rm.torque_limits(model, [0.0, 0.0], **NUMPY),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize(
    ("data", "why"), [("effort=-1", "is -1"), ("torque=3", "no list"), ("effort=x", "no list")]
)
def test_bad_motors_in_custom(data: str, why: str) -> None:
    text = mjcf('<motor name="m" joint="j"/>').replace(
        "<worldbody>", f'<custom><text name="robomodel_motor:j" data="{data}"/></custom><worldbody>'
    )
    with pytest.raises(rm.DescriptionError, match=why) as error:
        rm.load(text)
    assert error.value.line is not None


def test_actuators_that_are_none_of_ours_are_warned_of() -> None:
    text = """<mujoco><worldbody><site name="w"/><body name="b"><joint name="ball" type="ball"/>
      <geom size=".1" mass="1"/><site name="s"/><body name="c" pos="0 0 .3"><joint name="j"/>
      <joint name="k" axis="1 0 0"/><geom size=".1" mass="1"/><site name="t"/></body></body>
      </worldbody><tendon><spatial name="rope"><site site="w"/><site site="t"/></spatial></tendon>
      <equality><joint joint1="k"/></equality>
      <actuator>
      <motor name="ball" joint="ball" gear="1 2 3"/>
      <motor name="thrust" site="s" gear="1 0 0 0 0 0"/>
      <adhesion name="stick" body="b" gain="3" ctrlrange="0 1"/>
      <motor name="cable" tendon="rope"/>
      <motor name="crank" cranksite="s" slidersite="w" cranklength=".2"/>
      <motor name="idle" joint="j" gear="0"/>
      <motor name="held" joint="k"/>
      <motor name="ours" joint="j"/>
      </actuator></mujoco>"""
    with pytest.warns(rm.DescriptionWarning) as caught:
        model = rm.load(text)
    assert [each.name for each in model.actuators] == ["ours"]
    said = [str(each.message) for each in caught]
    reasons = {
        "ball": "a ball", "thrust": "a site", "stick": "touches a body", "cable": "spatial tendon",
        "crank": "a crank", "idle": "gear is 0", "held": "a constraint holds",
    }  # fmt: skip
    for line, (name, why) in enumerate(reasons.items(), start=7):
        place = f"<text>:{line}: "
        told = f"'{name}': it is not among the robot's actuators"
        assert any(place in each and told in each and why in each for each in said), name
    with pytest.raises(rm.DescriptionError, match="not among the robot's actuators"):
        rm.load(text, strict=True)


def test_motors_that_a_file_names_are_the_same_for_all_independent_joints() -> None:
    """Their rotors, gears and limits, too, where a rotor's joint is independent."""
    filed = rm.robots.load("parallel_ankle")
    count = 0
    for joints in combinations(filed.joint_names, filed.nv):
        try:
            model = rm.load(rm.robots.path("parallel_ankle"), independent=joints)
        except rm.DescriptionError:  # a motor and its rotor
            continue
        assert model.actuators == filed.actuators
        count += any("rotor" in name for name in joints)
    assert count == 7


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("ratio", [7, -7])
@pytest.mark.parametrize(
    ("numbers", "force"),
    [
        ('stall_torque="4" no_load_speed="210"', 4.0),
        ('stall_torque="4" no_load_speed="210" effort="9"', 4.0),
        ('stall_torque="4" no_load_speed="210" effort="4"', 4.0),
        ('stall_torque="4" no_load_speed="210" effort="3"', 3.0),
        ('torque_constant="0.05" resistance="0.4" voltage="24"', 3.0),
        ('torque_constant="0.05" resistance="0.4" voltage="24" current="20"', 1.0),
        ('torque_constant="0.05" current="20" effort="2"', 1.0),
    ],
)
def test_mujoco_has_the_force_of_a_curve_at_rest(
    numbers: str, force: float, ratio: int, approximate: bool
) -> None:
    """Its motor gives no more than stall torque and current let; numbers come back as they were."""
    geared = (
        '<transmission name="t"><type>transmission_interface/SimpleTransmission</type>'
        '<joint name="j"/><actuator name="m"><mechanicalReduction>{}</mechanicalReduction>'
        "<motor {}/></actuator></transmission>"
    )
    model = rm.load(
        robot(link("a"), joint("j", "base", "a", axis="0 1 0"), geared.format(ratio, numbers))
    )
    stream = io.StringIO()
    rm.write_mjcf(model, stream, approximate=approximate)
    there = mujoco.MjModel.from_xml_string(stream.getvalue())
    data = mujoco.MjData(there)
    data.ctrl[:] = 1e3
    mujoco.mj_forward(there, data)
    assert abs(data.qfrc_actuator[0]) == pytest.approx(7.0 * force)
    assert rm.torque_limits(model, model.neutral())[1][0] == pytest.approx(7.0 * force)
    again = rm.load(stream.getvalue())
    for own, its in zip(model.actuators, again.actuators, strict=True):
        names = ["stall_torque", "no_load_speed", "torque_constant"]
        for name in (*names, *([] if approximate else ["effort_limit"])):  # a tree's joint has one
            assert getattr(own, name) == getattr(its, name), name
    for rate in (0.0, 9.0, 29.0):
        own, its = (rm.torque_limits(x, x.neutral(), [rate])[1][0] for x in (model, again))
        assert its == pytest.approx(own)


@pytest.mark.parametrize("leading", [("ankle_link", "ankle_rotor"), ("knee_link", "ankle_rotor")])
def test_a_rotor_has_one_motor_whichever_joints_are_independent(leading: tuple[str, str]) -> None:
    """Of a belt over two joints the rotor and a joint may be independent: it has its motor once."""
    names = ["hip_ry_link_joint", *(f"{name}_joint" for name in leading)]
    model = rm.load(rm.robots.path("belt_leg"), independent=names)
    joints = [each.joint for each in model.actuators]
    assert joints.count("ankle_rotor_joint") == 1
    assert len(set(joints)) == len(joints)


PAIR = (
    '<motor name="m" joint="j" ctrlrange="-3 5" gear="4"/>'
    '<motor name="n" joint="j" ctrlrange="-1 1" gear="-9"/>'
    '<motor name="o" joint="k" ctrlrange="-2 6"/>'
)


def given(text: str) -> NDArray[np.float64]:
    """What MuJoCo's joints get at the corners of the controls."""
    model = mujoco.MjModel.from_xml_string(text)
    data, rows = mujoco.MjData(model), []
    for signs in product((-1.0, 1.0), repeat=model.nu):
        data.ctrl[:] = [1e6 * x for x in signs]
        mujoco.mj_forward(model, data)
        rows.append(data.qfrc_actuator.copy())
    return np.array(rows)


@pytest.mark.parametrize("ends", [(-10, 10), (-8, 0), (-12, 7), (-30, 40)])
def test_joints_limit_what_their_motors_give_together(ends: tuple[int, int]) -> None:
    """As MuJoCo clamps it: one motor's -12 to 20 N m, and ±9 of another one; in all formats."""
    text = mjcf(PAIR, joint=f'actuatorfrcrange="{ends[0]} {ends[1]}"')
    simulated = given(text)
    least, most = simulated.min(axis=0), simulated.max(axis=0)
    model = rm.load(text)
    assert [x.effort_limit for x in model.actuators] == [5.0, 1.0, 6.0]
    for write in (None, rm.write_mjcf, rm.write_urdf, rm.write_sdf, rm.write_usd):
        stream = io.StringIO()
        if write is not None:
            write(model, stream)
        again = model if write is None else rm.load(stream.getvalue())
        if write is rm.write_mjcf:
            np.testing.assert_allclose(given(stream.getvalue()), simulated)
        q = again.neutral()
        for options in ({}, NUMPY):
            np.testing.assert_allclose(rm.torque_limits(again, q, **options), (least, most))
        *compiled, doubt = rm.compile(again, "torque_limits")(q, np.zeros(2))
        np.testing.assert_allclose(compiled, (least, most))
        assert doubt == 0.0
        corners = rm.torque_polytope(again, q, ["j", "k"])
        expected = sorted(product((least[0], most[0]), (least[1], most[1])))
        np.testing.assert_allclose(sorted(corners.round(9).tolist()), expected)
        both = rm.dynamics.saturate(again, q, [0.0, 0.0], [[-999.0, -999.0], [999.0, 999.0]])[0]
        np.testing.assert_allclose(both, (least, most))
    task = JointTask(["j", "k"])
    for wanted, end in ((1e5, most), (-1e5, least)):
        for limits, bounded in (("actuator", True), ("position", False)):
            control = InverseDynamics(model, task, limits=limits)
            _, u, _ = control(model.neutral(), np.zeros(2), {task: [wanted, 0.0]})
            torque = (rm.actuator_map(model, model.neutral()) @ u)[0]
            assert (torque == pytest.approx(end[0])) == bounded


@pytest.mark.parametrize("ends", ["-10 10", "-8 0", "-30 40"])
@pytest.mark.parametrize("at", ["j", "k"])
def test_joints_that_follow_limit_what_their_motors_give_together(at: str, ends: str) -> None:
    """Of a leader, or of what follows it at -2 times: of either the other one has a motor, too.

    By virtual work on what MuJoCo's joints get; in trees, too, and in rows of reports.
    """
    tie = '<equality><joint joint1="k" joint2="j" polycoef="0 -2 0 0 0"/></equality></mujoco>'
    motors = (
        PAIR
        if at == "j"
        else PAIR.translate({ord("j"): "k", ord("k"): "j"}).replace("koint", "joint")
    )
    limit = f'actuatorfrcrange="{ends}"'
    text = mjcf(motors, joint=limit if at == "j" else "")
    if at == "k":
        text = text.replace('<joint name="k"', f'<joint name="k" {limit}')
    text = text.replace("</mujoco>", tie)
    simulated = given(text) @ [1.0, -2.0]
    expected = [simulated.min()], [simulated.max()]
    model = rm.load(text)
    assert model.dof_names == ("j",)
    trees = []
    for write in (rm.write_urdf, rm.write_mjcf):
        stream = io.StringIO()
        write(model, stream, approximate=True)
        trees.append(rm.load(stream.getvalue()))
    for each in (model, *trees):
        np.testing.assert_allclose(rm.torque_limits(each, each.neutral()), expected)
    (row,) = rm.actuation(model).joints
    assert (row.limits.least_effort, row.limits.effort) == pytest.approx(np.ravel(expected))


def test_what_limits_several_motors_beside_tendons_is_said() -> None:
    """A tendon's limit, and that of a joint on which a tendon pulls, too."""
    motors = '<motor name="m" tendon="t"/><motor name="n" tendon="t"/>'
    text = mjcf(motors).replace('name="t"', 'name="t" actuatorfrcrange="-3 3"')
    with pytest.warns(rm.DescriptionWarning, match="tendon 't': its actuatorfrcrange limits what"):
        rm.load(text)
    more = PAIR + '<motor name="p" tendon="t" forcerange="-1 1"/>'
    with pytest.warns(rm.DescriptionWarning, match="limits what 'm', 'n', 'p' give together; here"):
        rm.load(mjcf(more, joint='actuatorfrcrange="-10 10"'))


@pytest.mark.filterwarnings("error::robomodel.errors.DescriptionWarning")
@pytest.mark.parametrize("independent", ["j", "k"])
def test_joints_at_ratios_that_vary_limit_their_motors(independent: str) -> None:
    tie = '<equality><joint joint1="k" joint2="j" polycoef="0 1 0.1 0 0"/></equality></mujoco>'
    text = mjcf(PAIR, joint='actuatorfrcrange="-10 8"').replace("</mujoco>", tie)
    if independent == "k":
        text = text.replace('"k" joint2="j" polycoef="0 1', '"j" joint2="k" polycoef="0 1')
    model = rm.load(text)
    assert model.dof_names == (independent,)
    q = model.configuration({independent: 0.7})
    rates = model.constraint_jacobian(q)[:, 0]
    simulated = given(text) @ [rates[model.joint_names.index(name)] for name in ("j", "k")]
    expected = [simulated.min()], [simulated.max()]
    for options in ({}, NUMPY):
        np.testing.assert_allclose(rm.torque_limits(model, q, **options), expected)
    corners = np.ravel(rm.torque_polytope(model, q, independent))
    np.testing.assert_allclose(sorted(corners), np.ravel(expected))


def beside(ends: str) -> str:
    """Two motors on the joint j, with a limit; apart from it a tendon and a linkage."""
    body = '<body name="{n}"><joint name="{n}" axis="0 1 0"{a}/><geom size="0.1"/>'
    bodies = "".join(body.format(n=n, a="") + "</body>" for n in ("p", "q", "r"))
    j = body.format(n="j", a=f' actuatorfrcrange="{ends}"') + body.format(n="k", a="")
    terms = '<joint joint="p" coef="1"/><joint joint="q" coef="1"/>'
    motors = '<motor name="m" joint="j" gear="2"/><motor name="n" joint="j" forcerange="-9 9"/>'
    return (
        f"<mujoco><worldbody>{bodies}{j}</body></body></worldbody>"
        f'<tendon><fixed name="t">{terms}</fixed></tendon>'
        '<equality><connect body1="q" body2="r" anchor="0 0 1"/></equality>'
        f'<actuator>{motors}<motor name="o" tendon="t" forcerange="-1 1"/></actuator></mujoco>'
    )


@pytest.mark.filterwarnings("error::robomodel.errors.DescriptionWarning")
def test_ties_of_other_joints_leave_what_motors_give_together() -> None:
    text = beside("-10 8")
    model = rm.load(text)
    assert [x.effort_limit for x in model.actuators][1] == 9.0
    at = model.dof_names.index("j")
    least, most = (x[at] for x in rm.torque_limits(model, model.neutral()))
    joint = mujoco.MjModel.from_xml_string(text).joint("j").dofadr[0]
    assert (least, most) == (given(text)[:, joint].min(), given(text)[:, joint].max()) == (-10, 8)
    tied = rm.load(text.replace('body1="q"', 'body1="k"'))
    assert [x.effort_limit for x in tied.actuators][1] == 9.0


@pytest.mark.filterwarnings("error::robomodel.errors.DescriptionWarning")
def test_uneven_limits_of_joints_with_differentials_are_no_clamps() -> None:
    one = '<joint name="{j}"><role>{r}</role></joint>'
    ends = one.format(j="j", r="joint1") + one.format(j="k", r="joint2")
    motors = "".join(f'<actuator name="{n}"><role>actuator{n}</role><motor effort="9"/></actuator>'
                     for n in (1, 2))  # fmt: skip
    model = rm.load(robot(
        link("a"), link("c"), joint("j", "base", "a", more='<limit effort="8" effort_lower="-3"/>'),
        joint("k", "a", "c"),
        f'<transmission name="t"><type>DifferentialTransmission</type>{ends}{motors}</transmission>'
    ))  # fmt: skip
    stream = io.StringIO()
    rm.write_mjcf(model, stream)
    again = rm.load(stream.getvalue())
    (j, _) = again.joints
    assert (j.least_effort, j.effort_limit) == (-3.0, 8.0)
    for each in (model, again):
        assert rm.torque_limits(each, each.neutral())[1][0] == 18.0
    assert "actuatorfrcrange" not in stream.getvalue()


@pytest.mark.parametrize(("limit", "motor"), [(10.0, 4.0), (10.0, 2.0), (0.0, 4.0)])
def test_a_joint_limits_its_single_motor(limit: float, motor: float) -> None:
    """Its own limit, if it has one, is that of MuJoCo, where this is written, of rows and trees."""
    more = f'<limit lower="-2" upper="2" effort="{limit}" velocity="9"/>'
    gear = '<actuator name="m"><mechanicalReduction>-5</mechanicalReduction>'
    model = rm.load(robot(
        link("a"), joint("j", "base", "a", kind="revolute", more=more),
        '<transmission name="t"><type>transmission_interface/SimpleTransmission</type>'
        f'<joint name="j"/>{gear}<motor effort="{motor}"/></actuator></transmission>',
    ))  # fmt: skip
    end = min(limit, 5.0 * motor) if limit else 5.0 * motor
    stream, q = io.StringIO(), model.neutral()
    rm.write_mjcf(model, stream)
    np.testing.assert_allclose(sorted(np.ravel(given(stream.getvalue()))), (-end, end))
    for options in ({}, NUMPY, {"losses": "forward"}):
        np.testing.assert_allclose(np.ravel(rm.torque_limits(model, q, **options)), (-end, end))
    np.testing.assert_allclose(rm.compile(model, "torque_limits")(q, [0.0])[1], end)
    np.testing.assert_allclose(sorted(np.ravel(rm.torque_polytope(model, q, "j"))), (-end, end))
    assert rm.dynamics.saturate(model, q, [0.0], [99.0])[0] == pytest.approx(end)
    assert rm.actuation(model).joints[0].limits.effort == pytest.approx(end)
    task = JointTask(["j"])
    control = InverseDynamics(model, task, limits="actuator")
    _, u, _ = control(q, np.zeros(1), {task: [1e5]})
    assert u == pytest.approx(-0.2 * end)


@pytest.mark.parametrize("seed", range(4))
def test_limits_of_efforts_at_speed_are_linear_programmes(seed: int) -> None:
    """Motors with velocity limits on a joint and its mimics, with limits of their own or none."""
    rng = np.random.default_rng(seed)
    ratios = {"a": 1.0, "b": -2.0, "c": 0.5}
    ends = {name: float(rng.choice([0.0, rng.uniform(5.0, 25.0)], p=[0.2, 0.8])) for name in ratios}
    parts, motors = [], []
    for name, ratio in ratios.items():
        tie = f'<mimic joint="a" multiplier="{ratio}"/>' if name != "a" else ""
        more = f'<limit lower="-2" upper="2" effort="{ends[name]}" velocity="99"/>{tie}'
        parts += [link(name), joint(name, "base", name, kind="revolute", more=more)]
    for n, name in enumerate(rng.choice(list(ratios), 4).tolist()):
        gear, most, fastest = rng.choice([1.0, -3.0]), rng.uniform(2.0, 20.0), rng.uniform(1.0, 4.0)
        motors.append((name, gear, most, fastest))
        parts.append(
            f'<transmission name="m{n}"><type>transmission_interface/SimpleTransmission</type>'
            f'<joint name="{name}"/><actuator name="m{n}"><mechanicalReduction>{gear}'
            f'</mechanicalReduction><motor effort="{most}" velocity="{fastest}"/></actuator>'
            "</transmission>"
        )
    model = rm.load(robot(*parts))
    b = np.array([gear * ratios[name] for name, gear, *_ in motors])
    rows = [np.array([gear * (name == at) for name, gear, *_ in motors]) for at in ratios]
    driven = {name for name, *_ in motors}
    rows = [b if at == "a" and at not in driven else row
            for at, row in zip(ratios, rows, strict=True)]  # fmt: skip
    for speed in (0.0, 0.6, -1.4):
        rates = (b * speed).tolist()
        bounds = [(-most if -rate <= fastest else 0.0, most if rate <= fastest else 0.0)
                  for rate, (_, _, most, fastest) in zip(rates, motors, strict=True)]  # fmt: skip
        held = [(row, ends[at]) for at, row in zip(ratios, rows, strict=True) if ends[at]]
        matrix = np.array([sign * row for row, _ in held for sign in (1.0, -1.0)])
        most = np.repeat([end for _, end in held], 2)
        expected = [
            sign * linprog(sign * b, matrix if held else None, most if held else None,
                           bounds=bounds).fun for sign in (1.0, -1.0)
        ]  # fmt: skip
        for options in ({}, NUMPY):
            found = np.ravel(rm.torque_limits(model, [0.0], [speed], **options))
            assert found == pytest.approx(expected, abs=1e-9)
        corners = np.ravel(rm.torque_polytope(model, [0.0], "a", [speed]))
        assert sorted(corners) == pytest.approx(expected, abs=1e-9)


def test_odd_ranges_of_motors_on_tendons_are_told_once() -> None:
    """Each motor's range is looked at for every joint that others pull, too."""
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    motors = "".join(
        f'<motor name="{name}" tendon="{name}" ctrlrange="1 3" ctrllimited="true"/>'
        for name in ("m", "n")
    )
    text = f"""<mujoco><worldbody><body>{inertial}<joint name="a" actuatorfrcrange="-5 5"/>
      <body>{inertial}<joint name="b" axis="1 0 0" actuatorfrcrange="-5 5"/></body></body>
      </worldbody><tendon><fixed name="m"><joint joint="a" coef="1"/><joint joint="b" coef="1"/>
      </fixed><fixed name="n"><joint joint="a" coef="1"/><joint joint="b" coef="-1"/></fixed>
      </tendon><actuator>{motors}</actuator></mujoco>"""
    with pytest.warns(rm.DescriptionWarning) as caught:
        rm.load(text)
    (told,) = [str(each.message) for each in caught if "does not hold zero" in str(each.message)]
    assert told.count("'m'") == told.count("'n'") == 1
