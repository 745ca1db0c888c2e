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
    articles = by_article()
    width = max(len(entry.name) for entries in articles.values() for entry in entries)
    room = max(Screen(sys.stdout).room - width - 4, NARROWEST)
    for number, (title, entries) in enumerate(articles.items()):
        click.echo(f"\n{title}" if number else title)
        for entry in entries:
            first, *more = wrap(entry.story, room)
            click.echo(f"  {click.style(entry.name.ljust(width), bold=True)}  {first}")
            for line in more:
                click.echo(f"  {'':{width}}  {line}")
