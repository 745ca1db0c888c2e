"""The line that a check prints of which there is nothing to say but that it passed."""

from __future__ import annotations

from typing import TextIO

from memsim.views.plain import coloured, plain, plain_console


def write_passed(verdict: str, stream: TextIO) -> None:
    """Prints the verdict on `stream`, in green where somebody is watching."""
    if not coloured(stream):
        stream.write(plain(f"{verdict}\n"))
        return
    plain_console(stream).print(verdict, style="bold green", soft_wrap=True)
