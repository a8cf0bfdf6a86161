"""Armature tables, and the errors of approximating, against Pinocchio and MuJoCo."""

from __future__ import annotations

import csv
import io
import json
import math
import pickle
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
from mujoco_open_tree import Simulator
from texts import coupling, four_bar, joint, link, loop, robot

import robomodel as rm
from benchmarks.open_trees import proof
from robomodel import approximation_errors
from robomodel.dynamics.actuators.envelopes import efforts_at
from robomodel.dynamics.lumped import Follower, approximate
from robomodel.errors import DescriptionError
from robomodel.model.spins import find_spins, kinematics
from robomodel.opentree import fit
from robomodel.opentree.armatures import armatures
from robomodel.opentree.errors import Error, median_rank, percent, worst_joint
from robomodel.opentree.tree import OpenTree, TreeOptions, written_tree
from robomodel.opentree.tree_joints import curve
from robomodel.reports.approximation import (
    DrakeRotor,
    annotate_drake,
    annotate_mjcf,
    drake_rotors,
    spins,
)

ROTOR = 6.3e-05  # kg m², of Mini Cheetah
LINKED = [name for name in rm.robots.names()
          if rm.robots.load(name).loops or rm.robots.load(name).couplings]  # fmt: skip


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
    armature = rm.approximate_tree(model, fit="lumped").armature  # beside a tendon's inertia
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
    """Of a four-bar whose crank has limits: the inertia over the range, on the file's circuit."""
    more = '<limit lower="0.1" upper="2.2" effort="1" velocity="1"/>'
    model = rm.load(
        robot(
            *(link(name) for name in ("crank", "coupler", "rocker")),
            joint("j_crank", "base", "crank", kind="revolute", mark=True, more=more),
            joint("j_coupler", "crank", "coupler", "0.5 0 0", mark=False),
            joint("j_rocker", "base", "rocker", "1.1 0 0", mark=False),
            loop("closing", "revolute", "coupler", "rocker", "1 0 0", "0.7 0 0"),
        )
    )  # fmt: skip
    (found,) = approximation_errors(model, samples=10).armatures
    assert (found.value, found.constant) == (0.0, True)  # all links move with it, or follow
    lumped = written_tree(model, TreeOptions(fit="lumped", followers=False))
    view, name = lumped.basis.view, found.joint
    (found,) = armatures(lumped, samples=300)
    at = [view.configuration({"j_crank": t}) for t in np.linspace(0.1, 2.2, 400)]
    body = view.joint_names.index(name)
    rates = view.constraint_jacobian(np.array(at))[:, view.nodes[body].v, 0]
    values = rm.armature(view, np.array(at), backend="numpy")[:, 0] / rates**2
    assert found.low == pytest.approx(np.min(values), rel=1e-2)
    assert found.high == pytest.approx(np.max(values), rel=1e-2)
    assert not found.constant
    assert found.low < found.best < found.high or found.best == 0.0


@pytest.mark.parametrize("before", [1e-3, 1e-9, 0.0, -1e-3])
def test_an_inertia_has_an_end_at_a_limit_before_a_dead_point(before: float) -> None:
    """And none at one that lies on it, or beyond: of a crank and its rod at the slider's end.

    There the crank turns at unit rate about its axis, the rod at r / l about the slider, and the
    slider moves by r (1 + r / l) for each radian from there.
    """
    r, length = 0.1, 0.35
    heavy = '<inertial><mass value="9"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    limit = f'<limit lower="{before}" upper="2" effort="9" velocity="9"/>'
    model = rm.load(
        robot(
            link("crank"), link("rod"), link("slider", f"{heavy}</inertial>"),
            joint("turn", "base", "crank", kind="revolute",
                  more=f'{limit}<initial position="1"/>'),
            joint("pin", "crank", "rod", f"{r} 0 0", more='<initial position="-1.24"/>'),
            joint("slide", "base", "slider", f"{r + length} 0 0", kind="prismatic", axis="1 0 0"),
            loop("end", "revolute", "rod", "slider", f"{length} 0 0", "0 0 0"),
        )
    )  # fmt: skip
    assert rm.limb_joints(model) == ("slide",)
    (found,) = armatures(written_tree(model, TreeOptions(fit="lumped")))
    (row,) = rm.actuation(model).as_dict()["joints"]
    if before < 1e-6:
        assert (found.high, row["reflected_inertia"][1]) == (math.inf, None)
        return
    crank = 0.025 + 0.1**2 + 0.02**2
    rod = 0.025 + (length - 0.1) ** 2 + 0.02**2
    exact = (crank + rod * (r / length) ** 2) / (r * (1.0 + r / length) * before) ** 2
    assert found.high == pytest.approx(exact, rel=1e-3)
    assert row["reflected_inertia"][1] == pytest.approx(exact, rel=1e-3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* will not do:RuntimeWarning")
def test_an_inertia_without_end_at_a_dead_point(run, tmp_path: Path) -> None:
    """A rocker turns back while its crank goes on: M of the crank over the square of its rate."""
    model = rm.robots.load("crank_rocker")
    found = approximation_errors(model, samples=50).armatures[0]
    assert (found.joint, found.high) == ("rocker_joint", math.inf)
    assert math.isnan(found.best)
    assert found.low < found.value < 25.0
    said = run("armature", "crank_rocker", "--samples", 50)[1]
    assert "rocker_joint: 23.3" in said
    assert "and up to its dead point, kg m²" in said
    said = run("armature", "crank_rocker", "--for", "isaaclab")[1]
    assert "reflected inertia of rocker_joint: 23.35 and up to its dead point" in said
    out = str(tmp_path / "out.xml")
    rm.write_mjcf(rm.approximate_tree(model, fit="lumped"), out)
    code, _, err = run("armature", "crank_rocker", "--mjcf", out, "-o", out, "--value", "best")
    assert code != 0
    assert "no constant is the best for 'rocker_joint'" in err
    page = tmp_path / "page.html"
    run("armature", "crank_rocker", "--html", str(page))
    axes = page.read_text().partition('data-axes="')[2].partition('"')[0].split()
    assert float(axes[7]) < 1000.0  # what goes to infinity is cut off, and the rest can be seen


def test_armatures_beside_tendons_have_ranges_beside_tendons() -> None:
    """That of a five-bar at neutral is one of its range."""
    for each in approximation_errors(rm.robots.load("five_bar"), samples=100).armatures:
        assert min(each.low, 0.0) <= each.value <= each.high


# ---- both trees --------------------------------------------------------------------------------


def by_mujoco(tree: OpenTree, measure) -> dict[str, float]:
    """Medians of the errors of a tree without followers, by MuJoCo's accelerations."""
    simulator, view = Simulator(tree), tree.basis.view
    mapping = tree.basis.on(tree)
    states = measure.states.on(mapping)
    off = []
    for t, dt, tau, ddt in zip(states.t, states.dt, states.tau, states.ddt, strict=True):
        rest = simulator.inverse(t, dt, np.zeros(tree.nv))
        off.append(np.abs(np.linalg.solve(simulator.mass_matrix(t), tau - rest) - ddt))
    inverse = np.linalg.inv(states.mass)
    scale = states.size * np.sqrt(np.diagonal(inverse, axis1=1, axis2=2))
    names = [view.joints[body].name for body in tree.basis.joints]
    limits = {name: tree.limits[name].effort for name in names if name in tree.limits}
    for i, name in enumerate(tree.dof_names):
        if 0.0 < limits.get(name, np.inf) < np.inf:
            scale[:, i] = np.minimum(scale[:, i], limits[name] * inverse[:, i, i])
    return dict(zip(tree.dof_names, np.median(np.array(off) / scale, axis=0), strict=True))


@pytest.mark.slow_cases("parallel_ankle", "crank_rocker")
@pytest.mark.parametrize("name", ["crank_rocker", "parallel_ankle"])
def test_errors_are_those_of_the_tree_in_mujoco(name: str) -> None:
    fitted = written_tree(rm.robots.load(name), TreeOptions(tendons=False))
    measure = fitted.basis.measure
    for tree in (fitted, fitted.lumped):
        for joint_name, median in by_mujoco(tree, measure).items():
            assert tree.errors[joint_name].median == pytest.approx(median, rel=1e-6)


def test_mixtures_are_judged_beside_fits_with_other_weights(monkeypatch) -> None:
    """Where the first fit has a worse joint, the least worst of both kinds is taken."""
    tree = SimpleNamespace(model=rm.robots.load("puma560"))
    names = tree.model.joint_names[:2]

    def errors(*medians: float) -> dict[str, Error]:
        return {n: Error(np.full(100, x)) for n, x in zip(names, medians, strict=True)}

    rounds = [[errors(0.34, 0.43)], [errors(0.29, 0.52)],
              [errors(0.30, 0.44), errors(0.30, 0.46), errors(0.31, 0.50)],
              [errors(0.30, 0.53)] * 3]  # fmt: skip
    gammas = [1e-4]
    monkeypatch.setattr(fit, "fits", lambda *_: iter([(g, tree.model) for g in gammas]))
    problem = SimpleNamespace(owners=(*names, *["other"] * (tree.model.nv - 2)))
    _, found = fit.best(tree, errors(0.32, 0.57), problem, lambda models: rounds.pop(0))
    assert [error.median for error in found.values()] == [0.30, 0.44]


def leg(offset: float, name: str = "") -> tuple[str, ...]:
    """A leg whose rod hangs so far from the hip's axis: its knee follows hip and ankle."""

    def body(part: str, mass: float, inertia: float) -> str:
        moments = " ".join(f'{each}="{inertia}"' for each in ("ixx", "iyy", "izz"))
        return link(part + name, f'<inertial><origin xyz="0.2 0 0"/><mass value="{mass}"/>'
                    f'<inertia {moments} ixy="0" ixz="0" iyz="0"/></inertial>')  # fmt: skip

    limits = {"kind": "revolute", "more": '<limit lower="-0.5" upper="0.5" effort="100"/>'}
    return (
        body("thigh", 2, 0.02), body("shin", 1, 0.01), body("tarsus", 1.5, 0.02),
        body("rod", 0.02, 1e-4),
        joint(f"hip{name}", "base", f"thigh{name}", **limits),
        joint(f"knee{name}", f"thigh{name}", f"shin{name}", "0.4 0 0", **limits),
        joint(f"ankle{name}", f"shin{name}", f"tarsus{name}", "0.1 0.4 0"),
        joint(f"pin{name}", f"tarsus{name}", f"rod{name}", "0.1 0 0"),
        loop(f"top{name}", "revolute", "base", f"rod{name}", f"0 {offset} 0",
             f"-0.6 {offset - 0.4} 0"),
    )  # fmt: skip


@pytest.mark.slow_cases("0.01", "0.1")
@pytest.mark.parametrize("offset", [0.01, 0.03, 0.1])
def test_what_follows_two_joints_follows_them(offset: float) -> None:
    """By two tendons that a curve ties, in which MuJoCo finds the same errors."""
    model = rm.load(robot(*leg(offset)))
    tree = written_tree(model)
    how = "'knee' follows 'hip', 'ankle' by a line and a polynomial of a sum, within "
    assert how in "".join(tree.notes)
    assert worst_joint(tree.errors)[1].median < 0.035
    checked = proof(tree)
    assert checked.ratio(checked.found) < 1.5
    assert not checked.broken
    text = io.StringIO()
    rm.write_mjcf(model, text, approximate=True)
    again = rm.load(text.getvalue())
    assert not rm.compare(tree, again).differences
    limits = {name: (joint.lower, joint.upper)
              for name, joint in zip(again.joint_names, again.joints, strict=True)}  # fmt: skip
    assert limits["hip"] == pytest.approx((-0.5, 0.5))
    assert limits["ankle"] == pytest.approx(tree.range["ankle"], rel=1e-6)
    with pytest.warns(RuntimeWarning, match="will not do"):
        assert rm.approximate_tree(model, followers=False).poor
    plain = written_tree(model, TreeOptions(tendons=False))
    assert all(len(each.drivers) == 1 and each.linear for each in plain.basis.followers)


@pytest.mark.slow
def test_verdicts_name_joints_on_which_a_tree_does_better() -> None:
    """Its knee displaces links less than its ankle, and follows much worse."""
    model = rm.load(robot(*leg(0.36)))
    with pytest.warns(RuntimeWarning, match=r"keep the loops, or let 'hip', 'ankle' move \(\d"):
        tree = rm.approximate_tree(model)
    assert tree.others is not None
    joints, told = tree.others
    assert rm.limb_joints(model) == ("hip", "knee")
    assert joints == ("hip", "ankle")
    other = rm.approximate_tree(model, joints=joints)
    assert worst_joint(other.errors)[1].median == told < 0.05
    assert other.others is None
    report = str(rm.approximation_errors(model))
    assert f"or let 'hip', 'ankle' move ({percent(told)})" in report


@pytest.mark.slow
def test_errors_of_followers_are_those_of_their_curve() -> None:
    """By differences of its positions, q̈ = s ẍ + ẋ s' ẋ: whatever inertias are."""
    tree = written_tree(rm.load(robot(*leg(0.1))))
    basis, measure = tree.basis, tree.basis.measure
    names = {body: joint.name for body, joint in enumerate(basis.view.joints)}
    knee = next(each for each in basis.followers if names[each.body] == "knee")
    rows = {joint.name: next(iter(node.freedoms))
            for joint, node in zip(basis.view.joints, basis.view.nodes, strict=True)}  # fmt: skip
    q, state = measure.states.q, measure.states.state
    drivers = [names[body] for body in knee.drivers]
    x = np.column_stack([basis.view.joint_positions(q)[name] for name in drivers])
    speeds = np.column_stack([state.velocities[rows[name]] for name in drivers])
    h = 1e-4
    ahead, back = knee.at(x + h * speeds), knee.at(x - h * speeds)
    bend = (ahead - 2.0 * knee.at(x) + back) / h**2
    exact = measure.states.accelerations([rows[name] for name in ("knee", *drivers)])
    slopes = np.column_stack([
        (knee.at(x + h * along) - knee.at(x - h * along)) / (2.0 * h) for along in np.eye(2)
    ])  # fmt: skip
    off = np.abs(np.sum(slopes * exact[:, 1:], axis=1) + bend - exact[:, 0])
    (column,) = (part.start for name, part in measure.joints if name == "knee")
    expected = off / measure.scale[:, column]
    heavy = rm.with_parameters(tree, {"tarsus.mass": 3.0})
    for made in (tree, heavy):
        found = measure.of_followers(basis.on(made))
        np.testing.assert_allclose(found["knee"].each, expected, rtol=1e-4, atol=1e-6)
        assert max(found[name].worst for name in drivers) < 1e-12
    assert found["knee"].median > 1e-3


@pytest.mark.slow
def test_trees_over_the_same_range_have_the_same_states() -> None:
    """With followers over the whole range; over less of it, states are of that."""
    basis = written_tree(rm.load(robot(*leg(0.1)))).basis
    assert basis.before
    assert basis.before.measure.states.q is basis.measure.states.q
    assert {"hip", "ankle", "knee"} <= {name for name, _ in basis.measure.joints}
    (part,) = basis.parts
    less = basis.following([replace(part, positions=part.positions[:300])])
    assert len(np.unique(less.fitted_to.states.q, axis=0)) <= 300 < len(part.positions)


def test_a_curve_of_several_joints_is_found_if_it_is_one() -> None:
    """A line and a polynomial of one sum, with joints of unlike ranges."""
    rng = np.random.default_rng(0)
    x = rng.uniform([-0.1, 1.0, -2.0], [0.2, 1.5, 1.0], (200, 3))
    ratios, along = np.array([0.3, -1.0, 0.2]), np.array([2.0, 0.5, -0.3])
    powers = np.polynomial.Polynomial([0.4, 0.0, 0.3, -0.2, 0.05])
    y = x @ ratios + powers(x @ along)
    slopes = ratios + powers.deriv()(x @ along)[:, None] * along
    terms, error = curve(x, y, 4, slopes)
    follower = Follower(3, (0, 1, 2), *terms, error)
    assert error < 1e-12
    assert np.max(np.abs(follower.at(x) - y)) < 1e-12
    assert np.max(np.abs(follower.slopes(x) - slopes)) < 1e-11
    turned = np.array(terms.along) / along  # the sum is along's, at another scale
    assert np.ptp(turned) < 1e-9 * abs(turned[0])


@pytest.mark.slow
def test_a_leg_has_its_followers_whatever_another_one_lacks() -> None:
    both = rm.load(robot(*leg(0.0), *leg(0.36, "_2")))
    with pytest.warns(RuntimeWarning, match="_2' are off by"):
        errors = rm.approximate_tree(both).errors
    assert "ankle_2" not in errors
    assert errors["hip_2"].median > 0.1
    assert max(errors[name].median for name in ("hip", "knee", "ankle")) < 1e-3


@pytest.mark.slow
def test_no_joint_is_worse_than_with_links_as_they_are() -> None:
    """At no more of the states than chance leaves, joint by joint, and some joint is better."""
    for name in ("parallel_ankle", "belt_leg", "six_bar", "tello"):
        errors = approximation_errors(rm.robots.load(name))
        fitted, lumped = errors.tree.errors, errors.lumped.errors
        for joint_name, error in fitted.items():
            share = np.mean(error.each > lumped[joint_name].each)
            assert share < 0.54 or error.median < 1e-3  # 0.5 + 1.96 / (2 √800)
        assert any(lumped[joint_name].is_worse(error) for joint_name, error in fitted.items())
        assert errors.tree.verdict in errors.verdict
        assert errors.lumped.verdict in errors.verdict


@pytest.mark.slow_cases(*sorted(set(LINKED) - {"planar_leg_linkage"}))
@pytest.mark.parametrize("name", LINKED)
def test_verdicts_hold_at_fresh_states(name: str) -> None:
    """In MuJoCo, at positions and motions that neither the fit nor its judge has seen."""
    checked = proof(written_tree(rm.robots.load(name)))
    assert checked.ratio(checked.found) < 1.5
    assert not checked.broken


@pytest.mark.slow
def test_what_should_stay_exact() -> None:
    """Belts, and a crank-rocker beside links as they are; nothing of a plain arm."""
    assert approximation_errors(rm.robots.load("crank_rocker")).keep_exact == ("rocker_joint",)
    plain = approximation_errors(rm.robots.load("puma560"))
    assert plain.keep_exact == ()
    assert plain.tree.kind == "open"
    assert plain.verdict == "the tree will do: the robot is a tree"


def test_rotors_on_carriers_that_move() -> None:
    found = {each.rotor: each for each in spins(rm.robots.load("belt_leg"))}
    assert found.keys() == {"knee_rotor", "ankle_rotor"}  # not the hip's, which is on the ground
    knee = found["knee_rotor"]
    assert (knee.carrier, knee.joint) == ("hip_ry_link", "knee_link_joint")
    assert knee.coupling == pytest.approx(12 * 0.0005548, rel=1e-12)


def test_armatures_need_configurations() -> None:
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_efforts_are_those_of_each_state() -> None:
    """A joint's torque while the other gets none, by the motors' rates there."""
    model = rm.robots.load("parallel_ankle")
    q = np.array([model.random_configuration(k) for k in range(6)])
    bodies = [model.joint_names.index(name) for name in ("pitch", "roll")]
    found = np.array(list(efforts_at(model, bodies, q).values()))
    for n, at in enumerate(q):
        g = model.constraint_jacobian(at)
        motors = np.array([sum(k * g[r] for r, k in each.rows) for each in model.actuators])
        limb = g[[model.nodes[body].velocities.start for body in bodies]]
        torques = np.linalg.inv(motors @ np.linalg.inv(limb)).T  # of motors, for 1 N m on each
        most = [each.effort_limit for each in model.actuators]
        np.testing.assert_allclose(found[:, n], np.min(most / np.abs(torques.T), axis=1), rtol=1e-7)


def test_what_motors_push_by_the_way_is_no_effort() -> None:
    """With one motor of an ankle neither pitch nor roll gets torque while the other has none."""
    head, _, tail = (
        rm.robots.path("parallel_ankle")
        .read_text()
        .rpartition('<motor effort="2.5" velocity="250"/>')
    )
    model = rm.load(head + tail)
    bodies = [model.joint_names.index(name) for name in ("pitch", "roll")]
    q = np.array([model.random_configuration(k) for k in range(6)])
    assert np.all(np.isinf([*efforts_at(model, bodies, q).values()]))


def test_efforts_that_are_placeholders_are_named() -> None:
    """Errors are relative to what they give; relative to a motion they are those of strong ones."""
    text = rm.robots.path("parallel_ankle").read_text()
    weak = rm.load(text.replace('<motor effort="2.5"', '<motor effort="1e-4"'))
    with pytest.warns(RuntimeWarning, match="will not do"):
        strong = rm.approximate_tree(rm.load(text), fit="lumped")
    with pytest.warns(RuntimeWarning, match="will not do"):
        tree = rm.approximate_tree(weak, fit="lumped")
    error = strong.errors["pitch"].median
    assert tree.errors["pitch"].median > 3 * error
    (note,) = [each for each in tree.notes if each.startswith("efforts of")]
    assert "'pitch', 'roll' give as little as" in note
    assert note.endswith(f"relative to such a motion 'pitch' is off by {percent(error)}")
    assert not [each for each in strong.notes if each.startswith("efforts of")]


@pytest.mark.slow
def test_locked_spins_begin_at_neutral_and_across_the_swing(tmp_path: Path) -> None:
    """The rod's line swings about the carrier's axis of its universal joint; loops stay closed."""
    bar = (
        '<mujoco><worldbody><body name="crank"><joint name="j" axis="0 0 1"/><geom size=".1"/>'
        '<body name="rod" pos=".3 0 0"><joint name="ball" type="ball"/>'
        '<geom type="capsule" fromto="0 0 0 .4 .3 0" size=".02"/></body></body>'
        '<body name="rocker" pos="1 .3 .2"><joint name="k" axis="0 .6 .8"/><geom size=".1"/></body>'
        '</worldbody><equality><connect body1="rod" body2="rocker" anchor=".5 .2 0"/></equality>'
        "</mujoco>"
    )
    (tmp_path / "bar.xml").write_text(bar, encoding="utf-8")
    free = rm.load(tmp_path / "bar.xml")
    locked = rm.load(tmp_path / "bar.xml", spins="locked")
    before, after = (m.joint_positions(m.neutral()) for m in (free, locked))
    np.testing.assert_allclose([after[n] for n in "jk"], [before[n] for n in "jk"], atol=1e-9)
    spin = next(each for each in locked.description.loops if each.name.startswith("spin"))
    axis = np.array(spin.predecessor.origin.rotation)[:, 0]
    (rod,) = find_spins(free)
    cluster, lines = locked.clusters[0], []
    for step in (-1e-4, 1e-4):
        q = locked.close(locked.integrate(locked.neutral(), np.array([step])))
        poses, _ = kinematics(cluster.geometry, np.array(locked.spanning_positions(q.tolist())))
        (crank, _), (turn, _) = (poses[locked.joint_names.index(x)] for x in ("j", "ball"))
        lines.append(crank.T @ turn @ rod.line)
    way = lines[1] - lines[0]
    assert abs(axis @ way) < 1e-3 * np.linalg.norm(way)


@pytest.mark.parametrize(
    ("crank", "rod", "moves", "near"),
    [(0.1, 0.1501, "drive", 0.1), (0.1, 0.15 + 1e-7, "drive", 0.04), (0.03, 0.13, "swing", 0.0)],
)
def test_a_linkage_that_cannot_fold_has_no_change_point(
    crank: float, rod: float, moves: str, near: float
) -> None:
    """All four hinges come near one line: K's least singular value to a sixth, and to a half.

    Or to less than a hundredth: rates change at once, and little is left out (``near``, a share).
    """
    ends = '<limit lower="-2" upper="2" effort="9" velocity="9"/>'
    model = rm.load(
        robot(
            link("crank"), link("rod"), link("rocker"),
            joint("drive", "base", "crank", kind="revolute", more=ends),
            joint("pin", "crank", "rod", f"0 {crank} 0"),
            joint("swing", "base", "rocker", "0.15 0 0", kind="revolute", more=ends),
            loop("far", "revolute", "rod", "rocker", f"{rod} 0 0", f"{rod - 0.15!r} {crank} 0"),
        )
    )  # fmt: skip
    tree = rm.approximate_tree(model, joints=[moves])
    assert ("next to a change point" in tree.verdict) == (near > 0.0)
    (part,) = tree.basis.parts
    for positions in (part.positions, part.others):
        x = np.sort(positions[1:, model.joint_names.index(moves)])
        assert np.max(np.diff(x)) <= max(near, 0.04) * np.ptp(x)


@pytest.mark.slow
def test_change_points_of_several_freedoms_are_left_out_and_named() -> None:
    """An ankle of two parallelograms: they are flat at a pitch of 0.54 without roll."""
    rods, cranks, loops = "", "", ""
    for k, y in enumerate((0.04, -0.04)):
        rods += (
            f'<body name="rod{k}" pos="-.05 {y} 0"><joint name="ball{k}" type="ball"/>'
            '<geom type="capsule" fromto="0 0 0 -.2 0 .12" size=".005"/></body>'
        )
        cranks += (
            f'<body name="c{k}" pos="-.2 {y} .12"><joint name="crank{k}" axis="0 1 0" '
            'range="-1.2 1.2"/><geom type="capsule" fromto="0 0 0 -.05 0 0" size=".005"/></body>'
        )
        loops += f'<connect body1="c{k}" body2="rod{k}" anchor="-.05 0 0"/>'
    text = (
        '<mujoco><compiler angle="radian"/><worldbody><body name="cross">'
        '<joint name="pitch" axis="0 1 0" range="-1 1"/><geom size=".01"/><body name="foot">'
        '<joint name="roll" axis="1 0 0" range="-.4 .4"/><geom size=".03"/>'
        f"{rods}</body></body>{cranks}</worldbody><equality>{loops}</equality></mujoco>"
    )
    flat = math.atan2(0.12, 0.2)
    tree = written_tree(rm.load(text))
    assert re.search(r"[\d.]+ % of the range of 'pitch', 'roll', next to a change", tree.verdict)
    states = tree.basis.measure.states
    at = tree.basis.view.joint_positions(states.q)
    pitch, roll = np.asarray(at["pitch"]), np.asarray(at["roll"])
    assert pitch.min() < flat - 0.2 < flat + 0.2 < pitch.max()  # on both sides
    assert np.min(np.hypot(pitch - flat, roll)) > 0.02


def test_medians_have_intervals_and_verdicts_are_theirs() -> None:
    """By ranks of the binomial distribution; what the states leave open is said."""
    for n in (6, 40, 801):
        rank = median_rank(n)
        below = [sum(math.comb(n, k) for k in range(m + 1)) / 2**n for m in (rank - 1, rank)]
        assert below[0] <= 0.025 < below[1]
    rng = np.random.default_rng(0)
    samples = rng.exponential(size=(2000, 40, 1)) * [1.0, 0.1]
    found = [Error.of(each) for each in samples]
    median, worst = found[0]
    assert (median, worst) == (np.median(samples[0, :, 0]), samples[0].max())
    assert 0.94 < np.mean([low <= math.log(2.0) <= high for low, high in
                           (each.interval for each in found)]) < 0.98  # fmt: skip
    assert pickle.loads(pickle.dumps(found[0])).interval == found[0].interval
    again = [Error(np.repeat(each.each, 5), independent=40) for each in found]
    for one, other in zip(found, again, strict=True):  # five states each that are one
        assert other.interval[0] <= one.interval[0] < one.interval[1] <= other.interval[1]
        assert Error(other.each, positions=40).interval == other.interval
        assert other.is_worse(again[0]) == one.is_worse(found[0])
    by_chance = [one.is_worse(other) for one, other in pairwise(found)]
    assert 0.01 < np.mean(by_chance) < 0.03
    assert Error(1.01 * found[0].each).is_worse(found[0])  # states are compared one by one
    assert not found[0].is_worse(found[0])
    tree = written_tree(rm.robots.load("belt_leg"))
    for each in (0.001, 0.0299, 0.0301, 0.099, 0.101):
        errors = {"knee": Error(each * np.linspace(0.8, 1.2, 41)), "hip": Error(np.zeros(41), 0.1)}
        verdict = replace(tree, errors=errors).verdict
        words = "will do:" if each <= 0.03 else "with care:" if each <= 0.1 else "will not do"
        assert verdict.startswith(words)
        assert ("other states may give" in verdict) == (each != 0.001)


def small_linkages(size: float) -> dict[str, rm.Model]:
    """Two stages of a scissor lift, and a slider-crank, of this size; gravity does not act."""
    c, s = size * math.cos(0.5), size * math.sin(0.5)
    r, length = 0.1 * size, 0.35 * size
    lean = math.asin(r * math.sin(1.0) / length)

    def at(x: float, y: float) -> str:
        return f"{x!r} {y!r} 0"

    def body(name: str, x: float, y: float, mass: float = 1.0) -> str:
        m = mass * size**3
        i = m * size**2 / 12.0
        return link(name, f'<inertial><origin xyz="{at(x, y)}"/><mass value="{m!r}"/><inertia '
                          f'ixx="{i!r}" iyy="{i!r}" izz="{i!r}" ixy="0" ixz="0" iyz="0"/>'
                          "</inertial>")  # fmt: skip

    slide = {"kind": "prismatic", "axis": "1 0 0"}
    lift = robot(
        body("foot", 0.0, 0.0), body("a0", c / 2, s / 2), body("b0", -c / 2, s / 2),
        body("a1", c / 2, s / 2), body("b1", -c / 2, s / 2),
        joint("drive", "base", "foot", at(c, 0.0), **slide),
        joint("ja0", "base", "a0"), joint("jb0", "foot", "b0"),
        joint("ja1", "b0", "a1", at(-c, s)), joint("jb1", "a0", "b1", at(c, s)),
        loop("pin0", "revolute", "a0", "b0", at(c / 2, s / 2), at(-c / 2, s / 2)),
        loop("pin1", "revolute", "a1", "b1", at(c / 2, s / 2), at(-c / 2, s / 2)),
    )  # fmt: skip
    crank = robot(
        body("crank", r / 2, 0.0), body("rod", length / 2, 0.0), body("slider", 0.0, 0.0, 9.0),
        joint("turn", "base", "crank", kind="revolute",
              more='<limit lower="0.2" upper="2"/><initial position="1"/>'),
        joint("pin", "crank", "rod", at(r, 0.0), more=f'<initial position="{-1.0 - lean!r}"/>'),
        joint("slide", "base", "slider", at(r * math.cos(1.0) + length * math.cos(lean), 0.0),
              **slide),
        loop("end", "revolute", "rod", "slider", at(length, 0.0), at(0.0, 0.0)),
    )  # fmt: skip
    return {"lift": rm.load(lift), "crank": rm.load(crank)}


@pytest.mark.parametrize("name", ["lift", "crank"])
def test_trees_of_small_robots_are_those_of_large_ones(name: str) -> None:
    """As accelerations without gravity are of their sizes, and so is what displaces links."""
    trees = [rm.approximate_tree(small_linkages(size)[name]) for size in (1.0, 1.0 / 300.0)]
    one, other = (tree.errors for tree in trees)
    assert one.keys() == other.keys()
    for each in one:
        assert other[each].median == pytest.approx(one[each].median, rel=1e-3, abs=1e-9)
    assert any(error.median > 1e-6 for error in one.values())


def test_inertia_between_joints_is_of_the_tree_s() -> None:
    """A belt's pulley turns by 6 (hip + knee), an idler by 2.5 knees; the idler is independent."""

    def spin(name: str, inertia: float) -> str:
        moments = " ".join(f'{xx}="{inertia}"' for xx in ("ixx", "iyy", "izz"))
        zeros = 'ixy="0" ixz="0" iyz="0"'
        return link(name, f'<inertial><mass value="0.01"/><inertia {moments} {zeros}/></inertial>')

    model = rm.load(
        robot(
            link("thigh"), link("shank"), spin("pulley", 3e-5), spin("idler", 2e-6),
            joint("hip", "base", "thigh", mark=True),
            joint("knee", "thigh", "shank", "0.3 0 0", mark=False),
            joint("pulley", "base", "pulley", mark=False),
            joint("idler", "thigh", "idler", "0.1 0 0", mark=True),
            coupling("belt", {"pulley": 1.0, "hip": -6.0, "knee": -6.0}),
            coupling("tension", {"idler": 1.0, "knee": -2.5}),
        )
    )  # fmt: skip
    assert model.dof_names == ("hip", "idler")
    said = str(rm.approximation_errors(model))
    assert f"  hip, knee: {36 * 3e-5 + 2.5 * 2e-6:.6g}\n" in said
    assert "hip, idler" not in said
