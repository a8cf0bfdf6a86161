"""Rods that spin about themselves, however their balls are written."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest
from texts import INERTIAL, joint, link, loop, robot

import robomodel as rm
from robomodel.dynamics.actuators.envelopes import joint_envelopes
from robomodel.model.spins import find_spins

MOTOR = '<motor effort="5" velocity="3"/>'
HEAVY = (
    '<inertial><origin xyz="0 0.4 0"/><mass value="9"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
)
STROKE = '<limit lower="-0.4" upper="0.4" effort="9" velocity="9"/>'


def numbers(*values: float) -> str:
    return " ".join(repr(float(x)) for x in values)


def delta() -> str:
    """Three arms on the base carry a plate by two rods with balls each; the plate floats."""
    parts = [link("plate"), joint("free", "base", "plate", numbers(0, 0, -0.4), kind="floating")]
    for n in range(3):
        x, y = math.cos(math.tau * n / 3), math.sin(math.tau * n / 3)
        parts += [
            link(f"arm{n}"),
            joint(f"arm{n}", "base", f"arm{n}", numbers(0.15 * x, 0.15 * y, 0),
                  axis=numbers(-y, x, 0), more=MOTOR),
        ]  # fmt: skip
        for side in (-0.05, 0.05):
            name, beside = f"rod{n}{'a' if side > 0 else 'b'}", (-side * y, side * x)
            tip = (0.2 * x + beside[0], 0.2 * y + beside[1], -0.02)
            eye = (0.05 * x + beside[0], 0.05 * y + beside[1], 0.0)
            parts += [
                link(name),
                joint(name, f"arm{n}", name, numbers(*tip), kind="spherical"),
                loop(f"{name} eye", "spherical", name, "plate",
                     numbers(-0.3 * x, -0.3 * y, -0.38), numbers(*eye), more=""),
            ]  # fmt: skip
    return robot(*parts)


@pytest.mark.slow
def test_a_delta_whose_spins_are_locked_moves_as_its_loops_say() -> None:
    """Its plate at rest, no arm closes with both of its rods: each is closed with all others."""
    model = rm.load(delta(), spins="locked")
    assert model.nv == 3
    assert len(find_spins(rm.load(delta()))) == 6
    (index,) = (n for n, cluster in enumerate(model.clusters) if cluster.implicit)
    cluster = model.clusters[index]
    for seed in range(3):
        q = model.random_configuration(seed, near=model.neutral())
        conditions = cluster.geometry.evaluate(q[cluster.q])[1]
        rates = np.stack([
            np.concatenate([np.atleast_1d(x) for x in model.joint_velocities(q, v).values()])
            for v in np.eye(3)
        ])  # fmt: skip
        assert np.max(np.abs(conditions @ rates.T)) < 1e-12
        v, tau = np.array([0.5, -1.0, 0.7]), np.array([1.0, -2.0, 0.5])
        np.testing.assert_allclose(
            rm.aba(model, q, v, tau), rm.aba(model, q, v, tau, method="lagrange"), rtol=1e-9
        )


def rocker(*rod: str) -> str:
    """A crank at the origin, a heavy rocker 1 above, and what is between their tips, 1.1 apart."""
    return robot(
        *map(link, ("crank", "rod")), link("rocker", HEAVY),
        joint("crank", "base", "crank", axis="1 0 0", more=MOTOR),
        joint("rocker", "base", "rocker", "0 0 1", axis="1 0 0"),
        *rod,
    )  # fmt: skip


RODS = {
    "on the crank": (
        joint("ball", "crank", "rod", "0 0.2 0", kind="spherical"),
        loop("eye", "spherical", "rod", "rocker", "0 0 1.1", "0 0.5 0", more=""),
    ),
    "on the rocker": (
        joint("ball", "rocker", "rod", "0 0.5 0", kind="spherical"),
        loop("eye", "spherical", "crank", "rod", "0 0.2 0", "0 0 1.1", more=""),
    ),
    "between loops": (
        joint("ball", "base", "rod", "0 0.2 0", kind="floating"),
        loop("foot", "spherical", "crank", "rod", "0 0.2 0", "0 0 0", more=""),
        loop("eye", "spherical", "rod", "rocker", "0 0 1.1", "0 0.5 0", more=""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("rod", RODS)
def test_spins_do_not_count_where_a_joint_turns_back(rod: str) -> None:
    """A rocker turns back where crank and rod are in line: it rests, and the crank does not.

    Its tip is there at 1.1 ± 0.2 from the crank's axis: by the law of cosines.
    """
    model = rm.load(rocker(*RODS[rod]))
    assert model.nv == 2
    assert rm.load(rocker(*RODS[rod]), spins="locked").nv == 1
    (row,) = joint_envelopes(model)
    assert row.joint == "rocker"
    found = {each.position: each.kind for each in row.dead_points if each.kind != "motors rest"}
    # the tip at angle a is 0.5 cos a ahead and 1 + 0.5 sin a above
    ends = [math.asin(far**2 - 1.25) for far in (0.9, 1.3)]
    np.testing.assert_allclose(sorted(found), sorted(ends), atol=1e-6)
    assert set(found.values()) == {"it rests"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*no inertia about its line")
@pytest.mark.parametrize("rod", RODS)
def test_rods_without_mass_spin_and_are_locked(rod: str) -> None:
    """As a distance: its four-bar has the same rows, and, locked, the same dynamics."""
    text = rocker(*RODS[rod]).replace(link("rod"), link("rod", ""))
    model = rm.load(text)
    assert len(find_spins(model)) == 1
    assert rm.limb_joints(model) == ("rocker",)
    assert any("no inertia about its line" in str(x) for x in rm.validate(model).findings)
    distance = loop("rod", "rod", "crank", "rocker", "0 0.2 0", "0 0.5 0", "", 'length="1.1"')
    oracle = rm.load(rocker(distance).replace(link("rod"), ""))
    ((row,), (expected,)) = joint_envelopes(model), joint_envelopes(oracle)
    assert row.joint == expected.joint
    assert (row.lower, row.upper) == pytest.approx((expected.lower, expected.upper), abs=1e-6)
    assert [x.kind for x in row.dead_points] == [x.kind for x in expected.dead_points]
    locked = rm.load(text, spins="locked")
    leading = {"crank": 0.2}
    found, known = (
        float(rm.crba(each, each.configuration(leading))[0, 0])
        / each.joint_velocities(each.configuration(leading), np.ones(1))["crank"] ** 2
        for each in (locked, oracle)
    )
    assert float(found) == pytest.approx(float(known), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rod", RODS)
def test_locks_of_spins_are_no_conditions_of_the_file(rod: str) -> None:
    """`validate` speaks of the file's loops; a lock has three rows that its ball has, too."""
    text = rocker(*RODS[rod])
    locked, model = rm.load(text, spins="locked"), rm.load(text)
    assert sum(each.redundant for each in locked.loops) == 3 + sum(x.redundant for x in model.loops)
    checks = [[str(x) for x in rm.validate(each).findings if x.check == "redundancy"]
              for each in (locked, model)]  # fmt: skip
    assert checks[0] == checks[1]


@pytest.mark.parametrize("barrel", ["", INERTIAL])
def test_cylinders_spin_with_or_without_a_heavy_barrel(barrel: str) -> None:
    """A lever on a cylinder, whose ball carries a barrel that may have no mass: cosines' law."""
    text = robot(
        link("barrel", barrel), link("piston"), link("lever", HEAVY),
        joint("lever", "base", "lever", axis="1 0 0"),
        joint("ball", "base", "barrel", "0 0.3 0", kind="spherical"),
        joint("stroke", "barrel", "piston", "0 -0.15 0.2", kind="prismatic", axis="0 -0.6 0.8",
              more=STROKE),
        loop("eye", "spherical", "piston", "lever", "0 -0.15 0.2", "0 0 0.4", more=""),
    )  # fmt: skip
    locked = rm.load(text, spins="locked")
    assert (rm.load(text).nv, locked.nv) == (2, 1)
    assert rm.limb_joints(rm.load(text)) == rm.limb_joints(locked) == ("lever",)
    for angle in (-0.3, 0.2, 0.4):
        q = locked.configuration({"lever": angle})
        far = math.sqrt(0.3**2 + 0.4**2 + 2 * 0.3 * 0.4 * math.sin(angle))
        assert float(locked.joint_positions(q)["stroke"]) == pytest.approx(far - 0.5, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rod", RODS)
def test_ways_to_close_are_told_apart_by_more_than_spins(rod: str) -> None:
    """With the crank at rest the rocker's tip is where two circles meet, however its rod spins."""
    model = rm.load(rocker(*RODS[rod]))
    (study,) = rm.validate(model).linkages
    assert study.branches == 2


@pytest.mark.slow
def test_free_bodies_in_loops_close_from_where_mjcf_draws_them(tmp_path: Path) -> None:
    """A Delta that is drawn closed stays so: a plate that begins at the origin tilts by 1.1 rad."""
    pytest.importorskip("mujoco")
    path = tmp_path / "delta.xml"
    model = rm.load(delta())
    for _ in range(2):  # and what was read is written again
        rm.write_mjcf(model, path)
        model = rm.load(path)
        found = model.joint_positions(model.neutral())
        np.testing.assert_allclose(found["free"], [0, 0, -0.4, 0, 0, 0, 1], atol=1e-9)
        np.testing.assert_allclose([found[f"arm{n}"] for n in range(3)], 0.0, atol=1e-9)
    for write in (rm.write_urdf, rm.write_sdf):
        with pytest.warns(rm.DescriptionWarning, match="those of 'free' close from the origin"):
            write(model, io.StringIO())


def test_motors_are_as_many_as_a_linkage_has_freedoms_beside_spins() -> None:
    """A lever with an effort limit, on a cylinder with a motor, has no motor of its own.

    And the cylinder has the same dead points, however it spins.
    """
    limit = '<limit lower="-1" upper="1" effort="50" velocity="9"/>'
    text = robot(
        link("barrel"), link("piston"), link("lever", HEAVY),
        joint("lever", "base", "lever", kind="revolute", axis="1 0 0", more=limit),
        joint("ball", "base", "barrel", "0 0.3 0", kind="spherical"),
        joint("stroke", "barrel", "piston", "0 -0.15 0.2", kind="prismatic", axis="0 -0.6 0.8",
              more=STROKE + MOTOR),
        loop("eye", "spherical", "piston", "lever", "0 -0.15 0.2", "0 0 0.4", more=""),
    )  # fmt: skip
    for options in ({}, {"spins": "locked"}, {"independent": ["lever", "ball.2"]}):
        model = rm.load(text, **options)
        assert [each.name for each in model.actuators] == ["stroke"]
        (cylinder,) = rm.actuation(model).cylinders  # eye, ball and the lever's axis in line
        np.testing.assert_allclose(cylinder.dead_points, [math.pi / 2], atol=1e-6)
