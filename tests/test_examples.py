"""The examples run, and say what they should."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rollouts import q_and_v

import robomodel as rm

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.slow
def test_states_on_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes find what one does, and what NumPy finds."""
    pytest.importorskip("distributed")
    monkeypatch.syspath_prepend(EXAMPLES)  # the workers' path is this process's
    module = importlib.import_module("ten_million_states")
    from dask.distributed import Client, LocalCluster

    model = rm.robots.load("mini_cheetah")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        found = module.evaluate(client, model, states=50_000, size=7_000)
    assert found.count == 50_000
    alone = module.add_up(
        [module.piece(model, k, min(7_000, 50_000 - 7_000 * k)) for k in range(8)]
    )
    np.testing.assert_array_equal(found.largest, alone.largest)
    np.testing.assert_array_equal(found.total, alone.total)
    weight = model.mass * 9.81  # whatever the legs do, the base carries it
    np.testing.assert_allclose(found.total[5] / found.count, weight, rtol=1e-12)

    rng = np.random.default_rng([2026, 3])
    q = np.tile(model.neutral(), (100, 1))
    q[:, 7:] += rng.uniform(-module.REACH, module.REACH, size=(100, model.nq - 7))
    still = np.zeros(model.nv)
    expected = rm.rnea(model, q, still, still, backend="numpy")
    part = module.piece(model, 3, 100)
    np.testing.assert_allclose(part.total, expected.sum(axis=0), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(part.largest, np.abs(expected).max(axis=0), rtol=1e-11, atol=1e-11)


BUILDS = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("c++")), reason="no CMake, or no C++ compiler"
)


def cmake_options(command: Path) -> list[str]:
    folder = subprocess.run([command, "--cmake-dir"], check=True, capture_output=True, text=True)
    return [f"-DROBOMODEL={command}", f"-Drobomodel_DIR={folder.stdout.strip()}"]


MAIN = """#include "leg.h"
#include <cstdio>
int main() {
  const double q[1] = {0.0}, v[1] = {0.0}, a[1] = {1.0};
  double tau[1];
  leg_rnea(q, v, a, tau);
  std::printf("%.6g", tau[0]);
}
"""
CMAKE = """cmake_minimum_required(VERSION 3.18)
project(page LANGUAGES C CXX)
"""
ROBOT = """<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="IZZ" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
  </joint></robot>"""


@pytest.mark.slow
@BUILDS
def test_the_cmake_of_the_tutorial(tmp_path: Path) -> None:
    """As the page prints it; a changed robot is generated again."""
    command = Path(sys.executable).with_name("robomodel")
    if not command.exists():
        pytest.skip("the command robomodel is not installed beside Python")
    page = (EXAMPLES.parent / "docs/tutorials/controller.md").read_text(encoding="utf-8")
    text = page.partition("```cmake\n")[2].partition("```")[0]
    text = text.replace("rnea close joint_positions actuator_map", "rnea")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE + text)
    (tmp_path / "main.cpp").write_text(MAIN)
    build = tmp_path / "build"
    told = []
    for izz in ("2", "5"):
        (tmp_path / "robot.urdf").write_text(ROBOT.replace("IZZ", izz))
        if not build.exists():
            configure = ["cmake", "-S", str(tmp_path), "-B", str(build)]
            subprocess.run([*configure, *cmake_options(command)], check=True, capture_output=True)
        subprocess.run(["cmake", "--build", str(build)], check=True, capture_output=True)
        told.append(subprocess.check_output([build / "controller"], text=True))
    assert told == ["2", "5"]


@pytest.mark.slow
@BUILDS
def test_a_controller_in_cpp(tmp_path: Path) -> None:
    """It is built as a user builds it, and its legs follow."""
    command = Path(sys.executable).with_name("robomodel")
    if not command.exists():
        pytest.skip("the command robomodel is not installed beside Python")
    configure = ["cmake", "-S", EXAMPLES / "cpp_controller", "-B", tmp_path]
    subprocess.run([*map(str, configure), *cmake_options(command)], check=True)
    subprocess.run(["cmake", "--build", str(tmp_path), "--config", "Release"], check=True)
    programs = [tmp_path / "controller", tmp_path / "Release" / "controller.exe"]
    program = next(path for path in programs if path.exists())
    said = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    assert "tracking within" in said


@pytest.mark.slow
def test_a_trajectory_by_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """It arrives, and NumPy's steps under its torques arrive at the same place."""
    pytest.importorskip("jax", reason="JAX is not installed")
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("jax_trajectory")
    model = rm.robots.load("planar_leg_linkage")
    found = module.swing(model)
    assert found.miss < 2e-2
    q, v = model.neutral(), np.zeros(model.nv)
    for tau in found.tau:
        v = v + module.STEP * rm.aba(model, q, v, tau)
        q = model.integrate(q, module.STEP * v)
    np.testing.assert_allclose(found.q, q, atol=1e-6)
    np.testing.assert_allclose(found.v, v, atol=1e-5)


@pytest.mark.slow
def test_a_leg_swings_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels' own steps, under the torques that were found, end upright as well."""
    pytest.importorskip("casadi")
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("swing_up")
    model = module.leg()
    found = module.swing_up(model)
    assert found.solved
    assert np.abs(model.residual(found.q)).max() < 1e-12
    assert np.all(np.abs(found.tau) <= np.array(module.LIMITS).ravel() + 1e-7)
    q, v = q_and_v(
        rm.rollout(  # each step by itself: over all of them the solver's tolerance grows
            model,
            found.q[:-1],
            found.v[:-1],
            found.tau[:, None],
            module.STEP,
            method="semi_implicit_euler",
        )
    )
    np.testing.assert_allclose(q[:, 1], found.q[1:], atol=1e-6)
    np.testing.assert_allclose(v[:, 1], found.v[1:], atol=1e-5)
    np.testing.assert_allclose(found.q[-1], model.configuration(module.UPRIGHT), atol=1e-5)


@pytest.mark.slow
def test_a_landing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It stands on the ground at the end, which bears its weight."""
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("landing")
    motion = module.landing()
    assert motion.contact_residual.max() <= 1e-10
    weight = motion.model.mass * 9.81
    np.testing.assert_allclose(motion.contact_forces[-1].sum(axis=0), [0, 0, weight], atol=0.5)
    assert np.abs(motion.v[-1]).max() < 0.05
    assert np.all(motion.contact_forces[..., 2] >= -1e-9)
    monkeypatch.setattr(sys, "argv", ["landing.py", str(tmp_path / "landing.html")])
    module.main()
    assert "touches the ground at 0.17" in capsys.readouterr().out
    assert (tmp_path / "landing.html").stat().st_size > 10_000


@pytest.mark.slow
def test_a_hopping_leg(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It leaves the ground again and again, its loop closed."""
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("hopping")
    motion = module.hopping()
    assert len(module.hops(motion)) >= 3
    assert motion.residual.max() < 1e-12
    assert motion.contact_residual.max() <= 1e-10
    flies = motion.contact_forces[:, 0, 2] == 0.0
    assert 0.1 < flies.mean() < 0.95
    monkeypatch.setattr(sys, "argv", ["hopping.py"])
    module.main()
    assert "hops of" in capsys.readouterr().out


@pytest.mark.slow
def test_bodies_on_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes come to rest where they stand upon each other, without a gap."""
    pytest.importorskip("coal", reason="bodies against each other need coal")
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("bodies")
    motion = module.settling()
    sides = np.array(module.SIDES)
    np.testing.assert_allclose(motion.q[-1, 2::7], np.cumsum(sides) - sides / 2, atol=1e-5)
    assert np.abs(motion.v[-1]).max() < 1e-10
    assert motion.contact_residual.max() <= 1e-8
    assert np.all(np.diff(motion.energy) <= 1e-9)


@pytest.mark.slow
def test_legs_are_identified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forces on fresh motions within 2 %, rotors' inertias within 5 %, from 1 % of noise."""
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("identifying")
    for name, rotors in (("belt_leg", 2), ("planar_leg_linkage", 0)):
        found = module.identified(name)
        assert found.before.max() > 0.2
        assert found.after.max() < 0.02
        assert len(found.rotors) == rotors
        assert max(found.rotors.values(), default=0.0) < 0.05


@pytest.mark.slow
def test_a_push_is_felt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Soon, and as it was; nothing is felt before."""
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("collision")
    found = module.feel(module.motion())
    assert np.abs(found.felt[found.t < module.FROM]).max() < 1e-4
    soon = found.felt[np.isclose(found.t, module.FROM + 0.01)]
    assert np.abs(soon).max() > module.ALARM
    settled = (found.t > module.FROM + 0.1) & (found.t < module.TO)
    error = (found.felt - found.pushed)[settled]
    assert np.abs(error).max() < 0.1 * np.abs(found.pushed).max()
    np.testing.assert_allclose(found.force[settled].mean(axis=0), module.PUSH[[3, 5]], atol=0.5)
    module.main()
    assert "detected at 1.00" in capsys.readouterr().out


@pytest.mark.slow
def test_a_linkage_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors fall, and V falls by what gains and damping take."""
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("adaptive")
    run, deaf = module.follow(), module.follow(1.0, learning=False)
    np.testing.assert_allclose(run.energy + run.taken, run.energy[0], rtol=1e-7)
    assert np.diff(run.energy).max() < 1e-7 * run.energy[0]
    first, last = (np.abs(run.error[part]).max() for part in (run.t < 2.0, run.t > 6.0))
    assert last < 0.6 * first
    assert last < 0.1 * np.abs(deaf.error).max()
    assert run.residual < 1e-12


def control_example(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES / "control")
    return importlib.import_module(name)


@pytest.mark.slow
def test_a_four_bar_leg_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Higher and higher, with forces within its motors' limits."""
    module = control_example("four_bar_leg_jumps", monkeypatch)
    motion = module.jump(0.65)
    first, second = module.jumps(motion)
    assert 0.03 < first < second - 0.02
    assert motion.residual.max() < 1e-12
    assert np.abs(motion.tau).max() <= module.MOST + 1e-8


@pytest.mark.slow
def test_mini_cheetah_trots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each foot leaves the ground in its turn, and the base stays where it is."""
    module = control_example("mini_cheetah", monkeypatch)
    motion = module.trot(1.05)
    assert module.lifts(motion) == [2, 2, 2, 2]
    assert np.linalg.norm(motion.q[:, :3] - motion.q[0, :3], axis=1).max() < 0.03


@pytest.mark.slow
def test_tello_squats(monkeypatch: pytest.MonkeyPatch) -> None:
    """The centre of mass goes down and comes back, feet stand, motors keep their limits."""
    module = control_example("tello_squats", monkeypatch)
    motion = module.squat(0.8)
    model = motion.model
    height = rm.center_of_mass(model, motion.q)[:, 2]
    assert 0.07 < height[0] - height.min() < 0.1
    assert height[-1] > height.min() + 0.02
    assert motion.residual.max() < 1e-12
    for link, offset in module.SOLES:
        at = rm.frame_pose(model, motion.q, (link, offset))[:, :3, 3]
        assert np.abs(at - at[0]).max() < 1e-3
    u = rm.actuator_forces(model, motion.q[:-1], motion.tau[: len(motion.q) - 1])
    assert np.abs(u).max() <= module.MOST * (1 + 1e-8)


@pytest.fixture
def walking(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("jax")
    pytest.importorskip("gymnasium")
    monkeypatch.syspath_prepend(EXAMPLES / "learning")
    return importlib.import_module("walking")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:contacts of .* are not solved:RuntimeWarning")
def test_learned_policies_walk(walking: Any) -> None:
    """Those that are kept: forwards at nearly the speed that is asked for, nobody falls."""
    for file in (EXAMPLES / "learning").glob("*.npz"):
        policy = walking.ppo.Policy.load(file)
        done = walking.walk(policy, walking.Walking(file.stem), 8, 4.0)
        assert not done.fallen.any()
        assert done.speed.min() > 0.7 * walking.ROBOTS[file.stem].speed
        assert len(done.motion().times) == len(done.q)


@pytest.mark.tables
def test_a_policy_learns(walking: Any) -> None:
    """The reward grows within fifteen iterations of few robots, the same for the same seed."""
    env = walking.Scaled(walking.Walking("mini_cheetah"), 128)
    curves = []
    for _ in range(2):
        robots = walking.ppo.Robots(env, 1)
        count = 15 if not curves else 2
        curves.append(walking.ppo.learn(robots.collect, robots.sizes, count, 1)[1].rewards)
    assert min(curves[0][-3:]) > max(curves[0][1:4])  # the first begins with all upright
    np.testing.assert_allclose(curves[1], curves[0][:2], rtol=1e-6)


def test_advantages(walking: Any) -> None:
    """Those of a constant reward are the geometric sums, cut where episodes end."""
    gamma, decay = walking.ppo.GAMMA, walking.ppo.GAMMA * walking.ppo.LAMBDA
    over = np.zeros((6, 2))
    over[2, 1] = 1.0
    still = np.zeros((6, 2))
    gain, returns = walking.ppo.advantages(still + 1.0, still, np.ones(2), over)
    powers = decay ** np.arange(6)
    np.testing.assert_allclose(gain[0], [powers.sum() + gamma * powers[5], powers[:3].sum()])
    np.testing.assert_array_equal(returns, gain)


@pytest.mark.slow
def test_randomised_robots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heavier trunks sink more, and none falls."""
    monkeypatch.syspath_prepend(EXAMPLES)
    example = importlib.import_module("randomised")
    sim, start = example.stood(8)
    moved = sim.frame("Floating Base")[:, :3, 3] - start
    assert np.all(np.abs(moved) < 0.03)
    assert np.corrcoef(sim.parameters["Floating Base.mass"], moved[:, 2])[0, 1] < -0.5


@pytest.mark.slow
def test_a_digger_is_worth_at_its_teeth_what_geometry_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cylinders' areas, and levers of their lines by plane geometry of the closed poses."""
    monkeypatch.syspath_prepend(EXAMPLES / "design")
    digger = importlib.import_module("digger")
    model = digger.digger()
    q = model.configuration(dict(zip(digger.BORES, (1.9, 3.1, 2.1), strict=True)))
    at = {name: float(x) for name, x in model.joint_positions(q).items()}

    def turned(angle: float, x: float, z: float) -> NDArray[np.float64]:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([c * x - s * z, s * x + c * z])

    eye = turned(at["boom"], 2.1, 0.75)
    foot = np.array([0.5, -0.55])
    line = (eye - foot) / np.linalg.norm(eye - foot)
    boom_lever = eye[0] * line[1] - eye[1] * line[0]
    arm = turned(at["stick"], -0.75, 0.3)
    line = arm + np.array([5.7 - 2.9, -1.0])
    line /= np.linalg.norm(line)
    stick_lever = arm[0] * line[1] - arm[1] * line[0]

    def length(bucket: float) -> float:
        """Of the bucket's cylinder: the rocker's end is on the axis of the kite."""
        half = (np.pi - (bucket + 1.8)) / 2
        reach = 0.45 * np.cos(half) + np.sqrt(0.62**2 - (0.45 * np.sin(half)) ** 2)
        end = reach * np.array([np.cos(np.pi - half), np.sin(np.pi - half)])
        return float(np.linalg.norm(end - [0.35 - 2.9, 0.55]))

    assert abs(length(at["bucket"]) - 2.1) < 1e-9
    h = 1e-5
    bucket_lever = (length(at["bucket"] + h) - length(at["bucket"] - h)) / (2 * h)
    teeth = turned(at["stick"], 2.9, 0.0) + turned(at["stick"] + at["bucket"], 1.5, 0.0)
    from_boom = turned(at["boom"], *(teeth + np.array([5.7, 0.0])))
    radii = [np.linalg.norm(from_boom), np.linalg.norm(teeth), 1.5]
    found = digger.at_teeth(model, q)
    levers = (boom_lever, stick_lever, bucket_lever)
    for name, lever, radius in zip(digger.BORES, levers, radii, strict=True):
        bore, annulus = digger.areas(name)
        scale = digger.PRESSURE * abs(lever) / radius
        np.testing.assert_allclose(found[name], (-annulus * scale, bore * scale), rtol=1e-8)
    fastest = model.velocity_lower, model.velocity_limit
    np.testing.assert_allclose(fastest[1], [digger.FLOW / digger.areas(n)[0] for n in found])
    np.testing.assert_allclose(fastest[0], [-digger.FLOW / digger.areas(n)[1] for n in found])


@pytest.mark.slow
def test_a_lossy_leg_holds_what_its_gears_say_and_lands_as_mujocos_without_losses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The load at which it begins to move, from efficiencies alone; 5 and 15 kg, down and up."""
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("losses_beside_mujoco")
    for body in (5.0, 15.0):
        lossy = module.leg(body, module.LOSSES)
        knee = abs(float(module.standing(lossy)[2]))
        lever = module.LENGTH * np.sin(module.HIP)
        for sign, share in ((-1.0, 1.0 / 0.7 - 1.0), (1.0, 1.0 - 0.8)):
            force = sign * share * knee / lever
            for times, moves in ((0.99, False), (1.15, True)):
                heights, _ = module.moved(lossy, None, 0.1, push=times * force)
                assert (abs(heights[-1] - module.BENT[0]) > 1e-6) == moves
    fallen = [
        np.min(module.moved(module.leg(), friction, 0.3, height=0.15, gains=1.0)[0])
        for friction in (None, np.zeros(2))
    ]
    assert abs(fallen[0] - fallen[1]) < 2.5e-3  # of 33 mm: its ground is softer
