"""Factor graphs over time: estimation, inverse and forward dynamics, and planning of motions."""
