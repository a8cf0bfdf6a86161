"""Examples of design by gradients: known answers, and the same by a search without derivatives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from agreement import close

import robomodel as rm

EXAMPLES = Path(__file__).parent.parent / "examples" / "design"


@pytest.mark.slow
def test_a_function_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import function_generator as example

    start = np.array([0.7, 1.1, 0.6])
    problem = example.generator(example.LENGTHS, example.precision_points())
    exact = example.freudenstein(problem.phi, problem.psi)
    close(example.by_gradients(problem, start), exact, 1e-7)
    whole = [example.generator(example.LENGTHS, np.linspace(1.0, 2.0, 41)) for _ in range(2)]
    found = example.by_gradients(whole[0], start)
    close(example.without_gradients(whole[1], start), found, 1e-5)
    assert whole[0].evaluations < whole[1].evaluations / 20
    assert np.sqrt(np.mean(whole[0].error(found) ** 2)) < 0.43


@pytest.mark.slow
def test_a_knees_slopes_lead_through_its_linkage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import knee as example

    one = example.problem()
    x, size = one.start, 1e-5 * example.SIZES
    values = one.results(x, True)
    for i in range(len(x)):
        step = size[i] * np.eye(len(x))[i]
        ahead, back = (one.results(x + s * step, False) for s in (1.0, -1.0))
        for a, b, slope in zip(ahead, back, values[3:], strict=True):
            close(slope[:, i], (a - b) / (2.0 * size[i]), 1e-8, least=1.0)


@pytest.mark.slow
def test_an_ankle_for_a_polygon_of_torques(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import ankle as example

    one = example.problem()
    x, h = example.START + 0.002, 1e-6
    slopes = one.results(x, True)[2:]
    for i, step in enumerate(h * np.eye(len(x))):
        ahead, back = (one.results(x + s * step, False)[:2] for s in (1.0, -1.0))
        for a, b, slope in zip(ahead, back, slopes, strict=True):
            close(slope[:, i], (a - b) / (2.0 * h), 1e-8, least=1.0)
    one.evaluations = 0
    found = example.by_gradients(one)
    assert one.evaluations < 60  # differential evolution needs 7549
    least = example.penalised(one, found)
    assert least < 0.931
    assert example.penalised(one, example.START) > 1.2
    for step in 1e-4 * np.vstack([np.eye(len(x)), -np.eye(len(x))]):  # the limits hold it
        inside = np.clip(found + step, *example.BOUNDS.T)
        assert example.penalised(one, inside) > least - 1e-9
    torques = example.TORQUES[:2]  # by the model of the new file, near a corner of the range
    names = example.NAMES
    listed = np.array([rm.parameters(one.model, geometry=True)[name] for name in names])
    values = listed + example.SLOPES @ (found - example.START)
    model = rm.with_parameters(one.model, dict(zip(names, values, strict=True)))
    q = model.configuration({"pitch": -0.6, "roll": 0.25})
    lower, upper = rm.torque_limits(model, q)
    assert upper[0] > torques[0, 0]
    assert lower[1] < -torques[1, 1]
    u = rm.actuator_forces(model, q, torques)
    assert np.max(np.abs(u)) <= (least + 1e-6) * example.MOTOR


@pytest.mark.slow
def test_a_knee_for_a_squat_and_a_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import knee as example

    one = example.problem()
    for kind, least in (("peak", 0.812), ("rms", 0.2585)):
        one.evaluations = 0
        found = example.by_gradients(one, kind)
        assert one.evaluations < 120
        assert example.penalised(one, kind, found) < least
        assert example.penalised(one, kind, one.start) > 3.0 * least
