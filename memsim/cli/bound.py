"""`memsim bound`: how many cycles a launch takes at least, and what bounds it."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from memsim.bound import bound_of
from memsim.cli.target import analyzed, target_options
from memsim.report import bound as report


@click.command()
@target_options
@click.option("--json", "as_json", is_flag=True, help="Print the same records as JSON.")
@click.pass_context
def bound(ctx: click.Context, /, target: str, as_json: bool, **launch: Any) -> None:
    """Tells how many cycles a launch takes at least, unit by unit, and which unit bounds it.

    It is a lower bound: what every unit would need if it never waited. It says whether bank conflicts can
    matter at all before you rewrite the kernel. Machine code is needed, and all blocks.

    TARGET and its options are those of `memsim analyze`.

    \b
    Examples:
      memsim bound kernel_v3
      memsim bound kernel_v4 --size 512,512,512 --json
    """
    analysis = analyzed(ctx, target)
    found = bound_of(analysis)
    if as_json:
        click.echo(json.dumps(report.to_dict(analysis, found), indent=2))
    else:
        report.write(analysis, found, sys.stdout)
