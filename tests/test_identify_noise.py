"""Errors that are alike for some time: their models, windows, and intervals that hold the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import toeplitz
from scipy.signal import lfilter
from test_identify import motion

import robomodel as rm
from benchmarks.identification import coverage
from robomodel.identification.noise import Autoregression, runs
from robomodel.identification.windows import Windows
from robomodel.reports.identification import page

Array = NDArray[np.float64]


def alike(k: float, count: int, seed: int) -> Array:
    """Normal numbers of deviation 1, each correlated by k with the one before."""
    noise = np.random.default_rng(seed).normal(size=count + 2000)
    return np.asarray(lfilter([np.sqrt(1.0 - k * k)], [1.0, -k], noise)[2000:])


def test_models_of_errors_in_time() -> None:
    """Coefficients of a long series; xᵀ C x by the dense matrix of correlations, over a gap."""
    error = alike(0.8, 20000, 0)
    there = np.ones(len(error), dtype=bool)
    there[7000:7010] = False
    pieces = runs(there, 10000)
    assert pieces == [slice(0, 7000), slice(7010, 10000), slice(10000, 20000)]
    noise = Autoregression.of(error, pieces)
    response = lfilter([1.0], np.append(1.0, -noise.predictors[-1]), np.eye(1, 20)[0])
    assert response == pytest.approx(0.8 ** np.arange(20), abs=0.05)
    one = Autoregression((np.zeros(0), np.array([0.8])), np.array([1.0, 0.36]))
    x = np.random.default_rng(1).normal(size=(60, 3))
    x[20:25] = 0.0
    dense = x.T @ toeplitz(0.8 ** np.arange(60)) @ x
    assert one.covariance(x) == pytest.approx(dense, rel=1e-3)
    white = Autoregression.of(np.random.default_rng(2).normal(size=5000), [slice(0, 5000)])
    assert white.covariance(x) == pytest.approx(x.T @ x, rel=0.2)
    assert Autoregression.of(np.zeros(50), [slice(0, 50)]).order == 0


def test_windows_leave_out_high_frequencies_and_shift_by_parts_of_a_sample() -> None:
    """Of sines, by the spectrum of a cubic B-spline; rates by parts; gaps and delays."""
    step, count = 0.002, 2000
    windows = Windows.of(count, step, 5.0)
    time = step * np.arange(count)
    assert windows.width == 32
    assert len(windows) == 59
    for hertz in (0.0, 4.0, 5.0, 1.0 / (32 * step), 24.0):
        x = np.cos(2.0 * np.pi * hertz * time)
        expected = np.sinc(32 * step * hertz) ** 4 * np.cos(2.0 * np.pi * hertz * windows.times)
        assert windows.mean(x) == pytest.approx(expected, abs=1e-3)
    x, rate = np.sin(5.0 * time), 5.0 * np.cos(5.0 * time)
    samples = np.pad(x, 1)[32 * np.arange(59)[:, None] + np.arange(129)]  # of each window
    assert samples @ windows.weights()[1] == pytest.approx(windows.mean(rate), abs=1e-5)
    late = windows.mean(np.sin(5.0 * (time - 0.0133)), 0.0133)
    inside = np.isfinite(late)
    assert inside.all()
    assert late[inside] == pytest.approx(windows.mean(x)[inside], abs=1e-6)
    assert np.isnan(windows.mean(x, 0.2)).sum() == 3  # of those that need samples after the end
    x[500] = np.nan
    lost = np.isnan(windows.mean(x))
    assert lost.sum() == 4
    assert np.array_equal(windows.complete(np.isfinite(x), 0.0), ~lost)
    with pytest.raises(ValueError, match="shorter than a window of 127"):
        Windows.of(100, step, 5.0)


def table(seed: int, one_way: float) -> tuple[rm.Model, dict[str, Array], dict[str, float]]:
    """A log of an arm in a vertical plane whose first joint has friction that is not the same."""
    model = rm.load(
        '<robot name="two"><link name="base"/>'
        + "".join(
            f'<link name="{n}"><inertial><origin xyz="0 0 -0.3"/><mass value="{m}"/>'
            f'<inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            for n, m in (("a", 4.0), ("b", 2.0))
        )
        + "".join(
            f'<joint name="{n}" type="continuous"><parent link="{p}"/><child link="{c}"/>'
            f'<origin xyz="0 0 {z}"/><axis xyz="0 1 0"/></joint>'
            for n, p, c, z in (("hip", "base", "a", 0), ("knee", "a", "b", -0.5))
        )
        + "</robot>"
    )
    rng, time = np.random.default_rng(seed), 0.01 * np.arange(2000)
    rates = 2.0 * np.pi * np.array([[0.13, 0.41, 0.77], [0.19, 0.33, 0.91]])
    angles = time[:, None, None] * rates + rng.uniform(0.0, 6.0, rates.shape)
    sizes = np.array([0.7, 0.3, 0.15])
    q = np.sum(sizes * np.sin(angles), -1)
    v = np.sum(sizes * rates * np.cos(angles), -1)
    a = -np.sum(sizes * rates**2 * np.sin(angles), -1)
    tau = rm.rnea(model, q, v, a) + 0.8 * v + 2.0 * np.sign(v)
    peak = np.exp(-((v[:, 0] / 0.15) ** 2))
    tau[:, 0] += one_way * (1.0 + 0.3 * np.abs(v[:, 0])) + 1.5 * np.sign(v[:, 0]) * peak
    tau += 0.05 * rng.normal(size=tau.shape)
    columns: dict[str, Array] = {"time": np.asarray(time)}
    for i, name in enumerate(("hip", "knee")):
        columns |= {f"q.{name}": q[:, i], f"v.{name}": v[:, i], f"tau.{name}": tau[:, i]}
    truth = {"bias": one_way, "damping difference": 0.3 * one_way, "static friction": 1.5,
             "Stribeck velocity": 0.15}  # fmt: skip
    return model, columns, truth


@pytest.mark.slow
def test_frictions_form_is_said_and_chosen() -> None:
    model, columns, truth = table(0, 0.4)
    plain = rm.identify(model, columns, stribeck="hip")
    (note,) = [x for x in plain.notes if "both directions" in x]
    assert "asymmetric=True" in note
    assert "hip (" in note
    assert "% stronger at positive velocity" in note
    fit = rm.identify(model, columns, friction="auto")
    found = {x.kind: x for x in fit.sensors if x.name == "hip"}
    for kind, value in truth.items():
        assert abs(found[kind].value - value) < 4.0 * found[kind].deviation < 0.5 * abs(value)
    assert {x.kind for x in fit.sensors if x.name == "knee"} == {"bias", "damping difference"}
    (chosen,) = (x for x in fit.forms if x.chosen)
    assert chosen.form == "static (Stribeck), another one each way"
    assert chosen.joints == ("hip",)
    assert chosen.share < 0.7 * fit.forms[0].share
    (note,) = [x for x in fit.notes if "form was chosen" in x]
    assert "static of 'hip'; stronger one way: 'hip (" in note
    w = np.mean(np.abs(columns["v.hip"]))  # 2 + 0.8 w, and 0.4 (1 + 0.3 w) more or less
    ratio = (2.4 + 0.92 * w) / (1.6 + 0.68 * w)
    said = float(note.split("'hip (")[1].split(" %")[0])
    assert said == pytest.approx(100.0 * (ratio - 1.0), abs=4.0)
    assert "knee" not in note  # its difference is none
    assert "Forms of friction" in page(fit, model, "log.csv")
    assert fit.residual[0] < 0.5 * plain.residual[0]
    assert not any("delay" in note for note in fit.notes)
    first = fit.changes(rm.parameters(model).values)[0]
    assert first.group.name in ("friction of hip", "friction of knee")  # 0 in the file
    assert first.share > 0.1
    html = page(plain, model, "log.csv")
    for what in ("velocity", "position", "load"):
        assert f"hip: mean residual over {what}, two deviations" in html
    _, even, _ = table(0, 0.0)
    assert "asymmetric" not in "".join(rm.identify(model, even, stribeck="hip").notes)
    (chosen,) = (x for x in rm.identify(model, even, friction="auto").forms if x.chosen)
    assert (chosen.form, chosen.joints) == ("static (Stribeck)", ("hip",))
    with pytest.raises(ValueError, match="friction is None or 'auto'"):
        rm.identify(model, columns, friction="all")
    with pytest.raises(rm.errors.UnknownNameError, match="asymmetric: no joint"):
        rm.identify(model, columns, asymmetric="hop")


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_friction_that_grows_with_the_load_without_a_gear_is_said(share: float) -> None:
    model, columns, _ = table(0, 0.0)
    q, v = (np.stack([columns[f"{k}.{n}"] for n in ("hip", "knee")], axis=-1) for k in "qv")
    a = np.gradient(v, 0.01, axis=0)
    load = rm.rnea(model, q, v, a)
    tau = load + 0.8 * v + 2.0 * np.sign(v) + share * np.abs(load) * np.sign(v) * [1.0, 0.0]
    tau += 0.05 * np.random.default_rng(0).normal(size=tau.shape)
    fit = rm.identify(model, q, v, a, tau, friction="auto")
    notes = [x for x in fit.notes if "grows with the load" in x]
    assert len(notes) == (share > 0.0)
    for note in notes:
        assert note.endswith(": 'hip (5 % of it)'")
    assert not any(x.gears for x in fit.forms)


def test_friction_that_is_stronger_upwards_is_called_so() -> None:
    """Where a joint's positive velocities lift its load in all of the log, or lower it."""
    model, columns, _ = table(0, 0.0)
    for turn, way in ((np.pi / 2.0, "upwards"), (-np.pi / 2.0, "downwards")):
        q = np.stack([columns["q.hip"] + turn, columns["q.knee"]], axis=-1)
        v, a = (
            np.stack([f(columns[f"v.{n}"]) for n in ("hip", "knee")], axis=-1)
            for f in (np.asarray, lambda x: np.gradient(x, 0.01))
        )
        q[:, 0] = turn + 0.4 * np.sin(columns["q.hip"])
        v[:, 0] *= 0.4 * np.cos(columns["q.hip"])
        a[:, 0] = np.gradient(v[:, 0], 0.01)
        tau = rm.rnea(model, q, v, a) + 0.8 * v + 2.0 * np.sign(v)
        tau[:, 0] += 0.5 * np.abs(np.sign(v[:, 0]))
        tau += 0.02 * np.random.default_rng(0).normal(size=tau.shape)
        fit = rm.identify(model, q, v, a, tau, friction="auto")
        (note,) = [x for x in fit.notes if "form was chosen" in x]
        assert f"% stronger {way}, at positive velocity" in note


@pytest.mark.slow
def test_what_was_found_stays_in_the_file(tmp_path: Path) -> None:
    """Laws and delays, written, read, and used for a log that the fit has not seen."""
    model, columns, _ = table(0, 0.4)
    late = {**columns, "tau.knee": np.roll(columns["tau.knee"], 3)}
    fit = rm.identify(model, late, friction="auto", delays="knee")
    file = tmp_path / "fit.urdf"
    rm.write_urdf(fit.model, file)
    again = rm.load(file)
    joints = {joint.name: joint for joint in again.description.joints}
    assert joints["knee"].delay == pytest.approx(0.03, abs=0.003)
    found = {x.kind: x.value for x in fit.sensors if x.name == "hip"}
    hip = joints["hip"]
    assert hip.bias == pytest.approx(found["bias"])
    assert hip.damping_reverse == pytest.approx(hip.damping - 2.0 * found["damping difference"])
    assert hip.static_friction == pytest.approx(hip.friction + found["static friction"])
    unseen = table(1, 0.4)[1]
    unseen["tau.knee"] = np.roll(unseen["tau.knee"], 3)
    log = rm.identification.read_log(again, unseen)
    prediction = rm.identification.predicted(again, log)
    assert not prediction.fitted
    assert np.all(prediction.residual < 1.5 * fit.residual)
    (note,) = prediction.notes  # at the ends, where delays may need more
    assert "windows, which lack a sample: 'knee (9)'" in note
    assert prediction.suspicions == ()
    w = np.array([-2.0, -0.1, 0.1, 2.0])
    law = {joint.name: joint for joint in again.joints}["hip"]
    total = law.damping * w + law.friction * np.sign(w) + law.law.force(w)
    peak = found["static friction"] * np.exp(-((w / found["Stribeck velocity"]) ** 2))
    mean = law.damping - found["damping difference"]
    expected = mean * w + found["damping difference"] * np.abs(w) + found["bias"]
    assert total == pytest.approx(expected + (law.friction + peak) * np.sign(w))
    with pytest.raises(rm.DescriptionError, match=r"cannot say: .*static_friction.* of the joint"):
        rm.write_mjcf(again, tmp_path / "fit.xml")
    heavier = rm.with_parameters(again, {"hip.friction": law.friction + 1.0})
    assert {j.name: j for j in heavier.joints}["hip"].law.excess == pytest.approx(law.law.excess)
    text = file.read_text().replace('type="continuous"', 'type="spherical"')
    with pytest.raises(rm.DescriptionError, match=r"no single velocity for .*static_friction"):
        rm.load(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robot", "case"),
    [("arm", "white"), ("arm", "ar0.9"), ("belt_leg", "ar0.9"), ("arm", "quantised")],
)
def test_intervals_hold_the_truth(robot: str, case: str) -> None:
    """Of the pooled combinations of ten logs; 43 to 46 % where errors count as white."""
    held, spread, _, effective = coverage(robot, case, 10)
    assert held > 0.88
    assert 0.8 < spread < 1.25
    assert (effective > 1000) == (case == "white")


@pytest.mark.slow
def test_calibration_with_errors_that_are_alike() -> None:
    """Of a four-bar's lengths, from encoders whose errors are correlated over ten samples."""
    model = rm.robots.load("four_bar")
    names = ["joint2.x", "joint3.x"]
    angles = 0.8 + 0.5 * np.sin(np.linspace(0.0, 12.0, 150))
    q = [model.configuration({"joint1": x}) for x in angles]
    place = model.joint_positions(np.array(q))
    exact = np.stack([place[n] for n in model.joint_names], axis=1)
    truth = np.array([rm.parameters(model, geometry=True)[n] for n in names])
    scores = []
    for seed in range(12):
        noise = [alike(0.9, len(q), 10 * seed + i) for i in range(exact.shape[1])]
        fit = rm.calibrate(model, exact + 1e-3 * np.stack(noise, axis=1), names)
        scores.append((fit.values - truth) / np.sqrt(np.diag(fit.covariance)))
    z = np.array(scores)
    assert np.mean(np.abs(z) < 1.96) > 0.75
    assert 0.4 < np.std(z) < 1.5  # 3 and more where errors count as white


@pytest.mark.tables
def test_errors_of_a_bases_moments_about_another_point() -> None:
    """They are as those of a robot whose root link has its frame there, and tell as much."""
    model = rm.load(rm.robots.path("belt_leg"), floating_base=True)
    q, v, a = motion(model, 3, 400)
    true, base = rm.parameters(model).values, rm.base_parameters(model)
    tau = rm.regressor(model, q, v, a) @ true
    size = 0.01 * np.sqrt(np.mean(tau**2, axis=0))
    root = [i for i, name in enumerate(base.names) if "ground" in name]

    def errors(point: tuple[float, float, float]) -> tuple[Array, Array]:
        """Errors of combinations with the root link (draws, k), and the deviations told."""
        found = []
        for seed in range(40):
            noise = size * np.random.default_rng(seed).standard_normal(tau.shape)
            noise[:, :3] += np.cross(point, noise[:, 3:6])
            fit = rm.identify(model, q, v, a, tau + noise)
            spread = np.sqrt(np.einsum("ij,jk,ik->i", base.matrix, fit.covariance, base.matrix))
            found.append(((base.matrix @ (fit.values - true))[root], spread[root]))
        return np.array([x for x, _ in found]), np.array([x for _, x in found])

    (here, _), (there, told) = errors((0.0, 0.0, 0.0)), errors((2.0, 1.0, -1.0))
    some = np.min(told, axis=0) > 0.0
    assert np.sum(some) == 5
    share = there[:, some] / told[:, some]
    assert np.mean(np.abs(share) < 1.96) > 0.93  # 0.90 with weights of each moment and force
    sizes = [np.sqrt(np.mean(x[:, some] ** 2, axis=0)) for x in (here, there)]
    assert np.all(sizes[1] < 1.3 * sizes[0])  # 6 times


@pytest.mark.tables
def test_errors_of_joints_of_a_belt_without_motors() -> None:
    """Forces are compared along orthonormal rates, in which errors of joints are correlated."""
    body = (
        '<link name="{}"><inertial><origin xyz="0.15 0.02 0.05"/><mass value="{}"/><inertia'
        ' ixx="0.02" ixy="0" ixz="0" iyy="{}" iyz="0" izz="0.02"/></inertial></link>'
    )
    turn = (
        '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/>'
        '<origin xyz="{3} 0 0"/><axis xyz="0 1 0"/></joint>'
    )
    text = (
        '<robot name="belt"><link name="base"/>'
        + body.format("thigh", 2.0, 0.03) + body.format("shank", 0.4, 0.01)
        + body.format("pulley", 0.1, 1e-4).replace("0.15 0.02 0.05", "0 0 0")
        + turn.format("hip", "base", "thigh", 0) + turn.format("knee", "thigh", "shank", 0.3)
        + turn.format("follower", "base", "pulley", 0)
        + '<coupling name="belt"><predecessor link="shank"/><successor link="pulley"/>'
        '<ratio value="3"/></coupling></robot>'
    )  # fmt: skip
    model = rm.load(text, independent=["hip", "knee"])
    q, v, a = motion(model, 3, 400)
    true, scores = rm.parameters(model).values, dict[str, list[float]]()
    names = rm.parameters(model).names
    tau = rm.regressor(model, q, v, a) @ true
    size = 0.02 * np.sqrt(np.mean(tau**2, axis=0))
    for seed in range(60):
        noise = size * np.random.default_rng(seed).standard_normal(tau.shape)
        for group in rm.identify(model, q, v, a, tau + noise).groups:
            if group.information_gain > 0.5:
                exact = sum(k * true[names.index(n)] for n, k in group.coefficients.items())
                share = (group.value - exact) / group.deviation
                scores.setdefault(group.name, []).append(share)
    told = [np.sqrt(np.mean(np.square(x))) for x in scores.values() if len(x) == 60]
    assert len(told) > 5
    assert max(told) < 1.25  # 1.44 where rates count as independent
