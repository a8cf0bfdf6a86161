"""Configurations of a whole model: closed, moved, solved for, drawn at random, checked, swept."""
