"""How all joints of a model move with q and v, and the conditions of loops and couplings on them.

The joints are those of the spanning tree, dependent and rotor joints included, in the order of
``joint_names``: their positions are the *spanning positions*, their velocities q̇ the *spanning
velocities* (n_joint_velocities of them, several for joints with several freedoms). Featherstone,
Rigid Body Dynamics Algorithms, chapter 8, has the constraints in the same form: K q̇ = 0,
K q̈ = k, q̇ = G v, q̈ = G a + g.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from numpy.typing import ArrayLike

from robomodel.kernels.function import TracedFunction
from robomodel.model.arguments import as_array, common_batch
from robomodel.model.configurations import functions
from robomodel.model.elements import Cluster, Coupling, Joint, Loop, Node
from robomodel.model.graph import WORLD
from robomodel.model.joints import Array
from robomodel.scalars import Scalar, Vector


class Kinematics:
    """Joints' positions, velocities and accelerations, G and g, K and k; mixed into ``Model``."""

    if TYPE_CHECKING:  # fields of the model
        clusters: tuple[Cluster, ...]
        joints: tuple[Joint, ...]
        nodes: tuple[Node, ...]
        loops: tuple[Loop, ...]
        couplings: tuple[Coupling, ...]

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
        """The body that each body's joint stands on; -1 for the world."""
        return tuple(node.parent for node in self.nodes)

    @cached_property
    def floating_base(self) -> str | None:
        """The floating joint through which the whole robot hangs on the world, if there is one."""
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
        """
        return [x for c in self.clusters for x in c.constraint.positions(q[c.q])]

    def joint_positions(self, q: ArrayLike) -> dict[str, Array]:
        """Every tree joint's position by name, floating base excluded.

        Args:
            q: Configuration (..., nq).

        Returns:
            positions: Joint name → position [m, rad]: one (...) array a joint, (..., n) for a joint
                with n positions (a ball joint's are a quaternion x, y, z, w).
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
        """
        return self._run(functions.constraint_jacobian, self._positions(q))

    def constraint_bias(self, q: ArrayLike, v: ArrayLike) -> Array:
        """g, all joints' accelerations at zero independent acceleration: q̈ = G a + g.

        Args:
            q: Configuration (..., nq).
            v: Velocities (..., nv).

        Returns:
            g: (..., n_joint_velocities) [m/s², rad/s²], in the order of G's rows; zero but in
                clusters with loops.
        """
        at, speed = self._positions(q), self._velocities(v)
        common_batch(q=at, v=speed)
        return self._run(functions.constraint_bias, at, speed)

    # ---- conditions

    def residual(self, q: ArrayLike) -> Array:
        """What every loop row, then every coupling, fails by at q.

        Args:
            q: Configuration (..., nq).

        Returns:
            residual: Gaps (..., n_constraints) in the order of ``loops`` (each loop's rows,
                redundant ones included) and ``couplings``; metres, sines of angles, and the
                couplings' units.
        """
        return self._run(functions.residual, self._spanning(self._positions(q)))

    def constraint_matrix(self, q: ArrayLike) -> Array:
        """K, the derivative of :meth:`residual` by all joints' positions: K q̇ = 0.

        Args:
            q: Configuration (..., nq).

        Returns:
            K: (..., n_constraints, n_joint_velocities), rows as :meth:`residual`, columns in the
                order of ``joint_names``; units of a row by those of a column (m, rad).
        """
        return self._run(functions.constraint_matrix, self._positions(q))

    def constraint_matrix_bias(self, q: ArrayLike, v: ArrayLike) -> Array:
        """k = -K̇ q̇, so that K q̈ = k.

        Args:
            q: Configuration (..., nq).
            v: Velocities (..., nv).

        Returns:
            k: (..., n_constraints), rows as :meth:`residual`, in its units per s².
        """
        at, speed = self._positions(q), self._velocities(v)
        common_batch(q=at, v=speed)
        return self._run(functions.constraint_matrix_bias, at, speed)

    def spanning_matrix_bias(self, q: ArrayLike, joint_velocities: ArrayLike) -> Array:
        """k = -K̇ q̇ from the velocities of all joints.

        Unlike v, they say the motion at singular positions too.

        Args:
            q: Configuration (..., nq).
            joint_velocities: q̇ (..., n_joint_velocities) [m/s, rad/s], in the order of
                ``joint_names``.

        Returns:
            k: (..., n_constraints), as :meth:`constraint_matrix_bias`.
        """
        at, size = self._positions(q), self.n_joint_velocities
        rates = as_array(joint_velocities, size, "joint_velocities", "n_joint_velocities")
        common_batch(q=at, joint_velocities=rates)
        return self._run(functions.constraint_matrix_bias, at, rates, spanning=True)

    def condition_rows(self) -> list[tuple[Cluster, list[int]]]:
        """The rows of K that each cluster with loops or couplings must meet.

        Returns:
            rows: (cluster, numbers of rows of :meth:`constraint_matrix`) of each such cluster,
                without the rows that a file's rounding leaves open.
        """
        found = []
        for cluster in self.clusters:
            if cluster.geometry is None:
                continue
            order = functions.condition_order(cast(Any, self))[cluster.index]
            kept = cluster.closing_rows or range(len(order))
            found.append((cluster, [order[row] for row in kept]))
        return found

    # ---- inside

    def _positions(self, q: ArrayLike, name: str = "q") -> Array:
        return as_array(q, self.nq, name, "nq")

    def _velocities(self, v: ArrayLike, name: str = "v") -> Array:
        return as_array(v, self.nv, name, "nv")

    def _run(self, make: Callable[..., TracedFunction], *arrays: Array, **options: Any) -> Array:
        result: Array = make(self, **options)(*arrays)
        return result

    def _spanning(self, q: Array) -> Array:
        return self._run(functions.joint_positions, q)

    def _rates(self, q: Array, v: Array) -> Array:
        """G v."""
        common_batch(q=q, v=v)
        return self._run(functions.joint_velocities, q, v)

    def _named(self, values: Array, of: Literal["q", "v"]) -> dict[str, Array]:
        """All joints' positions, or velocities, by the joints' names but a floating base's."""
        found: dict[str, Array] = {}
        for joint, node in zip(self.joints, self.nodes, strict=True):
            first, size = (node.q, joint.nq) if of == "q" else (node.v, joint.nv)
            own = values[..., first] if size == 1 else values[..., first : first + size]
            if joint.name != self.floating_base:
                found[joint.name] = own
        return found
