"""What is told of results: plain dicts, lists and numbers, as JSON has them; counts in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any


def plain(value: Any) -> Any:
    """Arrays, dataclasses and tuples as JSON has them; what is not finite becomes None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return plain(value.tolist()) if hasattr(value, "tolist") else value


def count(number: int, one: str, many: str = "") -> str:
    """A number of things."""
    return f"{number} {one if number == 1 else many or one + 's'}"
