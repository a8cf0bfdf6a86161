"""Regrouped inertias: the same equations of motion, fewer operations, nothing seen from outside."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from cases import few
from mechanisms import KINDS, random_mechanism
from numpy.typing import NDArray
from random_models import load
from shipped_robots import SMALL
from texts import coupling, joint, link, robot

import robomodel as rm
from robomodel.dynamics.algorithm import ALGORITHMS, AlgorithmSpec, traced_algorithm
from robomodel.dynamics.recursions.reduced import COST_CLASS, reduced, regrouped
from robomodel.kernels import Trace

Array = NDArray[np.float64]

FULL = (
    '<inertial><origin xyz="0.1 0.02 -0.07"/><mass value="1.3"/><inertia ixx="0.013" iyy="0.02" '
    'izz="0.025" ixy="0.001" ixz="-0.002" iyz="0.003"/></inertial>'
)
SPUN = (
    '<inertial><origin xyz="0 0.05 0"/><mass value="0.3"/>'
    '<inertia ixx="0.001" iyy="0.0017" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>'
)
AT = {"xyz": "0.3 -0.1 0.2", "rpy": "0.4 -0.3 0.7"}
PITCH = '<pitch value="0.05"/>'
TEXTS = {
    kind: robot(
        *(link(n, FULL) for n in "abc"),
        link("rotor", SPUN),
        joint("first", "base", "a", axis="0.6 0 0.8", more='<armature value="0.4"/>'),
        joint("middle", "a", "b", kind=kind, axis="0.36 -0.48 0.8", more=more, **AT),
        joint("last", "b", "c", axis="1 0 0", **AT),
        joint("spin", "b", "rotor", axis="0 1 0", **AT),
        coupling("gear", {"last": -7.0, "spin": 1.0}),
    )
    for kind, more in (
        ("continuous", '<armature value="0.2"/>'),
        ("prismatic", '<limit effort="1" velocity="1" lower="-1" upper="1"/>'),
        ("spherical", ""),
        ("planar", ""),
        ("screw", PITCH),
        ("floating", ""),
    )
}


def numbers(model: rm.Model, task: AlgorithmSpec, inputs: Array) -> Array:
    """A task's results, run as it stands on this model's nodes: (states, numbers)."""
    trace = Trace()
    arguments = {name: trace.inputs(size) for name, size in task.sizes(model).items()}
    found = trace.program(task.run(model, arguments))(list(inputs.T))
    return np.array([np.broadcast_to(x, len(inputs)) for x in found]).T


def check(model: rm.Model, q: Array) -> None:
    """All that the equations of motion say, by both ways of regrouping."""
    rng = np.random.default_rng(1)
    links = tuple(body.name for body in model.bodies[:: max(1, len(model.bodies) // 3)])
    pushed = rng.standard_normal((len(q), 6 * len(links)))
    v, x = rng.standard_normal((2, len(q), model.nv))
    for spread in (True, False):
        tree = regrouped(model, spread=spread)
        for task, inputs in (
            (AlgorithmSpec("rnea", f_ext=links), (q, v, x, pushed)),
            (AlgorithmSpec("aba", f_ext=links), (q, v, x, pushed)),
            (AlgorithmSpec("crba"), (q,)),
            (AlgorithmSpec("efpa", frames=links), (q,)),
            (AlgorithmSpec("contact", frames=((links[-1], (0.1, -0.2, 0.3)),)), (q,)),
            (AlgorithmSpec("rnea", method="projection"), (q, v, x)),
            (AlgorithmSpec("aba", method="lagrange"), (q, v, x)),
        ):
            at = np.concatenate(inputs, axis=-1)
            expected = numbers(model, task, at)
            size = np.max(np.abs(expected), axis=-1, keepdims=True)
            gap = np.abs(numbers(tree, task, at) - expected)
            assert np.max(gap / size) < 1e-11, task


def states(model: rm.Model) -> Array:
    rng = np.random.default_rng(2)
    return np.array([model.random_configuration(rng) for _ in range(3)])


@pytest.mark.parametrize("name", SMALL)
def test_shipped_robots(name: str) -> None:
    model = rm.robots.load(name)
    check(model, states(model))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "base"), few(product(TEXTS, (False, True)), ("spherical", True)))
def test_every_joint(kind: str, base: bool) -> None:
    text = TEXTS[kind].replace('<link name="base"/>', link("base", FULL) if base else link("base"))
    model = rm.load(text, floating_base=base, gravity=(1.0, -2.0, 3.0))
    check(model, states(model))


@pytest.mark.slow_cases("rod_four_bar")
@pytest.mark.parametrize("kind", few(KINDS, "gear", "coupling", "rod_four_bar"))
def test_every_kind_of_mechanism(kind: str) -> None:
    for seed in range(10):
        loaded = load(random_mechanism(np.random.default_rng([seed, 5]), [kind], n_joints=3))
        if loaded is not None:
            check(loaded[0], loaded[1][None])
            return
    pytest.fail("no mechanism of this kind moves")


def test_what_remains() -> None:
    """Of a body that turns seven numbers, of a sliding one four, of a ball joint's nine."""
    for spread in (True, False):
        model = rm.load(TEXTS["continuous"])
        _, _, c, rotor = regrouped(model, spread=spread).nodes
        assert c.joint.subspace[0].angular == (1.0, 0.0, 0.0)
        assert c.inertia.mass == c.inertia.h[0] == 0.0
        assert all(c.inertia.h[1:])
        if spread:
            assert c.inertia.second_moments[0][0] == 0.0
        else:
            assert c.inertia.inertia[2][2] == 0.0
        moments = [x for row in rotor.inertia.inertia for x in row]
        assert sum(map(bool, moments)) == (3 if spread else 1)
        assert rotor.inertia.mass == rotor.inertia.h[1] == 0.0
        assert rotor.inertia.inertia[1][1] == pytest.approx(0.0017, rel=1e-12)
    slider = regrouped(rm.load(TEXTS["prismatic"]), spread=True).nodes[1].inertia
    assert slider.mass > 1.3
    assert not any(x for row in slider.inertia for x in row)
    ball = regrouped(rm.load(TEXTS["spherical"]), spread=True).nodes[1].inertia
    assert ball.mass == 0.0
    assert all(ball.h)


def operations(model: rm.Model, algorithm: str) -> int:
    traced = Trace()
    task = AlgorithmSpec(algorithm)
    inputs = {name: traced.inputs(size) for name, size in task.sizes(model).items()}
    return traced.program(task.run(model, inputs)).flops


@pytest.mark.slow
def test_a_reduced_model_is_kept_and_never_dearer() -> None:
    for name in ("puma560", "mini_cheetah", "four_bar"):
        model = rm.robots.load(name)
        for algorithm in ("rnea", "aba", "crba"):
            tree = reduced(model, algorithm)
            assert reduced(model, algorithm) is tree
            assert traced_algorithm(model, AlgorithmSpec(algorithm)).program.flops == operations(
                tree, algorithm
            )
            assert operations(tree, algorithm) <= operations(model, algorithm)
        assert reduced(model, "rnea") is not model
        for algorithm in ALGORITHMS.keys() - COST_CLASS.keys():
            assert reduced(model, algorithm) is model
    nothing = rm.load(robot())
    assert reduced(nothing, "aba") is nothing


def sphere(at: str) -> str:
    return (
        f'<inertial><origin xyz="{at}"/><mass value="2"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def test_counting_may_prefer_the_tree_as_it_is() -> None:
    """A sphere for a base costs little, less than one that carries an arm's mass costs more."""
    model = rm.load(
        robot(
            link("base_sphere", sphere("0 0 0")),
            link("arm", sphere("0 0.1 0")),
            joint("free", "base", "base_sphere", kind="floating"),
            joint("hinge", "base_sphere", "arm", "0 0.04 0.2"),
        )
    )
    both = [operations(regrouped(model, spread=spread), "rnea") for spread in (True, False)]
    assert min(both) > operations(model, "rnea")
    assert reduced(model, "rnea") is model


@pytest.mark.slow
def test_kernels_agree_with_the_tree_as_it_is() -> None:
    """By every way to a kernel: functions, methods, rollouts; energies keep all masses."""
    model = rm.robots.load("mini_cheetah")
    q = states(model)
    v, x = np.random.default_rng(4).standard_normal((2, 3, model.nv))
    for algorithm in ("rnea", "aba"):
        for method in ("cluster", "projection", "approximate", "unconstrained"):
            own, found = (
                getattr(rm, algorithm)(model, q, v, x, method=method, backend=backend)
                for backend in ("numpy", "compiled")
            )
            np.testing.assert_allclose(found, own, rtol=1e-11, atol=1e-11 * np.max(np.abs(own)))
    for part, whole in zip(
        rm.energy(model, q, v), rm.energy(model, q, v, backend="numpy"), strict=True
    ):
        np.testing.assert_allclose(part, whole, rtol=1e-12)
    assert sum(body.mass for body in model.bodies) == pytest.approx(
        sum(node.inertia.mass for node in model.nodes)
    )
