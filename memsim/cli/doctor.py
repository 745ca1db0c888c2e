"""`memsim doctor`: what is installed, and what is missing for what."""

from __future__ import annotations

import sys

import click

import memsim
from memsim.cli.options import JSON
from memsim.cli.output import echo_json
from memsim.doctor import DoctorDocument, Tool, examine
from memsim.document import plain
from memsim.views.screen import Screen


@click.command()
@JSON
@click.pass_context
def doctor(ctx: click.Context, /, as_json: bool) -> None:
    """Shows which tools, libraries and devices memsim finds, and what the missing ones are needed for.

    Exit code 1 if a part is missing without which memsim cannot analyze a CUDA file.
    """
    parts = examine()
    missing = [part for part in parts if part.required and not part.found]
    if as_json:
        echo_json(plain(DoctorDocument(parts=parts)))
    else:
        _write(parts, missing)
    ctx.exit(1 if missing else 0)


def _write(parts: tuple[Tool, ...], missing: list[Tool]) -> None:
    screen = Screen(sys.stdout)
    names = " and ".join(part.name for part in missing)
    answer = f"cannot count without {names}" if missing else "ready to count"
    screen.say(f"memsim {memsim.__version__}: {answer}", "bold")
    screen.say()
    width = max(len(part.name) for part in parts)
    for part in parts:
        mark, style = ("+", "") if part.found else ("-", "red" if part.required else "yellow")
        told = part.found or f"not found; for {part.needed_for}: {part.hint}"
        screen.say(f"{mark} {part.name.ljust(width)}  {told}", style)
