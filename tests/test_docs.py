"""What the README and the documentation show is run."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
from cases import few
from documentation_pages import PAGES, ROOT, URDF_PAGES, robot_files

import robomodel as rm
from robomodel.cli import main

EXAMPLES = robot_files(*URDF_PAGES, "sdf.md")
SNIPPETS = {
    str(page.relative_to(ROOT)): found
    for page in PAGES
    if (found := re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
}


def test_the_readme_has_a_snippet() -> None:
    assert "README.md" in SNIPPETS
    assert "docs/tutorial.md" in SNIPPETS


def test_files_that_pages_link_to_are_on_the_site() -> None:
    """Data beside them, as tables' numbers; mkdocs names missing files, not those it leaves out."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.search(r"^exclude_docs: \|\n((?:  .*\n)+)", settings, re.MULTILINE)
    assert listed is not None
    rules = listed[1].split()
    docs = ROOT / "docs"
    for page in PAGES[1:]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?![a-z]+:)([^)#\s]+\.(?:py|mjs|json))[)#]", text):
            name = (page.parent / target).resolve().relative_to(docs).as_posix()
            assert (docs / name).exists(), (page, target)
            assert f"!{name}" in rules, (page, target)


@pytest.mark.filterwarnings(
    "ignore:.* will not do:RuntimeWarning", r"ignore:\s*casadi:FutureWarning"
)
@pytest.mark.slow_cases("docs/tutorial.md")
@pytest.mark.parametrize("page", few(SNIPPETS, "README.md", "docs/tutorial.md"))
def test_snippets_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page's snippets, one after the other, in an empty directory.

    What the text below a snippet that prints quotes of it, numbers with a decimal point or in °, is
    what it printed, as precisely as it is quoted, or stands in the code.
    """
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    text = (ROOT / page).read_text(encoding="utf-8")
    code = "\n".join(SNIPPETS[page])
    for snippet in SNIPPETS[page]:
        exec(compile(snippet, page, "exec"), names)
        if printed := capsys.readouterr().out:
            _, _, below = text.partition(f"```python\n{snippet}```")
            prose = re.split(r"^(?:```|#)", below, maxsplit=1, flags=re.MULTILINE)[0]
            assert stale(prose, printed, code) == []


def stale(prose: str, printed: str, code: str) -> list[str]:
    """Numbers of the prose that were not printed, in its unit, in thousandths or in percent."""
    numbers = [abs(float(x)) for x in re.findall(r"\d+\.?\d*(?:e[+-]?\d+)?", printed)]
    shown = [scale * x for x in numbers for scale in (1.0, 1e2, 1e3)]
    prose = re.sub(r"`[^`]*`|\]\([^)]*\)|^\|.*$", "", prose, flags=re.MULTILINE)
    found = []
    for quoted in re.findall(r"(?<![\w.])(?:\d+(?=\s*°)|\d+\.\d+(?:e-?\d+)?)", prose):
        half = 0.5001 * 10.0 ** -len(quoted.partition("e")[0].partition(".")[2])
        near = any(abs(x - float(quoted)) <= half for x in shown)
        if not near and quoted not in code:
            found.append(quoted)
    return found


def test_stale_numbers_are_told() -> None:
    printed = "crank-rocker 33.06\n14.81 17.95\n"
    assert stale("The angle falls to 31°, the torque to 14.4 N m.", printed, "") == ["31", "14.4"]
    assert stale("The angle falls to 33°, the torque to 14.8 N m, of `2.7`.", printed, "") == []
    assert stale("of 2.5 N m", printed, "limit = 2.5") == []


PAPERS = sorted((ROOT / "docs/papers").glob("*.md"))


def resolved(name: str) -> object:
    """What a dotted name means: a module, or an attribute of one, or of that."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("page", PAPERS, ids=lambda page: page.stem)
def test_names_on_the_papers_pages_can_be_imported(page: Path) -> None:
    """Every row from an equation to a function names functions that are there."""
    text = page.read_text(encoding="utf-8")
    names = re.findall(r"`(robomodel(?:\.\w+)+)`", text)
    assert len(names) >= 12
    for name in names:
        assert resolved(name) is not None, name
    module = resolved(names[0])
    assert names[0].startswith("robomodel.papers.")
    for public in vars(module)["__all__"]:
        assert getattr(module, public).__doc__, public
    assert re.search(r"\(\d+\)–\(\d+\)", text)


NUMBERED = {  # what the papers number; 000 has no (34) and (35)
    "natural-coordinates": {"equation": [*range(1, 34), *range(36, 48)], "figure": range(1, 9),
                            "table": range(1, 3)},
    "elimination-orders": {"equation": range(1, 8), "figure": range(1, 13), "table": range(1, 4),
                           "algorithm": [1]},
    "clusters": {"equation": range(1, 68), "figure": range(1, 15), "table": range(1, 5),
                 "algorithm": [1]},
    "equations": {"equation": range(1, 36), "figure": [1, 2], "property": range(1, 4),
                  "problem": [1, 2]},
    "spatial-operators": {"equation": range(1, 64), "figure": range(1, 8), "lemma": range(1, 13),
                          "corollary": [3.1, 6.1], "algorithm": [3.1, 4.1, 4.2, 4.3, 6.1]},
}  # fmt: skip
ROMAN = {"I": 1.0, "II": 2.0, "III": 3.0, "IV": 4.0}


def items(cell: str) -> list[tuple[str, float]]:
    """Equations, figures and the like that a row names: "(12)–(15)", "figures 9 to 13"."""
    found = [
        ("equation", float(n))
        for first, last in re.findall(r"\((\d+)\)(?:–\((\d+)\))?", cell)
        for n in range(int(first), int(last or first) + 1)
    ]
    number = r"(?:\d+(?:\.\d)?|[IV]+)\b(?!-)"
    kinds = "figure|table|lemma|algorithm|corollary|property|problem"
    several = rf"{number}(?:(?: to | and |, ){number})*"
    for kind, text in re.findall(rf"\b({kinds})s? ({several})", cell):
        for part in re.split(", | and ", text):
            ends = [ROMAN.get(x) or float(x) for x in part.split(" to ")]
            count = round(ends[-1] - ends[0])
            found += [(kind, ends[0] + n) for n in range(count + 1)]
    return found


def test_papers_pages_have_each_item_once() -> None:
    """Each numbered equation, figure, lemma …, with a state; and how many there are of each."""
    lines, totals = [], Counter[str]()
    for page in PAPERS:
        text = page.read_text(encoding="utf-8").partition("## Equations and functions")[2]
        text = text.partition("\n## ")[0]
        rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:1] == "|"]
        named, states = [], Counter[str]()
        for cell, function, check, state in rows[2:]:
            assert state in ("right", "differs", "not done"), cell
            assert state == "not done" or re.search(r"`test_\w+(\.py)?`", check), cell
            assert function, cell
            files = re.findall(r"`(test_\w+\.py)`", check)
            assert [name for name in files if not list((ROOT / "tests").rglob(name))] == []
            of_row = items(cell)
            named += of_row
            states[state] += max(1, len(of_row))
        wanted = [(kind, float(n)) for kind, ns in NUMBERED[page.stem].items() for n in ns]
        assert sorted(named) == sorted(wanted), Counter(named) - Counter(wanted)
        totals += states
        counts = " | ".join(str(states[x]) for x in ("right", "differs", "not done"))
        lines.append(f"papers/{page.name}) | {states.total()} | {counts} |")
    text = (ROOT / "docs/documents.md").read_text(encoding="utf-8")
    assert [line for line in lines if line not in text] == []
    counts = " | ".join(str(totals[x]) for x in ("right", "differs", "not done"))
    assert f"| all | {totals.total()} | {counts} |" in text


def test_tests_that_the_papers_pages_name_are_there() -> None:
    pages = [ROOT / "docs/documents.md", *PAPERS]
    page = "".join(each.read_text(encoding="utf-8") for each in pages)
    texts = "".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py")
    )
    named = re.findall(r"`(test_\w+)`", page)
    assert len(named) >= 20
    assert [name for name in named if f"def {name}(" not in texts] == []
    files = re.findall(r"`(test_\w+\.py)`", page)
    assert [file for file in files if not list((ROOT / "tests").rglob(file))] == []


def test_files_that_the_testing_page_names_are_there() -> None:
    page = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)`", page)
    assert len(named) >= 40
    assert [file for file in named if not (ROOT / file).exists()] == []


def test_the_reference_has_every_public_name() -> None:
    pages = (ROOT / "docs/api").glob("*.md")
    page = "\n".join(each.read_text(encoding="utf-8") for each in pages)
    shown = {name.rsplit(".", 1)[-1] for name in re.findall(r"^::: robomodel\.(\S+)$", page, re.M)}
    assert sorted(set(rm.__all__) - shown) == []


def test_tables_have_headings() -> None:
    """One cell may be empty: the one above the rows' names."""
    for page in PAGES:
        lines = page.read_text(encoding="utf-8").splitlines()
        for heading, rule in pairwise(lines):
            if re.fullmatch(r"\|[\s:|-]*-[\s:|-]*\|", rule):
                empty = [cell for cell in heading.split("|")[1:-1] if not cell.strip()]
                assert len(empty) <= 1, f"{page}: {heading}"


def test_the_home_page_says_how_to_install() -> None:
    assert "pip install ." in (ROOT / "docs/index.md").read_text(encoding="utf-8")


def test_pages_hint_at_commands_that_work_in_a_checkout() -> None:
    """The package is on no index: extras are those of a checkout, pip install '.[views]'."""
    for page in PAGES:
        assert "install 'robomodel[" not in page.read_text(encoding="utf-8"), page


def test_every_page_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2].split()
    pages = {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.name != "README.md"}
    assert sorted(pages - set(listed)) == []


COMMANDS = sorted(
    {
        line
        for page in PAGES
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for line in block.splitlines()
        if re.match(
            r"robomodel (?!view|joint-states|mcp)[a-z0-9 ._=-]+$", line
        )  # of shipped robots
    }
)


def _slower(command: str) -> object:
    """Searches, reports and drawings over a range take half a second or more each."""
    slow = re.match(
        r"robomodel (excite|code|graph belt_leg|graph \S+ --over|calibrate|validate crank_rocker"
        r"|actuation (four_bar crank_rocker|planar_leg_linkage))",
        command,
    )
    return pytest.param(command, marks=pytest.mark.slow) if slow else command


@pytest.mark.parametrize("command", list(map(_slower, COMMANDS)))
def test_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as done:
        main(shlex.split(command)[1:])
    assert done.value.code in (0, 1)  # 1 for findings


@pytest.mark.slow_cases("8")
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
@pytest.mark.filterwarnings("ignore:.*moves no mass:robomodel.DescriptionWarning")
def test_the_format_examples_load(number: int) -> None:
    model = rm.load(EXAMPLES[number])
    for seed in range(3):
        q = model.random_configuration(seed)
        assert abs(model.residual(q)).max(initial=0.0) < 1e-10


URDF_READERS = ("joints", "links", "robot", "dialects")
SHARED_READERS = ("frames", "motors", "springs", "rotors")
SDF_READERS = ("joints", "links", "robot", "document")
READERS = {
    "urdf": [f"parsers.urdf.{name}" for name in URDF_READERS]
    + [f"vocabulary.{name}" for name in SHARED_READERS],
    "sdf": [f"parsers.sdf.{name}" for name in SDF_READERS],
}


@pytest.mark.parametrize(("form", "pages"), [("urdf", URDF_PAGES), ("sdf", ("sdf.md",))])
def test_pages_have_every_element_that_is_read(form: str, pages: tuple[str, ...]) -> None:
    """The readers' sets of known words, but for those of what is passed over."""
    found = [page for pattern in pages for page in (ROOT / "docs").glob(pattern)]
    said = set(re.findall(r"\w+", "".join(page.read_text(encoding="utf-8") for page in found)))
    known: set[str] = set()
    for reader in READERS[form]:
        for name, words in vars(import_module(f"robomodel.{reader}")).items():
            if isinstance(words, frozenset) and not re.search("IRRELEVANT|SETTINGS", name):
                known |= words
    assert len(known) > 30
    assert sorted(known - said) == []


def test_there_are_examples_of_every_loop_type() -> None:
    shown = set(re.findall(r'<loop [^>]*type="(\w+)"', "\n".join(EXAMPLES)))
    assert shown >= {
        "revolute", "continuous", "prismatic", "planar", "fixed", "spherical", "universal", "rod"
    } - {"continuous"}  # fmt: skip
