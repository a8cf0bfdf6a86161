"""From motors to coordinates in other languages: programs, C, and the header for ros2_control."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cases import few
from compiled_targets import COMPILERS, called, library
from shipped_robots import motored
from texts import joint, link, robot

import robomodel as rm
from robomodel.interop.programs import routine

CPP = next(filter(None, map(shutil.which, ("g++", "clang++"))), "")
needs_cpp = pytest.mark.skipif(not CPP or not COMPILERS, reason="no C++ compiler here")
HERE = Path(__file__).parent / "data" / "ros2_control"
DRIVEN = '<limit effort="8" velocity="4"/>'
STRICT = ("-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror")


# ---- programs ------------------------------------------------------------------------------------


@pytest.mark.slow_cases("parallel_ankle")
@pytest.mark.parametrize(
    "name", few(["parallel_ankle", "belt_leg", "five_bar", "tello"], "parallel_ankle", "belt_leg")
)
def test_programs_of_the_state_at_the_motors(name: str) -> None:
    """The same as the function that iterates until it converges; efforts are the inverse map's."""
    model = motored(name)
    rng = np.random.default_rng(3)
    q = np.array([model.random_configuration(rng) for _ in range(60)])
    v, tau = rng.normal(size=(2, 60, model.nv))
    if model.floating_base is not None:
        v[:, :6] = tau[:, :6] = 0.0
    near = model.integrate(q, 0.02 * v / np.abs(v).max(axis=-1, keepdims=True))
    at, rates = rm.actuator_positions(model, q), rm.actuator_velocities(model, q, v)
    found = routine(model, "from_actuators")(at, rates, near)
    there = np.isfinite(found[0]).all(axis=-1)
    assert there.sum() >= 48  # not beside singular positions, where three steps do not suffice
    for got, exact in zip(found, (q, v), strict=True):
        assert np.isnan(got[~there]).all()
        np.testing.assert_allclose(got[there], exact[there], rtol=1e-9, atol=1e-9)
    u = rm.actuator_forces(model, q, tau)
    np.testing.assert_allclose(routine(model, "actuator_forces")(q, tau), u, rtol=1e-9, atol=1e-11)


def two_encoders() -> rm.Model:
    """A joint with motors of ratios 2 and 3."""
    return rm.load(robot(link("a"), joint("j", "base", "a", kind="revolute", more=DRIVEN)).replace(
        "</robot>", "".join(
            f'<transmission name="{n}"><type>transmission_interface/SimpleTransmission</type>'
            f'<joint name="j"/><actuator name="{n}"><mechanicalReduction>{n[1]}'
            "</mechanicalReduction></actuator></transmission>" for n in ("m2", "m3")
        ) + "</robot>"
    ))  # fmt: skip


def test_numbers_that_contradict_each_other_or_are_out_of_reach() -> None:
    model = two_encoders()
    state = routine(model, "from_actuators")
    q, v = state(np.array([[0.4, 0.6], [0.4, 0.7], [0.4, 0.6]]),
                 np.array([[2.0, 3.0], [2.0, 3.0], [2.0, 3.1]]), np.zeros((3, 1)))  # fmt: skip
    np.testing.assert_allclose((q[0], v[0]), ([0.2], [1.0]), rtol=1e-14)
    assert np.isnan(q[1:]).all()
    assert np.isnan(v[1:]).all()
    tau = np.array([6.5])
    u = routine(model, "actuator_forces")(np.zeros(1), tau)  # of least norm
    np.testing.assert_allclose(u, rm.actuator_forces(model, np.zeros(1), tau), rtol=1e-14)
    ankle = rm.robots.load("parallel_ankle")
    state = routine(ankle, "from_actuators")
    far = [[0.0, 0.0], [12.0, -12.0], [3.0, 3.0], [np.nan, 0.0]]
    found = [np.isfinite(x).all(axis=-1)
             for x in state(np.array(far), np.zeros(2), ankle.neutral())]  # fmt: skip
    np.testing.assert_array_equal(found, [[True, False, True, False]] * 2)
    hasty = routine(ankle, "from_actuators", steps=1)(np.array(far), np.zeros(2), ankle.neutral())
    np.testing.assert_array_equal(np.isfinite(hasty[0][:, 0]), [True, False, False, False])
    with pytest.raises(ValueError, match="leave 'waist-yaw"):
        rm.write_c(rm.robots.load("jvrc1"), "none.c", "from_actuators")
    with pytest.raises(ValueError, match="no option"):
        routine(ankle, "from_actuators", times=2)


@pytest.mark.slow
def test_the_state_at_the_motors_has_derivatives_in_jax() -> None:
    """Of joints by encoders: those of G v with Bᵀ v = rates."""
    jax = pytest.importorskip("jax")
    import robomodel.jax

    jax.config.update("jax_enable_x64", True)
    model = rm.robots.load("parallel_ankle")
    q = model.configuration({"pitch": 0.3, "roll": -0.2})
    at = rm.actuator_positions(model, q)
    f = robomodel.jax.function(model, "from_actuators")
    by_position = jax.jacfwd(lambda x: f(x, np.zeros(2), model.integrate(q, [0.02, 0.01]))[0])(at)
    inverse = np.linalg.inv(rm.actuator_map(model, q).T)
    exact = model.constraint_jacobian(q) @ inverse
    np.testing.assert_allclose(by_position, exact, rtol=1e-9, atol=1e-9)
    rates = np.array([1.0, 2.0])
    by_rate = jax.jit(jax.jacrev(lambda x: f(at, x, q)[1]))(rates)
    np.testing.assert_allclose(by_rate, inverse, rtol=1e-12)


@pytest.mark.slow
@needs_cpp
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["parallel_ankle", "tello", "mit_humanoid", "six_bar"])
def test_the_state_at_the_motors_in_c(name: str, dtype: str, tmp_path: Path) -> None:
    model = motored(name)
    rng = np.random.default_rng(3)
    start = model.neutral()  # farther away motors' positions leave assembly modes open
    q = np.array([model.random_configuration(rng, near=start) for _ in range(9)])
    v = rng.normal(size=(9, model.nv))
    if model.floating_base is not None:
        v[:, :6] = 0.0
    arguments = [rm.actuator_positions(model, q), rm.actuator_velocities(model, q, v), q]
    source, _ = rm.write_c(model, tmp_path / "r.c", "from_actuators", dtype=dtype)
    made = library(source, COMPILERS[0], "-O1")
    found = called(made.r_from_actuators, arguments, [model.nq, model.nv, 1], dtype)
    exact, tolerance = np.concatenate([q, v], axis=-1), 1e-9 if dtype == "float64" else 1e-3
    np.testing.assert_allclose(found[:, :-1], exact, rtol=tolerance, atol=tolerance)
    assert found[:, -1].max() < tolerance


# ---- the header ----------------------------------------------------------------------------------


def compiled(name: str, folder: Path, *include: Path) -> Path:
    """A program with the header of a robot."""
    rm.write_c(rm.robots.load(name), folder / f"{name}.c", (), ros2_control=True)
    program, objects = folder / "program", folder / "robot.o"
    source = str(folder / f"{name}.c")
    subprocess.run([COMPILERS[0], "-c", "-O1", source, "-o", str(objects)], check=True)
    defined = [f'-DTRANSMISSION="{name}_transmission.hpp"', f"-DROBOT={name}"]
    paths = [f"-I{path}" for path in (folder, *include)]
    command = [CPP, *STRICT, *paths, *defined, str(HERE / "program.cpp"), str(objects)]
    subprocess.run([*command, "-o", str(program), "-lm"], check=True)
    return program


def run(program: Path, states: np.ndarray) -> np.ndarray:
    lines = "\n".join(" ".join(map(repr, row.tolist())) for row in states)
    out = subprocess.run([str(program)], input=lines, capture_output=True, text=True, check=True)
    return np.array([[float(x) for x in line.split()] for line in out.stdout.splitlines()])


def follows(name: str, program: Path) -> None:
    """Positions come back, power is the same on both sides, and the maps are B's."""
    model = rm.robots.load(name)
    first = 6 if model.floating_base is not None else 0
    rng = np.random.default_rng(1)
    start = model.neutral()  # transmissions begin there
    q = np.array([model.random_configuration(rng, near=start) for _ in range(40)])
    if first:
        q[:, :7] = model.neutral()[:7]
    positions = model.joint_positions(q)
    names = model.dof_names[first:]
    n, nu = len(names), len(model.actuators)
    at = np.stack([positions[joint] for joint in names], axis=-1)
    v, tau = rng.normal(size=(2, 40, n))
    result = run(program, np.concatenate([at, v, tau], axis=1))
    motors, joints = result[:, : 3 * nu].reshape(40, 3, nu), result[:, 3 * nu :].reshape(40, 3, n)
    np.testing.assert_allclose(joints, np.stack([at, v, tau], axis=1), rtol=1e-10, atol=1e-10)
    power = np.einsum("ij,ij->i", tau, v)
    for side in (motors, joints):
        np.testing.assert_allclose(np.einsum("ij,ij->i", side[:, 1], side[:, 2]), power, atol=1e-12)
    wide = np.zeros((2, 40, model.nv))
    wide[:, :, first:] = v, tau
    expected = (
        rm.actuator_positions(model, q),
        rm.actuator_velocities(model, q, wide[0]),
        rm.actuator_forces(model, q, wide[1]),
    )
    for got, exact in zip(motors.transpose(1, 0, 2), expected, strict=True):
        np.testing.assert_allclose(got, exact, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@needs_cpp
def test_a_transmission_for_ros2_control(tmp_path: Path) -> None:
    program = compiled("parallel_ankle", tmp_path, HERE)
    follows("parallel_ankle", program)
    states = np.zeros((3, 6))
    states[:, 0] = 0.1, np.nan, 0.1
    lost = run(program, states)
    assert np.isnan(lost[1, :6]).all()  # and then as before
    np.testing.assert_allclose(lost[2], lost[0], atol=1e-12)


@needs_cpp
@pytest.mark.slow
@pytest.mark.parametrize("name", ["tello", "belt_leg", "mini_cheetah", "mit_humanoid"])
def test_transmissions_of_whole_robots(name: str, tmp_path: Path) -> None:
    follows(name, compiled(name, tmp_path, HERE))


@needs_cpp
@pytest.mark.slow
@pytest.mark.skipif("ROS2_CONTROL" not in os.environ, reason="ROS2_CONTROL names its sources")
def test_a_transmission_with_the_headers_of_ros2_control(tmp_path: Path) -> None:
    sources = Path(os.environ["ROS2_CONTROL"])
    folders = [sources / f"{each}_interface" / "include" for each in ("transmission", "hardware")]
    follows("parallel_ankle", compiled("parallel_ankle", tmp_path, *folders))


def test_robots_that_ros2_control_has_no_joints_for(tmp_path: Path) -> None:
    ball = rm.load(robot(link("a"), link("b"), joint("s", "base", "a", kind="spherical"),
                         joint("j", "a", "b", kind="revolute", more=DRIVEN)))  # fmt: skip
    for model, options, words in (
        (ball, {}, "'s.0' of .* is one of several"),
        (rm.robots.load("four_bar"), {}, "no actuators"),
        (two_encoders(), {"dtype": "float32"}, "float64"),
        (two_encoders(), {"functions": {"close": "actuator_map"}}, "is what the header"),
    ):
        with pytest.raises(ValueError, match=words):
            rm.write_c(model, tmp_path / "r.c", ros2_control=True, **options)
    assert not list(tmp_path.iterdir())
