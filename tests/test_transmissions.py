"""Transmissions and rotors: what they say, and that the bodies made of them move as they should."""

from __future__ import annotations

import runpy
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from texts import joint, link, robot

import robomodel as rm
from robomodel.description import (
    Actuator,
    JointCoupling,
    LinkCoupling,
    Pose,
    Source,
    Transmission,
    TransmittedJoint,
)
from robomodel.description.transmissions import SIMPLE, actuator_rows, kind_of
from robomodel.parsers import read
from robomodel.vocabulary.rotors import with_rotors

NUMPY = {"backend": "numpy"}  # no kernels are made
J = 2.5e-5  # kg m², a rotor's moment of inertia

ARM = robot(
    link("upper"),
    link("lower"),
    joint("shoulder", "base", "upper", axis="0 1 0"),
    joint("elbow", "upper", "lower", "0.3 0 0", axis="0.6 0 0.8", rpy="0.1 -0.2 0.3"),
)


def transmission(kind, *inner, name="t"):
    return f'<transmission name="{name}"><type>{kind}</type>{"".join(inner)}</transmission>\n'


def end(tag, name, role="", *inner, reduction=None, word="mechanicalReduction"):
    said = "" if reduction is None else f"<{word}>{reduction}</{word}>"
    role = f"<role>{role}</role>" if role else ""
    return f'<{tag} name="{name}">{role}{said}{"".join(inner)}</{tag}>'


def extension(*inner):
    return f'<robot name="more">\n{"".join(inner)}</robot>'


def two(kind, offsets=(0.3, -0.2), roles=("1", "2"), **rotors):
    """A transmission of shoulder and elbow with the reductions n = (2, −3), N = (7, 5)."""
    motor = f'<rotor inertia="{J}"/>'
    joints = [
        end("joint", name, f"joint{role}" if role else "", f"<offset>{o}</offset>", reduction=n)
        for name, role, n, o in zip(("shoulder", "elbow"), roles, (2, -3), offsets, strict=True)
    ]
    actuators = [
        end(
            "actuator",
            name,
            f"actuator{i}" if roles[0] else "",
            rotors.get(name, motor),
            reduction=ratio,
        )
        for i, (name, ratio) in enumerate((("m1", 7), ("m2", 5)), 1)
    ]
    return transmission(kind, *joints, *actuators)


def positions(model, q):
    return {name: float(value) for name, value in model.joint_positions(q).items()}


Q = np.array([0.7, -0.4])


# --- rotors of joints -----------------------------------------------------------------------------


def test_a_rotor_of_a_joint_becomes_a_link_a_joint_and_a_coupling() -> None:
    rotor = f'<joint name="elbow">\n<rotor inertia="{J}" ratio="9"/></joint>'
    found = read(ARM, extend=extension(rotor), strict=True)
    assert all(each.rotor is None for each in found.joints)
    elbow = next(each for each in found.joints if each.name == "elbow")
    body, turn, gear = found.links[-1], found.joints[-1], found.couplings[-1]
    assert body.name == turn.name == gear.name == turn.child == "elbow_rotor"
    assert (turn.parent, turn.origin, turn.axis) == ("upper", elbow.origin, elbow.axis)
    assert (turn.type, turn.independent) == ("continuous", False)
    assert gear == LinkCoupling("elbow_rotor", "lower", "elbow_rotor", 9.0, 0.0, gear.source)
    assert gear.source == Source("<text>", 3, "rotor of joint 'elbow'")
    assert body.inertial.mass == 0.0
    assert body.inertial.origin == Pose()
    xx, xy, xz, yy, yz, zz = body.inertial.inertia
    a = np.array([0.6, 0.0, 0.8])
    np.testing.assert_allclose(
        [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], J * np.outer(a, a), rtol=0, atol=1e-20
    )


def test_it_moves_as_one_that_is_written_out() -> None:
    written = extension(
        link(
            "r",
            '<inertial><mass value="0.3"/><inertia ixx="4e-5" iyy="9e-5" izz="4e-5" '
            'ixy="0" ixz="0" iyz="0"/></inertial>',
        ),
        joint("r", "base", "r", axis="0 1 0"),
        '<coupling name="r"><predecessor link="upper"/><successor link="r"/>'
        '<ratio value="-6"/></coupling>',
    )
    short = extension(
        '<joint name="shoulder">'
        '<rotor inertia="9e-5" ratio="-6" mass="0.3" transverse="4e-5"/></joint>'
    )
    ours, theirs = (rm.load(ARM, extend=more, floating_base=True) for more in (short, written))
    assert ours.dof_names == theirs.dof_names
    rng = np.random.default_rng(1)
    q = ours.random_configuration(rng)
    v, a = rng.normal(size=(2, ours.nv))
    np.testing.assert_allclose(
        rm.rnea(ours, q, v, a, **NUMPY), rm.rnea(theirs, q, v, a, **NUMPY), rtol=1e-13
    )
    np.testing.assert_allclose(
        rm.aba(ours, q, v, a, **NUMPY), rm.aba(theirs, q, v, a, **NUMPY), rtol=1e-12
    )


def test_what_a_massless_rotor_adds_to_the_mass_matrix() -> None:
    # it turns with its joint's parent and N times as far as its joint; about the elbow's axis
    # (0.6 0 0.8) in a frame at rpy (0.1 -0.2 0.3) the shoulder turns it by s
    model = rm.load(
        ARM, extend=extension(f'<joint name="elbow"><rotor inertia="{J}" ratio="9"/></joint>')
    )
    plain = rm.load(ARM)
    (elbow,) = (each for each in plain.description.joints if each.name == "elbow")
    s = float(np.array(elbow.origin.rotation).T[:, 1] @ [0.6, 0.0, 0.8])
    added = rm.crba(model, Q, **NUMPY) - rm.crba(plain, Q, **NUMPY)
    np.testing.assert_allclose(added, J * np.outer([s, 9.0], [s, 9.0]), rtol=0, atol=1e-16)
    assert model.mass == plain.mass


def test_the_ratio_may_come_from_a_simple_transmission() -> None:
    def rotor(*inner):
        return read(
            ARM,
            extend=extension(
                f'<joint name="elbow"><rotor inertia="{J}"/></joint>',
                transmission(SIMPLE, *inner),
            ),
        ).couplings[-1]

    # ros_control says the reduction of the actuator, ros2_control that of the joint
    assert rotor(end("joint", "elbow"), end("actuator", "m", reduction=50)).ratio == 50.0
    ours = rotor(
        end("joint", "elbow", "", "<offset>0.1</offset>", reduction=-4, word="mechanical_reduction")
    )
    assert (ours.ratio, ours.offset) == (-4.0, 0.4)


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        ('<joint name="elbow"><rotor inertia="1e-5"/></joint>', 'needs ratio="..."'),
        (
            '<link name="hand"/><joint name="wrist" type="fixed"><parent link="lower"/>'
            '<child link="hand"/><rotor inertia="1e-5" ratio="2"/></joint>',
            "'wrist' is fixed, and a rotor drives a joint of one degree of freedom",
        ),
        (
            '<link name="elbow_rotor"/><joint name="x" type="fixed"><parent link="lower"/>'
            '<child link="elbow_rotor"/></joint>'
            '<joint name="elbow"><rotor inertia="1e-5" ratio="2"/></joint>',
            "would be called 'elbow_rotor', as a link is already (<text>:2); rename that link",
        ),
        (
            f'<joint name="elbow"><rotor inertia="{J}" ratio="2"/></joint>'
            + transmission(
                SIMPLE,
                end("joint", "shoulder"),
                end("actuator", "elbow", "", "<rotor inertia='1'/>"),
            ),
            "would be called 'elbow_rotor', as a link is already",
        ),
    ],
)
def test_rotors_that_cannot_be_are_refused(inner, words) -> None:
    with pytest.raises(rm.DescriptionError) as caught:
        rm.load(ARM, extend=extension(inner))
    assert words in caught.value.message
    assert caught.value.element.startswith("rotor of ")


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        ('<joint name="elbow"><armature value="0.1"/></joint>', "an armature and a rotor"),
        (
            transmission(
                SIMPLE,
                end("joint", "elbow"),
                end("actuator", "m", "", "<motorInertia>1e-5</motorInertia>", reduction=3),
            ),
            "has another rotor already",
        ),
    ],
)
def test_what_may_be_counted_twice_is_warned_of(inner, words) -> None:
    both = [extension(f'<joint name="elbow"><rotor inertia="{J}" ratio="2"/></joint>'), inner]
    both[1] = extension(inner)
    with pytest.warns(rm.DescriptionWarning, match=words):
        read(ARM, extend=both)


# --- rotors of actuators --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        f'<rotor inertia="{J}"/><mechanicalReduction>9</mechanicalReduction>',
        f'<rotor inertia="{J}" ratio="9"/><mechanicalReduction>1</mechanicalReduction>',
        f"<motorInertia>{J}</motorInertia><mechanicalReduction>9</mechanicalReduction>",
        f'<drake:rotor_inertia value="{J}"/><drake:gear_ratio value="9"/>',
    ],
)
@pytest.mark.parametrize("prefix", ["", ' xmlns:drake="http://drake.mit.edu"'])
@pytest.mark.parametrize("kind", [SIMPLE, f"transmission_interface/{SIMPLE}", "", "a::b/" + SIMPLE])
def test_every_way_to_say_a_simple_one(words, prefix, kind) -> None:
    body = transmission(kind, '<joint name="shoulder"/>', f'<actuator name="m">{words}</actuator>')
    text = f'<?xml version="1.0"?>\n<!-- <robot> --><robot name="r"{prefix}>\n{body}</robot>'
    model = rm.load(ARM, extend=text, strict=True)
    added = rm.crba(model, Q, **NUMPY) - rm.crba(rm.load(ARM), Q, **NUMPY)
    np.testing.assert_allclose(added, [[81 * J, 0.0], [0.0, 0.0]], rtol=0, atol=1e-16)
    assert model.couplings[-1].name == "m_rotor"
    assert model.description.joints[-1].source.line == 3


def test_a_written_one_names_an_interface_for_each_joint(tmp_path: Path) -> None:
    """urdf_parser_py refuses whole files in which a transmission's joint has none."""
    body = transmission(SIMPLE, end("joint", "elbow"), end("actuator", "m", reduction=9))
    model = rm.load(ARM, extend=extension(body))
    rm.write_urdf(model, tmp_path / "arm.urdf")
    (part,) = etree.parse(tmp_path / "arm.urdf").getroot().iterfind("transmission/joint")
    assert part.get("name") == "elbow"
    assert part.findtext("hardwareInterface") == "hardware_interface/EffortJointInterface"
    again = rm.load(tmp_path / "arm.urdf", strict=True).description.transmissions
    assert [each.joints for each in again] == [x.joints for x in model.description.transmissions]


def test_the_offset_of_a_simple_one() -> None:
    more = transmission(
        SIMPLE,
        end("joint", "shoulder", "", "<offset>0.25</offset>"),
        end("actuator", "m", "", f'<rotor inertia="{J}"/>', reduction=-8),
    )
    model = rm.load(ARM, extend=extension(more))
    assert positions(model, Q)["m_rotor"] == pytest.approx(-8 * (0.7 - 0.25), rel=1e-14)


def test_within_ros2_control() -> None:
    more = (
        '<ros2_control name="s" type="system"><joint name="shoulder"/><transmission name="t">'
        f"<plugin>transmission_interface/{SIMPLE}</plugin>"
        f'<actuator name="m" role="actuator1"><rotor inertia="{J}"/></actuator>'
        '<joint name="shoulder" role="joint1"><mechanical_reduction>4</mechanical_reduction>'
        "<offset>0.5</offset></joint></transmission></ros2_control>"
    )
    found = read(ARM, extend=extension(more), strict=True)
    assert (found.couplings[-1].ratio, found.couplings[-1].offset) == (4.0, -2.0)
    assert found.transmissions == (
        Transmission(
            "t",
            "transmission_interface/SimpleTransmission",
            (TransmittedJoint("shoulder", "joint1", 4.0, 0.5),),
            (Actuator("m", "actuator1"),),
            found.transmissions[0].source,
        ),
    )


def laws(kind, x, offsets):
    """Joint positions by actuator positions, as transmission_interface computes them."""
    (x1, x2), (n1, n2), (m1, m2), (o1, o2) = x, (2, -3), (7, 5), offsets
    if kind == "DifferentialTransmission":
        return (x1 / m1 + x2 / m2) / (2 * n1) + o1, (x1 / m1 - x2 / m2) / (2 * n2) + o2
    if kind == "HalfDifferentialTransmission":
        return x1 / m1 / n1 + o1, (x2 / m2 - x1 / m1) / n2 + o2
    return x1 / (n1 * m1) + o1, (x2 / m2 - x1 / (n1 * m1)) / n2 + o2


TWO = ["DifferentialTransmission", "HalfDifferentialTransmission", "FourBarLinkageTransmission"]


@pytest.mark.parametrize("kind", TWO)
def test_two_actuators_and_two_joints(kind) -> None:
    """The other direction of the laws, from actuators to joints, gives back the joints."""
    model = rm.load(ARM, extend=extension(two(kind)), strict=True)
    assert model.dof_names == ("shoulder", "elbow")
    found = positions(model, Q)
    back = laws(kind, (found["m1_rotor"], found["m2_rotor"]), (0.3, -0.2))
    np.testing.assert_allclose(back, Q, rtol=1e-13)
    assert all(isinstance(each, JointCoupling) for each in model.description.couplings)


@pytest.mark.parametrize("kind", TWO)
def test_their_rotors_are_coaxial_with_the_joint_nearer_to_the_base(kind) -> None:
    model = rm.load(ARM, extend=extension(two(kind)))
    for rotor in model.description.joints[-2:]:
        assert (rotor.parent, rotor.axis) == ("base", (0.0, 1.0, 0.0))
    # the base rests, so what they add is J for each row of d(actuators) / d(joints)
    rows = np.array([7.0, 5.0])[:, None] * np.array(actuator_rows(kind, (2.0, -3.0)))
    added = rm.crba(model, Q, **NUMPY) - rm.crba(rm.load(ARM), Q, **NUMPY)
    np.testing.assert_allclose(added, J * rows.T @ rows, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("kind", TWO)
def test_roles_count_and_not_the_order(kind) -> None:
    turned = rm.load(ARM, extend=extension(two(kind, roles=("2", "1"))))
    found = positions(turned, Q)
    # elbow is now joint1, with the reduction −3
    rows = np.array(actuator_rows(kind, (-3.0, 2.0))) * np.array([[7.0], [5.0]])
    expected = rows @ (Q[::-1] - [-0.2, 0.3])
    np.testing.assert_allclose([found["m1_rotor"], found["m2_rotor"]], expected, rtol=1e-13)
    assert all(each.parent == "base" for each in turned.description.joints[-2:])


def test_without_roles_the_order_counts() -> None:
    plain, roled = (
        rm.load(ARM, extend=extension(two(TWO[0], roles=roles))) for roles in (("", ""), ("1", "2"))
    )
    assert positions(plain, Q) == positions(roled, Q)


def test_one_of_two_rotors() -> None:
    model = rm.load(ARM, extend=extension(two(TWO[2], m1="")))
    assert model.joint_names == ("shoulder", "elbow", "m2_rotor")
    assert positions(model, Q)["m2_rotor"] == pytest.approx(5 * (0.4 - 3 * -0.2), rel=1e-13)


def test_a_ratio_takes_the_place_of_the_actuators_own_reduction() -> None:
    ours = read(ARM, extend=extension(two(TWO[0], m1=f'<rotor inertia="{J}" ratio="11"/>')))
    assert ours.couplings[0].terms == (("m1_rotor", 1.0), ("shoulder", -22.0), ("elbow", 33.0))


def test_without_an_inertia_they_are_only_kept() -> None:
    plain = rm.load(ARM)
    model = rm.load(ARM, extend=extension(two(TWO[0], m1="", m2="")), strict=True)
    assert model.joint_names == plain.joint_names
    (kept,) = model.description.transmissions
    assert kind_of(kept) == TWO[0]
    assert [each.reduction for each in kept.joints] == [2.0, -3.0]
    assert [each.reduction for each in kept.actuators] == [7.0, 5.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            two(TWO[0], roles=("1", "1")),
            "the roles of its joints must be joint1 and joint2, got 'joint1' and 'joint1'",
        ),
        (
            transmission(
                TWO[0], end("joint", "elbow"), end("actuator", "m", "", f"<rotor inertia='{J}'/>")
            ),
            "a DifferentialTransmission with a rotor inertia needs 2 <joint>, got 1",
        ),
        (
            transmission(
                SIMPLE,
                end("joint", "elbow"),
                end("actuator", "m", "", f"<rotor inertia='{J}'/>", reduction="1,5"),
            ),
            "write a decimal point",
        ),
        (
            transmission(
                SIMPLE,
                end("joint", "elbow"),
                end("actuator", "m", "", f"<rotor inertia='{J}'/>", reduction="0"),
            ),
            "is zero; 1 is a direct drive",
        ),
        (
            transmission(
                SIMPLE, end("joint", "elbow"), end("actuator", "m", "", "<motorInertia/>")
            ),
            "<motorInertia> is empty and needs one number",
        ),
        (
            transmission(
                SIMPLE,
                end("joint", "elbow"),
                end("actuator", "m", "", "<motorInertia>1</motorInertia><rotor inertia='1'/>"),
            ),
            "the actuator has a rotor already",
        ),
    ],
)
def test_bad_ones_with_a_rotor_are_refused(text, words) -> None:
    with pytest.raises(rm.DescriptionError) as caught:
        rm.load(ARM, extend=extension(text))
    assert words in caught.value.message
    assert caught.value.line == 2


def test_a_type_that_is_not_known_is_warned_of() -> None:
    text = two("DiferentialTransmission")
    with pytest.warns(rm.DescriptionWarning, match="did you mean 'DifferentialTransmission'"):
        model = rm.load(ARM, extend=extension(text))
    assert model.joint_names == ("shoulder", "elbow")


def test_too_few_joints_without_rotors_are_warned_of() -> None:
    one = '<type>DifferentialTransmission</type><joint name="j1"/><actuator name="m"/>'
    with pytest.warns(rm.DescriptionWarning, match="has 2 of <joint> and <actuator> each, not 1"):
        rm.load(robot(link("a"), joint("j1", "base", "a"), f"<transmission>{one}</transmission>"))


def test_a_joint_that_is_not_there() -> None:
    text = transmission(
        SIMPLE, end("joint", "elbo"), end("actuator", "m", "", "<rotor inertia='1'/>")
    )
    with (
        pytest.warns(rm.DescriptionWarning, match="'elbo' is not in the robot"),
        pytest.raises(rm.DescriptionError, match="did you mean 'elbow'"),
    ):
        rm.load(ARM, extend=extension(text))


def test_a_description_without_rotors_is_left_as_it_is() -> None:
    description = read(ARM)
    assert with_rotors(description) is description


def test_a_prismatic_joint_is_driven_by_a_ratio_in_radians_a_metre() -> None:
    slide = robot(link("cart"), joint("rail", "base", "cart", axis="0 1 0", kind="prismatic",
                  more='<limit lower="0" upper="1" effort="1" velocity="1"/>'))  # fmt: skip
    more = extension(f'<joint name="rail"><rotor inertia="{J}" ratio="400"/></joint>')
    added = rm.crba(rm.load(slide, extend=more), [0.2], **NUMPY) - rm.crba(
        rm.load(slide), [0.2], **NUMPY
    )
    assert added[0, 0] == pytest.approx(400**2 * J, rel=1e-13)


@pytest.mark.slow
def test_the_example_beside_a_stock_robot(capsys) -> None:
    try:
        distribution("example-robot-data")
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    example = Path(__file__).parent.parent / "examples" / "rotors_beside_a_stock_robot.py"
    runpy.run_path(str(example), run_name="__main__")
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert rows["25"][-3:] == ["coordinates", "alike:", "True"]
    assert float(rows["HR_KFE"][2]) == pytest.approx(81 * 4.5e-6, rel=1e-3)
    # the knee's rotor turns with the thigh, so it counts once there
    assert float(rows["HR_HFE"][2]) == pytest.approx(82 * 4.5e-6, rel=1e-3)
    assert float(rows["floating_base.vx"][2]) == 0.0
