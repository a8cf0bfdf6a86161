"""Compiled dynamics against Pinocchio: ``python -m benchmarks.kernels`` (see ``measuring.py``)."""

from __future__ import annotations

from benchmarks.kernels.measuring import main  # fresh processes cannot import from this file

if __name__ == "__main__":
    main()
