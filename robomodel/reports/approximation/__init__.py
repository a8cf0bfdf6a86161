"""Approximation errors of an open tree with armature, and files that have it."""
