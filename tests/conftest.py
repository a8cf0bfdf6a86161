"""Settings for every test: hypothesis without deadlines, and the same examples every time on CI.

Kernels are cached in a directory of this run's own.
"""

import atexit
import os
import shutil
import tempfile

from hypothesis import settings

settings.register_profile("robomodel", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("robomodel")

if "ROBOMODEL_CACHE" not in os.environ:
    os.environ["ROBOMODEL_CACHE"] = tempfile.mkdtemp(prefix="robomodel-tests-")
    atexit.register(shutil.rmtree, os.environ["ROBOMODEL_CACHE"], ignore_errors=True)
