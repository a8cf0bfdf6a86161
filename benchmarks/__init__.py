"""What was measured, measured again: run with ``python -m`` from the checkout."""
