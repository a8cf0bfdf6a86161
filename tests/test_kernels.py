"""Compiled kernels: the same numbers as NumPy's, NumPy's ufunc semantics, processes and threads."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from agreement import close
from cases import few
from kernel_programs import states
from mechanisms import KINDS, Mechanism, random_mechanism
from texts import INERTIAL, joint, link, robot

import robomodel as rm
from robomodel.kernels import Trace, compile_program, lanes
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.plan import CHUNK
from robomodel.kernels.program import Dtype
from robomodel.kernels.threads import share
from robomodel.scalars import Scalar, sincos

# ---- the same numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", few(rm.robots.names(), "belt_leg", "four_bar", "mini_cheetah"))
def test_every_function_compiled_equals_numpy(name: str) -> None:
    model = rm.robots.load(name)
    q, v, x = states(model, 11)
    link_name = model.bodies[-1].name
    frame = (link_name, (0.1, -0.2, 0.3))
    f_ext = {model.frames[-1].name: np.arange(6.0), link_name: np.ones((11, 6))}
    calls = [
        (rm.rnea, (q, v, x), {}),
        (rm.rnea, (q, v, x), {"f_ext": f_ext}),
        (rm.aba, (q, v, x), {}),
        (rm.aba, (q, v, x), {"f_ext": f_ext}),
        (rm.crba, (q,), {}),
        (rm.bias_force, (q, v), {"f_ext": f_ext}),
        (rm.jacobian, (q, frame), {}),
        (rm.frame_pose, (q, link_name), {}),
        (rm.frame_velocity, (q, v, frame), {}),
        (rm.center_of_mass, (q,), {}),
        (rm.dynamics.centroidal_momentum, (q, v), {}),
    ]
    for function, arguments, options in calls:
        expected = function(model, *arguments, **options, backend="numpy")
        close(
            function(model, *arguments, **options, backend="compiled"), expected, 1e-13, least=1e-3
        )
    both = rm.energy(model, q, v, backend="compiled")
    for found, expected in zip(both, rm.energy(model, q, v, backend="numpy"), strict=True):
        close(found, expected, 1e-13)


def compare_with_numpy(mechanism: Mechanism) -> None:
    """Forces and inertias to 1e-13; accelerations by the forces they leave over.

    Where dependent joints move faster than independent ones, by |G|, rounding grows as much; an
    acceleration itself may differ by 1e-16 times the condition of the mass matrix.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        model = rm.load(mechanism.text, floating_base=mechanism.floating_base or None)
    q, v, x = states(model, 9)
    tau = rm.rnea(model, q, v, x, backend="numpy")
    together = rm.rnea(model, q, v, x)
    for i, state in enumerate(zip(q, v, x, strict=True)):
        gain = max(1.0, float(np.abs(model.constraint_jacobian(q[i])).max()))
        close(rm.rnea(model, *state), tau[i], 1e-13 * gain)
        close(together[i], tau[i], 1e-13 * gain)
    mass = rm.crba(model, q, backend="numpy")
    close(rm.crba(model, q), mass, 1e-13)
    a = rm.aba(model, q, v, x)
    size = np.einsum("...ij,...j->...i", np.abs(mass), np.abs(a)).max(axis=-1) + np.abs(tau).max()
    unbalanced = rm.rnea(model, q, v, a, backend="numpy") - x
    assert (np.abs(unbalanced).max(axis=-1) <= 1e-12 * size).all()


@pytest.mark.slow_cases("rod")
@pytest.mark.parametrize("kind", few([*KINDS, "tether"], "gear", "rod"))
def test_random_mechanisms_compiled_equal_numpy(kind: str) -> None:
    compare_with_numpy(random_mechanism(np.random.default_rng([5, len(kind)]), [kind], n_joints=6))


@pytest.mark.tables
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_more_random_mechanisms_compiled_equal_numpy(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    kinds = rng.choice([*KINDS, "tether"], size=2, replace=False).tolist()
    compare_with_numpy(random_mechanism(rng, kinds, n_joints=int(rng.integers(3, 9))))


@pytest.mark.parametrize("name", ["mini_cheetah", "planar_leg_linkage"])
def test_right_angles_large_angles_and_odd_numbers(name: str) -> None:
    model = rm.robots.load(name)
    q, v, x = states(model, 8)
    first = 7 if model.floating_base else 0
    if first:
        q[0, 7:] = np.pi / 2
    q[1, first:] += 2e6 * np.pi
    q[2, first:] += 2e12 * np.pi
    v[3] *= 1e-310
    v[4], x[4] = 5e-324, -5e-324
    x[5] *= 1e150
    v[6] *= 1e140
    x[7] *= 1e300
    for function in (rm.rnea, rm.aba):
        expected = function(model, q, v, x, backend="numpy")
        found = function(model, q, v, x)
        for i in range(8):
            # 2e6 π is a double only to 1e-10, which takes a linkage that much off closure
            ill = 1e-12 if function is rm.aba or i in (1, 2) else 1e-13
            close(found[i], expected[i], ill)


def test_a_singular_state_is_not_a_number_for_itself_alone() -> None:
    model = rm.robots.load("four_bar")
    q = np.stack([model.random_configuration(0)] * 3)
    q[1] = 0.0
    with pytest.warns(RuntimeWarning, match="cluster 'link1' is at a change point"):
        a = rm.aba(model, q, np.ones((3, 1)), np.ones((3, 1)), backend="compiled")
    assert np.isfinite(a[[0, 2]]).all()
    assert not np.isfinite(a[1]).any()


@pytest.mark.slow
def test_long_programs_are_cut_and_keep_their_meaning() -> None:
    parts = [link("l0", INERTIAL)]
    for i in range(80):
        axis = ("1 0 0", "0 1 0", "0 0 1")[i % 3]
        parts += [link(f"l{i + 1}"), joint(f"j{i}", f"l{i}", f"l{i + 1}", "0.1 0 0.05", axis=axis)]
    model = rm.load(robot(*parts, joint("bolt", "base", "l0", kind="fixed")))
    q, v, x = states(model, 10)
    kernel = rm.compile(model, "aba")
    assert len(kernel.program.steps) > CHUNK
    close(kernel(q, v, x), rm.aba(model, q, v, x, backend="numpy"), 1e-9)
    close(
        rm.compile(model, "rnea")(q, v, x),
        rm.rnea(model, q, v, x, backend="numpy"),
        1e-13,
        least=1e-3,
    )


# ---- ufunc semantics -----------------------------------------------------------------------------


def test_selections_choose_lane_by_lane() -> None:
    trace = Trace()
    x, y = trace.inputs(2)
    program = trace.program([x.select(y, 3.0), (x - y).select(x, y * y)])
    compiled = compile_program(lambda: program, [1, 1, 2], name="selections")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 37, 1))
    a[5], a[11] = 0.0, np.nan
    with np.errstate(invalid="ignore"):  # a comparison with NaN
        found = compiled.ufunc(a, b)
    np.testing.assert_array_equal(found, np.stack(program([a[:, 0], b[:, 0]]), axis=-1))


def test_any_number_of_states_and_any_strides() -> None:
    model = rm.robots.load("six_bar")
    kernel = rm.compile(model, "aba")
    q, v, tau = states(model, max(24, 3 * lanes() + 1))
    expected = rm.aba(model, q, v, tau, backend="numpy")
    for count in range(len(q) + 1):
        found = kernel(q[:count], v[:count], tau[:count])
        assert found.shape == (count, 3)
        close(found, expected[:count], 1e-13)
    close(kernel(q[0], v[0], tau[0]), expected[0], 1e-13)
    close(kernel(q[::-2], v[::-2], tau[::-2]), expected[::-2], 1e-13)
    close(
        kernel(np.asfortranarray(q), np.repeat(v, 2, axis=1)[:, ::2], tau),
        expected,
        1e-13,
        least=1e-3,
    )
    close(
        kernel(q[:24].reshape(2, 3, 4, 5), v[0], tau[0]),
        rm.aba(model, q[:24].reshape(2, 3, 4, 5), v[0], tau[0], backend="numpy"),
        1e-13,
    )
    single = q.astype(np.float32)
    close(kernel(single, v, tau), rm.aba(model, single, v, tau, backend="numpy"), 1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("count", [65, 96, 131])
def test_long_arguments_are_moved_whole(count: int, dtype: Dtype) -> None:
    """Shared by all states, of each its own, and in any strides; angles beyond all turns, too."""

    def build(x: list[Scalar], p: list[Scalar]) -> list[Scalar]:
        s, c = sincos(p[0] * p[1])
        of_states = [a * b + s for a, b in zip(x, p[2:], strict=True)]
        return [*of_states, sincos(x[0])[0] * c, *(2.0 * y for y in p)]

    sizes = {"x": count - 2, "p": count}
    results = {"y": (2 * count - 1,)}
    function = TracedFunction("long", sizes, results, build, shared=("p",), dtype=dtype)
    rng = np.random.default_rng(0)
    for many in (1, 3, 17, 40):
        x = rng.normal(size=(many, count - 2)).astype(dtype)
        x[-1, 0] = 1e12
        p = rng.normal(size=(many, 2 * count)).astype(dtype)
        for numbers in (p[0, :count], p[:1, ::2], p[:, :count], p[:, ::2], p[::-1, count:]):
            expected = function.on_arrays(x, numbers)
            close(function(x, numbers), expected, 1e-13 if dtype == "float64" else 1e-5)
        close(function(x[::-1], p[0, :count])[::-1], function(x, p[0, :count]), 1e-15)


def test_results_go_where_they_shall() -> None:
    model = rm.robots.load("six_bar")
    q, v, tau = states(model, 20)
    kernel = rm.compile(model, "aba")
    expected = kernel(q, v, tau)
    out = np.full((20, 3), np.nan)
    assert kernel(q, v, tau, out=out) is out
    np.testing.assert_array_equal(out, expected)
    wide = np.full((20, 6), -1.0)
    kernel(q, v, tau, out=wide[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], expected)
    assert (wide[:, 1::2] == -1.0).all()
    over = tau.copy()  # the result may take the place of an argument
    np.testing.assert_array_equal(kernel(q, v, over, out=over), expected)
    matrix = np.empty((20, 3, 3))
    assert rm.compile(model, "crba")(q, out=matrix) is matrix
    np.testing.assert_array_equal(matrix, rm.crba(model, q, backend="compiled"))
    with pytest.raises(ValueError, match="contiguous in the axes of the result"):
        rm.compile(model, "crba")(q, out=matrix.transpose(0, 2, 1))


def test_threads_share_a_batch() -> None:
    model = rm.robots.load("mini_cheetah")
    q, v, tau = states(model, 37)
    for name, arguments in (("aba", (q, v, tau)), ("crba", (q,)), ("aba", (q, v[0], tau[0]))):
        kernel = rm.compile(model, name)
        for threads in (2, 3, 50):
            np.testing.assert_array_equal(kernel(*arguments, threads=threads), kernel(*arguments))
    single = rm.compile(model, "aba")
    np.testing.assert_array_equal(single(q[0], v[0], tau[0], threads=2), single(q[0], v[0], tau[0]))
    for threads in (0, 2, 5):
        for count in (0, 1, 8, 37):
            found = single(q[None, :count], v[:count], tau[:count], threads=threads)
            assert found.shape == (1, count, model.nv)
            np.testing.assert_array_equal(found[0], single(q[:count], v[:count], tau[:count]))
    with pytest.raises(ValueError, match="threads must be 0"):
        single(q, v, tau, threads=-1)
    with pytest.raises(ValueError, match="core dimension"):
        single(q, v[:, 1:], tau, threads=2)
    with pytest.raises(ValueError, match="enough dimensions"):
        single(q, 1.0, tau, threads=2)


def test_threads_write_where_they_shall_and_nowhere_else() -> None:
    model = rm.robots.load("mini_cheetah")
    q, v, tau = states(model, 40)
    kernel = rm.compile(model, "aba")
    expected = kernel(q, v, tau)
    for threads in (1, 2):
        over = tau.copy()  # the result may take the place of an argument, or lie across it
        assert kernel(q, v, over, out=over, threads=threads) is over
        np.testing.assert_array_equal(over, expected)
        memory = np.empty((41, model.nv))
        memory[:40] = tau
        kernel(q, v, memory[:40], out=memory[1:], threads=threads)
        np.testing.assert_array_equal(memory[1:], expected)
        wide = np.full((3, 40, model.nv), np.nan)  # NumPy fills a larger result
        kernel(q, v, tau, out=wide, threads=threads)
        np.testing.assert_array_equal(wide, np.broadcast_to(expected, wide.shape))
        for shape in ((39, model.nv), (1, model.nv), (model.nv,), (40, 1)):
            with pytest.raises(ValueError, match=r"out|core dimension|broadcast"):
                kernel(q, v, tau, out=np.empty(shape), threads=threads)
    matrix = rm.compile(model, "crba")
    for shape in ((40, 9, 36), (40, 324), (18,), (20, 18, 18), (41, 18, 18)):
        for threads in (1, 2):
            with pytest.raises(ValueError, match=r"out|broadcast"):
                matrix(q, out=np.empty(shape), threads=threads)
    with pytest.raises(TypeError, match="NumPy array"):
        kernel(q, v, tau, out=[0.0] * model.nv)


def test_arguments_are_counted() -> None:
    """A fourth argument is not taken for the place of the result."""
    model = rm.robots.load("six_bar")
    q, v, tau = states(model, 2)
    kernel = rm.compile(model, "aba")
    before = tau.copy()
    for extra in ({}, {"threads": 2}):
        with pytest.raises(TypeError, match=r"takes the arguments \(q, v, tau\), got 4; out="):
            kernel(q, v, tau, before, **extra)
        with pytest.raises(TypeError, match=r"takes the arguments \(q, v, tau\), got 2"):
            kernel(q, v, **extra)
    np.testing.assert_array_equal(before, tau)


def test_threads_heed_errstate_and_pass_errors_on() -> None:
    model = rm.robots.load("four_bar")
    q = np.stack([model.random_configuration(0)] * 64)
    q[60] = 0.0  # singular
    kernel, one = rm.compile(model, "aba"), np.ones((64, 1))
    for threads in (1, 4):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not np.isfinite(kernel(q, one, one, threads=threads)[60]).any()
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            kernel(q, one, one, threads=threads)
    work, count = [], itertools.count()

    def nested(piece: slice) -> None:
        if next(count) == 1:
            raise KeyError("some piece")
        share(work.append, 30, 3)

    with pytest.raises(KeyError, match="some piece"):
        share(nested, 30, 3)  # calls within calls do not wait for each other
    assert sum(x.stop - x.start for x in work) == 60


def test_wrong_shapes_never_reach_the_kernel() -> None:
    model = rm.robots.load("six_bar")
    q, v, tau = states(model, 2)
    with pytest.raises(ValueError, match="q needs nq = 5"):
        rm.aba(model, v, v, tau, backend="compiled")
    with pytest.raises(ValueError, match="core dimension"):
        rm.compile(model, "aba")(v, v, tau)
    with pytest.raises(ValueError, match="backend 'fast' is not known"):
        rm.aba(model, q, v, tau, backend="fast")
    with pytest.raises(ValueError, match="algorithm 'fdyn' is not known"):
        rm.compile(model, "fdyn")
    with pytest.raises(ValueError, match="'jacobian' needs one frame"):
        rm.compile(model, "jacobian")
    with pytest.raises(ValueError, match="'crba' takes no external forces"):
        rm.compile(model, "crba", f_ext=["link1"])


def test_external_forces_are_further_arguments() -> None:
    model = rm.robots.load("planar_leg_linkage")
    q, v, tau = states(model, 4)
    force = np.arange(24.0).reshape(4, 6)
    kernel = rm.compile(model, "aba", f_ext=["foot"])
    expected = rm.aba(model, q, v, tau, f_ext={"foot": force}, backend="numpy")
    close(kernel(q, v, tau, force), expected, 1e-13)
