"""What an open tree with armature costs, and files that have it."""
