"""Inputs of a simulation: forces and wrenches, as numbers, rows for steps, or functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.dynamics import saturate
from robomodel.errors import as_flag
from robomodel.model.arguments import as_array, as_numbers
from robomodel.model.model import Model

Wrenches: TypeAlias = Mapping[str, ArrayLike]
Controller: TypeAlias = Callable[[float, Array, Array], ArrayLike]
Held = TypeVar("Held")
Pusher: TypeAlias = Callable[[float, Array, Array], Wrenches]
Signal: TypeAlias = Callable[[float, Array, Array], Array]  # (t, q, v) → numbers
Pushes: TypeAlias = Callable[[float, Array, Array], Mapping[str, Array]]  # → wrenches on links


@dataclass(frozen=True, slots=True)
class Signals:
    """The inputs during a step, over time and state: independent joint forces, and wrenches.

    The set of links with wrenches may grow from one time to the next, in the order of their first
    appearance.
    """

    tau: Signal
    pushes: Pushes

    def at(self, t: float, q: Array, v: Array) -> tuple[Array, Mapping[str, Array]]:
        """Forces, and wrenches on links."""
        return self.tau(t, q, v), self.pushes(t, q, v)


def stacked(pushes: Mapping[str, Array]) -> list[Array]:
    """The wrenches as one argument, or none."""
    return [np.concatenate(list(pushes.values()))] if pushes else []


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a motion: ``tau``, and ``wrenches`` on links, by rows for steps or as functions.

    ``saturated``: motors give tau within their limits.
    """

    model: Model
    tau: Array | Signal
    wrenches: Mapping[str, Array] | Pushes
    hold: bool
    saturated: bool = False

    @staticmethod
    def of(
        model: Model,
        tau: ArrayLike | Controller | None,
        f_ext: Wrenches | Pusher | None,
        hold: bool,
        saturated: bool = False,
    ) -> Inputs:
        """From users' arguments; raises ValueError, TypeError or UnknownNameError if unfit."""
        acting: Array | Signal
        for name, function in (("tau", tau), ("f_ext", f_ext)):
            _check_takes_state(function, name)
        if callable(tau):
            acting = _Controlled(tau, model.nv)
        else:
            torques = np.zeros(model.nv) if tau is None else tau
            acting = as_array(torques, model.nv, "tau", "nv").copy()
            if acting.ndim > 2:
                raise ValueError(f"tau must be (nv,) or (T, nv), got shape {acting.shape}")
            if not np.isfinite(acting).all():
                raise ValueError("tau must be finite")
        pushing = _Pushed(model, f_ext) if callable(f_ext) else _wrenches(model, f_ext or {})
        inputs = Inputs(model, acting, pushing, hold, as_flag(saturated, "saturate"))
        lengths = set(inputs.lengths)
        if len(lengths) > 1:
            raise ValueError(f"tau and f_ext have different numbers of rows: {sorted(lengths)}")
        return inputs

    @property
    def rows(self) -> int | None:
        """The number of steps for which rows are given; None if none are."""
        return next(iter(self.lengths), None)

    @property
    def lengths(self) -> list[int]:
        """The numbers of rows of those inputs that have some."""
        arrays = [] if callable(self.tau) else [self.tau]
        arrays += [] if callable(self.wrenches) else self.wrenches.values()
        return [len(x) for x in arrays if x.ndim == 2]

    @property
    def stepwise(self) -> bool:
        """True if inputs change only from step to step."""
        asked = self.hold and (callable(self.tau) or callable(self.wrenches))
        return asked or self.rows is not None

    def during(self, k: int, t: float, q: Array, v: Array) -> Signals:
        """The inputs during step k, which begins at t, q and v."""
        tau, pushes = self.tau, self.wrenches
        if not callable(tau):
            tau = _constant(_row(tau, k))
        elif self.hold:
            tau = _constant(tau(t, q, v).copy())
        if self.saturated:
            tau = Saturated(self.model, tau)
        if not callable(pushes):
            pushes = _constant({link: _row(wrench, k) for link, wrench in pushes.items()})
        elif self.hold:
            pushes = _constant({link: x.copy() for link, x in pushes(t, q, v).items()})
        return Signals(tau, pushes)


def _check_takes_state(function: object, name: str) -> None:
    """Raise a TypeError for a function that cannot be called with a time and a state."""
    try:
        signature = inspect.signature(function) if callable(function) else None
    except ValueError:  # of some that are written in C
        return
    try:
        if signature is not None:
            signature.bind(0.0, None, None)
    except TypeError:
        raise TypeError(
            f"{name} is called as {name}(t, q, v); this one takes {signature}"
        ) from None


def _row(rows: Array, k: int) -> Array:
    row: Array = rows[min(k, len(rows) - 1)] if rows.ndim == 2 else rows
    return row


def _constant(value: Held) -> Callable[[float, Array, Array], Held]:
    return lambda _t, _q, _v: value


def _shown(x: Array) -> Array:
    """A read-only view, for functions that see the state of a running motion."""
    view = x.view()
    view.flags.writeable = False
    return view


def _wrenches(model: Model, f_ext: Wrenches) -> dict[str, Array]:
    """Wrenches (6,) or (T, 6), all with one T, on links of the model."""
    if not isinstance(f_ext, Mapping):
        raise TypeError(f"f_ext maps links to wrenches, not {type(f_ext).__name__}")
    wrenches = {link: as_array(x, 6, f"f_ext['{link}']", "6").copy() for link, x in f_ext.items()}
    for link, x in wrenches.items():
        model.frame(link)  # an UnknownNameError with a hint for unknown ones
        if x.ndim > 2:
            raise ValueError(f"wrenches must be (6,) or (T, 6), got shape {x.shape}")
    if len({len(x) for x in wrenches.values() if x.ndim == 2}) > 1:
        raise ValueError("wrenches must be (6,), or (T, 6) with one T")
    return wrenches


@dataclass(frozen=True, slots=True)
class Saturated:
    """Forces that motors give within their limits of those that are ``wanted``."""

    model: Model
    wanted: Signal

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """The forces that act."""
        return saturate(self.model, q, v, self.wanted(t, q, v))[0]

    def at_limits(self, t: float, q: Array, v: Array) -> Array:
        """The actuators (nu,) that cannot give what is wanted."""
        lost = saturate(self.model, q, v, self.wanted(t, q, v))[2]
        return np.asarray(np.abs(lost) > 0.0)


@dataclass(frozen=True, slots=True)
class _Controlled:
    """A controller whose forces are checked, and which cannot change the state that it sees."""

    controller: Controller
    nv: int

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        value = as_numbers(self.controller(t, _shown(q), _shown(v)), "what the controller gives")
        if value.shape != (self.nv,):
            raise ValueError(
                f"the controller must give nv = {self.nv} forces, gave shape {value.shape}"
            )
        return value


@dataclass(frozen=True, slots=True)
class _Pushed:
    """A function that returns wrenches on links; links that it does not name have none.

    ``known``: the links that it has named so far, for which the equations of motion are written.
    """

    model: Model
    pusher: Pusher
    known: list[str] = field(default_factory=list)

    def __call__(self, t: float, q: Array, v: Array) -> dict[str, Array]:
        wrenches = self.pusher(t, _shown(q), _shown(v))
        if not isinstance(wrenches, Mapping):
            raise TypeError(f"f_ext must give a mapping of links to wrenches, gave {wrenches!r}")
        for link in wrenches:
            if link not in self.known:
                self.model.frame(link)  # an UnknownNameError with a hint for unknown ones
                self.known.append(link)
        return {
            link: _six(link, wrenches[link]) if link in wrenches else np.zeros(6)
            for link in self.known
        }


def _six(link: str, wrench: ArrayLike) -> Array:
    numbers = as_numbers(wrench, f"f_ext['{link}']")
    if numbers.shape != (6,):
        raise ValueError(
            f"f_ext must give wrenches of six numbers, gave '{link}' shape {numbers.shape}"
        )
    return numbers
