"""Conversion: open trees that MuJoCo computes as we do, exact files, and how soft MuJoCo is."""

from __future__ import annotations

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mujoco_side import MujocoSide, assert_forward_dynamics, assert_smooth_dynamics
from test_cli import run  # noqa: F401 - a fixture
from texts import four_bar

import robomodel as rm
from robomodel.studies.softness import softness

ROBOTS = ("mini_cheetah", "mit_humanoid_leg", "four_bar", "teleop_arm", "belt_leg")


@pytest.mark.parametrize("name", ROBOTS)
def test_mujoco_computes_the_open_tree_as_we_do(run, tmp_path: Path, name: str) -> None:  # noqa: F811
    out = tmp_path / "open.xml"
    assert run("convert", name, "-o", out, "--approximate")[0] == 0
    model, side = rm.robots.load(name), MujocoSide.of(str(out))
    assert (side.model.nv, side.model.neq) == (model.nv, 0)
    assert_smooth_dynamics(model, side, method="approximate", tolerance=1e-10)
    assert_forward_dynamics(model, side, method="approximate", tolerance=1e-10)


def test_an_open_tree_is_not_soft(run, tmp_path: Path) -> None:  # noqa: F811
    """Without constraints MuJoCo and we agree to rounding: so does the map between the two."""
    out = tmp_path / "open.xml"
    run("convert", "teleop_arm", "-o", out, "--approximate", "--drop")
    tree = rm.load(out)
    assert softness(tree, str(out)).worst < 1e-9
    floating = tmp_path / "floating.xml"
    run("convert", "mini_cheetah", "-o", floating, "--approximate", "--drop")
    assert softness(rm.load(floating), str(floating)).worst < 1e-9


def test_the_softness_of_constraints_is_told(run, tmp_path: Path) -> None:  # noqa: F811
    out = tmp_path / "exact.xml"
    code, said, _ = run("convert", "four_bar", "-o", out)
    assert code == 0
    assert mujoco.MjModel.from_xml_path(str(out)).neq > 0
    measured = softness(rm.robots.load("four_bar"), str(out))
    assert 0.0 < measured.median <= measured.worst < 1e-2
    assert (
        f"by {measured.median:.2g} (median of 20 random states; worst {measured.worst:.2g})" in said
    )
    code, said, _ = run("convert", "four_bar", "-o", out, "--json")
    assert json.loads(said)["softness"] == {
        "samples": 20,
        "median": measured.median,
        "worst": measured.worst,
    }
    code, said, _ = run("convert", "four_bar", "-o", out, "--no-check")
    assert "was not measured" in said


@pytest.mark.parametrize(("ending", "kind"), [("urdf", "robot"), ("sdf", "sdf"), ("xml", "mujoco")])
def test_the_ending_says_the_format(run, tmp_path: Path, ending: str, kind: str) -> None:  # noqa: F811
    out = tmp_path / f"out.{ending}"
    assert run("convert", "mit_humanoid_leg", "-o", out, "--no-check")[0] == 0
    assert f"<{kind}" in out.read_text()
    assert rm.load(out).nv == 5


def test_exact_urdf_is_the_same_robot(run, tmp_path: Path) -> None:  # noqa: F811
    out = tmp_path / "out.urdf"
    assert run("convert", "five_bar", "-o", out)[0] == 0
    one, other = rm.robots.load("five_bar"), rm.load(out)
    q = one.random_configuration(0)
    np.testing.assert_allclose(
        rm.crba(other, q, backend="numpy"), rm.crba(one, q, backend="numpy"), rtol=1e-14
    )


def test_what_cannot_be_done_is_told(run, tmp_path: Path) -> None:  # noqa: F811
    out = tmp_path / "out.txt"
    code, _, err = run("convert", "four_bar", "-o", out)
    assert code == 2
    assert "says no format" in err
    assert run("convert", "four_bar", "-o", out, "--to", "urdf")[0] == 0
    meshed = tmp_path / "meshed.urdf"
    mesh = '<visual><geometry><mesh filename="a.dae"/></geometry></visual></link>'
    meshed.write_text(four_bar().replace("</link>", mesh, 1))
    code, _, err = run("convert", meshed, "-o", tmp_path / "out.xml")
    assert code == 2
    assert "MJCF cannot say" in err
    assert "--drop" in err
    assert not (tmp_path / "out.xml").exists()
    code, said, _ = run("convert", meshed, "-o", tmp_path / "out.xml", "--drop", "--no-check")
    assert code == 0
    assert "the mesh 'a.dae'" in said
