"""Validation: checks of a robot's file, and the report on their findings."""
