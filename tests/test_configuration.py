"""Configurations: closing loops, solving for joints, drawing, integrating."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
from baseline_texts import EXAMPLES
from cases import few
from hypothesis import given, settings
from mechanisms import LOOP_KINDS, Mechanism, mechanisms
from shipped_robots import ROBOTS
from texts import coupling, fan, four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.model.configurations import moving
from robomodel.model.configurations.following import integrate_open
from robomodel.model.configurations.functions import moved


@pytest.fixture(params=ROBOTS)
def model(request: pytest.FixtureRequest) -> rm.Model:
    return rm.robots.load(request.param)


def closed(model: rm.Model, q: np.ndarray) -> bool:
    return bool(np.max(np.abs(model.residual(q)), initial=0.0) < 1e-12)


def test_neutral_is_closed_and_regular(model: rm.Model) -> None:
    q = model.neutral()
    assert closed(model, q)
    assert np.isfinite(rm.crba(model, q)).all()
    assert np.isfinite(rm.aba(model, q, np.ones(model.nv), np.ones(model.nv))).all()
    assert np.linalg.norm(model.constraint_jacobian(q)) < 100


def test_random_configurations_are_closed_regular_and_reproducible(model: rm.Model) -> None:
    rng = np.random.default_rng(0)
    draws = np.array([model.random_configuration(rng) for _ in range(30)])
    assert closed(model, draws)
    assert np.isfinite(rm.aba(model, draws, np.ones(model.nv), np.ones(model.nv))).all()
    assert np.max(np.std(draws, axis=0)) > 0.2  # they do vary
    np.testing.assert_array_equal(draws[0], model.random_configuration(np.random.default_rng(0)))
    near = model.random_configuration(rng, near=draws[0])
    assert closed(model, near)
    assert np.max(np.abs(model.difference(draws[0], near))) < 0.31


def test_close_finds_the_nearest_closed_configuration(model: rm.Model) -> None:
    rng = np.random.default_rng(1)
    at = np.array([model.random_configuration(rng) for _ in range(4)])
    off = at + 1e-2 * rng.standard_normal(at.shape)
    back = model.close(off)
    assert closed(model, back)
    # the way there is across the closed set: no motion of the mechanism would shorten it
    for cluster in model.clusters:
        if cluster.implicit:
            g = model.constraint_jacobian(back)[:, cluster.spanning_v, cluster.v]
            way = (back - off)[:, cluster.q]
            assert np.max(np.abs(np.einsum("nij,ni->nj", g, way))) < 1e-8
    np.testing.assert_allclose(model.close(at), at, atol=1e-12)


def test_close_normalises_quaternions() -> None:
    model = rm.robots.load("mini_cheetah")
    q = model.neutral()
    q[3:7] = [0.0, 3.0, 0.0, 4.0]
    np.testing.assert_allclose(model.close(q)[3:7], [0, 0.6, 0, 0.8], atol=1e-15)
    q[3:7] = 0.0
    with pytest.raises(ValueError, match="quaternion of joint 'Floating Base_joint' is zero"):
        model.close(q)


def test_integrate_and_difference_undo_each_other(model: rm.Model) -> None:
    rng = np.random.default_rng(2)
    q = np.array([model.random_configuration(rng) for _ in range(5)])
    dv = 0.2 * rng.standard_normal((5, model.nv))
    moved = model.integrate(q, dv)
    assert closed(model, moved)
    np.testing.assert_allclose(model.difference(q, moved), dv, atol=1e-12)
    np.testing.assert_allclose(model.integrate(q, np.zeros((5, model.nv))), q, atol=1e-12)


@pytest.mark.parametrize("batch", [(0,), (0, 2), (3, 0)])
def test_batches_of_none(batch: tuple[int, ...]) -> None:
    model = rm.robots.load("planar_leg_linkage")
    q, v = np.zeros((*batch, model.nq)), np.zeros((*batch, model.nv))
    assert model.close(q).shape == model.integrate(q, v).shape == q.shape
    assert model.difference(q, q).shape == v.shape


def test_integrate_follows_joint_velocities(model: rm.Model) -> None:
    """The joints' rates along integrate(q, v t) are G v."""
    rng = np.random.default_rng(3)
    q, v, h = model.random_configuration(rng), rng.standard_normal(model.nv), 1e-5
    ahead = model.joint_positions(model.integrate(q, h * v))
    behind = model.joint_positions(model.integrate(q, -h * v))
    rates = model.joint_velocities(q, v)
    for name, rate in rates.items():
        assert (ahead[name] - behind[name]) / (2 * h) == pytest.approx(rate, rel=1e-6, abs=1e-7)


@pytest.mark.slow
def test_spins_of_rods_move_as_they_are_asked_to() -> None:
    """A freedom of a ball whose other two depend on the loop: strides are compiled, no damped ones.

    Longer ways, whose strides do not add up, are damped.
    """
    model = rm.load(EXAMPLES["steering"])
    rng = np.random.default_rng(5)
    q = np.array([model.random_configuration(rng) for _ in range(8)])
    dv = rng.uniform(-0.1, 0.1, (8, model.nv))
    ahead, gap = moved(model, 4)(q, dv)
    assert np.max(gap) < 1e-14
    np.testing.assert_array_equal(model.integrate(q, dv), ahead)
    np.testing.assert_allclose(model.difference(q, ahead), dv, rtol=0, atol=1e-14)
    far = model.integrate(q, 8.0 * dv)
    np.testing.assert_allclose(model.difference(q, far), 8.0 * dv, rtol=0, atol=1e-12)


@pytest.mark.slow_cases("tello")
@pytest.mark.parametrize("name", ["tello", "planar_leg_linkage", "belt_leg", "mini_cheetah"])
def test_independent_joints_move_and_loops_are_left_open(name: str) -> None:
    """Independent joints go along dv, the others of loops stay; without loops it is integrate."""
    model = rm.robots.load(name)
    rng = np.random.default_rng(4)
    q, dv = model.random_configuration(rng), rng.uniform(-1.0, 1.0, model.nv)
    moved = integrate_open(model, q, dv)
    np.testing.assert_allclose(model.difference(q, moved), dv, rtol=0, atol=1e-12)
    followed = model.integrate(q, 1e-2 * dv)
    nearby = integrate_open(model, q, 1e-2 * dv)
    before, after = model.joint_positions(q), model.joint_positions(moved)
    for cluster in model.clusters:
        if not cluster.implicit:
            np.testing.assert_allclose(nearby[cluster.q], followed[cluster.q], rtol=0, atol=1e-12)
            continue
        for other in set(cluster.joints) - set(cluster.independent):
            assert np.array_equal(before[other], after[other]), other


def test_integrate_turns_a_crank_all_the_way_round() -> None:
    model = rm.load(four_bar(marks=(True, False, False)))
    q = model.neutral()
    round_ = model.integrate(q, [2 * math.pi])
    assert closed(model, round_)
    # back at the same place on the same branch, the crank one turn further on
    turned = model.joint_positions(round_)
    start = model.joint_positions(q)
    assert turned["j_crank"] - start["j_crank"] == pytest.approx(2 * math.pi)
    for name in ("j_coupler", "j_rocker"):
        assert math.remainder(turned[name] - start[name], 2 * math.pi) == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
def test_many_turns_of_a_crank_are_one_and_the_rest() -> None:
    """Turns after which all comes back are not followed one by one; where it stands is the same."""
    model = rm.load(
        four_bar(
            link("rotor"),
            joint("j_rotor", "base", "rotor", mark=False),
            coupling("gear", {"j_rotor": 1.0, "j_crank": -9.7}, offset=0.3),
            marks=(True, False, False),
        )
    )
    for q in (model.neutral(), model.random_configuration(1)):
        for way in (300.0, -1e5):
            rest = math.remainder(way, 2 * math.pi)
            there, near = model.integrate(q, [way]), model.integrate(q, [rest])
            assert np.max(np.abs(model.residual(there))) < 1e-15 * np.max(np.abs(there)) + 1e-12
            model.check(there)
            assert model.difference(q, there) == pytest.approx(way, rel=1e-14)
            far, here = model.joint_positions(there), model.joint_positions(near)
            assert far["j_rotor"] == pytest.approx(9.7 * far["j_crank"] + 0.3, rel=1e-13)
            for name in ("j_coupler", "j_rocker"):
                assert abs(math.remainder(far[name] - here[name], 2 * math.pi)) < 1e-9
    steps = model.neutral()
    for _ in range(30):
        steps = model.integrate(steps, [10.0])
    np.testing.assert_allclose(steps, model.integrate(model.neutral(), [300.0]), rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.02, 25.0, -100.0])
def test_geared_motors_beside_a_loop_bound_no_step(ratio: float) -> None:
    """What a motor turns by leads to no other branch, as its coordinate or beside the crank's."""
    plain = rm.load(four_bar(marks=(True, None, None)))
    start = plain.neutral()
    ahead = plain.joint_positions(plain.integrate(start, [0.15]))
    draws = [plain.random_configuration(seed, near=start) for seed in range(20)]
    motor = (
        link("motor"),
        joint("j_motor", "base", "motor", axis="0 1 0"),
        coupling("gear", {"j_motor": 1.0, "j_crank": -ratio}),
    )
    for by, unit in (("j_crank", 1.0), ("j_motor", ratio)):
        model = rm.load(four_bar(*motor), independent=[by])
        q = model.configuration({"j_crank": start[0], "j_rocker": start[2]})
        reached, gap = moved(model, 3)(q, [0.15 * unit])  # by fixed steps, in microseconds
        assert gap < 1e-15
        x = model.joint_positions(reached)
        assert x["j_motor"] == pytest.approx(ratio * x["j_crank"], rel=1e-14)
        for name, position in ahead.items():
            assert x[name] == pytest.approx(position, abs=1e-12)
        x = model.joint_positions(model.integrate(q, [5.0 * unit]))
        assert x["j_crank"] == pytest.approx(start[0] + 5.0, abs=1e-12)
        near = np.array([model.random_configuration(seed, near=q) for seed in range(20)])
        assert closed(model, near)
        spread = np.median(np.abs(model.difference(q, near))) / min(1.0, abs(unit))
        assert spread == pytest.approx(np.median(np.abs(plain.difference(start, draws))), rel=0.6)


def test_a_way_too_long_to_follow_is_refused() -> None:
    """Where turns cannot be taken out: two cranks at once, a rocker, a slide."""
    five = rm.robots.load("five_bar")
    q = five.neutral()
    with pytest.raises(rm.errors.ClosureError, match=r"motion by 1e\+05 .*too long to be followed"):
        five.integrate(q, [1e5, 3.0])
    moved = five.integrate(np.tile(q, (3, 1)), [[0.1, 0.2], [0.0, 0.0], [0.2, 0.1]])
    with pytest.warns(RuntimeWarning, match="1 of 3 configurations cannot be closed"):
        found = five.integrate(q, [[0.1, 0.2], [1e5, 3.0], [0.2, 0.1]])
    np.testing.assert_array_equal(found[[0, 2]], moved[[0, 2]])
    assert np.isnan(found[1]).all()
    rocker = rm.load(four_bar(marks=(False, False, True)))
    with pytest.raises(rm.errors.ClosureError, match=r"cannot follow|do not close"):
        rocker.integrate(rocker.neutral(), [1e5])


def test_draws_are_never_open() -> None:
    """Near what is open they are closed; that nothing is drawn at a change point is told."""
    model, rng = rm.load(four_bar()), np.random.default_rng(0)
    nears = rng.uniform(-3.0, 3.0, (12, model.nq))
    draws = np.array([model.random_configuration(1, near=near) for near in nears])
    assert closed(model, draws)
    flat = rm.robots.load("four_bar")
    with pytest.warns(RuntimeWarning, match="nothing that is closed and regular was drawn of"):
        np.testing.assert_array_equal(flat.random_configuration(1, near=np.zeros(3)), np.zeros(3))


def test_what_configurations_are_drawn_from() -> None:
    """Another branch's start leads to its draws; a base goes where it shall; wrong words."""
    model = rm.load(four_bar(marks=(True, False, False)))
    x = model.joint_positions(model.neutral())
    other = np.array([-x["j_crank"], -x["j_coupler"], -x["j_rocker"]])
    assert not model.is_reachable(other)
    draws = np.array([model.random_configuration(k, near=other) for k in range(5)])
    assert not model.is_reachable(draws).any()
    anywhere = np.array([model.random_configuration(k, branch="any") for k in range(20)])
    assert 0 < np.sum(model.is_reachable(anywhere)) < 20
    with pytest.raises(ValueError, match=r"no branch 'reachabel'; did you mean 'reachable'"):
        model.random_configuration(0, branch="reachabel")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has no floating base"):
        model.random_configuration(0, base_pose=[0.0] * 7)
    floating = rm.robots.load("mini_cheetah")
    pose = [1.0, 2.0, 3.0, 0.0, 0.0, 3.0, 4.0]
    np.testing.assert_allclose(floating.random_configuration(0)[:7], [0, 0, 0, 0, 0, 0, 1])
    q = floating.random_configuration(0, base_pose=pose)
    np.testing.assert_allclose(q[:7], [1.0, 2.0, 3.0, 0.0, 0.0, 0.6, 0.8])
    turned = floating.random_configuration(0, base_pose="random")
    assert abs(turned[6]) < 0.999
    with pytest.raises(ValueError, match="seven finite numbers"):
        floating.random_configuration(0, base_pose=[0.0] * 7)


def test_a_base_that_a_rod_holds_has_no_pose_of_its_own() -> None:
    held = rm.load(
        robot(
            link("body"),
            joint("hold", "base", "body", kind="floating"),
            loop("rod", "rod", "base", "body", "0.2 0.3 0.9", "0.4 0.1 0.2", "", 'length="0.8"'),
        )
    )
    q = held.random_configuration(0, base_pose="random")
    assert np.max(np.abs(held.residual(q))) < 1e-12
    with pytest.raises(ValueError, match="tied to the world, so its pose is drawn with"):
        held.random_configuration(0, base_pose=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


# ---- rows that cannot be closed ------------------------------------------------------------------

BAD = (math.nan, math.inf, -math.inf)


@pytest.fixture(params=["crank_rocker", "tello", "mini_cheetah"])
def any_model(request: pytest.FixtureRequest) -> rm.Model:
    return rm.robots.load(request.param)


@pytest.mark.slow_cases("tello-inf", "tello--inf", "tello-nan")
@pytest.mark.parametrize("bad", BAD)
def test_one_bad_row_is_its_own_matter(any_model: rm.Model, bad: float) -> None:
    """Whatever is not finite comes out not finite, and nothing else does, without a word."""
    model = any_model
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    dv = 0.1 * rng.standard_normal((3, model.nv))
    off = q.copy()
    off[1] = bad
    wrong = dv.copy()
    wrong[1] = bad
    rest = [0, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for found, wanted in (
            (model.close(off), model.close(q)),
            (model.integrate(off, dv), model.integrate(q, dv)),
            (model.integrate(q, wrong), model.integrate(q, dv)),
            (model.difference(off, q), model.difference(q, q)),
        ):
            assert not np.isfinite(found[1]).all()
            np.testing.assert_allclose(found[rest], wanted[rest], rtol=0, atol=1e-12)
    assert np.isnan(model.close(off)[1]).any() or not any(c.implicit for c in model.clusters)
    with np.errstate(all="ignore"):
        assert not np.isfinite(model.residual(off)[1]).all()


@pytest.mark.parametrize("bad", BAD)
def test_one_bad_configuration_alone(bad: float) -> None:
    """Never an error of linear algebra, nor of converting numbers."""
    model = rm.robots.load("crank_rocker")
    q = model.neutral()
    for index in range(3):
        off = q.copy()
        off[index] = bad
        with pytest.raises(rm.errors.ClosureError, match="q is not finite") as caught:
            model.close(off)
        assert not math.isfinite(caught.value.residual)
        for arguments in ((off, [0.1]), (q, [bad])):
            with pytest.raises(rm.errors.ClosureError, match="q or the motion is not finite"):
                model.integrate(*arguments)
        with pytest.raises(ValueError, match="near must be one configuration, and finite"):
            model.random_configuration(0, near=off)
        with pytest.raises(ValueError, match="guess must be one configuration, and finite"):
            model.configuration({}, guess=off)
        with np.errstate(all="ignore"):
            for found in (model.residual(off), model.constraint_matrix(off)):
                assert not np.isfinite(found).all()


def test_rows_that_do_not_close_are_told_and_left_out() -> None:
    """One that is out of reach; the others are the nearest ones still."""
    model = rm.load(four_bar(marks=(False, False, True)))  # the rocker cannot turn round
    q = model.neutral()
    dv = np.array([[-0.1], [math.pi], [-0.2]])
    with pytest.warns(RuntimeWarning, match=r"1 of 3 .*'closing'.*do not close") as caught:
        found = model.integrate(q, dv)
    assert caught[0].filename == __file__
    assert np.isnan(found[1]).all()
    for row in (0, 2):
        np.testing.assert_allclose(found[row], model.integrate(q, dv[row]), rtol=0, atol=1e-12)


def test_a_zero_quaternion_in_a_batch() -> None:
    model = rm.robots.load("mini_cheetah")
    q = np.array([model.random_configuration(seed) for seed in range(3)])
    off = q.copy()
    off[1, 3:7] = 0.0
    with pytest.warns(RuntimeWarning, match="1 of 3 .* quaternion of joint 'Floating Base_joint'"):
        found = model.close(off)
    assert np.isnan(found[1]).all()
    np.testing.assert_allclose(found[[0, 2]], q[[0, 2]], rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["four_bar", "mini_cheetah"])
def test_batches_of_no_state(name: str) -> None:
    model = rm.robots.load(name)
    q, v = np.zeros((2, 0, model.nq)), np.ones(model.nv)
    assert model.close(q).shape == (2, 0, model.nq)
    assert model.integrate(q, v).shape == (2, 0, model.nq)
    assert model.difference(q, model.neutral()).shape == (2, 0, model.nv)
    assert model.residual(q).shape[:-1] == (2, 0)
    assert model.constraint_jacobian(q).shape[::3] == (2, model.nv)
    assert model.constraint_bias(q, v).shape[:-1] == (2, 0)
    assert rm.aba(model, q, v, v).shape == (2, 0, model.nv)


def test_batches_that_do_not_fit_are_told_by_name() -> None:
    model = rm.robots.load("mini_cheetah")
    q, v = np.tile(model.neutral(), (2, 1)), np.zeros((3, model.nv))
    for call in (
        lambda: model.integrate(q, v),
        lambda: model.difference(q, np.tile(model.neutral(), (3, 1))),
        lambda: model.joint_velocities(q, v),
        lambda: model.joint_accelerations(q, v[:1], v),
        lambda: model.constraint_bias(q, v),
        lambda: model.constraint_matrix_bias(q, v),
        lambda: rm.rnea(model, q, v, v),
    ):
        with pytest.raises(ValueError, match=r"batch axes do not broadcast: q0? \(2, 19\), "):
            call()


def test_integrate_beyond_the_reach_is_refused() -> None:
    model = rm.load(four_bar(marks=(False, False, True)))  # the rocker cannot turn round
    with pytest.raises(
        rm.errors.ClosureError, match=r"'closing'.*do not close.*residual"
    ) as caught:
        model.integrate(model.neutral(), [math.pi])
    assert caught.value.residual > 1e-6
    assert caught.value.loops == ("closing",)
    words = str(caught.value).split("; ")[1]
    assert words.endswith("of it is the most, to a dead point of loop 'closing'")
    end = math.acos((1.1**2 + 0.7**2 - 1.5**2) / (2 * 1.1 * 0.7)) - math.pi  # a straight crank
    start = float(model.joint_positions(model.neutral())["j_rocker"])
    assert start + math.pi * float(words.split()[0]) == pytest.approx(end, abs=1e-3)
    assert pickle.loads(pickle.dumps(caught.value)).residual == caught.value.residual


# ---- solving for given joints --------------------------------------------------------------------


def test_given_joints_are_where_they_shall_be() -> None:
    model = rm.load(four_bar())
    for name in ("j_crank", "j_coupler", "j_rocker"):
        wanted = float(model.joint_positions(model.random_configuration(7))[name])
        q = model.configuration({name: wanted})
        assert closed(model, q)
        assert model.joint_positions(q)[name] == pytest.approx(wanted, abs=1e-14)


@pytest.mark.slow_cases("tello-joints2")
@pytest.mark.parametrize(
    ("name", "joints"),
    [
        ("four_bar", ["joint3"]),
        ("six_bar", ["joint4", "joint5"]),
        ("tello", ["left-hip-clamp-to-gimbal", "left-gimbal-to-thigh", "right-shin-to-foot"]),
        ("parallel_ankle", ["left_motor", "right_rotor_joint"]),
    ],
)
def test_dependent_joints_are_led_there_in_compiled_strides(
    name: str, joints: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With steps of least norm, on the branch of the guess, closed to rounding."""
    model = rm.robots.load(name)
    monkeypatch.setattr(moving, "walk", None)  # no damped strides
    rng = np.random.default_rng(5)
    start = model.neutral()
    for _ in range(3):
        there = model.joint_positions(model.integrate(start, rng.uniform(-0.4, 0.4, model.nv)))
        q = model.configuration({each: float(there[each]) for each in joints})
        reached = model.joint_positions(q)
        assert closed(model, q)
        for each in joints:
            assert reached[each] == pytest.approx(there[each], abs=1e-14)


@pytest.mark.parametrize("count", few([6, 20], 6))
def test_the_guess_keeps_the_branch(count: int) -> None:
    model = rm.load(four_bar(marks=(True, False, False)))
    branches = []
    for seed in range(count):
        q = model.random_configuration(seed, branch="any")
        x = model.joint_positions(q)
        elbow = math.sin(x["j_crank"] + x["j_coupler"] - x["j_rocker"])
        branches.append((elbow > 0, q))
    assert {up for up, _ in branches} == {True, False}
    for up, guess in branches:
        for crank in (0.3, 1.5, 3.0, -2.0):
            x = model.joint_positions(model.configuration({"j_crank": crank}, guess=guess))
            assert x["j_crank"] == crank
            assert (math.sin(x["j_crank"] + x["j_coupler"] - x["j_rocker"]) > 0) == up


@pytest.mark.slow
def test_positions_of_another_assembly_mode_are_warned_of() -> None:
    """The mirror image in the ground link; limits of joints are not in the way on its own mode."""
    model = rm.load(four_bar(marks=(True, False, False)))
    x = model.joint_positions(model.neutral())
    other = np.array([-x["j_crank"], -x["j_coupler"], -x["j_rocker"]])
    mine = float(x["j_rocker"])
    with pytest.warns(RuntimeWarning, match="in another assembly mode alone"):
        away = model.configuration({"j_rocker": -mine})
    assert away[2] == pytest.approx(-mine)
    assert not model.is_reachable(away)
    with pytest.raises(rm.errors.ClosureError, match="another assembly mode has what is wanted"):
        moving.solve(model, {"j_rocker": -mine}, model.neutral(), None, other_modes=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.configuration({"j_rocker": -mine}, guess=other)
    np.testing.assert_allclose(found, other, atol=1e-12)
    text = f'<robot name="x"><joint name="j_rocker"><limit lower="{mine - 0.05}"/></joint></robot>'
    limited = rm.load(four_bar(marks=(True, False, False)), extend=text)
    beyond = limited.configuration({"j_rocker": mine - 0.1})
    np.testing.assert_allclose(beyond, model.configuration({"j_rocker": mine - 0.1}), atol=1e-12)
    elbow = math.sin(beyond[0] + beyond[1] - beyond[2])
    assert elbow * math.sin(x["j_crank"] + x["j_coupler"] - x["j_rocker"]) > 0.0


def test_notes_name_change_points_where_other_modes_begin() -> None:
    """A parallelogram's, where it is flat; not those of a linkage without, nor beyond limits."""
    (note,) = rm.robots.load("four_bar").notes
    assert "passes change points, as with 'joint1' = 0, 'joint2' = 0, 'joint3' = 0" in note
    assert rm.robots.load("crank_rocker").notes == ()
    limits = '<robot name="x"><joint name="joint1"><limit lower="0.3" upper="2.8"/></joint></robot>'
    limited = rm.load(rm.robots.path("four_bar"), extend=limits)
    assert not any("change points" in note for note in limited.notes)


def test_notes_name_change_points_at_which_two_loops_flatten_together() -> None:
    """Of two parallelograms in a row: a determinant keeps its sign where both are flat."""
    c, s = math.cos(0.7), math.sin(0.7)
    tip = f"{0.6 * c!r} {0.6 * s!r} 0"
    text = robot(
        *(link(name) for name in ("arm0", "arm1", "arm2", "bar0", "bar1")),
        *(joint(f"a{n}", "base", f"arm{n}", f"{n} 0 0") for n in range(3)),
        *(joint(f"b{n}", f"arm{n}", f"bar{n}", tip) for n in range(2)),
        *(loop(f"l{n}", "revolute", f"bar{n}", f"arm{n + 1}", "1 0 0", tip) for n in range(2)),
    )
    (note,) = [note for note in rm.load(text).notes if "change point" in note]
    assert "with 'a0' = -0.7, 'b0' = 0.7, 'a1' = -0.7, 'b1' = 0.7" in note


def test_what_is_not_given_stays() -> None:
    model = rm.robots.load("six_bar")
    guess = model.random_configuration(4)
    before = model.joint_positions(guess)
    after = model.joint_positions(
        model.configuration({"joint1": before["joint1"] + 0.1}, guess=guess)
    )
    assert after["joint2"] == pytest.approx(before["joint2"], abs=1e-14)
    assert after["joint3"] == pytest.approx(before["joint3"], abs=1e-14)


@pytest.mark.slow
def test_closure_errors_tell_the_joints_and_the_gap() -> None:
    model = rm.load(four_bar())
    with pytest.raises(
        rm.errors.ClosureError, match=r"do not close with j_crank = 0.5, j_coupler = 0.1"
    ):
        model.configuration({"j_crank": 0.5, "j_coupler": 0.1})
    with pytest.raises(rm.errors.ClosureError) as caught:
        model.configuration({"j_rocker": math.pi / 2 + 1.5})
    assert 1e-3 < caught.value.residual < 1.0
    with pytest.raises(
        rm.errors.ClosureError
    ) as caught:  # they contradict each other: nothing is nearest
        model.configuration({"j_crank": 0.5, "j_coupler": 0.1})
    assert str(caught.value).endswith(f"residual {caught.value.residual:.3g}")


@pytest.mark.slow
def test_what_is_out_of_reach_is_told_with_what_ends_the_way() -> None:
    """The nearest position, by the law of cosines, at a dead point or at the first limit."""
    model = rm.load(four_bar())
    away = model.configuration({"j_rocker": -2.0})
    end = math.pi - math.acos((1.1**2 + 0.7**2 - 1.5**2) / (2 * 1.1 * 0.7))  # a straight crank
    with pytest.raises(rm.errors.ClosureError, match=r"'j_rocker' = 0.3 is out of reach") as caught:
        model.configuration({"j_rocker": 0.3}, guess=away)
    assert "a dead point of loop 'closing'" in str(caught.value)
    told = float(str(caught.value).split("out of reach: ")[1].split()[0])
    assert told == pytest.approx(-end, abs=2e-3)
    text = '<robot name="x"><joint name="j_rocker"><limit {}/></joint></robot>'
    limited = rm.load(four_bar(), extend=text.format('lower="-3" upper="-1.6"'))
    with pytest.raises(
        rm.errors.ClosureError, match=r"where joint 'j_rocker' meets its limit -1\.6"
    ):
        limited.configuration({"j_rocker": 0.3}, guess=away)
    outside = model.configuration({"j_rocker": -1.5})
    with pytest.raises(rm.errors.ClosureError, match="a dead point of loop 'closing'"):
        limited.configuration({"j_rocker": 0.3}, guess=outside)


def test_explicit_clusters_are_solved_from_any_of_their_joints() -> None:
    model = rm.robots.load("mini_cheetah")
    q = model.configuration(
        {"HR_hip_rotor_joint": 3.0, "FL_knee_link_joint": -1.0}, base_pose=[1, 2, 3, 0, 0, 0, 2]
    )
    x = model.joint_positions(q)
    assert x["HR_hip_link_joint"] == pytest.approx(0.5)
    assert x["FL_knee_rotor_joint"] == pytest.approx(-9.33)
    np.testing.assert_allclose(q[:7], [1, 2, 3, 0, 0, 0, 1])
    with pytest.raises(ValueError, match="contradict their couplings"):
        model.configuration({"HR_hip_rotor_joint": 3.0, "HR_hip_link_joint": 1.0})


# ---- limits and starts ---------------------------------------------------------------------------


def limited(lower: float, upper: float) -> str:
    return f'<limit lower="{lower}" upper="{upper}" effort="1" velocity="1"/>'


def test_limits_are_respected() -> None:
    text = robot(link("a"), joint("hinge", "base", "a", kind="revolute", more=limited(0.3, 0.9)))
    model = rm.load(text)
    assert model.neutral() == pytest.approx([0.3])
    draws = np.array([model.random_configuration(seed)[0] for seed in range(50)])
    assert 0.3 <= draws.min() < 0.4
    assert 0.8 < draws.max() <= 0.9


def test_limits_of_followers_are_respected() -> None:
    geared = (
        fan(coupling("k", {"b": 1.0, "a": -4.0}, 2.0))
        .replace('<joint name="b" type="continuous">', '<joint name="b" type="revolute">')
        .replace('<child link="link_b"/>', '<child link="link_b"/>' + limited(4.0, 6.0))
    )
    model = rm.load(geared, independent=["a"])
    assert model.joint_positions(model.neutral())["b"] == pytest.approx(4.0)
    for seed in range(20):
        b = model.joint_positions(model.random_configuration(seed))["b"]
        assert 4.0 <= b <= 6.0


def test_limits_inside_loops_are_respected() -> None:
    text = (
        four_bar(marks=(True, False, False))
        .replace(
            '<joint name="j_rocker" type="continuous"', '<joint name="j_rocker" type="revolute"'
        )
        .replace('<child link="rocker"/>', '<child link="rocker"/>' + limited(1.7, 2.2))
    )
    model = rm.load(text)
    for q in [model.neutral(), *(model.random_configuration(seed) for seed in range(10))]:
        assert closed(model, q)
        assert 1.7 <= model.joint_positions(q)["j_rocker"] <= 2.2


def test_the_file_says_where_to_start() -> None:
    up = (
        four_bar()
        .replace('<child link="rocker"/>', '<child link="rocker"/><initial position="1.2"/>')
        .replace('<child link="crank"/>', '<child link="crank"/><initial position="1.0"/>')
    )
    model = rm.load(up)
    start = model.joint_positions(model.neutral())
    assert abs(start["j_crank"] - 1.0) < 0.5
    assert abs(start["j_rocker"] - 1.2) < 0.8
    four = rm.robots.load("four_bar")
    np.testing.assert_allclose(four.neutral(), [math.pi / 4, -math.pi / 4, math.pi / 4], atol=1e-12)


def test_a_singular_zero_is_left_for_a_regular_start() -> None:
    flat = rm.robots.path("four_bar").read_text().replace("<initial", "<!-- <initial")
    flat = flat.replace("<!-- <initial", "<!-- initial").replace('483"/>', '483" -->')
    assert "<initial" not in flat
    with pytest.warns(
        rm.DescriptionWarning, match="at a change point, from which its loops can go"
    ):
        model = rm.load(flat)  # at zero this parallelogram is folded flat
    q = model.neutral()
    assert closed(model, q)
    assert np.linalg.norm(model.constraint_jacobian(q)) < 10


# ---- constraint derivatives ----------------------------------------------------------------------


def spanning_step(model: rm.Model, q: np.ndarray, qd: np.ndarray, h: float) -> np.ndarray:
    """Every joint of an implicit cluster moved by h q̇ (off the closed set)."""
    moved = q.copy()
    for cluster in model.clusters:
        if cluster.implicit:
            moved[cluster.q] = cluster.geometry.integrate(q[cluster.q], h * qd[cluster.spanning_v])
    return moved


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(mechanisms((*LOOP_KINDS, "tether"), max_joints=6, max_kinds=2))
def test_constraint_derivatives_agree_with_differences(mechanism: Mechanism) -> None:
    """K = ∂φ/∂q and k = -K̇ q̇, off the closed set too; K G = 0 and K g = k on it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        try:
            model = rm.load(mechanism.text, floating_base=mechanism.floating_base or None)
        except rm.DescriptionError as error:
            if "mobility 0" not in str(error):
                raise
            return
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng)
    v = rng.standard_normal(model.nv)
    g_matrix, g = model.constraint_jacobian(q), model.constraint_bias(q, v)
    k_matrix, k = model.constraint_matrix(q), model.constraint_matrix_bias(q, v)
    size = max(1.0, float(np.max(np.abs(g_matrix), initial=0.0)))
    assert np.max(np.abs(k_matrix @ g_matrix), initial=0.0) < 1e-11 * size
    assert np.max(np.abs(k_matrix @ g - k), initial=0.0) < 1e-10 * size * max(
        1.0, float(np.max(np.abs(g), initial=0.0))
    )
    implicit = np.zeros(model.n_joint_velocities, dtype=bool)
    for cluster in model.clusters:
        implicit[cluster.spanning_v] = cluster.implicit
    qd = np.where(implicit, rng.standard_normal(model.n_joint_velocities), 0.0)
    off = spanning_step(model, q, qd, 0.1)
    h = 1e-3

    def along(function: object, where: np.ndarray) -> np.ndarray:
        assert callable(function)
        near = function(spanning_step(model, where, qd, h)) - function(
            spanning_step(model, where, qd, -h)
        )
        far = function(spanning_step(model, where, qd, 2 * h)) - function(
            spanning_step(model, where, qd, -2 * h)
        )
        return (8 * near - far) / (12 * h)

    np.testing.assert_allclose(
        along(model.residual, off), model.constraint_matrix(off) @ qd, atol=1e-8
    )
    # along the closed motion itself: d/dt (K G v) = 0 = K (G v̇ + g) - k
    rates = g_matrix @ v
    masked = np.where(implicit, rates, 0.0)

    def speed(where: np.ndarray) -> np.ndarray:
        return model.constraint_matrix(where) @ masked

    qd = masked
    h /= max(1.0, float(np.max(np.abs(qd), initial=0.0)))  # joints near singular positions rush
    np.testing.assert_allclose(along(speed, q), -k, atol=1e-7 * size**2)


def test_near_a_vanishing_pivot_g_stays_accurate() -> None:
    """Where one entry of K_d vanishes but the mechanism is regular, nothing is lost."""
    model = rm.load(four_bar(marks=(True, False, False)))
    for delta in (0.0, 1e-16, 1e-12, 1e-8, -1e-9):
        # crank and coupler at right angles to ground: rows of K_d swap their large entries
        q = model.configuration({"j_crank": math.pi / 2 + delta})
        g = model.constraint_jacobian(q)
        k = model.constraint_matrix(q)
        assert np.max(np.abs(k @ g)) < 1e-13


@pytest.mark.slow
def test_a_spherical_cluster_of_many_rows_is_solved_exactly() -> None:
    """A body on three rods and a ball: 3 dependent columns or more, no lucky pivots."""
    parts = [link("plate"), joint("free", "base", "plate", kind="floating")]
    anchors = [
        ("0.3 0 0", "0.5 0.1 -1"),
        ("-0.2 0.3 0", "-0.4 0.5 -1.1"),
        ("0 -0.3 0.1", "0.1 -0.6 -0.9"),
    ]
    parts += [
        loop(f"rod{i}", "rod", "plate", "base", at, to, more="", attributes='length="1.05"')
        for i, (at, to) in enumerate(anchors)
    ]
    model = rm.load(robot(*parts))
    assert model.nv == 3
    for seed in range(10):
        q = model.random_configuration(seed)
        k, g = model.constraint_matrix(q), model.constraint_jacobian(q)
        assert np.max(np.abs(k @ g)) < 1e-12 * np.max(np.abs(g))
        m = rm.crba(model, q)
        assert np.linalg.eigvalsh(m)[0] > 0


@pytest.mark.slow
def test_what_stays_beside_a_joint_out_of_reach_is_named() -> None:
    five_bar = robot(
        *map(link, "abcd"),
        joint("left", "base", "a", mark=True), joint("right", "base", "b", "1 0 0", mark=True),
        joint("c", "a", "c", "0.3 0.5 0"), joint("d", "b", "d", "-0.3 0.5 0"),
        loop("tip", "revolute", "c", "d", "0.2 0.4 0", "-0.2 0.4 0"),
    )  # fmt: skip
    with pytest.raises(
        rm.errors.ClosureError, match=r"while 'right' stays; rm\.inverse_kinematics also"
    ):
        rm.load(five_bar).configuration({"left": 3.0})


@pytest.mark.parametrize(("robot", "joint"), [("five_bar", "J3"), ("parallel_ankle", "roll")])
def test_draws_are_within_narrow_limits_of_dependent_joints(robot: str, joint: str) -> None:
    neutral = rm.robots.load(robot)
    at = float(neutral.joint_positions(neutral.neutral())[joint])
    limit = f'<limit lower="{at - 0.01}" upper="{at + 0.01}"/>'
    narrow = f'<robot name="narrow"><joint name="{joint}">{limit}</joint></robot>'
    model = rm.load(rm.robots.path(robot), extend=narrow)
    drawn = np.array([model.random_configuration(seed) for seed in range(8)])
    assert not model.check(drawn)
    assert np.ptp(drawn, axis=0).max() > 1e-3


def boom(size: float = 1.0, way: float = 1.0) -> str:
    """A boom, and the cylinder that lifts it, drawn open; ``way``: of the rod's axis."""
    ends = sorted((0.25 * way * size, 0.48 * way * size))
    rod = f'<limit lower="{ends[0]}" upper="{ends[1]}"/><initial position="{0.3 * way * size}"/>'
    return robot(
        link("boom"), link("barrel"), link("rod"),
        joint("boom", "base", "boom", f"0 0 {0.2 * size}", kind="revolute", axis="0 1 0",
              more='<limit lower="-1.2" upper="0.6"/><initial position="-0.3"/>'),
        joint("barrel", "base", "barrel", f"{0.15 * size} 0 {0.1 * size}", axis="0 1 0"),
        joint("rod", "barrel", "rod", kind="prismatic", axis=f"0 0 {way}", more=rod),
        loop("pin", "revolute", "rod", "boom", to=f"{0.45 * size} 0 {0.05 * size}",
             more='<axis xyz="0 1 0"/>'),
    )  # fmt: skip


@pytest.mark.parametrize(("size", "way"), [(0.01, 1.0), (50.0, 1.0), (1.0, -1.0)])
def test_slides_close_alike_in_all_sizes(size: float, way: float) -> None:
    """Neither neutral nor the nearest closed configuration hangs on units or ways of axes."""
    one, other = rm.load(boom()), rm.load(boom(size, way))
    q = one.configuration({"boom": 0.1})
    off = np.array([0.02, 0.0, 0.03])
    ends = [(m.neutral(), m.close(m.configuration({"boom": 0.1}) + off * [1.0, 1.0, unit]))
            for m, unit in ((one, 1.0), (other, size * way))]  # fmt: skip
    for mine, others in zip(*ends, strict=True):
        np.testing.assert_allclose(mine, others / [1.0, 1.0, size * way], atol=1e-9)
    # shares of the largest offset, 0.45 m, are added to radians
    share = np.array([1.0, 1.0, 1.0 / np.hypot(0.45, 0.05)])
    motion = one.constraint_jacobian(ends[0][1])[:, 0] * share
    way_back = (q + off - ends[0][1]) * share
    assert abs(motion @ way_back) < 1e-9 * np.linalg.norm(motion)


def test_a_small_rack_turns_a_four_bar() -> None:
    """Radians per metre are no measure of how independent conditions are."""
    text = robot(
        link("rack"), link("crank"), link("coupler"), link("rocker"),
        joint("rack", "base", "rack", kind="prismatic", axis="1 0 0",
              more='<limit lower="-1.5e-4" upper="3e-4"/>'),
        joint("crank", "base", "crank", more='<initial position="1.3"/>'),
        joint("elbow", "crank", "coupler", "0.0012 0 0", more='<initial position="-1.1"/>'),
        joint("rocker", "base", "rocker", "0.004 0 0", more='<initial position="1.6"/>'),
        coupling("mesh", {"crank": 1.0, "rack": -4000.0}, 1.3),
        loop("closing", "revolute", "coupler", "rocker", "0.0042 0 0", "0.0025 0 0"),
    )  # fmt: skip
    model = rm.load(text)
    assert model.nv == 1
    reach = rm.joint_range(model, "crank")
    np.testing.assert_allclose((reach.lower, reach.upper), (0.7, 2.5), atol=1e-9)


@pytest.mark.parametrize("size", [0.01, 100.0])
def test_balls_in_loops_are_led_alike_in_all_sizes(size: float) -> None:
    """What a freedom of a ball lacks, in radians, is weighed against gaps as shares of the size."""

    def swing(size: float) -> rm.Model:
        def at(*place: float) -> str:
            return " ".join(f"{size * x:.9g}" for x in place)

        return rm.load(robot(
            link("crank"), link("rod"), link("rocker"),
            joint("crank", "base", "crank", axis="0 0 1"),
            joint("ball", "crank", "rod", at(0.15, 0, 0), kind="spherical"),
            joint("rocker", "base", "rocker", at(0.5, 0.2, -0.1), axis="0 1 0"),
            loop("end", "spherical", "rod", "rocker", at(0.4, 0, 0.1), at(0, 0.05, 0.3)),
        ), independent=["crank", "ball.0"])  # fmt: skip

    ways = np.stack([np.linspace(-0.6, 0.6, 13), np.zeros(13)], axis=-1)
    one, other = swing(1.0), swing(size)
    for way in ways:  # a row of a batch of many, and each alone
        np.testing.assert_allclose(
            other.integrate(other.neutral(), way), one.integrate(one.neutral(), way), atol=1e-9
        )
    assert np.isfinite(other.integrate(other.neutral(), ways)).all()


@pytest.mark.parametrize("thread", [0.001, -0.0005])
def test_fine_screws_are_no_long_way(thread: float) -> None:
    """A cylinder of a thousand turns, whose length is the distance of its ends, in closed form."""
    pitch = thread / math.tau
    parts = (
        *map(link, ("barrel", "rod", "eye", "arm")), joint("pivot", "base", "barrel"),
        joint("screw", "barrel", "rod", "0.25 0 0", kind="screw", axis="1 0 0",
              more=f'<pitch value="{pitch!r}"/>'),
        joint("bearing", "rod", "eye", axis="1 0 0"), joint("knee", "base", "arm", "0.3 0 0"),
        loop("pin", "revolute", "eye", "arm", "0 0 0", "0 0.2 0"),
    )  # fmt: skip
    model = rm.load(robot(*parts))
    q = model.neutral()
    for knee in (0.3, -0.5, 1.0, -1.2, 1.5):
        x, y = 0.3 - 0.2 * math.sin(knee), 0.2 * math.cos(knee)
        turns = (math.hypot(x, y) - 0.25) / pitch
        wanted = {"pivot": math.atan2(y, x), "screw": turns, "bearing": -turns, "knee": knee}
        for names in (("knee",), ("screw",), ("bearing",), ("screw", "knee"), wanted):
            found = model.joint_positions(
                model.configuration({name: wanted[name] for name in names})
            )
            assert {name: float(found[name]) for name in wanted} == pytest.approx(wanted, abs=1e-8)
        q = model.integrate(q, np.array([turns - float(model.joint_positions(q)["screw"])]))
        assert float(model.joint_positions(q)["knee"]) == pytest.approx(knee, abs=1e-9)


def jack(bearing: bool, pitch: float) -> str:
    """A scissor jack whose spindle has a left and a right thread, in a bearing or in its nuts."""
    x, z, y = 0.2 * math.cos(math.pi / 6), 0.1, {"axis": "0 1 0"}
    along = '<axis xyz="0 1 0"/>'
    threads = [{"kind": "screw", "axis": "1 0 0", "more": f'<pitch value="{sign * pitch!r}"/>'}
               for sign in (1.0, -1.0)]  # fmt: skip
    nuts = (
        joint("rise", "base", "carrier", f"0 0 {z}", kind="prismatic", axis="0 0 1"),
        joint("turn", "carrier", "spindle", axis="1 0 0"),
        joint("left", "spindle", "nut1", f"{-x} 0 0", **threads[0]),
        joint("right", "spindle", "nut2", f"{x} 0 0", **threads[1]),
        loop("knee1", "revolute", "low1", "nut1", f"{-x} 0 {z}", more=along),
        loop("knee2", "revolute", "low2", "nut2", f"{x} 0 {z}", more=along),
    ) if bearing else (
        joint("knee1", "low1", "nut1", f"{-x} 0 {z}", **y),
        joint("knee2", "low2", "nut2", f"{x} 0 {z}", **y),
        joint("left", "nut1", "spindle", **threads[0]),
        joint("right", "spindle", "carrier", f"{2 * x} 0 0", **threads[1]),
        loop("nut", "fixed", "carrier", "nut2", more=""),
    )  # fmt: skip
    names = ("spindle", "nut1", "nut2", "low1", "low2", "up1", "up2", "top", "carrier")
    return robot(
        *map(link, names), *nuts,
        joint("low1", "base", "low1", **y), joint("low2", "base", "low2", **y),
        joint("up1", "nut1", "up1", **y), joint("up2", "nut2", "up2", **y),
        joint("lift", "base", "top", f"0 0 {2 * z}", kind="prismatic", axis="0 0 1"),
        loop("head1", "revolute", "up1", "top", f"{x} 0 {z}", more=along),
        loop("head2", "revolute", "up2", "top", f"{-x} 0 {z}", more=along),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("bearing", [False, True])
def test_nuts_on_one_spindle_are_no_long_way(bearing: bool) -> None:
    """Screws of both ways that turn together, hundreds of turns, in closed form."""
    pitch = 0.0001
    model = rm.load(jack(bearing, pitch))
    start = model.neutral()
    for height in (-0.15, -0.06, 0.05, 0.11, 0.16):
        z = 0.1 + height / 2.0
        turns = (0.2 * math.cos(math.pi / 6) - math.sqrt(0.04 - z * z)) / pitch
        wanted = {"left": turns if bearing else -turns, "lift": height}
        place = rm.frame_pose(model, start, "top")[:3, 3] + [0.0, 0.0, height]
        moved = model.integrate(start, np.array([-turns]))  # the spindle's
        for found in (
            model.configuration({"lift": height}),
            model.configuration({"left": wanted["left"]}),
            model.configuration({model.dof_names[0]: -turns}),
            moved,
        ):
            at = model.joint_positions(found)
            assert {name: float(at[name]) for name in wanted} == pytest.approx(wanted, abs=1e-7)
        reached = rm.inverse_kinematics(model, {"top": place}, start)
        assert float(model.joint_positions(reached)["lift"]) == pytest.approx(height, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("thread", [0.0001, -0.0001, -0.0002])
def test_screws_that_one_swivel_undoes_are_no_long_way(thread: float) -> None:
    """A turnbuckle with a swivel eye on an arm, by the law of cosines: either screw, or both."""
    threads = [{"kind": "screw", "axis": "1 0 0", "more": f'<pitch value="{x!r}"/>'}
               for x in (0.0001, thread)]  # fmt: skip
    model = rm.load(robot(
        *map(link, ("arm", "rod1", "sleeve", "rod2", "eye")),
        joint("arm", "base", "arm", "0.4 0 0"), joint("foot", "base", "rod1", "0 0.2 0"),
        joint("one", "rod1", "sleeve", **threads[0]),
        joint("two", "sleeve", "rod2", "0.2 0 0", **threads[1]),
        joint("swivel", "rod2", "eye", axis="1 0 0"),
        loop("pin", "revolute", "eye", "arm", "0.2 0 0", "0 0.2 0"),
    ))  # fmt: skip
    start = model.neutral()
    for one, two in ((400.0, 0.0), (0.0, 400.0), (0.0, -600.0), (-700.0, 300.0)):
        q = model.configuration({"one": one, "two": two})
        assert model.is_reachable(q)
        at = model.joint_positions(q)
        assert float(at["swivel"]) == pytest.approx(-one - two)
        x, y = 0.4 - 0.2 * math.sin(at["arm"]), 0.2 * math.cos(at["arm"]) - 0.2
        assert math.hypot(x, y) == pytest.approx(0.4 + 0.0001 * one + thread * two, abs=1e-9)
    for angle in (0.4, -0.3):
        place = np.array([0.4 - 0.2 * math.sin(angle), 0.2 * math.cos(angle), 0.0])
        reached = rm.inverse_kinematics(model, {("arm", (0.0, 0.2, 0.0)): place}, start)
        assert float(model.joint_positions(reached)["arm"]) == pytest.approx(angle, abs=1e-7)
    rng = np.random.default_rng(0)
    drawn = [model.joint_positions(model.random_configuration(rng)) for _ in range(60)]
    angles = [float(at["arm"]) for at in drawn]
    assert min(angles) < -1.5
    assert max(angles) > 1.5


@pytest.mark.slow
def test_the_turns_of_a_nut_with_an_arm_bend_loops() -> None:
    """A thread that nothing undoes is followed turn by turn: a crank that pushes a slide."""
    model = rm.load(robot(
        *map(link, ("nut", "rod", "slide")),
        joint("screw", "base", "nut", kind="screw", more='<pitch value="0.0001"/>'),
        joint("ball", "nut", "rod", "0.1 0 0", kind="spherical"),
        joint("slide", "base", "slide", "0.4 0 0", kind="prismatic", axis="1 0 0"),
        loop("eye", "spherical", "rod", "slide", "0.3 0 0", "0 0 0", more=""),
    ))  # fmt: skip
    for turns in (3.0, 7.0, -20.0):
        at = model.joint_positions(model.configuration({"screw": turns}))
        height, x = 0.0001 * turns, 0.1 * math.cos(turns)
        far = math.sqrt(0.09 - height**2 - (0.1 * math.sin(turns)) ** 2)
        assert float(at["slide"]) == pytest.approx(x + far - 0.4, abs=1e-9)
