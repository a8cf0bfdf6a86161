"""What differs between two files of one robot."""
