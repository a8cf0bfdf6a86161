"""Which coordinates are chosen as independent, and that nothing irrelevant has a say in it."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from cases import few
from equivalent_robots import mirrored, shuffled
from mechanisms import LOOP_KINDS, Mechanism, linear_hip, random_mechanism
from texts import coupling, four_bar, joint, link, loop, robot, wrist

import robomodel as rm
from robomodel.mobility import exploration

pytestmark = pytest.mark.filterwarnings("ignore:.*only its direction is used")

ROTOR = '<robot name="rotor"><joint name="{}"><rotor inertia="1e-5" ratio="9"/></joint></robot>'


def chosen(text: str) -> set[str]:
    return set(rm.load(text).dof_names)


def started(mechanism: Mechanism) -> str:
    """The text, its joints of one freedom starting where its loops close."""
    robot = ET.fromstring(mechanism.text)
    for element in robot.findall("joint"):
        position = mechanism.closed.get(element.attrib["name"])
        if position is not None and np.ndim(position) == 0:
            ET.SubElement(element, "initial", position=repr(float(np.asarray(position))))
    return ET.tostring(robot, encoding="unicode")


def conditioning(model: rm.Model, q: np.ndarray) -> float:
    return 1.0 / float(np.linalg.norm(model.constraint_jacobian(q), 2))


# ---- a choice is found ---------------------------------------------------------------------------


@pytest.mark.slow
def test_a_linkage_that_closes_in_several_kinds_of_ways() -> None:
    """In each of them other joints are locked, so that no choice serves nine configurations in ten.

    The one taken lets as many joints move as can be; the actuator is not locked there.
    """
    model = rm.load(linear_hip())
    assert model.nv == 3
    assert {"yaw", "swing"} < set(model.dof_names)
    q = model.neutral()
    assert np.max(np.abs(model.residual(q))) < 1e-10
    assert conditioning(model, q) > 0.1
    rates = dict(zip(model.joint_names, model.constraint_jacobian(q), strict=True))
    assert abs(rates["push"][0]) > 1e-3
    assert np.linalg.eigvalsh(rm.crba(model, q)).min() > 0
    assert abs(model.joint_positions(q)["push"]) <= 0.2


@pytest.mark.slow
def test_other_joints_are_named_than_those_that_cannot_be() -> None:
    """The actuator's length says where the hip is: both cannot be independent."""
    marked = re.sub(r'name="(yaw|push|swing)"', r'name="\1" independent="true"', linear_hip())
    with pytest.raises(rm.DescriptionError, match="cannot be the independent") as caught:
        rm.load(marked)
    refused, _, proposed = str(caught.value).partition("; take ")
    proposal = re.findall(r"'(\w+)'", proposed)
    assert len(proposal) == 3
    assert set(proposal) - set(re.findall(r"'(\w+)'", refused))
    assert rm.load(linear_hip(), independent=proposal).nv == 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["six_bar", "planar_chain", "ankle"])
def test_exchange_finds_what_trying_all_finds(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(2):
        text = random_mechanism(
            np.random.default_rng(seed), [kind], marked=False, n_joints=0, floating_base=False
        ).text
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(exploration, "ATTEMPTS", 0)
            by_exchange = rm.load(text)
        model = rm.load(text)
        q = model.neutral()
        assert conditioning(by_exchange, by_exchange.neutral()) > 0.3 * conditioning(model, q)


@pytest.mark.slow
def test_many_joints_are_chosen_among() -> None:
    """Twenty links in a ring on a plane: too many choices, at too many poses, to try them all."""
    n = 20
    parts = [link(f"l{i}") for i in range(n)]
    for i in range(n):
        turn = "0" if i == 0 else repr(2 * np.pi / (n + 1))
        parts.append(
            joint(f"j{i}", f"l{i - 1}" if i else "base", f"l{i}", "0.2 0 0" if i else "0 0 0",
                  rpy=f"0 0 {turn}")
        )  # fmt: skip
    size = 2 * np.pi / (n + 1)
    end = sum(0.2 * np.array([np.cos(i * size), np.sin(i * size)]) for i in range(n))
    at = f"{end[0]} {end[1]} 0"
    parts.append(loop("close", "spherical", "base", f"l{n - 1}", at, "0.2 0 0", more=""))
    model = rm.load(robot(*parts))
    assert model.nv == n - 2
    assert conditioning(model, model.neutral()) > 0.1


# ---- what has no say -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seeds", [range(1, 2), pytest.param(range(2, 8), marks=pytest.mark.slow)], ids=["one", "more"]
)
@pytest.mark.parametrize("kind", few(LOOP_KINDS, "four_bar", "rod", "ankle"))
def test_mirror_images_and_other_words_for_a_robot_are_chosen_for_alike(
    kind: str, seeds: range
) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        mechanism = random_mechanism(rng, [kind], marked=False, n_joints=0, floating_base=False)
        text = started(mechanism)
        model, image = rm.load(text), rm.load(mirrored(text))
        assert image.dof_names == model.dof_names
        there, here = (m.joint_positions(m.neutral()) for m in (image, model))
        for name, joint_ in zip(model.joint_names, model.joints, strict=True):
            if joint_.nq == 1:
                assert there[name] == pytest.approx(here[name], abs=1e-8)
        other, names = shuffled(text, rng)
        wanted = {names[name.partition(".")[0]] for name in model.dof_names}
        assert {name.partition(".")[0] for name in rm.load(other).dof_names} == wanted


def parallelogram(side: str, crank: float) -> str:
    """A foot on a shank, moved by a rod of a crank; open at zero, and there the limits are."""
    limit = '<limit lower="-2.4" upper="-0.6"/>'
    y = 0.1 if side == "left" else -0.1
    return (
        link(f"{side}_shank")
        + link(f"{side}_crank")
        + link(f"{side}_rod")
        + link(f"{side}_foot")
        + joint(f"{side}_knee", "base", f"{side}_shank", f"0 {y} 0", axis="0 1 0")
        + joint(f"{side}_crank", f"{side}_shank", f"{side}_crank", "0.06 0 0.03",
                kind="revolute", axis="0 1 0", more=limit)
        + joint(f"{side}_rod", f"{side}_crank", f"{side}_rod", f"{crank!r} 0 0", axis="0 1 0")
        + joint(f"{side}_foot", f"{side}_shank", f"{side}_foot", "0.41 0 0.04",
                kind="revolute", axis="0 1 0", more=limit)
        + loop(f"{side}_end", "revolute", f"{side}_rod", f"{side}_foot", "0.35 0 0",
               "-0.05 0 0.02", '<axis xyz="0 1 0"/>')
    )  # fmt: skip


@pytest.mark.parametrize("off", [0.0, 1e-9, 1e-7, -1e-7])
def test_two_legs_that_differ_by_rounding_are_chosen_for_alike(off: float) -> None:
    model = rm.load(robot(parallelogram("left", 0.055), parallelogram("right", 0.055 + off)))
    left = {name.removeprefix("left_") for name in model.dof_names if name.startswith("left")}
    right = {name.removeprefix("right_") for name in model.dof_names if name.startswith("right")}
    assert left == right
    q = model.joint_positions(model.neutral())
    assert q["left_foot"] == pytest.approx(q["right_foot"], abs=1e-3)


def test_couplings_of_equal_ratios_up_to_rounding_follow_the_same_joint() -> None:
    for third in (1 / 3, 1 / 3 + 1e-16, 0.1 + 0.7 / 3):
        text = robot(
            *(link(n) for n in "abc"),
            *(joint(f"j_{n}", "base", n) for n in "abc"),
            coupling("sum", {"j_a": 1.0, "j_b": 3 * third, "j_c": 1.0}),
        )
        assert rm.load(text).dof_names == ("j_a", "j_b")


def test_equally_good_joints_are_told_apart_by_what_they_carry() -> None:
    """Of the two sides of a parallelogram on the base, the one that carries the coupler."""
    sides = {
        "first": joint("first", "base", "one"),
        "second": joint("second", "base", "two", "0.4 0 0"),
    }
    for order in (("first", "second"), ("second", "first")):
        text = robot(
            *(link(n) for n in ("one", "two", "top")),
            *(sides[name] for name in order),
            joint("coupler", "two", "top", "0 0.3 0"),
            loop("close", "revolute", "top", "one", "-0.4 0 0", "0 0.3 0"),
        )
        assert chosen(text) == {"second"}


# ---- what is added to a joint does not move it ---------------------------------------------------


@pytest.mark.slow
def test_rotors_move_no_robot() -> None:
    for name in ("planar_leg_linkage", "four_bar", "five_bar", "crank_rocker", "six_bar"):
        plain = rm.robots.load(name)
        before = plain.joint_positions(plain.neutral())
        for each in plain.joints:
            model = rm.load(rm.robots.path(name), extend=ROTOR.format(each.name))
            after = model.joint_positions(model.neutral())
            assert {key: after[key] for key in before} == before
            assert after[f"{each.name}_rotor"] == pytest.approx(9 * before[each.name], abs=1e-12)
            assert model.dof_names == plain.dof_names
            assert np.max(np.abs(model.residual(model.neutral()))) < 1e-10


@pytest.mark.slow_cases("four_bar", "two_outputs")
@pytest.mark.parametrize(
    "kind",
    few(["four_bar", "rssr", "ankle", "loop_on_loop", "two_outputs"], "four_bar", "two_outputs"),
)
def test_rotors_move_no_mechanism(kind: str) -> None:
    mechanism = random_mechanism(
        np.random.default_rng(5), [kind], marked=False, n_joints=1, floating_base=True
    )
    plain = rm.load(mechanism.text, floating_base=True)
    before = plain.joint_positions(plain.neutral())
    rotors = [ROTOR.format(j.name) for j in plain.joints if j.type in ("revolute", "continuous")]
    model = rm.load(mechanism.text, floating_base=True, extend=rotors)
    after = model.joint_positions(model.neutral())
    for name, position in before.items():
        np.testing.assert_array_equal(after[name], position)
    assert set(model.dof_names) == set(plain.dof_names)
    q = model.random_configuration(0)
    assert np.max(np.abs(model.residual(q))) < 1e-9


def test_a_rotor_of_a_rotor_and_a_follower_with_limits() -> None:
    """Followers of followers follow too; a follower's limits hold for the joint that it follows."""
    start = '<initial position="0.9"/>'
    parts = [
        four_bar().replace('<child link="crank"/>', f'<child link="crank"/>{start}'),
        link("cam"),
        link("pointer"),
        joint("j_cam", "base", "cam", more='<mimic joint="j_crank" multiplier="2" offset="0.1"/>'),
        joint("j_pointer", "base", "pointer", kind="revolute",
              more='<mimic joint="j_cam" multiplier="-3"/><limit lower="-4.5" upper="-1.5"/>'),
    ]  # fmt: skip
    text = parts[0].replace("</robot>", "".join(parts[1:]) + "</robot>")
    model = rm.load(text)
    assert model.dof_names == ("j_crank",)
    q = model.joint_positions(model.neutral())
    assert q["j_cam"] == pytest.approx(2 * q["j_crank"] + 0.1, abs=1e-12)
    assert q["j_pointer"] == pytest.approx(-3 * q["j_cam"], abs=1e-12)
    assert -4.5 <= q["j_pointer"] <= -1.5
    for q in (model.random_configuration(seed) for seed in range(3)):
        assert np.max(np.abs(model.residual(q))) < 1e-9
        rates = model.constraint_jacobian(q)
        plain = rm.load(four_bar())
        bar = [model.joint_positions(q)[name] for name in plain.joint_names]
        assert rates[:3] == pytest.approx(plain.constraint_jacobian(bar))
        assert rates[3:, 0] == pytest.approx([2.0, -6.0])


def test_all_subsets_of_marks_are_served() -> None:
    """Whatever two of a five-bar's joints are marked, they are taken if they can be."""
    base = rm.robots.load("five_bar")
    joints = [each.name for each in base.joints]
    for pair in itertools.combinations(joints, 2):
        model = rm.load(rm.robots.path("five_bar"), independent=pair)
        assert model.dof_names == pair


@pytest.mark.parametrize("marked", [False, True])
def test_a_rotor_that_is_independent_moves_no_robot(marked: bool) -> None:
    """Its crank leads where the loop closes; the rotor is independent in its place."""
    start = '<initial position="0.9"/>'
    text = four_bar().replace('<child link="crank"/>', f'<child link="crank"/>{start}')
    rotor = ROTOR.format("j_crank")
    plain = rm.load(text, extend=rotor)
    before = plain.joint_positions(plain.neutral())
    if marked:
        rotor = link("wheel") + joint("wheel", "base", "wheel", mark=True)
        rotor += (
            '<coupling name="gear"><predecessor link="crank"/><successor link="wheel"/>'
            '<ratio value="9"/></coupling>'
        )
        model = rm.load(text.replace("</robot>", rotor + "</robot>"))
        name = "wheel"
    else:
        name = "j_crank_rotor"
        model = rm.load(text, extend=rotor, independent=[name])
    assert model.dof_names == (name,)
    after = model.joint_positions(model.neutral())
    assert after[name] == pytest.approx(9.0 * before["j_crank"], abs=1e-9)
    for each in ("j_crank", "j_coupler", "j_rocker"):
        assert after[each] == pytest.approx(before[each], abs=1e-9)
    assert rm.limb_joints(model) == rm.limb_joints(plain)
    q = model.configuration({name: 9.0 * 1.3})
    assert np.max(np.abs(model.residual(q))) < 1e-9
    crank = model.joint_names.index("j_crank")
    assert model.constraint_jacobian(q)[crank, 0] == pytest.approx(1 / 9)


@pytest.mark.parametrize(
    "leading", [("pitch", "roll"), ("left", "right"), ("pitch", "left"), ("roll", "right")]
)
@pytest.mark.parametrize(
    ("more", "pitch"),
    [('<initial position="0.4"/><limit/>', 0.4), ('<limit lower="0.2" upper="1.2"/>', 0.2)],
    ids=["initial", "limit"],
)
def test_differentials_start_alike_whichever_joints_are_independent(
    leading: tuple[str, str], more: str, pitch: float
) -> None:
    """Their motors follow to where the file puts the joints, within limits."""
    kind = "continuous" if "initial" in more else "revolute"
    model = rm.load(wrist(kind, more), independent=leading)
    q = model.joint_positions(model.neutral())
    for name, position in {"pitch": pitch, "roll": 0.0, "left": 3 * pitch}.items():
        assert q[name] == pytest.approx(position, abs=1e-12)


@pytest.mark.parametrize("independent", [*itertools.combinations("abc", 2)])
def test_belts_of_several_joints_start_within_limits(independent: tuple[str, str]) -> None:
    """The fastest joint of a belt cannot follow the others at zero, as its lower limit is there."""
    parts = [link(f"l{n}") + joint(n, "base", f"l{n}", f"{0.3 * i} 0 0", kind="revolute",
                                   more=f'<limit lower="{0 if n == "c" else -1}" upper="1"/>')
             for i, n in enumerate("abc")]  # fmt: skip
    text = robot(*parts, coupling("belt", {"a": 1.5, "b": -1.4, "c": -1.3}, 0.13))
    model = rm.load(text, independent=independent)
    at = model.joint_positions(model.neutral())
    assert 1.5 * at["a"] - 1.4 * at["b"] - 1.3 * at["c"] == pytest.approx(0.13, abs=1e-12)
    assert at["c"] >= -1e-12
    if independent == ("a", "b"):  # the nearest to where these are zero
        share = 0.13 / (1.5**2 + 1.4**2)
        assert [at["a"], at["b"], at["c"]] == pytest.approx([1.5 * share, -1.4 * share, 0.0])
    assert model.is_reachable(model.neutral())
