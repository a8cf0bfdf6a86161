"""Comparison of two files of one robot."""
