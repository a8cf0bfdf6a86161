"""Every public function with arguments of all kinds: read-only, not finite, of the wrong type."""

from __future__ import annotations

import inspect
import math
import pickle
import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from rollouts import q_and_v

import robomodel as rm

Array = np.ndarray
Call = Callable[..., object]

METHODS = (
    "check", "close", "configuration", "constraint_bias", "constraint_jacobian",
    "constraint_matrix", "constraint_matrix_bias", "difference", "integrate",
    "joint_accelerations", "joint_positions", "joint_velocities", "random_configuration",
    "residual",
)  # fmt: skip
ARRAYS = {"q", "v", "a", "tau", "q0", "q1", "v_dt", "near", "guess"}
COUNT = 3
NO_ARRAYS = {"simulate", "hybrid", "identify", "base_parameters"}  # as results


@pytest.fixture(scope="module")
def model() -> rm.Model:
    return rm.robots.load("crank_rocker")


def arguments(model: rm.Model) -> dict[str, object]:
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(COUNT)])
    v = 0.1 * rng.standard_normal((COUNT, model.nv))
    return {
        "q": q, "v": v, "a": v, "tau": v, "q0": q, "q1": q, "v_dt": v, "near": q[0], "guess": q[0],
        "frame": "rocker", "frames": ["rocker"],
    }  # fmt: skip


def calls(model: rm.Model) -> dict[str, tuple[Call, dict[str, object]]]:
    """Functions of states by name, with the arguments that they need."""
    given, found = arguments(model), {}
    functions = {name: getattr(rm, name) for name in rm.__all__}
    functions = {name: f for name, f in functions.items() if inspect.isfunction(f)}
    functions |= {f"model.{name}": getattr(model, name) for name in METHODS}
    for name, function in functions.items():
        parameters = inspect.signature(function).parameters
        needed = [p.name for p in parameters.values() if p.default is p.empty]
        needed += [p for p in ("near", "guess") if p in parameters]
        if not ARRAYS.intersection(needed) or not given.keys() >= set(needed) - {"model"}:
            continue
        call = {p: given[p] for p in needed if p != "model"}
        if "model" in parameters:
            call["model"] = model
        if "backend" in parameters:
            call["backend"] = "numpy"
        if name not in NO_ARRAYS:
            found[name] = function, call
    return found


def flat(result: object) -> list[Array]:
    if isinstance(result, dict):
        return [np.asarray(x, dtype=float) for x in result.values()]
    results = result if isinstance(result, tuple) else (result,)
    return [np.asarray(x, dtype=float) for x in results]


def test_there_are_many(model: rm.Model) -> None:
    found = calls(model)
    assert {"rnea", "aba", "impulse", "energy", "model.close", "model.check"} <= found.keys()
    assert len(found) > 30


@pytest.mark.slow
def test_read_only_arrays_serve_and_stay_as_they_are(model: rm.Model) -> None:
    for name, (function, given) in calls(model).items():
        plain = flat(function(**given))
        frozen = {k: np.array(x) if isinstance(x, np.ndarray) else x for k, x in given.items()}
        kept = {k: x.copy() for k, x in frozen.items() if isinstance(x, np.ndarray)}
        for x in frozen.values():
            if isinstance(x, np.ndarray):
                x.flags.writeable = False
        if name == "model.random_configuration":
            continue
        for x, y in zip(plain, flat(function(**frozen)), strict=True):
            np.testing.assert_array_equal(x, y, err_msg=name)
        lists = {k: x.tolist() if isinstance(x, np.ndarray) else x for k, x in given.items()}
        for x, y in zip(plain, flat(function(**lists)), strict=True):
            np.testing.assert_array_equal(x, y, err_msg=name)
        for k, x in kept.items():
            np.testing.assert_array_equal(frozen[k], x, err_msg=name)


@pytest.mark.slow
def test_batches_without_states(model: rm.Model) -> None:
    for name, (function, given) in calls(model).items():
        if name in ("model.check", "model.configuration", "model.random_configuration"):
            continue
        none = {k: x[:0] if k in ARRAYS else x for k, x in given.items()}
        for x, y in zip(flat(function(**given)), flat(function(**none)), strict=True):
            assert y.shape == (0, *x.shape[1:]), name


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e200])
def test_a_row_that_is_not_finite_is_its_own_matter(model: rm.Model, bad: float) -> None:
    for name, (function, given) in calls(model).items():
        if name in ("model.check", "model.configuration", "model.random_configuration"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            plain = flat(function(**given))
            for argument in ARRAYS & given.keys():
                wrong = np.array(given[argument])
                wrong[1] = bad
                for x, y in zip(plain, flat(function(**given | {argument: wrong})), strict=True):
                    told = f"{name}, {argument}"
                    np.testing.assert_allclose(y[[0, 2]], x[[0, 2]], 1e-9, 1e-12, err_msg=told)


WRONG = {
    "text": "abc",
    "texts": ["1"] * 3,
    "complex": np.zeros(3) + 1j,
    "object": [object()] * 3,
    "mapping": {"a": 1.0},
    "function": lambda *_: np.zeros(3),
    "scalar": 1.0,
    "short": np.zeros((COUNT, 0)),
    "long": np.zeros((COUNT, 99)),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_array_of_numbers_is_told_by_name(model: rm.Model, kind: str) -> None:
    for function, given in calls(model).values():
        for argument in ARRAYS & given.keys():
            told = rf"^{argument} (must be real numbers|needs n[qv] =)"
            with pytest.raises(ValueError, match=told):
                function(**given | {argument: WRONG[kind]})


@pytest.mark.parametrize("kind", ["text", "texts", "complex", "object", "mapping", "masked"])
def test_contacts_want_numbers(model: rm.Model, kind: str) -> None:
    wrong = WRONG.get(kind, np.ma.array(np.ones(3), mask=[True, False, False]))
    q, v = model.neutral(), np.zeros(model.nv)
    for name in ("normals", "friction", "restitution"):
        with pytest.raises(ValueError, match=rf"^{name} must be real numbers"):
            rm.impulse(model, q, v, "rocker", unilateral=True, **{name: wrong})
        if name != "restitution":
            with pytest.raises(ValueError, match=rf"^{name} must be real numbers"):
                rm.contact_aba(model, q, v, v, "rocker", **{name: wrong})
    with pytest.raises(ValueError, match=r"^tolerance must be a number"):
        rm.impulse(model, q, v, "rocker", tolerance=wrong)
    with pytest.raises(ValueError, match=r"^'crank_joint' must be real numbers"):
        rm.hybrid(model, q, v, tau={"crank_joint": wrong}, backend="numpy")
    with pytest.raises(ValueError, match=r"^height must be real numbers"):
        rm.Ground(height=wrong)
    with pytest.raises(ValueError, match=r"^what the controller gives must be real numbers"):
        rm.simulate(model, q, tau=lambda *_: wrong, duration=0.1)


def test_masked_numbers_are_refused_and_plain_ones_taken(model: rm.Model) -> None:
    """A kernel would compute with what is under the mask."""
    q, v = np.tile(model.neutral(), (3, 1)), np.zeros((3, model.nv))
    hidden = np.ma.array(v, mask=[[True], [False], [False]])
    for backend in ("compiled", "numpy"):
        for _ in range(2):  # the second time the kernel is there
            with pytest.raises(ValueError, match=r"^v must be real numbers, and some are masked"):
                rm.aba(model, q, hidden, v, backend=backend)
            found = rm.aba(model, q, np.ma.array(v), v, backend=backend)
            assert type(found) is np.ndarray
            np.testing.assert_array_equal(found, rm.aba(model, q, v, v, backend=backend))
    with pytest.raises(TypeError, match="takes plain arrays"):
        rm.compile(model, "aba")(q, hidden, v)


def test_unknown_names_are_wrong_arguments_and_missing_keys() -> None:
    model = rm.robots.load("crank_rocker")
    q, v = model.neutral(), np.zeros(1)
    calls = (
        lambda: rm.jacobian(model, q, "rokker"),
        lambda: rm.efpa(model, q, [("rokker", (0, 0, 0))]),
        lambda: rm.aba(model, q, v, v, f_ext={"rokker": np.zeros(6)}),
        lambda: model.configuration({"rokker_joint": 0.0}),
        lambda: rm.torque_polytope(model, q, ["crank_jint"]),
    )
    for call in calls:
        with pytest.raises(rm.errors.UnknownNameError, match="did you mean '") as caught:
            call()
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, KeyError)
        assert str(caught.value) == caught.value.args[0]
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m, q: rm.mass_matrix, AttributeError, "write rm.crba(model, …)"),
        (lambda m, q: rm.forward_kinematics, AttributeError, "write rm.frame_pose(model, …)"),
        (lambda m, q: rm.solve_ik, AttributeError, "write rm.inverse_kinematics(model, …)"),
        (lambda m, q: rm.neutral, AttributeError, "write model.neutral"),
        (lambda m, q: rm.simulat, AttributeError, "did you mean 'simulate'?"),
        (lambda m, q: m.rnea, AttributeError, "write rm.rnea(model, …)"),
        (lambda m, q: m.ndof, AttributeError, "write model.nv"),
        (lambda m, q: m.links, AttributeError, "write model.bodies"),
        (lambda m, q: m.createData(), AttributeError, "functions take (model, q, …)"),
        (lambda m, q: rm.MjData, AttributeError, "there is no data beside the model"),
        (lambda m, q: rm.load("x", package_dirs=["y"]), TypeError, "write resources="),
        (lambda m, q: rm.load("x", tolerence=1), TypeError, "did you mean 'tolerance'?"),
        (lambda m, q: rm.simulate(m, q, t_final=1.0), TypeError, "write duration="),
        (lambda m, q: rm.simulate(m, q, control=0, duration=1), TypeError, "write tau="),
        (
            lambda m, q: rm.simulate(m, q, tau=lambda t: 0, duration=0.1),
            TypeError,
            "tau is called as tau(t, q, v); this one takes (t)",
        ),
        (
            lambda m, q: rm.simulate(m, q, f_ext=lambda t, q: {}, duration=0.1),
            TypeError,
            "f_ext is called as f_ext(t, q, v); this one takes (t, q)",
        ),
        (
            lambda m, q: rm.frame_pose(m, q, "crank_joint"),
            KeyError,
            "it is a joint; its link is 'crank'",
        ),
        (lambda m, q: m.joint_name, AttributeError, "did you mean 'joint_names'?"),
        (lambda m, q: m.configuration(elbow=1), TypeError, "configuration({'elbow': …})"),
        (lambda m, q: m.joint_positions(q)["crank_jont"], KeyError, "did you mean 'crank_joint'?"),
        (lambda m, q: rm.simulate(m, q, [0.0], 1.0), TypeError, "tau=, duration=, step="),
        (lambda m, q: rm.rnea(m, q, [0.0], [0.0], {}), TypeError, "name those that follow: f_ext="),
        (lambda m, q: rm.rnea(m, q, [0], [0], pasive=True), TypeError, "did you mean 'passive'?"),
        (lambda m, q: rm.energy(m, q, [0], [0]), TypeError, "(model, q, v) by position"),
    ],
)
def test_names_of_other_libraries_say_what_to_write(
    model: rm.Model, call: Callable[..., object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        call(model, model.neutral())


def test_attributes_that_fail_raise_their_own_errors(model: rm.Model) -> None:
    assert not hasattr(model, "__array__")
    assert not hasattr(rm, "__path")
    positions = pickle.loads(pickle.dumps(model.joint_positions(model.neutral())))
    with pytest.raises(rm.errors.UnknownNameError, match="no joint 'none'"):
        positions["none"]


def test_an_open_loop_warns_once() -> None:
    """At the first state of an algorithm's first call, unless the call refuses it."""
    model = rm.load(rm.robots.path("crank_rocker"))
    q, open_loop = model.neutral(), model.neutral() + 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rm.crba(model, q)
        with pytest.raises(rm.errors.ClosureError):
            rm.rnea(model, open_loop, [0.0], [0.0], check=True)
        rm.rnea(rm.robots.load("puma560"), *np.zeros((3, 6)))  # no loops
        rm.bias_force(model, np.zeros((0, model.nq)), np.zeros((0, 1)))
        with np.errstate(all="ignore"):
            rm.gravity_force(model, q * math.nan)  # is not open
    for count, (call, inputs) in enumerate(((rm.rnea, 3), (rm.aba, 3))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(model, np.stack([open_loop, q]), *np.zeros((inputs - 1, 1)))
        assert len(caught) == (count == 0)
    fresh = rm.load(rm.robots.path("crank_rocker"))
    with pytest.warns(RuntimeWarning, match=r"loop '.*' of joints .* is open by .*check=True"):
        rm.gravity_force(fresh, open_loop, backend="numpy")


def test_quaternions_that_turn_nothing_warn_once() -> None:
    model = rm.load(rm.robots.path("puma560"), floating_base=True)
    q, rest = model.neutral(), np.zeros(model.nv)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rm.rnea(model, q + 1e-8, rest, rest)
    for wrong, what in ((0.0, "is zero"), (2.0, "has length 2, not 1")):
        fresh, at = rm.load(rm.robots.path("puma560"), floating_base=True), q.copy()
        at[3:7] *= wrong
        with pytest.warns(RuntimeWarning, match=f"{what}: .* give it length 1"):
            rm.rnea(fresh, at, rest, rest)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rm.rnea(fresh, at, rest, rest)


@pytest.mark.slow
def test_rollouts_keep_bad_rows_to_themselves() -> None:
    for name in ("crank_rocker", "mini_cheetah"):
        model = rm.robots.load(name)
        q, v = np.tile(model.neutral(), (3, 1)), np.zeros((3, model.nv))
        tau = np.zeros((4, model.nv))
        wanted = q_and_v(rm.rollout(model, q, v, tau, 1e-3, backend="numpy"))
        for argument in range(2):
            given = [q.copy(), v.copy()]
            given[argument][1] = math.nan
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                found = q_and_v(rm.rollout(model, *given, tau, 1e-3, backend="numpy"))
            for x, y in zip(found, wanted, strict=True):
                np.testing.assert_allclose(x[[0, 2]], y[[0, 2]], rtol=0, atol=1e-12)
                assert np.isnan(x[1, -1]).all()


NO_MODELS = [
    name
    for name in rm.__all__
    if next(iter(getattr(getattr(rm, name), "__annotations__", {})), "") == "model"
]


@pytest.mark.parametrize("name", [n for n in NO_MODELS if n not in ("Trajectory", "validate")])
def test_what_is_no_model_is_told_how_to_load_one(name: str) -> None:
    """Every public function of a model, at the arguments that it takes."""
    function = getattr(rm, name)
    texts = {"frame": "foot", "frames": ["foot"], "function": "rnea"}
    parameters = list(inspect.signature(function).parameters.values())[1:]
    needed = [each for each in parameters if each.default is each.empty]
    given = {each.name: texts.get(each.name, np.zeros(1)) for each in needed}
    for wrong, hint in ((None, "rm.load"), ("a1.urdf", r"rm\.load\('a1.urdf'\)"), (3.0, "float")):
        with pytest.raises(TypeError, match=f"Model is needed.*{hint}"):
            function(wrong, **given)


def test_public_functions_can_be_sent_to_other_processes() -> None:
    for name in NO_MODELS:
        assert pickle.loads(pickle.dumps(getattr(rm, name))) is getattr(rm, name)
