"""Kernels on an NVIDIA GPU, where there is one: numbers beside the processor's kernels, and calls
with arrays of PyTorch, CuPy and JAX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from cuda_driver import arguments_of
from rollouts import q_and_v
from shipped_robots import DISTINCT

import robomodel as rm
from robomodel.cuda.launch import NoCardError, driver
from robomodel.kernels.function import CudaKernel


def _has_card() -> bool:
    try:
        driver()
    except NoCardError:
        return False
    return True


pytestmark = pytest.mark.skipif(not _has_card(), reason="there is no NVIDIA GPU")
torch = pytest.importorskip("torch")

COUNT = 1000  # states: blocks of 32, the last not full
each_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])


def on_card(arrays: Iterable[np.ndarray]) -> list[Any]:
    return [torch.from_numpy(np.ascontiguousarray(x)).cuda() for x in arrays]


def flat(results: Any, count: int) -> np.ndarray:
    listed = results if isinstance(results, tuple) else (results,)
    parts = [x if isinstance(x, np.ndarray) else x.cpu().numpy() for x in listed]
    return np.concatenate([x.reshape(count, -1) for x in parts], axis=1)


def agrees(kernel: CudaKernel, count: int = COUNT) -> None:
    """To the last bit, but where the processor takes the smallest numbers for zero."""
    given = arguments_of(kernel, count)
    expected = flat(kernel.function.kernel(kernel.dtype)(*given), count)
    found = flat(kernel(*on_card(given)), count)
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=1e-35 if kernel.dtype == "float32" else 0
    )


# ---- numbers -------------------------------------------------------------------------------------


@each_dtype
@pytest.mark.parametrize("algorithm", ["rnea", "aba", "crba"])
@pytest.mark.parametrize("robot", DISTINCT)
def test_numbers_are_those_of_the_processors_kernels(
    robot: str, algorithm: str, dtype: str
) -> None:
    agrees(CudaKernel(rm.compile(rm.robots.load(robot), algorithm).function, dtype))


@each_dtype
@pytest.mark.parametrize("algorithm", ["rnea_derivatives", "aba_derivatives"])
@pytest.mark.parametrize("robot", ["four_bar", "parallel_ankle", "mini_cheetah", "mit_humanoid"])
def test_derivatives_in_slices(robot: str, algorithm: str, dtype: str) -> None:
    agrees(CudaKernel(rm.compile(rm.robots.load(robot), algorithm).function, dtype))


@pytest.mark.parametrize("algorithm", ["energy", "frame_pose"])
def test_other_functions(algorithm: str) -> None:
    options = {"frame": "link6"} if algorithm == "frame_pose" else {}
    model = rm.robots.load("puma560" if options else "tello")
    agrees(CudaKernel(rm.compile(model, algorithm, **options).function))


@each_dtype
@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
@pytest.mark.parametrize("robot", ["puma560", "mini_cheetah", "four_bar", "tello"])
def test_rollouts_are_those_of_the_processor(robot: str, method: str, dtype: str) -> None:
    model = rm.robots.load(robot)
    kernel = rm.cuda.rollout_kernel(model, method, dtype=dtype)
    rng = np.random.default_rng(4)
    count, times = 100, 50
    q = np.array([model.random_configuration(rng, near=model.neutral()) for _ in range(count)])
    v, tau = rng.normal(size=(count, model.nv)), rng.normal(size=(count, times, model.nv))
    given = [x.astype(dtype) for x in (q, 0.1 * v, 0.1 * tau)]
    expected = q_and_v(rm.rollout(model, *given, 1e-3, method=method, dtype=dtype, friction=False))
    found = [x.cpu().numpy() for x in kernel(*on_card(given), 1e-3)]
    # linkages begin in another basis of their motions there, and rollouts on the processor make
    # quaternions of single precision unit ones
    if robot in ("four_bar", "tello"):
        near = {"float64": 1e-12, "float32": 2e-4}[dtype]
    else:
        near = {"float64": 0.0, "float32": 1e-6 if robot == "mini_cheetah" else 1e-35}[dtype]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=near, atol=near)


# ---- calls ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kernel() -> CudaKernel:
    found = rm.compile(rm.robots.load("planar_leg_linkage"), "aba", target="cuda")
    assert isinstance(found, CudaKernel)
    return found


def expected_of(kernel: CudaKernel, given: Sequence[np.ndarray]) -> np.ndarray:
    result: np.ndarray = kernel.function.kernel()(*given)
    return result


def test_batches_broadcast_without_copies(kernel: CudaKernel) -> None:
    q, v, tau = arguments_of(kernel, 6)
    a, b, c = on_card((q, v, tau))
    given = (q[:, None].repeat(4, axis=1), v[0], tau[:4])
    expected = expected_of(kernel, given)
    found = kernel(a[:, None].repeat(1, 4, 1), b[0], c[:4].repeat(6, 1, 1))
    np.testing.assert_array_equal(found.cpu(), expected)
    with pytest.raises(ValueError, match="rows of q do not stand evenly in memory"):
        kernel(a[:, None], b[0], c[:4])
    every_second = on_card([np.repeat(q, 2, axis=0)])[0][::2]
    assert not every_second.is_contiguous()
    found = kernel(every_second, *on_card((v, tau)))
    np.testing.assert_array_equal(found.cpu(), expected_of(kernel, (q, v, tau)))


def test_out_and_streams(kernel: CudaKernel) -> None:
    given = arguments_of(kernel, COUNT)
    expected = expected_of(kernel, given)
    arrays = on_card(given)
    out = torch.full(expected.shape, 7.0, dtype=torch.float64, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    assert kernel(*arrays, out=out, stream=stream) is out
    stream.synchronize()
    np.testing.assert_array_equal(out.cpu(), expected)
    with torch.cuda.stream(stream):
        found = kernel(*arrays)
    stream.synchronize()
    np.testing.assert_array_equal(found.cpu(), expected)


def test_graphs_of_launches(kernel: CudaKernel) -> None:
    """Launches are captured: a graph replays them on new numbers."""
    given = arguments_of(kernel, COUNT)
    arrays = on_card(given)
    out = torch.zeros(expected_of(kernel, given).shape, dtype=torch.float64, device="cuda")
    kernel(*arrays, out=out)  # the driver compiles before
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(*arrays, out=out)
    out.zero_()
    arrays[2].mul_(2)
    graph.replay()
    expected = expected_of(kernel, (given[0], given[1], 2 * given[2]))
    np.testing.assert_array_equal(out.cpu(), expected)


def test_arrays_of_cupy(kernel: CudaKernel) -> None:
    cupy = pytest.importorskip("cupy")
    given = arguments_of(kernel, COUNT)
    found = kernel(*map(cupy.asarray, given))
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_array_equal(found.get(), expected_of(kernel, given))
    with cupy.cuda.Stream(non_blocking=True) as stream:
        found = kernel(*map(cupy.asarray, given))
        stream.synchronize()
    np.testing.assert_array_equal(found.get(), expected_of(kernel, given))


def test_arrays_of_jax(kernel: CudaKernel) -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX is installed without its backend for GPUs")
    with jax.enable_x64(True):
        given = arguments_of(kernel, COUNT)
        found = kernel(*map(jax.numpy.asarray, given))
        assert isinstance(found, jax.Array)
        np.testing.assert_array_equal(np.asarray(found), expected_of(kernel, given))


def test_open_loops_are_not_a_number(kernel: CudaKernel) -> None:
    """A motion whose loops are open is nan from the first step on, without effect on others."""
    model = kernel.model
    roll = rm.cuda.rollout_kernel(model, "semi_implicit_euler")
    q = np.tile(model.neutral(), (40, 1))
    q[3] += 0.3
    v, tau = np.zeros((40, model.nv)), np.zeros((40, 5, model.nv))
    found = roll(*on_card((q, v, tau)), 1e-3)[0].cpu().numpy()
    assert np.isnan(found[3, 1:]).all()
    assert np.isfinite(np.delete(found, 3, axis=0)).all()


def test_arrays_of_processors_are_refused(kernel: CudaKernel) -> None:
    q, v, tau = arguments_of(kernel, 3)
    with pytest.raises(TypeError, match="card"):
        kernel(q, v, tau)
    with pytest.raises(TypeError, match="card"):
        kernel(torch.from_numpy(q), *on_card((v, tau)))
    with pytest.raises(TypeError, match="float64"):
        kernel(*(x.float() for x in on_card((q, v, tau))))
    arrays = on_card((q, v, tau))
    with pytest.raises(ValueError, match="out must not share"):
        kernel(*arrays, out=arrays[2])
