"""The functions that users call, on NumPy arrays with batch axes, by subject."""
