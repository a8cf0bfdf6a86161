"""Batches of motions, integrated in one kernel."""
