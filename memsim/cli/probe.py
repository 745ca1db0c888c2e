"""`memsim probe --export`: the program of one file that measures a GPU which nobody measured."""

from __future__ import annotations

from pathlib import Path

import click

from memsim.cli.options import file_option
from memsim.cli.output import say
from memsim.files import write_text
from memsim.validate.exported_probe import exported


@click.command()
@file_option(
    "--export",
    required=True,
    help="Write a Python program that measures by cycles, and needs only NVIDIA's driver.",
)
def probe(export: Path) -> None:
    """Writes a program that measures what the model's rules are about, on any GPU.

    The program is one file, and needs Python and NVIDIA's driver, not even memsim. It repeats an
    instruction in all warps and reads the clock, so it needs no profiler. What it writes is compared with
    the rules by `python -m lab clock RECORDING`, in memsim's repository; please contribute it.
    """
    write_text(export, exported(), "the program")
    say(f"written: {export}; on the GPU's machine: python3 {export.name}")
