"""Internal frames on common normals: the same robot as in its links' frames, fewer operations."""

from __future__ import annotations

import importlib
import math
import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest
from cases import few
from mechanisms import KINDS, random_mechanism
from numpy.typing import NDArray
from random_models import load
from test_regroup import FULL, TEXTS
from texts import coupling, four_bar, joint, link, robot

import robomodel as rm
from benchmarks.shared.chains import chain
from robomodel.description import Pose
from robomodel.dynamics.algorithm import AlgorithmSpec, traced_algorithm
from robomodel.mechanism.internal_frames import factored
from robomodel.spatial import ZERO, Transform, about_axis

Array = NDArray[np.float64]

BUILD = importlib.import_module("robomodel.model.build")
SKEW = {"rpy": "0.4 -0.3 0.7"}
STRAP = (
    '<spring name="strap" stiffness="40" damping="2" length="0.2">'
    '<predecessor link="a"><origin xyz="0.1 0.2 0.3"/></predecessor>'
    '<successor link="c"><origin xyz="-0.1 0.3 0.1"/></successor></spring>'
)
BETWEEN = four_bar(  # an arm that carries a four-bar that carries an arm
    *(link(name, FULL) for name in ("upper", "hand", "finger")),
    joint("j_upper", "root", "upper", "0.1 0.2 0.3", axis="0.6 0 0.8"),
    joint("j_lower", "upper", "base", "0.3 0.1 0.2", axis="0 0.6 0.8", **SKEW),
    joint("j_hand", "coupler", "hand", "0.2 0.1 0.4", axis="0 0.6 0.8", **SKEW),
    joint("j_finger", "hand", "finger", "0.1 0.1 0.2", axis="1 0 0", **SKEW),
).replace('<link name="base"/>', f"{link('root', FULL)}{link('base', FULL)}")


def aligned(_tree: object, moves: list[tuple[object, Any]], _fixed: object) -> list[Pose]:
    """At the links' origins."""
    return [Pose(rotation=axes) for _, axes in moves]


def both(monkeypatch: pytest.MonkeyPatch, text: str, **options: Any) -> tuple[rm.Model, rm.Model]:
    """The robot in the frames that are chosen, and in those of its links (turned to the axes)."""
    model = rm.load(text, **options)
    with monkeypatch.context() as patched:
        patched.setattr(BUILD, "internal_frames", aligned)
        return model, rm.load(text, **options)


def results(model: rm.Model, q: Array) -> dict[str, Any]:
    """Of functions over everything that is said in links' frames, at configurations (n, nq)."""
    rng = np.random.default_rng(5)
    v, a = rng.standard_normal((2, len(q), model.nv))
    first, last = model.bodies[0].name, model.bodies[-1].name
    wrenches = {first: rng.standard_normal(6), last: rng.standard_normal(6)}
    on: dict[str, Any] = {"backend": "numpy"}
    return {
        "rnea": rm.rnea(model, q, v, a, f_ext=wrenches, **on),
        "aba": rm.aba(model, q, v, a, f_ext=wrenches, passive=True, **on),
        "crba": rm.crba(model, q, **on),
        "coriolis": rm.coriolis(model, q, v, **on),
        "efpa": rm.efpa(model, q, [first, last], **on),
        "jacobian": rm.jacobian(model, q, last, **on),
        "pose": rm.frame_pose(model, q, (last, (0.1, -0.2, 0.3)), **on),
        "acceleration": rm.frame_acceleration(model, q, v, a, last, **on),
        "energy": rm.energy(model, q, v, **on),
        "momentum": rm.dynamics.centroidal_momentum(model, q, v, **on),
        "parameters": rm.parameters(model).values,
        "regressor": rm.regressor(model, q, v, a, **on),
        "momentum_regressor": rm.identification.momentum_regressor(model, q, v, **on),
        "derivatives": rm.aba_derivatives(model, q, v, a, **on),
        "integrate": model.integrate(q, 0.1 * v),
        "residual": model.residual(q),
    }


def same_results(one: rm.Model, other: rm.Model, q: Array) -> None:
    assert one.dof_names == other.dof_names
    expected = results(other, q)
    for name, result in results(one, q).items():
        for x, y in zip(_arrays(result), _arrays(expected[name]), strict=True):
            size = np.max(np.abs(y), initial=1.0)
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * size, err_msg=name)


def _arrays(result: Any) -> list[Array]:
    return list(result) if isinstance(result, tuple) else [np.asarray(result)]


def configurations(model: rm.Model) -> Array:
    rng = np.random.default_rng(3)
    return np.array([model.random_configuration(rng) for _ in range(2)])


@pytest.mark.slow
@pytest.mark.tables_cases("floating-True", "planar-True", "screw-True", "continuous-True")
@pytest.mark.parametrize(
    ("kind", "base"),
    few(product(TEXTS, (False, True)), ("spherical", False), tables=product(TEXTS, (False,))),
)
def test_every_joint(kind: str, base: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXTS[kind].replace('<link name="base"/>', link("base", FULL) if base else link("base"))
    text = text.replace("</robot>", f"{STRAP}</robot>")
    one, other = both(monkeypatch, text, floating_base=base, gravity=(1.0, -2.0, 3.0))
    assert one.nodes != other.nodes
    q = configurations(one)
    same_results(one, other, q)
    same_results(pickle.loads(pickle.dumps(one)), other, q)
    changed = 1.25 * rm.parameters(one).values
    same_results(rm.with_parameters(one, changed), rm.with_parameters(other, changed), q)


@pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning")  # axes of any length
@pytest.mark.parametrize("kind", few(KINDS, "belt"))
def test_every_kind_of_mechanism(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(10):
        mechanism = random_mechanism(np.random.default_rng([seed, 6]), [kind], n_joints=3)
        loaded = load(mechanism)
        if loaded is not None:
            one, other = both(
                monkeypatch, mechanism.text, floating_base=mechanism.floating_base or None
            )
            same_results(one, other, loaded[1][None])
            return
    pytest.fail("no mechanism of this kind moves")


@pytest.mark.slow
def test_bodies_of_loops_and_those_that_carry_them_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = both(monkeypatch, BETWEEN)
    same_results(one, other, configurations(one))
    for before, after in zip(other.nodes, one.nodes, strict=True):
        stays = after.name in ("base", "crank", "coupler", "rocker")
        assert (before.inertia == after.inertia) == stays, before.name


@pytest.mark.slow
def test_open_trees_of_other_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrenches and frames on open trees, whose bodies have frames of their own."""
    made = chain("geared", 4, rng=np.random.default_rng(3))
    with monkeypatch.context() as patched:
        patched.setattr(BUILD, "internal_frames", aligned)
        other = chain("geared", 4, rng=np.random.default_rng(3))
        expected = _by_methods(other)
    for x, y in zip(_by_methods(made), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.max(np.abs(y)))


def _by_methods(model: rm.Model) -> list[Array]:
    q, tip = configurations(model), model.bodies[-2].name
    v, x = np.random.default_rng(6).standard_normal((2, 2, model.nv))
    options: dict[str, Any] = {"f_ext": {tip: np.arange(6.0)}, "backend": "numpy"}
    result = []
    for method in ("approximate", "unconstrained"):
        result += [rm.rnea(model, q, v, x, method=method, **options),
                   rm.aba(model, q, v, x, method=method, **options),
                   rm.efpa(model, q, tip, method=method, backend="numpy")]  # fmt: skip
    return result


@pytest.mark.slow
def test_axes_in_general_position_take_fewer_operations() -> None:
    arm = chain("plain", 12, rng=np.random.default_rng(1))
    # 93n - 69, 250n - 222 and 220n - 198 in the literature: 1954, 5220 (rnea, aba)
    for name, limit in (("rnea", 1717), ("aba", 4415), ("crba", 2464)):
        assert traced_algorithm(arm, AlgorithmSpec(name)).program.flops <= limit


def test_transforms_on_common_normals() -> None:
    """One constant rotation, two numbers of offset; what is left of a turn is in the angle."""
    arm = chain("plain", 6, rng=np.random.default_rng(1))
    for node in arm.nodes[1:-1]:
        assert sum(not isinstance(x, type(about_axis(0, 0.1))) for x in node.rotations) <= 1
        assert sum(isinstance(x, type(about_axis(0, 0.1))) for x in node.rotations) == 1
        assert np.count_nonzero(node.offset) == 2
    text = robot(
        *(link(name, FULL) for name in "ab"),
        joint("first", "base", "a"),
        joint("second", "a", "b", "0 0 1", rpy="0 0 0.3"),
        coupling("same", {"first": 1.0, "second": 1.0}),
    )
    assert rm.load(text).nodes[1].rotations == ()


def test_nearly_parallel_axes_keep_their_origins() -> None:
    """The foot of their normal is far away, and what is computed about it would be inaccurate."""
    text = robot(
        *(link(name, FULL) for name in "ab"),
        joint("first", "base", "a"),
        joint("second", "a", "b", "0.3 0.1 0.2", rpy="1e-5 2e-5 0"),
    )
    model = rm.load(text)
    assert max(map(abs, model.frame("b").pose.offset)) == 0.0


@pytest.mark.parametrize("axis", range(3))
def test_rotations_in_few_steps(axis: int) -> None:
    rng = np.random.default_rng(7)
    for _ in range(100):
        angles = rng.choice([0.0, math.pi / 2, -math.pi / 2, math.pi, 0.7, -1.1, 2.5], size=3)
        steps = zip(rng.permutation(3).tolist(), angles.tolist(), strict=True)
        rotation = Transform(tuple(about_axis(k, angle) for k, angle in steps), ZERO).matrix()
        rotations, angle = factored(rotation, axis)
        again = Transform((about_axis(axis, angle), *rotations), ZERO).matrix()
        np.testing.assert_allclose(np.array(again), np.array(rotation), rtol=0, atol=1e-14)
        across = np.count_nonzero(np.abs(np.array(rotation)[:, axis]) > 1e-12)
        assert len(rotations) <= across
        assert abs(angle) <= math.pi / 4 + 1e-12
