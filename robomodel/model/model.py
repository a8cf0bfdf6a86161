"""The model: what a robot is made of, and its configurations.

A :class:`Model` is immutable, compares by identity, and pickles. Its tuples of small objects are
for people (``bodies``, ``joints``, ``loops``, ``couplings``, ``frames``); ``nodes`` and
``clusters`` are what the recursions run over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from robomodel.description import Description, Vec3
from robomodel.errors import UnknownNameError, did_you_mean
from robomodel.model.actuators import Actuator
from robomodel.model.arguments import as_array, common_batch
from robomodel.model.closure import CLOSED, stack, unstack
from robomodel.model.conventions.methods import StateConversions
from robomodel.model.elements import Body, Cluster, Coupling, Frame, Joint, Loop, Node
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array
from robomodel.model.springs import Spring
from robomodel.scalars import Scalar, Vector, dot

if TYPE_CHECKING:
    from numpy.random import Generator

    from robomodel.model.configurations.states import LimitViolation


@dataclass(frozen=True, eq=False)
class Model(StateConversions):
    """A robot: bodies in a tree of clusters, with exact constraints.

    q (..., nq), v (..., nv): see the conventions in the documentation. All methods take leading
    batch axes unless they say otherwise.

    Attributes:
        name: The robot's name.
        gravity: Acceleration of free fall [m/s²].
        bodies: Rigid bodies: links with what fixed joints attach to them.
        joints: The joints of the spanning tree.
        loops: Loop joints.
        couplings: Linear relations of joints' positions, by couplings and mimics.
        clusters: Bodies whose joints constraints relate; an unconstrained one is a cluster alone.
        frames: The file's links, each fixed to a body; :meth:`frame` finds one.
        nodes: The bodies as the recursions see them.
        notes: What to know of it, in words.
        description: What the file says.
        springs: Springs, with dampers and dry friction, on lengths and angles of the mechanism.
        actuators: Motors with what they push.
    """

    name: str
    gravity: Vec3
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    loops: tuple[Loop, ...]
    couplings: tuple[Coupling, ...]
    clusters: tuple[Cluster, ...]
    frames: tuple[Frame, ...]
    nodes: tuple[Node, ...]
    notes: tuple[str, ...]
    description: Description
    springs: tuple[Spring, ...] = ()
    actuators: tuple[Actuator, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<Model {self.name!r}: {len(self.bodies)} bodies in {len(self.clusters)} clusters, "
            f"nq={self.nq}, nv={self.nv}>"
        )

    def __getstate__(self) -> dict[str, object]:
        cached = {
            name for name in vars(type(self)) if isinstance(vars(type(self))[name], cached_property)
        }
        return {k: v for k, v in self.__dict__.items() if k not in cached}

    # ---- sizes and names

    @cached_property
    def nq(self) -> int:
        """Number of position coordinates."""
        return int(self.clusters[-1].q.stop) if self.clusters else 0

    @cached_property
    def nv(self) -> int:
        """Number of independent velocities: the degrees of freedom."""
        return int(self.clusters[-1].v.stop) if self.clusters else 0

    @cached_property
    def n_joint_positions(self) -> int:
        """Number of positions of all joints of the spanning tree."""
        return int(self.clusters[-1].spanning_q.stop) if self.clusters else 0

    @cached_property
    def n_joint_velocities(self) -> int:
        """Number of velocities of all joints of the spanning tree."""
        return int(self.clusters[-1].spanning_v.stop) if self.clusters else 0

    @cached_property
    def mass(self) -> float:
        """Mass of all that moves [kg]; links fixed to the world do not count."""
        return float(sum(body.mass for body in self.bodies))

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Every joint of the spanning tree, dependent and rotor joints included, base first."""
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def dof_names(self) -> tuple[str, ...]:
        """A label for each of the nv independent velocities."""
        return tuple(name for cluster in self.clusters for name in cluster.independent)

    @cached_property
    def lower(self) -> Array:
        """Lower position limits (nv,) of one-dof independent joints, -inf elsewhere; read-only."""
        return self._limits("lower", -np.inf)

    @cached_property
    def upper(self) -> Array:
        """Upper position limits (nv,) of one-dof independent joints, inf elsewhere; read-only."""
        return self._limits("upper", np.inf)

    @cached_property
    def velocity_limit(self) -> Array:
        """Velocity limits (nv,) of one-dof independent joints, inf elsewhere; read-only."""
        return self._limits("velocity_limit", np.inf)

    @cached_property
    def effort_limit(self) -> Array:
        """Effort limits (nv,) of one-dof independent joints, inf elsewhere; read-only."""
        return self._limits("effort_limit", np.inf)

    def _limits(self, quantity: str, otherwise: float) -> Array:
        known = {joint.name: getattr(joint, quantity) for joint in self.joints if joint.nv == 1}
        found = np.array([known.get(name, otherwise) for name in self.dof_names], dtype=float)
        found.flags.writeable = False
        return found

    @cached_property
    def floating_base(self) -> str | None:
        """The floating joint through which the whole robot hangs on the world, if there is one."""
        on_world = [node for node in self.nodes if node.parent == WORLD]
        return self.joints[0].name if len(on_world) == 1 and on_world[0].joint.nv == 6 else None

    @cached_property
    def frame_index(self) -> dict[str, int]:
        """Position in ``frames`` by name."""
        return {frame.name: i for i, frame in enumerate(self.frames)}

    def frame(self, name: str) -> Frame:
        """The frame of a link; UnknownNameError with a hint if there is none of that name."""
        index = self.frame_index.get(name)
        if index is None:
            raise UnknownNameError(
                f"no link '{name}' in '{self.name}'{did_you_mean(name, self.frame_index)}"
            )
        return self.frames[index]

    @cached_property
    def derived(self) -> dict[object, Any]:
        """What others make of this model and want to keep with it, by key; not pickled."""
        return {}

    # ---- generic over scalars: what the recursions start from

    def spanning_positions(self, q: Vector) -> list[Scalar]:
        """All joints' positions from q; scalars of any kind."""
        return [x for c in self.clusters for x in c.constraint.positions(q[c.q])]

    # ---- configurations

    def neutral(self) -> Array:
        """A closed, regular configuration (nq,), at zero or as near to it as joint limits allow."""
        return np.array([x for cluster in self.clusters for x in cluster.start])

    def random_configuration(
        self, rng: Generator | int | None = None, *, near: ArrayLike | None = None
    ) -> Array:
        """A closed random configuration, away from singularities.

        Joint limits are respected (where loops leave a way to); joints without limits turn all the
        way round, or slide over the cluster's size.

        Args:
            rng: A generator, or a seed.
            near: A closed configuration from which to depart by up to 0.3 (radians or cluster
                sizes) without leaving the branch of its loops.

        Returns:
            q: The configuration (nq,).
        """
        from robomodel.model.configurations.random import random

        generator = np.random.default_rng(rng)
        at = None if near is None else self._positions(near, "near")
        return random(self, generator, at)

    def configuration(
        self,
        positions: Mapping[str, float | Sequence[float]] | None = None,
        *,
        guess: ArrayLike | None = None,
        base_pose: Sequence[float] | None = None,
    ) -> Array:
        """The configuration with these joint positions; loops are solved for the rest.

        Args:
            positions: Joint name → position (a sequence for joints with several). Independent
                joints not named keep the guess's values; so do dependent ones where a named one
                fixes them.
            guess: A configuration that says which branch of the loops to stay on (default
                :meth:`neutral`).
            base_pose: [x y z qx qy qz qw] of the floating base.

        Returns:
            q: The configuration (nq,).

        Raises:
            ClosureError: The loops do not close there (a ValueError with ``.residual``).
            KeyError: Unknown joints.
            ValueError: Contradicting positions.
        """
        from robomodel.model.configurations.solving import solve

        at = self.neutral() if guess is None else self._positions(guess, "guess")
        wanted = {} if positions is None else positions
        if not isinstance(wanted, Mapping):
            raise TypeError(f"positions maps joints to positions, not {type(wanted).__name__}")
        return solve(self, wanted, at, base_pose)

    def close(self, q: ArrayLike) -> Array:
        """The closed configuration nearest to q; quaternions are normalised.

        Of a batch, configurations that cannot be closed are not-a-number, each for itself, with a
        RuntimeWarning.

        Args:
            q: Configuration (..., nq).

        Returns:
            q: The closed configuration (..., nq).

        Raises:
            ClosureError: Loops do not close from there.
            ValueError: A quaternion is zero.
        """
        from robomodel.model.configurations import moving

        return moving.close(self, self._positions(q))

    def check(
        self, q: ArrayLike, v: ArrayLike | None = None, *, tolerance: float = CLOSED
    ) -> tuple[LimitViolation, ...]:
        """Refuse what is no state; tell of the joint limits that a state goes beyond, if any.

        Batches are told by the first of their states that is wrong.

        Args:
            q: Configuration (..., nq).
            v: Velocities (..., nv).
            tolerance: For gaps [m, rad, or as a ratio of them], relative where positions are beyond
                1, and for quaternions' lengths.

        Returns:
            violations: Each says in words what it is: ``joint``, ``quantity``, ``value``,
                ``limit``.

        Raises:
            ValueError: Numbers that are not finite, quaternions that are not of unit length, with
                joints' names.
            ClosureError: Loops that are open (a ValueError too, with ``.residual`` and ``.loops``).
        """
        from robomodel.model.configurations import states

        if not tolerance >= 0.0:
            raise ValueError(f"tolerance must be a number from 0 on, got {tolerance!r}")
        speed = None if v is None else self._velocities(v)
        return states.check(self, self._positions(q), speed, tolerance)

    def residual(self, q: ArrayLike) -> Array:
        """What every loop row, then every coupling, fails by at q.

        Args:
            q: Configuration (..., nq).

        Returns:
            residual: Gaps (..., n_constraints) in the order of ``loops`` (each loop's rows,
                redundant ones included) and ``couplings``; metres, sines of angles, and the
                couplings' units.
        """
        return self._conditions(q, None)[0]

    def constraint_matrix(self, q: ArrayLike) -> Array:
        """K (..., n_constraints, n_joint_velocities): derivative of :meth:`residual`."""
        return self._conditions(q, None)[1]

    def constraint_matrix_bias(self, q: ArrayLike, v: ArrayLike) -> Array:
        """k = -K̇ q̇ (..., n_constraints), so that K q̈ = k."""
        return self._conditions(q, v)[2]

    def spanning_matrix_bias(self, q: ArrayLike, joint_velocities: ArrayLike) -> Array:
        """The same from the velocities (..., n_joint_velocities) of all joints.

        They say the motion at singular positions too.
        """
        size = self.n_joint_velocities
        rates = as_array(joint_velocities, size, "joint_velocities", "n_joint_velocities")
        return self._conditions(q, None, rates)[2]

    def condition_rows(self) -> list[tuple[Cluster, list[int]]]:
        """The rows of K that each cluster with loops or couplings must meet.

        Without those that a file's rounding leaves open.
        """
        found = []
        for cluster in self.clusters:
            if cluster.geometry is None:
                continue
            order = self._condition_order[cluster.index]
            kept = cluster.closing_rows or range(len(order))
            found.append((cluster, [order[row] for row in kept]))
        return found

    def joint_positions(self, q: ArrayLike) -> dict[str, Array]:
        """Every tree joint's position by name, floating base excluded.

        One (...) array a joint; (..., nq) for joints with several positions.
        """
        spanning = self._spanning(self._positions(q))
        return {
            joint.name: spanning[..., node.q]
            if joint.nq == 1
            else spanning[..., node.q : node.q + joint.nq]
            for joint, node in self._but_base()
        }

    def joint_velocities(self, q: ArrayLike, v: ArrayLike) -> dict[str, Array]:
        """Every tree joint's velocity by name, floating base excluded."""
        at, v = self._positions(q), self._velocities(v)
        common_batch(q=at, v=v)
        return self._by_joint(np.einsum("...ij,...j->...i", self.constraint_jacobian(at), v))

    def joint_accelerations(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> dict[str, Array]:
        """Every tree joint's acceleration by name, floating base excluded."""
        at, v, a = self._positions(q), self._velocities(v), self._velocities(a, "a")
        common_batch(q=at, v=v, a=a)
        linear = np.einsum("...ij,...j->...i", self.constraint_jacobian(at), a)
        return self._by_joint(linear + self.constraint_bias(at, v))

    def constraint_jacobian(self, q: ArrayLike) -> Array:
        """G (..., n_joint_velocities, nv): q̇ = G v, rows in ``joint_names`` order, base first."""
        at = self._positions(q)
        batch = at.shape[:-1]
        result = np.zeros((*batch, self.n_joint_velocities, self.nv))
        with np.errstate(all="ignore"):
            scalars = unstack(at)
            for c in self.clusters:
                rows = c.constraint.jacobian(c.constraint.positions(scalars[c.q]))
                block = stack([x for row in rows for x in row], batch)
                result[..., c.spanning_v, c.v] = block.reshape(*batch, len(rows), c.nv)
        return result

    def constraint_bias(self, q: ArrayLike, v: ArrayLike) -> Array:
        """g (..., n_joint_velocities): q̈ = G a + g."""
        at, speed = self._positions(q), self._velocities(v)
        batch = common_batch(q=at, v=speed)
        result = np.zeros((*batch, self.n_joint_velocities))
        with np.errstate(all="ignore"):
            scalars, speeds = unstack(at), unstack(speed)
            for c in self.clusters:
                if not c.implicit:
                    continue
                positions = c.constraint.positions(scalars[c.q])
                g = c.constraint.jacobian(positions)
                rates = [dot(row, speeds[c.v]) for row in g]
                result[..., c.spanning_v] = stack(c.constraint.bias(positions, rates), batch)
        return result

    def integrate(self, q: ArrayLike, v_dt: ArrayLike) -> Array:
        """The configuration reached from q along v_dt = v · time.

        Independent joints move by v_dt exactly (a floating base along its body's screw), the loops
        stay closed on their branch. ``difference`` undoes it. Of a batch, configurations where a
        loop cannot follow are not-a-number, each for itself, with a RuntimeWarning.

        Args:
            q: Configuration (..., nq).
            v_dt: Steps (..., nv) of the independent coordinates.

        Returns:
            q: The configuration (..., nq).

        Raises:
            ClosureError: A loop cannot follow.
        """
        from robomodel.model.configurations import moving

        return moving.integrate(self, self._positions(q), self._velocities(v_dt, "v_dt"))

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """The v that leads from q0 to q1 in unit time: the inverse of ``integrate``.

        Args:
            q0: Configuration (..., nq).
            q1: Configuration (..., nq).

        Returns:
            v: Velocities (..., nv).
        """
        from robomodel.model.configurations import moving

        return moving.difference(self, self._positions(q0, "q0"), self._positions(q1, "q1"))

    # ---- inside

    def _positions(self, q: ArrayLike, name: str = "q") -> Array:
        return as_array(q, self.nq, name, "nq")

    def _velocities(self, v: ArrayLike, name: str = "v") -> Array:
        return as_array(v, self.nv, name, "nv")

    def _but_base(self) -> list[tuple[Joint, Node]]:
        pairs = list(zip(self.joints, self.nodes, strict=True))
        return pairs if self.floating_base is None else pairs[1:]

    def _spanning(self, q: Array) -> Array:
        return stack(self.spanning_positions(unstack(q)), q.shape[:-1])

    def _by_joint(self, values: Array) -> dict[str, Array]:
        return {
            joint.name: values[..., node.v]
            if joint.nv == 1
            else values[..., node.v : node.v + joint.nv]
            for joint, node in self._but_base()
        }

    def _conditions(
        self, q: ArrayLike, v: ArrayLike | None, rates: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Residual, K and k over the whole robot, in the order of loops and couplings."""
        at = self._positions(q)
        speed = None if v is None else self._velocities(v)
        batch = at.shape[:-1] if speed is None else common_batch(q=at, v=speed)
        if rates is not None:
            batch = common_batch(q=at, joint_velocities=rates)
        where = self._condition_order
        count = sum(len(rows) for rows in where.values())
        values, bias = np.zeros((*batch, count)), np.zeros((*batch, count))
        matrix = np.zeros((*batch, count, self.n_joint_velocities))
        spanning = self._spanning(at)
        if speed is not None:
            rates = np.einsum("...ij,...j->...i", self.constraint_jacobian(at), speed)
        for cluster in self.clusters:
            if cluster.geometry is None:
                continue
            rows = where[cluster.index]
            value, jacobian, quadratic = cluster.geometry.evaluate(
                spanning[..., cluster.spanning_q],
                None if rates is None else rates[..., cluster.spanning_v],
            )
            values[..., rows] = value
            bias[..., rows] = quadratic
            block = np.zeros((*batch, len(rows), self.n_joint_velocities))
            block[..., cluster.spanning_v] = jacobian
            matrix[..., rows, :] = block
        return values, matrix, bias

    @cached_property
    def _condition_order(self) -> dict[int, list[int]]:
        """For each constrained cluster, the robot's row of each of its conditions."""
        loop_at: dict[str, range] = {}
        coupling_at: dict[tuple[str, str], list[int]] = {}
        count = 0
        for loop in self.loops:
            loop_at[loop.name] = range(count, count + loop.rows)
            count += loop.rows
        for i, coupling in enumerate(self.couplings):
            coupling_at.setdefault((coupling.cluster, coupling.name), []).append(count + i)
        order: dict[int, list[int]] = {}
        for cluster in self.clusters:
            if cluster.geometry is None:
                continue
            rows = [row for loop in cluster.geometry.loops for row in loop_at[loop.name]]
            rows += [coupling_at[cluster.name, c.name].pop(0) for c in cluster.geometry.linear]
            order[cluster.index] = rows
        return order
