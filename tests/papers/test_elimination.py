"""Elimination: the graphs of document 001, and one answer from every order and every method."""

from __future__ import annotations

import numpy as np
import pytest

import robomodel as rm
from benchmarks.shared.chains import chain
from robomodel.estimation.elimination import SingularError
from robomodel.instants import elimination
from robomodel.instants.equations import backward_error, pieces
from robomodel.instants.problem import Problem
from robomodel.instants.sensors import gyroscope, minimum_torque
from robomodel.kernels import Trace
from robomodel.papers.elimination_orders import (
    NAMES,
    FactorGraph,
    Relation,
    as_networkx,
    as_order,
    dot,
    draw_clique_tree,
    draw_dag,
    draw_factor_graph,
    draw_pattern,
    factor_graph,
    ldlt,
    named_order,
    pivot_edges,
    pivots,
    pseudocode,
    python,
    search_order,
    search_variables,
    symmetric,
    used_edges,
)
from robomodel.papers.elimination_orders import search as search_problem
from robomodel.papers.elimination_orders.search import Counter
from robomodel.scalars import unstack

SHORT = {"t": "tau[joint{}]", "q": "qdd[joint{}]", "V": "a[link{}]", "F": "f[link{}]"}


def names(short: str) -> list[str]:
    """Names from the paper's table: ``t1 F2 V3 q2``."""
    return [SHORT[word[0]].format(word[1]) for word in short.split()]


@pytest.fixture(scope="module")
def arm() -> rm.Model:
    """The 3R arm of the paper's figures."""
    return chain("plain", 3)


# ---- directed graphs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "order", "edges"),
    [("inverse", "rnea", 10), ("forward", "crba", 20), ("forward", "aba", 18)],
)
def test_the_3r_arms_graphs_have_the_papers_edges(arm, problem, order, edges):
    """Figures 5(d), 7(a) and 7(b)."""
    made = getattr(Problem, problem)(arm)
    assert len(factor_graph(made).eliminate(made.order(order)).edges) == edges


@pytest.mark.parametrize(
    "order", ["t1 q2 q3 V3 F1 V1 F2 V2 F3", "t1 q2 q3 F1 V1 V3 F3 V2 F2"], ids=["MD", "custom"]
)
def test_the_3r_arms_hybrid_graphs_have_the_papers_edges(arm, order):
    """Table III and figure 10: τ1 unknown with θ̈1 given, the others the other way round."""
    problem = Problem.hybrid(arm, ["joint1"])
    dag = factor_graph(problem).eliminate(problem.order(names(order)))
    assert len(dag.edges) == 13
    assert dag.fill == ()


def test_the_rnea_graph_is_algorithm_1(arm):
    problem = Problem.inverse(arm)
    dag = factor_graph(problem).eliminate(problem.order("rnea"))
    assert {child: set(parents) for child, parents in dag.parents.items()} == {
        "tau[joint1]": {"f[link1]"}, "tau[joint2]": {"f[link2]"}, "tau[joint3]": {"f[link3]"},
        "f[link1]": {"f[link2]", "a[link1]"}, "f[link2]": {"f[link3]", "a[link2]"},
        "f[link3]": {"a[link3]"}, "a[link3]": {"a[link2]"}, "a[link2]": {"a[link1]"},
        "a[link1]": set(),
    }  # fmt: skip
    assert dag.fill == ()


def test_an_order_is_written_out_as_an_algorithm(arm):
    inverse = Problem.inverse(arm)
    dag = factor_graph(inverse).eliminate(inverse.order("rnea"))
    _, substitution = pseudocode(dag).split("substitute\n")
    assert substitution.splitlines() == [
        "  a[link1]", "  a[link2] given a[link1]", "  a[link3] given a[link2]",
        "  f[link3] given a[link3]", "  f[link2] given f[link3], a[link2]",
        "  f[link1] given f[link2], a[link1]", "  tau[joint1] given f[link1]",
        "  tau[joint2] given f[link2]", "  tau[joint3] given f[link3]",
    ]  # fmt: skip
    assert "rest of" not in pseudocode(dag)
    forward = Problem.forward(arm)
    lines = pseudocode(factor_graph(forward).eliminate(forward.order("aba"))).splitlines()
    assert lines[1] == (
        "  solve wrench[link2], wrench[link3], torque[joint3] for f[link3] given a[link3], f[link2]"
        ", a[link2]; 7 rows are left, on a[link3], f[link2], a[link2]"
    )
    assert lines[2].startswith("  solve acceleration[link3], rest of f[link3] for a[link3] given ")
    assert lines[-1].startswith("  f[link3] given ")


def test_rneas_order_is_algorithm_1_in_python(arm):
    inverse = Problem.inverse(arm)
    source = python(factor_graph(inverse).eliminate(inverse.order("rnea")))
    _, body = source.split("# substitute\n")
    assert [line.split(" = ")[0].strip() for line in body.splitlines()] == [
        "x", *(f"x['{name}']" for name in names("V1 V2 V3 F3 F2 F1 t1 t2 t3")), "return x"
    ]  # fmt: skip
    assert source.count("#") == 1  # nothing to eliminate before
    assert ("x['f[link2]'] = b['wrench[link2]'] + D['wrench[link2]', 'a[link2]'] @ x['a[link2]']"
            " + D['wrench[link2]', 'f[link3]'] @ x['f[link3]']") in source  # fmt: skip


def solved_by_source(problem, order, q, v, values, *, refine=False):
    """What the source of an order makes of a state: all unknowns."""
    space = {}
    exec(python(factor_graph(problem).eliminate(named_order(problem, order))), space)
    d, b = problem.blocks(q, v, values)
    found = space["solve"](d, b)
    if refine:
        wrong = {name: x.copy() for name, x in b.items()}
        for (equation, name), block in d.items():
            wrong[equation] += block @ found[name]
        more = space["solve"](d, wrong)
        found = {name: x + more[name] for name, x in found.items()}
    return found


@pytest.mark.tables_cases(
    "tello-tree-crba", "tello-tree-colamd", "tello-tree-markowitz", "tello-cluster-crba",
    "tello-cluster-colamd", "tello-cluster-aba", "mini_cheetah-tree-crba",
    "mini_cheetah-tree-colamd",
)  # fmt: skip
@pytest.mark.slow_cases("five_bar-tree-crba", "five_bar-tree-markowitz", "five_bar-tree-colamd")
@pytest.mark.parametrize("order", ["aba", "crba", "colamd", "markowitz"])
@pytest.mark.parametrize(
    ("name", "view"),
    [("puma560", "tree"), ("five_bar", "tree"),
     *(pytest.param(name, view, marks=pytest.mark.slow) for name, view in
       [("teleop_arm", "tree"), ("mini_cheetah", "tree"), ("mini_cheetah", "cluster"),
        ("tello", "tree"), ("tello", "cluster")])],
)  # fmt: skip
def test_an_orders_source_is_the_recursions(name, view, order):
    model = rm.robots.load(name)
    rng = np.random.default_rng(4)
    q, (v, a) = model.random_configuration(rng), rng.normal(size=(2, model.nv))
    tau = rm.rnea(model, q, v, a, backend="numpy")
    free = [piece for piece in pieces(model) if piece.dofs]
    for known in ([p.name for p in free], [], [free[-1].name]):
        problem = Problem.hybrid(model, known, view=view)
        given = {p.name: a if p.name in known else tau for p in free}
        values = {f"{'qdd' if p.name in known else 'tau'}[{p.name}]": given[p.name][list(p.dofs)]
                  for p in free}  # fmt: skip
        found = solved_by_source(problem, order, q, v, values, refine=order != "aba")
        forces, rates = rm.hybrid(
            model, q, v,
            tau={model.dof_names[i]: tau[i] for p in free if p.name not in known for i in p.dofs},
            a={model.dof_names[i]: a[i] for p in free if p.name in known for i in p.dofs},
            backend="numpy",
        )  # fmt: skip
        for p in free:
            kind, of = ("tau", forces) if p.name in known else ("qdd", rates)
            off = np.abs(found[f"{kind}[{p.name}]"] - of[list(p.dofs)]).max()
            assert off <= 1e-12 * max(1.0, np.abs(of).max())


def test_pivots_name_each_variables_equation(arm):
    forward = Problem.forward(arm)
    dag = factor_graph(forward).eliminate(forward.order("aba"))
    kinds = {"f": "wrench", "a": "acceleration", "qdd": "torque"}
    for equation, name in pivot_edges(dag):
        kind, owner = name.split("[")
        assert equation == f"{kinds[kind]}[{owner}"
    assert len(pivot_edges(dag)) == 9
    assert set(used_edges(dag)) < set(dag.edges)  # joining factors relates more than the pivots do
    assert pivots(dag)["a[link2]"].given == ("qdd[joint2]", "a[link1]")


def test_source_is_of_exact_equations_that_determine(arm):
    forward = Problem.forward(arm)
    dag = factor_graph(forward).eliminate(forward.order("aba"))
    alone = FactorGraph(dag.graph.sizes, dag.graph.factors).eliminate(dag.order)
    with pytest.raises(ValueError, match="not written from equations"):
        python(alone)
    assert " -> " in dot(alone)
    measured = forward.having(gyroscope("link3", covariance=1.0))
    with pytest.raises(ValueError, match="measurement with a covariance"):
        python(factor_graph(measured).eliminate(named_order(measured, "colamd")))
    loose = forward.unknown("tau[joint1]")
    with pytest.raises(SingularError, match="not determined"):
        python(factor_graph(loose).eliminate(loose.order("aba")))


def test_the_custom_order_splits_on_one_clique(arm):
    """Section VI-B: on F2 and V̇2, with what is on either side of it left to parallel branches."""
    problem = Problem.hybrid(arm, ["joint1"])
    dag = factor_graph(problem).eliminate(names("t1 q2 q3 F1 V1 V3 F3 V2 F2"))
    split = set(names("F2 V2"))
    one = next(c for c in dag.cliques if "a[link1]" in c.frontal)
    assert set(one.separator) == split
    root = next(c for c in dag.cliques if c.parent is None)
    assert split <= set(root.frontal)
    other = next(c for c in dag.cliques if "a[link3]" in c.frontal)
    assert other is not one
    assert dag.cliques[one.parent] is dag.cliques[other.parent] is root


@pytest.mark.parametrize("name", ["puma560", "five_bar", "mini_cheetah"])
@pytest.mark.parametrize("order", ["aba", "crba", "nested dissection"])
def test_clique_trees_are_trees_of_cliques(name, order):
    """Every variable is eliminated in one clique; a separator is of what the parent holds."""
    model = rm.robots.load(name)
    some = [p.name for p in pieces(model) if p.dofs][::2]
    problem = Problem.hybrid(model, some)
    dag = factor_graph(problem).eliminate(named_order(problem, order))
    frontal = [v for c in dag.cliques for v in c.frontal]
    assert sorted(frontal) == sorted(problem.sizes)
    for clique in dag.cliques:
        if clique.parent is None:
            assert clique.separator == ()
        else:
            above = dag.cliques[clique.parent]
            assert set(clique.separator) <= {*above.frontal, *above.separator}
        for v in clique.frontal:
            assert set(dag.parents[v]) <= {*clique.frontal, *clique.separator}


def test_fill_is_what_was_not_there():
    """A star, from the middle and from the tips."""
    star = FactorGraph(
        dict.fromkeys("abcd", 1), tuple(Relation(f"a{x}", frozenset(f"a{x}"), 1) for x in "bcd")
    )
    star = FactorGraph(star.sizes, (*star.factors, Relation("a", frozenset("a"), 1)))
    from_tips, from_middle = star.eliminate("bcda"), star.eliminate("abcd")
    assert (len(from_tips.edges), from_tips.fill) == (3, ())
    assert (len(from_middle.edges), len(from_middle.fill)) == (6, 3)
    assert from_middle.width == 4


# ---- orders -------------------------------------------------------------------------------------


def test_an_arms_chain_needs_no_fill():
    """Nori's finding that zero-fill permutations exist, at the level of blocks."""
    for count in (3, 12):
        problem = Problem.forward(chain("plain", count))
        for order in ("colamd", "minimum degree"):
            assert factor_graph(problem).eliminate(named_order(problem, order)).fill == ()


@pytest.mark.parametrize("order", ["rnea", "colamd", "markowitz"])
def test_inverse_dynamics_fills_nothing(order):
    """Document 003, section IV-D: L and U have the entries of D, for a hundred bodies."""
    problem = Problem.inverse(chain("plain", 100))
    done = elimination.eliminate_scalars(problem.structure, named_order(problem, order))
    assert done.entries + sum(map(len, done.lost)) == len(problem.structure.pattern())


def test_nested_dissection_is_shallow():
    """Its clique tree is lower than that of the sequential order, which is what it is for."""
    problem = Problem.forward(chain("plain", 32))

    def height(order: str) -> int:
        cliques = factor_graph(problem).eliminate(named_order(problem, order)).cliques
        depth: list[int] = []
        for c in cliques:
            depth.append(0 if c.parent is None else depth[c.parent] + 1)
        return max(depth)

    assert height("nested dissection") < 0.5 * height("aba")


def test_search_is_seeded_and_no_worse_than_its_start(arm):
    problem = Problem.forward(arm)
    start = problem.order("aba")
    seen: list[tuple[int, float]] = []
    first = search_variables(factor_graph(problem), start=start, steps=300, seed=4,
                   progress=lambda step, best: seen.append((step, best)))  # fmt: skip
    assert first == search_variables(factor_graph(problem), start=start, steps=300, seed=4)
    work = factor_graph(problem).eliminate(first).work
    assert work < factor_graph(problem).eliminate(start).work
    assert seen[-1][1] == work
    assert [b for _, b in seen] == sorted((b for _, b in seen), reverse=True)
    graph = factor_graph(problem)
    by_edges = search_variables(graph, cost=lambda o: len(graph.eliminate(o).edges), steps=300)
    assert len(graph.eliminate(by_edges).edges) <= 14


@pytest.mark.parametrize("scalars", [False, True])
def test_searched_orders_of_hybrid_problems_are_never_worse(arm, scalars):
    problem = Problem.hybrid(arm, ["joint2"])
    found = search_problem(problem, scalars=scalars, nodes=40, seed=1)
    assert found == search_problem(problem, scalars=scalars, nodes=40, seed=1)
    assert found.nodes == 40
    known = [name for name in NAMES if name != "searched"]
    if scalars:
        known += ["scalar markowitz", "scalar colamd", "scalar minimum degree"]
    known = [problem.factorize(named_order(problem, name)).operations for name in known]
    assert found.start_operations == min(known) >= found.operations
    assert problem.factorize(found.order).operations == found.operations
    hurried = search_problem(problem, scalars=scalars, nodes=10**6, seconds=0.0)
    assert hurried.operations == hurried.start_operations
    begun = as_order(arm, "aba")
    assert search_order(arm, start=begun, seconds=0.0) == begun
    with pytest.raises(ValueError, match="one order or more"):
        search_problem(problem, nodes=0)


def test_remembered_steps_count_what_eliminations_do():
    """Orders that differ in places or wholly; columns that wait, loops, measurements."""
    five_bar = rm.robots.load("five_bar")
    problems = [
        Problem.hybrid(five_bar, ["J1"], view="cluster"),
        Problem.inverse(five_bar).unknown("tau[J3]"),  # not determined
        Problem.inverse(five_bar)
        .unknown("tau[J3]")
        .having(*(minimum_torque(joint) for joint in ("J1", "J2", "J3"))),
    ]
    rng, waited, refused = np.random.default_rng(0), 0, 0
    for problem in problems:
        counters = [Counter(problem.structure, most) for most in (5000, 20)]
        columns = problem.structure.unknowns
        for order in (
            list(problem.sizes),
            [(int(c),) for c in rng.permutation(columns)],
        ):
            for _ in range(3):
                order.insert(rng.integers(len(order)), order.pop(rng.integers(len(order))))
                try:
                    wanted = problem.factorize(order)
                except SingularError:
                    refused += 1
                    for counter in counters:
                        with pytest.raises(SingularError, match="not determined"):
                            counter.operations(order)
                    continue
                assert [c.operations(order) for c in counters] == [wanted.operations] * 2
                waited += len(wanted.plan.free)
    assert waited
    assert refused


@pytest.mark.slow
@pytest.mark.parametrize("name", ["five_bar", "mini_cheetah"])
def test_searched_orders_compile(name):
    model = rm.robots.load(name)
    free = [piece.name for piece in pieces(model) if piece.dofs]
    problem = Problem.hybrid(model, [free[-1]], view="cluster")
    found = search_problem(problem, scalars=True, nodes=30)
    assert found.operations <= found.start_operations
    rng = np.random.default_rng(2)
    q, (v, a) = model.random_configuration(rng), rng.normal(size=(2, model.nv))
    tau = rm.rnea(model, q, v, a)
    values = {f"{'qdd' if p.name == free[-1] else 'tau'}[{p.name}]":
              (a if p.name == free[-1] else tau)[list(p.dofs)]
              for p in pieces(model) if p.dofs}  # fmt: skip
    solver = problem.compile([f"tau[{free[-1]}]"], order=found.order)
    got = solver(q, v, values)[f"tau[{free[-1]}]"]
    assert np.allclose(got, tau[-len(got) :], rtol=1e-9, atol=1e-9)


def test_lists_of_variables_are_checked(arm):
    problem = Problem.forward(arm)
    order = list(problem.order("aba"))
    assert problem.order(order) == tuple(order)
    with pytest.raises(ValueError, match="leaves out"):
        problem.order(order[1:])
    with pytest.raises(ValueError, match="repeats a variable"):
        problem.order([*order, order[0]])
    with pytest.raises(ValueError, match=r"no variable 'a\[link9\]'"):
        problem.order([*order[1:], "a[link9]"])
    with pytest.raises(ValueError, match="order 'random' is not known"):
        problem.order("random")


# ---- every order, every method ------------------------------------------------------------------

SLOW = pytest.mark.slow
LARGE = (pytest.param(name, marks=SLOW) for name in ("mini_cheetah", "tello"))
ROBOTS = ("puma560", "five_bar", *LARGE)


@pytest.mark.slow_cases(
    "methods0-tree-puma560",
    "methods0-cluster-puma560",
    "methods0-cluster-five_bar",
    "methods0-tree-five_bar",
)
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("view", ["tree", "cluster"])
@pytest.mark.parametrize("methods", [("gauss", "ldlt"), pytest.param(("qr",), marks=SLOW)])
def test_every_order_and_method_agrees_with_the_recursions(name, view, methods):
    model = rm.robots.load(name)
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng)
    v, a = rng.normal(size=(2, model.nv))
    tau = rm.rnea(model, q, v, a, backend="numpy")
    at = {p.name: list(p.dofs) for p in pieces(model) if p.dofs}
    some = list(at)[::2]
    for problem in (Problem.forward(model, view=view), Problem.inverse(model, view=view),
                    Problem.hybrid(model, some, view=view)):  # fmt: skip
        values = {f"tau[{j}]": tau[d] for j, d in at.items()}
        values |= {f"qdd[{j}]": a[d] for j, d in at.items()}
        values = {k: x for k, x in values.items() if k in problem.known}
        orders = {order: named_order(problem, order) for order in NAMES[:-1]}
        orders["searched"] = search_variables(factor_graph(problem), steps=20)
        for order in orders.values():
            for method in methods:
                if method == "ldlt":
                    solution = ldlt(problem, q, v, values, order=order)
                else:
                    solution = problem.solve(q, v, values, order=order, method=method)
                for got, true in ((solution.acceleration, a), (solution.tau, tau)):
                    assert np.max(np.abs(got - true)) <= 1e-12 * np.max(np.abs(true)), (
                        order, method,
                    )  # fmt: skip
                assert solution.backward_error < 1e-11


def test_a_plan_runs_on_batches_and_becomes_code(arm):
    """Pivots chosen once for many states; then the same arithmetic on arrays and on a trace."""
    rng = np.random.default_rng(2)
    problem = Problem.forward(arm)
    joints = [p.name for p in pieces(arm)]

    def written(q, v, tau):
        values = {f"tau[{j}]": [t] for j, t in zip(joints, tau, strict=True)}
        return problem.system(q, v, values, {})

    q, v, tau = rng.normal(size=(3, 50, 3))
    order = named_order(problem, "colamd")
    plan = elimination.plan_pivots(written(*(unstack(x) for x in (q, v, tau))), order)
    q, v, tau = rng.normal(size=(3, 200, 3))
    batch = written(*(unstack(x) for x in (q, v, tau)))
    solution = elimination.eliminate_scalars(batch, order, plan).solution()
    true = rm.aba(arm, q, v, tau, backend="numpy")
    got = np.stack([solution[f"qdd[{j}]"][0] for j in joints], axis=-1)
    np.testing.assert_allclose(got, true, rtol=0, atol=1e-11 * np.max(np.abs(true)))
    assert np.max(backward_error(batch, solution)) < 1e-12

    trace = Trace()
    inputs = [trace.inputs(3) for _ in range(3)]
    traced = elimination.eliminate_scalars(written(*inputs), order, plan).solution()
    program = trace.program([traced[f"qdd[{j}]"][0] for j in joints])
    again = program([x for array in (q, v, tau) for x in unstack(array)])
    np.testing.assert_allclose(np.stack(again, axis=-1), got, rtol=0, atol=1e-10)


def test_plans_of_other_problems_are_refused(arm):
    forward, inverse = Problem.forward(arm), Problem.inverse(arm)
    other = elimination.plan_pivots(inverse.structure, inverse.order("rnea"))
    with pytest.raises((SingularError, KeyError)):
        elimination.eliminate_scalars(forward.structure, forward.order("aba"), other)


def test_symmetric_elimination_refuses_what_is_not_symmetric(arm):
    problem = Problem.hybrid(arm, ["joint1"])
    with pytest.raises(ValueError, match="LDLᵀ is for symmetric systems"):
        symmetric.eliminate(problem.structure, problem.order("aba"))
    net = Problem.forward(arm, net_forces=True)
    with pytest.raises(ValueError, match="LDLᵀ is for symmetric systems"):
        symmetric.solve(net.structure, net.order("aba"))


@pytest.mark.parametrize("name", ["puma560", "five_bar"])
def test_bias_first_is_the_same_elimination(name):
    """Velocities and gravity beforehand: the same answer, and CRBA's order gets cheaper."""
    model = rm.robots.load(name)
    problem = Problem.forward(model, view="cluster", split="joint")
    order = problem.order("crba")
    joints = [p for p in pieces(model) if p.dofs]
    rng = np.random.default_rng(6)
    q = model.random_configuration(rng)
    v, tau = rng.normal(size=(2, model.nv))
    true = rm.aba(model, q, v, tau, backend="numpy")
    flops = []
    for bias_first in (False, True):
        trace = Trace()
        at, rates, forces = (trace.inputs(n) for n in (model.nq, model.nv, model.nv))
        values = {f"tau[{p.name}]": [forces[i] for i in p.dofs] for p in joints}
        system = problem.system(at, rates, values, {})
        found = symmetric.solve(system, order, bias_first=bias_first)
        program = trace.program([x for p in joints for x in found[f"qdd[{p.name}]"]])
        got = np.array(program([*q, *v, *tau]))
        assert np.max(np.abs(got - true)) <= 1e-12 * np.max(np.abs(true))
        flops.append(program.flops)
    assert flops[1] < flops[0]


def test_joint_accelerations_wait_for_their_bodies(arm):
    """An order that has them first is met as far as there are pivots."""
    problem = Problem.forward(arm)
    order = problem.order(names("q1 q2 q3 F1 F2 F3 V3 V2 V1"))
    done = symmetric.eliminate(problem.structure, order)
    assert sorted(done.sequence) == sorted(order)
    assert done.sequence.index("qdd[joint1]") > done.sequence.index("a[link1]")


# ---- pictures -----------------------------------------------------------------------------------


def test_graphs_for_networkx_and_graphviz(arm):
    problem = Problem.forward(arm)
    bipartite = as_networkx(factor_graph(problem))
    assert len(bipartite) == 9 + 9
    dag = factor_graph(problem).eliminate(problem.order("crba"))
    directed = as_networkx(dag)
    assert directed.number_of_edges() == 20
    assert sum(f for _, _, f in directed.edges(data="fill")) == len(dag.fill)
    assert sum(used for _, _, used in directed.edges(data="used")) == len(used_edges(dag)) < 20
    assert directed.nodes["qdd[joint3]"]["pivot"] == ("torque[joint3]",)
    assert dot(dag).count(" -> ") == 20 + len(pivot_edges(dag))
    assert dot(dag).count("color=grey") == 20 - len(used_edges(dag))
    assert dot(factor_graph(problem)).count(" -- ") == bipartite.number_of_edges()


@pytest.mark.slow
def test_pictures_show_every_node(arm, tmp_path):
    problem = Problem.forward(arm)
    dag = factor_graph(problem).eliminate(problem.order("aba"))
    for draw, what in ((draw_factor_graph, factor_graph(problem)), (draw_dag, dag),
                       (draw_clique_tree, dag)):  # fmt: skip
        axes = draw(what)
        text = " ".join(t.get_text() for t in axes.texts)
        assert all(name in text for name in problem.sizes)
        assert (draw is draw_dag) == ("torque[joint3]" in text)
        axes.figure.savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 5000
    pattern = draw_pattern(problem.structure)
    (dots,) = pattern.collections
    assert len(dots.get_offsets()) == len(problem.structure.pattern())
