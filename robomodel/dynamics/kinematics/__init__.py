"""Poses and motions of bodies and frames, momentum, and readings of sensors on frames."""
