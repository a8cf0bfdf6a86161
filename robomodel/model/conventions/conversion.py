"""q and v as other libraries order them: Pinocchio, MuJoCo and Drake.

A joint of ours is found in the other library's numbers by its name. What then differs is told by
two things: how positions are written (a quaternion's order, an angle as cosine and sine, from where
a free body is counted), and which velocities are in the parent's axes instead of the child's. Both
are isometries of v, so that forces, which give power, change as velocities do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.spatial.transform import Rotation

from robomodel.errors import few
from robomodel.model.arguments import as_array, common_batch
from robomodel.model.configurations.coordinates import joint_slices
from robomodel.model.conventions.layouts import Form, Layout, Library, Part, find_layout
from robomodel.model.elements import Node
from robomodel.model.joints import Array, relative_motion
from robomodel.scalars import Vector, stack, unstack
from robomodel.spatial import (
    ZERO,
    Motion,
    Transform,
    Vec,
    cross,
    from_quaternion,
    inner,
    minus,
    plus,
)

if TYPE_CHECKING:
    from robomodel.model.model import Model

State: TypeAlias = Array | tuple[Array, ...]


# ---- states --------------------------------------------------------------------------------------


def to_order(model: Model, library: Library, joints: object, state: Mapping[str, Any]) -> State:
    """Our state in the other library's order: q alone, or with what else is given."""
    layout = find_layout(model, library, joints)
    _refuse_missing(model, layout, {body for body, _ in _independent(model)})
    given = _given(model.nq, model.nv, "nq", "nv", state)
    batch = common_batch(**given)
    positions = model._spanning(given["q"])
    result = {"q": np.zeros((*batch, layout.nq))}
    spanning: dict[str, Array] = {}
    if "v" in given:
        spanning["v"] = model._rates(given["q"], given["v"])
        if "a" in given:
            linear = model._rates(given["q"], given["a"])
            spanning["a"] = linear + model.constraint_bias(given["q"], given["v"])
    if "tau" in given:
        spanning["tau"] = np.zeros((*given["tau"].shape[:-1], model.n_joint_velocities))
        for n, (_, column) in enumerate(_independent(model)):
            spanning["tau"][..., column] = given["tau"][..., n]
    result |= {name: np.zeros((*batch, layout.nv)) for name in spanning}
    for part in layout.parts:
        node = model.nodes[part.node]
        own = positions[..., node.q : node.q + node.joint.nq]
        result["q"][..., part.q] = _written(node, part.form, own)
        rates = {name: x[..., node.v : node.v + node.joint.nv] for name, x in spanning.items()}
        turn = _turn(node, part, own)
        for name, rate in rates.items():
            bias = _carried(node, part, rates["v"]) if name == "a" else None
            result[name][..., part.v] = turn(rate, bias)
        if part.advance is not None:
            at, dof, pitch = part.advance
            result["q"][..., at] = pitch * own[..., 0]
            for name in rates.keys() & {"v", "a"}:
                result[name][..., dof] = pitch * rates[name][..., 0]
    return _returned(result)


def from_order(model: Model, library: Library, joints: object, state: Mapping[str, Any]) -> State:
    """The other library's state in our order: q alone, or with what else is given."""
    layout = find_layout(model, library, joints)
    kept = {body for cluster in model.clusters for body, _, _ in joint_slices(model, cluster)}
    _refuse_missing(model, layout, kept | {body for body, _ in _independent(model)})
    sizes = f"{library}'s nq", f"{library}'s nv"
    given = _given(layout.nq, layout.nv, *sizes, state)
    batch = common_batch(**given)
    positions = np.zeros((*batch, model.n_joint_positions))
    spanning = {n: np.zeros((*batch, model.n_joint_velocities)) for n in given if n != "q"}
    for part in layout.parts:
        node = model.nodes[part.node]
        own = _read(node, part.form, given["q"][..., part.q])
        positions[..., node.q : node.q + node.joint.nq] = own
        back = _turn(node, part, own, back=True)
        rates = {name: given[name][..., part.v] for name in spanning}
        if part.advance is not None and "tau" in rates:
            _, dof, pitch = part.advance
            rates["tau"] = rates["tau"] + pitch * given["tau"][..., [dof]]
        for name, rate in rates.items():
            bias = _carried(node, part, back(rates["v"], None)) if name == "a" else None
            spanning[name][..., node.v : node.v + node.joint.nv] = back(rate, bias)
    result = {"q": np.zeros((*batch, model.nq))}
    for cluster in model.clusters:
        for body, place, _ in joint_slices(model, cluster):
            node = model.nodes[body]
            own = positions[..., node.q : node.q + node.joint.nq]
            result["q"][..., cluster.q][..., place] = own
    columns = [column for _, column in _independent(model)]
    for name, x in spanning.items():
        if name == "tau":  # all joints' forces, as they push what is independent
            G = model.constraint_jacobian(result["q"])
            result[name] = np.einsum("...ij,...i->...j", G, x)
        else:
            result[name] = x[..., columns]
    return _returned(result)


def _given(
    nq: int, nv: int, nq_name: str, nv_name: str, state: Mapping[str, Any]
) -> dict[str, Array]:
    if state["a"] is not None and state["v"] is None:
        raise ValueError("accelerations are converted at a velocity: give v as well")
    return {
        name: as_array(values, *((nq, name, nq_name) if name == "q" else (nv, name, nv_name)))
        for name, values in state.items()
        if values is not None or name == "q"
    }


def _returned(result: dict[str, Array]) -> State:
    return result["q"] if len(result) == 1 else tuple(result.values())


def _independent(model: Model) -> Iterator[tuple[int, int]]:
    """The body and the spanning velocity of each of our independent ones."""
    body_of = {column: n for n, node in enumerate(model.nodes) for column in node.freedoms}
    for cluster in model.clusters:
        for own in cluster.columns:
            column = cluster.spanning_v.start + own
            yield body_of[column], column


def _refuse_missing(model: Model, layout: Layout, needed: set[int]) -> None:
    known = {part.node for part in layout.parts}
    missing = [model.joints[body].name for body in sorted(needed - known)]
    if missing:
        raise ValueError(
            f"{layout.library}'s order has no joint {few(missing)}, which q or v of "
            f"'{model.name}' {'needs' if len(missing) == 1 else 'need'}"
        )


# ---- one joint's numbers -------------------------------------------------------------------------


def _left(node: Node) -> Array:
    """L with L q the quaternion of the joint's frame on the world, times q."""
    x, y, z, w = Rotation.from_matrix(Transform(node.rotations, ZERO).matrix()).as_quat()
    return np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])


def _written(node: Node, form: Form, own: Array) -> Array:
    """A position of ours as it is written there, in our order."""
    if form == "circle":
        angle = own[..., -1:]
        return np.concatenate([own[..., :-1], np.cos(angle), np.sin(angle)], axis=-1)
    if form == "rpy":
        R = from_quaternion(*unstack(own)).rows
        roll = np.arctan2(R[2][1], R[2][2])
        pitch = np.arctan2(-R[2][0], np.hypot(R[0][0], R[1][0]))
        return stack([roll, pitch, np.arctan2(R[1][0], R[0][0])], own.shape[:-1])
    if form == "placed" and (node.rotations or node.offset != ZERO):
        point = Transform(node.rotations, node.offset).point(_vec(own[..., :3]))
        turned = np.einsum("ij,...j->...i", _left(node), own[..., 3:])
        return np.concatenate([stack(point, own.shape[:-1]), turned], axis=-1)
    return own


def _read(node: Node, form: Form, written: Array) -> Array:
    """The position of ours that is written so there: the inverse of :func:`_written`."""
    if form == "circle":
        angle = np.arctan2(written[..., -1:], written[..., -2:-1])
        return np.concatenate([written[..., :-2], angle], axis=-1)
    if form == "rpy":
        (cr, cp, cy), (sr, sp, sy) = (
            np.moveaxis(f(0.5 * written), -1, 0) for f in (np.cos, np.sin)
        )
        quaternion = (
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        )
        return np.stack(quaternion, axis=-1)
    if form == "placed" and (node.rotations or node.offset != ZERO):
        moved = minus(_vec(written[..., :3]), node.offset)
        point = Transform(node.rotations, ZERO).unrotate(moved)
        turned = np.einsum("ji,...j->...i", _left(node), written[..., 3:])
        return np.concatenate([stack(point, written.shape[:-1]), turned], axis=-1)
    return written


def _vec(values: Array) -> Vec:
    x, y, z = unstack(values)
    return x, y, z


def _turn(
    node: Node, part: Part, own: Array, *, back: bool = False
) -> Callable[[Array, Array | None], Array]:
    """What takes velocities of a joint to the other library's axes, or ``back``.

    ``bias`` (..., 3) is added to the linear part, in the child's axes (subtracted on the way back).
    """
    if not part.turned:
        return lambda rate, bias: rate
    above = node.rotations if part.form == "placed" else ()
    turns = Transform((*node.joint.placement(unstack(own))[0], *above), ZERO)
    turn = turns.unrotate if back else turns.rotate

    def turned(rate: Array, bias: Array | None) -> Array:
        motion = relative_motion(node.joint, unstack(rate))
        angular, linear = motion.angular, motion.linear
        if bias is not None and not back:
            linear = plus(linear, _vec(bias))
        if part.turned != "linear":
            angular = turn(angular)
        if part.turned != "angular":
            linear = turn(linear)
        if bias is not None and back:
            linear = minus(linear, _vec(bias))
        return _entries(node, Motion(angular, linear), rate, own)

    return turned


def _entries(node: Node, motion: Motion, *like: Array) -> Array:
    """The velocities of a joint that moves so."""
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in like))
    entries: Vector = [
        inner(s.angular, motion.angular) if s.angular != ZERO else inner(s.linear, motion.linear)
        for s in node.joint.subspace
    ]
    return stack(entries, batch)


def _carried(node: Node, part: Part, rate: Array) -> Array | None:
    """ω × v: what the rate of a linear velocity in the parent's axes has besides ours, turned."""
    if part.turned in ("", "angular"):
        return None
    motion = relative_motion(node.joint, unstack(rate))
    return stack(cross(motion.angular, motion.linear), rate.shape[:-1])
