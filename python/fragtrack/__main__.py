"""``python -m fragtrack`` is the command ``fragtrack``."""

import sys

from fragtrack.cli import main

if __name__ == "__main__":
    sys.exit(main())
