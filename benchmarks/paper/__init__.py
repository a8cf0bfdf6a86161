"""The experiments of the cluster paper (002): ``python -m benchmarks.paper``."""
