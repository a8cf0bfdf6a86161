"""The generator keeps its promises: texts load, loops close, ranks are as designed."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from cases import few
from hypothesis import given, settings
from mechanisms import KINDS, ROWS, Mechanism, mechanisms, random_mechanism
from oracle import BASE, rank_of, spanning_map


def check(mechanism: Mechanism) -> None:
    oracle = mechanism.oracle()
    q = oracle.state(mechanism.closed)
    phi, K, _ = oracle.constraint(q, np.zeros(oracle.nv))
    assert np.abs(phi).max(initial=0) < 1e-12
    assert oracle.closed(q, 1e-12)
    assert mechanism.mobility == oracle.nv - rank_of(K)
    moving = {n for n, j in oracle.joints.items() if j.type != "fixed"}
    assert set(mechanism.closed) == moving
    assert set(mechanism.f_ext) <= set(oracle.links)
    assert np.linalg.eigvalsh(oracle.mass_matrix(q)).min(initial=1) > 0

    robot = ET.fromstring(mechanism.text)
    marks = {j.attrib["name"]: j.get("independent") for j in robot.findall("joint")}
    if mechanism.independent is None:
        assert set(marks.values()) <= {None}
        return
    said = {n for n, mark in marks.items() if mark != "false" and n in moving}
    assert set(mechanism.independent) == said
    base = [BASE] if mechanism.floating_base else []
    columns = oracle.columns(*base, *mechanism.independent)
    assert len(columns) == mechanism.mobility
    G = spanning_map(K, columns)
    np.testing.assert_allclose(K @ G, 0, atol=1e-10)
    assert np.abs(G).max(initial=0) < 200


@pytest.mark.parametrize("seed", few(range(100), *range(20), tables=range(40, 100)))
def test_random_mechanism(seed: int) -> None:
    check(random_mechanism(np.random.default_rng(seed)))


@pytest.mark.parametrize(
    "kind",
    few([*KINDS, "tether"], "gear", "six_bar", "rssr", "rod", "ankle", "loop_on_loop", "tether"),
)
def test_every_kind(kind: str) -> None:
    rng = np.random.default_rng(1)
    for marked in (True, False) * 4:
        check(random_mechanism(rng, [kind], marked=marked, n_joints=2))


@pytest.mark.parametrize("kind", [*KINDS, "tether"])
def test_mobility_is_that_of_the_whole_branch(kind: str) -> None:
    """The rank at the closed configuration is no accident: it is the same a way off."""
    rng = np.random.default_rng(2)
    for _ in range(4):
        mechanism = random_mechanism(rng, [kind], n_joints=1)
        oracle = mechanism.oracle()
        q = oracle.state(mechanism.closed)
        _, K, _ = oracle.constraint(q, np.zeros(oracle.nv))
        free = np.linalg.svd(K)[2][rank_of(K) :].T
        moved = oracle.close(oracle.integrate(q, 0.05 * free @ rng.normal(size=free.shape[1])))
        phi, K, _ = oracle.constraint(moved, np.zeros(oracle.nv))
        assert np.abs(phi).max(initial=0) < 1e-12
        assert oracle.nv - rank_of(K) == mechanism.mobility
        assert np.abs(moved - q).max() > 1e-4


def test_the_same_seed_gives_the_same_text() -> None:
    one, two = (random_mechanism(np.random.default_rng(11)).text for _ in range(2))
    assert one == two


@pytest.mark.slow
def test_all_types_occur() -> None:
    rng = np.random.default_rng(3)
    joints, loops, closed_on_root = set(), set(), False
    for _ in range(100):
        mechanism = random_mechanism(rng, ["spatial_loop", rng.choice(KINDS)])
        robot = ET.fromstring(mechanism.text)
        joints |= {j.attrib["type"] for j in robot.findall("joint")}
        loops |= {loop.attrib["type"] for loop in robot.findall("loop")}
        root = mechanism.oracle().root
        ends = {e.get("link") for loop in robot.findall("loop") for e in loop}
        closed_on_root |= root in ends
    assert joints == {"revolute", "continuous", "prismatic", "fixed", "floating", "planar"}
    assert loops == set(ROWS)
    assert closed_on_root


def test_inertias_are_those_of_bodies() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        for inertial in ET.fromstring(random_mechanism(rng).text).iter("inertial"):
            said = {k: float(x) for k, x in inertial.find("inertia").attrib.items()}
            tensor = np.array([[said["i" + "".join(sorted(a + b))] for a in "xyz"] for b in "xyz"])
            principal = np.linalg.eigvalsh(tensor)
            assert principal[0] > 0
            assert principal[2] < principal[0] + principal[1]
            assert 0.1 <= float(inertial.find("mass").get("value")) <= 5


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(mechanisms())
def test_strategy(mechanism: Mechanism) -> None:
    check(mechanism)
