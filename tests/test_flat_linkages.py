"""Linkages that are drawn at a change point: the same branch wherever the loop is cut, and told."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from cases import few
from texts import joint, link, loop, robot

import robomodel as rm

CUTS = ("base", "tip", "knee", "crank")
ANY = pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")


def ring(a: float, b: float, c: float, d: float, cut: str, more: str = "") -> str:
    """A four-bar that lies along x: a from 0 to its knee, b on to the tip at d + c, pivots 0 and d.

    ``cut`` names the hinge that is a loop; ``more`` goes into the crank's joint.
    """
    links = [link("crank"), link("coupler"), link("rocker")]
    crank = joint("A", "base", "crank", more=more, kind="revolute" if more else "continuous")
    rocker = joint("D", "base", "rocker", f"{d} 0 0")
    knee = joint("B", "crank", "coupler", f"{a} 0 0")
    tip = joint("C", "rocker", "coupler", f"{c} 0 0")
    parts = {
        "base": [
            crank,
            knee,
            joint("C", "coupler", "rocker", f"{b} 0 0"),
            loop("pin", "revolute", "rocker", "base", f"{-c} 0 0", f"{d} 0 0"),
        ],
        "tip": [crank, knee, rocker,
                loop("pin", "revolute", "coupler", "rocker", f"{b} 0 0", f"{c} 0 0")],
        "knee": [crank, rocker, tip,
                 loop("pin", "revolute", "crank", "coupler", f"{a} 0 0", f"{-b} 0 0")],
        "crank": [rocker, tip, joint("B", "coupler", "crank", f"{-b} 0 0"),
                  loop("pin", "revolute", "crank", "base", f"{-a} 0 0", "0 0 0")],
    }  # fmt: skip
    return robot(*links, *parts[cut])


def turns(model: rm.Model, q: np.ndarray) -> np.ndarray:
    """Angles of crank, coupler and rocker against the base."""
    names = ("crank", "coupler", "rocker")
    poses = np.array([rm.frame_pose(model, q, name, backend="numpy") for name in names])
    return np.arctan2(poses[:, 1, 0], poses[:, 0, 0])


@pytest.mark.slow_cases("0.7-1.0")
@ANY
@pytest.mark.parametrize(
    ("a", "b"), few([(0.7, 1.0), (1.0, 0.4), (0.5, 0.5), (0.3, 1.0), (0.15, 0.4)], (0.7, 1.0))
)
def test_parallelograms_are_parallelograms(a: float, b: float) -> None:
    for cut in CUTS:
        model = rm.load(ring(a, b, a, b, cut))
        crank, coupler, rocker = turns(model, model.neutral())
        assert abs(crank) > 0.05
        np.testing.assert_allclose((coupler, rocker - crank), 0.0, rtol=0, atol=1e-9)


@pytest.mark.slow
@ANY
def test_other_linkages_are_on_one_branch() -> None:
    """Along both branches, the angles that second derivatives of the closing give; one is taken."""
    a, b, c, d = 0.5, 0.3, 0.6, 0.2
    taken = []
    for cut in CUTS:
        model = rm.load(ring(a, b, c, d, cut))
        crank, coupler, rocker = turns(model, model.neutral())
        taken.append((coupler / crank, rocker / crank))
    # a u + b w = c r, a u² + b w² = c r² with u = 1
    x = np.roots([b * b / c - b, 2 * a * b / c, a * a / c - a])
    both = np.sort(x), (a + b * np.sort(x)) / c
    which = np.argmin(np.abs(both[0] - taken[0][0]))
    np.testing.assert_allclose(taken, [[w[which] for w in both]] * 4, rtol=0, atol=0.01)


def test_the_warning_names_both_ways_and_limits_or_positions_choose() -> None:
    with pytest.warns(rm.DescriptionWarning) as caught:
        model = rm.load(ring(0.7, 1.0, 0.7, 1.0, "base"))
    (text,) = (str(each.message) for each in caught)
    assert "loop 'pin'" in text
    assert "'A' 0.1, 'B' -0.1, 'C' 0.1; or 'A' 0.0177, 'B' -0.1, 'C' -0.0177" in text
    assert "the link of 'B' does not turn" in text
    np.testing.assert_allclose(model.configuration({"A": 0.5}), [0.5, -0.5, 0.5], atol=1e-12)
    with pytest.raises(rm.DescriptionError, match="in 2 ways"):
        rm.load(ring(0.7, 1.0, 0.7, 1.0, "base"), strict=True)
    text = ring(0.7, 1.0, 0.7, 1.0, "base")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        crossed = text.replace('name="C" type="continuous"', 'name="C" type="revolute"').replace(
            '<origin xyz="1.0 0 0" rpy="0 0 0"/><axis xyz="0 0 1"/></joint>',
            '<origin xyz="1.0 0 0" rpy="0 0 0"/><axis xyz="0 0 1"/>'
            '<limit lower="-1" upper="0"/></joint>',
        )
        limited = rm.load(
            crossed.replace('name="A" type="continuous"', 'name="A" type="revolute"').replace(
                '<origin xyz="0 0 0" rpy="0 0 0"/><axis xyz="0 0 1"/></joint>',
                '<origin xyz="0 0 0" rpy="0 0 0"/><axis xyz="0 0 1"/>'
                '<limit lower="0" upper="1"/></joint>',
            )
        )
    assert turns(limited, limited.neutral())[2] < -0.05  # the rocker turns against the crank
