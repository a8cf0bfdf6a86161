"""Calibration: geometry from encoders on more joints than freedoms, and from tracked frames."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from agreement import close
from numpy.typing import NDArray

import robomodel as rm
from robomodel.cli import main

Array = NDArray[np.float64]
BAR = {"joint2.x": 0.5004, "loop.successor.x": 0.4995, "loop.predecessor.x": 1.0006}


def moved(model: rm.Model, count: int, seed: int = 0) -> tuple[Array, Array]:
    """Configurations and the positions of all joints there."""
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return q, np.stack([*model.joint_positions(q).values()], axis=-1)


@pytest.mark.slow
def test_a_linkage_from_its_encoders() -> None:
    model = rm.robots.load("four_bar")
    true = BAR | {"joint3.rz": 2e-3}  # and an encoder's offset
    q, y = moved(rm.with_parameters(model, true), 40)
    fit = rm.calibrate(model, y, list(true))
    close(fit.values, np.array([*true.values()]), 1e-9)
    assert fit.unknown == ()
    assert np.all(fit.residual < 1e-9)
    close(fit.q, q, 1e-7)
    close(rm.parameters(fit.model, geometry=True)["joint2.x"], np.array(BAR["joint2.x"]), 1e-9)
    assert fit["joint2.x"] == fit.values[0]


@pytest.mark.slow
def test_noise_and_what_it_leaves() -> None:
    """Errors of 0.5 mm become less than 0.1 mm with 1e-4 rad of noise, and as said."""
    model = rm.robots.load("four_bar")
    _, y = moved(rm.with_parameters(model, BAR), 60)
    errors = []
    for seed in range(6):
        noise = 1e-4 * np.random.default_rng(seed).normal(size=y.shape)
        fit = rm.calibrate(model, y + noise, list(BAR))
        error = fit.values - np.array([*BAR.values()])
        assert np.max(np.abs(error)) < 1e-4
        errors.append(error @ np.linalg.solve(fit.covariance, error) / len(BAR))
    assert 0.2 < np.mean(errors) < 3.0  # chi squared of 18 is within 0.3 and 2.1 of its mean


@pytest.mark.slow
def test_what_cannot_be_known_is_named() -> None:
    """Angles do not tell a linkage's size: one of its lengths must be given."""
    model = rm.robots.load("four_bar")
    _, y = moved(rm.with_parameters(model, BAR), 40)
    lengths = ["joint2.x", "joint3.x", "loop.successor.x", "loop.predecessor.x"]
    fit = rm.calibrate(model, y, [*lengths, "joint3.rz", "link2.mass"])
    assert fit.unknown == (tuple(lengths), ("link2.mass",))
    assert np.isinf(fit.sigmas["joint2.x"])
    assert fit.sigmas["joint3.rz"] < 1e-6
    assert fit["link2.mass"] == rm.parameters(model)["link2.mass"]
    scale = fit["joint3.x"]  # 1 in truth
    close(fit["loop.successor.x"] / scale, np.array(BAR["loop.successor.x"]), 1e-8)


@pytest.mark.slow
def test_frames_tell_size_and_outliers_do_not_count() -> None:
    model = rm.robots.load("four_bar")
    true = BAR | {"joint3.x": 1.0003}
    other = rm.with_parameters(model, true)
    q, y = moved(other, 50)
    frame = ("link2", (0.2, 0.1, 0.0))
    points = rm.frame_pose(other, q, frame)[:, :3, 3]
    fit = rm.calibrate(model, y, list(true), frames={frame: points})
    close(fit.values, np.array([*true.values()]), 1e-8)
    rng = np.random.default_rng(0)
    spoilt = y + 1e-5 * rng.normal(size=y.shape)
    spoilt[::10, 1] += 0.05
    spoilt[3, 2] = np.nan
    plain = rm.calibrate(model, spoilt, list(true), frames={frame: points})
    fit = rm.calibrate(model, spoilt, list(true), frames={frame: points}, robust=True)
    error, worse = (np.max(np.abs(x.values - [*true.values()])) for x in (fit, plain))
    assert error < 1e-4
    assert error < 0.1 * worse


@pytest.mark.slow
def test_gears_and_rods_on_a_floating_base() -> None:
    model = rm.load(rm.robots.path("parallel_ankle"), floating_base=True)
    listed = rm.parameters(model, geometry=True)
    true = {"left_rod.length": listed["left_rod.length"] + 5e-4, "left_gear.left_motor": -9.03}
    other = rm.with_parameters(model, true)
    _, y = moved(other, 30)
    sensors = [name for name in model.joint_names if name != model.floating_base]
    fit = rm.calibrate(model, y, list(true), sensors=sensors)
    close(fit.values, np.array([*true.values()]), 1e-8)


@pytest.mark.slow
def test_one_leg_by_its_own_encoders() -> None:
    """Freedoms that nothing reads stay at the guess; what only they would tell is named."""
    model = rm.robots.load("tello")
    listed = rm.parameters(model, geometry=True)
    true = {"left-hip-rod-1.length": listed["left-hip-rod-1.length"] + 4e-4,
            "left-ankle-rod.length": listed["left-ankle-rod.length"] - 3e-4,
            "left-shin-to-foot.x": listed["left-shin-to-foot.x"]}  # fmt: skip
    robot = rm.with_parameters(model, true)
    q, _ = moved(robot, 20)
    positions = robot.joint_positions(q)
    sensors = [x for x in positions if x.startswith(("left-hip-clamp-to", "left-gimbal", "left-th",
                                                     "left-shin"))]  # fmt: skip
    y = np.stack([positions[name] for name in sensors], axis=-1)
    names = [*true, "right-ankle-rod.length"]
    fit = rm.calibrate(model, y, names, sensors=sensors)
    close(fit.values[:3], np.array([*true.values()]), 1e-9)
    assert fit.unknown == (("right-ankle-rod.length",),)
    at, there = model.joint_positions(fit.q), model.joint_positions(model.close(model.neutral()))
    for name in ("torso-to-left-hip-clamp", "right-thigh-to-shin", "right-gimbal-to-thigh"):
        close(at[name], np.full(20, there[name]), 1e-12)
    noisy = y + 1e-4 * np.random.default_rng(1).normal(size=y.shape)
    deviation = rm.calibrate(model, noisy, names[:2], sensors=sensors).residual
    assert 0.5e-4 < np.max(deviation) < 2e-4

    # a tracker sees the foot: its position depends on the hip's yaw, and on the base, which is told
    frame = ("left-foot", (0.03, 0.01, -0.02))
    points = rm.frame_pose(robot, q, frame)[:, :3, 3]
    fit = rm.calibrate(model, y, names[:3], sensors=sensors, frames={frame: points}, guess=q)
    close(fit.values, np.array([*true.values()]), 1e-9)
    assert fit.unknown == ()
    close(rm.frame_pose(fit.model, fit.q, frame)[:, :3, 3], points, 1e-9)
    for wrong in (q[:3], q[0, 1:], np.full(model.nq, np.nan)):
        with pytest.raises(ValueError, match="guess"):
            rm.calibrate(model, y, names, sensors=sensors, guess=wrong)
    with pytest.raises(ValueError, match="no more than the freedoms"):
        rm.calibrate(model, y[:, :2], names, sensors=sensors[:2])


@pytest.mark.slow
def test_what_noise_hides_stays_near_the_file() -> None:
    """Of fourteen numbers of an ankle's rods readings tell ten; errors shrink in all of them."""
    model = rm.robots.load("parallel_ankle")
    listed, rng = rm.parameters(model, geometry=True), np.random.default_rng(0)
    ends = [f"{end}.{axis}" for end in ("predecessor", "successor") for axis in "xyz"]
    names = [f"{rod}_rod.{n}" for rod in ("left", "right") for n in ("length", *ends)]
    file = np.array([listed[name] for name in names])
    true = file + 5e-4 * rng.uniform(-1.0, 1.0, len(names))
    _, y = moved(rm.with_parameters(model, dict(zip(names, true, strict=True))), 80)
    fit = rm.calibrate(model, y + 1e-4 * rng.normal(size=y.shape), names)
    before, error = file - true, fit.values - true
    assert np.sqrt(np.mean(error**2)) < 0.6 * np.sqrt(np.mean(before**2))
    told = [n for n, name in enumerate(names) if name.endswith(("length", ".z"))]
    assert np.max(np.abs(error[told])) < 1e-4
    assert error @ np.linalg.solve(fit.covariance, error) / len(names) < 3.0
    assert {each for group in fit.unknown for each in group} == {
        name for name in names if name.endswith((".x", ".y"))
    }


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = rm.robots.load("four_bar")
    true = rm.with_parameters(model, BAR)
    q, y = moved(true, 30)
    tip = rm.frame_pose(true, q, "link2")[:, :3, 3]
    path, out = tmp_path / "readings.csv", tmp_path / "out.urdf"
    table = np.concatenate([y, tip], axis=1)
    header = ",".join([*(f"q.{n}" for n in model.joint_names), *(f"p.link2.{x}" for x in "xyz")])
    np.savetxt(path, table, delimiter=",", header=header, comments="")

    def run(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as done:
            main(["calibrate", "four_bar", *words])
        return int(done.value.code or 0), "".join(capsys.readouterr())

    free = [word for name in BAR for word in ("--free", name)]
    code, text = run(str(path), *free, "--json", "-o", str(out))
    assert code == 0
    report = json.loads(text)
    assert [each["value"] for each in report["parameters"]] == pytest.approx([*BAR.values()])
    assert report["unknown"] == report["unused"] == []
    close(rm.parameters(rm.load(out), geometry=True)["joint2.x"], np.array(0.5004), 1e-9)
    assert "only together" in run("--what", "--free", "*.x", "--sensor", "joint1", "--sensor",
                                  "joint2")[1]  # fmt: skip
    assert "no parameter 'joint2.xx'" in run(str(path), "--free", "joint2.xx")[1]
    assert run(str(path))[0] == run(*free)[0] == 2
    path.write_text("time,angle\n0,1\n")
    assert "no column q.JOINT" in run(str(path), *free)[1]


@pytest.mark.parametrize("independent", ["crank_joint", "rocker_joint"])
def test_samples_beyond_dead_points_of_the_independent_joint(independent: str) -> None:
    """All round, and on both sheets of the rocker: from each reading its linkage closes there."""
    model = rm.load(rm.robots.path("crank_rocker"), independent=[independent])
    length = rm.parameters(model, geometry=True)["rocker_joint.x"] + 0.01
    robot = rm.with_parameters(model, {"rocker_joint.x": length})
    rng, sensors = np.random.default_rng(2), ["crank_joint", "rocker_joint"]
    q = np.array([robot.random_configuration(rng) for _ in range(40)])
    angles = robot.joint_positions(q)
    measured = np.stack([angles[name] for name in sensors], axis=1)
    fit = rm.calibrate(model, measured, "rocker_joint.x", sensors=sensors)
    assert abs(fit["rocker_joint.x"] - length) < 1e-12
    assert fit.residual.max() < 1e-12
