"""`robomodel lint`: robot files of folders, formats, settings, comments, baselines, fixes."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import lint_repository
import numpy as np
import pytest

import robomodel as rm
from robomodel.errors import Source
from robomodel.lint import baseline
from robomodel.lint.checks import CHECKS
from robomodel.lint.comments import ignores
from robomodel.lint.discovery import find
from robomodel.lint.edits import Text, unified_diff
from robomodel.lint.fixes import fixed_files
from robomodel.lint.formats import as_sarif, written
from robomodel.lint.runner import LintReport, lint
from robomodel.lint.settings import FORMATS, Settings, SettingsError, load_settings
from robomodel.lint.texts import right_angle
from robomodel.reports.document import Correction, Finding

ROOT = Path(__file__).parents[1]
GRIPPER = "gripper/gripper.urdf"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    root = lint_repository.make(tmp_path / "robots")
    monkeypatch.chdir(root)
    return root


def report_of(root: Path, *paths: str, **changes: object) -> LintReport:
    settings = Settings(root, exclude=("attic",), jobs=1)
    for name, value in changes.items():
        settings = replace(settings, **{name: value})
    return lint([root / path for path in paths or ("",)], settings)


def names(root: Path, *paths: str, exclude: tuple[str, ...] = ("attic",)) -> list[str]:
    found = find([root / path for path in paths or ("",)], root, exclude)
    return [each.path.relative_to(root).as_posix() for each in found]


# ---- which files ---------------------------------------------------------------------------------


def test_files_beyond_the_most_are_told(repository, monkeypatch):
    monkeypatch.setattr("robomodel.lint.discovery.MOST_FILES", 2)
    with pytest.warns(RuntimeWarning, match="more than 2 files.* exclude some"):
        assert len(names(repository)) <= 2


def test_robot_files_are_told_by_their_content(repository):
    """Xacro by its top file; no parts, no scene that adds nothing, no SRDF, launch or build."""
    robots = ["arm/arm.xml", GRIPPER, "leg_description/urdf/legs.urdf.xacro"]
    assert names(repository) == robots
    assert names(repository, exclude=()) == ["arm/arm.xml", "attic/old.urdf", *robots[1:]]
    (legs,) = find([repository / "leg_description"], repository)
    assert legs.packages == {"leg_description": repository / "leg_description"}


@pytest.mark.parametrize(
    ("path", "robots"),
    [
        ("leg_description/urdf/parts/leg_macro.xacro", ["leg_description/urdf/legs.urdf.xacro"]),
        ("arm/scene.xml", ["arm/arm.xml"]),
        ("gripper/gripper.srdf", []),
        ("leg_description/launch/show.launch.xml", []),
        ("attic/old.urdf", ["attic/old.urdf"]),
    ],
)
def test_a_named_part_stands_for_what_includes_it(repository, path, robots):
    """As a hook of pre-commit names changed files."""
    assert names(repository, path, exclude=()) == robots
    if path.startswith("attic"):
        assert names(repository, path) == []


def test_a_part_that_needs_its_scene_is_checked_there(repository):
    """An MJCF file with bodies whose default class stands in the file that includes it."""
    arm = lint_repository.ARM.replace('<default class="link">', '<default class="other">')
    (repository / "arm" / "arm.xml").write_text(arm)
    default = (
        '<default><default class="link"><joint axis="0 1 0" range="-1 1"/></default></default>'
    )
    scene = lint_repository.SCENE.replace("<include", f"{default}<include")
    (repository / "arm" / "scene.xml").write_text(scene)
    report = report_of(repository, "arm")
    assert not [each for each in report.findings if each.check == "load"]


def test_worlds_models_and_links(repository):
    model = '<sdf version="1.9"><model name="cart"><link name="base"/></model></sdf>'
    world = '<sdf version="1.9"><world name="w"><include><uri>model://cart</uri></include></world></sdf>'
    for place, text in (("models/cart/model.sdf", model), ("worlds/w.sdf", world)):
        path = repository / place
        path.parent.mkdir(parents=True)
        path.write_text(text)
    os.symlink(repository / "models", repository / "again")
    assert names(repository, "models", "worlds") == ["models/cart/model.sdf"]
    assert names(repository, "worlds") == ["worlds/w.sdf"]


def test_layers_of_usd(repository):
    """A stage that has a robot's layer stands for it; a mesh alone is no robot."""
    pytest.importorskip("pxr")
    folder = repository / "usd"
    folder.mkdir()
    rm.write_usd(rm.robots.load("four_bar"), str(folder / "physics.usda"))
    assert names(repository, "usd") == ["usd/physics.usda"]
    (folder / "mesh.usda").write_text('#usda 1.0\ndef Mesh "m" {}\n')
    (folder / "top.usda").write_text("#usda 1.0\n(\n subLayers = [@./physics.usda@]\n)\n")
    assert names(repository, "usd") == ["usd/top.usda"]


def test_files_that_are_no_robots(repository):
    """A mesh, an empty file, a template, a binary: none is looked at; an empty URDF is a fault."""
    for place, data in (
        ("a.stl", b"\0" * 100),
        ("empty.xml", b""),
        ("robot.urdf.j2", b"<robot/>"),
        ("picture.svg", b"<svg/>"),
        ("rotors.urdf", b'<robot name="r"><joint name="j"><rotor ratio="9"/></joint></robot>'),
    ):
        (repository / place).write_bytes(data)
    assert names(repository) == names(repository, "arm", "gripper", "leg_description")
    (repository / "empty.urdf").write_bytes(b"")
    assert "empty.urdf" in names(repository)


# ---- findings ------------------------------------------------------------------------------------


def test_attributes_for_other_readers_are_no_findings(repository):
    path = repository / GRIPPER
    path.write_text(
        lint_repository.GRIPPER.replace('type="fixed"', 'type="fixed" dont_collapse="true"')
    )
    assert len(report_of(repository, "gripper").findings) == 3


def test_findings_and_their_order(repository):
    report = report_of(repository)
    assert [(each.source.file, each.severity, each.check) for each in report.findings] == [
        (GRIPPER, "warning", "file"),
        (GRIPPER, "warning", "file"),
        (GRIPPER, "note", "rounded-angle"),
    ]
    lines = lint_repository.GRIPPER.splitlines()
    assert all("limit" in lines[each.source.line - 1] or "<axis" in lines[each.source.line - 1]
               or "rpy" in lines[each.source.line - 1] for each in report.findings)  # fmt: skip
    assert report.fails("warning")
    assert not report.fails("error")


@pytest.mark.slow
def test_the_same_bytes_for_any_order_and_any_jobs(repository):
    """Files of different robots in a random order, in one process and in two."""
    places = ["arm", GRIPPER, "leg_description", "attic"]
    texts = set()
    for seed, jobs in ((0, 1), (1, 2), (2, 3)):
        random.Random(seed).shuffle(places)
        report = report_of(repository, *places, exclude=(), jobs=jobs)
        texts.add("".join(written(report, form, "warning", "1") for form in FORMATS))
    assert len(texts) == 1
    assert str(repository) not in texts.pop()


def test_a_file_that_cannot_be_read_is_an_error(repository):
    (finding,) = report_of(repository, "attic", exclude=()).findings
    assert (finding.severity, finding.check, finding.source.file) == (
        "error", "load", "attic/old.urdf",
    )  # fmt: skip


def test_a_failure_of_ours_leaves_the_other_files(repository, monkeypatch):
    def fail(source, **_):
        if source.endswith("arm.xml"):
            raise AssertionError(f"odd state of {source}")
        return rm.validate(source)

    monkeypatch.setattr("robomodel.lint.runner.validate", fail)
    findings = report_of(repository, "arm", "gripper").findings
    assert findings[0].check == "internal"
    assert findings[0].message == "AssertionError: odd state of arm/arm.xml"
    assert {each.source.file for each in findings[1:]} == {GRIPPER}


def test_xacro_arguments(repository):
    """An argument without a value is said, and is given by the settings."""
    top = repository / "leg_description" / "urdf" / "legs.urdf.xacro"
    top.write_text(top.read_text().replace('value="4.1"', 'value="$(arg mass)"'))
    (finding,) = report_of(repository, "leg_description").findings
    assert (finding.severity, finding.check) == ("note", "not-checked")
    assert not report_of(repository, "leg_description", xacro={"mass": "4", "of": "9"}).findings


# ---- settings ------------------------------------------------------------------------------------


def test_settings_of_the_repository(repository):
    (repository / "pyproject.toml").write_text(
        """[tool.robomodel]
ignore = ["rounded-angle"]
fail-on = "error"
baseline = "known.json"
jobs = 2
[tool.robomodel.xacro]
sim = true
[tool.robomodel.files."gripper/*"]
skip = true
"""
    )
    settings = load_settings([repository / "gripper", repository / "arm"])
    assert settings.root == repository
    assert (settings.ignore, settings.fail_on, settings.jobs) == (("rounded-angle",), "error", 2)
    assert settings.baseline == repository / "known.json"
    assert settings.xacro == {"sim": "true"}
    assert settings.of_file(repository / GRIPPER).skip
    assert not settings.of_file(repository / "arm" / "arm.xml").skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour = 3", "has no 'colour'"),
        ("fail_on = 'never'", "is one of error, warning, note"),
        ("ignore = ['triangles']", "did you mean 'triangle'"),
        ("ignore = 'triangle'", "is a list of texts"),
        ("jobs = -1", "is a whole number"),
        ("select = [", "pyproject.toml"),
        ("[tool.robomodel.files.'a']\nskip = 1", "skip is True or False"),
        ("[tool.robomodel.files.'a']\nskipp = true", "did you mean 'skip'"),
    ],
)
def test_wrong_settings_are_named(repository, run, text, said):
    (repository / "pyproject.toml").write_text(f"[tool.robomodel]\n{text}\n")
    with pytest.raises(SettingsError, match=re.escape(said)):
        load_settings([repository])
    code, _, err = run("lint")
    assert code == 2
    assert said in err


# ---- comments ------------------------------------------------------------------------------------


def commented(place: str, comment: str, text: str = lint_repository.GRIPPER) -> str:
    assert place in text
    return text.replace(place, f"{place}\n    <!-- {comment} -->")


def test_a_comment_switches_checks_off_for_its_element(repository):
    path = repository / GRIPPER
    path.write_text(
        commented('<joint name="left_knuckle" type="revolute">', "robomodel: ignore=file as sold")
    )
    report = report_of(repository, "gripper")
    assert [(x.check, x.source.element) for x in report.findings] == [
        ("file", "joint 'right_knuckle'"), ("rounded-angle", "joint 'mount'"),
    ]  # fmt: skip
    assert report.ignored == 1
    path.write_text(commented('<robot name="gripper">', "robomodel: ignore=file, rounded-angle"))
    report = report_of(repository, "gripper")
    assert not report.findings
    assert report.ignored == 3


def test_comments_that_do_nothing_are_findings(repository):
    path = repository / GRIPPER
    path.write_text(commented('<link name="palm">', "robomodel: ignore=triangle,triangel x"))
    found = [each for each in report_of(repository, "gripper").findings if each.check == "ignore"]
    assert [(each.severity, each.source.line) for each in found] == [("warning", 3), ("note", 3)]
    assert "did you mean 'triangle'" in found[0].message
    assert found[1].message == "'triangle' finds nothing here"


def test_lines_and_names_of_elements_with_comments():
    text = b"""<robot xmlns:xacro="x">
  <link name="${side}_shank">
    <!-- robomodel: ignore=mirrored -->
  </link><link name="foot"><!-- robomodel:ignore = mirrored , axes\n because --></link>
</robot>"""
    first, second = ignores(text)
    assert (first.first, first.last, first.checks) == (2, 4, ("mirrored",))
    assert second.checks == ("mirrored", "axes")
    assert first.label.fullmatch("link 'left_shank'")
    assert not first.label.fullmatch("link 'left_foot'")
    assert not ignores(b"<robot><!-- robomodel: ignore=axes --><link></robot>")


# ---- baseline ------------------------------------------------------------------------------------


def test_a_baseline_holds_what_is_known(repository, run):
    code, out, _ = run("lint", "--baseline", "known.json", "--update-baseline", "--jobs", "1")
    assert code == 0
    assert "3 findings" in out
    path = repository / GRIPPER
    path.write_text(lint_repository.GRIPPER.replace("<robot", "<!-- new -->\n\n<robot"))
    code, out, _ = run("lint", "--baseline", "known.json", "--jobs", "1")
    assert code == 0
    assert out == "3 robot files: nothing found (3 known from the baseline)\n"
    path.write_text(path.read_text().replace('xyz="1 0 0"', 'xyz="3 0 0"'))  # another's axis
    code, out, _ = run("lint", "--baseline", "known.json", "--jobs", "1")
    assert code == 1
    (line,) = out.splitlines()[:-1]
    assert "joint 'right_knuckle'" in line
    assert "<axis> has the length 3" in line


def test_equal_findings_are_counted(repository):
    findings = report_of(repository, "gripper").findings
    known = baseline.read(baseline.written(findings[:1]))
    twice = [findings[0], findings[0]]
    assert baseline.unknown(twice, known) == twice[:1]
    with pytest.raises(ValueError, match="no baseline"):
        baseline.read("[]")


# ---- formats -------------------------------------------------------------------------------------


def test_sarif_is_valid(repository):
    """Against the schema of SARIF 2.1.0, as the models of pydantic-sarif are made from it."""
    sarif = pytest.importorskip("pydantic_sarif.model")
    schema = sarif.StaticAnalysisResultsFormatSarifVersion210JsonSchema
    data = as_sarif(report_of(repository, exclude=()), rm.__version__)
    schema.model_validate(json.loads(json.dumps(data)))
    (run,) = data["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[each["ruleIndex"]]["id"] for each in run["results"]] == [
        each["ruleId"] for each in run["results"]
    ]
    assert len({each["partialFingerprints"]["robomodel/v1"] for each in run["results"]}) == 4
    for rule in rules:
        assert rule["shortDescription"]["text"] == CHECKS[rule["id"]].meaning
    run["results"][0]["level"] = "notice"
    with pytest.raises(ValueError, match="level"):
        schema.model_validate(data)


def test_junit_counts_what_fails(repository):
    report = report_of(repository)
    suites = ET.fromstring(written(report, "junit", "warning", "1"))
    assert (suites.get("tests"), suites.get("failures")) == ("5", "2")
    assert [suite.get("name") for suite in suites] == report.files
    assert len(suites.findall(".//failure")) == 2
    strict = ET.fromstring(written(report, "junit", "note", "1"))
    assert strict.get("failures") == "3"


def test_annotations_are_commands(repository):
    report = report_of(repository, "gripper")
    strange = Finding("warning", "file", report.findings[0].source, "100 %\nof a, b: c")
    report = LintReport((strange,), report.robots, report.root)
    first, last = written(report, "github", "warning", "1").splitlines()
    assert first == (
        "::warning file=gripper/gripper.urdf,line=32,title=file%3A joint 'left_knuckle'"
        "::100 %25%0Aof a, b: c"
    )
    assert last == "1 robot file: 1 warning"


def test_lines_of_text(repository, run):
    code, out, err = run("lint", "gripper", "--jobs", "1")
    assert (code, err) == (1, "")
    *lines, summary = out.splitlines()
    form = re.compile(
        r"gripper/gripper\.urdf:\d+: (error|warning|note) \[[a-z-]+\] joint '\w+': .+"
    )
    assert all(form.fullmatch(line) for line in lines)
    assert summary == "1 robot file: 2 warnings, 1 note"
    os.chdir(repository / "gripper")
    _, out, _ = run("lint", ".", "--jobs", "1")
    assert out.startswith("gripper.urdf:32: ") or out.startswith("../gripper/gripper.urdf:32: ")


def test_json_document(repository, run):
    code, out, _ = run("lint", "gripper", "--format", "json", "--jobs", "1")
    data = json.loads(out)
    assert code == 1
    assert data["counts"] == {"error": 0, "warning": 2, "note": 1}
    assert data["files"] == [GRIPPER]
    for each in data["findings"]:
        assert each["page"] == f"checks.md#{each['check']}"
        assert len(each["fingerprint"]) == 24


def test_several_reports_at_once(repository, run):
    code, out, _ = run(
        "lint", "arm", "--format", "github", "--also", "sarif=a.sarif", "--also", "junit=a.xml",
        "--jobs", "1",
    )  # fmt: skip
    assert (code, out) == (0, "1 robot file: nothing found\n")
    assert json.loads(Path("a.sarif").read_text())["version"] == "2.1.0"
    assert ET.parse("a.xml").getroot().get("tests") == "1"


# ---- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("arm",), 0),
        (("gripper",), 1),
        (("gripper", "--fail-on", "error"), 0),
        (("gripper", "--ignore", "file"), 0),
        (("gripper", "--ignore", "file", "--fail-on", "note"), 1),
        (("gripper", "--select", "triangle,rounded-angle", "--fail-on", "note"), 1),
        (("gripper", "--select", "triangle"), 0),
        (("attic/old.urdf",), 0),
        (("arm", "broken.urdf"), 1),
        (("nowhere",), 2),
        (("gripper", "--select", "triangles"), 2),
        (("gripper", "--update-baseline"), 2),
        (("gripper", "--write"), 2),
        (("gripper", "--jobs", "0"), 2),
        (("gripper", "--format", "xml"), 2),
        (("gripper", "--also", "a.sarif"), 2),
        (("gripper", "--baseline", "pyproject.toml"), 2),
    ],
)
def test_exit_status(repository, run, arguments, code):
    (repository / "broken.urdf").write_text("<robot><link>")
    jobs = () if "--jobs" in arguments else ("--jobs", "1")
    assert run("lint", *arguments, *jobs)[0] == code


def test_checks_are_listed(run):
    code, out, _ = run("lint", "--list-checks")
    assert code == 0
    assert [line.partition(" ")[0] for line in out.splitlines()[::3]] == sorted(CHECKS)
    code, out, _ = run("lint", "--list-checks", "--format", "json")
    assert {each["id"] for each in json.loads(out)} == set(CHECKS)


def test_every_check_has_its_section():
    """It begins with the sentence of the catalogue; no section is of no check."""
    page = (ROOT / "docs" / "checks.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### `([\w-]+)`\n\n(.+?)\n\n", page, re.M | re.S))
    assert set(sections) == set(CHECKS)
    for name, text in sections.items():
        check = CHECKS[name]
        assert " ".join(text.split()) == f"{check.meaning} *{check.remedy}*", name


def test_findings_of_the_package_are_in_the_catalogue():
    """Ids that the source gives to findings have a meaning and a remedy."""
    ids = set()
    for path in (ROOT / "robomodel").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        ids |= set(re.findall(r"\b(?:warning|note)\(\s*\"([a-z-]+)\",", text))
        ids |= set(re.findall(r"\bFinding\(\s*[^,]+,\s*\"([a-z-]+)\"", text))
        if path.name == "differences.py":
            ids |= set(re.findall(r"Cause\(\s*\"([a-z-]+)\"", text))
    assert ids <= set(CHECKS)


# ---- fixes ---------------------------------------------------------------------------------------


def test_fixes_change_nothing_else(repository, run):
    """The diff applies, and what it leaves is the file but for three numbers."""
    path = repository / GRIPPER
    before = lint_repository.GRIPPER.replace("\n", "\r\n").encode() + b"<!-- end without a line -->"
    path.write_bytes(before)
    code, diff, _ = run("lint", "--fix", "--jobs", "1")
    assert code == 0
    assert path.read_bytes() == before
    copy = repository.parent / "copy"
    shutil.copytree(repository, copy)
    subprocess.run(["git", "apply", "-"], cwd=copy, input=diff.encode(), check=True)
    run("lint", "--fix", "--write", "--jobs", "1")
    after = path.read_bytes()
    assert (copy / GRIPPER).read_bytes() == after
    for old, new in (
        (b'rpy="0 1.57 0"', b'rpy="0 1.5707963267948966 0"'),
        (b'lower="0.8" upper="-0.5"', b'lower="-0.5" upper="0.8"'),
        (b'xyz="2 0 0"', b'xyz="1 0 0"'),
    ):
        before = before.replace(old, new)
    assert after == before
    assert not report_of(repository, "gripper").findings
    assert run("lint", "--fix", "--jobs", "1")[1].strip() == ""


def test_fixes_follow_what_is_reported(repository, run):
    _, diff, _ = run("lint", "--fix", "--ignore", "rounded-angle", "--jobs", "1")
    assert "1.5707" not in diff
    assert 'xyz="1 0 0"' in diff


def test_limits_of_no_joint_stay(repository):
    """Whole numbers, lower above upper, are how some write that a joint has no limits."""
    path = repository / GRIPPER
    path.write_text(
        lint_repository.GRIPPER.replace('lower="0.8" upper="-0.5"', 'lower="1" upper="-1"')
    )
    (fixed,) = fixed_files(report_of(repository, "gripper"))
    assert b'lower="1" upper="-1"' in fixed.after


@pytest.mark.parametrize(
    ("word", "value"),
    [("1.57", 0.5), ("-1.571", -0.5), ("3.141", 1), ("3.14", 1), ("4.71", 1.5), ("0.785", 0.25),
     ("-2.356", -0.75), ("1.58", None), ("1.56", None), ("1.5708", None), ("1.5", None),
     ("0.79", None), ("3.1416", None), ("0.00", None), ("1.57e0", None)],
)  # fmt: skip
def test_rounded_right_angles(word, value):
    meant = right_angle(word)
    assert meant == (None if value is None else pytest.approx(value * np.pi, abs=1e-15))


@pytest.mark.parametrize("form", ["urdf", "sdf", "mjcf"])
def test_corrections_are_written_into_each_format(repository, form):
    """A link's mass and a joint's limit as of its twin: the mass matrix is the sound robot's."""
    sound = rm.load(lint_repository.GRIPPER.replace('xyz="2 0 0"', 'xyz="1 0 0"')
                    .replace('lower="0.8" upper="-0.5"', 'lower="-0.5" upper="0.8"'))  # fmt: skip
    path = repository / "made" / f"gripper.{'xml' if form == 'mjcf' else form}"
    path.parent.mkdir()
    {"urdf": rm.write_urdf, "sdf": rm.write_sdf, "mjcf": rm.write_mjcf}[form](sound, path)
    right = path.read_bytes()
    wrong = right.replace(b"0.11", b"110", 1)
    wrong = re.sub(rb"(upper(?:=\"|>)|range=\"-0.8 )0.5", rb"\g<1>28.647", wrong, count=1)
    assert wrong != right
    path.write_bytes(wrong)
    label = "body 'left_finger'" if form == "mjcf" else "link 'left_finger'"
    report = report_of(repository, "made")
    corrections = (
        Correction(label, "mass", (0.11,)),
        Correction("joint 'left_knuckle'", "upper", (0.5,)),
        Correction("joint 'nobody'", "upper", (0.5,)),
    )
    source = Source(f"made/{path.name}", None, label)
    finding = Finding("warning", "unit", source, "in grams", corrections=corrections)
    (fixed,) = fixed_files(LintReport((finding,), report.robots, report.root))
    assert fixed.after.replace(b"28.64788975654116", b"0.5") == right or fixed.after == right
    mended = rm.load(fixed.after)
    q = mended.neutral()
    np.testing.assert_allclose(rm.crba(mended, q), rm.crba(sound, q), rtol=0, atol=1e-15)
    np.testing.assert_allclose(mended.upper, sound.upper, rtol=1e-12)


def dog() -> str:
    """A trunk with four legs of one link each: left and right, front and rear are images."""
    inertial = (
        '<inertial><origin xyz="{0} {1} -0.1" rpy="0 {2} 0"/><mass value="{3}"/><inertia '
        'ixx="{4}" ixy="0" ixz="0" iyy="{5}" iyz="{1}" izz="{6}"/></inertial>'
    )
    parts = [f'<link name="trunk">{inertial.format(0, 0, 0, 6.1, 0.03, 0.08, 0.09)}</link>\n']
    for name, x, y in (("fl", 0.2, 0.1), ("fr", 0.2, -0.1), ("rl", -0.2, 0.1), ("rr", -0.2, -0.1)):
        own = inertial.format(x / 20, y / 250, 2 * x, 0.63, 0.0041, 0.0044, 0.0007)
        parts.append(
            f'<link name="{name}">{own}</link>\n'
            f'<joint name="{name}_hip" type="revolute"><parent link="trunk"/><child link="{name}"/>'
            f'<origin xyz="{x} {y} 0"/><axis xyz="0 1 0"/>'
            '<limit lower="-1.1" upper="0.9" effort="20" velocity="20"/></joint>\n'
        )
    return f'<robot name="dog">\n{"".join(parts)}</robot>\n'


GRAMS = {
    "0.63": "630",
    "0.0041": "4.1",
    "0.0044": "4.4",
    "0.0007": "0.7",
    'yz="-0.0004': 'yz="-0.4',
}
COM = {'xyz="0.01 -0.0004 -0.1"': 'xyz="0.01 0.06 -0.1"'}
INERTIA = {"0.0041": "0.0021", "0.0044": "0.0023"}
DEGREES = {'lower="-1.1"': 'lower="-63.0253575"', 'upper="0.9"': 'upper="51.5662016"'}


@pytest.mark.parametrize(
    ("check", "changes"),
    [("unit", GRAMS), ("override", {"0.63": "2.1"}), ("degrees", DEGREES), ("asymmetry", COM),
     ("composite", INERTIA), ("mirrored", {'iyz="-0.0004': 'iyz="0.0004'}),
     ("axes", {'rpy="0 0.4 0"': 'rpy="0 0.4 1.3"'})],
)  # fmt: skip
def test_numbers_of_twins_are_written(repository, run, check, changes):
    """A leg with other masses, places, inertias or limits: M and limits of the sound dog."""
    path = repository / "dog" / "dog.urdf"
    path.parent.mkdir()
    before, name, after = dog().partition('<link name="fr">')
    for right, wrong in changes.items():
        after = after.replace(right, wrong, 1)
    path.write_text(before + name + after)
    assert path.read_text() != dog()
    assert check in {each.check for each in report_of(repository, "dog").findings}
    run("lint", "dog", "--fix", "--write", "--jobs", "1")
    mended, sound = rm.load(path), rm.load(dog())
    q = sound.random_configuration(np.random.default_rng(1))
    np.testing.assert_allclose(rm.crba(mended, q), rm.crba(sound, q), rtol=0, atol=1e-12)
    np.testing.assert_allclose(mended.upper, sound.upper, rtol=1e-8)
    assert not [x for x in report_of(repository, "dog").findings if x.severity != "note"]


def test_of_two_that_differ_none_is_changed(repository):
    """Masses of two fingers: neither is known to be right."""
    text = lint_repository.GRIPPER.replace('value="0.11"', 'value="0.14"', 1)
    (repository / GRIPPER).write_text(text)
    report = report_of(repository, "gripper")
    assert [x.source.element for x in report.findings if "counterpart" in x.message]
    (fixed,) = fixed_files(report)
    assert fixed.after.count(b'value="0.14"') == fixed.after.count(b'value="0.11"') == 1


def test_edits_of_attributes_and_texts():
    data = "<?xml version='1.0'?>\n<r a = 'é>' b=\"2\">\n<c> 3 </c><d/>é</r>".encode()
    text = Text.of(data)
    inner, empty = text.root.children
    edits = [text.attribute(text.root, "b", "7"), text.content(inner, "4")]
    assert text.edited(edits) == data.replace(b'"2"', b'"7"').replace(b" 3 ", b" 4 ")
    assert text.attribute(text.root, "x", "1") is None
    assert text.content(empty, "1") is None
    assert text.content(text.root, "1") is None
    assert (inner.line, text.root.label) == (3, "<r>")
    assert Text.of(b"\xff<r/>") is None
    assert Text.of(b"<r>") is None
    assert unified_diff("f", data, data) == ""


# ---- hook and action -----------------------------------------------------------------------------


def hook() -> dict[str, object]:
    yaml = pytest.importorskip("yaml")
    (only,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    return only


@pytest.mark.slow
def test_the_hook_of_pre_commit(repository):
    """Its entry, with the repository's files that its pattern takes, as pre-commit runs it."""
    words = hook()["entry"].split()
    assert (hook()["id"], words) == ("robomodel-lint", ["robomodel", "lint"])
    files = [str(x.relative_to(repository)) for x in repository.rglob("*") if x.is_file()]
    taken = sorted(file for file in files if re.search(hook()["files"], file))
    assert GRIPPER in taken
    assert "leg_description/urdf/parts/leg_macro.xacro" in taken
    taken.remove("build/gripper.urdf")  # git does not have it
    result = subprocess.run(
        [sys.executable, "-m", *words, *taken], cwd=repository, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert result.returncode == 1
    *lines, summary = result.stdout.splitlines()
    assert len(lines) == 3
    assert summary == "3 robot files: 2 warnings, 1 note"
    assert all(line.startswith(GRIPPER) for line in lines)


@pytest.mark.slow
def test_the_steps_of_the_action(repository, tmp_path):
    """The script of its last step, with inputs as GitHub sets them: annotations and SARIF."""
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    inputs = {name: str(each["default"]) for name, each in action["inputs"].items()}
    *_, install, step = action["runs"]["steps"]
    assert "$GITHUB_ACTION_PATH[" in install["run"]
    inputs |= {"sarif": "all of it.sarif", "args": "--fail-on error --jobs 1"}
    environment = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], value)
        for name, value in step["env"].items()
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]], cwd=repository, capture_output=True,
        text=True, check=False,
        env={**os.environ, **environment, "PATH": path, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    commands = [line.partition(" ")[0] for line in result.stdout.splitlines()[:-1]]
    assert commands == ["::warning", "::warning", "::notice"]
    assert len(json.loads((repository / "all of it.sarif").read_text())["runs"][0]["results"]) == 3
