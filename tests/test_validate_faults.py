"""Seeded faults of exports are named by the link, joint, loop or rotor that has them."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from shipped_robots import DISTINCT
from texts import coupling, joint, link, loop, robot
from validation_texts import only

import robomodel as rm
from benchmarks.shared.seeded_faults import (
    KINDS,
    Named,
    Seeds,
    against,
    alone,
    counterparts,
    is_named,
)
from robomodel.description import Limits, Link
from robomodel.model import build
from robomodel.reports.validation.context import CheckContext
from robomodel.reports.validation.twin_checks import check_twins


@cache
def shipped(name: str) -> tuple[rm.Model, Named]:
    model = rm.robots.load(name)
    return model, alone("", model.description)


@cache
def alike(name: str) -> set[str]:
    return counterparts(shipped(name)[0])


def is_named_alone(kind: str, name: str, seed: int, *, inside: bool = False) -> bool | None:
    model, before = shipped(name)
    seeded = KINDS[kind](Seeds(model, seed, inside=inside))
    if seeded is None:
        return None
    before = alone(kind, model.description) if kind == "loop" else before
    return is_named(kind, seeded, alone(kind, seeded[0]) - before)


@pytest.mark.slow_cases("mirrored-mit_humanoid")
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("units", "puma560"),
        ("lengths", "puma560"),
        ("composite", "mini_cheetah"),
        ("override", "mini_cheetah"),
        ("axis", "mini_cheetah"),
        ("mirrored", "mit_humanoid"),
        ("rotor", "mini_cheetah"),
    ],
)
def test_seeded(kind: str, name: str) -> None:
    assert is_named_alone(kind, name, 1)


HIDDEN = ("composite", "override", "mirrored", "axis")  # no single link shows them
MISSED = {
    ("mini_cheetah", "mirrored"),  # copies that may be mirror images
    ("mit_humanoid_leg", "rotor"),
    ("teleop_arm", "rotor"),
}


@pytest.mark.tables
def test_rates_in_one_file() -> None:
    """Each kind in each shipped robot: named are all but those of docs/validate.md."""
    missed, named_alone, seeds = set(), set(), 0
    for name, (kind, fault) in itertools.product(DISTINCT, KINDS.items()):
        if kind == "loop":
            continue  # checks of linkages are slow, and have a test of their own
        model, _ = shipped(name)
        if (seeded := fault(Seeds(model, 1))) is None:
            continue
        seeds += 1
        told = kind not in HIDDEN or bool(set(seeded[1]) & alike(name))
        named = is_named_alone(kind, name, 1)
        if told and not named:
            missed.add((name, kind))
        elif named and not told:
            named_alone.add((name, kind))
    assert seeds > 60
    assert missed == MISSED
    assert not named_alone


@pytest.mark.slow
@pytest.mark.parametrize("name", ["crank_rocker", "four_bar", "planar_leg_linkage"])
def test_open_loops_in_one_file(name: str) -> None:
    for seed in range(2):
        assert is_named_alone("loop", name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["composite", "rotor"])
def test_inside_a_linkage(kind: str) -> None:
    assert is_named_alone(kind, "tello", 1, inside=True)


@pytest.mark.tables
@pytest.mark.slow
def test_rates_against_a_reference() -> None:
    """Each kind in each shipped robot, and in its linkages: all are named."""
    missed, seed = [], 0
    for name, (kind, fault), inside in itertools.product(DISTINCT, KINDS.items(), (False, True)):
        model, _ = shipped(name)
        seeded = fault(Seeds(model, seed, inside=inside))
        if seeded is not None and not is_named(kind, seeded, against(model, seeded[0])):
            missed.append((name, kind, seed, inside))
    assert not missed


@pytest.mark.slow_cases("loop", "lengths")
@pytest.mark.parametrize("kind", KINDS)
def test_reference(kind: str) -> None:
    """Each kind is named beside the robot without it; the robot beside itself has nothing."""
    model = rm.robots.load("four_bar" if kind == "loop" else "mini_cheetah")
    if kind == "degrees":
        hinges = ("revolute", "continuous")
        limited = (
            replace(j, type="revolute", limits=Limits(-1.0, 1.5)) if j.type in hinges else j
            for j in model.description.joints
        )
        model = build(replace(model.description, joints=tuple(limited)))
    seeded = KINDS[kind](Seeds(model, 3))
    assert seeded is not None
    assert is_named(kind, seeded, against(model, seeded[0]))
    assert not against(model, model.description)


LEG = (
    '<inertial><origin xyz="0.01 {y} -0.1"/><mass value="{m}"/><inertia ixx="0.004" iyy="0.005" '
    'izz="0.002" ixy="{xy}" ixz="0.0003" iyz="{yz}"/></inertial>'
)
LIMIT = '<limit lower="{}" upper="{}" effort="9" velocity="9"/>'


def biped(*, mass: float = 1.0, xy: float = -3e-4, upper: str = "1.2", axis: str = "0 1 0") -> str:
    """Two legs that are mirror images; the arguments are the right one's."""
    return robot(
        link("left", LEG.format(y=0.02, m=1.0, xy=3e-4, yz=2e-4)),
        link("right", LEG.format(y=-0.02, m=mass, xy=xy, yz=-2e-4)),
        joint("l", "base", "left", "0 0.1 0", kind="revolute", axis="0 1 0",
              more=LIMIT.format(-0.4, 1.2)),
        joint("r", "base", "right", "0 -0.1 0", kind="revolute", axis=axis,
              more=LIMIT.format(-0.4, upper)),
    )  # fmt: skip


SIDES = {"link": ("left", "right"), "joint": ("l", "r")}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (biped(), None),
        (biped(mass=1.015), None),  # measured
        (biped(mass=2.0), ("override", "link", 2.0)),
        (biped(xy=3e-4), ("mirrored", "link", 0.077)),
        (biped(axis="1 0 0"), ("axis", "joint", 1.0)),
        (biped(upper="68.75493541569878"), ("degrees", "joint", None)),
    ],
)
def test_mirror_images(text: str, found: tuple[str, str, float | None] | None) -> None:
    checks = ("asymmetry", "override", "degrees", "mirrored", "axis")
    findings = [x for x in rm.validate(text).findings if x.check in checks]
    if found is None:
        assert not findings
        return
    check, kind, value = found
    both = {f"{kind} 'r'"} if check == "degrees" else {f"{kind} '{x}'" for x in SIDES[kind]}
    assert {(x.check, x.source.element) for x in findings} == {(check, each) for each in both}
    assert check == "degrees" or "counterpart" in findings[0].message
    if value is not None:
        assert value in (pytest.approx(x.value, rel=0.01) for x in findings)


def test_two_faults_of_one_link() -> None:
    """A mass of twice and signs of products: both are told."""
    report = rm.validate(biped(mass=2.0, xy=3e-4))
    told = {x.check: x.value for x in report.findings if x.source.element == "link 'right'"}
    assert told == {"asymmetry": pytest.approx(2.0), "mirrored": pytest.approx(0.077, rel=0.01)}


def bar(length: float, *, factor: float = 1.0, about_origin: bool = False, xy: float = 0.0) -> str:
    """A bar along x from its origin, 4 cm wide, with the inertia of a solid times a factor."""
    mass, side = 2.0, 0.04
    across = mass * (length**2 + side**2) / 12.0 + about_origin * mass * length**2 / 4.0
    return (
        f'<inertial><origin xyz="{length / 2} 0 0"/><mass value="{mass}"/><inertia '
        f'ixx="{factor * mass * side**2 / 6}" iyy="{factor * across}" izz="{factor * across}" '
        f'ixy="{xy}" ixz="0" iyz="0"/></inertial><visual><origin xyz="{length / 2} 0 0"/>'
        f'<geometry><box size="{length} {side} {side}"/></geometry></visual>'
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"factor": 1.5}, ""),
        ({"factor": 1e3}, "warning: its inertia is 1e+03 times"),
        ({"factor": 0.1}, ""),  # a heavy core
        ({"factor": 0.03}, "note: its inertia is 0.03 times"),  # a heavier one
        ({"factor": 0.005}, "warning: its radius of gyration is 0.07"),
        ({"about_origin": True}, "note: it would be usual if it were about the link's origin"),
    ],
)
def test_shapes(changes: dict[str, float], words: str) -> None:
    """A chain of five bars of different lengths, of which the third is changed.

    What no matter inside the shapes could have is a warning, what is unusual a note.
    """
    severity, _, words = words.partition(": ")
    lengths = (0.3, 0.35, 0.5, 0.45, 0.25)
    text = robot(*(
        link(f"b{n}", bar(length, **(changes if n == 2 else {})))  # type: ignore[arg-type]
        + joint(f"j{n}", f"b{n - 1}" if n else "base", f"b{n}",
                f"{lengths[n - 1] if n else 0} 0 0", axis="0 1 0")
        for n, length in enumerate(lengths)
    ))  # fmt: skip
    findings = [x for x in rm.validate(text).findings if x.check == "inertia-shape"]
    assert [x.source.element for x in findings] == (["link 'b2'"] if words else [])
    assert all(words in x.message and x.severity == severity for x in findings)


def test_signs_of_products_against_shapes() -> None:
    """An L of two boxes, with the other sign convention of products of inertia."""
    boxes = "".join(
        f'<visual><origin xyz="{x} {y} 0"/><geometry><box size="{a} {b} 0.04"/></geometry></visual>'
        for x, y, a, b in ((0.15, 0.0, 0.3, 0.04), (0.3, 0.1, 0.04, 0.2))
    )
    free = rm.load(
        robot(link("a", boxes), joint("j", "base", "a")), inertia_from="visual"
    ).description
    (sound,) = (x for x in free.links if x.name == "a")
    assert sound.inertial is not None
    xx, xy, xz, yy, yz, zz = sound.inertial.inertia
    turned = replace(sound, inertial=replace(sound.inertial, inertia=(xx, -xy, -xz, yy, -yz, zz)))

    def rough(share: float) -> Link:  # a motor within takes a share of the product
        moments = (xx, share * xy, xz, yy, yz, zz)
        return replace(sound, inertial=replace(sound.inertial, inertia=moments))

    (hinge,) = free.joints
    for third, usual, count in (
        (sound, sound, 0), (turned, sound, 1), (rough(-0.5), sound, 1),
        (rough(-0.5), rough(0.45), 0),  # it differs as the others do
    ):  # fmt: skip
        links = [replace(x, name=f"a{n}") for n, x in enumerate((usual, usual, third, usual))]
        joints = [replace(hinge, name=f"j{n}", child=f"a{n}") for n in range(4)]
        roots = [x for x in free.links if x.name != "a"]
        report = rm.validate(build(replace(free, links=(*roots, *links), joints=tuple(joints))))
        findings = [x for x in report.findings if x.check == "inertia-shape"]
        assert [x.message.partition(":")[0] for x in findings] == [
            "the signs of its products of inertia are not those of its shapes"
        ] * count


@pytest.mark.slow
def test_a_loop_that_is_nearly_closed() -> None:
    """Open by 0.1 mm where the file puts its joints; a tolerance says that this is meant."""
    d = rm.robots.load("four_bar").description
    (tied,) = d.loops
    x, y, z = tied.successor.origin.xyz
    origin = replace(tied.successor.origin, xyz=(x + 6e-5, y + 8e-5, z))
    off = replace(tied, successor=replace(tied.successor, origin=origin))
    finding = only(rm.validate(build(replace(d, loops=(off,)))), "start")
    assert (finding.severity, finding.value) == ("warning", pytest.approx(1e-4, rel=0.3))
    meant = replace(off, tolerance=1e-3)
    report = rm.validate(build(replace(d, loops=(meant,))))
    assert not [x for x in report.findings if x.check == "start" and x.severity == "warning"]


def _without(text: str, *patterns: str) -> str:
    for pattern in patterns:
        text, count = re.subn(pattern, "", text, flags=re.DOTALL)
        assert count == 1
    return text


KNEE = r'(<joint name="FL_knee_link_joint".*?<axis xyz=")0 1 0'
SEEDS = {
    "ratio times ten": lambda t: t.replace(
        '<successor link="FL_knee_rotor"/>\n    <ratio value="9.33"/>',
        '<successor link="FL_knee_rotor"/>\n    <ratio value="93.3"/>',
    ),
    "sign of a ratio": lambda t: t.replace(
        '<successor link="FL_hip_rotor"/>\n    <ratio value="6"/>',
        '<successor link="FL_hip_rotor"/>\n    <ratio value="-6"/>',
    ),
    "sign of an axis": lambda t: re.sub(KNEE, r"\g<1>0 -1 0", t, flags=re.DOTALL),
    "missing rotor": lambda t: _without(
        t, '<link name="FL_knee_rotor">.*?</link>', '<joint name="FL_knee_rotor[^"]*".*?</joint>',
        '<coupling name="FL_knee_gear">.*?</coupling>',
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_transmissions_are_compared_with_those_of_counterparts(seed: str) -> None:
    path = rm.robots.path("mini_cheetah")
    text = path.read_text(encoding="utf-8")
    wrong = SEEDS[seed](text)
    assert wrong != text
    checks = ("ratio", "rotor-missing")
    named = [each for each in rm.validate(wrong).findings
             if each.severity == "warning" and each.check in checks]  # fmt: skip
    assert named
    assert all("FL_" in each.source.element for each in named)
    report = rm.validate(wrong, reference=path)
    told = [each.message for each in report.findings if each.severity == "warning"]
    assert any("reference" in message for message in told)
    assert not report.ok


@pytest.mark.parametrize("other", [{"s2": 1.0, "p": 0.02}, {"s2": 1.0, "s1": 1.0}])
def test_one_pinion_moves_both_jaws(other: dict[str, float]) -> None:
    """It is the rotor of both; a rotor on one side of two is still missing on the other."""
    inertial = (
        '<inertial><mass value="0.1"/><inertia ixx="2e-5" iyy="2e-5" izz="4e-5" ixy="0" ixz="0" '
        'iyz="0"/></inertial>'
    )
    slides = [
        link(f"jaw{n}", inertial)
        + joint(f"s{n}", "base", f"jaw{n}", f"0 {y} 0", axis="1 0 0", kind="prismatic")
        for n, y in ((1, 0.02), (2, -0.02))
    ]
    pinion = link("pinion", inertial) + joint("p", "base", "pinion")
    rack = coupling("r1", {"s1": 1.0, "p": -0.02})
    gripper = robot(*slides, pinion, rack, coupling("r2", other))
    assert not [x for x in rm.validate(gripper).findings if x.check == "rotor-missing"]
    alone = rm.validate(robot(*slides, pinion, rack))
    assert only(alone, "rotor-missing").source.element == "joint 's2'"


def _turned_axis(name: str) -> Callable[[str], str]:
    """Turns the sign of a joint's axis about y."""
    pattern = rf'(<joint name="{name}".*?<axis xyz=")0 1 0'
    return lambda text: re.sub(pattern, r"\g<1>0 -1 0", text, count=1, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("name", "check", "element", "seed"),
    [
        ("tello", "axis", "shin-to-foot", _turned_axis("left-shin-to-foot")),
        ("mit_humanoid", "axis", "knee_link_joint", _turned_axis("right_knee_link_joint")),
        ("tello", "anchor", "ankle-rod", lambda t: t.replace("0.03197409", "0.03697409", 1)),
    ],
)
def test_legs_in_linkages_are_compared_with_their_counterparts(
    name: str, check: str, element: str, seed: Callable[[str], str]
) -> None:
    """By the sign of an axis where other joints are images of theirs; by a rod's end."""
    text = rm.robots.path(name).read_text(encoding="utf-8")
    wrong = seed(text)
    assert wrong != text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)  # the rod's end leaves it open
        found = list(check_twins(CheckContext(rm.load(wrong))))
    named = [each for each in found if each.check == check and each.severity == "warning"]
    assert named
    assert all(element in each.source.element for each in named)


def _legs(off: float) -> str:
    """Two mirrored legs with four-bars; the rod of the right one ends off by this."""
    parts = []
    for side, y in (("left", 0.1), ("right", -0.1)):
        shift = off if side == "right" else 0.0
        parts += [
            *(link(f"{side}_{part}") for part in ("thigh", "crank", "rod", "shank")),
            joint(f"{side}_hip", "base", f"{side}_thigh", f"0 {y} 0", axis="0 1 0"),
            joint(f"{side}_c", f"{side}_thigh", f"{side}_crank", axis="0 1 0"),
            joint(f"{side}_r", f"{side}_crank", f"{side}_rod", "0.04 0 0", axis="0 1 0"),
            joint(f"{side}_knee", f"{side}_thigh", f"{side}_shank", "0 0 -0.3", axis="0 1 0"),
            joint(f"{side}_foot", f"{side}_shank", f"{side}_toe", "0 0 -0.3", axis="0 1 0"),
            link(f"{side}_toe"),
            loop(f"{side}_pin", "revolute", f"{side}_rod", f"{side}_shank", "0 0 -0.3",
                 f"{0.05 + shift} 0 0", '<axis xyz="0 1 0"/>'),
        ]  # fmt: skip
    return robot(*parts)


@pytest.mark.slow
def test_anchors_are_compared_with_those_of_counterparts() -> None:
    assert not [each for each in rm.validate(_legs(0.0)).findings if each.check == "anchor"]
    found = [each for each in rm.validate(_legs(0.005)).findings if each.check == "anchor"]
    assert {each.severity for each in found} == {"warning"}
    assert {each.source.element for each in found} == {"loop 'left_pin'", "loop 'right_pin'"}


def test_shipped_robots_have_no_unlike_counterparts() -> None:
    report = rm.validate(rm.robots.load("mit_humanoid"))
    assert not {each.check for each in report.findings} & {"anchor", "ratio", "rotor-missing"}
