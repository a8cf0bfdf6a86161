"""Robots in simulators beside the exact model, the table of behaviours, files for a simulator.

MuJoCo and Pinocchio run with all tests. The others, where they are installed:
``python -m pytest -m simulators``.
"""

from __future__ import annotations

import importlib.util
import json
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import robomodel as rm
from benchmarks.simulators import with_matrix
from robomodel.reports.comparison.in_simulator import ADAPTERS
from robomodel.simulators import BEHAVIOURS, PROGRAMS, behaviours
from robomodel.simulators.page import BEGIN, with_table
from robomodel.simulators.readings import CONCERNS
from robomodel.simulators.written import with_beads, with_mimics, with_plain_names
from robomodel.vocabulary.inertias import principal

ROOT = Path(__file__).parent.parent
INERTIAL = (
    '<inertial><origin xyz="0.1 0.02 0.03"/><mass value="{}"/><inertia ixx="0.01" iyy="0.012" '
    'izz="0.015" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def links(**masses: float) -> str:
    return "".join(
        f'<link name="{name}">{INERTIAL.format(mass)}</link>' for name, mass in masses.items()
    )


def joint(name: str, parent: str, child: str, axis: str, more: str = "", kind: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind or "revolute"}"><parent link="{parent}"/><child '
        f'link="{child}"/><origin xyz="0.2 0 0.05"/><axis xyz="{axis}"/><limit lower="-1" '
        f'upper="1.2" effort="50" velocity="9"/>{more}</joint>'
    )


def arm(first: str = "", second: str = "", third: str = "", more: str = "") -> str:
    """A robot of three hinges, with these elements in its joints and more of its own."""
    return (
        f'<robot name="arm"><link name="base"/>{links(a=1.0, b=0.7, c=0.5)}'
        + joint("j1", "base", "a", "0 0 1", first)
        + joint("j2", "a", "b", "0 1 0", second)
        + joint("j3", "b", "c", "0 1 0", third)
        + f"{more}</robot>"
    )


GEARS = (  # j1, j2, and a rotor that turns six times as fast as j1
    f'<robot name="gears"><link name="base"/>{links(a=1.0, b=0.7, c=0.5)}'
    + joint("j1", "base", "a", "0 1 0").replace("type", 'independent="true" type', 1)
    + joint("j2", "a", "b", "0 1 0")
    + joint("r", "base", "c", "0 1 0", kind="continuous").replace('lower="-1" upper="1.2"', "")
    + '<coupling name="gear"><joint name="j1" ratio="6"/><joint name="r" ratio="-1"/></coupling>'
    "</robot>"
)
TIP = '<link name="tip"/><joint name="f" type="fixed"><parent link="c"/><child link="tip"/></joint>'
SMALL = {
    "plain": arm(),
    "mimic": arm(third='<mimic joint="j2" multiplier="-0.5" offset="0.1"/>'),
    "armature": arm('<armature value="0.3"/>', '<armature value="0.02"/>'),
    "damping": arm('<dynamics damping="0.7"/>', '<dynamics damping="0.3"/>'),
    "spring": arm('<dynamics spring_stiffness="7" spring_reference="0.2"/>'),
    "frame": arm(more=TIP),
    "gears": GEARS,
}


def installed(simulator: str) -> bool:
    module = {"drake": "pydrake", "mjx": "mujoco.mjx"}.get(simulator, simulator)
    return importlib.util.find_spec(module) is not None


# --- the table -----------------------------------------------------------------------------------


def test_rows_are_whole() -> None:
    for each in BEHAVIOURS:
        assert each.concerns in CONCERNS
        assert each.versions
        assert set(each.formats) & {*PROGRAMS[each.simulator].formats}
        assert (ROOT / each.seen.partition("#")[0]).exists() or each.seen.startswith(("the ", "a "))
        assert not each.mended or each.writer


def test_rows_that_name_this_file_are_about_its_small_robots() -> None:
    small = [rm.load(text).description for text in SMALL.values()]
    touched = {
        each
        for simulator in ADAPTERS
        for robot in small
        for each in behaviours(simulator, PROGRAMS[simulator].formats[0], robot)
    }
    assert {each for each in BEHAVIOURS if each.seen == "tests/test_in_simulators.py"} <= touched


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs/simulators.md").read_text("utf-8")
    assert BEGIN in page
    assert with_table(page) == page, "run python -m robomodel.simulators.page"


def test_the_page_has_the_matrix() -> None:
    page = (ROOT / "docs/simulators.md").read_text("utf-8")
    results = json.loads((ROOT / "benchmarks/simulators.json").read_text("utf-8"))
    assert with_matrix(page, results) == page


def test_behaviours_are_those_that_touch_the_robot() -> None:
    plain, geared = (rm.load(SMALL[name]).description for name in ("plain", "gears"))
    assert {each.concerns for each in behaviours("drake", "urdf", plain)} <= {"every robot"}
    assert "couplings" in {each.concerns for each in behaviours("drake", "urdf", geared)}
    alike = {each.does for each in behaviours("mjx", "mjcf", geared)}
    assert alike >= {each.does for each in behaviours("mujoco", "mjcf", geared)}


# --- files for a simulator -----------------------------------------------------------------------


def test_ratios_are_written_as_mimics(tmp_path) -> None:
    model = rm.load(GEARS)
    path = tmp_path / "gears.urdf"
    with pytest.warns(rm.DescriptionWarning, match="Newton holds mimics softly"):
        rm.write_urdf(model, path, simulator="newton")
    text = path.read_text()
    assert "<coupling" not in text
    again = rm.load(path)
    q = np.array([0.3, -0.4])
    named = {"j1": 0.3, "j2": -0.4}
    np.testing.assert_allclose(
        rm.crba(again, again.configuration(named)), rm.crba(model, model.configuration(named)),
        rtol=1e-12,
    )  # fmt: skip
    assert again.nv == model.nv == len(q)


def test_a_rack_on_a_pinion_is_lost_in_usd() -> None:
    """USD has mimics of two joints of a kind, and nothing is left out without a word."""
    robot = rm.load(ROOT / "benchmarks/robots/scara_rack.urdf").description
    for simulator in ("newton", "isaaclab"):
        known = {each.concerns: each for each in behaviours(simulator, "usd", robot)}
        lost = known["mimics of a hinge and a slide"]
        assert lost.elements(robot) == ("quill",)
        assert lost.read is not None
        assert not lost.elements(lost.read(robot))


def test_chains_of_mimics_follow_the_first_joint() -> None:
    text = arm(
        second='<mimic joint="j1" multiplier="0.8" offset="0.1"/>',
        third='<mimic joint="j2" multiplier="-0.5" offset="0.2"/>',
    )
    third = with_mimics(rm.load(text).description).joints[2].mimic
    assert third is not None
    assert third.joint == "j1"
    np.testing.assert_allclose([third.multiplier, third.offset], [-0.4, 0.15])


def test_names_of_joints_are_words_for_newton() -> None:
    model = rm.load(GEARS.replace('"j1"', '"j-1"'))
    written = with_plain_names(model.description)
    assert [each.name for each in written.joints] == ["j_1", "j2", "r"]
    assert written.couplings[0].terms[0][0] == "j_1"
    clash = rm.load(GEARS.replace('"j1"', '"j-2"').replace('"j2"', '"j_2"')).description
    assert with_plain_names(clash) is clash


@pytest.mark.parametrize(("name", "word"), [("belt_leg", "tendon"), ("four_bar", "ball")])
def test_belts_and_loops_are_written_in_drakes_words(name: str, word: str, tmp_path: Path) -> None:
    model = rm.robots.load(name)
    path = tmp_path / "robot.urdf"
    with pytest.warns(rm.DescriptionWarning) as said:
        rm.write_urdf(model, path, simulator="drake")
    assert all("kSap" in str(each.message) or "J̇ v" in str(each.message) for each in said)
    text = path.read_text()
    assert text.count(f"<drake:{word}_constraint name=") == 2
    assert rm.compare(path, model).same
    if word == "ball":  # by which alone it is the same robot, the second adding nothing in a plane
        path.write_text(re.sub(r"<loop .*?</loop>", "", text, flags=re.S))
        q = dict.fromkeys(model.dof_names, 0.3)
        with pytest.warns(rm.DescriptionWarning, match="adds nothing"):
            alone = rm.load(path)
        mass, same = (rm.crba(each, each.configuration(q)) for each in (model, alone))
        np.testing.assert_allclose(mass, same, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_links_that_become_a_part_of_their_carrier_have_masses_for_pybullet(tmp_path: Path) -> None:
    """Else it gives them 1 kg. The carrier has an inertia that no body has, as in some hands."""
    flat = INERTIAL.format(0.5).replace('izz="0.015"', 'izz="0.03"')
    long = INERTIAL.format(0.5).replace('ixx="0.01"', 'ixx="0.02"').replace("0.012", "0.02")
    tip = TIP.replace('<link name="tip"/>', f'<link name="tip">{long}</link>')
    text = arm(more=tip).replace(INERTIAL.format(0.5), flat, 1)
    path = tmp_path / "arm.urdf"
    rm.write_urdf(rm.load(text), path, simulator="pybullet")
    light = [link.name for link in rm.load(path).description.links if link.inertial is None]
    assert "tip" not in light


def test_newton_leaves_inertias_of_its_files_alone(tmp_path: Path) -> None:
    """Frames of nearly no inertia, and moments that are the sum of the others."""
    thin = INERTIAL.format(0.5).replace('izz="0.015"', 'izz="0.022"')
    frame = INERTIAL.format(1e-9)
    for moment in ("0.01", "0.012", "0.015"):
        frame = frame.replace(f'="{moment}"', '="0"')
    tip = TIP.replace('<link name="tip"/>', f'<link name="tip">{frame}</link>')
    model = rm.load(arm(more=tip).replace(INERTIAL.format(0.5), thin))
    assert CONCERNS["moments of nearly zero"](model.description) == ("tip",)
    written = with_beads(model.description)
    for link in written.links:
        if link.inertial:
            a, b, c = principal(link.inertial)[0]
            assert a >= 1e-10
            assert np.float32(a) + np.float32(b) > np.float32(c)
    path = tmp_path / "arm.urdf"
    rm.write_urdf(model, path, simulator="newton")
    q = np.array([0.3, -0.4, 0.2])
    np.testing.assert_allclose(rm.crba(rm.load(path), q), rm.crba(model, q), rtol=2e-6, atol=1e-9)
    odd = INERTIAL.format(0.5).replace('izz="0.015"', 'izz="0.03"')
    with pytest.warns(rm.DescriptionWarning, match="no body"):
        description = rm.load(arm().replace(INERTIAL.format(0.5), odd)).description
    assert with_beads(description).links[-1].inertial == description.links[-1].inertial


@pytest.mark.slow
def test_what_a_simulator_leaves_out_is_warned_of_in_numbers(tmp_path) -> None:
    model = rm.load(SMALL["spring"])
    with pytest.warns(rm.DescriptionWarning, match=r"Drake has no springs.*'j1'; its .* 7.5 % off"):
        rm.write_urdf(model, tmp_path / "a.urdf", simulator="drake")
    with pytest.warns(rm.DescriptionWarning, match="default_armature=0"):
        rm.write_mjcf(rm.load(arm()), tmp_path / "a.xml", simulator="genesis")


def test_what_was_not_tried_is_said(run, tmp_path) -> None:
    for simulator, title in (("gazebo", "Gazebo"), ("drake", "")):
        code, out, _ = run("convert", "puma560", "--for", simulator, "-o", str(tmp_path / "p.sdf"))
        assert code == 0
        words = f"What {title} leaves out of such files was not tried, but for what is documented"
        assert (words in out) == bool(title)


def test_wrong_words(run, tmp_path) -> None:
    model = rm.load(arm())
    with pytest.raises(ValueError, match="simulators are mujoco"):
        rm.write_urdf(model, tmp_path / "a.urdf", simulator="bullet")
    with pytest.raises(ValueError, match="PyBullet reads URDF, not MJCF"):
        rm.write_mjcf(model, tmp_path / "a.xml", simulator="pybullet")
    with pytest.raises(ValueError, match="simulators are mujoco, mjx, mujoco_warp, pinocchio"):
        rm.compare_in(model, "gazebo")
    with pytest.raises(ValueError, match=r"Pinocchio reads urdf, mjcf, not a\.sdf"):
        rm.compare_in(model, "pinocchio", "a.sdf")
    code, _, err = run("convert", "puma560", "-o", tmp_path / "a.sdf", "--for", "mujoco")
    assert code == 2
    assert "MuJoCo reads mjcf, urdf, not sdf" in err
    assert run("compare", "puma560")[0] == 2


@pytest.mark.skipif(installed("pybullet"), reason="PyBullet is installed")
def test_an_absent_simulator_says_what_to_install(run) -> None:
    code, _, err = run("compare", "puma560", "--in", "pybullet")
    assert code == 2
    assert "pip install pybullet" in err
    assert len(err.splitlines()) == 1


# --- in MuJoCo and Pinocchio ---------------------------------------------------------------------


@pytest.mark.slow
def test_an_open_tree_is_exact_in_both(run) -> None:
    model = rm.load(arm('<armature value="0.3"/>', '<dynamics damping="0.2"/>', more=TIP))
    assert rm.compare_in(model, "mujoco", samples=2).same
    code, out, _ = run("compare", "puma560", "--in", "mujoco,pinocchio")
    assert code == 0
    assert out.count("as the exact model") == 2


ROWS = {
    "mimic": ("mimics", {"freedoms", "accelerations"}),
    "armature": ("armature", {"mass matrix", "accelerations"}),
    "damping": ("damping", {"accelerations"}),
    "spring": ("springs of joints", {"accelerations"}),
    "gears": ("couplings", {"freedoms", "accelerations"}),
}


@pytest.mark.slow_cases("armature", "damping", "spring", "gears")
@pytest.mark.parametrize("name", ROWS)
def test_pinocchio_has_what_its_rows_leave(name: str) -> None:
    """The robot as the table says that Pinocchio reads it gives Pinocchio's own numbers."""
    concern, quantities = ROWS[name]
    found = rm.compare_in(rm.load(SMALL[name]), "pinocchio", samples=2)
    assert {each.quantity for each in found.differences} == quantities
    assert concern in {each.concerns for each in found.causes}
    assert found.explained
    assert "Why" in str(found)


@pytest.mark.slow
def test_a_floating_robot_and_a_ball(tmp_path) -> None:
    ball = '<joint name="j3" type="spherical"><parent link="b"/><child link="c"/></joint>'
    text = arm().replace(joint("j3", "b", "c", "0 1 0"), ball)
    assert rm.compare_in(rm.load(text), "mujoco", samples=2).same
    free = text.replace(
        joint("j1", "base", "a", "0 0 1"),
        '<joint name="j1" type="floating"><parent link="base"/><child link="a"/></joint>',
    )
    assert rm.compare_in(rm.load(free), "mujoco", samples=2).same
    heavy = arm().replace('<link name="base"/>', links(base=2.0))
    stock = rm.load(heavy, floating_base=True)
    assert rm.compare_in(stock, "pinocchio", samples=2).same


@pytest.mark.slow
def test_another_robot_is_told_apart(tmp_path) -> None:
    path = tmp_path / "heavier.urdf"
    path.write_text(arm().replace('mass value="0.7"', 'mass value="0.8"').replace("1.2", "1.3"))
    found = rm.compare_in(rm.load(arm()), "pinocchio", path, samples=2)
    kinds = {each.quantity for each in found.differences}
    assert kinds == {"mass matrix", "gravity", "accelerations", "limits"}
    assert not found.causes
    assert not found.explained
    path.write_text("<robot/>")
    refused = rm.compare_in(rm.load(arm()), "pinocchio", path)
    assert refused.verdict.startswith("refused: ")
    assert np.isnan(refused.error)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mini_cheetah", "parallel_ankle", "belt_leg"])
def test_gears_and_rods_are_nearly_exact_in_mujoco(name: str) -> None:
    found = rm.compare_in(rm.robots.load(name), "mujoco", samples=4)
    assert {each.quantity for each in found.differences} == {"accelerations"}
    assert found.error < 3e-3


# --- in all simulators ---------------------------------------------------------------------------

HELD = {"gears", "mimic"}  # softly, in what MuJoCo's solver moves
EXACT = {
    "mujoco": {"plain", "armature", "damping", "spring", "frame"},
    "mjx": {"plain", "armature", "damping", "spring", "frame"},
    "mujoco_warp": {"plain", "armature", "damping", "spring", "frame"},
    "pinocchio": {"plain", "frame"},
    "drake": {"plain", "armature", "damping", "frame", "mimic", "gears"},
    "newton": {"plain", "armature", "damping", "spring", "frame"},
    "pybullet": {"plain", "damping", "frame"},
    "genesis": {"plain", "armature", "damping", "frame"},
}
"""Small robots that a file written for the simulator moves exactly in it."""


@pytest.mark.simulators
@pytest.mark.parametrize("simulator", ADAPTERS)
def test_small_robots_in_a_simulator(simulator: str) -> None:
    """Exact, or held softly, or just what the table says that is left of the robot."""
    if not installed(simulator):
        pytest.skip(f"{PROGRAMS[simulator].title} is not installed")
    for name, text in SMALL.items():
        found = rm.compare_in(rm.load(text), simulator, samples=3)
        if name in EXACT[simulator]:
            assert found.same, (name, str(found))
        elif name in HELD and simulator in ("mujoco", "mjx", "mujoco_warp", "newton", "genesis"):
            assert found.error < 3e-3, (name, str(found))
        else:
            assert found.explained, (name, str(found))


@pytest.mark.simulators
@pytest.mark.skipif(not installed("drake"), reason="Drake is not installed")
@pytest.mark.parametrize("name", ["belt_leg", "four_bar", "five_bar", "planar_leg_linkage"])
def test_belts_and_linkages_are_exact_in_drake(name: str) -> None:
    found = rm.compare_in(rm.robots.load(name), "drake", samples=3)
    assert found.same, str(found)


RECIPES = {"MJX": "mjx", "mujoco-warp": "mujoco_warp", "Newton": "newton", "Genesis": "genesis"}


@pytest.mark.simulators
@pytest.mark.parametrize("title", RECIPES)
def test_recipes_of_residual_torque_run(title: str, tmp_path: Path, monkeypatch) -> None:
    """The loop of a simulator on docs/residual.md moves the tree as the robot; it asserts so."""
    if not installed(RECIPES[title]):
        pytest.skip(f"{title} is not installed")
    if title == "Genesis":  # which another test may have begun
        import_module("genesis").destroy()
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for section in re.split("^## ", (ROOT / "docs/residual.md").read_text("utf-8"), flags=re.M):
        head = section.partition("\n")[0]
        kinds = {"The recipe": "python", "MuJoCo": "python", title: "py"}
        for code in re.findall(rf"```{kinds.get(head)}\n(.*?)```", section, re.S):
            exec(compile(code, head, "exec"), names)


@pytest.mark.slow
def test_mimics_in_physx_words_are_newtons(tmp_path: Path) -> None:
    """Without Newton's words, and without ours, the file has the same robot by PhysX's."""
    model = rm.load(ROOT / "benchmarks/robots/finger_chain.urdf")
    path = tmp_path / "a.usda"
    rm.write_usd(model, path)
    text = re.sub(r'.*(newton:mimic|robomodel:).*\n|"NewtonMimicAPI", ', "", path.read_text())
    assert "newton:mimic" not in text
    path.write_text(text)
    again = rm.load(path)
    assert again.nv == model.nv == 1
    for x in (0.0, 0.7):
        found, exact = (
            each.joint_positions(each.configuration({"first": x}))["third"]
            for each in (again, model)
        )
        np.testing.assert_allclose(found, exact, atol=1e-6)
