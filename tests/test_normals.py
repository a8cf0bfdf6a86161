"""Internal axes on common normals: the same robot, cheaper transforms, unseen from outside."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import few
from loaded import load
from mechanisms import KINDS, random_mechanism
from numpy.typing import NDArray
from shipped import SMALL
from test_regroup import FULL, TEXTS, check, operations, states
from texts import coupling, four_bar, joint, link, robot

import robomodel as rm
from robomodel.dynamics.algorithms import Task
from robomodel.dynamics.recursions.lean import lean
from robomodel.dynamics.tracing import trace
from robomodel.model.variants.normals import _factored, _steps, on_common_normals
from robomodel.model.variants.regroup import regrouped
from robomodel.spatial import ZERO, Transform, about_axis

Array = NDArray[np.float64]


def trees(model: rm.Model) -> list[rm.Model]:
    moved = on_common_normals(model)
    return [moved, regrouped(moved, spread=True)]


def poses(model: rm.Model, q: Array) -> Array:
    """All links in the world: (states, links, 4, 4)."""
    return np.array([
        [
            np.reshape(Task("frame_pose", frames=(frame.name,)).run(model, {"q": x}), (4, 4))
            for frame in model.frames
        ]
        for x in q.tolist()
    ], dtype=float)  # fmt: skip


def same(model: rm.Model, q: Array) -> None:
    """The equations of motion, and where all links are."""
    check(model, q, trees(model))
    np.testing.assert_allclose(
        poses(on_common_normals(model), q), poses(model, q), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", SMALL)
def test_shipped_robots(name: str) -> None:
    model = rm.robots.load(name)
    same(model, states(model)[:2])


@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize("kind", few(TEXTS, "continuous", "spherical"))
def test_every_joint(kind: str, base: bool) -> None:
    text = TEXTS[kind].replace('<link name="base"/>', link("base", FULL) if base else link("base"))
    model = rm.load(text, floating_base=base, gravity=(1.0, -2.0, 3.0))
    assert on_common_normals(model) is not model
    same(model, states(model))


@pytest.mark.parametrize("kind", few(KINDS, "belt", "mimic", "rod_four_bar", "slider_crank"))
def test_every_kind_of_mechanism(kind: str) -> None:
    for seed in range(10):
        loaded = load(random_mechanism(np.random.default_rng([seed, 6]), [kind], n_joints=3))
        if loaded is not None:
            same(loaded[0], loaded[1][None])
            return
    pytest.fail("no mechanism of this kind moves")


@pytest.mark.slow
def test_loops_and_their_carriers_stay() -> None:
    """An arm that carries a four-bar that carries an arm: the arms' outer bodies may move."""
    skew = {"rpy": "0.4 -0.3 0.7"}
    text = four_bar(
        *(link(name, FULL) for name in ("upper", "lower", "hand", "finger")),
        joint("j_upper", "root", "upper", "0.1 0.2 0.3", axis="0.6 0 0.8"),
        joint("j_lower", "upper", "base", "0.3 0.1 0.2", **skew),
        joint("j_hand", "coupler", "hand", "0.2 0.1 0.4", axis="0 0.6 0.8", **skew),
        joint("j_finger", "hand", "finger", "0.1 0.1 0.2", axis="1 0 0", **skew),
    )
    text = text.replace('<link name="base"/>', f'<link name="root"/>{link("base", FULL)}')
    text = text.replace(link("lower", FULL), "")
    model = rm.load(text)
    same(model, states(model))
    moved = on_common_normals(model)
    stay = ("base", "crank", "coupler", "rocker")
    for before, after in zip(model.nodes, moved.nodes, strict=True):
        assert (before.inertia is after.inertia) == (before.name in stay), before.name


@pytest.mark.slow
def test_what_stays_is_placed_anew_where_its_parent_turns() -> None:
    """At the very point of its parent's joint, with as many rotations as before."""
    text = four_bar(
        *(link(name, FULL) for name in ("upper", "lower")),
        joint("j_upper", "root", "upper", "0.1 0.2 0.3", axis="0.6 0 0.8"),
        joint("j_lower", "upper", "base", rpy="0.4 -0.3 0.7", axis="0 0.6 0.8"),
    )
    text = text.replace('<link name="base"/>', link("root", FULL) + link("base", FULL))
    text = text.replace(link("lower", FULL), "")
    for base in (False, True):
        model = rm.load(text, floating_base=base)
        moved = on_common_normals(model)
        assert moved.nodes[1 + base].rotations != model.nodes[1 + base].rotations
        same(model, states(model))


@pytest.mark.slow
def test_springs_go_along() -> None:
    """A spring between points of two bodies, a hinge's spring, and damping."""
    text = robot(
        *(link(name, FULL) for name in "abc"),
        joint("first", "base", "a", axis="0.6 0 0.8"),
        joint("second", "a", "b", "0.3 -0.1 0.2", rpy="0.4 -0.3 0.7"),
        joint("third", "b", "c", "0.1 -0.2 0.3", rpy="0.2 0.5 -0.7", axis="0 1 0"),
        '<spring name="strap" stiffness="40" damping="2" length="0.2">'
        '<predecessor link="a"><origin xyz="0.1 0.2 0.3"/></predecessor>'
        '<successor link="c"><origin xyz="-0.1 0.3 0.1"/></successor></spring>',
    )
    model = rm.load(text)
    assert model.springs
    assert lean(model, "rnea").nodes[1].inertia.h != model.nodes[1].inertia.h
    q, (v, x) = states(model), np.random.default_rng(5).standard_normal((2, 3, model.nv))
    for algorithm in ("rnea", "aba", "rnea_derivatives", "aba_derivatives"):
        run = getattr(rm, algorithm)
        own, found = (run(model, q, v, x, passive=True, backend=b) for b in ("numpy", "compiled"))
        for a, b in zip(np.atleast_1d(own), np.atleast_1d(found), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-11 * np.max(np.abs(a)))
    moved = on_common_normals(model)
    at = {"q": q[0].tolist(), "v": v[0].tolist()}
    for name in ("passive_force", "energy", "centroidal_momentum"):
        own, found = (np.array(Task(name).run(m, at), dtype=float) for m in (model, moved))
        np.testing.assert_allclose(found, own, rtol=1e-11, atol=1e-12)


@pytest.mark.slow
def test_open_trees_of_other_methods() -> None:
    """Wrenches and frames on an open tree whose bodies have other axes than the robot's."""
    model = rm.robots.chain("geared", 4, rng=np.random.default_rng(3))
    q = states(model)
    v, x = np.random.default_rng(6).standard_normal((2, 3, model.nv))
    f_ext = {model.bodies[-2].name: np.array([1.0, -2.0, 0.5, 3.0, 0.3, -0.7])}
    for method in ("approximate", "unconstrained"):
        tip = model.nodes[-2].name
        for run in (
            lambda b, m=method: rm.rnea(model, q, v, x, f_ext=f_ext, method=m, backend=b),
            lambda b, m=method: rm.aba(model, q, v, x, f_ext=f_ext, method=m, backend=b),
            lambda b, m=method, t=tip: rm.efpa(model, q, t, method=m, backend=b),
        ):
            own, found = run("numpy"), run("compiled")
            np.testing.assert_allclose(found, own, rtol=1e-10, atol=1e-11 * np.max(np.abs(own)))


def test_fewer_operations_for_axes_in_general_position() -> None:
    chain = rm.robots.chain("plain", 12, rng=np.random.default_rng(1))
    assert trace(chain, Task("rnea")).flops <= 1717  # 93n - 69 and 81n - 65 in the literature: 1954
    assert trace(chain, Task("aba")).flops <= 4397  # 250n - 222 and 220n - 198: 5220
    assert trace(chain, Task("crba")).flops <= 2464
    humanoid = rm.robots.load("mit_humanoid_leg")
    kept = regrouped(humanoid, spread=False)
    assert trace(humanoid, Task("aba")).flops < 0.9 * operations(kept, "aba")


def test_what_is_best_already_stays() -> None:
    for name in ("four_bar", "tello", "planar_leg_linkage"):
        model = rm.robots.load(name)
        assert on_common_normals(model) is model


def test_a_fixed_turn_about_the_axis_goes_into_the_angle() -> None:
    text = robot(
        *(link(name, FULL) for name in "ab"),
        joint("first", "base", "a"),
        joint("second", "a", "b", "0 0 1", rpy="0 0 0.3"),
        coupling("same", {"first": 1.0, "second": 1.0}),
    )
    model = rm.load(text)
    _, second = on_common_normals(model).nodes
    assert second.rotations == ()
    same(model, states(model))


# ---- rotations -----------------------------------------------------------------------------------


def matrix(*steps: tuple[int, float]) -> Array:
    rotations = tuple(about_axis(k, angle) for k, angle in steps)
    return np.array(Transform(rotations, ZERO).matrix())


def test_rotations_in_few_steps() -> None:
    rng = np.random.default_rng(7)
    for _ in range(200):
        angles = rng.choice([0.0, math.pi / 2, -math.pi / 2, math.pi, 0.7, -1.1, 2.5], size=3)
        rotation = matrix(*zip(rng.permutation(3).tolist(), angles.tolist(), strict=True))
        for axis in range(3):
            rotations, angle = _factored(rotation, axis)
            again = Transform((about_axis(axis, angle), *rotations), ZERO).matrix()
            np.testing.assert_allclose(np.array(again), rotation, rtol=0, atol=1e-14)
            assert abs(angle) <= math.pi / 4 + 1e-12
            base, steps = _steps(rotation[:, axis])
            assert len(steps) == np.count_nonzero(np.abs(rotation[:, axis]) > 1e-12) - 1
            np.testing.assert_allclose(matrix(*steps) @ base, rotation[:, axis], atol=1e-14)
