"""`memsim list`: the catalogue by article, a line each."""

from __future__ import annotations

import sys
from textwrap import wrap

import click

from memsim.cli.launch_options import echo_offers, has_kernels
from memsim.errors import MemsimError
from memsim.kernels import by_article
from memsim.views.screen import Screen

NARROWEST = 30  # columns of a story


@click.command("list")
@click.argument("file", required=False)
def list_kernels(file: str | None) -> None:
    """Lists the kernels that ship with memsim, grouped by the article they come from.

    Pass any of these names to `memsim analyze`. With FILE, a CUDA source or a binary: lists its
    kernels, each with its parameters and a command line that analyzes it.
    """
    if file is not None:
        if not has_kernels(file):
            raise MemsimError("there is no such CUDA source or binary file", file=file)
        echo_offers(file)
        return
    from rich.text import Text

    articles = by_article()
    width = max(len(entry.name) for entries in articles.values() for entry in entries)
    screen = Screen(sys.stdout)
    room = max(screen.room - width - 4, NARROWEST)
    for number, (title, entries) in enumerate(articles.items()):
        if number:
            screen.say()
        screen.say(title)
        for entry in entries:
            first, *more = wrap(entry.story, room)
            screen.say(Text("  ").append(entry.name.ljust(width), "bold").append(f"  {first}"))
            for line in more:
                screen.say(f"  {'':{width}}  {line}")
