"""The same dynamics by other ways: projection, multipliers, open trees, all joints."""
