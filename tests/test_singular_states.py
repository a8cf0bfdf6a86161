"""States at which coordinates are singular to rounding: nan there alone, and a warning."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from cases import few
from texts import four_bar, joint, link, loop, robot

import robomodel as rm
from robomodel.mechanism.constraints import LoopConstraint

LENGTHS = (0.5, 1.0, 0.7, 1.1)  # crank, coupler, rocker, ground of texts.four_bar


def parallelogram(angle: float, crank: float = 0.4, coupler: float = 0.7) -> str:
    """A parallelogram whose zero is where the cranks stand at ``angle``; flat at -angle."""
    arm = f"{crank * math.cos(angle)!r} {crank * math.sin(angle)!r} 0"
    back = f"{-crank * math.cos(angle)!r} {-crank * math.sin(angle)!r} 0"
    return robot(
        link("crank"),
        link("coupler"),
        link("rocker"),
        joint("turn", "base", "crank"),
        joint("knee", "crank", "coupler", arm),
        joint("last", "coupler", "rocker", f"{coupler} 0 0"),
        loop("pin", "revolute", "rocker", "base", back, f"{coupler} 0 0"),
    )


def rocker_driven(**options: object) -> tuple[rm.Model, np.ndarray]:
    """A crank and rocker seen from the rocker, and where crank and coupler are in line."""
    a, b, c, d = LENGTHS
    model = rm.load(four_bar(), independent=["j_rocker"], **options)
    crank = math.acos((d**2 + (a + b) ** 2 - c**2) / (2 * d * (a + b)))
    rocker = math.pi - math.acos((d**2 + c**2 - (a + b) ** 2) / (2 * d * c))
    return model, np.array([crank, 0.0, rocker])


def loop_constraint(model: rm.Model) -> LoopConstraint:
    """That of the only cluster with loops."""
    (found,) = (c.constraint for c in model.clusters if isinstance(c.constraint, LoopConstraint))
    return found


def test_flat_parallelograms_are_nan_and_beside_them_are_not() -> None:
    """Drawn at random angles, so that sines are rounding there; the ratios are 1, -1, 1 beside."""
    rng = np.random.default_rng(0)
    for angle in rng.uniform(0.2, 1.4, 4).tolist():
        model = rm.load(parallelogram(angle, *rng.uniform(0.2, 1.5, 2).round(3).tolist()))
        constraint = loop_constraint(model)
        for off, lost in ((0.0, True), (1e-8, False), (1e-6, False), (1e-4, False)):
            turn = -angle + off
            g = np.array(constraint.jacobian([turn, -turn, turn]), dtype=float)[:, 0]
            assert np.isnan(g[1:]).all() == lost
            if not lost:
                np.testing.assert_allclose(g, [1.0, -1.0, 1.0], rtol=0, atol=3e-16 / off)


def test_a_change_point_warns_of_its_cluster() -> None:
    model = rm.load(parallelogram(1.2))
    flat, beside = np.array([-1.2, 1.2, -1.2]), np.array([-1.199, 1.199, -1.199])
    with pytest.warns(RuntimeWarning, match=r"crba: cluster 'crank' is at a change point.*pin"):
        assert np.isnan(rm.crba(model, flat)).all()
    with pytest.warns(RuntimeWarning, match=r"constraint_jacobian: cluster 'crank'"):
        assert np.isnan(model.constraint_jacobian(flat)[1:]).all()
    with pytest.warns(RuntimeWarning, match=r"cluster 'crank'.*\(2 states\)"):
        both = rm.crba(model, np.array([beside, flat, beside, flat]))
    np.testing.assert_array_equal(np.isnan(both[:, 0, 0]), [False, True, False, True])
    np.testing.assert_array_equal(both[::2], rm.crba(model, np.array([beside] * 2)))
    (found,) = model.check(np.array([beside, flat]))
    assert (found.cluster, found.kind, found.near, found.states) == ("crank", "change point", 0, 1)
    assert found.sine <= 1e-12
    near = model.close(flat + np.array([1e-7, -1e-7, 1e-7]))
    (found,) = model.check(near)
    assert (found.kind, found.near) == ("change point", True)
    assert 1e-8 < found.sine < 1e-6
    assert str(found).startswith("cluster 'crank' is near a change point")
    assert model.check(beside) == ()


@pytest.mark.slow_cases("options1")
@pytest.mark.parametrize("options", few([{}, {"floating_base": True}], {"floating_base": True}))
def test_dead_points(options: dict[str, bool]) -> None:
    """Nan in all that depends on the linkage; from all joints' velocities results stay right."""
    model, dead = rocker_driven(**options)
    q = model.neutral()
    q[-3:] = dead
    at = model.joint_names[-3:]
    assert [model.joint_positions(q)[name] for name in at] == pytest.approx(dead, abs=1e-15)
    v, a = np.zeros((2, model.nv))
    a[-1] = 0.1
    with pytest.warns(RuntimeWarning, match=r"rnea: cluster 'crank' is at a dead point.*j_rocker"):
        tau = rm.rnea(model, q, v, a)
    assert np.isnan(tau).all()
    (found,) = model.check(q)
    assert (found.kind, found.joints, found.near) == ("dead point", ("j_rocker",), False)
    regular = rm.load(four_bar(), independent=["j_crank"], **options)
    rates = regular.constraint_jacobian(q) @ np.ones(regular.nv)
    there = rm.accelerations(model, q, rates, 0.0 * rates)[0]
    expected = rm.accelerations(regular, q, rates, 0.0 * rates)[0]
    np.testing.assert_allclose(there, expected, rtol=1e-9, atol=1e-12)
    assert np.isfinite(there).all()


def test_how_it_is_told() -> None:
    """By np.errstate's setting, by every way of calling, and not where arguments are nan."""
    model, dead = rocker_driven()
    states = np.array([model.neutral(), dead])
    kernel = rm.compile(model, "crba")
    out = np.empty((2, 1, 1))
    flat = np.empty((2, 1))
    single = rm.compile(model, "rnea_derivatives")
    zero = np.zeros((2, 1))
    for call in (
        lambda: kernel(states),
        lambda: kernel(states, out=out),
        lambda: kernel(states, out=out[::-1][::-1]),
        lambda: kernel(np.tile(states, (2000, 1)), threads=2),
        lambda: single(states, zero, zero),
        lambda: rm.crba(model, states, backend="numpy"),
        lambda: model.constraint_bias(states, zero),
        lambda: model.joint_velocities(states, zero + 1.0),
        lambda: rm.compile(model, "rnea")(states, zero, zero, out=flat),
    ):
        with pytest.warns(RuntimeWarning, match="cluster 'crank' is at a dead point"):
            call()
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            call()
        with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match="'crank'"):
            call()
    np.testing.assert_array_equal(np.isnan(out[:, 0, 0]), [False, True])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(kernel([math.nan] * 3)).all()
        kernel(states[:1])
    with pytest.warns(RuntimeWarning, match=r"aba: a result is not finite"):
        rm.aba(model, states[0], [1e200], [0.0])


def test_columns_of_rounding_count_as_zero() -> None:
    """Both rods of an ankle at their dead points: K_d is a diagonal matrix of rounding errors."""
    sides = [("left", 0.05), ("right", -0.05)]
    model = rm.load(
        robot(
            link("shank"),
            link("foot"),
            joint("pitch", "base", "shank", axis="0 1 0", mark=True),
            joint("roll", "shank", "foot", axis="1 0 0", mark=True),
            *(link(f"{n}_crank") for n, _ in sides),
            *(
                joint(f"{n}_motor", "base", f"{n}_crank", f"0 {y} 0.25", axis="0 1 0", mark=False)
                for n, y in sides
            ),
            *(
                loop(f"{n}_rod", "rod", f"{n}_crank", "foot", "-0.04 0 0", f"-0.055 {y} -0.01",
                     "", 'length="0.25"')
                for n, y in sides
            ),
        )
    )  # fmt: skip
    # each crank in line with its rod, whose end is 0.29 m from the crank's axis
    radius, height = math.hypot(0.055, 0.01), 0.25
    z = (height**2 + radius**2 - 0.29**2) / (2.0 * height)
    x = -math.sqrt(radius**2 - z**2)
    pitch = math.atan2(x, z) - math.atan2(-0.055, -0.01)
    crank = math.atan2(z - height, -x)
    q = [pitch, 0.0, crank, crank]
    constraint = loop_constraint(model)
    assert max(map(abs, constraint.rows(q)[0])) < 1e-15
    (block,) = constraint.blocks
    lever = np.array(constraint.rows(q)[1], dtype=float)[:, 2:]
    assert 0.0 < np.abs(lever).max() < 1e-15, block
    with pytest.warns(RuntimeWarning, match="dead point, where 'pitch', 'roll' rest while"):
        assert np.isnan(rm.crba(model, q)).all()
