"""Validation: what is wrong or odd in a robot."""
