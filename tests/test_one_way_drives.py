"""Drives that are not the same both ways: limits of effort and velocity below and above."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from texts import joint, link, robot

import robomodel as rm

LIMIT = (
    '<limit lower="-2" upper="2" effort="9" effort_lower="-4" velocity="2" velocity_lower="-3"/>'
)
HINGE = '<axis xyz="0 1 0"/>'


def arm(more: str = LIMIT, extra: str = "", kind: str = "revolute") -> str:
    """A hinge with these limits, and a free one behind it."""
    return robot(
        link("a") + link("b")
        + joint("j", "base", "a", axis="0 1 0", kind=kind, more=more)
        + joint("k", "a", "b", "0 0 1", axis="0 1 0", kind="revolute",
                more='<limit lower="-1" upper="1"/>')
        + extra
    )  # fmt: skip


TRANSMISSION = """<transmission name="t"><type>transmission_interface/SimpleTransmission</type>
<joint name="j"/><actuator name="m"><mechanicalReduction>{}</mechanicalReduction>{}</actuator>
</transmission>"""


def test_limits_of_a_joint_are_those_of_its_actuator_by_the_sign_of_the_gear() -> None:
    model = rm.load(arm())
    np.testing.assert_array_equal(model.effort_lower, [-4.0, -math.inf])
    np.testing.assert_array_equal(model.velocity_lower, [-3.0, -math.inf])
    (own,) = model.actuators
    assert (own.least_effort, own.effort_limit) == (-4.0, 9.0)
    (geared,) = rm.load(arm(extra=TRANSMISSION.format(-2, ""))).actuators
    assert (geared.least_effort, geared.effort_limit) == (-4.5, 2.0)
    assert (geared.least_velocity, geared.velocity_limit) == (-4.0, 6.0)
    motor = '<motor effort="1" effort_lower="0"/>'
    pulls = rm.load(arm(extra=TRANSMISSION.format(-2, motor)))
    np.testing.assert_allclose(
        [x[0] for x in rm.torque_limits(pulls, pulls.neutral())], [-2.0, 0.0], atol=1e-300
    )


MOTOR = """<motor effort="9" effort_lower="-4" velocity="2" velocity_lower="-3"
stall_torque="12" no_load_speed="3.5"/>"""


@pytest.mark.parametrize("reduction", [5, -5])
def test_a_motor_of_a_joint_is_that_of_the_joint_whichever_way_its_gear_turns(
    reduction: int,
) -> None:
    """Its numbers are the joint's, so that a reduction changes nothing at the joint."""
    own, geared = rm.load(arm(MOTOR)), rm.load(arm(MOTOR, TRANSMISSION.format(reduction, "")))
    stream = io.StringIO()
    rm.write_mjcf(geared, stream, drop=True)
    written = rm.load(stream.getvalue())
    for rate in (-3.5, -1.0, 0.0, 1.0, 2.5):
        least, greatest = rm.torque_limits(own, own.neutral(), [rate, 0.0])
        for model in (geared, written):
            found = rm.torque_limits(model, model.neutral(), [rate, 0.0])
            assert (found[0][0], found[1][0]) == pytest.approx((least[0], greatest[0]))


@pytest.mark.parametrize("ratio", [7, -7])
@pytest.mark.parametrize(
    ("motor", "limit"),
    [
        ('effort="3" effort_lower="-1" velocity="180" velocity_lower="-90"', ""),
        ('effort="3" effort_lower="0"', ""),  # turned about, it gives nothing ahead
        ("", '<limit lower="-2" upper="2" effort="0" velocity="0"/>'),
        ("", '<limit lower="-2" upper="2" effort="0" velocity="5"/>'),
    ],
)
def test_open_trees_have_the_curve_of_a_motor_behind_its_gear(
    ratio: int, motor: str, limit: str
) -> None:
    """What the joint's motor gives it at each rate, in the robot and in the file of its tree."""
    motor = f'<motor stall_torque="4" no_load_speed="210" {motor}/>'
    model = rm.load(arm(f'<rotor inertia="1e-4" ratio="{ratio}"/>{motor}{limit}'))
    for write in (rm.write_urdf, rm.write_sdf):
        stream = io.StringIO()
        write(model, stream, approximate=True)
        tree = rm.load(stream.getvalue())
        for rate in (-20.0, -10.0, 0.0, 10.0, 20.0):
            (least, most), (its_least, its_most) = (
                rm.torque_limits(each, each.neutral(), [rate, 0.0]) for each in (model, tree)
            )
            assert (its_least[0], its_most[0]) == pytest.approx((least[0], most[0]))


def test_limits_change_places_with_the_sign_of_a_ratio() -> None:
    """Of a joint's limits, by parameters of its gear: those of the file with that ratio."""
    from robomodel.dynamics.algorithm import run

    text = arm(LIMIT + '<rotor inertia="1e-4" ratio="{}"/>')
    model = rm.load(text.format(2))
    for ratio in (4.0, -4.0, -2.0):
        other = rm.load(text.format(ratio))
        given = {"j_rotor.j": rm.parameters(other, geometry=True)["j_rotor.j"]}
        (own,), (moved,) = other.actuators, rm.with_parameters(model, given).actuators
        for each in ("effort_lower", "effort_limit", "velocity_lower", "velocity_limit"):
            assert getattr(moved, each) == pytest.approx(getattr(own, each)), (ratio, each)
        state = {"q": model.neutral(), "v": np.zeros(2)}
        _, least, most, _ = run(model, "motors", state, parameters=given)
        assert (least[0], most[0]) == pytest.approx((own.least_effort, own.effort_limit))


@pytest.mark.parametrize("backend", ["numpy", None])
def test_forces_are_within_both_limits_at_rates_within_both(backend: str | None) -> None:
    """Driving force ends at the limit of its way; braking force is whole beyond it."""
    model = rm.load(arm(), floating_base=True)
    more = {} if backend is None else {"backend": backend}
    q, v = np.tile(model.neutral(), (4, 1)), np.zeros((4, model.nv))
    v[:, 6] = [-3.5, -2.5, 1.5, 2.5]
    least, greatest = rm.torque_limits(model, q, v, **more)
    np.testing.assert_array_equal(least[:, 6], [0.0, -4.0, -4.0, -4.0])
    np.testing.assert_array_equal(greatest[:, 6], [9.0, 9.0, 9.0, 0.0])
    tau = np.zeros((4, model.nv))
    tau[:, 6], tau[:, 0] = [-20.0, -20.0, 20.0, 20.0], 1.0
    given, _, lost = rm.dynamics.saturate(model, q, v, tau, **more)
    np.testing.assert_allclose(given[:, 6], [0.0, -4.0, 9.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(given[:, 6] + lost[:, 0], tau[:, 6])
    np.testing.assert_array_equal(given[:, 0], 1.0)  # a push on the base


def test_a_motion_is_driven_less_one_way_than_the_other() -> None:
    model = rm.load(arm(), gravity=(0.0, 0.0, 0.0))
    ends = []
    for wanted in (20.0, -20.0):
        motion = rm.simulate(
            model,
            [0.0, 0.0],
            tau=[wanted, 0.0],
            duration=0.01,
            step=1e-3,
            saturate=True,
        )
        ends.append(motion.v[-1, 0])
    assert ends[0] / ends[1] == pytest.approx(-9.0 / 4.0, rel=1e-3)


def test_polytopes_and_open_trees_have_both_limits() -> None:
    model = rm.load(arm(extra='<transmission name="d"><type>DifferentialTransmission</type>'
                        '<joint name="j"><role>joint1</role></joint>'
                        '<joint name="k"><role>joint2</role></joint>'
                        '<actuator name="l"><role>actuator1</role>'
                        '<motor effort="3" effort_lower="-1"/></actuator>'
                        '<actuator name="r"><role>actuator2</role><motor effort="2"/></actuator>'
                        '</transmission>'))  # fmt: skip
    corners = rm.torque_polytope(model, model.neutral(), ["j", "k"])
    expected = {(u + w, u - w) for u in (-1.0, 3.0) for w in (-2.0, 2.0)}  # tau = Bᵀ (u, w)
    assert {(round(x, 9), round(y, 9)) for x, y in corners} == expected
    one = rm.load(arm())
    (row, _) = rm.actuation(one).joints
    assert (row.limits.effort_lower, row.limits.velocity_lower) == (-4.0, -3.0)
    assert "-4 to 9 N m" in str(rm.actuation(one))


@pytest.mark.parametrize("way", ['effort_lower="0"', 'velocity_lower="0"'])
@pytest.mark.parametrize("ratio", [7, -7])
def test_a_motor_that_pushes_one_way_pushes_its_joint_alone(ratio: int, way: str) -> None:
    """Limits are those of torques at rest and, at rates, of its open tree, in which it brakes."""
    motor = f'<motor effort="4" velocity="180" {way}/>'
    model = rm.load(arm(f'<rotor inertia="1e-4" ratio="{ratio}"/>{motor}'))
    (row,) = (each for each in rm.actuation(model).joints if each.actuators)
    least, greatest = (each[0] for each in rm.torque_limits(model, model.neutral(), [0.0, 0.0]))
    assert (least, greatest) == ((0.0, 28.0) if ratio > 0 else (-28.0, 0.0))
    ends = (least, greatest) if way.startswith("effort") else (-28.0, 28.0)
    assert (row.limits.least_effort, row.limits.effort) == pytest.approx(ends)
    for write in (rm.write_urdf, rm.write_sdf, rm.write_usd, rm.write_mjcf):
        stream = io.StringIO()
        write(model, stream, approximate=True, drop=True)
        tree = rm.load(stream.getvalue())
        for rate in (-30.0, -1.0, 0.0, 1.0, 30.0):
            one, other = (rm.torque_limits(x, x.neutral(), [rate, 0.0]) for x in (model, tree))
            np.testing.assert_allclose(np.ravel(other), np.ravel(one), rtol=1e-12)
    assert not row.passive
    assert "-0 " not in str(rm.actuation(model))


def test_a_motor_without_effort_is_not_one_too_few() -> None:
    more = '<rotor inertia="1e-4" ratio="-7"/><limit lower="-2" upper="2" effort="0" velocity="0"/>'
    study = rm.actuation(rm.load(arm(more)))
    assert not study.joints[0].passive
    assert "too few" not in str(study)
    assert "-0 " not in str(study)


def test_files_keep_both_limits() -> None:
    """Written and read; an extension changes one; MJCF has no words for speeds, and says so."""
    model = rm.load(arm())
    for write in (rm.write_urdf, rm.write_sdf):
        stream = io.StringIO()
        write(model, stream)
        again = rm.load(stream.getvalue())
        assert rm.compare(model, again).same
        assert (again.effort_lower[0], again.velocity_lower[0]) == (-4.0, -3.0)
    with pytest.raises(rm.DescriptionError, match="velocity_lower of the joint 'j'"):
        rm.write_mjcf(model, io.StringIO())
    stream = io.StringIO()
    rm.write_mjcf(model, stream, drop=True)
    assert rm.load(stream.getvalue()).effort_lower[0] == -4.0
    changed = rm.load(arm(), extend='<robot name="e"><joint name="j"><limit lower="-2" upper="2" '
                      'effort="9" effort_lower="-5" velocity="2" velocity_lower="-3"/></joint>'
                      "</robot>")  # fmt: skip
    (found,) = (x for x in rm.compare(model, changed).differences if x.kind == "joint")
    assert (found.quantity, found.a, found.b) == ("effort_lower", -4.0, -5.0)


@pytest.mark.slow
def test_usd_keeps_both_limits() -> None:
    pytest.importorskip("pxr")
    model, stream = rm.load(arm()), io.StringIO()
    rm.write_usd(model, stream)
    assert rm.compare(model, rm.load(stream.getvalue())).same


def test_controllers_and_excitations_keep_to_both_limits() -> None:
    from robomodel.control.limits import limits_of

    model = rm.load(arm())
    (speed,) = limits_of(model, ["velocity"], ("velocity",), tangent=False).quantities
    assert (speed.lower, speed.upper) == (-3.0, 2.0)
    assert [x.limit for x in model.check(model.neutral(), np.array([-3.5, 0.0]))] == [-3.0]
    assert not model.check(model.neutral(), np.array([-2.5, 0.0]))


def test_wrong_limits_are_refused() -> None:
    with pytest.raises(rm.DescriptionError, match="effort_lower of <limit> is 4; it is zero or"):
        rm.load(arm('<limit lower="-2" upper="2" effort="9" effort_lower="4"/>'))
    with pytest.raises(rm.DescriptionError, match="spherical joint has no single velocity"):
        rm.load(arm('<limit effort="9" effort_lower="-4"/>', kind="spherical"))
