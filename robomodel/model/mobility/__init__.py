"""The analysis of constrained clusters: mobility, redundancy, independent coordinates, messages."""
