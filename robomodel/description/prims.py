"""Meshes within USD files: how they are named, and who reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from robomodel.errors import Source

if TYPE_CHECKING:
    import trimesh

BETWEEN = "#"
"""Separates a file and the path of a prim in it, in names of meshes."""

Reader: TypeAlias = "Callable[[str, str, Source], trimesh.Trimesh]"
READERS: list[Reader] = []
"""The reader of a prim's mesh, from file, prim and element; the USD parser registers its own."""
