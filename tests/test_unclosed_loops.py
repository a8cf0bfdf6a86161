"""Loops that do not close or leave no motion: what is said of them, and tolerances."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from equivalent_robots import mirrored
from texts import coupling, four_bar, joint, link, loop, robot

import robomodel as rm

Z = '<axis xyz="0 0 1"/>'


def refused(text: str, **options: float) -> str:
    with pytest.raises(rm.DescriptionError) as caught:
        rm.load(text, **options)
    return str(caught.value)


def parallelogram(*axes: str, at: str = "1 0 0", rpy: str = "0 0 0") -> str:
    """Closed at zero, with a second one beside it for a second axis."""
    sides = "".join(
        link(f"crank{n}")
        + link(f"coupler{n}")
        + link(f"rocker{n}")
        + joint(f"j_crank{n}", "base" if not n else "rocker0", f"crank{n}", rpy=rpy)
        + joint(f"j_coupler{n}", f"crank{n}", f"coupler{n}", "0 0.5 0")
        + joint(f"j_rocker{n}", "base" if not n else "rocker0", f"rocker{n}", "1 0 0", rpy=rpy)
        + loop(f"closing{n}", "revolute", f"coupler{n}", f"rocker{n}", at, "0 0.5 0", axis)
        for n, axis in enumerate(axes)
    )
    return robot(sides)


# ---- axes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "has"),
    [
        ("", "it has 1 0 0, as where none is written"),
        ('<axis xyz="0 1 0"/>', "it has 0 1 0)"),
        ('<axis xyz="0 0.6 0.8"/>', "it has 0 0.6 0.8)"),
    ],
)
def test_the_axis_that_would_do_is_named(written: str, has: str) -> None:
    text = parallelogram(written)
    message = refused(text)
    assert "leaves no motion: mobility 0" in message
    wanted = "loop 'closing0' <axis xyz=\"0 0 1\"/> (the axis of 'j_crank0', 'j_coupler0'"
    assert wanted in message
    assert has in message
    assert "which leaves mobility 1" in message
    assert "free a joint" not in message
    assert rm.load(parallelogram(Z)).nv == 1


@pytest.mark.slow
def test_the_axis_is_named_where_loops_cannot_even_close() -> None:
    message = refused(off_plane(0.0, more=""))
    assert "cannot close" in message
    assert "give loop 'end' <axis xyz=\"0 0 1\"/>" in message


@pytest.mark.slow
def test_the_axis_is_in_the_frames_of_the_loop() -> None:
    ends = "".join(
        f'<{tag} link="{name}"><origin xyz="{at}" rpy="0 1.5707963267948966 0"/></{tag}>'
        for tag, name, at in (
            ("predecessor", "coupler", "1 0 0"),
            ("successor", "rocker", "0.7 0 0"),
        )
    )
    closing = f'<loop name="end" type="revolute">{ends}<axis xyz="0 0 1"/></loop>'
    message = refused(four_bar(closing=closing))
    assert '<axis xyz="1 0 0"/>' in message
    assert rm.load(four_bar(closing=closing.replace("0 0 1", "1 0 0"))).nv == 1


def test_axes_of_several_loops_at_once() -> None:
    message = refused(parallelogram("", Z))
    assert "loop 'closing0' <axis xyz=\"0 0 1\"/>" in message
    assert "loop 'closing1' <axis" not in message
    both = robot(
        *(link(n) for n in ("a", "b", "c", "d", "e")),
        joint("j_a", "base", "a"),
        joint("j_b", "a", "b", "0 0.5 0"),
        joint("j_c", "base", "c", "1 0 0"),
        joint("j_d", "c", "d", "0 0.5 0"),
        joint("j_e", "base", "e", "2 0 0"),
        loop("one", "revolute", "b", "c", "1 0 0", "0 0.5 0", ""),
        loop("two", "continuous", "d", "e", "1 0 0", "0 0.5 0", '<axis xyz="0 1 0"/>'),
    )
    message = refused(both)
    assert "loop 'one' <axis xyz=\"0 0 1\"/>" in message
    assert "and loop 'two' <axis xyz=\"0 0 1\"/>" in message


@pytest.mark.slow
def test_axes_of_a_sliding_loop() -> None:
    text = robot(
        *(link(n) for n in ("crank", "rod", "slider")),
        joint("j_crank", "base", "crank"),
        joint("j_rod", "crank", "rod", "0.3 0 0"),
        joint("j_pin", "rod", "slider", "0.6 0 0"),
        loop("guide", "prismatic", "base", "slider", more=Z),
    )
    message = refused(text)
    assert "give loop 'guide' <axis xyz=\"1 0 0\"/> (it has 0 0 1)" in message
    assert "or loop 'guide' <axis xyz=\"0 1 0\"/>" in message


def test_no_axis_is_named_where_none_helps() -> None:
    stiff = parallelogram(Z).replace(
        "</robot>", loop("weld", "fixed", "base", "crank0") + "</robot>"
    )
    message = refused(stiff)
    assert "free a joint" in message
    assert "<axis" not in message
    skew = parallelogram("").replace('xyz="0 0 1"', 'xyz="0 0.6 0.8"', 1)
    assert "give loop" not in refused(skew)
    coupled = parallelogram(Z).replace("</robot>", coupling("k", {"j_crank0": 1.0}) + "</robot>")
    assert "free a joint" in refused(coupled)


# ---- what stays open -----------------------------------------------------------------------------


def off_plane(height: float, **more: str) -> str:
    closing = loop("end", "revolute", "coupler", "rocker", f"1 0 {height}", "0.7 0 0", **more)
    return four_bar(closing=closing)


@pytest.mark.slow
def test_an_anchor_off_the_plane_is_told_in_millimetres_along_the_axis() -> None:
    for text in (off_plane(5e-3), mirrored(off_plane(5e-3))):
        message = refused(text)
        assert "'end' stays open by 5 mm along the axis of 'j_crank', 'j_coupler'" in message
        assert "load it with tolerance=0.01" in message
    partly = refused(four_bar(closing=loop("end", "revolute", "coupler", "rocker", "0.1 0 0.2")))
    assert "by 0.539 m, of which 0.2 m are along the axis of" in partly
    assert "tolerance" not in partly


@pytest.mark.slow
def test_what_else_stays_open() -> None:
    leaning = parallelogram(Z).replace(
        '0 0.5 0"/></successor>', '0 0.5 0" rpy="0.3 0 0"/></successor>'
    )
    assert "'closing0' stays open by 17.2° between its frames" in refused(leaning)
    rod = four_bar(
        closing=loop("tie", "rod", "coupler", "rocker", more="", attributes='length="3"')
    )
    assert "'tie' stays open by 1.4 m;" in refused(rod)
    ball = four_bar(closing=loop("end", "spherical", "coupler", "rocker", "0.1 0 0", more=""))
    assert "'end' stays open by 0.5 m;" in refused(ball)


# ---- tolerance -----------------------------------------------------------------------------------


@pytest.mark.slow_cases("at load", "in the file")
@pytest.mark.parametrize("said", ["at load", "in the file"])
def test_a_rounded_file_within_its_tolerance_is_the_exact_robot(said: str) -> None:
    exact = rm.load(four_bar())
    if said == "at load":
        model = rm.load(off_plane(5e-4), tolerance=1e-3, strict=True, mend=False)
    else:
        text = off_plane(5e-4, attributes='tolerance="1e-3"')
        model = rm.load(text, strict=True, mend=False)
    assert model.dof_names == exact.dof_names
    assert any("closes only nearly" in note and "0.5 mm" in note for note in model.notes)
    q = model.neutral()
    assert q == pytest.approx(exact.neutral(), abs=1e-9)
    assert model.check(q) == ()
    assert np.max(np.abs(model.residual(q))) == pytest.approx(5e-4)
    v, tau = [0.7], [0.3]
    assert rm.aba(model, q, v, tau) == pytest.approx(rm.aba(exact, q, v, tau), rel=1e-9)
    batch = np.array([model.random_configuration(seed) for seed in range(3)])
    assert rm.crba(model, batch) == pytest.approx(rm.crba(exact, batch), rel=1e-9)
    run = rm.simulate(model, q, v, duration=0.05, step=0.01, method="rk4")
    same = rm.simulate(exact, exact.neutral(), v, duration=0.05, step=0.01, method="rk4")
    assert run.q[-1] == pytest.approx(same.q[-1], abs=1e-8)
    rolled = rm.rollout(model, q, v, np.zeros((5, 1)), 0.01)
    assert np.all(np.isfinite(rolled.q))
    with pytest.raises(rm.errors.ClosureError):
        model.check(q + 1e-3)


@pytest.mark.slow_cases("not at all", "at load", "in the file")
@pytest.mark.parametrize("said", ["at load", "in the file", "not at all"])
def test_a_rounded_file_is_mended(said: str, tmp_path: Path) -> None:
    """Its loops hold exactly then, as far as it moves, and what is written is the mended robot."""
    exact = rm.load(four_bar())
    if said == "not at all":
        with pytest.warns(rm.DescriptionWarning, match="'end' moved by at most 0.* mm and 0.*°"):
            model = rm.load(off_plane(5e-4))
    else:
        inside = 'tolerance="1e-3"' if said == "in the file" else ""
        tolerance = 1e-3 if said == "at load" else None
        model = rm.load(off_plane(5e-4, attributes=inside), tolerance=tolerance, strict=True)
        assert any("'end' moved by at most" in note for note in model.notes)
    q = np.array([model.random_configuration(seed) for seed in range(8)])
    assert np.ptp(q) > 1.0
    assert np.max(np.abs(model.residual(q))) < 1e-10
    assert rm.crba(model, q) == pytest.approx(rm.crba(exact, exact.close(q)), rel=1e-3)
    rm.write_urdf(model, tmp_path / "mended.urdf")
    again = rm.load(tmp_path / "mended.urdf", strict=True)
    assert np.max(np.abs(again.residual(q))) < 1e-9


@pytest.mark.slow
def test_a_leaning_axis_stays_near_where_the_file_is() -> None:
    """The gap varies over the motion; the cluster does not slide to where it is least."""
    leaning = four_bar().replace('rpy="0 0 0"', 'rpy="0 0.002 0"', 1)
    model, exact = rm.load(leaning, tolerance=5e-3), rm.load(four_bar())
    assert model.nv == 1
    q = model.neutral()
    # zero, where the file puts its joints, is as near to one way to close as to its mirror image
    assert np.abs(q) == pytest.approx(np.abs(exact.neutral()), abs=0.02)
    assert rm.crba(model, q) == pytest.approx(rm.crba(exact, exact.close(q)), rel=1e-2)
    assert model.check(model.integrate(q, [0.3])) == ()


@pytest.mark.slow
def test_axes_that_lean_by_rounding_are_mended() -> None:
    """By less than gaps may be, but by more than ranks forgive."""
    closing = (
        '<loop name="end" type="spherical"><predecessor link="coupler"><origin xyz="1 0 0"/>'
        '</predecessor><successor link="rocker"><origin xyz="0.7 0 0"/></successor></loop>'
    )
    text = four_bar(closing=closing)
    leaning = text.replace('<axis xyz="0 0 1"/>', '<axis xyz="0 4e-4 1"/>', 1)
    with pytest.warns(rm.DescriptionWarning, match="is rounded: frames of 'end' moved"):
        model = rm.load(leaning)
    assert model.nv == 1
    q = model.integrate(model.neutral(), [0.4])
    assert np.max(np.abs(model.residual(q))) < 1e-10


def test_tolerances_are_written_and_read_back(tmp_path: Path) -> None:
    model = rm.load(off_plane(5e-4), tolerance=1e-3)
    rm.write_urdf(model, tmp_path / "robot.urdf")
    again = rm.load(tmp_path / "robot.urdf", strict=True)
    assert again.description.loops[0].tolerance == 1e-3
    assert again.neutral() == pytest.approx(model.neutral(), abs=1e-12)
    rm.write_sdf(model, tmp_path / "robot.sdf")
    assert rm.load(tmp_path / "robot.sdf", tolerance=1e-3).nv == 1


@pytest.mark.slow
def test_rounding_that_is_not_said_is_warned_of_and_forgiven() -> None:
    with pytest.warns(rm.DescriptionWarning, match="closes only nearly.*0.05 mm along the axis"):
        model = rm.load(off_plane(5e-5), mend=False)
    q = model.neutral()
    assert model.check(q) == ()
    rm.simulate(model, q, duration=0.01, step=5e-3, method="rk4")
    assert "closes only nearly" in refused(off_plane(5e-5), strict=True, mend=False)
    assert "is rounded" in refused(off_plane(5e-5), strict=True)
    assert "cannot close" in refused(off_plane(5e-5), tolerance=1e-6)


@pytest.mark.parametrize("tolerance", [-1e-3, 0.2, float("nan"), float("inf")])
def test_tolerances_are_bounded(tolerance: float) -> None:
    with pytest.raises(ValueError, match=r"tolerance must be between 0 and 0\.1"):
        rm.load(four_bar(), tolerance=tolerance)
    said = refused(off_plane(0.0, attributes=f'tolerance="{tolerance}"'))
    assert "tolerance" in said


def test_an_exact_file_is_exact_whatever_its_tolerance() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rm.load(four_bar(), tolerance=0.0)
        wide = rm.load(four_bar(), tolerance=0.01)
    assert model.neutral() == pytest.approx(wide.neutral(), abs=1e-12)
    assert not any("nearly" in note for note in wide.notes)
    assert rm.robots.load("five_bar", tolerance=1e-3).nv == 2


def test_a_wide_tolerance_drops_no_condition_of_an_exact_file() -> None:
    """A nut that a belt turns pushes a spindle of 0.8 mm per radian, and this a lever."""
    text = robot(
        *map(link, ("lever", "barrel", "nut", "spindle", "rotor")),
        joint("knee", "base", "lever"),
        joint("pivot", "base", "barrel", "0.1 -0.3 0", rpy=f"0 0 {math.pi / 2!r}"),
        joint("bearing", "barrel", "nut", axis="1 0 0"),
        joint("screw", "nut", "spindle", "0.3 0 0", kind="screw", axis="1 0 0",
              more='<pitch value="0.0008"/>'),
        joint("motor", "barrel", "rotor", "0 0.05 0", axis="1 0 0"),
        coupling("belt", {"motor": 1.0, "bearing": -2.5}),
        loop("eye", "revolute", "spindle", "lever", to="0.1 0 0"),
    )  # fmt: skip
    exact = rm.load(text)
    for tolerance in (1e-3, 0.1):
        wide = rm.load(text, tolerance=tolerance, strict=True)
        assert wide.dof_names == exact.dof_names
        q = exact.neutral()
        np.testing.assert_array_equal(wide.neutral(), q)
        rates = (each.constraint_jacobian(q) for each in (wide, exact))
        np.testing.assert_array_equal(*rates)


# ---- limits --------------------------------------------------------------------------------------


Angles = tuple[float, float, float]


def limit(low: float, high: float) -> str:
    return f'<limit lower="{low!r}" upper="{high!r}"/>'


def test_narrow_limits_that_loops_meet_are_met() -> None:
    """A six-bar linkage with limits around a closed configuration: no other one is within them."""
    at = {"A": -1.11013798, "B": 0.86147045, "C": -1.43969225, "D": 0.22537796, "E": -1.50090439}
    below, above = (3e-5, 0.033, 0.0011, 0.0044, 0.012), (0.0024, 0.05, 0.044, 0.0061, 0.0023)
    places = {"A": ("base", "a", "0 0 0"), "B": ("a", "b", "0.5 0 0"),
              "C": ("base", "c", "1.1 0 0"), "D": ("b", "d", "0.5 0.2 0"),
              "E": ("base", "e", "1.6 0.4 0")}  # fmt: skip
    joints = [
        joint(name, *places[name], kind="revolute", more=limit(q - low, q + high))
        for (name, q), low, high in zip(at.items(), below, above, strict=True)
    ]
    loops = (
        loop("l", "revolute", "b", "c", "1 0 0", "0.7 0 0"),
        loop("m", "revolute", "d", "e", "0.9 0 0", "0.8 0 0"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rm.load(robot(*map(link, "abcde"), *joints, *loops))
    assert model.check(model.neutral()) == ()


@pytest.mark.parametrize(
    ("lengths", "at", "limits"),
    [
        ((0.59, 0.2, 0.33, 0.48), (-0.2914385, -1.9361133, -1.6831217),
         ((-0.8044, -0.2903), (-1.9367, -1.888), (-2.2948, -1.1919))),
        ((0.11, 0.75, 0.4, 0.94), (-2.4829592, 2.2209273, -2.4287104),
         ((-2.6723, -2.4245), (1.2365, 2.3399), (-2.4302, -2.4271))),
        ((0.38, 0.79, 0.4, 0.52), (-1.1031593, 1.4513516, -0.1750282),
         ((-1.3325, -1.1013), (1.4274, 1.4526), (-0.3007, -0.1506))),
        ((0.65, 0.77, 0.8, 0.36), (1.2141402, -1.3628248, 0.6671973),
         ((1.2028, 1.5274), (-1.5656, -1.3619), (0.4639, 0.6674))),
    ],
)  # fmt: skip
def test_limits_that_a_four_bar_meets_are_met(
    lengths: tuple[float, ...], at: Angles, limits: tuple[tuple[float, float], ...]
) -> None:
    """Limits around a closed configuration; lengths of the crank, coupler, rocker and base."""
    crank, coupler, rocker, base = lengths
    along, across = (
        crank * f(at[0]) + coupler * f(at[0] + at[1]) - rocker * f(at[2]) for f in (np.cos, np.sin)
    )
    assert (along, across) == pytest.approx((base, 0.0), abs=1e-7)
    assert all(low < q < high for q, (low, high) in zip(at, limits, strict=True))
    places = {"A": ("base", "a", "0 0 0"), "B": ("a", "b", f"{crank} 0 0"),
              "C": ("base", "c", f"{base} 0 0")}  # fmt: skip
    joints = [
        joint(name, *places[name], kind="revolute", more=limit(*ends))
        for name, ends in zip(places, limits, strict=True)
    ]
    closing = loop("l", "revolute", "b", "c", f"{coupler} 0 0", f"{rocker} 0 0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rm.load(robot(*map(link, "abc"), *joints, closing))
    assert model.check(model.neutral()) == ()


def test_limits_that_loops_never_meet_are_told_at_loading() -> None:
    """A rocker's pin is at most 1.5 m from the crank's bearing: |rocker| ≥ 1.205 rad."""
    text = four_bar().replace(
        '<joint name="j_rocker" type="continuous">',
        '<joint name="j_rocker" type="revolute">' + limit(-1.1, 1.1),
    )
    least = np.arccos((1.5**2 - 1.1**2 - 0.7**2) / (2 * 1.1 * 0.7))
    with pytest.warns(rm.DescriptionWarning, match="no closed configuration of cluster") as given:
        model = rm.load(text)
    assert len(given) == 1
    at = float(model.joint_positions(model.neutral())["j_rocker"])
    assert abs(at) >= least - 1e-9
    off = f"{abs(at) - 1.1:.3g} {'below its lower' if at < 0.0 else 'above its upper'} limit"
    assert f"'j_rocker' at {at:.4g}, {off}" in str(given[0].message)
    told = [each for each in rm.validate(model).findings if "no closed" in each.message]
    assert [each.check for each in told] == ["closing"]
    with pytest.raises(rm.DescriptionError, match="no closed configuration"):
        rm.load(text, strict=True)
