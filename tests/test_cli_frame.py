"""What all commands share: JSON documents with warnings, errors, --output, missing packages."""

import json
import re
import sys
from importlib import metadata

import pytest
from cases import few
from cli_robot import MIXED

from robomodel.errors import MissingPackageError

COMMANDS = {
    "info": [],
    "dynamics": ["--position", "ja=0.5"],
    "benchmark": ["--states", 8, "--algorithm", "rnea"],
    "graph": ["-o", "OUT.svg"],
    "view": ["--port", 8477, "--seconds", 0],
    "validate": [],
    "armature": ["--samples", 2],
    "actuation": [],
    "convert": ["-o", "OUT.urdf", "--drop"],
}  # with what each needs besides a robot


def arguments_of(command, folder):
    return [folder / str(each) if "OUT" in str(each) else each for each in COMMANDS[command]]


@pytest.mark.slow_cases("validate")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_document_has_the_warnings(command, run, mixed, tmp_path):
    code, out, err = run(command, mixed, *arguments_of(command, tmp_path), "--json")
    said = json.loads(out)
    assert code == (1 if command == "validate" else 0), err
    (warned,) = [each for each in said["warnings"] if "<axis> has the length 2" in each]
    assert warned.startswith(f"{mixed}:6: joint 'ja': ")
    assert (f"warning: {warned}" in err) == (command != "validate")  # whose findings they are
    keys = run(command, "--help")[1].partition("Keys of the JSON document")[2]
    assert not [key for key in said if not re.search(rf"\b{key}\b", keys)]


def test_robots_as_a_document(run):
    assert json.loads(run("robots", "--json")[1])["warnings"] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_errors_are_documents_under_json(command, run, tmp_path):
    extra = [*arguments_of(command, tmp_path), "--json"]
    file = tmp_path / "broken.urdf"
    file.write_text('<robot name="r">\n<link name="a"/>\n<link name="a"/>\n</robot>')
    code, out, err = run(command, file, *extra)
    said = json.loads(out)
    error = said["error"]
    assert (code, error["element"], error["file"], error["line"]) == (
        2, "link 'a'", str(file), 3
    )  # fmt: skip
    assert err == f"{file}:3: link 'a': {error['message']}\n"
    assert said["warnings"] == []
    file.write_text(MIXED)
    for wrong in (
        [tmp_path / "none.urdf"],
        [file, "--no-such-option"],
        [file, "--density", "-1", "--inertia-from", "visual"],
        [],
    ):
        code, out, err = run(command, *wrong, *extra)
        error = json.loads(out)["error"]
        assert (code, error["message"]) == (2, err.splitlines()[-1])
        assert (error["element"], error["file"], error["line"]) == (None, None, None)


def test_errors_come_with_the_warnings_before_them(run, mixed):
    code, out, err = run("dynamics", mixed, "--v", "1", "--json")
    said = json.loads(out)
    assert code == 2
    assert said["error"]["message"] == "--v: needs nv = 4 numbers, got 1"
    assert len(said["warnings"]) == 1
    assert err.splitlines() == [f"warning: {said['warnings'][0]}", said["error"]["message"]]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["info", "dynamics", "robots", "validate", "armature"])
@pytest.mark.parametrize("form", few([[], ["--json"]], []))
def test_what_is_printed_can_go_to_a_file(command, form, run, tmp_path):
    robot = [] if command == "robots" else ["puma560"]
    code, printed, err = run(command, *robot, *form)
    out = tmp_path / "out"
    for option in ("-o", "--output"):
        assert run(command, *robot, *form, option, out) == (code, "", err)
        assert out.read_text(encoding="utf-8") == printed
    code, printed, err = run(command, *robot, *form, "-o", tmp_path / "none" / "out")
    assert code == 2
    assert err.splitlines()[-1] == f"{tmp_path / 'none' / 'out'}: No such file or directory"


# ---- what a plain installation lacks -------------------------------------------------------------

MESHES = "<link name='a'><visual><geometry><mesh filename='a.stl'/></geometry></visual></link>"
EXTRAS = {  # package: the extra that has it, a robot that needs it, and where it says so
    "mujoco": ("mujoco", "<mujoco>\n<worldbody><body name='b'/></worldbody>\n</mujoco>",
               ":1: <mujoco>"),
    "trimesh": ("meshes", f"<robot name='r'>\n{MESHES}\n</robot>", ":2: link 'a'"),
}  # fmt: skip


REQUIRES = [
    "numpy>=1.26",
    "mujoco>=3.2.7; extra == 'mujoco'",
    "trimesh>=4.6; extra == 'meshes'",
    'robomodel[meshes]; extra == "views"',
    'matplotlib>=3.8; extra == "views"',
    'viser>=1.1; (python_version < "4") and extra == "views"',
]
COMMAND = {
    "mujoco": "pip install 'mujoco>=3.2.7'",
    "meshes": "pip install 'trimesh>=4.6'",
    "views": "pip install 'trimesh>=4.6' 'matplotlib>=3.8' 'viser>=1.1'",
}


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """What an installation, be it of a checkout or a wheel, has in its metadata."""
    monkeypatch.setattr(metadata, "requires", lambda _: REQUIRES)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("package", EXTRAS)
def test_a_missing_package_is_said_in_one_line(
    command, package, run, tmp_path, monkeypatch
):  # fmt: skip
    extra, text, where = EXTRAS[package]
    monkeypatch.setitem(sys.modules, package, None)
    file = tmp_path / "r.xml"
    file.write_text(text)
    (tmp_path / "a.stl").write_text("solid a\nendsolid a\n")
    options = [*arguments_of(command, tmp_path), "--inertia-from", "visual"]
    code, out, err = run(command, file, *options)
    assert (code, out) == (2, "")
    assert re.fullmatch(
        rf"{re.escape(str(file))}{where}: .*need {package}: {re.escape(COMMAND[extra])}\n",
        err,
    )
    code, out, again = run(command, file, *options, "--json")
    assert (code, again) == (2, err)
    assert json.loads(out)["error"]["file"] == str(file)


@pytest.mark.parametrize(("package", "command"), [("matplotlib", "graph"), ("viser", "view")])
def test_a_missing_package_for_views(package, command, run, monkeypatch):
    for module in [package, *(each for each in sys.modules if each.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    code, out, err = run(command, "four_bar")
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"four_bar: .* needs? {package}: {re.escape(COMMAND['views'])}\n", err)


def test_without_an_installation_packages_are_named(monkeypatch):
    def none(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", none)
    said = str(MissingPackageError("pictures need", "matplotlib", "views"))
    assert said == "pictures need matplotlib: pip install matplotlib"
