"""Examples of design by gradients: known answers, and the same by a search without derivatives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from agreement import close

EXAMPLES = Path(__file__).parent.parent / "examples" / "design"


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
