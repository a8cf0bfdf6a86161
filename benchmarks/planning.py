"""Planned motions beside the same problems given to CasADi and IPOPT, and played back.

    python -m benchmarks.planning [five-bar|arm|jump ...]

A five-bar's move with four limits, a 7-axis arm's reach, and Mini Cheetah's jump: each by the
factor graph, and by ``rm.to_casadi`` on SX scalars. Same variables, trapezoidal rule, limits,
contacts, cost and start; IPOPT has exact second derivatives and its own tolerance of 1e-8. "Ready"
is processor time until the solver starts: kernels from the cache here; there functions traced and
derivatives built. Then the factor graph's plan is followed by ``rm.simulate``. Prints the tables
of docs/trajectories.md; needs ``robomodel[casadi]``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import casadi
import numpy as np
from numpy.typing import NDArray

import robomodel as rm
from robomodel.estimation import Goal, Plan, Stance, plan

Array = NDArray[np.float64]

FEET = tuple(f"{leg}_foot_contact" for leg in ("FR", "FL", "HR", "HL"))
BAUMGARTE, FORCE, ROUND = 20.0, 1e-3, 1e-3  # what plan has for held points, forces and cones


@dataclass(frozen=True)
class Case:
    """A problem as ``plan`` takes it; what is left out of a goal is free."""

    model: rm.Model
    count: int
    step: float
    start: Array
    goal: Goal
    stance: Stance | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    barrier: float | None = None

    def plan(self, start: Mapping[str, Array] | None = None) -> Plan:
        """By the factor graph."""
        return plan(
            self.model, self.count, self.step, self.start, goals=[self.goal],
            stances=[self.stance] if self.stance else [], weights=self.weights,
            parameter=self.barrier, start=start, **self.limits,
        )  # fmt: skip


def five_bar() -> Case:
    """The five-bar's move in 0.8 s: two limits are of dependent joints."""
    model = rm.robots.load("five_bar")
    stop = model.integrate(model.neutral(), np.array([-0.5, 0.4]))
    limits = {"velocities": {"J1": 1.0, "J3": 1.7}, "positions": {"J4": (0.55, 2.0)},
              "torques": {"J1": 3.25}}  # fmt: skip
    return Case(model, 41, 0.02, model.neutral(), Goal(-1, q=stop, v=np.zeros(2)), limits=limits)


def arm() -> Case:
    """Seven axes behind gears and a belt; the gripper goes to a point in 1 s."""
    model = rm.robots.load("teleop_arm")
    start = model.integrate(model.neutral(), np.array([0, 0.4, -0.5, 0.6, 0.2, 0.1, 0]))
    end = model.integrate(model.neutral(), np.array([1.2, -0.4, 0.7, -0.9, 0.5, 0.3, 0]))
    goal = Goal(-1, v=np.zeros(7), points={"gripper": rm.frame_pose(model, end, "gripper")[:3, 3]})
    limits = {"velocities": dict.fromkeys(model.dof_names, 4.0) | {"elbow-rotor_joint": 20.0},
              "torques": {"shoulder_rx_link_joint": 5.0}}  # fmt: skip
    weights = {"wrist-pitch-link_joint": 0.2, "wrist-roll-link_joint": 0.05, "gripper_joint": 0.05}
    return Case(model, 31, 1.0 / 30, start, goal, limits=limits, weights=weights)


def jump() -> Case:
    """Mini Cheetah: 12 times on four feet, six in the air, 10 cm up."""
    model = rm.robots.load("mini_cheetah")
    bent = {"abad": 0.0, "hip": -0.8, "knee": 1.6}
    start = model.configuration({n: bent[n.split("_")[1]] for n in model.dof_names[6:]})
    start[2] -= min(rm.frame_pose(model, start, foot)[2, 3] for foot in FEET)
    high = start.copy()
    high[2] += 0.1
    limits = {"velocities": dict.fromkeys(model.dof_names[6:], 30.0)
              | {"HR_knee_rotor_joint": 250.0},
              "torques": dict.fromkeys(model.dof_names[6:], 3.0)}  # fmt: skip
    return Case(model, 18, 0.025, start, Goal(-1, q=high), Stance(FEET, 0, 12, friction=0.6),
                limits, barrier=10.0)  # fmt: skip


CASES: Mapping[str, Callable[[], Case]] = {"five-bar": five_bar, "arm": arm, "jump": jump}


@dataclass(frozen=True)
class Row:
    """What a way took and found."""

    way: str
    ready: float
    seconds: float
    cost: float
    iterations: int
    status: str


def spent() -> float:
    """Processor time of this process and of what it started [s]."""
    return sum(os.times()[:4])


class Transcription:
    """A case for IPOPT."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.opti = casadi.Opti()
        model, count = case.model, case.count
        self.feet = [str(foot) for foot in case.stance.frames] if case.stance else []
        widths = {"q": model.nq, "v": model.nv, "a": model.nv, "tau": model.nv}
        if self.feet:
            widths["f"] = 3 * len(self.feet)
        self.x = {name: self.opti.variable(size, count) for name, size in widths.items()}
        self.widths = widths
        self.cost = self._cost()
        self._motion()
        self._limits()
        self._goal()
        self.opti.minimize(self.cost + self._touching())
        self.opti.solver("ipopt", {"print_time": False, "record_time": True},
                         {"print_level": 0, "sb": "yes", "max_iter": 1000})  # fmt: skip

    def of(self, name: str, **options: Any) -> Any:
        """A function of the model."""
        return rm.to_casadi(self.case.model, name, **options)

    def made(self, name: str, arguments: str, build: Callable[..., Any]) -> Any:
        """One function of variables at a time, so that derivatives are found once."""
        symbols = [casadi.SX.sym(x, self.widths[x]) for x in arguments.split()]
        return casadi.Function(name, symbols, [build(*symbols)])

    def at(self, arguments: str, t: int) -> list[Any]:
        """Variables at a time."""
        return [self.x[name][:, t] for name in arguments.split()]

    @property
    def base(self) -> int:
        """Coordinates of a floating base."""
        return 6 if self.case.model.floating_base else 0

    def _cost(self) -> Any:
        case, tau = self.case, self.x["tau"]
        weight = np.array([case.weights.get(name, 1.0) for name in case.model.dof_names])
        total = 0.0
        for t in range(case.count):
            share = case.step / 2 if t in (0, case.count - 1) else case.step
            total += 0.5 * share * casadi.sumsqr((tau[:, t] / weight)[self.base :])
        return total

    def _motion(self) -> None:
        case, opti, x, h = self.case, self.opti, self.x, self.case.step
        names = "q v a tau f" if self.feet else "q v a tau"
        rnea, step = self.of("rnea"), self.of("integrate")  # without springs
        jacobians = [self.of("jacobian", frame=foot, reference="local_world_aligned")
                     for foot in self.feet]  # fmt: skip

        def errors(q: Any, v: Any, a: Any, tau: Any, f: Any = None) -> Any:
            residual = rnea(q, v, a) - tau
            for i, jacobian in enumerate(jacobians):
                residual -= jacobian(q)[3:, :].T @ f[3 * i : 3 * i + 3]
            return residual

        dynamics = self.made("dynamics", names, errors)
        opti.subject_to(x["q"][:, 0] == case.start)
        opti.subject_to(x["v"][:, 0] == 0)
        for t in range(case.count):
            opti.subject_to(dynamics(*self.at(names, t)) == 0)
            if self.base:
                opti.subject_to(x["tau"][: self.base, t] == 0)
            if t:
                q, v, a = x["q"], x["v"], x["a"]
                opti.subject_to(q[:, t] == step(q[:, t - 1], h / 2 * (v[:, t] + v[:, t - 1])))
                opti.subject_to(v[:, t] == v[:, t - 1] + h / 2 * (a[:, t] + a[:, t - 1]))

    def _limits(self) -> None:
        case, opti, model = self.case, self.opti, self.case.model
        joints = [joint.name for joint in model.joints if joint.nv == 1]
        where, rate = self.of("joint_positions"), self.of("joint_velocities")
        at = {joints.index(n): x for n, x in case.limits.get("positions", {}).items()}
        speeds = {joints.index(n): x for n, x in case.limits["velocities"].items()}
        motors = [motor.name for motor in model.actuators]
        forces = np.linalg.pinv(rm.actuator_map(model, case.start)) if motors else None
        for t in range(case.count):
            q, v, tau = self.at("q v tau", t)
            if t and at:
                bounds = np.array(list(at.values()))
                opti.subject_to(opti.bounded(bounds[:, 0], where(q)[list(at)], bounds[:, 1]))
            if t and speeds:
                bound = np.array(list(speeds.values()))
                opti.subject_to(opti.bounded(-bound, rate(q, v)[list(speeds)], bound))
            for name, x in case.limits["torques"].items():
                row = np.eye(model.nv)[model.dof_names.index(name)]
                if forces is not None:
                    row = forces[motors.index(name)]
                opti.subject_to(opti.bounded(-x, casadi.dot(row, tau), x))

    def _goal(self) -> None:
        case, opti, model = self.case, self.opti, self.case.model
        t = case.goal.time % case.count
        q, v = self.at("q v", t)
        if case.goal.q is not None:  # in the directions in which it can move
            goal, h = np.asarray(case.goal.q), 1e-4
            across = np.array([(model.integrate(goal, d) - model.integrate(goal, -d)) / (2 * h)
                               for d in h * np.eye(model.nv)])  # fmt: skip
            opti.subject_to(casadi.DM(across) @ (q - goal) == 0)
        if case.goal.v is not None:
            opti.subject_to(v == np.asarray(case.goal.v))
        for frame, point in case.goal.points.items():
            opti.subject_to(self.of("frame_pose", frame=frame)(q)[:3, 3] == np.asarray(point))

    def _touching(self) -> Any:
        """Feet held and forces within cones; what forces add to the cost."""
        case, opti, total = self.case, self.opti, 0.0
        for i, foot in enumerate(self.feet):
            assert case.stance is not None
            here = rm.frame_pose(case.model, case.start, foot)[:3, 3]
            how = {"frame": foot, "reference": "local_world_aligned"}
            pose, rate = self.of("frame_pose", frame=foot), self.of("frame_velocity", **how)
            moved = self.of("frame_acceleration", **how)

            def held(q: Any, v: Any, a: Any, here: Any = here, pose: Any = pose, rate: Any = rate,
                     moved: Any = moved) -> Any:  # fmt: skip
                gap = pose(q)[:3, 3] - here
                return moved(q, v, a)[3:] + 2 * BAUMGARTE * rate(q, v)[3:] + BAUMGARTE**2 * gap

            stands = self.made(f"held{i}", "q v a", held)
            for t in range(case.count):
                force = self.x["f"][3 * i : 3 * i + 3, t]
                if not case.stance.first <= t < case.stance.stop:
                    opti.subject_to(force == 0)
                    continue
                total += 0.5 * FORCE**2 * casadi.sumsqr(force)
                opti.subject_to(stands(*self.at("q v a", t)) == 0)
                side = casadi.sqrt(casadi.sumsqr(force[:2]) + ROUND**2)
                opti.subject_to(case.stance.friction * force[2] - side >= 0)
                opti.subject_to(force[2] >= 0)
        return total

    def solve(self, way: str, start: Mapping[str, Array]) -> tuple[Row, dict[str, Array]]:
        """What it took, derivatives apart, and the motion by time."""
        for name, values in start.items():
            self.opti.set_initial(self.x[name], values.T)
        begun = spent()
        solution = self.opti.solve_limited()
        stats, total = solution.stats(), spent() - begun
        solving = min(float(stats["t_proc_total"]), total)
        motion = {
            name: np.array(solution.value(x)).reshape(x.shape).T for name, x in self.x.items()
        }
        row = Row(way, total - solving, solving, float(solution.value(self.cost)),
                  int(stats["iter_count"]), str(stats["return_status"]))  # fmt: skip
        return row, motion


def begin(case: Case) -> dict[str, Array]:
    """Where ``plan`` begins: straight to the goal's configuration, the weight on the feet."""
    model, count = case.model, case.count
    stop = case.start if case.goal.q is None else np.asarray(case.goal.q)
    share = np.linspace(0.0, 1.0, count)[:, np.newaxis]
    at = model.integrate(
        np.tile(case.start, (count, 1)), share * model.difference(case.start, stop)
    )
    none = np.zeros((count, model.nv))
    tau = rm.rnea(model, at, none, none)
    start = {"q": at, "v": none, "a": none, "tau": tau}
    if case.stance is not None:
        tau[:, :6] = 0.0
        force = np.zeros((count, len(FEET), 3))
        weight = model.mass * float(np.linalg.norm(model.gravity))
        force[case.stance.first : case.stance.stop, :, 2] = weight / len(FEET)
        start["f"] = force.reshape(count, -1)
    return start


def ended(found: Plan) -> str:
    """Whether it converged."""
    return "converged" if found.converged else "not converged"


def compared(case: Case) -> tuple[Plan, list[Row]]:
    """The factor graph's plan, and all ways."""
    first = spent()
    case.plan()
    ready = spent()
    mine = case.plan()
    seconds = spent() - ready
    rows = [Row("factor graph, compiled kernels", max(ready - first - seconds, 0.0), seconds,
                mine.cost, mine.iterations, ended(mine))]  # fmt: skip
    first = spent()
    problem = Transcription(case)
    built = spent() - first
    row, theirs = problem.solve("IPOPT, `rm.to_casadi`", begin(case))
    rows.append(replace(row, ready=built + row.ready))
    start = {"q": mine.q, "v": mine.v, "a": mine.a, "tau": mine.tau}
    if mine.points:
        start["f"] = mine.forces.reshape(case.count, -1)
    rows.append(problem.solve("IPOPT, from the factor graph's result", start)[0])
    begun = spent()
    again = case.plan(theirs)
    rows.append(Row("factor graph, from IPOPT's result", 0.0, spent() - begun, again.cost,
                    again.iterations, ended(again)))  # fmt: skip
    return mine, rows


def played(case: Case, found: Plan) -> list[tuple[str, str, float, float, float]]:
    """How far simulations are off the plan: control, time, coordinates, base [m], its turn."""
    model, rows = case.model, []
    stand = case.stance
    step = case.step / 25 if stand else case.step
    every = round(case.step / step)
    ground: dict[str, Any] = {}
    if stand:
        ground = {"ground": rm.Ground(friction=stand.friction), "contacts": list(stand.frames)}
    for gains in ((0.0, 0.0), (20.0, 1.0)):
        moved = rm.simulate(
            model, found.q[0], found.v[0], tau=found.controller(*gains),
            duration=case.step * (case.count - 1), step=step, progress=False, **ground,
        )  # fmt: skip
        off = np.abs(model.difference(found.q, moved.q[::every]))
        law = f"stiffness {gains[0]:g}, damping {gains[1]:g}" if any(gains) else "torques alone"
        last = case.count - 1
        for when in (stand.stop - 1, last) if stand else (last // 2, last):
            here = off[: when + 1].max(axis=0)
            base = model.floating_base is not None
            rows.append((law, f"{found.times[when]:.3f} s", float(here[6 if base else 0 :].max()),
                         float(here[3:6].max()) if base else 0.0,
                         float(here[:3].max()) if base else 0.0))  # fmt: skip
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="case")
    arguments = parser.parse_args()
    replays, plans = [], []
    print(
        "| | solver | setup, s | solving, s | cost | iterations | status |\n"
        "|---|---|---:|---:|---:|---:|---|"
    )
    for name in arguments.cases:
        case = CASES[name]()
        mine, rows = compared(case)
        for row in rows:
            print(f"| {name} | {row.way} | {row.ready:.1f} | {row.seconds:.2f} | {row.cost:.6g} | "
                  f"{row.iterations} | {row.status} |", flush=True)  # fmt: skip
        plans.append(f"| {name} | {case.count} | {mine.iterations} | {mine.cost:.6g} | "
                     f"{mine.residual:.0e} | {mine.margin:.0e} |")  # fmt: skip
        replays += [(name, *row) for row in played(case, mine)]
    print(
        "\n| | time steps | iterations | cost | residual of the equations of motion, N m "
        "| smallest margin |"
    )
    print("|---|---:|---:|---:|---:|---:|", *plans, sep="\n")
    print("\n| | control | up to | joints, mrad | base, mm | base, mrad |")
    print("|---|---|---:|---:|---:|---:|")
    for name, said, until, joints, base, turn in replays:
        print(f"| {name} | {said} | {until} | {1e3 * joints:.2g} | {1e3 * base:.2g} | "
              f"{1e3 * turn:.2g} |")  # fmt: skip


if __name__ == "__main__":
    main()
