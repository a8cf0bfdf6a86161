"""What moves: bodies, the elementary steps between them, and the joints' variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from robomodel.dynamics.baselines.projection import spanning_tree
from robomodel.dynamics.kinematics.state import State
from robomodel.model.graph import WORLD
from robomodel.model.model import Model
from robomodel.scalars import is_zero
from robomodel.spatial import NO_MOTION, NO_WRENCH, ZERO, Motion, RigidInertia, Transform, Wrench

View: TypeAlias = Literal["tree", "cluster"]


Split: TypeAlias = Literal["none", "joint", "steps"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A frame that accelerates with a = X a_above + Σ motion · q̈ + drift, and may carry mass.

    ``motions``: the columns of each joint acceleration. ``above`` is a segment's number or WORLD;
    ``gyroscopic`` is the wrench that velocities alone require. ``body`` is the body that it is, or
    leads to.
    """

    name: str
    above: int
    transform: Transform
    motions: tuple[tuple[str, tuple[Motion, ...]], ...]
    drift: Motion
    inertia: RigidInertia | None
    gyroscopic: Wrench
    body: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A joint's velocities that are independent together or not: a joint acceleration's variable.

    ``freedoms`` count spanning velocities, ``dofs`` independent ones (none for dependent joints).
    """

    name: str
    body: int
    freedoms: tuple[int, ...]
    dofs: tuple[int, ...]


def pieces(model: Model) -> tuple[Piece, ...]:
    """The joints as variables: one each, or one a component where only some are independent."""
    found = []
    for cluster in model.clusters:
        first = cluster.spanning_v.start
        dof = {first + c: cluster.v.start + i for i, c in enumerate(cluster.columns)}
        for body, joint in zip(cluster.bodies, cluster.joints, strict=True):
            freedoms = tuple(model.nodes[body].freedoms)
            dofs = tuple(dof[r] for r in freedoms if r in dof)
            if len(dofs) in (0, len(freedoms)):
                if freedoms:
                    found.append(Piece(joint, body, freedoms, dofs))
                continue
            for n, r in enumerate(freedoms):
                own = (dof[r],) if r in dof else ()
                found.append(Piece(f"{joint}.{n}", body, (r,), own))
    return tuple(found)


def segments(
    model: Model, state: State, view: View, split: Split = "none"
) -> tuple[list[Segment], list[int]]:
    """The frames from the base outwards, and the number of each body's own.

    ``split``: "joint" gives every body, but those on the base, a frame before its joint's own
    acceleration, so that this can be eliminated in the body's axes; "steps" gives all bodies one
    after every elementary rotation and shift.
    """
    moving = state if view == "cluster" else tree_state(state)
    parts: dict[int, list[tuple[str, tuple[Motion, ...]]]] = {}
    for piece in pieces(model):
        cluster = model.clusters[model.nodes[piece.body].cluster]
        if view == "cluster":
            for body in cluster.bodies if piece.dofs else ():
                subspace = state.subspace(body)
                columns = tuple(subspace[i - cluster.v.start] for i in piece.dofs)
                if not all(is_zero(x) for motion in columns for x in motion.entries()):
                    parts.setdefault(body, []).append((f"qdd[{piece.name}]", columns))
            continue
        node = model.nodes[piece.body]
        columns = tuple(node.joint.subspace[r - node.v] for r in piece.freedoms)
        parts.setdefault(piece.body, []).append((f"qdd[{piece.name}]", columns))
    found: list[Segment] = []
    own: list[int] = []
    for body, node in enumerate(model.nodes):
        x = state.transforms[body]
        above = WORLD if node.parent == WORLD else own[node.parent]
        chain = [x]
        if split == "joint" and node.parent != WORLD:
            chain = [x, Transform((), ZERO)]
        elif split == "steps":
            turns = [Transform((r,), ZERO) for r in reversed(x.rotations)]
            chain = [Transform((), x.offset), *turns, Transform((), ZERO)]
        for n, step in enumerate(chain):
            last = n == len(chain) - 1
            found.append(
                Segment(
                    name=node.name if last else f"{node.name}:{n}",
                    above=above,
                    transform=step,
                    motions=tuple(parts.get(body, ())) if last else (),
                    drift=moving.bias_acceleration(body) if last else NO_MOTION,
                    inertia=state.inertia[body] if last else None,
                    gyroscopic=state.inertia[body].gyroscopic(state.centripetal[body])
                    if last
                    else NO_WRENCH,
                    body=body,
                )
            )
            above = len(found) - 1
        own.append(above)
    return found, own


def tree_state(state: State) -> State:
    """The same state of the spanning tree: loops and couplings cut, every joint on its own."""
    tree = spanning_tree(state.model)
    return State(tree, state.positions, state.turned, state.velocities)
