"""What tests compare by: how close numbers are, and whether two models are of one robot."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

import robomodel as rm
from robomodel.description import AT_ORIGIN
from robomodel.description.poses import align
from robomodel.model import Model

State = dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]  # joint → position, rates
NUMPY = {"backend": "numpy"}  # no kernels are made


def close(found, expected, tolerance=1e-12, *, least=0.0) -> None:
    """Equal to ``tolerance`` of the largest number expected, or of ``least`` where that is more."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    size = max(least, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * size)


def relative(found, expected, *also) -> float:
    """Largest difference over the largest number that it is made of: expected ones, and others."""
    assert found.shape == expected.shape
    size = max(float(np.max(np.abs(x), initial=0.0)) for x in (expected, *also))
    return float(np.max(np.abs(found - expected), initial=0.0)) / max(size, 1e-9)


def rotation(x, y, z, w):
    """The matrix of a quaternion."""
    return Rotation.from_quat([x, y, z, w]).as_matrix()


def spanning(model: Model, q, v, a) -> State:
    """Position, velocity and acceleration of every joint of the spanning tree."""
    positions, state = [], {}
    for cluster in model.clusters:
        positions.extend(float(x) for x in cluster.constraint.positions(list(q[cluster.q])))
    G, g = model.constraint_jacobian(q), model.constraint_bias(q, v)
    qd, qdd = G @ v, G @ a + g
    positions = np.array(positions)
    for joint, node in zip(model.joints, model.nodes, strict=True):
        at, dofs = slice(node.q, node.q + joint.nq), slice(node.v, node.v + joint.nv)
        state[joint.name] = positions[at], qd[dofs], qdd[dofs]
    return state


def gathered(model: Model, state: State):
    """The q, v and a at which the joints of the spanning tree are in this state."""
    nq = sum(joint.nq for joint in model.joints)
    nv = sum(joint.nv for joint in model.joints)
    Q, V, A = np.zeros(nq), np.zeros(nv), np.zeros(nv)
    for joint, node in zip(model.joints, model.nodes, strict=True):
        at, dofs = slice(node.q, node.q + joint.nq), slice(node.v, node.v + joint.nv)
        Q[at], V[dofs], A[dofs] = state[joint.name]
    q, v, a = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
    for cluster in model.clusters:
        own = Q[cluster.spanning_q]
        if cluster.kind == "couplings":
            linear = getattr(cluster.constraint, "linear", cluster.constraint)  # of polynomials
            matrix, offset = np.array(linear.position_matrix), np.array(linear.offset)
            own = np.linalg.lstsq(matrix, own - offset, rcond=None)[0][: q[cluster.q].size]
        q[cluster.q] = own
        v[cluster.v] = V[cluster.spanning_v][list(cluster.columns)]
        a[cluster.v] = A[cluster.spanning_v][list(cluster.columns)]
    return q, v, a


def in_world(model: Model, state: State) -> State:
    """The state with free joints' positions counted from the world, as MuJoCo counts them."""
    result = dict(state)
    moved_by = {joint.child: joint for joint in model.description.joints}
    for joint in moved_by.values():
        if joint.type == "floating":
            q, v, a = state[joint.name]
            turn, point = rotation(*q[3:]), q[:3]
            above = joint
            while above is joint or (above is not None and above.type == "fixed"):
                frame = np.array(above.origin.rotation)
                turn, point = frame @ turn, frame @ point + np.array(above.origin.xyz)
                above = moved_by.get(above.parent)
            result[joint.name] = np.concatenate([point, Rotation.from_matrix(turn).as_quat()]), v, a
    return result


def sliders(model: Model, q, other: Model) -> State:
    """Where the joints are that stand for prismatic and planar loops; they are dependent ones."""
    result: State = {}
    parents = {joint.child: joint.parent for joint in other.description.joints}
    for loop in model.description.loops:
        if loop.type in ("prismatic", "planar") and loop.name in parents:
            poses = []
            ends = [loop.predecessor, loop.successor]
            carrier = parents[loop.name]
            while carrier not in (ends[0].link, ends[1].link):
                carrier = parents[carrier]
            for end in ends if carrier == ends[0].link else ends[::-1]:
                pose = np.eye(4)
                pose[:3, :3], pose[:3, 3] = end.origin.rotation, end.origin.xyz
                poses.append(rm.frame_pose(model, q, end.link) @ pose)
            apart = np.linalg.inv(poses[0]) @ poses[1]
            way = apart[:3, 3]
            axis = np.array(loop.axis) / np.linalg.norm(loop.axis)
            if loop.type == "prismatic":
                result[loop.name] = np.array([axis @ way]), np.zeros(1), np.zeros(1)
                continue
            k, images = align(tuple(axis))
            axes = np.array(images).T
            x, y = axes[(k + 1) % 3], axes[(k + 2) % 3]
            angle = np.arctan2(y @ apart[:3, :3] @ x, x @ apart[:3, :3] @ x)
            for name, value in ((".x", x @ way), (".y", y @ way), ("", angle)):
                result[loop.name + name] = np.array([value]), np.zeros(1), np.zeros(1)
    return result


def split(state: State, model: Model, other: Model) -> State:
    """The state of ``other``, in which slides and more stand for some of ``model``'s joints."""
    names = {joint.name for joint in other.joints}
    origins = {joint.name: joint.origin for joint in other.description.joints}
    result: State = {}
    in_its_world = in_world(model, state)
    for joint in model.joints:
        q, v, a = state[joint.name]
        if joint.name not in names:
            continue
        if joint.type == "floating" and f"{joint.name}.x" not in names:
            from_world = origins.get(joint.name, AT_ORIGIN) == AT_ORIGIN  # as MJCF counts
            result[joint.name] = (in_its_world if from_world else state)[joint.name]
        elif f"{joint.name}.x" not in names:
            result[joint.name] = q, v, a
            if f"{joint.name}.advance" in names:
                pitch = next(j.pitch for j in model.description.joints if j.name == joint.name)
                result[f"{joint.name}.advance"] = pitch * q, pitch * v, pitch * a
        elif joint.type == "planar":
            turn = np.array([[np.cos(q[2]), -np.sin(q[2])], [np.sin(q[2]), np.cos(q[2])]])
            rate = turn @ v[:2]
            push = turn @ (a[:2] + v[2] * np.array([-v[1], v[0]]))
            for i, axis in enumerate("xy"):
                result[f"{joint.name}.{axis}"] = q[i : i + 1], rate[i : i + 1], push[i : i + 1]
            result[joint.name] = q[2:], v[2:], a[2:]
        else:
            turn = rotation(*q[3:])
            rate = turn @ v[3:]
            push = turn @ (a[3:] + np.cross(v[:3], v[3:]))
            for i, axis in enumerate("xyz"):
                result[f"{joint.name}.{axis}"] = q[i : i + 1], rate[i : i + 1], push[i : i + 1]
            result[joint.name] = q[3:], v[:3], a[:3]
    return result


def same_robot(model: Model, other: Model, *, states=3, tolerance=1e-12, seed=0):
    """Two models of one robot have the same freedoms, inverse dynamics, inertia, passive forces.

    At random states, joint by joint, whatever the order of their coordinates and whichever of them
    are independent; forces are mapped as power is. Limits of joints that both have agree.
    """
    rng = np.random.default_rng(seed)
    assert model.nv == other.nv
    assert model.gravity == other.gravity
    for _ in range(states):
        q = model.random_configuration(rng, base_pose="random")
        v, a = rng.normal(size=(2, model.nv))

        def mapped(v, a, q=q):
            state = split(spanning(model, q, v, a), model, other) | sliders(model, q, other)
            return gathered(other, state)

        q2, v2, a2 = mapped(v, a)
        opened = np.max(np.abs(model.residual(q)), initial=0.0)  # of files that cannot close
        assert np.max(np.abs(other.residual(q2)), initial=0.0) < max(1e-10, 1.001 * opened)
        zero = np.zeros(model.nv)
        T = np.array([mapped(unit, zero)[1] for unit in np.eye(model.nv)]).T
        T = T.reshape(other.nv, model.nv)
        close(T @ v, v2, 1e-9)
        mass = rm.crba(model, q, **NUMPY)
        mine, its = rm.rnea(model, q, v, a, **NUMPY), T.T @ rm.rnea(other, q2, v2, a2, **NUMPY)
        close(
            its,
            mine,
            tolerance,
            least=np.max(np.abs(mine), initial=0) + np.max(np.abs(mass), initial=0),
        )
        close(T.T @ rm.crba(other, q2, **NUMPY) @ T, mass, tolerance * 10)
        mine, its = rm.passive_force(model, q, v, **NUMPY), rm.passive_force(other, q2, v2, **NUMPY)
        close(T.T @ its, mine, 1e-9, least=1.0)
    limits = {joint.name: joint.limits for joint in other.description.joints}
    for joint in model.description.joints:
        if joint.name in limits:
            ours, its = joint.limits, limits[joint.name]
            bounds = (ours.lower, ours.upper), (its.lower, its.upper)
            np.testing.assert_allclose(*bounds, rtol=1e-9, atol=1e-12)
