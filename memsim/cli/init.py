"""`memsim init`: a first memsim.toml."""

from __future__ import annotations

from pathlib import Path

import click

from memsim.cli.output import say
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.targets.first import first_project
from memsim.targets.project import OWN_FILE
from memsim.views.labels import count


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True), default=".")
def init(folder: Path) -> None:
    """Creates a memsim.toml in FOLDER with one target for each kernel in its CUDA files.

    Grid, block, shared memory and arguments are taken from the launches in the files. A target that
    still lacks a value is written as a comment that says which. An existing memsim.toml is not changed.
    """
    path = folder / OWN_FILE
    if path.exists():
        raise MemsimError(
            "the file already exists", file=str(path), hint="add targets to it by hand: see docs/ci.md"
        )
    text, targets, lacking = first_project(folder)
    write_text(path, text, "the project")
    say(
        f"wrote {path}: {count(targets, 'target')}"
        + (f"; values are missing for {lacking} of them, written as comments" if lacking else "")
    )
    say("next: run memsim baseline, commit both files, and run memsim check in CI")
