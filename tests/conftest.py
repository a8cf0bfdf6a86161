"""Settings for every test: hypothesis without deadlines, and the same examples every time on CI.

Kernels are cached in a directory of this run's own. BLAS takes one thread in each process of the
run: on small matrices several wait for each other, and take cores from the run's other processes.
"""

import atexit
import os
import shutil
import tempfile

from hypothesis import settings

settings.register_profile("robomodel", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("robomodel")

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

if "ROBOMODEL_CACHE" not in os.environ:
    os.environ["ROBOMODEL_CACHE"] = tempfile.mkdtemp(prefix="robomodel-tests-")
    atexit.register(shutil.rmtree, os.environ["ROBOMODEL_CACHE"], ignore_errors=True)
