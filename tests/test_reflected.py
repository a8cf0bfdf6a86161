"""Open trees for simulators: damping, friction and springs of what is locked act on what moves."""

from __future__ import annotations

import numpy as np
import pytest
from test_passive import spring, sprung, states
from texts import coupling, four_bar, joint, link, loop, robot

import robomodel as rm

WHEEL = (
    '<inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="2e-4" ixy="0" ixz="0" '
    'iyz="0"/></inertial>'
)
GEARED = robot(
    link("a"), link("b"),
    joint("j", "base", "a", more=sprung(0.3, 5.0, 0.2)
          + '<rotor inertia="1e-4" ratio="-9" damping="0.002" friction="0.01"/>'),
    joint("k", "a", "b", "0.3 0 0", axis="0 1 0"),
)  # fmt: skip
BELT = robot(
    link("a"), link("b"), link("wheel", WHEEL),
    joint("j", "base", "a"), joint("k", "a", "b", "0.3 0 0"),
    joint("w", "base", "wheel", more=sprung(0.5, 3.0, 0.1)).replace(
        "<dynamics ", '<dynamics friction="0.2" '),
    coupling("belt", {"w": 1.0, "j": -2.0, "k": -3.0}, 0.3),
)  # fmt: skip


@pytest.fixture(params=[rm.write_urdf, rm.write_sdf, rm.write_mjcf])
def opened(request: pytest.FixtureRequest, tmp_path):
    """The open tree of a text, written and read back, and its model."""

    def made(text: str) -> tuple[rm.Model, rm.Model]:
        model = rm.load(text)
        request.param(model, tmp_path / "out.xml", approximate=True)
        return model, rm.load(tmp_path / "out.xml")

    return made


def test_rotors(opened) -> None:
    model, tree = opened(GEARED)
    q, v = states(model)
    assert tree.dof_names == model.dof_names
    np.testing.assert_allclose(
        rm.passive_force(tree, q, v), rm.passive_force(model, q, v), rtol=1e-12
    )
    (moved,) = (each for each in tree.description.joints if each.name == "j")
    assert moved.damping == pytest.approx(0.3 + 81 * 0.002)
    assert moved.friction == pytest.approx(9 * 0.01)
    assert moved.stiffness == 5.0


@pytest.mark.filterwarnings("ignore:.*over several joints")
@pytest.mark.filterwarnings("ignore:.*reflected inertia between joints")
def test_what_several_joints_move(opened) -> None:
    """A wheel's damper, friction and spring on the sum 2 j + 3 k, in words or as a tendon."""
    model, tree = opened(BELT)
    assert any(isinstance(x, rm.description.JointSpring) for x in tree.description.springs)
    q, v = states(model)
    tau = rm.passive_force(model, q, v)
    names = tree.dof_names  # which need not be the joints that are independent in the robot
    rates = model.joint_velocities(q, v)
    places = [model.joint_positions(each) for each in q]
    at = np.array([[place[name] for name in names] for place in places])
    speed = np.stack([rates[name] for name in names], axis=-1)
    power = np.sum(tau * v, axis=-1)
    np.testing.assert_allclose(
        np.sum(rm.passive_force(tree, at, speed) * speed, axis=-1), power, rtol=1e-9
    )


@pytest.mark.slow_cases("write_urdf", "write_mjcf", "write_sdf")
def test_linkages_near_neutral(opened) -> None:
    """The force and its slopes in the crank are those of the linkage where the tree is locked."""
    between = spring("strut", ("base", "0.2 -0.3 0.1"), ("rocker", "0.3 0.1 0"),
                     'stiffness="40" length="0.4" damping="3"')  # fmt: skip
    closing = loop("closing", "revolute", "coupler", "rocker", "1 0 0", "0.7 0 0",
                   '<axis xyz="0 0 1"/>' + sprung(0.7, 6.0, 0.25))  # fmt: skip
    model, tree = opened(four_bar(between, closing=closing))
    assert model.nv == tree.nv == 1
    q = model.neutral()
    moved = model.joint_positions(q)[tree.dof_names[0]]
    rate = model.joint_velocities(q, [1.0])[tree.dof_names[0]]
    for v in (0.0, 1.0, -2.0):
        assert rm.passive_force(tree, [moved], [rate * v])[0] * rate == pytest.approx(
            rm.passive_force(model, q, [v])[0], rel=1e-9
        )


@pytest.mark.slow
def test_what_no_word_says(tmp_path) -> None:
    """A strut from the ground to a locked rocker of a four-bar that floats."""
    strut = spring(
        "strut", ("base", "0 0 0"), ("rocker", "0.3 0.1 0"), 'stiffness="40" length="0.4"'
    )
    model = rm.load(
        robot(
            link("trunk"), link("crank"), link("coupler"), link("rocker"),
            joint("free", "base", "trunk", kind="floating"), joint("j_crank", "trunk", "crank"),
            joint("j_coupler", "crank", "coupler", "0.5 0 0"),
            joint("j_rocker", "trunk", "rocker", "1.1 0 0"),
            loop("closing", "revolute", "coupler", "rocker", "1 0 0", "0.7 0 0"), strut,
        )
    )  # fmt: skip
    with pytest.warns(rm.DescriptionWarning, match="strut.*several freedoms"):
        rm.write_mjcf(model, tmp_path / "out.xml", approximate=True)
    belt = rm.load(BELT)
    with (
        pytest.warns(rm.DescriptionWarning, match="over several joints.*pass over: 'w'"),
        pytest.warns(rm.DescriptionWarning, match="0.0012 kg m² between j and k"),
    ):
        rm.write_urdf(belt, tmp_path / "out.urdf", approximate=True)


def test_writing_leaves_names_alone() -> None:
    """No module that writing imports stands in the way of a function of the package."""
    import io

    import robomodel.dynamics

    rm.write_urdf(rm.load(GEARED), io.StringIO(), approximate=True)
    for name in robomodel.dynamics.__all__:
        assert callable(getattr(robomodel.dynamics, name)), name
