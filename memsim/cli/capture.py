"""`memsim capture`: runs a Python script, and keeps the launches of its kernels."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

import click

from memsim.boundary import confinement
from memsim.captured import script_table
from memsim.captured.launched import Launched
from memsim.captured.saved_launch import write_launch
from memsim.captured.session import run_script
from memsim.cli.options import JSON
from memsim.cli.output import echo_json, free_path, progress_bar, say
from memsim.errors import MemsimError
from memsim.views.labels import dim3


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder for the launches; created if missing. Default: named after the script.",
)
@click.option("--arch", default="sm_90", show_default=True, help="Architecture to compile for.")
@click.option("--analyze", is_flag=True, help="Count what the first launch of each kind costs, in one table.")
@JSON
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def capture(
    output: Path | None, arch: str, analyze: bool, as_json: bool, script: Path, arguments: tuple[str, ...]
) -> None:
    """Runs a Python script that launches kernels of Triton, NVIDIA Warp or CuTe DSL, and records
    each launch.

    No GPU or driver is needed. Without them no kernel is executed, so each launch sees the arrays
    as the script filled them. Every configuration of an autotuner is launched once.

    Each launch gets a folder in FOLDER with launch.json, the machine code and the arrays. With --analyze a
    table says of each kind what it wastes and where, and how the configurations of an autotuner rank.

    \b
    Examples:
      memsim capture add.py
      memsim analyze add-launches/000_add_kernel/launch.json
      memsim capture --analyze add.py
    """
    if confinement() is not None:
        raise MemsimError("a script is a program, and --untrusted runs none", file=str(script))
    if output is None:
        output = free_path(f"{script.stem}-launches")
    elif output.is_dir() and any(output.iterdir()):
        raise MemsimError(
            "the output folder is not empty", file=str(output), hint="choose another, such as -o run2"
        )
    kept: list[Path] = []
    launches = script_table.ScriptLaunches()

    def keep(launched: Launched) -> None:
        kept.append(write_launch(launched, output / f"{len(kept):03}_{launched.kernel.title}"))
        launches.add(launched, kept[-1])
        if not analyze:
            say(_line(kept[-1], launched), err=as_json)

    with redirect_stdout(sys.stderr) if as_json else nullcontext():  # of the script itself
        run_script(script, arguments, keep, arch)
    if analyze:
        with progress_bar(str(script)) as report:
            for share in launches.analyze():
                if report is not None:
                    report(share)
    kinds = [*launches.kinds.values()]
    answer = f"{len(kept)} launch{'es' * (len(kept) != 1)} of {script}"
    if as_json:
        echo_json(script_table.to_dict(kinds, script_table.headline(kinds) if analyze else answer))
    elif analyze:
        script_table.write(kinds, sys.stdout)
        say(f"The launches are in {output}; memsim init {output} makes a target of each.")
    else:
        say(answer)


def _line(path: Path, launched: Launched) -> str:
    shape = f"grid {dim3(launched.grid)}, block {dim3(launched.block)}"
    return f"{path}  {shape}{f'  {launched.note}' if launched.note else ''}"
