"""Settings for every test: hypothesis without deadlines, and the same examples every time on CI.

Kernels are cached in a directory of this run's own. BLAS takes one thread in each process of the
run: on small matrices several wait for each other, and take cores from the run's other processes.
"""

import atexit
import json
import os
import shutil
import tempfile

import pytest
from cli_robot import MIXED
from hypothesis import settings

settings.register_profile("robomodel", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("robomodel")

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

if "ROBOMODEL_CACHE" not in os.environ:
    os.environ["ROBOMODEL_CACHE"] = tempfile.mkdtemp(prefix="robomodel-tests-")
    atexit.register(shutil.rmtree, os.environ["ROBOMODEL_CACHE"], ignore_errors=True)


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
