"""Names with wildcards, each ``*`` for any text."""

from __future__ import annotations

import re
from collections.abc import Iterable


def matching(pattern: str, names: Iterable[str]) -> dict[str, list[str]]:
    """The names that a pattern matches, each with what its wildcards stand for, in order.

    Where a wildcard could stand for more or less, it stands for less.
    """
    first, *others = map(re.escape, pattern.split("*"))
    # atomic groups: what a wildcard stands for is never tried again, as a later fit would not help
    middle = "".join(f"(?>(.*?){piece})" for piece in others[:-1])
    last = "".join(f"(.*){piece}" for piece in others[-1:])
    found = ((name, re.fullmatch(first + middle + last, name, re.DOTALL)) for name in names)
    return {name: list(match.groups()) for name, match in found if match}


def filled(template: str, stands: Iterable[str]) -> str:
    """The template with its wildcards in turn replaced by what those of a match stand for."""
    first, *others = template.split("*")
    texts = iter(stands)
    return first + "".join(next(texts, "*") + piece for piece in others)
