"""Completes joint states in ROS 2."""
