"""What a check prints of which there is nothing to say but that it passed."""

from __future__ import annotations

from typing import TextIO

from memsim.views.plain import coloured, plain_console, plain_line


def write_passed(report: str, stream: TextIO) -> None:
    """Prints the lines of a report on `stream`; the last one, the verdict, in green where somebody is
    watching.
    """
    *lines, verdict = report.split("\n")
    for line in lines:
        stream.write(f"{plain_line(line)}\n")
    if not coloured(stream):
        stream.write(f"{plain_line(verdict)}\n")
        return
    plain_console(stream).print(plain_line(verdict), style="bold green", soft_wrap=True)
