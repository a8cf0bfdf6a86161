"""Reports: one document as text, page and data; what users met with them."""

from __future__ import annotations

import csv
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from texts import coupling, four_bar, joint, link, robot

import robomodel as rm
from robomodel.cli.common import as_option
from robomodel.errors import Source, argument, arguments_written
from robomodel.reports.document import (
    Bullets,
    Document,
    Finding,
    Findings,
    Section,
    Table,
    Verbatim,
)
from robomodel.reports.palette import REPORT, TONES, coloured
from robomodel.reports.plots import Line, Plot
from robomodel.reports.validation.context import CheckContext

# ---- the document --------------------------------------------------------------------------------

ODD = Finding("warning", "units", Source("<a>.urdf", 3, "link 'a'"), "is <odd>", "mend it")
ALSO = Finding("warning", "units", Source("<a>.urdf", 5, "b"), "is odd", "mend it", 0.5, "m")
X = np.array([0.0, 1.0, 2.0])
DOCUMENT = Document(
    "a & b",
    "one warning",
    [
        Section("", [Findings(ODD, [ALSO])]),
        Section(
            "Numbers",
            [
                Table(["joint", "effort [N m]", "note"],
                      [["hip", 12.5, "x"], ["knee", math.inf, ""], ["toe", math.nan, None]]),
                Bullets(["one", "a line that is longer than the others, by some words"]),
            ],
        ),
        Section("Curves", [Plot("p", "x [m]", "y", [Line("l", X, X**2), Line("m", X, X)], "p q")]),
        Section("Nothing", [Bullets([]), Table(["a"], [])]),
        Section("", [Verbatim(["  kept"])]),
    ],
    {"value": math.nan, "list": (1, X)},
    "file.urdf",
    "test",
)  # fmt: skip


def test_long_numbers_beside_a_plot_take_a_power_of_ten() -> None:
    for size, label, ticks in (
        (3e5, "[1e+3 N]", (100, 200)), (3e-4, "[1e-6 N]", (100, 200)), (3.0, "[N]", (1, 2)),
    ):  # fmt: skip
        page = Document(
            "a", "b", [Section("", [Plot("p", "x", "y [N]", [Line("", X, size * X / 2)])])]
        )
        assert f"y {label}<" in page.html()
        assert all(f'class="end">{tick}<' in page.html() for tick in ticks)


def test_a_document_as_text() -> None:
    assert DOCUMENT.text().splitlines() == [
        "a & b: one warning",
        "",
        "warning [units] <a>.urdf:3: link 'a'",
        "  is <odd>; mend it",
        "  likewise b (line 5): 0.5 m",
        "",
        "Numbers",
        "  joint  effort [N m]  note",
        "  hip            12.5  x",
        "  knee      unlimited",
        "  toe",
        "  one",
        "  a line that is longer than the others, by some words",
        "  kept",
    ]
    narrow = DOCUMENT.text(30, coloured=True).splitlines()
    assert narrow[2].startswith("\x1b[1;33mwarning [units]\x1b[0m ")
    assert all(len(line) <= 30 for line in narrow if "units" not in line)


def test_a_document_as_a_page() -> None:
    page = DOCUMENT.html()
    tree = etree.HTML(page)
    assert tree.findtext(".//title") == "a & b: test"
    assert [each.text for each in tree.findall(".//h2")] == ["Numbers", "Curves"]
    rows = [[cell.xpath("string()") for cell in row] for row in tree.findall(".//tr")]
    assert ["joint", "effort [N m]", "note"] in rows
    assert ["knee", "unlimited", ""] in rows
    assert [cell.get("class") for cell in tree.findall(".//td") if cell.text == "12.5"] == [
        "number"
    ]
    assert len(tree.findall(".//figure/svg")) == 1
    assert "prefers-color-scheme: dark" in page
    assert "<odd>" not in page


def test_plots_of_a_group_are_tabs_and_empty_columns_are_left_out() -> None:
    x = np.array([0.0, 1.0])
    same, other = (Plot(f"knee: {word}", "knee [rad]", "y", [Line(word, x, x)], group=group)
                   for word, group in (("torque", "knee"), ("speed", "hip")))  # fmt: skip
    table = Table(["joint", "limit [N]", "note"], [["knee", None, ""], ["hip", 2.0, ""]])
    page = Document("leg", "fine", [Section("a", [same, replace(same, title="knee: ratio"), other]),
                                    Section("more", [table], folded=True)]).html()  # fmt: skip
    assert page.count("<figure>") == 2
    assert page.count('type="radio"') == 2
    assert ">ratio</label>" in page
    assert "<details><summary>more</summary>" in page
    assert "note" not in re.sub("<style>.*</style>", "", page, flags=re.DOTALL)
    assert page.index("fine") < page.index("<h2")
    assert 'data-axes="58 448 30 220 0 1 0 1 0"' in page  # from pixels to values


def test_a_document_as_data(tmp_path: Path) -> None:
    assert DOCUMENT.as_dict() == {"value": None, "list": [1, [0.0, 1.0, 2.0]]}
    (path,) = DOCUMENT.write_plots(tmp_path / "new", "csv")
    assert path.name == "p_q.csv"
    assert list(csv.reader(path.open())) == [
        ["x [m]", "l", "m"], ["0.0", "0.0", "0.0"], ["1.0", "1.0", "1.0"], ["2.0", "4.0", "2.0"]
    ]  # fmt: skip


# ---- validation ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_rotors_inside_linkages_are_checked() -> None:
    """0.5 kg m² through a ratio of 9 beside links of some kilograms; 5e-5 is a rotor's."""
    for inertia, found in ((0.5, 1), (5e-5, 0)):
        rotor = {"joint1": rm.Rotor(inertia=inertia, ratio=9.0)}
        model = rm.load(rm.robots.path("four_bar"), rotors=rotor)
        (own,) = CheckContext(model).rotors
        assert own.ratios == {"joint1": 9.0}
        told = [each for each in rm.validate(model).findings if each.check == "rotor-inertia"]
        assert len(told) == found
        assert all(each.value == pytest.approx(81 * inertia) for each in told)


@pytest.mark.slow
def test_ranges_end_where_limits_are_met() -> None:
    """Of the rocker when the crank is limited: by the law of cosines, not at a sample before."""
    text = four_bar(marks=(True, False, False)).replace(
        '<joint name="j_crank" type="continuous"', '<joint name="j_crank" type="revolute"'
    )
    text = text.replace("</joint>", '<limit lower="-0.437" upper="0.611"/></joint>', 1)
    (linkage,) = rm.validate(text).linkages
    low, high = linkage.sweeps[0].range
    assert (low, high) == pytest.approx((-0.437, 0.611), abs=1e-8)
    assert "-0.437  0.611" in str(rm.validate(text))


# ---- actuation -----------------------------------------------------------------------------------

MOMENTS = 'ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"'
INERTIAL = f'<inertial><mass value="1"/><inertia {MOMENTS}/></inertial>'

GEARED = robot(
    link("arm"),
    joint("hub", "base", "arm", more='<rotor inertia="1e-4" ratio="10"/>'
          '<motor stall_torque="0.3" no_load_speed="200"/>'),
)  # fmt: skip


def test_torque_over_speed_and_reflected_inertia() -> None:
    study = rm.actuation(rm.load(GEARED))
    (curve,) = study.speed_torque
    np.testing.assert_allclose(curve.speeds[0, [0, -1]], [0.0, 20.0])
    np.testing.assert_allclose(curve.torques[0], 3.0 * (1.0 - curve.speeds[0] / 20.0), atol=1e-12)
    np.testing.assert_allclose(study.reflected["hub"], 1e-2)
    data = study.as_dict()
    assert data["joints"][0]["reflected_inertia"] == pytest.approx([1e-2, 1e-2])
    (line,) = next(c for c in data["curves"] if c["name"] == "torque_speed_hub")["lines"]
    assert line["y"] == pytest.approx(curve.torques[0].tolist())
    assert "0.3 N m" in str(study)
    assert "200 rad/s" in str(study)
    assert "0.01 kg m²" in str(study)


@pytest.mark.slow
def test_workspaces_are_in_the_coordinates_of_the_base(tmp_path: Path) -> None:
    """A link of 0.3 m about a pivot at x = 2, z = 1 reaches from 1.7 to 2.3, not from -0.3."""
    text = robot(
        link("upper"), link("tip"),
        joint("hip", "base", "upper", "2 0 1", axis="0 1 0"),
        joint("knee", "upper", "tip", "0 0 -0.2", axis="0 1 0"),
    )  # fmt: skip
    (space,) = rm.actuation(rm.load(text), foot=("tip", (0.0, 0.0, -0.1))).workspaces
    assert space.axis_names == ("x", "z")
    flat = rm.load(rm.robots.path("five_bar"))
    assert rm.actuation(flat, foot=flat.bodies[1].name).workspaces[0].axis_names == ("x", "y")
    (x0, x1), (z0, z1) = space.extent
    np.testing.assert_allclose([x0, x1, z0, z1], [1.7, 2.3, 0.7, 1.3], atol=6e-3)
    np.testing.assert_allclose(space.origin, 0.0, atol=1e-12)


# ---- the command line ----------------------------------------------------------------------------


def test_passive_forces_are_counted_or_noted(run, tmp_path: Path) -> None:
    file = tmp_path / "r.urdf"
    more = '<dynamics damping="0.5" friction="0.1" spring_stiffness="3"/>'
    file.write_text(robot(link("arm"), joint("hub", "base", "arm", more=more)))
    state = ("--position", "hub=0.2", "--v", "2", "--json")
    bare = json.loads(run("dynamics", file, *state)[1])
    full = json.loads(run("dynamics", file, *state, "--passive")[1])
    assert full["tau"][0] - bare["tau"][0] == pytest.approx(0.5 * 2.0 + 3.0 * 0.2)
    assert any("--passive" in note for note in bare["notes"])
    assert not any("--passive" in note for note in full["notes"])
    assert any("dry friction" in note for note in full["notes"])


@pytest.mark.parametrize(
    ("given", "in_python", "in_options"),
    [
        (("tolerance", 0.002), "tolerance=0.002", "--loop-tolerance 0.002"),
        (("velocities", 20.0, "read_log"), "read_log(…, velocities=20)", "--velocities 20"),
        (("resources", {"p": "path"}), "resources={'p': 'path'}", "--resources p=path"),
        (("drop", True), "drop=True", "--drop"),
        (("inertia_from", "collision"), "inertia_from='collision'", "--inertia-from collision"),
        (("floating_base", False), "floating_base=False", "--fixed-base"),
        (("torque",), "torque=", "--torque"),
    ],
)
def test_messages_write_arguments_as_the_reader_gives_them(given, in_python, in_options) -> None:
    with arguments_written(as_option):
        assert argument(*given) == in_options
    assert argument(*given) == in_python


@pytest.mark.slow
def test_messages_of_files_name_them_once(run, tmp_path: Path) -> None:
    text = rm.robots.path("crank_rocker").read_text()
    file = tmp_path / "rounded.urdf"
    file.write_text(text.replace('"3.605551275463989 0 0"', '"3.605551275463989 0 0.02"'))
    assert "--loop-tolerance 0.0" in run("info", file)[2]
    log = tmp_path / "log.csv"
    log.write_text("time,q.joint1\n0,x\n")
    err = run("identify", "four_bar", log)[2]
    assert err.count("log.csv") == 1


def test_missing_meshes_are_named_once(run, tmp_path: Path) -> None:
    mesh = '<visual><geometry><mesh filename="package://p/{}.stl"/></geometry></visual>'
    parts = [link(f"l{n}", INERTIAL + mesh.format(n)) for n in range(12)]
    parts += [joint(f"j{n}", f"l{n - 1}" if n else "base", f"l{n}") for n in range(12)]
    file = tmp_path / "r.urdf"
    file.write_text(robot(*parts))
    code, _, err = run("convert", file, "-o", tmp_path / "r.xml", "--no-check")
    assert code == 2
    assert err.count("--resources p=path") == 1
    assert "and 11 more like it" in err


def test_help_lists_a_commands_own_options_first(run) -> None:
    for command in ("info", "excite", "convert", "identify"):
        text = run(command, "--help")[1]
        own, loading = text.index("\nOptions:"), text.index("\nLoading options:")
        assert own < text.index("  --json") < loading < text.index("  --extend")
    assert "[default: 0.95]" in " ".join(run("excite", "--help")[1].split())


def test_info_has_limits_axes_and_rotors(run, tmp_path: Path) -> None:
    file = tmp_path / "r.urdf"
    more = '<limit lower="-1" upper="2" effort="5"/><rotor inertia="1e-4" ratio="10"/>'
    file.write_text(robot(link("arm"), joint("hub", "base", "arm", axis="0 1 0", kind="revolute",
                                             more=more)))  # fmt: skip
    out = run("info", file)[1]
    assert "hub    revolute  0 1 0     -1      2       5  rad, N m" in out
    (rotor,) = json.loads(run("info", file, "--json")[1])["rotors"]
    assert rotor == {"name": "hub_rotor", "inertia": 1e-4, "ratios": {"hub": 10.0}}


@pytest.mark.parametrize("form", ["urdf", "sdf"])
def test_parameters_are_set(run, report, tmp_path: Path, form: str) -> None:
    """The ratio of a rotor too, in a file where it is a link and a coupling."""
    file = tmp_path / f"again.{form}"
    rm.write_urdf(rm.load(GEARED), file) if form == "urdf" else rm.write_sdf(rm.load(GEARED), file)
    said = report("info", file, "--set", "hub.ratio=12", "--set", "arm.mass=7", "--set",
                  "hub.damping=0.25", "--set", "gravity.z=-1.62",
                  "--set", "gravity.x=1")  # fmt: skip
    assert said["rotors"][0]["ratios"]["hub"] == pytest.approx(12.0)
    assert [each["mass"] for each in said["bodies"] if each["name"] == "arm"] == [7.0]
    assert [each["damping"] for each in said["joints"] if each["name"] == "hub"] == [0.25]
    assert said["gravity"] == [1.0, 0.0, -1.62]
    (row,) = report("armature", file, "--set", "hub.ratio=12", "--samples", 2)["armature"]
    assert row["value"] == pytest.approx(144e-4)
    for wrong, message in (
        ("hub.ratoi=3", "did you mean 'ratio'"), ("hbu.ratio=3", "did you mean 'hub'"),
        ("hub.ratio", "OWNER.PARAMETER=NUMBER"), ("arm.mas=1", "did you mean 'mass'"),
    ):  # fmt: skip
        code, _, err = run("info", file, "--set", wrong)
        assert code == 2
        assert message in err


def test_coefficients_of_couplings_are_set(report, tmp_path: Path) -> None:
    file = tmp_path / "c.urdf"
    file.write_text(
        robot(link("a"), link("b"), joint("ja", "base", "a", mark=True), joint("jb", "a", "b"),
              coupling("tie", {"jb": 1.0, "ja": -2.0}))
    )  # fmt: skip
    (said,) = report("info", file, "--set", "tie.ja=-5")["couplings"]
    assert said["equation"] == "q(jb) = 5 q(ja)"


def test_pages_take_their_colours_from_the_palette() -> None:
    """Nothing else has a colour of its own, but black, white and grey on paper."""
    package = Path(rm.__file__).parent
    for kind in ("css", "html", "js", "py"):
        for file in set(package.rglob(f"*.{kind}")) - {package / "reports" / "palette.py"}:
            text = file.read_text(encoding="utf-8")
            own = re.findall(r"(?<!\w)#(?:[0-9a-f]{3}|[0-9a-f]{6})\b", text)  # no thread's number
            assert not [x for x in own if len(set(x[1:])) > 1], file
    page = coloured(":root { %LIGHT% } @media { :root { %DARK% } }", REPORT)
    assert f"--ink: {TONES['ink'][0]};" in page
    assert f"--panel: {REPORT['panel'][1]};" in page
