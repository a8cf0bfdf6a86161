"""Coverage of the 95 % intervals of ``rm.identify`` under errors that are correlated in time.

    python benchmarks/identification.py [--seeds 1000] [--cases white,ar0.9] [--robots arm]

For each robot and kind of error, logs of 15 s at 100 Hz are made from a robot that differs from the
file, and identified. A row has the share of 95 % intervals that hold the truth, and the deviation
of the errors over their stated deviations, of all combinations of which the log tells more than
half. ``quantised``: positions alone, by encoders of 2^14 steps a turn, velocities by a filter;
``differenced``: velocities as differences of such positions. Errors of forces are 2 % of them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import cache
from typing import Any

import numpy as np

import robomodel as rm
from robomodel.arrays import Array

ARM = """<robot name="arm"><link name="base"/>
<link name="a"><inertial><origin xyz="0.02 0 0.1"/><mass value="6"/>
  <inertia ixx="0.05" iyy="0.05" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="b"><inertial><origin xyz="0.02 0 0.2"/><mass value="3"/>
  <inertia ixx="0.05" iyy="0.05" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="c"><inertial><origin xyz="0.16 0 0.01"/><mass value="1.6"/>
  <inertia ixx="0.002" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="pan" type="continuous"><parent link="base"/><child link="a"/>
  <origin xyz="0 0 0.2"/><axis xyz="0 0 1"/></joint>
<joint name="lift" type="continuous"><parent link="a"/><child link="b"/>
  <origin xyz="0.05 0 0.2"/><axis xyz="0 1 0"/></joint>
<joint name="elbow" type="continuous"><parent link="b"/><child link="c"/>
  <origin xyz="0 0 0.42"/><axis xyz="0 1 0"/></joint></robot>"""
STEP, COUNT, NOISE = 0.01, 1500, 0.02
TURN = 2.0 * np.pi / 2**14  # of an encoder
CASES = ("white", "ar0.5", "ar0.9", "ar0.99", "quantised", "differenced")
ROBOTS = {"arm": "a tree", "belt_leg": "a belt leg", "planar_leg_linkage": "a four-bar leg"}


@cache
def model(name: str) -> rm.Model:
    """The file's robot."""
    if name == "arm":
        return rm.load(ARM)
    return rm.robots.load(name, gravity=(1.0, -9.0, -2.0))


@cache
def motion(name: str) -> tuple[Array, Array, Array, Array]:
    """A motion of the robot, and its regressor."""
    rng, robot = np.random.default_rng(1), model(name)
    rates = 2.0 * np.pi * rng.uniform(0.15, 1.0, (robot.nv, 4))
    phases = rng.uniform(0.0, 2.0 * np.pi, rates.shape)
    angles = (np.arange(COUNT) * STEP)[:, None, None] * rates + phases
    sizes = (0.5 if name == "arm" else 0.3) / np.sqrt(rates)
    x = np.sum(sizes * np.sin(angles), -1)
    v = np.sum(sizes * rates * np.cos(angles), -1)
    a = -np.sum(sizes * rates**2 * np.sin(angles), -1)
    now, q = robot.neutral(), []
    for change in np.diff(x, axis=0, prepend=0.0 * x[:1]):
        now = robot.integrate(now, change)
        q.append(now)
    places = np.array(q)
    return places, v, a, rm.regressor(robot, places, v, a)


def truth(name: str, rng: np.random.Generator) -> Array:
    """Values of another robot: bodies are heavier or lighter by up to 20 %, joints have losses."""
    robot, rows = model(name), motion(name)[-1]
    p = rm.parameters(robot)
    factor = np.ones(len(p.values))
    for i in range(len(robot.bodies)):
        factor[10 * i : 10 * i + 10] = rng.uniform(0.8, 1.2)
    values: Array = p.values * factor
    size = np.sqrt(np.mean((rows @ values) ** 2, axis=(0,)))
    for i, each in enumerate(p.names):
        if each.endswith(("damping", "friction")) and "rotor" not in each:
            level = np.sqrt(np.mean(rows[..., i] ** 2, axis=0))
            if level.max() > 0.0:
                k = int(np.argmax(level))
                values[i] = rng.uniform(0.02, 0.2) * size[k] / level[k]
    return values


def log(name: str, case: str, seed: int) -> tuple[Any, Array]:
    """A log with errors, and the robot's values."""
    robot, rng = model(name), np.random.default_rng(seed)
    values = truth(name, rng)
    q, v, a, rows = motion(name)
    exact = rows @ values
    noise = rng.normal(size=(COUNT + 2000, robot.nv))
    if case.startswith("ar"):
        from scipy.signal import lfilter

        k = float(case[2:])
        noise = lfilter([np.sqrt(1.0 - k * k)], [1.0, -k], noise, axis=0)
    tau = exact + NOISE * np.sqrt(np.mean(exact**2, axis=0)) * noise[2000:]
    if case.startswith(("white", "ar")):
        return (q, v, a, tau), values
    columns = {"time": STEP * np.arange(COUNT)}
    place = robot.joint_positions(q)
    for i, joint in enumerate(robot.dof_names):
        shift = rng.uniform(0.0, TURN)
        steps = np.round((np.asarray(place[joint]) + shift) / TURN) * TURN - shift
        columns[f"q.{joint}"] = steps
        columns[f"tau.{joint}"] = tau[:, i]
        if case == "differenced":
            columns[f"v.{joint}"] = np.gradient(steps, STEP)
    if case == "differenced":
        return (columns,), values
    return (rm.identification.read_log(robot, columns, velocities=10.0),), values


def coverage(name: str, case: str, seeds: int) -> tuple[float, float, float, float]:
    """Share of intervals that hold the truth, deviation of z, worst |z|, effective samples."""
    robot, scores, effective = model(name), [], []
    for seed in range(seeds):
        arguments, values = log(name, case, seed)
        fit = rm.identify(robot, *arguments)
        for group in fit.groups:
            if group.information_gain > 0.5:
                truth = sum(k * values[fit.names.index(n)] for n, k in group.coefficients.items())
                scores.append((group.value - truth) / group.deviation)
        effective.append(np.mean(fit.effective))
    z = np.array(scores)
    return (
        float(np.mean(np.abs(z) < 1.96)), float(np.std(z)), float(np.max(np.abs(z))),
        float(np.mean(effective)),
    )  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--robots", default=",".join(ROBOTS))
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| robot | errors | in 95 % intervals | deviation of z | worst | samples count as | s |")
    print("|---|---|---|---|---|---|---|")
    for name in chosen.robots.split(","):
        for case in chosen.cases.split(","):
            begin = time.process_time()
            held, spread, worst, effective = coverage(name, case, chosen.seeds)
            print(
                f"| {name} | {case} | {100.0 * held:.1f} % | {spread:.2f} | {worst:.1f} "
                f"| {effective:.0f} of {COUNT} | {time.process_time() - begin:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
