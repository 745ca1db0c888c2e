"""The generated parts of docs/suggest.md and of the README's section on it: what `memsim suggest` prints."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMAND = "memsim suggest transpose_naive"
CUT = "   ...\n"


def capture() -> str:
    """All that it prints."""
    return f"```text\n$ {COMMAND}\n{_printed()}```\n"


def short_capture() -> str:
    """The answer and the code: what is between the counts and the code is cut out."""
    paragraphs = _printed().split("\n\n")
    first = next(number for number, text in enumerate(paragraphs) if text.startswith("1. "))
    code = next(number for number, text in enumerate(paragraphs) if " - " in text.splitlines()[0])
    kept = "\n\n".join([*paragraphs[: first + 1], CUT.rstrip("\n"), *paragraphs[code:]])
    return f"```text\n$ {COMMAND}\n{kept}```\n"


def _printed() -> str:
    done = subprocess.run(
        [sys.executable, "-m", *COMMAND.split()], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout


PARTS: dict[str, Callable[[], str]] = {
    "suggest transpose_naive": capture,
    "suggest transpose_naive, cut": short_capture,
}
