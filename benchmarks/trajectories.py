"""Motions as factor graphs: experiments of Blanco-Claraco, Leanza and Reina, and a spatial leg.

    python -m benchmarks.trajectories [forward|inverse|gravity|leg|incremental|threads ...]
        [--seconds S] [--windows N ...] [--csv FOLDER]
        [--coordinates dependent|independent|independent_f_eq ...]

``forward``: their four-bar from rest under gravity by fixed-lag smoothing, in dependent and in
independent coordinates, for each window (their figure 7 and table 1), against the exact motion with
the same gravity; ``independent_f_eq`` is with their soft equality of successive coordinates.
``gravity``: what other values of gravity, or being a step late, do to the exact motion.
``inverse``: the torque that moves the crank as prescribed, in four stages (their figure 8).
``leg``: the same on the left leg of Tello, with its two differentials. ``incremental``: what a step
of the incremental smoother takes. ``threads``: what two threads gain on two independent halves of a
graph. ``--csv`` keeps the figures' curves.
"""

from __future__ import annotations

import argparse
import math
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from lxml import etree
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import robomodel as rm
from robomodel.estimation.elimination import chain
from robomodel.estimation.factors import Encoders, Equal, Gyroscope, Prior
from robomodel.estimation.graph import Factor, Graph, Noise
from robomodel.estimation.incremental import Incremental
from robomodel.estimation.problems import inverse_dynamics, motion, rolled_out, undisturbed
from robomodel.estimation.solve import fixed_lag, solve
from robomodel.estimation.spaces import Vectors
from robomodel.papers.natural_coordinates import Angle, Body, Mechanism, planar

Array = NDArray[np.float64]
Values = dict[str, Array]

GRAVITY = 9.81
STEP = 1e-3
COORDINATES = ("dependent", "independent", "independent_f_eq")
PUBLISHED = {  # window: RMSE of q [m] in dependent and in independent coordinates
    2: (0.002361, 0.023834),
    3: (0.002356, 0.019645),
    4: (0.002352, 0.020019),
    5: (0.002348, 0.016647),
    6: (0.002344, 0.016677),
    7: (0.002341, 0.016677),
    8: (0.002338, 0.016677),
    9: (0.002335, 0.017056),
    10: (0.002332, 0.016677),
}


def four_bar(*, angle: bool, gravity: float = GRAVITY) -> Mechanism:
    """Pivots A and D, crank of 1 m, coupler of 2 m, rocker of √13 m; with the crank's angle."""
    rocker = math.sqrt(13.0)
    return Mechanism(
        {"A": (0.0, 0.0), "D": (4.0, 0.0), "P1": None, "P2": None},
        (
            Body("crank", "A", "P1", 1.0, 1.0, (0.5, 0.0), 1.0 / 12.0),
            Body("coupler", "P1", "P2", 2.0, 2.0, (1.0, 0.0), 8.0 / 12.0),
            Body("rocker", "D", "P2", rocker, 4.0, (rocker / 2.0, 0.0), 52.0 / 12.0),
        ),
        (Angle("theta", ("A", "P1"), 1.0),) if angle else (),
        (0.0, -gravity),
    )


def start(mechanism: Mechanism) -> Array:
    """P1 at (1, 0), P2 at (1, 2)."""
    return np.array([1.0, 0.0, 1.0, 2.0, 0.0])[: mechanism.n]


def exact(seconds: float, gravity: float = GRAVITY) -> tuple[Array, Array]:
    """Positions and velocities (count, 4) of P1 and P2 from rest, integrated to 1e-12."""
    mechanism = four_bar(angle=False, gravity=gravity)
    still = np.zeros(4)

    def flow(_: float, x: Array) -> Array:
        return np.concatenate([x[4:], mechanism.accelerations(x[:4], x[4:], still)[0]])

    times = np.arange(round(seconds / STEP) + 1) * STEP
    begin = np.concatenate([start(mechanism), still])
    solution = solve_ivp(
        flow, (0.0, times[-1]), begin, method="DOP853", rtol=1e-12, atol=1e-12, t_eval=times
    )
    return solution.y[:4].T, solution.y[4:].T


def rmse(a: Array, b: Array) -> float:
    """Root mean square of all numbers' differences."""
    return float(np.sqrt(np.mean((a - b) ** 2)))


def ahead(pairs: Iterable[tuple[str, str, str]]) -> Callable[[Values], Values]:
    """Prediction: accelerations stay, rates and positions follow."""

    def predict(last: Values) -> Values:
        result = dict(last)
        for position, rate, acceleration in pairs:
            result[rate] = last[rate] + STEP * last[acceleration]
            result[position] = last[position] + STEP / 2 * (last[rate] + result[rate])
        return result

    return predict


def forward(
    windows: Iterable[int], coordinates: Iterable[str], seconds: float, folder: Path | None
) -> None:
    """Table 1 and figure 7."""
    q_exact, v_exact = exact(seconds)
    count = len(q_exact)
    print(f"forward, {seconds:g} s at 1 ms, RMSE against the exact motion of the same gravity")
    print(
        "window  coordinates            q [m]      v [m/s]    published q [m]   iterations   time"
    )
    for window in windows:
        for name in coordinates:
            mechanism = four_bar(angle=name != "dependent")
            q, v = start(mechanism), np.zeros(mechanism.n)
            a = mechanism.accelerations(q, v, np.zeros(mechanism.n))[0]
            begin = {"q": q, "v": v, "a": a}
            pairs = [("q", "v", "a")]
            if name == "dependent":
                graph = planar.forward(mechanism, count, STEP, q=q, v=v)
            else:
                equal = planar.EQUAL if "f_eq" in name else None
                graph = planar.forward_independent(
                    mechanism, ["theta"], count, STEP, q=q, v=v, equal_noise=equal
                )
                begin |= {"z": q[4:], "zd": v[4:], "zdd": a[4:]}
                pairs.append(("z", "zd", "zdd"))
            begun = time.perf_counter()
            estimate = fixed_lag(graph, begin, window, predict=ahead(pairs), tolerance=1e-7)
            spent = time.perf_counter() - begun
            at, rate = estimate.newest["q"][:, :4], estimate.newest["v"][:, :4]
            published = PUBLISHED.get(window, (math.nan, math.nan))[name != "dependent"]
            print(
                f"{window:4d}    {name:18s} {rmse(at, q_exact):11.3e} {rmse(rate, v_exact):11.3e}"
                f"      {published:9.6f}      {estimate.iterations.mean():8.2f} {spent:8.1f} s",
                flush=True,
            )
            if folder is not None:
                table = np.hstack([at, rate, at - q_exact, rate - v_exact])
                path = folder / f"figure7_{name}_{window}.csv"
                np.savetxt(path, table, delimiter=",", header="q, v, error of q, error of v")


def gravity(seconds: float) -> None:
    """How far exact motions under different gravities, or a step late, are apart."""
    print(f"exact motions over {seconds:g} s under two values of gravity, apart (RMSE)")
    for first, second in ((9.8, 9.80665), (9.80665, 9.81), (9.8, 9.81)):
        (q0, v0), (q1, v1) = exact(seconds, first), exact(seconds, second)
        print(f"  {first:7.5f} and {second:7.5f}   {rmse(q0, q1):.3e} m   {rmse(v0, v1):.3e} m/s")
    q, v = exact(seconds, 9.8)
    print(f"one step late            {rmse(q[1:], q[:-1]):.3e} m   {rmse(v[1:], v[:-1]):.3e} m/s")


def inverse(seconds: float, folder: Path | None) -> None:
    """Figure 8: θ = 1.2 (1 - cos 2t) at 5 ms; the torque, and where it leads."""
    step = 5e-3
    times = np.arange(round(seconds / step)) * step
    theta, rate, acceleration = prescribed(times)
    mechanism = four_bar(angle=True)
    begun = time.perf_counter()
    result = planar.inverse(
        mechanism,
        ["theta"],
        theta[:, np.newaxis],
        step,
        q=start(mechanism),
        v=np.zeros(5),
    )
    spent = time.perf_counter() - begun
    model = rm.robots.load("crank_rocker")
    q = model.integrate(np.tile(model.neutral(), (len(times), 1)), theta[:, np.newaxis])
    required = rm.rnea(model, q, rate[:, np.newaxis], acceleration[:, np.newaxis])[:, 0]
    torque = result["Q"][:, 4]
    driven = replay(times, torque)
    ideal = replay(times, required)
    print(f"inverse, {seconds:g} s at 5 ms, {len(times)} samples, four stages, {spent:.1f} s")
    print(
        f"  exact factors' violation {result.violation:.1e}, last stage {result.iterations} steps"
    )
    error = np.abs(torque - required)
    print(
        f"  torque: RMSE {rmse(torque, required):.2e} N m, largest {error.max():.2e} N m"
        f" (at {times[np.argmax(error)]:.3f} s), peak torque {np.abs(required).max():.2f} N m"
    )
    print(f"  crank of the graph: off by {np.abs(result['q'][:, 4] - theta).max():.1e} rad")
    until = [times[np.argmax(np.abs(x - theta) > 1e-3)] for x in (driven, ideal)]
    print(
        f"  crank driven by the torque without control: within 1 mrad until {until[0]:.2f} s; "
        f"by the exact torque at the samples until {until[1]:.2f} s (the motion is unstable)"
    )
    if folder is not None:
        table = np.column_stack([times, theta, result["q"][:, 4], driven, torque, required])
        header = "time, crank prescribed, of the graph, driven by the torque, torque, exact torque"
        np.savetxt(folder / "figure8.csv", table, delimiter=",", header=header)


def prescribed(times: Array) -> tuple[Array, Array, Array]:
    """The crank's angle, rate and acceleration."""
    return 1.2 * (1 - np.cos(2 * times)), 2.4 * np.sin(2 * times), 4.8 * np.cos(2 * times)


def replay(times: Array, torque: Array) -> Array:
    """The crank's angle under a torque, splined between its samples, integrated to 1e-10."""
    mechanism, of = four_bar(angle=True), CubicSpline(times, torque)

    def flow(t: float, x: Array) -> Array:
        forces = np.array([0.0, 0.0, 0.0, 0.0, float(of(t))])
        return np.concatenate([x[5:], mechanism.accelerations(x[:5], x[5:], forces)[0]])

    begin = np.concatenate([start(mechanism), np.zeros(5)])
    solution = solve_ivp(
        flow,
        (0.0, float(times[-1])),
        begin,
        method="DOP853",
        rtol=1e-10,
        atol=1e-10,
        t_eval=times,
    )
    return solution.y[4]


def leg() -> rm.Model:
    """Tello's left leg on a fixed torso."""
    tree = etree.parse(rm.robots.path("tello"), etree.XMLParser(remove_comments=True))
    root = tree.getroot()
    for element in [e for e in root if "right" in e.get("name", "")]:
        root.remove(element)
    return rm.load(etree.tostring(root, encoding="unicode"), floating_base=False)


def spatial(windows: Iterable[int], seconds: float) -> None:
    """The leg on a known motion of its five independent joints: forward and inverse dynamics."""
    model = leg()
    names = ", ".join(model.dof_names)
    amplitude = np.array([0.3, 1.2, 0.9, 1.5, 1.0])
    pulse = np.array([2.0, 2.5, 1.5, 2.0, 3.0])

    def states(times: Array) -> tuple[Array, Array, Array]:
        phase = times[:, np.newaxis] * pulse
        q = np.tile(model.neutral(), (len(times), 1))
        q = model.integrate(q, amplitude * (1 - np.cos(phase)))
        v = amplitude * pulse * np.sin(phase)
        return q, v, amplitude * pulse**2 * np.cos(phase)

    times = np.arange(round(seconds / STEP) + 1) * STEP
    q, v, a = states(times)
    tau = rm.rnea(model, q, v, a)
    print(f"Tello's left leg: nq {model.nq}, nv {model.nv}: {names}")
    print(f"forward, {seconds:g} s at 1 ms, under the exact torques at the samples")
    graph = motion(model, len(times), STEP, q=q[0], v=v[0], tau=tau)
    begin = {"q": q[0], "v": v[0], "a": a[0]}
    for window in windows:
        begun = time.perf_counter()
        estimate = fixed_lag(graph, begin, window, predict=rolled_out(STEP, graph.spaces["q"]))
        spent = time.perf_counter() - begun
        off = model.difference(q, estimate.newest["q"])
        gap = np.abs(model.residual(estimate.newest["q"])).max()
        print(
            f"  window {window:2d}: q {np.sqrt(np.mean(off**2)):.3e} rad, "
            f"v {rmse(estimate.newest['v'], v):.3e} rad/s, loops' largest gap {gap:.1e}, "
            f"{estimate.iterations.mean():.2f} iterations, {spent:.1f} s",
            flush=True,
        )
    step = 5e-3
    times = np.arange(round(2 * seconds / step)) * step
    q, v, a = states(times)
    tau = rm.rnea(model, q, v, a)
    begun = time.perf_counter()
    solved = inverse_dynamics(model, q, step)
    spent = time.perf_counter() - begun
    print(f"inverse, {2 * seconds:g} s at 5 ms, {len(times)} samples, {spent:.1f} s")
    for i, name in enumerate(model.dof_names):
        print(
            f"  {name:38s} RMSE {rmse(solved['tau'][:, i], tau[:, i]):.2e} N m of a peak of "
            f"{np.abs(tau[:, i]).max():.2f} N m"
        )


def estimation(model: rm.Model, link: str, count: int, step: float) -> tuple[Graph, Values]:
    """Encoders and a gyroscope whose bias drifts on a robot that is pushed at random; a start."""
    rng = np.random.default_rng(0)
    q, v = model.neutral(), np.full(model.nv, 0.5)
    truth = undisturbed(model, count, step, q, v, 0.02 * rng.standard_normal((count, model.nv)))
    gyroscope = Gyroscope(model, link, bias="bias")
    encoders = Encoders(model, tuple(x.name for x in model.joints if x.independent and x.nv == 1))
    bias = 0.05 * rng.standard_normal((1, 3)) + np.cumsum(
        1e-4 * rng.standard_normal((count, 3)), axis=0
    )
    turning = gyroscope.evaluate([truth["q"], truth["v"], bias], None)[0]
    turning = turning + 0.01 * rng.standard_normal(turning.shape)
    angles = encoders.evaluate([truth["q"]], None)[0]
    angles = angles + 1e-4 * rng.standard_normal(angles.shape)
    plain = motion(model, count, step, q=q, v=v, q_noise=0.1, v_noise=0.2, force_noise=0.02)
    graph = Graph({**plain.spaces, "bias": Vectors(3)}, count, plain.terms)
    graph = graph.add(Prior("bias", Vectors(3)), 0.1, times=[0])
    graph = graph.add(Equal("bias", Vectors(3)), 1e-4)
    graph = graph.add(gyroscope, 0.01, data=turning).add(encoders, 1e-4, data=angles)
    at_rest = rm.aba(model, q, v, np.zeros(model.nv))
    return graph, {"q": q, "v": v, "a": at_rest, "bias": np.zeros(3)}


def incremental(seconds: float) -> None:
    """What one step of the incremental smoother takes, of one thread's time."""
    step = 2e-3
    count = round(seconds / step)
    print(f"incremental smoother, {count} times {step * 1e3:g} ms apart, thresholds 0.01, v 0.2")
    for model in (rm.robots.load("crank_rocker"), leg()):
        graph, start = estimation(model, model.bodies[-1].name, count, step)
        predict = rolled_out(step, graph.spaces["q"])
        smoother = Incremental(graph.spaces, threshold={"q": 0.01, "v": 0.2}, lag=50)
        at: list[list[tuple[Factor, Noise, Array | None, int]]] = [[] for _ in range(count)]
        for term in graph.terms:
            reach = max(offset for _, offset in term.factor.variables)
            for k, t in enumerate(term.times.tolist()):
                data = None if term.data is None else term.data[k]
                at[t + reach].append((term.factor, term.noise, data, t))
        spent, done = [], []
        last = {name: x[np.newaxis] for name, x in start.items()}
        for t, facts in enumerate(at):
            begun = time.thread_time()
            smoother.advance(predict(last) if t else last)
            for factor, noise, data, k in facts:
                smoother.add(factor, noise, data, time=k)
            done.append(smoother.update())
            last = {name: x[np.newaxis] for name, x in smoother.newest.items()}
            spent.append(1e6 * (time.thread_time() - begun))
        values = {name: smoother[name] for name in graph.spaces}
        batch = solve(graph, values)
        off = rmse(model.difference(batch["q"], values["q"]), np.zeros(1))
        print(
            f"  {model.name:14s} {graph.n:3d} unknowns a time: median {np.median(spent):5.0f} µs, "
            f"99 % {np.percentile(spent, 99):5.0f} µs; {np.mean([x.eliminated for x in done]):.2f} "
            f"eliminations, {np.mean([x.relinearized for x in done]):.2f} times linearised anew; "
            f"from the batch solution {off:.1e} rad"
        )


def by_threads(work: Callable[[], object]) -> float:
    """Times of two runs one after the other, over those of two runs by two threads."""
    begun = time.perf_counter()
    work()
    work()
    one = time.perf_counter() - begun
    other = threading.Thread(target=work)
    begun = time.perf_counter()
    other.start()
    work()
    other.join()
    return one / (time.perf_counter() - begun)


def threads(seconds: float) -> None:
    """Two eliminations along time that do not depend on each other, by two threads.

    Beside products of matrices, which say whether a second processor was free.
    """
    print("two eliminations by two threads, against one after the other")
    matrix = np.random.default_rng(0).normal(size=(300, 300))

    def products() -> list[Array]:
        return [matrix @ matrix for _ in range(5)]

    for name, count in (("crank_rocker", 200), ("mini_cheetah", 60), ("jvrc1", 12)):
        model = rm.robots.load(name)
        v = np.zeros(model.nv)
        graph = motion(model, count, 2e-3, q=model.neutral(), v=v)
        still = {"q": model.neutral(), "v": v, "a": v}
        linear = graph.linearize({x: np.tile(at, (count, 1)) for x, at in still.items()})
        gains, free = [], []
        begun = time.perf_counter()
        while time.perf_counter() - begun < 3 * seconds:
            before = by_threads(products)
            gains.append(by_threads(lambda linear=linear: chain(linear)))
            free.append(min(before, by_threads(products)) > 1.6)
        idle = np.array(gains)[free]
        median = np.median(idle) if len(idle) else np.nan
        print(
            f"  {name:14s} {graph.n:3d} unknowns a time: median gain {np.median(gains):.2f}, "
            f"{median:.2f} with a free processor ({len(idle)} of {len(gains)})"
        )


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    experiments = ("forward", "gravity", "inverse", "leg", "incremental", "threads")
    parser.add_argument("what", nargs="*", choices=experiments, default=experiments)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--windows", type=int, nargs="+", default=list(PUBLISHED))
    parser.add_argument("--coordinates", nargs="+", choices=COORDINATES, default=COORDINATES)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    if arguments.csv is not None:
        arguments.csv.mkdir(parents=True, exist_ok=True)
    if "gravity" in arguments.what:
        gravity(arguments.seconds)
    if "inverse" in arguments.what:
        inverse(2 * arguments.seconds, arguments.csv)
    if "incremental" in arguments.what:
        incremental(arguments.seconds)
    if "threads" in arguments.what:
        threads(arguments.seconds)
    if "leg" in arguments.what:
        spatial([w for w in arguments.windows if w in (2, 10)], arguments.seconds)
    if "forward" in arguments.what:
        forward(arguments.windows, arguments.coordinates, arguments.seconds, arguments.csv)


if __name__ == "__main__":
    main()
