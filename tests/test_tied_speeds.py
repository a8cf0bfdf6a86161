"""A joint is no faster than the joints that turn with it at constant ratios."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
import pytest
import texts
from texts import coupling, link, robot

import robomodel as rm
from robomodel.reports.simulators import for_simulator


def chain(ties: Mapping[str, float], speeds: Mapping[str, str], written: str) -> str:
    """Hinges a, b, c on the base; b and c turn ``ties`` times a, as mimics or by couplings."""
    parts = []
    for name, speed in speeds.items():
        of = "a" if name == "b" else "b"  # c goes by b
        factor = ties.get(name, 1.0) / ties.get(of, 1.0)
        end, effort = (1, 20) if name == "a" else (9, 5)
        more = f'<limit lower="-{end}" upper="{end}" effort="{effort}" {speed}/>'
        if written == "mimic" and name != "a":
            more += f'<mimic joint="{of}" multiplier="{factor}"/>'
        parts += [link(f"l{name}"),
                  texts.joint(name, "base", f"l{name}", kind="revolute", axis="0 1 0", more=more,
                              mark=None if written == "mimic" else name == "a")]  # fmt: skip
        if written == "coupling" and name != "a":
            parts.append(coupling(f"t{name}", {name: 2.0, of: -2.0 * factor}))
    return robot(*parts)


@pytest.mark.parametrize("written", ["mimic", "coupling"])
@pytest.mark.parametrize("ratio", [1.0, -1.0, 0.4, -2.5])
def test_a_follower_limits_the_speed_of_its_leader(ratio: float, written: str) -> None:
    """Of each the least of all limits by its row of G, in reports and what is written."""
    ties = {"b": ratio, "c": -0.5 * ratio}
    speeds = {"a": 'velocity="10"', "b": 'velocity="7" velocity_lower="-2"', "c": 'velocity="1.3"'}
    model = rm.load(chain(ties, speeds, written))
    (g,) = model.constraint_jacobian(model.neutral()).T
    low = np.array([each.least_velocity for each in model.joints]) / g
    high = np.array([each.velocity_limit for each in model.joints]) / g
    least, most = np.max(np.minimum(low, high)), np.min(np.maximum(low, high))
    (row,) = rm.actuation(model, ["a"]).joints
    assert (row.limits.least_velocity, row.limits.velocity) == pytest.approx((least, most))
    assert "its limit of velocity is that of '" in str(rm.actuation(model, ["a"]))
    (pasted,) = for_simulator(model, "isaaclab")[1]["fields"]
    factor = g[model.joint_names.index(pasted.joint)]  # the tree has that which carries the limb
    assert pasted.velocity == pytest.approx(abs(factor) * min(-least, most))
    for write in (rm.write_urdf, rm.write_sdf):
        stream = io.StringIO()
        write(model, stream, approximate=True)
        tree = rm.load(stream.getvalue())
        for joint in tree.joints:
            factor = g[model.joint_names.index(joint.name)]
            found = sorted(x / factor for x in (joint.least_velocity, joint.velocity_limit))
            assert found == pytest.approx([least, most])


def test_placeholders_limit_no_speed_and_efforts_are_of_motors() -> None:
    """A follower's speed of zero is none; its effort adds to the leader's if it has a motor."""
    text = chain({"b": -2.0}, {"a": 'velocity="3"', "b": 'velocity="0"'}, "mimic")
    (row,) = rm.actuation(rm.load(text)).joints
    assert (row.limits.velocity, row.limits.effort) == (3.0, 20.0)
    text = text.replace('velocity="0"', 'velocity="30"')
    for name, effort in (("a", 3), ("b", 4)):
        text = text.replace(f'<child link="l{name}"/>',
                            f'<child link="l{name}"/><motor effort="{effort}"/>')  # fmt: skip
    (row,) = rm.actuation(rm.load(text)).joints
    assert row.limits.effort == 3.0 + 2.0 * 4.0
