"""`memsim list`: the catalogue by article, a line each."""

from __future__ import annotations

import click

from memsim.cli.target import echo_offers, is_source
from memsim.errors import MemsimError
from memsim.kernels import by_article


@click.command("list")
@click.argument("file", required=False)
def list_kernels(file: str | None) -> None:
    """Lists the kernels that ship with memsim by the article they come from, with a line about each.

    Each name can be given to `memsim analyze`. With the FILE of a CUDA source: its kernels, each with its
    parameters and a command line that analyzes it.
    """
    if file is not None:
        if not is_source(file):
            raise MemsimError("there is no such file of CUDA source", file=file)
        echo_offers(file)
        return
    articles = by_article()
    width = max(len(entry.name) for entries in articles.values() for entry in entries)
    for number, (title, entries) in enumerate(articles.items()):
        click.echo(f"\n{title}" if number else title)
        for entry in entries:
            click.echo(f"  {click.style(entry.name.ljust(width), bold=True)}  {entry.story}")
