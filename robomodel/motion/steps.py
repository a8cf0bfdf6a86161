"""Fixed steps in time as programs, compiled for a robot: those of rollouts and simulations.

:mod:`robomodel.motion.schemes` writes the steps, :mod:`robomodel.motion.layout` says where their
numbers are. Time stepping is one compiled function with a fixed number of sweeps. If they do not
solve its contact problem, :mod:`robomodel.motion.contact_solving` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robomodel.arrays import Array
from robomodel.dynamics.contact.problem import RowKinds
from robomodel.kernels import Iteration
from robomodel.kernels.function import TracedFunction
from robomodel.kernels.program import Dtype
from robomodel.mechanism.graph import WORLD
from robomodel.model.model import Model
from robomodel.motion import tangent
from robomodel.motion.checks import StepChecks
from robomodel.motion.contact_programs import SWEEPS, ContactProgram
from robomodel.motion.contact_rows import Memory, Setting
from robomodel.motion.contact_solving import ContactSolving
from robomodel.motion.family import Family
from robomodel.motion.ground import Ground
from robomodel.motion.integrator_functions import function
from robomodel.motion.layout import StateLayout
from robomodel.motion.planes import ContactPlaces, Length
from robomodel.motion.plant import Plant
from robomodel.motion.schemes import (
    RUNGE_KUTTA,
    runge_kutta_stage,
    semi_implicit_euler,
    stage_point,
    time_step,
)
from robomodel.motion.tangent import in_tangents
from robomodel.scalars import Scalar, Vector

NONE = np.zeros(0)


@dataclass(frozen=True)
class FixedStep:
    """One step of a method on one robot: (state, tau, step, …) → result.

    ``setting``: what takes part in time stepping, on ``grounds``; its program begins with
    ``sweeps`` over the contact problem. ``parameters``: names of those whose values are the last
    argument of a step, after planes and wrenches.
    """

    plant: Plant
    method: str
    setting: Setting | None = None
    grounds: tuple[Ground, ...] = ()
    sweeps: int = SWEEPS
    parameters: tuple[str, ...] = ()
    dtype: Dtype = "float64"
    backend: str = "compiled"

    @property
    def model(self) -> Model:
        """The robot."""
        return self.plant.model

    @property
    def name(self) -> str:
        """All that identifies it on this robot."""
        plant = self.plant
        options = (
            plant.links, plant.passive, plant.saturate, plant.servo, plant.closing, plant.careful,
            self.setting, self.sweeps, self.parameters,
        )  # fmt: skip
        return f"step {self.method} {options!r}"

    @cached_property
    def family(self) -> Family:
        """The robots of which each has its own values of the parameters."""
        return Family(self.model, self.parameters, self.backend)

    @cached_property
    def rows(self) -> RowKinds:
        """The rows of the contact problem."""
        return RowKinds(0) if self.setting is None else self.setting.rows(self.family.counted)

    @cached_property
    def layout(self) -> StateLayout:
        """Where the numbers of states and results are."""
        if self.setting is None:
            return StateLayout(self.model)
        memory = sum(Memory.sizes(self.rows, self.model.nv))
        return StateLayout(self.model, memory, self.setting.contacts)

    @cached_property
    def checks(self) -> StepChecks:
        """Checks of its results."""
        return StepChecks(self.layout, self.dtype)

    # ---- variants

    def with_wrenches(self, links: tuple[str, ...]) -> FixedStep:
        """The step with wrenches on these links."""
        plant = self.plant
        return self if links == plant.links else replace(self, plant=replace(plant, links=links))

    def carefully(self, careful: bool = True) -> FixedStep:
        """The step that closes loops at each stage, as is necessary near change points, or not."""
        plant = self.plant
        return (
            self
            if careful == plant.careful
            else replace(self, plant=replace(plant, careful=careful))
        )

    def touching(self, links: Iterable[str]) -> FixedStep:
        """The step whose data have the contacts of these links, too."""
        assert self.setting is not None
        known = self.setting.bodies or ()
        new = {self.model.frame(link).body for link in links} - {WORLD, *known}
        if not new:
            return self
        return replace(self, setting=replace(self.setting, bodies=(*known, *sorted(new))))

    def of(self, model: Model) -> FixedStep:
        """The step of a robot with other numbers."""
        if model is self.model:
            return self
        return replace(self, plant=replace(self.plant, model=model), parameters=())

    # ---- time stepping

    @cached_property
    def contact(self) -> ContactProgram:
        """Time stepping on the arguments of the program."""
        assert self.setting is not None
        return ContactProgram(self.plant, self.setting, self.layout, self.rows, self.sweeps)

    @cached_property
    def solving(self) -> ContactSolving:
        """The solution of contact problems that the program has not solved."""
        return ContactSolving(self.name, self.family, self.contact)

    @cached_property
    def places(self) -> ContactPlaces:
        """Where contacts are."""
        assert self.setting is not None
        return ContactPlaces(self.family, self.layout, self.setting, self.grounds)

    def planes(self, states: Array, h: Length, *more: Array) -> tuple[Array, ...]:
        """The planes that a step from states (..., size) takes, if it takes some."""
        return () if self.setting is None else self.places.argument(states, h, *more)

    # ---- programs

    @property
    def iteration(self) -> Iteration:
        """How the step is run over time."""
        if self.method != "rk4":
            return Iteration((1,))
        return Iteration((1,), RUNGE_KUTTA, 2 * (self.model.nq + self.model.nv))

    @property
    def more(self) -> tuple[int, ...]:
        """Sizes of the further arguments that a step has, besides (state, tau, step)."""
        others = (6 * len(self.plant.links),) if self.setting is None else self.contact.arguments
        return tuple(filter(None, (*others, *self.family.sizes)))

    def build(self, state: Vector, tau: Vector, step: Vector, *more: Vector) -> list[Scalar]:
        """The step over scalars of any kind; for "rk4" one stage of it."""
        if self.method == "time_stepping":
            return self.contact.result(time_step(self.contact.step(state, tau, step, more)))
        layout, plant, (h,) = self.layout, self.plant, step
        start = layout.moving(state)
        if self.method == "rk4":
            *wrenches, carried, row = more
            acting = wrenches[0] if wrenches else ()
            end, carried = runge_kutta_stage(plant, start, h, tau, acting, carried, row)
            return [*layout.renewed(*end), *carried]
        acting = more[0] if more else ()
        v = list(state[layout.columns.v])
        return layout.renewed(*semi_implicit_euler(plant, start, h, v, tau, acting))

    @cached_property
    def over_time(self) -> TracedFunction:
        """(states at the start, tau at each instant, step, …) → results at each instant."""
        sizes = (self.layout.size, self.plant.commands, 1, *self.more, self.layout.results)
        behind = 2 if self.iteration.carried else 0
        return self.family.program(
            f"{self.name} over time", sizes, lambda model, *x: self.of(model).build(*x), behind,
            iteration=self.iteration, dtype=self.dtype,
        )  # fmt: skip

    @cached_property
    def stage(self) -> TracedFunction:
        """(state, step, carried numbers, row) → q and v at a stage of "rk4"."""
        model, layout = self.model, self.layout

        def build(state: Vector, step: Vector, carried: Vector, row: Vector) -> list[Scalar]:
            start = layout.moving(state)
            here = in_tangents(model, start.bases)
            q, z = stage_point(start, step[0], carried, row)
            return [*q, *self.plant.velocities(here, q, z)]

        sizes = (layout.size, 1, self.iteration.carried, len(RUNGE_KUTTA[0]), model.nq + model.nv)
        return function(model, f"stage of {self.name}", sizes, build, backend=self.backend)

    @cached_property
    def after_stage(self) -> TracedFunction:
        """For "rk4": (state, tau, step, …, carried numbers, row) → result and carried numbers."""
        carried = self.iteration.carried
        sizes = (
            self.layout.size, self.plant.commands, 1, *self.more, carried, len(RUNGE_KUTTA[0]),
            self.layout.results + carried,
        )  # fmt: skip
        return self.family.program(
            self.name, sizes, lambda model, *x: self.of(model).build(*x), 2, dtype=self.dtype
        )

    # ---- on numbers

    def start(self, q: Array, v: Array, p: Array = NONE) -> tuple[Array, tangent.Start]:
        """States (..., size) at the start, with parameters p (..., count), and their regularity."""
        return self.layout.start(self.family.robots(p), q, v, self.dtype)

    def whole(self, states: Array, tau: Array, h: Length, *more: Array) -> Array:
        """Results (..., results) of an undivided step from states (..., size)."""
        length = np.asarray(h, states.dtype)[..., None]
        result = np.asarray(self.over_time(states, tau[..., None, :], length, *more))[..., 0, :]
        if self.setting is not None and self.dtype == "float64":
            self.solving.finish(states, tau, h, more, result)
        return result

    def values(self, p: Array, batch: tuple[int, ...]) -> Sequence[Array]:
        """The last argument of a batch's steps, if there are parameters p (..., count)."""
        return self.family.rows(p, batch, self.dtype)
