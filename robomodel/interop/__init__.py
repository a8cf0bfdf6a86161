"""Other libraries: a robot's functions as programs, and in CasADi, JAX and PyTorch."""
