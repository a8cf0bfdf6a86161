"""Bridges to other languages and libraries: C, JavaScript, CasADi, JAX, PyTorch, Crocoddyl."""
