"""Contacts at an instant: points that touch, and the problem of their forces."""
