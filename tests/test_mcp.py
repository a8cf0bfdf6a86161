"""The tools of ``robomodel mcp``, by a client of the SDK: what they give, and what they refuse."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import robomodel as rm
from robomodel import files
from robomodel.cli.mcp import Tools, server

pytest.importorskip("mcp.server.mcpserver")
mcp = pytest.importorskip("mcp")

CUBE = """<robot name="cube"><link name="base"/><link name="cube">
<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
<collision><geometry><mesh filename="{mesh}"/></geometry></collision></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="cube"/>
<axis xyz="0 0 2"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
STL = "solid s\n" + "".join(
    "facet normal 0 0 1\nouter loop\n"
    + "".join(f"vertex {x} {y} {z}\n" for x, y, z in corners)
    + "endloop\nendfacet\n"
    for corners in (
        [(0, 0, 0), (0, 1, 0), (1, 0, 0)], [(0, 0, 0), (1, 0, 0), (0, 0, 1)],
        [(0, 0, 0), (0, 0, 1), (0, 1, 0)], [(1, 0, 0), (0, 1, 0), (0, 0, 1)],
    )
) + "endsolid s\n"  # fmt: skip


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A folder that is served, beside a file that is not in it, with a link to that."""
    place = tmp_path / "box"
    place.mkdir()
    (tmp_path / "secret.stl").write_text(STL)
    (tmp_path / "secret.urdf").write_text(CUBE.format(mesh="secret.stl"))
    (place / "own.stl").write_text(STL)
    (place / "cube.urdf").write_text(CUBE.format(mesh="own.stl"))
    return place


def called(box: Path, calls: list[tuple[str, dict[str, Any]]], **options: Any) -> list[Any]:
    """Results of tools, called one after the other by a client."""

    async def run() -> list[Any]:
        async with mcp.Client(server(box, **options)) as client:
            return [await client.call_tool(*call) for call in calls]

    return asyncio.run(run())


@pytest.mark.slow
def test_a_client_sees_and_calls_the_tools(box: Path) -> None:
    async def names() -> list[str]:
        async with mcp.Client(server(box)) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert asyncio.run(names()) == [
        "load", "mobility", "validate", "lint", "fix", "convert", "actuation", "picture",
    ]  # fmt: skip
    load, mobility, picture, wrong, refused = called(
        box,
        [
            ("load", {"file": "cube.urdf"}),
            ("mobility", {"file": "four_bar"}),
            ("picture", {"file": "cube.urdf", "positions": {"hinge": 0.5}}),
            ("load", {"file": "none.urdf"}),
            ("convert", {"file": "cube.urdf", "output": "a.sdf", "drop": "?"}),
        ],
    )
    assert refused.is_error
    assert json.loads(load.content[0].text) == load.structured_content
    found = load.structured_content
    assert (found["robot"], found["file"], found["nv"]) == ("cube", "cube.urdf", 1)
    assert [x.startswith("cube.urdf:5: joint 'hinge': ") for x in found["warnings"]] == [True]
    assert mobility.structured_content["nv"] == rm.robots.load("four_bar").nv == 1
    assert base64.b64decode(picture.content[0].data).startswith(b"\x89PNG")
    error = wrong.structured_content["error"]
    assert error["message"].startswith("none.urdf: no such file")


def test_what_leads_out_is_refused(box: Path) -> None:
    tools = Tools(str(box), write=True)
    (box / "link.urdf").symlink_to(box.parent / "secret.urdf")
    (box / "out").symlink_to(box.parent)
    secret = str(box.parent / "secret.urdf")
    for path in ("../secret.urdf", secret, "link.urdf", "out/secret.urdf", "sub/../../secret.urdf"):
        for tool in (tools.load, tools.validate, tools.lint, tools.fix, tools.actuation):
            assert "not in the folder" in tool(path)["error"]["message"], (path, tool)
        assert "not in the folder" in tools.validate("four_bar", path)["error"]["message"]
    for path in ("../new.sdf", "out/new.sdf", str(box.parent / "new.sdf")):
        assert "not in the folder" in tools.convert("four_bar", path)["error"]["message"]
    (box / "new.sdf").symlink_to(box.parent / "new.sdf")
    assert (
        "symbolic link" in tools.convert("four_bar", "new.sdf", overwrite=True)["error"]["message"]
    )
    (box / "new_meshes").symlink_to(box.parent)
    assert "symbolic link" in tools.convert("four_bar", "new.xml")["error"]["message"]
    assert not (box.parent / "new.sdf").exists()
    assert tools.lint()["files"] == ["cube.urdf"]  # the links are not looked at


@pytest.mark.parametrize("mesh", ["../secret.stl", "linked.stl", "{above}/secret.stl"])
def test_meshes_are_read_in_the_folder_alone(box: Path, mesh: str) -> None:
    """Two folders further up are a package's, elsewhere; here the folder is all there is."""
    (box / "linked.stl").symlink_to(box.parent / "secret.stl")
    (box / "robot.urdf").write_text(CUBE.format(mesh=mesh.format(above=box.parent)))
    for file, read in (("cube.urdf", True), ("robot.urdf", False)):
        found = Tools(str(box), write=True).convert(file, f"{file}.xml")
        assert ("error" not in found) == read, found
    copied = box / "cube.urdf_meshes" / "own.stl"
    assert copied.is_file()
    assert not (box / "robot.urdf_meshes").exists()


def test_included_files_and_macros(box: Path) -> None:
    tools = Tools(str(box))
    (box.parent / "part.xml").write_text("<mujoco><worldbody/></mujoco>")
    (box / "model.xml").write_text('<mujoco><include file="../part.xml"/></mujoco>')
    assert tools.load("model.xml")["error"]["file"] == str(box.parent / "part.xml")
    macros = CUBE.format(mesh="own.stl").replace(
        "<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"', 1
    )
    (box / "cube.xacro").write_text(macros)
    assert "xacro" in tools.load("cube.xacro")["error"]["message"]


def test_confined_files_elsewhere_and_after(box: Path) -> None:
    secret = str(box.parent / "secret.urdf")
    with files.confined(str(box)):
        assert files.is_confined()
        assert not files.may_be_read(secret)
        with pytest.raises(rm.DescriptionError, match="not in the folder that may be read"):
            rm.load(secret)
    with pytest.warns(rm.DescriptionWarning, match="has the length 2"):
        assert rm.load(secret).nv == 1


def test_fixes_and_files_are_written_as_asked(box: Path) -> None:
    tools, before = Tools(str(box), write=True), (box / "cube.urdf").read_text()
    found = tools.fix()
    assert '+<axis xyz="0 0 1"/>' in found["diff"]
    assert (box / "cube.urdf").read_text() == before
    held = Tools(str(box))
    assert "--write" in held.fix(write=True)["error"]["message"]
    assert "--write" in held.convert("four_bar", "new.sdf")["error"]["message"]
    assert tools.fix("cube.urdf", write=True)["files"] == ["cube.urdf"]
    assert (box / "cube.urdf").read_text() == before.replace("0 0 2", "0 0 1")
    assert tools.convert("cube.urdf", "cube.sdf")["output"] == "cube.sdf"
    assert "there already" in tools.convert("cube.urdf", "cube.sdf")["error"]["message"]
    assert "error" not in tools.convert("cube.urdf", "cube.sdf", overwrite=True)
    assert rm.load(box / "cube.sdf").nv == 1


def test_wrong_arguments(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = Tools(str(box))
    assert "no check" in tools.lint(select="inertai")["error"]["message"]
    assert "elbow" in tools.picture("cube.urdf", {"elbow": 0.1})["error"]["message"]
    with pytest.raises(ValueError, match="seconds must be positive"):
        server(box, seconds=0.0)
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    with pytest.raises(ImportError, match="tools for agents need mcp: "):
        server(box)


def test_a_call_ends_when_its_time_is_up(box: Path) -> None:
    (found,) = called(box, [("actuation", {"file": "tello"})], seconds=0.05)
    assert "not done in 0.05 s" in found.structured_content["error"]["message"]


@pytest.mark.slow
def test_over_standard_input_and_output(box: Path) -> None:
    """By the command line, as agents start it."""
    from mcp.client.stdio import StdioServerParameters

    command = [sys.executable, "-m", "robomodel", "mcp", str(box)]
    environment = {**os.environ, "PYTHONPATH": str(Path(rm.__file__).parents[1])}

    async def run() -> Any:
        parameters = StdioServerParameters(command=command[0], args=command[1:], env=environment)
        async with mcp.Client(parameters) as client:
            return await client.call_tool("load", {"file": "cube.urdf"})

    assert asyncio.run(run()).structured_content["nv"] == 1


@pytest.mark.slow
def test_layers_of_stages(box: Path) -> None:
    pytest.importorskip("pxr")
    tools = Tools(str(box))
    rm.write_usd(rm.robots.load("four_bar"), box.parent / "layer.usda")
    shutil.copy(box.parent / "layer.usda", box / "own.usda")
    for name in ("../layer.usda", "own.usda"):
        text = f"#usda 1.0\n(\n    subLayers = [@./{name}@]\n)\n"
        (box / "stage.usda").write_text(text)
        found = tools.load("stage.usda")
        assert ("error" in found) == (name != "own.usda"), found
