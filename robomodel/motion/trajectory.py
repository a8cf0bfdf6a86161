"""Trajectories: the states of a simulation over time, quantities from them, export to files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from robomodel import showing
from robomodel.arrays import Array
from robomodel.dynamics import energy
from robomodel.dynamics.baselines import spanning_tree
from robomodel.errors import MissingPackageError
from robomodel.model.arguments import as_numbers
from robomodel.model.elements import position_names
from robomodel.model.model import Model
from robomodel.motion.events import ContactRecord, Event
from robomodel.motion.ground import GroundPoint, Pair
from robomodel.scalars import stack, unstack

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Stop:
    """Early end of a simulation: ``joint`` met its "lower" or "upper" ``limit`` at ``time``.

    Attributes:
        time: Time [s].
        joint: The joint's name.
        limit: "lower" or "upper".
        position: The limit, which the joint met [rad or m].
    """

    time: float
    joint: str
    limit: str
    position: float


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States of a model over time.

    ``contact_forces``, ``contact_residual`` and ``contact_places`` are set after time stepping. The
    first of their k are ``contact_points``, then come ``contact_pairs``.

    ``v`` and ``tau`` are of the model's independent joints. Where these rest at a dead point while
    others move, ``v`` does not determine the motion; :attr:`joint_velocities` does.

    Attributes:
        model: The robot.
        method: The integrator.
        times: Times (T+1,) [s], from 0 on.
        q: Configurations (T+1, nq).
        v: Velocities (T+1, nv).
        tau: Forces (T+1, nv) at these states (those held over a step stand at its beginning); with
            ``saturate=True`` what the motors gave.
        stop: The reason for an early end, or None.
        dense: Interpolant of an adaptive method, see :meth:`at`.
        contact_forces: Mean force (T, k, 3) [N] on each contact point over each step, in world
            axes.
        contact_residual: Residual (T,) of each step's contact equations, relative to the velocities
            in them: above 1e-10 they were not solved to rounding.
        saturated: With ``saturate=True``, which of ``model.actuators`` were asked for more than
            they can (T+1, nu).
        contact_points: The points that may touch the ground.
        contact_pairs: Links that a callable given as ``contacts=`` has named (``link``, ``other``,
            ``name``); the force is on ``link``.
        contact_places: Positions of the forces in the world (T, k, 3) [m], at the steps'
            beginnings; a callable's at their middles, nan for a pair that it does not name.
    """

    model: Model
    method: str
    times: Array
    q: Array
    v: Array
    tau: Array
    stop: Stop | None = None
    dense: Callable[[float], Array] | None = field(default=None, repr=False)
    contact_forces: Array | None = field(default=None, repr=False)
    contact_residual: Array | None = field(default=None, repr=False)
    saturated: Array | None = field(default=None, repr=False)
    _rates: Array | None = field(default=None, repr=False)
    contact_points: tuple[GroundPoint, ...] = field(default=(), repr=False)
    contact_pairs: tuple[Pair, ...] = field(default=(), repr=False)
    contact_places: Array | None = field(default=None, repr=False)
    _touching: ContactRecord | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        return (
            f"<Trajectory of '{self.model.name}' by {self.method}: {len(self)} states, "
            f"0 to {self.times[-1]:.6g} s>"
        )

    # ---- quantities

    @cached_property
    def joint_velocities(self) -> Array:
        """Velocities of all joints of the spanning tree (T+1, n_joint_velocities).

        In ``joint_names`` order, the base first; also defined at dead points and change points.
        """
        if self._rates is not None:
            return self._rates
        jacobian = self.model.constraint_jacobian(self.q)
        rates: Array = np.einsum("...ij,...j->...i", jacobian, self.v)
        return rates

    @cached_property
    def _energies(self) -> tuple[Array, Array]:
        if self._rates is None:
            return energy(self.model, self.q, self.v)
        spanning = stack(self.model.spanning_positions(unstack(self.q)), (len(self),))
        kinetic, _ = energy(spanning_tree(self.model), spanning, self._rates)
        with np.errstate(invalid="ignore"):  # at singular states; the potential does not need G
            return kinetic, energy(self.model, self.q, np.zeros_like(self.v))[1]

    @property
    def kinetic(self) -> Array:
        """Kinetic energy (T+1,) [J]."""
        return self._energies[0]

    @property
    def potential(self) -> Array:
        """Potential energy (T+1,) [J], zero at the world's origin."""
        return self._energies[1]

    @property
    def energy(self) -> Array:
        """Total energy (T+1,) [J]."""
        return self.kinetic + self.potential

    @cached_property
    def residual(self) -> Array:
        """The largest gap of loops and couplings at each state (T+1,), redundant rows included."""
        gaps: Array = np.max(np.abs(self.model.residual(self.q)), axis=-1, initial=0.0)
        return gaps

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Touch-downs, lift-offs, slips and sticks: (time, kind, link), in the order of time.

        For contacts between two links ``link`` is the pair of their names. Points of one link on
        the ground count as one contact, as do those between the same two links. See
        :func:`robomodel.motion.events.contact_events`. Empty without time stepping.
        """
        return () if self._touching is None else self._touching.events(self.times)

    def at(self, times: ArrayLike) -> tuple[Array, Array]:
        """States at any times of the simulation, by the adaptive method's interpolant.

        Loops are closed there, too.

        Args:
            times: Times (...) [s].

        Returns:
            q: Configurations (..., nq).
            v: Velocities (..., nv).

        Raises:
            ValueError: Another method, or times outside of the simulation.
        """
        if self.dense is None:
            raise ValueError(f"method '{self.method}' has no states between steps; use 'dop853'")
        wanted = as_numbers(times, "times")
        if not np.all((wanted >= self.times[0]) & (wanted <= self.times[-1])):
            raise ValueError(f"times must be between {self.times[0]:g} and {self.times[-1]:g} s")
        nq, nv = self.model.nq, self.model.nv
        q, v = np.empty((*wanted.shape, nq)), np.empty((*wanted.shape, nv))
        for index, t in np.ndenumerate(wanted):
            state = self.dense(float(t))
            q[index], v[index] = state[:nq], state[nq:]
        return q, v

    # ---- export

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns: time, q:…, v:…, tau:…, kinetic, potential, residual."""
        dofs = self.model.dof_names
        return (
            "time",
            *(f"q:{name}" for name in position_names(self.model)),
            *(f"v:{name}" for name in dofs),
            *(f"tau:{name}" for name in dofs),
            "kinetic",
            "potential",
            "residual",
        )

    def to_numpy(self) -> Array:
        """The table (T+1, len(columns)), one row a state."""
        measured = [x[:, None] for x in (self.kinetic, self.potential, self.residual)]
        return np.concatenate([self.times[:, None], self.q, self.v, self.tau, *measured], axis=1)

    def to_dict(self) -> dict[str, Array]:
        """The columns by name."""
        return dict(zip(self.columns, self.to_numpy().T, strict=True))

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame, indexed by time; needs pandas."""
        try:
            import pandas
        except ImportError as error:
            raise MissingPackageError("to_pandas needs", "pandas", "pandas") from error
        return pandas.DataFrame(self.to_numpy(), columns=list(self.columns)).set_index("time")

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a file of comma-separated values, names in the first line, all digits kept.

        Args:
            path: Where to write.
        """
        quoted = [f'"{c}"' if "," in c or '"' in c else c for c in self.columns]
        numbers = self.to_numpy()
        np.savetxt(path, numbers, "%.17g", ",", header=",".join(quoted), comments="")

    def plot(self) -> Figure:
        """Positions, velocities, change of energy and gaps over time; needs Matplotlib.

        After time stepping also contact forces (of points on the ground their vertical parts, of
        pairs of links their magnitudes) and the residuals of their equations.
        """
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise MissingPackageError("plot needs", "matplotlib", "views") from error
        panels: list[tuple[str, Array, Sequence[str]]] = [
            ("q", self.q, position_names(self.model)),
            ("v", self.v, self.model.dof_names),
            ("change of energy [J]", self.energy - self.energy[0], ()),
            ("residual", self.residual, ()),
        ]
        if self.contact_forces is not None and self.contact_residual is not None:
            count, pairs = len(self.contact_points), self.contact_pairs
            between = np.linalg.norm(self.contact_forces[:, count:], axis=-1)
            loads = np.concatenate([self.contact_forces[:, :count, 2], between], axis=1)
            touching = [*(at.link for at in self.contact_points), *map(str, pairs)]
            panels += [
                ("contact [N]" if pairs else "contact, upward [N]", loads, touching),
                ("residual of contacts", np.maximum(self.contact_residual, 1e-18), ()),
            ]
        figure: Figure
        figure, axes = pyplot.subplots(
            len(panels), 1, sharex=True, figsize=(8, 2.5 * len(panels)), layout="constrained"
        )
        few = 12  # more lines than that have no use for a legend
        for axis, (label, values, names) in zip(axes, panels, strict=True):
            lines = axis.plot(self.times[: len(values)], values)
            axis.set_ylabel(label)
            if 0 < len(names) <= few:
                axis.legend(lines, names, fontsize="small")
        if self.contact_residual is not None:
            axes[-1].set_yscale("log")
        axes[-1].set_xlabel("time [s]")
        figure.suptitle(f"{self.model.name}, {self.method}")
        return figure

    def _repr_html_(self) -> str:
        """The motion, played in a notebook."""
        return str(showing.call("motion_in_notebooks", self))

    def animate(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        fps: float = 30.0,
        host: str = "127.0.0.1",
        port: int = 8080,
    ) -> Any:
        """Deprecated: pictures play motions, see docs/pictures.md; goes in 0.5.

        Args:
            path: A file for any browser; without it the motion is played on a page.
            fps: Frames a second of motion.
            host: Where the page is served.
            port: The page's port.

        Returns:
            player: Without ``path``: the page is at its ``url`` until its ``stop()``.
        """
        return showing.call("animate_motion", self, path, fps=fps, host=host, port=port)


class SimulationError(RuntimeError):
    """A motion that cannot be continued.

    Attributes:
        time: Time at which it ended [s].
        trajectory: The states until then.
        loops: Names of the loops that are why, if any.
        condition: Condition of their position as seen from the independent joints.
    """

    def __init__(
        self,
        message: str,
        time: float,
        *,
        loops: tuple[str, ...] = (),
        condition: float | None = None,
        trajectory: Trajectory | None = None,
    ) -> None:
        self.time = time
        self.loops = loops
        self.condition = condition
        self.trajectory = trajectory
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (str(self), self.time)
        return type(self), arguments, {"loops": self.loops, "condition": self.condition}
