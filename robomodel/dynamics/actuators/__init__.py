"""What motors do through gears and linkages."""
