"""Springs and dampers in the simulators' formats: read as they act there, written and read back."""

from __future__ import annotations

import re

import mujoco
import numpy as np
import pytest
from agreement import same_robot
from test_passive import ROBOTS, ROTOR, states
from texts import joint, link, robot

import robomodel as rm

NUMPY = {"backend": "numpy"}  # no kernels are made
WRITERS = {"urdf": rm.write_urdf, "sdf": rm.write_sdf, "mjcf": rm.write_mjcf}

MJCF = """
<mujoco><compiler angle="radian"/><worldbody>
  <site name="anchor" pos="0.3 -0.2 0.5"/>
  <body name="a" pos="0 0 0.2">
    <joint name="hinge" axis="0 0.6 0.8" stiffness="7" springref="0.4" damping="0.3"/>
    <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
    <body name="b" pos="0.3 0 0">
      <joint name="slide" type="slide" axis="1 0 0" stiffness="90" damping="2"/>
      <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
      <body name="c" pos="0.2 0.1 0">
        <joint name="ball" type="ball" stiffness="11" damping="0.5"/>
        <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
        <site name="tip" pos="0.2 0 0.1"/>
      </body>
    </body>
  </body></worldbody>
  <tendon>
    <fixed name="cable" stiffness="5" damping="0.2" springlength="0.3">
      <joint joint="hinge" coef="0.7"/><joint joint="slide" coef="-2"/></fixed>
    <spatial name="cord" stiffness="40" damping="3" springlength="0.4"><site site="anchor"/>
      <site site="tip"/></spatial>
  </tendon>
</mujoco>
"""


def test_forces_are_mujocos() -> None:
    model = rm.load(MJCF)
    compiled = mujoco.MjModel.from_xml_string(MJCF)
    compiled.opt.gravity[:] = 0.0
    data = mujoco.MjData(compiled)
    weightless = rm.load(MJCF, gravity=(0, 0, 0))
    q, v = states(model, 8)
    names = {joint.name: joint for joint in model.joints}
    order = []
    for n in range(compiled.njnt):
        joint = names[mujoco.mj_id2name(compiled, mujoco.mjtObj.mjOBJ_JOINT, n)]
        labels = [joint.name] if joint.nv == 1 else [f"{joint.name}.{i}" for i in range(3)]
        order += [model.dof_names.index(label) for label in labels]
    for i in range(len(q)):
        positions = model.joint_positions(q[i])
        x, y, z, w = positions["ball"]
        data.qpos[:] = [positions["hinge"], positions["slide"], w, x, y, z]
        data.qvel[:] = v[i][order]
        mujoco.mj_forward(compiled, data)
        expected = np.zeros(model.nv)
        expected[order] = data.qfrc_passive
        np.testing.assert_allclose(
            rm.passive_force(model, q[i], v[i], **NUMPY), expected, rtol=1e-10, atol=1e-10
        )
        _, potential = rm.energy(model, q[i], v[i], **NUMPY)
        _, weight = rm.energy(weightless, q[i], v[i], **NUMPY)
        mujoco.mj_energyPos(compiled, data)
        assert weight == pytest.approx(data.energy[0], rel=1e-9)
        assert potential != weight


SDF = """
<sdf version="1.11"><model name="m"><link name="base"/><link name="a"><inertial><mass>1</mass>
<inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial></link>
<joint name="w" type="fixed"><parent>world</parent><child>base</child></joint>
<joint name="j" type="revolute"><parent>base</parent><child>a</child><axis><xyz>0 1 0</xyz>
<dynamics><damping>0.4</damping><friction>0.2</friction><spring_reference>0.3</spring_reference>
<spring_stiffness>6</spring_stiffness></dynamics></axis></joint></model></sdf>
"""


def test_sdf() -> None:
    model = rm.load(SDF)
    (joint,) = model.joints
    assert (joint.stiffness, joint.reference, joint.damping, joint.friction) == (6.0, 0.3, 0.4, 0.2)
    np.testing.assert_allclose(rm.passive_force(model, [0.5], [2.0], **NUMPY), [-6 * 0.2 - 0.4 * 2])


@pytest.mark.parametrize("word", ["damping", "friction", "spring_stiffness"])
def test_dynamics_that_drive_the_motion_are_refused(word: str) -> None:
    """In SDF as in URDF."""
    text = re.sub(f"<{word}>.*?<", f"<{word}>-1<", SDF)
    with pytest.raises(
        rm.DescriptionError, match=f"{word} of <dynamics> is -1, which would drive"
    ) as error:
        rm.load(text)
    assert error.value.element == "joint 'j'"


@pytest.mark.slow_cases("urdf-floating ball", "urdf-linkage", "mjcf-linkage", "urdf-gears")
@pytest.mark.parametrize("name", list(ROBOTS))
@pytest.mark.parametrize("form", WRITERS)
def test_round_trip(name: str, form: str, tmp_path) -> None:
    """SDF has springs between links in Drake's words, and those it has none for in our own."""
    model, path = rm.load(ROBOTS[name]), tmp_path / f"out.{form}"
    WRITERS[form](model, path)
    free = (name, form) == ("floating ball", "mjcf")  # whose freedoms have another order
    again = rm.load(path, independent=None if free else model.dof_names)
    assert free or again.dof_names == model.dof_names
    same_robot(model, again)
    named = {spring.name for spring in model.description.springs}
    assert {spring.name for spring in again.description.springs} == named
    if form == "sdf":
        text = path.read_text()
        assert "drake:linear_spring_damper" in text
        assert ("robomodel:spring" in text) == (name != "linkage")  # over joints, or on the world


LINEAR = """<drake:linear_spring_damper>
<drake:linear_spring_damper_body_A{a}<drake:linear_spring_damper_body_B{b}
<drake:linear_spring_damper_p_AP{p}<drake:linear_spring_damper_p_BQ{q}
<drake:linear_spring_damper_free_length{l}<drake:linear_spring_damper_stiffness{k}
<drake:linear_spring_damper_damping{d}</drake:linear_spring_damper>"""
TENDON = """<drake:tendon_constraint><drake:tendon_constraint_joint name="j" a="0.5"/>
<drake:tendon_constraint_joint name="k" a="-2"/><drake:tendon_constraint_offset{offset}
<drake:tendon_constraint_lower_limit{lower}<drake:tendon_constraint_upper_limit{upper}
<drake:tendon_constraint_stiffness{stiffness}<drake:tendon_constraint_damping{damping}
</drake:tendon_constraint>"""
SPRING = {"p": "0.1 0 0", "q": "0 0.2 0", "l": "0.3", "k": "50", "d": "4"}
CABLE = {"offset": "0.1", "lower": "0.4", "upper": "0.4", "stiffness": "9", "damping": "0.7"}


def drake(form: str, more: str, values: dict[str, str]) -> str:
    """A robot of two joints with words of Drake, in URDF (attributes) or SDF (texts)."""
    tags = {key: tag for tag, key in re.findall(r"<([\w:]+){(\w+)}", more)}
    names = {"a": "one", "b": "two"} | values
    if form == "urdf":
        said = {key: f' {"name" if key in "ab" else "value"}="{x}"/>' for key, x in names.items()}
        return robot(
            link("one"), link("two"), joint("j", "base", "one"),
            joint("k", "one", "two", "0.3 0 0"), more.format(**said),
        ).replace("<robot ", '<robot xmlns:drake="http://drake.mit.edu" ')  # fmt: skip
    said = {key: f">{x}</{tags[key]}>" for key, x in names.items() if key in tags}
    mass = (
        "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"
    )
    return (
        '<sdf version="1.11" xmlns:drake="http://drake.mit.edu"><model name="m"><link name="base"/>'
        f'<link name="one">{mass}</link><link name="two"><pose>0.3 0 0 0 0 0</pose>{mass}</link>'
        '<joint name="w" type="fixed"><parent>world</parent><child>base</child></joint>'
        '<joint name="j" type="revolute"><parent>base</parent><child>one</child><axis><xyz>0 0 1'
        '</xyz></axis></joint>\n<joint name="k" type="revolute"><parent>one</parent><child>two'
        f"</child><axis><xyz>0 0 1</xyz></axis></joint>{more.format(**said)}</model></sdf>"
    )


@pytest.mark.parametrize("form", ["urdf", "sdf"])
def test_words_of_drake(form: str) -> None:
    model = rm.load(drake(form, LINEAR, SPRING))
    q, v = np.array([0.3, 0.4]), np.array([1.0, -2.0])
    (spring,) = model.description.springs
    assert (spring.stiffness, spring.length, spring.damping) == (50.0, 0.3, 4.0)
    assert (spring.predecessor.link, spring.successor.link) == ("one", "two")
    assert (spring.predecessor.origin.xyz, spring.successor.origin.xyz) == (
        (0.1, 0, 0),
        (0, 0.2, 0),
    )
    model = rm.load(drake(form, TENDON, CABLE))
    pull = -9.0 * (0.5 * 0.3 - 2 * 0.4 + 0.1 - 0.4) - 0.7 * (0.5 * 1.0 + 2 * 2.0)
    np.testing.assert_allclose(
        rm.passive_force(model, q, v, **NUMPY), [0.5 * pull, -2 * pull], rtol=1e-12
    )
    rigid = rm.load(drake(form, TENDON, CABLE | {"stiffness": "inf"}))
    assert rigid.nv == 1
    positions = rigid.joint_positions(rigid.neutral())
    assert 0.5 * positions["j"] - 2 * positions["k"] + 0.1 == pytest.approx(0.4)
    with pytest.warns(rm.DescriptionWarning, match="between its limits 0.2 and 0.4"):
        assert rm.load(drake(form, TENDON, CABLE | {"lower": "0.2"})).nv == 2


@pytest.mark.parametrize("form", ["urdf", "sdf"])
@pytest.mark.parametrize(
    ("more", "values", "why"),
    [
        (LINEAR, {"k": "-1"}, "negative"),
        (LINEAR, {"d": "nan"}, "finite"),
        (LINEAR, {"b": "one"}, "same link"),
        (LINEAR, {"b": "ghost"}, "ghost"),
        (LINEAR, {"b": "base", "a": "one", "l": "0", "q": "0.1 0 0"}, "coincide"),
        (TENDON, {"lower": "1"}, "leave nothing"),
        (TENDON, {"stiffness": "-3"}, "negative"),
    ],
)
def test_bad_words_of_drake(form: str, more: str, values: dict[str, str], why: str) -> None:
    good = SPRING if more is LINEAR else CABLE
    with pytest.raises(rm.DescriptionError, match=why) as error:
        rm.load(drake(form, more, good | values))
    assert error.value.line is not None


def test_a_word_of_drake_without_its_value() -> None:
    text = drake("urdf", TENDON, CABLE).replace('_stiffness value="9"', "_stiffness")
    with pytest.raises(rm.DescriptionError, match="_stiffness>: the attribute 'value' is missing"):
        rm.load(text)


@pytest.mark.parametrize("form", ["urdf", "sdf"])
def test_words_of_drake_that_mean_nothing_are_warned_of(form: str) -> None:
    text = drake(form, TENDON, CABLE).replace("_constraint_stiffness", "_constraint_stiffnes")
    with pytest.warns(rm.DescriptionWarning, match="did you mean 'drake:tendon_constraint_stiff"):
        assert rm.load(text).nv == 1  # it is rigid


def test_tendons_of_mjcf_that_never_change_their_length() -> None:
    text = MJCF.replace('site="anchor"/>\n      <site', 'site="tip2"/>\n      <site').replace(
        '<site name="tip"', '<site name="tip2"/><site name="tip"'
    )
    with pytest.warns(rm.DescriptionWarning, match="its force moves nothing; it is left out"):
        model = rm.load(text)
    assert "cord" not in [each.name for each in model.springs]
    with pytest.raises(rm.DescriptionError, match="moves nothing") as error:
        rm.load(text, strict=True)
    assert error.value.line is not None


@pytest.mark.parametrize("form", WRITERS)
def test_springs_of_open_trees(form: str, tmp_path) -> None:
    """A floating robot without loops and rotors is its own open tree."""
    model = rm.load(ROBOTS["floating ball"].replace(ROTOR, ""))
    WRITERS[form](model, tmp_path / "out.xml", approximate=True)
    same_robot(model, rm.load(tmp_path / "out.xml"))
    if form == "urdf":
        assert "drake:linear_spring_damper" in (tmp_path / "out.xml").read_text()
