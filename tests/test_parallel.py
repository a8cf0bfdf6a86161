"""Hinges about parallel axes that leave internal axes unturned: the same robot, fewer turns."""

from __future__ import annotations

import numpy as np
import pytest
from cases import few
from loaded import load
from mechanisms import KINDS, random_mechanism
from test_normals import poses
from test_regroup import FULL, SPUN, check, operations, states
from test_variations import compare
from texts import coupling, joint, link, robot

import robomodel as rm
from robomodel.dynamics.algorithms import Task
from robomodel.dynamics.tracing import trace
from robomodel.model.variants.normals import on_common_normals
from robomodel.model.variants.parallel import unturned
from robomodel.model.variants.regroup import regrouped

SKEW = {"rpy": "0.4 -0.3 0.7"}


def planar(*more: str, axes: tuple[str, str, str] = ("0 1 0", "0 1 0", "0 1 0")) -> str:
    """Three parallel hinges, with what hangs on the links a, b and c."""
    return robot(
        *(link(name, FULL) for name in "abc"),
        joint("first", "base", "a", "0.1 0.2 0.3", axis=axes[0], **SKEW),
        joint("second", "a", "b", "0.3 -0.1 0.2", axis=axes[1]),
        joint("third", "b", "c", "0.2 0.1 -0.4", axis=axes[2]),
        *more,
    )


def on(parent: str, kind: str, axis: str = "0 1 0", more: str = "") -> tuple[str, str]:
    name = f"{kind}_{parent}"
    at = {"xyz": "0.1 0.3 -0.2", **SKEW}
    return link(name, FULL), joint(f"j_{name}", parent, name, kind=kind, axis=axis, more=more, **at)


TEXTS = {
    "alone": planar(),
    "opposite": planar(axes=("0 1 0", "0 -1 0", "0 1 0")),
    "about different axes": planar(axes=("0 1 0", "0 1 0", "1 0 0")),
    "turned on the way": planar(
        *(link("d", FULL), joint("fourth", "c", "d", "0.1 0.1 0.1", axis="1 0 0", rpy="0 0 1.5708"))
    ),
    "what hangs on them": planar(
        *on("a", "spherical"),
        *on("a", "prismatic", more='<limit effort="1" velocity="1" lower="-1" upper="1"/>'),
        *on("b", "planar"),
        *on("b", "screw", more='<pitch value="0.05"/>'),
        *on("c", "floating"),
        *on("c", "continuous", "0.6 0 0.8"),
    ),
    "geared": planar(
        link("rotor", SPUN),
        link("other", SPUN),
        joint("spin", "a", "rotor", "0.1 0.2 0.3", axis="0 1 0"),
        joint("spin_other", "b", "other", "0.1 0.2 0.3", axis="0 1 0", **SKEW),
        coupling("gear", {"second": -7.0, "spin": 1.0}),
        coupling("gear_other", {"third": 5.0, "spin_other": 1.0}),
    ),
}


def same(model: rm.Model, q: np.ndarray) -> None:
    tree = unturned(model)
    both = [tree, regrouped(unturned(on_common_normals(model)), spread=True)]
    check(model, q, both)
    for found in both:
        np.testing.assert_allclose(poses(found, q), poses(model, q), rtol=0, atol=1e-12)
        compare(found, q, pushed=False)
    at = [{"q": x.tolist(), "v": np.linspace(-1, 1, model.nv).tolist()} for x in q]
    for name in ("energy", "centroidal_momentum", "center_of_mass"):
        for x in at:
            own, seen = (np.array(Task(name).run(m, x), dtype=float) for m in (model, tree))
            np.testing.assert_allclose(seen, own, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", few(rm.robots.names(), "belt_leg", "mit_humanoid_leg"))
def test_shipped_robots(name: str) -> None:
    model = rm.robots.load(name)
    same(model, states(model)[:2])


@pytest.mark.parametrize(
    ("name", "base"),
    few(
        [*((name, False) for name in TEXTS), ("alone", True), ("geared", True)],
        *(("alone", False), ("opposite", False), ("geared", False), ("alone", True)),
    ),
)
def test_parallel_hinges(name: str, base: bool) -> None:
    text = TEXTS[name].replace('<link name="base"/>', link("base", FULL) if base else link("base"))
    model = rm.load(text, floating_base=base, gravity=(1.0, -2.0, 3.0))
    marked = {node.name for node in unturned(model).nodes if node.unturned}
    assert marked == ({"a", "b"} if name == "about different axes" else set("abc"))
    same(model, states(model))


@pytest.mark.parametrize("kind", few(KINDS, "gear", "mimic", "coupling", "rod_four_bar", "rod"))
def test_every_kind_of_mechanism(kind: str) -> None:
    for seed in range(10):
        loaded = load(random_mechanism(np.random.default_rng([seed, 8]), [kind], n_joints=2))
        if loaded is not None:
            same(loaded[0], loaded[1][None])
            return
    pytest.fail("no mechanism of this kind moves")


def test_springs_keep_axes() -> None:
    strap = (
        '<spring name="strap" stiffness="40" length="0.2"><predecessor link="base"/>'
        '<successor link="c"><origin xyz="-0.1 0.3 0.1"/></successor></spring>'
    )
    model = rm.load(planar(strap))
    assert {node.name for node in unturned(model).nodes if node.unturned} == {"a", "b"}
    q, (v, x) = states(model), np.random.default_rng(5).standard_normal((2, 3, model.nv))
    for algorithm in ("rnea", "aba"):
        run = getattr(rm, algorithm)
        own, found = (run(model, q, v, x, passive=True, backend=b) for b in ("numpy", "compiled"))
        np.testing.assert_allclose(found, own, rtol=1e-10, atol=1e-11 * np.max(np.abs(own)))


def test_given_forces_and_accelerations() -> None:
    model = rm.load(planar(*on("c", "spherical")))
    q = states(model)
    given = {"tau": {"first": 1.0, "third": -2.0, "j_spherical_c": [0.3, -0.1, 0.2]},
             "a": {"second": 0.7}}  # fmt: skip
    v, push = np.linspace(-1, 1, model.nv), {"b": np.array([1.0, -2.0, 0.5, 3.0, 0.3, -0.7])}
    own, found = (
        np.concatenate(rm.hybrid(model, q, v, f_ext=push, backend=backend, **given), axis=-1)
        for backend in ("numpy", "compiled")
    )
    np.testing.assert_allclose(found, own, rtol=1e-10, atol=1e-11 * np.max(np.abs(own)))


def test_fewer_operations_where_hinges_are_parallel() -> None:
    leg = rm.robots.load("mit_humanoid_leg")
    axes = regrouped(on_common_normals(leg), spread=False)
    assert trace(leg, Task("aba")).flops < 0.9 * operations(axes, "aba")
    arm = rm.robots.load("puma560")
    assert trace(arm, Task("rnea_derivatives")).flops <= 1200
    # of q2, q3, q4 and q5: how it turns about the vertical, and its last joint, do not matter
    assert trace(arm, Task("aba")).counts["sin"] == 4


@pytest.mark.parametrize("turns", [1e3, 1e6, 1e12])
def test_angles_of_any_size(turns: float) -> None:
    """Neither sums of angles nor angles with offsets are rounded: each angle counts as it is."""
    leg = rm.robots.load("mit_humanoid_leg")
    for model in (leg, rm.robots.chain("plain", 4, rng=np.random.default_rng(2))):
        tree = regrouped(unturned(on_common_normals(model)), spread=True)
        q = states(model) + 2 * np.pi * turns
        at = {"q": list(q.T), "v": [1.0] * model.nv, "a": [0.5] * model.nv}
        own, found = (np.array(Task("rnea").run(m, at)) for m in (model, tree))
        np.testing.assert_allclose(found, own, rtol=0, atol=1e-13 * np.max(np.abs(own)))


def test_none_are_parallel() -> None:
    model = rm.robots.load("jvrc1")
    assert unturned(model) is model
