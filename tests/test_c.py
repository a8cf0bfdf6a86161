"""C source of robots' functions: what compilers say of it, its results, its size, its errors."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from compiled_targets import COMPILERS, WARNINGS, called, library, pointers
from shipped_robots import LARGE, ROBOTS

import robomodel as rm
from robomodel.cli import main
from robomodel.control import InverseKinematics, PointTask, PostureTask
from robomodel.interop.c import identifier
from robomodel.interop.programs import routine
from robomodel.kernels import compile_program
from robomodel.kernels.c import literal

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="no C compiler here")
each_compiler = pytest.mark.parametrize(
    "compiler", COMPILERS or [pytest.param("", marks=pytest.mark.skip(reason="no C compiler here"))]
)
quick_compiler = pytest.mark.parametrize(
    "compiler",
    [pytest.param(name, marks=pytest.mark.slow) if n else name for n, name in enumerate(COMPILERS)]
    or [pytest.param("", marks=pytest.mark.skip(reason="no C compiler here"))],
)
DTYPES = ("float64", "float32")


# ---- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.1, 1.0, -1.0, 1e300, 1e-300, 5e-324, -0.0, 2 / 3, 123456789.0])
def test_numbers_are_written_to_the_last_bit(x: float) -> None:
    assert float(literal(x, "float64").strip("()")) == x
    single = literal(x, "float32").strip("()")
    if "INFINITY" not in single:
        assert single.endswith("f")
        assert np.float32(single[:-1]) == np.float32(x)


# ---- robots --------------------------------------------------------------------------------------


def arguments_of(model: rm.Model, sizes: Mapping[str, int], count: int = 9) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    q = np.array([model.random_configuration(rng, base_pose="random") for _ in range(count)])
    scales = {"v_dt": 1e-2}
    return [
        q if name == "q" else scales.get(name, 1.0) * rng.normal(size=(count, size))
        for name, size in sizes.items()
    ]


def compare(model: rm.Model, made: ctypes.CDLL, stem: str, name: str, dtype: str) -> None:
    """Results against those of the kernels, as far as the numbers' last bits."""
    found = routine(model, name)
    arguments = arguments_of(model, found.arguments)
    total = sum(math.prod(shape) for shape in found.results.values())
    # of the same numbers, rounded, in double precision
    wide = [x.astype(dtype).astype(float) for x in arguments]
    sizes = [*found.arguments.values(), total]
    kernel = compile_program(found.program, sizes)
    expected = kernel.ufunc(*wide)
    counts = [math.prod(shape) for shape in found.results.values()]
    own = name.replace(":", "_")
    result = called(getattr(made, f"{stem}_{own}"), arguments, counts, dtype)
    tolerance, at = 1e-11 if dtype == "float64" else 2e-3, 0
    for count in counts:
        part, right = (x[:, at : at + count] for x in (result, expected))
        endless = np.isinf(right)
        np.testing.assert_array_equal(part[endless], right[endless])
        part, right = (np.where(endless, 0.0, x) for x in (part, right))
        scale = np.maximum(np.max(np.abs(right), axis=1), 1.0)
        off = np.max(np.abs(part - right), axis=1) / scale
        assert np.median(off) < tolerance / 100, name
        assert np.max(off) < tolerance, name
        at += count


QUICK = ("rnea", "aba", "close", "integrate", "joint_positions")


@quick_compiler
def test_a_robot_with_a_loop(compiler: str, tmp_path: Path) -> None:
    model = rm.robots.load("four_bar")
    source, header = rm.write_c(model, tmp_path / "four_bar.c", QUICK)
    assert header.read_text().count("four_bar_aba") == 2  # for C, and for C++
    made = library(source, compiler)
    for name in QUICK:
        compare(model, made, "four_bar", name, "float64")


@needs_compiler
def test_steps_of_inverse_kinematics(tmp_path: Path) -> None:
    """A foot behind a linkage goes to its pose by steps in C; the same as the controller's."""
    model = rm.robots.load("planar_leg_linkage")
    tasks = [PointTask("foot", [1.0, 0.0, 1.0]), PostureTask(1e-2)]
    wanted = {"ik": ("ik", {"tasks": tasks}), "pose": ("ik", {"frames": ["foot"]})}
    source, header = rm.write_c(model, tmp_path / "leg.c", wanted | {"integrate": "integrate"})
    assert "towards targets" in header.read_text()
    made = library(source, COMPILERS[0])
    goal = model.random_configuration(3, near=model.neutral())
    point, start = rm.frame_pose(model, goal, "foot")[:3, 3], model.neutral()
    control = InverseKinematics(model, tasks, limits=(), damping=1e-3)
    q, targets = start, np.concatenate([point, start])
    for _ in range(30):
        step = called(made.leg_ik, [q[None], targets[None], np.array([[1e-3]])],
                      [model.nv, 2 + model.nv], "float64")[0]  # fmt: skip
        expected = control(q, 1.0, {"foot": point, "posture": start})
        np.testing.assert_allclose(step[: model.nv], expected, rtol=0, atol=1e-12)
        q = called(made.leg_integrate, [q[None], step[None, : model.nv]], [model.nq], "float64")[0]
    assert np.abs(step[model.nv : model.nv + 2]).max() < 1e-3
    with pytest.raises(ValueError, match="task 'foot' is hard"):
        routine(model, "ik", tasks=PointTask("foot", hard=True))
    with pytest.raises(ValueError, match='is of links, as "ik:foot"'):
        routine(model, "ik")


SLOW = (*QUICK, "actuator_map", "actuator_positions", "actuator_velocities", "actuator_gains",
        "crba", "bias_force", "energy", "center_of_mass", "torque_limits",
        "centroidal_momentum", "joint_velocities", "passive_force", "armature")  # fmt: skip


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    ("name", "dtype", "compiler"),
    [
        (name, dtype, compiler)
        for name in rm.robots.names()
        for dtype in DTYPES
        for compiler in COMPILERS
        if name not in LARGE or compiler == COMPILERS[0 if dtype == "float64" else -1]
    ],
)
def test_every_robot_and_algorithm(name: str, dtype: str, compiler: str, tmp_path: Path) -> None:
    model = rm.robots.load(name)
    link = model.bodies[-1].name
    wanted = {each: each for each in SLOW if model.actuators or not each.startswith("actuator")}
    wanted |= {f"{each}:{link}": f"{each}:{link}" for each in ("jacobian", "frame_pose")}
    source, _ = rm.write_c(model, tmp_path / "robot.c", list(wanted), dtype=dtype)
    made = library(source, compiler, "-O0")
    for each in SLOW:
        if each in wanted:
            compare(model, made, "robot", each, dtype)


@pytest.mark.slow
@each_compiler
def test_derivatives_in_parts_and_the_sanitizers(compiler: str, tmp_path: Path) -> None:
    """A program in C that calls everything, with undefined behaviour and overruns told."""
    model = rm.robots.load("mini_cheetah")
    names = ("aba_derivatives", "integrate", "close")
    source, _ = rm.write_c(model, tmp_path / "r.c", names)
    compare(model, library(source, compiler, "-O0"), "r", "aba_derivatives", "float64")
    calls, n = [], 0
    for name in names:
        found = routine(model, name)
        sizes = [*found.arguments.values(), *(math.prod(s) for s in found.results.values())]
        given = []
        for size in sizes:
            calls.append(f"    static double x{n}[{size}];")
            if size == model.nq:
                calls.append(f"    x{n}[6] = 1.0;")
            given.append(f"x{n}")
            n += 1
        calls.append(f"    r_{name}({', '.join(given)});")
    text = ['#include "r.h"', "int main(void)", "{", *calls, "    return 0;", "}", ""]
    (tmp_path / "main.c").write_text("\n".join(text))
    program = tmp_path / "program"
    command = [compiler, *WARNINGS, "-O0", "-g", "-fsanitize=address,undefined"]
    command += ["-fno-sanitize-recover=all", source, tmp_path / "main.c", "-o", program, "-lm"]
    subprocess.run([str(x) for x in command], check=True)
    subprocess.run([str(program)], check=True)


@pytest.mark.slow
@pytest.mark.skipif("gcc" not in COMPILERS, reason="no gcc here, which says what stack it takes")
def test_stack_is_as_stated(tmp_path: Path) -> None:
    """Besides what is stated, compilers save registers and spill what they have moved."""
    model = rm.robots.load("mini_cheetah")
    _, header = rm.write_c(model, tmp_path / "r.c", ("rnea", "aba", "crba", "aba_derivatives"))
    subprocess.run(["gcc", "-std=c99", "-O2", "-fstack-usage", "-c", "r.c"], cwd=tmp_path,
                   check=True)  # fmt: skip
    taken = dict(re.findall(r":(r_\w+)\s+(\d+)", (tmp_path / "r.su").read_text()))
    stated = re.findall(r"stack: \D*(\d+) bytes[^\n]*\nvoid (r_\w+)\(", header.read_text())
    assert len(stated) == 4
    for count, name in stated:
        assert int(taken[name]) < 1.5 * int(count) + 256


@needs_compiler
def test_results_may_take_the_place_of_arguments(tmp_path: Path) -> None:
    model = rm.robots.load("four_bar")
    source, _ = rm.write_c(model, tmp_path / "r.c", "aba")
    made = library(source, COMPILERS[0])
    q, v, tau = (x[0] for x in arguments_of(model, routine(model, "aba").arguments))
    expected = rm.aba(model, q, v, tau)
    made.r_aba(*pointers([q, v, tau, tau]))
    np.testing.assert_allclose(tau, expected, rtol=1e-12)


@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler here")
def test_cpp_has_functions_of_arrays(tmp_path: Path) -> None:
    model = rm.robots.load("four_bar")
    source, _ = rm.write_c(model, tmp_path / "four-bar.c", {"aba": "aba", "energy": "energy"})
    q = model.random_configuration(0)
    (tmp_path / "main.cpp").write_text(
        """
#include <cstdio>
#include "four-bar.h"
int main() {
  std::array<double, FOUR_BAR_NQ> q = {CLOSED};
  const auto a = four_bar::aba(q, {0.2}, {0.3});
  const auto energy = four_bar::energy(q, {0.2});
  std::printf("%.17g %.17g %.17g", a[0], energy.kinetic[0], energy.potential[0]);
}
""".replace("CLOSED", ", ".join(map(repr, q.tolist())))
    )
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    program, made = tmp_path / "main", tmp_path / "robot.o"
    compiler = COMPILERS[0] if COMPILERS else "g++"
    subprocess.run([compiler, *WARNINGS, "-c", source, "-o", made], check=True)
    subprocess.run(["g++", *flags, tmp_path / "main.cpp", made, "-o", program, "-lm"], check=True)
    said = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    expected = [*rm.aba(model, q, [0.2], [0.3]), *rm.energy(model, q, [0.2])]
    np.testing.assert_allclose([float(x) for x in said.split()], expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler here")
def test_large_functions_compile_as_cpp(tmp_path: Path) -> None:
    """In parts that share arrays, as for who has no C compiler."""
    source, _ = rm.write_c(rm.robots.load("tello"), tmp_path / "r.c", "rnea_derivatives")
    assert "_part1(" in Path(source).read_text()
    flags = [
        "-x",
        "c++",
        "-std=c++11",
        "-fsyntax-only",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
    ]
    subprocess.run(["g++", *flags, source], check=True)


# ---- closing and integrating ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ROBOTS)
def test_programs_close_and_integrate_as_models_do(name: str) -> None:
    model = rm.robots.load(name)
    rng = np.random.default_rng(3)
    # away from dead points, where a fixed number of Newton's steps does not close to rounding
    start = model.neutral()
    q = np.array([model.random_configuration(rng, near=start) for _ in range(4)])
    step = 1e-2 * rng.normal(size=(4, model.nv))
    found = np.stack(np.broadcast_arrays(*routine(model, "integrate").program([*q.T, *step.T])), -1)
    np.testing.assert_allclose(found, model.integrate(q, step), rtol=0, atol=1e-12)
    program = routine(model, "close").program
    off = q + 1e-2 * rng.normal(size=q.shape)
    closed = np.stack(np.broadcast_arrays(*program([*off.T]), np.zeros(4))[:-1], -1)
    assert np.max(closed[:, -1]) < 1e-12
    np.testing.assert_allclose(model.residual(closed[:, :-1]), 0.0, atol=1e-9)
    independent = [model.joint_positions(x) for x in (off, closed[:, :-1])]
    for joint in model.joints:
        if joint.independent and joint.name in independent[0] and joint.nq == 1:
            one, other = (x[joint.name] for x in independent)
            np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 0.04999, 0.05001, 0.3, 3.0])
def test_exponentials_are_exact_for_turns_of_any_size(size: float) -> None:
    model = rm.load(
        """<robot name="r"><link name="a"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="2" izz="2" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="plane" type="planar"><parent link="a"/><child link="b"/>
        <axis xyz="0 0 1"/></joint><link name="b"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>""",
        floating_base=True,
    )
    rng = np.random.default_rng(8)
    q = np.array([model.random_configuration(rng) for _ in range(5)])
    step = rng.normal(size=(5, model.nv))
    step *= size / np.linalg.norm(step[:, :3], axis=1, keepdims=True)
    found = np.stack(np.broadcast_arrays(*routine(model, "integrate").program([*q.T, *step.T])), -1)
    np.testing.assert_allclose(found, model.integrate(q, step), rtol=0, atol=3e-15 * (1 + size))


# ---- files and errors ----------------------------------------------------------------------------


def test_sources_say_what_is_what(tmp_path: Path) -> None:
    model = rm.robots.load("mini_cheetah")
    link = model.bodies[-1].name
    source, header = rm.write_c(
        model,
        tmp_path / "cheetah.c",
        {"aba": ("aba", {"passive": True, "f_ext": link}),
         "foot": ("frame_pose", {"frame": (link, (0, 0, -0.2))})},
    )  # fmt: skip
    text, code = header.read_text(), source.read_text()
    assert "#define CHEETAH_NQ 19" in text
    assert "#define CHEETAH_V_FLOATING_BASE_WX 0" in text or "_WX 0" in text
    assert re.search(r"void cheetah_aba\(const double q\[19\], const double v\[18\], "
                     r"const double tau\[18\], const double f_ext_\w+\[6\], double a\[18\]\);",
                     text)  # fmt: skip
    assert "void cheetah_foot(const double q[19], double pose[16]);" in text
    assert "springs and the damping" in text
    assert "(0.0, 0.0, -0.2)" in text
    assert not re.search(r"malloc|\bstatic (?!const|void|inline)", code)
    assert {*re.findall(r"\b([a-z_]\w*)\(", code)} <= {
        "sin", "cos", "sqrt", "fma", "defined", "cheetah_aba", "cheetah_foot"
    }  # fmt: skip


def test_names_are_made_valid() -> None:
    assert identifier("mini-cheetah v2") == "mini_cheetah_v2"
    assert identifier("4bar") == "_4bar"
    assert identifier("int") == "int_"


def test_what_cannot_be_had_is_said_before_anything_is_written(tmp_path: Path) -> None:
    model = rm.robots.load("four_bar")
    path = tmp_path / "robot.c"
    for functions, message in (
        (("rollout",), "'rollout' cannot be had"),
        (("abba",), "did you mean 'aba'"),
        ((), "no functions"),
        (("aba", "aba"), "two functions"),
        (("jacobian",), "needs one frame"),
        ({"close": ("close", {"steps": 0})}, "at least one"),
        ({"close": ("close", {"step": 2})}, "no option 'step'"),
        ({"aba": ("aba", {"order": "crba"})}, "no option 'order'"),
        ({"aba": ("aba", {"method": "fast"})}, "'fast' is not known"),
    ):
        with pytest.raises(ValueError, match=message):
            rm.write_c(model, path, functions)
    with pytest.raises(ValueError, match="float16"):
        rm.write_c(model, path, dtype="float16")
    with pytest.raises(ValueError, match=r"end in \.c"):
        rm.write_c(model, tmp_path / "robot.cpp")
    for functions in ([("aba", {})], None, 3, {"a": None}, {"a": ("aba",)}, {1: "aba"}):
        with pytest.raises(TypeError, match="names"):
            rm.write_c(model, path, functions)
    with pytest.raises(KeyError, match="no link 'foot'"):
        rm.write_c(model, path, "frame_pose:foot")
    with pytest.raises(FileNotFoundError, match=r"none/robot\.c' cannot be written: there is no"):
        rm.write_c(model, tmp_path / "none" / "robot.c")
    with pytest.raises(TypeError, match="a Model is needed, not the text 'four_bar'"):
        rm.write_c("four_bar", path)
    with pytest.raises(TypeError, match="one function is asked for"):
        rm.to_casadi(model, ["aba"])
    with pytest.raises(KeyError, match="no link 'foot'"):
        rm.to_casadi(model, "rnea", f_ext="foot")
    assert not list(tmp_path.iterdir())


def test_a_robot_without_motors_has_no_actuator_map(tmp_path: Path) -> None:
    model = rm.load(
        """<robot name="r"><link name="a"/><joint name="j" type="continuous"><parent link="a"/>
        <child link="b"/><axis xyz="0 0 1"/></joint><link name="b"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
    )
    with pytest.raises(ValueError, match="'actuator_map' has no numbers on 'r'"):
        rm.write_c(model, tmp_path / "r.c", "actuator_map")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> int:
        with pytest.raises(SystemExit) as done:
            main(["code", "four_bar", "-o", str(tmp_path / "made"), *arguments])
        return int(done.value.code or 0)

    assert run("--functions", "aba,close", "--dtype", "float32") == 0
    text = (tmp_path / "made" / "four_bar.h").read_text()
    assert "void four_bar_aba(const float q[3]" in text
    assert run("--functions", "simulate") == 2
    assert "'simulate' cannot be had as a program" in capsys.readouterr().err
