"""Play of springs: the law, closed forms of oscillations, energy of every step, files."""

import io

import numpy as np
import pytest
from rollouts import q_and_v

import robomodel as rm
from robomodel.scalars import Factorization, elimination_order

STIFFNESS, WIDTH, REFERENCE, MASS = 50.0, 0.3, 0.1, 2.0
BODY = (
    '<inertial><mass value="{}"/>'
    '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def slider(stiffness=STIFFNESS, width=WIDTH, damping=0.0, kind="prismatic") -> rm.Model:
    return rm.load(
        f'<robot name="slider"><link name="w"/><link name="a">{BODY.format(MASS)}</link>'
        f'<joint name="x" type="{kind}"><parent link="w"/><child link="a"/><axis xyz="1 0 0"/>'
        '<limit lower="-9" upper="9" effort="9" velocity="9"/>'
        f'<dynamics damping="{damping}" friction="0" spring_stiffness="{stiffness}" '
        f'spring_reference="{REFERENCE}" spring_deadband="{width}"/></joint></robot>'
    )


def beyond(x):
    s = np.asarray(x) - REFERENCE
    return s - np.clip(s, -WIDTH / 2, WIDTH / 2)


@pytest.mark.parametrize("backend", ["numpy", "compiled"])
def test_no_force_within_and_stiffness_times_what_is_beyond(backend):
    model = slider(damping=0.7)
    x = np.array([-1.0, -0.051, -0.049, 0.0, 0.1, 0.249, 0.2501, 2.0])[:, None]
    v = np.linspace(-1, 1, 8)[:, None]
    force = rm.passive_force(model, x, v, backend=backend)
    np.testing.assert_allclose(force, -STIFFNESS * beyond(x) - 0.7 * v, atol=1e-13)
    a = np.full((8, 1), 0.3)
    tau = rm.rnea(model, x, v, a, passive=True, backend=backend)
    np.testing.assert_allclose(tau, MASS * a - force, atol=1e-13)
    np.testing.assert_allclose(rm.aba(model, x, v, tau, passive=True, backend=backend), a)
    if backend == "compiled":
        _, potential = rm.energy(model, x, v)
        np.testing.assert_allclose(
            potential - rm.energy(slider(0.0, 0.0), x, v)[1],
            0.5 * STIFFNESS * beyond(x)[:, 0] ** 2, atol=1e-13,
        )  # fmt: skip
        by_q, by_v, _ = rm.rnea_derivatives(model, x, v, a, passive=True)
        out = (beyond(x) != 0.0).astype(float)
        np.testing.assert_allclose(by_q[..., 0], STIFFNESS * out, atol=1e-13)
        np.testing.assert_allclose(by_v[..., 0], 0.7, atol=1e-13)
        by_q, _, _ = rm.aba_derivatives(model, x, v, tau, passive=True)
        np.testing.assert_allclose(by_q[..., 0], -STIFFNESS / MASS * out, atol=1e-13)


def period(speed: float) -> float:
    """Half a turn of each side, and twice through the play: 2π/ω + 2w/v."""
    return 2 * np.pi * np.sqrt(MASS / STIFFNESS) + 2 * WIDTH / speed


@pytest.mark.slow
def test_period_is_the_closed_form():
    model, duration = slider(), period(1.0)
    exact = rm.simulate(model, [REFERENCE], [1.0], duration=duration)
    assert abs(exact.q[-1, 0] - REFERENCE) < 1e-9
    assert abs(exact.v[-1, 0] - 1.0) < 1e-8
    for method, error in (
        ("time_stepping", 1.5e-4), ("rk4", 5e-6),
        ("semi_implicit_euler", 2e-4),
    ):  # fmt: skip
        run = rm.simulate(model, [REFERENCE], [1.0], duration=duration, step=duration / 256,
                          method=method)  # fmt: skip
        assert abs(run.q[-1, 0] - REFERENCE) < error
    tau = np.zeros((256, 1))
    rolled = rm.rollout(model, [REFERENCE], [1.0], tau, duration / 256, method="time_stepping")
    stepped = rm.simulate(model, [REFERENCE], [1.0], duration=duration, step=duration / 256,
                          method="time_stepping")  # fmt: skip
    np.testing.assert_allclose(rolled.q[-1], stepped.q[-1], atol=1e-12)


@pytest.mark.parametrize("stiffness", [1e2, 1e4, 1e6, 1e8])
def test_time_stepping_keeps_energy_however_stiff(stiffness):
    """Steps of 10 ms, from 0.07 to 71 times 1/ω: the discrete gradient is met to rounding."""
    model = slider(stiffness)
    tau = np.zeros((2000, 1))
    q, v = q_and_v(rm.rollout(model, [REFERENCE], [1.0], tau, 0.01, method="time_stepping"))
    energy = sum(rm.energy(model, q, v))
    assert np.ptp(energy) < 1e-14 * stiffness**0.5 + 2e-12
    assert np.ptp(q) > WIDTH
    bound = WIDTH / 2 + np.sqrt(MASS / stiffness)  # where all energy is the spring's
    assert abs(q - REFERENCE).max() <= bound + 1e-12
    q, v = q_and_v(rm.rollout(model, [REFERENCE], [1.0], tau, 0.01, method="semi_implicit_euler"))
    between = q - 0.005 * v  # where positions of this method stand when its velocities change
    energy = sum(rm.energy(model, between, v))
    assert np.ptp(energy) < 1e-14 * stiffness**0.5 + 2e-12


ARM = """<robot name="arm"><link name="w"/>
<link name="motor"><inertial><mass value="0.3"/>
<inertia ixx="0.01" iyy="0.01" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="load"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="tip"><inertial><origin xyz="0.1 0 0.02"/><mass value="0.4"/>
<inertia ixx="0.001" iyy="0.002" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="m" type="continuous"><parent link="w"/><child link="motor"/><axis xyz="0 0 1"/></joint>
<joint name="gap" type="continuous"><parent link="motor"/><child link="load"/><axis xyz="0 0 1"/>
<dynamics damping="{damping}" friction="0" spring_stiffness="400" spring_deadband="0.02"/></joint>
<joint name="n" type="continuous"><parent link="load"/><child link="tip"/>
<origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
<dynamics damping="0" friction="0" spring_stiffness="30" spring_deadband="0.2"/></joint>
</robot>"""


@pytest.mark.slow
def test_a_backlash_joint_in_a_chain():
    """Two springs with play that act on each other; steps of second order, energy without drift."""
    model = rm.load(ARM.format(damping=0))
    q, v = np.array([0.0, 0.0, 0.3]), np.array([3.0, 0.0, 1.0])
    exact = rm.simulate(model, q, v, duration=0.5)
    energy = sum(rm.energy(model, exact.q, exact.v))
    assert np.ptp(energy) < 1e-7 * abs(energy[0])
    errors = []
    for step in (1e-3, 5e-4):
        run = rm.simulate(model, q, v, duration=0.5, step=step, method="time_stepping")
        errors.append(abs(run.q[-1] - exact.q[-1]).max())
        assert np.ptp(sum(rm.energy(model, run.q, run.v))) < 40 * step**2 * abs(energy[0]) * 1e3
    assert errors[1] < 0.5 * errors[0] < 1e-3
    damped = rm.load(ARM.format(damping=0.5))
    run = rm.simulate(damped, q, v, duration=0.5, step=1e-3, method="time_stepping")
    assert np.diff(sum(rm.energy(damped, run.q, run.v))).max() < 1e-3


def test_play_of_a_loops_coordinate():
    """A crank whose cut hinge has a spring with play: as that of the joint in its place."""
    text = (
        '<robot name="r"><link name="w"/>'
        + "".join(f'<link name="{n}">{BODY.format(1)}</link>' for n in "abc")
        + "".join(
            f'<joint name="j{c}" type="continuous"><parent link="{p}"/><child link="{c}"/>'
            f'<origin xyz="{at}"/><axis xyz="0 0 1"/></joint>'
            for p, c, at in (("w", "a", "0 0 0"), ("a", "b", "0.2 0 0"), ("w", "c", "0.5 0 0"))
        )
        + '<loop name="cut" type="revolute"><predecessor link="b"><origin xyz="0.5 0 0"/>'
        '</predecessor><successor link="c"><origin xyz="0.4 0 0"/></successor>'
        '<axis xyz="0 0 1"/><dynamics damping="0" friction="0" spring_stiffness="20" '
        'spring_deadband="{}" spring_reference="0.4"/></loop></robot>'
    )
    with_play, without = rm.load(text.format(0.3)), rm.load(text.format(0.0))
    rng = np.random.default_rng(0)
    q = with_play.random_configuration(rng)
    at = with_play.joint_positions(q)
    angle = float(at["jc"] - at["ja"] - at["jb"])
    s = np.angle(np.exp(1j * angle)) - 0.4
    plain = rm.passive_force(without, q, np.zeros(1))
    share = (s - np.clip(s, -0.15, 0.15)) / s
    np.testing.assert_allclose(rm.passive_force(with_play, q, np.zeros(1)), share * plain)
    again = io.StringIO()
    rm.write_urdf(with_play, again)
    assert rm.load(again.getvalue()).springs[0].deadband == 0.3


def test_coordinates_with_play_are_eliminated_last():
    """Steps for others come first, the same for every slope of the springs; nothing is filled."""
    n, last = 9, {2, 4, 7}
    parents = [-1, 0, 1, 2, 3, 1, 5, 6, 7]  # two branches behind 1
    rng = np.random.default_rng(0)
    matrix = [[0.0] * n for _ in range(n)]
    for i in range(n):
        j = i
        while j >= 0:
            matrix[i][j] = matrix[j][i] = np.float64(rng.normal() + 20 * (i == j))
            j = parents[j]
    order = elimination_order(matrix, last)
    assert order == [0, 1, 2, 4, 7, 3, 5, 6, 8]  # 0 and 1 would fill between the branches
    factors = Factorization(matrix, order=order)
    right = rng.normal(size=n)
    np.testing.assert_allclose(factors.solve(right), np.linalg.solve(matrix, right), rtol=1e-12)
    softer = [list(row) for row in matrix]
    for i in last:
        softer[i][i] -= 5.0
    again = Factorization(softer, order=order)
    assert again.lower[5:] == factors.lower[5:]
    assert again.lower[:5] != factors.lower[:5]
    natural = Factorization(matrix)
    count = [sum(x != 0.0 for row in f.lower for x in row) for f in (factors, natural)]
    assert count[0] == count[1]


def test_files():
    model = slider()
    for write in (rm.write_urdf, rm.write_sdf):
        stream = io.StringIO()
        write(model, stream)
        assert rm.load(stream.getvalue()).joints[0].deadband == WIDTH
    with pytest.raises(rm.DescriptionError, match="the play of the joint 'x'"):
        rm.write_mjcf(model, io.StringIO())
    assert rm.write_mjcf(model, io.StringIO(), drop=True) == ("the play of the joint 'x'",)
    (found,) = rm.compare(model, slider(width=0.2)).differences
    assert (found.quantity, found.a, found.b) == ("deadband", 0.3, 0.2)
    assert found.torque > 0.0
    with pytest.raises(rm.DescriptionError, match="spring_deadband of <dynamics> is -1"):
        slider(width=-1)
    with pytest.raises(rm.DescriptionError, match="cannot have play, being spherical"):
        rm.load(
            f'<robot name="r"><link name="w"/><link name="a">{BODY.format(1)}</link>'
            '<joint name="x" type="spherical"><parent link="w"/><child link="a"/>'
            '<dynamics spring_stiffness="1" spring_deadband="0.1"/></joint></robot>'
        )
    with pytest.warns(rm.DescriptionWarning, match="no effect without a spring"):
        slider(stiffness=0.0)


def test_play_in_open_trees():
    """Of a joint that follows another by a gear of 3: three times as narrow at the leader."""
    text = (
        f'<robot name="r"><link name="w"/><link name="a">{BODY.format(1)}</link>'
        f'<link name="b">{BODY.format(1)}</link>'
        '<joint name="x" type="continuous"><parent link="w"/><child link="a"/><axis xyz="0 0 1"/>'
        '{}</joint><joint name="y" type="continuous"><parent link="w"/><child link="b"/>'
        '<axis xyz="0 0 1"/><mimic joint="x" multiplier="3"/><dynamics damping="0" friction="0" '
        'spring_stiffness="5" spring_reference="0.6" spring_deadband="0.3"/></joint></robot>'
    )
    model = rm.load(text.format(""))
    tree = rm.approximate_tree(model)
    assert tree.joints[0].deadband == pytest.approx(0.1, rel=1e-14)
    x = np.linspace(-1, 1, 21)[:, None]
    np.testing.assert_allclose(
        rm.passive_force(tree, x, 0 * x), rm.passive_force(model, x, 0 * x), atol=1e-12
    )
    both = '<dynamics damping="0" friction="0" spring_stiffness="1"/>'
    with pytest.warns(rm.DescriptionWarning, match="the play of its spring is not in the open"):
        rm.write_urdf(rm.load(text.format(both)), io.StringIO(), approximate=True)
