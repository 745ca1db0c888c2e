"""The text of the program that `memsim probe --export` writes: `standalone.py` with its data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memsim.validate import standalone
from memsim.version import __version__

#: The line of the program that has its data.
EMPTY = "DATA: dict[str, Any] = {}"
#: Programs and address patterns, as `python -m lab.clock.clock_programs` writes them.
PROGRAMS = Path(standalone.__file__).with_suffix(".json")


def program_data() -> dict[str, Any]:
    """What the program runs, as `standalone.measure` takes it."""
    return {"memsim": __version__, **json.loads(PROGRAMS.read_text("utf-8"))}


def program_text() -> str:
    """The text of the program of one file."""
    head, tail = Path(standalone.__file__).read_text("utf-8").split(EMPTY, 1)
    text = json.dumps(program_data(), indent=0)
    return f"{head}{EMPTY.removesuffix('{}')}json.loads(r'''\n{text}\n'''){tail}"
