"""Conditions of clusters on batches: compiled ones, steps of least norm, triangular order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import robomodel as rm
from robomodel.mechanism import compiled as programs
from robomodel.mechanism.closure import Geometry, least_norm
from robomodel.mechanism.joints import Revolute
from robomodel.mobility.analysis import blocks


def geometry_of(name: str, offset: float) -> Geometry:
    """The conditions of a robot's first cluster with loops, its hinges turned by an offset."""
    geometry = next(c.geometry for c in rm.robots.load(name).clusters if c.implicit)
    links = [
        replace(x, joint=replace(x.joint, offset=offset * (n + 1)))
        if isinstance(x.joint, Revolute)
        else x
        for n, x in enumerate(geometry.links)
    ]
    return replace(geometry, links=tuple(links))


@pytest.mark.parametrize("large", [1, 10**9])
@pytest.mark.parametrize("name", ["parallel_ankle", "tello"])
def test_compiled_conditions_are_those_of_the_geometry(
    name: str, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "LARGE", large)
    rng = np.random.default_rng(3)
    shared = set()
    for offset in (0.0, 0.3):
        geometry = geometry_of(name, offset)
        fast = programs.compiled(geometry)
        assert isinstance(fast, programs.CompiledGeometry)
        shared.add(id(fast.program))
        q = geometry.integrate(
            np.tile(geometry.zero(), (5, 1)), rng.uniform(-1.0, 1.0, (5, geometry.nv))
        )
        rows = range(1, geometry.rows, 2)
        odd = rows[1::2]
        for mine, other in (
            (fast, geometry),
            (fast.oriented(), geometry.oriented()),
            (fast.only(rows), geometry.only(rows)),
            (fast.only(rows).only(range(1, len(rows), 2)), geometry.only(odd)),
        ):
            for a, b in zip(mine.evaluate(q), other.evaluate(q), strict=True):
                np.testing.assert_allclose(a, b, atol=1e-14)
    if large > 1:
        assert len(shared) == 1  # geometries that differ in numbers share a program


def test_steps_of_least_norm_meet_rows_that_count() -> None:
    """Independent rows, repeated ones, none, and rows that are only rounding."""
    rng = np.random.default_rng(1)
    matrix, right = rng.standard_normal((6, 4, 7)), rng.standard_normal((6, 4))
    matrix[1, 3] = matrix[1, 2]
    matrix[2] = 0.0
    matrix[3, 1] = matrix[3, 0] * (1.0 + 1e-11)
    rank = np.full(6, 1e-9)
    wanted = [np.linalg.pinv(a, rcond=1e-9) @ b for a, b in zip(matrix, right, strict=True)]
    np.testing.assert_allclose(least_norm(matrix, right, rank), wanted, rtol=1e-9, atol=1e-11)
    noise = 1e-13 * rng.standard_normal((6, 5, 7))
    more = np.concatenate([noise, matrix], axis=1)
    values = np.concatenate([np.zeros((6, 5)), right], axis=1)
    np.testing.assert_allclose(least_norm(more, values, rank), wanted, rtol=1e-9, atol=1e-11)


def test_blocks_are_triangular_and_no_smaller_ones_would_do() -> None:
    rng = np.random.default_rng(0)
    square = 0
    for _ in range(200):
        n = int(rng.integers(3, 9))
        pattern = rng.random((n, n)) < rng.uniform(0.1, 0.5)
        pattern |= np.eye(n, dtype=bool)[rng.permutation(n)]
        got = blocks(pattern, list(range(n)))
        assert sorted(i for block in got for i in block.rows) == list(range(n))
        known = set[int]()
        for block in got:
            known |= set(block.columns)
            assert np.linalg.matrix_rank(_random(pattern, block.rows, block.columns, rng)) == len(
                block.rows
            )
            for i in block.rows:
                assert set(np.flatnonzero(pattern[i])) <= known
            # each unknown of a block depends on each of its right sides
            inverse = np.linalg.inv(_random(pattern, block.rows, block.columns, rng))
            assert np.all(np.abs(inverse) > 1e-12)
        square += len(got) > 1
    assert square > 50
    singular = np.zeros((3, 3), dtype=bool)
    singular[:, 0] = True
    assert len(blocks(singular, [0, 1, 2])) == 1


def _random(
    pattern: np.ndarray, rows: tuple[int, ...], columns: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray:
    """A matrix with these entries, of random size."""
    part = pattern[np.ix_(rows, columns)]
    return np.where(part, rng.uniform(0.5, 2.0, part.shape), 0.0)
