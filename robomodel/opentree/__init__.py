"""Open trees that stand for robots with loops and couplings, in simulators without these.

``tree_joints``: which joints a tree has, and which follow; ``tree``: the tree itself, with limits,
springs and motors; ``fit``: the inertias of its bodies; ``mirror_images``: what is symmetric stays
so. Its methods are registered with :mod:`robomodel.dynamics.baselines`.
"""
