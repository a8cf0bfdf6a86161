"""Packed results: distinct numbers once, and what makes the whole results of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from cases import few

import robomodel as rm


def states(model: rm.Model, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return q, *rng.standard_normal((2, count, model.nv))


def gathered(kernel: rm.Kernel, numbers: np.ndarray) -> list[np.ndarray]:
    """The results by the index map alone."""
    several = isinstance(kernel.index, tuple)
    parts = zip(
        kernel.index if several else [kernel.index],
        kernel.constants if several else [kernel.constants],
        strict=True,
    )
    return [np.where(index < 0, constants, numbers[..., index]) for index, constants in parts]


@pytest.mark.parametrize("name", few(rm.robots.names(), "belt_leg", "four_bar", "mini_cheetah"))
def test_packed_mass_matrices_and_jacobians_expand_to_the_whole(name: str) -> None:
    model = rm.robots.load(name)
    q, *_ = states(model, 21)
    for algorithm, options in (("crba", {}), ("jacobian", {"frame": model.bodies[-1].name})):
        whole = rm.compile(model, algorithm, **options)
        packed = rm.compile(model, algorithm, packed=True, **options)
        numbers, expected = packed(q), whole(q)
        distinct = max(1, len({x for x in whole.program.outputs if type(x) is int}))
        assert numbers.shape == (21, distinct)
        np.testing.assert_array_equal(packed.expand(numbers), expected)
        np.testing.assert_array_equal(gathered(packed, numbers)[0], expected)
        assert packed.index.shape == packed.constants.shape == expected.shape[1:]
        np.testing.assert_array_equal(packed.expand(packed(q[0])), expected[0])
    mass = rm.compile(model, "crba", packed=True)
    np.testing.assert_array_equal(mass.index, mass.index.T)  # a mirrored half is not kept twice


def test_several_results_are_packed_together() -> None:
    model = rm.robots.load("planar_leg_linkage")
    q, v, a = states(model, 9)
    packed = rm.compile(model, "rnea_derivatives", packed=True)
    numbers, expected = packed(q, v, a), rm.rnea_derivatives(model, q, v, a)
    assert packed.size < 3 * model.nv**2
    for found in (packed.expand(numbers), gathered(packed, numbers)):
        assert len(found) == 3
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x, y)
    out = np.empty((9, 3 * model.nv**2))
    for x, y in zip(packed.expand(numbers, out=out), expected, strict=True):
        np.testing.assert_array_equal(x, y)
        assert np.shares_memory(x, out)


def test_any_batch_out_threads_and_processes() -> None:
    model = rm.robots.load("mini_cheetah")
    q, *_ = states(model, 70)
    packed, expected = rm.compile(model, "crba", packed=True), rm.crba(model, q)
    numbers = packed(q)
    assert packed is rm.compile(model, "crba", packed=True)
    assert not rm.compile(model, "crba").packed
    np.testing.assert_array_equal(packed(q, threads=3), numbers)
    out = np.empty_like(numbers)
    assert packed(q, out=out) is out
    np.testing.assert_array_equal(out, numbers)
    cube = packed(q.reshape(7, 2, 5, -1))
    assert cube.shape == (7, 2, 5, packed.size)
    np.testing.assert_array_equal(packed.expand(cube).reshape(expected.shape), expected)
    whole = np.empty(expected.shape)
    assert packed.expand(numbers, out=whole) is whole
    np.testing.assert_array_equal(whole, expected)
    copy = pickle.loads(pickle.dumps(packed))
    assert copy.packed
    np.testing.assert_array_equal(copy.expand(copy(q)), expected)


def test_constant_results_and_wrong_numbers() -> None:
    model = rm.robots.load("mini_cheetah")
    packed = rm.compile(model, "armature", packed=True)  # of gears, that do not move
    q = np.stack([model.neutral()] * 3)
    numbers = packed(q)
    np.testing.assert_array_equal(numbers, np.zeros((3, 1)))
    np.testing.assert_array_equal(packed.expand(numbers), rm.compile(model, "armature")(q))
    assert (packed.index == -1).all()
    mass = rm.compile(model, "crba", packed=True)
    with pytest.raises(ValueError, match="core dimension"):
        mass.expand(np.zeros((3, mass.size + 1)))
    with pytest.raises(ValueError, match="out must have the shape"):
        mass.expand(np.zeros((3, mass.size)), out=np.zeros((3, mass.size)))
    with pytest.raises(TypeError, match="takes the arguments"):
        mass(q, q)
