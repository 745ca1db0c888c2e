"""A program that limits itself and becomes another one: `limited_program.py BYTES PROGRAM ARGUMENTS...`.

It imports nothing of memsim, so that it starts at once.
"""

import os
import resource
import sys

LARGEST_FILE = 1 << 30


def main() -> None:
    """Limits memory and files, and keeps no memory of a crash."""
    size, program, *arguments = sys.argv[1:]
    limits = {resource.RLIMIT_AS: int(size), resource.RLIMIT_FSIZE: LARGEST_FILE, resource.RLIMIT_CORE: 0}
    for limit, most in limits.items():
        try:
            hard = resource.getrlimit(limit)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(limit, (most, most))
        except (ValueError, OSError):  # macOS has no limit of memory
            pass
    os.execvp(program, [program, *arguments])


if __name__ == "__main__":
    main()
