"""Meshes within USD files: how they are named."""

BETWEEN = "#"
"""Separates a file and the path of a prim in it, in names of meshes."""
