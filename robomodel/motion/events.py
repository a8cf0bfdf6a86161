"""Events of contacts over time: touch-down, lift-off, slip and stick."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robomodel.arrays import Array
from robomodel.model.arguments import as_numbers

EventKind: TypeAlias = Literal["touch-down", "lift-off", "slip", "stick"]


class Event(NamedTuple):
    """A change of a contact.

    Attributes:
        time: Time [s].
        kind: "touch-down", "lift-off", "slip" or "stick".
        link: The link; of a contact between two links both names.
    """

    time: float
    kind: EventKind
    link: Any


@dataclass(frozen=True, eq=False)
class ContactRecord:
    """Contacts over the steps of a motion.

    Attributes:
        forces: Over each step (T, k, 3), along the contacts' tangents and normals [N].
        velocities: At the steps' ends, along the same axes [m/s].
        names: Names of the contacts (k,).
    """

    forces: Array
    velocities: Array
    names: tuple[Hashable, ...]

    def events(self, times: Array) -> tuple[Event, ...]:
        """The events (:func:`contact_events`) of a motion with states at ``times``."""
        at = times[: len(self.forces) + 1]
        return tuple(contact_events(at, self.forces, self.velocities, self.names))


def contact_events(
    times: ArrayLike,
    forces: ArrayLike,
    velocities: ArrayLike,
    names: Sequence[Hashable],
    *,
    normals: ArrayLike = (0.0, 0.0, 1.0),
    clearance: float = 1e-4,  # m: farther from the surface a contact has lifted off
    slip_speed: float = 1e-3,  # m/s: a faster contact slips
) -> list[Event]:
    """Times at which contacts begin, end, begin to slide and stick, in a recorded motion.

    Contacts of one name count as one: it touches while one of its points has a force, and slides
    while all points that have one slide.

    - *touch-down*: the start of the first step with a force. A contact that has one from the
      beginning touches down at ``times[0]``.
    - *lift-off*: the end of the last step with a force, if the point has since moved away from the
      surface by more than ``clearance``. Steps without force within it do not end a contact: one
      corner of several that share a load may have none, and bounces may be as small.
    - *slip*, *stick*: the end of the first step in which the point's speed along the surface is
      above ``slip_speed``, and of the first in which it is below a tenth of that. In between its
      state stays. A contact sticks at touch-down unless a slip follows; after a lift-off it does
      neither.

    Args:
        times: Times (T+1,) of the states [s], increasing; step n is from ``times[n]`` to
            ``times[n+1]``.
        forces: Forces (T, k, 3) on the contacts over each step, world axes [N].
        velocities: Velocities (T, k, 3) of the contact points relative to the surface at the steps'
            ends, world axes [m/s].
        names: The link of each contact (k,).
        normals: Unit vectors of the surface that push the links: (3,), or (T, k, 3).
        clearance: Clearance of a lift-off [m].
        slip_speed: Speed of a slip [m/s].

    Returns:
        events: In the order of time; at one time in that of the contacts, touch-down before slip.

    Raises:
        ValueError: Shapes that do not fit each other, thresholds that are not positive.
    """
    at, force, velocity = (
        as_numbers(x, name)
        for x, name in ((times, "times"), (forces, "forces"), (velocities, "velocities"))
    )
    if force.ndim != 3 or force.shape[2] != 3 or velocity.shape != force.shape:
        raise ValueError(
            f"forces and velocities are (T, k, 3), got shapes {force.shape} and {velocity.shape}"
        )
    steps, count, _ = force.shape
    if at.shape != (steps + 1,) or not np.all(np.diff(at) > 0.0):
        raise ValueError(f"times are {steps + 1} increasing numbers, got shape {at.shape}")
    if len(names) != count:
        raise ValueError(f"names are one for each of {count} contacts, got {len(names)}")
    if not (clearance > 0.0 and slip_speed > 0.0):
        raise ValueError(
            f"clearance and slip_speed are positive, got {clearance!r} and {slip_speed!r}"
        )
    normal = as_numbers(normals, "normals")
    if normal.shape not in ((3,), force.shape):
        raise ValueError(f"normals are (3,) or {force.shape}, got shape {normal.shape}")
    normal = np.broadcast_to(normal, force.shape)
    pushed = np.einsum("tki,tki->tk", force, normal) > 0.0
    away = np.einsum("tki,tki->tk", velocity, normal)
    sliding = np.linalg.norm(velocity - away[..., None] * normal, axis=2)
    events: list[Event] = []
    for name in dict.fromkeys(names):
        columns = [i for i, each in enumerate(names) if each == name]
        bears = pushed[:, columns]
        rise = away[:, columns] * np.diff(at)[:, None]
        speed = np.min(np.where(bears, sliding[:, columns], np.inf), axis=1, initial=np.inf)
        events += _of_one(at, bears, rise, speed, name, clearance, slip_speed)
    return sorted(events, key=lambda event: event.time)


def _of_one(
    times: Array, bears: Any, rise: Array, speed: Array, name: Any, clearance: float, slip: float
) -> list[Event]:
    """Events of one contact, from whether its points have a force and their rise (T, m)."""
    events: list[Event] = []
    touches = slides = False
    last, height = times[0], np.zeros(rise.shape[1])
    for n, end in enumerate(times[1:].tolist()):
        if np.any(bears[n]):
            if not touches:
                events.append(Event(float(times[n]), "touch-down", name))
                touches, slides = True, False
            last, height = end, np.zeros(rise.shape[1])
            if not slides and speed[n] > slip:
                slides = True
                events.append(Event(end, "slip", name))
            elif slides and speed[n] < 0.1 * slip:  # of the slip speed: a slower contact sticks
                slides = False
                events.append(Event(end, "stick", name))
        elif touches:
            height = np.maximum(height + rise[n], 0.0)
            if np.min(height) > clearance:
                events.append(Event(float(last), "lift-off", name))
                touches = False
    return events
