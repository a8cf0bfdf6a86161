"""Reports on a model: faults, abilities of motors, errors of approximation, comparison."""
