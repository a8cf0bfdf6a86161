"""Kernels for NVIDIA's cards: PTX of traced programs, their launch, and rollouts on a card.

This has not run on a card: PTX is checked by an interpreter and by ``ptxas``, launches by a driver
that is imitated. Nothing of the package imports this room; ``rm.compile(…, target="cuda")`` and
``rm.rollout_kernel`` load it by name.
"""
