"""Seeded faults of exports are named by the link, joint, loop or rotor that has them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from seeded_faults import KINDS, Seeds, gravest, is_named
from texts import joint, link, robot
from validation_texts import only

import robomodel as rm
from robomodel.model import build


@cache
def shipped(name: str) -> tuple[rm.Model, set[tuple[str, str, str]]]:
    model = rm.robots.load(name)
    return model, gravest(model)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("units", "puma560"),
        ("composite", "mini_cheetah"),
        ("override", "mini_cheetah"),
        ("axis", "mini_cheetah"),
        ("mirrored", "mit_humanoid"),
        ("rotor", "mini_cheetah"),
    ],
)
def test_seeded(kind: str, name: str) -> None:
    model, before = shipped(name)
    seeded = KINDS[kind](Seeds(model, 1))
    assert seeded is not None
    assert is_named(seeded, before)


@pytest.mark.slow
def test_rates() -> None:
    """Of four seeds of each kind in each of three robots with counterparts, and in PUMA 560."""
    named: Counter[str] = Counter()
    seeds: Counter[str] = Counter()
    for name in ("jvrc1", "mini_cheetah", "mit_humanoid", "puma560"):
        model, before = shipped(name)
        for kind, fault in KINDS.items():
            for seed in range(4):
                if (seeded := fault(Seeds(model, seed))) is not None:
                    key = kind if name != "puma560" else f"{kind} alone"
                    seeds[key] += 1
                    named[key] += is_named(seeded, before)
    rates = {key: named[key] / count for key, count in seeds.items()}
    assert min(rates["units"], rates["rotor"], rates["axis"]) == 1.0, rates
    assert rates["units alone"] >= 0.75, rates
    assert min(rates["composite"], rates["override"]) > 0.7, rates  # trunks have no counterpart
    assert rates["axis alone"] == rates["override alone"] == 0.0, rates  # as docs/validate.md says


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["composite", "rotor"])
def test_inside_a_linkage(kind: str) -> None:
    model, before = shipped("tello")
    seeded = KINDS[kind](Seeds(model, 1, inside=True))
    assert seeded is not None
    assert is_named(seeded, before)


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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (biped(), None),
        (biped(mass=1.015), None),  # measured
        (biped(mass=2.0), ("override", "link 'right'", 2.0)),
        (biped(xy=3e-4), ("asymmetry", "link 'right'", 0.077)),
        (biped(axis="1 0 0"), ("asymmetry", "joint 'r'", 1.0)),
        (biped(upper="68.75493541569878"), ("degrees", "joint 'r'", None)),
        (biped(mass=2.0, xy=3e-4), None),  # another part
    ],
)
def test_mirror_images(text: str, found: tuple[str, str, float | None] | None) -> None:
    findings = [x for x in rm.validate(text).findings if x.check in ("asymmetry", "override",
                                                                     "degrees")]  # fmt: skip
    if found is None:
        assert not findings
        return
    check, element, value = found
    assert {(x.check, x.source.element) for x in findings} == {(check, element)}
    assert check == "degrees" or "'l'" in findings[0].message or "'left'" in findings[0].message
    if value is not None:
        assert findings[0].value == pytest.approx(value, rel=0.01)


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
        ({"factor": 1e3}, "its inertia is 1e+03 times"),
        ({"factor": 0.1}, ""),  # a heavy core
        ({"factor": 0.03}, "its inertia is 0.03 times"),
        ({"about_origin": True}, "if it were about the link's origin"),
    ],
)
def test_shapes(changes: dict[str, float], words: str) -> None:
    """A chain of five bars of different lengths, of which the third is changed."""
    lengths = (0.3, 0.35, 0.5, 0.45, 0.25)
    text = robot(*(
        link(f"b{n}", bar(length, **(changes if n == 2 else {})))  # type: ignore[arg-type]
        + joint(f"j{n}", f"b{n - 1}" if n else "base", f"b{n}",
                f"{lengths[n - 1] if n else 0} 0 0", axis="0 1 0")
        for n, length in enumerate(lengths)
    ))  # fmt: skip
    findings = [x for x in rm.validate(text).findings if x.check == "inertia-shape"]
    assert [x.source.element for x in findings] == (["link 'b2'"] if words else [])
    assert all(words in x.message for x in findings)


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
    (hinge,) = free.joints
    for third, count in ((sound, 0), (turned, 1)):
        links = [replace(x, name=f"a{n}") for n, x in enumerate((sound, sound, third, sound))]
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
