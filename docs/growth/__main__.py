"""`python -m docs.growth` measures everything; with a series, a quantity and a folder, one point."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.growth.measure import measure, one

if __name__ == "__main__":
    if len(sys.argv) == 4:
        one(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    else:
        measure()
