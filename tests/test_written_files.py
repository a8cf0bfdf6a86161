"""What is written of the robot files in public packages: Drake reads the SDF of all of them.

The packages are those that ``benchmarks/formats.py`` names, as far as they are installed
(``pip install example-robot-data dm_control pybullet``), and every shipped robot.
"""

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import robomodel as rm
from robomodel.model.approximate import approximate
from robomodel.model.build import build

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import formats

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::robomodel.DescriptionWarning"),
]
needs_drake = pytest.mark.skipif(find_spec("pydrake") is None, reason="Drake is not installed")


def files(package):
    """The package's robot files; of a thousand like each other one in a hundred."""
    paths = formats.of_package(formats.PACKAGES[package]) or []
    paths = [path for path in paths if "random_urdfs" not in path.parts or path.stem.endswith("00")]
    return [file for file in formats.robot_files(package, paths) if file.format in LOADED]


LOADED = {"URDF", "SDF", "MJCF"}
PACKAGES = [
    pytest.param(
        package,
        marks=pytest.mark.skipif(
            formats.of_package(names) is None, reason=f"{package} is not installed"
        ),
    )
    for package, names in formats.PACKAGES.items()
]


def models(package):
    """All of the package's robots that load, with their files."""
    found = []
    for file in files(package):
        try:
            found.append((file, rm.load(file.path)))
        except rm.DescriptionError:
            continue
    assert found
    return found


def of_bodies(model):
    """Whether all that moves has an inertia that some body has: Drake reads no other ones."""
    for link in model.description.links:
        if link.inertial is not None:
            xx, xy, xz, yy, yz, zz = link.inertial.inertia
            a, b, c = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            if a < 0.0 or c > (a + b) * (1 + 1e-12) or (c > 0.0 and not link.inertial.mass):
                return False
    return True


def check_in_drake(model, path, *, tree):
    from drake_side import DrakeSide, assert_same_mass_matrix, open_tree

    lost = rm.write_sdf(model, path, approximate=tree, drop=True)
    found = rm.load(path)
    said = found.description
    if said.loops or any("gearbox" in line for line in path.read_text().splitlines()):
        return  # of which Drake reads none
    side = DrakeSide(path)
    if of_bodies(found) and not any("joint '" in each for each in lost):
        expected = build(approximate(model)) if tree else open_tree(model)
        assert_same_mass_matrix(expected, side)


@needs_drake
@pytest.mark.parametrize("tree", [True, False], ids=["open tree", "exact"])
@pytest.mark.parametrize("package", PACKAGES)
def test_drake_reads_the_sdf_that_is_written(package, tree, tmp_path):
    """With the mass matrix that we compute."""
    failed = []
    for file, model in models(package):
        try:
            check_in_drake(model, tmp_path / "robot.sdf", tree=tree)
        except Exception as error:
            failed.append(f"{file.path}: {type(error).__name__}: {error}")
    assert not failed, "\n".join(failed)


@needs_drake
@pytest.mark.parametrize("name", rm.robots.names())
def test_drake_reads_the_open_trees_of_shipped_robots(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rm.robots.load(name)
    check_in_drake(model, tmp_path / "robot.sdf", tree=True)
