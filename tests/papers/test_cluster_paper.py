"""The paper's experiments: what decides their tables, and that the documentation can take them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import robomodel as rm
from benchmarks.paper import (
    blocks,
    experiments,
    published,
)
from benchmarks.paper import docs as paper_docs
from benchmarks.shared.chains import chain
from benchmarks.shared.race import in_fresh_processes

ROOT = Path(__file__).parents[2]


def row(links: int, ns: float | None, flops: int = 1) -> experiments.Row:
    return experiments.Row("geared", links, "aba", "cluster", flops, 1, ns)


def test_growth_is_the_exponent_of_what_was_measured() -> None:
    rows = [row(n, 0.1 * n**1.7 if n < 100 else None, n**3) for n in (6, 12, 24, 48, 100)]
    rows[0] = row(6, 1e9)  # outside of the range
    exponent, first, last = experiments.growth(rows, "ns", 12)
    assert exponent == pytest.approx(1.7, rel=1e-12)
    assert (first, last) == (12, 48)
    assert experiments.growth(rows, "flops", 12)[0] == pytest.approx(3.0, rel=1e-12)
    assert experiments.growth(rows, "ns", 48) is None


def test_every_number_of_the_paper_has_its_place() -> None:
    assert {algorithm for algorithm, _ in published.PERCENT} == set(published.TABLES)
    for (algorithm, method), percent in published.PERCENT.items():
        assert method in experiments.METHODS[algorithm]
        assert len(percent) == len(published.SYSTEMS)
    for algorithm, kind, method in published.EXPONENTS:
        assert method in experiments.METHODS[algorithm]
        assert kind in experiments.COMPARED


@pytest.mark.slow
def test_the_exact_methods_agree_and_what_is_too_large_is_counted_only() -> None:
    effort = experiments.Effort(states=8, rounds=1, links=(3,), compiled=2, counted=3)
    system = next(experiments.chains(effort))
    rows = {(r.algorithm, r.method): r for r in experiments.speed(system, effort)}
    assert set(rows) == {(a, m) for a in ("aba", "efpa") for m in experiments.METHODS[a]
                         if m != "unconstrained"}  # fmt: skip
    for (_, method), found in rows.items():
        assert found.flops > 0
        assert (found.ns is None) == (method in ("projection", "lagrange"))
    effort = experiments.Effort(states=8, rounds=1, links=(3,))
    system = next(experiments.chains(effort))
    for found in experiments.speed(system, effort):
        assert found.difference is None or found.difference < 1e-12
        assert found.ns is not None
        assert 0.0 < found.ns <= found.median


def test_differences_are_relative_to_each_state() -> None:
    expected = np.array([[1e6, 1.0], [1e-6, 0.0]])
    found = expected + np.array([[0.0, 1.0], [0.0, 1e-7]])
    assert experiments.largest_difference(found, expected) == pytest.approx(0.1)


@pytest.mark.slow
def test_the_approximation_is_exact_for_a_symmetric_rotor_on_the_base_only() -> None:
    name, model = next(experiments.approximated())
    found = experiments.errors(name, model, 5)
    assert found["rnea approximate"][1] < 1e-12
    assert found["aba approximate"][1] < 1e-8  # percent
    assert found["aba unconstrained"][0] > 0.1
    found = experiments.errors("two links", chain("geared", 2), 5)
    assert found["rnea approximate"][0] > 1e-3


def test_the_legs_torques_are_those_of_the_papers_figure() -> None:
    time, tau, names = experiments.leg_torques()
    knee = names.index("knee_link_joint")
    lowest = int(np.argmin(np.round(tau["cluster"][:, knee], 9)))
    # read off the figure that the authors keep with their library: -11.229 N m once a period
    assert tau["cluster"][lowest, knee] == pytest.approx(-11.229, abs=5e-4)
    assert time[lowest] * experiments.FREQUENCY % 1.0 == pytest.approx(0.25)
    for entry in experiments.leg_table(tau, names):
        assert entry["approximate"] < entry["unconstrained"] < entry["peak"]
    assert not np.array_equal(tau["approximate"], tau["as the paper"])


def work(x: int) -> tuple[int, int]:
    return x * x, os.getpid()


@pytest.mark.slow
def test_measuring_takes_fresh_processes_and_their_least_times() -> None:
    runs = in_fresh_processes(2, work, 3)
    assert [x for x, _ in runs] == [9, 9]
    assert len({process for _, process in runs} | {os.getpid()}) == 3
    assert in_fresh_processes(0, work, 3) == [(9, os.getpid())]
    effort = experiments.Effort(states=8, rounds=1, processes=2, links=(2,), compiled=1, counted=3)
    system = next(experiments.chains(effort))
    for one, least in zip(
        experiments.speed(system, effort), experiments.least_times(system, effort), strict=True
    ):
        assert (one.algorithm, one.method, one.flops) == (
            least.algorithm,
            least.method,
            least.flops,
        )
        assert (one.ns is None) == (least.ns is None)
    assert experiments.control(system, effort)["percent"] >= 0.0


def test_the_documentation_has_a_mark_for_every_table() -> None:
    text = (ROOT / "docs/paper.md").read_text("utf-8")
    marks = [name for _, name, _ in paper_docs.MARK.findall(text)]
    filled = paper_docs.fill(text, {name: f"| {name} |" for name in marks})
    assert [name for _, name, _ in paper_docs.MARK.findall(filled)] == marks
    assert all(f"\n| {name} |\n" in filled for name in marks)
    with pytest.raises(ValueError, match="do not fit"):
        paper_docs.fill(text, {"another": ""})


def test_signs_and_orders_that_differ_are_named() -> None:
    ns = {"approximate": 60.0, "cluster": 100.0, "projection": 130.0}  # as in the paper
    times = {name: dict(ns) for name in published.SYSTEMS}
    times["GT"]["projection"] = 99.0
    times["Tello"]["approximate"] = 120.0
    found = {
        (name, method): experiments.Row(name, 0, "efpa", method, 1, 1, x, x)
        for name, own in times.items()
        for method, x in own.items()
    }
    assert list(paper_docs.differences(found, "efpa")) == [
        "approximate is faster in the paper, and the opposite here: Tello (+20 %).",
        "projection is slower in the paper; here the difference is at most 5 % on GT.",
        "order of times on Tello: cluster < approximate < projection.",
    ]


def test_patterns_are_those_of_the_matrices() -> None:
    model = rm.robots.load("mini_cheetah")
    joints, conditions, mass = experiments.patterns(model)
    n = model.n_joint_velocities
    assert joints.shape == (n, n)
    assert conditions.shape == (n - model.nv, n)
    assert (conditions.sum(axis=1) == 2).all()  # a rotor and its joint
    outputs = rm.compile(model, "crba").program.outputs
    assert np.array_equal(mass.ravel() != 0, [type(x) is int or x != 0 for x in outputs])


def test_blocks_have_the_robots_nodes() -> None:
    model = chain("belt", 2)  # link1, link2 on it, and both rotors on the base
    body, placement, inertia, node, _, g, _ = blocks.tables(model, clustered=True)
    assert body[:, :3].tolist() == [[0, -1, -1], [0, 0, -1], [0, -1, -1], [0, -1, -1]]
    assert node.tolist() == [[-1, 0, 2, 0, 4]]
    assert g.shape == (4, 2)
    assert placement.shape == (4, 12)
    assert np.array_equal(inertia, inertia.transpose(0, 2, 1))
    alone = blocks.tables(model, clustered=False)
    assert alone[0][:, :3].tolist() == [[0, -1, -1], [1, -1, 0], [2, -1, -1], [3, -1, -1]]
    assert alone[3][:, 0].tolist() == [-1, 0, -1, -1]
    assert blocks.linear(model)
    assert not blocks.linear(rm.robots.load("tello"))


@pytest.mark.tables
@pytest.mark.slow
def test_a_smoke_run_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.paper import __main__ as paper

    paper.main(["--quick", "--output", str(tmp_path)])
    shown = capsys.readouterr().out
    text = (ROOT / "docs/paper.md").read_text("utf-8")
    for _, name, _ in paper_docs.MARK.findall(text):
        assert f"\n# {name}\n" in shown
    assert {file.name for file in tmp_path.iterdir()} >= {"results.json"} | {
        f"figure{n}.png" for n in range(9, 15)
    }
    paper.main(["--from", str(tmp_path / "results.json"), "--output", str(tmp_path / "again")])
    assert (tmp_path / "again/results.json").read_text() == (tmp_path / "results.json").read_text()
