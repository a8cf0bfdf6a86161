"""MJCF that is read: against MuJoCo itself, file by file of features, and what is refused."""

import math
import re
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from agreement import spanning
from cases import few
from mjcf_texts import LINK, VERSION, body, files, joint, world
from mujoco_oracle import MujocoSide, assert_smooth_dynamics, full_mass_matrix

import robomodel as rm
from robomodel.errors import DescriptionError, DescriptionWarning
from robomodel.model.build import build
from robomodel.parsers import read


def tree(text):
    """The model without loops and couplings, as MuJoCo's smooth dynamics is."""
    said = read(text)
    joints = tuple(replace(each, mimic=None) for each in said.joints)
    return build(replace(said, loops=(), couplings=(), joints=joints))


SMOOTH = {
    "hinge": world(body("a", joint("j"), body("b", joint("k", 'axis="1 2 -3"')))),
    "slide": world(body("a", joint("j", 'type="slide" axis="0 3 4"'), body("b", joint("k")))),
    "ball": world(body("a", joint("j", 'type="ball"'), body("b", joint("k", 'type="ball"')))),
    "free": world(
        body("a", '<freejoint name="j"/>', body("b", joint("k", 'type="ball"'))),
        body("c", joint("l", 'type="free"')),
    ),
    "anchors": world(
        body(
            "a",
            joint("j", 'pos="0.1 0.2 -0.3" axis="1 1 0"'),
            body("b", joint("k", 'type="ball" pos="0.3 0 0.1"')),
        )
    ),
    "several joints": world(
        body(
            "a",
            joint("x", 'type="slide" axis="1 0 0"'),
            joint("y", 'axis="0 1 1" pos="0.1 0 0.2"'),
            joint("z", 'type="slide" axis="1 0 1" pos="1 2 3"'),
            joint("s", 'type="ball" pos="0 0.1 0"'),
        )
    ),
    "ref": world(
        body(
            "a",
            joint("x", 'type="slide" axis="1 2 0" ref="0.7"'),
            joint("y", 'axis="0 1 1" pos="0.1 0 0.2" ref="50"'),
            body("b", joint("k", 'ref="-130" axis="1 0 0.5"')),
        )
    ),
    "armature": world(
        body(
            "a",
            joint("j", 'armature="0.3"'),
            body("b", joint("k", 'type="ball" armature="0.2"')),
            body("c", joint("s", 'type="slide" armature="2"')),
        )
    ),
    "inertia from geoms": world(
        '<body name="a"><joint name="j" pos="0 0 1"/><geom size="0.1 0.2" type="capsule"'
        ' euler="10 20 30" density="500"/><geom type="box" size="0.1 0.2 0.3" pos="1 0 0"/>'
        '<body name="b" pos="0 0 -1"><geom type="ellipsoid" size="0.1 0.2 0.3" mass="2"/>'
        '<joint name="k" type="ball"/></body></body>'
    ),
    "classes, radians and frames": world(
        '<frame pos="1 2 3" euler="0.1 0.2 0.3"><body name="a" childclass="arm"><joint name="j"/>'
        '<geom/><body name="b" pos="0.3 0 0"><joint name="k" class="wrist"/><geom/></body></body>'
        "</frame>",
        before='<compiler angle="radian" eulerseq="zyx"/><default><default class="arm"><joint '
        'axis="0 1 0" ref="0.4" armature="0.1" damping="2"/><geom type="cylinder" size="0.1 0.2"/>'
        '<default class="wrist"><joint type="slide" axis="1 0 0"/></default></default></default>',
    ),
    "massless with a welded child": world(
        '<body name="a"><joint name="j"/><body name="b" pos="1 0 0" euler="30 0 0">'
        f"{LINK}</body></body>"
    ),
    "gravity": world(body("a", joint("j")), before='<option gravity="1 -2 3"/>'),
    "no gravity": world(
        body("a", joint("j")),
        before='<option gravity="1 -2 3"><flag gravity="disable"/></option>',
    ),
    "copies": world(
        '<replicate count="3" euler="0 0 120" offset="0.1 0 0"><body name="r"><joint name="q" '
        'axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/></body></replicate>'
    ),
    "a slide after a ball": world(
        body("a", joint("s", 'type="ball" pos="0 0.1 0"'), joint("t", 'type="slide" axis="1 2 0"'))
    ),
    "mass set": world(
        body("a", joint("j"), body("b", joint("k"))), before='<compiler settotalmass="7"/>'
    ),
    "fused and aligned": world(
        body("a", "<freejoint name='j'/>", body("b"), body("c", joint("k"))),
        before='<compiler alignfree="true" fusestatic="true"/>',
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_dynamics(name):
    assert_smooth_dynamics(tree(SMOOTH[name]), MujocoSide.of(SMOOTH[name]))


def test_mujocos_own_test_models():
    folder = Path(mujoco.__file__).parent / "testdata"
    files = sorted(folder.glob("*.xml"))
    assert files
    for path in files:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DescriptionWarning)
            said = read(path)
        side = MujocoSide.of(str(path))
        assert len(said.joints) >= side.model.njnt
        masses = [link.inertial.mass for link in said.links if link.inertial]
        assert math.isclose(sum(masses), float(side.model.body_mass[1:].sum()), rel_tol=1e-12)


def test_poses_are_mujocos():
    text = SMOOTH["ref"]
    model, side = tree(text), MujocoSide.of(text)
    q = model.random_configuration(np.random.default_rng(0))
    side.place(spanning(model, q, np.zeros(model.nv), np.zeros(model.nv)))
    mujoco.mj_kinematics(side.model, side.data)
    for name in "ab":
        pose = rm.frame_pose(model, q, name)
        np.testing.assert_allclose(pose[:3, 3], side.data.body(name).xpos, atol=1e-14)
        np.testing.assert_allclose(pose[:3, :3].ravel(), side.data.body(name).xmat, atol=1e-14)


@pytest.mark.skipif(VERSION < (3, 14), reason="older versions have no armature of actuators")
def test_armature_of_actuators():
    text = world(
        body("a", joint("j", 'armature="0.1"'), body("b", joint("k", 'type="slide"'))),
        rest='<actuator><motor joint="j" gear="3" armature="0.5"/><motor joint="k" gear="-2" '
        'armature="0.7"/></actuator>',
    )
    assert_smooth_dynamics(tree(text), MujocoSide.of(text))


@pytest.mark.skipif(VERSION < (3, 4), reason="older versions have no armature of tendons")
def test_armature_of_tendons():
    text = world(
        body("a", joint("j"), body("b", joint("k", 'type="slide"'))),
        rest='<tendon><fixed name="t" armature="0.3"><joint joint="j" coef="2"/><joint joint="k" '
        'coef="-1.5"/></fixed><fixed armature="0.2"><joint joint="j" coef="3"/></fixed></tendon>',
    )
    model, side = rm.load(text), MujocoSide.of(text)
    assert model.nv == 2
    assert "t_rotor" in model.joint_names
    assert_smooth_dynamics(model, side)


@pytest.mark.skipif(VERSION < (3, 14), reason="older versions have no armature of actuators")
@pytest.mark.parametrize("of", ["tendon", "actuator"])
def test_armature_between_branches_is_kept_and_told(of):
    """MuJoCo C's mass matrix has no entry for joints of two branches; a rotor couples them."""
    here, there = ('armature="0.12"', "") if of == "tendon" else ("", 'armature="0.12"')
    text = world(
        body("a", joint("p", 'axis="0 0 1"'), at=""), body("b", joint("q", 'axis="0 0 1"'), at=""),
        rest=f'<tendon><fixed name="t" {here}><joint joint="p" coef="2"/><joint joint="q" coef="3"'
        f'/></fixed></tendon><actuator><motor name="m" tendon="t" {there}/></actuator>',
    )  # fmt: skip
    with pytest.warns(DescriptionWarning, match="on different branches: that is kept"):
        model = rm.load(text)
    bare = rm.crba(rm.load(text.replace('armature="0.12"', "")), np.zeros(2))
    added = rm.crba(model, np.zeros(2)) - bare
    np.testing.assert_allclose(added, 0.12 * np.array([[4, 6], [6, 9]]), atol=1e-14)
    side = MujocoSide.of(text)
    mujoco.mj_forward(side.model, side.data)
    column = np.zeros(2)
    mujoco.mj_mulM(side.model, side.data, column, np.array([1.0, 0.0]))
    assert column[1] == 0.0


@pytest.mark.skipif(VERSION < (4, 0), reason="older versions have no yielding springs")
def test_yielding_springs_are_told():
    text = world(
        body("a", joint("j", 'stiffness="3.5" springyield="0.4"')),
        rest='<tendon><fixed name="t" stiffness="2" springyield="0.1"><joint joint="j" coef="1"/>'
        "</fixed></tendon>",
    )
    with pytest.warns(DescriptionWarning) as caught:
        rm.load(text)
    said = [str(each.message) for each in caught]
    assert any("beyond 0.00698132 (springyield)" in each for each in said)  # 0.4 degrees
    assert any("beyond 0.1 (springyield)" in each or "likewise" in each for each in said)


@pytest.mark.parametrize("word", ["quat", "axisangle", "xyaxes", "zaxis"])
@pytest.mark.parametrize("number", ["1e154", "1e308", "-1E200"])
def test_directions_whose_squares_overflow(word, number):
    """MuJoCo takes them for none: quaternions of zero, axes of zero, no rotation."""
    values = {"quat": "1 0 0 0", "axisangle": "1 0 0 90", "xyaxes": "1 0 0 0 1 0", "zaxis": "1 0 0"}
    at = f'{word}="{values[word].replace("1", number, 1)}"'
    with pytest.raises(DescriptionError, match="write numbers near 1"):
        rm.load(world(body("a", joint("j"), at=at)))
    with pytest.raises(DescriptionError, match="write numbers near 1"):
        rm.load(world(body("a", joint("j", f'axis="{number} 0 0"'))))


@pytest.mark.skipif(VERSION < (3, 4), reason="older versions have no armature of tendons")
@pytest.mark.parametrize("moved", ["jk", "j", ""])
def test_armature_of_tendons_over_a_joint_that_a_constraint_holds(moved):
    """It acts on the joints of the tendon that are left."""

    def inertia(joints):
        terms = "".join(f'<joint joint="{name}" coef="1.5"/>' for name in joints)
        tendon = f'<tendon><fixed armature="0.3">{terms}</fixed></tendon>' if joints else ""
        held = '<equality><joint joint1="held" polycoef="0.4 0 0 0 0"/></equality>'
        links = (body("a", joint("j"), body("b", joint("k"), body("c", joint("held")))),)
        model = rm.load(world(*links, rest=tendon + held))
        return rm.crba(model, model.random_configuration(0), backend="numpy")

    np.testing.assert_array_equal(inertia((*moved, "held")), inertia(moved))


# ---- equality constraints ------------------------------------------------------------------------

TWO = (
    body("a", joint("j", 'axis="0 1 0"'), body("b", joint("k", 'type="ball"'))),
    body("c", joint("l", 'type="ball" pos="0.1 0 0"'), body("d", joint("m", 'ref="20"'))),
    body("e", '<freejoint name="n"/>'),
)

ROW = (
    body("a", joint("j", 'ref="30"'), body("b", joint("k", 'type="slide" ref="0.4"'))),
    body("c", joint("l", 'axis="1 0 0"')),
    body("d", joint("m", 'axis="1 0 0" ref="-70"')),
)

SITES = (
    body("a", joint("j"), '<site name="s" pos="0.1 0.2 0" euler="10 20 30"/>'),
    body("b", "<freejoint name='k'/>", '<site name="t" pos="0.3 0 0.1" euler="-40 0 70"/>'),
)

FIXED = (
    '<tendon><fixed name="t"><joint joint="j" coef="2"/><joint joint="k" coef="-1"/></fixed>'
    '<fixed name="u"><joint joint="l" coef="0.5"/><joint joint="m" coef="3"/></fixed></tendon>'
)

ROD = '<tendon><spatial name="r"><site site="s"/><site site="t"/></spatial></tendon>'


def tied(bodies, equality, rest=""):
    return world(*bodies, rest=f"{rest}<equality>{equality}</equality>")


TIED = {  # the text, the type of its loop, and how many freedoms the constraint takes
    "connect": (tied(TWO, '<connect body1="b" body2="d" anchor="0.3 -0.1 0.2"/>'), "spherical", 3),
    "connect to the world": (tied(TWO, '<connect body1="e" anchor="0.3 0 0.2"/>'), "spherical", 3),
    "connect sites": (tied(SITES, '<connect site1="s" site2="t"/>'), "spherical", 3),
    "hinge": (
        tied(
            TWO,
            '<connect body1="a" body2="e" anchor="0.3 0 0.2"/>'
            '<connect body1="a" body2="e" anchor="0.1 0.1 0.2"/>',
        ),
        "revolute",
        5,
    ),
    "weld": (tied(TWO, '<weld body1="d" body2="e"/>'), "fixed", 6),
    "weld with anchor": (
        tied(
            TWO,
            '<weld body1="a" body2="e" anchor="0.1 0.2 0.3" relpose="1 2 3 0.5 0.5 -0.5 0.7"/>',
        ),
        "fixed",
        6,
    ),
    "weld sites": (tied(SITES, '<weld site1="s" site2="t"/>'), "fixed", 6),
    "weld without torque": (
        tied(TWO, '<weld body1="a" body2="e" torquescale="0"/>'),
        "spherical",
        3,
    ),
    "joints": (tied(ROW, '<joint joint1="j" joint2="l" polycoef="0.3 -2 0 0 0"/>'), None, 1),
    "joint and slide": (tied(ROW, '<joint joint1="m" joint2="k" polycoef="0 14 0 0 0"/>'), None, 1),
    "one tendon": (tied(ROW, '<tendon tendon1="t" polycoef="0.2 9 9 0 0"/>', FIXED), None, 1),
    "two tendons": (
        tied(ROW, '<tendon tendon1="t" tendon2="u" polycoef="0.2 -3 0 0 0"/>', FIXED),
        None,
        1,
    ),
    "curve of tendons": (
        tied(ROW, '<tendon tendon1="t" tendon2="u" polycoef="0.2 -3 2 1 0"/>', FIXED),
        None,
        1,
    ),
    "rod": (tied(SITES, '<tendon tendon1="r"/>', ROD), "rod", 1),
    "a longer rod": (tied(SITES, '<tendon tendon1="r" polycoef="0.2 0 0 0 0"/>', ROD), "rod", 1),
}


@pytest.mark.slow_cases("weld with anchor", "connect sites", "hinge", "rod")
@pytest.mark.parametrize(
    "name",
    few(
        TIED,
        "connect sites",
        "hinge",
        "weld with anchor",
        "joint and slide",
        "two tendons",
        "rod",
        "curve of tendons",
    ),
)
def test_equality_constraints(name):
    """At closed configurations MuJoCo sees no gap, and our motions open none; nothing else is tied.

    Away from them, the smooth dynamics that both project is compared above.
    """
    text, kind, taken = TIED[name]
    model, side = rm.load(text), MujocoSide.of(text)
    loops = [loop.type for loop in model.description.loops]
    assert loops == ([kind] if kind else [])
    assert model.nv == side.model.nv - taken
    rng = np.random.default_rng(3)
    for _ in range(3):
        q = model.random_configuration(rng)
        zero = np.zeros(model.nv)
        gaps, jacobian = side.equalities(spanning(model, q, zero, zero))
        assert np.max(np.abs(gaps)) < 1e-9
        motions = np.array(
            [side.velocities(spanning(model, q, unit, zero)) for unit in np.eye(model.nv)]
        )
        assert np.linalg.matrix_rank(jacobian, tol=1e-6) == taken
        if "weld" not in name or "torque" in name:
            assert np.max(np.abs(jacobian @ motions.T)) < 1e-9
        else:
            assert np.max(np.abs(jacobian[:3] @ motions.T)) < 1e-9
            assert np.max(np.abs(jacobian @ motions.T)) < 1e-6


@pytest.mark.slow_cases("connect", "weld sites", "connect sites")
@pytest.mark.parametrize(
    "name", ["connect", "connect sites", "weld sites", "joints", "two tendons"]
)
def test_constrained_accelerations_are_mujocos_at_its_stiffest(name):
    """MuJoCo's constraints yield: of solimp at most 0.9999 (mjMAXIMP) is taken.

    Each row's regularization is then 1e-4 of an estimate of its own diagonal entry of J M⁻¹ Jᵀ, so
    what is left of the unconstrained acceleration is 1e-4 times how far the rows depend on each
    other: here up to 2e-3. From rest, as MuJoCo leaves out velocity products of constraints.
    """
    text = TIED[name][0].replace("<worldbody>", STIFF + "<worldbody>")
    model, side = rm.load(text), MujocoSide.of(text)
    side.model.opt.iterations, side.model.opt.tolerance = 500, 1e-14
    q = model.random_configuration(np.random.default_rng(1))
    zero = np.zeros(model.nv)
    side.place(spanning(model, q, zero, zero))
    force = np.random.default_rng(2).normal(size=side.model.nv)
    side.data.qfrc_applied[:] = force
    mujoco.mj_forward(side.model, side.data)
    found = side.data.qacc.copy()
    T = np.array([side.velocities(spanning(model, q, u, zero)) for u in np.eye(model.nv)]).T
    exact = T @ rm.aba(model, q, zero, T.T @ force, backend="numpy")
    taken = side.data.qacc_smooth - exact
    assert np.max(np.abs(found - exact)) < 5e-3 * np.max(np.abs(taken))


STIFF = '<default><equality solimp="0.9999 0.9999 0.001 0.5 2" solref="0.004 1"/></default>'


def test_inactive_constraints_tie_nothing():
    equality = '<connect body1="b" body2="d" anchor="0 0 0" active="false"/>'
    assert read(tied(TWO, equality)).loops == ()
    text = tied(TWO, '<connect body1="b" body2="d" anchor="0 0 0"/>').replace(
        "<worldbody>", '<option><flag equality="disable"/></option><worldbody>'
    )
    assert read(text).loops == ()


def test_solvers_of_other_versions_make_no_difference():
    """Attributes of solvers that this version of MuJoCo does not know are not handed to it."""
    option = (
        '<option gravity="0 1 2" apirate="60" collision="all" solver="PGS"><flag island="enable"'
    )
    text = SMOOTH["hinge"].replace(
        "<worldbody>", f'{option} gravity="enable"/></option><worldbody>'
    )
    assert read(text).gravity == (0, 1, 2)
    with pytest.raises(DescriptionError, match="gravty"):
        read(text.replace("gravity=", "gravty=", 1))


def test_a_term_of_nothing_is_no_term():
    """A coefficient or a gear of 0 moves nothing, and other formats take no reduction of 0."""
    tendons = (
        FIXED.replace('coef="-1"', 'coef="0"')
        .replace('coef="0.5"', 'coef="0"')
        .replace('coef="3"', 'coef="0"')
    )
    motors = (
        '<actuator><motor name="one" tendon="t"/><motor name="none" joint="m" gear="0"/>'
        '<motor name="idle" tendon="u"/></actuator>'
    )
    with pytest.warns(DescriptionWarning, match="not among the robot's actuators"):
        said = read(world(*ROW, rest=tendons + motors))
    assert [
        (each.name, [(end.name, end.reduction) for end in each.joints])
        for each in said.transmissions
    ] == [("one", [("j", 2.0)]), ("none", []), ("idle", [])]
    with pytest.warns(DescriptionWarning, match="ties nothing"):
        said = read(tied(ROW, '<tendon tendon1="u"/>', tendons))
    assert said.couplings == ()


def test_a_joint_that_is_held_is_fixed_there():
    text = tied(ROW, '<joint joint1="j" polycoef="0.2 0 0 0 0"/>')
    model, side = rm.load(text), MujocoSide.of(text)
    assert model.nv == 3
    assert "j" not in model.joint_names
    assert_held(model, side, "j", math.radians(30) + 0.2)


@pytest.mark.parametrize("other", ["", ' tendon2="u"'])
def test_a_joint_that_a_tendon_holds_is_fixed_there(other):
    tendon = '<tendon><fixed name="t"><joint joint="j" coef="-2.5"/></fixed>{}</tendon>'.format(
        '<fixed name="u"><joint joint="l" coef="1"/></fixed>'
    )
    text = tied(ROW, f'<tendon tendon1="t"{other} polycoef="0.5 0 0 0 0"/>', tendon)
    model, side = rm.load(text), MujocoSide.of(text)
    assert "j" not in model.joint_names
    assert_held(model, side, "j", math.radians(30) - 0.5 / 2.5)


def test_what_no_joint_separates_is_left_out():
    """A joint that a constraint holds separates no bodies."""
    bodies = (body("a", joint("j"), '<site name="s"/>', body("b", joint("k"), '<site name="t"/>')),)
    tendon = '<tendon><spatial name="r" {}><site site="s"/><site site="t"/></spatial></tendon>'
    held = '<joint joint1="k"/>'
    for tie, spring in (
        ('<weld body1="a" body2="b"/>', ""),
        ('<tendon tendon1="r"/>', ""),
        ("", 'stiffness="7" springlength="0.1"'),
    ):
        text = tied(bodies, held + tie, tendon.format(spring))
        with pytest.warns(DescriptionWarning, match="no joint separates its ends"):
            model = rm.load(text)
        assert model.dof_names == ("j",)
        side = MujocoSide.of(text)
        side.data.joint("j").qpos = 0.4
        mujoco.mj_forward(side.model, side.data)
        its = full_mass_matrix(side.model, side.data)[:1, :1]
        np.testing.assert_allclose(rm.crba(model, [0.4]), its, rtol=1e-13)


def assert_held(model, side, name, position):
    q = model.random_configuration(np.random.default_rng(0))
    state = spanning(model, q, np.zeros(model.nv), np.zeros(model.nv))
    state[name] = np.array([position]), np.zeros(1), np.zeros(1)
    side.place(state)
    mujoco.mj_kinematics(side.model, side.data)
    pose = rm.frame_pose(model, q, "b")
    np.testing.assert_allclose(pose[:3, 3], side.data.body("b").xpos, atol=1e-14)


def test_a_joint_may_be_held_and_followed():
    text = tied(
        ROW,
        '<joint joint1="j" polycoef="0.2 0 0 0 0"/><joint joint1="l" joint2="m"/>'
        '<joint joint1="m" joint2="j"/><joint joint1="k" joint2="l"/>',
    )
    with pytest.raises(DescriptionError, match=r"mobility|nothing can move"):
        rm.load(text)


def test_circles_of_followers_are_couplings():
    text = tied(ROW, '<joint joint1="l" joint2="m"/><joint joint1="m" joint2="l" name="again"/>')
    said = read(text)
    assert [each.name for each in said.couplings] == ["again"]
    assert {each.name: each.mimic.joint for each in said.joints if each.mimic} == {"l": "m"}


def test_mocap_bodies_and_their_ties():
    text = world(
        '<body name="hand" mocap="true"/>',
        body("a", '<freejoint name="j"/>'),
        rest='<equality><weld body1="hand" body2="a"/></equality>',
    )
    with pytest.warns(DescriptionWarning) as caught:
        model = rm.load(text)
    assert model.nv == 6
    assert sorted("left out" in str(each.message) for each in caught) == [False, True]


# ---- what a description keeps --------------------------------------------------------------------


def test_properties_of_joints():
    text = world(
        body(
            "a",
            joint("j", 'range="-20 90" damping="2" frictionloss="0.3" actuatorfrcrange="-7 5"'),
            body("b", joint("k", 'type="slide" ref="0.1" range="-1 inf"')),
            body("c", joint("m", 'type="ball" range="0 60" damping="1"')),
        )
    )
    j, k, m = (each for each in read(text).joints if each.type != "fixed")
    assert (j.type, j.damping, j.friction, j.limits.effort) == ("revolute", 2.0, 0.3, 5.0)
    assert j.limits.effort_lower == -7.0
    assert (j.limits.lower, j.limits.upper) == (math.radians(-20), math.radians(90))
    assert j.initial is None
    assert (k.type, k.initial, k.limits.upper, k.limits.lower) == ("prismatic", 0.1, math.inf, -1)
    assert (m.type, m.limits.upper, m.damping) == ("spherical", math.radians(60), 1.0)


def test_names_of_what_has_none():
    text = world(
        f'<body pos="1 0 0">{LINK}<joint/><joint type="slide"/><joint pos="0 1 1" axis="1 0 0"/>'
        "</body>",
        f'<body name="b">{LINK}<freejoint/></body>',
        f'<body name="c">{LINK}</body>',
    )
    said = read(text)
    assert [each.name for each in said.links] == [
        "world",
        "body_1.body_1_hinge",
        "body_1.body_1_slide",
        "body_1.body_1_hinge_2",
        "body_1",
        "b",
        "c",
    ]
    assert [(each.name, each.type) for each in said.joints] == [
        ("body_1_hinge", "continuous"),
        ("body_1_slide", "prismatic"),
        ("body_1_hinge_2", "continuous"),
        ("body_1_fixed", "fixed"),
        ("b_free", "floating"),
        ("c_fixed", "fixed"),
    ]
    assert said.name == "test"
    assert all(each.initial is None for each in said.joints)


def test_shapes():
    text = world(
        '<geom type="plane" size="1 1 1"/>'
        '<body name="a"><joint/><geom type="box" size="1 2 3" name="g" rgba="1 0 0 1"/>'
        '<geom type="capsule" size="1 2" group="3" pos="1 2 3"/>'
        '<geom type="cylinder" size="1 2" contype="0" conaffinity="0" group="4"/>'
        '<geom type="ellipsoid" size="1 2 3" material="m" group="3"/><geom size="2"/></body>',
        before='<asset><material name="m" rgba="0.5 0.25 0 1" texture="t"/>'
        '<texture name="t" type="2d" file="no.png"/></asset>',
    )
    ground, a = read(text).links
    assert [(each.role, each.kind) for each in ground.shapes] == [
        ("visual", "plane"),
        ("collision", "plane"),
    ]
    assert [(each.role, each.kind, each.size, each.name, each.rgba) for each in a.shapes] == [
        ("visual", "box", (2, 4, 6), "g", (1, 0, 0, 1)),
        ("collision", "box", (2, 4, 6), "g", (1, 0, 0, 1)),
        ("collision", "capsule", (1, 4), "", None),
        ("visual", "cylinder", (1, 4), "", None),
        ("collision", "ellipsoid", (1, 2, 3), "", (0.5, 0.25, 0, 1)),
        ("visual", "sphere", (2,), "", None),
        ("collision", "sphere", (2,), "", None),
    ]
    assert a.shapes[2].origin.xyz == (1, 2, 3)


def test_actuators_are_kept_as_transmissions():
    text = world(
        *ROW,
        rest=FIXED + '<actuator><position name="p" joint="j" gear="7"/><motor tendon="t" gear="2"/>'
        '<adhesion body="a" gain="1" ctrlrange="0 1"/></actuator>',
    )
    with pytest.warns(DescriptionWarning, match="acts on what touches a body"):
        p, motor, adhesion = read(text).transmissions
    assert (p.name, p.type, p.joints[0].name, p.actuators[0].reduction) == ("p", "position", "j", 7)
    assert motor.name == "motor_1"
    assert [(each.name, each.reduction) for each in motor.joints] == [("j", 2.0), ("k", -1.0)]
    assert (adhesion.type, adhesion.joints) == ("adhesion", ())


def test_lines():
    text = '<mujoco>\n<worldbody>\n<body name="a">\n<joint\n name="j"/>\n<geom size="1"/>\n</body>'
    text += "\n</worldbody>\n</mujoco>"
    said = read(text)
    assert said.links[1].source.line == 3
    assert said.joints[0].source.line in (4, 5)
    assert said.links[1].inertial.source.element == "body 'a'"


FORCES = {
    "the spring of a free joint": world(body("a", joint("j", 'type="free" stiffness="3"'))),
    "which is slack from 0.1 to 0.2": world(
        *ROW, rest=FIXED.replace('name="t"', 'name="t" stiffness="2" springlength="0.1 0.2"')
    ),
    "a tendon's force that is not straight": world(
        *SITES,
        '<site name="w"/>',
        rest=ROD.replace('name="r"', 'name="r" stiffness="2"').replace(
            '<site site="t"/>', '<site site="t"/><site site="w"/>'
        ),
    ),
    "dry friction of a spatial tendon": world(
        *SITES, rest=ROD.replace('name="r"', 'name="r" frictionloss="2"')
    ),
    "gravity compensation": world(body("a", joint("j"), at='gravcomp="0.5"')),
    "fluid": world(body("a", joint("j")), before='<option density="1.2"/>'),
    "the limits of its length, -0.3 to 0.2, are not kept": world(
        *ROW, rest=FIXED.replace('name="t"', 'name="t" limited="true" range="-0.3 0.2"')
    ),
    "armature of a free joint": world(body("a", joint("j", 'type="free" armature="1"'))),
    "no joint separates": tied((body("a", joint("j"), body("b")),), '<weld body1="a" body2="b"/>'),
}


@pytest.mark.parametrize("message", FORCES)
def test_forces_that_nothing_applies_are_warned_of(message):
    with pytest.warns(DescriptionWarning) as caught:
        read(FORCES[message])
    assert any(message in each.message.message for each in caught)
    with pytest.raises(DescriptionError, match=message):
        read(FORCES[message], strict=True)


# ---- what is refused -----------------------------------------------------------------------------

REFUSED = {
    "not straight between two sites": tied(
        SITES,
        '\n<tendon tendon1="r"/>',
        ROD.replace('<site site="t"/>', '<geom geom="g"/><site site="t"/>').replace(
            "<tendon>", "<tendon>"
        ),
    ).replace("<worldbody>", '<worldbody><geom name="g" size="0.1"/>'),
    "spatial tendon to another": tied(SITES, '\n<tendon tendon1="r" tendon2="r"/>', ROD)
    .replace('tendon2="r"', 'tendon2="q"')
    .replace(
        "</tendon><equality>",
        '<spatial name="q"><site site="s"/><site site="t"/></spatial></tendon><equality>',
    ),
    "soft body": world(body("a", joint("j")), '\n<flexcomp name="f" type="grid"/>'),
    "not finite|finite number": world('\n<body name="a" pos="nan 0 0"/>'),
    "too large": world('\n<body name="a"><joint/><geom size="1e200"/></body>'),
    "axis too small": world(body("a", '\n<joint axis="0 0 0"/>')),
    "unrecognized attribute: 'damp'": world(body("a", '\n<joint damp="1"/>')),
    "larger than mjMINVAL": world('\n<body name="a"><joint/></body>'),
    "copies of elements": world(
        '\n<replicate count="1000000000"><body><joint/><geom size="1"/></body></replicate>'
    ),
    "takes its shape from one": world('<body><geom size="1">\n<plugin plugin="x"/></geom></body>'),
    "file of a <light>|file of a": world('<site\n file="/etc/passwd"/>'),
    "private character": world('\n<body name="\ue000"/>'),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused_with_the_line(message):
    with pytest.raises(DescriptionError, match=message) as caught:
        read(REFUSED[message])
    old = VERSION < (3, 6) and "MINVAL" in message  # MuJoCo did not name the element
    assert caught.value.line == (1 if old else 2)


def test_other_roots_and_formats():
    with pytest.raises(DescriptionError, match="no MJCF"):
        read("<robot name='r'><link name='a'/></robot>", format="mjcf")


def test_without_mujoco(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"pip install '?mujoco"):
        read(SMOOTH["hinge"])


# ---- files ---------------------------------------------------------------------------------------


@pytest.mark.skipif(VERSION < (3, 4), reason="attached models need a newer version")
@pytest.mark.parametrize("name", ["hand", ""])
def test_a_model_without_a_name_has_its_own(tmp_path, name):
    called = name or "MuJoCo Model"
    path = files(
        tmp_path,
        main_xml=world(
            body("a", joint("j"), f'<attach model="{called}" body="b" prefix="left_"/>'),
            before='<include file="parts/list.xml"/>',
        ),
        parts__list_xml='<m><asset><model file="file.xml"/></asset></m>',
        parts__file_xml=world(body("b", joint("k"))).replace(
            'model="test"', f'model="{name}"' if name else ""
        ),
    )
    model = rm.load(path)
    assert model.joint_names == ("j", "left_k")
    assert_smooth_dynamics(model, MujocoSide.of(path))


def test_plugins_are_passed_over_where_they_are_no_mechanics():
    rotor = 0.01 if VERSION >= (3, 7) else 0.0  # MuJoCo 3.7 begins to know actuators' armature
    word = f'armature="{rotor}"' if rotor else ""
    text = world(
        body("a", joint("j", 'armature="0.1"')),
        before='<extension><plugin plugin="mujoco.pid"><instance name="pid">'
        '<config key="kp" value="40.0"/></instance></plugin></extension>',
        rest='<actuator><plugin name="servo" joint="j" plugin="mujoco.pid" instance="pid" gear="7" '
        f'actdim="1" {word}/></actuator><sensor><plugin name="s" plugin="mujoco.sensor"/></sensor>',
    )
    (servo,) = read(text).transmissions
    assert (servo.name, servo.joints[0].name, servo.actuators[0].reduction) == ("servo", "j", 7)
    assert math.isclose(read(text).joints[0].armature, 0.1 + 49 * rotor)


def test_empty_numbers_are_as_if_they_were_not_there():
    """MuJoCo takes some that it requires out of nowhere, and may then never come back."""
    with pytest.warns(DescriptionWarning, match="pos is empty"):
        said = read(world(body("a", joint("j", 'pos=" "'))))
    assert len(said.joints) == 1
    with pytest.raises(DescriptionError, match=r"anchor|body1"):
        read(tied(TWO, '<connect body1="e" anchor=""/>'))


def test_mutations_are_read_or_refused():
    """No change of a word or a number brings anything but a description or a DescriptionError."""
    rng = np.random.default_rng(5)
    texts = [*SMOOTH.values(), *(text for text, _, _ in TIED.values())]
    odd = ["0", "-1", "1e308", "1e-320", "nan", "inf", "", "1 2", "world", "a", "ball", "mesh"]
    outcomes = set()
    for _ in range(300):
        text = texts[rng.integers(len(texts))]
        places = [found.span(1) for found in re.finditer(r'="([^"]*)"', text)]
        for _ in range(rng.integers(1, 3)):
            start, end = places[rng.integers(len(places))]
            if end <= len(text):
                text = text[:start] + odd[rng.integers(len(odd))] + text[end:]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DescriptionWarning)
            try:
                read(text)
                outcomes.add("read")
            except DescriptionError:
                outcomes.add("refused")
    assert outcomes == {"read", "refused"}


# ---- sites and cameras ---------------------------------------------------------------------------

FRAMES = """<mujoco model="m"><worldbody><camera name="look" pos="1 0 1" euler="0 45 0" fovy="30"/>
<body name="torso" pos="0 0 1"><freejoint name="free"/><geom size=".1" mass="1"/>
<site name="imu" pos=".1 .2 .3" euler="30 0 10"/>
<body name="leg" pos=".5 0 0"><joint name="hip" type="ball"/><geom size=".1" mass="1"/>
<body name="shank" pos="0 0 -.3"><joint name="knee" axis="0 1 0"/><geom size=".05" mass="1"/>
<site name="foot" pos="0 0 -.4"/><site name="torso" pos="1 0 0"/><site pos="2 0 0"/>
<camera name="eye" pos="0 .1 0" euler="0 0 20"/></body></body></body></worldbody></mujoco>"""


@pytest.mark.slow
def test_sites_and_cameras_are_frames_by_name() -> None:
    """Where MuJoCo has them; a link of the same name goes first."""
    model, mj = rm.load(FRAMES), mujoco.MjModel.from_xml_string(FRAMES)
    data, rng = mujoco.MjData(mj), np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    poses = {name: rm.frame_pose(model, q, name) for name in ("imu", "foot", "look", "eye")}
    for n, at in enumerate(q):
        data.qpos[:] = model.to_order("mujoco", at, np.zeros(model.nv))[0]
        mujoco.mj_forward(mj, data)
        for name, pose in poses.items():
            its = data.site(name) if name in ("imu", "foot") else data.camera(name)
            place, turn = (its.xpos, its.xmat)
            np.testing.assert_allclose(pose[n, :3, 3], place, rtol=0, atol=1e-14)
            np.testing.assert_allclose(pose[n, :3, :3].ravel(), turn, rtol=0, atol=1e-14)
    assert model.frame("torso").body == 0
    assert model.frame("torso_2").body == model.frame("foot").body
    assert rm.jacobian(model, q[0], "foot").shape == (6, model.nv)
    with pytest.raises(rm.errors.UnknownNameError, match="did you mean 'foot'"):
        rm.frame_pose(model, q[0], "fot")


@pytest.mark.parametrize("form", ["xml", "urdf", "sdf", "usda"])
def test_frames_are_written_and_read_back(form: str, tmp_path: Path) -> None:
    model, path = rm.load(FRAMES), tmp_path / f"robot.{form}"
    writers = {
        "xml": rm.write_mjcf,
        "urdf": rm.write_urdf,
        "sdf": rm.write_sdf,
        "usda": rm.write_usd,
    }
    writers[form](model, path)
    again = rm.load(path)
    assert {frame.name for frame in again.frames} == {frame.name for frame in model.frames}
    q = model.neutral()
    for name in ("imu", "foot", "eye", "look"):
        pose = rm.frame_pose(again, again.neutral(), name)
        np.testing.assert_allclose(pose, rm.frame_pose(model, q, name), rtol=0, atol=1e-9)
    if form == "xml":
        assert mujoco.MjModel.from_xml_path(str(path)).nsite == 5


@pytest.mark.parametrize("ends", ["1 -1", "0.5 0.5"])
def test_ranges_with_swapped_ends_are_warned_of(ends: str) -> None:
    """MuJoCo takes them for none."""
    text = FRAMES.replace('name="knee" axis', f'name="knee" range="{ends}" axis')
    with pytest.warns(DescriptionWarning, match=r"joint 'knee': its range is .* unlimited"):
        model = rm.load(text)
    assert not mujoco.MjModel.from_xml_string(text).jnt_limited[-1]
    assert math.isinf(next(joint.upper for joint in model.joints if joint.name == "knee"))
    rm.load(text.replace('range="1 -1"', 'range="-1 1"').replace('range="0.5 0.5"', ""))
