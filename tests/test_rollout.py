"""Rollouts: kernels iterated over time, beside NumPy, beside simulations; loops; refusals."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal

import numpy as np
import pytest
from cases import few
from mechanisms import KINDS, LOOP_KINDS, random_mechanism
from rollouts import q_and_v

import robomodel as rm
from robomodel.kernels import Iteration, Trace, compile_program, lanes
from robomodel.scalars import sincos

Array = np.ndarray
METHODS = ("rk4", "semi_implicit_euler")


def state(name: str) -> tuple[rm.Model, Array, Array]:
    """A robot at its neutral configuration, moving."""
    model = rm.robots.load(name)
    return model, model.neutral(), 0.3 * np.random.default_rng(0).standard_normal(model.nv)


# ---- the facility: a program iterated over time --------------------------------------------------


def spinner() -> tuple[Trace, list[object]]:
    """x, y ← a map with an input u and a constant c; and one more output."""
    trace = Trace()
    x, y, u, w, c = trace.inputs(5)
    s, k = sincos(x)
    return trace, [x + c * y, 0.9 * y + c * (u - s), s * w + k]


def expected(x: Array, u: Array, c: Array) -> Array:
    """The same in plain Python."""
    rows = []
    for row in u:
        x = np.array([x[0] + c[0] * x[1], 0.9 * x[1] + c[0] * (row[0] - math.sin(x[0])),
                      math.sin(x[0]) * row[1] + math.cos(x[0])])  # fmt: skip
        rows.append(x)
    return np.array(rows).reshape(len(u), 3)


@pytest.mark.parametrize("count", [1, 2, 7, lanes(), lanes() + 1, 3 * lanes() + 2])
@pytest.mark.parametrize("times", [0, 1, 5])
def test_a_program_iterated_over_time(count: int, times: int) -> None:
    """Any number of states and instants; rows apart, broadcast, or with gaps between numbers."""
    trace, outputs = spinner()
    compiled = compile_program(
        trace.program(outputs).fused(), [2, 2, 1, 3], iteration=Iteration((1,))
    )
    run = compiled.ufunc
    assert run.signature == "(2),(t,2),(1)->(t,3)"
    rng = np.random.default_rng(count)
    x, u = rng.standard_normal((count, 2)), rng.standard_normal((count, times, 2))
    c = rng.random((count, 1))
    want = np.array([expected(*each) for each in zip(x, u, c, strict=True)])
    np.testing.assert_allclose(run(x, u, c), want, rtol=0, atol=1e-14)
    wide = np.full((count, times, 4), np.nan)
    wide[..., ::2] = u
    out = np.full((times + 1, count, 6), np.nan)
    view = np.moveaxis(out, 0, 1)[:, 1:, ::2]
    run(np.asfortranarray(x), wide[..., ::2], c, out=view)
    np.testing.assert_allclose(view, want, rtol=0, atol=1e-14)
    assert np.all(np.isnan(out[0]))  # nothing is written elsewhere
    assert np.all(np.isnan(out[..., 1::2]))
    shared = run(x, u[0], c[0])
    want = np.array([expected(each, u[0], c[0]) for each in x])
    np.testing.assert_allclose(shared, want, rtol=0, atol=1e-14)


@pytest.mark.parametrize("count", [1, lanes() + 3])
def test_stages_of_an_instant(count: int) -> None:
    """Constants of each stage, and numbers handed on from stage to stage and instant to instant."""
    trace = Trace()
    x, u, total, a, b = trace.inputs(5)
    program = trace.program([x + a * u, total * b, total + x])
    table = ((1.0, 0.0), (0.5, 0.25), (-0.3, 2.0))
    compiled = compile_program(
        program, [1, 1, 2], iteration=Iteration((1,), table, carried=1)
    )  # fmt: skip
    rng = np.random.default_rng(0)
    start, rows = rng.standard_normal((count, 1)), rng.standard_normal((count, 4, 1))
    found = compiled.ufunc(start, rows)
    for n in range(count):
        at, total_at = float(start[n, 0]), 0.0
        for t in range(4):
            for first, second in table:
                given = at + first * rows[n, t, 0], total_at * second, total_at + at
                at, total_at = given[0], given[2]
            np.testing.assert_allclose(found[n, t], given[:2], rtol=1e-14, atol=1e-15)
    with pytest.raises(ValueError, match="do not fit"):
        compile_program(program, [1, 1, 2], iteration=Iteration((1,), table))


def test_huge_angles_while_iterating() -> None:
    """An angle that is an input of each instant, beyond where the polynomials end."""
    trace = Trace()
    x, u = trace.inputs(2)
    s, _ = sincos(u)
    compiled = compile_program(trace.program([x + s, s]), [1, 1, 2], iteration=Iteration((1,)))
    u_rows = np.array([[1e12], [0.5], [1e15]])
    found = compiled.ufunc(np.array([1.0]), u_rows)
    np.testing.assert_allclose(found[:, 1], np.sin(u_rows[:, 0]), rtol=0, atol=1e-15)
    np.testing.assert_allclose(found[:, 0], 1.0 + np.cumsum(np.sin(u_rows)), rtol=0, atol=1e-14)


def test_what_cannot_be_iterated() -> None:
    trace, outputs = spinner()
    program = trace.program(outputs)
    for sizes, timed in (
        ([2, 2, 1, 3], (0,)),
        ([2, 2, 1, 3], (3,)),
        ([2, 2, 1, 3], ()),
        ([4, 1, 3], (1,)),
    ):
        with pytest.raises(ValueError, match="cannot be iterated"):
            compile_program(program, sizes, iteration=Iteration(timed))


# ---- closing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", few(LOOP_KINDS, "four_bar", "rssr", "rod"))
def test_newtons_step_holds_independent_joints(kind: str) -> None:
    """It meets all conditions to second order: of a gap of 1e-5 it leaves less than 1e-7."""
    mechanism = random_mechanism(np.random.default_rng(len(kind)), [kind], n_joints=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        model = rm.load(mechanism.text, floating_base=mechanism.floating_base)
    q = model.random_configuration(1)
    for cluster in model.clusters:
        if not cluster.implicit:
            continue
        geometry, columns = cluster.geometry, list(cluster.columns)
        rng = np.random.default_rng(0)
        matrix = np.array(cluster.constraint.expand)  # off the loops, not off the couplings
        away = geometry.integrate(
            q[cluster.q], matrix @ (1e-5 * rng.standard_normal(matrix.shape[1]))
        )
        step = np.array(cluster.constraint.closing(away.tolist())[0])
        np.testing.assert_array_equal(step[columns], 0.0)
        before, after = geometry.gap(away), geometry.gap(geometry.integrate(away, step))
        assert before > 1e-8
        assert after < 1e-2 * before


# ---- rollouts ------------------------------------------------------------------------------------


@pytest.mark.slow_cases("six_bar-semi_implicit_euler")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "name", few(["four_bar", "six_bar", "mini_cheetah", "tello"], "four_bar", "six_bar")
)
def test_compiled_and_numpy_agree(name: str, method: str) -> None:
    model, q, v = state(name)
    tau = 0.1 * np.random.default_rng(1).standard_normal((3, 6, model.nv))
    found = q_and_v(rm.rollout(model, q, v, tau, 1e-3, method=method))
    slow = q_and_v(rm.rollout(model, q, v, tau, 1e-3, method=method, backend="numpy"))
    for a, b, n in zip(found, slow, (model.nq, model.nv), strict=True):
        assert a.shape == b.shape == (3, 7, n)
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found[0][:, 0], np.tile(q, (3, 1)))
    np.testing.assert_array_equal(found[1][:, 0], np.tile(v, (3, 1)))
    assert np.max(np.abs(model.residual(found[0])), initial=0.0) <= 1e-14


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", few(["crank_rocker", "tello", "mini_cheetah"], "crank_rocker"))
def test_a_rollout_is_a_simulation(name: str, method: str) -> None:
    """Two implementations of the same steps: stages in the kernel, and stages in Python."""
    model, q, v = state(name)
    tau = np.random.default_rng(1).standard_normal((100, model.nv))
    tau *= 0.02 if name == "tello" else 1.0  # its rotors are light
    q_at, v_at = q_and_v(rm.rollout(model, q, v, tau, 2e-3, method=method))
    found = rm.simulate(model, q, v, tau=tau, step=2e-3, method=method)
    far = max(1.0, float(np.max(np.abs(found.v))))
    np.testing.assert_allclose(q_at, found.q, rtol=0, atol=1e-12 * far)
    np.testing.assert_allclose(v_at, found.v, rtol=0, atol=1e-11 * far)


@pytest.mark.parametrize(("method", "order"), [("rk4", 4), ("semi_implicit_euler", 1)])
def test_orders_of_convergence(method: str, order: int) -> None:
    model, q, v = state("crank_rocker")
    force = np.array([3.0])
    exact = rm.simulate(model, q, v, tau=force, duration=0.4, rtol=1e-13, atol=1e-15)
    away = []
    for count in (20, 40, 80):
        q_at = rm.rollout(model, q, v, np.tile(force, (count, 1)), 0.4 / count, method=method).q
        away.append(np.max(np.abs(q_at[-1] - exact.q[-1])))
    assert np.log2(away[0] / away[1]) == pytest.approx(order, abs=0.25)
    assert np.log2(away[1] / away[2]) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize("name", few(["crank_rocker", "tello"], "crank_rocker"))
def test_loops_stay_closed_on_long_steps(name: str) -> None:
    """Two steps of Newton's after each of 10 ms; more make no difference."""
    model, q, v = state(name)
    tau = np.zeros((50, model.nv))
    found = rm.rollout(model, q, v, tau, 0.01).q
    assert np.max(np.abs(model.residual(found))) <= 1e-14
    more = rm.rollout(model, q, v, tau, 0.01, closing=4).q
    np.testing.assert_allclose(found, more, rtol=0, atol=1e-12)


def test_broadcasting_and_threads() -> None:
    model, q, v = state("crank_rocker")
    rng = np.random.default_rng(2)
    tau = rng.standard_normal((5, 1, 8, 1))
    speeds = v + rng.random((3, 1))
    q_at, v_at = q_and_v(rm.rollout(model, q, speeds, tau, 1e-3))
    assert q_at.shape == (5, 3, 9, 3)
    one = q_and_v(rm.rollout(model, q, speeds[1], tau[4, 0], 1e-3))
    np.testing.assert_allclose(q_at[4, 1], one[0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(v_at[4, 1], one[1], rtol=0, atol=1e-14)
    for threads in (2, 3, 0, 64):
        spread = q_and_v(rm.rollout(model, q, speeds, tau, 1e-3, threads=threads))
        np.testing.assert_allclose(spread[0], q_at, rtol=0, atol=1e-15)
    empty = q_and_v(rm.rollout(model, q, v, np.zeros((0, 4, 1)), 1e-3))
    assert empty[0].shape == (0, 5, 3)
    still = q_and_v(rm.rollout(model, q, v, np.zeros((0, 1)), 1e-3))
    np.testing.assert_array_equal(still[0], q[None])


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
@pytest.mark.parametrize("name", ["four_bar", "belt_leg"])
def test_single_precision(name: str, method: str) -> None:
    """Away from dead points it loses the last digits only, in either way of running."""
    model = rm.robots.load(name)
    rng = np.random.default_rng(3)
    q = np.tile(model.neutral(), (5, 1))
    v, tau = 0.1 * rng.standard_normal((5, model.nv)), 0.1 * rng.standard_normal((20, model.nv))
    wide = q_and_v(rm.rollout(model, q, v, tau, 1e-3, method=method))
    for backend in ("compiled", "numpy"):
        narrow = q_and_v(
            rm.rollout(model, q, v, tau, 1e-3, method=method, backend=backend, dtype="float32")
        )
        for found, expected in zip(narrow, wide, strict=True):
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
        assert np.abs(model.residual(narrow[0].astype(float))).max() < 1e-5
    with pytest.raises(ValueError, match="dtype 'float16' is not known"):
        rm.rollout(model, q, v, tau, 1e-3, dtype="float16")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_motions_in_single_precision_go_on(dtype: str) -> None:
    """Where one ends the next begins: rounding of loops and quaternions is taken out."""
    model = rm.robots.load("tello")
    q, v = model.random_configuration(3), 0.1 * np.ones(model.nv)
    tau = np.zeros((10, model.nv))
    whole = rm.rollout(model, q, v, np.tile(tau, (2, 1)), 1e-3).q
    ends = [
        x[-1].astype(np.float32) for x in q_and_v(rm.rollout(model, q, v, tau, 1e-3, dtype=dtype))
    ]
    rest = rm.rollout(model, *ends, tau, 1e-3, dtype=dtype).q
    np.testing.assert_allclose(rest, whole[10:], rtol=0, atol=2e-4)
    if dtype == "float64":
        assert np.abs(model.residual(rest)).max() < 1e-12
    alone = rm.simulate(model, *ends, step=1e-3, duration=0.01)
    assert alone.residual.max() < 1e-12
    with pytest.raises(ValueError, match=r"is no configuration|are open"):
        rm.rollout(model, ends[0] + np.float32(0.01), ends[1], tau, 1e-3, dtype=dtype)
    with pytest.raises(ValueError, match=r"is no configuration|are open"):
        rm.rollout(model, ends[0].astype(float), ends[1], tau, 1e-3)


def test_backwards_in_time() -> None:
    """A negative step goes back to where the motion came from."""
    model, q, v = state("crank_rocker")
    tau = np.zeros((100, 1))
    q_at, v_at = q_and_v(rm.rollout(model, q, v, tau, 1e-3))
    back = rm.rollout(model, q_at[-1], v_at[-1], tau, -1e-3).q
    np.testing.assert_allclose(back[-1], q, rtol=0, atol=1e-11)


def test_one_motion_that_is_lost() -> None:
    """Backwards in time nothing leads over a step that ends at a change point."""
    model = rm.robots.load("four_bar")
    v = np.array([[math.pi / 2.0], [0.1]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        q_at, v_at = q_and_v(rm.rollout(model, model.neutral(), v, np.zeros((60, 1)), -0.01))
    (message,) = [str(w.message) for w in caught if "do not close" in str(w.message)]
    assert message.startswith("the loops of 1 of 2 motions of 'four_bar' do not close")
    bad = np.isnan(q_at).any(axis=-1)
    assert not bad[1].any()
    assert not bad[0, :50].any()
    assert bad[0, 50:].all()  # once lost, lost
    np.testing.assert_array_equal(np.isnan(v_at).any(axis=-1), bad)


def test_change_points_in_single_precision() -> None:
    """Steps that end at one are led over it in double precision."""
    model = rm.robots.load("four_bar")
    motions = [
        q_and_v(rm.rollout(
            model, model.neutral(), [math.pi / 2.0], np.zeros((160, 1)), 0.01,
            method="semi_implicit_euler", dtype=dtype,
        ))
        for dtype in ("float32", "float64")
    ]  # fmt: skip
    np.testing.assert_allclose(motions[0][0], motions[1][0], rtol=0, atol=1e-3)


def test_backwards_over_a_change_point() -> None:
    model = rm.robots.load("four_bar")
    q, v = q_and_v(rm.rollout(model, model.neutral(), [1.0], np.zeros((100, 1)), -0.01))
    np.testing.assert_allclose(q[:, 0], math.pi / 4.0 - 0.01 * np.arange(101), atol=1e-9)
    np.testing.assert_allclose(v, 1.0, atol=1e-8)


def test_what_cannot_move_stays() -> None:
    model = rm.load('<robot name="stone"><link name="stone"/></robot>')
    for batch in ((), (2,), (0,)):
        motion = q_and_v(rm.rollout(model, np.zeros((*batch, 0)), [], np.zeros((3, 0)), 1e-3))
        assert [x.shape for x in motion] == [(*batch, 4, 0)] * 2


def test_the_ways_of_before_warn() -> None:
    """A method without its name, details=, and a rollout as a tuple, for a release."""
    model, q, v = state("four_bar")
    given = (model, q, v, np.zeros((2, 1)), 1e-3)
    want = rm.rollout(*given, method="rk4", backend="numpy")
    with pytest.warns(DeprecationWarning, match="write method='rk4'"):
        made = rm.rollout(*given, "rk4", backend="numpy")
    with pytest.warns(DeprecationWarning, match="by name"):
        q_at, v_at = made
    np.testing.assert_array_equal(q_at, want.q)
    with pytest.warns(DeprecationWarning, match="by name"):
        np.testing.assert_array_equal(made[1], v_at)
    with pytest.warns(DeprecationWarning, match="details="):
        made = rm.rollout(*given, details=True, backend="numpy")
    with pytest.warns(DeprecationWarning, match="by name"):
        assert [x.shape for x in made] == [(3, 3), (3, 1), (2, 0, 3), (2,)]
    with pytest.raises(TypeError, match="'grund'; did you mean 'ground'"):
        rm.rollout(*given, grund=rm.Ground())
    with pytest.raises(TypeError, match="by position"):
        rm.rollout(*given, "rk4", True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_random_mechanisms(kind: str) -> None:
    """Compiled and NumPy's rollouts agree, with closed loops."""
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(2):
        mechanism = random_mechanism(rng, [kind], n_joints=4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rm.DescriptionWarning)
            model = rm.load(mechanism.text, floating_base=mechanism.floating_base)
        q = model.random_configuration(rng)
        v = 0.1 * rng.standard_normal(model.nv)
        tau = np.zeros((2, 5, model.nv))
        found = q_and_v(rm.rollout(model, q, v, tau, 1e-4))
        slow = q_and_v(rm.rollout(model, q, v, tau, 1e-4, backend="numpy"))
        scale = max(1.0, float(np.max(np.abs(slow[1]))))
        np.testing.assert_allclose(found[0], slow[0], rtol=0, atol=1e-10 * scale)
        np.testing.assert_allclose(found[1], slow[1], rtol=0, atol=1e-8 * scale)
        assert np.max(np.abs(model.residual(found[0])), initial=0.0) <= 1e-12


# ---- one motion ----------------------------------------------------------------------------------


def crossing() -> tuple[rm.Model, Array, Array]:
    """A leg whose linkage lies flat, a change point, after four steps of 1 ms, and moves slowly."""
    model = rm.load(rm.robots.path("planar_leg_linkage"), gravity=(0, 0, 0))
    return model, model.configuration({"shank_driver_joint": 8.0e-4}), np.array([0.15, -0.21])


@pytest.mark.slow_cases("flat-rk4")
@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler", "time_stepping"])
@pytest.mark.parametrize("name", few(["mini_cheetah", "tello", "flat"], "flat"))
def test_simulations_and_rollouts_are_one_motion(name: str, method: Literal["rk4"]) -> None:
    """To the bit, in every method, past change points and where sweeps solve no contact."""
    rng = np.random.default_rng(0)
    options: dict[str, Any] = {"method": method, "friction": method == "time_stepping"}
    if name == "flat":
        model, q, v = crossing()
    else:
        model = rm.robots.load(name)
        q, v = model.random_configuration(1), 0.3 * rng.standard_normal(model.nv)
        if method == "time_stepping":
            feet = [name for name in model.frame_index if "knee_link" in name or "foot" in name]
            links = feet[:3]
            height = min(rm.frame_pose(model, q, link)[2, 3] for link in links)
            options["contacts"] = [(link, (0.0, 0.0, 0.0)) for link in links]
            options["ground"] = rm.Ground(height=float(height) - 1e-3)
    tau = 0.1 * rng.standard_normal((80, model.nv))
    alone = rm.simulate(model, q, v, tau=tau, step=1e-3, **options)
    q_all, v_all = q_and_v(rm.rollout(model, np.tile(q, (9, 1)), v, tau, 1e-3, **options))
    for n in (0, 8):
        np.testing.assert_array_equal(q_all[n], alone.q)
        np.testing.assert_array_equal(v_all[n], alone.v)
    assert np.all(np.isfinite(v_all))


@pytest.mark.parametrize("method", ["rk4", "time_stepping"])
@pytest.mark.parametrize("slow", [1.0, 0.03])
def test_slow_motions_pass_change_points(method: Literal["rk4"], slow: float) -> None:
    """Steps much shorter than what keeps away from the point; forces act all the while."""
    model, q, v = crossing()
    drop = {"friction": False, "passive": False, "method": method, "step": 1e-3}
    motion = rm.simulate(model, q, slow * v, duration=8e-3 / slow, **drop)
    assert np.min(motion.q[:, 1]) < -1e-4 < 1e-4 < np.max(motion.q[:, 1])
    assert np.ptp(motion.energy) < 1e-4 * motion.energy[0]
    np.testing.assert_allclose(motion.v, np.broadcast_to(slow * v, motion.v.shape), rtol=1e-4)
    tau = np.zeros((len(motion) - 1, 2))
    tau[:, 0] = 1e-3 * np.cos(np.arange(len(tau)))
    pushed = rm.simulate(model, q, slow * v, tau=tau, **drop)
    change = 1e-3 * np.sum(rm.aba(model, q, np.zeros(2), tau), axis=0)
    scale = np.max(np.abs(change))
    np.testing.assert_allclose(pushed.v[-1] - slow * v, change, rtol=0, atol=1e-4 * scale)
