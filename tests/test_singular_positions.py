"""Motions through singular positions: dead points of coordinates, and change points of linkages."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from typing import Any, Literal

import numpy as np
import pytest
from cases import few
from rollouts import drift, q_and_v
from scipy.optimize import brentq
from texts import four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.dynamics.baselines import spanning_tree

Array = np.ndarray
DOWN = (0.0, -9.81, 0.0)
EXACT = {"rtol": 1e-12, "atol": 1e-13}
METHODS = ("dop853", "radau", "rk4", "semi_implicit_euler", "time_stepping")


def fallen(name: str) -> rm.Model:
    """A shipped planar linkage in a vertical plane."""
    return rm.load(rm.robots.path(name), gravity=DOWN)


def slopes(trajectory: rm.motion.Trajectory) -> Array:
    """Fourth-order differences of q over evenly spaced times, their first and last two left out."""
    q, h = trajectory.q, trajectory.times[1] - trajectory.times[0]
    return (8.0 * (q[3:-1] - q[1:-3]) - (q[4:] - q[:-4])) / (12.0 * h)


def dead_points(trajectory: rm.motion.Trajectory) -> int:
    """How often a linkage's independent joints rest while others of it move on."""
    model = trajectory.model
    own = {c.spanning_v.start + i for c in model.clusters for i in c.columns}
    dependent = [i for i in range(model.n_joint_velocities) if i not in own]
    blocks = [model.constraint_matrix(q)[:, dependent] for q in trajectory.q]
    return sum(np.linalg.det(a.T @ b) < 0.0 for a, b in itertools.pairwise(blocks))


def rocker_driven() -> rm.Model:
    """A crank and rocker, seen from the rocker: dead points where it turns back."""
    text = four_bar(marks=(False, False, True))
    return rm.load(text, gravity=DOWN)


def spatial(floating: bool) -> rm.Model:
    """A crank swings a rocker about a skew axis by a rod; seen from the rocker, which turns back.

    On a base that floats it has a mass.
    """
    text = robot(
        link("crank"),
        link("rocker"),
        joint("turn", "base", "crank", mark=False),
        joint("swing", "base", "rocker", "0.3 0.5 0", axis="1 0 0", mark=True),
        loop("rod", "rod", "crank", "rocker", "0 0.2 0", "0 0 0.4", "", 'length="0.55"'),
    )
    if floating:
        text = text.replace('<link name="base"/>', link("base"))
    return rm.load(text, floating_base=floating, gravity=DOWN)


# ---- dead points ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", few(METHODS, "dop853", "rk4", "semi_implicit_euler"))
def test_through_a_dead_point(method: str) -> None:
    """The falling six-bar passes one of its coordinates, as seen by every method."""
    model = fallen("six_bar")
    found = rm.simulate(model, model.neutral(), duration=0.45, step=1e-3, method=method)
    assert found.times[-1] == 0.45
    assert dead_points(found) == 1
    assert np.max(found.residual) <= 1e-14
    off = np.abs(slopes(found) - found.joint_velocities[2:-2])
    assert np.median(off) <= {"dop853": 1e-6, "radau": 1e-6, "rk4": 1e-6}.get(method, 0.1)
    np.testing.assert_allclose(found.v, found.joint_velocities[:, :3], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_the_same_fall_from_other_joints() -> None:
    """Seen from joints that have no dead point on the way it is the same motion."""
    model = fallen("six_bar")
    other = rm.load(
        rm.robots.path("six_bar"), gravity=DOWN, independent=["joint1", "joint3", "joint5"]
    )
    q = model.neutral()
    options = {"duration": 0.45, "step": 0.01, **EXACT}
    found = rm.simulate(model, q, **options)
    same = rm.simulate(other, q, **options)
    np.testing.assert_allclose(found.q, same.q, rtol=0, atol=1e-8)
    assert drift(found) <= 1e-9
    fine = rm.simulate(model, q, duration=0.42, step=5e-4, **EXACT)
    off = np.abs(slopes(fine) - fine.joint_velocities[2:-2])
    assert np.max(off) <= 1e-6 * np.max(np.abs(fine.joint_velocities))
    between = found.at(fine.times[::40])
    np.testing.assert_allclose(between[0], fine.q[::40], rtol=0, atol=1e-8)
    np.testing.assert_allclose(between[1], fine.v[::40], rtol=0, atol=1e-6)


@pytest.mark.slow
def test_forces_on_own_joints_do_their_work_everywhere() -> None:
    """tau · v is the power, own coordinates' dead points included."""
    model = rocker_driven()
    q = model.neutral()
    push = np.array([0.4])
    found = rm.simulate(model, q, tau=push, duration=2.0, step=1e-3, **EXACT)
    assert dead_points(found) > 0
    assert found.joint_velocities.shape == (len(found), 3)
    place = model.joint_names.index(model.dof_names[0])
    worked = push[0] * (found.q[:, place] - found.q[0, place])
    np.testing.assert_allclose(found.energy - found.energy[0], worked, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found.tau, np.tile(push, (len(found), 1)))


@pytest.mark.slow
def test_controllers_see_own_coordinates() -> None:
    """A damper on the model's own joint takes what its velocity says, held forces too."""
    model = rocker_driven()
    q = model.neutral()
    for options in (EXACT, {"method": "rk4"}):
        found = rm.simulate(
            model, q, tau=lambda _t, _q, v: -0.3 * v, duration=1.5, step=1e-3, **options
        )
        if options is EXACT:
            assert dead_points(found) > 0
        np.testing.assert_array_equal(found.tau, -0.3 * found.v)
        lost = np.trapezoid(0.3 * found.v[:, 0] ** 2, found.times)
        assert found.energy[0] - found.energy[-1] == pytest.approx(lost, rel=1e-4)
    rows = np.full((300, 1), 0.2)
    held = rm.simulate(model, q, tau=rows, step=5e-3)
    plain = rm.simulate(model, q, tau=[0.2], duration=1.5, step=5e-3)
    np.testing.assert_allclose(held.q, plain.q, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("floating", few([False, True], True))
def test_spatial_linkages(floating: bool) -> None:
    """A rocker driven against its crank in space, on the ground and afloat."""
    model = spatial(floating)
    tau = np.zeros(model.nv)
    tau[-1] = 3.0
    q = model.neutral()
    found = rm.simulate(model, q, tau=tau, duration=2.0, step=1e-2, **EXACT)
    assert dead_points(found) > 0
    assert np.max(found.residual) <= 1e-13
    work = tau[-1] * (found.q[:, -1] - found.q[0, -1])
    kinetic = np.max(found.kinetic)
    assert np.max(np.abs(found.energy - found.energy[0] - work)) <= 1e-8 * kinetic


def test_starts_at_a_dead_point() -> None:
    """At rest it goes on; with a velocity that does not say how, it is refused."""
    model = fallen("six_bar")
    way = rm.simulate(model, model.neutral(), duration=0.45, **EXACT)

    def open_(t: float) -> float:
        k = model.constraint_matrix(way.at(t)[0])[:2, 3:]
        return float(np.linalg.det(k))

    q = way.at(brentq(open_, 0.3, 0.44, xtol=1e-15))[0]
    found = rm.simulate(model, q, duration=0.1, step=0.01, **EXACT)
    assert drift(found) <= 1e-9
    with pytest.raises(ValueError, match="v does not say how the linkage moves"):
        rm.simulate(model, q, [1.0, 2.0, 3.0], duration=0.1)


# ---- change points -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", few(METHODS, "dop853", "time_stepping"))
def test_a_parallelogram_turns_through_flat(method: str) -> None:
    """At a constant rate, on its branch; it is flat exactly at some of the states that are kept."""
    model = rm.robots.load("four_bar")
    rate = math.pi / 4.0
    found = rm.simulate(model, model.neutral(), [rate], duration=8.0, step=0.02, method=method)
    exact = math.pi / 4.0 + rate * found.times
    np.testing.assert_allclose(found.q[:, 0], exact, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.q[:, 2], found.q[:, 0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.v, rate, rtol=0, atol=1e-8)
    assert np.max(found.residual) <= 1e-14
    assert drift(found) <= 1e-8


@pytest.mark.slow_cases("0.0", "12.0")
@pytest.mark.parametrize("speed", [0.0, 12.0, -12.0])
def test_a_parallelogram_under_gravity(speed: float) -> None:
    model = fallen("four_bar")
    found = rm.simulate(model, model.neutral(), [speed], duration=2.0, step=0.01, **EXACT)
    np.testing.assert_allclose(found.q[:, 2], found.q[:, 0], rtol=0, atol=1e-11)
    assert np.ptp(found.q[:, 0]) > 3.0
    assert np.max(found.residual) <= 1e-12
    assert drift(found) <= 1e-9
    at = found.at([0.1234, 1.9])
    np.testing.assert_allclose(at[0][:, 2], at[0][:, 0], rtol=0, atol=1e-11)


@pytest.mark.parametrize("rtol", [1e-6, 1e-10])
def test_radau_through_a_change_point(rtol: float) -> None:
    """Its steps, shorter than the point's neighbourhood, are followed by longer ones over it."""
    model = fallen("four_bar")
    swing = rm.simulate(model, model.neutral(), duration=3.0, step=0.01, method="radau", rtol=rtol)
    assert np.any(np.diff(np.sign(swing.q[:, 0])) != 0.0)
    np.testing.assert_allclose(swing.q[:, 2], swing.q[:, 0], atol=1e-10)
    assert drift(swing) < 30 * rtol


@pytest.mark.slow_cases("radau")
@pytest.mark.parametrize("method", ["dop853", "radau"])
def test_motions_end_and_forces_change_at_a_change_point(method: Literal["dop853"]) -> None:
    """Where and near where it is flat: states are those of a motion that goes on.

    Held forces that change there do the work that energy says.
    """
    model = fallen("four_bar")
    swing = rm.simulate(model, model.neutral(), duration=0.4, **EXACT)
    flat = brentq(lambda t: swing.at(t)[0][0], 0.3, 0.4, xtol=1e-15)
    for beyond in (-1e-4, -1e-7, 0.0, 1e-9, 1e-5):
        end = flat + beyond
        found = rm.simulate(model, model.neutral(), duration=end, step=0.1, method=method)
        q, v = swing.at(end)
        np.testing.assert_allclose(found.q[-1], q, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found.v[-1], v, rtol=0, atol=1e-7)
        assert found.residual[-1] <= 1e-14
        assert drift(found) <= 1e-8
        tau = np.array([0.0, 0.0, -2.0, 1.0])
        driven = rm.simulate(
            model, model.neutral(), tau=tau[:, None], step=end / 2.0, method=method
        )
        work = tau @ np.diff(driven.q[:, 0])
        assert abs(driven.energy[-1] - driven.energy[0] - work) <= 1e-8
        np.testing.assert_allclose(driven.q[:, 2], driven.q[:, 0], rtol=0, atol=1e-10)


def test_the_crossed_branch_stays_crossed() -> None:
    """A parallelogram assembled crosswise passes flat along its own branch too."""
    model = rm.robots.load("four_bar")
    q = model.close([-0.05, 0.15, 0.15])
    assert abs(q[2] - q[0]) > 0.1
    found = rm.simulate(model, q, [0.5], duration=0.3, step=0.01, **EXACT)
    assert found.q[0, 0] < 0.0 < found.q[-1, 0]
    assert abs(found.q[-1, 2] - found.q[-1, 0]) > 0.1
    assert drift(found) <= 1e-9
    np.testing.assert_allclose(slopes(found), found.joint_velocities[2:-2], rtol=0, atol=1e-4)


def linkage(
    *, ground: str = "1", coupler: str = "1", rocker: str = "0.5", **options: Any
) -> rm.Model:
    """The shipped parallelogram with other lengths, on a base that has a mass."""
    text = rm.robots.path("four_bar").read_text()
    heavy = (
        '<link name="base"><inertial><mass value="5"/><inertia ixx="1" iyy="1" izz="1" '
        'ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )
    text = text.replace('<link name="base"/>', heavy)
    pieces = text.split('<origin xyz="1 0 0"/>')  # link3 on the base, the coupler's end
    assert len(pieces) == 3
    text = f'<origin xyz="{ground} 0 0"/>'.join(pieces[:2])
    text = f'<origin xyz="{coupler} 0 0"/>'.join([text, pieces[2]])
    head, end = text.split('<successor link="link3">')
    end = end.replace('<origin xyz="0.5 0 0"/>', f'<origin xyz="{rocker} 0 0"/>')
    return rm.load(f'{head}<successor link="link3">{end}', **options)


@pytest.mark.slow
def test_a_parallelogram_carried_by_a_floating_base() -> None:
    model = linkage(floating_base=True)
    v = np.array([0.3, 0.2, 0.5, 0.1, 0.0, 1.0, 6.0])
    for options in (EXACT, {"method": "rk4"}):
        found = rm.simulate(model, model.neutral(), v, duration=2.0, step=2e-3, **options)
        np.testing.assert_allclose(found.q[:, 9], found.q[:, 7], rtol=0, atol=1e-11)
        assert np.max(found.residual) <= 1e-13
        # steps of fixed length are led past flat positions by longer and shorter ones; how near
        # to one a stage is decides: 2e-11, 1.4e-9 and 2e-10 at steps of 4, 2 and 1 ms
        assert drift(found) <= (1e-9 if options is EXACT else 2e-9)
    lanes = v * np.array([[1.0], [-1.0]])
    q_at = rm.rollout(model, model.neutral(), lanes, np.zeros((500, 7)), 2e-3).q
    np.testing.assert_allclose(q_at[0], found.q[:501], rtol=0, atol=1e-8)
    np.testing.assert_allclose(q_at[1, :, 9], q_at[1, :, 7], rtol=0, atol=1e-9)


@pytest.mark.slow_cases("0.0", "8.0")
@pytest.mark.parametrize("speed", [0.0, 8.0, -8.0])
def test_a_kite_folds_and_goes_on(speed: float) -> None:
    """Two pairs of equal sides: it folds to a line, where its branches meet."""
    model = linkage(ground="0.5", rocker="1", gravity=DOWN)
    found = rm.simulate(model, model.neutral(), [speed], duration=2.0, step=0.01, **EXACT)
    assert np.ptp(found.q[:, 0]) > 3.0
    assert np.max(found.residual) <= 1e-12
    assert drift(found) <= 1e-9


@pytest.mark.slow
def test_nearly_a_parallelogram() -> None:
    """With a coupler a little too long branches do not meet, and it turns sharply where they would.

    So it goes over from turning alike to turning against each other, through dead points.
    """
    model = linkage(coupler="1.0002", gravity=DOWN)
    found = rm.simulate(model, model.neutral(), duration=2.0, step=0.01, **EXACT)
    assert np.max(np.abs(found.q[:, 2] - found.q[:, 0])) > 0.5
    assert np.max(found.residual) <= 1e-12
    assert drift(found) <= 1e-9


def test_a_start_at_a_change_point_names_the_branches() -> None:
    model = rm.robots.load("four_bar")
    for v in ([0.0], [1.0]):
        with pytest.raises(rm.motion.SimulationError, match="a change point") as caught:
            rm.simulate(model, np.zeros(3), v, duration=0.1)
        said = str(caught.value)
        assert "(-0.333, 1.0, 1.0) or (1.0, -1.0, 1.0)" in said
        assert caught.value.loops == ("loop",)
        assert caught.value.time == 0.0
        assert str(pickle.loads(pickle.dumps(caught.value))) == said


@pytest.mark.slow
def test_steps_that_are_too_long_for_a_linkage() -> None:
    """Tens of radians in one, beyond what its parts can follow: where loops do not close is told.

    By chance they close somewhere for most velocities.
    """
    model = rm.robots.load("crank_rocker")
    options: dict[str, Any] = {"duration": 0.5, "step": 0.5, "method": "semi_implicit_euler"}
    told = []
    for speed in np.linspace(20.0, 120.0, 21):
        try:
            rm.simulate(model, model.neutral(), [speed], **options)
        except rm.motion.SimulationError as error:
            told.append(error)
    for error in told:
        assert error.time == 0.0
        assert error.condition is not None
        assert error.condition > 1.0  # of K's singular values
        assert len(error.trajectory) == 1
    assert any("take shorter ones" in str(error) for error in told)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "six_bar"])
def test_ten_seconds_under_gravity(name: str) -> None:
    model = fallen(name)
    found = rm.simulate(model, model.neutral(), duration=10.0, step=0.01, **EXACT)
    assert found.times[-1] == 10.0
    assert np.max(found.residual) <= 1e-12
    assert drift(found) <= 1e-9
    assert dead_points(found) >= (0 if name == "four_bar" else 10)


# ---- rollouts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", few(["rk4", "semi_implicit_euler", "time_stepping"], "rk4"))
def test_rollouts_through_dead_points(method: Literal["rk4"]) -> None:
    """A motion that stands still, and falling ones, each as simulate has it."""
    model = fallen("six_bar")
    q = model.neutral()
    tau = np.zeros((3, 900, 3))
    tau[0] = rm.bias_force(model, q, np.zeros(3))
    v = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.1, -0.2, 0.1]])
    found, rates = q_and_v(rm.rollout(model, q, v, tau, 5e-4, method=method))
    np.testing.assert_allclose(found[0], np.tile(q, (901, 1)), rtol=0, atol=1e-9)
    assert np.max(np.abs(model.residual(found))) <= 1e-13
    for n in (1, 2):
        same = rm.simulate(model, q, v[n], tau=tau[n], step=5e-4, method=method)
        np.testing.assert_allclose(found[n], same.q, rtol=0, atol=1e-10)
        np.testing.assert_allclose(rates[n], same.v, rtol=0, atol=1e-8)
    alone = rm.rollout(model, q, v[1:2], tau[1:2], 5e-4, method=method, threads=2).q
    np.testing.assert_array_equal(alone[0], found[1])


@pytest.mark.slow
def test_rollouts_under_forces_on_own_joints() -> None:
    """Forces act on the model's own joint, which rests where others move."""
    model = rocker_driven()
    q = model.neutral()
    tau = 0.4 * np.random.default_rng(2).standard_normal((2, 400, 1))
    found, rates = q_and_v(rm.rollout(model, q, np.zeros(1), tau, 2e-3))
    for n in range(2):
        same = rm.simulate(model, q, tau=tau[n], step=2e-3, method="rk4")
        np.testing.assert_allclose(found[n], same.q, rtol=0, atol=1e-10)
        np.testing.assert_allclose(rates[n], same.v, rtol=0, atol=1e-8)
        exact = rm.simulate(model, q, tau=tau[n], step=2e-3, method="dop853")
        np.testing.assert_allclose(found[n], exact.q, rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", ["rk4", "time_stepping"])
def test_rollouts_through_change_points(method: Literal["rk4"]) -> None:
    model = rm.robots.load("four_bar")
    v = np.array([[1.0], [-2.0]])
    made = rm.rollout(model, model.neutral(), v, np.zeros((200, 1)), 1e-2, method=method)
    found, rates = q_and_v(made)
    np.testing.assert_allclose(found[..., 2], found[..., 0], rtol=0, atol=1e-10)
    exact = math.pi / 4.0 + v * np.linspace(0.0, 2.0, 201)
    np.testing.assert_allclose(found[..., 0], exact, rtol=0, atol=1e-8)
    np.testing.assert_allclose(rates[..., 0], np.broadcast_to(v, (2, 201)), rtol=0, atol=1e-7)
    assert np.max(made.contact_residual) <= 1e-9


def drifts(model: rm.Model, q: Array, v: Array) -> Array:
    """Of every motion the largest change of energy, relative to the largest kinetic energy."""
    kinetic, potential = rm.energy(model, q, v)
    energy = kinetic + potential
    away: Array = np.max(np.abs(energy - energy[:, :1]), axis=1) / np.max(kinetic, axis=1)
    return away


def test_rollouts_near_a_dead_point() -> None:
    """Past one, not through it: in the model's own joints its energy is 80 % off from there on."""
    model = fallen("six_bar")
    q = model.close([-3.01, 2.03, 1.2, 1.16, -2.43])
    at, rates = q_and_v(
        rm.rollout(model, q[None], np.zeros(3), np.zeros((900, 3)), 1e-3, method="rk4")
    )
    assert drifts(model, at, rates)[0] <= 1e-7


@pytest.mark.slow
def test_rollouts_that_rush_past_singular_positions_are_told_of() -> None:
    """Where branches nearly meet such steps are too long."""
    model = linkage(coupler="1.0002", gravity=DOWN)
    with pytest.warns(
        RuntimeWarning, match="^linkages of 1 of 2 motions of 'four_bar' turn"
    ) as said:
        q, v = q_and_v(
            rm.rollout(
                model, model.neutral(), [[0.0], [4.0]], np.zeros((300, 1)), 2e-3, method="rk4"
            )
        )
    away = drifts(model, q, v)
    assert away[0] > 0.01
    assert away[1] <= 1e-9  # does not come there
    assert len(said) == 1


@pytest.fixture(scope="module")
def many_falls() -> tuple[rm.Model, Array]:
    """The six-bar at 64 positions, from which it falls through dead points and near them."""
    model = fallen("six_bar")
    rng = np.random.default_rng(0)
    return model, np.array([model.random_configuration(rng) for _ in range(64)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "step", "most"),
    [("rk4", 2.5e-4, 1e-5), ("time_stepping", 1e-3, 0.03), ("time_stepping", 2.5e-4, 0.01)],
)
def test_many_falls_near_dead_points(
    many_falls: tuple[rm.Model, Array], method: Literal["rk4"], step: float, most: float
) -> None:
    model, start = many_falls
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # some rush past them
        q, v = q_and_v(
            rm.rollout(
                model, start, np.zeros(3), np.zeros((round(2.0 / step), 3)), step, method=method
            )
        )
    assert np.max(drifts(model, q, v)) <= most


@pytest.mark.slow
def test_falls_that_rush_past_dead_points_are_told(many_falls: tuple[rm.Model, Array]) -> None:
    """One by one: where energy drifts by more than 1e-4 in a rollout, it has warned."""
    model, start = many_falls
    told, away = [], []
    for q0 in start:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", RuntimeWarning)
            q, v = q_and_v(
                rm.rollout(model, q0[None], np.zeros(3), np.zeros((2000, 3)), 1e-3, method="rk4")
            )
        told.append(bool(said))
        away.append(drifts(model, q, v)[0])
    assert sum(told) <= 12
    assert np.max(np.array(away)[~np.array(told)]) <= 1e-4


# ---- accelerations of all joints -----------------------------------------------------------------


@pytest.mark.slow_cases("six_bar", "five_bar")
@pytest.mark.parametrize(
    "name", few(["six_bar", "tello", "mini_cheetah", "five_bar"], "six_bar", "five_bar")
)
def test_accelerations_of_all_joints(name: str) -> None:
    """At regular states as aba's; multipliers balance the forces; a batch and one state agree."""
    model = rm.robots.load(name)
    rng = np.random.default_rng(3)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    v, tau = rng.standard_normal((2, 3, model.nv))
    wrench = {model.frames[-1].name: rng.standard_normal(6)}
    jacobian = model.constraint_jacobian(q)
    rates = np.einsum("nij,nj->ni", jacobian, v)
    own = [c.spanning_v.start + i for c in model.clusters for i in c.columns]
    forces = np.zeros((3, model.n_joint_velocities))
    forces[:, own] = tau
    found = rm.accelerations(model, q, rates, forces, f_ext=wrench, passive=True)
    a = rm.aba(model, q, v, tau, f_ext=wrench, passive=True)
    exact = np.einsum("nij,nj->ni", jacobian, a) + model.constraint_bias(q, v)
    size = np.max(np.abs(exact))
    np.testing.assert_allclose(found.a, exact, rtol=0, atol=1e-9 * size)
    np.testing.assert_array_equal(found.rank, model.n_joint_velocities - model.nv)
    assert np.max(found.residual) <= 1e-8 * size
    one = rm.accelerations(model, q[0], rates[0], forces[0], f_ext=wrench, passive=True)
    np.testing.assert_allclose(one.a, found.a[0], rtol=0, atol=1e-11 * size)
    np.testing.assert_allclose(one.multipliers, found.multipliers[0], rtol=0, atol=1e-8 * size)
    assert one.rank.shape == one.residual.shape == ()


def test_accelerations_at_a_change_point() -> None:
    """Right where the parallelogram lies flat the rank is said, and velocities on no branch are."""
    model = fallen("four_bar")
    flat, zero = np.zeros(3), np.zeros(3)
    velocities = np.array([[2.0, -2.0, 2.0], [-1.0, 3.0, 3.0], [0.0, 2.0, 4.0], [1.0, 0.0, 0.0]])
    found = rm.accelerations(model, flat, velocities, zero)
    np.testing.assert_array_equal(found.rank, [1, 1, 1, 1])
    assert np.all(np.isfinite(found.a))
    assert np.max(found.residual[:2]) <= 1e-12
    assert np.min(found.residual[2:]) > 0.1
    tree = spanning_tree(model)
    for n in range(2):  # as free as K leaves it: forces along K alone hold it
        force = rm.rnea(tree, flat, velocities[n], found.a[n])
        held = model.constraint_matrix(flat).T @ found.multipliers[n]
        np.testing.assert_allclose(force, held, rtol=0, atol=1e-10)
    still = rm.accelerations(model, model.close([1e-3, -1e-3, 1e-3]), zero, zero)
    assert still.rank == 2


@pytest.mark.slow
def test_accelerations_at_a_dead_point() -> None:
    """There aba is not a number, and all joints accelerate as the motion through it says."""
    model = rocker_driven()
    way = rm.simulate(model, model.neutral(), [1.0], duration=3.0, step=1e-3, **EXACT)
    place = model.joint_names.index(model.dof_names[0])
    turn = int(np.argmax(np.diff(np.sign(way.joint_velocities[:, place])) != 0.0))
    found = rm.accelerations(model, way.q[turn], way.joint_velocities[turn], np.zeros(3))
    assert found.rank == 2
    rates = way.joint_velocities[turn - 2 : turn + 3]
    exact = (8.0 * (rates[3] - rates[1]) - (rates[4] - rates[0])) / 12e-3
    np.testing.assert_allclose(found.a, exact, rtol=0, atol=1e-5 * np.max(np.abs(exact)))


def test_accelerations_of_wrong_arguments() -> None:
    model = rm.robots.load("four_bar")
    q, zero = model.neutral(), np.zeros(3)
    with pytest.raises(ValueError, match="n_joint_velocities = 3"):
        rm.accelerations(model, q, np.zeros(1), zero)
    with pytest.raises(ValueError, match="tau needs"):
        rm.accelerations(model, q, zero, np.zeros(1))
    with pytest.raises(ValueError, match="tolerance"):
        rm.accelerations(model, q, zero, zero, tolerance=0.0)
    with pytest.raises(ValueError, match="broadcast"):
        rm.accelerations(model, np.tile(q, (2, 1)), np.zeros((3, 3)), zero)
    with pytest.raises(ValueError, match="n_joint_velocities = 3"):
        model.spanning_matrix_bias(q, np.zeros(1))
    some = rm.accelerations(model, np.array([q, np.full(3, np.nan)]), zero, zero)
    assert np.isfinite(some.a[0]).all()
    assert np.isnan(some.a[1]).all()
