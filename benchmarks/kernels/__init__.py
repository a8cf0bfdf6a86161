"""Kernels beside Pinocchio: ``python -m benchmarks.kernels``."""
