"""Where bodies and frames are and how they move, and what sensors on them measure."""
