"""Planned motions are the same whichever joints are independent."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from cases import few
from numpy.typing import NDArray
from test_excitation import BALL, is_sound, quickly

import robomodel as rm
from robomodel.identification import Excitation
from robomodel.identification.best_joints import in_best_joints

Array = NDArray[np.float64]

MOTORS = {
    "crank_rocker": {"crank_joint": 150.0},
    "five_bar": {"J1": 9.0, "J2": 9.0},
    "belt_leg": {f"{joint}_rotor_joint": 9.0 for joint in ("hip_ry", "knee", "ankle")},
    "tello": {
        f"{side}-{name}": 50.0
        for side in ("left", "right")
        for name in ("hip-clamp-to-hip-rotor-1", "hip-clamp-to-hip-rotor-2",
                     "thigh-to-knee-ankle-rotor-1", "thigh-to-knee-ankle-rotor-2")
    },
}  # fmt: skip
"""Motors of files that else infer them from their independent joints."""

CHOICES = [
    ("crank_rocker", ("rocker_joint",), {}),
    ("crank_rocker", ("coupler_joint",), {"criterion": "information"}),
    ("five_bar", ("J3", "J4"), {"velocity": {"J1": 3.0}}),
    ("five_bar", ("J2", "J4"), {"acceleration": {"J3": 20.0}}),
    ("parallel_ankle", ("left_motor", "right_motor"), {}),
    ("parallel_ankle", ("left_motor", "roll"), {}),
    ("parallel_ankle", ("right_rotor_joint", "pitch"), {}),
    ("belt_leg", ("hip_ry_link_joint", "knee_rotor_joint", "ankle_rotor_joint"), {}),
    ("belt_leg", ("hip_ry_rotor_joint", "knee_link_joint", "ankle_rotor_joint"),
     {"losses": True, "velocity": {"knee_link_joint": 4.0}}),
    ("tello", ("left-hip-clamp-to-gimbal", "left-gimbal-to-thigh"), {}),
    ("tello", ("left-thigh-to-knee-ankle-rotor-1", "left-thigh-to-shin"), {}),
]  # fmt: skip


def robot(name: str, joints: tuple[str, ...] = ()) -> rm.Model:
    """A shipped robot with these independent joints and its motors, with friction in its joints."""
    said = "".join(f'<joint name="{n}"><motor effort="{effort}"/></joint>'
                   for n, effort in MOTORS.get(name, {}).items())  # fmt: skip
    model = rm.load(rm.robots.path(name), extend=f'<robot name="x">{said}</robot>',
                    independent=joints or None, floating_base=False)  # fmt: skip
    names = [joint.name for joint in model.joints]
    return rm.with_parameters(model, {f"{n}.friction": 0.01 for n in names})


def joints_of(found: Excitation) -> dict[str, list[Array]]:
    """Positions, velocities and accelerations of all joints."""
    model, q, v, a = found.model, found.q, found.v, found.a
    kinds = (model.joint_positions(q), model.joint_velocities(q, v),
             model.joint_accelerations(q, v, a))  # fmt: skip
    return {name: [each[name] for each in kinds] for name in model.joint_names}


@cache
def as_filed(name: str, options: tuple[tuple[str, object], ...]) -> Excitation:
    return quickly(robot(name), **{key: dict(x) if isinstance(x, tuple) else x
                                   for key, x in options})  # fmt: skip


@pytest.mark.slow
@pytest.mark.tables_cases("tello-joints9-options9")
@pytest.mark.parametrize(("name", "joints", "options"), few(CHOICES, CHOICES[0], CHOICES[4]))
def test_the_plan_is_the_same(
    name: str, joints: tuple[str, ...], options: dict[str, object]
) -> None:
    """Motions, powers, conditions and limits of joints; forces are those of the file's joints."""
    kept = tuple((key, tuple(x.items()) if isinstance(x, dict) else x)
                 for key, x in options.items())  # fmt: skip
    filed, model = as_filed(name, kept), robot(name, joints)
    assert {*joints} <= {*model.dof_names} != {*filed.model.dof_names}
    assert [each.rows for each in model.actuators] == [x.rows for x in filed.model.actuators]
    found = quickly(model, **options)
    is_sound(found)
    mine, its = joints_of(found), joints_of(filed)
    for joint in model.joint_names:
        for one, other in zip(mine[joint], its[joint], strict=True):
            np.testing.assert_allclose(
                one, other, rtol=0.0, atol=1e-8 * (1.0 + np.abs(other).max())
            )
    power, wanted = (np.sum(x.tau * x.v, axis=1) for x in (found, filed))
    np.testing.assert_allclose(power, wanted, rtol=0.0, atol=1e-8 * np.abs(wanted).max())
    assert found.condition == pytest.approx(filed.condition, rel=1e-8)
    assert found.information == pytest.approx(filed.information, rel=1e-8)
    assert [str(each) for each in found.limits] == [str(each) for each in filed.limits]


def test_dead_points_of_the_files_joint_are_passed_where_motors_drive_on() -> None:
    """The rocker turns back while the crank turns on; without a motor at the crank that is said."""
    found = quickly(robot("crank_rocker", ("rocker_joint",)))
    rates = joints_of(found)
    crank, rocker = rates["crank_joint"][1], rates["rocker_joint"][1]
    turns = np.flatnonzero(np.sign(rocker[1:]) != np.sign(rocker[:-1]))
    assert np.any(np.sign(crank[turns]) * np.sign(crank[turns + 1]) > 0.0)
    assert not [note for note in found.notes if "dead points" in note]
    alone = quickly(rm.load(rm.robots.path("crank_rocker"), independent="rocker_joint"))
    assert any("passes dead points of 'rocker_joint'" in note for note in alone.notes)


@pytest.mark.slow
def test_what_is_held_stays_independent() -> None:
    """And what moves beside it is the best conditioned of the others."""
    model = rm.load(rm.robots.path("five_bar"), independent=("J3", "J4"))
    best = in_best_joints(model, ("J3",))
    assert best.dof_names == ("J3", "J2")
    found = quickly(model, joints="J4")
    is_sound(found)
    at = joints_of(found)
    assert np.ptp(at["J3"][0]) < 1e-12
    assert np.ptp(at["J2"][0]) > 0.1
    ball = rm.load(BALL)
    assert in_best_joints(ball) is ball
