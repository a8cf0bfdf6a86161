"""A planned motion of a 7-axis arm beside the same problem given to CasADi and IPOPT.

Same variables, trapezoidal rule, limits, cost and start; IPOPT has exact second derivatives, by
CasADi, and its own tolerance of 1e-8. Prints time [s], cost and iterations of both. Needs
``robomodel[casadi]``.
"""

from __future__ import annotations

import time

import casadi
import numpy as np

import robomodel as rm
from robomodel.trajectory import Goal, Plan, plan

COUNT, STEP = 31, 1.0 / 30
SPEED, ROTOR, TORQUE = 4.0, 20.0, 5.0
WEIGHTS = {"wrist-pitch-link_joint": 0.2, "wrist-roll-link_joint": 0.05, "gripper_joint": 0.05}


def problem() -> tuple[rm.Model, np.ndarray, np.ndarray]:
    """The arm, where it starts, and where its gripper shall be."""
    model = rm.robots.load("teleop_arm")
    start = model.integrate(model.neutral(), np.array([0, 0.4, -0.5, 0.6, 0.2, 0.1, 0]))
    end = model.integrate(model.neutral(), np.array([1.2, -0.4, 0.7, -0.9, 0.5, 0.3, 0]))
    return model, start, rm.frame_pose(model, end, "gripper")[:3, 3]


def ours(model: rm.Model, start: np.ndarray, goal: np.ndarray) -> Plan:
    """By the factor graph."""
    return plan(
        model, COUNT, STEP, start, goals=[Goal(-1, v=np.zeros(7), points={"gripper": goal})],
        weights=WEIGHTS, torques={"shoulder_rx_link_joint": TORQUE},
        velocities=dict.fromkeys(model.dof_names, SPEED) | {"elbow-rotor_joint": ROTOR},
    )  # fmt: skip


def theirs(model: rm.Model, start: np.ndarray, goal: np.ndarray) -> tuple[float, int, str]:
    """By IPOPT: cost, iterations, and how it ended."""
    dynamics = rm.to_casadi(model, "rnea")
    pose = rm.to_casadi(model, "frame_pose", frame="gripper")
    rows = model.constraint_jacobian(start)  # gears and belts: the same everywhere
    rotor = rows[[joint.name for joint in model.joints].index("elbow-rotor_joint")]
    motor = np.linalg.pinv(rm.actuator_map(model, start))[
        [actuator.name for actuator in model.actuators].index("shoulder_rx_link_joint")
    ]
    weight = np.array([WEIGHTS.get(name, 1.0) for name in model.dof_names])
    opti = casadi.Opti()
    q, v, a, tau = (opti.variable(7, COUNT) for _ in range(4))
    cost = 0.0
    for t in range(COUNT):
        opti.subject_to(dynamics(q[:, t], v[:, t], a[:, t]) == tau[:, t])
        share = STEP / 2 if t in (0, COUNT - 1) else STEP
        cost += 0.5 * share * casadi.sumsqr(tau[:, t] / weight)
        opti.subject_to(opti.bounded(-TORQUE, casadi.dot(motor, tau[:, t]), TORQUE))
        if t:
            opti.subject_to(opti.bounded(-SPEED, v[:, t], SPEED))
            opti.subject_to(opti.bounded(-ROTOR, casadi.dot(rotor, v[:, t]), ROTOR))
            opti.subject_to(q[:, t] == q[:, t - 1] + STEP / 2 * (v[:, t] + v[:, t - 1]))
            opti.subject_to(v[:, t] == v[:, t - 1] + STEP / 2 * (a[:, t] + a[:, t - 1]))
    opti.subject_to(q[:, 0] == start)
    opti.subject_to(v[:, 0] == 0)
    opti.subject_to(v[:, -1] == 0)
    opti.subject_to(pose(q[:, -1])[:3, 3] == goal)
    opti.minimize(cost)
    still = rm.rnea(model, start, np.zeros(7), np.zeros(7))
    opti.set_initial(q, np.tile(start[:, None], COUNT))
    opti.set_initial(tau, np.tile(still[:, None], COUNT))
    opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
    found = opti.solve()
    stats = found.stats()
    return float(found.value(cost)), int(stats["iter_count"]), str(stats["return_status"])


if __name__ == "__main__":
    arm = problem()
    ours(*arm)  # compiles what it calls
    begun = time.process_time()
    mine = ours(*arm)
    print(f"factor graph {time.process_time() - begun:.1f} s, cost {mine.cost:.6f}, "
          f"{mine.iterations} iterations, converged: {mine.converged}")  # fmt: skip
    begun = time.process_time()
    other, count, status = theirs(*arm)
    print(f"CasADi, IPOPT {time.process_time() - begun:.1f} s, cost {other:.6f}, "
          f"{count} iterations, {status}")  # fmt: skip
