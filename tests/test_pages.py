"""Pages that compute: their code and data, run by Node; stills."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

import node as js
import numpy as np
import pytest
from test_polynomials import KNEE
from texts import INERTIAL, joint, link, robot

import robomodel as rm
from robomodel.dynamics.actuators.reflection import reflected_inertia
from robomodel.model.elements import position_names
from robomodel.views import page, write_page, write_png
from robomodel.views.still import still


def parts(text: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The page's functions and its motion as a module, and its data."""
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|src=|<link|@import|%[A-Z]+%", text)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    code, _, rest = script.partition("class Scene")
    motion = rest[rest.index("const more") : rest.index("// ---- state")]
    file = folder / "robot.mjs"
    exported = f"{code}\n{motion}\nexport {{ moved, more, under }};\n"
    file.write_text(exported, encoding="utf-8")
    (folder / "all.mjs").write_text(script, encoding="utf-8")
    (data,) = re.findall(r"^const data = (.*);$", script, re.MULTILINE)
    return file, json.loads(data)


def moves(folder: Path, model: rm.Model, data: dict[str, Any], targets: list[float]) -> np.ndarray:
    """Configurations after the chosen slider went to each of these, one after the other."""
    printed = js.node(
        f"""
import {{ moved }} from "./robot.mjs";
const data = {json.dumps(data)}, freedom = data.freedoms[data.chosen], found = [];
let q = Float64Array.from(data.start);
for (const to of {json.dumps(targets)}) {{
  [q] = moved(q, freedom, to - q[freedom.q], data.loops);
  found.push([...q]);
}}
console.log(JSON.stringify(found));
""",
        folder,
    )
    return np.array(json.loads(printed))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["crank_rocker", "mini_cheetah"])
def test_what_is_plotted_is_what_the_package_computes(name: str, tmp_path: Path) -> None:
    model = rm.robots.load(name)
    file, data = parts(page(model), tmp_path)
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    nv, loads = model.nv, data["loads"]
    others = [(f, o) for f in data["freedoms"] for o in f["others"]]
    sizes = [len(others), nv, nv, *([nv] if data["reflected"] else []), nv * len(loads),
             len(data["bars"])]  # fmt: skip
    links = 1 + max(each["link"] for each in (*data["solids"], *loads))
    found, poses = js.run(
        [js.Job(file, "quantities", [q], sum(sizes)), js.Job(file, "link_poses", [q], 12 * links)],
        tmp_path,
    )
    ratios, gravity, inertia, *reflected, weights, angles = np.split(
        found, np.cumsum(sizes)[:-1], axis=1
    )
    G = model.constraint_jacobian(q)
    place = {joint.name: node.v for joint, node in zip(model.joints, model.nodes, strict=True)}
    right = [G[:, place[o["name"]], f["index"]] for f, o in others]
    np.testing.assert_allclose(ratios.T, right, atol=1e-11)
    np.testing.assert_allclose(gravity, rm.gravity_force(model, q), atol=1e-10)
    diagonal = np.diagonal(rm.crba(model, q), axis1=1, axis2=2)
    np.testing.assert_allclose(inertia, diagonal, rtol=1e-11)
    for body, each in enumerate(model.joints):  # as reports have it
        if each.name in model.dof_names:
            i = model.dof_names.index(each.name)
            rates = np.tile(np.eye(nv)[i], (3, 1))
            of_reports = reflected_inertia(model, q, body, rates)
            np.testing.assert_allclose(reflected[0][:, i], of_reports, rtol=1e-11)
            assert np.all(of_reports >= 0.0)
    for k, load in enumerate(loads):
        frame = (load["name"], tuple(load["at"]))
        J = rm.jacobian(model, q, frame, reference="local_world_aligned")[:, 3:]
        held = -np.einsum("nij,i->nj", J, model.gravity)
        np.testing.assert_allclose(weights[:, k * nv : (k + 1) * nv], held, atol=1e-11)
    for bar in data["bars"]:  # the only one is a crank-rocker's, of 4, 2, 4 and 5 units
        (study,) = rm.actuation(model).four_bars
        crank = (q[:, 0] + np.pi) % (2 * np.pi) - np.pi
        on = (study.positions.min() < crank) & (crank < study.positions.max())  # the rocker's sheet
        assert np.any(on)
        inside = np.interp(crank, study.positions, study.angles, period=2 * np.pi)
        shown = np.arccos(np.abs(angles[:, bar["at"]]))
        np.testing.assert_allclose(shown[on], inside[on], atol=2e-2)
    assert len(poses) == 3


@pytest.mark.slow
def test_sliders_go_as_far_as_loops_close_and_over_change_points(tmp_path: Path) -> None:
    model = rm.robots.load("crank_rocker")
    _, data = parts(page(model), tmp_path)
    assert {each["name"]: each["limb"] for each in data["dependent"]} == {
        "coupler_joint": False,
        "rocker_joint": True,
    }
    q = moves(tmp_path, model, data, [2.0, -3.0, 0.5, 9.0])
    np.testing.assert_allclose(q[:, 0], [2.0, -3.0, 0.5, 9.0], atol=1e-12)
    for one, target in zip(q, (2.0, -3.0, 0.5, 9.0), strict=True):
        right = model.configuration({"crank_joint": target}, guess=one)
        np.testing.assert_allclose(one, right, atol=1e-9)

    model = rm.robots.load("four_bar")  # a parallelogram, which can fold flat at 0 and π
    _, data = parts(page(model), tmp_path)
    targets = [0.3, 0.0, -0.4, -3.0, -3.5, 0.0, 1.0]
    q = moves(tmp_path, model, data, targets)
    np.testing.assert_allclose(q[:, 0], targets, atol=1e-12)
    np.testing.assert_allclose(q[:, 1], -q[:, 0], atol=1e-6)  # it stays one
    assert np.abs(model.residual(q)).max() < 1e-9

    rocker = rm.load(rm.robots.path("crank_rocker"), independent=["rocker_joint"])
    _, data = parts(page(rocker), tmp_path)
    assert not any(each["limb"] for each in data["dependent"])  # it has the slider
    (slider,) = data["freedoms"]
    ends = [slider["lower"] - 1.0, slider["upper"] + 1.0]
    q = moves(tmp_path, rocker, data, ends)
    place = position_names(rocker).index("rocker_joint")
    np.testing.assert_allclose(q[:, place], [slider["lower"], slider["upper"]], atol=1e-3)
    assert slider["lowerBy"].startswith("dead point of ")


def test_balls_floating_bases_and_slides_have_pages(tmp_path: Path) -> None:
    text = robot(
        link("a", INERTIAL),
        joint("ball", "base", "a", kind="spherical"),
        link("b", INERTIAL),
        joint("slide", "a", "b", kind="prismatic", more='<limit lower="-0.1" upper="0.3"/>'),
    )
    model = rm.load(text, floating_base=True)
    file, data = parts(page(model, joint="slide"), tmp_path)
    assert data["freedoms"][data["chosen"]]["name"] == "slide"
    assert [f["upper"] for f in data["freedoms"] if f["name"] == "slide"] == [0.3]
    assert sum(f["base"] for f in data["freedoms"]) == 6
    assert len([s for s in data["solids"] if s["colour"]]) >= 4  # a box, and its rail
    js.node('import "./robot.mjs";', tmp_path)
    assert file.stat().st_size > 1000


@pytest.mark.slow
def test_designs_are_computed_as_robots_built_with_their_numbers(tmp_path: Path) -> None:
    model = rm.robots.load("crank_rocker")
    vary = {
        "rocker_joint.x": (3.0, 5.0),
        "loop.successor.x": (3.0, 4.0),
        "coupler.mass": (0.0, 9.0),
    }
    text = page(model, vary=vary)
    file, data = parts(text, tmp_path)
    listed = rm.parameters(model, geometry=True)
    assert [(p["name"], p["value"]) for p in data["parameters"]] == [(n, listed[n]) for n in vary]
    assert data["parameters"][0]["lower"] == 3.0
    assert len(data["segments"]) >= 4
    values = np.array([[3.7, listed["loop.successor.x"] * 1.02, 2.0]])
    other = rm.with_parameters(model, dict(zip(vary, values[0], strict=True)))
    q = other.configuration({"crank_joint": 0.4})[None]
    ratios = len([o for f in data["freedoms"] for o in f["others"]])
    sizes = [ratios, 1, 1, len(data["loads"]), len(data["bars"])]
    found, ends = js.run(
        [
            js.Job(file, "quantities", [q, values], sum(sizes)),
            js.Job(file, "points", [q, values], 6 * len(data["segments"])),
        ],
        tmp_path,
    )
    G = other.constraint_jacobian(q)[0, :, 0]
    np.testing.assert_allclose(np.sort(found[0, :ratios]), np.sort(G[1:]), atol=1e-11)
    right = [rm.gravity_force(other, q)[0, 0], rm.crba(other, q)[0, 0, 0]]
    np.testing.assert_allclose(found[0, ratios : ratios + 2], right, rtol=1e-10)
    rocker = rm.frame_pose(other, q[0], "rocker")[:3, 3]
    distances = np.linalg.norm(ends.reshape(-1, 3) - rocker, axis=1)
    assert distances.min() < 1e-12
    printed = js.node(
        """
import { moved, more, under } from "./robot.mjs";
const numbers = [...more[0]], found = [];
under([Float64Array.of(3.7, 3.6, 2)], () => { found.push([...more[0]]); });
console.log(JSON.stringify([numbers, found, [...more[0]], more.length]));
""",
        tmp_path,
    )
    given = page(model, vary={"coupler.mass": (0.0, 9.0)}, compare=other, loads=())
    file, data = parts(given, tmp_path)
    (kept,) = data["kept"]
    assert np.abs(other.residual(np.array(kept["q"]))).max() < 1e-9
    size = ratios + 2 + len(data["bars"])
    compared = [js.Job(file, "quantities", [q, np.array([kept["numbers"]])], size)]
    (again,) = js.run(compared, tmp_path)
    np.testing.assert_allclose(again[0, : ratios + 2], found[0, : ratios + 2], rtol=1e-10)
    parts(text, tmp_path)
    numbers = [listed[name] for name in vary]
    assert json.loads(printed) == [numbers, [[3.7, 3.6, 2]], numbers, 1]
    with pytest.raises(ValueError, match="has other links"):
        page(model, compare=rm.robots.load("four_bar"))
    with pytest.raises(ValueError, match="no range"):
        page(model, vary={"coupler.mass": (2.0, 1.0)})
    with pytest.raises(rm.errors.UnknownNameError, match=r"did you mean 'coupler.mass'"):
        page(model, vary={"coupler.mas": (2.0, 1.0)})


MIXED = robot(
    joint("shoulder", "base", "a", more='<rotor inertia="4e-5" ratio="30" mass="0.1"/>'),
    link("a", INERTIAL),
    joint("weld", "a", "f", "0.1 0 0", kind="fixed"),
    link("f", INERTIAL),
    joint(
        "elbow",
        "a",
        "b",
        "0.5 0.1 0.2",
        rpy="0.1 0.2 0.3",
        more='<dynamics spring_stiffness="3" spring_reference="0.2"/>',
    ),
    link("b", INERTIAL),
    joint("wrist", "b", "c", "0.4 0 0", more='<mimic joint="elbow" multiplier="2" offset="0.1"/>'),
    link("c", INERTIAL),
    """<spring name="s" stiffness="90">
      <predecessor link="base"><origin xyz="0 0 0.3"/></predecessor>
      <successor link="b"/></spring>""",
    '<spring name="elbow" stiffness="2" friction="0.1"><joint name="elbow"/></spring>',
)


def saved(model: rm.Model, values: dict[str, float], folder: Path) -> str:
    """The extension that a page saves by these values."""
    text = page(model, vary={name: (x - 1.0, x + 1.0) for name, x in values.items()})
    _, data = parts(text, folder)
    (code,) = re.findall(r"^function extended.*?^}", text, re.DOTALL | re.MULTILINE)
    return js.node(
        f"""
import {{ written }} from "./robot.mjs";
{code}
const told = {json.dumps([*values.values()])};
process.stdout.write(extended({json.dumps(data["pieces"])}, told));
""",
        folder,
    )


@pytest.mark.slow_cases("parallel_ankle-values0", "name2-values2", "name1-values1")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("parallel_ankle", {"left_rod.length": 0.201, "left_gear.left_motor": -11.0,
                            "foot.mass": 2.0, "left_rod.successor.y": 0.041,
                            "left_rod.predecessor.x": -0.051}),
        (MIXED, {"a.mass": 2.0, "a.mx": 0.21, "a.Ixy": -0.003, "elbow.x": 0.45, "elbow.rx": 0.2,
                 "elbow.rz": -0.3, "elbow.damping": 0.3, "wrist.elbow": -2.5, "gravity.y": 3.0,
                 "shoulder_rotor.shoulder": -25.0, "b.Izz": 0.037, "elbow.stiffness": 5.0,
                 "elbow.reference": -0.1, "elbow.spring.stiffness": 1.5, "s.stiffness": 70.0,
                 "elbow.spring.reference": 0.3,  "elbow.armature": 0.1}),
        (KNEE, {"condyle.c2": 0.03, "condyle.c0": 0.004, "tilting.c1": 0.9}),
    ],
)  # fmt: skip
def test_an_extension_that_a_page_saves_is_its_design(
    name: str, values: dict[str, float], tmp_path: Path
) -> None:
    source = name if name.startswith("<") else rm.robots.path(name)
    model, rng = rm.load(source), np.random.default_rng(3)
    right = rm.with_parameters(model, values)
    found = rm.load(source, extend=saved(model, values, tmp_path))
    q = np.array([right.random_configuration(rng) for _ in range(3)])
    v = rng.normal(size=(3, model.nv))
    np.testing.assert_allclose(found.residual(q), 0.0, atol=1e-9)
    for f in (rm.bias_force, rm.passive_force, lambda m, q, v: rm.crba(m, q)):
        one, two = f(found, q, v), f(right, q, v)
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-10 * np.abs(two).max())


def test_pages_say_what_extensions_cannot(tmp_path: Path) -> None:
    _, data = parts(page(rm.load(MIXED), vary={"shoulder_rotor.mass": (0.0, 1.0)}), tmp_path)
    (why,) = data["unsaid"].values()
    assert "has this rotor as <rotor>" in why


@pytest.mark.slow
def test_the_command_of_designs(run: Any, tmp_path: Path) -> None:
    html = tmp_path / "design.html"
    vary = "--vary", "rocker_joint.x=3..5", "--vary", "coupler.mass=1..2"
    code, out, err = run("design", "crank_rocker", "-o", html, *vary)
    assert (code, out, err) == (0, f"wrote {html}\n", "")
    assert '"name":"coupler.mass","unit":"kg","lower":1.0,"upper":' in html.read_text("utf-8")
    other = tmp_path / "other.urdf"
    rm.write_urdf(rm.with_parameters(rm.robots.load("crank_rocker"), {"coupler.mass": 7.0}), other)
    code, out, err = run("design", "crank_rocker", "-o", html, *vary, "--compare", other)
    assert (code, out, err) == (0, f"wrote {html}\n", "")
    assert '"kept":[{"name":"the other design","numbers":[4.0,7.0]' in html.read_text("utf-8")
    code, _, err = run("design", "crank_rocker", "-o", html, *vary, "--compare", "four_bar")
    assert (code, "has other links" in err) == (2, True)
    code, _, err = run("design", "crank_rocker", "-o", html, "--vary", "rocker_joint.x=3")
    assert (code, "write NAME=LOW..HIGH" in err) == (2, True)


@pytest.mark.slow
def test_scripts_parse(tmp_path: Path) -> None:
    """All of it: with the parts that need a browser."""
    parts(page(rm.robots.load("five_bar"), compact=True), tmp_path)
    script = (tmp_path / "all.mjs").read_text("utf-8")
    check = f'import vm from "node:vm"; new vm.SourceTextModule({json.dumps(script)});'
    (tmp_path / "check.mjs").write_text(check, encoding="utf-8")
    assert js.node("await import('node:child_process').then(({ execFileSync }) => execFileSync("
                "process.execPath, ['--experimental-vm-modules', 'check.mjs'], { stdio: 'pipe' }));"
                "console.log('well-formed');", tmp_path) == "well-formed\n"  # fmt: skip


def test_what_a_page_refuses() -> None:
    model = rm.robots.load("four_bar")
    with pytest.raises(ValueError, match="open"):
        page(model, q=[0.5, 0.1, 0.2])
    with pytest.raises(ValueError, match=r"shape \(2,\), not \(3,\)"):
        page(model, q=[0.5, 0.1])
    with pytest.raises(ValueError, match="nothing that moves"):
        page(rm.load('<robot name="r"><link name="a"/></robot>'))
    with pytest.raises(rm.errors.UnknownNameError, match="did you mean 'joint1'"):
        page(model, joint="joint11")
    with pytest.raises(rm.errors.UnknownNameError, match="no link 'foot'"):
        page(model, loads="foot")
    hostile = robot(link("a&lt;/script>", INERTIAL), joint("j", "base", "a&lt;/script>"))
    assert page(rm.load(hostile)).count("</script>") == 1


# ---- stills --------------------------------------------------------------------------------------


def pixels(path: Path) -> np.ndarray:
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(data[i : i + 4], "big") for i in (16, 20))
    (content,) = re.findall(rb"IDAT(.*)....\x00\x00\x00\x00IEND", data, re.DOTALL)
    rows = np.frombuffer(zlib.decompress(content), np.uint8).reshape(height, 1 + 4 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 4)


def test_stills_show_the_robot(tmp_path: Path) -> None:
    model = rm.robots.load("four_bar")
    write_png(model, tmp_path / "robot.png", size=(120, 90))
    drawn = pixels(tmp_path / "robot.png")
    np.testing.assert_array_equal(drawn, still(model, model.neutral(), 120, 90))
    rows, columns = np.nonzero(drawn[..., 3])
    assert np.ptp(columns) == pytest.approx(0.9 * 120, abs=2)  # it fills the picture
    assert rows.mean() == pytest.approx(45, abs=12)
    blue = (drawn[..., 2] > drawn[..., 0] + 40) & (drawn[..., 3] > 200)
    orange = (drawn[..., 0] > drawn[..., 2] + 100) & (drawn[..., 3] > 200)
    assert blue.sum() > 60  # the crank, on the left, and the coupler above
    assert np.nonzero(blue)[1].mean() < 60
    assert np.nonzero(orange)[0].mean() < 45
    nearest = still(rm.robots.load("parallel_ankle"), rm.robots.load("parallel_ankle").neutral(),
                    60, 60)  # fmt: skip
    assert (nearest[..., 3] == 255).any()
    with pytest.raises(ValueError, match=r"end in \.png"):
        write_png(model, tmp_path / "robot.jpg")
    with pytest.raises(ValueError, match="shape"):
        write_png(model, tmp_path / "r.png", [0.0])


@pytest.mark.slow
def test_commands(run: Any, tmp_path: Path) -> None:
    html, png = tmp_path / "robot.html", tmp_path / "robot.png"
    code, out, err = run("view", "four_bar", "--html", html, "--png", png)
    assert (code, out, err) == (0, f"wrote {html} and {png}\n", "")
    assert pixels(png).shape == (600, 800, 4)
    write_page(rm.robots.load("four_bar"), tmp_path / "same.html")
    assert (tmp_path / "same.html").read_text("utf-8") == html.read_text("utf-8")
