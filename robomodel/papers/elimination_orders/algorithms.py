"""The algorithm that results from an elimination order, as text or as Python source (001, IV).

A directed acyclic graph contains the variables on which each variable depends (IV-B). The equations
determine its pivot: the block of one equation that contains it (±1 first, then the equation that
mirrors its column, then any square block) or, if there is none, the rows of all its equations, by
QR. Pivots are chosen once, at the generic state for which the graph was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from robomodel.arrays import Array
from robomodel.estimation.elimination import SingularError
from robomodel.instants.elimination import REMAINDER
from robomodel.papers.elimination_orders.graphs import Dag, Game
from robomodel.tolerances import SINGULAR

Kind = Literal["minus one", "one", "block", "rows"]
INDENT = "    "
HEAD = (
    "import numpy as np",
    "",
    "",
    "def solve(D, b):",
    '    """Every variable of D x + b = 0 by name.',
    "",
    "    D[equation, variable]: blocks; b[equation]: constants. Both stay as they are.",
    '    """',
    "    D, b = dict(D), dict(b)",
)


@dataclass(frozen=True, slots=True)
class Target:
    """An equation into which a variable is substituted; ``sign`` of its block there (0.0: not ±1).

    ``held``: the equation's other variables.
    """

    equation: str
    sign: float
    held: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pivot:
    """The elimination of one ``variable`` from ``equations``, ``given`` others.

    ``kind``: its block in the only equation ("minus one", "one", "block"), or "rows" of several.
    ``row``: name of the pivot's rows. ``targets``: the other equations with the variable. With
    several equations, ``rest`` is the name of the remaining rows ("" if there are none),
    ``heights`` their numbers of rows, and ``holders`` the equations with each given variable.
    """

    variable: str
    kind: Kind
    equations: tuple[str, ...]
    row: str
    given: tuple[str, ...]
    targets: tuple[Target, ...] = ()
    rest: str = ""
    heights: tuple[int, ...] = ()
    holders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class _Equations:
    """Equations during elimination: blocks by variable, and signs of blocks that are ±1.

    ``twin``: the equation that mirrors a variable's column; ``height``: number of rows of each
    equation; ``scale``: the largest entry of each variable's column at the start.
    """

    blocks: dict[str, dict[str, Array]]
    sign: dict[tuple[str, str], float]
    twin: dict[str, str]
    height: dict[str, int]
    scale: dict[str, float]


def pivots(dag: Dag) -> dict[str, Pivot]:
    """Each variable's pivot, in the order of elimination.

    Raises ValueError for graphs without equations and for measurements with covariances,
    SingularError where the equations that are left do not determine a variable.
    """
    rows, place = _rows(dag), {name: i for i, name in enumerate(dag.order)}
    return {name: _eliminated(rows, name, place) for name in dag.order}


def pivot_edges(dag: Dag) -> tuple[tuple[str, str], ...]:
    """(equation, variable) for every pivot: the directed edges from factors to variables (IV-A).

    Equations without an edge are used together with others as "rest of" a variable. Raises the
    errors of :func:`pivots`.
    """
    return tuple((e, name) for name, pivot in pivots(dag).items() for e in pivot.equations)


def used_edges(dag: Dag) -> tuple[tuple[str, str], ...]:
    """The edges of ``dag`` whose blocks pivots contain; the others result from joining factors."""
    return tuple((parent, name) for name, pivot in pivots(dag).items() for parent in pivot.given)


def pseudocode(dag: Dag) -> str:
    """The algorithm of an order: the rows solved for each variable, and the rows that remain.

    One line per elimination, then back-substitution. Remaining rows are named "rest of" the
    variable. If each variable has its own rows, as in RNEA's order of inverse dynamics, the
    algorithm is the back-substitution alone (algorithm 1).
    """

    def conditions(name: str) -> str:
        return f" given {', '.join(dag.parents[name])}" if dag.parents[name] else ""

    game = Game(dag.graph)
    label = {i: factor.name for i, factor in enumerate(dag.graph.factors)}
    lines = ["eliminate"]
    for name in dag.order:
        joined = sorted(game.touching[name])
        rows = ", ".join(label[i] for i in joined) or "nothing"
        game.eliminate(name)
        line = f"  solve {rows} for {name}{conditions(name)}"
        if joined and joined[0] in game.factors:
            separator, left = game.factors[joined[0]]
            label[joined[0]] = f"rest of {name}"
            others = ", ".join(x for x in dag.order if x in separator)
            line += f"; {left} rows are left, on {others}"
        lines.append(line)
    lines.append("substitute")
    lines += [f"  {name}{conditions(name)}" for name in reversed(dag.order)]
    return "\n".join(lines)


def _rows(dag: Dag) -> _Equations:
    system = dag.graph.system
    if system is None:
        raise ValueError("this graph was not written from equations, so that it has no pivots")
    rows = _Equations({}, {}, {}, {}, {})
    for factor in system.factors:
        if factor.deviation is not None:
            raise ValueError(f"'{factor.name}' is a measurement with a covariance; pivots are for "
                             "exact equations")  # fmt: skip
        blocks = {name: np.array(block, dtype=float) for name, block in factor.blocks.items()}
        rows.blocks[factor.name] = blocks
        rows.twin[factor.twin], rows.height[factor.name] = factor.name, factor.rows
        for name, block in blocks.items():
            rows.scale[name] = max(rows.scale.get(name, 0.0), float(np.max(np.abs(block))))
            for sign in (-1.0, 1.0):
                if np.array_equal(block, sign * np.eye(len(block))):
                    rows.sign[factor.name, name] = sign
    return rows


def _eliminated(rows: _Equations, x: str, place: Mapping[str, int]) -> Pivot:
    joined = [name for name, blocks in rows.blocks.items() if x in blocks]
    equation, kind = _chosen(rows, x, joined)
    if equation is None:
        return _together(rows, x, joined, place)
    row = rows.blocks.pop(equation)
    pivot = row.pop(x)
    row = {y: np.linalg.solve(-pivot, block).astype(float, copy=False) for y, block in row.items()}
    targets = []
    for target in joined:
        if target == equation:
            continue
        at = rows.blocks[target].pop(x)
        held = frozenset(rows.blocks[target])
        targets.append(Target(target, rows.sign.pop((target, x), 0.0), held))
        for y, block in row.items():
            before = rows.blocks[target].get(y)
            rows.blocks[target][y] = at @ block if before is None else before + at @ block
            rows.sign.pop((target, y), None)
    given = tuple(sorted(row, key=place.__getitem__))
    return Pivot(x, kind, (equation,), equation, given, tuple(targets))


def _chosen(rows: _Equations, x: str, joined: Sequence[str]) -> tuple[str | None, Kind]:
    """The equation with the best block of a variable; None if no block can be a pivot."""
    best: tuple[tuple[int, int], str, Kind] | None = None
    for n, name in enumerate(joined):
        block = rows.blocks[name][x]
        sign = rows.sign.get((name, x), 0.0)
        mirrors = rows.twin.get(x) == name
        square = block.shape[0] == block.shape[1]
        if sign == 0.0 and not (square and _sound(block, REMAINDER * rows.scale[x])):
            continue
        kind: Kind = "minus one" if sign < 0.0 else "one" if sign > 0.0 else "block"
        rank = 0 if sign < 0.0 else 1 if sign > 0.0 else 2 if mirrors else 3
        if best is None or (rank, n) < best[0]:
            best = (rank, n), name, kind
    return (None, "rows") if best is None else best[1:]


def _sound(block: Array, rounding: float) -> bool:
    if not np.max(np.abs(block)) > rounding:
        return False
    scaled = block
    for axis in (1, 0, 1, 0):
        size = np.max(np.abs(scaled), axis=axis, keepdims=True)
        if not np.all(size > 0.0):
            return False
        scaled = scaled / size
    # largest condition number of an equilibrated block that is a pivot
    return bool(np.linalg.cond(scaled) < 1e7)


def _together(rows: _Equations, x: str, joined: Sequence[str], place: Mapping[str, int]) -> Pivot:
    """Solve the rows of all equations with a variable for it; the remaining rows replace them."""
    blocks_of = {name: rows.blocks.pop(name) for name in joined}
    columns = [blocks.pop(x) for blocks in blocks_of.values()]
    pivot = np.vstack(columns) if columns else np.zeros((0, 1))
    count, size = pivot.shape
    values = np.linalg.svd(pivot, compute_uv=False) if count >= size else np.zeros(1)
    if not values[-1] > max(SINGULAR * values[0], REMAINDER * rows.scale.get(x, 0.0)):
        raise SingularError(x, "is not determined by the equations that are left in this order")
    q, _ = np.linalg.qr(pivot, mode="complete")
    given = tuple(
        sorted({y for blocks in blocks_of.values() for y in blocks}, key=place.__getitem__)
    )
    heights = tuple(rows.height[name] for name in joined)
    rest = f"rest of {x}" if count > size and given else ""
    if rest:
        rows.height[rest] = count - size
        rows.blocks[rest] = {}
    holders: dict[str, tuple[str, ...]] = {}
    for y in given:
        holders[y] = tuple(name for name in joined if y in blocks_of[name])
        width = next(blocks_of[name][y].shape[1] for name in holders[y])
        none = {name: np.zeros((h, width)) for name, h in zip(joined, heights, strict=True)}
        column = np.vstack([blocks_of[name].get(y, none[name]) for name in joined])
        if rest:
            rows.blocks[rest][y] = (q.T @ column)[size:]
    return Pivot(x, "rows", tuple(joined), x, given, (), rest, heights, holders)


# ---- Python source -------------------------------------------------------------------------------


def python(dag: Dag) -> str:
    """The algorithm of an order as Python source: a function ``solve(D, b)`` on NumPy arrays.

    D and b at any state are :meth:`Problem.blocks`; the function returns all unknowns by name, in
    the bodies' internal axes. Each line is a product of blocks; nothing is done for pivots of -1,
    so that RNEA's order of inverse dynamics is its back-substitution alone. The function uses the
    pivots of :func:`pivots` at every state without checks. Raises the errors of :func:`pivots`.
    """
    sizes = dag.graph.sizes
    steps = tuple(pivots(dag).values())
    lines: list[str] = []
    for step in steps:
        lines += _elimination(step, sizes)
    lines += ["", "# substitute", "x = {}"]
    for step in reversed(steps):
        terms = [f"b[{step.row!r}]"]
        terms += [f"D[{step.row!r}, {y!r}] @ x[{y!r}]" for y in reversed(step.given)]
        lines.append(f"x[{step.variable!r}] = {' + '.join(terms)}")
    lines.append("return x")
    body = [INDENT + line if line else "" for line in lines]
    return "\n".join([*HEAD, *body, ""])


def _elimination(step: Pivot, sizes: Mapping[str, int]) -> Iterator[str]:
    """Lines that bring a pivot's rows to -x + Σ D y + b = 0 and substitute x into others."""
    x, row = step.variable, step.row
    changes = bool(step.targets) or step.kind != "minus one"
    if not changes:
        return
    yield ""
    what = ", ".join(step.equations)
    yield f"# {what} {'give' if len(step.equations) > 1 else 'gives'} {x}"
    if step.kind == "rows":
        yield from _by_qr(step, sizes)
    elif step.kind == "one":
        yield from (f"D[{row!r}, {y!r}] = -D[{row!r}, {y!r}]" for y in step.given)
        yield f"b[{row!r}] = -b[{row!r}]"
    elif step.kind == "block":
        yield f"pivot = -D[{row!r}, {x!r}]"
        for y in step.given:
            yield f"D[{row!r}, {y!r}] = np.linalg.solve(pivot, D[{row!r}, {y!r}])"
        yield f"b[{row!r}] = np.linalg.solve(pivot, b[{row!r}])"
    for target in step.targets:
        name = target.equation
        at = {-1.0: "-", 1.0: ""}.get(target.sign, f"D[{name!r}, {x!r}] @ ")
        for y in step.given:
            more = f"{at}D[{row!r}, {y!r}]"
            yield f"D[{name!r}, {y!r}] = " + _sum(f"D[{name!r}, {y!r}]", more, y in target.held)
        yield f"b[{name!r}] = " + _sum(f"b[{name!r}]", f"{at}b[{row!r}]", True)


def _sum(first: str, more: str, held: bool) -> str:
    if not held:
        return more
    return f"{first} - {more[1:]}" if more.startswith("-") else f"{first} + {more}"


def _by_qr(step: Pivot, sizes: Mapping[str, int]) -> Iterator[str]:
    x, n = step.variable, sizes[step.variable]
    pivot = ", ".join(f"D[{name!r}, {x!r}]" for name in step.equations)
    yield f"q, r = np.linalg.qr(np.vstack([{pivot}]), mode='complete')"

    def turned(target: str, rest: str, stacked: str) -> Iterator[str]:
        yield f"rows = q.T @ {stacked}"
        yield f"{target} = np.linalg.solve(-r[:{n}], rows[:{n}])"
        if step.rest:
            yield f"{rest} = rows[{n}:]"

    for y in step.given:
        parts = ", ".join(
            f"D[{name!r}, {y!r}]" if name in step.holders[y] else f"np.zeros(({h}, {sizes[y]}))"
            for name, h in zip(step.equations, step.heights, strict=True)
        )
        yield from turned(f"D[{x!r}, {y!r}]", f"D[{step.rest!r}, {y!r}]", f"np.vstack([{parts}])")
    parts = ", ".join(f"b[{name!r}]" for name in step.equations)
    yield from turned(f"b[{x!r}]", f"b[{step.rest!r}]", f"np.concatenate([{parts}])")
