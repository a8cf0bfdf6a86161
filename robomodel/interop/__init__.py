"""Bridges to other languages and libraries: C, JavaScript, CasADi, JAX, PyTorch, Crocoddyl."""

from robomodel.interop import orders

__all__ = ["orders"]
