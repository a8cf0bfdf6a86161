"""Configurations of simulators, read as text, against the robot that they configure."""
