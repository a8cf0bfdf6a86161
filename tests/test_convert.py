"""Conversion: open trees that MuJoCo computes as we do, exact files, and how soft MuJoCo is."""

from __future__ import annotations

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest
from cases import few
from mujoco_oracle import MujocoSide, assert_forward_dynamics, assert_smooth_dynamics
from texts import INERTIAL, four_bar, joint, link, robot

import robomodel as rm
from robomodel.reports.approximation import soft_constraint_errors

ROBOTS = ("mini_cheetah", "mit_humanoid_leg", "four_bar", "teleop_arm", "belt_leg")


@pytest.mark.slow
@pytest.mark.parametrize("name", few(ROBOTS, "four_bar"))
def test_mujoco_computes_the_open_tree_as_we_do(run, tmp_path: Path, name: str) -> None:
    out = tmp_path / "open.xml"
    assert run("convert", name, "-o", out, "--approximate", "--no-check")[0] == 0
    model, side = rm.robots.load(name), MujocoSide.of(str(out))
    assert (side.model.nv, side.model.neq) == (model.nv, 0)
    assert_smooth_dynamics(model, side, method="tendons", tolerance=1e-10)
    assert_forward_dynamics(model, side, method="tendons", tolerance=1e-10)


@pytest.mark.slow
def test_an_open_tree_is_not_soft(run, tmp_path: Path) -> None:
    """Without constraints MuJoCo and we agree to rounding: so does the map between the two."""
    out = tmp_path / "open.xml"
    run("convert", "teleop_arm", "-o", out, "--approximate", "--drop")
    tree = rm.load(out)
    assert soft_constraint_errors(tree, str(out)).worst < 1e-9
    floating = tmp_path / "floating.xml"
    run("convert", "mini_cheetah", "-o", floating, "--approximate", "--drop")
    assert soft_constraint_errors(rm.load(floating), str(floating)).worst < 1e-9


@pytest.mark.slow
@pytest.mark.skipif(
    tuple(map(int, mujoco.__version__.split(".")[:2])) < (3, 9),
    reason="the constraints of older MuJoCo (3.6) are softer: 38 % at worst",
)
def test_the_softness_of_constraints_is_told(run, tmp_path: Path) -> None:
    out = tmp_path / "exact.xml"
    code, said, _ = run("convert", "four_bar", "-o", out)
    assert code == 0
    assert mujoco.MjModel.from_xml_path(str(out)).neq > 0
    measured = soft_constraint_errors(rm.robots.load("four_bar"), str(out))
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
def test_the_ending_says_the_format(run, tmp_path: Path, ending: str, kind: str) -> None:
    out = tmp_path / f"out.{ending}"
    assert run("convert", "mit_humanoid_leg", "-o", out, "--no-check")[0] == 0
    assert f"<{kind}" in out.read_text()
    assert rm.load(out).nv == 5


def test_exact_urdf_is_the_same_robot(run, tmp_path: Path) -> None:
    out = tmp_path / "out.urdf"
    assert run("convert", "five_bar", "-o", out)[0] == 0
    one, other = rm.robots.load("five_bar"), rm.load(out)
    q = one.random_configuration(0)
    np.testing.assert_allclose(
        rm.crba(other, q, backend="numpy"), rm.crba(one, q, backend="numpy"), rtol=1e-14
    )


def test_what_cannot_be_done_is_told(run, tmp_path: Path) -> None:
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


# ---- meshes and motors ---------------------------------------------------------------------------


def stock(folder: Path) -> Path:
    """A stock URDF as vendors write them: meshes by ROS package, effort limits, a sensor."""
    trimesh = pytest.importorskip("trimesh")
    pytest.importorskip("collada")
    path = folder / "dog_description" / "urdf" / "dog.urdf"
    meshes = folder / "dog_description" / "meshes"
    meshes.mkdir(parents=True)
    path.parent.mkdir()
    trimesh.creation.box(extents=(0.1, 0.2, 0.3)).export(meshes / "hip.dae")
    shape = '<geometry><mesh filename="package://dog_description/meshes/hip.dae"/></geometry>'
    shapes = f"<visual>{shape}</visual><collision>{shape}</collision>"
    text = robot(
        link("a", INERTIAL + shapes), joint("j", "base", "a"), link("b"), joint("k", "a", "b")
    )
    limit = '<limit lower="-1" upper="1" effort="33" velocity="20"/></joint>'
    text = text.replace('type="continuous"', 'type="revolute"').replace("</joint>", limit)
    path.write_text(text)
    return path


def test_a_stock_file_becomes_a_model_with_geoms_and_motors(run, tmp_path: Path) -> None:
    out = tmp_path / "dog.xml"
    code, said, err = run("convert", stock(tmp_path), "--approximate", "-o", out)
    assert (code, err) == (0, "")
    assert f"its meshes in {tmp_path / 'dog_meshes'}" in said
    assert said.rstrip().endswith("nothing of it is approximated")
    its = mujoco.MjModel.from_xml_path(str(out))
    assert (its.ngeom, its.nmesh, its.nu) == (1, 1, 2)
    assert its.actuator_ctrlrange.tolist() == [[-33, 33], [-33, 33]]
    assert [its.actuator(n).name for n in range(2)] == ["j", "k"]


@pytest.mark.parametrize("meshes", ["copy", "keep", "drop"])
def test_meshes_go_where_they_are_told(run, tmp_path: Path, meshes: str) -> None:
    source, out = stock(tmp_path), tmp_path / "dog.urdf"
    code, said, _ = run("convert", source, "-o", out, "--meshes", meshes, "--json")
    assert code == 0
    folder = tmp_path / "dog_meshes"
    assert json.loads(said)["meshes"] == (str(folder) if meshes == "copy" else None)
    assert folder.is_dir() == (meshes == "copy")
    files = {s.file for each in rm.load(out).description.links for s in each.shapes}
    expected = {"copy": {"dog_meshes/hip.dae"}, "drop": set()}
    assert files == expected.get(meshes, {"package://dog_description/meshes/hip.dae"})


def test_a_mesh_that_is_not_there_says_what_to_do(run, tmp_path: Path) -> None:
    source = stock(tmp_path)
    (tmp_path / "dog_description" / "meshes" / "hip.dae").unlink()
    code, _, err = run("convert", source, "-o", tmp_path / "dog.xml")
    assert code == 2
    assert "(--drop writes the file without, --meshes drop without any mesh)" in err
    assert run("convert", source, "-o", tmp_path / "dog.xml", "--meshes", "drop")[0] == 0


@pytest.mark.slow_cases("options1-the tree will do: accelerations of")
@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        (("puma560", "--approximate"), "nothing of it is approximated"),
        (("belt_leg", "--approximate"), "the tree will do: accelerations of"),
        (("belt_leg", "--no-check"), "by how much was not measured"),
        (
            ("teleop_arm", "--to", "sdf", "--drop"),
            "nothing of it is approximated, but for the 1 thing",
        ),
    ],
)
def test_a_sentence_says_the_verdict(run, tmp_path: Path, options, verdict) -> None:
    out = tmp_path / "out.xml"
    code, said, _ = run("convert", *options, "-o", out)
    assert code == 0
    assert verdict in said.splitlines()[-1]
    code, said, _ = run("convert", *options, "-o", out, "--json")
    assert verdict in json.loads(said)["verdict"]


@pytest.mark.slow
def test_the_errors_of_an_open_tree_is_in_the_document(run, tmp_path: Path) -> None:
    code, said, _ = run("convert", "belt_leg", "--approximate", "-o", tmp_path / "o.xml", "--json")
    assert code == 0
    document = json.loads(said)
    assert document["tree"]["verdict"].startswith("will do")
    assert document["tree"]["lumped"]["verdict"].startswith("with care")
    assert document["tree"]["verdict"] in document["verdict"]
    code, said, _ = run("armature", "belt_leg", "--json")
    data = json.loads(said)
    assert data["tree"]["errors"] == document["tree"]["errors"]
    assert data["tree"]["verdict"] in data["approximation_errors"]["verdict"]


@pytest.mark.slow
def test_rods_as_hinges(run, tmp_path: Path) -> None:
    """Armature of a rod's ball is that of both hinges; other formats refuse."""
    bar = (
        '<mujoco><worldbody><body name="crank"><joint name="j" axis="0 0 1"/><geom size=".1"/>'
        '<body name="rod" pos=".3 0 0"><joint name="ball" type="ball" armature="0.2"/>'
        '<geom type="capsule" fromto="0 0 0 .4 .3 0" size=".02"/></body></body>'
        '<body name="rocker" pos="1 .3 .2"><joint name="k" axis="0 .6 .8"/><geom size=".1"/></body>'
        '</worldbody><equality><connect body1="rod" body2="rocker" anchor=".4 .3 0"/></equality>'
        "</mujoco>"
    )
    source, out = tmp_path / "bar.xml", tmp_path / "hinges.xml"
    source.write_text(bar, encoding="utf-8")
    code, _, said = run("convert", source, "-o", out, "--rods", "hinges")
    assert code == 0, said
    locked, hinges = rm.load(source, spins="locked"), rm.load(out)
    assert hinges.nv == locked.nv == 1
    assert "ball" not in hinges.joint_names
    q = locked.configuration({"k": 0.2})
    again = hinges.configuration({"k": 0.2})
    names = locked.dof_names[0]
    assert names == hinges.dof_names[0]
    np.testing.assert_allclose(rm.crba(hinges, again), rm.crba(locked, q), rtol=1e-9)
    code, _, said = run("convert", source, "-o", tmp_path / "bar.urdf", "--rods", "hinges")
    assert code == 2
    assert "--rods hinges is for MJCF and USD" in said
