"""The joints that carry the limbs, which reports and open trees share."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from cases import few
from texts import coupling, joint, link, loop, robot

import robomodel as rm
from robomodel.dynamics.actuators.envelopes import joint_envelope
from robomodel.opentree.tree_joints import sheet
from robomodel.reach import limb
from robomodel.reach.curves import curve
from robomodel.reach.displacements import Displacements
from robomodel.reach.limb import Choice, Ranges
from robomodel.reach.rotors import rotors

LIMBS = [
    ("parallel_ankle", ("pitch", "roll")),
    ("crank_rocker", ("rocker_joint",)),
    ("planar_leg_linkage", ("thigh_joint", "shank_support_joint")),
    ("belt_leg", ("hip_ry_link_joint", "knee_link_joint", "ankle_link_joint")),
    ("six_bar", ("joint1", "joint2", "joint4")),
    ("five_bar", ("J1", "J2")),
]


@pytest.mark.slow_cases("parallel_ankle-joints0")
@pytest.mark.parametrize(("name", "joints"), few(LIMBS, LIMBS[0], LIMBS[3]))
def test_a_knee_and_not_its_crank(name: str, joints: tuple[str, ...]) -> None:
    model = rm.robots.load(name)
    assert rm.limb_joints(model) == joints
    assert rm.limb_joints(rm.load(rm.robots.path(name), floating_base=True)) == joints


@pytest.mark.parametrize("marked", [*itertools.combinations(["J1", "J2", "J3", "J4"], 2)])
def test_nor_of_a_five_bar(marked: tuple[str, str]) -> None:
    model = rm.load(rm.robots.path("five_bar"), independent=marked)
    assert rm.limb_joints(model) == ("J1", "J2")


def watt(order: Sequence[int]) -> str:
    """A rocker of one four-bar, of masses that make like sets of its joints, turns a second."""

    def bar(name: str, mass: float, end: str) -> str:
        x, y = (0.5 * float(each) for each in end.split())
        size = mass * (x * x + y * y) / 3.0
        return link(name, f'<inertial><origin xyz="{x} {y} 0"/><mass value="{mass}"/><inertia '
                          f'ixx="{size}" iyy="{size}" izz="{2 * size}" ixy="0" ixz="0" iyz="0"/>'
                          "</inertial>")  # fmt: skip

    joints = [
        joint("turn", "base", "crank", more='<limit effort="50"/><initial position="0.178"/>'),
        joint("pin", "crank", "coupler", "0.2 0 0"),
        joint("swing", "base", "rocker", "0.9 0 0", more='<initial position="0.3"/>'),
        joint("pin2", "rocker", "rod", "0 0.43 0"),
        joint("out", "base", "flap", "1.58 0 0"),
    ]
    return (
        '<robot name="watt"><link name="base"/>'
        + bar("crank", 0.25, "0.2 0") + bar("coupler", 0.3, "0.8 0")
        + bar("rocker", 0.51, "0.07 0.6") + bar("rod", 0.3, "0.758 0") + bar("flap", 0.4, "0 0.42")
        + "".join(joints[n] for n in order)
        + loop("first", "revolute", "coupler", "rocker", "0.8 0 0", "0.1 0.5 0")
        + loop("second", "revolute", "rod", "flap", "0.758 0 0", "0 0.419 0")
        + "</robot>"
    )  # fmt: skip


def test_limbs_do_not_depend_on_the_order_of_joints() -> None:
    """Nor does the displacement by which sets are ranked: of a Watt linkage two are nearly one."""
    orders = [(0, 1, 2, 3, 4), (0, 3, 4, 1, 2), (2, 0, 3, 1, 4), (4, 2, 3, 0, 1), (3, 1, 0, 4, 2)]
    assert {rm.limb_joints(rm.load(watt(order))) for order in orders} == {("swing",)}


WRIST = ("left", "right", "pitch", "roll")


@pytest.mark.parametrize("marked", [*itertools.combinations(WRIST, 2)])
@pytest.mark.parametrize("driven", [(), WRIST[:2], WRIST[2:]])
def test_nor_of_a_differential_wrist(marked: tuple[str, str], driven: tuple[str, ...]) -> None:
    """Its hand is as symmetric about the roll axis as its gears are about theirs."""
    docs = Path(__file__).parent.parent / "docs" / "formats" / "couplings.md"
    (text,) = re.findall(r'<robot name="wrist">.*?</robot>', docs.read_text(), re.DOTALL)
    text = text.replace(' independent="true"', "")
    for name in driven:
        text = re.sub(rf'(<joint name="{name}" type=.*?>)', r'\1<motor effort="2"/>', text)
    model = rm.load(text, independent=marked)
    assert rm.limb_joints(model) == ("pitch", "roll")
    names = [model.joints[body].name for body in limb.rotors(model, model.clusters[0])]
    assert names == ["left", "right"]
    assert rm.validate(model).findings == ()
    # in pitch and roll: carrier, hand and two gears, which turn as their sum and difference
    at = model.configuration({"pitch": 0.3, "roll": 0.2})
    rates = model.constraint_jacobian(at)[[model.joint_names.index(n) for n in WRIST[2:]]]
    mass = np.linalg.inv(rates).T @ rm.crba(model, at) @ np.linalg.inv(rates)
    exact = np.diag([1e-4 + 1e-3 + 0.4 * 0.1**2 + 2e-4, 1e-3 + 2e-4])
    np.testing.assert_allclose(mass, exact, rtol=0, atol=1e-15)
    tree = rm.approximate_tree(model)
    assert "exactly" in tree.verdict
    np.testing.assert_allclose(rm.crba(tree, tree.neutral()), exact, atol=1e-15)


EQUAL_ANKLE = {
    "left": ("base", "0 0.1 0", "0 1 0"),
    "right": ("base", "0 -0.1 0", "0 1 0"),
    "pitch": ("base", "0 0 0", "0 1 0"),
    "roll": ("pitch", "0.1 0 0.02", "1 0 0"),
}
EQUAL_GEARS = {  # of links that are all alike one turns 1.7 times as fast
    "arm": ("base", "0 0 0", "0 1 0"),
    "wheel": ("arm", "0.1 0 0", "0 1 0"),
    "hand": ("arm", "0.3 0 0", "0 1 0"),
}


@pytest.mark.parametrize("seed", range(6))
def test_links_that_weigh_the_same_have_the_same_limbs_in_any_order(seed: int) -> None:
    """Those that turn faster are the motors: symmetric ones of a differential, and others."""
    rng = np.random.default_rng(seed)
    for joints, ties, at, limbs in (
        (EQUAL_ANKLE, [{"pitch": -3.0, "roll": -2.0, "left": 1.0},
                       {"pitch": -3.0, "roll": 2.0, "right": 1.0}], "0 0 0", {"pitch", "roll"}),
        (EQUAL_GEARS, [{"wheel": 1.0, "hand": 1.7}], "0.1 0 0.02", {"arm", "hand"}),
    ):  # fmt: skip
        parts = [coupling(f"tie{n}", terms) for n, terms in enumerate(ties)]
        for name, (parent, xyz, axis) in joints.items():
            carrier = "base" if parent == "base" else f"{parent}_link"
            parts.append(joint(name, carrier, f"{name}_link", xyz, axis=axis))
            parts.append(
                f'<link name="{name}_link"><inertial><origin xyz="{at}"/><mass value="1"/><inertia '
                'ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>'
            )  # fmt: skip
        model = rm.load(robot(*(parts[n] for n in rng.permutation(len(parts)))))
        assert {*rm.limb_joints(model)} == limbs


@pytest.mark.slow
def test_it_is_not_what_the_file_marks() -> None:
    """Cranks, or motors' joints, are independent in these files."""
    data = Path(__file__).parent / "data" / "limbs"
    limbs = {
        "five_bar_leg.urdf": ("front", "front_knee", "wheel"),
        "ankle_belts_two_rods.urdf": ("pitch", "roll"),
        "ankle_rods_on_foot.xml": ("pitch", "roll"),
        "digger_cylinder.urdf": ("boom", "stick"),
    }
    for name, joints in limbs.items():
        assert rm.limb_joints(rm.load(data / name)) == joints


@pytest.mark.slow
def test_limits_of_more_than_a_turn_are_none() -> None:
    """As of degrees read as radians: the range goes 0.6 rad from neutral, not upside down."""
    text = (Path(__file__).parent / "data" / "limbs" / "ankle_rods_on_foot.xml").read_text()
    model = rm.load(text.replace('"-0.25 0.4"', '"-15 22.5"'))
    bodies = [model.joint_names.index(name) for name in ("pitch", "roll")]
    q = sheet(model, tuple(bodies)).draw(np.random.default_rng(0), 100)
    at = model.joint_positions(q)
    assert 0.4 < np.max(np.abs(at["roll"])) < 0.6 + 1e-9
    assert np.max(at["pitch"]) < 0.5 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["parallel_ankle", "planar_leg_linkage"])
def test_the_open_tree_has_them(name: str) -> None:
    """Beside them it has only joints of its own, which stand for rotors."""
    model = rm.robots.load(name)
    tree = rm.approximate_tree(model).joint_names
    assert sorted(set(tree) & set(model.joint_names)) == sorted(rm.limb_joints(model))


@pytest.mark.parametrize("name", few(["parallel_ankle", "six_bar", "tello"], "parallel_ankle"))
def test_neighbours_of_one_set_stand_for_very_many(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where sets are too many to be tried, the choice is that of all of them."""
    wanted = rm.limb_joints(rm.robots.load(name))
    monkeypatch.setattr(limb, "SETS", 0)
    model = rm.robots.load(name)
    assert rm.limb_joints(model) == wanted


def test_subsets_are_counted() -> None:
    sizes = [1, 1, 2, 3, 1, 2]
    for total in range(6):
        every = itertools.chain(*(itertools.combinations(sizes, n) for n in range(7)))
        assert limb._combinations(sizes, total) == sum(sum(each) == total for each in every)


@pytest.mark.slow
def test_a_rod_that_hangs_on_the_shin_carries_nothing(tmp_path: Path) -> None:
    """Of a leg of two parallel rods, the one that the shin hangs on."""
    text = (
        '<mujoco><worldbody><body name="back"><joint name="thigh" axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass="1"/>'
        '<body name="shin" pos="0 0 -.3"><joint name="knee" axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 .1 0 -.4" size=".03" mass="5"/>'
        '<body name="front" pos=".1 0 0"><joint name="rod" axis="0 1 0"/>'
        '<geom type="capsule" fromto="0 0 0 0 0 .3" size=".01" mass=".1"/></body></body></body>'
        '</worldbody><equality><connect body1="front" body2="world" anchor="0 0 .3"/></equality>'
        "</mujoco>"
    )
    (tmp_path / "leg.xml").write_text(text, encoding="utf-8")
    model = rm.load(tmp_path / "leg.xml")
    assert rm.limb_joints(model) == ("thigh",)
    tree = rm.approximate_tree(model)
    assert {"thigh", "knee"} <= set(tree.joint_names)
    assert tree.verdict.startswith("will do")


@pytest.mark.slow
def test_a_delta_robot_is_carried_by_its_shoulders() -> None:
    """And not by the ball on which its platform hangs, or by rods."""
    arms = connects = ""
    for k, angle in enumerate(np.radians([0.0, 120.0, 240.0])):
        rods = ""
        for side in (1, -1):
            name, platform = f"rod{k}{'a' if side > 0 else 'b'}", ""
            if name == "rod0a":
                platform = (
                    '<body name="platform" pos="-.15 0 -.2"><joint name="ball" type="ball"/>'
                    '<inertial pos="-.05 -.02 0" mass=".03" diaginertia="1e-5 1e-5 2e-5"/></body>'
                )
            else:
                connects += f'<connect body1="{name}" body2="platform" anchor="-.15 0 -.2"/>'
            rods += (
                f'<body name="{name}" pos=".1 {0.02 * side} 0"><joint name="{name}" type="ball"/>'
                '<inertial pos="-.07 0 -.1" mass="1e-4" diaginertia="5e-7 5e-7 1e-8"/>'
                f"{platform}</body>"
            )
        x, y = 0.1 * np.cos(angle), 0.1 * np.sin(angle)
        w, z = np.cos(angle / 2), np.sin(angle / 2)
        arms += (
            f'<body name="arm{k}" pos="{x} {y} 0" quat="{w} 0 0 {z}">'
            f'<joint name="shoulder{k}" axis="0 1 0" range="-1.5 1.5"/>'
            f'<inertial pos=".05 0 0" mass=".05" diaginertia="1e-6 5e-5 5e-5"/>{rods}</body>'
        )
    model = rm.load(
        f'<mujoco><compiler angle="radian"/><worldbody>{arms}</worldbody>'
        f"<equality>{connects}</equality></mujoco>"
    )
    assert rm.limb_joints(model) == ("shoulder0", "shoulder1", "shoulder2")


HINGES = "".join(f'<joint name="{{0}}{x}" axis="{axis}"/>' for x, axis in
                 (("x", "1 0 0"), ("y", "0 1 0"), ("z", "0 0 1")))  # fmt: skip
BALLS = {"balls": '<joint name="{0}" type="ball"/>', "hinges": HINGES}
TIPS = tuple(0.1 * np.array([np.cos(x), np.sin(x), 0.0]) for x in np.radians(
    [-12.0, 12.0, 108.0, 132.0, 228.0, 252.0]))  # fmt: skip
ENDS = tuple(np.array([0.06 * np.cos(x), 0.06 * np.sin(x), 0.15]) for x in np.radians(
    [-50.0, 50.0, 70.0, 170.0, 190.0, 290.0]))  # fmt: skip


def hexapod(ball: str) -> rm.Model:
    """A platform on six rods between balls, one of which it hangs on, and cranks with motors."""
    cranks = connects = motors = ""
    for k, (tip, end) in enumerate(zip(TIPS, ENDS, strict=True)):
        x, y, z = end - tip
        platform = ""
        if k == 5:
            platform = (
                f'<body name="platform" pos="{x} {y} {z}">{ball.format("ball")}'
                f'<inertial pos="{-end[0]} {-end[1]} .01" mass=".3" '
                'diaginertia="3e-4 3e-4 5e-4"/></body>'
            )
        else:
            connects += f'<connect body1="rod{k}" body2="platform" anchor="{x} {y} {z}"/>'
        away = 0.07 * tip / 0.1
        cranks += (
            f'<body name="crank{k}" pos="{tip[0] - away[0]} {tip[1] - away[1]} 0">'
            f'<joint name="crank{k}" axis="{-tip[1]} {tip[0]} 0" range="-3 3"/>'
            f'<inertial pos="0 0 0" mass=".02" diaginertia="1e-6 1e-6 1e-6"/>'
            f'<body name="rod{k}" pos="{away[0]} {away[1]} 0">{ball.format(f"low{k}")}'
            f'<inertial pos="{x / 2} {y / 2} {z / 2}" mass=".01" diaginertia="2e-5 2e-5 2e-5"/>'
            f"{platform}</body></body>"
        )
        motors += f'<motor joint="crank{k}" forcelimited="true" forcerange="-1 1"/>'
    return rm.load(
        f'<mujoco><compiler angle="radian"/><worldbody>{cranks}</worldbody>'
        f"<equality>{connects}</equality><actuator>{motors}</actuator></mujoco>"
    )


@pytest.mark.slow_cases("hinges")
@pytest.mark.parametrize("kind", BALLS)
def test_a_hexapod_is_carried_by_its_cranks(kind: str) -> None:
    """However its balls are written; no hinge of a ball of a rod tells where the platform is.

    A crank turns back, with the others at rest, where the platform moves with all cranks at rest:
    where forces along the six rods cannot hold it.
    """
    model = hexapod(BALLS[kind])
    cranks = tuple(f"crank{k}" for k in range(6))
    assert rm.limb_joints(model) == cranks
    for name in ("crank0", "crank5"):
        body = model.joint_names.index(name)
        row = joint_envelope(model, body)
        assert row.at_rest[0] < -0.1
        assert row.at_rest[1] > 0.1
        sizes = np.abs([determinant_of_rods(model, q) for q in row.q[row.line]])
        assert row.dead_points
        for each in row.dead_points:
            assert each.kind == "both rest"
            near = np.argmin(np.abs(row.positions[row.line] - each.position))
            assert sizes[near] < 1e-8 * np.max(sizes)


def determinant_of_rods(model: rm.Model, q: np.ndarray) -> float:
    """The determinant of the lines of a hexapod's rods: their directions, and moments."""
    lines = []
    for k, (tip, end) in enumerate(zip(TIPS, ENDS, strict=True)):
        rod, platform = (rm.frame_pose(model, q, name) for name in (f"rod{k}", "platform"))
        low = rod[:3, 3]
        high = platform[:3, :3] @ (end - ENDS[5]) + platform[:3, 3]
        assert np.linalg.norm(high - low) == pytest.approx(np.linalg.norm(end - tip), abs=1e-9)
        way = (high - low) / np.linalg.norm(high - low)
        lines.append([*way, *(np.cross(low, way) / 0.1)])
    return float(np.linalg.det(lines))


def test_sets_are_completed_by_what_they_tell_least() -> None:
    """Whatever joints they begin with, they determine the cluster at neutral."""
    model = rm.robots.load("parallel_ankle")
    index = model.nodes[model.joint_names.index("pitch")].cluster
    choice = Choice(model, model.clusters[index], ())
    frames = choice.frames(choice.start[None])
    for body in (*choice.pool, None):
        first = () if body is None else (body,)
        found = choice.telling(first)
        assert {*first} <= {*found}
        assert sum(choice.freedoms[b] for b in found) == model.clusters[index].nv
        assert choice.regularity(frames, found)[0] > 0.1


@pytest.mark.slow
def test_sweeps_of_validate_know_no_spins() -> None:
    """Dead points of a hexapod's sweeps are where its rods' forces cannot hold it.

    Whether balls are written as such or as hinges, of which some are independent, and are not held.
    """
    found = {}
    for kind, ball in BALLS.items():
        model = hexapod(ball)
        cluster = model.clusters[model.nodes[0].cluster]
        assert set(cluster.independent) - {f"crank{k}" for k in range(6)}
        sweep = curve(model, cluster, "crank0")
        assert set(sweep.held) == {f"crank{k}" for k in range(1, 6)}
        sizes = [np.abs(determinant_of_rods(model, np.array(each.joints)))
                 for each in sweep.singularities]  # fmt: skip
        assert sizes
        assert max(sizes) < 1e-8
        found[kind] = [(each.kind, each.position) for each in sweep.singularities if each.reached]
        assert all(kind == "dead point" for kind, _ in found[kind])
    assert found["hinges"] == [(kind, pytest.approx(x)) for kind, x in found["balls"]]


@pytest.mark.parametrize("lever", [6e-3, 6e-5])
def test_fingers_that_slides_pull_are_no_rotors(lever: float) -> None:
    """A screw pulls two fingers by a whiffletree, over two hinges each: the tree is exact.

    Metres by radians are no gear: the outer links of fingers carry the limbs as much as the inner.
    """
    parts, near = [link("nut"), link("near_a"), link("near_b")], {"a": 1.5, "b": 1.5}
    for f in near:
        parts += [
            link(f"far_{f}"), link(f"pulled_{f}"),
            joint(f"near_{f}", "base", f"near_{f}", axis="0 1 0"),
            joint(f"far_{f}", f"near_{f}", f"far_{f}", "0.04 0 0", axis="0 1 0"),
            joint(f"pull_{f}", "base", f"pulled_{f}", kind="prismatic", axis="1 0 0"),
            coupling(f"tendon_{f}", {f"pull_{f}": 1.0, f"near_{f}": -1.5 * lever,
                                     f"far_{f}": -lever}),
        ]  # fmt: skip
    parts += [
        joint("screw", "base", "nut", kind="prismatic", axis="1 0 0"),
        coupling("whiffletree", {"screw": 2.0, "pull_a": -1.0, "pull_b": -1.0}),
    ]
    model = rm.load(robot(*parts))
    assert not any(rotors(model, cluster) for cluster in model.clusters)
    tree = rm.approximate_tree(model)
    assert set(tree.joint_names) >= {"near_a", "far_a", "near_b", "far_b"}
    assert tree.verdict.startswith("will do: it moves exactly")


@pytest.mark.parametrize("form", ["mimic", "coupling"])
@pytest.mark.parametrize("multiplier", [0.4, 2.5])
def test_fingers_are_no_rotors_however_they_are_geared(form: str, multiplier: float) -> None:
    """Two fingers on a wrist, one of which turns 2.5 times as fast: the tree moves exactly.

    It has the robot's accelerations at any state, whichever finger is the tree's.
    """
    parts = [link("palm"), link("a"), link("b"), joint("wrist", "base", "palm", axis="0 1 0"),
             joint("first", "palm", "a", "0.1 0.03 0")]  # fmt: skip
    tie = f'<mimic joint="first" multiplier="{multiplier}"/>' if form == "mimic" else ""
    parts.append(joint("second", "palm", "b", "0.1 -0.03 0", more=tie))
    if form == "coupling":
        parts.append(coupling("gear", {"second": 1.0, "first": -multiplier}))
    model = rm.load(robot(*parts), independent=["wrist", "first"])
    assert not any(rotors(model, cluster) for cluster in model.clusters)
    tree = rm.approximate_tree(model)
    assert {*tree.joint_names} == {"wrist", "first", "second"}
    assert tree.verdict.startswith("will do: it moves exactly")
    rng = np.random.default_rng(0)
    q, v, tau = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    rates = dict(zip(model.joint_names, model.constraint_jacobian(q), strict=True))
    r = np.array([rates[name] for name in tree.dof_names])
    t = tree.configuration(model.joint_positions(q))
    found = rm.aba(tree, t, r @ v, np.linalg.solve(r.T, tau))
    np.testing.assert_allclose(found, r @ rm.aba(model, q, v, tau), rtol=1e-9)


def test_joints_that_couplings_lock_are_no_limbs() -> None:
    """Of four joints tied by three couplings, two cannot move: the limb is one of the others."""
    names = "abcd"
    rates = {"e": {"a": 3.37, "b": -1.515, "d": -1.852},
             "f": {"a": 2.962, "c": 3.811}, "g": {"a": -0.86, "c": -2.635}}  # fmt: skip
    parts = [link(f"l{n}") + joint(n, "base", f"l{n}", f"{0.3 * i} 0 0", axis="0 1 0")
             for i, n in enumerate(names)]  # fmt: skip
    model = rm.load(robot(*parts, *(coupling(name, terms) for name, terms in rates.items())))
    assert model.nv == 1
    (limb,) = rm.limb_joints(model)
    assert limb in "bd"
    tree = rm.approximate_tree(model)
    assert tree.verdict.startswith("will do: it moves exactly")
    assert {each.joint for each in rm.actuation(model).joints} == {limb}


def test_sets_that_are_not_measured_are_no_finalists(monkeypatch: pytest.MonkeyPatch) -> None:
    model = rm.robots.load("six_bar")
    choice = Choice(model, next(each for each in model.clusters if each.kind == "loops"))
    displacements = Displacements.of(model, choice.cluster, choice.start)
    sets, positions = list(choice.sets()), choice.paths()
    some, every = (
        Ranges.of(choice, displacements, [(positions, choice.frames(positions))]) for _ in range(2)
    )
    found, finalists = choice.ranked(sets, some), limb.FINALISTS
    monkeypatch.setattr(limb, "FINALISTS", len(sets))
    ranked = choice.ranked(sets, every)
    assert found[:finalists] == ranked[:finalists]
    assert len(some._told) < len(every._told)
