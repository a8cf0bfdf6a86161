"""Robots with loops in Crocoddyl by Pinocchio's constrained dynamics, written as users do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import crocoddyl
import numpy as np
import pinocchio as pin

import robomodel as rm
from benchmarks.shared.race import Array


class ConstrainedAction(crocoddyl.DifferentialActionModelAbstract):
    """a of the spanning tree with its loop as a constraint, and its derivatives."""

    def __init__(self, state: Any, constraints: Any, actuation: Array, costs: Any) -> None:
        super().__init__(state, actuation.shape[1], costs.nr)
        self.constraints, self.costs = pin.StdVec_RigidConstraintModel(), costs
        self.constraints.extend(constraints)
        self.actuation = actuation

    def createData(self) -> ConstrainedData:
        """Data of it."""
        return ConstrainedData(self)

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Accelerations and the cost."""
        if u is None:
            self.costs.calc(data.costs, x)
        else:
            n = self.state.nq
            model, work = self.state.pinocchio, data.pinocchio
            data.xout[:] = pin.constraintDynamics(
                model, work, x[:n], x[n:], self.actuation @ u, self.constraints, data.contacts,
                data.settings,
            )  # fmt: skip
            self.costs.calc(data.costs, x, u)
        data.cost = data.costs.cost

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """The derivatives of both."""
        if u is None:
            self.costs.calcDiff(data.costs, x)
            return
        model, work = self.state.pinocchio, data.pinocchio
        pin.computeConstraintDynamicsDerivatives(
            model, work, self.constraints, data.contacts, data.settings
        )
        n = self.state.nv
        data.Fx[:, :n], data.Fx[:, n:] = work.ddq_dq, work.ddq_dv
        data.Fu[:, :] = work.ddq_dtau @ self.actuation
        self.costs.calcDiff(data.costs, x, u)


class ConstrainedData(crocoddyl.DifferentialActionDataAbstract):
    """Data of a :class:`ConstrainedAction`."""

    def __init__(self, action: ConstrainedAction) -> None:
        super().__init__(action)
        model = action.state.pinocchio
        self.pinocchio = model.createData()
        self.contacts = pin.StdVec_RigidConstraintData()
        self.contacts.extend(each.createData() for each in action.constraints)
        self.settings = pin.ProximalSettings(1e-10, 1e-10, 10)
        pin.initConstraintDynamics(model, self.pinocchio, action.constraints, self.contacts)
        self.shared = crocoddyl.DataCollectorMultibody(self.pinocchio)
        self.costs = action.costs.createData(self.shared)
        self.costs.shareMemory(self)


@dataclass(frozen=True)
class Constrained:
    """What a shooting problem is made of."""

    state: Any
    action: Callable[[Any], Any]
    near: Any
    start: Array


def leg(model: rm.Model, goal: Array) -> Constrained:
    """The shipped leg ``planar_leg_linkage`` on Pinocchio's tree, its loop as point constraint."""
    path = rm.robots.path("planar_leg_linkage")
    its = pin.buildModelFromUrdf(str(path))
    first, second = its.getJointId("foot_joint"), its.getJointId("shank_support_joint")
    q = np.array(model.to_order("pinocchio", model.neutral(), joints=its))
    anchors = [pin.SE3(np.eye(3), np.array([x, 0.0, 0.0])) for x in (0.031, 0.096)]
    constraint = pin.RigidConstraintModel(
        pin.ContactType.CONTACT_3D, its, first, anchors[0], second, anchors[1],
        pin.ReferenceFrame.LOCAL,
    )  # fmt: skip
    state = crocoddyl.StateMultibody(its)
    columns = [its.joints[its.getJointId(n)].idx_v for n in ("thigh_joint", "shank_driver_joint")]
    actuation = np.eye(its.nv)[:, columns]
    reference = np.concatenate([model.to_order("pinocchio", goal, joints=its), np.zeros(its.nv)])
    near = crocoddyl.ResidualModelState(state, reference, 2)
    start = np.concatenate([q, np.zeros(its.nv)])
    return Constrained(
        state, lambda costs: ConstrainedAction(state, [constraint], actuation, costs), near, start
    )


def tello(lift: float) -> Constrained:
    """The shipped Tello without its rotors: what these turn is moved directly.

    Six rods are bodies of 10 g with a ball joint at the crank, and a point constraint at the other
    end; cranks weigh as much. The reference is the start ``lift`` higher.
    """
    model = rm.robots.load("tello")
    whole = pin.buildModelFromUrdf(str(rm.robots.path("tello")))
    rotors = [i for i, name in enumerate(whole.names) if "rotor" in name]
    its = pin.buildReducedModel(whole, rotors, pin.neutral(whole))
    light = pin.Inertia(1e-2, np.zeros(3), 1e-5 * np.eye(3))
    at, q = model.joint_positions(model.neutral()), pin.neutral(its)
    for name, joint in zip(its.names, its.joints, strict=True):
        if "crank" in name:
            its.inertias[joint.id] = light
        if joint.nv == 1 and name != "universe":
            angle = float(at[name])
            q[joint.idx_q : joint.idx_q + 2] = np.cos(angle), np.sin(angle)
    data, ends = its.createData(), []
    pin.forwardKinematics(its, data, q)
    for rod in model.description.loops:
        (crank, place), (other, anchor) = (
            (its.frames[its.getFrameId(side.link)].parentJoint,
             pin.SE3(np.eye(3), np.array(side.origin.xyz)))
            for side in (rod.predecessor, rod.successor)
        )  # fmt: skip
        way = (data.oMi[crank] * place).actInv((data.oMi[other] * anchor).translation)
        added = its.addJoint(crank, pin.JointModelSpherical(), place, rod.name)
        its.appendBodyToJoint(added, light, pin.SE3.Identity())
        ends.append((added, pin.SE3(np.eye(3), way), other, anchor))
    q = np.concatenate([q, np.tile([0.0, 0.0, 0.0, 1.0], len(ends))])
    constraints = [
        pin.RigidConstraintModel(
            pin.ContactType.CONTACT_3D, its, one, here, two, there, pin.ReferenceFrame.LOCAL
        )
        for one, here, two, there in ends
    ]
    rows = {name: joint.idx_v for name, joint in zip(its.names, its.joints, strict=True)}
    columns = []
    for side in ("left", "right"):
        columns += [{f"torso-to-{side}-hip-clamp": 1.0}]
        columns += [{f"{side}-hip-clamp-to-hip-crank-{i}": 6.0} for i in (1, 2)]
        shin, crank = f"{side}-thigh-to-shin", f"{side}-shin-to-ankle-crank"
        columns += [{shin: 6.0, crank: 6.0 * sign} for sign in (1.0, -1.0)]
    actuation = np.zeros((its.nv, len(columns)))
    for k, column in enumerate(columns):
        for name, ratio in column.items():
            actuation[rows[name], k] = ratio
    state = crocoddyl.StateMultibody(its)
    start = np.concatenate([q, np.zeros(its.nv)])
    reference = start.copy()
    reference[2] += lift
    near = crocoddyl.ResidualModelState(state, reference, len(columns))
    return Constrained(
        state, lambda costs: ConstrainedAction(state, constraints, actuation, costs), near, start
    )
