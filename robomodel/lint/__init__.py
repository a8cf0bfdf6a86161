"""Checks in a repository: robot files of folders, findings as tools read them, configurations."""
