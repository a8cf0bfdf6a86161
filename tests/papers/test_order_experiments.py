"""The experiments on orders: counters that can be checked by hand, and a page for every table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import robomodel as rm
from benchmarks.orders import __main__ as orders
from benchmarks.orders import docs as orders_docs
from benchmarks.orders import experiments
from benchmarks.paper import docs as paper_docs
from robomodel.instants import elimination
from robomodel.instants.equations import LinearFactor, System, Variable
from robomodel.instants.problem import Problem
from robomodel.papers.elimination_orders import scalar_order
from robomodel.papers.equations import elementwise_operations

pytestmark = pytest.mark.slow  # the papers' own

ROOT = Path(__file__).parents[2]


def system(matrix: np.ndarray) -> System:
    """A system of scalars."""
    names = [f"x{i}" for i in range(len(matrix))]
    factors = [
        LinearFactor(
            f"row{i}",
            "row",
            {n: [[float(x)]] for n, x in zip(names, row, strict=True) if x},
            [1.0],
        )
        for i, row in enumerate(matrix)
    ]  # fmt: skip
    return System(tuple(Variable(n, "number", n, 1) for n in names), tuple(factors))


def test_operations_of_dense_and_of_arrow_matrices() -> None:
    n = 5
    dense = system(np.random.default_rng(0).uniform(2.0, 3.0, size=(n, n)) + 5.0 * np.eye(n))
    done = elimination.eliminate_scalars(dense, [f"x{i}" for i in range(n)])
    updates = sum(k * k for k in range(n))
    # L and U: products and differences; divisions by pivots; both substitutions
    expected = 2 * updates + n * (n - 1) // 2 + 2 * n * (n - 1) + n
    assert done.operations == expected
    elementwise = 2 * sum(range(n)) + n * (n - 1) // 2 + 2 * n * (n - 1) + n
    assert elementwise_operations(done) == elementwise

    arrow = np.diag(np.full(n, 8.0))
    arrow[0, 1:] = arrow[1:, 0] = 2.0
    plan = elimination.plan_pivots(system(arrow), scalar_order(system(arrow), "markowitz"))
    assert (0, 0) in plan.pivots[-2:]  # of the last two either may go first
    done = elimination.eliminate_scalars(system(arrow), (), plan)
    assert done.entries + sum(map(len, done.lost)) == np.count_nonzero(arrow)  # no fill


def test_markowitz_triangulates_inverse_dynamics() -> None:
    """Document 003, section IV-D, scalar by scalar, though rows and columns are in no order."""
    problem = Problem.inverse(experiments.tapered(20))
    rng = np.random.default_rng(0)
    rows = np.array(problem.structure.matrix()[0], dtype=float)
    mixed = rows[rng.permutation(len(rows))][:, rng.permutation(len(rows))]
    done = elimination.eliminate_scalars(system(mixed), scalar_order(system(mixed), "markowitz"))
    assert done.entries + sum(map(len, done.lost)) == np.count_nonzero(rows)


@pytest.mark.slow
def test_the_permuted_lu_costs_more_than_aba_and_seems_to_cost_less() -> None:
    """Document 003's figure 1: with its counter and with the right one."""
    found = experiments.serial(8)
    assert experiments.closed_form(8) == 224 * 8 - 259 + 205 * 8 - 248
    assert found["elementwise"] < found["closed form"] < found["counted"] / 1.5


def test_solvers_of_matrices_agree_with_aba() -> None:
    model = rm.robots.load("puma560")
    effort = experiments.Effort(states=20, singles=3)
    forward = experiments.Forward.of(model, view="cluster")
    q, v, tau = experiments.states(model, 20)
    expected = rm.aba(model, q, v, tau, backend="numpy")
    solvers = experiments.matrix_solvers(forward, forward.permutation(), effort, dense=True)
    assert len(solvers) == 4
    for run, solved in solvers.values():
        run()
        true = expected[: len(solved)]
        np.testing.assert_allclose(solved, true, rtol=0, atol=1e-10 * np.abs(true).max())


def test_the_documentation_has_a_mark_for_every_table() -> None:
    text = (ROOT / "docs/orders.md").read_text("utf-8")
    results = json.loads((ROOT / "docs/orders.json").read_text("utf-8"))
    assert paper_docs.fill(text, orders_docs.tables(results)) == text


@pytest.mark.tables
def test_a_smoke_run_fills_every_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.json"
    orders.main(["--quick", "--json", str(file)])
    shown = capsys.readouterr().out
    text = (ROOT / "docs/orders.md").read_text("utf-8")
    for _, name, _ in paper_docs.MARK.findall(text):
        assert f"\n# {name}\n" in shown
    orders.main(["--from", str(file)])
    assert capsys.readouterr().out in shown
    with pytest.raises(SystemExit):
        orders.main(["--quick", "--docs"])
