"""What is written of the robot files in public packages, read by Drake and by MuJoCo.

The packages are those that ``benchmarks/formats.py`` names, as far as they are installed
(``pip install example-robot-data dm_control pybullet``), and every shipped robot.
"""

import warnings
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from mujoco_oracle import MujocoSide, assert_smooth_dynamics

import robomodel as rm
from benchmarks import formats
from robomodel.description import ONE_DOF
from robomodel.model.build import build
from robomodel.opentree.tree import TreeOptions, written_tree

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


def moments(model):
    """The least and the largest principal moment, and the sum of the others, of each inertia."""
    for link in model.description.links:
        if link.inertial is not None:
            xx, xy, xz, yy, yz, zz = link.inertial.inertia
            a, b, c = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            yield a, c, a + b, link.inertial.mass


def of_bodies(model, least=0.0):
    """Whether all inertias are such as bodies have: Drake reads no other ones."""
    return all(
        (a >= least or c == 0.0) and c <= rest * (1 + 1e-12) and (mass > 0.0 or c == 0.0)
        for a, c, rest, mass in moments(model)
    )


def open_tree(model):
    """The model without loops and couplings."""
    said = model.description
    joints = tuple(replace(joint, mimic=None, independent=None) for joint in said.joints)
    return build(replace(said, loops=(), couplings=(), joints=joints))


def written(model):
    """The tree that ``approximate=True, followers=False`` writes where there are no tendons."""
    return written_tree(model, TreeOptions(followers=False, tendons=False))


def check_in_drake(model, path, *, tree):
    from drake_oracle import DrakeSide, assert_same_mass_matrix

    lost = rm.write_sdf(model, path, approximate=tree, followers=False, drop=True)
    found = rm.load(path)
    said = found.description
    if said.loops or any("gearbox" in line for line in path.read_text().splitlines()):
        return  # of which Drake reads none
    side = DrakeSide(path)
    if of_bodies(found) and not any("joint '" in each for each in lost):
        expected = written(model) if tree else open_tree(model)
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


def check_in_mujoco(model, path, *, tree):
    """Of exact files the spanning tree; robots that MuJoCo takes no body for load at least."""
    meshes = "copy" if tree else "drop"
    lost = rm.write_mjcf(model, path, approximate=tree, drop=True, meshes=meshes)
    side = MujocoSide.of(str(path))
    expected = rm.approximate_tree(model) if tree else open_tree(model)
    several = any(joint.type in ("planar", "screw", "floating") for joint in expected.joints)
    several |= tree and bool(written_tree(model).basis.followers)
    if not several or side.model.nv == expected.nv:
        assert side.model.nv == expected.nv
        if expected.nv and not any("link" in each and "mesh" not in each for each in lost):
            if tree:
                assert_smooth_dynamics(model, side, method="tendons", states=1)
            else:
                assert_smooth_dynamics(expected, side, states=1)
    if tree:
        joints = [joint for joint in expected.description.joints if joint.type in ONE_DOF]
        driven = any(0.0 < joint.limits.effort < np.inf for joint in joints)
        assert side.model.nu or not driven


@pytest.mark.parametrize("tree", [True, False], ids=["open tree", "exact"])
@pytest.mark.parametrize("package", PACKAGES)
def test_mujoco_loads_the_mjcf_that_is_written(package, tree, tmp_path):
    """With its meshes, copied or converted, and the dynamics that we compute."""
    failed = []
    for file, model in models(package):
        try:
            check_in_mujoco(model, tmp_path / "robot.xml", tree=tree)
        except Exception as error:
            failed.append(f"{file.path}: {type(error).__name__}: {error}")
    assert not failed, "\n".join(failed)


def check_open_urdf(model, path):
    """Drake has the mass matrix of the tree with its armature, MuJoCo that of the tree without."""
    from drake_oracle import DrakeSide, assert_same_mass_matrix

    rm.write_urdf(model, path, approximate=True, followers=False, drop=True, meshes="drop")
    expected = written(model)
    found = rm.load(path)
    if not expected.nv:
        return
    kinds = {joint.type for joint in expected.joints}
    if kinds & {"spherical", "screw"} or not of_bodies(found, least=1e-14):
        return  # Drake has no such <joint>, and other inertias
    idle = {joint.name for joint in found.description.joints if not joint.limits.effort}
    said = expected.description
    left = tuple(replace(j, armature=0.0 if j.name in idle else j.armature) for j in said.joints)
    traces = any(0.0 < a < 1e-11 for a, *_ in moments(found))
    tolerance = 1e-8 if traces else 1e-12  # of a fly: MuJoCo turns moments to 1e-12
    side = DrakeSide(path)
    assert_same_mass_matrix(build(replace(said, joints=left)), side, tolerance=tolerance)
    if "planar" not in kinds:
        bare = build(replace(said, joints=tuple(replace(j, armature=0.0) for j in said.joints)))
        lent = 10 * abs(found.mass - expected.mass) / max(expected.mass, 1e-12)  # to massless links
        side = MujocoSide.of(str(path))
        assert_smooth_dynamics(bare, side, states=1, tolerance=1e-10 + lent)


@needs_drake
@pytest.mark.parametrize("package", PACKAGES)
def test_drake_and_mujoco_read_the_open_trees_that_are_written_as_urdf(package, tmp_path):
    failed = []
    for file, model in models(package):
        try:
            check_open_urdf(model, tmp_path / "robot.urdf")
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
    check_open_urdf(model, tmp_path / "robot.urdf")
