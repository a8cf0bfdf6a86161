"""The reference checks itself: against differentiation, balances, hand calculation and MuJoCo."""

import mujoco
import numpy as np
import pytest
from mechanisms import KINDS, Mechanism, random_mechanism
from mujoco_oracle import full_mass_matrix
from oracle import BASE, Oracle, default_axis2, rank_of, spanning_map

INERTIAL = (
    '<inertial><mass value="3.3"/><inertia ixx="0.011253" iyy="0.036203" izz="0.042673" '
    'ixy="0" ixz="0" iyz="0"/></inertial>'
)


def four_bar(loop: str = '<loop name="loop" type="revolute">', axis: str = "0 0 1") -> str:
    """A parallelogram: cranks of 0.5 m, one metre apart, all axes along z."""
    links = "".join(f'<link name="link{i}">{INERTIAL}</link>' for i in (1, 2, 3))
    joints = "".join(
        f'<joint name="joint{i}" type="continuous"><origin xyz="{at}"/><parent link="{parent}"/>'
        f'<child link="link{i}"/><axis xyz="0 0 1"/></joint>'
        for i, parent, at in ((1, "base", "0 0 0"), (2, "link1", "0.5 0 0"), (3, "base", "1 0 0"))
    )
    return (
        f'<robot name="four_bar"><link name="base"/>{links}{joints}{loop}'
        '<predecessor link="link2"><origin xyz="1 0 0"/></predecessor>'
        '<successor link="link3"><origin xyz="0.5 0 0"/></successor>'
        f'<axis xyz="{axis}"/></loop></robot>'
    )


def drawn(seed: int) -> tuple[Mechanism, Oracle, np.random.Generator]:
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, [*KINDS, "tether"][seed % 17 : seed % 17 + 1], n_joints=5)
    oracle = mechanism.oracle()
    names = list(oracle.names)
    rng.shuffle(names)
    oracle.names = names
    return mechanism, oracle, rng


def base_pose(mechanism: Mechanism, rng: np.random.Generator) -> dict[str, np.ndarray]:
    turn = rng.normal(size=4)
    pose = np.concatenate((rng.normal(size=3), turn / np.linalg.norm(turn)))
    return {BASE: pose} if mechanism.floating_base else {}


def closed_state(seed: int) -> tuple[Mechanism, Oracle, np.random.Generator, np.ndarray]:
    mechanism, oracle, rng = drawn(seed)
    return mechanism, oracle, rng, oracle.state(mechanism.closed | base_pose(mechanism, rng))


def independent_columns(mechanism: Mechanism, oracle: Oracle) -> list[int]:
    assert mechanism.independent is not None
    base = [n for n in oracle.names if n not in oracle.joints]
    return oracle.columns(*base, *mechanism.independent)


def null_space(K: np.ndarray) -> np.ndarray:
    return np.linalg.svd(K)[2][rank_of(K) :].T if len(K) else np.eye(K.shape[1])


@pytest.mark.parametrize("seed", range(34))
def test_constraint_against_differentiation_off_the_loops(seed: int) -> None:
    _, oracle, rng, q = closed_state(seed)
    q = oracle.integrate(q, rng.normal(size=oracle.nv) * 0.5)  # nothing closes here
    v = rng.normal(size=oracle.nv)
    _, K, k = oracle.constraint(q, v)
    h = 1e-5
    ahead, behind = (oracle.constraint(oracle.integrate(q, s * h * v), v) for s in (1, -1))
    np.testing.assert_allclose(K @ v, (ahead[0] - behind[0]) / (2 * h), atol=2e-7)
    np.testing.assert_allclose(k, -(ahead[1] - behind[1]) @ v / (2 * h), atol=2e-6)


@pytest.mark.parametrize("seed", range(17))
def test_closed_motion_stays_closed(seed: int) -> None:
    """Along q̇ = G y the loops open at second order; with q̈ = G a + g at third order."""
    mechanism, oracle, rng, q = closed_state(seed)
    _, K, _ = oracle.constraint(q, np.zeros(oracle.nv))
    v = null_space(K) @ rng.normal(size=mechanism.mobility)
    _, _, k = oracle.constraint(q, v)
    a = np.linalg.lstsq(K, k, rcond=1e-9)[0] if len(K) else np.zeros(oracle.nv)
    np.testing.assert_allclose(K @ a, k, atol=1e-10 * (1 + np.abs(k).max(initial=0)))
    opened = [
        np.abs(oracle.constraint(oracle.integrate(q, h * v + h * h / 2 * a), v)[0]).max(initial=0)
        for h in (1e-3, 1e-4)
    ]
    assert opened[1] <= 2e-3 * opened[0] + 1e-13


@pytest.mark.parametrize("seed", range(34))
def test_power_balance(seed: int) -> None:
    """The accelerations with multipliers change the energy by the power of all forces."""
    mechanism, oracle, rng, q = closed_state(seed)
    _, K, _ = oracle.constraint(q, np.zeros(oracle.nv))
    v = null_space(K) @ rng.normal(size=mechanism.mobility)
    tau = rng.normal(size=oracle.nv) * 5
    a = oracle.forward(q, v, tau, mechanism.f_ext)
    power = tau @ v + sum(
        w @ oracle.frame_velocity(q, v, link) for link, w in mechanism.f_ext.items()
    )
    h = 1e-5
    ahead, behind = (
        sum(oracle.energy(oracle.integrate(q, s * h * v + h * h / 2 * a), v + s * h * a))
        for s in (1, -1)
    )
    scale = 1 + abs(power) + sum(map(abs, oracle.energy(q, v)))
    assert abs((ahead - behind) / (2 * h) - power) <= 2e-6 * scale


@pytest.mark.parametrize("seed", range(34))
def test_multipliers_agree_with_projection(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, marked=True)
    oracle = mechanism.oracle()
    q = oracle.state(mechanism.closed | base_pose(mechanism, rng))
    columns = independent_columns(mechanism, oracle)
    assert len(columns) == mechanism.mobility
    _, K, _ = oracle.constraint(q, np.zeros(oracle.nv))
    v = spanning_map(K, columns) @ rng.normal(size=len(columns))
    G, g = oracle.spanning_map_and_bias(q, v, columns)
    tau = rng.normal(size=len(columns))
    spread = np.zeros(oracle.nv)
    spread[columns] = tau
    a = oracle.forward(q, v, spread, mechanism.f_ext)
    ours = oracle.project_forward(q, v, G, g, tau, mechanism.f_ext)
    scale = 1 + np.abs(a).max(initial=0)
    np.testing.assert_allclose(a, G @ ours + g, atol=1e-10 * scale)
    back = oracle.project_inverse(q, v, G, g, ours, mechanism.f_ext)
    np.testing.assert_allclose(back, tau, atol=1e-10 * scale)


@pytest.mark.parametrize("seed", range(17))
def test_frames_and_totals_against_differentiation(seed: int) -> None:
    _, oracle, rng, q = closed_state(seed)
    v = rng.normal(size=oracle.nv)
    h = 1e-5
    steps = [oracle.integrate(q, s * h * v) for s in (1, -1)]
    for link in (oracle.links[0], oracle.links[-1]):
        frame = (link, rng.normal(size=3))
        pose = oracle.frame_pose(q, frame)
        ahead, behind = (oracle.frame_pose(s, frame) for s in steps)
        rate = pose[:3, :3].T @ (ahead - behind)[:3] / (2 * h)
        spin = np.array([rate[2, 1], rate[0, 2], rate[1, 0]])
        velocity = oracle.frame_velocity(q, v, frame)
        np.testing.assert_allclose(velocity, [*spin, *rate[:, 3]], atol=1e-7)
    ahead, behind = (oracle.center_of_mass(s) for s in steps)
    momentum = oracle.centroidal_momentum(q, v)
    np.testing.assert_allclose(momentum[3:], oracle.mass() * (ahead - behind) / (2 * h), atol=1e-6)


def test_free_robot_keeps_its_momentum() -> None:
    rng = np.random.default_rng(0)
    for kind in KINDS:
        mechanism = random_mechanism(rng, [kind], n_joints=3, floating_base=True)
        oracle = Oracle(mechanism.text, True, gravity=(0, 0, 0))
        q = oracle.state(mechanism.closed | base_pose(mechanism, rng))
        _, K, _ = oracle.constraint(q, np.zeros(oracle.nv))
        v = null_space(K) @ rng.normal(size=mechanism.mobility)
        tau = np.zeros(oracle.nv)
        tau[6:] = rng.normal(size=oracle.nv - 6)
        a = oracle.forward(q, v, tau)
        h = 1e-5
        ahead, behind = (
            oracle.centroidal_momentum(
                oracle.integrate(q, s * h * v + h * h / 2 * a), v + s * h * a
            )
            for s in (1, -1)
        )
        scale = 1 + np.abs(a).max()
        np.testing.assert_allclose((ahead - behind) / (2 * h), 0, atol=1e-6 * scale)


def test_positions_round_trip() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        mechanism = random_mechanism(rng)
        oracle = mechanism.oracle()
        back = oracle.positions(oracle.state(mechanism.closed))
        for name, position in mechanism.closed.items():
            np.testing.assert_allclose(back[name], position, atol=1e-15)


def test_parallelogram_by_hand() -> None:
    oracle = Oracle(four_bar(), gravity=(0, -9.81, 0))
    angle, rate = 0.7, 1.3
    q = oracle.state({"joint1": angle, "joint2": -angle, "joint3": angle})
    assert oracle.closed(q, 1e-15)
    v = oracle.stack({"joint1": rate, "joint2": -rate, "joint3": rate})
    G, g = oracle.spanning_map_and_bias(q, v, oracle.columns("joint1"))
    np.testing.assert_allclose(G[:, 0], [1, -1, 1], atol=1e-14)
    np.testing.assert_allclose(g, 0, atol=1e-14)  # a parallelogram stays one
    M = 2 * 0.042673 + 3.3 * 0.25  # two turning cranks, a coupler on a circle
    np.testing.assert_allclose(oracle.projected_mass(q, G), [[M]], rtol=1e-14)
    weight = 3.3 * 9.81 * 0.5 * np.cos(angle)
    np.testing.assert_allclose(oracle.project_inverse(q, v, G, g, [2.0]), [2 * M + weight])
    a = oracle.forward(q, v, oracle.stack({"joint1": 0.4}))
    np.testing.assert_allclose(a, np.array([1, -1, 1]) * (0.4 - weight) / M, rtol=1e-12)


@pytest.mark.parametrize("kind", ["spherical", "universal", "continuous"])
def test_planar_loop_written_otherwise(kind: str) -> None:
    q = {"joint1": 0.7, "joint2": -0.7, "joint3": 0.7}
    one, two = Oracle(four_bar()), Oracle(four_bar(f'<loop name="loop" type="{kind}">'))
    (G, g), (H, h) = (
        o.spanning_map_and_bias(o.state(q), np.array([1.0, -1, 1]), [0]) for o in (one, two)
    )
    np.testing.assert_allclose(G, H, atol=1e-14)
    np.testing.assert_allclose(g, h, atol=1e-14)


def test_against_mujoco() -> None:
    """Mass matrix, bias, and the accelerations under MuJoCo's own loop Jacobian."""
    text = four_bar('<loop name="loop" type="spherical">').replace('xyz="1 0 0"', 'xyz="0.9 0 0"')
    inertial = '<inertial pos="0 0 0" mass="3.3" diaginertia="0.011253 0.036203 0.042673"/>'
    mjcf = f"""
    <mujoco><option gravity="0.3 -9.81 0"><flag contact="disable"/></option><worldbody>
      <body name="link1"><joint name="joint1" axis="0 0 1"/>{inertial}
        <body name="link2" pos="0.5 0 0"><joint name="joint2" axis="0 0 1"/>{inertial}
          <site name="a" pos="0.9 0 0"/></body></body>
      <body name="link3" pos="0.9 0 0"><joint name="joint3" axis="0 0 1"/>{inertial}
        <site name="b" pos="0.5 0 0"/></body></worldbody>
      <equality><connect site1="a" site2="b"/></equality></mujoco>"""
    model = mujoco.MjModel.from_xml_string(mjcf)
    data = mujoco.MjData(model)
    oracle = Oracle(text, gravity=(0.3, -9.81, 0))
    start = oracle.state({"joint1": 0.8, "joint2": -0.2, "joint3": 0.4})
    q = oracle.close(start, oracle.columns("joint1"))
    assert oracle.closed(q, 1e-13)
    v = spanning_map(oracle.constraint(q, np.zeros(3))[1], [0])[:, 0] * 1.7
    tau = np.array([0.3, -0.2, 0.5])

    def loop_jacobian(at: np.ndarray) -> np.ndarray:
        data.qpos[:], data.qvel[:] = at, v
        mujoco.mj_forward(model, data)
        return data.efc_J.reshape(-1, 3).copy()

    h = 1e-6
    k = -(loop_jacobian(q + h * v) - loop_jacobian(q - h * v)) @ v / (2 * h)
    J = loop_jacobian(q)
    M = full_mass_matrix(model, data)
    np.testing.assert_allclose(oracle.mass_matrix(q), M, atol=1e-13)
    np.testing.assert_allclose(oracle.bias(q, v), data.qfrc_bias, atol=1e-12)
    A = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
    right = np.concatenate((tau - data.qfrc_bias, k))
    theirs = np.linalg.lstsq(A, right, rcond=1e-10)[0][:3]
    np.testing.assert_allclose(oracle.forward(q, v, tau), theirs, rtol=1e-7)


def test_couplings_say_what_the_file_says() -> None:
    joints = "".join(
        f'<link name="l{i}">{INERTIAL}</link><joint name="j{i}" type="revolute">'
        f'<parent link="{parent}"/><child link="l{i}"/>{extra}</joint>'
        for i, parent, extra in (
            (1, "base", ""),
            (2, "l1", ""),
            (3, "l1", '<mimic joint="j4" multiplier="-2" offset="0.25"/>'),
            (4, "base", ""),
        )
    )
    oracle = Oracle(
        f'<robot name="r"><link name="base"/>{joints}'
        '<coupling name="a"><predecessor link="l2"/><successor link="l4"/><ratio value="-6"/>'
        '<offset value="0.5"/></coupling>'
        '<coupling name="b"><predecessor link="l2"/><successor link="l3"/></coupling>'
        '<coupling name="c"><joint name="j1" ratio="2"/><joint name="j4"/><offset value="3"/>'
        "</coupling></robot>",
        names=["j4", "j3", "j2", "j1"],
    )
    q1, q2, q3, q4 = 0.1, 0.2, 0.3, 0.4
    phi, K, k = oracle.constraint(oracle.state({"j1": q1, "j2": q2, "j3": q3, "j4": q4}), [0] * 4)
    want = [-6 * (q1 + q2) + 0.5 - q4, q2 - q3, 2 * q1 + q4 - 3, q3 + 2 * q4 - 0.25]
    np.testing.assert_allclose(phi, want, atol=1e-15)
    np.testing.assert_array_equal(K, [[-1, 0, -6, -6], [0, -1, 1, 0], [1, 0, 0, 2], [2, 1, 0, 0]])
    np.testing.assert_array_equal(k, 0)


def test_axes_that_point_against_each_other_are_not_closed() -> None:
    turned = four_bar().replace('<origin xyz="0.5 0 0"/></succ', '<origin rpy="{}"/></succ')
    turned = turned.replace("{}", '3.141592653589793 0 0" xyz="0.5 0 0')
    q = {"joint1": 0.7, "joint2": -0.7, "joint3": 0.7}
    assert Oracle(four_bar()).closed(Oracle(four_bar()).state(q))
    oracle = Oracle(turned)
    assert not oracle.closed(oracle.state(q))


def test_default_second_axis() -> None:
    np.testing.assert_array_equal(default_axis2(np.array([1.0, 0, 0])), [0, 1, 0])
    np.testing.assert_array_equal(default_axis2(np.array([0, 0, -2.0])), [1, 0, 0])
    skew = np.array([0.2, -0.9, 0.1])
    other = default_axis2(skew)
    assert abs(other @ skew) < 1e-15
    assert other[2] > 0.9


def test_rod_keeps_the_length_of_the_zero_configuration() -> None:
    text = four_bar('<loop name="loop" type="rod">').replace(
        'xyz="0.5 0 0"/></s', 'xyz="0 2 0"/></s'
    )
    oracle = Oracle(text)  # from (1.5, 0) to (1, 2) at zero
    phi, K, _ = oracle.constraint(oracle.state({}), np.zeros(3))
    assert phi == pytest.approx([0.0], abs=1e-15)
    assert rank_of(K) == 1
    q = oracle.close(oracle.state({"joint1": 0.2}), oracle.columns("joint1"))
    ends = (oracle.frame_pose(q, f)[:3, 3] for f in (("link2", (1, 0, 0)), ("link3", (0, 2, 0))))
    assert np.linalg.norm(np.subtract(*ends)) == pytest.approx(np.hypot(0.5, 2), abs=1e-14)
    given = Oracle(text.replace('type="rod"', 'type="rod" length="1.5"'))
    assert given.constraint(given.state({}), np.zeros(3))[0] == pytest.approx([(4.25 - 2.25) / 3])


def test_rod_of_no_length_is_refused() -> None:
    with pytest.raises(ValueError, match="no length"):
        Oracle(four_bar('<loop name="loop" type="rod">'))  # its anchors coincide at zero
