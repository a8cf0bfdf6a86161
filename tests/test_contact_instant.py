"""Contact at an instant: held points, pushed points, impacts that never pull."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from cases import few
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from test_contact import BOTTOM, at_rest, block
from texts import joint, link, robot

import robomodel as rm
from robomodel.dynamics.contact import points
from robomodel.dynamics.contact.complementarity import ArrayProblem, solve
from robomodel.dynamics.contact.points import rebounding
from robomodel.dynamics.contact.problem import RowKinds

Array = NDArray[np.float64]
G = 9.81
FEET = [f"{leg}_foot_contact" for leg in ("FR", "FL", "HR", "HL")]


def acceleration(model: rm.Model, q: Array, v: Array, a: Array, frame: object) -> Array:
    """J a + J̇ v in world axes, by differences of J v along the motion."""
    h = 1e-4

    def speed(s: float) -> Array:
        at = model.integrate(q, s * v + 0.5 * s * s * a)
        pose = rm.frame_pose(model, at, frame)[:3, :3]
        return pose @ rm.frame_velocity(model, at, v + s * a, frame)[3:]

    return (8 * (speed(h) - speed(-h)) - (speed(2 * h) - speed(-2 * h))) / (12 * h)


def jacobian(model: rm.Model, q: Array, frames: list) -> Array:
    return np.concatenate(
        [rm.frame_pose(model, q, f)[:3, :3] @ rm.jacobian(model, q, f)[3:] for f in frames]
    )


@pytest.mark.slow_cases("mini_cheetah-frames0")
@pytest.mark.parametrize(
    ("name", "frames"),
    [
        ("mini_cheetah", ["FR_foot_contact", "HL_foot_contact"]),
        ("four_bar", ["link2"]),
        ("planar_leg_linkage", [("end-effector", (0.0, 0.01, 0.0))]),
        pytest.param("tello", ["left-toe_contact"], marks=pytest.mark.slow),
    ],
)
def test_held_points_do_not_accelerate(name: str, frames: list) -> None:
    model = rm.robots.load(name)
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng)
    v, tau = rng.standard_normal((2, model.nv))
    if name in ("four_bar", "planar_leg_linkage"):  # fewer freedoms than conditions: held at rest
        v = np.zeros(model.nv)
    a, forces = rm.contact_aba(model, q, v, tau, frames, unilateral=False)
    for frame in frames:
        np.testing.assert_allclose(acceleration(model, q, v, a, frame), 0.0, atol=2e-6)
    pull = jacobian(model, q, frames).T @ forces.ravel()
    np.testing.assert_allclose(
        rm.rnea(model, q, v, a), tau + pull, rtol=1e-8, atol=1e-8 * np.abs(pull).max()
    )
    plain, _ = rm.contact_aba(model, q, v, tau, frames, unilateral=False, backend="numpy")
    np.testing.assert_allclose(plain, a, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_redundant_corners_share_the_weight() -> None:
    model = block()
    a, forces = rm.contact_aba(model, at_rest(model, 0.1), np.zeros(6), np.zeros(6), BOTTOM)
    np.testing.assert_allclose(a, 0.0, atol=1e-9)
    np.testing.assert_allclose(forces.sum(axis=0), [0, 0, 2 * G], atol=1e-9)
    a, forces = rm.contact_aba(
        model, at_rest(model, 0.1), np.zeros(6), np.zeros(6), BOTTOM, unilateral=False
    )
    np.testing.assert_allclose(forces, np.tile([0, 0, G / 2], (4, 1)), atol=1e-9)
    spinning = np.array([0.0, 0, 3.0, 0, 0, 0])
    with pytest.warns(RuntimeWarning, match="contradict"):
        rm.contact_aba(model, at_rest(model, 0.1), spinning, np.zeros(6), BOTTOM, unilateral=False)


@pytest.mark.slow
def test_friction_of_every_point() -> None:
    model = block()
    q, still, slow = at_rest(model, 0.1), np.zeros(6), np.array([0, 0, 0, 0.1, 0, 0])
    whole = rm.contact_aba(model, q, slow, still, BOTTOM, friction=0.3)
    each = rm.contact_aba(model, q, slow, still, BOTTOM, friction=[0.3] * 4)
    for one, other in zip(whole, each, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-12)
    _, forces = rm.contact_aba(model, q, slow, still, BOTTOM, friction=[0.0, 0.0, 0.3, 0.3])
    np.testing.assert_allclose(forces[:2, :2], 0.0, atol=1e-9)
    with pytest.raises(ValueError, match="friction needs shape"):
        rm.contact_aba(model, q, slow, still, BOTTOM, friction=[0.3] * 3)


@pytest.mark.slow
@pytest.mark.filterwarnings("error:.*Painlev")
def test_pushed_or_let_go() -> None:
    """Lifted with more than its weight it goes; pushed sideways it slips beyond μ times it."""
    model = block()
    q, still = at_rest(model, 0.1), np.zeros(6)
    up = np.array([0, 0, 0, 0, 0, 30.0])
    a, forces = rm.contact_aba(model, q, still, up, BOTTOM)
    assert a[5] == pytest.approx(15 - G)
    assert not forces.any()
    for push, expected in ((3.0, 0.0), (12.0, 6.0 - 0.5 * G)):
        tau = np.array([0, 0.1 * push, 0, push, 0, 0])  # at the ground's height, so it does not tip
        a, forces = rm.contact_aba(
            model, q, still, -tau * [0, 1, 0, -1, 0, 0], BOTTOM, friction=0.5
        )
        assert a[3] == pytest.approx(expected, abs=1e-8)
    sliding = np.array([0, 0, 0, -1.0, 0, 0])
    a, forces = rm.contact_aba(model, q, sliding, still, BOTTOM, friction=0.3)
    np.testing.assert_allclose(a, [0, 0, 0, 0.3 * G, 0, 0], atol=1e-9)
    front = np.array([point[1][0] < 0.0 for point in BOTTOM])
    normal = 2.0 * G / 4 * np.where(front, 1.3, 0.7)  # friction turns it over: 0.3 of its height
    expected = normal[:, None] * np.array([0.3, 0.0, 1.0])
    np.testing.assert_allclose(forces, expected, atol=1e-9)
    leaving = np.array([0, 0, 0, 0, 0, 0.2])
    a, forces = rm.contact_aba(model, q, leaving, still, BOTTOM)
    assert a[5] == pytest.approx(-G)
    with pytest.warns(RuntimeWarning, match="impact"):
        a, _ = rm.contact_aba(model, q, -leaving, still, BOTTOM)
    assert np.isnan(a).all()


def rod(angle: float, spin: float) -> tuple[rm.Model, Array, Array]:
    """Of half length 1 and mass 1, its lower end slides along x towards where it leans."""
    third = 1 / 3
    model = rm.load(
        '<robot name="rod"><link name="rod"><inertial><mass value="1"/><inertia '
        f'ixx="{third}" iyy="{third}" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        "</robot>",
        floating_base=True,
    )
    q = model.neutral()
    half = 0.5 * (math.pi / 2 - angle)
    q[3:] = 0, math.sin(half), 0, math.cos(half)
    end = [("rod", (0.0, 0.0, -1.0))]
    conditions = np.vstack([jacobian(model, q, end), [[0, 1, 0, 0, 0, 0]]])
    v = np.linalg.lstsq(conditions, np.array([1.0, 0, 0, spin]), rcond=None)[0]
    return model, q, v


def test_painleve() -> None:
    """At an angle of 1 and μ = 2 there is no solution, or two: 1 + 3 cos² - 3 μ sin cos < 0."""
    end = [("rod", (0.0, 0.0, -1.0))]
    model, q, v = rod(1.0, 0.0)
    a, forces = rm.contact_aba(model, q, v, np.zeros(6), end, friction=0.5)
    c, s = math.cos(1.0), math.sin(1.0)
    ratio = {mu: 1 + 3 * c * c - 3 * mu * s * c for mu in (0.5, -0.5, 2.0, -2.0)}
    normal = forces[0, 2]
    assert min(abs(normal * ratio[mu] - G) for mu in (0.5, -0.5)) < 1e-9
    assert forces[0, 0] == pytest.approx(-0.5 * normal)
    jammed = [rod(1.0, 0.0), rod(math.pi - 1.0, 0.0)]
    told = []
    for model, q, v in jammed:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            a, _ = rm.contact_aba(model, q, v, np.zeros(6), end, friction=2.0)
        told.append((bool(seen) and "Painlevé" in str(seen[0].message), bool(np.isnan(a).all())))
    assert sorted(told) == [(False, False), (True, True)]
    model, q, v = next(case for case, (none, _) in zip(jammed, told, strict=True) if none)
    for spin in (5.0, -5.0):
        _, q, v = rod(1.0 if model is jammed[0][0] else math.pi - 1.0, spin)
        with pytest.warns(RuntimeWarning, match="2 sets"):
            a, forces = rm.contact_aba(model, q, v, np.zeros(6), end, friction=2.0)
        assert not forces.any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "frames"),
    few(
        [("mini_cheetah", ("FR_foot_contact", "HL_foot_contact")), ("puma560", ("link6",))],
        ("puma560", ("link6",)),
    ),
)
def test_derivatives_of_held_points(name: str, frames: tuple[str, ...]) -> None:
    model = rm.robots.load(name)
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng)
    v, tau = rng.standard_normal((2, model.nv))

    def run(q: Array, v: Array, tau: Array) -> Array:
        a, forces = rm.contact_aba(model, q, v, tau, frames, unilateral=False)
        return np.concatenate([a, forces.ravel()])

    slopes = rm.dynamics.contact_aba_derivatives(model, q, v, tau, frames)
    h = 1e-6
    for at, move in enumerate(
        (
            lambda e: (model.integrate(q, e), v, tau),
            lambda e: (q, v + e, tau),
            lambda e: (q, v, tau + e),
        )
    ):
        found = np.concatenate([slopes[at], slopes[3 + at]])
        for j, e in enumerate(np.eye(model.nv)):
            expected = (run(*move(h * e)) - run(*move(-h * e))) / (2 * h)
            np.testing.assert_allclose(
                found[:, j], expected, atol=3e-6 * max(1.0, np.abs(expected).max())
            )


# ---- impacts -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_impacts_push_and_never_pull() -> None:
    model = rm.robots.load("mini_cheetah")
    rng = np.random.default_rng(0)
    n = 12
    q = np.array([model.random_configuration(rng) for _ in range(n)])
    v = rng.standard_normal((n, model.nv))
    v[:, 5] -= 1.0
    for e in (0.0, 0.7):
        after, impulses = rm.impulse(
            model, q, v, FEET, unilateral=True, friction=0.6, restitution=e
        )
        assert np.all(impulses[..., 2] >= -1e-10)
        assert np.all(np.hypot(impulses[..., 0], impulses[..., 1]) <= 0.6 * impulses[..., 2] + 1e-9)
        before_energy, _ = rm.energy(model, q, v)
        after_energy, _ = rm.energy(model, q, after)
        assert np.all(after_energy <= before_energy + 1e-9)
        for i in range(n):
            j = jacobian(model, q[i], FEET)
            mass = rm.crba(model, q[i])
            change = mass @ (after[i] - v[i])
            np.testing.assert_allclose(change, j.T @ impulses[i].ravel(), atol=1e-9)
            if e == 0.0:
                assert np.all((j @ after[i])[2::3] >= -1e-8)


def test_an_impact_of_a_ball() -> None:
    model = block()
    q = at_rest(model, 0.1)
    v = np.array([0, 0, 0, 0, 0, -2.0])
    after, impulses = rm.impulse(model, q, v, BOTTOM, unilateral=True, restitution=0.5)
    np.testing.assert_allclose(after, [0, 0, 0, 0, 0, 1.0], atol=1e-9)
    np.testing.assert_allclose(impulses.sum(axis=0), [0, 0, 6.0], atol=1e-9)
    leaving, impulses = rm.impulse(model, q, -v, BOTTOM, unilateral=True)
    np.testing.assert_array_equal(leaving, -v)
    assert not impulses.any()


@pytest.mark.slow
def test_normals_and_batches_of_one_kind() -> None:
    """The world turned: the same impact."""
    model = block()
    q = np.stack([at_rest(model, 0.1)] * 3)
    v = np.random.default_rng(0).standard_normal((3, 6))
    normals = np.array([0.0, 0.0, 2.0])
    one = rm.impulse(model, q, v, BOTTOM, unilateral=True, normals=normals)
    for i in range(3):
        alone = rm.impulse(model, q[i], v[i], BOTTOM, unilateral=True)
        np.testing.assert_allclose(one[0][i], alone[0], atol=1e-9)
    a, forces = rm.contact_aba(model, q, np.zeros(6), np.zeros((3, 6)), BOTTOM)
    assert a.shape == (3, 6)
    assert forces.shape == (3, 4, 3)


@pytest.mark.slow
def test_points_that_no_motion_moves_feel_nothing() -> None:
    """A rotor's centre: only rounding is left of its Jacobian and acceleration."""
    rotor = '<rotor inertia="1e-3" ratio="20" mass="0.1" transverse="5e-4"/>'
    arm = joint("hinge", "base", "arm", axis="0 1 0", rpy="0.3 0.1 0.2", more=rotor)
    slide = joint("slide", "arm", "tip", "0.2 0 0", kind="prismatic", axis="1 0 0")
    model = rm.load(robot(link("arm"), link("tip"), arm, slide))
    rng = np.random.default_rng(1)
    centre = "hinge_rotor"
    for _ in range(5):
        q, tau = model.random_configuration(rng), rng.standard_normal(2)
        still = np.zeros(2)
        a = rm.aba(model, q, still, tau)
        for unilateral in (True, False):
            held, forces = rm.contact_aba(model, q, still, tau, centre, unilateral=unilateral)
            np.testing.assert_array_equal(held, a)
            assert not forces.any()
            both, forces = rm.contact_aba(
                model, q, still, tau, [centre, "tip"], unilateral=unilateral
            )
            alone, _ = rm.contact_aba(model, q, still, tau, "tip", unilateral=unilateral)
            np.testing.assert_allclose(both, alone, rtol=0, atol=1e-10)
            assert not forces[0].any()
            v, impulses = rm.impulse(model, q, tau, centre, unilateral=unilateral)
            np.testing.assert_array_equal(v, tau)
            assert not impulses.any()


def test_without_points_nothing_touches() -> None:
    model = block()
    a, forces = rm.contact_aba(model, at_rest(model, 0.1), np.zeros(6), np.zeros(6), [])
    assert forces.shape == (0, 3)
    assert a[5] == pytest.approx(-G)


def test_a_point_of_the_base_bears_nothing() -> None:
    pendulum = rm.load(robot(link("a"), joint("j", "base", "a")))
    _, forces = rm.contact_aba(pendulum, [0.3], [0.0], [0.0], ["base"], unilateral=False)
    assert not forces.any()


def test_derivatives_without_contacts_or_without_joints() -> None:
    model = block()
    q, v = at_rest(model, 0.1), np.zeros(6)
    none = rm.dynamics.contact_aba_derivatives(model, [q, q], v, v, [])
    for found, wanted in zip(none, rm.aba_derivatives(model, [q, q], v, v), strict=False):
        np.testing.assert_array_equal(found, wanted)
    assert [x.shape for x in none[3:]] == [(2, 0, 6)] * 3
    still = rm.load(robot())
    shapes = [x.shape for x in rm.dynamics.contact_aba_derivatives(still, [], [], [], ["base"])]
    assert shapes == [(0, 0)] * 3 + [(3, 0)] * 3


@pytest.mark.parametrize("seed", [2, 9, 19, 24, 31])
def test_rebounds_that_would_win_energy_win_none(seed: int) -> None:
    """Newton's law gains where friction couples two contacts; drawn back, just nothing is won."""
    rng = np.random.default_rng(seed)
    jacobian = rng.normal(size=(6, 3))
    g = jacobian @ jacobian.T + 1e-3 * np.eye(6)
    plain = rng.normal(size=6)
    plain[2::3] = -np.abs(plain[2::3])
    shift = np.zeros(6)
    shift[2::3] = plain[2::3]  # as fast back as it came
    problem = ArrayProblem(RowKinds(2), g, plain + shift, np.ones(2), np.empty(0))

    def won(x: NDArray[np.float64]) -> float:
        return float(plain @ x + 0.5 * x @ g @ x)

    free, _ = solve(problem, np.zeros(6), 1e-12)
    found, _ = rebounding(problem, plain, np.zeros(6), 1e-12)
    assert won(free) > 0.05
    assert abs(won(found)) <= 1e-12 * won(free) * max(1.0, float(np.max(np.abs(free))) ** 2)
    assert np.all(found[2::3] >= -1e-12)
    tangential = np.linalg.norm(found.reshape(2, 3)[:, :2], axis=1)
    assert np.all(tangential <= found[2::3] + 1e-9)


@pytest.mark.parametrize("options", [{}, {"friction": 0.3}])
def test_where_the_inertia_matrix_is_singular_there_is_no_number(options: dict[str, float]) -> None:
    """A link without mass at the end of an arm: as aba has it, not an error for the whole batch."""
    text = robot(
        link("a"), '<link name="b"/>', joint("j", "base", "a"), joint("k", "a", "b", "1 0 0")
    )
    with pytest.warns(rm.DescriptionWarning):
        model = rm.load(text)
    zero, points = np.zeros((3, 2)), [("b", (0.5, 0.0, 0.0))]
    assert np.isnan(rm.aba(model, zero, zero, zero + 1.0)).any(axis=-1).all()
    a, forces = rm.contact_aba(model, zero, zero, zero + 1.0, points, **options)
    assert np.isnan(a).all()
    assert np.isnan(forces).all()
    assert a.shape == (3, 2)
    after, impulses = rm.impulse(model, zero, zero, points)
    assert np.isnan(after).all()
    assert impulses.shape == (3, 1, 3)


@pytest.mark.slow
def test_compiled_forces_are_those_of_the_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Feet that stick, slide, part and run in; states that the compiled program leaves are few."""
    model = rm.robots.load("mini_cheetah")
    rng = np.random.default_rng(3)
    q = np.array([model.random_configuration(rng) for _ in range(40)])
    tau = 20.0 * rng.standard_normal((40, model.nv))
    v = np.zeros_like(tau)
    v[10:20, 3:6] = Rotation.from_quat(q[10:20, 3:7]).inv().apply([1.0, 0.5, 0.0])
    v[20:30, 3:6] = Rotation.from_quat(q[20:30, 3:7]).inv().apply([0.0, 0.5, 1.0])
    v[35:] = rng.standard_normal((5, model.nv))
    asked, iterated = [], points.unilateral

    def unilateral(*arguments: Array) -> object:
        asked.append(0)
        return iterated(*arguments)

    for law in ({"friction": 0.4}, {"normals": (0.1, 0.2, 1.0), "friction": 0.3}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            expected = rm.contact_aba(model, q, v, tau, FEET, backend="numpy", **law)
            with monkeypatch.context() as patch:
                patch.setattr(points, "unilateral", unilateral)
                found = rm.contact_aba(model, q, v, tau, FEET, **law)
        assert np.isnan(expected[0][35:]).any()
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * np.nanmax(np.abs(y)))
    assert len(asked) <= 8


def test_coefficients_and_tolerances_are_numbers() -> None:
    """Also where a call does not need them."""
    model = block()
    q, v = model.neutral(), np.zeros(model.nv)
    with pytest.raises(ValueError, match="friction must be real numbers"):
        rm.impulse(model, q, v, "block", friction="x")
    for wrong in (-1.0, math.nan):
        with pytest.raises(ValueError, match="a finite coefficient, not negative"):
            rm.impulse(model, q, v, "block", friction=wrong)
        with pytest.raises(ValueError, match="a finite coefficient, not negative"):
            rm.contact_aba(model, q, v, v, "block", friction=wrong, unilateral=False)
    a, _ = rm.contact_aba(model, q, v, v, "block", friction=math.inf, unilateral=False)
    np.testing.assert_allclose(a[3:], 0.0, atol=1e-12)
    with pytest.raises(ValueError, match="tolerance must be a number"):
        rm.contact_aba(model, q, v, v, "block", tolerance="x")
