"""The methods of a model that convert states to and from other libraries' orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from robomodel.model.conventions.layouts import Library
    from robomodel.model.model import Model


class StateConversions:
    """``to_…_order`` and ``from_…_order`` for each library; mixed into :class:`Model`."""

    def to_pinocchio_order(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        a: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        joints: object = None,
    ) -> Any:
        """A state in Pinocchio's order.

        Dependent joints that Pinocchio has follow from ours, forces are put on independent ones;
        dependent joints that it lacks are no matter. Linear in v and tau; a has terms in v.

        Args:
            q: Configuration (..., nq).
            v: Velocities (..., nv).
            a: Their rates (..., nv); they need v.
            tau: Forces (..., nv) on v.
            joints: Pinocchio's model of the robot (``pinocchio.Model``), or joint names in its
                order (``model.names``), the base first; None for the order that it makes of the
                same URDF.

        Returns:
            state: q alone, or a tuple of q and what else is given.

        Raises:
            ValueError: Joints that one of the two lacks, or that are of another kind.
        """
        return _converted("to", self, "Pinocchio", joints, q=q, v=v, a=a, tau=tau)

    def from_pinocchio_order(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        a: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        joints: object = None,
    ) -> Any:
        """A state of Pinocchio's in our order: undoes :meth:`to_pinocchio_order`.

        Dependent joints' own positions and velocities there are read where our q holds them (in
        loops); forces on them count as they push the independent ones.

        Args:
            q: Pinocchio's configuration.
            v: Its velocities.
            a: Their rates; they need v.
            tau: Forces on v.
            joints: As of :meth:`to_pinocchio_order`.

        Returns:
            state: q alone, or a tuple of q and what else is given.

        Raises:
            ValueError: Joints that one of the two lacks, or that are of another kind.
        """
        return _converted("from", self, "Pinocchio", joints, q=q, v=v, a=a, tau=tau)

    def to_mujoco_order(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        a: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        joints: object = None,
    ) -> Any:
        """A state in MuJoCo's order, as :meth:`to_pinocchio_order`.

        Args:
            q: Configuration (..., nq).
            v: Velocities (..., nv).
            a: Their rates (..., nv); they need v.
            tau: Forces (..., nv) on v.
            joints: MuJoCo's model (``mujoco.MjModel``), or names in its order; None is the order
                that it has of what :func:`robomodel.write_mjcf` writes.

        Returns:
            state: q alone, or a tuple of q and what else is given.
        """
        return _converted("to", self, "MuJoCo", joints, q=q, v=v, a=a, tau=tau)

    def from_mujoco_order(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        a: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        joints: object = None,
    ) -> Any:
        """A state of MuJoCo's in our order: undoes :meth:`to_mujoco_order`.

        Args:
            q: MuJoCo's configuration.
            v: Its velocities.
            a: Their rates; they need v.
            tau: Forces on v.
            joints: As of :meth:`to_mujoco_order`.

        Returns:
            state: q alone, or a tuple of q and what else is given.
        """
        return _converted("from", self, "MuJoCo", joints, q=q, v=v, a=a, tau=tau)

    def to_drake_order(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        a: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        joints: object = None,
    ) -> Any:
        """A state in Drake's order, as :meth:`to_pinocchio_order`.

        Args:
            q: Configuration (..., nq).
            v: Velocities (..., nv).
            a: Their rates (..., nv); they need v.
            tau: Forces (..., nv) on v.
            joints: A finalized ``MultibodyPlant``, or names in its order; None is the order that it
                makes of the same file.

        Returns:
            state: q alone, or a tuple of q and what else is given.
        """
        return _converted("to", self, "Drake", joints, q=q, v=v, a=a, tau=tau)

    def from_drake_order(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        *,
        a: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        joints: object = None,
    ) -> Any:
        """A state of Drake's in our order: undoes :meth:`to_drake_order`.

        Args:
            q: Drake's configuration.
            v: Its velocities.
            a: Their rates; they need v.
            tau: Forces on v.
            joints: As of :meth:`to_drake_order`.

        Returns:
            state: q alone, or a tuple of q and what else is given.
        """
        return _converted("from", self, "Drake", joints, q=q, v=v, a=a, tau=tau)


def _converted(
    way: Literal["to", "from"], model: object, library: Library, joints: object, **state: Any
) -> Any:
    from robomodel.model.conventions import conversion

    convert = conversion.to_order if way == "to" else conversion.from_order
    return convert(cast("Model", model), library, joints, state)
