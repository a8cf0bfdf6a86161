"""Modules of JavaScript, run by Node: results, sizes of functions, errors."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from cases import few
from mechanisms import random_mechanism
from node import Job, node, run

import robomodel as rm
from robomodel.cli import main
from robomodel.interop.javascript import module
from robomodel.interop.programs import routine
from robomodel.kernels.javascript import LONGEST

FUNCTIONS = ("aba", "rnea", "crba", "energy", "close", "integrate", "joint_positions", "link_poses")


def compare(model: rm.Model, folder: Path, functions: tuple[str, ...] = FUNCTIONS) -> None:
    """Results in Node against NumPy's."""
    path = rm.write_js(model, folder / f"{model.name}.mjs", functions)
    rng, count = np.random.default_rng(5), 3
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    jobs, expected = [], []
    for name in functions:
        function = routine(model, name)
        arguments = [
            q if each == "q" else (1e-2 if each == "v_dt" else 1.0) * rng.normal(size=(count, size))
            for each, size in function.arguments.items()
        ]
        results = function.on_arrays(*arguments)
        parts = results if isinstance(results, tuple) else (results,)
        expected.append(np.hstack([np.reshape(part, (count, -1)) for part in parts]))
        if name == "close":  # whose status follows
            expected[-1] = np.hstack([expected[-1], np.zeros((count, 1))])
        jobs.append(Job(path, name, arguments, expected[-1].shape[1]))
    for job, found, right in zip(jobs, run(jobs, folder), expected, strict=True):
        scale = np.maximum(np.abs(right).max(axis=1, keepdims=True), 1.0)
        assert np.max(np.abs(found - right) / scale) < 1e-12, job.function


@pytest.mark.slow_cases("mini_cheetah")
@pytest.mark.parametrize(
    "name", few(rm.robots.names(), "four_bar", "mini_cheetah", "parallel_ankle")
)
def test_results_are_numpys(name: str, tmp_path: Path) -> None:
    compare(rm.robots.load(name), tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_ball_joints_in_a_loop_on_a_floating_base(tmp_path: Path) -> None:
    mechanism = random_mechanism(np.random.default_rng(2), ["spatial_loop"], floating_base=True)
    compare(rm.load(mechanism.text, floating_base=mechanism.floating_base), tmp_path)


def test_steps_of_inverse_kinematics(tmp_path: Path) -> None:
    model = rm.robots.load("planar_leg_linkage")
    path = rm.write_js(model, tmp_path / "leg.mjs", ["ik:foot"])
    function = routine(model, "ik", frames=["foot"])
    pose = rm.frame_pose(model, model.random_configuration(3), "foot")
    arguments = [model.neutral()[None], pose.reshape(1, 16), np.array([[1e-2]])]
    found = run([Job(path, "ik_foot", arguments, function.size)], tmp_path)[0]
    np.testing.assert_allclose(
        found[0], np.hstack(function.on_arrays(*(x[0] for x in arguments))), rtol=0, atol=1e-12
    )


@pytest.mark.slow
def test_derivatives_in_parts(tmp_path: Path) -> None:
    compare(rm.robots.load("mini_cheetah"), tmp_path, ("aba_derivatives", "rnea_derivatives"))


@pytest.mark.slow
def test_no_function_is_longer_than_engines_optimise(tmp_path: Path) -> None:
    model = rm.robots.load("mini_cheetah")
    text = module(model, {name: routine(model, name) for name in ("aba", "integrate", "crba")})
    functions = re.split(r"\n *(?:export |return )?function ", text)[1:]
    assert len(functions) > 8
    statements = [each.count(" const t") for each in functions]
    assert max(statements) <= LONGEST
    assert sum(statements) > 2 * LONGEST


def test_calls(tmp_path: Path) -> None:
    """New results or given ones, arguments in their place, names, and what is refused."""
    model = rm.robots.load("mini_cheetah")
    functions = ["aba", "energy", "frame_pose", "frame_pose:FR_foot_contact"]
    rm.write_js(model, tmp_path / "robot.mjs", functions)
    q = model.random_configuration(np.random.default_rng(1))
    printed = node(
        f"""
import * as robot from "./robot.mjs";
const q = {q.tolist()}, v = new Float64Array(18).fill(0.3), tau = new Float64Array(18).fill(0.2);
const said = (f) => {{ try {{ f(); }} catch (error) {{ return `${{error}}`; }} }};
const out = {{ kinetic: new Float64Array(1), potential: new Float64Array(1) }};
const pose = new Float64Array(16);
console.log(JSON.stringify([
  Object.keys(robot), robot.model.link_names, robot.model.dof_names, [...robot.model.neutral],
  robot.energy(q, v, out) === out, out.kinetic[0], out.potential[0],
  robot.frame_pose(q, "FR_foot_contact", pose) === pose, [...pose],
  [...robot.frame_pose_FR_foot_contact(q)],
  [...robot.aba(q, v, tau)], [...robot.aba(q, v, tau, tau)],
  said(() => robot.aba(q, [1], tau)), said(() => robot.frame_pose(q, "foot")),
]));
""",
        tmp_path,
    )
    names, links, freedoms, neutral, same, kinetic, potential, filled, pose, one, a, over, *said = (
        json.loads(printed)
    )
    functions[-1] = "frame_pose_FR_foot_contact"
    assert names == sorted([*functions, "link_poses", "model"])
    assert links == [frame.name for frame in model.frames]
    assert freedoms == list(model.dof_names)
    assert neutral == model.neutral().tolist()
    assert same
    assert filled
    v, tau = np.full(18, 0.3), np.full(18, 0.2)
    np.testing.assert_allclose([kinetic, potential], rm.energy(model, q, v), rtol=1e-12)
    right = rm.frame_pose(model, q, "FR_foot_contact").ravel()
    np.testing.assert_allclose([pose, one], [right, right], atol=1e-14)
    right = rm.aba(model, q, v, tau)
    np.testing.assert_allclose([a, over], [right, right], rtol=1e-11)
    assert said == [
        "RangeError: v has 18 numbers, not 1",
        "RangeError: no link 'foot'",
    ]


@pytest.mark.slow
def test_poses_of_all_links_are_those_of_each() -> None:
    model = rm.robots.load("tello")
    rng = np.random.default_rng(3)
    q = np.array([model.random_configuration(rng) for _ in range(2)])
    poses = routine(model, "link_poses").on_arrays(q)
    assert poses.shape == (2, len(model.frames), 4, 4)
    for i, frame in enumerate(model.frames):
        np.testing.assert_allclose(poses[:, i], rm.frame_pose(model, q, frame.name), atol=1e-14)


def test_what_cannot_be_had_is_said_before_anything_is_written(tmp_path: Path) -> None:
    model = rm.robots.load("four_bar")
    path = tmp_path / "robot.js"
    for functions, message in (
        (("rollout",), "'rollout' cannot be had"),
        (("abba",), "did you mean 'aba'"),
        ((), "no functions"),
        (("aba", "aba"), "two functions"),
        ({"a-b": "aba", "a_b": "rnea"}, "two functions"),
        ({"link_poses": "aba", "frame_pose": "frame_pose"}, "'link_poses' is what"),
        (("frame_pose:foot",), "no link 'foot'"),
    ):
        with pytest.raises((ValueError, KeyError), match=message):
            rm.write_js(model, path, functions)
    with pytest.raises(ValueError, match=r"end in \.js or \.mjs"):
        rm.write_js(model, tmp_path / "robot.c")
    with pytest.raises(TypeError, match="functions are names"):
        rm.write_js(model, path, 3)
    with pytest.raises(TypeError, match="a Model is needed, not the text 'four_bar'"):
        rm.write_js("four_bar", path)
    assert not list(tmp_path.iterdir())


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def called(*arguments: str) -> int:
        with pytest.raises(SystemExit) as done:
            main(["code", "four_bar", "-o", str(tmp_path), "--language", "js", *arguments])
        return int(done.value.code or 0)

    assert called("--functions", "aba,frame_pose", "--stem", "robot") == 0
    said = node(
        """
import { aba, frame_pose } from "./robot.js";
console.log(aba([0.8, -0.8, 0.8], [0], [1]).length, frame_pose([0.8, -0.8, 0.8], "link2")[3]);
""",
        tmp_path,
    )
    count, x = said.split()
    assert count == "1"
    assert math.isclose(float(x), 0.5 * math.cos(0.8), rel_tol=1e-15)
    assert called("--dtype", "float32") == 2
    assert "--dtype float32 are of --language c" in capsys.readouterr().err


def test_the_page_on_it_runs(tmp_path: Path) -> None:
    page = Path(__file__).parent.parent / "docs" / "other-machines.md"
    (script,) = re.findall(r"```js\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    model = rm.robots.load("four_bar")
    rm.write_js(model, tmp_path / "four_bar.js", ["aba", "close", "integrate", "frame_pose"])
    said = node(script + "console.log(JSON.stringify([[...q], [...a], residual[0]]));", tmp_path)
    q, a, residual = json.loads(said)
    np.testing.assert_allclose(q, model.integrate(model.neutral(), [5e-4]), atol=1e-12)
    np.testing.assert_allclose(a, rm.aba(model, q, [0.5], [1.0]), rtol=1e-12)
    assert residual < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("crank_rocker", ["rocker_joint.x", "coupler.mass", "loop.successor.x", "gravity.z"]),
        ("parallel_ankle", ["left_rod.length", "foot.mass", "right_motor.y"]),
        ("mini_cheetah", ["FR_knee_link_joint.z", "body.mass"]),
    ],
)
def test_parameters_are_a_last_argument(name: str, names: list[str], tmp_path: Path) -> None:
    """Against robots built with these values; configurations closed by the page's own function."""
    model = rm.robots.load(name)
    p = rm.parameters(model, geometry=True)
    names = [each for each in names if each in p.names]
    file = np.array([p[each] for each in names])
    values = file * [1.02, 0.97, 1.01, 0.9][: len(names)]
    functions = ["aba", "close", "integrate", "link_poses"]
    path = rm.write_js(model, tmp_path / "robot.mjs", functions, names)
    other = rm.with_parameters(model, dict(zip(names, values.tolist(), strict=True)))
    rng = np.random.default_rng(1)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    row = np.tile(values, (3, 1))
    (closed,) = run([Job(path, "close", [q, row], model.nq + 2)], tmp_path)
    at = closed[:, : model.nq]
    assert np.max(np.abs(other.residual(at)), initial=0.0) < 1e-9
    v, tau = rng.normal(size=(2, 3, model.nv))
    jobs = [
        Job(path, "aba", [at, v, tau, row], model.nv),
        Job(path, "integrate", [at, 1e-2 * v, row], model.nq),
        Job(path, "link_poses", [at, row], 16 * len(model.frames)),
    ]
    a, moved, poses = run(jobs, tmp_path)
    np.testing.assert_allclose(a, rm.aba(other, at, v, tau), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moved, other.integrate(at, 1e-2 * v), atol=1e-11)
    right = routine(other, "link_poses").on_arrays(at).reshape(3, -1)
    np.testing.assert_allclose(poses, right, atol=1e-12)
    printed = node(
        'import { model } from "./robot.mjs";'
        "console.log(JSON.stringify([model.parameter_names, [...model.parameters]]));",
        tmp_path,
    )
    assert json.loads(printed) == [names, file.tolist()]


def test_parameters_that_are_none(tmp_path: Path) -> None:
    model = rm.robots.load("crank_rocker")
    with pytest.raises(rm.errors.UnknownNameError, match=r"did you mean 'coupler.mass'"):
        rm.write_js(model, tmp_path / "r.js", parameters=["coupler.mas"])
    with pytest.raises(ValueError, match="names one twice"):
        rm.write_js(model, tmp_path / "r.js", parameters=["coupler.mass", "coupler.mass"])
    with pytest.raises(ValueError, match="'from_actuators' takes no parameters"):
        rm.write_js(rm.robots.load("belt_leg"), tmp_path / "r.js", "from_actuators", "gravity.z")
    rm.write_js(model, tmp_path / "r.mjs", "frame_pose", "rocker_joint.x")
    script = """
import { frame_pose, model } from "./r.mjs";
console.log(frame_pose(model.neutral, [4.5], "rocker")[3]);
"""
    said = node(script, tmp_path)
    assert float(said) == 4.5
