"""`python -m memsim`: the same as the command `memsim`."""

from __future__ import annotations

import sys

from memsim.cli import main

if __name__ == "__main__":
    sys.exit(main())
