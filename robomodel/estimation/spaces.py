"""Spaces of variables: vectors, rotations, and configurations of a model on their manifold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.kinematics.state import Direction, position_directions
from robomodel.kernels.trace import Traced
from robomodel.mechanism.constraints import LoopConstraint
from robomodel.mechanism.joints import JointModel, Spherical
from robomodel.model.configurations.functions import integrated
from robomodel.model.configurations.moving import integrate
from robomodel.model.elements import Cluster, joint_slices
from robomodel.model.model import Model
from robomodel.motion.integrator_functions import Function, function
from robomodel.scalars import Scalar, Vector, stack, unstack
from robomodel.tolerances import EXACTLY_CLOSED

# largest change of a loop's independent joints for which CHANGE_CLOSINGS close it
SMALL_CHANGE = 0.1
CHANGE_CLOSINGS = 4


class Space(Protocol):
    """The space of a variable: values of ``size`` numbers, with ``dim`` directions."""

    @property
    def size(self) -> int:
        """Number of numbers in a value."""
        ...

    @property
    def dim(self) -> int:
        """Directions."""
        ...

    def retract(self, x: Array, dx: Array) -> Array:
        """The point (..., size) reached from x (..., size) along dx (..., dim)."""
        ...

    def local(self, x0: Array, x1: Array) -> Array:
        """The dx (..., dim) that leads from x0 to x1, the inverse of ``retract``."""
        ...

    def local_jacobians(self, x0: Array, x1: Array) -> tuple[Array, Array]:
        """Derivatives (..., dim, dim) of ``local`` with respect to motions of x0 and of x1."""
        ...

    def directions(self, x: Sequence[Traced]) -> list[Direction]:
        """Rates of the traced numbers x along each direction."""
        ...


@dataclass(frozen=True)
class Vectors:
    """Vectors of ``dim`` numbers."""

    dim: int

    @property
    def size(self) -> int:
        """Equal to ``dim``."""
        return self.dim

    def retract(self, x: Array, dx: Array) -> Array:
        """x + dx."""
        return x + dx

    def local(self, x0: Array, x1: Array) -> Array:
        """x1 - x0."""
        return x1 - x0

    def local_jacobians(self, x0: Array, x1: Array) -> tuple[Array, Array]:
        """-1 and 1."""
        return _units((*np.broadcast_shapes(x0.shape[:-1], x1.shape[:-1]), self.dim, self.dim))

    def directions(self, x: Sequence[Traced]) -> list[Direction]:
        """The unit vectors."""
        return [{number: 1.0} for number in x]


@dataclass(frozen=True)
class Rotations:
    """Quaternions x, y, z, w, updated in their own axes; ``model`` caches the compiled programs."""

    model: Model

    @property
    def size(self) -> int:
        """Four numbers."""
        return 4

    @property
    def dim(self) -> int:
        """Three axes."""
        return 3

    def retract(self, x: Array, dx: Array) -> Array:
        """x Exp(dx)."""
        result: Array = function(self.model, "turned", (4, 3, 4), Spherical().moved)(x, dx)
        return result

    def local(self, x0: Array, x1: Array) -> Array:
        """Log(x0⁻¹ x1)."""
        between = Spherical().displacement
        result: Array = function(self.model, "turn between", (4, 4, 3), between)(x0, x1)
        return result

    def local_jacobians(self, x0: Array, x1: Array) -> tuple[Array, Array]:
        """-Jl⁻¹ and Jr⁻¹, the inverse Jacobians of SO(3)."""
        dx = self.local(x0, x1)
        return -_jlog(Spherical(), -dx), _jlog(Spherical(), dx)

    def directions(self, x: Sequence[Traced]) -> list[Direction]:
        """The quaternion's rates at unit angular velocities."""
        rates = (Spherical().rates(x, axis) for axis in np.eye(3).tolist())
        return [dict(zip(x, rate, strict=True)) for rate in rates]


@lru_cache(maxsize=256)
def _units(shape: tuple[int, ...]) -> tuple[Array, Array]:
    one = np.eye(shape[-1])
    return np.broadcast_to(-one, shape), np.broadcast_to(one, shape)  # read-only


@dataclass(frozen=True)
class Configurations:
    """Closed configurations of a model, updated by ``integrate``, so that loops stay closed."""

    model: Model

    @property
    def size(self) -> int:
        """nq."""
        return self.model.nq

    @property
    def dim(self) -> int:
        """nv."""
        return self.model.nv

    def retract(self, x: Array, dx: Array) -> Array:
        """``model.integrate``; small changes of loops by a compiled program."""
        loops = [cluster for cluster in self.model.clusters if cluster.implicit]
        largest = max(
            (float(np.max(np.abs(dx[..., c.v]), initial=0.0)) for c in loops), default=1.0
        )
        if largest > SMALL_CHANGE or not self._steady:
            return integrate(self.model, x, dx, whole=True)
        follow: Array = _following(self.model)(x, dx)
        result, gaps = follow[..., : self.size], follow[..., self.size :]
        if not np.max(np.abs(gaps), initial=0.0) <= EXACTLY_CLOSED:
            return integrate(self.model, x, dx, whole=True)
        return result

    @cached_property
    def _steady(self) -> bool:
        """True if independent joints of loops have one freedom each, so that they change by dx."""
        return all(
            node.joint.nv == 1 or not self.model.joints[body].independent
            for cluster in self.model.clusters
            if cluster.implicit
            for body, node in ((body, self.model.nodes[body]) for body in cluster.bodies)
        )

    def local(self, x0: Array, x1: Array) -> Array:
        """``model.difference``."""
        return self.model.difference(x0, x1)

    def local_jacobians(self, x0: Array, x1: Array) -> tuple[Array, Array]:
        """-1 and 1, or -Jl⁻¹ and Jr⁻¹ for joints that turn about several axes."""
        shape = np.broadcast_shapes(x0.shape[:-1], x1.shape[:-1])
        first, second = map(np.copy, _units((*shape, self.dim, self.dim)))
        for cluster in self._curved:
            for x, result, sign in ((x0, first, -1.0), (x1, second, 1.0)):
                slopes = _slopes(self.model, cluster, x0[..., cluster.q], x1[..., cluster.q], sign)
                if cluster.implicit:
                    g = self.model.constraint_jacobian(x)[..., cluster.spanning_v, cluster.v]
                    slopes = (slopes @ g)[..., list(cluster.columns), :]
                result[..., cluster.v, cluster.v] = sign * slopes
        return first, second

    def directions(self, x: Sequence[Traced]) -> list[Direction]:
        """Along the independent velocities, with loops closed."""
        return position_directions(self.model, x)

    @cached_property
    def _curved(self) -> tuple[Cluster, ...]:
        return tuple(
            cluster
            for cluster in self.model.clusters
            if any(self.model.nodes[body].joint.nv > 1 for body in cluster.bodies)
        )


def _following(model: Model) -> Function:
    """(q, dx) → q changed by dx with loops closed by Newton's method, and the remaining gaps."""
    loops = [
        (cluster, cluster.constraint)
        for cluster in model.clusters
        if isinstance(cluster.constraint, LoopConstraint)
    ]

    def build(q: Vector, dx: Vector) -> list[Scalar]:
        result = integrated(model, q, dx, CHANGE_CLOSINGS)
        gaps = [x for cluster, loop in loops for x in loop.rows(result[cluster.q])[0]]
        return [*result, *gaps]

    count = sum(len(constraint.keep) for _, constraint in loops)
    return function(model, "following", (model.nq, model.nv, model.nq + count), build)


def _slopes(model: Model, cluster: Cluster, x0: Array, x1: Array, sign: float) -> Array:
    """∂ log(x0⁻¹ x1) by motions of x1 (sign 1) or of x0's inverse (-1), for all joints."""
    batch = np.broadcast_shapes(x0.shape[:-1], x1.shape[:-1])
    freedoms = cluster.spanning_v if cluster.implicit else cluster.v
    dim = freedoms.stop - freedoms.start
    result = np.zeros((*batch, dim, dim))
    for body, at, rates in joint_slices(model, cluster):
        joint, block = model.nodes[body].joint, np.eye(1)
        if joint.nv > 1:
            difference = joint.difference(x0[..., at], x1[..., at])
            block = _jlog(joint, sign * difference)
        result[..., rates, rates] = block
    return result


def _jlog(joint: JointModel, dx: Array) -> Array:
    """The derivative (..., nv, nv) of a joint's logarithm at dx (..., nv)."""
    entries = [x for row in joint.jlog(unstack(dx)) for x in row]
    return stack(entries, dx.shape[:-1]).reshape(*dx.shape, joint.nv)
