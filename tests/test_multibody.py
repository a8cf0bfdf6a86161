"""The benchmarks of IFToMM's library: energies, gaps, and ways of their reference points."""

from __future__ import annotations

import numpy as np
import pytest
from cases import few
from scipy.spatial.transform import Rotation

import robomodel as rm
from benchmarks import multibody


@pytest.mark.slow
@pytest.mark.parametrize("n", few([1, 2, 5], 2))
def test_many_four_bars(n: int) -> None:
    """Ten seconds, many times flat: each loop stays a parallelogram."""
    problem = multibody.problems([n])[1]
    result = multibody.solved(problem)
    assert result.motion.times[-1] == 10.0
    assert result.energy <= 1e-9
    assert result.gap <= 1e-13
    assert result.error <= 1e-6
    assert np.ptp(result.motion.q[:, 0]) > 30.0  # it turns and turns


@pytest.mark.tables
def test_forty_four_bars() -> None:
    result = multibody.solved(multibody.problems([40])[1])
    assert result.motion.times[-1] == 20.0
    assert result.energy <= 1e-8
    assert result.gap <= 1e-12
    assert result.error <= 1e-4


@pytest.mark.slow
def test_two_four_bars_as_others_have_them() -> None:
    """B0 after 10 s, against Exudyn's published results, extrapolated to steps of no length.

    At steps of 0.25 and 0.125 ms, second order: (0.3284552113, 0.9445195467) and (0.3284573768,
    0.9445187937) m; (1.423045728, -0.4948619021) and (1.423050003, -0.4948670827) m/s.
    """
    motion = multibody.solved(multibody.problems([2])[1]).motion
    angle, rate = motion.q[-1, 0], motion.v[-1, 0]
    at = np.array([np.cos(angle), np.sin(angle), -rate * np.sin(angle), rate * np.cos(angle)])
    coarse = np.array([0.3284552113, 0.9445195467, 1.423045728, -0.4948619021])
    fine = np.array([0.3284573768, 0.9445187937, 1.423050003, -0.4948670827])
    np.testing.assert_allclose(at, fine + (fine - coarse) / 3.0, rtol=0, atol=1e-7)


@pytest.mark.slow
def test_bricard_as_others_have_it() -> None:
    """Five rods after 1 s, against the one number that Exudyn publishes of them, at 1 ms.

    The norm of all displacements and changes of quaternions, two counts (1 and 1) added.
    """
    problem = multibody.problems([])[-1]
    model = rm.load(problem.text, gravity=(0.0, -9.81, 0.0))
    motion = rm.simulate(model, model.neutral(), duration=1.0, step=0.5, rtol=1e-11)
    z, x, y = (0, 0, 1), (1, 0, 0), (0, 1, 0)
    starts = [(x, 0), (z, -90), (y, -90), (z, 180), (z, 90)]  # their axes lie along the rods
    total = 0.0
    for n, (axis, angle) in enumerate(starts, 1):
        first, last = rm.frame_pose(model, motion.q[[0, -1]], f"rod{n}")
        begin = Rotation.from_rotvec(np.radians(angle) * np.array(axis))
        turned = Rotation.from_matrix(last[:3, :3]) * begin
        a, b = begin.as_quat(), turned.as_quat()
        total += np.sum((last[:3, 3] - first[:3, 3]) ** 2) + np.sum((np.sign(a @ b) * b - a) ** 2)
    assert np.sqrt(total) + 2.0 == pytest.approx(4.172189649307425, abs=3e-6)


def test_the_pendulum() -> None:
    result = multibody.solved(multibody.problems([])[0])
    assert result.energy <= 1e-10
    assert result.error <= 1e-10


@pytest.mark.slow
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
    np.testing.assert_allclose(same.q, result.motion.q, rtol=0, atol=1e-9)
