"""Draws the package's layers as SVG: docs/images/layout.svg, or those of another checkout.

python -m benchmarks.structure [OUTPUT [CHECKOUT]]
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from html import escape
from pathlib import Path

from benchmarks.shared.imports import circles, modules, top, upward
from robomodel.reports.palette import BAD, CURVES, INK, PLAIN, TONES

REPOSITORY = Path(__file__).parent.parent
WIDTH, LABEL, LINE, CHARACTER, GAP, MARGIN = 960.0, 13.0, 14.0, 6.1, 10.0, 16.0
SOFT = TONES["soft"][0]


def stated_layers() -> tuple[tuple[str, ...], ...]:
    """The layers that tests/test_structure.py states, from the ground up."""
    tree = ast.parse((REPOSITORY / "tests/test_structure.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LAYERS":
            return tuple(tuple(layer) for layer in ast.literal_eval(node.value))
    raise ValueError("tests/test_structure.py states no LAYERS")


def lines_of(name: str, root: Path) -> list[str]:
    """What a box says: its name, and for a subpackage its folders and numbers of modules."""
    within = [each for each in modules(root) if top(each) == name]
    if not (root / name).is_dir():
        return [name]
    folders = Counter(each.split(".")[1] for each in within if each.count(".") > 1)
    loose = len(within) - sum(folders.values()) - len(folders) - 1  # less each __init__
    words = [f"{folder} {count}" for folder, count in sorted(folders.items())]
    if loose:
        words.append(
            f"{loose} more" if folders else f"{loose} modules" if loose > 1 else "1 module"
        )
    rows = [", ".join(words[n : n + 3]) for n in range(0, len(words), 3)]
    return [f"{name}/", *rows]


def boxes(layers: tuple[tuple[str, ...], ...], root: Path) -> tuple[dict[str, list[float]], float]:
    """Places (left, top, width, height) of the boxes, a row a layer, the ground at the bottom."""
    placed: dict[str, list[float]] = {}
    y = MARGIN
    present = {top(name) for name in modules(root)}
    for layer in reversed(layers):
        row = [name for name in layer if name in present]
        if not row:
            continue
        texts = {name: lines_of(name, root) for name in row}
        sizes = {name: max(map(len, text)) * CHARACTER + 20 for name, text in texts.items()}
        height = max(len(text) for text in texts.values()) * LINE + 14
        spare = (WIDTH - 2 * MARGIN - GAP * (len(row) - 1) - sum(sizes.values())) / len(row)
        x = MARGIN
        for name in row:
            placed[name] = [x, y, sizes[name] + spare, height]
            x += sizes[name] + spare + GAP
        y += height + GAP
    return placed, y


def draw(root: Path) -> str:
    """The SVG's text."""
    layers = stated_layers()
    placed, bottom = boxes(layers, root)
    against = Counter((top(a), top(b)) for a, b in upward(layers, root))
    rings = circles(root)
    long = sum(
        len(p.read_text(encoding="utf-8").splitlines()) > 500 for p in modules(root).values()
    )
    facts = (
        f"{len(modules(root))} modules; imports that lead upwards or sideways: {against.total()} "
        f"(red); import cycles: {len(rings)}"
        + (f", the largest of {max(map(len, rings))} modules" if rings else "")
        + f"; files of more than 500 lines: {long}"
    )
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {bottom + 26:g}" '
        f'font-family="sans-serif" font-size="11" role="img"><title>{escape(facts)}</title>',
        '<rect width="100%" height="100%" fill="#fff"/>',
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{BAD}"/></marker></defs>',
    ]
    for x, y, width, height in placed.values():
        out.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" '
            f'fill="{PLAIN}" stroke="{CURVES[0]}"/>'
        )
    for (importer, imported), count in sorted(against.items()):
        out.append(_arrow(placed[importer], placed[imported], count))
    for name, (x, y, width, _) in placed.items():
        for n, text in enumerate(lines_of(name, root)):
            style = f'font-weight="bold" font-size="{LABEL - 1:g}"' if n == 0 else ""
            fill = INK if n == 0 else SOFT
            out.append(
                f'<text x="{x + width / 2:.1f}" y="{y + 18 + n * LINE:.1f}" {style} '
                f'text-anchor="middle" fill="{fill}" stroke="{PLAIN}" stroke-width="3" '
                f'paint-order="stroke">{escape(text)}</text>'
            )
    out.append(f'<text x="{MARGIN:g}" y="{bottom + 12:g}" fill="{INK}">{facts}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _arrow(start: list[float], end: list[float], count: int) -> str:
    """Straight up from the importer's top, or sideways, to the box of what it imports."""
    (x, y, width, height), (u, w, wide, high) = start, end
    if y == w:
        a, b = (x + width, y + height / 2) if x < u else (x, y + height / 2)
        c, d = (u, b) if x < u else (u + wide, b)
    else:
        a = c = min(max(x + 0.7 * width, u + 20), u + wide - 20)
        b, d = y, w + high
    label = f"{count} import" + ("s" if count > 1 else "")
    return (
        f'<path d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" stroke="{BAD}" stroke-width="2" '
        f'fill="none" marker-end="url(#tip)"/><text x="{a + 6:.1f}" y="{b - 1:.1f}" '
        f'fill="{BAD}" stroke="#fff" stroke-width="3" '
        f'paint-order="stroke">{label}</text>'
    )


if __name__ == "__main__":
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY / "docs/images/layout.svg"
    checkout = Path(sys.argv[2]) if len(sys.argv) > 2 else REPOSITORY
    output.write_text(draw(checkout / "robomodel"), encoding="utf-8")
