"""What a command of memsim prints, as the documents show it: in 100 columns."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from memsim.views.plain import CONSTANT_WIDTH, wrap_line

ROOT = Path(__file__).resolve().parents[1]
CUT = "..."


def printed(command: str, folder: Path = ROOT, code: int = 0, columns: int = CONSTANT_WIDTH) -> str:
    """Output and errors of `memsim ...`, or `python -m ...`, in `folder`; tables take so many
    columns.

    Raises:
        RuntimeError: another exit code than `code`.
    """
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    if columns != CONSTANT_WIDTH:
        environment["COLUMNS"] = str(columns)
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command.removeprefix("python -m "))],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != code:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def fenced(command: str, text: str) -> str:
    """The command and what it printed, as a block of Markdown."""
    return f"```text\n$ {command}\n{folded(text)}```\n"


def capture(command: str, folder: Path = ROOT, code: int = 0) -> str:
    """The command and all that it prints, as a block of Markdown."""
    return fenced(command, printed(command, folder, code))


def folded(text: str) -> str:
    """Its sentences broken at blanks."""
    return "".join(f"{wrap_line(line.rstrip(), CONSTANT_WIDTH)}\n" for line in text.splitlines())


def paragraphs(text: str) -> list[str]:
    """The parts of a report between its empty lines."""
    return text.strip("\n").split("\n\n")
