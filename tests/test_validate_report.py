"""Forms of the validation's report, and its command."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from texts import four_bar, joint, link, robot
from validation_texts import rocker_driven

import robomodel as rm
from robomodel.reports.drawings import LETTER, LINE, WIDTH, Bar, Drawings, Pin, Sketch, svg

# ---- loading, and forms of the report ------------------------------------------------------------


@pytest.mark.slow
def test_what_does_not_load_is_one_error() -> None:
    text = four_bar().replace('"0.7 0 0"', '"9 0 0"')
    report = rm.validate(text)
    (found,) = report.findings
    assert (found.severity, found.check, found.source.element) == (
        "error",
        "load",
        "loop 'closing'",
    )
    assert "cannot close" in found.message
    assert not report.ok
    assert "cannot close" in report.html()


def test_warnings_of_reading_are_findings() -> None:
    text = robot(link("a"), joint("j", "base", "a", axis="0 0 2"), "<extra/>")
    report = rm.validate(text)
    assert [(each.severity, each.check) for each in report.findings] == [("warning", "file")] * 2
    assert all(each.source.line is not None for each in report.findings)
    with pytest.warns(rm.DescriptionWarning):
        model = rm.load(text)
    assert rm.validate(model).findings == ()  # a model no longer has the file's words
    with pytest.raises(TypeError, match="loaded already"):
        rm.validate(model, floating_base=True)


@pytest.mark.slow
def test_findings_of_a_model_and_of_its_file_agree() -> None:
    text = rocker_driven()
    assert rm.validate(text).as_dict() == rm.validate(rm.load(text)).as_dict()


@pytest.mark.slow
def test_the_page_needs_nothing_besides() -> None:
    report = rm.validate(rocker_driven())
    (linkage,) = report.linkages
    assert str(report)
    assert report.as_dict()
    assert not {"_over_limb", "sketches", "ghosts"} & vars(linkage).keys()  # for the page alone
    page = report.html()
    tree = etree.HTML(page)
    pictures = tree.findall(".//svg")
    sketches = [picture for picture in pictures if picture.get("class") == "sketch"]
    titles = [picture.get("aria-label") for picture in sketches]
    assert titles[:2] == ["neutral configuration", "the other way to close"]
    assert len(sketches) == 2 + len(linkage.sweeps[0].singularities)
    assert len(pictures) == len(sketches) + 3  # positions, ratios, condition
    assert all(len(picture.findall("path")) >= 1 for picture in pictures)
    dashed = [path for path in tree.findall(".//svg/path") if path.get("class") == "dashed"]
    assert not dashed  # by the crank both ways to close are one curve
    dead = [mark for mark in tree.findall(".//svg/line") if mark.get("class") == "mark"]
    assert len(dead) == 3 * len(linkage.sweeps[0].singularities)
    sources = [e.get(a) for e in tree.iter() for a in ("src", "href") if e.get(a)]
    assert sources == []
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    for each in report.findings:
        assert each.check in page


@pytest.mark.slow
def test_drawings_are_in_the_plane_of_the_linkage() -> None:
    """Bars are as long in every pose; what carries the linkage has two pins."""
    sketches = rm.validate(rm.robots.load("crank_rocker")).linkages[0].sketches
    assert len(sketches) == 2

    def lengths(each):
        bars = [np.array(bar.points) for bar in each.bars if bar.number >= 0]
        return sorted(float(np.linalg.norm(np.ptp(points, axis=0))) for points in bars)

    for each in sketches:
        np.testing.assert_allclose(lengths(each), lengths(sketches[0]), rtol=1e-9)
        assert sum(pin.fixed for pin in each.pins) == 2


@pytest.mark.slow
def test_the_plotted_condition_is_that_of_the_text() -> None:
    """Without rotors: one that turns twelve times as far as the crank would drown all else."""
    file = rm.robots.path("crank_rocker")
    model = rm.load(file, rotors={"crank_joint": rm.Rotor(inertia=1e-5, ratio=12.0)})
    report = rm.validate(model)
    (linkage,) = report.linkages
    (plot,) = (each for each in report.document.plots if "1/σ" in each.y_label)
    assert np.min(plot.lines[0].y) <= linkage.median < 12.0
    (of,) = linkage.coordinates
    assert np.max(plot.lines[0].y) == pytest.approx(of.chosen.worst, rel=0.1)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(-4.0, 4.0), st.floats(-4.0, 4.0)), max_size=9)
)
@settings(max_examples=30, deadline=None)
def test_names_do_not_cover_each_other(pins: list[tuple[int, float, float]]) -> None:
    """Names, or numbers for long ones, of joints in heaps a few pixels wide."""
    heaps = [(0.0, 0.0), (1.0, 0.0), (0.6, 0.4), (0.0, 0.4)]
    drawn = tuple(
        Pin(f"joint{n}", (heaps[at][0] + x / WIDTH, heaps[at][1] + y / WIDTH))
        for n, (at, x, y) in enumerate(pins)
    )
    (picture,) = svg(Drawings((Sketch("heaps", (Bar("bar", 0, tuple(heaps)),), drawn, ()),)))
    names = [each for each in etree.fromstring(picture).iter() if str(each.tag).endswith("text")]
    boxes = [
        (float(each.get("x", "")), float(each.get("y", "")), LETTER * len(each.text or ""))
        for each in names[1:]
    ]
    assert len(boxes) == len(pins)
    for (x, y, width), (other, row, long) in itertools.combinations(boxes, 2):
        assert abs(y - row) >= LINE - 0.2 or x + width <= other + 0.2 or other + long <= x + 0.2


@pytest.mark.slow
def test_figures_name_their_joint_once_and_names_go_on_after_underscores() -> None:
    """Besides in the label of the axis; names are not cut in the middle of a word."""
    page = rm.actuation(rm.robots.load("planar_leg_linkage")).html()
    (figure,) = re.findall(r"<figure>.*?</figure>", page, re.DOTALL)
    shown = re.sub(r"<[^>]*>", " ", figure.replace("<wbr/>", ""))
    assert shown.count("lower-leg-loop") == shown.count("shank_driver_joint") == 1
    assert "shank_<wbr/>support_<wbr/>joint</td>" in page
    assert "rad/<wbr/>s" not in page


def test_names_are_escaped() -> None:
    text = robot(link("&lt;b&gt;"), joint("j", "base", "&lt;b&gt;", "0 0 99"))
    page = rm.validate(text).html()
    assert "<b>" not in page


def test_text_and_summary() -> None:
    report = rm.validate(rm.robots.load("mini_cheetah"))
    first, *rest = str(report).splitlines()
    assert first == "mini_cheetah: 4 warnings"
    assert len(rest) == 4  # one finding: where, what, and where else it is
    assert rest[1].startswith("warning [triangle] ")
    assert rest[3].startswith("  likewise link 'HL_hip_link' (line ")


# ---- command line --------------------------------------------------------------------------------


@pytest.mark.slow
def test_exit_status(run, tmp_path: Path) -> None:
    assert run("validate", "belt_leg")[0] == 0
    assert run("validate", "crank_rocker")[0] == 0  # notes only
    code, out, err = run("validate", "puma560")
    assert (code, err) == (1, "")
    assert "link 'link3'" in out
    broken = tmp_path / "broken.urdf"
    broken.write_text(four_bar().replace('"0.7 0 0"', '"9 0 0"'))
    code, out, err = run("validate", broken)
    assert code == 2
    assert "error [load]" in out
    assert err.startswith(f"{broken}:")
    assert "cannot close" in err
    code, out, err = run("validate", tmp_path / "nothing.urdf")
    assert (code, out) == (2, "")


def test_json_and_page(run, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, out, _ = run("validate", "puma560", "--json", "--html", page)
    report = json.loads(out)
    assert code == 1
    assert report == rm.validate(rm.robots.path("puma560")).as_dict()
    assert report["counts"] == {"error": 0, "warning": 1, "note": 0}
    assert page.read_text(encoding="utf-8") == rm.validate(rm.robots.path("puma560")).html()


@pytest.mark.slow
def test_validation_is_not_imported_before_it_is_used() -> None:
    code = (
        "import sys, robomodel; "
        "print([m for m in sys.modules if m.startswith('robomodel.reports')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.slow
def test_ranges_are_said_first_and_dead_points_are_placed_by_the_limb() -> None:
    """In line with the coupler, a crank is at the dead point of its rocker."""
    text = str(rm.validate(rm.robots.load("crank_rocker")))
    cluster = text.partition("\nCluster crank\n")[2]
    first = (
        "  rocker_joint reaches 2.337 to 2.899 rad; a dead point of 'loop' ends it on both sides."
    )
    assert cluster.startswith(first)
    led = rm.load(rm.robots.path("crank_rocker"), independent=["coupler_joint"])
    (linkage,) = rm.validate(led).linkages
    sweep = linkage.sweeps[0]
    for event in sweep.singularities:
        at = dict(zip(linkage.labels, event.joints, strict=True))["rocker_joint"]
        assert linkage.placed(event, sweep) == f"rocker_joint {round(at, 9) + 0.0:.4g}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limb"),
    [
        ("crank_rocker", ("rocker_joint",)),
        ("five_bar", ("J1", "J2")),
    ],
)
def test_curves_are_drawn_over_the_joints_of_the_limb(name: str, limb: tuple[str, ...]) -> None:
    """One moves at a time, and ratios are those of G."""
    marked = ("J3", "J4") if name == "five_bar" else None  # not the limb's
    model = rm.load(rm.robots.path(name), independent=marked)
    report = rm.validate(model)
    linkage = next(each for each in report.linkages if set(limb) <= set(each.joints))
    assert tuple(each.joint for each in linkage.drawn) == limb
    assert set(limb) != set(linkage.independent)
    assert {f"{joint} [rad]" for joint in limb} <= {p.x_label for p in report.document.plots}
    cluster = next(each for each in model.clusters if each.name == linkage.cluster)
    moving = [linkage.labels.index(label) for label in cluster.independent]
    for curve in linkage.drawn:
        others = [linkage.labels.index(joint) for joint in limb if joint != curve.joint]
        np.testing.assert_allclose(np.ptp(curve.positions[:, others], axis=0), 0.0, atol=1e-9)
        seen = 0
        for n in np.flatnonzero(curve.reached)[1:-1:5]:
            if np.max(np.abs(curve.rates[n])) > 1e3:
                continue
            at = dict(zip(cluster.joints, curve.joints[n].tolist(), strict=True))
            g = model.constraint_jacobian(model.configuration(at))[cluster.spanning_v, cluster.v]
            np.testing.assert_allclose(g @ curve.rates[n, moving], curve.rates[n], atol=1e-6)
            seen += 1
        assert seen >= 2
