"""Long programs' assembly as several modules, so that processes can compile them side by side."""

from __future__ import annotations

import re

LENGTH = 800_000  # characters of a module: a fifth of a second's work
_NAME = re.compile(r"@([\w.]+)")


def cut(text: str) -> list[str]:
    """The module with the program's pieces in modules of their own, if it is long.

    What is called across is hidden from others than these modules. The first is the one that calls.
    """
    others, blocks = _blocks(text)
    groups: list[list[str]] = [[]]
    for name in blocks:
        if name.startswith("piece"):
            if sum(len(blocks[each]) for each in groups[-1]) > LENGTH:
                groups.append([])
            groups[-1].append(name)
    if len(groups) < 2:
        return [text]
    first = [name for name in blocks if not name.startswith("piece")]
    called = set(_NAME.findall("".join(blocks[name] for group in groups for name in group)))
    across = called.union(*groups)
    for name in across & blocks.keys():
        blocks[name] = blocks[name].replace("define internal ", "define hidden ", 1)

    def module(names: list[str], head: str) -> str:
        used = set(_NAME.findall("".join(blocks[name] for name in names))) - {*names}
        elsewhere = (_declared(block) for name, block in blocks.items() if name in used)
        return "\n".join([head, *elsewhere, *(blocks[name] for name in names)])

    declarations = (line for line in others.splitlines() if line.startswith("declare "))
    intrinsics = "\n".join(declarations)
    return [module(first, others), *(module(group, intrinsics) for group in groups)]


def _blocks(text: str) -> tuple[str, dict[str, str]]:
    """Functions by name, and all that stands between them."""
    others, blocks = [], {}
    *parts, rest = text.split("\n}\n")
    for part in parts:
        at = part.rindex("\ndefine ") + 1 if not part.startswith("define ") else 0
        others.append(part[:at])
        found = _NAME.search(part, at)
        assert found is not None
        blocks[found[1]] = part[at:] + "\n}\n"
    return "".join([*others, rest]), blocks


def _declared(block: str) -> str:
    """A function's head, for modules that call it."""
    head = block[: block.index("\n")]
    return head.replace("define ", "declare ", 1).rstrip(" {")
