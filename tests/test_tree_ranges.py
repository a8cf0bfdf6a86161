"""Ranges of open trees: those that limits of a linkage's other joints leave."""

from __future__ import annotations

import io
import math

import pytest
import texts
from texts import link, loop, robot

import robomodel as rm

SHORT, LONG = 1.68, 2.66  # of the cylinder
EYE, PIN = (2.1, 0.75), (0.5, -0.55)  # x and z at the boom and at the base


def boom(lift: str) -> rm.Model:
    """A boom on a cylinder with limits; ``lift``: those of its hinge."""
    mass = (
        '<inertial><origin xyz="{} 0 0"/><mass value="{}"/>'
        '<inertia ixx="9" ixy="0" ixz="0" iyy="90" iyz="0" izz="90"/></inertial>'
    )
    limit = f'<limit lower="{SHORT}" upper="{LONG}" effort="1e5" velocity="1"/>'
    return rm.load(robot(
        link("boom", mass.format(2.6, 1700)), link("barrel", mass.format(0.7, 100)),
        link("rod", mass.format(-0.7, 60)),
        texts.joint("lift", "base", "boom", kind="revolute", axis="0 -1 0", mark=False,
                    more=lift + '<initial position="0.3"/>'),
        texts.joint("pin", "base", "barrel", f"{PIN[0]} 0 {PIN[1]}", axis="0 -1 0", mark=False,
                    more='<initial position="1.1"/>'),
        texts.joint("cylinder", "barrel", "rod", kind="prismatic", axis="1 0 0", mark=True,
                    more=limit + '<initial position="2.2"/>'),
        loop("eye", "continuous", "rod", "boom", to=f"{EYE[0]} 0 {EYE[1]}",
             more='<axis xyz="0 -1 0"/>'),
    ))  # fmt: skip


def lifted(length: float) -> float:
    """The lift at which the cylinder is so long, by the law of cosines."""
    a, b = math.hypot(*PIN), math.hypot(*EYE)
    between = math.acos((a * a + b * b - length * length) / (2.0 * a * b))
    return between + math.atan2(PIN[1], PIN[0]) - math.atan2(EYE[1], EYE[0])


def test_limits_of_a_cylinder_are_the_range_of_what_it_lifts() -> None:
    """In reports, trees and files, whether or not the hinge has wide limits of its own.

    The hinge without limits had states up to 0.6 rad from neutral, in a file with the whole range.
    """
    ends = lifted(SHORT), lifted(LONG)
    limited = boom('<limit lower="-3" upper="3"/>')
    for model in (boom("<limit/>"), boom('<limit lower="-9" upper="9"/>')):
        (row,) = rm.actuation(model).joints
        assert row.joint == "lift"
        assert (row.limits.lower, row.limits.upper) == pytest.approx(ends)
        stream = io.StringIO()
        rm.write_urdf(model, stream, approximate=True)
        (written,) = rm.load(stream.getvalue()).joints
        assert (written.lower, written.upper) == pytest.approx(ends)
        for tree, other in (
            (rm.approximate_tree(each), rm.approximate_tree(each, fit="lumped"))
            for each in (model, limited)
        ):
            for low, high in (tree.range["lift"], other.range["lift"]):
                assert ends[0] < low < ends[0] + 0.01
                assert ends[1] - 0.01 < high < ends[1]
        wide, same = (rm.approximation_errors(each) for each in (model, limited))
        (mine,), (its,) = wide.armatures, same.armatures
        one, other = ([x.value, x.low, x.high] for x in (mine, its))
        assert one == pytest.approx(other, rel=1e-6)
