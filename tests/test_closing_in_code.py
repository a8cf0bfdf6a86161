"""Closings that run until loops close, in C and JavaScript: results, what cannot close, errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from cases import few
from compiled_targets import COMPILERS, called, library, pointers
from mechanisms import random_mechanism
from node import Job, node, run
from shipped_robots import motored
from texts import four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.interop.programs import iterated, routine
from robomodel.kernels.iterated import divided
from robomodel.kernels.trace import Trace
from robomodel.mechanism import closure
from robomodel.mechanism.constraints import LoopConstraint
from robomodel.model.configurations import blockwise
from robomodel.model.elements import joint_slices

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="no C compiler here")
LOOPS = [name for name in rm.robots.names()
         if any(cluster.implicit for cluster in rm.robots.load(name).clusters)]  # fmt: skip


def in_c(model: rm.Model, name: str, arguments: list[np.ndarray], folder: Path, *,
         dtype: str = "float64", **options: object) -> dict[str, np.ndarray]:  # fmt: skip
    """Results by name, and the status, of a function in C on rows of arguments."""
    function = iterated(model, name, **options)
    source, _ = rm.write_c(model, folder / "r.c", {name: (name, options)}, dtype=dtype)
    made, statuses = getattr(library(source, COMPILERS[0]), f"r_{name}"), []
    counts = [math.prod(shape) for shape in function.results.values()]
    found = called(lambda *given: statuses.append(made(*given)), arguments, counts, dtype)
    parts = np.split(found, np.cumsum(counts)[:-1], axis=1)
    return dict(zip(function.results, parts, strict=True)) | {"status": np.array(statuses)}


def in_javascript(
    model: rm.Model, name: str, arguments: list[np.ndarray], folder: Path, **options: object
) -> dict[str, np.ndarray]:
    """The same in JavaScript."""
    function = iterated(model, name, **options)
    path = rm.write_js(model, folder / "r.mjs", {name: (name, options)})
    counts = [*(math.prod(shape) for shape in function.results.values()), 1]
    (found,) = run([Job(path, name, arguments, sum(counts))], folder)
    *parts, status = np.split(found, np.cumsum(counts)[:-1], axis=1)
    return dict(zip(function.results, parts, strict=True)) | {"status": status[:, 0]}


def platform_on_rods() -> rm.Model:
    """A head on six cranks with rods, as robots' heads are: rods have a ball at both ends."""
    parts, closings = [], []
    way = np.radians([[-20, 20, 100, 140, 220, 260], [-50, 50, 70, 170, 190, 290]])
    above = [np.array([0.06 * math.cos(b), 0.06 * math.sin(b), 0.12]) for b in way[1]]
    for n, (a, end) in enumerate(zip(way[0], above, strict=True)):
        out = np.array([math.cos(a), math.sin(a), 0.0])
        rod, tip, at, axis, to = (
            " ".join(map(repr, np.asarray(x, dtype=float).tolist()))
            for x in (end - 0.14 * out, 0.04 * out, 0.1 * out, (-out[1], out[0], 0.0),
                      end - above[0])
        )  # fmt: skip
        parts += [link(f"crank{n}"), joint(f"motor{n}", "base", f"crank{n}", at, axis=axis)]
        parts += [link(f"rod{n}"), joint(f"ball{n}", f"crank{n}", f"rod{n}", tip, kind="spherical")]
        if n:
            closings.append(loop(f"loop{n}", "spherical", f"rod{n}", "head", rod, to, ""))
        else:
            parts += [link("head"), joint("neck", "rod0", "head", rod, kind="spherical")]
    return rm.load(robot(*parts, *closings))


def near(model: rm.Model, count: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Closed configurations, and the same with dependent joints as they were 0.05 rad before."""
    rng, closed, opened = np.random.default_rng(4), [], []
    for _ in range(count):
        start = model.random_configuration(rng, near=model.neutral())
        step = rng.uniform(-0.05, 0.05, model.nv)
        q = start.copy()
        closed.append(goal := model.integrate(start, step))
        for cluster in model.clusters:
            for _, part, along in joint_slices(model, cluster):
                columns = range(along.start, along.stop)
                if not cluster.implicit or set(columns) <= set(cluster.columns):
                    at = slice(cluster.q.start + part.start, cluster.q.start + part.stop)
                    q[at] = goal[at]
        opened.append(q)
    return np.array(closed), np.array(opened)


@needs_compiler
@pytest.mark.parametrize("name", few(LOOPS, "crank_rocker"))
def test_loops_close_as_in_python(name: str, tmp_path: Path) -> None:
    model = rm.robots.load(name)
    closed, opened = near(model)
    for found in (in_c(model, "close", [opened], tmp_path),
                  in_javascript(model, "close", [opened], tmp_path)):  # fmt: skip
        assert not found["status"].any()
        assert found["residual"].max() < 1e-12
        np.testing.assert_allclose(found["closed"], closed, rtol=0, atol=1e-9)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("name", ["crank_rocker", "parallel_ankle", "tello"])
def test_single_precision_and_few_steps(name: str, tmp_path: Path) -> None:
    model = rm.robots.load(name)
    closed, opened = near(model)
    once = in_c(model, "close", [opened], tmp_path, steps=1)  # one step is not enough
    assert once["status"].all()
    single = in_c(model, "close", [opened], tmp_path, dtype="float32")
    assert not single["status"].any()
    np.testing.assert_allclose(single["closed"], closed, rtol=0, atol=2e-3)


@needs_compiler
@pytest.mark.parametrize("seed", [2, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_ball_joints_in_a_loop_on_a_floating_base(seed: int, tmp_path: Path) -> None:
    mechanism = random_mechanism(np.random.default_rng(seed), ["spatial_loop"], floating_base=True)
    model = rm.load(mechanism.text, floating_base=mechanism.floating_base)
    start = np.array([model.random_configuration(np.random.default_rng(n), near=model.neutral())
                      for n in range(4)])  # fmt: skip
    opened = start + np.random.default_rng(7).uniform(-0.02, 0.02, start.shape)
    found = in_c(model, "close", [opened], tmp_path)
    assert not found["status"].any()
    assert np.abs(model.residual(found["closed"])).max() < 1e-12
    base = model.nodes[0].joint.nq - 4
    np.testing.assert_array_equal(found["closed"][:, :base], opened[:, :base])
    assert np.allclose(np.linalg.norm(found["closed"][:, base : base + 4], axis=1), 1.0)
    same = in_javascript(model, "close", [opened], tmp_path)
    np.testing.assert_allclose(same["closed"], found["closed"], rtol=0, atol=1e-9)


@needs_compiler
def test_what_cannot_close_is_least_open(tmp_path: Path) -> None:
    """A rocker of 0.7 on a ground of 1.1, whose end crank and coupler reach from 0.5 to 1.5."""
    model = rm.load(four_bar(marks=(False, False, True)))
    rocker = next(i for i, name in enumerate(model.joint_names) if name == "j_rocker")
    angles = np.array([1.5, 0.3, 0.05, 0.0, -0.2, 3.0, math.pi])
    q = np.tile(model.neutral(), (len(angles), 1))
    q[:, rocker] = angles
    ends = np.stack([1.1 + 0.7 * np.cos(angles), 0.7 * np.sin(angles)], axis=-1)
    away = np.linalg.norm(ends, axis=-1)
    gap = np.maximum(0.0, np.maximum(away - 1.5, 0.5 - away))
    assert gap.max() > 0.2
    assert gap[0] == 0.0
    for found in (in_c(model, "close", [q], tmp_path),
                  in_javascript(model, "close", [q], tmp_path)):  # fmt: skip
        np.testing.assert_array_equal(found["status"], gap > 0.0)
        np.testing.assert_allclose(found["residual"][:, 0], gap, rtol=1e-6, atol=1e-12)
        np.testing.assert_array_equal(found["closed"][:, rocker], angles)
    single = in_c(model, "close", [q], tmp_path, dtype="float32")
    np.testing.assert_array_equal(single["status"], gap > 0.0)
    np.testing.assert_allclose(single["residual"][:, 0], gap, rtol=1e-3, atol=1e-5)
    q[0, 0] = math.nan
    lost = in_c(model, "close", [q[:1]], tmp_path)
    assert lost["status"].all()
    assert np.isnan(lost["residual"]).all()


@needs_compiler
def test_zeros_of_closed_loops_alone_do_not_part_blocks(tmp_path: Path) -> None:
    """Two rods between two cranks, each of two halves: they turn while loops are open."""
    halves = [f"{end}{n}" for n in range(2) for end in ("knee", "motor")]
    model = rm.load(robot(
        *(link(name) for name in ("knee", "motor", *halves)),
        joint("j_knee", "base", "knee", mark=True),
        joint("j_motor", "base", "motor", "2 0 0", mark=False),
        *(joint(f"j_{n}", n[:-1], n, f"0 {1 - 2 * int(n[-1])} 0", mark=False) for n in halves),
        *(loop(f"l{n}", "fixed", f"motor{n}", f"knee{n}", to="2 0 0", more="") for n in range(2)),
    ))  # fmt: skip
    (cluster,) = model.clusters
    assert isinstance(cluster.constraint, LoopConstraint)
    assert len(cluster.constraint.blocks) == 5  # closed loops leave one to each row
    opened = model.neutral() + np.random.default_rng(0).uniform(-0.2, 0.2, (4, model.nq))
    conditions = blockwise.Conditions(model, opened[0].tolist())

    def on_later(parts: Sequence[tuple[Sequence[int], Sequence[int]]]) -> int:
        """How many derivatives of parts' conditions by coordinates of later parts are not zero."""
        after = [{(0, c) for _, own in parts[n:] for c in own} for n in range(1, len(parts) + 1)]
        return sum(
            abs(x) > 1e-9
            for (rows, _), later in zip(parts, after, strict=True)
            for row in rows
            for place, x in conditions.row((0, row)).items()
            if place in later
        )

    assert on_later([(block.rows, block.columns) for block in cluster.constraint.blocks]) > 0
    stages = [
        tuple([n for _, n in places] for places in (part.rows, part.columns))
        for part in blockwise._of_all_loops(model)
    ]
    assert on_later(stages) == 0
    assert len(stages) == 4
    found = in_c(model, "close", [opened], tmp_path)
    assert not found["status"].any()
    assert np.abs(model.residual(found["closed"])).max() < 1e-12


@needs_compiler
@pytest.mark.parametrize(
    "name",
    few(["parallel_ankle", "belt_leg", "five_bar", "tello", "mini_cheetah", "six_bar"], "belt_leg"),
)
def test_states_at_motors_and_of_all_joints(name: str, tmp_path: Path) -> None:
    model = motored(name)
    rng = np.random.default_rng(3)
    q, guess = near(model)
    v = rng.normal(size=(len(q), model.nv))
    first = 0 if model.floating_base is None else 6
    v[:, :first] = 0.0
    motors = [rm.actuator_positions(model, q), rm.actuator_velocities(model, q, v), guess]
    found = in_c(model, "from_actuators", motors, tmp_path)
    exact = {"q": q, "v": v}
    for each, right in exact.items():
        np.testing.assert_allclose(found[each], right, rtol=0, atol=1e-9)
    assert not found["status"].any()
    same = in_javascript(model, "from_actuators", motors, tmp_path)
    np.testing.assert_allclose(same["q"], q, rtol=0, atol=1e-9)

    names = [n for n in model.dof_names if n in model.joint_names]
    at = {joint.name: node.v for joint, node in zip(model.joints, model.nodes, strict=True)}
    g = model.constraint_jacobian(q)
    rates = np.einsum("nij,nj->ni", g, v)
    efforts = rng.normal(size=(len(q), len(names)))
    read = [np.stack([model.joint_positions(q)[n] for n in names], axis=-1),
            rates[:, [at[n] for n in names]], efforts, guess]  # fmt: skip
    states = [in_c(model, "joint_states", read, tmp_path),
              in_javascript(model, "joint_states", read, tmp_path)]  # fmt: skip
    spread = np.zeros((len(q), model.n_joint_velocities))
    spread[:, [at[n] for n in names]] = efforts
    exact |= {"joint_velocities": rates[:, first:], "tau": np.einsum("nij,ni->nj", g, spread)}
    exact["joint_positions"] = routine(model, "joint_positions")(q)
    for state in states:
        assert not state["status"].any()
        for each, right in exact.items():
            there = np.isfinite(state[each])
            assert there.all() or (each == "tau" and first)
            np.testing.assert_allclose(state[each][there], right[there], rtol=0, atol=1e-9)


@needs_compiler
def test_joints_with_encoders_that_are_not_independent(tmp_path: Path) -> None:
    """States as of Python's function, efforts carried through the loop."""
    model = rm.load(four_bar(marks=(True, False, False)))
    q = np.array([model.configuration({"j_crank": x}) for x in (0.7, 0.9, 1.1)])
    read = {"j_rocker": model.joint_positions(q)["j_rocker"]}
    rates, efforts = np.array([1.0, -2.0, 0.5]), np.array([3.0, 1.0, -1.0])
    rows = [x[:, None] for x in (read["j_rocker"], rates, efforts)]
    found = in_c(model, "joint_states", [*rows, np.tile(q[1], (3, 1))], tmp_path,
                 joints=("j_rocker",))  # fmt: skip
    exact = rm.joint_states(model, read, {"j_rocker": rates}, {"j_rocker": efforts}, guess=q[0])
    names = [joint.name for joint in model.joints]
    assert not found["status"].any()
    np.testing.assert_allclose(found["q"], exact["q"], atol=1e-9)
    for each in ("positions", "velocities"):
        right = np.stack([exact[each][name] for name in names], axis=-1)
        np.testing.assert_allclose(found[f"joint_{each}"], right, atol=1e-9)
    np.testing.assert_allclose(found["tau"][:, 0], exact["efforts"]["j_crank"], atol=1e-9)


@pytest.mark.slow
@needs_compiler
def test_a_platform_follows_from_its_motors(tmp_path: Path) -> None:
    """Spins of rods stay; a pose that six rods do not reach is met best."""
    model = platform_on_rods()
    motors, cluster = tuple(f"motor{n}" for n in range(6)), model.clusters[0]
    at = np.array([model.nodes[model.joint_names.index(name)].q for name in motors])
    rng = np.random.default_rng(0)
    opened = np.tile(model.neutral(), (6, 1))
    opened[:, at] += rng.uniform(-0.2, 0.2, (6, 6))
    exact, gap = closure.close(cluster.geometry, opened, closure.Held(cluster.columns))
    assert gap.max() < 1e-12
    found = in_c(model, "close", [opened], tmp_path)
    assert not found["status"].any()
    assert found["residual"].max() < 1e-12
    poses = [rm.frame_pose(model, x, "head", backend="numpy") for x in (found["closed"], exact)]
    np.testing.assert_allclose(*poses, rtol=0, atol=1e-9)
    zero = np.zeros((6, 6))
    read = [opened[:, at], zero, zero, np.tile(model.neutral(), (6, 1))]
    state = in_c(model, "joint_states", read, tmp_path, joints=motors)
    assert not state["status"].any()
    np.testing.assert_allclose(state["q"], found["closed"], rtol=0, atol=1e-9)
    opened[:, at] += rng.uniform(-2.0, 2.0, (6, 6))
    far = in_c(model, "close", [opened], tmp_path, steps=1000)
    assert far["status"].any()
    free = [c for c in range(cluster.geometry.nv) if c not in cluster.columns]
    for closed, residual, status in zip(*far.values(), strict=True):
        values, jacobian, _ = cluster.geometry.evaluate(closed)
        downhill = np.linalg.norm(jacobian[:, free].T @ values)
        assert downhill < 1e-3 * np.linalg.norm(jacobian[:, free]) * max(residual[0], 1e-9)
        assert (residual[0] > 1e-3) == status


TWO_ENCODERS = four_bar(marks=(True, False, False)).replace("</robot>", "".join(
    f'<transmission name="{n}"><type>transmission_interface/SimpleTransmission</type>'
    f'<joint name="j_{n}"/><actuator name="{n}"><mechanicalReduction>2</mechanicalReduction>'
    "</actuator></transmission>" for n in ("crank", "rocker")
) + "</robot>")  # fmt: skip


@needs_compiler
def test_encoders_that_contradict_each_other_are_met_best(tmp_path: Path) -> None:
    model = rm.load(TWO_ENCODERS)
    q = np.array([model.configuration({"j_crank": x}) for x in (0.7, 0.9)])
    at = rm.actuator_positions(model, q)
    at[1, 1] += 0.02  # at the motor, behind a ratio of 2
    found = in_c(model, "from_actuators", [at, np.zeros_like(at), q], tmp_path)
    np.testing.assert_array_equal(found["status"], [0, 1])
    np.testing.assert_allclose(found["q"][0], q[0], atol=1e-12)
    left = at - rm.actuator_positions(model, found["q"])
    assert 0.0 < np.abs(left[1]).max() < 0.02
    assert 0.0 < found["residual"][1, 0] < 0.02


def test_a_program_is_divided_into_what_stays_and_a_step() -> None:
    trace = Trace()
    x, y, z, d = trace.inputs(4)
    stays = x.sin() * z + 2.0
    program = trace.program([stays * y + d, stays, z, 3.0, y * y])
    before, step = divided(program, (1, 3))
    assert before.inputs == 3
    constants = before([0.3, 9.0, 0.5])
    assert len(constants) == 2
    right = program([0.3, 7.0, 0.5, 11.0])
    assert step([7.0, 11.0, *constants]) == right
    assert len(before.steps) + len(step.steps) == len(program.steps)


def test_status_in_languages(tmp_path: Path) -> None:
    """A given object is filled, in JavaScript; results may take the place of arguments, in C."""
    model = rm.robots.load("four_bar")
    rm.write_js(model, tmp_path / "r.mjs", "close")
    said = node(
        """
import { close } from "./r.mjs";
const out = { closed: new Float64Array(3), residual: new Float64Array(1) };
console.log(close([0.8, -0.7, 0.8], out) === out, out.status, out.closed[0]);
try { close([0.8]); } catch (error) { console.log(`${error}`); }
""",
        tmp_path,
    )
    assert said == "true 0 0.8\nRangeError: q has 3 numbers, not 1\n"
    source, header = rm.write_c(model, tmp_path / "r.c", "close")
    text = header.read_text()
    assert "int r_close(const double q[3], double closed[3], double residual[1]);" in text
    assert "Returns 0 if" in text
    assert "result.status = ::r_close(" in text
    if COMPILERS:
        made = library(source, COMPILERS[0])
        q, residual = np.array([0.8, -0.7, 0.8]), np.zeros(1)
        assert made.r_close(*pointers([q, q, residual])) == 0
        assert np.abs(model.residual(q)).max() < 1e-12


def test_what_is_no_closing(tmp_path: Path) -> None:
    model = rm.robots.load("four_bar")
    for options, message in (
        ({"joints": ("joint7",)}, "no joint with one freedom is called"),
        ({"joints": ("joint1", "joint1")}, "each once"),
        ({"parameters": ("gravity.z",)}, "takes no parameters"),
        ({"steps": 0}, "at least one"),
        ({"frames": ("link1",)}, "no option 'frames'"),
    ):
        with pytest.raises(ValueError, match=message):
            rm.write_c(model, tmp_path / "r.c", {"joint_states": ("joint_states", options)})
    with pytest.raises(ValueError, match="leave 'roll' open"):
        rm.write_c(rm.robots.load("parallel_ankle"), tmp_path / "r.c", "joint_states:pitch")
    with pytest.raises(TypeError, match="a Model is needed"):
        iterated("four_bar", "close")
    with pytest.raises(ValueError, match="so 'close' has no arguments"):
        iterated(rm.load(robot()), "close")
    with pytest.raises(ValueError, match="write_c and write_js have it"):
        routine(model, "joint_states")
    assert not list(tmp_path.iterdir())
