"""`memsim play`: a page on this machine on which index math and layouts are tried out."""

from __future__ import annotations

import webbrowser

import click

from memsim.cli.output import say
from memsim.play.server import server


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: any that is free."
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def play(port: int, no_browser: bool) -> None:
    """Opens a page on which index math, a layout and a block are edited, and their cost follows.

    The page is served to this machine alone (127.0.0.1), until Ctrl-C. Its address carries what the fields
    say, so a state can be kept as a bookmark.
    """
    with server(port) as listening:
        address = f"http://127.0.0.1:{listening.server_address[1]}/"
        say(f"memsim's playground is at {address}; Ctrl-C ends it")
        if not no_browser:
            webbrowser.open(address)
        listening.serve_forever()
