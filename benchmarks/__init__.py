"""What was measured, measured again: run with ``python -m`` from the checkout."""

import os

for library in ("OPENBLAS", "MKL", "OMP"):  # linear algebra on one core, as all else that is timed
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")  # read when NumPy is imported, later
