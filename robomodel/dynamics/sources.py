"""A digest of the source that programs come from: another one makes other kernels."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

PROGRAMS = ("spatial", "model", "dynamics", "trajectory")  # packages that programs come from


@functools.cache
def sources() -> str:
    """A digest of the modules that programs come from."""
    package = Path(__file__).parents[1]
    within = [file for name in PROGRAMS for file in (package / name).rglob("*.py")]
    result = hashlib.sha256()
    for file in sorted([*package.glob("*.py"), *within]):
        result.update(file.read_bytes())
    return result.hexdigest()
