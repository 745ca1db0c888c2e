"""`memsim list`: the catalogue by article, a line each."""

from __future__ import annotations

import click

from memsim.kernels import by_article


@click.command("list")
def list_kernels() -> None:
    """Lists the kernels that ship with memsim by the article they come from, with a line about each.

    Each name can be given to `memsim analyze`.
    """
    articles = by_article()
    width = max(len(entry.name) for entries in articles.values() for entry in entries)
    for number, (title, entries) in enumerate(articles.items()):
        click.echo(f"\n{title}" if number else title)
        for entry in entries:
            click.echo(f"  {click.style(entry.name.ljust(width), bold=True)}  {entry.story}")
