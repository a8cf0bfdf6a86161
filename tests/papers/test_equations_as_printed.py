"""The sparse equations in the paper's words (003): permutations, properties 1 and 2."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from agreement import close
from cases import few
from test_clusters_as_printed import ball

import robomodel as rm
from robomodel.papers.equations import (
    DynamicSystem,
    forward_dynamics,
    inverse_dynamics,
)

pytestmark = pytest.mark.slow  # the papers' own

TIGHT = 1e-10
near = partial(close, tolerance=TIGHT, least=1.0)


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
    for name in (x for x in places if x.startswith(("tau", "qdd"))):  # others move to link frames
        value = places[name]
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


# ---- each equation by itself ---------------------------------------------------------------------


def crossed(u: np.ndarray) -> np.ndarray:
    x, y, z = u
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


@dataclass(frozen=True)
class Part:
    """A body and its joint in link axes, from poses, Jacobians and the file's inertia."""

    name: str
    joint: str
    parent: int
    X: np.ndarray  # motions from the parent's link
    S: np.ndarray
    v: np.ndarray
    frame: np.ndarray  # motions from the body's internal frame, in which the variables are
    dofs: list[int]
    mass: float
    com: np.ndarray
    about: np.ndarray  # the centre of mass

    @property
    def ad(self) -> np.ndarray:
        zero = np.zeros((3, 3))
        return np.block([[crossed(self.v[:3]), zero], [crossed(self.v[3:]), crossed(self.v[:3])]])

    @property
    def inertia(self) -> np.ndarray:
        c = self.mass * crossed(self.com)
        rotary = self.about - c @ crossed(self.com)
        return np.block([[rotary, c], [c.T, self.mass * np.eye(3)]])


def parts(model: rm.Model, q: np.ndarray, v: np.ndarray) -> list[Part]:
    numbers = {body.name: n for n, body in enumerate(model.bodies)}
    found, first = [], 0
    for body, joint in zip(model.bodies, model.joints, strict=True):
        pose = model.frame(body.name).placement
        inner, shift = np.array(pose.rotation), np.array(pose.xyz)
        above = (
            np.eye(4)
            if body.parent not in numbers
            else rm.frame_pose(model, q, body.parent, backend="numpy")
        )
        place = np.linalg.inv(rm.frame_pose(model, q, body.name, backend="numpy")) @ above
        turn, at = place[:3, :3], place[:3, 3]
        dofs = list(range(first, first + joint.nv))
        first += joint.nv
        jacobian = rm.jacobian(model, q, body.name, backend="numpy")
        found.append(
            Part(
                name=body.name,
                joint=joint.name,
                parent=numbers.get(body.parent, -1),
                X=np.block([[turn, np.zeros((3, 3))], [crossed(at) @ turn, turn]]),
                S=jacobian[:, dofs],
                v=jacobian @ v,
                frame=np.block([[inner.T, np.zeros((3, 3))], [-inner.T @ crossed(shift), inner.T]]),
                dofs=dofs,
                mass=body.mass,
                com=np.array(body.com),
                about=np.array(body.inertia),
            )
        )
    return found


def models_by_hand() -> list[rm.Model]:
    return [*(branched_tree(seed) for seed in (1, 5)), rm.load(BALLS.format(FLOATING, "</body>"))]


@pytest.mark.parametrize("model", models_by_hand(), ids=["tree", "other tree", "floating balls"])
def test_newton_and_euler_as_both_papers_write_them(model: rm.Model) -> None:
    """001, (1)-(7), and 003, (2), (3): at what the system's solution says."""
    q, v, a = states(model, 4)
    wrench = {model.bodies[-1].name: np.array([0.1, 0.2, -0.3, 1.0, 2.0, 3.0])}
    x = inverse_dynamics(model, q, v, a, wrench).solve()
    bodies = parts(model, q, v)
    armature = np.zeros(model.nv)
    for b, joint in zip(bodies, model.joints, strict=True):
        armature[b.dofs] = joint.armature
    forces = [x[f"f[{b.name}]"] for b in bodies]
    spatial = [x[f"a[{b.name}]"] for b in bodies]
    base = np.append(np.zeros(3), -np.array(model.gravity))
    for i, b in enumerate(bodies):
        moved, force = spatial[i], forces[i]
        above = base if b.parent < 0 else spatial[b.parent]
        near(b.v, b.X @ carried(bodies, b) + b.S @ v[b.dofs])  # (4); 003, (2)
        near(moved, b.X @ above + b.S @ a[b.dofs] + b.ad @ b.S @ v[b.dofs])  # (5); (3a)
        spin, turned = b.v[:3], moved[:3]
        com = moved[3:] + np.cross(spin, b.v[3:])  # of the origin, then of the centre of mass
        com = com + np.cross(turned, b.com) + np.cross(spin, np.cross(spin, b.com))
        push = b.mass * com  # (1)
        moment = b.about @ turned + np.cross(spin, b.about @ spin)  # (2), about the centre
        net = np.append(moment + np.cross(b.com, push), push)
        near(b.inertia @ moved - b.ad.T @ b.inertia @ b.v, net)  # (3)
        passed = sum(
            (c.X.T @ f for c, f in zip(bodies, forces, strict=True) if c.parent == i),
            start=np.zeros(6),
        )
        near(x[f"fx[{b.name}]"], wrench.get(b.name, np.zeros(6)))
        near(force, net - wrench.get(b.name, np.zeros(6)) + passed)  # (6); (3f)
        torque = b.S.T @ force + armature[b.dofs] * a[b.dofs]
        near(x[f"tau[{b.joint}]"], torque)  # (7); (3τ), and armatures


@pytest.mark.parametrize("model", models_by_hand(), ids=["tree", "other tree", "floating balls"])
def test_every_block_of_003(model: rm.Model) -> None:
    """D by (5), (9), (15); the ABA by (13), (14); W_R and W_L by (29)-(33); (24)-(28) hold."""
    q, v, tau = states(model, 5)
    system = forward_dynamics(model, q, v, tau)
    bodies, count = parts(model, q, v), len(system.b)
    inner = [  # X, S, I in internal frames
        (np.linalg.solve(b.frame, b.X @ (np.eye(6) if b.parent < 0 else bodies[b.parent].frame)),
         np.linalg.solve(b.frame, b.S), b.frame.T @ b.inertia @ b.frame)
        for b in bodies
    ]  # fmt: skip
    sizes = {name: len(at) for name, at in system.columns.items()}
    twins = {"acceleration": "a", "wrench": "f", "torque": "tau"}
    rows, first = {}, 0
    for name in system.p:
        kind, _, owner = name.partition("[")
        size = sizes[f"{twins.get(kind, kind)}[{owner}"]
        rows[name] = range(first, first + size)
        first += size

    def put(matrix: np.ndarray, row: range, column: range, block: np.ndarray) -> None:
        matrix[np.ix_(row, column)] = block

    d, b, right = np.zeros((count, count)), np.zeros(count), np.eye(count)
    steps = [np.eye(count) for _ in range(4)]
    articulated = [inertia for _, _, inertia in inner]
    for i in reversed(range(len(bodies))):  # (13)
        x, s, _ = inner[i]
        u, armature = articulated[i] @ s, model.joints[i].armature
        joint = s.T @ u + armature * np.eye(s.shape[1])
        if bodies[i].parent >= 0:
            left = articulated[i] - u @ np.linalg.solve(joint, u.T)
            articulated[bodies[i].parent] = articulated[bodies[i].parent] + x.T @ left @ x
        body, of = bodies[i].name, bodies[i].joint
        acc, wre, tor = (rows[f"{kind}[{owner}]"] for kind, owner in
                         (("acceleration", body), ("wrench", body), ("torque", of)))  # fmt: skip
        a, f, fx, t, qdd = (
            system.columns[f"{kind}[{owner}]"]
            for kind, owner in (("a", body), ("f", body), ("fx", body), ("tau", of), ("qdd", of))
        )
        for row, column, block in (
            (acc, a, -np.eye(6)), (acc, qdd, s), (wre, f, -np.eye(6)), (wre, a, inner[i][2]),
            (wre, fx, -np.eye(6)), (tor, t, -np.eye(len(t))), (tor, f, s.T),
            (tor, qdd, armature * np.eye(len(t))),
            (rows[f"fx[{body}]"], fx, np.eye(6)), (rows[f"tau[{of}]"], t, np.eye(len(t))),
        ):  # fmt: skip
            put(d, row, column, block)
        if bodies[i].parent >= 0:
            above = bodies[bodies[i].parent].name
            put(d, acc, system.columns[f"a[{above}]"], x)
            put(d, rows[f"wrench[{above}]"], f, x.T)
            put(steps[3], rows[f"wrench[{above}]"], acc, x.T @ articulated[i])  # (33)
        b[rows[f"tau[{of}]"]] = -tau[bodies[i].dofs]
        put(right, f, a, articulated[i])  # (29)
        put(steps[0], tor, acc, s.T @ articulated[i])  # (30)
        put(steps[1], tor, tor, np.linalg.inv(joint))  # (31)
        put(steps[2], acc, tor, -s)  # (32)
    near(system.D, d)
    measured = [r for name in system.p if name[:3] in ("fx[", "tau") for r in rows[name]]
    near(system.b[measured], b[measured])
    near(system.W_R, right)
    near(system.W_L, steps[3] @ steps[2] @ steps[1] @ steps[0])
    check_articulated(model, bodies, tau, system.solve())


def check_articulated(
    model: rm.Model, bodies: list[Part], tau: np.ndarray, x: dict[str, np.ndarray]
) -> None:
    """(13) and (14) in link axes with spatial accelerations, and what (24)-(28) say of them."""
    inertia = [b.inertia for b in bodies]
    bias = [-b.ad.T @ b.inertia @ b.v for b in bodies]
    drift, joint = [], []
    for b, of in zip(bodies, model.joints, strict=True):
        relative = b.S @ np.linalg.lstsq(b.S, b.v - b.X @ carried(bodies, b), rcond=None)[0]
        drift.append(b.ad @ relative)
        joint.append(of.armature * np.eye(b.S.shape[1]))
    for i in reversed(range(len(bodies))):
        b, u = bodies[i], inertia[i] @ bodies[i].S
        joint[i] = joint[i] + b.S.T @ u
        if b.parent >= 0:
            left = inertia[i] - u @ np.linalg.solve(joint[i], u.T)
            pushed = u @ np.linalg.solve(joint[i], tau[b.dofs] - b.S.T @ bias[i])
            inertia[b.parent] = inertia[b.parent] + b.X.T @ left @ b.X
            bias[b.parent] = bias[b.parent] + b.X.T @ (bias[i] + left @ drift[i] + pushed)
    moved: list[np.ndarray] = []
    for i, b in enumerate(bodies):
        base = np.append(np.zeros(3), -np.array(model.gravity))
        above = b.X @ (base if b.parent < 0 else moved[b.parent]) + drift[i]
        qdd = np.linalg.solve(joint[i], tau[b.dofs] - b.S.T @ (inertia[i] @ above + bias[i]))
        near(x[f"qdd[{b.joint}]"], qdd)  # (14), (26)
        moved.append(above + b.S @ qdd)  # (27)
        near(x[f"a[{b.name}]"], moved[i])
        near(x[f"f[{b.name}]"], inertia[i] @ moved[i] + bias[i])  # (24), (28)


def carried(bodies: list[Part], b: Part) -> np.ndarray:
    return np.zeros(6) if b.parent < 0 else bodies[b.parent].v
