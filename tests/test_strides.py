"""Strides as compiled programs, and the programs' loop, beside the same on arrays."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from mechanisms import MechanismError, random_mechanism

import robomodel as rm
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.plan import Iteration
from robomodel.mechanism.continuation import Continuation, Ends, Points
from robomodel.mechanism.strides import _turned, determinant
from robomodel.model.model import Model
from robomodel.reach.ranges import whole_part
from robomodel.reach.reachable import reachable
from robomodel.scalars import Scalar, Vector, orthonormal, select, sincos

ROBOTS = ("five_bar", "parallel_ankle", "six_bar", "planar_leg_linkage", "crank_rocker")
LINKAGES = (
    "rod_four_bar", "six_bar", "planar_chain", "rssr", "rod", "ankle", "two_outputs",
    "loop_on_loop", "slider_crank", "spatial_loop",
)  # fmt: skip


# ---- the loop that programs share ----------------------------------------------------------------


def _build(q: Vector, w: Vector) -> list[Scalar]:
    s, c = sincos(q[0])
    turned, _ = sincos(q[1] + w[2])
    return [s * w[0], select(w[1], c, turned), 3.0 + 0.0 * q[0], s * w[0], q[1] / w[0], w[2]]


def _brief(arguments: dict[str, int], size: int, build: object, **more: object) -> TracedFunction:
    f = TracedFunction("f", arguments, {"y": (size,)}, build, brief=True, **more)  # type: ignore[arg-type]
    if not f.is_brief:
        pytest.skip("needs AVX-512")
    return f


def test_a_brief_kernel_is_as_on_arrays_for_any_number_of_states_and_any_strides() -> None:
    f, rng = _brief({"q": 2, "w": 3}, 6, _build), np.random.default_rng(0)
    q, w = rng.normal(size=(40, 2)) * 3.0, rng.normal(size=(40, 3))
    for count in (0, 1, 7, 8, 9, 16, 40):
        found = f(q[:count], w[:count])
        assert found.shape == (count, 6)
        np.testing.assert_allclose(found, f.on_arrays(q[:count], w[:count]), rtol=1e-14, atol=1e-15)
    whole = np.asfortranarray(q)[::-2], np.repeat(w, 2, axis=1)[::2, ::2]
    np.testing.assert_allclose(f(*whole), f.on_arrays(*whole), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(f(q, w[0]), f.on_arrays(q, w[0]), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(f(q[0], w[0]), f.on_arrays(q[0], w[0]), rtol=1e-14, atol=1e-15)


def test_a_brief_kernel_takes_huge_angles_and_odd_numbers() -> None:
    f = _brief({"q": 2, "w": 3}, 6, _build)
    q = np.array([[1e9, 1e12], [math.inf, 0.0], [math.nan, 1.0], [0.3, -1e7]])
    w = np.array([[0.0, -1.0, 1.0], [1.0, -1.0, 0.0], [1.0, math.nan, 0.0], [1.0, 0.0, 1e8]])
    np.testing.assert_allclose(f(q, w), f.on_arrays(q, w), rtol=1e-9, atol=1e-9)


def test_stages_of_a_brief_kernel_carry_numbers() -> None:
    """Heron's square roots, with the number of steps, and a table of what is added last."""

    def build(x: Vector, a: Vector, carried: Vector, row: Vector) -> list[Scalar]:
        return [0.5 * (x[0] + a[0] / x[0]) + row[0], carried[0], carried[0] + 1.0]

    f = _brief({"x": 1, "a": 1}, 2, build, iteration=Iteration((), ((0.0,),) * 6 + ((10.0,),), 1))
    a = np.linspace(0.5, 9.0, 21)[:, None]
    found = f(np.ones_like(a), a)
    np.testing.assert_allclose(found[:, 0], 10.0 + np.sqrt(a[:, 0]), rtol=1e-15)
    np.testing.assert_array_equal(found[:, 1], 6.0)
    np.testing.assert_allclose(found, f.on_arrays(np.ones_like(a), a), rtol=1e-15)


# ---- linear algebra ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_determinants_and_bases(n: int) -> None:
    matrices = np.random.default_rng(n).normal(size=(50, n, n))
    for matrix in matrices:
        found = float(determinant(matrix.tolist()))  # type: ignore[arg-type]
        np.testing.assert_allclose(found, np.linalg.det(matrix), rtol=1e-10)
        basis = np.array(orthonormal(matrix.tolist()), dtype=float)
        np.testing.assert_allclose(basis @ basis.T, np.eye(n), atol=1e-9)
        np.testing.assert_allclose(np.triu(matrix @ basis.T, 1), 0.0, atol=1e-9)


@pytest.mark.parametrize("freedoms", [1, 2, 3, 4])
def test_bases_turn_by_the_shortest_way(freedoms: int) -> None:
    """N and V turned together are orthonormal, and NᵀN' is symmetric: no turn about themselves."""
    rng, n = np.random.default_rng(freedoms), freedoms + 3
    for _ in range(30):
        basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
        motions, rest = basis[:, :freedoms], basis[:, freedoms:]
        x = rng.normal(size=(3, freedoms))
        x *= rng.uniform(0.0, 0.61) / np.linalg.norm(x, 2)  # up to the angle that is refused
        _, v, found = (np.array(part, dtype=float) for part in _turned(
            rest.tolist(), motions.tolist(), x.tolist()))  # fmt: skip
        whole = np.hstack([found, v])
        np.testing.assert_allclose(whole.T @ whole, np.eye(n), atol=3e-15 * n)
        both = motions.T @ found
        np.testing.assert_allclose(both, both.T, atol=1e-14)
        spanned = motions + rest @ x
        np.testing.assert_allclose(found @ (found.T @ spanned), spanned, atol=1e-14)


# ---- strides -------------------------------------------------------------------------------------


def _by_both(along: Continuation, p: Points, d: np.ndarray) -> list[tuple[Points, np.ndarray]]:
    """A stride on arrays, and compiled."""
    if along._compiled is None:
        pytest.skip("needs AVX-512, or its programs would be large")
    on_arrays = replace(along, crossed=[])
    on_arrays.__dict__["_compiled"] = None
    return [on_arrays.stride(p, d), along.stride(p, d)]


def _compared(model: Model, seed: int) -> int:
    """Strides of all lengths from points of the pool, compiled and on arrays; how many are fine."""
    rng, fine = np.random.default_rng(seed), 0
    for linkage in reachable(model).linkages:
        for group in linkage.groups:
            if not (group.freedoms and group.along.rank):
                continue
            p = group.pool[rng.integers(len(group.pool.q), size=60)]
            d = rng.standard_normal((60, group.freedoms)) * 10.0 ** rng.uniform(-3, 0.5, (60, 1))
            (there, ends), (beside, also) = _by_both(group.along, p, d)
            np.testing.assert_array_equal(ends, also)
            done = ends == Ends.FINE
            fine += int(done.sum())
            far = np.maximum(1.0, np.abs(there.q[done]).max(axis=1, initial=0.0))[:, None]
            assert np.all(np.abs(there.q - beside.q)[done] <= 1e-12 * far)
            np.testing.assert_allclose(there.n[done], beside.n[done], atol=1e-10)
            both = np.swapaxes(there.v, 1, 2) @ beside.v
            np.testing.assert_allclose(
                both[done] @ np.swapaxes(both[done], 1, 2),
                np.broadcast_to(np.eye(both.shape[1]), both[done].shape), atol=1e-9,
            )  # fmt: skip
    return fine


@pytest.mark.parametrize("name", ROBOTS)
def test_compiled_strides_are_those_on_arrays(name: str) -> None:
    assert _compared(rm.robots.load(name), 0) > 20


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::robomodel.errors.DescriptionWarning")
@pytest.mark.parametrize("kind", LINKAGES)
def test_compiled_strides_of_random_linkages(kind: str) -> None:
    fine = 0
    for seed in range(4):
        try:
            found = random_mechanism(np.random.default_rng(seed), [kind], n_joints=0)
        except MechanismError:
            continue
        fine += _compared(rm.load(found.text), seed)
    assert fine > 20


def test_no_points_have_no_strides() -> None:
    (linkage,) = reachable(rm.robots.load("five_bar")).linkages
    group = linkage.groups[0]
    none = group.origin[np.zeros(0, dtype=np.intp)]
    for there, ends in _by_both(group.along, none, np.zeros((0, group.freedoms))):
        assert there.q.shape == (0, none.q.shape[1])
        assert ends.shape == (0,)


def test_held_columns_rest_in_compiled_strides() -> None:
    """Strides of a part while one column or another is held, in one batch."""
    model = rm.robots.load("five_bar")
    part = whole_part(model, model.clusters[0], 0)
    first, second = part.columns[:2]
    helds = [(first,), (second,)] * 3
    p = part.points(np.tile(model.clusters[0].start, (6, 1)), helds)
    d = np.linspace(-0.3, 0.3, 6)[:, None]
    (there, ends), (beside, also) = _by_both(part.strides((first,), (second,)), p, d)
    np.testing.assert_array_equal(ends, also)
    np.testing.assert_allclose(there.q, beside.q, atol=1e-14)
    for n, (column,) in enumerate(helds):
        assert part.position(beside.q[n], column) == part.position(p.q[n], column)
    assert np.all(np.abs(beside.q - p.q).max(axis=1) > 0.03)


def test_strides_that_turn_far_or_do_not_close_begin_at_any_points() -> None:
    """Points that were just made share one C, to which nothing may be written."""
    (linkage,) = reachable(rm.robots.load("five_bar")).linkages
    along = linkage.groups[0].along
    p = along.at(np.tile(linkage.groups[0].start, (40, 1)))
    rng = np.random.default_rng(1)
    d = rng.standard_normal((40, 2)) * np.linspace(0.01, 4.0, 40)[:, None]
    (there, ends), (beside, also) = _by_both(along, p, d)
    np.testing.assert_array_equal(ends, also)
    assert {Ends.FINE, Ends.OPEN, Ends.TURNED} <= {*ends.tolist()}
    refused = ends == Ends.TURNED
    np.testing.assert_allclose(there.n[refused], beside.n[refused], atol=1e-10)
