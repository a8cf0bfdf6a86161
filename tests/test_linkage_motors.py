"""Motors that couplings name: a linkage is where it is without them."""

from __future__ import annotations

import numpy as np
import pytest
import texts
from texts import INERTIAL, coupling, link, loop, robot

import robomodel as rm

RATIO = -50.0


def foot(motor: str = "", independent: str = "", far: float = 0.0) -> str:
    """A foot that a crank moves by a rod, drawn open; ``motor``: of the foot or the crank.

    Limits leave out where it is drawn but for one end.
    """
    limit = '<limit lower="-2.4" upper="-0.6" effort="9" velocity="9"/><initial position="-0.6"/>'
    parts = [
        link("crank"), link("rod"), link("foot"),
        texts.joint("crank", "base", "crank", kind="revolute", axis="0 1 0", more=limit,
                    mark=None if not independent else independent == "crank"),
        texts.joint("rod", "crank", "rod", "0 0 0.3", axis="0 1 0",
                    mark=False if independent else None),
        texts.joint("foot", "base", "foot", "0.5 0 0", kind="revolute", axis="0 1 0", more=limit,
                    mark=None if not independent else independent == "foot"),
        loop("eye", "revolute", "rod", "foot", "0.5 0 0", f"{far} 0 0.32",
             more='<axis xyz="0 1 0"/>'),
    ]  # fmt: skip
    if motor:
        parts += [
            link("rotor", INERTIAL.replace("0.1 0.02 0", "0 0 0")),
            texts.joint("rotor", "base", "rotor", axis="0 1 0",
                        mark=None if not independent else independent == "rotor"),
            coupling("gear", {"rotor": 1.0, motor: -RATIO}, 0.3),
        ]  # fmt: skip
    return robot(*parts)


@pytest.mark.parametrize("far", [0.0, 0.02, -0.03])
@pytest.mark.parametrize("motor", ["foot", "crank"])
def test_a_motor_does_not_move_its_linkage(motor: str, far: float) -> None:
    """Whichever joints are independent, or nothing says which: within limits, and closed."""
    alone = rm.load(foot(far=far))
    known = alone.joint_positions(alone.neutral())
    assert all(-2.4 <= known[name] <= -0.6 for name in ("crank", "foot"))
    assert np.max(np.abs(alone.residual(alone.neutral()))) < 1e-9
    for independent in ("", "crank", "foot", "rotor"):
        model = rm.load(foot(motor, independent, far))
        found = model.joint_positions(model.neutral())
        for name, x in known.items():
            assert found[name] == pytest.approx(x, abs=1e-9), (independent, name)
        assert found["rotor"] == pytest.approx(0.3 + RATIO * float(found[motor]))


@pytest.mark.parametrize("independent", ["", "crank", "foot", "rotor"])
def test_a_motor_says_where_its_linkage_starts(independent: str) -> None:
    """If the file has a position of it alone: as one of the joint that it turns would."""
    begin = '<initial position="-0.6"/>'
    at = RATIO * -0.9 + 0.3
    text = foot("crank", independent).replace(begin, "")
    turned, moved = (
        text.replace(f'<child link="{name}"/>', f'<child link="{name}"/><initial position="{x}"/>')
        for name, x in (("rotor", at), ("crank", -0.9))
    )
    one, other = (each.joint_positions(each.neutral()) for each in map(rm.load, (turned, moved)))
    for name, x in other.items():
        assert one[name] == pytest.approx(x, abs=1e-9), name
