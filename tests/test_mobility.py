"""Mobility of linkages as CAD writes them: rounded, overconstrained, rigid, with spinning rods."""

from __future__ import annotations

import re
import warnings
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from agreement import close
from cases import few
from linkage_family import FAMILY, instance
from scipy.spatial.transform import Rotation
from texts import coupling, four_bar, joint, link, loop, robot, screw_leg

import robomodel as rm
from robomodel.dynamics.actuators.envelopes import joint_envelopes
from robomodel.mechanism.closure import close as closed
from robomodel.model.spins import find_spins
from robomodel.reach.limb import without_spins

SINGULAR = {  # at the roots of these, rounding by 1e-4 leaves more than floats do
    ("Bricard", 1e-6), ("Bricard", 1e-4), ("triple crank", 1e-4), ("welded parallelogram", 1e-4),
    ("flat parallelogram", 1e-4), ("Sarrus", 1e-4),
}  # fmt: skip
OPEN = {("three in a line", 1e-4)}  # stretched, rounding leaves them open beyond what may be meant


def loaded(text: str, refused: str = "leaves no motion", **options: object) -> rm.Model | None:
    """The model, its warnings ignored; None where it is refused, by default as none moves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        try:
            return rm.load(text, **options)
        except rm.DescriptionError as error:
            refusal = str(error)
    assert refused in refusal
    return None


def check(name: str, seed: int, noise: float) -> None:
    """Mobility is that of the linkage that was meant, and it moves, closed."""
    text, mobility = instance(name, seed, noise)
    model = loaded(text, "cannot close" if (name, noise) in OPEN else "leaves no motion")
    assert (0 if model is None else model.nv) == mobility
    if model is None:
        return
    q = np.array([model.random_configuration(k) for k in range(4)])
    assert np.max(np.ptp(q, axis=0)) > 0.05
    gap = 30.0 * noise if (name, noise) in SINGULAR else 0.0
    assert np.max(np.abs(model.residual(q))) <= max(1e-9, gap)


def test_samples_near_change_points_do_not_say_that_a_linkage_is_rounded(recwarn) -> None:
    """Three equal cranks of millimetres, some of whose samples are nearly flat."""
    at = {"0": "0 0 0", "1": "3e-3 0 0", "2": "7e-3 0 0"}
    model = rm.load(
        robot(
            *(link(f"crank{i}") + joint(f"j{i}", "base", f"crank{i}", at[i]) for i in at),
            link("plate"), joint("coupler", "crank0", "plate", "1e-3 2e-3 0"),
            *(loop(f"p{i}", "revolute", f"crank{i}", "plate", "1e-3 2e-3 0", at[i]) for i in "12"),
        )
    )  # fmt: skip
    assert model.nv == 1
    assert not recwarn.list


@pytest.mark.slow_cases(
    "welded parallelogram-1e-06",
    "welded parallelogram-1e-08",
    "spherical four-bar-1e-06",
    "spherical four-bar-1e-08",
    "welded parallelogram-0.0",
    "shaft in bearings-1e-08",
    "spherical four-bar-0.0",
    "shaft in bearings-1e-06",
)
@pytest.mark.parametrize("noise", [0.0, 1e-8, 1e-6])
@pytest.mark.parametrize(
    "name",
    few(
        FAMILY,
        "spherical four-bar",
        "welded parallelogram",
        "tilted four-bar",
        "shaky ring",
        "shaft in bearings",
    ),
)
def test_linkages_have_the_mobility_that_was_meant(name: str, noise: float) -> None:
    check(name, 0, noise)


@pytest.mark.tables
@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 1e-10, 1e-4])
@pytest.mark.parametrize("name", FAMILY)
def test_all_linkages_have_the_mobility_that_was_meant(name: str, noise: float) -> None:
    check(name, 1, noise)


@pytest.mark.slow_cases(
    "marks0-neither", "marks1-rotor", "marks2-neither", "marks1-joint", "marks2-joint",
    "marks0-rotor",
)  # fmt: skip
@pytest.mark.parametrize("follows", ["neither", "rotor", "joint"])
@pytest.mark.parametrize("marks", [(None, None), (True, None), (False, True)])
def test_geared_rotors_take_no_freedom(
    follows: str, marks: tuple[bool | None, bool | None]
) -> None:
    """An arm on a four-bar's crank, each with a rotor: two freedoms, whoever follows whom."""
    arm, crank = (
        f'<mimic joint="{name}" multiplier="6"/>' if follows == "rotor" else ""
        for name in ("j_arm", "j_crank")
    )
    reverse = '<mimic joint="arm_rotor" multiplier="0.25"/>' if follows == "joint" else ""
    text = four_bar(
        link("arm"), joint("j_arm", "crank", "arm", "0.2 0 0", more=reverse),
        link("rotor"), joint("arm_rotor", "crank", "rotor", more=arm),
        link("rotor2"), joint("crank_rotor", "base", "rotor2", more=crank),
        "" if arm or reverse else coupling("arm_gear", {"arm_rotor": 1.0, "j_arm": -6.0}),
        "" if crank else coupling("crank_gear", {"crank_rotor": 1.0, "j_crank": -6.0}),
        marks=(marks[0], None, marks[1]),
    )  # fmt: skip
    model = loaded(text)
    assert model is not None
    assert model.nv == 2
    q = model.random_configuration(0)
    assert np.linalg.matrix_rank(model.constraint_jacobian(q)) == 2
    assert np.max(np.abs(model.residual(q))) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("size", [10.0, 0.01])
@pytest.mark.parametrize("drive", ["nut", "rotor"])
def test_fine_screws_drive_linkages_of_any_size(drive: str, size: float) -> None:
    """A screw turns by 377 rad a size of its linkage: one freedom, and the same ratio."""
    model = rm.load(screw_leg(drive, 1.2, size=size))
    assert (model.nv, len(model.notes)) == (1, len(rm.load(screw_leg(drive, 1.2)).notes))
    (row,) = rm.actuation(model, "knee").joints
    (same,) = rm.actuation(rm.load(screw_leg(drive, 1.2)), "knee").joints
    assert row.limits.effort == pytest.approx(same.limits.effort, rel=1e-6)


def test_a_shaft_in_two_bearings_moves_as_in_one() -> None:
    """A loop all of whose conditions repeat what its hinges say changes nothing."""
    text, _ = instance("shaft in bearings", 3, 0.0)
    shaft, plain = loaded(text), loaded(text[: text.index("<loop")] + "</robot>")
    assert shaft is not None
    assert plain is not None
    np.testing.assert_array_equal(shaft.neutral(), [0.0, 0.0])
    np.testing.assert_array_equal(shaft.configuration({"j0": 0.7}), [0.7, 0.0])
    q, v = np.array([0.3, -0.4]), np.array([0.5, 0.2])
    close(shaft.close(q), q, 1e-12)
    for name, arguments in {"aba": (q, v, v), "crba": (q,)}.items():
        close(getattr(rm, name)(shaft, *arguments), getattr(rm, name)(plain, *arguments), 1e-12)
    one, other = (rm.simulate(m, q, v, duration=0.05) for m in (shaft, plain))
    close(one.q[-1], other.q[-1], 1e-10)


def test_a_double_cardan_shaft_turns_as_two_crosses_do() -> None:
    """Its loop is closed along the motion alone, so that random starts close nowhere else."""
    z, bends = np.array([0.0, 0.0, 1.0]), (0.5, 0.1)
    into, middle, out = (np.array([np.cos(b), np.sin(b), 0.0]) for b in (0.0, *bends))
    side = np.cross(middle, z)

    def text(*vectors: np.ndarray) -> list[str]:
        return [" ".join(map(repr, each.tolist())) for each in vectors]

    disc = (
        '<inertial><mass value="1"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    )
    crossed, end, axis, beside = text(0.6 * middle, 0.3 * out, out, side)
    model = rm.load(
        robot(
            link("in", disc), link("one", ""), link("shaft", ""), link("two", ""),
            link("out", disc),
            joint("drive", "base", "in", "-0.3 0 0", axis="1 0 0"),
            joint("x1", "in", "one", "0.3 0 0"), joint("y1", "one", "shaft", axis=beside),
            joint("y2", "shaft", "two", crossed, axis=beside), joint("x2", "two", "out"),
            loop("bearing", "revolute", "out", "base", end, *text(0.6 * middle + 0.3 * out),
                 more=f'<axis xyz="{axis}"/>'),
        )
    )  # fmt: skip

    def turned(drive: float) -> float:
        """The angle of the driven shaft: each cross is square to both of its shafts."""
        fork = np.cos(drive) * z + np.sin(drive) * np.cross(into, z)
        last = np.cross(out, np.cross(fork, middle))
        return float(np.arctan2(last @ np.cross(out, z), last @ z))

    for drive in (0.0, 0.4, 1.2, -1.0):
        rate = (turned(drive + 1e-5) - turned(drive - 1e-5)) / 2e-5
        q = model.configuration({"drive": drive})
        close(rm.crba(model, q), [[1.0 + rate**2]], 1e-8)


@pytest.mark.parametrize(("seed", "noise"), [(2, 0.0), (2, 1e-6), (4, 0.0), (12, 0.0)])
def test_what_gives_at_first_order_only_is_refused(seed: int, noise: float) -> None:
    """Newton's method ends where it stands, or next to it, and with it all samples of its rank."""
    with pytest.raises(
        rm.DescriptionError, match=r"mobility 0.*to first order only: moved by 0\.2"
    ):
        rm.load(instance("shaky ring", seed, noise)[0])


@pytest.mark.parametrize("seed", [5, 17, 24, 29, 30, 47])
def test_a_rigid_ring_that_is_drawn_closed_is_refused(seed: int) -> None:
    """All that is nearly closed around what is drawn is one configuration."""
    assert loaded(instance("shaky ring", seed, 0.0)[0]) is None


@pytest.mark.slow
def test_draws_are_closed_to_what_a_tolerance_allows() -> None:
    """Three times it, though conditions that it leaves out would open by metres."""
    model = loaded(instance("shaky ring", 0, 0.0)[0], tolerance=0.1)
    assert model is not None
    q = np.array([model.random_configuration(seed) for seed in range(8)])
    assert np.max(np.abs(model.residual(q))) <= 0.3
    assert np.max(np.ptp(q, axis=0)) > 0.05


@pytest.mark.slow
def test_a_spherical_platform_follows_its_motors() -> None:
    """Three motors, three freedoms, though the file to the letter has one."""
    text, _ = instance("spherical platform", 4, 1e-7)
    with pytest.warns(rm.DescriptionWarning, match=r"'l0', 'l1' moved by at most .* mobility 3"):
        model = rm.load(text)
    assert any("is rounded" in note for note in model.notes)
    exact = loaded(instance("spherical platform", 4, 0.0)[0])
    assert exact is not None
    at = {"j0": 0.3, "j2": -0.2, "j4": 0.25}
    q, meant = model.configuration(at), exact.configuration(at)
    assert np.max(np.abs(model.residual(q))) < 1e-12
    close(q, meant, 1e-5)
    still, ones = np.zeros(3), np.ones(3)
    close(rm.aba(model, q, still, rm.rnea(model, q, still, ones)), ones, 1e-9)


def parallel_rods(seed: int, digits: int) -> str:
    """A crank and a driven link with arms on both sides, which two equal rods join.

    In a plane and with frames that are turned anyhow, written with so many digits.
    """
    rng = np.random.default_rng(seed)
    plane, shift = Rotation.random(random_state=rng), rng.uniform(-0.2, 0.2, 3)
    axis = plane.apply((0.0, 0.0, 1.0))
    away = np.array([*rng.uniform((0.03, 0.1), (0.1, 0.2)), 0.0])
    arms = {"front": np.array([0.05, 0.0, 0.0]), "back": np.array([-0.035, 0.0, 0.0])}
    pins = {"base": np.zeros(3), "crank": np.zeros(3), "driven": away, **arms}
    turns = {name: Rotation.random(random_state=rng) for name in pins}
    places = {name: shift + plane.apply(at) for name, at in pins.items()}
    turns["base"], places["base"] = Rotation.identity(), np.zeros(3)

    def written(numbers: np.ndarray) -> str:
        return " ".join(str(round(float(x), digits)) for x in numbers)

    def on(link: str, turn: Rotation, at: np.ndarray) -> tuple[str, str]:
        back = turns[link].inv()
        return written(back.apply(at - places[link])), written((back * turn).as_euler("xyz"))

    parts = [link(name) for name in ("crank", "driven", *arms)]
    for parent, child in (
        ("base", "crank"),
        ("base", "driven"),
        ("crank", "front"),
        ("crank", "back"),
    ):
        xyz, rpy = on(parent, turns[child], places[child])
        own = written(turns[child].inv().apply(axis))
        parts.append(joint(child, parent, child, xyz, rpy=rpy, axis=own))
    for rod, arm in arms.items():
        turn, at = Rotation.random(random_state=rng), shift + plane.apply(arm + away)
        ends = (
            f'<{end} link="{name}"><origin xyz="{xyz}" rpy="{rpy}"/></{end}>'
            for end, name in (("predecessor", rod), ("successor", "driven"))
            for xyz, rpy in (on(name, turn, at),)
        )
        own = f'<axis xyz="{written(turn.inv().apply(axis))}"/>'
        parts.append(f'<loop name="{rod}_pin" type="revolute">{"".join(ends)}{own}</loop>')
    return robot(*parts)


def test_two_rods_that_flatten_together_are_exact(recwarn: pytest.WarningsRecorder) -> None:
    """Random guesses close where both parallelograms are flat; what these lack is no rounding."""
    model = rm.load(parallel_rods(0, 16))
    assert not recwarn
    assert model.nv == 1
    q = np.array([model.random_configuration(k) for k in range(8)])
    close(np.abs(model.constraint_jacobian(q)), np.ones_like(model.constraint_jacobian(q)), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "digits"), [(1, 6), (2, 5), (3, 5), (4, 4)])
def test_rounded_rods_are_mended_over_all_of_their_range(seed: int, digits: int) -> None:
    """Axes that lean alike open loops at second order only, and far from where the file is."""
    with pytest.warns(rm.DescriptionWarning) as caught:
        model = rm.load(parallel_rods(seed, digits))
    (text,) = (str(each.message) for each in caught)
    assert "is rounded" in text
    assert "closes only nearly" not in text
    q = np.array([model.random_configuration(k) for k in range(40)])
    assert np.max(np.abs(model.residual(q))) < 1e-11
    assert rm.joint_range(model, "crank").turns_fully


@pytest.mark.slow
def test_what_is_mended_is_written(tmp_path) -> None:
    text, _ = instance("welded parallelogram", 5, 4e-8)
    model = loaded(text)
    assert model is not None
    rm.write_urdf(model, tmp_path / "mended.urdf")
    again = rm.load(tmp_path / "mended.urdf", strict=True)
    q = again.random_configuration(0)
    assert np.max(np.abs(again.residual(q))) < 1e-11


@pytest.mark.slow
def test_numbers_stay_on_request() -> None:
    """Conditions are met as well as they can be, and what stays open is said and bounded."""
    text, _ = instance("spherical four-bar", 6, 1e-6)
    with pytest.warns(rm.DescriptionWarning):
        model = rm.load(text, mend=False)
    assert model.nv == 1
    assert model.description == rm.parsers.read(text)
    assert any("stay open by up to" in note for note in model.notes)
    q = np.array([model.random_configuration(k) for k in range(8)])
    gaps = np.max(np.abs(model.residual(q)), axis=1)
    assert 1e-9 < np.max(gaps) < 1e-4
    assert np.max(np.ptp(q, axis=0)) > 0.05
    near = np.array([model.random_configuration(k, near=model.neutral()) for k in range(8)])
    slack = max(cluster.slack for cluster in model.clusters)
    assert slack < 1e-4
    for there in (
        model.configuration({"j2": 0.4}),
        model.integrate(model.neutral(), [0.5]),
        model.close(model.neutral() + 0.1),
        model.integrate(near, np.full((8, 1), 0.1)),
    ):
        assert np.max(np.abs(model.residual(there))) <= slack
        assert model.check(there) == ()
    with pytest.raises(rm.DescriptionError, match="closes only nearly"):
        rm.load(text, mend=False, strict=True)
    with pytest.raises(rm.DescriptionError, match="is rounded"):
        rm.load(text, strict=True)


@pytest.mark.slow
def test_integrating_around_returns_in_mended_linkages() -> None:
    """Their velocities are those of the set they close on: a square in q ends where it began."""
    model = loaded(instance("spherical platform", 7, 1e-6)[0])
    assert model is not None
    q = start = model.neutral()
    for step in ([0.3, 0, 0], [0, 0.3, 0], [-0.3, 0, 0], [0, -0.3, 0]):
        q = model.integrate(q, np.array(step, float))
    assert np.max(np.abs(q - start)) < 1e-9


@pytest.mark.parametrize(
    ("limits", "met"),
    [(((-2.4, -0.6), (-2.4, -0.6)), True), (((-2.4, -0.6), (-0.3, 0.3)), False)],
)
def test_rounded_linkages_that_close_beyond_limits_next_to_their_start(
    limits: tuple[tuple[float, float], ...], met: bool
) -> None:
    """A foot as Cassie's, with an axis off by 7e-8: it closes within limits a stride away, or not.

    Positions against the plane's two circles.
    """
    crank, foot = (f'<limit lower="{low}" upper="{high}"/>' for low, high in limits)
    model = loaded(
        robot(
            link("crank"), link("rod"), link("foot"),
            joint("crank", "base", "crank", kind="revolute", more=crank),
            joint("rod", "crank", "rod", "0.0549991 0 0"),
            joint("foot", "base", "foot", "0.35 -0.006 0", kind="revolute", more=foot,
                  rpy="7e-8 0 0"),
            loop("ball", "spherical", "rod", "foot", "0.35006 0 0.00684", "0.055 0 0.00684", ""),
        )
    )  # fmt: skip
    assert model is not None
    assert model.nv == 1
    assert (model.check(model.neutral()) == ()) == met
    for angle in (-2.0, -1.0):
        at = model.joint_positions(model.configuration({"crank": angle}))
        off = np.array([0.35, -0.006]) - 0.0549991 * np.array([np.cos(angle), np.sin(angle)])
        reach = (0.35006**2 - off @ off - 0.055**2) / (2 * 0.055 * np.hypot(*off))
        turned = np.arctan2(off[1], off[0]) + np.arccos(reach) * np.array([1.0, -1.0])
        ways = np.angle(np.exp(1j * (at["foot"] - turned)))
        assert np.min(np.abs(ways)) < 1e-6


# ---- rods between balls --------------------------------------------------------------------------


@pytest.mark.slow
def test_spins_are_named_and_locked() -> None:
    text, _ = instance("rod between balls", 0, 0.0)
    model = rm.load(text)
    assert model.nv == 2
    assert model.notes[0].startswith("2 freedoms: 1 is the spin of a rod between two")
    assert "'j2'" in model.notes[0]
    locked = rm.load(text, spins="locked")
    assert locked.nv == 1
    assert "locked" in locked.notes[0]
    named = rm.load(text, independent=["j0"])
    assert named.dof_names == ("j0",)
    assert "locked, as independent= names the others" in named.notes[0]
    with pytest.raises(ValueError, match="spins is 'free' or 'locked'"):
        rm.load(text, spins="held")
    with pytest.raises(TypeError, match="mend is True or False, not 'yes'"):
        rm.load(text, mend="yes")


def hinged_rod(independent: tuple[str, ...] = ()) -> str:
    """A crank moves a rocker by a rod between balls of three hinges; marks, if there are any."""
    heavy = (
        '<inertial><origin xyz="0 0.4 0"/><mass value="9"/><inertia ixx="1" iyy="1" izz="1" '
        'ixy="0" ixz="0" iyz="0"/></inertial>'
    )

    def hinge(name: str, parent: str, child: str, xyz: str, axis: str, more: str = "") -> str:
        mark = name in independent if independent else None
        return joint(name, parent, child, xyz, axis=axis, mark=mark, more=more)

    def ball(name: str, parent: str, child: str, xyz: str) -> str:
        ends = [parent, f"{name}_a", f"{name}_b", child]
        return "".join(link(end, "") for end in ends[1:3]) + "".join(
            hinge(f"{name}_{n}", above, below, xyz if n == "x" else "0 0 0", axis)
            for n, above, below, axis in zip(
                "xyz", ends[:-1], ends[1:], ("1 0 0", "0 1 0", "0 0 1"), strict=True
            )
        )

    return robot(
        *map(link, ("crank", "rod", "eye")), link("rocker", heavy),
        hinge("crank", "base", "crank", "0 0 0", "1 0 0", '<motor effort="5" velocity="3"/>'),
        hinge("rocker", "base", "rocker", "0 0 1", "1 0 0"),
        ball("top", "crank", "rod", "0 0.2 0"), ball("foot", "rod", "eye", "0 0 1.1"),
        loop("weld", "fixed", "eye", "rocker", "0 0 0", "0 0.5 0", more=""),
    )  # fmt: skip


@pytest.mark.parametrize(
    "independent", [(), ("crank", "top_z"), ("top_z", "foot_z"), ("rocker", "foot_z")]
)
def test_rods_spin_whichever_joints_are_independent(independent: tuple[str, ...]) -> None:
    """Ratios of a four-bar in closed form along its path, which spins of its rod do not end."""
    model = rm.load(hinged_rod(independent))
    assert rm.limb_joints(model) == ("rocker",)
    if independent != ("top_z", "foot_z"):
        locked = rm.load(hinged_rod(independent), spins="locked")
        assert locked.nv == 1
    (row,) = joint_envelopes(model)
    assert row.joint == "rocker"
    assert len(row.line) > 50
    at = np.array([model.joint_positions(q) for q in row.q[row.line]])
    crank, rocker = (np.array([each[name] for each in at]) for name in ("crank", "rocker"))
    # tips 0.2 u and z + 0.5 w, whose distance is that of the rod: (tip - other) · (…)' = 0
    u, w = (np.stack([np.cos(x), np.sin(x)]) for x in (crank, rocker))
    across, beside = (np.stack([-x[1], x[0]]) for x in (u, w))
    rod = np.array([[0.0], [1.0]]) + 0.5 * w - 0.2 * u
    np.testing.assert_allclose(np.sum(rod**2, axis=0), 1.1**2, atol=1e-9)
    expected = 0.5 * np.sum(rod * beside, axis=0) / (0.2 * np.sum(rod * across, axis=0))
    fine = np.abs(expected) < 1e3
    assert np.sum(fine) > 50
    np.testing.assert_allclose(row.ratios[row.line][fine, 0], expected[fine], rtol=1e-6)
    assert np.ptp(expected[fine]) > 1.0


def test_locked_rods_are_where_the_robot_has_them() -> None:
    """At its neutral configuration, which balls have no numbers for in a file, and limits do not
    reach.
    """
    ends = '<limit lower="0.5" upper="2" effort="9" velocity="9"/>'
    text = robot(
        *map(link, ("crank", "rod", "rocker")),
        joint("crank", "base", "crank", axis="1 0 0"),
        joint("rocker", "base", "rocker", "0 0 1", kind="revolute", axis="0.8 0.6 0", more=ends),
        joint("ball", "crank", "rod", "0 0.2 0", kind="spherical"),
        loop("eye", "spherical", "rod", "rocker", "0 0.1 0.95", "0 0.4 0", more=""),
    )  # fmt: skip
    with pytest.warns(rm.DescriptionWarning, match="no closed configuration"):
        model = rm.load(text)
    found = model.joint_positions(model.neutral())
    assert abs(found["crank"]) > 0.05  # drawn open
    with pytest.warns(rm.DescriptionWarning, match="no closed configuration"):
        held = rm.load(text, spins="locked")
    for other in (held, without_spins(model)):
        there = other.joint_positions(other.neutral())
        for name, at in found.items():
            np.testing.assert_allclose(there[name], at, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lengths", "modes"), [((0.8, 1.0, 0.9, 1.6), 1), ((0.5, 1.0, 0.7, 1.1), 2)]
)
@pytest.mark.parametrize("spins", ["free", "locked"])
def test_rods_turned_about_their_lines_are_no_other_way_to_close(
    spins: Literal["free", "locked"], lengths: tuple[float, ...], modes: int
) -> None:
    """Four-bars with a rod between balls have two ways to close, and two modes by Grashof's law."""
    crank, rod, rocker, ground = lengths
    short, *between, long = sorted(lengths)
    assert (short + long < sum(between)) == (modes == 2)
    model = rm.load(
        robot(
            *map(link, ("crank", "rod", "rocker")),
            joint("crank", "base", "crank"),
            joint("rocker", "base", "rocker", f"{ground} 0 0"),
            joint("ball", "crank", "rod", f"{crank} 0 0", kind="spherical"),
            loop("eye", "spherical", "rod", "rocker", f"{rod} 0 0", f"{rocker} 0 0", more=""),
        ),
        spins=spins,
    )
    (linkage,) = rm.validate(model).linkages
    assert (linkage.branches, linkage.modes) == (2, modes)


def test_motors_that_brace_each_other_are_named() -> None:
    text, _ = instance("planar four-bar", 0, 0.0)
    motor = '<transmission name="{0}"><joint name="{0}"/><actuator name="{0}"/></transmission>'
    one, two = (
        text.replace("</robot>", m + "</robot>")
        for m in (motor.format("j0"), motor.format("j0") + motor.format("j1"))
    )
    assert not any("brace" in note for note in rm.load(one).notes)
    (note,) = (note for note in rm.load(two).notes if "brace" in note)
    assert "2 driven joints ('j0', 'j1'), 1 freedom: motors brace each other" in note


def assembled(joints: list[tuple[str, str, str, str, str, str]], loops: str) -> str:
    """Links of 1 kg, with joints as name, type, parent, child, place and axis."""
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.02" izz="0.03" ixy="0" ixz="0" '
        'iyz="0"/></inertial>'
    )
    links = "".join(f'<link name="{child}">{inertial}</link>' for _, _, _, child, _, _ in joints)
    placed = "".join(
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/>{f"<axis xyz={axis!r}/>" if axis else ""}'
        '<limit lower="-9" upper="9" effort="1" velocity="1"/></joint>'
        for name, kind, parent, child, xyz, axis in joints
    )
    return f'<robot name="r"><link name="base"/>{links}{placed}{loops}</robot>'


def anchored(name: str, kind: str, first: str, xyz: str, second: str, other: str) -> str:
    """A loop between points of two links."""
    return (
        f'<loop name="{name}" type="{kind}"><predecessor link="{first}"><origin xyz="{xyz}"/>'
        f'</predecessor><successor link="{second}"><origin xyz="{other}"/></successor></loop>'
    )


@pytest.mark.slow
def test_a_rod_that_is_a_slide_spins_as_one() -> None:
    """As the cylinder and the piston of a Stewart platform's leg."""
    text = assembled(
        [
            ("j0", "revolute", "base", "crank", "0 0 0", "0 0 1"),
            ("ball", "spherical", "crank", "cylinder", "0.3 0 0.1", ""),
            ("slide", "prismatic", "cylinder", "piston", "0.2 0.15 0", "0.8 0.6 0"),
            ("j1", "revolute", "base", "rocker", "1 0 0", "0 0.6 0.8"),
        ],
        anchored("end", "spherical", "piston", "0.4 0.3 0", "rocker", "-0.1 0.3 0.1"),
    )
    model = rm.load(text)
    assert model.nv == 3
    assert "3 freedoms: 1 is the spin of a rod between two balls ('ball')" in model.notes[0]
    assert rm.load(text, spins="locked").nv == 2
    bent = rm.load(text.replace('xyz="0.4 0.3 0"', 'xyz="0.4 0.4 0"'))  # slides beside its line
    assert not any("spin" in note for note in bent.notes)


def rod_platform() -> str:
    """A plate on three rods, with balls at both ends, which are welded to the plate."""
    joints, loops = [("plate", "floating", "base", "plate", "0 0 0.5", "")], ""
    for n, xy in enumerate(("0.4 0", "-0.2 0.3", "-0.2 -0.3")):
        joints += [
            (f"foot{n}", "spherical", "base", f"rod{n}", f"{xy} 0", ""),
            (f"head{n}", "spherical", f"rod{n}", f"tip{n}", "0 0 0.5", ""),
        ]
        loops += anchored(f"weld{n}", "fixed", f"tip{n}", "0 0 0", "plate", f"{xy} 0")
    return assembled(joints, loops)


@pytest.mark.slow
def test_loops_that_random_starts_close_the_wrong_way_round() -> None:
    """Welds forbid no half turns: where three close, few starts have no axis turned round."""
    model = rm.load(rod_platform())
    (cluster,) = (cluster for cluster in model.clusters if cluster.implicit)
    geometry = cluster.geometry
    rng = np.random.default_rng(0)
    start = np.broadcast_to(np.array(cluster.start), (40, geometry.nq))
    q = geometry.integrate(start, rng.uniform(-2.5, 2.5, (40, geometry.nv)))
    plain, gap = closed(geometry, q)
    assert np.mean(geometry.flipped(plain) & (gap < 1e-9)) > 0.5
    aimed, gap = closed(geometry, closed(geometry.oriented(), q)[0])
    assert np.mean(~geometry.flipped(aimed) & (gap < 1e-9)) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("base", [False, True])
def test_a_locked_spin_leaves_the_other_motion(base: bool) -> None:
    """The ends of the rod move alike, at the same rates of the crank; accelerations nearly so."""
    text, _ = instance("rod between balls", 1, 0.0)
    free = rm.load(text, independent=None, floating_base=base or None)
    locked = rm.load(text, spins="locked", independent="j0", floating_base=base or None)
    assert locked.nv == free.nv - 1
    for seed in range(4):
        q = locked.random_configuration(seed)
        assert np.max(np.abs(locked.residual(q))) < 1e-12
        v = np.random.default_rng(seed).normal(size=locked.nv)
        rates = locked.joint_velocities(q, v)
        positions = locked.joint_positions(q)
        at = free.configuration(
            {"j0": float(positions["j0"]), "j1": float(positions["j1"])},
            guess=q, base_pose=q[:7] if base else None,
        )  # fmt: skip
        jacobian = free.constraint_jacobian(at)
        rows = [k for k, name in enumerate(_velocity_names(free)) if name in ("j0", "j1")]
        known = np.array([float(rates["j0"]), float(rates["j1"])])
        best, *_ = np.linalg.lstsq(jacobian[rows], known, rcond=None)
        close(jacobian[rows] @ best, known, 1e-9)


def _velocity_names(model: rm.Model) -> list[str]:
    return [joint.name for joint in model.joints for _ in range(joint.nv)]


@pytest.mark.slow
def test_locked_spins_against_kkt() -> None:
    """The locked robot's accelerations are those of its spanning tree under its conditions."""
    text, _ = instance("rod between balls", 2, 0.0)
    model = rm.load(text, spins="locked")
    q, v, tau = model.random_configuration(0), np.array([0.7]), np.array([0.3])
    a = rm.aba(model, q, v, tau)
    close(rm.aba(model, q, v, tau, method="lagrange"), a, 1e-9)
    batch = np.array([model.random_configuration(k) for k in range(3)])
    assert rm.crba(model, batch).shape == (3, 1, 1)
    assert np.all(rm.crba(model, batch) > 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("base", few([False, True], True))
@pytest.mark.parametrize("spins", few(["free", "locked"], "free"))
@pytest.mark.parametrize("ending", few(["xml", "usda"], "xml"))
def test_balls_of_rods_are_written_as_hinges(ending, spins, base, tmp_path) -> None:
    """The rod's ends move as the locked one's, which has the ball and a condition."""
    text, _ = instance("rod between balls", 3, 0.0)
    options = {"independent": "j0", "floating_base": base or None}
    locked = rm.load(text, spins="locked", **options)
    model = locked if spins == "locked" else rm.load(text, floating_base=base or None)
    write = {"xml": rm.write_mjcf, "usda": rm.write_usd}[ending]
    file = tmp_path / f"r.{ending}"
    write(model, file, rods="hinges", drop=True)  # the base has no mass
    again = rm.load(file, independent=options["independent"])
    assert all(joint.type != "spherical" for joint in again.joints)
    assert {"j2.x", "j2.y"} < set(again.joint_names)
    assert again.nv == locked.nv
    for seed in range(3):
        q = locked.random_configuration(seed)
        at = {name: float(x) for name, x in locked.joint_positions(q).items() if name in "j0 j1"}
        p = again.configuration(at, guess=again.neutral())
        assert np.max(np.abs(again.residual(p))) < 1e-10
        v = np.random.default_rng(seed).normal(size=locked.nv)
        rates = locked.joint_velocities(q, v), again.joint_velocities(p, v)
        close(*(np.array([x["j0"], x["j1"]]) for x in rates), 1e-9)
    with pytest.raises(ValueError, match="rods is 'balls' or 'hinges', not 'bars'"):
        write(model, file, rods="bars")


def with_axis_off(text: str, joint: str, degrees: float) -> str:
    """The linkage with one joint's axis turned about a direction across it."""
    head, axis, tail = re.split(rf'(?<=<joint name="{joint}")(.*?axis xyz=")', text, maxsplit=1)
    numbers, rest = tail.split('"', 1)
    along = np.array([float(x) for x in numbers.split()])
    across = np.cross(along, np.random.default_rng(0).normal(size=3))
    across /= np.linalg.norm(across)
    angle = np.radians(degrees)
    turned = np.cos(angle) * along + np.sin(angle) * np.cross(across, along)
    return f'{head}{axis}{" ".join(map(repr, turned.tolist()))}"{rest}'


@pytest.mark.slow
def test_an_axis_that_is_off_by_a_third_of_a_degree_is_mended() -> None:
    text = with_axis_off(instance("Bennett", 0, 0.0)[0], "j0", 0.3)
    with pytest.warns(rm.DescriptionWarning, match="is rounded"):
        model = rm.load(text)
    q = np.array([model.random_configuration(k) for k in range(20)])
    assert np.max(np.abs(model.residual(q))) < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("degrees", [0.3, 0.7])
def test_configurations_that_a_file_leaves_open_are_told_at_the_call(degrees: float) -> None:
    """Where an axis is off by more than is mended, and by less than what is refused."""
    name = "Sarrus"
    text = with_axis_off(instance(name, 0, 0.0)[0], "j0", degrees)
    with pytest.warns(rm.DescriptionWarning, match="closes only nearly"):
        model = rm.load(text)
    with pytest.warns(RuntimeWarning, match=r"'l0' stay open by .* contradict each other") as said:
        q = np.array([model.random_configuration(k, branch="any") for k in range(8)])
    gaps = np.max(np.abs(model.residual(q)), axis=-1)
    assert 1e-4 < np.max(gaps) < 1e-2
    told = [float(str(each.message).split("open by ")[1].split()[0]) for each in said]
    assert 3.1 * told[-1] > np.max(gaps)  # what was told is not far below what comes
    assert all(b > 2.9 * a for a, b in pairwise(told))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.random_configuration(0, branch="any")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        accepted = rm.load(text, tolerance=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accepted.random_configuration(0, branch="any")
        exact = rm.load(instance(name, 0, 0.0)[0])
        exact.check(exact.random_configuration(0, branch="any"))


@pytest.mark.parametrize("free", [True, False])
def test_a_free_robot_on_one_foot_has_no_spin_of_a_rod(free: bool) -> None:
    """Its trunk turns alone on the leg's last hinge, between no two balls."""
    ways = ("1 0 0", "0 1 0", "0 0 1")
    chain = [joint("root", "base", "trunk", "0 0 0.9", kind="floating")]
    names = ["base", *(f"to{i}" for i in range(5)), "trunk"]
    if not free:
        chain = [link(each, "") for each in names[1:-1]] + [
            joint(f"c{i}", names[i], names[i + 1], axis=ways[i % 3],
                  kind="prismatic" if i < 3 else "continuous",
                  more='<limit lower="-2" upper="2"/>' if i < 3 else "")
            for i in range(6)
        ]  # fmt: skip
    model = rm.load(
        robot(
            *(link(each) for each in ("trunk", "hip", "thigh", "shank")), *chain,
            joint("roll", "trunk", "hip", "0 0.15 0", axis="1 0 0"),
            joint("pitch", "hip", "thigh", axis="0 1 0"),
            joint("knee", "thigh", "shank", "0.1 0 -0.4", axis="0 1 0"),
            loop("foot", "spherical", "base", "shank", "0 0.15 0.05", "-0.1 0 -0.45", ""),
        )
    )  # fmt: skip
    assert model.nv == 6
    assert find_spins(model) == ()
    assert len(rm.limb_joints(model)) == (0 if free else 6)
