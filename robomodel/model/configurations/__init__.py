"""Configurations of a whole model: closed, moved, solved for, checked.

``closing``: what a step keeps while loops close; ``functions``: traced functions of positions;
``moving``: integrating and solving; ``states``, ``singular``: checks. They register the model's
methods.
"""
