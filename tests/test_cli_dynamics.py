"""The command line's dynamics, from states in options and files, and what it prints and writes."""

import json
import re

import numpy as np
import pytest
from cases import few
from cli_robot import joint, link

import robomodel as rm

ROBOTS = rm.robots.names()

# ---- dynamics ------------------------------------------------------------------------------------


@pytest.mark.slow_cases("four_bar")
@pytest.mark.parametrize("name", few(ROBOTS, "belt_leg", "four_bar"))
def test_dynamics_at_a_random_state(report, name):
    model = rm.robots.load(name)
    said = report("dynamics", name)
    q, v, a, tau = (np.array(said[key]) for key in ("q", "v", "a", "tau"))
    assert np.all(v != 0)
    np.testing.assert_allclose(tau, rm.rnea(model, q, v, a), rtol=1e-12)
    np.testing.assert_allclose(said["forward"]["a"], a, rtol=1e-8, atol=1e-10)
    assert said["forward"]["tau"] == said["tau"]
    assert said["round_trip"] < 1e-8
    assert said["residual"] < 1e-9
    kinetic, potential = rm.energy(model, q, v)
    assert said["kinetic_energy"] == pytest.approx(float(kinetic))
    assert said["potential_energy"] == pytest.approx(float(potential))
    assert said["joint_positions"] == pytest.approx(
        {joint: float(at) for joint, at in model.joint_positions(q).items()}
    )
    assert (said["base_pose"] is None) == (model.floating_base is None)
    assert "seed 0" in said["notes"][0]
    assert said == report("dynamics", name, "--seed", 0)
    assert said["q"] != report("dynamics", name, "--seed", 1)["q"]


@pytest.mark.slow_cases("five_bar", "mini_cheetah")
@pytest.mark.parametrize("name", few(ROBOTS, "five_bar", "mini_cheetah"))
def test_dynamics_prints_a_row_for_each_dof(run, report, name):
    said = report("dynamics", name)
    code, out, err = run("dynamics", name)
    assert (code, err) == (0, "")
    for i, dof in enumerate(said["dof_names"]):
        (row,) = re.findall(rf"^{re.escape(dof)} +(.*)$", out, re.MULTILINE)
        shown = [float(word) for word in row.split()]
        wanted = [*(said[key][i] for key in ("v", "a", "tau")), said["forward"]["a"][i]]
        if dof in said["joint_positions"]:
            wanted = [said["joint_positions"][dof], *wanted]
        assert shown == pytest.approx(wanted, rel=1e-5, abs=1e-9)
    assert "q, v, a: random, closed, seed 0" in out


def test_dynamics_at_positions_is_at_rest_unless_said_otherwise(report):
    said = report("dynamics", "four_bar", "--position", "joint1=0.6", "--tau", "1")
    model = rm.robots.load("four_bar")
    assert said["joint_positions"] == pytest.approx({"joint1": 0.6, "joint2": -0.6, "joint3": 0.6})
    assert (said["v"], said["a"], said["forward"]["tau"]) == ([0.0], [0.0], [1.0])
    np.testing.assert_allclose(said["forward"]["a"], rm.aba(model, said["q"], [0.0], [1.0]))
    assert any("v, a: zero" in note for note in said["notes"])
    by_other = report("dynamics", "four_bar", "--position", "joint3=0.6", "--v=-1,", status=1)
    assert by_other["joint_positions"] == pytest.approx(said["joint_positions"])
    assert by_other["v"] == [-1.0]
    assert "--position joint3: independent joint 'joint1' is not" in by_other["finding"]
    drawn = report("dynamics", "four_bar", "--position", "joint1=0.6", "--seed", 4)
    assert drawn["v"] != [0.0]


@pytest.mark.slow
def test_dynamics_at_given_vectors(report):
    model = rm.robots.load("six_bar")
    q = model.configuration({"joint1": 0.3})
    text = ", ".join(repr(float(x)) for x in q)
    said = report("dynamics", "six_bar", "--q", text, "--v", "[1 -2,3e-1]", "--a", "0 0 1")
    assert said["q"] == q.tolist()
    assert said["v"] == [1.0, -2.0, 0.3]
    np.testing.assert_allclose(said["tau"], rm.rnea(model, q, said["v"], said["a"]))


def test_a_joint_of_several_positions(report, mixed):
    words = ("dynamics", mixed, "--position", "jc=0 0 0 2", "--position", "jb=0.3")
    said = report(*words, status=1)
    assert "independent joint 'ja' is not where it starts, but at -0.1" in said["finding"]
    assert report(*words, "--position", "ja=-0.1")["finding"] is None
    assert said["joint_positions"]["jc"] == [0.0, 0.0, 0.0, 1.0]
    assert said["joint_positions"]["ja"] == pytest.approx(-0.1)


def test_a_rounded_q_is_closed_and_that_is_said(run, report):
    said = report("dynamics", "four_bar", "--q", "0.6 -0.6001 0.6")
    assert said["residual"] < 1e-9
    assert said["notes"][0].startswith("q: moved by up to")
    assert said["warnings"][0].startswith("--q: loop 'loop' of joints 'joint1', 'joint2', 'joint3'")
    code, _, err = run("dynamics", "four_bar", "--q", "0.6 -0.6001 0.6")
    assert (code, err) == (0, f"warning: {said['warnings'][0]}\n")


@pytest.mark.slow
def test_a_q_that_is_no_state_is_a_finding(run, report):
    for robot, q, told in (
        ("four_bar", "0.6 -0.5 0.6", "loop 'loop' of joints 'joint1', 'joint2', 'joint3' is open"),
        ("mini_cheetah", "0 0 0 0 0 0 2" + " 0" * 12, "'Floating Base_joint' has length 2, not 1"),
    ):
        code, out, err = run("dynamics", robot, "--q", q)
        assert code == 1
        assert err.startswith(f"{robot}: --q is no state: ")
        assert err.count("\n") == 1
        assert told in err
        assert "tau" in out
        said = report("dynamics", robot, "--q", q, status=1)
        assert f"{robot}: {said['finding']}\n" == err
        model = rm.robots.load(robot)
        assert model.check(said["q"]) == ()
    code, _, err = run("dynamics", "mini_cheetah", "--q", "0 0 0 0 0 0 0" + " 0" * 12)
    assert (code, err) == (2, "--q: the quaternion of joint 'Floating Base_joint' is zero\n")


@pytest.mark.slow
def test_a_state_beyond_limits_is_a_finding(run, tmp_path):
    file = tmp_path / "limited.urdf"
    file.write_text(
        '<robot name="limited">'
        + "".join(link(name) for name in ("base", "a", "b"))
        + joint("ja", "revolute", "base", "a",
                '<axis xyz="0 0 1"/><limit lower="-1" upper="0.5" velocity="3"/>')
        + joint("jb", "revolute", "base", "b",
                '<axis xyz="0 0 1"/><limit lower="-1" upper="1"/>'
                '<mimic joint="ja" multiplier="3"/>')
        + "</robot>"
    )  # fmt: skip
    for words, told in (
        (("--position", "ja=0.7"), "position of joint 'ja', 0.7, is above its limit 0.5"),
        (("--position", "ja=0.4"), "position of joint 'jb', 1.2, is above its limit 1"),
        (("--q", "-0.4"), "position of joint 'jb', -1.2, is below its limit -1"),
        (("--position", "ja=0", "--v", "-4"), "velocity of joint 'ja', -4, is below its limit -3"),
    ):
        code, _, err = run("dynamics", file, *words)
        assert code == 1
        assert told in err
    for words in (("--position", "ja=0.3", "--v", "3"), ("--seed", "3"), ("--q", "0.1")):
        assert run("dynamics", file, *words)[::2] == (0, "")


@pytest.mark.slow
def test_a_state_file(report, run, tmp_path):
    first = report("dynamics", "mini_cheetah", "--seed", 2)
    file = tmp_path / "state.json"
    file.write_text(json.dumps(first))
    again = report("dynamics", "mini_cheetah", "--state", file)
    for key in ("q", "v", "a", "tau"):
        assert again[key] == first[key]
    assert again["notes"] == []
    file.write_text('{"positions": {"joint1": 0.6}, "v": [2]}')
    said = report("dynamics", "four_bar", "--state", file)
    assert (said["joint_positions"]["joint1"], said["v"]) == (pytest.approx(0.6), [2.0])
    over = report("dynamics", "four_bar", "--state", file, "--v", 3, "--position", "joint1=0.5")
    assert (over["joint_positions"]["joint1"], over["v"]) == (pytest.approx(0.5), [3.0])


def test_a_singular_state_is_a_finding(run, report):
    code, out, err = run("dynamics", "four_bar", "--q", "0 0 0")
    assert code == 1
    assert "nan" in out
    assert err.startswith("four_bar: singular state: ")
    said = report("dynamics", "four_bar", "--q", "0 0 0", status=1)
    assert said["tau"] == [None]
    assert said["round_trip"] is None
    assert said["finding"].startswith("singular state")


def test_a_massless_joint_is_a_finding(run, tmp_path):
    file = tmp_path / "massless.urdf"
    file.write_text(
        '<robot name="r"><link name="base"/><link name="a"/>'
        + joint("ja", "continuous", "base", "a")
        + "</robot>"
    )
    code, _, err = run("dynamics", file)
    assert code == 1
    warning, finding = err.splitlines()
    assert warning.startswith(f"warning: {file}:1: joint 'ja': moves no mass")
    assert "the mass matrix is singular" in finding
