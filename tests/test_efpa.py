"""Inverse operational-space inertia: against J M⁻¹ Jᵀ, and against what wrenches do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import shipped_robots as shipped
from agreement import relative
from cases import few
from mechanisms import KINDS, random_mechanism
from numpy.typing import NDArray
from shipped_robots import DISTINCT
from texts import joint, link, robot

import robomodel as rm
from robomodel.dynamics.functions.contact import MANY_FRAMES
from robomodel.dynamics.kinematics import frames
from robomodel.dynamics.recursions.efpa import efpa
from robomodel.kernels import Trace

Array = NDArray[np.float64]
FEET = [f"{leg}_foot_contact" for leg in ("FR", "FL", "HR", "HL")]
TIGHT = 1e-11


def projected(model: rm.Model, q: Array, places: list) -> tuple[Array, float]:
    """J M⁻¹ Jᵀ, and what rounding the mass matrix does to it."""
    j = np.concatenate([rm.jacobian(model, q, at, backend="numpy") for at in places], axis=-2)
    mass = rm.crba(model, q, backend="numpy")
    return j @ np.linalg.solve(mass, np.swapaxes(j, -1, -2)), float(np.max(np.linalg.cond(mass)))


def some_frames(model: rm.Model, rng: np.random.Generator, count: int) -> list:
    """Frames on random links, one of them twice, with and without offsets."""
    names = [model.frames[i].name for i in rng.integers(0, len(model.frames), count)]
    names.append(model.bodies[-1].name)
    points = [(name, tuple(rng.uniform(-0.5, 0.5, 3))) for name in names[: count // 2 + 1]]
    return [*names, *points]


def check(model: rm.Model, q: Array, places: list) -> None:
    found = rm.efpa(model, q, places, backend="numpy")
    expected, condition = projected(model, q, places)
    assert relative(found, expected) < max(TIGHT, 1e-15 * condition)
    np.testing.assert_array_equal(found, np.swapaxes(found, -1, -2))


@pytest.mark.slow_cases("mini_cheetah")
@pytest.mark.parametrize("name", shipped.ROBOTS)
def test_shipped_robots(name: str) -> None:
    model = rm.robots.load(name)
    rng = np.random.default_rng(1)
    q = np.array([model.random_configuration(rng, base_pose="random") for _ in range(20)])
    check(model, q, [body.name for body in model.bodies])  # every body, rotors and rods included
    for count in (1, 2, 5):
        check(model, q, some_frames(model, rng, count))


def loaded(kind: str, seed: int, n_joints: int) -> rm.Model | None:
    mechanism = random_mechanism(
        np.random.default_rng([seed, len(kind)]), [kind], n_joints=n_joints
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        try:
            return rm.load(mechanism.text, floating_base=mechanism.floating_base or None)
        except rm.DescriptionError as error:
            if "mobility 0" not in str(error):
                raise
            return None


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", few([*KINDS, "tether"], "gear", "rod_four_bar", "rod", "rssr", "two_outputs")
)
def test_random_mechanisms(kind: str) -> None:
    tried = 0
    for seed in range(3):
        model = loaded(kind, seed, n_joints=3 + 2 * seed)
        if model is None or model.nv == 0:
            continue
        tried += 1
        rng = np.random.default_rng(seed)
        q = model.random_configuration(rng, base_pose="random")
        check(model, q, [body.name for body in model.bodies])
        check(model, q, some_frames(model, rng, 3))
    assert tried


@pytest.mark.slow
def test_clusters_that_hang_on_several_bodies() -> None:
    """Their unknowns wait for the parent cluster's elimination; so do their frames' propagators."""
    seen = 0
    for seed in range(12):
        model = loaded("two_outputs", seed, n_joints=9)
        if model is None or not any(len(c.outputs) > 1 for c in model.clusters):
            continue
        seen += 1
        rng = np.random.default_rng(seed)
        waiting = [c for c in model.clusters if len(c.outputs) > 1]
        on_them = [model.bodies[b].name for c in waiting for b in c.bodies]
        corners = [(name, tuple(rng.uniform(-0.5, 0.5, 3))) for name in on_them for _ in range(3)]
        check(
            model,
            model.random_configuration(rng, base_pose="random"),
            [*corners, *some_frames(model, rng, 4)],
        )
    assert seen >= 3


@pytest.mark.slow_cases("mini_cheetah")
@pytest.mark.parametrize(
    "name",
    few(["mini_cheetah", "planar_leg_linkage", "tello"], "mini_cheetah", "planar_leg_linkage"),
)
def test_projection_gives_the_same(name: str) -> None:
    model = rm.robots.load(name)
    rng = np.random.default_rng(6)
    q = model.random_configuration(rng)
    places = some_frames(model, rng, 4)
    expected = rm.efpa(model, q, places, backend="numpy")
    found = rm.efpa(model, q, places, method="projection", backend="numpy")
    assert relative(found, expected) < TIGHT


def test_columns_are_the_accelerations_that_unit_wrenches_make() -> None:
    model = rm.robots.load("mini_cheetah")
    rng = np.random.default_rng(2)
    q, v = model.random_configuration(rng), rng.standard_normal(model.nv)
    tau = rng.standard_normal(model.nv)
    places = ["FR_foot_contact", "HL_knee_rotor", "Floating Base"]
    free = rm.aba(model, q, v, tau)
    inverse = rm.efpa(model, q, places, backend="numpy")
    jacobians = [rm.jacobian(model, q, at, backend="numpy") for at in places]
    for n, place in enumerate(places):
        for i in range(6):
            pushed = rm.aba(model, q, v, tau, f_ext={place: np.eye(6)[i]}, backend="numpy")
            moved = [jacobian @ (pushed - free) for jacobian in jacobians]
            assert relative(np.concatenate(moved), inverse[:, 6 * n + i]) < 1e-9


@pytest.mark.slow
def test_a_chain_of_many_frames_and_branches() -> None:
    """Propagators that meet on trunks deep inside, several times over, and frames on the way."""
    rng = np.random.default_rng(3)
    parts = [link("t0", ""), joint("still", "base", "t0", kind="fixed")]
    where = {"t": 9, "a": 4, "b": 5, "c": 3}
    hangs = {"t": "t0", "a": "t9", "b": "t9", "c": "b2"}
    for tag, count in where.items():
        for i in range(1, count + 1):
            parent = hangs[tag] if i == 1 else f"{tag}{i - 1}"
            at, rpy, axis = (" ".join(map(str, x)) for x in rng.uniform(-1, 1, (3, 3)))
            parts += [
                link(f"{tag}{i}"),
                joint(f"{tag}{i}", parent, f"{tag}{i}", at, axis=axis, rpy=rpy),
            ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DescriptionWarning)
        model = rm.load(robot(*parts))
    places = ["a4", "b5", "c3", ("c3", (0.1, 0.2, 0.3)), ("c3", (0, 0, 1)), "b2", "t9", "t5", "t0"]
    for end in (len(places), 3, 2):
        check(model, model.random_configuration(rng), places[:end])
    check(model, model.random_configuration(rng), places[::-1])


def test_frames_on_the_world_and_no_frames() -> None:
    model = rm.load(
        robot(link("a"), link("b"), joint("j", "base", "a"), joint("k", "a", "b", "0.3 0 0"))
    )
    q = np.zeros((3, 2))
    inverse = rm.efpa(model, q, ["b", ("base", (1, 2, 3))])
    assert not inverse[:, 6:].any()
    assert not inverse[:, :, 6:].any()
    assert np.all(inverse[:, 2, 2] > 0)
    assert not rm.efpa(model, q, "base").any()
    assert rm.efpa(model, q, []).shape == (3, 0, 0)


@pytest.mark.slow_cases("mini_cheetah")
@pytest.mark.parametrize("name", few(DISTINCT, "belt_leg", "four_bar", "mini_cheetah"))
def test_compiled_equals_numpy(name: str) -> None:
    model = rm.robots.load(name)
    rng = np.random.default_rng(4)
    q = np.array([model.random_configuration(rng) for _ in range(11)])
    places = some_frames(model, rng, 2)
    expected = rm.efpa(model, q, places, backend="numpy")
    assert relative(rm.efpa(model, q, places), expected) < 1e-13
    kernel = rm.compile(model, "efpa", frames=places)
    np.testing.assert_array_equal(kernel(q), rm.efpa(model, q, places))


@pytest.mark.slow
def test_what_counts_as_one_frame() -> None:
    model = rm.robots.load("belt_leg")
    q = model.neutral()
    foot, other = (body.name for body in model.bodies[-2:])
    assert rm.efpa(model, q, foot).shape == (6, 6)
    point = rm.efpa(model, q, (foot, np.array([0.1, 0, 0])))
    np.testing.assert_array_equal(point, rm.efpa(model, q, [(foot, [0.1, 0, 0])]))
    assert rm.efpa(model, q, (foot, other)).shape == (12, 12)
    assert rm.efpa(model, q, (foot, (other, (0, 0, 0)))).shape == (12, 12)
    assert rm.efpa(model, q, ((foot, (0, 0, 0)), other)).shape == (12, 12)
    assert rm.compile(model, "efpa", frames=(foot, (0, 0, 1)))(q).shape == (6, 6)
    assert rm.compile(model, "jacobian", frame=(foot, (0, 0, 1)))(q).shape == (6, model.nv)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", few(["mini_cheetah", "tello", "planar_leg_linkage", "four_bar"], "four_bar")
)
def test_many_frames_are_compiled_in_their_number_not_its_square(name: str) -> None:
    """Beyond some frames the matrix is a product of what the kernel gives; both ways agree."""
    model = rm.robots.load(name)
    rng = np.random.default_rng(3)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    places = (some_frames(model, rng, 6) * 2)[:MANY_FRAMES]
    kernel = rm.compile(model, "efpa", frames=places)
    assert relative(rm.efpa(model, q, places), kernel(q)) == 0.0
    more = [*places, *places[:2]]
    for backend in ("compiled", "numpy"):
        found = rm.efpa(model, q[:, None], more, backend=backend)
        assert found.shape == (3, 1, 6 * len(more), 6 * len(more))
        np.testing.assert_array_equal(found, np.swapaxes(found, -1, -2))
        assert relative(found[:, 0, : 6 * MANY_FRAMES, : 6 * MANY_FRAMES], kernel(q)) < TIGHT
        assert (
            relative(found[:, 0, 6 * MANY_FRAMES :, : 6 * MANY_FRAMES], kernel(q)[:, :12]) < TIGHT
        )
    points = rm.impulse(model, q, rng.standard_normal((3, model.nv)), more)[1]
    assert points.shape == (3, len(more), 3)


@pytest.mark.slow
def test_sixty_five_frames_end() -> None:
    model = rm.robots.load("mini_cheetah")
    places = [(FEET[i % 4], (0.01 * i, 0.0, 0.0)) for i in range(65)]
    steps = len(rm.compile(model, "efpa_factors", frames=places).program.steps)
    few = len(rm.compile(model, "efpa_factors", frames=places[:13]).program.steps)
    assert steps < 5 * few
    check(model, model.neutral()[None], places)


def operations(model: rm.Model, places: list) -> int:
    trace = Trace()
    found = efpa(model, trace.inputs(model.nq), [frames.place(model, at) for at in places])
    return trace.program([x for row in found for x in row]).fused().flops


@pytest.mark.slow
def test_cost_is_linear_in_depth_and_points_of_one_body_are_cheap() -> None:
    def chain(count: int) -> rm.Model:
        names = ["base", *(f"l{i}" for i in range(1, count + 1))]
        joints = [
            joint(f"j{i}", names[i], names[i + 1], "0.1 0.2 0.3", axis="0 1 0", rpy="0.1 0.2 0.3")
            for i in range(count)
        ]
        return rm.load(robot(*(link(name) for name in names[1:]), *joints))

    models = {n: chain(n) for n in (10, 20, 30)}
    for points in (1, 4):
        cost = {
            n: operations(model, [(f"l{n}", (0.1 * i, 0.2, 0.3)) for i in range(points)])
            for n, model in models.items()
        }
        assert cost[30] - cost[20] == cost[20] - cost[10]
    one, four = (
        operations(models[30], [("l30", (0.1 * i, 0.2, 0.3)) for i in range(k)]) for k in (1, 4)
    )
    assert four < 1.1 * one
    cheetah = rm.robots.load("mini_cheetah")
    corners = [(foot, (x, 0.01, 0)) for foot in FEET for x in (-0.02, 0.0, 0.02)]
    assert operations(cheetah, corners) < 2 * operations(cheetah, FEET)


def test_casadi_runs_the_same_source() -> None:
    pytest.importorskip("casadi")
    model = rm.robots.load("planar_leg_linkage")
    q = model.random_configuration(5)
    places = [model.bodies[-1].name, (model.bodies[0].name, (0.1, 0.2, 0.3))]
    function = rm.to_casadi(model, "efpa", frames=places)
    expected = rm.efpa(model, q, places)
    assert relative(np.array(function(q)), expected) < 1e-13
