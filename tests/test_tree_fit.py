"""Open trees that move as the robot does: joints, bodies, errors, and what MuJoCo makes of them."""

from __future__ import annotations

import io
import math
import warnings
from unittest.mock import Mock

import mujoco
import numpy as np
import pytest
from texts import coupling, four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.arrays import Array
from robomodel.dynamics.kinematics.state import neutral_jacobian
from robomodel.dynamics.physical import CannotExistError, Cone, ParameterPrior
from robomodel.dynamics.tree_map import TreeMap
from robomodel.model.derived import neutral_positions
from robomodel.model.parameters import ENTRIES, parameters
from robomodel.opentree import fit
from robomodel.opentree.errors import Measure
from robomodel.opentree.fit import Problem
from robomodel.opentree.tree import USUAL, TreeOptions, written_tree
from robomodel.opentree.tree_joints import tree_joints
from robomodel.reports.simulators import parse_pd, pd_motion


def leg(*, belt: bool, knee: str = "-1.2 1.3") -> str:
    """A leg with a four-bar knee, driven on the thigh, or from the base by a belt over the hip."""

    def body(name: str, center: str, mass: float, moments: str) -> str:
        xx, yy, zz = moments.split()
        inertia = f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/>'
        return link(
            name,
            f'<inertial><origin xyz="{center}"/><mass value="{mass}"/>{inertia}</inertial>',
        )

    def hinge(name: str, parent: str, child: str, xyz: str, ends: str, more: str = "") -> str:
        low, high = ends.split()
        return joint(
            name, parent, child, xyz, kind="revolute", axis="0 1 0",
            mark=name in ("hip", "crank") or None,
            more=f'<limit lower="{low}" upper="{high}"/>{more}',
        )  # fmt: skip

    motor = body("knee_motor", "0 0 0", 0.12, "4e-5 7e-5 4e-5")
    motor += joint("knee_motor", "base", "knee_motor", axis="0 1 0")
    motor += coupling("belt", {"knee_motor": 1.0, "hip": -6.0, "crank": -12.0})
    geared = '<rotor inertia="7e-5" ratio="{}"/>'
    on_crank = "" if belt else geared.format(12)
    return robot(
        body("thigh", "0 0 -0.11", 1.1, "9e-3 9e-3 8e-4"),
        body("crank", "-0.025 0 0", 0.09, "1e-5 3e-5 2.5e-5"),
        body("rod", "0 0 -0.111", 0.06, "2.6e-4 2.6e-4 2e-6"),
        body("shank", "0 0 -0.12", 0.28, "2e-3 2e-3 5e-5"),
        hinge("hip", "base", "thigh", "0 0 0", "-1.4 1.4", geared.format(7)),
        hinge("crank", "thigh", "crank", "0 0 -0.06", "-0.7 0.8", on_crank),
        hinge("rod", "crank", "rod", "-0.05 0 0", "-3 3"),
        hinge("knee", "thigh", "shank", "0 0 -0.28", knee),
        loop("pin", "revolute", "rod", "shank", "0 0 -0.222", "-0.038 0 0.012",
             '<axis xyz="0 1 0"/>'),
        motor if belt else "",
    )  # fmt: skip


def arm() -> str:
    """A spatial chain of geared joints, all rotors on links that move but the first."""
    parts = []
    axes, ratios = ("0 0 1", "0 1 0", "1 0 0", "0.6 0 0.8"), (50, 80, -30, 7)
    for i, (axis, ratio) in enumerate(zip(axes, ratios, strict=True)):
        inertial = (
            f'<inertial><origin xyz="0.0{i} 0.01 0.15"/><mass value="{2.2 - 0.3 * i}"/>'
            '<inertia ixx="0.02" iyy="0.018" izz="0.006" ixy="0.001" ixz="0" iyz="0.0007"/>'
            "</inertial>"
        )
        parent = f"l{i}" if i else "base"
        rotor = f'<rotor inertia="2e-5" ratio="{ratio}" mass="0.1" transverse="1.2e-5"/>'
        parts += [link(f"l{i + 1}", inertial)]
        parts += [joint(f"j{i}", parent, f"l{i + 1}", "0.02 0 0.3", axis=axis, more=rotor)]
    return robot(*parts)


def in_mujoco(model: rm.Model, **options) -> mujoco.MjModel:
    """The written tree, without contacts and limits."""
    stream = io.StringIO()
    rm.write_mjcf(model, stream, approximate=True, meshes="drop", **options)
    compiled = mujoco.MjModel.from_xml_string(stream.getvalue())
    for flag in ("CONTACT", "LIMIT"):
        compiled.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    return compiled


def accelerations(model: rm.Model, compiled: mujoco.MjModel, q, v, tau, correction=None):
    """MuJoCo's of the tree's hinges and the exact ones, at one state of the robot."""
    names = [n for n in model.joint_names
             if mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_JOINT, n) >= 0]  # fmt: skip
    ids = [mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_JOINT, n) for n in names]
    at, dofs = compiled.jnt_qposadr[ids], compiled.jnt_dofadr[ids]
    rows = [model.nodes[model.joint_names.index(n)].v for n in names]
    g, bias = model.constraint_jacobian(q)[rows], model.constraint_bias(q, v)[rows]
    data = mujoco.MjData(compiled)
    positions = model.joint_positions(q)
    data.qpos[at], data.qvel[dofs] = [float(positions[n]) for n in names], g @ v
    data.qfrc_applied[dofs] = np.linalg.lstsq(g.T, tau, rcond=None)[0]
    if correction is not None:
        data.qfrc_applied[dofs] += correction
    mujoco.mj_forward(compiled, data)
    return data.qacc[dofs], g @ rm.aba(model, q, v, tau) + bias


def worst(tree) -> float:
    """The worst joint's median."""
    return max(error.median for error in tree.errors.values())


@pytest.mark.slow
@pytest.mark.parametrize("belt", [False, True])
def test_the_limb_moves(belt: bool) -> None:
    """The knee, not the crank, up to its dead point; the notes say what is locked."""
    model = rm.load(leg(belt=belt))
    tree = rm.approximate_tree(model)
    assert {j.name for j in tree.joints if j.independent} == {"hip", "knee"}
    made = written_tree(model)
    assert worst(made) < 0.07 < worst(made.lumped)
    notes = "\n".join(tree.notes)
    assert "'knee' move" in notes
    assert "'crank', 'rod'" in notes
    assert tree.notes[-1].startswith("the tree will do with care:")
    assert made.range["knee"][0] < -0.5
    named = rm.approximate_tree(model, joints=["crank"])
    assert {j.name for j in named.joints if j.independent} == {"hip", "crank"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # about 10 %
        alone = rm.approximate_tree(model, joints=["crank"], followers=False)
    assert "accelerations of 'crank'" in alone.verdict
    assert worst(written_tree(model)) < alone.errors["crank"].median
    assert "knee" not in alone.joint_names
    model = rm.load(leg(belt=belt, knee="-0.7 0.3"))  # short of its dead point
    assert worst(written_tree(model)) < 0.03
    rng = np.random.default_rng(0)
    errors = []
    compiled = in_mujoco(model)
    for _ in range(8):
        q = model.random_configuration(rng, near=model.neutral())
        v, tau = rng.normal(size=(2, model.nv))
        found, exact = accelerations(model, compiled, q, v, tau)
        errors.append(np.linalg.norm(found - exact) / np.linalg.norm(exact))
    assert np.median(errors) < 0.03


@pytest.mark.slow
def test_gears_are_exact_in_mujoco() -> None:
    """Spin of rotors on moving carriers: a disc more here, one less there, armature (N² - N) I."""
    model = rm.load(arm())
    made = written_tree(model)
    assert made.kind == "exact"
    assert worst(made) < 1e-10 < worst(made.lumped)
    armature = {j.name: j.armature for j in made.joints}
    assert armature["j0"] == pytest.approx(50**2 * 2e-5, rel=1e-14)  # on the base
    assert armature["j1"] == pytest.approx((80**2 - 80) * 2e-5, rel=1e-12)
    assert armature["j2"] == pytest.approx((30**2 + 30) * 2e-5, rel=1e-12)
    for body in made.bodies:
        moments = np.linalg.eigvalsh(np.array(body.inertia))
        assert moments[2] <= moments[0] + moments[1]
    rng = np.random.default_rng(1)
    compiled = in_mujoco(model)
    for _ in range(3):
        q = model.random_configuration(rng)
        v, tau = rng.normal(size=(2, model.nv))
        found, exact = accelerations(model, compiled, q, v, tau)
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-10 * np.abs(exact).max())


@pytest.mark.slow
def test_belts_have_tendons_along_the_chain() -> None:
    made = written_tree(rm.robots.load("belt_leg"))
    assert worst(made) < 0.01
    assert {c.name for c in made.couplings} == {"ankle_rotor_rotor"}
    without = written_tree(rm.robots.load("belt_leg"), TreeOptions(tendons=False))
    assert not without.couplings
    assert 0.1 < worst(without) <= worst(without.lumped or without)


def siblings() -> str:
    """Two arms on the base and a rotor that both drive, its inertia between two branches."""
    spun = (
        '<inertial><mass value="0.1"/><inertia ixx="1e-3" iyy="1e-3" izz="2e-3" ixy="0" '
        'ixz="0" iyz="0"/></inertial>'
    )
    return robot(
        link("a"), link("b"), link("m", spun),
        joint("j", "base", "a", axis="0 1 0", mark=True),
        joint("k", "base", "b", "0 0.3 0", axis="0 1 0", mark=True),
        joint("jm", "base", "m", "0.1 0 0"),
        coupling("belt", {"jm": 1.0, "j": -4.0, "k": -3.0}),
    )  # fmt: skip


@pytest.mark.slow_cases(
    "range-<lambda>", "range-arm", "lumped-<lambda>", "lumped-arm", "range-siblings"
)
@pytest.mark.parametrize("make", [siblings, lambda: leg(belt=True), arm])
@pytest.mark.parametrize("fit", ["range", "lumped"])
def test_corrections_are_exact_in_mujoco(make, fit) -> None:
    """MuJoCo's inertia has no entries between branches; the tree's has none either."""
    model = rm.load(make())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        tree, compiled = rm.approximate_tree(model, fit=fit), in_mujoco(model, fit=fit)
    rng = np.random.default_rng(2)
    q = model.random_configuration(rng, near=model.neutral())
    v, tau = rng.normal(size=(2, model.nv))
    for options in ({"tree": tree}, {}) if fit == "range" else ({"tree": tree},):
        correction = rm.correction_force(model, q, v, tau, backend="numpy", **options)
        found, exact = accelerations(model, compiled, q, v, tau, correction)
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-9 * np.abs(exact).max())


def rodded() -> str:
    """A crank and a rocker about axes that are not parallel; a rod with a ball at either end."""
    return robot(
        link("crank"), link("rod"), link("rocker"),
        joint("motor", "base", "crank", axis="0 0.6 0.8", more='<motor effort="5"/>'),
        joint("ball", "crank", "rod", "0.3 0 0", kind="spherical"),
        joint("out", "base", "rocker", "1 0 0", axis="0 0 1"),
        loop("end", "spherical", "rod", "rocker", "0.9 0 0", "0.25 0.1 0"),
    )  # fmt: skip


@pytest.mark.slow
def test_spins_of_rods_are_locked() -> None:
    """A rod's spin is a freedom of the robot, none of the tree; a correction is exact."""
    model = rm.load(rodded())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        tree, compiled = (
            rm.approximate_tree(model, followers=False),
            in_mujoco(model, followers=False),
        )
    assert (model.nv, tree.nv) == (2, 1)
    assert any("spin" in note and "locked" in note for note in tree.notes)
    rng = np.random.default_rng(3)
    q = model.random_configuration(rng, near=model.neutral())
    v = rng.normal(size=2)
    tau = rm.actuator_map(model, q) @ [0.4]
    correction = rm.correction_force(model, q, v, tau, tree=tree)
    assert correction.shape == (1,)
    found, exact = accelerations(model, compiled, q, v, tau, correction)
    np.testing.assert_allclose(found, exact, rtol=1e-9)
    with pytest.raises(ValueError, match="spins of 'ball'"):
        rm.rnea(model, q, v, v, method="tendons")


@pytest.mark.slow
def test_followers_move_what_would_be_displaced() -> None:
    """A parallel gripper's other finger, linear: MuJoCo's polycoef, URDF's mimic."""
    model = rm.load(
        robot(
            link("left"), link("right"),
            joint("l", "base", "left", axis="0 1 0", mark=True),
            joint("r", "base", "right", "0.2 0 0", axis="0 1 0"),
            coupling("tie", {"l": 1.0, "r": 1.0}, 0.1),
        )
    )  # fmt: skip
    tree = rm.approximate_tree(model)
    assert {j.name for j in tree.joints} == {"l", "r"}
    assert tree.nv == 1
    assert any("'r' follows 'l'" in note for note in tree.notes)
    assert worst(written_tree(model)) < 1e-9
    stream = io.StringIO()
    rm.write_urdf(model, stream, approximate=True)
    assert '<mimic joint="l"' in stream.getvalue()
    assert in_mujoco(model).neq == 1
    assert in_mujoco(model, followers=False).neq == 0


@pytest.mark.slow
def test_what_is_followed_ends_where_its_polynomial_does() -> None:
    """URDF's line stands for a parabola between the limits that it writes, within what is said."""
    bend = '<polynomial joint="r" of="l" coefficients="0.1 -1.0 0.02"/>'
    model = rm.load(
        robot(
            link("left"), link("right"),
            joint("l", "base", "left", axis="0 1 0"),
            joint("r", "base", "right", "0.2 0 0", axis="0 1 0"),
            f'<coupling name="tie">{bend}</coupling>',
        )
    )  # fmt: skip
    stream = io.StringIO()
    rm.write_urdf(model, stream, approximate=True)
    tree = rm.load(stream.getvalue())
    x = np.linspace(tree.joints[0].lower, tree.joints[0].upper, 41)
    y = np.ravel(tree.joint_positions(x[:, None])["r"])
    (note,) = (x for x in written_tree(model, TreeOptions(tendons=False)).notes if "follows" in x)
    said = float(note.split("within ")[1].split()[0]) / 1e3
    assert "rad, its limits" in note
    assert 0.3 * said < np.max(np.abs(y - (0.1 - x + 0.02 * x**2))) < 1.03 * said


@pytest.mark.slow
def test_what_no_tree_can_do_is_said() -> None:
    """Never worse than the lumped tree, of which a warning says that it will not do."""
    model = rm.robots.load("five_bar")
    with pytest.warns(RuntimeWarning, match="'five_bar': the tree will not do, keep the loops"):
        tree = rm.approximate_tree(model, followers=False)
    made = written_tree(model, TreeOptions(followers=False))
    assert worst(made) <= worst(made.lumped)
    assert "will not do" in tree.notes[-1]
    for wrong, error in (
        ({"joints": ["no"]}, rm.errors.UnknownNameError),
        ({"joints": ["J1", "J2", "J3"]}, ValueError),
        ({"fit": "best"}, ValueError),
    ):
        with pytest.raises(error):
            rm.approximate_tree(model, **wrong)
    with pytest.raises(ValueError, match="is no open tree of"):
        rm.correction_force(model, model.neutral(), [0, 0], [0, 0], tree=rm.robots.load("belt_leg"))


@pytest.mark.slow
def test_a_floating_base_and_a_ball() -> None:
    """A linkage on what floats, and a ball joint that hangs on it, in a batch."""
    model = rm.load(
        four_bar()
        .replace('<link name="base"/>', link("base"))
        .replace("</robot>", link("tool") + joint("ball", "rocker", "tool", "0.7 0 0",
                                                  kind="spherical") + "</robot>"),
        floating_base=True,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        tree = rm.approximate_tree(model)
    assert tree.floating_base == model.floating_base
    assert "ball" in tree.joint_names
    rng = np.random.default_rng(4)
    q = np.array([model.random_configuration(rng, near=model.neutral()) for _ in range(3)])
    v, tau = rng.normal(size=(2, 3, model.nv))
    assert rm.correction_force(model, q, v, tau).shape == (3, tree.nv)


@pytest.mark.slow
def test_fits_converge_at_the_edge_of_what_can_exist() -> None:
    """By the crank, whose links' fitted inertias are next to none: no warning, and better."""
    model = rm.robots.load("planar_leg_linkage")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        made = written_tree(model, TreeOptions(("shank_driver_joint",), followers=False))
    assert made.kind == "fitted"
    assert worst(made) < 0.1 < worst(made.lumped) / 4.0


def test_fits_end_at_what_cannot_exist_and_at_nothing_else(monkeypatch) -> None:
    """A negative mass, and numbers in which Newton's method finds one; other errors are told."""
    basis = written_tree(rm.robots.load("crank_rocker")).basis
    start = parameters(basis.drafted).values
    names = {body.name for body in basis.drafted.bodies}
    problem = Problem.of(basis.on(basis.drafted), basis.fitted_to, start, names, set())
    z = np.zeros(len(problem.last))
    assert problem.at(z) is not None
    z[0] = -1.0 - problem.nominal[problem.cones[0].at][0]
    assert problem.at(z) is None
    with pytest.raises(CannotExistError):
        ParameterPrior(problem.cones, problem.scalars, problem.nominal, np.eye(len(start)), 1.0,
                       np.ones(0)).point(-start)  # fmt: skip
    importance = np.ones(basis.drafted.nv)
    assert next(fit.fits(problem, importance))
    monkeypatch.setattr(fit, "newton", Mock(side_effect=CannotExistError()))
    assert not list(fit.fits(problem, importance))
    monkeypatch.setattr(fit, "newton", Mock(side_effect=ValueError("other")))
    with pytest.raises(ValueError, match="other"):
        next(fit.fits(problem, importance))


@pytest.mark.slow
def test_left_and_right_are_alike() -> None:
    """Fits of mirror images are mirror images, to the digits that are written."""
    tree = rm.approximate_tree(rm.robots.load("mini_cheetah"))
    listed = rm.parameters(tree)
    values = dict(zip(listed.names, listed.values.tolist(), strict=True))
    for name, value in values.items():
        if name.startswith("FR_"):
            other = values[name.replace("FR_", "FL_")]
            assert abs(abs(value) - abs(other)) <= 1e-8 * abs(value) + 1e-12, name


@pytest.mark.slow
def test_gains_by_joint() -> None:
    """A motion with the user's gains; wrong ones say what is wanted."""
    made = written_tree(rm.load(leg(belt=False)))
    moved = pd_motion(made, parse_pd(made, "hip=60,knee=20", "1.5"))
    assert set(moved.errors) == {"hip", "knee"}
    assert np.ptp(moved.robot[:, moved.joints.index("knee")]) > 0.1
    assert max(moved.errors.values()) < 8e-3
    with pytest.raises(ValueError, match="one by joint, as hip=60"):
        parse_pd(made, "stiff", "1")
    with pytest.raises(ValueError, match="not negative"):
        parse_pd(made, "40", "-1")
    with pytest.raises(rm.errors.UnknownNameError, match="knie"):
        parse_pd(made, "knie=40", "1")


def test_belts_are_exact_where_bodies_can_exist() -> None:
    """Rotors that turn with the sum of a knee and an ankle, on a hip link that is heavy enough."""
    leg = rm.robots.load("belt_leg")
    listed = rm.parameters(leg)
    values = dict(zip(listed.names, listed.values.tolist(), strict=True))
    heavier = {f"hip_ry_link.{k}": values[f"hip_ry_link.{k}"] + 0.02 for k in ("Ixx", "Iyy", "Izz")}
    made = written_tree(rm.with_parameters(leg, heavier))
    assert made.kind == "exact"
    assert worst(made) < 1e-10
    assert worst(made.lumped) > 1e-3


@pytest.mark.slow
def test_a_balanced_robot_is_judged_by_its_motion() -> None:
    """The rest of gravity on a balanced robot, a millionth here, decides nothing."""
    errors = []
    for g in (0.0, 1e-5):
        model = rm.robots.load("crank_rocker", gravity=(0.0, 0.0, -g))
        errors.append(worst(written_tree(model, TreeOptions(fit="lumped"))))
    free, balanced = errors
    assert abs(balanced - free) < 1e-4


@pytest.mark.slow
def test_a_geared_body_is_a_rotor_whatever_its_inertia() -> None:
    """It turns twelve times as fast as the knee: where its points are is no displacement."""
    round_, lopsided = leg(belt=True), leg(belt=True).replace('ixx="4e-5"', 'ixx="6e-5"')
    assert lopsided != round_
    trees = [tree_joints(rm.load(text)) for text in (round_, lopsided)]
    (one,), (other,) = trees
    assert one.bodies == other.bodies
    assert other.displacement == pytest.approx(one.displacement, rel=1e-3)


def test_trees_that_are_judged_together_have_the_errors_that_each_has_alone() -> None:
    """Trees of other inertias and armatures, each by forward dynamics alone."""
    model = rm.load(leg(belt=False))
    tree = written_tree(model, TreeOptions(tendons=False))
    basis, measure = tree.basis, tree.basis.measure
    bare = basis.drafted
    heavy = {f"{body.name}.mass": 1.3 * body.mass for body in bare.bodies}
    trees = [bare, rm.with_parameters(bare, heavy),
             rm.with_parameters(bare, {"hip.armature": 0.3, "knee.armature": 0.01})]  # fmt: skip
    together = measure.errors_of(basis.on(bare), trees)
    medians = [{name: error.median for name, error in each.items()} for each in together]
    assert len({tuple(each.values()) for each in medians}) == len(trees)
    for each, found in zip(trees, medians, strict=True):
        alone = rm.aba(each, *_states(measure, basis.on(each)), backend="numpy")
        right = measure.relative(each, measure.states.on(basis.on(each)), alone)
        for name, off in right.items():
            assert found[name] == pytest.approx(float(np.median(off)), rel=1e-9)


def _states(measure: Measure, tree: TreeMap) -> tuple[Array, Array, Array]:
    states = measure.states.on(tree)
    return states.t, states.dt, states.tau


@pytest.mark.parametrize("name", ["belt_leg", "crank_rocker", "parallel_ankle", "tello"])
def test_what_is_known_at_neutral_without_compiling(name: str) -> None:
    """Positions and G at neutral are those of the compiled functions."""
    model = rm.robots.load(name)
    right = model.joint_positions(model.neutral())
    found = neutral_positions(model)
    assert found.keys() == right.keys()
    for joint_name, at in right.items():
        np.testing.assert_allclose(found[joint_name], at, rtol=0, atol=1e-12)
    g = model.constraint_jacobian(model.neutral())
    np.testing.assert_allclose(neutral_jacobian(model), g, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("thickness", "fits"), [(1e-4, True), (0.0, False), (-1e-12, False)])
def test_fitted_bodies_have_mass_in_all_directions(thickness: float, fits: bool) -> None:
    """A rod without thickness has moments of which one is the others' sum, but for rounding."""
    tree = rm.approximate_tree(rm.robots.load("planar_leg_linkage"))
    nominal, none = parameters(tree).values, np.zeros((0, tree.nv))
    free = np.arange(len(nominal)) < 10
    cones = [Cone.of(0, nominal[:10])]
    problem = Problem(tree, (), free, nominal, cones, np.zeros(0, int), none, none, none, none,
                      np.zeros(0), np.zeros(10))  # fmt: skip
    along = np.array([1.0, 2.0, 0.0]) / math.sqrt(5.0)
    sizes = 0.4 * np.outer(along, along) + thickness * np.eye(3)  # integrals of x xᵀ
    inertia = np.trace(sizes) * np.eye(3) - sizes
    body = [2.0, 0.0, 0.0, 0.0, *(inertia[i, k] for i, k in ENTRIES)]
    made = problem.at(np.array(body) - nominal[:10])
    assert (made is not None) == fits
    if made is not None:
        rm.write_mjcf(made, io.StringIO())  # refuses moments that MuJoCo does not take


@pytest.mark.parametrize("size", [1.0, 0.1, 0.01])
def test_what_follows_a_slide_does_so_at_any_size(size: float) -> None:
    """A crank turns by less than two radians for a slide of its linkage's size, 170 for a metre."""
    ends = f'<limit lower="{-0.2 * size!r}" upper="{0.2 * size!r}"/>'
    right, lean = f"0 0 {math.pi / 2!r}", f"0 0 {-math.pi / 2 - math.asin(0.6)!r}"
    model = rm.load(
        robot(
            link("crank"), link("rod"), link("piston"),
            joint("turn", "base", "crank", rpy=right),
            joint("pin", "crank", "rod", f"{0.6 * size!r} 0 0", rpy=lean),
            joint("slide", "base", "piston", f"{0.8 * size!r} 0 0", kind="prismatic",
                  axis="1 0 0", more=ends),
            loop("end", "revolute", "rod", "piston", f"{size!r} 0 0", "0 0 0"),
        )
    )  # fmt: skip
    (part,) = tree_joints(model, ["slide"], USUAL.following)
    (led,) = part.led(frozenset(), 1)
    assert {model.joints[each.body].name for each in led.followers} == {"turn", "pin"}


@pytest.mark.parametrize("turned", ["0 0 0", "3.141592653589793 0 0", "0 0 0.7"])
def test_planets_on_a_driven_link_are_in_the_tree_exactly(turned: str) -> None:
    """A planet that the forearm carries, and its sun on the upper arm, on a floating base."""

    def rotor(name: str, about: float) -> str:
        inertia = f'ixx="{0.6 * about}" iyy="{0.6 * about}" izz="{about}"'
        return link(name, f'<inertial><mass value="0.05"/><inertia {inertia} ixy="0" ixz="0" '
                    'iyz="0"/></inertial>')  # fmt: skip

    back = -1.0 if turned.startswith("3") else 1.0
    model = rm.load(
        robot(
            link("trunk"), link("upper"), link("fore"), rotor("sun", 3e-4), rotor("planet", 2e-4),
            joint("free", "base", "trunk", kind="floating"),
            joint("shoulder", "trunk", "upper", "0 0.1 0", axis="0.6 0 0.8"),
            joint("elbow", "upper", "fore", "0.3 0 0", axis="0 0 1"),
            joint("sun", "upper", "sun", "0.3 0 0", axis="0 0 1"),
            joint("planet", "fore", "planet", "0.03 0 0", axis="0 0 1", rpy=turned),
            coupling("mesh", {"sun": 1.0, "elbow": -6.0}),
            coupling("ring", {"planet": back, "elbow": 2.5}),
        )
    )  # fmt: skip
    tree = written_tree(model)
    assert tree.kind == "exact"
    assert worst(tree) < 1e-9
