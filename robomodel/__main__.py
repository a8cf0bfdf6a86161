"""``python -m robomodel``: the command line."""

from robomodel.cli import main

if __name__ == "__main__":
    main()
