"""`memsim prove`: whether a kernel is free of bank conflicts at every value of some names."""

from __future__ import annotations

import sys
from typing import Any

import click

from memsim.cli.launch_options import LAUNCH, launch_option, texts_said
from memsim.cli.options import JSON, UNTRUSTED, allow_named, with_options
from memsim.cli.output import echo_json, progress_bar
from memsim.errors import MemsimError
from memsim.sweep import every_value

#: What is the same for all values, and not said here.
SINGLE = ("let", "cluster", "allow_out_of_bounds")


def _named(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """`N=1..8192` as a name and its values."""
    found = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.isidentifier() or not values:
            raise click.BadParameter(f"{text!r} is not a name and its values, such as N=1..8192 or B=16|32")
        found[name] = values
    return found


@click.command()
@click.argument("target", callback=allow_named)
@click.option(
    "--for",
    "names",
    multiple=True,
    required=True,
    callback=_named,
    metavar="NAME=VALUES",
    help="A name and its values: N=1..8192, N=0..64..8 or BLOCK=16|32. Repeatable.",
)
@with_options(*(launch_option(name, as_text=True) for name in LAUNCH if name not in SINGLE))
@UNTRUSTED
@JSON
@click.pass_context
def prove(ctx: click.Context, /, target: str, names: dict[str, str], as_json: bool, **texts: Any) -> None:
    """Says whether a kernel is free of bank conflicts at every value of some names; exit code 1 if not.

    A name is a macro, a parameter of a Python function, or stands in braces in other options:
    --block '{BLOCK},8', --arg '{N}', --arg 'f32[{N*N}]'. Up to 64 combinations are all replayed. Of a longer
    range each residue modulo 128 bytes is replayed at one value, and others are drawn at random; the answer
    then says so.

    \b
    Examples:
      memsim prove layouts.py:transpose --block 32,32 -D 'layout=(32,32):({LD},1)' --for LD=32..8192
      memsim prove tile.cu --for 'TILE=16|32' --grid 1 --block '{TILE},{TILE}' --arg 'f32[{TILE*TILE}]'
    """
    with progress_bar(target) as report:
        found = every_value.prove(target, texts_said(ctx), names, report)
    if all(each.ways is None for each in found.replayed):
        braces = f"a name is a macro unless it stands in braces, as in --arg '{{{next(iter(names))}}}'"
        raise MemsimError("it could be analyzed at no value", hint=f"{found.replayed[0].error}; {braces}")
    if as_json:
        echo_json(every_value.to_dict(target, found))
    else:
        every_value.write(target, found, sys.stdout)
    ctx.exit(0 if found.holds else 1)
