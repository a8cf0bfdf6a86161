"""The benchmarks of IFToMM's library: energies, gaps, and ways of their reference points."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import robomodel as rm

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import multibody


@pytest.mark.parametrize("n", [1, 2, 5])
def test_many_four_bars(n: int) -> None:
    """Ten seconds, many times flat: each loop stays a parallelogram."""
    problem = multibody.problems([n])[1]
    result = multibody.solved(problem)
    assert result.motion.times[-1] == 10.0
    assert result.energy <= 1e-9
    assert result.gap <= 1e-13
    assert result.error <= 1e-6
    assert np.ptp(result.motion.q[:, 0]) > 30.0  # it turns and turns


@pytest.mark.slow
def test_forty_four_bars() -> None:
    result = multibody.solved(multibody.problems([40])[1])
    assert result.motion.times[-1] == 20.0
    assert result.energy <= 1e-8
    assert result.gap <= 1e-12
    assert result.error <= 1e-4


def test_the_pendulum() -> None:
    result = multibody.solved(multibody.problems([])[0])
    assert result.energy <= 1e-10
    assert result.error <= 1e-10


def test_the_mechanism_of_bricard() -> None:
    """One freedom where counting gives none; the same motion in other joints."""
    problem = multibody.problems([])[-1]
    result = multibody.solved(problem)
    model = result.motion.model
    assert model.nv == 1
    assert result.energy <= 1e-10
    assert result.gap <= 1e-13
    assert np.ptp(result.motion.q[:, 0]) > 3.0
    other = rm.load(problem.text, gravity=model.gravity, independent=["hinge2"])
    same = multibody.motion_of(problem, other, 1e-12, 1e-13)
    assert len(same.charts) > 1
    np.testing.assert_allclose(same.q, result.motion.q, rtol=0, atol=1e-9)
