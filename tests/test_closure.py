"""Conditions of clusters on batches: compiled ones, steps of least norm, triangular order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import robomodel as rm
from robomodel.mechanism import compiled as programs
from robomodel.mechanism.blocks import BlockTriangular, blocks
from robomodel.mechanism.closure import Geometry, LinearCoupling, least_norm
from robomodel.mechanism.constraints import (
    OUTSIDE,
    ROWS,
    BodyAnchor,
    Distance,
    Link,
    LoopCondition,
    LoopJoint,
    Perpendicular,
    Polynomial,
)
from robomodel.mechanism.joints import (
    Floating,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
)
from robomodel.spatial import about_axis
from robomodel.spatial.vectors import as_matrix


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
        held = LinearCoupling("held", ((0, 1.0), (geometry.nv - 1, -0.5), (1, 2.0)), 0.3)
        more = replace(geometry, linear=(*geometry.linear, held))
        coupled = programs.compiled(more)
        assert coupled.program is fast.program
        last = [more.rows - 2, more.rows - 1]
        for mine, other in ((coupled, more), (coupled.only(last), more.only(last))):
            for a, b in zip(mine.evaluate(q), other.evaluate(q), strict=True):
                np.testing.assert_allclose(a, b, atol=1e-14)
    if large > 1:
        assert len(shared) == 1  # geometries that differ in numbers share a program


def test_couplings_alone_are_evaluated_without_a_program() -> None:
    links = tuple(Link(Revolute(2), (), (0.0, 0.0, 0.0), OUTSIDE, n, n) for n in range(3))
    linear = tuple(LinearCoupling("", ((n, 1.0), (n + 1, -2.0)), 0.1 * n) for n in range(2))
    geometry = Geometry(links, (), linear)
    fast, q = programs.compiled(geometry), np.array([[0.5, 0.3, -1.0], [0.0, 1.0, 2.0]])
    units = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    moved, values, k = fast.step(q, np.array([0.0, 0.1, 0.0]), units)
    there = q + np.array([0.0, 0.1, 0.0])
    np.testing.assert_allclose(moved, there)
    np.testing.assert_allclose(values, there[:, :2] - 2.0 * there[:, 1:] - [0.0, 0.1])
    np.testing.assert_allclose(k, [[[1.0, -4.0, 0.0], [0.0, 5.0, -12.0]]] * 2)
    for a, b in zip(fast.evaluate(q[0]), geometry.evaluate(q[0]), strict=True):
        np.testing.assert_allclose(a, b)
    assert "_compiled" not in vars(fast.program)


def test_conditions_of_many_configurations_are_those_of_each() -> None:
    """All joints in chains of three, two loops of each type of rows, a polynomial, a coupling."""
    rng = np.random.default_rng(11)
    joints = (
        Revolute(1, 0.3), Floating(), Prismatic(0), Planar(2), Screw(1, 0.2), Spherical(),
        Revolute(2), Prismatic(1), Revolute(1, -0.4),
    )  # fmt: skip
    links, q, v = list[Link](), 0, 0
    for n, joint in enumerate(joints):
        turn = tuple(about_axis(k, x) for k, x in enumerate(rng.normal(size=3)) if n != 4)
        parent = n - 1 if n % 3 else OUTSIDE
        links.append(Link(joint, turn, tuple(rng.normal(size=3)), parent, q, v))
        q, v = q + joint.nq, v + joint.nv
    chains = [tuple(range(3 * (n // 3), n + 1)) for n in range(9)]
    types = (*ROWS.values(), (Distance(0.7),), (Distance(1.1), Perpendicular(0, 2)))
    loops = list[LoopCondition]()
    for n, rows in enumerate((*types, *types)):
        branches = chains[n % 9], chains[(n + 4) % 9] if n != 5 else ()
        ends = [
            BodyAnchor(
                branch[-1] if branch else OUTSIDE,
                tuple(rng.normal(size=3)),
                as_matrix(np.linalg.qr(rng.normal(size=(3, 3)))[0].tolist()),
            )
            for branch in branches
        ]
        loops.append(LoopJoint(f"loop{n}", rows, ends[0], ends[1], branches))
    loops.insert(4, Polynomial("power", 0, 6, (0.1, -0.5, 0.25)))
    couplings = (LinearCoupling("gear", ((0, 2.0), (6, -1.0), (8, 0.5)), 0.2),)
    geometry = Geometry(tuple(links), tuple(loops), couplings)
    start = np.tile(geometry.zero(), (6, 1))
    at = geometry.integrate(start, rng.uniform(-1.0, 1.0, (6, geometry.nv)))
    values, jacobian, bias = geometry.evaluate(at.reshape(2, 3, -1))
    assert jacobian.shape == (2, 3, geometry.rows, geometry.nv)
    assert not bias.any()
    values, jacobian = values.reshape(6, -1), jacobian.reshape(6, geometry.rows, -1)
    for n, position in enumerate(at):
        one, slopes, _ = geometry.conditions(position.tolist())
        np.testing.assert_allclose(values[n], one, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(jacobian[n], slopes, rtol=0.0, atol=1e-14)
    hinge = replace(geometry, loops=geometry.loops[1:2])
    cosines = np.array([hinge.alignments(position.tolist()) for position in at])
    np.testing.assert_array_equal(hinge.flipped(at), np.any(cosines < 0.0, axis=1))
    assert 0 < hinge.flipped(at).sum() < 6


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


@pytest.mark.parametrize("scale", [1.0, 1e-2, 1e-3, 1e-5])
def test_steps_of_least_norm_do_not_depend_on_how_small_a_linkage_is(scale: float) -> None:
    """Rows in metres before rows of angles that repeat them: Bricard's with links of 2 mm."""
    rng = np.random.default_rng(3)
    matrix, right = rng.standard_normal((40, 5, 5)), rng.standard_normal((40, 5))
    shares = rng.standard_normal((40, 2, 3))
    matrix[:, 3:] = shares @ matrix[:, :3]
    right[:, 3:] = (shares @ right[:, :3, None])[:, :, 0]
    wanted = [np.linalg.pinv(a, rcond=1e-9) @ b for a, b in zip(matrix, right, strict=True)]
    matrix[:, :3] *= scale
    right[:, :3] *= scale
    found = least_norm(matrix, right, np.full(40, 1e-10))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_steps_that_more_rows_determine_are_least_squares() -> None:
    """Columns that are independent, and some that are not."""
    rng = np.random.default_rng(2)
    matrix, right = rng.standard_normal((5, 9, 4)), rng.standard_normal((5, 9))
    matrix[1, :, 3] = matrix[1, :, 2]
    matrix[2] = 0.0
    rank = np.full(5, 1e-9)
    wanted = [np.linalg.pinv(a, rcond=1e-9) @ b for a, b in zip(matrix, right, strict=True)]
    for determined in (False, True):
        found = least_norm(matrix, right, rank, determined=determined)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


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


def test_blocks_solve_what_they_are_of() -> None:
    """Matrices in block triangular order, of which some columns count; signs of determinants."""
    rng = np.random.default_rng(3)
    pattern = np.kron(np.array([[1, 0, 0], [0, 1, 0], [1, 1, 1]]), np.ones((3, 3))) > 0.0
    rows, columns = rng.permutation(9), rng.permutation(9)
    places = columns + 1  # of eleven columns
    whole = np.ones((9, 11), dtype=bool)
    whole[:, places] = pattern[rows]
    k, right = rng.standard_normal((20, 9, 11)) * whole, rng.standard_normal((20, 9, 2))
    order = BlockTriangular(whole, blocks(whole, places.tolist()))
    assert sorted(len(block.rows) for block in order.blocks) == [3, 3, 3]
    x = order.solved(k, right)
    np.testing.assert_allclose(k @ x, right, atol=1e-9)
    assert not x[:, [0, 10]].any()
    signs = order.signs(k) * np.linalg.slogdet(k[:, :, places])[0]
    assert set(signs * signs[0]) == {1.0}
    np.testing.assert_allclose(x[:, places], np.linalg.solve(k[:, :, places], right), rtol=1e-9)
