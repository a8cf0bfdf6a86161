"""Kernels on mechanisms full of zeros, beside NumPy, Pinocchio, differences and the laws of energy.

What is compiled runs on another tree than the model's: inertias regrouped, bodies' axes on common
normals or unturned. To compare kernels with each other, as forward after inverse dynamics does,
tells nothing of a fault in that tree. Here every algorithm on it stands beside the same one on the
model's own tree, which is compared with Pinocchio.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from cases import few
from mechanisms import KINDS, Mechanism, random_mechanism
from numpy.typing import NDArray
from oracle import Oracle
from random_models import load
from test_dynamics import compare, named, relative

import robomodel as rm
from robomodel.dynamics.algorithm import ALGORITHMS, AlgorithmSpec, traced_algorithm
from robomodel.dynamics.kinematics.frames import frame_keys
from robomodel.dynamics.recursions.reduced import regrouped
from robomodel.kernels import Trace
from robomodel.scalars import stack, unstack

Array = NDArray[np.float64]
TIGHT = 1e-10  # of the largest number of a result
ALL = [*KINDS, "tether"]
UNLIKE = {"efpa_factors", "contact_factors", "actuator_map", "actuator_forces"}
"""With factors of other rows; and of actuators, which are not there."""


def sprung(mechanism: Mechanism, rng: np.random.Generator) -> Mechanism:
    """The mechanism with a spring and a damper between two of its links, where they can move."""
    links = [str(x) for x in rng.permutation(list(mechanism.oracle().links))]
    spots = [" ".join(map(repr, rng.uniform(0.1, 0.5, 3).tolist())) for _ in "ab"]
    for second in links[1:]:
        spring = (
            '<spring name="strap" stiffness="40" damping="2" length="0.2">'
            f'<predecessor link="{links[0]}"><origin xyz="{spots[0]}"/></predecessor>'
            f'<successor link="{second}"><origin xyz="{spots[1]}"/></successor></spring>'
        )
        held = replace(mechanism, text=mechanism.text.replace("</robot>", f"{spring}</robot>"))
        try:
            load(held)
        except rm.DescriptionError:
            continue
        return held
    return mechanism


def tasks(model: rm.Model, rng: np.random.Generator) -> Iterator[AlgorithmSpec]:
    """Every algorithm with what it takes: wrenches, frames, springs, known joints, other ways."""
    links = [str(x) for x in rng.permutation([body.name for body in model.bodies])[:2]]
    point = (links[-1], (0.1, 0.0, -0.3))
    names = [str(x) for x in rng.permutation(model.dof_names)]
    for name, entry in ALGORITHMS.items():
        if name in UNLIKE:
            continue
        frames = (
            (point,)
            if "at" in entry.takes
            else (links[0], point)
            if "places" in entry.takes
            else ()
        )
        known = tuple(names[: (model.nv + 1) // 2]) if "known" in entry.takes else ()
        task = AlgorithmSpec(name, frame_keys(frames), known=known)
        yield task
        for method in entry.methods:
            yield replace(task, method=method)
        if "f_ext" in entry.takes:
            yield replace(task, f_ext=tuple(links), passive=entry.passive is not None)


def inputs(
    model: rm.Model, task: AlgorithmSpec, q: Array, rng: np.random.Generator
) -> dict[str, Array]:
    """Arguments at these configurations; all but them at random."""
    sizes = task.sizes(model)
    return {n: q if n == "q" else rng.standard_normal((len(q), k)) for n, k in sizes.items()}


def on_tree(tree: rm.Model, task: AlgorithmSpec, given: dict[str, Array]) -> Array:
    """The results on a tree as it stands, by NumPy; what needs a trace is traced."""
    batch = next(iter(given.values())).shape[:-1]
    scalars = {name: unstack(x) for name, x in given.items()}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)  # of open trees
        if not (task.algorithm.by_trace or task.name == "torque_limits"):  # by zeros of the map
            return stack(task.run(tree, scalars), batch)
        traced = Trace()
        held = {name: traced.inputs(len(x)) for name, x in scalars.items()}
        program = traced.program(task.run(tree, held))
        return stack(program([x for xs in scalars.values() for x in xs]), batch)


def by_program(model: rm.Model, task: AlgorithmSpec, given: dict[str, Array]) -> Array:
    """What is compiled, run by NumPy, one operation after the other."""
    with np.errstate(all="ignore"):
        found = traced_algorithm(model, task).program(
            [x for xs in given.values() for x in unstack(xs)]
        )
    return stack(found, next(iter(given.values())).shape[:-1])


def by_kernel(model: rm.Model, task: AlgorithmSpec, given: dict[str, Array]) -> Array:
    """Compiled."""
    found = traced_algorithm(model, task).kernel()(*given.values())
    parts = found if isinstance(found, tuple) else (found,)
    return np.concatenate([x.reshape(len(given["q"]), -1) for x in parts], axis=-1)


def assert_same(found: Array, expected: Array, tolerance: float, what: object) -> None:
    """State by state, beside the largest number of each."""
    size = np.maximum(np.max(np.abs(expected), axis=-1, initial=0.0), 1e-3)
    gap = np.max(np.abs(found - expected), axis=-1, initial=0.0) / size
    neither = ~np.isfinite(size) & ~np.isfinite(gap)  # an open tree of bodies without mass
    assert np.all((gap < tolerance) | neither), f"{what}: {gap}"


def check(
    mechanism: Mechanism,
    rng: np.random.Generator,
    run: Callable[[rm.Model, AlgorithmSpec, dict[str, Array]], Array] = by_program,
) -> bool:
    """All that is compiled of a mechanism; False if nothing moves."""
    mechanism = sprung(mechanism, rng)
    loaded = load(mechanism)
    if loaded is None:
        return False
    model, closed = loaded
    q = np.array([closed, model.random_configuration(rng, near=closed)])
    worst = float(np.max(np.linalg.cond(rm.crba(model, q, backend="numpy"))))
    for task in tasks(model, rng):
        given = inputs(model, task, q, rng)
        try:
            expected = on_tree(model, task, given)
        except ValueError as error:
            if "leaves out the body" not in str(error):  # an open tree has fewer bodies
                raise
            continue
        assert_same(run(model, task, given), expected, max(TIGHT, 1e-14 * worst), task)
    check_trees(model, q, rng)
    check_energy(model, q[1], rng)
    oracle = mechanism.oracle(list(model.joint_names))
    compare(model, oracle, q[0], rng, mechanism.f_ext)
    check_frames(model, oracle, q[1], rng)
    return True


def check_trees(model: rm.Model, q: Array, rng: np.random.Generator) -> None:
    """Every tree that kernels may be of, whichever is cheapest."""
    for task in (AlgorithmSpec("crba"), AlgorithmSpec("rnea")):
        given = inputs(model, task, q, rng)
        expected = on_tree(model, task, given)
        for spread in (True, False):
            tree = regrouped(model, spread=spread)
            assert_same(on_tree(tree, task, given), expected, TIGHT, task.name)


def check_energy(model: rm.Model, q: Array, rng: np.random.Generator) -> None:
    """½ vᵀ M v is the kinetic energy, and gravity and springs take what they give back."""
    v = rng.standard_normal(model.nv)
    zero = np.zeros(model.nv)

    def value(task: AlgorithmSpec, *given: Array) -> Array:
        names = task.sizes(model)
        return by_program(model, task, dict(zip(names, (x[None] for x in given), strict=True)))[0]

    kinetic = value(AlgorithmSpec("energy"), q, v)[0]
    mass = value(AlgorithmSpec("crba"), q).reshape(model.nv, model.nv)
    np.testing.assert_allclose(v @ mass @ v / 2, kinetic, rtol=1e-10, atol=1e-12)
    slow = v * min(1.0, 0.1 / np.max(np.abs(model.constraint_jacobian(q) @ v)))
    power = value(AlgorithmSpec("bias_force", passive=True), q, zero) @ slow
    step = 0.02
    potentials = [
        value(AlgorithmSpec("energy"), model.integrate(q, k * step * slow), zero)[1]
        for k in (-2, -1, 1, 2)
    ]
    rate = np.array([1.0, -8.0, 8.0, -1.0]) @ potentials / (12.0 * step)
    size = np.max(np.abs(potentials)) + model.mass
    np.testing.assert_allclose(rate, power, rtol=0, atol=1e-7 * size)


def check_frames(model: rm.Model, oracle: Oracle, q: Array, rng: np.random.Generator) -> None:
    """Poses, velocities, Jacobians and inverse inertias of a point of some link."""
    oracle.names = list(model.joint_names)
    v = rng.standard_normal(model.nv)
    at, g_matrix = oracle.state(named(model, q)), model.constraint_jacobian(q)
    link = str(rng.choice([body.name for body in model.bodies]))
    frame = (link, (0.1, 0.0, -0.3))
    jacobian = oracle.frame_jacobian(at, frame) @ g_matrix
    mass = oracle.projected_mass(at, g_matrix)
    wanted = [
        (AlgorithmSpec("frame_pose", (frame,)), (q,), oracle.frame_pose(at, frame)),
        (AlgorithmSpec("jacobian", (frame,)), (q,), jacobian),
        (AlgorithmSpec("frame_velocity", (frame,)), (q, v), jacobian @ v),
        (AlgorithmSpec("efpa", (frame,)), (q,), jacobian @ np.linalg.solve(mass, jacobian.T)),
    ]
    if oracle.floating_base:  # else what is welded to the base does not count
        momentum = oracle.centroidal_momentum(at, g_matrix @ v)
        wanted += [
            (AlgorithmSpec("center_of_mass"), (q,), oracle.center_of_mass(at)),
            (AlgorithmSpec("centroidal_momentum"), (q, v), momentum),
        ]
    for task, given, expected in wanted:
        held = dict(zip(task.sizes(model), (x[None] for x in given), strict=True))
        found = by_program(model, task, held)[0]
        tolerance = max(TIGHT, 1e-14 * float(np.linalg.cond(mass)))
        assert relative(found, expected.ravel(), np.ones(1)) < tolerance, task


def sweep(kinds: Sequence[str], seeds: Iterable[int], n_joints: int) -> int:
    """How many mechanisms of these kinds, most of them full of zeros, agree; others raise."""
    count = 0
    for seed in seeds:
        for kind in kinds:
            rng = np.random.default_rng([seed, 77, ALL.index(kind)])
            special = bool(seed % 4)
            count += check(random_mechanism(rng, [kind], n_joints=n_joints, special=special), rng)
    return count


@pytest.mark.slow
def test_trees_of_mechanisms_full_of_zeros() -> None:
    """What is turned, and what stays as it is, at the origins of what carries it."""
    for kind in ALL:
        rng = np.random.default_rng([1, 77, ALL.index(kind)])
        loaded = load(random_mechanism(rng, [kind], n_joints=3, special=True))
        if loaded is not None:
            check_trees(loaded[0], loaded[1][None], rng)


@pytest.mark.parametrize("kind", few(["gear", "four_bar"], "gear"))
def test_mechanisms_full_of_zeros(kind: str) -> None:
    assert sweep([kind], [1], 1)


@pytest.mark.tables
def test_kernels_of_mechanisms_full_of_zeros() -> None:
    """Compiled."""
    rng = np.random.default_rng(3)
    assert check(random_mechanism(rng, ["gear"], n_joints=1, special=True), rng, by_kernel)


@pytest.mark.tables
@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL)
def test_more_mechanisms_full_of_zeros(kind: str) -> None:
    assert sweep([kind], [2], 3)
