"""Impacts: Newton's law at the contacts, momentum, energy, and a solution with multipliers."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
from cases import few
from mechanisms import KINDS, random_mechanism
from numpy.typing import NDArray
from texts import joint, link, robot

import robomodel as rm

Array = NDArray[np.float64]
FEET = [f"{leg}_foot_contact" for leg in ("FR", "FL", "HR", "HL")]
TIGHT = 1e-10


def velocities(model: rm.Model, q: Array, v: Array, points: list) -> Array:
    """Of the points, in world axes: (k, 3)."""
    found = []
    for at in points:
        rotation = rm.frame_pose(model, q, at, backend="numpy")[:3, :3]
        found.append(rotation @ rm.frame_velocity(model, q, v, at, backend="numpy")[3:])
    return np.array(found)


def world_jacobian(model: rm.Model, q: Array, points: list) -> Array:
    """(3k, nv)."""
    parts = []
    for at in points:
        rotation = rm.frame_pose(model, q, at, backend="numpy")[:3, :3]
        parts.append(rotation @ rm.jacobian(model, q, at, backend="numpy")[3:])
    return np.concatenate(parts)


def state(model: rm.Model, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return model.random_configuration(rng, base_pose="random"), rng.standard_normal(model.nv)


def with_multipliers(mass: Array, v: Array, rows: Array, wanted: Array) -> tuple[Array, Array]:
    """(v⁺, λ) of M (v⁺ - v) = rowsᵀ λ and rows v⁺ = wanted, of least norm."""
    n, k = len(v), len(wanted)
    kkt = np.block([[mass, -rows.T], [rows, np.zeros((k, k))]])
    found = np.linalg.lstsq(kkt, np.concatenate([mass @ v, wanted]), rcond=1e-13)[0]
    return found[:n], found[n:]


def kinetic(model: rm.Model, q: Array, v: Array) -> float:
    return float(rm.energy(model, q, v, backend="numpy")[0])


# ---- Newton's law, momentum, energy --------------------------------------------------------------


@pytest.mark.slow_cases("points0")
@pytest.mark.parametrize(
    "points", few([FEET[:1], FEET[:2], FEET, [FEET[0], (FEET[1], (0.1, 0, 0.2))]], FEET[:1])
)
def test_feet_stop_and_momentum_balances(points: list) -> None:
    model = rm.robots.load("mini_cheetah")
    q, v = state(model, 0)
    after, impulses = rm.impulse(model, q, v, points)
    assert impulses.shape == (len(points), 3)
    assert np.max(np.abs(velocities(model, q, after, points))) < 1e-12

    change = rm.dynamics.centroidal_momentum(model, q, after) - rm.dynamics.centroidal_momentum(
        model, q, v
    )
    places = np.array([rm.frame_pose(model, q, at)[:3, 3] for at in points])
    arms = places - rm.center_of_mass(model, q)
    assert np.max(np.abs(change[3:] - impulses.sum(axis=0))) < 1e-11
    assert np.max(np.abs(change[:3] - np.cross(arms, impulses).sum(axis=0))) < 1e-11

    # all energy that is lost is what the impulses take: ½ λ·(c⁻ + c⁺)
    lost = kinetic(model, q, v) - kinetic(model, q, after)
    taken = -0.5 * np.sum(impulses * velocities(model, q, v, points))
    assert lost > 0
    assert abs(lost - taken) < TIGHT * lost


@pytest.mark.parametrize("points", few([FEET[:1], FEET[:3]], FEET[:1]))
def test_rebound_along_the_normal(points: list) -> None:
    model = rm.robots.load("mini_cheetah")
    q, v = state(model, 1)
    before = velocities(model, q, v, points)
    after, _ = rm.impulse(model, q, v, points, restitution=0.6)
    expected = before * [0, 0, -0.6]
    np.testing.assert_allclose(velocities(model, q, after, points), expected, atol=1e-12)

    slope = np.array([0.3, -0.2, 1.0])
    after, _ = rm.impulse(model, q, v, points, restitution=0.6, normals=slope)
    n = slope / np.linalg.norm(slope)
    expected = -0.6 * np.outer(before @ n, n)
    np.testing.assert_allclose(velocities(model, q, after, points), expected, atol=1e-12)


@pytest.mark.slow
def test_without_friction_only_normals_matter() -> None:
    model = rm.robots.load("mini_cheetah")
    q, v = state(model, 2)
    rng = np.random.default_rng(2)
    normals = rng.standard_normal((4, 3))
    unit = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    bounce = np.array([0.0, 0.3, 0.7, 1.0])
    after, impulses = rm.impulse(
        model, q, v, FEET, normals=normals, restitution=bounce, sticking=False
    )
    before = np.sum(unit * velocities(model, q, v, FEET), axis=1)
    left = np.sum(unit * velocities(model, q, after, FEET), axis=1)
    np.testing.assert_allclose(left, -bounce * before, atol=1e-12)
    assert np.max(np.abs(np.cross(impulses, unit))) < 1e-12

    start = kinetic(model, q, v)
    elastic, _ = rm.impulse(model, q, v, FEET, normals=normals, restitution=1.0, sticking=False)
    assert abs(kinetic(model, q, elastic) - start) < TIGHT * start
    for e in (0.0, 0.5, 0.9):
        after, _ = rm.impulse(model, q, v, FEET, normals=normals, restitution=e, sticking=False)
        assert kinetic(model, q, after) < start


def test_a_rod_dropped_on_its_end() -> None:
    """The textbook case, in closed form: a uniform rod falls flat, and its end strikes."""
    mass, length, speed = 2.0, 0.8, 3.0
    inertia = mass * length**2 / 12
    rod = (
        f'<robot name="rod"><link name="rod"><inertial><mass value="{mass}"/>'
        f'<inertia ixx="1e-4" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/>'
        "</inertial></link></robot>"
    )
    model = rm.load(rod, floating_base=True)
    v = np.array([0, 0, 0, 0, 0, -speed])
    for e in (0.0, 0.5):
        after, impulses = rm.impulse(
            model, model.neutral(), v, ("rod", (length / 2, 0, 0)), restitution=e
        )
        p = (1 + e) * mass * speed / 4
        np.testing.assert_allclose(impulses, [[0, 0, p]], atol=1e-13)
        turning = -p * length / 2 / inertia
        np.testing.assert_allclose(after, [0, turning, 0, 0, 0, p / mass - speed], atol=1e-13)


# ---- redundant contacts --------------------------------------------------------------------------


@pytest.mark.slow
def test_points_on_one_body_share_the_impulse_of_least_norm() -> None:
    model = rm.robots.load("mini_cheetah")
    q, v = state(model, 3)
    trunk = model.bodies[0].name
    corners = [(trunk, (x, y, -0.1)) for x in (-0.2, 0.2) for y in (-0.1, 0.1)]
    rows = world_jacobian(model, q, corners)
    assert np.linalg.matrix_rank(rows) == 6  # of twelve
    after, impulses = rm.impulse(model, q, v, corners)
    assert np.max(np.abs(velocities(model, q, after, corners))) < 1e-12
    kkt, _ = with_multipliers(rm.crba(model, q), v, rows, np.zeros(12))
    np.testing.assert_allclose(after, kkt, atol=1e-11)
    null = np.linalg.svd(rows.T)[2][6:]  # impulses that do nothing
    assert np.max(np.abs(rows.T @ null.T)) < 1e-12
    assert np.max(np.abs(null @ impulses.ravel())) < 1e-10 * np.max(np.abs(impulses))

    # the same point twice: half each
    once = rm.impulse(model, q, v, FEET[:1])
    twice = rm.impulse(model, q, v, [FEET[0], FEET[0]])
    np.testing.assert_allclose(twice[0], once[0], atol=1e-12)
    np.testing.assert_allclose(twice[1], np.repeat(once[1] / 2, 2, axis=0), atol=1e-12)


@pytest.mark.slow
def test_two_points_on_a_line_of_one_body() -> None:
    """Five conditions in six rows; contacts on the fixed base feel nothing."""
    model = rm.robots.load("mini_cheetah")
    q, v = state(model, 4)
    points = [(FEET[0], (0, 0, 0)), (FEET[0], (0.0, 0.03, 0.01)), "world"]
    rows = world_jacobian(model, q, points[:2])
    assert np.linalg.matrix_rank(rows) == 5
    after, impulses = rm.impulse(model, q, v, points)
    np.testing.assert_array_equal(impulses[2], 0.0)
    kkt, _ = with_multipliers(rm.crba(model, q), v, rows, np.zeros(6))
    np.testing.assert_allclose(after, kkt, atol=1e-9)
    assert np.max(np.abs(velocities(model, q, after, points[:2]))) < 1e-11


def test_a_point_that_cannot_move_along_a_direction() -> None:
    """A fixed arm of one joint: the point moves along a circle, and only that can be stopped."""
    model = rm.load(robot(link("arm"), joint("j", "base", "arm", axis="0 1 0")))
    after, impulses = rm.impulse(model, np.zeros(1), [2.0], ("arm", (0.5, 0, 0)))
    mass = float(rm.crba(model, np.zeros(1))[0, 0])
    assert abs(after[0]) < 1e-14
    np.testing.assert_allclose(impulses, [[0, 0, 2.0 * mass / 0.5]], atol=1e-13)


# ---- against multipliers -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", few([*KINDS, None], "coupling", "rod"))
def test_random_mechanisms_agree_with_multipliers(kind: str | None) -> None:
    tried = 0
    for seed in range(3):
        rng = np.random.default_rng([seed, len(kind or "")])
        mechanism = random_mechanism(rng, None if kind is None else [kind], n_joints=6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rm.DescriptionWarning)
            try:
                model = rm.load(mechanism.text, floating_base=mechanism.floating_base or None)
            except rm.DescriptionError as error:
                if "mobility 0" not in str(error):
                    raise
                continue
        if model.nv == 0:
            continue
        tried += 1
        q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
        names = [model.bodies[i].name for i in rng.integers(0, len(model.bodies), 2)]
        points = [(name, tuple(rng.uniform(-0.3, 0.3, 3))) for name in names]
        rows = world_jacobian(model, q, points)
        mass = rm.crba(model, q, backend="numpy")
        after, impulses = rm.impulse(model, q, v, points, backend="numpy")
        size = max(1.0, float(np.max(np.abs(v))))
        condition = float(np.linalg.cond(mass))
        assert np.max(np.abs(rows @ after)) < max(TIGHT, 1e-14 * condition) * size
        pushed = rows.T @ impulses.ravel()
        balance = mass @ (after - v) - pushed
        assert np.max(np.abs(balance)) < TIGHT * max(np.max(np.abs(mass @ v)), 1e-3)
        expected, _ = with_multipliers(mass, v, rows, np.zeros(len(rows)))
        assert np.max(np.abs(after - expected)) < max(1e-8, 1e-13 * condition) * size
        assert kinetic(model, q, after) <= kinetic(model, q, v) * (1 + TIGHT)
    assert tried


# ---- batches, backends, arguments ----------------------------------------------------------------


@pytest.mark.slow
def test_batches_broadcast() -> None:
    model = rm.robots.load("mini_cheetah")
    rng = np.random.default_rng(5)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    v = rng.standard_normal((2, 1, model.nv))
    normals = rng.standard_normal((3, 2, 3))
    bounce = rng.uniform(size=(2, 3, 2))
    for sticking in (True, False):
        options = {"normals": normals, "restitution": bounce, "sticking": sticking}
        after, impulses = rm.impulse(model, q, v, FEET[:2], **options)
        assert after.shape == (2, 3, model.nv)
        assert impulses.shape == (2, 3, 2, 3)
        plain = rm.impulse(model, q, v, FEET[:2], backend="numpy", **options)
        np.testing.assert_allclose(plain[0], after, atol=1e-11)
        np.testing.assert_allclose(plain[1], impulses, atol=1e-11)
        for i in range(2):
            for n in range(3):
                one = rm.impulse(
                    model, q[n], v[i, 0], FEET[:2],
                    normals=normals[n], restitution=bounce[i, n], sticking=sticking,
                )  # fmt: skip
                np.testing.assert_allclose(after[i, n], one[0], atol=1e-11)
                np.testing.assert_allclose(impulses[i, n], one[1], atol=1e-11)
    # options alone may carry the batch
    after, impulses = rm.impulse(model, q[0], v[0, 0], FEET[0], restitution=np.zeros((7, 1)))
    assert after.shape == (7, model.nv)
    assert impulses.shape == (7, 1, 3)


@pytest.mark.slow
@pytest.mark.parametrize("sticking", few([True, False], False))
def test_many_points_do_what_few_of_them_do(sticking: bool) -> None:
    """Points that repeat others share their impulses, and the motion after is the same."""
    model = rm.robots.load("mini_cheetah")
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    v = rng.standard_normal((3, model.nv))
    feet = ["FR_foot_contact", "HL_foot_contact"]
    expected, impulses = rm.impulse(model, q, v, feet, sticking=sticking)
    found, shared = rm.impulse(model, q, v, feet * 5, sticking=sticking)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(shared, np.tile(impulses, (1, 5, 1)) / 5, rtol=0, atol=1e-9)


def test_no_contact_changes_nothing() -> None:
    model = rm.robots.load("mini_cheetah")
    q, v = state(model, 6)
    after, impulses = rm.impulse(model, np.stack([q, q]), v, [])
    np.testing.assert_array_equal(after, np.stack([v, v]))
    assert impulses.shape == (2, 0, 3)


def test_a_singular_state_is_not_a_number_for_itself_alone() -> None:
    model = rm.robots.load("four_bar")
    q = np.stack([model.random_configuration(0)] * 3)
    q[1] = np.nan
    with np.errstate(all="ignore"):
        after, impulses = rm.impulse(model, q, [1.0], ("link3", (0.1, 0, 0)))
    assert np.isnan(after[1]).all()
    assert np.isnan(impulses[1]).all()
    assert np.isfinite(after[[0, 2]]).all()
    assert np.isfinite(impulses[[0, 2]]).all()


# ---- approximations ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", few(["mini_cheetah", "tello", "crank_rocker"], "crank_rocker"))
def test_open_trees_stop_their_points_too(name: str) -> None:
    """Approximations of the inertia, with the exact kinematics of the contacts."""
    model = rm.robots.load(name)
    q, v = state(model, 8)
    kept = {
        "mini_cheetah": FEET[:2],
        "tello": ["left-foot"],
        "crank_rocker": [("rocker", (0.5, 0, 0))],
    }
    exact = rm.impulse(model, q, v, kept[name])[1]
    for method in ("approximate", "unconstrained"):
        after, impulses = rm.impulse(model, q, v, kept[name], method=method)
        assert np.max(np.abs(velocities(model, q, after, kept[name]))) < 1e-11
        assert np.max(np.abs(impulses - exact)) > 1e-4 * np.max(np.abs(exact))
        inverse, j, mass = rm.compile(model, "contact", frames=kept[name], method=method)(q)
        np.testing.assert_allclose(j, world_jacobian(model, q, kept[name]), atol=1e-12)
        expected = j @ np.linalg.solve(mass, j.T)
        np.testing.assert_allclose(inverse, expected, atol=1e-11 * np.max(np.abs(expected)))
    with pytest.raises(ValueError, match="'lagrange' is not known of 'contact'"):
        rm.impulse(model, q, v, kept[name], method="lagrange")


@pytest.mark.slow
def test_the_touchdown_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parent.parent / "examples" / "touchdown.py"
    runpy.run_path(str(path), run_name="__main__")
    lines = [line for line in capsys.readouterr().out.splitlines() if "upward" in line]
    numbers = np.array([[float(x) for x in line.split()[-3:]] for line in lines])
    assert numbers.shape == (6, 3)
    exact, armature, bare = numbers.T
    assert np.all((armature > 1.02 * exact) & (armature < 1.2 * exact))
    assert np.all(bare < 0.3 * exact)
