"""The line that a check prints of which there is nothing to say but that it passed."""

from __future__ import annotations

from typing import TextIO

from memsim.views.plain import coloured, plain_console, plain_line


def write_passed(verdict: str, stream: TextIO) -> None:
    """Prints the verdict on `stream`, in green where somebody is watching."""
    if not coloured(stream):
        stream.write(f"{plain_line(verdict)}\n")
        return
    plain_console(stream).print(plain_line(verdict), style="bold green", soft_wrap=True)
