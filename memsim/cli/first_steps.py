"""`memsim list`, `memsim doctor`, `memsim init`: what ships, what is installed, and a first memsim.toml."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from memsim.cli.options import JSON
from memsim.cli.output import echo_json, say_written
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.kernels import by_article
from memsim.version import __version__
from memsim.views.labels import count
from memsim.views.screen import Screen

if TYPE_CHECKING:
    from memsim.doctor import Tool

NARROWEST = 30  # columns of a story
HEAD = """\
# What `memsim check` guards, against the counts in memsim-baseline.toml.
# memsim baseline   writes that file
# memsim check      fails if an access costs more than before, and names kernels that no target guards
#
# A target is a program, each launch of which is counted, or a kernel; `memsim list FILE` shows how a
# file's kernels are launched.
#
#   [[targets]]
#   command = "./app --size 1024"
#
#   [[targets]]
#   file = "src/scale.cu"
#   kernel = "scale"
#   grid = [8]
#   block = [128]
#   args = ["f32[1024]", "2.0"]

budgets = ["baseline"]
"""


@click.command("list")
@click.argument("file", required=False)
@JSON
def list_kernels(file: str | None, as_json: bool) -> None:
    """Lists the kernels that ship with memsim, grouped by the article they come from.

    Pass any of these names to `memsim analyze`. With FILE, a CUDA source or a binary: lists its
    kernels, each with its parameters and a command line that analyzes it.
    """
    if file is not None:
        from memsim.cli.launch_options import echo_offers, has_kernels
        from memsim.targets.target import file_of

        file = file_of(file)
        if not has_kernels(file):
            raise MemsimError("there is no such CUDA source or binary file", file=file)
        echo_offers(file, as_json=as_json)
        return
    articles = by_article()
    if as_json:
        from memsim.targets.offers import KernelsDocument, ListedKernel

        kernels = (
            ListedKernel(
                name=entry.name, about=entry.story, place=title, command=f"memsim analyze {entry.name}"
            )
            for title, entries in articles.items()
            for entry in entries
        )
        echo_json(KernelsDocument(kernels=tuple(kernels)))
        return
    width = max(len(entry.name) for entries in articles.values() for entry in entries)
    screen = Screen(sys.stdout)
    room = max(screen.room - width - 4, NARROWEST)
    for number, (title, entries) in enumerate(articles.items()):
        if number:
            screen.say()
        screen.say(title)
        for entry in entries:
            first, *more = wrap(entry.story, room)
            screen.say([("  ", ""), (entry.name.ljust(width), "bold"), (f"  {first}", "")])
            for line in more:
                screen.say(f"  {'':{width}}  {line}")


@click.command()
@JSON
@click.pass_context
def doctor(ctx: click.Context, /, as_json: bool) -> None:
    """Shows which tools, libraries and devices memsim finds, and what the missing ones are needed for.

    Exit code 1 if a part is missing without which memsim cannot analyze a CUDA file.
    """
    from memsim.doctor import DoctorDocument, examine

    parts = examine()
    missing = [part for part in parts if part.required and not part.found]
    if as_json:
        echo_json(DoctorDocument(parts=parts))
    else:
        _write_parts(parts, missing)
    ctx.exit(1 if missing else 0)


def _write_parts(parts: tuple[Tool, ...], missing: list[Tool]) -> None:
    screen = Screen(sys.stdout)
    names = " and ".join(part.name for part in missing)
    answer = f"cannot count without {names}" if missing else "ready to count"
    screen.say(f"memsim {__version__}: {answer}", "bold")
    screen.say()
    width = max(len(part.name) for part in parts)
    for part in parts:
        mark, style = ("+", "") if part.found else ("-", "red" if part.required else "yellow")
        told = part.found or f"not found; for {part.needed_for}: {part.hint}"
        screen.say(f"{mark} {part.name.ljust(width)}  {told}", style)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True), default=".")
@JSON
def init(folder: Path, as_json: bool) -> None:
    """Creates a memsim.toml in FOLDER, with one target for each launch that memsim capture or memsim exec
    saved there, and a comment that says how others are written.

    An existing memsim.toml is not changed.
    """
    from memsim.captured.saved_launch import LAUNCH, is_launch
    from memsim.targets.project import OWN_FILE

    path = folder / OWN_FILE
    if path.exists():
        raise MemsimError(
            "the file already exists", file=str(path), hint="add targets to it by hand: see docs/ci.md"
        )
    saved = [file.relative_to(folder) for file in sorted(folder.rglob(LAUNCH)) if is_launch(file)]
    tables = (
        f"[[targets]]\nname = {json.dumps(file.parent.as_posix())}\nfile = {json.dumps(file.as_posix())}\n"
        for file in saved
    )
    write_text(path, "\n".join([HEAD, *tables]), "the project")
    following = (
        "next: run memsim baseline, commit both files, and run memsim check in CI"
        if saved
        else f"next: write a target in {path}, and run memsim baseline"
    )
    say_written(f"wrote {path}: {count(len(saved), 'target')}", [path], [following], as_json=as_json)
