"""What an elimination order is, apart from what is done with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Order:
    """An order in which forward dynamics eliminates ``a[link]``, ``f[link]`` and ``qdd[joint]``.

    ``split`` as in :func:`robomodel.dynamics.equations.equations`. ``bias_first``: velocities and
    gravity go through the bodies once at zero joint acceleration, before the elimination.
    """

    variables: tuple[str, ...]
    split: Literal["none", "joint", "steps"] = "none"
    bias_first: bool = False


OrderLike: TypeAlias = Order | str | Sequence[str]
