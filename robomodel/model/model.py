"""The model: a robot's parts, how its joints move with q and v, and its configurations.

A :class:`Model` is immutable, compares by identity, and pickles. Its tuples of small objects are
for people (``bodies``, ``joints``, ``loops``, ``couplings``, ``frames``); ``nodes`` and
``clusters`` are what the recursions run over.

The joints are those of the spanning tree, dependent and rotor joints included, in the order of
``joint_names``: their positions are the *spanning positions*, their velocities q̇ the *spanning
velocities* (n_joint_velocities of them, several for joints with several freedoms). Featherstone,
Rigid Body Dynamics Algorithms, chapter 8, has the constraints in the same form: K q̇ = 0,
K q̈ = k, q̇ = G v, q̈ = G a + g.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal, Never

import numpy as np
from numpy.typing import ArrayLike

from robomodel import showing
from robomodel.arrays import Array
from robomodel.description import Description, Vec3
from robomodel.errors import Issue, Named, UnknownNameError, as_real, did_you_mean, few
from robomodel.kernels.function import TracedFunction
from robomodel.mechanism.graph import WORLD
from robomodel.mechanism.springs import Spring
from robomodel.messages import instead
from robomodel.model.actuators import Actuator
from robomodel.model.arguments import as_array, common_batch
from robomodel.model.elements import (
    Body,
    Cluster,
    Coupling,
    Frame,
    Joint,
    Loop,
    Node,
    Structure,
)
from robomodel.model.registry import METHODS
from robomodel.scalars import Scalar, Vector, as_number
from robomodel.tolerances import CLOSED

if TYPE_CHECKING:
    from numpy.random import Generator

    from robomodel.model.violations import LimitViolation, Singularity


@dataclass(frozen=True, eq=False)
class Model:
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
    _remarks: tuple[str, ...]
    description: Description
    springs: tuple[Spring, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    # decisions on bodies, which models with other parameters share
    _structure: Structure | None = None
    # the model with the file's numbers, if this one's are arguments of a program: decisions that
    # depend on values are taken on it
    _nominal: Model | None = None
    # a description without rounding, and what was warned of while this was made from it
    _issues: tuple[Description, tuple[Issue, ...]] | None = None
    # joints of the balls of rods whose spins are locked
    _balls: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Never:
        if name in dir(type(self)):  # a property that failed: once more, for its own error
            object.__getattribute__(self, name)
        raise AttributeError(f"a Model has no '{name}'{instead(name, dir(type(self)))}")

    def __repr__(self) -> str:
        bodies, clusters = len(self.bodies), len(self.clusters)
        return (
            f"<Model {self.name!r}: {bodies} bod{'y' if bodies == 1 else 'ies'} in {clusters} "
            f"cluster{'' if clusters == 1 else 's'}, "
            f"nq={self.nq}, nv={self.nv}>"
        )

    def _repr_html_(self) -> str:
        """A table, in a notebook."""
        rows = {
            "freedoms (nv)": f"{self.nv}: {few(self.dof_names, 12)}",
            "positions (nq)": str(self.nq),
            "bodies": f"{len(self.bodies)}, of {self.mass:.4g} kg",
            "clusters": str(len(self.clusters)),
            "loops": few([loop.name for loop in self.loops], 12),
            "couplings": few([coupling.name for coupling in self.couplings], 12),
            "actuators": few([actuator.name for actuator in self.actuators], 12),
        }
        cells = "".join(
            f"<tr><td>{escape(key)}</td><td>{escape(text)}</td></tr>"
            for key, text in rows.items()
            if text
        )
        return f"<table><tr><th colspan=2>{escape(self.name)}</th></tr>{cells}</table>"

    def as_model(self) -> Model:
        """The model itself, without what a class of its own says of it."""
        if type(self) is Model:
            return self
        return Model(**{each.name: getattr(self, each.name) for each in fields(Model)})

    def __getstate__(self) -> dict[str, object]:
        attributes = vars(type(self)).items()
        cached = {name for name, value in attributes if isinstance(value, cached_property)}
        return {k: v for k, v in self.__dict__.items() if k not in cached}

    # ---- sizes and names

    @cached_property
    def mass(self) -> float:
        """Mass of all that moves [kg]; links fixed to the world do not count."""
        total: float = as_number(sum(body.mass for body in self.bodies))
        return total

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

    @cached_property
    def velocity_lower(self) -> Array:
        """Least velocities (nv,) of one-dof independent joints, -inf elsewhere; read-only."""
        return self._limits("least_velocity", -np.inf)

    @cached_property
    def effort_lower(self) -> Array:
        """Least efforts (nv,) of one-dof independent joints, -inf elsewhere; read-only."""
        return self._limits("least_effort", -np.inf)

    def _limits(self, quantity: str, otherwise: float) -> Array:
        limits = {joint.name: getattr(joint, quantity) for joint in self.joints if joint.nv == 1}
        result = np.array([limits.get(name, otherwise) for name in self.dof_names], dtype=float)
        result.flags.writeable = False
        return result

    @cached_property
    def frame_index(self) -> dict[str, int]:
        """The index in ``frames`` of each name."""
        return {frame.name: i for i, frame in enumerate(self.frames)}

    def frame(self, name: str) -> Frame:
        """The frame of a link.

        Args:
            name: The link's name in the file.

        Returns:
            frame: Its name, its ``body`` (an index into ``bodies``; -1 for the fixed base), and its
                ``pose`` on that body, in the body's internal axes [m].

        Raises:
            UnknownNameError: No link has this name (a KeyError and a ValueError).

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> model.frame("link2").name
            'link2'
        """
        if name not in self.frame_index:
            hint = did_you_mean(name, self.frame_index)
            for joint in self.description.joints:
                if joint.name == name:
                    hint = f": it is a joint; its link is '{joint.child}'"
            raise UnknownNameError(f"no link '{name}' in '{self.name}'{hint}")
        return self.frames[self.frame_index[name]]

    @cached_property
    def _derived(self) -> dict[object, Any]:
        """Results that are computed once per model, by key; not pickled."""
        return {}

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
    def parents(self) -> tuple[int, ...]:
        """Each body's parent body; -1 for the world."""
        return tuple(node.parent for node in self.nodes)

    @cached_property
    def floating_base(self) -> str | None:
        """The name of the floating joint between the world and the whole robot, if there is one."""
        on_world = [node for node in self.nodes if node.parent == WORLD]
        return self.joints[0].name if len(on_world) == 1 and on_world[0].joint.nv == 6 else None

    # ---- joints

    def spanning_positions(self, q: Vector) -> list[Scalar]:
        """All joints' positions from q: what the recursions start from; scalars of any kind.

        Args:
            q: Configuration, nq scalars: floats, arrays over a batch, or traced ones.

        Returns:
            positions: n_joint_positions scalars, joint by joint in the order of ``joint_names``
                [m, rad; quaternions x, y, z, w].

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> len(model.spanning_positions(q))
            3
        """
        return [x for c in self.clusters for x in c.constraint.positions(q[c.q])]

    def joint_positions(self, q: ArrayLike) -> dict[str, Array]:
        """Every tree joint's position by name, floating base excluded.

        Args:
            q: Configuration (..., nq).

        Returns:
            positions: Joint name → position [m, rad]: one (...) array a joint, (..., n) for a joint
                with n positions (a ball joint's are a quaternion x, y, z, w).

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> sorted(model.joint_positions(q))
            ['joint1', 'joint2', 'joint3']
        """
        return self._named(self._spanning(self._positions(q)), "q")

    def joint_velocities(self, q: ArrayLike, v: ArrayLike) -> dict[str, Array]:
        """Every tree joint's velocity by name, floating base excluded.

        Args:
            q: Configuration (..., nq).
            v: Velocities (..., nv).

        Returns:
            velocities: Joint name → velocity [m/s, rad/s]: one (...) array a joint, (..., n) for a
                joint with n freedoms, in the joint's axes.

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> {name: round(float(x), 9) for name, x in model.joint_velocities(q, [1.0]).items()}
            {'joint1': 1.0, 'joint2': -1.0, 'joint3': 1.0}
        """
        return self._named(self._rates(self._positions(q), self._velocities(v)), "v")

    def joint_accelerations(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> dict[str, Array]:
        """Every tree joint's acceleration by name, floating base excluded: G a + g.

        Args:
            q: Configuration (..., nq).
            v: Velocities (..., nv).
            a: Accelerations (..., nv), the derivatives of v.

        Returns:
            accelerations: Joint name → acceleration [m/s², rad/s²], shaped as
                :meth:`joint_velocities`.

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> sorted(model.joint_accelerations(q, [1.0], [0.5]))
            ['joint1', 'joint2', 'joint3']
        """
        at, v, a = self._positions(q), self._velocities(v), self._velocities(a, "a")
        common_batch(q=at, v=v, a=a)
        return self._named(self._rates(at, a) + self.constraint_bias(at, v), "v")

    def constraint_jacobian(self, q: ArrayLike) -> Array:
        """G, with which all joints' velocities follow from the independent ones: q̇ = G v.

        Args:
            q: Configuration (..., nq).

        Returns:
            G: (..., n_joint_velocities, nv), rows in the order of ``joint_names``, a floating base
                first; ratios of joints' units (m, rad).

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> model.constraint_jacobian(q).round(9) + 0.0
            array([[ 1.],
                   [-1.],
                   [ 1.]])
        """
        return self._told(METHODS["constraint_jacobian"], self._positions(q))

    def constraint_bias(self, q: ArrayLike, v: ArrayLike) -> Array:
        """g, all joints' accelerations at zero independent acceleration: q̈ = G a + g.

        Args:
            q: Configuration (..., nq).
            v: Velocities (..., nv).

        Returns:
            g: (..., n_joint_velocities) [m/s², rad/s²], in the order of G's rows; zero but in
                clusters with loops.

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> model.constraint_bias(q, [1.0]).shape
            (3,)
        """
        at, speed = self._positions(q), self._velocities(v)
        common_batch(q=at, v=speed)
        return self._told(METHODS["constraint_bias"], at, speed)

    # ---- conditions

    def residual(self, q: ArrayLike) -> Array:
        """The gaps of all loop rows, then of all couplings, at q.

        Args:
            q: Configuration (..., nq).

        Returns:
            residual: Gaps (..., n_constraints) in the order of ``loops`` (each loop's rows,
                redundant ones included) and ``couplings``; metres, sines of angles, and the
                couplings' units.

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> bool(np.abs(model.residual(q)).max() < 1e-12)
            True
        """
        return self._run(METHODS["residual"], self._spanning(self._positions(q)))

    def constraint_matrix(self, q: ArrayLike) -> Array:
        """K, the derivative of :meth:`residual` by all joints' positions: K q̇ = 0.

        Args:
            q: Configuration (..., nq).

        Returns:
            K: (..., n_constraints, n_joint_velocities), rows as :meth:`residual`, columns in the
                order of ``joint_names``; units of a row by those of a column (m, rad).

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> K, G = model.constraint_matrix(q), model.constraint_jacobian(q)
            >>> bool(np.allclose(K @ G, 0.0))
            True
        """
        return self._run(METHODS["constraint_matrix"], self._positions(q))

    def constraint_matrix_bias(self, q: ArrayLike, v: ArrayLike) -> Array:
        """k = -K̇ q̇, so that K q̈ = k.

        Args:
            q: Configuration (..., nq).
            v: Velocities (..., nv).

        Returns:
            k: (..., n_constraints), rows as :meth:`residual`, in its units per s².

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> K, k = model.constraint_matrix(q), model.constraint_matrix_bias(q, [1.0])
            >>> bool(np.allclose(K @ model.constraint_bias(q, [1.0]), k))
            True
        """
        at, speed = self._positions(q), self._velocities(v)
        common_batch(q=at, v=speed)
        return self._run(METHODS["constraint_matrix_bias"], at, speed)

    def spanning_matrix_bias(self, q: ArrayLike, joint_velocities: ArrayLike) -> Array:
        """k = -K̇ q̇ from the velocities of all joints.

        Unlike v, they say the motion at singular positions too.

        Args:
            q: Configuration (..., nq).
            joint_velocities: q̇ (..., n_joint_velocities) [m/s, rad/s], in the order of
                ``joint_names``.

        Returns:
            k: (..., n_constraints), as :meth:`constraint_matrix_bias`.

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> model.spanning_matrix_bias(q, [1.0, -1.0, 1.0]).shape
            (5,)
        """
        at, size = self._positions(q), self.n_joint_velocities
        rates = as_array(joint_velocities, size, "joint_velocities", "n_joint_velocities")
        common_batch(q=at, joint_velocities=rates)
        return self._run(METHODS["constraint_matrix_bias"], at, rates, spanning=True)

    def condition_rows(self) -> list[tuple[Cluster, list[int]]]:
        """The rows of K that each cluster with loops or couplings must meet.

        Returns:
            rows: (cluster, numbers of rows of :meth:`constraint_matrix`) of each such cluster,
                without the rows that a file's rounding leaves open.
        """
        rows = []
        for cluster in self.clusters:
            if not cluster.geometry.rows:
                continue
            order = METHODS["condition_order"](self)[cluster.index]
            closing = cluster.closing_rows or range(len(order))
            rows.append((cluster, [order[row] for row in closing]))
        return rows

    # ---- configurations

    def neutral(self) -> Array:
        """A closed, regular configuration within joint limits, near where the file starts.

        That is zero, or the initial positions of joints. Linkages close as near to it as can be, in
        radians and sizes of the linkage; where none of their closed configurations that were found
        is within the limits, loading warns of it.

        Returns:
            q: The configuration (nq,): metres, radians, unit quaternions.
        """
        return np.array([x for cluster in self.clusters for x in cluster.start])

    def random_configuration(
        self,
        rng: Generator | int | None = None,
        *,
        near: ArrayLike | None = None,
        branch: Literal["reachable", "any"] = "reachable",
        base_pose: ArrayLike | Literal["random"] | None = None,
    ) -> Array:
        """A random configuration that the robot reaches, away from singularities.

        Closed paths within limits lead to it from :meth:`neutral`, straight on at change points: a
        parallelogram stays one, and no other assembly mode is drawn. Uniform by volume, in radians
        and sizes of clusters, so that no coordinate is preferred; joints without limits turn all
        the way round, and slide as far as loops let them, or over the cluster's size. The base is
        not drawn.

        Args:
            rng: A generator, or a seed.
            near: A closed configuration from which to depart by up to 0.3 (radians or cluster
                sizes) on its own assembly mode, whichever that is.
            branch: "any" draws from all assembly modes, with limits where loops leave a way to.
            base_pose: [x y z qx qy qz qw] of the floating base, or "random" for any orientation,
                within a metre. By default that of :meth:`neutral`. The pose of a base that loops
                tie to the world is always drawn with them.

        Returns:
            q: The configuration (nq,).

        Raises:
            ClosureError: Loops do not close from ``near``.
            ValueError: Another branch; ``near`` is no configuration; no pose, or no base for it.

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.random_configuration(0)
            >>> bool(np.abs(model.residual(q)).max() < 1e-9)
            True
        """
        generator = np.random.default_rng(rng)
        at = None if near is None else self._positions(near, "near")
        drawn = showing.call("random_configuration", self, generator, at, branch, base_pose)
        return self._warned(drawn)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Remarks: choices made while it was built, and where other assembly modes begin.

        The latter at change points that linkages of one freedom pass, which are looked for when
        notes are first read.
        """
        return (*self._remarks, *showing.call("mode_notes", self))

    @cached_property
    def _contradicted(self) -> tuple[Cluster, ...]:
        clusters: tuple[Cluster, ...] = METHODS["contradicted"](self)
        return clusters

    def _warned(self, q: Array) -> Array:
        """A configuration, with a warning if the file leaves its loops open."""
        if self._contradicted:
            METHODS["warn_of_contradictions"](self, self._contradicted, q)
        return q

    def is_reachable(self, q: ArrayLike) -> Any:
        """True if a closed path within limits leads to a configuration from :meth:`neutral`.

        Straight on at change points. Where linkages have one freedom, the answer is exact; with
        several, False says that no path was found.

        Args:
            q: Configuration (..., nq).

        Returns:
            reachable: True or False; of a batch an array (...). False, too, for what is open,
                beyond limits, or not finite.

        Examples:
            >>> model = rm.robots.load("crank_rocker")
            >>> q = model.random_configuration(0)
            >>> model.is_reachable(q)
            True
        """
        return showing.call("is_reachable", self, self._positions(q))

    def configuration(
        self,
        positions: Mapping[str, float | Sequence[float]] | None = None,
        *,
        guess: ArrayLike | None = None,
        base_pose: Sequence[float] | None = None,
        **joints: Never,
    ) -> Array:
        """The configuration with these joint positions; loops are solved for the rest.

        Args:
            positions: Joint name → position (a sequence for joints with several). Independent
                joints not named keep the guess's values; so do dependent ones where a named one
                fixes them.
            guess: A configuration that says which branch of the loops to stay on (default
                :meth:`neutral`).
            base_pose: [x y z qx qy qz qw] of the floating base.
            **joints: None: names of joints need not be those of keywords, so that these raise a
                TypeError with the dict to write.

        Returns:
            q: The configuration (nq,): on the assembly mode of the guess where a path leads there.
                Where loops were found to close in another mode alone, it is of that, with a
                RuntimeWarning. With all joints given it is what is given.

        Raises:
            ClosureError: The loops do not close there (a ValueError with ``.residual``); the
                message says how near the named joints come on the way from the guess, and which
                limit or dead point ends it.
            KeyError: Unknown joints.
            ValueError: Contradicting positions.

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> model.configuration({"joint1": 0.8}).round(3)
            array([ 0.8, -0.8,  0.8])
        """
        if joints:
            raise TypeError(
                f"positions are a dict: configuration({{{', '.join(f'{n!r}: …' for n in joints)}}})"
            )
        at = self.neutral() if guess is None else self._positions(guess, "guess")
        positions = {} if positions is None else positions
        if not isinstance(positions, Mapping):
            raise TypeError(f"positions maps joints to positions, not {type(positions).__name__}")
        return self._warned(METHODS["configuration"](self, positions, at, base_pose))

    def close(self, q: ArrayLike, *, parameters: Mapping[str, ArrayLike] | None = None) -> Array:
        """The closed configuration nearest to q; quaternions are normalised.

        Nearest in radians and, for slides, sizes of the linkage.

        Of a batch, configurations that cannot be closed are not-a-number, each for itself, with a
        RuntimeWarning.

        Args:
            q: Configuration (..., nq).
            parameters: Other values of some parameters, by the names of
                :func:`robomodel.parameters` (with those of geometry): a number, or an array (...)
                that broadcasts with the batch. Then the independent positions are held, and what
                cannot be closed, or opens redundant conditions, is not-a-number, one configuration
                too.

        Returns:
            q: The closed configuration (..., nq).

        Raises:
            ClosureError: Loops do not close from there.
            ValueError: A quaternion is zero; parameters that do not broadcast.
            UnknownNameError: A name that is no parameter's.

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> off = q + [0.0, 0.01, 0.0]
            >>> bool(np.abs(model.residual(model.close(off))).max() < 1e-12)
            True
        """
        if parameters is not None:
            closed: Array = METHODS["close_for"](self, self._positions(q), parameters)
            return closed
        return self._warned(METHODS["close"](self, self._positions(q)))

    def check(
        self, q: ArrayLike, v: ArrayLike | None = None, *, tolerance: float = CLOSED
    ) -> tuple[LimitViolation | Singularity, ...]:
        """Raise an error for what is not a state; return what else is to be said of a state.

        That is the joint limits that it exceeds, and the clusters that are at, or near, a singular
        position, where results are not-a-number, or lose digits.

        Messages name the first state of a batch that is wrong.

        Args:
            q: Configuration (..., nq).
            v: Velocities (..., nv).
            tolerance: For gaps [m, rad, or as a ratio of them], relative where positions are beyond
                1, and for quaternions' lengths.

        Returns:
            violations: Each with ``joint``, ``quantity`` ("position", "velocity" or "sine"),
                ``value`` and ``limit``; ``str`` of one is a sentence. Those of singular positions
                have ``cluster``, ``kind`` ("dead point" or "change point"), ``joints``, ``sine``
                and ``near``, too.

        Raises:
            ValueError: Numbers that are not finite, quaternions that are not of unit length, with
                joints' names.
            ClosureError: Loops that are open (a ValueError too, with ``.residual`` and ``.loops``).

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> model.check(q)
            ()
        """
        if not (tolerance := as_real(tolerance, "tolerance")) >= 0.0:
            raise ValueError(f"tolerance must be a number from 0 on, got {tolerance!r}")
        speed = None if v is None else self._velocities(v)
        found: tuple[LimitViolation | Singularity, ...] = METHODS["check"](
            self, self._positions(q), speed, tolerance
        )
        return found

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

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> model.joint_positions(model.integrate(q, [0.1]))["joint1"].round(9)
            np.float64(0.9)
        """
        reached = METHODS["integrate"](self, self._positions(q), self._velocities(v_dt, "v_dt"))
        return self._warned(reached)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """The v that leads from q0 to q1 in unit time: the inverse of ``integrate``.

        Args:
            q0: Configuration (..., nq).
            q1: Configuration (..., nq).

        Returns:
            v: Velocities (..., nv).

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> model.difference(q, model.integrate(q, [0.1])).round(9)
            array([0.1])
        """
        way: Array = METHODS["difference"](
            self, self._positions(q0, "q0"), self._positions(q1, "q1")
        )
        return way

    # ---- other libraries' orders

    def to_order(
        self,
        library: Literal["pinocchio", "mujoco", "drake"],
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        a: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        joints: object = None,
    ) -> Any:
        """A state in another library's order.

        Dependent joints that the library has follow from ours, forces are put on independent ones;
        dependent joints that it lacks are no matter. Linear in v and tau; a has terms in v.

        Args:
            library: "pinocchio", "mujoco" or "drake".
            q: Configuration (..., nq).
            v: Velocities (..., nv).
            a: Their rates (..., nv); they need v.
            tau: Forces (..., nv) on v.
            joints: The library's model of the robot (``pinocchio.Model``, ``mujoco.MjModel``, a
                finalized ``MultibodyPlant``), or joint names in its order, Pinocchio's with the
                base first. None for the order that Pinocchio and Drake make of the same file, and
                that MuJoCo has of what :func:`robomodel.write_mjcf` writes.

        Returns:
            state: q alone, or a tuple of q and those of v, a and tau that are arguments.

        Raises:
            ValueError: Joints that one of the two lacks, or that are of another kind; other
                libraries.

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> model.to_order("pinocchio", q).shape
            (6,)
        """
        state = {"q": q, "v": v, "a": a, "tau": tau}
        return showing.call("to_order", self, library, joints, state)

    def from_order(
        self,
        library: Literal["pinocchio", "mujoco", "drake"],
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        a: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        joints: object = None,
    ) -> Any:
        """A state of another library in our order: undoes :meth:`to_order`.

        Positions and velocities of dependent joints are read where our q holds them (in loops);
        forces on them count as they push the independent ones.

        Args:
            library: As of :meth:`to_order`.
            q: The library's configuration.
            v: Its velocities.
            a: Their rates; they need v.
            tau: Forces on v.
            joints: As of :meth:`to_order`.

        Returns:
            state: q alone, or a tuple of q and those of v, a and tau that are arguments.

        Raises:
            ValueError: Joints that one of the two lacks, or that are of another kind; other
                libraries.

        Examples:
            >>> model = rm.robots.load("four_bar")
            >>> q = model.configuration({"joint1": 0.8})
            >>> q2, v2 = model.from_order("pinocchio", *model.to_order("pinocchio", q, [1.0]))
            >>> bool(np.allclose(q2, q))
            True
        """
        state = {"q": q, "v": v, "a": a, "tau": tau}
        return showing.call("from_order", self, library, joints, state)

    # ---- inside

    def _positions(self, q: ArrayLike, name: str = "q") -> Array:
        return as_array(q, self.nq, name, "nq")

    def _velocities(self, v: ArrayLike, name: str = "v") -> Array:
        return as_array(v, self.nv, name, "nv")

    def _run(self, make: Callable[..., TracedFunction], *arrays: Array, **options: Any) -> Array:
        result: Array = make(self, **options)(*arrays)
        return result

    def _told(self, make: Callable[[Model], TracedFunction], *arrays: Array) -> Array:
        """The same, with a warning where a cluster is at a singular position."""
        result: Array = make(self).telling(*arrays)
        return result

    def _spanning(self, q: Array) -> Array:
        return self._run(METHODS["joint_positions"], q)

    def _rates(self, q: Array, v: Array) -> Array:
        common_batch(q=q, v=v)
        return self._told(METHODS["joint_velocities"], q, v)

    def _named(self, values: Array, of: Literal["q", "v"]) -> Named[Array]:
        """Positions or velocities by joint name, without those of a floating base."""
        by_name: dict[str, Array] = {}
        for joint, node in zip(self.joints, self.nodes, strict=True):
            first, size = (node.q, joint.nq) if of == "q" else (node.v, joint.nv)
            of_joint = values[..., first] if size == 1 else values[..., first : first + size]
            if joint.name != self.floating_base:
                by_name[joint.name] = of_joint
        return Named(by_name, "joint")
