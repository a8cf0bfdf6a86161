"""Calls of kernels on cards: arguments checked and passed on, with a stand-in for the driver."""

from __future__ import annotations

import ctypes
import math
import pickle
import sys
import types
from typing import Any

import numpy as np
import pytest
from cuda_driver import Card, OnCard, arguments_of

import robomodel as rm
from robomodel.cuda import launch
from robomodel.kernels import (
    NoCompilerError,
)
from robomodel.kernels.function import CudaKernel
from robomodel.kernels.llvm import machine

# ---- calls ---------------------------------------------------------------------------------------


class ByDLPack:
    """The same without the interface."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.streams = array, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, stream: int) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__()


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> tuple[CudaKernel, Card]:
    model = rm.robots.load("planar_leg_linkage")
    kernel = CudaKernel(rm.compile(model, "aba").function)
    card = Card(kernel.ptx, pointers=len(kernel.sizes) + 1)
    driver = launch.Driver(card)
    monkeypatch.setattr(launch, "driver", lambda: driver)
    return kernel, card


def test_calls(launched: tuple[CudaKernel, Card]) -> None:
    kernel, card = launched
    on_cpu = rm.compile(kernel.model, "aba")
    given = arguments_of(kernel, 6)
    arrays = [OnCard(x) for x in given]
    result = kernel(*arrays)
    assert isinstance(result, OnCard)
    np.testing.assert_array_equal(result.array, on_cpu(*given))
    assert card.log.count("cuModuleLoadData") == 1
    assert card.log[-1] == "cuCtxPopCurrent_v2"
    # batches of several axes, of one state, of none; arguments that all states share; other rows
    q, v, tau = given
    for shape in ((2, 3), (3, 1, 2)):
        found = kernel(*(OnCard(x.reshape(*shape, -1)) for x in given)).array
        np.testing.assert_array_equal(found.reshape(6, -1), on_cpu(*given))
    np.testing.assert_array_equal(kernel(*(x[2] for x in arrays)).array, on_cpu(q, v, tau)[2])
    shared = kernel(OnCard(q), OnCard(v[0]), OnCard(tau[:1])).array
    np.testing.assert_array_equal(shared, on_cpu(q, v[0], tau[:1]))
    np.testing.assert_array_equal(kernel(*(x[::-2] for x in arrays)).array, on_cpu(*given)[::-2])
    assert kernel(*(x[:0] for x in arrays)).array.shape == (0, kernel.model.nv)
    assert card.log.count("cuModuleLoadData") == 1
    assert card.log.count("cuDevicePrimaryCtxRetain") == 1
    wide = [OnCard(x.reshape(2, 3, -1)[:, :2]) for x in given]
    with pytest.raises(ValueError, match="rows of q do not stand evenly"):
        kernel(*wide)
    out = OnCard(np.zeros((6, kernel.model.nv)))
    assert kernel(*arrays, out=out, stream=11) is out
    np.testing.assert_array_equal(out.array, result.array)
    assert card.streams[0] == 1
    assert card.streams[-1] == 11


def test_streams_and_dlpack(launched: tuple[CudaKernel, Card]) -> None:
    kernel, card = launched
    given = arguments_of(kernel, 4)
    packs = [ByDLPack(x) for x in given[1:]]

    class Stream:
        cuda_stream = 23

    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 29

    expected = rm.compile(kernel.model, "aba")(*given)
    np.testing.assert_array_equal(kernel(OnCard(given[0], 5), *packs).array, expected)
    assert card.log.count("cuStreamSynchronize") == 1  # of the stream on which q is made
    kernel(OnCard(given[0]), *packs, stream=Stream())
    kernel(OnCard(given[0]), *packs, stream=Protocol())
    kernel(OnCard(given[0]), *packs, stream=0)
    assert card.streams == [1, 23, 29, 1]
    assert packs[0].streams == card.streams
    with pytest.raises(TypeError, match="stream must be"):
        kernel(OnCard(given[0]), *packs, stream="first")


def test_new_arrays_of_other_libraries_are_handed_over(
    launched: tuple[CudaKernel, Card], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By DLPack or the interface, with their memory, which lives as long as anybody has it."""
    kernel, card = launched
    given = arguments_of(kernel, 4)
    expected = rm.compile(kernel.model, "aba")(*given)
    packs = [ByDLPack(x) for x in given]
    found = kernel(*packs, stream=17)
    assert found.__dlpack_device__() == (2, 0)
    np.testing.assert_array_equal(on_this(found.__dlpack__(stream=17)), expected)
    told = found.__cuda_array_interface__
    assert (told["shape"], told["typestr"], told["stream"]) == ((4, 2), "<f8", 17)
    part = found[..., 1:2].reshape((4, 1, 1))
    np.testing.assert_array_equal(on_this(part.__dlpack__(stream=-1)), expected[:, 1:, None])
    folded = found.reshape((4, 1, 2))
    assert launch.tensor(folded.__dlpack__(stream=-1)).strides == (2, 2, 1)
    np.testing.assert_array_equal(on_this(folded.__dlpack__(stream=-1)), expected[:, None])
    assert "cuStreamSynchronize" not in card.log
    capsule = found.__dlpack__()
    assert card.log.count("cuStreamSynchronize") == 1  # for whom it does not say
    del found, folded, part, told
    assert len(card.memory) == 1
    np.testing.assert_array_equal(on_this(capsule), expected)
    del capsule
    assert not card.memory

    class OfJax(ByDLPack):
        """Stands for JAX's arrays."""

    OfJax.__module__ = "jaxlib._jax"
    taken = types.SimpleNamespace(numpy=types.SimpleNamespace(from_dlpack=lambda x: [x.shape]))
    monkeypatch.setitem(sys.modules, "jax", taken)
    assert kernel(OfJax(given[0]), *packs[1:]) == [(4, 2)]


def on_this(capsule: Any) -> np.ndarray:
    """A capsule's numbers, copied."""
    x = launch.tensor(capsule)
    numbers = (ctypes.c_double * 64).from_address(x.address)
    strides = [8 * s for s in x.strides]
    return np.lib.stride_tricks.as_strided(np.frombuffer(numbers), x.shape, strides).copy()


def test_several_results_are_views_of_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    model = rm.robots.load("four_bar")
    kernel = rm.compile(model, "aba_derivatives", target="cuda", dtype="float32")
    monkeypatch.setattr(
        launch, "driver", lambda: launch.Driver(Card(kernel.ptx, pointers=len(kernel.sizes) + 1))
    )
    given = arguments_of(kernel, 3)
    expected = rm.compile(model, "aba_derivatives", dtype="float32")(*given)
    found = kernel(*map(OnCard, given))
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.array, b)


def test_robots_without_joints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results without numbers have their shape, and nothing is launched; others are computed."""
    model = rm.load(
        """<robot name="stone"><link name="stone"><inertial><origin xyz="1 2 3"/><mass value="2"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
    )
    for algorithm, shapes, options in (
        ("aba", [(0,)], {}),
        ("aba_derivatives", [(0, 0)] * 3, {}),
        ("energy", [(), ()], {}),
        ("frame_pose", [(4, 4)], {"frame": ("stone", (0.0, 0.0, 3.0))}),
    ):
        kernel = rm.compile(model, algorithm, target="cuda", **options)
        card = Card(kernel.ptx, pointers=len(kernel.sizes) + 1)
        monkeypatch.setattr(launch, "driver", lambda library=card: launch.Driver(library))
        found = kernel(*[OnCard(np.zeros((3, 0))) for _ in kernel.sizes])
        results = found if isinstance(found, tuple) else (found,)
        assert [x.shape for x in results] == [(3, *shape) for shape in shapes]
        assert card.log.count("cuLaunchKernel") == (math.prod(shapes[0]) > 0)
        pose = np.eye(4)
        pose[2, 3] = 3.0
        for x in results:
            np.testing.assert_array_equal(
                x.array, np.broadcast_to(pose if options else 0.0, x.shape)
            )


def test_what_does_not_fit_is_refused_before_anything_runs(
    launched: tuple[CudaKernel, Card],
) -> None:
    kernel, card = launched
    q, v, tau = map(OnCard, arguments_of(kernel, 4))
    with pytest.raises(TypeError, match="q, v, tau"):
        kernel(q, v)
    with pytest.raises(TypeError, match=r"tau must be an array on the card.*ndarray"):
        kernel(q, v, tau.array)
    with pytest.raises(TypeError, match=r"v must be of float64 .* got float32"):
        kernel(q, OnCard(v.array.astype("f4")), tau)
    with pytest.raises(TypeError, match=r"v must be of float64 .* got DLPack's"):
        kernel(q, ByDLPack(v.array.astype(int)), tau)
    with pytest.raises(ValueError, match=r"v must have the shape \(..., 2\)"):
        kernel(q, q, tau)
    with pytest.raises(ValueError, match=r"v has the batch \(3,\)"):
        kernel(q, v[:3], tau)
    with pytest.raises(ValueError, match="share memory with tau"):
        kernel(q, v, tau, out=tau)
    with pytest.raises(ValueError, match=r"shape \(4, 2\), got \(3, 2\)"):
        kernel(q, v, tau, out=OnCard(np.zeros((3, 2))))
    with pytest.raises(ValueError, match="contiguous"):
        kernel(q, v, tau, out=OnCard(np.zeros((8, 2))[::2]))
    locked = np.zeros((4, 2))
    locked.flags.writeable = False
    with pytest.raises(TypeError, match="writable"):
        kernel(q, v, tau, out=OnCard(locked))
    assert "cuLaunchKernel" not in card.log
    card.fails["cuModuleLoadData"] = 2
    with pytest.raises(launch.NoCardError, match=r"cuModuleLoadData: out of memory \(2\)"):
        kernel(q, v, tau)
    assert card.log[-1] == "cuCtxPopCurrent_v2"


def test_tensors_of_processors_are_told_apart(launched: tuple[CudaKernel, Card]) -> None:
    torch = pytest.importorskip("torch")
    kernel, _ = launched
    with pytest.raises(TypeError, match=r"q must be an array on the card.*torch\.Tensor"):
        kernel(*(torch.as_tensor(x) for x in arguments_of(kernel, 2)))


def test_without_a_driver_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    kernel = rm.compile(model := rm.robots.load("four_bar"), "aba", target="cuda")
    monkeypatch.setattr(launch.ctypes, "CDLL", none)
    launch.driver.cache_clear()
    with pytest.raises(RuntimeError, match=r"NVIDIA's cards, and their driver .* not installed"):
        kernel(model.neutral(), np.zeros(1), np.zeros(1))
    assert rm.compile(model, "aba", target="cuda") is kernel


def test_targets_by_name() -> None:
    model = rm.robots.load("four_bar")
    assert isinstance(rm.compile(model, "aba", target="cpu"), rm.kernels.Kernel)
    with pytest.raises(ValueError, match="target 'tpu' is not known; 'cpu' and 'cuda' are"):
        rm.compile(model, "aba", target="tpu")
    with pytest.raises(ValueError, match="dtype 'float16'"):
        rm.compile(model, "aba", target="cuda", dtype="float16")
    with pytest.raises(ValueError, match="algorithm 'rollout' is not known"):
        rm.compile(model, "rollout", target="cuda")
    kernel = rm.compile(model, "aba", target="cuda")
    again = pickle.loads(pickle.dumps(kernel))
    assert again.ptx == kernel.ptx
    assert repr(again).startswith("<CudaKernel aba of 'four_bar'")


def test_without_llvm_for_cards_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **settings: str) -> str:
        raise RuntimeError(f"no target for {settings['triple']}")

    model = rm.robots.load("four_bar", gravity=(0.0, 0.0, -3.7))
    monkeypatch.setattr(machine, "assembly", unknown)
    monkeypatch.setenv("ROBOMODEL_CACHE", "off")
    with pytest.raises(NoCompilerError, match=r"PTX cannot be written here .*nvptx64"):
        rm.compile(model, "aba", target="cuda")
