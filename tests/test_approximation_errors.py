"""Armature tables, and the errors of approximating, against Pinocchio and MuJoCo."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mujoco_open_tree import Simulator
from oracle import Oracle
from test_dynamics import named
from texts import four_bar, joint, link, robot

import robomodel as rm
from robomodel import approximation_errors
from robomodel.dynamics.baselines import approximated_in_part
from robomodel.dynamics.lumped import approximate
from robomodel.errors import DescriptionError
from robomodel.model import build
from robomodel.reports.approximation import (
    DrakeRotor,
    _bounds,
    annotate_drake,
    annotate_mjcf,
    drake_rotors,
    spins,
    states,
)

ROTOR = 6.3e-05  # kg m², of Mini Cheetah
LEGS = ("HR", "HL", "FR", "FL")


# ---- tables --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_armature_of_mini_cheetah_to_the_last_digit(run) -> None:
    code, out, _ = run("armature", "mini_cheetah", "--json", "--samples", 2, "--tolerance", 10)
    assert code == 0
    table = {each["joint"]: each for each in json.loads(out)["armature"]}
    assert len(table) == 12
    for name, each in table.items():
        ratio = 9.33 if "knee" in name else 6.0
        expected = ratio**2 * ROTOR
        assert each["value"] == each["low"] == each["high"] == each["best"] == expected
        assert each["constant"] is True
        assert each["unit"] == "kg m²"


@pytest.mark.slow
def test_forms_of_the_table(run) -> None:
    code, out, _ = run("armature", "mit_humanoid_leg", "--csv", "--samples", 3)
    rows = list(csv.DictReader(io.StringIO(out)))
    model = rm.robots.load("mit_humanoid_leg")
    armature = {each.name: each.armature for each in approximate(model).joints if each.armature}
    assert {row["joint"]: float(row["armature"]) for row in rows} == armature
    code, out, _ = run("armature", "mit_humanoid_leg", "--samples", 3)
    assert code == 0
    assert "knee_link_joint, ankle_link_joint" in out  # a belt's inertia between joints
    for name in armature:
        assert name in out
    document = json.loads(run("armature", "mit_humanoid_leg", "--json", "--samples", 3)[1])
    np.testing.assert_array_equal(
        document["dense"], rm.armature(model, kind="dense", backend="numpy")
    )


@pytest.mark.slow
def test_the_range_of_a_linkage_and_the_best_constant() -> None:
    model = rm.load(four_bar(marks=(True, False, False)))
    errors = approximation_errors(model, samples=20)
    (found,) = errors.armatures
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(20)])
    values = rm.armature(model, q, backend="numpy")[:, 0]
    assert (found.low, found.high) == (np.min(values), np.max(values))
    assert not found.constant
    assert found.best == pytest.approx(max(0.0, np.mean(values)), rel=1e-12)
    if np.mean(values) > 0:  # no other constant has a smaller mean square error
        errors = [np.mean((values - c) ** 2) for c in found.best + np.linspace(-0.1, 0.1, 21)]
        assert np.argmin(errors) == 10


# ---- errors, by others' hands -----------------------------------------------------------------


def by_others(model: rm.Model, oracle, samples: int, seed: int):
    """The errors from Pinocchio's exact and MuJoCo's approximate numbers, computed anew."""
    tree = build(approximate(model))
    simulator = Simulator(tree)
    spots = {each.name: node for each, node in zip(model.joints, model.nodes, strict=True)}
    rows = [v for each in tree.joints for v in spots[each.name].freedoms]
    columns = [range(spots[each.name].q, spots[each.name].q + each.nq) for each in tree.joints]
    data = {name: [] for name in ("M", "M'", "tau", "tau'", "a", "a'")}
    for q, v, a in zip(*states(model, samples, seed), strict=True):
        spanning = np.array([float(x) for x in model.spanning_positions([float(x) for x in q])])
        at = np.concatenate([spanning[list(part)] for part in columns])
        g, bias = model.constraint_jacobian(q), model.constraint_bias(q, v)
        own = g[rows]
        exact_m, exact_tau = oracle(q, v, a)
        mass = own.T @ simulator.mass_matrix(at) @ own
        tau = own.T @ simulator.inverse(at, own @ v, own @ a + bias[rows])
        rest = own.T @ simulator.inverse(at, own @ v, bias[rows])
        data["M"].append(exact_m)
        data["M'"].append(mass)
        data["tau"].append(exact_tau)
        data["tau'"].append(tau)
        data["a"].append(a)
        data["a'"].append(np.linalg.solve(mass, exact_tau - rest))
    return {name: np.array(values) for name, values in data.items()}


def expected_errors(data):
    """Medians and worst by joint, in the words of docs/armature.md."""
    samples, n = data["tau"].shape
    table = {}
    mass = np.zeros((samples, n))
    for s in range(samples):
        for i in range(n):
            for j in range(n):
                off = abs(data["M'"][s, i, j] - data["M"][s, i, j])
                scale = np.sqrt(data["M"][s, i, i] * data["M"][s, j, j])
                mass[s, i] = max(mass[s, i], off / scale)
    table["mass_matrix"] = mass
    for name, key in (("torque", "tau"), ("acceleration", "a")):
        usual = np.sqrt(np.mean(data[key] ** 2, axis=0))
        table[name] = np.abs(data[key + "'"] - data[key]) / usual
    return {name: (np.median(e, axis=0), np.max(e, axis=0)) for name, e in table.items()}


def exact_by_pinocchio(name: str, model: rm.Model):
    """M and tau from Pinocchio's spanning tree, projected by G."""
    oracle = Oracle(rm.robots.path(name).read_text(), names=list(model.joint_names))

    def exact(q, v, a):
        at = oracle.state(named(model, q))
        g, bias = model.constraint_jacobian(q), model.constraint_bias(q, v)
        inertia = oracle.mass_matrix(at)
        return g.T @ inertia @ g, g.T @ (inertia @ (g @ a + bias) + oracle.bias(at, g @ v))

    return exact


@pytest.mark.slow
@pytest.mark.parametrize(("name", "samples"), [("mini_cheetah", 15), ("four_bar", 20)])
def test_errors_are_reproduced(name: str, samples: int) -> None:
    model = rm.robots.load(name)
    errors = approximation_errors(model, samples=samples, seed=3, tolerance=10.0)
    expected = expected_errors(by_others(model, exact_by_pinocchio(name, model), samples, 3))
    for quantity, (medians, worsts) in expected.items():
        found = [getattr(row, quantity) for row in errors.rows]
        np.testing.assert_allclose([e.median for e in found], medians, rtol=1e-7, atol=1e-11)
        np.testing.assert_allclose([e.worst for e in found], worsts, rtol=1e-7, atol=1e-11)


@pytest.mark.slow
def test_what_should_stay_exact() -> None:
    """A four-bar, belts, and knees whose rotor is most of their inertia; nothing of a plain arm."""
    assert approximation_errors(rm.robots.load("crank_rocker"), samples=20).keep_exact == (
        "crank_joint",
    )
    assert approximation_errors(rm.robots.load("four_bar"), samples=60).keep_exact == ("joint1",)
    assert approximation_errors(rm.robots.load("mit_humanoid_leg"), samples=50).keep_exact[-2:] == (
        "knee_link_joint",
        "ankle_link_joint",
    )
    plain = approximation_errors(rm.robots.load("puma560"), samples=20)
    assert plain.keep_exact == ()
    assert plain.torque.worst < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_verdicts_are_those_of_mirrored_joints(seed: int) -> None:
    """All four knees, though their errors are near the tolerance; no other joint for theirs."""
    cheetah = approximation_errors(rm.robots.load("mini_cheetah"), seed=seed)
    assert cheetah.keep_exact == tuple(f"{leg}_knee_link_joint" for leg in LEGS)
    assert cheetah.samples > 200


def test_quantiles_are_within_their_bounds() -> None:
    rng = np.random.default_rng(0)
    for share, true in ((0.5, 0.0), (0.99, 2.3263478740408408)):
        bounds = np.array([_bounds(rng.standard_normal(400), share) for _ in range(400)])
        assert np.mean((bounds[:, 0] <= true) & (true <= bounds[:, 1])) > 0.96
    assert _bounds(np.array([1.0, np.nan, 2.0]), 0.5) == (1.0, np.inf)


def test_rotors_on_carriers_that_move() -> None:
    found = {each.rotor: each for each in spins(rm.robots.load("belt_leg"))}
    assert found.keys() == {"knee_rotor", "ankle_rotor"}  # not the hip's, which is on the ground
    knee = found["knee_rotor"]
    assert (knee.carrier, knee.joint) == ("hip_ry_link", "knee_link_joint")
    assert knee.coupling == pytest.approx(12 * 0.0005548, rel=1e-12)


@pytest.mark.slow
def test_errors_are_put_down_to_their_causes() -> None:
    """A hip that a driven linkage below it spoils; torques' errors of the clusters add up."""
    errors = approximation_errors(rm.robots.load("planar_leg_linkage"), samples=60)
    assert errors.keep_exact == ("shank_driver_joint",)
    assert [row.cause for row in errors.rows] == [("shank_driver_joint",)] * 2
    model = rm.robots.load("mit_humanoid_leg")
    q, v, a = states(model, 4, 0)
    exact = rm.rnea(model, q, v, a, backend="numpy")
    whole = rm.rnea(model, q, v, a, method="approximate", backend="numpy") - exact
    parts = [approximated_in_part(model, each) for each in model.clusters if each.kind != "joint"]
    alone = [rm.rnea(x, q, v, a, method="approximate", backend="numpy") - exact for x in parts]
    assert len(parts) == 4
    np.testing.assert_allclose(np.sum(alone, axis=0), whole, atol=1e-12 * np.max(np.abs(exact)))


@pytest.mark.slow
def test_tellos_differentials_should_stay_exact() -> None:
    kept = approximation_errors(rm.robots.load("tello")).keep_exact
    assert len(kept) == 8
    assert all("rotor" in name for name in kept)


def test_errors_need_states_and_an_open_tree() -> None:
    with pytest.raises(ValueError, match="samples must be at least 1"):
        approximation_errors(rm.robots.load("puma560"), samples=0)


# ---- files of others -----------------------------------------------------------------------------


@pytest.mark.slow
def test_armature_is_written_into_a_given_mjcf(run, tmp_path: Path) -> None:
    model = rm.robots.load("mini_cheetah")
    stock = tmp_path / "stock.xml"
    rm.write_mjcf(model, stock, approximate=True, drop=True)
    text = re.sub(r' armature="[^"]*"', "", stock.read_text())
    text = text.replace("<worldbody>", "<!-- a comment of mine --><worldbody>")
    stock.write_text(text)
    out = tmp_path / "out.xml"
    options = ("--samples", 2, "--tolerance", 10)
    code, said, _ = run("armature", "mini_cheetah", *options, "--mjcf", stock, "-o", out)
    assert code == 0
    assert "armature of 12 joints written" in said
    assert "a comment of mine" in out.read_text()
    its = mujoco.MjModel.from_xml_path(str(out))
    for each in approximate(model).joints:
        if each.armature:
            assert its.dof_armature[its.joint(each.name).dofadr[0]] == each.armature
    assert re.sub(r' armature="[^"]*"', "", out.read_text()) == text  # and nothing else


def test_defaults_and_references_are_left_alone() -> None:
    text = (
        '<mujoco><default><joint name="j"/></default><worldbody><body><joint name="j"/>'
        '<joint name="other"/></body></worldbody><equality><joint joint1="j"/></equality></mujoco>'
    )
    result = annotate_mjcf(text, "f.xml", {"j": 0.25, "absent": 1.0})
    assert result.text.count("armature") == 1
    assert '<body><joint name="j" armature="0.25"/>' in result.text
    assert (result.written, result.missing) == (("j",), ("absent",))


WRAPPED = """\ufeff<?xml version='1.0' encoding='utf-8'?>
<!-- <joint name="j"/> is a knee -->
<mujoco model = 'm'>
\t<worldbody>
    <body name="a>b"  >
      <joint   name='j'
               type="hinge"
               damping = "0.1"   />
      <frame><joint name="k" armature = '0.5' range="0 1"></joint></frame>
      <geom size="1" name="<![CDATA[joint"/>
    </body>
\t</worldbody>
</mujoco>
""".replace("<![CDATA[", "&lt;")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_tags_are_changed_where_they_stand(newline: str) -> None:
    """Blanks, quotes, line ends and comments of others stay."""
    text = WRAPPED.replace("\n", newline)
    result = annotate_mjcf(text, "f.xml", {"j": 0.25, "k": 2.0})
    assert result.written == ("j", "k")
    expected = text.replace('damping = "0.1"', 'damping = "0.1" armature="0.25"')
    assert result.text == expected.replace("armature = '0.5'", "armature = '2'")
    assert annotate_mjcf(result.text, "f.xml", {"j": 0.25, "k": 2.0}).text == result.text
    assert annotate_mjcf(text, "f.xml", {}).text == text


def test_a_file_in_another_encoding_is_written_as_utf_8(run, tmp_path: Path) -> None:
    stock, out = tmp_path / "stock.xml", tmp_path / "out.xml"
    text = (
        '<?xml version="1.0" encoding="ISO-8859-1"?>\r\n<mujoco model="Köln"><worldbody>'
        '<body><joint name="joint1"/><geom size="1"/></body></worldbody></mujoco>'
    )
    stock.write_bytes(text.encode("latin-1"))
    options = ("armature", "four_bar", "--samples", 2, "--mjcf", stock, "-o", out)
    assert run(*options)[0] == 0
    said = out.read_bytes().decode("utf-8")
    assert re.sub(r' armature="[^"]*"', "", said) == text.replace("ISO-8859-1", "utf-8")
    assert rm.load(out).name == "Köln"


URDF = """<?xml version="1.0"?>
<robot name="r"><!-- <robot> -->
    <link name="base"/>   <link name="a"/>
    <joint name="j" type="continuous"><parent link="base"/><child link="a"/></joint>
    <transmission name="t">
        <type> transmission_interface/SimpleTransmission </type>
        <joint name="j"/>
        <actuator name="m" />
    </transmission>

</robot>
<!-- end -->
"""


def test_drakes_words_are_put_where_they_belong() -> None:
    result = annotate_drake(URDF, "f.urdf", {"j": DrakeRotor(1e-4, 6.0)})
    expected = URDF.replace('<robot name="r">', '<robot name="r" xmlns:drake="{}">', 1)
    expected = expected.format("http://drake.mit.edu").replace(
        '<actuator name="m" />',
        '<actuator name="m">\n            <drake:rotor_inertia value="0.0001"/>\n            '
        '<drake:gear_ratio value="6"/>\n        </actuator>',
    )
    assert result.text == expected
    other = annotate_drake(result.text, "f.urdf", {"j": DrakeRotor(2e-4, 6.0)})
    assert other.text == expected.replace("0.0001", "0.0002")
    assert annotate_drake(URDF, "f.urdf", {"absent": DrakeRotor(1.0, 1.0)}).text == URDF


def test_a_transmission_is_added_in_the_file_s_own_way() -> None:
    start = URDF.index("    <transmission")
    text = URDF[:start] + URDF[URDF.index("\n</robot>") + 1 :]
    result = annotate_drake(text, "f.urdf", {"j": DrakeRotor(1e-4, 6.0)})
    before, _, after = result.text.partition("</joint>\n    <transmission")
    assert (
        before.replace(' xmlns:drake="http://drake.mit.edu"', "")
        == text[: len(text.partition("</joint>")[0])]
    )
    assert after.endswith("\n    </transmission>\n</robot>\n<!-- end -->\n")
    assert len(rm.load(result.text).couplings) == 1


def test_what_is_no_xml_is_told_with_its_line() -> None:
    with pytest.raises(DescriptionError) as caught:
        annotate_mjcf("<mujoco>\n<worldbody></mujoco>", "f.xml", {"j": 1.0})
    assert caught.value.line == 2


def stock_urdf() -> str:
    return robot(
        link("a"),
        joint("j", "base", "a"),
        link("b"),
        joint("k", "a", "b", "0.3 0 0"),
        '<transmission name="t"><type>transmission_interface/SimpleTransmission</type>'
        '<joint name="k"/><actuator name="m"><mechanicalReduction>5</mechanicalReduction>'
        "</actuator></transmission>\n",
    )


def test_drakes_tags_are_written_and_read_back() -> None:
    tags = {"j": DrakeRotor(1e-4, -6.0), "k": DrakeRotor(2e-4, 5.0)}
    result = annotate_drake(stock_urdf(), "f.urdf", tags)
    assert (result.written, result.missing) == (("j", "k"), ())
    assert 'xmlns:drake="http://drake.mit.edu"' in result.text
    assert '<drake:rotor_inertia value="0.0002"/>' in result.text
    assert '<drake:gear_ratio value="6"/>' in result.text
    assert result.text.count("<transmission") == 2  # k's own, and one for j
    model = rm.load(result.text)
    np.testing.assert_allclose(rm.armature(model, backend="numpy"), [36e-4, 50e-4], rtol=1e-15)
    again = annotate_drake(result.text, "f.urdf", tags)
    assert again.text == result.text


@pytest.mark.slow
def test_motors_are_those_of_the_robot() -> None:
    model = rm.robots.load("mini_cheetah")
    armature = {
        each.joint: each.value
        for each in approximation_errors(model, samples=1, tolerance=10).armatures
    }
    rotors = drake_rotors(model, armature)
    assert rotors["HR_hip_link_joint"] == DrakeRotor(ROTOR, 6.0)
    linkage = rm.load(four_bar(marks=(True, False, False)))
    assert drake_rotors(linkage, {"j_crank": 0.7}) == {"j_crank": DrakeRotor(0.7, 1.0)}


@pytest.mark.slow
def test_drake_on_the_command_line(run, tmp_path: Path) -> None:
    stock = tmp_path / "stock.urdf"
    model = rm.robots.load("mini_cheetah")
    rm.write_urdf(model, stock, approximate=True)
    stock.write_text(re.sub(r"<armature [^>]*/>", "", stock.read_text()))
    out = tmp_path / "out.urdf"
    options = ("--samples", 2, "--tolerance", 10)
    code, _, _ = run("armature", "mini_cheetah", *options, "--drake", stock, "-o", out)
    assert code == 0
    again = rm.load(out)
    np.testing.assert_allclose(
        rm.armature(again, backend="numpy"), rm.armature(model, backend="numpy"), rtol=1e-14
    )


def test_what_cannot_be_written_is_told(run, tmp_path: Path) -> None:
    stock = tmp_path / "stock.urdf"
    stock.write_text(stock_urdf())
    for options in (["--drake", stock], ["-o", stock], ["--drake", stock, "--mjcf", stock]):
        assert run("armature", "four_bar", "--samples", 2, *options)[0] == 2
    code, _, err = run("armature", "four_bar", "--samples", 2, "--drake", stock, "-o", stock)
    assert code == 2
    assert "none of its joints" in err
    with pytest.raises(DescriptionError, match="root element <mujoco>"):
        annotate_mjcf(stock_urdf(), "f.urdf", {"j": 1.0})
