"""MJCF that is written: MuJoCo loads it, and it reads back as the same robot."""

import io
import math
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pytest
from agreement import in_world, same_robot, spanning
from cases import few
from hypothesis import assume, given, settings
from mechanisms import KINDS, mechanisms, random_mechanism
from mujoco_oracle import (
    MujocoSide,
    assert_forward_dynamics,
    assert_smooth_dynamics,
    motions,
)
from shipped_robots import DISTINCT
from texts import four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.dynamics.lumped import approximate
from robomodel.mobility import RigidError
from robomodel.model.build import build
from robomodel.parsers import read
from robomodel.parsers.mjcf.writer import to_mjcf
from robomodel.vocabulary.inertias import physical_inertias

NUMPY = {"backend": "numpy"}  # no kernels are made
UNSAYABLE = {"jvrc1": "rotor", "tello": "crank", "tello_with_arms": "crank"}
"""What MuJoCo takes no body for: rotors such as no body is, and massless cranks."""


def same_coordinates(text, model):
    """The model of a text with the independent coordinates of another one."""
    chosen = [
        name
        for cluster in model.clusters
        if cluster.kind != "joint"
        for name in cluster.independent
    ]
    known = set(rm.load(text).dof_names)
    return rm.load(text, independent=chosen if chosen and known.issuperset(chosen) else None)


def written(model):
    text, lost = to_mjcf(model.description)
    assert lost == []
    mujoco.MjModel.from_xml_string(text)
    return text


def spanning_tree(model):
    """The model without loops and couplings, as MuJoCo's smooth dynamics is."""
    said = model.description
    joints = tuple(replace(joint, mimic=None) for joint in said.joints)
    return build(replace(said, loops=(), couplings=(), joints=joints))


@pytest.mark.slow_cases("mini_cheetah")
@pytest.mark.parametrize(
    "name",
    few(
        sorted(set(rm.robots.names()) - set(UNSAYABLE)),
        "belt_leg",
        "four_bar",
        "mini_cheetah",
        "six_bar",
    ),
)
def test_shipped_robots(name):
    """MuJoCo has their spanning trees, and ties them as we do."""
    model = rm.robots.load(name)
    text = written(model)
    side = MujocoSide.of(text)
    assert_smooth_dynamics(spanning_tree(model), side, states=2, tolerance=1e-11)
    assert_same_constraints(model, side)


def assert_same_constraints(model, side):
    """MuJoCo sees no gap where ours are closed, and forbids all motions but ours."""
    rng = np.random.default_rng(4)
    for _ in range(2):
        q = model.random_configuration(rng)
        zero = np.zeros(model.nv)
        gaps, rows = side.equalities(in_world(model, spanning(model, q, zero, zero)))
        T = motions(model, side, q)
        assert np.max(np.abs(gaps), initial=0.0) < 1e-10
        assert np.max(np.abs(rows @ T), initial=0.0) < 1e-9 * np.max(np.abs(T))
        assert np.linalg.matrix_rank(rows, tol=1e-7) == side.model.nv - model.nv


KNOWS_VELOCITY_PRODUCTS = int(mujoco.__version__.split(".")[0]) >= 4  # of constraints
YIELDING = {  # how far MuJoCo's accelerations are from the exact ones, at most; relative
    "belt_leg": 3e-4,
    "crank_rocker": 1e-4,
    "five_bar": 1e-4,
    "four_bar": 5e-4,
    "mini_cheetah": 3e-4,
    "mit_humanoid": 5e-4,
    "mit_humanoid_leg": 1e-3,
    "six_bar": 1e-4,
    "teleop_arm": 2e-2,
}


@pytest.mark.slow_cases("mit_humanoid")
@pytest.mark.parametrize("name", YIELDING)
def test_constraints_yield_little(name):
    model = rm.robots.load(name)
    text = written(model)
    assert "yield" in text
    side = MujocoSide.of(text)
    side.model.opt.iterations, side.model.opt.tolerance = 500, 1e-15
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = model.random_configuration(rng)
        v, tau = rng.normal(size=(2, model.nv))
        v = v if KNOWS_VELOCITY_PRODUCTS else 0.0 * v
        T = motions(model, side, q)
        state = spanning(model, q, v, rm.aba(model, q, v, tau, backend="numpy"))
        side.place(in_world(model, state))
        exact = side.data.qacc.copy()
        side.data.qfrc_applied[:] = np.linalg.lstsq(T.T, tau, rcond=None)[0]
        mujoco.mj_forward(side.model, side.data)
        assert np.max(np.abs(side.data.qacc - exact)) < YIELDING[name] * np.max(np.abs(exact))


def test_racks_are_held_by_their_pinions():
    """However few metres a turn is: equalities of joints would be softer by its square."""
    pinion = """<inertial><mass value="0.05"/><inertia ixx="7e-6" iyy="7e-6" izz="1.1e-5" ixy="0"
ixz="0" iyz="0"/></inertial>"""
    model = rm.load(
        robot(
            link("pinion", pinion), link("left"), link("right"),
            joint("turn", "base", "pinion"),
            joint("l", "base", "left", kind="prismatic", axis="1 0 0",
                  more='<mimic joint="turn" multiplier="0.009"/>'),
            joint("r", "base", "right", kind="prismatic", axis="-1 0 0",
                  more='<mimic joint="turn" multiplier="0.009"/>'),
        )
    )  # fmt: skip
    text = written(model)
    same_robot(model, rm.load(text))
    found = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(found)
    data.qfrc_applied[0] = 0.02
    mujoco.mj_forward(found, data)
    inertia = 1.1e-5 + 2.0 * 0.009**2
    np.testing.assert_allclose(data.qacc, 0.02 / inertia * np.array([1, 0.009, 0.009]), rtol=1e-3)


def test_limits_without_room_between_them(tmp_path):
    """A range of one value is none in MuJoCo."""
    limit = '<limit lower="0.3" upper="0.3" effort="1" velocity="1"/>'
    model = rm.load(robot(link("a"), joint("j", "base", "a", kind="revolute", more=limit)))
    with pytest.raises(rm.DescriptionError, match="limits of the joint 'j', which leave no room"):
        rm.write_mjcf(model, tmp_path / "out.xml")


@pytest.mark.slow
@pytest.mark.parametrize("name", few(sorted(UNSAYABLE), "tello"))
def test_what_mujoco_takes_no_body_for_is_told_and_loads(name, tmp_path):
    model = rm.robots.load(name)
    with pytest.raises(rm.DescriptionError, match=UNSAYABLE[name]):
        rm.write_mjcf(model, tmp_path / "robot.xml")
    lost = rm.write_mjcf(model, tmp_path / "robot.xml", drop=True)
    assert all(UNSAYABLE[name] in each for each in lost)
    text = (tmp_path / "robot.xml").read_text()
    other, side = same_coordinates(text, model), MujocoSide.of(text)
    assert other.nv == model.nv
    assert_same_constraints(model, side)
    if "tello" in name:  # massless cranks: a picogram changes nothing that is seen
        same_robot(model, other, states=1)


@pytest.mark.slow_cases("belt_leg")
@pytest.mark.filterwarnings("ignore:.*the tree will not do")
@pytest.mark.parametrize("name", few([x for x in DISTINCT if x != "five_bar"], "belt_leg"))
def test_approximate_files_are_the_approximate_method_in_mujoco(name):
    """But for `five_bar`, whose tree has joints that follow, which MuJoCo holds softly."""
    model = rm.robots.load(name)
    stream = io.StringIO()
    assert rm.write_mjcf(model, stream, approximate=True) == ()
    side = MujocoSide.of(stream.getvalue())
    assert side.model.neq == 0
    assert side.model.nv == model.nv
    assert_smooth_dynamics(model, side, method="tendons", states=2, tolerance=1e-11)
    assert_forward_dynamics(model, side, method="tendons", states=2, tolerance=1e-11)


CASSIE = (
    Path(next(iter(find_spec("cmeel").submodule_search_locations)) if find_spec("cmeel") else "")
    / "../cmeel.prefix/share/example-robot-data/robots/cassie_description/robots"
)


@pytest.mark.slow
@pytest.mark.skipif(not CASSIE.is_dir(), reason="example-robot-data is not installed")
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("file", ["cassie.sdf", "cassie_v2.sdf", "cassie_wo_gearbox_spring.sdf"])
def test_cassie(file):
    """All but its meshes, which are named by model."""
    model = rm.load(CASSIE / file)
    text, lost = to_mjcf(model.description)
    assert all("the mesh 'model://" in each for each in lost)
    mujoco.MjModel.from_xml_string(text)
    assert same_coordinates(text, model).nv == model.nv
    if file != "cassie.sdf":
        same_robot(model, same_coordinates(text, model), states=2)
    side = MujocoSide.of(to_mjcf(approximate(model))[0])
    assert_smooth_dynamics(model, side, method="approximate", states=1, tolerance=1e-11)
    assert_forward_dynamics(model, side, method="approximate", states=1, tolerance=1e-10)


LOOPS = {"universal": ["universal"], "prismatic": ["fixed"], "planar": ["fixed"]}


@pytest.mark.slow_cases("planar")
@pytest.mark.parametrize("kind", few(LOOPS, "planar"))
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_loops_that_mujoco_has_no_constraint_for(kind):
    """A universal loop reads back as one; a slider takes half of a link for a body of its own."""
    links = "".join(
        f'<link name="{name}"><inertial><origin xyz="0.1 0 0.05"/><mass value="2"/><inertia '
        'ixx="0.03" iyy="0.04" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name in "abc"
    )
    joints = "".join(
        f'<joint name="j{child}" type="{type_}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.3 0.1 0" rpy="0.2 0.1 0"/></joint>'
        for parent, child, type_ in (
            ("w", "a", "floating"),
            ("a", "b", "spherical"),
            ("a", "c", "floating"),
        )
    )
    model = rm.load(
        f'<robot name="r"><link name="w"/>{links}{joints}<loop name="l" type="{kind}"><predecessor '
        'link="b"><origin xyz="0.2 0 0.1" rpy="0 0.3 0"/></predecessor><successor link="c"/><axis '
        'xyz="1 2 0"/></loop></robot>'
    )
    text = written(model)
    other = same_coordinates(text, model)
    assert [loop.type for loop in other.description.loops] == LOOPS[kind]
    assert math.isclose(other.mass, 6.0)
    if kind == "universal":
        same_robot(model, other)


ODD = """<robot name="odd"><link name="base"/>
<link name="body"><inertial><mass value="3"/>
<inertia ixx="0.03" iyy="0.04" izz="0.05" ixy="0.002" ixz="0" iyz="0.001"/></inertial></link>
<joint name="free" type="floating"><parent link="base"/><child link="body"/></joint>
<link name="arm"><inertial><origin xyz="0.1 0.2 0"/><mass value="1"/>
<inertia ixx="0.002" iyy="0.003" izz="0.0004" ixy="{ixy}" ixz="0" iyz="0.0002"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="body"/><child link="arm"/>
<origin xyz="0.1 0 0" rpy="0.3 0.4 0.5"/><axis xyz="{axis}"/></joint>
<link name="rotor"><inertial><mass value="0.1"/>
<inertia ixx="0.0001" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="weld" type="fixed"><parent link="arm"/><child link="rotor"/>
<origin xyz="0 0.1 0.2"/></joint></robot>"""


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_what_lies_along_a_hinge_is_lent():
    """An arm such as no body is can be written where its hinge's axis is the right one."""
    model = rm.load(ODD.format(ixy="-0.0005", axis="0 1 0"))
    text = written(model)
    same_robot(model, rm.load(text))
    assert_smooth_dynamics(model, MujocoSide.of(text), tolerance=1e-12)
    (lost,) = to_mjcf(rm.load(ODD.format(ixy="-0.0005", axis="0 0 1")).description)[1]
    assert "principal moments" in lost
    assert "'arm'" in lost


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_what_turns_about_one_direction_lends_what_it_needs_no_more():
    """A turntable needs its moment about its hinge only, and lends more than it has across."""
    arm = ODD[ODD.index('<link name="arm">') : ODD.index('<joint name="hinge"')]
    table = """<inertial><mass value="2"/>
<inertia ixx="0.003" iyy="0.0075" izz="0.005" ixy="0" ixz="0" iyz="0"/></inertial>"""
    model = rm.load(
        robot(
            link("table", table), arm.format(ixy="-0.0005"),
            joint("turn", "base", "table", axis="0 0 1"),
            joint("lift", "table", "arm", "0.1 0 0.2", axis="0 1 0"),
        )
    )  # fmt: skip
    text = written(model)
    assert_smooth_dynamics(model, MujocoSide.of(text), tolerance=1e-12)


@pytest.mark.parametrize(
    ("xyz", "ixy"),
    [("0.1 0.2 0.3", 1e-9), ("3e-7 0 0", 0.0), ("3e-7 0 0", 1e-9)],
)
def test_inertias_next_to_the_axes_of_links_are_exact(xyz, ixy):
    """MuJoCo takes frames that differ by a millionth for the same, and so loses a millionth."""
    text = f"""<robot name="r"><link name="base"/><link name="body"><inertial><origin xyz="{xyz}"/>
<mass value="3"/><inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="{ixy}" ixz="0" iyz="0"/></inertial>
</link><joint name="free" type="floating"><parent link="base"/><child link="body"/></joint>
</robot>"""
    model = rm.load(text)
    out = written(model)
    same_robot(model, rm.load(out))
    assert_smooth_dynamics(model, MujocoSide.of(out), tolerance=1e-14)


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("ixz", ["-0.0002", "0.0002"])
def test_what_no_rod_along_the_hinge_mends_is_not_lent(ixz):
    """Flat along x, with a product of x and z, which no body has."""
    arm = ODD[ODD.index('<link name="arm">') : ODD.index('<joint name="hinge"')]
    flat = f"""<link name="arm"><inertial><mass value="1"/>
<inertia ixx="0.001" iyy="0" izz="0.001" ixy="0" ixz="{ixz}" iyz="0"/></inertial></link>"""
    text = ODD.replace(arm, flat).partition('<link name="rotor">')[0] + "</robot>"
    description = read(text.format(axis="0 0 1"))
    assert physical_inertias(description) == description
    (lost,) = to_mjcf(description)[1]
    assert "principal moments" in lost


@pytest.mark.slow_cases("0 1 0")
@pytest.mark.parametrize("axis", ["0 1 0", "0.6 0.8 0"])
def test_rotors_without_a_mass_are_written(axis):
    """The moments across its axis that a rotor lacks come through a thin link from what is heavier.

    Where the link's own hinge is not parallel, they are told in a warning.
    """
    thin = """<inertial><origin xyz="0 0 -0.1"/><mass value="0.2"/><inertia ixx="1e-3" iyy="1e-3"
izz="2e-5" ixy="0" ixz="0" iyz="0"/></inertial>"""
    model = rm.load(
        robot(
            link("trunk"), link("shank", thin), link("wheel"),
            joint("hip", "base", "trunk", axis="0 1 0"),
            joint("knee", "trunk", "shank", "0 0 -0.3", axis="0 1 0"),
            joint("drive", "shank", "wheel", "0 0 -0.2", axis=axis,
                  more='<rotor inertia="6e-5" ratio="5"/>'),
        ).replace('<link name="base"/>', link("base")),
        floating_base=True,
    )  # fmt: skip
    if axis == "0 1 0":
        text = written(model)
        same_robot(model, rm.load(text))
        assert_smooth_dynamics(model, MujocoSide.of(text), tolerance=1e-12)
    else:
        with pytest.warns(rm.DescriptionWarning, match="0, 0, 6e-05 of the link 'drive_rotor'"):
            written(model)


UNSAID = {
    "which freedoms of the planar joint 'j'": """<robot name="r"><link name="a"/>{b}{c}
<joint name="j" type="planar" independent="true true false"><parent link="a"/><child link="b"/>
</joint><joint name="k" type="continuous"><parent link="a"/><child link="c"/></joint></robot>""",
    "damping, friction and spring of the loop 'l'": """<robot name="r"><link name="a"/>{b}{c}
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>
<joint name="k" type="continuous"><parent link="a"/><child link="c"/></joint>
<loop name="l" type="revolute"><predecessor link="b"/><successor link="c"/>
<dynamics damping="1"/></loop></robot>""",
    "that the link 'd' moves without a mass": """<robot name="r"><link name="a"/>{b}{c}
<link name="d"><inertial><mass value="0"/>
<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>
<joint name="k" type="fixed"><parent link="a"/><child link="c"/></joint>
<joint name="i" type="continuous"><parent link="b"/><child link="d"/></joint></robot>""",
}


@pytest.mark.parametrize("words", UNSAID)
def test_what_mjcf_has_no_word_for(words):
    text = UNSAID[words].format(b=LINK.format("b"), c=LINK.format("c"))
    (lost,) = to_mjcf(read(text))[1]
    assert words in lost


def test_massless_links_may_carry_others():
    """A link without mass may move to which one with a mass is fixed, perhaps by others."""
    text = """<robot name="r"><link name="a"/><link name="b"/><link name="c"/>{d}
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>
<joint name="k" type="fixed"><parent link="b"/><child link="c"/></joint>
<joint name="l" type="fixed"><parent link="c"/><child link="d"/></joint></robot>"""
    written(rm.load(text.format(d=LINK.format("d"))))


@pytest.mark.slow_cases("four_bar", "belt", "coupling")
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("kind", few(KINDS, "belt", "coupling", "four_bar"))
def test_random_mechanisms(kind):
    check_mechanism(random_mechanism(np.random.default_rng(0), [kind]), 0)


@pytest.mark.tables
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@settings(deadline=None, max_examples=15)
@given(mechanisms())
def test_more_mechanisms(mechanism):
    assume(mechanism.mobility)
    try:
        rm.load(mechanism.text)
    except RigidError:  # a gear and a rod between the same two bodies, beside joints that move
        assume(False)
    check_mechanism(mechanism, 0)


def check_mechanism(mechanism, seed):
    model = rm.load(mechanism.text)
    if not model.nv:  # it moves with its base only
        return
    text, lost = to_mjcf(model.description)
    mujoco.MjModel.from_xml_string(text)
    assert all("without a mass" in each for each in lost)
    if lost:
        return
    same_robot(model, same_coordinates(text, model), tolerance=2e-11, seed=seed)
    if all(joint.type not in ("planar", "screw", "floating") for joint in model.joints):
        check_approximate(model)


def check_approximate(model):
    try:
        text, lost = to_mjcf(approximate(model))
    except ValueError:  # the cluster moves in single freedoms of its joints
        return
    assert lost == []
    assert_smooth_dynamics(model, MujocoSide.of(text), method="approximate", states=1)


# -- actuators -----------------------------------------------------------------------------------

ARM = """<robot name="arm"><link name="base"/>{links}{joints}{transmissions}</robot>"""
LINK = """<link name="{}"><inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"
ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><axis xyz="0 1 0"/>
{}</joint>"""
LIMIT = '<limit lower="-1" upper="1" effort="{}" velocity="4"/>'


def arm(*limits, transmissions=""):
    """A chain of joints a, b, c ... with these limits."""
    names = "abcdef"[: len(limits)]
    above = ["base", *(f"link_{name}" for name in names)]
    return ARM.format(
        links="".join(LINK.format(f"link_{name}") for name in names),
        joints="".join(
            JOINT.format(
                name, "revolute" if "lower" in limit else "continuous", up, f"link_{name}", limit
            )
            for name, up, limit in zip(names, above, limits, strict=False)
        ),
        transmissions=transmissions,
    )


def transmission(kind, *ends):
    return f'<transmission name="drive"><type>{kind}</type>{"".join(ends)}</transmission>'


def motor(name, reduction=""):
    return f'<actuator name="{name}">{reduction}</actuator>'


def driven(name, reduction=""):
    return f'<joint name="{name}">{reduction}</joint>'


def reduction(value):
    return f"<mechanicalReduction>{value}</mechanicalReduction>"


def actuators(text, **options):
    """What each actuator does to the joints a, b ... at a control of one, and its range."""
    model = rm.load(text)
    stream = io.StringIO()
    assert rm.write_mjcf(model, stream, **options) == ()
    its = mujoco.MjModel.from_xml_string(stream.getvalue())
    data = mujoco.MjData(its)
    its.jnt_actfrclimited[:] = its.actuator_forcelimited[:] = 0
    found = {}
    for number in range(its.nu):
        data.ctrl[:] = 0.0
        data.ctrl[number] = 1.0
        limits = its.actuator_ctrlrange[number].tolist()
        its.actuator_ctrllimited[:] = 0
        mujoco.mj_forward(its, data)
        found[its.actuator(number).name] = (data.qfrc_actuator.tolist(), limits)
    return found


@pytest.mark.slow_cases("j_rocker", "j_crank", "j_coupler")
@pytest.mark.parametrize("at", ["j_crank", "j_coupler", "j_rocker"])
def test_rotors_in_linkages(at):
    """Without a mass of their own, on carriers that move or not: nothing is lost."""
    rotor = '<rotor inertia="1e-4" ratio="-9"/>'
    curve = '<motor effort="2" stall_torque="3" no_load_speed="9"/>'
    start = f'<joint name="{at}" type="continuous">'
    model = rm.load(four_bar().replace(start, start + rotor + curve))
    assert len(model.actuators) == 1
    stream = io.StringIO()
    assert rm.write_mjcf(model, stream) == ()
    other = same_coordinates(stream.getvalue(), model)
    same_robot(model, other, states=2, tolerance=1e-11)
    (one,), (again,) = model.actuators, other.actuators
    assert (one.name, one.effort_limit, one.stall_torque) == (
        again.name, again.effort_limit, again.stall_torque)  # fmt: skip
    assert 'forcerange="-2 2"' in stream.getvalue()


def test_joints_of_known_effort_get_motors():
    text = arm(LIMIT.format(30), "", LIMIT.format(0))
    assert actuators(text) == {"a": ([1, 0, 0], [-30, 30])}
    assert actuators(text, approximate=True) == {"a": ([1, 0, 0], [-30, 30])}


GEARED = [*sorted(set(rm.robots.names()) - set(UNSAYABLE)), "a motor with a curve"]


@pytest.mark.slow_cases("mit_humanoid_leg")
@pytest.mark.parametrize("name", GEARED)
def test_exact_files_have_the_actuators(name):
    """Their controls push in MuJoCo as ours do, in units of the rotor; read back, they are ours."""
    if name in rm.robots.names():
        model = rm.robots.load(name)
    else:
        curve = '<motor effort="2" stall_torque="3" no_load_speed="200"/>'
        model = rm.load(
            arm(LIMIT.format(30) + '<rotor inertia="1e-4" ratio="-9"/>' + curve, "", "")
        )
        assert len(model.actuators) == 1
    stream = io.StringIO()
    rm.write_mjcf(model, stream)
    text = stream.getvalue()
    side = MujocoSide.of(text)
    T = motions(model, side, model.neutral())
    data = mujoco.MjData(side.model)
    side.model.actuator_ctrllimited[:] = side.model.actuator_forcelimited[:] = 0
    columns = []
    for number in range(side.model.nu):
        data.ctrl[:] = 0.0
        data.ctrl[number] = 1.0
        mujoco.mj_forward(side.model, data)
        columns.append(T.T @ data.qfrc_actuator)
    B = rm.actuator_map(model, model.neutral())
    assert side.model.nu == len(model.actuators)
    np.testing.assert_allclose(np.reshape(columns, B.T.shape), B.T, atol=1e-9)
    again = same_coordinates(text, model)
    q = again.neutral()
    np.testing.assert_allclose(rm.actuator_map(again, q), rm.actuator_map(model, q), atol=1e-12)
    for one, other in zip(again.actuators, model.actuators, strict=True):
        for what in ("name", "joint", "effort_limit", "velocity_limit", "stall_torque"):
            assert getattr(one, what) == getattr(other, what)


def test_transmissions_are_motors_with_their_gears():
    ends = driven("a"), motor("m", reduction(-50))
    text = arm(LIMIT.format(30), LIMIT.format(20), transmissions=transmission("S", *ends))
    drive = ([-50, 0], [-0.6, 0.6])
    assert actuators(text) == actuators(text, approximate=True) == {"m": drive}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("DifferentialTransmission", {"m": [12, -9], "n": [20, 15]}),
        ("HalfDifferentialTransmission", {"m": [12, 0], "n": [20, -15]}),
        ("FourBarLinkageTransmission", {"m": [12, 0], "n": [5, -15]}),
    ],
)
def test_transmissions_of_two_motors_are_motors_on_tendons(kind, expected):
    """By virtual work: what the actuators turn as the joints do, they do to the joints."""
    ends = (
        driven("a", "<role>joint1</role>" + reduction(4)),
        driven("b", "<role>joint2</role>" + reduction(-3)),
        motor("m", "<role>actuator1</role>" + reduction(3)),
        motor("n", "<role>actuator2</role>" + reduction(5)),
    )
    text = arm(LIMIT.format(30), LIMIT.format(20), transmissions=transmission(kind, *ends))
    found = actuators(text)
    assert {name: force for name, (force, _) in found.items()} == expected
    assert {**found} == actuators(text, approximate=True)


def test_transmissions_of_no_known_kind():
    """An exact file cannot say them; in an open tree their joints get motors, with a warning."""
    ends = driven("a"), driven("b"), motor("m"), motor("n")
    text = arm(LIMIT.format(30), LIMIT.format(20), transmissions=transmission("Wrist", *ends))
    with pytest.raises(rm.DescriptionError, match="the transmission 'drive'"):
        rm.write_mjcf(rm.load(text), io.StringIO())
    with pytest.warns(rm.DescriptionWarning, match="'Wrist' is not written"):
        found = actuators(text, approximate=True)
    assert found == {"a": ([1, 0], [-30, 30]), "b": ([0, 1], [-20, 20])}


@pytest.mark.slow
def test_the_model_s_choice_of_independent_joints_is_said():
    """MJCF has no screws: beside a hinge and a slide a reader would choose another joint."""

    def body(name):
        return f"""<link name="{name}"><inertial><origin xyz="0.1 0.2 -0.3"/><mass value="1"/>
          <inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial></link>"""

    def joint(name, kind, parent, child, xyz, axis, more=""):
        return f"""<joint name="{name}" type="{kind}">
          <parent link="{parent}"/><child link="{child}"/>
          <origin xyz="{xyz}"/><axis xyz="{axis}"/>{more}</joint>"""

    model = rm.load(f"""<robot name="press"><link name="base"/>{body("a")}{body("b")}{body("c")}
      {joint("turn", "continuous", "base", "a", "0.4 0.3 -0.5", "0 1 0")}
      {joint("nut", "screw", "a", "b", "-0.5 0.2 -0.3", "0 0 1", '<pitch value="0.05"/>')}
      {joint("tip", "continuous", "b", "c", "0.4 0 -0.2", "0 1 0")}
      <loop name="rod" type="rod">
        <predecessor link="base"><origin xyz="-0.5 -0.4 0.2"/></predecessor>
        <successor link="c"><origin xyz="0.1 0.1 -0.1"/></successor></loop></robot>""")
    stream = io.StringIO()
    rm.write_mjcf(model, stream)
    read = rm.load(stream.getvalue())
    assert read.dof_names == model.dof_names == ("nut", "tip")
    q = model.random_configuration(3)
    there = read.configuration(model.joint_positions(q))
    np.testing.assert_allclose(
        rm.crba(read, there, **NUMPY), rm.crba(model, q, **NUMPY), rtol=1e-10
    )


def test_the_choice_among_joints_of_a_belt_is_said():
    """Two rotors at different links follow sums of joints: any three of the five could lead."""

    def link(name):
        return f"""<link name="{name}"><inertial><origin xyz="0 0 -0.1"/><mass value="1"/>
          <inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial></link>"""

    def hinge(name, parent, child):
        return f"""<joint name="{name}" type="continuous"><parent link="{parent}"/>
          <child link="{child}"/><origin xyz="0 0.1 -0.3"/><axis xyz="0 1 0"/></joint>"""

    def belt(name, rotor, ratio):
        return f"""<coupling name="{name}"><predecessor link="foot"/><successor link="{rotor}"/>
          <ratio value="{ratio}"/></coupling>"""

    links = "".join(map(link, ("base", "thigh", "shin", "foot", "rotor1", "rotor2")))
    model = rm.load(f"""<robot name="leg">{links}{hinge("hip", "base", "thigh")}
      {hinge("knee", "thigh", "shin")}{hinge("ankle", "shin", "foot")}
      {hinge("motor1", "base", "rotor1")}{hinge("motor2", "thigh", "rotor2")}
      {belt("long", "rotor1", 6)}{belt("short", "rotor2", -5)}</robot>""")
    stream = io.StringIO()
    rm.write_mjcf(model, stream)
    assert rm.load(stream.getvalue()).dof_names == model.dof_names == ("hip", "knee", "ankle")


@pytest.mark.slow
def test_the_choice_among_freedoms_of_a_held_base_is_said():
    """A planar loop and a rod to the world: some freedoms of the base lead, others follow."""

    def link(name):
        return f"""<link name="{name}"><inertial><origin xyz="0.1 0.2 -0.1"/><mass value="1"/>
          <inertia ixx="0.03" iyy="0.04" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>"""

    def joint(name, kind, parent, child, xyz, more=""):
        return f"""<joint name="{name}" type="{kind}"><parent link="{parent}"/>
          <child link="{child}"/><origin xyz="{xyz}"/>{more}</joint>"""

    def loop(name, kind, link, at, to, more=""):
        return f"""<loop name="{name}" type="{kind}">
          <predecessor link="world"><origin xyz="{at}"/></predecessor>
          <successor link="{link}"><origin xyz="{to}"/></successor>{more}</loop>"""

    turn = '<axis xyz="0 1 0"/><limit lower="-3" upper="3"/><initial position="0.3"/>'
    slide = '<axis xyz="0.6 0.8 0"/><limit lower="-3" upper="3"/><initial position="-0.2"/>'
    model = rm.load(f"""<robot name="held"><link name="world"/>
      {link("trunk")}{link("arm")}{link("slider")}{link("hand")}
      {joint("flight", "floating", "world", "trunk", "0 0 0")}
      {joint("turn", "revolute", "trunk", "arm", "0.2 0 0", turn)}
      {joint("slide", "prismatic", "arm", "slider", "0 0 -0.3", slide)}
      {joint("wrist", "spherical", "slider", "hand", "-0.2 0 0")}
      {loop("table", "planar", "hand", "0.1 0.2 -0.5", "0 0 -0.3", '<axis xyz="0 0.6 0.8"/>')}
      {loop("tether", "rod", "trunk", "1 0 0", "0 0.1 0")}</robot>""")
    assert 0 < sum(name.startswith("flight.") for name in model.dof_names) < 6
    stream = io.StringIO()
    rm.write_mjcf(model, stream)
    read = rm.load(stream.getvalue())
    assert read.dof_names == model.dof_names
    q = model.random_configuration(3)
    there = read.configuration({**model.joint_positions(q), "flight": q[:7]})
    np.testing.assert_allclose(
        rm.crba(read, there, **NUMPY), rm.crba(model, q, **NUMPY), rtol=0, atol=1e-10
    )


def test_shapes_that_are_points_are_left_out() -> None:
    """Dummies of exporters have boxes of zero size, which nobody sees or touches."""
    geometry = '<visual><geometry><box size="0 0 0"/></geometry></visual>'
    text = (
        f'<robot name="r"><link name="base"/><link name="l">{geometry}<inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="l"/>'
        '<axis xyz="0 0 1"/></joint></robot>'
    )
    stream = io.StringIO()
    rm.write_mjcf(rm.load(text), stream)
    assert 'type="box"' not in stream.getvalue()


@pytest.mark.parametrize("kind", ["revolute", "spherical"])
def test_tolerances_of_loops_are_kept(kind, tmp_path):
    """A loop that stays open by 2 mm within its tolerance is read back as it was written."""
    more = '<axis xyz="0 0 1"/>' if kind == "revolute" else ""
    closing = loop("closing", kind, "coupler", "rocker", "1 0 0.002", "0.7 0 0", more)
    model = rm.load(four_bar(closing=closing), tolerance=0.004)
    rm.write_mjcf(model, tmp_path / "a.xml")
    again = rm.load(tmp_path / "a.xml")
    assert [each.tolerance for each in again.description.loops] == [0.004]
    assert again.nv == model.nv == 1
