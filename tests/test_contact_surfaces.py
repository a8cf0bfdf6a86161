"""Friction and restitution of shapes: read, written back, and felt."""

from __future__ import annotations

import io

import numpy as np
import pytest
from test_contact import G, at_rest

import robomodel as rm
from robomodel.parsers import read

INERTIA = '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
BOX = '<geometry><box size="0.2 0.2 0.2"/></geometry>'


def urdf(inside: str = "", beside: str = "", geometry: str = BOX) -> str:
    return (
        f'<robot name="r"><link name="a"><inertial><mass value="1"/>{INERTIA}</inertial>'
        f"<visual>{geometry}</visual><collision>{geometry}{inside}</collision></link>{beside}"
        "</robot>"
    )


def sdf(surface: str) -> str:
    return (
        '<sdf version="1.9"><model name="r"><link name="a"><inertial><mass>1</mass><inertia><ixx>'
        "0.01</ixx><iyy>0.01</iyy><izz>0.01</izz></inertia></inertial><collision name='c'>"
        "<geometry><box><size>0.2 0.2 0.2</size></box></geometry><surface>"
        f"{surface}</surface></collision></link></model></sdf>"
    )


MJCF = """<mujoco><default><default class="slick"><geom friction="0.3"/></default></default>
<worldbody><body name="a"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
<geom name="one" type="box" size="0.1 0.1 0.1" {}/><geom type="sphere" size="0.05" class="slick"/>
<geom type="sphere" size="0.04"/></body></worldbody></mujoco>"""


def surfaces(model: rm.Model) -> list[tuple[float | None, float | None]]:
    return [
        (shape.friction, shape.restitution)
        for link in model.description.links
        for shape in link.shapes
        if shape.role == "collision"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (sdf("<friction><ode><mu>0.4</mu><mu2>0.4</mu2></ode></friction>"), (0.4, None)),
        (sdf("<friction><bullet><friction>0.7</friction></bullet></friction>"), (0.7, None)),
        (sdf("<bounce><restitution_coefficient>0.25</restitution_coefficient></bounce>"),
         (None, 0.25)),
        (sdf("<contact><ode><kp>1e5</kp></ode></contact>"), (None, None)),
        (urdf(), (None, None)),
        (urdf('<surface friction="0.3" restitution="0.5"/>'), (0.3, 0.5)),
        (urdf(beside='<gazebo reference="a"><mu1>0.2</mu1><mu2>0.2</mu2></gazebo>'), (0.2, None)),
        (urdf(beside='<gazebo reference="a"><collision><surface><bounce><restitution_coefficient>'
              "0.9</restitution_coefficient></bounce></surface></collision></gazebo>"),
         (None, 0.9)),
    ],
)  # fmt: skip
def test_read_and_written_back(text: str, expected: tuple) -> None:
    model = rm.load(text, floating_base=True)
    assert surfaces(model) == [expected]
    for write in (rm.write_urdf, rm.write_sdf):
        to = io.StringIO()
        write(model, to)
        assert surfaces(rm.load(to.getvalue())) == [expected], write
    seen = [s for link in model.description.links for s in link.shapes if s.role == "visual"]
    assert all(shape.friction is None for shape in seen)


def test_shapes_of_one_link_that_differ() -> None:
    other = f'</collision><collision>{BOX}<surface friction="0.9"/>'
    model = rm.load(urdf('<surface friction="0.3"/>' + other), floating_base=True)
    assert surfaces(model) == [(0.3, None), (0.9, None)]
    to = io.StringIO()
    rm.write_urdf(model, to)
    assert "gazebo" not in to.getvalue()
    assert surfaces(rm.load(to.getvalue())) == [(0.3, None), (0.9, None)]


def test_mjcf() -> None:
    """Where a geom or its class says so; MuJoCo's own 1.0 is not the file's."""
    assert surfaces(rm.load(MJCF.format(""))) == [(None, None), (0.3, None), (None, None)]
    model = rm.load(MJCF.format('friction="1 0.1 0.1"'))
    assert surfaces(model) == [(1.0, None), (0.3, None), (None, None)]
    to = io.StringIO()
    rm.write_mjcf(model, to)
    assert surfaces(rm.load(to.getvalue())) == [(1.0, None), (0.3, None), (None, None)]
    assert to.getvalue().count("<geom") == 3  # seen and touching are one geom still
    bouncy = rm.load(urdf('<surface restitution="0.5"/>'), floating_base=True)
    with pytest.raises(rm.DescriptionError, match=r"restitution 0\.5 of a box"):
        rm.write_mjcf(bouncy, io.StringIO())
    assert "soft" in rm.write_mjcf(bouncy, io.StringIO(), drop=True)[0]


@pytest.mark.parametrize("infinite", ["inf", "Inf", "infinity"])
def test_infinite_friction_leaves_that_of_the_other_surface(infinite: str) -> None:
    text = sdf(f"<friction><ode><mu>{infinite}</mu><mu2>{infinite}</mu2></ode></friction>")
    (link,) = (link for link in read(text).links if link.shapes)
    assert {shape.friction for shape in link.shapes} == {None}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (sdf("<friction><ode><mu>-1</mu></ode></friction>"), "negative"),
        (sdf("<bounce><restitution_coefficient>2</restitution_coefficient></bounce>"), "0 to 1"),
        (urdf(beside='<gazebo reference="a"><mu1>-3</mu1></gazebo>'), "negative"),
        (urdf(beside='<gazebo reference="a"><mu1>much</mu1></gazebo>'), "much"),
    ],
)
def test_what_is_refused(text: str, why: str) -> None:
    with pytest.raises(rm.DescriptionError, match=why):
        rm.load(text, floating_base=True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (sdf("<friction><ode><mu>1</mu><mu2>0.5</mu2></ode></friction>"), "all directions"),
        (urdf(beside='<gazebo reference="a"><mu1>1</mu1><mu2>2</mu2></gazebo>'), "all directions"),
        (urdf(beside='<gazebo reference="b"><mu1>1</mu1></gazebo>'), "no link 'b'"),
        (urdf(beside='<gazebo reference="a"><mu1/></gazebo>'), "<mu1> is empty"),
        (sdf("").replace("<size>0.2 0.2 0.2</size>", ""), "SDF takes 1 1 1 m then"),
        (sdf("<friction><ode><mu/><mu2> </mu2></ode></friction>"), "<mu> is empty"),
        (urdf('<surface friction="-1"/>'), "friction of <surface> is -1; it is not negative"),
    ],
)
def test_what_is_warned_of(text: str, why: str) -> None:
    with pytest.warns(rm.DescriptionWarning, match=why):
        rm.load(text, floating_base=True)


@pytest.mark.slow
def test_the_smaller_friction_counts() -> None:
    """Of shape and ground; in simulate and in rollouts."""
    for own, ground, expected in ((0.2, 0.8, 0.2), (0.9, 0.4, 0.4)):
        model = rm.load(urdf(f'<surface friction="{own}"/>'), floating_base=True)
        points = rm.contact_points(model)
        assert points[0] == ("a", (-0.1, -0.1, -0.1), 0.0, own, None)
        v = np.array([0, 0, 0, 1.0, 0, 0])
        motion = rm.simulate(
            model, at_rest(model, 0.1), v, duration=0.05, ground=rm.Ground(friction=ground)
        )
        assert motion.v[-1, 3] == pytest.approx(1.0 - expected * G * 0.05, rel=1e-9)
        made = rm.rollout(
            model, at_rest(model, 0.1), v, np.zeros((50, 6)), 1e-3,
            ground=rm.Ground(friction=ground), contacts=points, sweeps=40,
        )  # fmt: skip
        np.testing.assert_allclose(made.v, motion.v, atol=1e-8)


@pytest.mark.slow
def test_the_larger_restitution_counts() -> None:
    ball = urdf(
        '<surface restitution="0.5"/>', geometry='<geometry><sphere radius="0.1"/></geometry>'
    )
    model = rm.load(ball, floating_base=True)
    for ground, expected in ((0.0, 0.5), (0.8, 0.8)):
        motion = rm.simulate(
            model, at_rest(model, 0.2), duration=0.2, ground=rm.Ground(restitution=ground)
        )
        hit = int(np.argmax(np.diff(motion.v[:, 5]) > 0.5))
        assert motion.v[hit + 1, 5] == pytest.approx(-expected * motion.v[hit, 5], rel=2e-2)
