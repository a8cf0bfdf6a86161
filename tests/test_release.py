"""What is released says one version everywhere."""

import re
import tomllib
from pathlib import Path

import robomodel as rm

ROOT = Path(__file__).parents[1]
MEASURED = (
    "benchmarks",
    "multibody",
    "orders",
    "paper",
    "trajectory-experiments",
    "trajectory-planning",
)
OLDER = {  # to be measured anew
    "multibody", "trajectory-experiments", "trajectory-planning",
}  # fmt: skip


def test_the_version_is_one():
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'version: "{rm.__version__}"' in recipe
    assert re.findall(r"^## (\d\S*)", changes, re.M)[0] == rm.__version__
    assert f"version: {rm.__version__}\n" in cited


def test_the_changelog_is_for_users():
    """What is not released stands first; a release is sorted, and short enough to be read."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    parts = re.split(r"^## ", text, flags=re.M)[1:]
    titles = [part.partition("\n")[0] for part in parts]
    assert titles[0] == "Unreleased"
    assert not any("unreleased" in title.lower() for title in titles[1:])
    kinds = ["Added", "Changed", "Fixed", "Removed"]
    for part in parts:
        title = part.partition("\n")[0]
        said = re.findall(r"^#+ (.*)", part, re.M)
        assert said == [kind for kind in kinds if kind in said], title
        lines = [line for line in part.splitlines()[1:] if line]
        assert title == "Unreleased" or len(lines) <= 40, title
        assert lines[0].startswith("### ") or not said, title


def test_the_recipe_needs_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    needed = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    listed = {line.strip("- ").replace(" ", "") for line in needed.splitlines()}
    assert listed == {*project["dependencies"], f"python{project['requires-python']}"}


def test_measured_pages_are_of_this_version():
    """Each says with which version its tables and figures were measured."""
    older = set()
    for page in MEASURED:
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        versions = set(re.findall(r"robomodel (\d+\.\d+\.\d+)", text))
        assert len(versions) == 1, page
        if versions != {rm.__version__}:
            older.add(page)
    assert older == OLDER
