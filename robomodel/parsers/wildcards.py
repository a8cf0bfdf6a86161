"""Names with wildcards, each ``*`` for any text."""

from __future__ import annotations

from collections.abc import Iterable


def matching(pattern: str, names: Iterable[str]) -> dict[str, list[str]]:
    """The names that a pattern matches, each with what its wildcards stand for, in order.

    Where a wildcard could stand for more or less, it stands for less.
    """
    return {name: found for name in names if (found := _match(pattern, name)) is not None}


def _match(pattern: str, name: str) -> list[str] | None:
    first, *middle = pattern.split("*")
    if not middle:
        return [] if name == pattern else None
    if not name.startswith(first):
        return None
    last, position, stands = middle.pop(), len(first), []
    for piece in middle:
        if (at := name.find(piece, position)) < 0:
            return None
        stands.append(name[position:at])
        position = at + len(piece)
    end = len(name) - len(last)
    if end < position or not name.endswith(last):
        return None
    return [*stands, name[position:end]]


def filled(template: str, stands: Iterable[str]) -> str:
    """The template with its wildcards in turn replaced by what those of a match stand for."""
    first, *others = template.split("*")
    texts = iter(stands)
    return first + "".join(next(texts, "*") + piece for piece in others)
