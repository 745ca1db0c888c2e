"""`memsim init`: a first memsim.toml."""

from __future__ import annotations

import os
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
@click.option("--include", "-I", multiple=True, metavar="DIR", help="Add a folder of headers. Repeatable.")
def init(folder: Path, include: tuple[str, ...]) -> None:
    """Creates a memsim.toml in FOLDER with one target for each kernel in its CUDA files, and for each launch
    that memsim capture saved there.

    Grid, block, shared memory and arguments are those of the launches in the files. Kernels whose
    launch depends on values that only a run knows are listed in a comment, with the names of these
    values. An existing memsim.toml is not changed.
    """
    path = folder / OWN_FILE
    if path.exists():
        raise MemsimError(
            "the file already exists", file=str(path), hint="add targets to it by hand: see docs/ci.md"
        )
    text, targets, lacking = first_project(folder, _from_folder(include, folder))
    write_text(path, text, "the project")
    others = f"; {count(lacking, 'other kernel')} at its end, with the values to add" if lacking else ""
    say(f"wrote {path}: {count(targets, 'target')}{others}")
    if targets:
        say("next: run memsim baseline, commit both files, and run memsim check in CI")
    else:
        say(f"next: write a target for one of these kernels in {path}, and run memsim baseline")


def _from_folder(include: tuple[str, ...], folder: Path) -> list[str]:
    """Folders that are relative to the working folder, relative to that of the project."""
    return [Path(os.path.relpath(one, folder)).as_posix() for one in include]
