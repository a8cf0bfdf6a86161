"""Elimination orders (001, 003): ``python -m benchmarks.orders``."""
