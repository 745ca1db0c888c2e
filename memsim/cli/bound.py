"""`memsim bound`: how many cycles a launch takes at least, and what bounds it."""

from __future__ import annotations

import sys
from typing import Any

import click

from memsim.cli.launch_options import analyze_target, target_options
from memsim.cli.options import JSON
from memsim.cli.output import echo_json
from memsim.views import bound_text


@click.command()
@target_options
@JSON
@click.pass_context
def bound(ctx: click.Context, /, target: str, as_json: bool, **launch: Any) -> None:
    """Computes a lower bound on the cycles of a launch, per hardware unit, and the limiting unit.

    The bound is the time each unit needs if it never waits. It shows whether bank conflicts can
    matter at all before you rewrite the kernel. Needs machine code and all blocks.

    TARGET and its options are the same as for `memsim analyze`.

    \b
    Examples:
      memsim bound kernel_v3
      memsim bound kernel_v4 --size 512,512,512 --json
    """
    analysis = analyze_target(ctx, target)
    if as_json:
        echo_json(bound_text.to_dict(analysis))
    else:
        bound_text.write(analysis, sys.stdout)
