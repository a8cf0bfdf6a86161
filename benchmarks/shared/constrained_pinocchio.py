"""A leg with a linkage in Crocoddyl by Pinocchio's constrained dynamics, written as users do."""

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

    def __init__(self, state: Any, constraints: Any, columns: list[int], costs: Any) -> None:
        super().__init__(state, len(columns), costs.nr)
        self.constraints, self.costs = pin.StdVec_RigidConstraintModel(), costs
        self.constraints.extend(constraints)
        self.actuation = np.eye(state.nv)[:, columns]

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
class ConstrainedLeg:
    """What a shooting problem is made of."""

    state: Any
    action: Callable[[Any], Any]
    near: Any
    start: Array


def leg(model: rm.Model, goal: Array) -> ConstrainedLeg:
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
    reference = np.concatenate([model.to_order("pinocchio", goal, joints=its), np.zeros(its.nv)])
    near = crocoddyl.ResidualModelState(state, reference, 2)
    start = np.concatenate([q, np.zeros(its.nv)])
    return ConstrainedLeg(
        state, lambda costs: ConstrainedAction(state, [constraint], columns, costs), near, start
    )
