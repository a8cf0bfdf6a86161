"""What motors can do through gears and linkages."""
