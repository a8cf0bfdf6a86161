"""What is no state, told in words: open loops, quaternions, numbers that are none; and limits."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from shipped_robots import ROBOTS
from texts import coupling, four_bar, joint, link, robot

import robomodel as rm


@pytest.mark.parametrize("name", ROBOTS)
def test_closed_configurations_are_states(name: str) -> None:
    model = rm.robots.load(name)
    rng = np.random.default_rng(0)
    q = np.array([model.neutral(), *(model.random_configuration(rng) for _ in range(3))])
    assert model.check(q, rng.standard_normal((4, model.nv))) == ()
    assert model.check(q[0]) == ()
    moved = model.integrate(q, 0.1 * rng.standard_normal((4, model.nv)))
    assert model.check(moved) == ()


def test_open_loops_are_told_with_their_joints() -> None:
    model = rm.load(four_bar())
    q = model.neutral()
    off = q + np.array([0.0, 0.02, 0.0])
    with pytest.raises(rm.errors.ClosureError) as caught:
        model.check(off)
    error = caught.value
    assert str(error).startswith(
        "q is no configuration of 'test': loop 'closing' of joints 'j_crank', 'j_coupler', "
        "'j_rocker' is open by "
    )
    assert "model.close(q)" in str(error)
    assert error.loops == ("closing",)
    assert error.residual == pytest.approx(np.max(np.abs(model.residual(off))))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    model.check(model.close(off))
    model.check(q + np.array([0.0, 1e-6, 0.0]), tolerance=1e-4)
    with pytest.raises(rm.errors.ClosureError, match=r"at state 2, 1 and 1 more"):
        model.check(np.array([[q, q], [q, q], [q, off], [q, off]]))


def test_couplings_beside_loops_are_told() -> None:
    text = four_bar(
        link("rotor"),
        joint("j_rotor", "base", "rotor", mark=False),
        coupling("gear", {"j_rotor": 1.0, "j_crank": -9.7}, offset=0.3),
        marks=(True, False, False),
    )
    model = rm.load(text)
    q = model.configuration({"j_crank": 0.3})
    q[model.joint_names.index("j_rotor")] += 0.01
    with pytest.raises(
        rm.errors.ClosureError, match=r"coupling 'gear' of joints .* fails by 0\.01;"
    ):
        model.check(q)
    turned = model.integrate(model.neutral(), [40 * np.pi])  # rounding grows with what is turned
    model.check(turned)


def test_quaternions_that_are_none() -> None:
    model = rm.load(
        robot(
            *(link(name) for name in ("torso", "arm")),
            joint("free", "base", "torso", kind="floating"),
            joint("ball", "torso", "arm", kind="spherical"),
        )
    )
    good = model.random_configuration(0)
    for part, name in ((slice(3, 7), "free"), (slice(7, 11), "ball")):
        for factor, told in ((0.0, "is zero"), (1.001, "has length 1.001, not 1")):
            q = good.copy()
            q[part] *= factor
            with pytest.raises(ValueError, match=f"quaternion of joint '{name}' {told}") as caught:
                model.check(q)
            assert not isinstance(caught.value, rm.errors.ClosureError)
            with pytest.raises(ValueError, match=f"'{name}' {told} at state 1"):
                model.check(np.array([good, q, good]))
            with pytest.raises(ValueError, match=told):
                rm.simulate(model, q, duration=0.1)
            with pytest.raises(ValueError, match=told):
                rm.rollout(model, q, np.zeros(model.nv), np.zeros((2, model.nv)), 0.01)
    model.check(-good)  # the other quaternion of the same rotations, and elsewhere


def test_numbers_that_are_none_are_told_by_name() -> None:
    model = rm.robots.load("mini_cheetah")
    q, v = model.neutral(), np.zeros(model.nv)
    for place, label in ((2, "Floating Base_joint.z"), (6, "Floating Base_joint.qw")):
        bad = q.copy()
        bad[place] = np.nan
        with pytest.raises(ValueError, match=rf"q is not finite: '{label}' is nan$"):
            model.check(bad)
    bad = np.tile(v, (3, 1))
    bad[1, 6] = -np.inf
    with pytest.raises(ValueError, match="v is not finite: 'HR_abad_link_joint' is -inf at"):
        model.check(q, bad)
    for wrong in (q[:-1], "q", q + 1j):
        with pytest.raises(ValueError, match=r"^q (needs|must be)"):
            model.check(wrong)


def test_limits_are_told_and_do_not_refuse() -> None:
    more = '<limit lower="-0.5" upper="0.8" velocity="2"/>'
    text = robot(
        *(link(name) for name in ("one", "two")),
        joint("a", "base", "one", kind="revolute", more=more),
        joint("b", "base", "two", kind="revolute",
              more='<limit lower="-3" upper="0.9"/><mimic joint="a" multiplier="2"/>'),
    )  # fmt: skip
    model = rm.load(text)
    assert model.check([0.4], [2.0]) == ()
    follower, own, fast = model.check([[0.1], [0.85], [0.9]], [[0.0], [-1.0], [-5.0]])[::-1]
    (own, fast, follower) = sorted((follower, own, fast), key=lambda x: (x.joint, x.quantity))
    assert (own.joint, own.quantity, own.value, own.limit, own.states) == (
        "a", "position", 0.9, 0.8, 2,
    )  # fmt: skip
    assert str(own) == "the position of joint 'a', 0.9, is above its limit 0.8 (2 states)"
    assert str(fast) == "the velocity of joint 'a', -5, is below its limit -2"
    assert str(follower) == "the position of joint 'b', 1.8, is above its limit 0.9 (2 states)"
    rm.aba(model, [0.9], [0.0], [0.0], check=True)


# ---- the functions -------------------------------------------------------------------------------

STATE = {"q", "v", "a", "tau", "w", "velocities"}
OWN_CHECKS = (  # other arguments, or motions and logs, which are checked by themselves
    "accelerations", "filtered_regressor", "identify", "joint_range", "rollout", "simulate"
)  # fmt: skip


def calls(model: rm.Model) -> dict[str, dict[str, object]]:
    """Every public function with ``check``: the arguments that it needs."""
    link, free = model.bodies[-1].name, np.zeros(model.nv)
    wanted = {
        "kp": np.ones(len(model.actuators)), "kd": np.ones(len(model.actuators)),
        "frame": link, "frames": link, "q": model.neutral(), "v": free, "a": free, "tau": free,
        "w": free, "joints": model.dof_names,
    }  # fmt: skip
    found = {}
    for name in rm.__all__:
        function = getattr(rm, name)
        if not callable(function) or isinstance(function, type):
            continue
        parameters = inspect.signature(function).parameters
        if "q" in parameters and name not in OWN_CHECKS:
            assert "check" in parameters, name
            needed = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
            found[name] = {p: wanted[p] for p in needed if p != "model"}
    every = np.zeros(model.n_joint_velocities)  # not of independent joints only
    found["accelerations"] = {"q": wanted["q"], "velocities": every, "tau": every}
    found["hybrid"] = {"q": wanted["q"], "v": free, "a": dict.fromkeys(model.dof_names, 0.0)}
    return found


@pytest.mark.slow
def test_every_function_can_be_asked_to_check() -> None:
    model = rm.robots.load("four_bar")
    functions = calls(model)
    assert len(functions) >= 17
    for name, arguments in functions.items():
        function = getattr(rm, name)
        plain = function(model, **arguments, backend="numpy")
        for backend in ("numpy", "compiled") if name in ("aba", "jacobian") else ("numpy",):
            checked = function(model, **arguments, backend=backend, check=True)
            several = isinstance(plain, tuple)
            for x, y in zip(*((z if several else (z,)) for z in (plain, checked)), strict=True):
                np.testing.assert_allclose(x, y, rtol=0, atol=1e-10)
            off = arguments | {"q": np.add(arguments["q"], [0.0, 0.1, 0.0])}
            assert function(model, **off, backend=backend) is not None  # as it always did
            with pytest.raises(rm.errors.ClosureError, match="loop 'loop' of joints"):
                function(model, **off, backend=backend, check=True)
            for bad in STATE & arguments.keys() - ({"a"} if name == "hybrid" else set()):
                wrong = arguments | {bad: np.full_like(arguments[bad], np.nan)}
                with pytest.raises(ValueError, match=f"^{bad} is not finite"):
                    function(model, **wrong, backend=backend, check=True)
    with pytest.raises(ValueError, match="given is not finite: 'joint1' is nan"):
        rm.hybrid(model, model.neutral(), [0.0], a={"joint1": np.nan}, check=True)


@pytest.mark.parametrize("kind", ["floating", "spherical"])
def test_every_function_refuses_a_zero_quaternion_alike(kind: str) -> None:
    """With ``check``; without, results are whatever the numbers give."""
    model = rm.load(robot(link("arm"), joint("free", "base", "arm", kind=kind)))
    for name, arguments in calls(model).items():
        q = np.where(np.arange(model.nq) < model.nq - 4, arguments["q"], 0.0)
        with pytest.raises(ValueError, match="quaternion") as caught:
            getattr(rm, name)(model, **arguments | {"q": q}, check=True)
        assert str(caught.value) == (
            "q is no configuration of 'test': the quaternion of joint 'free' is zero; "
            "model.close(q) or model.configuration(...) gives one"
        ), name
