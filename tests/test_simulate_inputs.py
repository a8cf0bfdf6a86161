"""Inputs, stops, refusals and results of simulations."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from cases import few
from simulation_mechanisms import Array, crank_rocker, six_bar, tumbling
from texts import coupling, fan, four_bar, joint, link, robot

import robomodel as rm
from robomodel import running

# ---- inputs --------------------------------------------------------------------------------------


def test_constant_rows_and_controllers_agree() -> None:
    model, q, v = six_bar()
    force = np.array([3.0, -1.0, 2.0])
    constant = rm.simulate(model, q, v, tau=force, duration=0.1, step=0.01)
    rows = rm.simulate(model, q, v, tau=np.tile(force, (10, 1)), step=0.01)
    asked = rm.simulate(model, q, v, tau=lambda t, q, v: force, duration=0.1, step=0.01)
    assert len(constant) == len(rows) == len(asked) == 11
    np.testing.assert_allclose(rows.q, constant.q, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(asked.q, constant.q)
    np.testing.assert_array_equal(asked.tau, np.tile(force, (11, 1)))


@pytest.mark.parametrize("method", ["dop853", "rk4", "semi_implicit_euler"])
def test_rows_are_held_over_their_steps(method: str) -> None:
    """Two steps under two forces are one simulation after the other."""
    model, q, v = crank_rocker()
    rows = np.array([[5.0], [-7.0]])
    options = {"step": 0.02, "method": method}
    whole = rm.simulate(model, q, v, tau=rows, **options)
    first = rm.simulate(model, q, v, tau=rows[0], duration=0.02, **options)
    second = rm.simulate(model, first.q[-1], first.v[-1], tau=rows[1], duration=0.02, **options)
    np.testing.assert_allclose(whole.q[1], first.q[-1], rtol=0, atol=1e-13)
    np.testing.assert_allclose(whole.q[2], second.q[-1], rtol=0, atol=1e-11)
    np.testing.assert_allclose(whole.v[2], second.v[-1], rtol=0, atol=1e-10)
    np.testing.assert_array_equal(whole.tau[:2], rows)


@pytest.mark.parametrize("method", ["dop853", "rk4"])
def test_a_digital_controller_is_asked_once_a_step(method: str) -> None:
    model, q, v = crank_rocker()
    asked: list[float] = []

    def tau(t: float, _q: Array, v: Array) -> list[float]:
        asked.append(t)
        return [-2.0 * float(v[0])]

    found = rm.simulate(
        model, q, v + 1.0, tau=tau, duration=0.1, step=0.01, method=method, hold=True
    )
    np.testing.assert_allclose(asked, 0.01 * np.arange(10), rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.tau[:-1], -2.0 * found.v[:-1], rtol=0, atol=1e-15)
    replayed = rm.simulate(model, q, v + 1.0, tau=found.tau[:-1], step=0.01, method=method)
    np.testing.assert_array_equal(replayed.q, found.q)


def test_work_of_forces_is_the_change_of_energy() -> None:
    """A controller and a wrench, given as numbers and by a function: power integrated."""
    model, q, v = crank_rocker()
    push = np.array([0.0, 0.0, 0.7, 2.0, -1.0, 0.0])

    def power(found: rm.motion.Trajectory) -> Array:
        twist = rm.frame_velocity(model, found.q, found.v, "rocker")
        return np.sum(found.tau * found.v, axis=1) + twist @ push

    options = {
        "tau": lambda t, _q, v: 4.0 * math.cos(3.0 * t) - 0.5 * v, "duration": 0.5,
        "step": 0.002, "rtol": 1e-12, "atol": 1e-14,
    }  # fmt: skip
    found = rm.simulate(model, q, v, f_ext={"rocker": push}, **options)
    same = rm.simulate(model, q, v, f_ext=lambda *_: {"rocker": push}, **options)
    rows = rm.simulate(model, q, v, f_ext={"rocker": np.tile(push, (250, 1))}, **options)
    np.testing.assert_array_equal(same.q, found.q)
    np.testing.assert_allclose(rows.q, found.q, rtol=0, atol=1e-10)
    from scipy.integrate import simpson

    work = simpson(power(found), x=found.times)
    assert found.energy[-1] - found.energy[0] == pytest.approx(work, abs=1e-7)
    assert abs(work) > 0.1


METHODS = ("dop853", "rk4", "semi_implicit_euler")


@pytest.mark.slow_cases("dop853-False", "dop853-True", "semi_implicit_euler-False")
@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("method", few(METHODS, "dop853", "semi_implicit_euler"))
def test_wrenches_that_begin_later(method: str, hold: bool) -> None:
    """Links not named feel nothing; named at touch-down, in any order, they are heard."""
    model = tumbling()[0]
    q = model.neutral()
    names = ["torso", "wheel", "plate"]
    push = dict(zip(names, np.random.default_rng(2).standard_normal((3, 6)), strict=True))

    def now(t: float) -> dict[str, Array]:
        """One link after the other, later the first again, alone."""
        if t < 0.01:
            return {}
        some = ["plate"] if t < 0.02 else ["wheel", "plate", "torso"] if t < 0.03 else ["torso"]
        return {name: push[name] for name in some}

    def everywhere(t: float, _q: Array, _v: Array) -> dict[str, Array]:
        given = now(t)
        return {name: given.get(name, np.zeros(6)) for name in names}

    options = {"duration": 0.04, "step": 0.005, "method": method, "hold": hold}
    found = rm.simulate(model, q, f_ext=lambda t, *_: now(t), **options)
    same = rm.simulate(model, q, f_ext=everywhere, **options)
    free = rm.simulate(model, q, **options)
    np.testing.assert_allclose(found.v, same.v, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.q, same.q, rtol=0, atol=1e-12)
    assert np.max(np.abs(found.v[-1] - free.v[-1])) > 1e-3


@pytest.mark.slow
def test_a_fall_ends_on_the_ground() -> None:
    """A spring that is there from touch-down on only, without a link named at the start."""
    model = rm.load(robot(link("ball"), joint("free", "base", "ball", kind="floating")))
    com = np.array(model.bodies[0].com)
    mass = model.mass

    def ground(_t: float, q: Array, v: Array) -> dict[str, Array]:
        pose = rm.frame_pose(model, q, ("ball", com), backend="numpy")
        low = 0.1 - pose[2, 3]
        if low <= 0.0:
            return {}
        up = pose[:3, :3].T @ [0.0, 0.0, 4e3 * mass * low - 30.0 * mass * v[5]]
        return {"ball": np.concatenate([np.cross(com, up), up])}

    q = np.array([0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0])
    found = rm.simulate(model, q, duration=1.0, step=1e-3, method="rk4", f_ext=ground)
    height = rm.frame_pose(model, found.q, ("ball", com))[:, 2, 3]
    assert np.min(height) > 0.0
    assert height[-1] == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_controllers_cannot_write_on_the_motion(method: str, hold: bool) -> None:
    """They see the state; what they keep of it, and what they gave, stays theirs."""
    model, q, v = crank_rocker()
    given = {"duration": 0.05, "step": 0.01, "method": method, "hold": hold}
    kept: list[tuple[float, Array, Array]] = []
    force = np.zeros(1)

    def tau(t: float, q: Array, v: Array) -> Array:
        kept.append((t, q, v))
        force[0] = math.sin(40.0 * t)  # one array, written anew at every call
        return force

    found = rm.simulate(model, q, v, tau=tau, **given)
    same = rm.simulate(model, q, v, tau=lambda t, *_: [math.sin(40.0 * t)], **given)
    np.testing.assert_array_equal(found.q, same.q)
    np.testing.assert_array_equal(found.tau, same.tau)
    starts = {t: q for t, q, _ in kept}
    for t, at in zip(found.times[:-1], found.q, strict=False):
        if t in starts:
            np.testing.assert_allclose(starts[t], at, rtol=0, atol=1e-6)

    def scribble(_t: float, q: Array, v: Array) -> dict[str, Array]:
        for x in (q, v):
            with pytest.raises(ValueError, match="read-only"):
                x[0] = 7.0
        return {}

    def wild(t: float, q: Array, v: Array) -> Array:
        scribble(t, q, v)
        return force

    force[0] = 0.0
    free = rm.simulate(model, q, v, **given)
    for options in ({"tau": wild}, {"f_ext": scribble}):
        found = rm.simulate(model, q, v, **given, **options)
        np.testing.assert_allclose(found.q, free.q, rtol=0, atol=1e-9)
    for frozen in (q, v):
        frozen.flags.writeable = False
    np.testing.assert_array_equal(rm.simulate(model, q, v, **given).q, free.q)


def test_tolerances_at_their_ends() -> None:
    """No relative tolerance, or one below rounding, is the finest there is; tiny ones end too."""
    model, q, v = crank_rocker()
    exact = rm.simulate(model, q, v, duration=0.1, rtol=1e-13)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rtol in (0.0, 1e-300, 1e-16):
            found = rm.simulate(model, q, v, duration=0.1, rtol=rtol)
            np.testing.assert_allclose(found.q[-1], exact.q[-1], rtol=0, atol=1e-10)
        for atol in (5e-324, 1e-300, 1e-200, 1e-100):
            found = None
            with contextlib.suppress(rm.motion.SimulationError):
                found = rm.simulate(model, q, v, duration=0.01, rtol=1e-6, atol=atol)
            assert found is None or found.times[-1] == 0.01


def test_a_last_step_that_is_shorter() -> None:
    model, q, v = crank_rocker()
    for method in ("rk4", "dop853"):
        found = rm.simulate(model, q, v, duration=0.025, step=0.01, method=method)
        np.testing.assert_allclose(found.times, [0.0, 0.01, 0.02, 0.025], rtol=0, atol=1e-15)
    nothing = rm.simulate(model, q, v, duration=0.0)
    assert len(nothing) == 1
    np.testing.assert_array_equal(nothing.q[0], q)


# ---- stops and refusals --------------------------------------------------------------------------


def pendulum() -> rm.Model:
    """Three pendulums; a within limits, b that follows a (a mimic), c without limits."""
    text = robot(
        *(link(name) for name in ("one", "two", "three")),
        joint("a", "base", "one", kind="revolute", axis="0 1 0",
              more='<limit lower="-0.5" upper="0.8"/>'),
        joint("b", "base", "two", kind="revolute", axis="0 1 0",
              more='<limit lower="-3" upper="0.9"/><mimic joint="a" multiplier="2"/>'),
        joint("c", "base", "three", axis="0 1 0"),
    )  # fmt: skip
    return rm.load(text)


@pytest.mark.parametrize("method", ["dop853", "rk4", "semi_implicit_euler"])
def test_stop_at_a_limit(method: str) -> None:
    """Of a dependent joint too; the last state is at the limit, whichever the method."""
    model = pendulum()
    q, v = np.zeros(2), np.array([3.0, 0.0])
    options = {"duration": 1.0, "step": 0.01, "method": method}
    found = rm.simulate(model, q, v, stop_at_limits=True, **options)
    assert found.stop is not None
    assert (found.stop.joint, found.stop.limit, found.stop.position) == ("b", "upper", 0.9)
    assert found.times[-1] == found.stop.time < 1.0
    assert found.q[-1, 0] == pytest.approx(0.45, abs=1e-12)
    chosen = rm.simulate(model, q, v, stop_at_limits=["a"], **options)
    assert chosen.stop is not None
    assert chosen.stop.joint == "a"
    assert chosen.q[-1, 0] == pytest.approx(0.8, abs=1e-12)
    back = rm.simulate(model, found.q[-1], -3.0 * found.v[-1], stop_at_limits=True, **options)
    assert back.stop is not None
    assert back.stop.limit == "lower"
    again = rm.simulate(model, found.q[-1], found.v[-1], stop_at_limits=True, **options)
    assert again.stop is not None
    assert again.stop.time == 0.0
    assert rm.simulate(model, q, v, **options).stop is None
    with pytest.raises(ValueError, match="beyond its upper limit"):
        rm.simulate(model, [0.85, 0.0], v, stop_at_limits=["a"], **options)
    with pytest.raises(KeyError, match="no joint 'd'"):
        rm.simulate(model, q, v, stop_at_limits=["d"], **options)


@pytest.mark.slow
def test_states_that_are_not_finite() -> None:
    model, q, v = crank_rocker()
    with pytest.raises(rm.motion.SimulationError, match="not finite"):
        rm.simulate(model, q, v, tau=lambda t, _q, _v: [math.nan], duration=0.1)
    for method in ("rk4", "dop853"):
        with pytest.raises(rm.motion.SimulationError) as caught:
            rm.simulate(
                model, q, v, tau=lambda t, _q, _v: [0.0 if t < 0.05 else math.inf], duration=0.1,
                step=1e-3, method=method,
            )  # fmt: skip
        assert caught.value.time == pytest.approx(0.05, abs=2e-3)


# ---- what comes out ------------------------------------------------------------------------------


def test_a_trajectory_as_numbers(tmp_path: Path) -> None:
    model, q, v = tumbling()
    found = rm.simulate(model, q, v, duration=0.1, step=0.02)
    table = found.to_dict()
    assert list(table) == list(found.columns)
    assert len(set(found.columns)) == len(found.columns)
    np.testing.assert_array_equal(table["q:j_torso.qw"], found.q[:, 6])
    plate = model.joint_positions(found.q)["j_plate"]
    np.testing.assert_array_equal(table["q:j_plate.angle"], plate[:, 2])
    np.testing.assert_array_equal(table["v:j_wheel"], found.v[:, model.dof_names.index("j_wheel")])
    np.testing.assert_array_equal(table["kinetic"] + table["potential"], found.energy)
    assert found.to_numpy().shape == (6, len(found.columns))
    found.to_csv(tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == list(found.columns)
    np.testing.assert_array_equal(np.array(rows, dtype=float), found.to_numpy())
    assert repr(found) == "<Trajectory of 'test' by dop853: 6 states, 0 to 0.1 s>"


def test_a_trajectory_as_a_data_frame() -> None:
    pytest.importorskip("pandas")
    model, q, v = crank_rocker()
    frame = rm.simulate(model, q, v, duration=0.1, step=0.02).to_pandas()
    assert frame.index.name == "time"
    assert frame.shape == (6, 8)
    assert frame["v:crank_joint"].iloc[0] == 0.0


@pytest.mark.slow
def test_a_trajectory_as_a_plot() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    model, q, v = crank_rocker()
    found = rm.simulate(model, q, v, duration=0.1, step=0.02)
    figure = found.plot()
    drawn = figure.axes[1].lines[0].get_ydata()
    np.testing.assert_array_equal(drawn, found.v[:, 0])
    pyplot.close(figure)


def test_a_bar_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    clock = iter(range(10**9))
    monkeypatch.setattr(running.time, "monotonic", lambda: next(clock))
    model, q, v = crank_rocker()
    for stream, wanted, shown in (
        (Terminal(), True, True),
        (Terminal(), False, False),
        (io.StringIO(), True, False),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        rm.simulate(model, q, v, duration=0.05, progress=wanted)
        assert bool(stream.getvalue()) is shown


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy gives the same motion."""
    from robomodel.kernels import NoCompilerError

    model, q, v = crank_rocker()
    found = rm.simulate(model, q, v, duration=0.05, step=0.01, method="rk4")

    def refuse(*_args: object, **_options: object) -> None:
        raise NoCompilerError("none wanted")

    monkeypatch.setattr("robomodel.kernels.compile.compile_program", refuse)
    slow = rm.simulate(rm.robots.load("crank_rocker"), q, v, duration=0.05, step=0.01, method="rk4")
    np.testing.assert_allclose(slow.q, found.q, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_couplings_within_loops_hold_to_the_last_digit() -> None:
    """A geared rotor on a four-bar's crank, many turns on: no sum of rounding errors."""
    text = four_bar(
        link("rotor"),
        joint("j_rotor", "base", "rotor", mark=False),
        coupling("gear", {"j_rotor": 1.0, "j_crank": -9.7}, offset=0.3),
        marks=(True, False, False),
    )
    model = rm.load(text)
    q = model.configuration({"j_crank": 0.3})
    found = rm.simulate(model, q, [40.0], duration=1.0, step=1e-3, method="rk4")
    turned = found.q[-1, model.joint_names.index("j_rotor")]
    assert abs(turned) > 100.0
    assert np.max(found.residual) <= 1e-13


def test_trees_have_no_loops_to_close() -> None:
    model = rm.load(fan())
    found = rm.simulate(model, np.zeros(3), np.ones(3), duration=0.1, step=0.05)
    assert found.residual.tolist() == [0.0] * 3
