"""Records of contacts over the steps of a motion, and what a trajectory shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from robomodel.arrays import Array
from robomodel.motion.contact_data import Taken
from robomodel.motion.events import ContactRecord
from robomodel.motion.ground import Contact, Pair
from robomodel.motion.halves import StepShare
from robomodel.motion.planes import ABSENT, ContactPlaces
from robomodel.motion.steps import FixedStep


class Record(NamedTuple):
    """The record of a step of time stepping.

    q at its beginning; contacts from a function, by their numbers; forces on all contacts;
    impulses and velocities along their axes; the residual of their equations.
    """

    q: Array
    given: Sequence[tuple[int, Contact]]
    forces: Array
    along: Array
    residual: float


def of_program(step: FixedStep, q: Array, result: Array, h: float) -> Record:
    """The record of a step whose contacts are in its program."""
    layout, rows = step.layout, step.rows
    first = layout.columns.memory.start
    rates = first + rows.size + rows.contacts
    along = np.array([result[at : at + 3 * rows.contacts] for at in (first, rates)])
    forces = step.places.forces(result[layout.impulses], h)
    return Record(q, (), forces, along.reshape(2, -1, 3), float(result[layout.residual]))


def of_data(step: FixedStep, q: Array, taken: Taken, pairs: int, h: float) -> Record:
    """The record of a step whose contacts are data, with a number of pairs."""
    count = len(step.contact.setting.points) + pairs
    impulses, along = np.zeros((count, 3)), np.zeros((2, count, 3))
    along[1, :, 2] = ABSENT  # pairs without a contact are apart
    for number, velocity in taken.far.items():
        along[1, number] = velocity
    impulses[taken.numbers], along[:, taken.numbers] = taken.impulses, taken.along
    forces = step.places.forces(impulses.ravel(), h)
    return Record(q, taken.contacts, forces, along, float(taken.result[step.layout.residual]))


def joined(parts: Sequence[StepShare]) -> Record | None:
    """The record of a step in parts: mean forces, the worst residual."""
    records: list[Record] = [part.record for part in parts if part.record is not None]
    if len(parts) < 2 or not records:
        return records[0] if records else None
    forces = np.zeros_like(records[-1].forces)
    for part, each in zip(parts, records, strict=True):
        forces[: len(each.forces)] += part.share * each.forces
    worst = max(each.residual for each in records)
    return records[0]._replace(forces=forces, along=records[-1].along, residual=worst)


@dataclass
class ContactLog:
    """The records of a motion's contacts: points, pairs within programs, pairs from a function."""

    places: ContactPlaces
    pairs: list[Pair]
    records: list[Record] = field(default_factory=list)

    @property
    def always(self) -> int:
        """Number of contacts that each record has."""
        return self.places.count

    def shown(self) -> dict[str, Any]:
        """The contacts that a trajectory shows."""
        points, pairs = self.places.points, (*self.places.pairs, *self.pairs)
        shape = len(self.records), len(points) + len(pairs), 3
        forces, places = np.zeros(shape), np.full(shape, np.nan)
        shift = self.always - len(self.places.setting.points)  # from numbers to rows
        for t, record in enumerate(self.records):
            forces[t, : self.always] = record.forces[: self.always]
            places[t, : self.always] = self.places.places(record.q)
            for number, contact in record.given:
                n = number + shift
                forces[t, n], places[t, n] = record.forces[n], contact.point
        return {
            "contact_forces": forces,
            "contact_residual": np.array([each.residual for each in self.records]),
            "contact_points": points,
            "contact_pairs": pairs,
            "contact_places": places,
            "_touching": self._for_events(pairs),
        }

    def _for_events(self, pairs: Sequence[Pair]) -> ContactRecord:
        """The record that events are computed from; contacts that came later had no force before.

        Of a point's planes the one with the largest force counts, or without forces the nearest.
        """
        points, stride = self.places.points, self.places.stride
        count = len(self.places.setting.points)
        record = np.zeros((2, len(self.records), count + len(pairs), 3))
        record[1, ..., 2] = ABSENT
        for t, each in enumerate(self.records):
            record[:, t, : each.along.shape[1]] = each.along
        if count > len(points):
            planes = record[:, :, :count].reshape(*record.shape[:2], -1, stride, 3)
            most = np.argmax(planes[:1, ..., 2], axis=3)[..., None, None]
            bearing = np.take_along_axis(planes, most, axis=3)[:, :, :, 0]
            record = np.concatenate([bearing, record[:, :, count:]], axis=2)
        names = [(pair.link, pair.other) if pair.other else pair.link for pair in pairs]
        return ContactRecord(record[0], record[1], (*(point.link for point in points), *names))
