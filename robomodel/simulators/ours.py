"""The exact model beside a simulator's: what an adapter gives, of a model of this package."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from robomodel import dynamics
from robomodel.arrays import Array
from robomodel.description import Description
from robomodel.errors import DescriptionWarning
from robomodel.model import Model
from robomodel.model.build import build
from robomodel.simulators.loaded import Kind, Numbers, Place, State, spread
from robomodel.tolerances import RANK


class OurModel:
    """A model with all of its joints, dependent ones too, and the rows that tie them."""

    version = ""
    precision = 1e-9

    def __init__(self, model: Model):
        self.model, self.nv = model, model.n_joint_velocities
        self.places, self.limits, at = [], {}, 0
        for body, joint in enumerate(model.joints):
            kind: Kind = "joint" if joint.nv == 1 else "ball"
            if body == 0 and model.floating_base:
                kind = "base"
            self.places.append(Place(joint.name, kind, at, joint.nv))
            at += joint.nv
            if joint.nv == 1:
                self.limits[joint.name] = joint.lower, joint.upper
        self.tree = _open(model.description)
        starts = np.cumsum([0, *(joint.nv for joint in self.tree.joints)])
        first = dict(zip(self.tree.joint_names, starts, strict=False))
        self.order = [
            int(first[each.name]) + i for each in self.places for i in range(each.nv)
        ]  # of the tree's velocities, in ours

    def base_columns(self) -> list[int]:
        """The independent velocities of a floating base."""
        return list(range(6)) if self.model.floating_base else []

    def state(self, q: Array, v: Array, tau: Array) -> State:
        """A state by joint name, forces on independent joints."""
        model = self.model
        velocities = model.constraint_jacobian(q) @ v
        forces = np.zeros(self.nv)
        forces[self.independent()] = tau
        positions = {name: np.atleast_1d(x) for name, x in model.joint_positions(q).items()}
        by = {each.name: slice(each.v, each.v + each.nv) for each in self.places}
        return State(
            positions,
            {name: velocities[part] for name, part in by.items()},
            {name: forces[part] for name, part in by.items()},
        )

    def independent(self) -> list[int]:
        """The spanning velocity of each independent one."""
        return [c.spanning_v.start + i for c in self.model.clusters for i in c.columns]

    def numbers(self, state: State) -> Numbers:
        """At a state: masses and gravity of the open tree, accelerations of the mechanism."""
        model, tree = self.model, self.tree
        q = self.at(state)
        at = tree.configuration({k: _plain(x) for k, x in state.positions.items()})
        rest = np.zeros(tree.nv)
        mass = dynamics.crba(tree, at, backend="numpy")
        gravity = dynamics.rnea(tree, at, rest, rest, backend="numpy")
        g = model.constraint_jacobian(q)
        v = spread(self.places, self.nv, state.velocities)[self.independent()]
        tau = g.T @ spread(self.places, self.nv, state.forces)
        a = dynamics.aba(model, q, v, tau, passive=True, backend="numpy")
        rows, sizes, _ = np.linalg.svd(g)
        rank = int(np.sum(sizes > RANK * sizes[0])) if len(sizes) else 0
        moved = g @ a + model.constraint_bias(q, v)
        order = np.array(self.order)
        return Numbers(mass[np.ix_(order, order)], gravity[order], moved, rows[:, rank:].T)

    def at(self, state: State) -> Array:
        """The configuration at these joint positions, the base where it starts."""
        known = {k: _plain(x) for k, x in state.positions.items() if k in self.model.joint_names}
        return self.model.configuration(known)


def _plain(x: Array) -> float | list[float]:
    return float(x[0]) if len(x) == 1 else [float(each) for each in x]


def _open(description: Description) -> Model:
    """The tree of all joints without loops and couplings."""
    joints = tuple(replace(each, mimic=None, independent=None) for each in description.joints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        return build(replace(description, joints=joints, loops=(), couplings=()))
