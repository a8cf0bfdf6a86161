"""Linkages without motion, in files of simulators: one body, where the loops close."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from texts import coupling, fan, four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.description import Description
from robomodel.mobility import RigidError
from robomodel.model import build
from robomodel.model.options import welded
from robomodel.parsers import read

TRIANGLE = {  # sides 1, 0.7 and a third that is found by closing
    kind: robot(
        link("a"),
        link("b"),
        joint("ja", "base", "a", mark=None, more='<initial position="0.9"/>'),
        joint("jb", "base", "b", "1.1 0 0", kind=kind, axis=axis, more=more),
        loop("tip", "revolute", "a", "b", "0.8 0 0", at_b),
    )
    for kind, axis, more, at_b in (
        ("continuous", "0 0 1", '<initial position="2.2"/>', "0.7 0 0"),
        ("prismatic", "0 1 0", '<initial position="0.5"/>', "-0.6 0 0"),
    )
}


def rigid(text: str) -> tuple[Description, RigidError]:
    description = read(text)
    with pytest.raises(RigidError, match="mobility 0") as caught:
        build(description)
    return description, caught.value


def held_at(pose: np.ndarray, name: str, text: str) -> np.ndarray:
    """The pose of a link in the base, where a loop at the text's {end} has fixed it at a pose."""
    at = " ".join(map(repr, pose[:3, 3].tolist()))
    rpy = " ".join(map(repr, Rotation.from_matrix(pose[:3, :3]).as_euler("xyz").tolist()))
    end = (
        f'<loop name="held" type="fixed"><predecessor link="base"><origin xyz="{at}" rpy="{rpy}"/>'
        f'</predecessor><successor link="{name}"/></loop>'
    )
    description, error = rigid(text.replace("{end}", end))
    with pytest.warns(rm.DescriptionWarning, match="rigid assembly"):
        held = welded(description, error, strict=False)
    model = build(held, floating_base=True)
    q = model.neutral()
    base, there = (rm.frame_pose(model, q, each, backend="numpy") for each in ("base", name))
    return np.linalg.inv(base) @ there


@pytest.mark.parametrize("kind", TRIANGLE)
def test_joints_are_fixed_where_the_loop_closes(kind: str) -> None:
    description, error = rigid(TRIANGLE[kind])
    told = r"^<text>:7: loop 'tip': leaves no motion: mobility 0 = 2 .*rigid assembly"
    with pytest.warns(rm.DescriptionWarning, match=told):
        held = welded(description, error, strict=False)
    assert held.loops == ()
    model = build(replace(held, links=(*held.links,)), floating_base=True)
    assert model.nv == 6
    q = model.neutral()
    q[:3] = 0.3, -0.2, 0.1
    at_b = "0.7 0 0" if kind == "continuous" else "-0.6 0 0"
    tips = [
        rm.frame_pose(model, q, (name, [float(x) for x in at.split()]), backend="numpy")[:3, 3]
        for name, at in (("a", "0.8 0 0"), ("b", at_b))
    ]
    np.testing.assert_allclose(tips[0], tips[1], atol=1e-12)
    with pytest.raises(rm.DescriptionError, match="rigid assembly"):
        welded(description, error, strict=True)


def test_ball_and_free_joints_are_fixed_too() -> None:
    turned = '<axis xyz="0 0 1"/>'
    for kind in ("spherical", "floating"):
        text = robot(
            link("a"),
            joint("j", "base", "a", "0.1 0.2 0.3", kind=kind, rpy="0.3 -0.2 0.5"),
            loop("held", "fixed", "base", "a", "0.1 0.2 0.3" if kind == "spherical" else "1 2 3",
                 more=turned),
        )  # fmt: skip
        description, error = rigid(text)
        with pytest.warns(rm.DescriptionWarning, match="rigid assembly"):
            held = welded(description, error, strict=False)
        model = build(held, floating_base=True)
        q = model.neutral()
        base, a = (rm.frame_pose(model, q, name, backend="numpy") for name in ("base", "a"))
        between = np.linalg.inv(base) @ a
        there = (0.1, 0.2, 0.3) if kind == "spherical" else (1.0, 2.0, 3.0)
        np.testing.assert_allclose(between[:3, 3], there, atol=1e-10)
        np.testing.assert_allclose(between[:3, :3], np.eye(3), atol=1e-10)


@pytest.mark.parametrize(
    ("kind", "more", "position"),
    [("screw", '<pitch value="0.05"/>', 0.7), ("planar", "", [0.1, -0.2, 0.4])],
)
def test_screw_and_planar_joints_are_fixed_too(kind: str, more: str, position: object) -> None:
    text = robot(
        link("a"),
        joint("j", "base", "a", "0.1 0.2 0.3", kind=kind, axis="0.6 0 0.8", rpy="0.3 -0.2 1.1",
              more=more),
        "{end}",
    )  # fmt: skip
    free = rm.load(text.replace("{end}", ""))
    there = rm.frame_pose(free, free.configuration({"j": position}), "a", backend="numpy")
    np.testing.assert_allclose(held_at(there, "a", text), there, atol=1e-9)


def test_a_slide_that_stands_turned_is_fixed_along_its_own_axis() -> None:
    """Its way is in its frame, not in its parent's; other joints turn about theirs."""
    text = robot(
        link("a"),
        link("b"),
        joint("slide", "base", "a", "0.1 0.2 0.3", kind="prismatic", axis="0.6 0 0.8",
              rpy="0.3 -0.2 1.1"),
        joint("turn", "a", "b", "0.2 0 0", axis="0 0.6 0.8", rpy="-0.5 0.4 0.2"),
        "{end}",
    )  # fmt: skip
    free = rm.load(text.replace("{end}", ""))
    pose = rm.frame_pose(free, [0.35, 0.7], "b", backend="numpy")
    np.testing.assert_allclose(held_at(pose, "b", text), pose, atol=1e-9)


def test_elsewhere_they_are_mistakes() -> None:
    closing = loop("weld", "fixed", "crank", "rocker", "1.1 0 0")
    with pytest.raises(rm.DescriptionError, match="leaves no motion"):
        rm.load(four_bar(closing=closing))
    locked = fan(coupling("one", {"a": 2, "b": -1}), coupling("two", {"a": 3, "b": -1}))
    description, error = rigid(locked)  # nothing says where
    with pytest.raises(RigidError):
        welded(description, error, strict=False)


def test_in_a_file_of_a_simulator() -> None:
    pytest.importorskip("mujoco")
    text = """<mujoco><worldbody>
      <body name="a"><joint name="ja" type="hinge" axis="0 0 1"/>
        <inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/></body>
      <body name="c" pos="0 0 1"><joint name="jc" type="hinge" axis="0 1 0"/>
        <inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/></body>
      <body name="b" pos="1 0 0"><joint name="jb" type="hinge" axis="0 0 1"/>
        <inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/></body>
    </worldbody><equality><weld body1="a" body2="b"/></equality></mujoco>"""
    with pytest.warns(rm.DescriptionWarning, match="rigid assembly"):
        model = rm.load(text)
    assert model.dof_names == ("jc",)
    with pytest.raises(rm.DescriptionError, match="rigid assembly"):
        rm.load(text, strict=True)


def test_springs_over_joints_that_are_fixed_keep_the_others() -> None:
    """The lengths of two tendons and of a spatial one; the last never changes and moves nothing."""
    mujoco = pytest.importorskip("mujoco")
    ball = '<inertial pos="0.1 0 0" mass="1" diaginertia="1 1 1"/>'
    text = f"""<mujoco><worldbody>
      <body name="a"><joint name="ja" axis="0 0 1" ref="40"/>{ball}<site name="sa"/></body>
      <body name="c" pos="0 0 1"><joint name="jc" axis="0 1 0"/>{ball}</body>
      <body name="b" pos="1 0 0"><joint name="jb" axis="0 0 1" ref="-20"/>{ball}
        <site name="sb"/></body>
    </worldbody><tendon>
      <fixed name="t" stiffness="5" springlength="0.3" damping="2">
        <joint joint="ja" coef="2"/><joint joint="jc" coef="-3"/>
        <joint joint="jb" coef="1"/></fixed>
      <fixed name="u" stiffness="5" springlength="0.3"><joint joint="ja" coef="2"/></fixed>
      <spatial name="s" stiffness="5" springlength="0.3">
        <site site="sa"/><site site="sb"/></spatial>
    </tendon><equality><weld body1="a" body2="b"/></equality></mujoco>"""
    with pytest.warns(rm.DescriptionWarning, match="rigid assembly"):
        model = rm.load(text)
    assert [each.name for each in model.springs] == ["t"]
    its = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(its)  # at ref, where the weld holds
    data.joint("jc").qpos, data.joint("jc").qvel = 0.7, -0.4
    mujoco.mj_forward(its, data)
    mine = rm.passive_force(model, [0.7], [-0.4], backend="numpy")
    np.testing.assert_allclose(mine, data.joint("jc").qfrc_passive, rtol=1e-13)


@pytest.mark.parametrize("length", ["0", "-1", "1e-320"])
def test_a_rod_has_a_length(length: str) -> None:
    closing = loop("rod", "rod", "coupler", "rocker", attributes=f'length="{length}"')
    with pytest.raises(rm.DescriptionError, match="of the rod is not positive"):
        rm.load(four_bar(closing=closing))


@pytest.mark.slow
@pytest.mark.parametrize("pitch", [0.003, -0.0003, 5e-5])
def test_fine_threads_are_no_rounding(pitch: float) -> None:
    """A hinge and a screw about one axis, or two screws, lock each other; a slide frees them."""

    def nut(*others: str) -> str:
        more = f'<pitch value="{pitch!r}"/>'
        screw = joint("screw", "base", "thread", axis="1 0 0", kind="screw", more=more)
        held = loop("held", "fixed", "thread", "nut", more="")
        return robot(link("nut"), link("thread", ""), screw, held, *others)

    hinge = joint("hinge", "base", "nut", axis="1 0 0")
    more = f'<pitch value="{0.9 * pitch!r}"/>'
    for locked in (hinge, joint("hinge", "base", "nut", axis="1 0 0", kind="screw", more=more)):
        for tolerance in (None, 1e-4, 1e-3, 0.1):  # what a file states is no play of threads
            with pytest.raises(rm.DescriptionError, match=r"mobility 0 .* threads .* lock it"):
                rm.load(nut(locked), tolerance=tolerance)
    slide = joint("slide", "base", "tube", axis="1 0 0", kind="prismatic")
    free = rm.load(nut(link("tube"), slide, joint("hinge", "tube", "nut", axis="1 0 0")))
    rates = dict(zip(free.joint_names, free.constraint_jacobian(free.neutral())[:, 0], strict=True))
    assert rates["slide"] == pytest.approx(pitch * rates["screw"])
    assert rates["hinge"] == pytest.approx(rates["screw"])
    tilted = joint("hinge", "tube", "nut", axis="1 0.0005 0")  # this is rounding
    near = rm.load(nut(link("tube"), slide, tilted), tolerance=1e-3)
    assert near.nv == 1
    assert "taken as exact within its tolerance" in " ".join(near.notes)
