"""Machines, races and rivals that several benchmarks share."""
