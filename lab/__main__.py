"""`python -m lab`."""

import sys

from lab.command import main

sys.exit(main())
