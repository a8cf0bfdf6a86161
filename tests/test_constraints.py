"""Conditions of loops and couplings: Jacobians, velocity products, orientations, offsets."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from cases import few
from oracle import Oracle
from texts import coupling, fan, four_bar, joint, link, loop, robot

import robomodel as rm

KINDS = ("revolute", "prismatic", "planar", "fixed", "spherical", "universal", "rod")
AXIS = '<axis xyz="0.36 -0.48 0.8"/>'


def two_arms(kind: str) -> str:
    """Two arms of many joints, sliding ones among them, between whose hands a loop is."""
    parts = []
    for side, x in (("a", "0.1"), ("b", "-0.2")):
        parent = "base"
        for n, (sort, axis) in enumerate(
            (
                ("continuous", "0 0 1"),
                ("prismatic", "0.6 0 0.8"),
                ("continuous", "0 0.8 0.6"),
                ("prismatic", "0 1 0"),
                ("continuous", "1 0 0"),
                ("floating", "1 0 0"),
            )
        ):
            name = f"{side}{n}"
            parts += [
                link(name),
                joint(f"j_{name}", parent, name, f"{x} 0.2 {0.1 * n}", kind=sort, axis=axis,
                      rpy=f"0.{n} -0.3 0.2"),
            ]  # fmt: skip
            parent = name
    axis = "" if kind in ("fixed", "spherical", "rod") else AXIS
    parts.append(loop("hands", kind, "a5", "b5", "0.1 0.2 0.3", "-0.2 0.1 0.4", axis))
    return robot(*parts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_velocity_products_of_every_loop_type(kind: str) -> None:
    """K and k = -K̇ q̇ span and say what the oracle's do, with both ends turning and sliding."""
    text = two_arms(kind)
    model, oracle = rm.load(text), Oracle(text, names=None)
    q = model.random_configuration(3)
    v = np.random.default_rng(1).normal(size=model.nv)
    positions = model.joint_positions(q)
    rates = model.joint_velocities(q, v)
    oracle.names = model.joint_names
    there = oracle.state(positions)
    speed = oracle.stack(rates)
    phi, K, k = oracle.constraint(there, speed)
    assert np.max(np.abs(phi)) < 1e-9
    own, bias = model.constraint_matrix(q), model.constraint_matrix_bias(q, v)
    assert np.linalg.matrix_rank(np.vstack([K, own]), tol=1e-9) == len(own) == len(K)
    least = np.linalg.pinv(K) @ k  # the least accelerations with K q̈ = k
    np.testing.assert_allclose(np.linalg.pinv(own) @ bias, least, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", few(KINDS, "revolute", "planar", "universal", "rod"))
def test_velocity_products_are_derivatives(kind: str) -> None:
    """k = -K̇ q̇ row by row, by extrapolated differences of K along q̇."""
    model = rm.load(two_arms(kind))
    geometry = model.clusters[0].geometry
    q = model.random_configuration(4)
    rate = np.random.default_rng(2).normal(size=geometry.nv)
    _, _, bias = geometry.evaluate(q, rate)

    def slope(h: float) -> np.ndarray:
        ahead, behind = (geometry.evaluate(geometry.integrate(q, s * h * rate))[1] for s in (1, -1))
        return (ahead - behind) @ rate / (2 * h)

    change = (64 * slope(1e-3) - 20 * slope(2e-3) + slope(4e-3)) / 45
    np.testing.assert_allclose(bias, -change, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "sort", "axis", "leaves"),
    [
        ("prismatic", "prismatic", "0 0 1", "it closes only with an axis the wrong way round"),
        ("fixed", "prismatic", "0 0 1", "it closes only with an axis the wrong way round"),
    ],
)
def test_half_a_turn_about_the_axis_is_not_closed(
    kind: str, sort: str, axis: str, leaves: str
) -> None:
    """The axes meet and point the same way; the frames about them are half a turn apart."""
    closing = (
        f'<loop name="end" type="{kind}"><predecessor link="base"/><successor link="a">'
        f'<origin xyz="0 0 0" rpy="0 0 3.141592653589793"/></successor><axis xyz="{axis}"/></loop>'
    )
    text = robot(link("a"), joint("slide", "base", "a", kind=sort, axis=axis), closing)
    with pytest.raises(rm.DescriptionError, match=leaves):
        rm.load(text)


@pytest.mark.slow
def test_conditions_say_what_g_says() -> None:
    """Rows K and k, as many as there are dependent velocities: K G = 0, K g = k.

    With couplings beside loops, loops given twice, and a plane's redundant rows among them.
    """
    again = loop("again", "revolute", "rocker", "coupler", "0.7 0 0", "1 0 0")
    cam = link("cam") + joint(
        "j_cam", "base", "cam", more='<mimic joint="j_crank" multiplier="2" offset="0.1"/>'
    )
    for text in (four_bar(), four_bar(again, cam), four_bar(cam), two_arms("rod"), fan(
        coupling("one", {"a": 2.0, "b": -1.0, "c": 0.5}, 0.3)
    )):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rm.DescriptionWarning)  # of the loop given twice
            model = rm.load(text)
        (cluster,) = model.clusters
        q = model.random_configuration(2)
        v = np.random.default_rng(3).normal(size=model.nv)
        g, bias = model.constraint_jacobian(q), model.constraint_bias(q, v)
        positions = model.spanning_positions(q.tolist())
        rows, right = cluster.constraint.conditions(positions, (g @ v).tolist())
        K, k = np.array(rows, dtype=float), np.array(right, dtype=float)
        assert K.shape == (len(g) - model.nv, len(g))
        assert np.linalg.matrix_rank(K, tol=1e-8) == len(K)
        np.testing.assert_allclose(K @ g, 0.0, atol=1e-11)
        np.testing.assert_allclose(K @ bias, k, atol=1e-10)


# ---- couplings -----------------------------------------------------------------------------------


def test_couplings_whose_solutions_feed_each_other_keep_their_offsets() -> None:
    """What one coupling determines stands in another, both ways: forwards and back."""
    text = fan(
        link("link_d"),
        joint("d", "base", "link_d"),
        coupling("one", {"b": 2.0, "c": -1.0}, 0.3),
        coupling("two", {"c": 5.0, "a": 1.0, "b": 0.5}, -0.7),
        coupling("three", {"d": 3.0, "c": 0.2, "b": -0.4}, 1.1),
    )
    model = rm.load(text)
    assert model.nv == 1
    wanted = np.array([[0, 2, -1, 0], [1, 0.5, 5, 0], [0, -0.4, 0.2, 3]])
    offsets = np.array([0.3, -0.7, 1.1])
    for value in (0.0, 0.4, -1.3):
        positions = model.joint_positions([value])
        q = np.array([positions[name] for name in "abcd"])
        np.testing.assert_allclose(wanted @ q, offsets, atol=1e-14)
    rates = model.constraint_jacobian([0.2])[:, 0]
    np.testing.assert_allclose(wanted @ rates, 0.0, atol=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_any_couplings_with_offsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"j{n}" for n in range(6)]
    matrix = np.where(rng.random((4, 6)) < 0.6, rng.normal(size=(4, 6)), 0.0)
    matrix[range(4), range(4)] = 1.0
    offsets = rng.normal(size=4)
    text = robot(
        *(link(f"l{n}") for n in range(6)),
        *(joint(name, "base", f"l{n}") for n, name in enumerate(names)),
        *(
            coupling(f"k{i}", {n: float(x) for n, x in zip(names, row, strict=True) if x}, o)
            for i, (row, o) in enumerate(zip(matrix, offsets.tolist(), strict=True))
        ),
    )
    model = rm.load(text)
    assert model.nv == 2
    positions = model.joint_positions(rng.normal(size=(3, 2)))
    q = np.stack([positions[name] for name in names], axis=-1)
    np.testing.assert_allclose(q @ matrix.T, np.broadcast_to(offsets, (3, 4)), atol=1e-11)
