"""What a command of memsim prints, as the documents show it: folded to 100 columns."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 100
A_ROW = 3  # so many gaps of two blanks make a line a row of a table
CUT = "..."


def printed(command: str, folder: Path = ROOT, code: int = 0, columns: int = COLUMNS) -> str:
    """Output and errors of `memsim ...`, or `python -m ...`, in `folder`; tables take so many columns.

    Raises:
        RuntimeError: another exit code than `code`.
    """
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command.removeprefix("python -m "))],
        cwd=folder,
        env={**os.environ, "COLUMNS": str(columns)},
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
    """Sentences of more than 100 columns broken at a blank; rows of tables as they are."""
    lines = []
    for line in map(str.rstrip, text.splitlines()):
        while (
            line.count("  ") < A_ROW
            and len(line) > COLUMNS
            and (at := line.rfind(" ", 1, COLUMNS + 1)) > 0
            and line[:at].strip()
        ):
            lines.append(line[:at])
            line = line[at + 1 :]
        lines.append(line)
    return "".join(f"{line}\n" for line in lines)


def paragraphs(text: str) -> list[str]:
    """The parts of a report between its empty lines."""
    return text.strip("\n").split("\n\n")
