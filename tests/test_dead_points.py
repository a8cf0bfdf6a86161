"""Dead points of independent joints in what is reached, and choices without them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from texts import EYE, KNEE, TRUNNION, joint, link, loop, robot, screw_leg
from validation_texts import only, rocker_driven

import robomodel as rm
from robomodel.reach import groups
from robomodel.reports.validation.linkage import Coordinates
from robomodel.reports.validation.study import Report

CRANK, ROD, GROUND = 0.45, 0.5, 0.3


def five_bar(*, limit: float = math.inf) -> str:
    """Cranks on the ground, which are independent, and equal rods between them."""
    ends = f'<limit lower="0.3" upper="{limit}" effort="1" velocity="1"/>'
    kind, more = ("continuous", "") if math.isinf(limit) else ("revolute", ends)
    return robot(
        *(link(name) for name in ("left", "left_rod", "right", "right_rod")),
        joint("left", "base", "left", kind=kind, mark=True,
              more=f'<initial position="2.0"/>{more}'),
        joint("left_rod", "left", "left_rod", f"{CRANK} 0 0", mark=False,
              more='<initial position="-1.5"/>'),
        joint("right", "base", "right", f"{GROUND} 0 0", mark=True,
              more='<initial position="1.2"/>'),
        joint("right_rod", "right", "right_rod", f"{CRANK} 0 0", mark=False,
              more='<initial position="1.5"/>'),
        loop("pin", "revolute", "left_rod", "right_rod", f"{ROD} 0 0", f"{ROD} 0 0"),
    )  # fmt: skip


def coordinates(report: Report) -> Coordinates:
    (linkage,) = report.linkages
    (found,) = linkage.coordinates
    return found


def stretched(left: float) -> list[np.ndarray]:
    """All joints' positions with both rods in line, by the left crank."""
    ahead = np.array([CRANK * math.cos(left), CRANK * math.sin(left)])
    # |ground + CRANK (cos r, sin r) - ahead| = 2 ROD
    gap = np.array([GROUND, 0.0]) - ahead
    share = (4.0 * ROD**2 - CRANK**2 - gap @ gap) / (2.0 * CRANK * np.linalg.norm(gap))
    if abs(share) > 1.0:
        return []
    turn = math.atan2(gap[1], gap[0])
    found = []
    for right in (turn + math.acos(share), turn - math.acos(share)):
        way = gap + CRANK * np.array([math.cos(right), math.sin(right)])
        rod = math.atan2(way[1], way[0])
        found.append(np.array([left, rod - left, right, rod + math.pi - right]))
    return found


@pytest.mark.slow
def test_the_nearest_dead_point_of_a_five_bar_is_that_of_its_closed_form() -> None:
    """Cranks are at rest where rods are in line: stretched, or folded where the pins meet."""
    model = rm.load(five_bar())
    found = coordinates(rm.validate(model)).nearest
    assert found is not None
    neutral = np.array([model.joint_positions(model.neutral())[name]
                        for name in ("left", "left_rod", "right", "right_rod")])  # fmt: skip
    lines = [q for left in np.linspace(-math.pi, math.pi, 40_001) for q in stretched(left)]
    away = [np.linalg.norm(np.angle(np.exp(1j * (q - neutral)))) for q in lines]
    at = dict(zip(("left", "left_rod", "right", "right_rod"), found.joints, strict=True))
    pins = [np.array([x + CRANK * math.cos(at[n]), CRANK * math.sin(at[n])])
            for n, x in (("left", 0.0), ("right", GROUND))]  # fmt: skip
    apart = float(np.linalg.norm(pins[1] - pins[0]))
    assert apart == pytest.approx(2.0 * ROD, abs=1e-9)
    assert found.away == pytest.approx(min(away), rel=1e-4)


@pytest.mark.slow
def test_verdicts_do_not_hang_on_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with dead points nor without, with limits or free."""
    texts = []
    for seed in (groups.GROUP_SEED, 1, 2):
        monkeypatch.setattr(groups, "GROUP_SEED", seed)
        reports = [rm.validate(rm.load(text)) for text in
                   (five_bar(), five_bar(limit=2.3), rm.robots.path("parallel_ankle"))]  # fmt: skip
        texts.append([(each.check, each.message, each.remedy) for report in reports
                      for each in report.findings if each.severity != "note"])  # fmt: skip
        worst = coordinates(reports[-1]).chosen.worst
        assert worst == pytest.approx(1.93665, rel=1e-3)
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.slow
def test_the_worst_of_two_freedoms_is_that_of_a_grid_over_their_limits() -> None:
    model = rm.robots.load("parallel_ankle")
    chosen = coordinates(rm.validate(model)).chosen
    (cluster,) = (each for each in model.clusters if each.kind == "loops")
    first = cluster.spanning_v.start
    rows = [first + n for n, name in enumerate(cluster.joints) if "rotor" not in name]
    largest = 0.0
    for pitch in np.linspace(-0.7, 0.5, 13):
        for roll in np.linspace(-0.35, 0.35, 9):
            q = model.configuration({"pitch": pitch, "roll": roll})
            g = model.constraint_jacobian(q)[rows][:, cluster.v]
            largest = max(largest, float(np.linalg.norm(g, 2)))
    assert chosen.joints == ("pitch", "roll")
    assert chosen.worst == pytest.approx(largest, rel=1e-6)  # it is in a corner


def test_a_rocker_in_the_lead_is_worse_than_a_crank_by_all_of_its_path() -> None:
    model = rm.load(rocker_driven())
    report = rm.validate(model)
    of = coordinates(report)
    assert of.chosen.joints == ("j_rocker",)
    assert math.isinf(of.chosen.worst)
    assert of.best.joints == ("j_crank",)
    led = rm.load(rocker_driven(), independent=["j_crank"])
    turn = np.linspace(0.0, math.tau, 4001)[:, None]
    q = led.integrate(np.tile(led.neutral(), (len(turn), 1)), turn)
    sizes = np.linalg.norm(led.constraint_jacobian(q), axis=(1, 2))
    assert of.best.worst == pytest.approx(float(np.max(sizes)), rel=1e-4)
    found = only(report, "coordinates")
    assert "at a dead point within the limits" in found.message
    assert found.remedy == "mark 'j_crank' independent instead of 'j_rocker'"
    assert math.isinf(found.value)


@pytest.mark.parametrize("leading", ["j_crank", "j_coupler", "j_rocker"])
def test_where_all_joints_have_dead_points_none_is_better(leading: str) -> None:
    """Of links with s + l > p + q (Grashof) none turns fully against another."""
    lengths = (1.5, 0.9, 0.7, 0.8)
    ground, crank, coupler, rocker = lengths
    assert max(lengths) + min(lengths) > 0.5 * sum(lengths)
    text = robot(
        *(link(name) for name in ("crank", "coupler", "rocker")),
        joint("j_crank", "base", "crank", more='<initial position="0.5"/>'),
        joint("j_coupler", "crank", "coupler", f"{crank} 0 0", more='<initial position="-0.6"/>'),
        joint("j_rocker", "base", "rocker", f"{ground} 0 0", more='<initial position="1.7"/>'),
        loop("closing", "revolute", "coupler", "rocker", f"{coupler} 0 0", f"{rocker} 0 0"),
    )
    report = rm.validate(rm.load(text, independent=[leading]))
    assert math.isinf(coordinates(report).chosen.worst)
    assert "coordinates" not in {each.check for each in report.findings}
    assert only(report, "singularity").severity == "warning"


@pytest.mark.slow
def test_rotors_that_move_a_knee_and_an_ankle_are_at_rest_at_the_ankle_s_dead_points() -> None:
    """A differential moves both: the crank of the ankle's four-bar alone has dead points."""
    report = rm.validate(rm.robots.load("tello"))
    linkage = next(each for each in report.linkages if "left-knee" in each.cluster)
    (of,) = linkage.coordinates
    assert of.nearest is not None
    cluster, q = linkage.motion.cluster, np.array(of.nearest.joints)
    assert cluster.geometry.gap(q[None])[0] < 1e-12
    resting = [c for c in range(linkage.velocities) if c not in cluster.columns]
    k = cluster.geometry.evaluate(q)[1][:, resting]
    assert np.linalg.svd(k, compute_uv=False)[-1] < 1e-9  # they move while both rotors rest
    assert linkage.single(of.nearest.joints)["left-thigh-to-shin"] == 0.0  # it needs not move


@pytest.mark.parametrize("count", [1, 2, 3])
def test_change_points_are_found_however_many_loops_flatten_together(count: int) -> None:
    """Parallelograms one behind the other, as drawn at 1 rad: they are flat at -1 and π - 1."""
    along = f"{0.2 * math.cos(1.0)} {0.2 * math.sin(1.0)} 0"
    names = ["crank", *(f"rocker{n}" for n in range(count))]
    text = "".join(
        link(after) + link(f"rod{n}")
        + joint(after, "base", after, f"{0.3 * (n + 1)} 0 0", mark=False)
        + joint(f"rod{n}", before, f"rod{n}", along, mark=False)
        + loop(f"pin{n}", "revolute", f"rod{n}", after, "0.3 0 0", along)
        for n, (before, after) in enumerate(itertools.pairwise(names))
    )  # fmt: skip
    report = rm.validate(robot(link("crank"), joint("crank", "base", "crank", mark=True), text))
    (linkage,) = report.linkages
    (sweep,) = linkage.sweeps
    found = sorted((each.kind, each.position) for each in sweep.singularities)
    assert [kind for kind, _ in found] == ["change point"] * 2
    np.testing.assert_allclose([x for _, x in found], [-1.0, math.pi - 1.0], atol=1e-6)
    assert only(report, "singularity").remedy == "limit 'crank' to more than -1 and less than 2.142"


def test_dead_points_more_than_half_a_turn_away_are_found() -> None:
    """A four-bar without links that turn fully, drawn next to one end of its crank's range."""
    ground, crank, coupler, rocker = 0.45, 0.15, 0.2, 0.3
    # coupler and rocker in line: the cosine law between crank and ground
    square = ground**2 + crank**2 - (coupler + rocker) ** 2
    end = math.acos(square / (2.0 * ground * crank))
    drawn = end - 0.15
    ahead = crank * np.array([math.cos(drawn), math.sin(drawn)])
    gap = np.array([ground, 0.0]) - ahead
    far = float(np.linalg.norm(gap))
    turn = math.acos((coupler**2 + far**2 - rocker**2) / (2.0 * coupler * far))
    angle = math.atan2(gap[1], gap[0]) + turn
    pin = ahead + coupler * np.array([math.cos(angle), math.sin(angle)])

    def at(x: np.ndarray) -> str:
        return f"{float(x[0])!r} {float(x[1])!r} 0"

    text = robot(
        *(link(name) for name in ("crank", "coupler", "rocker")),
        joint("crank", "base", "crank", mark=True),
        joint("coupler", "crank", "coupler", at(ahead), mark=False),
        joint("rocker", "base", "rocker", f"{ground} 0 0", mark=False),
        loop("pin", "revolute", "coupler", "rocker", at(pin - ahead),
             at(pin - np.array([ground, 0.0]))),
    )  # fmt: skip
    ends = [-math.tau + end - drawn, end - drawn] if end > math.pi else [-end - drawn, end - drawn]
    assert min(ends) < -math.pi
    report = rm.validate(text)
    (linkage,) = report.linkages
    (sweep,) = linkage.sweeps
    found = sorted(each.position for each in sweep.singularities)
    np.testing.assert_allclose(found, ends, atol=1e-7)
    assert only(report, "singularity").remedy == (
        f"limit 'crank' to more than {ends[0]:.4g} and less than {ends[1]:.4g}"
    )


@pytest.mark.parametrize("leading", ["nut", "stroke", "knee"])
def test_a_screw_s_nut_turns_often_before_its_dead_point(leading: str) -> None:
    """Slide and nut turn back where eye, knee and trunnion are in line; K keeps its rank there."""
    report = rm.validate(rm.load(screw_leg("nut", 2.0, leading)))
    (linkage,) = report.linkages
    found = [each for sweep in linkage.sweeps for each in sweep.singularities if each.reached]
    if leading == "knee":
        assert not found
        assert "It has no singular positions" in str(report)
        return
    (dead,) = found
    assert dead.kind == "dead point"
    link = math.atan2(EYE[1] - KNEE[1], EYE[0] - KNEE[0])
    away = math.atan2(KNEE[1] - TRUNNION[1], KNEE[0] - TRUNNION[0])
    at = dict(zip(linkage.joints, dead.joints, strict=True))["knee"]
    assert math.remainder(at - (away - link), math.pi) == pytest.approx(0.0, abs=1e-9)
    assert {f.check for f in report.findings if f.severity == "warning"} >= {"singularity"}
