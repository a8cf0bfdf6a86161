"""The sparse equations in the paper's words (003): permutations, properties 1 and 2."""

from __future__ import annotations

import numpy as np
import pytest
from cases import few
from test_papers_clusters import ball

import robomodel as rm
from robomodel.papers.equations import (
    DynamicSystem,
    forward_dynamics,
    inverse_dynamics,
)

TIGHT = 1e-10


def branched_tree(seed: int, n: int = 8) -> rm.Model:
    """Links on random parents, turning or sliding, in general position."""
    rng = np.random.default_rng(seed)
    lines = ['<link name="link0"/>']
    for i in range(1, n + 1):
        parent = 0 if i == 1 else rng.integers(1, i)
        numbers = rng.normal(size=(5, 3))
        numbers[4] /= np.linalg.norm(numbers[4])
        xyz, rpy, at, turned, axis = (" ".join(map(str, x)) for x in numbers)
        kind = rng.choice(["continuous", "prismatic"])
        limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
        lines.append(
            f'<link name="link{i}"><inertial><origin xyz="{at}" rpy="{turned}"/><mass value="2"/>'
            '<inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="joint{i}" type="{kind}"><parent link="link{parent}"/>'
            f'<child link="link{i}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
            f"{limit if kind == 'prismatic' else ''}</joint>"
        )
    return rm.load(f'<robot name="tree">{"".join(lines)}</robot>')


def states(model: rm.Model, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    q = model.random_configuration(rng)
    return q, *rng.normal(size=(2, model.nv))


def joined(model: rm.Model, found: dict[str, np.ndarray], kind: str) -> np.ndarray:
    return np.concatenate([found[f"{kind}[{joint.name}]"] for joint in model.joints])


def lower(system: DynamicSystem) -> None:
    """W_L D W_R is lower triangular, up to rounding, and regular."""
    matrix = system.triangular
    assert np.abs(np.triu(matrix, 1)).max() < 1e-13 * np.abs(matrix).max()
    assert np.abs(np.diag(matrix)).min() > 0.5  # units, one way or the other


def trees() -> list[rm.Model]:
    """Branched trees, an arm, a floating base, and ball joints with armature."""
    floating = rm.load(BALLS.format(FLOATING, "</body>"))
    open_ball = rm.load(BALLS.format("", ""))
    return [*(branched_tree(seed) for seed in range(3)), rm.robots.load("puma560"), floating,
            open_ball]  # fmt: skip


FLOATING = """<body name="torso"><freejoint/>
  <inertial pos="0.1 0.1 0" mass="3" diaginertia="0.2 0.2 0.3"/>"""
BALLS = """<mujoco><worldbody>{0}
<body name="arm"><joint name="hinge" type="hinge" axis="0 1 0" armature="0.3"/>
  <inertial pos="0.1 0 0" mass="1" diaginertia="0.1 0.2 0.3"/>
  <body name="hand" pos="0.4 0 0"><joint name="wrist" type="ball" armature="0.02"/>
    <inertial pos="0 0.1 0.2" mass="2" diaginertia="0.2 0.2 0.1"/></body></body>
{1}</worldbody></mujoco>"""


@pytest.mark.parametrize("n", few(range(6), 0, 4, 5))
def test_rneas_permutation_is_triangular_itself(n: int) -> None:
    """Property 1: (11), (12), without any substitution."""
    model = trees()[n]
    q, v, a = states(model)
    link = model.bodies[-1].name
    wrench = {link: [0.1, 0.2, -0.3, 1.0, 2.0, 3.0]}
    system = inverse_dynamics(model, q, v, a, wrench)
    count = len(system.b)
    assert system.D.shape == (count, count)
    if all(joint.nv == 1 for joint in model.joints):
        assert count == 20 * len(model.bodies)
    assert np.array_equal(system.W_L, np.eye(count))
    assert np.array_equal(system.W_R, np.eye(count))
    assert np.count_nonzero(np.triu(system.D, 1)) == 0
    assert np.array_equal(np.abs(np.diag(system.D)), np.ones(count))
    found = joined(model, system.solve(), "tau")
    expected = rm.rnea(model, q, v, a, f_ext=wrench)
    assert np.abs(found - expected).max() < TIGHT * np.abs(expected).max()


@pytest.mark.parametrize("n", few(range(6), 0, 4, 5))
def test_abas_substitutions_make_forward_dynamics_triangular(n: int) -> None:
    """Property 2, with the order of rows as it must be."""
    model = trees()[n]
    q, v, tau = states(model)
    wrench = {model.bodies[0].name: [0.1, 0.2, -0.3, 1.0, 2.0, 3.0]}
    system = forward_dynamics(model, q, v, tau, wrench)
    assert np.abs(np.triu(system.D, 1)).max() > 0.1  # not by permutations alone
    lower(system)
    found = system.solve()
    moved = np.linalg.solve(system.D, -system.b)
    places = {name: moved[at] for name, at in system.columns.items()}
    for name, value in places.items():
        assert np.abs(found[name] - value).max() < 1e-9 * max(1.0, np.abs(moved).max()), name
    expected = rm.aba(model, q, v, tau, f_ext=wrench)
    assert np.abs(joined(model, found, "qdd") - expected).max() < TIGHT * np.abs(expected).max()


def test_robots_with_loops_and_batches_are_refused() -> None:
    looped = ball()
    q, v, a = states(looped)
    with pytest.raises(ValueError, match="has loops or couplings"):
        inverse_dynamics(looped, q, v, a)
    arm = rm.robots.load("puma560")
    q, v, a = states(arm)
    with pytest.raises(ValueError, match="one state"):
        forward_dynamics(arm, np.stack([q, q]), v, a)
    with pytest.raises(ValueError, match="nv"):
        forward_dynamics(arm, q, v, a[:-1])
