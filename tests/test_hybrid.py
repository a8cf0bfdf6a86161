"""Hybrid dynamics against the recursions, Featherstone's three steps, and itself compiled."""

from __future__ import annotations

import numpy as np
import pytest
from cases import few
from texts import coupling, joint, link, loop, robot

import robomodel as rm
from robomodel.dynamics.algorithm import AlgorithmSpec, traced_algorithm

ROBOTS = ("puma560", "five_bar", "mini_cheetah", "tello")


def state(model: rm.Model, seed: int = 0, count: int = 4):
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng, base_pose="random") for _ in range(count)])
    return rng, q, rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))


def choices(model: rm.Model, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """No joint, all, and some at random; a floating base is always free."""
    joints = [n for c in model.clusters for n in c.independent if "." not in n]
    picks = [tuple(n for n in joints if rng.random() < 0.5) for _ in range(2)]
    return [(), tuple(joints), *picks]


def split(model: rm.Model, known, tau, a):
    """The two mappings of the interface."""
    at = {n: i for i, n in enumerate(model.dof_names)}
    base = model.floating_base
    forces = {n: tau[..., i] for n, i in at.items() if n not in known and "." not in n}
    if base is not None:
        forces[base] = tau[..., :6]
    return forces, {n: a[..., at[n]] for n in known}


@pytest.mark.slow_cases("tello")
@pytest.mark.parametrize("name", ROBOTS)
def test_it_agrees_with_the_recursions(name):
    model = rm.robots.load(name)
    rng, q, v, a = state(model)
    tau = rm.rnea(model, q, v, a, backend="numpy")
    for known in choices(model, rng):
        forces, given = split(model, known, tau, a)
        got_tau, got_a = rm.hybrid(model, q, v, tau=forces, a=given, backend="numpy")
        assert np.max(np.abs(got_a - a)) <= 1e-12 * np.max(np.abs(a))
        assert np.max(np.abs(got_tau - tau)) <= 1e-12 * np.max(np.abs(tau))


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_external_wrenches_act(name):
    """Compared as forces, since a newton metre on a light wrist makes huge accelerations."""
    model = rm.robots.load(name)
    rng, q, v, a = state(model, 4)
    f_ext = {model.bodies[-1].name: rng.normal(size=6), model.bodies[0].name: rng.normal(size=6)}
    tau = rm.rnea(model, q, v, a, f_ext=f_ext, backend="numpy")
    for known in choices(model, rng):
        forces, given = split(model, known, tau, a)
        got = rm.hybrid(model, q, v, tau=forces, a=given, f_ext=f_ext, backend="numpy")
        back = rm.rnea(model, q, v, got[1], f_ext=f_ext, backend="numpy")
        for x in (got[0], back):
            assert np.max(np.abs(x - tau)) <= 1e-12 * np.max(np.abs(tau))


@pytest.mark.slow_cases("tello")
@pytest.mark.parametrize("name", ["puma560", "five_bar", "tello"])
def test_it_equals_featherstones_three_steps(name):
    """Zero-acceleration torques, forward dynamics of the free joints, inverse dynamics."""
    model = rm.robots.load(name)
    rng, q, v, a = state(model, 1, 1)
    q, v, a = q[0], v[0], a[0]
    tau = rng.normal(size=model.nv)
    known = [n for n in model.dof_names if "." not in n][::2]
    held = np.array([n in known for n in model.dof_names])
    forces, given = split(model, known, tau, a)
    got_tau, got_a = rm.hybrid(model, q, v, tau=forces, a=given, backend="numpy")

    first = rm.rnea(model, q, v, np.where(held, a, 0.0), backend="numpy")
    mass = rm.crba(model, q, backend="numpy")
    rates = a.copy()
    rates[~held] = np.linalg.solve(mass[np.ix_(~held, ~held)], (tau - first)[~held])
    torques = rm.rnea(model, q, v, rates, backend="numpy")
    np.testing.assert_allclose(got_a, rates, rtol=0, atol=1e-10 * np.max(np.abs(rates)))
    np.testing.assert_allclose(
        got_tau, np.where(held, torques, tau), rtol=0, atol=1e-10 * np.max(np.abs(torques))
    )


@pytest.mark.parametrize("name", ["puma560", "five_bar"])
def test_compiled_agrees_with_numpy(name):
    model = rm.robots.load(name)
    _, q, v, a = state(model, 2)
    tau = rm.rnea(model, q, v, a)
    known = model.dof_names[1:2]
    forces, given = split(model, known, tau, a)
    slow = rm.hybrid(model, q, v, tau=forces, a=given, backend="numpy")
    fast = rm.hybrid(model, q, v, tau=forces, a=given)
    for x, y in zip(slow, fast, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.max(np.abs(x)))
    kernel = rm.compile(model, "hybrid", known=known)
    mixed = np.where([n in known for n in model.dof_names], a, tau)
    for x, y in zip(kernel(q, v, mixed), fast, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", few(ROBOTS, "puma560", "five_bar"))
def test_elimination_costs_what_the_recursions_cost(name):
    """No acceleration given: within 5 % of the operations of ABA. All given: RNEA itself."""
    model = rm.robots.load(name)
    flops = traced_algorithm(model, AlgorithmSpec("aba")).program.flops
    assert traced_algorithm(model, AlgorithmSpec("hybrid")).program.flops <= 1.05 * flops
    everything = tuple(dict.fromkeys(joint.name for joint in model.joints if joint.independent))
    program = traced_algorithm(model, AlgorithmSpec("hybrid", known=everything)).program
    assert program.flops == traced_algorithm(model, AlgorithmSpec("rnea")).program.flops


# ---- joints with several freedoms, whole and in part ---------------------------------------------


def tumbling() -> rm.Model:
    """A floating body with a ball joint, a planar joint and a geared joint on it."""
    text = robot(
        *(link(name) for name in ("torso", "arm", "plate", "wheel", "rotor")),
        joint("base", "base", "torso", kind="floating"),
        joint("ball", "torso", "arm", "0.3 0.1 0", kind="spherical"),
        joint("slide", "torso", "plate", "0 0 0.4", kind="planar", rpy="0.3 0.2 0"),
        joint("wheel", "arm", "wheel", "0.2 0 0.1", axis="0.6 0.8 0"),
        joint("rotor", "arm", "rotor", "0.1 0 0.1", axis="0 1 0", mark=False),
        coupling("gear", {"rotor": 1.0, "wheel": -6.0}),
    )
    return rm.load(text)


def tethered(kind: str) -> rm.Model:
    """A body on a ball joint, or afloat, held by a rod; the freedoms are some of the joint's."""
    return rm.load(
        robot(
            link("body"),
            joint("hold", "base", "body", kind=kind),
            loop("tether", "rod", "base", "body", "0.2 0.3 0.9", "0.4 0.1 0.2", "", 'length="0.8"'),
        )
    )


MANY = {
    "tumbling": tumbling,
    "tethered ball": lambda: tethered("spherical"),
    "tethered body": lambda: tethered("floating"),
    "mini cheetah": lambda: rm.robots.load("mini_cheetah"),
}


@pytest.mark.parametrize("case", MANY)
def test_any_freedoms_of_any_joints(case):
    """Each freedom by its name, in any split: what inverse dynamics says comes back."""
    model = MANY[case]()
    rng, q, v, a = state(model, 5, 3)
    tau = rm.rnea(model, q, v, a, backend="numpy")
    for _ in range(6):
        known = [n for n in model.dof_names if rng.random() < 0.5]
        forces = {n: tau[:, i] for i, n in enumerate(model.dof_names) if n not in known}
        given = {n: a[:, i] for i, n in enumerate(model.dof_names) if n in known}
        got = rm.hybrid(model, q, v, tau=forces, a=given, backend="numpy")
        assert np.max(np.abs(got[0] - tau)) <= 1e-12 * np.max(np.abs(tau))
        assert np.max(np.abs(got[1] - a)) <= 1e-12 * np.max(np.abs(a))


@pytest.mark.slow
@pytest.mark.parametrize("case", MANY)
def test_joints_of_several_freedoms_as_a_whole(case):
    """By joint or by its freedoms, as a function or as a kernel: the same."""
    model = MANY[case]()
    _, q, v, a = state(model, 6, 3)
    tau = rm.rnea(model, q, v, a, backend="numpy")
    names = list(dict.fromkeys(n.rpartition(".")[0] or n for n in model.dof_names))
    for chosen in names[:3]:
        dofs = [i for i, n in enumerate(model.dof_names) if (n.rpartition(".")[0] or n) == chosen]
        if len(dofs) == 1:
            continue
        rest = {n: tau[:, i] for i, n in enumerate(model.dof_names) if i not in dofs}
        whole = rm.hybrid(model, q, v, tau=rest, a={chosen: a[:, dofs]})
        parts = {model.dof_names[i]: a[:, i] for i in dofs}
        for x, y in zip(whole, rm.hybrid(model, q, v, tau=rest, a=parts), strict=True):
            np.testing.assert_array_equal(x, y)
        slow = rm.hybrid(model, q, v, tau=rest, a=parts, backend="numpy")
        given = tau.copy()
        given[:, dofs] = a[:, dofs]
        kernel = rm.compile(model, "hybrid", known=chosen)
        assert kernel is rm.compile(model, "hybrid", known=list(parts))
        for x, y, z, wanted in zip(whole, kernel(q, v, given), slow, (tau, a), strict=True):
            np.testing.assert_array_equal(x, y)
            np.testing.assert_allclose(z, x, rtol=0, atol=1e-12 * np.max(np.abs(x)))
            np.testing.assert_allclose(x, wanted, rtol=0, atol=1e-12 * np.max(np.abs(wanted)))


@pytest.mark.slow
def test_the_height_of_a_base_alone():
    """What is not named of a floating base is not pushed."""
    model = rm.robots.load("mini_cheetah")
    _, q, v, _ = state(model, 7, 1)
    height = model.floating_base + ".vz"
    legs = dict.fromkeys(model.dof_names[6:], 0.3)
    tau, a = rm.hybrid(model, q[0], v[0], tau=legs, a={height: 1.5}, backend="numpy")
    assert a[5] == 1.5
    np.testing.assert_array_equal(tau[:5], 0.0)
    np.testing.assert_array_equal(tau[6:], 0.3)
    assert tau[5] != 0.0
    np.testing.assert_allclose(rm.aba(model, q[0], v[0], tau), a, rtol=0, atol=1e-9)


def test_parts_that_are_not_there():
    model, v = tethered("spherical"), np.zeros(2)
    q = model.neutral()
    dependent = next(f"hold.{n}" for n in range(3) if f"hold.{n}" not in model.dof_names)
    with pytest.raises(ValueError, match=f"'{dependent}' is no independent joint: it depends"):
        rm.hybrid(model, q, v, a={dependent: 0.0})
    with pytest.raises(ValueError, match="neither force nor acceleration of 'hold"):
        rm.hybrid(model, q, v, a={model.dof_names[0]: 0.0})
    with pytest.raises(ValueError, match=r"'hold\.0' is given twice"):
        rm.hybrid(model, q, v, a={"hold": np.zeros(2)}, tau={"hold.0": 1.0})
    free = tumbling()
    with pytest.raises(ValueError, match=r"there is none; did you mean 'base.vz'"):
        rm.compile(free, "hybrid", known=["base.vzz"])
    with pytest.raises(TypeError, match="a maps names to numbers, not ndarray"):
        rm.hybrid(model, q, v, a=np.zeros(2))
    with pytest.raises(ValueError, match=r"do not broadcast: .*hold.0 \(3,\)"):
        rm.hybrid(model, q, v, a={"hold.0": np.zeros(3), model.dof_names[1]: np.zeros(2)})


def test_a_floating_base_left_out_is_free():
    model = rm.robots.load("mini_cheetah")
    _, q, v, a = state(model, 3, 1)
    joints = {n: a[0, i] for i, n in enumerate(model.dof_names) if "." not in n}
    tau, rates = rm.hybrid(model, q[0], v[0], a=joints, backend="numpy")
    np.testing.assert_array_equal(tau[:6], 0.0)
    np.testing.assert_allclose(rm.aba(model, q[0], v[0], tau, backend="numpy"), rates, atol=1e-9)
