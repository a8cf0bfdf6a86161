"""Pictures of factor graphs, of their elimination and cliques, and of sparsity patterns.

Needs networkx and matplotlib (the extra ``graphs``); :func:`dot` writes Graphviz text without them.
As in the paper, variables are circles and factors dots; bodies are ordered from left to right,
kinds from top to bottom: torques, wrenches, accelerations, joint accelerations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from robomodel.errors import MissingPackageError
from robomodel.estimation.elimination import SingularError
from robomodel.instants.equations import System
from robomodel.papers.elimination_orders.algorithms import pivots, used_edges
from robomodel.papers.elimination_orders.graphs import Dag, FactorGraph
from robomodel.reports.palette import BODIES, FAINT, GREY, INK

HEIGHT = {"tau": 3.0, "f": 2.0, "net": 1.5, "a": 1.0, "fx": 2.5, "lambda": 1.5, "qdd": 0.0}
_BLUE, _ORANGE, _GREEN, _RED, _PURPLE, _TEAL, *_ = BODIES
COLOUR = {"tau": _ORANGE, "f": _BLUE, "fx": _TEAL, "net": _TEAL, "a": _GREEN, "qdd": _RED,
          "lambda": _PURPLE, "q": _BLUE, "v": _TEAL, "Q": _ORANGE, "p": _RED}  # fmt: skip


def _kind(name: str) -> str:
    return name.partition("[")[0]


def _places(names: Iterable[str], graph: FactorGraph) -> dict[str, tuple[float, float]]:
    """Positions of variables: a column for each body, in the order in which they are listed.

    Joints are in the column of the wrench with which they share a factor. Graphs over time have a
    column for each time, "q[3]", and a row for each variable.
    """
    if graph.system is None and (grid := _grid(graph.sizes)):
        return grid
    column: dict[str, float] = {}
    for name in names:
        if _kind(name) in ("a", "f"):
            column.setdefault(name.partition("[")[2], float(len(column)))

    def at(name: str) -> float:
        body = name.partition("[")[2]
        if body in column:
            return column[body]
        near = [n for factor in graph.factors if name in factor.variables
                for n in factor.variables if _kind(n) == "f"]  # fmt: skip
        near = near or [n for n in graph.neighbours[name] if _kind(n) in ("a", "f")]
        columns = [column[n.partition("[")[2]] for n in near] or [float(len(column))]
        # a joint is below the link that it moves, which is the later one
        return max(columns) if _kind(name) == "qdd" else sum(columns) / len(columns) + 0.15

    return {name: (at(name), HEIGHT.get(_kind(name), 1.5)) for name in graph.sizes}


def _grid(names: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Columns by the number in brackets, rows by kind; empty unless all names have a number."""
    parts = [(name, _kind(name), name.partition("[")[2].rstrip("]")) for name in names]
    if not all(number.isdigit() for _, _, number in parts):
        return {}
    kinds = list(dict.fromkeys(kind for _, kind, _ in parts))
    # neighbours of one kind are not on one line, so that edges are visible
    return {
        name: (1.2 * int(number) + 0.18 * (kinds.index(kind) % 2), -1.0 * kinds.index(kind))
        for name, kind, number in parts
    }


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingPackageError("pictures need", "matplotlib", "graphs") from missing
    return Figure(figsize=(8.0, 5.0), layout="constrained").add_subplot()


def _networkx() -> Any:
    try:
        import networkx
    except ImportError as missing:
        raise MissingPackageError("graphs need", "networkx", "graphs") from missing
    return networkx


def as_networkx(what: FactorGraph | Dag) -> Any:
    """A bipartite ``Graph`` of variables and factors, or the ``DiGraph`` of an elimination.

    Variables have ``size``; factors are nodes named ``factor:…`` with ``rows``. Edges of a directed
    graph lead from parent to child and have the flags ``fill`` and ``used`` (the child's pivot rows
    contain the parent). Its nodes name their ``pivot`` equations.
    """
    nx = _networkx()
    if isinstance(what, FactorGraph):
        graph = nx.Graph()
        for name, size in what.sizes.items():
            graph.add_node(name, size=size, factor=False)
        for factor in what.factors:
            graph.add_node(f"factor:{factor.name}", rows=factor.rows, factor=True)
            graph.add_edges_from((f"factor:{factor.name}", name) for name in factor.variables)
        return graph
    directed = nx.DiGraph()
    equations, used = _pivots(what)
    for n, name in enumerate(what.order):
        directed.add_node(name, size=what.graph.sizes[name], step=n, pivot=equations.get(name, ()))
    fill = set(what.fill)
    directed.add_edges_from(
        (*edge, {"fill": edge in fill, "used": edge in used}) for edge in what.edges
    )
    return directed


def _pivots(dag: Dag) -> tuple[dict[str, tuple[str, ...]], set[tuple[str, str]]]:
    """Each variable's pivot equations, and the edges they contain; all edges without pivots."""
    try:
        return {name: each.equations for name, each in pivots(dag).items()}, set(used_edges(dag))
    except (ValueError, SingularError):  # measurements, no equations, or a variable without any
        return {}, set(dag.edges)


def draw_factor_graph(graph: FactorGraph, ax: Any = None) -> Any:
    """Draw the factor graph on matplotlib axes (default: new ones), which are returned."""
    axes = _axes(ax)
    nx = _networkx()
    drawn = as_networkx(graph)
    places = _places(graph.sizes, graph)
    for factor in graph.factors:
        points = [places[name] for name in factor.variables]
        x, y = (sum(p[i] for p in points) / len(points) for i in (0, 1))
        covered = any(abs(x - px) < 0.3 and abs(y - py) < 0.2 for px, py in places.values())
        places[f"factor:{factor.name}"] = (x - 0.25, y + 0.25) if covered else (x, y)
    dots = [node for node, data in drawn.nodes(data=True) if data["factor"]]
    nx.draw_networkx_edges(drawn, places, ax=axes, edge_color=GREY)
    nx.draw_networkx_nodes(drawn, places, nodelist=dots, node_size=40, node_color="black", ax=axes)
    _variables(nx, drawn, places, graph.sizes, axes)
    return axes


def draw_dag(dag: Dag, ax: Any = None) -> Any:
    """Draw the directed graph of an elimination; fill-in edges are dashed.

    A square with the name of its pivot equation points at each variable (equations that determine
    it together share one). Edges that result from joining factors, without a block in the pivot's
    rows, are grey.
    """
    axes = _axes(ax)
    nx = _networkx()
    drawn = as_networkx(dag)
    places = _places(dag.graph.sizes, dag.graph)
    for filled, style in ((False, "solid"), (True, "dashed")):
        for used, colour in ((False, FAINT), (True, "black")):
            edges = [(p, c) for p, c, data in drawn.edges(data=True)
                     if (data["fill"], data["used"]) == (filled, used)]  # fmt: skip
            nx.draw_networkx_edges(
                drawn, places, edgelist=edges, style=style, ax=axes, node_size=700,
                edge_color=colour, connectionstyle="arc3,rad=0.12",
            )  # fmt: skip
    for name, equations in drawn.nodes(data="pivot"):
        if equations:
            x, y = places[name]
            axes.annotate(
                " + ".join(equations), (x, y - 0.13), (x, y - 0.42), ha="center", fontsize=5,
                color=INK, arrowprops={"arrowstyle": "->", "color": INK},
                bbox={"boxstyle": "square", "facecolor": "white", "edgecolor": INK},
            )  # fmt: skip
    _variables(nx, drawn, places, dag.graph.sizes, axes)
    axes.set_title(f"{len(dag.edges)} edges, {len(dag.fill)} of them fill")
    return axes


def draw_clique_tree(dag: Dag, ax: Any = None) -> Any:
    """Draw the clique tree, roots on top: eliminated variables | variables they depend on."""
    axes = _axes(ax)
    depth: list[int] = []
    width: dict[int, int] = {}
    places: list[tuple[float, float]] = []
    for clique in dag.cliques:
        d = 0 if clique.parent is None else depth[clique.parent] + 1
        depth.append(d)
        places.append((float(width.get(d, 0)), -float(d)))
        width[d] = width.get(d, 0) + 1
    for clique, (x, y) in zip(dag.cliques, places, strict=True):
        if clique.parent is not None:
            above = places[clique.parent]
            axes.plot([above[0], x], [above[1], y], color=GREY, zorder=1)
        text = " ".join(clique.frontal) + (
            " | " + " ".join(clique.separator) if clique.separator else ""
        )
        axes.text(x, y, text, ha="center", va="center", fontsize=7, zorder=2,
                  bbox={"boxstyle": "round", "facecolor": "white"})  # fmt: skip
    axes.set_xlim(-0.7, max(width.values(), default=1) - 0.3)
    axes.set_ylim(-max(depth, default=0) - 0.5, 0.5)
    axes.set_axis_off()
    return axes


def draw_pattern(system: System, ax: Any = None) -> Any:
    """Draw the pattern of D: a dot for each structural entry, lines between the blocks."""
    axes = _axes(ax)
    pattern = sorted(system.pattern())
    axes.scatter([c for _, c in pattern], [r for r, _ in pattern], s=4, marker="s", color="black")
    edge = -0.5
    for factor in system.factors:
        edge += factor.rows
        axes.axhline(edge, color=FAINT, lw=0.5, zorder=0)
    for columns in system.columns.values():
        axes.axvline(columns.stop - 0.5, color=FAINT, lw=0.5, zorder=0)
    axes.set_xlim(-0.5, system.unknowns - 0.5)
    axes.set_ylim(system.rows - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.set_title(f"{system.rows} rows, {system.unknowns} unknowns, {len(pattern)} entries")
    return axes


def _variables(
    nx: Any, drawn: Any, places: Mapping[str, Any], names: Iterable[str], axes: Any
) -> None:
    listed = list(names)
    colours = [COLOUR.get(_kind(name), FAINT) for name in listed]
    nx.draw_networkx_nodes(
        drawn, places, nodelist=listed, node_size=700, node_color=colours, ax=axes
    )
    nx.draw_networkx_labels(drawn, places, {name: name for name in listed}, font_size=6, ax=axes)
    axes.set_axis_off()


def dot(what: FactorGraph | Dag) -> str:
    """The graph as Graphviz text: ``dot -Tsvg``."""
    if isinstance(what, FactorGraph):
        lines = ["graph factors {"]
        lines += [f'  "{n}" [shape=circle];' for n in what.sizes]
        for factor in what.factors:
            lines.append(f'  "factor:{factor.name}" [shape=point, xlabel="{factor.name}"];')
            lines += [f'  "factor:{factor.name}" -- "{n}";' for n in sorted(factor.variables)]
        return "\n".join([*lines, "}\n"])
    fill = set(what.fill)
    equations, used = _pivots(what)
    lines = ["digraph elimination {", *(f'  "{n}";' for n in what.order)]
    for p, c in what.edges:
        style = ["style=dashed"] if (p, c) in fill else []
        style += [] if (p, c) in used else ["color=grey"]
        attributes = f" [{', '.join(style)}]" if style else ""
        lines.append(f'  "{p}" -> "{c}"{attributes};')
    for name, sources in equations.items():
        for equation in sources:
            lines.append(f'  "{equation}" [shape=box, fontsize=9];')
            lines.append(f'  "{equation}" -> "{name}" [arrowhead=empty];')
    return "\n".join([*lines, "}\n"])
