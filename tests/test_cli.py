"""The command line: what it prints, in which form, and with which exit status."""

import json
import math
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest
from cases import few
from cli_robot import joint, link

import robomodel as rm
from robomodel.cli import COMMANDS, function_of
from robomodel.cli.common import (
    complain,
    complete_joints,
    complete_links,
    complete_robots,
    examples_of,
)
from robomodel.errors import Source
from robomodel.lint import runner
from robomodel.reports.document import Finding
from robomodel.reports.validation import study

ROBOTS = rm.robots.names()

# ---- info and robots -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", few(ROBOTS, "crank_rocker", "mini_cheetah", "tello"))
def test_info_shows_every_joint_body_and_constraint(run, name):
    model = rm.robots.load(name)
    code, out, err = run("info", name)
    assert (code, err) == (0, "")
    assert f"nq = {model.nq}, nv = {model.nv}; mass {model.mass:.6g} kg" in out
    for each in model.joints:
        mark = r"\*" if each.independent else " "
        assert re.search(
            rf"{mark} {each.name} \({each.type}\): {each.parent} → {each.child}, ", out
        )
    for i, dof in enumerate(model.dof_names):
        assert re.search(rf"^ +{i}  {re.escape(dof)}$", out, re.MULTILINE)
    for each in (*model.loops, *model.couplings):
        assert f"  {each.name}" in out
    assert "\x1b" not in out


@pytest.mark.slow_cases("jvrc1", "mit_humanoid", "tello_with_arms")
@pytest.mark.parametrize("name", ROBOTS)
def test_info_as_json(report, name):
    model = rm.robots.load(name)
    said = report("info", name)
    assert (said["nq"], said["nv"], said["mass"]) == (model.nq, model.nv, model.mass)
    assert said["dof_names"] == list(model.dof_names)
    assert [body["mass"] for body in said["bodies"]] == [body.mass for body in model.bodies]
    assert [each["name"] for each in said["joints"]] == list(model.joint_names)
    assert [c["bodies"] for c in said["clusters"]] == [
        [model.bodies[body].name for body in cluster.bodies] for cluster in model.clusters
    ]
    assert [(each["rows"], each["rank"]) for each in said["loops"]] == [
        (each.rows, each.rank) for each in model.loops
    ]
    for each, made in zip(said["joints"], model.joints, strict=True):
        assert each["lower"] == (made.lower if math.isfinite(made.lower) else None)
    assert said["warnings"] == []


def test_info_of_the_mini_cheetah(report, run):
    said = report("info", "mini_cheetah")
    assert (said["nv"], len(said["bodies"]), len(said["clusters"])) == (18, 25, 13)
    assert said["mass"] == pytest.approx(8.912)
    assert said["floating_base"] == "Floating Base_joint"
    assert said["couplings"][0]["equation"] == "q(HR_abad_rotor_joint) = 6 q(HR_abad_link_joint)"
    _, out, _ = run("info", "mini_cheetah")
    assert "q(FL_knee_rotor_joint) = 9.33 q(FL_knee_link_joint)" in out
    assert "fixed to the world (" not in out  # nothing assumed: the file says that it floats


def test_info_of_the_four_bar(run):
    _, out, _ = run("info", rm.robots.path("four_bar"))
    assert (
        "loop (revolute) between link2 and link3: 5 conditions, rank 2; 3 of 5 are redundant" in out
    )
    assert "the root link 'base' is fixed to the world (--floating-base frees it)" in out


@pytest.mark.slow
def test_a_tolerance_for_rounded_loops(run, report, tmp_path):
    text = rm.robots.path("crank_rocker").read_text()
    file = tmp_path / "rounded.urdf"
    file.write_text(text.replace('"3.605551275463989 0 0"', '"3.605551275463989 0 0.02"'))
    code, _, err = run("info", file)
    assert code == 2
    assert "by 20 mm along the axis of" in err
    assert report("info", file, "--loop-tolerance", "0.05")["nv"] == 1
    assert run("info", file, "--loop-tolerance", "-1")[0] == 2


@pytest.mark.slow
def test_base_options(report):
    assert report("info", "four_bar", "--floating-base")["nv"] == 7
    fixed = report("info", "mini_cheetah", "--fixed-base")
    assert (fixed["nv"], fixed["floating_base"]) == (12, None)
    assert fixed["fixed_mass"] == pytest.approx(3.3)
    added = report("dynamics", "four_bar", "--floating-base")
    assert len(added["tau"]) == 7
    assert len(added["base_pose"]) == 7


def test_info_tells_what_is_kept_and_what_is_assumed(run, report, mixed):
    code, out, err = run("info", mixed)
    assert code == 0
    assert out.startswith("m[ix]: 3 bodies, 3 joints, 2 clusters; nq = 5, nv = 4; mass 6 kg")
    for line in (
        "jb (mimic): q(jb) = -2 q(ja) + 0.1",
        "drive (Simple): motor → ja (reduction 2)",
        "ja: damping 0.1, friction 0.2",
        "base: 2 kg",
        "cluster 'a': 'ja' taken as independent, as the file does not say",
    ):
        assert f"  {line}\n" in out
    assert err == (
        f"warning: {mixed}:6: joint 'ja': <axis> has the length 2, not 1; "
        "only its direction is used\n"
    )
    said = report("info", mixed)
    assert said["warnings"] == [err.removeprefix("warning: ").rstrip()]
    assert said["transmissions"] == [
        {
            "name": "drive",
            "type": "Simple",
            "joints": [{"name": "ja", "role": "", "reduction": 2.0, "offset": 0.0}],
            "actuators": [{"name": "motor", "role": "", "reduction": None}],
        }
    ]
    assert (said["fixed_links"], said["fixed_mass"]) == (["base"], 2.0)


def test_strict_refuses_what_is_warned_of(run, mixed):
    code, out, err = run("info", mixed, "--strict")
    assert (code, out) == (2, "")
    assert err.startswith(f"{mixed}:6: joint 'ja': <axis>")


def test_a_coupling_with_other_coefficients_is_shown_as_a_sum(report, tmp_path):
    file = tmp_path / "sum.urdf"
    axis = '<axis xyz="0 0 1"/>'
    file.write_text(
        '<robot name="sum">'
        + "".join(link(name) for name in ("base", "a", "b"))
        + joint("ja", "continuous", "base", "a", axis)
        + joint("jb", "continuous", "base", "b", axis)
        + '<coupling name="c"><joint name="ja" ratio="2"/><joint name="jb" ratio="-3"/>'
        '<offset value="0.5"/></coupling></robot>'
    )
    (coupling,) = report("info", file)["couplings"]
    assert coupling["equation"] == "2 q(ja) - 3 q(jb) = 0.5"


def test_a_long_chain_is_drawn_in_bounded_width(run, tmp_path):
    count = 300
    file = tmp_path / "chain.urdf"
    file.write_text(
        '<robot name="chain"><link name="l0"/>'
        + "".join(
            link(f"l{i + 1}") + joint(f"j{i}", "continuous", f"l{i}", f"l{i + 1}")
            for i in range(count)
        )
        + "</robot>"
    )
    _, out, _ = run("info", file)
    assert f"* j{count - 1} (continuous): l{count - 1} → l{count}, 2 kg" in out
    assert max(map(len, out.splitlines())) < 130


def test_robots(run, report):
    said = report("robots")["robots"]
    assert [each["name"] for each in said] == ROBOTS
    cheetah = said[ROBOTS.index("mini_cheetah")]
    assert (cheetah["nv"], cheetah["bodies"], cheetah["clusters"]) == (18, 25, 13)
    code, out, _ = run("robots")
    assert code == 0
    assert re.search(r"mini_cheetah +18 +25 +13 +8.912 +MIT Mini Cheetah: a quadruped", out)
    assert "…" not in out


# ---- usage and errors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("info mini_chetah", r"mini_chetah: no such file, .*did you mean 'mini_cheetah'\?"),
        ("info nowhere/x.urdf", r"nowhere/x.urdf: no such file"),
        ("info .", r"\.: .*irectory|.*ermission"),
        ("info", r"robomodel info: Missing argument 'FILE'"),
        ("info four_bar --jsn", r"robomodel info: No such option:? '?--jsn"),
        ("inof four_bar", r"robomodel: No such command 'inof'"),
        ("dynamics four_bar --v 1,x", r"--v: 'x' is not a number"),
        ("dynamics four_bar --v nan", r"--v: 'nan' is not finite"),
        ("dynamics four_bar --v 1,5", r"--v: needs nv = 1 numbers, got 2"),
        ("dynamics four_bar --q 1", r"--q: needs nq = 3 numbers, got 1"),
        ("dynamics four_bar --seed -1", r"robomodel dynamics: .*--seed"),
        ("dynamics four_bar --seed x", r"robomodel dynamics: .*--seed"),
        ("dynamics four_bar --position joint1", r"--position: 'joint1' is not of the form"),
        ("dynamics four_bar --position joint1=a", r"--position joint1: 'a' is not a number"),
        (
            "dynamics four_bar --position jiont1=1",
            r"--position jiont1: no such joint in 'four_bar'; did you mean 'joint1'\?",
        ),
        ("dynamics four_bar --position joint1=1,2", r"--position joint1: .*1 finite number"),
        (
            "dynamics four_bar --position joint1=0.6 --position joint3=0.2",
            r"four_bar: loops of cluster 'link1' \('loop'\) do not close .*residual 0.0",
        ),
        (
            "dynamics four_bar --q 0,0,0 --position joint1=0.6",
            r"--q: q says all positions; leave out --position joint1",
        ),
        ("dynamics four_bar --state nowhere.json", r"nowhere.json: No such file"),
    ],
)  # fmt: skip
def test_errors_take_one_line_and_exit_with_2(run, arguments, message):
    code, out, err = run(*arguments.split(" "))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert re.match(message, err)


def test_an_error_in_a_robot_file_says_where(run, tmp_path):
    file = tmp_path / "broken.urdf"
    file.write_text('<robot name="r">\n<link name="a"/>\n<link name="a"/>\n</robot>')
    code, out, err = run("dynamics", file)
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"{re.escape(str(file))}:3: link 'a': .*\n", err)


def test_files_that_are_nearly_there(run, tmp_path):
    """Their names are offered, and elements that messages quote stay as they are in the file."""
    file = tmp_path / "gripper.urdf"
    file.write_text("<robot name='gripper'>")
    assert run("info", tmp_path / "griper")[2].endswith(f"; did you mean '{file}'?\n")
    assert "inside <robot name='gripper'>" in run("info", file)[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"q": [1,\n2', r":2: this is not JSON: "),
        ("\xff", r": this is not JSON"),
        ("[1, 2]", r": a state is a JSON object"),
        ('{"postions": {}}', r": postions: no such key; did you mean 'positions'\?"),
        ('{"v": 1}', r": v: a list of numbers is needed"),
        ('{"v": ["1"]}', r': v: "1" is not a number'),
        ('{"v": [true]}', r": v: true is not a number"),
        ('{"v": [NaN]}', r": v: nan is not finite"),
        ('{"v": [1, 2]}', r": v: needs nv = 1 numbers, got 2"),
        ('{"positions": [1]}', r": positions: an object is needed"),
        ('{"positions": {"joint9": 1}}', r": positions: joint9: no such joint"),
    ],
)
def test_errors_in_a_state_file(run, tmp_path, text, message):
    file = tmp_path / "state.json"
    file.write_text(text, encoding="latin-1")
    code, out, err = run("dynamics", "four_bar", "--state", file)
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"{re.escape(str(file))}{message}.*\n", err)


def test_help_and_version(run):
    assert run("--version") == (0, f"robomodel {rm.__version__}\n", "")
    code, out, _ = run("--help")
    assert code == 0
    assert all(command in out for command in ("info", "dynamics", "robots"))
    code, out, err = run()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: robomodel")
    assert all(f"robomodel {step}" in err for step in ("robots", "info", "validate", "--help"))
    assert max(map(len, err.splitlines())) <= 80


@pytest.mark.slow
def test_help_has_examples_at_its_top_and_fits_a_terminal(run):
    shown = run("--help")[1]
    assert "..." not in shown.partition("Commands:")[2]
    for name in COMMANDS:
        examples = examples_of(function_of(name))
        lines = run(name, "--help")[1].splitlines()
        assert max(map(len, lines)) <= 80
        assert 2 <= len(examples) <= 3
        start = lines.index("  Examples:") + 1
        assert [line.strip() for line in lines[start : start + len(examples)]] == examples
        assert start <= 7  # below the usage and the first sentence
        assert any(example.startswith(f"robomodel {name}") for example in examples)


@pytest.mark.slow
def test_examples_of_help_run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("excite", "four_bar", "-o", "motion.csv")[0] == 0  # what `view` shows
    assert run("convert", "four_bar", "-o", "b.urdf")[0] == 0  # what `design` compares
    (tmp_path / "robots").mkdir()  # what `lint` looks at
    (tmp_path / "robots" / "b.urdf").write_bytes((tmp_path / "b.urdf").read_bytes())
    commands = [function_of(c) for c in COMMANDS if c != "mcp"]  # which waits for a client
    for example in dict.fromkeys(each for c in commands for each in examples_of(c)):
        words = shlex.split(example)[1:]
        words += ["--seconds", "0"] if words[0] == "view" else []
        code, _, err = run(*words)
        others = words[0] == "compare" and "--in" not in words
        differ = (others and (words[1] != words[2] or "--b" in words)) or "--reference" in words
        allowed = (0, 1) if words[0] == "lint" else (int(differ),)  # files may have findings
        assert code in allowed, (example, err)


def test_messages_fit_a_terminal(monkeypatch, capsys):
    text = "warning: " + "a joint without limits " * 12 + "x" * 90
    complain(text)
    assert capsys.readouterr().err == text + "\n"  # elsewhere one line each, for other programs
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    complain(text)
    told = capsys.readouterr().err
    assert " ".join(told.split()) == text
    assert all(len(line) <= 80 for line in told.splitlines() if "xx" not in line)


def test_a_report_on_a_screen_states_its_error_once(run, monkeypatch, tmp_path):
    (tmp_path / "broken.urdf").write_text("<robot name='r'/>")
    words = ("validate", str(tmp_path / "broken.urdf"))
    code, out, err = run(*words)
    assert code == 2
    assert "has no links" in out
    assert "has no links" in err  # for a reader of standard error alone
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    code, out, err = run(*words)
    assert code == 2
    assert "has no links" in out
    assert err == ""


@pytest.mark.slow
def test_as_a_process_reading_standard_input():
    text = rm.robots.path("four_bar").read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "robomodel", "info", "-", "--json"],
        input=text, capture_output=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["robot"] == "four_bar"
    assert done.stderr == b""


@pytest.mark.slow
def test_as_a_process_whose_reader_leaves():
    process = subprocess.Popen(
        [sys.executable, "-m", "robomodel", "info", "mini_cheetah"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() != 2


def test_extend_merges_further_files(run, tmp_path):
    beside = tmp_path / "beside.xml"
    beside.write_text(
        '<robot name="b">' + link("flywheel") + joint("spin", "continuous", "link1", "flywheel")
        + "</robot>"
    )  # fmt: skip
    _, out, _ = run("info", "four_bar", "--extend", beside, "--json")
    found = json.loads(out)
    assert (found["nv"], found["mass"]) == (2, pytest.approx(11.9))
    status, _, err = run("info", "four_bar", "--extend", tmp_path / "none.xml")
    assert status == 2
    assert "none.xml: no such file" in err


def test_rotors_by_option(run):
    options = ("--rotor", "joint1:inertia=1e-4,ratio=9", "--json")
    status, out, _ = run("info", "four_bar", *options)
    assert status == 0
    assert "joint1_rotor" in out
    for text, words in (
        ("joint1", "write it as JOINT:inertia=6e-5,ratio=9"),
        ("joint1:inertia=1e-4,gear=9", "no 'gear'; did you mean 'ratio'?"),
        ("joint1:inertia=heavy", "'heavy' is not a number"),
        ("jiont1:inertia=1e-4,ratio=9", "did you mean 'joint1'?"),
    ):
        status, _, err = run("info", "four_bar", "--rotor", text)
        assert status == 2
        assert words in err


def test_xacro_files_and_packages_by_options(run, tmp_path):
    pytest.importorskip("xacro")
    part = tmp_path / "parts" / "arm.xacro"
    part.parent.mkdir()
    head = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="r">'
    part.write_text(f'{head}<link name="base"/><xacro:arg name="n" default="a"/></robot>')
    path = tmp_path / "r.xacro"
    path.write_text(
        f'{head}<xacro:include filename="$(find parts)/arm.xacro"/><link name="$(arg n)"><inertial>'
        '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        '</link><joint name="j" type="continuous"><parent link="base"/><child link="$(arg n)"/>'
        "</joint></robot>"
    )
    for folder in (tmp_path, f"parts={part.parent}"):
        status, out, _ = run("info", path, "--resources", folder, "--xacro", "n:=tip", "--json")
        assert status == 0
        assert '"tip"' in out
    status, _, err = run("info", path)
    assert status == 2
    assert "the package 'parts' is not known" in err
    status, _, err = run("info", path, "--xacro", "n=tip")
    assert status == 2
    assert "write it as NAME:=VALUE" in err
    status, _, err = run("info", path, "--resources", tmp_path / "no")
    assert status == 2
    assert "resources: no such folder" in err


# ---- benchmark, and help where something is misspelt ---------------------------------------------


@pytest.mark.slow
def test_benchmark(run):
    status, out, err = run("benchmark", "four_bar", "--states", 64, "--json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert [row["name"] for row in report["algorithms"]] == ["rnea", "aba", "crba", "bias_force"]
    kernel = rm.compile(rm.robots.load("four_bar"), "aba")
    assert report["algorithms"][1]["flops"] == kernel.program.flops
    for row in report["algorithms"]:
        assert row["ns_per_state"] > 0.0
        assert row["ns_per_call"] > 0.0
    status, out, _ = run("benchmark", "four_bar", "--algorithm", "crba", "--states", 8)
    assert status == 0
    assert out.splitlines()[0].startswith("four_bar: 1 freedom; batches of 8 states, 1 thread")
    assert out.splitlines()[2].split()[0] == "crba"


@pytest.mark.slow
def test_a_robot_in_which_nothing_moves(run, tmp_path):
    file = tmp_path / "rock.urdf"
    file.write_text('<robot name="rock"><link name="rock"/></robot>')
    for command in ("info", "validate", "dynamics", "armature", "actuation"):
        status, _, err = run(command, file)
        assert (status, err) == (0, ""), command
    for command, message in (
        (("benchmark", file), "nothing to time"),
        (("code", file, "-o", tmp_path), "nothing that moves"),
        (("excite", file, "-o", tmp_path / "motion.csv"), "no joint to move"),
    ):
        status, _, err = run(*command)
        assert status == 2
        assert message in err


def test_misspelt_words_are_guessed(run):
    status, _, err = run("benchmark", "four_bar", "--algorithm", "rne")
    assert status == 2
    assert err.endswith("did you mean 'rnea'?\n")
    assert (
        run("grap", "four_bar")[2] == "robomodel: No such command 'grap'. Did you mean 'graph'?\n"
    )
    assert "--over" in run("graph", "four_bar", "--ovr", "x")[2]
    for words, hint in (
        ("--value bset", "'bset' is not one of 'neutral', 'best'; did you mean 'best'?"),
        ("--for mujco", "did you mean 'mujoco'?"),
        ("--for gazebo", "Gazebo has no armature"),
    ):
        status, _, err = run("armature", "four_bar", *words.split())
        assert status == 2
        assert hint in err
        assert "Value error" not in err


def test_files_that_are_compared_have_options_of_their_own(run):
    rotor = "--rotor joint1:inertia=2e-4,ratio=60"
    status, out, _ = run("compare", "puma560", "puma560", "--b", rotor)
    assert status == 1
    assert "1 joint only in b: joint1_rotor" in out
    assert run("compare", "puma560", "puma560", "--a", rotor, "--b", rotor)[0] == 0
    for words, message in (
        ("--rotro x", "--a '--rotro x': No such option"),
        ("--json", "only options for loading"),
        ("--rotor 'x", "No closing quotation"),
    ):
        status, _, err = run("compare", "puma560", "puma560", "--a", words)
        assert status == 2
        assert message in err


@pytest.mark.slow
def test_shells_complete_commands_and_robots(tmp_path):
    def completed(words):
        environment = {
            "_ROBOMODEL_COMPLETE": "complete_bash", "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1), "PATH": "", "HOME": str(tmp_path),
        }  # fmt: skip
        program = [sys.executable, "-c", "from robomodel.cli import main; main()"]
        return subprocess.run(
            program, env=environment, capture_output=True, text=True, check=True
        ).stdout.split()

    assert completed("robomodel da") == []
    assert completed("robomodel dy") == ["dynamics"]
    assert completed("robomodel info four") == ["four_bar"]
    assert completed("robomodel graph four_bar --over joint1") == ["joint1"]


def test_names_are_completed(tmp_path):
    context = types.SimpleNamespace(params={"file": "four_bar"})
    assert complete_joints("=")(context, "j") == ["joint1=", "joint2=", "joint3="]
    assert "link1" in complete_links()(context, "")
    for file in ("none.urdf", None, __file__):
        assert complete_links()(types.SimpleNamespace(params={"file": file}), "") == []
    (tmp_path / "mine.urdf").touch()
    (tmp_path / "meshes").mkdir()
    (tmp_path / "notes.txt").touch()
    assert complete_robots(f"{tmp_path}/m") == [f"{tmp_path}/mine.urdf", f"{tmp_path}/meshes/"]


def test_what_is_known_at_ctrl_c_is_printed(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the screen alone; files are not written."""

    def pressed(*_: object, **options: object) -> list[Finding]:
        raise KeyboardInterrupt

    def interrupted(*arguments: str) -> tuple[str, str]:
        code, out, said = run(*arguments)
        assert code == 130
        return out, said

    seen = Finding("warning", "odd", Source("here.urdf", 3), "an oddity")
    monkeypatch.setattr(study, "CHECKS", (lambda _: [seen], pressed))
    out, said = interrupted("validate", "four_bar")
    assert "an oddity" in out
    assert said == "incomplete: 1 of 2 checks\ninterrupted\n"
    page = tmp_path / "page.html"
    assert interrupted("validate", "four_bar", "--html", str(page)) == ("", "interrupted\n")
    assert not page.exists()
    for name in "abc":
        (tmp_path / f"{name}.urdf").write_text('<robot name="r"><link name="l"/></robot>')
    monkeypatch.setattr(
        runner, "checked", lambda job: pressed() if "b.u" in str(job.robot.path) else [seen]
    )
    out, said = interrupted("lint", str(tmp_path), "--jobs", "1")
    assert "here.urdf:3: warning [odd]: an oddity\n" in out
    assert said == "incomplete: 1 of 3 files\ninterrupted\n"
    monkeypatch.setattr("robomodel.reports.actuation.study.cylinders", pressed)
    out, said = interrupted("actuation", "four_bar")
    assert "four_bar" in out
    assert said == "incomplete: 5 of 11 parts\ninterrupted\n"
    log = tmp_path / "log.csv"
    log.write_text(
        "time,q.joint1,v.joint1,a.joint1,tau.joint1,hand\n0,0.3,0,0,1.5,2\n0.1,0.3,0,0,,2\n"
    )
    monkeypatch.setattr("robomodel.cli.identification._identified.__defaults__", (pressed,))
    out, said = interrupted("identify", "four_bar", str(log))
    assert "2 samples of log.csv, 1 forces; nothing is fitted" in out
    assert "hand" in out
    assert said == "incomplete: the fit\ninterrupted\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_a_command(tmp_path: Path) -> None:
    """With the shells' exit status; nothing is written."""
    made = tmp_path / "report.html"
    script = (
        "import os, signal, threading, robomodel.cli as cli\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        f"cli.main(['actuation', 'tello', '--html', {str(made)!r}])"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert process.returncode == 130
    assert process.stderr.strip().endswith("interrupted")
    assert not made.exists()
