"""The open tree with reflected inertia between joints, its file, and what corrects its motion."""

from __future__ import annotations

import io
import runpy
import warnings
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from agreement import in_world, spanning
from cases import few
from mujoco_oracle import MujocoSide, motions
from texts import coupling, four_bar, joint, link, loop, robot

import robomodel as rm

SPUN = (
    '<inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="2e-4" ixy="0" ixz="0" '
    'iyz="0"/></inertial>'
)


def differential(below: str, base: str = "") -> str:
    """Two joints about one axis, and two motors that drive both, on what carries them."""
    return robot(
        base, link("a"), link("b"), link("m", SPUN), link("n", SPUN),
        joint("j", below, "a", mark=True), joint("k", "a", "b", "0.3 0 0", mark=True),
        joint("jm", below, "m", "0.1 0 0", more='<motor effort="0.5"/>'),
        joint("jn", below, "n", "0.2 0 0", more='<motor effort="0.7" velocity="20"/>'),
        coupling("m_gear", {"jm": 1.0, "j": -6.0, "k": -4.0}),
        coupling("n_gear", {"jn": 1.0, "j": -5.0, "k": 7.0}),
    )  # fmt: skip


FLOATING = joint("free", "base", "trunk", kind="floating") + link("trunk")
WHOLE = (
    differential("trunk", FLOATING)
    .replace("</robot>", "")
    + link("ball") + joint("shoulder", "b", "ball", "0 0 -0.4", kind="spherical")
    + link("crank") + link("coupler") + link("rocker")
    + joint("j_crank", "trunk", "crank")
    + joint("j_coupler", "crank", "coupler", "0.5 0 0",
            more='<dynamics damping="0.1" spring_stiffness="2"/>')
    + joint("j_rocker", "trunk", "rocker", "1.1 0 0")
    + loop("closing", "revolute", "coupler", "rocker", "1 0 0", "0.7 0 0")
    + "</robot>"
)  # fmt: skip


def written(model: rm.Model, **options: Any) -> str:
    stream = io.StringIO()
    assert quiet(lambda: rm.write_mjcf(model, stream, approximate=True, **options)) == ()
    return stream.getvalue()


def quiet(make):
    """What this makes, of robots for which no tree will do, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def in_mujoco(tree: rm.Model, side: MujocoSide, q):
    """MuJoCo's velocities of the tree's, and its matrix of inertia in the tree's velocities."""
    T = motions(tree, side, q)
    zero = np.zeros(tree.nv)
    side.place(in_world(tree, spanning(tree, q, zero, zero)))
    mujoco.mj_forward(side.model, side.data)
    M = np.zeros((side.model.nv, tree.nv))
    for column, unit in zip(M.T, T.T, strict=True):
        result = np.zeros(side.model.nv)
        mujoco.mj_mulM(side.model, side.data, result, unit)
        column[:] = result
    return T, T.T @ M


@pytest.mark.slow_cases("belt_leg")
@pytest.mark.parametrize("name", few(["belt_leg", "tello", "five_bar", "whole"], "belt_leg"))
def test_the_written_tree_in_mujoco(name: str) -> None:
    """Its matrix, its actuators' moments; read back, both again."""
    model = rm.load(WHOLE) if name == "whole" else rm.robots.load(name)
    alone = {"followers": False}  # MuJoCo holds followers softly
    tree, text = quiet(lambda: (rm.approximate_tree(model, **alone), written(model, **alone)))
    assert not tree.loops
    assert tree.nv == model.nv
    side, again = MujocoSide.of(text), rm.load(text)
    assert not side.model.neq
    q = tree.random_configuration(np.random.default_rng(0))
    T, M = in_mujoco(tree, side, q)
    np.testing.assert_allclose(M, rm.crba(tree, q, backend="numpy"), atol=1e-12 * np.max(M))
    moments = np.zeros((side.model.nu, side.model.nv))
    for row, moment in enumerate(moments):
        side.data.ctrl[:] = np.eye(side.model.nu)[row]
        side.model.actuator_forcelimited[:] = side.model.actuator_ctrllimited[:] = 0
        mujoco.mj_forward(side.model, side.data)
        moment[:] = side.data.qfrc_actuator
    np.testing.assert_allclose(moments @ T, rm.actuator_map(tree, q).T, atol=1e-12)
    names = [each.name for each in model.actuators]
    assert [each.name for each in tree.actuators] == names
    assert [each.name for each in again.actuators] == names
    for each in (model, again):
        limits = [each.effort_limit for each in each.actuators]
        assert limits == [each.effort_limit for each in tree.actuators]
    np.testing.assert_allclose(
        np.linalg.eigvalsh(rm.crba(again, again.neutral(), backend="numpy")),
        np.linalg.eigvalsh(rm.crba(tree, tree.neutral(), backend="numpy")),
        atol=1e-12 * np.max(M),
    )


def test_rotors_on_the_base_are_exact() -> None:
    """Whatever the configuration; motors pull the tendons that are their rotors' inertia."""
    model = rm.load(differential("base"))
    tree = rm.approximate_tree(model)
    side = MujocoSide.of(text := written(model))
    q = model.random_configuration(np.random.default_rng(1))
    _, M = in_mujoco(tree, side, q)
    np.testing.assert_allclose(M, rm.crba(model, q, backend="numpy"), rtol=1e-12)
    assert tree.dof_names == model.dof_names
    assert side.model.tendon_armature.tolist() == [2e-4, 2e-4]
    assert side.model.actuator_trntype.tolist() == [3, 3]  # tendons
    assert text.count('forcerange="-0.5 0.5"') == 1
    exact = rm.load(text)
    stream = io.StringIO()
    assert rm.write_mjcf(exact, stream) == ()  # an exact file keeps the tendons' armature
    assert MujocoSide.of(stream.getvalue()).model.tendon_armature.tolist() == [2e-4, 2e-4]
    for write in (rm.write_urdf, rm.write_sdf):
        with pytest.warns(rm.DescriptionWarning, match="-0.0022 kg m² between j and k"):
            write(model, io.StringIO(), approximate=True)


@pytest.mark.slow
@pytest.mark.parametrize("passive", [pytest.param(False, marks=pytest.mark.slow), True])
def test_corrected_trees_move_as_the_robot(passive: bool) -> None:
    """In MuJoCo: a floating base, a differential on it, a ball joint, a four-bar with a spring."""
    model = rm.load(WHOLE)
    alone = {"followers": False}  # MuJoCo holds followers softly
    tree, text = quiet(lambda: (rm.approximate_tree(model, **alone), written(model, **alone)))
    side = MujocoSide.of(text)
    rng = np.random.default_rng(2)
    q = np.stack([model.random_configuration(rng) for _ in range(3)])
    v, tau = rng.normal(size=(2, 3, model.nv))
    a = rm.aba(model, q, v, tau, passive=passive, backend="numpy")
    correction = rm.correction_force(model, q, v, tau, tree=tree, passive=passive, backend="numpy")
    assert correction.shape == (3, tree.nv)
    kept = ("free", "j", "k", "shoulder", "j_crank")
    assert tuple(name for name in tree.joint_names if name in model.joint_names) == kept
    rows = [i for name in kept for i in model.nodes[model.joint_names.index(name)].freedoms]
    for n in range(3):
        G = model.constraint_jacobian(q[n])[rows]
        T = motions(model, side, q[n])  # MuJoCo's velocities of the robot's
        forces = np.linalg.solve(G.T, tau[n]) + correction[n]
        side.place(in_world(model, spanning(model, q[n], v[n], a[n])))
        expected = side.data.qacc.copy()
        side.data.qfrc_applied[:] = np.linalg.lstsq(T.T, G.T @ forces, rcond=None)[0]
        side.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        for flag in ("SPRING", "DAMPER"):
            bit = int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
            side.model.opt.disableflags &= ~bit
            side.model.opt.disableflags |= 0 if passive else bit
        mujoco.mj_forward(side.model, side.data)
        np.testing.assert_allclose(
            side.data.qacc, expected, atol=1e-9 * np.max(np.abs(expected)), rtol=0
        )


@pytest.mark.slow
def test_correction_elsewhere() -> None:
    """Zero where the tree is exact; compiled, one state and a batch; arguments that do not fit."""
    model = rm.load(differential("base"))
    rng = np.random.default_rng(3)
    q, v, tau = rng.normal(size=(3, 4, model.nv))
    np.testing.assert_allclose(rm.correction_force(model, q, v, tau), 0.0, atol=1e-12)
    bar = rm.load(four_bar())
    q = np.stack([bar.random_configuration(rng) for _ in range(4)])
    v, tau = rng.normal(size=(2, 4, 1))
    expected = rm.correction_force(bar, q, v, tau, backend="numpy")
    assert np.min(np.abs(expected)) > 1e-6
    np.testing.assert_allclose(rm.correction_force(bar, q, v, tau), expected, rtol=1e-9)
    np.testing.assert_allclose(rm.correction_force(bar, q[0], v[0], tau[0]), expected[0], rtol=1e-9)
    with pytest.raises(ValueError, match=r"v.*nv"):
        rm.correction_force(bar, q, v[:, :0], tau)
    with pytest.raises(TypeError, match="Model is needed"):
        rm.approximate_tree("robot.urdf")
    rod = loop("rod", "rod", "a", "b", "0.5 0 0.1", "0.6 0 0")
    balls = (joint(f"to_{x}", "base", x, f"{x == 'a':d} 0 0", kind="spherical") for x in "ab")
    two = rm.load(robot(link("a"), link("b"), *balls, rod))
    with pytest.raises(ValueError, match="that no whole joints of it have"):
        rm.approximate_tree(two)


@pytest.mark.slow
def test_the_example() -> None:
    """MuJoCo moves a four-bar knee as the adaptive method does, and not without the correction."""
    path = Path(__file__).parent.parent / "examples" / "corrected_mujoco.py"
    example = runpy.run_path(str(path))
    knee = rm.robots.load("planar_leg_linkage")
    plain, corrected = example["errors"](knee, np.array([0.1, 0.05]), 0.1, 1e-3)
    assert 1e-6 < plain < 1e-3
    assert corrected < 1e-9
