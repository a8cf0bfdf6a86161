"""Masses: placed, turned, centred; and whose turning changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import Oracle
from texts import joint, link, robot

import robomodel as rm


def wheel(inertia: str, at: str = "0 0 0.03") -> str:
    return f'<inertial><origin xyz="{at}"/><mass value="1.5"/><inertia {inertia}/></inertial>'


ROUND = 'ixx="0.02" iyy="0.02" izz="0.03" ixy="0" ixz="0" iyz="0"'

UNEVEN = 'ixx="0.01" iyy="0.02" izz="0.025" ixy="0.001" ixz="0.002" iyz="0.003"'


@pytest.mark.parametrize(
    ("inertial", "spins"),
    [
        (wheel(ROUND), True),
        (wheel(ROUND.replace('iyy="0.02"', 'iyy="0.021"')), False),
        (wheel(ROUND.replace('ixy="0"', 'ixy="0.003"')), False),
        (wheel(ROUND.replace('ixz="0"', 'ixz="0.003"')), False),
        (wheel(ROUND.replace('iyz="0"', 'iyz="0.003"')), False),
        (wheel(ROUND, "0.01 0 0.03"), False),
        (wheel(ROUND, "0 0.01 0.03"), False),
    ],
)
def test_only_a_round_wheel_may_turn_unseen(inertial: str, spins: bool) -> None:
    """A wheel on two arms: the dynamics feel its angle unless it is round about its axis."""
    text = robot(
        link("one"),
        link("two"),
        link("wheel", inertial),
        joint("a", "base", "one", axis="1 0 0"),
        joint("b", "one", "two", "0 0.3 0.1", axis="0 1 0"),
        joint("c", "two", "wheel", "0.1 0 0.2", axis="0 0 1"),
    )
    model, oracle = rm.load(text), Oracle(text)
    oracle.names = model.joint_names
    assert model.nodes[-1].axisymmetric is spins
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 3))
    there = oracle.state(dict(zip("abc", q, strict=True)))
    np.testing.assert_allclose(rm.crba(model, q), oracle.mass_matrix(there), rtol=1e-12, atol=1e-13)
    wanted = oracle.inverse(there, v, a)
    np.testing.assert_allclose(rm.rnea(model, q, v, a), wanted, rtol=1e-12, atol=1e-12)


def test_several_links_make_one_body() -> None:
    """Fixed links count with their places; the body is said in its first link's axes."""
    text = robot(
        link("arm"),
        link("tool", wheel(UNEVEN)),
        joint("j", "base", "arm", axis="0.6 0 0.8"),
        joint("bolt", "arm", "tool", "0.1 -0.2 0.3", kind="fixed", rpy="0.4 -0.5 0.6"),
    )
    model, oracle = rm.load(text), Oracle(text)
    q = np.array([0.3])
    there = oracle.state({"j": 0.3})
    np.testing.assert_allclose(rm.crba(model, q), oracle.mass_matrix(there), rtol=1e-12)
    body = model.bodies[0]
    assert body.mass == pytest.approx(oracle.mass(with_root=False))
    turned = rm.frame_pose(model, q, "arm")
    com = turned[:3, :3] @ body.com + turned[:3, 3]
    np.testing.assert_allclose(com, oracle.center_of_mass(there, with_root=False), atol=1e-13)
    inertia = np.array(body.inertia)
    np.testing.assert_allclose(inertia, inertia.T, atol=1e-16)
    axis, r = np.array([0.6, 0.0, 0.8]), np.array(body.com)
    about = axis @ inertia @ axis + body.mass * (r @ r - (axis @ r) ** 2)
    assert about == pytest.approx(rm.crba(model, q)[0, 0], rel=1e-12)
