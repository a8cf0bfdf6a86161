"""Cases of a parametrised test: a few for the quick run, others for the slow one, or for tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], *quick: Any, tables: Iterable[Any] = ()) -> list[Any]:
    """All cases: those that are not named are slow, those of ``tables`` are of the tables only."""
    every, rest = list(cases), list(tables)
    assert all(case in every for case in (*quick, *rest)), (quick, rest)

    def marked(case: Any) -> Any:
        mark = pytest.mark.tables if case in rest else pytest.mark.slow
        return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=mark)

    return [case if case in quick else marked(case) for case in every]
