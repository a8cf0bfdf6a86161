"""Figure 2 of document 003, operations over the number of links, with true counts.

python -m benchmarks.orders.figures [FOLDER]

Joint torques of a free chain touched at both ends, by orders of variables and of scalars: prints
the table of docs/papers/elimination-orders.md and draws docs/images/orders_figure2.png.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.orders.experiments import load_cells
from robomodel.reports.palette import CURVES

LINKS = (2, 4, 8, 16, 24)
ORDERS = {
    "rnea": ("RNEA's order", CURVES[0], "-o"),
    "aba": ("ABA's order", CURVES[1], "-s"),
    "colamd": ("COLAMD", CURVES[2], "-^"),
    "scalar markowitz": ("scalar Markowitz", CURVES[3], "--o"),
    "scalar colamd": ("scalar COLAMD", CURVES[4], "--^"),
    "scalar minimum degree": ("scalar minimum degree", CURVES[5], "--s"),
}


def table(rows: Sequence[Mapping[str, int]]) -> str:
    """Operations (fill) as Markdown; the fewest bold."""
    heads = ["links", "unknowns", *(name for name, _, _ in ORDERS.values())]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for row in rows:
        counts = {order: row[f"{order}, operations"] for order in ORDERS}
        cells = [str(row["links"]), str(row["unknowns"])]
        for order, count in counts.items():
            shown = f"**{count}**" if count == min(counts.values()) else str(count)
            cells.append(f"{shown} ({row[f'{order}, fill']})")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(rows: Sequence[Mapping[str, int]], path: Path) -> None:
    """The same as curves."""
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    links = [row["links"] for row in rows]
    for order, (name, colour, line) in ORDERS.items():
        counts = [row[f"{order}, operations"] for row in rows]
        axes.plot(links, counts, line, color=colour, label=name, markersize=4)
    axes.set(xlabel="links", ylabel="operations", xticks=links, xlim=(0, None), ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=90, metadata={"Software": None})


def main() -> None:
    """Count, print, draw."""
    docs = Path(__file__).parents[2] / "docs" / "images"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else docs
    folder.mkdir(parents=True, exist_ok=True)
    rows = [load_cells(links) for links in LINKS]
    print(table(rows))
    draw(rows, folder / "orders_figure2.png")


if __name__ == "__main__":
    main()
