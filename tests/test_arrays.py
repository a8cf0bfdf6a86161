"""Quantiles of numbers, bit for bit those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from robomodel.arrays import median, quantile

NUMBERS = np.random.default_rng(0).normal(size=(9, 3, 2))


@pytest.mark.parametrize("count", range(1, 10))
def test_quantiles_are_those_of_numpy(count: int) -> None:
    numbers = NUMBERS[:count]
    assert median(numbers) == np.median(numbers)
    for share in (0.0, 0.1, 0.25, 0.5, 0.75, 1.0):
        np.testing.assert_array_equal(quantile(numbers, share), np.quantile(numbers, share, axis=0))


def test_the_median_of_nothing_and_of_nan_is_nan() -> None:
    assert np.isnan(median([]))
    assert np.isnan(median([1.0, np.nan, 2.0]))
