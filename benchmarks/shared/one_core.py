"""Linear algebra on one core, as everything else that is timed; to be imported before NumPy."""

import os

for library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
