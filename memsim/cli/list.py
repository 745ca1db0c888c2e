"""`memsim list`: the catalogue, a line each."""

from __future__ import annotations

import click

from memsim.kernels import catalog


@click.command("list")
def list_kernels() -> None:
    """Lists the kernels that ship with memsim, with a line about each.

    Each name can be given to `memsim analyze`.
    """
    kernels = catalog()
    width = max(map(len, kernels))
    for name, spec in kernels.items():
        click.echo(f"{click.style(name.ljust(width), bold=True)}  {spec.story}")
