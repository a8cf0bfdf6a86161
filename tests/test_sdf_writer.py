"""The SDF writer: what it writes reads back as the same mechanism, loops, gears and all."""

import io
import warnings

import numpy as np
import pytest
from agreement import same_robot
from cases import few
from lxml import etree
from mechanisms import KINDS, random_mechanism
from sdf_texts import CASSIE, DATA, joint, link, sdf
from shipped_robots import DISTINCT

import robomodel as rm
from robomodel.description import Mimic
from robomodel.errors import DescriptionError
from robomodel.model import Model, build
from robomodel.opentree.tree import TreeOptions, written_tree
from robomodel.parsers import read
from robomodel.parsers.sdf.writer import to_sdf
from robomodel.vocabulary.xml import DRAKE
from robomodel.writing import shown_positions

NUMPY = {"backend": "numpy"}  # no kernels are made


def again(model: Model, *, chosen: bool = False) -> Model:
    """What is read of what is written of a model; ``chosen``: told its independent joints."""
    text, lost = to_sdf(model.description, shown_positions(model.description))
    assert lost == []
    names = [name for each in model.clusters if each.kind != "joint" for name in each.independent]
    found = build(read(text), independent=(names or None) if chosen else None)
    assert len(found.loops) == len(model.loops)
    assert len(found.couplings) == len(model.couplings)
    assert sorted(found.joint_names) == sorted(model.joint_names)  # rotors' too
    return found


def written(model, **options):
    stream = io.StringIO()
    assert rm.write_sdf(model, stream, **options) == ()
    return stream.getvalue()


@pytest.mark.slow_cases("five_bar", "belt_leg")
@pytest.mark.filterwarnings("ignore:.*reflected inertia between joints")
@pytest.mark.filterwarnings("ignore:.*has moments of inertia but no mass")
@pytest.mark.filterwarnings("ignore:.*the tree will not do")
@pytest.mark.parametrize(
    "name",
    few(DISTINCT, "belt_leg", "five_bar"),
)
def test_open_trees_of_shipped_robots(name):
    model = rm.robots.load(name)
    stream = io.StringIO()
    rm.write_sdf(model, stream, approximate=True)
    expected = written_tree(model, TreeOptions(tendons=False))
    found = rm.load(stream.getvalue())
    assert found.loops == found.couplings == ()
    same_robot(expected, found)
    armature = {each.name: each.armature for each in expected.joints}
    assert {each.name: each.armature for each in found.joints} == pytest.approx(armature, rel=1e-15)


def test_what_sdf_cannot_say_is_refused_or_dropped():
    model = rm.robots.load("teleop_arm")
    stream = io.StringIO()
    with pytest.raises(DescriptionError, match=r"'wrist-roll-belt' of 4 joints.*drop=True"):
        rm.write_sdf(model, stream)
    assert not stream.getvalue()
    (lost,) = rm.write_sdf(model, stream, drop=True)
    assert lost == "the coupling 'wrist-roll-belt' of 4 joints"
    names = {each.name for each in read(stream.getvalue()).couplings}
    assert "wrist-roll-belt" not in names


@pytest.mark.skipif(not CASSIE.is_dir(), reason="example-robot-data is not installed")
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize(
    "file",
    [
        pytest.param("cassie.sdf", marks=pytest.mark.slow),
        pytest.param("cassie_v2.sdf", marks=pytest.mark.slow),
        pytest.param("cassie_wo_gearbox_spring.sdf", marks=pytest.mark.slow),
    ],
)
def test_cassie(file):
    """Loops, and in one of them gears; and as open trees with the armature of rotors."""
    model = rm.load(CASSIE / file)
    same_robot(model, again(model), states=2)
    found = rm.load(written(model, approximate=True, followers=False))
    options = TreeOptions(followers=False, tendons=False)
    same_robot(written_tree(model, options), found, states=2)


UNSAYABLE = ("planar joint", "planar loop", "rod loop", " joints", "floating joint")
NEVER_SAID = ("coupling", "rod_four_bar", "rod", "ankle")  # of three joints, or with rods


def check_mechanisms(kind, count, seeds):
    """Of the mechanisms of a kind, the first ones that SDF can say; of others, what it cannot."""
    said = 0
    for seed in range(seeds):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        model = rm.load(random_mechanism(rng, [kind], n_joints=6).text)
        text, lost = to_sdf(model.description, shown_positions(model.description))
        if lost:
            assert all(any(word in each for word in UNSAYABLE) for each in lost), lost
            read(text)
            continue
        same_robot(model, again(model, chosen=True), states=1)
        said += 1
        if said == count:
            break
    assert (said == 0) == (kind in NEVER_SAID)


@pytest.mark.slow_cases("four_bar")
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("kind", few(KINDS, "mimic", "coupling", "four_bar", "rod"))
def test_random_mechanisms(kind):
    check_mechanisms(kind, 1, 2 if kind in NEVER_SAID else 16)


@pytest.mark.tables
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_more_random_mechanisms(kind):
    check_mechanisms(kind, 5, 16)


@pytest.mark.slow
def test_files_that_were_read_are_written_again():
    """Nested and included models, frames, a universal joint, a screw, joint frames of their own."""
    model = rm.load(DATA / "frames" / "model.sdf")
    other = again(model)
    assert {each.name for each in other.description.links} == {
        each.name for each in model.description.links
    }
    same_robot(model, other)


# --- how it is written ----------------------------------------------------------------------------


def robot(*parts, name="r"):
    """A URDF robot whose links are a, b, c, with unit masses."""
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        "</inertial>"
    )
    links = "".join(f'<link name="{each}">{inertial}</link>' for each in "abc")
    return f'<robot name="{name}">{links}{"".join(parts)}</robot>'


def hinge(name, parent, child, more="", kind="continuous"):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.3 0 0"/><axis xyz="0 0 1"/>{more}</joint>'
    )


def test_a_file_shows_loops_closed():
    """Other readers take the poses as they are: in them the loop's frames coincide."""
    model = rm.robots.load("crank_rocker")
    root = etree.fromstring(written(model).encode())
    shown = {
        each.get("name"): float(each.get("{urn:robomodel}position"))
        for each in root.iter("joint")
        if each.get("{urn:robomodel}position")
    }
    q = model.joint_positions(model.neutral())
    assert shown == {name: pytest.approx(float(value), abs=1e-9) for name, value in q.items()}
    for element in root.iter():
        for key in [key for key in element.attrib if key.startswith("{")]:
            del element.attrib[key]
    plain = build(read(etree.tostring(root, encoding="unicode")))
    assert np.max(np.abs(plain.residual(np.zeros(plain.nq)))) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "other", "axis"),
    [
        ("revolute", "b", "0 0 1"),
        ("revolute", "world", "0 0 1"),
        ("prismatic", "world", "0.6 0.8 0"),
    ],
)
def test_springs_of_loops_rest_where_they_did(kind, other, axis):
    """The file shows the loop closed, away from where its frames meet: there it counts from."""
    loop = f"""<loop name="cut" type="{kind}">
      <predecessor link="c"><origin xyz="0.4 0.1 0" rpy="0 0 0.3"/></predecessor>
      <successor link="{other}"><origin xyz="0.3 0.2 0" rpy="0 0 0.5"/></successor>
      <axis xyz="{axis}"/>
      <dynamics damping="0.3" spring_stiffness="4" spring_reference="0.2"/></loop>"""
    branches = [("a", "c"), ("world", "b")] if other == "b" else [("a", "b"), ("b", "c")]
    chain = (
        hinge(f"j{n}", *ends, f'<initial position="{at}"/>')
        for n, (ends, at) in enumerate(
            zip([("world", "a"), *branches], (0.4, 0.7, -0.9), strict=True)
        )
    )
    model = rm.load(robot('<link name="world"/>', *chain, loop))
    other_model = again(again(model))
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
        there = other_model.configuration(model.joint_positions(q))
        for found, expected in (
            (
                rm.passive_force(other_model, there, v, **NUMPY),
                rm.passive_force(model, q, v, **NUMPY),
            ),
            (rm.energy(other_model, there, v, **NUMPY)[1], rm.energy(model, q, v, **NUMPY)[1]),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_a_free_base_whose_foot_is_held_stays_the_base():
    """The joint that closes the loop to the world is the only one there, and yet a loop."""
    links = '<link name="world"/>'
    flight = '<joint name="flight" type="floating"><parent link="world"/><child link="a"/></joint>'
    knee = hinge("knee", "b", "c", '<initial position="0.4"/>')
    pin = (
        '<loop name="pin" type="spherical"><predecessor link="world"><origin xyz="0.5 0.1 0"/>'
        '</predecessor><successor link="c"><origin xyz="0.3 0 0"/></successor></loop>'
    )
    model = rm.load(robot(links, flight, hinge("hip", "a", "b"), knee, pin))
    other = again(model)
    assert other.dof_names == model.dof_names
    assert other.joint_names == model.joint_names
    assert [each.name for each in other.loops] == ["pin"]
    q = model.random_configuration(4)
    there = other.configuration(model.joint_positions(q), base_pose=q[:7])
    np.testing.assert_allclose(
        rm.crba(other, there, **NUMPY), rm.crba(model, q, **NUMPY), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("write", [rm.write_sdf, rm.write_mjcf])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 3.0])
def test_of_joints_that_are_coupled_the_same_one_leads(write, ratio):
    gears = (
        f'<coupling name="gears"><joint name="one"/><joint name="two" ratio="{ratio}"/></coupling>'
    )
    model = rm.load(robot(hinge("one", "a", "b"), hinge("two", "a", "c"), gears))
    stream = io.StringIO()
    write(model, stream)
    assert rm.load(stream.getvalue()).dof_names == model.dof_names


def test_limits_count_from_where_the_file_shows_the_joint():
    text = rm.robots.path("crank_rocker").read_text()
    limit = '<limit lower="-3" upper="3.5" effort="1" velocity="2"/>'
    text = text.replace("</joint>", f"{limit}</joint>").replace('"continuous"', '"revolute"')
    model = rm.load(text)
    output = written(model)
    shown = float(model.joint_positions(model.neutral())["coupler_joint"])
    lower = etree.fromstring(output.encode()).findtext(
        ".//joint[@name='coupler_joint']/axis/limit/lower"
    )
    assert float(lower) == pytest.approx(-3 - shown, abs=1e-9)
    for each in read(output).joints:
        if each.name in model.joint_names:
            assert (each.limits.lower, each.limits.upper) == pytest.approx((-3, 3.5), abs=1e-12)


def test_names_that_sdf_does_not_have():
    """A joint called as a link is, a robot called world, names with '::' that are no models."""
    text = robot(
        hinge("a", "a", "b"),
        hinge("x::y::", "b", "c"),
        name="world",
    )
    model = rm.load(text)
    output, lost = to_sdf(model.description, shown_positions(model.description))
    assert lost == ["a robot called 'world'"]
    found = build(read(output))
    assert set(found.joint_names) == {"a", "x::y::"}
    same_robot(model, found)


@pytest.mark.slow
def test_joints_that_mimic_others_of_nested_models():
    """A leader is named from where the follower stands; a follower in the way is moved out."""
    follower = '<axis><xyz>0 0 1</xyz><mimic joint="{}"><multiplier>2</multiplier></mimic></axis>'
    inner = (
        f'<model name="n">{link("b")}{link("c")}'
        f"{joint('j', 'revolute', 'b', 'c', '', follower.format('k'))}"
        f"{link('d')}{joint('k', 'revolute', 'b', 'd')}</model>"
    )
    model = rm.load(
        sdf(
            link("a"),
            joint("w", "fixed", "world", "a", ""),
            joint("u", "revolute", "a", "n::b"),
            joint("f", "revolute", "a", "e", "", follower.format("n::k")),
            link("e"),
            inner,
        )
    )
    same_robot(model, again(model))
    mimics = {each.name: each.mimic for each in model.description.joints}
    other = {each.name: each.mimic for each in again(model).description.joints}
    assert other == mimics
    # in URDF, names mean nothing: the follower of a leader outside moves out of its model
    text = robot(hinge("u", "a", "b"), hinge("n::j", "b", "c", '<mimic joint="u"/>'))
    model = rm.load(text.replace('"b"', '"n::b"').replace('"c"', '"n::c"'))
    same_robot(model, again(model))


def test_gravity_and_armature_are_written():
    text = robot(hinge("j", "a", "b", '<armature value="0.25"/>'), hinge("k", "b", "c"))
    model = rm.load(text, gravity=(0, 1, -2))
    output = written(model)
    assert "<gravity>0 1 -2</gravity>" in output
    assert "<drake:rotor_inertia>0.25</drake:rotor_inertia>" in output
    same_robot(model, rm.load(output))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((hinge("j", "a", "b", kind="planar"), hinge("k", "b", "c")), "the planar joint 'j'"),
        ((hinge("j", "a", "b"), hinge("k", "b", "c", kind="floating")), "the floating joint 'k'"),
        (
            (
                hinge("j", "a", "b", '<armature value="1"/>', kind="spherical"),
                hinge("k", "b", "c"),
            ),
            "the armature of the spherical joint 'j'",
        ),
        (
            (
                hinge("j", "a", "b", '<dynamics damping="1"/>', kind="floating"),
                hinge("k", "b", "c"),
            ),
            "damping and friction of 'j', which floats",
        ),
    ],
)
def test_what_is_lost_is_named(parts, said):
    with pytest.raises(DescriptionError, match=said):
        written(rm.load(robot(*parts)))
    (lost,) = rm.write_sdf(rm.load(robot(*parts)), io.StringIO(), drop=True)
    assert lost.startswith(said)


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
@pytest.mark.parametrize("mass", [0.0, 0.3])
def test_inertias_of_no_body_go_to_the_link_that_carries_them(mass):
    """A rotor that is held still, askew: other readers refuse it as a link of its own."""
    rotor = (
        f'<link name="rotor"><inertial><origin xyz="0.1 0 0" rpy="0.1 0.2 0.3"/>'
        f'<mass value="{mass}"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.5"/>'
        '</inertial></link><joint name="held" type="fixed"><parent link="c"/>'
        '<child link="rotor"/><origin xyz="0 1 0" rpy="0.5 0.6 0.7"/></joint>'
    )
    model = rm.load(robot(hinge("j", "a", "b"), hinge("k", "b", "c", kind="spherical"), rotor))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = again(model)
    same_robot(model, found)
    assert next(each for each in found.description.links if each.name == "rotor").inertial is None


WORLDLY = """<mujoco model="m"><worldbody><geom type="plane" size="1 1 1" rgba="1 0 0 1"/>
<body name="scenery" pos="0 0 1"><freejoint/><geom size="1" rgba="0 1 0 0.5"/>
<body name="b"><joint name="j"/><geom type="box" size="1 2 3" contype="0" conaffinity="0"/>
</body></body></worldbody></mujoco>"""


def test_what_stands_in_the_world_is_a_link_of_its_own():
    """SDF's world has no shapes; they are on a link that a joint fixes to it."""
    model = rm.load(WORLDLY)
    text = written(model)
    found = rm.load(text)
    same_robot(model, found)
    world, ground, *_ = found.description.links
    assert (world.name, world.shapes) == ("world", ())
    assert [shape.kind for shape in ground.shapes] == ["plane", "plane"]
    assert ground.name not in {link.name for link in model.description.links}
    assert written(found) == text


def test_colours():
    """Those of collisions, which SDF has no word for, are read back all the same."""
    text = written(rm.load(WORLDLY))
    tree = etree.fromstring(text.encode())
    assert not tree.findall(".//collision/material")
    shapes = [shape for link in read(text).links for shape in link.shapes]
    plane, ball = (1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 0.5)
    assert [shape.rgba for shape in shapes] == [plane, plane, ball, ball, None]


def test_a_world_without_anything():
    model = rm.load("<mujoco model='m'><worldbody/></mujoco>")
    found = rm.load(written(model))
    assert found.nv == 0
    assert len(found.description.links) == 2


def test_a_model_stands_in_a_world_only_for_its_gravity():
    """Gazebo spawns models, not worlds."""
    said = (
        '<mujoco><option gravity="{}"/><worldbody><body><joint/><geom size="1"/></body>'
        "</worldbody></mujoco>"
    )
    assert "<world" not in written(rm.load(said.format("0 0 -9.81")))
    text = written(rm.load(said.format("0 0 -1.62")))
    assert "<world" in text
    assert rm.load(text).gravity == (0.0, 0.0, -1.62)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")
def test_inertias_that_no_body_has_are_lent_what_they_lack():
    """Mini Cheetah's hips and rotors: the same dynamics, in inertias that simulators take."""
    model = rm.robots.load("mini_cheetah")
    found = again(model)
    same_robot(model, found)
    for each in found.description.links:
        if each.inertial is not None:
            xx, xy, xz, yy, yz, zz = each.inertial.inertia
            a, b, c = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            assert a > 0.0
            assert c <= (a + b) * (1 + 1e-9)
            assert each.inertial.mass > 0.0


def test_transmissions_are_kept_in_words_of_our_own():
    """In the names of the description, whatever joints are called in the file."""
    said = (
        '<transmission name="t"><type>transmission_interface/DifferentialTransmission</type>'
        '<joint name="j"><role>joint1</role><mechanicalReduction>4</mechanicalReduction></joint>'
        '<joint name="b"><role>joint2</role><offset>0.5</offset></joint>'
        '<actuator name="m"><role>actuator1</role></actuator>'
        '<actuator name="n"><role>actuator2</role><mechanicalReduction>-2</mechanicalReduction>'
        "</actuator></transmission>"
    )
    model = rm.load(robot(hinge("j", "a", "b"), hinge("b", "b", "c"), said))
    text = written(model)
    (transmission,) = etree.fromstring(text.encode()).iter("{urn:robomodel}transmission")
    assert transmission.getparent().tag == "model"
    assert not any("name" in each.attrib for each in transmission.iter())  # joints have those
    (one,), (other,) = model.description.transmissions, read(text).transmissions
    assert (one.name, one.type, one.joints, one.actuators) == (
        other.name,
        other.type,
        other.joints,
        other.actuators,
    )
    assert written(rm.load(text)) == text


def test_mimics_are_written_in_drakes_words_too(tmp_path):
    """Drake reads its own element alone, of joints of one freedom in one model."""
    follower = '<axis><xyz>0 0 1</xyz><mimic joint="{}"><multiplier>2</multiplier></mimic></axis>'
    plain = sdf(
        link("a"), link("b"), link("c"), joint("w", "fixed", "world", "a", ""),
        joint("u", "revolute", "a", "b"),
        joint("f", "revolute", "a", "c", "", follower.format("u")),
    )  # fmt: skip
    text = written(rm.load(plain))
    (words,) = etree.fromstring(text.encode()).iter(f"{{{DRAKE}}}mimic")
    assert dict(words.attrib) == {"joint": "u", "multiplier": "2", "offset": "0"}
    assert words.getparent().get("name") == "f"
    assert [each.mimic for each in read(text).joints if each.mimic] == [Mimic("u", 2.0)]
    nested = sdf(
        link("a"), link("e"), joint("w", "fixed", "world", "a", ""),
        joint("f", "revolute", "a", "e", "", follower.format("n::k")),
        f'<model name="n">{link("b")}{link("d")}{joint("k", "revolute", "b", "d")}</model>',
        joint("u", "revolute", "a", "n::b"),
    )  # fmt: skip
    assert "drake:mimic" not in written(rm.load(nested))  # which Drake looks for in one model
    plants = pytest.importorskip("pydrake.multibody.plant")
    parsing = pytest.importorskip("pydrake.multibody.parsing")
    (tmp_path / "a.sdf").write_text(text)
    plant = plants.MultibodyPlant(1e-3)
    plant.set_discrete_contact_approximation(plants.DiscreteContactApproximation.kSap)
    parsing.Parser(plant).AddModels(str(tmp_path / "a.sdf"))
    assert plant.num_constraints() == 1


def test_rotors_and_their_gears_have_two_names():
    """``<rotor>`` calls the link, the joint and the coupling alike; SDF's siblings differ."""
    rotor = '<rotor inertia="1e-4" ratio="9"/>'
    model = rm.load(robot(hinge("one", "a", "b", rotor), hinge("two", "b", "c", rotor)))
    (whole,) = etree.fromstring(written(model).encode()).iter("model")
    names = [each.get("name") for each in whole if each.tag in ("link", "joint", "frame")]
    assert len(names) == len(set(names)) == 12
    same_robot(model, again(model))
