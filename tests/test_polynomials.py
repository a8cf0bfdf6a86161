"""Couplings by polynomials: G and g, every algorithm against the spanning tree, files, MuJoCo."""

import io

import mujoco
import numpy as np
import pytest
from mujoco_oracle import full_mass_matrix
from numpy.polynomial import Polynomial

import robomodel as rm
from robomodel.dynamics.actuators.envelopes import joint_envelope
from robomodel.instants.equations import pieces
from robomodel.instants.problem import Problem
from robomodel.model.elements import position_names
from robomodel.papers.natural_coordinates.conversion import natural

CONDYLE = (0.003, -0.01, 0.02, 0.004, -0.002)  # of degree 4, as in musculoskeletal models
SLIDE = (-0.001, 0.006, -0.008, 0.001)
TILT = (0.1, 0.8, 0.7)


def link(name: str, mass: float, *moments: float, at: str = "0.01 0.02 -0.1") -> str:
    xx, yy, zz = moments
    return (
        f'<link name="{name}"><inertial><origin xyz="{at}"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0.0001" ixz="0" iyz="0"/>'
        "</inertial></link>"
    )


def joint(name: str, kind: str, parent: str, child: str, axis: str, more: str = "") -> str:
    bounded = '<limit lower="-2" upper="2" effort="9" velocity="9"/>' * (
        kind in ("revolute", "prismatic")
    )
    marks = "" if "<limit" in more else bounded
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="{axis}"/>{marks}{more}</joint>'
    )


def powers(name: str, dependent: str, of: str, coefficients: tuple[float, ...]) -> str:
    numbers = " ".join(map(repr, coefficients))
    return (
        f'<coupling name="{name}"><polynomial joint="{dependent}" of="{of}" '
        f'coefficients="{numbers}"/></coupling>'
    )


KNEE = "".join(
    [
        '<robot name="knee">',
        link("pelvis", 5.0, 0.1, 0.12, 0.09),
        link("trunk", 9.0, 0.3, 0.32, 0.2),
        link("thigh", 8.0, 0.13, 0.12, 0.03),
        '<link name="one"/>',
        '<link name="two"/>',
        link("shank", 4.0, 0.06, 0.055, 0.01),
        link("patella", 0.1, 6e-4, 6e-4, 4e-4, at="0.02 0 0"),
        link("rotor", 0.2, 2e-4, 2e-4, 2e-4, at="0 0 0"),
        joint("waist", "spherical", "pelvis", "trunk", "0 0 1"),
        joint("hip", "revolute", "pelvis", "thigh", "0 1 0"),
        joint("x", "prismatic", "thigh", "one", "1 0 0", '<origin xyz="0 0 -0.4"/>'),
        joint("z", "prismatic", "one", "two", "0 0 1"),
        joint("flexion", "revolute", "two", "shank", "0 1 0"),
        joint("tilt", "revolute", "thigh", "patella", "0 1 0", '<origin xyz="0.05 0 -0.4"/>'),
        joint("spin", "continuous", "thigh", "rotor", "0 0.6 0.8"),
        powers("condyle", "x", "flexion", CONDYLE),
        powers("slide", "z", "flexion", SLIDE),
        powers("tilting", "tilt", "x", TILT),
        '<coupling name="gear"><joint name="spin"/><joint name="tilt" ratio="-9"/></coupling>',
        "</robot>",
    ]
)
"""A ball joint, two polynomials of one joint, one of a joint that follows, and a gear on that."""


def forces_of(model: rm.Model, tau: np.ndarray) -> dict[str, np.ndarray]:
    return {f"tau[{p.name}]": tau[list(p.dofs)] for p in pieces(model) if p.dofs}


@pytest.fixture(scope="module")
def knee() -> rm.Model:
    return rm.load(KNEE, floating_base=True)


@pytest.fixture(scope="module")
def state(knee: rm.Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    q = knee.random_configuration(rng)
    v, a = rng.standard_normal((2, knee.nv))
    return q, v, a


def test_positions_are_the_polynomials_values(knee, state):
    at = knee.joint_positions(np.stack([state[0], knee.neutral()]))
    x = Polynomial(CONDYLE)(at["flexion"])
    np.testing.assert_allclose(at["x"], x, rtol=0, atol=1e-16)
    np.testing.assert_allclose(at["z"], Polynomial(SLIDE)(at["flexion"]), rtol=0, atol=1e-16)
    np.testing.assert_allclose(at["spin"], 9 * Polynomial(TILT)(x), rtol=0, atol=1e-14)
    assert knee.nv == 11
    assert abs(knee.residual(state[0])).max() < 1e-15
    assert [c.explicit for c in knee.couplings] == [True] * 4


def test_g_and_its_bias_are_closed_forms(knee, state):
    q, v, _ = state
    at, rate = (float(d["flexion"]) for d in (knee.joint_positions(q), knee.joint_velocities(q, v)))
    condyle, tilt = Polynomial(CONDYLE), Polynomial(TILT)
    spin = 9 * tilt(condyle)
    acceleration = {name: float(x) for name, x in knee.joint_accelerations(q, v, 0 * v).items()
                    if x.ndim == 0}  # fmt: skip
    speeds = {name: float(x) for name, x in knee.joint_velocities(q, v).items() if x.ndim == 0}
    for name, curve in (("x", condyle), ("z", Polynomial(SLIDE)), ("spin", spin)):
        assert speeds[name] == pytest.approx(curve.deriv()(at) * rate, rel=1e-13)
        assert acceleration[name] == pytest.approx(curve.deriv(2)(at) * rate**2, rel=1e-12)
    g, bias = knee.constraint_jacobian(q), knee.constraint_bias(q, v)
    matrix = knee.constraint_matrix(q)
    assert abs(matrix @ g).max() < 1e-14
    assert abs(matrix @ bias - knee.constraint_matrix_bias(q, v)).max() < 1e-13


@pytest.mark.parametrize("backend", ["numpy", pytest.param("compiled", marks=pytest.mark.slow)])
def test_every_algorithm_is_that_of_the_spanning_tree(knee, state, backend):
    q, v, a = state
    tau = rm.rnea(knee, q, v, a, backend=backend)
    np.testing.assert_allclose(
        tau, rm.rnea(knee, q, v, a, method="projection", backend=backend), atol=1e-12
    )
    for method in ("cluster", "projection", "lagrange", "orthonormal"):
        found = rm.aba(knee, q, v, tau, method=method, backend=backend)
        np.testing.assert_allclose(found, a, atol=1e-9)
    if backend == "numpy":
        return
    mass = rm.crba(knee, q)
    np.testing.assert_allclose(mass @ a + rm.bias_force(knee, q, v), tau, atol=1e-12)
    np.testing.assert_allclose(rm.mass_inverse(knee, q) @ mass, np.eye(knee.nv), atol=1e-9)
    frames = ["shank", "patella"]
    rows = np.concatenate([rm.jacobian(knee, q, frame) for frame in frames])
    np.testing.assert_allclose(
        rm.efpa(knee, q, frames), rows @ np.linalg.solve(mass, rows.T), rtol=1e-9, atol=1e-9
    )
    c = rm.coriolis(knee, q, v)
    np.testing.assert_allclose(
        c @ v + rm.gravity_force(knee, q), rm.bias_force(knee, q, v), atol=1e-12
    )
    y = rm.regressor(knee, q, v, a)
    np.testing.assert_allclose(y @ rm.parameters(knee).values, tau, atol=1e-12)
    kinetic, _ = rm.energy(knee, q, v)
    assert kinetic == pytest.approx(0.5 * v @ mass @ v, rel=1e-13)


def along(knee, f, q, h=1e-5):
    """Derivatives along each velocity, by differences of fourth order."""

    def at(x, e):
        return np.asarray(f(knee.integrate(q, x * h * e)))

    return np.stack(
        [(8 * (at(1, e) - at(-1, e)) - (at(2, e) - at(-2, e))) / (12 * h)
         for e in np.eye(knee.nv)], axis=-1,
    )  # fmt: skip


@pytest.mark.slow
def test_derivatives(knee, state):
    q, v, a = state
    tau = rm.rnea(knee, q, v, a)
    by_q, by_v, mass = rm.rnea_derivatives(knee, q, v, a)
    np.testing.assert_allclose(by_q, along(knee, lambda x: rm.rnea(knee, x, v, a), q), atol=1e-7)
    one = np.eye(knee.nv)
    np.testing.assert_allclose(  # quadratic in v: differences are exact
        by_v, np.stack([(rm.rnea(knee, q, v + e, a) - rm.rnea(knee, q, v - e, a)) / 2
                        for e in one], axis=-1), atol=1e-11)  # fmt: skip
    np.testing.assert_allclose(mass, rm.crba(knee, q), atol=1e-12)
    da_dq, da_dv, inverse = rm.aba_derivatives(knee, q, v, tau)
    np.testing.assert_allclose(da_dq, -inverse @ by_q, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(da_dv, -inverse @ by_v, rtol=1e-8, atol=1e-8)
    w = np.linspace(-1, 1, knee.nv)
    qq, _, qv, aq = rm.dynamics.rnea_hessian_product(knee, q, v, a, w)
    slopes = along(knee, lambda x: [w @ m for m in rm.rnea_derivatives(knee, x, v, a)], q)
    joints = slice(9, 11)  # motions that commute
    np.testing.assert_allclose(qq[joints, joints], slopes[0][joints, joints], atol=1e-6)
    np.testing.assert_allclose(qv, slopes[1].T, atol=1e-6)
    np.testing.assert_allclose(aq, slopes[2], atol=1e-6)


@pytest.mark.slow
def test_a_dependent_joint_may_lead(knee):
    """The same robot by an implicit constraint."""
    one = rm.load(KNEE)
    two = rm.load(KNEE, independent=["z"])
    q = one.configuration({"hip": 0.3, "flexion": 1.1})
    other = two.configuration({k: x for k, x in one.joint_positions(q).items() if x.ndim == 0})
    assert [c.explicit for c in two.couplings] == [False] * 4
    assert abs(two.residual(other)).max() < 1e-14
    leads = [list(two.dof_names).index(name) for name in
             [name.replace("flexion", "z") for name in one.dof_names]]  # fmt: skip
    g = one.constraint_jacobian(q)
    row = 3 + one.joint_names.index("z") - 1
    rng = np.random.default_rng(0)
    v, a = rng.standard_normal((2, one.nv))
    scale = np.where(np.array(one.dof_names) == "flexion", g[row] @ np.ones(one.nv), 1.0)
    assert scale[-1] == pytest.approx(Polynomial(SLIDE).deriv()(1.1), rel=1e-12)
    turned = a * scale + one.constraint_bias(q, v)[row] * (scale != 1.0)
    u, b = np.zeros((2, one.nv))
    u[leads], b[leads] = v * scale, turned
    tau = rm.rnea(two, other, u, b)
    np.testing.assert_allclose(tau[leads] * scale, rm.rnea(one, q, v, a), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(tau, rm.rnea(two, other, u, b, method="projection"), atol=1e-8)
    for method in ("cluster", "lagrange"):
        np.testing.assert_allclose(rm.aba(two, other, u, tau, method=method), b, atol=1e-6)


LOOPED = KNEE.replace(
    "</robot>",
    link("rod", 0.3, 1e-3, 1e-3, 1e-4)
    + joint("push", "revolute", "pelvis", "rod", "0 1 0", '<origin xyz="0.3 0 0"/>')
    + '<loop name="strut" type="rod" length="0.5"><predecessor link="rod">'
    '<origin xyz="0 0 -0.2"/></predecessor><successor link="one"/></loop></robot>',
)


@pytest.mark.slow
def test_a_loop_over_a_dependent_joint():
    """One loop and one polynomial in it are solved for together."""
    model = rm.load(LOOPED, independent=["flexion", "push"])
    assert not any(c.explicit for c in model.couplings)
    rng = np.random.default_rng(5)
    q = model.random_configuration(rng)
    v, a = rng.standard_normal((2, model.nv))
    at = {k: float(x) for k, x in model.joint_positions(q).items() if x.ndim == 0}
    assert at["x"] == pytest.approx(Polynomial(CONDYLE)(at["flexion"]), abs=1e-13)
    assert at["spin"] == pytest.approx(9 * Polynomial(TILT)(at["x"]), abs=1e-12)
    g, k = model.constraint_jacobian(q), model.constraint_bias(q, v)
    assert abs(model.constraint_matrix(q) @ g).max() < 1e-11
    assert abs(model.constraint_matrix(q) @ k - model.constraint_matrix_bias(q, v)).max() < 1e-9
    tau = rm.rnea(model, q, v, a)
    np.testing.assert_allclose(
        tau, rm.rnea(model, q, v, a, method="projection"), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(rm.aba(model, q, v, tau), a, atol=1e-8)
    for view in ("tree", "cluster"):
        solution = Problem.forward(model, view=view).solve(q, v, forces_of(model, tau))
        np.testing.assert_allclose(solution.acceleration, a, atol=1e-8)


@pytest.mark.parametrize("view", ["tree", "cluster"])
def test_the_sparse_system_has_the_polynomials(knee, state, view):
    q, v, a = state
    tau = rm.rnea(knee, q, v, a)
    solution = Problem.forward(knee, view=view).solve(q, v, forces_of(knee, tau))
    np.testing.assert_allclose(solution.acceleration, a, atol=1e-8)


# ---- configurations ------------------------------------------------------------------------------


def test_natural_coordinates_refuse_polynomials():
    bodies = link("a", 1.0, 0.1, 0.1, 0.1) + link("b", 1.0, 0.1, 0.1, 0.1)
    text = (
        f'<robot name="r"><link name="w"/>{bodies}'
        + joint("x", "continuous", "w", "a", "0 0 1")
        + joint("y", "continuous", "w", "b", "0 0 1")
        + powers("c", "y", "x", (0.0, 0.3, 0.2))
        + "</robot>"
    )
    with pytest.raises(rm.DescriptionError, match="coupling 'c': is a polynomial"):
        natural(rm.load(text))


def test_states_that_break_the_coupling_are_told(knee):
    model = rm.load(KNEE, independent=["z"])
    q = model.neutral()
    q[position_names(model).index("x")] += 0.01
    with pytest.raises(ValueError, match=r"coupling 'condyle' of joints .* fails by 0\.01"):
        model.check(q)


def test_configurations(knee):
    at = {"hip": 0.2, "z": 1e-4, "waist": np.array([0.0, 0.0, 0.0, 1.0])}
    q = knee.configuration(at, guess=knee.configuration({"flexion": 0.3}))
    found = knee.joint_positions(q)
    assert float(found["z"]) == pytest.approx(1e-4, abs=1e-12)
    assert float(found["flexion"]) == pytest.approx(0.29534292, abs=1e-7)
    with pytest.raises(ValueError, match=r"\['z'\] contradict their couplings"):
        knee.configuration({"z": 5.0})
    batch = np.stack([q, knee.neutral()])
    np.testing.assert_array_equal(knee.close(batch), batch)
    v = np.linspace(-1, 1, knee.nv)
    moved = knee.integrate(batch, 0.1 * v)
    np.testing.assert_allclose(knee.difference(batch, moved), np.tile(0.1 * v, (2, 1)), atol=1e-12)


def test_all_positions_of_a_steep_polynomial_are_as_given():
    """No search is needed where the joint that leads is given; far from neutral one ends aside."""
    text = (
        '<robot name="r"><link name="w"/>'
        + link("a", 1.0, 0.1, 0.1, 0.1)
        + link("b", 1.0, 0.1, 0.1, 0.1)
        + joint("x", "continuous", "w", "a", "0 0 1")
        + joint("y", "continuous", "a", "b", "0 0 1")
        + powers("c", "y", "x", (-0.1, 0.7, 0.05, 0.13, -0.16))
        + "</robot>"
    )
    model = rm.load(text)
    for x in np.linspace(-3, 3, 7):
        at = model.joint_positions([x])
        assert model.configuration(at) == pytest.approx([x], abs=1e-15)
    with pytest.raises(ValueError, match=r"contradict their couplings by 0\.1"):
        model.configuration(at | {"y": at["y"] + 0.1})


def test_neutral_is_within_the_limits_of_what_follows():
    """y = x² - 4 is within [-2, 2] where |x| is within √2 and √6."""
    body = link("a", 1.0, 0.1, 0.1, 0.1) + link("b", 1.0, 0.1, 0.1, 0.1)
    limit = '<limit lower="{}" upper="{}" effort="1" velocity="1"/>'
    text = (
        f'<robot name="r"><link name="w"/>{body}'
        + joint("x", "revolute", "w", "a", "0 0 1", limit.format(-3, 3))
        + joint("y", "revolute", "w", "b", "0 0 1", limit.format(-2, 2))
        + powers("c", "y", "x", (-4.0, 0.0, 1.0))
        + "</robot>"
    )
    q = rm.load(text).neutral()
    assert abs(q[0]) == pytest.approx(np.sqrt(2.0), rel=1e-14)
    limited = limit.format(-3, 3)
    far = text.replace(limited, f'<initial position="2.9"/>{limited}')
    assert rm.load(far).neutral() == pytest.approx([np.sqrt(6.0)], rel=1e-14)


# ---- files ---------------------------------------------------------------------------------------


def written(model: rm.Model, form: str, **how: bool) -> tuple[str, tuple[str, ...]]:
    stream = io.StringIO()
    lost = {"urdf": rm.write_urdf, "sdf": rm.write_sdf, "mjcf": rm.write_mjcf}[form](
        model, stream, **how
    )
    return stream.getvalue(), lost


@pytest.mark.parametrize("form", ["urdf", "mjcf"])
def test_written_files_have_the_same_coefficients(form, knee):
    text, _ = written(rm.load(KNEE), form, drop=True)
    again = rm.load(text)
    coefficients = {c.name: c.coefficients for c in again.couplings if c.coefficients}
    assert coefficients == {"condyle": CONDYLE, "slide": SLIDE, "tilting": TILT}
    assert not rm.compare(rm.load(KNEE), again).differences


HINGES = """<mujoco><compiler angle="radian"/><worldbody><body>
<joint name="a" ref="0.3" axis="0 1 0"/><geom size="0.1" pos="0.1 0 0.2"/>
<body pos="0 0 0.3"><joint name="b" type="slide" ref="0.1" axis="1 0 0"/>
<geom size="0.1" pos="0 0.1 0"/></body></body></worldbody>
<equality><joint name="e" joint1="b" joint2="a" polycoef="0.1 0.2 0.3 0.4 0.5"/></equality>
</mujoco>"""


def test_polycoef_is_of_positions_away_from_ref():
    """MuJoCo's own residual is zero at our configurations, and its KKT system has our solution."""
    model, theirs = rm.load(HINGES), mujoco.MjModel.from_xml_string(HINGES)
    q = model.configuration({"a": 0.7})
    x = 0.7 - 0.3
    wanted = 0.1 + 0.1 + 0.2 * x + 0.3 * x**2 + 0.4 * x**3 + 0.5 * x**4
    assert float(model.joint_positions(q)["b"]) == pytest.approx(wanted, rel=1e-13)
    data = mujoco.MjData(theirs)
    v = np.array([1.3])
    g, k = model.constraint_jacobian(q), model.constraint_bias(q, v)
    data.qpos[:], data.qvel[:] = [model.joint_positions(q)[n] for n in "ab"], g @ v
    mujoco.mj_forward(theirs, data)
    assert abs(data.efc_pos[: data.ne]).max() < 1e-12
    mass, rows = full_mass_matrix(theirs, data), np.reshape(data.efc_J, (data.nefc, 2))
    assert abs(rows @ g).max() < 1e-12
    kkt = np.block([[mass, rows.T], [rows, np.zeros((1, 1))]])
    right = np.concatenate([-data.qfrc_bias, rows @ k])  # J q̈ = J g, of which ours is tested
    np.testing.assert_allclose(
        np.linalg.solve(kkt, right)[:2], g @ rm.aba(model, q, v, [0.0]) + k, rtol=1e-9
    )
    again = rm.load(written(model, "mjcf", drop=True)[0])
    np.testing.assert_allclose(again.couplings[0].coefficients, model.couplings[0].coefficients,
                               rtol=1e-13)  # fmt: skip


def test_formats_without_the_word(knee):
    with pytest.raises(rm.DescriptionError, match="the coupling 'condyle' by a polynomial"):
        written(knee, "sdf")
    _, lost = written(knee, "sdf", drop=True)
    assert len([each for each in lost if "polynomial" in each]) == 3
    more = powers("tilting", "tilt", "x", (*TILT, 0.0, 0.1, 2.0))
    fifth = rm.load(KNEE.replace(powers("tilting", "tilt", "x", TILT), more))
    with pytest.raises(rm.DescriptionError, match="polynomial of degree 5"):
        written(fifth, "mjcf")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (' of="flexion"', "", "attribute 'of' is missing"),
        ('of="flexion"', 'of="flexin"', "'flexin' is not in the robot"),
        ('of="flexion"', 'of="x"', "'x' is named twice"),
        ('joint="x" of="flexion"', 'joint="waist" of="flexion"', "joint 'waist' is spherical"),
        (" ".join(map(repr, CONDYLE)), "0.3", "two coefficients at least"),
        (" ".join(map(repr, CONDYLE)), "0.3 0.0 0", "does not depend on 'flexion'"),
        (" ".join(map(repr, CONDYLE)), "0.3 nan", "'nan' is not a finite number"),
        ("</coupling>", '<offset value="1"/></coupling>', "a coupling by <polynomial> has nothing"),
        (powers("slide", "z", "flexion", SLIDE), powers("s", "flexion", "x", (99.0, 1.0, 1.0)),
         "cannot close"),
    ],
)  # fmt: skip
def test_wrong_words_are_refused(old, new, message):
    with pytest.raises(rm.DescriptionError, match=message):
        rm.load(KNEE.replace(old, new, 1))


# ---- what else reads couplings -------------------------------------------------------------------


def test_comparison_names_coefficients():
    one = rm.load(KNEE)
    two = rm.load(KNEE.replace("-0.01 0.02 0.004", "-0.01 0.03 0.004"))
    (found,) = rm.compare(one, two).differences
    assert (found.element, found.quantity, found.a, found.b) == (
        "x",
        "power 2 of flexion",
        0.02,
        0.03,
    )
    line = rm.load(
        KNEE.replace(powers("tilting", "tilt", "x", TILT), powers("t", "tilt", "x", TILT[:2]))
    )
    names = {(d.element, d.quantity) for d in rm.compare(one, line).differences}
    assert ("tilt", "follows") in names


def test_a_line_is_a_linear_coupling():
    model = rm.load(KNEE.replace(powers("tilting", "tilt", "x", TILT),
                                 powers("tilting", "tilt", "x", TILT[:2])))  # fmt: skip
    (found,) = [c for c in model.couplings if c.name == "tilting"]
    assert (found.kind, found.terms, found.coefficients) == (
        "coupling", (("tilt", 1.0), ("x", -0.8)), ()
    )  # fmt: skip


# ---- motion --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_motions():
    """Energy is kept; fixed steps end within their order of the adaptive method's state."""
    model = rm.load(KNEE)
    q = model.configuration({"hip": 0.4, "flexion": 0.5})
    v = np.array([0.3, 0.1, -0.2, 1.0, 2.0])
    exact = rm.simulate(model, q, v=v, duration=0.1)
    energy = sum(rm.energy(model, exact.q, exact.v))
    assert np.ptp(energy) < 1e-9 * abs(energy[0])
    for half in (1, 2):
        run = rm.simulate(model, q, v=v, duration=0.1, method="time_stepping", step=4e-3 / half)
        assert abs(run.q[-1] - exact.q[-1]).max() < 3.5e-5 / half**2
        assert np.ptp(sum(rm.energy(model, run.q, run.v))) < 1.5e-4 / half**2


FOUR_BAR = (
    "".join(link(name, 1.0, 0.02, 0.02, 0.01, at="0.1 0 0") for name in ("b1", "b2", "b3"))
    + joint("j1", "continuous", "thigh", "b1", "0 1 0", '<origin xyz="0.1 0 0"/>')
    + joint("j2", "continuous", "b1", "b2", "0 1 0", '<origin xyz="0.2 0 0"/>')
    + joint("j3", "continuous", "thigh", "b3", "0 1 0", '<origin xyz="0.5 0 0"/>')
    + '<loop name="bar" type="revolute"><predecessor link="b2"><origin xyz="0.4 0 0"/>'
    '</predecessor><successor link="b3"><origin xyz="0.3 0 0"/></successor>'
    '<axis xyz="0 1 0"/></loop></robot>'
)


@pytest.mark.slow
@pytest.mark.parametrize("text", [KNEE.replace("</robot>", FOUR_BAR), LOOPED])
def test_motions_beside_and_in_loops_are_of_second_order(text):
    model = rm.load(text)
    q = model.random_configuration(np.random.default_rng(4))
    v = np.random.default_rng(2).normal(size=model.nv)
    exact = rm.simulate(model, q, v=v, duration=0.05)
    errors, spreads = [], []
    for step in (2e-3, 1e-3):
        run = rm.simulate(model, q, v=v, duration=0.05, method="time_stepping", step=step)
        errors.append(abs(run.q[-1] - exact.q[-1]).max())
        spreads.append(np.ptp(sum(rm.energy(model, run.q, run.v))))
    assert errors[0] < 1e-5
    assert 3.9 < errors[0] / errors[1] < 4.1
    assert 3.8 < spreads[0] / spreads[1] < 4.2


def test_reports_follow_the_curve():
    """Ratios along the range are 1/p'; limits at the curve's ends are no contradiction."""
    bent = (0.0, 0.3, -0.8, 0.4)
    body = link("a", 1.0, 0.1, 0.1, 0.1) + link("b", 1.0, 0.1, 0.1, 0.1)
    limit = '<limit lower="{}" upper="{}" effort="5" velocity="3"/>'
    curve = Polynomial(bent)
    text = (
        f'<robot name="r"><link name="w"/>{body}'
        + joint("x", "revolute", "w", "a", "0 0 1", limit.format(0, 1))
        + joint("y", "revolute", "w", "b", "0 0 1", limit.format(*(curve([1.0]).tolist()), 0.1))
        + powers("c", "y", "x", bent)
        + "</robot>"
    )
    model = rm.load(text)
    assert not [f for f in rm.validate(model).findings if f.check == "limits"]
    found = {name: joint_envelope(model, model.joint_names.index(name)) for name in ("x", "y")}
    x = model.joint_positions(found["y"].q)["x"]
    np.testing.assert_allclose(found["y"].ratios[:-1, 0], 1 / curve.deriv()(x[:-1]), rtol=1e-9)
    assert np.isnan(found["y"].ratios[-1, 0])  # at its dead point
    peak = next(r for r in curve.deriv().roots() if 0 < r < 1)
    assert found["y"].upper == pytest.approx(curve(peak), abs=1e-4)
    assert found["y"].lower_by == "y"  # and x's limit, at the same place
    assert found["y"].upper_by == "loop"


def test_a_motor_does_not_keep_polynomials_from_closing() -> None:
    """Two of each other's joints meet in one point, with a rotor on what follows or without."""
    other = powers("s", "flexion", "x", (9.0, 1.0, 0.01))
    text = KNEE.replace(powers("slide", "z", "flexion", SLIDE), other)
    gear = text[text.index('<coupling name="gear"') : text.index("</robot>")]
    for each in (text, text.replace(gear, "")):
        with pytest.warns(rm.DescriptionWarning, match="no closed configuration"):
            model = rm.load(each)  # outside the limits
        at = model.joint_positions(model.neutral())
        x, flexion = float(at["x"]), float(at["flexion"])
        assert x == pytest.approx(Polynomial(CONDYLE)(flexion), abs=1e-12)
        assert flexion == pytest.approx(Polynomial((9.0, 1.0, 0.01))(x), abs=1e-12)
