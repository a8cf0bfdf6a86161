"""Right angles written as 1.57 and 3.141 in planar linkages."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from texts import joint, link, loop, robot

import robomodel as rm


def turned(right: str, straight: str) -> str:
    """A planar four-bar in the plane of x and z, some of its frames turned by these angles."""
    return robot(
        link("crank"), link("coupler"), link("rocker"),
        joint("crank", "base", "crank", rpy=f"{right} 0 0"),
        joint("coupler", "crank", "coupler", ".12 0 0", rpy=f"{straight} 0 0"),
        joint("rocker", "base", "rocker", ".33 0 .1", rpy=f"-{right} 0 0"),
        loop("pin", "revolute", "coupler", "rocker", "0.31 -0.05 0", "0.1 0.05 0"),
    )  # fmt: skip


@pytest.mark.slow
def test_they_are_named_and_taken_as_exact() -> None:
    with pytest.warns(rm.DescriptionWarning) as caught:
        model = rm.load(turned("1.57", "3.141"))
    (text,) = (str(each.message) for each in caught)
    assert "loop 'pin'" in text
    assert "1.57 and 3.141 stand for π/2 and π; write 1.5707963 and 3.1415927" in text
    exact = rm.load(turned(repr(math.pi / 2.0), repr(math.pi)))
    q = model.neutral()
    np.testing.assert_allclose(exact.close(q), q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        model.constraint_jacobian(q), exact.constraint_jacobian(q), rtol=0, atol=1e-12
    )


@pytest.mark.slow
def test_they_repeat_conditions_as_exact_ones_do() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        model = rm.load(turned("1.57", "3.141"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        (note,) = (f for f in rm.validate(model).findings if f.check == "redundancy")
    assert "planar" in note.message


@pytest.mark.slow
def test_other_angles_and_numbers_that_are_kept() -> None:
    with pytest.raises(rm.DescriptionError, match=r"1\.57 stands for π/2; write 1\.5707963\."):
        rm.load(turned("1.57", repr(math.pi)), strict=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rm.load(turned("1.57", repr(math.pi)), mend=False)
    assert all("stands for" not in str(each.message) for each in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rm.load(robot(link("a"), joint("j", "base", "a", rpy="1.57 0 0")))  # no loop: its own
