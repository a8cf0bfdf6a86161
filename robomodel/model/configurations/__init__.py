"""Configurations of a whole model: closed, moved, solved for, checked."""
