"""Robots' functions in JAX; see :mod:`robomodel.interop.jax`."""

from robomodel.interop.jax import function

__all__ = ["function"]
