"""`memsim play`: a page on this machine on which index math and layouts are tried out."""

from __future__ import annotations

import webbrowser
from urllib.parse import quote

import click

from memsim.cli.output import say
from memsim.play.server import server


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: any that is free."
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.argument("state", default="")
def play(port: int, no_browser: bool, state: str) -> None:
    """Opens a page on which index math, a layout and a block are edited, and their cost follows.

    The page is served to this machine alone (127.0.0.1), until Ctrl-C. Its address carries what the fields
    say, so a state can be kept as a bookmark; STATE is the end of such an address, from its # on. A saved
    trace, or the folder of a saved launch, that is opened there becomes a report.

    \b
    Examples:
      memsim play
      memsim play '#layout=(32,32):(33,1)&load=x, y'
    """
    with server(port) as listening:
        fragment = quote(state[state.find("#") :], safe="#=&%+:,()*") if "#" in state else ""
        address = f"http://127.0.0.1:{listening.server_address[1]}/{fragment}"
        say(f"memsim's playground, until Ctrl-C: {address}")
        if not no_browser:
            webbrowser.open(address)
        listening.serve_forever()
