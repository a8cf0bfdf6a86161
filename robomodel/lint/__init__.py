"""Checks of all robot files of a repository, and of simulators' configurations of a robot."""
