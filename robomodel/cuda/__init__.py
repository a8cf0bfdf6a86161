"""Kernels for NVIDIA GPUs: PTX of traced programs, their launch, and rollouts.

This code has not run on a GPU: PTX is checked by an interpreter and by ``ptxas``, launches with a
simulated driver. No module of the package imports this one; ``rm.compile(…, target="cuda")`` and
``rm.cuda.rollout_kernel`` load it by name.
"""

from robomodel.cuda.rollout import rollout_kernel

__all__ = ["rollout_kernel"]
