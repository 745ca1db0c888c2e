"""`python -m studies.bench`."""

import sys

from studies.bench.command import main

sys.exit(main())
