"""Loading: sources, extensions, and the errors a newcomer meets."""

from __future__ import annotations

import importlib
import importlib.util
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from texts import four_bar, joint, link, robot

import robomodel as rm
from robomodel.moved import MODULES

ARM = robot(
    link("upper"),
    link("lower"),
    joint("shoulder", "base", "upper", axis="0 1 0"),
    joint("elbow", "upper", "lower", "0.3 0 0", axis="0 1 0"),
)
ROTORS = """<robot name="rotors">
  <link name="elbow_rotor">
    <inertial><mass value="0.2"/>
      <inertia ixx="1e-4" iyy="2e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="elbow_motor" type="continuous">
    <parent link="upper"/><child link="elbow_rotor"/><axis xyz="0 1 0"/>
  </joint>
  <coupling name="elbow_gear">
    <predecessor link="lower"/><successor link="elbow_rotor"/><ratio value="9"/>
  </coupling>
</robot>"""
ROTORS_AT_8 = f'<robot name="x">{ROTORS[ROTORS.index("<coupling") :].replace("9", "8")}'


def test_every_kind_of_source_gives_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "bar.urdf"
    path.write_text(four_bar())
    q = rm.load(path).random_configuration(0)
    expected = rm.crba(rm.load(path), q)
    with path.open("rb") as binary, path.open() as text:
        for source in (
            str(path),
            four_bar(),
            four_bar().encode(),
            io.StringIO(four_bar()),
            binary,
            text,
        ):
            np.testing.assert_array_equal(rm.crba(rm.load(source), q), expected)


def test_rotors_from_beside_the_file(tmp_path: Path) -> None:
    beside = tmp_path / "rotors.xml"
    beside.write_text(ROTORS)
    model = rm.load(ARM, extend=beside)
    assert model.dof_names == ("shoulder", "elbow")
    plain = rm.load(ARM)
    q = np.array([0.4, -0.7])
    added = rm.crba(model, q) - rm.crba(plain, q)
    # the rotor turns 9 times the elbow, and with the upper arm: its inertia about the axis, J
    spin = 2e-4
    assert added[1, 1] == pytest.approx(81 * spin, rel=1e-12)
    assert added[0, 1] == pytest.approx(9 * spin, rel=1e-12)
    assert rm.load(ARM, extend=[ROTORS]).mass == pytest.approx(plain.mass + 0.2)


def test_extensions_change_joints_and_links_by_name() -> None:
    change = """<robot name="change">
      <joint name="elbow"><limit lower="0.2" upper="1" effort="3" velocity="4"/>
        <dynamics damping="0.5"/><initial position="0.7"/></joint>
      <link name="lower"><inertial><mass value="5"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    </robot>"""
    model = rm.load(
        ARM, extend=[change, '<robot><joint name="shoulder"><mimic joint="elbow"/></joint></robot>']
    )
    elbow = model.joints[model.joint_names.index("elbow")]
    assert (elbow.damping, elbow.effort_limit, elbow.velocity_limit) == (0.5, 3.0, 4.0)
    (said,) = [each for each in model.description.joints if each.name == "elbow"]
    assert (said.type, said.limits.lower, said.limits.upper) == ("revolute", 0.2, 1.0)
    assert model.dof_names == ("elbow",)
    assert model.joint_positions(model.neutral())["elbow"] == pytest.approx(0.7)
    assert model.mass == pytest.approx(6.0)


def test_extensions_choose_independent_joints() -> None:
    marks = "".join(
        f'<joint name="{name}" independent="{mark}"/>'
        for name, mark in (("j_crank", "false"), ("j_coupler", "false"), ("j_rocker", "true"))
    )
    model = rm.load(four_bar(), extend=f'<robot name="marks">{marks}</robot>')
    assert model.dof_names == ("j_rocker",)


def test_extensions_move_origins_and_replace_loops_and_springs() -> None:
    moved = '<robot name="x"><joint name="elbow"><origin xyz="0.1 0.2 0.3"/></joint></robot>'
    elbow = rm.load(ARM, extend=moved).description.joints[1]
    assert (elbow.name, elbow.origin.xyz) == ("elbow", (0.1, 0.2, 0.3))
    spring = '<spring name="s" stiffness="{}"><joint name="elbow"/></spring>'
    one, other = (f'<robot name="x">{spring.format(k)}</robot>' for k in (3, 5))
    model = rm.load(ARM, extend=[one, ROTORS, ROTORS_AT_8, other])
    assert [each.stiffness for each in model.springs] == [5.0]
    assert [dict(each.terms)["elbow"] for each in model.couplings] == [-8.0]
    with pytest.raises(rm.DescriptionError, match="another spring has this name"):
        rm.load(ARM, extend=[one, f'<robot name="x">{2 * spring.format(4)}</robot>'])


def test_extensions_cannot_move_joints(tmp_path: Path) -> None:
    beside = tmp_path / "beside.xml"
    beside.write_text('<robot name="x">\n<joint name="elbow"><axis xyz="1 0 0"/></joint></robot>')
    with pytest.raises(rm.DescriptionError, match="an extension cannot change") as caught:
        rm.load(ARM, extend=beside)
    assert (caught.value.file, caught.value.line) == (str(beside), 2)


def test_misspelt_extensions_are_told() -> None:
    with pytest.raises(rm.DescriptionError, match="did you mean 'lower'"):
        rm.load(ARM, extend=ROTORS.replace('link="lower"', 'link="lowr"'))
    with pytest.raises(rm.DescriptionError, match="the attribute 'type' is missing"):
        rm.load(ARM, extend='<robot name="x"><joint name="elbwo" independent="true"/></robot>')


def test_what_is_no_robot_is_told() -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        rm.load("nowhere.urdf")
    with pytest.raises(TypeError, match="a robot is read from a path, text, bytes, an open file"):
        rm.load(42)
    with pytest.raises(rm.DescriptionError, match="COLLADA"):
        rm.load("<COLLADA/>")
    with pytest.raises(ValueError, match="unknown format 'obj'"):
        rm.load(ARM, format="obj")


def test_shipped_robots_are_named() -> None:
    assert {"four_bar", "mini_cheetah", "planar_leg_linkage", "six_bar"} < set(rm.robots.names())
    with pytest.raises(ValueError, match="did you mean 'mini_cheetah'"):
        rm.robots.load("mini_chetah")
    assert rm.robots.load("four_bar", gravity=(0, -9.81, 0)).gravity == (0.0, -9.81, 0.0)


@pytest.mark.slow
def test_nothing_is_imported_before_it_is_needed() -> None:
    """Importing the package, and loading a URDF, brings in what these need and no more."""
    code = (
        "import sys, robomodel as rm\n"
        "print(*sys.modules)\n"
        "rm.robots.load('mini_cheetah')\n"
        "print(*sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for line, read in zip(done.stdout.splitlines(), (False, True), strict=True):
        loaded = line.split()
        assert ("robomodel.parsers.urdf" in loaded) == read
        for unwanted in (
            "scipy", "llvmlite", "rich", "typer", "networkx", "matplotlib", "casadi", "mujoco",
            "trimesh", "daqp", "ssl", "email", "robomodel.parsers.sdf", "robomodel.parsers.mjcf",
            "robomodel.interop.casadi", "robomodel.motion", "robomodel.description.shapes",
        ):  # fmt: skip
            assert unwanted not in loaded


def test_robots_of_robot_descriptions_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package of that name that has one robot in two formats, and one whose download fails."""
    monkeypatch.chdir(tmp_path)
    if importlib.util.find_spec("robot_descriptions") is None:
        with pytest.raises(rm.DescriptionError, match=r"pip install robot_descriptions$"):
            rm.load("arm_description")
    package = tmp_path / "site" / "robot_descriptions"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "arm.urdf").write_text(ARM)
    (package / "arm.xacro").write_text(ARM)
    (package / "arm_description.py").write_text(
        "import os\nPACKAGE_PATH = os.path.dirname(__file__)\n"
        "URDF_PATH = os.path.join(PACKAGE_PATH, 'arm.urdf')\n"
    )
    (package / "bare_description.py").write_text("REPOSITORY_PATH = '.'\n")
    (package / "far_description.py").write_text("raise OSError('no route to the host')\n")
    monkeypatch.syspath_prepend(package.parent)
    for name in [each for each in sys.modules if each.startswith("robot_descriptions")]:
        monkeypatch.delitem(sys.modules, name)
    assert rm.load("arm_description").dof_names == ("shoulder", "elbow")
    assert rm.load("arm_description", extend=ROTORS).nv == 2
    for name, message in (
        ("am_description", "did you mean 'arm_description'"),
        ("bare_description", "has no file in the format URDF or MJCF"),
        ("far_description", "cannot get the robot's files: no route to the host"),
    ):
        with pytest.raises(rm.DescriptionError, match=message):
            rm.load(name)
    with pytest.raises(rm.DescriptionError, match="no file in the format mjcf"):
        rm.load("arm_description", format="mjcf")
    (tmp_path / "arm_description").write_text(four_bar())  # a file of that name goes first
    assert rm.load("arm_description").nv == 1
    for name in [each for each in sys.modules if each.startswith("robot_descriptions")]:
        monkeypatch.delitem(sys.modules, name)


def test_names_that_moved_warn_and_are_those_of_their_new_places() -> None:
    for name, home in rm.MOVED.items():
        assert name not in rm.__all__
        with pytest.warns(DeprecationWarning, match=rf"robomodel\.{home}\.{name} now"):
            assert getattr(rm, name) is getattr(importlib.import_module(f"robomodel.{home}"), name)


@pytest.mark.parametrize(("name", "homes"), MODULES.items())
def test_modules_that_moved_are_imported_by_their_old_names(
    name: str, homes: tuple[str, ...]
) -> None:
    sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match="the old name goes"):
        old = importlib.import_module(name)
    for home in homes:
        new = importlib.import_module(home)
        for public in getattr(new, "__all__", ()):
            assert getattr(old, public) is getattr(new, public)
