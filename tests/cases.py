"""Cases of a parametrised test: a few for the quick run, the others for the slow one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], *quick: Any) -> list[Any]:
    """All cases, those that are not named marked as slow."""
    every = list(cases)
    assert all(case in every for case in quick), quick
    return [
        case
        if case in quick
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for case in every
    ]
